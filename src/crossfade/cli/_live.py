"""``crossfade live``: from a running stream to a person's own classifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from crossfade.cli._options import FILE, FOLDER, option
from crossfade.cli._output import plain_messages

#: Where samples or features come from, and options that go with some of these alone.
_SOURCES = ("demo", "stream", "replay", "features")
_GOES_WITH = {
    "prior": ("stream", "replay", "features"),
    "markers": ("stream",),
    "channels": ("stream",),
    "speed": ("replay", "demo"),
}


@click.command()
@click.option("--demo", is_flag=True, help="Calibrate a recorded person; needs no hardware.")
@click.option("--prior", type=FILE, help="Prior file, made by `crossfade prior build`.")
@click.option("--stream", metavar="NAME", help="Lab Streaming Layer stream with the samples.")
@click.option("--markers", metavar="NAME", help="LSL stream whose markers name the classes.")
@click.option(
    "--channels",
    metavar="NAMES",
    help="Names of the stream's channels in order, such as Fz,Cz,Pz; the stream's own by default.",
)
@click.option("--replay", type=FILE, help="Recording to play again instead of a stream.")
@click.option(
    "--features",
    type=click.File("rb"),
    help="Features of one window a line, CSV with a header or JSON; - is standard input.",
)
@option(
    "--speed", click.FloatRange(0.01, 1000.0), 1.0, "How fast a recording or the demo is played."
)
@click.option(
    "--labels",
    type=click.Choice(["cues", "keys", "markers"]),
    show_default="markers with --markers and --replay, the lines' own with --features, else cues",
    help="Where labels come from: cues on the page, keys, or markers and annotations.",
)
@click.option(
    "--folder",
    type=FOLDER,
    show_default="results/live/DATE_TIME",
    help="Folder of the session; one that holds a session goes on with it.",
)
@click.option(
    "--earlier",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    help="Folder of an earlier session of the same person, who then needs fewer windows; repeat it "
    "for several.",
)
@click.option(
    "--want",
    type=click.FloatRange(0.0, 1.0),
    help="Advise to stop when the accuracy is at least this with probability 0.9.",
)
@click.option(
    "--publish",
    metavar="NAME",
    help="Also send predictions as an LSL stream of this name, which the network can read.",
)
@click.option("--no-open", is_flag=True, help="Do not open the page in a browser.")
def live(**given: Any) -> None:
    """Calibrate a new person from a running stream, on a page that says when it is enough.

    The page shows cues, the signal, the accuracy to expect, and whether more windows are worth it.
    When calibration is finished, every window is predicted: on the page and as JSON lines on
    standard output, after the line with the address of the page.

    \b
    Examples:
      crossfade live --demo
      crossfade live --prior prior.npz --stream EEG
      crossfade live --prior prior.npz --stream EEG --earlier results/live/2026-11-16_10-00-00
      crossfade live --prior prior.npz --replay session.edf --speed 10
      my-features | crossfade live --prior prior.npz --features -
    """
    context = click.get_current_context()
    asked = {
        name for name in given if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }
    chosen = [name for name in _SOURCES if name in asked]
    if len(chosen) != 1:
        raise click.UsageError("Choose one of --stream, --replay, --features and --demo.")
    for name, sources in _GOES_WITH.items():
        if name in asked and chosen[0] not in sources:
            named = " or ".join(f"--{one}" for one in sources)
            raise click.UsageError(f"--{name} goes with {named}.")
    if chosen != ["demo"] and given["prior"] is None:
        raise click.UsageError("Name the prior with --prior; `crossfade prior build` makes one.")
    if given["labels"] == "markers" and chosen == ["stream"] and given["markers"] is None:
        raise click.UsageError("Name the stream of markers with --markers.")
    names = (given.pop("channels") or "").split(",")
    channels = [name.strip() for name in names if name.strip()]
    opens = not given.pop("no_open")
    del given["demo"]
    with plain_messages():
        from crossfade.live import run_live

        run_live(**given, channels=channels, opens=opens)

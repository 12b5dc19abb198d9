"""``crossfade live``: from a running stream to a person's own classifier."""

from __future__ import annotations

import secrets
import sys
import threading
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click
from click.core import ParameterSource

from crossfade.cli._options import COUNT, FILE, FOLDER, option
from crossfade.cli._output import plain_messages

if TYPE_CHECKING:
    from crossfade.live._streams import Stream, Windows


@click.command()
@click.option("--demo", is_flag=True, help="Calibrate a recorded person; needs no hardware.")
@click.option("--prior", type=FILE, help="Prior file, made by `crossfade prior build`.")
@click.option("--stream", metavar="NAME", help="Lab Streaming Layer stream with the samples.")
@click.option("--markers", metavar="NAME", help="LSL stream whose markers name the classes.")
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
@option("--per-cue", COUNT, 5, "Windows of each cue.")
@click.option(
    "--reject",
    type=click.FloatRange(0.0, min_open=True),
    metavar="UV",
    help="Leave out windows in which a channel ranges over more than this, in microvolts.",
)
@click.option(
    "--folder",
    type=FOLDER,
    show_default="results/live/DATE_TIME",
    help="Folder of the session; one that holds a session goes on with it.",
)
@click.option(
    "--forget",
    type=click.FloatRange(1.0),
    metavar="WINDOWS",
    help="Half-life: a window that is so many windows old counts half. All count alike by default.",
)
@click.option(
    "--earlier",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    help="Folder of an earlier session of the same person, who then needs fewer windows; repeat it "
    "for several. Before the first label the page shows a newcomer's forecast; expect more.",
)
@click.option("--want", type=click.FloatRange(0.0, 1.0), help="Accuracy that is enough.")
@option(
    "--certainty",
    click.FloatRange(0.0, 1.0),
    0.9,
    "Advise to stop when the accuracy is at least --want with this probability.",
)
@option(
    "--gain",
    click.FloatRange(0.0, 1.0),
    0.01,
    "Advise to stop when the next windows (--ahead) are expected to gain less accuracy than this; "
    "0.01 is one point.",
)
@option("--ahead", click.IntRange(1, 1000), 5, "How many windows the advice looks ahead.")
@click.option(
    "--channels",
    metavar="NAMES",
    help="Names of the stream's channels in order, such as Fz,Cz,Pz; the stream's own by default.",
)
@option(
    "--scope",
    click.Choice(["machine", "link", "site"]),
    "machine",
    "How far to look for LSL streams.",
)
@option(
    "--publish",
    click.STRING,
    "crossfade",
    "Name of the LSL stream of predictions, which can be read from the network.",
    metavar="NAME",
)
@click.option("--no-publish", is_flag=True, help="Publish no LSL stream of predictions.")
@option(
    "--host", click.STRING, "127.0.0.1", "Interface of the page; the default is this machine only."
)
@option("--port", click.IntRange(0, 65535), 8770, "Port of the page; 0 is any that is free.")
@click.option("--no-open", is_flag=True, help="Do not open the page in a browser.")
def live(**given: Any) -> None:
    """Calibrate a new person from a running stream, on a page that says when it is enough.

    The page shows cues, the signal, the accuracy to expect, and whether more windows are worth it.
    When calibration is finished, every window is predicted: on the page, as an LSL stream, and as
    JSON lines on standard output, after the line with the address of the page.

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
    given["labels"] = _check(given, asked)
    if given.pop("no_publish"):
        given["publish"] = None
    # What a folder keeps; what was not asked for is as it was begun.
    options = {name: given.pop(name) for name in _KEPT}
    given["kept"] = {_KEPT[name]: value for name, value in options.items() if name in asked}
    with plain_messages():
        _run(**given)


#: Where samples or features come from, and options that go with some of these alone.
_SOURCES = ("demo", "stream", "replay", "features")
_GOES_WITH = {
    "prior": ("stream", "replay", "features"),
    "markers": ("stream",),
    "channels": ("stream",),
    "scope": ("stream",),
    "speed": ("replay", "demo"),
    "reject": ("stream", "replay", "demo"),
}
#: Where labels may come from, the default first; lines of features may bring their own.
_LABELS = {
    "demo": ("cues", "keys"),
    "stream": ("cues", "keys", "markers"),
    "replay": ("markers", "keys"),
    "features": ("lines", "cues", "keys"),
}


#: Options that a session keeps, and what it calls them.
_KEPT = {
    "want": "want",
    "certainty": "certainty",
    "gain": "least_gain",
    "ahead": "ahead",
    "forget": "forget",
}


def _check(given: dict[str, Any], asked: set[str]) -> str:
    """Where labels come from; refuses options that do not go together, by name."""
    chosen = [name for name in _SOURCES if name in asked]
    if len(chosen) != 1:
        names = " and ".join(f"--{one}" for one in chosen) or "none of them"
        raise click.UsageError(
            f"Choose one of --stream, --replay, --features and --demo; got {names}."
        )
    [source] = chosen
    for name, sources in _GOES_WITH.items():
        if name in asked and source not in sources:
            named = " and ".join(f"--{one}" for one in sources)
            raise click.UsageError(f"--{name} goes with {named} only; got --{source}.")
    if source != "demo" and "prior" not in asked:
        raise click.UsageError("Name the prior with --prior; `crossfade prior build` makes one.")
    default = "markers" if "markers" in asked else _LABELS[source][0]
    labels: str = given["labels"] or default
    if labels not in _LABELS[source]:
        others = " or ".join(f"--labels {one}" for one in _LABELS[source] if one != "lines")
        why = "a recording does not do what cues say" if source == "replay" else "it has none"
        raise click.UsageError(
            f"--labels {labels} does not go with --{source}: {why}. Choose {others}, or leave it "
            "out."
        )
    if labels == "markers" and source == "stream" and "markers" not in asked:
        raise click.UsageError("Name the stream of markers with --markers.")
    if labels != "markers" and "markers" in asked:
        raise click.UsageError(f"--markers does not go with --labels {labels}: leave one out.")
    if labels != "cues" and "per_cue" in asked:
        raise click.UsageError("--per-cue goes with cues only; labels come from elsewhere here.")
    if "certainty" in asked and "want" not in asked:
        raise click.UsageError("--certainty goes with --want: name the accuracy that is enough.")
    if given["no_publish"] and "publish" in asked:
        raise click.UsageError("--publish does not go with --no-publish: leave one out.")
    return labels


def _run(
    *,
    labels: str,
    folder: Path | None,
    earlier: tuple[Path, ...],
    kept: dict[str, Any],
    per_cue: int,
    reject: float | None,
    publish: str | None,
    host: str,
    port: int,
    no_open: bool,
    **source: Any,
) -> None:
    """Open everything, serve the page until it is ended, and write what is left to write."""
    from crossfade.live._lsl import LslStream
    from crossfade.live._publish import Lines, Publisher
    from crossfade.live._run import (
        about_session,
        check_stream,
        new_folder,
        open_live,
        prior_for,
        write_session,
    )
    from crossfade.live._server import address_of, open_port, reach_of, run_server
    from crossfade.live._session import Session

    with ExitStack() as opened:
        listener = opened.enter_context(open_port(host, port))
        prior, stream, windows = _source(labels, **source)
        opened.callback(stream.close)
        places = None if windows is None else check_stream(stream, windows)
        prior = prior_for(prior, earlier)
        where = folder or new_folder(Path("results") / "live")
        live = open_live(prior, where, **kept)
        opened.callback(live.close)
        channels = () if windows is None else windows.channels
        about = about_session(live, stream, channels, returns=bool(earlier))
        lines = Lines(sys.stdout.fileno())
        opened.callback(lines.close)
        on_lsl_clock = isinstance(stream, LslStream)
        publisher = Publisher(publish, live.class_names, lines, lsl_time=on_lsl_clock)
        session = Session(
            live,
            stream,
            windows,
            labels=labels,
            per_cue=per_cue,
            places=places,
            reject=reject,
            publish=publisher,
            finish=lambda session: write_session(session, about) + publisher.begin(),
        )
        token = secrets.token_urlsafe(16)
        address = address_of(listener, token)
        warning = reach_of(host)
        if warning:
            click.echo(warning, err=True)

        def started() -> None:
            lines.put(address)
            if not no_open:
                # A browser in the terminal would keep the page waiting that it asks for.
                threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()

        def end() -> None:
            try:
                click.echo(write_session(session, about), err=True)
            except OSError as reason:
                raise click.ClickException(
                    f"Model and report could not be written: {reason}. Every window is kept: make "
                    f"room on the disk, then go on with --folder {where} and finish."
                ) from reason

        # What was learnt is written even if something goes wrong later.
        opened.callback(end)
        run_server(session, listener, token, about, started)


def _source(
    labels: str,
    *,
    demo: bool,
    prior: Path | None,
    stream: str | None,
    markers: str | None,
    replay: Path | None,
    features: BinaryIO | None,
    speed: float,
    channels: str | None,
    scope: str,
) -> tuple[Any, Stream, Windows | None]:
    """Prior, stream, and what makes windows of it."""
    from crossfade.live._folder import names_of
    from crossfade.live._lsl import LslStream
    from crossfade.live._run import load_prior, open_demo, open_replay, windows_of
    from crossfade.live._streams import FeatureLines

    if demo or prior is None:
        return open_demo(speed)
    crowd = load_prior(prior)
    if features is not None:
        # Unbuffered: a thread that waits in a buffer would hold its lock to the end.
        read = getattr(features, "raw", features).read
        name = str(getattr(features, "name", "<stdin>")).replace("<stdin>", "standard input")
        return crowd, FeatureLines(name, read, crowd.feature_names, crowd.n_features), None
    windows = windows_of(crowd)
    if replay is not None:
        classes = tuple(crowd.classes or ())
        names = [*names_of(crowd, classes), *classes]
        annotated = labels == "markers"
        played = open_replay(replay, windows.channels, names, annotated=annotated, speed=speed)
        return crowd, played, windows
    named = [one.strip() for one in channels.split(",")] if channels else []
    return crowd, LslStream(str(stream), markers, channels=named, scope=scope), windows

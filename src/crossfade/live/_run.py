"""``crossfade live``: puts prior, stream and folder together, and writes model and report."""

from __future__ import annotations

import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from crossfade._files import write_whole
from crossfade.classifiers import save_model
from crossfade.crowd import TaskPrior
from crossfade.datasets import load_live_demo
from crossfade.live._calibration import LiveCalibration
from crossfade.live._folder import SESSION, names_of
from crossfade.live._lines import FeatureLines
from crossfade.live._lsl import LslStream
from crossfade.live._page import report_page
from crossfade.live._publish import Lines, Publisher
from crossfade.live._session import Session
from crossfade.live._streams import Rehearsal, Replay, Stream
from crossfade.prior import FEW_PEOPLE
from crossfade.signals import OnlineFeatures
from crossfade.signals.recordings import open_recording

#: Prior, stream, and what makes windows of its samples; lines of features are windows already.
Source = tuple[TaskPrior, Stream, OnlineFeatures | None]


def run_live(
    *,
    prior: Path | None = None,
    stream: str | None = None,
    markers: str | None = None,
    channels: Sequence[str] = (),
    replay: Path | None = None,
    features: BinaryIO | None = None,
    speed: float = 1.0,
    labels: str | None = None,
    folder: Path | None = None,
    earlier: Sequence[Path] = (),
    want: float | None = None,
    publish: str | None = None,
    opens: bool = True,
) -> None:
    """Serve a session until the program ends, then write model and report; no prior is the demo."""
    if labels is None:
        labels = "markers" if markers or replay else "cues" if features is None else "lines"
    with ExitStack() as opened:
        if prior is None:
            found: Source = open_demo(speed)
        elif features is not None:
            found = _open_lines(prior, features)
        elif replay is not None:
            found = _open_replay(prior, replay, labels, speed)
        else:
            found = _open_stream(prior, str(stream), markers, channels)
        crowd, source, windows = found
        opened.callback(source.close)
        places = None if windows is None else places_of(source, windows)
        live = open_live(_prior_for(crowd, earlier), folder or _new_folder(), want)
        opened.callback(live.close)
        about = about_session(live, source, windows, returns=bool(earlier))
        lines = Lines(sys.stdout.fileno())
        opened.callback(lines.close)
        lsl_time = isinstance(source, LslStream)
        publisher = Publisher(publish, live.class_names, lines, lsl_time=lsl_time)

        def finish(session: Session) -> str:
            said = write_session(session, about) + publisher.begin()
            if session.over:
                print(f"{source.name} has ended. {said} Ctrl-C ends the page.", file=sys.stderr)
            return said

        session = Session(
            live,
            source,
            windows,
            labels=labels,
            places=places,
            publish=publisher,
            finish=finish,
        )

        def started(address: str) -> None:
            lines.put(address)
            if opens:
                # A browser that runs in the terminal would block the server.
                threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()

        def end() -> None:
            try:
                print(write_session(session, about), file=sys.stderr)
            except OSError as reason:
                raise OSError(
                    f"Model and report could not be written: {reason}. Every window is kept: make "
                    f"room on the disk, then continue with --folder {live.folder} and finish."
                ) from reason

        # Model and report are written even if the server fails.
        opened.callback(end)
        serve(session, about, started)


def serve(session: Session, about: dict[str, Any], started: Callable[[str], None]) -> None:
    """Serve the page until SIGINT or SIGTERM; `started` gets its address."""
    # Web servers load when they are used.
    from crossfade.live._server import run_server

    run_server(session, about, started)


# -- where samples come from ----------------------------------------------------------------------


def open_demo(speed: float) -> tuple[TaskPrior, Rehearsal, OnlineFeatures]:
    """Prior of 35 people, the recorded 36th, and what makes features of the recording."""
    demo = load_live_demo()
    recipe = demo.prior.recipe
    assert recipe is not None
    # The samples were filtered and referenced before they were shipped.
    windows = OnlineFeatures(recipe, filtered=True)
    named = dict(zip(demo.prior.classes or (), demo.prior.class_names or (), strict=True))
    segments = {named[label]: samples for label, samples in demo.segments.items()}
    name = f"{demo.name} of Mental Math"
    person = Rehearsal(name, segments, recipe.sfreq, windows.channels, speed=speed)
    return demo.prior, person, windows


def _open_lines(prior: Path, features: BinaryIO) -> Source:
    crowd = TaskPrior.load(prior)
    # Not buffered: a thread that waits in a buffer would hold the lock of the buffer for ever.
    read = getattr(features, "raw", features).read
    name = str(getattr(features, "name", "<stdin>")).replace("<stdin>", "standard input")
    return crowd, FeatureLines(name, read, crowd.feature_names), None


def _open_replay(prior: Path, path: Path, labels: str, speed: float) -> Source:
    crowd, windows = _crowd_of(prior)
    recording = open_recording(path)
    if labels == "cues":
        raise ValueError("A recording cannot follow cues. Leave --labels cues out.")
    known = {str(one) for one in (*names_of(crowd), *(crowd.classes or ()))}
    found = sorted({one.text for one in recording.annotations})
    if labels == "markers" and not known & set(found):
        raise ValueError(
            f"No annotation of {path} names a class of the prior ({', '.join(sorted(known))}); "
            f"found: {', '.join(found) or 'none'}. Add --labels keys to label windows by hand."
        )
    samples, channels = recording.read(windows.channels), windows.channels
    notes = recording.annotations
    stream = Replay(path.name, samples, recording.sfreq, channels, notes, speed=speed)
    return crowd, stream, windows


def _open_stream(prior: Path, name: str, markers: str | None, channels: Sequence[str]) -> Source:
    crowd, windows = _crowd_of(prior)
    return crowd, LslStream(name, markers, channels=channels), windows


def _crowd_of(path: Path) -> tuple[TaskPrior, OnlineFeatures]:
    """A prior, and what makes features of a running stream."""
    crowd = TaskPrior.load(path)
    if crowd.recipe is None:
        raise ValueError(
            "The prior does not know how its features were made. Build it from a Parquet table of "
            "`crossfade features ... --causal`, or make features yourself and use --features -."
        )
    return crowd, OnlineFeatures(crowd.recipe)


def places_of(stream: Stream, windows: OnlineFeatures) -> list[int]:
    """Indices of the recipe's channels in a stream; refuses a stream that does not fit."""
    rate = windows.recipe.sfreq
    if stream.sfreq is not None and abs(stream.sfreq - rate) > 1e-3 * rate:
        raise ValueError(
            f"{stream.name} has {stream.sfreq:g} samples a second; the prior's recipe has "
            f"{rate:g}. Set the amplifier to {rate:g} Hz."
        )
    places = {name.lower(): place for place, name in enumerate(stream.channels)}
    missing = [name for name in windows.channels if name.lower() not in places]
    if missing:
        raise ValueError(
            f"{stream.name} has no channel {', '.join(missing)}, only "
            f"{', '.join(stream.channels)}. If the names differ, give the recipe's by --channels."
        )
    return [places[name.lower()] for name in windows.channels]


# -- the session ----------------------------------------------------------------------------------


def _new_folder() -> Path:
    """A folder named by date and time."""
    return Path("results") / "live" / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")


def open_live(prior: TaskPrior, folder: Path, want: float | None = None) -> LiveCalibration:
    """A new session, or the one in the folder if it was begun with the same prior and goal."""
    if not (folder / SESSION).is_file():
        return LiveCalibration(prior, folder=folder, want=want)
    live = LiveCalibration.load(folder)
    if live.prior != prior or want not in (None, live.want):
        live.close()
        raise ValueError(
            f"The session in {folder} was begun with another --prior, --earlier or --want. Use "
            "the same, or choose another --folder."
        )
    print(f"Continuing the session in {folder} with {len(live.windows)} windows.", file=sys.stderr)
    return live


def _prior_for(prior: TaskPrior, earlier: Sequence[Path]) -> TaskPrior:
    """The prior, tightened around a person by earlier sessions, if there are any."""
    tasks = []
    for folder in earlier:
        with closing(LiveCalibration.load(folder)) as live:
            tasks.append(live.task())
    return prior.for_person(tasks) if tasks else prior


def about_session(
    live: LiveCalibration, stream: Stream, windows: OnlineFeatures | None, *, returns: bool = False
) -> dict[str, Any]:
    """Fixed facts for the page; `returns` says that the person was here before."""
    channels, n_people = () if windows is None else windows.channels, live.prior.n_people
    return {
        "stream": stream.name,
        "rate": f"{len(channels)} channels at {stream.sfreq:g} Hz" if stream.sfreq else "",
        "folder": "" if live.folder is None else str(live.folder),
        "classes": list(live.class_names),
        "channels": list(channels),
        "want": live.want,
        "returns": returns,
        "few": n_people if n_people < FEW_PEOPLE else None,
    }


# -- model and report -----------------------------------------------------------------------------


def write_session(session: Session, about: dict[str, Any]) -> str:
    """Write model and report to the folder of the session; say where they are."""
    live = session.live
    if live.folder is None:
        return ""
    report = live.folder / "report.html"
    written = _write_model(live, live.folder / "model.json")
    begun = datetime.fromtimestamp((live.folder / SESSION).stat().st_mtime)
    how: dict[str, Any] = {"begun": begun, "recipe": live.recipe, "written": written}
    page = report_page(about, session.message(), session.view.course, **how)
    write_whole(report, page.encode())
    return f"{written} The report is {report}."


def _write_model(live: LiveCalibration, path: Path) -> str:
    """Write the model, unless no window has a label; say where it is, or why not."""
    if not any(live.state().counts.values()):
        return "No model was written, since no window has a label."
    save_model(live.model(), path, date=f"{datetime.now():%Y-%m-%d}")
    return f"The model is {path}."

"""Puts a live session together: prior, stream and folder; and writes what comes of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfade._files import write_whole
from crossfade.blend import load_model, save_model
from crossfade.datasets import load_live_demo
from crossfade.live._calibration import LiveCalibration
from crossfade.live._folder import KINDS, SESSION
from crossfade.live._page import report_page, result_of
from crossfade.live._session import Session
from crossfade.live._streams import Rehearsal, Replay, Stream, Windows
from crossfade.prior import FEW_PEOPLE, MulticlassPrior, TaskPrior
from crossfade.signals import OnlineFeatures, open_recording
from crossfade.tasks import Recipe

Array = NDArray[np.float64]


def open_replay(path: Path, channels: Sequence[str], classes: Sequence[Any], **how: Any) -> Replay:
    """A recording with the channels of a recipe, and labels in its annotations."""
    recording = open_recording(path)
    known = {str(one) for one in classes}
    found = sorted({one.text for one in recording.annotations})
    if how.pop("annotated") and not known & set(found):
        there = f"it has {', '.join(found)}" if found else "it has none"
        raise ValueError(
            f"No annotation of {path} names a class of the prior ({', '.join(sorted(known))}); "
            f"{there}. Add --labels keys to label its windows by hand."
        )
    return Replay(
        path.name,
        recording.read(channels),
        recording.sfreq,
        channels,
        recording.annotations,
        **how,
    )


def windows_of(prior: Any) -> OnlineFeatures:
    """What makes features of a running stream by a prior's recipe."""
    return OnlineFeatures(_recipe_of(prior))


def _recipe_of(prior: Any) -> Recipe:
    recipe: Recipe | None = getattr(prior, "recipe", None)
    if recipe is None:
        raise ValueError(
            "The prior does not say how its features were made, so that none can be made of a "
            "stream. Build it from a Parquet table of `crossfade features ... --causal`, or make "
            "features yourself and send them with --features -."
        )
    return recipe


def check_stream(stream: Stream, windows: Windows) -> list[int]:
    """Places of the recipe's channels in a stream that fits it."""
    rate = windows.recipe.sfreq
    if stream.sfreq is not None and abs(stream.sfreq - rate) > 1e-3 * rate:
        raise ValueError(
            f"{stream.name} has {stream.sfreq:g} samples a second; the prior's recipe has "
            f"{rate:g}. Set the amplifier to {rate:g} Hz, or build a prior from recordings at "
            f"{stream.sfreq:g} Hz."
        )
    places = {name.lower(): place for place, name in enumerate(stream.channels)}
    missing = [name for name in windows.channels if name.lower() not in places]
    if missing:
        raise ValueError(
            f"{stream.name} has no channel {', '.join(missing)}, which the prior's recipe needs; "
            f"it has {', '.join(stream.channels)}. If these are other names for them, give the "
            "right ones in order with --channels."
        )
    return [places[name.lower()] for name in windows.channels]


def new_folder(root: Path) -> Path:
    """A folder named for the moment."""
    return root / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")


def write_session(session: Session, about: dict[str, Any]) -> str:
    """Write model and report to the folder of the session; say where they are."""
    folder = session.live.folder
    if folder is None:
        return ""
    report = folder / "report.html"
    written, card = _write_model(session.live, folder / "model.json")
    begun = datetime.fromtimestamp((folder / SESSION).stat().st_mtime)
    message = session.message()
    result = result_of(message, about, begun, datetime.now(), session.live.recipe, written, card)
    write_whole(report, report_page(about, message, session.view.course, result).encode())
    onto = f" For a device: crossfade export {folder / 'model.json'} -o model.h" if card else ""
    return f"{written} The report is {report}.{onto}"


def _write_model(live: LiveCalibration, path: Path) -> tuple[str, str]:
    """Write the model of a person of whom there is a label; say where it is, or why not; its card.

    Without a model the card is empty.
    """
    try:
        if not any(live.state().counts.values()):
            raise ValueError(
                "No window has a label, so that it would be the crowd's and not this person's. "
                "Label some windows, and finish again."
            )
        save_model(live.model(), path, date=f"{datetime.now():%Y-%m-%d}")
    except ValueError as reason:
        old = f" {path} is of an earlier finish." if path.exists() else ""
        return f"No model was written. {reason}{old}", ""
    return f"The model is {path}.", load_model(path).card()


def about_session(
    live: LiveCalibration, stream: Stream, channels: Sequence[str], *, returns: bool = False
) -> dict[str, Any]:
    """What the page shows and does not change; `returns` says that the person was here before."""
    n_people = _n_people(live.prior)
    rate = "" if stream.sfreq is None else f"{len(channels)} channels at {stream.sfreq:g} Hz"
    return {
        "stream": stream.name,
        "rate": rate,
        "folder": "" if live.folder is None else str(live.folder),
        "classes": list(live.class_names),
        "channels": list(channels),
        "ahead": live.goal.ahead,
        "want": live.goal.want,
        "certainty": live.goal.certainty,
        "returns": returns,
        "few": n_people if n_people < FEW_PEOPLE else None,
    }


def load_prior(path: Path) -> Any:
    """A prior of any kind that a session can use."""
    reasons = []
    for kind in KINDS.values():
        try:
            return kind.load(path)
        except ValueError as reason:
            reasons.append(reason)
    raise reasons[0]


def _n_people(prior: Any) -> int:
    """Of how many people the prior is; of one of many classes, those of its best known pair."""
    if isinstance(prior, MulticlassPrior):
        return max(one.n_people for one in prior.priors.values())
    return int(prior.n_people)


def prior_for(prior: Any, earlier: Sequence[Path]) -> Any:
    """The prior, tightened around a person by the folders of earlier sessions, if there are any."""
    if not earlier:
        return prior
    if not isinstance(prior, TaskPrior):
        raise ValueError("--earlier needs a prior of two classes. Leave --earlier out.")
    tasks = []
    for folder in earlier:
        with closing(LiveCalibration.load(folder)) as live:
            tasks.append(live.task())
    return prior.for_person(tasks)


def open_demo(speed: float) -> tuple[Any, Rehearsal, OnlineFeatures]:
    """Prior of 35 people, the recorded 36th, and what makes features of the recording."""
    demo = load_live_demo()
    # They were filtered and referenced before they were shipped.
    windows = OnlineFeatures(_recipe_of(demo.prior), filtered=True)
    named = dict(zip(demo.prior.classes or (), demo.prior.class_names or (), strict=True))
    segments = {named[label]: samples for label, samples in demo.segments.items()}
    sfreq, channels = windows.recipe.sfreq, windows.channels
    person = Rehearsal(f"{demo.name} of Mental Math", segments, sfreq, channels, speed=speed)
    return demo.prior, person, windows


#: Options of a session that its folder keeps, as the command calls them.
_KEPT = {
    "want": "--want",
    "certainty": "--certainty",
    "least_gain": "--gain",
    "ahead": "--ahead",
    "forget": "--forget",
}


def open_live(prior: Any, folder: Path, **options: Any) -> LiveCalibration:
    """A new session with these options, or the one that the folder holds, begun with the same."""
    if not (folder / SESSION).is_file():
        try:
            return LiveCalibration(prior, folder=folder, **options)
        except FileExistsError:
            raise
        except OSError as reason:
            raise OSError(
                f"The session cannot be kept in {folder}: {reason.strerror or reason}. Choose "
                "another folder with --folder."
            ) from reason
    live = LiveCalibration.load(folder)
    kept = {"forget": live.forget, **live.goal._asdict()}
    try:
        if live.prior != prior:
            raise ValueError(
                f"The session in {folder} was begun with another prior, or with other sessions as "
                "--earlier. Go on with the same, or choose another --folder."
            )
        for name, value in options.items():
            if value != kept[name]:
                option = _KEPT[name]
                begun = "without" if kept[name] is None else f"with {option} {kept[name]:g} and not"
                raise ValueError(
                    f"The session in {folder} was begun {begun} {option} {value:g}. Leave {option} "
                    "out to go on as it was begun, or choose another --folder."
                )
    except ValueError:
        live.close()
        raise
    goes_on = [f"{option} {kept[name]:g}" for name, option in _KEPT.items() if kept[name]]
    print(
        f"Going on with the session in {folder}: {len(live.windows)} windows, "
        f"{', '.join(goes_on)}, as it was begun.",
        file=sys.stderr,
    )
    return live

"""One table of features from many recordings, in parallel; a bad file costs only itself.

Headers are read first: all recordings are brought to the lowest sampling rate, and to the channels
that most of them have.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crossfade.signals._extract import Extract, Rows
from crossfade.signals._labels import Segment, UnselectedLabelsError
from crossfade.signals.recordings import SUFFIXES, Recording, open_recording
from crossfade.tasks import Columns, Table, TaskSet, names_of, split, with_recipe

if TYPE_CHECKING:
    import pandas as pd

Label = Callable[[Recording], list[Segment]]


class Collected(NamedTuple):
    """Features of many files; the table is empty if none could be used."""

    frame: pd.DataFrame  # one row for each window, as read_tasks reads it
    failures: dict[str, str]  # what could not be used, and why
    notes: list[tuple[str, str]]  # where, and what a person should know of the rest

    def tasks(self, missing: str) -> TaskSet:
        """Tasks of the table; warns of what could not be used, and of the notes."""
        said = "; ".join(f"{name}: {why}" for name, why in self.failures.items())
        if not len(self.frame):
            raise ValueError(f"No file could be read. {said}")
        if said:
            warnings.warn(
                f"{len(self.failures)} files could not be read. {said}", UserWarning, stacklevel=3
            )
        for where, what in self.notes:
            warnings.warn(f"{where}: {what}.", UserWarning, stacklevel=3)
        # No check for stray columns: all of these were computed from signals.
        table = Columns().of(Table(self.frame, "The recordings", 0))
        return TaskSet(split(table, missing), names_of(self.frame))


class _Header(NamedTuple):
    sfreq: float
    ch_names: tuple[str, ...]
    channels: tuple[str, ...]
    names: tuple[str, ...]
    needed: tuple[str, ...]
    segments: list[Segment]


def find_recordings(paths: Iterable[Path]) -> list[Path]:
    """Files as given and the recordings in folders, each once."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(
                p
                for p in path.rglob("*")
                if p.suffix.lower() in SUFFIXES and not p.name.startswith(".")
            )
            if not inside:
                raise ValueError(
                    f"The folder {path} holds no recording (looked for {', '.join(SUFFIXES)})."
                )
            found += inside
        else:
            found.append(path)
    if not found:
        raise ValueError("There is no file to read.")
    return list({path.absolute(): path for path in reversed(found)}.values())[::-1]


def collect(
    paths: Sequence[Path],
    extract: Extract,
    label: Label,
    *,
    sfreq: float | None = None,
    merge: bool = False,
    n_jobs: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> Collected:
    """Features of all files; with `merge`, two files may hold windows of one task and class."""
    failures: dict[str, str] = {}
    headers = {}
    notes: list[tuple[str, str]] = []
    for path, header in process_files(
        paths, lambda p: _header(p, extract, label, sfreq), n_jobs, None
    ):
        if isinstance(header, UnselectedLabelsError):
            notes.append((str(path), str(header)))
        elif isinstance(header, str):
            failures[str(path)] = header
        else:
            headers[path] = header
    if not headers:
        return _table([], [], extract, failures, notes)
    rate = min(header.sfreq for header in headers.values())
    usual = Counter(header.names for header in headers.values()).most_common(1)[0][0]
    channels = next(header.channels for header in headers.values() if header.names == usual)
    for path, header in list(headers.items()):
        there = {name.lower() for name in header.ch_names}
        lacking = [name for name in channels if name.lower() not in there]
        if header.names != usual and lacking:
            failures[str(path)] = (
                f"It lacks {', '.join(lacking)}, which most files have; there are "
                f"{', '.join(header.ch_names)}."
            )
            del headers[path]

    def compute(path: Path) -> tuple[list[Rows], list[str]]:
        recording = open_recording(path, sfreq=sfreq)
        own = channels if headers[path].names != usual else headers[path].channels
        rows, notes = extract.rows(recording, headers[path].segments, own, rate)
        if not rows:
            raise ValueError(f"No window fits: {notes[-1]}.")
        return rows, notes

    rows: list[tuple[Path, Rows]] = []
    for path, outcome in process_files(list(headers), compute, n_jobs, on_progress):
        if isinstance(outcome, str):
            failures[str(path)] = outcome
            continue
        rows += [(path, one) for one in outcome[0]]
        notes += [(str(path), note) for note in outcome[1]]
    if not merge:
        rows = _without_duplicates(rows, failures)
    order = {str(path): place for place, path in enumerate(paths)}
    failures = dict(sorted(failures.items(), key=lambda item: order[item[0]]))
    made = _table([one for _, one in rows], extract.names(channels), extract, failures, notes)
    needed = {header.needed for header in headers.values()}
    recipe = extract.recipe(channels, needed.pop() if len(needed) == 1 else (), rate)
    return made._replace(frame=with_recipe(made.frame, recipe))


def process_files(
    paths: Sequence[Path],
    work: Callable[[Path], Any],
    n_jobs: int,
    on_progress: Callable[[int, int], None] | None,
) -> Iterator[tuple[Path, Any]]:
    """Yield each file with what `work` returned, or with the text of what went wrong, in order."""
    from joblib import Parallel, delayed

    def attempt(path: Path) -> Any:
        try:
            return work(path)
        except UnselectedLabelsError as reason:
            return reason
        except Exception as reason:  # readers raise whatever the damage of a file leads to
            return f"{str(reason).strip() or type(reason).__name__}"

    # Threads: reading, filters and spectra let go of the interpreter, and one process holds MNE.
    with _quiet():
        done = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
            delayed(attempt)(path) for path in paths
        )
        for place, (path, outcome) in enumerate(zip(paths, done, strict=True)):
            yield path, outcome
            if on_progress is not None:
                on_progress(place + 1, len(paths))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep readers from printing; one thread alone cannot, since MNE's level is everybody's."""
    log = logging.getLogger("pyxdf")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        if find_spec("mne") is None:
            yield
        else:
            import mne

            with mne.use_log_level("error"):
                yield
    finally:
        log.setLevel(level)


def _header(path: Path, extract: Extract, label: Label, sfreq: float | None) -> _Header:
    recording = open_recording(path, sfreq=sfreq)
    segments = label(recording)
    channels = extract.channels_of(recording)
    recording.find(channels)
    if recording.sfreq <= extract.min_sfreq:
        raise ValueError(
            f"It has {recording.sfreq:g} samples a second; these features need more than "
            f"{extract.min_sfreq:g}."
        )
    names = tuple(extract.names(channels))
    needed = extract.needed(recording, channels)
    return _Header(recording.sfreq, recording.ch_names, channels, names, needed, segments)


def _without_duplicates(
    rows: list[tuple[Path, Rows]], failures: dict[str, str]
) -> list[tuple[Path, Rows]]:
    """Leave out files that hold windows of a task and class of which another file holds some."""
    files: dict[tuple[str, str], dict[Path, None]] = {}
    for path, one in rows:
        files.setdefault((one.segment.task, one.segment.label), {})[path] = None
    for (task, name), doubled in files.items():
        if len(doubled) > 1:
            for path in doubled:
                others = ", ".join(str(other) for other in doubled if other != path)
                failures[str(path)] = (
                    f"Task {task!r}, label {name!r} is in {others} too. Leave one out, make them "
                    "different tasks of one group, or list both in a table of labels."
                )
    return [(path, one) for path, one in rows if str(path) not in failures]


def _table(
    rows: list[Rows],
    names: Sequence[str],
    extract: Extract,
    failures: dict[str, str],
    notes: list[tuple[str, str]],
) -> Collected:
    import pandas as pd

    if not rows:
        return Collected(pd.DataFrame(), failures, notes)
    tasks: dict[str, list[Rows]] = {}
    for one in rows:
        tasks.setdefault(one.segment.task, []).append(one)
    plain = _plain_labels({one.segment.label for one in rows})
    with_group = any(one.segment.group is not None for one in rows)
    parts = []
    for task in list(tasks):
        own = tasks.pop(task)
        groups = sorted({str(one.segment.group) for one in own})
        if len(groups) > 1:
            failures[f"Task {task}"] = f"It is in the groups {', '.join(groups)}; it needs one."
            continue
        raw = np.concatenate([one.values for one in own])
        values = extract.finish(raw)
        part = pd.DataFrame(values, columns=list(names))
        counts = [len(one.start) for one in own]
        part.insert(0, "start", np.concatenate([one.start for one in own]))
        if with_group:
            part.insert(0, "group", np.repeat([one.segment.group for one in own], counts))
        part.insert(0, "label", np.repeat([plain[one.segment.label] for one in own], counts))
        part.insert(0, "task", task)
        parts.append(part[extract.settled(raw)])
        whole = np.split(np.isfinite(values).all(1), np.cumsum(counts)[:-1])
        complete = {one.segment.label for one, some in zip(own, whole, strict=True) if some.any()}
        if not complete:
            failures[f"Task {task}"] = (
                "No window of it has all features; readers will leave it out."
            )
        elif len(complete) == 1:
            only = len({one.segment.label for one in own}) == 1
            kind = "windows" if only else "windows with all features"
            notes.append((f"Task {task}", f"has {kind} of one class only, {complete.pop()!r}"))
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return Collected(frame, failures, notes)


def _plain_labels(labels: set[str]) -> dict[str, Hashable]:
    """Labels as whole numbers if all of them are."""
    whole = all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", label) for label in labels)
    return {label: int(label) if whole else label for label in labels}

"""One table of features from many recordings, in parallel; a bad file costs only itself."""

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

from crossfade.signals._extract import Rows, extract, finish
from crossfade.signals._labels import Label, OtherLabelsError
from crossfade.signals.recordings import SUFFIXES, Recording, open_recording
from crossfade.tasks import Recipe, TaskSet, with_about

if TYPE_CHECKING:
    import pandas as pd


class Collected(NamedTuple):
    """Features of many files; the table is empty if none could be used."""

    frame: pd.DataFrame  # one row for each window, as read_tasks reads it
    failures: dict[str, str]  # what could not be used, and why
    notes: list[tuple[str, str]]  # where, and what is notable about the rest

    def tasks(self) -> TaskSet:
        """Tasks of the table; warns of files that could not be used, and of the notes."""
        said = "; ".join(f"{name}: {why}" for name, why in self.failures.items())
        if not len(self.frame):
            raise ValueError(f"No file could be read. {said}")
        if said:
            warnings.warn(
                f"{len(self.failures)} files could not be read. {said}", UserWarning, stacklevel=3
            )
        for where, what in self.notes:
            warnings.warn(f"{where}: {what}.", UserWarning, stacklevel=3)
        return TaskSet.from_frame(self.frame)


def find_recordings(paths: Iterable[Path]) -> list[Path]:
    """Files as given and the recordings in folders, each once."""
    found: dict[Path, Path] = {}
    for path in paths:
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        kept = [
            one
            for one in inside
            if one == path or (one.suffix.lower() in SUFFIXES and not one.name.startswith("."))
        ]
        if not kept:
            raise ValueError(f"The folder {path} holds no recording ({', '.join(SUFFIXES)}).")
        for one in kept:
            found.setdefault(one.absolute(), one)
    return list(found.values())


def collect(
    paths: Iterable[Path],
    recipe_for: Callable[[Recording], Recipe],
    label: Label,
    *,
    merge: bool = False,
    n_jobs: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> Collected:
    """Features of all recordings; with `merge`, files may share windows of one task and class."""
    import pandas as pd

    files = find_recordings(paths)
    failures: dict[str, str] = {}
    notes: list[tuple[str, str]] = []
    headers: dict[Path, tuple[Recipe, Any]] = {}

    def read_header(path: Path) -> tuple[Recipe, Any]:
        recording = open_recording(path)
        return recipe_for(recording), label(recording)

    for path, header in process_files(files, read_header, n_jobs):
        if isinstance(header, OtherLabelsError):
            notes.append((str(path), str(header)))
        elif isinstance(header, str):
            failures[str(path)] = header
        else:
            headers[path] = header
    _refuse_common(files, failures)
    if not headers:
        return Collected(pd.DataFrame(), failures, notes)
    recipe = Counter(one for one, _ in headers.values()).most_common(1)[0][0]

    def compute(path: Path) -> tuple[list[Rows], list[str]]:
        rows, notes = extract(open_recording(path), headers[path][1], recipe)
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
    _refuse_common(files, failures)
    if not merge:
        failures |= _duplicates(rows)
    order = {str(path): place for place, path in enumerate(files)}
    failures = dict(sorted(failures.items(), key=lambda item: order[item[0]]))
    return _table([one for path, one in rows if str(path) not in failures], recipe, failures, notes)


def _refuse_common(files: list[Path], failures: dict[str, str]) -> None:
    """Raise a failure that all files share."""
    reasons = {*failures.values()}
    if len(files) == len(failures) > 1 == len(reasons):
        raise ValueError(f"None of the {len(files)} files can be used. {reasons.pop()}")


def process_files(
    paths: Sequence[Path],
    work: Callable[[Path], Any],
    n_jobs: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[Path, Any]]:
    """Yield each file with what `work` returned, or with the text of what went wrong, in order."""
    from joblib import Parallel, delayed

    def attempt(path: Path) -> Any:
        try:
            return work(path)
        except OtherLabelsError as reason:
            return reason
        except Exception as reason:  # readers raise whatever the damage of a file leads to
            return str(reason).strip() or type(reason).__name__

    # Threads: reading, filters and spectra release the interpreter, and MNE is loaded once.
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
    """Keep readers from printing, in all threads."""
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


def _duplicates(rows: list[tuple[Path, Rows]]) -> dict[str, str]:
    """Files that share a task and class with another file, and why they are left out."""
    files: dict[tuple[str, str], dict[str, None]] = {}
    for path, one in rows:
        files.setdefault((one.segment.task, one.segment.label), {})[str(path)] = None
    return {
        path: f"Task {task!r}, label {name!r} is also in {', '.join(sorted({*several} - {path}))}. "
        "Leave one out, make them tasks of one group, or list both in a table of labels."
        for (task, name), several in files.items()
        if len(several) > 1
        for path in several
    }


def _table(
    rows: list[Rows], recipe: Recipe, failures: dict[str, str], notes: list[tuple[str, str]]
) -> Collected:
    """Table of all tasks, with their recipe."""
    import pandas as pd

    tasks: dict[str, list[Rows]] = {}
    for one in rows:
        tasks.setdefault(one.segment.task, []).append(one)
    labels = {one.segment.label for one in rows}
    whole = all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", label) for label in labels)
    plain: dict[str, Hashable] = {label: int(label) if whole else label for label in labels}
    with_group = any(one.segment.group is not None for one in rows)
    parts = []
    for task in list(tasks):
        own = tasks.pop(task)
        labels = {one.segment.label for one in own}
        if len({one.segment.group for one in own}) > 1:
            failures[f"Task {task}"] = "Its files are of different groups; a task has one."
            continue
        if len(labels) == 1:
            notes.append((f"Task {task}", f"has windows of one class only, {labels.pop()!r}"))
        values, counted = finish(np.concatenate([one.values for one in own]), recipe)
        part = pd.DataFrame(values, columns=list(recipe.feature_names))
        counts = [len(one.start) for one in own]
        part.insert(0, "start", np.concatenate([one.start for one in own]))
        if with_group:
            part.insert(0, "group", own[0].segment.group)
        part.insert(0, "label", np.repeat([plain[one.segment.label] for one in own], counts))
        part.insert(0, "task", task)
        parts.append(part[counted])
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return Collected(with_about(frame, recipe=recipe), failures, notes)

"""Labelled segments of a recording: by its file name, by its annotations or by a table.

Each of the three classes is called with an open recording and returns its segments. `classes` maps
the labels to keep to their names in the table of tasks; None keeps all labels as they are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crossfade.signals.recordings import Recording


class Segment(NamedTuple):
    """A part of a recording that has one label; times in seconds, infinity is its end."""

    task: str
    label: str
    group: str | None = None
    start: float = 0.0
    stop: float = np.inf


class UnselectedLabelsError(ValueError):
    """None of the labels of a recording is among the classes."""


class FilenameLabels:
    """One segment, the whole file; task, label and perhaps group are named groups of `pattern`.

    The pattern is searched in the name of the file, or else in its path. Without a group ``task``,
    the name of the file is the task.

    Examples
    --------
    >>> from crossfade.signals._labels import FilenameLabels
    >>> FilenameLabels(r"(?P<task>Subject\\d+)_(?P<label>\\d)").of_path("Subject07_2.edf")
    Segment(task='Subject07', label='2', group=None, start=0.0, stop=inf)
    """

    def __init__(self, pattern: str, classes: Mapping[str, str] | None = None) -> None:
        self.pattern = _compiled(pattern)
        if "label" not in self.pattern.groupindex:
            raise ValueError(
                f"The pattern {pattern!r} must name the label, as in "
                r"'(?P<task>Subject\d+)_(?P<label>\d)'."
            )
        self.classes = classes

    def of_path(self, path: str | os.PathLike[str]) -> Segment:
        """Segment of the file at a path."""
        task, group, found = _named(self.pattern, Path(path))
        if "label" not in found:
            raise ValueError(f"The pattern {self.pattern.pattern!r} finds no label in it.")
        return Segment(task, found["label"], group)

    def __call__(self, recording: Recording) -> list[Segment]:
        """Label the whole recording."""
        return _select([self.of_path(recording.path)], self.classes)


class AnnotationLabels:
    """One segment for each annotation; the task is a named group of `pattern`, or the file's name.

    An annotation without a duration lasts until the next one of these classes, or to the end.
    """

    def __init__(
        self, classes: Mapping[str, str] | None = None, pattern: str | None = None
    ) -> None:
        self.classes = classes
        self.pattern = None if pattern is None else _compiled(pattern)

    def __call__(self, recording: Recording) -> list[Segment]:
        """Segments in order of time."""
        task, group, _ = _named(self.pattern, recording.path)
        counted = [
            one for one in recording.annotations if self.classes is None or one.text in self.classes
        ]
        if not counted:
            there = ", ".join(sorted({one.text for one in recording.annotations})) or "none"
            raise ValueError(f"No annotation counts as a class; there are: {there}.")
        ends = [one.start for one in counted[1:]] + [np.inf]
        return _select(
            [
                Segment(
                    task,
                    one.text,
                    group,
                    one.start,
                    one.start + one.duration if one.duration > 0.0 else end,
                )
                for one, end in zip(counted, ends, strict=True)
            ],
            self.classes,
        )


class TableLabels:
    """Segments from a CSV file with the columns file, label and perhaps task, group, start, stop.

    A file is found by its name, or by its path from the folder of the table.
    """

    def __init__(
        self, path: str | os.PathLike[str], classes: Mapping[str, str] | None = None
    ) -> None:
        import pandas as pd

        self.path = Path(path)
        self.classes = classes
        text = dict.fromkeys(("file", "label", "task", "group"), str)
        try:
            # Text is text: a participant may be called NA.
            table = pd.read_csv(
                self.path,
                dtype=text,
                keep_default_na=False,
                na_values={"start": [""], "stop": [""]},
            )
        except (ValueError, OSError) as reason:
            raise ValueError(f"{path} cannot be read as a table of labels: {reason}.") from reason
        for column in ("file", "label"):
            if column not in table:
                raise ValueError(
                    f"{path} has no column {column!r}; its columns are {list(table.columns)[:10]}."
                )
            empty = (table[column] == "").to_numpy()
            if empty.any():
                row = int(empty.argmax()) + 2
                raise ValueError(f"{path}, row {row}, column {column!r}: is empty.")
        for column, filled in (("start", 0.0), ("stop", np.inf)):
            given = table[column] if column in table else pd.Series(filled, table.index)
            numbers = pd.to_numeric(given, errors="coerce")
            bad = (numbers.isna() & given.notna()).to_numpy()
            if bad.any():
                row = int(bad.argmax())
                raise ValueError(
                    f"{path}, row {row + 2}, column {column!r}: {given.iloc[row]!r} is no number "
                    "of seconds."
                )
            table[column] = numbers.fillna(filled)
        self.rows = table
        self._by_name = table.groupby("file", sort=False).indices
        self._by_path = {
            (self.path.parent / str(name)).resolve(): str(name) for name in self._by_name
        }

    def __call__(self, recording: Recording) -> list[Segment]:
        """Segments in the order of the table."""
        name = self._name_of(recording.path)
        if name is None:
            raise ValueError(f"{self.path} has no row for this file.")
        rows = self.rows.iloc[self._by_name[name]]
        return _select(
            [
                Segment(
                    _or_none(row.get("task")) or recording.path.stem,
                    row["label"],
                    _or_none(row.get("group")),
                    row["start"],
                    row["stop"],
                )
                for row in rows.to_dict("records")
            ],
            self.classes,
        )

    def unmatched(self, paths: Iterable[Path]) -> dict[str, str]:
        """Rows of the table that name none of the files, and what is wrong with them."""
        matched = {self._name_of(path) for path in paths}
        return {
            f"{self.path}, row {place + 2}": f"{name!r} is none of the files that were given."
            for place, name in enumerate(self.rows["file"])
            if name not in matched
        }

    def _name_of(self, path: Path) -> str | None:
        """What the table calls a file."""
        return self._by_path.get(path.resolve(), path.name if path.name in self._by_name else None)


def matched(paths: Sequence[Path], labels: FilenameLabels) -> None:
    """Refuse a pattern that matches none of the files."""
    if not any(_search(labels.pattern, path) for path in paths):
        raise ValueError(
            f"The pattern {labels.pattern.pattern!r} matches none of the {len(paths)} files; the "
            f"first is {paths[0].as_posix()!r}."
        )


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as reason:
        raise ValueError(f"The pattern {pattern!r} is no regular expression: {reason}.") from reason


def _named(pattern: re.Pattern[str] | None, path: Path) -> tuple[str, str | None, dict[str, str]]:
    """Task, group and all that the pattern names."""
    if pattern is None:
        return path.stem, None, {}
    match = _search(pattern, path)
    if match is None:
        raise ValueError(f"The pattern {pattern.pattern!r} does not match.")
    found = {name: text for name, text in match.groupdict().items() if text is not None}
    return found.get("task", path.stem), found.get("group"), found


def _search(pattern: re.Pattern[str], path: Path) -> re.Match[str] | None:
    return pattern.search(path.name) or pattern.search(path.as_posix())


def _select(segments: list[Segment], classes: Mapping[str, str] | None) -> list[Segment]:
    if classes is None:
        return segments
    counted = [one for one in segments if one.label in classes]
    if not counted:
        found = ", ".join(repr(label) for label in sorted({one.label for one in segments}))
        raise UnselectedLabelsError(f"left out, since {found} is none of the labels that count")
    return [one._replace(label=classes[one.label]) for one in counted]


def _or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None

"""Labelled segments of a recording: by its file name, by its annotations or by a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crossfade.signals.recordings import Recording

Classes = Mapping[str, str] | None


class Segment(NamedTuple):
    """A part of a recording that has one label; times in seconds, infinity is its end."""

    task: str
    label: str
    group: str | None = None
    start: float = 0.0
    stop: float = np.inf


Label = Callable[[Recording], list[Segment]]


class OtherLabelsError(ValueError):
    """A recording has labels, but none of the chosen classes."""


def label_from(
    source: str,
    *,
    pattern: str | None = None,
    table: Path | None = None,
    classes: Classes = None,
) -> Label:
    """Labels from the "filename", from "annotations" or from a table ("csv")."""
    try:
        compiled = re.compile(pattern or "")
    except re.error as reason:
        raise ValueError(
            f"--pattern {pattern!r} is not a regular expression: {reason}."
        ) from reason
    if source == "annotations":
        return _by_annotations(compiled, classes)
    if source == "filename" and "label" in compiled.groupindex:
        return _by_filename(compiled, classes)
    if source == "csv" and table is not None:
        return _by_table(table, classes)
    needed = {"filename": r"--pattern '(?P<task>p\d+)_(?P<label>\d)'", "csv": "--labels FILE"}
    raise ValueError(f"--label-from {source} needs {needed[source]}.")


def _by_filename(pattern: re.Pattern[str], classes: Classes) -> Label:
    """One segment for each file; `pattern` names its ``label``, and perhaps ``task``, ``group``."""

    def label(recording: Recording) -> list[Segment]:
        task, group, found = _named(pattern, recording.path)
        return _chosen([Segment(task, found, group)], classes)

    return label


def _by_annotations(pattern: re.Pattern[str], classes: Classes) -> Label:
    """One segment for each annotation, up to the next one if it has no duration."""

    def label(recording: Recording) -> list[Segment]:
        if not recording.annotations:
            raise ValueError(
                "It has no annotations. Take the labels from file names (--label-from filename) or "
                "from a table (--label-from csv)."
            )
        task, group, _ = _named(pattern, recording.path)
        every = recording.annotations
        kept = [one for one in every if classes is None or one.text in classes] or every
        ends = [
            one.start + one.duration if one.duration else later
            for one, later in zip(kept, [*(one.start for one in kept[1:]), np.inf], strict=True)
        ]
        segments = [
            Segment(task, one.text, group, one.start, end)
            for one, end in zip(kept, ends, strict=True)
        ]
        return _chosen(segments, classes)

    return label


def _by_table(path: Path, classes: Classes) -> Label:
    """Segments from a CSV file: file, label and perhaps task, group, start, stop."""
    import pandas as pd

    # Text is text: a participant may be called NA.
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    for column in ("file", "label"):
        if column not in table or not table[column].all():
            raise ValueError(f"{path} needs a column {column!r} without empty cells.")
    for column, default in (("start", 0.0), ("stop", np.inf)):
        given = table.get(column, pd.Series("", table.index)).replace("", str(default))
        table[column] = pd.to_numeric(given)
    paths = [(path.parent / name).resolve() for name in table["file"]]

    def label(recording: Recording) -> list[Segment]:
        where = recording.path
        mine = np.array([one == where.resolve() for one in paths], bool)
        if not mine.any():
            mine = (table["file"] == where.name).to_numpy()
        if not mine.any():
            raise ValueError(f"{path} has no row for it.")
        segments = [
            Segment(
                row.get("task") or where.stem,
                row["label"],
                row.get("group") or None,
                row["start"],
                row["stop"],
            )
            for row in table[mine].to_dict("records")
        ]
        return _chosen(segments, classes)

    return label


def _named(pattern: re.Pattern[str], path: Path) -> tuple[str, str | None, str]:
    """Task, group and label that a pattern names."""
    match = pattern.search(path.name) or pattern.search(path.as_posix())
    found = {} if match is None else match.groupdict()
    if match is None or not found.get("label", "none is asked for"):
        raise ValueError(f"The pattern {pattern.pattern!r} does not match its name.")
    return found.get("task") or path.stem, found.get("group"), found.get("label", "")


def _chosen(segments: list[Segment], classes: Classes) -> list[Segment]:
    """Segments of the chosen classes, by their new names."""
    if classes is None:
        return segments
    chosen = [one._replace(label=classes[one.label]) for one in segments if one.label in classes]
    if not chosen:
        found = ", ".join(sorted({one.label for one in segments}))
        raise OtherLabelsError(f"left out: none of the classes among its labels {found}")
    return chosen

"""Tables of labelled windows, as ``calibrate``, ``predict`` and ``prior check`` read them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crossfade.tasks import Task, TaskSet


def read_windows(path: Path) -> TaskSet:
    """Labelled windows; a table without a column `task` is one task, named after its file."""
    from crossfade.tasks import TaskSet
    from crossfade.tasks._table import read_frame, tasks_of

    frame = read_frame(path)
    if "task" not in frame:
        frame.insert(0, "task", path.stem)
    return TaskSet(tasks_of(frame, "drop", str(path), first_row_of(path)))


def first_row_of(path: Path) -> int:
    """Number of the first row: the second line of a CSV file."""
    from crossfade.tasks._table import suffix_of

    return 2 * (suffix_of(path) == ".csv")


def counts_of(task: Task) -> str:
    """How many windows of each class, in words."""
    import numpy as np

    labels = np.asarray(task.y).tolist()
    return ", ".join(f"{labels.count(name)} of {name!r}" for name in task.classes.tolist())

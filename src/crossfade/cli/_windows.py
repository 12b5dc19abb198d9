"""Tables of labelled windows, as ``calibrate``, ``predict`` and ``prior check`` read them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from crossfade.tasks import Task, TaskSet


def read_windows(path: Path) -> TaskSet:
    """Labelled windows; a table without a column `task` is one task, named after its file."""
    from crossfade.tasks import TaskSet
    from crossfade.tasks._table import read_frame, tasks_of

    frame = read_frame(path)
    if "task" not in frame:
        frame.insert(0, "task", path.stem)
    return TaskSet(tasks_of(frame, "drop", str(path), first_row_of(path)))


def read_person(path: Path) -> tuple[Task | None, pd.DataFrame | None]:
    """Labelled windows of one person, and features of those whose label is empty.

    Both are None where there are none. A table without a column `label` has no labelled window.
    """
    import numpy as np
    import pandas as pd

    from crossfade.tasks import TaskSet
    from crossfade.tasks._table import RESERVED, numbers_of, read_frame, tasks_of

    frame = read_frame(path)
    if "task" not in frame:
        frame.insert(0, "task", path.stem)
    names = frame["task"].unique()
    if len(names) > 1:
        raise ValueError(
            f"{path} has windows of {len(names)} tasks; a model is for one person. Give the "
            "windows of one."
        )
    if not len(frame):
        raise ValueError(f"{path} has no rows.")
    hidden = frame["label"].isna() if "label" in frame else pd.Series(True, index=frame.index)
    first = first_row_of(path)
    unlabelled = None
    if hidden.any():
        features = [name for name in frame.columns if name not in RESERVED]
        values = np.column_stack([numbers_of(frame, name, str(path), first) for name in features])
        whole = hidden.to_numpy() & ~np.isnan(values).any(1)
        unlabelled = pd.DataFrame(values[whole], columns=features) if whole.any() else None
    if hidden.all():
        return None, unlabelled
    [person] = TaskSet(tasks_of(frame[~hidden], "drop", str(path), first))
    return person, unlabelled


def first_row_of(path: Path) -> int:
    """Number of the first row: the second line of a CSV file."""
    from crossfade.tasks._table import suffix_of

    return 2 * (suffix_of(path) == ".csv")


def counts_of(task: Task) -> str:
    """How many windows of each class, in words."""
    import numpy as np

    labels = np.asarray(task.y).tolist()
    return ", ".join(f"{labels.count(name)} of {name!r}" for name in task.classes.tolist())

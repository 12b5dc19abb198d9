"""Tables of labelled windows, as ``calibrate``, ``predict`` and ``prior check`` read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from crossfade.tasks import Task, TaskSet


def read_windows(path: Path, mapping: Mapping[str, Any]) -> TaskSet:
    """Labelled windows; a table without a column `task` is one task, named after its file."""
    from crossfade.tasks import Columns, TaskSet, open_table, tasks_of

    columns = Columns(**mapping)
    table = open_table(path, columns)
    if columns.task == "task" and "task" not in table.frame:
        table.frame.insert(0, "task", path.stem)
    return TaskSet(tasks_of(table, "drop", columns))


def read_person(path: Path, mapping: Mapping[str, Any]) -> tuple[Task | None, pd.DataFrame | None]:
    """Labelled windows of one person, and features of those whose label is empty.

    Both are None where there are none. A table without a column `label` has no labelled window.
    """
    import numpy as np
    import pandas as pd

    from crossfade.tasks import Columns, numbers_of, open_table, recognised, split

    columns = Columns(**mapping)
    table = recognised(open_table(path, columns), columns, 2, needed=())
    frame = table.frame
    if "task" not in frame:
        frame.insert(0, "task", path.stem)
    names = frame["task"].unique()
    if len(names) > 1:
        raise ValueError(
            f"{table.where} has windows of {len(names)} tasks; a model is for one person. Give the "
            "windows of one."
        )
    hidden = frame["label"].isna() if "label" in frame else pd.Series(True, index=frame.index)
    unlabelled = None
    if hidden.any():
        features = list(table.features)
        values = np.column_stack([numbers_of(table, name) for name in features])
        whole = hidden.to_numpy() & ~np.isnan(values).any(1)
        if whole.any():
            unlabelled = pd.DataFrame(values[whole], columns=features)
            unlabelled.attrs = frame.attrs
    if hidden.all():
        return None, unlabelled
    [person] = split(table._replace(frame=frame[~hidden]))
    return person, unlabelled


def counts_of(task: Task, names: Mapping[Any, str]) -> str:
    """How many windows of each class, in words; `names` are what people call the classes."""
    import numpy as np

    labels = np.asarray(task.y).tolist()
    return ", ".join(
        f"{labels.count(name)} of {names.get(name, name)!r}" for name in task.classes.tolist()
    )

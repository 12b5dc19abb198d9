"""One person's windows, as ``calibrate`` and ``predict`` read them from a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    import pandas as pd

    from crossfade.crowd import TaskPrior
    from crossfade.tasks import Recipe, TaskSet


class Windows(NamedTuple):
    """Windows of a table: features in the order of the rule, labels, and the other columns."""

    X: pd.DataFrame
    labels: pd.Series[Any] | None
    others: pd.DataFrame


def read_windows(
    path: Path,
    label: str,
    names: Sequence[str] | None,
    classes: Sequence[Any] | None,
    recipe: Recipe | None,
) -> Windows:
    """Read windows; `names` are the features to take, by default all columns that can be one."""
    import pandas as pd

    from crossfade.tasks import (
        RESERVED,
        Columns,
        numbers_of,
        open_table,
        recipe_misfits,
        recipe_of,
    )

    table = open_table(path, Columns(label=label))
    frame = table.frame
    if names is None:
        names = [str(name) for name in frame if name not in (*RESERVED, label)]
    missing = [name for name in names if name not in frame]
    if missing:
        raise ValueError(f"{table.where} lacks the features {', '.join(missing)}.")
    wrong = recipe_misfits(recipe_of(frame, table.where), recipe)
    if wrong:
        raise ValueError(f"{table.where}: {' '.join(wrong)}")
    X = pd.DataFrame({name: numbers_of(table, name) for name in names}, frame.index)
    others = frame[[name for name in frame if name not in names]]
    labels = _as_classes(frame[label], classes) if label in frame else None
    return Windows(X, labels, others)


def read_person(path: Path, label: str, crowd: TaskPrior) -> Windows:
    """Windows of one person with all features of a prior."""
    windows = read_windows(path, label, crowd.feature_names, crowd.classes, crowd.recipe)
    if "task" in windows.others and windows.others["task"].nunique() > 1:
        raise ValueError(f"{path} has windows of several tasks. A model is for one person.")
    whole = windows.X.notna().all(axis=1)
    if not whole.all():
        click.echo(
            f"Note: {path}: {(~whole).sum()} windows lack a feature and are left out.", err=True
        )
    X, labels, others = windows
    return Windows(X[whole], None if labels is None else labels[whole], others[whole])


def read_sessions(path: Path, label: str, crowd: TaskPrior) -> TaskSet:
    """Labelled windows of earlier sessions of one person; a column `task` tells them apart."""
    from crossfade.tasks import TaskSet

    X, labels, others = read_windows(path, label, crowd.feature_names, crowd.classes, crowd.recipe)
    session = others.get("task", path.stem)
    return TaskSet.from_frame(X.assign(task=session, label=labels))


def _as_classes(labels: pd.Series[Any], classes: Sequence[Any] | None) -> pd.Series[Any]:
    """Labels as the classes they mean: a gap turns the whole numbers of a column into others."""
    import pandas as pd

    meant: dict[str, Any] = {}
    for one in classes or ():
        meant[str(one)] = one
        if isinstance(one, int):
            meant[f"{one}.0"] = one
    values = [None if one != one else meant.get(str(one), one) for one in labels.tolist()]
    return pd.Series(values, labels.index, dtype=object)

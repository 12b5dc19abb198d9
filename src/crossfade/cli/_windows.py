"""One person's windows, as ``calibrate`` reads them from a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pandas as pd

    from crossfade.crowd import TaskPrior
    from crossfade.tasks import TaskSet


def read_person(
    path: Path, label: str, crowd: TaskPrior
) -> tuple[pd.DataFrame, pd.Series[Any] | None]:
    """Windows of one person with all features of a prior, and their labels if there are any."""
    from crossfade.tasks import read_windows

    X, labels, others = read_windows(path, label, crowd.feature_names, crowd.classes, crowd.recipe)
    if "task" in others and others["task"].nunique() > 1:
        raise ValueError(f"{path} has windows of several tasks. A model is for one person.")
    whole = X.notna().all(axis=1)
    if not whole.all():
        click.echo(
            f"Note: {path}: {(~whole).sum()} windows lack a feature and are left out.", err=True
        )
    return X[whole], None if labels is None else labels[whole]


def read_sessions(path: Path, label: str, crowd: TaskPrior) -> TaskSet:
    """Labelled windows of earlier sessions of one person; a column `task` tells them apart."""
    from crossfade.tasks import TaskSet, read_windows

    X, labels, others = read_windows(path, label, crowd.feature_names, crowd.classes, crowd.recipe)
    session = others.get("task", path.stem)
    return TaskSet.from_frame(X.assign(task=session, label=labels))

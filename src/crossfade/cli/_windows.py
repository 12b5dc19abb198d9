"""One person's windows, as ``calibrate`` reads them from a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pandas as pd

    from crossfade.crowd import TaskPrior
    from crossfade.tasks import Task


def read_person(
    path: Path, label: str, crowd: TaskPrior
) -> tuple[pd.DataFrame, pd.Series[Any] | None]:
    """Windows of one person with all features of a prior, and their labels if there are any."""
    X, labels, others = _read(path, label, crowd)
    if "task" in others and others["task"].nunique() > 1:
        raise ValueError(f"{path} has windows of several tasks. A model is for one person.")
    return X, labels


def read_sessions(path: Path, label: str, crowd: TaskPrior) -> list[Task]:
    """Labelled windows of earlier sessions of one person; a column `task` tells them apart."""
    from crossfade.tasks import Task

    X, labels, others = _read(path, label, crowd)
    if labels is None:
        raise ValueError(f"{path} has no column {label!r}, and earlier windows need labels.")
    X, labels = X[labels.notna()], labels[labels.notna()]
    session = X.assign(session=others.get("task", path.stem))["session"]
    return [
        Task(X[session == name], labels[session == name].tolist(), str(name))
        for name in session.unique()
    ]


def _read(
    path: Path, label: str, crowd: TaskPrior
) -> tuple[pd.DataFrame, pd.Series[Any] | None, pd.DataFrame]:
    """Windows with all features of a prior; refuses labels of other classes."""
    from crossfade.tasks import read_windows

    X, labels, others = read_windows(
        path, label, crowd.feature_names, crowd.classes, crowd.class_names, crowd.recipe
    )
    strange = set() if labels is None else {*labels.dropna()} - {*(crowd.classes or labels)}
    if strange:
        raise ValueError(
            f"{path} has the label {strange.pop()!r}; the prior has {list(crowd.classes or ())}."
        )
    whole = X.notna().all(axis=1)
    if not whole.all():
        click.echo(
            f"Note: {path}: {(~whole).sum()} windows lack a feature and are left out.", err=True
        )
    return X[whole], None if labels is None else labels[whole], others[whole]

"""Tasks: the windows of one participant or session, with labels and names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._validate import check_finite

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Task:
    """One participant or session: windows, features and labels.

    Attributes
    ----------
    X : array-like of shape (n_samples, n_features)
        Features; a data frame's column names become `feature_names`.
    y : array-like of shape (n_samples,)
        Labels.
    name : str or None
        What to call the task.
    group : str or None
        Tasks of one group (sessions of one participant) are never sources for each other.
    feature_names : sequence of str or None
        Names of the columns of `X`.
    start : array-like of shape (n_samples,) or None
        When each window began, in seconds.

    Examples
    --------
    >>> from crossfade import Task
    >>> Task([[0.0, 1.0], [1.0, 0.0]], ["rest", "task"], name="p01")
    Task('p01', n_samples=2, n_features=2)
    """

    X: ArrayLike
    y: ArrayLike
    name: str | None = None
    group: str | None = None
    feature_names: Sequence[str] | None = None
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        names = self.feature_names
        if names is None and hasattr(self.X, "columns"):
            names = [str(column) for column in self.X.columns]
        called = f"task {self.name!r}" if self.name is not None else "a task"
        rows = check_finite(f"X of {called}", self.X, 2)
        labels = np.asarray(self.y)
        if rows.ndim != 2 or labels.shape != (rows.shape[0],):
            raise ValueError(
                f"{called} must have X of shape (n_samples, n_features) and one label per row; "
                f"got X of shape {rows.shape} and y of shape {labels.shape}."
            )
        if names is not None and len(names) != rows.shape[1]:
            raise ValueError(
                f"{called} has {rows.shape[1]} features but {len(names)} feature names."
            )
        if self.start is not None:
            start = check_finite(f"start of {called}", self.start, 1)
            if start.shape != labels.shape:
                raise ValueError(
                    f"{called} must have one start per row; got {start.shape} for {labels.shape}."
                )
            object.__setattr__(self, "start", start)
        object.__setattr__(self, "X", rows)
        object.__setattr__(self, "y", labels)
        object.__setattr__(self, "feature_names", None if names is None else tuple(names))

    def __repr__(self) -> str:
        n_samples, n_features = np.shape(self.X)
        name = "" if self.name is None else f"{self.name!r}, "
        return f"Task({name}n_samples={n_samples}, n_features={n_features})"

    @cached_property
    def classes(self) -> NDArray[np.generic]:
        """Sorted labels that occur."""
        return np.unique(np.asarray(self.y))


class TaskSet(Sequence[Task]):
    """Tasks with the same features, in order; slices are task sets again.

    Parameters
    ----------
    tasks : iterable of Task
        The tasks.

    Examples
    --------
    >>> from crossfade import Task, TaskSet
    >>> tasks = TaskSet([Task([[0.0], [1.0]], [0, 1], name=name) for name in "abc"])
    >>> tasks[1:]
    TaskSet(n_tasks=2, n_features=1)
    """

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._tasks = tuple(tasks)
        for task in self._tasks:
            if not isinstance(task, Task):
                raise TypeError(f"A TaskSet holds Task objects; got {type(task).__name__}.")
            first = self._tasks[0]
            if np.shape(task.X)[1] != np.shape(first.X)[1]:
                raise ValueError(
                    f"All tasks must have the same features; {task!r} differs from {first!r}."
                )
            if task.feature_names != first.feature_names:
                raise ValueError(
                    f"All tasks must have the same feature names; {task!r} has "
                    f"{task.feature_names}, {first!r} has {first.feature_names}."
                )

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> TaskSet: ...
    def __getitem__(self, index: int | slice) -> Task | TaskSet:
        """One task, or a task set for a slice."""
        if isinstance(index, slice):
            return TaskSet(self._tasks[index])
        return self._tasks[index]

    def __len__(self) -> int:
        """Number of tasks."""
        return len(self._tasks)

    def __iter__(self) -> Iterator[Task]:
        """Tasks in order."""
        return iter(self._tasks)

    def __repr__(self) -> str:
        n_features = np.shape(self._tasks[0].X)[1] if self._tasks else 0
        return f"TaskSet(n_tasks={len(self)}, n_features={n_features})"

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, *, missing: str = "drop") -> TaskSet:
        """Tasks of a table with one row for each window.

        Parameters
        ----------
        frame : DataFrame
            Columns `task`, `label`, optional `group` and `start`, then features.
        missing : {"drop", "error"}, default="drop"
            What to do with rows in which a feature is missing; dropping them is reported.

        Returns
        -------
        TaskSet
            The tasks, in the order in which they first appear.
        """
        from crossfade.tasks._table import tasks_of

        return cls(tasks_of(frame, missing))

    def to_frame(self) -> pd.DataFrame:
        """Table with one row for each window, as :meth:`from_frame` takes it."""
        from crossfade.tasks._table import frame_of

        return frame_of(self._tasks)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a CSV or Parquet file, whole or not at all.

        Parameters
        ----------
        path : str or path-like
            Where to; ends in ``.csv`` or ``.parquet``.
        """
        from crossfade.tasks._table import suffix_of, write_frame

        suffix_of(path)
        write_frame(path, self.to_frame())

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, if the tasks have them."""
        names = self._tasks[0].feature_names if self._tasks else None
        return None if names is None else tuple(names)


def read_tasks(path: str | os.PathLike[str], *, missing: str = "drop") -> TaskSet:
    """Read a table of tasks from a CSV or Parquet file.

    Parameters
    ----------
    path : str or path-like
        A file with columns `task`, `label`, optional `group` and `start`, then features.
    missing : {"drop", "error"}, default="drop"
        What to do with rows in which a feature is missing; dropping them is reported.

    Returns
    -------
    TaskSet
        The tasks, in the order in which they first appear.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crossfade import read_tasks
    >>> path = Path(tempfile.mkdtemp()) / "tasks.csv"
    >>> _ = path.write_text("task,label,Fz_theta\\np1,rest,0.4\\np1,math,0.6\\n")
    >>> read_tasks(path)
    TaskSet(n_tasks=1, n_features=1)
    """
    from crossfade.tasks._table import read_table

    return TaskSet(read_table(path, missing))

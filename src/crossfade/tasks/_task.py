"""Tasks: the windows of one participant or session, with labels and names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._validate import (
    as_labels,
    check_finite,
    check_names,
    check_type,
    classes_of,
    is_missing,
    refuse_masked,
    refuse_size,
)
from crossfade.tasks._recipe import Recipe

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
    recipe : Recipe or None
        How the features were made; None where that is not known.

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
    recipe: Recipe | None = None

    def __post_init__(self) -> None:
        names = self.feature_names
        if names is None and hasattr(self.X, "columns"):
            names = [str(column) for column in self.X.columns]
        called = f"task {self.name!r}" if self.name is not None else "a task"
        rows = check_finite(f"X of {called}", self.X, 2)
        refuse_masked(f"y of {called}", self.y)
        labels = as_labels(self.y)
        if rows.ndim != 2 or not rows.shape[1] or labels.shape != (rows.shape[0],):
            raise ValueError(
                f"{called} must have X of shape (n_samples, n_features) and one label per row; "
                f"got X of shape {rows.shape} and y of shape {labels.shape}."
            )
        if labels.dtype.kind in "fO" and any(map(is_missing, labels.tolist())):
            raise ValueError(f"y of {called} has missing labels. Leave these rows out.")
        refuse_size(np.abs(rows).max(0, initial=0.0), called)
        if self.start is not None:
            start = check_finite(f"start of {called}", self.start, 1)
            if start.shape != labels.shape:
                raise ValueError(f"{called} must have one start per row; got {start.shape}.")
            object.__setattr__(self, "start", start)
        if self.recipe is not None and not isinstance(self.recipe, Recipe):
            raise TypeError(f"recipe of {called} must be a Recipe; got {self.recipe!r:.40}.")
        object.__setattr__(self, "X", rows)
        object.__setattr__(self, "y", labels)
        object.__setattr__(self, "feature_names", check_names(names, rows.shape[1]))

    def __repr__(self) -> str:
        n_samples, n_features = np.shape(self.X)
        name = "" if self.name is None else f"{self.name!r}, "
        return f"Task({name}n_samples={n_samples}, n_features={n_features})"

    @cached_property
    def classes(self) -> NDArray[np.generic]:
        """Sorted labels that occur."""
        return classes_of(np.asarray(self.y))


class TaskSet(Sequence[Task]):
    """Tasks with the same features, in order; slices are task sets again.

    Parameters
    ----------
    tasks : iterable of Task
        The tasks.
    class_names : mapping of label to str, optional
        What people read instead of a label, as ``{0: "rest", 1: "arithmetic"}``. Labels stay
        as they are.

    Examples
    --------
    >>> from crossfade import Task, TaskSet
    >>> tasks = TaskSet([Task([[0.0], [1.0]], [0, 1], name=name) for name in "abc"])
    >>> tasks[1:]
    TaskSet(n_tasks=2, n_features=1)
    """

    def __init__(self, tasks: Iterable[Task], class_names: Mapping[Any, str] | None = None) -> None:
        check_type("tasks", tasks, Iterable, "a list of Task objects")
        self._tasks = tuple(tasks)
        self._class_names = check_class_names(class_names)
        for task in self._tasks:
            check_type("Each of tasks", task, Task, "a Task")
            first = self._tasks[0]
            mine, theirs = (
                one.feature_names or f"{np.shape(one.X)[1]} without names" for one in (task, first)
            )
            if mine != theirs:
                raise ValueError(
                    f"All tasks must have the same features: {task!r} has {mine}, and {first!r} "
                    f"has {theirs}."
                )
        known = [(task, task.recipe) for task in self._tasks if task.recipe is not None]
        for task, recipe in known:
            if recipe != known[0][1]:
                mine, theirs = f"windows of {task!r}", f"those of {known[0][0]!r}"
                wrong = recipe.difference(known[0][1], mine, theirs)
                raise ValueError(f"Features of all tasks must be made alike; {wrong}.")

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> TaskSet: ...
    def __getitem__(self, index: int | slice) -> Task | TaskSet:
        """One task, or a task set for a slice."""
        if isinstance(index, slice):
            return TaskSet(self._tasks[index], self._class_names)
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
    def from_frame(
        cls,
        frame: Any,
        *,
        task: str | Sequence[str] = "task",
        group: str = "group",
        label: str = "label",
        start: str = "start",
        drop: str | Sequence[str] = (),
        columns: str | Sequence[str] | None = None,
        missing: str = "drop",
    ) -> TaskSet:
        """Tasks of a table with one row for each window.

        Parameters
        ----------
        frame : pandas, polars or arrow table
            One row for each window.
        task, group, label, start : str
            Columns with the name of the participant or session, the person, the class, and when
            the window began, in seconds; `group` and `start` may be absent. `task` may be several
            columns, as ``["subject", "session"]``, which are joined by "/".
        drop : str or sequence of str, default=()
            Columns that are no features, by name or pattern, as ``"trial"``.
        columns : str, sequence of str or None, default=None
            Columns that are features, by name or pattern, as ``"F*"``; None is all others.
        missing : {"drop", "error"}, default="drop"
            What to do with rows in which a feature is missing; dropping them is reported.

        Returns
        -------
        TaskSet
            The tasks, in the order in which they first appear.

        Examples
        --------
        >>> import pandas as pd
        >>> from crossfade import TaskSet
        >>> frame = pd.DataFrame(
        ...     {
        ...         "subject": ["p1", "p1", "p2", "p2"],
        ...         "condition": ["rest", "math", "rest", "math"],
        ...         "Fz_theta": [0.41, 0.47, 0.38, 0.52],
        ...     }
        ... )
        >>> TaskSet.from_frame(frame, task="subject", label="condition")
        TaskSet(n_tasks=2, n_features=1)
        """
        from crossfade.tasks._columns import Columns, Table
        from crossfade.tasks._table import as_pandas, tasks_of

        mapping = Columns(task, label, group, start, drop, columns)
        table = Table(as_pandas(frame), "the table", 0)
        return cls(tasks_of(table, mapping, missing), names_of(table.frame))

    @classmethod
    def from_arrays(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
        drop: str | Sequence[str] = (),
        columns: str | Sequence[str] | None = None,
        missing: str = "drop",
    ) -> TaskSet:
        """Tasks of arrays as scikit-learn's cross-validators take them: one task for each group.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; a data frame's column names become `feature_names`.
        y : array-like of shape (n_samples,)
            Labels.
        groups : array-like of shape (n_samples,)
            The person of each row.
        feature_names : sequence of str or None, default=None
            Names of the features; without any they are x0, x1, ...
        drop : str or sequence of str, default=()
            Columns of `X` that are no features, by name or pattern.
        columns : str, sequence of str or None, default=None
            Columns of `X` that are features, by name or pattern; None is all others.
        missing : {"drop", "error"}, default="drop"
            What to do with rows in which a feature is missing (NaN, or masked).

        Returns
        -------
        TaskSet
            The tasks, in the order in which they first appear.

        Examples
        --------
        >>> from crossfade import TaskSet
        >>> TaskSet.from_arrays([[0.4], [0.6], [0.3], [0.5]], [0, 1, 0, 1], groups=[1, 1, 2, 2])
        TaskSet(n_tasks=2, n_features=1)
        """
        from crossfade.tasks._columns import Columns, Table
        from crossfade.tasks._table import frame_of_arrays, tasks_of

        table = Table(frame_of_arrays(X, y, groups, feature_names), "the table", 0)
        return cls(tasks_of(table, Columns(drop=drop, columns=columns), missing))

    def to_frame(self) -> pd.DataFrame:
        """Table with one row for each window, as :meth:`from_frame` takes it."""
        from crossfade.tasks._table import frame_of

        return frame_of(self._tasks, self._class_names)

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
    def class_names(self) -> Mapping[Any, str]:
        """Names of labels for people; a label without a name is its own."""
        return self._class_names

    @property
    def recipe(self) -> Recipe | None:
        """How the features were made; None where that is not known of every task."""
        return common_recipe([task.recipe for task in self._tasks])

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, if the tasks have them."""
        names = self._tasks[0].feature_names if self._tasks else None
        return None if names is None else tuple(names)


def read_tasks(
    path: str | os.PathLike[str],
    *,
    task: str | Sequence[str] = "task",
    group: str = "group",
    label: str = "label",
    start: str = "start",
    drop: str | Sequence[str] = (),
    columns: str | Sequence[str] | None = None,
    missing: str = "drop",
) -> TaskSet:
    """Read a table of tasks from a CSV or Parquet file, with one row for each window.

    What is certain to mislead is refused with its remedy: dates, an index, a counter, names that
    differ by white space. What may mislead is a :class:`~crossfade.exceptions.TableWarning`.

    Parameters
    ----------
    path : str or path-like
        A file; "-" is standard input.
    task, group, label, start : str
        Columns with the name of the participant or session, the person, the class, and when the
        window began, in seconds; `group` and `start` may be absent. `task` may be several columns,
        as ``["subject", "session"]``, which are joined by "/".
    drop : str or sequence of str, default=()
        Columns that are no features, by name or pattern, as ``"trial"``.
    columns : str, sequence of str or None, default=None
        Columns that are features, by name or pattern, as ``"F*"``; None is all others.
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
    >>> _ = path.write_text("subject,label,trial,Fz_theta\\np1,rest,1,0.4\\np1,math,2,0.6\\n")
    >>> read_tasks(path, task="subject", drop="trial")
    TaskSet(n_tasks=1, n_features=1)
    """
    from crossfade.tasks._columns import Columns
    from crossfade.tasks._table import open_table, tasks_of

    mapping = Columns(task, label, group, start, drop, columns)
    table = open_table(path, mapping)
    return TaskSet(tasks_of(table, mapping, missing), names_of(table.frame))


def common_recipe(recipes: Sequence[Recipe | None]) -> Recipe | None:
    """The recipe that all share, or None if one is unknown."""
    first = recipes[0] if recipes else None
    return first if all(one == first for one in recipes) else None


def check_class_names(names: Mapping[Any, str] | None) -> Mapping[Any, str]:
    """Names of classes that cannot be changed; each must be text of its own."""
    known = {
        label.item() if isinstance(label, np.generic) else label: name
        for label, name in (names or {}).items()
    }
    is_text = all(str(name).strip() and str(name) == name for name in known.values())
    if not is_text or len(set(known.values())) < len(known):
        raise ValueError(
            "class_names must be different texts, one for each label, such as {0: 'rest', 1: "
            f"'task'}}; got {known}."
        )
    return MappingProxyType(known)


def names_of(frame: pd.DataFrame) -> Mapping[Any, str]:
    """Names of classes that a table carries."""
    return check_class_names(dict(frame.attrs.get("class_names", ())))

"""Rows of a table that are looked at together: those of a task, of a class, or all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Numbers = NDArray[np.float64]
Places = NDArray[np.intp]
Flags = NDArray[np.bool_]

#: Rows that are tried before all others; tasks, and windows of each, in a sample of the table.
TRIED, _TASKS, _WINDOWS = 4096, 100, 1000


@dataclass(frozen=True)
class Windows:
    """Rows of a table, those of a task together.

    Attributes
    ----------
    place : array of shape (n_rows,)
        Which row of the table each is.
    task, label : arrays of shape (n_rows,)
        Numbers of task and class; a missing label is -1.
    """

    place: Places
    task: Places
    label: Places

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Windows:
        """Rows that belong to a task, in the order of the table."""
        import pandas as pd

        none = np.full(len(frame), -1)
        task = pd.factorize(frame["task"])[0] if "task" in frame else none + 1
        label = pd.factorize(frame["label"])[0] if "label" in frame else none
        place = np.argsort(task, kind="stable")
        place = place[np.searchsorted(task[place], 0) :]
        return cls(place, task[place], label[place])

    def in_time(self, start: Numbers | None) -> Windows:
        """The same rows by their start, if every window of a task has its own.

        Recordings of a task that all begin at 0 do not; they follow each other in the table.
        """
        if start is None:
            return self
        at = start[self.place]
        order = np.lexsort((at, self.task))
        ties = (np.diff(at[order]) == 0.0) & (np.diff(self.task) == 0)
        return self if ties.any() else self.take(order)

    def __len__(self) -> int:
        return self.place.size

    def take(self, which: Any) -> Windows:
        """Some of the rows."""
        return Windows(self.place[which], self.task[which], self.label[which])

    @cached_property
    def first(self) -> Places:
        """First row of each task."""
        return starts_of(self.task)[: len(self)]

    @cached_property
    def size(self) -> Places:
        """Number of rows of each task."""
        return np.diff(np.append(self.first, len(self)))

    @cached_property
    def number(self) -> Places:
        """Task of each row, numbered without gaps."""
        return np.repeat(np.arange(self.first.size), self.size)

    @cached_property
    def head(self) -> Windows:
        """First rows."""
        return self.take(slice(TRIED)) if len(self) > TRIED else self

    @cached_property
    def sample(self) -> Windows:
        """Some rows of some tasks."""
        if len(self) <= _TASKS * _WINDOWS:
            return self
        rng = np.random.default_rng(0)
        tasks = np.linspace(0, self.first.size - 1, min(_TASKS, self.first.size)).astype(int)
        rows = (rng.integers(self.size[task], size=_WINDOWS) for task in tasks)
        return self.take(np.unique(np.concatenate([*map(np.add, self.first[tasks], rows)])))

    @cached_property
    def labelled(self) -> Windows:
        """Rows with a label, of tasks with two classes or more."""
        known = self if (self.label >= 0).all() else self.take(self.label >= 0)
        low, high = (end.reduceat(known.label, known.first) for end in (np.minimum, np.maximum))
        return known if (low < high).all() else known.take((low < high)[known.number])

    @cached_property
    def class_order(self) -> Places:
        """Order of the rows by task, then by class."""
        return np.lexsort((self.label, self.task))

    @cached_property
    def classes(self) -> Windows:
        """The same rows in `class_order`, each class of a task as a task of its own."""
        rows = self.take(self.class_order)
        changes = (np.diff(rows.task) != 0) | (np.diff(rows.label) != 0)
        return Windows(rows.place, np.cumsum(np.append(0, changes)), rows.label)

    @cached_property
    def table(self) -> Windows:
        """The same rows as one task, in the order of the table."""
        rows = self.take(np.argsort(self.place))
        return Windows(rows.place, np.zeros_like(rows.task), rows.label)


def starts_of(numbers: Places) -> Places:
    """Where numbers change, and 0."""
    return np.append(0, np.flatnonzero(np.diff(numbers)) + 1)


def numbers_of(column: pd.Series[Any]) -> Numbers | None:
    """Column as floats, NaN where it is missing or infinite; None if it does not hold numbers."""
    import pandas as pd

    if column.dtype.kind not in "iufb":
        if column.dtype.kind in "Mmc" or isinstance(column.dtype, pd.PeriodDtype):
            return None
        try:
            numbers = pd.to_numeric(column, errors="coerce")
        except OverflowError:
            # Whole numbers that no double can hold.
            return None
        if (numbers.isna() & column.notna()).any() or numbers.dtype.kind not in "iufb":
            return None
        column = numbers
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    infinite = np.isinf(values)
    return np.where(infinite, np.nan, values) if infinite.any() else values

"""Which column of a table is what: task, label, group, start, or a feature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

#: Columns that are not features, and what they hold.
_MEANS = {
    "task": "participant or session",
    "label": "class of each window",
    "group": "person",
    "start": "start of each window in seconds",
}
RESERVED = tuple(_MEANS)


class Table(NamedTuple):
    """A table with one row for each window."""

    frame: pd.DataFrame
    where: str  # what to call it in messages
    first_row: int  # what to call its first row
    features: tuple[str, ...] = ()
    called: Mapping[str, str] = MappingProxyType({})  # the user's names for our columns


@dataclass(frozen=True)
class Columns:
    """Names of columns, as a lab has them."""

    task: str | Sequence[str] = "task"
    label: str = "label"
    group: str = "group"
    start: str = "start"
    drop: str | Sequence[str] = ()
    columns: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        for kind in (*RESERVED, "drop", "columns"):
            given = getattr(self, kind)
            many = isinstance(given, Sequence) and not isinstance(given, str)
            # Columns of a frame may have whole numbers for names.
            names = [_name_of(one) for one in (given if many else [given])]
            unset = kind == "columns" and given is None
            if not unset and not all(isinstance(one, str) for one in names):
                raise TypeError(f"{kind} must be the name of a column; got {given!r}.")
            object.__setattr__(self, kind, names if many else names[0])

    @property
    def text(self) -> tuple[str, ...]:
        """Columns that are read as text."""
        return (*_listed(self.task), self.label, self.group)

    @property
    def named(self) -> frozenset[str]:
        """Features chosen by name and not by a pattern."""
        return frozenset(_listed(self.columns or ()))

    def of(self, table: Table) -> Table:
        """The table with our names for its columns, features last."""
        where = table.where
        frame = table.frame.set_axis([str(name) for name in table.frame.columns], axis=1)
        names = list(frame.columns)
        refuse_twice(names, where)
        if not len(frame):
            raise ValueError(f"{where} has no rows.")
        found = {}
        for kind in RESERVED:
            given = _listed(getattr(self, kind))
            absent = [name for name in given if name not in names]
            if not absent:
                found[kind] = given
            elif kind in ("task", "label") or given != (kind,):
                commas = " Separate columns by commas." if len(names) == 1 else ""
                raise ValueError(
                    f"{where} has no column {absent[0]!r}; its columns are {_some(names)}."
                    f"{commas} Name the column of the {_MEANS[kind]} with --{kind} NAME "
                    f"({kind}='NAME')."
                )
        taken = {name for given in found.values() for name in given}
        features = self._features([name for name in names if name not in taken], where, names)
        clash = [name for name in features if name in RESERVED]
        if clash:
            raise ValueError(
                f"{where}: a feature must not be called {clash[0]!r}. Rename it, or leave it out "
                f"with --drop {clash[0]} (drop=[{clash[0]!r}])."
            )
        made = frame[features].copy(deep=False)
        for kind, given in reversed(found.items()):
            made.insert(0, kind, _joined(frame, given))
        called = {kind: "/".join(given) for kind, given in found.items()}
        return table._replace(frame=made, features=tuple(features), called=called)

    def _features(self, others: list[str], where: str, names: list[str]) -> list[str]:
        dropped = _matching(self.drop, names, "--drop", where)
        kept = [name for name in others if name not in dropped]
        if self.columns is not None:
            wanted = _matching(self.columns, kept, "--columns", where)
            kept = [name for name in kept if name in wanted]
        if not kept:
            raise ValueError(f"{where} has no feature: every column but {RESERVED} is one.")
        return kept


def refuse_twice(names: Sequence[str], where: str) -> None:
    """Refuse a table that has a column twice."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{where} has the column {twice[0]!r} twice. Rename or remove one.")


def as_numbers(column: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """Column as floats, NaN where it is missing or infinite; None if it does not hold numbers."""
    import pandas as pd

    if column.dtype.kind in "Mmc" or isinstance(column.dtype, pd.PeriodDtype):
        return None
    try:
        numbers = pd.to_numeric(column, errors="coerce")
        values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    except (OverflowError, TypeError, ValueError):
        return None
    if (np.isnan(values) & column.notna().to_numpy()).any():
        return None
    return np.where(np.isinf(values), np.nan, values)


def _listed(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _name_of(name: Any) -> Any:
    """Text of a name that is a whole number."""
    whole = isinstance(name, (int, np.integer)) and not isinstance(name, bool)
    return str(name) if whole else name


def _joined(frame: pd.DataFrame, given: tuple[str, ...]) -> Any:
    """One column, or several as text with "/" between; empty where one of them is."""
    if len(given) == 1:
        return frame[given[0]]
    joined = frame[given[0]].astype(str)
    for name in given[1:]:
        joined = joined + "/" + frame[name].astype(str)
    return joined.where(frame[list(given)].notna().all(axis=1), None)


def _matching(given: str | Sequence[str], names: list[str], option: str, where: str) -> set[str]:
    """Names that are given or match a pattern; refuses what matches none."""
    found = set()
    for one in _listed(given):
        mine = {one} if one in names else {name for name in names if fnmatchcase(name, one)}
        if not mine:
            raise ValueError(
                f"{where} has no column {one!r}, which {option} names; its columns are "
                f"{_some(names)}."
            )
        found |= mine
    return found


def _some(names: Sequence[str]) -> str:
    return f"{list(names[:10])}{' and more' if len(names) > 10 else ''}"

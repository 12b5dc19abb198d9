"""Which column of a table is what: task, label, group, start, features, or none of these."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crossfade.tasks._windows import numbers_of

if TYPE_CHECKING:
    import pandas as pd

#: Columns that are not features.
RESERVED = ("task", "label", "group", "start")
#: Attribute of a frame whose table says how long windows are, in seconds.
WINDOW = "window_seconds"
_END = re.compile(r"(window|win)?[ _.-]?(end|stop)[ _.-]?(time)?[ _.-]?(s|sec|secs|seconds)?", re.I)
_LENGTH = re.compile(r"(window|win)?[ _.-]?duration[ _.-]?(s|sec|secs|seconds)?", re.I)


class Table(NamedTuple):
    """A table with one row for each window."""

    frame: pd.DataFrame
    where: str  # what to call it in messages
    first_row: int  # what to call its first row
    features: tuple[str, ...] = ()
    called: Mapping[str, str] = MappingProxyType({})  # what the user calls our columns


@dataclass(frozen=True)
class Columns:
    """Names of columns, as a lab has them.

    Attributes
    ----------
    task, label, group, start : str
        Columns with the name of the participant or session, the class of the window, the person,
        and when the window began. `task` may be several columns, which are joined by "/".
    drop : str or sequence of str
        Columns that are no features, by name or pattern.
    columns : str, sequence of str or None
        Columns that are features, by name or pattern; None is all others.
    """

    task: str | Sequence[str] = "task"
    label: str = "label"
    group: str = "group"
    start: str = "start"
    drop: str | Sequence[str] = ()
    columns: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        # Columns of a frame may have numbers for names, and are called by them.
        for kind in (*RESERVED, "drop", "columns"):
            given = getattr(self, kind)
            if isinstance(given, Sequence) and not isinstance(given, str):
                object.__setattr__(self, kind, [_called(one) for one in given])
            else:
                object.__setattr__(self, kind, _called(given))

    @property
    def text(self) -> tuple[str, ...]:
        """Columns that are text, whatever stands there."""
        return (*_listed(self.task), self.label, self.group)

    @property
    def named(self) -> frozenset[str]:
        """Features that were chosen by name, and not by a pattern."""
        return frozenset(_listed(self.columns or ()))

    def of(self, table: Table, needed: Sequence[str] = ("task", "label")) -> Table:
        """The table with our names for its columns, features last."""
        self._check()
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
            elif kind in needed or given != (kind,):
                raise ValueError(_absent(where, absent[0], kind, frame))
        taken = {name for given in found.values() for name in given}
        features = self._features([name for name in names if name not in taken], where, names)
        clash = next((name for name in features if name in RESERVED), None)
        if clash is not None:
            raise ValueError(
                f"{where}: column {clash!r} would be a feature, and a feature must not be called "
                f"so. Leave it out with --drop {clash} (drop=[{clash!r}]), or rename it."
            )
        made = frame[features].copy(deep=False)
        for kind, given in reversed(found.items()):
            made.insert(0, kind, _joined(frame, given))
        length = _window_of(frame, found["start"][0]) if "start" in found else None
        if length is not None:
            made.attrs[WINDOW] = length
        called = {kind: "/".join(given) for kind, given in found.items()}
        return table._replace(frame=made, features=tuple(features), called=called)

    def _check(self) -> None:
        """Refuse what is no name of a column."""
        for kind in (*RESERVED, "drop", "columns"):
            given = getattr(self, kind)
            if kind == "columns" and given is None:
                continue
            listed = (given,) if isinstance(given, str) else given
            several = kind in ("task", "drop", "columns")
            if not (isinstance(listed, Sequence) and all(isinstance(one, str) for one in listed)):
                also = ", or a list of them" if several else ""
                raise TypeError(f"{kind} must be the name of a column{also}; got {given!r}.")

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
    if len(set(names)) != len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise ValueError(f"{where} has the column {twice!r} twice. Rename or remove one.")


def _listed(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _called(name: Any) -> Any:
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


def _window_of(frame: pd.DataFrame, start: str) -> float | None:
    """Length of the windows in seconds, if a column tells where they end, or how long they are."""
    begin = numbers_of(frame[start])
    for name in frame.columns:
        is_end = _END.fullmatch(name) is not None
        values = numbers_of(frame[name]) if is_end or _LENGTH.fullmatch(name) else None
        if begin is None or values is None:
            continue
        length = values - begin if is_end else values
        usual = float(np.median(length))
        # Numbers that differ are something else: the end of a block, or how long a blink took.
        if usual > 0.0 and (np.abs(length - usual) <= 0.01 * usual).all():
            return usual
    return None


def _matching(given: str | Sequence[str], names: list[str], option: str, where: str) -> set[str]:
    """Names that are given, or match a pattern that is; refuses what matches none."""
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


def _absent(where: str, name: str, kind: str, frame: pd.DataFrame) -> str:
    """What to say where a column is missing, and what may be meant."""
    names = list(frame.columns)
    if kind in frame.index.names or name in frame.index.names:
        return f"{where} has {name!r} in its index and not as a column. Pass frame.reset_index()."
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        return (
            f"{where} has one column, {names[0][:60]!r}: it seems to be separated by something "
            "other than commas. Save it with commas."
        )
    like = [one for one in names if one.strip().lower() == name.strip().lower()]
    meant = f" Do you mean {like[0]!r}?" if like else ""
    return (
        f"{where} has no column {name!r}; its columns are {_some(names)}.{meant} Name the column "
        f"that has the {_MEANS[kind]} with --{kind} NAME ({kind}='NAME')."
    )


_MEANS = {
    "task": "participant or session",
    "label": "class of each window",
    "group": "person",
    "start": "start of each window in seconds",
}


def _some(names: Sequence[str]) -> str:
    return f"{list(names[:10])}{' and more' if len(names) > 10 else ''}"

"""Checks of a table of tasks: columns that are not features, equal names, equal rows.

A trial counter that stays in a table becomes a feature, and a study with it looks splendid. Obvious
non-features are refused unless the user lists the column; the rest is a warning. In a few rows
nothing is certain: a pattern counts only where coin tosses would hardly make it in any column of
the table. ``docs/tables.md`` lists what is found.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array, Places
from crossfade.tasks._columns import as_numbers

if TYPE_CHECKING:
    import pandas as pd

#: Patterns less probable than this, in any column of the table, are not coincidences.
_LEVEL = 1e-3
#: Rows in which columns are compared first.
_TRIED = 1000

_NO_NAME = re.compile(r"|unnamed: \d+(_level_\d+)?|__index_level_\d+__|\.{2,3}\d+")
_COUNTER_NAME = re.compile(
    r"(trial|window|win|epoch|segment|row|line|sample|frame|index|idx|counter|sequence)s?"
    r"([ _.-]?(id|idx|index|no|nr|num|number|count|counter))?"
)
_TIME_NAME = re.compile(
    r"(t|times?|time[ _.-]?stamps?|clock|stop|end|onset|elapsed|"
    r"(start|stop|end|onset|elapsed|window|unix)[ _.-]?time)"
    r"([ _.-]?[(\[]?(s|ms|us|ns|secs?|seconds|msec|min|minutes|samples?)[)\]]?)?"
)
_HOUR = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[ap]\.?m\.?)?( ?(z|utc|gmt|[+-]\d{2}:?\d{2}))?"
_DAY = (
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})"
    r"|\d{1,2}\.?[ -][a-z]{3,9}\.?[ -]\d{2,4}|[a-z]{3,9}\.? \d{1,2},? \d{4})"
)
_DATE = re.compile(rf"\s*({_DAY}([t ,_]+{_HOUR})?|{_HOUR}|\d{{8}}t\d{{4,6}}z?)\s*", re.I)


class Finding(NamedTuple):
    """One thing in a table that would mislead."""

    text: str  # what was found, and what to do about it
    refused: bool  # whether it is certain


def check_frame(
    frame: pd.DataFrame, features: Sequence[str], named: Collection[str] = ()
) -> list[Finding]:
    """Findings of a table, refused ones first; features chosen by name (`named`) are kept."""
    rows = _Rows.of(frame)
    strays: dict[str, _Stray] = {}
    numbers: dict[str, Array] = {}
    for name in features:
        values = as_numbers(frame[name])
        stray = _dates(frame[name]) if values is None else None
        if values is not None:
            stray = _stray(name.strip().lower(), values, rows, len(features))
            if stray is None:
                numbers[name] = values
        if stray is not None:
            strays[name] = stray
    findings = [
        *_alike_columns(features, named),
        *_alike_names(frame),
        *_stray_columns(strays, named),
        *_duplicates(numbers),
        *_shared_windows(frame, numbers, rows),
        *_overlap(frame),
    ]
    return sorted(findings, key=lambda finding: not finding.refused)


class _Rows(NamedTuple):
    """Rows of a table, those of a task together and in the order of time."""

    place: Places  # which row of the table each is
    task: Places  # number of its task
    label: Places  # number of its class; -1 where it is missing

    @classmethod
    def of(cls, frame: pd.DataFrame) -> _Rows:
        """Rows that belong to a task, in the order of their starts where these differ."""
        import pandas as pd

        n_rows = len(frame)
        task = pd.factorize(frame["task"])[0] if "task" in frame else np.zeros(n_rows, np.intp)
        label = pd.factorize(frame["label"])[0] if "label" in frame else np.full(n_rows, -1)
        start = as_numbers(frame["start"]) if "start" in frame else None
        place = np.argsort(task, kind="stable")
        if start is not None and not np.isnan(start).any():
            in_time = np.lexsort((start, task))
            # Recordings of one task that all begin at 0 follow each other in the table.
            if not ((np.diff(start[in_time]) == 0.0) & (np.diff(task[in_time]) == 0)).any():
                place = in_time
        place = place[task[place] >= 0]
        return cls(place, task[place], label[place])

    def take(self, which: Any) -> _Rows:
        """Some of the rows, or all in another order."""
        return _Rows(self.place[which], self.task[which], self.label[which])

    @property
    def first(self) -> Places:
        """First row of each task."""
        return np.flatnonzero(np.append(True, np.diff(self.task) != 0)[: self.task.size])

    def by_class(self) -> _Rows:
        """The same rows with each class of a task as a task of its own."""
        rows = self.take(np.lexsort((self.label, self.task)))
        return rows._replace(task=rows.task * (int(self.label.max(initial=0)) + 2) + rows.label)


# -- columns that are not features -----------------------------------------------------------------


class _Stray(NamedTuple):
    """Description of a column that is not a feature."""

    text: str
    refused: bool = False
    is_number: bool = True  # so that it can be kept as a feature


_DATES = _Stray("dates or times of day", True)
_INDEX = _Stray("an index of the rows", True)
_COUNTER = _Stray("a counter of the windows or rows", True)
_TIME = _Stray("the time of the windows", True)
_CLOCK = _Stray("only rises, or only falls, with time in every task")
_CONSTANT = _Stray("the same value in every row")
_PER_TASK = _Stray("one value in each task, which tells people apart and not classes")
_LABEL = _Stray("a copy of the label")
_EMPTY = _Stray("empty in every row", True, is_number=False)


def _dates(column: pd.Series[Any]) -> _Stray | None:
    """Dates, times and durations, as such or as text."""
    import pandas as pd

    some = column.dropna().iloc[:_TRIED]
    kind = pd.api.types.infer_dtype(some, skipna=True)
    if kind.startswith("timedelta"):
        return _Stray("durations; turn them into seconds with .dt.total_seconds()", True)
    is_date = kind.startswith(("date", "time", "period"))
    if is_date or all(_DATE.fullmatch(text) for text in some.astype(str).unique()):
        return _DATES._replace(is_number=False)
    return None


def _stray(name: str, values: Array, rows: _Rows, n_columns: int) -> _Stray | None:
    """Description of a column of numbers that is not a feature."""
    present = np.isfinite(values[rows.place])
    if not present.all():
        rows = rows.take(present)
    x = values[rows.place]
    if not x.size:
        return _EMPTY if len(values) else None
    if _NO_NAME.fullmatch(name) and _are_whole(x):
        return _INDEX
    if _since_1970(x):
        return _DATES
    return _constant(x, rows) or _counter(name, x, rows, n_columns) or _copy(x, rows)


def _are_whole(x: Array) -> bool:
    return bool((x == np.round(x)).all())


def _since_1970(x: Array) -> bool:
    """Whether numbers are times since 1970, or days such as 20260131."""
    low, high = float(x.min()), float(x.max())
    if low == high and not _are_whole(x):
        return False
    # Raw counts of a sensor may be as large, but differ more.
    if any(
        1e9 * unit <= low and high <= min(2.2e9 * unit, 1.5 * low) for unit in (1, 1e3, 1e6, 1e9)
    ):
        return True
    if not 19_000_101 <= low <= high <= 21_001_231 or not _are_whole(x):
        return False
    month, day = x // 100 % 100, x % 100
    return bool(((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())


def _constant(x: Array, rows: _Rows) -> _Stray | None:
    """The same value everywhere, or in each task."""
    changes = np.diff(x) != 0.0
    first = rows.first
    if (changes & (np.diff(rows.task) == 0)).any():
        return None
    # Rare events may not happen in a few windows; slow features may not change in short tasks.
    if not changes.any():
        return _CONSTANT if x.size - first.size >= 10 else None
    return _PER_TASK if first.size >= 5 and x.size >= 10 * first.size else None


def _counter(name: str, x: Array, rows: _Rows, n_columns: int) -> _Stray | None:
    """Numbers that go on by equal steps, over and over, or in one direction only."""
    head = slice(_TRIED)
    if x.size > 10 * _TRIED and _counter(name, x[head], rows.take(head), n_columns) is None:
        return None
    called = _COUNTER_NAME.fullmatch(name) or _TIME_NAME.fullmatch(name)
    # How many coins would have to fall alike to be no coincidence.
    needed = 2.0 if called else float(np.log2(n_columns / _LEVEL))
    is_counter = _are_whole(x) and not _TIME_NAME.fullmatch(name)
    by_class = np.lexsort((rows.label, rows.task))
    views = ((rows, x), (rows.by_class(), x[by_class]))
    if any(_has_equal_steps(values, some, needed) for some, values in views):
        return _COUNTER if is_counter else _TIME
    inside = np.diff(rows.task) == 0
    step = np.diff(x)[inside]
    enough = called or rows.first.size > 2 or step.size >= 60
    if enough and _n_telling(rows, inside) >= needed and (abs(np.sign(step).sum()) == step.size):
        return _CLOCK._replace(refused=bool(called))
    return None


def _has_equal_steps(x: Array, rows: _Rows, needed: float) -> bool:
    """Whether all steps are equal, but for new beginnings at the same number."""
    inside = np.diff(rows.task) == 0
    step = np.diff(x)[inside]
    usual = float(np.median(step)) if step.size else 0.0
    if usual == 0.0:
        return False
    equal = np.abs(step - usual) <= 1e-6 * abs(usual) + 1e-15 * np.abs(x).max()
    if equal.all():
        return _n_telling(rows, inside) >= needed / 1.5
    begin = x[rows.first]
    again = (begin == begin[0]).all() and (x[1:][inside][~equal] == begin[0]).all()
    return bool(again and equal.sum() >= max(needed, step.size * 2 / 3))


def _n_telling(rows: _Rows, inside: NDArray[np.bool_]) -> int:
    """Number of steps that a feature would not make anyway, such as up and back again."""
    change = np.sign(np.diff(rows.label)[inside])
    back, same, there = np.bincount(change + 1, minlength=3)
    return int(same + min(back, there))


def _copy(x: Array, rows: _Rows) -> _Stray | None:
    """One value for each class."""
    n_classes = int(rows.label.max(initial=-1)) + 1
    if np.unique(x[:_TRIED]).size > n_classes:
        return None
    values, code = np.unique(x, return_inverse=True)
    pairs = np.unique(np.stack([code, rows.label]), axis=1).shape[1]
    if x.size >= 20 and values.size == n_classes == pairs > 1:
        return _LABEL
    return None


def _stray_columns(strays: Mapping[str, _Stray], named: Collection[str]) -> Iterator[Finding]:
    """One finding for all columns that are the same."""
    alike: dict[tuple[_Stray, bool], list[str]] = {}
    for name, stray in strays.items():
        alike.setdefault((stray, name in named and stray.is_number), []).append(name)
    for (stray, chosen), names in alike.items():
        refused = stray.refused and not chosen
        keep = ", or name it in --columns to keep it" if refused and stray.is_number else ""
        text = f"Column{'s' * (len(names) > 1)} {listed(names)}: {stray.text}."
        remedy = f"Leave it out with {_drop(names)}{keep}."
        yield Finding(f"{text} {remedy}", refused)


def _drop(names: Sequence[str]) -> str:
    """How to leave columns out, at the command line and in Python."""
    return f"--drop {shlex.quote(','.join(names))} (drop={list(names)!r})"


def listed(names: Sequence[str], show: Callable[[str], str] = repr, most: int = 5) -> str:
    """Names one after another, with "and" before the last."""
    shown = [show(name) for name in names[:most]]
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


# -- names -----------------------------------------------------------------------------------------


def _plain(name: str) -> str:
    """Name as it looks: accents in one way, nothing invisible, white space between digits only."""
    name = unicodedata.normalize("NFC", name)
    visible = (one for one in name if unicodedata.category(one) != "Cf")
    return re.sub(r"(?<!\d) | (?!\d)", "", " ".join("".join(visible).split()))


def _nearly_alike(names: Iterable[str]) -> Iterator[tuple[bool, list[str]]]:
    """Whether names differ by white space only, not by case, and these names."""
    by_space: dict[str, list[str]] = {}
    by_case: dict[str, list[str]] = {}
    for name in names:
        by_space.setdefault(_plain(name), []).append(name)
    for plain, alike in by_space.items():
        by_case.setdefault(plain.casefold(), []).append(alike[0])
    for is_space, found in ((True, by_space), (False, by_case)):
        yield from ((is_space, alike) for alike in found.values() if len(alike) > 1)


def _alike_columns(features: Sequence[str], named: Collection[str]) -> Iterator[Finding]:
    """Features that are called like each other, or like a column that is not a feature."""
    for is_space, alike in _nearly_alike(["task", "label", "group", "start", *features]):
        how = "white space" if is_space else "case"
        text = f"Columns {listed(alike, ascii)} differ only by {how}."
        ours = alike[0]
        use = "" if ours in features else f", say --{ours} {shlex.quote(alike[1])}"
        remedy = f"Rename one{use}, or leave it out with {_drop(alike[1:])}."
        refused = is_space and not set(alike) & set(named)
        yield Finding(f"{text} {remedy}", refused)


def _alike_names(frame: pd.DataFrame) -> Iterator[Finding]:
    """Tasks, groups or labels that are called alike."""
    for column in ("task", "group", "label"):
        names = frame[column].dropna().unique() if column in frame else ()
        found: dict[bool, list[str]] = {}
        for is_space, alike in _nearly_alike(name for name in names if isinstance(name, str)):
            found.setdefault(is_space, []).append(" and ".join(map(ascii, alike)))
        for is_space, pairs in found.items():
            how = "white space" if is_space else "case"
            text = f"Names in {column!r} differ only by {how}: {listed(pairs, str, 3)}."
            yield Finding(f"{text} Write equal names alike.", is_space)


# -- columns and windows that are there twice ------------------------------------------------------


def _duplicates(numbers: Mapping[str, Array]) -> Iterator[Finding]:
    """Columns with the same values, in the same units or in others."""
    if len(numbers) < 2:
        return
    names = list(numbers)
    some = np.linspace(0, numbers[names[0]].size - 1, _TRIED).astype(int)
    scaled = np.stack([_scaled(numbers[name][np.unique(some)]) for name in names])
    # Columns of a few values may agree by accident.
    telling = [np.unique(row).size >= 10 for row in scaled]
    near = np.triu(scaled @ scaled.T > 1.0 - 1e-6, 1) & np.outer(telling, telling)
    taken: set[int] = set()
    for place in np.flatnonzero(near.any(1)).tolist():
        whole = _scaled(numbers[names[place]])
        copies = [
            other
            for other in np.flatnonzero(near[place]).tolist()
            if other not in taken and whole @ _scaled(numbers[names[other]]) > 1.0 - 1e-6
        ]
        if place in taken or not copies:
            continue
        taken.update(copies)
        alike = [names[one] for one in (place, *copies)]
        text = f"Columns {listed(alike)} hold the same values, in the same units or others."
        remedy = f"Leave all but one out with {_drop(alike[1:])}."
        yield Finding(f"{text} {remedy}", False)


def _scaled(x: Array) -> Array:
    """Values about their mean, of length one; zero where they are missing."""
    centred = np.nan_to_num(x - np.nanmean(x)) if np.isfinite(x).any() else np.zeros(x.size)
    length = np.linalg.norm(centred)
    return centred / length if length > 0.0 else centred


def _shared_windows(
    frame: pd.DataFrame, numbers: Mapping[str, Array], rows: _Rows
) -> Iterator[Finding]:
    """Windows that are in the table twice, in one task or in two."""
    n_rows = rows.place.size
    if not numbers or not n_rows:
        return
    X = np.column_stack([values[rows.place] for values in numbers.values()])
    some = X[np.unique(np.linspace(0, n_rows - 1, _TRIED).astype(int))]
    n_values = np.array([np.unique(column).size for column in some.T])
    bits = np.where(n_values > len(some) / 2, 30.0, np.log2(n_values)).sum()
    # Windows of a few coarse features are alike by accident.
    if bits < 4.0 * np.log2(n_rows) or np.isnan(X).any():
        return
    import pandas as pd

    key = pd.util.hash_pandas_object(pd.DataFrame(X), index=False).to_numpy()
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(key[order][1:] == key[order][:-1])
    at, next_at = order[same], order[same + 1]
    one, other = rows.task[at], rows.task[next_at]
    # A recording that is dead has one window over and over.
    n_inside = int(((one == other) & (next_at - at > 1)).sum())
    if n_inside >= max(3.0, 0.05 * n_rows):
        text = f"{n_inside} of {n_rows} windows are duplicated within their task."
        yield Finding(f"{text} Remove the rows that are repeated.", False)
    pairs, counts = np.unique(np.stack([one, other])[:, one != other], axis=1, return_counts=True)
    sizes = np.bincount(rows.task)
    many = counts >= np.maximum(4.0, sizes[pairs].min(0, initial=n_rows) / 2.0)
    if many.any():
        first = [rows.place[np.argmax(rows.task == task)] for task in pairs[:, many][:, 0]]
        names = [str(frame["task"].iloc[place]) for place in first]
        text = f"Tasks {listed(names)} have {counts[many][0]} equal windows."
        if many.sum() > 1:
            text = f"{many.sum()} pairs of tasks have equal windows, such as {listed(names)}."
        remedy = "Remove one of the two, or give both the same group."
        yield Finding(f"{text} {remedy}", False)


def _overlap(frame: pd.DataFrame) -> Iterator[Finding]:
    """Windows that overlap, as their recipe says."""
    recipe = frame.attrs.get("recipe") or {}
    if recipe.get("overlap"):
        text = f"Windows of {recipe.get('window')} s overlap by {recipe['overlap']} s"
        text += ": tests on windows that overlap look better than they are."
        yield Finding(f"{text} Cut windows that do not overlap.", False)

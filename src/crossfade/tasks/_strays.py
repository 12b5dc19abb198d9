"""Columns of a table that are no features: dates, indices, counters, clocks, copies of the label.

A column is one kind of stray, the first that fits. What a real feature could do by coincidence is
no stray: every detector asks how probable that is, for as many columns as the table has. Over tasks
it counts those in which a column looks like a stray, and compares with the binomial of the mean
chance, which bounds the count where chances differ (Hoeffding 1956). A table of a few rows passes,
unless the name of a column says what it is.

Statistics of large tables come from a sample of tasks and windows. What must hold in every row is
looked for in the first rows, then in all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from crossfade.tasks._windows import (
    TRIED,
    Flags,
    Numbers,
    Places,
    Windows,
    numbers_of,
    starts_of,
)

if TYPE_CHECKING:
    import pandas as pd

#: Probability of a coincidence in any column below which it is no coincidence.
_LEVEL = 1e-3
#: "Most tasks".
_MOST = 0.6
#: Distance of two class means in standard deviations: of the best feature that we take for real
#: (which gets 96 % of the windows right), and beyond which a column may be a copy of the label,
#: where windows are like their neighbours and where they are not.
_BEST, _FAR, _FAR_ALONE = 3.5, (20.0, 60.0), (5.0, 8.0, 15.0, 40.0)
#: Share of windows that the best feature of a few values gets wrong, and that a copy may.
_BEST_WRONG, _COPY_WRONG = 0.08, 0.02
#: Rank correlations of a mere drift with time, overall and within classes, and how often a random
#: walk of 4 windows or more, and of 12 or more, has both with the same sign (from simulations; of
#: the last a half is the bound, since signs are random).
_DRIFTS = (
    (0.95, 0.7, 0.065, 0.03),
    (0.8, 0.5, 0.15, 0.12),
    (0.7, 0.3, 0.2, 0.2),
    (0.2, 0.1, 0.5, 0.5),
)
#: How many times steeper a mere drift may be between classes than within them, or less steep.
_STEEPER = 2.0

_NO_NAME = re.compile(r"|unnamed: \d+(_level_\d+)?|__index_level_\d+__|\.{2,3}\d+")
_INDEX_NAME = re.compile(r"index|level_\d|idx|(row|line)[ _.-]?(id|idx|index|names?|no|nr|number)?")
_COUNTER_NAME = re.compile(
    r"(trial|window|win|epoch|segment|row|sample|frame|index|idx|counter|sequence)s?"
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


# -- what is said ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stray:
    """What a column was found to be.

    In its texts ``[one|many]`` depends on the number of columns, ``{drop}`` says how to leave them
    out, and ``{keep}`` how to keep them.
    """

    kind: str
    text: str
    refused: bool = False
    remedy: str = "{drop}{keep}."

    def of(self, *found: object) -> Stray:
        """The same with what was found."""
        return replace(self, text=self.text.format(*found))


_NO_FEATURE = "and [is no feature|are no features]."
_DATES = Stray("dates", f"[holds|hold] dates or times of day {_NO_FEATURE}", True)
# Text does not become a number by being named.
_WRITTEN_DATES = replace(_DATES, remedy="{drop}.")
_DURATIONS = Stray(
    "dates",
    "[holds|hold] durations, which would become numbers of nanoseconds.",
    True,
    "Turn [it|them] into seconds with .dt.total_seconds(), or {drop}.",
)
EMPTY = Stray("constant", "[is|are] empty in every row.", True, "{drop}.")
_UNNAMED = Stray(
    "index",
    "[has|have] no name and [holds|hold] whole numbers: [it is the index|they are indices] that "
    "to_csv() wrote and no [feature|features].",
    True,
    "Write the table with to_csv(index=False), or {drop}{keep}.",
)
_NAMELESS = Stray(
    "index",
    "[has|have] no name in the table.",
    remedy="Give [it|them] a name; if [it is no feature|they are no features], {drop}.",
)
_INDEX = Stray("index", f"[numbers|number] the rows of the table {_NO_FEATURE}", True)
SHUFFLED_INDEX = Stray(
    "index", "[looks|look] like an index: there is a different whole number in every row."
)
SHUFFLED_COUNTER = Stray(
    "counter",
    "[looks|look] like the number of the window: in every task there is each whole number from the "
    "smallest to the largest, once.",
)
CONSTANT = Stray(
    "constant", "[has|have] the same value in every row and [tells|tell] nothing about the classes."
)
PER_TASK = Stray(
    "constant",
    "[has|have] one value in each task: [it|they] may tell people apart, but not classes.",
)
_EPOCH = Stray("time", f"[looks|look] like times in {{}} since 1970 {_NO_FEATURE}")
_COUNTER = Stray(
    "counter", f"[counts|count] {{}}, ... {{}}: [it numbers|they number] the windows {_NO_FEATURE}"
)
_STEPS = Stray("time", f"[goes|go] {{}}, ... {{}}: [it tells|they tell] the time {_NO_FEATURE}")
_CLOCK = Stray(
    "time",
    "[{0}s|{0}] and hardly ever [{1}s|{1}] from window to window, as a clock does: [it tells|they "
    "tell] how long the recording has been running.",
    remedy="{drop}; if the rows were sorted by [it|them], put them in the order of time.",
)
_COPY = Stray(
    "separates",
    "alone [separates|separate] the classes nearly perfectly in {} of {} tasks, as a copy of the "
    "label, a condition or a block number does.",
    remedy="Keep [it if it was|them if they were] measured and not set by the experiment; "
    "otherwise {drop}.",
)
_DRIFT = Stray(
    "drift",
    "only [drifts|drift] up or down in {} of {} tasks in which the classes come in blocks: "
    "whatever drifts seems to tell such classes apart.",
    remedy="{drop}, or record the classes in turn.",
)


# -- one column -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """Numbers that are to be a feature.

    Attributes
    ----------
    name : str
        What the column is called, in small letters.
    values : array of shape (n_table,)
        Its values, in the order of the table.
    rows, some : Windows
        Rows in which it is not missing, and a sample of them.
    tests : int
        Number of columns of the table, any of which may have a coincidence.
    """

    name: str
    values: Numbers
    rows: Windows
    some: Windows
    tests: int

    def at(self, windows: Windows) -> Numbers:
        """Values in some rows."""
        return self.values[windows.place]

    @cached_property
    def whole(self) -> bool:
        """Whether all values are whole numbers."""
        parts = (self.at(windows) for windows in (self.rows.head, self.rows))
        return all(bool((x == np.round(x)).all()) for x in parts)

    @property
    def coins(self) -> float:
        """How many coins would have to fall alike to be no coincidence."""
        return float(np.log2(self.tests / _LEVEL))


def look_at(
    name: str, column: pd.Series[Any], windows: Windows, tests: int
) -> tuple[Stray | None, Numbers | None]:
    """What stray a column is, if any, and its numbers in the order of the table."""
    if column.isna().all():
        return EMPTY, None
    values = numbers_of(column)
    if values is None:
        return _dates(column), None
    rows, some = windows, windows.sample
    present = np.isfinite(values)
    if not present.all():
        rows, some = (part.take(present[part.place]) for part in (rows, some))
    if not len(some):
        return None, None
    numbers = _Column(name.strip().lower(), values, rows, some, tests)
    detectors = (_unnamed, _epoch, _constant, _counts, _shuffled, _copies, _clock, _drifts)
    return next(filter(None, (detect(numbers) for detect in detectors)), None), values


def _dates(column: pd.Series[Any]) -> Stray | None:
    """Dates and durations, as such or as text."""
    import pandas as pd

    some = column.dropna().iloc[:TRIED]
    kind = pd.api.types.infer_dtype(some, skipna=True)
    if kind.startswith("timedelta"):
        return _DURATIONS
    if kind.startswith(("date", "time", "period")):
        return _DATES if column.dtype.kind == "M" else _WRITTEN_DATES
    dates = all(_DATE.fullmatch(text) for text in some.astype(str).unique())
    return _WRITTEN_DATES if dates else None


def _unnamed(column: _Column) -> Stray | None:
    """A column without a name, such as the index that pandas and R write along."""
    if _NO_NAME.fullmatch(column.name) is None:
        return None
    return _UNNAMED if column.whole else _NAMELESS


def _constant(column: _Column) -> Stray | None:
    """The same value everywhere, or in each task."""
    for windows in (column.rows.head, column.rows):
        changes = np.diff(column.at(windows)) != 0.0
        if (changes & (np.diff(windows.task) == 0)).any():
            return None
    n_rows, n_tasks = len(windows), windows.first.size
    # What is rare may not happen in a few windows; what is slow may not change in short tasks.
    if not changes.any():
        return CONSTANT if n_rows - n_tasks >= (10 if n_tasks > 1 else 20) else None
    n_values = np.unique(column.at(windows)[windows.first]).size
    many, long = (4, 10) if n_values > 2 else (6, 5)
    return PER_TASK if n_tasks >= many and n_rows >= long * n_tasks else None


def _epoch(column: _Column) -> Stray | None:
    """Times since 1970, which have ten digits in seconds, or days such as 20260131."""
    low, high = (float(end(column.values)) for end in (np.nanmin, np.nanmax))
    units = {"seconds": 1.0, "milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
    if low == high and not column.whole:
        return None
    for unit, scale in units.items():
        if 1e9 * scale <= low and high <= min(2.2e9 * scale, 1.5 * low):
            # Raw counts of a sensor may have ten digits, but not more.
            return replace(_EPOCH.of(unit), refused=scale > 1.0)
    if 19_000_101 <= low <= high <= 21_001_231 and column.whole:
        x = column.at(column.some)
        month, day = x // 100 % 100, x % 100
        if ((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all():
            return _DATES
    return None


# -- order ----------------------------------------------------------------------------------------


def _counts(column: _Column) -> Stray | None:
    """Numbers that go on by equal steps from row to row: an index, a counter or a clock."""
    if column.whole and column.rows.first.size > 1:
        steps = _steps(column, attrgetter("table"))
        if steps is not None and steps.how != _AGAIN and abs(steps.usual) <= _SMALL:
            return _INDEX
    for view, where in (
        (lambda rows: rows, "inside every task"),
        (attrgetter("classes"), "inside every class of every task"),
    ):
        steps = _steps(column, view)
        if steps is not None:
            clock = _TIME_NAME.fullmatch(column.name) or not column.whole
            stray = replace(_STEPS if clock else _COUNTER, refused=True)
            return stray.of(steps.shown, steps.how + where)
    return None


#: How a counter may count, and the largest step of one with gaps.
_AGAIN, _GAPS, _SMALL = "over and over ", "with gaps ", 3.0


@dataclass(frozen=True)
class _Steps:
    """How a column goes on from row to row: usual step, in which way, and its first numbers."""

    usual: float
    how: str
    shown: str


def _steps(column: _Column, view: Callable[[Windows], Windows]) -> _Steps | None:
    """Steps of a column if they are equal, but for new beginnings or gaps; first rows first."""
    found = _steps_in(column, view(column.rows.head))
    if found is None or column.rows.head is column.rows:
        return found
    return _steps_in(column, view(column.rows))


def _steps_in(column: _Column, rows: Windows) -> _Steps | None:
    x = column.at(rows)
    inside = np.diff(rows.task) == 0
    step = np.diff(x)[inside]
    usual = float(np.median(step)) if step.size else 0.0
    if usual == 0.0:
        return None
    known = _COUNTER_NAME.fullmatch(column.name) or _TIME_NAME.fullmatch(column.name)
    # A small count goes on by the same step one time in three, and up one time in two.
    needed = (2.0, 3.0) if known else (column.coins / 1.5, column.coins)
    equal = np.abs(step - usual) <= 1e-6 * abs(usual) + 1e-15 * np.abs(x).max()
    begin = x[rows.first]
    if equal.all():
        how, enough = "", step.size >= needed[0]
    elif (begin == begin[0]).all() and (x[1:][inside][~equal] == begin[0]).all():
        how, enough = _AGAIN, equal.sum() >= max(needed[1], step.size * 2 / 3)
    else:
        onward = column.whole and abs(usual) <= _SMALL and bool((step * usual > 0.0).all())
        # A feature may well go up from one class to another every time, but not back as well.
        change = np.sign(np.diff(rows.label)[inside])
        back, same, there = np.bincount(change + 1, minlength=3)
        how, enough = _GAPS, onward and same + min(back, there) >= needed[1]
    longest = rows.first[rows.size.argmax()]
    shown = ", ".join(f"{value:.10g}" for value in x[longest:][: min(3, rows.size.max())])
    return _Steps(usual, how, shown) if enough else None


def _shuffled(column: _Column) -> Stray | None:
    """Different whole numbers in all rows: an index or a counter whose rows were put elsewhere."""
    if not column.whole:
        return None
    named = _INDEX_NAME.fullmatch(column.name) is not None
    for stray, rows in ((SHUFFLED_INDEX, column.rows.table), (SHUFFLED_COUNTER, column.rows)):
        x = column.at(rows)
        low, high = (end.reduceat(x, rows.first) for end in (np.minimum, np.maximum))
        dense = rows.size.max() > 2 and bool((high - low + 1.0 == rows.size).all())
        if len(x) > 2 and (named or (dense and len(x) - rows.first.size >= column.coins)):
            order = np.lexsort((x, rows.task))
            if ((np.diff(x[order]) > 0.0) | (np.diff(rows.task) > 0)).all():
                return replace(stray, refused=named)
    return None


def _clock(column: _Column) -> Stray | None:
    """Values that rise, or fall, from each window of a class to the next, in all tasks."""
    rows = column.some.classes
    step = np.diff(column.at(rows))[np.diff(rows.task) == 0]
    up, down = int((step > 0.0).sum()), int((step < 0.0).sum())
    most, both = max(up, down), up + down
    named = _TIME_NAME.fullmatch(column.name) and most == both >= 2
    # The signal of one or two people may well rise for a while.
    enough = column.some.first.size > 2 or both >= 60
    coincidence = 2.0 * special.bdtrc(most - 1, both, 0.5) * column.tests if both else 1.0
    if named or (enough and most >= 0.9 * both and coincidence < _LEVEL):
        return _CLOCK.of(*(("rise", "fall") if up > down else ("fall", "rise")))
    return None


def _drifts(column: _Column) -> Stray | None:
    """A trend with time within the classes, which alone explains how they differ.

    It has the same sign in most tasks, where classes come in blocks; people whose signals walk at
    random have both signs. A feature that differs between the classes is steeper between them.
    """
    rows = column.some.labelled
    if not len(rows):
        return None
    blocks = np.add.reduceat(np.append(1, np.diff(rows.label) != 0), rows.first)
    n_classes = np.bincount(rows.number[rows.class_order][rows.classes.first])
    in_blocks = (blocks <= np.maximum(n_classes, rows.size / 4)) & (rows.size > 4)
    if in_blocks.mean() < 0.5:
        return None
    if not in_blocks.all():
        rows = rows.take(in_blocks[rows.number])
    time, rank = np.arange(len(rows), dtype=np.float64), _ranks(column.at(rows), rows)
    overall = _Trend.of(rank, time, rows.number, rows.number)
    order = rows.class_order
    within = _Trend.of(rank[order], time[order], rows.number[order], rows.classes.number)
    up = np.sign(np.median(within.correlation))
    between = (overall.product - within.product) / np.maximum(overall.time - within.time, 1e-9)
    steeper = np.median(up * between) / max(np.median(up * within.slope), 1e-9)
    if not 1.0 / _STEEPER <= steeper <= _STEEPER:
        return None
    for least, least_within, *chances in _DRIFTS:
        hits = (up * overall.correlation >= least) & (up * within.correlation >= least_within)
        chance = np.where(rows.size < 12, *chances)
        # Either sign would do.
        if _in_most(hits, chance, 2 * len(_DRIFTS) * column.tests):
            return _DRIFT.of(hits.sum(), hits.size)
    return None


def _ranks(x: Numbers, rows: Windows) -> Numbers:
    """Ranks within tasks; equal values share theirs."""
    order = np.lexsort((x, rows.task))
    new = np.append(True, (np.diff(x[order]) != 0.0) | (np.diff(rows.task) != 0))
    first = np.flatnonzero(new)
    middle = first + (np.diff(np.append(first, x.size)) - 1) / 2.0
    rank = np.empty(x.size)
    rank[order] = middle[np.cumsum(new) - 1]
    return rank


@dataclass(frozen=True)
class _Trend:
    """How ranks go with time, of shape (n_tasks,): sums of products, and of squares of both."""

    product: Numbers
    time: Numbers
    rank: Numbers

    @classmethod
    def of(cls, rank: Numbers, time: Numbers, task: Places, part: Places) -> _Trend:
        """Trend around the means of parts."""
        size = np.bincount(part)
        a, b = (one - (np.bincount(part, one) / size)[part] for one in (rank, time))
        sums = (np.bincount(task, one) for one in (a * b, b * b, a * a))
        return cls(*(one.astype(np.float64) for one in sums))

    @property
    def correlation(self) -> Numbers:
        squares = np.maximum(self.rank * self.time, np.finfo(float).tiny)
        return np.asarray(self.product / np.sqrt(squares))

    @property
    def slope(self) -> Numbers:
        return np.asarray(self.product / np.maximum(self.time, np.finfo(float).tiny))


def _in_most(hits: Flags, chance: Numbers, tests: int) -> bool:
    """Whether most tasks are hit, and more than by coincidence; both of shape (n_tasks,)."""
    count = int(hits.sum())
    return count >= max(_MOST * hits.size, 1) and bool(
        special.bdtrc(count - 1, hits.size, chance.mean()) * tests < _LEVEL
    )


# -- classes --------------------------------------------------------------------------------------


def _copies(column: _Column) -> Stray | None:
    """A column that alone tells the class, by far distances or by few values."""
    rows = column.some.labelled
    if not len(rows):
        return None
    x = column.at(rows)
    values, code = np.unique(x, return_inverse=True)
    # Values that were rounded have at least the spread of rounding.
    rounding = float(np.diff(values).min(initial=np.inf)) / 12.0**0.5
    n_hits = _far_apart(x, rows, rounding, column.tests)
    if n_hits == 0 and values.size <= len(rows) / 2:
        n_hits = _few_values(code, rows, column.tests)
    return _COPY.of(n_hits, rows.first.size) if n_hits else None


def _far_apart(x: Numbers, rows: Windows, rounding: float, tests: int) -> int:
    """Number of tasks with class means far apart; 0 if not most, or not too far for a feature.

    First each task by itself. Where windows are like their neighbours their spread is too small: it
    is divided by von Neumann's ratio, half the mean squared step over the variance, and gaps have
    to be larger. Then all tasks together, with one mean for each class of a task.
    """
    order, classes = rows.class_order, rows.classes
    task, label = rows.number[order][classes.first], classes.label[classes.first]
    x = x[order]
    mean = np.add.reduceat(x, classes.first) / classes.size
    squares = np.add.reduceat((x - mean[classes.number]) ** 2, classes.first)
    steps = 0.5 * (np.diff(x)[np.diff(classes.task) == 0] ** 2).sum()
    ratio = min(steps / squares.sum(), 1.0) if steps > 0.0 else 1.0
    first = starts_of(task)
    free = rows.size - np.diff(np.append(first, task.size))
    least = np.minimum.reduceat(classes.size, first)
    variance = np.add.reduceat(squares, first) / np.maximum(free, 1)
    spread = np.hypot(np.sqrt(variance) / ratio, rounding)
    gap = np.diff(mean[np.lexsort((mean, task))], prepend=0.0)
    gap[first] = np.inf
    gap = np.minimum.reduceat(gap, first)
    for fewest, levels in ((3, _FAR), (5, _FAR_ALONE if ratio > 0.85 else ())):
        usable = least >= fewest
        hits = _too_far(gap[usable], spread[usable], free[usable], least[usable], levels, tests)
        if hits.any() and usable.mean() >= _MOST:
            return int(hits.sum())
    # Now a task is one sample.
    n_tasks = np.bincount(label)
    centre = np.bincount(label, mean) / np.maximum(n_tasks, 1)
    free = np.array([mean.size - np.count_nonzero(n_tasks)])
    if free > 0:
        between = ((mean - centre[label]) ** 2).sum() / free
        spread = np.sqrt(between + variance.mean() + np.square(rounding))
        gap = np.diff(np.sort(centre[n_tasks > 0])).min(keepdims=True)
        least = n_tasks[n_tasks > 0].min(keepdims=True)
        if _too_far(gap, spread, free, least, _FAR_ALONE, tests).any():
            return rows.first.size
    return 0


def _too_far(
    gap: Numbers, spread: Numbers, free: Places, least: Places, levels: Sequence[float], tests: int
) -> Flags:
    """Samples with a gap beyond some level, if most are, and no feature's would be."""
    for level in levels:
        hits = gap > level * spread
        if hits.size and hits.mean() >= _MOST:
            chance = np.array([*map(_chance, [level] * hits.size, free.tolist(), least.tolist())])
            if _in_most(hits, chance, tests * len(levels)):
                return hits
    return np.zeros(gap.size, np.bool_)


@lru_cache(maxsize=10_000)
def _chance(level: float, free: int, least: int) -> float:
    """Chance that the best feature's gap is beyond a level.

    Gap over spread, times the root of half the windows of a class, has a noncentral t distribution
    with so many degrees of freedom.
    """
    root = (least / 2.0) ** 0.5
    chance = 1.0 - float(special.nctdtr(free, _BEST * root, level * root))
    return chance if 0.0 <= chance <= 1.0 else 1.0


def _few_values(code: Places, rows: Windows, tests: int) -> int:
    """Number of tasks in which few values tell the class; 0 if not most.

    A window is told its class by the others with the same value: in its task, or in all.
    """
    n_values, n_labels = int(code.max()) + 1, int(rows.label.max()) + 1
    for inside in (True, False):
        groups, group = np.unique(inside * rows.number * n_values + code, return_inverse=True)
        wrong = np.add.reduceat(_outvoted(group, rows.label, n_labels), rows.first, dtype=np.intp)
        hits = wrong <= _COPY_WRONG * rows.size
        chance = special.bdtr(np.floor(_COPY_WRONG * rows.size), rows.size, _BEST_WRONG)
        if _in_most(hits, chance.astype(np.float64), tests):
            return int(hits.sum())
        # A feature with a value for each class is right in 3 of 5; with two for each, in 4 of 5.
        n_wrong, most = int(wrong.sum()), np.bincount(groups // n_values).max() / n_labels
        expected = _BEST_WRONG if n_wrong or most > 2 else 0.2 if most > 1 else 0.4
        coincidence = special.bdtr(n_wrong, len(rows), expected) * tests
        if n_wrong <= _COPY_WRONG * len(rows) and coincidence < _LEVEL:
            return rows.first.size
    return 0


def _outvoted(group: Places, label: Places, n_labels: int) -> Flags:
    """Rows whose label is not that of most others in their group."""
    votes = np.bincount(group * n_labels + label, minlength=(group.max() + 1) * n_labels)
    votes = votes.reshape(-1, n_labels)
    second, best = np.partition(votes, -2, axis=1)[:, -2:].T
    rival = np.where(votes.argmax(1)[group] == label, second[group], best[group])
    return np.asarray(votes[group, label] - 1 <= rival)

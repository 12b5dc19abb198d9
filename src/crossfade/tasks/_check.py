"""What would mislead in a table of tasks: strays among its features, names that are nearly alike.

Certain nonsense is refused, the rest is a warning. ``docs/task-table.md`` lists what is looked for;
the room's `_strays` says how a column is told from a feature.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crossfade.tasks._columns import WINDOW
from crossfade.tasks._recipe import Recipe
from crossfade.tasks._strays import (
    CONSTANT,
    EMPTY,
    PER_TASK,
    SHUFFLED_COUNTER,
    SHUFFLED_INDEX,
    Stray,
    look_at,
)
from crossfade.tasks._windows import Flags, Numbers, Windows, numbers_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Finding:
    """One thing in a table that would mislead.

    Attributes
    ----------
    kind : str
        What it is, in one word.
    columns : tuple of str
        Columns that it is about.
    text : str
        What was found, in one sentence.
    remedy : str
        What to do about it, in one sentence.
    refused : bool
        Whether it is certain nonsense.
    """

    kind: str
    columns: tuple[str, ...]
    text: str
    remedy: str
    refused: bool


def check_frame(
    frame: pd.DataFrame, features: Sequence[str], named: Collection[str] = ()
) -> list[Finding]:
    """Find what would mislead in a table of tasks; what is refused comes first.

    Parameters
    ----------
    frame : DataFrame
        Columns `task` and `label`, optional `group` and `start`, and features as they were read.
    features : sequence of str
        Columns that are to be features.
    named : collection of str
        Features that the user chose by name; they are never refused.

    Returns
    -------
    list of Finding
        What was found.
    """
    names = [*_names_of_columns(features, named), *_names_in_rows(frame)]
    rows = Windows.of(frame)
    if not len(rows):
        return names
    start = numbers_of(frame["start"]) if "start" in frame else None
    if start is not None and np.isnan(start).any():
        start = None
    windows = rows.in_time(start)
    strays: dict[str, Stray] = {}
    numbers: dict[str, Numbers] = {}
    for name in features:
        stray, values = look_at(name, frame[name], windows, len(features))
        if stray is not None:
            strays[name] = stray
        if values is not None and not (stray and (stray.refused or stray in (CONSTANT, PER_TASK))):
            numbers[name] = values
    ranks = [name for name, one in strays.items() if one in (SHUFFLED_INDEX, SHUFFLED_COUNTER)]
    empty = [name for name, one in strays.items() if one is EMPTY]
    for many, alike in ((len(features) / 2, ranks), (len(features) - 1, empty)):
        # All features were turned into ranks, or there is none: no stray among others.
        if len(alike) > many:
            strays = {name: stray for name, stray in strays.items() if name not in alike}
    scales = {name: _Scale.of(values[windows.sample.place]) for name, values in numbers.items()}
    findings = [
        *names,
        *_stray_columns(strays, named),
        *_duplicates(numbers, scales, windows.sample),
        *_repeated_rows(frame, numbers, scales, windows),
        *_overlap(frame, start, rows),
    ]
    return sorted(findings, key=lambda finding: not finding.refused)


def _stray_columns(strays: Mapping[str, Stray], named: Collection[str]) -> Iterator[Finding]:
    """One finding for all columns that are the same stray."""
    alike: dict[tuple[Stray, bool], list[str]] = {}
    for name, stray in strays.items():
        alike.setdefault((stray, name in named), []).append(name)
    for (stray, chosen), names in alike.items():
        # What does not become a number by being named cannot be kept.
        refused = stray.refused and not (chosen and "{keep}" in stray.remedy)
        keep = ", or name [it|them] in --columns to keep [it|them]" if refused else ""
        remedy = _for(len(names), stray.remedy.replace("{keep}", keep))
        yield Finding(
            stray.kind,
            tuple(names),
            f"Column{'s' * (len(names) > 1)} {listed(names)} {_for(len(names), stray.text)}",
            _sentence(remedy.replace("{drop}", _drop(names))),
            refused,
        )


def _for(count: int, text: str) -> str:
    """Text for one or for many: the first or the second of each ``[one|many]``."""
    return re.sub(r"\[([^][|]*)\|([^][|]*)\]", r"\1" if count == 1 else r"\2", text)


def _drop(names: Sequence[str]) -> str:
    """How to leave columns out, at the command line and in Python."""
    it = "it" if len(names) == 1 else "them"
    return f"leave {it} out with --drop {_quoted(names)} (drop={list(names)!r})"


def _quoted(names: Sequence[str]) -> str:
    """Names for the command line."""
    return shlex.quote(",".join(names))


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def listed(names: Sequence[str], show: Callable[[str], str] = repr, most: int = 5) -> str:
    """Names one after another, with "and" before the last."""
    shown = [show(name) for name in names[:most]]
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


# -- names ----------------------------------------------------------------------------------------

_BY_SPACE, _BY_CASE = "only by white space or invisible characters", "only by case"


def _plain(name: str) -> str:
    """Name as it looks: accents written in one way, nothing invisible, no white space.

    White space between digits stays, since "1 11" and "11 1" are two names.
    """
    name = unicodedata.normalize("NFC", name)
    visible = (one for one in name if unicodedata.category(one) != "Cf")
    return re.sub(r"(?<!\d) | (?!\d)", "", " ".join("".join(visible).split()))


def _nearly_alike(names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """By what names differ, and the names, for all that differ by nothing else."""
    by_space: dict[str, list[str]] = {}
    by_case: dict[str, list[str]] = {}
    for name in names:
        by_space.setdefault(_plain(name), []).append(name)
    for plain, alike in by_space.items():
        by_case.setdefault(plain.casefold(), []).append(alike[0])
    for how, found in ((_BY_SPACE, by_space), (_BY_CASE, by_case)):
        for alike in found.values():
            if len(alike) > 1:
                yield how, alike


def _visible(names: Sequence[str]) -> str:
    """Names in quotes; with escapes if they would look the same."""
    same = len({unicodedata.normalize("NFC", name) for name in names}) < len(names)
    return listed(names, ascii if same else repr)


def _names_of_columns(features: Sequence[str], named: Collection[str]) -> Iterator[Finding]:
    """Features that are called like each other, or like a column that is no feature."""
    for how, alike in _nearly_alike(["task", "label", "group", "start", *features]):
        refused = how == _BY_SPACE and not set(alike) & set(named)
        ours, mine = alike[0], alike[1:]
        if ours in features:
            text = f"Columns {_visible(alike)} differ {how} and would be different features."
            remedy = f"Rename one of them, or {_drop(mine)}."
        else:
            text = f"Column {listed(mine)} differs from {ours!r} {how} and would be a feature."
            remedy = (
                f"Say --{ours} {shlex.quote(mine[0])} ({ours}={mine[0]!r}) if that is what it is, "
                f"or {_drop(mine)}."
            )
        yield Finding("names", tuple(alike), text, remedy, refused)


def _names_in_rows(frame: pd.DataFrame) -> Iterator[Finding]:
    """Tasks, groups or labels that are called alike."""
    for column, what, who in (
        ("task", "Tasks", "people"),
        ("group", "Groups", "people"),
        ("label", "Labels", "classes"),
    ):
        names = frame[column].dropna().unique() if column in frame else ()
        found: dict[str, list[str]] = {}
        for how, alike in _nearly_alike(name for name in names if isinstance(name, str)):
            found.setdefault(how, []).append(_visible(alike))
        for how, pairs in found.items():
            shown = "; ".join(pairs[:3]) + (f"; and {len(pairs) - 3} more" if pairs[3:] else "")
            yield Finding(
                "names",
                (column,),
                f"{what} {shown} differ {how} and count as different {who}.",
                "Write them alike in the table."
                if how == _BY_SPACE
                else "Write them alike in the table if they are the same.",
                how == _BY_SPACE,
            )


# -- columns and rows that are there twice --------------------------------------------------------


@dataclass(frozen=True)
class _Scale:
    """Median of a column and distance of its quartiles."""

    middle: float
    spread: float

    @classmethod
    def of(cls, x: Numbers) -> _Scale:
        low, middle, high = np.nanquantile(x, (0.25, 0.5, 0.75))
        return cls(float(middle), float(high - low or np.nanstd(x) or 1.0))

    def __call__(self, x: Numbers) -> Numbers:
        return (x - self.middle) / self.spread


def _duplicates(
    numbers: Mapping[str, Numbers], scales: Mapping[str, _Scale], some: Windows
) -> Iterator[Finding]:
    """Columns with the same values, in the same units or in others."""
    scaled = {name: scales[name](values[some.place]) for name, values in numbers.items()}
    needed = 20.0 + 2.0 * np.log2(max(len(scaled), 1))
    telling = [name for name, x in scaled.items() if (x.size - 2) * _entropy(x) >= needed]
    # Copies have nearly the same sum over some rows: only neighbours in that order are compared.
    rows = np.linspace(0, len(some) - 1, 20).astype(int)
    weights = np.random.default_rng(0).standard_normal(rows.size)
    parts = {name: np.nan_to_num(scaled[name][rows]) for name in telling}
    sums = {name: float(part @ weights) for name, part in parts.items()}
    order = sorted(telling, key=lambda name: sums[name])
    taken: set[str] = set()
    for place, name in enumerate(order):
        if name in taken:
            continue
        near = sums[name] + _ALIKE * float(np.abs(weights) @ (1.0 + np.abs(parts[name])))
        copies = {name}
        for other in order[place + 1 :]:
            if sums[other] > near:
                break
            if _same(scaled[name], scaled[other]):
                copies.add(other)
        if len(copies) > 1:
            taken |= copies
            alike = [one for one in numbers if one in copies]
            exact = all(np.array_equal(numbers[name], numbers[one], True) for one in copies)
            units = "" if exact else " in other units"
            yield Finding(
                "duplicate",
                tuple(alike),
                f"Columns {listed(alike)} hold the same values{units}: what they tell counts "
                f"{'twice' if len(alike) == 2 else f'{len(alike)} times'}.",
                f"Keep one of them: --drop {_quoted(alike[1:])} (drop={alike[1:]!r}).",
                False,
            )


#: Difference of two numbers that are taken for the same, over their spread.
_ALIKE = 1e-3


def _same(a: Numbers, b: Numbers) -> bool:
    return bool(np.allclose(a, b, rtol=_ALIKE, atol=_ALIKE, equal_nan=True))


def _entropy(x: Numbers) -> float:
    """Bits of one value (Renyi's second entropy); all that are missing are one value."""
    counts = np.unique(x, return_counts=True)[1]
    return float(-np.log2(((counts / x.size) ** 2).sum()))


def _repeated_rows(
    frame: pd.DataFrame,
    numbers: Mapping[str, Numbers],
    scales: Mapping[str, _Scale],
    windows: Windows,
) -> Iterator[Finding]:
    """Windows that are in the table twice, in one task or in two."""
    some = windows.sample.place
    digits = sum(_digits(scales[name](values[some])) for name, values in numbers.items())
    # Features of a window go together: half of their digits may tell what the others do.
    if digits / 2.0 < 2.0 * np.log2(max(len(windows), 2)):
        return
    weights = np.random.default_rng(0).uniform(1.0, 2.0, len(numbers))
    key = np.zeros(len(frame))
    for weight, (name, values) in zip(weights, numbers.items(), strict=True):
        key += weight * scales[name](values)
    key = key[windows.place]
    if np.isnan(key).any():
        windows, key = windows.take(~np.isnan(key)), key[~np.isnan(key)]
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(np.diff(key[order]) == 0.0)
    one, other = windows.number[order[same]], windows.number[order[same + 1]]
    # A recording that is dead has one window over and over.
    inside = int(((one == other) & (np.diff(same, prepend=-2) > 1)).sum())
    if inside >= max(3.0, 0.05 * len(windows)):
        yield Finding(
            "rows",
            ("task",),
            f"{inside} of {len(windows)} windows are twice in their task, with the same value in "
            "every feature: a method would be tested on windows that it has learnt from.",
            "Remove the rows that are repeated.",
            False,
        )
    pairs, counts = np.unique(np.stack([one, other])[:, one != other], axis=1, return_counts=True)
    many = counts >= np.maximum(4.0, windows.size[pairs].min(0, initial=len(windows)) / 2.0)
    if many.any():
        names = frame["task"].iloc[windows.place[windows.first[pairs[:, many][:, 0]]]].astype(str)
        more = f", and so do {many.sum() - 1} other pairs" if many.sum() > 1 else ""
        yield Finding(
            "rows",
            ("task",),
            f"Tasks {listed(names.tolist())} have {counts[many][0]} windows in common, with the "
            f"same value in every feature{more}: one person under two names would be tested on "
            "what was learnt from them.",
            "Remove one of the two, or give both the same group.",
            False,
        )


def _digits(x: Numbers) -> float:
    """Number of binary digits of a value, from its spread to the smallest difference there is."""
    steps = np.diff(np.unique(x[np.isfinite(x)]))
    return max(0.0, -float(np.log2(steps.min()))) if steps.size else 0.0


# -- windows that overlap -------------------------------------------------------------------------


def _overlap(frame: pd.DataFrame, start: Numbers | None, rows: Windows) -> Iterator[Finding]:
    """Windows of a task and class that begin together, before the end of another, or too soon.

    Where nothing says how long windows are, only those are found that begin sooner than usual.
    """
    recipe, length = _recipe_of(frame), frame.attrs.get(WINDOW)
    if recipe is not None:
        length = recipe.window
    text = None
    if recipe is not None and recipe.overlap > 0.0:
        text = f"Windows of {length:g} s overlap by {recipe.overlap:g} s, as their recipe says"
    elif start is not None:
        text = _too_soon(frame, start, rows.classes, length)
    if text is not None:
        yield Finding(
            "overlap",
            ("start",) if start is not None else (),
            f"{text}: windows that overlap make tests look better than they are.",
            "Cut windows that do not overlap, or keep one of each that do.",
            False,
        )


def _recipe_of(frame: pd.DataFrame) -> Recipe | None:
    """How the features were made, if the table says it; the reader refuses what is none."""
    try:
        return Recipe.from_dict(frame.attrs["recipe"])
    except (KeyError, TypeError, ValueError):
        return None


def _too_soon(
    frame: pd.DataFrame, start: Numbers, rows: Windows, length: float | None
) -> str | None:
    """How many windows begin too soon, in words; `rows` are those of a task and class together."""
    by_time = rows.take(np.lexsort((start[rows.place], rows.task)))
    inside = np.diff(rows.task) == 0
    step, step_by_time = (np.diff(start[one.place]) for one in (rows, by_time))
    if (step[inside] < 0.0).sum() > 0.2 * inside.sum():
        # Rows were shuffled. Otherwise time falls where the next recording begins.
        rows, step = by_time, step_by_time
    together = inside & (step == 0.0)
    if together.any():
        place = rows.place[together.argmax()]
        return (
            f"{together.sum()} windows start when another of the same task and class does (the "
            f"first at {start[place]:g} s in task {str(frame['task'].iloc[place])!r})"
        )
    forward = inside & (step > 0.0)
    n_steps = int(forward.sum())
    if length is not None:
        early = (forward & (step < 0.99 * length) & _goes_on(forward, step, length)).sum()
        # Recordings of one task that begin anew have the same starts, or share few.
        among = (inside & (step_by_time > 0.0) & (step_by_time < 0.99 * length)).sum()
        if early >= max(3.0, 0.02 * n_steps) or among >= max(3.0, 0.5 * inside.sum()):
            return (
                f"{max(early, among)} windows of {length:g} s start before the one before them, of "
                "the same task and class, has ended"
            )
        return None
    steps, counts = np.unique(step[forward].round(6), return_counts=True)
    if not counts.size:
        return None
    usual = float(steps[counts.argmax()])
    if counts.max() < n_steps / 2 and counts[counts >= 0.1 * n_steps].sum() >= 0.8 * n_steps:
        usual = float(np.median(step[forward]).round(6))
        moved = True
    elif counts.max() >= n_steps / 2:
        moved = False
    else:
        return None
    short = forward & _goes_on(forward, step, usual) & (step < 0.99 * usual)
    # Half a step or a third: windows in between were left out, or belong to another class.
    short[short] = ~_is_whole(usual / step[short])
    if moved:
        # Events may well come at several intervals; a window that was moved makes one of its two
        # steps as much longer as the other is shorter.
        pair = np.append(
            _is_whole((step[1:] + step[:-1]) / usual) & forward[1:] & forward[:-1], False
        )
        made_up = pair | np.append(False, pair[:-1])
        if (short & made_up).sum() < 0.8 * short.sum():
            return None
    if short.sum() < max(3.0, 0.1 * n_steps):
        return None
    return (
        f"{short.sum()} of {n_steps} windows start sooner after the one before than the usual "
        f"{usual:g} s"
    )


def _goes_on(forward: Flags, step: Numbers, usual: float) -> Flags:
    """Steps with another behind them: a last window may be moved back to end with the rest."""
    return np.append(forward[1:] & (step[1:] < 1.99 * usual), False)


def _is_whole(number: Numbers) -> Flags:
    return np.asarray(np.abs(number - np.round(number)) <= 0.01)

"""How many windows a new person needs, and what the smallest calibration is worth, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade.study._budgets import budget_of, budget_text
from crossfade.study._methods import METHODS, by_role
from crossfade.study._resampling import by_task, check_rows
from crossfade.study._result import StudyResult
from crossfade.study.statistics import compare, labels_saved, p_text, summarise

if TYPE_CHECKING:
    import pandas as pd


def verdict(rows: pd.DataFrame | StudyResult, accuracy: float = 0.75, share: float = 0.8) -> str:
    """Sum up a study: how many windows a new person needs, and what the fewest are worth.

    It is about the first of "hierarchical", "posterior", these with unlabelled windows, "convex",
    "paper", the variants of these and the user's own estimators, next to the first of "lda",
    "target" and the others, but not the oracle. The first sentence has below thirty words. The last
    is about the smallest budget at which both have an accuracy; where that is not the smallest of
    all, it says so. All numbers of it are of the tasks on which both have one.

    Parameters
    ----------
    rows : DataFrame or StudyResult
        Rows of a study, or of several; a result also knows how long its windows take.
    accuracy, share : float, default=0.75 and 0.8
        Balanced accuracy that this proportion of people must reach.

    Returns
    -------
    str
        Two or three sentences.

    Examples
    --------
    >>> from crossfade.simulate import simulate_tasks
    >>> from crossfade.study import CalibrationStudy
    >>> from crossfade.study import verdict
    >>> tasks = simulate_tasks(8, n_features=3, random_state=0)
    >>> study = CalibrationStudy(
    ...     tasks, methods=["target", "posterior"], budgets=[2, 4], n_splits=20, random_state=0
    ... )
    >>> print(verdict(study.run(), accuracy=0.7))
    With the posterior blend, 80 % of people reach an accuracy of 0.7 after ...
    """
    result = rows if isinstance(rows, StudyResult) else StudyResult(check_rows(rows))
    parts = [*lead(result, accuracy, share), details(result.rows)]
    return " ".join(parts)


def lead(result: StudyResult, accuracy: float, share: float) -> list[str]:
    """How many windows a new person needs, and how many with the rival; nothing where unknown."""
    rows = check_rows(result.rows)
    found = rows[rows["balanced_accuracy"].notna()]
    curve = [not isinstance(budget_of(one), tuple) for one in found["budget"]]
    if found.empty or not any(curve):
        return []
    method, against = rivals(list(dict.fromkeys(found["method"])))
    used = replace(result, rows=rows[rows["method"].isin([method, against])])
    table = used.needed(accuracy, share).set_index("method")
    if method not in table.index or not table.loc[method, "n_people"]:
        return []
    line: Any = table.loc[method]
    most = _most(found[curve])
    percent = f"{100.0 * share:.3g} %"
    name = _label(method)
    if line["bound"] == ">":
        there = f"{100.0 * line['reached']:.0f} %"
        do = "does" if most.startswith("1 window ") else "do"
        first = (
            f"{most} {do} not bring {percent} of people to an accuracy of {accuracy:g}: with "
            f"{name}, {there} get there."
        )
        if not found.loc[curve, "budget"].any():
            first = (
                f"Without a label, {there} of people, not {percent}, reach an accuracy of "
                f"{accuracy:g} with {name}."
            )
    else:
        first = (
            f"With {name}, {percent} of people reach an accuracy of {accuracy:g} {_after(line)}."
        )
    if against is None or against not in table.index or not table.loc[against, "n_people"]:
        return [first]
    other: Any = table.loc[against]
    return [first, f"With {_label(against)}, {_rival(line, other, percent)}."]


def _most(found: pd.DataFrame) -> str:
    """The largest budget, in words."""
    largest = found["budget"].max()
    if (found["budget"] % 1.0 == 0.0).all():
        return _each(largest, largest)
    return _each(np.nan, found.groupby("budget")["n_labelled"].median().max())


def _each(windows: float, total: float) -> str:
    """So many windows of each class, or, where classes are not known, of all together."""
    if np.isfinite(windows):
        return f"{windows:g} window{'s' if windows != 1 else ''} of each class"
    return f"{total:g} labelled window{'s' if total != 1 else ''}"


def _after(line: pd.Series) -> str:
    """After how many windows, with their interval."""
    if not line["total"]:
        text = "before the first label"
    else:
        at_most = "at most " if line["bound"] == "<=" else ""
        text = f"after {at_most}{_each(line['windows'], line['total'])}"
        if np.isfinite(line["seconds"]):
            text += f", {duration(line['seconds'])} in all"
    low, high = line["low"], line["high"]
    # All people may have to be the same to tell; then there is nothing between.
    if not np.isfinite(low) or low == high:
        return text
    return f"{text} (95 % interval {low:g} {f'to {high:g}' if np.isfinite(high) else 'or more'})"


def duration(seconds: float) -> str:
    """A time as people say it."""
    return f"{seconds:.0f} s" if seconds < 120.0 else f"{seconds / 60.0:.0f} min"


def _rival(own: pd.Series, line: pd.Series, percent: str) -> str:
    if line["bound"] == ">":
        there = f"{100.0 * line['reached']:.0f} %"
        return f"{there} do" if own["bound"] == ">" else f"{there} reach it at all, not {percent}"
    if not line["total"]:
        return "none is needed, either" if not own["total"] else "none is needed"
    at_most = "at most " if line["bound"] == "<=" else ""
    return f"it takes {at_most}{_each(line['windows'], line['total'])}"


def details(rows: pd.DataFrame) -> str:
    """What the fewest labelled windows are worth, in one sentence."""
    rows = check_rows(rows)
    means = by_task(rows)
    found = means[means["balanced_accuracy"].notna()]
    if found.empty:
        return f"No method has an accuracy: all {len(rows)} splits failed."
    method, against = rivals(list(dict.fromkeys(found["method"])))
    own = found[found["method"] == method]
    if against is not None:
        cell = ["task", "group", "budget"]
        shared = own.merge(found.loc[found["method"] == against, cell], on=cell)
        own, against = (shared, against) if len(shared) else (own, None)
    windows = own.groupby("budget")["n_labelled"].median()
    budget = float(windows.index[int(windows.argmin())])
    own = own[own["budget"] == budget]
    both = means[means["method"].isin([method, against])]
    lacking = _lacking(both, method, against, float(windows.min()))
    n_left_out = len(both[both["budget"] == budget].drop_duplicates(["task", "group"])) - len(own)
    used = rows.merge(own[["task", "group"]], on=["task", "group"])
    used = used[used["method"].isin([method, against])]
    nouns = "participants" if own["group"].nunique() == len(own) else "tasks"
    noun = nouns if len(own) > 1 else nouns[:-1]
    line = _line(summarise(used[used["method"] == method]), budget)
    interval = f" (95 % interval {line['low']:.3f} to {line['high']:.3f})"
    sentence = (
        f"{_windows(own['n_labelled'], budget)}, {_label(method)} has a mean balanced "
        f"accuracy of {line['mean']:.3f}{interval if np.isfinite(line['low']) else ''}"
    )
    left_out = f", {n_left_out} left out" if n_left_out else ""
    if against is None:
        return f"{sentence} over {len(own)} {noun}{left_out}{lacking}."
    return (
        f"{sentence}, {_difference(used, method, against, budget, noun + left_out)}"
        f"{_labels(used, method, against, budget)}{lacking}."
    )


def rivals(names: Sequence[str]) -> tuple[str, str | None]:
    """Whom a sentence is about, and whom they are compared with, if there is anybody.

    The first of the new methods, or else of the user's own; the first of their rivals.
    """
    new, rival, bound = ([one.name for one in by_role(role)] for role in ("new", "rival", "bound"))
    new += [name for name in names if name not in METHODS]
    method = next(name for name in (*new, *rival, *bound) if name in names)
    usual = (name for name in (*rival, *new) if name in names and name != method)
    return method, next(usual, None)


def _label(name: str) -> str:
    return METHODS[name].spoken if name in METHODS else name


def _lacking(both: pd.DataFrame, method: str, against: str | None, n_labelled: float) -> str:
    """Who failed with fewer windows, where somebody was given fewer."""
    windows = both.groupby("budget")["n_labelled"].median()
    fewer = both[both["budget"].isin(windows.index[windows < n_labelled])]
    if fewer.empty:
        return ""
    # Who has no rows there has not tried: before the first label many cannot.
    able = set(fewer.loc[fewer["balanced_accuracy"].notna(), "method"])
    tried = set(fewer["method"])
    both_names = [name for name in (method, against) if name is not None]
    names = [_label(name) for name in both_names if name in tried and name not in able]
    if not names and tried < set(both_names):
        return ""
    if not names:
        return "; with fewer windows there is no task on which both have an accuracy"
    return f"; {' and '.join(names)} failed with fewer windows"


def _line(table: pd.DataFrame, budget: float) -> pd.Series:
    return table[table["budget"] == budget].iloc[0]


def _windows(n_labelled: pd.Series[float], budget: float) -> str:
    least, most = n_labelled.min(), n_labelled.max()
    count = f"{least:.0f}" if least == most else f"{least:.0f} to {most:.0f}"
    if not budget:
        return "Without a labelled window"
    share = budget_text(budget)
    if budget < 1.0:
        share += " of the smallest class, from each class"
    return f"With {count} labelled windows ({share})"


def _difference(
    used: pd.DataFrame, method: str, against: str, budget: float, participants: str
) -> str:
    table = compare(used, against, [method])
    line = _line(table, budget)
    more = round(line["mean_difference"], 3)
    how_much = f"{abs(more):.3f} {'more' if more > 0.0 else 'less'} than" if more else "as much as"
    test = ""
    if np.isfinite(line["p_holm"]):
        n_tests = int(table["p_value"].notna().sum())
        corrected = f" after Holm's correction for {n_tests} budgets" if n_tests > 1 else ""
        test = f"; one-sided p {p_text(line['p_holm'], '= ')}{corrected}"
    equal = f", equal for {line['ties']}" if line["ties"] else ""
    return (
        f"{how_much} {_label(against)} "
        f"(better for {line['wins']} of {line['n_tasks']} {participants}{equal}{test})"
    )


def _labels(used: pd.DataFrame, method: str, against: str, budget: float) -> str:
    """What the other needs for the same; nothing where that was not measured on these tasks."""
    if isinstance(budget_of(budget), tuple):
        return ""
    line = _line(labels_saved(used, against, method), budget)
    given = used.loc[used["method"] == against, "n_labelled"]
    if line["n_left_out"] or given.min() == given.max():
        return ""
    name = _label(against)
    if line["bound"] == ">":
        return f"; {name} does not reach that with up to {line['needed']:.0f}"
    if line["bound"] == "<=":
        return f"; {name} needs at most {line['needed']:.0f} for the same"
    return f"; {name} needs {line['needed'] / line['n_labelled']:.1f} times as many for the same"

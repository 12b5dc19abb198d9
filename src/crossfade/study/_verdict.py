"""What the smallest calibration of a study is worth, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from crossfade.study._budgets import budget_text
from crossfade.study._methods import METHODS, by_role
from crossfade.study._resampling import by_task, check_rows
from crossfade.study.statistics import compare, labels_saved, p_text, summarise

if TYPE_CHECKING:
    import pandas as pd


def verdict(rows: pd.DataFrame) -> str:
    """Sum up a study in one sentence.

    It is about the first of "posterior", "posterior-unlabelled", "convex", "paper", the variants of
    these and the user's own estimators, next to the first of "lda", "target" and the others, but
    not the oracle, and about the smallest budget at which both have an accuracy; where that is not
    the smallest of all, it says so. All numbers are of the tasks on which both have one.

    Parameters
    ----------
    rows : DataFrame
        Rows of a study, or of several.

    Returns
    -------
    str
        The sentence.

    Examples
    --------
    >>> from crossfade.simulate import simulate_tasks
    >>> from crossfade.study import CalibrationStudy
    >>> from crossfade.study import verdict
    >>> tasks = simulate_tasks(8, n_features=3, random_state=0)
    >>> study = CalibrationStudy(
    ...     tasks, methods=["target", "posterior"], budgets=[2, 4], n_splits=20, random_state=0
    ... )
    >>> print(verdict(study.run().rows))
    With 4 labelled windows (2 of each class), the posterior blend has a mean balanced accuracy ...
    """
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

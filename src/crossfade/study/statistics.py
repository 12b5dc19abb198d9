"""How good each method is, how much better than another one, and how many labels it saves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import wilcoxon

from crossfade._typing import Array
from crossfade.study._forecasts import forecast_errors, reliability
from crossfade.study._resampling import (
    ROUNDING,
    by_task,
    cells,
    limits,
    log_needed,
    mean_limits,
    resampled_means,
)
from crossfade.study._splits import is_unequal

if TYPE_CHECKING:
    from crossfade.study._result import StudyResult

__all__ = [
    "compare",
    "forecast_errors",
    "labels_saved",
    "reliability",
    "summarise",
]


#: Columns of :func:`labels_saved`.
SAVED = [
    *("method", "against", "budget", "n_labelled", "n_tasks", "n_left_out", "accuracy"),
    *("needed", "bound", "saved", "share_saved", "low", "high"),
]


def summarise(rows: pd.DataFrame | StudyResult) -> pd.DataFrame:
    """Balanced accuracies over tasks, for each method and budget.

    Parameters
    ----------
    rows : DataFrame or StudyResult
        Rows of a study, or of several; a result is read a part at a time.

    Returns
    -------
    DataFrame
        For each `method` and `budget`: the median `n_labelled` over tasks; `n_tasks`, those with a
        split that did not fail, and `n_left_out`, those with which only other methods have one;
        `n_failed`, the splits that did fail; `mean` and `median` over tasks of
        the mean over splits; `low` and `high`, the 95 % interval of the mean, from 2,000 draws
        of as many participants, each with all of their tasks (NaN with fewer than five); the mean
        `alpha` and the mean `expected_accuracy`.

    Examples
    --------
    >>> from crossfade.simulate import simulate_tasks
    >>> from crossfade.study import CalibrationStudy
    >>> from crossfade.study.statistics import compare, summarise
    >>> tasks = simulate_tasks(8, n_features=3, random_state=0)
    >>> study = CalibrationStudy(
    ...     tasks, methods=["target", "posterior"], budgets=[2], n_splits=20, random_state=0
    ... )
    >>> rows = study.run().rows
    >>> summarise(rows)[["method", "n_labelled", "n_tasks"]]
          method  n_labelled  n_tasks
    0     target         4.0        8
    1  posterior         4.0        8
    >>> bool(compare(rows, against="target")["mean_difference"].item() > 0.0)
    True
    """
    means = by_task(rows)
    able = means[means["balanced_accuracy"].notna()].drop_duplicates(["task", "group", "budget"])
    n_able = able["budget"].value_counts()
    lines: list[dict[str, Any]] = []
    for method, budget, part in cells(means):
        found = part[part["balanced_accuracy"].notna()]
        accuracy = found["balanced_accuracy"]
        low, high = mean_limits(accuracy.to_numpy(), found["group"].to_numpy())
        lines.append(
            {
                "method": method,
                "budget": budget,
                "n_labelled": part["n_labelled"].median(),
                "n_tasks": len(found),
                "n_left_out": int(n_able.get(budget, 0)) - len(found),
                "n_failed": int(part["n_failed"].sum()),
                "mean": accuracy.mean(),
                "median": accuracy.median(),
                "low": low,
                "high": high,
                "alpha": part["alpha"].mean(),
                "expected_accuracy": part["expected_accuracy"].mean(),
            }
        )
    return pd.DataFrame(lines)


def compare(
    rows: pd.DataFrame | StudyResult,
    against: str = "target",
    methods: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Differences of balanced accuracy between methods and one other, task by task.

    The test is Wilcoxon's signed-rank, one-sided: is the method better? Like the paper's it takes
    tasks for independent; the interval does not, where a participant has several.

    Parameters
    ----------
    rows : DataFrame or StudyResult
        Rows of a study, or of several; a result is read a part at a time.
    against : str, default="target"
        Method to compare with.
    methods : sequence of str, optional
        Methods to compare; all others by default.

    Returns
    -------
    DataFrame
        For each `method` and each `budget` of both: the median `n_labelled`; `n_tasks`, on which
        both have an accuracy, and `n_left_out`, on which only one has or both failed; `wins`,
        `ties` and `losses` of the method; `mean_difference` with the `low` and `high` of its 95 %
        interval over participants, `median_difference`, `max_difference`, `min_difference`;
        `p_value`, one if there is no difference anywhere and NaN with fewer than two tasks;
        `p_holm`, the same corrected for the budgets of the method.
    """
    means = by_task(rows)
    _check_methods(means, against)
    if methods is None:
        methods = [name for name in dict.fromkeys(means["method"]) if name != against]
    parts = [_compare_one(means, name, against) for name in methods]
    if not parts:
        return pd.DataFrame(columns=_DIFFERENCES)
    return pd.concat(parts, ignore_index=True)


_DIFFERENCES = [
    *("method", "against", "budget", "n_labelled", "n_tasks", "n_left_out"),
    *("wins", "ties", "losses", "mean_difference", "low", "high"),
    *("median_difference", "max_difference", "min_difference", "p_value", "p_holm"),
]


def _compare_one(means: pd.DataFrame, method: str, against: str) -> pd.DataFrame:
    _check_methods(means, method, against)
    same = ["task", "group", "budget"]
    columns = [*same, "n_labelled", "balanced_accuracy"]
    own, other = (means.loc[means["method"] == name, columns] for name in (method, against))
    pairs = own.merge(other, on=same, how="outer", suffixes=("", "_against"))
    pairs["difference"] = pairs["balanced_accuracy"] - pairs["balanced_accuracy_against"]
    lines: list[dict[str, Any]] = []
    # Before the first label many methods say nothing, which is not a failure.
    for budget in sorted(set(own["budget"]) & set(other["budget"])):
        part = pairs[pairs["budget"] == budget]
        both = part[part["difference"].notna()]
        difference = both["difference"]
        low, high = mean_limits(difference.to_numpy(), both["group"].to_numpy())
        wins, losses = (int((sign * difference > ROUNDING).sum()) for sign in (1.0, -1.0))
        lines.append(
            {
                "method": method,
                "against": against,
                "budget": budget,
                "n_labelled": part["n_labelled"].median(),
                "n_tasks": len(both),
                "n_left_out": len(part) - len(both),
                "wins": wins,
                "ties": len(both) - wins - losses,
                "losses": losses,
                "mean_difference": difference.mean(),
                "low": low,
                "high": high,
                "median_difference": difference.median(),
                "max_difference": difference.max(),
                "min_difference": difference.min(),
                "p_value": _p_greater(difference.to_numpy()),
            }
        )
    table = pd.DataFrame(lines, columns=_DIFFERENCES)
    table["p_holm"] = holm(table["p_value"])
    return table


def _p_greater(difference: Array) -> float:
    if difference.size < 2:
        return np.nan
    # Equal differences must have equal ranks; without zeros small samples have an exact test.
    difference = difference.round(12)
    difference = difference[difference != 0.0]
    if not difference.size:
        return 1.0
    return float(wilcoxon(difference, alternative="greater").pvalue)


def holm(p: ArrayLike) -> Array:
    """Correct p-values (n_tests,) by Holm's step-down method; NaN does not count as a test."""
    values = np.asarray(p, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[values[tested].argsort(kind="stable")]
    corrected = np.full(values.size, np.nan)
    steps = values[order] * np.arange(order.size, 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected


def p_text(p: float, equals: str = "") -> str:
    """A p-value with two significant digits; a dash for NaN; `equals` where it has no "<"."""
    if not np.isfinite(p):
        return "–"
    return "< 0.0001" if p < 1e-4 else f"{equals}{p:.2g}" if p < 0.1 else f"{equals}{p:.2f}"


def labels_saved(
    rows: pd.DataFrame | StudyResult,
    method: str = "posterior",
    against: str = "lda",
) -> pd.DataFrame:
    """How many fewer labelled windows a method needs for the accuracy of another.

    The mean accuracies of `method` are made monotone in the number of labelled windows (isotonic
    regression), and joined by straight lines in its logarithm. Budgets at which a method failed on
    all tasks are left out, and so are unequal numbers of windows; means are over the tasks on which
    both have an accuracy at all other budgets.

    Parameters
    ----------
    rows : DataFrame or StudyResult
        Rows of a study, or of several; a result is read a part at a time.
    method : str, default="posterior"
        Method that may need fewer.
    against : str, default="lda"
        Method that sets the accuracy.

    Returns
    -------
    DataFrame
        For each `budget` of `against`: its `n_labelled`, the median over tasks; `n_tasks` and
        `n_left_out`; its mean `accuracy`; `needed`, the labelled windows with which `method` has
        the same; `bound`: "=", or "<=" if already its smallest budget does, or ">" if not even its
        largest does, which is then `needed`; `saved`, the difference to `n_labelled`, and
        `share_saved` of it; `low` and `high`, the 95 % interval of `saved` over participants, NaN
        beyond the budgets of `method`. All NaN, and `bound` empty, where no task has all budgets.
    """
    means = by_task(rows)
    _check_methods(means, method, against)
    means = means[means["method"].isin([method, against])]
    means = means[[not is_unequal(one) for one in means["budget"]]]
    tasks = _learning_curves(means, "balanced_accuracy")
    # A method that always fails with one window of each class still has a curve beyond.
    accuracies = tasks.dropna(axis="columns", how="all").dropna()
    windows = _learning_curves(means, "n_labelled").loc[accuracies.index, accuracies.columns]
    own = accuracies.columns.get_level_values("method") == method
    n_labelled = windows.median().to_numpy()
    own_windows, their_windows = n_labelled[own], n_labelled[~own]
    table = pd.DataFrame(
        {
            "method": method,
            "against": against,
            "budget": accuracies.columns.get_level_values("budget")[~own],
            "n_labelled": their_windows,
            "n_tasks": len(accuracies),
            "n_left_out": len(tasks) - len(accuracies),
            "bound": "",
        }
    ).reindex(columns=SAVED)
    if accuracies.empty or not own.any():
        return table
    values, groups = accuracies.to_numpy(), accuracies.index.get_level_values("group").to_numpy()
    # First as it is, then as it would be with other participants.
    curves = np.vstack([values.mean(0), resampled_means(values, groups)])
    logs = log_needed(own_windows, curves[:, own], curves[:, ~own])
    least, most = limits(logs[1:], np.unique(groups).size)
    smallest, largest = own_windows.min(), own_windows.max()
    beyond = [np.isneginf(logs[0]), np.isposinf(logs[0])]
    least = np.where(np.isneginf(least), np.nan, np.minimum(np.exp(least), largest))
    most = np.where(np.isposinf(most), np.nan, np.maximum(np.exp(most), smallest))
    table["accuracy"] = curves[0, ~own]
    table["needed"] = np.clip(np.exp(logs[0]), smallest, largest)
    table["bound"] = np.select(beyond, ["<=", ">"], "=")
    table["saved"] = their_windows - table["needed"]
    table["share_saved"] = table["saved"] / np.maximum(their_windows, 1.0)
    table["low"], table["high"] = their_windows - most, their_windows - least
    return table


def _learning_curves(means: pd.DataFrame, column: str) -> pd.DataFrame:
    """One row for each task, one column for each method and budget, smallest first."""
    wide = means.pivot(index=["task", "group"], columns=["method", "budget"], values=column)
    return wide.sort_index(axis=1)


def _check_methods(means: pd.DataFrame, *methods: str) -> None:
    names = list(dict.fromkeys(means["method"]))
    if len(set(methods)) < len(methods) or not set(methods) <= set(names):
        raise ValueError(
            f"Methods to compare must be different ones of {', '.join(map(repr, names))}; got "
            f"{', '.join(map(repr, methods))}."
        )

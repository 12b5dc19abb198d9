"""Means over the splits of each task, intervals over participants by resampling, curves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm, t

from crossfade._typing import Array
from crossfade.study._batch import INTERVALS

if TYPE_CHECKING:
    from crossfade.study._result import StudyResult


#: Columns that name a row, and those that are averaged over its splits.
KEYS = ["task", "group", "method", "budget"]
SCORES = [
    *("balanced_accuracy", "accuracy", "roc_auc", "brier", "log_loss", "alpha"),
    "expected_accuracy",
]
#: Accuracies that differ by less are the same: sums in another order make such differences.
ROUNDING = 1e-12

N_RESAMPLES = 2000
#: With fewer participants no resampling covers what it should: 0.87 of 0.95 with four.
_FEWEST = 5
#: Numbers that one array of resampled participants may hold.
LARGEST = 2_000_000


def check_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Columns that statistics use, names as strings and numbers as floats, in a new frame."""
    missing = [name for name in (*KEYS, "n_labelled", "balanced_accuracy") if name not in rows]
    if missing or not len(rows):
        raise ValueError(
            f"rows must be those of a study; missing: {', '.join(missing) or 'all of them'}. Pass "
            "result.rows."
        )
    used = [*KEYS, "n_labelled", *SCORES, *sum(INTERVALS.values(), ())]
    # Names may be numbers in the rows of one study and text in those of another.
    kinds = dict.fromkeys(used, np.float64) | dict.fromkeys(KEYS[:3], str)
    return rows.reindex(columns=used).astype(kinds)


def by_task(rows: pd.DataFrame | StudyResult) -> pd.DataFrame:
    """Means over splits, for each task, method and budget; means themselves stay as they are."""
    if not isinstance(rows, pd.DataFrame):
        return rows.means.copy()
    if {"n_splits", "n_failed"} <= set(rows.columns):
        return rows.copy()
    grouped = check_rows(rows).groupby(KEYS, sort=False, observed=True)
    table = grouped[["n_labelled", *SCORES]].mean()
    table.insert(1, "n_splits", grouped.size())
    table.insert(2, "n_failed", grouped.size() - grouped["balanced_accuracy"].count())
    return table.reset_index()


def cells(means: pd.DataFrame) -> Iterator[tuple[str, float, pd.DataFrame]]:
    """Tasks of each method, in the order of the rows, and of each budget, smallest first."""
    for method, part in means.groupby("method", sort=False):
        for budget, own in part.groupby("budget"):
            yield str(method), float(budget), own  # type: ignore[arg-type]


def resampled_means(values: Array, groups: NDArray[Any]) -> Array:
    """Means (2000, n_columns) over tasks when participants (n_tasks,) are drawn anew."""
    names, which = np.unique(groups, return_inverse=True)
    sums = np.zeros((names.size, values.shape[1] + 1))
    np.add.at(sums, which, np.column_stack([values, np.ones(len(values))]))
    # Statistics repeat: the same rows have the same intervals.
    rng = np.random.default_rng(0)
    means = np.empty((N_RESAMPLES, values.shape[1]))
    at_once = max(1, LARGEST // names.size)
    for first in range(0, N_RESAMPLES, at_once):
        part = means[first : first + at_once]
        shape = len(part), names.size
        drawn = rng.integers(names.size, size=shape) + names.size * np.arange(len(part))[:, None]
        times = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(shape)
        totals = times @ sums
        part[:] = totals[:, :-1] / totals[:, -1:]
    return means


def limits(draws: Array, n_groups: int) -> tuple[Array, Array]:
    """Ends of the 95 % interval of draws (n_resamples, ...); NaN with fewer than five groups."""
    # Plain percentiles cover 0.92 with 14 people. These are the percentiles at which a normal
    # sample's interval is Student's (Hesterberg, The American Statistician 69, 2015).
    if n_groups < _FEWEST:
        unknown = np.full(draws.shape[1:], np.nan)
        return unknown, unknown
    tail = norm.cdf(np.sqrt(n_groups / (n_groups - 1.0)) * t.ppf(0.025, n_groups - 1))
    outside = int(tail * len(draws))
    ordered = np.sort(draws, axis=0)
    return ordered[outside], ordered[-1 - outside]


def mean_limits(values: Array, groups: NDArray[Any]) -> tuple[float, float]:
    """Ends of the 95 % interval of the mean of `values` (n_tasks,)."""
    if not values.size:
        return np.nan, np.nan
    draws = resampled_means(values[:, None], groups)
    low, high = limits(draws, np.unique(groups).size)
    return float(low[0]), float(high[0])


def log_needed(n_labelled: Array, curves: Array, accuracy: Array) -> Array:
    """Log of the windows at which curves reach accuracies; inf beyond the largest, -inf below."""
    windows, which = np.unique(n_labelled, return_inverse=True)
    # Budgets that come to as many windows are one point of the curve.
    weights = np.eye(windows.size)[which]
    curves = _isotonic(curves @ weights / weights.sum(0))
    reached = curves[:, None, :] >= accuracy[..., None] - ROUNDING
    above = np.maximum(reached.argmax(-1), 1)
    below = above - 1
    if windows.size > 1:
        low, high = (np.take_along_axis(curves, place, 1) for place in (below, above))
        rise = np.where(high > low, high - low, 1.0)
        share = np.clip((accuracy - low) / rise, 0.0, 1.0)
        log = np.log(np.maximum(windows, 1.0))
        between = log[below] + share * (log[above] - log[below])
    else:
        between = np.full(accuracy.shape, np.inf)
    return np.where(reached[..., 0], -np.inf, np.where(reached.any(-1), between, np.inf))


def _isotonic(curves: Array) -> Array:
    """Nearest curves that never fall: at i, max over a <= i of min over b >= i of mean(a..b)."""
    place = np.arange(curves.shape[1])
    length = place + 1 - place[:, None]
    total = np.pad(curves.cumsum(1), ((0, 0), (1, 0)))
    mean = (total[:, None, 1:] - total[:, :-1, None]) / np.where(length > 0, length, 1)
    lowest = np.minimum.accumulate(mean[..., ::-1], axis=-1)[..., ::-1]
    return np.where(length > 0, lowest, -np.inf).max(1)

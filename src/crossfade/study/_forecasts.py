"""Forecasts of the accuracy against what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfade._validate import check_integer
from crossfade.study._resampling import ROUNDING, cells, check_rows

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


def reliability(rows: pd.DataFrame, n_bins: int = 10) -> pd.DataFrame:
    """Forecasts of the accuracy against what happened, for splits with like forecasts.

    Parameters
    ----------
    rows : DataFrame
        Rows of a study, or of several.
    n_bins : int, default=10
        Bins of equal width from 0.5 to 1; forecasts below 0.5 have a bin of their own.

    Returns
    -------
    DataFrame
        For each `method` with forecasts and each bin that has any, from `at_least` to `below`: mean
        `forecast`, mean `outcome` (balanced accuracy) and its `standard_error` over participants
        (NaN with one), `n_splits` and `n_groups`.
    """
    import pandas as pd

    edges = np.concatenate([[0.0], np.linspace(0.5, 1.0, check_integer("n_bins", n_bins, 1) + 1)])
    both = _with_forecast(rows)
    # The last bin has both of its ends.
    both["bin"] = np.clip(np.searchsorted(edges, both["expected_accuracy"], "right"), 1, n_bins + 1)
    lines: list[dict[str, Any]] = []
    for method in dict.fromkeys(both["method"]):
        for place, part in both[both["method"] == method].groupby("bin"):
            top = int(str(place))
            outcome = part["balanced_accuracy"].mean()
            excess = (part["balanced_accuracy"] - outcome).groupby(part["group"]).sum()
            n_groups = len(excess)
            spread = (
                np.sqrt((excess**2).sum() * n_groups / (n_groups - 1)) if n_groups > 1 else np.nan
            )
            lines.append(
                {
                    "method": method,
                    "at_least": edges[top - 1],
                    "below": edges[top],
                    "forecast": part["expected_accuracy"].mean(),
                    "outcome": outcome,
                    "standard_error": spread / len(part),
                    "n_splits": len(part),
                    "n_groups": n_groups,
                }
            )
    columns = ["method", "at_least", "below", "forecast", "outcome", "standard_error"]
    return pd.DataFrame(lines, columns=[*columns, "n_splits", "n_groups"])


def forecast_errors(rows: pd.DataFrame) -> pd.DataFrame:
    """How far off the forecasts of single calibrations are, and what a constant would be off by.

    A person has one calibration, so that errors are of single rows; means over the splits of a task
    would hide most of them. The constant forecast quotes the mean accuracy of the other people, of
    the same method and budget.

    Parameters
    ----------
    rows : DataFrame
        Rows of a study, or of several.

    Returns
    -------
    DataFrame
        For each `method` with forecasts and each `budget`: median `n_labelled`, `n_tasks` and
        `n_splits`, the calibrations of all tasks; over these, mean `forecast` and `outcome`
        (balanced accuracy), `bias` (forecast minus outcome), `rms`, the root of the mean square of
        the error, `absolute_error`, the mean of its size, and `correlation`, NaN with fewer than
        three or where either does not vary; `coverage_68` and `coverage_90`, how often the
        forecast's intervals hold the outcome, NaN without intervals; `constant_rms` and
        `constant_absolute_error`, those of the constant forecast, NaN with one person.

    Examples
    --------
    >>> from crossfade.simulate import simulate_tasks
    >>> from crossfade.study import CalibrationStudy, forecast_errors
    >>> tasks = simulate_tasks(8, n_features=3, random_state=0)
    >>> study = CalibrationStudy(
    ...     tasks, methods=["posterior"], budgets=[2], n_splits=20, random_state=0
    ... )
    >>> table = forecast_errors(study.run().rows)
    >>> table[["method", "n_tasks", "n_splits"]]
          method  n_tasks  n_splits
    0  posterior        8       160
    """
    import pandas as pd

    both = _with_forecast(rows)
    lines: list[dict[str, Any]] = []
    for method, budget, part in cells(both):
        forecast, outcome = (
            part[name].to_numpy() for name in ("expected_accuracy", "balanced_accuracy")
        )
        off, constant = forecast - outcome, _mean_of_others(part) - outcome
        # Without a label it is the mean of the others, which falls as one's own accuracy rises.
        labelled = part["n_labelled"].max() > 0
        varies = labelled and len(part) > 2 and min(np.ptp(forecast), np.ptp(outcome)) > ROUNDING
        lines.append(
            {
                "method": method,
                "budget": budget,
                "n_labelled": part.groupby("task")["n_labelled"].first().median(),
                "n_tasks": part["task"].nunique(),
                "n_splits": len(part),
                "forecast": forecast.mean(),
                "outcome": outcome.mean(),
                "bias": off.mean(),
                "rms": np.sqrt((off**2).mean()),
                "absolute_error": np.abs(off).mean(),
                "correlation": np.corrcoef(forecast, outcome)[0, 1] if varies else np.nan,
                "coverage_68": _coverage(part, 68),
                "coverage_90": _coverage(part, 90),
                "constant_rms": np.sqrt((constant**2).mean()),
                "constant_absolute_error": np.abs(constant).mean(),
            }
        )
    return pd.DataFrame(lines, columns=_ERRORS)


_ERRORS = [
    *("method", "budget", "n_labelled", "n_tasks", "n_splits", "forecast", "outcome", "bias"),
    *("rms", "absolute_error", "correlation", "coverage_68", "coverage_90"),
    *("constant_rms", "constant_absolute_error"),
]


def _mean_of_others(part: pd.DataFrame) -> Array:
    """For each row the mean accuracy of the other people, each of them once; NaN without any."""
    tasks = part.groupby(["group", "task"])["balanced_accuracy"].mean()
    people = tasks.groupby("group").mean()
    n_others = len(people) - 1
    if not n_others:
        return np.full(len(part), np.nan)
    others: Array = ((people.sum() - people) / n_others).reindex(part["group"]).to_numpy()
    return others


def _coverage(part: pd.DataFrame, percent: int) -> float:
    """How often the interval holds the outcome, of the rows that have one."""
    lower, upper = part[f"lower_{percent}"], part[f"upper_{percent}"]
    there = lower.notna() & upper.notna()
    if not there.any():
        return np.nan
    outcome = part.loc[there, "balanced_accuracy"]
    # An end at an accuracy that can be reached holds it, whatever rounding says.
    inside = (outcome >= lower[there] - ROUNDING) & (outcome <= upper[there] + ROUNDING)
    return float(inside.mean())


def _with_forecast(rows: pd.DataFrame) -> pd.DataFrame:
    rows = check_rows(rows)
    return rows[rows["expected_accuracy"].notna() & rows["balanced_accuracy"].notna()].copy()

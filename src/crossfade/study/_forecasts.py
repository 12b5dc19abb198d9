"""Forecasts of the accuracy against what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade._validate import check_integer
from crossfade.study._resampling import ROUNDING, by_task, cells, check_rows

if TYPE_CHECKING:
    import pandas as pd


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
    """Forecasts of the accuracy against what happened, task by task.

    Parameters
    ----------
    rows : DataFrame
        Rows of a study, or of several.

    Returns
    -------
    DataFrame
        For each `method` with forecasts and each `budget`: median `n_labelled`, `n_tasks`, mean
        `forecast` and `outcome` (balanced accuracy), `bias` (forecast minus outcome),
        `absolute_error`, the mean over tasks of the error of the task's mean forecast, and
        `correlation` over tasks, NaN with fewer than three or where either does not vary.
    """
    import pandas as pd

    both = _with_forecast(rows)
    lines: list[dict[str, Any]] = []
    for method, budget, part in cells(by_task(both)) if len(both) else ():
        forecast, outcome = part["expected_accuracy"], part["balanced_accuracy"]
        varies = len(part) > 2 and min(np.ptp(forecast), np.ptp(outcome)) > ROUNDING
        lines.append(
            {
                "method": method,
                "budget": budget,
                "n_labelled": part["n_labelled"].median(),
                "n_tasks": len(part),
                "forecast": forecast.mean(),
                "outcome": outcome.mean(),
                "bias": (forecast - outcome).mean(),
                "absolute_error": (forecast - outcome).abs().mean(),
                "correlation": np.corrcoef(forecast, outcome)[0, 1] if varies else np.nan,
            }
        )
    columns = ["method", "budget", "n_labelled", "n_tasks", "forecast", "outcome"]
    return pd.DataFrame(lines, columns=[*columns, "bias", "absolute_error", "correlation"])


def _with_forecast(rows: pd.DataFrame) -> pd.DataFrame:
    rows = check_rows(rows)
    return rows[rows["expected_accuracy"].notna() & rows["balanced_accuracy"].notna()].copy()

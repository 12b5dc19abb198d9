"""Forecasts of the accuracy against what happened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from crossfade.study._resampling import KEYS, ROUNDING, cells, check_rows

if TYPE_CHECKING:
    from crossfade.study._result import StudyResult


#: Ends of the bins of forecasts.
_EDGES = np.array([0.0, *np.linspace(0.5, 1.0, 11)])


def _parts_with_forecast(rows: pd.DataFrame | StudyResult) -> Iterator[pd.DataFrame]:
    """Rows with a forecast and an outcome, a part at a time."""
    for part in [rows] if isinstance(rows, pd.DataFrame) else rows.parts():
        checked = check_rows(part)
        known = checked["expected_accuracy"].notna() & checked["balanced_accuracy"].notna()
        yield checked[known].rename(columns={"expected_accuracy": "f", "balanced_accuracy": "o"})


def reliability(rows: pd.DataFrame | StudyResult) -> pd.DataFrame:
    """Forecasts of the accuracy against what happened, for splits with similar forecasts.

    Parameters
    ----------
    rows : DataFrame or StudyResult
        Rows of a study, or of several; a result is read a part at a time.

    Returns
    -------
    DataFrame
        For each `method` with forecasts and each of ten bins from 0.5 to 1, or below 0.5, that has
        any, from `at_least` to `below`: mean `forecast`, mean `outcome` (balanced accuracy) and its
        `standard_error` over participants (NaN with one), `n_splits` and `n_groups`.
    """
    sums = []
    for part in _parts_with_forecast(rows):
        # The last bin has both of its ends.
        places = np.clip(np.searchsorted(_EDGES, part["f"], "right"), 1, len(_EDGES) - 1)
        people = part.assign(bin=places).groupby(["method", "bin", "group"], sort=False)
        sums.append(people.agg(n=("o", "size"), f=("f", "sum"), o=("o", "sum")).reset_index())
    found = pd.concat(sums, ignore_index=True)
    lines: list[dict[str, Any]] = []
    for method in dict.fromkeys(found["method"]):
        for place, part in found[found["method"] == method].groupby("bin"):
            top = int(str(place))
            people = part.groupby("group")[["n", "f", "o"]].sum()
            n_splits, n_groups = int(people["n"].sum()), len(people)
            outcome = people["o"].sum() / n_splits
            excess = people["o"] - people["n"] * outcome
            scale = n_groups / (n_groups - 1) if n_groups > 1 else np.nan
            lines.append(
                {
                    "method": method,
                    "at_least": _EDGES[top - 1],
                    "below": _EDGES[top],
                    "forecast": people["f"].sum() / n_splits,
                    "outcome": outcome,
                    "standard_error": np.sqrt((excess**2).sum() * scale) / n_splits,
                    "n_splits": n_splits,
                    "n_groups": n_groups,
                }
            )
    columns = ["method", "at_least", "below", "forecast", "outcome", "standard_error"]
    return pd.DataFrame(lines, columns=[*columns, "n_splits", "n_groups"])


def forecast_errors(rows: pd.DataFrame | StudyResult) -> pd.DataFrame:
    """Errors of the forecasts of single calibrations, and those of a constant forecast.

    Errors are those of single rows, since a person has one calibration. The constant forecast is
    the mean accuracy of the other people, with the same method and budget.

    Parameters
    ----------
    rows : DataFrame or StudyResult
        Rows of a study, or of several; a result is read a part at a time.

    Returns
    -------
    DataFrame
        For each `method` with forecasts and each `budget`: median `n_labelled`, `n_tasks` and
        `n_splits`, the calibrations of all tasks; over these, mean `forecast` and `outcome`
        (balanced accuracy), `bias` (forecast minus outcome), `rms`, the root of the mean squared
        error, and `correlation`, NaN with fewer than three or where either does not vary;
        `coverage_68` and `coverage_90`, how often the forecast's intervals hold the outcome, NaN
        without intervals; `constant_rms`, that of the constant forecast, NaN with one person.

    Examples
    --------
    >>> from crossfade.simulate import simulate_tasks
    >>> from crossfade.study import CalibrationStudy
    >>> from crossfade.study.statistics import forecast_errors
    >>> tasks = simulate_tasks(8, n_features=3, random_state=0)
    >>> study = CalibrationStudy(
    ...     tasks, methods=["posterior"], budgets=[2], n_splits=20, random_state=0
    ... )
    >>> table = forecast_errors(study.run().rows)
    >>> table[["method", "n_tasks", "n_splits"]]
          method  n_tasks  n_splits
    0  posterior        8       160
    """
    tasks = pd.concat([_sums(part) for part in _parts_with_forecast(rows)], ignore_index=True)
    lines: list[dict[str, Any]] = []
    for method, budget, part in cells(tasks):
        n, n_splits = part["n"], part["n"].sum()
        # Sums over all rows, from those within each task and between tasks (Chan et al. 1983).
        forecast, outcome = ((n * part[name]).sum() / n_splits for name in "fo")
        off_f, off_o = part["f"] - forecast, part["o"] - outcome
        square_f = (part["ff"] + n * off_f**2).sum()
        square_o = (part["oo"] + n * off_o**2).sum()
        product = (part["fo"] + n * off_f * off_o).sum()
        constant = (part["oo"] + n * (_mean_of_others(part) - part["o"]) ** 2).sum(skipna=False)
        # Without a label it is the mean of the others, which falls as one's own accuracy rises.
        varies = part["n_labelled"].max() > 0 and n_splits > 2
        varies = varies and min(square_f, square_o) > n_splits * ROUNDING**2
        lines.append(
            {
                "method": method,
                "budget": budget,
                "n_labelled": part.drop_duplicates("task")["n_labelled"].median(),
                "n_tasks": part["task"].nunique(),
                "n_splits": int(n_splits),
                "forecast": forecast,
                "outcome": outcome,
                "bias": forecast - outcome,
                "rms": np.sqrt(part["square"].sum() / n_splits),
                "correlation": product / np.sqrt(square_f * square_o) if varies else np.nan,
                "coverage_68": _share(part["held_68"].sum(), part["known_68"].sum()),
                "coverage_90": _share(part["held_90"].sum(), part["known_90"].sum()),
                "constant_rms": np.sqrt(constant / n_splits),
            }
        )
    return pd.DataFrame(lines, columns=_ERRORS)


_ERRORS = [
    *("method", "budget", "n_labelled", "n_tasks", "n_splits", "forecast", "outcome", "bias"),
    *("rms", "correlation", "coverage_68", "coverage_90", "constant_rms"),
]


def _sums(both: pd.DataFrame) -> pd.DataFrame:
    """Means of each task, method and budget, sums of squares and products, and intervals."""
    tasks = both.groupby(KEYS, sort=False)
    off_f, off_o = (both[name] - tasks[name].transform("mean") for name in "fo")
    added = {
        "ff": off_f**2,
        "oo": off_o**2,
        "fo": off_f * off_o,
        "square": (both["f"] - both["o"]) ** 2,
    }
    for percent in (68, 90):
        lower, upper = both[f"lower_{percent}"], both[f"upper_{percent}"]
        known = lower.notna() & upper.notna()
        # An end at an accuracy that can be reached holds it, whatever rounding says.
        inside = (both["o"] >= lower - ROUNDING) & (both["o"] <= upper + ROUNDING)
        added |= {f"known_{percent}": known, f"held_{percent}": known & inside}
    keys = [both[name] for name in KEYS]
    means = tasks.agg(
        n_labelled=("n_labelled", "first"), n=("o", "size"), f=("f", "mean"), o=("o", "mean")
    )
    return means.join(pd.DataFrame(added).groupby(keys, sort=False).sum()).reset_index()


def _mean_of_others(tasks: pd.DataFrame) -> pd.Series[float]:
    """For each task the mean accuracy of the other people, each of them once; NaN without any."""
    people = tasks.groupby("group")["o"].mean()
    others = (people.sum() - people) / (len(people) - 1) if len(people) > 1 else people * np.nan
    return tasks["group"].map(others)


def _share(some: float, of: float) -> float:
    return float(some / of) if of else np.nan

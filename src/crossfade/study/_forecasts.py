"""Forecasts of the accuracy against what happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfade._validate import check_integer
from crossfade.study._resampling import KEYS, ROUNDING, cells, check_rows, parts_of

if TYPE_CHECKING:
    import pandas as pd

    from crossfade.study._result import StudyResult

Array = NDArray[np.float64]

#: With more bins than these none has two splits.
_MOST_BINS = 10_000


def reliability(rows: pd.DataFrame | StudyResult, n_bins: int = 10) -> pd.DataFrame:
    """Forecasts of the accuracy against what happened, for splits with similar forecasts.

    Parameters
    ----------
    rows : DataFrame or StudyResult
        Rows of a study, or of several; a result is read a part at a time.
    n_bins : int, default=10
        Bins of equal width from 0.5 to 1; forecasts below 0.5 have a bin of their own.

    Returns
    -------
    DataFrame
        For each `method` with forecasts and each bin that has any, from `at_least` to `below`: mean
        `forecast`, mean `outcome` (balanced accuracy) and its `standard_error` over participants
        (NaN with one), `n_splits` and `n_groups`.
    """
    n_bins = check_integer("n_bins", n_bins, 1, _MOST_BINS)
    return _once(rows, f"reliability {n_bins}", lambda: _reliability(rows, n_bins))


def _reliability(rows: pd.DataFrame | StudyResult, n_bins: int) -> pd.DataFrame:
    import pandas as pd

    edges = np.concatenate([[0.0], np.linspace(0.5, 1.0, n_bins + 1)])
    found = pd.concat([_in_bins(part, edges) for part in parts_of(rows)], ignore_index=True)
    lines: list[dict[str, Any]] = []
    for method in dict.fromkeys(found["method"]):
        for place, part in found[found["method"] == method].groupby("bin"):
            top = int(str(place))
            people = part.groupby("group")[["n", "forecast", "outcome"]].sum()
            n_splits, n_groups = int(people["n"].sum()), len(people)
            outcome = people["outcome"].sum() / n_splits
            excess = people["outcome"] - people["n"] * outcome
            spread = (
                np.sqrt((excess**2).sum() * n_groups / (n_groups - 1)) if n_groups > 1 else np.nan
            )
            lines.append(
                {
                    "method": method,
                    "at_least": edges[top - 1],
                    "below": edges[top],
                    "forecast": people["forecast"].sum() / n_splits,
                    "outcome": outcome,
                    "standard_error": spread / n_splits,
                    "n_splits": n_splits,
                    "n_groups": n_groups,
                }
            )
    columns = ["method", "at_least", "below", "forecast", "outcome", "standard_error"]
    return pd.DataFrame(lines, columns=[*columns, "n_splits", "n_groups"])


def _once(
    rows: pd.DataFrame | StudyResult, name: str, make: Callable[[], pd.DataFrame]
) -> pd.DataFrame:
    """Table of rows; that of a result is made once, since its rows may have to be read for it."""
    from crossfade.study._result import StudyResult

    if not isinstance(rows, StudyResult):
        return make()
    if name not in rows._tables:
        rows._tables[name] = make()
    return rows._tables[name].copy()


def _in_bins(rows: pd.DataFrame, edges: Array) -> pd.DataFrame:
    """Sums of forecasts and outcomes for each method, bin and person."""
    both = _with_forecast(rows)
    # The last bin has both of its ends.
    places = np.searchsorted(edges, both["expected_accuracy"], "right")
    both["bin"] = np.clip(places, 1, len(edges) - 1)
    people = both.groupby(["method", "bin", "group"], sort=False)
    return people.agg(
        n=("balanced_accuracy", "size"),
        forecast=("expected_accuracy", "sum"),
        outcome=("balanced_accuracy", "sum"),
    ).reset_index()


def forecast_errors(rows: pd.DataFrame | StudyResult) -> pd.DataFrame:
    """How far off the forecasts of single calibrations are, and what a constant would be off by.

    A person has one calibration, so that errors are of single rows; means over the splits of a task
    would hide most of them. The constant forecast quotes the mean accuracy of the other people, of
    the same method and budget.

    Parameters
    ----------
    rows : DataFrame or StudyResult
        Rows of a study, or of several; a result is read a part at a time.

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
    return _once(rows, "errors", lambda: _errors(rows))


def _errors(rows: pd.DataFrame | StudyResult) -> pd.DataFrame:
    import pandas as pd

    tasks = pd.concat([_sums(part) for part in parts_of(rows)], ignore_index=True)
    tasks["constant"] = np.nan
    for _, _, part in cells(tasks):
        tasks.loc[part.index, "constant"] = _mean_of_others(part)
    # What a constant is off by can be told only when all have been read.
    known = tasks.set_index(KEYS)["constant"]
    off = [_constant_errors(part, known) for part in parts_of(rows)]
    tasks = tasks.merge(pd.concat(off, ignore_index=True), on=KEYS)
    lines: list[dict[str, Any]] = []
    for method, budget, part in cells(tasks):
        n_splits = part["n"].sum()
        total = part[_SUMMED].sum(skipna=False) / n_splits
        # Of all rows, from those within each task and between tasks (Chan et al. 1983).
        forecast, outcome = (
            (part["n"] * part[name]).sum() / n_splits for name in ("forecast", "outcome")
        )
        off_f, off_o = part["forecast"] - forecast, part["outcome"] - outcome
        square_f, square_o, product = (
            (part[name] + part["n"] * between).sum()
            for name, between in (("ff", off_f**2), ("oo", off_o**2), ("fo", off_f * off_o))
        )
        # Without a label it is the mean of the others, which falls as one's own accuracy rises.
        labelled = part["n_labelled"].max() > 0
        reach = min(part[f"most_{one}"].max() - part[f"least_{one}"].min() for one in "fo")
        varies = labelled and n_splits > 2 and reach > ROUNDING
        lines.append(
            {
                "method": method,
                "budget": budget,
                "n_labelled": part.drop_duplicates("task")["n_labelled"].median(),
                "n_tasks": part["task"].nunique(),
                "n_splits": int(n_splits),
                "forecast": forecast,
                "outcome": outcome,
                "bias": total["off"],
                "rms": np.sqrt(total["square"]),
                "absolute_error": total["size"],
                "correlation": product / np.sqrt(square_f * square_o) if varies else np.nan,
                "coverage_68": _share(part["held_68"].sum(), part["known_68"].sum()),
                "coverage_90": _share(part["held_90"].sum(), part["known_90"].sum()),
                "constant_rms": np.sqrt(total["constant_square"]),
                "constant_absolute_error": total["constant_size"],
            }
        )
    return pd.DataFrame(lines, columns=_ERRORS)


_ERRORS = [
    *("method", "budget", "n_labelled", "n_tasks", "n_splits", "forecast", "outcome", "bias"),
    *("rms", "absolute_error", "correlation", "coverage_68", "coverage_90"),
    *("constant_rms", "constant_absolute_error"),
]


_SUMMED = ["off", "square", "size", "constant_square", "constant_size"]


def _sums(rows: pd.DataFrame) -> pd.DataFrame:
    """What the rows of each task, method and budget add to the errors of all.

    Means of forecast and outcome, the sums of their squares and products about these (`ff`, `oo`,
    `fo`), their ends, sums of the errors, and how many intervals there are and hold the outcome.
    """
    both = _with_forecast(rows)
    both["f"], both["o"] = both["expected_accuracy"], both["balanced_accuracy"]
    both["off"] = both["f"] - both["o"]
    both["square"], both["size"] = both["off"] ** 2, both["off"].abs()
    for percent in (68, 90):
        lower, upper = both[f"lower_{percent}"], both[f"upper_{percent}"]
        both[f"known_{percent}"] = known = lower.notna() & upper.notna()
        # An end at an accuracy that can be reached holds it, whatever rounding says.
        inside = (both["o"] >= lower - ROUNDING) & (both["o"] <= upper + ROUNDING)
        both[f"held_{percent}"] = known & inside
    tasks = both.groupby(KEYS, sort=False)
    off_f, off_o = (both[name] - tasks[name].transform("mean") for name in "fo")
    both["ff"], both["oo"], both["fo"] = off_f**2, off_o**2, off_f * off_o
    tasks = both.groupby(KEYS, sort=False)
    added = ["off", "square", "size", "ff", "oo", "fo", "known_68", "held_68", "known_90"]
    named: dict[str, Any] = {name: (name, "sum") for name in [*added, "held_90"]}
    found: pd.DataFrame = tasks.agg(
        n_labelled=("n_labelled", "first"),
        n=("o", "size"),
        forecast=("f", "mean"),
        outcome=("o", "mean"),
        least_f=("f", "min"),
        most_f=("f", "max"),
        least_o=("o", "min"),
        most_o=("o", "max"),
        **named,
    ).reset_index()
    return found


def _constant_errors(rows: pd.DataFrame, known: pd.Series[float]) -> pd.DataFrame:
    """Sums of the errors of a constant forecast, for each task, method and budget."""
    both = _with_forecast(rows).join(known, on=KEYS)
    off = both["constant"] - both["balanced_accuracy"]
    both["constant_square"], both["constant_size"] = off**2, off.abs()
    tasks = both.groupby(KEYS, sort=False)[["constant_square", "constant_size"]]
    # A person alone has nobody to compare with, and no error.
    return tasks.sum(min_count=1).reset_index()


def _mean_of_others(tasks: pd.DataFrame) -> Array:
    """For each task the mean accuracy of the other people, each of them once; NaN without any."""
    people = tasks.groupby("group")["outcome"].mean()
    n_others = len(people) - 1
    if not n_others:
        return np.full(len(tasks), np.nan)
    others: Array = ((people.sum() - people) / n_others).reindex(tasks["group"]).to_numpy()
    return others


def _share(some: float, of: float) -> float:
    return float(some / of) if of else np.nan


def _with_forecast(rows: pd.DataFrame) -> pd.DataFrame:
    rows = check_rows(rows)
    return rows[rows["expected_accuracy"].notna() & rows["balanced_accuracy"].notna()].copy()

"""The paper's Figures 2 and 3 in full: how long they take, and how accurate everything is."""

from collections.abc import Iterator
from functools import cache
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.measure import Progress, Row, at_most
from crossfade.simulate import figure2, figure3


class Studies(NamedTuple):
    """Both figures and the seconds that they took together."""

    figure2: pd.DataFrame
    figure3: pd.DataFrame
    seconds: float


@cache
def _studies(n_repeats: int, progress: Progress) -> Studies:
    common = {"n_repeats": n_repeats, "random_state": 0, "n_jobs": 2}
    start = perf_counter()
    second = figure2(**common, on_progress=lambda done, total: progress(0.3 * done / total))
    third = figure3(**common, on_progress=lambda done, total: progress(0.3 + 0.7 * done / total))
    return Studies(second, third, perf_counter() - start)


def run(n_repeats: int, progress: Progress) -> Iterator[Row]:
    """Rows of the table."""
    studies = _studies(n_repeats, progress)
    yield at_most(
        f"Figures 2 and 3 complete, {n_repeats:,} repeats a cell, two processes",
        studies.seconds,
        60.0,
        " s",
    )
    yield from _predictions(studies.figure2)
    yield from _references(studies)
    learnt = studies.figure3[studies.figure3["covariance"] == "plug-in"]
    yield from _forecasts(learnt)
    yield from _posterior(learnt)


def _predictions(table: pd.DataFrame) -> Iterator[Row]:
    """Figure 2: predicted against true accuracy."""
    table = table[(table["quantity"] == "accuracy") & (table["n_target"] >= 20)].copy()
    table["gap"] = (table["predicted"] - table["true"]).abs()
    table["error"] = np.hypot(table["predicted_se"], table["true_se"])
    table["cell"] = table["classifier"] + ", n = " + table["n_target"].astype(str)
    for n_sources, allowed in ((10, 0.015), (100, 0.01), (1000, 0.01)):
        yield _worst(
            f"Figure 2, J = {n_sources}, n >= 20: predicted against true accuracy",
            table[table["n_sources"] == n_sources],
            allowed,
        )


def _references(studies: Studies) -> Iterator[Row]:
    """Target and average-source curves against what the paper's figures show."""
    curves = ["target", "average-source"]
    second = studies.figure2
    second = second[(second["quantity"] == "accuracy") & second["classifier"].isin(curves)]
    second = pd.DataFrame(
        {
            "gap": (second["true"] - second["empirical"]).abs(),
            "error": second["true_se"],
            "cell": second["classifier"]
            + second[["n_sources", "n_target"]].apply(
                lambda row: f", J = {row.iloc[0]}, n = {row.iloc[1]}", axis=1
            ),
        }
    )
    third = studies.figure3
    third = third[third["classifier"].isin(curves)].dropna(subset="reference_accuracy")
    third = pd.DataFrame(
        {
            "gap": (third["accuracy"] - third["reference_accuracy"]).abs(),
            "error": third["accuracy_se"],
            "cell": third["classifier"] + ", " + _cells(third),
        }
    )
    for name, table in (("Figure 2", second), ("Figure 3", third)):
        within = table["gap"] <= np.maximum(0.01, 3.0 * table["error"])
        worst = table.loc[(table["gap"] / np.maximum(0.01, 3.0 * table["error"])).idxmax()]
        yield Row(
            f"{name}: target and average-source curves against the paper's",
            f"{within.sum()} of {len(table)} cells; furthest {worst['gap']:.4f} ± "
            f"{worst['error']:.4f} ({worst['cell']})",
            "all within 0.01 or three standard errors",
            bool(within.all()),
            float(worst["gap"]),
        )


def _forecasts(table: pd.DataFrame) -> Iterator[Row]:
    """Mean forecast against true mean accuracy, with the covariance learnt."""
    for classifier in ("posterior", "convex"):
        rows = table[table["classifier"] == classifier]
        rows = rows.assign(
            gap=(rows["expected"] - rows["accuracy"]).abs(),
            error=np.hypot(rows["expected_se"], rows["accuracy_se"]),
            cell=_cells(rows),
        )
        yield _worst(
            f"Figure 3, covariance learnt: forecast of {classifier} against its accuracy",
            rows,
            0.03,
        )


def _posterior(table: pd.DataFrame) -> Iterator[Row]:
    """Posterior blend against its parents and against Algorithm 1, with the covariance learnt."""
    cells = table.assign(cell=_cells(table))
    accuracy = cells.pivot(index="cell", columns="classifier", values="accuracy")
    error = cells.pivot(index="cell", columns="classifier", values="accuracy_se")
    parents = ["target-shrunk", "average-source"]
    better = accuracy[parents].idxmax(axis=1)
    yield _least(
        "Figure 3, covariance learnt: posterior less the better of shrinkage-target and "
        "average-source",
        accuracy["posterior"] - accuracy[parents].max(axis=1),
        np.hypot(error["posterior"], [error.loc[cell, name] for cell, name in better.items()]),
        -0.005,
    )
    low = accuracy["paper"] < 0.8
    yield _least(
        "Figure 3, covariance learnt: posterior less Algorithm 1 where that is below 0.80",
        (accuracy["posterior"] - accuracy["paper"])[low],
        np.hypot(error["posterior"], error["paper"])[low],
        0.02,
    )


def _cells(table: pd.DataFrame) -> pd.Series:
    return table["panel"] + " = " + table["x"].map("{:g}".format) + ", " + table["covariance"]


def _worst(what: str, table: pd.DataFrame, allowed: float) -> Row:
    row = table.loc[table["gap"].idxmax()]
    return Row(
        what,
        f"at most {row['gap']:.4f} ± {row['error']:.4f} ({row['cell']})",
        f"at most {allowed:g}",
        bool(row["gap"] <= allowed),
        float(row["gap"]),
    )


def _least(what: str, gain: pd.Series, error: pd.Series, wanted: float) -> Row:
    cell = gain.idxmin()
    return Row(
        what,
        f"at least {gain[cell]:+.4f} ± {error[cell]:.4f} ({cell})",
        f"at least {wanted:+g}",
        bool(gain[cell] >= wanted),
        float(gain[cell]),
    )

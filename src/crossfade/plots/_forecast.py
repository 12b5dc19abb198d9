"""Forecasts of single calibrations against what happened, and against a constant forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from crossfade.plots._budget_axis import BudgetAxis
from crossfade.plots._methods import MethodLook, looks, name_dashed
from crossfade.plots._style import (
    GREY,
    SMALL_LETTERS,
    TWO_COLUMNS,
    legend_below,
    panels,
    records,
    tips,
)
from crossfade.study import StudyResult, budget_text, is_unequal
from crossfade.study.statistics import forecast_errors, reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: People from which on a group of similar forecasts is drawn, if there are as many.
_FEWEST = 5
_CONSTANT: dict[str, Any] = {"linestyle": ":", "linewidth": 0.8, "fillstyle": "none"}


def forecast(rows: pd.DataFrame | StudyResult, *, legend: bool = True) -> Figure:
    """How true forecasts of single calibrations are, beside a constant forecast.

    The constant is the mean accuracy of the other people, which one could quote without a forecast.

    Parameters
    ----------
    rows : DataFrame or StudyResult
        Rows of a study; a result is read a part at a time.
    legend : bool, default=True
        Whether to name the methods below the figure.

    Returns
    -------
    Figure
        Left: mean accuracy of calibrations with similar forecasts, with its standard error
        over people; on the diagonal they agree, and forecasts that know no more than the constant
        lie on the dotted line. Groups with fewer than five people are left out. Right: root mean
        square error of one forecast, dotted that of the constant.
    """
    errors = forecast_errors(rows)
    if errors.empty:
        raise ValueError(
            "The rows have no forecasts of any method. Run the study with 'hierarchical', "
            "'posterior' or 'convex'."
        )
    shades = looks(list(dict.fromkeys(errors["method"])))
    figure, [left, right] = panels(2, TWO_COLUMNS, 2.6)
    curve = reliability(rows)
    curve = curve[curve["n_groups"] >= min(_FEWEST, curve["n_groups"].max())]
    axis = BudgetAxis.of(errors)
    errors["on_curve"] = [not is_unequal(one) for one in errors["budget"]]
    for place, (name, look) in enumerate(shades.items()):
        own = curve[curve["method"] == name].sort_values("forecast")
        _reached(left, own, name, look)
        found = errors[errors["method"] == name]
        found = found.assign(x=axis.x(found["budget"]) * axis.dodge(place, len(shades)))
        _errors(right, found.sort_values("x"), name, look)
        left.plot([], [], label=look.label, **look.line)
    _frame(left, curve, float(errors["outcome"].mean()))
    axis.draw(right, TWO_COLUMNS / 2.0 - 0.6)
    right.set_ylim(0.0, 1.05 * float(np.nanmax(errors[["rms", "constant_rms"]].to_numpy())))
    right.set_ylabel("error of one forecast (RMS)")
    right.grid(axis="y", alpha=0.25)
    right.plot([], [], color=GREY, marker="o", markersize=4, label="constant forecast", **_CONSTANT)
    name_dashed(right, shades)
    if legend:
        legend_below(figure, left, right)
    return figure


def _reached(ax: Axes, curve: pd.DataFrame, name: str, look: MethodLook) -> None:
    """Accuracy of calibrations with similar forecasts."""
    ax.plot(curve["forecast"], curve["outcome"], gid=f"series:{name}", **look.line)
    bars = curve[curve["standard_error"].notna()]
    low, high = (bars["outcome"] + sign * bars["standard_error"] for sign in (-1.0, 1.0))
    bar: dict[str, Any] = {"color": look.colour, "linewidth": 0.8, "alpha": 0.5}
    ax.vlines(bars["forecast"], low, high, gid=f"series:{name}", **bar)
    said = [
        f"{look.label}, forecast {one.forecast:.3f}: {one.outcome:.3f} reached "
        f"({one.n_splits} calibrations of {one.n_groups} people)"
        for one in records(curve)
    ]
    tips(ax, curve["forecast"], curve["outcome"], said, name, **look.points)


def _errors(ax: Axes, table: pd.DataFrame, name: str, look: MethodLook) -> None:
    """Error of one forecast by budget, and that of the constant."""
    line = table[table["on_curve"]]
    ax.plot(line["x"], line["rms"], gid=f"series:{name}", **look.line)
    ax.plot(line["x"], line["constant_rms"], gid=f"series:{name}", **look.points, **_CONSTANT)
    for column, what in (("rms", "off by"), ("constant_rms", "constant forecast off by")):
        said = [
            f"{look.label}, {budget_text(one.budget)}: {what} {getattr(one, column):.3f}"
            for one in records(table)
        ]
        fill = "full" if column == "rms" else "none"
        tips(ax, table["x"], table[column], said, name, fillstyle=fill, **look.points)


def _frame(ax: Axes, curve: pd.DataFrame, constant: float) -> None:
    """Diagonal, the mean accuracy, which the constant forecasts, and equal axes."""
    values = curve[["forecast", "outcome"]].to_numpy()
    low, high = min(values.min(), constant) - 0.04, min(max(values.max(), constant) + 0.04, 1.01)
    ax.axline((0.5, 0.5), slope=1.0, color=GREY, linewidth=0.8, label="forecast = outcome")
    ax.axhline(constant, color=GREY, linestyle=":", linewidth=0.9, zorder=0, gid="constant")
    ax.text(
        *(low + 0.01, constant, "mean accuracy"), color=GREY, size=SMALL_LETTERS - 1.0, va="bottom"
    )
    ax.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    ax.locator_params(nbins=5)
    ax.set_xlabel("forecast of one calibration")
    ax.set_ylabel("accuracy reached")

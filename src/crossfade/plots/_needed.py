"""How many windows a new person needs: who reaches an accuracy, and after how many windows."""

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
    width_for,
)
from crossfade.study import StudyResult, budget_text, is_unequal
from crossfade.study.statistics import by_task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: How far left of a point its arrow stands, as a factor.
_BESIDE = 1.12


def needed(
    rows: pd.DataFrame,
    accuracy: float = 0.75,
    share: float = 0.8,
    *,
    n_classes: int | None = None,
    legend: bool = True,
) -> Figure:
    """How many windows a new person needs, until most people reach an accuracy.

    Parameters
    ----------
    rows : DataFrame
        Rows of a study.
    accuracy : float, default=0.75
        Balanced accuracy to reach.
    share : float, default=0.8
        Proportion of people that must reach it.
    n_classes : int or None, default=None
        Number of classes; whole budgets tell it, shares do not.
    legend : bool, default=True
        Whether to name the methods below the figure, where no panel does.

    Returns
    -------
    Figure
        Left: proportion of people who reach the accuracy against what is labelled, one line for
        each method. Right: windows until the share reaches it, with the 95 % interval over people;
        "more" where it takes more than were tried, and an arrow to the left where fewer were not
        tried. Without the right panel where no method gets there.
    """
    result = StudyResult(rows, n_classes=n_classes)
    table = result.needed(accuracy, share).set_index("method")
    # People without any accuracy have no curve.
    table = table[table["n_people"] > 0]
    if table.empty:
        raise ValueError("There is nothing to draw: no person has an accuracy at all budgets.")
    means = by_task(rows)
    means = means[means["balanced_accuracy"].notna() & means["method"].isin(table.index)]
    shades = looks([str(name) for name in table.index])
    has_answers = bool(np.isfinite(table["total"].to_numpy(float)).any())
    width = TWO_COLUMNS / 2.0 if has_answers else width_for(len(shades))
    height = max(2.4, 0.8 + 0.19 * len(table))
    whole = TWO_COLUMNS if has_answers else width
    figure, [left, *others] = panels(2 if has_answers else 1, whole, height)
    axis = BudgetAxis.of(means)
    for place, (name, look) in enumerate(shades.items()):
        own = means[means["method"] == name]
        _reaching(left, own, axis, axis.dodge(place, len(shades)), accuracy, name, look)
    axis.draw(left, width - 0.6)
    left.axhline(100.0 * share, color=GREY, linestyle="--", linewidth=0.9, gid="share")
    left.set_ylim(-4.0, 104.0)
    left.set_ylabel("% of people")
    left.grid(axis="y", alpha=0.25)
    left.set_title(f"people who reach {accuracy:g}", size=SMALL_LETTERS)
    for right in others:
        title = f"until {100.0 * share:.3g} % of people reach {accuracy:g}"
        right.set_title(title, size=SMALL_LETTERS)
        _windows(right, table, means, shades, n_classes)
    name_dashed(left, shades)
    if legend and not others:
        legend_below(figure, left)
    return figure


def _reaching(
    ax: Axes,
    own: pd.DataFrame,
    axis: BudgetAxis,
    dodge: float,
    accuracy: float,
    name: str,
    look: MethodLook,
) -> None:
    """Proportion of people who reach the accuracy, in per cent, by budget."""
    people = own.groupby(["budget", "group"])["balanced_accuracy"].mean()
    there = (people >= accuracy - 1e-12).groupby("budget")
    line = pd.DataFrame({"reached": there.sum(), "n": there.count()}).reset_index()
    line["percent"] = 100.0 * line["reached"] / line["n"]
    line["x"] = axis.x(line["budget"]) * dodge
    line = line.sort_values("x")
    curve = line[[not is_unequal(one) for one in line["budget"]]]
    at = curve["x"], curve["percent"]
    ax.plot(*at, label=look.label, gid=f"series:{name}", **look.line)
    said = [
        f"{look.label}, {budget_text(one.budget)}: {one.reached} of {one.n} people"
        for one in records(line)
    ]
    tips(ax, line["x"], line["percent"], said, name, **look.points)


def _windows(
    ax: Axes,
    table: pd.DataFrame,
    means: pd.DataFrame,
    shades: dict[str, MethodLook],
    n_classes: int | None,
) -> None:
    """Windows of each class that each method needs; of all classes, where budgets are shares."""
    curve = means[[not is_unequal(one) for one in means["budget"]]]
    axis = BudgetAxis.of(curve)
    if not axis.label.endswith("each class"):
        windows = curve.groupby("budget")["n_labelled"].transform("median")
        axis = BudgetAxis.of(curve.assign(budget=windows.round()))
        axis = axis._replace(label="labelled windows")
        times = float(n_classes or 1)
        table = table.assign(
            windows=table["total"], low=times * table["low"], high=times * table["high"]
        )
    _dots(ax, table, axis, shades)
    ax.set_xlabel(axis.label)


def _dots(ax: Axes, table: pd.DataFrame, axis: BudgetAxis, shades: dict[str, MethodLook]) -> None:
    """Windows that each method needs, one line for each."""
    most = max(axis.ticks)

    def place(windows: float) -> float:
        return min(windows, axis.beyond) if windows else axis.zero

    for row, (name, look) in enumerate(shades.items()):
        line: Any = table.loc[name]
        value = line["windows"]
        if np.isfinite(line["low"]):
            ends = place(line["low"]), place(line["high"])
            ax.hlines(row, *ends, color=look.colour, linewidth=1.0, gid=f"series:{name}")
        known = np.isfinite(value)
        text = f"{value:g} windows" if known else f"more than {most:g} windows"
        x = place(value) if known else axis.beyond
        if line["bound"] == "<=":
            text = f"at most {text}"
            look_of: dict[str, Any] = {"color": look.colour, "marker": 8, "gid": f"series:{name}"}
            ax.plot([x / _BESIDE], [row], linestyle="none", markersize=4, **look_of)
        tips(ax, [x], [row], [f"{look.label}: {text}"], name, **look.points)
    more = "more" if bool(np.isinf(table[["windows", "high"]].to_numpy(float)).any()) else ""
    axis.draw(ax, TWO_COLUMNS / 2.0 - 1.4, more)
    ax.set_yticks(range(len(shades)), [look.label for look in shades.values()])
    ax.tick_params(axis="y", labelsize=SMALL_LETTERS, length=0)
    ax.set_ylim(len(shades) - 0.4, -0.6)
    ax.grid(axis="x", alpha=0.25)

"""Figures of a study: accuracies, and gains over another method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from crossfade._typing import Array
from crossfade.plots._budget_axis import BudgetAxis, in_order
from crossfade.plots._methods import looks, name_dashed
from crossfade.plots._style import (
    LETTERS,
    ONE_COLUMN,
    SMALL_LETTERS,
    TWO_COLUMNS,
    chance_line,
    legend_below,
    panels,
    records,
    tip_id,
    tips,
    width_for,
)
from crossfade.study import budget_text, is_unequal
from crossfade.study.statistics import by_task, compare, p_text, summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def accuracy_by_budget(rows: pd.DataFrame, *, chance: float = 0.5, legend: bool = True) -> Figure:
    """Mean balanced accuracy over tasks against what is labelled, one line for each method.

    Bars are 95 % intervals over participants, where there are five or more. Methods that see test
    windows are dashed. No label has its place at the left; unequal numbers, such as 24+2, stand to
    the right of the curves.

    Parameters
    ----------
    rows : DataFrame
        Rows of a study.
    chance : float, default=0.5
        Accuracy of guessing, drawn as a dotted line: one over the number of classes.
    legend : bool, default=True
        Whether to name the methods below the figure.

    Returns
    -------
    Figure
        One panel, as wide as one column of a journal, or as two with a legend of more than six
        methods.
    """
    table = summarise(rows)
    names = list(dict.fromkeys(table["method"]))
    # Without a legend it is for a page, which may be that of a phone.
    width = width_for(len(names)) if legend else ONE_COLUMN
    axis = BudgetAxis.of(table)
    table["on_curve"] = [not is_unequal(one) for one in table["budget"]]
    figure, [ax] = panels(1, width, 2.4 if width_for(len(names)) == ONE_COLUMN else 3.0)
    shades = looks(names)
    for place, (name, look) in enumerate(shades.items()):
        line = table[table["method"] == name].sort_values("budget")
        line = line.assign(x=axis.x(line["budget"]) * axis.dodge(place, len(names)))
        line = line.sort_values("x")
        curve = line[line["on_curve"]]
        ax.plot(*(curve["x"], curve["mean"]), label=look.label, gid=f"series:{name}", **look.line)
        ax.vlines(
            *(line["x"], line["low"], line["high"]),
            color=look.colour,
            linewidth=0.8,
            alpha=0.5,
            gid=f"series:{name}",
        )
        said = [f"{look.label}, {_accuracy(one)}" for one in records(line)]
        tips(ax, line["x"], line["mean"], said, name, **look.points)
    axis.draw(ax, width - 0.55)
    ax.set_ylabel("balanced accuracy")
    ax.grid(axis="y", alpha=0.25)
    chance_line(ax, chance)
    name_dashed(ax, shades)
    if legend:
        legend_below(figure, ax)
    return figure


def _accuracy(one: Any) -> str:
    """Budget and mean of one line of a summary, with the interval if there is one."""
    interval = "" if np.isnan(one.low) else f" ({one.low:.2f} to {one.high:.2f})"
    return f"{budget_text(one.budget)}: {one.mean:.3f}{interval}"


def differences(rows: pd.DataFrame, method: str, against: str) -> Figure:
    """Histograms of the differences between two methods, task by task.

    Parameters
    ----------
    rows : DataFrame
        Rows of a study.
    method, against : str
        What is compared; the difference is that of the first minus that of the second.

    Returns
    -------
    Figure
        One panel for each budget at which some task has both, with the tasks on which the first is
        better and the p-value of Wilcoxon's signed-rank test, one-sided, after Holm's correction if
        there are several.
    """
    table = compare(rows, against, [method])
    table = table[table["n_tasks"] > 0]
    if table.empty:
        raise ValueError(
            f"There is nothing to draw: no task has an accuracy of both {method!r} and {against!r} "
            "at the same budget."
        )
    same = ["task", "group", "budget"]
    means = by_task(rows).set_index(same)
    own, other = (
        means.loc[means["method"] == name, "balanced_accuracy"] for name in (method, against)
    )
    both = (own - other).dropna()
    shades = looks([method, against])
    names = [shades[name].label for name in (method, against)]
    edges = _edges(both.to_numpy())
    corrected = " (Holm)" if table["p_holm"].notna().sum() > 1 else ""
    width = ONE_COLUMN if len(table) <= 2 else TWO_COLUMNS
    figure, axes = panels(len(table), width, 1.9, sharex=True, sharey=True)
    table = table.set_index("budget", drop=False).loc[in_order(table["budget"])]
    for place, (ax, line) in enumerate(zip(axes, records(table), strict=True)):
        # Panels with none below them have labels of their own.
        ax.tick_params(labelbottom=place + 4 >= len(table))
        label = budget_text(line.budget)
        part = both[both.index.get_level_values("budget") == line.budget].to_numpy()
        counts, _ = np.histogram(part, edges)
        bars = ax.bar(
            edges[:-1], counts, np.diff(edges), align="edge", edgecolor="white", linewidth=0.5
        )
        for bar, low, high, count in zip(bars, edges, edges[1:], counts, strict=False):
            better = low > -1e-9
            bar.set(facecolor=shades[method if better else against].colour, alpha=0.8)
            text = f"{names[0]}, {label}: {low:+.3g} to {high:+.3g}, {_tasks(count)}"
            bar.set_gid(tip_id(text, owner=method))
        ax.axvline(0.0, color="black", linestyle="--", linewidth=0.9)
        title = f"{label}\nbetter for {line.wins} of {line.n_tasks}"
        if not np.isnan(line.p_holm):
            title += f"\np {p_text(line.p_holm, '= ')}{corrected}"
        ax.set_title(title, size=SMALL_LETTERS)
        ax.locator_params(axis="x", nbins=5)
        ax.locator_params(axis="y", integer=True)
    figure.supxlabel(f"gain of {shades[method].spoken} over {shades[against].spoken}", size=LETTERS)
    figure.supylabel("tasks", size=LETTERS)
    return figure


def _edges(values: Array) -> Array:
    """Edges of ten to twenty bins of a round width, zero among them."""
    reach = max(np.ptp(np.append(values, 0.0)), 0.01) / 20.0
    size = 10.0 ** np.floor(np.log10(reach))
    width = size * next(step for step in (1.0, 2.0, 5.0, 10.0) if step * size >= reach - 1e-12)
    low = np.floor(values.min(initial=0.0) / width - 1e-9)
    high = np.floor(values.max(initial=0.0) / width + 1e-9) + 1.0
    return np.arange(low, high + 0.5) * width


def _tasks(count: int) -> str:
    return f"{count} task" if count == 1 else f"{count} tasks"

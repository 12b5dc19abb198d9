"""How many people the crowd must have: accuracy against the size of the crowd."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from crossfade.plots._budget_axis import in_order
from crossfade.plots._methods import looks, name_dashed
from crossfade.plots._style import (
    GREY,
    LETTERS,
    ONE_COLUMN,
    SMALL_LETTERS,
    TWO_COLUMNS,
    chance_line,
    legend_below,
    panels,
    records,
    tips,
)
from crossfade.study._budgets import budget_text
from crossfade.study._crowd_gain import crowd_curve, crowd_gain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def accuracy_by_sources(
    by_sources: pd.DataFrame, more: int = 10, *, chance: float = 0.5, legend: bool = True
) -> Figure:
    """Mean balanced accuracy against the number of people in the crowd, one line for each method.

    Parameters
    ----------
    by_sources : DataFrame
        `by_sources` of a result whose study was run with `n_sources`.
    more : int, default=10
        People beyond the whole crowd up to whom the fitted curve is carried on, as dots.
    chance : float, default=0.5
        Accuracy of guessing, drawn as a line: one over the number of classes.
    legend : bool, default=True
        Whether to name the methods below the figure.

    Returns
    -------
    Figure
        One panel for each budget. Bars are 95 % intervals over people, where there are five or
        more.
    """
    curve, gains = crowd_curve(by_sources), crowd_gain(by_sources, more)
    if curve.empty:
        raise ValueError(
            "There is nothing to draw: no method has an accuracy with crowds of several sizes. Run "
            "the study with n_sources, and with a method that looks at sources."
        )
    shades = looks(list(dict.fromkeys(curve["method"])))
    budgets = in_order(curve["budget"])
    width = ONE_COLUMN if len(budgets) <= 2 else TWO_COLUMNS
    figure, axes = panels(len(budgets), width, 2.1, sharex=True, sharey=True)
    # Lines stand a little beside each other.
    step = 0.012 * float(np.ptp(curve["n_sources"]) + more)
    for place, (ax, budget) in enumerate(zip(axes, budgets, strict=True)):
        for beside, (name, look) in enumerate(shades.items()):
            own = curve[(curve["method"] == name) & (curve["budget"] == budget)]
            x = own["n_sources"] + step * (beside - (len(shades) - 1) / 2.0)
            ax.plot(x, own["mean"], label=look.label, gid=f"series:{name}", **look.line)
            ax.vlines(
                *(x, own["low"], own["high"]),
                color=look.colour,
                linewidth=0.8,
                alpha=0.5,
                gid=f"series:{name}",
            )
            for line in records(gains[(gains["method"] == name) & (gains["budget"] == budget)]):
                people = np.linspace(line.n_sources, line.n_sources + more, 20)
                # a - b / J through the gain from the whole crowd on.
                slope = line.gain / (1.0 / people[0] - 1.0 / people[-1])
                ax.plot(
                    *(people, line.limit - slope / people),
                    color=look.colour,
                    linestyle=":",
                    linewidth=1.1,
                    gid=f"series:{name}",
                )
            said = [
                f"{look.label}, {budget_text(budget)}, {one.n_sources} people: {one.mean:.3f}"
                for one in records(own)
            ]
            tips(ax, x, own["mean"], said, name, **look.points)
        ax.set_title(budget_text(budget), size=SMALL_LETTERS)
        ax.grid(axis="y", alpha=0.25)
        chance_line(ax, chance)
        # Panels with none below them have labels of their own.
        if place + 4 >= len(budgets):
            ax.tick_params(labelbottom=True)
            ax.set_xlabel("people in the crowd")
    axes[0].plot([], [], color=GREY, linestyle=":", linewidth=1.1, label="expected, not measured")
    name_dashed(axes[0], shades)
    figure.supylabel("balanced accuracy", size=LETTERS)
    if legend:
        legend_below(figure, axes[0])
    return figure

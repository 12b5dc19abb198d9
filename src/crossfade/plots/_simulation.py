"""Figures of the simulation studies, in the paper's layout and with its values overlaid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from crossfade.plots._methods import looks, method_of, spoken
from crossfade.plots._style import (
    GREY,
    LETTERS,
    ONE_COLUMN,
    PAPER,
    SMALL_LETTERS,
    TWO_COLUMNS,
    chance_line,
    legend_below,
    log_axis,
    panels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Height of one row of panels, in inches.
_HIGH = 1.9
#: How the paper's simulated values are drawn, beside its predicted ones.
_EMPIRICAL: dict[str, Any] = PAPER | {"marker": "x", "markersize": 5}


def figure2(table: pd.DataFrame) -> Figure:
    """Predicted and true accuracies and alphas, with the paper's own values overlaid.

    Parameters
    ----------
    table : DataFrame
        What :func:`crossfade.simulate.figure2` returns.

    Returns
    -------
    Figure
        Accuracies above, alphas below, one column for each number of sources.
    """
    sources = list(dict.fromkeys(table["n_sources"]))
    figure, top, bottom = _two_rows(len(sources))
    for above, below, n_sources in zip(top, bottom, sources, strict=True):
        part = table[table["n_sources"] == n_sources]
        for ax, quantity in ((above, "accuracy"), (below, "alpha")):
            for name, line in part[part["quantity"] == quantity].groupby("classifier", sort=False):
                _four_lines(ax, line, str(name))
            _log_axis(ax, part["n_target"], "labelled samples n", len(sources))
        chance_line(above, 0.5)
        above.set_title(f"J = {n_sources}", size=LETTERS)
    top[0].set_ylabel("expected accuracy")
    bottom[0].set_ylabel("optimal alpha")
    if table["analytical"].notna().any():
        top[0].plot([], [], **PAPER, color=GREY, label="in the paper, analytical")
        top[0].plot([], [], **_EMPIRICAL, color=GREY, label="in the paper, empirical")
    legend_below(figure, top[0])
    return figure


def _two_rows(n_columns: int) -> tuple[Figure, list[Axes], list[Axes]]:
    width = _width(n_columns)
    figure, axes = panels(2 * n_columns, width, _HIGH, n_columns=n_columns, sharey="row")
    return figure, axes[:n_columns], axes[n_columns:]


def _width(n_columns: int) -> float:
    return ONE_COLUMN if n_columns == 1 else TWO_COLUMNS


def _log_axis(ax: Axes, x: Sequence[float] | pd.Series[float], label: str, n_columns: int) -> None:
    at = sorted(set(x))
    # Labels of the y axis take half an inch.
    log_axis(ax, at, [f"{one:g}" for one in at], (_width(n_columns) - 0.5) / n_columns - 0.1)
    ax.set_xlabel(label)


def _four_lines(ax: Axes, line: pd.DataFrame, name: str) -> None:
    look = method_of(name)
    x = line["n_target"]
    style: dict[str, Any] = {"color": look.colour, "linewidth": 1.1}
    ax.plot(x, line["predicted"], label=f"{look.label}, predicted", **style)
    ax.plot(x, line["true"], linestyle="--", label=f"{look.label}, true", **style)
    if line["analytical"].notna().any():
        ax.plot(x, line["analytical"], **PAPER, color=look.colour)
        ax.plot(x, line["empirical"], **_EMPIRICAL, color=look.colour)


def figure3(table: pd.DataFrame) -> Figure:
    """Accuracies and alphas against n, kappa and d, with the paper's own values overlaid.

    Parameters
    ----------
    table : DataFrame
        What :func:`crossfade.simulate.figure3` returns.

    Returns
    -------
    Figure
        Accuracies above, alphas below, one column for each panel and kind of covariance.
    """
    kinds = list(dict.fromkeys(zip(table["panel"], table["covariance"], strict=True)))
    figure, top, bottom = _two_rows(len(kinds))
    names = {"n": "labelled samples n", "kappa": "concentration κ", "d": "features d"}
    for above, below, (panel, covariance) in zip(top, bottom, kinds, strict=True):
        part = table[(table["panel"] == panel) & (table["covariance"] == covariance)]
        for ax, quantity in ((above, "accuracy"), (below, "alpha")):
            for name, line in part.groupby("classifier", sort=False):
                if quantity == "alpha" and line["alpha"].isin([0.0, 1.0]).all():
                    continue
                look = method_of(str(name))
                ax.plot(line["x"], line[quantity], label=look.label, **look.line)
                reference = line[f"reference_{quantity}"]
                ax.plot(line["x"], reference, **PAPER, color=look.colour)
            _log_axis(ax, part["x"], names[panel], len(kinds))
        chance_line(above, 0.5)
        above.set_title(
            f"covariance {'known' if covariance == 'known' else 'estimated'}", size=SMALL_LETTERS
        )
    top[0].set_ylabel("accuracy")
    effective = table["classifier"].eq("posterior").any()
    bottom[0].set_ylabel("alpha (posterior: effective)" if effective else "alpha")
    if table["reference_accuracy"].notna().any():
        top[0].plot([], [], **PAPER, color=GREY, label="in the paper")
    legend_below(figure, top[0])
    return figure


def misspecified(table: pd.DataFrame) -> Figure:
    """Accuracy of each rule in each scenario, as dots on a line.

    Parameters
    ----------
    table : DataFrame
        What :func:`crossfade.simulate.misspecified` returns.

    Returns
    -------
    Figure
        One line for each scenario.
    """
    scenarios = list(dict.fromkeys(table["scenario"]))
    figure, [ax] = panels(1, TWO_COLUMNS, 0.8 + 0.4 * len(scenarios))
    rules = looks(list(dict.fromkeys(table["classifier"])))
    for place, (name, look) in enumerate(rules.items()):
        part = table[table["classifier"] == name].set_index("scenario").loc[scenarios]
        height = np.arange(len(scenarios)) + 0.55 * (place / max(len(rules) - 1, 1) - 0.5)
        ax.errorbar(
            *(part["accuracy"], height),
            xerr=part["accuracy_se"],
            elinewidth=0.9,
            linestyle="none",
            label=look.label,
            **look.points,
        )
    ax.set_yticks(range(len(scenarios)), scenarios)
    ax.invert_yaxis()
    ax.set_xlabel("accuracy; bars are standard errors")
    ax.grid(axis="x", alpha=0.25)
    chance_line(ax, 0.5, upright=True)
    legend_below(figure, ax)
    return figure


def newcomers(rows: pd.DataFrame) -> Figure:
    """Accuracies of all newcomers by classifier, and the gain of each.

    Parameters
    ----------
    rows : DataFrame
        What :func:`crossfade.simulate.newcomers` returns.

    Returns
    -------
    Figure
        Accuracies on the left, the gain over scikit-learn's LDA on the right.
    """
    accuracy = rows.pivot(index="newcomer", columns="classifier", values="accuracy")
    rules = looks(list(dict.fromkeys(rows["classifier"])))
    figure, [left, right] = panels(2, TWO_COLUMNS, 2.4)
    boxes = left.boxplot(
        [accuracy[name] for name in rules],
        orientation="horizontal",
        tick_labels=[look.label for look in rules.values()],
        showmeans=True,
        meanprops={"marker": "D", "markerfacecolor": "white", "markeredgecolor": "black"},
        medianprops={"color": "black"},
        flierprops={"marker": ".", "markersize": 4, "alpha": 0.5},
        patch_artist=True,
    )
    for box, look in zip(boxes["boxes"], rules.values(), strict=True):
        box.set(facecolor=look.colour, alpha=0.45)
    left.invert_yaxis()
    left.set_xlabel("accuracy on new samples (diamond: mean)")
    chance_line(left, 0.5, upright=True)
    ours = rules["hierarchical"]
    gain = accuracy["hierarchical"] - accuracy["lda"]
    right.hist(gain, bins=25, color=ours.colour, alpha=0.6)
    right.axvline(0.0, color=GREY, linestyle="--", linewidth=0.9)
    right.set_xlabel(f"gain of {spoken('hierarchical')} over {spoken('lda')}")
    right.set_ylabel("newcomers")
    right.locator_params(axis="y", integer=True)
    right.set_title(
        f"better for {(gain > 0).sum()} of {len(gain)}, by {gain.mean():+.3f} on average",
        size=SMALL_LETTERS,
    )
    return figure

"""Tables of the simulation studies in, figures in the paper's layout out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours that also differ in grey and for colour-blind readers.
COLOURS = {
    "target": "#d55e00",
    "average-source": "#0072b2",
    "optimal": "#009e73",
    "paper": "#009e73",
    "paper, origin": "#8fd3bf",
    "target-shrunk": "#e69f00",
    "convex": "#56b4e9",
    "posterior": "#000000",
    "lda": "#cc79a7",
}


def _figure(
    n_rows: int, n_columns: int, width: float, height: float, *, sharey: bool = True
) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(
        n_rows, n_columns, squeeze=False, sharey="row" if sharey else False
    )


def figure2(table: pd.DataFrame) -> Figure:
    """Predicted and true accuracies and alphas, with the paper's own values overlaid.

    Parameters
    ----------
    table : DataFrame
        What :func:`crossfade.simulate._figures.figure2` returns.

    Returns
    -------
    Figure
        Accuracies above, alphas below, one column for each number of sources.
    """
    sources = list(dict.fromkeys(table["n_sources"]))
    figure, axes = _figure(2, len(sources), 4.0 * len(sources) + 0.5, 6.5)
    for column, n_sources in enumerate(sources):
        part = table[table["n_sources"] == n_sources]
        for row, quantity in enumerate(("accuracy", "alpha")):
            ax = axes[row, column]
            for name, line in part[part["quantity"] == quantity].groupby("classifier", sort=False):
                _four_lines(ax, line, str(name))
            ax.set_xscale("log")
            ax.set_xticks(sorted(set(part["n_target"])), sorted(set(part["n_target"])))
            ax.minorticks_off()
            ax.set_xlabel("labelled samples n")
            if row == 0:
                ax.set_title(f"J = {n_sources}")
    axes[0, 0].set_ylabel("expected accuracy")
    axes[1, 0].set_ylabel("optimal alpha")
    _legend(figure, axes[0, 0])
    return figure


def _four_lines(ax: Axes, line: pd.DataFrame, name: str) -> None:
    colour = COLOURS[name]
    x = line["n_target"]
    ax.plot(x, line["predicted"], color=colour, label=f"{name}, predicted")
    ax.plot(x, line["true"], color=colour, linestyle="--", label=f"{name}, true")
    shape: dict[str, Any] = {"color": colour, "linestyle": "none", "markersize": 6}
    if line["analytical"].notna().any():
        label = "paper, analytical"
        ax.plot(x, line["analytical"], marker="o", fillstyle="none", label=label, **shape)
        ax.plot(x, line["empirical"], marker="x", label="paper, empirical", **shape)


def figure3(table: pd.DataFrame) -> Figure:
    """Accuracies and alphas against n, kappa and d, with the paper's own values overlaid.

    Parameters
    ----------
    table : DataFrame
        What :func:`crossfade.simulate._figures.figure3` returns.

    Returns
    -------
    Figure
        Accuracies above, alphas below, one column for each panel and kind of covariance.
    """
    panels = list(dict.fromkeys(zip(table["panel"], table["covariance"], strict=True)))
    figure, axes = _figure(2, len(panels), 3.6 * len(panels) + 1.0, 7.0)
    for column, (panel, covariance) in enumerate(panels):
        part = table[(table["panel"] == panel) & (table["covariance"] == covariance)]
        for row, quantity in enumerate(("accuracy", "alpha")):
            ax = axes[row, column]
            for name, line in part.groupby("classifier", sort=False):
                if quantity == "alpha" and line["alpha"].isin([0.0, 1.0]).all():
                    continue
                colour = COLOURS[str(name)]
                ax.plot(line["x"], line[quantity], color=colour, marker=".", label=name)
                ax.plot(
                    line["x"],
                    line[f"reference_{quantity}"],
                    color=colour,
                    linestyle="none",
                    marker="o",
                    fillstyle="none",
                    markersize=8,
                    label="as in the paper's figure",
                )
            ax.set_xscale("log")
            ax.set_xticks(
                list(dict.fromkeys(part["x"])), [f"{x:g}" for x in dict.fromkeys(part["x"])]
            )
            ax.minorticks_off()
            ax.set_xlabel(
                {"n": "labelled samples n", "kappa": "concentration κ"}.get(panel, "features d")
            )
            if row == 0:
                ax.set_title(f"covariance {'known' if covariance == 'known' else 'estimated'}")
    axes[0, 0].set_ylabel("accuracy")
    axes[1, 0].set_ylabel("alpha (posterior: effective)")
    _legend(figure, axes[0, 0])
    return figure


def misspecified(table: pd.DataFrame) -> Figure:
    """Accuracy of each rule in each scenario, as dots on a line.

    Parameters
    ----------
    table : DataFrame
        What :func:`crossfade.simulate._figures.misspecified` returns.

    Returns
    -------
    Figure
        One line for each scenario.
    """
    scenarios = list(dict.fromkeys(table["scenario"]))
    figure, axes = _figure(1, 1, 8.0, 1.5 + 0.45 * len(scenarios))
    ax = axes[0, 0]
    classifiers = list(dict.fromkeys(table["classifier"]))
    for place, name in enumerate(classifiers):
        part = table[table["classifier"] == name].set_index("scenario").loc[scenarios]
        height = np.arange(len(scenarios)) + 0.55 * (place / max(len(classifiers) - 1, 1) - 0.5)
        ax.errorbar(
            part["accuracy"],
            height,
            xerr=part["accuracy_se"],
            color=COLOURS[str(name)],
            marker="D" if name == "posterior" else "o",
            markersize=5,
            linestyle="none",
            label=name,
        )
    ax.set_yticks(range(len(scenarios)), scenarios)
    ax.invert_yaxis()
    ax.set_xlabel("accuracy")
    ax.grid(axis="x", alpha=0.3)
    _legend(figure, ax)
    return figure


def newcomers(rows: pd.DataFrame) -> Figure:
    """Accuracies of all newcomers by classifier, and the gain of each.

    Parameters
    ----------
    rows : DataFrame
        What :func:`crossfade.simulate._figures.newcomers` returns.

    Returns
    -------
    Figure
        Accuracies on the left, the gain over scikit-learn's LDA on the right.
    """
    figure, axes = _figure(1, 2, 9.5, 3.8, sharey=False)
    accuracy = rows.pivot(index="newcomer", columns="classifier", values="accuracy")
    names = list(dict.fromkeys(rows["classifier"]))
    left, right = axes[0]
    boxes = left.boxplot(
        [accuracy[name] for name in names],
        orientation="horizontal",
        tick_labels=names,
        showmeans=True,
        meanprops={"marker": "D", "markerfacecolor": "white", "markeredgecolor": "black"},
        medianprops={"color": "black"},
        flierprops={"marker": ".", "markersize": 4, "alpha": 0.5},
        patch_artist=True,
    )
    for box, name in zip(boxes["boxes"], names, strict=True):
        box.set(facecolor=COLOURS[name], alpha=0.45)
    left.invert_yaxis()
    left.set_xlabel("accuracy on new samples (diamond: mean)")
    gain = accuracy["posterior"] - accuracy["lda"]
    right.hist(gain, bins=25, color=COLOURS["posterior"], alpha=0.6)
    right.axvline(0.0, color="grey", linestyle="--")
    right.set_xlabel("accuracy of posterior less that of lda")
    right.set_ylabel("newcomers")
    right.set_title(
        f"better for {(gain > 0).sum()} of {len(gain)}, by {gain.mean():+.3f} on average"
    )
    return figure


def _legend(figure: Figure, ax: Axes) -> None:
    """One legend beside the panels, with each label once."""
    handles, labels = ax.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    for label in [label for label in unique if "paper" in label and label not in COLOURS]:
        unique[label] = unique.pop(label)
    figure.legend(unique.values(), unique.keys(), loc="outside right upper", frameon=False)

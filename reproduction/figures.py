"""Drawings of all figures. Lines are ours, open grey-rimmed markers are the paper's values."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D

from reproduction.algorithm import GRID, Array, blends, unit

_STYLE: dict[str, Any] = {
    "font.size": 8,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.1,
    "lines.markersize": 4,
    "svg.hashsalt": "crossfade",
}
_GREY = "#666666"


class Look(NamedTuple):
    """How a classifier is drawn."""

    label: str
    colour: str
    marker: str


LOOKS = {
    "target": Look("target", "#d55e00", "v"),
    "average-source": Look("average source", "#0072b2", "^"),
    "optimal": Look("optimal (Algorithm 1)", "#009e73", "s"),
    "optimal, origin": Look("optimal, threshold at the origin", "#8c510a", "d"),
    "oracle": Look("oracle", "#7f7f7f", "x"),
    "target-shrunk": Look("target, shrunk", "#e69f00", "<"),
    "convex": Look("convex blend", "#56b4e9", "D"),
    "posterior": Look("posterior blend", "#000000", "o"),
    "hierarchical": Look("hierarchical blend", "#117733", "h"),
    "lda": Look("scikit-learn's LDA", "#cc79a7", "P"),
}
_CLUSTERS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00", "#999999")


def _panels(n_rows: int, n_columns: int, width: float, height: float, **options: Any) -> Any:
    """Figure and its axes (n_rows, n_columns); `height` is that of a row, in inches."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height * n_rows), layout="constrained")
        return figure, figure.subplots(n_rows, n_columns, squeeze=False, **options)


def _legend(figure: Figure, axes: Iterable[Axes], n_columns: int) -> None:
    """Legend below the panels, each label once."""
    unique: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        unique |= dict(zip(labels, handles, strict=True))
    with mpl.rc_context(_STYLE):
        figure.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=n_columns)


def _paper(ax: Axes, x: Any, y: Any, colour: str, marker: str = "o") -> None:
    """Values of the paper."""
    ax.plot(x, y, marker, color=colour, fillstyle="none", markersize=6.5, markeredgewidth=0.9)


def _log_axis(ax: Axes, x: Sequence[float], label: str) -> None:
    at = sorted(set(x))
    ax.set_xscale("log")
    ax.set_xticks(at, [f"{one:g}" for one in at])
    ax.set_xticks([], minor=True)
    ax.set_xlabel(label)


def _chance(ax: Axes, upright: bool = False) -> None:
    (ax.axvline if upright else ax.axhline)(0.5, color=_GREY, linestyle=":", linewidth=0.9)


# -- simulations ----------------------------------------------------------------------------------


def figure2(table: pd.DataFrame) -> Figure:
    """Predicted and true accuracies above, alphas below, one column for each number of sources."""
    sources = list(dict.fromkeys(table["n_sources"]))
    figure, axes = _panels(2, len(sources), 7.1, 1.9, sharey="row")
    for (above, below), n_sources in zip(axes.T, sources, strict=True):
        for ax, quantity in ((above, "accuracy"), (below, "alpha")):
            part = table[(table["n_sources"] == n_sources) & (table["quantity"] == quantity)]
            for name, line in part.groupby("classifier", sort=False):
                look = LOOKS[str(name)]
                x = line["n_target"]
                ax.plot(x, line["predicted"], color=look.colour, label=f"{look.label}, predicted")
                ax.plot(x, line["true"], "--", color=look.colour, label=f"{look.label}, true")
                _paper(ax, x, line["analytical"], look.colour)
                _paper(ax, x, line["empirical"], look.colour, "x")
            _log_axis(ax, part["n_target"], "labelled samples n")
        above.set_title(f"J = {n_sources}", size=8)
        _chance(above)
    axes[0, 0].set_ylabel("accuracy")
    axes[1, 0].set_ylabel("alpha")
    axes[0, 0].plot([], [], "o", color=_GREY, fillstyle="none", label="in the paper, analytical")
    axes[0, 0].plot([], [], "x", color=_GREY, label="in the paper, empirical")
    _legend(figure, axes.flat, 4)
    return figure


def figure3(table: pd.DataFrame) -> Figure:
    """Accuracies above, alphas below, against n, kappa and d."""
    kinds = list(dict.fromkeys(zip(table["panel"], table["covariance"], strict=True)))
    figure, axes = _panels(2, len(kinds), 7.1, 1.9, sharey="row")
    labels = {"n": "labelled samples n", "kappa": "concentration κ", "d": "features d"}
    for column, (panel, covariance) in zip(axes.T, kinds, strict=True):
        part = table[(table["panel"] == panel) & (table["covariance"] == covariance)]
        for ax, quantity in zip(column, ("accuracy", "alpha"), strict=True):
            for name, line in part.groupby("classifier", sort=False):
                if quantity == "alpha" and line["alpha"].isin([0.0, 1.0]).all():
                    continue
                look = LOOKS[str(name)]
                ax.plot(
                    *(line["x"], line[quantity]),
                    marker=look.marker,
                    color=look.colour,
                    label=look.label,
                )
                _paper(ax, line["x"], line[f"reference_{quantity}"], look.colour)
            _log_axis(ax, part["x"], labels[panel])
        column[0].set_title(f"covariance {'known' if covariance == 'known' else 'estimated'}")
        _chance(column[0])
    axes[0, 0].set_ylabel("accuracy")
    axes[1, 0].set_ylabel("alpha")
    axes[0, 0].plot([], [], "o", color=_GREY, fillstyle="none", label="in the paper")
    _legend(figure, axes.flat, 4)
    return figure


def misspecified(table: pd.DataFrame) -> Figure:
    """Accuracy of each rule in each scenario."""
    scenarios = list(dict.fromkeys(table["scenario"]))
    figure, [[ax]] = _panels(1, 1, 7.1, 0.9 + 0.4 * len(scenarios))
    names = list(dict.fromkeys(table["classifier"]))
    for place, name in enumerate(names):
        part, look = table[table["classifier"] == name].set_index("scenario"), LOOKS[name]
        height = np.arange(len(scenarios)) + 0.55 * (place / (len(names) - 1) - 0.5)
        ax.errorbar(
            *(part.loc[scenarios, "accuracy"], height),
            xerr=part.loc[scenarios, "accuracy_se"],
            fmt=look.marker,
            color=look.colour,
            elinewidth=0.9,
            label=look.label,
        )
    ax.set_yticks(range(len(scenarios)), scenarios)
    ax.invert_yaxis()
    ax.set_xlabel("accuracy; bars are standard errors")
    ax.grid(axis="x", alpha=0.25)
    _chance(ax, upright=True)
    _legend(figure, [ax], 4)
    return figure


def newcomers(rows: pd.DataFrame) -> Figure:
    """Accuracies of newcomers by classifier, and the gain of the hierarchical blend over LDA."""
    accuracy = rows.pivot(index="newcomer", columns="classifier", values="accuracy")
    names = list(dict.fromkeys(rows["classifier"]))
    figure, [[left, right]] = _panels(1, 2, 7.1, 2.4)
    boxes = left.boxplot(
        [accuracy[name] for name in names],
        orientation="horizontal",
        tick_labels=[LOOKS[name].label for name in names],
        showmeans=True,
        meanprops={"marker": "D", "markerfacecolor": "white", "markeredgecolor": "black"},
        medianprops={"color": "black"},
        flierprops={"marker": ".", "alpha": 0.5},
        patch_artist=True,
    )
    for box, name in zip(boxes["boxes"], names, strict=True):
        box.set(facecolor=LOOKS[name].colour, alpha=0.45)
    left.invert_yaxis()
    left.set_xlabel("accuracy on new samples (diamond: mean)")
    _chance(left, upright=True)
    gain = accuracy["hierarchical"] - accuracy["lda"]
    right.hist(gain, bins=25, color=LOOKS["hierarchical"].colour, alpha=0.6)
    right.axvline(0.0, color=_GREY, linestyle="--", linewidth=0.9)
    right.set_xlabel("gain of the hierarchical blend over scikit-learn's LDA")
    right.set_ylabel("newcomers")
    right.set_title(f"better for {(gain > 0).sum()} of {len(gain)}, by {gain.mean():+.3f}")
    return figure


# -- studies --------------------------------------------------------------------------------------


def study(means: pd.DataFrame, printed: pd.DataFrame) -> Figure:
    """Mean accuracies, alphas, and the gain of each person by budget, from means by task."""
    figure, [[left, middle, right]] = _panels(1, 3, 7.1, 2.3)
    budgets = sorted(set(means["budget"]))
    for name, part in means.groupby("method", sort=False):
        look, found = LOOKS[str(name)], part.groupby("budget")["balanced_accuracy"]
        error = 1.96 * found.sem()
        left.errorbar(
            *(budgets, found.mean(), error),
            fmt=f"-{look.marker}",
            color=look.colour,
            elinewidth=0.7,
            label=look.label,
        )
        paper = printed[printed["classifier"] == name]
        _paper(left, paper["proportion"], paper["value"], look.colour)
    left.plot([], [], "o", color=_GREY, fillstyle="none", label="in the paper")
    wide = means.pivot(index="task", columns=["method", "budget"], values="balanced_accuracy")
    gains = [wide["optimal", budget] - wide["target", budget] for budget in budgets]
    alphas = means[means["method"] == "optimal"].pivot(
        index="task", columns="budget", values="alpha"
    )
    for ax, values in ((middle, [alphas[budget] for budget in budgets]), (right, gains)):
        spread = np.linspace(-0.25, 0.25, len(values[0]))
        for place, column in enumerate(values):
            ax.plot(place + spread, np.sort(column), ".", color=LOOKS["optimal"].colour, alpha=0.6)
        ax.boxplot(values, positions=range(len(values)), showfliers=False, widths=0.7)
        ax.set_xticks(range(len(budgets)), [f"{one:.0%}" for one in budgets])
        ax.set_xlabel("labelled")
    right.axhline(0.0, color=_GREY, linestyle="--", linewidth=0.9)
    _log_axis(left, budgets, "labelled")
    left.set_xticks(budgets, [f"{one:.0%}" for one in budgets])
    left.set_ylabel("balanced accuracy")
    middle.set_ylabel("alpha of each person")
    right.set_ylabel("gain over target")
    _legend(figure, [left], 5)
    return figure


def effect_of_b(table: pd.DataFrame) -> Figure:
    """Error of alpha by the number of draws."""
    figure, [[ax]] = _panels(1, 1, 3.5, 2.5)
    table = table.dropna(subset="error")
    for place, (share, part) in enumerate(table.groupby("proportion")):
        colour = mpl.colormaps["viridis"](0.4 * place)
        ax.plot(part["n_draws"], part["error"], "-", color=colour, label=f"{share:.0%} labelled")
        _paper(ax, part["n_draws"], part["reference"], colour)
    ax.plot([], [], "o", color=_GREY, fillstyle="none", label="in the paper")
    _log_axis(ax, table["n_draws"], "draws B")
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("mean absolute error of alpha")
    _legend(figure, [ax], 2)
    return figure


# -- directions -----------------------------------------------------------------------------------


def figure1(table: pd.DataFrame) -> Figure:
    """All blends of a target's direction and the mean direction of its sources, on the sphere."""
    points = {str(role): part.to_numpy() for role, part in table.set_index("role").groupby("role")}
    [target], [mean] = points["target"], points["average-source"]
    figure, ax = _sphere(target + mean, target - mean)
    ax.plot(
        *(points["sample"] / 3.0).T,
        "o",
        color=LOOKS["target"].colour,
        markersize=2.0,
        alpha=0.6,
        markeredgewidth=0.0,
        label="target's samples",
    )
    _arrows(ax, points["source"], "#999999", "sources", 0.7)
    for name in ("average-source", "target"):
        _arrows(ax, points[name], LOOKS[name].colour, LOOKS[name].label, 1.8)
    line = blends(target, mean)
    colour = LOOKS["optimal"].colour
    ax.plot(*line.T, color=colour, linewidth=1.8, label="blends")
    arc = unit(np.linspace(mean, target, 10 * GRID.size))
    ax.plot(*arc.T, ":", color=colour, linewidth=1.0, label="their directions")
    _legend(figure, [ax], 3)
    return figure


def vectors(points: pd.DataFrame) -> Figure:
    """Directions by cluster: dots in a plane, or with three features arrows on a sphere."""
    spatial = "z" in points
    if spatial:
        W = points[["x", "y", "z"]].to_numpy()
        figure, ax = _sphere(W.mean(0), np.linalg.svd(W - W.mean(0))[2][0])
    else:
        figure, [[ax]] = _panels(1, 1, 3.5, 3.2)
        ax.set(xlabel="first component", ylabel="second component")
        ax.set_aspect("equal", adjustable="datalim")
    for cluster, part in points.groupby("cluster"):
        colour = _CLUSTERS[int(str(cluster)) - 1]
        label = f"cluster {cluster} ({len(part)})"
        if spatial:
            _arrows(ax, part[["x", "y", "z"]].to_numpy(), colour, label, 1.2)
        else:
            ax.plot(part["x"], part["y"], "o", color=colour, alpha=0.75, label=label)
    _legend(figure, [ax], 3)
    return figure


def _sphere(middle: Array, across: Array) -> tuple[Figure, Axes3D]:
    """Figure with a unit sphere, seen from beside the plane of two vectors."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(3.5, 3.2), layout="constrained")
        ax: Axes3D = figure.add_subplot(projection="3d")
    turn = np.linspace(0.0, 2.0 * np.pi, 73)
    for angle in np.linspace(0.0, np.pi, 7)[:-1]:
        circle = [np.cos(turn) * np.cos(angle), np.cos(turn) * np.sin(angle), np.sin(turn)]
        ax.plot(*circle, color="#dddddd", linewidth=0.5)
        height, radius = np.cos(angle + np.pi / 12.0), np.sin(angle + np.pi / 12.0)
        level = np.full_like(turn, height)
        ax.plot(radius * np.cos(turn), radius * np.sin(turn), level, color="#dddddd", linewidth=0.5)
    normal = np.cross(middle, across)
    x, y, z = 0.5 * unit(middle) + np.copysign(0.85, normal[2]) * unit(normal)
    ax.view_init(
        elev=float(np.degrees(np.arctan2(z, np.hypot(x, y)))),
        azim=float(np.degrees(np.arctan2(y, x))),
    )
    ax.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
    ax.set_box_aspect((1.0, 1.0, 1.0), zoom=1.2)
    ax.set_axis_off()
    return figure, ax


def _arrows(ax: Axes3D, directions: Array, colour: str, label: str, linewidth: float) -> None:
    """Arrows from the origin to the sphere."""
    for direction in directions:
        ax.quiver(
            *np.zeros(3), *direction, color=colour, linewidth=linewidth, arrow_length_ratio=0.1
        )
    ax.plot([], [], color=colour, linewidth=linewidth, label=label)

"""Methods and budgets in, their looks out: the same in all figures of a study."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade.plots._simulation import COLOURS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Widths of one and of two columns of a printed page, in inches.
ONE_COLUMN, TWO_COLUMNS = 3.5, 7.2
#: Sizes of letters, in points.
LETTERS, SMALL_LETTERS = 8.0, 7.0

_MORE = {
    "oracle": "#7f7f7f",
    "random-alpha": "#b0a08a",
    "posterior-unlabelled": "#332288",
    "pooled": "#882255",
    "mixture": "#0b6e4f",
    "convex-mixture": "#c07a00",
    "per-task": "#b3446c",
    "private": "#4b4b9a",
    "posterior-proportions": "#6f8faf",
    "pairwise": "#1b7837",
    "one-vs-rest": "#8c510a",
}
_MARKERS = {
    "target": "v",
    "average-source": "^",
    "paper": "s",
    "oracle": "x",
    "random-alpha": "+",
    "target-shrunk": "<",
    "convex": "D",
    "posterior": "o",
    "posterior-unlabelled": "p",
    "lda": "P",
    "pooled": "*",
    "mixture": "1",
    "convex-mixture": "2",
    "per-task": "3",
    "private": "4",
    "posterior-proportions": "|",
    "pairwise": "X",
    "one-vs-rest": ">",
}
#: For methods of the user's own, and for whatever else has to differ.
_SPARE = ("#a65628", "#999933", "#44aa99", "#aa4499", "#661100", "#117733")
_SPARE_MARKERS = ("h", "X", "d", "8", ">", "H")


class Look(NamedTuple):
    """Colour and marker of a method."""

    colour: str
    marker: str


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """A look for each method; our own always have the same."""
    known = COLOURS | _MORE
    found: dict[str, Look] = {}
    for method in methods:
        place = sum(name not in _MARKERS for name in found)
        spare = Look(
            _SPARE[place % len(_SPARE)],
            # With another number of markers than of colours, pairs repeat late.
            _SPARE_MARKERS[(place + place // len(_SPARE)) % len(_SPARE_MARKERS)],
        )
        found[method] = Look(known[method], _MARKERS[method]) if method in _MARKERS else spare
    return found


def budget_label(budget: float, n_labelled: float) -> str:
    """What a budget is called: a share of the smallest class, or windows of all."""
    return f"{100.0 * budget:.3g} %" if budget < 1.0 else f"{n_labelled:g} windows"


def panels(
    n_panels: int, width: float, height: float, *, n_columns: int = 4, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Figure with so many panels in rows, the height being that of one row."""
    from matplotlib.figure import Figure

    n_columns = min(n_panels, n_columns)
    n_rows = -(-n_panels // n_columns)
    figure = Figure(figsize=(width, height * n_rows), layout="constrained")
    grid = figure.subplots(n_rows, n_columns, squeeze=False, **options).ravel()
    for ax in grid[n_panels:]:
        ax.remove()
    for ax in grid[:n_panels]:
        ax.tick_params(labelsize=SMALL_LETTERS)
        ax.spines[["top", "right"]].set_visible(False)
    return figure, list(grid[:n_panels])


def legend_below(figure: Figure, ax: Axes, n_columns: int = 3) -> None:
    """Legend under the panels, each label once; the figure grows by what it takes."""
    handles, labels = ax.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    n_rows = -(-len(unique) // n_columns)
    n_columns = -(-len(unique) // n_rows)
    figure.set_figheight(figure.get_figheight() + 0.16 * n_rows + 0.1)
    figure.legend(
        unique.values(),
        unique.keys(),
        loc="outside lower center",
        ncols=n_columns,
        fontsize=SMALL_LETTERS,
        frameon=False,
        handlelength=1.6,
        columnspacing=1.2,
    )


def records(table: pd.DataFrame) -> list[Any]:
    """Rows of a table, with its columns as attributes."""
    return list(table.itertuples())


def spaced(places: NDArray[np.float64], least: float) -> list[int]:
    """Which of the ascending places can have a label, being so far apart or more."""
    kept: list[int] = []
    for index, place in enumerate(places):
        if not kept or place - places[kept[-1]] >= least:
            kept.append(index)
    return kept


def tip(ax: Axes, x: float, y: float, text: str, **look: Any) -> None:
    """One point, drawn as an artist of its own so that it can say what it is."""
    ax.plot([x], [y], linestyle="none", gid=f"tip:{text}", **look)


def shades_of(count: int) -> list[Any]:
    """Colours in an order that can be seen, also by the colour-blind."""
    from matplotlib import colormaps

    return list(colormaps["viridis"](np.linspace(0.0, 0.85, count)))

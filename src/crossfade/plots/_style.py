"""One style for all figures: sizes, panels, legends, ticks, and points that say what they are.

Letters, lines and spines are those of ``crossfade.mplstyle``, which other figures can use, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Widths of one and of two columns of a printed page, in inches.
ONE_COLUMN, TWO_COLUMNS = 3.5, 7.2
#: Sizes of letters, in points: labels and titles; ticks and legends.
LETTERS, SMALL_LETTERS = 8.0, 7.0
#: Markers that are lines, and would vanish without an edge.
LINE_MARKERS = "x+|1234"
#: How values of the paper are drawn.
PAPER: dict[str, Any] = {"marker": "o", "fillstyle": "none", "markersize": 7, "linestyle": "none"}
#: In the id of points: between their method and what they say, and between two of them.
_OWNER, _NEXT = "\u241f", "\u241e"


def panels(
    n_panels: int, width: float, height: float, *, n_columns: int = 4, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Figure with `n_panels` in rows of `n_columns`; `height` is that of one row, in inches."""
    from matplotlib.figure import Figure

    n_columns = min(n_panels, n_columns)
    n_rows = -(-n_panels // n_columns)
    with in_style():
        figure = Figure(figsize=(width, height * n_rows))
        grid = figure.subplots(n_rows, n_columns, squeeze=False, **options).ravel()
    for ax in grid[n_panels:]:
        ax.remove()
    return figure, list(grid[:n_panels])


def in_style() -> AbstractContextManager[None]:
    """Context in which figures and legends are made in our style."""
    import matplotlib

    return matplotlib.rc_context(_sheet())


@cache
def _sheet() -> dict[Any, Any]:
    import matplotlib

    with as_file(files("crossfade.plots") / "crossfade.mplstyle") as path:
        return dict(matplotlib.rc_params_from_file(path, use_default_template=False))


def legend_below(figure: Figure, *axes: Axes) -> None:
    """Legend under the panels, each label once, in as many columns as fit; the figure grows."""
    unique: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        unique |= {one: handle for handle, one in zip(handles, labels, strict=True)}
    if not unique:
        return
    # A letter is half as wide as high; handle and gaps take another half inch.
    column = 0.52 * SMALL_LETTERS / 72.0 * max(map(len, unique)) + 0.45
    n_columns = int(np.clip(figure.get_figwidth() // column, 1, len(unique)))
    n_rows = -(-len(unique) // n_columns)
    figure.set_figheight(figure.get_figheight() + 0.16 * n_rows + 0.1)
    columns = -(-len(unique) // n_rows)
    with in_style():
        figure.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=columns)


def chance_line(ax: Axes, chance: float, *, upright: bool = False) -> None:
    """Dotted line at the accuracy of guessing, with its name; upright where accuracy is x."""
    look: dict[str, Any] = {"color": "grey", "linestyle": ":", "linewidth": 0.9, "zorder": 0}
    name: dict[str, Any] = {"color": "grey", "size": SMALL_LETTERS - 1.0}
    if upright:
        ax.axvline(chance, gid="chance", **look)
        at = ax.get_xaxis_transform()
        ax.text(chance, 1.0, "chance", transform=at, ha="center", va="bottom", **name)
    else:
        ax.axhline(chance, gid="chance", **look)
        at = ax.get_yaxis_transform()
        ax.text(1.0, chance, "chance", transform=at, ha="right", va="bottom", **name)


def log_axis(ax: Axes, x: Sequence[float], labels: Sequence[str], width: float) -> None:
    """Logarithmic axis, `width` inches wide, with a label at each x; where two would touch, one."""
    at, names = np.asarray(x, dtype=np.float64), list(labels)
    margin = max(1.35, (at[-1] / at[0]) ** 0.07) if at.size > 1 else 2.0
    ax.set_xscale("log")
    ax.set_xlim(at[0] / margin, at[-1] * margin)
    ends = np.log([at[0] / margin, at[-1] * margin])
    places = 72.0 * width * (np.log(at) - ends[0]) / (ends[1] - ends[0])
    # Half the width of each label, in points, and half a gap.
    room = np.array([0.3 * SMALL_LETTERS * len(name) + 1.5 for name in names])
    kept: list[int] = []
    for place in range(at.size):
        if not kept or places[place] - places[kept[-1]] >= room[place] + room[kept[-1]]:
            kept.append(place)
    ax.set_xticks(at[kept], [names[place] for place in kept])
    ax.set_xticks([one for place, one in enumerate(at) if place not in kept], minor=True)
    ax.xaxis.set_minor_formatter("")


def records(table: pd.DataFrame) -> list[Any]:
    """Rows of a table, with its columns as attributes."""
    return list(table.itertuples())


def tip_id(*texts: str, owner: str = "") -> str:
    """Id of an artist whose points say something, on behalf of a method if there is an owner."""
    return f"tip:{owner}{_OWNER}{_NEXT.join(texts)}"


def told_by(gid: str) -> tuple[str, list[str]]:
    """Owner and texts of an id that :func:`tip_id` made."""
    owner, _, texts = gid.removeprefix("tip:").rpartition(_OWNER)
    return owner, texts.split(_NEXT)


def tips(
    ax: Axes, x: ArrayLike, y: ArrayLike, texts: Sequence[str], owner: str = "", **look: Any
) -> None:
    """Points of one look, one artist, that say what they are; those that are NaN are left out."""
    at = np.stack([np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)])
    there = np.flatnonzero(np.isfinite(at).all(0))
    if there.size:
        said = [texts[place] for place in there.tolist()]
        ax.plot(*at[:, there], linestyle="none", gid=tip_id(*said, owner=owner), **look)


def shades_of(count: int) -> list[Any]:
    """Colours in an order that can be seen, also by the colour-blind."""
    from matplotlib import colormaps

    return list(colormaps["viridis"](np.linspace(0.0, 0.85, count)))

"""One style for all figures, ``crossfade.mplstyle``: sizes, panels, legends, ticks, files, tips."""

from __future__ import annotations

import io
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

#: Widths of one and of two columns of a journal, 88 and 180 mm, in inches.
ONE_COLUMN, TWO_COLUMNS = 88.0 / 25.4, 180.0 / 25.4
#: Lines that a panel of one column has room for.
_FEW_LINES = 6
#: Sizes of letters, in points: labels and titles; ticks and legends.
LETTERS, SMALL_LETTERS = 8.0, 7.0
#: Grey for everything but methods; letters in it can be read on white.
GREY = "#666666"
#: Markers that are lines, and would vanish without an edge.
LINE_MARKERS = "x+|1234"
#: Dots per inch of pictures; nothing in a file may depend on when it was written.
_DPI = 300
_UNDATED: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {},
}
_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "crossfade",
    "pdf.fonttype": 42,
    # Names of methods are not formulas.
    "text.parse_math": False,
}
#: In the id of points: between their method and what they say, and between two of them.
_OWNER, _NEXT = "\u241f", "\u241e"


def panels(n_panels: int, width: float, height: float, **options: Any) -> tuple[Figure, list[Axes]]:
    """Figure with `n_panels` in rows of four; `height` is that of one row, in inches."""
    from matplotlib.figure import Figure

    n_columns = min(n_panels, 4)
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


def width_for(n_lines: int) -> float:
    """Width of a panel in which so many lines can be told apart."""
    return ONE_COLUMN if n_lines <= _FEW_LINES else TWO_COLUMNS


def for_files() -> AbstractContextManager[None]:
    """Context in which figures are drawn and written that end up in files."""
    import matplotlib

    settings: Any = _SETTINGS
    return matplotlib.rc_context(settings)


def render(figure: Figure, image_format: str) -> bytes:
    """Content of a picture file, the same whenever it is made."""
    content = io.BytesIO()
    with for_files():
        figure.savefig(
            content,
            format=image_format,
            dpi=_DPI,
            transparent=image_format == "svg",
            metadata=_UNDATED[image_format],
        )
    return content.getvalue()


def legend_below(figure: Figure, *axes: Axes) -> None:
    """Legend under the panels, each label once, in as many columns as fit; the figure grows."""
    unique: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        unique |= {one: handle for handle, one in zip(handles, labels, strict=True)}
    if not unique:
        return
    # A letter is half as wide as high; handle and gaps take another half inch.
    column = 0.52 * SMALL_LETTERS / 72.0 * max(map(len, unique)) + 0.5
    n_columns = int(np.clip(figure.get_figwidth() // column, 1, len(unique)))
    n_rows = -(-len(unique) // n_columns)
    figure.set_figheight(figure.get_figheight() + 0.16 * n_rows + 0.1)
    columns = -(-len(unique) // n_rows)
    with in_style():
        figure.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=columns)


def chance_line(ax: Axes, chance: float) -> None:
    """Dotted line at the accuracy of guessing; its name is where no other line ends."""
    look: dict[str, Any] = {"color": GREY, "linestyle": ":", "linewidth": 0.9, "zorder": 0}
    name: dict[str, Any] = {"color": GREY, "size": SMALL_LETTERS - 1.0, "va": "bottom"}
    lines = [np.asarray(line.get_ydata(), dtype=np.float64) for line in ax.get_lines()]
    ax.axhline(chance, gid="chance", **look)
    above = (np.array([one[-1] for one in lines if one.size]) - chance) / np.ptp(ax.get_ylim())
    ends_there = bool(((above > -0.02) & (above < 0.1)).any())
    x, side = (0.02, "left") if ends_there else (1.0, "right")
    ax.text(x, chance, "chance", transform=ax.get_yaxis_transform(), ha=side, **name)


def log_axis(ax: Axes, x: Sequence[float], labels: Sequence[str], width: float) -> None:
    """Logarithmic axis, `width` inches wide, with labels at both ends and where there is room."""
    at, names = np.asarray(x, dtype=np.float64), list(labels)
    margin = max(1.35, (at[-1] / at[0]) ** 0.07) if at.size > 1 else 2.0
    ax.set_xscale("log")
    ax.set_xlim(at[0] / margin, at[-1] * margin)
    ends = np.log([at[0] / margin, at[-1] * margin])
    places = 72.0 * width * (np.log(at) - ends[0]) / (ends[1] - ends[0])
    # Half the width of each label, in points, and half a gap.
    room = np.array([0.3 * SMALL_LETTERS * len(name) + 1.0 for name in names])

    def touch(one: int, other: int) -> bool:
        return bool(abs(places[one] - places[other]) < room[one] + room[other])

    kept = [0]
    for place in range(1, at.size):
        if place == at.size - 1:
            kept = [one for one in kept if not one or not touch(one, place)]
            kept.append(place)
        elif not touch(kept[-1], place):
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

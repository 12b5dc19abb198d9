"""Tables in; cells that people read out, in Markdown and in HTML."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade.plots._style import budget_label
from crossfade.study.statistics import p_text

if TYPE_CHECKING:
    import pandas as pd

_HEADS = {
    "n_labelled": "labelled windows",
    "n_tasks": "tasks",
    "n_failed": "failed splits",
    "n_left_out": "left out",
    "n_splits": "splits",
    "n_groups": "participants",
    "n": "splits",
    "low": "95 % from",
    "high": "to",
    "p_value": "p",
    "p_holm": "p (Holm)",
    "share_saved": "share saved",
    "expected_accuracy": "forecast",
    "at_least": "forecast from",
    "below": "up to",
    "smaller_class": "windows of the smallest class",
    "min_difference": "lowest",
    "max_difference": "highest",
}
_SIGNED = {"mean_difference", "median_difference", "max_difference", "min_difference", "bias"}
_WHOLE = {"n_labelled", "wins", "ties", "losses", "smaller_class", "n"}
_DIGITS = {"needed": 1, "saved": 1, "at_least": 2, "below": 2}
_BOUNDS = {"=": "", "<=": "at most ", ">": "more than "}
#: Lines from which on a table scrolls in its box, and letters from which on a cell may wrap.
_TALL, _PROSE = 16, 40
#: What a cell without a number shows.
NOTHING = "–"


def number(value: float, digits: int = 3, *, signed: bool = False) -> str:
    """A number with a true minus sign; a dash where there is none.

    Parameters
    ----------
    value : float
        The number.
    digits : int, default=3
        Digits after the point.
    signed : bool, default=False
        Whether positive numbers have a sign too.

    Returns
    -------
    str
        Its text.
    """
    if not np.isfinite(value):
        return NOTHING
    # What rounds to zero has no sign.
    rounded = round(float(value), digits) + 0.0
    return f"{rounded:{'+' if signed and rounded else ''}.{digits}f}".replace("-", "−")


def cells(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of a table as people read them.

    Parameters
    ----------
    table : DataFrame
        One of the tables of a report.

    Returns
    -------
    heads : list of str
        One for each column.
    lines : list of list of str
        One for each row.
    """
    heads = [_HEADS.get(name, name.replace("_", " ")) for name in table.columns]
    lines = [[_cell(name, line) for name in line] for line in table.to_dict("records")]
    return heads, lines


def _cell(name: Any, line: Mapping[Any, Any]) -> str:
    value = line[name]
    if isinstance(value, str):
        return value
    if name == "budget":
        return budget_label(value, line["n_labelled"])
    if name.startswith("p_"):
        return p_text(value)
    if name == "share_saved":
        return f"{number(100.0 * value, 0)} %" if np.isfinite(value) else NOTHING
    if name in _WHOLE or name.startswith("n_"):
        return number(value, 0)
    if name in ("low", "high") and "needed" in line:
        return number(value, 1)
    return number(value, _DIGITS.get(name, 3), signed=name in _SIGNED)


def markdown(table: pd.DataFrame) -> str:
    """A table in Markdown.

    Parameters
    ----------
    table : DataFrame
        One of the tables of a report.

    Returns
    -------
    str
        The same with a line for each row.
    """
    heads, lines = cells(table)
    aligned = ["---" if text else "---:" for text in _are_text(table)]
    parts = [heads, aligned, *lines]
    return "".join(f"| {' | '.join(map(_in_markdown, line))} |\n" for line in parts)


def _in_markdown(text: str) -> str:
    for sign in "\\|<`*_":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def _are_text(table: pd.DataFrame) -> list[bool]:
    return [any(isinstance(value, str) for value in table[name]) for name in table.columns]


def html_table(table: pd.DataFrame, caption: str) -> str:
    """A table in HTML, in a box of its own that scrolls where it is too wide.

    Parameters
    ----------
    table : DataFrame
        One of the tables of a report.
    caption : str
        What it shows.

    Returns
    -------
    str
        The same, everything escaped.
    """
    heads, lines = cells(table)
    return boxed(heads, lines, caption, _are_text(table))


def boxed(
    heads: Sequence[str],
    lines: Sequence[Sequence[str]],
    caption: str,
    are_text: Sequence[bool],
    *,
    name: str = "",
    best: Container[tuple[int, int]] = (),
) -> str:
    """Cells as a table in HTML; the first of each line is its head.

    Parameters
    ----------
    heads : sequence of str
        One for each column.
    lines : sequence of sequence of str
        One for each row; a line break parts a cell from what stands small below it.
    caption : str
        What the table shows.
    are_text : sequence of bool
        Which columns are words.
    name : str, default=""
        An id, for tables that a script finds.
    best : container of (int, int), default=()
        Line and column of cells that stand out.

    Returns
    -------
    str
        The table in its box, everything escaped.
    """
    kinds = ["" if text else "number" for text in are_text]
    head = "".join(
        f'<th scope="col"{_classes(kind)}>{escape(one)}</th>'
        for one, kind in zip(heads, kinds, strict=True)
    )
    body = []
    for place, line in enumerate(lines):
        first, *rest = (
            f"{_classes(kind, _look(one, (place, column) in best))}>{_with_small(one)}"
            for column, (one, kind) in enumerate(zip(line, kinds, strict=True))
        )
        body.append(
            f'<tr><th scope="row"{first}</th>' + "".join(f"<td{one}</td>" for one in rest) + "</tr>"
        )
    label = escape(caption, quote=True)
    box = "box tall" if len(lines) > _TALL else "box"
    attribute = f' id="{name}"' if name else ""
    return (
        f'<div class="{box}" role="region" tabindex="0" aria-label="{label}"><table{attribute}>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>\n<tbody>"
        + "\n".join(body)
        + "</tbody></table></div>"
    )


def _classes(*names: str) -> str:
    there = " ".join(name for name in names if name)
    return f' class="{there}"' if there else ""


def _look(cell: str, is_best: bool) -> str:
    return "best" if is_best else "prose" if len(cell) > _PROSE else ""


def _with_small(cell: str) -> str:
    first, *rest = (escape(part) for part in cell.split("\n"))
    return first + "".join(f"<small>{part}</small>" for part in rest)


def bounded(table: pd.DataFrame) -> pd.DataFrame:
    """Labels saved, with the sign of a bound in words beside its number.

    Parameters
    ----------
    table : DataFrame
        What :func:`crossfade.study.statistics.labels_saved` returns.

    Returns
    -------
    DataFrame
        The columns that people read.
    """
    words: dict[str, list[str]] = {"needed": [], "saved": [], "share_saved": []}
    for line in table.to_dict("records"):
        at_least = "at least " if line["bound"] == "<=" else ""
        needed = number(line["needed"], 1)
        words["needed"].append(_BOUNDS.get(line["bound"], "") + needed)
        for name in ("saved", "share_saved"):
            none = line["bound"] == ">"
            words[name].append("none" if none else at_least + _cell(name, line))
    columns = ["against", "accuracy", "n_labelled", "needed", "saved", "low", "high"]
    return table.assign(**words)[[*columns, "share_saved"]]

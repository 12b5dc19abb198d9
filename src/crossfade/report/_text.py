"""Numbers, names and tables as people read them, in Markdown and on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crossfade.plots import method_of
from crossfade.study import budget_text
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
    "wins": "better",
    "ties": "equal",
    "losses": "worse",
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
    "rms": "error of one forecast (RMS)",
    "constant_rms": "of the constant forecast",
    "coverage_68": "68 % interval holds",
    "coverage_90": "90 % interval holds",
    "forecast": "mean forecast",
    "outcome": "mean outcome",
    "brier": "Brier score",
    "reached": "reach it in the end",
    "total": "in all",
    "n_people": "people",
    "n_never": "never reach it",
}
_SIGNED = {
    "mean_difference",
    "median_difference",
    "max_difference",
    "min_difference",
    "bias",
}
_WHOLE = {"n_labelled", "wins", "ties", "losses", "smaller_class", "n"}
_PERCENT = {"share_saved", "coverage_68", "coverage_90", "reached", "share"}
_DIGITS = {
    "windows": 0,
    "total": 0,
    "seconds": 0,
    "flat_from": 0,
    "needed": 1,
    "saved": 1,
    "at_least": 2,
    "below": 2,
}
#: Letters from which on a cell of text may wrap.
_PROSE = 40
#: What a cell without a number shows.
NOTHING = "–"


class Table(NamedTuple):
    """Table of the page: a line break in a cell parts it from what stands small below it."""

    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    caption: str
    #: Which columns are words.
    are_text: Sequence[bool]
    #: Id, for tables that the script looks for.
    name: str = ""
    #: Line and column of cells that stand out.
    best: frozenset[tuple[int, int]] = frozenset()

    def look(self, row: int, column: int) -> str:
        """Classes of a cell."""
        if not self.are_text[column]:
            return "number best" if (row, column) in self.best else "number"
        return "prose" if len(self.lines[row][column]) > _PROSE else ""


def table_of(frame: pd.DataFrame, caption: str) -> Table:
    """Table of the page from a table of the report."""
    heads, lines = cells(frame)
    return Table(heads, lines, caption, _are_text(frame))


def number(value: float, digits: int = 3, *, signed: bool = False) -> str:
    """Number with a true minus sign; a dash where there is none."""
    if not np.isfinite(value):
        return NOTHING
    # What rounds to zero has no sign.
    rounded = round(float(value), digits) + 0.0
    return f"{rounded:{'+' if signed and rounded else ''}.{digits}f}".replace("-", "−")


def cells(frame: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of a table as people read them."""
    heads = [_HEADS.get(name, name.replace("_", " ")) for name in frame.columns]
    lines = [[_cell(name, line) for name in line] for line in frame.to_dict("records")]
    return heads, lines


def _cell(name: Any, line: Mapping[Any, Any]) -> str:
    value = line[name]
    if isinstance(value, str):
        return method_of(value).label if name in ("method", "against") else value
    if name == "budget":
        return budget_text(value)
    if name.startswith("p_"):
        return p_text(value)
    if name in _PERCENT:
        return f"{number(100.0 * value, 0)} %" if np.isfinite(value) else NOTHING
    if name in _WHOLE or name.startswith("n_"):
        return number(value, 0)
    if name in ("low", "high") and ("needed" in line or "windows" in line):
        return number(value, 1 if "needed" in line else 0)
    if name in ("windows", "total") and np.isposinf(value):
        return "more"
    return number(value, _DIGITS.get(name, 3), signed=name in _SIGNED)


def _are_text(frame: pd.DataFrame) -> list[bool]:
    return [any(isinstance(value, str) for value in frame[name]) for name in frame.columns]


def markdown(frame: pd.DataFrame) -> str:
    """Table in Markdown."""
    heads, lines = cells(frame)
    aligned = ["---" if text else "---:" for text in _are_text(frame)]
    parts = [heads, aligned, *lines]
    return "".join(f"| {' | '.join(map(_in_markdown, line))} |\n" for line in parts)


def _in_markdown(text: str) -> str:
    for sign in "\\|<`*_":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def class_text(names: Mapping[Any, str], label: object) -> str:
    """What people read instead of a label: its name, the label if it is a word, "class 1"."""
    return names.get(label) or (label if isinstance(label, str) else f"class {label}")

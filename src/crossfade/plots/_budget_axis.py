"""The axis of budgets: logarithmic, with a place for no label at the left.

It shows windows of each class, shares of the smallest class, or labelled windows of all classes if
both occur. Unequal budgets such as 24+2 stand to the right of the curves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crossfade._typing import Array
from crossfade.plots._style import GREY, log_axis
from crossfade.study import budget_text, is_unequal

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


#: Distance between two places beside the curve, and of the first from its end, as factors.
_STEP, _GAP = 1.7, 2.0


def short_text(budget: float) -> str:
    """Text of a budget on an axis: "0", "2", "24+2", "5 %"."""
    return budget_text(budget).removesuffix(" of each class") if budget else "0"


def in_order(budgets: Iterable[float]) -> list[float]:
    """Budgets once each, the smallest first and unequal ones last."""
    return sorted(set(budgets), key=lambda one: (is_unequal(one), one))


class BudgetAxis(NamedTuple):
    """Where budgets stand, what they are called there, and what the axis is called."""

    places: dict[float, float]
    ticks: dict[float, str]
    label: str
    #: Where no label stands.
    zero: float
    #: Where the curve ends and unequal numbers begin; NaN without these.
    end: float

    @classmethod
    def of(cls, table: pd.DataFrame) -> BudgetAxis:
        """Axis for the columns `budget` and `n_labelled`."""
        windows = table.groupby("budget")["n_labelled"].median()
        counts = {float(str(one)): float(n) for one, n in windows.items()}
        unequal = [one for one in counts if is_unequal(one)]
        curve = [one for one in counts if one not in unequal]
        label, at = "labelled windows", {one: counts[one] for one in curve}
        if all(one < 1.0 for one in curve) and any(curve):
            label, at = "labelled share of the smallest class", {one: one for one in curve}
        elif all(one == int(one) for one in curve):
            label, at = "labelled windows of each class", {one: one for one in curve}
        positive = [x for x in at.values() if x > 0.0]
        zero = min(positive) / 2.0 if positive else 1.0
        places = {one: x or zero for one, x in at.items()}
        by_share = label.startswith("labelled share")
        ticks = {
            x: "0" if not at[one] else f"{100.0 * x:.3g} %" if by_share else f"{x:g}"
            for one, x in places.items()
        }
        end = max(places.values(), default=zero)
        for place, one in enumerate(unequal):
            places[one] = end * _GAP * _STEP**place
            ticks[places[one]] = short_text(one)
        between = end * np.sqrt(_GAP) if unequal and curve else np.nan
        return cls(places, ticks, label, zero, float(between))

    def x(self, budgets: Any) -> Array:
        """Places of budgets (n,)."""
        return np.array([self.places[float(one)] for one in budgets])

    def dodge(self, place: int, n_lines: int) -> float:
        """Factor by which a line stands beside the others, all of them in half a gap."""
        gaps = np.diff(np.log(np.unique(list(self.places.values()))))
        step = 0.5 * min(gaps.min(initial=np.inf), 0.7) / n_lines
        return float(np.exp(step * (place - (n_lines - 1) / 2.0)))

    def draw(self, ax: Axes, width: float, more: str = "") -> None:
        """Scale, ticks and label of an axis, `width` inches wide; `more` is a last tick, if any."""
        ticks = dict(sorted(self.ticks.items()))
        if more:
            ticks[self.beyond] = more
        log_axis(ax, list(ticks), list(ticks.values()), width)
        ax.set_xlabel(self.label)
        if np.isfinite(self.end):
            ax.axvline(self.end, color=GREY, linewidth=0.6, alpha=0.5, zorder=0)

    @property
    def beyond(self) -> float:
        """Place of what is more than was tried."""
        return max(self.places.values()) * _GAP

"""How many windows a new person needs, until most people reach an accuracy.

The accuracy that a share s of J people reach at a budget is their k-th highest, with
k = ceil(s J). Over budgets its running maximum counts, since with more labelled windows there are
fewer to test on, joined by straight lines in the logarithm of the labelled windows; where it
crosses the accuracy asked for is the answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import RandomState
from crossfade._validate import as_generator
from crossfade.study._budgets import budget_of
from crossfade.study._resampling import ROUNDING, by_task, limits, log_needed

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

#: Columns of the table.
NEEDED = [
    *("method", "accuracy", "share", "windows", "low", "high", "total", "seconds", "bound"),
    *("reached", "flat_from", "n_people", "n_left_out", "n_never", "never", "reason"),
]

_N_RESAMPLES = 2000
#: Numbers that one array of resampled people may hold.
_LARGEST = 2_000_000


def windows_needed(
    rows: pd.DataFrame,
    accuracy: float,
    share: float,
    *,
    flat: float = 0.01,
    n_classes: int | None = None,
    window_seconds: Mapping[str, float] | None = None,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """Table of :meth:`crossfade.study.StudyResult.needed`, one line for each method."""
    import pandas as pd

    accuracy, share = _proportion("accuracy", accuracy), _proportion("share", share)
    means = by_task(rows)
    means = means[[not isinstance(budget_of(one), tuple) for one in means["budget"]]]
    if means.empty:
        raise ValueError(
            "No budget of the study has as many windows of each class, so that there is no curve "
            "to read the windows from. Run it with whole numbers or proportions, too."
        )
    if n_classes is None:
        n_classes = _classes_of(means)
    known = window_seconds or {}
    steps = [known[name] for name in set(means["task"]) if name in known]
    lines = []
    for method in dict.fromkeys(means["method"]):
        own = _People.of(means[means["method"] == method])
        line = own.line(accuracy, share, flat, n_classes, random_state)
        line["seconds"] = line["total"] * (np.median(steps) if steps else np.nan)
        lines.append({"method": method, "accuracy": accuracy, "share": share, **line})
    return pd.DataFrame(lines, columns=NEEDED)


def reached(means: pd.DataFrame, share: float) -> float:
    """Accuracy that a share of people reach at some budget, from the rows of one method."""
    people = _People.of(means[[not isinstance(budget_of(one), tuple) for one in means["budget"]]])
    return float(_reached_by(people.accuracies[None], share).max())


def _proportion(name: str, value: object) -> float:
    number = isinstance(value, (int, float, np.integer, np.floating))
    if not number or isinstance(value, bool) or not 0.0 < value <= 1.0:  # type: ignore[operator]
        raise ValueError(f"{name} must be a number above 0 and not above 1; got {value!r}.")
    return float(value)  # type: ignore[arg-type]


def _classes_of(means: pd.DataFrame) -> int | None:
    """Number of classes, as whole budgets tell it."""
    whole = means[means["budget"] >= 1.0]
    return None if whole.empty else round(float((whole["n_labelled"] / whole["budget"]).iloc[0]))


class _People:
    """Accuracies (n_people, n_budgets) of one method, by labelled windows (n_budgets,)."""

    def __init__(self, names: list[str], accuracies: Array, n_labelled: Array, n_left: int) -> None:
        self.names = names
        self.accuracies = accuracies
        self.n_labelled = n_labelled
        self.n_left_out = n_left

    @classmethod
    def of(cls, means: pd.DataFrame) -> _People:
        """People who have an accuracy at all budgets, but for those that half of them lack.

        A person is the mean of their tasks.
        """
        people = means.pivot_table(index="group", columns="budget", values="balanced_accuracy")
        people = people.dropna(axis="columns", thresh=max(1, math.ceil(len(people) / 2)))
        whole = people.dropna()
        windows = means.groupby("budget")["n_labelled"].median().reindex(whole.columns).to_numpy()
        n_left_out = means["group"].nunique() - len(whole)
        # Budgets that come to as many windows are one point of the curve.
        n_labelled, which = np.unique(windows, return_inverse=True)
        weights = np.eye(n_labelled.size)[which]
        accuracies = whole.to_numpy() @ weights / np.maximum(weights.sum(0), 1.0)
        return cls([str(name) for name in whole.index], accuracies, n_labelled, n_left_out)

    def line(
        self,
        accuracy: float,
        share: float,
        flat: float,
        n_classes: int | None,
        random_state: RandomState,
    ) -> dict[str, Any]:
        """What the table says of the method, but for seconds."""
        n_people = len(self.names)
        if not n_people or not self.n_labelled.size:
            nothing = dict.fromkeys(("windows", "low", "high", "total", "reached", "flat_from"))
            why = "no person has an accuracy at all budgets"
            return {
                **dict.fromkeys(nothing, np.nan),
                **{"bound": "", "n_people": 0, "n_left_out": self.n_left_out},
                **{"n_never": 0, "never": "", "reason": why},
            }
        # First as it is, then as it would be with other people.
        curves = np.vstack(
            [_reached_by(self.accuracies[None], share), self._redrawn(share, random_state)]
        )
        # Who has reached it with few windows has reached it: with more there are fewer to test on.
        curves = np.maximum.accumulate(curves, -1)
        logs = log_needed(self.n_labelled, curves, np.full((len(curves), 1), accuracy))[:, 0]
        low, high = limits(logs[1:], n_people)
        each = 1.0 / n_classes if n_classes else np.nan
        fewest, most = float(self.n_labelled[0]), float(self.n_labelled[-1])
        total = self._windows(logs[0], n_classes)
        there = self.accuracies >= accuracy - ROUNDING
        never = [self.names[place] for place in np.flatnonzero(~there.any(1)).tolist()]
        reached = float(there[:, -1].mean())
        bound, reason = "=", ""
        if np.isposinf(logs[0]):
            bound = ">"
            reason = (
                f"{reached:.0%} of people reach it with {most:g} labelled windows, the most that "
                "were tried"
            )
        elif np.isneginf(logs[0]) and fewest:
            bound = "<="
            reason = f"{fewest:g} labelled windows are enough, and fewer were not tried"
        return {
            "windows": total * each,
            "low": self._windows(low, n_classes) * each,
            "high": self._windows(high, n_classes) * each,
            "total": total,
            "bound": bound,
            "reached": reached,
            "flat_from": self._flat_from(flat) * each,
            "n_people": n_people,
            "n_left_out": self.n_left_out,
            "n_never": len(never),
            "never": ", ".join(never),
            "reason": reason,
        }

    def _windows(self, log: Any, n_classes: int | None) -> float:
        """Labelled windows, as many of each class, of which there are no parts."""
        value = float(log)
        if not np.isfinite(value):
            return {np.inf: np.inf, -np.inf: float(self.n_labelled[0])}.get(value, np.nan)
        step = n_classes or 1
        return step * math.ceil(math.exp(value) / step - 1e-9)

    def _redrawn(self, share: float, random_state: RandomState) -> Array:
        """Accuracies (2000, n_budgets) that the share reaches when people are drawn anew."""
        n_people, n_budgets = self.accuracies.shape
        rng = as_generator(random_state)
        parts = []
        at_once = max(1, _LARGEST // (n_people * n_budgets))
        for first in range(0, _N_RESAMPLES, at_once):
            size = min(at_once, _N_RESAMPLES - first), n_people
            parts.append(_reached_by(self.accuracies[rng.integers(n_people, size=size)], share))
        return np.concatenate(parts)

    def _flat_from(self, flat: float) -> float:
        """Labelled windows from which on more gain less than `flat` in the mean; NaN if they do."""
        curve = self.accuracies.mean(0)
        later = np.maximum.accumulate(curve[::-1])[::-1][1:]
        places = np.flatnonzero(later - curve[:-1] < flat)
        return float(self.n_labelled[places[0]]) if places.size else np.nan


def _reached_by(accuracies: Array, share: float) -> Array:
    """Accuracies (n_draws, n_budgets) that a share of people (n_draws, n_people, ...) reach."""
    n_people = accuracies.shape[1]
    place = n_people - max(1, math.ceil(share * n_people - 1e-9))
    reached: Array = np.partition(accuracies, place, axis=1)[:, place]
    return reached

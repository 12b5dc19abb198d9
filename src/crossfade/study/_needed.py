"""How many windows a new person needs, until most people reach an accuracy.

The accuracy that a share s of J people reach at a budget is their k-th highest, with
k = ceil(s J). Over budgets its running maximum counts, since with more labelled windows there are
fewer to test on, joined by straight lines in the logarithm of the labelled windows. The answer is
where this curve crosses the accuracy asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from crossfade._typing import Array
from crossfade._validate import check_number
from crossfade.study._resampling import (
    LARGEST,
    N_RESAMPLES,
    ROUNDING,
    by_task,
    limits,
    log_needed,
)
from crossfade.study._splits import is_unequal

#: Columns of the table.
NEEDED = [
    *("method", "accuracy", "share", "windows", "low", "high", "total", "seconds", "bound"),
    *("reached", "flat_from", "n_people", "n_left_out", "n_never", "never", "reason"),
]


def windows_needed(
    rows: pd.DataFrame,
    accuracy: float,
    share: float,
    *,
    flat: float = 0.01,
    n_classes: int | None = None,
    window_seconds: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Table of :meth:`crossfade.study.StudyResult.needed`, one line for each method."""
    accuracy = check_number("accuracy", accuracy, 0.0, 1.0)
    share = check_number("share", share, 1e-6, 1.0)
    means = by_task(rows)
    means = means[[not is_unequal(one) for one in means["budget"]]]
    if means.empty:
        raise ValueError(
            "No budget of the study has as many windows of each class. Run it with whole numbers "
            "or proportions, too."
        )
    if n_classes is None:
        # Whole budgets tell.
        whole = means[means["budget"] >= 1.0]
        ratios = (whole["n_labelled"] / whole["budget"]).tolist()
        n_classes = round(ratios[0]) if ratios else None
    known = window_seconds or {}
    steps = [known[name] for name in set(means["task"]) if name in known]
    lines = []
    for method in dict.fromkeys(means["method"]):
        people = _People.of(means[means["method"] == method])
        line = _line(people, accuracy, share, flat, n_classes)
        line["seconds"] = line["total"] * (np.median(steps) if steps else np.nan)
        lines.append({"method": method, "accuracy": accuracy, "share": share, **line})
    return pd.DataFrame(lines, columns=NEEDED)


def reached(means: pd.DataFrame, share: float) -> float:
    """Accuracy that a share of people reach at some budget, from the rows of one method."""
    people = _People.of(means[[not is_unequal(one) for one in means["budget"]]])
    return float(_reached_by(people.accuracies[None], share).max())


class _People(NamedTuple):
    """Accuracies (n_people, n_budgets) of one method, by labelled windows (n_budgets,)."""

    names: list[str]
    accuracies: Array
    n_labelled: Array
    n_left_out: int

    @classmethod
    def of(cls, means: pd.DataFrame) -> _People:
        """People who have an accuracy at all budgets, but for those that half of them lack."""
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


def _line(
    people: _People,
    accuracy: float,
    share: float,
    flat: float,
    n_classes: int | None,
) -> dict[str, Any]:
    """Line of the table for one method, but for seconds."""
    n_people = len(people.names)
    counts = {"n_people": n_people, "n_left_out": people.n_left_out}
    if not n_people or not people.n_labelled.size:
        nothing = ("windows", "low", "high", "total", "reached", "flat_from")
        why = {"n_never": 0, "never": "", "reason": "no person has an accuracy at all budgets"}
        return dict.fromkeys(nothing, np.nan) | counts | why | {"bound": "", "n_people": 0}
    # First as it is, then as it would be with other people.
    curves = np.vstack([_reached_by(people.accuracies[None], share), _redrawn(people, share)])
    # Whoever has reached it with few windows has reached it: with more there are fewer to test on.
    curves = np.maximum.accumulate(curves, -1)
    logs = log_needed(people.n_labelled, curves, np.full((len(curves), 1), accuracy))[:, 0]
    low, high = (_whole_windows(people, end, n_classes) for end in limits(logs[1:], n_people))
    total = _whole_windows(people, logs[0], n_classes)
    each = 1.0 / n_classes if n_classes else np.nan
    there = people.accuracies >= accuracy - ROUNDING
    never = [people.names[place] for place in np.flatnonzero(~there.any(1)).tolist()]
    last = float(there[:, -1].mean())
    fewest, most = float(people.n_labelled[0]), float(people.n_labelled[-1])
    bound, reason = "=", ""
    if np.isposinf(logs[0]):
        bound = ">"
        reason = f"{last:.0%} of people reach it with {most:g} labelled windows, the most tried"
    elif np.isneginf(logs[0]) and fewest:
        bound = "<="
        reason = f"{fewest:g} labelled windows are enough; fewer were not tried"
    return {
        "windows": total * each,
        "low": low * each,
        "high": high * each,
        "total": total,
        "bound": bound,
        "reached": last,
        "flat_from": _flat_from(people, flat) * each,
        **counts,
        "n_never": len(never),
        "never": ", ".join(never),
        "reason": reason,
    }


def _whole_windows(people: _People, log: Any, n_classes: int | None) -> float:
    """Labelled windows, as many of each class and whole ones."""
    value = float(log)
    if np.isneginf(value):
        return float(people.n_labelled[0])
    if not np.isfinite(value):
        return value
    step = n_classes or 1
    return step * math.ceil(math.exp(value) / step - 1e-9)


def _redrawn(people: _People, share: float) -> Array:
    """Accuracies (2000, n_budgets) that the share reaches when people are drawn anew."""
    n_people, n_budgets = people.accuracies.shape
    rng = np.random.default_rng(0)
    parts = []
    at_once = max(1, LARGEST // (n_people * n_budgets))
    for first in range(0, N_RESAMPLES, at_once):
        size = min(at_once, N_RESAMPLES - first), n_people
        parts.append(_reached_by(people.accuracies[rng.integers(n_people, size=size)], share))
    return np.concatenate(parts)


def _flat_from(people: _People, flat: float) -> float:
    """Labelled windows from which on more gain less than `flat` in the mean; NaN if they do."""
    curve = people.accuracies.mean(0)
    later = np.maximum.accumulate(curve[::-1])[::-1][1:]
    places = np.flatnonzero(later - curve[:-1] < flat)
    return float(people.n_labelled[places[0]]) if places.size else np.nan


def _reached_by(accuracies: Array, share: float) -> Array:
    """Accuracies (n_draws, n_budgets) that a share of people (n_draws, n_people, ...) reach."""
    n_people = accuracies.shape[1]
    place = n_people - max(1, math.ceil(share * n_people - 1e-9))
    return np.partition(accuracies, place, axis=1)[:, place]

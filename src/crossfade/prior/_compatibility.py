"""Does a prior suit windows, or another prior? Features, classes and units compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtri

from crossfade._typing import Array
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher._moments import ClassMoments
from crossfade.tasks._task import Task

if TYPE_CHECKING:
    from crossfade.prior._task_prior import TaskPrior

#: How far the spread of a feature may lie from the prior's before its units are in doubt.
_FACTOR = 10.0
#: How seldom the spread of so few windows alone exceeds what is added to that.
_SELDOM = 1e-4


def misfits(prior: TaskPrior, tasks: Sequence[Task]) -> list[str]:
    """Reasons why a prior and windows do not belong together."""
    wrong = name_misfits(prior.feature_names, prior.n_features, _names(tasks[0]), "the prior")
    found = np.unique(np.concatenate([task.classes for task in tasks])).tolist()
    if prior.classes is not None:
        strangers = [label for label in found if label not in prior.classes]
        if strangers:
            wrong.append(f"Label {strangers[0]!r} is not of the prior's classes {prior.classes}.")
        absent = [label for label in prior.classes if label not in found]
        if absent:
            wrong.append(f"There is no window of class {absent[0]!r}.")
    return wrong


def name_misfits(
    wanted: Sequence[str] | None, n_wanted: int, found: Sequence[str], whose: str
) -> list[str]:
    """Reasons why the columns of a table are not the features that are needed."""
    if wanted is None:
        same = len(found) == n_wanted
        return [] if same else [f"There are {len(found)} features; {whose} has {n_wanted}."]
    missing = [name for name in wanted if name not in found]
    unknown = [name for name in found if name not in wanted]
    wrong = []
    if missing:
        wrong.append(f"Features of {whose} are missing: {_some(missing)}.")
    if unknown:
        wrong.append(f"Features that {whose} does not know: {_some(unknown)}.")
    if not wrong and list(found) != list(wanted):
        mine, theirs = next(pair for pair in zip(found, wanted, strict=True) if pair[0] != pair[1])
        wrong.append(
            f"The features are in another order: {mine!r} stands where {whose} has {theirs!r}."
        )
    return wrong


def unit_misfits(prior: TaskPrior, tasks: Sequence[Task]) -> list[str]:
    """Reasons to doubt that features are in the units of a prior, as far as windows can tell."""
    freedom = max(len(np.asarray(task.y)) - len(task.classes) for task in tasks)
    if freedom < 1:
        return []
    ratio = spread_of(tasks) / prior.feature_scale
    low, high = (chdtri(freedom, tail) / freedom for tail in (1.0 - _SELDOM, _SELDOM))
    names = _names(tasks[0])
    return [
        f"Feature {names[place]!r} varies {ratio[place]:.3g} times as much as in the prior. "
        "Check its units."
        for place in np.flatnonzero(
            (ratio < np.sqrt(low) / _FACTOR) | (ratio > np.sqrt(high) * _FACTOR)
        )
    ]


def _names(task: Task) -> tuple[str, ...]:
    n_features = np.shape(task.X)[1]
    return tuple(task.feature_names or (f"feature {place}" for place in range(n_features)))


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def spread_of(tasks: Sequence[Task]) -> Array:
    """Median over tasks of the deviation within the classes (d,); one where that is none."""
    moments = [
        ClassMoments.of(
            np.asarray(task.X),
            np.searchsorted(task.classes, np.asarray(task.y)),
            n_classes=len(task.classes),
        )
        for task in tasks
    ]
    return typical_deviation(
        np.stack([one.variance() for one in moments]),
        np.stack([one.largest for one in moments]),
        np.stack([one.left for one in moments]),
    )


def typical_deviation(variance: Array, largest: Array, left: Array) -> Array:
    """Median over tasks (J, d) of the deviation within the classes; one where that is none.

    `left` is how many windows more than classes a task has; without any it has no deviation.
    """
    able = left > 0.0
    used = able if able.any() else np.ones_like(able)
    scale = np.median(np.sqrt(variance[used]), axis=0)
    return np.where(scale > 1e-12 * np.median(largest[used], axis=0), scale, 1.0)


def check_same_space(mine: TaskPrior, theirs: TaskPrior) -> None:
    """Refuse to merge priors of different features, scales or classes."""
    if mine.n_features != theirs.n_features:
        raise PriorMismatchError(
            f"Priors of different features cannot be merged: {mine.n_features} and "
            f"{theirs.n_features} features. Build both from the same ones."
        )
    if not np.array_equal(mine.feature_scale, theirs.feature_scale):
        raise PriorMismatchError(
            "Priors of different feature scales cannot be merged: directions would be in "
            "different units. Build both with the same feature_scale."
        )
    for name in ("feature_names", "classes"):
        own, other = getattr(mine, name), getattr(theirs, name)
        if own is not None and other is not None and own != other:
            raise PriorMismatchError(
                f"Priors of different {name.replace('_', ' ')} cannot be merged: {own} and "
                f"{other}. Rename those of one site before its prior is built."
            )

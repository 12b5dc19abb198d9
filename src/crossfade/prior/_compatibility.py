"""A prior and labelled windows in, what does not fit out: features, classes, units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import chdtri

from crossfade.prior._task_directions import typical_deviation
from crossfade.prior._task_prior import TaskPrior
from crossfade.tasks._task import Task

#: How far the spread of a feature may lie from the prior's before its units are in doubt.
_FACTOR = 10.0
#: How seldom the spread of so few windows alone exceeds what is added to that.
_SELDOM = 1e-4


def misfits(prior: TaskPrior, tasks: Sequence[Task]) -> list[str]:
    """Reasons why a prior and windows do not belong together.

    Parameters
    ----------
    prior : TaskPrior
        The prior.
    tasks : sequence of Task
        Windows of one person or of many, with the same features.

    Returns
    -------
    list of str
        Sentences; none if all is well.
    """
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
    """Reasons why the columns of a table are not the features that are needed.

    Parameters
    ----------
    wanted : sequence of str or None
        Names of the features that are needed, if they have names.
    n_wanted : int
        How many they are.
    found : sequence of str
        Names of the table's features.
    whose : str
        What needs them.

    Returns
    -------
    list of str
        Sentences.
    """
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
    """Reasons to doubt that features are in the units of a prior, as far as windows can tell.

    Parameters
    ----------
    prior : TaskPrior
        The prior.
    tasks : sequence of Task
        Windows with the prior's features.

    Returns
    -------
    list of str
        Sentences; none if the spread within the classes is that of the prior, within a factor.
    """
    freedom = max(len(np.asarray(task.y)) - len(task.classes) for task in tasks)
    if freedom < 1:
        return []
    ratio = typical_deviation(list(tasks)) / prior.feature_scale
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

"""Tasks in, the sums of a prior out: one discriminant each, in common units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from crossfade.fisher import FisherDiscriminant, resolve_scale
from crossfade.tasks import Task, TaskSet

Array = NDArray[np.float64]


def summarise_tasks(
    tasks: list[Task],
    discriminant: FisherDiscriminant | None,
    feature_scale: ArrayLike | str | None,
    isotropic: bool,
) -> dict[str, Any]:
    """Fields of a :class:`TaskPrior` from tasks.

    Parameters
    ----------
    tasks : list of Task
        Tasks with the same features and classes.
    discriminant : FisherDiscriminant or None
        How to get a direction.
    feature_scale : "auto", array-like of shape (n_features,) or None
        Common units of the directions.
    isotropic : bool
        Keep the sum of the directions only.

    Returns
    -------
    dict
        Arguments of :class:`TaskPrior`.
    """
    if not tasks:
        raise ValueError("A prior needs at least one task; got none.")
    names = TaskSet(tasks).feature_names
    n_features = np.shape(tasks[0].X)[1]
    for task in tasks:
        _check_task(task, tasks[0])
    scale = resolve_scale(feature_scale, n_features)
    if scale is None:
        scale = _typical_deviation(tasks)
    if discriminant is not None and not isinstance(discriminant, FisherDiscriminant):
        raise TypeError(
            f"discriminant must be a FisherDiscriminant; got {type(discriminant).__name__}."
        )
    template = clone(FisherDiscriminant() if discriminant is None else discriminant)
    template.set_params(feature_scale=scale)
    directions = np.empty((len(tasks), n_features))
    gap_sum = np.zeros(n_features)
    for place, task in enumerate(tasks):
        fitted = clone(template).fit(task.X, task.y)
        if not fitted.projection_.any():
            raise ValueError(
                f"{task!r} has no direction: its classes do not differ in any feature. Leave it "
                "out."
            )
        directions[place] = fitted.projection_
        gap_sum += fitted.half_gap_
    # Tasks of one sample a class have no covariance to give.
    able = [] if isotropic else [task for task in tasks if len(np.asarray(task.y)) > 2]
    within = np.zeros((n_features, n_features))
    for task in able:
        rows = _centred(task) / scale
        within += rows.T @ rows / (len(rows) - 2) / len(able)
    return {
        "n_tasks": len(tasks),
        "direction_sum": directions.sum(0),
        "outer_sum": None if isotropic else directions.T @ directions,
        "feature_scale": scale,
        "classes": tuple(tasks[0].classes.tolist()),
        "feature_names": names,
        "within_covariance": within if able else None,
        "half_gap": gap_sum / len(tasks),
    }


def _check_task(task: Task, first: Task) -> None:
    if len(task.classes) != 2:
        raise ValueError(
            f"{task!r} has {len(task.classes)} classes, {task.classes.tolist()[:5]}; a source "
            "needs samples of two. Leave it out, or keep two classes."
        )
    if not np.array_equal(task.classes, first.classes):
        raise ValueError(
            f"All tasks must have the same classes; {task!r} has {task.classes.tolist()}, "
            f"{first!r} has {first.classes.tolist()}. Rename the labels."
        )


def _centred(task: Task) -> Array:
    X, label = np.asarray(task.X, dtype=np.float64), np.asarray(task.y)
    rows = X.copy()
    for name in task.classes:
        rows[label == name] -= X[label == name].mean(0)
    return rows


def _typical_deviation(tasks: list[Task]) -> Array:
    """Median over tasks of the standard deviation within the classes; one where that is none."""
    able = [task for task in tasks if len(np.asarray(task.y)) > 2] or tasks
    squares = [(_centred(task) ** 2).sum(0) / max(len(np.asarray(task.y)) - 2, 1) for task in able]
    size = np.median([np.abs(np.asarray(task.X)).max(0) for task in able], axis=0)
    scale = np.median(np.sqrt(squares), axis=0)
    return np.where(scale > 1e-12 * size, scale, 1.0)

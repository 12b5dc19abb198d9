"""Tasks in, the sums of a prior out: one discriminant each, in common units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from crossfade.fisher._correlation import N_LAGS
from crossfade.fisher._direction import Samples, describe_target
from crossfade.fisher._discriminant import FisherDiscriminant, resolve_scale
from crossfade.tasks._task import Task, TaskSet

Array = NDArray[np.float64]

#: Fewest pairs of samples that tell how far they are alike.
_FEWEST_PAIRS = 5


def summarise_tasks(
    tasks: list[Task],
    discriminant: FisherDiscriminant | None,
    feature_scale: ArrayLike | str | None,
    isotropic: bool,
    keep_directions: bool = False,
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
    keep_directions : bool
        Keep the single directions too.

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
        scale = typical_deviation(tasks)
    if discriminant is not None and not isinstance(discriminant, FisherDiscriminant):
        raise TypeError(
            f"discriminant must be a FisherDiscriminant; got {type(discriminant).__name__}."
        )
    template = clone(FisherDiscriminant() if discriminant is None else discriminant)
    template.set_params(feature_scale=scale)
    directions = np.empty((len(tasks), n_features))
    early, late = np.zeros_like(directions), np.zeros_like(directions)
    gap_sum, alike = np.zeros(n_features), np.zeros(N_LAGS)
    for place, task in enumerate(tasks):
        fitted = clone(template).fit(task.X, task.y)
        if not fitted.projection_.any():
            raise ValueError(
                f"{task!r} has no direction: its classes do not differ in any feature. Leave it "
                "out."
            )
        directions[place] = fitted.projection_
        gap_sum += fitted.half_gap_
        label = (np.asarray(task.y) == task.classes[1]).astype(np.intp)
        alike += autocorrelation(task.X, label) / len(tasks)
        half = halves(label)
        if half is not None:
            X = np.asarray(task.X)
            early[place], late[place] = (
                clone(template).fit(X[half == part], label[half == part]).projection_
                for part in (0, 1)
            )
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
        "scale_learnt": isinstance(feature_scale, str),
        "classes": tuple(tasks[0].classes.tolist()),
        "feature_names": names,
        "within_covariance": within if able else None,
        "half_gap": gap_sum / len(tasks),
        "autocorrelation": alike,
        "direction_noise": direction_noise(early, late),
        "directions": directions if keep_directions else None,
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


def _freedom(task: Task) -> int:
    return len(np.asarray(task.y)) - len(task.classes)


def typical_deviation(tasks: list[Task]) -> Array:
    """Median over tasks of the standard deviation within the classes; one where that is none."""
    able = [task for task in tasks if _freedom(task) > 0] or tasks
    squares = [(_centred(task) ** 2).sum(0) / max(_freedom(task), 1) for task in able]
    size = np.median([np.abs(np.asarray(task.X)).max(0) for task in able], axis=0)
    scale = np.median(np.sqrt(squares), axis=0)
    return np.where(scale > 1e-12 * size, scale, 1.0)


def autocorrelation(X: ArrayLike, label: NDArray[np.intp]) -> Array:
    """Correlation of samples of one class, 1, 2, ... samples apart (equation 47).

    Every direction counts alike: samples are taken in units of their own covariance.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples in the order of time.
    label : ndarray of shape (n_samples,)
        0 for the first class, 1 for the second.

    Returns
    -------
    ndarray of shape (30,)
        Correlations; zero where there are too few samples to tell.
    """
    samples = Samples(np.asarray(X, dtype=np.float64), label, np.ones(label.size))
    target = describe_target(samples, "oas", None)
    rows = (samples.X - target.means[label]) / target.scale
    in_units = target.sigma.inverse().apply(rows)
    alike, pairs = np.zeros(N_LAGS + 1), np.zeros(N_LAGS + 1)
    for name in (0, 1):
        run, other = rows[label == name], in_units[label == name]
        size = len(run)
        spectrum = np.fft.rfft(other, 2 * size, axis=0) * np.fft.rfft(run, 2 * size, axis=0).conj()
        lagged = np.fft.irfft(spectrum.sum(1))[: min(size, N_LAGS + 1)]
        alike[: lagged.size] += lagged
        pairs[: lagged.size] += size - np.arange(lagged.size)
    if alike[0] <= 0.0:
        return np.zeros(N_LAGS)
    told = pairs[1:] >= _FEWEST_PAIRS
    whole = alike[0] / pairs[0]
    correlation: Array = np.where(told, alike[1:] / np.maximum(pairs[1:], 1.0) / whole, 0.0)
    return correlation


def halves(label: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """Which half of its class each sample is in, by order; None if halves would be too small.

    Parameters
    ----------
    label : ndarray of shape (n_samples,)
        0 for the first class, 1 for the second.

    Returns
    -------
    ndarray of shape (n_samples,) or None
        0 for the earlier half of a class, 1 for the later.
    """
    sizes = np.bincount(label, minlength=2)
    if sizes.min() < 4:
        return None
    half = np.empty(label.size, np.intp)
    for name, size in enumerate(sizes.tolist()):
        half[label == name] = np.arange(size) * 2 // size
    return half


def direction_noise(first: Array, second: Array) -> float | None:
    """Average squared error of a task's direction, from the directions of its halves (equation 49).

    Parameters
    ----------
    first, second : ndarray of shape (n_tasks, n_features)
        Unit directions of the earlier and of the later half; zero where a half has none.

    Returns
    -------
    float or None
        Noise; None if no task has two halves.
    """
    both = first.any(1) & second.any(1)
    if not both.any():
        return None
    return float(((first - second)[both] ** 2).sum(1).mean()) / 4.0

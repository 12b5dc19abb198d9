"""Sums of a prior from the moments of many tasks, in common units.

Features are divided by the median over tasks of their deviation within the classes, unless a scale
is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crossfade._typing import Array
from crossfade._validate import check_names, check_number, resolve_scale
from crossfade.exceptions import NoDirectionError
from crossfade.fisher import Block, TaskMoments, refuse_units, unit_directions
from crossfade.prior._class_means import ClassMeans
from crossfade.prior._directions import Directions, shares_of
from crossfade.prior._parts import Origin, Space, Sums, check_labels
from crossfade.prior._sessions import Sessions
from crossfade.tasks import Recipe, Task, TaskSet


def moments_of_tasks(tasks: Iterable[Task]) -> tuple[TaskMoments, dict[str, Any]]:
    """Moments of tasks, and what `learn` asks of them besides."""
    sources = tasks if isinstance(tasks, TaskSet) else TaskSet(tasks)
    _check_sources(sources)
    _refuse_twins(sources)
    classes = sources[0].classes
    samples = [(np.asarray(one.X), np.searchsorted(classes, one.y)) for one in sources]
    if len(classes) == 2:
        moments = TaskMoments.of(samples)
    else:
        moments = TaskMoments.of_classes(samples, len(classes))
    called, labels = sources.class_names, classes.tolist()
    return moments, {
        "groups": [task.group for task in sources],
        "classes": labels,
        "class_names": tuple(called.get(one, str(one)) for one in labels) if called else None,
        "feature_names": sources.feature_names,
        "recipe": sources.recipe,
        "called": lambda place: repr(sources[place]),
    }


def learn(
    moments: TaskMoments,
    *,
    shrinkage: str | float | None = "oas",
    feature_scale: ArrayLike | str | None = "auto",
    isotropic: bool = False,
    centred_per_person: bool | str = "auto",
    mean_norm_bound: float | None = None,
    groups: Sequence[str | None] | None = None,
    classes: Sequence[Any] | None = None,
    class_names: tuple[str, ...] | None = None,
    feature_names: Sequence[str] | None = None,
    recipe: Recipe | None = None,
    called: Callable[[int], str] = "Task {}".format,
) -> tuple[Space, dict[str, Sums], Origin]:
    """Space, sums and origin of the prior of these tasks; tasks of a group are one person's."""
    bound = mean_norm_bound
    if bound is not None:
        bound = check_number("mean_norm_bound", bound, 1e-100, 1e100)
    scale = _scale_of(moments, feature_scale, called)
    groups = [None] * moments.n_tasks if groups is None else groups
    sums = _sums_of(moments, scale, shrinkage, isotropic, bound, groups, called)
    centred = centred_per_person
    if centred != "auto" and not isinstance(centred, bool | np.bool_):
        raise ValueError(f"centred_per_person must be True, False or 'auto'; got {centred!r}.")
    if centred == "auto":
        # With a bound the answer must not depend on one person.
        centred = bound is None and "class_means" in sums and _is_centred(moments, scale)
    names, labels = check_names(feature_names, scale.size), check_labels(classes)
    space = Space(scale, names, labels, class_names, recipe, bool(centred), bound)
    return space, sums, Origin(scale_learnt=isinstance(feature_scale, str))


def _scale_of(
    moments: TaskMoments, feature_scale: ArrayLike | str | None, called: Callable[[int], str]
) -> Array:
    """Scale of the features: as given, or the typical deviation within the classes."""
    scale = resolve_scale(feature_scale, moments.blocks[0].whole.n_features)
    if scale is None:
        scale = _typical_deviation(
            moments.gather(lambda one: one.whole.variance()),
            moments.gather(lambda one: one.whole.largest),
            moments.gather(lambda one: np.broadcast_to(one.whole.left, one.places.shape)),
        )
    refuse_units(moments.gather(lambda one: one.whole.largest), scale, called)
    return scale.copy()


def _sums_of(
    moments: TaskMoments,
    scale: Array,
    shrinkage: str | float | None,
    isotropic: bool,
    bound: float | None,
    groups: Sequence[str | None],
    called: Callable[[int], str],
) -> dict[str, Sums]:
    """Sums of tasks by their kind; `called` names a task that has no direction."""
    sums: dict[str, Sums] = {}
    if moments.blocks[0].whole.counts.shape[-1] == 2:
        sums["directions"] = _directions(moments, scale, shrinkage, isotropic, groups, called)
    means = None
    if not isotropic and not _is_a_row(moments):
        means = _class_means(moments, scale, bound, groups)
    if means is not None:
        sums["class_means"] = means
        if (shares_of(groups) < 1.0).any():
            whole = moments.gather(lambda one: one.whole.means / scale)
            sums["sessions"] = Sessions.of(groups, whole.reshape(len(whole), -1))
    if not sums:
        raise NoDirectionError("The windows of these tasks do not vary within their classes.")
    return sums


def directions_of(moments: TaskMoments, scale: Array, shrinkage: str | float | None) -> Array:
    """Unit directions (n_tasks, d) of tasks of two classes."""
    return moments.gather(lambda one: unit_directions(one.whole, scale, shrinkage))


def _is_centred(moments: TaskMoments, scale: Array) -> bool:
    """Whether the mean over all windows of every task is zero."""
    whole = moments.gather(
        lambda one: np.vecdot(one.whole.counts[..., None, :], one.whole.means.mT)
    )
    n_windows = moments.gather(
        lambda one: np.broadcast_to(one.whole.counts.sum(-1), one.places.shape)
    )
    return bool((np.abs(whole) <= 1e-6 * scale * n_windows[:, None]).all())


def _check_sources(tasks: Sequence[Task]) -> None:
    """Refuse tasks of one class, or of other classes than the first."""
    if not tasks:
        raise ValueError("A prior needs at least one task; got none.")
    first = tasks[0]
    for task in tasks:
        classes = task.classes.tolist()
        if len(classes) < 2:
            raise ValueError(f"{task!r} has one class only. Leave it out.")
        if classes != first.classes.tolist():
            raise ValueError(
                f"All tasks must have the same classes; {task!r} has {classes[:9]}, {first!r} has "
                f"{first.classes.tolist()[:9]}. Rename labels, or leave the task out."
            )


def _refuse_twins(tasks: Sequence[Task]) -> None:
    """Refuse tasks that hold the same windows, in whatever order."""
    seen: dict[bytes, Task] = {}
    for task in tasks:
        rows = np.ascontiguousarray(task.X, np.float64) + 0.0
        # Rows as strings of bytes are sorted quickly.
        windows = np.sort(rows.view(f"S{rows.shape[1] * rows.itemsize}"), axis=0).tobytes()
        if windows in seen:
            raise ValueError(
                f"{task!r} and {seen[windows]!r} hold the same windows. Leave one of them out."
            )
        seen[windows] = task


def _typical_deviation(variance: Array, largest: Array, left: Array) -> Array:
    """Median over tasks (J, d) of the deviation within the classes; one where there is none."""
    able = left > 0.0
    used = able if able.any() else np.ones_like(able)
    scale = np.median(np.sqrt(variance[used]), axis=0)
    return np.where(scale > 1e-12 * np.median(largest[used], axis=0), scale, 1.0)


def _directions(
    moments: TaskMoments,
    scale: Array,
    shrinkage: str | float | None,
    isotropic: bool,
    groups: Sequence[str | None],
    called: Callable[[int], str],
) -> Directions:
    """Sums of the directions of tasks of two classes, and averages times the number of tasks."""

    def halves(block: Block) -> Array:
        if block.halves is None:
            return np.zeros((len(block.places), 2, scale.size))
        return np.stack([unit_directions(half, scale, shrinkage) for half in block.halves], 1)

    directions = directions_of(moments, scale, shrinkage)
    if not directions.any(1).all():
        place = int((~directions.any(1)).argmax())
        raise NoDirectionError(
            f"{called(place)} has no direction: its classes do not differ in any feature. "
            "Leave it out."
        )
    n_tasks = len(directions)
    within = None if isotropic else _average_covariance(moments, scale)
    alike = _average_correlation(moments)
    noise = _direction_noise(*moments.gather(halves).swapaxes(0, 1))
    return replace(
        Directions.of(directions, groups, outer=not isotropic),
        within=None if within is None else n_tasks * within,
        autocorrelation=None if alike is None else n_tasks * alike,
        noise=None if noise is None else n_tasks * noise,
    )


def _class_means(
    moments: TaskMoments, scale: Array, bound: float | None, groups: Sequence[str | None]
) -> ClassMeans | None:
    """Sums of class means; None where windows of a class do not vary in any feature."""
    if bound is not None:
        return ClassMeans.of_people(moments.blocks, scale, shares_of(groups), bound)
    able = [one.whole for one in moments.blocks if np.all(one.whole.left > 0.0)]
    if able and not any(one.deviation().any() for one in able):
        return None
    return ClassMeans.of_blocks(moments.blocks, scale)


def _is_a_row(moments: TaskMoments) -> bool:
    """Whether a class mean would be a single window."""
    return moments.n_tasks == 1 and min(moments.blocks[0].sizes) < 2


def _average_covariance(moments: TaskMoments, scale: Array) -> Array | None:
    """Mean over tasks of their covariance within the classes; those without one do not count."""
    total, n_able = np.zeros((scale.size, scale.size)), 0
    for block in moments.blocks:
        # Tasks of one sample a class have no covariance to give.
        if np.all(block.whole.left > 0.0):
            # Deviations may come from rounding alone.
            varies = block.whole.deviation() > 0.0
            part = block.whole.scaled(scale if varies.all() else np.where(varies, scale, np.inf))
            if block.whole.rooted:
                rows = part.reshape(-1, scale.size)
                total += rows.T @ rows
            else:
                total += part.sum(0)
            n_able += len(block.places)
    return total / n_able if n_able else None


def _average_correlation(moments: TaskMoments) -> Array | None:
    """Mean over tasks of how far neighbours are alike; None where that says nothing."""
    parts = [one.autocorrelation for one in moments.blocks]
    known = [part for part in parts if part is not None]
    return np.concatenate(known).mean(0) if len(known) == len(parts) else None


def _direction_noise(early: Array, late: Array) -> float | None:
    """Average squared error of directions, from those of the halves of each task (equation 49)."""
    both = early.any(1) & late.any(1)
    if not both.any():
        return None
    return float(((early - late)[both] ** 2).sum(1).mean()) / 4.0

"""Sums of a prior from the moments of many tasks: one direction each, in common units.

Features are divided by the median over tasks of their deviation within the classes, unless a scale
is given; a direction is that of Fisher's discriminant in these units (room `fisher`). Beside the
sums of the directions and of their outer products a prior keeps averages over its tasks: the
covariance within the classes, half the gap between them, how far neighbouring windows are alike
(equation 47), and how noisy the directions are, from those of the halves of each task (49).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crossfade._typing import Array
from crossfade._validate import check_classes, check_names
from crossfade.exceptions import NoDirectionError
from crossfade.fisher import Block, TaskMoments, refuse_units, resolve_scale, unit_directions
from crossfade.prior._bounded import check_clip
from crossfade.prior._class_means import ClassMeans
from crossfade.prior._compatibility import typical_deviation
from crossfade.prior._people import People, shares_of
from crossfade.prior._sessions import Sessions
from crossfade.tasks import Task, TaskSet


def learn_sums(
    moments: TaskMoments,
    shrinkage: str | float | None,
    feature_scale: ArrayLike | str | None,
    *,
    isotropic: bool = False,
    keep_directions: bool = False,
    classes: Sequence[Any] | None = None,
    feature_names: Sequence[str] | None = None,
    class_means: bool = True,
    centred: str | None = "auto",
    clip: float | None = None,
    groups: Sequence[str | None] | None = None,
    called: Callable[[int], str] = "Task {}".format,
) -> dict[str, Any]:
    """Fields of a `TaskPrior`; `called` names a task that has no direction.

    Tasks of one of the `groups` are sessions of one person; None is a person for every task.
    """
    check_centred(centred)
    groups = [None] * moments.n_tasks if groups is None else groups
    clip = check_clip(clip, class_means and not isotropic)
    n_features = moments.blocks[0].whole.n_features
    given = resolve_scale(feature_scale, n_features)
    scale = _typical_scale(moments) if given is None else given
    refuse_units(moments.gather(lambda one: one.whole.largest), scale, called)

    def halves(block: Block) -> Array:
        if block.halves is None:
            return np.zeros((len(block.places), 2, n_features))
        return np.stack([unit_directions(half, scale, shrinkage) for half in block.halves], 1)

    directions = moments.gather(lambda one: unit_directions(one.whole, scale, shrinkage))
    if not directions.any(1).all():
        place = int((~directions.any(1)).argmax())
        raise NoDirectionError(
            f"{called(place)} has no direction: its classes do not differ in any feature. "
            "Leave it out."
        )
    means = None
    if class_means and not isotropic and not _is_a_row(moments):
        means = sums_of_means(moments, scale, centred, clip, shares_of(groups))
    return {
        "n_tasks": len(directions),
        "direction_sum": directions.sum(0),
        "outer_sum": None if isotropic else directions.T @ directions,
        "feature_scale": scale,
        "scale_learnt": isinstance(feature_scale, str),
        "classes": check_classes(classes),
        "feature_names": check_names(feature_names, n_features),
        "within_covariance": None if isotropic else _average_covariance(moments, scale),
        "half_gap": moments.gather(lambda one: one.whole.gap() / (2.0 * scale)).mean(0),
        "autocorrelation": _average_correlation(moments),
        "direction_noise": direction_noise(*moments.gather(halves).swapaxes(0, 1)),
        "directions": directions if keep_directions else None,
        "people": People.of(groups, directions),
        "class_means": means,
        "sessions": None if means is None else _differences(moments, scale, groups),
    }


def _differences(
    moments: TaskMoments, scale: Array, groups: Sequence[str | None]
) -> Sessions | None:
    """How far apart sessions of one person are, if anybody has two."""
    return Sessions.of(
        groups,
        moments.gather(lambda one: (one.whole.means / scale).reshape(len(one.places), -1)),
    )


def check_centred(centred: object) -> None:
    """Refuse a word that says nothing about how features were centred."""
    if centred is not None and centred not in ("auto", "person"):
        raise ValueError(
            f"centred must be 'auto', 'person' or None; got {centred!r}. 'person' says that every "
            "person's features were centred on all their windows."
        )


def _is_a_row(moments: TaskMoments) -> bool:
    """Whether a class mean would be a window of somebody's."""
    return moments.n_tasks == 1 and min(moments.blocks[0].sizes) < 2


def sums_of_means(
    moments: TaskMoments,
    scale: Array,
    centred: str | None,
    clip: float | None = None,
    shares: Array | None = None,
) -> ClassMeans | None:
    """Sums of class means; "auto" looks whether the mean of every task is zero.

    None where windows of a class do not vary in any feature: there would be no units for a law.
    With a clip nobody looks, since one person could change what is found.
    """
    if clip is not None:
        shares = np.ones(moments.n_tasks) if shares is None else shares
        by_person = centred == "person"
        return ClassMeans.of_people(moments.blocks, scale, shares, clip, centred=by_person)
    able = [one.whole for one in moments.blocks if np.all(one.whole.left > 0.0)]
    if able and not any(one.deviation().any() for one in able):
        return None
    by_person = centred == "person"
    if centred == "auto":
        whole = moments.gather(
            lambda one: np.vecdot(one.whole.counts[..., None, :], one.whole.means.mT)
        )
        n_windows = moments.gather(
            lambda one: np.broadcast_to(one.whole.counts.sum(-1), one.places.shape)
        )
        by_person = bool((np.abs(whole) <= 1e-6 * scale * n_windows[:, None]).all())
    return ClassMeans.of_blocks(moments.blocks, scale, centred=by_person)


def check_sources(tasks: list[Task]) -> tuple[str, ...] | None:
    """Names of the features; refuses tasks of other features, or of other than two classes."""
    if not tasks:
        raise ValueError("A prior needs at least one task; got none.")
    names = TaskSet(tasks).feature_names
    first = tasks[0]
    for task in tasks:
        if len(task.classes) != 2:
            found = task.classes.tolist()
            lone = f"one class only, {found[0]!r}" if len(found) == 1 else f"{len(found)} classes"
            lone += f", {found[:5]}" if len(found) > 1 else ""
            raise ValueError(
                f"{task!r} has {lone}; a source needs samples of two. Leave it out (in a command, "
                f"with --exclude), or keep two classes."
            )
        if not np.array_equal(task.classes, first.classes):
            raise ValueError(
                f"All tasks must have the same classes; {task!r} has {task.classes.tolist()}, "
                f"{first!r} has {first.classes.tolist()}. Rename the labels."
            )
    return names


def _average_covariance(moments: TaskMoments, scale: Array) -> Array | None:
    """Mean over tasks of their covariance within the classes; those without one do not count."""
    total, n_able = np.zeros((scale.size, scale.size)), 0
    for block in moments.blocks:
        # Tasks of one sample a class have no covariance to give.
        if np.all(block.whole.left > 0.0):
            # Deviations that rounding alone can have made are none.
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


def direction_noise(early: Array, late: Array) -> float | None:
    """Average squared error of directions, from those of the halves of each task (equation 49)."""
    both = early.any(1) & late.any(1)
    if not both.any():
        return None
    return float(((early - late)[both] ** 2).sum(1).mean()) / 4.0


def _typical_scale(moments: TaskMoments) -> Array:
    return typical_deviation(
        moments.gather(lambda one: one.whole.variance()),
        moments.gather(lambda one: one.whole.largest),
        moments.gather(lambda one: np.broadcast_to(one.whole.left, one.places.shape)),
    )

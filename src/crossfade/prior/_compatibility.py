"""Does a prior suit windows, or another prior? Features and classes compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from crossfade._typing import Array
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher import ClassMoments
from crossfade.tasks import Recipe, Task, common_recipe, recipe_misfits

if TYPE_CHECKING:
    from crossfade.prior._task_prior import TaskPrior


def misfits(prior: TaskPrior, tasks: Sequence[Task]) -> list[str]:
    """Reasons why a prior and windows do not belong together."""
    wrong = name_misfits(prior.feature_names, prior.n_features, _names(tasks[0]), "the prior")
    recipe = common_recipe([task.recipe for task in tasks])
    wrong += recipe_misfits(recipe, prior.recipe)
    found = np.unique(np.concatenate([task.classes for task in tasks])).tolist()
    if prior.classes is not None:
        strangers = [label for label in found if label not in prior.classes]
        if strangers:
            wrong.append(
                f"Label {strangers[0]!r} is not one of the prior's classes {prior.classes}. Rename "
                "it if it means one of these, leave its windows out, or build a MulticlassPrior "
                "from people who have all classes."
            )
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
        wrong.append(
            f"Features that {whose} does not know: {_some(unknown)}. Leave them out, in a command "
            "with --drop, or choose the features with --columns."
        )
    if not wrong and list(found) != list(wanted):
        mine, theirs = next(pair for pair in zip(found, wanted, strict=True) if pair[0] != pair[1])
        wrong.append(
            f"The features are in another order: {mine!r} stands where {whose} has {theirs!r}."
        )
    return wrong


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
            "different units. Build both with the same feature_scale, or `prior build --scale "
            "FILE`."
        )
    refuse_recipes(mine.recipe, theirs.recipe)
    for name in ("feature_names", "classes", "class_names"):
        own, other = getattr(mine, name), getattr(theirs, name)
        if own is not None and other is not None and own != other:
            raise PriorMismatchError(
                f"Priors of different {name.replace('_', ' ')} cannot be merged: {own} and "
                f"{other}. Rename those of one site before its prior is built."
            )


def refuse_recipes(mine: Recipe | None, theirs: Recipe | None) -> None:
    """Refuse to merge priors whose features were made in different ways, where that is known."""
    if mine is None or theirs is None:
        return
    wrong = mine.difference(theirs, "the features of one", "those of the other")
    if wrong is not None:
        raise PriorMismatchError(
            f"Priors of different recipes cannot be merged: {wrong}. Make the features of one site "
            "again by the other's recipe."
        )

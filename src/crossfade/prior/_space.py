"""The space of a prior: what two priors must share to be added, and windows to be classified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np

from crossfade._typing import Array
from crossfade._validate import check_names, check_number, check_scale
from crossfade.exceptions import PriorMismatchError
from crossfade.tasks import Recipe, Task, check_class_names, common_recipe, recipe_misfits

#: What only matters where class means are added.
_OF_MEANS = ("centred_per_person", "mean_norm_bound")


@dataclass(frozen=True, eq=False)
class Space:
    """Features, their units and the classes of a prior.

    Attributes
    ----------
    feature_scale : ndarray of shape (n_features,)
        What features are divided by before anything else.
    feature_names : tuple of str or None
        Names of the features.
    classes : tuple or None
        Labels, sorted; of two classes directions point to the second. None where not given.
    class_names : tuple of str or None
        What people read instead of the labels, in their order.
    recipe : Recipe or None
        How the features were made; None where that is not known of every task.
    centred_per_person : bool
        Whether every person's features were centred on all their windows, so that the middle of the
        classes says nothing.
    mean_norm_bound : float or None
        Largest length of a person's class means in units of the scale; None without a bound.
    """

    feature_scale: Array
    feature_names: tuple[str, ...] | None = None
    classes: tuple[Any, ...] | None = None
    class_names: tuple[str, ...] | None = None
    recipe: Recipe | None = None
    centred_per_person: bool = False
    mean_norm_bound: float | None = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.feature_scale.size)

    @property
    def n_classes(self) -> int:
        """Number of classes; two where they are not given."""
        return 2 if self.classes is None else len(self.classes)

    def __eq__(self, other: object) -> bool:
        """Whether both are the same, to the bit."""
        return isinstance(other, Space) and self.difference(other, unknown=True) is None

    __hash__ = None  # type: ignore[assignment]

    def difference(self, other: Space, *, means: bool = True, unknown: bool = False) -> str | None:
        """Name of the first field in which another space differs.

        What one of them does not know is no difference unless `unknown` is true; `means` says
        whether both hold class means.
        """
        for one in fields(self):
            mine, theirs = getattr(self, one.name), getattr(other, one.name)
            if one.name in _OF_MEANS:
                differs = means and mine != theirs
            elif mine is None or theirs is None:
                differs = unknown and mine is not theirs
            else:
                differs = (
                    not np.array_equal(mine, theirs)
                    if one.name == "feature_scale"
                    else (mine != theirs)
                )
            if differs:
                return one.name
        return None

    def joined(self, other: Space, *, means: bool) -> Space:
        """Space of the sum of two priors; refuses others than its own."""
        name = self.difference(other, means=means)
        if name is not None:
            remedy = ", or leave the class means out" if name in _OF_MEANS else ""
            raise PriorMismatchError(
                f"Priors with different {name} cannot be added: "
                f"{_shown(getattr(self, name))} and {_shown(getattr(other, name))}. Build both "
                f"with the same {name}{remedy}."
            )
        return replace(
            self,
            feature_names=self.feature_names or other.feature_names,
            classes=self.classes if self.classes is not None else other.classes,
            class_names=self.class_names or other.class_names,
            recipe=common_recipe([self.recipe, other.recipe]),
        )

    def fields(self) -> dict[str, Any]:
        """What the header of a file holds of the space."""
        recipe = None if self.recipe is None else self.recipe.to_dict()
        known = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**known, "feature_scale": self.feature_scale.tolist(), "recipe": recipe}

    @classmethod
    def of_fields(cls, known: Mapping[str, Any]) -> Space:
        """Space from the header of a file, everything in it checked."""
        scale = check_scale(known["feature_scale"], np.size(known["feature_scale"]))
        classes, names = known["classes"], known["class_names"]
        recipe, bound = known["recipe"], known["mean_norm_bound"]
        if names is not None:
            check_class_names(dict(zip(classes, names, strict=True)))
        return cls(
            scale,
            check_names(known["feature_names"], scale.size),
            check_labels(classes),
            None if names is None else tuple(names),
            None if recipe is None else Recipe.from_dict(recipe),
            bool(known["centred_per_person"]),
            None if bound is None else check_number("mean_norm_bound", bound, 0.0),
        )


def check_labels(classes: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """Two labels or more as plain values, sorted."""
    if classes is None:
        return None
    labels = tuple(np.atleast_1d(np.asarray(classes)).tolist())
    if len(labels) < 2 or any(not one < other for one, other in pairwise(labels)):
        raise ValueError(f"classes must be two or more different labels, sorted; got {classes!r}.")
    return labels


def _shown(value: Any) -> str:
    """A value on one line."""
    text = np.array2string(value, threshold=4) if isinstance(value, np.ndarray) else str(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def misfits(space: Space, tasks: Sequence[Task]) -> list[str]:
    """Reasons why windows do not belong into the space of a prior."""
    first = tasks[0]
    d = np.shape(first.X)[1]
    names = tuple(first.feature_names or (f"feature {place}" for place in range(d)))
    wrong = name_misfits(space.feature_names, space.n_features, names, "the prior")
    wrong += recipe_misfits(common_recipe([task.recipe for task in tasks]), space.recipe)
    if space.classes is not None:
        found = np.unique(np.concatenate([task.classes for task in tasks])).tolist()
        strangers = [label for label in found if label not in space.classes]
        absent = [label for label in space.classes if label not in found]
        if strangers:
            wrong.append(f"Label {strangers[0]!r} is not one of the classes {space.classes}.")
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
        wrong.append(f"Features that {whose} does not know: {_some(unknown)}. Leave them out.")
    if not wrong and list(found) != list(wanted):
        mine, theirs = next(pair for pair in zip(found, wanted, strict=True) if pair[0] != pair[1])
        wrong.append(
            f"The features are in another order: {mine!r} stands where {whose} has {theirs!r}."
        )
    return wrong


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"

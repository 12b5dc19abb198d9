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
    """Features, their units and classes; `centred_per_person` is by each person's own mean."""

    feature_scale: Array  # (n_features,): what features are divided by before anything else
    feature_names: tuple[str, ...] | None = None
    classes: tuple[Any, ...] | None = None  # sorted; of two, directions point to the second
    class_names: tuple[str, ...] | None = None  # what people read instead, in the same order
    recipe: Recipe | None = None  # how features were made, where that is known of every task
    centred_per_person: bool = False
    mean_norm_bound: float | None = None  # largest length of a person's class means, scaled

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
        """First field that differs; what one does not know differs if `unknown` is true."""
        for one in fields(self):
            mine, theirs = getattr(self, one.name), getattr(other, one.name)
            if one.name in _OF_MEANS:
                matters = means
            else:
                matters = unknown or (mine is not None and theirs is not None)
            if matters and not np.array_equal(mine, theirs):
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

    def header(self) -> dict[str, Any]:
        """Fields of the space for the header of a file."""
        recipe = None if self.recipe is None else self.recipe.to_dict()
        known = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**known, "feature_scale": self.feature_scale.tolist(), "recipe": recipe}

    @classmethod
    def of_header(cls, known: Mapping[str, Any]) -> Space:
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


def misfits(space: Space, task: Task) -> list[str]:
    """Reasons why the windows of a task do not belong into the space of a prior."""
    wrong = []
    d = np.shape(task.X)[1]
    if d != space.n_features:
        wrong.append(f"There are {d} features; the prior has {space.n_features}.")
    elif None not in (task.feature_names, space.feature_names) and (
        tuple(task.feature_names or ()) != space.feature_names
    ):
        wrong.append(f"Its features must be {_shown(space.feature_names)}, in this order.")
    wrong += recipe_misfits(task.recipe, space.recipe)
    found, classes = task.classes.tolist(), space.classes
    if classes is not None and found != list(classes):
        wrong.append(f"Its labels are {_shown(found)}; the prior's classes are {_shown(classes)}.")
    return wrong

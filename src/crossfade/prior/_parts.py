"""What a prior is made of: a space, sums over people, and the origin of these sums.

Each array of sums is declared once, and is then added, compared, saved and loaded::

    class Blinks(Sums, name="blinks"):
        n_people: float = summed(of="people")
        count: Array = summed("d", of="blinks of a person, by feature")
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from crossfade._typing import Array
from crossfade._validate import (
    check_covariance,
    check_finite,
    check_names,
    check_number,
    check_scale,
    check_spectrum,
)
from crossfade.exceptions import PriorMismatchError
from crossfade.tasks import Recipe, Task, check_class_names, common_recipe, recipe_misfits

#: What only matters where class means are added.
_OF_MEANS = ("centred_per_person", "mean_norm_bound")
#: Largest number in a sum: means are in deviations, and products of sums must be numbers, too.
LARGEST = 1e40
_MISSING = object()
#: With a larger epsilon a release does not protect.
_LARGEST_EPSILON = 1000.0


# -- space -----------------------------------------------------------------------------------------


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


# -- sums ------------------------------------------------------------------------------------------


def summed(*shape: str | int, of: str, default: Any = _MISSING, semidefinite: bool = False) -> Any:
    """Declare sums over people of a `shape` in features "d", classes "K" or both "Kd"."""
    about = {"shape": shape, "of": of, "semidefinite": semidefinite}
    return field(metadata=about) if default is _MISSING else field(default=default, metadata=about)


@dataclass(frozen=True, eq=False)
class Arrays:
    """Named arrays of declared shapes; leading axes are a batch."""

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same numbers, to the bit."""
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.arrays(), other.arrays()
        return mine.keys() == theirs.keys() and all(
            np.array_equal(mine[name], theirs[name]) for name in mine
        )

    __hash__ = None  # type: ignore[assignment]

    def arrays(self) -> dict[str, Array]:
        """Arrays by name, without those that are missing."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: np.asarray(value) for name, value in found.items() if value is not None}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array], **sizes: int) -> Self:
        """Arrays by name, checked: d features and K classes say how long they are."""
        sizes = {**sizes, "Kd": sizes["K"] * sizes["d"]}
        known: dict[str, Any] = {}
        for one in fields(cls):
            name = f"{cls.__name__}.{one.name}"
            if one.name in arrays:
                shape = tuple(sizes[n] if isinstance(n, str) else n for n in one.metadata["shape"])
                array = check_finite(name, arrays[one.name], len(shape), largest=LARGEST)
                if array.shape != shape:
                    raise ValueError(f"{name} must be of shape {shape}; got {array.shape}.")
                if one.metadata["semidefinite"]:
                    check_covariance(name, array, shape[-1])
                    for values in np.linalg.eigvalsh(array).reshape(-1, shape[-1]):
                        check_spectrum(name, values)
                known[one.name] = array if shape else float(array)
        made = cls(**known)
        made.check()
        return made

    def check(self) -> None:
        """Refuse numbers that do not belong together."""


@dataclass(frozen=True, eq=False)
class Sums(Arrays):
    """Arrays that are sums over people."""

    #: Every kind of sums by the name that priors and files call it.
    kinds: ClassVar[dict[str, type[Sums]]] = {}
    #: Whether people of a prior that does not hold it add nothing to it.
    zero_if_missing: ClassVar[bool] = False

    def __init_subclass__(cls, name: str, **options: Any) -> None:
        super().__init_subclass__(**options)
        Sums.kinds[name] = cls

    def __add__(self, other: Self) -> Self:
        """Sums over the people of both; an array that one of them lacks is missing."""
        return self._with(other, 1.0)

    def __sub__(self, other: Self) -> Self:
        """Sums without some of the people; with a batch of them, each left out in turn."""
        return self._with(other, -1.0)

    def __mul__(self, share: float) -> Self:
        """Sums in which each person counts as a share."""
        return type(self)(**{name: share * array for name, array in self._values().items()})

    def _with(self, other: Self, sign: float) -> Self:
        mine, theirs = self._values(), other._values()
        return type(self)(
            **{name: mine[name] + sign * theirs[name] for name in mine if name in theirs}
        )

    def _values(self) -> dict[str, Any]:
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in found.items() if value is not None}


def added(mine: Mapping[str, Sums], theirs: Mapping[str, Sums]) -> dict[str, Sums]:
    """Sums over the people of both, of all kinds that are known of both."""
    both = {name: one + theirs[name] for name, one in mine.items() if name in theirs}
    for name, one in {**mine, **theirs}.items():
        if name not in both and one.zero_if_missing:
            both[name] = one
    return both


# -- origin ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Release:
    """Budget of a released prior: what holds if one person is replaced by any other.

    Attributes
    ----------
    epsilon, delta : float
        The release is (epsilon, delta)-differentially private; the number of people is public.
    noise : float
        Standard deviation of the normal noise in every coordinate of the sums.
    scale_covered : bool
        Whether, as its owner states, the feature scale was not learnt from the same people.
    """

    epsilon: float
    delta: float
    noise: float
    scale_covered: bool

    @property
    def budget(self) -> str:
        """Epsilon and delta as text."""
        return f"epsilon={self.epsilon:g}, delta={self.delta:g}"

    def __str__(self) -> str:
        scale = "" if self.scale_covered else " (its scale is not covered)"
        return f"released with {self.budget}{scale}"


def check_budget(epsilon: object, delta: object) -> tuple[float, float]:
    """Return a privacy budget as floats: epsilon up to 1000, delta between 0 and 1."""
    return (
        check_number("epsilon", epsilon, 1e-300, _LARGEST_EPSILON),
        check_number("delta", delta, 1e-300, 1.0 - 1e-12),
    )


def new_build() -> frozenset[str]:
    """Random identifier of one build, which says nothing about its tasks."""
    return frozenset([secrets.token_hex(8)])


@dataclass(frozen=True)
class Origin:
    """Builds that a prior was made from, what is said about it, and how it was released."""

    #: Random identifiers of the builds that went into it.
    builds: frozenset[str] = field(default_factory=new_build, compare=False)
    about: tuple[tuple[str, str], ...] = ()  # text by key: made_by, units, date
    scale_learnt: bool = False  # whether the feature scale was learnt from these tasks
    summarised: bool = False  # whether a part comes from from_summary
    release: Release | None = None  # budget and noise of a released prior

    def joined(self, other: Origin) -> Origin:
        """Origin of the sum of two priors: what both say, and all who made them."""
        if self.builds & other.builds:
            raise ValueError(
                "Both priors hold the same build: its tasks would count twice. Add priors of "
                "different people, or build one prior from all tasks."
            )
        mine, theirs = dict(self.about), dict(other.about)
        about = {key: text for key, text in mine.items() if theirs.get(key) == text}
        if "made_by" in mine or "made_by" in theirs:
            makers = [
                name
                for one in (mine, theirs)
                for name in one.get("made_by", "not named").split("; ")
            ]
            about["made_by"] = "; ".join(dict.fromkeys(makers))
        return Origin(
            self.builds | other.builds,
            tuple(about.items()),
            self.scale_learnt or other.scale_learnt,
            self.summarised or other.summarised,
        )

    def released(self, epsilon: float, delta: float, noise: float) -> Origin:
        """Origin of a release, which is a build of its own."""
        release = Release(float(epsilon), float(delta), noise, not self.scale_learnt)
        return replace(self, builds=new_build(), release=release)

    def longer(self) -> Origin:
        """Origin of a prior with more directions."""
        return replace(self, builds=self.builds | new_build())

    def saying(self, about: Mapping[str, str]) -> Origin:
        """The same with more said about it."""
        return replace(self, about=tuple({**dict(self.about), **check_about(about)}.items()))

    def privacy(self) -> dict[str, Any]:
        """How the prior protects its people, for cards and models."""
        if self.release is not None:
            return {"kind": "released", **asdict(self.release)}
        return {"kind": "summary" if self.summarised else "exact sums"}

    def header(self) -> dict[str, Any]:
        """Fields of the origin for the header of a file."""
        release = None if self.release is None else asdict(self.release)
        known = {"scale_learnt": self.scale_learnt, "summarised": self.summarised}
        said = {"builds": sorted(self.builds), "about": dict(self.about)}
        return {**known, **said, "release": release}

    @classmethod
    def of_header(cls, known: Mapping[str, Any]) -> Origin:
        """Origin from the header of a file."""
        release = None if known["release"] is None else Release(**known["release"])
        if release is not None:
            check_budget(release.epsilon, release.delta)
        return cls(
            frozenset(known["builds"]),
            tuple(check_about(known["about"]).items()),
            bool(known["scale_learnt"]),
            bool(known["summarised"]),
            release,
        )


def check_about(about: Mapping[str, Any]) -> dict[str, str]:
    """Text about a prior by key; refuses text that is not printable."""
    for key, text in about.items():
        if not isinstance(text, str) or not f"{key}{text}".isprintable():
            raise ValueError(f"about must be printable text on one line; {key!r} is {text!r}.")
    return dict(about)

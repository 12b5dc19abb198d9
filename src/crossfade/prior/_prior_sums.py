"""Space, sums and origin of a prior, and what follows from them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from crossfade._files import write_whole
from crossfade._typing import Array
from crossfade._validate import check_choice
from crossfade.exceptions import MissingPartWarning, NoDirectionError, PriorMismatchError
from crossfade.fisher import ClassMoments
from crossfade.prior._card import data_of, describe, text_of
from crossfade.prior._class_means import ClassMeans
from crossfade.prior._directions import Crowd, Directions
from crossfade.prior._file import pack, unpack
from crossfade.prior._forecast_record import ForecastRecord
from crossfade.prior._law import Law
from crossfade.prior._parts import Origin, Release, Space, Sums, added
from crossfade.prior._sessions import Person, Sessions
from crossfade.prior._summary import PSI_FORMS
from crossfade.prior._units import Units
from crossfade.tasks import Recipe


@dataclass(frozen=True, eq=False, repr=False)
class PriorSums:
    """Space, sums and origin of a prior, and what follows from them; see :class:`TaskPrior`."""

    space: Space
    sums: Mapping[str, Sums]
    origin: Origin = field(default_factory=Origin)
    person: Person | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sums", MappingProxyType(dict(self.sums)))
        frozen(self.space.feature_scale)
        for one in self.sums.values():
            for array in one.arrays().values():
                frozen(array)

    @cached_property
    def law(self) -> Law:
        """Law of a new person."""
        noise = 0.0 if self.release is None else self.release.noise
        law = Law.from_sums(self.space, self.sums, noise)
        known = self.person
        if known is None or law.class_means is None:
            return law
        means = law.class_means.of_person(known.mean, known.covariance, known.scatter, known.dof)
        return replace(law, class_means=means)

    @cached_property
    def units(self) -> Units | None:
        """Units of the features, if anything is known of them."""
        directions, means = self.sums.get("directions"), self.class_means
        within = None
        if isinstance(directions, Directions):
            within = directions.average("within")
        elif means is not None and means.n_within:
            within = means.within_sum / means.n_within
        return Units.of(
            self.feature_scale,
            within,
            self.origin.scale_learnt,
            means,
            self.n_tasks,
            self.space.centred_per_person,
        )

    @property
    def holds(self) -> tuple[str, ...]:
        """Names of the kinds of sums that the prior has."""
        return tuple(dict.fromkeys(map(_part_of, self.sums)))

    @property
    def class_means(self) -> ClassMeans | None:
        """Sums of class means, if they were kept."""
        found = self.sums.get("class_means")
        return found if isinstance(found, ClassMeans) else None

    @property
    def forecast_records(self) -> dict[str, ForecastRecord]:
        """For each kind of blend that was rehearsed, how accurate its forecasts turned out."""
        return {
            name.partition(".")[2]: one
            for name, one in self.sums.items()
            if isinstance(one, ForecastRecord)
        }

    @property
    def directions(self) -> Directions:
        """Sums of directions; refuses where there are none."""
        found = self.sums.get("directions")
        if not isinstance(found, Directions):
            raise PriorMismatchError(
                "This prior holds no directions of two classes. Use HierarchicalBlendClassifier."
            )
        return found

    @property
    def crowd(self) -> Crowd:
        """Law of the directions of new people; refuses where there are none."""
        crowd = self.law.directions
        return self.directions.crowd() if crowd is None else crowd

    @property
    def n_tasks(self) -> int:
        """Number of tasks, J."""
        found = self.sums.get("directions")
        return round(found.n_tasks if isinstance(found, Directions) else self._n_in_means)

    @property
    def n_people(self) -> int:
        """Number of people; sessions of one group are one person."""
        found = self.sums.get("directions")
        return round(found.n_people if isinstance(found, Directions) else self._n_in_means)

    @property
    def _n_in_means(self) -> float:
        return 0.0 if self.class_means is None else self.class_means.n_people

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.space.n_features

    @property
    def n_classes(self) -> int:
        """Number of classes; two where they are not given."""
        return self.space.n_classes

    @property
    def feature_scale(self) -> Array:
        """Scale by which features are divided first."""
        return self.space.feature_scale

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features."""
        return self.space.feature_names

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Labels, sorted; of two classes directions point to the second."""
        return self.space.classes

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """Names of the classes for people."""
        return self.space.class_names

    @property
    def recipe(self) -> Recipe | None:
        """How the features were made, where that is known of every task."""
        return self.space.recipe

    @property
    def about(self) -> dict[str, str]:
        """Text about the prior: who made it, units, date; see :meth:`annotated`."""
        return dict(self.origin.about)

    @property
    def release(self) -> Release | None:
        """Privacy budget and noise of a released prior; None for exact sums."""
        return self.origin.release

    @property
    def mean(self) -> Array:
        """Mean of the unit directions (equation 7); of a released prior, shorter by its noise."""
        return frozen(self.crowd.mean)

    @property
    def resultant_length(self) -> float:
        """Length R of the mean: 1 where all directions agree, 0 where they cancel out."""
        return float(self.crowd.resultant_length)

    @property
    def mean_direction(self) -> Array:
        """Unit vector mu along the mean."""
        if self.resultant_length < 1e-12:
            raise NoDirectionError(
                "The directions of this prior cancel out: there is no mean direction. Check that "
                "all sources order their classes alike, and that no release drowned them in noise."
            )
        return frozen(self.crowd.mean_direction)

    @property
    def cancels(self) -> bool:
        """Whether the mean is no longer than that of directions without any preference."""
        return bool(self.crowd.cancels)

    @property
    def concentration(self) -> float:
        """Concentration kappa by the paper's formula (equation 8), of the trusted length."""
        return float(self.crowd.concentration)

    def concentration_mle(self) -> float:
        """Concentration kappa of maximum likelihood (equation 9), of the trusted length."""
        return float(self.crowd.concentration_mle())

    @property
    def scatter(self) -> Array:
        """Covariance of the directions between tasks, of shape (n_features, n_features)."""
        return frozen(self.crowd.dense_scatter)

    def standard_error(self, form: str = "tangent") -> Array:
        """Covariance Psi of the mean direction (equation 10).

        Parameters
        ----------
        form : {"tangent", "authors", "printed"}, default="tangent"
            "tangent" shares the angular variance between the directions that are tangent to the
            sphere, which is right; "authors" is what the paper's figures were made with;
            "printed" is the formula in its text.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            Covariance matrix.
        """
        check_choice("form", form, PSI_FORMS)
        mu = self.mean_direction
        parts = self.crowd.psi(form)
        return parts.identity * np.eye(self.n_features) + parts.along * np.outer(mu, mu)

    def __add__(self, other: Self) -> Self:
        """Prior of the tasks of both; sums are added, so that order matters to rounding only.

        Parameters
        ----------
        other : TaskPrior
            A prior with the same features, scale and classes, of other builds.

        Returns
        -------
        TaskPrior
            The sum. What only one of the two knows is given up.
        """
        if not isinstance(other, PriorSums):
            return NotImplemented
        self._refuse_special()
        other._refuse_special()
        means = self.class_means is not None and other.class_means is not None
        space = self.space.joined(other.space, means=means)
        origin = self.origin.joined(other.origin)
        lost = {_part_of(name) for name in self.sums.keys() ^ other.sums.keys()} - {"sessions"}
        if lost:
            warnings.warn(
                f"Only one prior holds {' and '.join(sorted(lost))}, so the sum drops it. Build "
                "both with TaskPrior.from_tasks to keep it.",
                MissingPartWarning,
                stacklevel=2,
            )
        return replace(self, space=space, sums=added(self.sums, other.sums), origin=origin)

    def for_moments(self, earlier: Sequence[ClassMoments]) -> Self:
        """Prior for the person whose earlier sessions have these moments."""
        population, sessions = self.law.class_means, self.sums.get("sessions")
        if population is None or self.person is not None or not earlier:
            raise ValueError(
                "for_person needs a crowd's prior with class means, and an earlier session. Build "
                "the prior with TaskPrior.from_tasks, and give all sessions at once."
            )
        known = sessions if isinstance(sessions, Sessions) else None
        return replace(self, person=Person.of(population, known, earlier, self.space.feature_scale))

    def without(self, *parts: str) -> Self:
        """A copy that shares less.

        Parameters
        ----------
        *parts : str
            Names of parts to leave out, of those that :attr:`holds` names.

        Returns
        -------
        TaskPrior
            A prior without them.
        """
        for part in parts:
            check_choice("part", part, tuple(Sums.kinds))
        # Sessions say how class means differ.
        less = {*parts, *(("sessions",) if "class_means" in parts else ())}
        kept = {name: one for name, one in self.sums.items() if _part_of(name) not in less}
        if not kept.keys() & {"directions", "class_means"}:
            raise ValueError("A prior needs directions or class means. Leave one of them in.")
        return replace(self, sums=kept)

    def annotated(self, **about: str) -> Self:
        """The same prior with more text for its card.

        Parameters
        ----------
        **about : str
            Text by key, such as `made_by`, `units` and `date`.

        Returns
        -------
        TaskPrior
            A prior with the same numbers.
        """
        return replace(self, origin=self.origin.saying(about))

    def card_data(self) -> dict[str, Any]:
        """Content of the card as JSON can hold it; numbers have four digits."""
        return data_of(self)

    def card(self) -> str:
        """Card in Markdown: what the prior holds, from whom, under which privacy."""
        return text_of(self.card_data())

    def summary(self) -> str:
        """Text for a person: how many tasks, how far they agree, in which features."""
        return describe(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the prior to a file, whole or not at all (``docs/sharing.md``).

        Parameters
        ----------
        path : str or path-like
            Where to; by custom it ends in ``.npz``.
        """
        parts = dict(self.sums) if self.person is None else {**self.sums, "person": self.person}
        write_whole(path, pack(self.space, self.origin, parts))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a prior from a file; nothing in it is ever unpickled.

        Parameters
        ----------
        path : str or path-like
            A file that :meth:`save` wrote.

        Returns
        -------
        TaskPrior
            The prior, equal to the one that was saved.
        """
        space, origin, parts = unpack(path)
        person = parts.pop("person", None)
        sums = {name: one for name, one in parts.items() if isinstance(one, Sums)}
        return cls(space, sums, origin, person if isinstance(person, Person) else None)

    def _refuse_special(self) -> None:
        """Refuse priors that were released, or made for one person."""
        if self.release is not None or self.person is not None:
            what = "was released" if self.person is None else "was made for one person"
            raise ValueError(
                f"A prior that {what} can be neither added, updated nor released. Use the exact "
                "prior of the crowd."
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.space, dict(self.sums), self.origin, self.person)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The prior itself: it never changes, so that cloning an estimator is cheap."""
        return self

    def __repr__(self) -> str:
        about = f"n_tasks={self.n_tasks}, n_features={self.n_features}"
        if "directions" in self.sums:
            about += f", resultant_length={self.resultant_length:.3f}"
        if self.n_classes > 2:
            about += f", n_classes={self.n_classes}"
        return f"TaskPrior({about}{'' if self.release is None else f', {self.release.budget}'})"

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same numbers, to the bit."""
        if not isinstance(other, PriorSums):
            return NotImplemented
        return (
            self.space == other.space
            and self.sums == other.sums
            and self.origin == other.origin
            and self.person == other.person
        )

    def __hash__(self) -> int:
        return hash((self.n_tasks, self.n_features, self.classes))


def _part_of(name: str) -> str:
    """Kind of the sums that a prior holds under a name."""
    return name.partition(".")[0]


def frozen(array: Array) -> Array:
    """The same array, no longer writable."""
    if array.ndim:
        array.flags.writeable = False
    return array

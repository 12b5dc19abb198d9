"""Prior of many tasks: sums over people, without a row of anybody's data."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from crossfade._files import write_whole
from crossfade._typing import Array
from crossfade._validate import (
    check_choice,
    check_directions,
    check_integer,
    check_names,
    check_scale,
)
from crossfade.crowd._learn import learn
from crossfade.crowd._prior_sums import PriorSums, part_of
from crossfade.exceptions import MissingPartWarning, PriorMismatchError, UncountedReleaseWarning
from crossfade.fisher import ClassMoments, FisherDiscriminant, TaskMoments, shrinkage_of
from crossfade.prior import (
    Directions,
    ForecastRecord,
    Ledger,
    Origin,
    Person,
    Release,
    Sessions,
    Space,
    Sums,
    added,
    check_budget,
    check_labels,
    check_sources,
    kind_of,
    misfits,
    new_build,
    pack,
    refuse_twins,
    released_sums,
    sum_of_summary,
    unpack,
)
from crossfade.tasks import Task, TaskSet, common_recipe

#: More people than any real study; sums of so many are exact.
_MOST_TASKS = 10**12


@dataclass(frozen=True, eq=False, repr=False)
class TaskPrior(PriorSums):
    """What many earlier tasks say about a new one: sums over people, and nothing else.

    Build one with :meth:`from_tasks`, :meth:`from_projections` or :meth:`from_summary`; merge two
    sites with ``+``. A prior never changes.

    Attributes
    ----------
    space : Space
        Features, their scale, classes and recipe: what two priors must share to be added.
    sums : mapping of str to Sums
        Sums over people by name: "directions" of two classes, "class_means" of any number, and
        "forecast_records.KIND" for each kind of blend.
    origin : Origin
        Where the sums come from: builds, card text, release.
    person : Person or None
        What earlier sessions of one person say, in a prior from :meth:`for_person`.

    See Also
    --------
    HierarchicalBlendClassifier : Blend a prior with a person's own windows.
    choose_alpha : The weight of a person beside this crowd.

    References
    ----------
    Helm, de Silva, Vogelstein, Priebe and Yang (2024), Approximately optimal domain adaptation with
    Fisher's linear discriminant. Mathematics 12(5), 746.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade import TaskPrior
    >>> rng = np.random.default_rng(0)
    >>> W = rng.normal(size=(20, 4)) + [3.0, 0.0, 0.0, 0.0]
    >>> prior = TaskPrior.from_projections(W, normalize=True)
    >>> prior
    TaskPrior(n_tasks=20, n_features=4, resultant_length=0.844)
    >>> (prior + TaskPrior.from_projections(-W, normalize=True)).n_tasks
    40
    """

    # -- building ---------------------------------------------------------------------------

    @classmethod
    def from_tasks(
        cls,
        tasks: Iterable[Task],
        discriminant: FisherDiscriminant | None = None,
        feature_scale: ArrayLike | str | None = "auto",
        *,
        isotropic: bool = False,
        rehearse: bool = True,
        centred_per_person: bool | str = "auto",
        mean_norm_bound: float | None = None,
    ) -> Self:
        """Prior from tasks of two classes or more, in common units.

        Samples are taken to be in the order of time: it matters how far neighbours are alike.

        Parameters
        ----------
        tasks : iterable of Task
            Earlier participants or sessions, a :class:`TaskSet` for instance, with the same
            classes.
        discriminant : FisherDiscriminant or None, default=None
            How to get a direction; None is ``FisherDiscriminant()``. The paper's recipe is
            ``FisherDiscriminant(shrinkage=None)`` with ``feature_scale=None``.
        feature_scale : "auto", array-like of shape (n_features,) or None, default="auto"
            "auto" is the median over tasks of the standard deviation within the classes; None is
            raw units.
        isotropic : bool, default=False
            Keep the sum of the directions only, as for many thousand features.
        rehearse : bool, default=True
            Leave each source out in turn, at most 300 of them, to learn how accurate forecasts
            turn out; an isotropic prior never does.
        centred_per_person : bool or "auto", default="auto"
            Whether the features of every person were centred on all their windows: the middle of
            the classes then says nothing. "auto" looks whether they were; with a `mean_norm_bound`
            it is False.
        mean_norm_bound : float or None, default=None
            Largest length of anybody's class means, in units of the feature scale. Longer ones are
            shortened, so that :meth:`released` can protect class means too. Choose it beforehand,
            not from these tasks. Sessions of one group then count as one person.

        Returns
        -------
        TaskPrior
            The prior; it holds no row of anybody's data.
        """
        sources = list(tasks)
        names = check_sources(sources)
        refuse_twins(sources)
        classes = sources[0].classes
        samples = [(np.asarray(one.X), np.searchsorted(classes, one.y)) for one in sources]
        if len(classes) == 2:
            moments = TaskMoments.of(samples)
        else:
            moments = TaskMoments.of_classes(samples, len(classes))
        prior = cls.from_moments(
            moments,
            shrinkage=shrinkage_of(discriminant),
            feature_scale=feature_scale,
            isotropic=isotropic,
            rehearse=rehearse,
            centred_per_person=centred_per_person,
            mean_norm_bound=mean_norm_bound,
            groups=[task.group for task in sources],
            classes=classes.tolist(),
            feature_names=names,
            called=lambda place: repr(sources[place]),
        )
        called = tasks.class_names if isinstance(tasks, TaskSet) else {}
        return prior._in_space(
            recipe=common_recipe([task.recipe for task in sources]),
            class_names=tuple(called.get(label, str(label)) for label in classes.tolist())
            if called
            else None,
        )

    @classmethod
    def from_moments(cls, moments: TaskMoments, **options: Any) -> Self:
        """Prior from the moments of tasks: ``moments[groups != group]`` leaves one person out.

        Parameters
        ----------
        moments : TaskMoments
            Moments of tasks, with their windows in the order of time.
        **options : optional
            Those of :meth:`from_tasks`; `shrinkage` of each task's covariance, `groups` of tasks
            that are sessions of one person, `classes` and `feature_names`; `rehearse` may name the
            kinds of blends.

        Returns
        -------
        TaskPrior
            The prior, equal to that of :meth:`from_tasks`.
        """
        return cls(*learn(moments, **options))

    @classmethod
    def from_projections(
        cls,
        projections: ArrayLike,
        *,
        normalize: bool = False,
        isotropic: bool = False,
        feature_scale: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Self:
        """Prior from the projection vectors of earlier tasks of two classes.

        Parameters
        ----------
        projections : array-like of shape (n_tasks, n_features)
            Unit directions, one row for each task.
        normalize : bool, default=False
            Bring rows to unit length first; otherwise other lengths are an error.
        isotropic : bool, default=False
            Keep the sum of the directions only.
        feature_scale : array-like of shape (n_features,) or None, default=None
            Units of the directions: features are divided by this. None is the caller's units.
        classes : pair of labels or None, default=None
            The two labels, in sorted order; directions point to the second.
        feature_names : sequence of str or None, default=None
            Names of the features; a data frame's column names are taken if there are any.

        Returns
        -------
        TaskPrior
            The prior.
        """
        if feature_names is None and hasattr(projections, "columns"):
            feature_names = [str(column) for column in projections.columns]
        directions = check_directions(projections, normalize=normalize)
        d = directions.shape[1]
        space = Space(
            check_scale(feature_scale, d).copy(), check_names(feature_names, d), _pair_of(classes)
        )
        return cls(space, {"directions": Directions.of(directions, outer=not isotropic)})

    @classmethod
    def from_summary(
        cls,
        mu: ArrayLike,
        psi: ArrayLike,
        n_tasks: int,
        *,
        form: str = "auto",
        feature_scale: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Self:
        """Prior from what the paper shares: a mean direction and its standard error.

        The length of the mean follows from Psi under the von Mises-Fisher distribution (equation
        11); the prior is isotropic.

        Parameters
        ----------
        mu : array-like of shape (n_features,)
            Mean direction, of unit length.
        psi : array-like of shape (n_features, n_features)
            Covariance of the mean direction.
        n_tasks : int
            How many tasks it came from.
        form : {"auto", "tangent", "authors", "printed"}, default="auto"
            Which of the three forms `psi` has, see :meth:`standard_error`. "auto" takes a multiple
            of the identity for "authors", and else "tangent".
        feature_scale, classes, feature_names : optional
            As in :meth:`from_projections`.

        Returns
        -------
        TaskPrior
            An isotropic prior whose :meth:`standard_error` in that form is `psi`; one task says
            nothing of its spread, and its `psi` is not kept. It cannot be released.
        """
        n = check_integer("n_tasks", n_tasks, 1, _MOST_TASKS)
        total = sum_of_summary(mu, psi, n, form)
        d = total.size
        space = Space(
            check_scale(feature_scale, d).copy(), check_names(feature_names, d), _pair_of(classes)
        )
        sums = {"directions": Directions(float(n), total, float(n), total)}
        return cls(space, sums, Origin(summarised=True))

    def update(self, projections: ArrayLike, *, normalize: bool = False) -> Self:
        """New prior with more directions, which bring nothing else: other sums are given up.

        Parameters
        ----------
        projections : array-like of shape (n_tasks, n_features)
            Unit directions of further tasks, in this prior's scaled units.
        normalize : bool, default=False
            Bring rows to unit length first.

        Returns
        -------
        TaskPrior
            The prior of all tasks.
        """
        self._refuse_special()
        directions = check_directions(projections, self.n_features, normalize=normalize)
        both = self.directions + Directions.of(directions)
        origin = replace(self.origin, builds=self.origin.builds | new_build())
        return replace(self, sums={"directions": both}, origin=origin)

    def __add__(self, other: TaskPrior) -> Self:
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
        if not isinstance(other, TaskPrior):
            return NotImplemented
        self._refuse_special()
        other._refuse_special()
        means = self.class_means is not None and other.class_means is not None
        space = self.space.joined(other.space, means=means)
        origin = self.origin.joined(other.origin)
        lost = {part_of(name) for name in self.sums.keys() ^ other.sums.keys()} - {"sessions"}
        if lost:
            warnings.warn(
                f"Only one of the two priors holds {' and '.join(sorted(lost))}: their sum does "
                "without. Build both with TaskPrior.from_tasks to keep it.",
                MissingPartWarning,
                stacklevel=2,
            )
        return replace(self, space=space, sums=added(self.sums, other.sums), origin=origin)

    def for_person(self, earlier: Task | Iterable[Task]) -> Self:
        """The same person tomorrow: a prior tightened around their own earlier sessions.

        The class means of a person's next session are those of the person plus an effect of the
        session. The crowd knows how large it is if some of its people (`group`) have two sessions;
        else it is taken to be a tenth of what people differ by, which is a guess.

        Parameters
        ----------
        earlier : Task or iterable of Task
            Labelled windows of the person from an earlier session, or of several, one task each,
            with the prior's features and classes.

        Returns
        -------
        TaskPrior
            A prior for this person and nobody else. It can be neither added, updated nor released.

        Examples
        --------
        >>> from crossfade import HierarchicalBlendClassifier, TaskPrior
        >>> from crossfade.datasets import make_matb_like
        >>> sessions = make_matb_like(n_participants=20)
        >>> yesterday, today, others = sessions[0], sessions[1], sessions[2:]
        >>> prior = TaskPrior.from_tasks(others, rehearse=False).for_person(yesterday)
        >>> HierarchicalBlendClassifier(prior).start().score(today.X, today.y) > 0.6
        True
        """
        tasks = [earlier] if isinstance(earlier, Task) else list(earlier)
        for task in tasks:
            wrong = misfits(self.space, [task])
            if wrong:
                raise PriorMismatchError(f"{task!r} does not fit the prior. {' '.join(wrong)}")
        classes = np.unique(tasks[0].y) if self.classes is None else np.array(self.classes)
        return self.for_moments(
            [
                ClassMoments.of(
                    np.asarray(task.X), np.searchsorted(classes, task.y), n_classes=len(classes)
                )
                for task in tasks
            ]
        )

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
        kept = {name: one for name, one in self.sums.items() if part_of(name) not in parts}
        return replace(self, sums=kept)

    def with_records(self, records: Mapping[str, ForecastRecord]) -> Self:
        """The same prior with the forecast records of these kinds of blends."""
        named = {f"forecast_records.{kind}": one for kind, one in records.items()}
        return replace(self, sums={**self.sums, **named})

    def reversed(self) -> Self:
        """The same prior with its two classes the other way round, and no names of them."""
        turned = {
            name: one.reversed() if hasattr(one, "reversed") else one
            for name, one in self.sums.items()
        }
        return replace(self, sums=turned)._in_space(classes=None, class_names=None)

    # -- sharing ----------------------------------------------------------------------------

    def released(
        self,
        epsilon: float,
        delta: float,
        ledger: Ledger | str | os.PathLike[str] | None = None,
    ) -> TaskPrior:
        """Differentially private copy: replacing any one person hardly changes what it may be.

        OpenDP adds normal noise to the sums (``docs/sharing.md``). Sessions of one group are one
        person, and the copy counts people. It knows its noise and trusts itself less; what has no
        bound is left out. Enables OpenDP's "contrib" features, for the whole process.

        Parameters
        ----------
        epsilon : float
            Budget: how far the odds of any outcome may differ, as the logarithm of their ratio.
        delta : float
            Probability beyond that; far below one over the number of people.
        ledger : Ledger, str, path-like or None, default=None
            File of the population to which the release is charged. A release that would exceed its
            budget is refused before noise is drawn. None warns that nobody counts.

        Returns
        -------
        TaskPrior
            A prior with a `release`, which can be neither added, updated nor released again.
        """
        self._refuse_special()
        _ = self.directions
        epsilon, delta = check_budget(epsilon, delta)
        if self.origin.summarised:
            raise ValueError(
                "A prior from from_summary cannot be released: one task can move it further than "
                "noise covers. Release a prior that was built from tasks or directions."
            )
        if self.origin.scale_learnt:
            warnings.warn(
                "The feature scale was learnt from these tasks, so that the guarantee does not "
                "cover it. Build the prior with a scale that was fixed beforehand.",
                UserWarning,
                stacklevel=2,
            )

        def draw() -> TaskPrior:
            sums, noise = released_sums(self.sums, self.space.mean_norm_bound, epsilon, delta)
            release = Release(epsilon, delta, noise, not self.origin.scale_learnt)
            origin = replace(self.origin, builds=new_build(), release=release)
            return replace(self, sums=sums, origin=origin)

        if ledger is None:
            warnings.warn(
                "No ledger counts this release. Pass ledger=PATH, one file for each population.",
                UncountedReleaseWarning,
                stacklevel=2,
            )
            return draw()
        book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        public: TaskPrior = book.charge(epsilon, delta, draw)
        return public

    def annotated(self, **about: str) -> Self:
        """The same prior with more said about it, for its card and for whoever loads it.

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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the prior to a file, whole or not at all (``docs/sharing.md``).

        Parameters
        ----------
        path : str or path-like
            Where to; by custom it ends in ``.npz``.
        """
        write_whole(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Content of the file of the prior."""
        header = {"space": self.space.fields(), "origin": self.origin.fields()}
        header["space"].pop("feature_scale")
        arrays = {"feature_scale": self.space.feature_scale}
        parts: dict[str, Any] = dict(self.sums)
        if self.person is not None:
            parts["person"] = self.person
        for name, one in parts.items():
            arrays |= {f"{name}/{key}": array for key, array in one.arrays().items()}
        return pack(header, arrays)

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
        header, arrays = unpack(path)
        try:
            scale = arrays.pop("feature_scale")
            space = Space.of_fields({**header["space"], "feature_scale": scale})
            parts: dict[str, dict[str, Array]] = {}
            for name, array in arrays.items():
                part, _, key = name.partition("/")
                parts.setdefault(part, {})[key] = array
            sizes = {"d": space.n_features, "K": space.n_classes}
            person = parts.pop("person", None)
            return cls(
                space,
                {name: kind_of(name).of_arrays(one, **sizes) for name, one in parts.items()},
                Origin.of_fields(header["origin"]),
                None if person is None else Person.of_arrays(person, **sizes),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as reason:
            raise ValueError(f"{path} holds no valid prior: {reason} Build it again.") from reason

    def _in_space(self, **changes: Any) -> Self:
        return replace(self, space=replace(self.space, **changes))

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


def _pair_of(classes: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """Two labels, to which directions belong."""
    known = check_labels(classes)
    if known is not None and len(known) != 2:
        raise ValueError(f"Directions are those of two classes; got {len(known)}.")
    return known

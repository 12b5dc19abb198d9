"""Prior of many tasks of two classes: sums of unit directions, without a row of anybody's data."""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from crossfade._typing import Array
from crossfade._validate import (
    check_choice,
    check_classes,
    check_covariance,
    check_directions,
    check_finite,
    check_integer,
    check_names,
    check_number,
    check_scale,
    check_spectrum,
)
from crossfade.exceptions import (
    MissingPartWarning,
    NoDirectionError,
    PriorMismatchError,
    UncountedReleaseWarning,
)
from crossfade.fisher import (
    N_LAGS,
    ClassMoments,
    FisherDiscriminant,
    Spectrum,
    TaskMoments,
    cut_off,
    from_dense,
    oas,
    shrinkage_of,
)
from crossfade.prior._archive import Archived
from crossfade.prior._card import cards_of, check_about, data_of, describe, joined_about, text_of
from crossfade.prior._class_means import ClassMeans
from crossfade.prior._compatibility import check_same_space, misfits
from crossfade.prior._crowd import PSI_FORMS, Crowd
from crossfade.prior._law import Law
from crossfade.prior._learn import check_sources, learn_sums
from crossfade.prior._ledger import Ledger
from crossfade.prior._people import People, refuse_twins, shares_of
from crossfade.prior._person import person_of
from crossfade.prior._release import (
    Release,
    check_budget,
    check_flag,
    check_release,
    refuse_released,
    refuse_unbounded,
    released_fields,
)
from crossfade.prior._replay import Replay, usable_records
from crossfade.prior._sessions import Sessions
from crossfade.prior._summary import sum_of_summary
from crossfade.prior._units import Units
from crossfade.tasks import Recipe, Task, TaskSet, check_class_names, common_recipe

#: More people than there are; sums of so many are exact.
_MOST_TASKS = 10**12
#: Averages over tasks: merging weighs them by the number of tasks.
_AVERAGES = ("within_covariance", "half_gap", "autocorrelation", "direction_noise")
#: What a prior may hold beside the sum of its directions.
PARTS = ("outer_sum", *_AVERAGES, "directions", "sessions", "class_means", "replay")
#: Blends whose forecasts are replayed.
PAIR_VERBS = ("convex", "posterior")
ALL_VERBS = (*PAIR_VERBS, "hierarchical")


@dataclass(frozen=True, eq=False, repr=False)
class TaskPrior(Archived):
    """What many earlier tasks say about the direction of a new one: sums, and nothing else.

    Build one with :meth:`from_tasks`, :meth:`from_projections` or :meth:`from_summary`; merge two
    sites with ``+``. A prior never changes.

    Attributes
    ----------
    n_tasks : int
        Number of tasks, J.
    direction_sum : ndarray of shape (n_features,)
        Sum of the unit directions, in scaled units.
    outer_sum : ndarray of shape (n_features, n_features) or None
        Sum of their outer products; None for an isotropic prior.
    feature_scale : ndarray of shape (n_features,)
        What features are divided by before anything else.
    classes : tuple or None
        The two labels, sorted; directions point to the second. None where they were not given.
    feature_names : tuple of str or None
        Names of the features.
    within_covariance : ndarray of shape (n_features, n_features) or None
        Average covariance within the classes, in scaled units.
    half_gap : ndarray of shape (n_features,) or None
        Average half gap between the class means, in scaled units.
    directions : ndarray of shape (n_tasks, n_features) or None
        The single unit directions, for those who may share them; by default they are not kept.
    autocorrelation : ndarray of shape (30,) or None
        Average correlation of samples of a class that are 1, 2, ... rows apart.
    direction_noise : float or None
        Average squared error of the directions, from those of the halves of each task.
    about : mapping of str to str
        What no number says: who made it, units, date; see :meth:`annotated`.
    scale_learnt : bool
        Whether the feature scale was learnt from these tasks, rather than fixed beforehand.
    release : Release or None
        Privacy budget and noise of a released prior; None for exact sums.
    summarised : bool
        Whether a part came by :meth:`from_summary`: its sum is no sum of unit directions, and it
        cannot be released.
    class_means : ClassMeans or None
        Sums over people of their class means and of how noisy these are, for
        :class:`HierarchicalBlendClassifier`, and for every blend before the first label.
    replay : mapping of str to Replay, or None
        For each blend what its forecasts were worth when every source played the newcomer to the
        others: it makes the forecast for one person true.
    class_names : tuple of str or None
        What people read instead of the two classes, in their order.
    people : People or None
        Sums in which a person with several sessions counts once, for a release; None where every
        task is a person.
    recipe : Recipe or None
        How the features were made from recordings; None where that is not known of every task.
    sessions : Sessions or None
        How far apart the sessions of one person are, for :meth:`for_person`; None where nobody has
        two.
    builds : frozenset of str
        Random identifiers of the builds that went into it: priors that share one are not added. A
        released prior gets a fresh one.

    See Also
    --------
    MulticlassPrior : More than two classes.
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

    n_tasks: int
    direction_sum: Array
    outer_sum: Array | None
    feature_scale: Array
    classes: tuple[Any, Any] | None = None
    feature_names: tuple[str, ...] | None = None
    within_covariance: Array | None = None
    half_gap: Array | None = None
    about: Mapping[str, str] = field(default_factory=dict)
    scale_learnt: bool = False
    release: Release | None = None
    directions: Array | None = None
    autocorrelation: Array | None = None
    direction_noise: float | None = None
    summarised: bool = False
    class_means: ClassMeans | None = None
    replay: Mapping[str, Replay] | None = None
    class_names: tuple[str, str] | None = None
    people: People | None = None
    recipe: Recipe | None = None
    sessions: Sessions | None = None
    builds: frozenset[str] = field(default_factory=lambda: new_build(), compare=False)

    def __post_init__(self) -> None:
        n_features = np.size(self.direction_sum)
        object.__setattr__(self, "n_tasks", check_integer("n_tasks", self.n_tasks, 1, _MOST_TASKS))
        object.__setattr__(self, "classes", check_classes(self.classes))
        object.__setattr__(self, "class_names", _check_class_names(self.class_names, self.classes))
        object.__setattr__(self, "feature_names", check_names(self.feature_names, n_features))
        object.__setattr__(self, "about", check_about(self.about))
        check_flag("scale_learnt", self.scale_learnt)
        if self.recipe is not None and not isinstance(self.recipe, Recipe):
            raise TypeError(f"recipe must be a Recipe or None; got {type(self.recipe).__name__}.")
        object.__setattr__(self, "release", check_release(self.release, self.scale_learnt))
        check_flag("summarised", self.summarised)
        object.__setattr__(self, "builds", _checked_builds(self.builds))
        for name, shape, optional in (
            ("direction_sum", (n_features,), False),
            ("outer_sum", (n_features, n_features), True),
            ("feature_scale", (n_features,), False),
            ("within_covariance", (n_features, n_features), True),
            ("half_gap", (n_features,), True),
            ("directions", (self.n_tasks, n_features), True),
            ("autocorrelation", (N_LAGS,), True),
        ):
            value = getattr(self, name)
            if value is None and optional:
                continue
            array = check_finite(name, value, len(shape))
            if array.shape != shape:
                raise ValueError(f"{name} must be of shape {shape}; got {array.shape}.")
            object.__setattr__(self, name, frozen(array.copy()))
        check_scale(self.feature_scale, n_features)
        if self.direction_noise is not None:
            check_number("direction_noise", self.direction_noise, 0.0, 4.0)
        slack = 1e-5 * self.n_tasks
        if np.linalg.norm(self.direction_sum) > self.n_tasks + slack:
            raise ValueError(
                f"direction_sum is longer than {self.n_tasks} unit directions can make it."
            )
        if self.outer_sum is not None and abs(np.trace(self.outer_sum) - self.n_tasks) > slack:
            raise ValueError(
                f"outer_sum is not that of {self.n_tasks} unit directions: its trace is "
                f"{np.trace(self.outer_sum):.6g}."
            )
        if self.directions is not None:
            check_belonging(self.directions, self.direction_sum, slack)
        if self.replay is not None:
            object.__setattr__(self, "replay", MappingProxyType(dict(self.replay)))
        if self.people is not None and self.isotropic:
            object.__setattr__(self, "people", replace(self.people, outer_sum=None))

    # -- building ---------------------------------------------------------------------------

    @classmethod
    def from_projections(
        cls,
        projections: ArrayLike,
        *,
        normalize: bool = False,
        isotropic: bool = False,
        keep_directions: bool = False,
        feature_scale: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Self:
        """Prior from the projection vectors of earlier tasks.

        Parameters
        ----------
        projections : array-like of shape (n_tasks, n_features)
            Unit directions, one row for each task.
        normalize : bool, default=False
            Bring rows to unit length first; otherwise other lengths are an error.
        isotropic : bool, default=False
            Keep the sum of the directions only: for many features, and for those who share less.
        keep_directions : bool, default=False
            Keep the single directions too. Who has the prior or its file then has the direction of
            every single task.
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
        return cls(
            n_tasks=len(directions),
            direction_sum=directions.sum(0),
            outer_sum=None if isotropic else directions.T @ directions,
            feature_scale=check_scale(feature_scale, directions.shape[1]),
            classes=check_classes(classes),
            feature_names=check_names(feature_names, directions.shape[1]),
            directions=directions if keep_directions else None,
        )

    @classmethod
    def from_tasks(
        cls,
        tasks: Iterable[Task],
        discriminant: FisherDiscriminant | None = None,
        feature_scale: ArrayLike | str | None = "auto",
        *,
        isotropic: bool = False,
        keep_directions: bool = False,
        class_means: bool = True,
        replay: bool = True,
        centred: str | None = "auto",
        clip: float | None = None,
    ) -> Self:
        """Prior from tasks: one discriminant each, in common units.

        Samples are taken to be in the order of time: it matters how far neighbours are alike.

        Parameters
        ----------
        tasks : iterable of Task
            Earlier participants or sessions, a :class:`TaskSet` for instance.
        discriminant : FisherDiscriminant or None, default=None
            How to get a direction; None is ``FisherDiscriminant()``. The paper's recipe is
            ``FisherDiscriminant(shrinkage=None)`` with ``feature_scale=None``.
        feature_scale : "auto", array-like of shape (n_features,) or None, default="auto"
            "auto" is the median over tasks of the standard deviation within the classes; None is
            raw units.
        isotropic : bool, default=False
            Keep the sum of the directions only.
        keep_directions : bool, default=False
            Keep the direction of every single task too, see :meth:`from_projections`.
        class_means : bool, default=True
            Keep the sums of the class means and of their outer products, for
            :class:`HierarchicalBlendClassifier`; an isotropic prior never does.
        replay : bool, default=True
            Let every source play the newcomer to the others, at most 300 of them, so that the
            forecast for one person is true; an isotropic prior never does.
        centred : {"auto", "person"} or None, default="auto"
            "person" says that the features of every person were centred on all their windows: the
            middle of the classes then tells nothing. "auto" looks whether they were; with a `clip`
            it is None.
        clip : float or None, default=None
            Largest length of anybody's class means, in units of the feature scale: what is longer
            is shortened, so that :meth:`released` can protect class means too. Choose it
            beforehand, not from these tasks. Sessions of one group then count as one person.

        Returns
        -------
        TaskPrior
            The prior; it holds no row of anybody's data.
        """
        sources = list(tasks)
        shrinkage = shrinkage_of(discriminant)
        names = check_sources(sources)
        recipe = common_recipe([task.recipe for task in sources])
        refuse_twins(sources)
        classes = sources[0].classes
        samples = [
            (np.asarray(task.X), (np.asarray(task.y) == classes[1]).astype(np.intp))
            for task in sources
        ]
        moments = TaskMoments.of(samples)
        fields = learn_sums(
            moments,
            shrinkage,
            feature_scale,
            isotropic=isotropic,
            keep_directions=True,
            classes=classes.tolist(),
            feature_names=names,
            class_means=class_means,
            centred=centred,
            clip=clip,
            groups=(groups := [task.group for task in sources]),
            called=lambda place: repr(sources[place]),
        )
        played = ALL_VERBS if replay else ()
        fields["recipe"] = recipe
        if isinstance(tasks, TaskSet) and tasks.class_names:
            fields["class_names"] = tuple(
                tasks.class_names.get(label, str(label)) for label in classes.tolist()
            )
        return cls._replayed(
            fields,
            moments,
            played,
            keep_directions=keep_directions,
            groups=groups,
        )

    @classmethod
    def from_moments(
        cls,
        moments: TaskMoments,
        shrinkage: str | float | None = "oas",
        feature_scale: ArrayLike | str | None = "auto",
        *,
        isotropic: bool = False,
        keep_directions: bool = False,
        class_means: bool = True,
        replay: bool | Sequence[str] = True,
        centred: str | None = "auto",
        clip: float | None = None,
        groups: Sequence[str | None] | None = None,
        classes: Sequence[Any] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Self:
        """Prior from the moments of tasks: ``moments[groups != group]`` leaves one person out.

        Parameters
        ----------
        moments : TaskMoments
            Moments of tasks of two classes, with their windows in the order of time.
        shrinkage : "oas", float or None, default="oas"
            Shrinkage of each task's covariance, see :class:`FisherDiscriminant`.
        feature_scale, isotropic, keep_directions, class_means : optional
            As in :meth:`from_tasks`.
        replay : bool or sequence of str, default=True
            As in :meth:`from_tasks`; or of which blends, "convex", "posterior" and "hierarchical",
            the forecasts are wanted.
        centred, clip : optional
            As in :meth:`from_tasks`.
        groups : sequence of str or None, default=None
            Person of each task: those of one group are sessions of one person, who counts once in a
            release. None, for a task or for all, is a person of its own.
        classes, feature_names : optional
            As in :meth:`from_projections`.

        Returns
        -------
        TaskPrior
            The prior, equal to that of :meth:`from_tasks`.
        """
        fields = learn_sums(
            moments,
            shrinkage,
            feature_scale,
            isotropic=isotropic,
            keep_directions=True,
            class_means=class_means,
            centred=centred,
            clip=clip,
            groups=groups,
            classes=classes,
            feature_names=feature_names,
        )
        played = (ALL_VERBS if replay else ()) if isinstance(replay, bool) else tuple(replay)
        return cls._replayed(
            fields, moments, played, keep_directions=keep_directions, groups=groups
        )

    @classmethod
    def _replayed(
        cls,
        fields: dict[str, Any],
        moments: TaskMoments,
        verbs: Sequence[str],
        *,
        keep_directions: bool,
        groups: Sequence[str | None] | None = None,
    ) -> Self:
        """Prior with the records of its own people; `fields` have the directions of all."""
        directions = fields["directions"]
        kept = {"directions": directions if keep_directions else None}
        prior = cls(**fields | kept)
        if not verbs or prior.isotropic:
            return prior
        # A prior does not know blends; only here its people try them.
        from crossfade.blend._replay import replay

        shares = None if groups is None else shares_of(groups)
        return replace(prior, replay=replay(moments, prior, directions, verbs, shares) or None)

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
        direction_sum = sum_of_summary(
            mu, psi, check_integer("n_tasks", n_tasks, 1, _MOST_TASKS), form
        )
        return cls(
            n_tasks=n_tasks,
            direction_sum=direction_sum,
            outer_sum=None,
            feature_scale=check_scale(feature_scale, direction_sum.size),
            classes=check_classes(classes),
            feature_names=check_names(feature_names, direction_sum.size),
            summarised=True,
        )

    def update(self, projections: ArrayLike, *, normalize: bool = False) -> TaskPrior:
        """New prior with more directions, so that any number can be streamed in chunks.

        All averages are given up, since directions do not bring them.

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
        refuse_released(self)
        refuse_person(self)
        directions = check_directions(projections, self.n_features, normalize=normalize)
        added = People(len(directions), directions.sum(0), directions.T @ directions)
        outer = None if self.outer_sum is None else self.outer_sum + directions.T @ directions
        return replace(
            self,
            n_tasks=self.n_tasks + len(directions),
            direction_sum=self.direction_sum + directions.sum(0),
            outer_sum=outer,
            within_covariance=None,
            half_gap=None,
            autocorrelation=None,
            direction_noise=None,
            directions=joined(self.directions, directions),
            class_means=None,
            replay=None,
            sessions=None,
            people=None if self.people is None else self.people + added,
            builds=self.builds | new_build(),
        )

    def __add__(self, other: TaskPrior) -> TaskPrior:
        """Prior of the tasks of both; sums are added, so that order matters to rounding only.

        Refuses priors that have a build in common, since its tasks would count twice.

        Parameters
        ----------
        other : TaskPrior
            A prior with the same features, scale and classes.

        Returns
        -------
        TaskPrior
            The merged prior. What only one of the two keeps is given up, its `recipe` too.
        """
        if not isinstance(other, TaskPrior):
            return NotImplemented
        refuse_released(self, other)
        refuse_person(self, other)
        check_same_space(self, other)
        if self.builds & other.builds:
            raise ValueError(
                "Both priors hold the same build, whose tasks would count twice. Merge priors of "
                "different people, or build one prior from all tasks."
            )
        total = self.n_tasks + other.n_tasks
        outer = None
        if self.outer_sum is not None and other.outer_sum is not None:
            outer = self.outer_sum + other.outer_sum
        averages: dict[str, Any] = {}
        for name in _AVERAGES:
            mine, theirs = getattr(self, name), getattr(other, name)
            averages[name] = None
            if mine is not None and theirs is not None:
                averages[name] = (self.n_tasks * mine + other.n_tasks * theirs) / total
        means = both_means(self.class_means, other.class_means)
        _say_given_up(self, other)
        records = both_records(self.replay, other.replay)
        return replace(
            self,
            n_tasks=total,
            direction_sum=self.direction_sum + other.direction_sum,
            outer_sum=outer,
            classes=self.classes if self.classes is not None else other.classes,
            class_names=self.class_names or other.class_names,
            feature_names=self.feature_names or other.feature_names,
            **averages,
            about=joined_about(self.about, other.about),
            scale_learnt=self.scale_learnt or other.scale_learnt,
            summarised=self.summarised or other.summarised,
            directions=joined(self.directions, other.directions),
            class_means=means,
            replay=records if means is not None else _of_directions(records),
            people=None
            if self.people is None and other.people is None
            else self._by_person + other._by_person,
            builds=self.builds | other.builds,
            recipe=common_recipe([self.recipe, other.recipe]),
            sessions=None if means is None else _both_sessions(self.sessions, other.sessions),
        )

    def for_person(self, earlier: Task | Iterable[Task]) -> Self:
        """The same person tomorrow: a prior tightened around their own earlier session.

        The class means of a person's next session are those of the person plus an effect of the
        session, of which the crowd knows how large it is where some of its people (`group`) have
        two sessions or more; else it is taken to be a tenth of what people differ by, which is a
        guess. :class:`HierarchicalBlendClassifier` and :class:`LiveCalibration` use it; what
        other blends know, directions, is the crowd's as before.

        Parameters
        ----------
        earlier : Task or iterable of Task
            Labelled windows of the person from an earlier session, or of several, one task each,
            with the prior's features and classes.

        Returns
        -------
        TaskPrior
            A prior for this person and nobody else. It holds what the earlier sessions say of
            their class means and can be neither merged, updated nor released.

        Examples
        --------
        >>> from crossfade import HierarchicalBlendClassifier, TaskPrior
        >>> from crossfade.datasets import make_matb_like
        >>> sessions = make_matb_like(n_participants=20)
        >>> yesterday, today, others = sessions[0], sessions[1], sessions[2:]
        >>> prior = TaskPrior.from_tasks(others, replay=False).for_person(yesterday)
        >>> HierarchicalBlendClassifier(prior).start().score(today.X, today.y) > 0.6
        True
        """
        means, tasks = self.class_means, [earlier] if isinstance(earlier, Task) else list(earlier)
        if means is None:
            raise ValueError(
                "This prior holds no class means, which an earlier session would tell more about. "
                "Build it with TaskPrior.from_tasks."
            )
        refuse_person(self)
        if not tasks:
            raise ValueError("for_person needs an earlier session of the person; got none.")
        for task in tasks:
            wrong = misfits(self, [task])
            if wrong:
                raise PriorMismatchError(f"{task!r} does not fit the prior. {' '.join(wrong)}")
        classes = tasks[0].classes if self.classes is None else np.array(self.classes)
        moments = [
            ClassMoments.of(np.asarray(task.X), np.searchsorted(classes, task.y), n_classes=2)
            for task in tasks
        ]
        return self._for_moments(moments)

    def _for_moments(self, earlier: Sequence[ClassMoments]) -> Self:
        """Prior for the person whose earlier sessions have these moments."""
        means: Any = self.class_means
        person = person_of(means.population, self.sessions, earlier, self.feature_scale)
        return replace(self, class_means=replace(means, person=person))

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
            check_choice("part", part, tuple(PARTS))
        left_out: dict[str, Any] = dict.fromkeys(parts)
        if "class_means" in parts:
            # Without these, nobody can ask how sessions differ.
            left_out["sessions"] = None
            if "replay" not in parts:
                left_out["replay"] = _of_directions(self.replay)
        return replace(self, **left_out)

    @property
    def holds(self) -> tuple[str, ...]:
        """Names of the parts beyond the sum of the directions that the prior has."""
        return tuple(part for part in PARTS if getattr(self, part) is not None)

    def reversed(self) -> TaskPrior:
        """The same prior with its classes the other way round: every direction turned about.

        Returns
        -------
        TaskPrior
            A prior without names of classes, whose directions point to what was the first.
        """
        return replace(
            self,
            direction_sum=-self.direction_sum,
            half_gap=None if self.half_gap is None else -self.half_gap,
            directions=None if self.directions is None else -self.directions,
            class_means=None if self.class_means is None else self.class_means.reversed(),
            sessions=None if self.sessions is None else self.sessions.reversed(),
            people=None
            if self.people is None
            else replace(self.people, direction_sum=-self.people.direction_sum),
            classes=None,
            class_names=None,
        )

    # -- reading ----------------------------------------------------------------------------

    @cached_property
    def crowd(self) -> Crowd:
        """What a blend asks of the prior: mean, Psi and scatter of its directions."""
        noise = 0.0 if self.release is None else self.release.noise / self.n_tasks
        return Crowd.from_sums(
            self.n_tasks,
            self.direction_sum,
            self.outer_sum,
            release_noise=noise,
            direction_noise=self.direction_noise,
        )

    @cached_property
    def law(self) -> Law:
        """What the prior says about a new person."""
        means = self.class_means
        noise = 0.0
        if means is not None and means.clip is not None and self.release is not None:
            noise = self.release.noise / means.n_people * means.clip
        return Law(
            n_classes=2,
            feature_scale=self.feature_scale,
            directions=self.crowd,
            class_means=None if means is None else means.population,
            within=self.within_spectrum,
            neighbour_correlation=self.neighbour_correlation,
            records=usable_records(self.replay),
            means_noise=noise,
        )

    @cached_property
    def n_features(self) -> int:
        """Number of features."""
        return self.direction_sum.size

    @cached_property
    def units(self) -> Units | None:
        """What the prior knows of the units of its features, if anything."""
        return Units.of(
            self.feature_scale,
            self.within_covariance,
            self.scale_learnt,
            self.class_means,
            self.n_tasks,
        )

    @property
    def n_people(self) -> int:
        """Number of people; sessions of one group are one person."""
        return self.n_tasks if self.people is None else self.people.n_people

    @property
    def _by_person(self) -> People:
        """The sums in which a person counts once, whatever the number of their sessions."""
        if self.people is not None:
            return self.people
        return People(self.n_tasks, self.direction_sum, self.outer_sum)

    @property
    def isotropic(self) -> bool:
        """Whether only the sum of the directions was kept."""
        return self.outer_sum is None

    @property
    def mean(self) -> Array:
        """Mean of the unit directions (equation 7); its length says how far they agree.

        That of a released prior is shorter than R, by as much as its noise makes it unsure.
        """
        return frozen(self.crowd.mean)

    @property
    def resultant_length(self) -> float:
        """Length R of the mean: 1 where all directions agree, 0 where they cancel out.

        That of a released prior is a guess, which large noise makes 0 or 1: see `trusted_length`.
        """
        return float(self.crowd.resultant_length)

    @property
    def trusted_length(self) -> float:
        """How far directions surely agree: R, or less by the noise of a release (equation 31)."""
        return float(self.crowd.trusted_length)

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
        return self.crowd.concentration

    def concentration_mle(self) -> float:
        """Concentration kappa of maximum likelihood (equation 9), of the trusted length."""
        return self.crowd.concentration_mle()

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
        psi: Array = parts.identity * np.eye(self.n_features) + parts.along * np.outer(mu, mu)
        return psi

    @cached_property
    def neighbour_correlation(self) -> Array | None:
        """Correlation of samples of a class that follow each other, as far as it matters."""
        return None if self.autocorrelation is None else cut_off(self.autocorrelation)

    @cached_property
    def within_spectrum(self) -> Spectrum | None:
        """Eigenvectors of the average covariance within the classes, if it was kept.

        If it lacks full rank, and so few tasks do not show that features are tied, it is shrunk
        (equation 2) as if every task had given one degree of freedom.
        """
        if self.within_covariance is None:
            return None
        plain = from_dense(self.within_covariance)
        rank = int((plain.values > 0.0).sum())
        if rank == self.n_features or rank < self.n_tasks:
            return plain
        trace, square = plain.values.sum(), (plain.values**2).sum()
        weight = oas(trace, square, self.n_features, float(self.n_tasks))
        return plain.shrunk(weight, weight * trace / self.n_features)

    # -- sharing ----------------------------------------------------------------------------

    def released(
        self,
        epsilon: float,
        delta: float,
        ledger: Ledger | str | os.PathLike[str] | None = None,
    ) -> TaskPrior:
        """Differentially private copy: replacing any one person hardly changes what it may be.

        OpenDP adds normal noise to the sums (``docs/sharing.md``). Sessions of one group are one
        person, and the copy counts people. It knows its noise and trusts itself less; averages and
        single directions, which have no bound, are left out, and a prior from
        :meth:`from_summary`, which one task can move too far, is refused. Enables OpenDP's
        "contrib" features, for the whole process.

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
            A prior with a `release`, which can be neither merged, updated nor released again.
        """
        refuse_person(self)
        refuse_unbounded(self)
        epsilon, delta = check_budget(epsilon, delta)
        if self.scale_learnt:
            warnings.warn(
                "The feature scale was learnt from these tasks, so that the guarantee does not "
                "cover it. Build the prior with a scale that was fixed beforehand.",
                UserWarning,
                stacklevel=2,
            )

        def draw() -> TaskPrior:
            return type(self)(**released_fields(self, epsilon, delta))

        if ledger is None:
            warnings.warn(
                "No ledger counts this release. Pass ledger=PATH, one file for each population.",
                UncountedReleaseWarning,
                stacklevel=2,
            )
            return draw()
        book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        return book.charge(epsilon, delta, draw)

    def annotated(self, **about: str) -> Self:
        """The same prior with more said about it, for its card and for whoever loads it.

        Parameters
        ----------
        **about : str
            Text by key: `made_by`, `units` and `date` have their places in the card, other keys
            follow.

        Returns
        -------
        TaskPrior
            A prior with the same numbers.
        """
        return replace(self, about={**self.about, **about})

    def card_data(self) -> dict[str, Any]:
        """What the card says, in values that JSON can hold; numbers to four digits."""
        return data_of(self)

    def card(self) -> str:
        """Card in Markdown: what the prior holds, from whom, under which privacy."""
        return text_of(self.card_data())

    def summary(self) -> str:
        """Text for a person: how many tasks, how far they agree, in which features."""
        return describe(self)

    def __repr__(self) -> str:
        budget = "" if self.release is None else f", {self.release.budget}"
        return (
            f"TaskPrior(n_tasks={self.n_tasks}, n_features={self.n_features}, "
            f"resultant_length={self.resultant_length:.3f}{budget})"
        )

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same numbers, to the bit."""
        if not isinstance(other, TaskPrior):
            return NotImplemented
        for name, one in self.__dataclass_fields__.items():
            mine, theirs = getattr(self, name), getattr(other, name)
            if not one.compare:
                continue
            if (mine is None) != (theirs is None) or not np.array_equal(mine, theirs):
                return False
        return True

    def __hash__(self) -> int:
        # Adding zero makes one of both zeros.
        return hash((self.n_tasks, (self.direction_sum + 0.0).tobytes(), self.classes))

    # -- files ------------------------------------------------------------------------------

    def _file_fields(self) -> dict[str, Any]:
        """What a file holds of the prior."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        release = None if self.release is None else asdict(self.release)
        people = None if self.people is None else self.people.fields()
        said = {"about": dict(self.about), "release": release}
        recipe = None if self.recipe is None else self.recipe.to_dict()
        sessions = None if self.sessions is None else self.sessions.fields()
        parts: dict[str, Any] = said | {"people": people, "recipe": recipe}
        parts |= {"sessions": sessions, "builds": sorted(self.builds)}
        return fields | parts | part_fields(self) | cards_of(self)

    @classmethod
    def _of_file_fields(cls, fields: dict[str, Any]) -> Self:
        """Prior from what a file holds, every number of it checked."""
        if not isinstance(fields, dict):
            raise TypeError(f"its fields must be an object; got {type(fields).__name__}.")
        known: dict[str, Any] = {name: fields.get(name) for name in cls.__dataclass_fields__}
        known["builds"] = fields["builds"]
        needed = {name: fields[name] for name in ("direction_sum", "feature_scale")}
        said = fields.get("recipe")
        recipe = None if said is None else Recipe.from_dict(said)
        parts = {"class_means": None, "replay": None, "people": None, "sessions": None}
        prior = cls(**known | needed | parts | {"recipe": recipe})
        for name in ("outer_sum", "within_covariance"):
            matrix = getattr(prior, name)
            if matrix is not None:
                check_covariance(name, matrix, prior.n_features)
                check_spectrum(name, np.linalg.eigvalsh(matrix))
        found = parts_of_file(fields, prior.n_features, prior.n_tasks)
        counted = fields.get("people")
        if counted is not None:
            found["people"] = People.of_file(counted, prior.n_features, prior.n_tasks)
        apart = fields.get("sessions")
        if apart is not None:
            found["sessions"] = Sessions.of_file(apart, prior.n_features, prior.n_tasks)
        return replace(prior, **found)


def refuse_person(*priors: TaskPrior) -> None:
    """Refuse priors that were made for one person."""
    for prior in priors:
        if prior.class_means is not None and prior.class_means.person is not None:
            raise ValueError(
                "This prior was made for one person by for_person, and knows their earlier "
                "sessions: it can be neither merged, updated, released nor made for a person "
                "again. Take the crowd's prior, and give for_person all sessions at once."
            )


def check_belonging(directions: Array, direction_sum: Array, slack: float) -> None:
    """Refuse single directions that are not of unit length, or whose sum is another."""
    check_directions(directions, direction_sum.size)
    if np.abs(directions.sum(0) - direction_sum).max() > slack:
        raise ValueError(
            "directions do not add up to direction_sum. Give directions=None with sums that are "
            "not theirs."
        )


def part_fields(prior: Any) -> dict[str, Any]:
    """What a file holds of class means and replay."""
    records = None
    if prior.replay is not None:
        records = {verb: one.sums for verb, one in prior.replay.items()}
    means = None if prior.class_means is None else prior.class_means.fields()
    return {"class_means": means, "replay": records}


def parts_of_file(fields: dict[str, Any], n_features: int, n_tasks: int) -> dict[str, Any]:
    """Class means and replay from what a file holds, every number of them checked."""
    means, records = fields.get("class_means"), fields.get("replay")
    if records is not None and not isinstance(records, dict):
        raise TypeError(f"replay must be an object; got {type(records).__name__}.")
    return {
        "class_means": None if means is None else ClassMeans.of_file(means, n_features, n_tasks),
        "replay": None
        if records is None
        else {verb: Replay(check_finite("replay", sums, 3)) for verb, sums in records.items()},
    }


def new_build() -> frozenset[str]:
    """Random identifier of one build."""
    return frozenset([secrets.token_hex(8)])


def _checked_builds(builds: Any) -> frozenset[str]:
    """Identifiers of builds; one at least."""
    known = frozenset(builds)
    if not known or not all(isinstance(one, str) for one in known):
        raise ValueError(f"builds must be identifiers of builds; got {builds!r}.")
    return known


def _check_class_names(names: Any, classes: tuple[Any, Any] | None) -> tuple[str, str] | None:
    """What people read instead of two classes."""
    if names is None:
        return None
    known = tuple(names)
    if len(known) != 2 or classes is None or not all(isinstance(one, str) for one in known):
        raise ValueError(f"class_names must be the names of the two classes; got {names!r}.")
    check_class_names(dict(zip(classes, known, strict=True)))
    return known


def _of_directions(records: Mapping[str, Replay] | None) -> dict[str, Replay] | None:
    """Records of the blends that need no class means."""
    if records is None:
        return None
    return {verb: one for verb, one in records.items() if verb in PAIR_VERBS} or None


def _say_given_up(mine: TaskPrior, theirs: TaskPrior) -> None:
    """Warn of what only one of two priors has, and their sum can therefore not keep."""
    parts = {"class_means": "class means", "replay": "what forecasts were worth (replay)"}
    lost = [
        text
        for part, text in parts.items()
        if (getattr(mine, part) is None) != (getattr(theirs, part) is None)
    ]
    if lost:
        warnings.warn(
            f"Only one of the two priors holds {' and '.join(lost)}: the merged prior does without."
            " Build both with TaskPrior.from_tasks or `crossfade prior build` to keep it.",
            MissingPartWarning,
            stacklevel=3,
        )


def _both_sessions(mine: Sessions | None, theirs: Sessions | None) -> Sessions | None:
    """How far apart sessions are in two priors; nobody came twice where there is none."""
    return mine or theirs if mine is None or theirs is None else mine + theirs


def both_means(mine: ClassMeans | None, theirs: ClassMeans | None) -> ClassMeans | None:
    """Sums of class means of two priors, if both keep them."""
    return None if mine is None or theirs is None else mine + theirs


def both_records(
    mine: Mapping[str, Replay] | None, theirs: Mapping[str, Replay] | None
) -> dict[str, Replay] | None:
    """Records of two priors for the blends of which both have one."""
    if mine is None or theirs is None:
        return None
    return {verb: one + theirs[verb] for verb, one in mine.items() if verb in theirs} or None


def joined(mine: Array | None, theirs: Array | None) -> Array | None:
    """Single directions of two priors, if both keep them."""
    return None if mine is None or theirs is None else np.concatenate([mine, theirs])


def frozen(array: Array) -> Array:
    """The same array, no longer writable."""
    array.flags.writeable = False
    return array

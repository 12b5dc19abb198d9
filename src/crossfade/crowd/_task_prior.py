"""Prior of many tasks: sums over people, without any row of their data."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from crossfade._validate import (
    check_choice,
    check_directions,
    check_flag,
    check_names,
    check_scale,
    check_type,
)
from crossfade.crowd._rehearsal import rehearsal
from crossfade.exceptions import PriorMismatchError, UncountedReleaseWarning
from crossfade.fisher import ClassMoments, FisherDiscriminant, TaskMoments
from crossfade.prior import (
    Directions,
    Ledger,
    Origin,
    PriorSums,
    Space,
    check_labels,
    learn,
    misfits,
    moments_of_tasks,
    noisy_sums,
)
from crossfade.tasks import Task, TaskSet


@dataclass(frozen=True, eq=False, repr=False)
class TaskPrior(PriorSums):
    """Prior knowledge about a new task from many earlier ones: sums over people, nothing else.

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
            Largest length of a person's class means, in units of the feature scale. Longer ones are
            shortened, so that :meth:`released` can protect class means too. Choose it beforehand,
            not from these tasks. Sessions of one group then count as one person.

        Returns
        -------
        TaskPrior
            The prior; it holds no row of the tasks' data.
        """
        moments, known = moments_of_tasks(tasks)
        return cls.from_moments(
            moments,
            shrinkage=_shrinkage_of(discriminant),
            feature_scale=feature_scale,
            isotropic=isotropic,
            rehearse=rehearse,
            centred_per_person=centred_per_person,
            mean_norm_bound=mean_norm_bound,
            **known,
        )

    @classmethod
    def from_moments(cls, moments: TaskMoments, *, rehearse: bool = True, **options: Any) -> Self:
        """Prior from the moments of tasks: ``moments[groups != group]`` leaves one person out.

        Parameters
        ----------
        moments : TaskMoments
            Moments of tasks, with their windows in the order of time.
        rehearse : bool, default=True
            As in :meth:`from_tasks`.
        **options : optional
            Those of :meth:`from_tasks`; `shrinkage` of each task's covariance, `groups` of tasks
            that are sessions of one person, `classes` and `feature_names`.

        Returns
        -------
        TaskPrior
            The prior, equal to that of :meth:`from_tasks`.
        """
        for name in options:
            check_choice("An option of from_moments", name, tuple(learn.__kwdefaults__ or ()))
        check_flag("rehearse", rehearse)
        prior = cls(*learn(moments, **options))
        if not rehearse or options.get("isotropic"):
            return prior
        known = {name: options[name] for name in ("shrinkage", "groups") if name in options}
        return prior.rehearsed(moments, **known)

    def rehearsed(
        self,
        moments: TaskMoments,
        kinds: Sequence[str] | None = None,
        *,
        shrinkage: str | float | None = "oas",
        groups: Sequence[str | None] | None = None,
    ) -> Self:
        """The same prior with a rehearsal of its tasks: how accurate forecasts turn out.

        Parameters
        ----------
        moments : TaskMoments
            Moments of the tasks of this prior.
        kinds : sequence of str or None, default=None
            Kinds of blends, such as "posterior"; None is all that the prior allows.
        shrinkage, groups : optional
            As in :meth:`from_moments`.

        Returns
        -------
        TaskPrior
            A prior with forecast records.
        """
        records = rehearsal(moments, self.space, self.sums, kinds, shrinkage, groups)
        named = {f"forecast_records.{kind}": one for kind, one in records.items()}
        return replace(self, sums={**self.sums, **named})

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
        check_flag("isotropic", isotropic)
        directions = check_directions(projections, normalize=normalize)
        space = _space_of(directions.shape[1], feature_scale, feature_names, classes)
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
        directions = Directions.of_summary(mu, psi, n_tasks, form)
        space = _space_of(directions.direction.size, feature_scale, feature_names, classes)
        return cls(space, {"directions": directions}, Origin(summarised=True))

    def update(self, projections: ArrayLike, *, normalize: bool = False) -> Self:
        """Prior with extra directions; all other sums are dropped.

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
        return replace(self, sums={"directions": both}, origin=self.origin.longer())

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
            A prior for this person only. It can be neither added, updated nor released.

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
        tasks = TaskSet([earlier] if isinstance(earlier, Task) else earlier)
        for task in tasks:
            wrong = misfits(self.space, task)
            if wrong:
                raise PriorMismatchError(f"{task!r} does not fit the prior. {' '.join(wrong)}")
        classes = np.array(tasks[0].classes if tasks and self.classes is None else self.classes)
        return self.for_moments(
            [
                ClassMoments.of(
                    np.asarray(task.X), np.searchsorted(classes, task.y), n_classes=len(classes)
                )
                for task in tasks
            ]
        )

    def released(
        self, epsilon: float, delta: float, ledger: Ledger | str | os.PathLike[str] | None = None
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
            budget is refused before noise is drawn. None warns that the release is not counted.

        Returns
        -------
        TaskPrior
            A prior with a `release`, which can be neither added, updated nor released again.
        """
        self._refuse_special()
        if self.origin.summarised or "directions" not in self.sums:
            raise ValueError(
                "Noise covers sums of directions only. A prior from from_summary, or of more "
                "classes than two, cannot be released."
            )
        if self.origin.scale_learnt:
            warnings.warn(
                "The feature scale was learnt from these tasks, so that the guarantee does not "
                "cover it. Build the prior with a scale that was fixed beforehand.",
                UserWarning,
                stacklevel=2,
            )

        def draw() -> TaskPrior:
            sums, noise = noisy_sums(self.sums, self.space.mean_norm_bound, epsilon, delta)
            space = self.space
            if "class_means" not in sums:
                # One person can change whether all features are centred.
                space = replace(space, centred_per_person=False)
            origin = self.origin.released(epsilon, delta, noise)
            return replace(self, space=space, sums=sums, origin=origin)

        if ledger is None:
            warnings.warn(
                "No ledger counts this release. Pass ledger=PATH, one file for each population.",
                UncountedReleaseWarning,
                stacklevel=2,
            )
            return draw()
        book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        return book.charge(epsilon, delta, draw)


def _shrinkage_of(discriminant: FisherDiscriminant | None) -> str | float | None:
    """How a discriminant shrinks, checked; None is ours."""
    if discriminant is None:
        return "oas"
    check_type("discriminant", discriminant, FisherDiscriminant, "a FisherDiscriminant")
    discriminant._validate_params()
    return discriminant.shrinkage


def _space_of(
    d: int,
    feature_scale: ArrayLike | None,
    feature_names: Sequence[str] | None,
    classes: Sequence[Any] | None,
) -> Space:
    """Space of directions of two classes."""
    labels = check_labels(classes)
    if labels is not None and len(labels) != 2:
        raise ValueError(f"Directions need two classes; got {len(labels)}.")
    scale = check_scale(feature_scale, d).copy()
    return Space(scale, check_names(feature_names, d), labels)

"""The hierarchical blend as an estimator: from no label on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._typing import Array
from crossfade.blend._classifier import BlendClassifier
from crossfade.blend._fit import Fit, warn_without_means
from crossfade.blend._hierarchical import Hierarchical, hierarchical
from crossfade.blend._many_means import ManyFit, ManyMeans, PairsFit, moments_of_none
from crossfade.blend._posterior import posterior
from crossfade.blend._verb import Blend
from crossfade.exceptions import NoDirectionError
from crossfade.fisher import ClassMoments, Direction
from crossfade.prior import Crowd, TaskPrior


class HierarchicalBlendClassifier(ManyMeans, BlendClassifier):
    r"""Beyond the paper: a crowd that knows class means, not only directions.

    The class means of the labelled samples are noisy observations of the person's own, and the
    crowd is a normal law over these:

    .. math:: w = (\Sigma + \bar P)^{-1} h^*, \quad \text{threshold } w^T c^*

    with c* and h* the posterior mean of the middle of the classes and of half their gap, and P what
    is still unknown. Before the first label the crowd answers alone; samples without a label tell
    where the middle lies.

    Parameters
    ----------
    prior : TaskPrior, MulticlassPrior or None, default=None
        What the crowd knows, with class means, as :meth:`TaskPrior.from_tasks` makes it. Without
        these it is the posterior blend, with a warning; None is plain shrinkage-Fisher with
        ``alpha_ == 1.0``. With a :class:`MulticlassPrior` it tells all its classes apart.
    protect : bool, default=True
        Whether a person may be a stranger to the crowd: somebody whose classes lie elsewhere, or
        differ in another direction.
    on_missing_class : {"auto", "error", "prior"}, default="auto"
        What to do if not every class has a labelled sample: "error" refuses, "prior" uses the
        crowd's means, and "auto" does so where the prior has them.
    classes : pair of labels or None, default=None
        The target's labels in the order of the prior's classes, if they have other names.
    class_prior : pair of floats or None, default=None
        Probabilities of the two classes among new samples, in the order of `classes_`; None is
        equal. Others move the threshold and the forecast.
    in_a_row : bool, default=True
        Whether the labelled samples of a class follow each other in time, as in a calibration;
        False for samples from all over a session.

    Attributes
    ----------
    alpha_ : float
        Weight of the target in the contrast of the classes: 0 before the first label.
    means_ : ndarray of shape (n_classes, n_features)
        Posterior class means, in the user's units.
    member_ : float
        Probability that the person is one of the crowd.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; of two the second is positive.
    coef_, intercept_ : ndarray of shape (1, n_features) and (1,)
        The rule in the user's units; with K > 2 classes (K, n_features) and (K,), one score each,
        or one for each pair if the prior has no class means.
    projection_ : ndarray of shape (n_features,)
        Its unit direction, in scaled units.
    target_projection_, source_projection_ : ndarray of shape (n_features,) or None
        Unit directions of the person alone and of the crowd alone.
    midpoint_ : ndarray of shape (n_features,)
        Middle between the posterior class means.
    expected_accuracy_, expected_accuracy_error_ : float
        Forecast for new samples of this person, and its standard error; see
        :meth:`expected_accuracy_interval`.
    class_prior_ : ndarray of shape (2,)
        Probabilities of the classes.
    prior_ : TaskPrior or None
        The prior that was used.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if `X` had any.

    See Also
    --------
    PosteriorBlendClassifier : A crowd of directions alone, for those who share less.

    References
    ----------
    Helm, de Silva, Vogelstein, Priebe and Yang (2024), Approximately optimal domain adaptation with
    Fisher's linear discriminant. Mathematics 12(5), 746.

    Examples
    --------
    >>> from crossfade import HierarchicalBlendClassifier, TaskPrior, load_mental_math
    >>> people = load_mental_math()
    >>> newcomer, others = people[0], people[1:]
    >>> blend = HierarchicalBlendClassifier(TaskPrior.from_tasks(others)).start()
    >>> blend.predict(newcomer.X[:3])
    array([0, 0, 0])
    >>> _ = blend.partial_fit(newcomer.X[:4], newcomer.y[:4])
    >>> lower, upper = blend.expected_accuracy_interval(0.9)
    >>> 0.0 <= lower < blend.expected_accuracy_ < upper <= 1.0
    True
    """

    shrinkage: str | float | None = "oas"
    _many = True
    means_: Array
    member_: float
    prior_: Any
    _fit: Any

    def __init__(
        self,
        prior: TaskPrior | None = None,
        *,
        protect: bool = True,
        on_missing_class: str = "auto",
        classes: Any = None,
        class_prior: ArrayLike | None = None,
        in_a_row: bool = True,
    ) -> None:
        self.prior = prior
        self.protect = protect
        self.on_missing_class = on_missing_class
        self.classes = classes
        self.class_prior = class_prior
        self.in_a_row = in_a_row

    def _check_prior(self) -> Any:
        prior: Any = self.prior
        if not hasattr(prior, "pairs") or isinstance(prior, type):
            return super()._check_prior()
        if len(prior.classes) > 2:
            return self._check_many(prior)
        # Two classes are one pair, whose class means are those of all.
        [pair] = prior.priors.values()
        return replace(pair, class_means=prior.class_means, replay=prior.replay)

    def _learn(
        self,
        rows: Array,
        labels: NDArray[Any],
        weight: Array | None,
        prior: Any,
        *,
        may_wait: bool,
    ) -> None:
        if hasattr(prior, "pairs"):
            self._check_parameters(None)
            self._learn_many(rows, labels, weight, prior)
        else:
            super()._learn(rows, labels, weight, prior, may_wait=may_wait)

    def _conclude(
        self,
        moments: ClassMoments,
        seen: NDArray[Any],
        names: NDArray[Any] | None,
        prior: Any,
        *,
        may_wait: bool = False,
    ) -> None:
        if hasattr(prior, "pairs"):
            known = len(moments.counts) == len(prior.classes)
            self._conclude_many(moments if known else moments_of_none(prior), prior)
        else:
            super()._conclude(moments, seen, names, prior, may_wait=may_wait)

    def _scores(self, rows: Array) -> Array:
        if not isinstance(self._fit, PairsFit):
            return super()._scores(rows)
        return self._fit.log_chances(rows)

    def _log_odds(self, scores: Array) -> Array:
        if isinstance(self._fit, PairsFit):
            return scores
        if not isinstance(self._fit, ManyFit):
            return super()._log_odds(scores)
        odds: Array = float(self._fit.temperature) * scores
        return odds

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = len(getattr(self.prior, "classes", None) or ()) > 2
        return tags

    def _check_own_parameters(self, prior: TaskPrior | None) -> None:
        if not isinstance(self.protect, (bool, np.bool_)):
            raise TypeError(f"protect must be True or False; got {self.protect!r}.")

    def _played(self, prior: TaskPrior | None) -> str | None:
        if prior is not None and prior.class_means is None:
            # Without class means it is the posterior blend.
            return "posterior"
        return "hierarchical" if self.protect else None

    def _posterior_means(self, moments: ClassMoments, prior: TaskPrior) -> Hierarchical:
        assert prior.class_means is not None
        return hierarchical(
            moments,
            prior.class_means.population,
            prior.feature_scale,
            unlabelled=self.__dict__.get("_unlabelled"),
            in_a_row=bool(self.in_a_row),
            protect=bool(self.protect),
        )

    def _fit_both(self, moments: ClassMoments, prior: TaskPrior | None) -> Fit:
        if prior is None:
            return super()._fit_both(moments, prior)
        if prior.class_means is None:
            warn_without_means(
                "TaskPrior.from_tasks, and with clip if it is to be released: what has no bound is "
                "left out of a release",
                7,
            )
            return super()._fit_both(moments, prior)
        return self._by_means(moments, prior, self._direction(moments, prior))

    def _fit_by_means(self, moments: ClassMoments, prior: TaskPrior) -> Fit:
        return self._by_means(moments, prior, None)

    def _by_means(self, moments: ClassMoments, prior: TaskPrior, person: Direction | None) -> Fit:
        means = self._posterior_means(moments, prior)
        if not means.omega.any():
            raise NoDirectionError(
                "Neither the labelled samples nor the crowd know a difference between the classes. "
                "Check the features, or give more samples."
            )
        return Fit(
            None if person is None or not person.length else person,
            Blend(means.omega, np.zeros(()), means.alpha),
            means.midpoint * prior.feature_scale,
            prior.feature_scale,
            moments.counts,
            prior,
            "hierarchical",
            means,
            played=self._played(prior) is not None,
            hints="_unlabelled" in self.__dict__,
        )

    def _blend(self, person: Direction, prior: TaskPrior) -> Blend:
        # Only where there are no class means.
        return self._blend_with(person, prior.crowd)

    def _blend_with(self, person: Direction, crowd: Crowd) -> Blend:
        return posterior(person, crowd)

    def _batched(self, crowd: Crowd | None) -> bool:
        return False

    def _set_blend(self, blend: Blend) -> None:
        means = self._fit.means
        if means is not None:
            self.means_ = means.means * self._fit.scale
            self.member_ = float(means.member)
        elif self._fit.person is not None:
            self.means_, self.member_ = self._fit.person.means, 1.0

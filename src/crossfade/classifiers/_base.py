"""What the three estimators share: they check input, ask `fit_rule`, and show what it found."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from crossfade._typing import Array
from crossfade._validate import refuse_size
from crossfade.blend import Rule, fit_rule
from crossfade.classifiers._labels import (
    check_names,
    labels_that_count,
    missing_labels,
    places_among,
    refuse_missing,
    refuse_missing_class,
    second_of,
)
from crossfade.classifiers._skada import TakesDomains
from crossfade.classifiers._sources import Rows, with_sources
from crossfade.crowd import TaskPrior
from crossfade.exceptions import ContradictionWarning
from crossfade.fisher import ClassMoments, check_both_classes, check_weight
from crossfade.prior import warn_of_units

#: Most unlabelled samples that are kept, the last ones.
MOST_UNLABELLED = 500


class Seen(NamedTuple):
    """What an estimator has seen of its target."""

    names: NDArray[Any]  # (K,): labels in the order of the prior's classes
    moments: ClassMoments
    unlabelled: Array | None  # (m, d)
    given: Any  # the parameter `prior` at that time


class BlendClassifier(TakesDomains):
    """Base of the blends; a subclass names its kind of blend and the options of that."""

    kind: ClassVar[str]
    prior: Any
    missing_class: str
    classes: ArrayLike | None
    class_prior: ArrayLike | None
    #: The paper takes samples for independent, and its blend has no such parameter.
    consecutive: bool = True

    rule_: Rule
    prior_: Any
    _seen: Seen | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "prior": [TaskPrior, None],
        "missing_class": [StrOptions({"crowd", "error"})],
        "classes": ["array-like", None],
        "class_prior": ["array-like", None],
    }

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        subjects: ArrayLike | None = None,
        X_target_labeled: ArrayLike | None = None,
        y_target_labeled: ArrayLike | None = None,
        X_target_unlabeled: ArrayLike | None = None,
    ) -> Self:
        """Learn the blend from a few labelled samples of the target.

        Source data may come in the same call: with `sample_domain`, `groups` or `subjects` the
        samples of other people become a prior, which is added to `prior` if there is one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.
        y : array-like of shape (n_samples,)
            Labels.
        sample_domain : array-like of shape (n_samples,) or None, default=None
            Origin of each sample by skada's convention: a positive domain is a source, the negative
            one the target. A target label of -1 among non-negative ones means unlabelled.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How often each sample counts.
        groups : array-like of shape (n_samples,) or None, default=None
            Person of each sample; the person of the last sample is the target.
        subjects : array-like of shape (n_samples,) or None, default=None
            Person of each sample by MOABB's convention: all of `X` are sources, and the target
            comes in the next three.
        X_target_labeled : array-like of shape (n_labelled, n_features) or None, default=None
            Labelled samples of the target.
        y_target_labeled : array-like of shape (n_labelled,) or None, default=None
            Their labels.
        X_target_unlabeled : array-like of shape (n_unlabelled, n_features) or None, default=None
            Samples of the target without a label.

        Returns
        -------
        self
            The fitted estimator.
        """
        refuse_missing(y)
        refuse_missing(y_target_labeled)
        people = {"sample_domain": sample_domain, "groups": groups, "subjects": subjects}
        beside = (X_target_labeled, y_target_labeled, X_target_unlabeled)
        prior, unlabelled = self.prior, None
        self._refuse_other_columns(X, prior)
        rows = Rows(*self._check_fit_input(X, y, sample_weight))
        if any(part is not None for part in (*people.values(), *beside)):
            rows, unlabelled, prior = with_sources(self, rows, prior, people, beside)
        return self._learn(None, rows, unlabelled, prior)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from further samples: the result is that of one `fit` on all samples so far.

        Only the moments of the labelled samples are kept, and the last 500 samples without a label.
        A call costs the same however many samples there were. Samples that are refused leave the
        rule as it was.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features of the new samples.
        y : array-like of shape (n_samples,) or None
            Their labels; None, or None, NaN or a mask instead of a label, for samples without one.
        classes : array-like of labels or None, default=None
            All labels, if the first call brings only some of them and the prior does not know.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How often each new sample counts.

        Returns
        -------
        self
            The estimator.
        """
        # Source data of an earlier fit is kept, unless the parameter was changed since.
        same = self._seen is not None and self._seen.given is self.prior
        prior = self.prior_ if same else self.prior
        self._refuse_other_columns(X, prior)
        reset = self._seen is None or not self._seen.moments.largest.any()
        hidden = missing_labels(y)
        if y is not None and hidden is None:
            rows = Rows(*self._check_fit_input(X, y, sample_weight, reset=reset))
            return self._learn(self._seen, rows, None, prior, may_wait=True, named=classes)
        whole = self._validated(X, order="C", reset=reset)
        refuse_size(np.abs(whole).max(0))
        hidden = np.ones(len(whole), bool) if hidden is None else hidden
        if len(hidden) != len(whole):
            raise ValueError(f"y must have one label, None or NaN for each of {len(whole)} rows.")
        weight = None if sample_weight is None else check_weight(sample_weight, whole)[~hidden]
        rows = Rows(whole[~hidden], labels_that_count(y, hidden), weight)
        return self._learn(self._seen, rows, whole[hidden], prior, may_wait=True, named=classes)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def start(self) -> Self:
        """Predict at once, before the first label: the crowd's rule for a new person.

        Needs a prior with class means. `partial_fit` goes on from here.

        Returns
        -------
        self
            The estimator.
        """
        if self.prior is None:
            raise ValueError("start needs a prior: without labels only earlier people can answer.")
        self._learn(
            None, Rows(np.empty((0, self.prior.n_features)), np.array([])), None, self.prior
        )
        self.n_features_in_ = self.prior.n_features
        self.__dict__.pop("feature_names_in_", None)
        return self

    @property
    def alpha_(self) -> float:
        """Weight of the target: 1 is the person alone, 0 the crowd alone."""
        return float(self.rule_.alpha)

    @property
    def means_(self) -> Array:
        """Class means (n_classes, n_features) as the rule has them, in the user's units."""
        assert self.rule_.means is not None
        return self.rule_.means

    @property
    def midpoint_(self) -> Array:
        """Middle (n_features,) between the class means, in the user's units."""
        return np.asarray(self.means_.mean(0))

    @property
    def class_prior_(self) -> Array:
        """Probabilities (n_classes,) of the classes among new samples."""
        return self.rule_.class_prior

    @property
    def projection_(self) -> Array:  # type: ignore[override]
        """Unit direction (n_features,) of a rule of two classes, in scaled units."""
        direction = self.rule_.coef[0] * self.rule_.feature_scale
        return np.asarray(direction / np.linalg.vector_norm(direction))

    @property
    def expected_accuracy_(self) -> float:
        """Forecast for new samples of this person, in the proportions of `class_prior_`."""
        return float(self.rule_.expected_accuracy)

    @property
    def expected_accuracy_error_(self) -> float:
        """Standard error of the forecast."""
        return float(self.rule_.expected_accuracy_error)

    def expected_accuracy_interval(self, level: float = 0.9) -> tuple[float, float]:
        """Interval that holds this person's accuracy on new samples as often as it says.

        Parameters
        ----------
        level : float, default=0.9
            Probability of the interval.

        Returns
        -------
        lower, upper : float
            Its ends.
        """
        check_is_fitted(self, "coef_", msg=self._not_fitted())
        lower, upper = self.rule_.interval(level)
        return float(lower), float(upper)

    # -- from samples to a rule -------------------------------------------------------------

    def _detail(self, name: str) -> Any:
        """What only this kind of blend knows, where its rule was blended at all."""
        if name not in self.rule_.details:
            raise AttributeError(f"This rule was not blended: it has no {name}.")
        return self.rule_.details[name]

    def _refuse_other_columns(self, X: Any, prior: Any) -> None:
        """Refuse other features than the prior's before anything is learnt of them."""
        if prior is None:
            return
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        if len(shape) == 2 and shape[1] != prior.n_features:
            self._refuse_other_features(prior, shape[1])
        self._compared(X, prior)

    def _known_columns(self, X: ArrayLike) -> ArrayLike:
        # Where no sample has named the features, the prior may have.
        return self._compared(X, self.__dict__.get("prior_"))

    def _options(self) -> dict[str, Any]:
        """Options of this kind of blend that are not the usual ones."""
        return {}

    def _learn(
        self,
        seen: Seen | None,
        rows: Rows,
        unlabelled: Array | None,
        prior: Any,
        *,
        may_wait: bool = False,
        named: ArrayLike | None = None,
    ) -> Self:
        """Add samples to those seen so far and fit the rule, or wait for a class to come."""
        for part in (rows.X, unlabelled):
            if part is not None:
                self._refuse_other_rows(part, prior)
        seen = self._added(seen, rows, unlabelled, prior, named)
        law, counts = None if prior is None else prior.law, seen.moments.counts
        if seen.unlabelled is not None and (law is None or law.class_means is None):
            raise ValueError(
                "Samples without a label need a prior with class means, as TaskPrior.from_tasks "
                "makes it. Give one, or leave these samples out."
            )
        stands_in = self.missing_class == "crowd" or not counts.any()
        crowd = law is not None and law.class_means is not None and stands_in
        answers = counts.all() or (crowd and len(seen.names) == len(counts))
        if not answers and not (may_wait and len(seen.names) > 1):
            refuse_missing_class(seen.names, counts, may_wait=may_wait)
        if counts.all():
            check_both_classes(counts, seen.names.tolist())
        rule = self._rule_of(seen, law) if answers else None
        self._seen, self.prior_ = seen._replace(moments=seen.moments.rotated()), prior
        if rule is None:
            # The crowd's earlier answer is no rule of this person.
            for name in ("rule_", "coef_", "intercept_"):
                self.__dict__.pop(name, None)
            self.classes_ = np.sort(seen.names)
            return self
        self.rule_, self.classes_ = rule, rule.classes
        self.coef_, self.intercept_ = rule.coef, rule.intercept
        self._warn_of_units(seen)
        for message, category in self._remarks():
            warnings.warn(message, category, stacklevel=4)
        return self

    def _rule_of(self, seen: Seen, law: Any) -> Rule:
        """Rule for what was seen, its classes sorted."""
        rule = fit_rule(
            seen.moments,
            law,
            self.kind,
            unlabelled=seen.unlabelled,
            consecutive=bool(self.consecutive),
            class_prior=second_of(self.class_prior, seen.names),
            **self._options(),
        )
        return rule.reordered(seen.names)

    def _added(
        self,
        seen: Seen | None,
        rows: Rows,
        unlabelled: Array | None,
        prior: Any,
        named: ArrayLike | None,
    ) -> Seen:
        """All samples so far."""
        rows = rows.counted()
        if not len(rows.y) and seen is None and prior is None:
            raise ValueError("No sample counts: all weights are zero. Give samples that do count.")
        before = np.array([]) if seen is None else seen.names[seen.moments.counts > 0.0]
        names = self._names(seen, rows.y, prior, named)
        check_names(names, prior)
        # Until a second class is known, its place stays empty.
        size = max(len(names), 2)
        moments = _moments_of(rows, names, size)
        if seen is not None:
            old = np.flatnonzero(seen.moments.counts > 0.0)
            moments = seen.moments.placed(old, places_among(names, before), size) + moments
        so_far = None if seen is None else seen.unlabelled
        parts = [one for one in (so_far, unlabelled) if one is not None and len(one)]
        kept = np.concatenate(parts)[-MOST_UNLABELLED:] if parts else None
        return Seen(names, moments, kept, self.prior)

    def _names(
        self, seen: Seen | None, labels: NDArray[Any], prior: Any, named: ArrayLike | None
    ) -> NDArray[Any]:
        """Labels of all classes in the order of the prior's, as far as anybody knows them."""
        if self.classes is not None:
            names = np.asarray(self.classes)
            return names if self.prior is not None else np.sort(names)
        if prior is not None and prior.classes is not None:
            return np.array(prior.classes)
        if named is not None:
            return np.unique(np.asarray(named))
        if seen is not None and len(seen.names) > 1:
            return seen.names
        so_far = [] if seen is None else seen.names.tolist()
        return np.array(sorted({*so_far, *labels.tolist()}))

    def _warn_of_units(self, seen: Seen) -> None:
        """Warn of samples in other units than the prior's."""
        units = None if self.prior_ is None else self.prior_.units
        mixed = seen.unlabelled is not None
        if units is None or not (seen.moments.counts.any() or mixed):
            return
        moments = seen.moments
        if seen.unlabelled is not None:
            label = np.zeros(len(seen.unlabelled), np.intp)
            moments = moments.beside(ClassMoments.of(seen.unlabelled, label, n_classes=1))
        reasons = units.misfits(
            moments, self.prior_.feature_names, in_a_row=bool(self.consecutive), mixed=mixed
        )
        if reasons:
            warn_of_units(self.prior_, reasons, stacklevel=6)

    def _remarks(self) -> Iterator[tuple[str, type[Warning]]]:
        """What to warn of once the rule is known."""
        if self.rule_.contradicts and self.rule_.expected_accuracy < 0.5:
            yield (
                "The labelled samples contradict the crowd: their classes lie the other way round, "
                "so that the forecast is below chance. Check that the labels mean the same.",
                ContradictionWarning,
            )


def _moments_of(rows: Rows, names: NDArray[Any], n_classes: int) -> ClassMoments:
    """Moments of labelled samples, if there are any."""
    if len(rows.y):
        places = places_among(names, rows.y)
        return ClassMoments.of(rows.X, places, rows.weight, n_classes=n_classes)
    d = rows.X.shape[1]
    means, scatter = np.zeros((n_classes, d)), np.zeros((0, d))
    return ClassMoments(np.zeros(n_classes), means, scatter, True, np.zeros(d))

"""Base of the three estimators: they check input and ask `fit_rule` for a rule."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import StrOptions

from crossfade._typing import Array, Places
from crossfade._validate import as_labels, classes_of, is_missing, refuse_size
from crossfade.blend import Rule, fit_rule
from crossfade.classifiers._fitted import FittedBlend
from crossfade.classifiers._sources import Rows, with_sources
from crossfade.crowd import TaskPrior
from crossfade.exceptions import ContradictionWarning, PriorMismatchError
from crossfade.fisher import ClassMoments, check_both_classes, check_weight, encode
from crossfade.prior import warn_of_units
from crossfade.risk import check_class_prior

#: Most unlabelled samples that are kept, the last ones.
MOST_UNLABELLED = 500


class Seen(NamedTuple):
    """Samples of the target that an estimator has seen."""

    names: NDArray[Any]  # (K,): labels in the order of the prior's classes
    moments: ClassMoments
    unlabelled: Array | None  # (m, d)
    given: Any  # the parameter `prior` at that time


class BlendClassifier(FittedBlend):
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
        self._validate_params()
        _refuse_missing(y)
        _refuse_missing(y_target_labeled)
        # Samples that are refused may have other features than the rule of before.
        self._seen = None
        self._forget_rule()
        people = {"sample_domain": sample_domain, "groups": groups, "subjects": subjects}
        beside = (X_target_labeled, y_target_labeled, X_target_unlabeled)
        sources = [part for part in (*people.values(), *beside) if part is not None]
        prior, unlabelled = self.prior, None
        self._refuse_other_columns(X, None if prior is None else prior.space)
        rows = Rows(*self._check_fit_input(X, y, sample_weight))
        if sources:
            rows, unlabelled, prior = with_sources(self, rows, prior, people, beside)
        if prior is not None:
            self._refuse_other_rows(rows.X, prior.space)
        return self._learn(None, rows, unlabelled, prior)

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
        self._validate_params()
        # Source data of an earlier fit is kept, unless the parameter was changed since.
        same = self._seen is not None and self._seen.given is self.prior
        prior = self.prior_ if same else self.prior
        self._refuse_other_columns(X, None if prior is None else prior.space)
        reset = self._seen is None or not self._seen.moments.counts.any()
        hidden = _missing_labels(y)
        if y is not None and hidden is None:
            rows = Rows(*self._check_fit_input(X, y, sample_weight, reset=reset))
            self._refuse_other_rows(rows.X, None if prior is None else prior.space)
            return self._learn(self._seen, rows, None, prior, may_wait=True, named=classes)
        whole = self._validated(X, order="C", reset=reset)
        refuse_size(np.abs(whole).max(0))
        self._refuse_other_rows(whole, None if prior is None else prior.space)
        hidden = np.ones(len(whole), bool) if hidden is None else hidden
        if len(hidden) != len(whole):
            raise ValueError(f"y must have one label, None or NaN for each of {len(whole)} rows.")
        weight = None if sample_weight is None else check_weight(sample_weight, whole)[~hidden]
        rows = Rows(whole[~hidden], _labels_that_count(y, hidden), weight)
        return self._learn(self._seen, rows, whole[hidden], prior, may_wait=True, named=classes)

    def start(self) -> Self:
        """Predict at once, before the first label: the crowd's rule for a new person.

        Needs a prior with class means. `partial_fit` goes on from here.

        Returns
        -------
        self
            The estimator.
        """
        self._validate_params()
        if self.prior is None:
            raise ValueError("start needs a prior: without labels only earlier people can answer.")
        self._learn(
            None, Rows(np.empty((0, self.prior.n_features)), np.array([])), None, self.prior
        )
        self.n_features_in_ = self.prior.n_features
        self.__dict__.pop("feature_names_in_", None)
        return self

    # -- from samples to a rule -------------------------------------------------------------

    def _forget_rule(self) -> None:
        """Forget what was learnt of an earlier person."""
        for name in ("rule_", "coef_", "intercept_"):
            self.__dict__.pop(name, None)

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
        seen = self._added(seen, rows, unlabelled, prior, named)
        law, counts = None if prior is None else prior.law, seen.moments.counts
        if seen.unlabelled is not None and (law is None or law.class_means is None):
            raise ValueError(
                "Samples without a label need a prior with class means, as TaskPrior.from_tasks "
                "makes it. Give one, or leave these samples out."
            )
        answers = bool(counts.all())
        if answers and counts.sum() < 2.0:
            check_both_classes(counts, seen.names.tolist())
        if not answers and law is not None and law.class_means is not None:
            stands_in = self.missing_class == "crowd" or not counts.any()
            answers = stands_in and len(seen.names) == len(counts)
        if not answers and not (may_wait and len(seen.names) > 1):
            _refuse_missing_class(seen.names, counts, may_wait=may_wait)
        rule = self._rule_of(seen, law) if answers else None
        self._seen, self.prior_ = seen._replace(moments=seen.moments.rotated()), prior
        if rule is None:
            # The crowd's earlier rule is not this person's.
            self._forget_rule()
            self.classes_ = np.sort(seen.names)
            return self
        self.rule_, self.classes_ = rule, rule.classes
        self.coef_, self.intercept_ = rule.coef, rule.intercept
        self._warn_of_units(seen)
        for message, category in self._remarks():
            warnings.warn(message, category, stacklevel=3)
        return self

    def _rule_of(self, seen: Seen, law: Any) -> Rule:
        """Rule for what was seen, its classes sorted."""
        rule = fit_rule(
            seen.moments,
            law,
            self.kind,
            unlabelled=seen.unlabelled,
            consecutive=bool(self.consecutive),
            class_prior=_second_of(self.class_prior, seen.names),
            classes=seen.names,
            **self._options(),
        )
        in_order = bool((seen.names[:-1] < seen.names[1:]).all())
        return rule if in_order else rule.in_order()

    def _added(
        self,
        seen: Seen | None,
        rows: Rows,
        unlabelled: Array | None,
        prior: Any,
        named: ArrayLike | None,
    ) -> Seen:
        """All samples so far."""
        if rows.weight is not None:
            rows = rows.at(rows.weight > 0.0)
        if not len(rows.y) and seen is None and prior is None:
            raise ValueError("No labelled sample counts. Give some, or a prior with class means.")
        names = self._names(seen, rows.y, prior, named)
        _check_names(names, prior)
        # Until a second class is known, its place stays empty.
        size = max(len(names), 2)
        moments = _moments_of(rows, names, size)
        if seen is not None:
            before = seen.moments
            if seen.names.tolist() != names.tolist():
                old = np.flatnonzero(before.counts > 0.0)
                before = before.placed(old, places_among(names, seen.names[old]), size)
            moments = before + moments
        so_far = None if seen is None else seen.unlabelled
        parts = [one for one in (so_far, unlabelled) if one is not None and len(one)]
        kept = np.concatenate(parts)[-MOST_UNLABELLED:] if parts else None
        return Seen(names, moments, kept, self.prior)

    def _names(
        self, seen: Seen | None, labels: NDArray[Any], prior: Any, named: ArrayLike | None
    ) -> NDArray[Any]:
        """Labels of the known classes, in the order of the prior's."""
        if self.classes is not None:
            names = np.atleast_1d(as_labels(self.classes))
            known = classes_of(names)
            return names if self.prior is not None or len(known) < len(names) else known
        if prior is not None and prior.space.classes is not None:
            return np.array(prior.space.classes)
        if named is not None:
            return classes_of(np.atleast_1d(as_labels(named)))
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
            moments,
            self.prior_.space.feature_names,
            consecutive=bool(self.consecutive),
            mixed=mixed,
        )
        if reasons:
            warn_of_units(self.prior_, reasons, stacklevel=5)

    def _remarks(self) -> Iterator[tuple[str, type[Warning]]]:
        """Warnings about the rule."""
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
    return ClassMoments.empty(n_classes, rows.X.shape[1])


# -- labels ----------------------------------------------------------------------------------------


def _missing_labels(y: Any) -> NDArray[np.bool_] | None:
    """Which labels are None, NaN or masked; None if all are present, or `y` is None."""
    if y is None:
        return None
    labels = y if type(y) is np.ndarray else as_labels(y)
    masked = isinstance(y, np.ma.MaskedArray)
    kind = labels.dtype.kind
    if labels.ndim != 1 or not (masked or kind in "fO"):
        return None
    hidden = np.ma.getmaskarray(y) if masked else np.zeros(labels.shape, bool)
    if kind == "f":
        hidden = hidden | np.isnan(labels)
    elif kind == "O":
        hidden = hidden | np.array([is_missing(one) for one in labels.tolist()], bool)
    return hidden if hidden.any() else None


def _refuse_missing(y: Any) -> None:
    """Refuse missing labels where all are needed."""
    hidden = _missing_labels(y)
    if hidden is not None:
        raise ValueError(
            f"{hidden.sum()} of {hidden.size} labels are missing, and fit needs them all. Use "
            "partial_fit, which takes samples without a label, or leave these out."
        )


def _labels_that_count(y: Any, hidden: NDArray[np.bool_]) -> NDArray[Any]:
    """Labels that are not hidden."""
    if y is None:
        return np.array([])
    return np.array([one for one, no in zip(list(y), hidden, strict=True) if not no])


def _check_names(names: NDArray[Any], prior: Any) -> None:
    """Refuse names of classes that are not as many as the prior has, or not different."""
    wanted = 2 if prior is None else prior.law.n_classes
    if wanted == 2 and len(names) > 2:
        # Refused in scikit-learn's words.
        encode(names)
    if prior is not None and not len(names):
        raise ValueError("The classes are unknown. Pass classes=.")
    too_few = wanted > 2 and len(names) < wanted
    if too_few or len(names) > wanted or names.ndim > 1 or len(set(names.tolist())) < len(names):
        raise ValueError(f"classes must be {wanted} different labels; got {names.tolist()}.")


def _second_of(class_prior: ArrayLike | None, names: NDArray[Any]) -> float:
    """Probability of the second of `names`, for probabilities in the order of sorted labels."""
    if class_prior is None:
        return 0.5
    if len(names) > 2:
        raise ValueError("class_prior is for two classes; more count as equally likely.")
    second = check_class_prior(class_prior)
    return float(second if names[0] < names[1] else 1.0 - second)


def _refuse_missing_class(names: NDArray[Any], counts: Any, *, may_wait: bool) -> NoReturn:
    """Refuse samples that lack a class, if the crowd does not stand in."""
    seen = zip(names.tolist(), counts, strict=False)
    missing = " or ".join(f"class {name!r}" for name, count in seen if not count)
    named = " Or name all classes with partial_fit(..., classes=...)." if may_wait else ""
    raise ValueError(
        f"No labelled sample is of {missing or 'a second class'}. Label at least 1 sample of it, "
        f"or give a prior with class means and missing_class='crowd'.{named}"
    )


def places_among(names: NDArray[Any], labels: NDArray[Any]) -> Places:
    """Place of each label among the names of the classes; refuses a label of no class."""
    if not len(labels):
        return np.empty(0, np.intp)
    present, label = encode(labels, most=len(labels))
    known = {name: place for place, name in enumerate(names.tolist())}
    stranger = next((name for name in present.tolist() if name not in known), None)
    if stranger is not None:
        raise PriorMismatchError(
            f"The samples have class {stranger!r}, but the classes are {list(known)}. If only the "
            "names differ, pass classes= with the target's labels in the order of the prior's."
        )
    return np.array([known[name] for name in present.tolist()])[label]

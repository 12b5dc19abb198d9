"""Labelled samples and a prior in, a target and a forecast out: what both blends share."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._validate import check_choice
from crossfade.blend._domains import split_domains
from crossfade.blend._unlabelled import threshold_of
from crossfade.fisher._direction import Samples, Target, check_shrinkage, describe_target
from crossfade.fisher._linear import LinearRule, check_both_classes, encode
from crossfade.prior._mixture import MixturePrior, Prior
from crossfade.prior._multiclass import MulticlassPrior
from crossfade.prior._task_prior import TaskPrior
from crossfade.risk._forecast import Forecast, forecast
from crossfade.risk._proportions import check_class_prior, log_odds, proportion_of

Array = NDArray[np.float64]

MISSING_CLASS = ("error", "prior")


class BlendClassifier(LinearRule):
    """What both blends share: samples in, a target and its prior out, a forecast with the rule."""

    # Routed in pipelines and searches without touching scikit-learn's global setting.
    __metadata_request__fit: ClassVar = {"sample_domain": True}

    prior: Prior | None
    #: Only one of the blends has another kind to choose.
    weights: str = "average"
    shrinkage: str | float | None
    on_missing_class: str
    classes: Any
    in_a_row: bool
    class_prior: ArrayLike | None
    alpha_: float
    class_prior_: Array
    component_weights_: Array | None
    source_projection_: Array | None
    target_projection_: Array | None
    _seen: tuple[Array, NDArray[Any], Array]
    _prior_given: Prior | None
    _target: Target
    _concluded: tuple[Array, float, Array | None]
    _share_error: float
    #: Samples of the target's further classes, for the covariance only.
    _bystanders: Samples | None = None

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the blend from a few labelled samples of the target.

        A prior from tasks knows how far samples are alike that follow each other, and takes those
        of each class here for such a run (equation 48), unless `in_a_row` is False.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, in the user's units.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_domain : array-like of shape (n_samples,) or None, default=None
            Where each sample comes from, by skada's convention: rows of a positive domain are a
            source task, rows of a negative one the target. A target label of -1 among
            non-negative ones means unlabelled.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How often each sample counts.

        Returns
        -------
        self
            The fitted estimator.
        """
        rows, labels, weight = self._check_fit_input(X, y, sample_weight)
        prior = self._check_prior()
        if sample_domain is not None:
            self._refuse_other_features(prior, rows.shape[1])
            rows, labels, weight, prior = split_domains(
                rows,
                labels,
                weight,
                sample_domain,
                prior,
                self.classes,
                getattr(self, "feature_names_in_", None),
                keep_directions=self.weights == "per-task",
            )
        self._start(rows, labels, weight, prior)
        self._learn(may_wait=False)
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from further samples: the result is that of one `fit` on all samples so far.

        The labelled samples are kept for this, since a calibration has few. Where both classes are
        known beforehand, samples of the second may come later; until then nothing can be predicted.
        A pickled estimator holds them too.
        Samples that are refused leave the estimator as it was.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features of the new samples.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : pair of labels or None, default=None
            Both labels, if the first call brings only one of them and the prior does not know.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How often each new sample counts.

        Returns
        -------
        self
            The estimator.
        """
        before = self.__dict__.copy()
        first = not hasattr(self, "_seen")
        try:
            rows, labels, weight = self._check_fit_input(X, y, sample_weight, reset=first)
            if first:
                self._start(rows, labels, weight, self._check_prior())
            else:
                if self.prior is not self._prior_given:
                    self._prior_given = self.prior_ = self._check_prior()
                old_rows, old_labels, old_weight = self._seen
                if (labels.dtype.kind in "OU") != (old_labels.dtype.kind in "OU"):
                    raise ValueError(
                        "Some labels are text and others are not; the classes so far are "
                        f"{np.unique(old_labels).tolist()}. Use the same labels in every call."
                    )
                self._seen = (
                    np.concatenate([old_rows, rows]),
                    np.concatenate([old_labels, labels]),
                    np.concatenate([old_weight, weight]),
                )
            if classes is not None:
                self._announced = np.unique(np.asarray(classes))
            self._learn(may_wait=True)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def place_threshold(self, X: ArrayLike) -> Self:
        """Move the threshold to where unlabelled samples of the same target suggest it.

        Two normals of one variance are fitted to the scores of labelled and unlabelled samples
        (equation 28). Direction, `alpha_` and forecast stay; fitting again undoes it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Unlabelled samples of both classes, in the user's units.

        Returns
        -------
        self
            The estimator, with another `intercept_`.
        """
        scores = self.decision_function(X)
        rows, labels, weight = self._seen
        label = (labels == self.classes_[1]).astype(np.intp)
        if len(np.unique(label)) < 2:
            raise ValueError("A threshold between two classes needs labelled samples of both.")
        odds = float(log_odds(self.class_prior_[1]))
        middle = threshold_of(self.decision_function(rows), label, scores, weight, odds)
        self.intercept_ = self.intercept_ - (middle + odds / self._slope)
        return self

    def estimate_proportions(self, X: ArrayLike) -> Self:
        """Learn from unlabelled samples of the same target how frequent its two classes are.

        Two normals of one variance are fitted to the scores (equation 45). Where their proportions
        differ clearly from `class_prior`, they take its place: threshold, probabilities and
        forecast follow. Where they do not, nothing changes. Direction and `alpha_` stay; fitting
        again undoes it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Unlabelled samples, in the user's units, in the proportions of those to come.

        Returns
        -------
        self
            The estimator, with another `class_prior_` and `intercept_`.
        """
        scores = self.decision_function(X) + log_odds(self.class_prior_[1]) / self._slope
        omega, trace, given_gap = self._concluded
        promise = forecast(self._target, omega, trace, given_gap)
        length = np.linalg.norm(omega)
        given = check_class_prior(self.class_prior)
        share, error = proportion_of(
            scores,
            promise.gap / length,
            promise.variance / length**2,
            self._target.counts,
            given or 0.5,
        )
        learnt = float(share) if error > 0.0 else given
        self._share_error = float(error)
        self._favour(learnt, forecast(self._target, *self._concluded, learnt, error))
        return self

    def _start(self, rows: Array, labels: NDArray[Any], weight: Array, prior: Prior | None) -> None:
        """Forget what was learnt before, all but what the check of the input has just set."""
        learnt = [name for name in self.__dict__ if name[-1] == "_" and name[-4:] != "_in_"]
        for name in (*learnt, "_announced", "_waiting_for"):
            self.__dict__.pop(name, None)
        # Copies, since a caller who streams may well fill the same arrays again.
        self._seen = (rows.copy(), labels.copy(), weight.copy())
        self.prior_, self._prior_given = prior, self.prior

    def _not_fitted(self) -> str:
        if hasattr(self, "_waiting_for"):
            return (
                f"This %(name)s cannot predict yet: it has seen no labelled sample of class "
                f"{self._waiting_for!r}. Call partial_fit with at least one."
            )
        return super()._not_fitted()

    # -- from samples to a target -----------------------------------------------------------

    def _learn(self, *, may_wait: bool) -> None:
        """Fit the rule to all samples so far, or wait for a class that is still to come."""
        self._check_parameters()
        prior = self.prior_
        self.component_weights_ = prior.shares if isinstance(prior, MixturePrior) else None
        rows, labels, weight = self._seen
        self._refuse_other_features(prior, rows.shape[1])
        counted = weight > 0.0
        present, label = encode(labels[counted])
        samples = Samples(rows[counted], label, weight[counted])
        names = self._both_classes(present, prior)
        self.__dict__.pop("_waiting_for", None)
        if len(present) == 2:
            self.classes_ = present
            check_both_classes(samples.counts, present.tolist())
            self._learn_both(samples, self._oriented(prior))
        elif self.on_missing_class == "prior":
            self._learn_one(samples, present, names, prior)
        elif may_wait and names is not None:
            self._waiting_for = next(name for name in names.tolist() if name != present[0])
            self.classes_ = np.sort(names)
        else:
            known = present.tolist() if names is None else names.tolist()
            known.sort(key=lambda name: bool(name != present[0]))
            remedy = "" if prior is None else ", or pass on_missing_class='prior'"
            if may_wait:
                remedy = ", or name both with partial_fit(..., classes=(first, second))"
            check_both_classes(samples.counts, known, remedy)

    def _learn_both(self, samples: Samples, prior: Prior | None) -> None:
        shrinkage = check_shrinkage(self.shrinkage)
        scale = None if prior is None else prior.feature_scale
        fallback = None if prior is None else prior.within_spectrum
        form = self._noise_form()
        # The paper takes samples for independent.
        alike = self.in_a_row and form == "unit"
        known = prior.neighbour_correlation if alike and prior is not None else None
        samples = samples.among(self._bystanders)
        target = describe_target(samples, shrinkage, scale, fallback, form, known)
        self._target = target
        self.midpoint_ = target.midpoint
        own = target.noise.omega
        if prior is None:
            omega, trace, self.alpha_ = own, float(target.rank), 1.0
            self.source_projection_ = None
            self._no_blend()
        else:
            self.source_projection_ = (
                None if prior.resultant_length < 1e-12 else prior.mean_direction
            )
            if target.noise.length > 0.0:
                omega, trace, self.alpha_ = self._blend(target, prior)
            else:
                # Classes that do not differ have no direction of their own: the crowd's it is.
                omega, trace, self.alpha_ = prior.mean_direction, 0.0, 0.0
                self._no_blend()
        self.target_projection_ = own
        length = float(np.linalg.norm(omega))
        if length == 0.0 and prior is None:
            raise ValueError(
                "The classes do not differ in any feature, and there is no prior to turn to. "
                "Check the features, or give more samples."
            )
        if length == 0.0:
            raise ValueError(
                f"The target's direction and the crowd's cancel out at alpha={self.alpha_:g}. "
                "Choose another alpha, or None."
            )
        self._conclude(omega, trace)

    def _conclude(self, omega: Array, trace: float, given_gap: Array | None = None) -> None:
        """Set the rule and its forecast; the gap along `omega` may be given."""
        self._concluded = omega, trace, given_gap
        share = check_class_prior(self.class_prior)
        promise = forecast(self._target, omega, trace, given_gap, share)
        length = float(np.linalg.norm(omega))
        gap, variance = float(promise.gap) / length, float(promise.variance) / length**2
        self._set_rule(omega / length, self._target.scale, self.midpoint_, gap, variance)
        self.class_prior_, self._share_error = np.array([0.5, 0.5]), 0.0
        self._favour(share, promise)

    def _favour(self, share: float | None, promise: Forecast) -> None:
        """Move the threshold to a share of the second class (equation 20), with its forecast."""
        self.expected_accuracy_ = float(promise.accuracy)
        self.expected_accuracy_error_ = float(promise.error)
        before = log_odds(self.class_prior_[1])
        self.class_prior_ = np.array([0.5, 0.5] if share is None else [1.0 - share, share])
        # The slope of the probabilities, so that these still say which class is likelier.
        self.intercept_ = self.intercept_ - (log_odds(share) - before) / self._slope

    def _learn_one(
        self,
        samples: Samples,
        present: NDArray[Any],
        names: NDArray[Any] | None,
        prior: Prior | None,
    ) -> None:
        """Rule of the crowd, through a midpoint half a gap away from the class that was seen."""
        if prior is None or prior.half_gap is None:
            raise ValueError(
                f"Only one class, {present.tolist()[0]!r}, has labelled samples, and "
                "on_missing_class='prior' needs a prior with an average half gap, as from_tasks "
                "makes it. Build the prior from tasks, or label at least 1 sample of the other "
                "class."
            )
        if names is None:
            raise ValueError(
                f"Only class {present.tolist()[0]!r} has labelled samples, and neither prior nor "
                "classes say what the other one is. Pass classes=(first, second)."
            )
        self.classes_ = np.sort(names)
        oriented = prior if self._same_order() else prior.reversed()
        half_gap = np.asarray(oriented.half_gap)
        seen_second = bool(present[0] == self.classes_[1])
        label = np.full(len(samples.label), int(seen_second))
        gap_in_units = half_gap * oriented.feature_scale
        mean = np.average(samples.X, axis=0, weights=samples.weight)
        midpoint = mean - gap_in_units if seen_second else mean + gap_in_units
        # A stand-in for the class not seen, so that the forecast has its gap and its noise.
        mirrored = np.vstack([samples.X, 2.0 * midpoint - mean])
        target = describe_target(
            Samples(
                mirrored, np.append(label, 1 - int(seen_second)), np.append(samples.weight, 1.0)
            ).among(self._bystanders),
            check_shrinkage(self.shrinkage),
            oriented.feature_scale,
            oriented.within_spectrum,
            correlation=oriented.neighbour_correlation if self.in_a_row else None,
        )
        self._target = target
        self.midpoint_, self.alpha_ = midpoint, 0.0
        self._no_blend()
        self.target_projection_ = None
        self.source_projection_ = oriented.mean_direction
        gap = np.asarray(oriented.mean_direction @ half_gap)
        self._conclude(oriented.mean_direction, 0.0, gap)

    # -- agreement of target and prior ------------------------------------------------------

    def _check_prior(self) -> Prior | None:
        if isinstance(self.prior, MulticlassPrior):
            raise TypeError(
                "prior is a MulticlassPrior, and this is a rule for two classes. Use "
                f"MulticlassBlend({type(self).__name__}(prior)), or the prior of one pair, "
                f"prior[{self.prior.pairs[0]}]."
            )
        if self.prior is not None and not isinstance(self.prior, TaskPrior | MixturePrior):
            raise TypeError(
                "prior must be a TaskPrior, a MixturePrior or None; got "
                f"{type(self.prior).__name__}."
            )
        return self.prior

    def _both_classes(self, present: NDArray[Any], prior: Prior | None) -> NDArray[Any] | None:
        """Both labels in the prior's order, as far as anybody knows them."""
        names: NDArray[Any] | None = None
        if self.classes is not None:
            names = np.asarray(self.classes)
            if names.shape != (2,) or names[0] == names[1]:
                raise ValueError(f"classes must be two different labels; got {self.classes!r}.")
        elif prior is not None and prior.classes is not None:
            names = np.array(prior.classes)
        elif hasattr(self, "_announced"):
            names = self._announced
            if len(names) != 2:
                raise ValueError(
                    f"Only binary classification is supported; classes are {names.tolist()}."
                )
        if names is not None:
            known = names.tolist()
            stranger = next((name for name in present.tolist() if name not in known), None)
            if stranger is not None:
                raise ValueError(
                    f"The samples have class {stranger!r}, but the classes are {known}. If the "
                    "labels only have other names, pass classes=(first, second) with the "
                    "target's labels in the order of the prior's."
                )
        return names

    def _oriented(self, prior: Prior | None) -> Prior | None:
        """The prior, turned round where the target's labels sort the other way."""
        if isinstance(prior, MixturePrior) and prior.n_components == 1:
            prior = prior.pooled
        return prior if prior is None or self._same_order() else prior.reversed()

    def _same_order(self) -> bool:
        return self.classes is None or bool(self.classes[1] == self.classes_[1])

    # -- what the two blends do differently -------------------------------------------------

    def _check_parameters(self) -> None:
        check_choice("on_missing_class", self.on_missing_class, MISSING_CLASS)
        if not isinstance(self.in_a_row, (bool, np.bool_)):
            raise TypeError(f"in_a_row must be True or False; got {self.in_a_row!r}.")
        check_class_prior(self.class_prior)

    def _noise_form(self) -> str:
        return "unit"

    def _no_blend(self) -> None:
        """Set what a blend would have set, where `alpha_` leaves nothing to choose."""
        raise NotImplementedError

    def _blend(self, target: Target, prior: Prior) -> tuple[Array, float, float]:
        """Direction, trace of the matrix that multiplies (own - crowd), and alpha."""
        raise NotImplementedError

"""What the estimators of two classes share: from labelled windows and a prior to a rule.

The moments of the labelled windows give the person's direction (room `fisher`), a verb blends it
with the crowd's (`_convex`, `_posterior`, `_mixture`, `_per_task`), and the forecast frees the gap
along the blend of its optimism (room `risk`): from there on it is a linear rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from crossfade._typing import Array
from crossfade._validate import check_choice
from crossfade.blend._domains import split_domains
from crossfade.blend._unlabelled import proportion_of, threshold_of
from crossfade.blend._verb import Blend
from crossfade.exceptions import NoDirectionError, PriorMismatchError
from crossfade.fisher._direction import Direction, learn_direction
from crossfade.fisher._linear import LinearRule, Rule, check_both_classes, encode, slope_of
from crossfade.fisher._moments import ClassMoments
from crossfade.fisher._spectrum import check_shrinkage
from crossfade.prior._crowd import Crowd, Prior
from crossfade.risk._error_rate import check_class_prior, log_odds
from crossfade.risk._forecast import Forecast, forecast

MISSING_CLASS = ("error", "prior")


@dataclass(frozen=True, eq=False)
class Fit:
    """All that was learnt; the public attributes follow from it."""

    person: Direction
    blend: Blend
    midpoint: Array  # (d,): in the user's units
    given_gap: Array | None = None  # half the distance of the classes, if it is the crowd's

    def rule(self) -> Rule:
        """Rule along the blend, through the midpoint."""
        omega = self.blend.omega
        length = float(np.linalg.norm(omega))
        # What has unit length already stays as it is, to the bit.
        unit = omega if abs(length - 1.0) < 1e-14 else omega / length
        return Rule.through(self.midpoint, unit, self.person.scale)

    @cached_property
    def forecast(self) -> Forecast:
        """What the rule may promise for equally likely classes; made when it is asked for."""
        return forecast(self.person, self.blend.omega, self.blend.dof, self.given_gap)

    @cached_property
    def slope(self) -> float:
        """Slope of the log odds in the scores (equation 27)."""
        length = np.linalg.norm(self.blend.omega)
        return float(slope_of(self.forecast.gap / length, self.forecast.variance / length**2))

    def promise(self, class_prior: float, prior_error: float = 0.0) -> Forecast:
        """Forecast for classes of such proportions."""
        if class_prior == 0.5 and prior_error == 0.0:
            return self.forecast
        blend = self.blend
        return forecast(
            self.person, blend.omega, blend.dof, self.given_gap, class_prior, prior_error
        )


class BlendClassifier(LinearRule):
    """What the blends share."""

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
    _moments: ClassMoments
    _prior_given: Prior | None
    _fit: Fit
    _prior_error: float
    #: Moments of the person's further classes, which count for the covariance only (equation 38).
    _bystanders: ClassMoments | None = None

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
        self._forget()
        self._learn(rows, labels, weight, prior, may_wait=False)
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from further samples: the result is that of one `fit` on all samples so far.

        Only the moments of the samples so far are kept, so that a call costs the same however many
        there were. Where both classes are known beforehand, samples of the second may come later;
        until then nothing can be predicted. Samples that are refused leave the estimator as it was.

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
        first = "_moments" not in before
        try:
            rows, labels, weight = self._check_fit_input(X, y, sample_weight, reset=first)
            if first:
                self._forget()
            if classes is not None:
                self._announced = np.unique(np.asarray(classes))
            given = first or self.prior is not self._prior_given
            prior = self._check_prior() if given else self.prior_
            self._learn(rows, labels, weight, prior, may_wait=True)
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
        moments, coef = self._moments, self.coef_[0]
        if moments.counts.min() == 0.0:
            raise ValueError("A threshold between two classes needs labelled samples of both.")
        odds = float(log_odds(self.class_prior_[1]))
        means = moments.means @ coef + self.intercept_[0]
        variance = np.asarray(moments.along(coef) / moments.counts.sum())
        middle = threshold_of(moments.counts, means, variance, scores, odds)
        self.intercept_ = self.intercept_ - (middle + odds / self._fit.slope)
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
        scores = self.decision_function(X) + log_odds(self.class_prior_[1]) / self._fit.slope
        known, length = self._fit.forecast, np.linalg.norm(self._fit.blend.omega)
        given = self._given_prior()
        learnt, error = proportion_of(
            scores,
            known.gap / length,
            known.variance / length**2,
            self._fit.person.counts,
            given,
        )
        self._favour(float(learnt) if error > 0.0 else given, float(error))
        return self

    @property
    def expected_accuracy_(self) -> float:
        """Forecast for new samples, of the classes' proportions in `class_prior_`."""
        return float(self._promise().accuracy)

    @property
    def expected_accuracy_error_(self) -> float:
        """Standard error of the forecast."""
        return float(self._promise().error)

    def _promise(self) -> Forecast:
        if "_fit" not in self.__dict__:
            check_is_fitted(self, "coef_", msg=self._not_fitted())
        return self._fit.promise(float(self.class_prior_[1]), self._prior_error)

    def _log_odds_slope(self) -> float:
        return self._fit.slope

    def _forget(self) -> None:
        """Forget what was learnt before, all but what the check of the input has just set."""
        for name in list(self.__dict__):
            if name[-1] == "_" and name[-4:] != "_in_":
                del self.__dict__[name]
        for name in ("_moments", "_announced", "_waiting_for", "_fit"):
            self.__dict__.pop(name, None)

    def _not_fitted(self) -> str:
        if hasattr(self, "_waiting_for"):
            return (
                f"This %(name)s cannot predict yet: it has seen no labelled sample of class "
                f"{self._waiting_for!r}. Call partial_fit with at least one."
            )
        return super()._not_fitted()

    # -- from samples to a rule -------------------------------------------------------------

    def _learn(
        self,
        rows: Array,
        labels: NDArray[Any],
        weight: Array | None,
        prior: Prior | None,
        *,
        may_wait: bool,
    ) -> None:
        """Add samples to those so far, and fit the rule, or wait for a class still to come."""
        self._check_parameters(prior)
        self._refuse_other_features(prior, rows.shape[1])
        if weight is not None:
            counted = weight > 0.0
            rows, labels, weight = rows[counted], labels[counted], weight[counted]
        present, label = encode(labels)
        seen = self._seen_so_far(present)
        names = self._both_classes(seen, prior)
        classes = seen if names is None or len(seen) == 2 else np.sort(names)
        place = np.searchsorted(classes, present)
        moments = ClassMoments.of(
            rows, place[label], weight, quartic=self.shrinkage == "ledoit_wolf"
        )
        if "_moments" in self.__dict__:
            moments = self._added(moments, classes)
        self._conclude(moments, seen, names, prior, may_wait=may_wait)

    def _conclude(
        self,
        moments: ClassMoments,
        seen: NDArray[Any],
        names: NDArray[Any] | None,
        prior: Prior | None,
        *,
        may_wait: bool = False,
    ) -> None:
        """Fit the rule to the moments of its two classes."""
        plain = not moments.rooted and moments.quartic is None
        self._moments = moments if plain else moments.rotated()
        self.prior_, self._prior_given = prior, self.prior
        self.__dict__.pop("_waiting_for", None)
        if len(seen) == 2:
            self.classes_ = seen
            if moments.counts.sum() < 2.0:
                check_both_classes(moments.counts, seen.tolist())
            oriented = self._oriented(prior)
            self._publish(self._fit_both(moments, oriented), oriented)
        elif self.on_missing_class == "prior":
            self._fit_one(moments, seen, names, prior)
        elif may_wait and names is not None:
            self._waiting_for = next(name for name in names.tolist() if name != seen[0])
            self.classes_ = np.sort(names)
        else:
            known = seen if names is None else names
            remedy = "" if prior is None else ", or pass on_missing_class='prior'"
            if may_wait:
                remedy = ", or name both with partial_fit(..., classes=(first, second))"
            ordered = sorted(known.tolist(), key=lambda name: bool(name != seen[0]))
            check_both_classes(np.sort(moments.counts)[::-1], ordered, remedy)

    def _seen_so_far(self, present: NDArray[Any]) -> NDArray[Any]:
        """Sorted labels of all samples so far, those of this call included."""
        if "_moments" not in self.__dict__:
            return present
        before = self.classes_[self._moments.counts > 0.0]
        if (present.dtype.kind in "OU") != (before.dtype.kind in "OU"):
            raise ValueError(
                "Some labels are text and others are not; the classes so far are "
                f"{before.tolist()}. Use the same labels in every call."
            )
        return encode(np.concatenate([before, present]))[0]

    def _added(self, moments: ClassMoments, classes: NDArray[Any]) -> ClassMoments:
        """Moments of all samples so far, in the places of `classes`."""
        if moments.quartic is not None and self._moments.quartic is None:
            raise ValueError(
                "shrinkage was changed to 'ledoit_wolf' after samples had been seen, of which only "
                "what the former one needs was kept. Call fit with all samples."
            )
        before = self._moments
        if not np.array_equal(self.classes_, classes):
            # The pair of labels was named anew: what was seen goes to its new place.
            seen = before.counts > 0.0
            label = np.searchsorted(classes, self.classes_[seen])
            before = before.placed(np.flatnonzero(seen), label, len(classes))
        return before + moments

    def _direction(self, moments: ClassMoments, prior: Prior | None) -> Direction:
        """The person's own direction, in the prior's units."""
        form = self._noise_form()
        # The paper takes samples for independent.
        alike = self.in_a_row and form == "unit" and prior is not None
        if self._bystanders is not None:
            moments = moments.beside(self._bystanders)
        plain = isinstance(self.shrinkage, str) and self.shrinkage == "oas"
        return learn_direction(
            moments,
            self.shrinkage if plain else check_shrinkage(self.shrinkage),
            None if prior is None else prior.feature_scale,
            fallback=None if prior is None else prior.within_spectrum,
            form=form,
            correlation=prior.neighbour_correlation if alike and prior is not None else None,
        )

    def _fit_both(self, moments: ClassMoments, prior: Prior | None) -> Fit:
        person = self._direction(moments, prior)
        if prior is None:
            if not person.length:
                raise NoDirectionError(
                    "The classes do not differ in any feature, and there is no prior to turn to. "
                    "Check the features, or give more samples."
                )
            return Fit(person, Blend(person.omega, person.rank, np.ones(())), person.midpoint)
        if not person.length:
            # Classes that do not differ have no direction of their own: the crowd's it is.
            crowd = Blend(prior.mean_direction, np.zeros(()), np.zeros(()))
            return Fit(person, crowd, person.midpoint)
        blend = self._blend(person, prior)
        if not blend.omega.any():
            raise NoDirectionError(
                f"The target's direction and the crowd's cancel out at alpha={blend.alpha:g}. "
                "Choose another alpha, or None."
            )
        return Fit(person, blend, person.midpoint)

    def _publish(self, fit: Fit, prior: Prior | None) -> None:
        """Set the rule and everything that can be asked about it."""
        blend = fit.blend
        self._fit = fit
        self.midpoint_, self.alpha_ = fit.midpoint, float(blend.alpha)
        self.target_projection_ = fit.person.omega
        source = blend.source
        if source is None and prior is not None:
            source = prior.crowd.mean_direction
        length = 0.0 if source is None else float(np.linalg.norm(source))
        if abs(length - 1.0) > 1e-12 and source is not None:
            source = source / length if length > 1e-12 else None
        self.source_projection_ = source
        self.component_weights_ = None if self.prior_ is None else self.prior_.shares
        self._set_blend(blend)
        self._set_rule(fit.rule())
        self.class_prior_ = np.array([0.5, 0.5])
        self._favour(self._given_prior())

    def _favour(self, class_prior: float, error: float = 0.0) -> None:
        """Move the threshold to a proportion of the second class (equation 20)."""
        self._prior_error = error
        if class_prior != self.class_prior_[1]:
            # The slope of the probabilities, so that these still say which class is likelier.
            step = log_odds(class_prior) - log_odds(self.class_prior_[1])
            self.intercept_ = self.intercept_ - step / self._fit.slope
            self.class_prior_ = np.array([1.0 - class_prior, class_prior])

    def _fit_one(
        self,
        moments: ClassMoments,
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
        seen = int(present[0] == self.classes_[1])
        step = half_gap * oriented.feature_scale
        mean = moments.means[seen]
        midpoint = mean - step if seen else mean + step
        # A stand-in for the class not seen, so that the forecast has its gap and its noise.
        stand_in = 2.0 * midpoint - mean
        label = np.full(1, 1 - seen)
        mirrored = ClassMoments.of(
            stand_in[None, :],
            label,
            n_classes=len(moments.counts),
            quartic=moments.quartic is not None,
        )
        person = self._direction(moments + mirrored, oriented)
        direction = oriented.mean_direction
        gap = np.asarray(direction @ half_gap)
        blend = Blend(direction, np.zeros(()), np.zeros(()))
        self._publish(Fit(person, blend, midpoint, gap), oriented)
        self.target_projection_ = None

    # -- agreement of target and prior ------------------------------------------------------

    def _check_prior(self) -> Prior | None:
        prior: Any = self.prior
        if hasattr(prior, "pairs") and not isinstance(prior, type):
            raise TypeError(
                f"prior is a {type(prior).__name__}, and this is a rule for two classes. Use "
                f"MulticlassBlend({type(self).__name__}(prior)), or the prior of one pair, "
                f"prior[{prior.pairs[0]}]."
            )
        if prior is not None and (isinstance(prior, type) or not hasattr(prior, "crowds")):
            raise TypeError(
                f"prior must be a TaskPrior, a MixturePrior or None; got {type(prior).__name__}."
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
                raise PriorMismatchError(
                    f"The samples have class {stranger!r}, but the classes are {known}. If the "
                    "labels only have other names, pass classes=(first, second) with the "
                    "target's labels in the order of the prior's."
                )
        return names

    def _oriented(self, prior: Prior | None) -> Prior | None:
        """The prior, turned round where the target's labels sort the other way."""
        return prior if prior is None or self._same_order() else prior.reversed()

    def _same_order(self) -> bool:
        return self.classes is None or bool(self.classes[1] == self.classes_[1])

    def _check_parameters(self, prior: Prior | None) -> None:
        word: object = self.on_missing_class
        if not (isinstance(word, str) and word in MISSING_CLASS):
            check_choice("on_missing_class", word, MISSING_CLASS)
        if not isinstance(self.in_a_row, (bool, np.bool_)):
            raise TypeError(f"in_a_row must be True or False; got {self.in_a_row!r}.")
        self._given_prior()
        self._check_own_parameters(prior)

    def _given_prior(self) -> float:
        """Probability of the second class, as it was given."""
        return 0.5 if self.class_prior is None else check_class_prior(self.class_prior)

    # -- what the blends do differently -----------------------------------------------------

    def _check_own_parameters(self, prior: Prior | None) -> None:
        """Check the parameters that only this blend has."""
        raise NotImplementedError

    def _noise_form(self) -> str:
        return "unit"

    def _batched(self, crowd: Crowd | None) -> bool:
        """Whether several people, or pairs of classes, can be blended with their crowds at once."""
        return True

    def _blend(self, person: Direction, prior: Prior) -> Blend:
        """One of the four verbs."""
        raise NotImplementedError

    def _blend_with(self, person: Direction, crowd: Crowd) -> Blend:
        """The verb for a single crowd; of a batch of people, each may have one."""
        raise NotImplementedError

    def _set_blend(self, blend: Blend) -> None:
        """Set the public attributes that only this blend has."""
        raise NotImplementedError

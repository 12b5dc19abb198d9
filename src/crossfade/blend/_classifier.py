"""What the estimators of two classes share: from labelled windows and a prior to a rule.

The moments of the labelled windows give the person's direction (room `fisher`), a verb blends it
with the crowd's (`_convex`, `_posterior`), and the forecast frees the gap
along the blend of its optimism (room `risk`): from there on it is a linear rule.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from crossfade._typing import Array
from crossfade._validate import (
    as_labels,
    check_choice,
    is_missing,
    refuse_masked,
    refuse_size,
)
from crossfade.blend._domains import Rows, TakesCrowd
from crossfade.blend._fit import Fit, check_level
from crossfade.blend._hierarchical import Hierarchical, hierarchical
from crossfade.blend._verb import Blend
from crossfade.exceptions import NoDirectionError, PriorMismatchError
from crossfade.fisher import (
    ClassMoments,
    Direction,
    Rule,
    check_both_classes,
    check_shrinkage,
    check_weight,
    encode,
    learn_direction,
)
from crossfade.prior import Crowd, TaskPrior, warn_of_units
from crossfade.risk import Outlook, check_class_prior, log_odds

MISSING_CLASS = ("auto", "error", "prior")
#: Kinds of labels that can be told apart from each other: numbers, text, and times.
_ALIKE = {
    **dict.fromkeys("biuf", "number"),
    **dict.fromkeys("OU", "text"),
    "S": "bytes",
    "M": "time",
}
#: What fit forgets beside what has a name that ends in an underscore.
_LEARNT = ("_moments", "_announced", "_waiting_for", "_fit", "_unlabelled", "_fresh", "_told")
#: Most unlabelled samples that are kept, the last ones.
MOST_UNLABELLED = 500


class BlendClassifier(TakesCrowd):
    """What the blends share."""

    prior: TaskPrior | None
    shrinkage: str | float | None
    on_missing_class: str
    classes: Any
    #: The convex blend has no such parameter.
    in_a_row: bool = True
    class_prior: ArrayLike | None
    alpha_: float
    class_prior_: Array
    source_projection_: Array | None
    target_projection_: Array | None
    _moments: ClassMoments
    _prior_given: TaskPrior | None
    _fit: Fit
    _shift: float
    _unlabelled: Array
    #: Moments of the person's further classes, which count for the covariance only (equation 38).
    _bystanders: ClassMoments | None = None

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

        The crowd may come along: with `sample_domain`, `groups` or `subjects` the samples of the
        other people become a prior, which is added to `prior` if there is one. Without a label of
        the target the crowd answers alone.

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
            source task, rows of the negative one the target. A target label of -1 among
            non-negative ones means unlabelled; such rows tell where the middle of two classes lies.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How often each sample counts.
        groups : array-like of shape (n_samples,) or None, default=None
            Person of each sample; that of the last one is the target, as
            :class:`~crossfade.CalibrationSplit` has it.
        subjects : array-like of shape (n_samples,) or None, default=None
            Person of each sample, by MOABB's convention: all of `X` are sources, and the target
            comes in the next three.
        X_target_labeled : array-like of shape (n_labelled, n_features) or None, default=None
            Labelled samples of the target.
        y_target_labeled : array-like of shape (n_labelled,) or None, default=None
            Their labels.
        X_target_unlabeled : array-like of shape (n_unlabelled, n_features) or None, default=None
            Samples of the target without a label; of more than two classes they are not used.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._forget()
        refuse_missing(y)
        refuse_missing(y_target_labeled)
        people = {"sample_domain": sample_domain, "groups": groups, "subjects": subjects}
        beside = (X_target_labeled, y_target_labeled, X_target_unlabeled)
        crowd_too = any(part is not None for part in (*people.values(), *beside))
        prior = self._check_prior()
        rows, labels, weight = self._check_fit_input(X, y, sample_weight)
        unlabelled: Array | None = None
        if crowd_too:
            (rows, labels, weight), unlabelled, prior = self._sort_out(
                Rows(rows, labels, weight), prior, people, beside
            )
        if unlabelled is not None:
            self._keep_unlabelled(unlabelled, prior)
        if len(labels):
            self._refuse_other_rows(rows, prior)
            self._learn(rows, labels, weight, prior, may_wait=False)
        else:
            self._learn_unlabelled(prior)
        if len(labels) or unlabelled is not None:
            self._compare_units(prior)
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from further samples: the result is that of one `fit` on all samples so far.

        Only the moments of the samples so far are kept, so that a call costs the same however many
        there were. Where both classes are known beforehand, samples of the second may come later;
        until then a prior with class means answers, and without one nothing can be predicted.
        Samples without a label tell where the middle of the classes lies; the last 500 of them are
        kept. Samples that are refused leave the estimator as it was.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features of the new samples.
        y : array-like of shape (n_samples,) or None
            Their labels; None, or None, NaN or a mask instead of a label, for samples without
            one.
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
            # After start nothing is known of the names of the features yet.
            reset = first or self.__dict__.pop("_fresh", False)
            hidden = missing_labels(y)
            whole: Array = np.empty((0, 0))
            if y is not None and hidden is None:
                rows, labels, weight = self._check_fit_input(X, y, sample_weight, reset=reset)
            else:
                whole = self._validated(X, order="C", reset=reset)
                refuse_size(np.abs(whole).max(0))
                hidden = np.ones(len(whole), bool) if hidden is None else hidden
                rows, labels, weight = self._labelled_part(whole, y, sample_weight, hidden)
            if first:
                self._forget()
            if classes is not None:
                self._announced = np.unique(np.asarray(classes))
            given = first or self.prior is not self._prior_given
            prior = self._check_prior() if given else self.prior_
            if hidden is not None:
                self._keep_unlabelled(whole[hidden], prior)
            if len(labels):
                self._refuse_other_rows(rows, prior)
                self._learn(rows, labels, weight, prior, may_wait=True)
            else:
                self._learn_unlabelled(prior)
            self._compare_units(prior)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def start(self) -> Self:
        """Predict at once, before the first label: the crowd's rule for a new person.

        Needs a prior with class means. `partial_fit` goes on from here.

        Returns
        -------
        self
            The estimator.
        """
        prior = self._check_prior()
        if prior is None:
            raise ValueError(
                "Without a label only a crowd can answer: give a prior, as TaskPrior.from_tasks "
                "makes it, or call fit with labelled samples."
            )
        self._check_parameters(prior)
        self._forget()
        self.n_features_in_ = prior.n_features
        self.__dict__.pop("feature_names_in_", None)
        self._fresh = True
        none: NDArray[Any] = np.array([])
        self._conclude(_no_moments(prior.n_features), none, self._both_classes(none, prior), prior)
        return self

    def _from_moments(self, moments: ClassMoments, unlabelled: Array | None = None) -> Self:
        """Fit the rule to moments of the prior's classes, and to samples without a label (m, d)."""
        prior: Any = self._check_prior()
        self._check_parameters(prior)
        self._forget()
        self.n_features_in_, self._fresh = prior.n_features, True
        self.__dict__.pop("feature_names_in_", None)
        if unlabelled is not None and len(unlabelled):
            self._unlabelled = unlabelled
        names = np.sort(np.array(prior.classes))
        self._conclude(moments, names[moments.counts > 0.0], names, prior)
        if moments.counts.any() or "_unlabelled" in self.__dict__:
            self._compare_units(prior)
        return self

    @property
    def expected_accuracy_(self) -> float:
        """Forecast for new samples of this person, in the proportions of `class_prior_`."""
        self._outlook()
        return float(self._fit.promise(self._second())[0])

    @property
    def expected_accuracy_error_(self) -> float:
        """Standard error of the forecast."""
        self._outlook()
        return float(self._fit.promise(self._second())[1])

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
        level = check_level(level)
        lower, upper = self._outlook().interval(level, self._second())
        return float(lower), float(upper)

    def _outlook(self) -> Outlook:
        if "_fit" not in self.__dict__:
            check_is_fitted(self, "coef_", msg=self._not_fitted())
        self._fit.warn()
        return self._fit.outlook

    def _known_columns(self, X: ArrayLike) -> ArrayLike:
        prior = self.__dict__.get("prior_")
        if getattr(prior, "feature_names", None) is None and "_fresh" in self.__dict__:
            # Neither a sample nor the prior has named any.
            return np.asarray(X, dtype=np.float64) if hasattr(X, "columns") else X
        return self._compared(X, prior)

    def _second(self) -> float:
        """Probability of the second of two classes; more are equally likely."""
        return float(self.class_prior_[1]) if len(self.classes_) == 2 else 0.5

    def _log_odds(self, scores: Array) -> Array:
        with np.errstate(over="ignore"):
            x = (scores + self._shift) / self._fit.deviation
        odds: Array = self._fit.outlook.log_odds(x) - log_odds(self.class_prior_[1])
        return odds

    def _forget(self) -> None:
        """Forget what was learnt before, all but what the check of the input has just set."""
        for name in list(self.__dict__):
            if name[-1] == "_" and name[-4:] != "_in_":
                del self.__dict__[name]
        for name in _LEARNT:
            self.__dict__.pop(name, None)

    def _not_fitted(self) -> str:
        if hasattr(self, "_waiting_for"):
            return (
                f"This %(name)s cannot predict yet: it has seen no labelled sample of class "
                f"{self._waiting_for!r}. Call partial_fit with at least one."
            )
        return super()._not_fitted()

    # -- samples without a label ------------------------------------------------------------

    def _labelled_part(
        self, X: Array, y: Any, sample_weight: ArrayLike | None, hidden: NDArray[np.bool_]
    ) -> tuple[Array, NDArray[Any], Array | None]:
        """Samples that have a label, their labels and weights, checked."""
        if hidden.shape != X.shape[:1]:
            raise ValueError(
                f"y must have one label, None or NaN for each of the {len(X)} samples; got "
                f"{hidden.size}."
            )
        if y is None or hidden.all():
            return X[:0], np.array([]), None
        labels = np.array([name for name, none in zip(list(y), hidden, strict=True) if not none])
        weight = sample_weight
        if sample_weight is not None:
            refuse_masked("sample_weight", sample_weight)
            weight = check_weight(sample_weight, X)[~hidden]
        return self._check_fit_input(X[~hidden], labels, weight, reset=False)

    def _keep_unlabelled(self, rows: Array, prior: TaskPrior | None) -> None:
        """Keep the last samples without a label."""
        if hasattr(prior, "pairs"):
            raise ValueError(
                "Samples without a label are for two classes: of more, too little is known of "
                "their proportions. Leave them out."
            )
        if prior is None or prior.class_means is None:
            raise ValueError(
                "Samples without a label say where the classes lie only with a prior that has "
                "class means. Give one that TaskPrior.from_tasks made, or leave these samples out."
            )
        self._refuse_other_rows(rows, prior)
        if "_unlabelled" in self.__dict__:
            rows = np.concatenate([self._unlabelled, rows])
        self._unlabelled = rows[-MOST_UNLABELLED:]

    def _learn_unlabelled(self, prior: Any) -> None:
        """Fit the rule again, after samples without a label alone."""
        self._check_parameters(prior)
        if "_moments" not in self.__dict__:
            moments, seen = _no_moments(prior.n_features), np.array([])
        else:
            moments = self._moments
            seen = self.classes_[moments.counts > 0.0]
        self._conclude(moments, seen, self._both_classes(seen, prior), prior, may_wait=True)

    # -- from samples to a rule -------------------------------------------------------------

    def _learn(
        self,
        rows: Array,
        labels: NDArray[Any],
        weight: Array | None,
        prior: TaskPrior | None,
        *,
        may_wait: bool,
    ) -> None:
        """Add samples to those so far, and fit the rule, or wait for a class still to come."""
        self._check_parameters(prior)
        if weight is not None:
            counted = weight > 0.0
            rows, labels, weight = rows[counted], labels[counted], weight[counted]
        present, label = encode(labels)
        seen = self._seen_so_far(present)
        names = self._both_classes(seen, prior)
        classes = seen if names is None or len(seen) == 2 else np.sort(names)
        place = np.searchsorted(classes, present)
        moments = ClassMoments.of(rows, place[label], weight)
        if "_moments" in self.__dict__:
            moments = self._added(moments, classes)
        self._conclude(moments, seen, names, prior, may_wait=may_wait)

    def _conclude(
        self,
        moments: ClassMoments,
        seen: NDArray[Any],
        names: NDArray[Any] | None,
        prior: TaskPrior | None,
        *,
        may_wait: bool = False,
    ) -> None:
        """Fit the rule to the moments of its two classes."""
        self.prior_, self._prior_given = prior, self.prior
        self.__dict__.pop("_waiting_for", None)
        answers = self._crowd_answers(prior, len(seen))
        if len(seen) == 2:
            self.classes_ = seen
            if moments.counts.sum() < 2.0:
                check_both_classes(moments.counts, seen.tolist())
            oriented = self._oriented(prior)
            self._publish(self._fit_both(moments, oriented), oriented)
        elif self.on_missing_class == "prior" or answers or not len(seen):
            self._fit_few(moments, seen, names, prior)
        elif may_wait and names is not None:
            self._waiting_for = next(name for name in names.tolist() if name != seen[0])
            for name in ("coef_", "intercept_", "projection_", "_fit"):
                # What the crowd answered before is no rule of this person's.
                self.__dict__.pop(name, None)
            self.classes_ = np.sort(names)
        else:
            known = seen if names is None else names
            able = prior is not None and (
                prior.class_means is not None or prior.half_gap is not None
            )
            remedy = ", or pass on_missing_class='prior'" if able else ""
            if may_wait:
                remedy = ", or name both with partial_fit(..., classes=(first, second))"
            ordered = sorted(known.tolist(), key=lambda name: bool(name != seen[0]))
            check_both_classes(np.sort(moments.counts)[::-1], ordered, remedy)
        # Last, so that what is refused leaves nothing to go on from.
        self._moments = moments.rotated() if moments.rooted else moments

    def _seen_so_far(self, present: NDArray[Any]) -> NDArray[Any]:
        """Sorted labels of all samples so far, those of this call included."""
        if "_moments" not in self.__dict__ or not self._moments.counts.any():
            return present
        before = self.classes_[self._moments.counts > 0.0]
        kinds = [_ALIKE.get(one.dtype.kind) for one in (present, before)]
        if kinds[0] != kinds[1]:
            raise ValueError(
                "Some labels are text and others are not; the classes so far are "
                f"{before.tolist()}. Use the same labels in every call."
            )
        return encode(np.concatenate([before, present]))[0]

    def _added(self, moments: ClassMoments, classes: NDArray[Any]) -> ClassMoments:
        """Moments of all samples so far, in the places of `classes`."""
        before = self._moments
        if not np.array_equal(self.classes_, classes):
            # The pair of labels was named anew: what was seen goes to its new place.
            seen = before.counts > 0.0
            label = np.searchsorted(classes, self.classes_[seen])
            before = before.placed(np.flatnonzero(seen), label, len(classes))
        return before + moments

    def _direction(self, moments: ClassMoments, prior: TaskPrior | None) -> Direction:
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

    def _crowd_answers(self, prior: TaskPrior | None, n_seen: int) -> bool:
        """Whether the crowd can stand in for classes that have no labelled sample."""
        if n_seen == 2 or self.on_missing_class != "auto" or prior is None:
            return False
        return prior.class_means is not None or (n_seen == 1 and prior.half_gap is not None)

    def _fit_both(self, moments: ClassMoments, prior: TaskPrior | None) -> Fit:
        person = self._direction(moments, prior)
        about: dict[str, Any] = {
            "scale": person.scale,
            "counts": moments.counts,
            "prior": prior,
            "verb": self._played(prior),
        }
        midpoint = person.midpoint
        if prior is not None and "_unlabelled" in self.__dict__:
            if prior.class_means is None:
                raise ValueError(
                    "Samples without a label were taken with a prior that has class means, and "
                    "this one has none. Call fit, which forgets them, or give such a prior."
                )
            # Direction and forecast stay; the middle is where all samples together suggest it.
            midpoint = self._posterior_means(moments, prior).midpoint * prior.feature_scale
        if prior is None:
            if not person.length:
                raise NoDirectionError(
                    "The classes do not differ in any feature, and there is no prior to turn to. "
                    "Check the features, or give more samples."
                )
            return Fit(person, Blend(person.omega, person.rank, np.ones(())), midpoint, **about)
        if not person.length:
            # Classes that do not differ have no direction of their own: the crowd's it is.
            crowd = Blend(prior.mean_direction, np.zeros(()), np.zeros(()))
            return Fit(person, crowd, midpoint, **about)
        blend = self._blend(person, prior)
        if not blend.omega.any():
            raise NoDirectionError(
                f"The target's direction and the crowd's cancel out at alpha={blend.alpha:g}. "
                "Choose another alpha, or None."
            )
        return Fit(person, blend, midpoint, **about)

    def _posterior_means(self, moments: ClassMoments, prior: TaskPrior) -> Hierarchical:
        """What the crowd and all samples, labelled or not, say of the class means."""
        assert prior.class_means is not None
        return hierarchical(
            moments,
            prior.class_means.population,
            prior.feature_scale,
            unlabelled=self.__dict__.get("_unlabelled"),
            in_a_row=bool(self.in_a_row),
        )

    def _publish(self, fit: Fit, prior: TaskPrior | None) -> None:
        """Set the rule and everything that can be asked about it."""
        blend = fit.blend
        self._fit = fit
        self.midpoint_, self.alpha_ = fit.midpoint, float(blend.alpha)
        self.target_projection_ = None if fit.person is None else fit.person.omega
        source = None if prior is None else prior.crowd.mean_direction
        length = 0.0 if source is None else float(np.linalg.norm(source))
        if abs(length - 1.0) > 1e-12 and source is not None:
            source = source / length if length > 1e-12 else None
        self.source_projection_ = source
        self._set_blend(blend)
        length = float(np.linalg.norm(blend.omega))
        # What has unit length already stays as it is, to the bit.
        unit = blend.omega if abs(length - 1.0) < 1e-14 else blend.omega / length
        self._set_rule(Rule.through(fit.midpoint, unit, fit.scale))
        second = self._given_prior()
        self.class_prior_ = np.array([1.0 - second, second])
        self._shift = 0.0
        if second != 0.5:
            # Where the probabilities are even (equation 20), so that these and labels agree.
            self._shift = float(fit.outlook.where(log_odds(second)) * fit.deviation)
            self.intercept_ = self.intercept_ - self._shift

    def _fit_few(
        self,
        moments: ClassMoments,
        present: NDArray[Any],
        names: NDArray[Any] | None,
        prior: TaskPrior | None,
    ) -> None:
        """Rule of the crowd, where not every class has a labelled sample."""
        who = f"Only class {present.tolist()[0]!r} has" if len(present) else "No class has"
        if prior is None or (
            prior.class_means is None and (prior.half_gap is None or not len(present))
        ):
            if not len(present):
                raise ValueError(
                    "Without a label only a crowd can answer that knows class means, and this "
                    "prior holds none. Build it with TaskPrior.from_tasks, with class_means=True, "
                    "or call fit with labelled samples of both classes."
                )
            raise ValueError(
                f"{who} labelled samples, and the crowd can stand in for the other only with a "
                "prior that has an average half gap, as from_tasks makes it. Build the prior from "
                "tasks, or label at least 1 sample of every class."
            )
        if names is None:
            raise ValueError(
                f"{who} labelled samples, and neither prior nor classes say what the classes are. "
                "Pass classes=(first, second), or label at least 1 sample of each."
            )
        self.classes_ = np.sort(names)
        oriented = prior if self._same_order() else prior.reversed()
        if oriented.class_means is None:
            self._publish(self._fit_half_gap(moments, present, oriented), oriented)
            self.target_projection_ = None
            return
        self._publish(self._fit_by_means(moments, oriented), oriented)

    def _fit_by_means(self, moments: ClassMoments, prior: TaskPrior) -> Fit:
        """The crowd's direction, through the middle of the posterior class means."""
        means = self._posterior_means(moments, prior)
        blend = Blend(prior.mean_direction, np.zeros(()), np.zeros(()))
        return Fit(
            None,
            blend,
            means.midpoint * prior.feature_scale,
            prior.feature_scale,
            moments.counts,
            prior,
            self._played(prior),
            means,
            hints="_unlabelled" in self.__dict__,
        )

    def _fit_half_gap(self, moments: ClassMoments, present: NDArray[Any], prior: TaskPrior) -> Fit:
        """The crowd's direction, through a midpoint half a gap away from the class seen."""
        half_gap = np.asarray(prior.half_gap)
        seen = int(present[0] == self.classes_[1])
        step = half_gap * prior.feature_scale
        mean = moments.means[seen]
        midpoint = mean - step if seen else mean + step
        # A stand-in for the class not seen, so that the forecast has its gap and its noise.
        stand_in = 2.0 * midpoint - mean
        label = np.full(1, 1 - seen)
        mirrored = ClassMoments.of(
            stand_in[None, :],
            label,
            n_classes=len(moments.counts),
        )
        person = self._direction(moments + mirrored, prior)
        direction = prior.mean_direction
        gap = np.asarray(direction @ half_gap)
        blend = Blend(direction, np.zeros(()), np.zeros(()))
        return Fit(person, blend, midpoint, person.scale, moments.counts, prior, given_gap=gap)

    # -- agreement of target and prior ------------------------------------------------------

    def _compare_units(self, prior: TaskPrior | None) -> None:
        """Warn, once, of samples that cannot be in the units of the prior."""
        units = None if prior is None else prior.units
        if prior is None or units is None or "_told" in self.__dict__:
            return
        moments, mixed = self._moments, "_unlabelled" in self.__dict__
        if mixed:
            label = np.zeros(len(self._unlabelled), np.intp)
            moments = moments.beside(ClassMoments.of(self._unlabelled, label, n_classes=1))
        reasons = units.misfits(
            moments, prior.feature_names, in_a_row=bool(self.in_a_row), mixed=mixed
        )
        if reasons:
            self._told = True
            warn_of_units(prior, reasons, stacklevel=4)

    def _check_prior(self) -> TaskPrior | None:
        prior: Any = self.prior
        if hasattr(prior, "pairs") and not isinstance(prior, type):
            raise TypeError(
                f"prior is a {type(prior).__name__}, and this is a rule for two classes. Use "
                f"MulticlassBlend({type(self).__name__}(prior)), or the prior of one pair, "
                f"prior[{prior.pairs[0]}]."
            )
        if prior is not None and not isinstance(prior, TaskPrior):
            raise TypeError(f"prior must be a TaskPrior or None; got {type(prior).__name__}.")
        return self.prior

    def _both_classes(self, present: NDArray[Any], prior: TaskPrior | None) -> NDArray[Any] | None:
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

    def _oriented(self, prior: TaskPrior | None) -> TaskPrior | None:
        """The prior, turned round where the target's labels sort the other way."""
        return prior if prior is None or self._same_order() else prior.reversed()

    def _same_order(self) -> bool:
        return self.classes is None or bool(self.classes[1] == self.classes_[1])

    def _check_parameters(self, prior: TaskPrior | None) -> None:
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

    def _check_own_parameters(self, prior: TaskPrior | None) -> None:
        """Check the parameters that only this blend has."""
        raise NotImplementedError

    def _noise_form(self) -> str:
        return "unit"

    def _played(self, prior: TaskPrior | None) -> str | None:
        """Whose replay tells what forecasts are worth; None for settings that nobody played."""
        return None

    def _batched(self, crowd: Crowd | None) -> bool:
        """Whether several people, or pairs of classes, can be blended with their crowds at once."""
        return True

    def _blend(self, person: Direction, prior: TaskPrior) -> Blend:
        """One of the verbs."""
        raise NotImplementedError

    def _blend_with(self, person: Direction, crowd: Crowd) -> Blend:
        """The verb for a single crowd; of a batch of people, each may have one."""
        raise NotImplementedError

    def _set_blend(self, blend: Blend) -> None:
        """Set the public attributes that only this blend has."""
        raise NotImplementedError


def missing_labels(y: Any) -> NDArray[np.bool_] | None:
    """Which labels are None, NaN or masked; None if there is none of these, or no label at all."""
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


def refuse_missing(y: Any) -> None:
    """Refuse labels of which some are missing, where all are needed."""
    hidden = missing_labels(y)
    if hidden is not None:
        raise ValueError(
            f"{hidden.sum()} of {hidden.size} labels are missing, and fit needs them all. Use "
            "partial_fit, which takes samples without a label, or leave these out."
        )


def _no_moments(n_features: int) -> ClassMoments:
    """Moments of no sample."""
    return ClassMoments(
        np.zeros(2),
        np.zeros((2, n_features)),
        np.zeros((0, n_features)),
        True,
        np.zeros(n_features),
    )

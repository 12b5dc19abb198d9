"""Many classes: one blend for each pair, their probabilities coupled (equations 38 to 40).

All classes of the person share one covariance, so that the samples of every class count for that of
every pair, and one decomposition serves all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtri
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from crossfade._typing import Array, Places
from crossfade._validate import check_choice
from crossfade.blend._classifier import BlendClassifier
from crossfade.blend._coupling import couple_pairs, couple_rests, coupled_accuracy
from crossfade.blend._fit import Fit, check_level
from crossfade.blend._verb import Blend
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher import (
    NOTHING_COUNTS,
    ClassMoments,
    Direction,
    LabelledClassifier,
    Spectrum,
    check_shrinkage,
    learn_pairs,
    scores_of,
)
from crossfade.prior import STRATEGIES, MulticlassPrior, Pair, pairs_of, warn_of_units
from crossfade.risk import Outlook


class MulticlassBlend(LabelledClassifier):
    r"""Blends for many classes: one for each pair, their probabilities coupled.

    All classes of the target share one covariance, so that the samples of every class count for
    that of every pair.

    Parameters
    ----------
    estimator : ConvexBlendClassifier or PosteriorBlendClassifier
        The blend to fit to each pair. Its `prior` is None, a :class:`MulticlassPrior` of the same
        strategy, or, for two classes, a :class:`TaskPrior`. With ``on_missing_class="prior"``
        classes without a labelled sample come from the prior, if classes are set against each
        other.
    strategy : {"pairwise", "one-vs-rest"}, default="pairwise"
        Set classes against each other, or each against the rest.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    rules_ : dict
        The fitted blend of each pair of labels; the pair's second label is positive. Against the
        rest, the first label is None, and the rule's own labels are False and True.
    expected_accuracy_, expected_accuracy_error_ : float
        Forecast for new samples, all classes being equally likely, and its standard error; not for
        classes that are set against the rest, other than two.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if `X` had any.

    See Also
    --------
    MulticlassPrior : What a crowd knows of many classes.

    References
    ----------
    Wu, Lin and Weng (2004), Probability estimates for multi-class classification by pairwise
    coupling. Journal of Machine Learning Research 5.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade import MulticlassBlend, MulticlassPrior, PosteriorBlendClassifier, Task
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["rest", "speech", "walk"], 10)
    >>> shift = 2.0 * np.repeat(np.eye(3), 10, axis=0)
    >>> tasks = [Task(rng.normal(size=(30, 3)) + shift, y) for _ in range(5)]
    >>> blend = MulticlassBlend(PosteriorBlendClassifier(MulticlassPrior.from_tasks(tasks)))
    >>> few = [0, 1, 10, 11, 20, 21]
    >>> blend.fit((rng.normal(size=(30, 3)) + shift)[few], y[few]).predict(3.0 * np.eye(3))
    array(['rest', 'speech', 'walk'], dtype='<U6')
    """

    #: Labelled samples of each class.
    _counts: Array

    def __init__(self, estimator: BlendClassifier, strategy: str = "pairwise") -> None:
        self.estimator = estimator
        self.strategy = strategy

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn one blend for each pair from a few labelled samples of the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, in the user's units.
        y : array-like of shape (n_samples,)
            Labels of two classes or more.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How often each sample counts.

        Returns
        -------
        self
            The fitted estimator.
        """
        rows, labels, weight = self._check_fit_input(X, y, sample_weight)
        check_choice("strategy", self.strategy, STRATEGIES)
        if not isinstance(self.estimator, BlendClassifier):
            raise TypeError(
                "estimator must be a ConvexBlendClassifier or a PosteriorBlendClassifier; got "
                f"{type(self.estimator).__name__}."
            )
        prior: Any = self.estimator.prior
        if weight is not None:
            counted = weight > 0.0
            rows, labels, weight = rows[counted], labels[counted], weight[counted]
        present, label = np.unique(labels, return_inverse=True)
        if not isinstance(prior, MulticlassPrior) and len(present) <= 2:
            rule = clone(self.estimator)
            self._refuse_other_features(rule._check_prior(), rows.shape[1])
            rule.fit(rows, labels, sample_weight=weight)
            self.classes_ = rule.classes_
            pair = tuple(rule.classes_.tolist())
            self._pairs = _Pairs.of({pair: rule}, rule.midpoint_[None, :])
            self._counts = rule._moments.counts
            return self
        self._check_prior(prior, present, rows.shape[1])
        self.classes_ = present
        if prior is not None and len(present) < len(prior.classes):
            self.classes_ = np.array(prior.classes)
        self._refuse_other_rows(rows, prior)
        place = np.searchsorted(self.classes_, present)
        parts = self._moments_of_classes(rows, place[label], weight)
        moments = reduce(ClassMoments.beside, parts)
        means = _class_means(moments, self.classes_.tolist(), prior)
        pairs = pairs_of(self.classes_.tolist(), self.strategy)
        several = len(pairs) > 1 and bool(moments.counts.all())
        together = self._fit_together(parts, moments, pairs, prior) if several else None
        if together is None:
            rules = {}
            for pair in pairs:
                if pair[0] is None or len(pairs) == 1:
                    own = labels if pair[0] is not None else labels == pair[1]
                    rules[pair] = rule = self._rule(pair, prior)
                    rule._learn(rows, own, weight, rule._check_prior(), may_wait=False)
                else:
                    rules[pair] = self._fit_pair(pair, parts, means, prior)
            together = _Pairs.of(rules, means)
        self._pairs, self._counts = together, moments.counts
        units = None if prior is None else prior.units
        if units is not None:
            in_a_row = bool(self.estimator.in_a_row)
            reasons = units.misfits(moments, prior.feature_names, in_a_row=in_a_row)
            if reasons:
                warn_of_units(prior, reasons, stacklevel=3)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Likeliest label of each sample; of equally likely ones the first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        log_odds = self._log_odds(X)
        if log_odds.shape[1] == 1:
            # Here the rule itself decides: its probabilities may differ by less than rounding.
            place = (log_odds[:, 0] > 0.0).astype(np.intp)
        else:
            place = self._couple(log_odds).argmax(1)
        labels: NDArray[Any] = self.classes_[place]
        return labels

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probability of each class, coupled from those of the pairs (equation 39).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities; each row sums to one.
        """
        return self._couple(self._log_odds(X))

    def __getattr__(self, name: str) -> Any:
        if name in ("start", "partial_fit"):
            raise AttributeError(
                f"MulticlassBlend has no {name}: it learns from labelled samples of all classes at "
                "once, with fit. HierarchicalBlendClassifier, with a MulticlassPrior that holds "
                "class means, predicts before the first label and learns step by step."
            )
        # What a property has to say is said.
        return object.__getattribute__(self, name)

    @property
    def rules_(self) -> Mapping[Pair, BlendClassifier]:
        """The fitted blend of each pair of labels."""
        self._check_fitted()
        return self._pairs.rules

    @property
    def expected_accuracy_(self) -> float:
        """Forecast for new samples, all classes being equally likely (equation 40)."""
        pairs = self._forecasting_pairs()
        if len(pairs.fits) == 1:
            [rule] = pairs.rules.values()
            return rule.expected_accuracy_
        return float(pairs.law(pairs.laws).accuracy())

    @property
    def expected_accuracy_error_(self) -> float:
        """Standard error of the forecast: the average of those of the pairs."""
        return float(np.mean(self._forecasting_pairs().laws.error()))

    def expected_accuracy_interval(self, level: float = 0.9) -> tuple[float, float]:
        """Interval for this person's accuracy on new samples, as uncertain as the pairs are.

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
        pairs = self._forecasting_pairs()
        if len(pairs.fits) == 1:
            [rule] = pairs.rules.values()
            return rule.expected_accuracy_interval(level)
        lower, upper = pairs.law(pairs.laws).interval(level)
        return float(lower), float(upper)

    def _forecasting_pairs(self) -> _Pairs:
        self._check_fitted()
        if len(self._pairs.fits) > 1 and self.strategy == "one-vs-rest":
            raise AttributeError(
                "There is no forecast for classes that are set against the rest, which is not one "
                "normal class. Use strategy='pairwise'."
            )
        if len(self._pairs.fits) > 1:
            self._pairs.fits[0].warn()
        return self._pairs

    def _log_odds(self, X: ArrayLike) -> Array:
        self._check_fitted()
        rows = self._validated(self._compared(X, self.estimator.prior), order="C", reset=False)
        return self._pairs.log_odds(rows)

    def _couple(self, log_odds: Array) -> Array:
        if len(self.classes_) == 2:
            second = expit(log_odds[..., 0])
            return np.stack([1.0 - second, second], -1)
        if self.strategy == "pairwise":
            return couple_pairs(log_odds, len(self.classes_))
        return couple_rests(log_odds)

    def _check_fitted(self) -> None:
        check_is_fitted(
            self,
            "_pairs",
            msg="This %(name)s is not fitted yet; call fit with labelled samples first.",
        )

    # -- pairs ------------------------------------------------------------------------------

    def _moments_of_classes(
        self, rows: Array, label: Places, weight: Array | None
    ) -> list[ClassMoments]:
        """Moments of each class by itself."""
        parts = []
        for place in range(len(self.classes_)):
            mine = label == place
            own = rows[mine] if mine.any() else np.zeros((1, rows.shape[1]))
            part = ClassMoments.of(
                own,
                np.zeros(len(own), np.intp),
                None if weight is None or not mine.any() else weight[mine],
                n_classes=1,
            )
            if not mine.any():
                part = replace(part, counts=np.zeros(1))
            parts.append(part.rotated())
        return parts

    def _fit_together(
        self,
        parts: list[ClassMoments],
        moments: ClassMoments,
        pairs: list[Pair],
        prior: MulticlassPrior | None,
    ) -> _Pairs | None:
        """All pairs at once; None where they need one by one."""
        rule = self.estimator
        varies = bool(moments.deviation().any())
        if pairs[0][0] is None or moments.left < 1.0 or not varies:
            return None
        if prior is not None and prior[pairs[0]].isotropic:
            # Each costs little by itself; together they would need a matrix each.
            return None
        crowd = None if prior is None else prior.crowd_of_pairs(pairs)
        if not rule._batched(crowd):
            return None
        rule._check_parameters(None if prior is None else prior[pairs[0]])
        first, second = np.triu_indices(len(self.classes_), 1)
        known = [None] * len(pairs) if prior is None else [prior[pair] for pair in pairs]
        person = learn_pairs(
            moments,
            (first, second),
            check_shrinkage(rule.shrinkage),
            None if prior is None else prior.feature_scale,
            [None if one is None else one.within_spectrum for one in known],
            [
                None if one is None or not rule.in_a_row else one.neighbour_correlation
                for one in known
            ],
        )
        if not person.length.all():
            return None
        if crowd is None:
            blend = Blend(person.omega, person.rank, np.ones(len(pairs)))
        else:
            blend = rule._blend_with(person, crowd)
        length = np.linalg.vector_norm(blend.omega, axis=-1)
        if not length.all():
            return None
        directions = blend.omega / length[:, None]
        coef = directions / person.scale
        intercept = -np.vecdot(coef, person.midpoint)
        rules = _LazyRules(self, pairs, parts, person, blend)
        return _Pairs(coef, intercept, moments.means, directions, rules)

    def _rule(self, pair: Pair, prior: MulticlassPrior | None) -> BlendClassifier:
        rule: BlendClassifier = clone(self.estimator)
        if prior is not None:
            rule.set_params(prior=prior[pair])
        rule.n_features_in_ = self.n_features_in_
        return rule

    def _fit_pair(
        self, pair: Pair, parts: list[ClassMoments], means: Array, prior: MulticlassPrior | None
    ) -> BlendClassifier:
        """One pair; the other classes that were seen count for the covariance only."""
        rule = self._rule(pair, prior)
        mine = [self.classes_.tolist().index(name) for name in pair]
        own, rule._bystanders = _pair_of(parts, mine)
        if not own.counts.any() and prior is not None:
            # Neither class was seen: a sample half a gap before the middle of their means.
            first, second = means[mine]
            sample = (first + second) / 2.0 - _way(prior, *pair) / 2.0
            own = own + ClassMoments.of(sample[None, :], np.zeros(1, np.intp))
        rule._check_parameters(rule.prior)
        seen = np.array(pair)[own.counts > 0.0]
        rule._conclude(own, seen, np.array(pair), rule.prior)
        return rule

    def _crowd_answers(self, prior: MulticlassPrior) -> bool:
        """Whether the crowd stands in for classes that have no labelled sample."""
        word = self.estimator.on_missing_class
        known = all(one.half_gap is not None for one in prior.priors.values())
        return word == "prior" or (word == "auto" and self.strategy == "pairwise" and known)

    def _check_prior(self, prior: Any, present: NDArray[Any], n_features: int) -> None:
        """Refuse a prior of something else, and classes that neither it nor the samples know."""
        for name in ("classes", "class_prior"):
            if getattr(self.estimator, name) is not None:
                raise ValueError(
                    f"{name} of the estimator is about two classes, and here are more or a "
                    f"MulticlassPrior. Pass {name}=None; labels must be those of the prior."
                )
        if prior is None:
            return
        if not isinstance(prior, MulticlassPrior):
            raise TypeError(
                f"prior must be a MulticlassPrior or None for {len(present)} classes; got "
                f"{type(prior).__name__}. Build one with MulticlassPrior.from_tasks."
            )
        self._refuse_other_features(prior, n_features)
        if prior.strategy != self.strategy:
            raise ValueError(
                f"The prior was built with strategy={prior.strategy!r}, but here it is "
                f"{self.strategy!r}. Use the same for both."
            )
        known, seen = list(prior.classes), present.tolist()
        stranger = next((name for name in seen if name not in known), None)
        if stranger is not None:
            raise PriorMismatchError(
                f"The samples have class {stranger!r}, but the prior's classes are {known}. Rename "
                "the labels, leave these samples out, or build the prior from tasks that have it."
            )
        if not seen:
            raise ValueError(NOTHING_COUNTS)
        missing = next((name for name in known if name not in seen), None)
        if missing is not None and not self._crowd_answers(prior):
            raise ValueError(
                f"Class {missing!r} of the prior has no labelled sample; found samples of {seen}. "
                "Label at least 1 sample of it, or pass on_missing_class='prior' to the estimator."
            )
        if missing is not None and self.strategy == "one-vs-rest" and len(known) > 2:
            raise ValueError(
                f"Class {missing!r} has no labelled sample, and without it the rest of the others "
                "is another one. Label at least 1 sample of it, or use strategy='pairwise' with "
                "on_missing_class='prior'."
            )
        for pair in pairs_of(known, self.strategy):
            if pair not in prior.priors:
                raise ValueError(
                    f"No source has the pair of classes {pair}; the prior's pairs are "
                    f"{list(prior.pairs)}. Add tasks that have both, or leave out the samples of "
                    "one and build the prior without it."
                )


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Rules of all pairs, in the user's units."""

    coef: Array  # (P, d)
    intercept: Array  # (P,)
    means: Array  # (K, d): class means
    directions: Array  # (P, d): unit directions in scaled units
    rules: Mapping[Pair, BlendClassifier]

    @classmethod
    def of(cls, rules: dict[Pair, BlendClassifier], means: Array) -> _Pairs:
        """Those of rules that were fitted one by one."""
        fitted = list(rules.values())
        return cls(
            np.concatenate([rule.coef_ for rule in fitted]),
            np.concatenate([rule.intercept_ for rule in fitted]),
            means,
            np.stack([rule.projection_ for rule in fitted]),
            rules,
        )

    @cached_property
    def fits(self) -> list[Fit]:
        """What was learnt of each pair."""
        if isinstance(self.rules, _LazyRules):
            return self.rules.fits()
        return [rule._fit for rule in self.rules.values()]

    @property
    def sigma(self) -> Spectrum:
        """Covariance within the classes, as the first pair has it."""
        person = self.fits[0].person
        assert person is not None
        return person.sigma

    @cached_property
    def deviations(self) -> Array:
        """Deviation within the classes of each pair, in scores (P,)."""
        return np.array([float(fit.deviation) for fit in self.fits])

    @cached_property
    def laws(self) -> Outlook:
        """Law of the probit of the accuracy of each pair (P,)."""
        return stacked([fit.outlook for fit in self.fits])

    @cached_property
    def outlook(self) -> Outlook:
        """The same, each pair having lost the same proportion."""
        laws = self.laws
        if len(self.fits) == 1 or any(fit.person is None for fit in self.fits):
            return laws
        plain = np.array([_plain_score(fit) for fit in self.fits])
        return laws._replace(mean=_shared_loss(laws.mean, plain))

    @property
    def slopes(self) -> Array:
        """Slope of the log odds in the scores of each pair, near the threshold (P,)."""
        slopes: Array = 2.0 * np.maximum(self.outlook.mean, 1e-9) / self.deviations
        return slopes

    def law(self, laws: Outlook) -> Outlook:
        """Law for all classes together, of such ones for the pairs (equation 40).

        It is as wide as those of the pairs are on average.
        """
        first, second = np.triu_indices(len(self.means), 1)
        slopes, along = self.slopes, self.directions
        # Pairs share their covariance, so that any of them knows that of all scores.
        covariance = slopes[:, None] * (along @ self.sigma.apply(along).T) * slopes
        # A pair that is certain is taken for one that errs once in 1e15: scores must be numbers.
        score = ndtri(np.clip(laws.accuracy(), 1e-15, 1.0 - 1e-15))
        score = score * np.sqrt(np.diagonal(covariance))
        centres = slopes * (self.means @ self.coef.T + self.intercept)
        each = np.arange(len(slopes))
        centres[first, each], centres[second, each] = -score, score
        spread = laws.spread.mean()
        probit = ndtri(np.clip(coupled_accuracy(centres, covariance), 1e-15, 1.0 - 1e-15))
        mean = probit * np.sqrt(1.0 + spread**2)
        return Outlook(mean, spread, laws.dof.min(), laws.left_out.max())

    def log_odds(self, rows: Array) -> Array:
        """Log odds (n, P) of the second label of each pair."""
        scores = scores_of(rows, self.coef.T, self.intercept)
        if len(self.fits) == 1:
            [rule] = self.rules.values()
            return rule._log_odds(scores)
        with np.errstate(over="ignore"):
            x = scores / self.deviations
        return self.outlook.log_odds(x)


class _LazyRules(Mapping[Pair, BlendClassifier]):
    """The estimator of each pair, made when it is asked for."""

    def __init__(
        self,
        owner: MulticlassBlend,
        pairs: list[Pair],
        parts: list[ClassMoments],
        person: Direction,
        blend: Blend,
    ) -> None:
        self._template = owner.estimator
        self._prior: Any = owner.estimator.prior
        self._classes, self._pairs = owner.classes_, pairs
        self._n_features = owner.n_features_in_
        self._parts, self._learnt = parts, (person, blend)
        self._made: dict[Pair, BlendClassifier] = {}

    def __getitem__(self, pair: Pair) -> BlendClassifier:
        if pair not in self._made:
            self._made[pair] = self._make(pair)
        return self._made[pair]

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def _make(self, pair: Pair) -> BlendClassifier:
        place = self._pairs.index(pair) if pair in self._pairs else None
        if place is None:
            raise KeyError(f"There is no pair {pair}; the pairs are {self._pairs}.")
        rule: BlendClassifier = clone(self._template)
        prior = None if self._prior is None else self._prior[pair]
        rule.set_params(prior=prior)
        mine = [self._classes.tolist().index(name) for name in pair]
        rule._moments, rule._bystanders = _pair_of(self._parts, mine)
        rule.n_features_in_ = self._n_features
        rule.classes_, rule.prior_, rule._prior_given = np.array(pair), prior, prior
        rule._publish(self._fit(place), prior)
        return rule

    def fits(self) -> list[Fit]:
        """What was learnt of each pair."""
        return [self._fit(place) for place in range(len(self._pairs))]

    def _fit(self, place: int) -> Fit:
        pair = self._pairs[place]
        person, blend = (_one(part, place, len(self._pairs)) for part in self._learnt)
        prior = None if self._prior is None else self._prior[pair]
        if prior is not None and self._template.in_a_row:
            person = person._replace(correlation=prior.neighbour_correlation)
        mine = [self._classes.tolist().index(name) for name in pair]
        own, _ = _pair_of(self._parts, mine)
        verb = self._template._played(prior)
        return Fit(person, blend, person.midpoint, person.scale, own.counts, prior, verb)


def stacked(laws: list[Outlook]) -> Outlook:
    """Laws of all pairs, along a new first axis."""
    rows = [[np.broadcast_to(part, np.shape(law.mean)) for part in law] for law in laws]
    return Outlook(*(np.stack(parts) for parts in zip(*rows, strict=True)))


def _pair_of(
    parts: list[ClassMoments], mine: list[int]
) -> tuple[ClassMoments, ClassMoments | None]:
    """Moments of two classes, and of all others that have any sample."""
    first, second = mine
    others = [part for place, part in enumerate(parts) if place not in mine and part.counts.any()]
    return parts[first].beside(parts[second]), reduce(
        ClassMoments.beside, others
    ) if others else None


def _one(batch: Any, place: int, n_pairs: int) -> Any:
    """The part of a batch of pairs that belongs to one of them."""
    parts = {}
    for name, value in batch._asdict().items():
        if isinstance(value, Spectrum):
            parts[name] = value.of(place, n_pairs)
        elif isinstance(value, tuple):
            parts[name] = _one(value, place, n_pairs)
        elif name in ("scale", "alphas") or not isinstance(value, np.ndarray):
            parts[name] = value
        else:
            parts[name] = value[place]
    return type(batch)(**parts)


def _class_means(moments: ClassMoments, classes: list[Any], prior: MulticlassPrior | None) -> Array:
    """Mean of each class (K, d); one that was not seen is where the crowd's ways lead.

    From every class that was seen there is a way; the mean of a class not seen is the average of
    their ends.
    """
    means = moments.means.copy()
    seen = np.flatnonzero(moments.counts).tolist()
    for missing in np.flatnonzero(moments.counts == 0.0).tolist():
        if prior is not None:
            ends = [means[one] + _way(prior, classes[one], classes[missing]) for one in seen]
            means[missing] = np.mean(ends, axis=0)
    return means


def _way(prior: MulticlassPrior, start: Any, end: Any) -> Array:
    """Crowd's average way from the mean of one class to that of another, in the user's units."""
    pair = (start, end) if start < end else (end, start)
    half_gap = prior[pair].half_gap
    if half_gap is None:
        raise ValueError(
            f"The prior of the pair {pair} has no average half gap, which on_missing_class='prior' "
            "needs. Build it with MulticlassPrior.from_tasks."
        )
    way: Array = (2.0 if start < end else -2.0) * half_gap * prior.feature_scale
    return way


def _plain_score(fit: Fit) -> float:
    """Half the distance of the classes in deviations, optimism and all."""
    person, omega = fit.person, fit.blend.omega
    assert person is not None
    return float(np.vecdot(omega, person.nu) / np.linalg.norm(omega)) / float(fit.deviation)


def _shared_loss(honest: Array, plain: Array) -> Array:
    """Scores of all pairs, each having lost the same proportion to noise (equation 39).

    A pair whose own loss is uncertain could else lose all, and its classes be no longer told apart
    by their own rule.
    """
    if not (plain > 0.0).all():
        return honest
    scores: Array = plain * (honest.sum() / plain.sum())
    return scores

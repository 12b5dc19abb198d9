"""A few labelled samples of many classes in, coupled blends of all pairs of classes out."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtri
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from crossfade._validate import check_choice
from crossfade.blend._classifier import BlendClassifier
from crossfade.blend._coupling import couple_pairs, couple_rests, coupled_accuracy
from crossfade.fisher._direction import Samples
from crossfade.fisher._linear import LabelledClassifier
from crossfade.fisher._spectrum import invert
from crossfade.prior._multiclass import STRATEGIES, MulticlassPrior, Pair, pairs_of

Array = NDArray[np.float64]


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
        counted = weight > 0.0
        present = np.unique(labels[counted])
        if not isinstance(prior, MulticlassPrior) and len(present) <= 2:
            rule = clone(self.estimator)
            self._refuse_other_features(rule._check_prior(), rows.shape[1])
            rule.fit(rows, labels, sample_weight=weight)
            self.classes_, self.rules_ = rule.classes_, {tuple(rule.classes_.tolist()): rule}
            self._means, self._slopes = rule._target.means, np.array([rule._slope])
            return self
        self._check_prior(prior, present, rows.shape[1])
        self.classes_ = present
        if prior is not None and len(present) < len(prior.classes):
            self.classes_ = np.array(prior.classes)
        target = Few(rows[counted], labels[counted], weight[counted])
        self._means = _class_means(target, self.classes_.tolist(), prior)
        self.rules_ = {
            pair: self._fit_pair(pair, target, prior)
            for pair in pairs_of(self.classes_.tolist(), self.strategy)
        }
        self._slopes = _common_slopes(list(self.rules_.values()))
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
        if len(self._fitted_rules()) == 1:
            # Here the rule itself decides: its probabilities may differ by less than rounding.
            place = (self._log_odds(X)[:, 0] > 0.0).astype(np.intp)
        else:
            place = self.predict_proba(X).argmax(1)
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

    @property
    def expected_accuracy_(self) -> float:
        """Forecast for new samples, all classes being equally likely (equation 40)."""
        rules = self._forecasting_rules()
        if len(rules) == 1:
            return rules[0].expected_accuracy_
        first, second = np.triu_indices(len(self.classes_), 1)
        directions = np.stack([rule.projection_ for rule in rules])
        # Pairs share their covariance, so that any of them knows that of all scores.
        sigma = rules[0]._target.sigma
        slopes = self._slopes
        covariance = slopes[:, None] * (directions @ sigma.apply(directions).T) * slopes
        promised = np.array([rule.expected_accuracy_ for rule in rules])
        # A pair that is certain is taken for one that errs once in 1e15: scores must be numbers.
        score = ndtri(np.clip(promised, 1e-15, 1.0 - 1e-15)) * np.sqrt(np.diagonal(covariance))
        centres = self._log_odds_at(self._means)
        pairs = np.arange(len(rules))
        centres[first, pairs], centres[second, pairs] = -score, score
        return float(coupled_accuracy(centres, covariance))

    @property
    def expected_accuracy_error_(self) -> float:
        """Standard error of the forecast: the average of those of the pairs."""
        return float(np.mean([rule.expected_accuracy_error_ for rule in self._forecasting_rules()]))

    def _forecasting_rules(self) -> list[BlendClassifier]:
        rules = self._fitted_rules()
        if len(rules) > 1 and self.strategy == "one-vs-rest":
            raise AttributeError(
                "There is no forecast for classes that are set against the rest, which is not one "
                "normal class. Use strategy='pairwise'."
            )
        return rules

    def _log_odds(self, X: ArrayLike) -> Array:
        self._fitted_rules()
        return self._log_odds_at(validate_data(self, X, reset=False, dtype=np.float64))

    def _log_odds_at(self, rows: Array) -> Array:
        """Log odds of the second label of each pair, of shape (n_samples, n_rules)."""
        rules = self.rules_.values()
        coef = np.concatenate([rule.coef_ for rule in rules])
        intercept = np.concatenate([rule.intercept_ for rule in rules])
        log_odds: Array = self._slopes * (rows @ coef.T + intercept)
        return log_odds

    def _couple(self, log_odds: Array) -> Array:
        if len(self.classes_) == 2:
            second = expit(log_odds[..., 0])
            return np.stack([1.0 - second, second], -1)
        if self.strategy == "pairwise":
            return couple_pairs(log_odds, len(self.classes_))
        return couple_rests(log_odds)

    def _fitted_rules(self) -> list[BlendClassifier]:
        check_is_fitted(
            self, msg="This %(name)s is not fitted yet; call fit with labelled samples first."
        )
        return list(self.rules_.values())

    # -- one pair ---------------------------------------------------------------------------

    def _fit_pair(self, pair: Pair, target: Few, prior: MulticlassPrior | None) -> BlendClassifier:
        rule: BlendClassifier = clone(self.estimator)
        if prior is not None:
            rule.set_params(prior=prior[pair])
        X, y, weight = target
        if pair[0] is None:
            return rule.fit(X, y == pair[1], sample_weight=weight)
        mine = np.isin(y, pair)
        if not mine.all():
            _, others = np.unique(y[~mine], return_inverse=True)
            rule._bystanders = Samples(X[~mine], others + 2, weight[~mine])
        if prior is not None and not mine.any():
            # Neither class was seen: a sample half a gap before the middle of their means.
            first, second = self._means[np.isin(self.classes_, pair)]
            sample = (first + second) / 2.0 - _way(prior, *pair) / 2.0
            return rule.fit(sample[None, :], [pair[0]])
        return rule.fit(X[mine], y[mine], sample_weight=weight[mine])

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
            raise ValueError(
                f"The samples have class {stranger!r}, but the prior's classes are {known}. Rename "
                "the labels, leave these samples out, or build the prior from tasks that have it."
            )
        if not seen:
            raise ValueError("No sample counts: all weights are zero. Give samples that do count.")
        missing = next((name for name in known if name not in seen), None)
        if missing is not None and self.estimator.on_missing_class != "prior":
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


class Few(NamedTuple):
    """Labelled samples of a target.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Features in the user's units.
    y : ndarray of shape (n_samples,)
        Labels.
    weight : ndarray of shape (n_samples,)
        How often each sample counts; positive.
    """

    X: Array
    y: NDArray[Any]
    weight: Array


def _class_means(target: Few, classes: list[Any], prior: MulticlassPrior | None) -> Array:
    """Mean of each class; one that was not seen is where the crowd's ways lead.

    From every class that was seen there is a way; the mean of a class not seen is the average of
    their ends.
    """
    X, y, weight = target
    means = {
        name: np.average(X[y == name], axis=0, weights=weight[y == name])
        for name in np.unique(y).tolist()
    }
    ends = {
        missing: np.mean(
            [mean + _way(prior, seen, missing) for seen, mean in means.items()], axis=0
        )
        for missing in classes
        if prior is not None and missing not in means
    }
    return np.stack([(means | ends)[name] for name in classes])


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


def _common_slopes(rules: list[BlendClassifier]) -> Array:
    """Slopes of the log odds of all pairs, each having lost the same share to noise (equation 39).

    A pair whose own share is uncertain could else lose all, and its classes be no longer told apart
    by their own rule.
    """
    honest = np.array([rule._slope for rule in rules])
    if len(rules) == 1:
        return honest
    gaps, variances = np.transpose(
        [
            (
                rule.projection_ @ rule._target.nu,
                rule.projection_ @ rule._target.sigma.apply(rule.projection_),
            )
            for rule in rules
        ]
    )
    plain = 2.0 * gaps * invert(variances)
    if not (plain > 0.0).all():
        return honest
    slopes: Array = plain * (honest.sum() / plain.sum())
    return slopes

"""Are the estimators scikit-learn's in every respect? Its own checks, with no expected failure.

One configuration of each class, and each blend once more with a prior, since that is what people
use. A prior has to be as wide as X and to know the labels, which change from check to check: blends
with one build it when they are fitted, and are otherwise what they inherit.
"""

from itertools import combinations

import numpy as np
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    MulticlassBlend,
    MulticlassPrior,
    PosteriorBlendClassifier,
    TaskPrior,
)


def width_of(X):
    """Number of features; None for what is no table, which is for the estimator to refuse."""
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    return shape[1] if len(shape) == 2 and shape[1] > 0 else None


def prior_for(n_features, seed=0):
    """Twelve directions about the first axis."""
    W = 0.7 * np.random.default_rng(seed).standard_normal((12, n_features))
    return TaskPrior.from_projections(W + np.eye(n_features)[0], normalize=True)


class PriorOfItsOwn:
    """A blend of two classes that gets a prior when it is fitted."""

    def fit(self, X, y, sample_domain=None, sample_weight=None):
        return self._with_a_prior(
            super().fit, X, y, sample_domain=sample_domain, sample_weight=sample_weight
        )

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        return self._with_a_prior(
            super().partial_fit, X, y, classes=classes, sample_weight=sample_weight
        )

    def _with_a_prior(self, fit, X, y, **more):
        width = width_of(X)
        self.prior = None if width is None else prior_for(width)
        try:
            return fit(X, y, **more)
        finally:
            # Parameters are as they were given.
            self.prior = None


class ConvexWithPrior(PriorOfItsOwn, ConvexBlendClassifier):
    """The paper's blend with a prior."""


class PosteriorWithPrior(PriorOfItsOwn, PosteriorBlendClassifier):
    """The posterior blend with a prior."""


class MulticlassWithPrior(MulticlassBlend):
    """Blends of many classes with a prior."""

    def fit(self, X, y, sample_weight=None):
        width, labels = width_of(X), np.asarray(y)
        if np.asarray(sample_weight).shape == labels.shape != ():
            labels = labels[np.asarray(sample_weight) > 0.0]
        names = np.unique(labels).tolist()
        given = self.estimator
        # What is no label is for the estimator to refuse.
        if width is not None and 2 <= len(names) <= 10 and not np.iscomplexobj(labels):
            pairs = enumerate(combinations(names, 2))
            priors = {pair: prior_for(width, seed) for seed, pair in pairs}
            prior = MulticlassPrior("pairwise", tuple(names), priors)
            self.estimator = clone(given).set_params(prior=prior)
        try:
            return super().fit(X, y, sample_weight)
        finally:
            self.estimator = given


@parametrize_with_checks(
    [
        FisherDiscriminant(),
        ConvexBlendClassifier(),
        PosteriorBlendClassifier(),
        MulticlassBlend(PosteriorBlendClassifier()),
        ConvexWithPrior(),
        PosteriorWithPrior(),
        MulticlassWithPrior(PosteriorBlendClassifier()),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_prior_is_used():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 4)
    X = rng.standard_normal((12, 3)) + y[:, None]
    for blend in (ConvexWithPrior(), PosteriorWithPrior()):
        fitted = blend.fit(X[:8], y[:8])
        assert fitted.prior_.n_features == 3
        assert fitted.alpha_ < 1.0
        assert fitted.prior is None
    many = MulticlassWithPrior(PosteriorBlendClassifier()).fit(X, y)
    assert all(rule.prior_.n_tasks == 12 for rule in many.rules_.values())

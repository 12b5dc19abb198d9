"""Are the estimators scikit-learn's in every respect? Its own checks, with no expected failure.

Each estimator is checked without and with a prior. A prior has to be as wide as X and to know the
labels, which change from check to check: estimators with one get it when they are fitted, and are
otherwise what they inherit.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
)


@cache
def prior_for(n_features):
    """A prior with class means that does not know the names of its classes."""
    rng = np.random.default_rng(75)
    label = np.repeat([0, 1], 10)
    tasks = [
        Task(
            rng.normal(size=(20, n_features))
            + np.outer(label, np.eye(n_features)[0])
            + 0.5 * rng.normal(size=(2, n_features))[label],
            label,
        )
        for _ in range(12)
    ]
    prior = TaskPrior.from_tasks(tasks, rehearse=False)
    return replace(prior, space=replace(prior.space, classes=None))


class PriorOfItsOwn:
    """A blend that gets a prior when it is fitted."""

    def fit(self, X, y, sample_domain=None, sample_weight=None):
        return self._with_a_prior(
            super().fit, X, y, sample_domain=sample_domain, sample_weight=sample_weight
        )

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        return self._with_a_prior(
            super().partial_fit, X, y, classes=classes, sample_weight=sample_weight
        )

    def _with_a_prior(self, fit, X, y, **more):
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        # What is no table is for the estimator to refuse.
        wide = len(shape) == 2 and shape[1] > 0
        self.prior = prior_for(shape[1]) if wide else None
        try:
            return fit(X, y, **more)
        finally:
            # Parameters are as they were given.
            self.prior = None


class ConvexWithPrior(PriorOfItsOwn, ConvexBlendClassifier):
    """The convex blend with a prior."""


class PosteriorWithPrior(PriorOfItsOwn, PosteriorBlendClassifier):
    """The posterior blend with a prior."""


class HierarchicalWithPrior(PriorOfItsOwn, HierarchicalBlendClassifier):
    """The hierarchical blend with a prior."""


WITH_PRIOR = (ConvexWithPrior, PosteriorWithPrior, HierarchicalWithPrior)


# The checks have samples of any size and labels of any meaning, which no one prior can have.
@pytest.mark.filterwarnings("ignore::crossfade.exceptions.UnitsWarning")
@pytest.mark.filterwarnings("ignore::crossfade.exceptions.ContradictionWarning")
@pytest.mark.filterwarnings("ignore::crossfade.exceptions.CancellingSourcesWarning")
@parametrize_with_checks(
    [
        FisherDiscriminant(),
        ConvexBlendClassifier(),
        PosteriorBlendClassifier(),
        HierarchicalBlendClassifier(),
        *(kind() for kind in WITH_PRIOR),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", WITH_PRIOR)
def test_the_prior_is_used(kind):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 4)
    fitted = kind().fit(rng.standard_normal((8, 3)) + y[:, None], y)
    assert fitted.prior_.n_features == 3
    assert fitted.alpha_ < 1.0
    assert fitted.prior is None

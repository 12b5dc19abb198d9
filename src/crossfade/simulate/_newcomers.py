"""One simulated crowd and many newcomers, with the estimators as a user would call them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crossfade._typing import Progress, RandomState
from crossfade._validate import as_generator
from crossfade.blend import (
    ConvexBlendClassifier,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
)
from crossfade.exceptions import ContradictionWarning
from crossfade.fisher import FisherDiscriminant
from crossfade.prior import TaskPrior
from crossfade.simulate._generate import draw_directions, half_labels, simulate_tasks


def newcomers(
    *,
    n_newcomers: int = 200,
    n_sources: int = 100,
    n_target: int = 20,
    n_features: int = 10,
    concentration: float = 10.0,
    random_state: RandomState = None,
    on_progress: Progress | None = None,
) -> pd.DataFrame:
    """One crowd and many newcomers: the estimators as a user would call them.

    Parameters
    ----------
    n_newcomers : int, default=200
        Targets.
    n_sources : int, default=100
        Source tasks, with 100 samples each.
    n_target : int, default=20
        Labelled samples of each newcomer.
    n_features : int, default=10
        Dimension d.
    concentration : float, default=10.0
        Concentration kappa of the directions.
    random_state : int, Generator or None, default=None
        Seed.
    on_progress : callable or None, default=None
        Called with the newcomers finished and their total.

    Returns
    -------
    DataFrame
        A row for each newcomer and classifier: exact `accuracy`, and `expected` where there is a
        forecast.
    """
    rng = as_generator(random_state)
    model: dict[str, Any] = {"n_features": n_features, "concentration": concentration}
    prior = TaskPrior.from_tasks(simulate_tasks(n_sources, random_state=rng, **model))
    rivals = {
        "target": FisherDiscriminant(),
        "average-source": ConvexBlendClassifier(prior, alpha=0.0),
        "lda": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "convex": ConvexBlendClassifier(prior),
        "posterior": PosteriorBlendClassifier(prior),
        "hierarchical": HierarchicalBlendClassifier(prior),
    }
    nu = draw_directions(n_newcomers, n_features, concentration, random_state=rng)
    label = half_labels(n_target)
    rows = []
    for newcomer, gap in enumerate(nu):
        X = rng.standard_normal((n_target, n_features)) + (2.0 * label - 1.0)[:, None] * gap
        for name, rule in rivals.items():
            rule.fit(X, label)
            omega = rule.coef_[0] / np.linalg.norm(rule.coef_[0])
            offset = rule.intercept_[0] / np.linalg.norm(rule.coef_[0])
            sides = ndtr(np.array([omega @ gap + offset, omega @ gap - offset]))
            with warnings.catch_warnings():
                # Some newcomers are unlike the crowd: that is what is simulated.
                warnings.simplefilter("ignore", ContradictionWarning)
                promise = getattr(rule, "expected_accuracy_", np.nan)
            row = {"newcomer": newcomer, "classifier": name}
            rows.append(row | {"accuracy": float(sides.mean()), "expected": promise})
        if on_progress is not None:
            on_progress(newcomer + 1, n_newcomers)
    return pd.DataFrame(rows)

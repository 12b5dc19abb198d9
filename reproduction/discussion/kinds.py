"""Several kinds of people: a posterior blend with each kind, weighed by how well it explains.

The directions of the sources are cut into clusters. Each has a mean direction m and a scatter T. A
person's own direction w with noise S is normal about m with covariance T + S if the person is of
that kind, which gives the weights, and the blend with each kind is m + T (T + S)^-1 (w - m).
"""

from collections.abc import Sequence

import numpy as np
from scipy.stats import multivariate_normal
from sklearn.cluster import KMeans

from crossfade import FisherDiscriminant, Task, TaskPrior
from reproduction.algorithm import Array
from reproduction.discussion.common import Rule, directions_of, midpoint_rule

#: Fewest people of one kind.
_FEWEST = 5


class Kinds:
    """Posterior blend with several kinds of people, fitted to the sources."""

    def __init__(self, sources: Sequence[Task], n_kinds: int) -> None:
        self.scale, W = directions_of(sources)
        label = np.zeros(len(W), int)
        if n_kinds > 1:
            label = KMeans(n_kinds, n_init=10, random_state=0).fit_predict(W)
        sizes = np.bincount(label)
        kept = [kind for kind, size in enumerate(sizes) if size >= _FEWEST]
        self.priors = [TaskPrior.from_projections(W[label == kind]) for kind in kept]
        self.shares = sizes[kept] / sizes[kept].sum()

    def fit(self, X: Array, y: np.ndarray) -> Rule:
        """Rule of a person with these labelled windows."""
        own = FisherDiscriminant(feature_scale=self.scale).fit(X, y)
        w, noise = own.projection_, own.projection_covariance_
        parts, log_weights = [], np.log(self.shares)
        for place, prior in enumerate(self.priors):
            mean = prior.resultant_length * prior.mean_direction
            total = prior.scatter + noise
            parts.append(mean + prior.scatter @ np.linalg.solve(total, w - mean))
            log_weights[place] += multivariate_normal.logpdf(w, mean, total, allow_singular=True)
        weights = np.exp(log_weights - log_weights.max())
        return midpoint_rule(weights @ np.array(parts) / self.scale, X, y)

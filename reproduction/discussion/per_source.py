"""One coefficient for each source: sources that point like the person count for more.

With S the covariance within the classes and v the noise of the person's direction w, both in the
metric of S, source j has the weight exp(-|w - w_j|^2 / (2 p v)), and the blend goes from their
weighted mean towards w by what noise leaves. The penalty p on unequal weights is the one that would
have served the sources best, had each of them been the person in turn.
"""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import sqrtm

from crossfade import FisherDiscriminant, Task
from reproduction.algorithm import Array, unit
from reproduction.discussion.common import Rule, directions_of, midpoint_rule

#: Penalties to choose from; infinity leaves all weights equal.
_PENALTIES = (np.inf, 32.0, 8.0, 2.0)


class PerSource:
    """Convex blend with a weight for every source."""

    def __init__(self, sources: Sequence[Task]) -> None:
        self.scale, self.W = directions_of(sources)

    def fit(self, X: Array, y: np.ndarray) -> Rule:
        """Rule of a person with these labelled windows."""
        own = FisherDiscriminant(feature_scale=self.scale).fit(X, y)
        root = np.real(sqrtm(own.covariance_))
        noise = root @ own.projection_covariance_ @ root
        person, sources = root @ own.projection_, self.W @ root
        rng = np.random.default_rng(0)
        # Each source plays the person: its direction gets such noise, and the others are sources.
        noisy = sources + rng.multivariate_normal(np.zeros(len(root)), noise, len(sources))
        others = ~np.eye(len(sources), dtype=bool)
        reached = [
            np.vecdot(unit(_blend(noisy, sources, noise, penalty, others)), unit(sources)).mean()
            for penalty in _PENALTIES
        ]
        penalty = _PENALTIES[int(np.argmax(reached))]
        everyone = np.ones((1, len(sources)), bool)
        [omega] = _blend(person[None], sources, noise, penalty, everyone)
        return midpoint_rule(np.linalg.pinv(root) @ omega / self.scale, X, y)


def _blend(own: Array, sources: Array, noise: Array, penalty: float, admitted: Array) -> Array:
    """Blends (n, d) of directions (n, d) with the sources (J, d) that each may use."""
    variance = np.trace(noise)
    apart = ((own[:, None] - sources) ** 2).sum(-1)
    fit = np.where(admitted, -apart / (2.0 * penalty * variance), -np.inf)
    weights = np.exp(fit - fit.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    mean = weights @ sources
    spread = (weights * (sources**2).sum(1)).sum(1) - (mean**2).sum(1)
    alpha = spread / (spread + variance)
    return mean + alpha[:, None] * (own - mean)

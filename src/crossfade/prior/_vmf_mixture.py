"""Mixtures of von Mises-Fisher laws by expectation and maximisation (equations 32 and 34)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from crossfade.prior._vmf import concentrations, log_normalizer

Array = NDArray[np.float64]

#: Starting points of the EM, and the steps after which only the best is followed.
_N_STARTS, _FIRST_STEPS = 8, 15
#: Steps at most, and the gain in log likelihood below which there are no more.
_MOST_STEPS, _LEAST_GAIN = 300, 1e-3
#: Directions that agree more closely than this concentration are one direction.
_CLOSEST = 1e5
#: Tasks below which a component is empty; some component always has one or more.
_EMPTY = 0.5
#: Most components that are looked for, and fewest tasks to each of them on average.
_MOST_COMPONENTS, _FEWEST_TASKS = 10, 5
#: Fewest tasks of any component: the sums of a single one would be its direction.
_SMALLEST = 2.0


class Mixture(NamedTuple):
    """A fitted mixture.

    Attributes
    ----------
    responsibilities : ndarray of shape (n_tasks, n_components)
        Probability that each task belongs to each component, the largest component first.
    log_likelihood : float
        Logarithm of the likelihood of all directions.
    """

    responsibilities: Array
    log_likelihood: float

    def bic(self, n_features: int) -> float:
        """Bayesian information criterion, less being better (equation 34)."""
        n_tasks, n_components = self.responsibilities.shape
        # Each component has a direction, a concentration and a share; the shares sum to one.
        n_parameters = n_components * (n_features + 1) - 1
        return float(n_parameters * np.log(n_tasks) - 2.0 * self.log_likelihood)


class _Laws(NamedTuple):
    """Components of several mixtures: shares, unit directions and concentrations."""

    share: Array
    mu: Array
    kappa: Array


def choose_mixture(directions: Array, rng: np.random.Generator) -> Mixture:
    """Mixture with the number of components that has the least BIC (equation 34).

    The numbers are tried from one up, until two in a row bring nothing. No component has less than
    two tasks, since the sums of a single one would give its direction away.
    """
    n_tasks, n_features = directions.shape
    best = fit_mixture(directions, 1, rng)
    worse = 0
    for n_components in range(2, min(_MOST_COMPONENTS, n_tasks // _FEWEST_TASKS) + 1):
        fitted = fit_mixture(directions, n_components, rng)
        shared = fitted.responsibilities.sum(0).min() >= _SMALLEST
        if shared and fitted.bic(n_features) < best.bic(n_features):
            best, worse = fitted, 0
        else:
            worse += 1
        if worse == 2:
            break
    return best


def fit_mixture(directions: Array, n_components: int, rng: np.random.Generator) -> Mixture:
    """Mixture of so many components by expectation and maximisation (equation 32).

    Several starting points are followed at once, the best of them to its end. A component that is
    left with less than half a task is given up.
    """
    shares = _started(directions, n_components, _N_STARTS if n_components > 1 else 1, rng)
    heights = np.full(len(shares), -np.inf)
    for step in range(_MOST_STEPS):
        before = heights
        shares, heights = expected(directions, maximised(directions, shares))
        settled = bool((heights - before <= _LEAST_GAIN).all())
        if settled or step == _FIRST_STEPS:
            best = [int(heights.argmax())]
            shares, heights = shares[best], heights[best]
        if settled:
            break
    members = shares[0].sum(0)
    order = np.argsort(-members, kind="stable")[: int((members >= _EMPTY).sum())]
    return Mixture(shares[0][:, order], float(heights[0]))


def _started(
    directions: Array, n_components: int, n_starts: int, rng: np.random.Generator
) -> Array:
    """Tasks shared out to the nearest of some of them, which lie apart as in k-means++."""
    n_tasks = len(directions)
    centres = directions[rng.integers(n_tasks, size=(n_starts, 1))]
    for _ in range(1, n_components):
        nearest = (directions @ centres.mT).max(-1)
        chances = np.cumsum(np.maximum(1.0 - nearest, 1e-12), axis=-1)
        drawn = rng.random((n_starts, 1)) * chances[:, -1:]
        place = np.minimum((chances < drawn).sum(-1), n_tasks - 1)
        centres = np.concatenate([centres, directions[place][:, None]], 1)
    nearest = (directions @ centres.mT).argmax(-1)
    shares: Array = np.eye(n_components)[nearest]
    return shares


def maximised(directions: Array, shares: Array) -> _Laws:
    """Components that explain the tasks best, given whose they are (equation 32)."""
    n_features = directions.shape[1]
    members = shares.sum(-2)
    alive = members >= _EMPTY
    members = np.where(alive, members, 1.0)
    sums = shares.mT @ directions
    length = np.linalg.vector_norm(sums, axis=-1)
    mu = sums / np.maximum(length, 1e-300)[..., None]
    # So few tasks cannot be certain of their agreement, as in equation 12.
    unlike = np.maximum(1.0 / members**2, (n_features - 1.0) / _CLOSEST)
    resultant = np.minimum(length / members, np.sqrt(np.maximum(1.0 - unlike, 0.0)))
    kappa = concentrations(np.where(alive, resultant, 0.0), n_features)
    return _Laws(np.where(alive, members, 0.0) / len(directions), mu, kappa)


def expected(directions: Array, laws: _Laws) -> tuple[Array, Array]:
    """Whose the tasks are, given the components, and the log likelihood (equation 32)."""
    with np.errstate(divide="ignore"):
        offset = np.log(laws.share) + log_normalizer(laws.kappa, directions.shape[1])
    logs = directions @ (laws.kappa[..., None] * laws.mu).mT + offset[..., None, :]
    total = logsumexp(logs, axis=-1, keepdims=True)
    return np.exp(logs - total), total.sum((-2, -1))

"""Mixtures of von Mises-Fisher laws by expectation and maximisation (equations 32 and 34).

Components are round, people are not: a single crowd that differs more in some directions than in
others is cut in pieces by any criterion that compares round components with each other. More than
one component is therefore reported only where a parametric bootstrap rejects one anisotropic crowd
(McLachlan 1987, On bootstrapping the likelihood ratio test statistic for the number of components
in a normal mixture, Applied Statistics 36).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from crossfade.prior import _vmf
from crossfade.prior._vmf import VmfTable

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
#: Draws of one crowd, and those that may reach the gain of the directions: a level of 5 per cent.
_N_DRAWS, _MOST_REACHING = 99, 4
#: Draws that are fitted at once, and numbers that they may hold.
_AT_ONCE, _MOST_NUMBERS = 20, 2_000_000
#: Standard deviations above the mean of the draws beyond which no more of them are needed.
_CERTAIN = 6.0
#: Tasks that the bootstrap looks at, at most.
_MOST_TASKS = 500
#: Steps that give the draws the mean and covariance of the directions.
_MATCHING_STEPS = 5


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

    @property
    def n_components(self) -> int:
        """Number of components that are left."""
        return int(self.responsibilities.shape[1])

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


class _Functions(Protocol):
    """The two functions of the von Mises-Fisher law: exact, or from a table."""

    def concentrations(self, resultant_lengths: Array, n_features: int, /) -> Array:
        """Concentrations of maximum likelihood (equation 9)."""

    def log_normalizer(self, kappa: Array, n_features: int, /) -> Array:
        """Logarithm of the normalizer (equation 32)."""


def choose_mixture(directions: Array, rng: np.random.Generator) -> Mixture:
    """Mixture of least BIC (equation 34), unless one anisotropic crowd explains what it gains.

    No component has less than two tasks, since the sums of a single one would give its direction
    away.
    """
    best, one = _least_bic(directions, rng)
    if best.n_components > 1 and len(directions) > _MOST_TASKS:
        some = directions[rng.choice(len(directions), _MOST_TASKS, replace=False)]
        distinct = _is_distinct(some, *_least_bic(some, rng), rng)
    else:
        distinct = _is_distinct(directions, best, one, rng)
    return best if distinct else one


def _least_bic(directions: Array, rng: np.random.Generator) -> tuple[Mixture, Mixture]:
    """Mixture of least BIC, and that of one component.

    The numbers are tried from one up, until two in a row bring nothing.
    """
    n_tasks, n_features = directions.shape
    best = one = fit_mixture(directions, 1, rng)
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
    return best, one


# -- one anisotropic crowd ------------------------------------------------------------------


def _is_distinct(directions: Array, best: Mixture, one: Mixture, rng: np.random.Generator) -> bool:
    """Whether draws of one anisotropic crowd gain less likelihood by as many components.

    It is so if at most 4 of 99 draws gain as much, which happens in 5 per cent of single crowds.
    Drawing ends as soon as the answer is known.
    """
    n_components, n_features = best.n_components, directions.shape[1]
    # In one dimension any proportion of the two signs is that of one normal law.
    if n_components == 1 or n_features == 1:
        return False
    gain = best.log_likelihood - one.log_likelihood
    at_once = int(np.clip(_MOST_NUMBERS // directions.size, 1, _AT_ONCE))
    drawn = np.empty(0)
    while drawn.size < _N_DRAWS:
        draws = one_crowd(directions, min(at_once, _N_DRAWS - drawn.size), rng)
        drawn = np.append(drawn, likelihood_gains(draws, n_components, rng))
        if int((drawn >= gain).sum()) > _MOST_REACHING:
            return False
        if drawn.size >= _AT_ONCE and gain > drawn.mean() + _CERTAIN * drawn.std():
            return True
    return True


def one_crowd(directions: Array, n_draws: int, rng: np.random.Generator) -> Array:
    """Draws of as many directions from one anisotropic crowd, of shape (n_draws, n_tasks, d).

    Normal vectors of unit length, given the mean and covariance before that: 1 a' + Q A with Q
    uniform among matrices whose columns are orthonormal and sum to zero. At first a is the mean of
    the directions, and A = S V' of the singular values U S V' of what is left of them. Unit length
    changes both moments; a and A move until those of all draws are right.
    """
    n_tasks = len(directions)
    mean = directions.mean(0)
    _, size, axes = np.linalg.svd(directions - mean, full_matrices=False)
    rank = min(int((size > 1e-7 * max(size[0], 1e-7)).sum()), n_tasks - 1)
    size, axes = size[:rank], axes[:rank]
    normal = rng.standard_normal((n_draws, n_tasks, rank))
    frames, triangle = np.linalg.qr(normal - normal.mean(1, keepdims=True))
    frames *= np.where(np.diagonal(triangle, axis1=-2, axis2=-1) < 0.0, -1.0, 1.0)[:, None]
    centre, root = mean, np.eye(rank)
    units = _of_unit_length(centre + frames @ (root * size) @ axes)
    for _ in range(_MATCHING_STEPS):
        moved = units.mean((0, 1))
        apart = ((units - moved) @ axes.T / size).reshape(-1, rank)
        values, basis = np.linalg.eigh(apart.T @ apart / n_draws)
        # A step does not change any standard deviation more than twofold.
        root = root @ (basis / np.sqrt(np.clip(values, 0.25, 4.0))) @ basis.T
        centre = centre + mean - moved
        units = _of_unit_length(centre + frames @ (root * size) @ axes)
    return units


def _of_unit_length(vectors: Array) -> Array:
    length = np.linalg.vector_norm(vectors, axis=-1, keepdims=True)
    units: Array = vectors / np.maximum(length, 1e-300)
    return units


def likelihood_gains(draws: Array, n_components: int, rng: np.random.Generator) -> Array:
    """Log likelihood of so many components less that of one, (n_draws,).

    Draws are of shape (n_draws, n_tasks, d).
    """
    table = VmfTable.of(draws.shape[-1])
    _, one = _fitted(draws, 1, rng, table)
    _, several = _fitted(draws, n_components, rng, table)
    gains: Array = several - one
    return gains


# -- expectation and maximisation -----------------------------------------------------------


def fit_mixture(directions: Array, n_components: int, rng: np.random.Generator) -> Mixture:
    """Mixture of so many components by expectation and maximisation (equation 32).

    Several starting points are followed at once, the best of them to its end. A component that is
    left with less than half a task is given up.
    """
    [shares], [height] = _fitted(directions[None], n_components, rng, _vmf)
    members = shares.sum(0)
    order = np.argsort(-members, kind="stable")[: int((members >= _EMPTY).sum())]
    return Mixture(shares[:, order], float(height))


def _fitted(
    samples: Array, n_components: int, rng: np.random.Generator, functions: _Functions
) -> tuple[Array, Array]:
    """Responsibilities and log likelihoods of a mixture in each of many samples of directions.

    Shapes are (n_samples, n_tasks, d), (n_samples, n_tasks, n_components) and (n_samples,).
    """
    n_samples, n_tasks, _ = samples.shape
    shares = _started(samples, n_components, _N_STARTS if n_components > 1 else 1, rng)
    heights = np.full(shares.shape[:2], -np.inf)
    found = np.empty((n_samples, n_tasks, n_components)), np.empty(n_samples)
    left, followed = np.arange(n_samples), samples[:, None]
    for step in range(_MOST_STEPS):
        before = heights
        shares, heights = expected(
            followed, maximised(followed, shares, functions), functions=functions
        )
        settled = (heights - before <= _LEAST_GAIN).all(-1) | (step == _MOST_STEPS - 1)
        if settled.any() or step == _FIRST_STEPS:
            place, best = np.arange(len(left)), heights.argmax(-1)
            found[0][left], found[1][left] = shares[place, best], heights[place, best]
        if step == _FIRST_STEPS:
            shares, heights = found[0][left][:, None], found[1][left][:, None]
        if settled.all():
            break
        if settled.any():
            on = ~settled
            left, followed, shares, heights = left[on], followed[on], shares[on], heights[on]
    return found


def _started(samples: Array, n_components: int, n_starts: int, rng: np.random.Generator) -> Array:
    """Tasks shared out to the nearest of some of them, which lie apart as in k-means++.

    Of shape (n_samples, n_starts, n_tasks, n_components).
    """
    n_samples, n_tasks, _ = samples.shape
    each = np.arange(n_samples)[:, None]
    centres = samples[each, rng.integers(n_tasks, size=(n_samples, n_starts))][:, :, None]
    for _ in range(1, n_components):
        nearest = (samples[:, None] @ centres.mT).max(-1)
        chances = np.cumsum(np.maximum(1.0 - nearest, 1e-12), axis=-1)
        drawn = rng.random((n_samples, n_starts, 1)) * chances[..., -1:]
        place = np.minimum((chances < drawn).sum(-1), n_tasks - 1)
        centres = np.concatenate([centres, samples[each, place][:, :, None]], 2)
    nearest = (samples[:, None] @ centres.mT).argmax(-1)
    shares: Array = np.eye(n_components)[nearest]
    return shares


def maximised(directions: Array, shares: Array, functions: _Functions = _vmf) -> _Laws:
    """Components that explain the tasks best, given whose they are (equation 32)."""
    n_tasks, n_features = directions.shape[-2:]
    members = shares.sum(-2)
    alive = members >= _EMPTY
    members = np.where(alive, members, 1.0)
    sums = shares.mT @ directions
    length = np.linalg.vector_norm(sums, axis=-1)
    mu = sums / np.maximum(length, 1e-300)[..., None]
    # So few tasks cannot be certain of their agreement, as in equation 12.
    unlike = np.maximum(1.0 / members**2, (n_features - 1.0) / _CLOSEST)
    resultant = np.minimum(length / members, np.sqrt(np.maximum(1.0 - unlike, 0.0)))
    kappa = functions.concentrations(np.where(alive, resultant, 0.0), n_features)
    return _Laws(np.where(alive, members, 0.0) / n_tasks, mu, kappa)


def expected(directions: Array, laws: _Laws, functions: _Functions = _vmf) -> tuple[Array, Array]:
    """Whose the tasks are, given the components, and the log likelihood (equation 32)."""
    with np.errstate(divide="ignore"):
        offset = np.log(laws.share) + functions.log_normalizer(laws.kappa, directions.shape[-1])
    logs = directions @ (laws.kappa[..., None] * laws.mu).mT + offset[..., None, :]
    highest = logs.max(-1, keepdims=True)
    densities = np.exp(logs - highest)
    total = densities.sum(-1, keepdims=True)
    return densities / total, (highest + np.log(total)).sum((-2, -1))

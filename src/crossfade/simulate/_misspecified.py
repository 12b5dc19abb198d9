"""Ways in which the model can be wrong, and the accuracy of every rule under each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crossfade._typing import Array
from crossfade.simulate._generate import draw_directions
from crossfade.simulate._rules import Rules, crowd_of, rules_of


class World(NamedTuple):
    """Targets of one scenario, and all that their accuracies depend on.

    Attributes
    ----------
    X : ndarray of shape (n_targets, n_samples, n_features)
        Labelled samples.
    sources : ndarray of shape (n_targets, n_sources, n_features)
        Directions of the crowd.
    nu : ndarray of shape (n_targets, n_features)
        Half gaps.
    middle : ndarray of shape (n_targets, n_features)
        True midpoints.
    sigma : tuple of two ndarrays of shape (n_targets, n_features, n_features)
        Covariance of each class.
    cdf : callable
        Distribution function of a standardised projection.
    """

    X: Array
    sources: Array
    nu: Array
    middle: Array
    sigma: tuple[Array, Array]
    cdf: Callable[[Array], Array]


class Parameters(NamedTuple):
    """Size of a scenario, and how far it departs from the model.

    Attributes
    ----------
    n_features, n_sources, n_target : int
        Dimension, source tasks, labelled samples.
    concentration : float
        Concentration of the directions.
    freedom : float
        Degrees of freedom of the Wishart covariances, as a multiple of the dimension.
    tails : float
        Degrees of freedom of the heavy-tailed samples; above 2.
    ratio : float
        How many times the variance of the second class exceeds that of the first.
    shift : float
        Distance of the midpoint from the origin.
    correlation : float
        Correlation of neighbouring samples.
    """

    n_features: int = 10
    n_sources: int = 100
    n_target: int = 20
    concentration: float = 10.0
    freedom: float = 2.0
    tails: float = 3.0
    ratio: float = 4.0
    shift: float = 1.0
    correlation: float = 0.8


def build_world(
    scenario: str,
    size: Parameters,
    label: NDArray[np.intp],
    n_targets: int,
    rng: np.random.Generator,
) -> World:
    """Draw targets of a scenario.

    Parameters
    ----------
    scenario : str
        One of the names in ``_scenarios.py``.
    size : Parameters
        Size and departures.
    label : ndarray of shape (n_samples,)
        Classes of the samples.
    n_targets : int
        How many targets.
    rng : Generator
        Random numbers.

    Returns
    -------
    World
        The targets.
    """
    d = size.n_features
    total = n_targets * (size.n_sources + 1)
    directions = draw_directions(total, d, size.concentration, random_state=rng)
    if scenario == "two clusters" and d > 1:
        second = draw_directions(
            total, d, size.concentration, mean_direction=np.eye(d)[1], random_state=rng
        )
        directions = np.where(rng.random((total, 1)) < 0.5, directions, second)
    directions = directions.reshape(n_targets, size.n_sources + 1, d)
    omega, sources = directions[:, 0], directions[:, 1:]
    if scenario == "stranger":
        omega = draw_directions(n_targets, d, 0.0, random_state=rng)
    noise = rng.standard_normal((n_targets, label.size, d))
    sigma = np.broadcast_to(np.eye(d), (n_targets, d, d))
    each = (sigma, sigma)
    cdf: Callable[[Array], Array] = ndtr
    middle = np.zeros((n_targets, d))
    if scenario == "wishart":
        freedom = max(round(size.freedom * d), d)
        roots = rng.standard_normal((n_targets, freedom, d)) / np.sqrt(freedom)
        sigma = roots.mT @ roots
        each = (sigma, sigma)
        noise = noise @ np.linalg.cholesky(sigma).mT
    elif scenario == "heavy tails":
        chi = rng.chisquare(size.tails, (n_targets, label.size, 1))
        # Unit variance, so that only the tails differ.
        noise = noise * np.sqrt((size.tails - 2.0) / chi)
        wide = np.sqrt(size.tails / (size.tails - 2.0))

        def cdf(score: Array) -> Array:
            probability: Array = stdtr(size.tails, score * wide)
            return probability

    elif scenario == "unequal":
        low = 2.0 / (1.0 + size.ratio)
        scales = np.array([low, low * size.ratio])
        noise = noise * np.sqrt(scales)[label][:, None]
        each = (sigma * scales[0], sigma * scales[1])
    elif scenario == "shifted":
        middle = size.shift * draw_directions(n_targets, d, 0.0, random_state=rng)
    elif scenario == "correlated":
        noise = _correlated(noise, label, size.correlation)
    nu = np.matvec(sigma, omega)
    X = middle[:, None] + noise + (2.0 * label - 1.0)[:, None] * nu[:, None]
    return World(X, sources, nu, middle, each, cdf)


def _correlated(noise: Array, label: NDArray[np.intp], correlation: float) -> Array:
    """First-order autoregression along the samples of each class, of unit variance."""
    noise = noise.copy()
    fresh = np.sqrt(1.0 - correlation**2)
    for place in range(1, label.size):
        if label[place] == label[place - 1]:
            noise[:, place] = correlation * noise[:, place - 1] + fresh * noise[:, place]
    return noise


def accuracies(
    world: World, label: NDArray[np.intp], rng: np.random.Generator, step: float, n_draws: int
) -> dict[Any, Array]:
    """Accuracy, alpha and forecast of every rule for every target.

    All rules pass through the midpoint of the target's samples, but for those named "origin",
    which take the paper's assumption at its word.

    Parameters
    ----------
    world : World
        The targets.
    label : ndarray of shape (n_samples,)
        Classes of the samples.
    rng : Generator
        Random numbers for Algorithm 1.
    step : float
        Step of Algorithm 1's grid.
    n_draws : int
        Draws of Algorithm 1 at each alpha.

    Returns
    -------
    dict of ndarray of shape (n_targets, 3)
        By the name of the classifier.
    """
    rules, target = rules_of(
        world.X, label, crowd_of(world.sources), rng, step=step, n_draws=n_draws
    )
    middle = target.midpoint
    result = {name: _columns(world, rule, middle) for name, rule in rules.items()}
    result["paper, origin"] = _columns(world, rules["paper"], np.zeros_like(middle))
    none = np.full(len(middle), np.nan)
    lda = [
        LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X, label) for X in world.X
    ]
    omega = np.array([fitted.coef_[0] for fitted in lda])
    offset = np.array([fitted.intercept_[0] for fitted in lda])
    accuracy = _accuracy(world, omega, -offset)
    result["lda"] = np.column_stack([accuracy, np.ones_like(none), none])
    return result


def _columns(world: World, rule: Rules, middle: Array) -> Array:
    accuracy = _accuracy(world, rule.omega, np.vecdot(rule.omega, middle))
    return np.column_stack([accuracy, rule.alpha, rule.expected])


def _accuracy(world: World, omega: Array, threshold: Array) -> Array:
    """Exact balanced accuracy of ``omega @ x > threshold``."""
    right: Array = np.zeros(len(omega))
    for sign, sigma in zip((-1.0, 1.0), world.sigma, strict=True):
        centre = np.vecdot(omega, world.middle + sign * world.nu) - threshold
        deviation = np.sqrt(np.vecdot(omega, np.matvec(sigma, omega)))
        right += world.cdf(sign * centre / deviation) / 2.0
    return right

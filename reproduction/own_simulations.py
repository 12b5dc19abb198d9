"""Two simulations of our own: which rule survives a wrong model, and what newcomers get.

Rules are the library's estimators, as a user would call them. Accuracies are exact.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtr
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    TaskPrior,
)
from crossfade.simulate import draw_directions, simulate_tasks
from reproduction.algorithm import Array
from reproduction.simulations import half_labels, library_rules, means, run

#: What each scenario does to the model.
SCENARIOS = {
    "as assumed": "the paper's model holds",
    "wishart": "every target has a covariance of its own, drawn from a Wishart distribution",
    "heavy tails": "samples follow a multivariate t distribution with 3 degrees of freedom",
    "unequal": "the second class has four times the variance",
    "shifted": "the midpoint is at a distance of 1 from the origin",
    "correlated": "neighbouring samples have a correlation of 0.8",
    "two clusters": "directions have two modes at a right angle",
    "stranger": "the target's direction has nothing to do with the crowd's",
}
_D, _KAPPA, _N_SOURCES = 10, 10.0, 100
_TAILS, _RATIO, _CORRELATION = 3.0, 4.0, 0.8


class World(NamedTuple):
    """One target of a scenario, and what its accuracies depend on."""

    X: Array  # (n, d)
    sources: Array  # (n_sources, d): directions
    nu: Array  # (d,): half gap
    middle: Array  # (d,): midpoint
    sigma: tuple[Array, Array]  # covariance (d, d) of each class
    cdf: Callable[[Array], Array] = ndtr  # of a standardised projection

    def accuracy(self, omega: Array, intercept: float) -> float:
        """Exact balanced accuracy of ``omega @ x + intercept > 0``."""
        right = 0.0
        for sign, sigma in zip((-1.0, 1.0), self.sigma, strict=True):
            centre = omega @ (self.middle + sign * self.nu) + intercept
            right += float(self.cdf(sign * centre / np.sqrt(omega @ sigma @ omega))) / 2.0
        return right


def build_world(scenario: str, y: np.ndarray, rng: np.random.Generator) -> World:
    """Draw one target with samples of the given labels, and its sources."""
    directions = draw_directions(_N_SOURCES + 1, _D, _KAPPA, random_state=rng)
    if scenario == "two clusters":
        other = np.roll(draw_directions(_N_SOURCES + 1, _D, _KAPPA, random_state=rng), 1, axis=1)
        directions = np.where(rng.random((_N_SOURCES + 1, 1)) < 0.5, directions, other)
    omega = directions[0]
    if scenario == "stranger":
        [omega] = draw_directions(1, _D, 0.0, random_state=rng)
    noise, sigma, middle = rng.standard_normal((y.size, _D)), np.eye(_D), np.zeros(_D)
    each, cdf = (sigma, sigma), ndtr
    if scenario == "wishart":
        root = rng.standard_normal((2 * _D, _D)) / np.sqrt(2 * _D)
        sigma = root.T @ root
        each, noise = (sigma, sigma), noise @ np.linalg.cholesky(sigma).T
    elif scenario == "heavy tails":
        # Scaled to unit variance, so that only the tails differ.
        noise *= np.sqrt((_TAILS - 2.0) / rng.chisquare(_TAILS, (y.size, 1)))
        cdf = _wide_t
    elif scenario == "unequal":
        low = 2.0 / (1.0 + _RATIO)
        each = (low * sigma, low * _RATIO * sigma)
        noise *= np.sqrt(np.array([low, low * _RATIO]))[y][:, None]
    elif scenario == "shifted":
        [middle] = draw_directions(1, _D, 0.0, random_state=rng)
    elif scenario == "correlated":
        for place in np.flatnonzero(y[1:] == y[:-1]) + 1:
            fresh = np.sqrt(1.0 - _CORRELATION**2)
            noise[place] = _CORRELATION * noise[place - 1] + fresh * noise[place]
    nu = sigma @ omega
    X = middle + noise + (2.0 * y - 1.0)[:, None] * nu
    return World(X, directions[1:], nu, middle, each, cdf)


def _wide_t(score: Array) -> Array:
    """Distribution function of a t variable of unit variance."""
    probability: Array = stdtr(_TAILS, score * np.sqrt(_TAILS / (_TAILS - 2.0)))
    return probability


def misspecified(
    scenarios: Sequence[str] = tuple(SCENARIOS),
    n_repeats: int = 200,
    n_jobs: int = 1,
    seed: int = 0,
    n_samples: int = 20,
) -> pd.DataFrame:
    """Accuracy of every rule, with the model wrong in one way at a time."""
    work = partial(_misspecified_piece, y=half_labels(n_samples))
    results = run(work, list(scenarios), n_repeats, n_jobs, seed)
    return pd.DataFrame(
        {"scenario": scenario, "classifier": name} | means(["accuracy"], values)
        for scenario, result in zip(scenarios, results, strict=True)
        for name, values in result.items()
    )


def _misspecified_piece(
    scenario: str, n_repeats: int, rng: np.random.Generator, y: np.ndarray
) -> dict[str, Array]:
    """Accuracies (n_repeats, 1) of every rule."""
    rows = []
    for _ in range(n_repeats):
        world = build_world(scenario, y, rng)
        prior = TaskPrior.from_projections(world.sources)
        rules = library_rules(prior, rng)
        rules["lda"] = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        found = {}
        with warnings.catch_warnings():
            # A wrong crowd contradicts the person's own samples.
            warnings.simplefilter("ignore", UserWarning)
            for name, rule in rules.items():
                rule.fit(world.X, y)
                found[name] = world.accuracy(rule.coef_[0], rule.intercept_[0])
        # The paper assumes that the midpoint is the origin.
        found["optimal, origin"] = world.accuracy(rules["optimal"].coef_[0], 0.0)
        rows.append(found)
    return {name: np.array([[row[name]] for row in rows]) for name in rows[0]}


def newcomers(
    n_newcomers: int = 200, n_samples: int = 20, kappa: float = _KAPPA, seed: int = 0
) -> pd.DataFrame:
    """One crowd of 100 source tasks, many newcomers, and the estimators as a user calls them.

    A row for each newcomer and classifier: exact `accuracy`, and `expected`, the forecast.
    """
    rng = np.random.default_rng(seed)
    model: dict[str, Any] = {"n_features": _D, "concentration": kappa}
    prior = TaskPrior.from_tasks(simulate_tasks(_N_SOURCES, random_state=rng, **model))
    rules = {
        "target": FisherDiscriminant(),
        "average-source": ConvexBlendClassifier(prior, alpha=0.0),
        "lda": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "convex": ConvexBlendClassifier(prior),
        "posterior": PosteriorBlendClassifier(prior),
        "hierarchical": HierarchicalBlendClassifier(prior),
    }
    y, rows, same = half_labels(n_samples), [], (np.eye(_D), np.eye(_D))
    for newcomer, nu in enumerate(draw_directions(n_newcomers, _D, kappa, random_state=rng)):
        X = rng.standard_normal((n_samples, _D)) + (2.0 * y - 1.0)[:, None] * nu
        world = World(X, np.empty((0, _D)), nu, np.zeros(_D), same)
        for name, rule in rules.items():
            with warnings.catch_warnings():
                # Some newcomers are unlike the crowd: that is what is simulated.
                warnings.simplefilter("ignore", UserWarning)
                rule.fit(X, y)
                promise = getattr(rule, "expected_accuracy_", np.nan)
            accuracy = world.accuracy(rule.coef_[0], rule.intercept_[0])
            row = {"newcomer": newcomer, "classifier": name}
            rows.append(row | {"accuracy": accuracy, "expected": promise})
    return pd.DataFrame(rows)

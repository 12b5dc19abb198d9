"""The paper's methods: pseudo-inverse, raw units, balanced sources, a grid of 0.1 for alpha."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crossfade.fisher import Direction, learn_direction
from crossfade.risk import BlendLaw, least_risk
from crossfade.study._batch import Array, Batch
from crossfade.study._scores import Columns, measured
from crossfade.study._sources import Sources

Rng = np.random.Generator

#: The paper's grid of alphas, and its draws at each.
GRID = np.linspace(0.0, 1.0, 11)
_N_DRAWS = 100


def run_target(sources: Sources, batch: Batch, rng: Rng) -> Columns:
    return _printed(batch, as_printed(batch).omega, 1.0)


def run_average_source(sources: Sources, batch: Batch, rng: Rng) -> Columns:
    return _printed(batch, np.tile(sources.paper_crowd.mean_direction, (len(batch), 1)), 0.0)


def run_paper(sources: Sources, batch: Batch, rng: Rng) -> Columns:
    own, crowd = as_printed(batch), sources.paper_crowd
    # As the estimator draws, but in those directions alone in which anything varies.
    law = BlendLaw(own, crowd.mean_direction, crowd.psi("authors")).within_reach()
    alpha = least_risk(law, GRID, "monte_carlo", _N_DRAWS, rng).alpha
    return _printed(batch, _blend(own, crowd.mean_direction, alpha), alpha)


def run_oracle(sources: Sources, batch: Batch, rng: Rng) -> Columns:
    scores = _scores_on_grid(sources, batch)
    best = _best_on(scores, batch.splits.truth)
    return _rows(batch, scores[np.arange(len(best)), best], GRID[best])


def run_oracle_honest(sources: Sources, batch: Batch, rng: Rng) -> Columns:
    scores = _scores_on_grid(sources, batch)
    found, alphas = np.empty((len(batch), scores.shape[-1])), []
    # Each half of the test windows is predicted with the alpha that is best on the other.
    for half, other in (
        (slice(0, None, 2), slice(1, None, 2)),
        (slice(1, None, 2), slice(0, None, 2)),
    ):
        best = _best_on(scores[..., other], batch.splits.truth[other])
        found[:, half] = scores[np.arange(len(best)), best, half]
        alphas.append(GRID[best])
    return _rows(batch, found, np.mean(alphas, axis=0))


def _scores_on_grid(sources: Sources, batch: Batch) -> Array:
    """Scores (n_splits, n_alphas, n_test) of the paper's blend with each alpha of its grid."""
    own, crowd = as_printed(batch), sources.paper_crowd
    blends = np.stack([_blend(own, crowd.mean_direction, alpha) for alpha in GRID.tolist()], 1)
    return batch.scores(blends, batch.midpoint())


def _best_on(scores: Array, truth: NDArray[np.intp]) -> NDArray[np.intp]:
    """Place (n_splits,) of the best alpha on windows of known classes, the largest among these."""
    positive, right = scores > 0.0, np.ones(scores.shape[:2])
    for name, sign in ((0, -1.0), (1, 1.0)):
        if (truth == name).any():
            right = right + sign * positive[..., truth == name].mean(-1)
    # Shares of windows differ by more than this, or are equal but for rounding.
    equal = right > right.max(1, keepdims=True) - 1e-9
    best: NDArray[np.intp] = GRID.size - 1 - equal[:, ::-1].argmax(1)
    return best


def as_printed(batch: Batch) -> Direction:
    """Target as in the paper; what it scales to a half gap of one is in the form "minus"."""
    return learn_direction(batch.moments, None, np.ones(batch.X.shape[1]), form="minus")


def _printed(batch: Batch, omega: Array, alpha: Array | float) -> Columns:
    """Scores of directions in raw units, at the midpoint of the labelled windows."""
    return _rows(batch, batch.scores(omega, batch.midpoint()), alpha)


def _rows(batch: Batch, scores: Array, alpha: Array | float) -> Columns:
    """The paper has neither probabilities nor forecasts."""
    found = measured(batch.splits.truth, scores[..., None])
    return found | {"alpha": np.broadcast_to(alpha, len(batch))}


def _blend(own: Direction, mu: Array, alpha: Array | float) -> Array:
    """Convex combinations (n_splits, d) of the person's directions and the crowd's."""
    weight = np.asarray(alpha)[..., None]
    blend: Array = weight * own.omega + (1.0 - weight) * mu
    return blend

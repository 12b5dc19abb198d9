"""Class means with a bound on what one person adds, and their sums repaired after noise.

In units of the feature scale a person adds class means shortened to the bound r with their outer
product, a covariance of a Frobenius norm of at most d, and run matrices whose traces have a norm of
at most 2d. In units of r, r^2, d and 2d one person moves all sums together by at most the root of
4.5 + 2 + 2 (equation 63).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import helmert

from crossfade._typing import Array
from crossfade.fisher import RUNS

if TYPE_CHECKING:
    from crossfade.prior._class_means import ClassMeans

#: Squared distance by which the sums of class means can move if one person is replaced (63).
MOVED = 4.5 + 2.0 + 2.0
_TINY = 1e-300


def norms_of(n_features: int) -> tuple[float, float]:
    """Largest Frobenius norm of a covariance, and largest norm of the traces of run matrices."""
    return float(n_features), 2.0 * n_features


def bounded(means: Array, within: Array, runs: Array, bound: float) -> tuple[Array, Array, Array]:
    """Class means (n, K d), covariances (n, d, d) and run matrices (n, 9, d, d), none too large."""
    most, longest = norms_of(within.shape[-1])
    size = np.sqrt((within**2).sum((-2, -1)))
    length = np.linalg.vector_norm(np.trace(runs, axis1=-2, axis2=-1), axis=-1)
    return (
        means * _down(np.linalg.vector_norm(means, axis=-1), bound)[:, None],
        within * _down(size, most)[:, None, None],
        runs * _down(length, longest)[:, None, None, None],
    )


def _down(size: Array, most: float) -> Array:
    """Factor that makes nothing larger than `most`."""
    return np.asarray(most / np.maximum(size, most))


def filled(runs: Array, longest: int) -> Array:
    """Run matrices (n, 9, d, d), with those of `longest` windows or more as of independent ones."""
    able = longest > RUNS
    n_able = int(able.sum())
    last = runs[:, n_able - 1] * RUNS[n_able - 1] if n_able else np.eye(runs.shape[-1])
    beyond = last[..., None, :, :] / RUNS[~able][:, None, None]
    whole = runs.copy()
    whole[:, ~able] = beyond
    return whole


def in_units(sums: ClassMeans, bound: float) -> list[Array]:
    """Sums of bounded class means, to which a person adds no more than 1 each."""
    most, longest = norms_of(sums.n_features)
    return [
        sums.mean_sum / bound,
        sums.outer_sum / bound**2,
        sums.within_sum / most,
        np.trace(sums.run_sums, axis1=-2, axis2=-1) / longest,
    ]


def repaired_means(
    sums: ClassMeans, noisy: list[Array], noise: float, bound: float, dof: float
) -> ClassMeans:
    """Class means from the noisy sums of `in_units`, as people can have them (equation 64)."""
    n_people, d = sums.n_people, sums.n_features
    most, longest = norms_of(d)
    spread = noise / n_people
    mean, outer, within, traces = (part / n_people for part in noisy)
    # Centre and contrasts apart: people differ far more in the centre.
    turn = np.kron(helmert(sums.n_classes, full=True), np.eye(d))
    mean = turn @ mean
    covariance = turn @ outer @ turn.T - np.outer(mean, mean) + spread**2 * np.eye(mean.size)
    centre = steady(covariance[:d, :d], spread, mean[:d])
    around = steady(covariance[d:, d:], spread, mean[d:])
    cross = covariance[:d, d:]
    chance = (cross.size + d * (mean @ mean)) * spread**2 / 2.0
    energy = max(float((cross**2).sum()), _TINY)
    cross = cross * max(float(1.0 - chance / energy), 0.0)
    values, basis = np.linalg.eigh(np.block([[centre, cross], [cross.T, around]]))
    # A new person is as far from the noisy mean as the noise has moved it.
    values = np.maximum(values, 0.0) + spread**2
    mean = mean / max(float(np.linalg.norm(mean)), 1.0)
    outer = turn.T @ ((basis * values) @ basis.T + np.outer(mean, mean)) @ turn
    covariance = steady(most * within, most * spread)
    variances = longest * traces / np.trace(covariance)
    # Longer runs are not noisier, and no run counts for more than its windows.
    variances = np.minimum.accumulate(np.clip(variances, 1.0 / RUNS, 1.0))
    return replace(
        sums,
        mean_sum=n_people * bound * (mean @ turn),
        outer_sum=n_people * bound**2 * (outer + outer.T) / 2.0,
        n_within=n_people,
        within_sum=n_people * covariance,
        run_counts=np.full(RUNS.size, n_people),
        run_sums=n_people * variances[:, None, None] * covariance,
        # That of the prior is a median, which has no bound.
        log_wishart_dof=n_people * float(np.log(dof)),
    )


def steady(matrix: Array, spread: float, mean: Array | float = 0.0) -> Array:
    """Noisy covariance (n, n) without what its noise can have made, by Wigner's semicircle."""
    n = len(matrix)
    values, basis = np.linalg.eigh(matrix)
    level = max(float(np.median(values)), spread / np.sqrt(n))
    away = values - level
    # The noise of the matrix, and that of the mean that was taken off.
    radius = n * (2.0 + float(np.sum(np.square(mean)))) * spread**2
    kept = np.sign(away) * np.sqrt(np.maximum(away**2 - radius, 0.0))
    steadied: Array = (basis * np.maximum(level + kept, min(level, spread))) @ basis.T
    return (steadied + steadied.T) / 2.0

"""Neighbouring windows are alike: how far, and what a run of them is worth (equations 47, 48).

With correlations rho_1, rho_2, ... of windows 1, 2, ... apart, n windows in a row say as much about
their mean as n / c independent ones, where c = 1 + 2 sum_k (1 - k / n) rho_k.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from crossfade._typing import Array, Places

#: How far apart samples are compared.
N_LAGS = 30
#: Fewest pairs of samples that tell how far they are alike.
_FEWEST_PAIRS = 5
#: Correlations from the first that is below this on are taken for none; above that for less.
_LEAST, _MOST = 0.02, 0.95


class Worth(NamedTuple):
    """What runs of neighbouring samples are worth beside independent ones (equation 48)."""

    crowding: Array  # (n_classes,): how many neighbours say as much of a mean as one sample
    shown: float  # proportion of the variance that shows in deviations from the means of the runs
    dof: float  # proportion of the degrees of freedom that is left


def worth_of_runs(correlation: Array, sizes: Places) -> Worth:
    """Worth of runs of `sizes` samples; ratios are one where nothing is correlated."""
    key = correlation.tobytes()
    runs = [_run(key, size) for size in sizes.tolist()]
    totals = np.array([total for total, _ in runs])
    within = float((sizes - totals / sizes).sum())
    left = max(float(sizes.sum() - sizes.size), 1.0)
    if within <= 0.0:
        return Worth(totals / sizes, 1.0, 1.0)
    square = sum(square for _, square in runs)
    return Worth(totals / sizes, within / left, within**2 / square / left)


@lru_cache(maxsize=4096)
def _run(correlation: bytes, size: int) -> tuple[float, float]:
    """Sum of all entries of the correlation matrix R of a run, and tr((C R)^2), C centring.

    tr((C R)^2) = tr R^2 - 2 |R 1|^2 / n + (1' R 1)^2 / n^2. Rows far from both ends have the same
    sum, so that the cost does not grow with the run.
    """
    rho = np.frombuffer(correlation)
    # Sum of the correlations up to each distance.
    summed = np.concatenate([[0.0], np.cumsum(rho)])
    edge = min(size, 2 * rho.size)
    before = np.minimum(np.arange(edge), rho.size)
    sums = 1.0 + summed[before] + summed[before[::-1]]
    inner, middle = size - edge, 1.0 + 2.0 * summed[-1]
    total = float(sums.sum()) + inner * middle
    squared_sums = float(sums @ sums) + inner * middle**2
    reach = rho[: size - 1]
    squares = size + 2.0 * float((size - np.arange(1, reach.size + 1)) @ reach**2)
    return total, squares - 2.0 * squared_sums / size + (total / size) ** 2


def cut_off(correlation: Array) -> Array:
    """Correlations of neighbours up to the last that cannot be an accident, all positive."""
    below = np.flatnonzero(correlation < _LEAST)
    kept: Array = np.minimum(correlation[: below[0] if below.size else None], _MOST)
    return kept


def autocorrelation(runs: list[tuple[Array, Array]]) -> Array:
    """Correlation of samples of one class, 1, 2, ... apart, of shape (..., n_lags) (equation 47).

    `runs` has for each class the centred samples of shape (..., n, d), in the order of time, and
    the same times the inverse of their covariance: so every direction counts alike. Zero where
    there are too few samples to tell.
    """
    batch = runs[0][0].shape[:-2]
    alike, pairs = np.zeros((*batch, N_LAGS + 1)), np.zeros(N_LAGS + 1)
    for rows, in_units in runs:
        size = rows.shape[-2]
        for lag in range(min(size, N_LAGS + 1)):
            products = np.vecdot(rows[..., : size - lag, :], in_units[..., lag:, :])
            alike[..., lag] += products.sum(-1)
            pairs[lag] += size - lag
    whole = alike[..., :1] / pairs[0]
    told = (pairs[1:] >= _FEWEST_PAIRS) & (whole > 0.0)
    correlation: Array = np.where(
        told,
        alike[..., 1:] / np.maximum(pairs[1:], 1.0) / np.where(whole > 0.0, whole, 1.0),
        0.0,
    )
    return correlation

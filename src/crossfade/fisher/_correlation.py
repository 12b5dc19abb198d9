"""How far neighbouring samples are alike in, what a run of them is worth out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: How far apart samples are compared.
N_LAGS = 30
#: Correlations from the first that is below this on are taken for none; above that for less.
_LEAST, _MOST = 0.02, 0.95


class Worth(NamedTuple):
    """What runs of neighbouring samples are worth beside independent ones (equation 48).

    Attributes
    ----------
    crowding : ndarray of shape (n_classes,)
        How many neighbours say as much about a mean as one independent sample.
    shown : float
        Share of the variance that shows in deviations from the means of the runs.
    freedom : float
        Share of the degrees of freedom that is left.
    """

    crowding: Array
    shown: float
    freedom: float


def worth_of_runs(correlation: Array, sizes: NDArray[np.intp]) -> Worth:
    """What runs of such lengths are worth.

    Parameters
    ----------
    correlation : ndarray of shape (n_lags,)
        Correlation of samples 1, 2, ... apart; zero beyond.
    sizes : ndarray of shape (n_classes,)
        Samples in the run of each class.

    Returns
    -------
    Worth
        Ratios, one where nothing is correlated.
    """
    crowding, within, square = np.ones(sizes.size), 0.0, 0.0
    summed = np.concatenate([[0.0], np.cumsum(correlation)])
    for place, size in enumerate(sizes.tolist()):
        before = np.minimum(np.arange(size), correlation.size)
        with_all = 1.0 + summed[before] + summed[before[::-1]]
        total = float(with_all.sum())
        reach = correlation[: size - 1]
        squares = size + 2.0 * float((size - np.arange(1, reach.size + 1)) @ reach**2)
        crowding[place] = total / size
        within += size - total / size
        square += squares - 2.0 * float(with_all @ with_all) / size + (total / size) ** 2
    left = max(float(sizes.sum() - sizes.size), 1.0)
    if within <= 0.0:
        return Worth(crowding, 1.0, 1.0)
    return Worth(crowding, within / left, within**2 / square / left)


def cut_off(correlation: Array) -> Array:
    """Correlations of neighbours up to the last that cannot be an accident.

    Parameters
    ----------
    correlation : ndarray of shape (n_lags,)
        Correlation of samples 1, 2, ... apart.

    Returns
    -------
    ndarray of shape (n_lags,) or shorter
        The same, all positive.
    """
    below = np.flatnonzero(correlation < _LEAST)
    kept: Array = np.minimum(correlation[: below[0] if below.size else None], _MOST)
    return kept

"""Traces of a covariance in, the weight of its shrinkage towards a multiple of the identity out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def oas(
    trace: Array, trace_of_square: Array, n_features: int | NDArray[np.intp], freedom: float
) -> Array:
    """Weight of the oracle approximating shrinkage (equation 3; Chen, Wiesel, Eldar and Hero 2010).

    Parameters
    ----------
    trace, trace_of_square : ndarray of shape (...)
        Traces of the covariance and of its square.
    n_features : int or ndarray of shape (...)
        Size of the covariance.
    freedom : float
        Degrees of freedom of the estimate.

    Returns
    -------
    ndarray of shape (...)
        Weights from 0 to 1.
    """
    uneven = trace_of_square - trace**2 / n_features
    above = (1.0 - 2.0 / n_features) * trace_of_square + trace**2
    below = (freedom + 1.0 - 2.0 / n_features) * uneven
    certain = below <= above
    weight: Array = np.where(certain, 1.0, above / np.where(certain, 1.0, below))
    return weight


def ledoit_wolf(
    trace: Array,
    trace_of_square: Array,
    fourth: Array,
    n_features: int | NDArray[np.intp],
    n_samples: float,
) -> Array:
    """Weight of Ledoit and Wolf (equation 4; 2004), from the mean of the squared squared lengths.

    Parameters
    ----------
    trace, trace_of_square : ndarray of shape (...)
        Traces of the sum of outer products over `n_samples`, and of its square.
    fourth : ndarray of shape (...)
        Mean over samples of the fourth power of their length.
    n_features : int or ndarray of shape (...)
        Size of the covariance.
    n_samples : float
        How many samples.

    Returns
    -------
    ndarray of shape (...)
        Weights from 0 to 1.
    """
    uneven = trace_of_square - trace**2 / n_features
    noise = (fourth - trace_of_square) / n_samples
    certain = uneven <= noise
    weight: Array = np.where(certain, 1.0, noise / np.where(certain, 1.0, uneven))
    return np.maximum(weight, 0.0)

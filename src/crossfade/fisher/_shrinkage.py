"""Weight r of the identity in a shrunk covariance (equation 2).

.. math:: S_s = (1 - r) S + r (\\operatorname{tr} S / d) I

by oracle approximating shrinkage (Chen, Wiesel, Eldar and Hero 2010) or by Ledoit and Wolf (2004).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crossfade._typing import Array, Places
from crossfade._validate import check_number

SHRINKAGES = ("oas", "ledoit_wolf")


def oas(
    trace: Array, trace_of_square: Array, n_features: int | Places, dof: float | Array
) -> Array:
    """Weight of the oracle approximating shrinkage (equation 3), from 0 to 1, of shape (...)."""
    uneven = trace_of_square - trace**2 / n_features
    above = (1.0 - 2.0 / n_features) * trace_of_square + trace**2
    below = (dof + 1.0 - 2.0 / n_features) * uneven
    # On one axis both are zero but for rounding, which must not decide.
    certain = (below <= above) | (np.asarray(n_features) == 1)
    weight: Array = np.where(certain, 1.0, above / np.where(certain, 1.0, below))
    return weight


def ledoit_wolf(
    trace: Array,
    trace_of_square: Array,
    fourth: Array,
    n_features: int | Places,
    n_samples: float | Array,
) -> Array:
    """Weight of Ledoit and Wolf (equation 4), from 0 to 1, of shape (...).

    The traces are those of the sum of outer products over `n_samples`, and of its square;
    `fourth` is the mean over samples of the fourth power of their length.
    """
    uneven = trace_of_square - trace**2 / n_features
    noise = (fourth - trace_of_square) / n_samples
    certain = uneven <= noise
    weight: Array = np.where(certain, 1.0, noise / np.where(certain, 1.0, uneven))
    return np.maximum(weight, 0.0)


def check_shrinkage(shrinkage: object) -> str | float | None:
    """Return `shrinkage` if it is None, one of the allowed words or a number from 0 to 1."""
    if shrinkage is None or (isinstance(shrinkage, str) and shrinkage in SHRINKAGES):
        return shrinkage
    words = ", ".join(repr(word) for word in (*SHRINKAGES, None))
    return check_number("shrinkage", shrinkage, 0.0, 1.0, or_words=words)


def shrunk_dense(scatter: Array, n_features: int, dof: Any, least: Any = 0.0) -> Array:
    """Covariances of shape (..., d, d), shrunk by OAS towards a level of at least `least`."""
    trace = np.trace(scatter, axis1=-2, axis2=-1)
    weight = oas(trace, (scatter**2).sum((-2, -1)), n_features, dof)
    level = np.maximum(weight * trace / n_features, least)
    shrunk: Array = (1.0 - weight)[..., None, None] * scatter
    shrunk += level[..., None, None] * np.eye(n_features)
    return shrunk

"""Resultant lengths in, concentrations of the von Mises-Fisher distribution out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crossfade._checks import check_integer, check_number

Array = NDArray[np.float64]

#: Concentrations beyond this are a point mass for every practical purpose.
_POINT_MASS = 1e8


def concentration_formula(resultant_length: float, n_features: int) -> float:
    r"""Concentration by the approximation that the paper uses (equation 8).

    .. math:: \hat\kappa = R (d - R^2) / (1 - R^2)

    Parameters
    ----------
    resultant_length : float
        Length R of the mean of the unit directions, from 0 to 1.
    n_features : int
        Dimension d of the space.

    Returns
    -------
    float
        Concentration; infinite where all directions agree.

    Examples
    --------
    >>> from crossfade.vmf import concentration_formula
    >>> round(concentration_formula(0.5, 9), 3)
    5.833
    """
    r, d = _check(resultant_length, n_features)
    return float("inf") if r == 1.0 else r * (d - r * r) / (1.0 - r * r)


def concentration_mle(resultant_length: float, n_features: int) -> float:
    r"""Concentration of maximum likelihood: the solution of :math:`A_d(\kappa) = R` (equation 9).

    Newton's method on the ratio of Bessel functions, safe for thousands of dimensions. With few
    directions it is too large on average, as R is.

    Parameters
    ----------
    resultant_length : float
        Length R of the mean of the unit directions, from 0 to 1.
    n_features : int
        Dimension d of the space.

    Returns
    -------
    float
        Concentration; infinite where all directions agree.

    Examples
    --------
    >>> from crossfade.vmf import concentration_mle, mean_resultant_length
    >>> round(concentration_mle(mean_resultant_length(10.0, 200), 200), 6)
    10.0
    """
    r, d = _check(resultant_length, n_features)
    if d == 1:
        return float(np.arctanh(r)) if r < 1.0 else float("inf")
    kappa = concentration_formula(r, d)
    if kappa == 0.0 or kappa > _POINT_MASS:
        return kappa
    for _ in range(50):
        ratio, rest = _bessel_ratio(kappa, d)
        # Near one the distances from one are what has digits to compare.
        slope = rest * (1.0 + ratio) - (d - 1) / kappa * ratio
        step = (ratio - r if r < 0.5 else (1.0 - r) - rest) / slope
        # A step to or past zero is cut: the ratio is concave, so Newton comes back from the left.
        kappa = max(kappa - step, kappa / 10.0)
        if abs(step) <= 1e-12 * kappa:
            break
    return kappa


def mean_resultant_length(concentration: float, n_features: int) -> float:
    r"""Length of the mean of a von Mises-Fisher distribution.

    .. math:: A_d(\kappa) = I_{d/2}(\kappa) / I_{d/2-1}(\kappa)
        = \cfrac{1}{d/\kappa + \cfrac{1}{(d+2)/\kappa + \cdots}}

    by its continued fraction, from its far end, which neither overflows nor underflows.

    Parameters
    ----------
    concentration : float
        Concentration kappa, not negative.
    n_features : int
        Dimension d of the space.

    Returns
    -------
    float
        Mean resultant length, from 0 to 1.

    Examples
    --------
    >>> from crossfade.vmf import mean_resultant_length
    >>> round(mean_resultant_length(10.0, 10), 4)
    0.6337
    """
    kappa = check_number("concentration", concentration, 0.0)
    d = check_integer("n_features", n_features, 1)
    if kappa == 0.0:
        return 0.0
    if kappa > _POINT_MASS:
        return max(0.0, 1.0 - (d - 1) / (2.0 * kappa))
    return _bessel_ratio(kappa, d)[0]


def _bessel_ratio(kappa: float, d: int) -> tuple[float, float]:
    """The continued fraction A and 1 - A, each with all its digits."""
    # An error at the far end shrinks on the way back by exp(-40), by this many terms.
    n_terms = 30 + int((np.sqrt(d * d + 160.0 * kappa) - d) / 2.0)
    far = d + 2.0 * n_terms
    ratio = kappa / ((far - 1.0) / 2.0 + np.hypot((far + 1.0) / 2.0, kappa))
    if kappa < d:
        for place in range(n_terms - 1, -1, -1):
            ratio = 1.0 / ((d + 2 * place) / kappa + ratio)
        return float(ratio), float(1.0 - ratio)
    rest = float(1.0 - ratio)
    for place in range(n_terms - 1, -1, -1):
        excess = (d + 2 * place) / kappa - rest
        rest = excess / (1.0 + excess)
    return 1.0 - rest, rest


def _check(resultant_length: float, n_features: int) -> tuple[float, int]:
    r = check_number("resultant_length", resultant_length, 0.0, 1.0)
    return r, check_integer("n_features", n_features, 1)

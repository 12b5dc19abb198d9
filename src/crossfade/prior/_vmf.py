"""Concentrations of the von Mises-Fisher law on the sphere (8 and 9)."""

from __future__ import annotations

import math

import numpy as np

from crossfade._validate import check_integer, check_number

#: Concentrations beyond this are a point mass for every practical purpose.
_POINT_MASS = 1e8
#: Below this one term of every series is exact.
_UNIFORM = 1e-100
#: Most features for which orders of Bessel functions are whole numbers.
_MOST_FEATURES = 10**15


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
    >>> from crossfade.prior import concentration_formula
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
    >>> from crossfade.prior import concentration_mle, mean_resultant_length
    >>> round(concentration_mle(mean_resultant_length(10.0, 200), 200), 6)
    10.0
    """
    r, d = _check(resultant_length, n_features)
    if d == 1 or r == 1.0:
        return float(np.arctanh(r)) if r < 1.0 else float("inf")
    kappa = concentration_formula(r, d)
    if not _UNIFORM < kappa <= _POINT_MASS:
        return kappa
    for _ in range(50):
        ratio, rest = _bessel_ratio(kappa, d)
        # Near one the distances from one are what has digits to compare.
        slope = rest * (1.0 + ratio) - (d - 1) / kappa * ratio
        step = (ratio - r if r < 0.5 else (1.0 - r) - rest) / slope
        # A step to or past zero is cut: the ratio is concave, so Newton comes back from the left.
        kappa = max(kappa - step, kappa / 10.0)
        # Newton's error is squared in each step.
        if abs(step) <= 1e-7 * kappa:
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
    >>> from crossfade.prior import mean_resultant_length
    >>> round(mean_resultant_length(10.0, 10), 4)
    0.6337
    """
    kappa = check_number("concentration", concentration, 0.0)
    d = check_integer("n_features", n_features, 1, _MOST_FEATURES)
    if kappa <= _UNIFORM:
        return kappa / d
    if kappa > _POINT_MASS:
        return max(0.0, 1.0 - (d - 1) / (2.0 * kappa))
    return _bessel_ratio(kappa, d)[0]


def _bessel_ratio(kappa: float, d: int) -> tuple[float, float]:
    """The continued fraction A and 1 - A, each with all its digits."""
    # An error at the far end shrinks on the way back by exp(-40), by this many terms.
    n_terms = 30 + int((math.sqrt(d * d + 160.0 * kappa) - d) / 2.0)
    far = d + 2.0 * n_terms
    ratio = kappa / ((far - 1.0) / 2.0 + math.hypot((far + 1.0) / 2.0, kappa))
    rest = 1.0 - ratio
    for order in range(d + 2 * n_terms - 2, d - 2, -2):
        steep = order / kappa
        ratio = 1.0 / (steep + ratio)
        excess = steep - rest
        rest = excess / (1.0 + excess)
    return (ratio, 1.0 - ratio) if kappa < d else (1.0 - rest, rest)


def _check(resultant_length: float, n_features: int) -> tuple[float, int]:
    r = check_number("resultant_length", resultant_length, 0.0, 1.0)
    return r, check_integer("n_features", n_features, 1, _MOST_FEATURES)

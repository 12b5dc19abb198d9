"""Concentrations and densities of the von Mises-Fisher law on the sphere (8, 9, 32 and 33)."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, ive

from crossfade._validate import check_finite, check_integer, check_number

Array = NDArray[np.float64]

#: Concentrations beyond this are a point mass for every practical purpose.
_POINT_MASS = 1e8
#: Below this one term of every series is exact.
_UNIFORM = 1e-100
#: Most features for which orders of Bessel functions are whole numbers.
_MOST_FEATURES = 10**15
#: Order from which the uniform expansion of the Bessel function has ten digits and more.
_LARGE_ORDER = 40.0
#: Concentrations between which a table is made, and its number of knots.
_TABLE_FROM, _TABLE_TO, _N_KNOTS = 1e-3, 2e5, 2000


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
    return float(concentrations(np.array([r]), d)[0])


def concentrations(resultant_lengths: Array, n_features: int) -> Array:
    """Concentrations of maximum likelihood of many resultant lengths at once (equation 9).

    Parameters
    ----------
    resultant_lengths : ndarray of shape (...)
        Lengths R from 0 to 1.
    n_features : int
        Dimension d of the space.

    Returns
    -------
    ndarray of shape (...)
        Concentrations; infinite where all directions agree.
    """
    r, d = resultant_lengths, n_features
    with np.errstate(divide="ignore"):
        if d == 1:
            return np.arctanh(r)
        kappa: Array = r * (d - r * r) / (1.0 - r * r)
    solvable = (kappa > _UNIFORM) & (kappa <= _POINT_MASS)
    if not solvable.any():
        return kappa
    r, found = r[solvable], kappa[solvable]
    for _ in range(50):
        ratio, rest = _bessel_ratio(found, d)
        # Near one the distances from one are what has digits to compare.
        slope = rest * (1.0 + ratio) - (d - 1) / found * ratio
        step = np.where(r < 0.5, ratio - r, (1.0 - r) - rest) / slope
        # A step to or past zero is cut: the ratio is concave, so Newton comes back from the left.
        found = np.maximum(found - step, found / 10.0)
        # Newton's error is squared in each step.
        if (np.abs(step) <= 1e-7 * found).all():
            break
    kappa[solvable] = found
    return kappa


def corrected_concentration(
    resultant_length: ArrayLike, n_tasks: ArrayLike, n_features: int
) -> Array:
    r"""Concentration freed of most of the upward bias that few directions give it (equation 33).

    .. math:: A_d(\hat\kappa)^2 = \max\left(0, \frac{J R^2 - 1}{J - 1}\right), \quad
        \hat\kappa_J = \frac{f}{f + 2}\,\hat\kappa, \quad f = (J - 1)(d - 1)

    Parameters
    ----------
    resultant_length : array-like of shape (...)
        Length R of the mean of the unit directions, from 0 to 1.
    n_tasks : array-like of shape (...)
        Number J of directions; a component of a mixture may have a fraction. Up to one direction
        says nothing about its concentration, which is then zero.
    n_features : int
        Dimension d of the space.

    Returns
    -------
    ndarray of shape (...)
        Concentrations; infinite where all directions agree.

    Examples
    --------
    >>> from crossfade.prior import concentration_mle, corrected_concentration
    >>> round(concentration_mle(0.9, 10), 1), round(float(corrected_concentration(0.9, 5, 10)), 1)
    (43.1, 31.8)
    """
    r = check_finite("resultant_length", resultant_length, 0)
    n = check_finite("n_tasks", n_tasks, 0)
    d = check_integer("n_features", n_features, 1, _MOST_FEATURES)
    if r.ndim and n.ndim and r.shape != n.shape:
        raise ValueError(
            f"resultant_length and n_tasks must have the same shape; got {r.shape} and {n.shape}."
        )
    if np.any(r < 0.0) or np.any(r > 1.0):
        raise ValueError(f"resultant_length must lie from 0 to 1; got {resultant_length!r}.")
    more = np.maximum(n - 1.0, 0.0)
    square = np.divide(n * r * r - 1.0, more, out=np.zeros(np.shape(more * r)), where=more > 0.0)
    length = np.sqrt(np.clip(square, 0.0, 1.0))
    kappa = concentrations(np.atleast_1d(length), d).reshape(length.shape)
    freedom = more * max(d - 1, 1)
    corrected: Array = kappa * (freedom / (freedom + 2.0))
    return corrected


def log_normalizer(concentration: ArrayLike, n_features: int) -> Array:
    r"""Logarithm of what makes :math:`\exp(\kappa\,\mu^T x)` a density on the sphere (equation 32).

    .. math:: \log C_d(\kappa) = (d/2 - 1) \log\kappa - (d/2) \log 2\pi - \log I_{d/2-1}(\kappa)

    Neither overflows nor underflows: large orders take Debye's uniform expansion.

    Parameters
    ----------
    concentration : array-like of shape (...)
        Concentrations kappa, from 0 to 1e8.
    n_features : int
        Dimension d of the space.

    Returns
    -------
    ndarray of shape (...)
        Logarithms.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade.prior import log_normalizer
    >>> np.exp(-log_normalizer(0.0, 3)) / np.pi
    np.float64(4.0)
    """
    kappa = check_finite("concentration", concentration, 0)
    d = check_integer("n_features", n_features, 1, _MOST_FEATURES)
    if np.any(kappa < 0.0) or np.any(kappa > _POINT_MASS):
        raise ValueError(
            f"concentration must lie from 0 to {_POINT_MASS:g}; got {concentration!r}."
        )
    order = d / 2.0 - 1.0
    uniform = gammaln(d / 2.0) - np.log(2.0) - d / 2.0 * np.log(np.pi)
    # Below this the density differs from the uniform one by rounding.
    some = np.maximum(kappa, 1e-6)
    log_bessel = _debye(order, some) if order >= _LARGE_ORDER else np.log(ive(order, some)) + some
    normalizer = order * np.log(some) - d / 2.0 * np.log(2.0 * np.pi) - log_bessel
    logarithm: Array = np.where(kappa > 1e-6, normalizer, uniform)
    return logarithm


def _debye(order: float, kappa: Array) -> Array:
    """Logarithm of the Bessel function I of a large order, uniformly in its argument."""
    z = kappa / order
    root = np.hypot(1.0, z)
    eta = root + np.log(z / (1.0 + root))
    t = 1.0 / root
    s = t * t
    series = (
        1.0
        + t / order * (3.0 - 5.0 * s) / 24.0
        + (t / order) ** 2 * (81.0 + s * (-462.0 + 385.0 * s)) / 1152.0
        + (t / order) ** 3 * (30375.0 + s * (-369603.0 + s * (765765.0 - 425425.0 * s))) / 414720.0
        + (t / order) ** 4
        * (4465125.0 + s * (-94121676.0 + s * (349922430.0 + s * (-446185740.0 + 185910725.0 * s))))
        / 39813120.0
    )
    logarithm: Array = order * eta - 0.5 * np.log(2.0 * np.pi * order * root) + np.log(series)
    return logarithm


class VmfTable(NamedTuple):
    """Concentrations and normalizers of one dimension d >= 2 by interpolation, to about 1e-5.

    Both are smooth functions of logarithms: kappa over formula (8) of the formula, and
    log C + kappa of kappa. Beyond the ends of the table each is nearly constant.
    """

    log_formula: Array
    log_excess: Array
    log_kappa: Array
    log_scaled: Array

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, n_features: int) -> VmfTable:
        """Table of this dimension."""
        kappa = np.geomspace(_TABLE_FROM, _TABLE_TO, _N_KNOTS)
        # The continued fraction has as many terms as the largest concentration of a call needs.
        parts = [_bessel_ratio(part, n_features) for part in np.array_split(kappa, 20)]
        ratio, rest = (np.concatenate(both) for both in zip(*parts, strict=True))
        formula = ratio * (n_features - ratio**2) / (rest * (1.0 + ratio))
        scaled = log_normalizer(kappa, n_features) + kappa
        return cls(np.log(formula), np.log(kappa / formula), np.log(kappa), scaled)

    def concentrations(self, resultant_lengths: Array, n_features: int) -> Array:
        """As `concentrations`, of shape (...)."""
        square = resultant_lengths**2
        formula = resultant_lengths * (n_features - square) / (1.0 - square)
        with np.errstate(divide="ignore"):
            excess = np.interp(np.log(formula), self.log_formula, self.log_excess)
        kappa: Array = formula * np.exp(excess)
        return kappa

    def log_normalizer(self, kappa: Array, n_features: int) -> Array:
        """As `log_normalizer`, of shape (...)."""
        with np.errstate(divide="ignore"):
            scaled = np.interp(np.log(kappa), self.log_kappa, self.log_scaled)
        return np.asarray(scaled - kappa)


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
    return float(_bessel_ratio(np.array([kappa]), d)[0][0])


def _bessel_ratio(kappa: Array, d: int) -> tuple[Array, Array]:
    """The continued fraction A and 1 - A, each with all its digits."""
    # An error at the far end shrinks on the way back by exp(-40), by this many terms.
    n_terms = 30 + int((np.sqrt(d * d + 160.0 * kappa.max()) - d) / 2.0)
    far = d + 2.0 * n_terms
    ratio = kappa / ((far - 1.0) / 2.0 + np.hypot((far + 1.0) / 2.0, kappa))
    rest = 1.0 - ratio
    orders = np.arange(d, d + 2 * n_terms, 2)
    for order in orders[::-1]:
        steep = order / kappa
        ratio = 1.0 / (steep + ratio)
        excess = steep - rest
        rest = excess / (1.0 + excess)
    low = kappa < d
    return np.where(low, ratio, 1.0 - rest), np.where(low, 1.0 - ratio, rest)


def _check(resultant_length: float, n_features: int) -> tuple[float, int]:
    r = check_number("resultant_length", resultant_length, 0.0, 1.0)
    return r, check_integer("n_features", n_features, 1, _MOST_FEATURES)

"""Labelled samples in; class means, a shrunk covariance and the noise of the direction out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade._validate import check_number
from crossfade.fisher import _spectrum
from crossfade.fisher._correlation import worth_of_runs
from crossfade.fisher._shrinkage import ledoit_wolf, oas
from crossfade.fisher._spectrum import ROUNDING, Spectrum

Array = NDArray[np.float64]

SHRINKAGES = ("oas", "ledoit_wolf")
#: Forms of the covariance of the target's direction.
NOISE_FORMS = ("unit", "minus", "plus")


class TargetNoise(NamedTuple):
    r"""Unit direction w of a target and the parts of its covariance.

    .. math:: \Sigma_\omega = a \Sigma^{-1} + g\,w w^T + h\,(w v^T + v w^T), \quad v = \Sigma^{-1} w

    Attributes
    ----------
    omega : ndarray of shape (..., n_features)
        Unit direction w.
    length : ndarray of shape (...)
        Length of the direction before it was scaled.
    inverse, radial, cross : ndarray of shape (...)
        The numbers a, g and h.
    """

    omega: Array
    length: Array
    inverse: Array
    radial: Array
    cross: Array


def mean_noise(counts: tuple[float, float]) -> float:
    """Variance of half the gap in units of Sigma, c of equation 5."""
    return (1.0 / counts[0] + 1.0 / counts[1]) / 4.0


def target_noise(
    sigma: Spectrum,
    nu: Array,
    counts: tuple[float, float],
    shrinkage: Array | float,
    form: str = "unit",
    freedom: float | None = None,
) -> TargetNoise:
    """Direction of the target and its covariance.

    Parameters
    ----------
    sigma : Spectrum
        Covariance within the classes, as shrunk.
    nu : ndarray of shape (..., n_features)
        Half the gap between the class means.
    counts : (float, float)
        Samples of each class.
    shrinkage : float or ndarray of shape (...)
        How far the covariance was shrunk.
    form : {"unit", "minus", "plus"}
        Equation 5, projected off the direction; or the paper's raw formula (equation 6) on data
        scaled to a half gap of length one, with its printed sign or the right one.
    freedom : float or None
        Degrees of freedom of the covariance; None if it comes from these samples alone.

    Returns
    -------
    TargetNoise
        The direction and the parts of its covariance.
    """
    inverse = sigma.inverse()
    raw = inverse.apply(nu)
    length = np.sqrt(np.vecdot(raw, raw))
    safe = np.where(length > 0.0, length, 1.0)
    omega = raw / safe[..., None]
    separation = np.vecdot(nu, raw)
    if form == "unit":
        if freedom is None:
            freedom = max(sum(counts) - 2.0, 1.0)
        learnt = (1.0 - np.asarray(shrinkage)) ** 2 / freedom
        scale = (mean_noise(counts) + learnt * separation) / safe**2
        radial = scale * np.vecdot(omega, inverse.apply(omega))
        return TargetNoise(omega, length, scale, radial, -scale)
    gap = np.vecdot(nu, nu) / sum(counts)
    sign = -1.0 if form == "minus" else 1.0
    return TargetNoise(
        omega, length, (1.0 + separation) * gap, sign * length**2 * gap, np.zeros_like(gap)
    )


class Samples(NamedTuple):
    """Labelled samples of one target, or of many that share their labels.

    Samples of further classes count for the covariance only (equation 38).

    Attributes
    ----------
    X : ndarray of shape (..., n_samples, n_features)
        Features in the user's units.
    label : ndarray of shape (n_samples,)
        0 for the first class, 1 for the second, 2 and up for further ones.
    weight : ndarray of shape (n_samples,)
        How often each sample counts; positive.
    """

    X: Array
    label: NDArray[np.intp]
    weight: Array

    @property
    def counts(self) -> tuple[float, float]:
        """Sum of the weights of each of the two classes."""
        first, second = np.bincount(self.label, self.weight, minlength=2)[:2]
        return float(first), float(second)

    def among(self, others: Samples | None) -> Samples:
        """The same with samples of further classes, whose labels start at 2."""
        if others is None:
            return self
        return Samples(
            np.concatenate([self.X, others.X], -2),
            np.concatenate([self.label, others.label]),
            np.concatenate([self.weight, others.weight]),
        )


class Target(NamedTuple):
    """What the labelled samples say, in scaled units but for the means.

    Attributes
    ----------
    means : ndarray of shape (..., 2, n_features)
        Class means, in the user's units.
    scale : ndarray of shape (..., n_features)
        What features were divided by.
    nu : ndarray of shape (..., n_features)
        Half the gap between the class means.
    sigma : Spectrum
        Covariance within the classes, shrunk.
    shrinkage : ndarray of shape (...)
        How far it was shrunk.
    counts : (float, float)
        How many independent samples those of each class are worth.
    freedom : float
        How many independent degrees of freedom those of the covariance are worth.
    noise : TargetNoise
        Unit direction and its covariance.
    rank : ndarray of shape (...)
        Rank of the covariance.
    own_scale : bool
        Whether `scale` was learnt from the same samples.
    correlation : ndarray of shape (n_lags,) or None
        Correlation of samples that follow each other.
    """

    means: Array
    scale: Array
    nu: Array
    sigma: Spectrum
    shrinkage: Array
    counts: tuple[float, float]
    freedom: float
    noise: TargetNoise
    rank: Array
    own_scale: bool
    correlation: Array | None = None

    @property
    def midpoint(self) -> Array:
        """Middle between the class means, in the user's units."""
        middle: Array = self.means.mean(-2)
        return middle

    @property
    def spent(self) -> Array:
        """Degrees of freedom that the covariance takes from the samples."""
        above = np.maximum(self.sigma.values - self.sigma.floor[..., None], 0.0)
        spent: Array = (above * _spectrum.invert(self.sigma.values)).sum(-1)
        return np.where(self.shrinkage < 1.0, spent, 0.0)

    @property
    def mean_noise(self) -> float:
        """Variance of the half gap in units of the covariance.

        Over a deviation learnt from the same samples the gap is Student's, not normal: its
        variance is larger (equation 25).
        """
        freedom = max(self.freedom, 3.0)
        heavier = freedom / (freedom - 2.0) if self.own_scale else 1.0
        return mean_noise(self.counts) * heavier


def describe_target(
    samples: Samples,
    shrinkage: str | float | None,
    scale: Array | None,
    fallback: Spectrum | None = None,
    form: str = "unit",
    correlation: Array | None = None,
) -> Target:
    """Turn labelled samples of both classes into a direction and its uncertainty.

    Parameters
    ----------
    samples : Samples
        Samples of both classes, and of others that share their covariance.
    shrinkage : {"oas", "ledoit_wolf"}, float or None
        How to shrink the covariance; None for the pseudo-inverse of the plain one.
    scale : ndarray of shape (n_features,) or None
        What to divide features by; None for their own deviation within the classes.
    fallback : Spectrum or None
        Covariance where the samples do not allow any estimate; None for the identity.
    form : {"unit", "minus", "plus"}
        Form of the covariance of the direction.
    correlation : ndarray of shape (n_lags,) or None
        Correlation of samples of a class that are 1, 2, ... apart, if they follow each other in
        the order of time; None for independent ones.

    Returns
    -------
    Target
        Everything about the target that a rule needs.
    """
    X, label, weight = samples
    counts = samples.counts
    in_class = np.bincount(label, weight, minlength=2)
    share = np.zeros((in_class.size, label.size))
    share[label, np.arange(label.size)] = weight
    share /= in_class[:, None]
    means = share @ X
    rows = X - means[..., label, :]
    rows *= np.sqrt(weight)[:, None]
    left = float(in_class.sum()) - in_class.size
    freedom = max(left, 1.0)
    # Deviations and gaps that rounding alone can have made are none.
    largest = np.maximum(X.max(-2), -X.min(-2))
    deviation = np.sqrt((rows**2).sum(-2) / freedom)
    varies = deviation > 1e-12 * largest
    if not varies.all():
        rows *= varies[..., None, :]
    own_scale = scale is None
    if scale is None:
        scale = np.where(varies, deviation, 1.0)
    rows /= (scale * np.sqrt(freedom))[..., None, :]
    if correlation is not None and correlation.size:
        worth = worth_of_runs(correlation, np.maximum(np.rint(in_class), 1.0).astype(np.intp))
        counts = counts[0] / worth.crowding[0], counts[1] / worth.crowding[1]
        freedom = max(freedom * worth.freedom, 1.0)
        rows /= np.sqrt(worth.shown)
    gap = means[..., 1, :] - means[..., 0, :]
    nu = np.where(np.abs(gap) > 16.0 * ROUNDING * largest, gap, 0.0) / (2.0 * scale)
    estimable = left >= 1.0 and bool(rows.any())
    if estimable:
        sigma = _spectrum.from_rows(rows)
        size = varying_dimension(sigma, nu, freedom, fallback)
        sigma, weight_of_identity = _shrink(sigma, rows, weight, freedom, shrinkage, size)
    else:
        sigma = _spectrum.identity(nu.shape) if fallback is None else fallback
        weight_of_identity = np.ones(nu.shape[:-1])
        size = np.full(nu.shape[:-1], nu.shape[-1])
        own_scale = False
    noise = target_noise(sigma, nu, counts, weight_of_identity, form, freedom)
    if nu.ndim == 1 and nu.any() and not noise.length:
        # The classes differ only where nothing varies: the gap itself is the direction.
        sigma, weight_of_identity = _spectrum.identity(nu.shape), np.ones(())
        noise = target_noise(sigma, nu, counts, weight_of_identity, form, freedom)
        size = np.full((), nu.size)
    rank = (sigma.values > 0.0).sum(-1) + sigma.n_outside * (sigma.floor > 0.0)
    rank = np.minimum(rank, size)
    return Target(
        means[..., :2, :],
        scale,
        nu,
        sigma,
        weight_of_identity,
        counts,
        freedom,
        noise,
        rank,
        own_scale,
        correlation,
    )


def varying_dimension(
    sigma: Spectrum, nu: Array, freedom: float, fallback: Spectrum | None = None
) -> NDArray[np.intp]:
    """Dimension d of the space in which features vary: less than their number if some are tied.

    Shares that sum to one vary in fewer directions than there are. A covariance shows it if it has
    more degrees of freedom than directions, and the gap of the classes lies within these.
    """
    whole = np.full(nu.shape[:-1], sigma.n_features)
    for known, enough in ((sigma, freedom), (fallback, np.inf)):
        if known is None or known.floor.any():
            continue
        inside = known.values > 0.0
        rank = inside.sum(-1)
        if (rank >= whole).all():
            continue
        beyond = nu - np.matvec(known.basis, inside * np.matvec(known.basis.mT, nu))
        tied = (np.abs(beyond) <= 1e-8 * np.abs(nu).max(-1, keepdims=True)).all(-1)
        whole = np.where(tied & (rank < enough) & (rank > 0), np.minimum(rank, whole), whole)
    return whole


def _shrink(
    sigma: Spectrum,
    rows: Array,
    weight: Array,
    freedom: float,
    shrinkage: str | float | None,
    n_features: NDArray[np.intp],
) -> tuple[Spectrum, Array]:
    """Shrunk covariance towards a multiple of the identity (equation 2), and by how much."""
    trace = sigma.trace()
    if shrinkage is None:
        return sigma, np.zeros_like(trace)
    square = (sigma.values**2).sum(-1)
    if shrinkage == "oas":
        share = oas(trace, square, n_features, freedom)
    elif shrinkage == "ledoit_wolf":
        lengths = (rows**2).sum(-1) * freedom
        # Over n, as published: over the degrees of freedom it is zero for two samples a class.
        total = float(weight.sum())
        fourth = (lengths**2 / weight).sum(-1) / total
        smaller = freedom / total
        share = ledoit_wolf(trace * smaller, square * smaller**2, fourth, n_features, total)
    else:
        share = np.full_like(trace, shrinkage)
    level = share * trace / n_features
    values = (1.0 - share)[..., None] * sigma.values + level[..., None]
    return sigma.map(values, level), share


def check_shrinkage(shrinkage: object) -> str | float | None:
    """Return `shrinkage` if it is None, one of the allowed words or a number from 0 to 1."""
    if shrinkage is None or (isinstance(shrinkage, str) and shrinkage in SHRINKAGES):
        return shrinkage
    words = ", ".join(repr(word) for word in (*SHRINKAGES, None))
    return check_number("shrinkage", shrinkage, 0.0, 1.0, or_words=words)

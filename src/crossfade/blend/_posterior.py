"""A crowd's mean and scatter and a target's own direction in, their posterior blend out.

With the scatter T = L L', whitened by L, the target's noise a S^-1 and the scatter share
eigenvectors with G = L' S L, so that one decomposition gives the blend for every strength.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crossfade.fisher._spectrum import Spectrum, outside

Array = NDArray[np.float64]

#: Gain in log evidence that it takes to distrust the crowd's scatter.
CONTRADICTION = 3.0
#: Strengths that "auto" and "risk" choose from, before they refine.
STRONGER = np.logspace(0.0, 6.0, 61)
ALL = np.concatenate([[0.0], np.logspace(-4.0, 6.0, 101)])


class Blend(NamedTuple):
    """A blended direction.

    Attributes
    ----------
    omega : ndarray of shape (..., n_features)
        Direction, not of unit length.
    trace : ndarray of shape (...)
        Trace of the matrix that multiplies (own - crowd).
    strength : ndarray of shape (...)
        How far the scatter of the crowd was widened.
    """

    omega: Array
    trace: Array
    strength: Array


class Path(NamedTuple):
    """Blends of all strengths (equation 22), in coordinates that make them elementwise.

    Attributes
    ----------
    mean : ndarray of shape (..., n_features)
        Mean m of the crowd.
    values : ndarray of shape (..., size)
        Eigenvalues of G.
    own : ndarray of shape (..., size)
        Coordinates of (own - crowd).
    noise : ndarray of shape (...)
        Noise a of the target's direction.
    back : ndarray of shape (..., n_features, size)
        From coordinates back to directions.
    n_rest : int
        Further coordinates, in which (own - crowd) is zero.
    rest : ndarray of shape (...)
        Their eigenvalue.
    """

    mean: Array
    values: Array
    own: Array
    noise: Array
    back: Array
    n_rest: int
    rest: Array

    def weights(self, strength: Array) -> Array:
        """Eigenvalues of the matrix that multiplies (own - crowd)."""
        pull = strength[..., None] * self.values
        return pull / (pull + self.noise[..., None])

    def at(self, strength: Array) -> Blend:
        """Blend of one strength for each target."""
        weights = self.weights(strength)
        omega = self.mean + np.matvec(self.back, weights * self.own)
        pull = strength * self.rest
        trace = weights.sum(-1) + self.n_rest * pull / (pull + self.noise)
        return Blend(omega, trace, strength)

    def evidence(self, strengths: Array) -> Array:
        """Log density of the target's direction at each strength (equation 23), but a constant.

        The constant depends on the target alone, so that crowds can be compared too.
        """
        spread = strengths[..., None] * self.values[..., None, :] + self.noise[..., None, None]
        fit = (self.values * self.own**2)[..., None, :] / spread
        rest = np.log(strengths * self.rest[..., None] + self.noise[..., None])
        evidence: Array = -0.5 * ((np.log(spread) + fit).sum(-1) + self.n_rest * rest)
        return evidence

    def risks(self, strengths: Array, sigma: Spectrum, length: Array) -> Array:
        """Mean risk of the blend of each strength over the posterior (equation 24)."""
        drift = np.matvec(self.back.mT, sigma.apply(self.mean))
        level = np.vecdot(self.mean, sigma.apply(self.mean))
        pull = strengths[:, None] * self.values[..., None, :]
        blends = pull / (pull + self.noise[..., None, None]) * self.own[..., None, :]
        best = self.weights(np.ones_like(self.noise)) * self.own
        seen = drift[..., None, :] + self.values[..., None, :] * blends
        gap = level[..., None] + np.vecdot(drift, best)[..., None]
        gap = gap + (blends * (drift + self.values * best)[..., None, :]).sum(-1)
        variance = level[..., None] + ((drift[..., None, :] + seen) * blends).sum(-1)
        doubt = self.noise[..., None] / (self.values + self.noise[..., None])
        doubt = (seen**2 * doubt[..., None, :]).sum(-1)
        scale = length[..., None] ** 2
        score = length[..., None] * gap / np.sqrt(np.maximum(variance + scale * doubt, 1e-300))
        risks: Array = ndtr(-score)
        return risks


def scattered_blend(
    sigma: Spectrum,
    own: Array,
    noise: Array,
    length: Array,
    mean: Array,
    root: Array,
    strength: str | float,
) -> tuple[Blend, Path | None]:
    """Blend with a crowd that has a full scatter.

    Parameters
    ----------
    sigma : Spectrum
        Covariance within the classes.
    own : ndarray of shape (..., n_features)
        The target's unit direction.
    noise : ndarray of shape (...)
        Its covariance is this number times the inverse of `sigma`.
    length : ndarray of shape (...)
        Its length before it was scaled.
    mean : ndarray of shape (..., n_features)
        Mean of the crowd's directions.
    root : ndarray of shape (..., n_features, n_features)
        Root L of their scatter L L', with orthogonal columns.
    strength : {"auto", "risk"} or float
        How far to widen the scatter.

    Returns
    -------
    blend : Blend
        The blended directions.
    path : Path or None
        All blends, where they were needed.
    """
    variances = (root**2).sum(-2)
    crossed = sigma.basis.mT @ root
    floor = sigma.floor if sigma.n_outside else np.zeros_like(sigma.floor)
    above = sigma.values - floor[..., None]
    coordinates = np.matvec(root.mT, own - mean) / variances
    if strength != "risk":
        widened = 1.0 if strength == "auto" else float(strength)
        level = floor[..., None] * variances
        blend, wanting = _direct(level, crossed, above, coordinates, noise, mean, root, widened)
        if strength != "auto" or not wanting.any():
            return blend, None
    path = scattered_path(sigma, own, noise, mean, root)
    return path.at(choose_strength(path, strength, sigma, length)), path


def scattered_path(sigma: Spectrum, own: Array, noise: Array, mean: Array, root: Array) -> Path:
    """Blends of all strengths with a crowd that has a full scatter (equation 22).

    Parameters
    ----------
    sigma : Spectrum
        Covariance within the classes.
    own, noise, mean, root : ndarray
        As in :func:`scattered_blend`.

    Returns
    -------
    Path
        All blends.
    """
    crossed = sigma.basis.mT @ root
    floor = sigma.floor if sigma.n_outside else np.zeros_like(sigma.floor)
    inner = (crossed.mT * (sigma.values - floor[..., None])[..., None, :]) @ crossed
    variances = (root**2).sum(-2)
    inner += (floor[..., None] * variances)[..., None] * np.eye(variances.shape[-1])
    values, turn = np.linalg.eigh(inner)
    return Path(
        mean=np.broadcast_to(mean, own.shape),
        values=np.maximum(values, 0.0),
        own=np.matvec(turn.mT, np.matvec(root.mT, own - mean) / variances),
        noise=noise,
        back=root @ turn,
        n_rest=0,
        rest=np.zeros_like(noise),
    )


def _direct(
    level: Array,
    crossed: Array,
    above: Array,
    coordinates: Array,
    noise: Array,
    mean: Array,
    root: Array,
    strength: float,
) -> tuple[Blend, NDArray[np.bool_]]:
    """Blend of one strength (equation 21), and whether the evidence wants a larger one.

    G is ``diag(level) + crossed' diag(above) crossed``: with fewer rows than columns in `crossed`
    its inverse is that of Woodbury, at the cost of the smaller side.
    """
    n_rows, n_features = crossed.shape[-2:]
    if strength == 0.0:
        none = np.zeros(noise.shape)
        return Blend(np.broadcast_to(mean, coordinates.shape), none, none), none > 0.0
    noise = noise / strength
    diagonal = level + noise[..., None]
    if n_rows < n_features:
        scaled = np.sqrt(above)[..., None] * crossed / diagonal[..., None, :]
        small = scaled @ (np.sqrt(above)[..., None] * crossed).mT + np.eye(n_rows)
        solved = np.linalg.solve(small, scaled)
        kept = coordinates / diagonal
        kept = kept - np.matvec(scaled.mT, np.matvec(solved, coordinates))
        inverse_trace = (1.0 / diagonal).sum(-1) - (scaled * solved).sum((-2, -1))
    else:
        inner = (crossed.mT * above[..., None, :]) @ crossed
        inverse = np.linalg.inv(inner + diagonal[..., None] * np.eye(n_features))
        kept = np.matvec(inverse, coordinates)
        inverse_trace = np.trace(inverse, axis1=-2, axis2=-1)
    pulled = coordinates - noise[..., None] * kept
    trace = n_features - noise * inverse_trace
    omega = mean + np.matvec(root, pulled)
    # Slope of the log evidence in the strength, at this strength.
    wanting = np.vecdot(pulled, pulled) > trace
    return Blend(omega, trace, np.full(noise.shape, strength)), wanting


def isotropic_blend(
    sigma: Spectrum,
    own: Array,
    noise: Array,
    length: Array,
    mean: Array,
    scatter: float,
    strength: str | float,
) -> tuple[Blend, Path]:
    """Blend with a crowd whose scatter is a multiple of the identity; linear in n_features.

    Parameters
    ----------
    sigma : Spectrum
        Covariance within the classes.
    own : ndarray of shape (..., n_features)
        The target's unit direction.
    noise, length : ndarray of shape (...)
        As in :func:`scattered_blend`.
    mean : ndarray of shape (..., n_features)
        Mean of the crowd's directions.
    scatter : float
        Variance of their directions in each feature.
    strength : {"auto", "risk"} or float
        How far to widen the scatter.

    Returns
    -------
    blend : Blend
        The blended directions.
    path : Path
        All blends.
    """
    path = isotropic_path(sigma, own, noise, mean, scatter)
    return path.at(choose_strength(path, strength, sigma, length)), path


def isotropic_path(sigma: Spectrum, own: Array, noise: Array, mean: Array, scatter: float) -> Path:
    """Blends of all strengths with a crowd whose scatter is a multiple of the identity.

    Parameters
    ----------
    sigma : Spectrum
        Covariance within the classes.
    own, noise, mean, scatter : ndarray
        As in :func:`isotropic_blend`.

    Returns
    -------
    Path
        All blends.
    """
    away = own - mean
    mean = np.broadcast_to(mean, own.shape)
    basis, values = sigma.basis, sigma.values
    if sigma.n_outside:
        # Outside the basis only two directions matter: those of (own - crowd) and of the crowd.
        first = outside(basis, away)
        second = outside(np.concatenate([basis, first[..., None]], -1), mean)
        basis = np.concatenate([basis, first[..., None], second[..., None]], -1)
        floor = np.broadcast_to(sigma.floor[..., None], (*own.shape[:-1], 2))
        values = np.concatenate(
            [np.broadcast_to(values, (*own.shape[:-1], values.shape[-1])), floor], -1
        )
    root = np.sqrt(scatter)
    return Path(
        mean=mean,
        values=scatter * values,
        own=np.matvec(basis.mT, away) / root,
        noise=noise,
        back=root * basis,
        n_rest=sigma.n_features - basis.shape[-1],
        rest=scatter * np.broadcast_to(sigma.floor, noise.shape),
    )


def choose_strength(path: Path, strength: str | float, sigma: Spectrum, length: Array) -> Array:
    """Strength for each target: given, of most evidence from 1 up, or of least risk.

    Parameters
    ----------
    path : Path
        Blends of all strengths.
    strength : {"auto", "risk"} or float
        What was asked for.
    sigma : Spectrum
        Covariance within the classes.
    length : ndarray of shape (...)
        Length of the target's direction before it was scaled.

    Returns
    -------
    ndarray of shape (...)
        Strengths.
    """
    if strength == "auto":
        return strength_of_evidence(path.evidence(STRONGER))
    if strength == "risk":
        return peak(ALL, -path.risks(ALL, sigma, length))
    return np.full(path.noise.shape, float(strength))


def strength_of_evidence(evidence: Array, least_gain: float = CONTRADICTION) -> Array:
    """Strength 1, or that of most evidence where 1 is contradicted.

    Parameters
    ----------
    evidence : ndarray of shape (..., n_strengths)
        Log evidence at the strengths `STRONGER`.
    least_gain : float
        Gain in log evidence that it takes to contradict.

    Returns
    -------
    ndarray of shape (...)
        Strengths.
    """
    contradicted = evidence.max(-1) - evidence[..., 0] > least_gain
    return np.where(contradicted, peak(STRONGER, evidence), 1.0)


def peak(grid: Array, heights: Array) -> Array:
    """Where a curve on a grid that is even in the logarithm is highest, by a parabola."""
    place = heights.argmax(-1)
    first = 0 if grid[0] > 0.0 else 1
    inside = np.clip(place, first + 1, grid.size - 2)[..., None]
    left, middle, right = (
        np.take_along_axis(heights, inside + shift, -1)[..., 0] for shift in (-1, 0, 1)
    )
    bend = left - 2.0 * middle + right
    shift = np.where(bend < 0.0, 0.5 * (left - right) / np.where(bend < 0.0, bend, 1.0), 0.0)
    step = np.log(grid[-1] / grid[-2])
    refined = grid[inside[..., 0]] * np.exp(np.clip(shift, -0.5, 0.5) * step)
    peak: Array = np.where(place == inside[..., 0], refined, grid[place])
    return peak

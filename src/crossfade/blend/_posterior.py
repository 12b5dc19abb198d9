"""Posterior blend: the crowd as a distribution, and a matrix instead of alpha (equations 21 to 24).

.. math:: \\omega = m + T (T + \\Sigma_\\omega)^{-1} (\\hat\\omega - m), \\quad
    \\Sigma_\\omega = a S^{-1}

With T = L L', whitened by L, noise and scatter share their eigenvectors with G = L' S L: one
decomposition gives the blend for every strength, and S, which may be singular, is never inverted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crossfade._typing import Array
from crossfade.blend._along import crowd_of, rule_along, rule_of_crowd
from crossfade.blend._rule import Newcomer, Rule
from crossfade.fisher import Direction, Spectrum, joint_basis, truncate
from crossfade.prior import Crowd, Law

#: Gain in log evidence that it takes to distrust the crowd's scatter.
CONTRADICTION = 3.0
#: Strength up to which, and down to one over it, a blend is solved for directly: beyond, rounding
#: makes it singular, or leaves no digit of the person.
_DIRECT = 1e6
#: Largest strength that differs from any larger one; one over it differs from none.
_STRONGEST = 1e38
#: Strengths that "auto" and "risk" choose from, before they refine.
STRONGER = np.logspace(0.0, 6.0, 61)
ALL = np.concatenate([[0.0], np.logspace(-4.0, 6.0, 101)])


def posterior(newcomer: Newcomer, law: Law, *, strength: str | float = "auto") -> Rule:
    """Rule of the posterior blend; `strength` as in :class:`crossfade.PosteriorBlendClassifier`."""
    if not newcomer.shows_all:
        return rule_of_crowd(newcomer, law)
    person, crowd = newcomer.direction(law), crowd_of(law)
    omega, dof, used = posterior_direction(person, crowd, strength)
    alpha = np.minimum(np.maximum(dof / crowd.n_features, 0.0), 1.0)
    return rule_along(newcomer, law, person, omega, alpha=alpha, dof=dof, strength=used)


def posterior_direction(
    person: Direction, crowd: Crowd, strength: str | float
) -> tuple[Array, Array, Array]:
    """Posterior mean (..., d) of the direction (equation 21), its trace, and the strength."""
    if strength == np.inf:
        return person.omega, person.rank, np.full(person.length.shape, np.inf)
    if not isinstance(strength, str):
        # Stronger or weaker makes no difference, and products with it would overflow.
        strength = float(min(strength, _STRONGEST))
        strength = strength if strength > 1.0 / _STRONGEST else 0.0
    given = 1.0 if isinstance(strength, str) else strength
    if strength == "risk" or crowd.isotropic or given > _DIRECT or 0.0 < given < 1.0 / _DIRECT:
        return _along_path(person, crowd, strength)
    try:
        omega, dof, wanting = _direct(person, crowd, given)
    except np.linalg.LinAlgError:
        # Singular but for rounding: the eigenvectors know which directions are left.
        return _along_path(person, crowd, strength)
    used = np.full(person.noise.shape, given)
    if strength != "auto" or not wanting.any():
        return omega, dof, used
    if wanting.ndim != 1:
        return _along_path(person, crowd, strength)
    # Only those whom the crowd's scatter does not cover need all strengths.
    which = np.flatnonzero(wanting)
    few = _along_path(*_some(person, crowd, which), strength)
    for whole, part in zip((omega, dof, used), few, strict=True):
        whole[which] = part
    return omega, dof, used


def _along_path(
    person: Direction, crowd: Crowd, strength: str | float
) -> tuple[Array, Array, Array]:
    """The same by way of the blends of all strengths."""
    path = path_of(person, crowd)
    used = _chosen(path, strength, person)
    return *path.at(used), used


def path_of(person: Direction, crowd: Crowd) -> Path:
    """Blends of all strengths (equation 22)."""
    sigma, scatter = person.sigma, crowd.scatter
    away = person.omega - crowd.mean
    mean = np.broadcast_to(crowd.mean, person.omega.shape)
    if crowd.isotropic:
        # A multiple of the identity shares its eigenvectors with Sigma. Outside of Sigma's basis
        # only two directions matter: those of (own - crowd) and of the crowd.
        basis, values = joint_basis(sigma, away, mean)
        floor = scatter.floor
        root = np.sqrt(floor)[..., None]
        return Path(
            mean=mean,
            values=floor[..., None] * values,
            own=np.matvec(basis.mT, away) / root,
            noise=person.noise,
            back=root[..., None] * basis,
            n_rest=sigma.n_features - basis.shape[-1],
            rest=np.broadcast_to(floor * sigma.floor, person.noise.shape),
        )
    root = crowd.root
    crossed = sigma.basis.mT @ root
    floor = sigma.floor * (crossed.shape[-2] < crossed.shape[-1])
    inner = (crossed.mT * (sigma.values - floor[..., None])[..., None, :]) @ crossed
    variances = crowd.variances
    inner += (floor[..., None] * variances)[..., None] * np.eye(variances.shape[-1])
    values, turn = np.linalg.eigh(inner)
    return Path(
        mean=mean,
        values=np.maximum(values, 0.0),
        own=np.matvec(turn.mT, np.matvec(root.mT, away) / variances),
        noise=person.noise,
        back=root @ turn,
        n_rest=0,
        rest=np.zeros_like(person.noise),
    )


def _direct(
    person: Direction, crowd: Crowd, strength: float
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Blend of one strength (equation 21), its trace, and whether the evidence wants more."""
    sigma, mean, root = person.sigma, crowd.mean, crowd.root
    n_features = mean.shape[-1]
    if strength == 0.0:
        none = np.zeros(person.noise.shape)
        omega = np.broadcast_to(mean, person.omega.shape)
        return omega, none, none > 0.0
    variances = crowd.variances
    crossed = sigma.basis.mT @ root
    n_rows = crossed.shape[-2]
    # With as many eigenvectors as features there is nothing outside of them.
    floor = sigma.floor[..., None] * (n_rows < n_features)
    above = (sigma.values - floor)[..., None]
    coordinates = np.matvec(root.mT, person.omega - mean) / variances
    noise = person.noise / strength
    diagonal = floor * variances + noise[..., None]
    if n_rows < n_features:
        lifted = np.sqrt(above) * crossed
        scaled = lifted / diagonal[..., None, :]
        solved = np.linalg.solve(scaled @ lifted.mT + np.eye(n_rows), scaled)
        kept = coordinates / diagonal
        kept = kept - np.matvec(scaled.mT, np.matvec(solved, coordinates))
        inverse_trace = (1.0 / diagonal).sum(-1) - (scaled * solved).sum((-2, -1))
    else:
        # The covariance may be one for all people: that of the crowd.
        inner = crossed.mT @ (above * crossed) + diagonal[..., None] * np.eye(n_features)
        inverse = np.linalg.inv(inner)
        kept = np.matvec(inverse, coordinates)
        inverse_trace = np.einsum("...ii->...", inverse)
    pulled = coordinates - noise[..., None] * kept
    dof = n_features - noise * inverse_trace
    omega = mean + np.matvec(root, pulled)
    # Slope of the log evidence in the strength, at this strength.
    wanting = np.vecdot(pulled, pulled) > dof
    return omega, dof, wanting


def _some(person: Direction, crowd: Crowd, which: NDArray[np.intp]) -> tuple[Direction, Crowd]:
    """Some people of a batch, and their crowds."""
    few = person._replace(
        omega=person.omega[which],
        length=person.length[which],
        noise=person.noise[which],
        sigma=person.sigma.of(which, len(person.length)),
    )
    return few, crowd.of(which)


class Path(NamedTuple):
    """Blends of all strengths (equation 22), in coordinates that make them elementwise."""

    mean: Array  # (..., d): mean m of the crowd
    values: Array  # (..., size): eigenvalues of G
    own: Array  # (..., size): coordinates of (own - crowd)
    noise: Array  # (...): noise a of the person's direction
    back: Array  # (..., d, size): from coordinates back to directions
    n_rest: int  # further coordinates, in which (own - crowd) is zero
    rest: Array  # (...): their eigenvalue

    def weights(self, strength: Array) -> Array:
        """Eigenvalues of the matrix that multiplies (own - crowd)."""
        pull = strength[..., None] * self._values(strength)
        return pull / (pull + self.noise[..., None])

    def _values(self, strength: Array) -> Array:
        """Variances; for a huge strength without what rounding alone can have made."""
        return truncate(self.values, 1) if strength.max(initial=0.0) > _DIRECT else self.values

    def at(self, strength: Array) -> tuple[Array, Array]:
        """Direction of one strength for each person, and its trace."""
        weights = self.weights(strength)
        omega = self.mean + np.matvec(self.back, weights * self.own)
        pull = strength * self.rest
        dof = weights.sum(-1) + self.n_rest * pull / (pull + self.noise)
        return omega, np.asarray(dof)

    def evidence(self, strengths: Array) -> Array:
        """Log density of the target's direction at each strength (equation 23), but a constant."""
        values = self._values(strengths)
        spread = strengths[..., None] * values[..., None, :] + self.noise[..., None, None]
        fit = (values * self.own**2)[..., None, :] / spread
        rest = np.log(strengths * self.rest[..., None] + self.noise[..., None])
        return -0.5 * ((np.log(spread) + fit).sum(-1) + self.n_rest * rest)

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
        return ndtr(-score)


def _chosen(path: Path, strength: str | float, person: Direction) -> Array:
    """Strength for each person: given, of most evidence from 1 up, or of least risk."""
    if strength == "auto":
        evidence = path.evidence(STRONGER)
        contradicted = evidence.max(-1) - evidence[..., 0] > CONTRADICTION
        return np.where(contradicted, _peak(STRONGER, evidence), 1.0)
    if strength == "risk":
        risks = path.risks(ALL, person.sigma, person.length)
        # Of equals, between which rounding would decide, the least.
        least = risks.min(-1, keepdims=True)
        return _peak(ALL, -np.where(risks <= least + 1e-9, least, risks))
    return np.full(path.noise.shape, float(strength))


def _peak(grid: Array, heights: Array) -> Array:
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
    return np.where(place == inside[..., 0], refined, grid[place])

"""Algorithm 1 and its formulas in plain NumPy, for one person or for many at once.

Equation numbers are those of ``docs/mathematics.md``. Leading axes are people or training sets.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]

#: The paper's alphas, and its draws at each of them.
GRID = np.linspace(0.0, 1.0, 11)
N_DRAWS = 100


def unit(vectors: Array) -> Array:
    """Vectors (..., d) of unit length; zero stays zero."""
    length = np.linalg.vector_norm(vectors, axis=-1, keepdims=True)
    scaled: Array = vectors / np.where(length > 0.0, length, 1.0)
    return scaled


# -- the sources ----------------------------------------------------------------------------------


class Crowd(NamedTuple):
    """What the directions of the sources say about a new direction."""

    mu: Array  # (..., d): mean direction
    resultant: Array  # (...): length R of the mean
    unlike: Array  # (...): mean squared sine of the angle to mu
    n_tasks: int

    def psi(self, recipe: str) -> Array:
        """Variance (...) of mu in every direction: as printed, or as the authors ran it."""
        if recipe == "printed":
            return np.sqrt(self.unlike / (self.n_tasks * self.resultant))
        variance: Array = self.unlike / (self.n_tasks * self.resultant**2)
        return variance

    def tangent_psi(self) -> Array:
        """The right covariance (..., d, d) of mu, which is a unit vector (equation 10)."""
        d = self.mu.shape[-1]
        tangent = np.eye(d) - self.mu[..., :, None] * self.mu[..., None, :]
        covariance: Array = (self.psi("authors") / (d - 1))[..., None, None] * tangent
        return covariance


def crowd_of(directions: Array) -> Crowd:
    """Crowd of unit directions (..., n_tasks, d)."""
    mean = directions.mean(-2)
    mu = unit(mean)
    unlike = 1.0 - (np.matvec(directions, mu) ** 2).mean(-1)
    return Crowd(mu, np.linalg.vector_norm(mean, axis=-1), unlike, directions.shape[-2])


# -- the target -----------------------------------------------------------------------------------


class Moments(NamedTuple):
    """Moments of labelled windows of two classes."""

    means: Array  # (..., 2, d)
    sigma: Array  # (..., d, d): pooled covariance within the classes
    n_samples: int

    @property
    def nu(self) -> Array:
        """Half the gap between the class means."""
        gap: Array = (self.means[..., 1, :] - self.means[..., 0, :]) / 2.0
        return gap

    @property
    def midpoint(self) -> Array:
        """Midpoint of the class means."""
        middle: Array = self.means.mean(-2)
        return middle


def moments_of(X: Array, y: NDArray[np.intp]) -> Moments:
    """Moments of windows X (..., n, d) with labels y (n,) of 0 and 1."""
    means = np.stack([X[..., y == label, :].mean(-2) for label in (0, 1)], -2)
    apart = X - means[..., y, :]
    return Moments(means, apart.mT @ apart / max(y.size - 2, 1), y.size)


class Target(NamedTuple):
    """Direction learnt from the target's labelled windows, with its covariance."""

    omega: Array  # (..., d)
    covariance: Array  # (..., d, d)
    nu: Array  # (..., d): half gap by which risks are judged
    sigma: Array  # (..., d, d)


def raw_target(nu: Array, sigma: Array, n_samples: int) -> Target:
    """Unit direction by the pseudo-inverse, with the printed covariance of its raw vector."""
    inverse = np.linalg.pinv(sigma, rcond=1e-10, hermitian=True)
    raw = np.matvec(inverse, nu)
    outer = raw[..., :, None] * raw[..., None, :]
    covariance = (1.0 + np.vecdot(nu, raw))[..., None, None] * inverse - outer
    return Target(unit(raw), covariance / n_samples, nu, sigma)


def target_of(nu: Array, sigma: Array, n_samples: int) -> Target:
    """Target as in the text: windows are centred and scaled to a half gap of one."""
    size = np.linalg.vector_norm(nu, axis=-1, keepdims=True)
    return raw_target(nu / size, sigma / size[..., None] ** 2, n_samples)


def target_of_figure_3(nu: Array, sigma: Array, n_samples: int) -> Target:
    """Target of Figures 2 and 3: the vector keeps its length, and its covariance is Sigma / n."""
    raw = np.matvec(np.linalg.pinv(sigma, rcond=1e-10, hermitian=True), nu)
    return Target(raw, sigma / n_samples, nu, sigma)


# -- Algorithm 1 ----------------------------------------------------------------------------------


def drawn_risks(
    target: Target, mu: Array, psi: Array, n_draws: int, rng: np.random.Generator
) -> Iterator[Array]:
    """Error rates (..., n_draws) of draws of the blend, for each alpha of the grid.

    A draw is normal about alpha omega + (1 - alpha) mu with the covariance
    alpha^2 C + (1 - alpha)^2 psi I. In the eigenvectors of C that covariance is diagonal.
    """
    values, basis = np.linalg.eigh(target.covariance)
    values = np.maximum(values, 0.0)
    variances, within = np.linalg.eigh(target.sigma)
    root = within * np.sqrt(np.maximum(variances, 0.0))[..., None, :]
    seen = basis.mT @ np.concatenate([root, target.nu[..., None]], -1)
    for alpha in GRID:
        centre = np.vecmat(alpha * target.omega + (1.0 - alpha) * mu, basis)
        deviation = np.sqrt(alpha**2 * values + (1.0 - alpha) ** 2 * np.asarray(psi)[..., None])
        normal = rng.standard_normal((*centre.shape[:-1], n_draws, centre.shape[-1]))
        found = (centre[..., None, :] + deviation[..., None, :] * normal) @ seen
        size = np.linalg.vector_norm(found[..., :-1], axis=-1)
        yield ndtr(-found[..., -1] / np.where(size > 0.0, size, np.inf))


def mean_risks(
    target: Target, mu: Array, psi: Array, rng: np.random.Generator, n_draws: int = N_DRAWS
) -> Array:
    """Mean error rate (..., n_alphas) over the draws at each alpha."""
    return np.stack([risks.mean(-1) for risks in drawn_risks(target, mu, psi, n_draws, rng)], -1)


def least(risks: Array) -> NDArray[np.intp]:
    """Place (...) of the least risk; the largest alpha among equals."""
    places: NDArray[np.intp] = GRID.size - 1 - risks[..., ::-1].argmin(-1)
    return places


def blends(omega: Array, mu: Array) -> Array:
    """All blends (..., n_alphas, d) of a target's direction and the crowd's."""
    weight = GRID[:, None]
    mixed: Array = weight * omega[..., None, :] + (1.0 - weight) * mu[..., None, :]
    return mixed

"""Sums of unit directions in; their scatter and the standard error of their mean out."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from crossfade._validate import (
    check_choice,
    check_covariance,
    check_directions,
    check_finite,
    check_spectrum,
)
from crossfade.fisher._shrinkage import oas
from crossfade.prior import _vmf as vmf

if TYPE_CHECKING:
    from crossfade.prior._release import Release

Array = NDArray[np.float64]

PSI_FORMS = ("tangent", "authors", "printed")


class PsiParts(NamedTuple):
    r"""Covariance of the mean direction, :math:`\Psi = p I + q\,\mu\mu^T`.

    Attributes
    ----------
    identity, along : float or ndarray of shape (...)
        The numbers p and q.
    """

    identity: float | Array
    along: float | Array


def least_scatter(n_tasks: float, n_features: int) -> float:
    """Variance in each feature below which so few tasks cannot be certain of their agreement."""
    return max(1.0 / (n_features * n_tasks**2), 1e-10)


def shrunk_scatter(mean: Array, second_moment: Array, n_tasks: float) -> Array:
    """Covariance of directions between tasks, shrunk by OAS (equation 12).

    Parameters
    ----------
    mean : ndarray of shape (..., n_features)
        Mean of the unit directions.
    second_moment : ndarray of shape (..., n_features, n_features)
        Mean of their outer products.
    n_tasks : float
        How many directions there are; a component of a mixture may have a fraction.

    Returns
    -------
    ndarray of shape (..., n_features, n_features)
        Covariance matrices; less than two tasks leave the identity over the number of features.
    """
    n_features = mean.shape[-1]
    identity = np.eye(n_features)
    if n_tasks < 2.0:
        return np.broadcast_to(identity / n_features, second_moment.shape)
    scatter = second_moment - mean[..., :, None] * mean[..., None, :]
    scatter = scatter * (n_tasks / (n_tasks - 1.0))
    trace = np.trace(scatter, axis1=-2, axis2=-1)
    weight = oas(trace, (scatter**2).sum((-2, -1)), n_features, n_tasks - 1.0)
    level = np.maximum(weight * trace / n_features, least_scatter(n_tasks, n_features))
    shrunk: Array = (1.0 - weight)[..., None, None] * scatter + level[..., None, None] * identity
    return shrunk


def orthogonal_root(scatter: Array) -> Array:
    """Root L of each scatter L L', with orthogonal columns.

    Parameters
    ----------
    scatter : ndarray of shape (..., n_features, n_features)
        Positive definite matrices.

    Returns
    -------
    ndarray of shape (..., n_features, n_features)
        Eigenvectors times the roots of the eigenvalues.
    """
    values, vectors = np.linalg.eigh(scatter)
    root: Array = vectors * np.sqrt(np.maximum(values, 1e-12))[..., None, :]
    return root


def trusted_square(square: Array, noise: float, n_features: int) -> Array:
    """Squared length of a released mean, less its own standard error (equation 31).

    Parameters
    ----------
    square : ndarray of shape (...)
        Squared length, freed of the noise that was added.
    noise : float
        Standard deviation of that noise in each feature of the mean.
    n_features : int
        Number of features.

    Returns
    -------
    ndarray of shape (...)
        Squared lengths, zero where noise alone could have made them.
    """
    owed = n_features * noise**2
    trusted: Array = np.maximum(
        square - np.sqrt((2.0 * owed + 4.0 * square) * owed / n_features), 0.0
    )
    return trusted


def trusted_mean(mean: Array, noise: float) -> Array:
    """Released mean as long as it can be trusted: its posterior mean (equation 31).

    Parameters
    ----------
    mean : ndarray of shape (..., n_features)
        Mean of the directions, its length freed of the noise that was added.
    noise : float
        Standard deviation of that noise in each feature; positive.

    Returns
    -------
    ndarray of shape (..., n_features)
        Shorter means.
    """
    n_features = mean.shape[-1]
    square = np.vecdot(mean, mean)
    sure = trusted_square(square, noise, n_features)
    length = sure / np.sqrt(sure + n_features * noise**2)
    shorter: Array = mean * (length / np.sqrt(np.maximum(square, 1e-300)))[..., None]
    return shorter


def psi_parts(
    form: str,
    resultant: Array,
    mean_square: Array,
    n_tasks: float | Array,
    n_features: int,
    noise: float = 0.0,
) -> PsiParts:
    """Covariance of the mean direction in one of its three forms (equation 10).

    Parameters
    ----------
    form : {"tangent", "authors", "printed"}
        The right one, the one behind the paper's figures, the one in its text.
    resultant : ndarray of shape (...)
        Length of the mean of the directions.
    mean_square : ndarray of shape (...)
        Mean of the squared cosines with the mean direction.
    n_tasks : float or ndarray of shape (...)
        How many directions there are.
    n_features : int
        Their dimension.
    noise : float
        Standard deviation of what a release added to each feature of the mean (equation 31).

    Returns
    -------
    PsiParts
        Multiples of the identity and of the outer product of the mean direction.
    """
    unlike = np.maximum(1.0 - mean_square, 0.0)
    added = (noise / resultant) ** 2
    if form == "printed":
        return PsiParts(np.sqrt(unlike / (n_tasks * resultant)) + added, np.zeros_like(unlike))
    if form == "authors":
        return PsiParts(unlike / (n_tasks * resultant**2) + added, np.zeros_like(unlike))
    # One task says nothing about its spread: each tangent direction gets that of the sphere.
    # On a line there is none.
    alone = 1.0 / n_features if n_features > 1 else 0.0
    tangent = np.where(np.less(n_tasks, 2.0), alone, unlike / max(n_features - 1, 1))
    variance = tangent / (n_tasks * resultant**2) + added
    return PsiParts(variance, -variance)


def form_of_psi(psi: Array, direction: Array, form: str) -> str:
    """Form that a covariance of the mean direction has; refuses one that it has not.

    Parameters
    ----------
    psi : ndarray of shape (n_features, n_features)
        Covariance of the mean direction.
    direction : ndarray of shape (n_features,)
        The mean direction.
    form : {"auto", "tangent", "authors", "printed"}
        What it is said to be.

    Returns
    -------
    str
        One of `PSI_FORMS`.
    """
    n_features = direction.size
    shape, size = np.eye(n_features), n_features
    even = np.abs(psi - np.trace(psi) / size * shape).max() <= 1e-6 * np.abs(psi).max()
    if form == "auto":
        form = "authors" if even and n_features > 1 else "tangent"
    if form == "tangent":
        shape, size = shape - np.outer(direction, direction), max(n_features - 1, 1)
    if np.abs(psi - np.trace(psi) / size * shape).max() > 1e-6 * np.abs(psi).max():
        kind = "I - mu mu'" if form == "tangent" else "the identity"
        raise ValueError(
            f"psi is not of the {form} form, a multiple of {kind}. Pass what "
            "TaskPrior.standard_error gives, and which form it is."
        )
    return form


def resultant_from_psi(trace: float, form: str, n_tasks: int, n_features: int) -> float:
    """Length of the mean that goes with a Psi under the von Mises-Fisher law (equation 11)."""
    d = n_features
    if d == 1 or n_tasks == 1:
        return 1.0
    if form == "printed":
        # (trace / d)^2 J = (1 - q) / R, with 1 - q = (d - 1)(1 - R^2) / (d - R^2).
        target = (trace / d) ** 2 * n_tasks

        def excess(r: float) -> float:
            return (d - 1.0) * (1.0 - r * r) / (d - r * r) - target * r

        return float(brentq(excess, 0.0, 1.0))
    shared = d - 1.0 if form == "tangent" else d * (d - 1.0)
    scaled = trace / shared * n_tasks
    if scaled == 0.0:
        return 1.0
    middle = scaled * d + 1.0
    # The smaller root, written without cancellation.
    square = 2.0 / (middle + np.sqrt(middle**2 - 4.0 * scaled))
    return float(np.sqrt(square))


def sum_of_summary(mu: ArrayLike, psi: ArrayLike, n_tasks: int, form: str) -> Array:
    """Sum that directions would have by their mean direction and its covariance (equation 11).

    Parameters
    ----------
    mu : array-like of shape (n_features,)
        Mean direction, of unit length.
    psi : array-like of shape (n_features, n_features)
        Covariance of the mean direction.
    n_tasks : int
        How many directions.
    form : {"auto", "tangent", "authors", "printed"}
        Which of the three forms `psi` has.

    Returns
    -------
    ndarray of shape (n_features,)
        As long as they are alike.
    """
    check_choice("form", form, ("auto", *PSI_FORMS))
    direction = check_finite("mu", mu, 1)
    length = float(np.linalg.norm(direction))
    if direction.ndim != 1 or abs(length - 1.0) > 1e-6:
        raise ValueError(
            f"mu must be one unit vector; got shape {direction.shape}, length {length:.6g}. "
            "Divide it by its norm."
        )
    psi = check_covariance("psi", psi, direction.size)
    if psi.ndim != 2:
        raise ValueError(f"psi must be one matrix; got shape {psi.shape}.")
    check_spectrum("psi", np.linalg.eigvalsh(psi))
    form = form_of_psi(psi, direction, form)
    resultant = resultant_from_psi(float(np.trace(psi)), form, n_tasks, direction.size)
    whole: Array = n_tasks * resultant * direction
    return whole


class DirectionSums:
    """What the sums of unit directions say about them.

    Attributes
    ----------
    n_tasks : float
        Number of directions, J.
    direction_sum : ndarray of shape (n_features,)
        Their sum.
    outer_sum : ndarray of shape (n_features, n_features) or None
        Sum of their outer products; None if it was not kept.
    release : Release or None
        How much noise the sums hold; None for exact ones.
    direction_noise : float or None
        Average squared error of the directions, where it is known.
    """

    n_tasks: float
    direction_sum: Array
    outer_sum: Array | None
    release: Release | None = None
    direction_noise: float | None = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.direction_sum.size

    @property
    def isotropic(self) -> bool:
        """Whether only the sum of the directions was kept."""
        return self.outer_sum is None

    @cached_property
    def mean(self) -> Array:
        """Mean of the unit directions (equation 7); its length says how far they agree.

        That of a released prior is shorter than R, by as much as its noise makes it unsure.
        """
        mean = self.direction_sum / self.n_tasks
        return frozen(mean if self.release is None else trusted_mean(mean, self._mean_noise))

    @property
    def _mean_noise(self) -> float:
        """Standard deviation of what a release added to each feature of the mean."""
        return 0.0 if self.release is None else self.release.noise / self.n_tasks

    @cached_property
    def resultant_length(self) -> float:
        """Length R of the mean: 1 where all directions agree, 0 where they cancel out.

        That of a released prior is a guess, which large noise makes 0 or 1: see `trusted_length`.
        """
        return min(float(np.linalg.norm(self.direction_sum / self.n_tasks)), 1.0)

    @property
    def trusted_length(self) -> float:
        """How far directions surely agree: R, or less by the noise of a release (equation 31)."""
        return min(float(np.linalg.norm(self.mean)), 1.0)

    @cached_property
    def mean_direction(self) -> Array:
        """Unit vector mu along the mean."""
        if self.resultant_length < 1e-12:
            raise ValueError(
                "The directions of this prior cancel out: there is no mean direction. Check that "
                "all sources order their classes alike, and that no release drowned them in noise."
            )
        mean = self.direction_sum / self.n_tasks
        return frozen(mean / np.linalg.norm(mean))

    @property
    def cancels(self) -> bool:
        """Whether the mean is no longer than that of directions without any preference."""
        square = np.asarray(self.resultant_length**2)
        if self.release is not None:
            square = trusted_square(square, self._mean_noise, self.n_features)
        return bool(square == 0.0) or (self.n_tasks > 1 and bool(square * self.n_tasks <= 1.0))

    @property
    def concentration(self) -> float:
        """Concentration kappa by the paper's formula (equation 8), of the trusted length."""
        return vmf.concentration_formula(self.trusted_length, self.n_features)

    def concentration_mle(self) -> float:
        """Concentration kappa of maximum likelihood (equation 9), of the trusted length."""
        return vmf.concentration_mle(self.trusted_length, self.n_features)

    @cached_property
    def scatter(self) -> Array:
        """Covariance of the directions between tasks, of shape (n_features, n_features)."""
        if self.outer_sum is None:
            return frozen(self.isotropic_scatter * np.eye(self.n_features))
        scatter = shrunk_scatter(self.mean, self.outer_sum / self.n_tasks, self.n_tasks)
        return frozen(self._between * scatter)

    @property
    def isotropic_scatter(self) -> float:
        """Variance of the directions in each feature, if it is the same in all (equation 12)."""
        if self.n_tasks < 2.0:
            return 1.0 / self.n_features
        unlike = (1.0 - self.trusted_length**2) * self.n_tasks / (self.n_tasks - 1.0)
        least = least_scatter(self.n_tasks, self.n_features)
        return max(self._between * unlike / self.n_features, least)

    @property
    def _between(self) -> float:
        """Share of the scatter that is between tasks, and not their own noise (equation 50)."""
        if self.direction_noise is None or self.n_tasks < 2.0:
            return 1.0
        unlike = (1.0 - self.resultant_length**2) * self.n_tasks / (self.n_tasks - 1.0)
        share = 1.0 - self.direction_noise / unlike if unlike > 0.0 else 1.0
        return max(share, 1.0 / self.n_tasks)

    @cached_property
    def scatter_root(self) -> Array:
        """Root L of the scatter L L', with orthogonal columns."""
        return frozen(orthogonal_root(self.scatter))

    @cached_property
    def mean_square(self) -> float:
        """Mean of the squared cosines of the directions with their mean direction."""
        if self.outer_sum is not None:
            mu = self.mean_direction
            return float(mu @ self.outer_sum @ mu) / self.n_tasks
        # Equation 11: what a von Mises-Fisher distribution of this resultant length has.
        d, square = self.n_features, self.resultant_length**2
        return 1.0 - (d - 1.0) * (1.0 - square) / (d - square) if d > square else 1.0

    def psi_parts(self, form: str = "tangent") -> PsiParts:
        """Multiples of the identity and of ``mu mu'`` that make up :meth:`standard_error`.

        Parameters
        ----------
        form : {"tangent", "authors", "printed"}, default="tangent"
            As in :meth:`standard_error`.

        Returns
        -------
        PsiParts
            The two numbers.
        """
        check_choice("form", form, PSI_FORMS)
        _ = self.mean_direction
        resultant, square = np.asarray(self.resultant_length), np.asarray(self.mean_square)
        return psi_parts(form, resultant, square, self.n_tasks, self.n_features, self._mean_noise)

    def standard_error(self, form: str = "tangent") -> Array:
        """Covariance Psi of the mean direction (equation 10).

        Parameters
        ----------
        form : {"tangent", "authors", "printed"}, default="tangent"
            "tangent" shares the angular variance between the directions that are tangent to the
            sphere, which is right; "authors" is what the paper's figures were made with;
            "printed" is the formula in its text.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            Covariance matrix.
        """
        parts = self.psi_parts(form)
        mu = self.mean_direction
        psi: Array = parts.identity * np.eye(self.n_features) + parts.along * np.outer(mu, mu)
        return psi


def check_belonging(directions: Array, direction_sum: Array, slack: float) -> None:
    """Refuse single directions that are not of unit length, or whose sum is another."""
    check_directions(directions, direction_sum.size)
    if np.abs(directions.sum(0) - direction_sum).max() > slack:
        raise ValueError(
            "directions do not add up to direction_sum. Give directions=None with sums that are "
            "not theirs."
        )


def joined(mine: Array | None, theirs: Array | None) -> Array | None:
    """Single directions of two priors, if both keep them."""
    return None if mine is None or theirs is None else np.concatenate([mine, theirs])


def frozen(array: Array) -> Array:
    """The same array, no longer writable."""
    array.flags.writeable = False
    return array

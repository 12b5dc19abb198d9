"""The components of a crowd and a target's own direction in, their blend and weights out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from crossfade.blend._posterior import (
    ALL,
    CONTRADICTION,
    STRONGER,
    Path,
    isotropic_path,
    peak,
    scattered_path,
    strength_of_evidence,
)
from crossfade.fisher._spectrum import Spectrum
from crossfade.prior._crowd import DirectionSums, PsiParts, psi_parts

Array = NDArray[np.float64]


class MixtureBlend(NamedTuple):
    """Blended directions (equation 35).

    Attributes
    ----------
    omega : ndarray of shape (..., n_features)
        Directions, not of unit length.
    trace : ndarray of shape (...)
        Trace of the matrix by which they follow the target's own, with the weights of the
        components following too.
    own_trace : ndarray of shape (...)
        The same with the weights held, from 0 to n_features.
    strength : ndarray of shape (...)
        How far the scatter of every component was widened.
    weights : ndarray of shape (..., n_components)
        Probability that the target belongs to each component.
    parts : ndarray of shape (n_components, ..., n_features)
        Blends with each component alone.
    """

    omega: Array
    trace: Array
    own_trace: Array
    strength: Array
    weights: Array
    parts: Array


def mixture_blend(
    sigma: Spectrum,
    own: Array,
    noise: Array,
    length: Array,
    components: Sequence[DirectionSums],
    strength: str | float,
) -> MixtureBlend:
    """Blend with a crowd of several components.

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
    components : sequence of DirectionSums
        The components; their numbers of tasks are their shares.
    strength : {"auto", "risk"} or float
        How far to widen the scatter of every component.

    Returns
    -------
    MixtureBlend
        The blended directions and the weights of the components.
    """
    paths = [_path(sigma, own, noise, one, strength == "risk") for one in components]
    tasks = np.array([one.n_tasks for one in components])
    log_share = np.log(tasks / tasks.sum()).reshape(-1, *[1] * own.ndim)

    def evidence(strengths: Array) -> Array:
        found: Array = log_share + np.stack([path.evidence(strengths) for path in paths])
        return found

    if strength == "auto":
        # Narrow components look contradicted more often than the one wide crowd of them all.
        least_gain = CONTRADICTION + np.log(len(paths))
        chosen = strength_of_evidence(logsumexp(evidence(STRONGER), axis=0), least_gain)
    elif strength == "risk":
        weights = _normalised(evidence(ALL))
        certain = _normalised(evidence(np.ones(1)))[..., 0]
        chosen = peak(ALL, -_risks(paths, weights, certain, sigma, length))
    else:
        chosen = np.full(noise.shape, float(strength))
    weights = _normalised(evidence(chosen[..., None]))[..., 0]
    blends = [path.at(chosen) for path in paths]
    parts = np.stack([blend.omega for blend in blends])
    omega = (weights[..., None] * parts).sum(0)
    own_trace = (weights * np.stack([blend.trace for blend in blends])).sum(0)
    away = parts - omega
    # Each weight grows along S (part - omega) / noise: what the rule also owes to its own noise.
    swayed = (weights * np.vecdot(away, sigma.apply(away))).sum(0) / noise
    return MixtureBlend(
        omega, own_trace + swayed, own_trace, chosen, np.moveaxis(weights, 0, -1), parts
    )


def _path(sigma: Spectrum, own: Array, noise: Array, crowd: DirectionSums, dense: bool) -> Path:
    if crowd.isotropic and not dense:
        return isotropic_path(sigma, own, noise, crowd.mean, crowd.isotropic_scatter)
    return scattered_path(sigma, own, noise, crowd.mean, crowd.scatter_root)


def _normalised(logs: Array) -> Array:
    """Weights of the components, on the first axis."""
    weights: Array = np.exp(logs - logsumexp(logs, axis=0))
    return weights


def _risks(
    paths: list[Path], weights: Array, certain: Array, sigma: Spectrum, length: Array
) -> Array:
    """Mean risk of the blend of each strength over the posterior of all components.

    It is the average of equation 24 over the components, whose paths must have a full scatter.
    """
    strengths = np.broadcast_to(ALL, (*length.shape, ALL.size))
    omega = np.zeros(())
    for path, weight in zip(paths, weights, strict=True):
        pull = strengths[..., None] * path.values[..., None, :]
        shares = pull / (pull + path.noise[..., None, None])
        blends = path.mean[..., None, :] + (shares * path.own[..., None, :]) @ path.back.mT
        omega = omega + weight[..., None] * blends
    wider = Spectrum(
        sigma.values[..., None, :], sigma.basis[..., None, :, :], sigma.floor[..., None]
    )
    seen = wider.apply(omega)
    variance = np.vecdot(omega, seen)
    risks = np.zeros_like(strengths)
    for path, weight in zip(paths, certain, strict=True):
        best = path.at(np.ones_like(length)).omega
        doubt = path.noise[..., None] / (path.values + path.noise[..., None])
        doubt = ((seen @ path.back) ** 2 * doubt[..., None, :]).sum(-1)
        far = length[..., None]
        score = far * np.vecdot(seen, best[..., None, :])
        score = score / np.sqrt(np.maximum(variance + far**2 * doubt, 1e-300))
        risks = risks + weight[..., None] * ndtr(-score)
    return risks


class GivenCrowd(NamedTuple):
    """One crowd in the place of several components, for targets whose weights are known.

    Attributes
    ----------
    mean_direction : ndarray of shape (..., n_features)
        Direction of the weighted mean of the components; zero if they cancel out.
    resultant_length : ndarray of shape (...)
        Length of that mean.
    n_tasks : ndarray of shape (...)
        Number of tasks that a mean of this weight is worth.
    mean_square : ndarray of shape (...)
        What makes equation 10 the covariance of that mean.
    sway : ndarray of shape (...)
        Trace of the matrix by which `mean_direction` follows the target's own direction.
    """

    mean_direction: Array
    resultant_length: Array
    n_tasks: Array
    mean_square: Array
    sway: Array

    @property
    def cancels(self) -> Any:
        """Whether the mean is no longer than that of directions without any preference."""
        square = self.resultant_length**2
        return (square == 0.0) | ((self.n_tasks > 1.0) & (square * self.n_tasks <= 1.0))

    def psi_parts(self, form: str = "tangent") -> PsiParts:
        """Covariance of the mean direction, as :meth:`TaskPrior.standard_error` has it.

        Parameters
        ----------
        form : {"tangent", "authors", "printed"}, default="tangent"
            Which of equation 10.

        Returns
        -------
        PsiParts
            Multiples of the identity and of the outer product of the mean direction.
        """
        n_features = self.mean_direction.shape[-1]
        return psi_parts(form, self.resultant_length, self.mean_square, self.n_tasks, n_features)


def given_crowd(
    sigma: Spectrum, noise: Array, components: Sequence[DirectionSums], blend: MixtureBlend
) -> GivenCrowd:
    r"""Crowd that the convex blend meets: the components' means by their weights (equation 35).

    Its mean :math:`\sum_k w_k m_k` has the covariance :math:`\sum_k w_k^2 T_k / J_k`.

    Parameters
    ----------
    sigma : Spectrum
        Covariance within the classes.
    noise : ndarray of shape (...)
        The target's direction has this number times the inverse of `sigma` for its covariance.
    components : sequence of DirectionSums
        The components.
    blend : MixtureBlend
        Their weights, and their blends at strength 1.

    Returns
    -------
    GivenCrowd
        One crowd for each target.
    """
    weights = np.moveaxis(blend.weights, -1, 0)
    means = np.stack([one.mean for one in components])
    means = means.reshape(len(means), *[1] * (blend.omega.ndim - 1), means.shape[-1])
    mean = (weights[..., None] * means).sum(0)
    resultant = np.linalg.vector_norm(mean, axis=-1)
    safe = np.where(resultant > 1e-12, resultant, np.inf)
    mu = mean / safe[..., None]
    tasks = np.array([one.n_tasks for one in components]).reshape(-1, *[1] * resultant.ndim)
    shares = weights**2 / tasks
    n_tasks = 1.0 / shares.sum(0)
    across = np.stack([_variance_across(one, mu) for one in components])
    unlike = n_tasks * (shares * across).sum(0)
    # As the weights follow the target's direction, so does the mean, but not along itself.
    turned = means - np.vecdot(means, mu)[..., None] * mu
    pull = sigma.apply(blend.parts - blend.omega) / noise[..., None]
    sway = (weights * np.vecdot(turned, pull)).sum(0) / safe
    return GivenCrowd(mu, np.where(resultant > 1e-12, resultant, 0.0), n_tasks, 1.0 - unlike, sway)


def _variance_across(crowd: DirectionSums, mu: Array) -> Array:
    """Sum of the variances of a component's directions across a direction mu."""
    along = np.vecdot(mu, crowd.mean)
    square = crowd.resultant_length**2
    if crowd.outer_sum is not None:
        moment = np.vecdot(mu, np.matvec(crowd.outer_sum, mu)) / crowd.n_tasks
    else:
        # A von Mises-Fisher law varies alike in all directions across its own mean (equation 11).
        cosine = along**2 / max(square, 1e-300)
        sideways = (1.0 - crowd.mean_square) / max(crowd.n_features - 1, 1)
        moment = crowd.mean_square * cosine + sideways * (1.0 - cosine)
    variance: Array = np.asarray(1.0 - square - moment + along**2)
    return variance

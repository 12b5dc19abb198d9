"""Blends with a crowd of several kinds of people (equation 35).

The posterior blend with each kind alone, weighted by the probability that the person is of that
kind: its proportion in the crowd times the evidence of the person's own direction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp, ndtr

from crossfade._typing import Array
from crossfade.blend._posterior import (
    ALL,
    CONTRADICTION,
    STRONGER,
    Path,
    check_strength,
    path_of,
    strength_of_evidence,
    strength_of_risk,
)
from crossfade.blend._verb import Blend
from crossfade.fisher._direction import Direction
from crossfade.prior._crowd import Crowd


def mixture(person: Direction, crowds: Sequence[Crowd], strength: str | float = "auto") -> Blend:
    """Posterior blend with crowds of several kinds (equation 35).

    Parameters
    ----------
    person : Direction
        What labelled windows say, of one person or of a batch.
    crowds : sequence of Crowd
        The kinds of people; their numbers of tasks are their proportions.
    strength : {"auto", "risk"} or float, default="auto"
        How far the scatter of every crowd is widened, as in :func:`posterior`.

    Returns
    -------
    Blend
        The blended directions; `weights` are the responsibilities of the crowds.

    See Also
    --------
    meet : One crowd instead of several, for the convex blend.
    """
    return _blend(person, crowds, strength)[0]


def _blend(
    person: Direction, crowds: Sequence[Crowd], strength: str | float
) -> tuple[Blend, Array]:
    """The blend, and those with each crowd alone, of shape (n_crowds, ..., d)."""
    strength = strength if isinstance(strength, str) else check_strength(strength)
    paths = [path_of(person, one, dense=strength == "risk") for one in crowds]
    tasks = np.array([float(one.n_tasks) for one in crowds])
    log_share = np.log(tasks / tasks.sum()).reshape(-1, *[1] * person.omega.ndim)

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
        chosen = strength_of_risk(_risks(paths, weights, certain, person))
    else:
        chosen = np.full(person.noise.shape, float(strength))
    weights = _normalised(evidence(chosen[..., None]))[..., 0]
    blends = [path.at(chosen) for path in paths]
    parts = np.stack([blend.omega for blend in blends])
    omega = (weights[..., None] * parts).sum(0)
    held = (weights * np.stack([blend.dof for blend in blends])).sum(0)
    away = parts - omega
    # Each weight grows along S (part - omega) / noise: the rule follows its own noise there, too.
    sway = (weights * np.vecdot(away, person.sigma.apply(away))).sum(0) / person.noise
    means = np.stack([one.mean for one in crowds])
    source = np.moveaxis(weights, 0, -1) @ means
    alpha = np.minimum(held / omega.shape[-1], 1.0)
    return (
        Blend(omega, held + sway, alpha, chosen, np.moveaxis(weights, 0, -1), source),
        parts,
    )


def _normalised(logs: Array) -> Array:
    """Weights of the components, on the first axis."""
    weights: Array = np.exp(logs - logsumexp(logs, axis=0))
    return weights


def _risks(paths: list[Path], weights: Array, certain: Array, person: Direction) -> Array:
    """Mean risk of the blend of each strength over the posterior of all components.

    It is the average of equation 24 over the components, whose paths must have a full scatter.
    """
    sigma, length = person.sigma, person.length
    strengths = np.broadcast_to(ALL, (*length.shape, ALL.size))
    omega = np.zeros(())
    for path, weight in zip(paths, weights, strict=True):
        pull = strengths[..., None] * path.values[..., None, :]
        shares = pull / (pull + path.noise[..., None, None])
        blends = path.mean[..., None, :] + (shares * path.own[..., None, :]) @ path.back.mT
        omega = omega + weight[..., None] * blends
    seen = sigma.per_row().apply(omega)
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


def meet(person: Direction, crowds: Sequence[Crowd]) -> tuple[Crowd, Array]:
    r"""One crowd instead of several, by their weights for this person (equation 35).

    Its mean :math:`\\sum_k w_k m_k` has the covariance :math:`\\sum_k w_k^2 T_k / J_k`.

    Parameters
    ----------
    person : Direction
        What labelled windows say, of one person or of a batch.
    crowds : sequence of Crowd
        The kinds of people.

    Returns
    -------
    crowd : Crowd
        The crowd that each person meets, for :func:`convex`.
    weights : ndarray of shape (..., n_crowds)
        Probability that the person is of each kind.
    """
    blend, parts = _blend(person, crowds, 1.0)
    weights = np.moveaxis(np.asarray(blend.weights), -1, 0)
    means = np.stack([one.mean for one in crowds])
    means = means.reshape(len(means), *[1] * (blend.omega.ndim - 1), means.shape[-1])
    mean = (weights[..., None] * means).sum(0)
    resultant = np.linalg.vector_norm(mean, axis=-1)
    safe = np.where(resultant > 1e-12, resultant, np.inf)
    mu = mean / safe[..., None]
    tasks = np.array([float(one.n_tasks) for one in crowds]).reshape(-1, *[1] * resultant.ndim)
    proportions = weights**2 / tasks
    n_tasks = 1.0 / proportions.sum(0)
    across = np.stack([_variance_across(one, mu) for one in crowds])
    unlike = n_tasks * (proportions * across).sum(0)
    # As the weights follow the person's direction, so does the mean, but not along itself.
    turned = means - np.vecdot(means, mu)[..., None] * mu
    pull = person.sigma.apply(parts - blend.omega) / person.noise[..., None]
    sway = (weights * np.vecdot(turned, pull)).sum(0) / safe
    length = np.where(resultant > 1e-12, resultant, 0.0)
    met = Crowd(n_tasks, mean, mu, length, 1.0 - unlike, sway=sway)
    return met, np.asarray(blend.weights)


def _variance_across(crowd: Crowd, mu: Array) -> Array:
    """Sum of the variances of a component's directions across a direction mu."""
    along = np.vecdot(mu, crowd.mean)
    square = crowd.resultant_length**2
    if crowd.moment is not None:
        moment = np.vecdot(mu, np.matvec(crowd.moment, mu))
    else:
        # A von Mises-Fisher law varies alike in all directions across its own mean (equation 11).
        cosine = along**2 / np.maximum(square, 1e-300)
        sideways = (1.0 - crowd.mean_square) / max(crowd.n_features - 1, 1)
        moment = crowd.mean_square * cosine + sideways * (1.0 - cosine)
    variance: Array = np.asarray(1.0 - square - moment + along**2)
    return variance

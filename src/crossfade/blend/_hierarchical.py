"""Hierarchical blend: the posterior of the class means gives a linear rule (equations 54 to 57).

.. math:: w = (\\Sigma + \\bar P)^{-1} h^*, \\quad \\text{threshold } w^T c^*
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from crossfade._typing import Array
from crossfade.blend._means import PosteriorMeans, posterior_means
from crossfade.blend._rule import Newcomer, Rule, made, rule_of_two
from crossfade.prior import Law
from crossfade.risk import ManyTheory, MeansTheory


def hierarchical(newcomer: Newcomer, law: Law) -> Rule:
    """Rule of the hierarchical blend, for any number of classes and of labels."""
    found = posterior_means(newcomer, law)
    weights, means, scale = found.weights(), found.means, law.feature_scale
    coef = weights @ found.whiten.mT
    fields: dict[str, Any] = {
        "alpha": found.alpha,
        "means": means * scale,
        "details": {"member": found.member},
    }
    if law.n_classes > 2:
        batch = newcomer.moments.means.shape[:-2]
        offset = np.broadcast_to(-0.5 * np.vecdot(weights, found.centres), (*batch, law.n_classes))
        fields["theory"] = ManyTheory(found.centres, found.sigma, found.scatter, weights, offset)
        coef = np.broadcast_to(coef / scale, (*batch, *coef.shape[-2:]))
        return made(newcomer, coef=coef, intercept=offset, feature_scale=scale, **fields)
    omega = (coef[..., 1, :] - coef[..., 0, :]) / 2.0
    own = (weights[..., 1, :] - weights[..., 0, :]) / 2.0
    gap, within, doubt = found.along(own)
    # Of new windows of each class, whose mean is not quite known either.
    each = own[..., None, :]
    variances = np.vecdot(each, np.matvec(found.scatter, each))
    raw = np.asarray(ndtr(gap[..., None] / np.sqrt(np.maximum(variances, 1e-300))).mean(-1))
    if law.means_noise:
        gap = gap - _optimism(newcomer, law, found)
    gap = np.maximum(gap, 0.0)
    nu = newcomer.moments.gap() / (2.0 * scale)
    both = (newcomer.moments.counts > 0.0).all(-1)
    contradicts = np.asarray(both & (np.vecdot(omega, nu) < 0.0))
    fields["theory"] = MeansTheory(omega, gap, within, doubt, contradicts, raw)
    return rule_of_two(
        newcomer, omega, means.mean(-2) * scale, scale, contradicts=contradicts, **fields
    )


def _optimism(newcomer: Newcomer, law: Law, found: PosteriorMeans) -> Array:
    """Gap (...) that the noise of a released prior adds: tr(M^-1 C) (p - 2) / p (equation 69)."""
    assert law.class_means is not None
    population, alpha = law.class_means, found.alpha
    counts = newcomer.moments.counts
    # A class without a label adds nothing to half the gap: the crowd has it alone.
    own = population.mean_noise(np.where(counts > 0.0, counts, np.inf)).sum(-1) / 4.0
    # In whitened features, where it is much the same in all directions.
    crowd = law.means_noise**2 / 2.0 * (population.whiten**2).sum() / population.whiten.shape[-1]
    noise = (alpha**2 * own)[..., None, None] * found.sigma
    noise = noise + ((1.0 - alpha) ** 2 * crowd)[..., None, None] * np.eye(noise.shape[-1])
    added = np.trace(np.linalg.solve(found.scatter.mean(-3), noise), axis1=-2, axis2=-1)
    rank = found.sigma.shape[-1]
    return np.asarray(added * max(rank - 2, 0) / rank)

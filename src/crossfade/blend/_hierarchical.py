"""Hierarchical blend: a crowd that knows class means (equations 54 to 57).

The class means of labelled windows are noisy observations of the person's own, and the crowd is a
normal law over these (`Population`): the posterior of the class means gives a linear rule,

.. math:: w = (\\Sigma + \\bar P)^{-1} h^*, \\quad \\text{threshold } w^T c^*

with P the covariance of what is still unknown of the means. Classes without a labelled window are
not observed, so that no label, one class and both are one formula.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtr

from crossfade._typing import Array
from crossfade.fisher._moments import ClassMoments
from crossfade.prior._class_means import Population, contrasts

#: Probability that a person's centre, or contrasts, are not those of the crowd; how much wider the
#: law of the centre then is.
STRANGER, WIDER = 0.02, 25.0
#: Draws for the accuracy of many classes.
_DRAWS = 400
#: Proportions of the second class that unlabelled windows may have, and the power to which their
#: likelihood is taken: neighbours say the same thing twice.
_PROPORTIONS, _TEMPER = np.linspace(0.1, 0.9, 9), 0.1


class Hierarchical(NamedTuple):
    """Posterior of the class means, and the linear rule that follows, with leading batch axes.

    Attributes
    ----------
    coef : ndarray of shape (..., n_classes, n_features)
        Coefficients of the score of each class, in scaled features.
    offset : ndarray of shape (..., n_classes)
        What is added to the scores, for equally likely classes.
    means : ndarray of shape (..., n_classes, n_features)
        Posterior class means, in scaled features.
    scatter : ndarray of shape (..., n_classes, rank, rank)
        Covariance of new windows of each class, in whitened features.
    sigma : ndarray of shape (..., rank, rank)
        Covariance within the classes, in whitened features.
    weights : ndarray of shape (..., n_classes, rank)
        The coefficients in whitened features.
    centres : ndarray of shape (..., n_classes, rank)
        The means in whitened features.
    alpha : ndarray of shape (...)
        Weight of the person's own contrasts.
    member : ndarray of shape (...)
        Probability that the person is one of the crowd.
    """

    coef: Array
    offset: Array
    means: Array
    scatter: Array
    sigma: Array
    weights: Array
    centres: Array
    alpha: Array
    member: Array

    @property
    def omega(self) -> Array:
        """Direction (..., d) of the rule of two classes, in scaled features."""
        omega: Array = (self.coef[..., 1, :] - self.coef[..., 0, :]) / 2.0
        return omega

    @property
    def midpoint(self) -> Array:
        """Middle (..., d) of the posterior class means, in scaled features."""
        middle: Array = self.means.mean(-2)
        return middle

    @property
    def gap(self) -> Array:
        """Half the distance of two classes along `omega`, of shape (...)."""
        way = self.centres[..., 1, :] - self.centres[..., 0, :]
        along = self.weights[..., 1, :] - self.weights[..., 0, :]
        gap: Array = np.vecdot(way, along) / 4.0
        return gap

    @property
    def variances(self) -> Array:
        """Variance of new windows of each of two classes along `omega`, of shape (..., 2)."""
        along = (self.weights[..., 1, :] - self.weights[..., 0, :])[..., None, :] / 2.0
        variances: Array = np.vecdot(along, np.matvec(self.scatter, along))
        return variances

    def along(self, omega: Array) -> tuple[Array, Array, Array]:
        """Half gap, variance within the classes and doubt of the gap along directions.

        Parameters
        ----------
        omega : ndarray of shape (..., rank)
            Directions in whitened features.

        Returns
        -------
        gap, within, doubt : ndarray of shape (...)
            Of two classes half the distance, the variance within, and that of the gap itself.
        """
        way = (self.centres[..., 1, :] - self.centres[..., 0, :]) / 2.0
        within = np.vecdot(omega, np.matvec(self.sigma, omega))
        whole = np.vecdot(omega, np.matvec(self.scatter.mean(-3), omega))
        return np.vecdot(omega, way), within, whole - within

    def accuracy(self) -> Array:
        """What theory promises for equally likely classes (equation 57), of shape (...)."""
        if self.means.shape[-2] > 2:
            return self.accuracy_apart(np.ones(self.alpha.shape))
        deviation = np.sqrt(np.maximum(self.variances, 1e-300))
        accuracy: Array = ndtr(self.gap[..., None] / deviation).mean(-1)
        return accuracy

    def accuracy_apart(self, stretch: Array) -> Array:
        """Accuracy of many classes whose means are so many times as far apart.

        The same draws for every class and every call make it a smooth function of its arguments.

        Parameters
        ----------
        stretch : ndarray of shape (...)
            How many times.

        Returns
        -------
        ndarray of shape (...)
            Share of windows whose own class has the highest score.
        """
        n_classes = self.means.shape[-2]
        middle = self.centres.mean(-2, keepdims=True)
        stretch = stretch[..., None, None]
        moved = middle + stretch * (self.centres - middle)
        scores = moved @ self.weights.mT + self.offset[..., None, :]
        spread = self.weights[..., None, :, :] @ self.scatter @ self.weights[..., None, :, :].mT
        values, vectors = np.linalg.eigh(spread)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
        half = np.random.default_rng(0).standard_normal((_DRAWS // 2, n_classes))
        draws = np.concatenate([half, -half]) @ root.mT
        best = (scores[..., None, :] + draws).argmax(-1)
        accuracy: Array = (best == np.arange(n_classes)[:, None]).mean((-2, -1))
        return accuracy


def hierarchical(
    moments: ClassMoments,
    population: Population,
    scale: Array,
    *,
    unlabelled: Array | None = None,
    in_a_row: bool = True,
    protect: bool = True,
) -> Hierarchical:
    """Blend of a person's class means with the crowd's (equations 54 to 57).

    Parameters
    ----------
    moments : ClassMoments
        Moments of the labelled windows of one person, or of a batch; classes may have none.
    population : Population
        What the crowd knows of class means; for a batch one, or one for each.
    scale : ndarray of shape (n_features,)
        What features are divided by.
    unlabelled : ndarray of shape (..., n_windows, n_features) or None, default=None
        Windows of the same person without labels, of both classes in unknown proportions.
    in_a_row : bool, default=True
        Whether the windows of a class follow each other.
    protect : bool, default=True
        Whether a person may be a stranger to the crowd.

    Returns
    -------
    Hierarchical
        The rule.
    """
    seen = np.flatnonzero(moments.counts.reshape(-1, moments.counts.shape[-1]).any(0))
    means = moments.means[..., seen, :] / scale
    noise = population.mean_noise(moments.counts[..., seen], in_a_row=in_a_row)
    more = [] if unlabelled is None else [unlabelled.mean(-2, keepdims=True) / scale]
    if moments.rooted and population.core < population.whiten.shape[-1]:
        rows = np.concatenate([moments.scatter / scale, means, *more], -2)
        population = population.within_reach(rows @ population.whiten)
    sigma, floor = _covariance(moments, population, scale)
    windows = None if unlabelled is None else (unlabelled / scale) @ population.whiten
    observed = Observed(means @ population.whiten, seen, noise, sigma, floor, windows)
    return posterior_of_means(population, observed, protect=protect)


class Observed(NamedTuple):
    """What windows say of the class means, in whitened features."""

    means: Array  # (..., k, p): of the classes seen
    seen: Any  # (k,): which these are
    noise: Array  # (..., k): variance of the means, in units of the covariance
    sigma: Array  # (..., p, p): covariance within the classes
    floor: Array  # (...): its eigenvalue in directions that are not listed
    unlabelled: Array | None = None  # (..., m, p)


def posterior_of_means(
    population: Population, observed: Observed, *, protect: bool
) -> Hierarchical:
    """Rule for what was observed: the posterior of theta under each law, and all of them mixed.

    The laws, of members and strangers and with unlabelled windows of every proportion, stand on an
    axis of their own after those of the batch.
    """
    n_classes, p = population.n_classes, observed.sigma.shape[-1]
    design = np.concatenate([np.ones((n_classes, 1)), contrasts(n_classes)], 1)
    laws = _known_laws(population, observed, design, protect)
    theta, left, gain, evidence = _posteriors(population, observed, laws)
    if observed.unlabelled is not None:
        evidence = evidence + _TEMPER * _log_likelihood(theta, laws.proportion, observed)
    weights = np.exp(evidence - logsumexp(evidence, axis=-1, keepdims=True))
    mean = (weights[..., None] * theta).sum(-2)
    apart = theta - mean[..., None, :]
    left = (weights[..., None, None] * left).sum(-3) + (weights[..., None] * apart).mT @ apart
    size = np.asarray(population.n_varying) * (n_classes - 1)
    alpha = (weights * gain).sum(-1) / size
    left = left.reshape(*left.shape[:-2], n_classes, p, n_classes, p)
    doubt = np.einsum("ka,...apbq,kb->...kpq", design, left, design)
    scatter = observed.sigma[..., None, :, :] + doubt
    centres = design @ mean.reshape(*mean.shape[:-1], n_classes, p)
    along = np.linalg.solve(scatter.mean(-3)[..., None, :, :], centres[..., None])[..., 0]
    return Hierarchical(
        along @ population.whiten.mT,
        -0.5 * np.vecdot(along, centres),
        centres @ population.unwhiten.mT,
        scatter,
        observed.sigma,
        along,
        centres,
        np.clip(alpha, 0.0, 1.0),
        (weights * laws.member).sum(-1),
    )


def _posteriors(
    population: Population, observed: Observed, laws: Laws
) -> tuple[Array, Array, Array, Array]:
    """Under each law the mean and covariance of theta, the trace of d h* / d h, and the evidence.

    With y = H theta + noise: G = B H'(H B H' + N)^-1, theta* = t + G (y - H t), Q = B - G H B.
    """
    n_classes, p = laws.mean.shape[-2:]
    rows, n_seen = laws.rows, laws.rows.shape[-2]
    means, noise, sigma = observed.means, np.asarray(observed.noise), observed.sigma
    if observed.unlabelled is not None:
        n_windows = observed.unlabelled.shape[-2]
        means = np.concatenate([means, observed.unlabelled.mean(-2, keepdims=True)], -2)
        noise = np.concatenate([noise, np.full((*noise.shape[:-1], 1), 1.0 / n_windows)], -1)
    law, inner = laws.seen, laws.variance
    noisy = noise[..., None, :, None, None] * sigma[..., None, None, :, :]
    batch = np.broadcast_shapes(inner.shape[:-4], noisy.shape[:-3], (*means.shape[:-2], 1))
    theta = np.broadcast_to(laws.mean.reshape(*laws.mean.shape[:-2], -1), (*batch, n_classes * p))
    whole = laws.covariance.reshape(*laws.covariance.shape[:-4], n_classes * p, n_classes * p)
    if not n_seen:
        whole = np.broadcast_to(whole, (*batch, *whole.shape[-2:]))
        return theta, whole, np.zeros(batch), np.broadcast_to(laws.log_prior, batch)
    inner = np.array(np.broadcast_to(inner, (*batch, n_seen, p, n_seen, p)))
    places = np.arange(n_seen)
    inner[..., places, :, places, :] += np.moveaxis(
        np.broadcast_to(noisy, (*batch, n_seen, p, p)), -3, 0
    )
    inner = inner.reshape(*batch, n_seen * p, n_seen * p)
    law = law.reshape(*law.shape[:-4], n_seen * p, n_classes * p)
    away = means[..., None, :, :] - rows @ laws.mean
    away = np.broadcast_to(away, (*batch, n_seen, p)).reshape(*batch, n_seen * p)
    law = np.broadcast_to(law, (*batch, *law.shape[-2:]))
    solved = np.linalg.solve(inner, np.concatenate([law, away[..., None]], -1))
    gain = solved[..., :-1].mT
    theta = theta + np.matvec(gain, away)
    distance = np.vecdot(away, solved[..., -1])
    evidence = laws.log_prior - 0.5 * (np.linalg.slogdet(inner)[1] + distance)
    parts = gain.reshape(*batch, n_classes, p, n_seen, p)[..., 1:, :, :, :]
    follow = (np.einsum("...apkp->...ka", parts) * rows[..., 1:]).sum((-2, -1))
    if population.n_outside:
        # In every direction that is not listed the same K x K problem, with nothing observed.
        floors = np.diagonal(laws.covariance[..., :, -1, :, -1], axis1=-2, axis2=-1)
        plain = (rows * floors[..., None, :]) @ rows.mT
        level = (noise * np.asarray(observed.floor)[..., None])[..., None, :]
        plain = plain + level[..., None] * np.eye(n_seen)
        evidence = evidence - 0.5 * population.n_outside * np.linalg.slogdet(plain)[1]
        pull = np.linalg.solve(plain, rows * floors[..., None, :])
        follow = follow + population.n_outside * (pull * rows)[..., 1:].sum((-2, -1))
    return theta, whole - gain @ law, follow, evidence


def _log_likelihood(theta: Array, proportion: Array, observed: Observed) -> Array:
    """Log likelihood of the unlabelled windows under each law (..., n_laws) (equation 45).

    Up to a constant. They come from (1 - pi) N(m_0, Sigma) + pi N(m_1, Sigma).
    """
    p = observed.sigma.shape[-1]
    windows: Any = observed.unlabelled
    centre, half = theta[..., :p], theta[..., p:]
    means = np.stack([centre - half, centre + half], -2)
    solved = np.linalg.solve(observed.sigma[..., None, None, :, :], means[..., None])[..., 0]
    # log N up to what all laws have in common: x'S^-1 m - m'S^-1 m / 2.
    score = np.einsum("...np,...lkp->...lkn", windows, solved, optimize=True)
    score = score - 0.5 * np.vecdot(means, solved)[..., None]
    share = np.stack([np.log(1.0 - proportion), np.log(proportion)], -1)[..., None]
    likelihood: Array = logsumexp(score + share, axis=-2).sum(-1)
    return likelihood


def _covariance(moments: ClassMoments, population: Population, scale: Array) -> tuple[Array, Array]:
    """Covariance (..., p, p) within the classes: the crowd's, and the person's own (equation 55).

    Sigma = (1 - g) I + g S with g = f / (f + nu), f the degrees of freedom of S and nu what the
    crowd's covariance is worth.
    """
    p = population.whiten.shape[-1]
    counts = moments.counts
    dof = np.maximum(counts.sum(-1) - (counts > 0.0).sum(-1), 0.0)
    share = np.asarray(dof / (dof + population.dof))[..., None, None]
    sums = moments.scatter / (scale if moments.rooted else scale[:, None] * scale)
    own = sums @ population.whiten
    own = own.mT @ own if moments.rooted else population.whiten.mT @ own
    covariance: Array = (1.0 - share) * np.eye(p) + share * own / np.maximum(
        np.asarray(dof)[..., None, None], 1.0
    )
    return covariance, 1.0 - share[..., 0, 0]


class Laws(NamedTuple):
    """Normal laws of theta to mix (equation 56)."""

    mean: Array  # (..., n_laws, K, p)
    covariance: Array  # (..., n_laws, K, p, K, p)
    rows: Array  # (n_laws, k, K): how what was seen depends on theta
    log_prior: Array  # (n_laws,)
    member: Array  # (n_laws,): whether it is that of a member of the crowd
    proportion: Array  # (n_laws,): of the second class among unlabelled windows
    seen: Array  # (..., n_laws, k, p, K, p): covariance of what was seen with theta
    variance: Array  # (..., n_laws, k, p, k, p): covariance of what was seen, but for its noise


def _known_laws(population: Population, observed: Observed, design: Array, protect: bool) -> Laws:
    """The laws; a crowd works out once those for one person."""
    if population.n_outside or population.mean.ndim > 2:
        return _laws(population, observed, design, protect)
    key = (*observed.seen.tolist(), observed.unlabelled is not None, protect)
    if key not in population.kept:
        population.kept[key] = _laws(population, observed, design, protect)
    known: Laws = population.kept[key]
    return known


def _laws(population: Population, observed: Observed, design: Array, protect: bool) -> Laws:
    """Laws of members and strangers; with unlabelled windows, each of these with every proportion.

    The centre of a person may be further from the crowd's than its law says; the contrasts may be
    those of a stranger, of the size of the crowd's and in any direction.
    """
    mean, spread = population.mean, population.covariance
    n_classes, p = mean.shape[-2:]
    anything = len(observed.seen) > 0
    if population.centred and anything:
        # Nothing is known of the centre: a law so wide that it says nothing.
        spread = spread.copy()
        spread[..., :1, :, 1:, :] = 0.0
        spread[..., 1:, :, :1, :] = 0.0
        size = 1.0 + (mean**2).sum((-2, -1)) + np.einsum("...apap->...", spread)
        size = np.asarray(size + population.n_outside * population.floors.sum(-1))
        spread[..., 0, :, 0, :] = 1e4 * size[..., None, None] * np.eye(p)
    means, spreads, logs, member = [mean], [spread], [0.0], [1.0]
    if protect:
        total = (mean[..., 1:, :] ** 2).sum((-2, -1))
        total = total + np.einsum("...apap->...", spread[..., 1:, :, 1:, :])
        total = total + population.n_outside * population.floors[..., 1:].sum(-1)
        tau = np.asarray(total / (np.asarray(population.n_varying) * (n_classes - 1)))
        no_way = mean.copy()
        no_way[..., 1:, :] = 0.0
        strange = np.zeros_like(spread)
        strange[..., 0, :, 0, :] = spread[..., 0, :, 0, :]
        eye = (np.abs(population.whiten).sum(-2) > 0.0)[..., :, None] * np.eye(p)
        for one in range(1, n_classes):
            strange[..., one, :, one, :] = tau[..., None, None] * eye
        odd, common = np.log(STRANGER), np.log(1.0 - STRANGER)
        means, spreads = [mean, no_way], [spread, strange]
        logs, member = [common, odd], [1.0, 0.0]
        if not (population.centred and anything):
            for narrow in spreads[:2]:
                wide = narrow.copy()
                wide[..., 0, :, 0, :] *= WIDER
                spreads.append(wide)
            means, member = means * 2, member * 2
            logs = [common + one for one in logs] + [odd + one for one in logs]
    grid = _PROPORTIONS if observed.unlabelled is not None else np.full(1, 0.5)
    n_laws, n_shares = len(means), grid.size
    rows = np.broadcast_to(
        design[observed.seen], (n_laws * n_shares, len(observed.seen), n_classes)
    )
    proportion = np.tile(grid, n_laws)
    if observed.unlabelled is not None:
        # The mean of the unlabelled windows is c + (2 pi - 1) h (equation 28).
        mixed = np.stack([np.ones_like(proportion), 2.0 * proportion - 1.0], -1)[:, None, :]
        rows = np.concatenate([rows, mixed], 1)
    covariance = np.repeat(np.stack(spreads, -5), n_shares, -5)
    law = np.einsum("...ka,...apbq->...kpbq", rows, covariance, optimize=True)
    return Laws(
        np.repeat(np.stack(means, -3), n_shares, -3),
        covariance,
        rows,
        np.repeat(logs, n_shares),
        np.repeat(member, n_shares),
        proportion,
        law,
        np.einsum("...kpbq,...lb->...kplq", law, rows, optimize=True),
    )

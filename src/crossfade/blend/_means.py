"""Posterior of a person's class means: what their windows and the crowd say (equations 54 to 56).

A person may be a stranger to the crowd, and unlabelled windows come in unknown proportions: each
possibility is a law of its own, and the posterior mixes them by their evidence.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from crossfade._typing import Array
from crossfade.blend._rule import Newcomer
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher import RUNS, ClassMoments, noise_of_runs
from crossfade.prior import Law, Population, design_of

#: Probability that a person's centre, or contrasts, are not those of the crowd; how much wider the
#: law of the centre then is.
STRANGER, WIDER = 0.02, 25.0
#: How many of the crowd's deviations a person may lie away from it, or spread: beyond, doubles have
#: no digit left for what the crowd knows.
_FURTHEST = 1e7
#: Proportions of the second class that unlabelled windows may have, and the power to which their
#: likelihood is taken: neighbours say the same thing twice.
_PROPORTIONS, _TEMPER = np.linspace(0.1, 0.9, 9), 0.1


class PosteriorMeans(NamedTuple):
    """Posterior of the class means in whitened features, with leading batch axes."""

    centres: Array  # (..., K, p): posterior class means
    sigma: Array  # (..., p, p): covariance within the classes
    scatter: Array  # (..., K, p, p): covariance of new windows of each class
    alpha: Array  # (...): weight of the person's own contrasts
    member: Array  # (...): probability that the person is one of the crowd
    whiten: Array  # (..., d, p): takes scaled features to whitened ones, x'whiten
    unwhiten: Array  # (..., d, p): and back

    @property
    def means(self) -> Array:
        """Class means (..., K, d) in scaled features."""
        return np.asarray(self.centres @ self.unwhiten.mT)

    def weights(self) -> Array:
        """Coefficients (..., K, p) of the best scores: (Sigma + P)^-1 times the class means."""
        whole = self.scatter.mean(-3)[..., None, :, :]
        return np.asarray(np.linalg.solve(whole, self.centres[..., None])[..., 0])

    def along(self, omega: Array) -> tuple[Array, Array, Array]:
        """Half the gap, variance within and doubt of the gap along whitened `omega` (..., p)."""
        half_gap = (self.centres[..., 1, :] - self.centres[..., 0, :]) / 2.0
        within = np.vecdot(omega, np.matvec(self.sigma, omega))
        whole = np.vecdot(omega, np.matvec(self.scatter.mean(-3), omega))
        return np.vecdot(omega, half_gap), within, whole - within


def posterior_means(newcomer: Newcomer, law: Law) -> PosteriorMeans:
    """Posterior of the class means of a newcomer, or of a batch with one law or one for each."""
    if law.class_means is None:
        raise PriorMismatchError(
            "This prior holds no class means, which a rule needs before every class has a label "
            "and which the hierarchical blend always needs. Build it with TaskPrior.from_tasks."
        )
    moments, unlabelled, consecutive = newcomer[:3]
    if unlabelled is not None and law.n_classes > 2:
        raise ValueError("Windows without a label help with two classes only; leave them out.")
    population, scale = law.class_means, law.feature_scale
    seen = np.flatnonzero(moments.counts.reshape(-1, moments.counts.shape[-1]).any(0))
    means = moments.means[..., seen, :] / scale
    # Windows that do not follow each other are independent.
    runs = population.run_variances if consecutive else np.full(RUNS.size, np.nan)
    noise = noise_of_runs(runs, moments.counts[..., seen])
    more = [] if unlabelled is None else [unlabelled.mean(-2, keepdims=True) / scale]
    if moments.rooted and population.core < population.whiten.shape[-1]:
        rows = np.concatenate([moments.scatter / scale, means, *more], -2)
        population = population.within_reach(rows @ population.whiten)
    sigma, floor = _covariance(moments, population, scale)
    windows = None if unlabelled is None else (unlabelled / scale) @ population.whiten
    observed = Observed(means @ population.whiten, seen, noise, sigma, floor, windows)
    _refuse_far(population, observed)
    return _posterior(population, observed)


class Observed(NamedTuple):
    """Observed class means of the windows, in whitened features."""

    means: Array  # (..., k, p): of the classes seen
    seen: Any  # (k,): which these are
    noise: Array  # (..., k): variance of the means, in units of the covariance
    sigma: Array  # (..., p, p): covariance within the classes
    floor: Array  # (...): its eigenvalue in directions that are not listed
    unlabelled: Array | None = None  # (..., m, p)


def _refuse_far(population: Population, observed: Observed) -> None:
    """Refuse samples that have nothing to do with those of the crowd."""
    rows = observed.means if observed.unlabelled is None else observed.unlabelled
    far = max(
        *(
            np.abs(one - population.mean[..., :1, :]).max(initial=0.0)
            for one in (observed.means, rows)
        ),
        np.sqrt(np.abs(observed.sigma).max(initial=0.0)),
    )
    if not far <= _FURTHEST:
        raise PriorMismatchError(
            f"The samples are {far:.3g} deviations from the crowd. Check their units."
        )


def _posterior(population: Population, observed: Observed) -> PosteriorMeans:
    """Posterior of theta under each law, on an axis after those of the batch, and their mixture."""
    n_classes, p = population.mean.shape[-2], observed.sigma.shape[-1]
    if "design" not in population.kept:
        population.kept["design"] = design_of(n_classes)
    design = population.kept["design"]
    laws = _known_laws(population, observed, design)
    found = _posteriors(observed, laws)
    if observed.unlabelled is not None:
        found = _with_unlabelled(observed, laws, found)
    if population.n_outside and (len(observed.seen) or observed.unlabelled is not None):
        found = _with_outside(population, observed, laws, found)
    theta, left, gain, evidence, _ = found
    weights = np.exp(evidence - logsumexp(evidence, axis=-1, keepdims=True))
    mean = (weights[..., None] * theta).sum(-2)
    apart = theta - mean[..., None, :]
    left = (weights[..., None, None] * left).sum(-3) + (weights[..., None] * apart).mT @ apart
    size = np.asarray(population.n_varying) * (n_classes - 1)
    alpha = (weights * gain).sum(-1) / size
    left = left.reshape(*left.shape[:-2], n_classes, p, n_classes, p)
    doubt = np.einsum("ka,...apbq,kb->...kpq", design, left, design)
    member = np.repeat(laws.member, weights.shape[-1] // laws.member.size)
    return PosteriorMeans(
        centres=design @ mean.reshape(*mean.shape[:-1], n_classes, p),
        sigma=observed.sigma,
        scatter=observed.sigma[..., None, :, :] + doubt,
        alpha=np.clip(alpha, 0.0, 1.0),
        member=np.minimum((weights * member).sum(-1), 1.0),
        whiten=population.whiten,
        unwhiten=population.unwhiten,
    )


class Posteriors(NamedTuple):
    """Posterior of theta under each law."""

    theta: Array  # (..., n_laws, K p): its mean
    left: Array  # (..., n_laws, K p, K p): its covariance
    gain: Array  # (..., n_laws): trace of d h* / d h
    evidence: Array  # (..., n_laws): logarithm
    pull: Array  # (..., n_laws, K p, k p): d theta* / d means of the labelled windows


def _posteriors(observed: Observed, laws: Laws) -> Posteriors:
    """Posteriors after the labelled windows: theta* = t + G (y - H t), Q = B - G H B."""
    n_classes, p = laws.mean.shape[-2:]
    rows, n_seen = laws.rows, len(laws.rows)
    means, noise, sigma = observed.means, np.asarray(observed.noise), observed.sigma
    inner = laws.variance
    noisy = noise[..., None, :, None, None] * sigma[..., None, None, :, :]
    batch = np.broadcast_shapes(
        inner.shape[:-4], noisy.shape[:-3], (*means.shape[:-2], 1), (*sigma.shape[:-2], 1)
    )
    theta = np.broadcast_to(laws.mean.reshape(*laws.mean.shape[:-2], -1), (*batch, n_classes * p))
    whole = laws.covariance.reshape(*laws.covariance.shape[:-4], n_classes * p, n_classes * p)
    if not n_seen:
        whole = np.broadcast_to(whole, (*batch, *whole.shape[-2:]))
        nothing = np.zeros((*batch, n_classes * p, 0))
        evidence = np.broadcast_to(laws.log_prior, batch)
        return Posteriors(theta, whole, np.zeros(batch), evidence, nothing)
    inner = np.array(np.broadcast_to(inner, (*batch, n_seen, p, n_seen, p)))
    places = np.arange(n_seen)
    inner[..., places, :, places, :] += np.moveaxis(
        np.broadcast_to(noisy, (*batch, n_seen, p, p)), -3, 0
    )
    inner = inner.reshape(*batch, n_seen * p, n_seen * p)
    law = laws.seen.reshape(*laws.seen.shape[:-4], n_seen * p, n_classes * p)
    away = means[..., None, :, :] - rows @ laws.mean
    away = np.broadcast_to(away, (*batch, n_seen, p)).reshape(*batch, n_seen * p)
    law = np.broadcast_to(law, (*batch, *law.shape[-2:]))
    solved = np.linalg.solve(inner, np.concatenate([law, away[..., None]], -1))
    gain = solved[..., :-1].mT
    theta = theta + np.matvec(gain, away)
    distance = np.vecdot(away, solved[..., -1])
    evidence = laws.log_prior - 0.5 * (np.linalg.slogdet(inner)[1] + distance)
    parts = gain.reshape(*batch, n_classes, p, n_seen, p)[..., 1:, :, :, :]
    follow = (np.einsum("...apkp->...ka", parts) * rows[:, 1:]).sum((-2, -1))
    return Posteriors(theta, whole - gain @ law, follow, evidence, gain)


def _with_unlabelled(observed: Observed, laws: Laws, found: Posteriors) -> Posteriors:
    """Posteriors after the unlabelled windows too, for every proportion (equations 28 and 45)."""
    windows: Any = observed.unlabelled
    p, n_windows = windows.shape[-1], windows.shape[-2]
    lean = (2.0 * _PROPORTIONS - 1.0)[:, None, None]
    theta, left = found.theta[..., None, :], found.left[..., None, :, :]
    # Covariance of u with theta, and of u.
    seen = left[..., :p, :] + lean * left[..., p:, :]
    inner = seen[..., :p] + lean * seen[..., p:]
    inner = inner + observed.sigma[..., None, None, :, :] / n_windows
    away = windows.mean(-2)[..., None, None, :] - theta[..., :p] - lean[..., 0] * theta[..., p:]
    solved = np.linalg.solve(inner, np.concatenate([seen, away[..., None]], -1))
    theta = theta + np.matvec(solved[..., :-1].mT, away)
    distance = np.vecdot(away, solved[..., -1])
    evidence = found.evidence[..., None] - 0.5 * (np.linalg.slogdet(inner)[1] + distance)
    # d theta* / d theta is G H + G_u H_u (1 - G H).
    pull = found.pull.reshape(*found.pull.shape[:-1], len(laws.rows), p)
    rest = np.eye(2 * p)[:, p:] - np.einsum("...ikq,k->...iq", pull, laws.rows[:, 1])
    rest = rest[..., None, :, :]
    gain = solved[..., p:-1] * (rest[..., :p, :] + lean * rest[..., p:, :])
    gain = found.gain[..., None] + gain.sum((-2, -1))
    evidence = evidence + _TEMPER * _log_likelihood(theta, observed)
    left = left - solved[..., :-1].mT @ seen
    batch = (*evidence.shape[:-2], -1)
    return Posteriors(
        theta.reshape(*batch, 2 * p),
        left.reshape(*batch, 2 * p, 2 * p),
        gain.reshape(batch),
        evidence.reshape(batch),
        found.pull,
    )


def _with_outside(
    population: Population, observed: Observed, laws: Laws, found: Posteriors
) -> Posteriors:
    """The same with directions that are not listed: in each one K x K problem, nothing observed."""
    rows, noise = laws.rows[None], np.asarray(observed.noise)
    if observed.unlabelled is not None:
        # One problem for every proportion.
        mixed = np.stack([np.ones(_PROPORTIONS.size), 2.0 * _PROPORTIONS - 1.0], -1)
        same = np.broadcast_to(rows, (_PROPORTIONS.size, *rows.shape[1:]))
        rows = np.concatenate([same, mixed[:, None, :]], 1)
        last = np.full((*noise.shape[:-1], 1), 1.0 / observed.unlabelled.shape[-2])
        noise = np.concatenate([noise, last], -1)
    floors = np.diagonal(laws.covariance[..., :, -1, :, -1], axis1=-2, axis2=-1)
    spread = rows * floors[..., None, None, :]
    level = (noise * np.asarray(observed.floor)[..., None])[..., None, None, None, :]
    plain = spread @ rows.mT + level * np.eye(rows.shape[-2])
    follow = (np.linalg.solve(plain, spread) * rows)[..., 1:].sum((-2, -1))
    evidence = np.linalg.slogdet(plain)[1]
    batch = (*evidence.shape[:-2], -1)
    return found._replace(
        gain=found.gain + population.n_outside * follow.reshape(batch),
        evidence=found.evidence - 0.5 * population.n_outside * evidence.reshape(batch),
    )


def _log_likelihood(theta: Array, observed: Observed) -> Array:
    """Log likelihood (..., n_proportions) of the unlabelled windows but for a constant (45)."""
    p = observed.sigma.shape[-1]
    windows: Any = observed.unlabelled
    centre, half = theta[..., :p], theta[..., p:]
    means = np.stack([centre - half, centre + half], -2)
    solved = np.linalg.solve(observed.sigma[..., None, None, :, :], means.mT).mT
    # log N up to what all laws have in common: x'S^-1 m - m'S^-1 m / 2.
    score = solved @ windows[..., None, None, :, :].mT
    score = score - 0.5 * np.vecdot(means, solved)[..., None]
    share = np.stack([np.log(1.0 - _PROPORTIONS), np.log(_PROPORTIONS)], -1)[..., None]
    score = score + share
    return np.logaddexp(score[..., 0, :], score[..., 1, :]).sum(-1)


def _covariance(moments: ClassMoments, population: Population, scale: Array) -> tuple[Array, Array]:
    """Covariance (1 - g) I + g S (..., p, p) within the classes (equation 55), and 1 - g (...)."""
    p = population.whiten.shape[-1]
    counts = moments.counts
    dof = np.maximum(counts.sum(-1) - (counts > 0.0).sum(-1), 0.0) + population.own_dof
    share = np.asarray(dof / (dof + population.dof))[..., None, None]
    sums = moments.scatter / (scale if moments.rooted else scale[:, None] * scale)
    own = sums @ population.whiten
    own = own.mT @ own if moments.rooted else population.whiten.mT @ own
    if population.own_scatter is not None:
        own = own + population.own_scatter
    covariance: Array = (1.0 - share) * np.eye(p) + share * own / np.maximum(
        np.asarray(dof)[..., None, None], 1.0
    )
    return covariance, 1.0 - share[..., 0, 0]


class Laws(NamedTuple):
    """Normal laws of theta to mix (equation 56)."""

    mean: Array  # (..., n_laws, K, p)
    covariance: Array  # (..., n_laws, K, p, K, p)
    rows: Array  # (k, K): how the means of the labelled windows depend on theta
    log_prior: Array  # (n_laws,)
    member: Array  # (n_laws,): whether it is that of a member of the crowd
    seen: Array  # (..., n_laws, k, p, K, p): covariance of what was seen with theta
    variance: Array  # (..., n_laws, k, p, k, p): covariance of what was seen, but for its noise


def _known_laws(population: Population, observed: Observed, design: Array) -> Laws:
    """The laws; a crowd works out once those for one person."""
    if population.n_outside or population.mean.ndim > 2:
        return _laws(population, observed, design)
    key = "laws", *observed.seen.tolist()
    if key not in population.kept:
        population.kept[key] = _laws(population, observed, design)
    return population.kept[key]


def _laws(population: Population, observed: Observed, design: Array) -> Laws:
    """Laws of members of the crowd, and of strangers to its centre, its contrasts or both."""
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
    rows, covariance = design[observed.seen], np.stack(spreads, -5)
    law = np.einsum("ka,...apbq->...kpbq", rows, covariance, optimize=True)
    return Laws(
        np.stack(means, -3),
        covariance,
        rows,
        np.array(logs),
        np.array(member),
        law,
        np.einsum("...kpbq,lb->...kplq", law, rows, optimize=True),
    )

"""Single source directions and a target in, one weight for each source and their blend out.

Everything is computed in coordinates in which Sigma is the identity: there the noise of the
target's direction is the same in all of them, and a rule's risk is a matter of angles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crossfade.blend._posterior import CONTRADICTION
from crossfade.fisher._direction import Target
from crossfade.fisher._spectrum import Spectrum
from crossfade.prior._crowd import least_scatter

Array = NDArray[np.float64]

#: Penalties to choose from; all others have to beat the first, which leaves weights equal.
PENALTIES = np.array([np.inf, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0])
#: How many sources stand in for the target, and how often all of them together at least.
_STAND_INS = 64
_DRAWS = 128


class PerTaskBlend(NamedTuple):
    """Blends of a target's own direction with sources that have a weight each.

    Attributes
    ----------
    omega : ndarray of shape (..., n_features)
        Direction, not of unit length.
    source : ndarray of shape (..., n_features)
        Weighted mean of the sources.
    alpha : ndarray of shape (...)
        Weight of the target.
    weights : ndarray of shape (..., n_tasks)
        Weights of the sources among themselves; they sum to one.
    penalty : ndarray of shape (...)
        Penalty on unequal weights.
    trace : ndarray of shape (...)
        Trace of the derivative of `omega` in the target's own unit direction.
    doubt : ndarray of shape (...)
        Variance of the true direction about `omega` in each coordinate in which Sigma is the
        identity.
    """

    omega: Array
    source: Array
    alpha: Array
    weights: Array
    penalty: Array
    trace: Array
    doubt: Array


def per_task_blend(
    target: Target,
    directions: Array,
    alpha: float | None = None,
    penalty: Array | None = None,
) -> PerTaskBlend:
    """Blend targets with single sources, each with a weight of its own (equations 36 and 37).

    Parameters
    ----------
    target : Target
        What the labelled samples say, of one target or of many.
    directions : ndarray of shape (n_tasks, n_features)
        Unit directions of the sources.
    alpha : float or None
        Weight of the target; None for the one of least expected risk.
    penalty : ndarray of shape (...) or None
        Penalty on unequal weights; None for what :func:`choose_penalty` chooses.

    Returns
    -------
    PerTaskBlend
        The blends.
    """
    if penalty is None:
        penalty = choose_penalty(target, directions)
    sources = _whitened(target.sigma, directions)
    own = _whitened(target.sigma, target.noise.omega[..., None, :])
    mix = _mix(own, sources, target, penalty)
    weights, share = mix.weights[..., 0, :], mix.alpha[..., 0]
    kept = (1.0 - share) * mix.kept[..., 0]
    trace = mix.trace(sources)[..., 0]
    if alpha is not None:
        share, kept = np.full(share.shape, alpha), np.full(share.shape, 1.0 - alpha)
        trace = share * mix.rank[..., 0] + kept * (mix.pull * mix.spread)[..., 0]
    source = weights @ directions
    omega = share[..., None] * target.noise.omega + kept[..., None] * source
    doubt = share * target.noise.inverse
    return PerTaskBlend(omega, source, share / (share + kept), weights, penalty, trace, doubt)


def choose_penalty(target: Target, directions: Array) -> Array:
    """Penalty that serves the sources best, were each of them the target in turn.

    A source gets noise like the target's and is blended with all others. A penalty below infinity
    has to lower the mean risk by more than the standard error of the difference.

    Parameters
    ----------
    target : Target
        What the labelled samples say, of one target or of many.
    directions : ndarray of shape (n_tasks, n_features)
        Unit directions of the sources.

    Returns
    -------
    ndarray of shape (...)
        For each target one of `PENALTIES`.
    """
    n_tasks, n_features = directions.shape
    length = target.noise.length
    chosen, least = np.full(length.shape, np.inf), np.zeros(length.shape)
    if n_tasks < 3:
        return chosen
    stand_ins = np.unique(np.linspace(0, n_tasks - 1, _STAND_INS).round().astype(np.intp))
    n_pairs = -(-_DRAWS // (2 * stand_ins.size))
    # The same draws for everybody, each with its opposite: the choice follows from the data alone.
    draws = np.random.default_rng(0).standard_normal((stand_ins.size, n_pairs, n_features))
    draws = np.concatenate([draws, -draws], axis=1).reshape(-1, n_features)
    sigma = target.sigma
    varies = sigma.map(np.sign(sigma.values), np.sign(sigma.floor))
    noise = np.sqrt(target.noise.inverse)[..., None, None] * _per_row(varies).apply(draws)
    sources = _whitened(sigma, directions)
    who = np.repeat(stand_ins, 2 * n_pairs)
    truth = sources[..., who, :]
    others = who[:, None] != np.arange(n_tasks)

    def risks(penalty: float) -> Array:
        """Mean risk of each stand-in."""
        mix = _mix(truth + noise, sources, target, np.full(length.shape, penalty), others)
        cosine = np.vecdot(mix.omega, truth) / np.linalg.vector_norm(mix.omega, axis=-1)
        each = ndtr(-length[..., None] * cosine).reshape(*length.shape, stand_ins.size, -1)
        mean: Array = each.mean(-1)
        return mean

    average = risks(np.inf)
    for penalty in PENALTIES[1:]:
        difference = risks(penalty) - average
        bound = difference.mean(-1) + difference.std(-1) / np.sqrt(stand_ins.size - 1.0)
        chosen = np.where(bound < least, penalty, chosen)
        least = np.minimum(bound, least)
    return chosen


def posterior_risks(target: Target, blend: PerTaskBlend, alphas: Array) -> Array:
    """Expected risk of blends with the same sources and other alphas (equation 37).

    Parameters
    ----------
    target : Target
        What the labelled samples say.
    blend : PerTaskBlend
        The blend of least expected risk.
    alphas : ndarray of shape (n_alphas,)
        Weights of the target.

    Returns
    -------
    ndarray of shape (..., n_alphas)
        Risks; the least is at the blend's own alpha.
    """
    noise, length = target.noise, target.noise.length[..., None]
    own, source = noise.omega[..., None, :], blend.source[..., None, :]
    rivals = _whitened(target.sigma, alphas[:, None] * own + (1.0 - alphas)[:, None] * source)
    best = _whitened(target.sigma, blend.omega[..., None, :])
    # Sources that cancel make no rule; the product is zero too, and the risk one half.
    sizes = np.maximum(np.linalg.vector_norm(rivals, axis=-1), 1e-300)
    doubt = 1.0 + length**2 * blend.doubt[..., None]
    risks: Array = ndtr(-length * np.vecdot(rivals, best) / (sizes * np.sqrt(doubt)))
    return risks


class _Mix(NamedTuple):
    """Blends of several own directions with the same sources, and what they were made of.

    Attributes
    ----------
    weights : ndarray of shape (..., n_rows, n_tasks)
        Weights of the sources.
    mean, away : ndarray of shape (..., n_rows, n_features)
        Their weighted mean, and what lies between it, shortened, and the own direction.
    kept : ndarray of shape (..., n_rows)
        How far the mean is shortened.
    alpha : ndarray of shape (..., n_rows)
        Weight of the own direction.
    spread, distance : ndarray of shape (..., n_rows)
        Variance of the weighted sources over all coordinates, and squared length of `away`.
    stranger : ndarray of shape (..., n_rows)
        Whether the own direction is further away than the sources' scatter and its noise allow.
    scatter, owed, pull : ndarray of shape (..., 1)
        Variance of the sources with equal weights, variance of the own direction over all
        coordinates, and how steeply weights follow it.
    rank : ndarray of shape (..., 1)
        Number of coordinates.
    """

    weights: Array
    mean: Array
    away: Array
    kept: Array
    alpha: Array
    spread: Array
    distance: Array
    stranger: NDArray[np.bool_]
    scatter: Array
    owed: Array
    pull: Array
    rank: Array

    @property
    def omega(self) -> Array:
        """The blends."""
        blends: Array = self.kept[..., None] * self.mean + self.alpha[..., None] * self.away
        return blends

    def trace(self, sources: Array) -> Array:
        """Trace of the derivative of each blend in its own direction."""
        along_mean, along_away = self._slopes(self.mean, sources), self._slopes(self.away, sources)
        crowd = 1.0 - self.alpha
        turned = np.vecdot(self.away, self.mean) * along_away.kept
        turned = turned + self.kept * along_away.turn
        nearer = 1.0 - turned / np.maximum(self.distance, 1e-300)
        steeper = np.where(
            self.stranger, 2.0 * crowd * nearer, crowd**2 / self.owed * along_away.total
        )
        follow = self.kept * self.pull * self.spread + along_mean.kept
        trace: Array = self.alpha * self.rank + crowd * follow + steeper
        return trace

    def _slopes(self, step: Array, sources: Array) -> _Slopes:
        """What a step of the own direction does to the parts of the blend."""
        weights = self.weights
        along = step @ sources.mT - np.vecdot(step, self.mean)[..., None]
        with_mean = self.mean @ sources.mT
        moved = self.pull[..., None] * weights * along
        size = np.maximum(np.vecdot(self.mean, self.mean), 1e-300)
        doubt = 2.0 * self.scatter * (moved * weights).sum(-1)
        kept = (2.0 * (1.0 - self.kept) * (moved * with_mean).sum(-1) - doubt) / size
        kept = np.where(self.kept * (1.0 - self.kept) > 0.0, kept, 0.0)
        squares = np.vecdot(sources, sources)[..., None, :]
        spread = (moved * (squares - 2.0 * with_mean)).sum(-1)
        total = spread + (1.0 + self.kept) * doubt + (1.0 - self.kept) * size * kept
        return _Slopes(kept, total, (moved * along).sum(-1))


class _Slopes(NamedTuple):
    """Derivatives along a step: of `kept`, of the expected distance, of the mean along the step."""

    kept: Array
    total: Array
    turn: Array


def _mix(
    own: Array,
    sources: Array,
    target: Target,
    penalty: Array,
    admitted: NDArray[np.bool_] | None = None,
) -> _Mix:
    """Weights and blends of rows of own directions, in coordinates in which Sigma is the identity.

    `own` is of shape (..., n_rows, n_features), and `admitted` says which sources a row may use.
    """
    noise = target.noise.inverse[..., None]
    rank = np.maximum(target.rank, 1)[..., None]
    scatter = _scatter(target, sources)[..., None]
    pull = 1.0 / (penalty[..., None] * noise)
    squares = np.vecdot(sources, sources)[..., None, :]
    fit = pull[..., None] * (own @ sources.mT - 0.5 * squares)
    if admitted is not None:
        fit = np.where(admitted, fit, -np.inf)
    weights = np.exp(fit - fit.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    mean = weights @ sources
    size = np.vecdot(mean, mean)
    spread = (weights * squares).sum(-1) - size
    doubt = scatter * (weights**2).sum(-1)
    kept = np.maximum(1.0 - doubt / np.maximum(size, 1e-300), 0.0)
    if sources.shape[-2] == 1:
        # One source says nothing about how far it can be relied on.
        kept = np.ones_like(kept)
    away = own - kept[..., None] * mean
    distance, owed = np.vecdot(away, away), noise * rank
    expected = spread + (1.0 + kept) * doubt + owed
    ratio = np.maximum(distance / expected, 1.0)
    stranger = 0.5 * rank * (ratio - 1.0 - np.log(ratio)) > CONTRADICTION
    alpha = 1.0 - owed / np.where(stranger, distance, expected)
    return _Mix(
        weights, mean, away, kept, alpha, spread, distance, stranger, scatter, owed, pull, rank
    )


def _scatter(target: Target, sources: Array) -> Array:
    """Variance of the sources about their mean, over all coordinates."""
    n_tasks, n_features = sources.shape[-2:]
    trace = target.sigma.trace()
    if n_tasks == 1:
        return np.asarray(trace / n_features)
    mean = sources.mean(-2)
    unlike = np.vecdot(sources, sources).mean(-1) - np.vecdot(mean, mean)
    least = least_scatter(n_tasks, n_features) * trace
    scatter: Array = np.maximum(unlike * n_tasks / (n_tasks - 1.0), least)
    return scatter


def _whitened(sigma: Spectrum, rows: Array) -> Array:
    """Rows of vectors in coordinates in which Sigma is the identity: its root times each."""
    return _per_row(sigma.map(np.sqrt(sigma.values), np.sqrt(sigma.floor))).apply(rows)


def _per_row(sigma: Spectrum) -> Spectrum:
    """The same matrices, for many vectors each."""
    return Spectrum(
        sigma.values[..., None, :], sigma.basis[..., None, :, :], sigma.floor[..., None]
    )

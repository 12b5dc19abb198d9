"""One weight for each source (equations 36 and 37).

Everything is computed in coordinates in which Sigma is the identity: there the noise of the
person's direction is the same in all of them, and a rule's risk is a matter of angles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crossfade._typing import Array
from crossfade.blend._posterior import CONTRADICTION
from crossfade.blend._verb import Blend
from crossfade.fisher._direction import Direction
from crossfade.fisher._spectrum import Spectrum
from crossfade.prior._crowd import least_scatter
from crossfade.risk._choose import AlphaChoice

#: Penalties to choose from; all others have to beat the first, which leaves weights equal.
PENALTIES = np.array([np.inf, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0])
#: How many sources stand in for the target, and how often all of them together at least.
_STAND_INS = 64
_DRAWS = 128


def per_task(
    person: Direction,
    directions: Array,
    alpha: float | None = None,
    alphas: Array | None = None,
) -> Blend:
    """Blend with single sources, each with a weight of its own (equations 36 and 37).

    Parameters
    ----------
    person : Direction
        What labelled windows say, of one person or of a batch.
    directions : ndarray of shape (n_tasks, n_features)
        Unit directions of the sources.
    alpha : float or None, default=None
        Weight of the person; None for the one of least expected risk.
    alphas : ndarray of shape (n_alphas,) or None, default=None
        The grid to choose from; None for the continuous minimum.

    Returns
    -------
    Blend
        The blended directions; `weights` are those of the sources, and sum to one.
    """
    penalty = choose_penalty(person, directions)
    best, doubt = _at(person, directions, penalty, alpha)
    if alpha is not None:
        return best
    grid = np.linspace(0.0, 1.0, 21) if alphas is None else np.asarray(alphas, np.float64)
    risks = _risks(person, best, doubt, grid)
    place = risks.argmin(-1)
    choice = AlphaChoice(best.alpha, risks.min(-1), np.zeros_like(best.alpha), grid, risks)
    if alphas is not None:
        best, _ = _at(person, directions, penalty, grid[place])
    return best._replace(choice=choice)


def _at(
    person: Direction, directions: Array, penalty: Array, alpha: Array | float | None
) -> tuple[Blend, Array]:
    """Blend of one alpha for each person, or of that of least expected risk; and its doubt.

    The doubt is the variance of the true direction about the blend of least risk, in each
    coordinate in which Sigma is the identity.
    """
    sources = _whitened(person.sigma, directions)
    own = _whitened(person.sigma, person.omega[..., None, :])
    mix = _mix(own, sources, person, penalty)
    weights, share = mix.weights[..., 0, :], mix.alpha[..., 0]
    kept = (1.0 - share) * mix.kept[..., 0]
    dof = mix.trace(sources)[..., 0]
    if alpha is not None:
        share = np.broadcast_to(np.asarray(alpha, np.float64), share.shape)
        kept = 1.0 - share
        dof = share * mix.rank[..., 0] + kept * (mix.pull * mix.spread)[..., 0]
    source = weights @ directions
    omega = share[..., None] * person.omega + kept[..., None] * source
    # Neither counts where the sources cancel and the person has next to no direction.
    alpha = share / np.where(share + kept > 0.0, share + kept, 1.0)
    return Blend(omega, dof, alpha, None, weights, source, None, penalty), share * person.noise


def _risks(person: Direction, best: Blend, doubt: Array, alphas: Array) -> Array:
    """Expected risk (..., n_alphas) of blends with the same sources and other alphas (37).

    The least is at the alpha of `best`, the blend of least expected risk.
    """
    length = person.length[..., None]
    own, source = person.omega[..., None, :], np.asarray(best.source)[..., None, :]
    rivals = _whitened(person.sigma, alphas[:, None] * own + (1.0 - alphas)[:, None] * source)
    chosen = _whitened(person.sigma, best.omega[..., None, :])
    # Sources that cancel make no rule; the product is zero too, and the risk one half.
    sizes = np.maximum(np.linalg.vector_norm(rivals, axis=-1), 1e-300)
    spread = np.sqrt(1.0 + length**2 * doubt[..., None])
    risks: Array = ndtr(-length * np.vecdot(rivals, chosen) / (sizes * spread))
    return risks


def choose_penalty(person: Direction, directions: Array) -> Array:
    """Penalty that serves the sources best, were each of them the target in turn.

    A source gets noise like the target's and is blended with all others. A penalty below infinity
    has to lower the mean risk by more than the standard error of the difference.
    """
    n_tasks, n_features = directions.shape
    length = person.length
    chosen, least = np.full(length.shape, np.inf), np.zeros(length.shape)
    if n_tasks < 3:
        return chosen
    stand_ins = np.unique(np.linspace(0, n_tasks - 1, _STAND_INS).round().astype(np.intp))
    n_pairs = -(-_DRAWS // (2 * stand_ins.size))
    # The same draws for everybody, each with its opposite: the choice follows from the data alone.
    draws = np.random.default_rng(0).standard_normal((stand_ins.size, n_pairs, n_features))
    draws = np.concatenate([draws, -draws], axis=1).reshape(-1, n_features)
    sigma = person.sigma
    varies = sigma.map(np.sign(sigma.values), np.sign(sigma.floor))
    noise = np.sqrt(person.noise)[..., None, None] * varies.per_row().apply(draws)
    sources = _whitened(sigma, directions)
    who = np.repeat(stand_ins, 2 * n_pairs)
    truth = sources[..., who, :]
    others = who[:, None] != np.arange(n_tasks)

    def risks(penalty: float) -> Array:
        """Mean risk of each stand-in."""
        mix = _mix(truth + noise, sources, person, np.full(length.shape, penalty), others)
        # Sources that cancel make no rule; the product is zero too, and the risk one half.
        size = np.maximum(np.linalg.vector_norm(mix.omega, axis=-1), 1e-300)
        cosine = np.vecdot(mix.omega, truth) / size
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


class _Mix(NamedTuple):
    """Blends of several own directions with the same sources, and what they were made of."""

    weights: Array  # (..., n_rows, n_tasks): weights of the sources
    mean: Array  # (..., n_rows, d): their weighted mean
    away: Array  # (..., n_rows, d): from the mean, shortened, to the own direction
    kept: Array  # (..., n_rows): how far the mean is shortened
    alpha: Array  # (..., n_rows): weight of the own direction
    spread: Array  # (..., n_rows): variance of the weighted sources over all coordinates
    distance: Array  # (..., n_rows): squared length of `away`
    stranger: NDArray[np.bool_]  # (..., n_rows): further away than scatter and noise allow
    scatter: Array  # (..., 1): variance of the sources with equal weights
    variance: Array  # (..., 1): variance of the own direction over all coordinates
    pull: Array  # (..., 1): how steeply weights follow the own direction
    rank: Array  # (..., 1): number of coordinates

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
            self.stranger, 2.0 * crowd * nearer, crowd**2 / self.variance * along_away.total
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
    person: Direction,
    penalty: Array,
    admitted: NDArray[np.bool_] | None = None,
) -> _Mix:
    """Weights and blends of rows of own directions, in coordinates in which Sigma is the identity.

    `own` is of shape (..., n_rows, n_features), and `admitted` says which sources a row may use.
    """
    noise = person.noise[..., None]
    rank = np.maximum(person.rank, 1)[..., None]
    scatter = _scatter(person, sources)[..., None]
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
    distance, variance = np.vecdot(away, away), noise * rank
    expected = spread + (1.0 + kept) * doubt + variance
    ratio = np.maximum(distance / expected, 1.0)
    stranger = 0.5 * rank * (ratio - 1.0 - np.log(ratio)) > CONTRADICTION
    alpha = 1.0 - variance / np.where(stranger, distance, expected)
    return _Mix(
        weights, mean, away, kept, alpha, spread, distance, stranger, scatter, variance, pull, rank
    )


def _scatter(person: Direction, sources: Array) -> Array:
    """Variance of the sources about their mean, over all coordinates."""
    n_tasks, n_features = sources.shape[-2:]
    trace = person.sigma.trace()
    if n_tasks == 1:
        return np.asarray(trace / n_features)
    mean = sources.mean(-2)
    unlike = np.vecdot(sources, sources).mean(-1) - np.vecdot(mean, mean)
    least = least_scatter(n_tasks, n_features) * trace
    scatter: Array = np.maximum(unlike * n_tasks / (n_tasks - 1.0), least)
    return scatter


def _whitened(sigma: Spectrum, rows: Array) -> Array:
    """Rows of vectors in coordinates in which Sigma is the identity: its root times each."""
    return sigma.root().per_row().apply(rows)

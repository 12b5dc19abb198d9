"""Each source plays the newcomer to the others, on a ladder of labelled windows (equation 58).

The crowd that a player meets is that of all others: the sums less the player's own, in the same
units. Two runs of windows for each player, nested: the run of each rung starts where chance says,
`floor(u (N - n + 1))` with one u for each class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossfade._typing import Array
from crossfade.blend._convex import convex
from crossfade.blend._hierarchical import hierarchical
from crossfade.blend._posterior import posterior
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher import Block, ClassMoments, TaskMoments, learn_direction
from crossfade.prior import LADDER, SPARE, ClassMeans, Crowd, Population, Replay
from crossfade.risk import forecast

#: Runs of each player, most players, and numbers that one array may hold.
N_RUNS, MOST, _CHUNK = 2, 300, 4_000_000


@dataclass(frozen=True, eq=False)
class Players:
    """Some sources with as many windows of each class, and the crowd of the others for each."""

    rows: tuple[Array, ...]  # (n, N, d): windows of each class
    draws: Array  # (n, N_RUNS, K): where runs start
    crowd: Crowd | None
    population: Population | None


def replay(
    moments: TaskMoments,
    prior: Any,
    directions: Array,
    verbs: Sequence[str],
    shares: Array | None = None,
) -> dict[str, Replay]:
    """Records of the rules, from tasks of two classes and the prior that was made of them.

    `shares` (n_tasks,) are the parts of a person that tasks are, which bounded class means count.
    """
    verbs = [verb for verb in verbs if verb != "hierarchical" or prior.class_means is not None]
    n_tasks = moments.n_tasks
    draws = np.random.default_rng(0).random((n_tasks, N_RUNS, 2))
    playing = _playing(n_tasks)
    if shares is None or prior.class_means is None or prior.class_means.clip is None:
        shares = np.ones(n_tasks)
    found: dict[str, list[tuple[Array, Array]]] = {verb: [] for verb in verbs}
    for block in moments.blocks:
        for players in _players(block, playing, draws, prior, directions, shares):
            for verb in list(found):
                try:
                    found[verb].append(_play(players, prior, _RULES[verb]))
                except PriorMismatchError:
                    # Somebody is so far from the others that these can tell nothing.
                    del found[verb]
    return {verb: _record(parts) for verb, parts in found.items()}


def replay_means(moments: TaskMoments, prior: Any) -> dict[str, Replay]:
    """Record of the hierarchical blend, from tasks of any number of classes and their prior."""
    n_tasks, n_classes = moments.n_tasks, prior.class_means.n_classes
    draws = np.random.default_rng(0).random((n_tasks, N_RUNS, n_classes))
    playing = _playing(n_tasks)
    parts = []
    for block in moments.blocks:
        for few in _few(block, playing, np.ones(n_tasks)):
            rows = tuple(part[few] for part in block.rows)
            one = _of_each(block.whole[few], rows, prior)
            population = (prior.class_means - one).population
            players = Players(rows, draws[block.places[few]], None, population)
            try:
                parts.append(_play(players, prior, _by_means))
            except PriorMismatchError:
                return {}
    return {"hierarchical": _record(parts)}


def _record(parts: list[tuple[Array, Array]]) -> Replay:
    """Record of all who played; of a single task nobody does, which adds nothing to a sum."""
    if not parts:
        return Replay.of(*np.empty((2, 0, N_RUNS, LADDER.size)))
    return Replay.of(*(np.concatenate(one) for one in zip(*parts, strict=True)))


def _of_each(
    whole: ClassMoments, rows: Sequence[Array], prior: Any, share: float = 1.0
) -> ClassMeans:
    """What each of some players gave to the sums of a prior."""
    sums = prior.class_means
    alike = sums.alike_sum / sums.n_people
    return ClassMeans.of_each(whole, rows, prior.feature_scale, alike, sums.clip).times(share)


def _playing(n_tasks: int) -> Any:
    """Who plays: the same people in every process and on every machine."""
    playing = np.zeros(n_tasks, bool)
    playing[np.random.default_rng(1).permutation(n_tasks)[:MOST]] = True
    return playing


def _few(block: Block, playing: Any, shares: Array) -> Iterator[Any]:
    """Those of a block who play, of one share, so many at once as memory allows."""
    if min(block.sizes) < 1 + SPARE or shares.size < 2:
        return
    at_once = max(1, _CHUNK // (16 * N_RUNS * block.whole.n_features**2))
    mine = shares[block.places]
    for share in np.unique(mine):
        alike = np.flatnonzero(playing[block.places] & (mine == share))
        for start in range(0, len(alike), at_once):
            yield alike[start : start + at_once]


def _players(
    block: Block, playing: Any, draws: Array, prior: Any, directions: Array, shares: Array
) -> Iterator[Players]:
    """Those of a block who play, with the crowd of the others for each."""
    for few in _few(block, playing, shares):
        places = block.places[few]
        own = directions[places]
        outer = prior.outer_sum
        if outer is not None:
            outer = outer - own[:, :, None] * own[:, None, :]
        crowd = Crowd.from_sums(
            prior.n_tasks - 1,
            prior.direction_sum - own,
            outer,
            direction_noise=prior.direction_noise,
        )
        rows = tuple(part[few] for part in block.rows)
        population = None
        if prior.class_means is not None:
            one = _of_each(block.whole[few], rows, prior, float(shares[places[0]]))
            population = (prior.class_means - one).population
        yield Players(rows, draws[places], crowd, population)


Rule = Callable[[ClassMoments | None, Players, Any], tuple[Array, Array, Array]]


def _play(players: Players, prior: Any, rule: Rule) -> tuple[Array, Array]:
    """Raw forecasts and accuracies (n, N_RUNS, n_rungs); NaN where there are too few windows."""
    sizes = [part.shape[1] for part in players.rows]
    n, n_classes = len(players.draws), len(sizes)
    windows = np.concatenate(players.rows, 1) / prior.feature_scale
    truth = np.repeat(np.arange(n_classes), sizes)
    forecasts, outcomes = (np.full((n, N_RUNS, LADDER.size), np.nan) for _ in range(2))
    for place, size in enumerate(LADDER.tolist()):
        if min(sizes) < size + SPARE or (size == 0 and players.population is None):
            continue
        moments, test = None, np.ones((n, N_RUNS, sum(sizes)), bool)
        if size:
            moments, test = _labelled(players, sizes, size)
        # Without a label both runs are the same.
        coef, offset, expected = rule(moments, players, prior)
        n_runs = N_RUNS if size else 1
        coef = coef.reshape(n, n_runs, n_classes, -1)
        scores = np.einsum("nwd,nrkd->nrwk", windows, coef, optimize=True)
        right = (scores + offset.reshape(n, n_runs, 1, n_classes)).argmax(-1) == truth
        shares = [
            (right & test)[..., truth == name].sum(-1) / test[..., truth == name].sum(-1)
            for name in range(n_classes)
        ]
        outcomes[..., place] = np.mean(shares, axis=0)
        forecasts[..., place] = expected.reshape(n, n_runs) if size else 0.5
    return forecasts, outcomes


def _labelled(players: Players, sizes: list[int], size: int) -> tuple[ClassMoments, Any]:
    """Moments of the labelled windows of all runs, and which of all windows are for testing."""
    n = len(players.draws)
    parts, test = [], []
    for name, (rows, own) in enumerate(zip(players.rows, sizes, strict=True)):
        starts = (players.draws[..., name] * (own - size + 1)).astype(np.intp)
        places = starts[..., None] + np.arange(size)
        parts.append(rows[np.arange(n)[:, None, None], places])
        each = np.arange(own)
        test.append((each < starts[..., None]) | (each >= starts[..., None] + size))
    X = np.concatenate(parts, 2).reshape(n * N_RUNS, len(sizes) * size, -1)
    label = np.repeat(np.arange(len(sizes)), size)
    return ClassMoments.of(X, label, n_classes=len(sizes)), np.concatenate(test, -1)


# -- the rules, each for a batch of runs: coefficients, offsets and raw forecast -------------------


def _by_directions(verb: Callable[..., Any]) -> Rule:
    """Rule of a blend of directions."""

    def rule(
        moments: ClassMoments | None, players: Players, prior: Any
    ) -> tuple[Array, Array, Array]:
        crowd: Any = players.crowd
        if moments is None:
            population: Any = players.population
            middle = np.matvec(population.unwhiten, population.mean[..., 0, :])
            return _two(crowd.mean_direction, middle, np.full(len(middle), 0.5))
        person = learn_direction(
            moments,
            "oas",
            prior.feature_scale,
            fallback=prior.within_spectrum,
            correlation=prior.neighbour_correlation,
        )
        blend = verb(person, crowd.of(np.repeat(np.arange(len(players.draws)), N_RUNS)))
        promise = forecast(person, blend.omega, blend.dof)
        return _two(blend.omega, person.midpoint / prior.feature_scale, promise.accuracy)

    return rule


def _two(omega: Array, middle: Array, expected: Array) -> tuple[Array, Array, Array]:
    """Coefficients and offsets of two classes, for a direction and a middle (n, d)."""
    offset = -np.vecdot(omega, middle)
    nothing = np.zeros_like(omega)
    return np.stack([nothing, omega], 1), np.stack([0.0 * offset, offset], 1), expected


def _by_means(
    moments: ClassMoments | None, players: Players, prior: Any
) -> tuple[Array, Array, Array]:
    """Rule of the hierarchical blend."""
    population: Any = players.population
    n, _, n_classes = players.draws.shape
    if moments is None:
        d = population.whiten.shape[-2]
        nothing = np.zeros((n, n_classes, d))
        moments = ClassMoments(np.zeros(n_classes), nothing, np.zeros((d, d)), False, np.zeros(d))
    else:
        population = population.of(np.repeat(np.arange(n), N_RUNS))
    found = hierarchical(moments, population, prior.feature_scale)
    return found.coef, found.offset, found.accuracy()


_RULES: Mapping[str, Rule] = {
    "convex": _by_directions(convex),
    "posterior": _by_directions(posterior),
    "hierarchical": _by_means,
}

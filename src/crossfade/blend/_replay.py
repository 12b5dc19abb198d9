"""Each source plays the newcomer to the others, on a ladder of labelled windows (equation 58).

The crowd that a player meets is that of all others: the sums less the player's own, in the same
units. Two runs of windows for each player, nested: the run of each rung starts where chance says,
`floor(u (N - n + 1))` with one u for each class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossfade._typing import Array
from crossfade.blend._fit_rule import fit_rule
from crossfade.blend._rule import places_of
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher import Block, ClassMoments, TaskMoments
from crossfade.prior import LADDER, SPARE, ClassMeans, Crowd, Law, Replay

#: Runs of each player, most players, and numbers that one array may hold.
N_RUNS, MOST, _CHUNK = 2, 300, 4_000_000


@dataclass(frozen=True, eq=False)
class Players:
    """Some sources with as many windows of each class, and the crowd of the others for each."""

    rows: tuple[Array, ...]  # (n, N, d): windows of each class
    draws: Array  # (n, N_RUNS, K): where runs start
    law: Law


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
                    found[verb].append(_play(players, verb))
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
            law = Law(n_classes, prior.feature_scale, class_means=population)
            players = Players(rows, draws[block.places[few]], law)
            try:
                parts.append(_play(players, "hierarchical"))
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
        law = Law(
            len(block.sizes),
            prior.feature_scale,
            crowd,
            population,
            prior.within_spectrum,
            prior.neighbour_correlation,
        )
        yield Players(rows, draws[places], law)


def _play(players: Players, kind: str) -> tuple[Array, Array]:
    """Raw forecasts and accuracies (n, N_RUNS, n_rungs); NaN where there are too few windows."""
    sizes = [part.shape[1] for part in players.rows]
    n, n_classes = len(players.draws), len(sizes)
    windows = np.concatenate(players.rows, 1)
    truth = np.repeat(np.arange(n_classes), sizes)
    forecasts, outcomes = (np.full((n, N_RUNS, LADDER.size), np.nan) for _ in range(2))
    for place, size in enumerate(LADDER.tolist()):
        if min(sizes) < size + SPARE or (size == 0 and players.law.class_means is None):
            continue
        # Without a label both runs are the same.
        n_runs = N_RUNS if size else 1
        moments, test = _labelled(players, sizes, size) if size else _unlabelled(players)
        law = players.law.of(np.repeat(np.arange(n), n_runs))
        rule = fit_rule(moments, law, kind, rehearsal=True)
        coef = rule.coef.reshape(n, n_runs, *rule.coef.shape[1:])
        scores = np.einsum("nwd,nrkd->nrwk", windows, coef, optimize=True)
        scores = scores + rule.intercept.reshape(n, n_runs, 1, -1)
        right = places_of(scores) == truth
        shares = [
            (right & test)[..., truth == name].sum(-1) / test[..., truth == name].sum(-1)
            for name in range(n_classes)
        ]
        outcomes[..., place] = np.mean(shares, axis=0)
        forecasts[..., place] = rule.raw_forecast.reshape(n, n_runs) if size else 0.5
    return forecasts, outcomes


def _unlabelled(players: Players) -> tuple[ClassMoments, Any]:
    """Moments of no window, and all windows for testing."""
    (n, _, n_classes), d = players.draws.shape, players.rows[0].shape[-1]
    nothing = np.zeros((n, n_classes, d))
    n_windows = sum(part.shape[1] for part in players.rows)
    moments = ClassMoments(np.zeros(n_classes), nothing, np.zeros((d, d)), False, np.zeros(d))
    return moments, np.ones((n, 1, n_windows), bool)


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

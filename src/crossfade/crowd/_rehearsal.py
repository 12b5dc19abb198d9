"""Leave each source out in turn, as a newcomer to the others, with ever more labels (equation 58).

The crowd that a newcomer meets is that of all others: the sums less the newcomer's own, in the same
units. There are two runs of windows for each, nested: for each label count a run starts where
chance says, `floor(u (N - n + 1))` with one u for each class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array
from crossfade.blend import KINDS, fit_rule
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher import Block, ClassMoments, TaskMoments
from crossfade.prior import (
    LADDER,
    SPARE,
    ClassMeans,
    Crowd,
    Directions,
    ForecastRecord,
    Law,
    Population,
    Space,
    Sums,
    directions_of,
)

#: Runs of each newcomer, most newcomers, and numbers that one array may hold.
N_RUNS, MOST, _CHUNK = 2, 300, 4_000_000


@dataclass(frozen=True, eq=False)
class Newcomers:
    """Some sources with as many windows of each class, and the law of the others for each."""

    rows: tuple[Array, ...]  # (n, N, d): windows of each class
    draws: Array  # (n, N_RUNS, K): where runs start
    law: Law


def rehearsal(
    moments: TaskMoments,
    space: Space,
    sums: Mapping[str, Sums],
    kinds: Sequence[str] | None = None,
    *,
    shrinkage: str | float | None = "oas",
    shares: Array | None = None,
) -> dict[str, ForecastRecord]:
    """Forecast records of the kinds of blends that these sums allow; None is all kinds.

    `shares` (n_tasks,) are the parts of a person that tasks are, which bounded class means count.
    """
    kinds = [kind for kind in KINDS if kind != "fisher"] if kinds is None else list(kinds)
    found: dict[str, list[tuple[Array, Array]]] = {kind: [] for kind in kinds}
    shares = np.ones(moments.n_tasks) if shares is None else shares
    whole = Law.from_sums(space, sums)
    for newcomers in _newcomers(moments, space, sums, whole, shrinkage, shares):
        for kind in list(found):
            try:
                found[kind].append(_rehearse(newcomers, kind))
            except PriorMismatchError:
                # The sums do not allow it, or somebody is too far from the others.
                del found[kind]
    return {kind: _record(parts) for kind, parts in found.items()}


def _record(parts: list[tuple[Array, Array]]) -> ForecastRecord:
    """Record of all newcomers; a single task adds nothing."""
    if not parts:
        return ForecastRecord.of(*np.empty((2, 0, N_RUNS, LADDER.size)))
    return ForecastRecord.of(*(np.concatenate(one) for one in zip(*parts, strict=True)))


def _newcomers(
    moments: TaskMoments,
    space: Space,
    sums: Mapping[str, Sums],
    whole: Law,
    shrinkage: str | float | None,
    shares: Array,
) -> Iterator[Newcomers]:
    """Those who rehearse, with the law of the others for each."""
    n_tasks, scale = moments.n_tasks, space.feature_scale
    # The same people in every process and on every machine.
    chosen = np.zeros(n_tasks, bool)
    chosen[np.random.default_rng(1).permutation(n_tasks)[:MOST]] = True
    draws = np.random.default_rng(0).random((n_tasks, N_RUNS, space.n_classes))
    directions, means = sums.get("directions"), sums.get("class_means")
    own = None
    if isinstance(directions, Directions):
        own = directions_of(moments, scale, shrinkage)
    for block in moments.blocks:
        for few in _few(block, chosen, shares):
            places = block.places[few]
            rows = tuple(part[few] for part in block.rows)
            law = whole
            if own is not None and isinstance(directions, Directions):
                law = replace(law, directions=_others(directions, own[places]))
            if isinstance(means, ClassMeans):
                log_dof = means.log_wishart_dof / means.n_people
                bound = space.mean_norm_bound
                each = ClassMeans.of_each(block.whole[few], rows, scale, log_dof, bound)
                others = means - each * float(shares[places[0]])
                centred = space.centred_per_person
                law = replace(law, class_means=Population.from_sums(others, centred=centred))
            yield Newcomers(rows, draws[places], law)


def _few(block: Block, chosen: NDArray[np.bool_], shares: Array) -> Iterator[NDArray[np.intp]]:
    """Those of a block who rehearse, of one share, so many at once as memory allows."""
    if min(block.sizes) < 1 + SPARE or shares.size < 2:
        return
    at_once = max(1, _CHUNK // (16 * N_RUNS * block.whole.n_features**2))
    mine = shares[block.places]
    for share in np.unique(mine):
        alike = np.flatnonzero(chosen[block.places] & (mine == share))
        for start in range(0, len(alike), at_once):
            yield alike[start : start + at_once]


def _others(sums: Directions, own: Array) -> Crowd:
    """Law of the directions of all but each of some people (n, d)."""
    outer = None if sums.outer is None else sums.outer - own[:, :, None] * own[:, None, :]
    noise = sums.average("noise")
    return Crowd.from_sums(
        sums.n_tasks - 1.0,
        sums.direction - own,
        outer,
        direction_noise=None if noise is None else float(noise),
    )


def _rehearse(newcomers: Newcomers, kind: str) -> tuple[Array, Array]:
    """Raw forecasts and accuracies (n, N_RUNS, n_rungs); NaN where there are too few windows."""
    sizes = [part.shape[1] for part in newcomers.rows]
    n, n_classes = len(newcomers.draws), len(sizes)
    windows = np.concatenate(newcomers.rows, 1)
    truth = np.repeat(np.arange(n_classes), sizes)
    forecasts, outcomes = (np.full((n, N_RUNS, LADDER.size), np.nan) for _ in range(2))
    for place, size in enumerate(LADDER.tolist()):
        if min(sizes) < size + SPARE or (size == 0 and newcomers.law.class_means is None):
            continue
        # Without a label both runs are the same.
        n_runs = N_RUNS if size else 1
        test = np.ones((n, n_runs, sum(sizes)), bool)
        if size:
            moments, test = _labelled(newcomers, sizes, size)
        else:
            moments = _no_label(n, n_classes, windows.shape[-1])
        law = newcomers.law.of(np.repeat(np.arange(n), n_runs))
        rule = fit_rule(moments, law, kind, rehearsal=True)
        coef = rule.coef.reshape(n, n_runs, *rule.coef.shape[-2:])
        scores = np.einsum("nwd,nrkd->nrwk", windows, coef, optimize=True)
        scores = scores + rule.intercept.reshape(n, n_runs, 1, -1)
        said = scores.argmax(-1) if n_classes > 2 else (scores[..., 0] > 0.0).astype(np.intp)
        right = (said == truth) & test
        outcomes[..., place] = np.mean(
            [
                right[..., truth == name].sum(-1) / test[..., truth == name].sum(-1)
                for name in range(n_classes)
            ],
            axis=0,
        )
        forecasts[..., place] = rule.raw_forecast.reshape(n, n_runs) if size else 0.5
    return forecasts, outcomes


def _no_label(n: int, n_classes: int, d: int) -> ClassMoments:
    """Moments of nobody's windows."""
    nothing = np.zeros((n, n_classes, d))
    return ClassMoments(np.zeros(n_classes), nothing, np.zeros((d, d)), False, np.zeros(d))


def _labelled(
    newcomers: Newcomers, sizes: list[int], size: int
) -> tuple[ClassMoments, NDArray[np.bool_]]:
    """Moments of the labelled windows of all runs, and which of all windows are for testing."""
    n = len(newcomers.draws)
    parts, test = [], []
    for name, (rows, own) in enumerate(zip(newcomers.rows, sizes, strict=True)):
        starts = (newcomers.draws[..., name] * (own - size + 1)).astype(np.intp)
        places = starts[..., None] + np.arange(size)
        parts.append(rows[np.arange(n)[:, None, None], places])
        each = np.arange(own)
        test.append((each < starts[..., None]) | (each >= starts[..., None] + size))
    X = np.concatenate(parts, 2).reshape(n * N_RUNS, len(sizes) * size, -1)
    label = np.repeat(np.arange(len(sizes)), size)
    return ClassMoments.of(X, label, n_classes=len(sizes)), np.concatenate(test, -1)

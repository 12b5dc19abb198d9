"""Leave each source out in turn, as a newcomer to the others, with ever more labels (equation 58).

Each newcomer has two nested runs of windows: with n of N labelled they start at
`floor(u (N - n + 1))`, with one random u for each class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array
from crossfade._validate import check_choice
from crossfade.blend import KINDS, fit_rule
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher import ClassMoments, TaskMoments
from crossfade.prior import LABEL_COUNTS, SPARE, ForecastRecord, LeftOut, Space, Sums, left_out

#: Runs of each newcomer, most newcomers, and numbers that one array may hold.
N_RUNS, MOST, _CHUNK = 2, 300, 4_000_000


def rehearsal(
    moments: TaskMoments,
    space: Space,
    sums: Mapping[str, Sums],
    kinds: Sequence[str] | None,
    shrinkage: str | float | None,
    groups: Sequence[str | None] | None,
) -> dict[str, ForecastRecord]:
    """Forecast records of the kinds of blends that these sums allow; None is all kinds."""
    able = [kind for kind in KINDS if kind != "fisher"]
    kinds = able if kinds is None else [check_choice("A kind", kind, able) for kind in kinds]
    found: dict[str, list[tuple[Array, Array]]] = {kind: [] for kind in kinds}
    # The same people in every process and on every machine.
    chosen = np.zeros(moments.n_tasks, bool)
    chosen[np.random.default_rng(1).permutation(moments.n_tasks)[:MOST]] = True
    draws = np.random.default_rng(0).random((moments.n_tasks, N_RUNS, space.n_classes))
    at_once = max(1, _CHUNK // (16 * N_RUNS * space.n_features**2))
    for newcomers in left_out(
        moments, space, sums, chosen, shrinkage, groups, fewest=1 + SPARE, at_once=at_once
    ):
        for kind in list(found):
            try:
                found[kind].append(_rehearse(newcomers, draws[newcomers.places], kind))
            except PriorMismatchError:
                # The sums do not allow it, or a person is too far from the others.
                del found[kind]
    return {kind: _record(parts) for kind, parts in found.items()}


def _record(parts: list[tuple[Array, Array]]) -> ForecastRecord:
    """Record of all newcomers; a single task adds nothing."""
    if not parts:
        return ForecastRecord.of(*np.empty((2, 0, N_RUNS, LABEL_COUNTS.size)))
    return ForecastRecord.of(*(np.concatenate(one) for one in zip(*parts, strict=True)))


def _rehearse(newcomers: LeftOut, draws: Array, kind: str) -> tuple[Array, Array]:
    """Raw forecasts and accuracies (n, N_RUNS, n_counts), NaN where there are too few windows."""
    sizes = [part.shape[1] for part in newcomers.rows]
    n, n_classes = len(draws), len(sizes)
    windows = np.concatenate(newcomers.rows, 1)
    truth = np.repeat(np.arange(n_classes), sizes)
    forecasts, outcomes = (np.full((n, N_RUNS, LABEL_COUNTS.size), np.nan) for _ in range(2))
    of_runs = newcomers.law.of(np.repeat(np.arange(n), N_RUNS))
    for place, size in enumerate(LABEL_COUNTS.tolist()):
        if min(sizes) < size + SPARE or (size == 0 and newcomers.law.class_means is None):
            continue
        # Without a label both runs are the same.
        n_runs, law = (N_RUNS, of_runs) if size else (1, newcomers.law)
        test = np.ones((n, n_runs, sum(sizes)), bool)
        if size:
            moments, test = _labelled(newcomers.rows, draws, sizes, size)
        else:
            moments = ClassMoments.empty(n_classes, windows.shape[-1], n)
        rule = fit_rule(moments, law, kind, rehearsal=True)
        coef = rule.coef.reshape(n, n_runs, *rule.coef.shape[-2:])
        scores = windows[:, None] @ coef.mT + rule.intercept.reshape(n, n_runs, 1, -1)
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


def _labelled(
    windows: tuple[Array, ...], draws: Array, sizes: list[int], size: int
) -> tuple[ClassMoments, NDArray[np.bool_]]:
    """Moments of the labelled windows of all runs, and which of all windows are for testing."""
    n = len(draws)
    parts, test = [], []
    for name, (rows, own) in enumerate(zip(windows, sizes, strict=True)):
        starts = (draws[..., name] * (own - size + 1)).astype(np.intp)
        places = starts[..., None] + np.arange(size)
        parts.append(rows[np.arange(n)[:, None, None], places])
        each = np.arange(own)
        test.append((each < starts[..., None]) | (each >= starts[..., None] + size))
    X = np.concatenate(parts, 2).reshape(n * N_RUNS, len(sizes) * size, -1)
    label = np.repeat(np.arange(len(sizes)), size)
    return ClassMoments.of(X, label, n_classes=len(sizes)), np.concatenate(test, -1)

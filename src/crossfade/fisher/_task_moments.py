"""Moments of many tasks at once: all that a prior needs of them.

Tasks with as many windows of each class make a block: moments of the earlier and later windows of
each class (equation 49), and how far neighbours are alike (47).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array, Places
from crossfade.fisher._direction import learn_direction
from crossfade.fisher._moments import RUNS, ClassMoments
from crossfade.fisher._spectrum import (
    ROUNDING,
    from_dense,
    shrinkage_weight,
    shrunk_dense,
    truncate,
    varying_dimension,
)

#: Numbers that one array of a chunk of tasks may hold.
_CHUNK = 500_000
#: How far apart samples are compared, and the fewest pairs of them that tell how alike they are.
N_LAGS, _FEWEST_PAIRS = 30, 5
#: Correlations from the first that is below this on are taken for none; above that for less.
_LEAST, _MOST = 0.02, 0.95


@dataclass(frozen=True, eq=False)
class Block:
    """Tasks that have as many windows of each class, so that they can be computed at once."""

    places: Places  # (n_tasks,): where they stand among all tasks
    whole: ClassMoments
    halves: tuple[ClassMoments, ClassMoments] | None  # of the earlier and later windows of a class
    autocorrelation: Array | None  # (n_tasks, n_lags)
    rows: tuple[Array, ...]  # of each class its windows (n_tasks, n, d), in the order of time

    def of(self, kept: NDArray[np.bool_]) -> Block:
        """Some of the tasks."""
        halves = None
        if self.halves is not None:
            early, late = self.halves
            halves = early[kept], late[kept]
        alike = None if self.autocorrelation is None else self.autocorrelation[kept]
        rows = tuple(part[kept] for part in self.rows)
        return Block(self.places[kept], self.whole[kept], halves, alike, rows)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Windows of each class."""
        return tuple(part.shape[1] for part in self.rows)

    @cached_property
    def run_sums(self) -> Array:
        """Sum over tasks of how noisy the means of their runs are, (n_runs, d, d)."""
        return np.asarray(mean_run_noise(self.rows).sum(0))


@dataclass(frozen=True, eq=False)
class TaskMoments:
    """Moments of many tasks; ``moments[groups != group]`` leaves one person out."""

    n_tasks: int
    blocks: tuple[Block, ...]  # tasks with as many windows of each class, together

    @classmethod
    def of(cls, tasks: Sequence[tuple[Array, Places]]) -> TaskMoments:
        """Moments of tasks of two classes: windows (n, d) in the order of time, and 0 or 1 each."""
        blocks = [
            _block(chunk, classes[0], classes[1])
            for chunk, classes in _in_chunks(tasks, 2)
            if len(classes) == 2
        ]
        return _of_able(len(tasks), blocks)

    @classmethod
    def of_classes(cls, tasks: Sequence[tuple[Array, Places]], n_classes: int) -> TaskMoments:
        """Moments of all classes together, of the tasks that have every one of them."""
        blocks = []
        for chunk, classes in _in_chunks(tasks, n_classes):
            if len(classes) == n_classes:
                whole = reduce(ClassMoments.beside, (one.whole for one in classes.values()))
                rows = tuple(one.rows for one in classes.values())
                blocks.append(Block(chunk, whole, None, None, rows))
        return _of_able(len(tasks), blocks)

    def __getitem__(self, kept: NDArray[np.bool_]) -> TaskMoments:
        """Moments of some of the tasks, given by a mask."""
        place = np.cumsum(kept) - 1
        blocks = []
        for block in self.blocks:
            some = kept[block.places]
            if some.any():
                part = block if some.all() else block.of(some)
                blocks.append(replace(part, places=place[part.places]))
        return TaskMoments(int(kept.sum()), tuple(blocks))

    def gather(self, part: Callable[[Block], Array]) -> Array:
        """Results of `part` for each block, in the order of all tasks."""
        found = [(block.places, part(block)) for block in self.blocks]
        whole: Array = np.empty((self.n_tasks, *found[0][1].shape[1:]))
        for places, values in found:
            whole[places] = values
        return whole


def _by_class(X: Array, label: Places) -> Array:
    """Windows of the first class before those of the second, each in the order of time."""
    if (label[1:] >= label[:-1]).all():
        return X
    return X[np.argsort(label, kind="stable")]


def _in_chunks(
    tasks: Sequence[tuple[Array, Places]], n_classes: int
) -> Iterator[tuple[Places, dict[int, _Class]]]:
    """Moments of each class, for tasks with as many windows of each, so many at a time."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for place, (_, label) in enumerate(tasks):
        sizes = tuple(np.bincount(label, minlength=n_classes).tolist())
        alike.setdefault(sizes, []).append(place)
    for sizes, places in alike.items():
        n_features = tasks[places[0]][0].shape[1]
        at_once = max(1, _CHUNK // (n_features * max(sum(sizes), n_features)))
        for start in range(0, len(places), at_once):
            chunk = np.array(places[start : start + at_once])
            X = np.stack([_by_class(*tasks[place]) for place in chunk])
            yield chunk, _moments_of_classes(X, sizes)


class _Class(NamedTuple):
    """Moments of one class in each of some tasks."""

    rows: Array  # (n_tasks, n, d): its windows, in the order of time
    whole: ClassMoments
    halves: tuple[ClassMoments, ClassMoments] | None  # None for classes with too few windows


def _moments_of_classes(X: Array, sizes: tuple[int, ...]) -> dict[int, _Class]:
    """Moments of each class that windows (n_tasks, n, d), sorted by class, have any of."""
    classes = {}
    for place, rows in enumerate(np.split(X, np.cumsum(sizes[:-1]), 1)):
        n = rows.shape[1]
        if n >= 4:
            middle = (n + 1) // 2
            early, late = _of_one(rows[:, :middle]), _of_one(rows[:, middle:])
            classes[place] = _Class(rows, early + late, (early, late))
        elif n:
            classes[place] = _Class(rows, _of_one(rows), None)
    return classes


def _of_one(rows: Array) -> ClassMoments:
    """Moments of windows of one class."""
    return ClassMoments.of(rows, np.zeros(rows.shape[1], np.intp), n_classes=1)


def _block(places: Places, first: _Class, second: _Class) -> Block:
    """Block of two classes."""
    halves = None
    if first.halves is not None and second.halves is not None:
        early, late = (
            _with_dimension(one.beside(other))
            for one, other in zip(first.halves, second.halves, strict=True)
        )
        halves = early, late
    whole = _with_dimension(first.whole.beside(second.whole))
    rows = first.rows, second.rows
    return Block(places, whole, halves, _neighbours(whole, rows), rows)


def _of_able(n_tasks: int, blocks: list[Block]) -> TaskMoments:
    """Moments of the tasks that are in a block, in their order."""
    able = np.zeros(n_tasks, bool)
    for block in blocks:
        able[block.places] = True
    return TaskMoments(n_tasks, tuple(blocks))[able]


def mean_run_noise(rows: Sequence[Array]) -> Array:
    """Mean outer products (n_tasks, n_runs, d, d) of the mean of a run less that of the rest."""
    n_tasks, _, d = rows[0].shape
    found = np.zeros((n_tasks, RUNS.size, d, d))
    n_able = (np.array([part.shape[1] for part in rows])[:, None] > RUNS).sum(0)
    for part in rows:
        size = part.shape[1]
        summed = np.zeros((n_tasks, size + 1, d))
        np.cumsum(part - part.mean(1, keepdims=True), 1, out=summed[:, 1:])
        for place, n in enumerate(RUNS[size > RUNS].tolist()):
            away = summed[:, n:] - summed[:, :-n]
            # Mean of the run less that of the rest: N / (N - n) times that less the mean of all.
            scale = (size / (n * (size - n))) ** 2 / (away.shape[1] * n_able[place])
            found[:, place] += scale * (away.mT @ away)
    return found


def _with_dimension(moments: ClassMoments) -> ClassMoments:
    """The same, with the dimension of the space in which the features of each task vary."""
    if moments.rooted:
        return moments
    d = moments.n_features
    deviation = moments.deviation()
    unit = np.where(deviation > 0.0, deviation, 1.0)
    covariance = moments.scaled(unit)
    dimension = np.full(len(covariance), d)
    # The least eigenvalue is at least det((d - 1) / trace)^(d - 1): most matrices have full rank
    # for certain, and need not be decomposed.
    trace = np.trace(covariance, axis1=-2, axis2=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.linalg.slogdet(covariance)[1] + (d - 1) * np.log(max(d - 1, 1) / trace)
        doubtful = np.flatnonzero(~(least > np.log(1e3 * d * ROUNDING * trace)))
    if doubtful.size:
        # Features are tied only if there are fewer directions than degrees of freedom.
        values = np.asarray(np.linalg.eigvalsh(covariance[doubtful]), np.float64)
        rank = (truncate(values, 1) > 0.0).sum(-1)
        doubtful = doubtful[rank < np.minimum(moments.dof, d)]
    if doubtful.size:
        some = moments[doubtful]
        nu = some.gap() / (2.0 * unit[doubtful])
        spectrum = from_dense(covariance[doubtful])
        dimension[doubtful] = varying_dimension(spectrum, nu, np.asarray(some.dof))
    return replace(moments, n_varying=dimension)


def _shrunk_covariance(
    moments: ClassMoments, scale: Array, shrinkage: float | str = "oas"
) -> Array:
    """Shrunk covariances (n_tasks, d, d) (equation 2), or the identity for tasks without any."""
    d = moments.n_features
    varies = moments.deviation() > 0.0
    covariance = moments.scaled(np.where(varies, scale, np.inf))
    trace = np.trace(covariance, axis1=-2, axis2=-1)
    size = np.full(len(trace), d) if moments.n_varying is None else moments.n_varying
    square = (covariance**2).sum((-2, -1))
    r = shrinkage_weight(shrinkage, trace, square, size, moments.dof)
    learnt = (moments.left >= 1.0) & (trace > 0.0)
    level = np.where(learnt, r * trace / size, 1.0)
    return shrunk_dense(covariance, np.where(learnt, r, 1.0), level)


def unit_directions(
    moments: ClassMoments, scale: Array, shrinkage: str | float | None = "oas"
) -> Array:
    """Unit directions (n_tasks, d) in features divided by `scale`; zero without a gap."""
    nu = moments.gap() / (2.0 * scale)
    omega: Array
    if moments.rooted or not shrinkage:
        omega = learn_direction(moments, shrinkage, scale).omega
    else:
        shrunk = _shrunk_covariance(moments, scale, shrinkage)
        try:
            omega = np.asarray(np.linalg.solve(shrunk, nu[..., None])[..., 0], np.float64)
        except np.linalg.LinAlgError:
            # The variance of a feature has no digit left beside that of another.
            return learn_direction(moments, shrinkage, scale).omega
        length = np.linalg.vector_norm(omega, axis=-1, keepdims=True)
        omega = omega / np.where(length > 0.0, length, 1.0)
    # Tasks without any variance, or whose classes differ only where nothing varies.
    for place in np.flatnonzero(nu.any(-1) & ~omega.any(-1)):
        omega[place] = learn_direction(moments[place], shrinkage, scale).omega
    return omega


def _neighbours(moments: ClassMoments, runs: tuple[Array, Array]) -> Array:
    """How far neighbours in `runs` (n_tasks, n, d) of each class are alike, (n_tasks, n_lags)."""
    deviation = moments.deviation()
    scale = np.where(deviation > 0.0, deviation, 1.0)
    sizes = [run.shape[1] for run in runs]
    means = np.repeat(moments.means, sizes, 1)
    rows = (np.concatenate(runs, 1) - means) / scale[:, None, :]
    in_units: Array
    if moments.rooted:
        in_units = learn_direction(moments).sigma.inverse().per_row().apply(rows)
    else:
        solved = np.linalg.solve(_shrunk_covariance(moments, scale), rows.mT)
        in_units = np.asarray(solved.mT, np.float64)
    n_first = sizes[0]
    return autocorrelation(
        [(rows[:, :n_first], in_units[:, :n_first]), (rows[:, n_first:], in_units[:, n_first:])]
    )


def autocorrelation(runs: list[tuple[Array, Array]]) -> Array:
    """Correlation (..., n_lags) of centred rows (..., n, d) with those over the covariance (47)."""
    batch = runs[0][0].shape[:-2]
    alike, pairs = np.zeros((*batch, N_LAGS + 1)), np.zeros(N_LAGS + 1)
    for rows, in_units in runs:
        size = rows.shape[-2]
        for lag in range(min(size, N_LAGS + 1)):
            products = np.vecdot(rows[..., : size - lag, :], in_units[..., lag:, :])
            alike[..., lag] += products.sum(-1)
            pairs[lag] += size - lag
    whole = alike[..., :1] / pairs[0]
    told = (pairs[1:] >= _FEWEST_PAIRS) & (whole > 0.0)
    return np.where(
        told, alike[..., 1:] / np.maximum(pairs[1:], 1.0) / np.where(whole > 0.0, whole, 1.0), 0.0
    )


def cut_off(correlation: Array) -> Array:
    """Correlations of neighbours up to the last that cannot be an accident, all positive."""
    below = np.flatnonzero(correlation < _LEAST)
    return np.minimum(correlation[: below[0] if below.size else None], _MOST)

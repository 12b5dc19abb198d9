"""Class means of many people: sums of them, and the law of those of a new person (51 to 53).

.. math:: m_k = c + \\sum_l C_{kl} h_l, \\quad C^T C = K I, \\quad 1^T C = 0

with the centre c and the contrasts h, together theta; of two classes m_0 = c - h and m_1 = c + h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np

from crossfade._typing import Array
from crossfade.fisher import (
    RUNS,
    Block,
    ClassMoments,
    invert,
    mean_run_noise,
    noise_of_runs,
    oas,
    shrunk_dense,
)
from crossfade.prior._bounded import bounded, filled
from crossfade.prior._parts import LARGEST, Sums, summed

#: Eigenvalues below this proportion of the largest are directions in which nothing varies.
_LEAST = 1e-8
#: Degrees of freedom of the crowd's covariance with too few people, and how many are enough.
CROWD_DOF, _FEWEST = 20.0, 8
#: Least and most degrees of freedom of the crowd's covariance.
_DOF = (1.0, 1e4)
#: A core is worth the trouble below this proportion of all directions.
_WORTH = 0.6
#: What the laws of a batch of people have in common.
_SHARED = ("centred", "core", "n_outside", "dof", "own_scatter", "own_dof")


@dataclass(frozen=True, eq=False)
class ClassMeans(Sums, name="class_means"):
    """Sums over people of their class means, in scaled units; leading axes are a batch."""

    n_people: float = summed(of="people")
    mean_sum: Array = summed("Kd", of="class means, one class after the other")
    outer_sum: Array = summed("Kd", "Kd", of="outer products of these", semidefinite=True)
    n_within: float = summed(of="people with a covariance of their own")
    within_sum: Array = summed("d", "d", of="covariances within the classes", semidefinite=True)
    run_counts: Array = summed(RUNS.size, of="people with runs of 1, 2, 3, ... windows")
    run_sums: Array = summed(
        RUNS.size, "d", "d", of="outer products of run mean less the rest", semidefinite=True
    )
    log_wishart_dof: float = summed(of="logarithms of the degrees of freedom", default=0.0)

    @classmethod
    def of_each(
        cls,
        whole: ClassMoments,
        rows: Sequence[Array],
        scale: Array,
        log_dof: float,
        bound: float | None = None,
    ) -> ClassMeans:
        """Contribution of each of some tasks to the sums, with a batch axis for the tasks."""
        means = (whole.means / scale).reshape(len(whole.means), -1)
        units, able = scale[:, None] * scale, float(np.all(whole.left > 0.0))
        within = whole.known().dense_scatter() / (units * np.asarray(whole.dof)[..., None, None])
        longest = max(part.shape[1] for part in rows)
        counts = (longest > RUNS).astype(np.float64)
        within, runs = able * within, mean_run_noise(rows) / units
        if bound is not None:
            if not able:
                within = within + np.eye(scale.size)
            means, within, runs = bounded(means, within, filled(runs, longest), bound)
            able, counts = 1.0, np.ones(RUNS.size)
        # The degrees of freedom come from a median over people: one of them hardly moves it.
        outer = means[:, :, None] * means[:, None, :]
        return cls(1.0, means, outer, able, within, counts, runs, log_dof)

    @classmethod
    def of_blocks(cls, blocks: Sequence[Block], scale: Array) -> ClassMeans:
        """Sum over tasks, without a bound."""
        units = scale[:, None] * scale
        means = np.concatenate(
            [(one.whole.means / scale).reshape(len(one.places), -1) for one in blocks]
        )
        within, n_within = np.zeros(units.shape), 0
        runs, counts = np.zeros((RUNS.size, *units.shape)), np.zeros(RUNS.size)
        for block in blocks:
            if np.all(block.whole.left > 0.0):
                scatter = block.whole.known().scatter
                rows = scatter.reshape(-1, scale.size)
                total = rows.T @ rows if block.whole.rooted else scatter.sum(0)
                within += total / np.asarray(block.whole.dof)
                n_within += len(block.places)
            runs += block.run_sums
            counts += len(block.places) * (max(block.sizes) > RUNS)
        if np.abs(means).max() ** 2 * len(means) > LARGEST:
            raise ValueError(
                f"Class means are {np.abs(means).max():.3g} deviations from zero, too far to tell "
                "anything apart. Subtract a constant from the features."
            )
        sums = cls(
            float(len(means)),
            means.sum(0),
            means.T @ means,
            float(n_within),
            within / units,
            counts,
            runs / units,
        )
        return sums._with_dof(blocks, scale)

    @classmethod
    def of_people(
        cls, blocks: Sequence[Block], scale: Array, shares: Array, bound: float
    ) -> ClassMeans:
        """Sums over people, none of whom adds more than `bound` allows; a task counts its share."""
        parts = []
        for block in blocks:
            each = cls.of_each(block.whole, block.rows, scale, 0.0, bound)
            share = shares[block.places]
            over: dict[str, Any] = {
                name: np.tensordot(share, getattr(each, name), 1) for name in _BATCHED
            }
            parts.append(replace(each * float(share.sum()), **over))
        # Parts of people add up to whole ones, but for rounding.
        whole = float(round(shares.sum()))
        counted: dict[str, Any] = {
            "n_people": whole,
            "n_within": whole,
            "run_counts": np.full(RUNS.size, whole),
        }
        return replace(reduce(add, parts), **counted)._with_dof(blocks, scale)

    def _with_dof(self, blocks: Sequence[Block], scale: Array) -> ClassMeans:
        """The same with the degrees of freedom of the crowd's covariance."""
        log_dof = self.n_people * np.log(_crowd_dof(blocks, scale, self))
        return replace(self, log_wishart_dof=float(log_dof))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.within_sum.shape[-1])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.mean_sum.shape[-1]) // self.n_features

    def check(self) -> None:
        """Refuse counts that people cannot have."""
        counts = (self.n_people, self.n_within, float(self.run_counts.min()))
        most = 1.001 * np.log(_DOF[1]) * self.n_people
        if self.n_people < 1.0 or min(counts) < 0.0 or not 0.0 <= self.log_wishart_dof <= most:
            raise ValueError("class_means are not sums over people.")


#: Sums that have an axis for each of a batch of people.
_BATCHED = ("mean_sum", "outer_sum", "within_sum", "run_sums")


def _crowd_dof(blocks: Sequence[Block], scale: Array, sums: ClassMeans) -> float:
    """Degrees of freedom of the crowd's covariance beside a person's own, by a median (55)."""
    if sums.n_within < 2.0:
        return CROWD_DOF
    whiten, _, varying = whitening(sums.within_sum, sums.n_within)
    p = int(varying.sum())
    apart = []
    for block in blocks:
        dof = np.asarray(block.whole.dof)
        if np.all(block.whole.left > 1.0):
            turn = whiten / scale[:, None]
            own = block.whole.scatter @ turn
            own = (own.mT @ own if block.whole.rooted else turn.T @ own) / dof[..., None, None]
            trace, square = np.trace(own, axis1=-2, axis2=-1), (own**2).sum((-2, -1))
            apart.append(square - 2.0 * trace + p - (trace**2 + square) / dof)
    if not apart or sum(map(len, apart)) < _FEWEST:
        return CROWD_DOF
    each = np.concatenate(apart)
    middle = float(np.median(each) + 1.25 * each.std(ddof=1) / np.sqrt(each.size))
    return float(np.clip((p**2 + p) / max(middle, 1e-12), *_DOF))


def whitening(within_sum: Array, n_within: float) -> tuple[Array, Array, Any]:
    """Columns that make the average covariance the identity, their inverses, and which vary."""
    d = within_sum.shape[-1]
    if n_within <= 0.0:
        eye = np.broadcast_to(np.eye(d), within_sum.shape)
        return eye, eye, np.ones(within_sum.shape[:-1], bool)
    values, basis = np.linalg.eigh(within_sum / n_within)
    # Where nothing varies at all, units stay what they are.
    values = np.where(values[..., -1:] > 0.0, values, 1.0)
    varying = values > _LEAST * values[..., -1:]
    # Eigenvalues ascend: columns that no one of a batch needs come first.
    first = int((~varying).reshape(-1, d).all(0).sum())
    values, basis, varying = values[..., first:], basis[..., first:], varying[..., first:]
    root = np.sqrt(np.where(varying, values, 0.0))
    return basis * invert(root)[..., None, :], basis * root[..., None, :], varying


def contrasts(n_classes: int) -> Array:
    """Matrix C (K, K - 1) of orthogonal contrasts with C'C = K I; (-1, 1)' for two classes."""
    matrix = np.zeros((n_classes, n_classes - 1))
    for column in range(n_classes - 1):
        # Helmert's: class column + 1 against the mean of those before it.
        matrix[: column + 1, column] = -1.0
        matrix[column + 1, column] = column + 1.0
    matrix *= np.sqrt(n_classes) / np.linalg.vector_norm(matrix, axis=0)
    return matrix


@dataclass(frozen=True, eq=False)
class Population:
    """Normal law of theta = (c, h) of a new person, in whitened features (equations 51 to 53).

    Beyond `core` coordinates, of which `n_outside` are not listed, the covariance is isotropic.
    """

    whiten: Array  # (..., n_features, rank): takes scaled features to whitened ones, x'whiten
    unwhiten: Array  # (..., n_features, rank): and back
    n_varying: Array  # (...): directions in which features vary; columns beyond are zero
    mean: Array  # (..., n_classes, rank): mean t of theta, the centre c and the contrasts h
    covariance: Array  # (..., n_classes, rank, n_classes, rank): covariance B of theta
    run_variances: Array  # (..., 9): variance v_n of the mean of n windows in a row, or NaN
    centred: bool  # whether the centre c is unknown
    core: int
    n_outside: int = 0
    dof: float = 20.0  # degrees of freedom of the crowd's covariance beside a person's own
    own_scatter: Array | None = None  # (rank, rank): squares of earlier sessions of the person
    own_dof: float = 0.0  # its degrees of freedom

    @classmethod
    def from_sums(cls, sums: ClassMeans, *, centred: bool = False) -> Population:
        """Law from sums over people."""
        n_classes, n_people = sums.n_classes, float(sums.n_people)
        whiten, unwhiten, varying = whitening(sums.within_sum, sums.n_within)
        rank = whiten.shape[-1]
        size = varying.sum(-1)
        # Means and their second moments in the coordinates c, h, whitened.
        mean = _in_theta(sums.mean_sum / n_people, whiten)
        outer = outer_in_theta(sums.outer_sum / n_people, whiten)
        covariance = outer - mean[..., :, :, None, None] * mean[..., None, None, :, :]
        core = rank
        if varying.all():
            turned, core = _core(mean, covariance)
            if core < _WORTH * rank:
                whiten, unwhiten, mean = whiten @ turned, unwhiten @ turned, mean @ turned
                covariance = np.einsum(
                    "...pr,...apbq,...qs->...arbs", turned, covariance, turned, optimize=True
                )
            else:
                core = rank
        if n_people < 2.0:
            level = (mean[..., 1:, :] ** 2).sum((-2, -1)) / (size * (n_classes - 1))
            eye = np.eye(n_classes)[:, None, :, None] * np.eye(rank)[None, :, None, :]
            covariance = (
                np.asarray(level)[..., None, None, None, None]
                * eye
                * np.ones((*mean.shape[:-2], 1, 1, 1, 1))
            )
        else:
            covariance = shrunk_blocks(
                covariance * (n_people / (n_people - 1.0)), n_people, varying
            )
        # The mean is known from so many people only.
        covariance = covariance * (1.0 + 1.0 / n_people)
        dof = float(np.exp(np.ravel(sums.log_wishart_dof / n_people)[0]))
        traces = np.einsum("...pr,...npq,...qr->...n", whiten, sums.run_sums, whiten, optimize=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            runs = traces / (np.asarray(size)[..., None] * sums.run_counts)
        runs = np.where(sums.run_counts > 0, runs, np.nan)
        return cls(whiten, unwhiten, size, mean, covariance, runs, centred, core, dof=dof)

    def of_person(self, mean: Array, covariance: Array, scatter: Array, dof: float) -> Population:
        """Law of the next session of a person, by the means and squares of earlier ones."""
        whiten = self.whiten
        return replace(
            self,
            mean=_in_theta(mean, whiten),
            covariance=outer_in_theta(covariance, whiten),
            # The covariance for one person is nowhere isotropic.
            core=whiten.shape[-1],
            own_scatter=whiten.T @ scatter @ whiten,
            own_dof=dof,
        )

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.mean.shape[-2])

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """Results that a blend keeps for all people."""
        return {}

    def of(self, which: Any) -> Population:
        """Those of some of a batch of people."""
        names = [one.name for one in fields(self) if one.name not in _SHARED]
        parts: dict[str, Any] = {name: getattr(self, name)[which] for name in names}
        return replace(self, **parts)

    @property
    def floors(self) -> Array:
        """Variance (..., K) of centre and contrasts beyond the core."""
        last = self.covariance[..., :, -1, :, -1]
        return np.asarray(np.diagonal(last, axis1=-2, axis2=-1))

    def within_reach(self, rows: Array) -> Population:
        """The same law in the core and in what rows (..., k, rank) span beyond it."""
        core, rank = self.core, self.whiten.shape[-1]
        if not rows.shape[-2]:
            # One at least: what is the same beyond the core is read off the last coordinate.
            rows = np.broadcast_to(np.eye(rank)[-1:], (*rows.shape[:-2], 1, rank))
        k = rows.shape[-2]
        if core + k >= rank:
            return self
        beyond: Any = np.linalg.qr(rows[..., core:].mT).Q
        batch, n_classes = beyond.shape[:-2], self.n_classes

        def turned(columns: Array) -> Array:
            head = np.broadcast_to(columns[..., :core], (*batch, *columns.shape[-2:-1], core))
            return np.concatenate([head, columns[..., core:] @ beyond], -1)

        mean = np.zeros((*batch, n_classes, core + k))
        mean[..., :core] = self.mean[..., :core]
        covariance = np.zeros((*batch, n_classes, core + k, n_classes, core + k))
        covariance[..., :core, :, :core] = self.covariance[..., :core, :, :core]
        places = np.arange(core, core + k)
        for one in range(n_classes):
            covariance[..., one, places, one, places] = self.floors[..., one, None]
        return replace(
            self,
            whiten=turned(self.whiten),
            unwhiten=turned(self.unwhiten),
            mean=mean,
            covariance=covariance,
            n_outside=rank - core - k,
        )

    def mean_noise(self, counts: Array, *, consecutive: bool = True) -> Array:
        """Variance (...) of the mean of so many windows, in covariances (equation 53)."""
        return noise_of_runs(
            self.run_variances if consecutive else np.full(RUNS.size, np.nan), counts
        )


def design_of(n_classes: int) -> Array:
    """Matrix (1, C) of shape (K, K) that takes centre c and contrasts h to class means."""
    return np.concatenate([np.ones((n_classes, 1)), contrasts(n_classes)], 1)


def _in_theta(means: Array, whiten: Array) -> Array:
    """Class means (..., K d), one after the other, as theta (..., K, rank)."""
    d = whiten.shape[-2]
    rows = means.reshape(*means.shape[:-1], means.shape[-1] // d, d)
    n_classes = rows.shape[-2]
    return (design_of(n_classes) / n_classes).T @ rows @ whiten


def outer_in_theta(outer: Array, whiten: Array) -> Array:
    """Matrices (..., K d, K d) of class means as those of theta, (..., K, rank, K, rank)."""
    d = whiten.shape[-2]
    n_classes = outer.shape[-1] // d
    turn = design_of(n_classes) / n_classes
    blocks = outer.reshape(*outer.shape[:-2], n_classes, d, n_classes, d)
    turned = np.einsum("ka,...kplq,lb->...apbq", turn, blocks, turn, optimize=True)
    return np.asarray(
        np.einsum("...pr,...apbq,...qs->...arbs", whiten, turned, whiten, optimize=True)
    )


def _core(mean: Array, covariance: Array) -> tuple[Array, int]:
    """Rotation (..., p, p) that puts all that differs from a multiple of the identity first."""
    inner = np.einsum("...apaq->...pq", covariance) + mean.mT @ mean
    values, basis = np.linalg.eigh(inner)
    values, basis = values[..., ::-1], basis[..., ::-1]
    p = values.shape[-1]
    some = (values > 1e-10 * values[..., :1]).reshape(-1, p).any(0)
    return np.ascontiguousarray(basis), int(some.sum())


def shrunk_blocks(covariance: Array, n_people: float, varying: Any) -> Array:
    """Covariance (..., K, p, K, p) of theta (52): the blocks of centre and contrasts shrunk."""
    *batch, n_classes, p, _, _ = covariance.shape
    n_contrasts = n_classes - 1
    size = varying.sum(-1)
    blocks = covariance.reshape(*batch, n_classes * p, n_classes * p)
    centre = _shrunk(blocks[..., :p, :p], size, varying, n_people)
    wide = np.tile(varying, n_contrasts)
    around = _shrunk(blocks[..., p:, p:], size * n_contrasts, wide, n_people)
    cross = blocks[..., :p, p:]
    square = (cross**2).sum((-2, -1))
    traces = np.trace(centre, axis1=-2, axis2=-1) * np.trace(around, axis1=-2, axis2=-1)
    if n_people < 3.0:
        rho = np.zeros_like(square)
    else:
        chance = (traces + square) / ((n_people - 1.0) * np.where(square > 0.0, square, 1.0))
        rho = np.where(square > 0.0, np.maximum(1.0 - chance, 0.0), 0.0)
    cross = rho[..., None, None] * cross
    whole = np.concatenate(
        [np.concatenate([centre, cross], -1), np.concatenate([cross.mT, around], -1)], -2
    )
    if rho.any():
        values, basis = np.linalg.eigh(whole)
        whole = (basis * np.maximum(values, 0.0)[..., None, :]) @ basis.mT
    return np.asarray(whole.reshape(*batch, n_classes, p, n_classes, p))


def _shrunk(block: Array, size: Any, varying: Any, n_people: float) -> Array:
    """Covariance over people shrunk by OAS within the directions in which anything varies."""
    trace, square = np.trace(block, axis1=-2, axis2=-1), (block**2).sum((-2, -1))
    weight = np.asarray(oas(trace, square, size, n_people - 1.0))
    shrunk = shrunk_dense(block.copy(), weight, np.asarray(weight * trace / size))
    return np.where(varying[..., :, None] & varying[..., None, :], shrunk, 0.0)

"""Sums over people of their class means, and of how noisy these are (equations 51 to 53)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from crossfade._typing import Array
from crossfade.fisher import RUNS, Block, ClassMoments, invert, off_by
from crossfade.prior._bounded import bounded, filled
from crossfade.prior._sums import LARGEST, Sums, summed

#: Eigenvalues below this proportion of the largest are directions in which nothing varies.
_LEAST = 1e-8
#: Degrees of freedom of the crowd's covariance with too few people, and how many are enough.
CROWD_DOF, _FEWEST = 20.0, 8
#: Least and most degrees of freedom of the crowd's covariance.
_DOF = (1.0, 1e4)


@dataclass(frozen=True, eq=False)
class ClassMeans(Sums, name="class_means"):
    """Sums over people of their class means, in scaled units; leading axes are a batch.

    A log Wishart dof is the logarithm of the degrees of freedom that the average covariance is
    worth beside a person's own: many where all people have the same (equation 55).
    """

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
        """What each of some tasks gives to the sums, with a batch axis for the tasks."""
        means = (whole.means / scale).reshape(len(whole.means), -1)
        units, able = scale[:, None] * scale, float(np.all(whole.left > 0.0))
        within = whole.known().dense_scatter() / (units * np.asarray(whole.dof)[..., None, None])
        longest = max(part.shape[1] for part in rows)
        counts = (longest > RUNS).astype(np.float64)
        within, runs = able * within, off_by(rows) / units
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
        """Sums over the tasks of blocks, whatever these add."""
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
                "anything apart. Subtract a constant from the features, or build the prior with "
                "class_means=False."
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
            raise ValueError("class_means are no sums over people.")


#: Sums that have an axis for each of a batch of people.
_BATCHED = ("mean_sum", "outer_sum", "within_sum", "run_sums")


def _crowd_dof(blocks: Sequence[Block], scale: Array, sums: ClassMeans) -> float:
    """Degrees of freedom that the crowd's covariance is worth beside a person's own (equation 55).

    Own covariances S_j that scatter about I, in whitened features, as those of a Wishart law of nu
    degrees of freedom do are E |S_j - I|^2 = (p^2 + p) / nu apart, and more by their own noise
    (tr(S_j)^2 + |S_j|^2) / f_j. The median over people is robust; its standard error is added,
    since a covariance that is wrongly taken for everybody's does more harm than one's own noise.
    """
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

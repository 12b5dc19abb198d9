"""The law of class means of a new person: a normal law in whitened features (51 to 53).

A person has class means m_0, ..., m_(K-1); their centre c and contrasts h are theta = (c, h), with

.. math:: m_k = c + \\sum_l C_{kl} h_l, \\quad C^T C = K I, \\quad 1^T C = 0

which for two classes is m_0 = c - h, m_1 = c + h. In units in which the average covariance within
the classes is the identity, theta has the mean t and the covariance B over people; the mean of n
windows in a row is off by v_n times the covariance. All of it follows from sums over people.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from crossfade._typing import Array
from crossfade.fisher import RUNS, noise_of_runs, oas, shrunk_dense
from crossfade.prior._class_means import ClassMeans, whitening

#: Eigenvalues below this proportion of the largest are directions in which nothing varies.
_LEAST = 1e-8
#: A core is worth the trouble below this proportion of all directions.
_WORTH = 0.6
#: What the laws of a batch of people have in common.
_SHARED = ("centred", "core", "n_outside", "dof", "own_scatter", "own_dof")


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

    Attributes
    ----------
    whiten, unwhiten : ndarray of shape (..., n_features, rank)
        Columns that take scaled features to whitened ones, x'whiten, and back.
    n_varying : ndarray of shape (...)
        Number of directions in which features vary; columns beyond are zero.
    mean : ndarray of shape (..., n_classes, rank)
        Mean t of theta: the centre c, and the contrasts h.
    covariance : ndarray of shape (..., n_classes, rank, n_classes, rank)
        Covariance B of theta.
    run_variances : ndarray of shape (..., 9)
        Variance v_n of the mean of n windows in a row; NaN where no one had such runs.
    centred : bool
        Whether the centre c is unknown.
    core : int
        Beyond so many coordinates the mean is zero and the covariance a multiple of the identity
        for the centre, and one for the contrasts.
    n_outside : int
        How many such coordinates are not listed.
    dof : float
        Degrees of freedom that the crowd's covariance is worth beside a person's own.
    own_scatter, own_dof : ndarray of shape (rank, rank) or None, and float
        Sum of squares within the classes of earlier sessions of the person, if there were any.
    """

    whiten: Array
    unwhiten: Array
    n_varying: Array
    mean: Array
    covariance: Array
    run_variances: Array
    centred: bool
    core: int
    n_outside: int = 0
    dof: float = 20.0
    own_scatter: Array | None = None
    own_dof: float = 0.0

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
        """Law of the next session of one person, by its class means in scaled units.

        `scatter` is the sum of squares of the earlier windows, of `dof` degrees of freedom.
        """
        whiten = self.whiten
        return replace(
            self,
            mean=_in_theta(mean, whiten),
            covariance=outer_in_theta(covariance, whiten),
            # What is known of one person is no multiple of the identity anywhere.
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
        """What a blend has worked out for every person."""
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
        """The same law in the core and in what rows (..., k, rank) span beyond it.

        In all other directions nothing was seen, so that none need be listed.
        """
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

    def mean_noise(self, counts: Array, *, in_a_row: bool = True) -> Array:
        """Variance v_n of the mean of so many windows (...) (equation 53), in covariances.

        Windows that do not follow each other count as independent.
        """
        return noise_of_runs(self.run_variances if in_a_row else np.full(RUNS.size, np.nan), counts)


def _turn(n_classes: int) -> Array:
    """Columns (K, K) that take class means to the centre c and the contrasts h."""
    design = np.concatenate([np.ones((n_classes, 1)), contrasts(n_classes)], 1)
    return design / n_classes


def _in_theta(means: Array, whiten: Array) -> Array:
    """Class means (..., K d), one after the other, as theta (..., K, rank)."""
    d = whiten.shape[-2]
    rows = means.reshape(*means.shape[:-1], means.shape[-1] // d, d)
    theta: Array = _turn(rows.shape[-2]).T @ rows @ whiten
    return theta


def outer_in_theta(outer: Array, whiten: Array) -> Array:
    """Matrices (..., K d, K d) of class means as those of theta, (..., K, rank, K, rank)."""
    d = whiten.shape[-2]
    n_classes = outer.shape[-1] // d
    turn, blocks = _turn(n_classes), outer.reshape(*outer.shape[:-2], n_classes, d, n_classes, d)
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
    """Covariance B (..., K, p, K, p) of theta (equation 52): blocks of c and of h shrunk.

    OAS shrinks the blocks on the diagonal. The block X between centre and contrasts is multiplied
    by rho = max(0, 1 - (tr T_c tr T_h + |X|^2) / ((J - 1) |X|^2)): what chance alone makes of it.
    """
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

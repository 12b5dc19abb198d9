"""What a crowd knows of class means: a normal law over those of a new person (equations 51 to 53).

A person has class means m_0, ..., m_(K-1); their centre c and contrasts h are theta = (c, h), with

.. math:: m_k = c + \\sum_l C_{kl} h_l, \\quad C^T C = K I, \\quad 1^T C = 0

which for two classes is m_0 = c - h, m_1 = c + h. In units in which the average covariance within
the classes is the identity, theta has the mean t and the covariance B over people; the mean of n
windows in a row is off by v_n times the covariance. All of it follows from sums over people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from crossfade._typing import Array
from crossfade._validate import (
    check_covariance,
    check_finite,
    check_number,
    check_spectrum,
)
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher._moments import ClassMoments
from crossfade.fisher._spectrum import invert, oas, shrunk_dense
from crossfade.fisher._task_moments import RUNS, Block, off_by

#: Eigenvalues below this proportion of the largest are directions in which nothing varies.
_LEAST = 1e-8
#: What the crowd's covariance is worth where too few people tell, and how many can.
CROWD_DOF, _FEWEST = 20.0, 8
#: A core is worth the trouble below this proportion of all directions.
_WORTH = 0.6
#: What the laws of a batch of people have in common.
_SHARED = ("centred", "core", "n_outside", "dof")
#: Least and most degrees of freedom that the crowd's covariance may be worth.
_DOF = (1.0, 1e4)


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
class ClassMeans:
    """Sums over people of their class means, in scaled units; leading axes are a batch.

    Attributes
    ----------
    n_people : float
        Number of people J.
    mean_sum : ndarray of shape (..., n_classes * n_features)
        Sum of their class means, one class after the other.
    outer_sum : ndarray of shape (..., n_classes * n_features, n_classes * n_features)
        Sum of the outer products of these.
    n_within : float
        Number of people with a covariance of their own.
    within_sum : ndarray of shape (..., n_features, n_features)
        Sum of their covariances within the classes.
    run_counts : ndarray of shape (9,)
        Number of people with runs of 1, 2, 3, 4, 5, 8, 13, 21 and 34 windows and others beside.
    run_sums : ndarray of shape (..., 9, n_features, n_features)
        Sum over people of the mean outer product of (mean of a run - mean of the rest).
    alike_sum : float
        Number of people times the logarithm of how many degrees of freedom the crowd's covariance
        is worth beside a person's own: many where all have the same.
    centred : bool
        Whether every person's features were centred on all their windows, so that the centre of the
        classes says nothing.
    """

    n_people: float
    mean_sum: Array
    outer_sum: Array
    n_within: float
    within_sum: Array
    run_counts: Array
    run_sums: Array
    alike_sum: float = 0.0
    centred: bool = False

    @classmethod
    def of_each(
        cls, whole: ClassMoments, rows: Sequence[Array], scale: Array, alike: float
    ) -> ClassMeans:
        """What each of some tasks gives to the sums, with a batch axis for the tasks."""
        means = (whole.means / scale).reshape(len(whole.means), -1)
        units, able = scale[:, None] * scale, float(np.all(whole.left > 0.0))
        within = whole.dense_scatter() / (units * np.asarray(whole.dof)[..., None, None])
        longest = max(part.shape[1] for part in rows)
        return cls(
            1.0,
            means,
            means[:, :, None] * means[:, None, :],
            able,
            able * within,
            (longest > RUNS).astype(np.float64),
            off_by(rows) / units,
            # A median over people: one of them hardly moves it.
            alike,
        )

    @classmethod
    def of_blocks(cls, blocks: Sequence[Block], scale: Array, *, centred: bool) -> ClassMeans:
        """Sums over the tasks of blocks."""
        units = scale[:, None] * scale
        means = np.concatenate(
            [(one.whole.means / scale).reshape(len(one.places), -1) for one in blocks]
        )
        within, n_within = np.zeros(units.shape), 0
        runs, counts = np.zeros((RUNS.size, *units.shape)), np.zeros(RUNS.size)
        for block in blocks:
            if np.all(block.whole.left > 0.0):
                scatter = block.whole.scatter
                rows = scatter.reshape(-1, scale.size)
                total = rows.T @ rows if block.whole.rooted else scatter.sum(0)
                within += total / np.asarray(block.whole.dof)
                n_within += len(block.places)
            runs += block.run_sums
            counts += len(block.places) * (max(block.sizes) > RUNS)
        sums = cls(
            float(len(means)),
            means.sum(0),
            means.T @ means,
            float(n_within),
            within / units,
            counts,
            runs / units,
            centred=centred,
        )
        return replace(sums, alike_sum=len(means) * np.log(_crowd_dof(blocks, scale, sums)))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.within_sum.shape[-1])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.mean_sum.shape[-1]) // self.n_features

    def __add__(self, other: ClassMeans) -> ClassMeans:
        """Sums over the people of both."""
        if self.centred != other.centred:
            raise PriorMismatchError(
                "Priors cannot be merged of which one has features that were centred person by "
                "person and the other has not: their class means are different things. Build both "
                "alike, or leave the class means out: prior.without('class_means')."
            )
        return self._with(other, 1.0)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same numbers, to the bit."""
        return isinstance(other, ClassMeans) and all(
            np.array_equal(getattr(self, one.name), getattr(other, one.name))
            for one in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]

    def reversed(self) -> ClassMeans:
        """The same with the classes in reverse order."""
        d, n_classes = self.n_features, self.n_classes
        order = np.arange(n_classes * d).reshape(n_classes, d)[::-1].ravel()
        return replace(
            self,
            mean_sum=self.mean_sum[..., order],
            outer_sum=self.outer_sum[..., order[:, None], order],
        )

    def fields(self) -> dict[str, Any]:
        """What a file holds of the sums."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @classmethod
    def of_file(cls, values: Any, n_features: int, n_people: int) -> ClassMeans:
        """Sums from the fields of a file, every number of them checked."""
        if not isinstance(values, dict):
            raise TypeError(f"class_means must be an object; got {type(values).__name__}.")
        names = [one.name for one in fields(cls)]
        known = {name: values[name] for name in names}
        d, size = n_features, np.size(known["mean_sum"])
        shapes = {
            "mean_sum": (size,),
            "outer_sum": (size, size),
            "within_sum": (d, d),
            "run_counts": (RUNS.size,),
            "run_sums": (RUNS.size, d, d),
        }
        for name, shape in shapes.items():
            known[name] = check_finite(name, known[name], len(shape))
            if known[name].shape != shape:
                raise ValueError(f"{name} must be of shape {shape}; got {known[name].shape}.")
        if size % d or size < 2 * d:
            raise ValueError(f"mean_sum has {size} numbers, which are not means of {d} features.")
        known["alike_sum"] = check_number("alike_sum", known["alike_sum"], 0.0)
        for name in ("n_people", "n_within"):
            known[name] = check_number(name, known[name], 0.0, float(n_people))
        if not isinstance(known["centred"], bool):
            raise TypeError(f"centred must be true or false; got {known['centred']!r}.")
        if known["n_people"] < 1.0 or known["run_counts"].min() < 0.0:
            raise ValueError("class_means must be those of one person or more.")
        matrices = [known["outer_sum"], known["within_sum"], *known["run_sums"]]
        for matrix in matrices:
            check_covariance("class_means", matrix, len(matrix))
            check_spectrum("class_means", np.linalg.eigvalsh(matrix))
        return cls(**known)

    def __sub__(self, other: ClassMeans) -> ClassMeans:
        """Sums without some of the people; with a batch of them, each left out in turn."""
        return self._with(other, -1.0)

    def _with(self, other: ClassMeans, sign: float) -> ClassMeans:
        names = [one.name for one in fields(self) if one.name != "centred"]
        sums = {name: getattr(self, name) + sign * getattr(other, name) for name in names}
        return ClassMeans(**sums, centred=self.centred)

    @cached_property
    def population(self) -> Population:
        """Law of the class means of a new person."""
        return Population.from_sums(self)


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

    @classmethod
    def from_sums(cls, sums: ClassMeans) -> Population:
        """Law from sums over people."""
        n_classes, d, n_people = sums.n_classes, sums.n_features, float(sums.n_people)
        whiten, unwhiten, varying = _whitening(sums.within_sum, sums.n_within)
        rank = whiten.shape[-1]
        size = varying.sum(-1)
        # Means and their second moments in the coordinates c, h, whitened.
        turn = np.concatenate([np.ones((n_classes, 1)), contrasts(n_classes)], 1) / n_classes
        mean = turn.T @ (sums.mean_sum.reshape(*sums.mean_sum.shape[:-1], n_classes, d) / n_people)
        mean = mean @ whiten
        outer = sums.outer_sum.reshape(*sums.outer_sum.shape[:-2], n_classes, d, n_classes, d)
        outer = np.einsum("ka,...kplq,lb->...apbq", turn, outer / n_people, turn, optimize=True)
        outer = np.einsum("...pr,...apbq,...qs->...arbs", whiten, outer, whiten, optimize=True)
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
            covariance = _shrunk_blocks(
                covariance * (n_people / (n_people - 1.0)), n_people, varying
            )
        # The mean is known from so many people only.
        covariance = covariance * (1.0 + 1.0 / n_people)
        dof = float(np.exp(np.ravel(sums.alike_sum / n_people)[0]))
        traces = np.einsum("...pr,...npq,...qr->...n", whiten, sums.run_sums, whiten, optimize=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            runs = traces / (np.asarray(size)[..., None] * sums.run_counts)
        runs = np.where(sums.run_counts > 0, runs, np.nan)
        return cls(whiten, unwhiten, size, mean, covariance, runs, sums.centred, core, dof=dof)

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

        Its logarithm is linear in that of n between the runs that were seen; beyond, and for
        windows that do not follow each other, windows count as independent.
        """
        n = np.maximum(np.asarray(counts, np.float64), 1e-300)
        positive = np.isfinite(self.run_variances) & (self.run_variances > 0.0)
        known = positive.reshape(-1, RUNS.size).all(0)
        if not in_a_row or not known.any():
            return 1.0 / n
        at, values = np.log(RUNS[known]), np.log(self.run_variances[..., known])
        where = np.log(n)
        inside = np.clip(where, at[0], at[-1])
        place = np.clip(np.searchsorted(at, inside, "right") - 1, 0, max(at.size - 2, 0))
        after = np.minimum(place + 1, at.size - 1)
        step = np.where(after > place, at[after] - at[place], 1.0)
        part = (inside - at[place]) / step
        between = values[..., place] * (1.0 - part) + values[..., after] * part
        return np.asarray(np.exp(between - (where - inside)))


def _crowd_dof(blocks: Sequence[Block], scale: Array, sums: ClassMeans) -> float:
    """Degrees of freedom that the crowd's covariance is worth beside a person's own (equation 55).

    Own covariances S_j that scatter about I, in whitened features, as those of a Wishart law of nu
    degrees of freedom do are E |S_j - I|^2 = (p^2 + p) / nu apart, and more by their own noise
    (tr(S_j)^2 + |S_j|^2) / f_j. The median over people is robust; its standard error is added,
    since a covariance that is wrongly taken for everybody's does more harm than one's own noise.
    """
    if sums.n_within < 2.0:
        return CROWD_DOF
    whiten, _, varying = _whitening(sums.within_sum, sums.n_within)
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


def _whitening(within_sum: Array, n_within: float) -> tuple[Array, Array, Any]:
    """Columns that make the average covariance the identity, their inverses, and which vary."""
    d = within_sum.shape[-1]
    if n_within <= 0.0:
        eye = np.broadcast_to(np.eye(d), within_sum.shape)
        return eye, eye, np.ones(within_sum.shape[:-1], bool)
    values, basis = np.linalg.eigh(within_sum / n_within)
    varying = values > _LEAST * values[..., -1:]
    # Eigenvalues ascend: columns that no one of a batch needs come first.
    first = int((~varying).reshape(-1, d).all(0).sum())
    values, basis, varying = values[..., first:], basis[..., first:], varying[..., first:]
    root = np.sqrt(np.where(varying, values, 0.0))
    return basis * invert(root)[..., None, :], basis * root[..., None, :], varying


def _core(mean: Array, covariance: Array) -> tuple[Array, int]:
    """Rotation (..., p, p) that puts all that differs from a multiple of the identity first."""
    inner = np.einsum("...apaq->...pq", covariance) + mean.mT @ mean
    values, basis = np.linalg.eigh(inner)
    values, basis = values[..., ::-1], basis[..., ::-1]
    p = values.shape[-1]
    some = (values > 1e-10 * values[..., :1]).reshape(-1, p).any(0)
    return np.ascontiguousarray(basis), int(some.sum())


def _shrunk_blocks(covariance: Array, n_people: float, varying: Any) -> Array:
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

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
from functools import cached_property, reduce
from operator import add
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
from crossfade.fisher import RUNS, Block, ClassMoments, invert, oas, off_by, shrunk_dense
from crossfade.prior._bounded import bounded, check_clip, filled
from crossfade.prior._sessions import Person

#: Eigenvalues below this proportion of the largest are directions in which nothing varies.
_LEAST = 1e-8
#: What the crowd's covariance is worth where too few people tell, and how many can.
CROWD_DOF, _FEWEST = 20.0, 8
#: A core is worth the trouble below this proportion of all directions.
_WORTH = 0.6
#: What the laws of a batch of people have in common.
_SHARED = ("centred", "core", "n_outside", "dof", "own_scatter", "own_dof")
#: What is added up, and of it what differs from one of a batch of people to the next.
_BATCHED = ("mean_sum", "outer_sum", "within_sum", "run_sums")
_SUMS = (*_BATCHED, "n_people", "n_within", "run_counts", "alike_sum")
#: Largest number in the sums of a file: means are in deviations, and products of sums are numbers.
_LARGEST = 1e40
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
    clip : float or None
        Largest length of anybody's class means: what a person adds has a bound, and sessions of one
        group count as one person; None where tasks add what they have.
    person : Person or None
        What is known of the one person for whom the prior was made, see
        :meth:`TaskPrior.for_person`.
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
    clip: float | None = None
    person: Person | None = None

    @classmethod
    def of_each(
        cls,
        whole: ClassMoments,
        rows: Sequence[Array],
        scale: Array,
        alike: float,
        clip: float | None = None,
    ) -> ClassMeans:
        """What each of some tasks gives to the sums, with a batch axis for the tasks."""
        means = (whole.means / scale).reshape(len(whole.means), -1)
        units, able = scale[:, None] * scale, float(np.all(whole.left > 0.0))
        within = whole.known().dense_scatter() / (units * np.asarray(whole.dof)[..., None, None])
        longest = max(part.shape[1] for part in rows)
        counts = (longest > RUNS).astype(np.float64)
        within, runs = able * within, off_by(rows) / units
        if clip is not None:
            if not able:
                within = within + np.eye(scale.size)
            means, within, runs = bounded(means, within, filled(runs, longest), clip)
            able, counts = 1.0, np.ones(RUNS.size)
        return cls(
            1.0,
            means,
            means[:, :, None] * means[:, None, :],
            able,
            within,
            counts,
            runs,
            # A median over people: one of them hardly moves it.
            alike,
            clip=clip,
        )

    @classmethod
    def of_blocks(cls, blocks: Sequence[Block], scale: Array, *, centred: bool) -> ClassMeans:
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
        if np.abs(means).max() ** 2 * len(means) > _LARGEST:
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
            centred=centred,
        )
        return sums._with_dof(blocks, scale)

    @classmethod
    def of_people(
        cls, blocks: Sequence[Block], scale: Array, shares: Array, clip: float, *, centred: bool
    ) -> ClassMeans:
        """Sums over people, none of whom adds more than `clip` allows; a task counts its share."""
        parts = []
        for block in blocks:
            each = cls.of_each(block.whole, block.rows, scale, 0.0, clip)
            share = shares[block.places]
            over: dict[str, Any] = {
                name: np.tensordot(share, getattr(each, name), 1) for name in _BATCHED
            }
            parts.append(replace(each.times(float(share.sum())), **over, centred=centred))
        # Parts of people add up to whole ones, but for rounding.
        whole = float(round(shares.sum()))
        counted: dict[str, Any] = {
            "n_people": whole,
            "n_within": whole,
            "run_counts": np.full(RUNS.size, whole),
        }
        return replace(reduce(add, parts), **counted)._with_dof(blocks, scale)

    def _with_dof(self, blocks: Sequence[Block], scale: Array) -> ClassMeans:
        """The same with what the covariance of these people is worth."""
        return replace(self, alike_sum=self.n_people * np.log(_crowd_dof(blocks, scale, self)))

    def times(self, share: float) -> ClassMeans:
        """What a part of a person adds."""
        return replace(self, **{name: share * getattr(self, name) for name in _SUMS})

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
        if self.clip != other.clip:
            raise PriorMismatchError(
                "Priors cannot be merged whose class means have different bounds: "
                f"clip={self.clip} and clip={other.clip}. Build both with the same clip (`prior "
                "build --clip R`), or leave the class means out: prior.without('class_means')."
            )
        return self._with(other, 1.0)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same numbers, to the bit."""
        return isinstance(other, ClassMeans) and all(
            np.array_equal(getattr(self, one.name), getattr(other, one.name))
            for one in fields(self)
        )

    def reversed(self) -> ClassMeans:
        """The same with the classes in reverse order."""
        d, n_classes = self.n_features, self.n_classes
        order = np.arange(n_classes * d).reshape(n_classes, d)[::-1].ravel()
        return replace(
            self,
            mean_sum=self.mean_sum[..., order],
            outer_sum=self.outer_sum[..., order[:, None], order],
            person=None if self.person is None else self.person.reversed(),
        )

    def fields(self) -> dict[str, Any]:
        """What a file holds of the sums."""
        person = None if self.person is None else self.person.fields()
        return {one.name: getattr(self, one.name) for one in fields(self)} | {"person": person}

    @classmethod
    def of_file(cls, values: Any, n_features: int, n_people: int) -> ClassMeans:
        """Sums from the fields of a file, every number of them checked."""
        if not isinstance(values, dict):
            raise TypeError(f"class_means must be an object; got {type(values).__name__}.")
        known = {name: values[name] for name in (*_SUMS, "centred")}
        # Before there were bounds, nothing said that there was none.
        known["clip"] = check_clip(values.get("clip"))
        d, size = n_features, np.size(known["mean_sum"])
        shapes = {
            "mean_sum": (size,),
            "outer_sum": (size, size),
            "within_sum": (d, d),
            "run_counts": (RUNS.size,),
            "run_sums": (RUNS.size, d, d),
        }
        for name, shape in shapes.items():
            known[name] = check_finite(name, known[name], len(shape), largest=_LARGEST)
            if known[name].shape != shape:
                raise ValueError(f"{name} must be of shape {shape}; got {known[name].shape}.")
        if size % d or size < 2 * d:
            raise ValueError(f"mean_sum has {size} numbers, which are not means of {d} features.")
        for name in ("n_people", "n_within"):
            known[name] = check_number(name, known[name], 0.0, float(n_people))
            if 0.0 < known[name] < 1.0:
                raise ValueError(f"{name} must be a number of people; got {known[name]:g}.")
        most = 1.001 * np.log(_DOF[1]) * known["n_people"]
        known["alike_sum"] = check_number("alike_sum", known["alike_sum"], 0.0, float(most))
        if not isinstance(known["centred"], bool):
            raise TypeError(f"centred must be true or false; got {known['centred']!r}.")
        if known["n_people"] < 1.0 or known["run_counts"].min() < 0.0:
            raise ValueError("class_means must be those of one person or more.")
        if known["clip"] is not None:
            length = float(np.linalg.norm(known["mean_sum"])) / known["n_people"]
            if length > known["clip"] * (1.0 + 1e-6):
                raise ValueError(
                    f"class_means are {length:.6g} long, and clip allows {known['clip']:g}."
                )
        matrices = [known["outer_sum"], known["within_sum"], *known["run_sums"]]
        for matrix in matrices:
            check_covariance("class_means", matrix, len(matrix))
            check_spectrum("class_means", np.linalg.eigvalsh(matrix))
        person = values.get("person")
        if person is not None:
            known["person"] = Person.of_file(person, d, size)
        return cls(**known)

    def __sub__(self, other: ClassMeans) -> ClassMeans:
        """Sums without some of the people; with a batch of them, each left out in turn."""
        return self._with(other, -1.0)

    def _with(self, other: ClassMeans, sign: float) -> ClassMeans:
        sums = {name: getattr(self, name) + sign * getattr(other, name) for name in _SUMS}
        return ClassMeans(**sums, centred=self.centred, clip=self.clip)

    @cached_property
    def population(self) -> Population:
        """Law of the class means of a new person, or of the one for whom the prior was made."""
        law = Population.from_sums(self)
        return law if self.person is None else law.of_person(self.person)


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
    def from_sums(cls, sums: ClassMeans) -> Population:
        """Law from sums over people."""
        n_classes, n_people = sums.n_classes, float(sums.n_people)
        whiten, unwhiten, varying = _whitening(sums.within_sum, sums.n_within)
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
        dof = float(np.exp(np.ravel(sums.alike_sum / n_people)[0]))
        traces = np.einsum("...pr,...npq,...qr->...n", whiten, sums.run_sums, whiten, optimize=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            runs = traces / (np.asarray(size)[..., None] * sums.run_counts)
        runs = np.where(sums.run_counts > 0, runs, np.nan)
        return cls(whiten, unwhiten, size, mean, covariance, runs, sums.centred, core, dof=dof)

    def of_person(self, person: Person) -> Population:
        """The same crowd, with the law of one person's next session."""
        whiten = self.whiten
        return replace(
            self,
            mean=_in_theta(person.mean, whiten),
            covariance=outer_in_theta(person.covariance, whiten),
            # What is known of one person is no multiple of the identity anywhere.
            core=whiten.shape[-1],
            own_scatter=whiten.T @ person.scatter @ whiten,
            own_dof=person.dof,
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
    # Where nothing varies at all, units stay what they are.
    values = np.where(values[..., -1:] > 0.0, values, 1.0)
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

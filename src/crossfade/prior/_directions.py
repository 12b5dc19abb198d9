"""Directions of many people: sums of them, and the law of those of new people (7 to 12).

.. math:: \\Psi = \\frac{1 - \\overline{(\\mu^T w)^2}}{(d - 1) J R^2} (I - \\mu\\mu^T), \\quad
    T = \\frac{J}{J - 1}\\left(\\overline{w w^T} - m m^T\\right) \\text{ shrunk by OAS}

with J unit directions w of mean m, length R and mu = m / R. Psi says how well mu is known, T how
people differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crossfade._typing import Array
from crossfade._validate import check_integer
from crossfade.fisher import N_LAGS, Spectrum, oas, shrunk_dense
from crossfade.prior._parts import Sums, summed
from crossfade.prior._summary import sum_of_summary
from crossfade.prior._vmf import concentration_formula, concentration_mle

#: More people than any real study; sums of so many are exact.
_MOST_TASKS = 10**12


class Psi(NamedTuple):
    r"""Covariance of the mean direction, :math:`\Psi = p I + q\,\mu\mu^T`."""

    identity: Array  # (...): p
    along: Array  # (...): q


@dataclass(frozen=True, eq=False)
class Crowd:
    """Law of the directions of new people; leading axes are a batch."""

    n_tasks: float | Array  # (...): number of people J
    mean: Array  # (..., n_features): mean of the directions, shorter where a release is unsure
    mean_direction: Array  # (..., n_features): its unit vector mu; zero where directions cancel
    resultant_length: Array  # (...): length R of the mean, before it was made shorter
    mean_square: Array  # (...): mean of the squared cosines of the directions with mu
    moment: Array | None = None  # (..., n_features, n_features): mean of outer products, if kept
    release_noise: float = 0.0  # deviation that a release added to each feature of the mean
    direction_noise: float | None = None  # average squared error of the directions

    @classmethod
    def from_sums(
        cls,
        n_tasks: float,
        direction_sum: Array,
        outer_sum: Array | None,
        *,
        release_noise: float = 0.0,
        direction_noise: float | None = None,
    ) -> Crowd:
        """Crowd from sums of directions and of their outer products, perhaps of a release."""
        mean = direction_sum / n_tasks
        moment = None if outer_sum is None else outer_sum / n_tasks
        d = mean.shape[-1]
        length = np.linalg.vector_norm(mean, axis=-1)
        directed = length >= 1e-12
        mu = mean / np.where(directed, length, np.inf)[..., None]
        resultant = np.minimum(length, 1.0)
        if moment is not None:
            square = np.vecdot(mu, np.matvec(moment, mu))
        else:
            square = _vmf_mean_square(resultant, d)
        if release_noise:
            mean = trusted_mean(mean, release_noise)
        return cls(n_tasks, mean, mu, resultant, square, moment, release_noise, direction_noise)

    def of(self, which: Any) -> Crowd:
        """Those of some of the targets, for their posterior; one crowd for all stays."""
        if self.mean.ndim == 1:
            return self
        names = ("mean", "mean_direction", "resultant_length", "mean_square")
        n_tasks = np.asarray(self.n_tasks)
        parts: list[Any] = [getattr(self, name)[which] for name in names]
        some = Crowd(n_tasks[which] if n_tasks.ndim else self.n_tasks, *parts)
        scatter = self.scatter.of(which, len(self.mean))
        some.__dict__.update(root=self.root[which], scatter=scatter)
        return some

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return int(self.mean.shape[-1])

    @cached_property
    def isotropic(self) -> bool:
        """Whether the scatter is a multiple of the identity."""
        return bool(self.scatter.n_outside)

    @property
    def trusted_length(self) -> Array:
        """How far directions surely agree: R, or less by the noise of a release (equation 31)."""
        return np.minimum(np.linalg.vector_norm(self.mean, axis=-1), 1.0)

    @cached_property
    def cancels(self) -> Array:
        """Whether the mean is no longer than that of directions without any preference, (...)."""
        square = self.resultant_length**2
        if self.release_noise:
            square = trusted_square(square, self.release_noise, self.n_features)
        short = (np.asarray(self.n_tasks) > 1.0) & (square * self.n_tasks <= 1.0)
        return np.asarray((square == 0.0) | short)

    @property
    def concentration(self) -> float:
        """Concentration kappa by the paper's formula (equation 8), of the trusted length."""
        return concentration_formula(float(self.trusted_length), self.n_features)

    def concentration_mle(self) -> float:
        """Concentration kappa of maximum likelihood (equation 9), of the trusted length."""
        return concentration_mle(float(self.trusted_length), self.n_features)

    @cached_property
    def scatter(self) -> Spectrum:
        """Covariance T of the directions between people (equation 12)."""
        if self.moment is None:
            return Spectrum(
                np.empty((*self.mean.shape[:-1], 0)),
                np.empty((*self.mean.shape, 0)),
                np.asarray(self._isotropic_variance()),
            )
        values, basis = np.linalg.eigh(self.dense_scatter)
        floor = np.zeros(self.mean.shape[:-1])
        return Spectrum(np.maximum(values, 1e-12), basis, floor)

    @cached_property
    def root(self) -> Array:
        """Root L of the scatter T = L L', with orthogonal columns, of shape (..., d, d)."""
        scatter = self.scatter
        if scatter.n_outside:
            return np.asarray(np.sqrt(scatter.floor)[..., None, None] * np.eye(self.n_features))
        return scatter.basis * np.sqrt(scatter.values)[..., None, :]

    @cached_property
    def variances(self) -> Array:
        """Squared lengths of the columns of the root, of shape (..., d)."""
        return (self.root**2).sum(-2)

    @cached_property
    def dense_scatter(self) -> Array:
        """Covariance T of the directions between people, of shape (..., d, d)."""
        d, n_tasks = self.n_features, float(self.n_tasks)
        if self.moment is None:
            return np.asarray(self._isotropic_variance())[..., None, None] * np.eye(d)
        if n_tasks < 2.0:
            # A direction about which nothing is known but its mean.
            return np.broadcast_to(np.eye(d) / d, self.moment.shape)
        scatter = self.moment - self.mean[..., :, None] * self.mean[..., None, :]
        scatter = scatter * (n_tasks / (n_tasks - 1.0))
        trace, square = np.trace(scatter, axis1=-2, axis2=-1), (scatter**2).sum((-2, -1))
        weight = oas(trace, square, d, n_tasks - 1.0)
        level = np.maximum(weight * trace / d, least_scatter(n_tasks, d))
        shrunk = shrunk_dense(scatter, weight, level)
        return np.asarray(self._between)[..., None, None] * shrunk

    def _isotropic_variance(self) -> Array:
        """Variance of the directions in each feature, if it is the same in all (equation 12)."""
        d, n_tasks = self.n_features, float(self.n_tasks)
        if n_tasks < 2.0:
            return np.full(self.mean.shape[:-1], 1.0 / d)
        unlike = (1.0 - self.trusted_length**2) * n_tasks / (n_tasks - 1.0)
        return np.maximum(self._between * unlike / d, least_scatter(n_tasks, d))

    @property
    def _between(self) -> Array | float:
        """Proportion of the scatter that is between people, not their own noise (equation 50)."""
        n_tasks = float(self.n_tasks)
        if self.direction_noise is None or n_tasks < 2.0:
            return 1.0
        unlike = (1.0 - self.resultant_length**2) * n_tasks / (n_tasks - 1.0)
        noise = self.direction_noise / np.where(unlike > 0.0, unlike, np.inf)
        return np.maximum(1.0 - noise, 1.0 / n_tasks)

    def psi(self, form: str = "tangent") -> Psi:
        """Covariance of the mean direction: the right form, the authors', or as printed."""
        known = self._psis.get(form)
        if known is None:
            known = self._psis[form] = self._psi(form)
        return known

    @cached_property
    def _psis(self) -> dict[str, Psi]:
        return {}

    def _psi(self, form: str) -> Psi:
        d, n_tasks = self.n_features, self.n_tasks
        resultant = np.where(self.resultant_length > 0.0, self.resultant_length, np.nan)
        unlike = np.maximum(1.0 - self.mean_square, 0.0)
        added = (self.release_noise / resultant) ** 2
        if form == "printed":
            return Psi(np.sqrt(unlike / (n_tasks * resultant)) + added, np.zeros_like(unlike))
        if form == "authors":
            return Psi(unlike / (n_tasks * resultant**2) + added, np.zeros_like(unlike))
        # One task says nothing about its spread: each tangent direction gets that of the sphere.
        # With one feature there is no tangent direction.
        alone = 1.0 / d if d > 1 else 0.0
        tangent = np.where(np.less(n_tasks, 2.0), alone, unlike / max(d - 1, 1))
        variance = tangent / (n_tasks * resultant**2) + added
        return Psi(variance, -variance)


@dataclass(frozen=True, eq=False)
class Directions(Sums, name="directions"):
    """Sums over tasks of their unit directions, in scaled units.

    For a release every session of a group of n counts 1/n, so that no person moves the sums by more
    than one session does (equation 29).
    """

    n_tasks: float = summed(of="tasks")
    direction: Array = summed("d", of="unit directions")
    n_people: float = summed(of="people")
    person_direction: Array = summed("d", of="mean directions of the sessions of a person")
    outer: Array | None = summed(
        "d", "d", of="outer products of directions", default=None, semidefinite=True
    )
    person_outer: Array | None = summed(
        "d", "d", of="mean outer products of a person", default=None, semidefinite=True
    )
    within: Array | None = summed(
        "d", "d", of="average covariance within the classes", default=None, semidefinite=True
    )
    autocorrelation: Array | None = summed(
        N_LAGS, of="correlation of windows of a class 1, 2, ... rows apart", default=None
    )
    noise: float | None = summed(of="squared errors of directions", default=None)

    @classmethod
    def of(
        cls, directions: Array, groups: Sequence[str | None] | None = None, *, outer: bool = True
    ) -> Directions:
        """Sums of unit rows (n_tasks, d); tasks of one of the groups are of one person."""
        n_tasks = len(directions)
        share = np.ones(n_tasks) if groups is None else shares_of(groups)
        squares = directions.T @ directions if outer else None
        alone = bool((share == 1.0).all())
        return cls(
            float(n_tasks),
            directions.sum(0),
            float(round(share.sum())),
            directions.sum(0) if alone else share @ directions,
            squares,
            squares if alone or not outer else (directions.T * share) @ directions,
        )

    @classmethod
    def of_summary(cls, mu: ArrayLike, psi: ArrayLike, n_tasks: int, form: str) -> Directions:
        """Sum that so many directions would have by their mean direction and its covariance."""
        n = float(check_integer("n_tasks", n_tasks, 1, _MOST_TASKS))
        total = sum_of_summary(mu, psi, round(n), form)
        return cls(n, total, n, total)

    def check(self) -> None:
        """Refuse sums that unit directions cannot have."""
        slack = 1e-5 * self.n_tasks
        lengths = [(self.direction, self.n_tasks), (self.person_direction, self.n_people)]
        traces = [(self.outer, self.n_tasks), (self.person_outer, self.n_people)]
        if (
            not 1.0 <= self.n_people <= self.n_tasks
            or self.n_tasks % 1.0
            or any(np.linalg.norm(one) > count + slack for one, count in lengths)
            or any(one is not None and abs(np.trace(one) - n) > slack for one, n in traces)
        ):
            raise ValueError("directions are not sums of unit vectors.")

    def average(self, name: str) -> Array | None:
        """One of the sums, divided by the number of tasks."""
        whole = getattr(self, name)
        return None if whole is None else whole / self.n_tasks

    def crowd(self, release_noise: float = 0.0) -> Crowd:
        """Law of the directions of new people; `release_noise` is that of each sum."""
        noise = self.average("noise")
        return Crowd.from_sums(
            self.n_tasks,
            self.direction,
            self.outer,
            release_noise=release_noise / self.n_tasks,
            direction_noise=None if noise is None else float(noise),
        )


def shares_of(groups: Sequence[str | None]) -> Array:
    """Part (n_tasks,) of a person that each task is: one over the sessions of its group."""
    # A task without a group is a person of its own.
    own: list[Hashable] = [(n,) if group is None else str(group) for n, group in enumerate(groups)]
    counts = Counter(own)
    return 1.0 / np.array([counts[one] for one in own])


def least_scatter(n_tasks: float, n_features: int) -> float:
    """Variance in each feature below which so few tasks cannot be certain of their agreement."""
    return max(1.0 / (n_features * n_tasks**2), 1e-10)


def trusted_square(square: Array, noise: float, n_features: int) -> Array:
    """Squared length (...) of a released mean less its own standard error (31), at least zero."""
    added = n_features * noise**2
    error = np.sqrt((2.0 * added + 4.0 * square) * added / n_features)
    return np.maximum(square - error, 0.0)


def trusted_mean(mean: Array, noise: float) -> Array:
    """Released mean (..., d) as long as it can be trusted: its posterior mean (equation 31)."""
    n_features = mean.shape[-1]
    square = np.vecdot(mean, mean)
    sure = trusted_square(square, noise, n_features)
    length = sure / np.sqrt(sure + n_features * noise**2)
    return mean * (length / np.sqrt(np.maximum(square, 1e-300)))[..., None]


def _vmf_mean_square(resultant: Array, n_features: int) -> Array:
    """Mean squared cosine that a von Mises-Fisher law of this resultant length has (11)."""
    square = resultant**2
    room = np.where(n_features > square, n_features - square, 1.0)
    return np.where(n_features > square, 1.0 - (n_features - 1.0) * (1.0 - square) / room, 1.0)

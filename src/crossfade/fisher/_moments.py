"""Moments of the classes: counts, means and the centred scatter within.

Moments of two sets of windows add up by the formula of Chan, Golub and LeVeque (1983),

.. math:: S = S_a + S_b + \\frac{n_a n_b}{n_a + n_b} \\delta\\delta^T, \\quad \\delta = m_b - m_a

which loses no digits to large means. With fewer windows than features the scatter is kept as a
root: rows whose outer products add up to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from crossfade._typing import Array, Places
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher._spectrum import ROUNDING, Spectrum, from_dense, from_rows

#: Lengths of runs of windows for which the noise of the mean is known.
RUNS = np.array([1, 2, 3, 4, 5, 8, 13, 21, 34])
#: How many times as large as what it is divided by a feature may be.
_MOST_UNITS = 1e40


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Counts, means and scatter of K classes that share a covariance, with leading batch axes."""

    counts: Array  # (..., K): sums of the weights
    means: Array  # (..., K, d): class means
    #: Sum over all classes of the outer products of centred samples, (..., d, d); where `rooted`,
    #: rows (..., n_rows, d) whose outer products add up to it.
    scatter: Array
    rooted: bool
    largest: Array  # (..., d): largest absolute value of each feature
    n_varying: Places | None = None  # (...): dimension in which features vary, where it is known

    @classmethod
    def of(
        cls, X: Array, label: Places, weight: Array | None = None, *, n_classes: int = 2
    ) -> ClassMoments:
        """Moments of samples (..., n, d), by places of classes and weights."""
        n_samples, n_features = X.shape[-2:]
        member = (label == np.arange(n_classes)[:, None]).astype(np.float64)
        if weight is not None:
            member *= weight
        counts = member.sum(-1)
        means = (member @ X) / np.where(counts > 0.0, counts, 1.0)[:, None]
        rows = X - means[..., label, :]
        if weight is not None:
            rows *= np.sqrt(weight)[:, None]
        rooted = n_samples < n_features
        return cls(
            counts,
            means,
            rows if rooted else rows.mT @ rows,
            rooted,
            np.maximum(X.max(-2), -X.min(-2)),
        )

    @classmethod
    def empty(cls, n_classes: int, n_features: int, *batch: int) -> ClassMoments:
        """Moments without any sample, for each of a batch."""
        means, scatter = np.zeros((*batch, n_classes, n_features)), (*batch, 0, n_features)
        largest = np.zeros((*batch, n_features))
        return cls(np.zeros(n_classes), means, np.zeros(scatter), True, largest)

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return int(self.means.shape[-1])

    @cached_property
    def dof(self) -> Array:
        """Degrees of freedom of the scatter, at least one, of shape (...)."""
        return np.maximum(self.left, 1.0)

    @cached_property
    def left(self) -> Array:
        """Windows less classes, of shape (...)."""
        return self.counts.sum(-1) - self.counts.shape[-1]

    def variance(self) -> Array:
        """Variance of each feature within the classes, of shape (..., d)."""
        if self.rooted:
            squares = (self.scatter**2).sum(-2)
        else:
            squares = np.diagonal(self.scatter, axis1=-2, axis2=-1)
        return squares / np.asarray(self.dof)[..., None]

    def deviation(self) -> Array:
        """Standard deviations; zero where rounding alone can have made them, of shape (..., d)."""
        deviation = np.sqrt(self.variance())
        return np.where(deviation > 1e-12 * self.largest, deviation, 0.0)

    def known(self) -> ClassMoments:
        """The same with a scatter of zero where rounding alone can have made it."""
        varies = self.deviation() > 0.0
        if varies.all():
            return self
        scatter = np.where(varies[..., None, :], self.scatter, 0.0)
        if not self.rooted:
            scatter = np.where(varies[..., :, None], scatter, 0.0)
        return replace(self, scatter=scatter)

    def gap(self, first: Any = 0, second: Any = 1) -> Array:
        """Difference of two class means; zero where rounding alone can have made it."""
        gap = self.means[..., second, :] - self.means[..., first, :]
        largest = self.largest if np.ndim(second) == 0 else self.largest[..., None, :]
        return np.where(np.abs(gap) > 16.0 * ROUNDING * largest, gap, 0.0)

    def scaled(self, scale: Array) -> Array:
        """Covariance within the classes, or its root, in features divided by `scale`."""
        dof = np.asarray(self.dof)[..., None, None]
        if self.rooted:
            return self.scatter / (scale[..., None, :] * np.sqrt(dof))
        return self.scatter / (scale[..., :, None] * scale[..., None, :] * dof)

    def spectrum(self, scale: Array) -> Spectrum:
        """Eigenvectors of the covariance in features divided by `scale`; zero where it is."""
        return from_rows(self.scaled(scale)) if self.rooted else from_dense(self.scaled(scale))

    def __add__(self, other: ClassMoments) -> ClassMoments:
        """Moments of both sets of windows, by Chan's formula."""
        counts = self.counts + other.counts
        safe = np.where(counts > 0.0, counts, 1.0)
        step = other.means - self.means
        proportion = (other.counts / safe)[..., None]
        means = self.means + proportion * step
        apart = np.sqrt(self.counts * other.counts / safe)[..., None] * step
        largest = np.maximum(self.largest, other.largest)
        if self.rooted and other.rooted:
            rows = np.concatenate([self.scatter, other.scatter, apart], -2)
            if rows.shape[-2] < self.n_features:
                scatter, rooted = _compressed(rows, float(counts.sum(-1).max())), True
                return ClassMoments(counts, means, scatter, rooted, largest)
        scatter = self.dense_scatter() + other.dense_scatter() + apart.mT @ apart
        return ClassMoments(counts, means, scatter, False, largest)

    def beside(self, other: ClassMoments) -> ClassMoments:
        """Moments of further classes that share the covariance, after those of these."""
        n_rows = self.scatter.shape[-2] + other.scatter.shape[-2]
        rooted = self.rooted and other.rooted and n_rows < self.n_features
        if rooted:
            scatter = np.concatenate([self.scatter, other.scatter], -2)
        else:
            scatter = self.dense_scatter() + other.dense_scatter()
        return ClassMoments(
            np.concatenate([self.counts, other.counts], -1),
            np.concatenate([self.means, other.means], -2),
            scatter,
            rooted,
            np.maximum(self.largest, other.largest),
        )

    def placed(self, old: Places, new: Places, n_classes: int) -> ClassMoments:
        """The same with the classes at `old` places at `new` ones, and none elsewhere."""
        counts = np.zeros(n_classes)
        means = np.zeros((n_classes, self.n_features))
        counts[new], means[new] = self.counts[old], self.means[old]
        return replace(self, counts=counts, means=means)

    def rotated(self) -> ClassMoments:
        """The same with the R of rows = Q R as a root, which keeps no sample as it was."""
        if self.scatter.ndim > 2:
            return self
        scatter: Any = np.linalg.qr(self.scatter, mode="r") if self.rooted else self.scatter
        return replace(self, scatter=scatter)

    def dense_scatter(self) -> Array:
        """Scatter of shape (..., d, d)."""
        return self.scatter.mT @ self.scatter if self.rooted else self.scatter

    def __getitem__(self, which: Any) -> ClassMoments:
        """Moments of some of the tasks on the first axis."""
        varying = self.n_varying
        return replace(
            self,
            counts=self.counts if self.counts.ndim == 1 else self.counts[which],
            means=self.means[which],
            scatter=self.scatter[which],
            largest=self.largest[which],
            n_varying=None if varying is None else varying[which],
        )


def noise_of_runs(run_variances: Array, counts: Array) -> Array:
    """Variance (...) of the mean of so many windows in a row (53), log-linear between `RUNS`."""
    n = np.maximum(np.asarray(counts, np.float64), 1e-300)
    positive = np.isfinite(run_variances) & (run_variances > 0.0)
    known = positive.reshape(-1, RUNS.size).all(0)
    if not known.any():
        return 1.0 / n
    at, values = np.log(RUNS[known]), np.log(run_variances[..., known])
    where = np.log(n)
    inside = np.clip(where, at[0], at[-1])
    place = np.clip(np.searchsorted(at, inside, "right") - 1, 0, max(at.size - 2, 0))
    after = np.minimum(place + 1, at.size - 1)
    step = np.where(after > place, at[after] - at[place], 1.0)
    part = (inside - at[place]) / step
    between = values[..., place] * (1.0 - part) + values[..., after] * part
    return np.asarray(np.exp(between - (where - inside)))


def refuse_units(largest: Array, scale: Array, called: Callable[[int], str] | None = None) -> None:
    """Refuse features (..., d) far too large or small for their scale; `called` names a task."""
    ratio = np.atleast_1d((largest / scale).max(-1, initial=0.0))
    far = (ratio > _MOST_UNITS) | ((ratio > 0.0) & (ratio < 1.0 / _MOST_UNITS))
    if far.any():
        place = int(far.argmax())
        whose = "" if called is None else f" of {called(place)}"
        raise PriorMismatchError(
            f"The features{whose} are {ratio[place]:.3g} times their scale, which overflows. Give "
            "them in the units of the scale."
        )


def _compressed(rows: Array, n_samples: float) -> Array:
    """Root with no more rows than samples."""
    if rows.shape[-2] <= n_samples or rows.ndim > 2:
        return rows
    # In units of each feature's own size: what is rounding beside a large feature is all there is
    # of a small one.
    size = np.linalg.vector_norm(rows, axis=0)
    unit = np.where(size > 0.0, size, 1.0)
    spectrum = from_rows(rows / unit)
    kept = spectrum.values > 0.0
    return (np.sqrt(spectrum.values) * spectrum.basis)[:, kept].T * unit

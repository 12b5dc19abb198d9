"""Covariances by their eigenvectors, plain or shrunk (equation 2), at the cost of the rank.

.. math:: S = V \\operatorname{diag}(\\lambda) V^T + \\lambda_0 (I - V V^T), \\quad
    S_s = (1 - r) S + r (\\operatorname{tr} S / d) I

with the weight r of oracle approximating shrinkage (Chen, Wiesel, Eldar and Hero 2010) or a given
one. With fewer samples than features V has as many columns as there are samples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array, Places

ROUNDING = float(np.finfo(np.float64).eps)


class Spectrum(NamedTuple):
    """Symmetric matrices ``V diag(values) V' + floor (I - V V')``, with leading batch axes."""

    values: Array  # (..., rank): eigenvalues that belong to the columns of `basis`
    basis: Array  # (..., n_features, rank): orthonormal eigenvectors V
    floor: Array  # (...): eigenvalue of everything outside `basis`

    @property
    def n_features(self) -> int:
        """Number of rows and columns."""
        return int(self.basis.shape[-2])

    @property
    def n_outside(self) -> int:
        """Dimension of the complement of the basis."""
        return self.n_features - int(self.basis.shape[-1])

    def trace(self) -> Array:
        """Sum of all eigenvalues."""
        return self.values.sum(-1) + self.n_outside * self.floor

    def apply(self, vectors: Array) -> Array:
        """Matrix times each vector of shape (..., n_features)."""
        inside = np.matvec(self.basis.mT, vectors)
        if not self.n_outside:
            return np.matvec(self.basis, self.values * inside)
        floor = self.floor[..., None]
        return np.matvec(self.basis, (self.values - floor) * inside) + floor * vectors

    def map(self, values: Array, floor: Array) -> Spectrum:
        """Another matrix with the same eigenvectors."""
        return Spectrum(values, self.basis, floor)

    def shrunk(self, weight: Array, level: Array) -> Spectrum:
        """The same with ``(1 - weight) S + level I`` (equation 2); both of shape (...)."""
        return self.map((1.0 - weight)[..., None] * self.values + level[..., None], level)

    def inverse(self) -> Spectrum:
        """Pseudo-inverse: eigenvalues that are zero stay zero."""
        floor = invert(self.floor) if self.n_outside else self.floor
        return self.map(invert(self.values), floor)

    def root(self) -> Spectrum:
        """Symmetric square root."""
        return self.map(np.sqrt(self.values), np.sqrt(self.floor))

    def per_row(self) -> Spectrum:
        """The same matrices with one more batch axis, for several vectors each."""
        return Spectrum(
            self.values[..., None, :], self.basis[..., None, :, :], self.floor[..., None]
        )

    def of(self, which: Any, n_batch: int) -> Spectrum:
        """Some of the matrices of a batch of one axis; what all of them share stays shared."""
        values = self.values[which] if self.values.ndim > 1 else self.values
        basis = self.basis[which] if self.basis.ndim > 2 else self.basis
        floor = np.broadcast_to(self.floor, (n_batch,))[which]
        return Spectrum(values, basis, floor)

    def replaced(self, places: NDArray[np.bool_], other: Spectrum | None = None) -> Spectrum:
        """The same with `other`, or the identity, at some places (...) of a batch."""
        floor = np.where(places, 1.0 if other is None else other.floor, self.floor)
        if other is None:
            return self.map(np.where(places[..., None], 1.0, self.values), floor)
        dense = np.where(places[..., None, None], other.dense(), self.dense())
        return from_dense(dense)._replace(floor=floor)

    def dense(self) -> Array:
        """Matrix of shape (..., n_features, n_features)."""
        floor = self.floor[..., None]
        matrix: Array = (self.basis * (self.values - floor)[..., None, :]) @ self.basis.mT
        matrix += floor[..., None] * np.eye(self.n_features)
        return matrix


def invert(values: Array) -> Array:
    """Reciprocals, with zero for zero."""
    return np.divide(1.0, values, out=np.zeros(values.shape), where=values > 0.0)


def truncate(values: Array, n_terms: int) -> Array:
    """Eigenvalues of a sum of `n_terms` products, zero where rounding alone can have made them."""
    tolerance = 10.0 * max(n_terms, values.shape[-1], 1) * ROUNDING
    largest = values.max(-1, keepdims=True, initial=0.0)
    return np.where(values > tolerance * largest, values, 0.0)


def from_dense(matrix: Array) -> Spectrum:
    """Spectrum of symmetric non-negative matrices of shape (..., n_features, n_features)."""
    values, basis = np.linalg.eigh(matrix)
    return Spectrum(truncate(values, 1), basis, np.zeros(matrix.shape[:-2]))


def from_rows(rows: Array) -> Spectrum:
    """Spectrum of ``rows' rows`` (..., n_rows, n_features), by the smaller of the two products."""
    n_rows, n_features = rows.shape[-2:]
    if n_rows >= n_features:
        return from_dense(rows.mT @ rows)
    values, left = np.linalg.eigh(rows @ rows.mT)
    values = truncate(values, n_features)
    # Directions of zero length get zero columns: outside and inside then agree on zero.
    basis = (rows.mT @ left) * np.sqrt(invert(values))[..., None, :]
    return Spectrum(values, basis, np.zeros(rows.shape[:-2]))


def identity(shape: tuple[int, ...]) -> Spectrum:
    """Spectrum of the identity for vectors of this shape, without a matrix of that size."""
    *batch, n_features = shape
    return Spectrum(np.empty((*batch, 0)), np.empty((*batch, n_features, 0)), np.ones(batch))


def outside(basis: Array, vector: Array) -> Array:
    """Unit vector along the part of each vector outside a basis, or zero."""
    rest = vector - np.matvec(basis, np.matvec(basis.mT, vector))
    rest = rest - np.matvec(basis, np.matvec(basis.mT, rest))
    length = np.linalg.vector_norm(rest, axis=-1, keepdims=True)
    size = np.linalg.vector_norm(vector, axis=-1, keepdims=True)
    return rest * invert(np.where(length > 1e-12 * size, length, 0.0))


def joint_basis(sigma: Spectrum, *vectors: Array) -> tuple[Array, Array]:
    """Basis and eigenvalues of `sigma`, extended by what lies outside along each vector."""
    basis, values = sigma.basis, sigma.values
    if not sigma.n_outside:
        return basis, values
    for vector in vectors:
        column = outside(basis, vector)[..., None]
        batch = column.shape[:-2]
        basis = np.concatenate([np.broadcast_to(basis, (*batch, *basis.shape[-2:])), column], -1)
    batch = basis.shape[:-2]
    floor = np.broadcast_to(sigma.floor[..., None], (*batch, len(vectors)))
    values = np.broadcast_to(values, (*batch, values.shape[-1]))
    return basis, np.concatenate([values, floor], -1)


# -- shrinkage -------------------------------------------------------------------------------------


def oas(
    trace: Array, trace_of_square: Array, n_features: int | Places, dof: float | Array
) -> Array:
    """Weight of the oracle approximating shrinkage (equation 3), from 0 to 1, of shape (...)."""
    uneven = trace_of_square - trace**2 / n_features
    above = (1.0 - 2.0 / n_features) * trace_of_square + trace**2
    below = (dof + 1.0 - 2.0 / n_features) * uneven
    # On one axis both are zero but for rounding, which must not decide.
    certain = (below <= above) | (np.asarray(n_features) == 1)
    return np.where(certain, 1.0, above / np.where(certain, 1.0, below))


def shrinkage_weight(
    shrinkage: str | float, trace: Array, square: Array, size: int | Places, dof: float | Array
) -> Array:
    """Weight r (...) of the identity for traces of S and S S: OAS in `size` dimensions, given."""
    if isinstance(shrinkage, str):
        return oas(trace, square, size, dof)
    # A weight below rounding adds nothing that could be inverted.
    return np.full_like(trace, shrinkage if shrinkage > 10.0 * ROUNDING else 0.0)


def shrunk_dense(matrix: Array, weight: Array, level: Array) -> Array:
    """Matrices ``(1 - weight) S + level I`` (equation 2) of shape (..., d, d), in place."""
    d = matrix.shape[-1]
    matrix *= (1.0 - weight)[..., None, None]
    matrix.reshape(*matrix.shape[:-2], d * d)[..., :: d + 1] += level[..., None]
    return matrix


def shrink(
    plain: Spectrum,
    shrinkage: str | float | None,
    nu: Array,
    dof: Array,
    fallback: Spectrum | None = None,
    shown: Array | float = 1.0,
) -> tuple[Spectrum, Array, Places]:
    """Covariance shrunk (2), its weight and its rank; `plain` shows `shown` of the variance."""
    shown = np.asarray(shown)
    sigma = plain.map(plain.values / shown[..., None], plain.floor / shown)
    size = varying_dimension(sigma, nu, dof, fallback)
    if shrinkage is None:
        return sigma, np.zeros(sigma.values.shape[:-1]), np.minimum(rank_of(sigma), size)
    trace, square = sigma.trace(), (sigma.values**2).sum(-1)
    r = shrinkage_weight(shrinkage, trace, square, size, dof)
    shrunk = sigma.shrunk(r, r * trace / size)
    return shrunk, r, np.minimum(rank_of(shrunk), size)


def varying_dimension(
    sigma: Spectrum, nu: Array, dof: Array | float, fallback: Spectrum | None = None
) -> Places:
    """Dimension in which features vary (...): less than d if they are tied, as shares are."""
    whole = np.full(nu.shape[:-1], sigma.n_features)
    if not sigma.n_outside and sigma.values.all() and (fallback is None or fallback.values.all()):
        return whole
    for known, enough in ((sigma, dof), (fallback, np.inf)):
        if known is None or known.floor.any():
            continue
        inside = known.values > 0.0
        rank = inside.sum(-1)
        if (rank >= whole).all():
            continue
        beyond = nu - np.matvec(known.basis, inside * np.matvec(known.basis.mT, nu))
        tied = (np.abs(beyond) <= 1e-8 * np.abs(nu).max(-1, keepdims=True)).all(-1)
        whole = np.where(tied & (rank < enough) & (rank > 0), np.minimum(rank, whole), whole)
    return whole


def rank_of(sigma: Spectrum) -> Places:
    """Number of directions in which there is any variance, of shape (...)."""
    return (sigma.values > 0.0).sum(-1) + sigma.n_outside * (sigma.floor > 0.0)

"""Sums of fourth order, which the weight of Ledoit and Wolf needs alone.

A centred sample y becomes the row z = (y_1^2, ..., y_d^2, y_1, ..., y_d, 1). The outer products of
these rows hold all sums of second to fourth order; about another centre, at y = s, the row is

.. math:: z' = (y^2 - 2 s y + s^2,\\; y - s,\\; 1)

which is linear in z, so that sums about any centre follow from those about one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crossfade._typing import Array, Places


class Quartic(NamedTuple):
    """Outer products of the rows z of each class; with few samples a root of them."""

    sums: Array  # (..., K, 2 d + 1, 2 d + 1), or rows (..., K, n, 2 d + 1) where `rooted`
    rooted: bool

    @classmethod
    def of(cls, rows: Array, member: Array) -> Quartic:
        """Those of centred rows (..., n, d), each class with its weights (K, n)."""
        one = np.ones((*rows.shape[:-1], 1))
        whole = np.concatenate([rows**2, rows, one], -1)[..., None, :, :]
        return cls(np.sqrt(member)[:, :, None] * whole, True)._settled()

    def moved(self, steps: Array) -> Quartic:
        """The same sums about centres that lie `steps` (..., K, d) beyond the present ones."""
        moved = _moved(self.sums, steps)
        if not self.rooted:
            moved = _moved(moved.mT, steps).mT
        return Quartic(moved, self.rooted)

    def __add__(self, other: Quartic) -> Quartic:  # type: ignore[override]
        """Sums of both, about the same centres."""
        if self.rooted and other.rooted:
            return Quartic(np.concatenate([self.sums, other.sums], -2), True)._settled()
        return Quartic(self._dense() + other._dense(), False)

    def beside(self, other: Quartic) -> Quartic:
        """Those of further classes after these."""
        if not (self.rooted and other.rooted):
            return Quartic(np.concatenate([self._dense(), other._dense()], -3), False)
        n_rows = max(self.sums.shape[-2], other.sums.shape[-2])
        return Quartic(
            np.concatenate([_padded(one.sums, n_rows) for one in (self, other)], -3), True
        )

    def placed(self, old: Places, new: Places, n_classes: int) -> Quartic:
        """Those of the classes at `old` places at `new` ones, and none elsewhere."""
        sums = np.zeros((n_classes, *self.sums.shape[-2:]))
        sums[new] = self.sums[old]
        return Quartic(sums, self.rooted)

    def rotated(self) -> Quartic:
        """The same sums without a row of anybody's: with rows = Q R, R is a root too."""
        if not self.rooted:
            return self
        root: Any = np.linalg.qr(self.sums, mode="r")
        return Quartic(root, True)

    def part(self, which: Any) -> Quartic:
        """Sums of some of the tasks on the first axis."""
        return Quartic(self.sums[which], self.rooted)

    def fourth_powers(self, scale: Array) -> Array:
        """Sum over all samples of the fourth power of their length in features over `scale`."""
        weights = scale**-2.0
        d = weights.shape[-1]
        weights = weights[..., None, :]
        if self.rooted:
            squares: Array = (np.matvec(self.sums[..., :d], weights) ** 2).sum((-2, -1))
            return squares
        fourth: Array = np.vecdot(weights, np.matvec(self.sums[..., :d, :d], weights)).sum(-1)
        return fourth

    def _settled(self) -> Quartic:
        """A root, unless it has more rows than columns."""
        return Quartic(self._dense(), False) if self._tall() else self

    def _tall(self) -> bool:
        return self.rooted and self.sums.shape[-2] >= self.sums.shape[-1]

    def _dense(self) -> Array:
        return self.sums.mT @ self.sums if self.rooted else self.sums


def _moved(rows: Array, steps: Array) -> Array:
    """Rows z (..., K, n, 2 d + 1) about centres that lie `steps` (..., K, d) beyond."""
    d = steps.shape[-1]
    steps = steps[..., None, :]
    squares, plain, one = rows[..., :d], rows[..., d:-1], rows[..., -1:]
    return np.concatenate(
        [squares - 2.0 * steps * plain + steps**2 * one, plain - steps * one, one], -1
    )


def _padded(rows: Array, n_rows: int) -> Array:
    """Rows with zeros below, which add nothing."""
    return np.pad(rows, [(0, 0)] * (rows.ndim - 2) + [(0, n_rows - rows.shape[-2]), (0, 0)])

"""What every blend of a person's direction and a crowd's gives."""

from __future__ import annotations

from typing import NamedTuple

from crossfade._typing import Array
from crossfade.risk import AlphaChoice


class Blend(NamedTuple):
    """Blended directions, with leading batch axes.

    Attributes
    ----------
    omega : ndarray of shape (..., n_features)
        Directions of any length.
    dof : ndarray of shape (...)
        Effective degrees of freedom: trace of the derivative in the person's own direction.
    alpha : ndarray of shape (...)
        Weight of the person: 1 is the person alone, 0 the crowd alone.
    strength : ndarray of shape (...) or None
        How far the crowd's scatter was widened.
    choice : AlphaChoice or None
        The curve of the risk, where alpha was chosen by it.
    """

    omega: Array
    dof: Array
    alpha: Array
    strength: Array | None = None
    choice: AlphaChoice | None = None

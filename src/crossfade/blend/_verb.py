"""What every blend of a person's direction and a crowd's gives."""

from __future__ import annotations

from typing import NamedTuple

from crossfade._typing import Array
from crossfade.risk._choose import AlphaChoice


class Blend(NamedTuple):
    """Blended directions, with leading batch axes."""

    omega: Array  # (..., d): directions of any length
    dof: Array  # (...): effective degrees of freedom: trace of the derivative in the person's own
    alpha: Array  # (...): weight of the person: 1 is the person alone, 0 the crowd alone
    strength: Array | None = None  # (...): how far the crowd's scatter was widened
    weights: Array | None = None  # (..., n): responsibilities of crowds, or weights of sources
    source: Array | None = None  # (..., d): mean of the crowd that this person met
    choice: AlphaChoice | None = None  # the curve of the risk, where alpha was chosen by it
    penalty: Array | None = None  # (...): penalty on unequal weights of sources

"""Types of arrays and of arguments that all rooms share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.intp]
RandomState = int | np.random.Generator | np.random.RandomState | None
#: Called with the number of finished pieces of work and their total.
Progress = Callable[[int, int], None]

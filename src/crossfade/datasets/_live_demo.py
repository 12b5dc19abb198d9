"""One person of Mental Math, filtered with the past alone, and a prior of the 35 others.

Samples are stored as second differences of whole numbers, which compress five times as well.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade._files import read_whole
from crossfade.crowd import TaskPrior

_DATA = Path(__file__).parent / "data"
#: Made by ``scripts/make_live_demo.py``; data/LICENSE.md has licence and credit.
RECORDING, PRIOR = _DATA / "live_demo.npz", _DATA / "live_demo_prior.npz"
PERSON = "Subject08"
#: Microvolts of one step of the samples.
STEP = 0.1
_LARGEST = 1 << 20


class LiveDemo(NamedTuple):
    """A prior, and another person's filtered samples (n_channels, n) of each label, in uV."""

    name: str
    segments: dict[int, NDArray[np.float64]]
    prior: TaskPrior


def load_live_demo() -> LiveDemo:
    """The person, and the prior of the others; labels are those of ``load_mental_math``."""
    with np.load(io.BytesIO(read_whole(RECORDING, _LARGEST)), allow_pickle=False) as packed:
        segments = {label: unpacked(packed[f"label_{label}"]) for label in (0, 1)}
    return LiveDemo(PERSON, segments, TaskPrior.load(PRIOR))


def unpacked(differences: NDArray[np.int16]) -> NDArray[np.float64]:
    """Samples in microvolts from second differences of steps, modulo 16 bits."""
    steps = differences.cumsum(1, dtype=np.int16).cumsum(1, dtype=np.int16)
    return STEP * steps

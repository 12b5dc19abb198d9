"""One person of Mental Math, filtered with the past alone, and a prior of the 35 others.

What ``crossfade live --demo`` plays. Samples are second differences of whole numbers, which pack
five times as small as the samples do; sums of 16 bits bring them back to the bit.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade._files import read_whole
from crossfade.prior import TaskPrior

_DATA = Path(__file__).parent / "data"
#: Made by ``scripts/make_live_demo.py``; licence and credit stand beside them.
RECORDING, PRIOR = _DATA / "live_demo.npz", _DATA / "live_demo_prior.npz"
PERSON = "Subject08"
#: Microvolts of one step of the samples.
STEP = 0.1
_LARGEST = 1 << 20


class LiveDemo(NamedTuple):
    """A person to play, and a prior in which they are not.

    `segments` has the samples (n_channels, n_samples) of each label, in microvolts, of the channels
    of ``prior.recipe``. They are referenced and filtered already, so that any two pieces of a whole
    number of windows may follow each other: ``OnlineFeatures(prior.recipe, filtered=True)``.
    """

    name: str
    segments: dict[int, NDArray[np.float64]]
    prior: TaskPrior


def load_live_demo() -> LiveDemo:
    """The person, and the prior of the others; labels are those of ``load_mental_math``."""
    with np.load(io.BytesIO(read_whole(RECORDING, _LARGEST)), allow_pickle=False) as packed:
        segments = {label: unpacked(packed[f"label_{label}"]) for label in (0, 1)}
    return LiveDemo(PERSON, segments, TaskPrior.load(PRIOR))


def packed(samples: NDArray[np.float64]) -> NDArray[np.int16]:
    """Samples in microvolts as second differences of steps, modulo 16 bits."""
    steps = np.round(samples / STEP)
    if np.abs(steps).max() > np.iinfo(np.int16).max:
        raise ValueError("The samples do not fit into 16 bits. Take a larger STEP.")
    return np.diff(steps.astype(np.int64), n=2, axis=1, prepend=np.zeros((len(steps), 2))).astype(
        np.int16
    )


def unpacked(differences: NDArray[np.int16]) -> NDArray[np.float64]:
    """Samples in microvolts: the inverse of :func:`packed`, but for rounding."""
    steps = differences.cumsum(1, dtype=np.int16).cumsum(1, dtype=np.int16)
    return STEP * steps

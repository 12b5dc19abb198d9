"""Checks of sampling rates and of bands of frequencies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crossfade._validate import check_number

Bands = Mapping[str, tuple[float, float]]


def check_rate(sfreq: object, low: float = 0.0) -> float:
    """Return a sampling rate of at least `low`."""
    rate = check_number("sfreq", sfreq, low)
    if not 0.0 < rate < np.inf:
        raise ValueError(f"sfreq must be a positive number of samples per second; got {sfreq!r}.")
    return rate


def check_band(name: str, ends: Any, sfreq: float) -> tuple[float, float]:
    """Return the ends of a band in Hz, below half the sampling rate."""
    low, high = ends if np.shape(ends) == (2,) else (0.0, 0.0)
    if not 0.0 <= low < high <= sfreq / 2.0:
        raise ValueError(
            f"Band {name!r} must be two rising frequencies up to half of sfreq, {sfreq / 2.0:g} "
            f"Hz; got {ends!r}."
        )
    return low, high

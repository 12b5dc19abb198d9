"""Arguments of this room, checked where they come in: sampling rates, bands, windows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crossfade._validate import check_number

Bands = Mapping[str, tuple[float, float]]


def check_rate(sfreq: object) -> float:
    """Return a sampling rate; refuses what is not a positive number."""
    rate = check_number("sfreq", sfreq, 0.0)
    if not 0.0 < rate < np.inf:
        raise ValueError(f"sfreq must be a positive number of samples per second; got {sfreq!r}.")
    return rate


def check_bands(bands: Bands, sfreq: float) -> Bands:
    """Return frequency bands in Hz; refuses those that reach above half the sampling rate."""
    if not (hasattr(bands, "items") and len(bands)):
        raise ValueError(f"bands must be a mapping such as {{'theta': (4, 8)}}; got {bands!r}.")
    for name, ends in bands.items():
        if np.shape(ends) != (2,):
            raise ValueError(f"Band {name!r} must be a pair of frequencies; got {ends!r}.")
        low, high = (check_number(f"An end of band {name!r}", end, 0.0) for end in ends)
        if not low < high:
            raise ValueError(f"Band {name!r} must run upwards; got {low:g} to {high:g} Hz.")
        if high > sfreq / 2.0:
            raise ValueError(
                f"Band {name!r} ends at {high:g} Hz, but {sfreq:g} samples a second show nothing "
                f"above {sfreq / 2.0:g} Hz."
            )
    return bands

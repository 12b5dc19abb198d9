"""Channels of a recording without gaps at one sampling rate, and what was wrong with them."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade.signals.recordings import Recording

Array = NDArray[np.float64]


class Signal(NamedTuple):
    """Channels whose gaps are interpolated, each array of shape (n_channels, n_samples)."""

    data: Array
    missing: NDArray[np.bool_]  # where there was no sample
    flat: NDArray[np.bool_]  # where the channel kept one value for a second or more
    notes: list[str]


def read_signal(recording: Recording, channels: tuple[str, ...], sfreq: float) -> Signal:
    """Read channels, interpolate their gaps, and resample them to `sfreq`."""
    data = recording.read(channels)
    notes = []
    missing = ~np.isfinite(data)
    for name, gaps in zip(channels, missing, strict=True):
        if gaps.any():
            notes.append(f"{name} lacks {gaps.sum()} samples (NaN)")
    if missing.any():
        data = np.where(missing, np.nan, data)
    flat = flat_runs(data, round(recording.sfreq))
    whole: NDArray[np.bool_] = np.all(flat, axis=1)
    if whole.any():
        names = ", ".join(np.array(channels)[whole])
        notes.append(f"{names} {'is' if whole.sum() == 1 else 'are'} flat")
    for name, row, still in zip(channels, data, whole, strict=True):
        fraction = 0.0 if still else clipped_fraction(row)
        if fraction > 0.001:
            notes.append(f"{name} is clipped ({fraction:.1%} of its samples)")
    if missing.any():
        data = _interpolated(data, missing)
    if recording.sfreq != sfreq:
        notes.append(f"resampled from {recording.sfreq:g} to {sfreq:g} Hz")
        data = _resampled(data, recording.sfreq, sfreq)
        missing, flat = (
            _resampled_mask(mask, data.shape[1], sfreq / recording.sfreq)
            for mask in (missing, flat)
        )
    return Signal(data, missing, flat, notes)


def flat_runs(data: Array, length: int) -> NDArray[np.bool_]:
    """Where a channel keeps one value for `length` samples or more; (n_channels, n_samples)."""
    flat = np.zeros(data.shape, bool)
    # A run of this length covers a block of half of it.
    half = max(length // 2, 1)
    n_blocks = data.shape[1] // half
    for row, samples in zip(flat, data, strict=True):
        blocks = samples[: n_blocks * half].reshape(n_blocks, half)
        if not (blocks.min(1) == blocks.max(1)).any():
            continue
        edges = np.flatnonzero(samples[1:] != samples[:-1]) + 1
        first, last = np.r_[0, edges], np.r_[edges, samples.size]
        for a, b in zip(first[last - first >= length], last[last - first >= length], strict=True):
            row[a:b] = True
    return flat


def clipped_fraction(samples: Array) -> float:
    """Share of samples that sit at the largest or smallest value, three or more in a row."""
    fraction = 0.0
    for limit in (np.nanmax(samples, initial=-np.inf), np.nanmin(samples, initial=np.inf)):
        at = np.concatenate([[False], samples == limit, [False]])
        edges = np.flatnonzero(at[1:] != at[:-1])
        runs = edges[1::2] - edges[::2]
        fraction += runs[runs >= 3].sum() / samples.size
    return float(fraction)


def _interpolated(data: Array, missing: NDArray[np.bool_]) -> Array:
    """Straight lines over what is missing; a channel of which nothing is there is zero."""
    filled = data.copy()
    time = np.arange(data.shape[1])
    for row, gaps in zip(filled, missing, strict=True):
        if gaps.all():
            row[:] = 0.0
        elif gaps.any():
            row[gaps] = np.interp(time[gaps], time[~gaps], row[~gaps])
    return filled


def _resampled(data: Array, old: float, new: float) -> Array:
    from scipy.signal import resample_poly

    ratio = Fraction(new / old).limit_denominator(10_000)
    moved = resample_poly(data, ratio.numerator, ratio.denominator, axis=1, padtype="line")
    return np.asarray(moved, np.float64)


def _resampled_mask(mask: NDArray[np.bool_], n_samples: int, ratio: float) -> NDArray[np.bool_]:
    """Mask at another sampling rate; no place that is marked gets lost."""
    moved = np.zeros((len(mask), n_samples), bool)
    rows, places = np.nonzero(mask)
    moved[rows, np.minimum((places * ratio).astype(int), n_samples - 1)] = True
    return moved

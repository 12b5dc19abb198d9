"""Filter, reference and centre a signal with its past alone, in chunks of any size.

Recordings and running streams pass the same steps, so both give the same features. After missing
samples a filter starts anew, in its steady state for the first sample. Tangent vectors are taken at
the log-Euclidean mean of the windows so far; the first eight only define it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array

Mask = NDArray[np.bool_]

#: Order of the filter at each end of its band.
_ORDER = 2
#: Windows that define the first reference of tangent vectors.
N_REFERENCE = 8


class CausalFilter:
    """Butterworth band-pass of several channels, with its state."""

    def __init__(self, n_channels: int, sfreq: float, low: float, high: float) -> None:
        from scipy.signal import butter, sosfilt_zi

        self._sections = (
            butter(_ORDER, (low, high), "bandpass", fs=sfreq, output="sos")
            if low
            else butter(_ORDER, high, "lowpass", fs=sfreq, output="sos")
        )
        self._rest = sosfilt_zi(self._sections)[:, None, :]
        self._state = np.zeros((len(self._sections), n_channels, 2))
        self.reset()

    def reset(self) -> None:
        """Start anew with the next sample."""
        self._fresh = np.ones(self._state.shape[1], bool)

    def __call__(self, data: Array) -> Array:
        """Filtered samples (n_channels, n_samples); NaN where a sample is missing."""
        from scipy.signal import sosfilt

        missing = np.isnan(data)
        filtered = np.full(data.shape, np.nan)
        # In each stretch of time the same channels are there.
        edges = np.flatnonzero((missing[:, 1:] != missing[:, :-1]).any(0)) + 1
        for first, last in zip([0, *edges], [*edges, data.shape[1]], strict=True):
            there = ~missing[:, first]
            begins = there & self._fresh
            self._state[:, begins] = self._rest * data[begins, first][:, None]
            if there.any():
                filtered[there, first:last], self._state[:, there] = sosfilt(
                    self._sections, data[there, first:last], axis=1, zi=self._state[:, there]
                )
            self._fresh = ~there
        return filtered


class StillChannels:
    """Find channels that have kept one value for a second or more."""

    def __init__(self, n_channels: int, sfreq: float) -> None:
        self._long = round(sfreq)
        self._last = np.full(n_channels, np.nan)
        self._run = np.zeros(n_channels, int)

    def __call__(self, data: Array) -> Mask:
        """Whether each sample (n_channels, n_samples) ends a second of one value."""
        place = np.arange(data.shape[1])
        changes = data != np.column_stack([self._last, data[:, :-1]])
        since = np.maximum.accumulate(np.where(changes, place, -1), axis=1)
        run = np.where(since < 0, self._run[:, None] + place + 1, place - since + 1)
        self._last, self._run = data[:, -1].copy(), run[:, -1]
        return run >= self._long


class CausalCleaner:
    """Filter and reference raw samples with their past alone."""

    def __init__(
        self, n_channels: int, sfreq: float, band: tuple[float, float] | None, average: bool
    ) -> None:
        self._size = n_channels, sfreq
        self._filter = None if band is None else CausalFilter(n_channels, sfreq, *band)
        self._average = average
        self.reset()

    def reset(self) -> None:
        """Start anew with the next sample."""
        self._still = StillChannels(*self._size)
        if self._filter is not None:
            self._filter.reset()

    def __call__(self, data: Array) -> Array:
        """Clean samples (n_channels, n_samples); NaN where a sample, or all others, are missing."""
        if not data.shape[1]:
            return data
        clean = data if self._filter is None else self._filter(data)
        if not self._average:
            return clean
        alive = np.isfinite(clean) & ~self._still(data)
        count = alive.sum(0)
        total = np.where(alive, clean, 0.0).sum(0)
        return clean - total / np.where(count > 1, count, np.nan)


class RunningTangent:
    """Tangent vectors of covariances at the mean of the covariances so far."""

    def __init__(self) -> None:
        self.n_windows = 0
        self._logs: Array = np.zeros(())

    def __call__(self, covariance: Array) -> Array:
        """Vector of a covariance (n_channels, n_channels); NaN while the mean is being defined."""
        size = len(covariance)
        upper = np.triu_indices(size)
        if not np.isfinite(covariance).all():
            return np.full(upper[0].size, np.nan)
        self.n_windows += 1
        self._logs = self._logs + _of_values(np.log, covariance)
        if self.n_windows <= N_REFERENCE:
            return np.full(upper[0].size, np.nan)
        # M = exp(L) for the mean L of the logarithms, and so M^-1/2 = exp(-L / 2).
        whitening = _of_values(lambda values: np.exp(-values / 2.0), self._logs / self.n_windows)
        moved = _of_values(np.log, whitening @ covariance @ whitening)
        weight = np.where(upper[0] == upper[1], 1.0, np.sqrt(2.0))
        return moved[upper] * weight


def _of_values(function: Callable[[Array], Array], matrix: Array) -> Array:
    """Function of a symmetric matrix, by its eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * function(values)) @ vectors.T

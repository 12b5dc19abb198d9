"""RR intervals between beats, and heart-rate variability of the intervals of a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array
from crossfade.signals.ecg import find_beats, running_median

# Intervals that a heart can have, in seconds; and how far, relative to the median of N_AROUND
# intervals, one may be off.
SHORTEST, LONGEST = 0.3, 2.0
JUMP = 0.3
N_AROUND = 7

# Bands of the Task Force (1996), in Hz.
LOW = (0.04, 0.15)
HIGH = (0.15, 0.4)
# A mean and a sine take three numbers, so that a spectrum needs at least one interval more.
FEWEST_FOR_SPECTRUM = 4


class Intervals(NamedTuple):
    """RR intervals that were kept; each array is of shape (n_intervals,)."""

    seconds: Array
    times: Array  # when each ended
    follows: NDArray[np.bool_]  # whether it began with the beat that ended the one before it


def clean_intervals(beats: Array) -> Intervals:
    """RR intervals of 0.3 to 2 s, without those that a missed or a false beat made."""
    seconds = np.diff(beats)
    # Sample numbers over the rate are off by rounding, which must not decide at the bounds.
    kept = np.flatnonzero((seconds >= SHORTEST - 1e-9) & (seconds <= LONGEST + 1e-9))
    kept = kept[_is_regular(seconds[kept])]
    return Intervals(seconds[kept], beats[kept + 1], np.diff(kept, prepend=-2) == 1)


def _is_regular(seconds: Array) -> NDArray[np.bool_]:
    if not seconds.size:
        return np.zeros(0, dtype=np.bool_)
    usual = running_median(seconds, N_AROUND // 2, N_AROUND // 2)
    regular: NDArray[np.bool_] = np.abs(seconds - usual) <= JUMP * usual
    # At the top of a deep breath an interval is far from the median but near to its neighbour.
    steps = np.abs(np.diff(seconds))
    after = regular[:-1] & (steps <= JUMP * seconds[:-1])
    before = regular[1:] & (steps <= JUMP * seconds[1:])
    regular[1:] |= after
    regular[:-1] |= before
    return regular


def heart_features(beats: Array, starts: Array, length: float, features: Sequence[str]) -> Array:
    """Features (n_windows, n_features) of windows, from the intervals that lie in them."""
    intervals = clean_intervals(beats)
    low = np.searchsorted(intervals.times - intervals.seconds, starts - 1e-9)
    high = np.searchsorted(intervals.times, starts + length + 1e-9)
    values = np.empty((starts.size, len(features)))
    for row, left, right in zip(values, low, high, strict=True):
        part = slice(left, max(left, right))
        window = Intervals(intervals.seconds[part], intervals.times[part], intervals.follows[part])
        row[:] = [FEATURES[name](window) for name in features]
    return values


def features_of_windows(windows: Array, sfreq: float, features: Sequence[str]) -> Array:
    """Features (n_windows, n_features) of windows (n_windows, n_samples), or NaN without beats."""
    values = np.full((len(windows), len(features)), np.nan)
    for row, window in zip(values, windows, strict=True):
        if not np.isfinite(window).all():
            continue
        beats = find_beats(window, sfreq)
        if beats.stand_out:
            length = window.size / sfreq
            row[:] = heart_features(beats.at / sfreq, np.zeros(1), length, features)[0]
    return values


def check_features(features: object) -> list[str]:
    """Return names of features as a list."""
    names = list(features) if isinstance(features, (list, tuple)) else []
    if not names or len(set(names)) < len(names) or not set(names) <= set(FEATURES):
        words = ", ".join(FEATURES)
        raise ValueError(f"features must be different names out of {words}; got {features!r}.")
    return names


def _steps(window: Intervals) -> Array:
    """Differences of successive intervals."""
    return np.diff(window.seconds)[window.follows[1:]]


def _rate(window: Intervals) -> float:
    return 60.0 / float(window.seconds.mean()) if window.seconds.size else np.nan


def _fraction_above(window: Intervals, bound: float) -> float:
    # At 100 Hz differences are whole multiples of 10 ms: 20 ms, rounded or not, are not above 20.
    steps = np.abs(_steps(window))
    return float((steps > bound + 1e-9).mean()) if steps.size else np.nan


def _rmssd(window: Intervals) -> float:
    steps = _steps(window)
    return 1e3 * float(np.sqrt((steps**2).mean())) if steps.size else np.nan


def _sdnn_ratio(window: Intervals) -> float:
    seconds = window.seconds
    return float(seconds.std(ddof=1) / seconds.mean()) if seconds.size > 1 else np.nan


def _power(window: Intervals, band: tuple[float, float]) -> float:
    """Variance of the intervals in a band of frequencies, in ms^2."""
    n_intervals = window.seconds.size
    if n_intervals < FEWEST_FOR_SPECTRUM:
        return np.nan
    offsets = 1e3 * (window.seconds - window.seconds.mean())
    if not np.abs(offsets).max() > 1e-6:
        return 0.0
    duration = float(window.times[-1] - window.times[0])
    # Four points for each width of a line, so that the sum is the area under the spectrum.
    frequencies = np.linspace(*band, 2 + int(4.0 * duration * (band[1] - band[0])))
    from scipy.signal import lombscargle

    spectrum = lombscargle(window.times - window.times[0], offsets, 2.0 * np.pi * frequencies)
    # A sine of amplitude a has the peak n a^2 / 4 and the width 1 / duration: its area is a^2 / 2.
    density = 2.0 * spectrum * duration / (n_intervals - 1)
    return float(np.trapezoid(density, frequencies))


def _lf_hf(window: Intervals) -> float:
    high = _power(window, HIGH)
    return _power(window, LOW) / high if high > 0.0 else np.nan


FEATURES: dict[str, Callable[[Intervals], float]] = {
    "pnn20": lambda window: _fraction_above(window, 0.02),
    "sdnn_ratio": _sdnn_ratio,
    "lf_hf": _lf_hf,
    "rate": _rate,
    "rmssd": _rmssd,
    "pnn50": lambda window: _fraction_above(window, 0.05),
    "lf": lambda window: _power(window, LOW),
    "hf": lambda window: _power(window, HIGH),
}

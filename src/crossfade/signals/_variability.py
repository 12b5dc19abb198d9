"""RR intervals between beats, and heart-rate variability of the intervals of a window.

With intervals r_i of mean m and differences d_i of successive ones: pNN20 is the fraction of
|d_i| > 20 ms, RMSSD the root of the mean of d_i^2, the SDNN ratio the standard deviation of r_i
over m, and LF and HF are areas under the Lomb-Scargle periodogram of r_i - m.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._validate import check_choice, check_finite, check_number
from crossfade.signals._check import check_rate
from crossfade.signals._hamilton import find_beats, running_median

Array = NDArray[np.float64]

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
    """RR intervals that were kept, and how many were not.

    Attributes
    ----------
    seconds : ndarray of shape (n_intervals,)
        Length of each interval.
    times : ndarray of shape (n_intervals,)
        When each ended, in seconds from the beginning of the signal.
    follows : ndarray of shape (n_intervals,), dtype bool
        Whether the interval began with the beat that ended the one before it here; only then is
        their difference one of successive intervals.
    n_short : int
        Intervals dropped because they were shorter than 0.3 s.
    n_long : int
        Intervals dropped because they were longer than 2 s.
    n_jumps : int
        Intervals dropped because they were off the median of those around by more than 30 per cent,
        and off their neighbours.
    """

    seconds: Array
    times: Array
    follows: NDArray[np.bool_]
    n_short: int
    n_long: int
    n_jumps: int

    @property
    def n_dropped(self) -> int:
        """Number of intervals dropped for whatever reason."""
        return self.n_short + self.n_long + self.n_jumps


class HeartFeatures(NamedTuple):
    """Features of the heart in windows of time.

    Attributes
    ----------
    values : ndarray of shape (n_windows, n_features)
        The features; NaN where a window has too few beats to tell.
    n_missing : dict of str to int
        For each feature, in how many windows it is NaN.
    intervals : Intervals
        What the features were computed from.
    """

    values: Array
    n_missing: dict[str, int]
    intervals: Intervals


def clean_intervals(beats: ArrayLike, *, sfreq: float) -> Intervals:
    """RR intervals between beats, without those that a missed or a false beat made.

    An interval is kept if it lasts from 0.3 to 2 s and is within 30 per cent of the median of the
    seven such intervals around it, or of a neighbour that is. A beat missed doubles an interval, a
    false one halves it or worse, and a premature beat shortens one and lengthens the next. Breaths
    that swing intervals by a fifth up and down drop none: they go from one to the next in steps.

    Parameters
    ----------
    beats : array-like of shape (n_beats,)
        When the heart beat, in samples as :func:`~crossfade.signals.ecg.hamilton` gives them,
        increasing.
    sfreq : float
        Samples per second; 1 if `beats` is in seconds.

    Returns
    -------
    Intervals
        The intervals kept, which of them follow each other, and how many were dropped and why.

    Examples
    --------
    >>> from crossfade.signals.ecg import clean_intervals
    >>> found = clean_intervals([0, 80, 162, 240, 400, 481], sfreq=100)
    >>> found.seconds
    array([0.8 , 0.82, 0.78, 0.81])
    >>> found.follows, found.n_jumps
    (array([False,  True,  True, False]), 1)
    """
    times = check_finite("beats", beats, 1) / check_rate(sfreq)
    if times.ndim != 1:
        raise ValueError(f"beats must have one axis; got shape {times.shape}.")
    seconds = np.diff(times)
    if seconds.size and seconds.min() <= 0.0:
        place = int(seconds.argmin()) + 1
        raise ValueError(
            f"beats must be increasing; beat {place} is not later than the one before. Sort them "
            "and drop duplicates."
        )
    # Sample numbers over the rate are off by rounding, which must not decide at the bounds.
    short, long = seconds < SHORTEST - 1e-9, seconds > LONGEST + 1e-9
    kept = np.flatnonzero(~(short | long))
    regular = _is_regular(seconds[kept])
    n_jumps = int((~regular).sum())
    kept = kept[regular]
    return Intervals(
        seconds[kept],
        times[kept + 1],
        np.diff(kept, prepend=-2) == 1,
        int(short.sum()),
        int(long.sum()),
        n_jumps,
    )


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


def heart_features(
    beats: ArrayLike,
    starts: ArrayLike,
    length: float,
    *,
    sfreq: float,
    features: Sequence[str] = ("pnn20", "sdnn_ratio", "lf_hf"),
) -> HeartFeatures:
    """Heart rate and its variability in windows of a recording, from beats found in all of it.

    Beats are found best in a whole recording, where the detector knows what came before. Intervals
    are cleaned over all of it too; a window owns those that begin and end in it. The features are
    those of :class:`~crossfade.signals.ecg.HeartRateVariability`.

    Parameters
    ----------
    beats : array-like of shape (n_beats,)
        When the heart beat, in samples as :func:`~crossfade.signals.ecg.hamilton` gives them.
    starts : array-like of shape (n_windows,)
        When each window begins, in seconds.
    length : float
        How long a window lasts, in seconds.
    sfreq : float
        Samples per second of `beats`; 1 if they are in seconds.
    features : sequence of str, default=("pnn20", "sdnn_ratio", "lf_hf")
        Which features, in this order.

    Returns
    -------
    HeartFeatures
        The features, how many of each are NaN, and the intervals they come from.

    Examples
    --------
    >>> from crossfade.signals.ecg import heart_features
    >>> beats = [0, 80, 162, 240, 321, 400]
    >>> heart_features(beats, [0.0], 4.5, sfreq=100, features=["rate", "rmssd"]).values.round(1)
    array([[75. , 28.7]])
    """
    names = check_features(features)
    first = check_finite("starts", starts, 1)
    if first.ndim != 1:
        raise ValueError(f"starts must have one axis; got shape {first.shape}.")
    span = check_number("length", length, 0.0)
    intervals = clean_intervals(beats, sfreq=sfreq)
    begin = intervals.times - intervals.seconds
    low = np.searchsorted(begin, first - 1e-9)
    high = np.searchsorted(intervals.times, first + span + 1e-9)
    values = np.full((first.size, len(names)), np.nan)
    for row, (left, right) in enumerate(zip(low, high, strict=True)):
        part = slice(left, max(left, right))
        window = _Window(intervals.seconds[part], intervals.times[part], intervals.follows[part])
        values[row] = [FEATURES[name](window) for name in names]
    return HeartFeatures(values, count_missing(values, names), intervals)


class WindowsAlone(NamedTuple):
    """Features of windows of an ECG, each from its own samples; one entry for each window."""

    values: Array  # (n_windows, n_features), NaN where there are too few beats, or none
    no_heartbeat: NDArray[np.bool_]  # peaks are no larger than those of noise
    n_dropped: NDArray[np.int64]  # intervals between beats that were dropped


def features_of_windows(windows: Array, sfreq: float, features: Sequence[str]) -> WindowsAlone:
    """Features of windows (n_windows, n_samples): beats, filters and intervals of each alone."""
    found = WindowsAlone(
        np.empty((len(windows), len(features))),
        np.zeros(len(windows), np.bool_),
        np.zeros(len(windows), np.int64),
    )
    for row, window in enumerate(windows):
        beats = find_beats(window, sfreq)
        own = heart_features(beats.at, [0.0], window.size / sfreq, sfreq=sfreq, features=features)
        found.values[row] = own.values[0] if beats.stand_out else np.nan
        found.no_heartbeat[row] = not beats.stand_out
        found.n_dropped[row] = own.intervals.n_dropped
    return found


def count_missing(values: Array, names: Sequence[str]) -> dict[str, int]:
    """For each feature, in how many windows it is NaN."""
    return dict(zip(names, np.isnan(values).sum(0).tolist(), strict=True))


def check_features(features: object) -> list[str]:
    """Return names of features as a list; refuses unknown ones, none and repeated ones."""
    if isinstance(features, str) or not isinstance(features, Sequence) or not features:
        words = ", ".join(FEATURES)
        raise ValueError(f"features must be a list of names out of {words}; got {features!r}.")
    names = [check_choice("features", name, list(FEATURES)) for name in features]
    if len(set(names)) < len(names):
        raise ValueError(f"features must be named once each; got {names}.")
    return names


class _Window(NamedTuple):
    """Intervals of one window, in seconds."""

    seconds: Array
    times: Array
    follows: NDArray[np.bool_]

    @property
    def steps(self) -> Array:
        """Differences of successive intervals."""
        changes: Array = np.diff(self.seconds)[self.follows[1:]]
        return changes


def _rate(window: _Window) -> float:
    return 60.0 / float(window.seconds.mean()) if window.seconds.size else np.nan


def _fraction_above(window: _Window, bound: float) -> float:
    # At 100 Hz differences are whole multiples of 10 ms: 20 ms, rounded or not, are not above 20.
    steps = np.abs(window.steps)
    return float((steps > bound + 1e-9).mean()) if steps.size else np.nan


def _rmssd(window: _Window) -> float:
    steps = window.steps
    return 1e3 * float(np.sqrt((steps**2).mean())) if steps.size else np.nan


def _sdnn_ratio(window: _Window) -> float:
    seconds = window.seconds
    return float(seconds.std(ddof=1) / seconds.mean()) if seconds.size > 1 else np.nan


def _power(window: _Window, band: tuple[float, float]) -> float:
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


def _lf_hf(window: _Window) -> float:
    high = _power(window, HIGH)
    return _power(window, LOW) / high if high > 0.0 else np.nan


FEATURES: dict[str, Callable[[_Window], float]] = {
    "pnn20": lambda window: _fraction_above(window, 0.02),
    "sdnn_ratio": _sdnn_ratio,
    "lf_hf": _lf_hf,
    "rate": _rate,
    "rmssd": _rmssd,
    "pnn50": lambda window: _fraction_above(window, 0.05),
    "lf": lambda window: _power(window, LOW),
    "hf": lambda window: _power(window, HIGH),
}

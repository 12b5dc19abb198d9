"""Beats of an ECG by Hamilton's rules (2002)."""

from __future__ import annotations

import logging
from collections import deque
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._typing import Array
from crossfade._validate import check_finite
from crossfade.signals.windows import check_rate

__all__ = ["hamilton"]

Indices = NDArray[np.int64]

_log = logging.getLogger("crossfade")

# Hamilton's numbers. The band in which a QRS complex stands out, in Hz.
BAND = (8.0, 16.0)
# In seconds: no two beats are closer than REFRACTORY; a peak within T_WAVE of a
# beat may be its T wave.
REFRACTORY = 0.2
T_WAVE = 0.36
# Where the threshold lies between noise and beats, and how many beats or seconds both levels are
# estimated from.
THRESHOLD = 0.3125
N_KEPT = 8

# Peaks of noise are at most about twice the level that noise stays under for three tenths of the
# time (2.0 to 2.4 times for white, brown and pink noise).
QUIET_PERCENT = 30.0
NOISE_PEAK = 2.0
# Peaks of mere noise, picked by these rules, are 1.2 to 1.45 times the noise; beats of the poorest
# lead tried, with as much noise again added, 1.65 times.
STANDS_OUT = 1.5
# After SILENCE seconds without a beat, the level of the beats is estimated again; it never falls
# below FAINTEST times the usual level of the recording.
SILENCE = 3.0
FAINTEST = 0.3
# A peak whose smaller slope, rise or fall, is below this fraction of the larger is a shift of the
# baseline.
ONE_SIDED = 1.0 / 8.0

# Sampling rate from which beats can be seen, in Hz.
MIN_SFREQ = 50.0
# Seconds about a peak that hold its complex, and seconds that are filtered at a time.
REACH = 0.1
BLOCK = 600


class _Peaks(NamedTuple):
    """Where the QRS energy is largest within 200 ms; one entry for each such peak."""

    at: Indices
    height: Array
    rise: Array  # the steepest slopes of the signal near the peak
    fall: Array
    top: Indices  # where the signal is largest and smallest near the peak
    bottom: Indices
    above: Array  # and how large, upwards and downwards
    below: Array


def _find_peaks(signal: Array, rate: float) -> tuple[_Peaks, Array, Array]:
    """Candidate peaks of an ECG of a second or more, and the levels of noise and beats at each."""
    kernels = _make_kernels(rate)
    step = BLOCK * round(rate)
    blocks = [
        _peaks_of_block(signal, start, min(start + step, signal.size), rate, kernels)
        for start in range(0, signal.size, step)
    ]
    every = zip(*(peaks for peaks, _, _ in blocks), strict=True)
    peaks = _Peaks._make(np.concatenate(column) for column in every)
    quiet, loud = (np.concatenate([block[place] for block in blocks]) for place in (1, 2))
    steepness = np.maximum(peaks.rise, peaks.fall)
    keep = np.minimum(peaks.rise, peaks.fall) >= ONE_SIDED * steepness
    # Rounding leaves peaks where the signal is flat, and equal heights leave two for one.
    keep &= peaks.height > 1e-6 * peaks.height.max(initial=0.0)
    keep &= np.diff(peaks.at, prepend=-signal.size) > REFRACTORY * rate
    noise = NOISE_PEAK * running_median(quiet, N_KEPT // 2, N_KEPT // 2)
    level = np.maximum(running_median(loud, 0, N_KEPT - 1), FAINTEST * np.median(loud))
    second = np.minimum(peaks.at // round(rate), noise.size - 1)[keep]
    return _Peaks._make(column[keep] for column in peaks), noise[second], level[second]


def running_median(values: Array, before: int, after: int) -> Array:
    """Upper median of each value with so many before and after it; the ends are mirrored."""
    # scipy.ndimage.median_filter fails for few values, and crashes in scipy 1.15.
    mirrored = np.pad(values, (before, after), mode="symmetric")
    around = np.lib.stride_tricks.sliding_window_view(mirrored, before + 1 + after)
    middle = (before + 1 + after) // 2
    return np.partition(around, middle, axis=1)[:, middle]


def _make_kernels(rate: float) -> tuple[Array, Array]:
    """Filters for the slope of the QRS complex, and for the signal without hum and baseline."""
    from scipy.signal import firwin

    # Short, so that a beat does not ring into the next.
    band = firwin(2 * round(0.1 * rate) + 1, BAND, pass_zero=False, fs=rate)
    slope = np.convolve(band, [0.5 * rate, 0.0, -0.5 * rate])
    half = round(0.3 * rate)
    time = np.arange(-half, half + 1) / rate
    # A bell of 6 ms keeps the peak and reduces mains hum to a sixth; the wide one is the baseline.
    narrow = np.exp(-0.5 * (time / 0.006) ** 2)
    wide = 1.0 + np.cos(np.pi * time / time[-1])
    return slope, narrow / narrow.sum() - wide / wide.sum()


def _peaks_of_block(
    signal: Array, start: int, stop: int, rate: float, kernels: tuple[Array, Array]
) -> tuple[_Peaks, Array, Array]:
    """Peaks of a part of the signal, and a quiet and a loud level for each second."""
    from scipy.ndimage import maximum_filter1d, uniform_filter1d
    from scipy.signal import oaconvolve

    margin = second = round(rate)
    low, high = max(start - margin, 0), min(stop + margin, signal.size)
    outside = (low - start + margin, stop + margin - high)
    chunk = signal[low:high] - np.median(signal[low:high])
    chunk = np.pad(chunk, outside, mode="edge")
    slope = np.abs(oaconvolve(chunk, kernels[0], "same"))
    energy = uniform_filter1d(slope, 2 * round(0.04 * rate) + 1)
    shape = oaconvolve(chunk, kernels[1], "same")

    largest = maximum_filter1d(energy, 2 * round(REFRACTORY * rate) + 1)
    inside = slice(margin, margin + stop - start)
    at = margin + np.flatnonzero((energy[inside] == largest[inside]) & (energy[inside] > 0.0))
    around = np.arange(-round(REACH * rate), round(REACH * rate) + 1)
    near = at[:, None] + around
    form, steep = shape[near], np.gradient(shape)[near]
    to_signal = at + start - margin
    n_seconds = (stop - start) // second
    seconds = energy[margin : margin + n_seconds * second].reshape(n_seconds, second)
    peaks = _Peaks(
        at=to_signal,
        height=energy[at],
        rise=steep.max(1),
        fall=-steep.min(1),
        top=np.clip(to_signal + around[form.argmax(1)], 0, signal.size - 1),
        bottom=np.clip(to_signal + around[form.argmin(1)], 0, signal.size - 1),
        above=form.max(1),
        below=-form.min(1),
    )
    return peaks, np.percentile(seconds, QUIET_PERCENT, axis=1), seconds.max(1)


def _choose_beats(
    peaks: _Peaks, noise_at: Array, level_at: Array, rate: float, n_samples: int
) -> Indices:
    """Indices of the peaks that are beats, by the rules 3 to 5 of `hamilton`."""
    if not peaks.at.size:
        return np.empty(0, np.int64)
    # The end of the signal comes as a last peak without height, so that the search back reaches it.
    time = [*(peaks.at / rate).tolist(), n_samples / rate]
    height = [*peaks.height.tolist(), 0.0]
    steepness = np.maximum(peaks.rise, peaks.fall).tolist()
    noise = [*noise_at.tolist(), 0.0]
    level = [*level_at.tolist(), level_at[-1].item()]

    beats: list[int] = []
    beat_level: float = level[0]
    kept_heights = deque([beat_level] * N_KEPT, N_KEPT)
    kept_intervals = deque([1.0] * N_KEPT, N_KEPT)
    longest = 1.5
    since = 0.0
    searched = False
    k = first_undecided = 0

    def threshold(peak: int, fraction: float) -> float:
        return float(noise[peak] + fraction * (beat_level - noise[peak]))

    while k < len(time):
        last = beats[-1] if beats else -1
        gap = time[k] - time[last] if beats else np.inf
        beat = None
        if beats and gap > longest and not searched:
            # Rule 5: search back for a missed beat, above half the threshold.
            searched = True
            missed = (
                peak
                for peak in range(last + 1, k)
                if time[peak] - time[last] >= T_WAVE
                and height[peak] > threshold(peak, 0.5 * THRESHOLD)
            )
            beat = max(missed, key=height.__getitem__, default=None)
        if beat is None and time[k] - since > SILENCE:
            # Start again with the level of the coming seconds, from the first peak not decided on.
            beat_level = level[k]
            kept_heights.extend([beat_level] * N_KEPT)
            kept_intervals.extend([1.0] * N_KEPT)
            longest, searched, since = 1.5, False, time[k]
            k, first_undecided = first_undecided, k
            continue
        # Rule 4, a peak above the threshold, unless rule 3 has it for a T wave.
        if (
            beat is None
            and height[k] > threshold(k, THRESHOLD)
            and (gap > T_WAVE or steepness[k] >= 0.5 * steepness[last])
        ):
            beat = k
        if beat is None:
            k += 1
            continue
        if beats:
            kept_intervals.append(time[beat] - time[last])
        beats.append(beat)
        kept_heights.append(height[beat])
        beat_level, longest = median(kept_heights), 1.5 * median(kept_intervals)
        searched, since = False, time[beat]
        k = first_undecided = beat + 1

    chosen = np.array(beats, dtype=np.int64)
    # At the ends of a signal even a slow wave has a corner: peaks there need a beat further inside.
    whole = np.abs(peaks.at[chosen] - n_samples / 2) < n_samples / 2 - REACH * rate
    return chosen if whole.any() else chosen[:0]


def _locate_beats(peaks: _Peaks, chosen: Indices) -> Indices:
    """Samples of the R peaks, or of the largest deflections downwards where those are the rule."""
    if not chosen.size:
        return chosen
    above, below = peaks.above[chosen], peaks.below[chosen]
    # One side for the whole recording, the upper one if in doubt, so that R and S do not alternate.
    upright = bool(1.5 * np.median(above) >= np.median(below))
    usual, other = (above, below) if upright else (below, above)
    upwards = (2.0 * usual >= other) == upright
    return np.unique(np.where(upwards, peaks.top[chosen], peaks.bottom[chosen]))


class Beats(NamedTuple):
    """Samples of the beats, and whether these are larger than peaks of mere noise."""

    at: Indices
    stand_out: bool


def find_beats(signal: Array, rate: float) -> Beats:
    """Beats of a signal without gaps."""
    peaks, noise, level = _find_peaks(signal, rate)
    chosen = _choose_beats(peaks, noise, level, rate, signal.size)
    excess = peaks.height[chosen] - STANDS_OUT * noise[chosen]
    stand_out = not chosen.size or bool(np.median(excess) > 0.0)
    return Beats(_locate_beats(peaks, chosen), stand_out)


def hamilton(signal: ArrayLike, *, sfreq: float) -> Indices:
    """Find the beats of an ECG by the rules of Hamilton (2002).

    The signal is filtered to 8 to 16 Hz, differentiated, rectified and averaged over 80 ms. Of the
    peaks of that,

    1. those within 200 ms of a larger one are ignored;
    2. those where the signal only rises or only falls are shifts of the baseline;
    3. those within 360 ms of a beat and less than half as steep are its T wave;
    4. those above a threshold are beats: noise + 0.3125 (beats - noise), where "beats" is the
       median of the last eight;
    5. if for one and a half of the usual interval there was none, the largest peak since that is
       above half the threshold, and at least 360 ms after the last beat, is a beat.

    The first level of the beats is the median of the largest values in each of the first eight
    seconds. A beat is placed on the signal without hum and baseline, at the extreme within 100 ms:
    the upper one, or the lower one where that is by far the larger in most beats, or in this one.

    It departs from the paper in four ways. Filters have no delay. Noise is measured between the
    peaks (twice the level that eight seconds stay under for three tenths of the time), because
    peaks classified as noise mislead where every third beat is small. Half of the threshold is
    counted from the noise. After three seconds without a beat, the level of the beats is estimated
    again from the next eight seconds, so that detection resumes after an artefact.

    Parameters
    ----------
    signal : array-like of shape (n_samples,)
        One lead, a second or longer, in any unit and of either polarity.
    sfreq : float
        Samples per second, 50 or more; 250 or more place beats more accurately.

    Returns
    -------
    ndarray of shape (n_beats,), dtype int64
        Samples at which the beats are, increasing; none for a flat signal. The rules also find
        peaks in noise: the log has a warning if the beats are no larger than those.

    References
    ----------
    P. Hamilton, Open source ECG analysis. Computers in Cardiology 29, 101-104 (2002).

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade.signals.ecg import hamilton
    >>> time = np.arange(1000) / 100
    >>> beats = np.exp(-0.5 * ((time[:, None] - [1, 2, 3, 4.1, 5, 6, 7, 8.2, 9]) / 0.01) ** 2)
    >>> hamilton(beats.sum(1), sfreq=100)
    array([100, 200, 300, 410, 500, 600, 700, 820, 900])
    """
    rate = check_rate(sfreq, MIN_SFREQ)
    array = check_finite("signal", signal, 1)
    if array.ndim > 1 or array.size < round(rate):
        raise ValueError(f"signal must be one lead of a second or more; got shape {array.shape}.")
    found = find_beats(array, rate)
    if not found.stand_out:
        _log.warning(
            "The %d beats found hardly stand out from the noise; is this channel an ECG?",
            found.at.size,
        )
    return found.at

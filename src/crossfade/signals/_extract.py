"""Features of the windows of one recording, and what is wrong with its channels.

EEG is referenced, filtered and cut into windows, of which :class:`EEGFeatures` computes band powers
or covariances; of an ECG, :class:`ECGFeatures` finds the beats in the whole recording and computes
the heart-rate variability of its windows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade._validate import check_choice
from crossfade.signals._check import Bands, check_bands, check_extra
from crossfade.signals._hamilton import MIN_SFREQ, check_ecg_rate, find_beats
from crossfade.signals._labels import Segment
from crossfade.signals._variability import check_features
from crossfade.signals.ecg import clean_intervals, heart_features
from crossfade.signals.eeg import (
    BANDS,
    BandPower,
    average_reference,
    band_pass,
    tangent_vectors,
    window_covariances,
)
from crossfade.signals.recordings import Recording
from crossfade.signals.windows import Windows, cut_windows

Array = NDArray[np.float64]

#: Band features of a window of EEG, and whether they are relative and logarithms.
_OF_BANDS = {
    "shares": (True, False),
    "powers": (False, False),
    "log-powers": (False, True),
    "clr": (True, True),
}
#: What can be computed from a window of EEG.
KINDS = (*_OF_BANDS, "tangent")
#: Fraction of dropped intervals between beats above which a note says so.
_MANY = 0.1


class Rows(NamedTuple):
    """Features of the windows of one segment; NaN where they cannot be computed."""

    segment: Segment
    start: Array  # (n_windows,), in seconds from the beginning of the recording
    values: Array  # (n_windows, n_values)


@dataclass(frozen=True)
class EEGFeatures:
    """EEG: average reference, band-pass, windows, then features of bands or tangent vectors."""

    kind: str = "shares"
    channels: tuple[str, ...] | None = None  # None: all on the scalp
    bands: Bands | None = None  # None: the paper's
    length: float = 2.5  # of a window, in seconds
    overlap: float = 0.0
    passband: tuple[float, float] | None = (0.5, 30.0)  # in Hz; None: no filter
    reference: str = "average"  # over the channels on the scalp that are not flat; or "none"

    def __post_init__(self) -> None:
        check_choice("features", self.kind, KINDS)
        check_choice("reference", self.reference, ("average", "none"))
        check_bands(self._bands, np.inf)
        _check_windows(self.length, self.overlap)
        if self.kind == "clr" and len(self._bands) == 1:
            raise ValueError(
                "Centred log-ratios (clr) compare the bands of a channel, and there is one band "
                "only. Add a band, or choose the features log-powers."
            )
        if self.kind == "tangent":
            check_extra("pyriemann", "riemann", "A tangent space")
        if self.passband is not None:
            check_extra("mne", "eeg", "A band-pass")
            if not 0.0 <= self.passband[0] < self.passband[1]:
                low, high = self.passband
                raise ValueError(f"A band-pass must run upwards; got {low:g} to {high:g} Hz.")

    @property
    def _bands(self) -> Bands:
        return BANDS if self.bands is None else self.bands

    @property
    def min_sfreq(self) -> float:
        """Samples per second that a recording must have more than."""
        ends = [high for _, high in self._bands.values()] if self.kind != "tangent" else []
        return 2.0 * max([*ends, 0.0 if self.passband is None else self.passband[1]])

    def channels_of(self, recording: Recording) -> tuple[str, ...]:
        """Which channels of a recording give features."""
        return self.channels or recording.scalp()

    def rows(
        self,
        recording: Recording,
        segments: Sequence[Segment],
        channels: tuple[str, ...],
        sfreq: float,
    ) -> tuple[list[Rows], list[str]]:
        """Rows of each segment that holds a window, and notes; of tangent vectors, covariances."""
        around = recording.scalp() if self.reference == "average" else ()
        own = recording.find(channels)
        others = [name for name in around if recording.find([name])[0] not in own]
        signal = _read_signal(recording, (*channels, *others), sfreq)
        data = signal.data
        if self.reference == "average":
            data = average_reference(data, ~(signal.flat | signal.missing).all(1))
        kept = slice(len(channels))
        data, missing, flat = data[kept], signal.missing[kept], signal.flat[kept]
        notes = list(signal.notes)
        if self.passband is not None:
            data = band_pass(data, sfreq, *self.passband)
        silent = np.zeros(len(channels), int)

        def compute(first: int, last: int) -> tuple[Array, Array]:
            windows, start = self._cut(data[:, first:last], sfreq)
            gaps = self._cut(missing[:, first:last], sfreq).data.any(-1, keepdims=True)
            still = self._cut(flat[:, first:last], sfreq).data.all(-1, keepdims=True)
            if (gaps | still).any():
                windows = np.where(gaps | still, np.nan, windows)
            if self.kind == "tangent":
                rows, columns = np.triu_indices(len(channels))
                return window_covariances(windows)[:, rows, columns], start
            relative, log = _OF_BANDS[self.kind]
            power = BandPower(sfreq, self.bands, relative=relative, log=log)
            values = power.fit(windows).transform(windows)
            if log:
                lacking = np.isnan(values.reshape(*windows.shape[:2], -1)).any(-1, keepdims=True)
                silent[:] += (lacking & ~(gaps | still)).sum((0, 2))
            return values, start

        rows = _by_segment(segments, data.shape[1], sfreq, self.length, compute, notes)
        instead = "shares" if self.kind == "clr" else "powers"
        notes += [
            f"{name} has no power in some band, and so no logarithm, in {count} "
            f"{'window' if count == 1 else 'windows'}; the features {instead} need none"
            for name, count in zip(channels, silent, strict=True)
            if count
        ]
        return rows, notes

    def _cut(self, data: NDArray[Any], sfreq: float) -> Windows:
        return cut_windows(data, sfreq, length=self.length, overlap=self.overlap)

    def finish(self, values: Array) -> Array:
        """Features of all windows of a task: (n_windows, n_values) to (n_windows, n_features)."""
        if self.kind != "tangent":
            return values
        n_channels = math.isqrt(2 * values.shape[1])
        rows, columns = np.triu_indices(n_channels)
        covariances = np.empty((len(values), n_channels, n_channels))
        covariances[:, rows, columns] = covariances[:, columns, rows] = values
        return tangent_vectors(covariances)

    def names(self, channels: tuple[str, ...]) -> list[str]:
        """Names of the features: ``Fz_theta``, or ``Fz_Cz`` for tangent vectors."""
        if self.kind == "tangent":
            rows, columns = np.triu_indices(len(channels))
            return [f"{channels[i]}_{channels[j]}" for i, j in zip(rows, columns, strict=True)]
        return [f"{name}_{band}" for name in channels for band in self._bands]


@dataclass(frozen=True)
class ECGFeatures:
    """ECG: beats of the whole recording, then heart-rate variability in windows."""

    features: tuple[str, ...] = ("pnn20", "sdnn_ratio", "lf_hf")
    channel: str | None = None  # None: the one of kind ECG
    length: float = 15.0  # of a window, in seconds
    overlap: float = 0.0

    def __post_init__(self) -> None:
        check_features(self.features)
        _check_windows(self.length, self.overlap)

    @property
    def min_sfreq(self) -> float:
        """Samples per second that a recording must have more than."""
        return float(np.nextafter(MIN_SFREQ, 0.0))

    def channels_of(self, recording: Recording) -> tuple[str, ...]:
        """Which channel of a recording is the ECG."""
        return (self.channel or recording.ecg_channel(),)

    def rows(
        self,
        recording: Recording,
        segments: Sequence[Segment],
        channels: tuple[str, ...],
        sfreq: float,
    ) -> tuple[list[Rows], list[str]]:
        """Rows of each segment that holds a window, and notes."""
        signal = _read_signal(recording, channels, sfreq)
        notes = list(signal.notes)
        beats, stand_out = find_beats(signal.data[0], check_ecg_rate(sfreq))
        if beats.size < 2:
            raise ValueError(f"No beats were found in {channels[0]}.")
        intervals = clean_intervals(beats, sfreq=sfreq)
        if not stand_out:
            notes.append(
                f"{channels[0]} holds no heartbeat: its peaks are no larger than those of noise, "
                "and its windows are left empty"
            )
        elif intervals.n_dropped > _MANY * beats.size:
            notes.append(
                f"{intervals.n_dropped} of {beats.size - 1} intervals between beats were dropped "
                f"({intervals.n_short} too short, {intervals.n_long} too long, "
                f"{intervals.n_jumps} off their neighbours)"
            )

        def compute(first: int, last: int) -> tuple[Array, Array]:
            gaps, start = cut_windows(
                signal.missing[0, first:last], sfreq, length=self.length, overlap=self.overlap
            )
            found = heart_features(
                beats, start + first / sfreq, self.length, sfreq=sfreq, features=self.features
            )
            empty = gaps.any(1, keepdims=True) | (not stand_out)
            return np.where(empty, np.nan, found.values), start

        n_samples = signal.data.shape[1]
        return _by_segment(segments, n_samples, sfreq, self.length, compute, notes), notes

    def finish(self, values: Array) -> Array:
        """Features of all windows of a task: the values as they are."""
        return values

    def names(self, channels: tuple[str, ...]) -> list[str]:
        """Names of the features."""
        return list(self.features)


#: How to get from a recording to features.
Extract = EEGFeatures | ECGFeatures


def _by_segment(
    segments: Sequence[Segment],
    n_samples: int,
    sfreq: float,
    length: float,
    compute: Callable[[int, int], tuple[Array, Array]],
    notes: list[str],
) -> list[Rows]:
    """Rows of each segment that holds a window; the others are noted."""
    rows = []
    short: Counter[str] = Counter()
    for one in segments:
        first, last = (round(min(max(at * sfreq, 0), n_samples)) for at in (one.start, one.stop))
        if last - first < round(length * sfreq):
            short[one.label] += 1
            continue
        values, start = compute(first, last)
        rows.append(Rows(one, start + first / sfreq, values))
    notes += [
        f"{count} {'segment' if count == 1 else 'segments'} of {label!r} left out, since shorter "
        f"than a window of {length:g} s"
        for label, count in short.items()
    ]
    return rows


def _check_windows(length: float, overlap: float) -> None:
    if not 0.0 <= overlap < length:
        raise ValueError(f"overlap must be shorter than a window; got {overlap:g} of {length:g} s.")


class _Signal(NamedTuple):
    """Channels whose gaps are interpolated, each array of shape (n_channels, n_samples)."""

    data: Array
    missing: NDArray[np.bool_]  # where there was no sample
    flat: NDArray[np.bool_]  # where the channel kept one value for a second or more
    notes: list[str]


def _read_signal(recording: Recording, channels: tuple[str, ...], sfreq: float) -> _Signal:
    """Read channels, interpolate their gaps, and resample them to `sfreq`."""
    data = recording.read(channels)
    notes = []
    missing = ~np.isfinite(data)
    for name, gaps in zip(channels, missing, strict=True):
        if gaps.any():
            notes.append(f"{name} lacks {gaps.sum()} samples (NaN)")
    if missing.any():
        data = np.where(missing, np.nan, data)
    flat = _flat_runs(data, round(recording.sfreq))
    whole: NDArray[np.bool_] = np.all(flat, axis=1)
    if whole.any():
        names = ", ".join(np.array(channels)[whole])
        notes.append(f"{names} {'is' if whole.sum() == 1 else 'are'} flat")
    for name, row, still in zip(channels, data, whole, strict=True):
        fraction = 0.0 if still else _clipped_fraction(row)
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
    return _Signal(data, missing, flat, notes)


def _flat_runs(data: Array, length: int) -> NDArray[np.bool_]:
    """Where a channel keeps one value for `length` samples or more; (n_channels, n_samples)."""
    flat = np.zeros(data.shape, bool)
    for row, samples in zip(flat, data, strict=True):
        edges = np.flatnonzero(samples[1:] != samples[:-1]) + 1
        first, last = np.r_[0, edges], np.r_[edges, samples.size]
        long = last - first >= length
        for a, b in zip(first[long], last[long], strict=True):
            row[a:b] = True
    return flat


def _clipped_fraction(samples: Array) -> float:
    """Fraction of samples that sit at the largest or smallest value, three or more in a row."""
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

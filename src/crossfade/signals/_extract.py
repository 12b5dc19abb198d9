"""Features of the windows of one recording, and what is wrong with its channels.

EEG is referenced, filtered and cut into windows, of which :class:`EEGFeatures` computes band powers
or covariances, with the whole recording or, as a stream must, with the past alone (`_causal`);
of an ECG, :class:`ECGFeatures` finds the beats in the whole recording or, as a stream must, in each
window alone, and computes the heart-rate variability of its windows.
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

from crossfade._validate import check_choice, check_extra
from crossfade.signals._causal import N_REFERENCE, CausalCleaner, RunningTangent
from crossfade.signals._check import Bands, check_bands
from crossfade.signals._hamilton import BAND, MIN_SFREQ, check_ecg_rate, find_beats
from crossfade.signals._labels import Segment
from crossfade.signals._variability import check_features, features_of_windows
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
from crossfade.tasks import Recipe

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
    causal: bool = False  # every step with the past alone

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
            check_extra("pyriemann", "eeg", "A tangent space")
        if self.passband is not None:
            if not self.causal:
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

    def needed(self, recording: Recording, channels: tuple[str, ...]) -> tuple[str, ...]:
        """Channels to read: those of the features, then all others of the average reference."""
        around = recording.scalp() if self.reference == "average" else ()
        own = recording.find(channels)
        return (*channels, *(name for name in around if recording.find([name])[0] not in own))

    def rows(
        self,
        recording: Recording,
        segments: Sequence[Segment],
        channels: tuple[str, ...],
        sfreq: float,
    ) -> tuple[list[Rows], list[str]]:
        """Rows of each segment that holds a window, and notes; of tangent vectors, covariances."""
        signal = _read_signal(recording, self.needed(recording, channels), sfreq, self.causal)
        kept = slice(len(channels))
        raw, missing, flat = signal.data[kept], signal.missing[kept], signal.flat[kept]
        notes = list(signal.notes)
        data = self._clean(signal, sfreq)[kept]
        silent = np.zeros(len(channels), int)

        def compute(first: int, last: int) -> tuple[Array, Array]:
            windows, start = _cut(self, data[:, first:last], sfreq)
            gaps = _cut(self, missing[:, first:last], sfreq).data.any(-1)
            still = (
                _is_still(_cut(self, raw[:, first:last], sfreq).data)
                if self.causal
                else _cut(self, flat[:, first:last], sfreq).data.all(-1)
            )
            unknown = np.asarray(gaps | still)
            values = window_values(self.kind, windows, unknown, sfreq, self.bands)
            if _OF_BANDS.get(self.kind, (False, False))[1]:
                lacking = np.isnan(values.reshape(*windows.shape[:2], -1)).any(-1)
                silent[:] += (lacking & ~unknown).sum(0)
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

    def _clean(self, signal: _Signal, sfreq: float) -> Array:
        """Referenced and filtered samples (n_channels, n_samples)."""
        average = self.reference == "average"
        if self.causal:
            raw = np.where(signal.missing, np.nan, signal.data)
            return CausalCleaner(len(raw), sfreq, self.passband, average)(raw)
        data = signal.data
        if average:
            data = average_reference(data, ~(signal.flat | signal.missing).all(1))
        return data if self.passband is None else band_pass(data, sfreq, *self.passband)

    def finish(self, values: Array) -> Array:
        """Features of all windows of a task: (n_windows, n_values) to (n_windows, n_features)."""
        if self.kind != "tangent":
            return values
        covariances = covariances_of(values)
        if self.causal:
            return np.stack([*map(RunningTangent(), covariances)])
        return tangent_vectors(covariances)

    def settled(self, values: Array) -> NDArray[np.bool_]:
        """Windows of a task (n_windows,) that did more than define the mean of those so far."""
        if not (self.causal and self.kind == "tangent"):
            return np.ones(len(values), bool)
        after: NDArray[np.bool_] = np.cumsum(np.isfinite(values).all(1)) > N_REFERENCE
        return after

    def recipe(self, channels: tuple[str, ...], needed: tuple[str, ...], sfreq: float) -> Recipe:
        """How these features are made; `needed` is empty where recordings differ in it."""
        return Recipe(
            self.kind,
            sfreq,
            channels,
            self.length,
            self.overlap,
            self.reference,
            needed if self.reference == "average" else (),
            None if self.passband is None else "causal" if self.causal else "zero-phase",
            self.passband,
            ()
            if self.kind == "tangent"
            else tuple((name, *ends) for name, ends in self._bands.items()),
            centre=None if self.kind != "tangent" else "past" if self.causal else "session",
        )

    def names(self, channels: tuple[str, ...]) -> list[str]:
        """Names of the features; they depend on no sampling rate."""
        return list(self.recipe(channels, (), 1.0).feature_names)


@dataclass(frozen=True)
class ECGFeatures:
    """ECG: beats of the whole recording, or of each window, then heart-rate variability."""

    features: tuple[str, ...] = ("pnn20", "sdnn_ratio", "lf_hf")
    channel: str | None = None  # None: the one of kind ECG
    length: float = 15.0  # of a window, in seconds
    overlap: float = 0.0
    causal: bool = False  # a window's features from its own samples alone

    def __post_init__(self) -> None:
        check_features(self.features)
        _check_windows(self.length, self.overlap)
        if self.causal and self.length < 1.0:
            raise ValueError(
                "Beats are found in each window alone, which must last a second or longer; got "
                f"{self.length:g} s."
            )

    @property
    def min_sfreq(self) -> float:
        """Samples per second that a recording must have more than."""
        return float(np.nextafter(MIN_SFREQ, 0.0))

    def channels_of(self, recording: Recording) -> tuple[str, ...]:
        """Which channel of a recording is the ECG."""
        return (self.channel or recording.ecg_channel(),)

    def needed(self, recording: Recording, channels: tuple[str, ...]) -> tuple[str, ...]:
        """Channels to read: the ECG."""
        return channels

    def rows(
        self,
        recording: Recording,
        segments: Sequence[Segment],
        channels: tuple[str, ...],
        sfreq: float,
    ) -> tuple[list[Rows], list[str]]:
        """Rows of each segment that holds a window, and notes."""
        signal = _read_signal(recording, channels, sfreq, self.causal)
        notes = list(signal.notes)
        own = self._alone if self.causal else self._whole
        compute = own(signal, check_ecg_rate(sfreq), channels[0], notes)
        n_samples = signal.data.shape[1]
        return _by_segment(segments, n_samples, sfreq, self.length, compute, notes), notes

    def _whole(
        self, signal: _Signal, sfreq: float, channel: str, notes: list[str]
    ) -> Callable[[int, int], tuple[Array, Array]]:
        """Features from the beats of the whole recording."""
        beats, stand_out = find_beats(signal.data[0], sfreq)
        if beats.size < 2:
            raise ValueError(f"No beats were found in {channel}.")
        intervals = clean_intervals(beats, sfreq=sfreq)
        if not stand_out:
            notes.append(
                f"{channel} holds no heartbeat: its peaks are no larger than those of noise, "
                "and its windows are left empty"
            )
        elif intervals.n_dropped > _MANY * beats.size:
            notes.append(
                f"{intervals.n_dropped} of {beats.size - 1} intervals between beats were dropped "
                f"({intervals.n_short} too short, {intervals.n_long} too long, "
                f"{intervals.n_jumps} off their neighbours)"
            )

        def compute(first: int, last: int) -> tuple[Array, Array]:
            gaps, start = _cut(self, signal.missing[0, first:last], sfreq)
            found = heart_features(
                beats, start + first / sfreq, self.length, sfreq=sfreq, features=self.features
            )
            empty = gaps.any(1, keepdims=True) | (not stand_out)
            return np.where(empty, np.nan, found.values), start

        return compute

    def _alone(
        self, signal: _Signal, sfreq: float, channel: str, notes: list[str]
    ) -> Callable[[int, int], tuple[Array, Array]]:
        """Features from the beats that are found in each window alone."""

        def compute(first: int, last: int) -> tuple[Array, Array]:
            windows, start = _cut(self, signal.data[:, first:last], sfreq)
            gaps = _cut(self, signal.missing[:, first:last], sfreq).data.any(-1)
            unknown = gaps | _is_still(windows)
            values = window_values("beats", windows, unknown, sfreq, beats=self.features)
            n_empty = int((np.isnan(values).all(1) & ~unknown[:, 0]).sum())
            if n_empty:
                notes.append(
                    f"{channel} holds too few beats in {n_empty} of {len(windows)} windows, or "
                    "peaks no larger than those of noise; these are left empty"
                )
            return values, start

        return compute

    def finish(self, values: Array) -> Array:
        """Features of all windows of a task: the values as they are."""
        return values

    def settled(self, values: Array) -> NDArray[np.bool_]:
        """Windows of a task (n_windows,) to keep: all."""
        return np.ones(len(values), bool)

    def recipe(self, channels: tuple[str, ...], needed: tuple[str, ...], sfreq: float) -> Recipe:
        """How these features are made."""
        return Recipe(
            "beats",
            sfreq,
            channels,
            self.length,
            self.overlap,
            filter="causal" if self.causal else None,
            band=BAND if self.causal else None,
            beats=tuple(self.features),
        )

    def names(self, channels: tuple[str, ...]) -> list[str]:
        """Names of the features."""
        return list(self.features)


#: How to get from a recording to features.
Extract = EEGFeatures | ECGFeatures


def window_values(
    kind: str,
    windows: Array,
    unknown: NDArray[np.bool_],
    sfreq: float,
    bands: Bands | None = None,
    beats: Sequence[str] = (),
) -> Array:
    """Features of windows (n_windows, n_channels, n_samples), or upper triangles of covariances.

    NaN for the channels that are `unknown` in a window (n_windows, n_channels), or lack samples.
    """
    if kind == "beats":
        known = ~unknown[:, 0]
        values = np.full((len(windows), len(beats)), np.nan)
        values[known] = features_of_windows(windows[known, 0], sfreq, beats).values
        return values
    if unknown.any():
        windows = np.where(unknown[..., None], np.nan, windows)
    if kind == "tangent":
        rows, columns = np.triu_indices(windows.shape[1])
        upper: Array = window_covariances(windows)[:, rows, columns]
        return upper
    relative, log = _OF_BANDS[kind]
    return BandPower(sfreq, bands, relative=relative, log=log).fit(windows).transform(windows)


def covariances_of(values: Array) -> Array:
    """Covariances (n_windows, n_channels, n_channels) from their upper triangles."""
    n_channels = math.isqrt(2 * values.shape[1])
    rows, columns = np.triu_indices(n_channels)
    covariances = np.empty((len(values), n_channels, n_channels))
    covariances[:, rows, columns] = covariances[:, columns, rows] = values
    return covariances


def _cut(extract: Extract, data: NDArray[Any], sfreq: float) -> Windows:
    """Windows of a segment (..., n_samples), as they are wanted."""
    cut = cut_windows(data, sfreq, length=extract.length, overlap=extract.overlap)
    # A stream does not know its end, to which the last window is moved.
    step = round(extract.length * sfreq) - round(extract.overlap * sfreq)
    moved = extract.causal and (data.shape[-1] - cut.data.shape[-1]) % step
    return Windows(cut.data[:-1], cut.start[:-1]) if moved else cut


def _is_still(windows: Array) -> NDArray[np.bool_]:
    """Whether a channel keeps one value in a window; (n_windows, n_channels)."""
    still: NDArray[np.bool_] = (windows == windows[..., :1]).all(-1)
    return still


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


def _read_signal(
    recording: Recording, channels: tuple[str, ...], sfreq: float, causal: bool
) -> _Signal:
    """Read channels, interpolate their gaps, and resample them to `sfreq`."""
    if causal and recording.sfreq != sfreq:
        raise ValueError(
            f"It has {recording.sfreq:g} samples a second, others have {sfreq:g}, and causal "
            "features are not resampled. Make one table for each sampling rate."
        )
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

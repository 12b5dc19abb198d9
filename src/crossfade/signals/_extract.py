"""Features of the windows of a recording, by a recipe."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array
from crossfade._validate import check_number
from crossfade.signals._causal import N_REFERENCE, CausalCleaner, RunningTangent
from crossfade.signals._labels import Segment
from crossfade.signals._variability import check_features, features_of_windows
from crossfade.signals.ecg import BAND, MIN_SFREQ
from crossfade.signals.eeg import (
    BANDS,
    BandPower,
    Bands,
    average_reference,
    band_pass,
    tangent_vectors,
    window_covariances,
)
from crossfade.signals.recordings import Recording
from crossfade.signals.windows import check_rate, cut_windows
from crossfade.tasks import Recipe

#: Band features of a window of EEG, and whether they are relative and logarithms.
_OF_BANDS = {
    "shares": (True, False),
    "powers": (False, False),
    "log-powers": (False, True),
    "clr": (True, True),
}
#: Kinds of features of a window of EEG.
KINDS = (*_OF_BANDS, "tangent")


class Rows(NamedTuple):
    """Features of the windows of one segment; NaN where they cannot be computed."""

    segment: Segment
    start: Array  # (n_windows,), in seconds from the beginning of the recording
    values: Array  # (n_windows, n_values)


def eeg_recipe(
    recording: Recording,
    kind: str = "shares",
    *,
    channels: Sequence[str] | None = None,
    bands: Bands | None = None,
    window: float = 2.5,
    overlap: float = 0.0,
    causal: bool = False,
) -> Recipe:
    """Recipe of the EEG features of a recording: by default of all channels on the scalp."""
    scalp = recording.scalp()
    own = tuple(channels or scalp)
    mine = recording.find(own)
    every = (*own, *(name for name in scalp if recording.find([name])[0] not in mine))
    averaged = every if len(every) > 1 else ()
    tangent = kind == "tangent"
    ends = (BANDS if bands is None else bands).items()
    return Recipe(
        kind,
        recording.sfreq,
        own,
        window,
        overlap,
        reference="average" if averaged else "none",
        averaged=averaged,
        filter="causal" if causal else "zero-phase",
        band=(0.5, 30.0),
        bands=() if tangent else tuple((name, *pair) for name, pair in ends),
        centre=None if not tangent else "past" if causal else "session",
    )


def ecg_recipe(
    recording: Recording,
    features: Sequence[str] = ("pnn20", "sdnn_ratio", "lf_hf"),
    *,
    channel: str | None = None,
    window: float = 15.0,
    overlap: float = 0.0,
) -> Recipe:
    """Recipe of the heart-rate variability of a recording, by default of its only ECG channel."""
    own = (channel or recording.ecg_channel(),)
    recording.find(own)
    beats = tuple(check_features(features))
    check_rate(recording.sfreq, MIN_SFREQ)
    check_number("window", window, 1.0)
    return Recipe(
        "beats", recording.sfreq, own, window, overlap, filter="causal", band=BAND, beats=beats
    )


def extract(
    recording: Recording, segments: Sequence[Segment], recipe: Recipe
) -> tuple[list[Rows], list[str]]:
    """Rows of each segment that holds a window, and notes; of tangent vectors, covariances."""
    if recording.sfreq != recipe.sfreq:
        raise ValueError(
            f"It has {recording.sfreq:g} samples a second; most files have {recipe.sfreq:g}. "
            "Make a table of its own, or resample it."
        )
    own, sfreq = slice(len(recipe.channels)), recipe.sfreq
    raw = recording.read(recipe.averaged or recipe.channels)
    raw[~np.isfinite(raw)] = np.nan
    cleaned = clean(raw, recipe)[own]
    raw = raw[own]
    notes = [
        f"{name} lacks {count} samples"
        for name, count in zip(recipe.channels, np.isnan(raw).sum(1), strict=True)
        if count
    ]
    notes += [
        f"{name} is flat"
        for name, still in zip(recipe.channels, _is_still(raw), strict=True)
        if still
    ]
    rows, short = [], Counter[str]()
    n_window = round(recipe.window * sfreq)
    step = n_window - round(recipe.overlap * sfreq)
    for segment in segments:
        times = (segment.start, segment.stop)
        first, last = (round(min(max(at * sfreq, 0), raw.shape[1])) for at in times)
        if last - first < n_window:
            short[segment.label] += 1
            continue
        size = {"length": recipe.window, "overlap": recipe.overlap}
        windows, start = cut_windows(cleaned[:, first:last], sfreq, **size)
        before = cut_windows(raw[:, first:last], sfreq, **size).data
        if recipe.filter == "causal" and (last - first - n_window) % step:
            # A stream does not know its end, to which the last window is moved.
            windows, start, before = windows[:-1], start[:-1], before[:-1]
        unknown = np.isnan(before).any(-1) | _is_still(before)
        rows.append(Rows(segment, start + first / sfreq, window_values(recipe, windows, unknown)))
    notes += [
        f"{count} segments of {label!r} are shorter than a window" for label, count in short.items()
    ]
    return rows, notes


def clean(raw: Array, recipe: Recipe) -> Array:
    """Referenced and filtered samples (n_channels, n_samples)."""
    if recipe.kind == "beats":
        return raw
    if recipe.filter == "causal":
        average = recipe.reference == "average"
        return CausalCleaner(len(raw), recipe.sfreq, recipe.band, average)(raw)
    data = _interpolated(raw)
    if recipe.reference == "average":
        data = average_reference(data)
    return data if recipe.band is None else band_pass(data, recipe.sfreq, *recipe.band)


def _is_still(windows: Array) -> NDArray[np.bool_]:
    """Whether a channel keeps one value; (..., n_channels) of (..., n_channels, n_samples)."""
    return (windows == windows[..., :1]).all(-1)


def _interpolated(data: Array) -> Array:
    """Straight lines over missing samples; zeros for a channel without any sample."""
    filled = data.copy()
    time = np.arange(data.shape[1])
    for row, gaps in zip(filled, np.isnan(data), strict=True):
        if gaps.any():
            row[gaps] = 0.0 if gaps.all() else np.interp(time[gaps], time[~gaps], row[~gaps])
    return filled


def window_values(recipe: Recipe, windows: Array, unknown: NDArray[np.bool_]) -> Array:
    """Values of windows (n_windows, n_channels, n_samples); NaN for channels that are `unknown`."""
    if unknown.any():
        windows = np.where(unknown[..., None], np.nan, windows)
    if recipe.kind == "beats":
        return features_of_windows(windows[:, 0], recipe.sfreq, recipe.beats)
    if recipe.kind == "tangent":
        rows, columns = np.triu_indices(windows.shape[1])
        return window_covariances(windows)[:, rows, columns]
    relative, log = _OF_BANDS[recipe.kind]
    bands = {name: (low, high) for name, low, high in recipe.bands}
    return BandPower(recipe.sfreq, bands, relative=relative, log=log).fit_transform(windows)


def covariances_of(values: Array) -> Array:
    """Covariances (n_windows, n_channels, n_channels) from their upper triangles."""
    n_channels = math.isqrt(2 * values.shape[1])
    rows, columns = np.triu_indices(n_channels)
    covariances = np.empty((len(values), n_channels, n_channels))
    covariances[:, rows, columns] = covariances[:, columns, rows] = values
    return covariances


def finish(values: Array, recipe: Recipe) -> tuple[Array, NDArray[np.bool_]]:
    """Features of all windows of a task from their values, and which windows (n_windows,) count."""
    if recipe.centre is None:
        return values, np.ones(len(values), bool)
    if recipe.centre == "session":
        return tangent_vectors(covariances_of(values)), np.ones(len(values), bool)
    vectors = np.stack([*map(RunningTangent(), covariances_of(values))])
    return vectors, np.cumsum(np.isfinite(values).all(1)) > N_REFERENCE

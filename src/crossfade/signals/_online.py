"""Features of a running stream, window by window, by the code for recordings."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from crossfade.signals._causal import Array, CausalCleaner, RunningTangent
from crossfade.signals._extract import covariances_of, window_values
from crossfade.tasks import Recipe


class Window(NamedTuple):
    """A window of a stream; times are in seconds, and `stop` is that of the sample after it."""

    start: float
    stop: float
    features: Array  # (n_features,), NaN where they cannot be computed
    quality: Mapping[str, str]  # of each channel: "good", "flat" or "missing"


class OnlineFeatures:
    """Features of a stream that comes in chunks of any size, as ``features --causal`` has them."""

    def __init__(self, recipe: Recipe, *, filtered: bool = False) -> None:
        _refuse_future(recipe)
        self.recipe = recipe
        average = recipe.reference == "average" and not filtered
        #: Channels of the samples: first those of the features, then others of the reference.
        self.channels = tuple(dict.fromkeys(recipe.channels + recipe.averaged * average))
        # Beats are filtered and found in each window alone.
        band = None if filtered or recipe.kind == "beats" else recipe.band
        self._clean = CausalCleaner(len(self.channels), recipe.sfreq, band, average)
        self._length = round(recipe.window * recipe.sfreq)
        self._step = self._length - round(recipe.overlap * recipe.sfreq)
        self._tangent = RunningTangent()
        self.reset()

    def reset(self, at: float = 0.0) -> None:
        """Start anew after a gap, at the time of the next sample; the tangent mean is kept."""
        self._clean.reset()
        self._origin = at
        self._n_seen = 0
        self._new: list[Array] = []
        self.align()

    def align(self) -> None:
        """Let the next window begin with the next sample; the filter goes on."""
        if self._new:
            self._cleaned()
        self._first = self._n_seen
        self._raw = self._data = np.empty((len(self.channels), 0))

    def push(self, samples: ArrayLike) -> list[Window]:
        """Windows that are complete with these samples (n_channels, n_samples)."""
        raw = np.array(samples, np.float64, ndmin=2)
        if raw.ndim != 2 or len(raw) != len(self.channels):
            raise ValueError(
                f"samples must have the rows {', '.join(self.channels)}; got shape {raw.shape}."
            )
        raw[~np.isfinite(raw)] = np.nan
        self._new.append(raw)
        self._n_seen += raw.shape[1]
        if self._n_seen - self._first < self._length:
            return []
        # Filtered together, because a call for each chunk of 50 ms costs more than the filter.
        raw, clean = self._cleaned()
        raw = np.concatenate([self._raw, raw], axis=1)
        data = np.concatenate([self._data, clean], axis=1)
        found = []
        while raw.shape[1] >= self._length:
            found.append(self._window(raw[:, : self._length], data[:, : self._length]))
            raw, data = raw[:, self._step :], data[:, self._step :]
            self._first += self._step
        self._raw, self._data = raw.copy(), data.copy()
        return found

    def _cleaned(self) -> tuple[Array, Array]:
        """Samples that have come since the last window, before and after they are cleaned."""
        raw = np.concatenate(self._new, axis=1)
        self._new = []
        return raw, self._clean(raw)

    def _window(self, raw: Array, clean: Array) -> Window:
        """Features of a window, from its samples before and after they were cleaned."""
        missing = np.isnan(raw).any(1)
        flat = ~missing & (raw == raw[:, :1]).all(1)
        recipe, own = self.recipe, slice(len(self.recipe.channels))
        features = window_values(recipe, clean[None, own], (missing | flat)[None, own])[0]
        if recipe.kind == "tangent":
            features = self._tangent(covariances_of(features[None])[0])
        words = np.where(missing, "missing", np.where(flat, "flat", "good")).tolist()
        start, stop = (
            self._origin + at / recipe.sfreq for at in (self._first, self._first + self._length)
        )
        return Window(start, stop, features, dict(zip(self.channels, words, strict=True)))


class RawWindows:
    """Features of whole windows, filtered with the past if one starts where the last ended."""

    def __init__(self, recipe: Recipe) -> None:
        self._online = OnlineFeatures(recipe)
        self._size = round(recipe.window * recipe.sfreq), round(recipe.overlap * recipe.sfreq)
        #: Start of a window that continues the last one.
        self.next: float | None = None

    def then(self, window: Array, start: float | None) -> tuple[Self, Array]:
        """State after a window (n_channels, n_samples), and its features (d,); `self` stays."""
        (length, overlap), recipe = self._size, self._online.recipe
        channels = self._online.channels
        if window.shape != (len(channels), length):
            raise ValueError(
                f"A raw window must have shape ({len(channels)}, {length}), {recipe.window:g} s of "
                f"{', '.join(channels)} at {recipe.sfreq:g} Hz; got {window.shape}."
            )
        after = deepcopy(self)
        begins = 0.0 if start is None else start
        if self.next is None or start is None or abs(start - self.next) * recipe.sfreq > 0.5:
            after._online.reset(begins)
            overlap = 0
        [found] = after._online.push(window[:, overlap:])
        after.next = begins + (length - self._size[1]) / recipe.sfreq
        return after, found.features


def _refuse_future(recipe: Recipe) -> None:
    """Refuse a recipe whose features need samples that have not come yet."""
    if (
        recipe.filter == "zero-phase"
        or recipe.centre == "session"
        or (recipe.kind == "beats" and recipe.filter != "causal")
    ):
        raise ValueError(
            "These features need samples after the window, which a running stream does not have. "
            "Make them with `crossfade features ... --causal`, and build the prior from that table."
        )
    if recipe.reference == "average" and not recipe.averaged:
        raise ValueError("The recipe must name the channels of its average reference.")

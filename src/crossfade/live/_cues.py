"""Cues, and the times at which labels hold. Samples are counted from the start of the session."""

from __future__ import annotations

import math
from bisect import bisect_right

from crossfade.tasks import Recipe

#: Seconds for which a cue is announced.
READY = 3.0


class LabelTimeline:
    """Which label holds from which sample on."""

    def __init__(self) -> None:
        self._starts: list[float] = [-math.inf]
        self._labels: list[str | None] = [None]

    @property
    def now(self) -> str | None:
        """Label of the next samples."""
        return self._labels[-1]

    def change(self, start: float, label: str | None) -> None:
        """Let a label hold from a sample on; a marker may come late."""
        at = bisect_right(self._starts, start)
        self._starts.insert(at, start)
        self._labels.insert(at, label)

    def only(self, start: float, stop: float) -> tuple[str | None, bool]:
        """Label of the samples from `start` to `stop`, and whether it changes within them."""
        at = bisect_right(self._starts, start)
        return self._labels[at - 1], at < len(self._starts) and self._starts[at] < stop

    def forget(self, start: float) -> None:
        """Forget changes that matter only to samples before this one."""
        at = bisect_right(self._starts, start) - 1
        del self._starts[:at], self._labels[:at]


class StreamClock:
    """Time stamps of samples, on the clock of their stream."""

    def __init__(self, rate: float) -> None:
        self._rate, self.known = rate, False
        self._stop, self._stamp = 0, 0.0

    def set(self, stop: int, stamp: float) -> None:
        """Take this for the time stamp of the sample before `stop`."""
        self._stop, self._stamp, self.known = stop, stamp, True

    def time_of(self, stop: int) -> float:
        """Time stamp of the sample before `stop`."""
        return self._stamp + (stop - self._stop) / self._rate

    def index_of(self, stamp: float) -> int:
        """Index of the sample with this time stamp."""
        return self._stop - 1 + round((stamp - self._stamp) * self._rate)


class Cue:
    """The current cue, and how much of it is left."""

    def __init__(self, per_cue: int, rate: float, recipe: Recipe | None) -> None:
        self.word, self.until = "", 0.0
        self._per_cue, self._rate, self._in_lines = per_cue, rate, recipe is None
        self._begun = self._taken = 0
        self._seconds = 0.0
        if recipe is not None:
            self._seconds = recipe.window + (per_cue - 1) * (recipe.window - recipe.overlap)

    def announce(self, word: str, seen: int) -> None:
        """Announce a class."""
        self.word = word
        # The first line after the announcement was measured before it.
        self.until = seen + (1 if self._in_lines else READY * self._rate)

    def begin(self, seen: int) -> None:
        """Begin what was announced."""
        self._begun, self._taken = seen, 0

    def take(self) -> bool:
        """Count a window; return whether it was the last."""
        self._taken += 1
        return self._taken >= self._per_cue

    def left(self, phase: str, seen: int) -> tuple[float, float]:
        """Rest and whole length of the cue or its announcement, in seconds or windows."""
        if phase == "ready":
            return (self.until - seen) / self._rate, READY
        if phase != "cue":
            return 0.0, 0.0
        if self._in_lines:
            return float(self._per_cue - self._taken), float(self._per_cue)
        return max(0.0, self._seconds - (seen - self._begun) / self._rate), self._seconds

"""Which label holds from which sample of a stream on, when it was taken, and the cue."""

from __future__ import annotations

import math
from bisect import bisect_right

from crossfade.tasks import Recipe

#: Seconds for which a cue is announced.
READY = 3.0


class Labels:
    """Changes of the label, by the place of the first sample that has the new one."""

    def __init__(self) -> None:
        self._places: list[float] = [-math.inf]
        self._names: list[str | None] = [None]

    @property
    def now(self) -> str | None:
        """Label of the samples to come."""
        return self._names[-1]

    def change(self, place: float, name: str | None) -> None:
        """Let samples have this label from a place on; a marker may be late."""
        at = bisect_right(self._places, place)
        self._places.insert(at, place)
        self._names.insert(at, name)

    def only(self, start: float, stop: float) -> tuple[str | None, bool]:
        """Label of the samples from `start` to `stop`, and whether there was a change within."""
        at = bisect_right(self._places, start)
        return self._names[at - 1], at < len(self._places) and self._places[at] < stop

    def forget(self, place: float) -> None:
        """Forget changes of which no sample from this place on depends."""
        at = bisect_right(self._places, place) - 1
        del self._places[:at], self._names[:at]


class Stamps:
    """When samples were taken, on the clock of their stream."""

    def __init__(self, rate: float) -> None:
        self._rate, self.known = rate, False
        self._place, self._stamp = 0, 0.0

    def hear(self, stop: int, stamp: float) -> None:
        """The sample before `stop` has this time stamp."""
        self._place, self._stamp, self.known = stop, stamp, True

    def of(self, stop: int) -> float:
        """Time stamp of the sample before `stop`."""
        return self._stamp + (stop - self._place) / self._rate

    def place_of(self, stamp: float) -> int:
        """Place of the sample with this time stamp."""
        return self._place - 1 + round((stamp - self._stamp) * self._rate)


class Cue:
    """What the person is asked for, and how much of it is left, in samples or lines."""

    def __init__(self, per_cue: int, rate: float, recipe: Recipe | None) -> None:
        self.word, self.until = "", 0.0
        self._per_cue, self._rate, self._in_lines = per_cue, rate, recipe is None
        self._begun = self._taken = 0
        self._seconds = 0.0
        if recipe is not None:
            self._seconds = recipe.window + (per_cue - 1) * (recipe.window - recipe.overlap)

    def announce(self, word: str, seen: int) -> None:
        """Ask for a class soon."""
        self.word = word
        # The first line after the announcement began before the cue.
        self.until = seen + (1 if self._in_lines else READY * self._rate)

    def begin(self, seen: int) -> None:
        """Ask for it now."""
        self._begun, self._taken = seen, 0

    def take(self) -> bool:
        """Count a window; whether it was the last."""
        self._taken += 1
        return self._taken >= self._per_cue

    def left(self, phase: str, seen: int) -> tuple[float, float]:
        """What is left of a cue or its announcement, and of how much: seconds, or windows."""
        if phase == "ready":
            return (self.until - seen) / self._rate, READY
        if phase != "cue":
            return 0.0, 0.0
        if self._in_lines:
            return float(self._per_cue - self._taken), float(self._per_cue)
        return max(0.0, self._seconds - (seen - self._begun) / self._rate), self._seconds

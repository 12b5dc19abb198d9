"""Which label holds from which sample of a stream on."""

from __future__ import annotations

import math
from bisect import bisect_right


class Labels:
    """Changes of the label, by the place of the first sample that has the new one."""

    def __init__(self) -> None:
        self._places: list[float] = [-math.inf]
        self._names: list[str | None] = [None]

    @property
    def now(self) -> str | None:
        """Label of the samples to come."""
        return self._names[-1]

    @property
    def since(self) -> float:
        """Place of the last change."""
        return self._places[-1]

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

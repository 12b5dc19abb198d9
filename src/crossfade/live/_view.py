"""View of a session for the page: notes, the state and its course, and the signal."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from crossfade._typing import Array
from crossfade.live._records import LiveState

#: Samples of each channel that the page draws: of a second, and of one picture at most.
_DRAWN, _AT_ONCE = 125, 100
#: Notes that the page keeps.
_NOTES = 30
#: What is drawn against the number of labelled windows.
_COURSE = ("alpha", "accuracy", "lower", "upper")


class View:
    """Notes of a session, its state, and a point of the course for each labelled window."""

    def __init__(self) -> None:
        self.notes: deque[dict[str, Any]] = deque(maxlen=_NOTES)
        self.course: list[dict[str, Any]] = []
        self.known: dict[str, Any] = {}

    def note(self, text: str, at: float) -> None:
        """Add a note, at this second of the stream."""
        if self.notes and self.notes[-1]["text"] == text:
            self.notes[-1]["times"] += 1
        else:
            self.notes.append({"text": text, "times": 1, "at": round(at, 1)})

    def learn(self, state: LiveState) -> None:
        """Show a state."""
        n = sum(state.counts.values())
        point = {"n": n, **{name: _number(getattr(state, name)) for name in _COURSE}}
        while self.course and self.course[-1]["n"] >= n:
            self.course.pop()
        self.course.append(point)
        self.known = {
            "counts": state.counts,
            **point,
            "gains": {name: _number(gain) for name, gain in state.gains.items()},
            "advice": state.advice._asdict(),
            "left_out": state.n_left_out,
            "remarks": list(state.notes),
        }

    def fields(self) -> dict[str, Any]:
        """Fields for the page: the state, the last point of the course, and the notes."""
        return {**self.known, "point": self.course[-1], "notes": list(self.notes)}


class Signal:
    """The samples of the last second of each channel, and those to be drawn."""

    def __init__(self, channels: Sequence[str], rate: float) -> None:
        self._channels, self._rate = tuple(channels), rate
        self._drawn: list[Array] = []
        self._recent = np.empty((len(self._channels), 0))
        # Whether samples have stopped.
        self._stopped = False

    def lose(self) -> None:
        """Samples have stopped, so all channels are missing."""
        self._stopped = True

    def keep(self, samples: Array) -> None:
        """Add samples (n_channels, n)."""
        self._drawn.append(samples)
        self._stopped = False
        self._recent = np.concatenate([self._recent, samples], axis=1)[:, -math.ceil(self._rate) :]

    def picture(self) -> dict[str, Any]:
        """Samples since the last picture, and the quality of each channel."""
        if not self._drawn:
            gone = [{"state": "missing"} for _ in self._channels]
            return {"quality": gone} if self._stopped else {}
        drawn, self._drawn = np.concatenate(self._drawn, axis=1), []
        n = drawn.shape[1]
        skip = max(1, round(self._rate / _DRAWN), math.ceil(n / _AT_ONCE))
        shown = np.round(drawn[:, ::skip], 2).tolist()
        return {
            # JSON has no number for a missing sample.
            "samples": [[None if math.isnan(one) else one for one in row] for row in shown],
            "seconds": round(n / self._rate, 4),
            "quality": self._quality(),
        }

    def _quality(self) -> list[dict[str, str]]:
        """State of each channel over the last second: good, flat or missing."""
        recent = self._recent
        missing = np.array([not np.isfinite(row).all() for row in recent], dtype=bool)
        recent = np.where(missing[:, None], 0.0, recent)
        flat = np.ptp(recent, axis=1) <= 1e-9 * np.maximum(1.0, np.abs(recent).max(axis=1))
        states = np.select([missing, flat], ["missing", "flat"], "good")
        return [{"state": str(state)} for state in states]


def _number(value: float) -> float | None:
    """A number, or None for NaN and infinity, which JSON does not have."""
    return round(float(value), 4) if math.isfinite(value) else None

"""What the page shows of a session: sentences, the course of what is known, and the signal."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from crossfade._typing import Array
from crossfade.live._calibration import LiveCalibration
from crossfade.live._records import LiveState

#: Samples of each channel that the page draws: of a second, and of one picture at most.
_DRAWN, _AT_ONCE = 125, 100
#: Sentences that the page keeps, and points of the course that it draws of windows from before.
_NOTES, _POINTS = 30, 100
#: What is drawn against the number of labelled windows.
_COURSE = ("alpha", "accuracy", "lower", "upper")


class View:
    """Sentences of a session, what is known now, and a point for each labelled window."""

    def __init__(self) -> None:
        self.notes: deque[dict[str, Any]] = deque(maxlen=_NOTES)
        self.course: list[dict[str, Any]] = []
        self.known: dict[str, Any] = {}

    def note(self, text: str, at: float) -> None:
        """Say something, at so many seconds of the stream."""
        if self.notes and self.notes[-1]["text"] == text:
            self.notes[-1]["times"] += 1
        else:
            self.notes.append({"text": text, "times": 1, "at": round(at, 1)})

    def recall(self, live: LiveCalibration) -> None:
        """Show what is known, and the course and the notes of windows from before."""
        for state in live._past(_POINTS):
            self.learn(state)
        for window in live.windows:
            if window.note:
                self.note(f"Left out: {window.note}", window.start or 0.0)
        if live.windows:
            self.note(f"The session goes on, with {len(live.windows)} windows from before.", 0.0)
        self.learn(live.state())

    def learn(self, state: LiveState) -> None:
        """Show what is known now."""
        n = sum(state.counts.values())
        point = {
            "n": n,
            **{name: _number(getattr(state, name)) for name in _COURSE},
        }
        while self.course and self.course[-1]["n"] >= n:
            self.course.pop()
        self.course.append(point)
        self.known = {
            "counts": state.counts,
            **point,
            "gains": {name: _number(gain) for name, gain in state.gains.items()},
            "advice": {
                "stop": state.advice.stop,
                "next": state.advice.next,
                "reason": state.advice.reason,
            },
            "left_out": state.n_left_out,
            "remarks": list(state.notes),
        }

    def fields(self) -> dict[str, Any]:
        """All of it, as the page has it, but the points before the last."""
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
        """No more samples, for now: all channels are missing."""
        self._stopped = True

    def keep(self, samples: Array) -> None:
        """Samples (n_channels, n) that came."""
        self._drawn.append(samples)
        self._stopped = False
        self._recent = np.concatenate([self._recent, samples], axis=1)[:, -math.ceil(self._rate) :]

    def picture(self) -> dict[str, Any]:
        """What came since the last picture, and the quality of each channel."""
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
        """What is wrong with each channel over the last second."""
        recent = self._recent
        missing = np.array([not np.isfinite(row).all() for row in recent], dtype=bool)
        recent = np.where(missing[:, None], 0.0, recent)
        spread = np.std(recent, axis=1)
        flat = np.ptp(recent, axis=1) <= 1e-9 * np.maximum(1.0, np.abs(recent).max(axis=1))
        flat &= ~missing
        alive = ~flat & ~missing
        middle = float(np.median(spread[alive])) if alive.any() else 0.0
        loud = (spread > 5.0 * middle) & (middle > 0.0)
        states = np.select([missing, flat, loud], ["missing", "flat", "loud"], "good")
        return [{"state": str(state)} for state in states]


def _number(value: float) -> float | None:
    """A number that JSON has a word for."""
    return round(float(value), 4) if math.isfinite(value) else None

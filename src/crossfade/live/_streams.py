"""Events of a stream in the order of time, and streams that play a recording.

Gaps below 0.1 s cannot be told from the jitter of time stamps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from crossfade._typing import Array

#: Seconds for which a stream waits at most before it returns what there is.
WAIT = 0.02


class Chunk(NamedTuple):
    """Samples (n_channels, n), the time stamp of the last, and the gap before with its seconds."""

    samples: Array
    stamp: float
    gap: str = ""
    missing: float = 0.0


class Marker(NamedTuple):
    """Text of a marker, and its time on the clock of the samples."""

    text: str
    stamp: float


class Row(NamedTuple):
    """Features of one window, of shape (n_features,), and its label if it has one."""

    features: Array
    label: str | None


class Note(NamedTuple):
    """A sentence for the page."""

    text: str


class Lost(NamedTuple):
    """Samples have stopped, for now."""

    text: str


class Back(NamedTuple):
    """Samples come again."""

    text: str


class Ended(NamedTuple):
    """The stream is over."""

    text: str


Event = Chunk | Marker | Row | Note | Lost | Back | Ended


class Stream:
    """Source of a session; lines of features have no rate and no channels."""

    name: str
    sfreq: float | None = None
    channels: tuple[str, ...] = ()

    def read(self) -> Iterable[Event]:
        """Events since the last call; waits a few hundredths of a second if there are none."""
        return ()

    def ask(self, label: str | None) -> None:
        """Tell which class the cue asks for; only the person of the demo listens."""

    def close(self) -> None:
        """Close what is open."""


class _Played(Stream):
    """Samples that come in real time, or `speed` times faster."""

    def __init__(
        self,
        name: str,
        sfreq: float,
        channels: Sequence[str],
        speed: float,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self.name, self.channels = name, tuple(channels)
        self.sfreq = sfreq
        self._rate, self._speed, self._clock, self._sleep = sfreq, speed, clock, sleep
        self._begun: float | None = None
        self._sent = 0

    def _due(self) -> int:
        """Number of samples to send now, at most those of a second; waits if there are few."""
        if self._late() < max(1, int(WAIT * self._speed * self._rate)):
            self._sleep(WAIT)
        return min(self._late(), max(1, int(self._rate)))

    def _late(self) -> int:
        """Number of samples that are due and were not sent."""
        now = self._clock()
        self._begun = now if self._begun is None else self._begun
        return int((now - self._begun) * self._speed * self._rate) - self._sent


class Replay(_Played):
    """A recording; its annotations are markers."""

    def __init__(
        self,
        name: str,
        samples: Array,
        sfreq: float,
        channels: Sequence[str],
        annotations: Sequence[Any] = (),
        *,
        speed: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(name, sfreq, channels, speed, clock, sleep)
        self._samples = samples
        self._marks = sorted(_marks(annotations, samples.shape[1] / sfreq), key=lambda m: m.stamp)

    def read(self) -> Iterator[Event]:
        """Samples and markers that are due."""
        first = self._sent
        if first >= self._samples.shape[1]:
            self._sleep(WAIT)
            yield Ended(f"The recording {self.name} has ended.")
            return
        stop = min(first + self._due(), self._samples.shape[1])
        if stop <= first:
            return
        self._sent = stop
        stamp = (stop - 1) / self._rate
        while self._marks and self._marks[0].stamp <= stamp:
            yield self._marks.pop(0)
        yield Chunk(self._samples[:, first:stop], stamp)


def _marks(annotations: Sequence[Any], end: float) -> Iterator[Marker]:
    """Marker at the start of each annotation, and an empty one at its end if no other starts."""
    starts = {one.start for one in annotations}
    for one in annotations:
        yield Marker(one.text, one.start)
        stop = one.start + one.duration
        if one.duration > 0.0 and stop < end and stop not in starts:
            yield Marker("", stop)


class Rehearsal(_Played):
    """A recorded person who does what the cue says: no sample is played twice for a cue."""

    def __init__(
        self,
        name: str,
        segments: Mapping[str, Array],
        sfreq: float,
        channels: Sequence[str],
        *,
        speed: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(name, sfreq, channels, speed, clock, sleep)
        self._segments = dict(segments)
        # How much of each class was played; None is what is played while nothing is asked.
        self._at: dict[str | None, int] = {None: 0, **dict.fromkeys(segments, 0)}
        self._label: str | None = None
        self._gap = self._end = ""

    def ask(self, label: str | None) -> None:
        """Play another class from now on."""
        if label != self._label and label in self._at:
            self._label, self._gap = label, "The recorded person turns to the next cue."

    def read(self) -> Iterator[Event]:
        """Samples that are due, of the class that was asked for."""
        due = self._due()
        if due < 1:
            return
        label = self._label
        segment = self._segments[next(iter(self._segments)) if label is None else label]
        if label is not None and self._at[label] >= segment.shape[1]:
            self._end = self._end or (
                f"The recording of {label!r} is at its end, so the demo ends here."
            )
        if self._end:
            # The demo ends for all classes.
            self._sleep(WAIT)
            yield Ended(self._end)
            return
        at = self._at[label] % segment.shape[1]
        stop = min(at + due, segment.shape[1])
        self._at[label] = stop
        self._sent += stop - at
        gap, self._gap = self._gap, ""
        yield Chunk(segment[:, at:stop], (self._sent - 1) / self._rate, gap)

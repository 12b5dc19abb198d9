"""Where samples come from: a recording played again, or lines of features; `_lsl` has the third.

A stream hands over events in the order of time: chunks of samples, markers, rows of features, and
notes for the page. Samples that do not join those before them say why in ``Chunk.gap``. Gaps below
0.1 s cannot be told from the jitter of time stamps. A stream that stops says `Lost` once, and
`Back` before the first samples that come again.
"""

from __future__ import annotations

import csv
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from crossfade._files import json_of
from crossfade.signals import Annotation

Array = NDArray[np.float64]

#: Seconds for which a stream waits at most before it returns what there is.
WAIT = 0.02
#: Lines of features that wait for the session, and bytes of the longest.
_HELD_LINES, _LONGEST = 64, 1 << 20


class Chunk(NamedTuple):
    """Samples of shape (n_channels, n), when the last was taken, and why they join no others.

    `missing` are the seconds of samples that were lost before them, as far as that is known.
    """

    samples: Array
    stamp: float
    gap: str = ""
    missing: float = 0.0


class Marker(NamedTuple):
    """What a marker says, and when, on the clock of the samples."""

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
    """Samples do not come any more, for now."""

    text: str


class Back(NamedTuple):
    """Samples come again."""

    text: str


class Ended(NamedTuple):
    """Nothing comes after this."""

    text: str


Event = Chunk | Marker | Row | Note | Lost | Back | Ended


class Stream(Protocol):
    """What a session reads from; lines of features have no rate and no channels."""

    name: str
    sfreq: float | None
    channels: tuple[str, ...]

    def read(self) -> Iterable[Event]:
        """What has arrived; waits a few hundredths of a second if there is nothing."""
        ...

    def ask(self, label: str | None) -> None:
        """Hear which class the cue asks for; None asks for nothing."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class Windows(Protocol):
    """What turns samples into windows and their features, as `OnlineFeatures` does."""

    @property
    def recipe(self) -> Any:
        """How features are made."""
        ...

    @property
    def channels(self) -> tuple[str, ...]:
        """Channels that it wants, in this order."""
        ...

    def push(self, samples: Array) -> Any:
        """Windows that these samples complete."""
        ...

    def reset(self, at: float) -> None:
        """Begin anew: the next sample is taken at this time, and does not join those before."""
        ...

    def align(self) -> None:
        """Begin the next window with the next sample."""
        ...


# -- recordings, played again ---------------------------------------------------------------------


class Replay:
    """Samples of a recording in real time, or `speed` times faster; annotations are markers."""

    def __init__(
        self,
        name: str,
        samples: Array,
        sfreq: float,
        channels: Sequence[str],
        annotations: Sequence[Annotation] = (),
        *,
        speed: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name, self.channels = name, tuple(channels)
        self.sfreq: float | None = sfreq
        self._samples, self._rate, self._speed = samples, sfreq, speed
        self._clock, self._sleep = clock, sleep
        self._marks = sorted(_marks(annotations, samples.shape[1] / sfreq), key=lambda m: m.stamp)
        self._begun: float | None = None
        self._at = 0

    def _due(self) -> int:
        """Number of samples that time has come for; waits for as many as come while it waits."""
        now = self._clock()
        if self._begun is None:
            self._begun = now
        due = int((now - self._begun) * self._speed * self._rate)
        if due < self._at + max(1, int(WAIT * self._speed * self._rate)):
            self._sleep(WAIT)
            due = int((self._clock() - self._begun) * self._speed * self._rate)
        return due

    def read(self) -> Iterator[Event]:
        """What is due by now."""
        first = self._at
        if first >= self._samples.shape[1]:
            yield Ended(f"The recording {self.name} has ended.")
            self._sleep(WAIT)
            return
        # No more than a second at once, so that commands are heard however fast it is played.
        most = min(first + max(1, int(self._rate)), self._samples.shape[1])
        stop = min(self._due(), most)
        if stop <= first:
            return
        self._at = stop
        stamp = (stop - 1) / self._rate
        while self._marks and self._marks[0].stamp <= stamp:
            yield self._marks.pop(0)
        yield Chunk(self._samples[:, first:stop], stamp)

    def ask(self, label: str | None) -> None:
        """A recording cannot be asked."""

    def close(self) -> None:
        """Nothing is open."""


def _marks(annotations: Sequence[Annotation], end: float) -> Iterator[Marker]:
    """Marker at the beginning of each annotation, and an empty one where it ends in silence."""
    starts = {one.start for one in annotations}
    for one in annotations:
        yield Marker(one.text, one.start)
        stop = one.start + one.duration
        if one.duration > 0.0 and stop < end and stop not in starts:
            yield Marker("", stop)


class Rehearsal:
    """A recorded person who does what the cue says: plays the segments of the class asked for.

    No sample is played twice for a cue. While nothing is asked, the beginning of the first segment
    is played over and over, and counts as not played.
    """

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
        self.name, self.channels = name, tuple(channels)
        self.sfreq: float | None = sfreq
        self._segments, self._rate, self._speed = dict(segments), sfreq, speed
        self._clock, self._sleep = clock, sleep
        self._at = dict.fromkeys(segments, 0)
        self._label: str | None = None
        self._first, self._idle = next(iter(segments)), 0
        self._begun: float | None = None
        self._sent = 0
        self._changed = self._end = ""

    def ask(self, label: str | None) -> None:
        """Do something else from now on."""
        if label != self._label and (label is None or label in self._segments):
            self._label, self._changed = label, "The recorded person turns to the next cue."

    def read(self) -> Iterator[Event]:
        """What is due by now, of the class that was asked for."""
        now = self._clock()
        if self._begun is None:
            self._begun = now
        due = int((now - self._begun) * self._speed * self._rate) - self._sent
        if due < max(1, int(WAIT * self._speed * self._rate)):
            self._sleep(WAIT)
            return
        segment = self._segments[self._label or self._first]
        at = self._idle if self._label is None else self._at[self._label]
        if at >= segment.shape[1] and self._label is not None and not self._end:
            self._end = f"The recording of {self._label!r} is at its end, so the demo ends here."
        if self._end:
            # Whatever is asked later, and of which class.
            yield Ended(self._end)
            self._sleep(WAIT)
            return
        at %= segment.shape[1]
        # No more than a second at once, so that a cue is heard in time.
        stop = min(at + due, at + int(self._rate), segment.shape[1])
        if self._label is None:
            self._idle = stop
        else:
            self._at[self._label] = stop
        self._sent += stop - at
        gap, self._changed = self._changed, ""
        yield Chunk(segment[:, at:stop], (self._sent - 1) / self._rate, gap)

    def close(self) -> None:
        """Nothing is open."""


# -- features, one line for each window ------------------------------------------------------------


class FeatureLines:
    """Windows as lines of text: CSV with a header, or one JSON object or list a line.

    `read` gives the next bytes, few or many, and none at the end. A thread of its own waits for
    them, and for the session where lines come faster than that takes them.
    """

    sfreq: float | None = None
    channels: tuple[str, ...] = ()

    def __init__(
        self,
        name: str,
        read: Callable[[int], bytes | None],
        feature_names: Sequence[str] | None,
        n: int,
    ) -> None:
        self.name = name
        self._names, self._n = None if feature_names is None else list(feature_names), n
        self._header: list[str] | None = None
        self._events: queue.Queue[Event] = queue.Queue(maxsize=_HELD_LINES)
        # Reading a pipe cannot be interrupted; a daemon does not hold up the end.
        threading.Thread(target=self._run, args=(read,), daemon=True).start()

    def _run(self, read: Callable[[int], bytes | None]) -> None:
        end = f"There are no more lines in {self.name}."
        try:
            for number, line in enumerate(_lines(read), 1):
                event = self._event(number, line)
                if event is not None:
                    self._events.put(event)
        except (OSError, ValueError) as reason:
            end = f"{self.name} cannot be read any further: {reason}."
        self._events.put(Ended(end))

    def _event(self, number: int, line: bytes | None) -> Event | None:
        """What a line says; None for one that is empty, or the header."""
        try:
            if line is None:
                raise ValueError(f"it is longer than {_LONGEST} bytes.")
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            if not text:
                return None
            if text[0] in "{[":
                return self._row(json_of(text.encode()))
            cells = next(csv.reader([text], strict=True))
            if self._header is None:
                header = [cell.strip() for cell in cells]
                for name in self._names or ():
                    if name not in header:
                        raise ValueError(f"it is no header with the feature {name} of the prior.")
                self._header = header
                return None
            if len(cells) != len(self._header):
                raise ValueError(f"it has {len(cells)} cells, and the header {len(self._header)}.")
            return self._row(dict(zip(self._header, cells, strict=True)))
        except UnicodeDecodeError:
            reason = "it is no text in UTF-8."
        except (ValueError, TypeError, OverflowError, csv.Error) as wrong:
            reason = str(wrong)
        return Note(f"Line {number} is left out: {reason}")

    def _row(self, given: Any) -> Row:
        """One window; the order of named features does not matter."""
        label = None
        if isinstance(given, dict):
            label = given.pop("label", None)
            given.pop("start", None)
            given = given.get("features", given)
        if isinstance(given, dict):
            names = self._names if self._names is not None else list(given)
            missing = [name for name in names if name not in given]
            if missing:
                raise ValueError(f"the feature {missing[0]} of the prior is missing.")
            given = [given[name] for name in names]
        if not isinstance(given, list):
            raise ValueError(f"features are a list of {self._n} numbers.")
        values = np.array([float(one) for one in given])
        if values.shape != (self._n,):
            raise ValueError(f"it has {len(values)} features, and the prior {self._n}.")
        if not np.isfinite(values).all():
            raise ValueError("a feature is no finite number.")
        return Row(values, None if label in (None, "") else str(label))

    def read(self) -> Iterator[Event]:
        """The next line, so that commands are heard between two of them."""
        with suppress(queue.Empty):
            yield self._events.get(timeout=WAIT)

    def ask(self, label: str | None) -> None:
        """Cues are for people."""

    def close(self) -> None:
        """Nothing is open."""


def _lines(read: Callable[[int], bytes | None]) -> Iterator[bytes | None]:
    """Lines of what is read, without their ends; None for one that is too long to be held."""
    held, is_long = b"", False
    while part := read(1 << 16):
        *whole, rest = part.split(b"\n")
        for line in whole:
            line, held = held + line, b""
            yield None if is_long or len(line) > _LONGEST else line
            is_long = False
        held += rest
        if len(held) > _LONGEST:
            held, is_long = b"", True
    if held or is_long:
        yield None if is_long else held

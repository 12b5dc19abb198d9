"""A session: windows from a stream, and labels from cues, keys or markers.

A window has the label of the moment if no other began or ended within it; one that is cut by a gap,
or holds a flat channel, is kept on record with the reason and left out. Phases:

============ =======================================================================================
waiting      before the beginning
ready        the next cue is announced
cue          the person does what the cue says, for so many windows
recording    labels come from elsewhere: keys, markers, or the lines of features themselves
lost         the stream stopped during a cue, which is announced anew when samples come again
paused       nothing is learnt
predicting   calibration is finished; every window is predicted
============ =======================================================================================
"""

from __future__ import annotations

import math
import os
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from crossfade.live._calibration import LiveCalibration
from crossfade.live._labels import Labels
from crossfade.live._streams import (
    Back,
    Chunk,
    Ended,
    Lost,
    Marker,
    Note,
    Row,
    Stream,
    Windows,
)
from crossfade.live._view import Signal, View

Array = NDArray[np.float64]

#: Seconds for which a cue is announced, and between two pictures of the signal.
READY, _PICTURE = 3.0, 0.05
#: Microvolts beyond which a sample is none.
_LARGEST = 1e12
_RUNNING = ("ready", "cue", "recording", "lost")


class Session:
    """Drives a calibration by a stream; everything but `do` and `stop` runs in one thread.

    `tell` gets messages for the page. `publish` gets each prediction, and returns a sentence if it
    could not be published. `finish` is called when the calibration is finished, and returns one
    that says where the model is.
    """

    def __init__(
        self,
        live: LiveCalibration,
        stream: Stream,
        windows: Windows | None,
        *,
        labels: str = "cues",
        per_cue: int = 5,
        places: Sequence[int] | None = None,
        reject: float | None = None,
        tell: Callable[[dict[str, Any]], None] = lambda message: None,
        publish: Callable[[dict[str, Any], float], str] = lambda prediction, stamp: "",
        finish: Callable[[Session], str] = lambda session: "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.live, self.stream, self.labels, self.per_cue = live, stream, labels, per_cue
        self.tell = tell
        self._windows, self._publish, self._finish, self._clock = windows, publish, finish, clock
        self._places: Any = slice(None) if places is None else list(places)
        self._reject = reject
        self._commands: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._stopped = False
        self.phase = "waiting" if labels == "cues" else "recording"
        self.closed = False  # paused because nobody looked
        self.over = False
        self.lost = False  # whether samples have stopped, for now
        self.view = View()
        self._cue = ""
        self._in_cue = 0
        self._until = 0.0
        # Samples, or lines, so far; how many there were at which time; and which label holds.
        self._seen = 0
        self._known_stamp: tuple[int, float] | None = None
        self._labels = Labels()
        self._waiting: list[Marker] = []
        self._last: dict[str, Any] | None = None
        self._prediction: dict[str, Any] | None = None
        self._n_predicted = 0
        self._rate = stream.sfreq or 1.0
        self._painted = -math.inf
        seconds = 1.0 if windows is None else max(1.0, windows.recipe.window)
        channels = () if windows is None else windows.channels
        self._signal = Signal(channels, self._rate, seconds)
        self.view.recall(live)
        if self.phase == "recording":
            # The recorded person of the demo begins with the first class.
            stream.ask(live.class_names[0])

    # -- from other threads -----------------------------------------------------------------

    def do(self, command: dict[str, Any]) -> None:
        """Ask for something: start, pause, undo, finish or label."""
        self._commands.put(command)

    def stop(self) -> None:
        """End `run`."""
        self._stopped = True

    # -- the loop ---------------------------------------------------------------------------

    def run(self) -> None:
        """Go on until stopped."""
        # Matrices are small: threads that wait for each other would keep the page waiting.
        with threadpool_limits(limits=1):
            while not self._stopped:
                self.step()

    def step(self) -> None:
        """Commands that came, and what the stream has."""
        while True:
            try:
                command = self._commands.get_nowait()
            except queue.Empty:
                break
            self._obey(command)
        for event in self.stream.read():
            if isinstance(event, Chunk):
                self._samples(event)
            elif isinstance(event, Marker):
                self._waiting.append(event)
            elif isinstance(event, Row):
                self._row(event)
            elif isinstance(event, Note):
                self._note(event.text)
            elif isinstance(event, Lost):
                self._lose(event.text)
            elif isinstance(event, Back):
                self.lost = False
                self._note(event.text)
            elif not self.over:
                self._end(event)
        # Only now: what came with the return may have waited since before the cue.
        if self.phase == "lost" and not self.lost:
            self._announce()
        self._heed_markers()
        self._picture()

    def _lose(self, why: str) -> None:
        """Ask nothing of the person while nobody measures."""
        self.lost, self._prediction = True, None
        self._signal.lose()
        if self.phase in ("ready", "cue"):
            self._labels.change(self._seen, None)
            self.phase = "lost"
        self._note(why)

    def _end(self, event: Ended) -> None:
        self.over, self._prediction = True, None
        self._note(event.text)
        if self.phase != "predicting":
            self._done()

    # -- samples and windows ----------------------------------------------------------------

    def _samples(self, chunk: Chunk) -> None:
        if chunk.gap:
            self._gap(chunk.gap, chunk.missing)
        samples = chunk.samples[self._places]
        # What is no measurement is missing, or a filter would ring with it for ever.
        samples = np.where(np.abs(samples) <= _LARGEST, samples, np.nan)
        self._known_stamp = (self._seen + samples.shape[1], chunk.stamp)
        self._signal.keep(samples, self._seen)
        while samples.shape[1]:
            n = samples.shape[1]
            if self.phase == "ready":
                # A cue begins between two samples, and its first window with it.
                n = min(n, max(1, math.ceil(self._until - self._seen)))
            self._push(samples[:, :n])
            samples = samples[:, n:]
            if self.phase == "ready" and self._seen >= self._until:
                self._begin_cue()

    def _push(self, samples: Array) -> None:
        """Samples (n_channels, n) that join those before."""
        if self._windows is None:
            raise TypeError(f"{self.stream.name} has samples, and nothing makes windows of them.")
        self._seen += samples.shape[1]
        self._heed_markers()
        for window in self._windows.push(samples):
            start, stop = (round(at * self._rate) for at in (window.start, window.stop))
            self._take(window.features, start, stop, self._problem(window), self._stamp_of(stop))
        # Windows to come begin within the last one's length.
        self._labels.forget(self._seen - self._windows.recipe.window * self._rate - 1)

    def _stamp_of(self, stop: float) -> float:
        """Time stamp of the sample before `stop`."""
        end, stamp = self._known_stamp or (0, 0.0)
        return stamp + (stop - end) / self._rate

    def _problem(self, window: Any) -> str:
        """What is wrong with a window, or nothing."""
        bad = [f"{name} is {word}" for name, word in window.quality.items() if word != "good"]
        if bad:
            return f"{', '.join(bad)}."
        if not np.isfinite(window.features).all():
            return "its features cannot be computed."
        if self._reject is not None:
            start, stop = (round(at * self._rate) for at in (window.start, window.stop))
            name, size = self._signal.widest(start, stop)
            if size > self._reject:
                return f"{name} ranges over {size:.0f} µV, more than {self._reject:g}."
        return ""

    def _row(self, row: Row) -> None:
        """A line of features is a window of one, with the label it brings, if it does."""
        self._seen += 1
        self._known_stamp = (self._seen, self._clock())
        if self.labels != "cues":
            # A line's label is its own alone.
            named = row.label is not None and self.phase == "recording"
            label = self._class_of(str(row.label), "The label") if named else None
            self._labels.change(self._seen - 1, label)
        self._labels.forget(self._seen - 1)
        if self.phase == "ready" and self._seen >= self._until:
            self._begin_cue()
        self._take(row.features, self._seen - 1, self._seen, "", self._stamp_of(self._seen))

    def _take(
        self, features: Array | None, start: float, stop: float, problem: str, stamp: float
    ) -> None:
        """Learn from a window, predict it, or let it pass."""
        if self.phase == "predicting":
            self._predict(features, problem, stamp)
            return
        label, mixed = self._labels.only(start, stop)
        if self.phase not in ("cue", "recording") or mixed:
            return
        if self.phase == "cue" and label is None:
            return
        with self._kept():
            problem = problem or self._add(features, label, start)
            if problem:
                self._leave_out(label, start, problem)
                self._note(f"Left out: {problem}")
            self._taken(stamp)

    def _taken(self, stamp: float | None = None) -> None:
        """Show a window that was put on record; it may be the last of its cue."""
        self._tell_state(stamp)
        if self.phase == "cue":
            self._in_cue += 1
            if self._in_cue >= self.per_cue:
                self._end_cue()

    def _add(self, features: Array | None, label: str | None, start: float) -> str:
        """Put a window on record; says why, if it is refused."""
        try:
            place = self.live.add(features, label, start=start / self._rate)
        except ValueError as reason:
            return str(reason)
        self._last = {"window": place, "label": label, "note": None}
        return ""

    def _leave_out(self, label: str | None, start: float, why: str) -> None:
        """Put a window on record that does not count."""
        note = f"Left out: {why}"
        place = self.live.add(None, label, False, start / self._rate, note)
        self._last = {"window": place, "label": label, "note": note}

    def _gap(self, why: str, missing: float) -> None:
        """Begin anew after samples that are missing, with the cue if that was for long."""
        long = self._windows is not None and missing > self._windows.recipe.window
        if self._windows is not None:
            self._windows.reset(self._seen / self._rate)
        # A demo that turns to the next cue has a gap, too, but nobody's window is cut by it.
        if self.phase in ("cue", "recording"):
            label, _ = self._labels.only(self._seen, self._seen)
            with self._kept():
                self._leave_out(label, self._seen, why)
                self._note(f"{why} The window is left out.")
                self._taken()
        if long and self.phase == "cue":
            self._labels.change(self._seen, None)
            self._announce()

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Pause where a disk does not take a window."""
        try:
            yield
        except OSError as reason:
            self._pause(
                f"The last window could not be kept: {_plain(reason)}. Make room on the disk, "
                "then go on."
            )

    # -- labels -----------------------------------------------------------------------------

    def _class_of(self, text: str, what: str) -> str | None:
        """Name of the class that a marker means; says so if there is none."""
        names = self.live.class_names
        for name, value in zip(names, self.live.classes, strict=True):
            if text in (name, str(value)):
                return name
        self._note(
            f"{what} {text!r} is no class of the prior: those are {', '.join(names)}. Windows "
            "after it have no label until the next one that is."
        )
        return None

    def _heed_markers(self) -> None:
        """Markers whose time has come, by the clock of the samples."""
        if self._known_stamp is None or not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        end, stamp = self._known_stamp
        for marker in waiting:
            if self.labels != "markers":
                continue
            at = end - 1 + round((marker.stamp - stamp) * self._rate)
            if at > self._seen + self._rate:
                self._waiting.append(marker)
                continue
            label = self._class_of(marker.text, "The marker") if marker.text else None
            self._labels.change(at, label)
            self._cue = self._labels.now or ""
        if len(self._waiting) < len(waiting):
            self._tell_state(known=True)

    # -- cues -------------------------------------------------------------------------------

    def _announce(self) -> None:
        """Say which cue is next."""
        self._cue = self.view.known["advice"]["next"]
        self.phase = "ready"
        self.stream.ask(self._cue)
        # Of lines, the first after the cue began before it.
        self._until = self._seen + (READY * self._rate if self._windows is not None else 1)
        self._tell_state()

    def _begin_cue(self) -> None:
        self.phase, self._in_cue = "cue", 0
        if self._windows is not None:
            self._windows.align()
        self._labels.change(self._seen, self._cue)
        self._tell_state()

    def _end_cue(self) -> None:
        """The next cue; or a pause, if the advice is to stop."""
        self._labels.change(self._seen, None)
        if self.view.known["advice"]["stop"]:
            self._pause("")
        else:
            self._announce()

    def _left(self) -> tuple[float, float]:
        """What is left of a cue or its announcement, and of how much: seconds, or windows."""
        if self.phase == "ready":
            return (self._until - self._seen) / self._rate, READY
        if self.phase != "cue":
            return 0.0, 0.0
        if self._windows is None:
            return float(self.per_cue - self._in_cue), float(self.per_cue)
        recipe = self._windows.recipe
        whole = recipe.window + (self.per_cue - 1) * (recipe.window - recipe.overlap)
        return max(0.0, whole - (self._seen - self._labels.since) / self._rate), whole

    # -- commands ---------------------------------------------------------------------------

    def _obey(self, command: Mapping[str, Any]) -> None:
        deeds: dict[str, Callable[[], None]] = {
            "start": self._start,
            "pause": lambda: self._pause(""),
            "undo": self._undo,
            "finish": self._done,
            "label": lambda: self._relabel(command.get("window"), command.get("label")),
            "left": self._left_alone,
            "back": self._back,
            "hello": self._hello,
        }
        try:
            deeds[command["do"]]()
        except OSError as reason:
            self._note(
                f"This could not be kept: {_plain(reason)}. Make room on the disk, then try again."
            )
        except (ValueError, TypeError, KeyError, IndexError) as reason:
            self._note(str(reason))

    def _hello(self) -> None:
        """Tell a page that was opened all that others know."""
        self.tell({"kind": "course", "course": self.view.course})
        self._tell_state(known=True)

    def _start(self) -> None:
        if self.over:
            raise ValueError("The stream has ended, so that no more windows can come.")
        if self.phase in _RUNNING:
            return
        self.closed = False
        if self.labels == "cues" and self.lost:
            self.phase = "lost"
            self._tell_state()
        elif self.labels == "cues":
            self._announce()
        else:
            # A window that began before is none of these.
            self._labels.change(self._seen, self._labels.now)
            self.stream.ask(self.live.class_names[0])
            self.phase = "recording"
            self._tell_state()

    def _pause(self, why: str) -> None:
        if self.phase in _RUNNING:
            self._labels.change(self._seen, None if self.labels == "cues" else self._labels.now)
            self.phase = "paused"
            self.stream.ask(None)
        if why:
            self._note(why)
        self._tell_state()

    def _left_alone(self) -> None:
        """Nobody sees the cues any more."""
        if self.phase in ("ready", "cue", "lost"):
            self.closed = True
            self._pause(
                "The page was closed, so the session paused. It goes on when a page is opened, or "
                "one that watches takes control."
            )

    def _back(self) -> None:
        if self.closed and self.phase == "paused":
            self._start()

    def _undo(self) -> None:
        what = self.live.undo()
        self._last = None
        self._note(f"The last {what} was taken back.")
        self._tell_state()

    def _relabel(self, place: Any, label: Any) -> None:
        n = len(self.live.windows)
        if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < n:
            raise ValueError(
                f"There is no window {_number_of(place)}, or it was taken back: there are {n}. "
                "Nothing was labelled."
            )
        self.live.label(place, label)
        self._last = {"window": place, "label": label, "note": None}
        self._note(f"Window {_number_of(place)} is {label} now.")
        self._tell_state()

    def _done(self) -> None:
        """Finish the calibration; from here on windows are predicted."""
        try:
            said = self._finish(self)
        except OSError as reason:
            self._pause(
                f"Model and report could not be written: {reason.strerror or reason}. Every window "
                "is kept. Make room on the disk, then finish again."
            )
            return
        self.phase, self._n_predicted = "predicting", 0
        self.stream.ask(self.live.class_names[0])
        if said:
            self._note(said)
        self._tell_state()

    def _predict(self, features: Array | None, problem: str, stamp: float) -> None:
        found: dict[str, Any] = {"label": None, "note": problem}
        if features is not None and not problem:
            try:
                one = self.live.predict(features)
                found = {"label": one.label, "probabilities": one.probabilities}
                self.view.known["drift"] = self.live._watch(features)
            except ValueError as reason:
                found["note"] = str(reason)
        self._prediction = {"window": self._n_predicted, **found}
        self._n_predicted += 1
        if said := self._publish(self._prediction, stamp):
            self._note(said)
        if self._n_predicted % self.per_cue == 0:
            # The recorded person of the demo goes on to the next class.
            names = self.live.class_names
            self.stream.ask(names[self._n_predicted // self.per_cue % len(names)])
        self._tell_state(stamp, known=True)

    # -- what the page shows ----------------------------------------------------------------

    def _note(self, text: str) -> None:
        self.view.note(text, self._seen / self._rate)
        self.tell(self.message())

    def _tell_state(self, stamp: float | None = None, known: bool = False) -> None:
        """Send what is known; `known` says that nothing was learnt since."""
        if not known:
            self.view.learn(self.live.state())
        self.tell({**self.message(), "stamp": stamp})

    def message(self) -> dict[str, Any]:
        """All that the page shows but the signal."""
        left, whole = self._left()
        return {
            "kind": "state",
            "phase": self.phase,
            "over": self.over,
            "lost": self.lost,
            "labels": self.labels,
            "cue": self._cue,
            "left": round(left, 2),
            "whole": round(whole, 2),
            "in_seconds": self._windows is not None,
            **self.view.fields(),
            "last": self._last,
            "prediction": self._prediction,
            "n_windows": len(self.live.windows),
        }

    def _picture(self) -> None:
        """Send the signal since the last picture, and how much time is left."""
        now = self._clock()
        if now - self._painted < _PICTURE:
            return
        self._painted = now
        left, _ = self._left()
        told = {"kind": "signal", "left": round(left, 2), "phase": self.phase}
        told |= self._signal.picture()
        if news := self._signal.news():
            self._note(news)
        self.tell(told)


def _number_of(place: Any) -> str:
    """What the page calls a window: it counts from 1."""
    return str(place + 1) if isinstance(place, int) else repr(place)


def _plain(reason: OSError) -> str:
    """What the system said; the journal says more, for those who have no page."""
    return str(reason) if reason.errno is None else os.strerror(reason.errno)

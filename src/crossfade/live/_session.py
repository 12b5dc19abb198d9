"""A session: windows from a stream, and labels from cues, keys or markers.

A window has a label if the label held from its first to its last sample. A window that is cut by a
gap, or that holds a flat channel, is left out; the reason is kept on record. Phases:

============ =======================================================================================
waiting      before the start
ready        the next cue is announced
cue          the person does what the cue says, for a number of windows
recording    labels come from keys, markers, or the lines of features
lost         the stream stopped during a cue; the cue is announced again when samples return
paused       nothing is learnt
predicting   calibration is finished; every window is predicted
============ =======================================================================================
"""

from __future__ import annotations

import math
import os
import queue
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from crossfade._typing import Array
from crossfade.live._calibration import LiveCalibration
from crossfade.live._cues import Cue, LabelTimeline, StreamClock
from crossfade.live._publish import Predicting
from crossfade.live._streams import Back, Chunk, Ended, Event, Lost, Marker, Note, Row, Stream
from crossfade.live._view import Signal, View
from crossfade.signals import OnlineFeatures

#: Seconds between two pictures of the signal.
_PICTURE = 0.05
#: A sample of more microvolts than this counts as missing.
_LARGEST = 1e12
_RUNNING = ("ready", "cue", "recording", "lost")


class Session:
    """Calibrates from a stream. Everything but `do` and `stop` runs in one thread."""

    def __init__(
        self,
        live: LiveCalibration,
        stream: Stream,
        windows: OnlineFeatures | None,
        *,
        labels: str = "cues",
        per_cue: int = 5,
        places: Sequence[int] | None = None,
        tell: Callable[[dict[str, Any]], None] = lambda message: None,
        publish: Callable[[dict[str, Any], float], str] = lambda prediction, stamp: "",
        finish: Callable[[Session], str] = lambda session: "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.live, self.stream, self.labels = live, stream, labels
        self.tell = tell
        self._windows, self._finish, self._clock = windows, finish, clock
        self._places: Any = slice(None) if places is None else list(places)
        self._commands: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._stopped = False
        self.phase = "waiting" if labels == "cues" else "recording"
        self.over = False  # whether the stream has ended
        self.lost = False  # whether samples have stopped, for now
        self._unwatched = False  # whether it paused because no page was open
        self._seen = 0  # samples, or lines, so far
        self._timeline = LabelTimeline()
        self._waiting: list[Marker] = []
        self._predictions = Predicting(live, stream, per_cue, publish)
        self._rate = stream.sfreq or 1.0
        self._stream_clock = StreamClock(self._rate)
        self._painted = -math.inf
        self._cue = Cue(per_cue, self._rate, None if windows is None else windows.recipe)
        self._signal = Signal(() if windows is None else windows.channels, self._rate)
        self.view = View()
        self.view.learn(live.state())
        if live.windows:
            self.view.note(f"The session continues with {len(live.windows)} windows.", 0.0)
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
        """Handle events until stopped."""
        # Matrices are small, so threads of the linear algebra would only wait for each other.
        with threadpool_limits(limits=1):
            while not self._stopped:
                self.step()

    def step(self) -> None:
        """Execute the commands that came, and handle what the stream has."""
        while not self._commands.empty():
            self._execute(self._commands.get())
        for event in self.stream.read():
            self._handle(event)
        # Only after these events: samples that return may be older than the new cue.
        if self.phase == "lost" and not self.lost:
            self._announce()
        self._apply_markers()
        self._picture()

    def _handle(self, event: Event) -> None:
        match event:
            case Chunk():
                self._samples(event)
            case Marker() if self.labels == "markers":
                self._waiting.append(event)
            case Row():
                self._row(event)
            case Note():
                self._note(event.text)
            case Lost():
                self._lose(event.text)
            case Back():
                self.lost = False
                self._note(event.text)
            case Ended():
                self._end(event.text)

    def _lose(self, why: str) -> None:
        """Stop the cue while no samples come."""
        self.lost, self._predictions.last = True, None
        self._signal.lose()
        if self.phase in ("ready", "cue"):
            self._timeline.change(self._seen, None)
            self.phase = "lost"
        self._note(why)

    def _end(self, why: str) -> None:
        """Finish when the stream has ended."""
        if self.over:
            return
        self.over, self._predictions.last = True, None
        self._note(why)
        if self.phase != "predicting":
            self._complete()

    # -- samples and windows ----------------------------------------------------------------

    def _samples(self, chunk: Chunk) -> None:
        if chunk.gap:
            self._gap(chunk.gap, chunk.missing)
        samples = chunk.samples[self._places]
        # An infinite sample would stay in the filter for ever.
        samples = np.where(np.abs(samples) <= _LARGEST, samples, np.nan)
        self._stream_clock.set(self._seen + samples.shape[1], chunk.stamp)
        self._signal.keep(samples)
        while samples.shape[1]:
            n = samples.shape[1]
            if self.phase == "ready":
                # A cue begins at a sample, and its first window with it.
                n = min(n, max(1, math.ceil(self._cue.until - self._seen)))
            self._push(samples[:, :n])
            samples = samples[:, n:]
            if self.phase == "ready" and self._seen >= self._cue.until:
                self._begin_cue()

    def _push(self, samples: Array) -> None:
        """Add samples (n_channels, n) that follow the last ones without a gap."""
        assert self._windows is not None
        self._seen += samples.shape[1]
        self._apply_markers()
        for window in self._windows.push(samples):
            start, stop = (round(at * self._rate) for at in (window.start, window.stop))
            self._window(window.features, start, stop, _problem(window))
        # The next windows begin within the length of a window before now.
        self._timeline.forget(self._seen - self._windows.recipe.window * self._rate - 1)

    def _row(self, row: Row) -> None:
        """Take a line of features as one window; its label, if any, is in the line."""
        self._seen += 1
        self._stream_clock.set(self._seen, self._clock())
        if self.labels != "cues":
            # The label of a line does not hold for the next line.
            named = row.label is not None and self.phase == "recording"
            label = self._class_of(str(row.label), "The label") if named else None
            self._timeline.change(self._seen - 1, label)
        self._timeline.forget(self._seen - 1)
        if self.phase == "ready" and self._seen >= self._cue.until:
            self._begin_cue()
        self._window(row.features, self._seen - 1, self._seen, "")

    def _window(self, features: Array, start: int, stop: int, problem: str) -> None:
        """Learn from a window, predict it, or ignore it."""
        if self.phase == "predicting":
            stamp = self._stream_clock.time_of(stop)
            if said := self._predictions.add(features, problem, stamp):
                self._note(said)
            self._tell_state(stamp, known=True)
            return
        label, mixed = self._timeline.only(start, stop)
        wanted = self.phase == "recording" or (self.phase == "cue" and label is not None)
        if wanted and not mixed:
            self._record(features, label, start, problem, self._stream_clock.time_of(stop))

    def _record(
        self,
        features: Array | None,
        label: str | None,
        start: int,
        problem: str,
        stamp: float | None = None,
    ) -> None:
        """Keep a window, show what follows from it, and end the cue if it was the last one."""
        try:
            if features is not None and not problem:
                problem = self._add(features, label, start)
            if problem:
                self.live.leave_out(problem, label, start=start / self._rate)
                self._note(f"Left out: {problem}")
        except OSError as reason:
            self._pause(
                f"The last window could not be kept: {_plain(reason)}. Make room on the disk, "
                "then continue."
            )
            return
        self._tell_state(stamp)
        if self.phase == "cue" and self._cue.take():
            self._end_cue()

    def _add(self, features: Array, label: str | None, start: int) -> str:
        """Learn from a window; return why it was refused, or nothing."""
        try:
            self.live.add(features, label, start=start / self._rate)
        except ValueError as reason:
            return str(reason)
        return ""

    def _gap(self, why: str, missing: float) -> None:
        """Start a new window after missing samples; after a long gap, announce the cue again."""
        assert self._windows is not None
        self._windows.reset(self._seen / self._rate)
        # The demo has a gap between two cues, which cuts no window.
        if self.phase in ("cue", "recording"):
            label, _ = self._timeline.only(self._seen, self._seen)
            self._record(None, label, self._seen, why)
        if missing > self._windows.recipe.window and self.phase == "cue":
            self._timeline.change(self._seen, None)
            self._announce()

    # -- labels -----------------------------------------------------------------------------

    def _class_of(self, text: str, what: str) -> str | None:
        """Name of the class that a text means; None, with a note, if there is none."""
        names = self.live.class_names
        for name, value in zip(names, self.live.classes, strict=True):
            if text in (name, str(value)):
                return name
        self._note(
            f"{what} {text!r} is not a class of the prior ({', '.join(names)}). Windows have no "
            "label until the next one that is."
        )
        return None

    def _apply_markers(self) -> None:
        """Apply the markers that are due by the clock of the samples."""
        if not self._stream_clock.known or not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        for marker in waiting:
            at = self._stream_clock.index_of(marker.stamp)
            if at > self._seen + self._rate:
                self._waiting.append(marker)
                continue
            label = self._class_of(marker.text, "The marker") if marker.text else None
            self._timeline.change(at, label)
            self._cue.word = self._timeline.now or ""
        if len(self._waiting) < len(waiting):
            self._tell_state(known=True)

    # -- cues -------------------------------------------------------------------------------

    def _announce(self) -> None:
        """Announce the next cue."""
        self.phase = "ready"
        self._cue.announce(self.view.known["advice"]["next"], self._seen)
        self.stream.ask(self._cue.word)
        self._tell_state()

    def _begin_cue(self) -> None:
        self.phase = "cue"
        self._cue.begin(self._seen)
        if self._windows is not None:
            self._windows.align()
        self._timeline.change(self._seen, self._cue.word)
        self._tell_state()

    def _end_cue(self) -> None:
        """Announce the next cue, or pause if the advice is to stop."""
        self._timeline.change(self._seen, None)
        if self.view.known["advice"]["stop"]:
            self._pause()
        else:
            self._announce()

    # -- commands ---------------------------------------------------------------------------

    def _execute(self, command: Mapping[str, Any]) -> None:
        try:
            match command["do"]:
                case "start":
                    self._start()
                case "pause":
                    self._pause()
                case "undo":
                    self._note(f"The last {self.live.undo()} was taken back.")
                    self._tell_state()
                case "finish":
                    self._complete()
                case "label":
                    self._relabel(command["window"], command["label"])
                case "left":
                    self._page_closed()
                case "back":
                    if self._unwatched and self.phase == "paused":
                        self._start()
        except OSError as reason:
            self._note(
                f"This could not be kept: {_plain(reason)}. Make room on the disk, then try again."
            )
        except (ValueError, TypeError, LookupError) as reason:
            self._note(str(reason))

    def _start(self) -> None:
        if self.over:
            self._note("The stream has ended, so no more windows can come.")
        if self.over or self.phase in _RUNNING:
            return
        self._unwatched = False
        if self.labels == "cues" and not self.lost:
            self._announce()
            return
        if self.labels != "cues":
            # A window that began before the pause has no label.
            self._timeline.change(self._seen, self._timeline.now)
            self.stream.ask(self.live.class_names[0])
        self.phase = "lost" if self.labels == "cues" else "recording"
        self._tell_state()

    def _pause(self, why: str = "") -> None:
        if self.phase in _RUNNING:
            self._timeline.change(self._seen, None if self.labels == "cues" else self._timeline.now)
            self.phase = "paused"
            self.stream.ask(None)
        if why:
            self._note(why)
        self._tell_state()

    def _page_closed(self) -> None:
        """Pause the cues when nobody sees them."""
        if self.phase in ("ready", "cue", "lost"):
            self._unwatched = True
            self._pause(
                "The page was closed, so the session paused. It continues when a page is opened."
            )

    def _relabel(self, place: Any, label: Any) -> None:
        self.live.label(place, label)
        # The page counts windows from 1.
        self._note(f"Window {place + 1} is {label} now.")
        self._tell_state()

    def _complete(self) -> None:
        """Finish the calibration, and predict windows from here on."""
        try:
            said = self._finish(self)
        except OSError as reason:
            self._pause(
                f"Model and report could not be written: {_plain(reason)}. Every window "
                "is kept. Make room on the disk, then finish again."
            )
            return
        self.phase = "predicting"
        self._predictions.begin()
        if said:
            self._note(said)
        self._tell_state()

    # -- what the page shows ----------------------------------------------------------------

    def _note(self, text: str) -> None:
        self.view.note(text, self._seen / self._rate)
        self.tell(self.message())

    def _tell_state(self, stamp: float | None = None, known: bool = False) -> None:
        """Send the state; `known` says that nothing was learnt since the last time."""
        if not known:
            self.view.learn(self.live.state())
        self.tell({**self.message(), "stamp": stamp})

    def message(self) -> dict[str, Any]:
        """Everything that the page shows, except the signal."""
        left, whole = self._cue.left(self.phase, self._seen)
        return {
            "kind": "state",
            "phase": self.phase,
            "over": self.over,
            "lost": self.lost,
            "labels": self.labels,
            "cue": self._cue.word,
            "left": round(left, 2),
            "whole": round(whole, 2),
            "in_seconds": self._windows is not None,
            **self.view.fields(),
            "prediction": self._predictions.last,
            "n_windows": len(self.live.windows),
        }

    def _picture(self) -> None:
        """Send the samples since the last picture, and how much time is left."""
        now = self._clock()
        if now - self._painted < _PICTURE:
            return
        self._painted = now
        left, _ = self._cue.left(self.phase, self._seen)
        about = {"kind": "signal", "left": round(left, 2), "phase": self.phase}
        self.tell({**about, **self._signal.picture()})


def _problem(window: Any) -> str:
    """Text about channels that are not good in a window; empty if all are."""
    bad = [f"{name} is {word}" for name, word in window.quality.items() if word != "good"]
    if bad:
        return f"{', '.join(bad)}."
    return "" if np.isfinite(window.features).all() else "its features cannot be computed."


def _plain(reason: OSError) -> str:
    """Message of the operating system."""
    return str(reason) if reason.errno is None else os.strerror(reason.errno)

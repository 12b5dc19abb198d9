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
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from crossfade._typing import Array
from crossfade.live._calibration import LiveCalibration
from crossfade.live._cues import Cue, Labels, Stamps
from crossfade.live._publish import Predictions
from crossfade.live._streams import Back, Chunk, Ended, Event, Lost, Marker, Note, Row, Stream
from crossfade.live._view import Signal, View
from crossfade.signals import OnlineFeatures

#: Seconds between two pictures of the signal.
_PICTURE = 0.05
#: A sample of more microvolts than this counts as missing.
_LARGEST = 1e12
_RUNNING = ("ready", "cue", "recording", "lost")


class Session:
    """Drives a calibration by a stream; everything but `do` and `stop` runs in one thread.

    `tell` gets messages for the page. `publish` gets each prediction, and returns a sentence if it
    could not be published. `finish` is called when the calibration is finished, and returns a
    sentence that says where the model is.
    """

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
        self._left_alone = False  # whether it paused because nobody looked
        self._seen = 0  # samples, or lines, so far
        self._held = Labels()
        self._waiting: list[Marker] = []
        self._predictions = Predictions(live, stream, per_cue, publish)
        self._rate = stream.sfreq or 1.0
        self._stamps = Stamps(self._rate)
        self._painted = -math.inf
        self._cue = Cue(per_cue, self._rate, None if windows is None else windows.recipe)
        self._signal = Signal(() if windows is None else windows.channels, self._rate)
        self.view = View()
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
        """Obey commands that came, and take what the stream has."""
        while not self._commands.empty():
            self._obey(self._commands.get())
        for event in self.stream.read():
            self._heed(event)
        # Only now: what came with the return may have waited since before the cue.
        if self.phase == "lost" and not self.lost:
            self._announce()
        self._heed_markers()
        self._picture()

    def _heed(self, event: Event) -> None:
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
        """Ask nothing of the person while nobody measures."""
        self.lost, self._predictions.last = True, None
        self._signal.lose()
        if self.phase in ("ready", "cue"):
            self._held.change(self._seen, None)
            self.phase = "lost"
        self._note(why)

    def _end(self, why: str) -> None:
        """Finish when the stream has ended."""
        if self.over:
            return
        self.over, self._predictions.last = True, None
        self._note(why)
        if self.phase != "predicting":
            self._done()

    # -- samples and windows ----------------------------------------------------------------

    def _samples(self, chunk: Chunk) -> None:
        if chunk.gap:
            self._gap(chunk.gap, chunk.missing)
        samples = chunk.samples[self._places]
        # A filter would ring with an infinite sample for ever.
        samples = np.where(np.abs(samples) <= _LARGEST, samples, np.nan)
        self._stamps.hear(self._seen + samples.shape[1], chunk.stamp)
        self._signal.keep(samples)
        while samples.shape[1]:
            n = samples.shape[1]
            if self.phase == "ready":
                # A cue begins between two samples, and its first window with it.
                n = min(n, max(1, math.ceil(self._cue.until - self._seen)))
            self._push(samples[:, :n])
            samples = samples[:, n:]
            if self.phase == "ready" and self._seen >= self._cue.until:
                self._begin_cue()

    def _push(self, samples: Array) -> None:
        """Samples (n_channels, n) that join those before."""
        assert self._windows is not None
        self._seen += samples.shape[1]
        self._heed_markers()
        for window in self._windows.push(samples):
            start, stop = (round(at * self._rate) for at in (window.start, window.stop))
            self._take(window.features, start, stop, _problem(window))
        # Windows to come begin within the last one's length.
        self._held.forget(self._seen - self._windows.recipe.window * self._rate - 1)

    def _row(self, row: Row) -> None:
        """A line of features is a window of one, with the label it brings, if it does."""
        self._seen += 1
        self._stamps.hear(self._seen, self._clock())
        if self.labels != "cues":
            # A line's label is its own alone.
            named = row.label is not None and self.phase == "recording"
            label = self._class_of(str(row.label), "The label") if named else None
            self._held.change(self._seen - 1, label)
        self._held.forget(self._seen - 1)
        if self.phase == "ready" and self._seen >= self._cue.until:
            self._begin_cue()
        self._take(row.features, self._seen - 1, self._seen, "")

    def _take(self, features: Array, start: int, stop: int, problem: str) -> None:
        """Learn from a window, predict it, or let it pass."""
        if self.phase == "predicting":
            stamp = self._stamps.of(stop)
            if said := self._predictions.add(features, problem, stamp):
                self._note(said)
            self._tell_state(stamp, known=True)
            return
        label, mixed = self._held.only(start, stop)
        wanted = self.phase == "recording" or (self.phase == "cue" and label is not None)
        if wanted and not mixed:
            self._keep(features, label, start, problem, self._stamps.of(stop))

    def _keep(
        self,
        features: Array | None,
        label: str | None,
        start: int,
        problem: str,
        stamp: float | None = None,
    ) -> None:
        """Put a window on record, and show it; it may be the last of its cue."""
        try:
            if features is not None and not problem:
                problem = self._add(features, label, start)
            if problem:
                self.live.leave_out(problem, label, start=start / self._rate)
                self._note(f"Left out: {problem}")
        except OSError as reason:
            self._pause(
                f"The last window could not be kept: {_plain(reason)}. Make room on the disk, "
                "then go on."
            )
            return
        self._tell_state(stamp)
        if self.phase == "cue" and self._cue.take():
            self._end_cue()

    def _add(self, features: Array, label: str | None, start: int) -> str:
        """Learn from a window; says why, if it is refused."""
        try:
            self.live.add(features, label, start=start / self._rate)
        except ValueError as reason:
            return str(reason)
        return ""

    def _gap(self, why: str, missing: float) -> None:
        """Begin anew after samples that are missing, with the cue if that was for long."""
        assert self._windows is not None
        self._windows.reset(self._seen / self._rate)
        # A demo that turns to the next cue has a gap, too, but nobody's window is cut by it.
        if self.phase in ("cue", "recording"):
            label, _ = self._held.only(self._seen, self._seen)
            self._keep(None, label, self._seen, why)
        if missing > self._windows.recipe.window and self.phase == "cue":
            self._held.change(self._seen, None)
            self._announce()

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
        if not self._stamps.known or not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        for marker in waiting:
            at = self._stamps.place_of(marker.stamp)
            if at > self._seen + self._rate:
                self._waiting.append(marker)
                continue
            label = self._class_of(marker.text, "The marker") if marker.text else None
            self._held.change(at, label)
            self._cue.word = self._held.now or ""
        if len(self._waiting) < len(waiting):
            self._tell_state(known=True)

    # -- cues -------------------------------------------------------------------------------

    def _announce(self) -> None:
        """Say which cue is next."""
        self.phase = "ready"
        self._cue.announce(self.view.known["advice"]["next"], self._seen)
        self.stream.ask(self._cue.word)
        self._tell_state()

    def _begin_cue(self) -> None:
        self.phase = "cue"
        self._cue.begin(self._seen)
        if self._windows is not None:
            self._windows.align()
        self._held.change(self._seen, self._cue.word)
        self._tell_state()

    def _end_cue(self) -> None:
        """Go on to the next cue, or pause if the advice is to stop."""
        self._held.change(self._seen, None)
        if self.view.known["advice"]["stop"]:
            self._pause()
        else:
            self._announce()

    # -- commands ---------------------------------------------------------------------------

    def _obey(self, command: Mapping[str, Any]) -> None:
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
                    self._done()
                case "label":
                    self._relabel(command["window"], command["label"])
                case "left":
                    self._leave_alone()
                case "back":
                    if self._left_alone and self.phase == "paused":
                        self._start()
        except OSError as reason:
            self._note(
                f"This could not be kept: {_plain(reason)}. Make room on the disk, then try again."
            )
        except (ValueError, TypeError, LookupError) as reason:
            self._note(str(reason))

    def _start(self) -> None:
        if self.over:
            self._note("The stream has ended, so that no more windows can come.")
        if self.over or self.phase in _RUNNING:
            return
        self._left_alone = False
        if self.labels == "cues" and not self.lost:
            self._announce()
            return
        if self.labels != "cues":
            # A window that began before is none of these.
            self._held.change(self._seen, self._held.now)
            self.stream.ask(self.live.class_names[0])
        self.phase = "lost" if self.labels == "cues" else "recording"
        self._tell_state()

    def _pause(self, why: str = "") -> None:
        if self.phase in _RUNNING:
            self._held.change(self._seen, None if self.labels == "cues" else self._held.now)
            self.phase = "paused"
            self.stream.ask(None)
        if why:
            self._note(why)
        self._tell_state()

    def _leave_alone(self) -> None:
        """Nobody sees the cues any more."""
        if self.phase in ("ready", "cue", "lost"):
            self._left_alone = True
            self._pause(
                "The page was closed, so the session paused. It goes on when a page is opened."
            )

    def _relabel(self, place: Any, label: Any) -> None:
        self.live.label(place, label)
        # The page counts windows from 1.
        self._note(f"Window {place + 1} is {label} now.")
        self._tell_state()

    def _done(self) -> None:
        """Finish the calibration; from here on windows are predicted."""
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
        """Send what is known; `known` says that nothing was learnt since."""
        if not known:
            self.view.learn(self.live.state())
        self.tell({**self.message(), "stamp": stamp})

    def message(self) -> dict[str, Any]:
        """All that the page shows but the signal."""
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
        """Send the signal since the last picture, and how much time is left."""
        now = self._clock()
        if now - self._painted < _PICTURE:
            return
        self._painted = now
        left, _ = self._cue.left(self.phase, self._seen)
        about = {"kind": "signal", "left": round(left, 2), "phase": self.phase}
        self.tell({**about, **self._signal.picture()})


def _problem(window: Any) -> str:
    """What is wrong with a window, or nothing."""
    bad = [f"{name} is {word}" for name, word in window.quality.items() if word != "good"]
    if bad:
        return f"{', '.join(bad)}."
    return "" if np.isfinite(window.features).all() else "its features cannot be computed."


def _plain(reason: OSError) -> str:
    """What the system said; the journal says more, for those who have no page."""
    return str(reason) if reason.errno is None else os.strerror(reason.errno)

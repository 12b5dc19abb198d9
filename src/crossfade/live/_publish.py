"""Where predictions go: JSON lines on standard output, and a stream of the Lab Streaming Layer."""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from crossfade._typing import Array
from crossfade.live._calibration import LiveCalibration
from crossfade.live._lsl import lsl
from crossfade.live._streams import Stream

#: Lines that wait for whoever reads standard output.
_HELD = 1000


class Lines:
    """Lines on a file descriptor, by a thread of its own: nobody may read what is written.

    Unbuffered, since a thread that waits in a buffer would hold its lock to the end.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: queue.Queue[bytes | None] = queue.Queue(maxsize=_HELD)
        self._gone = False
        self._said: set[str] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, line: str) -> str:
        """Write a line soon; says, once, why it cannot be written."""
        why = "Standard output was closed: predictions are no longer written to it."
        if not self._gone:
            try:
                self._queue.put_nowait(line.encode() + b"\n")
                return ""
            except queue.Full:
                why = "Nobody reads standard output: predictions are left out there until it is."
        if why in self._said:
            return ""
        self._said.add(why)
        return why

    def close(self) -> None:
        """Write what is left, if it is read within a second."""
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(timeout=1.0)

    def _run(self) -> None:
        while (line := self._queue.get()) is not None:
            try:
                while line:
                    line = line[os.write(self._descriptor, line) :]
            except OSError:
                self._gone = True
                return


class Publisher:
    """Predictions as JSON lines, and as an LSL stream if there is a name.

    That stream is there from :meth:`begin` on, and can be seen by whoever reaches this machine.
    With `lsl_time`, the windows come from an LSL stream: a prediction then has the time stamp of
    the last sample of its window, on the clock of this machine, so that both can be aligned. Else
    it has the time at which it was sent.
    """

    def __init__(
        self, name: str | None, classes: Sequence[str], lines: Lines, *, lsl_time: bool = False
    ) -> None:
        self._name, self._classes, self._lines = name, list(classes), lines
        self._lsl_time = lsl_time
        # What is missing is said at the beginning rather than at the end.
        self._lsl = None if name is None else lsl()
        self._outlet: Any = None

    def begin(self) -> str:
        """Begin the LSL stream; says so if that fails."""
        if self._lsl is None or self._outlet is not None:
            return ""
        try:
            info = self._lsl.StreamInfo(
                self._name,
                "Prediction",
                len(self._classes),
                0.0,
                "float32",
                f"crossfade-{self._name}",
            )
            info.set_channel_names(self._classes)
            self._outlet = self._lsl.StreamOutlet(info)
        except RuntimeError as reason:
            return f" Predictions are not published as an LSL stream: {reason}"
        return ""

    def __call__(self, prediction: dict[str, Any], stamp: float) -> str:
        """Publish one prediction, whose last sample has this time stamp; says what is wrong."""
        if self._outlet is not None and prediction["label"] is not None:
            values = [prediction["probabilities"][name] for name in self._classes]
            # LSL takes 0 for now.
            when = stamp if self._lsl_time else 0.0
            self._outlet.push_sample(np.array(values, dtype=np.float32), timestamp=when)
        return self._lines.put(json.dumps({"time": round(stamp, 4), **prediction}))


class Predictions:
    """Windows after the calibration: each is predicted and published; `last` is the latest."""

    def __init__(
        self,
        live: LiveCalibration,
        stream: Stream,
        every: int,
        publish: Callable[[dict[str, Any], float], str],
    ) -> None:
        self.last: dict[str, Any] | None = None
        self._live, self._stream, self._every, self._publish = live, stream, every, publish
        self._n = 0

    def begin(self) -> None:
        """Count from the first; the recorded person of the demo begins with the first class."""
        self._n = 0
        self._stream.ask(self._live.class_names[0])

    def add(self, features: Array, problem: str, stamp: float) -> str:
        """Predict a window, unless something is wrong with it; what publishing it said."""
        found: dict[str, Any] = {"label": None, "note": problem}
        if not problem:
            try:
                one = self._live.predict(features)
                found = {"label": one.label, "probabilities": one.probabilities}
            except ValueError as reason:
                found["note"] = str(reason)
        self.last = {"window": self._n, **found}
        self._n += 1
        if self._n % self._every == 0:
            # The recorded person of the demo goes on to the next class.
            names = self._live.class_names
            self._stream.ask(names[self._n // self._every % len(names)])
        return self._publish(self.last, stamp)

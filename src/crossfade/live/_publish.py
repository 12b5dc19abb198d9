"""Predictions: JSON lines on standard output, and a stream of the Lab Streaming Layer."""

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
    """Writes lines to a file descriptor in a thread, since the reader may be slow or gone.

    Not buffered: a thread that waits in a buffer would hold the lock of the buffer for ever.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: queue.Queue[bytes | None] = queue.Queue(maxsize=_HELD)
        self._gone = False
        self._said: set[str] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, line: str) -> str:
        """Write a line soon; return, once, why it cannot be written."""
        why = "Standard output was closed: predictions are no longer written to it."
        if not self._gone:
            try:
                self._queue.put_nowait(line.encode() + b"\n")
                return ""
            except queue.Full:
                why = "Nobody reads standard output: predictions are dropped there for now."
        if why in self._said:
            return ""
        self._said.add(why)
        return why

    def close(self) -> None:
        """Write the lines that wait, within a second."""
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
    """Publishes predictions as JSON lines, and as an LSL stream if it has a name.

    The stream exists from :meth:`begin` on; anyone who reaches this machine can read it. With
    `lsl_time`, windows come from an LSL stream, and a prediction has the time stamp of the last
    sample of its window. Otherwise it has the time at which it is sent.
    """

    def __init__(
        self, name: str | None, classes: Sequence[str], lines: Lines, *, lsl_time: bool = False
    ) -> None:
        self._name, self._classes, self._lines = name, list(classes), lines
        self._lsl_time = lsl_time
        # A missing package is reported at the start of the session.
        self._lsl = None if name is None else lsl()
        self._outlet: Any = None

    def begin(self) -> str:
        """Begin the LSL stream; return why that failed, or nothing."""
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
        """Publish a prediction with the stamp of its last sample; return what went wrong."""
        if self._outlet is not None and prediction["label"] is not None:
            values = [prediction["probabilities"][name] for name in self._classes]
            # LSL takes 0 for the present time.
            when = stamp if self._lsl_time else 0.0
            self._outlet.push_sample(np.array(values, dtype=np.float32), timestamp=when)
        return self._lines.put(json.dumps({"time": round(stamp, 4), **prediction}))


class Predictions:
    """Predicts and publishes windows after the calibration; `last` is the latest prediction."""

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
        """Begin to count; the recorded person of the demo begins with the first class."""
        self._n = 0
        self._stream.ask(self._live.class_names[0])

    def add(self, features: Array, problem: str, stamp: float) -> str:
        """Predict a window unless it has a problem; return what publishing it said."""
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
            # The recorded person of the demo turns to the next class.
            names = self._live.class_names
            self._stream.ask(names[self._n // self._every % len(names)])
        return self._publish(self.last, stamp)

"""Predictions: JSON lines on standard output, and a stream of the Lab Streaming Layer."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from crossfade._typing import Array
from crossfade.live._calibration import LiveCalibration
from crossfade.live._lsl import lsl
from crossfade.live._streams import Stream


class Lines:
    """Writes lines to a file descriptor; a pipe that nobody reads holds up nothing."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_pipe = sys.platform != "win32" and stat.S_ISFIFO(os.fstat(descriptor).st_mode)
        self._said: set[str] = set()
        self._let_wait(False)

    def put(self, line: str) -> str:
        """Write a line; return, once, why it cannot be written."""
        try:
            os.write(self._descriptor, line.encode() + b"\n")
            return ""
        except BlockingIOError:
            why = "Nobody reads standard output: predictions are dropped there for now."
        except OSError:
            why = "Standard output was closed: predictions are no longer written to it."
        if why in self._said:
            return ""
        self._said.add(why)
        return why

    def close(self) -> None:
        """Leave the pipe as it was."""
        self._let_wait(True)

    def _let_wait(self, wait: bool) -> None:
        if self._is_pipe:
            os.set_blocking(self._descriptor, wait)


class Publisher:
    """Publishes predictions as JSON lines and, from `begin` on, as an LSL stream if it is named."""

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


class Predicting:
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

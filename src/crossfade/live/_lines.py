"""Windows as lines of text, from another program that makes features."""

from __future__ import annotations

import csv
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from crossfade._files import json_of
from crossfade.live._streams import WAIT, Ended, Event, Note, Row, Stream

#: Lines that wait for the session, and bytes of the longest.
_HELD, _LONGEST = 64, 1 << 20


class FeatureLines(Stream):
    """Windows as lines of text, CSV with a header or JSON objects, which a thread reads ahead."""

    def __init__(
        self, name: str, read: Callable[[int], bytes | None], feature_names: Sequence[str] | None
    ) -> None:
        self.name, self._names = name, feature_names
        self._header: list[str] | None = None
        self._events: queue.Queue[Event] = queue.Queue(maxsize=_HELD)
        # Reading a pipe cannot be interrupted, so the thread must not outlive the program.
        threading.Thread(target=self._run, args=(read,), daemon=True).start()

    def _run(self, read: Callable[[int], bytes | None]) -> None:
        end = f"There are no more lines in {self.name}."
        try:
            for number, line in enumerate(_lines(read), 1):
                event = self._event(number, line)
                if event is not None:
                    self._events.put(event)
        except OSError as reason:
            end = f"{self.name} cannot be read any further: {reason}."
        self._events.put(Ended(end))

    def _event(self, number: int, line: bytes | None) -> Event | None:
        """Event of a line; None for the header and for empty lines."""
        try:
            if line is None:
                raise ValueError(f"it is longer than {_LONGEST} bytes")
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            if not text:
                return None
            if text.startswith("{"):
                return self._row(json_of(text.encode()))
            cells = next(csv.reader([text], strict=True))
            if self._header is None:
                self._header = [cell.strip() for cell in cells]
                return None
            if len(cells) != len(self._header):
                raise ValueError(f"it has {len(cells)} cells, and the header {len(self._header)}")
            return self._row(dict(zip(self._header, cells, strict=True)))
        except (ValueError, TypeError, OverflowError, csv.Error) as reason:
            return Note(f"Line {number} is left out: {reason}.")

    def _row(self, given: dict[str, Any]) -> Row:
        """One window; the order of features does not matter."""
        names = self._names or [name for name in given if name not in ("label", "start")]
        missing = [name for name in names if name not in given]
        if missing:
            raise ValueError(f"it has no feature {missing[0]}")
        label = given.get("label")
        features = np.array([float(given[name]) for name in names])
        return Row(features, None if label in (None, "") else str(label))

    def read(self) -> Iterator[Event]:
        """The next line, so that commands are heard between two of them."""
        with suppress(queue.Empty):
            yield self._events.get(timeout=WAIT)


def _lines(read: Callable[[int], bytes | None]) -> Iterator[bytes | None]:
    """Lines without their ends; None for a line that is too long."""
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

"""Samples and markers from the Lab Streaming Layer, through mne-lsl."""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from crossfade._typing import Array
from crossfade._validate import check_extra
from crossfade.live._streams import WAIT, Back, Chunk, Event, Lost, Marker, Note, Stream
from crossfade.signals import plain_name

#: Seconds by which time stamps may be off without being called a gap.
_JITTER = 0.1
#: Seconds without samples after which the page says so.
_SILENT = 2.0
#: Seconds for which streams are looked for; others on this machine answer within a few hundredths.
_LOOK = 1.0
#: Seconds between two looks for a stream that was lost.
_EVERY = 2.0
#: Markers that are read at once, so that samples have their turn.
_MARKS = 1000
#: What streams call microvolts, volts and millivolts; a stream that says nothing is taken to be in
#: microvolts, as are recordings.
_MICROVOLTS = {"volts": 1e6, "volt": 1e6, "v": 1e6, "millivolts": 1e3, "millivolt": 1e3, "mv": 1e3}
#: A broadcast reaches one of several streams on this machine; known peers are asked one by one.
_CONFIG = """[multicast]
ResolveScope = machine
[lab]
KnownPeers = {127.0.0.1}
[log]
level = -3
"""


def lsl() -> Any:
    """mne-lsl's functions; looks for streams on this machine unless LSLAPICFG says otherwise."""
    if "LSLAPICFG" in os.environ or "mne_lsl" in sys.modules:
        return _lsl()
    # The library reads this once, when it is loaded.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lsl.cfg"
        path.write_text(_CONFIG)
        os.environ["LSLAPICFG"] = str(path)
        try:
            return _lsl()
        finally:
            del os.environ["LSLAPICFG"]


def _lsl() -> Any:
    check_extra("mne_lsl", "live", "The Lab Streaming Layer")
    import mne_lsl.lsl

    # The library reads its configuration when it is first asked for something in it.
    mne_lsl.lsl.protocol_version()
    return mne_lsl.lsl


class _Feed:
    """Inlet of the stream of a name that `accept` does not refuse, searched for again when lost."""

    def __init__(self, library: Any, name: str, accept: Callable[[Any], None]) -> None:
        self.name = name
        self._library, self._accept = library, accept
        info = _find_stream(library, name)
        try:
            self.inlet: Any = self._open(info, 5.0)
        except (RuntimeError, TimeoutError) as reason:
            raise ValueError(
                f"The stream {name!r} does not answer. Start its program again."
            ) from reason
        self._uid: str | None = info.uid
        self._looked = -math.inf
        self.said: set[str] = set()

    def _open(self, info: Any, seconds: float) -> Any:
        inlet = self._library.StreamInlet(
            info, max_buffered=360, recover=False, processing_flags=["clocksync"]
        )
        inlet.open_stream(timeout=seconds)
        self._accept(inlet.get_sinfo(timeout=seconds))
        return inlet

    def pull(self, kind: str, **how: Any) -> tuple[Any, Any]:
        """Result of the inlet's `pull_sample` or `pull_chunk`; nothing if the stream was lost."""
        if self.inlet is not None:
            try:
                return getattr(self.inlet, f"pull_{kind}")(**how)
            except RuntimeError:
                self.close()
        return [], None if kind == "sample" else []

    def look(self) -> str:
        """Look for the stream every two seconds; return that it is back, or why it is not used."""
        if time.monotonic() - self._looked < _EVERY:
            return ""
        try:
            found = self._library.resolve_streams(timeout=_LOOK / 2.0, name=self.name, minimum=2)
            info = _only(self.name, found)
            if info is None or (self.inlet is not None and info.uid == self._uid):
                return ""
            inlet = self._open(info, 1.0)
        except ValueError as reason:
            return str(reason)
        except (RuntimeError, TimeoutError):
            return ""
        finally:
            self._looked = time.monotonic()
        self.close()
        self.inlet, self._uid = inlet, info.uid
        return f"The stream {self.name!r} is back."

    def once(self, text: str, more: str = "") -> Iterator[Note]:
        """A note, unless it was given since the last samples."""
        if text not in self.said:
            self.said.add(text)
            yield Note(text + more)

    def close(self) -> None:
        """Leave the stream."""
        if self.inlet is not None:
            self.inlet.close_stream()
            self.inlet = None


def _only(name: str, found: Sequence[Any]) -> Any:
    """The only stream among these, or none; refuses several."""
    if len(found) > 1:
        raise ValueError(f"There are {len(found)} streams called {name!r}. Stop the others.")
    return found[0] if found else None


def _find_stream(library: Any, name: str) -> Any:
    """The one stream of a name."""
    # Waiting for two streams finds out whether the name is unique.
    info = _only(name, library.resolve_streams(timeout=_LOOK, name=name, minimum=2))
    if info is not None:
        return info
    # On a busy machine an answer may take longer.
    every = library.resolve_streams(timeout=3.0 * _LOOK)
    info = _only(name, [one for one in every if one.name == name])
    if info is None:
        others = ", ".join(sorted({one.name for one in every})) or "none"
        raise ValueError(
            f"There is no stream called {name!r}; found: {others}. Start the amplifier's program."
        )
    return info


class LslStream(Stream):
    """A running stream of samples, and a stream of markers if one is named."""

    def __init__(
        self, name: str, markers: str | None = None, *, channels: Sequence[str] = ()
    ) -> None:
        self._lsl = lsl()
        self.name, self._named = name, tuple(channels)
        self._scale = np.empty(0)
        self._samples = _Feed(self._lsl, name, self._fits)
        self._markers = None
        if markers is not None:
            self._markers = _Feed(self._lsl, markers, lambda described: None)
        self._joint = Joint(self.sfreq or 0.0)
        self._heard = time.monotonic()
        self._lost = False

    def _fits(self, described: Any) -> None:
        """Read rate, channels and units; a stream that returns must have the same."""
        name, n = self.name, described.n_channels
        if described.dtype == "string" or described.sfreq <= 0:
            raise ValueError(f"The stream {name!r} has no sampling rate; --markers is for markers.")
        stated = described.get_channel_names() or []
        channels = self._named or tuple(
            plain_name(one or f"ch{place + 1}") for place, one in enumerate(stated)
        )
        if len(channels) != n:
            raise ValueError(
                f"The stream {name!r} has {n} channels; found {len(channels)} names. Name all of "
                "them in their order, for example --channels Fz,Cz,Pz."
            )
        rate = float(described.sfreq)
        if self.channels and (self.sfreq, self.channels) != (rate, channels):
            raise ValueError(
                f"The stream {name!r} is back with {', '.join(channels)} at {rate:g} Hz; the "
                f"session has {', '.join(self.channels)} at {self.sfreq:g} Hz. Set the amplifier "
                "as it was, or begin another session."
            )
        units = described.get_channel_units() or [None] * n
        self._scale = np.array([_MICROVOLTS.get(str(unit).lower(), 1.0) for unit in units])
        self.sfreq, self.channels = rate, channels

    def read(self) -> Iterator[Event]:
        """Markers and samples that have arrived."""
        if self._markers is not None:
            yield from self._marks(self._markers)
        samples, stamps = self._samples.pull("chunk", timeout=0.0, max_samples=4096)
        if not len(stamps):
            # Waiting for a chunk would last until it is full.
            sample, stamp = self._samples.pull("sample", timeout=WAIT)
            if stamp is None:
                yield from self._silence()
                return
            samples, stamps = np.asarray(sample)[None], np.array([stamp])
        self._heard = time.monotonic()
        self._samples.said.clear()
        if self._lost:
            self._lost = False
            yield Back(f"Samples from {self.name!r} come again.")
        data = np.asarray(samples, dtype=np.float64).T * self._scale[:, None]
        yield from self._joint.chunks(data, np.asarray(stamps))

    def _marks(self, feed: _Feed) -> Iterator[Event]:
        """Markers; when their stream ends, the last label ends, too."""
        for _ in range(_MARKS):
            content, stamp = feed.pull("sample", timeout=0.0)
            if stamp is None:
                break
            known = math.isfinite(stamp)
            yield Marker(str(content[0]), float(stamp if known else self._lsl.local_clock()))
        if feed.inlet is not None:
            feed.said.clear()
            return
        if not feed.said:
            yield Marker("", float(self._lsl.local_clock()))
        ended = f"The stream of markers {feed.name!r} has ended."
        yield from feed.once(ended, " Windows have no label until it is back.")
        if said := feed.look():
            yield from feed.once(said)

    def _silence(self) -> Iterator[Event]:
        """Say once that nothing comes, and look for the stream."""
        feed = self._samples
        if feed.inlet is None:
            why = f"The stream {self.name!r} has ended."
            # Nothing was waited for.
            time.sleep(WAIT)
        elif time.monotonic() - self._heard > _SILENT:
            why = f"No samples from {self.name!r} for {_SILENT:g} s. Is the amplifier on?"
        else:
            return
        for note in feed.once(why, " The session continues when it is back."):
            # Later notes are about the same loss.
            yield note if self._lost else Lost(note.text)
            self._lost = True
        if said := feed.look():
            yield from feed.once(said)
            self._heard = time.monotonic()

    def close(self) -> None:
        """Leave the streams."""
        for feed in (self._samples, self._markers):
            if feed is not None:
                feed.close()


class Joint:
    """Finds gaps between samples by their time stamps."""

    def __init__(self, sfreq: float) -> None:
        self.period = 1.0 / sfreq
        self.last: float | None = None

    def chunks(self, samples: Array, stamps: Array) -> Iterator[Chunk]:
        """Samples (n_channels, n) with their stamps (n,), cut at gaps."""
        # A stamp that is not a number is replaced by that of the next sample in time.
        next_ones = (self.last or 0.0) + self.period * np.arange(1, len(stamps) + 1)
        stamps = np.where(np.isfinite(stamps), stamps, next_ones)
        before = stamps[0] - self.period if self.last is None else self.last
        steps = np.diff(stamps, prepend=before) - self.period
        cuts = np.flatnonzero(np.abs(steps) > max(_JITTER, 1.5 * self.period)).tolist()
        for first, stop in pairwise(sorted({0, *cuts, len(stamps)})):
            gap, missing = "", 0.0
            if first in cuts:
                missing = max(0.0, float(steps[first]))
                gap = f"{missing:.3g} s of samples are missing."
                if not missing:
                    gap = f"The clock of the stream jumped back by {-steps[first]:.3g} s."
            yield Chunk(samples[:, first:stop], float(stamps[stop - 1]), gap, missing)
        self.last = float(stamps[-1])

"""Where live samples come from: LSL, recordings played again, and lines of features."""

import io
import os
import re
import subprocess
import sys
import time
import uuid

import numpy as np
import pytest

from crossfade.live import (
    Back,
    Chunk,
    Ended,
    FeatureLines,
    Lost,
    LslStream,
    Marker,
    Note,
    Rehearsal,
    Replay,
    Row,
    lsl,
)
from crossfade.signals import Annotation
from tests.live_world import CHANNELS, signal_of


class Clock:
    """Time that passes when one sleeps."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def until_end(stream):
    events = []
    while not any(isinstance(one, Ended) for one in events):
        events += stream.read()
    return events


# -- recordings, played again ---------------------------------------------------------------


@pytest.mark.parametrize("speed", [1.0, 60.0])
def test_a_replay_loses_no_sample(speed):
    samples = signal_of("rest", 12.34)
    clock = Clock()
    notes = [Annotation(2.0, 3.0, "rest"), Annotation(5.0, 4.0, "work")]
    stream = Replay(
        "r", samples, 100.0, CHANNELS, notes, speed=speed, clock=clock, sleep=clock.sleep
    )
    events = until_end(stream)
    parts = [one for one in events if isinstance(one, Chunk)]
    np.testing.assert_array_equal(np.concatenate([p.samples for p in parts], axis=1), samples)
    assert clock.now == pytest.approx(12.34 / speed, abs=0.1)
    marks = [(place, one) for place, one in enumerate(events) if isinstance(one, Marker)]
    assert [one for _, one in marks] == [Marker("rest", 2.0), Marker("work", 5.0), Marker("", 9.0)]
    for place, marker in marks:
        # It comes before the samples that it is about.
        before = [one.stamp for one in events[:place] if isinstance(one, Chunk)]
        assert max(before) < marker.stamp


def test_a_rehearsal_does_what_it_is_asked():
    clock = Clock()
    segments = {"rest": np.zeros((2, 300)), "work": np.ones((2, 50))}
    stream = Rehearsal("demo", segments, 100.0, CHANNELS, clock=clock, sleep=clock.sleep)
    stream.ask("rest")
    for _ in range(30):
        assert all((one.samples == 0.0).all() for one in stream.read())
    stream.ask("work")
    events = until_end(stream)
    assert events[-1].text == "The recording of 'work' is at its end, so the demo ends here."
    parts = [one for one in events if isinstance(one, Chunk)]
    assert all((one.samples == 1.0).all() for one in parts)
    assert sum(one.samples.shape[1] for one in parts) == 50
    # The end is one, though there is more of the other class.
    for label in ("rest", None):
        stream.ask(label)
        assert list(stream.read()) == events[-1:]
    assert parts[0].gap == "The recorded person turns to the next cue."


def test_a_rehearsal_plays_no_sample_twice_for_a_cue():
    clock = Clock()
    segments = {"rest": np.arange(200.0)[None], "work": -np.ones((1, 50))}
    stream = Rehearsal("demo", segments, 100.0, ("Fz",), clock=clock, sleep=clock.sleep)

    def heard(n):
        parts = []
        while sum(part.shape[1] for part in parts) < n:
            parts += [one.samples for one in stream.read()]
        return np.concatenate(parts, axis=1)[0]

    # Before the beginning, and in a pause, it goes on for as long as that takes.
    assert len(np.unique(heard(500))) == 200
    stream.ask("rest")
    first = heard(100)
    stream.ask(None)
    heard(500)
    stream.ask("rest")
    events = until_end(stream)
    later = np.concatenate([one.samples[0] for one in events if isinstance(one, Chunk)])
    np.testing.assert_array_equal(np.concatenate([first, later]), np.arange(200.0))


# -- lines of features ----------------------------------------------------------------------


def lines_of(content):
    return FeatureLines("standard input", io.BytesIO(content).read, ["a", "b"])


def test_lines_are_csv_or_json():
    lines = ["\ufeffb,label,a\r\n", "2,rest,1\n", "\n", "2.5,,1.5\n"]
    lines += ['{"a": 3, "b": 4, "label": "work"}\n', '{"b": 8, "a": 7, "label": null}\n']
    events = until_end(lines_of("".join(lines).encode()))
    rows = [(one.features.tolist(), one.label) for one in events if isinstance(one, Row)]
    assert rows == [
        ([1.0, 2.0], "rest"),
        ([1.5, 2.5], None),
        ([3.0, 4.0], "work"),
        ([7.0, 8.0], None),
    ]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("1,2,3", "3 cells"),
        ("1,x", "'x'"),
        ('{"a": 1}', "no feature b"),
        ("[1, 2]", "cells|'\\['|float"),
        ('{"a": 1, "b": [2]}', "list"),
        ('{"a": 1, "b": 1' + "0" * 400 + "}", "float"),
        ("[" * 100_000, "cells"),
        ('{"a":' * 100_000, "nested"),
        ('1,"2', "end of data"),
        ("1," + "2" * 2_000_000, "longer"),
        (b"1,\xff", "decode"),
    ],
)
def test_a_line_that_cannot_be_read_is_left_out(line, word):
    line = line if isinstance(line, bytes) else line.encode()
    events = until_end(lines_of(b"a,b\n" + line + b"\n1,2"))
    assert re.search(f"^Line 2 .*({word})", events[0].text)
    assert events[1].features.tolist() == [1.0, 2.0]
    assert isinstance(events[2], Ended)


def test_lines_may_come_in_pieces():
    parts = [b"a,", b"b\n1", b",2\n3,4", b"\n", b"x" * 3_000_000, b"x\n5", b",6"]
    events = until_end(FeatureLines("a pipe", lambda n: parts.pop(0) if parts else b"", None))
    rows = [one.features.tolist() for one in events if isinstance(one, Row)]
    assert rows == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    [note] = [one.text for one in events if isinstance(one, Note)]
    assert note.startswith("Line 4 ")


def test_lines_wait_for_a_session_that_is_slower():
    taken = 0

    def read(n):
        nonlocal taken
        taken += 1
        return b'{"a": 1}\n' if taken <= 1000 else b""

    lines = FeatureLines("a pipe", read, None)
    for number in range(1, 1001):
        # One at a time, so that commands are heard in between.
        [row] = next(found for found in iter(lambda: list(lines.read()), None) if found)
        assert isinstance(row, Row)
        assert taken <= number + 100
    assert isinstance(until_end(lines)[-1], Ended)


# -- the Lab Streaming Layer ----------------------------------------------------------------


@pytest.fixture
def name():
    """A name that no other stream on this machine has."""
    return f"crossfade-test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def outlet():
    """Make outlets, which are gone afterwards."""
    pytest.importorskip("mne_lsl", reason="Needs the package mne-lsl.")
    library = lsl()
    kept = []

    def make(name, kind="EEG", sfreq=100.0, dtype="float32", source="1", names=CHANNELS):
        info = library.StreamInfo(name, kind, len(names or "12"), sfreq, dtype, f"{name}-{source}")
        if names:
            info.set_channel_names(list(names))
        kept.append(library.StreamOutlet(info))
        return kept[-1]

    make.kept = kept
    yield make
    kept.clear()


def wait_for(outlet):
    assert outlet.wait_for_consumers(timeout=60.0)


def read_until(stream, enough, seconds=120.0):
    """Events of a stream until there are enough."""
    events, end = [], time.monotonic() + seconds
    while not enough(events):
        assert time.monotonic() < end, events
        events += stream.read()
    return events


def test_streams_that_do_not_fit_are_refused(outlet, name):
    _ = outlet(f"{name}-marks", "Markers", 0.0, "string", names=("x",)), outlet(name, names=())
    with pytest.raises(ValueError, match=f"found: .*{name}"):
        LslStream(f"{name}-2")
    with pytest.raises(ValueError, match="sampling rate"):
        LslStream(f"{name}-marks")
    with pytest.raises(ValueError, match="--channels"):
        LslStream(name, channels=("a", "b", "c"))
    assert LslStream(name, channels=("a", "b")).channels == ("a", "b")
    _ = outlet(name, source="2")
    with pytest.raises(ValueError, match="2 streams"):
        LslStream(name, channels=("a", "b"))


def test_samples_and_markers_arrive(outlet, name):
    sender = outlet(name)
    marks = outlet(f"{name}-cues", "Markers", 0.0, "string", names=("x",))
    stream = LslStream(name, f"{name}-cues")
    assert (stream.sfreq, stream.channels) == (100.0, CHANNELS)
    wait_for(sender)
    wait_for(marks)
    samples = signal_of("rest", 3.0).astype(np.float32)
    first = lsl().local_clock()
    marks.push_sample(["rest"], timestamp=first)
    marks.push_sample(["work"], timestamp=float("nan"))
    jitter = 0.01 * np.random.default_rng(0).standard_normal(200)
    # A second is missing in the middle.
    for part, at in ((samples[:, :200], first), (samples[:, 200:], first + 3.0)):
        n = part.shape[1]
        stamps = at + np.arange(n) / 100.0 + jitter[:n]
        sender.push_chunk(np.ascontiguousarray(part.T), timestamp=stamps)

    def chunks(events):
        return [one for one in events if isinstance(one, Chunk)]

    def enough(events):
        held = sum(chunk.samples.shape[1] for chunk in chunks(events))
        return held == 300 and sum(isinstance(one, Marker) for one in events) == 2

    events = read_until(stream, enough)
    parts = chunks(events)
    found = np.concatenate([part.samples for part in parts], axis=1)
    np.testing.assert_allclose(found, samples, rtol=1e-6)
    assert [part.missing for part in parts if part.gap] == pytest.approx([1.0], abs=0.1)
    marked = [one for one in events if isinstance(one, Marker)]
    assert [one.text for one in marked] == ["rest", "work"]
    assert marked[0].stamp == pytest.approx(first)
    # A marker without a time is one of now.
    assert first <= marked[1].stamp <= lsl().local_clock()
    stream.close()


# An amplifier's program, which sends samples and markers until it is killed.
SENDER = """
import sys, time
import numpy as np
from mne_lsl.lsl import StreamInfo, StreamOutlet

name, rate = sys.argv[1:]
eeg = StreamInfo(name, "EEG", 2, float(rate), "float32", "")
eeg.set_channel_names(["Fz", "Pz"])
samples = StreamOutlet(eeg)
cues = StreamOutlet(StreamInfo(f"{name}-cues", "Markers", 1, 0.0, "string", ""))
print("on", flush=True)
while True:
    samples.push_chunk(np.random.default_rng(0).normal(size=(10, 2)).astype(np.float32))
    cues.push_sample(["rest"])
    time.sleep(0.1)
"""


@pytest.fixture
def sender(name, tmp_path):
    """Start an amplifier's program, in place of the one before."""
    pytest.importorskip("mne_lsl", reason="Needs the package mne-lsl.")
    config = tmp_path / "lsl.cfg"
    config.write_text("[multicast]\nResolveScope = machine\n[lab]\nKnownPeers = {127.0.0.1}\n")
    running = []

    def kill():
        while running:
            process = running.pop()
            process.kill()
            process.communicate()

    def start(rate=100.0):
        kill()
        command = [sys.executable, "-c", SENDER, name, str(rate)]
        env = {**os.environ, "LSLAPICFG": str(config)}
        running.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
        assert running[-1].stdout.readline() == "on\n"

    yield start
    kill()


def notes_of(events):
    return [one.text for one in events if isinstance(one, (Note, Lost))]


def test_a_stream_that_ends_is_taken_up_when_it_is_back(sender, name):
    def kinds(events):
        return set(map(type, events))

    sender()
    stream = LslStream(name, f"{name}-cues")
    read_until(stream, lambda events: {Chunk, Marker} <= kinds(events))
    # As another it is not taken up, and the last label does not hold any longer.
    sender(rate=250.0)
    events = read_until(stream, lambda events: any("250 Hz" in one for one in notes_of(events)))
    assert Lost in kinds(events)
    assert Back not in kinds(events)
    assert [one.text for one in events if isinstance(one, Marker)].count("") == 1
    sender()

    def back(events):
        place = next((i for i, one in enumerate(events) if isinstance(one, Chunk)), None)
        return place is not None and Marker in kinds(events[place:])

    events = read_until(stream, back)
    place = next(i for i, one in enumerate(events) if isinstance(one, Chunk))
    assert events[place].missing > 0.0
    assert Back in kinds(events[:place])
    stream.close()

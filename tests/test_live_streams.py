"""Where live samples come from: LSL, recordings played again, and lines of features."""

import dataclasses
import io
import os
import signal
import subprocess
import sys
import time
import uuid

import numpy as np
import pytest

from crossfade import load_mental_math
from crossfade.live._lsl import _CONFIG, Joint, LslStream, lsl
from crossfade.live._run import check_stream, open_replay, windows_of
from crossfade.live._streams import (
    _HELD_LINES,
    Back,
    Chunk,
    Ended,
    FeatureLines,
    Lost,
    Marker,
    Note,
    Rehearsal,
    Replay,
    Row,
)
from crossfade.signals._online import OnlineFeatures
from crossfade.signals.recordings import Annotation
from tests.live_world import CHANNELS, RECIPE, signal_of


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


# -- gaps and clocks ------------------------------------------------------------------------


def chunks_of(*stamps, waits=(0.0, 0.0)):
    joint, found, now = Joint(100.0), [], 0.0
    for part, wait in zip(stamps, waits, strict=False):
        now += wait
        found += joint.chunks(np.zeros((2, len(part))), np.asarray(part), now)
    return found


def test_samples_that_join_have_no_gap():
    time = np.arange(200) / 100.0
    jitter = 0.02 * np.random.default_rng(0).standard_normal(200)
    found = chunks_of(time[:77] + jitter[:77], time[77:] + jitter[77:])
    assert [chunk.gap for chunk in found] == ["", ""]
    assert sum(chunk.samples.shape[1] for chunk in found) == 200


def test_a_gap_cuts_a_chunk():
    time = np.arange(200) / 100.0
    time[120:] += 0.5
    found = chunks_of(time)
    assert [chunk.samples.shape[1] for chunk in found] == [120, 80]
    assert [chunk.gap for chunk in found] == ["", "0.5 s of samples are missing."]
    assert [chunk.missing for chunk in found] == pytest.approx([0.0, 0.5])
    assert found[1].stamp == time[-1]


def test_a_clock_that_jumps_is_no_gap():
    first, later = np.arange(100) / 100.0, 1.0 + np.arange(100) / 100.0
    back = chunks_of(first, later - 3600.0)
    assert back[1].gap == "The clock of the stream jumped back by 3.6e+03 s."
    ahead = chunks_of(first, later + 60.0, waits=(0.0, 1.0))
    assert ahead[1].gap == "The clock of the stream jumped ahead by 60 s."
    waited = chunks_of(first, later + 60.0, waits=(0.0, 61.0))
    assert waited[1].gap == "60 s of samples are missing."
    assert [one[1].missing for one in (back, ahead, waited)] == pytest.approx([0.0, 0.0, 60.0])


def test_a_stamp_that_is_no_number_is_taken_for_the_next():
    time = np.arange(50) / 100.0
    time[10:13], time[49] = np.nan, np.inf
    found = chunks_of(time, np.full(3, np.nan))
    assert [chunk.gap for chunk in found] == ["", ""]
    assert [chunk.stamp for chunk in found] == pytest.approx([0.5, 0.53])


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


def test_a_replay_that_is_late_hands_over_a_second_at_once():
    """So that commands are heard, however fast it is played, or slow the session."""
    clock = Clock()
    samples = signal_of("rest", 30.0)
    stream = Replay("r", samples, 100.0, CHANNELS, clock=clock, sleep=clock.sleep)
    list(stream.read())
    clock.now += 20.0
    for _ in range(10):
        [chunk] = stream.read()
        assert chunk.samples.shape == (2, 100)
    assert sum(one.samples.shape[1] for one in until_end(stream)[:-1]) > 1900


@pytest.mark.parametrize("kind", ["replay", "rehearsal"])
def test_played_fast_it_hands_over_many_samples_at_once(kind):
    """Or the session would run without a pause, for a few samples each time."""
    clock, samples = Clock(), signal_of("rest", 60.0)
    options = {"speed": 60.0, "clock": clock, "sleep": clock.sleep}
    if kind == "replay":
        stream = Replay("r", samples, 100.0, CHANNELS, **options)
    else:
        stream = Rehearsal("r", {"rest": samples}, 100.0, CHANNELS, **options)
        stream.ask("rest")
    sizes = []
    for _ in range(200):
        clock.now += 0.0005  # what the session does with each
        sizes += [one.samples.shape[1] for one in stream.read() if isinstance(one, Chunk)]
        if sum(sizes) >= 4000:
            break
    assert sum(sizes) >= 4000
    # 6,000 samples a second; it waits 20 ms.
    assert all(size >= 100 for size in sizes)


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


def test_a_recording_without_labels_says_which_it_has(tmp_path, write_edf):
    data = signal_of("rest", 10.0)
    path = write_edf(tmp_path / "a.edf", data, CHANNELS, annotations=[(1.0, 2.0, "blink")])
    how = {"speed": 1.0}
    with pytest.raises(
        ValueError, match=r"No annotation .* \(rest, work\); it has blink. Add --la"
    ):
        open_replay(path, CHANNELS, ("rest", "work"), annotated=True, **how)
    assert open_replay(path, CHANNELS, ("rest", "work"), annotated=False, **how).sfreq == 100.0


# -- lines of features ----------------------------------------------------------------------


def lines_of(content):
    return FeatureLines("standard input", io.BytesIO(content).read, ["a", "b"], 2)


def test_lines_are_csv_or_json():
    lines = [
        "\ufeffb,label,a\r\n",
        "2,rest,1\n",
        "\n",
        "2.5,,1.5\n",
        '{"a": 3, "b": 4, "label": "work"}\n',
    ]
    lines += ["[5, 6]\n", '{"features": [7, 8], "label": null}\n']
    events = until_end(lines_of("".join(lines).encode()))
    rows = [(one.features.tolist(), one.label) for one in events if isinstance(one, Row)]
    assert rows == [
        ([1.0, 2.0], "rest"),
        ([1.5, 2.5], None),
        ([3.0, 4.0], "work"),
        ([5.0, 6.0], None),
        ([7.0, 8.0], None),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1,2,3", "it has 3 cells, and the header 2."),
        ("1,x", "could not convert string to float: 'x'"),
        ("1,nan", "a feature is no finite number."),
        ('{"a": 1}', "the feature b of the prior is missing."),
        ("[1, 2, 3]", "it has 3 features, and the prior 2."),
        ("[1, ", "Expecting value"),
        ('{"features": "12"}', "features are a list of 2 numbers."),
        ('{"features": {"a": 1, "b": [2]}}', "float() argument must be"),
        ("[1, 1" + "0" * 400 + "]", "int too large to convert to float"),
        ("[1, " + "9" * 5000 + "]", "Exceeds the limit"),
        ("[" * 100_000, "its brackets are nested 100000 deep, and 100 are allowed"),
        ('1,"2', "unexpected end of data"),
        ("1," + "2" * 200_000, "field larger than field limit"),
        ("1," + "2" * 2_000_000, "it is longer than 1048576 bytes."),
        (b"1,\xff", "it is no text in UTF-8."),
    ],
)
def test_a_line_that_cannot_be_read_is_left_out(line, reason):
    line = line if isinstance(line, bytes) else line.encode()
    events = until_end(lines_of(b"a,b\n" + line + b"\n1,2"))
    assert events[0].text.startswith(f"Line 2 is left out: {reason}")
    assert events[1].features.tolist() == [1.0, 2.0]
    assert events[2] == Ended("There are no more lines in standard input.")


def test_a_first_line_that_is_no_header_is_said():
    events = until_end(lines_of(b"1,2\na,b\n3,4\n"))
    assert events[0].text == (
        "Line 1 is left out: it is no header with the feature a of the prior."
    )
    assert events[1].features.tolist() == [3.0, 4.0]


def test_lines_may_come_in_pieces():
    parts = [b"a,", b"b\n1", b",2\n3,4", b"\n", b"x" * 3_000_000, b"x\n5", b",6"]
    events = until_end(FeatureLines("a pipe", lambda n: parts.pop(0) if parts else b"", None, 2))
    rows = [one.features.tolist() for one in events if isinstance(one, Row)]
    assert rows == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert [one.text for one in events if isinstance(one, Note)] == [
        "Line 4 is left out: it is longer than 1048576 bytes."
    ]


def test_lines_wait_for_a_session_that_is_slower():
    taken = 0

    def read(n):
        nonlocal taken
        taken += 1
        return b"[1, 2]\n" if taken <= 1000 else b""

    lines = FeatureLines("a pipe", read, None, 2)
    for number in range(1, 1001):
        # One at a time, so that commands are heard in between.
        [row] = next(found for found in iter(lambda: list(lines.read()), None) if found)
        assert isinstance(row, Row)
        # Those in the queue, and one in the hands of the reader.
        assert taken <= number + _HELD_LINES + 1
    assert until_end(lines) == [Ended("There are no more lines in a pipe.")]


def test_a_pipe_that_fails_ends_the_stream():
    def read(n):
        raise OSError(5, "Input/output error")

    [end] = until_end(FeatureLines("a pipe", read, None, 2))
    assert end.text == "a pipe cannot be read any further: [Errno 5] Input/output error."


# -- what does not fit the recipe -----------------------------------------------------------


def replay(channels=CHANNELS, sfreq=100.0):
    return Replay("EEG", np.zeros((len(channels), 10)), sfreq, channels)


def test_a_stream_must_have_rate_and_channels_of_the_recipe():
    windows = OnlineFeatures(RECIPE)
    assert check_stream(replay(("X", "pz", "fz")), windows) == [2, 1]
    with pytest.raises(ValueError, match=r"EEG has 250 samples a second; .* has 100. Set the ampl"):
        check_stream(replay(sfreq=250.0), windows)
    with pytest.raises(ValueError, match=r"EEG has no channel Pz, .* it has Fz, Oz. If these are"):
        check_stream(replay(("Fz", "Oz")), windows)


def test_a_prior_without_a_recipe_makes_no_features(make_prior):
    with pytest.raises(ValueError, match="does not say how its features were made"):
        windows_of(make_prior())


def test_a_prior_that_needs_the_future_is_refused(make_prior):
    prior = dataclasses.replace(make_prior(), recipe=load_mental_math().recipe)
    with pytest.raises(ValueError, match=r"zero phase, .* Make the features again with `crossfade"):
        windows_of(prior)


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


def test_no_such_stream_says_which_there_are(outlet, name):
    _ = outlet(name)
    with pytest.raises(ValueError, match=rf"no stream called '{name}-2'. There are .*'{name}'"):
        LslStream(f"{name}-2")


def test_two_streams_of_one_name_are_refused(outlet, name):
    _ = outlet(name), outlet(name, source="2")
    with pytest.raises(ValueError, match=rf"There are 2 streams called '{name}' \('{name}-"):
        LslStream(name)


def test_streams_of_another_kind_are_refused(outlet, name):
    _ = outlet(f"{name}-marks", "Markers", 0.0, "string", names=("x",))
    with pytest.raises(ValueError, match=r"is one of Markers without a sampling rate"):
        LslStream(f"{name}-marks")
    _ = outlet(name, names=())
    with pytest.raises(ValueError, match=r"does not name its 2 channels. Name them in their order"):
        LslStream(name)
    with pytest.raises(ValueError, match=r"--channels names 3 channels; the stream .* has 2"):
        LslStream(name, channels=("a", "b", "c"))


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
    # A second is missing in the middle.
    for part, at in ((samples[:, :200], first), (samples[:, 200:], first + 3.0)):
        stamps = at + np.arange(part.shape[1]) / 100.0
        sender.push_chunk(np.ascontiguousarray(part.T), timestamp=stamps)

    def chunks(events):
        return [one for one in events if isinstance(one, Chunk)]

    def enough(events):
        held = sum(chunk.samples.shape[1] for chunk in chunks(events))
        return held == 300 and any(isinstance(one, Marker) for one in events)

    events = read_until(stream, enough)
    parts = chunks(events)
    found = np.concatenate([part.samples for part in parts], axis=1)
    np.testing.assert_allclose(found, samples, rtol=1e-6)
    assert [part.gap for part in parts if part.gap] == ["1 s of samples are missing."]
    assert [one.text for one in events if isinstance(one, Marker)] == ["rest"]
    stream.close()


# For every line of its input it starts an amplifier's program in a process of its own, which sends
# samples and markers until it is killed.
SENDERS = """
import os, sys, time
import numpy as np
from mne_lsl.lsl import StreamInfo, StreamOutlet

for line in sys.stdin:
    name, source, rate = line.rstrip("\\n").split(",")
    pid = os.fork()
    if pid:
        print(pid, flush=True)
        os.waitpid(pid, 0)
        print("ended", flush=True)
        continue
    eeg = StreamInfo(name, "EEG", 2, float(rate), "float32", source)
    eeg.set_channel_names(["Fz", "Pz"])
    marks = StreamInfo(f"{name}-cues", "Markers", 1, 0.0, "string", source)
    samples, cues = StreamOutlet(eeg), StreamOutlet(marks)
    while True:
        samples.push_chunk(np.random.default_rng(0).normal(size=(10, 2)).astype(np.float32))
        cues.push_sample(["rest"])
        time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def senders(tmp_path_factory):
    pytest.importorskip("mne_lsl", reason="Needs the package mne-lsl.")
    config = tmp_path_factory.mktemp("lsl") / "lsl.cfg"
    config.write_text(_CONFIG.format(scope="machine"))
    command = [sys.executable, "-c", SENDERS]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(
        command, **pipes, env={**os.environ, "LSLAPICFG": str(config)}
    ) as process:
        yield process


@pytest.fixture
def sender(senders):
    """Start an amplifier's program, and return what kills it; the last is killed at the end."""
    running = []

    def kill():
        os.kill(running.pop(), signal.SIGKILL)
        assert senders.stdout.readline() == "ended\n"

    def start(name, source, rate=100.0):
        senders.stdin.write(f"{name},{source},{rate}\n")
        senders.stdin.flush()
        running.append(int(senders.stdout.readline()))
        return kill

    yield start
    if running:
        kill()


def open_stream(name, seconds=120.0):
    """The stream, as soon as its program is there."""
    end = time.monotonic() + seconds
    while True:
        try:
            return LslStream(name, f"{name}-cues")
        except ValueError:
            assert time.monotonic() < end


def notes_of(events):
    return [one.text for one in events if isinstance(one, (Note, Lost))]


def news_of(events):
    """What was said but silence, which a busy machine brings about by itself."""
    return [text for text in notes_of(events) if not text.startswith("No samples from")]


@pytest.mark.parametrize(("source", "later"), [("", ""), ("amp", "amp"), ("amp", "amp-2")])
def test_a_stream_that_ends_is_taken_up_when_it_is_back(sender, name, source, later):
    kill = sender(name, source)
    stream = open_stream(name)
    read_until(stream, lambda events: any(isinstance(one, Chunk) for one in events))
    kill()
    gone = [
        f"The stream of markers '{name}-cues' has ended. Windows have no label until it is back.",
        f"The stream '{name}' has ended. The session goes on when it is back.",
    ]
    events = read_until(stream, lambda events: len(news_of(events)) >= 2)
    assert sorted(news_of(events)) == sorted(gone)
    assert any(isinstance(one, Lost) for one in events)
    # The last label does not hold any longer.
    assert [one.text for one in events if isinstance(one, Marker)][-1] == ""
    sender(name, later)

    def back(events):
        place = next((i for i, one in enumerate(events) if isinstance(one, Chunk)), None)
        return place is not None and any(isinstance(one, Marker) for one in events[place:])

    events = read_until(stream, back)
    assert set(news_of(events)) == {
        f"The stream '{name}' is back.",
        f"The stream '{name}-cues' is back.",
    }
    place = next(i for i, one in enumerate(events) if isinstance(one, Chunk))
    assert events[place].gap.endswith("s of samples are missing.")
    assert Back(f"Samples from '{name}' come again.") in events[:place]
    stream.close()


def test_a_stream_that_comes_back_as_another_is_not_taken_up(sender, name):
    kill = sender(name, "")
    stream = open_stream(name)
    kill()
    sender(name, "", rate=250.0)
    wrong = f"The stream '{name}' is back with Fz, Pz at 250 Hz; the session has Fz, Pz at 100 Hz."
    events = read_until(stream, lambda events: any(wrong in one for one in notes_of(events)))
    assert not any(one == f"The stream '{name}' is back." for one in notes_of(events))
    stream.close()


def test_a_silent_stream_gives_way_to_a_new_one(outlet, name):
    """As when a program hangs, or a cable is pulled, and the connection stays open."""
    outlet(name)
    stream = LslStream(name)
    wait_for(outlet.kept[0])
    silent = f"No samples from '{name}' for 2 s. Is the amplifier on? The session goes on when"
    read_until(stream, lambda events: any(silent in one for one in notes_of(events)))
    second = outlet(name, source="2")
    # While both are there, it is not clear which is meant.
    both = f"There are 2 streams called '{name}'"
    read_until(stream, lambda events: any(both in one for one in notes_of(events)))
    del outlet.kept[0]
    read_until(stream, lambda events: f"The stream '{name}' is back." in notes_of(events))
    second.push_chunk(np.ones((5, 2), np.float32))
    events = read_until(stream, lambda events: any(isinstance(one, Chunk) for one in events))
    chunk = next(one for one in events if isinstance(one, Chunk))
    assert (chunk.samples == 1.0).all()
    stream.close()


def test_a_marker_without_a_time_is_one_of_now(outlet, name):
    outlet(name)
    marks = outlet(f"{name}-cues", "Markers", 0.0, "string", names=("x",))
    stream = LslStream(name, f"{name}-cues")
    wait_for(marks)
    before = lsl().local_clock()
    marks.push_sample(["rest"], timestamp=float("nan"))
    events = read_until(stream, lambda events: any(isinstance(one, Marker) for one in events))
    [mark] = [one for one in events if isinstance(one, Marker)]
    assert before <= mark.stamp <= lsl().local_clock()
    stream.close()

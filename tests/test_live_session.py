"""A live session without a page: cues, labels, what is left out, and what is said of it."""

import errno
import itertools
import json
import os
import re

import numpy as np
import pytest

from crossfade import LiveCalibration
from crossfade.live import (
    Back,
    Chunk,
    Ended,
    Lost,
    Marker,
    Row,
    Session,
    about_session,
    write_session,
)
from crossfade.signals import OnlineFeatures
from tests.live_world import CHANNELS, RATE, RECIPE, prior_of, signal_of

#: Seconds for which a cue is announced.
READY = 3.0


@pytest.fixture(scope="module")
def prior():
    return prior_of()


class Tape:
    """A stream that hands over what it was given, a tenth of a second at a time."""

    name, sfreq, channels = "tape", RATE, CHANNELS

    def __init__(self):
        self.events, self.asked, self.stamp = [], [], 0.0

    def play(self, samples, gap="", missing=0.0):
        for place in range(0, samples.shape[1], 10):
            part = samples[:, place : place + 10]
            self.stamp += part.shape[1] / RATE
            self.events.append(Chunk(part, self.stamp, gap, missing))
            gap, missing = "", 0.0

    def read(self):
        return [self.events.pop(0)] if self.events else []

    def ask(self, label):
        self.asked.append(label)

    def close(self):
        pass


@pytest.fixture
def begin(prior):
    """Begin a session on a tape; its messages, predictions and the model's moment are kept."""

    def make(labels="cues", windows=True, live=None, **options):
        options.setdefault("finish", lambda session: "Finished.")
        tape = Tape()
        live = live or LiveCalibration(prior, folder=options.pop("folder", None))
        online = OnlineFeatures(RECIPE) if windows else None
        session = Session(live, tape, online, labels=labels, **options)
        session.told = []
        session.tell = session.told.append
        return session, tape

    return make


def tell(session, what):
    session.do({"do": what})
    session.step()


def drain(session, tape):
    while tape.events:
        session.step()


def play(session, tape, samples, gap="", missing=0.0):
    tape.play(samples, gap, missing)
    drain(session, tape)


def said(session):
    return [note["text"] for note in session.view.notes]


def follow(session, tape, n_cues, n_windows=3, seed=0):
    """Do what so many cues say."""
    for turn in range(n_cues):
        assert session.phase == "ready"
        label = tape.asked[-1]
        seconds = READY + n_windows
        play(session, tape, signal_of(label, seconds, seed=seed + turn))


def test_cues_label_the_windows_within_them(begin):
    session, tape = begin(per_cue=3)
    play(session, tape, signal_of("rest", 2.5))
    assert session.live.windows == ()
    tell(session, "start")
    assert session.message()["left"] == READY
    follow(session, tape, 2)
    assert sorted(tape.asked[:2]) == ["rest", "work"]
    assert session.message()["counts"] == {"rest": 3, "work": 3}
    # A window begins with its cue, and the next ones follow it.
    starts = [window.start for window in session.live.windows]
    first = 2.5 + READY
    np.testing.assert_allclose(starts[:3], [first, first + 1.0, first + 2.0])
    np.testing.assert_allclose(np.diff(starts)[2], 1.0 + READY)


def test_live_windows_are_those_of_the_recording(begin):
    session, tape = begin(per_cue=4)
    tell(session, "start")
    samples = signal_of("rest", READY + 4.0)
    play(session, tape, samples)
    offline = OnlineFeatures(RECIPE).push(samples[:, round(READY * RATE) :])
    for window, other in zip(session.live.windows, offline, strict=True):
        np.testing.assert_allclose(window.features, other.features, rtol=1e-12)


def test_a_session_pauses_when_the_accuracy_is_enough(begin, prior):
    session, tape = begin(live=LiveCalibration(prior, want=0.51))
    tell(session, "start")
    follow(session, tape, 2, n_windows=5)
    assert session.phase == "paused"
    assert session.message()["advice"]["stop"]
    tell(session, "start")
    assert session.phase == "ready"


def test_after_calibration_windows_are_predicted(begin):
    published = []
    session, tape = begin(
        per_cue=3, publish=lambda one, stamp: published.append((one, stamp)) or ""
    )
    tell(session, "start")
    follow(session, tape, 2)
    tell(session, "finish")
    assert (session.phase, said(session)) == ("predicting", ["Finished."])
    n = len(session.live.windows)
    play(session, tape, signal_of("rest", 6.0, seed=9))
    labels = [one["label"] for one, _ in published]
    assert labels.count("rest") >= 5
    assert session.message()["prediction"] == published[-1][0]
    assert sum(published[0][0]["probabilities"].values()) == pytest.approx(1.0)
    assert published[-1][1] == pytest.approx(tape.stamp, abs=1.0)
    assert len(session.live.windows) == n
    # The last prediction is not one of now.
    tape.events = [Ended("The recording has ended.")]
    session.step()
    assert session.message()["prediction"] is None


# -- a session that goes on ---------------------------------------------------------------------


def test_a_session_that_continues_has_its_windows(begin, tmp_path):
    session, tape = begin(per_cue=3, folder=tmp_path / "s")
    tell(session, "start")
    play(session, tape, signal_of("rest", READY + 1.5))
    play(session, tape, signal_of("rest", 1.6), gap="0.4 s of samples are missing.")
    counts = session.message()["counts"]
    session.live.close()
    session, tape = begin(per_cue=3, live=LiveCalibration.load(tmp_path / "s"))
    assert "3 windows" in said(session)[0]
    assert session.message()["counts"] == counts
    tell(session, "start")
    follow(session, tape, 1)
    write_session(session, about_session(session.live, session.stream, None))
    text = (tmp_path / "s" / "report.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    assert data["state"]["n_windows"] == 6
    assert [point["n"] for point in data["course"]] == [2, 3, 4, 5]
    session.live.close()


def test_without_a_label_there_is_no_model(begin, tmp_path):
    session, tape = begin(labels="keys", folder=tmp_path / "s")
    play(session, tape, signal_of("rest", 2.0))
    assert "No model" in write_session(session, about_session(session.live, tape, None))
    assert (tmp_path / "s" / "report.html").is_file()
    assert not (tmp_path / "s" / "model.json").exists()
    session.live.close()


# -- what is left out -----------------------------------------------------------------------


def test_a_gap_leaves_its_window_out(begin):
    session, tape = begin(per_cue=3)
    tell(session, "start")
    play(session, tape, signal_of("rest", READY + 1.5))
    play(session, tape, signal_of("rest", 2.5), gap="0.4 s of samples are missing.")
    usable = [window.usable for window in session.live.windows]
    assert usable == [True, False, True]
    assert said(session) == ["Left out: 0.4 s of samples are missing."]
    assert session.message()["left_out"] == 1


def test_a_long_gap_announces_the_cue_anew(begin):
    session, tape = begin(per_cue=4)
    tell(session, "start")
    play(session, tape, signal_of("rest", READY + 1.5))
    assert session.phase == "cue"
    why = "1.2 s of samples are missing."
    play(session, tape, signal_of("rest", READY - 0.1), gap=why, missing=1.2)
    assert session.phase == "ready"
    # Nothing between the two announcements has a label.
    assert [window.usable for window in session.live.windows] == [True, False]
    play(session, tape, signal_of("rest", 2.1))
    assert session.phase == "cue"
    assert [window.usable for window in session.live.windows] == [True, False, True, True]
    assert len(tape.asked) == 2


def picture_of(session):
    """What the page last heard of the channels."""
    shown = [one for one in session.told if one["kind"] == "signal" and "quality" in one]
    return {channel["state"] for channel in shown[-1]["quality"]}


def test_a_stream_that_is_lost_in_a_cue_announces_it_anew(begin):
    session, tape = begin(per_cue=4, clock=itertools.count().__next__)
    tell(session, "start")
    play(session, tape, signal_of("rest", READY + 1.5))
    assert (session.phase, picture_of(session)) == ("cue", {"good"})
    tape.events = [Lost("The stream has ended.")]
    session.step()
    message = session.message()
    assert (message["phase"], message["lost"], message["left"]) == ("lost", True, 0.0)
    assert picture_of(session) == {"missing"}
    # Ten seconds later: what waited in the meantime belongs to no cue.
    late = signal_of("rest", 6.0)
    tape.read = lambda: [
        Back("Samples come again."),
        Chunk(late, tape.stamp, "10 s of samples are missing.", 10.0),
    ]
    session.step()
    del tape.read
    assert (session.phase, session.lost, picture_of(session)) == ("ready", False, {"good"})
    assert session.message()["left"] == READY
    assert len(session.live.windows) == 1
    assert said(session) == ["The stream has ended.", "Samples come again."]
    follow(session, tape, 1, n_windows=4)
    assert [window.label is None for window in session.live.windows] == [False] * 5
    np.testing.assert_allclose(session.live.windows[1].start, 2 * READY + 1.5 + 6.0)


def test_a_flat_channel_leaves_windows_out_and_is_said(begin):
    session, tape = begin(per_cue=3, clock=itertools.count().__next__)
    tell(session, "start")
    samples = signal_of("rest", READY + 3.0)
    samples[1, round((READY + 1.0) * RATE) :] = 5.0
    play(session, tape, samples)
    assert [window.usable for window in session.live.windows] == [True, False, False]
    assert "Left out: Pz is flat." in said(session)
    assert picture_of(session) == {"good", "flat"}
    play(session, tape, signal_of("rest", 2.0))
    assert picture_of(session) == {"good"}


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_missing_samples_are_drawn_and_said(begin, value):
    session, tape = begin(per_cue=3, clock=itertools.count().__next__)
    tell(session, "start")
    samples = signal_of("rest", READY + 3.0)
    samples[1, round((READY + 1.0) * RATE) :] = value
    play(session, tape, samples)
    assert [window.usable for window in session.live.windows] == [True, False, False]
    for message in session.told:
        json.dumps(message, allow_nan=False)
    pictures = [one for one in session.told if one["kind"] == "signal" and "quality" in one]
    assert [channel["state"] for channel in pictures[-1]["quality"]] == ["good", "missing"]
    # A sample that is missing is drawn as a gap.
    assert set(pictures[-1]["samples"][1]) == {None}
    assert None not in pictures[-1]["samples"][0]


def test_lines_too_far_from_the_crowd_are_left_out(begin, prior):
    published = []
    session, tape = begin(
        labels="lines", windows=False, publish=lambda one, at: published.append(one) or ""
    )
    tape.sfreq = None
    near, far = np.zeros(prior.n_features), np.full(prior.n_features, 1e10)
    tape.events = [Row(near, "rest"), Row(far, "work"), Row(near, "work")]
    drain(session, tape)
    assert [window.usable for window in session.live.windows] == [True, False, True]
    assert "other units" in said(session)[0]
    assert session.message()["counts"] == {"rest": 1, "work": 1}
    session.do({"do": "finish"})
    tape.events = [Row(np.array([1e308, -1e308] * 3), None), Row(near, None)]
    drain(session, tape)
    assert [one["label"] is None for one in published] == [True, False]


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_pauses(begin, tmp_path, monkeypatch):
    session, tape = begin(per_cue=3, folder=tmp_path / "s")
    tell(session, "start")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        play(session, tape, signal_of("rest", READY + 2.0))
    assert session.phase == "paused"
    assert "No space left on device" in said(session)[0]
    tell(session, "start")
    play(session, tape, signal_of("rest", READY + 3.0))
    assert len(session.live.windows) == 3
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        tell(session, "undo")
    assert "No space left on device" in said(session)[-1]
    session.live.close()
    again = LiveCalibration.load(tmp_path / "s")
    assert len(again.windows) == 3
    again.close()


def test_a_calibration_that_could_not_be_written_can_be_finished_again(begin):
    calls = []

    def finish(session):
        calls.append(len(session.live.windows))
        return full() if len(calls) == 1 else "Finished."

    session, tape = begin(labels="markers", finish=finish)
    tape.events = [Marker("rest", 0.0)]
    play(session, tape, signal_of("rest", 3.0))
    tape.events = [Ended("The recording has ended.")]
    session.step()
    assert session.phase == "paused"
    assert "No space left on device" in said(session)[-1]
    tell(session, "finish")
    assert (session.phase, said(session)[-1], calls) == ("predicting", "Finished.", [3, 3])


# -- labels ---------------------------------------------------------------------------------


def test_markers_name_the_class_of_what_follows(begin):
    session, tape = begin(labels="markers")
    assert session.phase == "recording"
    tape.events.append(Marker("rest", 0.5))
    play(session, tape, signal_of("rest", 3.5))
    tape.events.append(Marker("1", 3.5))
    play(session, tape, signal_of("work", 2.5))
    # The first window and the fourth hold the moment of a marker.
    assert [window.label for window in session.live.windows] == [0, 0, 1, 1]
    assert [window.start for window in session.live.windows] == [1.0, 2.0, 4.0, 5.0]


def test_many_markers_at_once_lose_no_label(begin):
    """As of a recording that is played fast, or a machine that was busy."""
    session, tape = begin(labels="markers")
    labels = np.random.default_rng(0).integers(2, size=60).tolist()
    tape.events += [Marker(str(label), float(second)) for second, label in enumerate(labels)]
    samples = np.concatenate(
        [signal_of(("rest", "work")[label], 1.0, seed=n) for n, label in enumerate(labels)], axis=1
    )
    tape.events.append(Chunk(samples, 60.0 - 1.0 / RATE))
    drain(session, tape)
    assert [window.label for window in session.live.windows] == labels


def test_a_window_that_began_in_a_pause_is_left_alone(begin):
    session, tape = begin(labels="keys")
    play(session, tape, signal_of("rest", 1.5))
    tell(session, "pause")
    play(session, tape, signal_of("rest", 1.0))
    tell(session, "start")
    play(session, tape, signal_of("rest", 2.5))
    assert [window.start for window in session.live.windows] == [0.0, 3.0, 4.0]


def test_a_marker_nobody_knows_is_said_and_ends_the_label(begin):
    session, tape = begin(labels="markers")
    tape.events += [Marker("rest", 0.0)]
    play(session, tape, signal_of("rest", 2.0))
    tape.events += [Marker("blink", 2.0)]
    play(session, tape, signal_of("rest", 2.0))
    assert [window.label for window in session.live.windows] == [0, 0, None, None]
    assert "'blink'" in said(session)[0]


def test_keys_label_windows_that_are_there(begin):
    session, tape = begin(labels="keys")
    play(session, tape, signal_of("rest", 2.0))
    session.do({"do": "label", "window": 1, "label": "rest"})
    session.do({"do": "label", "window": 0, "label": "nonsense"})
    session.do({"do": "label", "window": 7, "label": "rest"})
    session.do({"do": "dance"})
    session.step()
    assert [window.label for window in session.live.windows] == [None, 0]
    assert said(session)[0] == "Window 2 is rest now."
    assert "nonsense" in said(session)[1]
    assert "no window" in said(session)[2]


def test_a_line_without_a_label_does_not_inherit_the_last(begin, prior):
    session, tape = begin(labels="keys", windows=False)
    row = np.zeros(prior.n_features)
    tape.events = [Row(row, "rest"), Row(row, None), Row(row, "1"), Row(row, None)]
    drain(session, tape)
    session.do({"do": "label", "window": 3, "label": "rest"})
    session.step()
    tape.events = [Row(row, None)]
    session.step()
    assert [window.label for window in session.live.windows] == [0, None, 1, 0, None]


def test_cues_for_lines_leave_out_the_one_that_began_before(begin, prior):
    session, tape = begin(labels="cues", windows=False, per_cue=2)
    row = np.zeros(prior.n_features)
    tell(session, "start")
    for _ in range(3):
        tape.events = [Row(row, None)]
        session.step()
    assert len(session.live.windows) == 2
    assert session.phase == "ready"


# -- the page comes and goes ----------------------------------------------------------------


def test_a_closed_page_pauses_cues_until_it_is_back(begin):
    session, tape = begin(per_cue=3)
    tell(session, "start")
    play(session, tape, signal_of("rest", READY + 1.2))
    tell(session, "left")
    assert session.phase == "paused"
    assert "page was closed" in said(session)[0]
    play(session, tape, signal_of("rest", 3.0))
    assert len(session.live.windows) == 1
    tell(session, "back")
    assert session.phase == "ready"
    follow(session, tape, 1)
    assert len(session.live.windows) == 4


def test_a_stream_that_ends_finishes_the_calibration(begin):
    session, tape = begin(labels="markers")
    tape.events = [Marker("rest", 0.0)]
    play(session, tape, signal_of("rest", 2.0))
    tape.events = [Ended("The recording has ended."), Ended("The recording has ended.")]
    session.step()
    session.step()
    assert session.phase == "predicting"
    assert said(session) == ["The recording has ended.", "Finished."]
    tell(session, "start")
    assert (session.phase, said(session)[-1] != "Finished.") == ("predicting", True)

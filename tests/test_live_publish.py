"""Where predictions go: lines of a pipe, and the Lab Streaming Layer if that is wanted."""

import json
import os
from types import SimpleNamespace

import pytest

from crossfade.live import _publish
from crossfade.live._publish import Lines, Publisher

PREDICTION = {"window": 0, "label": "rest", "probabilities": {"rest": 0.75, "work": 0.25}}


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    lines = Lines(writer)
    with open(reader, encoding="utf-8") as stream:
        yield stream, lines
    lines.close()
    os.close(writer)


def test_a_prediction_is_one_line(pipe):
    stream, lines = pipe
    assert lines.put("http://address") == ""
    publisher = Publisher(None, ["rest", "work"], lines)
    assert publisher.begin() == ""
    assert publisher(PREDICTION, 12.34567) == ""
    assert stream.readline() == "http://address\n"
    assert json.loads(stream.readline()) == {"time": 12.3457, **PREDICTION}


def test_a_reader_that_is_gone_is_said_once(pipe):
    stream, lines = pipe
    stream.close()
    assert lines.put("a line") == ""
    lines.close()
    assert lines.put("a line") == (
        "Standard output was closed: predictions are no longer written to it."
    )
    assert [lines.put("a line") for _ in range(5)] == [""] * 5


def test_a_reader_that_sleeps_is_said_once_and_holds_up_nothing(pipe):
    stream, lines = pipe
    told = [lines.put(f"{number:0999d}") for number in range(3000)]
    assert [one for one in told if one] == [
        "Nobody reads standard output: predictions are left out there until it is."
    ]
    # What was taken is there when it is read after all.
    n = told.index(next(one for one in told if one))
    assert [int(stream.readline()) for _ in range(n)] == list(range(n))


def test_without_a_name_nothing_is_opened_to_the_network(pipe, monkeypatch):
    def never():
        raise AssertionError("The library was asked for.")

    monkeypatch.setattr(_publish, "lsl", never)
    assert Publisher(None, ["rest"], pipe[1]).begin() == ""


@pytest.mark.parametrize(("lsl_time", "when"), [(True, 12.5), (False, 0.0)])
def test_a_stream_begins_when_it_is_told_to(pipe, monkeypatch, lsl_time, when):
    made, sent = [], []
    outlet = SimpleNamespace(
        push_sample=lambda values, timestamp: sent.append((values.tolist(), timestamp))
    )

    class Info(SimpleNamespace):
        def set_channel_names(self, names):
            self.names = names

    def info(*about):
        made.append(Info(about=about))
        return made[-1]

    library = SimpleNamespace(StreamInfo=info, StreamOutlet=lambda info: outlet)
    monkeypatch.setattr(_publish, "lsl", lambda: library)
    publisher = Publisher("mine", ["rest", "work"], pipe[1], lsl_time=lsl_time)
    publisher(PREDICTION, 0.0)
    assert (made, sent) == ([], [])
    assert publisher.begin() == publisher.begin() == ""
    publisher({"window": 1, "label": None, "note": "flat"}, 0.0)
    publisher(PREDICTION, 12.5)
    assert [one.about[:3] for one in made] == [("mine", "Prediction", 2)]
    # The time of the window's last sample; of no LSL stream, that of sending.
    assert sent == [([0.75, 0.25], when)]


def test_a_stream_that_cannot_begin_is_said(pipe, monkeypatch):
    def fail(*_):
        raise RuntimeError("The StreamOutlet could not be created.")

    monkeypatch.setattr(_publish, "lsl", lambda: SimpleNamespace(StreamInfo=fail))
    assert Publisher("mine", ["rest"], pipe[1]).begin() == (
        " Predictions are not published as an LSL stream: The StreamOutlet could not be created."
    )

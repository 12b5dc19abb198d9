"""Where predictions go: lines of a pipe, and the Lab Streaming Layer if that is wanted."""

import json
import os

import pytest

from crossfade.live import Lines, Publisher

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
    assert "closed" in lines.put("a line")
    assert [lines.put("a line") for _ in range(5)] == [""] * 5


def test_a_reader_that_sleeps_is_said_once_and_holds_up_nothing(pipe):
    stream, lines = pipe
    told = [lines.put(f"{number:0999d}") for number in range(3000)]
    assert len([one for one in told if one]) == 1
    # What was taken is there when it is read after all.
    n = told.index(next(one for one in told if one))
    assert [int(stream.readline()) for _ in range(n)] == list(range(n))

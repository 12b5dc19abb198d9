"""crossfade live as people use it: the command, its address, its page in a real browser."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from contextlib import ExitStack, closing, contextmanager
from itertools import pairwise
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from crossfade import LiveCalibration, load_model
from crossfade.cli import main
from crossfade.live import Back, Lost, Rehearsal, Session, about_session, lsl, serve, write_session
from crossfade.signals import OnlineFeatures
from tests.live_world import CHANNELS, RATE, RECIPE, prior_of, signal_of

pytest.importorskip("starlette", reason="Needs the extra live.")
pytest.importorskip("uvicorn", reason="Needs the extra live.")
client = pytest.importorskip("websockets.sync.client", reason="Needs the extra live.")

#: Seconds after which something is taken to hang, on a machine that is busy with other things.
PATIENCE = 120.0


@pytest.fixture(scope="module")
def prior():
    return prior_of()


@pytest.fixture(scope="module")
def patient():
    """A prior without forecasts: its sessions never advise to stop."""
    return prior_of(rehearse=False)


@pytest.fixture(scope="module")
def prior_file(patient, tmp_path_factory):
    path = tmp_path_factory.mktemp("prior") / "prior.npz"
    patient.save(path)
    return path


class Amplifier(Rehearsal):
    """A recorded person whose amplifier can be switched off."""

    off = was_off = False

    def read(self):
        if self.off != self.was_off:
            self.was_off = self.off
            yield Lost("No samples.") if self.off else Back("Samples come again.")
        if self.off:
            time.sleep(0.01)
        else:
            yield from super().read()


@contextmanager
def serving(prior, folder, *, speed=10.0, returns=False):
    """A session with a recorded person behind a page; its address."""
    # Longer than any test takes, since a recording that is at its end ends the session.
    segments = {label: signal_of(label, 7200.0, seed=7) for label in ("rest", "work")}
    stream = Amplifier("recorded", segments, RATE, CHANNELS, speed=speed)
    live, windows = LiveCalibration(prior, folder=folder), OnlineFeatures(RECIPE)
    about = about_session(live, stream, windows, returns=returns)
    session = Session(
        live, stream, windows, per_cue=3, finish=lambda session: write_session(session, about)
    )
    addresses = []
    thread = threading.Thread(target=serve, args=(session, about, addresses.append))
    thread.start()
    try:
        wait_until(lambda: addresses)
        yield addresses[0], session
    finally:
        session.stop()
        thread.join(timeout=PATIENCE)
        live.close()
        assert not thread.is_alive()


def wait_until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def page_of(address, more=""):
    """The socket of the page with this address."""
    parts = urlsplit(address)
    return client.connect(f"ws://{parts.netloc}/socket?{parts.query}{more}")


def until(page, wanted):
    """The first message that is wanted."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        message = json.loads(page.recv(timeout=PATIENCE))
        if wanted(message):
            return message
    raise AssertionError("The message did not come.")


def phase_of(page, name):
    """The first state of a phase; a picture of the signal has a phase, too, and nothing else."""
    return until(page, lambda one: one["kind"] == "state" and one["phase"] == name)


def said(message, pattern):
    """Whether a message of the page's says something."""
    return any(re.search(pattern, note["text"]) for note in message.get("notes", ()))


# -- the address ----------------------------------------------------------------------------


def test_page_and_socket_want_the_token(patient, tmp_path, capfd):
    from websockets.exceptions import InvalidStatus

    with serving(patient, tmp_path / "s") as (address, _):
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address) as answer:
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        base = address.partition("?")[0]
        for query in ("", "?token=", "?token=another"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(base + query)
            refused.value.close()
            assert refused.value.code == 403
            with pytest.raises(InvalidStatus) as closed:
                client.connect(f"ws://{urlsplit(address).netloc}/socket{query}")
            assert closed.value.response.status_code == 403
    # A refusal is no error.
    assert capfd.readouterr().err == ""


def test_many_pages_that_close_at_once_leave_no_traceback(patient, tmp_path, capfd):
    with serving(patient, tmp_path / "s") as (address, session):
        with ExitStack() as opened:
            pages = [opened.enter_context(page_of(address)) for _ in range(60)]
            until(pages[-1], lambda one: one["kind"] == "signal")
            for page in pages:
                page.socket.shutdown(socket.SHUT_RDWR)
        with page_of(address) as again:
            until(again, lambda one: one["kind"] == "signal")
        assert session.phase == "waiting"
    assert capfd.readouterr().err == ""


def test_cues_pause_while_no_page_is_open(patient, tmp_path):
    with serving(patient, tmp_path / "s") as (address, session):
        with page_of(address, "&view=participant") as shown:
            shown.send('{"do": "start"}')
            with page_of(address) as first, page_of(address) as second:
                for text in ("no json", "[" * 4000, '{"do": "left"}', "[]"):
                    first.send(text)
                until(second, lambda one: one["kind"] == "signal")
                assert session.phase == "waiting"
                first.send('{"do": "start"}')
                for page in (first, second, shown):
                    phase_of(page, "ready")
                first.close()
                until(second, lambda one: one["kind"] == "signal")
                assert session.phase in ("ready", "cue")
            phase_of(shown, "paused")
        with page_of(address) as again:
            phase_of(again, "ready")


# -- the command ----------------------------------------------------------------------------


def invoke(*options):
    return CliRunner().invoke(main, ["live", "--no-open", *map(str, options)], input="")


WRONG = {
    "no source": ([], 2, "--stream"),
    "two sources": (["--demo", "--stream", "EEG"], 2, "--stream"),
    "no prior": (["--stream", "EEG"], 2, "--prior"),
    "demo with prior": (["--demo", "--prior", "PRIOR"], 2, "--prior"),
    "markers of lines": (["--features", "-", "--prior", "PRIOR", "--markers", "M"], 2, "--markers"),
    "speed of a stream": (["--stream", "EEG", "--prior", "PRIOR", "--speed", "2"], 2, "--speed"),
    "markers unnamed": (
        ["--stream", "EEG", "--prior", "PRIOR", "--labels", "markers"],
        2,
        "--markers",
    ),
    "cues for a recording": (
        ["--replay", "EDF", "--prior", "PRIOR", "--labels", "cues"],
        1,
        "recording",
    ),
    "no annotation": (["--replay", "EDF", "--prior", "PRIOR"], 1, "blink"),
    "folder": (["--features", "-", "--prior", "PRIOR", "--folder", "EDF/s"], 1, "EDF|edf"),
}


@pytest.mark.parametrize("what", WRONG)
def test_refusals(prior_file, tmp_path, write_edf, what):
    marks = [(1.0, 2.0, "blink")]
    edf = write_edf(tmp_path / "a.edf", signal_of("rest", 10.0), CHANNELS, annotations=marks)
    options, code, word = WRONG[what]
    given = [one.replace("PRIOR", str(prior_file)).replace("EDF", str(edf)) for one in options]
    result = invoke(*given)
    assert result.exit_code == code
    assert re.search(word, result.output)
    assert "Traceback" not in result.output


@contextmanager
def running(*options, opens="--no-open", **more):
    """The command in a process of its own, and the address that it prints first."""
    start = [sys.executable, "-c", "from crossfade.cli import main; main()"]
    command = [*start, "live", *filter(None, [opens]), *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )
    try:
        line = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]+", line), process.stderr.read()
        yield process, line
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def end(process):
    """End the program as a user does; what it says."""
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=PATIENCE) == 0
    return process.stderr.read()


@pytest.fixture
def lines(prior, prior_file, tmp_path):
    """Options for lines of features, and lines of four windows of each class."""
    rows = [",".join([*prior.feature_names, "label"])]
    for label in ("rest", "work"):
        for window in OnlineFeatures(RECIPE).push(signal_of(label, 4.0)):
            rows.append(",".join([*map(str, window.features), label]))
    options = ("--prior", str(prior_file), "--features", "-", "--folder", str(tmp_path / "session"))
    return options, "\n".join(rows) + "\n"


def test_a_real_stream_drives_it_until_sigterm(prior, prior_file, tmp_path):
    """An LSL outlet on this machine, markers, predictions as LSL and as lines; then SIGTERM."""
    pytest.importorskip("mne_lsl", reason="Needs the package mne-lsl.")
    library = lsl()
    eeg_name, cue_name, out_name = (f"crossfade-{uuid.uuid4().hex[:12]}" for _ in range(3))
    info = library.StreamInfo(eeg_name, "EEG", 3, RATE, "float32", eeg_name)
    info.set_channel_names(["Fz", "Other", "Pz"])
    marks = library.StreamInfo(cue_name, "Markers", 1, 0.0, "string", cue_name)
    eeg, cues = library.StreamOutlet(info), library.StreamOutlet(marks)
    folder = tmp_path / "session"
    options = ("--prior", str(prior_file), "--stream", eeg_name, "--markers", cue_name)
    options += ("--folder", str(folder), "--publish", out_name)
    with running(*options) as (process, address), page_of(address) as page:
        assert eeg.wait_for_consumers(timeout=PATIENCE)
        assert cues.wait_for_consumers(timeout=PATIENCE)
        at = library.local_clock() + 1.0

        def send(label, seconds, seed):
            nonlocal at
            samples = np.insert(signal_of(label, seconds, seed=seed), 1, 0.0, axis=0)
            n = samples.shape[1]
            stamps = at + np.arange(n) / RATE
            eeg.push_chunk(np.ascontiguousarray(samples.T, dtype=np.float32), timestamp=stamps)
            at += n / RATE

        # Without a marker there is no label.
        send("rest", 1.0, 30)
        until(page, lambda one: one.get("n_windows") == 1)
        for turn, label in enumerate(("rest", "work", "rest", "work")):
            # A marker may overtake samples, and samples a marker: they have streams of their own.
            cues.push_sample([label], timestamp=at)
            until(page, lambda one, label=label: one.get("cue") == label)
            send(label, 5.0, turn)
            n = 6 + 5 * turn
            state = until(page, lambda one, n=n: one.get("n_windows") == n)
        assert state["counts"] == {"rest": 10, "work": 10}
        # Nobody else sees anything before the calibration is finished.
        assert library.resolve_streams(timeout=0.5, name=out_name) == []
        page.send('{"do": "finish"}')
        phase_of(page, "predicting")
        [found] = library.resolve_streams(timeout=PATIENCE, name=out_name)
        inlet = library.StreamInlet(found)
        inlet.open_stream(timeout=PATIENCE)
        send("work", 5.0, 9)
        told = [json.loads(process.stdout.readline()) for _ in range(5)]
        values, stamp = inlet.pull_sample(timeout=PATIENCE)
        inlet.close_stream()
        assert [line["label"] for line in told].count("work") >= 4
        assert values == pytest.approx(list(told[0]["probabilities"].values()), abs=1e-6)
        # The time stamp is that of the window's last sample.
        assert stamp == pytest.approx(at - 4.0, abs=0.1)
        assert str(folder / "model.json") in end(process)
    model = load_model(folder / "model.json")
    assert model.about.feature_names == prior.feature_names
    offline = OnlineFeatures(RECIPE).push(signal_of("rest", 20.0, seed=50))
    rows = pd.DataFrame([one.features for one in offline], columns=prior.feature_names)
    assert (model.predict(rows) == 0).mean() > 0.8
    assert "session report" in (folder / "report.html").read_text()
    with closing(LiveCalibration.load(folder)) as live:
        assert len(live.windows) == 21


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_at_any_moment(lines, tmp_path, number):
    """Standard input is open, and the reader waits in it; the browser blocks."""
    options, _ = lines
    mark, script = tmp_path / "browser", tmp_path / "browser.py"
    script.write_text(
        f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    )
    env = {**os.environ, "BROWSER": f"{sys.executable} {script} %s"}
    with running(*options, opens="", stdin=subprocess.PIPE, env=env) as (process, address):
        wait_until(lambda: mark.exists() and mark.read_text())
        with page_of(address) as page:
            until(page, lambda one: one["kind"] == "state")
            process.send_signal(number)
            assert process.wait(timeout=PATIENCE) == 0
        os.kill(int(mark.read_text()), signal.SIGKILL)
        error = process.stderr.read()
        assert str(tmp_path / "session" / "report.html") in error
        assert "Traceback" not in error


def test_a_process_that_is_killed_and_the_same_person_tomorrow(lines, patient, tmp_path):
    options, text = lines
    folder = tmp_path / "session"
    want = ("--want", "0.55")
    with running(*options, *want, stdin=subprocess.PIPE) as (process, address):
        process.stdin.write(text)
        process.stdin.flush()
        with page_of(address) as page:
            assert until(page, lambda one: one["kind"] == "hello")["want"] == 0.55
            state = until(page, lambda one: one.get("counts") == {"rest": 4, "work": 4})
        assert state["advice"]["stop"]
        process.kill()
    with running(*options, stdin=subprocess.PIPE) as (process, address):
        with page_of(address) as page:
            assert until(page, lambda one: one["kind"] == "state")["n_windows"] == 8
            process.stdin.close()
            process.stdin = None
            phase_of(page, "predicting")
        assert "Ctrl-C" in end(process)
    result = invoke(*options, "--want", "0.6")
    assert (result.exit_code, "begun with another" in result.output) == (1, True)
    # The next day the person is known already.
    again = (*options[:-1], str(tmp_path / "next"), "--earlier", str(folder))
    with running(*again, stdin=subprocess.PIPE) as (_, address), page_of(address) as page:
        assert until(page, lambda one: one["kind"] == "hello")["returns"]
    with closing(LiveCalibration.load(folder)) as live:
        known = patient.for_person(live.task())
    with closing(LiveCalibration.load(tmp_path / "next")) as live:
        assert live.prior == known


def test_a_recording_is_played_again(prior_file, tmp_path, write_edf):
    data = np.concatenate([signal_of(label, 10.0) for label in ("rest", "work")], axis=1)
    marks = [(0.0, 10.0, "rest"), (10.0, 10.0, "work")]
    path = write_edf(tmp_path / "a.edf", data, CHANNELS, annotations=marks)
    options = ("--prior", str(prior_file), "--replay", str(path), "--speed", "20")
    with (
        running(*options, "--folder", str(tmp_path / "s")) as (_, address),
        page_of(address) as page,
    ):
        state = phase_of(page, "predicting")
    assert state["counts"] == {"rest": 10, "work": 10}
    assert (tmp_path / "s" / "model.json").is_file()


# -- the page -------------------------------------------------------------------------------


def seen(page, selector, pattern):
    """Wait until something can be read."""
    found = page.locator(selector).filter(has_text=re.compile(pattern))
    found.wait_for(timeout=1000 * PATIENCE)


def controls(page):
    """Wait until a page is connected; it takes no key before."""
    page.locator("#start:enabled").wait_for(timeout=1000 * PATIENCE)


def assert_nothing_overlaps(page, *widths):
    """On narrow screens and on paper, cards stand below each other and none sticks out."""
    size = page.viewport_size
    for width in widths:
        page.set_viewport_size({"width": width, "height": 844})
        cards = [one.bounding_box() for one in page.locator("section:visible").all()]
        assert len(cards) >= 5
        for upper, lower in pairwise(sorted(cards, key=lambda card: card["y"])):
            assert upper["y"] + upper["height"] <= lower["y"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size(size)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["keyboard", "mouse"])
def test_calibration_from_beginning_to_end(opened, prior, tmp_path, by):
    def do(name):
        keys = {"start": "Space", "undo": "u", "finish": "f", "view": "v"}
        page.keyboard.press(keys[name]) if by == "keyboard" else page.click(f"#{name}")

    folder = tmp_path / "session"
    with serving(prior, folder, speed=20.0, returns=True) as (address, session):
        page = opened(address, color_scheme="dark" if by == "mouse" else "light")
        controls(page)
        seen(page, "#forecast-text", "0 labelled.")
        page.keyboard.press("Space") if by == "keyboard" else page.click("#word")
        seen(page, "#ask", "Get ready for|Now")
        seen(page, "#word", "^(rest|work)$")
        # A page that is slow sees few of the states.
        seen(page, "#counts", r"rest [1-9].*work [1-9]")
        assert re.match(r"alpha 0\.\d\d: \d+ % this person's own", page.inner_text("#fade-text"))
        assert "90 % interval" in page.inner_text("#forecast-text")
        number = r"[+−]\d\.\d"
        seen(page, "#gains", f"all rest {number}, all work {number}, half and half {number}")
        page.locator("#quality .good").nth(1).wait_for(timeout=1000 * PATIENCE)
        if session.phase != "paused":
            do("start")
        seen(page, "#word", "Pause")
        n = len(session.live.windows)
        do("undo")
        seen(page, "#log", "was taken back.")
        assert len(session.live.windows) == n - 1
        page.keyboard.press("1")
        seen(page, "#log", f"Window {n - 1} is rest now.")
        assert session.live.windows[-1].label == 0
        do("view")
        page.locator("header").wait_for(state="hidden", timeout=1000 * PATIENCE)
        assert page.locator("#word").bounding_box()["height"] > 100
        page.keyboard.press("v")
        page.locator("header").wait_for(timeout=1000 * PATIENCE)
        do("finish")
        seen(page, "#hint", r"probability \d+ %")
        seen(page, "#log", "model.json")
        assert page.locator("#finish").is_disabled()
        # Nothing sticks out of a laptop's screen.
        assert page.evaluate("document.documentElement.scrollHeight") <= 800
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        assert_nothing_overlaps(page, 390, 768)
        # Without its server it would try again, and say so.
        page.close()
    report = opened((folder / "report.html").as_uri())
    seen(report, "#kind", "session report")
    assert re.match(r"Expect \d+ % of new windows to be right", report.inner_text("h1"))
    facts = report.inner_text("#result table")
    assert re.search(r"Labelled windows\s+\d+ of rest, \d+ of work", facts)
    assert_nothing_overlaps(report, 390, 768)
    report.emulate_media(media="print")
    assert_nothing_overlaps(report, 1000)


@pytest.mark.slow
def test_the_participant_is_asked_only_while_somebody_measures(opened, patient, tmp_path):
    with serving(patient, tmp_path / "s", speed=2.0) as (address, session):
        page, shown = opened(address), opened(f"{address}&view=participant")
        controls(page)
        seen(shown, "#word", "^Please wait$")
        page.keyboard.press("Space")
        seen(shown, "#word", "^(rest|work)$")
        # The participant's keys do nothing.
        for key in ("Space", "f", "u", "t", "v", "1"):
            shown.keyboard.press(key)
        assert not shown.locator("nav").is_visible()
        seen(shown, "#ask", "^Now$")
        session.stream.off = True
        seen(shown, "#ask", "^No signal$")
        assert shown.inner_text("#word") == "Please wait"
        assert shown.inner_text("#count") == ""
        page.locator("#quality .missing").nth(1).wait_for(timeout=1000 * PATIENCE)
        session.stream.off = False
        seen(shown, "#ask", "^Get ready for$")
        page.reload()
        seen(page, "#ask", "Get ready for|Now")
        page.close()
        seen(shown, "#word", "^Pause$")
        # It would connect again at once.
        shown.evaluate("connect = () => {}; socket.close()")
        seen(shown, "#ask", "^No connection$")
        assert shown.inner_text("#count") == shown.inner_text("#hint") == ""
        shown.close()

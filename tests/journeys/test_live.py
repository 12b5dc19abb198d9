"""crossfade live as people use it: the command, its address, its page in a real browser."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from crossfade import (
    LiveCalibration,
    MulticlassPrior,
    Task,
    TaskPrior,
    TaskSet,
    load_model,
)
from crossfade.cli import main
from crossfade.live._lsl import lsl
from crossfade.live._run import about_session, open_live, write_session
from crossfade.live._session import Session
from crossfade.live._streams import Back, Lost, Rehearsal
from crossfade.signals._online import OnlineFeatures
from tests.live_world import CHANNELS, NAMES, RATE, RECIPE, prior_of, signal_of, tasks_of

pytest.importorskip("starlette", reason="Needs the extra live.")
pytest.importorskip("uvicorn", reason="Needs the extra live.")
client = pytest.importorskip("websockets.sync.client", reason="Needs the extra live.")

TOKEN = "a-token"
#: Seconds after which something is taken to hang, on a machine that is busy with other things.
PATIENCE = 120.0


@pytest.fixture(scope="module")
def prior():
    return prior_of()


@pytest.fixture(scope="module")
def prior_file(prior, tmp_path_factory):
    path = tmp_path_factory.mktemp("prior") / "prior.npz"
    prior.save(path)
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
def serving(
    prior,
    folder,
    *,
    speed=10.0,
    per_cue=3,
    spoil=lambda samples: samples,
    recipe=RECIPE,
    signal=signal_of,
    seconds=7200.0,
    returns=False,
):
    """A session with a recorded person behind a page, who is never told to stop; its address."""
    from crossfade.live._server import address_of, open_port, run_server

    # Longer than any test takes, since a recording that is at its end ends the session.
    segments = {label: spoil(signal(label, seconds, seed=7)) for label in ("rest", "work")}
    stream = Amplifier("recorded", segments, RATE, recipe.channels, speed=speed)
    live = LiveCalibration(prior, folder=folder, least_gain=0.0)
    about = about_session(live, stream, recipe.channels, returns=returns)
    session = Session(
        live,
        stream,
        OnlineFeatures(recipe),
        per_cue=per_cue,
        finish=lambda session: write_session(session, about),
    )
    listener = open_port("127.0.0.1", 0)
    arguments = (session, listener, TOKEN, about, lambda: None)
    thread = threading.Thread(target=run_server, args=arguments)
    thread.start()
    try:
        yield address_of(listener, TOKEN), session
    finally:
        session.stop()
        thread.join(timeout=PATIENCE)
        live.close()
        assert not thread.is_alive()


def socket_of(address, query=f"?token={TOKEN}"):
    return client.connect(f"ws://{urlsplit(address).netloc}/socket{query}")


def until(socket, wanted):
    """The first message that is wanted."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        message = json.loads(socket.recv(timeout=PATIENCE))
        if wanted(message):
            return message
    raise AssertionError("The message did not come.")


def role_of(socket):
    """Whether a page controls, as soon as it is told."""
    return until(socket, lambda one: one["kind"] == "role")["controls"]


def phase_of(socket, name):
    """The first state of a phase; a picture of the signal has a phase, too, and nothing else."""
    return until(socket, lambda one: one["kind"] == "state" and one["phase"] == name)


def said(message, pattern):
    """Whether a message of the page's says something."""
    return any(re.search(pattern, note["text"]) for note in message.get("notes", ()))


# -- the address ----------------------------------------------------------------------------


def test_page_and_socket_want_the_token(prior, tmp_path, capfd):
    from websockets.exceptions import InvalidStatus

    with serving(prior, tmp_path / "s") as (address, _):
        with urllib.request.urlopen(address) as answer:
            assert "Worth five more windows?" in answer.read().decode()
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        for query in ("", "?token=", "?token=another"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(address.partition("?")[0] + query)
            assert refused.value.code == 403
            assert b"needs the token" in refused.value.read()
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(address.partition("?")[0] + "socket" + query)
            assert refused.value.code == 403
            assert b"needs the token" in refused.value.read()
            with pytest.raises(InvalidStatus) as closed:
                socket_of(address, query)
            assert closed.value.response.status_code == 403
            assert b"needs the token" in closed.value.response.body
    # A refusal is no error.
    assert capfd.readouterr().err == ""


def test_the_second_page_watches(prior, tmp_path):
    with serving(prior, tmp_path / "s") as (address, session), ExitStack() as pages:
        first = pages.enter_context(socket_of(address))
        assert role_of(first)
        second = pages.enter_context(socket_of(address))
        assert not role_of(second)
        second.send('{"do": "start"}')
        # Nobody takes control from a page that is open.
        second.send('{"do": "control"}')
        assert not role_of(second)
        second.send("no json")
        second.send("[" * 4000)
        first.send('{"do": "left"}')
        until(second, lambda one: one["kind"] == "signal")
        assert session.phase == "waiting"
        first.send('{"do": "start"}')
        for page in (first, second):
            phase_of(page, "ready")
        first.close()
        role = until(second, lambda one: one["kind"] == "role" and not one["controlled"])
        assert not role["controls"]
        phase_of(second, "paused")
        with socket_of(address, f"?token={TOKEN}&view=participant") as shown:
            assert not role_of(shown)
            shown.send('{"do": "control"}')
            assert not role_of(shown)
        second.send('{"do": "control"}')
        until(second, lambda one: one["kind"] == "role" and one["controls"])
        phase_of(second, "ready")
        second.close()
        until_free(address)
        third = pages.enter_context(socket_of(address))
        assert role_of(third)
        phase_of(third, "ready")


def until_free(address):
    """Wait until the server knows that no page controls."""
    with socket_of(address, f"?token={TOKEN}&view=participant") as shown:
        until(shown, lambda one: one["kind"] == "role" and not one["controlled"])


def test_a_session_that_outlives_its_server_is_not_disturbed():
    from crossfade.live._server import Hub

    hub = Hub(SimpleNamespace(), {})
    hub.loop = asyncio.new_event_loop()
    hub.loop.close()
    hub.clients.append(None)
    hub.tell({"kind": "state"})


def test_a_signal_before_the_server_runs_ends_it():
    from crossfade.live._server import _signals_end

    server = SimpleNamespace(should_exit=False)
    with _signals_end(server):
        signal.raise_signal(signal.SIGTERM)
    assert server.should_exit


def test_a_port_that_is_taken_is_said(prior_file, tmp_path):
    from crossfade.live._server import open_port, reach_of

    with open_port("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        options = ["--prior", str(prior_file), "--features", "-", "--port", str(port), "--no-open"]
        result = CliRunner().invoke(main, ["live", *options, "--folder", str(tmp_path / "s")])
    assert result.exit_code == 1
    assert re.search(rf"Port {port} of 127.0.0.1 cannot be used: .* --port 0 takes", result.output)
    assert reach_of("127.0.0.1") is None
    assert "is not encrypted" in reach_of("0.0.0.0")


@pytest.mark.parametrize("host", ["192.0.2.1", "nowhere.invalid"])
def test_a_host_that_is_not_this_machine_is_said(prior_file, tmp_path, host):
    options = ["--prior", str(prior_file), "--features", "-", "--host", host, "--port", "0"]
    result = CliRunner().invoke(main, ["live", *options, "--folder", str(tmp_path / "s")])
    assert result.exit_code == 1
    assert f"{host} is no address of this machine: " in result.output
    assert "--port" not in result.output


def test_a_folder_that_cannot_be_made_is_said(prior_file, tmp_path):
    (tmp_path / "file").touch()
    folder = str(tmp_path / "file" / "s")
    options = ["--prior", str(prior_file), "--features", "-", "--port", "0", "--no-open"]
    result = CliRunner().invoke(main, ["live", *options, "--folder", folder])
    assert result.exit_code == 1
    assert f"The session cannot be kept in {folder}: Not a directory. Choose" in result.output


def test_options_that_do_not_go_together_are_refused(prior_file):
    def said(*options):
        return CliRunner().invoke(main, ["live", "--port", "0", *options]).output

    assert "Choose one of --stream, --replay, --features and --demo; got none" in said()
    assert "got --demo and --stream." in said("--demo", "--stream", "EEG")
    assert "Name the prior with --prior" in said("--stream", "EEG")
    prior = ("--prior", str(prior_file))
    stream, lines = (*prior, "--stream", "EEG"), (*prior, "--features", "-")
    replay = (*prior, "--replay", str(prior_file))
    both = (*stream, "--labels", "markers")
    assert "Name the stream of markers with --markers." in said(*both)
    assert "--prior goes with --stream and --replay and --features only; got --demo." in said(
        "--demo", *prior
    )
    for option, value in (("--markers", "M"), ("--channels", "Fz,Pz"), ("--scope", "link")):
        for source, name in ((("--demo",), "--demo"), (replay, "--replay"), (lines, "--features")):
            text = f"{option} goes with --stream only; got {name}."
            assert text in said(*source, option, value)
    assert "--speed goes with --replay and --demo only; got --stream." in said(
        *stream, "--speed", "2"
    )
    assert "--reject goes with --stream and --replay and --demo only; got --features." in said(
        *lines, "--reject", "100"
    )
    assert "--labels markers does not go with --features: it has none." in said(
        *lines, "--labels", "markers"
    )
    assert "a recording does not do what cues say. Choose --labels markers or --labels keys" in (
        said(*replay, "--labels", "cues").replace("\n", " ")
    )
    assert "--markers does not go with --labels keys" in said(
        *stream, "--markers", "M", "--labels", "keys"
    )
    assert "--certainty goes with --want: name the accuracy" in said(*lines, "--certainty", "0.8")
    assert "--per-cue goes with cues only" in said(*replay, "--per-cue", "3")
    assert "--publish does not go with --no-publish" in said(
        "--demo", "--publish", "x", "--no-publish"
    )


# -- the command ----------------------------------------------------------------------------


@contextmanager
def running(*options, opens="--no-open", **more):
    """The command in a process of its own, and the address that it prints first."""
    start = [sys.executable, "-c", "from crossfade.cli import main; main()"]
    command = [*start, "live", *filter(None, [opens]), "--port", "0", *options]
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


def end_lines(process):
    """Let standard input end."""
    process.stdin.close()
    process.stdin = None


def page_of(address):
    """The socket of the page with this address."""
    return socket_of(address, f"?{urlsplit(address).query}")


@pytest.fixture
def lines(prior, prior_file, tmp_path):
    """Options for lines of features, and a function that makes them."""
    options = ("--prior", str(prior_file), "--features", "-", "--folder", str(tmp_path / "session"))
    header = ",".join([*prior.feature_names, "label"]) + "\n"

    def make(n, labels=("rest", "work"), header=header):
        rows = []
        for label in ("rest", "work"):
            for window in OnlineFeatures(RECIPE).push(signal_of(label, float(n))):
                told = label if label in labels else ""
                rows.append(",".join([*map(str, window.features), told]) + "\n")
        return header + "".join(rows)

    return options, make


@contextmanager
def sending(library, name):
    """A real outlet that sends in real time for as long as this lasts."""
    info = library.StreamInfo(name, "EEG", 2, RATE, "float32", name)
    info.set_channel_names(list(CHANNELS))
    there, end = threading.Event(), threading.Event()
    samples = np.ascontiguousarray(signal_of("rest", 60.0).T, dtype=np.float32)

    def send():
        outlet, part = library.StreamOutlet(info), 0
        there.set()
        while not end.wait(0.1):
            outlet.push_chunk(samples[10 * part : 10 * part + 10])
            part = (part + 1) % 600

    sender = threading.Thread(target=send)
    sender.start()
    assert there.wait(PATIENCE)
    try:
        yield
    finally:
        end.set()
        sender.join()


def test_a_stream_that_dies_in_a_cue_announces_it_anew(prior_file, tmp_path):
    pytest.importorskip("mne_lsl", reason="Needs the package mne-lsl.")
    library, name = lsl(), f"crossfade-{uuid.uuid4().hex[:12]}"
    folder = tmp_path / "session"
    options = ("--prior", str(prior_file), "--stream", name, "--folder", str(folder))
    with ExitStack() as opened:
        with sending(library, name):
            _, address = opened.enter_context(running(*options, "--no-publish", "--gain", "0"))
            page = opened.enter_context(page_of(address))
            assert role_of(page)
            page.send('{"do": "start"}')
            until(page, lambda one: one.get("n_windows", 0) >= 1)
        lost = until(page, lambda one: one["kind"] == "state" and one["phase"] == "lost")
        assert lost["lost"]
        gone = {"missing"}
        until(page, lambda one: {channel["state"] for channel in one.get("quality", ())} == gone)
        with sending(library, name):
            seen = []
            until(page, lambda one: seen.append(one) or one.get("phase") == "ready")
            # Nothing was learnt in between.
            assert {one["n_windows"] for one in seen if "n_windows" in one} == {lost["n_windows"]}
            phase_of(page, "cue")
            until(page, lambda one: one.get("n_windows", 0) > lost["n_windows"])


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
        # On a busy machine it takes a while until anything is sent, and that is said.
        silence = ("No samples from", "Samples from")
        early = [one for one in state["notes"] if one["text"].startswith(silence)]
        assert [one for one in state["notes"] if one not in early] == []
        # Nobody else sees anything before the calibration is finished.
        assert library.resolve_streams(timeout=0.5, name=out_name) == []
        page.send('{"do": "finish"}')
        phase_of(page, "predicting")
        [found] = library.resolve_streams(timeout=PATIENCE, name=out_name)
        inlet = library.StreamInlet(found)
        inlet.open_stream(timeout=PATIENCE)
        send("work", 5.0, 9)
        lines = [json.loads(process.stdout.readline()) for _ in range(5)]
        values, _ = inlet.pull_sample(timeout=PATIENCE)
        inlet.close_stream()
        assert [line["label"] for line in lines].count("work") >= 4
        assert values == pytest.approx(list(lines[0]["probabilities"].values()), abs=1e-6)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        assert str(folder / "model.json") in process.stderr.read()
    model = load_model(folder / "model.json")
    assert tuple(model.feature_names_in_) == prior.feature_names
    offline = OnlineFeatures(RECIPE).push(signal_of("rest", 20.0, seed=50))
    rows = pd.DataFrame([one.features for one in offline], columns=model.feature_names_in_)
    assert (model.predict(rows) == 0).mean() > 0.8
    assert "session report" in (folder / "report.html").read_text()
    with closing(LiveCalibration.load(folder)) as live:
        assert len(live.windows) == 21


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGTERM, "at once"),
        (signal.SIGINT, "at once"),
        (signal.SIGTERM, "with a page"),
        (signal.SIGTERM, "with a browser that blocks"),
    ],
)
def test_a_signal_ends_it_at_any_moment(lines, tmp_path, number, moment):
    """Standard input is open, and the reader waits in it."""
    options, _ = lines
    mark = tmp_path / "browser"
    blocks = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    script = tmp_path / "browser.py"
    script.write_text(blocks)
    env = {**os.environ, "BROWSER": f"{sys.executable} {script} %s"}
    opens = "" if moment == "with a browser that blocks" else "--no-open"
    with running(*options, opens=opens, stdin=subprocess.PIPE, env=env) as (process, address):
        if moment == "with a page":
            with page_of(address) as page:
                until(page, lambda one: one["kind"] == "state")
                process.send_signal(number)
                assert process.wait(timeout=PATIENCE) == 0
        else:
            if not opens:
                wait_until(lambda: mark.exists() and mark.read_text())
            process.send_signal(number)
            assert process.wait(timeout=PATIENCE) == 0
            if not opens:
                os.kill(int(mark.read_text()), signal.SIGKILL)
        error = process.stderr.read()
        assert str(tmp_path / "session" / "report.html") in error
        assert "Traceback" not in error


def wait_until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_reader_that_leaves_or_sleeps_ends_nothing(lines):
    options, make = lines
    with running(*options, "--no-publish", stdin=subprocess.PIPE) as (process, address):
        with page_of(address) as page:
            assert role_of(page)
            process.stdin.write(make(2))
            process.stdin.flush()
            until(page, lambda one: one.get("counts") == {"rest": 2, "work": 2})
            page.send('{"do": "finish"}')
            phase_of(page, "predicting")

            def predict(n, seen):
                process.stdin.write(make(n, header=""))
                process.stdin.flush()
                seen += 2 * n
                return until(
                    page, lambda one: (one.get("prediction") or {}).get("window") == seen - 1
                )

            # Nobody reads: more than what the pipe and the queue hold.
            predict(1200, 0)
            state = predict(1, 2400)
            assert said(state, "^Nobody reads standard output: predictions are left out there")
            process.stdout.close()
            predict(1, 2402)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=PATIENCE) == 0
        assert "Broken" not in process.stderr.read()


def test_commands_are_heard_while_lines_come_faster_than_they_are_taken(lines):
    options, make = lines
    with running(*options, stdin=subprocess.PIPE) as (process, address), page_of(address) as page:
        assert role_of(page)

        def produce():
            # Until the program is gone.
            try:
                process.stdin.write(make(2000))
                process.stdin.flush()
            except OSError:
                pass

        producer = threading.Thread(target=produce)
        producer.start()
        until(page, lambda one: one.get("n_windows", 0) >= 1)
        page.send('{"do": "pause"}')
        state = phase_of(page, "paused")
        assert state["n_windows"] < 4000
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        producer.join(timeout=PATIENCE)
        assert not producer.is_alive()


def test_features_by_line_and_a_process_that_is_killed(lines, prior, tmp_path):
    options, make = lines
    folder = tmp_path / "session"
    with running(*options, stdin=subprocess.PIPE) as (process, address):
        process.stdin.write(make(4))
        process.stdin.flush()
        with page_of(address) as page:
            until(page, lambda one: one.get("counts") == {"rest": 4, "work": 4})
        process.kill()
    with closing(open_live(prior, folder)) as live:
        assert len(live.windows) == 8
    # The next day the person is known already.
    again = (*options[:-1], str(tmp_path / "next"), "--earlier", str(folder))
    with running(*again, stdin=subprocess.PIPE) as (_, address), page_of(address) as page:
        assert until(page, lambda one: one["kind"] == "hello")["returns"]
    with closing(LiveCalibration.load(tmp_path / "next")) as live:
        assert live.prior == prior.for_person(LiveCalibration.load(folder).task())
        assert not np.allclose(live.model().coef_, LiveCalibration(prior).model().coef_, rtol=0.01)
    with pytest.raises(
        ValueError, match=r"was begun with another prior, or with other sessions as"
    ):
        open_live(prior_of(5), folder)


def test_a_session_goes_on_as_it_was_begun(lines, prior, tmp_path, capsys):
    folder = tmp_path / "session"
    open_live(prior, folder, want=0.8, least_gain=0.02).close()
    open_live(prior, folder).close()
    open_live(prior, folder, want=0.8).close()
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"Going on with the session in {folder}: 0 windows, --want 0.8, --certainty 0.9, "
        "--gain 0.02, --ahead 5, as it was begun."
    )
    for given, text in (
        (["--gain", "0.05"], "was begun with --gain 0.02 and not --gain 0.05. Leave --gain out"),
        (["--gain", "0.01"], "was begun with --gain 0.02 and not --gain 0.01. Leave --gain out"),
        (["--ahead", "3"], "was begun with --ahead 5 and not --ahead 3. Leave --ahead out"),
        (
            ["--want", "0.8", "--certainty", "0.5"],
            "was begun with --certainty 0.9 and not --certainty 0.5. Leave --certainty out",
        ),
        (["--forget", "30"], "was begun without --forget 30. Leave --forget out to go on"),
    ):
        result = CliRunner().invoke(main, ["live", *lines[0], "--port", "0", *given], input="")
        assert result.exit_code == 1
        assert text in result.output


def test_the_advice_can_be_set_from_the_command(lines, tmp_path):
    options, make = lines
    asked = ("--want", "0.55", "--certainty", "0.6", "--ahead", "3", "--gain", "0")
    with running(*options, *asked, stdin=subprocess.PIPE) as (process, address):
        process.stdin.write(make(4))
        process.stdin.flush()
        with page_of(address) as page:
            hello = until(page, lambda one: one["kind"] == "hello")
            state = until(page, lambda one: one.get("counts") == {"rest": 4, "work": 4})
    assert [hello[name] for name in ("want", "certainty", "ahead")] == [0.55, 0.6, 3]
    assert state["advice"]["stop"]
    assert "at least 0.55 with a probability of" in state["advice"]["reason"]
    with closing(LiveCalibration.load(tmp_path / "session")) as live:
        assert live.goal == (0.55, 0.6, 0.0, 3)


def test_a_prior_of_many_classes_is_taken(lines, tmp_path):
    options, make = lines
    path = tmp_path / "other.npz"
    MulticlassPrior.from_tasks(tasks_of(8)).save(path)
    with running("--prior", str(path), *options[2:], stdin=subprocess.PIPE) as (process, address):
        process.stdin.write(make(2).replace(",rest", ",0").replace(",work", ",1"))
        process.stdin.flush()
        with page_of(address) as page:
            until(page, lambda one: sum(one.get("counts", {}).values()) == 4)
    again = (*options[2:-1], str(tmp_path / "next"), "--port", "0", "--no-open")
    earlier = ["--prior", str(path), *again, "--earlier", str(tmp_path / "session")]
    result = CliRunner().invoke(main, ["live", *earlier], input="")
    assert "--earlier needs a prior of two classes." in result.output


def test_without_a_label_there_is_no_model(lines, tmp_path):
    options, make = lines
    with running(*options, stdin=subprocess.PIPE) as (process, address):
        process.stdin.write(make(3, labels=()))
        end_lines(process)
        with page_of(address) as page:
            state = phase_of(page, "predicting")
        assert said(state, r"^No model was written. No window has a label, so that it would be the")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        assert "No model was written." in process.stderr.read()
    found = {path.name for path in (tmp_path / "session").iterdir()}
    assert found == {"session.json", "prior.npz", "windows.jsonl", "report.html"}


def test_what_could_not_be_written_is_said_and_written_later(lines, tmp_path):
    """A folder in the place of the model, as a disk that takes no more."""
    options, make = lines
    in_the_way = tmp_path / "session" / "model.json"
    with running(*options, stdin=subprocess.PIPE) as (process, address):
        in_the_way.mkdir()
        process.stdin.write(make(3))
        end_lines(process)
        with page_of(address) as page:
            state = phase_of(page, "paused")
            assert state["over"]
            assert said(state, "^Model and report could not be written: .* is a folder")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 1
        assert re.search(
            "Every window is kept: make room .* go on with --folder", process.stderr.read()
        )
    in_the_way.rmdir()
    with running(*options, stdin=subprocess.PIPE) as (process, address):
        end_lines(process)
        with page_of(address) as page:
            state = phase_of(page, "predicting")
        assert state["counts"] == {"rest": 3, "work": 3}
    assert load_model(in_the_way).n_labelled_ == (3, 3)


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
    assert state["notes"][0]["text"] == "The recording a.edf has ended."
    assert (tmp_path / "s" / "model.json").is_file()


# -- the page -------------------------------------------------------------------------------

FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="Needs the package playwright.")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("There is no chromium. Install it, on Debian with `apt install chromium`.")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser):
    """Open a page; nothing may go wrong in it, and nothing may be asked for from elsewhere."""
    contexts, troubles, requests = [], [], []

    def open_page(address, **options):
        viewport = {"width": 1280, "height": 800}
        contexts.append(browser.new_context(viewport=viewport, **options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []
    assert [url for url in requests if not re.match(r"(http|ws)://127\.0\.0\.1:|file:", url)] == []


def seen(page, selector, pattern):
    """Wait until something can be read."""
    found = page.locator(selector).filter(has_text=re.compile(pattern))
    found.wait_for(timeout=1000 * PATIENCE)


def controls(page):
    """Wait until a page is told that it controls; it takes no key before."""
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


@pytest.mark.parametrize("by", ["keyboard", "mouse"])
def test_calibration_from_beginning_to_end(opened, prior, tmp_path, by):
    def do(name):
        keys = {"start": "Space", "undo": "u", "finish": "f", "view": "v"}
        page.keyboard.press(keys[name]) if by == "keyboard" else page.click(f"#{name}")

    def begin():
        page.keyboard.press("Space") if by == "keyboard" else page.click("#word")

    folder = tmp_path / "session"
    with serving(prior, folder, speed=20.0) as (address, session):
        page = opened(address, color_scheme="dark" if by == "mouse" else "light")
        controls(page)
        seen(page, "#ask", "Ready when you are")
        begin()
        seen(page, "#ask", "Get ready for|Now")
        seen(page, "#word", "^(rest|work)$")
        # A page that is slow sees few of the states.
        seen(page, "#counts", r"rest ([3-9]|\d\d).*work [1-9]|rest [1-9].*work ([3-9]|\d\d)")
        assert re.match(r"alpha 0\.\d\d: \d+ % this person's own", page.inner_text("#fade-text"))
        assert "90 % interval" in page.inner_text("#forecast-text")
        assert "The crowd has 8 people only" in page.inner_text("#forecast-text")
        number = r"[+−]\d\.\d"
        seen(
            page,
            "#gains",
            f"^Five more windows: all rest {number}, all work {number}, half and half {number} "
            "points$",
        )
        page.locator("#quality .good").nth(1).wait_for(timeout=1000 * PATIENCE)
        do("start")
        seen(page, "#word", "Pause")
        n = len(session.live.windows)
        do("undo")
        seen(page, "#log", "The last window was taken back.")
        assert len(session.live.windows) == n - 1
        page.keyboard.press("1")
        seen(page, "#log", f"Window {n - 1} is rest now.")
        assert session.live.windows[-1].label == 0
        do("view")
        page.locator("header").wait_for(state="hidden", timeout=1000 * PATIENCE)
        box = page.locator("#word").bounding_box()
        assert box["height"] > 100
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
    assert "90 % interval" in report.inner_text("#forecast-text")
    assert re.match(
        r"Expect \d+ % of new windows to be right \(90 % interval \d+ % to \d+ %\)$",
        report.inner_text("h1"),
    )
    facts = report.inner_text("#result table")
    assert re.search(r"Date\s+\d{4}-\d\d-\d\d \d\d:\d\d to ", facts)
    assert re.search(r"Labelled windows\s+\d+ of rest, \d+ of work", facts)
    assert re.search(r"Recipe\s+log-powers of Fz, Pz in theta 4-8 Hz", facts)
    assert re.search(r"weight of the person\s+0\.\d+ \(1", report.inner_text("#card table"))
    assert report.inner_text("#question") == "Advice at the end"
    assert_nothing_overlaps(report, 390, 768)
    report.emulate_media(media="print")
    assert_nothing_overlaps(report, 1000)


def test_many_channels_have_a_line_and_a_name_each(opened, tmp_path):
    names = [f"E{place + 1}" for place in range(19)]
    recipe = replace(RECIPE, channels=tuple(names), bands=(("alpha", 8.0, 12.0),))

    def wide(label, seconds, seed=0):
        parts = [signal_of(label, seconds, seed=100 * seed + place) for place in range(10)]
        return np.concatenate(parts)[:19]

    tasks = []
    for person in range(4):
        rows = [OnlineFeatures(recipe).push(wide(one, 10.0, seed=person)) for one in NAMES.values()]
        X = [window.features for part in rows for window in part]
        tasks.append(Task(X, np.repeat([0, 1], 10), name=f"p{person}", recipe=recipe))
    prior = TaskPrior.from_tasks(TaskSet(tasks, class_names=NAMES), replay=False)
    with serving(prior, tmp_path / "s", recipe=recipe, signal=wide, seconds=600.0) as (address, _):
        page = opened(address)
        controls(page)
        page.keyboard.press("Space")
        page.locator("#quality .good").nth(18).wait_for(timeout=1000 * PATIENCE)
        assert page.locator("#traces").bounding_box()["height"] / 19 > 20
        assert page.evaluate("document.documentElement.scrollHeight") <= 800
        # What is below the fold of a small screen is not the buttons.
        page.set_viewport_size({"width": 1024, "height": 640})
        box = page.locator("#finish").bounding_box()
        assert box["y"] + box["height"] <= 640
        assert_nothing_overlaps(page, 390)
        page.close()


@pytest.mark.parametrize("by", ["keyboard", "mouse", "reload"])
def test_a_page_that_is_closed_gives_way_to_one_that_watches(opened, prior, tmp_path, by):
    with serving(prior, tmp_path / "s", speed=2.0) as (address, session):
        page = opened(address)
        controls(page)
        watcher = opened(address)
        seen(watcher, "#role", "Watching: another page controls")
        assert watcher.locator("#start").is_disabled()
        # It is not offered, and its key does nothing, while another page controls.
        assert watcher.locator("#take").is_hidden()
        watcher.keyboard.press("t")
        page.keyboard.press("Space")
        seen(watcher, "#ask", "Get ready for")
        page.close()
        seen(watcher, "#word", "Pause")
        seen(watcher, "#log", "The page was closed, so the session paused.")
        seen(watcher, "#role", "Watching: the page that controlled was closed.")
        if by == "mouse":
            watcher.click("#take")
        elif by == "keyboard":
            watcher.keyboard.press("t")
        else:
            watcher.reload()
        seen(watcher, "#ask", "Get ready for|Now")
        controls(watcher)
        assert watcher.locator("#take").is_hidden()
        assert session.phase in ("ready", "cue")
        watcher.close()


def test_the_participant_sees_what_to_do_and_when_it_is_over(opened, prior, tmp_path):
    with serving(prior, tmp_path / "s", speed=2.0) as (address, session):
        shown = opened(f"{address}&view=participant")
        seen(shown, "#word", "^Please wait$")
        page = opened(address)
        controls(page)
        page.keyboard.press("Space")
        seen(shown, "#ask", "^Get ready for$")
        seen(shown, "#word", "^(rest|work)$")
        # Its keys do nothing.
        for key in ("Space", "f", "u", "t", "v", "1"):
            shown.keyboard.press(key)
        seen(shown, "#ask", "^Now$")
        assert session.phase in ("ready", "cue")
        assert not shown.locator("nav").is_visible()
        page.close()
        seen(shown, "#word", "^Pause$")
        shown.close()


def test_nobody_is_asked_anything_while_the_stream_is_lost(opened, prior, tmp_path):
    with serving(prior, tmp_path / "s", speed=2.0) as (address, session):
        page, shown = opened(address), opened(f"{address}&view=participant")
        controls(page)
        page.keyboard.press("Space")
        seen(shown, "#ask", "^Now$")
        session.stream.off = True
        seen(shown, "#ask", "^No signal$")
        assert shown.inner_text("#word") == "Please wait"
        assert shown.inner_text("#count") == ""
        assert shown.evaluate("document.querySelector('#bar div').style.width") == "0%"
        page.locator("#quality .missing").nth(1).wait_for(timeout=1000 * PATIENCE)
        assert page.locator("#quality .good").count() == 0
        session.stream.off = False
        seen(shown, "#ask", "^Get ready for$")
        page.locator("#quality .good").nth(1).wait_for(timeout=1000 * PATIENCE)
        page.close()
        shown.close()


def test_a_page_without_its_server_asks_for_nothing(opened, prior, tmp_path):
    with serving(prior, tmp_path / "s", speed=2.0) as (address, _):
        page = opened(address)
        controls(page)
        page.keyboard.press("Space")
        seen(page, "#ask", "^Now$")
        # It would connect again at once.
        page.evaluate("connect = () => {}; socket.close()")
        seen(page, "#ask", "^No connection$")
        assert page.inner_text("#word") == "Please wait"
        assert page.inner_text("#count") == page.inner_text("#hint") == ""
        assert page.evaluate("document.querySelector('#bar div').style.width") == "0px"
        page.close()


@pytest.mark.parametrize("returns", [False, True])
def test_a_newcomers_forecast_is_called_one(opened, prior, tmp_path, returns):
    with serving(prior, tmp_path / "s", returns=returns) as (address, _):
        page = opened(address)
        seen(page, "#forecast-text", "0 labelled.")
        text = "This is a newcomer's forecast: someone who has been here before can expect more."
        assert (text in page.inner_text("#forecast-text")) == returns
        page.close()


def test_missing_samples_are_seen_on_the_page(opened, prior, tmp_path):
    def spoil(samples):
        # Half a minute of either class.
        samples[1, :3000:50] = np.nan
        samples[0, 150] = np.inf
        return samples

    with serving(prior, tmp_path / "s", spoil=spoil) as (address, _):
        page = opened(address)
        controls(page)
        page.keyboard.press("Space")
        page.locator("#quality .missing").first.wait_for(timeout=1000 * PATIENCE)
        seen(page, "#log", "Left out: Pz is missing.")
        # It goes on.
        seen(page, "#counts", "rest [1-9]|work [1-9]")
        page.keyboard.press("f")
        seen(page, "#log", "model.json")
        page.close()

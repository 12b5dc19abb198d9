"""A live session: how soon a window is on the page, and an hour of windows at sixty times."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import Progress, Row, at_most

_RATE, _CHANNELS = 500.0, 19
#: Seconds of the stream, and windows a second, whose way to the page is measured.
_SECONDS, _A_SECOND = 40.0, 4
_N_WINDOWS, _SPEED = 1500, 60.0


def _signal(label: int, seconds: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, label])
    time = np.arange(round(seconds * _RATE)) / _RATE
    wave = (12.0 - 6.0 * label) * np.sin(2.0 * np.pi * 10.0 * time)
    return 8.0 * rng.standard_normal((_CHANNELS, time.size)) + wave


def _prior(window: float, overlap: float, n_channels: int) -> Any:
    """Prior of ten people, log powers in three bands of the first channels."""
    from crossfade import Task, TaskPrior, TaskSet
    from crossfade.signals import OnlineFeatures
    from crossfade.tasks import Recipe

    names = tuple(f"C{place}" for place in range(_CHANNELS))
    recipe = Recipe(
        "log-powers",
        _RATE,
        names[:n_channels],
        window,
        overlap,
        reference="average",
        averaged=names,
        filter="causal",
        band=(1.0, 40.0),
        bands=(("theta", 4.0, 8.0), ("alpha", 8.0, 12.0), ("beta", 12.0, 20.0)),
    )
    tasks = []
    for person in range(10):
        X, y = [], []
        for label in (0, 1):
            online = OnlineFeatures(recipe)
            found = online.push(_signal(label, 40.0 * window, person))
            X += [one.features for one in found]
            y += [label] * len(found)
        tasks.append(Task(X, y, feature_names=recipe.feature_names, recipe=recipe))
    return TaskPrior.from_tasks(TaskSet(tasks, class_names={0: "rest", 1: "work"}))


def run(progress: Progress) -> Iterator[Row]:
    """Rows of the table."""
    with tempfile.TemporaryDirectory() as folder:
        yield _delay(Path(folder), lambda done: progress(0.4 * done))
        yield from _hour(Path(folder), lambda done: progress(0.4 + 0.6 * done))


def _delay(folder: Path, progress: Progress) -> Row:
    """From a window's last sample to the page: the command, a real outlet, and its socket."""
    from websockets.sync.client import connect

    from crossfade.live import lsl

    library = lsl()
    _prior(1.0, 1.0 - 1.0 / _A_SECOND, _CHANNELS).save(folder / "prior.npz")
    info = library.StreamInfo("bench-eeg", "EEG", _CHANNELS, _RATE, "float32", "bench-eeg")
    info.set_channel_names([f"C{place}" for place in range(_CHANNELS)])
    marks = library.StreamInfo("bench-cues", "Markers", 1, 0.0, "string", "bench-cues")
    eeg, cues = library.StreamOutlet(info), library.StreamOutlet(marks)
    options = ["--prior", str(folder / "prior.npz"), "--folder", str(folder / "session")]
    options += ["--stream", "bench-eeg", "--markers", "bench-cues", "--no-open"]
    command = [sys.executable, "-c", "from crossfade.cli import main; main()", "live", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    stopped = threading.Event()
    try:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().strip())
        eeg.wait_for_consumers(timeout=10.0)
        parts = [_signal(label, 5.0, 99).T.astype(np.float32) for label in (0, 1)]

        def play() -> None:
            """Ten samples every fiftieth of a second, and the other class every five seconds."""
            begun, sent = time.perf_counter(), 0
            while not stopped.is_set():
                block, at = divmod(sent, len(parts[0]))
                if at == 0:
                    cues.push_sample([("rest", "work")[block % 2]])
                eeg.push_chunk(np.ascontiguousarray(parts[block % 2][at : at + 10]))
                sent += 10
                stopped.wait(max(0.0, begun + sent / _RATE - time.perf_counter()))

        player = threading.Thread(target=play)
        player.start()
        delays: list[float] = []
        with connect(f"ws://{address.netloc}/socket?{address.query}") as page:
            end = time.monotonic() + _SECONDS
            while time.monotonic() < end:
                message = json.loads(page.recv(timeout=10.0))
                if message["kind"] == "state" and message.get("stamp"):
                    delays.append(library.local_clock() - message["stamp"])
                    progress(1.0 - (end - time.monotonic()) / _SECONDS)
    finally:
        stopped.set()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10.0)
    late = 1000.0 * float(np.percentile(delays, 95))
    what = f"live, 19 channels at 500 Hz: last sample of {len(delays)} windows to the page, 95 %"
    return at_most(what, late, 100.0, " ms")


class _Again:
    """A minute of samples, again and again for an hour, without holding an hour."""

    def __init__(self, minute: np.ndarray, n: int) -> None:
        self.minute, self.shape = minute, (len(minute), n)

    def __getitem__(self, key: tuple[slice, slice]) -> np.ndarray:
        part = np.arange(key[1].start, key[1].stop) % self.minute.shape[1]
        return self.minute[:, part]


def _hour(folder: Path, progress: Progress) -> Iterator[Row]:
    """1,500 windows with d = 24, a folder, and a page that gets all messages."""
    from crossfade import LiveCalibration
    from crossfade.live import Replay, Session
    from crossfade.signals import Annotation, OnlineFeatures

    prior = _prior(2.4, 0.0, 8)
    seconds = 2.4 * _N_WINDOWS
    minute = np.concatenate([_signal(label, 24.0, 77) for label in (0, 1)], axis=1)
    samples: Any = _Again(minute, round(seconds * _RATE))
    notes = [
        Annotation(24.0 * turn, 24.0, ("rest", "work")[turn % 2])
        for turn in range(_N_WINDOWS // 10)
    ]
    names = [f"C{place}" for place in range(_CHANNELS)]
    stream = Replay("hour", samples, _RATE, names, notes, speed=_SPEED)
    live = LiveCalibration(prior, folder=folder / "hour")
    online = OnlineFeatures(prior.recipe)
    places = [names.index(name) for name in online.channels]
    session = Session(live, stream, online, labels="markers", places=places, tell=json.dumps)
    spent, held, n = [], [], 0
    with threadpool_limits(limits=1):
        while not session.over:
            before = time.process_time()
            session.step()
            spent.append((len(live.windows), time.process_time() - before))
            if len(live.windows) >= n + 50:
                n = len(live.windows)
                held.append(_resident())
                progress(n / _N_WINDOWS)
    live.close()
    lost = samples.shape[1] - session._seen + _N_WINDOWS - len(live.windows)
    yield at_most("1,500 windows at 60 times: samples and windows lost", lost, 0.0)
    growth = held[-1] - held[5]
    yield at_most("the same: growth of memory after 300 windows", growth, 20.0, " MB")
    cost = [
        sum(each for at, each in spent if low <= at < high) / (high - low)
        for low, high in ((0, _N_WINDOWS // 3), (2 * _N_WINDOWS // 3, _N_WINDOWS))
    ]
    whole = 1000.0 * sum(each for _, each in spent) / _N_WINDOWS
    yield at_most("the same: CPU a window, samples, page and disk included", whole, 10.0, " ms")
    yield at_most("the same: its last third over its first", cost[1] / cost[0], 1.5)
    at, took = np.array(spent).T
    each = np.bincount(at.astype(int), took, minlength=_N_WINDOWS)[:_N_WINDOWS]
    # Beside the mean, since other programs come and go within the minute that this takes.
    third = _N_WINDOWS // 3
    typical = float(np.median(each[-third:]) / np.median(each[:third]))
    yield at_most("the same: its last third over its first, medians", typical, 1.5)


def _resident() -> float:
    """Memory of this process, in MB."""
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

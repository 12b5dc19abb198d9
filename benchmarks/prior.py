"""Priors from tasks, and from a million source vectors in a fresh interpreter."""

import json
import subprocess
import sys
from collections.abc import Iterator

import numpy as np

import crossfade as cf
from benchmarks.measure import Progress, Row, at_most, medians


def run(progress: Progress) -> Iterator[Row]:
    """Rows of the table."""
    yield from _from_tasks(lambda done: progress(0.5 * done))
    yield from _streamed(lambda done: progress(0.5 + 0.5 * done))


def _from_tasks(progress: Progress) -> Iterator[Row]:
    known = cf.load_mental_math()
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], 20)
    shift = 0.5 * label[:, None]
    many = [cf.Task(rng.standard_normal((40, 20)) + shift, label) for _ in range(10_000)]
    few, large, replayed = medians(
        [
            lambda: cf.TaskPrior.from_tasks(known, rehearse=False),
            lambda: cf.TaskPrior.from_tasks(many, rehearse=False),
            lambda: cf.TaskPrior.from_tasks(known),
        ],
        5,
        progress,
        calls=[20, 1, 2],
    )
    what = "TaskPrior.from_tasks"
    yield at_most(
        f"{what}, 36 tasks of 97 windows, 9 features, no rehearsal", 1e3 * few, 15.0, " ms"
    )
    yield at_most(f"{what}, 10,000 tasks of 40 windows, 20 features, directions", large, 1.5, " s")
    yield at_most(f"{what}, 36 tasks with rehearsal", replayed, 1.5, " s")


def _streamed(progress: Progress) -> Iterator[Row]:
    results = []
    rounds = 3
    for turn in range(rounds):
        command = [sys.executable, "-m", "benchmarks.streamed_prior"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        results.append(json.loads(done.stdout))
        progress((turn + 1) / rounds)
    updating, drawing = (
        float(np.median([result[name] for result in results]))
        for name in ("updating", "with_drawing")
    )
    yield at_most(
        "prior from a million source vectors, d = 24, streamed in chunks of 20,000: updates",
        updating,
        3.0,
        " s",
        f" ({drawing:.2g} s with drawing the vectors)",
    )
    memory = max(result["megabytes"] for result in results)
    yield at_most("the same: memory above the start, drawing included", memory, 200.0, " MB")

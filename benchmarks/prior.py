"""A prior from a million source vectors: time and memory, in a fresh interpreter."""

import json
import subprocess
import sys
from collections.abc import Iterator

import numpy as np

from benchmarks.measure import Progress, Row, at_most


def run(progress: Progress) -> Iterator[Row]:
    """Rows of the table."""
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

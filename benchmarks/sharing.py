"""Mixtures of many directions, and one federation of five sites on this machine."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.measure import Progress, Row, at_most

EXAMPLE = Path(__file__).parents[1] / "examples" / "federation.py"


def run_mixture(progress: Progress) -> Iterator[Row]:
    """Rows of the table: EM with J = 10,000, d = 50 and four components."""
    from crossfade import MixturePrior
    from crossfade.simulate import draw_directions

    rng = np.random.default_rng(0)
    turns = [np.linalg.qr(rng.standard_normal((50, 50)))[0] for _ in range(4)]
    kappas = np.array([30.0, 60.0, 100.0, 200.0])
    W = np.concatenate(
        [
            draw_directions(2500, 50, kappa, random_state=rng) @ turn
            for kappa, turn in zip(kappas, turns, strict=True)
        ]
    )
    progress(0.3)
    start = perf_counter()
    prior = MixturePrior.from_projections(W, 4, random_state=0)
    seconds = perf_counter() - start
    yield at_most("mixture of 10,000 directions, d = 50, four components: EM", seconds, 5.0, " s")
    off = float(np.abs(np.sort(prior.concentrations) / kappas - 1.0).max())
    yield at_most("the same: worst error of a concentration", off, 0.05)


def run_federation(progress: Progress) -> Iterator[Row]:
    """Rows of the table: five sites, one secure sum, from the start of processes to the prior."""
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        command = [sys.executable, str(EXAMPLE), str(Path(folder) / "federation.png")]
        subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = perf_counter() - start
    yield at_most("federation of five sites on one machine, with its figure", seconds, 60.0, " s")

"""Work on cells in, means over their repeats out: pieces, processes, seeds and references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crossfade._checks import check_integer

Array = NDArray[np.float64]
#: Called with the number of finished pieces of work and their total.
Progress = Callable[[int, int], None]

#: Repeats that are computed at once, by one process.
_AT_ONCE = 250


def means(names: Sequence[str], values: Array) -> dict[str, float]:
    """Mean and standard error over repeats of each column."""
    result: dict[str, float] = {}
    for name, numbers in zip(names, values.T, strict=True):
        error = numbers.std(ddof=1) / np.sqrt(numbers.size) if numbers.size > 1 else np.nan
        result |= {name: float(numbers.mean()), f"{name}_se": float(error)}
    return result


def reference(name: str) -> pd.DataFrame:
    """Table of numbers that the paper reports."""
    with (files("crossfade") / "reference" / name).open() as stream:
        return pd.read_csv(stream)


def run(
    work: Callable[..., dict[Any, Array]],
    cells: Sequence[Any],
    n_repeats: int,
    n_jobs: int,
    random_state: int | None,
    on_progress: Progress | None,
) -> list[dict[Any, Array]]:
    """All repeats of all cells, in pieces with generators of their own; one result a cell."""
    n_repeats = check_integer("n_repeats", n_repeats, 1)
    sizes = [min(_AT_ONCE, n_repeats - start) for start in range(0, n_repeats, _AT_ONCE)]
    seeds = np.random.SeedSequence(random_state).spawn(len(cells) * len(sizes))
    pieces = [
        joblib.delayed(work)(cell, size, np.random.default_rng(seeds[len(sizes) * i + k]))
        for i, cell in enumerate(cells)
        for k, size in enumerate(sizes)
    ]
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator", max_nbytes=None)
    finished = []
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        for result in parallel(pieces):
            finished.append(result)
            if on_progress is not None:
                on_progress(len(finished), len(pieces))
    grouped = [finished[i : i + len(sizes)] for i in range(0, len(finished), len(sizes))]
    return [
        {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        for parts in grouped
    ]

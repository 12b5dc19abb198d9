"""Repeats of a simulation, in pieces with seeds of their own; and the paper's numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

import joblib
import numpy as np
import pandas as pd

from crossfade._typing import Array, Progress
from crossfade._validate import check_integer

#: Repeats that are computed at once, by one process, and numbers that their sources may take.
_AT_ONCE, _LARGEST = 250, 10_000_000


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
    numbers: Callable[[Any], int],
) -> list[dict[Any, Array]]:
    """All repeats of all cells, in pieces with generators of their own; one result a cell.

    `numbers` says how many numbers the sources of one repeat of a cell take.
    """
    n_repeats = check_integer("n_repeats", n_repeats, 1)
    n_jobs = check_integer("n_jobs", n_jobs, 1)
    if not cells:
        raise ValueError("There is nothing to simulate: give at least one value of everything.")
    sizes: list[tuple[int, int]] = []
    for place, cell in enumerate(cells):
        most = max(1, min(_AT_ONCE, _LARGEST // numbers(cell)))
        sizes += [(place, min(most, n_repeats - start)) for start in range(0, n_repeats, most)]
    seeds = np.random.SeedSequence(random_state).spawn(len(sizes))
    pieces = [
        joblib.delayed(work)(cells[place], size, np.random.default_rng(seed))
        for (place, size), seed in zip(sizes, seeds, strict=True)
    ]
    finished: list[list[dict[Any, Array]]] = [[] for _ in cells]
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator", max_nbytes=None)
        for done, result in enumerate(parallel(pieces)):
            finished[sizes[done][0]].append(result)
            if on_progress is not None:
                on_progress(done + 1, len(pieces))
    return [
        {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        for parts in finished
    ]

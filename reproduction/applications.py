"""Figures 4 to 6: the paper's three studies, each person left out in turn.

Of each person a run of consecutive windows with a random start is labelled in each class, and all
other windows are for testing. The sources are the tasks of all other people, each cut to balanced
classes. Rules pass through the midpoint of the labelled windows.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
import pandas as pd

from crossfade import Task, TaskSet, load_mental_math
from crossfade.datasets import read_matb, read_wesad
from reproduction.algorithm import (
    GRID,
    Array,
    Crowd,
    blends,
    crowd_of,
    least,
    mean_risks,
    moments_of,
    target_of,
    unit,
)

#: What is labelled, as a share of the smaller class.
PROPORTIONS = (0.05, 0.1, 0.2, 0.5)
#: Seed of the balanced runs in the authors' code.
_SEED = 1


def load(study: str, recordings: Path | None, recipe: str, n_jobs: int = 1) -> TaskSet:
    """Tasks of "mental-math", which ships with the package, or of recordings of the others."""
    if study == "mental-math":
        return load_mental_math()
    read = {"matb": read_matb, "wesad": read_wesad}[study]
    return read(recordings, recipe=recipe, n_jobs=n_jobs)


# -- directions of the sources ---------------------------------------------------------------------


def direction(X: Array, y: np.ndarray) -> Array:
    """Unit direction (d,) by the pseudo-inverse of the plain covariance, in raw units."""
    moments = moments_of(X, y)
    omega: Array = target_of(moments.nu, moments.sigma, y.size).omega
    return omega


def encoded(task: Task) -> np.ndarray:
    """Labels of a task as 0 and 1."""
    return np.unique(task.y, return_inverse=True)[1]


def balanced_runs(tasks: Sequence[Task], n_runs: int = 10) -> Array:
    """Unit directions (n_runs, n_tasks, d) of balanced sources, in the authors' random stream.

    Of each task, one after the other, the larger class is cut to a run of as many consecutive
    windows as the smaller one has. NumPy's legacy generator draws its start among all but the last.
    """
    rng = np.random.RandomState(_SEED)
    return np.stack([[_balanced(task, rng) for task in tasks] for _ in range(n_runs)])


def _balanced(task: Task, rng: np.random.RandomState) -> Array:
    y = encoded(task)
    counts = np.bincount(y)
    kept = []
    for label, count in enumerate(counts):
        start = rng.randint(count - counts.min()) if count > counts.min() else 0
        kept.append(np.flatnonzero(y == label)[start : start + counts.min()])
    rows = np.concatenate(kept)
    return direction(task.X[rows], y[rows])


# -- one person ------------------------------------------------------------------------------------


class Splits(NamedTuple):
    """Labelled windows of many training sets; all others are for testing."""

    rows: np.ndarray  # (n_splits, n): places of the labelled windows, first class first
    label: np.ndarray  # (n,): their labels
    tested: np.ndarray  # (n_splits, n_windows): whether a window is for testing


def draw_splits(y: np.ndarray, budget: float, n_splits: int, rng: np.random.Generator) -> Splits:
    """Runs of consecutive windows of each class, with random starts.

    A budget is a number of windows of each class, or a share of the smallest class.
    """
    counts = np.bincount(y)
    n_each = int(np.ceil(budget * counts.min())) if budget < 1 else int(budget)
    starts = [rng.integers(count - n_each + 1, size=(n_splits, 1)) for count in counts]
    runs = [
        np.flatnonzero(y == label)[start + np.arange(n_each)] for label, start in enumerate(starts)
    ]
    rows = np.concatenate(runs, axis=1)
    tested = np.ones((n_splits, y.size), bool)
    np.put_along_axis(tested, rows, False, axis=1)
    return Splits(rows, np.repeat(np.arange(counts.size), n_each), tested)


def balanced_accuracies(scores: Array, y: np.ndarray, tested: np.ndarray) -> Array:
    """Balanced accuracy (n_splits, n_rules) of scores (n_splits, n_rules, n_windows)."""
    right = (scores > 0.0) == (y == 1)
    shares = []
    for label in (0, 1):
        counted = (tested & (y == label))[:, None]
        shares.append((right & counted).sum(-1) / counted.sum(-1))
    mean: Array = np.mean(shares, axis=0)
    return mean


def _evaluate(
    task: Task, crowd: Crowd, recipe: str, n_splits: int, seed: np.random.SeedSequence
) -> pd.DataFrame:
    """Mean balanced accuracy and alpha of each method for one person, by budget."""
    rng, y = np.random.default_rng(seed), encoded(task)
    everyone, lines = np.arange(n_splits), []
    for proportion in PROPORTIONS:
        splits = draw_splits(y, proportion, n_splits, rng)
        moments = moments_of(task.X[splits.rows], splits.label)
        target = target_of(moments.nu, moments.sigma, splits.label.size)
        rules = unit(blends(target.omega, crowd.mu))
        scores = rules @ (task.X - moments.midpoint[:, None]).mT
        reached = balanced_accuracies(scores, y, splits.tested)
        chosen = {
            "target": np.full(n_splits, GRID.size - 1),
            "average-source": np.zeros(n_splits, int),
            "optimal": least(mean_risks(target, crowd.mu, crowd.psi(recipe), rng)),
            # Shares of windows differ by more than this, or are equal but for rounding.
            "oracle": least(-np.round(reached, 9)),
        }
        lines += [
            {
                "task": task.name,
                "method": name,
                "budget": proportion,
                "balanced_accuracy": reached[everyone, place].mean(),
                "alpha": GRID[place].mean(),
            }
            for name, place in chosen.items()
        ]
    return pd.DataFrame(lines)


def run_study(
    tasks: TaskSet, recipe: str, n_splits: int = 100, n_jobs: int = 1, seed: int = 0
) -> pd.DataFrame:
    """Mean balanced accuracy and alpha of the paper's four classifiers, by task and budget.

    The recipe says by which Psi Algorithm 1, "optimal", chooses alpha. "oracle" takes the alpha
    that is best on the test windows.
    """
    [directions] = balanced_runs(tasks, n_runs=1)
    groups = np.array([task.name if task.group is None else task.group for task in tasks])
    seeds = np.random.SeedSequence(seed).spawn(len(tasks))
    found = joblib.Parallel(n_jobs=n_jobs)(
        joblib.delayed(_evaluate)(
            task, crowd_of(directions[groups != group]), recipe, n_splits, own
        )
        for task, group, own in zip(tasks, groups, seeds, strict=True)
    )
    return pd.concat(found, ignore_index=True)

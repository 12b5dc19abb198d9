"""``python -m reproduction.discussion [TABLE]``: the three extensions beside the library's blends.

Mental Math and simulated people of three classes unless a table of people is named.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from crossfade import (
    ConvexBlendClassifier,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    Task,
    load_mental_math,
    read_tasks,
)
from reproduction.discussion.common import Estimator, compare, summarised
from reproduction.discussion.kinds import Kinds
from reproduction.discussion.pairs import Pairs
from reproduction.discussion.per_source import PerSource


def three_classes(n_people: int = 30, n_each: int = 25, d: int = 10, seed: int = 0) -> list[Task]:
    """Simulated people with three classes, whose means differ between people."""
    rng = np.random.default_rng(seed)
    centres = 1.2 * rng.standard_normal((3, d)) / np.sqrt(d) * 3.0
    y = np.repeat(["a", "b", "c"], n_each)
    tasks = []
    for place in range(n_people):
        means = centres + 0.6 * rng.standard_normal((3, d)) + rng.standard_normal(d)
        X = np.repeat(means, n_each, axis=0) + rng.standard_normal((3 * n_each, d)) * 1.5
        tasks.append(Task(X, y, f"person {place + 1}"))
    return tasks


def main() -> None:
    """Print a table of results."""
    parser = argparse.ArgumentParser(prog="python -m reproduction.discussion", description=__doc__)
    parser.add_argument("table", nargs="?", type=Path, help="one row a window; task and label")
    parser.add_argument("--splits", type=int, default=20, help="of each person and budget")
    parser.add_argument("--columns", default="f*", help="names of the features, for a table")
    options = parser.parse_args()
    data: dict[str, Sequence[Task]] = {}
    if options.table:
        tasks = read_tasks(options.table, task="task", label="label", columns=options.columns)
        data[options.table.stem] = list(tasks)
    else:
        data["Mental Math"] = list(load_mental_math(features="log-powers"))
        data["simulated, three classes"] = three_classes()
    for title, tasks in data.items():
        n_classes = len(tasks[0].classes)
        found = compare(tasks, methods_for(n_classes), n_splits=options.splits)
        print(f"\n{title}: {len(tasks)} people, {n_classes} classes; balanced accuracy")
        print(summarised(found).to_string())


def methods_for(n_classes: int) -> dict[str, Callable[[Sequence[Task]], Any]]:
    """Methods that can tell so many classes apart."""
    methods: dict[str, Callable[[Sequence[Task]], Any]] = {
        "hierarchical": partial(Estimator, HierarchicalBlendClassifier)
    }
    if n_classes > 2:
        return methods | {"pairs": Pairs}
    return methods | {
        "posterior": partial(Estimator, PosteriorBlendClassifier),
        "convex": partial(Estimator, ConvexBlendClassifier),
        "two kinds": partial(Kinds, n_kinds=2),
        "three kinds": partial(Kinds, n_kinds=3),
        "per source": PerSource,
    }


if __name__ == "__main__":
    main()

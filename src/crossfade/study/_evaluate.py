"""One target, its splits and a method: what the method predicts, and the scores of that.

The splits of a target are evaluated in batches (`_batch`). A method that fails on a split leaves
NaN there and nowhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from crossfade.study._batch import INTERVALS, Batch, Columns
from crossfade.study._estimators import FitEach
from crossfade.study._sources import Participant, Sources
from crossfade.study._splits import (
    NEXT_SESSION,
    Budget,
    draw_splits,
    generator_for,
    leaves_test_windows,
    number_of,
    windows_of_each_class,
)

if TYPE_CHECKING:
    from crossfade.study._methods import Method

#: Columns of the rows, in order, and what they hold.
COLUMNS: dict[str, type] = {
    **dict.fromkeys(("task", "group", "method"), object),
    "budget": float,
    **dict.fromkeys(("n_labelled", "split"), int),
    **dict.fromkeys(("balanced_accuracy", "accuracy", "roc_auc", "brier", "log_loss"), float),
    **dict.fromkeys(("alpha", "expected_accuracy", *sum(INTERVALS.values(), ())), float),
    "seconds": float,
}


#: Those that a method answers; NaN where it does not.
_MEASURED = [name for name, kind in COLUMNS.items() if kind is float and name != "budget"]


class Plan(NamedTuple):
    """Methods, budgets and splits that every target gets."""

    methods: Mapping[str, Method]
    budgets: Sequence[Budget]
    n_splits: int
    kind: str
    seed: int
    forecasts: bool = True


class Shard(NamedTuple):
    """A part of a study that is computed and kept as one: a method on a target."""

    task: str
    method: str


class Note(NamedTuple):
    """How often one task, budget and method failed, or only warned, and why the first time."""

    task: str
    budget: float
    method: str
    failed: bool
    times: int
    message: str


class Outcome(NamedTuple):
    """Rows of a shard, by budget and split, and what went wrong."""

    rows: pd.DataFrame
    notes: list[Note]


def joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Rows one after the other; there may be none."""
    found = [part for part in parts if len(part)]
    return pd.concat(found, ignore_index=True) if found else _frame_of([])


def _frame_of(parts: Sequence[Columns]) -> pd.DataFrame:
    """Rows of columns one after the other."""
    parts = [{name: np.empty(0, kind) for name, kind in COLUMNS.items()}, *parts]
    return pd.DataFrame({name: np.concatenate([one[name] for one in parts]) for name in COLUMNS})


def run_target(
    target: Participant, sources: Sources, plan: Plan, shards: Sequence[Shard]
) -> Iterator[tuple[Shard, Outcome]]:
    """Shards of one target, one after the other; what its sources know is learnt once for all."""
    again = plan.kind == NEXT_SESSION
    crowd = sources.before(target) if again else sources.without(target.group)
    for shard in shards:
        yield shard, _run_method(target, crowd, plan, plan.methods[shard.method])


def _run_method(target: Participant, others: Sources, plan: Plan, method: Method) -> Outcome:
    """Rows of one method on one target, but for budgets that give it too few windows."""
    parts: list[Columns] = []
    notes: list[Note] = []
    # The matrices are small, and sums by several threads are not the same to the last bit.
    with threads().limit(limits=1):
        for budget in plan.budgets:
            if not leaves_test_windows(budget, target.counts):
                continue
            n_each = windows_of_each_class(budget, target.counts)
            if not method.zero and min(n_each) < method.fewest:
                continue
            rng = generator_for(plan.seed, target.name, budget, "splits")
            splits = draw_splits(target.label, n_each, plan.n_splits, plan.kind, rng)
            batch = Batch(target.X, others.classes, splits)
            rng = generator_for(plan.seed, target.name, budget, "method", method.name)
            columns, found = _evaluate(method, others, batch, rng)
            key = target.name, number_of(budget), method.name
            about = dict(zip(("task", "budget", "method"), key, strict=True))
            about |= {"group": target.group}
            same: Columns = {
                name: np.full(plan.n_splits, value, COLUMNS[name]) for name, value in about.items()
            }
            parts.append(same | {"split": np.arange(plan.n_splits)} | columns)
            notes += [Note(*key, *one) for one in found]
    return Outcome(_frame_of(parts), notes)


@cache
def threads() -> Any:
    """The libraries with threads of this process; to find them takes longer than many a fit."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def _evaluate(
    method: Method, sources: Sources, batch: Batch, rng: np.random.Generator
) -> tuple[Columns, list[tuple[bool, int, str]]]:
    """Scores of all splits of a batch; whether splits failed or warned, how many and why."""
    n_splits = len(batch)
    size = 1 if isinstance(method.run, FitEach) else batch.largest_part
    columns: Columns = {name: np.full(n_splits, np.nan) for name in _MEASURED}
    columns["n_labelled"] = np.full(n_splits, batch.splits.label.size)
    failures: list[str] = []
    pieces = [(first, min(first + size, n_splits)) for first in range(0, n_splits, size)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Warnings for developers, also about a module that is compiled now, are not about a split.
        for kind in (DeprecationWarning, PendingDeprecationWarning, SyntaxWarning, ImportWarning):
            warnings.simplefilter("ignore", kind)
        while pieces:
            first, last = pieces.pop(0)
            start = perf_counter()
            try:
                found = method.run(sources, batch.part(first, last), rng)
            except Exception as reason:
                if last - first > 1:
                    # Run one after the other to find which of them it was.
                    pieces[:0] = [(place, place + 1) for place in range(first, last)]
                    continue
                found = {}
                failures.append(f"{type(reason).__name__}: {reason}")
            found["seconds"] = np.full(last - first, (perf_counter() - start) / (last - first))
            for name, values in found.items():
                columns[name][first:last] = values
    notes = []
    if failures:
        notes.append((True, len(failures), failures[0]))
    if caught:
        notes.append((False, len(caught), str(caught[0].message)))
    return columns, notes

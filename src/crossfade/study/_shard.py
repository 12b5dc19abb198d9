"""One target and its sources in, its rows out: all budgets and splits, the methods of a plan."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade.study._batch import Batch, Judge, Method, Verdicts
from crossfade.study._evaluate import EstimatorMethod
from crossfade.study._many_classes import ManyCrowd, ManySources
from crossfade.study._scores import (
    brier,
    brier_of_many,
    class_accuracies,
    recalls,
    roc_auc,
    roc_auc_of_rests,
)
from crossfade.study._sources import Crowd, Participant, Sources
from crossfade.study._splits import draw_splits, generator_for, windows_of_each_class

Array = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]


class Plan(NamedTuple):
    """What is done to every target.

    Attributes
    ----------
    methods : mapping of str to callable
        Methods by name.
    budgets : sequence of float or int
        Proportions, or labelled windows of each class.
    n_splits : int
        Splits for each budget.
    kind : str
        How splits are drawn.
    seed : int
        Seed of the study.
    """

    methods: Mapping[str, Method]
    budgets: Sequence[float]
    n_splits: int
    kind: str
    seed: int


class Note(NamedTuple):
    """What went wrong with one task, budget and method.

    Attributes
    ----------
    task : str
        Name of the task.
    budget : float
        The budget.
    method : str
        Name of the method.
    failed : bool
        Whether splits failed, or only warned.
    times : int
        How often.
    message : str
        Why, the first time.
    """

    task: str
    budget: float
    method: str
    failed: bool
    times: int
    message: str


class Outcome(NamedTuple):
    """What came of a shard.

    Attributes
    ----------
    columns : dict of ndarray
        Rows, by budget, method and split.
    notes : list of Note
        What went wrong.
    """

    columns: Columns
    notes: list[Note]


def run_shard(target: Participant, sources: Sources | ManySources, plan: Plan) -> Outcome:
    """Rows of one target; they depend on nothing but the arguments.

    Parameters
    ----------
    target : Participant
        Who is left out.
    sources : Sources or ManySources
        What is known of everybody.
    plan : Plan
        Methods, budgets and splits.

    Returns
    -------
    Outcome
        Rows, and what went wrong.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    parts: list[Columns] = []
    notes: list[Note] = []
    # The matrices are small, and sums by several threads are not the same to the last bit.
    with threadpool_limits(1):
        crowd = sources.without(target.group)
        judges = {name: _Panel(method, crowd) for name, method in plan.methods.items()}
        for budget in plan.budgets:
            n_each = windows_of_each_class(budget, target.counts)
            if n_each >= min(target.counts):
                continue
            rng = generator_for(plan.seed, target.name, budget, "splits")
            splits = draw_splits(target.label, n_each, plan.n_splits, plan.kind, rng)
            y, n_first = sources.classes[target.label], target.counts[0] - n_each
            batch = Batch(target.X, y, sources.classes, splits, n_first)
            for name, panel in judges.items():
                rng = generator_for(plan.seed, target.name, budget, "method", name)
                columns, found = panel.judge(batch, rng)
                parts.append(
                    {
                        "task": np.full(plan.n_splits, target.name, dtype=object),
                        "group": np.full(plan.n_splits, target.group, dtype=object),
                        "method": np.full(plan.n_splits, name, dtype=object),
                        "budget": np.full(plan.n_splits, float(budget)),
                        "n_labelled": np.full(plan.n_splits, target.n_classes * n_each),
                        "split": np.arange(plan.n_splits),
                        **columns,
                    }
                )
                notes += [Note(target.name, float(budget), name, *one) for one in found]
    return Outcome(joined(parts), notes)


def joined(parts: Sequence[Columns]) -> Columns:
    """Rows one after the other.

    Parameters
    ----------
    parts : sequence of dict of ndarray
        At least one.

    Returns
    -------
    dict of ndarray
        All of them.
    """
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


class _Panel:
    """One method and one target: judges its splits, and survives those that cannot be judged."""

    def __init__(self, method: Method, crowd: Crowd | ManyCrowd) -> None:
        self._one_by_one = isinstance(method, EstimatorMethod)
        self._judge: Judge
        try:
            self._judge = method(crowd)
        except Exception as reason:
            self._judge = partial(_refuse, reason)

    def judge(
        self, batch: Batch, rng: np.random.Generator
    ) -> tuple[Columns, list[tuple[bool, int, str]]]:
        """Scores of all splits of a batch; whether splits failed or warned, how many and why."""
        n_splits, n_test = batch.splits.test.shape
        many = [len(batch.classes)] if len(batch.classes) > 2 else []
        size = 1 if self._one_by_one else batch.largest_part
        verdicts: list[Verdicts] = []
        seconds = np.empty(n_splits)
        failures: dict[int, str] = {}
        pieces = [(first, min(first + size, n_splits)) for first in range(0, n_splits, size)]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            while pieces:
                first, last = pieces.pop(0)
                start = perf_counter()
                try:
                    verdicts.append(self._judge(batch.part(first, last), rng))
                except Exception as reason:
                    if last - first > 1:
                        pieces[:0] = [(place, place + 1) for place in range(first, last)]
                        continue
                    verdicts.append(Verdicts.none(1, n_test, *many))
                    failures[first] = f"{type(reason).__name__}: {reason}"
                seconds[first:last] = (perf_counter() - start) / (last - first)
        together = Verdicts.joined(verdicts)
        if many:
            # Windows of a class stand together, so that all splits have the same classes in a row.
            truth = np.searchsorted(batch.classes, batch.y[batch.splits.test[0]])
            columns = _columns_of_many(together, truth)
        else:
            columns = _columns(together, batch.n_first)
        for name in ("balanced_accuracy", "accuracy"):
            columns[name][list(failures)] = np.nan
        columns["seconds"] = seconds
        notes = []
        if failures:
            notes.append((True, len(failures), next(iter(failures.values()))))
        if caught:
            notes.append((False, len(caught), str(caught[0].message)))
        return columns, notes


def _columns(verdicts: Verdicts, n_first: int) -> Columns:
    first, second = class_accuracies(verdicts.positive, n_first)
    n_test = verdicts.positive.shape[1]
    return {
        "balanced_accuracy": (first + second) / 2.0,
        "accuracy": (first * n_first + second * (n_test - n_first)) / n_test,
        "roc_auc": roc_auc(verdicts.scores, n_first),
        "brier": brier(verdicts.probability, n_first),
        "alpha": verdicts.alpha,
        "expected_accuracy": verdicts.expected,
    }


def _columns_of_many(verdicts: Verdicts, truth: NDArray[np.intp]) -> Columns:
    shares = recalls(verdicts.positive, truth)
    return {
        "balanced_accuracy": shares.mean(-1),
        "accuracy": shares @ np.bincount(truth) / truth.size,
        "roc_auc": roc_auc_of_rests(verdicts.scores, truth),
        "brier": brier_of_many(verdicts.probability, truth),
        "alpha": verdicts.alpha,
        "expected_accuracy": verdicts.expected,
    }


def _refuse(reason: Exception, batch: Batch, rng: np.random.Generator) -> Verdicts:
    """What judges for a method that could not use its sources."""
    raise reason

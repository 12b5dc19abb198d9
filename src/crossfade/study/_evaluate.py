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
from numpy.typing import NDArray

from crossfade.exceptions import MissingPartWarning
from crossfade.study._batch import Array, Batch, Predictions
from crossfade.study._budgets import (
    Budget,
    leaves_test_windows,
    number_of,
    windows_of_each_class,
)
from crossfade.study._estimators import FitEach
from crossfade.study._sources import Participant, Sources
from crossfade.study._splits import NEXT_SESSION, draw_splits, generator_for

if TYPE_CHECKING:
    from crossfade.study._methods import Method

Columns = dict[str, NDArray[Any]]


# -- scores ---------------------------------------------------------------------------------------


def recalls(predicted: NDArray[np.intp], truth: NDArray[np.intp]) -> Array:
    """Share (..., n_classes) of each class that is recognised; their mean is balanced accuracy."""
    classes = range(int(truth.max()) + 1)
    return np.stack([(predicted[..., truth == name] == name).mean(-1) for name in classes], -1)


def roc_auc(scores: Array, truth: NDArray[np.intp]) -> Array:
    """Mean over the columns of the area under the curve of each class against the rest.

    The area is the probability that a window of the class has the higher score; ties count one
    half. `scores` are (n_splits, n_test, n_columns); a split with NaN has NaN.
    """
    n_columns = scores.shape[-1]
    areas = []
    for column, name in enumerate(range(int(truth.max()) + 1)[-n_columns:]):
        own = truth == name
        n_own, n_rest = int(own.sum()), int((~own).sum())
        ranks = _ranks(scores[..., column])
        areas.append((ranks[:, own].sum(-1) - n_own * (n_own + 1) / 2.0) / (n_own * n_rest))
    mean: Array = np.mean(areas, axis=0)
    return mean


def _ranks(rows: Array) -> Array:
    """Ranks within each row, from 1; equal values have the mean of theirs, rows with NaN NaN."""
    order = rows.argsort(-1)
    ordered = np.take_along_axis(rows, order, -1)
    starts = np.ones(rows.shape, dtype=bool)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    # Runs of equal values are numbered through; each starts at a rank and has a length.
    run = starts.ravel().cumsum() - 1
    first = np.tile(np.arange(1.0, rows.shape[-1] + 1.0), len(rows))[starts.ravel()]
    mean = first + (np.bincount(run) - 1) / 2.0
    ranks = np.empty(rows.shape)
    np.put_along_axis(ranks, order, mean[run].reshape(rows.shape), -1)
    ranks[np.isnan(ordered[:, -1])] = np.nan
    return ranks


def brier(probability: Array, truth: NDArray[np.intp]) -> Array:
    """Sum over the columns of the mean square of what their probabilities are off by.

    With two classes there is one column, so that this is the usual score from 0 to 1.
    """
    n_columns = probability.shape[-1]
    off = probability - (truth[:, None] == np.arange(int(truth.max()) + 1)[-n_columns:])
    score: Array = (off**2).sum(-1).mean(-1)
    return score


def log_loss(probability: Array, truth: NDArray[np.intp]) -> Array:
    """Mean over the classes of the mean of -log p of the windows of each, p at least 1e-15."""
    if probability.shape[-1] == 1:
        probability = np.concatenate([1.0 - probability, probability], -1)
    own = np.take_along_axis(probability, truth[None, :, None], -1)[..., 0]
    loss = -np.log(np.clip(own, 1e-15, 1.0))
    score: Array = np.mean(
        [loss[:, truth == name].mean(-1) for name in range(int(truth.max()) + 1)], axis=0
    )
    return score


def _columns(predictions: Predictions, truth: NDArray[np.intp]) -> Columns:
    shares = recalls(predictions.predicted, truth)
    found = {
        "balanced_accuracy": shares.mean(-1),
        "accuracy": shares @ np.bincount(truth) / truth.size,
        "roc_auc": roc_auc(predictions.scores, truth),
        "brier": brier(predictions.probability, truth),
        "log_loss": log_loss(predictions.probability, truth),
        "alpha": predictions.alpha,
        "expected_accuracy": predictions.expected,
        **dict(zip(INTERVALS, predictions.interval.T, strict=True)),
    }
    if np.isfinite(predictions.used).all():
        found["n_labelled"] = predictions.used.astype(int)
    failed = predictions.predicted[:, 0] < 0
    for name in ("balanced_accuracy", "accuracy"):
        found[name][failed] = np.nan
    return found


# -- a target and its methods ---------------------------------------------------------------------


class Plan(NamedTuple):
    """What is done to every target: methods by name, budgets, splits of a kind, the seed.

    `forecasts` says whether forecasts are calibrated.
    """

    methods: Mapping[str, Method]
    budgets: Sequence[Budget]
    n_splits: int
    kind: str
    seed: int
    forecasts: bool = True


class Note(NamedTuple):
    """How often one task, budget and method failed, or only warned, and why the first time.

    The budget is the number that stands for it in rows.
    """

    task: str
    budget: float
    method: str
    failed: bool
    times: int
    message: str


class Outcome(NamedTuple):
    """Rows of a shard, as columns, by budget, method and split; and what went wrong."""

    columns: Columns
    notes: list[Note]


class Shard(NamedTuple):
    """What is computed and kept as one: a method on a target."""

    task: str
    method: str


def run_target(
    target: Participant, sources: Sources, plan: Plan, shards: Sequence[Shard]
) -> Iterator[tuple[Shard, Outcome]]:
    """Shards of one target, one after the other; what its sources know is learnt once for all."""
    again = plan.kind == NEXT_SESSION
    crowd = sources.before(target) if again else sources.without(target.group)
    for shard in shards:
        part = plan._replace(methods={shard.method: plan.methods[shard.method]})
        yield shard, _run_shard(target, crowd, part)


def _run_shard(target: Participant, others: Sources, plan: Plan) -> Outcome:
    """Rows of one target; they depend on nothing but the arguments.

    Methods that need a labelled window of each class have no rows at budgets without.
    """
    parts: list[Columns] = []
    notes: list[Note] = []
    # The matrices are small, and sums by several threads are not the same to the last bit.
    with threads().limit(limits=1):
        for budget in plan.budgets:
            if not leaves_test_windows(budget, target.counts):
                continue
            n_each = windows_of_each_class(budget, target.counts)
            methods = {
                name: method
                for name, method in plan.methods.items()
                if method.zero or min(n_each) >= method.fewest
            }
            if not methods:
                continue
            rng = generator_for(plan.seed, target.name, budget, "splits")
            splits = draw_splits(target.label, n_each, plan.n_splits, plan.kind, rng)
            batch = Batch(target.X, others.classes, splits)
            for name, method in methods.items():
                rng = generator_for(plan.seed, target.name, budget, "method", name)
                columns, found = _evaluate(method, others, batch, rng)
                parts.append(
                    {
                        "task": np.full(plan.n_splits, target.name, dtype=object),
                        "group": np.full(plan.n_splits, target.group, dtype=object),
                        "method": np.full(plan.n_splits, name, dtype=object),
                        "budget": np.full(plan.n_splits, number_of(budget)),
                        "n_labelled": np.full(plan.n_splits, splits.label.size),
                        "split": np.arange(plan.n_splits),
                        **columns,
                    }
                )
                notes += [Note(target.name, number_of(budget), name, *one) for one in found]
    return Outcome(joined(parts), notes)


@cache
def threads() -> Any:
    """The libraries with threads of this process; to find them takes longer than many a fit."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


#: Columns of the ends of the intervals of a forecast.
INTERVALS = ("lower_68", "upper_68", "lower_90", "upper_90")
#: Columns that rows of older studies lack.
NEW_COLUMNS = ("log_loss", *INTERVALS)
#: Columns of the rows, in order, and what they hold.
COLUMNS: dict[str, type] = {
    **dict.fromkeys(("task", "group", "method"), object),
    "budget": float,
    **dict.fromkeys(("n_labelled", "split"), int),
    **dict.fromkeys(("balanced_accuracy", "accuracy", "roc_auc", "brier", "log_loss"), float),
    **dict.fromkeys(("alpha", "expected_accuracy", *INTERVALS, "seconds"), float),
}


def joined(parts: Sequence[Columns]) -> Columns:
    """Rows one after the other; there may be none, and older ones may lack the new columns."""
    lacking = [dict.fromkeys(NEW_COLUMNS, np.full(len(part["task"]), np.nan)) for part in parts]
    parts = [new | part for new, part in zip(lacking, parts, strict=True)]
    parts = [{name: np.empty(0, kind) for name, kind in COLUMNS.items()}, *parts]
    return {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}


def _evaluate(
    method: Method, sources: Sources, batch: Batch, rng: np.random.Generator
) -> tuple[Columns, list[tuple[bool, int, str]]]:
    """Scores of all splits of a batch; whether splits failed or warned, how many and why."""
    n_splits, n_test = batch.splits.test.shape
    n_classes = len(batch.classes)
    size = 1 if isinstance(method.run, FitEach) else batch.largest_part
    found: list[Predictions] = []
    seconds = np.empty(n_splits)
    failures: list[str] = []
    pieces = [(first, min(first + size, n_splits)) for first in range(0, n_splits, size)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # What is meant for developers, also of a module that is compiled now, is not about a split.
        for kind in (DeprecationWarning, PendingDeprecationWarning, SyntaxWarning, ImportWarning):
            warnings.simplefilter("ignore", kind)
        # Priors of a study have replays where somebody asked for forecasts.
        warnings.filterwarnings("ignore", "This prior holds .*replay", MissingPartWarning)
        while pieces:
            first, last = pieces.pop(0)
            start = perf_counter()
            try:
                found.append(method.run(sources, batch.part(first, last), rng))
            except Exception as reason:
                if last - first > 1:
                    # Which of them it was is found by one after the other.
                    pieces[:0] = [(place, place + 1) for place in range(first, last)]
                    continue
                found.append(Predictions.none(n_test, n_classes if n_classes > 2 else 1))
                failures.append(f"{type(reason).__name__}: {reason}")
            seconds[first:last] = (perf_counter() - start) / (last - first)
    columns = _columns(Predictions.joined(found), batch.splits.truth)
    columns["seconds"] = seconds
    notes = []
    if failures:
        notes.append((True, len(failures), failures[0]))
    if caught:
        notes.append((False, len(caught), str(caught[0].message)))
    return columns, notes

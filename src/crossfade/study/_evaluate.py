"""One target, its splits and a method: what the method predicts, and the scores of that.

The splits of a target are evaluated in batches, with a leading axis for the splits. Two classes are
K = 2: like scikit-learn, scores and probabilities then have one column, of the second class, and
with K > 2 classes they have K. A method that fails on a split leaves NaN there and nowhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from crossfade.blend._classifier import BlendClassifier
from crossfade.blend._multiclass import MulticlassBlend
from crossfade.fisher._direction import Direction, learn_direction
from crossfade.fisher._moments import ClassMoments
from crossfade.prior._task_prior import TaskPrior
from crossfade.study._budgets import (
    Budget,
    leaves_test_windows,
    number_of,
    windows_of_each_class,
)
from crossfade.study._sources import Participant, Sources
from crossfade.study._splits import Splits, draw_splits, generator_for

if TYPE_CHECKING:
    from crossfade.study._methods import Method

Array = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]

#: Levels of the intervals of a forecast.
LEVELS = (0.68, 0.9)
#: Numbers that one array of a batch may hold, and how many of each window or feature are wanted.
_LARGEST, _AT_ONCE = 2_000_000, 100


# -- what a method is told, and what it answers ---------------------------------------------------


@dataclass(frozen=True, eq=False)
class Batch:
    """Some splits of one target.

    `X` (n_windows, n_features) are all of its windows; `splits` say which are labelled. Their
    `truth` is for methods that may see the labels of test windows.
    """

    X: Array
    classes: NDArray[Any]
    splits: Splits

    def __len__(self) -> int:
        return len(self.splits.test)

    def part(self, first: int, last: int) -> Batch:
        """Splits from `first` up to but not including `last`."""
        return replace(self, splits=self.splits.part(first, last))

    @property
    def largest_part(self) -> int:
        """Splits that fit into memory at once."""
        n_windows, n_features = self.X.shape
        n_labelled = self.splits.labelled.shape[1]
        numbers = max(n_features * max(n_labelled, _AT_ONCE), n_windows * 11)
        return max(1, _LARGEST // int(numbers))

    @cached_property
    def moments(self) -> ClassMoments:
        """Moments of the labelled windows of each split; all zero where there is none."""
        if not self.splits.label.size:
            (n_splits, _), n_features = self.splits.labelled.shape, self.X.shape[1]
            n_classes = len(self.classes)
            return ClassMoments(
                np.zeros(n_classes),
                np.zeros((n_splits, n_classes, n_features)),
                np.zeros((n_splits, n_features, n_features)),
                False,
                np.zeros((n_splits, n_features)),
            )
        X, label = self.X[self.splits.labelled], self.splits.label
        return ClassMoments.of(X, label, n_classes=len(self.classes))

    def describe(
        self, shrinkage: str | None, scale: Array | None, *, form: str = "unit"
    ) -> Direction:
        """What the labelled windows of each split say on their own."""
        return learn_direction(self.moments, shrinkage, scale, form=form)

    def describe_for(self, prior: TaskPrior) -> Direction:
        """What the labelled windows of each split say, in the units of a prior."""
        known = prior.neighbour_correlation if self.splits.in_a_row else None
        return learn_direction(
            self.moments,
            "oas",
            prior.feature_scale,
            fallback=prior.within_spectrum,
            correlation=known,
        )

    def midpoint(self) -> Array:
        """Middle (n_splits, d) of the class means of the labelled windows of each split."""
        middle: Array = np.mean(self.class_means(), axis=0)
        return middle

    @property
    def shows_all_classes(self) -> bool:
        """Whether every class has a labelled window."""
        return len(np.unique(self.splits.label)) == len(self.classes)

    @property
    def unlabelled(self) -> NDArray[np.intp]:
        """Windows (n_splits, n_unlabelled) that may be seen without their labels."""
        seen = self.splits.unlabelled
        return self.splits.test if seen is None else seen

    def onto(self, places: NDArray[np.intp]) -> Batch:
        """The same labelled windows, and others (n_splits, n_places) to predict."""
        return replace(self, splits=self.splits._replace(test=places, unlabelled=None))

    def class_means(self) -> list[Array]:
        """Means (n_splits, d) of the labelled windows of each class that has any."""
        X, label = self.X[self.splits.labelled], self.splits.label
        return [X[:, label == name].mean(1) for name in np.unique(label).tolist()]

    def scores(self, coef: Array, midpoint: Array) -> Array:
        """Scores (n_splits, ..., n_test) along directions (n_splits, ..., d) in user's units."""
        n_splits, *more, n_features = coef.shape
        several = coef.reshape(n_splits, -1, n_features)
        # One large product is much faster than many small ones.
        scores = (coef.reshape(-1, n_features) @ self.X.T).reshape(n_splits, -1, len(self.X))
        scores = np.take_along_axis(scores, self.splits.test[:, None, :], -1)
        scores -= several @ midpoint[..., None]
        return scores.reshape(n_splits, *more, -1)


class Predictions(NamedTuple):
    """What a method says about the test windows of each split; NaN where it says nothing.

    `predicted` (n_splits, n_test) has places of classes. `scores` and `probability` are (n_splits,
    n_test, n_columns), `alpha`, the weight of the target, and `expected`, the forecast of the
    accuracy, (n_splits,). `interval` (n_splits, 4) has the lower and upper ends of the 68 % and of
    the 90 % interval of that forecast.
    """

    predicted: NDArray[np.intp]
    scores: Array
    probability: Array
    alpha: Array
    expected: Array
    interval: Array

    @classmethod
    def of(
        cls,
        predicted: NDArray[np.intp],
        scores: Array,
        probability: Array | None = None,
        alpha: Array | float = np.nan,
        expected: Array | float = np.nan,
        interval: Array | float = np.nan,
    ) -> Predictions:
        """Those of scores (n_splits, n_test, n_columns); all else may be missing."""
        n_splits = len(scores)
        return cls(
            predicted,
            scores,
            np.full(scores.shape, np.nan) if probability is None else probability,
            np.full(n_splits, alpha),
            np.full(n_splits, expected),
            np.full((n_splits, 4), interval),
        )

    @classmethod
    def of_two(
        cls,
        scores: Array,
        probability: Array | None = None,
        alpha: Array | float = np.nan,
        expected: Array | float = np.nan,
        interval: Array | float = np.nan,
    ) -> Predictions:
        """Those of scores (n_splits, n_test) that are positive for the second of two classes."""
        predicted = (scores > 0.0).astype(np.intp)
        chances = None if probability is None else probability[..., None]
        return cls.of(predicted, scores[..., None], chances, alpha, expected, interval)

    @classmethod
    def none(cls, n_test: int, n_columns: int) -> Predictions:
        """Those of a method that failed on one split."""
        return cls.of(np.full((1, n_test), -1), np.full((1, n_test, n_columns), np.nan))

    @classmethod
    def joined(cls, parts: Sequence[Predictions]) -> Predictions:
        """Predictions for splits one after the other."""
        return cls._make(np.concatenate(part) for part in zip(*parts, strict=True))

    def patched(self, places: Sequence[int], others: Predictions) -> Predictions:
        """The same, with other predictions for the splits at some places."""
        whole = Predictions._make(array.copy() for array in self)
        for array, part in zip(whole, others, strict=True):
            array[places] = part
        return whole


# -- estimators -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class FitEach:
    """Fit a scikit-learn classifier to the labelled windows of each split and to nothing else.

    It is cloned, and a `random_state` of None is seeded. A batch must have one split.
    """

    estimator: Any

    def __call__(self, sources: Sources, batch: Batch, rng: np.random.Generator) -> Predictions:
        fitted = clone(self.estimator)
        seeds = {
            name: int(rng.integers(2**31))
            for name, value in sorted(fitted.get_params().items())
            if value is None and name.split("__")[-1] == "random_state"
        }
        return fit_and_predict(fitted.set_params(**seeds), batch)


def fit_and_predict(estimator: Any, batch: Batch) -> Predictions:
    """Predictions of an estimator that is fitted to the only split of a batch."""
    [labelled], [test] = batch.splits.labelled, batch.splits.test
    estimator.fit(batch.X[labelled], batch.classes[batch.splits.label])
    outputs = outputs_of(estimator, batch.X[test], batch.classes)
    return Predictions._make(np.asarray(one)[None] for one in (*outputs, *_about_itself(estimator)))


def outputs_of(
    estimator: Any, X: Array, classes: NDArray[Any]
) -> tuple[NDArray[np.intp], Array, Array]:
    """Predicted classes (n,), scores and probabilities (n, n_columns); odd output is refused."""
    n_classes = len(classes)
    label = _output(estimator, "predict", X)
    taken = np.stack([np.asarray(label == name) for name in classes], -1)
    strange = label[~taken.any(-1)].tolist()
    if strange:
        raise ValueError(
            f"predict returned {strange[0]!r}, which is none of the classes "
            f"{classes.tolist()}. A method of a study must be a classifier."
        )
    columns = slice(None) if n_classes > 2 else slice(1, None)
    scores = taken[:, columns].astype(np.float64)
    probability = np.full(scores.shape, np.nan)
    has_chances = hasattr(estimator, "predict_proba")
    if has_chances:
        chances = _output(estimator, "predict_proba", X, n_classes).astype(np.float64)
        scores = probability = chances[:, columns]
    # Of many classes, scores of one against the rest are not those of the others.
    if hasattr(estimator, "decision_function") and not (n_classes > 2 and has_chances):
        shape = [n_classes] if n_classes > 2 else []
        scores = _output(estimator, "decision_function", X, *shape).astype(np.float64)
    return taken.argmax(-1), scores.reshape(probability.shape), probability


def _about_itself(estimator: Any) -> tuple[float, float, Array]:
    """Alpha, forecast and its intervals (4,) of a blend, NaN for what it lacks.

    Other estimators may have an alpha_ too, of other meaning; one that forecasts with an interval
    is a blend.
    """
    alpha = expected = np.nan
    interval = np.full(2 * len(LEVELS), np.nan)
    # Of classes that are set against the rest there is no forecast.
    if hasattr(estimator, "expected_accuracy_interval") and hasattr(
        estimator, "expected_accuracy_"
    ):
        ends = [estimator.expected_accuracy_interval(level) for level in LEVELS]
        interval = np.ravel(ends).astype(np.float64)
    if isinstance(estimator, MulticlassBlend):
        alpha = float(np.mean([rule.alpha_ for rule in estimator.rules_.values()]))
        expected = getattr(estimator, "expected_accuracy_", np.nan)
    elif isinstance(estimator, BlendClassifier) or np.isfinite(interval).any():
        alpha, expected = getattr(estimator, "alpha_", np.nan), estimator.expected_accuracy_
    return alpha, expected, interval


def _output(estimator: Any, name: str, X: Array, *n_columns: int) -> NDArray[Any]:
    """What an estimator's function returns; numpy would broadcast a wrong shape to a score."""
    values = np.asarray(getattr(estimator, name)(X))
    shape = (len(X), *n_columns)
    if values.shape != shape:
        raise ValueError(
            f"{name} must return an array of shape {shape} for {len(X)} windows; got "
            f"{values.shape}."
        )
    return values


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
    failed = predictions.predicted[:, 0] < 0
    for name in ("balanced_accuracy", "accuracy"):
        found[name][failed] = np.nan
    return found


# -- a target and its methods ---------------------------------------------------------------------


class Plan(NamedTuple):
    """What is done to every target: methods by name, budgets, splits of a kind, the seed.

    `mix` is the proportion of the second class among the unlabelled windows that methods see, None
    for that of the test windows; `forecasts` says whether forecasts are calibrated.
    """

    methods: Mapping[str, Method]
    budgets: Sequence[Budget]
    n_splits: int
    kind: str
    seed: int
    mix: float | None = None
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


def run_shard(target: Participant, sources: Sources, plan: Plan) -> Outcome:
    """Rows of one target; they depend on nothing but the arguments.

    Methods that need a labelled window of each class have no rows at budgets without.
    """
    parts: list[Columns] = []
    notes: list[Note] = []
    # The matrices are small, and sums by several threads are not the same to the last bit.
    with _threads().limit(limits=1):
        others = sources.without(target.group)
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
            if plan.mix is not None:
                rng = generator_for(plan.seed, target.name, budget, "mix", plan.mix)
                splits = splits.mixed(plan.mix, rng)
            batch = Batch(target.X, sources.classes, splits)
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
def _threads() -> Any:
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

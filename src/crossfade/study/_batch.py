"""What a method of a study is told, and what it answers.

The splits of a target come in batches, with a leading axis for the splits. Two classes are K = 2:
like scikit-learn, scores and probabilities then have one column, of the second class, and with
K > 2 classes they have K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade.fisher import ClassMoments, Direction, learn_direction
from crossfade.prior import TaskPrior
from crossfade.study._splits import Splits

Array = NDArray[np.float64]

#: Levels of the intervals of a forecast.
LEVELS = (0.68, 0.9)
#: Numbers that one array of a batch may hold, and how many of each window or feature are wanted.
_LARGEST, _AT_ONCE = 2_000_000, 100


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
    the 90 % interval of that forecast. `used` (n_splits,) are the labelled windows that it looked
    at, NaN for all of them.
    """

    predicted: NDArray[np.intp]
    scores: Array
    probability: Array
    alpha: Array
    expected: Array
    interval: Array
    used: Array

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
            np.full(n_splits, np.nan),
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

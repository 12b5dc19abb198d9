"""What a method of a study is told: some splits of one target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfade.fisher import ClassMoments
from crossfade.study._splits import Splits

Array = NDArray[np.float64]

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
        if first == 0 and last == len(self):
            return self
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
        return self._moments((len(self),))

    @cached_property
    def moments_alone(self) -> ClassMoments:
        """Those of the only split, without an axis for splits."""
        return self._moments(())

    def _moments(self, axes: tuple[int, ...]) -> ClassMoments:
        n_classes, n_features = len(self.classes), self.X.shape[1]
        if not self.splits.label.size:
            return ClassMoments(
                np.zeros(n_classes),
                np.zeros((*axes, n_classes, n_features)),
                np.zeros((*axes, n_features, n_features)),
                False,
                np.zeros((*axes, n_features)),
            )
        X = self.X[self.splits.labelled].reshape(*axes, -1, n_features)
        return ClassMoments.of(X, self.splits.label, n_classes=n_classes)

    @property
    def has_directions(self) -> bool:
        """Whether the classes of every split differ in a feature that varies within them."""
        if len(self.classes) > 2 or not self.shows_all_classes:
            return True
        differ = self.moments.gap() != 0.0
        if (self.moments.left >= 1.0).all():
            differ &= self.moments.deviation() > 0.0
        return bool(differ.any(-1).all())

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

"""One target's splits in, what a method is told of them out; and its verdicts on test windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade.fisher._direction import Samples, Target, describe_target
from crossfade.prior._task_prior import TaskPrior
from crossfade.study._splits import Splits

Array = NDArray[np.float64]

#: Numbers that one array of a batch may hold, and how many of each window or feature are wanted.
_LARGEST, _AT_ONCE = 2_000_000, 100


class Verdicts(NamedTuple):
    """What a method says about the test windows of each split, NaN where it says nothing.

    With more than two classes the first three have a last axis for the classes: scores that are
    higher for each, whether a window is taken for one of it, and its probability.

    Attributes
    ----------
    scores : ndarray of shape (n_splits, n_test)
        Higher for the second class.
    positive : ndarray of shape (n_splits, n_test)
        Whether a window is taken for one of the second class.
    probability : ndarray of shape (n_splits, n_test)
        Probability of the second class.
    alpha, expected : ndarray of shape (n_splits,)
        Weight of the target, and forecast of the accuracy.
    """

    scores: Array
    positive: NDArray[np.bool_]
    probability: Array
    alpha: Array
    expected: Array

    @classmethod
    def none(cls, *shape: int) -> Verdicts:
        """Verdicts of a method that failed.

        Parameters
        ----------
        *shape : int
            Splits, test windows, and, if they are more than two, classes.

        Returns
        -------
        Verdicts
            NaN, and False.
        """
        nothing, nowhere = np.full(shape, np.nan), np.full(shape[0], np.nan)
        return cls(nothing, np.zeros(shape, bool), nothing, nowhere, nowhere)

    @classmethod
    def joined(cls, parts: Sequence[Verdicts]) -> Verdicts:
        """Verdicts on splits one after the other.

        Parameters
        ----------
        parts : sequence of Verdicts
            At least one.

        Returns
        -------
        Verdicts
            All of them.
        """
        return cls(*(np.concatenate(part) for part in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False)
class Batch:
    """Some splits of one target.

    Attributes
    ----------
    X : ndarray of shape (n_windows, n_features)
        All windows of the target.
    y : ndarray of shape (n_windows,)
        Their labels, of which a method may look at those of labelled windows only.
    classes : ndarray of shape (n_classes,)
        The labels.
    splits : Splits
        Which windows are labelled, and which are to be judged.
    n_first : int
        Test windows of the first class; the oracle alone may know which they are.
    """

    X: Array
    y: NDArray[Any]
    classes: NDArray[Any]
    splits: Splits
    n_first: int

    def part(self, first: int, last: int) -> Batch:
        """Splits from `first` up to but not including `last`.

        Parameters
        ----------
        first, last : int
            Places of the splits.

        Returns
        -------
        Batch
            These splits of the same target.
        """
        labelled, test, in_a_row = self.splits
        splits = Splits(labelled[first:last], test[first:last], in_a_row)
        return Batch(self.X, self.y, self.classes, splits, self.n_first)

    @property
    def largest_part(self) -> int:
        """Splits that fit into memory at once."""
        n_windows, n_features = self.X.shape
        n_labelled = self.splits.labelled.shape[1]
        numbers = max(n_features * max(n_labelled, _AT_ONCE), n_windows * 11)
        return max(1, _LARGEST // int(numbers))

    def describe(self, shrinkage: str | None, scale: Array | None, *, form: str = "unit") -> Target:
        """What the labelled windows of each split say on their own.

        Parameters
        ----------
        shrinkage : {"oas"} or None
            How to shrink the covariance.
        scale : ndarray of shape (n_features,) or None
            What to divide features by.
        form : {"unit", "minus"}
            Form of the covariance of the direction.

        Returns
        -------
        Target
            One target for each split.
        """
        return describe_target(self._samples(), shrinkage, scale, form=form)

    def describe_for(self, prior: TaskPrior) -> Target:
        """What the labelled windows of each split say to who knows a prior.

        Parameters
        ----------
        prior : TaskPrior
            What the crowd knows.

        Returns
        -------
        Target
            One target for each split.
        """
        known = prior.neighbour_correlation if self.splits.in_a_row else None
        return describe_target(
            self._samples(), "oas", prior.feature_scale, prior.within_spectrum, correlation=known
        )

    def _samples(self) -> Samples:
        labelled = self.splits.labelled
        label = np.repeat([0, 1], labelled.shape[1] // 2)
        return Samples(self.X[labelled], label, np.ones(label.size))

    def midpoint(self) -> Array:
        """Middle between the class means of the labelled windows of each split."""
        # Both classes have as many labelled windows.
        middle: Array = self.X[self.splits.labelled].mean(1)
        return middle

    def scores(self, coef: Array, midpoint: Array) -> Array:
        """Scores of the test windows along directions in the user's units.

        Parameters
        ----------
        coef : ndarray of shape (n_splits, ..., n_features)
            Directions, one or more for each split.
        midpoint : ndarray of shape (n_splits, n_features)
            Where scores are zero.

        Returns
        -------
        ndarray of shape (n_splits, ..., n_test)
            Scores.
        """
        n_splits, *more, n_features = coef.shape
        several = coef.reshape(n_splits, -1, n_features)
        # One large product is much faster than many small ones.
        scores = (coef.reshape(-1, n_features) @ self.X.T).reshape(n_splits, -1, len(self.X))
        scores = np.take_along_axis(scores, self.splits.test[:, None, :], -1)
        scores -= several @ midpoint[..., None]
        return scores.reshape(n_splits, *more, -1)


#: What judges a batch of splits, given a generator of its own.
Judge = Callable[[Batch, np.random.Generator], Verdicts]
#: What makes such a judge out of the target's sources: a ``Crowd``, or a ``ManyCrowd`` where there
#: are more than two classes.
Method = Callable[[Any], Judge]

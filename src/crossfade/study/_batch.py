"""Some splits of one target, which a method is given, and the columns of rows that it answers.

Predictions of test windows have a leading axis of splits. `truth` (n_test,) has places of classes,
the same for all splits. Two classes have one column of scores and probabilities, that of the
second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import rankdata

from crossfade._typing import Array, Places
from crossfade.blend import Rule, places_of
from crossfade.fisher import ClassMoments
from crossfade.study._splits import Splits

#: Numbers that one array of a batch may hold, and how many of each window or feature are wanted.
_LARGEST, _AT_ONCE = 2_000_000, 100
#: Columns of rows by name, each (n_splits,).
Columns = dict[str, NDArray[Any]]
#: Columns of the ends of the intervals of a forecast, and their levels.
INTERVALS = {0.68: ("lower_68", "upper_68"), 0.9: ("lower_90", "upper_90")}


@dataclass(frozen=True, eq=False)
class Batch:
    """Windows X (n_windows, n_features) of one target, and which of them are labelled."""

    X: Array
    classes: NDArray[Any]
    splits: Splits

    def __len__(self) -> int:
        return len(self.splits.test)

    def part(self, first: int, last: int) -> Batch:
        """Splits from `first` up to but not including `last`."""
        if last - first == len(self):
            return self
        splits = self.splits
        labelled, test = splits.labelled[first:last], splits.test[first:last]
        return replace(self, splits=splits._replace(labelled=labelled, test=test))

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
        n_splits, n_classes, n_features = len(self), len(self.classes), self.X.shape[1]
        if not self.splits.label.size:
            return ClassMoments.empty(n_classes, n_features, n_splits)
        X = self.X[self.splits.labelled]
        return ClassMoments.of(X, self.splits.label, n_classes=n_classes)

    def midpoint(self) -> Array:
        """Middle (n_splits, d) of the class means of the labelled windows of each split."""
        return np.mean(self.class_means(), axis=0)

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


def measured(
    truth: Places, scores: Array, probability: Array | None = None, predicted: Places | None = None
) -> Columns:
    """Scores of predictions; `scores` and `probability` are (n_splits, n_test, n_columns)."""
    shares = recalls(places_of(scores) if predicted is None else predicted, truth)
    found = {
        "balanced_accuracy": shares.mean(-1),
        "accuracy": shares @ np.bincount(truth) / truth.size,
        "roc_auc": roc_auc(scores, truth),
    }
    if probability is not None:
        found |= {"brier": brier(probability, truth), "log_loss": log_loss(probability, truth)}
    return found


def of_odds(truth: Places, odds: Array, slope: Array | float = 1.0) -> Columns:
    """Scores of log odds (n_splits, n_test, n_classes), up to a constant, and times a slope."""
    chances = softmax(slope * odds, -1)
    if odds.shape[-1] == 2:
        return measured(truth, odds[..., 1:] - odds[..., :1], chances[..., 1:])
    return measured(truth, softmax(odds, -1), chances, odds.argmax(-1))


def of_rule(
    batch: Batch, rule: Rule, *, forecasts: bool = True, scores_only: bool = False
) -> Columns:
    """Scores of the rules of all splits, and what they say about themselves."""
    n_splits, truth = len(batch), batch.splits.truth
    scores = rule.scores(batch.X).reshape(n_splits, len(batch.X), -1)
    scores = np.take_along_axis(scores, batch.splits.test[..., None], 1)
    chances = None if scores_only else rule.probabilities(scores)
    if chances is None:
        found = measured(truth, scores)
    elif len(batch.classes) == 2:
        found = measured(truth, scores, chances[..., 1:])
    else:
        found = measured(truth, chances, chances, places_of(scores))
    found["alpha"] = np.broadcast_to(rule.alpha, n_splits)
    if forecasts and not scores_only:
        found["expected_accuracy"] = np.broadcast_to(rule.expected_accuracy, n_splits)
        for level, names in INTERVALS.items():
            for name, end in zip(names, rule.interval(level), strict=True):
                found[name] = np.broadcast_to(end, n_splits)
    return found


def recalls(predicted: Places, truth: Places) -> Array:
    """Share (..., n_classes) of each class that is recognised; their mean is balanced accuracy."""
    classes = range(int(truth.max()) + 1)
    return np.stack([(predicted[..., truth == name] == name).mean(-1) for name in classes], -1)


def roc_auc(scores: Array, truth: Places) -> Array:
    """Mean over columns (n_splits, n_test, n_columns) of the area under each class's curve."""
    n_columns = scores.shape[-1]
    areas = []
    for column, name in enumerate(range(int(truth.max()) + 1)[-n_columns:]):
        own = truth == name
        n_own, n_rest = int(own.sum()), int((~own).sum())
        ranks = rankdata(scores[..., column], axis=-1)
        areas.append((ranks[:, own].sum(-1) - n_own * (n_own + 1) / 2.0) / (n_own * n_rest))
    return np.mean(areas, axis=0)


def brier(probability: Array, truth: Places) -> Array:
    """Sum over the columns of the mean squared error of their probabilities."""
    n_columns = probability.shape[-1]
    off = probability - (truth[:, None] == np.arange(int(truth.max()) + 1)[-n_columns:])
    return (off**2).sum(-1).mean(-1)


def log_loss(probability: Array, truth: Places) -> Array:
    """Mean over the classes of the mean of -log p of the windows of each, p at least 1e-15."""
    if probability.shape[-1] == 1:
        probability = np.concatenate([1.0 - probability, probability], -1)
    own = np.take_along_axis(probability, truth[None, :, None], -1)[..., 0]
    loss = -np.log(np.clip(own, 1e-15, 1.0))
    return np.mean(
        [loss[:, truth == name].mean(-1) for name in range(int(truth.max()) + 1)], axis=0
    )

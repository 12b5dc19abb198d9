"""How well test windows are predicted: balanced accuracy, area under the curve, two losses.

Predictions have a leading axis of splits. `truth` (n_test,) has places of classes, the same for all
splits. Two classes have one column of scores and probabilities, that of the second.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Array = NDArray[np.float64]
Places = NDArray[np.intp]


def recalls(predicted: Places, truth: Places) -> Array:
    """Share (..., n_classes) of each class that is recognised; their mean is balanced accuracy."""
    classes = range(int(truth.max()) + 1)
    return np.stack([(predicted[..., truth == name] == name).mean(-1) for name in classes], -1)


def roc_auc(scores: Array, truth: Places) -> Array:
    """Mean over the columns of the area under the curve of each class against the rest.

    The area is the probability that a window of the class has the higher score; ties count one
    half. `scores` are (n_splits, n_test, n_columns); a split with NaN has NaN.
    """
    n_columns = scores.shape[-1]
    areas = []
    for column, name in enumerate(range(int(truth.max()) + 1)[-n_columns:]):
        own = truth == name
        n_own, n_rest = int(own.sum()), int((~own).sum())
        ranks = rankdata(scores[..., column], axis=-1)
        areas.append((ranks[:, own].sum(-1) - n_own * (n_own + 1) / 2.0) / (n_own * n_rest))
    mean: Array = np.mean(areas, axis=0)
    return mean


def brier(probability: Array, truth: Places) -> Array:
    """Sum over the columns of the mean squared error of their probabilities."""
    n_columns = probability.shape[-1]
    off = probability - (truth[:, None] == np.arange(int(truth.max()) + 1)[-n_columns:])
    score: Array = (off**2).sum(-1).mean(-1)
    return score


def log_loss(probability: Array, truth: Places) -> Array:
    """Mean over the classes of the mean of -log p of the windows of each, p at least 1e-15."""
    if probability.shape[-1] == 1:
        probability = np.concatenate([1.0 - probability, probability], -1)
    own = np.take_along_axis(probability, truth[None, :, None], -1)[..., 0]
    loss = -np.log(np.clip(own, 1e-15, 1.0))
    score: Array = np.mean(
        [loss[:, truth == name].mean(-1) for name in range(int(truth.max()) + 1)], axis=0
    )
    return score

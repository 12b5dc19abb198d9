"""Verdicts on the test windows of many splits in, one score for each split out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def class_accuracies(positive: NDArray[np.bool_], n_first: int) -> tuple[Array, Array]:
    """Share of each class that is recognised.

    Parameters
    ----------
    positive : ndarray of shape (..., n_test)
        Whether a window is taken for one of the second class.
    n_first : int
        How many windows, the first ones, are of the first class.

    Returns
    -------
    first, second : ndarray of shape (...)
        Shares from 0 to 1; their mean is the balanced accuracy.
    """
    return 1.0 - positive[..., :n_first].mean(-1), positive[..., n_first:].mean(-1)


def roc_auc(scores: Array, n_first: int) -> Array:
    """Probability that a window of the second class has the higher score; ties count one half.

    Parameters
    ----------
    scores : ndarray of shape (n_splits, n_test)
        Higher for the second class; a row with NaN has a NaN for its score.
    n_first : int
        How many windows, the first ones, are of the first class.

    Returns
    -------
    ndarray of shape (n_splits,)
        Areas under the curves.
    """
    from scipy.stats import rankdata

    n_second = scores.shape[-1] - n_first
    ranks = rankdata(scores, axis=-1)
    above = ranks[..., n_first:].sum(-1) - n_second * (n_second + 1) / 2.0
    areas: Array = above / (n_first * n_second)
    return areas


def brier(probability: Array, n_first: int) -> Array:
    """Mean square of what probabilities are off by.

    Parameters
    ----------
    probability : ndarray of shape (n_splits, n_test)
        Probability of the second class.
    n_first : int
        How many windows, the first ones, are of the first class.

    Returns
    -------
    ndarray of shape (n_splits,)
        Brier scores.
    """
    truth = np.arange(probability.shape[-1]) >= n_first
    score: Array = ((probability - truth) ** 2).mean(-1)
    return score


def recalls(taken: NDArray[np.bool_], truth: NDArray[np.intp]) -> Array:
    """Share of each of many classes that is recognised.

    Parameters
    ----------
    taken : ndarray of shape (n_splits, n_test, n_classes)
        Whether a window is taken for one of each class.
    truth : ndarray of shape (n_test,)
        Place of the class that it is of.

    Returns
    -------
    ndarray of shape (n_splits, n_classes)
        Shares from 0 to 1; their mean is the balanced accuracy.
    """
    classes = range(taken.shape[-1])
    return np.stack([taken[:, truth == name, name].mean(-1) for name in classes], -1)


def roc_auc_of_rests(scores: Array, truth: NDArray[np.intp]) -> Array:
    """Mean over many classes of the area under the curve of each against the rest.

    Parameters
    ----------
    scores : ndarray of shape (n_splits, n_test, n_classes)
        Higher for each class; a split with NaN has a NaN for its score.
    truth : ndarray of shape (n_test,)
        Place of the class that a window is of.

    Returns
    -------
    ndarray of shape (n_splits,)
        Mean areas, as of ``roc_auc_score(..., multi_class="ovr")``.
    """
    areas = []
    for name in range(scores.shape[-1]):
        own = truth == name
        rest_first = np.argsort(own, kind="stable")
        areas.append(roc_auc(scores[:, rest_first, name], int((~own).sum())))
    mean: Array = np.mean(areas, axis=0)
    return mean


def brier_of_many(probability: Array, truth: NDArray[np.intp]) -> Array:
    """Sum over many classes of the mean square of what their probabilities are off by.

    Parameters
    ----------
    probability : ndarray of shape (n_splits, n_test, n_classes)
        Probability of each class.
    truth : ndarray of shape (n_test,)
        Place of the class that a window is of.

    Returns
    -------
    ndarray of shape (n_splits,)
        Brier scores, from 0 to 2.
    """
    off = probability - np.eye(probability.shape[-1])[truth]
    score: Array = (off**2).sum(-1).mean(-1)
    return score

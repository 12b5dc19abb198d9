"""Scores of labelled and unlabelled samples in, the threshold between the classes out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]

#: What an unlabelled sample counts for beside a labelled one, and how often it is asked again.
_WEIGHT, _ROUNDS = 0.3, 30


def threshold_of(
    labelled: Array,
    label: NDArray[np.intp],
    unlabelled: Array,
    weight: Array | float = 1.0,
    odds: Array | float = 0.0,
) -> Array:
    """Middle between two normals of one variance, fitted to scores by EM (equation 28).

    Labelled scores stay in their class; unlabelled ones belong to each class by its probability,
    and count 0.3.

    Parameters
    ----------
    labelled : ndarray of shape (..., n_labelled)
        Scores of both classes.
    label : ndarray of shape (n_labelled,)
        0 for the first class, 1 for the second.
    unlabelled : ndarray of shape (..., n_unlabelled)
        Scores of unknown class.
    weight : ndarray of shape (n_labelled,) or float, default=1.0
        How often a labelled score counts.
    odds : float or ndarray of shape (...), default=0.0
        Logarithm of the odds of the first class among unlabelled scores.

    Returns
    -------
    ndarray of shape (...)
        The middle; scores above it are of the second class, if classes are equally likely.
    """
    own = np.stack([label == 0, label == 1]) * np.asarray(weight, np.float64)
    scores = np.concatenate([labelled, unlabelled], -1)
    fixed = np.broadcast_to(own, (*labelled.shape[:-1], *own.shape))
    means = labelled @ own.T / own.sum(1)
    around = (labelled - means[..., label]) ** 2 @ own.sum(0) / own.sum()
    variance = np.maximum(around, 0.3 * scores.var(-1))
    for _ in range(_ROUNDS):
        slope = (means[..., 1] - means[..., 0]) / np.where(variance > 0.0, variance, 1.0)
        away = slope[..., None] * (unlabelled - means.mean(-1, keepdims=True))
        second = expit(away - np.asarray(odds)[..., None])
        belongs = np.concatenate([fixed, _WEIGHT * np.stack([1.0 - second, second], -2)], -1)
        total = belongs.sum(-1)
        means = (belongs * scores[..., None, :]).sum(-1) / total
        apart = (scores[..., None, :] - means[..., None]) ** 2
        variance = (belongs * apart).sum((-2, -1)) / total.sum(-1)
    middle: Array = means.mean(-1)
    return middle

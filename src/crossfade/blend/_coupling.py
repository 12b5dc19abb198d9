"""Probabilities of many classes from the log odds of binary rules (equations 39 and 40)."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit, softmax

from crossfade._typing import Array

#: Draws of a forecast: its own error is below 0.01, less than half of that of 100 labels a class.
_DRAWS = 2000


def couple_pairs(log_odds: Array, n_classes: int) -> Array:
    """Probabilities that agree best with those of all pairs (39; Wu, Lin and Weng 2004)."""
    first, second = np.triu_indices(n_classes, 1)
    batch = log_odds.shape[:-1]
    beaten = np.zeros((*batch, n_classes, n_classes))
    beaten[..., first, second] = expit(log_odds)
    beaten[..., second, first] = expit(-log_odds)
    system = np.ones((*batch, n_classes + 1, n_classes + 1))
    system[..., :-1, :-1] = -beaten * beaten.mT
    diagonal = np.arange(n_classes)
    system[..., diagonal, diagonal] = (beaten**2).sum(-1)
    system[..., -1, -1] = 0.0
    sums = np.zeros((*batch, n_classes + 1, 1))
    sums[..., -1, 0] = 1.0
    # Never singular, not even for certain odds: see the text at equation 39.
    solution = np.linalg.solve(system, sums)[..., :-1, 0]
    chances = np.maximum(solution, 0.0)
    coupled: Array = chances / chances.sum(-1, keepdims=True)
    return coupled


def couple_rests(log_odds: Array) -> Array:
    """Probabilities of classes that were each set against the rest, brought to a sum of one."""
    # All classes being equally likely, the rest is more so than the one class.
    n_others = log_odds.shape[-1] - 1
    coupled: Array = softmax(log_expit(log_odds - np.log(n_others)), axis=-1)
    return coupled


def coupled_accuracy(centres: Array, covariance: Array) -> Array:
    """Share of samples whose own class is the likeliest, if log odds of pairs are normal.

    The same draws for every class and every call make it a smooth function of its arguments.
    """
    n_classes, n_pairs = centres.shape[-2:]
    half = np.random.default_rng(0).standard_normal((_DRAWS // 2, n_pairs))
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    draws = np.concatenate([half, -half]) @ root.mT
    hits = [
        couple_pairs(centres[..., place, None, :] + draws, n_classes).argmax(-1) == place
        for place in range(n_classes)
    ]
    accuracy: Array = np.mean(hits, axis=(0, -1))
    return accuracy

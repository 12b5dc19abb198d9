"""What to expect of a rule on new samples, freed of what it owes to its own noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crossfade.fisher._direction import Target
from crossfade.risk._proportions import error_rate, threshold

Array = NDArray[np.float64]


class Forecast(NamedTuple):
    """What to expect of directions on new samples.

    Attributes
    ----------
    gap : ndarray of shape (...)
        Half the distance of the classes along the directions, freed of what it owes to noise.
    variance : ndarray of shape (...)
        Variance within the classes along the directions.
    accuracy, error : ndarray of shape (...)
        Expected accuracy, and its standard error.
    """

    gap: Array
    variance: Array
    accuracy: Array
    error: Array


def forecast(
    target: Target,
    omega: Array,
    trace: Array | float,
    gap: Array | None = None,
    share: Array | float | None = None,
    share_error: Array | float = 0.0,
) -> Forecast:
    """Accuracy to expect of directions on new samples, and its error (equations 25 and 26).

    Parameters
    ----------
    target : Target
        What the labelled samples say.
    omega : ndarray of shape (..., n_features)
        Directions of any length.
    trace : float or ndarray of shape (...)
        Trace of the matrix that multiplies the target's own unit direction in `omega`.
    gap : ndarray of shape (...) or None
        Half the distance of the classes along them, if it does not come from the samples.
    share, share_error : float or ndarray of shape (...)
        Probability of the second class among new samples, and its standard error; None where both
        are equally likely.

    Returns
    -------
    Forecast
        The gap and variance along the directions, the accuracy and its error.
    """
    freedom = target.freedom
    rank = np.maximum(target.rank, 1)
    # A covariance learnt from few samples is too small along directions that come from it.
    spent = target.spent
    learnt = freedom / np.maximum(freedom - spent * trace / rank, 0.5)
    swell = 1.0 + spent / rank * (learnt - 1.0)
    variance = np.asarray(np.vecdot(omega, target.sigma.apply(omega)) * swell**2)
    length = np.where(target.noise.length > 0.0, target.noise.length, np.inf)
    owed = target.mean_noise * swell * trace / length
    if gap is None:
        gap = np.asarray(np.vecdot(omega, target.nu) - owed)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = gap / np.sqrt(np.maximum(variance, 0.0))
        score = np.where(np.isnan(score), 0.0, score)
        doubt = np.nan_to_num(2.0 * owed**2 / (variance * rank))
    # What was taken off the gap is itself uncertain. A mean of Phi over a noisy score is too low;
    # over this one it is right. The noise of the gap proper cancels with that of the threshold.
    doubt = np.minimum(doubt, 0.5)
    own_score, score = score, score / np.sqrt(1.0 - doubt)
    finite = np.where(np.isfinite(score), score, 0.0)
    spread = np.sqrt(target.mean_noise + doubt + finite**2 / (2.0 * freedom))
    accuracy = ndtr(score)
    error = (ndtr(score + spread) - ndtr(score - spread)) / 2.0
    if share is not None:
        noise = target.mean_noise
        accuracy, error = expected_accuracy(own_score, doubt, noise, spread, share, share_error)
    if target.own_scale:
        # Student's tails: with few degrees of freedom a score may be anything.
        error = np.maximum(error, min(1.0 / freedom, 0.5))
    # Without a degree of freedom left the samples say nothing about their own rule.
    blind = (freedom - spent < 1.0) & (np.asarray(trace) > 0.0)
    accuracy = np.where(blind, 0.5, accuracy)
    return Forecast(gap, variance, accuracy, np.where(blind, 0.25, error))


def expected_accuracy(
    score: Array,
    doubt: Array,
    noise: float,
    spread: Array,
    share: Array | float,
    share_error: Array | float = 0.0,
    later: Array | float | None = None,
) -> tuple[Array, Array]:
    """Accuracy to expect of rules that were fitted to few samples (equations 43 and 44).

    Parameters
    ----------
    score : ndarray of shape (...)
        Half the distance of the classes, in deviations, as the rules take it for their thresholds.
    doubt : ndarray of shape (...)
        Variance of what was taken off the score for its own noise.
    noise : float
        Variance of half the gap, and of the middle, in units of the variance.
    spread : ndarray of shape (...)
        Standard deviation of the score.
    share, share_error : float or ndarray of shape (...)
        Probability of the second class, and its standard error.
    later : float, ndarray of shape (...) or None, default=None
        `noise` of the samples that the rules will be fitted to, if these are others.

    Returns
    -------
    accuracy, error : ndarray of shape (...)
        Expected accuracy and its standard error.
    """
    moved = threshold(score, 1.0, share)
    later = noise if later is None else later
    # That of the score as it is known today, and of the one that the threshold will be set by.
    variance = (noise + later) / 2.0 + doubt
    # A score that came out too large has made the threshold too bold as well.
    with np.errstate(divide="ignore", invalid="ignore"):
        bold = np.where(score > 0.0, moved**2 * variance / score, 0.0)
    honest = score / np.sqrt(np.maximum(1.0 + (later - noise) - doubt, 0.5))
    centre = honest - np.minimum(bold, np.sqrt(variance))
    rate = error_rate(centre, 1.0, moved, share)
    square = np.zeros_like(rate)
    for other in (honest - spread, honest + spread):
        for elsewhere in (moved - np.sqrt(later), moved + np.sqrt(later)):
            square = square + (error_rate(other, 1.0, elsewhere, share) - rate) ** 2 / 4.0
    unlike = ndtr(centre - moved) - ndtr(centre + moved)
    return 1.0 - rate, np.sqrt(square + (unlike * share_error) ** 2)

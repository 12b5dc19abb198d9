"""What to expect of a rule on new samples, freed of its optimism (equations 25, 26, 43 and 44).

A rule looks better on the samples that it was learnt from than it is: the gap that it sees along
its direction is too large by the optimism c tr(A) / |omega|, with A the matrix by which the rule
follows the person's own direction; its trace are the effective degrees of freedom (Efron 2004).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from crossfade._typing import Array
from crossfade.fisher import Direction
from crossfade.risk._error_rate import error_rate, threshold


class Forecast(NamedTuple):
    """What to expect of directions on new samples."""

    gap: Array  # (...): half the distance of the classes along the directions, without optimism
    variance: Array  # (...): variance within the classes along the directions
    accuracy: Array  # (...)
    error: Array  # (...): standard error of the accuracy
    spread: Array  # (...): standard error of its probit
    score: Array  # (...): half the distance of the classes, in deviations
    doubt: Array  # (...): variance of the optimism that was taken off the score


def forecast(
    person: Direction,
    omega: Array,
    dof: Array | float,
    gap: Array | None = None,
    class_prior: Array | float = 0.5,
    prior_error: Array | float = 0.0,
) -> Forecast:
    """Accuracy to expect of directions (..., d) of any length on new samples, and its error.

    `dof` are their effective degrees of freedom, the trace of the matrix that multiplies the
    person's own direction; `gap` is half the distance of the classes along them if it does not
    come from the samples; `prior_error` is the standard error of the `class_prior`.
    """
    freedom = person.dof
    rank = np.maximum(person.rank, 1)
    # A covariance learnt from few samples is too small along directions that come from it.
    learnt_dof = person.covariance_dof
    learnt = freedom / np.maximum(freedom - learnt_dof * dof / rank, 0.5)
    inflation = 1.0 + learnt_dof / rank * (learnt - 1.0)
    variance = np.asarray(np.vecdot(omega, person.sigma.apply(omega)) * inflation**2)
    length = np.where(person.length > 0.0, person.length, np.inf)
    noise = person.mean_noise
    optimism = noise * inflation * dof / length
    if gap is None:
        gap = np.asarray(np.vecdot(omega, person.nu) - optimism)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = gap / np.sqrt(np.maximum(variance, 0.0))
        score = np.where(np.isnan(score), 0.0, score)
        doubt = 2.0 * optimism**2 / (variance * rank)
    doubt = np.where(np.isnan(doubt), 0.0, doubt)
    # The optimism is itself uncertain. A mean of Phi over a noisy score is too low; over this one
    # it is right. The noise of the gap proper cancels with that of the threshold.
    doubt = np.minimum(doubt, 0.5)
    honest = score / np.sqrt(1.0 - doubt)
    finite = np.where(np.isfinite(honest), honest, 0.0)
    spread = np.sqrt(noise + doubt + finite**2 / (2.0 * freedom))
    accuracy, error = expected_accuracy(score, doubt, noise, spread, class_prior, prior_error)
    if person.own_scale:
        # Student's tails: with few degrees of freedom a score may be anything.
        error = np.maximum(error, np.minimum(1.0 / freedom, 0.5))
    # Without a degree of freedom left the samples say nothing about their own rule.
    blind = (freedom - learnt_dof < 1.0) & (np.asarray(dof) > 0.0)
    return Forecast(
        gap,
        variance,
        np.where(blind, 0.5, accuracy),
        np.where(blind, 0.25, error),
        np.where(blind, 1e6, spread),
        np.where(blind, 0.0, score),
        doubt,
    )


def expected_accuracy(
    score: Array,
    doubt: Array,
    noise: Array | float,
    spread: Array,
    class_prior: Array | float = 0.5,
    prior_error: Array | float = 0.0,
    later: Array | float | None = None,
) -> tuple[Array, Array]:
    """Accuracy of rules that were fitted to few samples, and its error (equations 43 and 44).

    `score` is half the distance of the classes, in deviations, as the rules take it for their
    thresholds; `doubt` the variance of the optimism that was taken off it; `noise` the variance of
    half the gap, and of the middle; `spread` the deviation of the score; `later` the noise of the
    samples that the rules will be fitted to, if these are others.
    """
    later = noise if later is None else later
    honest = score / np.sqrt(np.maximum(1.0 + (later - noise) - doubt, 0.5))
    equal = np.asarray(class_prior) == 0.5
    plain = ndtr(honest), (ndtr(honest + spread) - ndtr(honest - spread)) / 2.0
    if equal.all():
        return plain
    moved = threshold(score, 1.0, class_prior)
    # That of the score as it is known today, and of the one that the threshold will be set by.
    variance = (noise + later) / 2.0 + doubt
    # A score that came out too large has made the threshold too bold as well.
    with np.errstate(divide="ignore", invalid="ignore"):
        bold = np.where(score > 0.0, moved**2 * variance / score, 0.0)
    centre = honest - np.minimum(bold, np.sqrt(variance))
    rate = error_rate(centre, 1.0, moved, class_prior)
    square = np.zeros_like(rate)
    for other in (honest - spread, honest + spread):
        for elsewhere in (moved - np.sqrt(later), moved + np.sqrt(later)):
            square = square + (error_rate(other, 1.0, elsewhere, class_prior) - rate) ** 2 / 4.0
    unlike = ndtr(centre - moved) - ndtr(centre + moved)
    error = np.sqrt(square + (unlike * prior_error) ** 2)
    return np.where(equal, plain[0], 1.0 - rate), np.where(equal, plain[1], error)

"""Accuracy of a rule on new samples, freed of its optimism (equations 25 and 26).

The gap that a rule sees on its own samples is too large by c tr(A) / |omega|, with A the matrix by
which it follows the person's own direction (Efron 2004).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from crossfade._typing import Array
from crossfade.fisher import Direction


class Forecast(NamedTuple):
    """Forecast of directions on new samples, of shape (...) each."""

    accuracy: Array
    score: Array  # half the distance of the classes, in deviations, without optimism
    doubt: Array  # variance of the optimism that was taken off the score
    spread: Array  # standard error of the probit of the accuracy
    variance: Array  # variance within the classes along the directions


def forecast(person: Direction, omega: Array, dof: Array | float) -> Forecast:
    """Forecast of directions (..., d) of any length, of `dof` effective degrees of freedom."""
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
    gap = np.asarray(np.vecdot(omega, person.nu) - optimism)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = gap / np.sqrt(np.maximum(variance, 0.0))
        score = np.where(np.isnan(score), 0.0, score)
        doubt = 2.0 * optimism**2 / (variance * rank)
    # The optimism is itself uncertain. A mean of Phi over a noisy score is too low; over this one
    # it is right. The noise of the gap proper cancels with that of the threshold.
    doubt = np.minimum(np.where(np.isnan(doubt), 0.0, doubt), 0.5)
    honest = score / np.sqrt(1.0 - doubt)
    finite = np.where(np.isfinite(honest), honest, 0.0)
    spread = np.sqrt(noise + doubt + finite**2 / (2.0 * freedom))
    # Without a degree of freedom left the samples say nothing about their own rule.
    blind = (freedom - learnt_dof < 1.0) & (np.asarray(dof) > 0.0)
    return Forecast(
        np.where(blind, 0.5, ndtr(honest)),
        np.where(blind, 0.0, score),
        doubt,
        np.where(blind, 1e6, spread),
        variance,
    )

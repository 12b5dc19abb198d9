"""Class proportions in; thresholds, error rates and proportions of unlabelled samples out.

The `share` of the second class stands for both proportions; None is equal ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, ndtr

from crossfade._validate import check_finite

Array = NDArray[np.float64]

#: Samples of unknown class that the given proportions count for.
_SAMPLES_GIVEN = 2.0
#: Gain in log-likelihood from which proportions differ from the given ones: 5 per cent by chance.
_GAIN = 2.0
#: Most rounds of EM, and the step in the share after which there is no other.
_ROUNDS, _STEP = 1000, 1e-6


def check_class_prior(class_prior: ArrayLike | None) -> float | None:
    """Probability of the second class; None where both are equally likely."""
    if class_prior is None:
        return None
    remedy = "class_prior must be two positive probabilities that sum to one, first class first"
    if isinstance(class_prior, str):
        raise ValueError(
            f"{remedy}; got {class_prior!r}. Unlabelled samples give an estimate: "
            "see estimate_proportions of the blends."
        )
    pair = check_finite("class_prior", class_prior, 0)
    if pair.shape != (2,) or pair.min() <= 0.0 or abs(pair.sum() - 1.0) > 1e-6:
        raise ValueError(f"{remedy}; got {class_prior!r}.")
    share = float(pair[1] / pair.sum())
    return None if share == 0.5 else share


def log_odds(share: Array | float | None) -> Array:
    """Logarithm of the odds of the first class."""
    return np.zeros(()) if share is None else np.asarray(-logit(share))


def threshold(gap: Array, variance: Array | float, share: Array | float) -> Array:
    """What is added to the middle between the classes (equation 20).

    Parameters
    ----------
    gap : ndarray of shape (...)
        Half the distance of the classes along a direction.
    variance : ndarray of shape (...)
        Variance within the classes along it.
    share : float or ndarray of shape (...)
        Probability of the second class.

    Returns
    -------
    ndarray of shape (...)
        The threshold; infinite where there is no gap, so that all answers are the likelier class.
    """
    odds = log_odds(share)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.where(gap > 0.0, odds * variance / (2.0 * gap), odds * np.inf)
    return np.where(odds == 0.0, 0.0, moved)


def error_rate(gap: Array, variance: Array | float, moved: Array, share: Array | float) -> Array:
    """Error rate of a threshold anywhere between classes of unequal proportions (equation 41).

    Parameters
    ----------
    gap : ndarray of shape (...)
        Half the distance of the classes along a direction.
    variance : ndarray of shape (...)
        Variance within the classes along it.
    moved : ndarray of shape (...)
        Where the threshold lies, from the middle.
    share : float or ndarray of shape (...)
        Probability of the second class.

    Returns
    -------
    ndarray of shape (...)
        Error rates.
    """
    deviation = np.sqrt(np.maximum(variance, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (-gap - moved) / deviation, (moved - gap) / deviation
    # No variance and no gap: the rule answers at random.
    first, second = np.where(np.isnan(first), 0.0, first), np.where(np.isnan(second), 0.0, second)
    rate: Array = (1.0 - np.asarray(share)) * ndtr(first) + share * ndtr(second)
    return rate


def proportion_of(
    scores: Array,
    gap: Array,
    variance: Array,
    counts: tuple[float, float],
    share: float = 0.5,
) -> tuple[Array, Array]:
    """Share of the second class among unlabelled samples, by EM on their scores (equation 45).

    Two normals of one variance, whose means and variance the labelled samples have suggested with
    the weight of their number. The given share stays unless another one is clearly likelier.

    Parameters
    ----------
    scores : ndarray of shape (..., n_unlabelled)
        Scores from the middle between the classes.
    gap, variance : ndarray of shape (...)
        Half the distance of the classes and the variance within them, from labelled samples.
    counts : (float, float)
        Labelled samples of each class.
    share : float, default=0.5
        The share that is given.

    Returns
    -------
    share, error : ndarray of shape (...)
        The share and its standard error; the given one, with zero, where it stays.
    """
    separate = (gap > 0.0) & (variance > 0.0)
    gap, variance = np.where(separate, gap, 1.0), np.where(separate, variance, 1.0)
    given = np.full(gap.shape, share)
    fixed = _likelihood(scores, gap, variance, counts, given, learn=False)[1]
    learnt, likelihood = _likelihood(scores, gap, variance, counts, given, learn=True)
    gain = likelihood - fixed
    clear = separate & (gain > _GAIN)
    # By Wilks: half the squared distance from the given share, in standard errors, is the gain.
    # On the scale of arcsin(sqrt(share)) these are about the same everywhere.
    distance = np.abs(np.arcsin(np.sqrt(learnt)) - np.arcsin(np.sqrt(given)))
    stretch = 2.0 * np.sqrt(learnt * (1.0 - learnt))
    error = stretch * distance / np.sqrt(2.0 * np.maximum(gain, _GAIN))
    return np.where(clear, learnt, given), np.where(clear, error, 0.0)


def _likelihood(
    scores: Array,
    gap: Array,
    variance: Array,
    counts: tuple[float, float],
    given: Array,
    *,
    learn: bool,
) -> tuple[Array, Array]:
    """Share after EM, and the logarithm of the likelihood there; else that of the given share."""
    labelled = np.asarray(counts)
    suggested = np.stack([-gap, gap], -1)
    means, within, share = suggested, variance, given
    n_samples = scores.shape[-1]
    for _ in range(_ROUNDS):
        slope = (means[..., 1] - means[..., 0]) / within
        away = scores - means.mean(-1, keepdims=True)
        second = expit(slope[..., None] * away - log_odds(share)[..., None])
        belongs = np.stack([1.0 - second, second], -2)
        total = belongs.sum(-1) + labelled
        means = ((belongs * scores[..., None, :]).sum(-1) + labelled * suggested) / total
        apart = (belongs * (scores[..., None, :] - means[..., None]) ** 2).sum((-2, -1))
        moved = (labelled * ((suggested - means) ** 2 + variance[..., None])).sum(-1)
        before = within, share
        within = (apart + moved) / total.sum(-1)
        if learn:
            share = (second.sum(-1) + _SAMPLES_GIVEN * given) / (n_samples + _SAMPLES_GIVEN)
        step = np.maximum(np.abs(within / before[0] - 1.0), np.abs(share - before[1]))
        if np.max(step, initial=0.0) < _STEP:
            break
    weights = np.stack([1.0 - share, share], -1)
    scale = within[..., None]
    density = (
        np.log(weights)[..., None]
        - (
            (scores[..., None, :] - means[..., None]) ** 2 / scale[..., None]
            + np.log(scale)[..., None]
        )
        / 2.0
    )
    own = np.stack([1.0 - given, given], -1)
    likelihood = np.logaddexp(density[..., 0, :], density[..., 1, :]).sum(-1)
    likelihood = likelihood + _SAMPLES_GIVEN * (own * np.log(weights)).sum(-1)
    about = ((suggested - means) ** 2 + variance[..., None]) / scale + np.log(scale)
    return share, likelihood - (labelled * about).sum(-1) / 2.0

"""What unlabelled windows say of the threshold and of the class proportions, by EM on scores."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from crossfade._typing import Array
from crossfade.risk._error_rate import log_odds

#: What an unlabelled sample counts for beside a labelled one, and steps of the EM.
_WEIGHT, _STEPS = 0.3, 30
#: Samples of unknown class that the given proportions count for.
_SAMPLES_GIVEN = 2.0
#: Gain in log-likelihood from which proportions differ from the given ones: 5 per cent by chance.
_GAIN = 2.0
#: Most rounds of EM, and the step in the share after which there is no other.
_ROUNDS, _STEP = 1000, 1e-6


def threshold_of(
    counts: Array,
    means: Array,
    variance: Array,
    unlabelled: Array,
    odds: Array | float = 0.0,
) -> Array:
    """Middle (...) between two normals of one variance, fitted to scores by EM (equation 28).

    Labelled scores stay in their class: their counts (2,), means (..., 2) and variance (...) within
    the classes say all. Unlabelled ones (..., n) belong to each class by its probability, and count
    0.3; `odds` are the log odds of the first class among them.
    """
    n_labelled, n_samples = counts.sum(), counts.sum() + unlabelled.shape[-1]
    own, sums, squares = means, counts * means, n_labelled * variance
    # Variance of all scores together, labelled or not.
    centre = (sums.sum(-1) + unlabelled.sum(-1)) / n_samples
    around = squares + (counts * (own - centre[..., None]) ** 2).sum(-1)
    around = around + ((unlabelled - centre[..., None]) ** 2).sum(-1)
    variance = np.maximum(variance, 0.3 * around / n_samples)
    for _ in range(_STEPS):
        slope = (means[..., 1] - means[..., 0]) / np.where(variance > 0.0, variance, 1.0)
        away = slope[..., None] * (unlabelled - means.mean(-1, keepdims=True))
        second = expit(away - np.asarray(odds)[..., None])
        belongs = _WEIGHT * np.stack([1.0 - second, second], -2)
        total = counts + belongs.sum(-1)
        means = (sums + (belongs * unlabelled[..., None, :]).sum(-1)) / total
        apart = (belongs * (unlabelled[..., None, :] - means[..., None]) ** 2).sum((-2, -1))
        kept = squares + (counts * (own - means) ** 2).sum(-1)
        variance = (kept + apart) / total.sum(-1)
    middle: Array = means.mean(-1)
    return middle


def proportion_of(
    scores: Array,
    gap: Array,
    variance: Array,
    counts: Array,
    share: float = 0.5,
) -> tuple[Array, Array]:
    """Share of the second class among unlabelled samples, by EM on their scores (equation 45).

    Two normals of one variance, whose means and variance the labelled samples have suggested with
    the weight of their number. The given share stays unless another one is clearly likelier.
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
    counts: Array,
    given: Array,
    *,
    learn: bool,
) -> tuple[Array, Array]:
    """Share after EM, and the logarithm of the likelihood there; else that of the given share."""
    labelled = counts
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

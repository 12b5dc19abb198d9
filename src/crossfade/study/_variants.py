"""A target's sources and a batch of its splits in, verdicts out: other priors, other thresholds.

What can be shared in the place of exact sums, and what unlabelled windows say of the proportions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from crossfade.blend._estimators import ConvexBlendClassifier, PosteriorBlendClassifier
from crossfade.blend._mixture import given_crowd, mixture_blend
from crossfade.blend._per_task import per_task_blend
from crossfade.blend._posterior import scattered_blend
from crossfade.fisher._direction import Target
from crossfade.fisher._spectrum import Spectrum
from crossfade.prior._mixture import MixturePrior
from crossfade.prior._release import Release, noise_scale, repaired, sensitivity
from crossfade.prior._task_prior import TaskPrior
from crossfade.risk._choose import least_risk
from crossfade.risk._forecast import forecast
from crossfade.risk._law import BlendLaw
from crossfade.risk._proportions import log_odds, proportion_of
from crossfade.study._batch import Batch, Judge, Method, Verdicts
from crossfade.study._evaluate import forecast_verdicts, mended
from crossfade.study._sources import Crowd

Array = NDArray[np.float64]

#: Privacy budget of "private".
EPSILON, DELTA = 1.0, 1e-5


def _mixture(crowd: Crowd) -> Judge:
    prior = MixturePrior.from_prior(crowd.prior)
    estimator = PosteriorBlendClassifier(prior)

    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        own = batch.describe_for(prior.pooled)
        blend = mixture_blend(*_direction(own), prior.components, estimator.strength)
        alpha = blend.own_trace / prior.n_features
        verdicts = forecast_verdicts(batch, own, blend.omega, blend.trace, alpha)
        return mended(verdicts, batch, own, estimator)

    return judge


def _convex_mixture(crowd: Crowd) -> Judge:
    prior = MixturePrior.from_prior(crowd.prior)
    estimator = ConvexBlendClassifier(prior)

    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        own = batch.describe_for(prior.pooled)
        noise = own.noise
        blend = mixture_blend(*_direction(own), prior.components, 1.0)
        met = given_crowd(own.sigma, noise.inverse, prior.components, blend)
        law = BlendLaw(own.sigma, own.nu, noise, met.mean_direction, met.psi_parts())
        alpha = np.where(met.cancels, 1.0, least_risk(law, None).alpha)
        omega = alpha[:, None] * noise.omega + (1.0 - alpha)[:, None] * met.mean_direction
        trace = alpha * own.rank + (1.0 - alpha) * met.sway
        verdicts = forecast_verdicts(batch, own, omega, trace, alpha)
        return mended(verdicts, batch, own, estimator)

    return judge


def _per_task(crowd: Crowd) -> Judge:
    prior = crowd.prior
    estimator = ConvexBlendClassifier(prior, weights="per-task")

    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        own = batch.describe_for(prior)
        blend = per_task_blend(own, np.asarray(prior.directions))
        verdicts = forecast_verdicts(batch, own, blend.omega, blend.trace, blend.alpha)
        return mended(verdicts, batch, own, estimator)

    return judge


def _private(crowd: Crowd) -> Judge:
    exact = crowd.prior
    noise = noise_scale(sensitivity(exact.n_tasks, False), EPSILON, DELTA)

    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        prior = _as_if_released(exact, noise, rng)
        estimator = PosteriorBlendClassifier(prior)
        own = batch.describe_for(prior)
        root = prior.scatter_root
        blend, _ = scattered_blend(*_direction(own), prior.mean, root, estimator.strength)
        alpha = blend.trace / prior.n_features
        verdicts = forecast_verdicts(batch, own, blend.omega, blend.trace, alpha)
        return mended(verdicts, batch, own, estimator)

    return judge


def _as_if_released(exact: TaskPrior, noise: float, rng: np.random.Generator) -> TaskPrior:
    """What ``exact.released`` gives, but that its noise follows from the study's seed."""
    size = exact.n_features
    moved = rng.normal(0.0, noise, (size, size))
    # Outer products are released as a triangle, what is off the diagonal times the root of two.
    moved = np.triu(moved, 1) / np.sqrt(2.0) + np.diag(np.diagonal(moved)) / 2.0
    sums = exact.direction_sum + rng.normal(0.0, noise, size), exact.outer_sum + moved + moved.T
    direction_sum, outer_sum = repaired(*sums, exact.n_tasks, noise)
    return TaskPrior(
        n_tasks=exact.n_tasks,
        direction_sum=direction_sum,
        outer_sum=outer_sum,
        feature_scale=exact.feature_scale,
        classes=exact.classes,
        scale_learnt=True,
        release=Release(EPSILON, DELTA, noise, scale_covered=False),
    )


def _proportions(crowd: Crowd) -> Judge:
    prior = crowd.prior
    estimator = PosteriorBlendClassifier(prior)

    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        own = batch.describe_for(prior)
        root = prior.scatter_root
        blend, _ = scattered_blend(*_direction(own), prior.mean, root, estimator.strength)
        promise = forecast(own, blend.omega, blend.trace)
        alpha = blend.trace / prior.n_features
        verdicts = forecast_verdicts(batch, own, blend.omega, blend.trace, alpha)
        verdicts = mended(verdicts, batch, own, estimator)
        share, error = proportion_of(verdicts.scores, promise.gap, promise.variance, own.counts)
        learnt = forecast(own, blend.omega, blend.trace, None, share, error)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.nan_to_num(2.0 * promise.gap / promise.variance, posinf=0.0)
        odds = slope[:, None] * verdicts.scores - log_odds(share)[:, None]
        moved = error > 0.0
        return verdicts._replace(
            scores=np.where(moved[:, None], odds, verdicts.scores),
            positive=np.where(moved[:, None], odds > 0.0, verdicts.positive),
            probability=np.where(moved[:, None], expit(odds), verdicts.probability),
            expected=np.where(moved, learnt.accuracy, verdicts.expected),
        )

    return judge


def _direction(own: Target) -> tuple[Spectrum, Array, Array, Array]:
    """What the blends take of a target."""
    return own.sigma, own.noise.omega, own.noise.inverse, own.noise.length


#: Methods beside those that a study compares by default.
VARIANTS: dict[str, Method] = {
    "mixture": _mixture,
    "convex-mixture": _convex_mixture,
    "per-task": _per_task,
    "private": _private,
    "posterior-proportions": _proportions,
}

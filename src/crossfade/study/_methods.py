"""A target's sources and a batch of its splits in, verdicts on the test windows out: the rivals.

A method is called once for each target with its sources, and returns a function that is called
with batches of splits; so whatever depends on the sources alone is done once.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crossfade.blend._estimators import ConvexBlendClassifier, PosteriorBlendClassifier
from crossfade.blend._posterior import scattered_blend
from crossfade.blend._unlabelled import threshold_of
from crossfade.fisher._direction import Target
from crossfade.fisher._discriminant import FisherDiscriminant
from crossfade.fisher._spectrum import Spectrum, outside
from crossfade.prior._task_prior import TaskPrior
from crossfade.risk._choose import least_risk
from crossfade.risk._law import BlendLaw
from crossfade.study._batch import Batch, Judge, Method, Verdicts
from crossfade.study._evaluate import EstimatorMethod, forecast_verdicts, mended, verdicts_of
from crossfade.study._scores import class_accuracies
from crossfade.study._sources import Crowd
from crossfade.study._variants import VARIANTS

Array = NDArray[np.float64]

#: The paper's grid of alphas, and its draws at each.
GRID = np.linspace(0.0, 1.0, 11)
_N_DRAWS = 100


# -- the paper's five: pseudo-inverse, raw units, balanced sources, grid of 0.1 -------------------


def _target(crowd: Crowd) -> Judge:
    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        return _printed_verdicts(batch, _as_printed(batch).noise.omega, 1.0)

    return judge


def _average_source(crowd: Crowd) -> Judge:
    mu = crowd.paper_prior.mean_direction

    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        return _printed_verdicts(batch, np.tile(mu, (len(batch.splits.test), 1)), 0.0)

    return judge


def _paper(crowd: Crowd) -> Judge:
    prior = crowd.paper_prior
    psi = prior.psi_parts("authors")

    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        own = _as_printed(batch)
        law = _within_reach(BlendLaw(own.sigma, own.nu, own.noise, prior.mean_direction, psi))
        alpha = least_risk(law, GRID, "monte_carlo", _N_DRAWS, rng).alpha
        return _printed_verdicts(batch, _blend(own, prior, alpha), alpha)

    return judge


def _oracle(crowd: Crowd) -> Judge:
    prior = crowd.paper_prior

    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        own = _as_printed(batch)
        blends = _blend(own, prior, np.tile(GRID, (len(own.nu), 1)))
        scores = batch.scores(blends, batch.midpoint())
        first, second = class_accuracies(scores > 0.0, batch.n_first)
        # The largest alpha among the best.
        best = GRID.size - 1 - (first + second)[:, ::-1].argmax(1)
        return _printed_verdicts(batch, blends[np.arange(len(best)), best], GRID[best])

    return judge


def _random_alpha(crowd: Crowd) -> Judge:
    prior = crowd.paper_prior

    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        alpha = rng.choice(GRID, len(batch.splits.test))
        return _printed_verdicts(batch, _blend(_as_printed(batch), prior, alpha), alpha)

    return judge


def _as_printed(batch: Batch) -> Target:
    """Target as in the paper; what it scales to a half gap of one is in the form "minus"."""
    return batch.describe(None, np.ones(batch.X.shape[1]), form="minus")


def _within_reach(law: BlendLaw) -> BlendLaw:
    """The same law in the directions in which something varies, and in that of the gap.

    In all others a draw neither meets the gap nor has a variance, so that none need be made.
    """
    sigma = law.sigma
    # Eigenvalues ascend, so that those that are zero in every split come first.
    n_outside = int((sigma.values == 0.0).all(0).sum())
    if sigma.floor.any() or n_outside + sigma.n_outside < 2:
        return law
    basis, values = sigma.basis[..., n_outside:], sigma.values[..., n_outside:]
    basis = np.concatenate([basis, outside(basis, law.nu)[..., None]], -1)
    values = np.concatenate([values, np.zeros((*values.shape[:-1], 1))], -1)
    axes: Array = np.broadcast_to(np.eye(values.shape[-1]), (*values.shape, values.shape[-1]))
    return BlendLaw(
        Spectrum(values, axes, sigma.floor),
        np.matvec(basis.mT, law.nu),
        law.noise._replace(omega=np.matvec(basis.mT, law.noise.omega)),
        np.matvec(basis.mT, law.mu),
        law.psi,
    )


def _blend(own: Target, prior: TaskPrior, alpha: Array) -> Array:
    """Blends at alphas of shape (n_splits, ...), of shape (n_splits, ..., n_features)."""
    omega = own.noise.omega
    if alpha.ndim > 1:
        omega = omega[:, None, :]
    blend: Array = alpha[..., None] * omega + (1.0 - alpha)[..., None] * prior.mean_direction
    return blend


def _printed_verdicts(batch: Batch, omega: Array, alpha: Array | float) -> Verdicts:
    """Verdicts of directions in raw units; the paper has neither probabilities nor forecasts."""
    scores = batch.scores(omega, batch.midpoint())
    none = np.full(len(scores), np.nan)
    nothing = np.full(scores.shape, np.nan)
    return Verdicts(scores, scores > 0.0, nothing, np.full(len(scores), alpha), none)


# -- ours -----------------------------------------------------------------------------------------


def _target_shrunk(crowd: Crowd) -> Judge:
    estimator = FisherDiscriminant()

    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        own = batch.describe("oas", None)
        omega = own.noise.omega
        gap, variance = np.vecdot(omega, own.nu), np.vecdot(omega, own.sigma.apply(omega))
        none = np.full(len(omega), np.nan)
        verdicts = verdicts_of(batch, own, omega, gap, variance, none, none.copy())
        return mended(verdicts, batch, own, estimator)._replace(alpha=np.ones(len(omega)))

    return judge


def _convex(crowd: Crowd) -> Judge:
    prior = crowd.prior
    estimator = ConvexBlendClassifier(prior)

    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        own = batch.describe_for(prior)
        if prior.cancels:
            warnings.warn(
                f"the directions of the {prior.n_tasks} sources cancel out, so that only the "
                "target's own is used",
                UserWarning,
                stacklevel=1,
            )
            alpha = np.ones(len(own.nu))
        else:
            psi = prior.psi_parts("tangent")
            law = BlendLaw(own.sigma, own.nu, own.noise, prior.mean_direction, psi)
            alpha = least_risk(law, None).alpha
        omega = _blend(own, prior, alpha)
        verdicts = forecast_verdicts(batch, own, omega, alpha * own.rank, alpha)
        return mended(verdicts, batch, own, estimator)

    return judge


def _posterior(crowd: Crowd) -> Judge:
    prior = crowd.prior
    estimator = PosteriorBlendClassifier(prior)

    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        own = batch.describe_for(prior)
        noise = own.noise
        blend, _ = scattered_blend(
            own.sigma,
            noise.omega,
            noise.inverse,
            noise.length,
            prior.mean,
            prior.scatter_root,
            estimator.strength,
        )
        alpha = blend.trace / prior.n_features
        verdicts = forecast_verdicts(batch, own, blend.omega, blend.trace, alpha)
        return mended(verdicts, batch, own, estimator)

    return judge


def _posterior_unlabelled(crowd: Crowd) -> Judge:
    posterior = _posterior(crowd)

    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        verdicts, labelled = posterior(batch, rng), batch.splits.labelled
        own = posterior(replace(batch, splits=batch.splits._replace(test=labelled)), rng).scores
        label = np.repeat([0, 1], labelled.shape[1] // 2)
        scores = verdicts.scores - threshold_of(own, label, verdicts.scores)[:, None]
        nothing = np.full(scores.shape, np.nan)
        return verdicts._replace(scores=scores, positive=scores > 0.0, probability=nothing)

    return judge


def _pooled(crowd: Crowd) -> Judge:
    rule = crowd.pooled_rule()

    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        scores = rule.decision_function(batch.X)[batch.splits.test]
        none = np.full(len(scores), np.nan)
        return Verdicts(scores, scores > 0.0, expit(scores), none, none)

    return judge


#: The paper's methods, ours, and what one would take otherwise: what a study compares by default.
COMPARED: dict[str, Method] = {
    "target": _target,
    "average-source": _average_source,
    "paper": _paper,
    "oracle": _oracle,
    "random-alpha": _random_alpha,
    "target-shrunk": _target_shrunk,
    "convex": _convex,
    "posterior": _posterior,
    "posterior-unlabelled": _posterior_unlabelled,
    "lda": EstimatorMethod(LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
    "pooled": _pooled,
}
#: All methods that have a name; two classes are one pair, and the rest of one is the other.
METHODS: dict[str, Method] = (
    COMPARED | VARIANTS | {"pairwise": _posterior, "one-vs-rest": _posterior}
)

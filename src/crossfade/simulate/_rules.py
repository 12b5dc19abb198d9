"""Many simulated targets and their crowds in, every rule of every target out, without a loop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade._validate import grid_of
from crossfade.blend._posterior import scattered_blend
from crossfade.fisher._direction import Samples, Target, TargetNoise, describe_target, target_noise
from crossfade.fisher._spectrum import Spectrum
from crossfade.prior._crowd import orthogonal_root, psi_parts, shrunk_scatter
from crossfade.risk._choose import AlphaChoice, least_risk
from crossfade.risk._forecast import forecast
from crossfade.risk._law import BlendLaw

Array = NDArray[np.float64]


class Crowd(NamedTuple):
    """What the sources of each target say; the first axis is that of the targets.

    Attributes
    ----------
    n_tasks : int
        Sources of each target.
    mean : ndarray of shape (n_targets, n_features)
        Mean of their directions.
    mu : ndarray of shape (n_targets, n_features)
        Its unit vector.
    resultant, mean_square : ndarray of shape (n_targets,)
        Its length, and the mean of the squared cosines with it.
    root : ndarray of shape (n_targets, n_features, n_features)
        Root of the shrunk scatter, with orthogonal columns.
    """

    n_tasks: int
    mean: Array
    mu: Array
    resultant: Array
    mean_square: Array
    root: Array

    @classmethod
    def of(cls, directions: Array) -> Crowd:
        """Crowds of unit directions of shape (n_targets, n_tasks, n_features)."""
        n_tasks = directions.shape[1]
        mean = directions.mean(1)
        moment = directions.mT @ directions / n_tasks
        resultant = np.linalg.vector_norm(mean, axis=-1)
        mu = mean / resultant[:, None]
        square = np.vecdot(mu, np.matvec(moment, mu))
        root = orthogonal_root(shrunk_scatter(mean, moment, n_tasks))
        return cls(n_tasks, mean, mu, resultant, square, root)

    def choose(
        self,
        sigma: Spectrum,
        nu: Array,
        noise: TargetNoise,
        *,
        psi: str = "tangent",
        alphas: Array | None = None,
        n_draws: int | None = None,
        rng: np.random.Generator | None = None,
    ) -> AlphaChoice:
        """Alpha of least expected risk for each target; by Monte Carlo if `n_draws` is given."""
        parts = psi_parts(psi, self.resultant, self.mean_square, self.n_tasks, self.mu.shape[-1])
        law = BlendLaw(sigma, nu, noise, self.mu, parts)
        if n_draws is None:
            return least_risk(law, alphas)
        return least_risk(law, alphas, "monte_carlo", n_draws, rng)

    def cancels(self) -> NDArray[np.bool_]:
        """Where the directions have no more of a mean than chance gives them."""
        return (self.resultant**2 * self.n_tasks <= 1.0) & (self.n_tasks > 1)


class Rules(NamedTuple):
    """One rule for each target.

    Attributes
    ----------
    omega : ndarray of shape (n_targets, n_features)
        Directions of any length.
    alpha : ndarray of shape (n_targets,)
        Weight of the target; for the posterior blend its effective weight.
    expected : ndarray of shape (n_targets,)
        Forecast of the accuracy, where the rule makes one.
    """

    omega: Array
    alpha: Array
    expected: Array


def rules_of(
    X: Array,
    label: NDArray[np.intp],
    crowd: Crowd,
    rng: np.random.Generator,
    *,
    covariance: Spectrum | None = None,
    step: float = 0.1,
    n_draws: int = 100,
) -> tuple[dict[str, Rules], Target]:
    """Every rule for targets with samples of shape (n_targets, n_samples, n_features), raw units.

    With the covariance known, `target` and `target-shrunk` are the same rule.

    Parameters
    ----------
    X : ndarray of shape (n_targets, n_samples, n_features)
        Labelled samples.
    label : ndarray of shape (n_samples,)
        Their classes, the same for all targets.
    crowd : Crowd
        Sources of each target.
    rng : Generator
        For the draws of Algorithm 1.
    covariance : Spectrum or None
        Covariance within the classes where it is known.
    step : float
        Step of Algorithm 1's grid.
    n_draws : int
        Draws of Algorithm 1 at each alpha.

    Returns
    -------
    rules : dict of Rules
        By the name of the classifier.
    target : Target
        What the samples say, as shrunk.
    """
    n_targets, _, n_features = X.shape
    samples = Samples(X, label, np.ones(label.size))
    scale = np.ones(n_features)
    target = describe_target(samples, "oas", scale)
    plain = describe_target(samples, None, scale, form="minus")
    if covariance is not None:
        target = _known(target, covariance, "unit")
        plain = _known(target, covariance, "minus")
    ones, none = np.ones(n_targets), np.full(n_targets, np.nan)
    grid = grid_of(step)
    own, mu = target.noise.omega, crowd.mu
    printed = crowd.choose(
        plain.sigma, plain.nu, plain.noise, psi="authors", alphas=grid, n_draws=n_draws, rng=rng
    ).alpha
    chosen = crowd.choose(target.sigma, target.nu, target.noise).alpha
    alpha = np.where(crowd.cancels(), 1.0, chosen)
    convex = alpha[:, None] * own + (1.0 - alpha)[:, None] * mu
    noise = target.noise
    posterior, _ = scattered_blend(
        target.sigma, own, noise.inverse, noise.length, crowd.mean, crowd.root, "auto"
    )
    paper = printed[:, None] * plain.noise.omega + (1.0 - printed)[:, None] * mu
    rules = {
        "target": Rules(plain.noise.omega, ones, none),
        "average-source": Rules(mu, np.zeros(n_targets), none),
        "paper": Rules(paper, printed, none),
        "target-shrunk": Rules(own, ones, none),
        "convex": Rules(convex, alpha, _expected(target, convex, alpha * target.rank)),
        "posterior": Rules(
            posterior.omega,
            posterior.trace / n_features,
            _expected(target, posterior.omega, posterior.trace),
        ),
    }
    return rules, target


def _expected(target: Target, omega: Array, trace: Array) -> Array:
    return forecast(target, omega, trace).accuracy


def _known(target: Target, covariance: Spectrum, form: str) -> Target:
    """The same means with a covariance that need not be learnt."""
    shrinkage = np.ones(target.nu.shape[:-1])
    noise = target_noise(covariance, target.nu, target.counts, shrinkage, form)
    rank = np.full(target.nu.shape[:-1], covariance.n_features)
    return target._replace(sigma=covariance, shrinkage=shrinkage, noise=noise, rank=rank)

"""Every rule of many simulated people at once, by the verbs of the room `blend`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crossfade._typing import Array, Places
from crossfade._validate import grid_of
from crossfade.blend import Blend, convex, posterior
from crossfade.fisher import ClassMoments, Direction, Spectrum, direction_of, learn_direction
from crossfade.prior import Crowd
from crossfade.risk import BlendLaw, error_rate, forecast, least_risk


class Rules(NamedTuple):
    """One rule for each person."""

    omega: Array  # (n_targets, d): directions of any length
    alpha: Array  # (n_targets,): weight of the person
    expected: Array  # (n_targets,): forecast of the accuracy, where the rule makes one


def crowd_of(directions: Array) -> Crowd:
    """Crowds of unit directions of shape (n_targets, n_tasks, d)."""
    outer = directions.mT @ directions
    return Crowd.from_sums(directions.shape[1], directions.sum(1), outer)


def rules_of(
    X: Array,
    label: Places,
    crowd: Crowd,
    rng: np.random.Generator,
    *,
    covariance: Spectrum | None = None,
    step: float = 0.1,
    n_draws: int = 100,
) -> tuple[dict[str, Rules], Direction]:
    """Every rule for samples (n_targets, n, d) in raw units, and the shrunk directions.

    With the covariance known, `target` and `target-shrunk` are the same rule.
    """
    moments = ClassMoments.of(X, label)
    person = learn_direction(moments, "oas", np.ones(X.shape[-1]))
    if covariance is not None:
        person = _known(person, covariance, "unit")
    rules = paper_rules(
        moments, crowd, rng, covariance=covariance, step=step, n_draws=n_draws, psi="authors"
    )
    alone = rules["target"]
    rules |= {
        "target-shrunk": alone._replace(omega=person.omega),
        "convex": _promised(person, convex(person, crowd)),
        "posterior": _promised(person, posterior(person, crowd)),
    }
    return rules, person


def paper_rules(
    moments: ClassMoments,
    crowd: Crowd,
    rng: np.random.Generator,
    *,
    covariance: Spectrum | None = None,
    step: float = 0.1,
    n_draws: int = 100,
    psi: str | None = None,
) -> dict[str, Rules]:
    """The paper's three rules: Algorithm 1 with a form of Psi, or as in its authors' figures.

    A `psi` of None is for the latter, see :func:`risks_as_drawn`.
    """
    plain = learn_direction(moments, None, np.ones(moments.means.shape[-1]), form="minus")
    if covariance is not None:
        plain = _known(plain, covariance, "minus")
    grid, n_targets = grid_of(step), len(plain.omega)
    if psi is None:
        alpha = grid[risks_as_drawn(plain, crowd, grid, n_draws, rng).argmin(-1)]
        own = plain.length[..., None] * plain.omega
        omega = alpha[:, None] * own + (1.0 - alpha)[:, None] * crowd.mean_direction
    else:
        law = BlendLaw(plain, crowd.mean_direction, crowd.psi(psi))
        alpha = least_risk(law, grid, "monte_carlo", n_draws, rng).alpha
        omega = convex(plain, crowd, alpha=alpha).omega
    none = np.full(n_targets, np.nan)
    return {
        "target": Rules(plain.omega, np.ones(n_targets), none),
        "average-source": Rules(crowd.mean_direction, np.zeros(n_targets), none),
        "paper": Rules(omega, alpha, none),
    }


def risks_as_drawn(
    person: Direction, crowd: Crowd, grid: Array, n_draws: int, rng: np.random.Generator
) -> Array:
    """Mean risks (n_targets, n_alphas) over draws, by the law that Figures 2 and 3 were made with.

    Equation 67: the person's vector keeps its length, and its covariance is Sigma / n, where the
    text has the inverse of Sigma. The crowd's is the authors' form of Psi.
    """
    own, sigma, nu = person.length[..., None] * person.omega, person.sigma, person.nu
    root = sigma.root()
    own_noise = 1.0 / np.sqrt(person.counts.sum(-1))[..., None]
    crowd_noise = np.sqrt(np.asarray(crowd.psi("authors").identity))[..., None]
    risks = np.empty((len(own), grid.size))
    for place, alpha in enumerate(grid):
        first, second = rng.standard_normal((2, n_draws, *own.shape))
        target = own + own_noise * root.apply(first)
        source = crowd.mean_direction + crowd_noise * second
        omega = alpha * target + (1.0 - alpha) * source
        variance = np.vecdot(omega, sigma.apply(omega))
        risks[:, place] = error_rate(np.vecdot(omega, nu), variance, 0.0, 0.5).mean(0)
    return risks


def _promised(person: Direction, blend: Blend) -> Rules:
    accuracy = forecast(person, blend.omega, blend.dof).accuracy
    return Rules(blend.omega, blend.alpha, accuracy)


def _known(person: Direction, covariance: Spectrum, form: str) -> Direction:
    """The same means with a covariance that need not be learnt."""
    shrinkage = np.ones(person.nu.shape[:-1])
    found = direction_of(covariance, person.nu, person.counts, shrinkage, form)
    return found._replace(dof=person.dof, means=person.means, scale=person.scale)

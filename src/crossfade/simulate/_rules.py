"""Every rule of many simulated people at once, by the verbs of the room `blend`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crossfade._typing import Array, Places
from crossfade._validate import grid_of
from crossfade.blend import Blend, convex, posterior
from crossfade.fisher._direction import Direction, direction_of, learn_direction
from crossfade.fisher._moments import ClassMoments
from crossfade.fisher._spectrum import Spectrum
from crossfade.prior._crowd import Crowd
from crossfade.risk._forecast import forecast


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
    n_targets, _, n_features = X.shape
    moments = ClassMoments.of(X, label)
    raw = np.ones(n_features)
    person = learn_direction(moments, "oas", raw)
    plain = learn_direction(moments, None, raw, form="minus")
    if covariance is not None:
        person = _known(person, covariance, "unit")
        plain = _known(person, covariance, "minus")
    printed = convex(
        plain,
        crowd,
        alphas=grid_of(step),
        psi="authors",
        method="monte_carlo",
        n_draws=n_draws,
        random_state=rng,
    )
    ones, none = np.ones(n_targets), np.full(n_targets, np.nan)
    rules = {
        "target": Rules(plain.omega, ones, none),
        "average-source": Rules(crowd.mean_direction, np.zeros(n_targets), none),
        "paper": Rules(printed.omega, printed.alpha, none),
        "target-shrunk": Rules(person.omega, ones, none),
        "convex": _promised(person, convex(person, crowd)),
        "posterior": _promised(person, posterior(person, crowd)),
    }
    return rules, person


def _promised(person: Direction, blend: Blend) -> Rules:
    accuracy = forecast(person, blend.omega, blend.dof).accuracy
    return Rules(blend.omega, blend.alpha, accuracy)


def _known(person: Direction, covariance: Spectrum, form: str) -> Direction:
    """The same means with a covariance that need not be learnt."""
    shrinkage = np.ones(person.nu.shape[:-1])
    found = direction_of(covariance, person.nu, person.counts, shrinkage, form)
    return found._replace(dof=person.dof, means=person.means, scale=person.scale)

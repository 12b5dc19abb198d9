"""Posterior blend: the crowd as a distribution, and a matrix instead of alpha (equation 21)."""

from __future__ import annotations

import numpy as np

from crossfade.blend._along import crowd_of, rule_along, rule_of_crowd
from crossfade.blend._newcomer import Newcomer
from crossfade.blend._posterior_direction import posterior_direction
from crossfade.blend._rule import Rule
from crossfade.prior import Law


def posterior(newcomer: Newcomer, law: Law, *, strength: str | float = "auto") -> Rule:
    """Rule of the posterior blend; `strength` as in :class:`crossfade.PosteriorBlendClassifier`."""
    if not newcomer.shows_all:
        return rule_of_crowd(newcomer, law)
    person, crowd = newcomer.direction(law), crowd_of(law)
    omega, dof, used = posterior_direction(person, crowd, strength)
    alpha = np.minimum(np.maximum(dof / crowd.n_features, 0.0), 1.0)
    return rule_along(newcomer, law, person, omega, alpha=alpha, dof=dof, strength=used)

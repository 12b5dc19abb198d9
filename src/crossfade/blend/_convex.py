"""The paper's blend alpha omega + (1 - alpha) mu, with the alpha of least expected risk (19)."""

from __future__ import annotations

import numpy as np

from crossfade._typing import RandomState
from crossfade.blend._along import crowd_of, rule_along, rule_of_crowd
from crossfade.blend._rule import Newcomer, Rule
from crossfade.prior import Law
from crossfade.risk import BlendLaw, least_risk


def convex(
    newcomer: Newcomer,
    law: Law,
    *,
    alpha: float | None = None,
    recipe: str = "exact",
    n_draws: int = 100,
    random_state: RandomState = None,
) -> Rule:
    """Rule of the convex blend; for the options see :class:`crossfade.ConvexBlendClassifier`."""
    if not newcomer.shows_all:
        return rule_of_crowd(newcomer, law)
    exact, crowd = recipe == "exact", crowd_of(law)
    person = newcomer.direction(law, "oas" if exact else None, "unit" if exact else "minus")
    weight, curve = np.asarray(1.0 if alpha is None else alpha), {}
    if alpha is None and not (exact and crowd.cancels.all()):
        psi = crowd.psi("tangent" if exact else recipe)
        of_alpha = BlendLaw(person, crowd.mean_direction, psi, newcomer.second)
        choice = (
            least_risk(of_alpha)
            if exact
            else least_risk(of_alpha.within_reach(), None, "monte_carlo", n_draws, random_state)
        )
        weight = np.where(crowd.cancels, 1.0, choice.alpha) if exact else choice.alpha
        curve = {"alphas": choice.alphas, "risks": choice.risks}
    weight = np.broadcast_to(weight, person.length.shape)
    own = weight[..., None]
    omega = own * person.omega + (1.0 - own) * crowd.mean_direction
    return rule_along(newcomer, law, person, omega, alpha=weight, dof=weight * person.rank, **curve)

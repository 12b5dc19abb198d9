"""The paper's blend: a convex combination of the person's direction and the crowd's (13, 19).

.. math:: \\omega_\\alpha = \\alpha\\omega + (1 - \\alpha)\\mu

with the alpha of least expected risk. A crowd whose directions cancel has no direction to offer:
alpha is then one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from crossfade._typing import Array, RandomState
from crossfade.blend._verb import Blend
from crossfade.fisher._direction import Direction
from crossfade.prior._crowd import Crowd
from crossfade.risk._choose import least_risk
from crossfade.risk._law import BlendLaw


def convex(
    person: Direction,
    crowd: Crowd,
    *,
    alpha: Array | float | None = None,
    alphas: ArrayLike | None = None,
    class_prior: Array | float = 0.5,
    psi: str = "tangent",
    method: str = "deterministic",
    n_draws: int = 100,
    random_state: RandomState = None,
) -> Blend:
    """Blend with an alpha that is given, or that has the least expected risk."""
    choice = None
    if alpha is None:
        cancels = crowd.cancels if method == "deterministic" else np.zeros(())
        if cancels.all():
            alpha = 1.0
        else:
            law = BlendLaw(person, crowd.mean_direction, crowd.psi(psi), class_prior)
            choice = least_risk(law, alphas, method, n_draws, random_state)
            alpha = np.where(cancels, 1.0, choice.alpha)
    a = np.broadcast_to(np.asarray(alpha, np.float64), person.length.shape)
    omega = a[..., None] * person.omega + (1.0 - a)[..., None] * crowd.mean_direction
    dof = a * person.rank + (1.0 - a) * crowd.sway
    return Blend(omega, dof, a, source=crowd.mean_direction, choice=choice)

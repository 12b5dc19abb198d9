"""The Gaussian mechanism, accounted for exactly (equation 30; Balle and Wang 2018).

.. math:: \\Phi(\\mu/2 - \\epsilon/\\mu) - e^\\epsilon \\Phi(-\\mu/2 - \\epsilon/\\mu) \\le \\delta

with mu the distance that one person can move the sums over the deviation of the noise. Releases
compose by the root of the sum of their mu^2, exactly (Dong, Roth and Su 2022).
"""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtr

#: Least and largest mu; with less, the noise is a million times what a person can do.
_LEAST, _LARGEST = 1e-6, 1e3
#: By how much results are on the safe side: more than rounding can do.
_MARGIN = 1e-9


def log_delta(mu: float, epsilon: float) -> float:
    """Logarithm of the exact delta."""
    near, far = mu / 2.0 - epsilon / mu, -mu / 2.0 - epsilon / mu
    if near > 0.0:
        return math.log(ndtr(near) - math.exp(epsilon + log_ndtr(far)))
    # Both terms have the same density phi(near), beyond which Mills' ratios are left.
    ratios = erfcx(-near / math.sqrt(2.0)) - erfcx(-far / math.sqrt(2.0))
    return -(near**2) / 2.0 + math.log(ratios / 2.0)


def separation(epsilon: float, delta: float) -> float:
    """Largest mu that keeps a budget."""

    def excess(log_mu: float) -> float:
        return log_delta(math.exp(log_mu), epsilon) - math.log(delta)

    least = math.log(_LEAST)
    if excess(least) > 0.0:
        raise ValueError(
            f"No noise of any use keeps epsilon={epsilon:g} and delta={delta:g}: it would be more "
            f"than {1 / _LEAST:g} times what one person adds. Take larger ones."
        )
    return math.exp(brentq(excess, least, math.log(_LARGEST), xtol=1e-13)) * (1.0 - _MARGIN)


def spent_epsilon(mu: float, delta: float) -> float:
    """Least epsilon that holds at this delta."""

    def excess(epsilon: float) -> float:
        return log_delta(mu, epsilon) - math.log(delta)

    if excess(0.0) <= 0.0:
        return 0.0
    # What concentrated privacy promises is more than enough.
    enough = mu**2 / 2.0 + mu * math.sqrt(-2.0 * math.log(delta)) + _MARGIN
    return brentq(excess, 0.0, enough, xtol=1e-13) * (1.0 + _MARGIN)

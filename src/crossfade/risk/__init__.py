"""How wrong a direction will be: error rates, their expectation, their curve and its minimum.

A rule along omega errs at the rate Phi(-omega'nu / sqrt(omega'Sigma omega)), with nu half the gap
between the class means and Sigma the covariance within them (`conditional_risk`, equation 14).
Nobody knows omega: the person's own direction and the crowd's are normal about the best one, with
covariances Sigma_omega (room `fisher`) and Psi (room `prior`). The expected risk of a direction
that is normal is P(omega'x < 0) with x of the second class, a quadratic form in normals
(`expected_risk`, 15 and 16), which the paper averages over draws and we integrate. Of the convex
blends alpha omega + (1 - alpha) mu, `choose_alpha` finds the one of least expected risk (13 and
19): the paper's Algorithm 1. `alpha_of_sum` takes alphas of the paper's class of rules,
which has the sum of the sources, to these, and back.

Where we depart from the paper: Sigma_omega has the right sign and belongs to a unit vector, Psi is
tangent to the sphere, the risk is exact, alpha is continuous, and classes may have any proportions.
What a fitted rule may promise is not its risk at the estimates but its forecast, freed of optimism
(`forecast`, 25 and 26), and `Outlook` is the law of one person's accuracy (60 and 61).
"""

from crossfade.risk._choose import (
    AlphaChoice,
    alpha_of_sum,
    blend_directions,
    choose_alpha,
    least_risk,
)
from crossfade.risk._error_rate import (
    check_class_prior,
    conditional_risk,
    expected_risk,
    log_odds,
    risk_curve,
)
from crossfade.risk._law import BlendLaw
from crossfade.risk._outlook import FURTHEST, LEFT_OUT, Forecast, Outlook, forecast

#: What is documented. All other names are for the rooms above.
__all__ = [
    "alpha_of_sum",
    "blend_directions",
    "choose_alpha",
    "conditional_risk",
    "expected_risk",
    "risk_curve",
]

for _name in __all__:
    globals()[_name].__module__ = __name__

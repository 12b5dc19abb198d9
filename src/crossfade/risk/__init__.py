"""How wrong a direction will be: error rates, their expectation, their curve and its minimum.

A rule along omega errs at the rate Phi(-omega'nu / sqrt(omega'Sigma omega)) (`conditional_risk`,
equation 14). The expected risk of a noisy direction (`expected_risk`, 15 and 16) is that which the
paper averages over draws. `choose_alpha` finds the convex blend of least expected risk (13 and 19).
The theory of a fitted rule (`DirectionTheory`, `MeansTheory`, `ManyTheory`) promises its accuracy,
freed of optimism (25 and 26); `Outlook` is the law of one person's accuracy (60 and 61).
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
    risk_curve,
)
from crossfade.risk._expected import BlendLaw, log_odds
from crossfade.risk._outlook import (
    DirectionTheory,
    ManyTheory,
    MeansTheory,
    Outlook,
    Slope,
    Stated,
    Theory,
)

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

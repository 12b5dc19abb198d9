"""How wrong a direction will be: error rates, their expectation, their curve and its minimum."""

from crossfade.risk._choose import AlphaChoice
from crossfade.risk._functions import (
    ExpectedRisk,
    RiskCurve,
    blend_directions,
    choose_alpha,
    conditional_risk,
    expected_risk,
    risk_curve,
)

__all__ = [
    "AlphaChoice",
    "ExpectedRisk",
    "RiskCurve",
    "blend_directions",
    "choose_alpha",
    "conditional_risk",
    "expected_risk",
    "risk_curve",
]

for _name in __all__:
    globals()[_name].__module__ = __name__

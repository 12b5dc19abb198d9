"""Is it worth it? Each participant left out in turn, given a few labelled windows, and judged."""

from crossfade.study._effect_of_b import effect_of_b
from crossfade.study._forecasts import forecast_errors, reliability
from crossfade.study._result import StudyResult
from crossfade.study._splits import CalibrationSplit
from crossfade.study._study import CalibrationStudy
from crossfade.study._verdict import verdict

__all__ = [
    "CalibrationSplit",
    "CalibrationStudy",
    "StudyResult",
    "effect_of_b",
    "forecast_errors",
    "reliability",
    "verdict",
]

for _name in __all__:
    globals()[_name].__module__ = __name__

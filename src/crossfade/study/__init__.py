"""Tasks in, accuracies out: each participant left out in turn and given a few labelled windows."""

from crossfade.study.calibration import CalibrationStudy
from crossfade.study.result import StudyResult

__all__ = ["CalibrationStudy", "StudyResult"]

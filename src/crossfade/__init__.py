"""Crossfade from the crowd's classifier to the person's own, from the first labelled windows on."""

from crossfade._least_risk import AlphaChoice
from crossfade.blend import ConvexBlendClassifier, PosteriorBlendClassifier
from crossfade.datasets import (
    load_mental_math,
    make_matb_like,
    read_eegmat,
    read_matb,
    read_wesad,
)
from crossfade.fisher import FisherDiscriminant
from crossfade.prior import TaskPrior
from crossfade.risk import (
    ExpectedRisk,
    RiskCurve,
    blend_directions,
    choose_alpha,
    conditional_risk,
    expected_risk,
    risk_curve,
)
from crossfade.study import CalibrationStudy
from crossfade.tasks import Task, TaskSet, read_tasks

__version__ = "0.1.0"

__all__ = [
    "AlphaChoice",
    "CalibrationStudy",
    "ConvexBlendClassifier",
    "ExpectedRisk",
    "FisherDiscriminant",
    "PosteriorBlendClassifier",
    "RiskCurve",
    "Task",
    "TaskPrior",
    "TaskSet",
    "blend_directions",
    "choose_alpha",
    "conditional_risk",
    "expected_risk",
    "load_mental_math",
    "make_matb_like",
    "read_eegmat",
    "read_matb",
    "read_tasks",
    "read_wesad",
    "risk_curve",
]

"""Crossfade from the crowd's classifier to the person's own, from the first labelled windows on."""

from crossfade._least_risk import AlphaChoice
from crossfade._release import Release
from crossfade.blend import ConvexBlendClassifier, PosteriorBlendClassifier
from crossfade.datasets import (
    load_mental_math,
    make_matb_like,
    read_eegmat,
    read_matb,
    read_wesad,
)
from crossfade.fisher import FisherDiscriminant
from crossfade.labels import LabelForecast, forecast_labels
from crossfade.mixture import MixturePrior
from crossfade.model_file import SavedRule, load_model, save_model
from crossfade.multiclass import MulticlassBlend
from crossfade.multiclass_prior import MulticlassPrior
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
    "LabelForecast",
    "MixturePrior",
    "MulticlassBlend",
    "MulticlassPrior",
    "PosteriorBlendClassifier",
    "Release",
    "RiskCurve",
    "SavedRule",
    "Task",
    "TaskPrior",
    "TaskSet",
    "blend_directions",
    "choose_alpha",
    "conditional_risk",
    "expected_risk",
    "forecast_labels",
    "load_mental_math",
    "load_model",
    "make_matb_like",
    "read_eegmat",
    "read_matb",
    "read_tasks",
    "read_wesad",
    "risk_curve",
    "save_model",
]

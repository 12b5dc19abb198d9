"""Crossfade from the crowd's classifier to the person's own, from the first labelled windows on."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from crossfade._version import __version__ as __version__

if TYPE_CHECKING:
    from crossfade.blend import Rule, load_model
    from crossfade.classifiers import (
        ConvexBlendClassifier,
        HierarchicalBlendClassifier,
        LabelForecast,
        PosteriorBlendClassifier,
        forecast_labels,
        save_model,
    )
    from crossfade.crowd import TaskPrior
    from crossfade.datasets import load_mental_math
    from crossfade.export import export_model
    from crossfade.fisher import FisherDiscriminant
    from crossfade.live import LiveCalibration
    from crossfade.prior import Ledger
    from crossfade.risk import choose_alpha, risk_curve
    from crossfade.study import CalibrationSplit, CalibrationStudy
    from crossfade.tasks import Recipe, Task, TaskSet, read_tasks

__all__ = [
    "CalibrationSplit",
    "CalibrationStudy",
    "ConvexBlendClassifier",
    "FisherDiscriminant",
    "HierarchicalBlendClassifier",
    "LabelForecast",
    "Ledger",
    "LiveCalibration",
    "PosteriorBlendClassifier",
    "Recipe",
    "Rule",
    "Task",
    "TaskPrior",
    "TaskSet",
    "choose_alpha",
    "export_model",
    "forecast_labels",
    "load_mental_math",
    "load_model",
    "read_tasks",
    "risk_curve",
    "save_model",
]

# Rooms are loaded when one of their names is first asked for, so that `crossfade --help` need not
# wait for scikit-learn.
_ROOMS = {
    "tasks": ("Recipe", "Task", "TaskSet", "read_tasks"),
    "fisher": ("FisherDiscriminant",),
    "prior": ("Ledger",),
    "crowd": ("TaskPrior",),
    "risk": ("choose_alpha", "risk_curve"),
    "blend": ("Rule", "load_model"),
    "classifiers": (
        "ConvexBlendClassifier",
        "HierarchicalBlendClassifier",
        "LabelForecast",
        "PosteriorBlendClassifier",
        "forecast_labels",
        "save_model",
    ),
    "export": ("export_model",),
    "datasets": ("load_mental_math",),
    "study": ("CalibrationSplit", "CalibrationStudy"),
    "simulate": (),
    "signals": (),
    "plots": (),
    "report": (),
    "live": ("LiveCalibration",),
    "moabb": (),
    "exceptions": (),
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"crossfade.{name}")
    if name in _HOMES:
        value = getattr(import_module(f"crossfade.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'crossfade' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS, "__version__"])

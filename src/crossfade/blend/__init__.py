"""Person and crowd in, a rule out: the blends, as functions and as estimators."""

from crossfade.blend._estimators import ConvexBlendClassifier, PosteriorBlendClassifier
from crossfade.blend._labels import LabelForecast, forecast_labels
from crossfade.blend._model_file import SavedRule, load_model, save_model
from crossfade.blend._multiclass import MulticlassBlend

__all__ = [
    "ConvexBlendClassifier",
    "LabelForecast",
    "MulticlassBlend",
    "PosteriorBlendClassifier",
    "SavedRule",
    "forecast_labels",
    "load_model",
    "save_model",
]

for _name in __all__:
    globals()[_name].__module__ = __name__

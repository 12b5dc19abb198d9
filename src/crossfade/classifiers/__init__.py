"""The estimators: scikit-learn's interface to `fit_rule`.

============================== ===================================================================
`HierarchicalBlendClassifier`  a crowd that knows class means: from no label on, for K >= 2 classes
`PosteriorBlendClassifier`     a crowd of directions, and a matrix for alpha
`ConvexBlendClassifier`        the paper's blend, and its Algorithm 1
`save_model`                   a fitted classifier as a file, for `load_model`
`forecast_labels`              what more labels would bring
============================== ===================================================================
"""

from crossfade.classifiers._base import MOST_UNLABELLED, BlendClassifier
from crossfade.classifiers._convex import ConvexBlendClassifier
from crossfade.classifiers._forecast_labels import LabelForecast, forecast_labels
from crossfade.classifiers._hierarchical import HierarchicalBlendClassifier
from crossfade.classifiers._model import about_of, rule_of, save_model
from crossfade.classifiers._posterior import PosteriorBlendClassifier

__all__ = [
    "ConvexBlendClassifier",
    "HierarchicalBlendClassifier",
    "LabelForecast",
    "PosteriorBlendClassifier",
    "forecast_labels",
    "save_model",
]

for _name in __all__:
    globals()[_name].__module__ = __name__

"""Person and crowd in, a rule out: three verbs, and the estimators that speak them.

A person's direction omega (room `fisher`) is right on average and noisy; the crowd's mu (room
`prior`) is nearly free of noise and wrong for this person. Blends lie between them:

============ =======================================================================================
convex       alpha omega + (1 - alpha) mu, with the alpha of least expected risk: the paper's class
posterior    m + T (T + Sigma_omega)^-1 (omega - m): a matrix instead of alpha, since the crowd
             agrees on some directions and differs on others
hierarchical the posterior of the class means, from no label on, with a crowd that knows them
============ =======================================================================================

Each takes a `Direction` and a `Crowd` and gives a `Blend`, for one person or for a batch of them.
Estimators, studies, simulations and many classes call these and nothing else. Where we depart from
the paper: everything but `convex`, and there the exact risk and the continuous alpha.
"""

from crossfade.blend._advice import Goal as Goal
from crossfade.blend._advice import enough as enough
from crossfade.blend._advice import gains_ahead as gains_ahead
from crossfade.blend._classifier import MOST_UNLABELLED as MOST_UNLABELLED
from crossfade.blend._classifier import BlendClassifier as BlendClassifier
from crossfade.blend._convex import ConvexBlendClassifier, convex
from crossfade.blend._fit import Fit as Fit
from crossfade.blend._fit_rule import KINDS as KINDS
from crossfade.blend._fit_rule import fit_rule as fit_rule
from crossfade.blend._hierarchical import Hierarchical, hierarchical
from crossfade.blend._hierarchical_classifier import HierarchicalBlendClassifier
from crossfade.blend._labels import LabelForecast, forecast_labels
from crossfade.blend._many_means import ManyFit as ManyFit
from crossfade.blend._model_file import Model as Model
from crossfade.blend._model_file import content_of_model as content_of_model
from crossfade.blend._model_file import load_model, save_model
from crossfade.blend._model_file import saved_rule as saved_rule
from crossfade.blend._multiclass import MulticlassBlend
from crossfade.blend._posterior import PosteriorBlendClassifier, posterior
from crossfade.blend._rule import Rule as Rule
from crossfade.blend._rule import places_of as places_of
from crossfade.blend._saved_rule import SavedRule
from crossfade.blend._verb import Blend
from crossfade.blend._worth import Advice as Advice
from crossfade.blend._worth import advise as advise

__all__ = [
    "Blend",
    "ConvexBlendClassifier",
    "Hierarchical",
    "HierarchicalBlendClassifier",
    "LabelForecast",
    "MulticlassBlend",
    "PosteriorBlendClassifier",
    "SavedRule",
    "convex",
    "forecast_labels",
    "hierarchical",
    "load_model",
    "posterior",
    "save_model",
]

for _name in __all__:
    globals()[_name].__module__ = __name__
# Fitted estimators hold it: a file of one names the room, not the module.
Fit.__module__ = __name__

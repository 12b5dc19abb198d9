"""Person and crowd in, a rule out: `fit_rule`, with one file for each kind of blend.

============ =======================================================================================
fisher       the person's own direction omega, without a crowd
convex       alpha omega + (1 - alpha) mu, with the alpha of least expected risk: the paper's class
posterior    m + T (T + Sigma_omega)^-1 (omega - m): a matrix instead of alpha
hierarchical the posterior of the class means, for any number of labels and classes
============ =======================================================================================

A new kind is one function from a `Newcomer` and a `Law` to a `Rule`, and one line in `KINDS`.
"""

from crossfade.blend._about import About
from crossfade.blend._along import rule_along, rule_of_crowd, rule_of_discriminant
from crossfade.blend._file import content_of_rule, load_model
from crossfade.blend._fit_rule import KINDS, fit_rule
from crossfade.blend._rule import Rule, places_of
from crossfade.blend._worth import Advice, advise, enough

__all__ = ["Rule", "load_model"]

for _name in __all__:
    globals()[_name].__module__ = __name__

"""Person and crowd in, a rule out: `fit_rule`, one file for each kind of blend, and `Rule`.

A person's direction omega (room `fisher`) is right on average and noisy; the crowd's mu (room
`prior`) is nearly free of noise and wrong for this person. Blends lie between them:

============ =======================================================================================
fisher       omega alone, without a crowd
convex       alpha omega + (1 - alpha) mu, with the alpha of least expected risk: the paper's class
posterior    m + T (T + Sigma_omega)^-1 (omega - m): a matrix instead of alpha, since the crowd
             agrees on some directions and differs on others
hierarchical the posterior of the class means, from no label on, with a crowd that knows them
============ =======================================================================================

`fit_rule` takes the moments of one person's windows, or of a batch of people, and a `Law`, and
looks the kind up in the table `KINDS`. Estimators, studies, rehearsals and live sessions call it
and nothing else. A new blend is one function from a `Newcomer` and a `Law` to a `Rule`, and one
line in that table.
"""

from crossfade.blend._about import About
from crossfade.blend._along import rule_along, rule_of_crowd, rule_of_discriminant
from crossfade.blend._file import content_of_rule, load_model
from crossfade.blend._fit_rule import KINDS, fit_rule
from crossfade.blend._posterior_direction import path_of, posterior_direction
from crossfade.blend._rule import Rule, places_of
from crossfade.blend._worth import Advice, advise, enough

__all__ = ["Rule", "load_model"]

for _name in __all__:
    globals()[_name].__module__ = __name__

"""Many unit vectors in, what the crowd knows out: sums, and no row of anybody's data.

The unit directions w_1, ..., w_J of J people follow a von Mises-Fisher law about a mean direction
mu with concentration kappa (equation 1). Of them a prior keeps the sum and the sum of outer
products. Their mean m has a length R that says how far people agree; mu = m / R is the crowd's
classifier; Psi says how well mu is known (10), and the scatter T how people differ (12).

====================== =============================================================================
`_crowd`               `Crowd`: mean, Psi and scatter, which is all that a blend asks of a prior.
                       A new kind of crowd is a new way to make one
`_task_prior`, `_learn` `TaskPrior`: the sums, from tasks, directions or a summary; merging by +
`_multiclass`          `MulticlassPrior`: one prior for each pair of classes
`_release`             differential privacy for people: `_gaussian` says how much noise it takes,
                       `_ledger` counts what was spent
`_parts`               whose tasks these are: people with several sessions, tasks that come twice
`_person`, `_sessions` how far apart sessions of one person are; a prior for their next one
`_archive`, `_card`    files, and cards that say what is in them
`_compatibility`       does a prior suit windows, or another prior?
`_units`               can windows be in the units of a prior?
`_vmf`                 concentrations
====================== =============================================================================

Where we depart from the paper: directions are averaged in common units; Psi is tangent to the
sphere; the crowd is a distribution and not a point; what people share can be released, and knows
its noise.
"""

from crossfade.prior._crowd import Crowd
from crossfade.prior._ledger import Ledger
from crossfade.prior._multiclass import MulticlassPrior
from crossfade.prior._release import Release
from crossfade.prior._replay import FEW_PEOPLE as FEW_PEOPLE
from crossfade.prior._task_prior import TaskPrior
from crossfade.prior._vmf import (
    concentration_formula,
    concentration_mle,
    concentrations,
    mean_resultant_length,
)

__all__ = [
    "Crowd",
    "Ledger",
    "MulticlassPrior",
    "Release",
    "TaskPrior",
    "concentration_formula",
    "concentration_mle",
    "concentrations",
    "mean_resultant_length",
]

for _name in __all__:
    globals()[_name].__module__ = __name__

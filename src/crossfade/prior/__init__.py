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
`_people`              people with several sessions, who count once in a release
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

from crossfade.prior._archive import card_faults as card_faults
from crossfade.prior._archive import content_of as content_of
from crossfade.prior._card import check_about as check_about
from crossfade.prior._card import privacy_of as privacy_of
from crossfade.prior._card import privacy_text as privacy_text
from crossfade.prior._card import table_of as table_of
from crossfade.prior._class_means import CROWD_DOF as CROWD_DOF
from crossfade.prior._class_means import ClassMeans as ClassMeans
from crossfade.prior._class_means import Population as Population
from crossfade.prior._class_means import contrasts as contrasts
from crossfade.prior._compatibility import misfits as misfits
from crossfade.prior._compatibility import name_misfits as name_misfits
from crossfade.prior._compatibility import spread_of as spread_of
from crossfade.prior._crowd import PSI_FORMS as PSI_FORMS
from crossfade.prior._crowd import Crowd
from crossfade.prior._crowd import Psi as Psi
from crossfade.prior._crowd import refuse_other as refuse_other
from crossfade.prior._law import Law as Law
from crossfade.prior._learn import sums_of_means as sums_of_means
from crossfade.prior._ledger import Ledger
from crossfade.prior._multiclass import STRATEGIES as STRATEGIES
from crossfade.prior._multiclass import MulticlassPrior
from crossfade.prior._multiclass import Pair as Pair
from crossfade.prior._multiclass import pairs_of as pairs_of
from crossfade.prior._release import Release
from crossfade.prior._release import noise_scale as noise_scale
from crossfade.prior._release import repaired as repaired
from crossfade.prior._release import sensitivity as sensitivity
from crossfade.prior._replay import CLIP as CLIP
from crossfade.prior._replay import FEW_PEOPLE as FEW_PEOPLE
from crossfade.prior._replay import FEWEST as FEWEST
from crossfade.prior._replay import LADDER as LADDER
from crossfade.prior._replay import SPARE as SPARE
from crossfade.prior._replay import Replay as Replay
from crossfade.prior._replay import rung_of as rung_of
from crossfade.prior._replay import usable as usable
from crossfade.prior._replay import usable_records as usable_records
from crossfade.prior._task_prior import TaskPrior
from crossfade.prior._units import unit_misfits as unit_misfits
from crossfade.prior._units import warn_of_units as warn_of_units
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

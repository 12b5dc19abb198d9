"""What sums over people say about a new person: the law of directions and of class means.

====================== =============================================================================
`_parts`               `Space`, which priors must share to be added; `Sums`, and their `Origin`
`_directions`          sums of unit directions, and `Crowd`, their law
`_class_means`         sums of class means, and `Population`, their law; `_sessions` of one person
`_forecast_record`     how accurate forecasts turned out
`_law`                 `learn`, from tasks to sums; `Law`, all that a blend asks of these
`_summary`             the sums of a mean direction with its standard error
`_prior_sums`, `_card` a space, its sums and their origin, and what they say; `_file` keeps them
`_release`             differential privacy: `_gaussian`, `_bounded` and `_ledger` are its parts
`_units`, `_vmf`       can windows be in the units of a prior?; concentrations
====================== =============================================================================

Unlike the paper's, directions are averaged in common units, Psi is tangent to the sphere, and the
crowd is a distribution and not a point.
"""

from crossfade.prior._card import privacy_text, table_of
from crossfade.prior._class_means import CROWD_DOF, Population, contrasts, design_of
from crossfade.prior._directions import Crowd, Directions, Psi
from crossfade.prior._forecast_record import (
    CLIP,
    FEW_PEOPLE,
    LABEL_COUNTS,
    SPARE,
    ForecastRecord,
    label_count_of,
)
from crossfade.prior._law import Law, LeftOut, learn, left_out, moments_of_tasks
from crossfade.prior._ledger import Ledger
from crossfade.prior._parts import (
    Origin,
    Release,
    Space,
    Sums,
    check_about,
    check_labels,
    misfits,
    summed,
)
from crossfade.prior._prior_sums import PriorSums
from crossfade.prior._release import noisy_sums
from crossfade.prior._summary import PSI_FORMS
from crossfade.prior._units import warn_of_units
from crossfade.prior._vmf import concentration_formula, concentration_mle, mean_resultant_length

__all__ = ["Ledger", "concentration_formula", "concentration_mle", "mean_resultant_length"]

for _name in __all__:
    globals()[_name].__module__ = __name__

"""Many unit vectors in, what the crowd knows out: sums of directions and what follows from them."""

from crossfade.prior._mixture import MixturePrior
from crossfade.prior._multiclass import MulticlassPrior
from crossfade.prior._release import Release
from crossfade.prior._task_prior import TaskPrior
from crossfade.prior._vmf import (
    concentration_formula,
    concentration_mle,
    concentrations,
    corrected_concentration,
    log_normalizer,
    mean_resultant_length,
)

__all__ = [
    "MixturePrior",
    "MulticlassPrior",
    "Release",
    "TaskPrior",
    "concentration_formula",
    "concentration_mle",
    "concentrations",
    "corrected_concentration",
    "log_normalizer",
    "mean_resultant_length",
]

for _name in __all__:
    globals()[_name].__module__ = __name__

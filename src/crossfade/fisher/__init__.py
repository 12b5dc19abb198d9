"""One task in, one unit vector out: Fisher's discriminant, and how noisy it is.

====================== =============================================================================
`_moments`             counts, means and scatter of the classes; two sets of windows add up
`_spectrum`            covariances by their eigenvectors, and their shrinkage
`_direction`           moments to a `Direction`: the unit vector and its noise (2 to 5, 48)
`_task_moments`        the same for many tasks at once, for priors
`_linear`              rules along a direction: scores, labels, probabilities
`_discriminant`        `FisherDiscriminant`, the estimator
====================== =============================================================================

Unlike the paper's, the covariance is shrunk towards a multiple of the identity, that of the
direction has the right sign and belongs to a unit vector, and neighbouring windows count for less.
"""

from crossfade.fisher._direction import Direction, direction_of, learn_direction, worth_of_runs
from crossfade.fisher._discriminant import FisherDiscriminant
from crossfade.fisher._linear import (
    LinearRule,
    check_both_classes,
    check_weight,
    encode,
    scores_of,
)
from crossfade.fisher._moments import RUNS, ClassMoments, noise_of_runs, refuse_units
from crossfade.fisher._spectrum import (
    ROUNDING,
    Spectrum,
    from_dense,
    invert,
    joint_basis,
    oas,
    outside,
    shrunk_dense,
    truncate,
)
from crossfade.fisher._task_moments import (
    N_LAGS,
    Block,
    TaskMoments,
    cut_off,
    mean_run_noise,
    unit_directions,
)

#: What is documented. All other names are for the rooms above.
__all__ = ["FisherDiscriminant"]

# Files and pickles of fitted estimators name the room, not the module.
for _class in (ClassMoments, Direction, FisherDiscriminant, Spectrum, TaskMoments):
    _class.__module__ = __name__

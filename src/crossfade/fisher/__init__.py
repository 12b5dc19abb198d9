"""One task in, one unit vector out: Fisher's discriminant, and how noisy it is.

With the class means m_0 and m_1, nu = (m_1 - m_0) / 2 and the covariance S within the classes, the
discriminant is omega = S^-1 nu, and a window x is of the second class where omega'(x - midpoint) is
positive. Only the direction of omega matters, so that a person becomes a point on the sphere.

====================== =============================================================================
`_moments`             counts, means and scatter of the classes: all that is needed of a task; two
                       sets of windows add up
`_spectrum`            covariances by their eigenvectors, and their shrinkage
`_direction`           moments to a `Direction`: the unit vector, its noise, and what the forecast
                       needs of it (equations 2 to 5 and 48)
`_task_moments`        the same for many tasks at once, for priors
`_linear`              rules along a direction: scores, labels, probabilities
`_discriminant`        `FisherDiscriminant`, the estimator
====================== =============================================================================

Where we depart from the paper: S is shrunk towards a multiple of the identity, since its
pseudo-inverse loses to scikit-learn with few windows; the covariance of the direction is derived
through the shrinkage, has the right sign, and belongs to a unit vector; neighbouring windows count
for less than independent ones.
"""

from crossfade.fisher._direction import Direction, direction_of, learn_direction, worth_of_runs
from crossfade.fisher._discriminant import FisherDiscriminant, resolve_scale, shrinkage_of
from crossfade.fisher._linear import (
    LinearRule,
    check_both_classes,
    check_weight,
    encode,
    refuse_units,
    scores_of,
)
from crossfade.fisher._moments import RUNS, ClassMoments, noise_of_runs
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

"""Differential privacy for the sums of a prior, with noise drawn by OpenDP (equations 29 to 31)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade._typing import Array
from crossfade._validate import check_number
from crossfade.prior._crowd import trusted_mean

if TYPE_CHECKING:
    from crossfade.prior._task_prior import TaskPrior

#: Beyond this a release protects nobody, and OpenDP's accounting overflows.
_LARGEST_EPSILON = 1000.0
_TINY = 1e-300


@dataclass(frozen=True)
class Release:
    """Budget of a released prior: what holds if one of its tasks is replaced by any other.

    Attributes
    ----------
    epsilon, delta : float
        The release is (epsilon, delta)-differentially private; the number of tasks is public.
    noise : float
        Standard deviation of the normal noise in every coordinate of the sums.
    scale_covered : bool
        Whether the guarantee is whole: the feature scale was not learnt from the same tasks.
    """

    epsilon: float
    delta: float
    noise: float
    scale_covered: bool

    def __post_init__(self) -> None:
        epsilon, delta = check_budget(self.epsilon, self.delta)
        noise = _number(self.noise)
        if not 0.0 < noise < math.inf:
            raise ValueError(f"noise must be a positive number; got {self.noise!r}.")
        if not isinstance(self.scale_covered, bool):
            raise ValueError(f"scale_covered must be True or False; got {self.scale_covered!r}.")
        for name, value in (("epsilon", epsilon), ("delta", delta), ("noise", noise)):
            object.__setattr__(self, name, value)

    @property
    def budget(self) -> str:
        """Epsilon and delta as text."""
        return f"epsilon={self.epsilon:g}, delta={self.delta:g}"

    def __str__(self) -> str:
        scale = "" if self.scale_covered else " (its scale is not covered)"
        return f"released with {self.budget}{scale}"


def check_budget(epsilon: object, delta: object) -> tuple[float, float]:
    """Return a privacy budget as floats: epsilon above 0, delta above 0 and below 1."""
    budget = _number(epsilon), _number(delta)
    if not 0.0 < budget[0] <= _LARGEST_EPSILON:
        raise ValueError(
            f"epsilon must be above 0 and at most {_LARGEST_EPSILON:g}; got {epsilon!r}. 1 is a "
            "common choice; less protects more."
        )
    if not 0.0 < budget[1] < 1.0:
        raise ValueError(
            f"delta must be above 0 and below 1; got {delta!r}. Take far less than one over the "
            "number of tasks, such as 1e-5."
        )
    return budget


def _number(value: object) -> float:
    """A number of at least 0; for anything else NaN, which no bound admits."""
    try:
        return check_number("", value, 0.0)
    except ValueError:
        return math.nan


def check_flag(name: str, value: object) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False; got {value!r}.")


def check_release(release: object, scale_learnt: object) -> Release | None:
    """How a prior was released, from a mapping too, as files hold it; None for exact sums."""
    check_flag("scale_learnt", scale_learnt)
    if isinstance(release, Mapping):
        release = Release(**release)
    if release is not None and not isinstance(release, Release):
        raise TypeError(f"release must be a Release or None; got {type(release).__name__}.")
    if release is not None and release.scale_covered is scale_learnt:
        raise ValueError("A release covers the feature scale if, and only if, it was not learnt.")
    return release


def refuse_released(*priors: TaskPrior) -> None:
    """Refuse priors whose sums are not exact any more."""
    for prior in priors:
        if prior.release is not None:
            raise ValueError(
                f"A prior that was {prior.release} is not exact any more: it can be neither "
                "merged, updated nor released again. Merge or update the exact priors, and "
                "release the sum once."
            )


def released_fields(prior: TaskPrior, epsilon: float, delta: float) -> dict[str, Any]:
    """Fields of the released prior (equations 29 to 31), and none that is not named here."""
    refuse_released(prior)
    if prior.summarised:
        raise ValueError(
            "A prior with a part from from_summary cannot be released: that part is no sum of unit "
            "directions, and one task can move it further than the noise covers. Release the prior "
            "that was built from the tasks or their directions."
        )
    epsilon, delta = check_budget(epsilon, delta)
    noise = noise_scale(sensitivity(prior.n_tasks, prior.isotropic), epsilon, delta)
    if prior.scale_learnt:
        warnings.warn(
            "The feature scale of this prior was learnt from its own tasks and is published as it "
            "is: the guarantee covers the directions, not the scale. Build it with one that was "
            "fixed beforehand, from_tasks(tasks, feature_scale=...) or `prior build --scale FILE`.",
            UserWarning,
            stacklevel=3,
        )
    direction_sum, outer_sum = noisy_sums(prior.direction_sum, prior.outer_sum, noise)
    direction_sum, outer_sum = repaired(direction_sum, outer_sum, prior.n_tasks, noise)
    public = ("n_tasks", "feature_scale", "classes", "feature_names", "about", "scale_learnt")
    return {
        **{name: getattr(prior, name) for name in public},
        "direction_sum": direction_sum,
        "outer_sum": outer_sum,
        "release": Release(epsilon, delta, noise, not prior.scale_learnt),
    }


def sensitivity(n_tasks: int, isotropic: bool) -> float:
    """Distance by which the sums can move if one task is replaced (equation 29)."""
    # Directions are unit vectors to 1e-6, and each sum of floats is off by J^2 roundings at most.
    slack = (1.0 + 1e-6) ** 2
    return math.sqrt(4.0 if isotropic else 4.5) * slack + 4.0 * n_tasks**2 * 2.0**-53


@lru_cache(maxsize=128)
def noise_scale(distance: float, epsilon: float, delta: float) -> float:
    """Least standard deviation for which OpenDP vouches for the budget (equation 30)."""
    dp = _opendp()

    def private(scale: float) -> Any:
        approximate = dp.c.make_zCDP_to_approxDP(_gaussian(scale))
        return dp.c.make_fix_delta(approximate, delta)

    try:
        return float(dp.binary_search_param(private, distance, (epsilon, delta), T=float))
    except dp.OpenDPException as reason:
        raise ValueError(
            f"OpenDP finds no noise for epsilon={epsilon:g} and delta={delta:g}. Take larger ones."
        ) from reason


def noisy_sums(
    direction_sum: Array, outer_sum: Array | None, noise: float
) -> tuple[Array, Array | None]:
    """Sums with normal noise of OpenDP's secure source in every coordinate.

    Outer products are symmetric: their upper triangle is released, what lies off the diagonal
    times the root of two, so that Euclidean and Frobenius norm are the same.
    """
    size = direction_sum.size
    upper = np.triu_indices(size)
    weight = np.where(upper[0] == upper[1], 1.0, math.sqrt(2.0))
    kept = np.empty(0) if outer_sum is None else outer_sum[upper] * weight
    noisy = np.array(_gaussian(noise)(np.concatenate([direction_sum, kept]).tolist()))
    if outer_sum is None:
        return noisy, None
    outer = np.empty((size, size))
    outer[upper] = outer.T[upper] = noisy[size:] / weight
    return noisy[:size], outer


def repaired(
    direction_sum: Array, outer_sum: Array | None, n_tasks: int, noise: float
) -> tuple[Array, Array | None]:
    """Noisy sums as unit directions can have them, without the bias of the noise (31)."""
    n_features = direction_sum.shape[-1]
    spread = noise / n_tasks
    mean = direction_sum / n_tasks
    square = np.maximum(np.vecdot(mean, mean), _TINY)
    kept = np.clip(square - n_features * spread**2, 0.0, 1.0)
    mean = mean * np.sqrt(kept / square)[..., None]
    if outer_sum is None:
        return n_tasks * mean, None
    identity = np.eye(n_features)
    trusted = trusted_mean(mean, spread)
    crossed = trusted[..., :, None] * trusted[..., None, :]
    level = (1.0 - np.vecdot(trusted, trusted)) / n_features
    uneven = outer_sum / n_tasks - crossed
    uneven = uneven - np.trace(uneven, axis1=-2, axis2=-1)[..., None, None] / n_features * identity
    added = (n_features * (n_features + 1) / 2.0 - 1.0) * spread**2
    energy = np.maximum((uneven**2).sum((-2, -1)), _TINY)
    # A variance below the noise cannot be told from none, and none would be certainty.
    room = np.maximum(level - spread, 0.0)
    least = np.minimum(np.linalg.eigvalsh(uneven)[..., 0], -_TINY)
    kept_part = np.clip(np.minimum(1.0 - added / energy, room / -least), 0.0, 1.0)
    moment = kept_part[..., None, None] * uneven + level[..., None, None] * identity + crossed
    return n_tasks * mean, n_tasks * moment


def _gaussian(scale: float) -> Any:
    """OpenDP's measurement that adds exact noise of this standard deviation to a vector."""
    dp = _opendp()
    numbers = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    return dp.m.make_gaussian(numbers, dp.l2_distance(T=float), scale)


def _opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError as reason:
        raise ImportError(
            'Releasing a prior needs OpenDP: pip install "crossfade[privacy]".'
        ) from reason
    # OpenDP asks every caller to agree to parts that its own committee has not yet vetted; the
    # consent holds for the whole process.
    dp.enable_features("contrib")
    return dp

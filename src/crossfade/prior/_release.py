"""Differential privacy for the people of a prior, with noise from OpenDP (equations 29 to 31)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from crossfade._typing import Array
from crossfade.prior._bounded import MOVED, in_units, repaired_means
from crossfade.prior._class_means import CROWD_DOF, ClassMeans
from crossfade.prior._directions import Directions, trusted_mean
from crossfade.prior._gaussian import separation
from crossfade.prior._parts import Sums, check_budget

_TINY = 1e-300


def noisy_sums(
    sums: Mapping[str, Sums], bound: float | None, epsilon: float, delta: float
) -> tuple[dict[str, Sums], float]:
    """Noisy sums of those that have a bound, and their noise (equations 29 to 31)."""
    epsilon, delta = check_budget(epsilon, delta)
    exact, means = sums["directions"], sums.get("class_means")
    assert isinstance(exact, Directions)
    n_people, outer = exact.n_people, exact.person_outer
    # Without a bound on what a person adds, no noise covers it.
    bounded = means if isinstance(means, ClassMeans) and bound is not None else None
    moved = sensitivity(round(n_people), outer is None, bounded is not None)
    noise = noise_scale(moved, epsilon, delta)
    plain = [exact.person_direction, *([] if outer is None else [outer])]
    units = [] if bounded is None or bound is None else in_units(bounded, bound)
    drawn = noisy([*plain, *units], noise)
    total, squares = repaired(drawn[0], None if outer is None else drawn[1], round(n_people), noise)
    found: dict[str, Sums] = {
        "directions": Directions(n_people, total, n_people, total, squares, squares)
    }
    if bounded is not None and bound is not None:
        found["class_means"] = repaired_means(bounded, drawn[len(plain) :], noise, bound, CROWD_DOF)
    return found, noise


def sensitivity(n_people: int, isotropic: bool, class_means: bool = False) -> float:
    """Distance by which the sums can move if one person is replaced (equations 29 and 63)."""
    square = (4.0 if isotropic else 4.5) + (MOVED if class_means else 0.0)
    # Directions are unit vectors to 1e-6, and each sum of floats is off by J^2 roundings at most.
    slack = (1.0 + 1e-6) ** 2
    n_sums = 6.0 if class_means else 2.0
    return math.sqrt(square) * slack + 2.0 * n_sums * n_people**2 * 2.0**-53


def noise_scale(distance: float, epsilon: float, delta: float) -> float:
    """Least standard deviation that keeps the budget (equation 30)."""
    return distance / separation(epsilon, delta)


def noisy(sums: list[Array], noise: float) -> list[Array]:
    """Vectors and symmetric matrices with normal noise of OpenDP's secure source, drawn at once."""
    upper = [np.triu_indices(len(one)) for one in sums]
    weights = [np.where(rows == columns, 1.0, math.sqrt(2.0)) for rows, columns in upper]
    flat = [
        one if one.ndim == 1 else one[places] * weight
        for one, places, weight in zip(sums, upper, weights, strict=True)
    ]
    moved = np.array(_gaussian(noise)(np.concatenate(flat).tolist()))
    parts = np.split(moved, np.cumsum([one.size for one in flat])[:-1])
    for number, (one, places, weight) in enumerate(zip(sums, upper, weights, strict=True)):
        if one.ndim == 2:
            matrix = np.empty(one.shape)
            matrix[places] = matrix.T[places] = parts[number] / weight
            parts[number] = matrix
    return parts


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
        raise ImportError("Release needs OpenDP. Install crossfade[privacy].") from reason
    # OpenDP asks every caller to agree to parts that its own committee has not yet vetted; the
    # consent holds for the whole process.
    dp.enable_features("contrib")
    return dp

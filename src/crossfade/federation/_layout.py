"""All parts of a prior as one vector of sums over people, in fixed point, and back.

A number is two words modulo 2^64, in steps of 2^-16 and of 2^-56:

    x = coarse 2^-16 + fine 2^-56,   coarse = round(2^16 x),   fine = round(2^40 (2^16 x - coarse))

Words of n sites add up without a carry between the two, and without overflow as long as no site's
sum exceeds 2^46 / n: then |sum of coarse| <= 2^62 + n / 2 and |sum of fine| <= n 2^39, both below
2^63 for up to 1,000 sites. Rounding costs at most n 2^-57, where floats of size 1 have 2^-53.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array
from crossfade.fisher._task_moments import N_LAGS, RUNS
from crossfade.prior._class_means import ClassMeans
from crossfade.prior._parts import People
from crossfade.prior._replay import LADDER, Replay
from crossfade.prior._task_prior import ALL_VERBS, PAIR_VERBS, TaskPrior

Words = NDArray[np.uint64]
Shapes = dict[str, tuple[int, ...]]

#: Bits after the point of the two words of a number, and of the largest sum of all sites.
_COARSE, _FINE, _LARGEST = 16, 56, 46
STEP = 2.0**-_FINE
MOST_SITES = 1000
#: Averages over tasks, which are summed times the number of tasks.
_AVERAGES = ("within_covariance", "half_gap", "autocorrelation", "direction_noise")
#: What is summed beside the directions, unless the sites agree on less.
PARTS = (*_AVERAGES, "class_means", "replay")


def largest_sum(n_sites: int) -> float:
    """Largest absolute value that a sum of one site may have."""
    return 2.0**_LARGEST / n_sites


def shapes_of(n_features: int, parts: Sequence[str]) -> Shapes:
    """Shape of each sum, in the order of the vector; it depends on features and parts alone."""
    d = n_features
    shapes: Shapes = {"n_tasks": (), "direction_sum": (d,), "outer_sum": (d, d)}
    # Sessions of one person count once, for a release.
    shapes |= {"people.n_people": (), "people.direction_sum": (d,), "people.outer_sum": (d, d)}
    averages: Shapes = dict(zip(_AVERAGES, ((d, d), (d,), (N_LAGS,), ()), strict=True))
    shapes |= {name: averages[name] for name in _AVERAGES if name in parts}
    if "class_means" in parts:
        means: Shapes = {
            "n_people": (),
            "mean_sum": (2 * d,),
            "outer_sum": (2 * d, 2 * d),
            "n_within": (),
            "within_sum": (d, d),
            "run_counts": (RUNS.size,),
            "run_sums": (RUNS.size, d, d),
            "alike_sum": (),
            "centred": (),
        }
        shapes |= {f"class_means.{name}": shape for name, shape in means.items()}
    if "replay" in parts:
        verbs = ALL_VERBS if "class_means" in parts else PAIR_VERBS
        shapes |= {f"replay.{verb}": NOBODY.shape for verb in verbs}
    return shapes


#: Record of a replay in which nobody played.
NOBODY = Replay.of(*np.empty((2, 0, 1, LADDER.size))).sums


def n_words(shapes: Shapes) -> int:
    """Number of words of the vector."""
    return 2 * sum(_packed_size(shape) for shape in shapes.values())


def sums_of(prior: TaskPrior, shapes: Shapes) -> dict[str, Any]:
    """Every part of a prior as a sum over its tasks; None for what it lacks."""
    directions = ("n_tasks", "direction_sum", "outer_sum")
    sums: dict[str, Any] = {name: getattr(prior, name) for name in directions}
    sums |= {f"people.{name}": value for name, value in prior._by_person.fields().items()}
    for name in _AVERAGES:
        average = getattr(prior, name)
        sums[name] = None if average is None else prior.n_tasks * average
    means = {} if prior.class_means is None else prior.class_means.fields()
    sums |= {f"class_means.{name}": value for name, value in means.items()}
    if means:
        # All people of a site are centred or none is, so that the total must be 0 or J.
        sums["class_means.centred"] = prior.n_tasks * float(means["centred"])
    # Who never played adds nothing.
    sums |= {f"replay.{verb}": NOBODY for verb in ALL_VERBS}
    sums |= {f"replay.{verb}": one.sums for verb, one in (prior.replay or {}).items()}
    return {name: sums.get(name) for name in shapes}


def packed(sums: dict[str, Any]) -> Array:
    """One vector of all sums; of symmetric matrices the upper triangle."""
    return np.concatenate([_pack(np.asarray(value, np.float64)) for value in sums.values()])


def unpacked(vector: Array, shapes: Shapes) -> dict[str, Array]:
    """Sums by name: the inverse of :func:`packed`."""
    ends = np.cumsum([_packed_size(shape) for shape in shapes.values()])
    parts = np.split(vector, ends[:-1])
    return {
        name: _unpack(part, shape)
        for part, (name, shape) in zip(parts, shapes.items(), strict=True)
    }


def to_words(vector: Array) -> Words:
    """Numbers in fixed point: first all coarse words, then all fine ones."""
    scaled = vector * 2.0**_COARSE  # exact, and so is what rounding leaves
    coarse = np.rint(scaled)
    fine = np.rint((scaled - coarse) * 2.0 ** (_FINE - _COARSE))
    return np.concatenate([coarse, fine]).astype(np.int64).view(np.uint64)


def of_words(words: Words) -> Array:
    """Numbers from fixed point: the inverse of :func:`to_words`, for sums of words too."""
    coarse, fine = words.view(np.int64).reshape(2, -1).astype(np.float64)
    numbers: Array = coarse * 2.0**-_COARSE + fine * 2.0**-_FINE
    return numbers


def prior_of(sums: dict[str, Any], clip: float | None, **fields: Any) -> TaskPrior:
    """Prior from sums over all tasks; refuses, as a file's, numbers that no tasks have."""
    n_tasks, n_features = int(sums["n_tasks"]), sums["direction_sum"].size
    averages = {name: sums[name] / n_tasks for name in _AVERAGES if name in sums}
    if "direction_noise" in averages:
        averages["direction_noise"] = float(averages["direction_noise"])
    means = _under("class_means", sums)
    if means:
        scalars = {name: float(value) for name, value in means.items() if value.ndim == 0}
        means |= scalars | {"centred": scalars["centred"] > 0.0, "clip": clip}
    counted = _under("people", sums)
    counted["n_people"] = int(counted["n_people"])
    people = People.of_file(counted, n_features, n_tasks)
    replay = {verb: Replay(value) for verb, value in _under("replay", sums).items()}
    return TaskPrior(
        n_tasks=n_tasks,
        direction_sum=sums["direction_sum"],
        outer_sum=sums["outer_sum"],
        class_means=ClassMeans.of_file(means, n_features, n_tasks) if means else None,
        replay=replay or None,
        # Where everybody has one session, both are the same sums.
        people=people if people.n_people < n_tasks else None,
        **averages,
        **fields,
    )


def _under(part: str, sums: dict[str, Any]) -> dict[str, Any]:
    """Sums of one part, by their names in it."""
    start = f"{part}."
    return {
        name.removeprefix(start): value for name, value in sums.items() if name.startswith(start)
    }


def _is_symmetric(shape: tuple[int, ...]) -> bool:
    """Whether sums of this shape are symmetric matrices; those of a replay have six columns."""
    return len(shape) > 1 and shape[-1] == shape[-2]


def _packed_size(shape: tuple[int, ...]) -> int:
    if _is_symmetric(shape):
        return math.prod(shape[:-2]) * shape[-1] * (shape[-1] + 1) // 2
    return math.prod(shape)


def _pack(array: Array) -> Array:
    if _is_symmetric(array.shape):
        array = array[..., *np.triu_indices(array.shape[-1])]
    return array.ravel()


def _unpack(part: Array, shape: tuple[int, ...]) -> Array:
    if not _is_symmetric(shape):
        return part.reshape(shape)
    rows, columns = np.triu_indices(shape[-1])
    array = np.empty(shape)
    array[..., rows, columns] = array[..., columns, rows] = part.reshape(*shape[:-2], rows.size)
    return array

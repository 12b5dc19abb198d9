"""The law of all others, for each of some people: what a rehearsal meets them with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array
from crossfade.fisher import Block, TaskMoments
from crossfade.prior._class_means import ClassMeans
from crossfade.prior._crowd import Crowd
from crossfade.prior._directions import Directions, shares_of
from crossfade.prior._law import Law
from crossfade.prior._learn import directions_of
from crossfade.prior._population import Population
from crossfade.prior._space import Space
from crossfade.prior._sums import Sums


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Some people with as many windows of each class, and the law of the others for each."""

    places: NDArray[np.intp]  # (n,): where they stand among all tasks
    rows: tuple[Array, ...]  # (n, N, d): windows of each class
    law: Law


def left_out(
    moments: TaskMoments,
    space: Space,
    sums: Mapping[str, Sums],
    chosen: NDArray[np.bool_],
    shrinkage: str | float | None,
    groups: Sequence[str | None] | None,
    *,
    fewest: int,
    at_once: int,
) -> Iterator[LeftOut]:
    """Leave out, in turn, each chosen (n_tasks,) person with `fewest` windows of each class.

    With a bound on class means, tasks of one of the `groups` are parts of one person.
    """
    shares = np.ones(moments.n_tasks)
    if groups is not None and space.mean_norm_bound is not None:
        shares = shares_of(groups)
    directions, means = sums.get("directions"), sums.get("class_means")
    whole = Law.from_sums(space, sums)
    own = None
    if isinstance(directions, Directions):
        own = directions_of(moments, space.feature_scale, shrinkage)
    for block in moments.blocks:
        if min(block.sizes) < fewest or moments.n_tasks < 2:
            continue
        for few in _few(shares[block.places], chosen[block.places], at_once):
            law, places = whole, block.places[few]
            if isinstance(directions, Directions) and own is not None:
                law = replace(law, directions=_other_directions(directions, own[places]))
            if isinstance(means, ClassMeans):
                share = float(shares[places[0]])
                law = replace(law, class_means=_other_means(means, space, block, few, share))
            yield LeftOut(places, tuple(part[few] for part in block.rows), law)


def _few(shares: Array, chosen: NDArray[np.bool_], at_once: int) -> Iterator[NDArray[np.intp]]:
    """Those chosen, of one share, so many at a time."""
    for share in np.unique(shares):
        alike = np.flatnonzero(chosen & (shares == share))
        for start in range(0, len(alike), at_once):
            yield alike[start : start + at_once]


def _other_directions(sums: Directions, own: Array) -> Crowd:
    """Law of the directions of all but each of some people (n, d)."""
    outer = None if sums.outer is None else sums.outer - own[:, :, None] * own[:, None, :]
    noise = sums.average("noise")
    return Crowd.from_sums(
        sums.n_tasks - 1.0,
        sums.direction - own,
        outer,
        direction_noise=None if noise is None else float(noise),
    )


def _other_means(
    sums: ClassMeans, space: Space, block: Block, few: NDArray[np.intp], share: float
) -> Population:
    """Law of the class means of all but each of some people of a block."""
    log_dof = sums.log_wishart_dof / sums.n_people
    rows = tuple(part[few] for part in block.rows)
    each = ClassMeans.of_each(
        block.whole[few], rows, space.feature_scale, log_dof, space.mean_norm_bound
    )
    return Population.from_sums(sums - each * share, centred=space.centred_per_person)

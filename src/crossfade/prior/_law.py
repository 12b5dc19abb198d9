"""The law of a new person: what sums over many people say about one who was never seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array
from crossfade.fisher import Block, Spectrum, TaskMoments, cut_off, from_dense, oas
from crossfade.prior._class_means import ClassMeans, Population
from crossfade.prior._directions import Crowd, Directions, shares_of
from crossfade.prior._forecast_record import ForecastRecord
from crossfade.prior._learn import directions_of
from crossfade.prior._parts import Space, Sums


@dataclass(frozen=True, eq=False)
class Law:
    """Law of a new person before they label a window; leading axes are a batch."""

    n_classes: int
    feature_scale: Array  # (n_features,): what features are divided by
    directions: Crowd | None = None  # law of the direction between two classes
    class_means: Population | None = None  # law of the class means
    within: Spectrum | None = None  # average covariance within the classes, in scaled units
    neighbour_correlation: Array | None = None  # (n_lags,): of windows of a class 1, 2, ... apart
    #: For each kind of blend, how accurate its forecasts turned out.
    records: Mapping[str, ForecastRecord] = field(default_factory=dict)
    means_noise: float = 0.0  # deviation that a release added to each feature of the mean of means

    @classmethod
    def from_sums(cls, space: Space, sums: Mapping[str, Sums], noise: float = 0.0) -> Law:
        """Law from sums over people, which may have leading axes; `noise` is that of a release."""
        directions, means = sums.get("directions"), sums.get("class_means")
        known: dict[str, Any] = {}
        if isinstance(directions, Directions):
            known["directions"] = directions.crowd(noise)
            known["within"] = within_spectrum(directions)
            alike = directions.average("autocorrelation")
            known["neighbour_correlation"] = None if alike is None else cut_off(alike)
        if isinstance(means, ClassMeans):
            centred = space.centred_per_person
            known["class_means"] = Population.from_sums(means, centred=centred)
            known["means_noise"] = noise / means.n_people * (space.mean_norm_bound or 0.0)
        records = {
            name.partition(".")[2]: one
            for name, one in sums.items()
            if isinstance(one, ForecastRecord) and one.able.size
        }
        return cls(space.n_classes, space.feature_scale, **known, records=records)

    def of(self, which: Any) -> Law:
        """Laws of some of a batch of people."""
        directions = None if self.directions is None else self.directions.of(which)
        means = None if self.class_means is None else self.class_means.of(which)
        return replace(self, directions=directions, class_means=means)


def within_spectrum(sums: Directions) -> Spectrum | None:
    """Average covariance within the classes, shrunk (2) if it lacks rank for want of tasks."""
    covariance = sums.average("within")
    if covariance is None:
        return None
    plain = from_dense(covariance)
    rank, d = int((plain.values > 0.0).sum()), len(covariance)
    if rank == d or rank < sums.n_tasks:
        return plain
    trace, square = plain.values.sum(), (plain.values**2).sum()
    weight = oas(trace, square, d, sums.n_tasks)
    return plain.shrunk(weight, weight * trace / d)


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
    """Leave out, in turn, each chosen (n_tasks,) person with `fewest` windows of each class."""
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

"""From the moments of many tasks to sums over people, and from these to the law of a new person.

Features are divided by the median over tasks of their deviation within the classes, unless a scale
is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._typing import Array
from crossfade._validate import check_flag, check_names, check_number, resolve_scale
from crossfade.exceptions import NoDirectionError
from crossfade.fisher import (
    Block,
    Spectrum,
    TaskMoments,
    cut_off,
    from_dense,
    oas,
    refuse_units,
    unit_directions,
)
from crossfade.prior._class_means import ClassMeans, Population
from crossfade.prior._directions import Crowd, Directions, shares_of
from crossfade.prior._forecast_record import ForecastRecord
from crossfade.prior._parts import Origin, Space, Sums, check_labels
from crossfade.prior._sessions import Sessions
from crossfade.tasks import Recipe, Task, TaskSet


def moments_of_tasks(tasks: Iterable[Task]) -> tuple[TaskMoments, dict[str, Any]]:
    """Moments of tasks, and what `learn` asks of them besides."""
    sources = tasks if isinstance(tasks, TaskSet) else TaskSet(tasks)
    _check_sources(sources)
    _refuse_twins(sources)
    classes = sources[0].classes
    samples = [(np.asarray(one.X), np.searchsorted(classes, one.y)) for one in sources]
    if len(classes) == 2:
        moments = TaskMoments.of(samples)
    else:
        moments = TaskMoments.of_classes(samples, len(classes))
    called, labels = sources.class_names, classes.tolist()
    return moments, {
        "groups": [task.group for task in sources],
        "classes": labels,
        "class_names": tuple(called.get(one, str(one)) for one in labels) if called else None,
        "feature_names": sources.feature_names,
        "recipe": sources.recipe,
        "called": lambda place: repr(sources[place]),
    }


def learn(
    moments: TaskMoments,
    *,
    shrinkage: str | float | None = "oas",
    feature_scale: ArrayLike | str | None = "auto",
    isotropic: bool = False,
    centred_per_person: bool | str = "auto",
    mean_norm_bound: float | None = None,
    groups: Sequence[str | None] | None = None,
    classes: Sequence[Any] | None = None,
    class_names: tuple[str, ...] | None = None,
    feature_names: Sequence[str] | None = None,
    recipe: Recipe | None = None,
    called: Callable[[int], str] = "Task {}".format,
) -> tuple[Space, dict[str, Sums], Origin]:
    """Space, sums and origin of the prior of these tasks; tasks of a group are one person's."""
    check_flag("isotropic", isotropic)
    bound = mean_norm_bound
    if bound is not None:
        bound = check_number("mean_norm_bound", bound, 1e-100, 1e100)
    scale = _scale_of(moments, feature_scale, called)
    groups = [None] * moments.n_tasks if groups is None else groups
    sums = _sums_of(moments, scale, shrinkage, isotropic, bound, groups, called)
    centred = centred_per_person
    if not isinstance(centred, str) or centred != "auto":
        check_flag("Unless it is 'auto', centred_per_person", centred)
    else:
        # With a bound the answer must not depend on one person.
        centred = bound is None and "class_means" in sums and _is_centred(moments, scale)
    names, labels = check_names(feature_names, scale.size), check_labels(classes)
    space = Space(scale, names, labels, class_names, recipe, bool(centred), bound)
    return space, sums, Origin(scale_learnt=isinstance(feature_scale, str))


def _scale_of(
    moments: TaskMoments, feature_scale: ArrayLike | str | None, called: Callable[[int], str]
) -> Array:
    """Scale of the features: as given, or the typical deviation within the classes."""
    scale = resolve_scale(feature_scale, moments.blocks[0].whole.n_features)
    if scale is None:
        scale = _typical_deviation(
            moments.gather(lambda one: one.whole.variance()),
            moments.gather(lambda one: one.whole.largest),
            moments.gather(lambda one: np.broadcast_to(one.whole.left, one.places.shape)),
        )
    refuse_units(moments.gather(lambda one: one.whole.largest), scale, called)
    return scale.copy()


def _sums_of(
    moments: TaskMoments,
    scale: Array,
    shrinkage: str | float | None,
    isotropic: bool,
    bound: float | None,
    groups: Sequence[str | None],
    called: Callable[[int], str],
) -> dict[str, Sums]:
    """Sums of tasks by their kind; `called` names a task that has no direction."""
    sums: dict[str, Sums] = {}
    if moments.blocks[0].whole.counts.shape[-1] == 2:
        sums["directions"] = _directions(moments, scale, shrinkage, isotropic, groups, called)
    means = None
    if not isotropic and not _is_a_row(moments):
        means = _class_means(moments, scale, bound, groups)
    if means is not None:
        sums["class_means"] = means
        if (shares_of(groups) < 1.0).any():
            whole = moments.gather(lambda one: one.whole.means / scale)
            sums["sessions"] = Sessions.of(groups, whole.reshape(len(whole), -1))
    if not sums:
        raise NoDirectionError("The windows of these tasks do not vary within their classes.")
    return sums


def directions_of(moments: TaskMoments, scale: Array, shrinkage: str | float | None) -> Array:
    """Unit directions (n_tasks, d) of tasks of two classes."""
    return moments.gather(lambda one: unit_directions(one.whole, scale, shrinkage))


def _is_centred(moments: TaskMoments, scale: Array) -> bool:
    """Whether the mean over all windows of every task is zero."""
    whole = moments.gather(
        lambda one: np.vecdot(one.whole.counts[..., None, :], one.whole.means.mT)
    )
    n_windows = moments.gather(
        lambda one: np.broadcast_to(one.whole.counts.sum(-1), one.places.shape)
    )
    return bool((np.abs(whole) <= 1e-6 * scale * n_windows[:, None]).all())


def _check_sources(tasks: Sequence[Task]) -> None:
    """Refuse tasks of one class, or of other classes than the first."""
    if not tasks:
        raise ValueError("A prior needs at least one task; got none.")
    first = tasks[0]
    for task in tasks:
        classes = task.classes.tolist()
        if len(classes) < 2:
            raise ValueError(f"{task!r} has one class only. Leave it out.")
        if classes != first.classes.tolist():
            raise ValueError(
                f"All tasks must have the same classes; {task!r} has {classes[:9]}, {first!r} has "
                f"{first.classes.tolist()[:9]}. Rename labels, or leave the task out."
            )


def _refuse_twins(tasks: Sequence[Task]) -> None:
    """Refuse tasks that hold the same windows, in whatever order."""
    seen: dict[bytes, Task] = {}
    for task in tasks:
        rows = np.ascontiguousarray(task.X, np.float64) + 0.0
        # Rows as strings of bytes are sorted quickly.
        windows = np.sort(rows.view(f"S{rows.shape[1] * rows.itemsize}"), axis=0).tobytes()
        if windows in seen:
            raise ValueError(
                f"{task!r} and {seen[windows]!r} hold the same windows. Leave one of them out."
            )
        seen[windows] = task


def _typical_deviation(variance: Array, largest: Array, left: Array) -> Array:
    """Median over tasks (J, d) of the deviation within the classes; one where there is none."""
    able = left > 0.0
    used = able if able.any() else np.ones_like(able)
    scale = np.median(np.sqrt(variance[used]), axis=0)
    return np.where(scale > 1e-12 * np.median(largest[used], axis=0), scale, 1.0)


def _directions(
    moments: TaskMoments,
    scale: Array,
    shrinkage: str | float | None,
    isotropic: bool,
    groups: Sequence[str | None],
    called: Callable[[int], str],
) -> Directions:
    """Sums of the directions of tasks of two classes, and averages times the number of tasks."""

    def halves(block: Block) -> Array:
        if block.halves is None:
            return np.zeros((len(block.places), 2, scale.size))
        return np.stack([unit_directions(half, scale, shrinkage) for half in block.halves], 1)

    directions = directions_of(moments, scale, shrinkage)
    if not directions.any(1).all():
        place = int((~directions.any(1)).argmax())
        raise NoDirectionError(
            f"{called(place)} has no direction: its classes do not differ in any feature. "
            "Leave it out."
        )
    n_tasks = len(directions)
    within = None if isotropic else _average_covariance(moments, scale)
    alike = _average_correlation(moments)
    noise = _direction_noise(*moments.gather(halves).swapaxes(0, 1))
    return replace(
        Directions.of(directions, groups, outer=not isotropic),
        within=None if within is None else n_tasks * within,
        autocorrelation=None if alike is None else n_tasks * alike,
        noise=None if noise is None else n_tasks * noise,
    )


def _class_means(
    moments: TaskMoments, scale: Array, bound: float | None, groups: Sequence[str | None]
) -> ClassMeans | None:
    """Sums of class means; None where windows of a class do not vary in any feature."""
    if bound is not None:
        return ClassMeans.of_people(moments.blocks, scale, shares_of(groups), bound)
    able = [one.whole for one in moments.blocks if np.all(one.whole.left > 0.0)]
    if able and not any(one.deviation().any() for one in able):
        return None
    return ClassMeans.of_blocks(moments.blocks, scale)


def _is_a_row(moments: TaskMoments) -> bool:
    """Whether a class mean would be a single window."""
    return moments.n_tasks == 1 and min(moments.blocks[0].sizes) < 2


def _average_covariance(moments: TaskMoments, scale: Array) -> Array | None:
    """Mean over tasks of their covariance within the classes; those without one do not count."""
    total, n_able = np.zeros((scale.size, scale.size)), 0
    for block in moments.blocks:
        # Tasks of one sample a class have no covariance to give.
        if np.all(block.whole.left > 0.0):
            # Deviations may come from rounding alone.
            varies = block.whole.deviation() > 0.0
            part = block.whole.scaled(scale if varies.all() else np.where(varies, scale, np.inf))
            if block.whole.rooted:
                rows = part.reshape(-1, scale.size)
                total += rows.T @ rows
            else:
                total += part.sum(0)
            n_able += len(block.places)
    return total / n_able if n_able else None


def _average_correlation(moments: TaskMoments) -> Array | None:
    """Mean over tasks of how far neighbours are alike; None where that says nothing."""
    parts = [one.autocorrelation for one in moments.blocks]
    known = [part for part in parts if part is not None]
    return np.concatenate(known).mean(0) if len(known) == len(parts) else None


def _direction_noise(early: Array, late: Array) -> float | None:
    """Average squared error of directions, from those of the halves of each task (equation 49)."""
    both = early.any(1) & late.any(1)
    if not both.any():
        return None
    return float(((early - late)[both] ** 2).sum(1).mean()) / 4.0


# -- the law ---------------------------------------------------------------------------------------


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
    # Nobody needs the law of everybody's class means.
    whole = Law.from_sums(space, {name: one for name, one in sums.items() if one is not means})
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
    """Yield batches of chosen people with equal shares."""
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

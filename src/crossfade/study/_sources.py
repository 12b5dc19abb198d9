"""All participants of a study, summed up once; what all but one group know, for each target.

With two classes a prior follows from sums over each task (its moments), so that leaving a group
out is leaving rows out. With more, priors are fitted to the windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crossfade.fisher._direction import varying_dimension
from crossfade.fisher._discriminant import FisherDiscriminant
from crossfade.fisher._shrinkage import oas
from crossfade.fisher._spectrum import ROUNDING, from_rows
from crossfade.prior._mixture import MixturePrior
from crossfade.prior._multiclass import MulticlassPrior
from crossfade.prior._task_directions import autocorrelation, direction_noise, halves
from crossfade.prior._task_prior import TaskPrior
from crossfade.study._splits import generator_for
from crossfade.tasks._task import Task

Array = NDArray[np.float64]


class Participant(NamedTuple):
    """One task of a study, its windows in the order of time.

    `X` is (n_windows, n_features); `label` (n_windows,) has places among the `n_classes` classes of
    the study, of which a participant may lack some.
    """

    name: str
    group: str
    X: Array
    label: NDArray[np.intp]
    n_classes: int = 2

    @property
    def counts(self) -> tuple[int, ...]:
        """Windows of each class."""
        return tuple(np.bincount(self.label, minlength=self.n_classes).tolist())


class Moments(NamedTuple):
    """What the directions of tasks in any units follow from; the first axes are those of the tasks.

    `half_gap` (..., d) is half the difference of the class means, zero where rounding alone can
    have made it; `within` (..., d, d) the pooled covariance within the classes; `size` (..., d) the
    largest absolute value of each feature; `n_varying` (...) the dimension of the space in which
    the features vary; `n_windows` (...) the number of windows.
    """

    half_gap: Array
    within: Array
    size: Array
    n_varying: NDArray[np.intp]
    n_windows: NDArray[np.intp]

    @classmethod
    def stacked(cls, moments: Sequence[Moments]) -> Moments:
        """Moments of many tasks out of those of each."""
        return cls._make(np.stack(part) for part in zip(*moments, strict=True))

    def of(self, tasks: NDArray[np.bool_]) -> Moments:
        """Moments of some of the tasks."""
        return Moments._make(part[tasks] for part in self)


def moments_of(X: Array, label: NDArray[np.intp]) -> Moments:
    """Moments of one task in raw units; `label` is 0 for the first class and 1 for the second."""
    means = np.stack([X[label == name].mean(0) for name in (0, 1)])
    size = np.abs(X).max(0)
    gap = means[1] - means[0]
    rows = X - means[label]
    freedom = max(label.size - 2, 1)
    within = rows.T @ rows / freedom
    half_gap = np.where(np.abs(gap) > 16.0 * ROUNDING * size, gap, 0.0) / 2.0
    deviation = np.sqrt(np.diagonal(within))
    unit = np.where(deviation > 1e-12 * size, deviation, 1.0)
    varying = varying_dimension(from_rows(rows / unit), half_gap / unit, freedom)
    return Moments(half_gap, within, size, varying, np.array(label.size))


def _half_moments(participant: Participant, part: int) -> Moments:
    """Moments of the earlier or the later half of each class; without a gap if it is too short."""
    X, label = participant.X, participant.label
    half = halves(label)
    if half is None:
        whole = moments_of(X, label)
        return whole._replace(half_gap=np.zeros_like(whole.half_gap))
    return moments_of(X[half == part], label[half == part])


def _balanced_direction(participant: Participant, rng: np.random.Generator) -> Array:
    """Unit direction (d,) of a source as the paper's authors had it.

    The larger class is cut to a random run of consecutive windows; the pseudo-inverse of the plain
    covariance, in raw units.
    """
    n_each = min(participant.counts)
    kept = []
    for name in (0, 1):
        places = np.flatnonzero(participant.label == name)
        start = rng.integers(places.size - n_each + 1)
        kept.append(places[start : start + n_each])
    rows = np.concatenate(kept)
    discriminant = FisherDiscriminant(shrinkage=None, feature_scale=None)
    direction: Array = discriminant.fit(participant.X[rows], participant.label[rows]).projection_
    return direction


class Sums(NamedTuple):
    """What is known of the tasks of two classes, in order, without their windows.

    `early` and `late` are the moments of the halves of each task, `autocorrelation` (n_tasks,
    n_lags) tells how far neighbouring windows are alike, and `balanced` (n_tasks, d) has directions
    as the paper's authors had them.
    """

    whole: Moments
    early: Moments
    late: Moments
    autocorrelation: Array
    balanced: Array

    @classmethod
    def of(cls, participants: Sequence[Participant], seed: int) -> Sums:
        """Sum up tasks; the seed of the study chooses the balanced runs."""
        return cls(
            Moments.stacked([moments_of(one.X, one.label) for one in participants]),
            Moments.stacked([_half_moments(one, 0) for one in participants]),
            Moments.stacked([_half_moments(one, 1) for one in participants]),
            np.stack([autocorrelation(one.X, one.label) for one in participants]),
            np.stack(
                [
                    _balanced_direction(one, generator_for(seed, one.name, "balanced run"))
                    for one in participants
                ]
            ),
        )


class Windows(NamedTuple):
    """Windows of all tasks, one task after the other.

    `X` is (n_windows, n_features), `label` (n_windows,) has places of classes and `task`
    (n_windows,) places of tasks.
    """

    X: Array
    label: NDArray[np.intp]
    task: NDArray[np.intp]

    @classmethod
    def of(cls, participants: Sequence[Participant]) -> Windows:
        """Put the windows of tasks together."""
        return cls(
            np.concatenate([one.X for one in participants]),
            np.concatenate([one.label for one in participants]),
            np.arange(len(participants)).repeat([len(one.label) for one in participants]),
        )


@dataclass(frozen=True, eq=False)
class Sources:
    """Those whose data a target may use.

    `kept` (n_tasks,) says which of the study's tasks they are, by their `groups` (n_tasks,). There
    are `sums` with two classes, and `windows` with more, or where a method needs them.
    """

    classes: NDArray[Any]
    groups: NDArray[Any]
    kept: NDArray[np.bool_]
    sums: Sums | None
    windows: Windows | None

    @classmethod
    def of(
        cls,
        participants: Sequence[Participant],
        classes: NDArray[Any],
        seed: int,
        *,
        keep_windows: bool,
    ) -> Sources:
        """All participants of a study."""
        two = len(classes) == 2
        return cls(
            classes,
            np.array([one.group for one in participants]),
            np.ones(len(participants), dtype=bool),
            Sums.of(participants, seed) if two else None,
            Windows.of(participants) if keep_windows or not two else None,
        )

    def without(self, group: str) -> Sources:
        """All but those of one group: the sources of a target that belongs to it."""
        return replace(self, kept=self.kept & (self.groups != group))

    @property
    def _sums(self) -> Sums:
        assert self.sums is not None
        return self.sums

    @property
    def _windows(self) -> Windows:
        """Windows of the sources alone."""
        assert self.windows is not None
        kept = self.kept[self.windows.task]
        return Windows._make(part[kept] for part in self.windows)

    @cached_property
    def paper_prior(self) -> TaskPrior:
        """Prior of the paper's authors: pseudo-inverse, raw units, balanced sources."""
        return TaskPrior.from_projections(
            self._sums.balanced[self.kept], classes=self.classes.tolist()
        )

    @cached_property
    def prior(self) -> TaskPrior:
        """What ``TaskPrior.from_tasks`` makes of the sources, from their moments."""
        sums = self._sums
        whole = sums.whole.of(self.kept)
        # Tasks of one window a class have no covariance to give.
        able = whole.n_windows > 2
        used = able if able.any() else np.ones_like(able)
        deviation = np.sqrt(np.diagonal(whole.within, axis1=-2, axis2=-1))
        size = np.median(whole.size[used], axis=0)
        scale = np.median(deviation[used], axis=0)
        scale = np.where(scale > 1e-12 * size, scale, 1.0)
        directions = _shrunk_directions(whole, scale)
        halves_of = (half.of(self.kept) for half in (sums.early, sums.late))
        within = whole.within[able] / (scale[:, None] * scale)
        return TaskPrior(
            n_tasks=len(directions),
            direction_sum=directions.sum(0),
            outer_sum=directions.T @ directions,
            feature_scale=scale,
            classes=tuple(self.classes.tolist()),
            within_covariance=within.mean(0) if able.any() else None,
            half_gap=(whole.half_gap / scale).mean(0),
            scale_learnt=True,
            directions=directions,
            autocorrelation=sums.autocorrelation[self.kept].mean(0),
            direction_noise=direction_noise(
                *(_shrunk_directions(half, scale) for half in halves_of)
            ),
        )

    @cached_property
    def mixture(self) -> MixturePrior:
        """A prior of several kinds of people."""
        return MixturePrior.from_prior(self.prior)

    @cached_property
    def pairs(self) -> MulticlassPrior:
        """Prior of more than two classes against each other."""
        return MulticlassPrior.from_tasks(self._tasks(), strategy="pairwise")

    @cached_property
    def rests(self) -> MulticlassPrior:
        """Prior of each class against the rest, from the sources that have all classes."""
        whole = [task for task in self._tasks() if len(task.classes) == len(self.classes)]
        return MulticlassPrior.from_tasks(whole, strategy="one-vs-rest")

    def _tasks(self) -> list[Task]:
        X, label, task = self._windows
        starts = np.flatnonzero(np.diff(task)) + 1
        parts = zip(np.split(X, starts), np.split(label, starts), strict=True)
        return [Task(own, self.classes[places]) for own, places in parts]

    @cached_property
    def pooled_rule(self) -> LinearDiscriminantAnalysis:
        """One discriminant of all the sources' windows together, the classes equally likely."""
        equal = np.full(len(self.classes), 1.0 / len(self.classes))
        rule = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=equal)
        X, label, _ = self._windows
        return rule.fit(X, self.classes[label])


def _shrunk_directions(moments: Moments, scale: Array) -> Array:
    """Unit directions of ``FisherDiscriminant()`` in given units; zero where there is no gap."""
    deviation = np.sqrt(np.diagonal(moments.within, axis1=-2, axis2=-1))
    varies = deviation > 1e-12 * moments.size
    within = moments.within / (scale[:, None] * scale)
    within = within * (varies[:, :, None] & varies[:, None, :])
    trace = np.trace(within, axis1=-2, axis2=-1)
    freedom = np.maximum(moments.n_windows - 2.0, 1.0)
    weight = oas(trace, (within**2).sum((-2, -1)), moments.n_varying, freedom)
    level = weight * trace / moments.n_varying
    learnt = (moments.n_windows > 2) & (trace > 0.0)
    share = np.where(learnt, 1.0 - weight, 0.0)[:, None, None]
    identity = np.eye(scale.size)
    shrunk = share * within + np.where(learnt, level, 1.0)[:, None, None] * identity
    omega = np.linalg.solve(shrunk, (moments.half_gap / scale)[..., None])[..., 0]
    length = np.linalg.vector_norm(omega, axis=-1, keepdims=True)
    directions: Array = omega / np.where(length > 0.0, length, 1.0)
    return directions

"""All participants of a study, summed up once; what all but one group know, for each target.

With two classes a prior follows from sums over each task (its moments), so that leaving a group
out is leaving rows out. With more, priors are fitted to the windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from crossfade.crowd import TaskPrior
from crossfade.fisher import FisherDiscriminant, TaskMoments
from crossfade.study._participants import Participant
from crossfade.study._splits import generator_for
from crossfade.tasks import Task

Array = NDArray[np.float64]
_Learnt = TypeVar("_Learnt")


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
    """What is known of the tasks of two classes, in order, without their windows."""

    moments: TaskMoments
    balanced: Array  # (n_tasks, d): directions as the paper's authors had them

    @classmethod
    def of(cls, participants: Sequence[Participant], seed: int) -> Sums:
        """Sum up tasks; the seed of the study chooses the balanced runs."""
        return cls(
            TaskMoments.of([(one.X, one.label) for one in participants]),
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
    are `sums` with two classes, and `windows` with more, or where a method needs them. `forecasts`
    says whether priors learn from their sources how true forecasts are; `earlier` (n_tasks,) which
    tasks are earlier sessions of the target's person, where that is the question.
    """

    classes: NDArray[Any]
    groups: NDArray[Any]
    kept: NDArray[np.bool_]
    sums: Sums | None
    windows: Windows | None
    forecasts: bool = True
    names: NDArray[Any] | None = None
    earlier: NDArray[np.bool_] | None = None

    @classmethod
    def of(
        cls,
        participants: Sequence[Participant],
        classes: NDArray[Any],
        seed: int,
        *,
        keep_windows: bool,
        forecasts: bool = True,
    ) -> Sources:
        """All participants of a study."""
        two = len(classes) == 2
        return cls(
            classes,
            np.array([one.group for one in participants]),
            np.ones(len(participants), dtype=bool),
            Sums.of(participants, seed) if two else None,
            Windows.of(participants) if keep_windows or not two else None,
            forecasts,
            np.array([one.name for one in participants]),
        )

    def before(self, target: Participant) -> Sources:
        """The sources of a target who has been there before, with these earlier sessions."""
        assert self.names is not None
        place = np.flatnonzero(self.names == target.name)[0]
        earlier = (self.groups == target.group) & (np.arange(len(self.groups)) < place)
        return replace(self.without(target.group), earlier=earlier)

    def without(self, group: str) -> Sources:
        """All but those of one group: the sources of a target that belongs to it."""
        return replace(self, kept=self.kept & (self.groups != group))

    @property
    def _sums(self) -> Sums:
        assert self.sums is not None
        return self.sums

    @property
    def in_windows(self) -> Windows:
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
        """What ``TaskPrior.from_tasks`` makes of the sources, from their moments; not rehearsed."""
        return self._learnt[1]

    def prior_for(self, kind: str) -> TaskPrior:
        """The same with a rehearsal of one kind of blend, if forecasts are wanted."""
        if kind not in self._priors:
            moments, prior = self._learnt
            if self.forecasts:
                prior = prior.rehearsed(moments, [kind])
            if self.earlier is not None and prior.class_means is not None:
                # For the person of the earlier sessions.
                blocks = self._sums.moments[self.earlier].blocks
                prior = prior.for_moments(
                    [one.whole[place] for one in blocks for place in range(len(one.places))]
                )
            self._priors[kind] = prior
        return self._priors[kind]

    @cached_property
    def _priors(self) -> dict[str, TaskPrior]:
        return {}

    @cached_property
    def _learnt(self) -> tuple[TaskMoments, TaskPrior]:
        """Moments of the sources, and their prior; of many classes, of those who have all."""
        groups = None
        if len(self.classes) == 2:
            moments = self._sums.moments[self.kept]
            groups = self.groups[self.kept].tolist()
        else:
            samples = [
                (np.asarray(one.X), np.searchsorted(self.classes, one.y)) for one in self.tasks()
            ]
            moments = TaskMoments.of_classes(samples, len(self.classes))
        classes = self.classes.tolist()
        prior = TaskPrior.from_moments(moments, rehearse=False, classes=classes, groups=groups)
        return moments, prior

    def tasks(self) -> list[Task]:
        """Windows of the sources, one task after the other."""
        X, label, task = self.in_windows
        starts = np.flatnonzero(np.diff(task)) + 1
        parts = zip(np.split(X, starts), np.split(label, starts), strict=True)
        return [Task(own, self.classes[places]) for own, places in parts]

    def once(self, learn: Callable[[Sources], _Learnt]) -> _Learnt:
        """What a function learns of the sources, at the first call; later ones get the same."""
        if learn not in self._learnt_once:
            self._learnt_once[learn] = learn(self)
        known: _Learnt = self._learnt_once[learn]
        return known

    @cached_property
    def _learnt_once(self) -> dict[Any, Any]:
        return {}

"""All participants of a study, summed up once; what all but one group know, for each target.

A prior follows from the moments of each task, so that leaving a group out is leaving rows out.
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
from crossfade.prior import Crowd, Law
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
    """The tasks that a target may learn from.

    `kept` (n_tasks,) says which of the study's tasks they are. `moments` are those of the tasks
    with `all_classes` (n_tasks,), and `balanced` (n_tasks, d) the directions of two classes as the
    paper's authors had them. There are `windows` where a method needs them. `forecasts` says
    whether blends are rehearsed on the sources, and `earlier` (n_tasks,) which tasks are earlier
    sessions of the target's person, in a study of next sessions.
    """

    classes: NDArray[Any]
    names: NDArray[Any]
    groups: NDArray[Any]
    kept: NDArray[np.bool_]
    all_classes: NDArray[np.bool_]
    moments: TaskMoments
    balanced: Array | None = None
    windows: Windows | None = None
    forecasts: bool = True
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
        """All participants of a study; its seed chooses the balanced runs."""
        samples = [(one.X, one.label) for one in participants]
        two = len(classes) == 2
        balanced = [
            _balanced_direction(one, generator_for(seed, one.name, "balanced run"))
            for one in participants
            if two
        ]
        return cls(
            classes,
            np.array([one.name for one in participants]),
            np.array([one.group for one in participants]),
            np.ones(len(participants), dtype=bool),
            np.array([min(one.counts) > 0 for one in participants]),
            TaskMoments.of(samples) if two else TaskMoments.of_classes(samples, len(classes)),
            np.stack(balanced) if two else None,
            Windows.of(participants) if keep_windows else None,
            forecasts,
        )

    def before(self, target: Participant) -> Sources:
        """The sources of a target who has been there before, with these earlier sessions."""
        place = np.flatnonzero(self.names == target.name)[0]
        earlier = (self.groups == target.group) & (np.arange(len(self.groups)) < place)
        return replace(self.without(target.group), earlier=earlier)

    def without(self, group: str) -> Sources:
        """All but those of one group: the sources of a target that belongs to it."""
        return replace(self, kept=self.kept & (self.groups != group))

    @property
    def in_windows(self) -> Windows:
        """Windows of the sources alone."""
        assert self.windows is not None
        kept = self.kept[self.windows.task]
        return Windows._make(part[kept] for part in self.windows)

    @cached_property
    def paper_crowd(self) -> Crowd:
        """The crowd of the paper's authors: pseudo-inverse, raw units, balanced sources."""
        assert self.balanced is not None
        prior = TaskPrior.from_projections(self.balanced[self.kept])
        crowd = prior.law.directions
        assert crowd is not None
        # A prior refuses directions that cancel out.
        return replace(crowd, mean_direction=prior.mean_direction)

    @cached_property
    def feature_scale(self) -> Array:
        """Units of the features, as the prior of the sources has them."""
        return self._learnt[1].feature_scale

    def law_for(self, kind: str) -> Law:
        """What the sources say about the target, with a rehearsal of one kind of blend."""
        if kind not in self._laws:
            moments, prior = self._learnt
            if self.forecasts:
                prior = prior.rehearsed(moments, [kind])
            if self.earlier is not None and prior.class_means is not None:
                blocks = self.moments[self.earlier].blocks
                prior = prior.for_moments(
                    [one.whole[place] for one in blocks for place in range(len(one.places))]
                )
            self._laws[kind] = prior.law
        return self._laws[kind]

    @cached_property
    def _laws(self) -> dict[str, Law]:
        return {}

    @cached_property
    def _learnt(self) -> tuple[TaskMoments, TaskPrior]:
        """Moments of the sources that have all classes, and their prior, not rehearsed."""
        moments = self.moments[self.kept[self.all_classes]]
        prior = TaskPrior.from_moments(
            moments,
            rehearse=False,
            classes=self.classes.tolist(),
            groups=self.groups[self.kept & self.all_classes].tolist(),
        )
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

"""All participants of a study, summed up once; what all but one group know, for each target.

With two classes a prior follows from sums over each task (its moments), so that leaving a group
out is leaving rows out. With more, priors are fitted to the windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crossfade.blend._replay import replay_means
from crossfade.fisher._discriminant import FisherDiscriminant
from crossfade.fisher._moments import ClassMoments
from crossfade.fisher._task_moments import TaskMoments
from crossfade.prior._class_means import ClassMeans
from crossfade.prior._compatibility import spread_of
from crossfade.prior._learn import sums_of_means
from crossfade.prior._mixture import MixturePrior
from crossfade.prior._multiclass import MulticlassPrior
from crossfade.prior._replay import Replay
from crossfade.prior._task_prior import TaskPrior
from crossfade.study._splits import generator_for
from crossfade.tasks._task import Task

Array = NDArray[np.float64]


class Participant(NamedTuple):
    """One task of a study, its windows in the order of time.

    `X` is (n_windows, n_features); `label` (n_windows,) has places among the `n_classes` classes of
    the study, of which a participant may lack some. `step` is the time in seconds from one window
    to the next, where it is known.
    """

    name: str
    group: str
    X: Array
    label: NDArray[np.intp]
    n_classes: int = 2
    step: float | None = None

    @property
    def counts(self) -> tuple[int, ...]:
        """Windows of each class."""
        return tuple(np.bincount(self.label, minlength=self.n_classes).tolist())


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


def lda(n_classes: int) -> LinearDiscriminantAnalysis:
    """scikit-learn's discriminant with automatic shrinkage, its classes equally likely."""
    equal = np.full(n_classes, 1.0 / n_classes)
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=equal)


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


class Means(NamedTuple):
    """What a hierarchical blend of many classes asks of a prior."""

    class_means: ClassMeans
    feature_scale: Array
    replay: Mapping[str, Replay] | None = None


@dataclass(frozen=True, eq=False)
class Sources:
    """Those whose data a target may use.

    `kept` (n_tasks,) says which of the study's tasks they are, by their `groups` (n_tasks,). There
    are `sums` with two classes, and `windows` with more, or where a method needs them. `forecasts`
    says whether priors learn from their sources how true forecasts are.
    """

    classes: NDArray[Any]
    groups: NDArray[Any]
    kept: NDArray[np.bool_]
    sums: Sums | None
    windows: Windows | None
    forecasts: bool = True

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
        """What ``TaskPrior.from_tasks`` makes of the sources, from their moments; not replayed."""
        return self._prior(())

    def prior_for(self, verb: str) -> TaskPrior:
        """The same with the forecasts of one blend replayed, if they are wanted."""
        if verb not in self._priors:
            self._priors[verb] = self._prior((verb,)) if self.forecasts else self.prior
        return self._priors[verb]

    @cached_property
    def _priors(self) -> dict[str, TaskPrior]:
        return {}

    def _prior(self, verbs: Sequence[str]) -> TaskPrior:
        return TaskPrior.from_moments(
            self._sums.moments[self.kept],
            keep_directions=True,
            replay=verbs,
            classes=self.classes.tolist(),
        )

    @cached_property
    def mixture(self) -> MixturePrior:
        """A prior of several kinds of people."""
        verbs = ("convex", "posterior") if self.forecasts else ()
        return MixturePrior.from_prior(self._prior(verbs))

    @cached_property
    def means(self) -> Means:
        """What the sources say of the class means of more than two classes."""
        tasks = self._tasks()
        samples = [(np.asarray(task.X), np.searchsorted(self.classes, task.y)) for task in tasks]
        moments = TaskMoments.of_classes(samples, len(self.classes))
        scale = spread_of(tasks)
        known = Means(sums_of_means(moments, scale, "auto"), scale)
        if not self.forecasts:
            return known
        return known._replace(replay=replay_means(moments, known) or None)

    @cached_property
    def pairs(self) -> MulticlassPrior:
        """Prior of more than two classes against each other."""
        return MulticlassPrior.from_tasks(
            self._tasks(), strategy="pairwise", class_means=False, replay=self.forecasts
        )

    @cached_property
    def rests(self) -> MulticlassPrior:
        """Prior of each class against the rest, from the sources that have all classes."""
        whole = [task for task in self._tasks() if len(task.classes) == len(self.classes)]
        return MulticlassPrior.from_tasks(
            whole, strategy="one-vs-rest", class_means=False, replay=False
        )

    def _tasks(self) -> list[Task]:
        X, label, task = self._windows
        starts = np.flatnonzero(np.diff(task)) + 1
        parts = zip(np.split(X, starts), np.split(label, starts), strict=True)
        return [Task(own, self.classes[places]) for own, places in parts]

    @cached_property
    def pooled_rule(self) -> LinearDiscriminantAnalysis:
        """One discriminant of all the sources' windows together."""
        X, label, _ = self._windows
        return lda(len(self.classes)).fit(X, self.classes[label])

    @cached_property
    def centred_rule(self) -> LinearDiscriminantAnalysis:
        """The same of windows less the mean of the class means of their task.

        Tasks that lack a class have no such middle, and are left out.
        """
        n_classes = len(self.classes)
        rows, labels = [], []
        for own in self._tasks():
            label = np.searchsorted(self.classes, own.y)
            moments = ClassMoments.of(np.asarray(own.X), label, n_classes=n_classes)
            if moments.counts.all():
                rows.append(own.X - moments.means.mean(0))
                labels.append(own.y)
        return lda(n_classes).fit(np.concatenate(rows), np.concatenate(labels))

"""Who takes part in a study, and what all but one group know, for each target.

A prior follows from the moments of each task, so that leaving a group out is leaving rows out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array, Places
from crossfade.crowd import TaskPrior
from crossfade.fisher import ClassMoments, FisherDiscriminant, TaskMoments
from crossfade.prior import Law
from crossfade.study._splits import Budget, generator_for, leaves_test_windows
from crossfade.tasks import Task, TaskSet

_Result = TypeVar("_Result")


class Participant(NamedTuple):
    """One task of a study, its windows in the order of time."""

    name: str
    group: str
    X: Array  # (n_windows, n_features)
    label: Places  # (n_windows,), places among the classes of the study
    n_classes: int
    step: float | None  # seconds from one window to the next, where they are known

    @property
    def counts(self) -> tuple[int, ...]:
        """Windows of each class."""
        return tuple(np.bincount(self.label, minlength=self.n_classes).tolist())

    @classmethod
    def of(cls, name: str, task: Task, classes: NDArray[Any]) -> Participant:
        """A task with its windows sorted by their start, if that is known."""
        X, y = np.asarray(task.X, dtype=np.float64), np.asarray(task.y)
        step = None
        if task.start is not None:
            start = np.asarray(task.start, dtype=np.float64)
            order = np.argsort(start, kind="stable")
            X, y, start = X[order], y[order], start[order]
            # Each class may be a recording of its own that starts at zero.
            steps = np.concatenate([np.diff(start[y == one]) for one in task.classes])
            if (steps > 0.0).any():
                step = float(np.median(steps[steps > 0.0]))
        group = task.group if task.group is not None else name
        return cls(name, group, X, np.searchsorted(classes, y), len(classes), step)

    def has_gaps(self) -> bool:
        """Whether any two of the participant's classes differ in a feature."""
        moments = ClassMoments.of(self.X, self.label, n_classes=self.n_classes)
        present = np.flatnonzero(moments.counts).tolist()
        return all(bool(moments.gap(*pair).any()) for pair in combinations(present, 2))


def check_tasks(tasks: Iterable[Task]) -> tuple[NDArray[Any], list[Participant]]:
    """Classes (n_classes,) and tasks that can take part: two classes or more, all different."""
    named: dict[str, Task] = {}
    for place, task in enumerate(TaskSet(tasks)):
        # Splits are drawn by the text of a name, and a string of numpy has another.
        name = str(task.name) if task.name is not None else f"task {place + 1}"
        if name in named:
            raise ValueError(
                f"Two tasks are called {name!r}. Rename one: splits are drawn by name."
            )
        named[name] = task
    several = {name: task for name, task in named.items() if len(task.classes) > 1}
    classes: NDArray[Any] = max(
        (one.classes for one in several.values()), key=len, default=np.empty(0)
    )
    for name, task in several.items():
        if not set(task.classes.tolist()) <= set(classes.tolist()):
            raise ValueError(
                f"All tasks must have the same classes; those of {name!r} are "
                f"{task.classes.tolist()}, others have {classes.tolist()}. Rename the labels."
            )
    everybody = [Participant.of(name, task, classes) for name, task in several.items()]
    participants = [one for one in everybody if one.has_gaps()]
    alike = several.keys() - {one.name for one in participants}
    left_out = [
        *_left_out([name for name in named if name not in several], "windows of one class only"),
        *_left_out([name for name in several if name in alike], "classes that do not differ"),
    ]
    n_groups = len({one.group for one in participants})
    if n_groups < 2:
        few = f"A study needs tasks of at least two groups; got {n_groups}. Add tasks of others."
        raise ValueError(" ".join([few, *left_out]))
    _warn(left_out)
    return classes, participants


def later_sessions(participants: Sequence[Participant]) -> list[Participant]:
    """Those whose group has an earlier task."""
    seen: set[str] = set()
    targets = []
    for one in participants:
        if one.group in seen:
            targets.append(one)
        seen.add(one.group)
    if not targets:
        raise ValueError(
            "A study of next sessions needs people with two sessions or more. Give the sessions of "
            "one person the same group."
        )
    return targets


def check_sizes(
    participants: Sequence[Participant], budgets: Sequence[Budget]
) -> list[Participant]:
    """Those with a window of each class to test on for some budget; others are sources only."""
    for budget in budgets:
        if not any(leaves_test_windows(budget, one.counts) for one in participants):
            raise ValueError(
                f"Budget {budget} leaves no task a window of each class to test on. Take a smaller "
                "budget."
            )
    lacking = [one.name for one in participants if not min(one.counts)]
    left_out = _left_out(lacking, "no windows of some class", "the targets")
    too_large: dict[tuple[Budget, ...], list[str]] = {}
    for one in participants:
        some = tuple(budget for budget in budgets if not leaves_test_windows(budget, one.counts))
        if some and one.name not in lacking:
            too_large.setdefault(some, []).append(one.name)
    for some, names in too_large.items():
        of_what = f"budget{'s' * (len(some) > 1)} {', '.join(map(str, some))}"
        left_out += _left_out(names, "no window of each class left to test on", of_what)
    _warn(left_out)
    never = {*lacking, *too_large.get(tuple(budgets), [])}
    return [one for one in participants if one.name not in never]


def _left_out(names: Sequence[str], what: str, of_what: str = "the study") -> list[str]:
    """A sentence that says who is left out for having `what`, if anybody is."""
    if not names:
        return []
    shown = ", ".join(repr(name) for name in names[:10]) + (", ..." if len(names) > 10 else "")
    count, have = (
        ("1 task is", "it has") if len(names) == 1 else (f"{len(names)} tasks are", "they have")
    )
    return [f"{count} left out of {of_what}, since {have} {what}: {shown}."]


def _warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        warnings.warn(sentence, UserWarning, stacklevel=4)


def _balanced_direction(participant: Participant, rng: np.random.Generator) -> Array:
    """Unit direction (d,) of a source as the paper's authors had it: balanced, in raw units."""
    n_each = min(participant.counts)
    kept = []
    for name in (0, 1):
        places = np.flatnonzero(participant.label == name)
        start = rng.integers(places.size - n_each + 1)
        kept.append(places[start : start + n_each])
    rows = np.concatenate(kept)
    discriminant = FisherDiscriminant(shrinkage=None, feature_scale=None)
    return discriminant.fit(participant.X[rows], participant.label[rows]).projection_


class Windows(NamedTuple):
    """Windows of all tasks, one task after the other."""

    X: Array  # (n_windows, n_features)
    label: Places  # (n_windows,), places of classes
    task: Places  # (n_windows,), places of tasks


@dataclass(frozen=True, eq=False)
class Sources:
    """The tasks that a target may learn from; arrays are (n_tasks, ...) of the whole study."""

    classes: NDArray[Any]
    names: NDArray[Any]
    groups: NDArray[Any]
    kept: NDArray[np.bool_]  # those that the target may learn from
    all_classes: NDArray[np.bool_]  # those with windows of every class, which have moments
    moments: TaskMoments
    balanced: Array | None  # directions of two classes as the paper's authors had them
    windows: Windows | None  # where a method needs them
    forecasts: bool  # whether blends are rehearsed
    earlier: NDArray[np.bool_] | None = None  # earlier sessions of the target, if they count

    @classmethod
    def of(
        cls,
        participants: Sequence[Participant],
        classes: NDArray[Any],
        seed: int,
        *,
        keep_windows: bool,
        forecasts: bool,
    ) -> Sources:
        """All participants of a study; its seed chooses the balanced runs."""
        samples = [(one.X, one.label) for one in participants]
        two = len(classes) == 2
        windows = None
        if keep_windows:
            X, label = (np.concatenate(part) for part in zip(*samples, strict=True))
            task = np.arange(len(samples)).repeat([len(one.label) for one in participants])
            windows = Windows(X, label, task)
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
            windows,
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
    def paper_prior(self) -> TaskPrior:
        """Prior of the paper's authors: pseudo-inverse, raw units, balanced sources."""
        assert self.balanced is not None
        return TaskPrior.from_projections(self.balanced[self.kept])

    @cached_property
    def feature_scale(self) -> Array:
        """Units of the features, as the prior of the sources has them."""
        return self._learnt[1].feature_scale

    def law_for(self, kind: str) -> Law:
        """Law of the sources for the target, with a rehearsal of one kind of blend."""
        if kind not in self._known:
            moments, prior = self._learnt
            if self.forecasts:
                prior = prior.rehearsed(moments, [kind])
            if self.earlier is not None and prior.class_means is not None:
                blocks = self.moments[self.earlier].blocks
                prior = prior.for_moments(
                    [one.whole[place] for one in blocks for place in range(len(one.places))]
                )
            self._known[kind] = prior.law
        return self._known[kind]

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

    def once(self, learn: Callable[[Sources], _Result]) -> _Result:
        """Result of a function of the sources, which is called once."""
        if learn not in self._known:
            self._known[learn] = learn(self)
        return self._known[learn]

    @cached_property
    def _known(self) -> dict[Any, Any]:
        """Laws by kind, and results of `once` by function."""
        return {}

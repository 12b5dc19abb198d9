"""Who takes part in a study, and who is a target; those who are left out are named."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade.fisher import ClassMoments
from crossfade.study._budgets import Budget, leaves_test_windows
from crossfade.tasks import Task, TaskSet

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
    left_out = [
        *_left_out([name for name in named if name not in several], "windows of one class only"),
        *_left_out(
            [one.name for one in everybody if not one.has_gaps()],
            "no feature in which the classes differ",
        ),
    ]
    n_groups = len({one.group for one in participants})
    if n_groups < 2:
        raise ValueError(
            f"A study needs tasks of at least two groups; got {n_groups}. {' '.join(left_out)}"
        )
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

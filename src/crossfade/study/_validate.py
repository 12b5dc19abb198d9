"""What a study accepts: its tasks, methods and budgets. Tasks that are left out are named."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfade.fisher import ClassMoments
from crossfade.study._budgets import Budget, check_budget, leaves_test_windows, shows_all_classes
from crossfade.study._methods import METHODS, Method, by_role, own_method
from crossfade.study._sources import Participant
from crossfade.study._splits import NEXT_SESSION
from crossfade.tasks import Task, TaskSet


def check_tasks(tasks: Iterable[Task]) -> tuple[NDArray[Any], list[Participant]]:
    """Classes (n_classes,) and tasks that can take part.

    Tasks of one class, or with two that are alike, cannot.
    """
    named: dict[str, Task] = {}
    for place, task in enumerate(TaskSet(tasks)):
        # A string of numpy looks otherwise to what draws splits by name.
        name = str(task.name) if task.name is not None else f"task {place + 1}"
        if name in named:
            raise ValueError(
                "Tasks must have different names, since splits are drawn by name; two are called "
                f"{name!r}. Rename one."
            )
        named[name] = task
    both = {name: task for name, task in named.items() if len(task.classes) > 1}
    # The first of those with the most classes.
    fullest = max(both, key=lambda name: len(both[name].classes), default=None)
    classes: NDArray[Any] = np.empty(0) if fullest is None else both[fullest].classes
    participants: list[Participant] = []
    alike: list[Participant] = []
    for name, task in both.items():
        if not set(task.classes.tolist()) <= set(classes.tolist()):
            raise ValueError(
                "All tasks must have the same classes, or, where there are more than two, some of "
                f"them; those of task {name!r} are {task.classes.tolist()}, those of task "
                f"{fullest!r} are {classes.tolist()}. Rename the labels."
            )
        one = _participant(name, task, classes)
        (participants if _differ(one) else alike).append(one)
    left_out = [
        *_left_out([name for name in named if name not in both], "windows of one class only"),
        *_left_out([one.name for one in alike], "no feature in which the classes differ"),
    ]
    groups = {one.group for one in participants}
    if len(groups) < 2:
        found = f"{_count(len(participants), 'task')} of {_count(len(groups), 'group')}"
        raise ValueError(
            " ".join(
                [
                    "A study needs tasks of at least two groups, since sources are of another "
                    f"group than their target; got {found}.",
                    *left_out,
                    "Add tasks, or check their groups.",
                ]
            )
        )
    _warn(left_out)
    return classes, participants


def _participant(name: str, task: Task, classes: NDArray[Any]) -> Participant:
    X, y = np.asarray(task.X, dtype=np.float64), np.asarray(task.y)
    step = None
    if task.start is not None:
        start = np.asarray(task.start, dtype=np.float64)
        order = np.argsort(start, kind="stable")
        X, y, start = X[order], y[order], start[order]
        # Classes may be recordings of their own, all of which start at zero.
        steps = np.concatenate([np.diff(start[y == one]) for one in task.classes])
        if (steps > 0.0).any():
            step = float(np.median(steps[steps > 0.0]))
    label = np.searchsorted(classes, y)
    group = task.group if task.group is not None else name
    return Participant(name, group, X, label, len(classes), step)


def _differ(one: Participant) -> bool:
    """Whether any two classes that a task has differ in a feature."""
    moments = ClassMoments.of(one.X, one.label, n_classes=one.n_classes)
    present = np.flatnonzero(moments.counts).tolist()
    return all(bool(moments.gap(*pair).any()) for pair in combinations(present, 2))


def check_methods(methods: object, n_classes: int = 2) -> dict[str, Method]:
    """Methods by name, in the order given; they must suit the number of classes."""
    known = [one for role in ("new", "rival") for one in by_role(role) if one.many]
    names = list(METHODS) if n_classes == 2 else [one.name for one in known]
    words = ", ".join(repr(name) for name in names)
    if isinstance(methods, Mapping):
        methods = list(methods.items())
    if isinstance(methods, str) or not isinstance(methods, Sequence) or not methods:
        raise ValueError(
            f"methods must be a list with at least one of {words}, or of (name, estimator) pairs, "
            f"or a dict of estimators by name; got {methods!r}."
        )
    found: dict[str, Method] = {}
    for method in methods:
        if isinstance(method, str):
            if method not in names:
                what = f"There is no method {method!r}. There are"
                if method in METHODS:
                    what = (
                        f"Method {method!r} is for two classes, and the tasks have {n_classes}. "
                        "Keep the windows of two, or take"
                    )
                raise ValueError(
                    f"{what} {words}; an estimator of your own is given as a (name, estimator) "
                    "pair."
                )
            made = METHODS[method]
        elif isinstance(method, Method):
            made = method
        else:
            made = _check_pair(method)
        if made.name in found:
            raise ValueError(f"Method {made.name!r} is given twice. Name each once.")
        found[made.name] = made
    return found


def _check_pair(method: object) -> Method:
    if not isinstance(method, tuple) or len(method) != 2 or not isinstance(method[0], str):
        raise ValueError(f"A method is a name or a (name, estimator) pair; got {method!r}.")
    name, estimator = method
    if isinstance(estimator, str):
        raise ValueError(
            f"Method {name!r} is given as {estimator!r}, a name. The study's own methods have "
            "theirs already: pass a list, such as methods=['posterior', ('mine', estimator)]."
        )
    if name in METHODS:
        raise ValueError(f"{name!r} is one of the study's own methods. Name your estimator anew.")
    if isinstance(estimator, type) or not all(
        hasattr(estimator, needed) for needed in ("fit", "predict", "get_params")
    ):
        raise ValueError(
            f"Method {name!r} must be an estimator of scikit-learn's kind, with fit and predict; "
            f"got {estimator!r}."
        )
    return own_method(name, estimator)


def check_budgets(budgets: Sequence[Budget], n_classes: int = 2) -> tuple[Budget, ...]:
    """Budgets in their plainest form: proportions as floats below one, counts as ints."""
    several = list(budgets) if np.ndim(np.asarray(budgets, dtype=object)) else [budgets]
    found = [check_budget(budget, n_classes) for budget in several]
    if not found or len(set(found)) < len(found):
        raise ValueError(f"budgets must be different numbers, at least one; got {budgets!r}.")
    return tuple(found)


def _enough(method: Method, budget: Budget) -> bool:
    """Whether a budget may give a method the windows that it needs."""
    if isinstance(budget, tuple):
        return min(budget) >= method.fewest
    return budget >= method.fewest or 0.0 < budget < 1.0


def check_zero(methods: Mapping[str, Method], budgets: Sequence[Budget]) -> None:
    """Refuse a study without a row: some method must be able to predict at some budget."""
    if any(one.zero or _enough(one, budget) for one in methods.values() for budget in budgets):
        return
    if any(map(shows_all_classes, budgets)):
        needed = min(one.fewest for one in methods.values())
        raise ValueError(
            f"The methods of the study need {needed} labelled windows of each class or more; got "
            f"budgets {list(budgets)}. Add a larger budget."
        )
    able = [repr(name) for name, one in METHODS.items() if one.zero]
    raise ValueError(
        "No method of the study can predict before each class has a labelled window, and no budget "
        f"gives one of each; got budgets {list(budgets)}. Add a budget, or one of the methods "
        f"{', '.join(able)}."
    )


def check_sessions(participants: Sequence[Participant], n_classes: int) -> list[Participant]:
    """Targets of a study of next sessions: those whose person was there before."""
    if n_classes > 2:
        raise ValueError(
            f"A study of next sessions ({NEXT_SESSION}) is for two classes, and the tasks have "
            f"{n_classes}. Keep the windows of two."
        )
    seen: set[str] = set()
    targets = []
    for one in participants:
        if one.group in seen:
            targets.append(one)
        seen.add(one.group)
    if not targets:
        raise ValueError(
            f"A study of next sessions ({NEXT_SESSION}) needs people with two sessions or more; "
            f"all {len(participants)} tasks are of different groups. Give the sessions of one "
            "person the same group."
        )
    return targets


def check_sizes(
    participants: Sequence[Participant], budgets: Sequence[Budget]
) -> list[Participant]:
    """Targets: those that have a window of each class left to test on, for at least one budget.

    The others are sources all the same.
    """
    too_large = {
        one.name: [budget for budget in budgets if not leaves_test_windows(budget, one.counts)]
        for one in participants
    }
    for budget in budgets:
        if all(budget in some for some in too_large.values()):
            largest = max(participants, key=lambda one: min(one.counts))
            most = f"{min(largest.counts)} of its smallest class"
            if isinstance(budget, tuple):
                most = f"{' and '.join(map(str, largest.counts))} of the classes"
            raise ValueError(
                f"Budget {budget} leaves no task a window of each class to test on; the largest "
                f"has {most}. Take a smaller budget."
            )
    lacking = [one.name for one in participants if not min(one.counts)]
    left_out = _left_out(lacking, "no windows of some class", "the targets")
    for some in dict.fromkeys(map(tuple, too_large.values())):
        if some:
            names = [
                name
                for name, budgets_of in too_large.items()
                if tuple(budgets_of) == some and name not in lacking
            ]
            of_what = f"budget{'s' * (len(some) > 1)} {', '.join(map(str, some))}"
            left_out += _left_out(names, "no window of each class left to test on", of_what)
    _warn(left_out)
    return [one for one in participants if len(too_large[one.name]) < len(budgets)]


def _left_out(names: Sequence[str], what: str, of_what: str = "the study") -> list[str]:
    """A sentence that says who is left out for having `what`, if anybody is."""
    if not names:
        return []
    shown = ", ".join(repr(name) for name in names[:10]) + (", ..." if len(names) > 10 else "")
    are, have = ("is", "it has") if len(names) == 1 else ("are", "they have")
    count = _count(len(names), "task")
    return [f"{count} {are} left out of {of_what}, since {have} {what}: {shown}."]


def _warn(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        warnings.warn(sentence, UserWarning, stacklevel=4)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"

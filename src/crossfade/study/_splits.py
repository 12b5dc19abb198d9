"""Budgets and splits: how many windows of each class a person labels, and which ones.

Rows, tables and files hold a budget as one number, so that it can be sorted and grouped: 0 for no
label, a proportion below one, a whole number of windows of each class. Unequal numbers are their
mean, rounded up, with the numbers themselves as decimals, each with as many digits as the last
decimal says: (24, 2) is 13.24022, which stands after 13 and before 14.

A split depends on the seed, the name of its task, the budget and its own number, and on nothing
else, so that methods, studies and cross-validation by scikit-learn share the same ones.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.model_selection._split import GroupsConsumerMixin
from sklearn.utils import indexable

from crossfade._typing import Places
from crossfade._validate import (
    as_labels,
    check_choice,
    check_integer,
    classes_of,
    refuse_nameless,
)

Rng = np.random.Generator

#: Nothing (0), a proportion (a float), windows of each class (an int), or of one after the other.
Budget = float | tuple[int, ...]

#: Decimal digits that a float holds.
_DIGITS = 15
#: Ways to choose the labelled windows of each class.
KINDS = ("consecutive", "chronological", "random")
#: A run, too, in a session of somebody who has been there before.
NEXT_SESSION = "next-session"
#: More splits than any real study has.
MOST_SPLITS = 1_000_000


def check_budget(budget: object, n_classes: int | None = None) -> Budget:
    """A budget in its plainest form: 0.0 is 0, and (2, 2) is 2."""
    if isinstance(budget, (tuple, list)) and len(budget) > 1 and all(map(_is_count, budget)):
        counts = tuple(int(one) for one in budget)
        if n_classes not in (None, len(counts)):
            raise ValueError(
                f"Budget {counts!r} must have one number for each of {n_classes} classes."
            )
        if len(_text_of(counts)) > _DIGITS + 1:
            raise ValueError(f"Budget {counts!r} has too many digits. Take fewer windows.")
        return counts if len(set(counts)) > 1 else counts[0]
    if _is_count(budget):
        return int(budget)  # type: ignore[call-overload]
    if isinstance(budget, (float, np.floating)) and 0.0 <= budget < 1.0:
        return float(budget) or 0
    raise ValueError(
        "A budget is 0, a proportion such as 0.1, a whole number of windows of each class such as "
        f"4, or one for each class such as (24, 2); got {budget!r}."
    )


def _is_count(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= 0


def windows_of_each_class(budget: Budget, counts: Sequence[int]) -> tuple[int, ...]:
    """Labelled windows of each class, of `counts`; proportions of the smallest are rounded up."""
    if isinstance(budget, tuple):
        return budget
    if not isinstance(budget, int):
        # 0.07 times 100 is above 7 by rounding only.
        budget = math.ceil(budget * min(counts) - 1e-9)
    return (budget,) * len(counts)


def leaves_test_windows(budget: Budget, counts: Sequence[int]) -> bool:
    """Whether a window of each class is left to test on."""
    n_each = windows_of_each_class(budget, counts)
    return all(n < count for n, count in zip(n_each, counts, strict=True))


def number_of(budget: Budget) -> float:
    """The number that stands for a budget in rows, tables and files."""
    return float(_text_of(budget) if isinstance(budget, tuple) else budget)


def _text_of(counts: tuple[int, ...]) -> str:
    width = len(str(max(counts)))
    decimals = "".join(f"{one:0{width}}" for one in counts)
    return f"{math.ceil(sum(counts) / len(counts))}.{decimals}{width}"


def budget_of(number: float) -> Budget:
    """The budget that a number in rows, tables and files stands for."""
    number = float(number)
    if number < 1.0:
        return number or 0
    if number.is_integer():
        return int(number)
    decimals = f"{number:.{_DIGITS}g}".partition(".")[2]
    digits, width = decimals[:-1], int(decimals[-1])
    if not width or len(digits) % width or len(digits) < 2 * width:
        raise ValueError(f"{number!r} does not stand for a budget. Take those of a study's rows.")
    return tuple(int(digits[place : place + width]) for place in range(0, len(digits), width))


def is_unequal(number: float) -> bool:
    """Whether a number stands for unequal numbers of windows, which belong to no curve."""
    return isinstance(budget_of(number), tuple)


def budget_text(number: float) -> str:
    """Name of a budget of the rows: "5 %", "2 of each class", "24+2", "no label"."""
    budget = budget_of(number)
    if isinstance(budget, tuple):
        return "+".join(map(str, budget))
    if not budget:
        return "no label"
    return f"{100.0 * budget:.3g} %" if budget < 1.0 else f"{budget} of each class"


class Splits(NamedTuple):
    """Labelled windows and the rest, for many splits of one task; each row is sorted by class."""

    labelled: Places  # (n_splits, n_labelled), places of windows
    test: Places  # (n_splits, n_test)
    label: Places  # (n_labelled,), places of classes, the same for all splits
    truth: Places  # (n_test,)
    consecutive: bool = True  # whether the labelled windows of a class follow each other


def draw_splits(
    label: Places, n_each: int | Sequence[int], n_splits: int, kind: str, rng: Rng
) -> Splits:
    """Choose `n_each` windows of each class; a split does not depend on how many follow it."""
    labelled, test = [], []
    classes = [np.flatnonzero(label == name) for name in range(int(label.max()) + 1)]
    n_labelled = np.broadcast_to(n_each, len(classes)).tolist()
    keys = rng.random((n_splits, label.size if kind == "random" else len(classes)))
    for name, (places, n_own) in enumerate(zip(classes, n_labelled, strict=True)):
        chosen = np.zeros((n_splits, places.size), dtype=bool)
        if kind == "random":
            among = keys[:, places].argsort(1)[:, :n_own]
        else:
            starts = (keys[:, name] * (places.size - n_own + 1)).astype(np.intp)
            if kind == "chronological":
                starts[:] = 0
            among = starts[:, None] + np.arange(n_own)
        np.put_along_axis(chosen, among, True, 1)
        # A stable sort puts the windows that were not chosen first, and keeps the order of time.
        order = places[chosen.argsort(1, kind="stable")]
        test.append(order[:, : places.size - n_own])
        labelled.append(order[:, places.size - n_own :])
    names = np.arange(len(classes))
    return Splits(
        np.concatenate(labelled, 1),
        np.concatenate(test, 1),
        names.repeat(n_labelled),
        names.repeat([part.shape[1] for part in test]),
        kind != "random",
    )


def generator_for(seed: int, *what: object) -> Rng:
    """Generator that depends on the seed and on what it is for; the same on every machine."""
    digest = hashlib.sha256(repr(what).encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "little")])


class CalibrationSplit(GroupsConsumerMixin, BaseCrossValidator):
    """Cross-validator for calibration: all windows of the others, then a few of the target.

    Each group, usually a person, is the target in turn. The training rows are all rows of the other
    groups, followed by a few rows of the target, so that the group of the last row is the target;
    the test rows are the target's other rows. :class:`~crossfade.CalibrationStudy` draws the same
    ones for tasks of the same names and the same `random_state`.

    Parameters
    ----------
    budget : int, float or tuple of int, default=4
        Labelled rows of each class: a whole number; a proportion of the target's smallest class,
        rounded up; or a number for each class in sorted order, such as (24, 2). At least one row,
        since the last training row says who the target is.
    kind : {"consecutive", "chronological", "random"}, default="consecutive"
        Which rows of each class are labelled: a run with a random start; the first, as a real
        session goes; or any. Rows are taken to be in the order of time.
    n_splits : int, default=1
        Splits for each group; "chronological" has one.
    random_state : int or None, default=None
        Seed. None draws other rows with every call of `split`.

    See Also
    --------
    crossfade.CalibrationStudy : Compares methods on many such splits, fast.
    sklearn.model_selection.LeaveOneGroupOut : Has no row of the target in training.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade.study import CalibrationSplit
    >>> y = np.tile([0, 0, 0, 1, 1, 1], 2)
    >>> groups = np.repeat(["ann", "bob"], 6)
    >>> split = CalibrationSplit(budget=1, kind="chronological")
    >>> for train, test in split.split(np.zeros((12, 1)), y, groups):
    ...     print(train, test)
    [ 6  7  8  9 10 11  0  3] [1 2 4 5]
    [0 1 2 3 4 5 6 9] [ 7  8 10 11]
    """

    def __init__(
        self,
        budget: Budget = 4,
        kind: str = "consecutive",
        *,
        n_splits: int = 1,
        random_state: int | None = None,
    ) -> None:
        self.budget = budget
        self.kind = kind
        self.n_splits = n_splits
        self.random_state = random_state

    def split(
        self, X: Any, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[Places, Places]]:
        """Rows to train on and to test on.

        Groups that have too few rows of a class are never the target; a warning names them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of all groups; only their number is used.
        y : array-like of shape (n_samples,)
            Class of each row.
        groups : array-like of shape (n_samples,)
            Group of each row.

        Yields
        ------
        train : ndarray of shape (n_train,)
            Places of all rows of the other groups, then those of the target's labelled rows.
        test : ndarray of shape (n_test,)
            Places of the target's other rows.
        """
        budget, kind, n_splits = self._checked()
        groups, targets, left_out = self._targets(X, y, groups)
        if left_out:
            warnings.warn(
                f"{len(left_out)} groups have too few rows of a class to be the target with budget "
                f"{budget!r}: {', '.join(map(repr, left_out[:10]))}.",
                UserWarning,
                stacklevel=2,
            )
        seed = self.random_state
        if seed is None:
            seed = int(np.random.default_rng().integers(2**63))
        for name, label in targets.items():
            rows, others = np.flatnonzero(groups == name), np.flatnonzero(groups != name)
            n_each = windows_of_each_class(budget, np.bincount(label).tolist())
            rng = generator_for(seed, str(name), budget, "splits")
            splits = draw_splits(label, n_each, n_splits, kind, rng)
            for labelled, test in zip(splits.labelled, splits.test, strict=True):
                yield np.concatenate([others, rows[labelled]]), rows[test]

    def get_n_splits(
        self, X: Any = None, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> int:
        """Number of splits of all groups together.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            Not used.
        y : array-like of shape (n_samples,)
            Class of each row.
        groups : array-like of shape (n_samples,)
            Group of each row.

        Returns
        -------
        int
            Groups that can be the target, times the splits of each.
        """
        _, _, n_splits = self._checked()
        _, targets, _ = self._targets(X, y, groups)
        return len(targets) * n_splits

    def _checked(self) -> tuple[Budget, str, int]:
        """Budget, kind and number of splits of each group."""
        kind = check_choice("kind", self.kind, KINDS)
        n_splits = check_integer("n_splits", self.n_splits, 1, MOST_SPLITS)
        if self.random_state is not None:
            check_integer("random_state", self.random_state, 0)
        budget = check_budget(self.budget)
        if budget == 0:
            raise ValueError(
                "CalibrationSplit needs a labelled row of the target: the group of the last "
                "training row is the target. Take a budget of 1 or more."
            )
        return budget, kind, 1 if kind == "chronological" else n_splits

    def _targets(
        self, X: Any, y: ArrayLike | None, groups: ArrayLike | None
    ) -> tuple[NDArray[Any], dict[Any, Places], list[Any]]:
        """Groups of the rows, places of the classes of each group's rows, and who has too few."""
        if y is None or groups is None:
            raise ValueError(
                "CalibrationSplit needs y and groups. Pass groups=... to the function that "
                'cross-validates, or params={"groups": ...} where metadata routing is on.'
            )
        indexable(X, y, groups)
        refuse_nameless("groups", groups)
        labels, groups = as_labels(y), as_labels(groups)
        classes, names = classes_of(labels), classes_of(groups)
        if labels.ndim != 1 or groups.ndim != 1 or names.size < 2 or classes.size < 2:
            raise ValueError(
                "CalibrationSplit needs one label and one group for each row, of two classes and "
                f"two groups or more; got {classes.size} classes and {names.size} groups."
            )
        budget = check_budget(self.budget, classes.size)
        label = np.searchsorted(classes, labels)
        own = {name: label[groups == name] for name in names.tolist()}
        counts = {name: np.bincount(one, minlength=classes.size) for name, one in own.items()}
        able = [name for name in own if leaves_test_windows(budget, counts[name].tolist())]
        if not able:
            raise ValueError(
                f"Budget {self.budget!r} leaves no group a row of each class to test on. Take a "
                "smaller budget."
            )
        left_out = [name for name in own if name not in set(able)]
        return groups, {name: own[name] for name in able}, left_out

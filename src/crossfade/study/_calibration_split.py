"""The splits of a study as a cross-validator of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.model_selection._split import GroupsConsumerMixin
from sklearn.utils import indexable

from crossfade._validate import (
    as_labels,
    check_choice,
    check_integer,
    classes_of,
    refuse_nameless,
)
from crossfade.study._budgets import (
    Budget,
    check_budget,
    leaves_test_windows,
    windows_of_each_class,
)
from crossfade.study._splits import KINDS, MOST_SPLITS, Places, draw_splits, generator_for


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

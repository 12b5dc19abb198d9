"""Sessions of one person: how far apart they are, and what earlier ones say of the next.

The class means of a session are those of the person and an effect of the session. A prior keeps
the sum over people of

.. math:: \\sum_s (m_s - \\bar m)(m_s - \\bar m)^T

over their sessions, which has one degree of freedom less than there are sessions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossfade._typing import Array
from crossfade._validate import check_covariance, check_finite, check_number, check_spectrum

#: Largest number in the sums of a file, as of class means.
_LARGEST = 1e40


@dataclass(frozen=True, eq=False)
class Sessions:
    """Sum of the outer products of what sessions of one person differ by.

    Attributes
    ----------
    n_differences : float
        Its degrees of freedom: sessions of people with two or more, less these people.
    outer_sum : ndarray of shape (n_classes * n_features, n_classes * n_features)
        The sum, of class means one after the other, in scaled units.
    """

    n_differences: float
    outer_sum: Array

    @classmethod
    def of(cls, groups: Sequence[str | None], means: Array) -> Sessions | None:
        """Sum over tasks (n_tasks, K d); None where everybody has one session."""
        known = [str(group) for group in groups if group is not None]
        rows = means[[group is not None for group in groups]]
        _, person, count = np.unique(known, return_inverse=True, return_counts=True)
        if not (count > 1).any():
            return None
        middle = np.zeros((count.size, means.shape[1]))
        np.add.at(middle, person, rows)
        apart = rows - (middle / count[:, None])[person]
        return cls(float((count - 1).sum()), apart.T @ apart)

    @classmethod
    def of_file(cls, values: Any, n_features: int, n_tasks: int) -> Sessions:
        """Sum from the fields of a file, every number of it checked."""
        if not isinstance(values, dict):
            raise TypeError(f"sessions must be an object; got {type(values).__name__}.")
        n_differences = check_number("n_differences", values["n_differences"], 1.0, n_tasks - 1.0)
        return cls(n_differences, _checked("sessions.outer_sum", values["outer_sum"], n_features))

    def fields(self) -> dict[str, Any]:
        """What a file holds of the sum."""
        return dict(vars(self))

    def __add__(self, other: Sessions) -> Sessions:
        """Sum over the people of both."""
        return Sessions(self.n_differences + other.n_differences, self.outer_sum + other.outer_sum)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same numbers, to the bit."""
        return isinstance(other, Sessions) and _same(self, other)

    def reversed(self) -> Sessions:
        """The same with two classes the other way round."""
        order = _turned_about(len(self.outer_sum))
        return Sessions(self.n_differences, self.outer_sum[order[:, None], order])


@dataclass(frozen=True, eq=False)
class Person:
    """What earlier sessions of one person say of the next, in scaled units.

    Attributes
    ----------
    mean : ndarray of shape (n_classes * n_features,)
        Expected class means of the next session, one after the other.
    covariance : ndarray of shape (n_classes * n_features, n_classes * n_features)
        How far the session may be from these.
    scatter : ndarray of shape (n_features, n_features)
        Sum of squares of the earlier windows within their classes.
    dof : float
        Its degrees of freedom.
    n_sessions : int
        How many sessions there were.
    guessed : bool
        Whether nobody in the crowd had two sessions, so that what a session changes is a guess.
    """

    mean: Array
    covariance: Array
    scatter: Array
    dof: float
    n_sessions: int
    guessed: bool

    @classmethod
    def of_file(cls, values: Any, n_features: int, size: int) -> Person:
        """Law from the fields of a file, every number of it checked."""
        if not isinstance(values, dict):
            raise TypeError(f"person must be an object; got {type(values).__name__}.")
        mean = check_finite("person.mean", values["mean"], 1, size, largest=_LARGEST)
        if not isinstance(values["guessed"], bool):
            raise TypeError(f"guessed must be true or false; got {values['guessed']!r}.")
        return cls(
            mean,
            _checked("person.covariance", values["covariance"], n_features, size),
            _checked("person.scatter", values["scatter"], n_features, n_features),
            check_number("person.dof", values["dof"], 0.0, 1e15),
            int(check_number("person.n_sessions", values["n_sessions"], 1.0, 1e9)),
            values["guessed"],
        )

    def fields(self) -> dict[str, Any]:
        """What a file holds of the law."""
        return dict(vars(self))

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same numbers, to the bit."""
        return isinstance(other, Person) and _same(self, other)

    def reversed(self) -> Person:
        """The same with two classes the other way round."""
        order = _turned_about(self.mean.size)
        changed = {
            "mean": self.mean[order],
            "covariance": self.covariance[order[:, None], order],
        }
        return Person(**vars(self) | changed)


def _checked(name: str, values: Any, n_features: int, size: int | None = None) -> Array:
    """A covariance matrix of a file; without a size that of two classes or more."""
    matrix = check_finite(name, values, 2, largest=_LARGEST)
    wanted = len(matrix) if size is None else size
    if len(matrix) != wanted or wanted % n_features:
        raise ValueError(f"{name} must fit {n_features} features; got shape {matrix.shape}.")
    check_covariance(name, matrix, wanted)
    check_spectrum(name, np.linalg.eigvalsh(matrix))
    return matrix


def _same(one: Any, other: Any) -> bool:
    return all(np.array_equal(value, vars(other)[name]) for name, value in vars(one).items())


def _turned_about(size: int) -> Any:
    """Places of the means of two classes, the second first."""
    return np.arange(size).reshape(2, -1)[::-1].ravel()

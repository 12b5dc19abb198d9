"""Sums of a prior in which a person counts once, for a release.

A release protects a person with all their sessions. For it every session of a group of n counts
1/n: a person adds the mean a of n unit vectors w and the mean A of their outer products ww'. These
lie in the convex hull of the pairs (w, ww'), and no two points of a hull are further apart than two
points that span it: replacing a person moves the sums by no more than replacing a session does
(equation 29).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossfade._typing import Array
from crossfade._validate import check_covariance, check_finite, check_integer, check_spectrum
from crossfade.tasks import Task


@dataclass(frozen=True, eq=False)
class People:
    """Sums of a prior in which a person counts once, whatever the number of their sessions.

    Attributes
    ----------
    n_people : int
        Number of people.
    direction_sum : ndarray of shape (n_features,)
        Sum over people of the mean direction of their sessions.
    outer_sum : ndarray of shape (n_features, n_features) or None
        Sum over people of the mean outer product; None for an isotropic prior.
    """

    n_people: int
    direction_sum: Array
    outer_sum: Array | None

    @classmethod
    def of(cls, groups: Sequence[str | None], directions: Array) -> People | None:
        """Sums of directions (n_tasks, n_features); None where everybody has one session."""
        share = shares_of(groups)
        if (share == 1.0).all():
            return None
        n_people = round(float(share.sum()))
        return cls(n_people, share @ directions, (directions.T * share) @ directions)

    @classmethod
    def of_file(cls, values: Any, n_features: int, n_tasks: int) -> People:
        """Sums from the fields of a file, every number of them checked."""
        if not isinstance(values, dict):
            raise TypeError(f"people must be an object; got {type(values).__name__}.")
        n_people = check_integer("n_people", values["n_people"], 1)
        total = check_finite("people.direction_sum", values["direction_sum"], 1, n_features)
        if n_people > n_tasks or np.linalg.norm(total) > n_people * (1.0 + 1e-5):
            raise ValueError(
                f"people must be those of {n_tasks} tasks; {n_people} have other sums."
            )
        outer = values.get("outer_sum")
        if outer is not None:
            outer = check_covariance("people.outer_sum", outer, n_features)
            check_spectrum("people.outer_sum", np.linalg.eigvalsh(outer))
            if abs(np.trace(outer) - n_people) > 1e-5 * n_people:
                raise ValueError(f"people.outer_sum is not that of {n_people} people.")
        return cls(n_people, total, outer)

    def fields(self) -> dict[str, Any]:
        """What a file holds of the sums."""
        return dict(vars(self))

    def __add__(self, other: People) -> People:
        """Sums over the people of both."""
        outer = None
        if self.outer_sum is not None and other.outer_sum is not None:
            outer = self.outer_sum + other.outer_sum
        total = self.direction_sum + other.direction_sum
        return People(self.n_people + other.n_people, total, outer)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same numbers, to the bit."""
        return isinstance(other, People) and all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)
        )


def shares_of(groups: Sequence[str | None]) -> Array:
    """Part (n_tasks,) of a person that each task is: one over the sessions of its group."""
    # Who has no group is a person of their own.
    own: list[Hashable] = [(n,) if group is None else str(group) for n, group in enumerate(groups)]
    counts = Counter(own)
    return 1.0 / np.array([counts[one] for one in own])


def refuse_twins(tasks: Sequence[Task]) -> None:
    """Refuse tasks that hold the same windows, in whatever order."""
    seen: dict[bytes, Task] = {}
    for task in tasks:
        rows = np.ascontiguousarray(task.X, np.float64) + 0.0
        # Rows as strings of bytes are sorted quickly.
        windows = np.sort(rows.view(f"S{rows.shape[1] * rows.itemsize}"), axis=0).tobytes()
        if windows in seen:
            raise ValueError(
                f"{task!r} and {seen[windows]!r} hold the same windows. Leave one of them out."
            )
        seen[windows] = task

"""Sums over people of their unit directions, and what else a prior of two classes knows of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crossfade._typing import Array
from crossfade._validate import check_integer
from crossfade.fisher import N_LAGS
from crossfade.prior._crowd import Crowd
from crossfade.prior._summary import sum_of_summary
from crossfade.prior._sums import Sums, summed

#: More people than any real study; sums of so many are exact.
_MOST_TASKS = 10**12


@dataclass(frozen=True, eq=False)
class Directions(Sums, name="directions"):
    """Sums over tasks of their unit directions, in scaled units.

    A release protects a person with all their sessions. For it every session of a group of n counts
    1/n: a person adds the mean a of n unit vectors w and the mean A of their outer products ww'.
    These lie in the convex hull of the pairs (w, ww'), and no two points of a hull are further
    apart than two points that span it: replacing a person moves the sums by no more than replacing
    a session does (equation 29).
    """

    n_tasks: float = summed(of="tasks")
    direction: Array = summed("d", of="unit directions")
    n_people: float = summed(of="people")
    person_direction: Array = summed("d", of="mean directions of the sessions of a person")
    outer: Array | None = summed(
        "d", "d", of="outer products of directions", default=None, semidefinite=True
    )
    person_outer: Array | None = summed(
        "d", "d", of="mean outer products of a person", default=None, semidefinite=True
    )
    within: Array | None = summed(
        "d", "d", of="average covariance within the classes", default=None, semidefinite=True
    )
    half_gap: Array | None = summed("d", of="half gaps of the class means", default=None)
    autocorrelation: Array | None = summed(
        N_LAGS, of="correlation of windows of a class 1, 2, ... rows apart", default=None
    )
    noise: float | None = summed(of="squared errors of directions", default=None)

    @classmethod
    def of(
        cls, directions: Array, groups: Sequence[str | None] | None = None, *, outer: bool = True
    ) -> Directions:
        """Sums of unit rows (n_tasks, d); tasks of one of the groups are of one person."""
        n_tasks = len(directions)
        share = np.ones(n_tasks) if groups is None else shares_of(groups)
        squares = directions.T @ directions if outer else None
        alone = bool((share == 1.0).all())
        return cls(
            float(n_tasks),
            directions.sum(0),
            float(round(share.sum())),
            directions.sum(0) if alone else share @ directions,
            squares,
            squares if alone or not outer else (directions.T * share) @ directions,
        )

    @classmethod
    def of_summary(cls, mu: ArrayLike, psi: ArrayLike, n_tasks: int, form: str) -> Directions:
        """Sum that so many directions would have by their mean direction and its covariance."""
        n = float(check_integer("n_tasks", n_tasks, 1, _MOST_TASKS))
        total = sum_of_summary(mu, psi, round(n), form)
        return cls(n, total, n, total)

    def check(self) -> None:
        """Refuse sums that unit directions cannot have."""
        slack = 1e-5 * self.n_tasks
        lengths = [(self.direction, self.n_tasks), (self.person_direction, self.n_people)]
        traces = [(self.outer, self.n_tasks), (self.person_outer, self.n_people)]
        if (
            not 1.0 <= self.n_people <= self.n_tasks
            or self.n_tasks % 1.0
            or any(np.linalg.norm(one) > count + slack for one, count in lengths)
            or any(one is not None and abs(np.trace(one) - n) > slack for one, n in traces)
        ):
            raise ValueError("directions are no sums of unit vectors.")

    def average(self, name: str) -> Array | None:
        """One of the sums, divided by the number of tasks."""
        whole = getattr(self, name)
        return None if whole is None else whole / self.n_tasks

    def crowd(self, release_noise: float = 0.0) -> Crowd:
        """Law of the directions of new people; `release_noise` is that of each sum."""
        noise = self.average("noise")
        return Crowd.from_sums(
            self.n_tasks,
            self.direction,
            self.outer,
            release_noise=release_noise / self.n_tasks,
            direction_noise=None if noise is None else float(noise),
        )


def shares_of(groups: Sequence[str | None]) -> Array:
    """Part (n_tasks,) of a person that each task is: one over the sessions of its group."""
    # A task without a group is a person of its own.
    own: list[Hashable] = [(n,) if group is None else str(group) for n, group in enumerate(groups)]
    counts = Counter(own)
    return 1.0 / np.array([counts[one] for one in own])

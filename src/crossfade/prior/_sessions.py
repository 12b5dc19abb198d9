"""Sessions of one person: how far apart they are, and what earlier ones say of the next (65).

.. math:: \\theta_s = \\theta + e_s, \\quad \\theta \\sim N(t, B - B_w), \\quad e_s \\sim N(0, B_w)

The next session has the posterior of theta after the earlier ones, widened by B_w.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from crossfade._typing import Array
from crossfade.fisher import ClassMoments
from crossfade.prior._class_means import Population, design_of, outer_in_theta, shrunk_blocks
from crossfade.prior._parts import Arrays, Sums, summed

#: Assumed part of the crowd's covariance that a session changes, if no person had two sessions.
GUESS = 0.1
#: Least part of it in any direction: no two sessions are the same.
_LEAST = 0.01


@dataclass(frozen=True, eq=False)
class Sessions(Sums, name="sessions"):
    """Sum over people of the outer products of what their sessions differ by from their mean."""

    zero_if_missing: ClassVar[bool] = True

    n_differences: float = summed(of="sessions of people with two or more, less these people")
    outer_sum: Array = summed("Kd", "Kd", of="outer products of differences", semidefinite=True)

    @classmethod
    def of(cls, groups: Sequence[str | None], means: Array) -> Sessions:
        """Sum over tasks (n_tasks, K d); those of a group are of one person."""
        known = [str(group) for group in groups if group is not None]
        rows = means[[group is not None for group in groups]]
        _, person, count = np.unique(known, return_inverse=True, return_counts=True)
        middle = np.zeros((count.size, means.shape[1]))
        np.add.at(middle, person, rows)
        apart = rows - (middle / count[:, None])[person]
        return cls(float((count - 1).sum()), apart.T @ apart)


@dataclass(frozen=True, eq=False)
class Person(Arrays):
    """Law of the class means of a person's next session, in scaled units."""

    mean: Array = summed("Kd", of="class means")
    covariance: Array = summed("Kd", "Kd", of="covariance of these", semidefinite=True)
    scatter: Array = summed("d", "d", of="squares within the classes", semidefinite=True)
    dof: float = summed(of="degrees of freedom")
    n_sessions: float = summed(of="sessions")
    is_guess: float = summed(of="guesses")

    @classmethod
    def of(
        cls,
        population: Population,
        sessions: Sessions | None,
        earlier: Sequence[ClassMoments],
        scale: Array,
    ) -> Person:
        """Law of the next session by the moments of the person's earlier ones."""
        n_classes, p = population.mean.shape
        size = n_classes * p
        design = design_of(n_classes)
        whole = population.covariance.reshape(size, size)
        effect = _of_session(population, sessions)
        mean, left = population.mean.reshape(size), whole - effect
        scatter, dof = np.zeros((scale.size, scale.size)), 0.0
        for one in earlier:
            seen = np.flatnonzero(one.counts)
            rows = np.kron(design[seen], np.eye(p))
            found = (one.means[seen] / scale @ population.whiten).ravel()
            noise = np.repeat(population.mean_noise(one.counts[seen]), p)
            inner = rows @ (left + effect) @ rows.T + np.diag(noise)
            gain = np.linalg.solve(inner, rows @ left).T
            mean = mean + gain @ (found - rows @ mean)
            left = left - gain @ rows @ left
            scatter += one.dense_scatter() / (scale[:, None] * scale)
            dof += float(one.counts.sum()) - seen.size
        back: Any = np.kron(design, population.unwhiten)
        covariance = back @ (left + effect) @ back.T
        return cls(
            back @ mean,
            (covariance + covariance.T) / 2.0,
            scatter,
            dof,
            float(len(earlier)),
            float(sessions is None),
        )


def _of_session(population: Population, sessions: Sessions | None) -> Array:
    """Covariance B_w (K p, K p) of the effect of a session, nowhere more than the crowd's B."""
    n_classes, p = population.mean.shape
    size = n_classes * p
    whole = population.covariance.reshape(size, size)
    if sessions is None:
        return GUESS * whole
    mean = outer_in_theta(sessions.outer_sum / sessions.n_differences, population.whiten)
    shrunk = shrunk_blocks(mean, sessions.n_differences + 1.0, np.ones(p, bool))
    # In units in which B is the identity, eigenvalues are parts of it.
    values, basis = np.linalg.eigh(whole)
    values = np.maximum(values, 1e-10 * values[-1])
    root = basis * np.sqrt(values)
    inverse = basis / np.sqrt(values)
    parts, turned = np.linalg.eigh(inverse.T @ shrunk.reshape(size, size) @ inverse)
    root = root @ turned
    return (root * np.clip(parts, _LEAST, 1.0)) @ root.T

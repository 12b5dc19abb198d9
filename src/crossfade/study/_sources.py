"""Windows of all participants in, once; what all but one group know out, for each target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crossfade.fisher._direction import varying_dimension
from crossfade.fisher._discriminant import FisherDiscriminant
from crossfade.fisher._shrinkage import oas
from crossfade.fisher._spectrum import ROUNDING, from_rows
from crossfade.prior._task_directions import autocorrelation, direction_noise, halves
from crossfade.prior._task_prior import TaskPrior
from crossfade.study._splits import generator_for

Array = NDArray[np.float64]


class Participant(NamedTuple):
    """One task of a study, its windows in the order of time.

    Attributes
    ----------
    name, group : str
        What it is called, and with whom it never shares.
    X : ndarray of shape (n_windows, n_features)
        Features.
    label : ndarray of shape (n_windows,)
        0 for the first class of the study, 1 for the second, and so on.
    n_classes : int, default=2
        Classes of the study; of more than two, some may have no windows.
    """

    name: str
    group: str
    X: Array
    label: NDArray[np.intp]
    n_classes: int = 2

    @property
    def counts(self) -> tuple[int, ...]:
        """Windows of each class."""
        return tuple(np.bincount(self.label, minlength=self.n_classes).tolist())


class Moments(NamedTuple):
    """What the directions of tasks in any units follow from.

    Attributes
    ----------
    half_gap : ndarray of shape (..., n_features)
        Half the difference of the class means; zero where rounding alone can have made it.
    within : ndarray of shape (..., n_features, n_features)
        Pooled covariance within the classes.
    size : ndarray of shape (..., n_features)
        Largest absolute value of each feature.
    n_varying : ndarray of shape (...)
        Dimension of the space in which the features vary.
    n_windows : ndarray of shape (...)
        How many windows there are.
    """

    half_gap: Array
    within: Array
    size: Array
    n_varying: NDArray[np.intp]
    n_windows: NDArray[np.intp]

    @classmethod
    def stacked(cls, moments: Sequence[Moments]) -> Moments:
        """Moments of many tasks out of those of each.

        Parameters
        ----------
        moments : sequence of Moments
            Moments of single tasks.

        Returns
        -------
        Moments
            With a first axis for the tasks.
        """
        return cls(*(np.stack(part) for part in zip(*moments, strict=True)))

    def of(self, tasks: NDArray[np.bool_]) -> Moments:
        """Moments of some of the tasks.

        Parameters
        ----------
        tasks : ndarray of shape (n_tasks,)
            Which of them.

        Returns
        -------
        Moments
            Theirs alone.
        """
        half_gap, within, size, n_varying, n_windows = self
        return Moments(
            half_gap[tasks], within[tasks], size[tasks], n_varying[tasks], n_windows[tasks]
        )


def moments_of(X: Array, label: NDArray[np.intp]) -> Moments:
    """Moments of one task.

    Parameters
    ----------
    X : ndarray of shape (n_windows, n_features)
        Windows of both classes.
    label : ndarray of shape (n_windows,)
        0 for the first class, 1 for the second.

    Returns
    -------
    Moments
        Its moments, in raw units.
    """
    means = np.stack([X[label == name].mean(0) for name in (0, 1)])
    size = np.abs(X).max(0)
    gap = means[1] - means[0]
    rows = X - means[label]
    freedom = max(label.size - 2, 1)
    within = rows.T @ rows / freedom
    half_gap = np.where(np.abs(gap) > 16.0 * ROUNDING * size, gap, 0.0) / 2.0
    deviation = np.sqrt(np.diagonal(within))
    unit = np.where(deviation > 1e-12 * size, deviation, 1.0)
    varying = varying_dimension(from_rows(rows / unit), half_gap / unit, freedom)
    return Moments(half_gap, within, size, varying, np.array(label.size))


def _half_moments(participant: Participant, part: int) -> Moments:
    """Moments of the earlier or the later half of each class; without a gap if it is too short."""
    X, label = participant.X, participant.label
    half = halves(label)
    if half is None:
        whole = moments_of(X, label)
        return whole._replace(half_gap=np.zeros_like(whole.half_gap))
    return moments_of(X[half == part], label[half == part])


def balanced_direction(participant: Participant, rng: np.random.Generator) -> Array:
    """Direction of a source as the paper's authors had it.

    The larger class is cut to a random run of consecutive windows; the pseudo-inverse of the plain
    covariance, in raw units.

    Parameters
    ----------
    participant : Participant
        Windows of both classes.
    rng : Generator
        Chooses where the run starts.

    Returns
    -------
    ndarray of shape (n_features,)
        Unit direction.
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


@dataclass(frozen=True, eq=False)
class Sources:
    """What is known of all participants, computed once for a study.

    Attributes
    ----------
    groups : ndarray of shape (n_tasks,)
        Group of each.
    classes : ndarray of shape (2,)
        The two labels.
    whole, early, late : Moments
        Moments of each, and those of its earlier and its later half.
    autocorrelation : ndarray of shape (n_tasks, n_lags)
        How far neighbouring windows are alike.
    balanced : ndarray of shape (n_tasks, n_features)
        Directions as the paper's authors had them.
    X, label : ndarray
        Windows of all, one after the other, where a method pools them; else empty.
    """

    groups: NDArray[Any]
    classes: NDArray[Any]
    whole: Moments
    early: Moments
    late: Moments
    autocorrelation: Array
    balanced: Array
    X: Array
    label: NDArray[np.intp]

    @classmethod
    def of(
        cls,
        participants: Sequence[Participant],
        classes: NDArray[Any],
        seed: int,
        *,
        keep_windows: bool,
    ) -> Sources:
        """Sum up all participants.

        Parameters
        ----------
        participants : sequence of Participant
            All of a study.
        classes : ndarray of shape (2,)
            Their labels.
        seed : int
            Seed of the study, for the balanced runs.
        keep_windows : bool
            Whether a method pools the windows.

        Returns
        -------
        Sources
            What is known of them.
        """
        pooled = participants if keep_windows else participants[:0]
        no_windows = np.empty((0, participants[0].X.shape[1]))
        return cls(
            groups=np.array([one.group for one in participants]),
            classes=classes,
            whole=Moments.stacked([moments_of(one.X, one.label) for one in participants]),
            early=Moments.stacked([_half_moments(one, 0) for one in participants]),
            late=Moments.stacked([_half_moments(one, 1) for one in participants]),
            autocorrelation=np.stack([autocorrelation(one.X, one.label) for one in participants]),
            balanced=np.stack(
                [
                    balanced_direction(one, generator_for(seed, one.name, "balanced run"))
                    for one in participants
                ]
            ),
            X=np.concatenate([no_windows, *(one.X for one in pooled)]),
            label=np.concatenate([np.empty(0, np.intp), *(one.label for one in pooled)]),
        )

    def without(self, group: str) -> Crowd:
        """All participants but those of one group.

        Parameters
        ----------
        group : str
            The target's group.

        Returns
        -------
        Crowd
            The target's sources.
        """
        return Crowd(self, self.groups != group)


@dataclass(frozen=True, eq=False)
class Crowd:
    """The sources of one target.

    Attributes
    ----------
    sources : Sources
        All participants of the study.
    kept : ndarray of shape (n_tasks,)
        Which of them may be used.
    """

    sources: Sources
    kept: NDArray[np.bool_]

    @cached_property
    def paper_prior(self) -> TaskPrior:
        """Prior of the paper's authors: pseudo-inverse, raw units, balanced sources."""
        return TaskPrior.from_projections(
            self.sources.balanced[self.kept], classes=self.sources.classes.tolist()
        )

    @cached_property
    def prior(self) -> TaskPrior:
        """What ``TaskPrior.from_tasks`` makes of the sources, from their moments."""
        whole = self.sources.whole.of(self.kept)
        # Tasks of one window a class have no covariance to give.
        able = whole.n_windows > 2
        used = able if able.any() else np.ones_like(able)
        deviation = np.sqrt(np.diagonal(whole.within, axis1=-2, axis2=-1))
        size = np.median(whole.size[used], axis=0)
        scale = np.median(deviation[used], axis=0)
        scale = np.where(scale > 1e-12 * size, scale, 1.0)
        directions = _shrunk_directions(whole, scale)
        halves_of = (half.of(self.kept) for half in (self.sources.early, self.sources.late))
        within = whole.within[able] / (scale[:, None] * scale)
        return TaskPrior(
            n_tasks=len(directions),
            direction_sum=directions.sum(0),
            outer_sum=directions.T @ directions,
            feature_scale=scale,
            classes=tuple(self.sources.classes.tolist()),
            within_covariance=within.mean(0) if able.any() else None,
            half_gap=(whole.half_gap / scale).mean(0),
            scale_learnt=True,
            directions=directions,
            autocorrelation=self.sources.autocorrelation[self.kept].mean(0),
            direction_noise=direction_noise(
                *(_shrunk_directions(half, scale) for half in halves_of)
            ),
        )

    def pooled_rule(self) -> LinearDiscriminantAnalysis:
        """One discriminant of all the sources' windows together, the classes equally likely."""
        kept = np.repeat(self.kept, self.sources.whole.n_windows)
        rule = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=[0.5, 0.5])
        return rule.fit(self.sources.X[kept], self.sources.label[kept])


def _shrunk_directions(moments: Moments, scale: Array) -> Array:
    """Unit directions of ``FisherDiscriminant()`` in given units; zero where there is no gap."""
    deviation = np.sqrt(np.diagonal(moments.within, axis1=-2, axis2=-1))
    varies = deviation > 1e-12 * moments.size
    within = moments.within / (scale[:, None] * scale)
    within = within * (varies[:, :, None] & varies[:, None, :])
    trace = np.trace(within, axis1=-2, axis2=-1)
    freedom = np.maximum(moments.n_windows - 2.0, 1.0)
    weight = oas(trace, (within**2).sum((-2, -1)), moments.n_varying, freedom)
    level = weight * trace / moments.n_varying
    learnt = (moments.n_windows > 2) & (trace > 0.0)
    share = np.where(learnt, 1.0 - weight, 0.0)[:, None, None]
    identity = np.eye(scale.size)
    shrunk = share * within + np.where(learnt, level, 1.0)[:, None, None] * identity
    omega = np.linalg.solve(shrunk, (moments.half_gap / scale)[..., None])[..., 0]
    length = np.linalg.vector_norm(omega, axis=-1, keepdims=True)
    directions: Array = omega / np.where(length > 0.0, length, 1.0)
    return directions

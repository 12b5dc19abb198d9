"""Theory of a rule: its accuracy on new windows, and the slope of its log odds.

The accuracy without the optimism of the rule's own windows is the raw forecast (equation 25). Where
people have rehearsed such rules, their record says what that is worth (60).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import ndtri

from crossfade._typing import Array
from crossfade.blend._means import PosteriorMeans
from crossfade.fisher import Direction, Spectrum
from crossfade.prior import CROWD_DOF
from crossfade.risk import LEFT_OUT, Forecast, Outlook, forecast

#: How far apart, in multiples of what theory says, class means may be to be as accurate as a
#: forecast says.
_STRETCHES = np.array([0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0])
#: Draws for the accuracy of more than two classes.
_DRAWS = 400


class Slope(NamedTuple):
    r"""Log odds of a score s: :math:`a s / \sqrt{1 + b^2 s^2}`, with slope a and bend b."""

    slope: Array  # (...)
    bend: Array  # (...)


class Theory(Protocol):
    """Theory of a rule, worked out when it is asked for."""

    @property
    def raw(self) -> Array:
        """Raw forecast of the accuracy, of shape (...)."""

    @property
    def outlook(self) -> Outlook | None:
        """Law of the accuracy where nobody has rehearsed the rule."""

    def slope(self, outlook: Any) -> Slope:
        """Slope of the log odds under a law of the accuracy."""


@dataclass(frozen=True, eq=False)
class DirectionTheory:
    """Theory of a direction (..., d) that follows the person's own with trace `dof`."""

    person: Direction
    omega: Array
    dof: Array
    within: Spectrum | None
    contradicts: Array

    @cached_property
    def _forecast(self) -> Forecast:
        return forecast(self.person, self.omega, self.dof)

    @property
    def raw(self) -> Array:
        """Raw forecast of the accuracy, of shape (...)."""
        return self._forecast.accuracy

    @cached_property
    def outlook(self) -> Outlook:
        """Law of the accuracy where nobody has rehearsed the rule."""
        known = self._forecast
        score = known.score / np.sqrt(1.0 - known.doubt)
        own = np.clip(self.dof / np.maximum(self.person.rank, 1), 0.0, 1.0)
        return Outlook.of_theory(score, known.spread, self.person.dof, self.contradicts, own)

    def slope(self, outlook: Outlook) -> Slope:
        """Slope for the variance of the people and the person's own, by degrees of freedom."""
        variance, omega = self._forecast.variance, self.omega
        if self.within is not None:
            share = self.person.dof / (self.person.dof + CROWD_DOF)
            own = np.vecdot(omega, self.person.sigma.apply(omega))
            theirs = np.vecdot(omega, self.within.apply(omega))
            variance = (1.0 - share) * theirs + share * own
        return _slope_of(outlook, variance, omega)


@dataclass(frozen=True, eq=False)
class MeansTheory:
    """Theory of a direction `omega` (..., d) between two class means; the others are (...)."""

    omega: Array
    gap: Array
    within: Array
    doubt: Array
    contradicts: Array
    given: Array | None = None

    @property
    def raw(self) -> Array:
        """Raw forecast of the accuracy, of shape (...)."""
        return self.outlook.accuracy() if self.given is None else self.given

    @cached_property
    def outlook(self) -> Outlook:
        """Law of the accuracy where nobody has rehearsed the rule."""
        score = self.gap / np.sqrt(self.within)
        spread = np.sqrt(self.doubt / self.within)
        law = Outlook(score, spread, np.asarray(CROWD_DOF), LEFT_OUT)
        return law.not_below_chance(self.contradicts)

    def slope(self, outlook: Outlook) -> Slope:
        """Slope of the log odds under a law of the accuracy."""
        return _slope_of(outlook, self.within + self.doubt, self.omega)


@dataclass(frozen=True, eq=False)
class ManyTheory:
    """Theory of scores by `weights` (..., K, p) and `offset` (..., K) in whitened features."""

    means: PosteriorMeans
    weights: Array
    offset: Array

    @cached_property
    def raw(self) -> Array:
        """Raw forecast of the accuracy, of shape (...)."""
        return self._accuracies(np.ones(1))[..., 0]

    @cached_property
    def outlook(self) -> Outlook:
        """Law of the accuracy where nobody has rehearsed the rule."""
        within = np.trace(self.means.sigma, axis1=-2, axis2=-1)
        doubt = np.trace(self.means.scatter.mean(-3), axis1=-2, axis2=-1) - within
        spread = np.sqrt(np.maximum(doubt, 0.0) / within)
        probit = np.asarray(ndtri(np.clip(self.raw, 1e-9, 1.0 - 1e-9)))
        mean = probit * np.sqrt(1.0 + spread**2)
        law = Outlook(mean, spread, np.asarray(CROWD_DOF), LEFT_OUT)
        return law.not_below_chance(np.asarray(False), self.weights.shape[-2])

    def slope(self, outlook: Outlook) -> Slope:
        """Slope with the class means as far apart as the forecast says, flattened by doubt (61)."""
        # Draws make it waver; further apart is more accurate.
        reached = np.maximum.accumulate(self._accuracies(_STRETCHES), -1)
        wanted = outlook.accuracy()[..., None]
        above = np.clip((reached < wanted).sum(-1), 1, _STRETCHES.size - 1)
        low, high = (
            np.take_along_axis(reached, one[..., None], -1)[..., 0] for one in (above - 1, above)
        )
        part = np.clip((wanted[..., 0] - low) / np.maximum(high - low, 1e-9), 0.0, 1.0)
        stretch = _STRETCHES[above - 1] + part * (_STRETCHES[above] - _STRETCHES[above - 1])
        flat = np.sqrt(1.0 + np.pi / 2.0 * outlook.spread**2)
        slope = np.maximum(stretch, 1e-9) / flat
        return Slope(slope, np.zeros_like(slope))

    def _accuracies(self, stretches: Array) -> Array:
        """Accuracies (..., n) with class means so many times (n,) as far apart, by fixed draws."""
        weights, centres = self.weights, self.means.centres
        n_classes = centres.shape[-2]
        spread = weights[..., None, :, :] @ self.means.scatter @ weights[..., None, :, :].mT
        values, vectors = np.linalg.eigh(spread)
        # Unlike a root of eigenvectors alone, the symmetric one does not depend on their signs.
        root = (vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]) @ vectors.mT
        half = np.random.default_rng(0).standard_normal((_DRAWS // 2, n_classes))
        draws = np.concatenate([half, -half]) @ root
        middle = centres.mean(-2, keepdims=True)
        found = []
        for stretch in stretches.tolist():
            moved = middle + stretch * (centres - middle)
            scores = moved @ weights.mT + self.offset[..., None, :]
            best = (scores[..., None, :] + draws).argmax(-1)
            found.append((best == np.arange(n_classes)[:, None]).mean((-2, -1)))
        return np.stack(found, -1)


@dataclass(frozen=True, eq=False)
class Stated:
    """Forecast and slope as a file states them."""

    outlook: Outlook | None
    stated: Slope

    @property
    def raw(self) -> Array:
        """Files do not state the raw forecast."""
        return np.asarray(np.nan)

    def slope(self, outlook: Outlook | None) -> Slope:
        """Slope of the log odds."""
        return self.stated


def _slope_of(outlook: Outlook, variance: Array, omega: Array) -> Slope:
    """Slope for a variance of windows along directions of any length (equation 61)."""
    length = np.linalg.vector_norm(omega, axis=-1)
    deviation = np.sqrt(np.maximum(variance, 1e-300)) / np.where(length > 0.0, length, 1.0)
    mean, spread = outlook.slope
    return Slope(2.0 * mean / deviation, np.sqrt(np.pi / 2.0) * spread / deviation)

"""How accurate one person's rule will be, as a law: forecast, interval and probabilities.

Theory promises the accuracy without the optimism of the rule's own windows, the raw forecast (25).
The probit of the accuracy follows Student's law with mean m and deviation S, by the record of
people who rehearsed such rules, or else by theory (60). At x deviations from the threshold the log
odds are

.. math:: \\frac{2 m x}{\\sqrt{1 + \\tfrac{\\pi}{2} S^2 x^2}} \\quad \\text{(61; MacKay 1992)}
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from crossfade._typing import Array
from crossfade.fisher import Direction, Spectrum
from crossfade.prior import CLIP, CROWD_DOF
from crossfade.risk._error_rate import error_rate
from crossfade.risk._expected import threshold

#: Nodes and weights of a standard normal.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
#: Least mean of a probability's slope, so that it still says which class is likelier; and how many
#: deviations away a threshold may lie.
_FLATTEST, _FURTHEST = 1e-9, 1e3
#: Deviation of the probit that theory leaves out: windows of a session depend on each other, and
#: people are not Gaussian. Chosen on shipped tables and simulations (docs/mathematics.md).
LEFT_OUT = np.array(0.3)
#: Deviations and scores beyond this are as certain as can be, and their products must be numbers.
_CERTAIN = 1e100
#: How far apart, in multiples of what theory says, class means may be to be as accurate as a
#: forecast says.
_STRETCHES = np.array([0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0])
#: Draws for the accuracy of more than two classes.
_DRAWS = 400


class Outlook(NamedTuple):
    """Law of the probit of one person's accuracy, of shape (...) each."""

    mean: Array
    spread: Array
    dof: Array  # of Student's t
    left_out: Array = np.zeros(())  # deviation that the model leaves out, for intervals

    @classmethod
    def of_theory(
        cls, score: Array, spread: Array, dof: Array, contrary: Array, own: Array
    ) -> Outlook:
        """Law for a score that theory knows up to `spread`; one that is `own` is shrunk (60)."""
        score = np.where(contrary, score, np.maximum(score, 0.0))
        weight = 1.0 / (1.0 + (own * np.asarray(spread)) ** 2)
        # Do not shrink below two standard errors under the estimate.
        believed = np.where(
            score > 0.0, np.maximum(weight * score, score - 2.0 * spread), weight * score
        )
        # With a deviation of one any accuracy is as likely as any other.
        left = np.minimum(spread * np.sqrt(weight), 1.0)
        # Phi of the shrunk score is what is promised: its law is centred a little further out.
        return cls(believed * np.sqrt(1.0 + left**2), left, np.asarray(dof), LEFT_OUT)

    @property
    def real_spread(self) -> Array:
        """Deviation among real people, with what the model leaves out."""
        return np.asarray(np.hypot(self.spread, self.left_out))

    def not_below_chance(self, contrary: Array, n_classes: int = 2) -> Outlook:
        """The same law, with no forecast below chance unless samples are `contrary` to the rule."""
        least = ndtri(1.0 / n_classes) * np.sqrt(1.0 + self.spread**2)
        return self._replace(mean=np.where(contrary, self.mean, np.maximum(self.mean, least)))

    def accuracy(self, class_prior: Array | float = 0.5) -> Array:
        """Accuracy to expect, for a proportion of the second class."""
        if np.all(np.asarray(class_prior) == 0.5):
            return np.asarray(ndtr(self.mean / np.sqrt(1.0 + self.spread**2)))
        # The weights sum to one but for rounding.
        return np.asarray(np.minimum((self._over_nodes(class_prior) * _WEIGHTS).sum(-1), 1.0))

    def error(self, class_prior: Array | float = 0.5) -> Array:
        """Standard error of the accuracy."""
        values = self._over_nodes(class_prior)
        mean = (values * _WEIGHTS).sum(-1, keepdims=True)
        return np.asarray(np.sqrt(((values - mean) ** 2 * _WEIGHTS).sum(-1)))

    def interval(self, level: float, class_prior: Array | float = 0.5) -> tuple[Array, Array]:
        """Interval that holds the accuracy with a probability of `level`."""
        # At a level of one the interval is everything; SciPy before 1.16 returns NaN there.
        quantile = np.inf if level == 1.0 else stdtrit(self.dof, 0.5 + level / 2.0)
        reach = quantile * np.maximum(self.real_spread, 1e-300)
        low, high = self.mean - reach, self.mean + reach
        if np.all(np.asarray(class_prior) == 0.5):
            lower, upper = ndtr(low), ndtr(high)
        else:
            moved = _threshold(self.mean, class_prior)
            lower, upper = (1.0 - error_rate(one, 1.0, moved, class_prior) for one in (low, high))
        # What was clipped when it was learnt may lie anywhere beyond.
        return np.where(lower < CLIP[0], 0.0, lower), np.where(upper > CLIP[1], 1.0, upper)

    @property
    def slope(self) -> tuple[Array, Array]:
        """Mean and deviation as the log odds have them: a rule still says what is likelier."""
        spread = np.minimum(self.spread, np.sqrt(_CERTAIN))
        return np.clip(self.mean, _FLATTEST, _CERTAIN), np.asarray(spread)

    def _over_nodes(self, class_prior: Array | float) -> Array:
        """Accuracies (..., 21) at the nodes of the law."""
        spread = np.asarray(self.spread)[..., None]
        scores = np.asarray(self.mean)[..., None] + spread * _NODES
        if np.all(np.asarray(class_prior) == 0.5):
            return np.asarray(ndtr(scores))
        moved = np.asarray(_threshold(self.mean, class_prior))[..., None]
        return np.asarray(1.0 - error_rate(scores, 1.0, moved, np.asarray(class_prior)[..., None]))


def _threshold(score: Array, class_prior: Array | float) -> Array:
    """Where the threshold of classes of such proportions lies, in deviations."""
    return np.clip(threshold(np.asarray(score), 1.0, class_prior), -_FURTHEST, _FURTHEST)


# -- what theory forecasts -------------------------------------------------------------------------

# A rule looks better on the samples that it was learnt from than it is: the gap that it sees along
# its direction is too large by the optimism c tr(A) / |omega|, with A the matrix by which the rule
# follows the person's own direction; its trace are the effective degrees of freedom (Efron 2004).


class Forecast(NamedTuple):
    """Forecast of directions on new samples, of shape (...) each."""

    accuracy: Array
    score: Array  # half the distance of the classes, in deviations, without optimism
    doubt: Array  # variance of the optimism that was taken off the score
    spread: Array  # standard error of the probit of the accuracy
    variance: Array  # variance within the classes along the directions


def forecast(person: Direction, omega: Array, dof: Array | float) -> Forecast:
    """Forecast of directions (..., d) of any length, of `dof` effective degrees of freedom."""
    freedom = person.dof
    rank = np.maximum(person.rank, 1)
    # A covariance learnt from few samples is too small along directions that come from it.
    learnt_dof = person.covariance_dof
    learnt = freedom / np.maximum(freedom - learnt_dof * dof / rank, 0.5)
    inflation = 1.0 + learnt_dof / rank * (learnt - 1.0)
    variance = np.asarray(np.vecdot(omega, person.sigma.apply(omega)) * inflation**2)
    length = np.where(person.length > 0.0, person.length, np.inf)
    noise = person.mean_noise
    optimism = noise * inflation * dof / length
    gap = np.asarray(np.vecdot(omega, person.nu) - optimism)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = gap / np.sqrt(np.maximum(variance, 0.0))
        score = np.where(np.isnan(score), 0.0, score)
        doubt = 2.0 * optimism**2 / (variance * rank)
    # The optimism is itself uncertain. A mean of Phi over a noisy score is too low; over this one
    # it is right. The noise of the gap proper cancels with that of the threshold.
    doubt = np.minimum(np.where(np.isnan(doubt), 0.0, doubt), 0.5)
    honest = score / np.sqrt(1.0 - doubt)
    finite = np.where(np.isfinite(honest), honest, 0.0)
    spread = np.sqrt(noise + doubt + finite**2 / (2.0 * freedom))
    # Without a degree of freedom left the samples say nothing about their own rule.
    blind = (freedom - learnt_dof < 1.0) & (np.asarray(dof) > 0.0)
    return Forecast(
        np.where(blind, 0.5, ndtr(honest)),
        np.where(blind, 0.0, score),
        doubt,
        np.where(blind, 1e6, spread),
        variance,
    )


# -- theories of rules -----------------------------------------------------------------------------


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

    centres: Array  # (..., K, p): class means
    sigma: Array  # (..., p, p): covariance within the classes
    scatter: Array  # (..., K, p, p): covariance of new windows of each class
    weights: Array
    offset: Array

    @cached_property
    def raw(self) -> Array:
        """Raw forecast of the accuracy, of shape (...)."""
        return self._accuracies(np.ones(1))[..., 0]

    @cached_property
    def outlook(self) -> Outlook:
        """Law of the accuracy where nobody has rehearsed the rule."""
        within = np.trace(self.sigma, axis1=-2, axis2=-1)
        doubt = np.trace(self.scatter.mean(-3), axis1=-2, axis2=-1) - within
        spread = np.sqrt(np.maximum(doubt, 0.0) / within)
        probit = np.asarray(ndtri(np.clip(self.raw, 1e-9, 1.0 - 1e-9)))
        mean = probit * np.sqrt(1.0 + spread**2)
        law = Outlook(mean, spread, np.asarray(CROWD_DOF), LEFT_OUT)
        return law.not_below_chance(np.asarray(False), self.weights.shape[-2])

    def slope(self, outlook: Outlook) -> Slope:
        """Slope that matches the forecast accuracy, flattened by uncertainty (61)."""
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
        weights, centres = self.weights, self.centres
        n_classes = centres.shape[-2]
        spread = weights[..., None, :, :] @ self.scatter @ weights[..., None, :, :].mT
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

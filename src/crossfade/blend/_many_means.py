"""The hierarchical blend of more than two classes: one normal law over all class means.

Without class means it is the posterior blend of each pair of classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from crossfade._typing import Array
from crossfade.blend._fit import warn_without_means, warn_without_replay
from crossfade.blend._hierarchical import Hierarchical, hierarchical
from crossfade.blend._multiclass import MulticlassBlend
from crossfade.blend._posterior import PosteriorBlendClassifier
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher import NOTHING_COUNTS, ClassMoments
from crossfade.prior import CROWD_DOF, ClassMeans, MulticlassPrior, Replay, rung_of, usable
from crossfade.risk import LEFT_OUT, Outlook

#: How far apart, beside what theory says, class means may be to be as accurate as a forecast says.
_STRETCHES = np.array([0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0])


class MeansPrior(Protocol):
    """What a prior knows of the class means of many classes."""

    @property
    def class_means(self) -> ClassMeans | None:
        """Sums of class means."""

    @property
    def replay(self) -> Mapping[str, Replay] | None:
        """What forecasts were worth."""

    @property
    def feature_scale(self) -> Array:
        """What features are divided by."""


class ManyFit:
    """What was learnt of the many classes of one person or of a batch: rule and forecast."""

    verb = "hierarchical"
    #: Whether it was said what the forecast lacks.
    said = False

    def __init__(
        self, means: Hierarchical, counts: Array, prior: MeansPrior, *, played: bool = True
    ) -> None:
        self.means, self.counts, self.prior, self.played = means, counts, prior, played

    @property
    def contrary(self) -> Array:
        """Many classes are never all the other way round."""
        return np.asarray(False)

    @property
    def raw(self) -> Array:
        """Forecast of theory alone."""
        return self.means.accuracy()

    @cached_property
    def outlook(self) -> Outlook:
        """Accuracy of this one person, by the record of those who played the newcomer."""
        if self.record is not None:
            law = Outlook(*self.record.calibrate(self.raw, self.rung))
            return law.not_below_chance(self.contrary, self.counts.shape[-1])
        # Half of what is unknown of new windows is unknown of the means.
        within = np.trace(self.means.sigma, axis1=-2, axis2=-1)
        doubt = np.trace(self.means.scatter.mean(-3), axis1=-2, axis2=-1) - within
        spread = np.sqrt(np.maximum(doubt, 0.0) / within)
        probit = np.asarray(ndtri(np.clip(self.raw, 1e-9, 1.0 - 1e-9)))
        mean = probit * np.sqrt(1.0 + spread**2)
        return Outlook(mean, spread, np.asarray(CROWD_DOF), LEFT_OUT)

    @property
    def rung(self) -> Array:
        """Labelled samples of each class that it is judged by."""
        return rung_of(self.counts)

    def promise(self, class_prior: float) -> tuple[Array, Array]:
        """Accuracy to expect for equally likely classes, and its error."""
        return self.outlook.accuracy(), self.outlook.error()

    @property
    def record(self) -> Replay | None:
        """What forecasts of this rule were worth, if anybody has played the newcomer."""
        return usable(self.prior.replay, self.verb) if self.played else None

    def warn(self, stacklevel: int = 4) -> None:
        """Say what the forecast lacks."""
        if self.played and self.record is None and not self.said:
            self.said = True
            warn_without_replay(self.prior.replay is not None, stacklevel + 1)

    @cached_property
    def temperature(self) -> Array:
        """By what the differences of scores are multiplied to be log odds that hold, (...).

        Means that are r times as far apart have the accuracy of the forecast, and r times the log
        odds; what is not known of it flattens them (equation 61).
        """
        shape = self.means.alpha.shape
        reached = np.stack(
            [self.means.accuracy_apart(np.full(shape, one)) for one in _STRETCHES], -1
        )
        # Draws make it waver; further apart is more accurate.
        reached = np.maximum.accumulate(reached, -1)
        wanted = self.outlook.accuracy()[..., None]
        above = np.clip((reached < wanted).sum(-1), 1, _STRETCHES.size - 1)
        low, high = (
            np.take_along_axis(reached, one[..., None], -1)[..., 0] for one in (above - 1, above)
        )
        part = np.clip((wanted[..., 0] - low) / np.maximum(high - low, 1e-9), 0.0, 1.0)
        stretch = _STRETCHES[above - 1] + part * (_STRETCHES[above] - _STRETCHES[above - 1])
        flat = np.sqrt(1.0 + np.pi / 2.0 * self.outlook.spread**2)
        return np.asarray(np.maximum(stretch, 1e-9) / flat)


class PairsFit:
    """What was learnt of the pairs of many classes, where the prior has no class means."""

    record = None

    def __init__(self, blend: MulticlassBlend) -> None:
        self.blend = blend

    @property
    def outlook(self) -> Outlook:
        """Accuracy of this one person: those of the pairs, coupled."""
        pairs = self.blend._forecasting_pairs()
        return pairs.law(pairs.laws)

    def promise(self, class_prior: float) -> tuple[Array, Array]:
        """Accuracy to expect for equally likely classes, and its error."""
        blend = self.blend
        return np.asarray(blend.expected_accuracy_), np.asarray(blend.expected_accuracy_error_)

    def warn(self, stacklevel: int = 4) -> None:
        """The pairs say what their forecasts lack."""

    def log_chances(self, rows: Array) -> Array:
        """Logarithms (n, K) of the probabilities of the classes."""
        chances = self.blend._couple(self.blend._pairs.log_odds(rows))
        return np.log(np.maximum(chances, 1e-300))


def moments_of_none(prior: MulticlassPrior) -> ClassMoments:
    """Moments of no sample of the classes of a prior."""
    n_classes, d = len(prior.classes), prior.n_features
    empty = np.zeros((n_classes, d))
    return ClassMoments(np.zeros(n_classes), empty, np.zeros((0, d)), True, np.zeros(d))


class ManyMeans:
    """What an estimator does with a prior of more than two classes."""

    prior: Any
    in_a_row: bool
    protect: bool
    on_missing_class: str
    classes: Any
    class_prior: Any
    classes_: NDArray[Any]
    coef_: Array
    intercept_: Array
    _fit: Any
    _prior_given: Any
    _moments: ClassMoments
    prior_: Any
    alpha_: float
    member_: float
    means_: Array
    class_prior_: Array

    def _learn_many(
        self, rows: Array, labels: NDArray[Any], weight: Array | None, prior: MulticlassPrior
    ) -> None:
        """Add samples to those so far, and fit the rule."""
        if weight is not None:
            counted = weight > 0.0
            rows, labels, weight = rows[counted], labels[counted], weight[counted]
        known = list(prior.classes)
        stranger = next((name for name in labels.tolist() if name not in known), None)
        if stranger is not None:
            raise PriorMismatchError(
                f"The samples have class {stranger!r}, but the prior's classes are {known}. Rename "
                "the labels, leave these samples out, or build the prior from tasks that have it."
            )
        if not len(labels):
            raise ValueError(NOTHING_COUNTS)
        if self.on_missing_class == "error":
            absent = [name for name in known if name not in labels.tolist()]
            if absent and "_moments" not in self.__dict__:
                raise ValueError(
                    f"Class {absent[0]!r} of the prior has no labelled sample. Label at least 1 "
                    "sample of it, or pass on_missing_class='prior'."
                )
        label = np.searchsorted(np.array(known), labels)
        moments = ClassMoments.of(rows, label, weight, n_classes=len(known))
        if "_moments" in self.__dict__:
            moments = self._moments + moments
        if prior.class_means is None:
            self._learn_pairs(rows, labels, weight, prior)
            self._moments = moments.rotated()
        else:
            self._conclude_many(moments, prior)

    def _learn_pairs(
        self, rows: Array, labels: NDArray[Any], weight: Array | None, prior: MulticlassPrior
    ) -> None:
        """Fit the posterior blend of each pair of classes, where there are no class means."""
        if "_moments" in self.__dict__:
            raise ValueError(
                "Without class means in the prior, many classes are learnt from all samples at "
                "once. Call fit with all of them, or build the prior with class means."
            )
        warn_without_means("MulticlassPrior.from_tasks, from people who have all classes", 5)
        # Units are compared once.
        plain: Any = replace(prior)
        plain.__dict__["units"] = None
        rule = PosteriorBlendClassifier(
            plain, on_missing_class=self.on_missing_class, in_a_row=self.in_a_row
        )
        blend = MulticlassBlend(rule, prior.strategy).fit(rows, labels, weight)
        pairs = blend._pairs
        self._fit = PairsFit(blend)
        self.prior_, self._prior_given, self.classes_ = prior, self.prior, blend.classes_
        self.class_prior_ = np.full(len(self.classes_), 1.0 / len(self.classes_))
        self.coef_, self.intercept_, self.means_ = pairs.coef, pairs.intercept, pairs.means
        self.alpha_ = float(np.mean([fit.blend.alpha for fit in pairs.fits]))
        self.member_ = 1.0

    def _check_many(self, prior: MulticlassPrior) -> MulticlassPrior:
        for name in ("classes", "class_prior"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} is about two classes, and the prior has {len(prior.classes)}. Pass "
                    f"{name}=None; labels must be those of the prior."
                )
        return prior

    def _conclude_many(self, moments: ClassMoments, prior: MulticlassPrior) -> None:
        if prior.class_means is None:
            raise ValueError(
                "Before every class has a label only a crowd can answer that knows class means, "
                "and this MulticlassPrior holds none. Build it with MulticlassPrior.from_tasks, "
                "from people who have all classes, or call fit with labelled samples."
            )
        means = hierarchical(
            moments,
            prior.class_means.population,
            prior.feature_scale,
            in_a_row=bool(self.in_a_row),
            protect=bool(self.protect),
        )
        self._moments = moments.rotated()
        self._fit = ManyFit(means, moments.counts, prior, played=bool(self.protect))
        self.prior_, self._prior_given = prior, self.prior
        self.class_prior_ = np.full(len(prior.classes), 1.0 / len(prior.classes))
        self.classes_ = np.array(prior.classes)
        self.coef_ = means.coef / prior.feature_scale
        self.intercept_ = means.offset
        self.alpha_, self.member_ = float(means.alpha), float(means.member)
        self.means_ = means.means * prior.feature_scale

"""What a blend starts from and what it makes: the windows of a newcomer, and a linear rule.

Both are of one person, or of a batch of people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax

from crossfade._typing import Array
from crossfade._validate import check_finite, check_number
from crossfade.blend._about import About, called, card_of
from crossfade.fisher import ClassMoments, Direction, learn_direction, scores_of
from crossfade.prior import ForecastRecord, Law, label_count_of
from crossfade.risk import Outlook, Slope, Theory, log_odds

#: Scores beyond this are as certain as can be, and their products must be numbers.
_CERTAIN = 1e100
_NOTHING_SAID = About()
#: Where a threshold lies that no window should cross, in deviations.
_FURTHEST = 1e9


class Newcomer(NamedTuple):
    """Windows of one person, or of a batch of people, and what is known about them.

    Attributes
    ----------
    moments : ClassMoments
        Moments of the labelled windows in the user's units; classes may have none.
    unlabelled : ndarray of shape (..., n_windows, n_features) or None
        Windows without a label.
    consecutive : bool
        Whether the labelled windows of a class follow each other in time.
    second : float
        Probability of the second of two classes among new windows.
    classes : ndarray of shape (n_classes,)
        Labels of the classes.
    record : ForecastRecord or None
        How accurate forecasts of this kind of rule turned out for earlier people.
    """

    moments: ClassMoments
    unlabelled: Array | None
    consecutive: bool
    second: float
    classes: NDArray[Any]
    record: ForecastRecord | None = None

    @property
    def shows_all(self) -> bool:
        """Whether every class has a labelled window."""
        return bool(self.moments.counts.all())

    def direction(
        self, law: Law | None, shrinkage: str | None = "oas", form: str = "unit"
    ) -> Direction:
        """The person's own direction, in the units of the law."""
        # The paper takes windows for independent.
        alike = law is not None and self.consecutive and form == "unit"
        return learn_direction(
            self.moments,
            shrinkage,
            None if law is None else law.feature_scale,
            fallback=None if law is None else law.within,
            form=form,
            correlation=law.neighbour_correlation if law is not None and alike else None,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Rule:
    r"""A linear rule in the user's units, and how accurate it will be; leading axes are a batch.

    Two classes have one score, which is positive for the second; more have one score each.

    .. math:: s = w^T x + b, \quad
        \ell = \frac{a (s + s_0)}{\sqrt{1 + b_s^2 (s + s_0)^2}} - \ell_0

    are the score and its log odds, with slope a and bend :math:`b_s`. :math:`\ell_0` is the
    logarithm of how often the first class comes for the second, and :math:`s_0` is how far the
    proportions move the threshold.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels, sorted; of two, the second is positive.
    coef : ndarray of shape (..., n_scores, n_features)
        Coefficients.
    intercept : ndarray of shape (..., n_scores)
        Intercepts.
    class_prior : ndarray of shape (n_classes,)
        Proportions of the classes among new windows.
    shift : ndarray of shape (...)
        How far the proportions move the threshold.
    alpha : ndarray of shape (...)
        Weight of the person: 1 is the person alone, 0 the crowd alone.
    n_labelled : ndarray of shape (..., n_classes)
        Labelled windows of each class.
    theory : Theory
        What theory says of the rule.
    feature_scale : ndarray of shape (n_features,) or None
        What features were divided by; None in a rule from a file, as the next.
    means : ndarray of shape (..., n_classes, n_features) or None
        Class means as the rule has them.
    contradicts : ndarray of shape (...)
        Whether the labelled windows lie the other way round along the rule.
    record : ForecastRecord or None
        How accurate forecasts of such rules turned out for earlier people.
    has_unlabelled : bool
        Whether unlabelled windows were seen.
    details : mapping of str to ndarray
        What only this kind of blend knows, such as the strength of a posterior blend.
    about : About
        For whom the rule is and what it was made from.
    """

    classes: NDArray[Any]
    coef: Array
    intercept: Array
    class_prior: Array
    shift: Array
    alpha: Array
    n_labelled: Array
    theory: Theory
    feature_scale: Array | None = None
    means: Array | None = None
    contradicts: Array = field(default_factory=lambda: np.asarray(False))
    record: ForecastRecord | None = None
    has_unlabelled: bool = False
    details: Mapping[str, Array] = field(default_factory=dict)
    about: About = _NOTHING_SAID

    # -- how accurate it will be ------------------------------------------------------------

    @property
    def raw_forecast(self) -> Array:
        """Accuracy that theory alone promises, which rehearsals compare with what came, (...)."""
        return self.theory.raw

    @property
    def label_count(self) -> Array:
        """Labelled windows of each class (...); unlabelled ones are worth less than one label."""
        count = label_count_of(self.n_labelled)
        return np.maximum(count, np.sqrt(0.5)) if self.has_unlabelled else count

    @cached_property
    def outlook(self) -> Outlook | None:
        """Law of the accuracy for this person; None for a rule without a forecast."""
        return self.theory.outlook if self.record is None else self._after(None)

    @property
    def expected_accuracy(self) -> Array:
        """Accuracy to expect on new windows in the proportions of `class_prior`, (...)."""
        return self._known.accuracy(self._second)

    @property
    def expected_accuracy_error(self) -> Array:
        """Standard error of the expected accuracy, of shape (...)."""
        return self._known.error(self._second)

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Interval that holds the accuracy of this person with a probability of `level`.

        Parameters
        ----------
        level : float, default=0.9
            Probability.

        Returns
        -------
        lower, upper : ndarray of shape (...)
            Ends of the interval.
        """
        return self._known.interval(check_number("level", level, 0.0, 1.0), self._second)

    def forecast_after(self, label_count: Array, level: float = 0.9) -> tuple[Array, ...]:
        """Forecasts with other numbers of labelled windows; the rule must have a record.

        Parameters
        ----------
        label_count : ndarray of shape (n_counts,)
            Labelled windows of each class; of unequal numbers their harmonic mean.
        level : float, default=0.9
            Probability of the intervals.

        Returns
        -------
        accuracy, error, lower, upper : ndarray of shape (n_counts,)
            Expected accuracy, its standard error, and the ends of the intervals.
        """
        law = self._after(label_count)
        ends = law.interval(level, self._second)
        return law.accuracy(self._second), law.error(self._second), *ends

    # -- prediction -------------------------------------------------------------------------

    def decision_function(self, X: ArrayLike) -> Array:
        """Scores of windows.

        Parameters
        ----------
        X : array-like of shape (n_windows, n_features)
            Features in the user's units.

        Returns
        -------
        ndarray of shape (..., n_windows), or (..., n_windows, n_classes) with more than two
            Scores; of two classes, positive for the second.
        """
        scores = self.scores(self._rows(X))
        return scores[..., 0] if self.coef.shape[-2] == 1 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Likeliest label of each window.

        Parameters
        ----------
        X : array-like of shape (n_windows, n_features)
            Features in the user's units.

        Returns
        -------
        ndarray of shape (..., n_windows)
            Labels.
        """
        return np.asarray(self.classes.take(places_of(self.scores(self._rows(X)))))

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_windows, n_features)
            Features in the user's units.

        Returns
        -------
        ndarray of shape (..., n_windows, n_classes)
            Probabilities; each row sums to one.
        """
        return self.probabilities(self.scores(self._rows(X)))

    def scores(self, rows: Array) -> Array:
        """Scores of windows that were checked before.

        Parameters
        ----------
        rows : ndarray of shape (n_windows, n_features) or (..., n_windows, n_features)
            Features in the user's units.

        Returns
        -------
        ndarray of shape (..., n_windows, n_scores)
            Scores.
        """
        if rows.ndim > 2 or self.coef.ndim == 2:
            return scores_of(rows, self.coef.mT, self.intercept[..., None, :])
        # One large product is much faster than many small ones.
        flat = self.coef.reshape(-1, rows.shape[-1])
        scores = scores_of(rows, flat.T, self.intercept.reshape(-1))
        return np.moveaxis(scores.reshape(len(rows), *self.coef.shape[:-1]), 0, -2)

    def probabilities(self, scores: Array) -> Array:
        """Probability of each class for scores.

        Parameters
        ----------
        scores : ndarray of shape (..., n_windows, n_scores)
            Scores.

        Returns
        -------
        ndarray of shape (..., n_windows, n_classes)
            Probabilities; each row sums to one.
        """
        slope, bend = (np.asarray(one)[..., None, None] for one in self.slope)
        moved = np.clip(scores + self.shift[..., None, None], -_CERTAIN, _CERTAIN)
        odds = slope * moved / np.hypot(1.0, bend * moved)
        if odds.shape[-1] > 1:
            return np.asarray(softmax(odds, -1))
        second = expit(odds - log_odds(self._second))
        return np.concatenate([1.0 - second, second], -1)

    @cached_property
    def slope(self) -> Slope:
        """Slope and bend of the log odds in the scores, of shape (...) each."""
        return self.theory.slope(self.outlook)

    # -- the same rule, otherwise -----------------------------------------------------------

    def in_order(self) -> Self:
        """The same rule with its classes sorted by their labels."""
        order, two = np.argsort(self.classes), len(self.classes) == 2
        return replace(
            self,
            classes=self.classes[order],
            coef=-self.coef if two else self.coef[..., order, :],
            intercept=-self.intercept if two else self.intercept[..., order],
            shift=-self.shift,
            class_prior=self.class_prior[order],
            means=None if self.means is None else self.means[..., order, :],
            n_labelled=self.n_labelled[..., order],
        )

    # -- for people -------------------------------------------------------------------------

    def card(self) -> str:
        """Model card: for whom, on what, how good, how sure, under which privacy.

        Returns
        -------
        str
            Markdown.
        """
        return card_of(self)

    def __repr__(self) -> str:
        if self.coef.ndim > 2:
            return f"Rule(batch of {self.coef.shape[:-2]})"
        size = f"n_features={self.coef.shape[-1]}, n_labelled={self.n_labelled.tolist()}"
        return f"Rule(classes {' and '.join(called(self))}, {size}, alpha={self.alpha:.3f})"

    def _after(self, label_count: Array | None) -> Outlook:
        """Law of the accuracy by the record, with other numbers of labelled windows if given."""
        assert self.record is not None
        raw, now = self.raw_forecast, self.label_count
        if label_count is not None:
            raw, now = (np.broadcast_to(one, label_count.shape) for one in (raw, now))
        law = Outlook(*self.record.calibrate(raw, now, label_count))
        return law.not_below_chance(self.contradicts, len(self.classes))

    @property
    def _second(self) -> float:
        """Probability of the second of two classes; more are equally likely."""
        return float(self.class_prior[1]) if len(self.class_prior) == 2 else 0.5

    @property
    def _known(self) -> Outlook:
        if self.outlook is None:
            raise ValueError("This rule makes no forecast: a discriminant without a prior made it.")
        return self.outlook

    def _rows(self, X: ArrayLike) -> Array:
        """Windows as an array, compared with the features of the rule."""
        rows = check_finite("X", X, 1, largest=np.inf)
        names, known = getattr(X, "columns", None), self.about.feature_names
        if names is not None and known is not None and [str(one) for one in names] != list(known):
            raise ValueError(f"The columns of X must be {list(known)}, in this order.")
        if rows.ndim != 2 or rows.shape[1] != self.coef.shape[-1]:
            raise ValueError(
                f"X must have {self.coef.shape[-1]} features for each window; got {rows.shape}."
            )
        return rows


def places_of(scores: Array) -> NDArray[np.intp]:
    """Places (..., n_windows) of the likeliest classes for scores (..., n_windows, n_scores)."""
    if scores.shape[-1] == 1:
        return (scores[..., 0] > 0.0).astype(np.intp)
    return np.asarray(scores.argmax(-1))


def rule_of_two(
    newcomer: Newcomer, omega: Array, midpoint: Array, scale: Array, **fields: Any
) -> Rule:
    """Rule of two classes along a direction in scaled units, with its threshold at `midpoint`."""
    length = np.sqrt(np.vecdot(omega, omega))[..., None]
    batch = newcomer.moments.means.shape[:-2]
    coef = omega / np.where(length > 0.0, length, 1.0) / scale
    rule = made(
        newcomer,
        coef=_spread(coef, (*batch, coef.shape[-1]))[..., None, :],
        intercept=_spread(-np.vecdot(coef, midpoint), batch)[..., None],
        feature_scale=scale,
        **fields,
    )
    if newcomer.second == 0.5:
        return rule
    # The threshold lies where the probabilities are even (equation 20).
    shift = _where(rule.slope, float(log_odds(newcomer.second)))
    return replace(rule, shift=shift, intercept=rule.intercept - shift[..., None])


def made(newcomer: Newcomer, *, alpha: Array | float, **fields: Any) -> Rule:
    """Rule of a newcomer, with what all kinds have in common."""
    moments, n_classes = newcomer.moments, len(newcomer.classes)
    batch, second = moments.means.shape[:-2], newcomer.second
    share = [1.0 - second, second] if n_classes == 2 else [1.0 / n_classes] * n_classes
    return Rule(
        classes=newcomer.classes,
        class_prior=np.array(share),
        shift=np.zeros(batch),
        alpha=_spread(np.asarray(alpha, np.float64), batch),
        n_labelled=_spread(moments.counts, (*batch, n_classes)),
        record=newcomer.record,
        has_unlabelled=newcomer.unlabelled is not None,
        **fields,
    )


def _spread(values: Array, shape: tuple[int, ...]) -> Array:
    """The same values for everybody of a batch."""
    return values if values.shape == shape else np.broadcast_to(values, shape)


def _where(known: Slope, odds: float) -> Array:
    """Score at which the log odds are `odds`, or the furthest where they never are."""
    left = known.slope**2 - (known.bend * odds) ** 2
    furthest = _FURTHEST / np.maximum(known.slope, known.bend)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(left > 0.0, abs(odds) / np.sqrt(np.maximum(left, 0.0)), np.inf)
    return np.asarray(np.sign(odds) * np.minimum(score, furthest))

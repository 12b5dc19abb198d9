"""A rule that only predicts: linear scores, how sure they are, and how they are coupled.

Every classifier of ours comes down to a few linear scores, from which log odds follow (61),

.. math:: s = w^T x + b, \\quad u = (s + \\text{shift}) / \\text{deviation}, \\quad
    \\ell = \\frac{2 m u}{\\sqrt{1 + \\tfrac{\\pi}{2} S^2 u^2}} + \\text{offset}

and from these probabilities, by one of four couplings. ``docs/live.md`` has them in words.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, softmax
from sklearn.utils.validation import check_is_fitted

from crossfade._typing import Array
from crossfade._validate import check_number
from crossfade.blend._coupling import couple_pairs
from crossfade.fisher import LinearRule
from crossfade.prior import privacy_text, table_of
from crossfade.risk import Outlook, tempered_odds
from crossfade.tasks import Recipe

#: How log odds become probabilities: one score for two classes; one for each class; one for each
#: pair of classes; one for each class against the rest.
COUPLINGS = ("two", "softmax", "pairs", "rests")
#: Probability of the interval on the card, and features that it lists one by one.
_LEVEL, _LISTED = 0.9, 50


def n_scores(coupling: str, n_classes: int) -> int:
    """How many scores a coupling needs."""
    pairs = n_classes * (n_classes - 1) // 2
    return {"two": 1, "pairs": pairs}.get(coupling, n_classes)


class Calibration(NamedTuple):
    """How scores become log odds, of shape (n_scores,) each."""

    mean: Array
    spread: Array
    deviation: Array
    shift: Array
    offset: Array

    @classmethod
    def of_slope(cls, slope: Array | float, n_scores: int = 1) -> Calibration:
        """Log odds that are `slope` times the scores, to the bit."""
        zero = np.zeros(n_scores)
        return cls(np.full(n_scores, slope), zero, np.full(n_scores, 2.0), zero, zero)

    def log_odds(self, scores: Array) -> Array:
        """Log odds of scores (..., n_scores)."""
        with np.errstate(over="ignore"):
            u = (scores + self.shift) / self.deviation
        return tempered_odds(self.mean, self.spread, u) + self.offset


class SavedRule(LinearRule):
    """A rule from a file: it predicts as the model did that was saved, and learns nothing more.

    Made by :func:`load_model`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; of two the second is positive.
    class_names_ : tuple of str or None
        What people read instead of the labels, in their order.
    coef_, intercept_ : ndarray of shape (n_scores, n_features) and (n_scores,)
        The scores in the user's units: one for two classes, else one for each class or, as
        `coupling_` says, for each pair of classes.
    coupling_ : {"two", "softmax", "pairs", "rests"}
        How scores become probabilities, see ``docs/live.md``.
    projection_, midpoint_ : ndarray of shape (n_features,)
        Of two classes the unit direction, in scaled units, and where the threshold lies in the
        user's.
    feature_scale_ : ndarray of shape (n_features,)
        What features are divided by.
    alpha_ : float
        Weight of the target: 1 is the person alone, 0 the crowd alone.
    class_prior_ : ndarray of shape (n_classes,)
        Probabilities of the classes, for which threshold and forecast were made.
    expected_accuracy_, expected_accuracy_error_ : float or None
        Forecast for new samples, and its standard error; None if the model made none.
    n_labelled_ : tuple of float
        Labelled samples of each class.
    prior_ : dict or None
        Of the prior: `sha256` of its file, `n_tasks`, `privacy`, and what was said `about` it.
    recipe_ : Recipe or None
        How the features are made from recordings, where the prior knew.
    person_, date_ : str or None
        For whom it is and the day of the recording, where :func:`save_model` was told.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the samples or the prior had any.
    """

    alpha_: float
    blend_: str
    class_names_: tuple[str, ...] | None
    class_prior_: Array
    coupling_: str
    expected_accuracy_: float | None
    expected_accuracy_error_: float | None
    feature_scale_: Array
    midpoint_: Array
    n_labelled_: tuple[float, ...]
    prior_: dict[str, Any] | None
    recipe_: Recipe | None
    person_: str | None
    date_: str | None
    #: Law of the probit of the accuracy, where there is one; and how scores become log odds.
    _forecast: Outlook | None
    _calibration: Calibration
    _card: str

    def fit(self, X: ArrayLike, y: ArrayLike) -> NoReturn:
        """Refuse to learn: a model file holds neither prior nor samples.

        Parameters
        ----------
        X, y : array-like
            Samples and labels.
        """
        raise TypeError(
            "A model from a file only predicts. Fit a PosteriorBlendClassifier with the prior, and "
            "save it again."
        )

    def _validated(self, X: ArrayLike, *y: ArrayLike, **how: Any) -> Any:
        with warnings.catch_warnings():
            # An array has no names to compare; those of a file may be the prior's.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            return super()._validated(X, *y, **how)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Likeliest label of each sample; of equally likely ones the first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        if self.__dict__.get("coupling_") not in ("pairs", "rests"):
            return super().predict(X)
        labels: NDArray[Any] = self.classes_.take(self.predict_proba(X).argmax(-1))
        return labels

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probability of each class, as the model had it that was saved.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities; each row sums to one.
        """
        scores = self.decision_function(X)
        odds = self._calibration.log_odds(scores.reshape(len(scores), -1))
        if self.coupling_ == "two":
            second = expit(odds)
            return np.column_stack([1.0 - second, second])
        if self.coupling_ == "pairs":
            return couple_pairs(odds, len(self.classes_))
        return np.asarray(softmax(odds if self.coupling_ == "softmax" else log_expit(odds), -1))

    def expected_accuracy_interval(self, level: float = 0.9) -> tuple[float, float]:
        """Interval that holds this person's accuracy on new samples as often as it says.

        Parameters
        ----------
        level : float, default=0.9
            Probability of the interval.

        Returns
        -------
        lower, upper : float
            Its ends.
        """
        check_is_fitted(self, "coef_", msg=self._not_fitted())
        if self._forecast is None:
            raise AttributeError(f"This model has no forecast: a {self.blend_} made it.")
        level = check_number("level", level, 0.0, 1.0)
        second = float(self.class_prior_[1]) if self.coupling_ == "two" else 0.5
        lower, upper = self._forecast.interval(level, second)
        return float(lower), float(upper)

    def card(self) -> str:
        """Model card: for whom, on what, how good, how sure, under which privacy.

        Returns
        -------
        str
            Markdown.
        """
        check_is_fitted(self, "coef_", msg=self._not_fitted())
        return self._card

    def __sklearn_clone__(self) -> Self:
        # Without what was learnt there would be nothing left to clone.
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = len(getattr(self, "classes_", ())) > 2
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # noqa: N803
        if not hasattr(self, "coef_"):
            return "SavedRule()"
        said = [f"classes {' and '.join(_called(self))}", f"n_features={self.n_features_in_}"]
        said += [_labelled(self), _crowd(self), f"expected accuracy {_promise(self)}"]
        if self.prior_ is not None:
            said.append(f"privacy: {_short_privacy(self.prior_['privacy'])}")
        return f"SavedRule({', '.join(said)})"

    def _not_fitted(self) -> str:
        return "This %(name)s is empty; load_model makes one from a file."


# -- the card -------------------------------------------------------------------------------


def card_of(rule: SavedRule) -> str:
    """Model card in Markdown: for whom, on what, how good, how sure, under which privacy."""
    names = getattr(rule, "feature_names_in_", None)
    known = [repr(str(name)) for name in ([] if names is None else names[:_LISTED])]
    more = ", ..." if names is not None and len(names) > _LISTED else ""
    about = {} if rule.prior_ is None else rule.prior_["about"]
    rows = {
        "for": _whose(rule),
        "tells apart": ", ".join(_called(rule, labels=True)),
        "features": f"{rule.n_features_in_}{': ' if known else ''}{', '.join(known)}{more}",
        "recipe": "not known" if rule.recipe_ is None else str(rule.recipe_),
        "made by": rule.blend_,
        "crowd": _crowd(rule),
        **{f"crowd, {key.replace('_', ' ')}": text for key, text in sorted(about.items())},
        "weight of the person": f"{rule.alpha_:.3f} (1: this person alone, 0: the crowd alone)",
        "expected accuracy": _promise(rule),
        "proportions": _proportions(rule),
        "privacy of the crowd": "no crowd"
        if rule.prior_ is None
        else privacy_text(rule.prior_["privacy"]),
        "privacy of the person": "none: the rule is a function of this person's windows",
    }
    title = f"# Model of one person: {len(rule.classes_)} classes, {rule.n_features_in_} features"
    return "\n".join([title, "", *table_of(("what", "value"), rows.items())]) + "\n"


def _called(rule: SavedRule, *, labels: bool = False) -> list[str]:
    """Classes as people call them, with their labels where these are others."""
    known = rule.classes_.tolist()
    if rule.class_names_ is None:
        return [repr(label) for label in known]
    pairs = zip(rule.class_names_, known, strict=True)
    return [
        f"{name!r} ({label!r})" if labels and name != label else repr(name) for name, label in pairs
    ]


def _whose(rule: SavedRule) -> str:
    """For whom the model is, by name where that was given, and from what."""
    name = "one person" if rule.person_ is None else repr(rule.person_)
    when = "" if rule.date_ is None else f", recorded on {rule.date_}"
    return f"{name}, with {_labelled(rule)}{when}"


def _labelled(rule: SavedRule) -> str:
    if not any(rule.n_labelled_):
        return "no labelled window"
    return f"{' + '.join(f'{count:g}' for count in rule.n_labelled_)} labelled windows"


def _crowd(rule: SavedRule) -> str:
    if rule.prior_ is None:
        return "no crowd"
    people = rule.prior_.get("n_people")
    crowd = f"a crowd of {rule.prior_['n_tasks']} tasks"
    return crowd if people is None else f"{crowd}, {people} people"


def _promise(rule: SavedRule) -> str:
    """Forecast with its interval, if there is one."""
    if rule.expected_accuracy_ is None:
        return "not known"
    lower, upper = rule.expected_accuracy_interval(_LEVEL)
    return f"{rule.expected_accuracy_:.3f} (90 % interval {lower:.2f} to {upper:.2f})"


def _proportions(rule: SavedRule) -> str:
    if np.ptp(rule.class_prior_) < 1e-9:
        return "taken for equally frequent"
    pairs = zip(rule.class_prior_.tolist(), _called(rule), strict=True)
    return "taken for " + ", ".join(f"{100 * share:.3g} % {name}" for share, name in pairs)


def _short_privacy(privacy: dict[str, Any]) -> str:
    if privacy["kind"] != "released":
        return str(privacy["kind"])
    return f"released with epsilon = {privacy['epsilon']:g}, delta = {privacy['delta']:g}"

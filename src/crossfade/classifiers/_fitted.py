"""Properties and predictions of a fitted blend; skada and MOABB pass more than the samples."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from crossfade._typing import Array
from crossfade.blend import Rule
from crossfade.fisher import LinearRule

#: What skada hands to every method beside the samples.
_OF_SKADA = ("sample_domain", "allow_source")


class FittedBlend(LinearRule):
    """A blend with a rule."""

    rule_: Rule
    prior_: Any

    # Routed in pipelines and searches without touching scikit-learn's global setting.
    __metadata_request__fit: ClassVar = dict.fromkeys(
        (
            *("sample_domain", "groups", "subjects"),
            *("X_target_labeled", "y_target_labeled", "X_target_unlabeled"),
        ),
        True,
    )
    __metadata_request__decision_function: ClassVar = dict.fromkeys(_OF_SKADA, True)
    __metadata_request__predict: ClassVar = dict.fromkeys(_OF_SKADA, True)
    __metadata_request__predict_proba: ClassVar = dict.fromkeys(_OF_SKADA, True)
    __metadata_request__score: ClassVar = dict.fromkeys(_OF_SKADA, True)

    @property
    def alpha_(self) -> float:
        """Weight of the target: 1 is the person alone, 0 the crowd alone."""
        return float(self.rule_.alpha)

    @property
    def means_(self) -> Array:
        """Class means (n_classes, n_features) as the rule has them, in the user's units."""
        assert self.rule_.means is not None
        return self.rule_.means

    @property
    def midpoint_(self) -> Array:
        """Middle (n_features,) between the class means, in the user's units."""
        return np.asarray(self.means_.mean(0))

    @property
    def class_prior_(self) -> Array:
        """Probabilities (n_classes,) of the classes among new samples."""
        return self.rule_.class_prior

    @property
    def projection_(self) -> Array:
        """Unit direction (n_features,) of a rule of two classes, in scaled units."""
        if len(self.rule_.coef) > 1:
            raise AttributeError("A rule of more than two classes has no projection_.")
        direction = self.rule_.coef[0] * self.rule_.feature_scale
        return np.asarray(direction / np.sqrt(direction @ direction))

    @property
    def expected_accuracy_(self) -> float:
        """Forecast for new samples of this person, in the proportions of `class_prior_`."""
        return float(self.rule_.expected_accuracy)

    @property
    def expected_accuracy_error_(self) -> float:
        """Standard error of the forecast."""
        return float(self.rule_.expected_accuracy_error)

    def expected_accuracy_interval(self, level: float = 0.9) -> tuple[float, float]:
        """Interval that contains this person's accuracy with probability `level`.

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
        lower, upper = self.rule_.interval(level)
        return float(lower), float(upper)

    def _detail(self, name: str) -> Any:
        """Detail of this kind of blend; refuses a rule that was not blended."""
        if name not in self.rule_.details:
            raise AttributeError(f"This rule was not blended: it has no {name}.")
        return self.rule_.details[name]

    def _known_columns(self, X: ArrayLike) -> ArrayLike:
        # Where no sample has named the features, the prior may have.
        prior = getattr(self, "prior_", None)
        return self._compared(X, None if prior is None else prior.space)

    def decision_function(
        self, X: ArrayLike, sample_domain: ArrayLike | None = None, allow_source: bool = False
    ) -> Array:
        """Signed distance from the threshold (positive: second class), or one score per class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.
        sample_domain : array-like of shape (n_samples,) or None, default=None
            Not used: the rule is the target's, whoever's samples these are. skada passes it.
        allow_source : bool, default=False
            Not used, as above.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) with more than two classes
            Scores.
        """
        return super().decision_function(X)

    def predict(
        self, X: ArrayLike, sample_domain: ArrayLike | None = None, allow_source: bool = False
    ) -> NDArray[Any]:
        """Likeliest label of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.
        sample_domain : array-like of shape (n_samples,) or None, default=None
            Not used: the rule is the target's, whoever's samples these are. skada passes it.
        allow_source : bool, default=False
            Not used, as above.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        return super().predict(X)

    def predict_proba(
        self, X: ArrayLike, sample_domain: ArrayLike | None = None, allow_source: bool = False
    ) -> Array:
        """Probability of each class under the model (equations 27 and 61).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.
        sample_domain : array-like of shape (n_samples,) or None, default=None
            Not used: the rule is the target's, whoever's samples these are. skada passes it.
        allow_source : bool, default=False
            Not used, as above.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities.
        """
        scores = self.decision_function(X)
        return self.rule_.probabilities(scores.reshape(len(scores), -1))

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
        allow_source: bool = False,
    ) -> float:
        """Accuracy on labelled samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How much each sample counts.
        sample_domain : array-like of shape (n_samples,) or None, default=None
            Not used: the rule is the target's, whoever's samples these are. skada passes it.
        allow_source : bool, default=False
            Not used, as above.

        Returns
        -------
        float
            Share of the samples whose label was found.
        """
        return float(super().score(X, y, sample_weight))

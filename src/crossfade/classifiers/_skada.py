"""Prediction as skada calls it: with the domain of each sample, which a rule does not need."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import ArrayLike, NDArray

from crossfade._typing import Array
from crossfade.blend import Rule
from crossfade.fisher import LinearRule

#: What skada hands to every method beside the samples.
_OF_SKADA = ("sample_domain", "allow_source")


class TakesDomains(LinearRule):
    """A linear rule whose methods accept what skada and MOABB pass."""

    rule_: Rule

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

    def decision_function(
        self, X: ArrayLike, sample_domain: ArrayLike | None = None, allow_source: bool = False
    ) -> Array:
        """Signed distance from the threshold, positive for the second class; of more, scores each.

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

"""Labelled samples in, a linear rule out: what all estimators here have in common."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

Array = NDArray[np.float64]

#: Least slope of a probability, so that it still says which class is likelier.
FLATTEST = 1e-9
#: Largest feature whose square, summed over samples and features, is still a number.
_LARGEST = 1e145


class Crowd(Protocol):
    """What every prior says of its features."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features."""


class LabelledClassifier(ClassifierMixin, BaseEstimator):
    """Estimator that looks at labelled samples before it learns from them."""

    def _check_fit_input(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, *, reset: bool = True
    ) -> tuple[Array, NDArray[Any], Array]:
        # In one order of memory, so that chunks and whole sum up alike, to the bit.
        rows, labels = validate_data(self, X, y, dtype=np.float64, order="C", reset=reset)
        check_classification_targets(labels)
        largest = float(max(rows.max(), -rows.min()))
        if largest > _LARGEST or 0.0 < largest < 1.0 / _LARGEST:
            raise ValueError(
                f"The features of X are of size {largest:.3g}, and their squares are beyond what a "
                "number can hold. Rescale them."
            )
        weight: Array = np.ones(len(labels))
        if sample_weight is not None:
            weight = _check_sample_weight(
                sample_weight, rows, dtype=np.float64, ensure_non_negative=True
            )
        return rows, labels, weight

    def _refuse_other_features(self, prior: Crowd | None, n_features: int) -> None:
        if prior is None:
            return
        if prior.n_features != n_features:
            raise ValueError(
                f"X has {n_features} features, but the prior has {prior.n_features}. Use the "
                "features that the prior was built with."
            )
        names = getattr(self, "feature_names_in_", None)
        if names is None or prior.feature_names is None or tuple(names) == prior.feature_names:
            return
        different = next(
            (mine, theirs)
            for mine, theirs in zip(names, prior.feature_names, strict=True)
            if mine != theirs
        )
        raise ValueError(
            f"The features of X are not those of the prior: {different[0]!r} stands where the "
            f"prior has {different[1]!r}. Reorder or rename the columns, for instance with "
            "X[list(prior.feature_names)]."
        )


class LinearRule(LabelledClassifier):
    """Estimator with a unit direction: scores, labels and probabilities follow from it."""

    classes_: NDArray[Any]
    projection_: Array
    coef_: Array
    intercept_: Array

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def decision_function(self, X: ArrayLike) -> Array:
        """Signed distance from the threshold, along `projection_`; positive for the second class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores.
        """
        check_is_fitted(self, "coef_", msg=self._not_fitted())
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        scores: Array = rows @ self.coef_[0] + self.intercept_[0]
        return scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Likelier label of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        scores = self.decision_function(X)
        labels: NDArray[Any] = self.classes_[(scores > 0.0).astype(np.intp)]
        return labels

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probability of each class under the model (equation 27).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities.
        """
        scores = self.decision_function(X)
        second = expit(self._slope * scores)
        return np.column_stack([1.0 - second, second])

    def _not_fitted(self) -> str:
        return "This %(name)s is not fitted yet; call fit with labelled samples first."

    def _set_rule(
        self,
        projection: Array,
        scale: Array,
        midpoint: Array,
        gap: float,
        variance: float,
        threshold: float = 0.0,
    ) -> None:
        """Set the rule: a unit direction through `midpoint`, in features divided by `scale`.

        Along the direction, `gap` is half the distance of the classes, `variance` that within them
        and `threshold` what is added to the middle, all in scaled units.
        """
        self.projection_ = projection
        self.coef_ = (projection / scale)[None, :]
        self.intercept_ = -(self.coef_ @ midpoint) - threshold
        certain = 1e12 if gap > 0.0 else 0.0
        slope = 2.0 * gap / variance if variance > 0.0 else certain
        self._slope = min(max(slope, FLATTEST), 1e12)


def encode(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Sorted classes, and which of them each label is.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        Labels.

    Returns
    -------
    classes, label : ndarray
        One or two classes, and 0 or 1 for each sample.
    """
    if labels.size == 0:
        raise ValueError("No sample counts: all weights are zero. Give samples that do count.")
    classes, label = np.unique(labels, return_inverse=True)
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"found {len(classes)} classes, {classes.tolist()[:5]}. Keep the samples of two."
        )
    return classes, label


def check_both_classes(counts: tuple[float, float], names: list[Any], remedy: str = "") -> None:
    """Refuse samples of one class only, or of a weight below two.

    Parameters
    ----------
    counts : (float, float)
        Sum of the weights of each class.
    names : list
        One label or both.
    remedy : str
        What else to do, for the end of the message.
    """
    if min(counts) == 0.0:
        present = names[int(np.argmax(counts))] if len(names) == 2 else names[0]
        missing = next((repr(name) for name in names if name != present), "the other class")
        raise ValueError(
            f"Two classes are needed; found {max(counts):g} labelled samples of class {present!r} "
            f"and 0 of {missing}. Label at least 1 sample of {missing}{remedy}."
        )
    if sum(counts) < 2.0:
        raise ValueError(
            "At least two labelled samples are needed, one of each class; the weights of all "
            f"samples sum to {sum(counts):g}. Weights are frequencies: their sum is the number of "
            "samples."
        )

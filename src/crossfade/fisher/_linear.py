"""Base of all classifiers: samples are checked, and scores are linear."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from crossfade._typing import Array, Places
from crossfade._validate import HEAVIEST, LARGEST, SMALLEST, refuse_masked, refuse_size
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher._moments import refuse_units

#: What scikit-learn says, and what to do about it.
_REMEDIES = {
    "X contains NaN": "Fill missing features, or leave these samples out.",
    "array with dim 3": "Signals must become features first, see crossfade.signals.",
}


class LinearRule(ClassifierMixin, BaseEstimator):
    """Linear classifier: checks samples, and has scores, labels and probabilities."""

    many: ClassVar[bool] = False  # whether it can tell more than two classes apart
    classes_: NDArray[Any]
    coef_: Array
    intercept_: Array

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        # scikit-learn reads the signature anew each time, which takes as long as a small fit.
        return list(super()._get_param_names())

    def _check_fit_input(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, *, reset: bool = True
    ) -> tuple[Array, NDArray[Any], Array | None]:
        """Samples, labels and weights, checked; no weights are None."""
        if self._plain(X, reset) and _plain_labels(y, X):
            # scikit-learn's checks take as long as a fit.
            rows, labels = np.ascontiguousarray(X), np.asarray(y)
            if reset:
                self.n_features_in_ = rows.shape[1]
                self.__dict__.pop("feature_names_in_", None)
        else:
            # In one order of memory, so that products are the same to the bit.
            rows, labels = self._validated(X, y, order="C", reset=reset)
            check_classification_targets(labels)
        largest = np.maximum(rows.max(0), -rows.min(0))
        if not (largest.min() >= SMALLEST and largest.max() <= LARGEST):
            if not np.isfinite(largest).all():
                self._validated(X, y, reset=reset)
            refuse_size(largest)
        if sample_weight is None:
            return rows, labels, None
        return rows, labels, check_weight(sample_weight, rows)

    def _validated(self, X: ArrayLike, *y: ArrayLike, **how: Any) -> Any:
        """Samples as scikit-learn checks them; masked values are refused."""
        for name, values in zip("Xy", (X, *y), strict=False):
            if isinstance(values, np.ma.MaskedArray):
                refuse_masked(name, values)
        try:
            # It adds all numbers up to see whether they are finite.
            with np.errstate(over="ignore", invalid="ignore"):
                return validate_data(self, X, *y, dtype=np.float64, **how)
        except OverflowError as reason:
            raise ValueError(f"X must be numbers that a double can hold: {reason}.") from reason
        except ValueError as reason:
            said = str(reason)
            remedy = next((text for part, text in _REMEDIES.items() if part in said), None)
            if remedy is None:
                raise
            raise ValueError(f"{said.splitlines()[0]} {remedy}") from None

    def _plain(self, X: object, reset: bool) -> bool:
        """Whether X is an array that needs no conversion, of as many features as are known."""
        known = self.__dict__
        return (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.size > 0
            and (
                reset
                or (X.shape[1] == known.get("n_features_in_") and "feature_names_in_" not in known)
            )
        )

    def _compared(self, X: ArrayLike, space: Any) -> ArrayLike:
        """Frame as an array if its columns are the prior's and no sample named any; else X."""
        columns, known = getattr(X, "columns", None), getattr(space, "feature_names", None)
        if columns is None or known is None or "feature_names_in_" in self.__dict__:
            return X
        _refuse_other_names([str(name) for name in columns], known)
        return np.asarray(X, dtype=np.float64)

    def _refuse_other_columns(self, X: Any, space: Any) -> None:
        """Refuse other features than the prior's before anything is learnt of them."""
        try:
            shape: Any = np.shape(X) if isinstance(X, list) else getattr(X, "shape", ())
        except ValueError:
            return  # rows of unequal length, which are refused later
        if space is not None and len(shape) == 2 and shape[1] != space.feature_scale.size:
            self._refuse_other_features(space, shape[1])
        self._compared(X, space)

    def _refuse_other_rows(self, rows: Array, prior: Any) -> None:
        """Refuse samples (n, d) of other features than the prior's, or far outside its units."""
        if prior is not None:
            self._refuse_other_features(prior, rows.shape[1])
            refuse_units(np.abs(rows).max(0, initial=0.0), prior.feature_scale)

    def _refuse_other_features(self, prior: Any, n_features: int) -> None:
        """Refuse another number of features than the prior's, or other names."""
        known, size = prior.feature_names, prior.feature_scale.size
        if size != n_features:
            called = "" if known is None else f", {', '.join(map(repr, known[:5]))}"
            raise PriorMismatchError(
                f"X has {n_features} features, but the prior has {size}{called}. Use "
                "the features that the prior was built with."
            )
        names = getattr(self, "feature_names_in_", None)
        if names is not None and known is not None:
            _refuse_other_names(list(names), known)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        space = getattr(getattr(self, "prior", None), "space", None)
        tags.classifier_tags.multi_class = (
            self.many and len(getattr(space, "classes", None) or ()) > 2
        )
        return tags

    def decision_function(self, X: ArrayLike) -> Array:
        """Signed distance from the threshold (positive: second class), or one score per class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) with more than two classes
            Scores.
        """
        X = self._known_columns(X)
        if "coef_" in self.__dict__ and self._plain(X, reset=False):
            rows = np.ascontiguousarray(X)
            if np.isfinite(rows).all():
                return self._scores(rows)
        check_is_fitted(self, "coef_", msg=self._not_fitted())
        return self._scores(self._validated(X, order="C", reset=False))

    def _known_columns(self, X: ArrayLike) -> ArrayLike:
        """X; a rule with a prior compares the names of columns with the prior's."""
        return X

    def _scores(self, rows: Array) -> Array:
        one = len(self.coef_) == 1
        return scores_of(
            rows,
            self.coef_[0] if one else self.coef_.T,
            self.intercept_[0] if one else self.intercept_,
        )

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Likeliest label of each sample.

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
        places = scores > 0.0 if scores.ndim == 1 else scores.argmax(-1)
        return self.classes_.take(places)

    def _not_fitted(self) -> str:
        return "This %(name)s is not fitted yet; call fit with labelled samples first."


def _refuse_other_names(names: list[str], known: tuple[str, ...]) -> None:
    """Refuse names of features that are not those of the prior, in this order."""
    if tuple(names) != known:
        raise PriorMismatchError(
            f"The features of X are not those of the prior: {names[:5]}, and the prior has "
            f"{list(known)[:5]}. Reorder them, for instance with X[list(prior.feature_names)]."
        )


def check_weight(sample_weight: ArrayLike, rows: Array) -> Array:
    """Weights of samples: not negative, and such that their sums are numbers with digits left."""
    refuse_masked("sample_weight", sample_weight)
    given = np.asarray(sample_weight)
    if given.size and given.dtype.kind in "biuf" and not given.any():
        raise ValueError("No sample counts: all weights are zero.")
    weight: Array = _check_sample_weight(
        sample_weight, rows, dtype=np.float64, ensure_non_negative=True
    )
    positive = weight[weight != 0.0]
    if positive.size and not (positive.min() >= 1.0 / HEAVIEST and positive.max() <= HEAVIEST):
        raise ValueError(
            f"sample_weight must be 0 or from {1.0 / HEAVIEST:g} to {HEAVIEST:g}, since a weight "
            f"says how often a sample counts; got {positive.min():g} to {positive.max():g}. "
            "Rescale them, or leave these samples out."
        )
    return weight


def _plain_labels(y: object, X: Any) -> bool:
    """Whether y is an array of whole numbers, booleans or text, one for each row of X."""
    return type(y) is np.ndarray and y.dtype.kind in "iubU" and y.shape == X.shape[:1]


def scores_of(rows: Array, coef: Array, intercept: Array) -> Array:
    """Scores ``rows @ coef + intercept``; refuses samples that have none."""
    with np.errstate(over="ignore", invalid="ignore"):
        scores: Array = rows @ coef + intercept
    if not np.isfinite(scores).all():
        what = "NaN" if np.isnan(rows).any() else "infinity, or numbers too large for scores"
        raise ValueError(f"Input X contains {what}. Fill or rescale these features.")
    return scores


def encode(labels: NDArray[Any], most: int = 2) -> tuple[NDArray[Any], Places]:
    """Sorted classes, and the place of each label among them (n_samples,)."""
    if labels.size == 0:
        raise ValueError("No sample counts: all weights are zero.")
    first = labels[0]
    other = labels != first
    if other.any() and labels.dtype.kind in "iubU":
        # Two classes are told apart without sorting.
        second = labels[other.argmax()]
        if ((labels == second) == other).all():
            if second < first:
                return np.array([second, first], labels.dtype), (~other).astype(np.intp)
            return np.array([first, second], labels.dtype), other.astype(np.intp)
    classes, label = np.unique(labels, return_inverse=True)
    if len(classes) > most:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"found {len(classes)} classes, {classes.tolist()[:5]}. Keep the samples of two, or "
            "use HierarchicalBlendClassifier with a prior of all of them."
        )
    return classes, label


def check_both_classes(counts: Array, names: list[Any]) -> None:
    """Refuse samples of one class only, or of a weight below two."""
    if counts.min() == 0.0:
        name = names[int(np.argmax(counts))] if len(names) == 2 else names[0]
        raise ValueError(
            f"Two classes are needed; found {counts.max():g} labelled samples of class {name!r} "
            "and 0 of the other class. Label at least 1 sample of each."
        )
    if counts.sum() < 2.0:
        raise ValueError(
            "At least two labelled samples are needed, one of each class; the weights of all "
            f"samples sum to {counts.sum():g}."
        )

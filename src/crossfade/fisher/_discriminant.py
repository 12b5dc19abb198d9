"""One task in; a unit direction, its covariance, its midpoint and its scale out."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from crossfade._validate import check_finite, check_scale
from crossfade.fisher._direction import Samples, Target, check_shrinkage, describe_target
from crossfade.fisher._linear import FLATTEST, LinearRule, check_both_classes, encode

Array = NDArray[np.float64]


class FisherDiscriminant(LinearRule):
    r"""Fisher's linear discriminant of two classes, with a covariance that survives few samples.

    .. math:: \omega = S_s^{-1}\nu, \quad S_s = (1 - r) S + r (\operatorname{tr} S / d) I

    Probabilities are the textbook's, which few samples make too sure of themselves; those of
    ``PosteriorBlendClassifier()``, the same rule, are not.

    Parameters
    ----------
    shrinkage : {"oas", "ledoit_wolf"}, float or None, default="oas"
        Weight r of the identity: by oracle approximating shrinkage, by Ledoit and Wolf, given; or
        None for the pseudo-inverse of the plain covariance, which knows its rank.
    priors : pair of floats or None, default=None
        Probabilities of the classes; None is equal. Others move the threshold (equation 20).
    feature_scale : "auto", array-like of shape (n_features,) or None, default="auto"
        What features are divided by first: their own pooled deviation within the classes, given
        numbers, or None for raw units.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Labels, sorted; the second is positive.
    means_ : ndarray of shape (2, n_features)
        Class means, in the user's units.
    midpoint_ : ndarray of shape (n_features,)
        Middle between the class means, in the user's units.
    feature_scale_ : ndarray of shape (n_features,)
        What features were divided by.
    half_gap_ : ndarray of shape (n_features,)
        Half the difference of the class means, in scaled units.
    covariance_ : ndarray of shape (n_features, n_features)
        Pooled covariance within the classes as shrunk, in scaled units; made when asked for.
    shrinkage_ : float
        Weight of the identity in `covariance_`.
    projection_ : ndarray of shape (n_features,)
        Unit direction, in scaled units; zero where the class means do not differ at all.
    projection_covariance_ : ndarray of shape (n_features, n_features)
        Covariance of `projection_` (equation 5); made when asked for.
    coef_, intercept_ : ndarray of shape (1, n_features) and (1,)
        The rule in the user's units.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if `X` had any.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade import FisherDiscriminant
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [3.0, 4.0], [4.0, 3.0]])
    >>> rule = FisherDiscriminant().fit(X, ["rest", "rest", "task", "task"])
    >>> rule.predict([[0.0, 0.0], [5.0, 5.0]])
    array(['rest', 'task'], dtype='<U4')
    """

    def __init__(
        self,
        *,
        shrinkage: str | float | None = "oas",
        priors: ArrayLike | None = None,
        feature_scale: ArrayLike | str | None = "auto",
    ) -> None:
        self.shrinkage = shrinkage
        self.priors = priors
        self.feature_scale = feature_scale

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the direction from labelled samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How often each sample counts.

        Returns
        -------
        FisherDiscriminant
            The fitted estimator.
        """
        rows, labels, weight = self._check_fit_input(X, y, sample_weight)
        shrinkage = check_shrinkage(self.shrinkage)
        priors = _check_priors(self.priors)
        scale = resolve_scale(self.feature_scale, rows.shape[1])
        counted = weight > 0.0
        classes, label = encode(labels[counted])
        samples = Samples(rows[counted], label, weight[counted])
        check_both_classes(samples.counts, classes.tolist())
        target = describe_target(samples, shrinkage, scale)
        self.classes_ = classes
        self._target = target
        self.means_, self.midpoint_ = target.means, target.midpoint
        self.feature_scale_, self.half_gap_ = target.scale, target.nu
        self.shrinkage_ = float(target.shrinkage)
        omega = target.noise.omega
        gap = float(np.vecdot(omega, target.nu))
        variance = float(np.vecdot(omega, target.sigma.apply(omega)))
        threshold = 0.0
        if priors[0] != priors[1]:
            # Equation 20; without a gap every sample has the probabilities given.
            odds = float(np.log(priors[0]) - np.log(priors[1]))
            threshold = odds * (variance / (2.0 * gap) if gap > 0.0 else 1.0 / FLATTEST)
        self._set_rule(omega, target.scale, self.midpoint_, gap, variance, threshold)
        return self

    @property
    def covariance_(self) -> Array:
        """Shrunk covariance within the classes, in scaled units."""
        check_is_fitted(self)
        return self._target.sigma.dense()

    @property
    def projection_covariance_(self) -> Array:
        """Covariance of the unit direction (equation 5), projected off the direction."""
        check_is_fitted(self)
        return direction_covariance(self._target)


def direction_covariance(target: Target) -> Array:
    """Dense covariance of the target's unit direction (equation 5).

    Parameters
    ----------
    target : Target
        What the labelled samples say.

    Returns
    -------
    ndarray of shape (n_features, n_features)
        Covariance matrix.
    """
    omega, scale = target.noise.omega, target.noise.inverse
    inverse = target.sigma.inverse().dense()
    across = np.eye(omega.size) - np.outer(omega, omega)
    covariance: Array = float(scale) * across @ inverse @ across
    return covariance


def resolve_scale(feature_scale: ArrayLike | str | None, n_features: int) -> Array | None:
    """Check what features are to be divided by.

    Parameters
    ----------
    feature_scale : "auto", array-like of shape (n_features,) or None
        As in :class:`FisherDiscriminant`.
    n_features : int
        Number of features.

    Returns
    -------
    ndarray of shape (n_features,) or None
        The scale, or None for the samples' own.
    """
    if isinstance(feature_scale, str):
        if feature_scale != "auto":
            raise ValueError(
                f"feature_scale must be 'auto', None or one positive number for each feature; got "
                f"{feature_scale!r}."
            )
        return None
    return check_scale(feature_scale, n_features)


def _check_priors(priors: ArrayLike | None) -> tuple[float, float]:
    if priors is None:
        return 0.5, 0.5
    values = check_finite("priors", priors, 1)
    if values.shape != (2,) or values.min() <= 0.0 or abs(values.sum() - 1.0) > 1e-6:
        raise ValueError(f"priors must be two positive numbers that sum to one; got {priors!r}.")
    return float(values[0]), float(values[1])

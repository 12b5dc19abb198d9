"""Fisher's linear discriminant as an estimator (Fisher 1936; equations 2 to 5)."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from crossfade._typing import Array
from crossfade._validate import check_finite, resolve_scale
from crossfade.fisher._direction import Direction, learn_direction
from crossfade.fisher._linear import LinearRule, check_both_classes, encode
from crossfade.fisher._moments import ClassMoments, refuse_units

#: Least and largest slope of a probability, so that it still says which class is likelier.
FLATTEST, STEEPEST = 1e-9, 1e12


class FisherDiscriminant(LinearRule):
    r"""Fisher's linear discriminant of two classes, with a covariance that survives few samples.

    .. math:: \omega = S_s^{-1}\nu, \quad S_s = (1 - r) S + r (\operatorname{tr} S / d) I

    Probabilities are the textbook's, which few samples make too sure of themselves; those of
    ``PosteriorBlendClassifier()``, the same rule, are not.

    Parameters
    ----------
    shrinkage : "oas", float or None, default="oas"
        Weight r of the identity: by oracle approximating shrinkage, or given; or None for the
        pseudo-inverse of the plain covariance, which knows its rank.
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
    slope_ : float
        Factor from scores to log odds.
    class_count_ : ndarray of shape (2,)
        Samples of each class, weights counted.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if `X` had any.

    See Also
    --------
    PosteriorBlendClassifier : The same rule blended with what a crowd knows.
    TaskPrior : What the directions of many tasks have in common.

    References
    ----------
    Fisher (1936), The use of multiple measurements in taxonomic problems. Annals of Eugenics 7.

    Chen, Wiesel, Eldar and Hero (2010), Shrinkage algorithms for MMSE covariance estimation. IEEE
    Transactions on Signal Processing 58(10).

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade import FisherDiscriminant
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [3.0, 4.0], [4.0, 3.0]])
    >>> rule = FisherDiscriminant().fit(X, ["rest", "rest", "task", "task"])
    >>> rule.predict([[0.0, 0.0], [5.0, 5.0]])
    array(['rest', 'task'], dtype='<U4')
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "shrinkage": [StrOptions({"oas"}), Interval(Real, 0.0, 1.0, closed="both"), None],
        "priors": ["array-like", None],
        "feature_scale": [StrOptions({"auto"}), "array-like", None],
    }
    _person: Direction

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
        self._validate_params()
        rows, labels, weight = self._check_fit_input(X, y, sample_weight)
        priors = _check_priors(self.priors)
        scale = resolve_scale(self.feature_scale, rows.shape[1])
        if scale is not None:
            refuse_units(np.abs(rows).max(0), scale)
        if weight is not None:
            counted = weight > 0.0
            rows, labels, weight = rows[counted], labels[counted], weight[counted]
        classes, label = encode(labels)
        moments = ClassMoments.of(rows, label, weight)
        check_both_classes(moments.counts, classes.tolist())
        person = learn_direction(moments, self.shrinkage, scale)
        self.classes_ = classes
        self._person = person
        self.class_count_ = person.counts
        self.means_, self.midpoint_ = person.means, person.midpoint
        self.feature_scale_, self.half_gap_ = person.scale, person.nu
        self.shrinkage_, self.projection_ = float(person.shrinkage), person.omega
        self.coef_ = (person.omega / person.scale)[None, :]
        self.intercept_ = -(self.coef_ @ self.midpoint_)
        # Log odds grow by 2 gap / variance along the direction (equation 27).
        gap = float(np.vecdot(person.omega, person.nu))
        variance = float(np.vecdot(person.omega, person.sigma.apply(person.omega)))
        certain = STEEPEST if gap > 0.0 else FLATTEST
        slope = 2.0 * gap / variance if variance > 0.0 else certain
        self.slope_ = float(np.clip(slope, FLATTEST, STEEPEST))
        if priors[0] != priors[1]:
            # Equation 20; without a gap every sample has the probabilities given.
            odds = float(np.log(priors[0]) - np.log(priors[1]))
            moved = odds * (variance / (2.0 * gap) if gap > 0.0 else 1.0 / FLATTEST)
            self.intercept_ = self.intercept_ - moved
        return self

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
        with np.errstate(over="ignore"):
            second = expit(self.decision_function(X) * self.slope_)
        return np.column_stack([1.0 - second, second])

    @property
    def covariance_(self) -> Array:
        """Shrunk covariance within the classes, in scaled units."""
        check_is_fitted(self)
        return self._person.sigma.dense()

    @property
    def projection_covariance_(self) -> Array:
        """Covariance of the unit direction (equation 5), projected off the direction."""
        check_is_fitted(self)
        return self._person.covariance()


def _check_priors(priors: ArrayLike | None) -> tuple[float, float]:
    if priors is None:
        return 0.5, 0.5
    values = check_finite("priors", priors, 1)
    if values.shape != (2,) or values.min() <= 0.0 or abs(values.sum() - 1.0) > 1e-6:
        raise ValueError(f"priors must be two positive numbers that sum to one; got {priors!r}.")
    return float(values[0]), float(values[1])

"""The posterior blend as an estimator."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from crossfade.classifiers._base import BlendClassifier
from crossfade.crowd import TaskPrior


class PosteriorBlendClassifier(BlendClassifier):
    r"""Beyond the paper: a crowd of directions is a distribution, and alpha becomes a matrix.

    .. math:: \omega = m + T (T + \Sigma_\omega)^{-1} (\hat\omega - m)

    Directions on which people agree come from the crowd, directions on which they differ come from
    the person.

    Parameters
    ----------
    prior : TaskPrior or None, default=None
        What earlier people say, of two classes; None is plain shrinkage-Fisher with
        ``alpha_ == 1.0``.
    strength : {"auto", "risk"} or float, default="auto"
        How far the scatter between people is widened: a number; "risk" has the least mean risk;
        "auto" is 1, or the strength of most evidence where the person contradicts the crowd.
    missing_class : {"crowd", "error"}, default="crowd"
        Who answers while a class has no labelled sample: the crowd, where the prior has class
        means, or nobody.
    classes : array-like of labels or None, default=None
        The target's labels in the order of the prior's classes, if they have other names.
    class_prior : pair of floats or None, default=None
        Probabilities of the two classes among new samples, in the order of `classes_`; None is
        equal. Others move the threshold and the forecast.
    consecutive : bool, default=True
        Whether the labelled samples of a class follow each other in time, as in a calibration;
        False for samples from all over a session.

    Attributes
    ----------
    rule_ : Rule
        The rule: what :func:`save_model` writes and :func:`load_model` returns.
    alpha_ : float
        Weight of the target: the mean eigenvalue of the matrix.
    strength_ : float
        The strength that was used.
    projection_ : ndarray of shape (n_features,)
        Unit direction of the blend, in scaled units.
    means_ : ndarray of shape (2, n_features)
        Class means; the threshold lies in their middle, `midpoint_`, if the classes are equally
        likely. In the user's units.
    class_prior_ : ndarray of shape (2,)
        Probabilities of the classes.
    expected_accuracy_, expected_accuracy_error_ : float
        Forecast for new samples, and its standard error. Rehearsals use the defaults; with other
        settings the forecast is theory's alone.
    coef_, intercept_ : ndarray of shape (1, n_features) and (1,)
        The rule in the user's units.
    classes_ : ndarray of shape (2,)
        Labels, sorted; the second is positive.
    prior_ : TaskPrior or None
        The prior that was used, source data included.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if `X` had any.

    See Also
    --------
    ConvexBlendClassifier : The paper's blend, with a number instead of the matrix.
    forecast_labels : What more labelled samples would bring.

    References
    ----------
    Lindley and Smith (1972), Bayes estimates for the linear model. Journal of the Royal Statistical
    Society B 34(1).

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade import PosteriorBlendClassifier, TaskPrior
    >>> rng = np.random.default_rng(0)
    >>> prior = TaskPrior.from_projections(rng.normal([3, 0, 0], 1, (30, 3)), normalize=True)
    >>> X = rng.normal(size=(8, 3)) + np.repeat([[-1, 0, 0], [1, 0, 0]], 4, axis=0)
    >>> blend = PosteriorBlendClassifier(prior).fit(X, [0, 0, 0, 0, 1, 1, 1, 1])
    >>> blend.predict([[2.0, 0.0, 0.0]])
    array([1])
    """

    kind = "posterior"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BlendClassifier._parameter_constraints,
        "strength": [StrOptions({"auto", "risk"}), Interval(Real, 0, None, closed="both")],
        "consecutive": ["boolean"],
    }

    def __init__(
        self,
        prior: TaskPrior | None = None,
        *,
        strength: str | float = "auto",
        missing_class: str = "crowd",
        classes: ArrayLike | None = None,
        class_prior: ArrayLike | None = None,
        consecutive: bool = True,
    ) -> None:
        self.prior = prior
        self.strength = strength
        self.missing_class = missing_class
        self.classes = classes
        self.class_prior = class_prior
        self.consecutive = consecutive

    def _options(self) -> dict[str, Any]:
        usual = self.strength == "auto" or self.prior is None
        return {} if usual else {"strength": self.strength}

    @property
    def strength_(self) -> float:
        """The strength that was used."""
        return float(self._detail("strength"))

"""The hierarchical blend as an estimator: from no label on, for any number of classes."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import ArrayLike

from crossfade.classifiers._base import BlendClassifier
from crossfade.crowd import TaskPrior


class HierarchicalBlendClassifier(BlendClassifier):
    r"""Beyond the paper: a crowd that knows class means, not only directions.

    The class means of the labelled samples are noisy observations of the person's own, and the
    crowd is a normal law over these:

    .. math:: w = (\Sigma + \bar P)^{-1} h^*, \quad \text{threshold } w^T c^*

    with c* and h* the posterior mean of the middle of the classes and of half their gap, and P what
    is still unknown. Before the first label the crowd answers alone; samples without a label tell
    where the middle lies.

    Parameters
    ----------
    prior : TaskPrior or None, default=None
        What earlier people say, with class means, as :meth:`TaskPrior.from_tasks` makes it, of any
        number of classes; None is plain shrinkage-Fisher with ``alpha_ == 1.0``.
    missing_class : {"crowd", "error"}, default="crowd"
        Who answers while a class has no labelled sample: the crowd or nobody.
    classes : array-like of labels or None, default=None
        The target's labels in the order of the prior's classes, if they have other names.
    class_prior : pair of floats or None, default=None
        Probabilities of two classes among new samples, in the order of `classes_`; None is equal.
        Others move the threshold and the forecast.
    consecutive : bool, default=True
        Whether the labelled samples of a class follow each other in time, as in a calibration;
        False for samples from all over a session.

    Attributes
    ----------
    rule_ : Rule
        The rule: what :func:`save_model` writes and :func:`load_model` returns.
    alpha_ : float
        Weight of the target in the contrasts of the classes: 0 before the first label.
    member_ : float
        Probability that the person is one of the crowd.
    means_ : ndarray of shape (n_classes, n_features)
        Posterior class means, in the user's units; `midpoint_` is their middle.
    projection_ : ndarray of shape (n_features,)
        Unit direction of a rule of two classes, in scaled units.
    class_prior_ : ndarray of shape (n_classes,)
        Probabilities of the classes.
    expected_accuracy_, expected_accuracy_error_ : float
        Forecast for new samples of this person, and its standard error; see
        :meth:`expected_accuracy_interval`.
    coef_, intercept_ : ndarray of shape (1, n_features) and (1,)
        The rule in the user's units; with K > 2 classes (K, n_features) and (K,), one score each.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; of two the second is positive.
    prior_ : TaskPrior or None
        The prior that was used, source data included.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if `X` had any.

    See Also
    --------
    PosteriorBlendClassifier : A crowd of directions alone, for those who share less.

    References
    ----------
    Helm, de Silva, Vogelstein, Priebe and Yang (2024), Approximately optimal domain adaptation with
    Fisher's linear discriminant. Mathematics 12(5), 746.

    Examples
    --------
    >>> from crossfade import HierarchicalBlendClassifier, TaskPrior, load_mental_math
    >>> people = load_mental_math()
    >>> newcomer, others = people[0], people[1:]
    >>> blend = HierarchicalBlendClassifier(TaskPrior.from_tasks(others)).start()
    >>> blend.predict(newcomer.X[:3])
    array([0, 0, 0])
    >>> _ = blend.partial_fit(newcomer.X[:4], newcomer.y[:4])
    >>> lower, upper = blend.expected_accuracy_interval(0.9)
    >>> 0.0 <= lower < blend.expected_accuracy_ < upper <= 1.0
    True
    """

    kind, many = "hierarchical", True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BlendClassifier._parameter_constraints,
        "consecutive": ["boolean"],
    }

    def __init__(
        self,
        prior: TaskPrior | None = None,
        *,
        missing_class: str = "crowd",
        classes: ArrayLike | None = None,
        class_prior: ArrayLike | None = None,
        consecutive: bool = True,
    ) -> None:
        self.prior = prior
        self.missing_class = missing_class
        self.classes = classes
        self.class_prior = class_prior
        self.consecutive = consecutive

    @property
    def member_(self) -> float:
        """Probability that the person is one of the crowd."""
        return float(self._detail("member"))

"""The convex blend as an estimator: the paper's class H, and its Algorithm 1."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from crossfade._typing import Array, RandomState
from crossfade._validate import check_choice
from crossfade.classifiers._base import BlendClassifier
from crossfade.crowd import TaskPrior
from crossfade.exceptions import CancellingSourcesWarning


class ConvexBlendClassifier(BlendClassifier):
    r"""The paper's class H: a convex combination of the target's direction and the crowd's.

    .. math:: \omega_\alpha = \alpha\,\omega + (1 - \alpha)\,\mu, \quad
        \alpha = \arg\min_\alpha E[R(\omega_\alpha)]

    Parameters
    ----------
    prior : TaskPrior or None, default=None
        What earlier people say, of two classes; None is plain shrinkage-Fisher with
        ``alpha_ == 1.0``.
    alpha : float or None, default=None
        Weight of the target, 1 for the person alone and 0 for the crowd alone; None chooses the
        weight of least expected risk.
    recipe : {"exact", "authors", "printed"}, default="exact"
        How alpha is chosen. "exact" minimises the expected risk over all alphas, without draws.
        The other two are the paper's Algorithm 1: it takes the pseudo-inverse of the plain
        covariance and draws directions at each alpha of 0, 0.1, ..., 1, with the covariances that
        its authors used or those that the paper prints. See :meth:`paper`.
    n_draws : int, default=100
        Draws of Algorithm 1 at each alpha.
    missing_class : {"crowd", "error"}, default="crowd"
        Who answers while a class has no labelled sample: the crowd, where the prior has class
        means, or nobody.
    classes : array-like of labels or None, default=None
        The target's labels in the order of the prior's classes, if they have other names.
    class_prior : pair of floats or None, default=None
        Probabilities of the two classes among new samples, in the order of `classes_`; None is
        equal. Others move the threshold, the forecast and the choice of alpha.
    random_state : int, Generator or None, default=None
        Seed of Algorithm 1.

    Attributes
    ----------
    rule_ : Rule
        The rule: what :func:`save_model` writes and :func:`load_model` returns.
    alpha_ : float
        Weight of the target.
    alphas_, risks_ : ndarray of shape (n_alphas,)
        The curve that was minimised, where there was something to choose.
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
    PosteriorBlendClassifier : A matrix instead of alpha.
    choose_alpha : The weight alone.
    crossfade.risk.blend_directions : The blend of two directions alone.

    References
    ----------
    Helm, de Silva, Vogelstein, Priebe and Yang (2024), Approximately optimal domain adaptation with
    Fisher's linear discriminant. Mathematics 12(5), 746.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade import ConvexBlendClassifier, TaskPrior
    >>> rng = np.random.default_rng(0)
    >>> prior = TaskPrior.from_projections(rng.normal([3, 0, 0], 1, (30, 3)), normalize=True)
    >>> X = rng.normal(size=(8, 3)) + np.repeat([[-1, 0, 0], [1, 0, 0]], 4, axis=0)
    >>> blend = ConvexBlendClassifier(prior).fit(X, [0, 0, 0, 0, 1, 1, 1, 1])
    >>> 0 < blend.alpha_ < 1
    True
    """

    kind = "convex"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BlendClassifier._parameter_constraints,
        "alpha": [Interval(Real, 0, 1, closed="both"), None],
        "recipe": [StrOptions({"exact", "authors", "printed"})],
        "n_draws": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        prior: TaskPrior | None = None,
        *,
        alpha: float | None = None,
        recipe: str = "exact",
        n_draws: int = 100,
        missing_class: str = "crowd",
        classes: ArrayLike | None = None,
        class_prior: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.prior = prior
        self.alpha = alpha
        self.recipe = recipe
        self.n_draws = n_draws
        self.missing_class = missing_class
        self.classes = classes
        self.class_prior = class_prior
        self.random_state = random_state

    @classmethod
    def paper(
        cls,
        prior: TaskPrior | None = None,
        *,
        recipe: str = "authors",
        n_draws: int = 100,
        random_state: RandomState = None,
    ) -> Self:
        """Algorithm 1 of the paper, to check the paper line by line.

        To get the paper's numbers, make the prior in the same way:
        ``TaskPrior.from_tasks(tasks, FisherDiscriminant(shrinkage=None), None)``.

        Parameters
        ----------
        prior : TaskPrior or None, default=None
            What earlier people say, in raw units.
        recipe : {"authors", "printed"}, default="authors"
            Whether the crowd's mean direction varies as in the authors' runs or as the paper
            prints it. The two differ in Psi only, see :meth:`TaskPrior.standard_error`.
        n_draws : int, default=100
            Draws B at each alpha.
        random_state : int, Generator or None, default=None
            Seed of the draws.

        Returns
        -------
        ConvexBlendClassifier
            An estimator that is not fitted yet.
        """
        check_choice("recipe", recipe, ("authors", "printed"))
        return cls(prior, recipe=recipe, n_draws=n_draws, random_state=random_state)

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {} if self.alpha is None else {"alpha": self.alpha}
        if self.recipe != "exact":
            options |= {"recipe": self.recipe, "n_draws": self.n_draws}
            options["random_state"] = self.random_state
        return options

    def _remarks(self) -> Iterator[tuple[str, type[Warning]]]:
        yield from super()._remarks()
        prior = self.prior_
        if prior is not None and prior.cancels and not self._options():
            yield (
                f"The directions of the prior's {prior.n_tasks} tasks cancel out, so that only the "
                "target's own direction is used. Check that all sources order their classes alike, "
                "or use PosteriorBlendClassifier.",
                CancellingSourcesWarning,
            )

    @property
    def alphas_(self) -> Array:
        """Weights among which alpha was chosen."""
        return np.asarray(self._detail("alphas"))

    @property
    def risks_(self) -> Array:
        """Expected risk at each of these."""
        return np.asarray(self._detail("risks"))

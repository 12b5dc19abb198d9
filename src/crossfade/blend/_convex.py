"""The paper's blend: a convex combination of the person's direction and the crowd's (13, 19).

.. math:: \\omega_\\alpha = \\alpha\\omega + (1 - \\alpha)\\mu

with the alpha of least expected risk. A crowd whose directions cancel has no direction to offer:
alpha is then one.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from crossfade._typing import Array, RandomState
from crossfade._validate import check_choice, check_number
from crossfade.blend._along import crowd_of, rule_along, rule_of_crowd
from crossfade.blend._classifier import BlendClassifier
from crossfade.blend._newcomer import Newcomer
from crossfade.blend._rule import Rule
from crossfade.blend._verb import Blend
from crossfade.exceptions import CancellingSourcesWarning
from crossfade.fisher import Direction
from crossfade.prior import Crowd, Law, TaskPrior, refuse_other
from crossfade.risk import AlphaChoice, BlendLaw, least_risk

#: Ways to choose alpha: our own, and Algorithm 1 as its authors ran it or as the paper prints it.
RECIPES = ("exact", "authors", "printed")
#: The alphas that Algorithm 1 tries.
PAPER_GRID = np.linspace(0.0, 1.0, 11)


def convex(
    person: Direction,
    crowd: Crowd,
    *,
    alpha: Array | float | None = None,
    class_prior: Array | float = 0.5,
    recipe: str = "exact",
    n_draws: int = 100,
    random_state: RandomState = None,
) -> Blend:
    """Convex combination of the person's direction and the crowd's (equations 13 and 19).

    Parameters
    ----------
    person : Direction
        What labelled windows say, of one person or of a batch. The paper's recipes want its
        covariance in the form "minus".
    crowd : Crowd
        What the prior says; a batch of people may have one each.
    alpha : float, ndarray of shape (...) or None, default=None
        Weight of the person; None for the one of least expected risk.
    class_prior : float or ndarray of shape (...), default=0.5
        Probability of the second class.
    recipe : {"exact", "authors", "printed"}, default="exact"
        How alpha is chosen, see :class:`crossfade.ConvexBlendClassifier`.
    n_draws : int, default=100
        Draws of Algorithm 1 at each alpha.
    random_state : int, Generator or None, default=None
        Seed of the draws.

    Returns
    -------
    Blend
        The blended directions.

    See Also
    --------
    posterior : A matrix instead of alpha.
    crossfade.ConvexBlendClassifier : The estimator.

    References
    ----------
    Helm, de Silva, Vogelstein, Priebe and Yang (2024), Approximately optimal domain adaptation with
    Fisher's linear discriminant. Mathematics 12(5), 746.
    """
    if not isinstance(crowd, Crowd):
        refuse_other(crowd)
    choice: AlphaChoice | None = None
    if alpha is None and recipe == "exact":
        if crowd.cancels.all():
            alpha = 1.0
        else:
            law = BlendLaw(person, crowd.mean_direction, crowd.psi(), class_prior)
            choice = least_risk(law)
            alpha = np.where(crowd.cancels, 1.0, choice.alpha)
    elif alpha is None:
        law = BlendLaw(person, crowd.mean_direction, crowd.psi(recipe), class_prior)
        choice = least_risk(law, PAPER_GRID, "monte_carlo", n_draws, random_state)
        alpha = choice.alpha
    a = np.broadcast_to(np.asarray(alpha, np.float64), person.length.shape)
    omega = a[..., None] * person.omega + (1.0 - a)[..., None] * crowd.mean_direction
    return Blend(omega, a * person.rank, a, choice=choice)


def convex_rule(
    newcomer: Newcomer,
    law: Law,
    *,
    alpha: float | None = None,
    recipe: str = "exact",
    n_draws: int = 100,
    random_state: RandomState = None,
) -> Rule:
    """Rule of the convex blend."""
    if not newcomer.shows_all:
        return rule_of_crowd(newcomer, law)
    exact, crowd = recipe == "exact", crowd_of(law)
    person = newcomer.direction(law, "oas" if exact else None, "unit" if exact else "minus")
    blend = convex(
        person,
        crowd,
        alpha=alpha,
        class_prior=newcomer.second,
        recipe=recipe,
        n_draws=n_draws,
        random_state=random_state,
    )
    return rule_along(newcomer, law, person, blend.omega, alpha=blend.alpha, dof=blend.dof)


class ConvexBlendClassifier(BlendClassifier):
    r"""The paper's class H: a convex combination of the target's direction and the crowd's.

    .. math:: \omega_\alpha = \alpha\,\omega + (1 - \alpha)\,\mu, \quad
        \alpha = \arg\min_\alpha E[R(\omega_\alpha)]

    Parameters
    ----------
    prior : TaskPrior or None, default=None
        What the crowd knows; None is plain shrinkage-Fisher with ``alpha_ == 1.0``.
    alpha : float or None, default=None
        Weight of the target, 1 for the person alone and 0 for the crowd alone; None chooses the
        one of least expected risk.
    recipe : {"exact", "authors", "printed"}, default="exact"
        How alpha is chosen. "exact" minimises the expected risk over all alphas, without draws.
        The other two are the paper's Algorithm 1: it draws directions at each alpha of 0, 0.1,
        ..., 1, with the covariances that its authors used or those that the paper prints. See
        :meth:`paper`.
    shrinkage : "oas", float or None, default="oas"
        Shrinkage of the target's covariance, see :class:`FisherDiscriminant`.
    n_draws : int, default=100
        Draws of Algorithm 1 at each alpha.
    on_missing_class : {"auto", "error", "prior"}, default="auto"
        What to do if not every class has a labelled sample: "error" refuses, "prior" uses the
        crowd's direction and means, and "auto" does so where the prior has them.
    classes : pair of labels or None, default=None
        The target's labels in the order of the prior's classes, if they have other names.
    class_prior : pair of floats or None, default=None
        Probabilities of the two classes among new samples, in the order of `classes_`; None is
        equal. Others move the threshold, the forecast and the choice of alpha.
    random_state : int, Generator or None, default=None
        Seed of Algorithm 1.

    Attributes
    ----------
    alpha_ : float
        Weight of the target.
    alphas_, risks_ : ndarray of shape (n_alphas,)
        The curve that was minimised; one alpha and NaN where there was nothing to choose.
    projection_, target_projection_, source_projection_ : ndarray of shape (n_features,)
        Unit directions of the blend, of the target alone and of the crowd, in scaled units.
    class_prior_ : ndarray of shape (2,)
        Probabilities of the classes.
    midpoint_ : ndarray of shape (n_features,)
        Middle between the classes, where the threshold lies if these are equally likely, in the
        user's units.
    expected_accuracy_, expected_accuracy_error_ : float
        Forecast for new samples, and its standard error. Priors replay blends at their defaults;
        with other settings the forecast is theory's alone.
    coef_, intercept_ : ndarray of shape (1, n_features) and (1,)
        The rule in the user's units.
    classes_ : ndarray of shape (2,)
        Labels, sorted; the second is positive.
    prior_ : TaskPrior or None
        The prior that was used, sources of `sample_domain` included.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if `X` had any.

    See Also
    --------
    PosteriorBlendClassifier : A matrix instead of alpha.
    choose_alpha : The weight alone.
    blend_directions : The blend of two directions alone.

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

    def __init__(
        self,
        prior: TaskPrior | None = None,
        *,
        alpha: float | None = None,
        recipe: str = "exact",
        shrinkage: str | float | None = "oas",
        n_draws: int = 100,
        on_missing_class: str = "auto",
        classes: Any = None,
        class_prior: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.prior = prior
        self.alpha = alpha
        self.recipe = recipe
        self.shrinkage = shrinkage
        self.n_draws = n_draws
        self.on_missing_class = on_missing_class
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

        It takes the pseudo-inverse of the plain covariance, and at each alpha of its grid averages
        the risk over draws. To get the paper's numbers, make the prior in the same way:
        ``TaskPrior.from_tasks(tasks, FisherDiscriminant(shrinkage=None), None)``.

        Parameters
        ----------
        prior : TaskPrior or None, default=None
            What the crowd knows, in raw units.
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
        return cls(prior, recipe=recipe, shrinkage=None, n_draws=n_draws, random_state=random_state)

    def _check_own_parameters(self, prior: TaskPrior | None) -> None:
        if self.alpha is not None:
            check_number("alpha", self.alpha, 0.0, 1.0)
        check_choice("recipe", self.recipe, RECIPES)

    def _noise_form(self) -> str:
        return "unit" if self.recipe == "exact" else "minus"

    def _played(self, prior: TaskPrior | None) -> str | None:
        usual = self.alpha is None and self.recipe == "exact" and self.shrinkage == "oas"
        return "convex" if usual else None

    def _blend(self, person: Direction, prior: TaskPrior) -> Blend:
        crowd = prior.crowd
        if self.alpha is None and self.recipe == "exact" and crowd.cancels:
            _warn_of_cancelling(prior, crowd)
        elif self.alpha != 1.0:
            # Without a direction of the crowd there is nothing to blend with.
            _ = prior.mean_direction
        return self._blend_with(person, crowd)

    def _batched(self, crowd: Crowd | None) -> bool:
        # Directions that cancel are warned of, or refused, one by one.
        return self.recipe == "exact" and (crowd is None or not crowd.cancels.any())

    def _blend_with(self, person: Direction, crowd: Crowd) -> Blend:
        return convex(
            person,
            crowd,
            alpha=self.alpha,
            class_prior=self._given_prior(),
            recipe=self.recipe,
            n_draws=self.n_draws,
            random_state=self.random_state,
        )

    def _set_blend(self, blend: Blend) -> None:
        choice = blend.choice
        self.alphas_ = np.array([self.alpha_]) if choice is None else choice.alphas
        self.risks_ = np.array([np.nan]) if choice is None else choice.risks


def _warn_of_cancelling(prior: TaskPrior, crowd: Crowd) -> None:
    remedy = "Check that all sources order their classes alike"
    if crowd.release_noise:
        remedy = "The noise of its release hides them: ask for more tasks or epsilon"
    warnings.warn(
        f"The directions of the prior's {prior.n_tasks} tasks cancel out (mean length "
        f"{float(crowd.resultant_length):.3f}), so that only the target's own direction is used. "
        f"{remedy}, or use PosteriorBlendClassifier.",
        CancellingSourcesWarning,
        # From here to who called fit or partial_fit.
        stacklevel=7,
    )

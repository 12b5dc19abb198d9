"""The crowd as a distribution, and a matrix instead of alpha (equations 21 to 24).

.. math:: \\omega = m + T (T + \\Sigma_\\omega)^{-1} (\\hat\\omega - m), \\quad
    \\Sigma_\\omega = a S^{-1}

Directions on which the crowd agrees come from the crowd, directions on which people differ come
from the person. The strength l widens the crowd's scatter T to l T. With T = L L', whitened by L,
noise and scatter share their eigenvectors with G = L' S L, so that one decomposition gives the
blend for every strength; S is never inverted, and may be singular.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from crossfade._typing import Array
from crossfade._validate import check_number
from crossfade.blend._along import crowd_of, rule_along, rule_of_crowd
from crossfade.blend._classifier import BlendClassifier
from crossfade.blend._newcomer import Newcomer
from crossfade.blend._rule import Rule
from crossfade.blend._verb import Blend
from crossfade.fisher import Direction, Spectrum, joint_basis, truncate
from crossfade.prior import Crowd, Law, TaskPrior, refuse_other

#: Gain in log evidence that it takes to distrust the crowd's scatter.
CONTRADICTION = 3.0
#: Strength up to which, and down to one over it, a blend is solved for directly: beyond, rounding
#: makes it singular, or leaves no digit of the person.
_DIRECT = 1e6
#: Largest strength that differs from any larger one; one over it differs from none.
_STRONGEST = 1e60
#: Strengths that "auto" and "risk" choose from, before they refine.
STRONGER = np.logspace(0.0, 6.0, 61)
ALL = np.concatenate([[0.0], np.logspace(-4.0, 6.0, 101)])


def posterior(person: Direction, crowd: Crowd, strength: str | float = "auto") -> Blend:
    """Posterior mean of the direction, given the person's own and the crowd's law (equation 21).

    Parameters
    ----------
    person : Direction
        What labelled windows say, of one person or of a batch.
    crowd : Crowd
        What the prior says; a batch of people may have one each.
    strength : {"auto", "risk"} or float, default="auto"
        How far the crowd's scatter is widened: a number; "auto" is 1, or that of most evidence
        where the person contradicts the crowd; "risk" has the least mean risk.

    Returns
    -------
    Blend
        The blended directions.

    See Also
    --------
    convex : The paper's blend, with a number instead of the matrix.
    crossfade.PosteriorBlendClassifier : The estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade import TaskPrior
    >>> from crossfade.blend import posterior
    >>> from crossfade.fisher import ClassMoments, learn_direction
    >>> rng = np.random.default_rng(0)
    >>> prior = TaskPrior.from_projections(rng.normal([3, 0, 0], 1, (30, 3)), normalize=True)
    >>> label = np.repeat([0, 1], 4)
    >>> X = rng.normal(size=(100, 8, 3)) + label[:, None] * [2.0, 0.0, 0.0]
    >>> people = learn_direction(ClassMoments.of(X, label), scale=prior.feature_scale)
    >>> posterior(people, prior.crowd).omega.shape
    (100, 3)
    """
    if strength == np.inf:
        alpha = person.rank / person.sigma.n_features
        return Blend(person.omega, person.rank, alpha, np.full(person.length.shape, np.inf))
    given = 1.0 if isinstance(strength, str) and strength == "auto" else check_strength(strength)
    strength = strength if isinstance(strength, str) else given
    if not isinstance(crowd, Crowd):
        refuse_other(crowd)
    if strength == "risk" or crowd.isotropic or given > _DIRECT or 0.0 < given < 1.0 / _DIRECT:
        path = path_of(person, crowd)
        return path.at(_chosen(path, strength, person))
    try:
        blend, wanting = _direct(person, crowd, given)
    except np.linalg.LinAlgError:
        # Singular but for rounding: the eigenvectors know which directions are left.
        path = path_of(person, crowd)
        return path.at(_chosen(path, strength, person))
    if strength != "auto" or not wanting.any():
        return blend
    if wanting.ndim != 1:
        path = path_of(person, crowd)
        return path.at(_chosen(path, strength, person))
    # Only those whom the crowd's scatter does not cover need all strengths.
    which = np.flatnonzero(wanting)
    path = path_of(*_some(person, crowd, which))
    wider = path.at(_chosen(path, strength, person))
    for whole, part in zip(blend[:4], wider[:4], strict=True):
        whole[which] = part  # type: ignore[index]
    return blend


def posterior_rule(newcomer: Newcomer, law: Law, *, strength: str | float = "auto") -> Rule:
    """Rule of the posterior blend."""
    if not newcomer.shows_all:
        return rule_of_crowd(newcomer, law)
    person = newcomer.direction(law)
    blend = posterior(person, crowd_of(law), strength)
    used = np.asarray(blend.strength)
    return rule_along(
        newcomer, law, person, blend.omega, alpha=blend.alpha, dof=blend.dof, strength=used
    )


def check_strength(strength: object) -> float:
    """Strength as a number, 1 for the words; refuses what is neither."""
    if isinstance(strength, str) and strength in ("auto", "risk"):
        return 1.0
    number = check_number("strength", strength, 0.0, or_words="'auto', 'risk'")
    # Beyond these it is none, or all there can be, and products with it would be no numbers.
    return min(number, _STRONGEST) if number > 1.0 / _STRONGEST else 0.0


def path_of(person: Direction, crowd: Crowd) -> Path:
    """Blends of all strengths (equation 22)."""
    sigma, scatter = person.sigma, crowd.scatter
    away = person.omega - crowd.mean
    mean = np.broadcast_to(crowd.mean, person.omega.shape)
    if crowd.isotropic:
        # A multiple of the identity shares its eigenvectors with Sigma. Outside of Sigma's basis
        # only two directions matter: those of (own - crowd) and of the crowd.
        basis, values = joint_basis(sigma, away, mean)
        floor = scatter.floor
        root = np.sqrt(floor)[..., None]
        return Path(
            mean=mean,
            values=floor[..., None] * values,
            own=np.matvec(basis.mT, away) / root,
            noise=person.noise,
            back=root[..., None] * basis,
            n_rest=sigma.n_features - basis.shape[-1],
            rest=np.broadcast_to(floor * sigma.floor, person.noise.shape),
        )
    root = crowd.root
    crossed = sigma.basis.mT @ root
    floor = sigma.floor * (crossed.shape[-2] < crossed.shape[-1])
    inner = (crossed.mT * (sigma.values - floor[..., None])[..., None, :]) @ crossed
    variances = crowd.variances
    inner += (floor[..., None] * variances)[..., None] * np.eye(variances.shape[-1])
    values, turn = np.linalg.eigh(inner)
    return Path(
        mean=mean,
        values=np.maximum(values, 0.0),
        own=np.matvec(turn.mT, np.matvec(root.mT, away) / variances),
        noise=person.noise,
        back=root @ turn,
        n_rest=0,
        rest=np.zeros_like(person.noise),
    )


def _direct(person: Direction, crowd: Crowd, strength: float) -> tuple[Blend, NDArray[np.bool_]]:
    """Blend of one strength (equation 21), and whether the evidence wants a larger one.

    G is ``diag(level) + crossed' diag(above) crossed``: with fewer rows than columns in `crossed`
    its inverse is that of Woodbury, at the cost of the smaller side.
    """
    sigma, mean, root = person.sigma, crowd.mean, crowd.root
    n_features = mean.shape[-1]
    if strength == 0.0:
        none = np.zeros(person.noise.shape)
        omega = np.broadcast_to(mean, person.omega.shape)
        return Blend(omega, none, none, none), none > 0.0
    variances = crowd.variances
    crossed = sigma.basis.mT @ root
    n_rows = crossed.shape[-2]
    # With as many eigenvectors as features there is nothing outside of them.
    floor = sigma.floor[..., None] * (n_rows < n_features)
    above = (sigma.values - floor)[..., None]
    coordinates = np.matvec(root.mT, person.omega - mean) / variances
    noise = person.noise / strength
    diagonal = floor * variances + noise[..., None]
    if n_rows < n_features:
        lifted = np.sqrt(above) * crossed
        scaled = lifted / diagonal[..., None, :]
        solved = np.linalg.solve(scaled @ lifted.mT + np.eye(n_rows), scaled)
        kept = coordinates / diagonal
        kept = kept - np.matvec(scaled.mT, np.matvec(solved, coordinates))
        inverse_trace = (1.0 / diagonal).sum(-1) - (scaled * solved).sum((-2, -1))
    else:
        # The covariance may be one for all people: that of the crowd.
        inner = crossed.mT @ (above * crossed) + diagonal[..., None] * np.eye(n_features)
        inverse = np.linalg.inv(inner)
        kept = np.matvec(inverse, coordinates)
        inverse_trace = np.einsum("...ii->...", inverse)
    pulled = coordinates - noise[..., None] * kept
    dof = n_features - noise * inverse_trace
    omega = mean + np.matvec(root, pulled)
    # Slope of the log evidence in the strength, at this strength.
    wanting = np.vecdot(pulled, pulled) > dof
    alpha = np.clip(dof / n_features, 0.0, 1.0)
    return Blend(omega, dof, alpha, np.full(noise.shape, strength)), wanting


def _some(person: Direction, crowd: Crowd, which: NDArray[np.intp]) -> tuple[Direction, Crowd]:
    """Some people of a batch, and their crowds."""
    few = person._replace(
        omega=person.omega[which],
        length=person.length[which],
        noise=person.noise[which],
        sigma=person.sigma.of(which, len(person.length)),
    )
    return few, crowd.of(which)


class Path(NamedTuple):
    """Blends of all strengths (equation 22), in coordinates that make them elementwise."""

    mean: Array  # (..., d): mean m of the crowd
    values: Array  # (..., size): eigenvalues of G
    own: Array  # (..., size): coordinates of (own - crowd)
    noise: Array  # (...): noise a of the person's direction
    back: Array  # (..., d, size): from coordinates back to directions
    n_rest: int  # further coordinates, in which (own - crowd) is zero
    rest: Array  # (...): their eigenvalue

    def weights(self, strength: Array) -> Array:
        """Eigenvalues of the matrix that multiplies (own - crowd)."""
        pull = strength[..., None] * self._values(strength)
        return pull / (pull + self.noise[..., None])

    def _values(self, strength: Array) -> Array:
        """Variances; for a huge strength without what rounding alone can have made."""
        return truncate(self.values, 1) if strength.max(initial=0.0) > _DIRECT else self.values

    def at(self, strength: Array) -> Blend:
        """Blend of one strength for each person."""
        weights = self.weights(strength)
        omega = self.mean + np.matvec(self.back, weights * self.own)
        pull = strength * self.rest
        dof = weights.sum(-1) + self.n_rest * pull / (pull + self.noise)
        return Blend(omega, dof, np.minimum(dof / omega.shape[-1], 1.0), strength)

    def evidence(self, strengths: Array) -> Array:
        """Log density of the target's direction at each strength (equation 23), but a constant."""
        values = self._values(strengths)
        spread = strengths[..., None] * values[..., None, :] + self.noise[..., None, None]
        fit = (values * self.own**2)[..., None, :] / spread
        rest = np.log(strengths * self.rest[..., None] + self.noise[..., None])
        evidence: Array = -0.5 * ((np.log(spread) + fit).sum(-1) + self.n_rest * rest)
        return evidence

    def risks(self, strengths: Array, sigma: Spectrum, length: Array) -> Array:
        """Mean risk of the blend of each strength over the posterior (equation 24)."""
        drift = np.matvec(self.back.mT, sigma.apply(self.mean))
        level = np.vecdot(self.mean, sigma.apply(self.mean))
        pull = strengths[:, None] * self.values[..., None, :]
        blends = pull / (pull + self.noise[..., None, None]) * self.own[..., None, :]
        best = self.weights(np.ones_like(self.noise)) * self.own
        seen = drift[..., None, :] + self.values[..., None, :] * blends
        gap = level[..., None] + np.vecdot(drift, best)[..., None]
        gap = gap + (blends * (drift + self.values * best)[..., None, :]).sum(-1)
        variance = level[..., None] + ((drift[..., None, :] + seen) * blends).sum(-1)
        doubt = self.noise[..., None] / (self.values + self.noise[..., None])
        doubt = (seen**2 * doubt[..., None, :]).sum(-1)
        scale = length[..., None] ** 2
        score = length[..., None] * gap / np.sqrt(np.maximum(variance + scale * doubt, 1e-300))
        risks: Array = ndtr(-score)
        return risks


def _chosen(path: Path, strength: str | float, person: Direction) -> Array:
    """Strength for each person: given, of most evidence from 1 up, or of least risk."""
    if strength == "auto":
        evidence = path.evidence(STRONGER)
        contradicted = evidence.max(-1) - evidence[..., 0] > CONTRADICTION
        return np.where(contradicted, _peak(STRONGER, evidence), 1.0)
    if strength == "risk":
        risks = path.risks(ALL, person.sigma, person.length)
        # Of equals, between which rounding would decide, the least.
        least = risks.min(-1, keepdims=True)
        return _peak(ALL, -np.where(risks <= least + 1e-9, least, risks))
    return np.full(path.noise.shape, float(strength))


def _peak(grid: Array, heights: Array) -> Array:
    """Where a curve on a grid that is even in the logarithm is highest, by a parabola."""
    place = heights.argmax(-1)
    first = 0 if grid[0] > 0.0 else 1
    inside = np.clip(place, first + 1, grid.size - 2)[..., None]
    left, middle, right = (
        np.take_along_axis(heights, inside + shift, -1)[..., 0] for shift in (-1, 0, 1)
    )
    bend = left - 2.0 * middle + right
    shift = np.where(bend < 0.0, 0.5 * (left - right) / np.where(bend < 0.0, bend, 1.0), 0.0)
    step = np.log(grid[-1] / grid[-2])
    refined = grid[inside[..., 0]] * np.exp(np.clip(shift, -0.5, 0.5) * step)
    peak: Array = np.where(place == inside[..., 0], refined, grid[place])
    return peak


class PosteriorBlendClassifier(BlendClassifier):
    r"""Beyond the paper: the crowd as a distribution, and a matrix instead of alpha.

    .. math:: \omega = m + T (T + \Sigma_\omega)^{-1} (\hat\omega - m)

    Directions on which the crowd agrees come from the crowd, directions on which people differ come
    from the person.

    Parameters
    ----------
    prior : TaskPrior or None, default=None
        What the crowd knows; None is plain shrinkage-Fisher with ``alpha_ == 1.0``.
    strength : {"auto", "risk"} or float, default="auto"
        How far the crowd's scatter is widened: 0 leaves the crowd alone, 1 takes the prior at its
        word, infinity leaves the person alone. "auto" is 1, or more where the target lies
        further from the crowd than scatter and noise allow; "risk" has the least mean risk.
    shrinkage : "oas", float or None, default="oas"
        Shrinkage of the target's covariance, see :class:`FisherDiscriminant`.
    on_missing_class : {"auto", "error", "prior"}, default="auto"
        What to do if not every class has a labelled sample: "error" refuses, "prior" uses the
        crowd's direction and means, and "auto" does so where the prior has them.
    classes : pair of labels or None, default=None
        The target's labels in the order of the prior's classes, if they have other names.
    class_prior : pair of floats or None, default=None
        Probabilities of the two classes among new samples, in the order of `classes_`; None is
        equal. Others move the threshold and the forecast.
    in_a_row : bool, default=True
        Whether the labelled samples of a class follow each other in time, as in a calibration;
        False for samples from all over a session.

    Attributes
    ----------
    alpha_ : float
        Effective weight of the target: the average eigenvalue of the matrix.
    strength_ : float
        The strength that was used.
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

    def __init__(
        self,
        prior: TaskPrior | None = None,
        *,
        strength: str | float = "auto",
        shrinkage: str | float | None = "oas",
        on_missing_class: str = "auto",
        classes: Any = None,
        class_prior: ArrayLike | None = None,
        in_a_row: bool = True,
    ) -> None:
        self.prior = prior
        self.strength = strength
        self.shrinkage = shrinkage
        self.on_missing_class = on_missing_class
        self.classes = classes
        self.class_prior = class_prior
        self.in_a_row = in_a_row

    def _check_own_parameters(self, prior: TaskPrior | None) -> None:
        if not (isinstance(self.strength, str) and self.strength == "auto"):
            check_strength(self.strength)

    def _played(self, prior: TaskPrior | None) -> str | None:
        return "posterior" if (self.strength, self.shrinkage) == ("auto", "oas") else None

    def _blend(self, person: Direction, prior: TaskPrior) -> Blend:
        return self._blend_with(person, prior.crowd)

    def _blend_with(self, person: Direction, crowd: Crowd) -> Blend:
        return posterior(person, crowd, self.strength)

    def _set_blend(self, blend: Blend) -> None:
        if blend.strength is None:
            self.strength_ = np.inf if self.alpha_ == 1.0 else 0.0
        else:
            self.strength_ = float(blend.strength)

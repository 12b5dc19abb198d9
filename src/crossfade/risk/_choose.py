"""The alpha of least expected risk (equation 19)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crossfade._typing import Array, Places, RandomState
from crossfade._validate import (
    as_generator,
    check_alphas,
    check_choice,
    check_counts,
    check_covariance,
    check_finite,
    check_integer,
    check_spectrum,
    unit,
)
from crossfade.fisher import _spectrum
from crossfade.fisher._direction import direction_of
from crossfade.fisher._spectrum import joint_basis
from crossfade.prior._crowd import PSI_FORMS
from crossfade.risk._error_rate import METHODS, check_class_prior, threshold
from crossfade.risk._inversion import integrated_risk
from crossfade.risk._law import BlendLaw, curve, hidden_gap, sampled_curve

if TYPE_CHECKING:
    from crossfade.prior import TaskPrior

#: Points at which a continuous minimum is first bracketed.
_COARSE = np.linspace(0.0, 1.0, 21)
#: Risks closer than this differ by rounding.
_TIE = 1e-12
#: How often the bracket is then cut to a quarter: next to 0 the curve can be steep.
_ZOOMS = 2


class AlphaChoice(NamedTuple):
    """Weight of the target that has the least expected risk.

    Attributes
    ----------
    alpha : ndarray of shape (...)
        Weight of the target: 1 is the person alone, 0 the crowd alone.
    risk : ndarray of shape (...)
        Expected error rate there.
    error : ndarray of shape (...)
        Error of that number.
    alphas : ndarray of shape (n_alphas,)
        Where the curve was evaluated.
    risks : ndarray of shape (..., n_alphas)
        The curve.
    """

    alpha: Array
    risk: Array
    error: Array
    alphas: Array
    risks: Array


def least_risk(
    law: BlendLaw,
    alphas: ArrayLike | None = None,
    method: str = "deterministic",
    n_draws: int = 100,
    random_state: RandomState = None,
) -> AlphaChoice:
    """Minimise the expected risk over a grid, or over all alphas (equation 19)."""
    check_choice("method", method, METHODS)
    if method == "monte_carlo":
        n_draws = check_integer("n_draws", n_draws, 2)
        grid = np.linspace(0.0, 1.0, 11) if alphas is None else check_alphas(alphas)
        risks, errors = sampled_curve(law, grid, n_draws, as_generator(random_state))
        return _best(grid, risks, errors)
    evaluate = dense_curve if hidden_gap(law) else curve
    if alphas is not None:
        grid = check_alphas(alphas)
        return _best(grid, *evaluate(law, grid))
    return _refined(law, _best(_COARSE, *evaluate(law, _COARSE)), evaluate)


def dense_curve(law: BlendLaw, alphas: Array) -> tuple[Array, Array]:
    """What `curve` gives, also where the classes differ without any variance."""
    law = within_span(law)
    person, mu = law.person, law.mu
    own, crowd = alphas[..., None], 1.0 - alphas[..., None]
    inverse = person.sigma.inverse()
    if np.any(person.cross):
        # Equation 5 by its projection: added up, its terms could be nothing but rounding.
        root = inverse.root().dense()
        root = root - person.omega[..., :, None] * np.vecmat(person.omega, root)[..., None, :]
        target = person.noise[..., None, None] * (root @ root.mT)
    else:
        target = person.noise[..., None, None] * inverse.dense()
        target = target + person.radial[..., None, None] * _outer(person.omega)
    identity, along = (np.asarray(part)[..., None, None] for part in law.psi)
    source = identity * np.eye(mu.shape[-1]) + along * _outer(mu)
    covariance = (own**2)[..., None] * target[..., None, :, :]
    covariance = covariance + (crowd**2)[..., None] * source[..., None, :, :]
    values, vectors = np.linalg.eigh((covariance + covariance.mT) / 2.0)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    means = own * person.omega[..., None, :] + crowd * mu[..., None, :]
    nu, sigma = person.nu[..., None, :], person.sigma.dense()[..., None, :, :]
    prior = np.asarray(law.class_prior)[..., None]
    moved = threshold(np.vecdot(means, nu), np.vecdot(means, np.matvec(sigma, means)), prior)
    return integrated_risk(means, factor, nu, sigma, moved, prior)


def within_span(law: BlendLaw) -> BlendLaw:
    """The same law in as few dimensions as Sigma, the gap and the crowd's direction take.

    Outside of them Sigma has its floor, which is zero here, so that nothing there is ever seen.
    """
    person, sigma = law.person, law.person.sigma
    if sigma.n_outside <= 2 or sigma.floor.any():
        return law
    mu = np.broadcast_to(law.mu, person.omega.shape)
    basis, values = joint_basis(sigma, person.nu, mu)
    return law.turned(basis, values)


def _outer(vectors: Array) -> Array:
    outer: Array = vectors[..., :, None] * vectors[..., None, :]
    return outer


def _best(grid: Array, risks: Array, errors: Array) -> AlphaChoice:
    place = _least(risks)
    take = place[..., None]
    risk = np.take_along_axis(risks, take, -1)[..., 0]
    error = np.take_along_axis(errors, take, -1)[..., 0]
    return AlphaChoice(grid[place], risk, error, grid, risks)


def _least(risks: Array) -> Places:
    """Place of the least risk; between equals it is the last, the person's own."""
    equal = risks <= risks.min(-1, keepdims=True) + _TIE
    place: Places = risks.shape[-1] - 1 - equal[..., ::-1].argmax(-1)
    return place


def _refined(
    law: BlendLaw,
    coarse: AlphaChoice,
    evaluate: Callable[[BlendLaw, Array], tuple[Array, Array]],
) -> AlphaChoice:
    """Continuous minimum: ever finer grids around the coarse one's, then a parabola."""
    alpha, spacing = coarse.alpha, np.asarray(_COARSE[1])
    for _ in range(_ZOOMS):
        low, high = np.maximum(alpha - spacing, 0.0), np.minimum(alpha + spacing, 1.0)
        local = low[..., None] + (high - low)[..., None] * np.linspace(0.0, 1.0, 9)
        risks, errors = evaluate(law, local)
        place = _least(risks)
        alpha = np.take_along_axis(local, place[..., None], -1)[..., 0]
        spacing = (high - low) / (local.shape[-1] - 1)
    middle = np.clip(place, 1, local.shape[-1] - 2)[..., None]
    left, centre, right = (
        np.take_along_axis(risks, middle + shift, -1)[..., 0] for shift in (-1, 0, 1)
    )
    bend = left - 2.0 * centre + right
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(bend > 0.0, 0.5 * (left - right) / bend, 0.0)
    shift = np.clip(shift, -1.0, 1.0)
    at = np.take_along_axis(local, middle, -1)[..., 0] + shift * spacing
    at = np.clip(at, 0.0, 1.0)
    risks_there, errors_there = evaluate(law, at[..., None])
    risk = np.take_along_axis(risks, place[..., None], -1)[..., 0]
    error = np.take_along_axis(errors, place[..., None], -1)[..., 0]
    better = risks_there[..., 0] < risk - _TIE
    return coarse._replace(
        alpha=np.where(better, at, alpha),
        risk=np.where(better, risks_there[..., 0], risk),
        error=np.where(better, errors_there[..., 0], error),
    )


def choose_alpha(
    prior: TaskPrior,
    *,
    half_gap: ArrayLike,
    covariance: ArrayLike,
    n_samples: ArrayLike,
    shrinkage: ArrayLike = 0.0,
    psi: str = "tangent",
    alphas: ArrayLike | None = None,
    class_prior: ArrayLike | None = None,
    method: str = "deterministic",
    n_draws: int = 100,
    random_state: RandomState = None,
) -> AlphaChoice:
    r"""Weight of the target with the least expected risk.

    The target's direction is ``pinv(covariance) @ half_gap``, scaled to unit length, with the
    covariance of equation 5; the crowd's is the prior's mean direction with its Psi.

    Parameters
    ----------
    prior : TaskPrior
        What the sources know.
    half_gap : array-like of shape (..., n_features)
        Half the difference of the target's class means, in the prior's scaled units.
    covariance : array-like of shape (..., n_features, n_features)
        The target's covariance within the classes, as used for its direction.
    n_samples : float or (float, float)
        Labelled samples of the target: in total, taken as balanced, or of each class.
    shrinkage : float or array-like of shape (...), default=0.0
        How far `covariance` was shrunk: 0 for a plain estimate, 1 where it is known.
    psi : {"tangent", "authors", "printed"}, default="tangent"
        Which covariance of the mean direction, see :meth:`TaskPrior.standard_error`.
    alphas : array-like of shape (n_alphas,) or None, default=None
        The grid to choose from; None for the continuous minimum.
    class_prior : pair of floats or None, default=None
        Probabilities of the first and the second class among new samples; None is equal.
    method : {"deterministic", "monte_carlo"}, default="deterministic"
        As in :func:`expected_risk`. "monte_carlo" needs a grid, and takes 0, 0.1, ..., 1 if there
        is none.
    n_draws : int, default=100
        Draws of "monte_carlo" for each alpha, B in the paper.
    random_state : int, Generator or None, default=None
        Seed of "monte_carlo".

    Returns
    -------
    AlphaChoice
        The fields `alpha`, `risk`, `error`, `alphas` and `risks`.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade import TaskPrior, choose_alpha
    >>> sources = np.array([[1.0, 0.1], [1.0, -0.2], [1.0, 0.3]])
    >>> prior = TaskPrior.from_projections(sources, normalize=True)
    >>> choice = choose_alpha(prior, half_gap=[0.9, 0.5], covariance=np.eye(2), n_samples=10)
    >>> bool(0.0 < choice.alpha < 1.0)
    True
    """
    crowd = getattr(prior, "crowd", None)
    if crowd is None:
        raise TypeError(f"prior must be a TaskPrior; got {type(prior).__name__}.")
    nu = check_finite("half_gap", half_gap, 1, prior.n_features)
    sigma = check_covariance("covariance", covariance, prior.n_features)
    counts = check_counts(n_samples)
    check_choice("psi", psi, PSI_FORMS)
    shrunk = check_finite("shrinkage", shrinkage, 0)
    if shrunk.size and (shrunk.min() < 0.0 or shrunk.max() > 1.0):
        raise ValueError(f"shrinkage must be a number from 0 to 1; got {shrinkage!r}.")
    values, basis = np.linalg.eigh(sigma)
    values = _spectrum.truncate(check_spectrum("covariance", values), 1)
    spectrum = _spectrum.Spectrum(values, basis, np.zeros(sigma.shape[:-2]))
    if nu.ndim > 1 or sigma.ndim > 2:
        batch = np.broadcast_shapes(nu.shape[:-1], sigma.shape[:-2])
        nu = np.broadcast_to(nu, (*batch, prior.n_features))
    person = direction_of(spectrum, nu, counts, shrunk)
    law = BlendLaw(person, prior.mean_direction, crowd.psi(psi), check_class_prior(class_prior))
    return least_risk(law, alphas, method, n_draws, random_state)


def blend_directions(target: ArrayLike, source: ArrayLike, alpha: ArrayLike) -> Array:
    r"""Convex combination of two unit directions, of unit length again.

    .. math:: \omega_\alpha \propto \alpha\omega + (1-\alpha)\mu

    Parameters
    ----------
    target : array-like of shape (..., n_features)
        The person's own direction; brought to unit length.
    source : array-like of shape (..., n_features)
        The crowd's direction; brought to unit length.
    alpha : float or array-like of shape (...)
        Weight of the target: 1 is the person alone, 0 the crowd alone.

    Returns
    -------
    ndarray of shape (..., n_features)
        Unit directions.

    Examples
    --------
    >>> from crossfade import blend_directions
    >>> blend_directions([1.0, 0.0], [0.0, 2.0], 0.5).round(3)
    array([0.707, 0.707])
    """
    own = unit("target", check_finite("target", target, 1))
    crowd = unit("source", check_finite("source", source, 1, own.shape[-1]))
    weight = check_alphas(np.atleast_1d(np.asarray(alpha)), name="alpha").reshape(np.shape(alpha))
    blend = weight[..., None] * own + (1.0 - weight)[..., None] * crowd
    return unit("the blend of opposite directions at this alpha", blend)

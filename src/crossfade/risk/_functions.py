"""Directions and their uncertainty in; error rates, their curve in alpha and its minimum out.

Equation numbers refer to ``docs/mathematics.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from crossfade._validate import (
    RandomState,
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
from crossfade.fisher._direction import target_noise
from crossfade.prior._crowd import PSI_FORMS, DirectionSums
from crossfade.risk._choose import METHODS, AlphaChoice, least_risk
from crossfade.risk._inversion import integrated_risk
from crossfade.risk._law import BlendLaw
from crossfade.risk._proportions import check_class_prior, error_rate, threshold

if TYPE_CHECKING:
    from crossfade.prior._task_prior import TaskPrior

Array = NDArray[np.float64]


class ExpectedRisk(NamedTuple):
    """Expected error rate and the error of that number.

    Attributes
    ----------
    risk : ndarray of shape (...)
        Expected error rate.
    error : ndarray of shape (...)
        Bound of the numerical error, or standard error of a Monte Carlo average.
    """

    risk: Array
    error: Array


class RiskCurve(NamedTuple):
    """Expected error rate at every alpha and the error of those numbers.

    Attributes
    ----------
    risks : ndarray of shape (..., n_alphas)
        Expected error rates.
    errors : ndarray of shape (..., n_alphas)
        Bound of the numerical error, or standard error of a Monte Carlo average.
    """

    risks: Array
    errors: Array


def conditional_risk(
    omega: ArrayLike,
    *,
    nu: ArrayLike,
    sigma: ArrayLike,
    class_prior: ArrayLike | None = None,
) -> Array:
    r"""Error rate of ``omega @ x > 0`` on two balanced Gaussians at ``+nu`` and ``-nu``.

    Equation 14:

    .. math:: R(\omega) = \Phi(-\omega^T\nu / \sqrt{\omega^T\Sigma\omega})

    On classes of unequal proportions the threshold is the best one for the direction (equations 20
    and 41); a direction without a positive gap then answers the likelier class always. That of
    :func:`expected_risk` belongs to the mean direction, so that it is no average of this.

    Parameters
    ----------
    omega : array-like of shape (..., n_features)
        Directions to judge; any positive length gives the same answer.
    nu : array-like of shape (..., n_features)
        Half the gap between the class means.
    sigma : array-like of shape (..., n_features, n_features)
        Covariance within the classes.
    class_prior : pair of floats or None, default=None
        Probabilities of the first class, at ``-nu``, and of the second; None is equal.

    Returns
    -------
    ndarray of shape (...)
        Error rates.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade import conditional_risk
    >>> conditional_risk([[1.0, 0.0], [0.0, 1.0]], nu=[1.0, 0.0], sigma=np.eye(2)).round(4)
    array([0.1587, 0.5   ])
    """
    omega = check_finite("omega", omega, 1)
    n_features = omega.shape[-1]
    nu = check_finite("nu", nu, 1, n_features)
    sigma = check_covariance("sigma", sigma, n_features)
    gap = np.vecdot(omega, nu)
    variance = np.vecdot(omega, np.matvec(sigma, omega))
    if variance.size and variance.min() < 0.0:
        check_spectrum("sigma", np.linalg.eigvalsh(sigma))
    share = check_class_prior(class_prior)
    if share is not None:
        return error_rate(gap, variance, threshold(gap, variance, share), share)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = gap / np.sqrt(np.maximum(variance, 0.0))
    # No variance and no gap: the rule answers at random.
    return np.asarray(ndtr(-np.where(np.isnan(score), 0.0, score)))


def expected_risk(
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    nu: ArrayLike,
    sigma: ArrayLike,
    class_prior: ArrayLike | None = None,
    method: str = "deterministic",
    n_draws: int = 100,
    random_state: RandomState = None,
) -> ExpectedRisk:
    r"""Mean error rate of a direction that is normal with a given mean and covariance.

    Equation 15:

    .. math:: E[R(\omega)] = P(\omega^T x < 0), \quad
        \omega \sim N(m, C), \quad x \sim N(\nu, \Sigma)

    On classes of unequal proportions the threshold is that of the mean direction, since a rule
    cannot know how far its own direction is from it (equation 42).

    Parameters
    ----------
    mean : array-like of shape (..., n_features)
        Mean m of the direction.
    covariance : array-like of shape (..., n_features, n_features)
        Covariance C of the direction; may be singular.
    nu : array-like of shape (..., n_features)
        Half the gap between the class means.
    sigma : array-like of shape (..., n_features, n_features)
        Covariance within the classes; may be singular.
    class_prior : pair of floats or None, default=None
        Probabilities of the first class, at ``-nu``, and of the second; None is equal.
    method : {"deterministic", "monte_carlo"}, default="deterministic"
        Exact up to `error` by inverting the characteristic function (equation 16), or the average
        over draws of Algorithm 1's inner loop.
    n_draws : int, default=100
        Draws of "monte_carlo", B in the paper.
    random_state : int, Generator or None, default=None
        Seed of "monte_carlo".

    Returns
    -------
    ExpectedRisk
        The fields `risk` and `error`.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade import expected_risk
    >>> answer = expected_risk([1.0, 0.0], 0.1 * np.eye(2), nu=[1.0, 0.0], sigma=np.eye(2))
    >>> float(answer.risk.round(4)), bool(answer.error < 1e-6)
    (0.1734, True)
    """
    mean = check_finite("mean", mean, 1)
    n_features = mean.shape[-1]
    covariance = check_covariance("covariance", covariance, n_features)
    nu = check_finite("nu", nu, 1, n_features)
    sigma = check_covariance("sigma", sigma, n_features)
    check_choice("method", method, METHODS)
    values, vectors = np.linalg.eigh(covariance)
    factor = vectors * np.sqrt(check_spectrum("covariance", values))[..., None, :]
    check_spectrum("sigma", np.linalg.eigvalsh(sigma))
    share = check_class_prior(class_prior)
    if method == "monte_carlo":
        return _averaged_risk(mean, factor, nu, sigma, share, n_draws, random_state)
    return ExpectedRisk(*integrated_risk(mean, factor, nu, sigma, share))


def _averaged_risk(
    mean: Array,
    factor: Array,
    nu: Array,
    sigma: Array,
    share: float | None,
    n_draws: int,
    random_state: RandomState,
) -> ExpectedRisk:
    n_draws = check_integer("n_draws", n_draws, 2)
    rng = as_generator(random_state)
    batch = np.broadcast_shapes(mean.shape[:-1], factor.shape[:-2])
    noise = rng.standard_normal((n_draws, *batch, mean.shape[-1]))
    draws = mean + np.matvec(factor, noise)
    if share is None:
        risks = conditional_risk(draws, nu=nu, sigma=sigma)
    else:
        within = np.vecdot(mean, np.matvec(sigma, mean))
        moved = threshold(np.vecdot(mean, nu), within, share)
        variance = np.vecdot(draws, np.matvec(sigma, draws))
        risks = error_rate(np.vecdot(draws, nu), variance, moved, share)
    return ExpectedRisk(risks.mean(0), risks.std(0, ddof=1) / np.sqrt(n_draws))


def risk_curve(
    alphas: ArrayLike,
    *,
    target: tuple[ArrayLike, ArrayLike],
    source: tuple[ArrayLike, ArrayLike],
    nu: ArrayLike,
    sigma: ArrayLike,
    class_prior: ArrayLike | None = None,
    method: str = "deterministic",
    n_draws: int = 100,
    random_state: RandomState = None,
) -> RiskCurve:
    r"""Expected risk of the convex blend for all alphas at once.

    Equation 13:

    .. math:: \omega_\alpha \sim N(\alpha\omega + (1-\alpha)\mu,
        \; \alpha^2\Sigma_\omega + (1-\alpha)^2\Psi)

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,)
        Weights of the target, from 0 to 1.
    target : tuple of (n_features,) and (n_features, n_features) array-likes
        Direction of the target and its covariance; leading batch axes are allowed.
    source : tuple of (n_features,) and (n_features, n_features) array-likes
        Mean direction of the sources and its covariance Psi; leading batch axes are allowed.
    nu : array-like of shape (..., n_features)
        Half the gap between the class means.
    sigma : array-like of shape (..., n_features, n_features)
        Covariance within the classes.
    class_prior : pair of floats or None, default=None
        Probabilities of the first and the second class; None is equal.
    method : {"deterministic", "monte_carlo"}, default="deterministic"
        As in :func:`expected_risk`; "monte_carlo" takes new draws for each alpha.
    n_draws : int, default=100
        Draws of "monte_carlo" for each alpha, B in the paper.
    random_state : int, Generator or None, default=None
        Seed of "monte_carlo".

    Returns
    -------
    RiskCurve
        The fields `risks` and `errors`, of shape (..., n_alphas).

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade import risk_curve
    >>> own, crowd = np.array([0.8, 0.6]), np.array([1.0, 0.0])
    >>> curve = risk_curve(
    ...     [0.0, 0.5, 1.0],
    ...     target=(own, 0.2 * np.eye(2)),
    ...     source=(crowd, 0.01 * np.eye(2)),
    ...     nu=own,
    ...     sigma=np.eye(2),
    ... )
    >>> curve.risks.round(3)
    array([0.213, 0.18 , 0.194])
    """
    alphas = check_alphas(alphas)
    omega = check_finite("target[0]", target[0], 1)
    n_features = omega.shape[-1]
    sigma_omega = check_covariance("target[1]", target[1], n_features)
    mu = check_finite("source[0]", source[0], 1, n_features)
    psi = check_covariance("source[1]", source[1], n_features)
    own, crowd = alphas[:, None], 1.0 - alphas[:, None]
    means = own * omega[..., None, :] + crowd * mu[..., None, :]
    covariances = (own**2)[..., None] * sigma_omega[..., None, :, :]
    covariances = covariances + (crowd**2)[..., None] * psi[..., None, :, :]
    return RiskCurve(
        *expected_risk(
            means,
            covariances,
            nu=check_finite("nu", nu, 1, n_features)[..., None, :],
            sigma=check_covariance("sigma", sigma, n_features)[..., None, :, :],
            class_prior=class_prior,
            method=method,
            n_draws=n_draws,
            random_state=random_state,
        )
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
    if not isinstance(prior, DirectionSums):
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
    noise = target_noise(spectrum, nu, counts, shrunk)
    share = check_class_prior(class_prior)
    law = BlendLaw(spectrum, nu, noise, prior.mean_direction, prior.psi_parts(psi), share)
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

"""The law of all blends in, the alpha of least expected risk out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._validate import (
    RandomState,
    as_generator,
    check_alphas,
    check_choice,
    check_integer,
)
from crossfade.fisher import _spectrum
from crossfade.risk._inversion import integrated_risk
from crossfade.risk._law import BlendLaw, curve, hidden_gap, sampled_curve

Array = NDArray[np.float64]

METHODS = ("deterministic", "monte_carlo")
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
    alphas: ArrayLike | None,
    method: str = "deterministic",
    n_draws: int = 100,
    random_state: RandomState = None,
) -> AlphaChoice:
    """Minimise the expected risk over a grid, or over all alphas (equation 19).

    Parameters
    ----------
    law : BlendLaw
        What the risk depends on.
    alphas : array-like of shape (n_alphas,) or None
        The grid; None for the continuous minimum.
    method, n_draws, random_state : optional
        As in :func:`choose_alpha`.

    Returns
    -------
    AlphaChoice
        The minimum and the curve.
    """
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
    """What :func:`curve` gives, also where the classes differ without any variance.

    Parameters
    ----------
    law : BlendLaw
        What the risk depends on.
    alphas : ndarray of shape (n_alphas,) or (..., n_alphas)
        Weights of the target.

    Returns
    -------
    risks, errors : ndarray of shape (..., n_alphas)
        Expected risks and bounds of their numerical error.
    """
    law = _within_span(law)
    own, crowd = alphas[..., None], 1.0 - alphas[..., None]
    noise, mu = law.noise, law.mu
    inverse = law.sigma.inverse()
    if np.any(noise.cross):
        # Equation 5 by its projection: added up, its terms could be nothing but rounding.
        root = inverse.map(np.sqrt(inverse.values), np.sqrt(inverse.floor)).dense()
        root = root - noise.omega[..., :, None] * np.vecmat(noise.omega, root)[..., None, :]
        target = noise.inverse[..., None, None] * (root @ root.mT)
    else:
        target = noise.inverse[..., None, None] * inverse.dense()
        target = target + noise.radial[..., None, None] * _outer(noise.omega)
    identity, along = (np.asarray(part)[..., None, None] for part in law.psi)
    source = identity * np.eye(mu.shape[-1]) + along * _outer(mu)
    covariance = (own**2)[..., None] * target[..., None, :, :]
    covariance = covariance + (crowd**2)[..., None] * source[..., None, :, :]
    values, vectors = np.linalg.eigh((covariance + covariance.mT) / 2.0)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    means = own * noise.omega[..., None, :] + crowd * mu[..., None, :]
    sigma = law.sigma.dense()[..., None, :, :]
    share = None if law.share is None else np.asarray(law.share)[..., None]
    return integrated_risk(means, factor, law.nu[..., None, :], sigma, share)


def _within_span(law: BlendLaw) -> BlendLaw:
    """The same law in as few dimensions as Sigma, the gap and the crowd's direction take.

    Outside of them Sigma has its floor, which is zero here, so that nothing there is ever seen.
    """
    sigma, omega = law.sigma, law.noise.omega
    if sigma.n_outside <= 2 or sigma.floor.any():
        return law
    mu = np.broadcast_to(law.mu, omega.shape)
    first = _spectrum.outside(sigma.basis, law.nu)
    second = _spectrum.outside(np.concatenate([sigma.basis, first[..., None]], -1), mu)
    basis = np.concatenate([sigma.basis, first[..., None], second[..., None]], -1)
    values = np.concatenate([sigma.values, np.zeros((*sigma.values.shape[:-1], 2))], -1)
    within = np.broadcast_to(np.eye(values.shape[-1]), (*values.shape, values.shape[-1]))
    return BlendLaw(
        _spectrum.Spectrum(values, within, sigma.floor),
        np.matvec(basis.mT, law.nu),
        law.noise._replace(omega=np.matvec(basis.mT, omega)),
        np.matvec(basis.mT, mu),
        law.psi,
        law.share,
    )


def _outer(vectors: Array) -> Array:
    outer: Array = vectors[..., :, None] * vectors[..., None, :]
    return outer


def _best(grid: Array, risks: Array, errors: Array) -> AlphaChoice:
    place = _least(risks)
    take = place[..., None]
    risk = np.take_along_axis(risks, take, -1)[..., 0]
    error = np.take_along_axis(errors, take, -1)[..., 0]
    return AlphaChoice(grid[place], risk, error, grid, risks)


def _least(risks: Array) -> NDArray[np.intp]:
    """Place of the least risk; between equals it is the last, the person's own."""
    equal = risks <= risks.min(-1, keepdims=True) + _TIE
    place: NDArray[np.intp] = risks.shape[-1] - 1 - equal[..., ::-1].argmax(-1)
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

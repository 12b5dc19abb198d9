"""The alpha of least expected risk (equation 19)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike

from crossfade._typing import Array, Places, RandomState
from crossfade._validate import (
    HEAVIEST,
    as_generator,
    check_alphas,
    check_choice,
    check_covariance,
    check_finite,
    check_integer,
    check_spectrum,
    unit,
)
from crossfade.fisher import Direction, Spectrum, direction_of, invert, joint_basis, truncate
from crossfade.prior import PSI_FORMS, Psi
from crossfade.risk._error_rate import (
    LARGEST,
    check_batches,
    check_class_prior,
    error_rate,
    integrated_risk,
)
from crossfade.risk._expected import BlendLaw, curve_of, hidden_gap, threshold

#: Points at which a continuous minimum is first bracketed.
_COARSE = np.linspace(0.0, 1.0, 21)
#: Part of the largest eigenvalue that rounding alone is far from reaching.
_WELL_CONDITIONED = 1e-9
#: Least variance whose inverse can be multiplied with others.
_SMALLEST = 1e-50
#: Largest allowed half gap in standard deviations; its inverse is the smallest.
_FURTHEST = 1e30
#: Risks closer than this differ by rounding.
_TIE = 1e-12
#: How often the bracket is then looked at at most, and steps of Newton's method in it.
_ZOOMS, _NEWTON = 8, 2
#: Last coefficients of a polynomial that is not the curve.
_ROUGH = 1e-9
#: Chebyshev nodes on [-1, 1], and from values there to the coefficients of the polynomial.
_DEGREES = np.arange(11)
_NODES = np.cos(np.pi * (_DEGREES + 0.5) / _DEGREES.size)
_TO_CHEBYSHEV = chebyshev.chebvander(_NODES, _DEGREES[-1]) * np.where(_DEGREES, 2.0, 1.0)
_TO_CHEBYSHEV /= _DEGREES.size
#: Where its minimum is looked for first, and from its coefficients to those of its derivatives.
_FINE = np.linspace(-1.0, 1.0, 401)
_FINE_VALUES = chebyshev.chebvander(_FINE, _DEGREES[-1]).T
_SLOPE = np.zeros((11, 11))
_SLOPE[:, :10] = np.stack([chebyshev.chebder(row) for row in np.eye(11)])
_BEND = _SLOPE @ _SLOPE


class AlphaChoice(NamedTuple):
    """Weight of the target that has the least expected risk."""

    alpha: Array  # (...): 1 is the person alone, 0 the crowd alone
    risk: Array  # (...): expected error rate there
    error: Array  # (...): error of that number
    alphas: Array  # (n_alphas,): where the curve was evaluated
    risks: Array  # (..., n_alphas): the curve


def least_risk(
    law: BlendLaw,
    alphas: Array | None = None,
    method: str = "deterministic",
    n_draws: int = 100,
    random_state: RandomState = None,
) -> AlphaChoice:
    """Minimise the expected risk over a grid, or over all alphas (equation 19)."""
    if method == "monte_carlo":
        n_draws = check_integer("n_draws", n_draws, 2, 10_000_000)
        grid = np.linspace(0.0, 1.0, 11) if alphas is None else alphas
        risks, errors = sampled_curve(law, grid, n_draws, as_generator(random_state))
        return _best(grid, risks, errors)
    grid = _COARSE if alphas is None else alphas
    evaluate = partial(dense_curve, law) if hidden_gap(law) else curve_of(law)
    best = _best(grid, *evaluate(grid))
    return _refined(best, evaluate) if alphas is None else best


def dense_curve(law: BlendLaw, alphas: Array) -> tuple[Array, Array]:
    """Risks and errors as of `curve_of`, also where the classes differ without any variance."""
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


def sampled_curve(
    law: BlendLaw, alphas: Array, n_draws: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Algorithm 1's inner loop: averages over fresh draws at each alpha, and standard errors."""
    person, sigma, nu = law.person, law.person.sigma, law.person.nu
    inverse_root = sigma.inverse().root()
    batch = nu.shape[:-1]
    risks = np.empty((alphas.size, *batch))
    errors = np.empty_like(risks)
    for place, alpha in enumerate(alphas):
        own, crowd = rng.standard_normal((2, n_draws, *batch, sigma.n_features))
        target = person.omega + _target_draws(person, inverse_root, own)
        source = law.mu + _source_draws(law.mu, law.psi, crowd)
        omega = alpha * target + (1.0 - alpha) * source
        variance = np.vecdot(omega, sigma.apply(omega))
        centre = alpha * person.omega + (1.0 - alpha) * law.mu
        within = np.vecdot(centre, sigma.apply(centre))
        moved = threshold(np.vecdot(centre, nu), within, law.class_prior)
        drawn = error_rate(np.vecdot(omega, nu), variance, moved, law.class_prior)
        risks[place] = drawn.mean(0)
        errors[place] = drawn.std(0, ddof=1) / np.sqrt(n_draws)
    return np.moveaxis(risks, 0, -1), np.moveaxis(errors, 0, -1)


def _target_draws(person: Direction, inverse_root: Spectrum, normals: Array) -> Array:
    """Draws with covariance a S^-1 + g w w' + h (w v' + v w'), from standard normals."""
    root = np.sqrt(person.noise)[..., None]
    if np.any(person.cross):
        # Equation 5 is a S^-1 with its part along w removed on both sides.
        draws = root * inverse_root.apply(normals)
        along = np.vecdot(person.omega, draws)[..., None]
        return draws - along * person.omega
    # a S^-1 + g w w' = S^-1/2 (a I + g L n n') S^-1/2 with S^1/2 w = sqrt(L) n.
    whitened = inverse_root.inverse().apply(person.omega)
    square = np.vecdot(whitened, whitened)[..., None]
    normal = whitened * np.sqrt(invert(square))
    stretched = np.sqrt(np.maximum(root**2 + person.radial[..., None] * square, 0.0))
    along = np.vecdot(normal, normals)[..., None]
    return inverse_root.apply(root * normals + (stretched - root) * along * normal)


def _source_draws(mu: Array, psi: Psi, normals: Array) -> Array:
    """Draws with covariance p I + q m m' for a unit m, from standard normals."""
    root = np.sqrt(np.asarray(psi.identity))[..., None]
    along = np.sqrt(np.maximum(np.asarray(psi.identity) + psi.along, 0.0))[..., None]
    return root * normals + (along - root) * np.vecdot(mu, normals)[..., None] * mu


def within_span(law: BlendLaw) -> BlendLaw:
    """The same law in as few dimensions as Sigma, the gap and the crowd's direction take."""
    person, sigma = law.person, law.person.sigma
    if sigma.n_outside <= 2 or sigma.floor.any():
        return law
    mu = np.broadcast_to(law.mu, person.omega.shape)
    basis, values = joint_basis(sigma, person.nu, mu)
    return law.turned(basis, values)


def _outer(vectors: Array) -> Array:
    return vectors[..., :, None] * vectors[..., None, :]


def _best(grid: Array, risks: Array, errors: Array) -> AlphaChoice:
    """The least risk on a grid; between equals it is the last, the person's own."""
    equal = risks <= np.minimum.reduce(risks, -1, keepdims=True) + _TIE
    place = risks.shape[-1] - 1 - equal[..., ::-1].argmax(-1)
    return AlphaChoice(grid[place], _at(risks, place), _at(errors, place), grid, risks)


def _at(rows: Array, place: Places) -> Array:
    """One number of each row."""
    if rows.ndim == 1:
        return np.asarray(rows[place])
    return np.take_along_axis(rows, place[..., None], -1)[..., 0]


def _refined(coarse: AlphaChoice, evaluate: Callable[[Array], tuple[Array, Array]]) -> AlphaChoice:
    """Minimum of a polynomial through Chebyshev nodes about the coarse one, zoomed while rough."""
    step = _COARSE[1]
    alpha, risk, error = coarse.alpha, coarse.risk, coarse.error
    low, high = np.maximum(alpha - step, 0.0), np.minimum(alpha + step, 1.0)
    for _ in range(_ZOOMS):
        middle, reach = (low + high) / 2.0, (high - low) / 2.0
        local = middle[..., None] + reach[..., None] * _NODES
        risks, errors = evaluate(local)
        coefficients = risks @ _TO_CHEBYSHEV
        x = _least_of(coefficients)
        found, value = middle + reach * x, np.vecdot(coefficients, _chebyshev(x))
        rough = np.maximum.reduce(np.abs(coefficients[..., -2:]), -1) > _ROUGH
        some_rough = np.count_nonzero(rough) > 0
        if some_rough:
            place = risks.argmin(-1)
            found = np.where(rough, _at(local, place), found)
            value = np.where(rough, _at(risks, place), value)
        better = value < risk - _TIE
        # A polynomial through risks that are nearly zero may be negative.
        alpha = np.where(better, found, alpha)
        risk = np.where(better, np.maximum(value, 0.0), risk)
        error = np.where(better, np.maximum.reduce(errors, -1), error)
        if not some_rough:
            break
        low, high = np.maximum(alpha - reach / 4.0, 0.0), np.minimum(alpha + reach / 4.0, 1.0)
    return coarse._replace(alpha=alpha, risk=risk, error=error)


def _chebyshev(x: Array) -> Array:
    """Chebyshev polynomials (..., n) at points (...), by their definition cos(k arccos x)."""
    return np.cos(np.arccos(x)[..., None] * _DEGREES)


def _least_of(coefficients: Array) -> Array:
    """Where Chebyshev series (..., n) are least on [-1, 1], of shape (...)."""
    fine = coefficients @ _FINE_VALUES
    x = _FINE[np.minimum(np.maximum(fine.argmin(-1), 1), _FINE.size - 2)]
    # Newton's method on the derivative, which is a Chebyshev series again.
    slope, bend = coefficients @ _SLOPE, coefficients @ _BEND
    for _ in range(_NEWTON):
        polynomials = _chebyshev(x)
        curvature = np.vecdot(bend, polynomials)
        # Where the series is not convex, it stays at the best point.
        curvature = np.where(curvature > 0.0, curvature, np.inf)
        move = np.vecdot(slope, polynomials) / curvature
        x = x - np.minimum(np.maximum(move, -0.05), 0.05)
        x = np.minimum(np.maximum(x, -1.0), 1.0)
    return np.asarray(x)


def choose_alpha(
    prior: Any,
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
        Exact, or the average over draws as in the paper's Algorithm 1. "monte_carlo" needs a grid,
        and takes 0, 0.1, ..., 1 by default.
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
    crowd = getattr(getattr(prior, "law", None), "directions", None)
    if crowd is None:
        raise TypeError(f"prior must be a TaskPrior of two classes; got {prior!r}.")
    nu = check_finite("half_gap", half_gap, 1, prior.n_features, LARGEST)
    sigma = check_covariance("covariance", covariance, prior.n_features, LARGEST)
    counts = _check_counts(n_samples)
    shrunk = check_finite("shrinkage", shrinkage, 0)
    if shrunk.size and (shrunk.min() < 0.0 or shrunk.max() > 1.0):
        raise ValueError(f"shrinkage must be a number from 0 to 1; got {shrinkage!r}.")
    check_choice("psi", psi, PSI_FORMS)
    check_choice("method", method, ("deterministic", "monte_carlo"))
    grid = None if alphas is None else check_alphas(alphas)
    batch = check_batches(half_gap=(nu, 1), covariance=(sigma, 2), shrinkage=(shrunk, 0))
    if batch:
        nu = np.broadcast_to(nu, (*batch, prior.n_features))
    spectrum = _spectrum_of(sigma)
    deviation = np.sqrt(spectrum.values.max(-1, initial=0.0))
    ratio = np.abs(nu).max(-1) / np.where(deviation > 0.0, deviation, 1.0)
    if ((ratio > _FURTHEST) | (ratio > 0.0) & (ratio < 1.0 / _FURTHEST)).any():
        raise ValueError("half_gap and covariance must be in the same units.")
    person = direction_of(spectrum, nu, counts, shrunk)
    law = BlendLaw(person, prior.mean_direction, crowd.psi(psi), check_class_prior(class_prior))
    return least_risk(law, grid, method, n_draws, random_state)


def _check_counts(n_samples: ArrayLike) -> Array:
    """Samples of each class; one number counts both classes, which are then balanced."""
    counts = check_finite("n_samples", n_samples, 0)
    if counts.ndim == 0:
        counts = np.full(2, counts / 2.0)
    few = counts.sum() < 2.0 or counts.min() < 1.0 / HEAVIEST
    if counts.shape != (2,) or few or counts.max() > HEAVIEST:
        raise ValueError(
            f"n_samples must be a number of at least 2, or two positive ones; got {n_samples!r}."
        )
    return counts


def _spectrum_of(sigma: Array) -> Spectrum:
    """Spectrum of covariances (..., d, d); refuses what cannot be one, or cannot be inverted."""
    values, basis = np.linalg.eigh(sigma)
    floor = np.zeros(sigma.shape[:-2])
    # They are sorted: where the first is far from zero there is nothing to refuse or to truncate.
    if (values[..., 0] > np.maximum(_WELL_CONDITIONED * values[..., -1], _SMALLEST)).all():
        return Spectrum(values, basis, floor)
    values = truncate(check_spectrum("covariance", values), 1)
    if 0.0 < values.max(initial=0.0) < _SMALLEST:
        raise ValueError("covariance is too small to be inverted. Rescale it and half_gap.")
    return Spectrum(values, basis, floor)


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
    >>> from crossfade.risk import blend_directions
    >>> blend_directions([1.0, 0.0], [0.0, 2.0], 0.5).round(3)
    array([0.707, 0.707])
    """
    own = unit("target", check_finite("target", target, 1))
    crowd = unit("source", check_finite("source", source, 1, own.shape[-1]))
    weight = check_finite("alpha", alpha, 0)
    check_alphas(weight.reshape(-1), name="alpha")
    check_batches(target=(own, 1), source=(crowd, 1), alpha=(weight, 0))
    blend = weight[..., None] * own + (1.0 - weight)[..., None] * crowd
    return unit("the blend of opposite directions at this alpha", blend)


def alpha_of_sum(
    alpha: ArrayLike, n_tasks: int, resultant_length: ArrayLike, *, inverse: bool = False
) -> Array:
    r"""Convert a weight against the sum of the sources to one against their mean direction.

    The paper defines its class of blends with the *sum* of the source directions; everything else,
    here and there, is about their mean direction. The same rules have other weights:

    .. math:: \alpha\omega + (1-\alpha)\sum_j\omega^{(j)} \propto
        \alpha'\omega + (1-\alpha')\mu, \qquad \alpha' = \frac{\alpha}{\alpha + J R\,(1 - \alpha)}

    Parameters
    ----------
    alpha : float or array-like of shape (...)
        Weights of the target beside the sum; with `inverse`, beside the mean direction.
    n_tasks : int
        Number J of sources.
    resultant_length : float or array-like of shape (...)
        Length R of the mean of the sources' unit directions, above 0 and at most 1.
    inverse : bool, default=False
        The other way: from the mean direction, as `choose_alpha` has it, to the sum.

    Returns
    -------
    ndarray of shape (...)
        Weights of the target in the other form. Both forms have the ends 0 and 1 in common.

    See Also
    --------
    choose_alpha : The weight of least expected risk, beside the mean direction.
    blend_directions : The blend of two directions.

    Examples
    --------
    >>> from crossfade.risk import alpha_of_sum
    >>> float(alpha_of_sum(0.5, n_tasks=35, resultant_length=0.4).round(3))
    0.067
    >>> float(alpha_of_sum(1 / 15, n_tasks=35, resultant_length=0.4, inverse=True).round(3))
    0.5
    """
    weight = check_finite("alpha", alpha, 0)
    check_alphas(weight.reshape(-1), name="alpha")
    count = check_integer("n_tasks", n_tasks, 1)
    length = check_finite("resultant_length", resultant_length, 0)
    # Directions count as unit vectors if their length is one to a millionth.
    odd = (length <= 0.0) | (length > 1.0 + 1e-6)
    if odd.any():
        raise ValueError(
            "resultant_length must be above 0 and at most 1, the length of a mean of unit vectors; "
            f"got {length[odd].flat[0]:.6g}. Directions whose mean is zero have no mean direction."
        )
    check_batches(alpha=(weight, 0), resultant_length=(length, 0))
    total = count * length
    if inverse:
        other: Array = weight * total / (1.0 - weight + weight * total)
    else:
        other = weight / (weight + total * (1.0 - weight))
    return other

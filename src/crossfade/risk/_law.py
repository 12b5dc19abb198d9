"""The law of all convex blends of a person's direction and a crowd's, and its expected risk.

.. math:: \\omega_\\alpha \\sim N(\\alpha\\omega + (1-\\alpha)\\mu,
    \\; \\alpha^2\\Sigma_\\omega + (1-\\alpha)^2\\Psi)

Every covariance of a direction that the paper or Crossfade uses is a multiple of the inverse of
Sigma, or of the identity, plus a few rank-one terms (equations 5, 6 and 10). In the eigenvectors of
Sigma the expected risk of all blends then costs a sum over eigenvalues for each alpha (18).
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from crossfade._typing import Array
from crossfade.fisher._direction import Direction
from crossfade.fisher._spectrum import ROUNDING, Spectrum, invert
from crossfade.prior._crowd import Psi
from crossfade.risk._error_rate import error_rate, threshold
from crossfade.risk._inversion import by_rows, negative_probability, wrong_probability

#: Numbers that one pass over a batch may hold, so that it stays in the processor's cache.
_CHUNK = 1536


class BlendLaw(NamedTuple):
    """What the risk of ``alpha * omega + (1 - alpha) * mu`` depends on."""

    person: Direction
    mu: Array  # (..., d): mean direction of the crowd
    psi: Psi  # its covariance
    class_prior: Array | float = 0.5  # (...): probability of the second class

    def turned(self, basis: Array, values: Array) -> BlendLaw:
        """The same law in the coordinates of an orthonormal basis (..., d, rank) of Sigma's."""
        person = self.person
        axes = np.broadcast_to(np.eye(values.shape[-1]), (*values.shape, values.shape[-1]))
        moved = person._replace(
            omega=np.matvec(basis.mT, person.omega),
            nu=np.matvec(basis.mT, person.nu),
            sigma=Spectrum(values, axes, person.sigma.floor),
        )
        mu: Array = np.matvec(basis.mT, np.broadcast_to(self.mu, person.omega.shape))
        return BlendLaw(moved, mu, self.psi, self.class_prior)


def _products(sigma: Spectrum, omega: Array, mu: Array) -> tuple[Array, Array, Array]:
    """Eigenvalues, their multiplicities, and inner products of w, v and m by eigenvalue.

    The six products are ww, wv, wm, vv, vm and mm of the vectors S^(1/2) w, S^(-1/2) w and
    S^(1/2) m of equation 18.
    """
    own = np.matvec(sigma.basis.mT, omega)
    crowd = np.matvec(sigma.basis.mT, mu)
    values = sigma.values
    if values.shape != own.shape:
        values = np.broadcast_to(values, own.shape)
    own_own, own_crowd, crowd_crowd = own * own, own * crowd, crowd * crowd
    multiplicity = np.ones(values.shape[-1])
    if sigma.n_outside:
        own_rest = omega - np.matvec(sigma.basis, own)
        crowd_rest = mu - np.matvec(sigma.basis, crowd)
        floor = np.broadcast_to(sigma.floor, own.shape[:-1])
        values = np.concatenate([values, floor[..., None]], -1)
        multiplicity = np.append(multiplicity, float(sigma.n_outside))
        own_own = _with(own_own, np.vecdot(own_rest, own_rest))
        own_crowd = _with(own_crowd, np.vecdot(own_rest, crowd_rest))
        crowd_crowd = _with(crowd_crowd, np.vecdot(crowd_rest, crowd_rest))
    seen = values > 0.0
    own_own, own_crowd = own_own * seen, own_crowd * seen
    products = np.empty((*values.shape[:-1], 6, values.shape[-1]))
    products[..., 0, :] = values * own_own
    products[..., 1, :] = own_own
    products[..., 2, :] = values * own_crowd
    products[..., 3, :] = own_own * invert(values)
    products[..., 4, :] = own_crowd
    products[..., 5, :] = values * crowd_crowd
    return values, multiplicity, products


def _with(values: Array, last: Array) -> Array:
    return np.concatenate([values, last[..., None]], -1)


def curve(law: BlendLaw, alphas: Array) -> tuple[Array, Array]:
    """Expected risks and their errors at alphas of shape (n_alphas,) or (..., n_alphas)."""
    person = law.person
    values, multiplicity, products = _products(person.sigma, person.omega, law.mu)
    batch = values.shape[:-1]
    n_alphas, n_values = alphas.shape[-1], values.shape[-1]
    noise = (person.noise, person.radial, person.cross)
    alone = (values > 0.0) @ multiplicity <= 1.0
    if alone.any() and np.any(person.cross):
        # A unit direction on one axis cannot turn: what equation 5 leaves there is rounding.
        kept = np.where(alone, 0.0, 1.0)
        noise = (kept * noise[0], kept * noise[1], kept * noise[2])
    n_batch = math.prod(batch)
    values, products = values.reshape(n_batch, n_values), products.reshape(n_batch, 6, n_values)
    alphas = alphas.reshape(-1, n_alphas)
    scalars = np.empty((6, n_batch, 1))
    for place, part in enumerate((person.length, *noise, *law.psi)):
        scalars[place, :, 0] = np.ravel(part)
    mean, deviation = _moments(multiplicity, values, products, alphas, scalars)
    columns: tuple[Array, ...] = (
        values,
        products,
        alphas,
        np.moveaxis(scalars, 0, 1),
        mean,
        deviation,
    )
    if np.any(law.class_prior != 0.5):
        ww, _, wm, _, _, mm = products.sum(-1).T[..., None]
        own, crowd = alphas, 1.0 - alphas
        variance = own * (own * ww + 2.0 * crowd * wm) + crowd * crowd * mm
        prior = np.asarray(law.class_prior, np.float64).reshape(-1, 1)
        columns += (threshold(mean, variance, prior), prior)
    rows_at_once = max(1, _CHUNK // (n_alphas * n_values))
    risks, errors = by_rows(partial(_risks, multiplicity), columns, rows_at_once)
    return risks.reshape(*batch, n_alphas), errors.reshape(*batch, n_alphas)


def _moments(
    multiplicity: Array, values: Array, products: Array, alphas: Array, scalars: Array
) -> tuple[Array, Array]:
    """Mean and deviation of omega'x for targets on the first axis and alphas on the second."""
    length, inverse, radial, cross, identity, along = scalars
    ww, wv, wm, _, _, mm = products.sum(-1).T[..., None]
    rank, trace = ((values > 0.0) @ multiplicity)[:, None], (values @ multiplicity)[:, None]
    turned = np.vecdot(values, products[:, 0])[:, None]
    # The variance is quadratic in the weights; it comes from x, from omega, and from both.
    reach = length * length
    bent = radial * ww + 2.0 * cross * wv
    own_part = ww + (reach * ww + 1.0) * bent + (reach * ww + rank) * inverse
    crowd_part = mm + identity * (reach * turned + trace) + along * (reach * wm * wm + mm)
    own, crowd = alphas, 1.0 - alphas
    variance = own * (own * own_part + 2.0 * crowd * wm) + crowd * crowd * crowd_part
    return length * (own * ww + crowd * wm), np.sqrt(np.maximum(variance, 0.0))


def _risks(
    multiplicity: Array,
    values: Array,
    products: Array,
    alphas: Array,
    scalars: Array,
    mean: Array,
    deviation: Array,
    *unequal: Array,
    n_nodes: int,
) -> tuple[Array, Array]:
    """Equation 18 for targets on the first axis and alphas on the second."""
    length, inverse, radial, cross, identity, along = scalars.swapaxes(0, 1)
    both = np.empty((len(alphas), 2, alphas.shape[1], 1))
    both[:, 0, :, 0], both[:, 1, :, 0] = alphas, 1.0 - alphas
    diagonal = np.empty((*values.shape, 2))
    diagonal[..., 0], diagonal[..., 1] = inverse * (values > 0.0), identity * values
    simple = len(multiplicity) <= 16 and multiplicity[-1] == 1.0
    ww_0 = products[:, 0].sum(-1)[:, None, None]
    length, radial, cross, along = (part[..., None] for part in (length, radial, cross, along))

    def phi(t: Array) -> tuple[Array, Array]:
        # A weight always comes with t, and its square with the square of t.
        weights = both * t[:, None]
        squares = weights * weights
        kernel = diagonal @ squares.reshape(len(t), 2, -1)
        kernel += 1.0
        log_det = 0.0 if simple else (np.log(kernel.mT) @ multiplicity).reshape(t.shape)
        det = kernel.prod(1).reshape(t.shape) if simple else 1.0
        inner = (products @ np.divide(1.0, kernel, out=kernel)).reshape(-1, 6, *t.shape[1:])
        del kernel
        ww, wv, wm, vv, vm, mm = inner.swapaxes(0, 1)
        own, crowd = weights[:, 0], weights[:, 1]
        # Rank-one terms by Woodbury: first the pair of w and v, then m m'.
        h = squares[:, 0] * cross
        h_vm, h_wv = h * vm, h * wv + 1.0
        g = squares[:, 0] * radial - h * h * vv
        scale = 1.0 / (h_wv * h_wv + g * ww)
        kept = h_wv * wm
        turned = kept - h_vm * ww
        mm = mm - (g * wm * wm + h_vm * (kept + turned)) * scale
        ww, wm = ww * scale, turned * scale
        q = squares[:, 1] * along
        shrink = 1.0 / (q * mm + 1.0)
        wm_k = wm * shrink
        ww_k = ww - q * wm * wm_k
        mixed = own * ww_k + crowd * wm_k
        quadratic = own * mixed + crowd * (own * wm_k + crowd * mm * shrink)
        log_det = log_det + np.log(det / (scale * shrink))
        log_modulus = -0.5 * (length * length * (ww_0 - ww_k) + quadratic + log_det)
        return log_modulus, length * mixed

    if not unequal:
        return negative_probability(phi, mean, deviation, n_nodes)
    moved, class_prior = unequal
    return wrong_probability(phi, mean, deviation, moved, class_prior, n_nodes)


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
        across: Array = draws - along * person.omega
        return across
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
    draws: Array = root * normals + (along - root) * np.vecdot(mu, normals)[..., None] * mu
    return draws


def hidden_gap(law: BlendLaw) -> bool:
    """Whether the classes differ where Sigma has no variance, which `curve` cannot see."""
    person, sigma = law.person, law.person.sigma
    if sigma.values.all() and (not sigma.n_outside or sigma.floor.all()):
        return False
    outside = person.nu - sigma.apply(person.omega) * person.length[..., None]
    size = np.linalg.vector_norm(person.nu, axis=-1)
    return bool(np.any(np.linalg.vector_norm(outside, axis=-1) > np.sqrt(ROUNDING) * size))

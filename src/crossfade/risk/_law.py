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
from typing import Any, NamedTuple

import numpy as np

from crossfade._typing import Array
from crossfade.fisher._direction import Direction
from crossfade.fisher._spectrum import ROUNDING, Spectrum, invert
from crossfade.prior._crowd import Psi
from crossfade.risk._error_rate import error_rate, threshold
from crossfade.risk._inversion import by_rows, negative_probability, single, wrong_probability

#: Numbers that one pass over a batch may hold, so that it stays in the processor's cache.
_CHUNK = 6144


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


class _Terms(NamedTuple):
    """What equation 18 is made of, in the eigenvectors of Sigma; without a batch, all but arrays.

    The six `products` are ww, wv, wm, vv, vm and mm of the vectors S^(1/2) w, S^(-1/2) w and
    S^(1/2) m, by eigenvalue; `sums` are their sums.
    """

    values: Array  # (..., size): eigenvalues
    multiplicity: Array | None  # (size,); None where all are one
    products: Array  # (..., 6, size)
    sums: tuple[Any, ...]  # six of (..., 1, 1); then rank and trace of Sigma, and w'S S w
    scalars: tuple[Any, ...]  # length, a, g, h, p and q, of (..., 1, 1)


def _terms(law: BlendLaw) -> _Terms:
    person, sigma = law.person, law.person.sigma
    own = np.matvec(sigma.basis.mT, person.omega)
    crowd = np.matvec(sigma.basis.mT, law.mu)
    values, multiplicity = sigma.values, None
    if values.shape != own.shape:
        values = np.broadcast_to(values, own.shape)
    size = values.shape[-1] + bool(sigma.n_outside)
    products = np.empty((*own.shape[:-1], 6, size))
    inside = products[..., : own.shape[-1]]
    inside[..., 1, :], inside[..., 4, :], inside[..., 5, :] = own * own, own * crowd, crowd * crowd
    if sigma.n_outside:
        own_rest = person.omega - np.matvec(sigma.basis, own)
        crowd_rest = law.mu - np.matvec(sigma.basis, crowd)
        floor = np.broadcast_to(sigma.floor, own.shape[:-1])
        values = np.concatenate([values, floor[..., None]], -1)
        multiplicity = np.append(np.ones(size - 1), float(sigma.n_outside))
        products[..., 1, -1] = np.vecdot(own_rest, own_rest)
        products[..., 4, -1] = np.vecdot(own_rest, crowd_rest)
        products[..., 5, -1] = np.vecdot(crowd_rest, crowd_rest)
    seen = values > 0.0
    if not seen.all():
        products[..., 1, :] *= seen
        products[..., 4, :] *= seen
    products[..., 0, :] = values * products[..., 1, :]
    products[..., 2, :] = values * products[..., 4, :]
    products[..., 3, :] = products[..., 1, :] * invert(values)
    products[..., 5, :] *= values
    noise = (person.noise, person.radial, person.cross)
    rank = seen.sum(-1) if multiplicity is None else seen @ multiplicity
    trace = values.sum(-1) if multiplicity is None else values @ multiplicity
    turned = np.vecdot(values, products[..., 0, :])
    if (rank <= 1.0).any() and np.any(person.cross):
        # A unit direction on one axis cannot turn: what equation 5 leaves there is rounding.
        kept = np.where(rank <= 1.0, 0.0, 1.0)
        noise = (kept * noise[0], kept * noise[1], kept * noise[2])
    parts = (person.length, *noise, *law.psi)
    summed = products.sum(-1)
    if summed.ndim == 1:
        sums = (*summed.tolist(), float(rank), float(trace), float(turned))
        return _Terms(values, multiplicity, products, sums, tuple(map(float, parts)))
    batch = summed.shape[:-1]
    n_batch = math.prod(batch)
    more = [part.reshape(n_batch, 1, 1) for part in (rank, trace, turned)]
    return _Terms(
        values.reshape(n_batch, size),
        multiplicity,
        products.reshape(n_batch, 6, size),
        (*summed.reshape(n_batch, 6).T[..., None, None], *more),
        tuple(np.broadcast_to(part, batch).reshape(n_batch, 1, 1) for part in parts),
    )


def curve(law: BlendLaw, alphas: Array) -> tuple[Array, Array]:
    """Expected risks and their errors at alphas of shape (n_alphas,) or (..., n_alphas)."""
    terms = _terms(law)
    batch = law.person.length.shape
    if terms.values.ndim > 1:
        batch = np.broadcast_shapes(batch, law.mu.shape[:-1])
        alphas = alphas.reshape(-1, alphas.shape[-1])
    n_alphas, n_values = alphas.shape[-1], terms.values.shape[-1]
    unequal = bool(np.any(law.class_prior != 0.5))
    prior = np.asarray(law.class_prior, np.float64).reshape(-1, 1) if unequal else None
    if terms.values.ndim == 1:
        return single(partial(_risks, terms, alphas, prior))
    columns: list[Array] = [terms.values, terms.products, *terms.sums, *terms.scalars, alphas]
    if prior is not None:
        columns.append(prior)
    evaluate = partial(_risks_of_rows, terms.multiplicity)
    rows_at_once = max(1, _CHUNK // (n_alphas * n_values))
    risks, errors = by_rows(evaluate, columns, rows_at_once)
    return risks.reshape(*batch, n_alphas), errors.reshape(*batch, n_alphas)


def _risks_of_rows(
    multiplicity: Array | None, values: Array, products: Array, *rest: Array, n_nodes: int
) -> tuple[Array, Array]:
    """The same for a chunk of a batch."""
    terms = _Terms(values, multiplicity, products, rest[:9], rest[9:15])
    prior = rest[16] if len(rest) > 16 else None
    return _risks(terms, rest[15], prior, n_nodes=n_nodes)


def _risks(
    terms: _Terms, alphas: Array, class_prior: Array | None, *, n_nodes: int
) -> tuple[Array, Array]:
    """Equation 18 at alphas of shape (n_alphas,), or (n_rows, n_alphas) for a batch."""
    values, multiplicity, products = terms.values, terms.multiplicity, terms.products
    length, inverse, radial, cross, identity, along = terms.scalars
    ww_0, wv_0, wm_0, _, _, mm_0, rank, trace, turned = terms.sums
    own, crowd = alphas[..., None], 1.0 - alphas[..., None]
    # Mean and variance of omega'x. The variance is quadratic in the weights; it comes from x, from
    # omega, and from both.
    reach = length * length
    bent = radial * ww_0 + 2.0 * cross * wv_0
    own_part = ww_0 + (reach * ww_0 + 1.0) * bent + (reach * ww_0 + rank) * inverse
    crowd_part = mm_0 + identity * (reach * turned + trace)
    crowd_part = crowd_part + along * (reach * wm_0 * wm_0 + mm_0)
    variance = own * (own * own_part + 2.0 * crowd * wm_0) + crowd * crowd * crowd_part
    mean = (length * (own * ww_0 + crowd * wm_0))[..., 0]
    deviation = np.sqrt(np.maximum(variance, 0.0))[..., 0]
    diagonal = np.empty((*values.shape, 2))
    single_case = alphas.ndim == 1
    diagonal[..., 0] = values > 0.0
    diagonal[..., 0] *= inverse if single_case else inverse[..., 0]
    diagonal[..., 1] = values
    diagonal[..., 1] *= identity if single_case else identity[..., 0]
    simple = multiplicity is None and values.shape[-1] <= 16

    def phi(t: Array) -> tuple[Array, Array]:
        # A weight always comes with t, and its square with the square of t.
        o, c = own * t, crowd * t
        squares = np.empty((*t.shape[:-2], 2, t.shape[-2] * t.shape[-1]))
        oo, cc = o * o, c * c
        squares[..., 0, :] = oo.reshape(squares[..., 0, :].shape)
        squares[..., 1, :] = cc.reshape(squares[..., 1, :].shape)
        kernel = diagonal @ squares
        kernel += 1.0
        det = kernel.prod(-2) if simple else np.ones(())
        log_det = 0.0
        if not simple:
            log_det = np.log(kernel.mT)
            log_det = log_det.sum(-1) if multiplicity is None else log_det @ multiplicity
            log_det = log_det.reshape(t.shape)
        inner = products @ np.divide(1.0, kernel, out=kernel)
        inner = inner.reshape(*t.shape[:-2], 6, *t.shape[-2:])
        ww, wv, wm, vv, vm, mm = (inner[..., place, :, :] for place in range(6))
        # Rank-one terms by Woodbury: first the pair of w and v, with K = (1 + h wv)^2 + g ww and
        # g = o^2 radial - h^2 vv; then m m'. In place, since most of the time goes to memory.
        h = oo * cross
        h_wv, h_vm = h * wv, h * vm
        h_wv += 1.0
        h *= h
        h *= vv
        g = oo * radial
        g -= h
        whole = h_wv * h_wv
        whole += np.multiply(g, ww, out=h)
        scale = 1.0 / whole
        kept = np.multiply(h_wv, wm, out=h_wv)
        turn = kept - np.multiply(h_vm, ww, out=h)
        kept += turn
        kept *= h_vm
        g *= wm
        g *= wm
        g += kept
        g *= scale
        mm = mm - g
        ww_k, wm_k = ww * scale, np.multiply(turn, scale, out=turn)
        q = cc * along
        shrink = q * mm
        shrink += 1.0
        whole *= shrink
        q *= wm_k
        wm_k = wm_k / shrink
        q *= wm_k
        ww_k -= q
        mixed, wm_k = o * ww_k, np.multiply(c, wm_k, out=wm_k)
        mixed += wm_k
        # o^2 ww + 2 o c wm + c^2 mm of what is left.
        quadratic = np.add(mixed, wm_k, out=wm_k)
        quadratic *= o
        mm *= cc
        mm /= shrink
        quadratic += mm
        if simple:
            whole *= det.reshape(whole.shape)
        quadratic += np.log(whole, out=whole)
        ww_k -= ww_0
        ww_k *= -reach
        quadratic += ww_k
        log_modulus = (quadratic + log_det) * -0.5
        return log_modulus, length * mixed

    if class_prior is None:
        return negative_probability(phi, mean, deviation, n_nodes)
    within = (own * (own * ww_0 + 2.0 * crowd * wm_0) + crowd * crowd * mm_0)[..., 0]
    prior = class_prior if alphas.ndim > 1 else class_prior[0]
    moved = threshold(mean, within, prior)
    return wrong_probability(phi, mean, deviation, moved, prior, n_nodes)


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

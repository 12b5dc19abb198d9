"""The law of all convex blends of a person's direction and a crowd's, and its expected risk.

.. math:: \\omega_\\alpha \\sim N(\\alpha\\omega + (1-\\alpha)\\mu,
    \\; \\alpha^2\\Sigma_\\omega + (1-\\alpha)^2\\Psi)

In the eigenvectors of Sigma the risk of each blend costs a sum over eigenvalues (18).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from crossfade._typing import Array
from crossfade.fisher import Direction, Spectrum, invert, outside
from crossfade.prior import Psi
from crossfade.risk._error_rate import error_rate, threshold
from crossfade.risk._inversion import by_rows, negative_probability, single, wrong_probability

#: Numbers that one pass over a batch may hold, so that it stays in the processor's cache.
_CHUNK = 6144


class BlendLaw(NamedTuple):
    """Parameters of the risk of ``alpha * omega + (1 - alpha) * mu``."""

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

    def within_reach(self) -> BlendLaw:
        """The same law in the directions in which something varies, and in that of the gap."""
        sigma = self.person.sigma
        # Eigenvalues ascend, so that those that are zero in every row come first.
        n_outside = int((sigma.values == 0.0).all(0).sum())
        if sigma.floor.any() or n_outside + sigma.n_outside < 2:
            return self
        basis, values = sigma.basis[..., n_outside:], sigma.values[..., n_outside:]
        # Rounding decides the sign of an eigenvector, and draws along it depend on that sign.
        against = np.vecmat(self.person.nu, basis) < 0.0
        basis = np.where(against[..., None, :], -basis, basis)
        basis = np.concatenate([basis, outside(basis, self.person.nu)[..., None]], -1)
        return self.turned(basis, np.concatenate([values, np.zeros((*values.shape[:-1], 1))], -1))


class _Terms(NamedTuple):
    """Terms of equation 18, in the eigenvectors of Sigma; a batch is one axis of rows."""

    kernel: Array  # (..., size, 3): coefficients of c^2, o^2 and 1 in the diagonal of K
    products: Array  # (..., 6, size)
    # Numbers, or (n_rows, 1) for a batch: length, g, q, the sums ww, wm and mm of the products,
    # and the variances of omega'x at alpha = 1 and at alpha = 0.
    scalars: tuple[Any, ...]


def _terms(law: BlendLaw) -> tuple[_Terms, Array | None]:
    """Terms of a law, and how often each eigenvalue counts; None where all count once."""
    person, sigma = law.person, law.person.sigma
    values, multiplicity = sigma.values, None
    own, crowd = np.vecmat(person.omega, sigma.basis), np.vecmat(law.mu, sigma.basis)
    batch, n_inside = own.shape[:-1], own.shape[-1]
    size = n_inside + bool(sigma.n_outside)
    # Below the products come three rows whose sums are rank and trace of Sigma, and w'S S w.
    rows = np.empty((9, *batch, size))
    inside = rows[..., :n_inside]
    np.multiply(own, own, out=inside[0])
    np.multiply(own, crowd, out=inside[1])
    np.multiply(crowd, crowd, out=inside[5])
    if sigma.n_outside:
        own_rest = person.omega - np.matvec(sigma.basis, own)
        crowd_rest = law.mu - np.matvec(sigma.basis, crowd)
        rows[0, ..., -1] = np.vecdot(own_rest, own_rest)
        rows[1, ..., -1] = np.vecdot(own_rest, crowd_rest)
        rows[5, ..., -1] = np.vecdot(crowd_rest, crowd_rest)
        floor = np.broadcast_to(sigma.floor, batch)
        values = np.concatenate([np.broadcast_to(values, own.shape), floor[..., None]], -1)
        multiplicity = np.append(np.ones(n_inside), float(sigma.n_outside))
    parts: tuple[Any, ...]
    parts = (person.length, person.noise, person.radial, person.cross, *law.psi)
    if batch:
        values = np.broadcast_to(values, (*batch, size)).reshape(-1, size)
        rows = rows.reshape(9, -1, size)
        parts = tuple(np.broadcast_to(part, batch).reshape(-1, 1) for part in parts)
    else:
        # Python's own numbers are quicker than arrays without an axis.
        parts = tuple(map(float, parts))
    length, a, g, h, p, q = parts
    seen, positive = values > 0.0, values
    if np.count_nonzero(seen) < seen.size:
        rows[:2] *= seen
        positive = np.where(seen, values, 1.0)
    np.divide(rows[0], positive, out=rows[2])
    np.multiply(rows[:2], values, out=rows[3:5])
    rows[5] *= values
    rows[6] = seen
    rows[7] = values
    np.multiply(rows[3], values, out=rows[8])
    if multiplicity is not None:
        rows[6:8] *= multiplicity
    sums = np.add.reduce(rows, -1)
    wv, _, _, ww, wm, mm, rank, trace, turned = sums[..., None] if batch else sums.tolist()
    if np.count_nonzero(rank <= 1.0) and np.count_nonzero(h):
        # A unit direction on one axis cannot turn: what equation 5 leaves there is rounding.
        kept = np.where(rank <= 1.0, 0.0, 1.0)
        a, g, h = kept * a, kept * g, kept * h
    rows[:3] *= h
    rows[2] *= h
    kernel = np.empty((3, *values.shape))
    np.multiply(values, p, out=kernel[0])
    np.multiply(seen, a, out=kernel[1])
    kernel[2] = 1.0
    # The variance of omega'x comes from x, from omega, and from both.
    reach = length * length
    bent = g * ww + 2.0 * h * wv
    of_own = ww + (reach * ww + 1.0) * bent + (reach * ww + rank) * a
    of_crowd = mm + p * (reach * turned + trace) + q * (reach * wm * wm + mm)
    scalars = (length, g, q, ww, wm, mm, of_own, of_crowd)
    # Rows come first where a batch is cut into chunks.
    terms = _Terms(kernel.T.swapaxes(0, -2), rows[:6].swapaxes(0, -2), scalars)
    return terms, multiplicity


def curve_of(law: BlendLaw) -> Callable[[Array], tuple[Array, Array]]:
    """Function of alphas (n_alphas,) or (..., n_alphas): expected risks and their errors."""
    terms, multiplicity = _terms(law)
    prior = None
    if np.count_nonzero(law.class_prior != 0.5):
        prior = np.asarray(law.class_prior, np.float64).reshape(-1, 1)
    if terms.kernel.ndim == 2:
        alone = None if prior is None else prior[0]
        return lambda alphas: single(partial(_risks, terms, multiplicity, alphas, alone))
    batch = np.broadcast_shapes(law.person.length.shape, law.mu.shape[:-1])
    columns = [terms.kernel, terms.products, *terms.scalars]
    if prior is not None:
        columns.append(prior)

    def of_batch(alphas: Array) -> tuple[Array, Array]:
        n_alphas = alphas.shape[-1]
        rows_at_once = max(1, _CHUNK // (n_alphas * terms.kernel.shape[-2]))
        evaluate = partial(_risks_of_rows, multiplicity)
        risks, errors = by_rows(evaluate, [alphas.reshape(-1, n_alphas), *columns], rows_at_once)
        return risks.reshape(*batch, n_alphas), errors.reshape(*batch, n_alphas)

    return of_batch


def _risks_of_rows(
    multiplicity: Array | None,
    alphas: Array,
    kernel: Array,
    products: Array,
    *rest: Array,
    n_nodes: int,
) -> tuple[Array, Array]:
    """The same for a chunk of a batch."""
    prior = rest[8] if len(rest) > 8 else None
    return _risks(_Terms(kernel, products, rest[:8]), multiplicity, alphas, prior, n_nodes=n_nodes)


def _risks(
    terms: _Terms,
    multiplicity: Array | None,
    alphas: Array,
    class_prior: Array | None,
    *,
    n_nodes: int,
) -> tuple[Array, Array]:
    """Equation 18 at alphas of shape (n_alphas,), or (n_rows, n_alphas) for a batch."""
    length, g, q, ww_0, wm_0, mm_0, of_own, of_crowd = terms.scalars
    own, crowd = alphas, 1.0 - alphas
    own_2, crowd_2, mixed = own * own, crowd * crowd, own * crowd * (2.0 * wm_0)
    variance = own_2 * of_own + mixed + crowd_2 * of_crowd
    mean = own * (length * ww_0) + crowd * (length * wm_0)
    deviation = np.sqrt(np.maximum(variance, 0.0))
    simple = multiplicity is None and terms.kernel.shape[-2] <= 16

    def phi(t: Array) -> tuple[Array, Array]:
        # Alphas and nodes are one axis here, and rows do not come first, so that numbers that are
        # multiplied one by one are contiguous.
        flat = (*t.shape[:-2], t.shape[-2] * t.shape[-1])
        # A weight always comes with t, and its square with the square of t.
        c, o = (crowd[..., None] * t).reshape(flat), (own[..., None] * t).reshape(flat)
        squares, inner = np.empty((3, *flat)), np.empty((6, *flat))
        cc, oo = np.multiply(c, c, out=squares[0]), np.multiply(o, o, out=squares[1])
        squares[2] = 1.0
        kernel = terms.kernel @ squares.swapaxes(0, -2)
        if simple:
            det = np.multiply.reduce(kernel, -2)
        else:
            log_det = np.log(kernel.mT)
            log_det = log_det.sum(-1) if multiplicity is None else log_det @ multiplicity
        np.divide(1.0, kernel, out=kernel)
        np.matmul(terms.products, kernel, out=inner.swapaxes(0, -2))
        # Rank-one terms by Woodbury: first the pair of w and v, with s = 1 + o^2 h wv,
        # G = o^2 (g - o^2 h^2 vv) and K = s^2 + G ww; then m m'. In place, since most of the time
        # goes to memory.
        inner[:3] *= oo
        s, h_vm, h_vv, ww, wm, mm = inner
        s += 1.0
        kept, turn = s * wm, h_vm * ww
        np.subtract(kept, turn, out=turn)
        bent = np.subtract(g, h_vv, out=h_vv)
        bent *= oo
        whole = np.multiply(s, s, out=s)
        whole += bent * ww
        # mm - [G wm^2 + h vm (s wm + turn)] / K
        kept += turn
        kept *= h_vm
        bent *= wm
        bent *= wm
        bent += kept
        bent /= whole
        mm -= bent
        mm *= cc
        shrink = np.multiply(mm, q, out=h_vm)
        shrink += 1.0
        mm /= shrink
        shrink *= whole
        # c wm and ww of what is left, then o^2 ww + 2 o c wm + c^2 mm.
        turn *= c
        mixed = np.divide(turn, shrink, out=wm)
        turn *= mixed
        turn *= q
        ww -= turn
        ww /= whole
        angle = o * ww
        angle += mixed
        mixed += angle
        mixed *= o
        mixed += mm
        ww -= ww_0
        ww *= length * length
        mixed -= ww
        if simple:
            shrink *= det
        mixed += np.log(shrink, out=shrink)
        if not simple:
            mixed += log_det
        mixed *= -0.5
        angle *= length
        return mixed.reshape(t.shape), angle.reshape(t.shape)

    if class_prior is None:
        return negative_probability(phi, mean, deviation, n_nodes)
    within = own_2 * ww_0 + mixed + crowd_2 * mm_0
    moved = threshold(mean, within, class_prior)
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


def hidden_gap(law: BlendLaw) -> bool:
    """Whether the classes differ where Sigma has no variance, which `curve_of` cannot see."""
    person, sigma = law.person, law.person.sigma
    full = np.count_nonzero(sigma.values) == sigma.values.size
    if full and (not sigma.n_outside or sigma.floor.all()):
        return False
    outside = person.nu - sigma.apply(person.omega) * person.length[..., None]
    size = np.linalg.vector_norm(person.nu, axis=-1)
    return bool(np.any(np.linalg.vector_norm(outside, axis=-1) > 1e-8 * size))

"""Expected risks, exactly: by inverting a characteristic function (Gil-Pelaez 1951).

The blends of a person's direction and a crowd's have the law

.. math:: \\omega_\\alpha \\sim N(\\alpha\\omega + (1-\\alpha)\\mu,
    \\; \\alpha^2\\Sigma_\\omega + (1-\\alpha)^2\\Psi)

In the eigenvectors of Sigma the risk of each blend costs a sum over eigenvalues (18).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from crossfade._typing import Array
from crossfade.fisher import Direction, Spectrum, outside
from crossfade.prior import Psi

#: Takes arguments t of shape (..., n_nodes); returns log |phi(t)| and arg phi(t).
CharacteristicFunction = Callable[[Array], tuple[Array, Array]]

#: Numerical error above which the nodes of a row are doubled.
TOLERANCE = 1e-6
_FEWEST, _MOST = 32, 1024
#: Deviations from zero beyond which a sign is certain.
_CERTAIN = 1e100
#: Deviations beyond which a bilinear form in normals has less than TOLERANCE of its probability.
_FAR = 36.0
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
        batch = tuple(range(sigma.values.ndim - 1))
        n_outside = int((sigma.values == 0.0).all(batch).sum())
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


def hidden_gap(law: BlendLaw) -> bool:
    """Whether the classes differ where Sigma has no variance, which `curve_of` cannot see."""
    person, sigma = law.person, law.person.sigma
    full = np.count_nonzero(sigma.values) == sigma.values.size
    if full and (not sigma.n_outside or sigma.floor.all()):
        return False
    outside = person.nu - sigma.apply(person.omega) * person.length[..., None]
    size = np.linalg.vector_norm(person.nu, axis=-1)
    return bool(np.any(np.linalg.vector_norm(outside, axis=-1) > 1e-8 * size))


# -- inversion -------------------------------------------------------------------------------------


@cache
def _nodes(n_nodes: int) -> tuple[Array, Array, Array]:
    """Nodes t = sinh(u), weights of the trapezoidal rule and of its error, and those at zero."""
    end = 4.0 + 2.0 * np.log2(n_nodes / _FEWEST)
    step = end / n_nodes
    u = step * np.arange(1, n_nodes + 1)
    fine = step / np.tanh(u)
    coarse = np.where(np.arange(1, n_nodes + 1) % 2 == 0, 2.0 * fine, 0.0)
    weights = np.stack([fine, 2.0 * (fine - coarse)], axis=1)
    at_zero = np.array([step / 2.0, -step])
    return np.sinh(u), weights / np.pi, at_zero / np.pi


def negative_probability(
    phi: CharacteristicFunction, mean: Array, deviation: Array, n_nodes: int
) -> tuple[Array, Array]:
    r"""Probability that a random number is negative, from its characteristic function.

    .. math:: P(z < 0) = \frac12 - \frac1\pi \int_0^\infty \frac{\Im\varphi(t)}{t} dt

    After t = sinh(u) / deviation the trapezoidal rule converges geometrically (equation 17).
    """
    certain = None
    if np.count_nonzero(deviation) < deviation.size:
        certain = deviation == 0.0
        deviation = np.where(certain, 1.0, deviation)
    nodes, weights, at_zero = _nodes(n_nodes)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        log_modulus, angle = phi(nodes / deviation[..., None])
    lost = None
    if not log_modulus.max(initial=0.0) <= 1.0:
        # A modulus is at most one: here rounding has left nothing of it.
        lost = ~((log_modulus <= 1.0) & np.isfinite(angle))
        log_modulus, angle = np.where(lost, 0.0, log_modulus), np.where(lost, 0.0, angle)
    modulus = np.exp(log_modulus)
    imaginary = _sine(angle)
    imaginary *= modulus
    score = np.clip(mean / deviation, -_CERTAIN, _CERTAIN)
    sums = imaginary @ weights
    sums += score[..., None] * at_zero
    probability = np.minimum(np.maximum(0.5 - sums[..., 0], 0.0), 1.0)
    # On the safe side: twice the error of the rule with half the nodes, the tail, and rounding.
    error = np.abs(sums[..., 1])
    error += modulus[..., -1] / np.pi
    error += 1e-14
    if lost is not None:
        error = np.where(lost.any(-1), 1.0, error)
    # Cantelli's inequality decides where phi oscillates too fast for the nodes.
    tail = score * score
    tail += 1.0
    np.divide(1.0, tail, out=tail)
    if np.count_nonzero(error > tail):
        bound = 1.0 - tail
        probability = np.maximum(probability, bound * (score < 0.0))
        probability = np.minimum(probability, 1.0 - bound * (score > 0.0))
        error = np.minimum(error, tail)
    if certain is not None:
        # Without any spread the sign of the mean decides.
        probability = np.where(certain, 0.5 - 0.5 * np.sign(mean), probability)
        error = np.where(certain, 0.0, error)
    return probability, error


def _sine(angle: Array) -> Array:
    """Sines as 2 T / (1 + T^2) with T = tan(angle / 2), for which NumPy has vector instructions."""
    tangent = np.tan(0.5 * angle)
    whole = tangent * tangent
    whole += 1.0
    tangent += tangent
    tangent /= whole
    return tangent


def wrong_probability(
    phi: CharacteristicFunction,
    mean: Array,
    deviation: Array,
    moved: Array,
    class_prior: Array,
    n_nodes: int,
) -> tuple[Array, Array]:
    """Expected risk of a random direction with a threshold `moved` from the middle (42)."""
    share = class_prior
    # So far out all answers are the likelier class.
    beyond = np.abs(moved) > np.abs(mean) + _FAR * deviation
    near = np.where(beyond, 0.0, moved)
    lean = 1.0 - 2.0 * share
    spread = np.hypot(deviation, 2.0 * np.sqrt(share * (1.0 - share)) * near)
    nodes, weights, at_zero = _nodes(n_nodes)
    at = nodes / np.where(spread > 0.0, spread, 1.0)[..., None]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        log_modulus, angle = phi(at)
    turn = at * near[..., None]
    cosine, sine = np.cos(turn), lean[..., None] * np.sin(turn)
    mixed = log_modulus + 0.5 * np.log(cosine * cosine + sine * sine)
    angle = angle + np.arctan2(sine, cosine)
    risk, error = negative_probability(
        lambda _: (mixed, angle), mean + lean * near, spread, n_nodes
    )
    # Nodes too far apart for the turning count as nothing but error; and where the mixture's
    # modulus is small by chance at the last node, that of phi is not.
    modulus = np.exp(np.where(log_modulus <= 1.0, log_modulus, 0.0))
    lost = np.abs(turn) * (2.0 * np.pi * at_zero[0]) > 2.0
    error = error + (modulus * lost) @ weights[:, 0] + modulus[..., -1] / np.pi
    error = np.where(spread > 0.0, error, 0.0)
    tail = np.where(np.isfinite(moved), np.exp(-1.0 - _FAR * np.exp(-1.0)), 0.0)
    smaller = np.minimum(share, 1.0 - share)
    return np.where(beyond, smaller, risk), np.where(beyond, tail, error)


def single(evaluate: Callable[..., tuple[Array, Array]]) -> tuple[Array, Array]:
    """Evaluate one case, with twice the nodes as long as it is not yet exact."""
    n_nodes = _FEWEST
    while True:
        probability, error = evaluate(n_nodes=n_nodes)
        n_nodes *= 2
        if n_nodes > _MOST or np.count_nonzero(error <= TOLERANCE) == error.size:
            return probability, error


def by_rows(
    evaluate: Callable[..., tuple[Array, Array]], columns: Sequence[Array], rows_at_once: int
) -> tuple[Array, Array]:
    """Evaluate rows in chunks, and those that are not yet exact again with twice the nodes."""
    n_rows = max(len(column) for column in columns)
    if not all(len(column) for column in columns):
        return np.empty(0), np.empty(0)
    pending: NDArray[np.intp] | None = None
    n_nodes = _FEWEST
    probability = error = np.empty(0)
    while True:
        parts = []
        for start in range(0, n_rows if pending is None else len(pending), rows_at_once):
            stop = start + rows_at_once
            which = slice(start, stop) if pending is None else pending[start:stop]
            chunk = [column[which] if len(column) == n_rows else column for column in columns]
            parts.append(evaluate(*chunk, n_nodes=n_nodes))
        new = parts[0] if len(parts) == 1 else tuple(map(np.concatenate, zip(*parts, strict=True)))
        if pending is None:
            probability, error = new
        else:
            probability[pending], error[pending] = new
        n_nodes *= 2
        pending = np.flatnonzero(error.reshape(n_rows, -1).max(1) > TOLERANCE)
        if n_nodes > _MOST or not pending.size:
            return probability, error
        rows_at_once = max(1, rows_at_once // 2)


# -- class proportions -----------------------------------------------------------------------------


def log_odds(class_prior: Array | float) -> Array:
    """Logarithm of the odds of the first class."""
    return np.asarray(-logit(class_prior))


def threshold(gap: Array, variance: Array | float, class_prior: Array | float) -> Array:
    """Distance (...) of the threshold from the middle (equation 20); infinite without a gap."""
    odds = log_odds(class_prior)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        moved = np.where(gap > 0.0, odds * variance / (2.0 * gap), odds * np.inf)
    return np.where(odds == 0.0, 0.0, moved)

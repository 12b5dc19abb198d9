"""Probabilities of a negative value by inverting a characteristic function (Gil-Pelaez 1951)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array

#: Takes arguments t of shape (..., n_nodes); returns log |phi(t)| and arg phi(t).
CharacteristicFunction = Callable[[Array], tuple[Array, Array]]

#: Numerical error above which the nodes of a row are doubled.
TOLERANCE = 1e-6
_FEWEST, _MOST = 32, 1024
#: Deviations from zero beyond which a sign is certain.
_CERTAIN = 1e100
#: Deviations beyond which a bilinear form in normals has less than TOLERANCE of its probability.
_FAR = 36.0


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
    tail = np.where(np.isfinite(moved), np.exp(-1.0 - _FAR / np.e), 0.0)
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


def integrated_risk(
    mean: Array,
    factor: Array,
    nu: Array,
    sigma: Array,
    moved: Array | float = 0.0,
    class_prior: Array | float = 0.5,
) -> tuple[Array, Array]:
    """Expected risk (...) of a normal direction of mean (..., d) and covariance L L' (16)."""
    n_features = mean.shape[-1]
    sigma_mean = np.matvec(sigma, mean)
    spread, turn = np.linalg.eigh(factor.mT @ sigma @ factor)
    rotated = (factor @ turn).mT
    p, q = np.matvec(rotated, nu), np.matvec(rotated, sigma_mean)
    centre, variance = np.vecdot(mean, nu)[..., None], np.vecdot(mean, sigma_mean)[..., None]
    unequal: tuple[Array, ...] = ()
    if np.any(class_prior != 0.5):
        unequal = (np.asarray(moved)[..., None], np.asarray(class_prior)[..., None])
    parts = np.broadcast_arrays(np.maximum(spread, 0.0), p, q, centre, variance, *unequal)
    batch = parts[0].shape[:-1]
    rows: list[Array] = [part.reshape(-1, n_features) for part in parts]
    risk, error = by_rows(_quadratic_form, rows, max(1, (1 << 14) // n_features))
    return risk.reshape(batch), error.reshape(batch)


def _quadratic_form(
    spread: Array, p: Array, q: Array, centre: Array, variance: Array, *unequal: Array, n_nodes: int
) -> tuple[Array, Array]:
    """Equation 16, over the eigenvalues of L' Sigma L with C = L L'; one case a row."""
    # From the centre on they are the same in every column.
    centre, variance = centre[:, 0], variance[:, 0]

    def phi(t: Array) -> tuple[Array, Array]:
        square = (t * t)[..., None]
        kernel = 1.0 + square * spread[:, None]
        pull = square * (square * q[:, None] ** 2 - p[:, None] ** 2) / kernel
        log_modulus = 0.5 * (pull - np.log(kernel)).sum(-1) - 0.5 * t * t * variance[:, None]
        bend = (square * p[:, None] * q[:, None] / kernel).sum(-1)
        return log_modulus, t * (centre[:, None] - bend)

    deviation = np.sqrt(np.maximum(variance, 0.0) + (p * p).sum(-1) + spread.sum(-1))
    if not unequal:
        return negative_probability(phi, centre, deviation, n_nodes)
    moved, class_prior = unequal[0][:, 0], unequal[1][:, 0]
    return wrong_probability(phi, centre, deviation, moved, class_prior, n_nodes)

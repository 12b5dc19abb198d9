"""Error rates of linear rules: of a given direction, and on average over a noisy one.

.. math:: R(\\omega) = \\Phi\\left(-\\omega^T\\nu / \\sqrt{\\omega^T\\Sigma\\omega}\\right), \\quad
    E[R(\\omega)] = P(\\omega^T x < 0), \\quad \\omega \\sim N(m, C), \\; x \\sim N(\\nu, \\Sigma)

(equations 14 and 15). Classes of unequal proportions move the threshold (20) and the rate (41).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from crossfade._typing import Array
from crossfade._validate import check_alphas, check_covariance, check_finite, check_spectrum
from crossfade.risk._expected import by_rows, negative_probability, threshold, wrong_probability

#: Largest number whose square can be multiplied with other squares.
LARGEST = 1e50
#: Least probability of a class: one less that is still another number than one.
_RAREST = 1e-15


class ExpectedRisk(NamedTuple):
    """Expected error rate and the error of that number."""

    risk: Array  # (...)
    error: Array  # (...): bound of the numerical error


class RiskCurve(NamedTuple):
    """Expected error rate at every alpha and the error of those numbers."""

    risks: Array  # (..., n_alphas)
    errors: Array  # (..., n_alphas): bound of the numerical error


def conditional_risk(
    omega: ArrayLike, *, nu: ArrayLike, sigma: ArrayLike, class_prior: ArrayLike | None = None
) -> Array:
    r"""Error rate of ``omega @ x > 0`` on two balanced Gaussians at ``+nu`` and ``-nu``.

    Equation 14:

    .. math:: R(\omega) = \Phi(-\omega^T\nu / \sqrt{\omega^T\Sigma\omega})

    On classes of unequal proportions the threshold is the best one for the direction (equations 20
    and 41); a direction without a positive gap then answers the likelier class always. That of
    :func:`expected_risk` belongs to the mean direction: it is not an average of this.

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
    >>> from crossfade.risk import conditional_risk
    >>> conditional_risk([[1.0, 0.0], [0.0, 1.0]], nu=[1.0, 0.0], sigma=np.eye(2)).round(4)
    array([0.1587, 0.5   ])
    """
    omega = check_finite("omega", omega, 1)
    n_features = omega.shape[-1]
    nu = check_finite("nu", nu, 1, n_features, LARGEST)
    sigma = check_covariance("sigma", sigma, n_features, LARGEST)
    check_batches(omega=(omega, 1), nu=(nu, 1), sigma=(sigma, 2))
    size = np.abs(omega).max(-1, keepdims=True, initial=0.0)
    omega = omega / np.where(size > 0.0, size, 1.0)
    gap = np.vecdot(omega, nu)
    variance = np.vecdot(omega, np.matvec(sigma, omega))
    if variance.size and variance.min() < 0.0:
        check_spectrum("sigma", np.linalg.eigvalsh(sigma))
    prior = check_class_prior(class_prior)
    return error_rate(gap, variance, threshold(gap, variance, prior), prior)


def expected_risk(
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    nu: ArrayLike,
    sigma: ArrayLike,
    class_prior: ArrayLike | None = None,
) -> ExpectedRisk:
    r"""Mean error rate of a direction that is normal with a given mean and covariance.

    Equations 15 and 16:

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

    Returns
    -------
    ExpectedRisk
        The fields `risk` and `error`.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade.risk import expected_risk
    >>> answer = expected_risk([1.0, 0.0], 0.1 * np.eye(2), nu=[1.0, 0.0], sigma=np.eye(2))
    >>> float(answer.risk.round(4)), bool(answer.error < 1e-6)
    (0.1734, True)
    """
    mean = check_finite("mean", mean, 1, None, LARGEST)
    n_features = mean.shape[-1]
    covariance = check_covariance("covariance", covariance, n_features, LARGEST)
    nu = check_finite("nu", nu, 1, n_features, LARGEST)
    sigma = check_covariance("sigma", sigma, n_features, LARGEST)
    check_batches(mean=(mean, 1), covariance=(covariance, 2), nu=(nu, 1), sigma=(sigma, 2))
    values, vectors = np.linalg.eigh(covariance)
    factor = vectors * np.sqrt(check_spectrum("covariance", values))[..., None, :]
    check_spectrum("sigma", np.linalg.eigvalsh(sigma))
    prior = check_class_prior(class_prior)
    moved = threshold(np.vecdot(mean, nu), np.vecdot(mean, np.matvec(sigma, mean)), prior)
    return ExpectedRisk(*integrated_risk(mean, factor, nu, sigma, moved, prior))


def risk_curve(
    alphas: ArrayLike,
    *,
    target: tuple[ArrayLike, ArrayLike],
    source: tuple[ArrayLike, ArrayLike],
    nu: ArrayLike,
    sigma: ArrayLike,
    class_prior: ArrayLike | None = None,
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
    pairs: dict[str, Any] = {"target": target, "source": source}
    for name, pair in pairs.items():
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(f"{name} must be a direction and its covariance; got {pair!r:.60}.")
    omega = check_finite("target[0]", target[0], 1, None, LARGEST)
    n_features = omega.shape[-1]
    sigma_omega = check_covariance("target[1]", target[1], n_features, LARGEST)
    mu = check_finite("source[0]", source[0], 1, n_features, LARGEST)
    psi = check_covariance("source[1]", source[1], n_features, LARGEST)
    check_batches(
        **{"target[0]": (omega, 1), "target[1]": (sigma_omega, 2)},
        **{"source[0]": (mu, 1), "source[1]": (psi, 2)},
    )
    own, crowd = alphas[:, None], 1.0 - alphas[:, None]
    means = own * omega[..., None, :] + crowd * mu[..., None, :]
    covariances = (own**2)[..., None] * sigma_omega[..., None, :, :]
    covariances = covariances + (crowd**2)[..., None] * psi[..., None, :, :]
    return RiskCurve(
        *expected_risk(
            means,
            covariances,
            nu=check_finite("nu", nu, 1, n_features, LARGEST)[..., None, :],
            sigma=check_covariance("sigma", sigma, n_features, LARGEST)[..., None, :, :],
            class_prior=class_prior,
        )
    )


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


def check_batches(**arrays: tuple[Array, int]) -> tuple[int, ...]:
    """Common leading axes of arrays, each with its number of axes of its own; refuses others."""
    batches = {name: array.shape[: array.ndim - own] for name, (array, own) in arrays.items()}
    try:
        return np.broadcast_shapes(*batches.values())
    except ValueError as reason:
        found = ", ".join(f"{name} {batch}" for name, batch in batches.items())
        raise ValueError(f"The leading axes do not fit together: {found}.") from reason


# -- class proportions -----------------------------------------------------------------------------


def check_class_prior(class_prior: ArrayLike | None) -> float:
    """Probability of the second class; None is one half."""
    if class_prior is None:
        return 0.5
    pair = check_finite("class_prior", class_prior, 0)
    # Half of it: one less a proportion has lost digits, and comes back from files.
    if pair.shape != (2,) or pair.min() < 0.5 * _RAREST or abs(pair.sum() - 1.0) > 1e-6:
        raise ValueError(
            "class_prior must be two probabilities above 0 that sum to 1, such as 0.9 and 0.1; got "
            f"{class_prior!r}."
        )
    return float(pair[1] / pair.sum())


def error_rate(
    gap: Array, variance: Array | float, moved: Array | float, class_prior: Array | float
) -> Array:
    """Error rate of a threshold that lies `moved` from the middle (equation 41), of shape (...)."""
    deviation = np.sqrt(np.maximum(variance, 0.0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        first, second = (-gap - moved) / deviation, (moved - gap) / deviation
    # No variance and no gap: the rule answers at random.
    first, second = np.where(np.isnan(first), 0.0, first), np.where(np.isnan(second), 0.0, second)
    return (1.0 - np.asarray(class_prior)) * ndtr(first) + class_prior * ndtr(second)

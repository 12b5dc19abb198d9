"""One person's direction and how noisy it is (equations 2 to 5).

.. math:: \\omega = S_s^{-1}\\nu, \\quad
    \\Sigma_\\omega = c S_s^{-1} + \\frac{(1 - r)^2}{f}
    \\left[(\\nu^T\\omega) S_s^{-1} + \\omega\\omega^T\\right], \\quad
    c = \\frac14\\left(\\frac1{n_0} + \\frac1{n_1}\\right)

with nu half the gap between the class means and S_s the covariance within the classes, shrunk by r
and of f degrees of freedom. Windows in a row are worth fewer independent ones (48).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array, Places
from crossfade.fisher import _spectrum
from crossfade.fisher._moments import ClassMoments
from crossfade.fisher._spectrum import Spectrum, rank_of, shrink

_SIGNS = np.array([[-1.0], [1.0]])


class Direction(NamedTuple):
    r"""A person's direction and its noise, in scaled units except for the means.

    The unit direction w has the covariance

    .. math:: \Sigma_\omega = a S^{-1} + g\,w w^T + h\,(w v^T + v w^T), \quad v = S^{-1} w

    Leading axes are those of a batch: of splits or of people.
    """

    omega: Array  # (..., d): unit direction w
    length: Array  # (...): its length before it was scaled
    noise: Array  # (...): the number a
    radial: Array  # (...): the number g
    cross: Array  # (...): the number h
    nu: Array  # (..., d): half the gap between the class means
    sigma: Spectrum  # covariance within the classes, shrunk
    shrinkage: Array  # (...): weight r of the identity in `sigma`
    counts: Array  # (..., 2): how many independent samples those of each class are worth
    dof: Array  # (...): how many independent degrees of freedom the covariance is worth
    rank: Array  # (...): rank of the covariance
    means: Array  # (..., 2, d): class means, in the user's units
    scale: Array  # (..., d): what features were divided by
    own_scale: NDArray[np.bool_]  # (...): whether `scale` was learnt from the same samples

    @property
    def midpoint(self) -> Array:
        """Middle between the class means, in the user's units."""
        return self.means.mean(-2)

    @property
    def covariance_dof(self) -> Array:
        """Degrees of freedom that the covariance takes from the samples, of shape (...)."""
        above = np.maximum(self.sigma.values - self.sigma.floor[..., None], 0.0)
        dof: Array = (above * _spectrum.invert(self.sigma.values)).sum(-1)
        return np.where(self.shrinkage < 1.0, dof, 0.0)

    @property
    def mean_noise(self) -> Array:
        """Variance (...) of the half gap in covariances: Student's if the scale is its own (25)."""
        dof = np.maximum(self.dof, 3.0)
        noise = mean_noise(self.counts)
        return np.where(self.own_scale, noise * (dof / (dof - 2.0)), noise)

    def covariance(self) -> Array:
        """Dense covariance of the unit direction (equation 5), projected off the direction."""
        inverse = self.sigma.inverse().dense()
        across = np.eye(self.omega.size) - np.outer(self.omega, self.omega)
        return float(self.noise) * across @ inverse @ across


def mean_noise(counts: Array) -> Array:
    """Variance of half the gap in units of the covariance, c of equation 5, of shape (...)."""
    return (1.0 / counts).sum(-1) / 4.0


def direction_of(
    sigma: Spectrum,
    nu: Array,
    counts: Array,
    shrinkage: Array | float,
    form: str = "unit",
    dof: Array | float | None = None,
    **more: Any,
) -> Direction:
    """Direction for a half gap (..., d) and a covariance that was shrunk, or that is known."""
    of_means = mean_noise(counts)
    # In the eigenvectors of the covariance: S^-1 nu, its length, and nu'S^-1 nu.
    inverse = sigma.inverse()
    inside = np.matvec(sigma.basis.mT, nu)
    solved = inside * inverse.values
    raw = np.matvec(sigma.basis, solved)
    square, separation = np.vecdot(solved, solved), np.vecdot(inside, solved)
    bent = np.vecdot(solved * inverse.values, solved)
    if inside.shape[-1] < nu.shape[-1]:
        rest = nu - np.matvec(sigma.basis, inside)
        beyond, floor = np.vecdot(rest, rest), inverse.floor
        raw = raw + floor[..., None] * rest
        square, separation = square + beyond * floor**2, separation + beyond * floor
        bent = bent + beyond * floor**3
    length = np.sqrt(square)
    safe = np.where(length > 0.0, length, 1.0)
    omega = raw / safe[..., None]
    norm = np.vecdot(omega, omega)[..., None]
    if (np.abs(norm - 1.0) > 1e-9).any():
        # Eigenvectors of hardly any variance are not quite orthogonal.
        omega = omega / np.sqrt(np.where(norm > 0.0, norm, 1.0))
    if dof is None:
        dof = np.maximum(counts.sum(-1) - 2.0, 1.0)
    r = np.asarray(shrinkage)
    if form == "unit":
        noise = (of_means + (1.0 - r) ** 2 / dof * separation) / safe**2
        radial, cross = noise * bent / safe**2, -noise
    else:
        gap = np.vecdot(nu, nu) / counts.sum(-1)
        noise = (1.0 + separation) * gap
        # The paper's raw formula (equation 6), with its printed sign.
        radial, cross = -(length**2) * gap, np.zeros_like(gap)
    if not more:
        # Known rather than learnt: about the origin, in raw units.
        more = {
            "rank": np.broadcast_to(np.asarray(sigma.n_features), length.shape),
            "means": nu[..., None, :] * _SIGNS,
            "scale": np.ones(sigma.n_features),
            "own_scale": np.asarray(False),
        }
    freedom = np.asarray(dof)
    return Direction(omega, length, noise, radial, cross, nu, sigma, r, counts, freedom, **more)


def learn_direction(
    moments: ClassMoments,
    shrinkage: str | float | None = "oas",
    scale: Array | None = None,
    *,
    fallback: Spectrum | None = None,
    form: str = "unit",
    correlation: Array | None = None,
) -> Direction:
    """Direction from the moments of labelled samples (equations 2 to 5).

    A `scale` of None is the deviation within the classes, a `shrinkage` of None the pseudo-inverse;
    `fallback` is the covariance where samples allow no estimate, `correlation` that of neighbours.
    """
    deviation = moments.deviation()
    varies = deviation > 0.0
    own_scale = scale is None
    if scale is None:
        scale = np.where(varies, deviation, 1.0)
    nu = moments.gap() / (2.0 * scale)
    counts, dof, shown = moments.counts[..., :2], moments.dof, 1.0
    if correlation is not None and correlation.size:
        sizes = np.maximum(np.rint(moments.counts), 1.0).astype(np.intp)
        worth = worth_of_runs(correlation, sizes)
        counts, shown = counts / worth.crowding[:2], worth.shown
        dof = np.maximum(dof * worth.dof, 1.0)
    still = np.asarray(False if varies.all() else ~varies.any(-1))
    if np.all(moments.left >= 1.0) and not still.all():
        unit = scale if varies.all() else np.where(varies, scale, np.inf)
        sigma, r, rank = shrink(moments.spectrum(unit), shrinkage, nu, dof, fallback, shown)
        if still.any():
            sigma = sigma.replaced(still, fallback)
            r, rank = np.where(still, 1.0, r), np.where(still, rank_of(sigma), rank)
    else:
        sigma = _spectrum.identity(nu.shape) if fallback is None else fallback
        r, rank = np.ones(nu.shape[:-1]), rank_of(sigma)
        still = np.ones(nu.shape[:-1], bool)
    about: dict[str, Any] = {
        "means": moments.means[..., :2, :],
        "scale": scale,
        "own_scale": own_scale & ~still,
    }
    found = direction_of(sigma, nu, counts, r, form, dof, rank=rank, **about)
    if not found.length.all() and nu.any():
        lost = (found.length == 0.0) & nu.any(-1)
        # The classes differ only where nothing varies: the gap itself is the direction.
        sigma, r = sigma.replaced(lost), np.where(lost, 1.0, r)
        rank = np.where(lost, nu.shape[-1], rank)
        found = direction_of(sigma, nu, counts, r, form, dof, rank=rank, **about)
    return found


# -- windows that follow each other ----------------------------------------------------------------


class Worth(NamedTuple):
    """Effective sample size of correlated runs (equation 48)."""

    crowding: Array  # (n_classes,): how many neighbours say as much of a mean as one sample
    shown: float  # proportion of the variance that shows in deviations from the means of the runs
    dof: float  # proportion of the degrees of freedom that is left


def worth_of_runs(correlation: Array, sizes: Places) -> Worth:
    """Worth of runs of `sizes` samples; ratios are one where nothing is correlated."""
    key = correlation.tobytes()
    runs = [_run(key, size) for size in sizes.tolist()]
    totals = np.array([total for total, _ in runs])
    within = float((sizes - totals / sizes).sum())
    left = max(float(sizes.sum() - sizes.size), 1.0)
    if within <= 0.0:
        return Worth(totals / sizes, 1.0, 1.0)
    square = sum(square for _, square in runs)
    return Worth(totals / sizes, within / left, within**2 / square / left)


@lru_cache(maxsize=4096)
def _run(correlation: bytes, size: int) -> tuple[float, float]:
    """Sum of the correlation matrix R of a run, and tr((C R)^2) with C centring, in O(n_lags)."""
    rho = np.frombuffer(correlation)
    # Sum of the correlations up to each distance.
    summed = np.concatenate([[0.0], np.cumsum(rho)])
    edge = min(size, 2 * rho.size)
    before = np.minimum(np.arange(edge), rho.size)
    sums = 1.0 + summed[before] + summed[before[::-1]]
    inner, middle = size - edge, 1.0 + 2.0 * summed[-1]
    total = float(sums.sum()) + inner * middle
    squared_sums = float(sums @ sums) + inner * middle**2
    reach = rho[: size - 1]
    squares = size + 2.0 * float((size - np.arange(1, reach.size + 1)) @ reach**2)
    return total, squares - 2.0 * squared_sums / size + (total / size) ** 2

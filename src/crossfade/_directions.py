"""Sums of unit directions in; their scatter and the standard error of their mean out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from crossfade._blend_law import PsiParts
from crossfade._shrinkage import oas

Array = NDArray[np.float64]

PSI_FORMS = ("tangent", "authors", "printed")
#: A scatter below this is certainty that no number of tasks can justify.
LEAST_SCATTER = 1e-10


def shrunk_scatter(mean: Array, second_moment: Array, n_tasks: int) -> Array:
    """Covariance of directions between tasks, shrunk by OAS (equation 12).

    Parameters
    ----------
    mean : ndarray of shape (..., n_features)
        Mean of the unit directions.
    second_moment : ndarray of shape (..., n_features, n_features)
        Mean of their outer products.
    n_tasks : int
        How many directions there are.

    Returns
    -------
    ndarray of shape (..., n_features, n_features)
        Covariance matrices; one task leaves the identity over the number of features.
    """
    n_features = mean.shape[-1]
    identity = np.eye(n_features)
    if n_tasks == 1:
        return np.broadcast_to(identity / n_features, second_moment.shape)
    scatter = second_moment - mean[..., :, None] * mean[..., None, :]
    scatter = scatter * (n_tasks / (n_tasks - 1.0))
    trace = np.trace(scatter, axis1=-2, axis2=-1)
    weight = oas(trace, (scatter**2).sum((-2, -1)), n_features, n_tasks - 1.0)
    level = np.maximum(weight * trace / n_features, LEAST_SCATTER)
    shrunk: Array = (1.0 - weight)[..., None, None] * scatter + level[..., None, None] * identity
    return shrunk


def psi_parts(
    form: str, resultant: Array, mean_square: Array, n_tasks: int, n_features: int
) -> PsiParts:
    """Covariance of the mean direction in one of its three forms (equation 10).

    Parameters
    ----------
    form : {"tangent", "authors", "printed"}
        The right one, the one behind the paper's figures, the one in its text.
    resultant : ndarray of shape (...)
        Length of the mean of the directions.
    mean_square : ndarray of shape (...)
        Mean of the squared cosines with the mean direction.
    n_tasks, n_features : int
        How many directions, of what dimension.

    Returns
    -------
    PsiParts
        Multiples of the identity and of the outer product of the mean direction.
    """
    unlike = np.maximum(1.0 - mean_square, 0.0)
    if form == "printed":
        return PsiParts(np.sqrt(unlike / (n_tasks * resultant)), np.zeros_like(unlike))
    if form == "authors":
        return PsiParts(unlike / (n_tasks * resultant**2), np.zeros_like(unlike))
    # One task says nothing about its spread: each tangent direction gets that of the sphere.
    # On a line there is none.
    tangent = unlike / max(n_features - 1, 1)
    if n_tasks == 1:
        tangent = np.full_like(unlike, 1 / n_features if n_features > 1 else 0.0)
    variance = tangent / (n_tasks * resultant**2)
    return PsiParts(variance, -variance)


def resultant_from_psi(trace: float, form: str, n_tasks: int, n_features: int) -> float:
    """Length of the mean that goes with a Psi under the von Mises-Fisher law (equation 11)."""
    d = n_features
    if d == 1 or n_tasks == 1:
        return 1.0
    if form == "printed":
        # (trace / d)^2 J = (1 - q) / R, with 1 - q = (d - 1)(1 - R^2) / (d - R^2).
        target = (trace / d) ** 2 * n_tasks

        def excess(r: float) -> float:
            return (d - 1.0) * (1.0 - r * r) / (d - r * r) - target * r

        return float(brentq(excess, 0.0, 1.0))
    shared = d - 1.0 if form == "tangent" else d * (d - 1.0)
    scaled = trace / shared * n_tasks
    if scaled == 0.0:
        return 1.0
    middle = scaled * d + 1.0
    # The smaller root, written without cancellation.
    square = 2.0 / (middle + np.sqrt(middle**2 - 4.0 * scaled))
    return float(np.sqrt(square))

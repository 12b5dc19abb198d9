"""A mean direction and its standard error, which the paper shares, as the sum of directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from crossfade._typing import Array
from crossfade._validate import check_choice, check_covariance, check_finite, check_spectrum

PSI_FORMS = ("tangent", "authors", "printed")


def form_of_psi(psi: Array, direction: Array, form: str) -> str:
    """Form that a covariance of the mean direction has; refuses one that it has not."""
    n_features = direction.size
    shape, size = np.eye(n_features), n_features
    even = np.abs(psi - np.trace(psi) / size * shape).max() <= 1e-6 * np.abs(psi).max()
    if form == "auto":
        form = "authors" if even and n_features > 1 else "tangent"
    if form == "tangent":
        shape, size = shape - np.outer(direction, direction), max(n_features - 1, 1)
    if np.abs(psi - np.trace(psi) / size * shape).max() > 1e-6 * np.abs(psi).max():
        kind = "I - mu mu'" if form == "tangent" else "the identity"
        raise ValueError(
            f"psi is not of the {form} form, a multiple of {kind}. Pass what "
            "TaskPrior.standard_error gives, and which form it is."
        )
    return form


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


def sum_of_summary(mu: ArrayLike, psi: ArrayLike, n_tasks: int, form: str) -> Array:
    """Sum that directions would have by their mean direction and its covariance (equation 11)."""
    check_choice("form", form, ("auto", *PSI_FORMS))
    direction = check_finite("mu", mu, 1)
    length = float(np.linalg.norm(direction))
    if direction.ndim != 1 or abs(length - 1.0) > 1e-6:
        raise ValueError(
            f"mu must be one unit vector; got shape {direction.shape}, length {length:.6g}. "
            "Divide it by its norm."
        )
    psi = check_covariance("psi", psi, direction.size)
    if psi.ndim != 2:
        raise ValueError(f"psi must be one matrix; got shape {psi.shape}.")
    check_spectrum("psi", np.linalg.eigvalsh(psi))
    form = form_of_psi(psi, direction, form)
    resultant = resultant_from_psi(float(np.trace(psi)), form, n_tasks, direction.size)
    return n_tasks * resultant * direction

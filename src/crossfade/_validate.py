"""Checks of arguments: every refusal says what was wrong, what was found and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._typing import Array, RandomState


def check_choice(name: str, value: object, allowed: Sequence[str]) -> str:
    """Return `value` if it is one of the allowed words."""
    if isinstance(value, str) and value in allowed:
        return value
    words = ", ".join(repr(word) for word in allowed)
    raise ValueError(f"{name} must be one of {words}; got {value!r}.")


def check_number(
    name: str, value: object, low: float, high: float = np.inf, *, or_words: str = ""
) -> float:
    """Return `value` as a float if it lies in [low, high]."""
    also = f", or one of {or_words}" if or_words else ""
    bounds = f"from {low:g} to {high:g}" if np.isfinite(high) else f"of at least {low:g}"
    is_number = isinstance(value, (int, float, np.integer, np.floating))
    if isinstance(value, (bool, np.bool_)) or not is_number:
        raise ValueError(f"{name} must be a number {bounds}{also}; got {value!r}.")
    number = float(value)  # type: ignore[arg-type]
    if not low <= number <= high:
        raise ValueError(f"{name} must be a number {bounds}{also}; got {value!r}.")
    return number


def check_integer(name: str, value: object, low: int) -> int:
    """Return `value` as an int if it is a whole number of at least `low`."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or int(value) < low:  # type: ignore[call-overload]
        raise ValueError(f"{name} must be a whole number of at least {low}; got {value!r}.")
    number: int = int(value)  # type: ignore[call-overload]
    return number


def check_finite(
    name: str,
    values: ArrayLike,
    ndim: int,
    n_features: int | None = None,
    largest: float = 1e100,
) -> Array:
    """Return `values` as finite floats with at least `ndim` axes, the last of length n_features."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        array = values
    else:
        array = _as_floats(name, values)
    if array.ndim < ndim:
        wanted = "one axis or more" if ndim == 1 else f"at least {ndim} axes"
        raise ValueError(f"{name} must have {wanted}; got shape {array.shape}.")
    if n_features is not None and array.shape[-1] != n_features:
        raise ValueError(
            f"{name} must have {n_features} features on the last axis; got shape {array.shape}."
        )
    size = np.abs(array).max(initial=0.0)
    if size <= largest and size < np.inf:
        return array
    if not np.isfinite(size):
        raise ValueError(f"{name} must be finite; found NaN or infinity. Drop or fill those rows.")
    raise ValueError(f"{name} is too large to be squared: {size:.3g}. Rescale it.")


def _as_floats(name: str, values: ArrayLike) -> Array:
    if np.iscomplexobj(values):
        raise ValueError(f"{name} must be real numbers; got complex ones.")
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as reason:
        raise ValueError(f"{name} must be numbers, in rows of equal length: {reason}.") from reason


def check_covariance(name: str, values: ArrayLike, n_features: int) -> Array:
    """Return `values` as symmetric, non-negative matrices of shape (..., d, d)."""
    array = check_finite(name, values, 2, n_features)
    if array.shape[-2] != n_features:
        raise ValueError(
            f"{name} must be of shape (..., {n_features}, {n_features}); got {array.shape}."
        )
    if (array == array.mT).all():
        return array
    size = np.abs(array).max(initial=0.0)
    if np.abs(array - array.mT).max(initial=0.0) > 1e-8 * size:
        raise ValueError(f"{name} must be symmetric. Use (a + a.T) / 2 if rounding is the reason.")
    return array


def check_spectrum(name: str, values: NDArray[np.floating[Any]]) -> Array:
    """Refuse eigenvalues of what cannot be a covariance; clip what rounding made negative."""
    if values.size and values.min() < -1e-8 * values.max(initial=0.0):
        raise ValueError(
            f"{name} must have no negative eigenvalue; the smallest is {values.min():.3g}."
        )
    return np.maximum(values.astype(np.float64, copy=False), 0.0)


def check_directions(
    projections: ArrayLike, n_features: int | None = None, *, normalize: bool = False
) -> Array:
    """Return finite unit rows, scaled to unit length on request."""
    directions = check_finite("projections", projections, 2, n_features, np.inf)
    if directions.ndim != 2 or directions.shape[0] == 0 or directions.shape[1] == 0:
        raise ValueError(
            "projections must be of shape (n_tasks, n_features) with at least one row; got "
            f"{directions.shape}."
        )
    if normalize:
        # First by the largest entry, whose square a number may not hold.
        largest = np.abs(directions).max(1, keepdims=True)
        directions = directions / np.where(largest > 0.0, largest, 1.0)
    lengths = np.sqrt(np.einsum("ij,ij->i", directions, directions))
    zero = lengths == 0.0
    if zero.any():
        raise ValueError(
            f"projections must not be zero; row {int(zero.argmax())} is. A task whose classes do "
            "not differ has no direction: leave it out."
        )
    if normalize:
        scaled: Array = directions / lengths[:, None]
        return scaled
    far = np.abs(lengths - 1.0) > 1e-6
    if far.any():
        row = int(far.argmax())
        raise ValueError(
            f"projections must be unit vectors; row {row} has length {lengths[row]:.6g}. Divide "
            "each row by its norm, or pass normalize=True."
        )
    return directions


def check_scale(feature_scale: ArrayLike | None, n_features: int) -> Array:
    """Return one positive number for each feature; None is ones."""
    if feature_scale is None:
        return np.ones(n_features)
    scale = check_finite("feature_scale", feature_scale, 1, n_features)
    if scale.ndim != 1 or scale.min() <= 0.0:
        raise ValueError(
            f"feature_scale must be {n_features} positive numbers, one for each feature; got "
            f"{feature_scale!r}."
        )
    return scale


def check_classes(classes: Sequence[Any] | None) -> tuple[Any, Any] | None:
    """Return two sorted labels as plain Python values."""
    if classes is None:
        return None
    values = np.asarray(classes)
    if values.shape != (2,) or not values[0] < values[1]:
        raise ValueError(f"classes must be two different labels in sorted order; got {classes!r}.")
    low, high = values.tolist()
    return low, high


def check_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    """Return one name for each feature."""
    if names is None:
        return None
    if len(names) != n_features:
        raise ValueError(f"feature_names must be {n_features} names; got {len(names)}.")
    return tuple(str(name) for name in names)


def unit(name: str, vectors: Array) -> Array:
    """Vectors over their lengths; refuses zeros."""
    length = np.linalg.vector_norm(vectors, axis=-1, keepdims=True)
    if not (length > 1e-12).all():
        raise ValueError(f"{name} must not have length zero.")
    scaled: Array = vectors / length
    return scaled


def check_alphas(alphas: ArrayLike, name: str = "alphas") -> Array:
    """Return weights as floats, all from 0 to 1."""
    array = check_finite(name, alphas, 1)
    if array.ndim > 1:
        raise ValueError(f"{name} must have one axis; got shape {array.shape}.")
    if array.size == 0 or array.min() < 0.0 or array.max() > 1.0:
        raise ValueError(
            f"{name} must lie from 0 (the crowd alone) to 1 (the target alone); got {array}."
        )
    return array


def check_counts(n_samples: ArrayLike) -> Array:
    """Return samples per class; one number counts both classes and is taken as balanced."""
    counts = check_finite("n_samples", n_samples, 0)
    if counts.ndim == 0:
        total = check_number("n_samples", counts.item(), 2.0)
        return np.full(2, total / 2.0)
    if counts.shape != (2,) or not np.isfinite(counts).all() or counts.min() <= 0.0:
        raise ValueError(
            f"n_samples must be one number or a pair of positive numbers; got {n_samples!r}."
        )
    return counts


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Turn a seed, a Generator or scikit-learn's RandomState into a Generator."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def grid_of(step: object) -> Array:
    """Return the alphas 0, step, ..., 1; refuse a step that does not divide one."""
    size = check_number("step", step, 1e-4, 1.0)
    n_steps = round(1.0 / size)
    if abs(n_steps * size - 1.0) > 1e-9:
        raise ValueError(
            f"step must divide 1, as 0.1, 0.05 and 0.25 do; got {step!r}. The nearest that does is "
            f"{1.0 / n_steps:.6g}."
        )
    return np.linspace(0.0, 1.0, n_steps + 1)

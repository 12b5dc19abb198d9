"""Checks of arguments, where they enter: what was wrong, what was found and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from types import UnionType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._typing import Array, RandomState

#: Largest weight of a sample or number of samples, and one over the smallest.
HEAVIEST = 1e15


def check_choice(name: str, value: Any, allowed: Sequence[Any]) -> Any:
    """Return `value` if it is one of the allowed words."""
    if (value is None or isinstance(value, str)) and value in allowed:
        return value
    words = ", ".join(repr(word) for word in allowed)
    raise ValueError(f"{name} must be one of {words}; got {value!r}.")


def check_type(name: str, value: object, kind: type | UnionType, called: str) -> None:
    """Refuse a value of another type than `kind`, which people call `called`."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {called}; got {type(value).__name__}.")


def check_flag(name: str, value: Any) -> bool:
    """Return `value` if it is true or false."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r:.80}.")
    return bool(value)


def check_number(name: str, value: object, low: float, high: float = np.inf) -> float:
    """Return `value` as a float if it lies in [low, high]."""
    number = np.nan
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        with suppress(OverflowError):
            number = float(value)
    if not low <= number <= high:
        bounds = f"from {low:g} to {high:g}" if np.isfinite(high) else f"of at least {low:g}"
        raise ValueError(f"{name} must be a number {bounds}; got {value!r}.")
    return number


def check_integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return `value` as an int if it is a whole number from `low` to `high`."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not low <= value <= (np.inf if high is None else high):
        bounds = f"of at most {high}" if whole and value > low else f"of at least {low}"
        raise ValueError(f"{name} must be a whole number {bounds}; got {value!r}.")
    return int(value)


def check_finite(
    name: str, values: ArrayLike, ndim: int, n_features: int | None = None, largest: float = 1e100
) -> Array:
    """Return `values` as finite floats with at least `ndim` axes, the last of length n_features."""
    plain = type(values) is np.ndarray and values.dtype == np.float64
    array = np.asarray(values) if plain else as_floats(name, values)
    if array.ndim < ndim:
        raise ValueError(f"{name} must have at least {ndim} axes; got shape {array.shape}.")
    if n_features is not None and array.shape[-1] != n_features:
        raise ValueError(
            f"{name} must have {n_features} features on the last axis; got shape {array.shape}."
        )
    size = np.abs(array).max(initial=0.0)
    if not np.isfinite(size):
        raise ValueError(f"{name} must be finite; found NaN or infinity. Drop or fill those rows.")
    if size > largest:
        raise ValueError(f"{name} is too large to be squared: {size:.3g}. Rescale it.")
    return array


def refuse_masked(name: str, values: object) -> None:
    """Refuse a masked array in which anything is masked."""
    mask = np.ma.getmaskarray(values) if np.ma.isMaskedArray(values) else np.zeros(0)
    if mask.any():
        raise ValueError(
            f"{name} has {mask.sum()} of {mask.size} values masked: masked values are missing. "
            "Fill them, or drop those rows."
        )


def as_floats(name: str, values: ArrayLike) -> Array:
    """Values as floats; text, times and complex numbers are refused."""
    refuse_masked(name, values)
    try:
        given = np.asarray(values)
        is_object = given.dtype.kind == "O"
        is_text = is_object and any(isinstance(one, (str, bytes)) for one in given.flat)
        if is_text or given.dtype.kind in "cUSMm":
            raise TypeError(f"found {'text' if is_text else given.dtype}")
        return given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as reason:
        raise ValueError(f"{name} must be numbers, in rows of equal length: {reason}.") from reason


def check_covariance(
    name: str, values: ArrayLike, n_features: int, largest: float = 1e100
) -> Array:
    """Return `values` as symmetric, non-negative matrices of shape (..., d, d)."""
    array = check_finite(name, values, 2, n_features, largest)
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
    """Refuse negative eigenvalues; clip those that rounding made negative."""
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
    if directions.ndim != 2 or not directions.size:
        raise ValueError(
            "projections must be of shape (n_tasks, n_features) with at least one row; got "
            f"{directions.shape}."
        )
    if normalize:
        # Divide by the largest entry first: its square may overflow.
        largest = np.abs(directions).max(1, keepdims=True)
        directions = directions / np.where(largest > 0.0, largest, 1.0)
    lengths = np.sqrt(np.einsum("ij,ij->i", directions, directions))
    bad = lengths == 0.0 if normalize else np.abs(lengths - 1.0) > 1e-6
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"projections must be unit vectors; row {row} has length {lengths[row]:.6g}. "
            "Divide each row by its norm, or pass normalize=True; leave out rows of zeros."
        )
    return directions / lengths[:, None] if normalize else directions


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


def resolve_scale(feature_scale: ArrayLike | str | None, n_features: int) -> Array | None:
    """Scale of the features, checked; None for the samples' own deviation."""
    if isinstance(feature_scale, str):
        if feature_scale != "auto":
            raise ValueError(
                f"feature_scale must be 'auto', None or one positive number for each feature; got "
                f"{feature_scale!r}."
            )
        return None
    return check_scale(feature_scale, n_features)


def check_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    """Return one name for each feature."""
    if names is None:
        return None
    if isinstance(names, str) or not np.ndim(names) or len(names) != n_features:
        raise ValueError(f"feature_names must be {n_features} names; got {np.size(names)}.")
    return tuple(str(name) for name in names)


def unit(name: str, vectors: Array) -> Array:
    """Vectors over their lengths; refuses zeros."""
    length = np.linalg.vector_norm(vectors, axis=-1, keepdims=True)
    if not (length > 1e-12).all():
        raise ValueError(f"{name} must not have length zero.")
    return vectors / length


def check_alphas(alphas: ArrayLike, name: str = "alphas") -> Array:
    """Return weights (n_alphas,) as floats, all from 0 to 1."""
    array = check_finite(name, alphas, 1)
    if array.ndim > 1 or array.size == 0 or array.min() < 0.0 or array.max() > 1.0:
        raise ValueError(
            f"{name} must be a list of weights from 0 (the crowd alone) to 1 (the target alone); "
            f"got {alphas!r:.80}."
        )
    return array


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Turn a seed, a Generator or scikit-learn's RandomState into a Generator."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as reason:
        raise ValueError(
            "random_state must be a whole number of at least 0, a Generator or None; got "
            f"{random_state!r}."
        ) from reason


#: Largest feature whose fourth power, summed over samples and features, is still a number; and the
#: smallest.
LARGEST, SMALLEST = 1e60, 1e-60


def refuse_size(largest: Array, whose: str = "X") -> None:
    """Refuse features that overflow when squared, by their largest absolute values (d,)."""
    bad = (largest > LARGEST) | ((largest > 0.0) & (largest < SMALLEST))
    if bad.any():
        place = int(bad.argmax())
        raise ValueError(
            f"Feature {place} of {whose} is of size {largest[place]:.3g}, and its square is beyond "
            "what a number can hold. Rescale it, or leave it out."
        )


def as_labels(labels: Any) -> NDArray[Any]:
    """Labels as an array."""
    try:
        array = np.asarray(labels)
        if array.dtype.kind == "c":
            raise TypeError("found complex numbers")
        return array
    except (TypeError, ValueError) as reason:
        raise ValueError(f"Labels must be numbers, text or booleans: {reason}.") from reason


def classes_of(labels: NDArray[Any]) -> NDArray[Any]:
    """Sorted labels that occur; refuses labels that cannot be sorted."""
    try:
        if labels.dtype.kind == "O":
            set(labels.flat)
        return np.unique(labels)
    except TypeError as reason:
        raise ValueError(
            f"Labels must be numbers, text or booleans, all of one kind: {reason}."
        ) from reason


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN or what pandas has for it, which equals nothing."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True
    except ValueError:
        # An array is not a label, and is refused elsewhere.
        return False


def refuse_nameless(called: str, names: Any) -> None:
    """Refuse missing names of people."""
    refuse_masked(called, names)
    missing = [is_missing(one) for one in as_labels(names).ravel().tolist()]
    if any(missing):
        raise ValueError(
            f"{sum(missing)} of {len(missing)} values of {called} are missing. Leave them out."
        )


def check_extra(package: str, extra: str, what: str) -> None:
    """Refuse what needs a package that is not installed, and name the extra that brings it."""
    if find_spec(package) is None:
        raise ImportError(f"{what} needs {package}. Install crossfade[{extra}].")

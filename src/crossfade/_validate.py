"""Checks of arguments: every refusal says what was wrong, what was found and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
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


def check_number(
    name: str, value: object, low: float, high: float = np.inf, *, or_words: str = ""
) -> float:
    """Return `value` as a float if it lies in [low, high]."""
    also = f", or one of {or_words}" if or_words else ""
    bounds = f"from {low:g} to {high:g}" if np.isfinite(high) else f"of at least {low:g}"
    is_number = isinstance(value, (int, float, np.integer, np.floating))
    if isinstance(value, (bool, np.bool_)) or not is_number:
        raise ValueError(f"{name} must be a number {bounds}{also}; got {value!r}.")
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        number = np.nan
    if not low <= number <= high:
        raise ValueError(f"{name} must be a number {bounds}{also}; got {value!r}.")
    return number


def check_integer(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return `value` as an int if it is a whole number of at least `low`, and at most `high`."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or int(value) < low:  # type: ignore[call-overload]
        raise ValueError(f"{name} must be a whole number of at least {low}; got {value!r}.")
    if high is not None and int(value) > high:  # type: ignore[call-overload]
        raise ValueError(f"{name} must be a whole number of at most {high}; got a larger one.")
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


def refuse_masked(name: str, values: object) -> None:
    """Refuse a masked array in which anything is masked."""
    if not isinstance(values, np.ma.MaskedArray):
        return
    mask = np.ma.getmaskarray(values)
    if mask.any():
        places = np.argwhere(mask)
        where = ", ".join(str(tuple(one)) for one in places[:3].tolist())
        more = ", ..." if len(places) > 3 else ""
        raise ValueError(
            f"{name} has {len(places)} of {mask.size} values masked, at {where}{more}: masked "
            "values are missing. Fill them, or drop those rows."
        )


def _as_floats(name: str, values: ArrayLike) -> Array:
    refuse_masked(name, values)
    try:
        given = np.asarray(values)
        kind = given.dtype.kind
        if kind == "O" and any(isinstance(one, (str, bytes)) for one in given.flat):
            kind = "U"
        if kind not in "cUSMm":
            return given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as reason:
        raise ValueError(f"{name} must be numbers, in rows of equal length: {reason}.") from reason
    if kind == "c":
        raise ValueError(f"{name} must be real numbers; got complex ones.")
    raise ValueError(f"{name} must be numbers; got {'text' if kind in 'US' else 'times'}.")


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
    if values.dtype.kind == "c" or (values.dtype.kind == "f" and not np.isfinite(values).all()):
        raise ValueError(f"classes must be labels that are numbers, or text; got {classes!r}.")
    low, high = values.tolist()
    return low, high


def check_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    """Return one name for each feature."""
    if names is None:
        return None
    if isinstance(names, str) or not np.ndim(names) or len(names) != n_features:
        raise ValueError(f"feature_names must be a list of {n_features} names; got {names!r:.80}.")
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
        counts = np.full(2, check_number("n_samples", counts.item(), 2.0) / 2.0)
    if counts.shape != (2,) or not np.isfinite(counts).all() or counts.min() <= 0.0:
        raise ValueError(
            f"n_samples must be one number or a pair of positive numbers; got {n_samples!r}."
        )
    if counts.min() < 1.0 / HEAVIEST or counts.max() > HEAVIEST:
        raise ValueError(
            f"n_samples must be numbers from {1.0 / HEAVIEST:g} to {HEAVIEST:g}; got {n_samples!r}."
        )
    return counts


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


#: Largest feature whose fourth power, summed over samples and features, is still a number; and the
#: smallest.
LARGEST, SMALLEST = 1e60, 1e-60


def refuse_size(largest: Array, whose: str = "X") -> None:
    """Refuse features whose powers are no numbers, by the largest absolute value (d,) of each."""
    most = float(largest.max(initial=0.0))
    if most > LARGEST or 0.0 < most < SMALLEST:
        raise ValueError(
            f"The features of {whose} are of size {most:.3g}, and their squares are beyond what a "
            "number can hold. Rescale them."
        )
    small = np.flatnonzero((largest > 0.0) & (largest < SMALLEST))
    if small.size:
        raise ValueError(
            f"Feature {small[0]} of {whose} is of size {largest[small[0]]:.3g}, and its square is "
            "beyond what a number can hold. Rescale it, or leave it out."
        )


def as_labels(labels: Any) -> NDArray[Any]:
    """Labels as an array; refuses what is none."""
    try:
        array = np.asarray(labels)
    except ValueError as reason:
        raise ValueError(
            f"Labels must be one number, text or boolean for each sample: {reason}"
        ) from reason
    if array.dtype.kind == "c":
        raise ValueError("Labels must be numbers, text or booleans; got complex numbers.")
    return array


def classes_of(labels: NDArray[Any]) -> NDArray[Any]:
    """Sorted labels that occur; refuses those that have no order."""
    try:
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
        # An array is no label, and is refused as such.
        return False


def refuse_nameless(called: str, names: Any) -> None:
    """Refuse people of whom some have no name: nobody could say whose these rows are."""
    refuse_masked(called, names)
    every = as_labels(names).ravel().tolist()
    n_missing = sum(map(is_missing, every))
    if n_missing:
        raise ValueError(
            f"{n_missing} of {len(every)} values of {called} are missing. Say whose each row is, "
            "or leave these rows out."
        )


def check_extra(package: str, extra: str, what: str) -> None:
    """Refuse what needs a package that is not installed, and name the extra that brings it."""
    if find_spec(package) is None:
        raise ImportError(f"{what} needs {package}. Install crossfade[{extra}].")

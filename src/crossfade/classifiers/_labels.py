"""Labels of a target: which are missing, where the others stand, and what is wrong with them."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._typing import Places
from crossfade._validate import as_labels, is_missing
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher import encode
from crossfade.risk import check_class_prior


def missing_labels(y: Any) -> NDArray[np.bool_] | None:
    """Which labels are None, NaN or masked; None if there is none of these, or no label at all."""
    if y is None:
        return None
    labels = y if type(y) is np.ndarray else as_labels(y)
    masked = isinstance(y, np.ma.MaskedArray)
    kind = labels.dtype.kind
    if labels.ndim != 1 or not (masked or kind in "fO"):
        return None
    hidden = np.ma.getmaskarray(y) if masked else np.zeros(labels.shape, bool)
    if kind == "f":
        hidden = hidden | np.isnan(labels)
    elif kind == "O":
        hidden = hidden | np.array([is_missing(one) for one in labels.tolist()], bool)
    return hidden if hidden.any() else None


def refuse_missing(y: Any) -> None:
    """Refuse labels of which some are missing, where all are needed."""
    hidden = missing_labels(y)
    if hidden is not None:
        raise ValueError(
            f"{hidden.sum()} of {hidden.size} labels are missing, and fit needs them all. Use "
            "partial_fit, which takes samples without a label, or leave these out."
        )


def labels_that_count(y: Any, hidden: NDArray[np.bool_]) -> NDArray[Any]:
    """Labels that are not hidden."""
    if y is None:
        return np.array([])
    return np.array([one for one, no in zip(list(y), hidden, strict=True) if not no])


def places_among(names: NDArray[Any], labels: NDArray[Any]) -> Places:
    """Place of each label among the names of the classes; refuses a label of no class."""
    if not len(labels):
        return np.empty(0, np.intp)
    present, label = encode(labels, most=len(labels))
    known = {name: place for place, name in enumerate(names.tolist())}
    stranger = next((name for name in present.tolist() if name not in known), None)
    if stranger is not None:
        raise PriorMismatchError(
            f"The samples have class {stranger!r}, but the classes are {list(known)}. If only the "
            "names differ, pass classes= with the target's labels in the order of the prior's."
        )
    return np.array([known[name] for name in present.tolist()])[label]


def check_names(names: NDArray[Any], prior: Any) -> None:
    """Refuse names of classes that are not as many as the prior has, or not different."""
    wanted = 2 if prior is None else prior.law.n_classes
    if wanted == 2 and len(names) > 2:
        # Refused in scikit-learn's words.
        encode(names)
    if prior is not None and not len(names):
        raise ValueError("Neither the prior nor classes= says what the classes are.")
    too_few = wanted > 2 and len(names) < wanted
    if too_few or len(names) > wanted or len(set(names.tolist())) < len(names):
        raise ValueError(f"classes must be {wanted} different labels; got {names.tolist()}.")


def second_of(class_prior: ArrayLike | None, names: NDArray[Any]) -> float:
    """Probability of the second of `names`, for probabilities in the order of sorted labels."""
    if class_prior is None:
        return 0.5
    if len(names) > 2:
        raise ValueError("class_prior is for two classes; more count as equally likely.")
    second = check_class_prior(class_prior)
    return float(second if names[0] < names[1] else 1.0 - second)


def refuse_missing_class(names: NDArray[Any], counts: Any, *, may_wait: bool) -> NoReturn:
    """Refuse samples that lack a class for which nobody else stands in."""
    known = names.tolist()
    seen = [name for name, count in zip(known, counts, strict=False) if count]
    missing = [repr(name) for name in known if name not in seen] or ["the other class"]
    named = " Or name all classes with partial_fit(..., classes=...)." if may_wait else ""
    raise ValueError(
        f"There are labelled samples of {seen} and none of class {', '.join(missing)}. Label at "
        f"least 1 sample of it, or give a prior with class means and missing_class='crowd'.{named}"
    )

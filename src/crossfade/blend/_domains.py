"""Sources and target in one table, by skada's convention for `sample_domain`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._typing import Array
from crossfade.prior._crowd import Prior
from crossfade.prior._task_prior import TaskPrior
from crossfade.tasks._task import Task


def split_domains(
    rows: Array,
    labels: NDArray[Any],
    weight: Array | None,
    sample_domain: ArrayLike,
    prior: Prior | None,
    classes: Any = None,
    feature_names: Any = None,
    keep_directions: bool = False,
) -> tuple[Array, NDArray[Any], Array | None, Prior | None]:
    """Separate sources (positive domains) from the target (negative ones), as skada does."""
    if hasattr(prior, "pairs"):
        raise ValueError("sample_domain is for two classes. Build a MulticlassPrior instead.")
    domain = np.asarray(sample_domain)
    whole = domain.shape == labels.shape and np.issubdtype(domain.dtype, np.integer)
    if not whole or (domain == 0).any():
        raise ValueError(
            "sample_domain must be one whole number for each sample: positive for a source, "
            f"negative for the target, never zero; got shape {domain.shape} and {domain.dtype}."
        )
    target = domain < 0
    if not target.any():
        raise ValueError(
            "sample_domain names no target: give its labelled samples a negative domain."
        )
    if weight is not None and (weight[~target] != 1.0).any():
        raise ValueError(
            "sample_weight must be 1 for the samples of sources: a prior counts tasks, not "
            "samples. Weight the samples of the target only."
        )
    sources = [
        Task(
            rows[domain == name],
            labels[domain == name],
            name=f"domain {name}",
            feature_names=feature_names,
        )
        for name in np.unique(domain[~target])
    ]
    if sources:
        scale: Any = "auto" if prior is None else prior.feature_scale
        ours = TaskPrior.from_tasks(sources, feature_scale=scale, keep_directions=keep_directions)
        ours = _in_order(ours, prior, classes)
        prior = ours if prior is None else prior + ours
    known = classes if classes is not None or prior is None else prior.classes
    labelled = target & ~_masked(labels, known)
    if not labelled.any():
        raise ValueError(
            "The target has no labelled sample: all its labels are -1. Label a few of each class."
        )
    kept = None if weight is None else weight[labelled]
    return rows[labelled], labels[labelled], kept, prior


def _in_order(ours: TaskPrior, prior: Prior | None, classes: Any) -> TaskPrior:
    """The sources' prior with the classes of the given one, as `classes` maps them."""
    if classes is None or ours.classes is None or set(classes) != set(ours.classes):
        return ours
    turned = ours if classes[1] == ours.classes[1] else ours.reversed()
    return replace(turned, classes=None if prior is None else prior.classes)


def _masked(labels: NDArray[Any], known: Any) -> NDArray[np.bool_]:
    """Which labels are skada's mask: -1, unless -1 is one of two labels like any other."""
    if not np.issubdtype(labels.dtype, np.number):
        return np.zeros(labels.shape, dtype=bool)
    hidden = labels == -1
    if known is not None:
        a_label = -1 in known
    else:
        # Nobody has said what the labels are: two others, not negative, make -1 the mask.
        others = labels[~hidden]
        a_label = bool((others < 0).any()) or len(np.unique(others)) < 2
    return np.asarray(hidden) & (not a_label)

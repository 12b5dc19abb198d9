"""Source data in the same call of fit, by the conventions of skada, scikit-learn and MOABB."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._typing import Array
from crossfade._validate import as_labels, classes_of, refuse_nameless, refuse_size
from crossfade.crowd import TaskPrior
from crossfade.tasks import Task

Mask = NDArray[np.bool_]


class Rows(NamedTuple):
    """Samples with their labels, and with weights if any."""

    X: Array  # (n, d)
    y: NDArray[Any]  # (n,)
    weight: Array | None = None

    def at(self, which: Any) -> Rows:
        """Some of the samples."""
        weight = None if self.weight is None else self.weight[which]
        return Rows(self.X[which], self.y[which], weight)


def with_sources(
    estimator: Any, rows: Rows, prior: Any, people: dict[str, Any], beside: tuple[Any, Any, Any]
) -> tuple[Rows, Array | None, Any]:
    """The target's labelled and unlabelled samples, and the prior with the sources."""
    named = [name for name, value in people.items() if value is not None]
    if len(named) != 1:
        raise ValueError(
            "Source data needs exactly one of sample_domain, groups and subjects; got "
            f"{' and '.join(named) or 'none'}."
        )
    [called] = named
    if called != "subjects" and any(part is not None for part in beside):
        raise ValueError(f"Samples of the target came beside X: pass subjects, not {called}.")
    if called == "sample_domain":
        names, target = _domains(people[called], rows.y)
    else:
        names = _names(called, people[called], rows.y)
        target = np.asarray(names == names[-1]) & (called == "groups")
    prior = _with_people(estimator, rows.at(~target), names[~target], prior, called)
    if called == "groups":
        return rows.at(target), None, prior
    if called == "subjects":
        labelled, unlabelled = _beside(estimator, rows, *beside)
    else:
        labelled, unlabelled = _unmasked(rows.at(target), _known(estimator, prior))
    helps = prior is not None and prior.class_means is not None and prior.law.n_classes == 2
    return labelled, unlabelled if helps else None, prior


def _domains(sample_domain: ArrayLike, y: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    """Domain of each sample, and which are the target's: those of the negative one."""
    domain = np.asarray(sample_domain)
    whole = domain.shape == y.shape and np.issubdtype(domain.dtype, np.integer)
    if not whole or (domain == 0).any():
        raise ValueError(
            "sample_domain must be one whole number for each sample: positive for a source, "
            f"negative for the target, never zero; got shape {domain.shape} and {domain.dtype}."
        )
    targets = np.unique(domain[domain < 0]).tolist()
    if len(targets) != 1:
        raise ValueError(f"sample_domain must name one target; got negative domains {targets}.")
    return domain, domain < 0


def _names(called: str, groups: ArrayLike, y: NDArray[Any]) -> NDArray[Any]:
    """Person of each sample."""
    names = as_labels(groups)
    refuse_nameless(called, groups)
    if names.shape != y.shape:
        raise ValueError(f"{called} must be one name for each of {y.size} samples of X.")
    return names


def _known(estimator: Any, prior: Any) -> list[Any] | None:
    """Labels of the target's classes, as far as they are known before its samples."""
    if estimator.classes is not None:
        return list(np.asarray(estimator.classes).tolist())
    return None if prior is None or prior.classes is None else list(prior.classes)


def _with_people(estimator: Any, rows: Rows, names: NDArray[Any], prior: Any, called: str) -> Any:
    """The prior together with the people whose samples these are."""
    if rows.weight is not None and (rows.weight != 1.0).any():
        raise ValueError("sample_weight must be 1 for source data: a prior counts tasks.")
    if not names.size:
        return prior
    estimator._refuse_other_rows(rows.X[:0], prior)
    labels = rows.y
    if prior is not None and prior.classes is not None:
        # Other labels stay, and adding the priors refuses them.
        theirs = dict(zip(_known(estimator, prior) or (), prior.classes, strict=False))
        labels = np.array([theirs.get(one, one) for one in labels.tolist()])
    word = {"sample_domain": "domain", "groups": "group", "subjects": "subject"}[called]
    columns = getattr(estimator, "feature_names_in_", None)
    sources = [
        Task(rows.X[mine], labels[mine], name=f"{word} {name}", feature_names=columns)
        for name in classes_of(names).tolist()
        for mine in [names == name]
    ]
    scale: Any = "auto" if prior is None else prior.feature_scale
    ours = TaskPrior.from_tasks(sources, feature_scale=scale)
    return ours if prior is None else prior + ours


def _unmasked(rows: Rows, known: list[Any] | None) -> tuple[Rows, Array | None]:
    """Samples of the target that have a label, and those without one by skada's mask of -1."""
    if known is not None and -1 in known and (rows.y == -1).all():
        raise ValueError(
            f"All labels of the target are -1, which is one of the classes, {known}, and skada's "
            "mask as well. Call the classes 0 and 1, so that they can be told apart."
        )
    hidden = _masked(rows.y, known)
    return (rows.at(~hidden), rows.X[hidden]) if hidden.any() else (rows, None)


def _masked(labels: NDArray[Any], known: list[Any] | None) -> Mask:
    """Which labels are skada's mask: -1, unless -1 is one of two labels like any other."""
    if not np.issubdtype(labels.dtype, np.number):
        return np.zeros(labels.shape, dtype=bool)
    hidden = np.asarray(labels == -1)
    if known is not None:
        return hidden & (-1 not in known)
    # Nobody has said what the labels are: two others, not negative, make -1 the mask.
    others = labels[~hidden]
    return hidden & bool((others >= 0).all() and len(np.unique(others)) >= 2)


def _beside(
    estimator: Any, rows: Rows, X: Any, y: Any, unlabelled: Any
) -> tuple[Rows, Array | None]:
    """Labelled samples of the target that came beside X, and those without a label."""
    if (X is None) != (y is None):
        raise ValueError("X_target_labeled and y_target_labeled belong together; pass both.")
    labelled = rows.at(slice(0))
    if X is not None and len(X):
        _refuse_untransformed("X_target_labeled", X, rows.X)
        labelled = Rows(*estimator._check_fit_input(X, y, None, reset=False))
    if unlabelled is None or not len(unlabelled):
        return labelled, None
    _refuse_untransformed("X_target_unlabeled", unlabelled, rows.X)
    unlabelled = estimator._validated(unlabelled, order="C", reset=False)
    refuse_size(np.abs(unlabelled).max(0))
    return labelled, unlabelled


def _refuse_untransformed(name: str, target: Any, X: Array) -> None:
    """Refuse windows of the target that have not become features on the way, as X has."""
    shape = np.shape(target)
    if len(shape) != 2 or shape[1] != X.shape[1]:
        raise ValueError(
            f"{name} has shape {shape} and X has shape {X.shape}: both need the same features. In "
            "a Pipeline, pass transform_input=['X_target_labeled', 'X_target_unlabeled'], as the "
            "pipelines of crossfade.moabb do."
        )

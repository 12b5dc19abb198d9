"""Crowd and target in one call of fit, by the conventions of three packages.

skada marks rows by `sample_domain`; scikit-learn hands over `groups`, and the group of the last row
is the target; MOABB has the crowd in X, with `subjects`, and the target's windows beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._typing import Array
from crossfade._validate import as_labels, classes_of, refuse_nameless, refuse_size
from crossfade.fisher import LinearRule
from crossfade.prior import MulticlassPrior, TaskPrior
from crossfade.tasks import Task

Mask = NDArray[np.bool_]

#: What skada hands to every method beside the samples.
_OF_SKADA = ("sample_domain", "allow_source")


class Rows(NamedTuple):
    """Samples with their labels, and with weights if any."""

    X: Array  # (n, d)
    y: NDArray[Any]  # (n,)
    weight: Array | None = None

    def at(self, which: Any) -> Rows:
        """Some of the samples."""
        weight = None if self.weight is None else self.weight[which]
        return Rows(self.X[which], self.y[which], weight)


class TakesCrowd(LinearRule):
    """What a blend does with people who come along in fit."""

    #: Whether it has a rule for more than two classes.
    _many: ClassVar[bool] = False
    classes: Any
    _both_classes: Callable[[NDArray[Any], Any], Any]

    # Routed in pipelines and searches without touching scikit-learn's global setting.
    __metadata_request__fit: ClassVar = dict.fromkeys(
        (
            *("sample_domain", "groups", "subjects"),
            *("X_target_labeled", "y_target_labeled", "X_target_unlabeled"),
        ),
        True,
    )
    __metadata_request__decision_function: ClassVar = dict.fromkeys(_OF_SKADA, True)
    __metadata_request__predict: ClassVar = dict.fromkeys(_OF_SKADA, True)
    __metadata_request__predict_proba: ClassVar = dict.fromkeys(_OF_SKADA, True)
    __metadata_request__score: ClassVar = dict.fromkeys(_OF_SKADA, True)

    def decision_function(
        self, X: ArrayLike, sample_domain: ArrayLike | None = None, allow_source: bool = False
    ) -> Array:
        """Signed distance from the threshold, positive for the second class; of more, scores each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.
        sample_domain : array-like of shape (n_samples,) or None, default=None
            Not used: the rule is the target's, whoever's samples these are. skada passes it.
        allow_source : bool, default=False
            Not used, as above.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) with more than two classes
            Scores.
        """
        return super().decision_function(X)

    def predict(
        self, X: ArrayLike, sample_domain: ArrayLike | None = None, allow_source: bool = False
    ) -> NDArray[Any]:
        """Likeliest label of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.
        sample_domain : array-like of shape (n_samples,) or None, default=None
            Not used: the rule is the target's, whoever's samples these are. skada passes it.
        allow_source : bool, default=False
            Not used, as above.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        return super().predict(X)

    def predict_proba(
        self, X: ArrayLike, sample_domain: ArrayLike | None = None, allow_source: bool = False
    ) -> Array:
        """Probability of each class under the model (equations 27 and 61).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.
        sample_domain : array-like of shape (n_samples,) or None, default=None
            Not used: the rule is the target's, whoever's samples these are. skada passes it.
        allow_source : bool, default=False
            Not used, as above.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities.
        """
        return super().predict_proba(X)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
        allow_source: bool = False,
    ) -> float:
        """Accuracy on labelled samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features in the user's units.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How much each sample counts.
        sample_domain : array-like of shape (n_samples,) or None, default=None
            Not used: the rule is the target's, whoever's samples these are. skada passes it.
        allow_source : bool, default=False
            Not used, as above.

        Returns
        -------
        float
            Share of the samples whose label was found.
        """
        return float(super().score(X, y, sample_weight))

    def _sort_out(
        self, rows: Rows, prior: Any, people: dict[str, Any], beside: tuple[Any, Any, Any]
    ) -> tuple[Rows, Array | None, Any]:
        """Labelled samples of the target, those without a label, and the prior with the crowd."""
        named = [name for name, value in people.items() if value is not None]
        if not named:
            raise ValueError(
                "Samples of the target came beside X, but subjects, which says whose the samples "
                "of X are, did not. Pass subjects, or the target's labelled samples as X and y."
            )
        if len(named) > 1:
            raise ValueError(
                f"{' and '.join(named)} both say whose the samples are. Pass one of them."
            )
        [called] = named
        if hasattr(prior, "pairs"):
            raise ValueError(f"{called} is for two classes. Build a MulticlassPrior instead.")
        if called == "sample_domain":
            names, target = check_domain(people[called], rows.y)
        else:
            names = check_groups(called, people[called], rows.y)
            target = np.asarray(names == names[-1]) & (called == "groups")
        if called != "subjects" and any(part is not None for part in beside):
            raise ValueError(
                f"Samples of the target came beside X, and {called} has them in X. Pass subjects "
                f"instead of {called}, or the target in one way."
            )
        self._refuse_other_features(prior, rows.X.shape[1])
        self._both_classes(rows.y[:0], prior)
        self._refuse_many_classes(classes_of(rows.y[~target]))
        prior = add_people(
            rows.at(~target),
            names[~target],
            prior,
            called=called,
            classes=self.classes,
            feature_names=getattr(self, "feature_names_in_", None),
            many=self._many,
        )
        if called == "subjects":
            return *self._target_beside(rows, prior, *beside), prior
        if called == "groups":
            return rows.at(target), None, prior
        return *self._unmasked(rows.at(target), prior), prior

    def _refuse_many_classes(self, found: NDArray[Any]) -> None:
        """Refuse sources of more classes than this blend has a rule for."""
        if len(found) > 2 and not self._many:
            raise ValueError(
                f"The sources have {len(found)} classes, {found[:5].tolist()}, and "
                f"{type(self).__name__} is for two. Take HierarchicalBlendClassifier, which has a "
                "rule for more, or keep two classes."
            )

    def _unmasked(self, rows: Rows, prior: Any) -> tuple[Rows, Array | None]:
        """Samples of the target that have a label, and those without one that are of use."""
        known = self.classes if self.classes is not None or prior is None else prior.classes
        if known is not None and -1 in known and (rows.y == -1).all():
            raise ValueError(
                f"All labels of the target are -1, which is one of the classes, {list(known)}, and "
                "skada's mask as well. Call the classes 0 and 1, so that they can be told apart."
            )
        hidden = masked(rows.y, known)
        if not hidden.any():
            return rows, None
        if hidden.all() and prior is None:
            raise ValueError(
                "The target has no labelled sample: all its labels are -1, and there is neither a "
                "source nor a prior. Label a few of each class."
            )
        return rows.at(~hidden), rows.X[hidden] if unlabelled_help(prior) else None

    def _target_beside(
        self, rows: Rows, prior: Any, X: Any, y: Any, unlabelled: Any
    ) -> tuple[Rows, Array | None]:
        """Labelled samples of the target that came beside X, and those without a label."""
        if (X is None) != (y is None):
            raise ValueError(
                "X_target_labeled and y_target_labeled belong together; one of them is missing."
            )
        labelled = rows.at(slice(0))
        if X is not None and (len(X) or len(y)):
            refuse_untransformed("X_target_labeled", X, rows.X)
            labelled = Rows(*self._check_fit_input(X, y, None, reset=False))
        if unlabelled is not None and not len(unlabelled):
            unlabelled = None
        if unlabelled is not None:
            refuse_untransformed("X_target_unlabeled", unlabelled, rows.X)
            unlabelled = self._validated(unlabelled, order="C", reset=False)
            refuse_size(np.abs(unlabelled).max(0))
        return labelled, unlabelled if unlabelled_help(prior) else None


def unlabelled_help(prior: Any) -> bool:
    """Whether samples without a label are of use: beside class means of a crowd of two classes."""
    return prior is not None and not hasattr(prior, "pairs") and prior.class_means is not None


def check_domain(sample_domain: ArrayLike, y: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    """Domain of each sample, and which are the target's: those of the negative one."""
    domain = np.asarray(sample_domain)
    whole = domain.shape == y.shape and np.issubdtype(domain.dtype, np.integer)
    if not whole or (domain == 0).any():
        raise ValueError(
            "sample_domain must be one whole number for each sample: positive for a source, "
            f"negative for the target, never zero; got shape {domain.shape} and {domain.dtype}."
        )
    target = domain < 0
    targets = np.unique(domain[target]).tolist()
    if not targets:
        raise ValueError(
            "sample_domain names no target: give its labelled samples a negative domain."
        )
    if len(targets) > 1:
        raise ValueError(
            f"sample_domain names {len(targets)} targets, {targets[:5]}, and a blend is for one "
            "person. Fit one for each, with the samples of the sources and of that target."
        )
    return domain, target


def check_groups(called: str, groups: ArrayLike, y: NDArray[Any]) -> NDArray[Any]:
    """Person of each sample."""
    names = as_labels(groups)
    refuse_nameless(called, groups)
    if names.shape != y.shape:
        raise ValueError(
            f"{called} must be one name for each of the {y.size} samples of X; got shape "
            f"{names.shape}."
        )
    return names


def add_people(
    rows: Rows,
    names: NDArray[Any],
    prior: TaskPrior | None,
    *,
    called: str,
    classes: Any,
    feature_names: Any,
    many: bool,
) -> Any:
    """The prior together with the people whose samples these are; `names` says whose.

    More than two classes make a :class:`MulticlassPrior`, where a blend has use for it (`many`).
    """
    if rows.weight is not None and (rows.weight != 1.0).any():
        raise ValueError(
            "sample_weight must be 1 for the samples of sources: a prior counts tasks, not "
            "samples. Weight the samples of the target only."
        )
    if not names.size:
        return prior
    word = {"sample_domain": "domain", "groups": "group", "subjects": "subject"}[called]
    sources = [
        Task(X, y, name=f"{word} {name}", feature_names=feature_names)
        for name in classes_of(names).tolist()
        for X, y, _ in [rows.at(names == name)]
    ]
    if many and prior is None and len(classes_of(rows.y)) > 2:
        return MulticlassPrior.from_tasks(sources)
    scale: Any = "auto" if prior is None else prior.feature_scale
    ours = TaskPrior.from_tasks(sources, feature_scale=scale)
    ours = _in_order(ours, prior, classes)
    return ours if prior is None else prior + ours


def masked(labels: NDArray[Any], known: Any) -> Mask:
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


def refuse_untransformed(name: str, target: Any, X: Array) -> None:
    """Refuse windows of the target that have not become features on the way, as X has."""
    shape = np.shape(target)
    if len(shape) != 2 or shape[1] != X.shape[1]:
        raise ValueError(
            f"{name} has shape {shape} and X has shape {X.shape}: both need the same features. In "
            "a Pipeline the steps before this one transform X alone; pass transform_input="
            "['X_target_labeled', 'X_target_unlabeled'] to the Pipeline, as the pipelines of "
            "crossfade.moabb do."
        )


def _in_order(ours: TaskPrior, prior: TaskPrior | None, classes: Any) -> TaskPrior:
    """The sources' prior with the classes of the given one, as `classes` maps them."""
    if classes is None or ours.classes is None or set(classes) != set(ours.classes):
        return ours
    turned = ours if classes[1] == ours.classes[1] else ours.reversed()
    return replace(turned, classes=None if prior is None else prior.classes)

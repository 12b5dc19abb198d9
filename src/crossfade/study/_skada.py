"""A method of skada: domain adaptation that looks at the target's windows without their labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from crossfade.study._batch import Array, Batch, Predictions
from crossfade.study._estimators import outputs_of
from crossfade.study._sources import Sources

Rng = np.random.Generator

#: skada's mask of a label.
_MASK = -1


class Adapted:
    """Each person standardised, the sources given the target's covariance (CORAL), a regression.

    Classes are numbers from 0 on: skada takes -1 for a missing label.
    """

    def __init__(self) -> None:
        # skada turns on metadata routing for everybody when it is imported.
        with config_context():
            from skada import CORALAdapter, PerDomain, make_da_pipeline
        # Its pipelines mask all labels of the target by default.
        shown: dict[str, Any] = {"mask_target_labels": False}
        self._pipeline = make_da_pipeline(
            PerDomain(StandardScaler(), **shown),
            CORALAdapter(),
            LogisticRegression(max_iter=1000, class_weight="balanced"),
            **shown,
        )

    def fit(self, X: Array, y: NDArray[np.intp], domain: NDArray[np.intp]) -> Adapted:
        """Fit to windows of sources and target, of which some have no label."""
        self._target = int(domain.min())
        with config_context(enable_metadata_routing=True):
            self._pipeline.fit(X, y, sample_domain=domain)
        return self

    def predict(self, X: Array) -> NDArray[np.intp]:
        """Classes of the target's windows."""
        found: NDArray[np.intp] = self._asked("predict", X)
        return found

    def predict_proba(self, X: Array) -> Array:
        """Probabilities of the target's windows."""
        chances: Array = self._asked("predict_proba", X)
        return chances

    def _asked(self, name: str, X: Array) -> Any:
        with config_context(enable_metadata_routing=True):
            return getattr(self._pipeline, name)(X, sample_domain=np.full(len(X), self._target))


def run_coral(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    """skada's correlation alignment, with the unlabelled windows that a method may see."""
    theirs, label, task = sources.in_windows
    person = np.unique(sources.groups[task], return_inverse=True)[1] + 1
    names = np.arange(len(batch.classes))
    parts = []
    for labelled, unlabelled, test in zip(
        batch.splits.labelled, batch.unlabelled, batch.splits.test, strict=True
    ):
        own = np.concatenate([labelled, unlabelled])
        y = np.concatenate([label, batch.splits.label, np.full(len(unlabelled), _MASK)])
        domain = np.concatenate([person, np.full(len(own), -(int(person.max()) + 1))])
        rule = Adapted().fit(np.concatenate([theirs, batch.X[own]]), y, domain)
        predicted, scores, chances = outputs_of(rule, batch.X[test], names)
        parts.append(Predictions.of(predicted[None], scores[None], chances[None]))
    return Predictions.joined(parts)

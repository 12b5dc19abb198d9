"""Pipelines whose steps transform the calibration too."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as sklearn_pipeline

from crossfade.classifiers import (
    ConvexBlendClassifier,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
)
from crossfade.signals.eeg import BandPower


def make_pipeline(*steps: Any) -> Pipeline:
    """Pipeline of scikit-learn that transforms the target's windows as well as X.

    Parameters
    ----------
    *steps : estimators
        Transformers, and a blend at the end.

    Returns
    -------
    sklearn.pipeline.Pipeline
        With ``transform_input=["X_target_labeled", "X_target_unlabeled"]``.

    See Also
    --------
    pipelines : Three of them, ready to use.

    Examples
    --------
    >>> from crossfade import PosteriorBlendClassifier
    >>> from crossfade.moabb import make_pipeline
    >>> from crossfade.signals.eeg import BandPower
    >>> pipeline = make_pipeline(BandPower(500.0, log=True), PosteriorBlendClassifier())
    >>> pipeline.transform_input
    ['X_target_labeled', 'X_target_unlabeled']
    """
    return sklearn_pipeline(*steps, transform_input=["X_target_labeled", "X_target_unlabeled"])


def pipelines(sfreq: float) -> dict[str, Pipeline]:
    """Pipelines of log band powers and a blend, by name, for ``process`` of an evaluation.

    Parameters
    ----------
    sfreq : float
        Samples per second of the windows: those of the data set, or `resample` of the paradigm.

    Returns
    -------
    dict of str to sklearn.pipeline.Pipeline
        The convex, the posterior and the hierarchical blend.
    """
    blends = {
        "crossfade convex": ConvexBlendClassifier(),
        "crossfade posterior": PosteriorBlendClassifier(),
        "crossfade hierarchical": HierarchicalBlendClassifier(),
    }
    return {
        name: make_pipeline(BandPower(sfreq, relative=False, log=True), blend)
        for name, blend in blends.items()
    }

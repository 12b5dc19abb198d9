"""Pipelines whose steps transform the calibration too."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as sklearn_pipeline


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

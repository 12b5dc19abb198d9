"""Blends in the evaluations of MOABB: a data set, and pipelines that use the calibration.

MOABB's ``CrossSubjectEvaluation`` leaves one subject out and may hand over the first windows of
theirs, labelled or not (``cs_mode="train_and_target_labeled_20p"``). Blends ask for them; a
Pipeline, however, transforms X alone unless it is told otherwise, as :func:`make_pipeline` does.
"""

from crossfade._validate import check_extra

check_extra("moabb", "moabb", "crossfade.moabb")

from crossfade.moabb._eegmat import EegMat  # noqa: E402
from crossfade.moabb._pipelines import make_pipeline, pipelines  # noqa: E402

__all__ = ["EegMat", "make_pipeline", "pipelines"]

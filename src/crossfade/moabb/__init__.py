"""Blends in the evaluations of MOABB: a data set, and pipelines that transform the calibration.

MOABB's ``CrossSubjectEvaluation`` leaves one subject out and may pass their first windows, with or
without labels (``cs_mode="train_and_target_labeled_20p"``, from MOABB 1.6.0 on).
"""

from crossfade._validate import check_extra

check_extra("moabb", "moabb", "crossfade.moabb")

from crossfade.moabb._eegmat import EegMat  # noqa: E402
from crossfade.moabb._pipelines import make_pipeline  # noqa: E402

__all__ = ["EegMat", "make_pipeline"]

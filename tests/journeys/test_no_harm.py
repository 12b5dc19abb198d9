"""The default blend on a real table of 190 features: never far below either parent."""

from crossfade import CalibrationStudy
from crossfade.datasets import read_eegmat

PARENTS = ["target-shrunk", "average-source"]


def test_tangent_vectors(recordings):
    tasks = read_eegmat(recordings / "eegmat", features="tangent", n_jobs=2)
    assert tasks[0].X.shape[1] == 190
    study = CalibrationStudy(
        tasks, methods=[*PARENTS, "posterior"], n_splits=3, random_state=0, forecasts=False
    )
    rows = study.run(n_jobs=2).rows
    means = rows.groupby(["method", "budget"])["balanced_accuracy"].mean().unstack("budget")
    assert (means.loc["posterior"] - means.loc[PARENTS].max()).min() > -0.015

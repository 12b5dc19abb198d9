"""The default blend on real tables of 9 and 190 features: never far below either parent."""

from crossfade import CalibrationStudy, load_mental_math, read_eegmat

PARENTS = ["target-shrunk", "average-source"]


def check_no_harm(tasks, n_splits):
    """Posterior against the better of shrunk target and average source, at every budget."""
    study = CalibrationStudy(
        tasks, methods=[*PARENTS, "posterior"], n_splits=n_splits, random_state=0
    )
    rows = study.run(n_jobs=2).rows
    means = rows.groupby(["method", "budget"])["balanced_accuracy"].mean().unstack("budget")
    assert (means.loc["posterior"] - means.loc[PARENTS].max()).min() > -0.015


def test_band_shares():
    check_no_harm(load_mental_math(), 50)


def test_tangent_vectors(recordings):
    tasks = read_eegmat(recordings / "eegmat", features="tangent", n_jobs=2)
    assert tasks[0].X.shape[1] == 190
    check_no_harm(tasks, 3)

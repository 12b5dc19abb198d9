"""Blends in MOABB's own evaluation, and its data set of Mental Math."""

import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import Pipeline

from crossfade import (
    ConvexBlendClassifier,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
)
from crossfade.datasets import read_eegmat
from crossfade.signals.eeg import BandPower

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    moabb = pytest.importorskip("moabb", reason="MOABB is not installed: crossfade[moabb]")
    from moabb.evaluations import CrossSubjectEvaluation
    from moabb.paradigms import MotorImagery

    from crossfade.moabb import EegMat, make_pipeline

# What MOABB and h5py say among themselves, and a crowd of five that differs.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Creating a dataset without passing data or dtype"),
    pytest.mark.filterwarnings("ignore::crossfade.exceptions.CancellingSourcesWarning"),
]

NAMES = ["EEG Fz", "EEG Cz", "EEG Pz", "EEG O1", "EEG A2-A1"]
N_PEOPLE = 4


def pipelines(sfreq):
    """Log powers and each blend."""
    blends = {
        "crossfade convex": ConvexBlendClassifier(),
        "crossfade posterior": PosteriorBlendClassifier(),
        "crossfade hierarchical": HierarchicalBlendClassifier(),
    }
    power = BandPower(sfreq, relative=False, log=True)
    return {name: make_pipeline(power, blend) for name, blend in blends.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pairs of recordings with more alpha at rest, for some more than for others."""
    edfio = pytest.importorskip("edfio")
    where = tmp_path_factory.mktemp("eegmat")
    time = np.arange(500 * 63) / 500.0
    for person in range(N_PEOPLE):
        rng = np.random.default_rng(person)
        for label, seconds, alpha in ((1, 63, 6.0 + person), (2, 32, 4.0)):
            data = 10.0 * rng.standard_normal((5, 500 * seconds))
            size = alpha * (1.0 + 0.5 * rng.standard_normal((4, 1)))
            data[:4] += size * np.sin(2.0 * np.pi * 10.0 * time[: data.shape[1]])
            signals = [
                edfio.EdfSignal(row, 500.0, label=name, physical_dimension="uV")
                for row, name in zip(data, NAMES, strict=True)
            ]
            edfio.Edf(signals).write(where / f"Subject{person:02d}_{label}.edf")
    return where


@pytest.fixture(scope="module")
def paradigm():
    return MotorImagery(
        events=["rest", "arithmetic"],
        n_classes=2,
        fmin=None,
        fmax=None,
        channels=["Fz", "Cz", "Pz"],
    )


@pytest.fixture(scope="module")
def windows(folder, paradigm):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return paradigm.get_data(EegMat(folder))


def evaluate(folder, paradigm, where, mode, which):
    return CrossSubjectEvaluation(
        paradigm=paradigm, datasets=[EegMat(folder)], cs_mode=mode, hdf5_path=str(where)
    ).process(which)


def test_windows_are_those_of_the_reader(folder, windows):
    X, y, about = windows
    power = BandPower(500.0).fit(X)
    for task, person in zip(read_eegmat(folder), range(N_PEOPLE), strict=True):
        ours = (about.subject == person).to_numpy()
        for label, name, n_windows in ((0, "rest", 24), (1, "arithmetic", 12)):
            features = power.transform(X[ours & (y == name)])
            assert len(features) == n_windows
            np.testing.assert_allclose(features, task.X[task.y == label][:n_windows], atol=1e-6)


def test_the_first_part_of_a_session_is_the_first_part_of_each_recording(windows):
    _, y, about = windows
    own = y[about.subject == 0]
    for share in (1 / 3, 2 / 3):
        early = own[: round(36 * share)]
        assert abs((early == "arithmetic").mean() - 1 / 3) < 0.1


def test_the_evaluation_hands_over_the_calibration(folder, paradigm, windows, tmp_path):
    mode = "train_and_target_labeled_20p"
    scores = evaluate(folder, paradigm, tmp_path, mode, pipelines(500.0))
    assert len(scores) == 3 * N_PEOPLE
    assert set(scores.pipeline) == set(pipelines(500.0))
    # By hand: the crowd's prior, and the first 7 of 36 windows.
    X, y, about = windows
    X = BandPower(500.0, relative=False, log=True).fit_transform(X)
    y = np.where(y == "rest", 1, 0)
    person = about.subject.to_numpy()
    own = np.flatnonzero(person == 2)
    clf = PosteriorBlendClassifier().fit(
        X[person != 2],
        y[person != 2],
        subjects=person[person != 2],
        X_target_labeled=X[own[:7]],
        y_target_labeled=y[own[:7]],
    )
    score = clf.decision_function(X[own[7:]])
    rest = y[own[7:]] == 1
    area = (score[rest][:, None] > score[~rest]).mean()
    line = scores[(scores.pipeline == "crossfade posterior") & (scores.subject == "2")]
    assert line.score.item() == pytest.approx(area, abs=1e-12)


@pytest.mark.parametrize("mode", ["train", "train_and_target_unlabeled_20p"])
def test_the_crowd_answers_without_a_label(folder, paradigm, tmp_path, mode):
    scores = evaluate(folder, paradigm, tmp_path, mode, pipelines(500.0))
    assert scores.score.mean() > 0.7


def test_a_pipeline_that_leaves_the_target_as_it_is_is_told(folder, paradigm, tmp_path):
    plain = Pipeline([("power", BandPower(500.0)), ("blend", PosteriorBlendClassifier())])
    with pytest.raises(ValueError, match="transform_input"):
        evaluate(folder, paradigm, tmp_path, "train_and_target_labeled_20p", {"plain": plain})


def test_steps_transform_the_target_too():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2, 250)) * np.linspace(1.0, 2.0, 60)[:, None, None]
    y = (np.arange(60) % 20 > 9).astype(int)
    power = BandPower(100.0, relative=False, log=True)
    few = {"X_target_labeled": X[40:], "y_target_labeled": y[40:]}
    pipeline = make_pipeline(power, PosteriorBlendClassifier())
    with config_context(enable_metadata_routing=True):
        pipeline.fit(X[:40], y[:40], subjects=np.repeat([1, 2], 20), **few)
    features = power.fit(X).transform(X)
    sources = TaskPrior.from_tasks(
        [Task(features[part], y[part]) for part in (slice(20), slice(20, 40))]
    )
    expected = PosteriorBlendClassifier(sources).fit(features[40:], y[40:])
    np.testing.assert_allclose(pipeline[-1].coef_, expected.coef_)


def test_a_folder_needs_both_recordings_of_a_person(tmp_path, write_edf, make_eeg):
    for name in ("Subject06_1", "Subject07_1", "Subject07_2"):
        with pytest.raises(ValueError, match="no pair"):
            EegMat(tmp_path)
        write_edf(tmp_path / f"{name}.edf", make_eeg(seconds=5.0), [*NAMES[:4], "ECG"])
    data = EegMat(tmp_path)
    assert data.subject_list == [7]
    assert [path[-5:] for path in data.data_path(7)] == ["1.edf", "2.edf"]


@pytest.mark.filterwarnings("ignore:Montage name:FutureWarning")
def test_three_classes_need_the_hierarchical_blend(tmp_path):
    from moabb.datasets.fake import FakeDataset

    events = ["left_hand", "right_hand", "feet"]
    evaluation = CrossSubjectEvaluation(
        paradigm=MotorImagery(events=events, n_classes=3),
        datasets=[FakeDataset(events, n_subjects=3, seed=0)],
        cs_mode="train_and_target_labeled_20p",
        hdf5_path=str(tmp_path),
    )
    ours = pipelines(128.0)
    scores = evaluation.process({"hierarchical": ours["crossfade hierarchical"]})
    assert np.isfinite(scores["score"]).all()
    with pytest.raises(ValueError, match="two classes"):
        evaluation.process({"posterior": ours["crossfade posterior"]})

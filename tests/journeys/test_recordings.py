"""Real recordings to tables, where they are there: the paper's Mental Math study."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import crossfade as cf
from crossfade.cli import main
from crossfade.datasets import read_eegmat

mne = pytest.importorskip("mne")


@pytest.fixture(scope="module")
def eegmat(recordings):
    return recordings / "eegmat"


@pytest.fixture(scope="module")
def tasks(eegmat):
    return read_eegmat(eegmat, n_jobs=2)


@pytest.fixture(scope="module")
def few(eegmat, tmp_path_factory):
    """A folder with the recordings of the first eight participants."""
    folder = tmp_path_factory.mktemp("few")
    for path in sorted(eegmat.glob("Subject0[0-7]_*.edf")):
        (folder / path.name).symlink_to(path)
    return folder


def shares_by_mne(path):
    """Band shares of one file by MNE's own steps."""
    raw = mne.io.read_raw_edf(path, preload=True, verbose="error")
    raw.drop_channels(["ECG ECG", "EEG A2-A1"])
    raw.set_eeg_reference("average", verbose="error")
    raw.filter(0.5, 30.0, verbose="error")
    data = raw.get_data(["EEG Fz", "EEG Cz", "EEG Pz"])
    first = [*range(0, data.shape[1] - 1249, 1250)]
    if first[-1] + 1250 < data.shape[1]:
        first.append(data.shape[1] - 1250)
    windows = np.array([data[:, place : place + 1250] for place in first])
    power, frequency = mne.time_frequency.psd_array_welch(
        windows, 500.0, n_fft=1250, n_per_seg=1250, window="boxcar", verbose="error"
    )
    # Frequencies are 0.4 Hz apart; half a step of slack puts the ends inside.
    bands = [
        power[..., (frequency > low - 0.2) & (frequency < high + 0.2)].sum(-1)
        for low, high in ((4, 8), (8, 12), (12, 20))
    ]
    return (np.stack(bands, -1) / sum(bands)[..., None]).reshape(len(windows), 9)


@pytest.mark.parametrize("person", [0, 10, 31])
def test_shares_are_those_of_mne(eegmat, tasks, person):
    by_mne = [shares_by_mne(eegmat / f"Subject{person:02d}_{run}.edf") for run in (1, 2)]
    assert np.abs(tasks[person].X - np.concatenate(by_mne)).max() < 0.001
    assert (tasks[person].y == np.repeat([0, 1], [len(by_mne[0]), len(by_mne[1])])).all()


def test_all_participants_and_windows_are_there(tasks):
    assert [task.name for task in tasks] == [f"Subject{person:02d}" for person in range(36)]
    assert np.bincount(tasks[0].y).tolist() == [73, 25]
    assert sum(np.bincount(task.y) for task in tasks).tolist() == [2585, 900]


def test_the_shipped_table_is_what_the_script_makes(eegmat, tasks, monkeypatch):
    root = Path(__file__).parents[2]
    spec = importlib.util.spec_from_file_location("script", root / "scripts/make_mental_math.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "read_eegmat", lambda folder, features, n_jobs: tasks)
    shipped = pd.read_csv(script.TABLES["shares"])
    made = script.table(eegmat, "shares")
    assert list(made) == list(shipped)
    assert (made[["task", "label", "start"]] == shipped[["task", "label", "start"]]).all(axis=None)
    np.testing.assert_allclose(made.iloc[:, 3:], shipped.iloc[:, 3:], rtol=0.0, atol=1e-9)


def test_the_command_computes_the_shipped_log_powers(few, tmp_path):
    out = tmp_path / "tasks.csv"
    words = ["features", "eegmat", str(few), "-o", str(out), "--features", "log-powers"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    for read, shipped in zip(
        cf.read_tasks(out), cf.load_mental_math(features="log-powers")[:8], strict=True
    ):
        np.testing.assert_array_equal(read.y, shipped.y)
        # Half a unit of the fourth decimal.
        np.testing.assert_allclose(read.X, shipped.X, rtol=0.0, atol=0.5e-4 + 1e-8)


def test_the_blend_does_no_harm_with_tangent_vectors(few):
    """190 features: never far below either parent."""
    pytest.importorskip("pyriemann")
    parents = ["target-shrunk", "average-source"]
    study = cf.CalibrationStudy(
        read_eegmat(few, features="tangent", n_jobs=2),
        methods=[*parents, "posterior"],
        n_splits=2,
        random_state=0,
        forecasts=False,
    )
    rows = study.run(n_jobs=1).rows
    means = rows.groupby(["method", "budget"])["balanced_accuracy"].mean().unstack("budget")
    assert (means.loc["posterior"] - means.loc[parents].max()).min() > -0.015


def test_recordings_without_a_heartbeat_have_empty_windows(eegmat, tmp_path):
    silent = [("Subject02", 1), ("Subject13", 1), ("Subject20", 2), ("Subject35", 2)]
    out = tmp_path / "heart.csv"
    words = ["features", "ecg", str(eegmat), "-o", str(out), "--label-from", "filename"]
    words += [
        "--pattern",
        r"(?P<task>Subject\d+)_(?P<label>\d)",
        "--features",
        "rate,pnn20,sdnn_ratio",
    ]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    rate = pd.read_csv(out).set_index(["task", "label"])["rate"].groupby(level=[0, 1])
    empty = rate.agg(lambda some: some.isna().mean())
    # Peaks of noise may pass for beats in one window of fifteen seconds.
    assert [recording for recording, share in empty.items() if share] == silent
    assert empty[silent].min() > 0.9
    rates = rate.median().drop(silent)
    assert len(rates) == 68
    assert rates.between(40.0, 160.0).all()
    with pytest.warns(UserWarning, match="31 of 568 rows were dropped"):
        assert len(cf.read_tasks(out)) == 36

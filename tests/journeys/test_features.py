"""``crossfade features`` and ``crossfade tasks``, as a newcomer types them."""

import os

import numpy as np
import pandas as pd
import pytest

import crossfade as cf

pytest.importorskip("mne")
# The two states of these simulated people differ more than any real ones do.
pytestmark = pytest.mark.filterwarnings("ignore:.*alone separate:crossfade.exceptions.TableWarning")

NAMES = ["EEG Fz", "EEG Cz", "EEG Pz", "EEG Oz", "ECG ECG"]
PATTERN = r"(?P<task>p\d+)_(?P<label>\d)"
BY_NAME = ["--label-from", "filename", "--pattern", PATTERN]


CAUSAL = ["--causal", "--channels", "Fz,Cz", "--window", "2"]


@pytest.fixture
def folder(tmp_path, make_eeg, write_edf):
    inside = tmp_path / "lab"
    inside.mkdir()
    for person in range(4):
        for label in range(2):
            data = make_eeg(alpha=0.5 + label, seed=10 * person + label, seconds=30.0)
            write_edf(inside / f"p{person}_{label}.edf", data, NAMES)
    return inside


def test_a_folder_becomes_a_table_that_can_be_shown(run, folder):
    result = run("features", "eeg", "lab", "-o", "tasks.csv", *BY_NAME, "--channels", "Fz,Cz")
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "Written: tasks.csv, 4 tasks, 96 windows (48 of 0, 48 of 1), 6 features: "
        "Fz_theta, Fz_alpha, Fz_beta, Cz_theta, Cz_alpha, Cz_beta.\n"
    )
    tasks = cf.read_tasks("tasks.csv")
    assert tasks.feature_names == tuple(
        f"{channel}_{band}" for channel in ("Fz", "Cz") for band in ("theta", "alpha", "beta")
    )
    gain = [task.X[task.y == 1, 1].mean() - task.X[task.y == 0, 1].mean() for task in tasks]
    assert min(gain) > 0.1
    shown = run("tasks", "show", "tasks.csv")
    assert shown.exit_code == 0, shown.output
    prior = cf.TaskPrior.from_tasks(tasks)
    kappa = f"{prior.concentration:.2f} (4 tasks"
    for text in ("p3", "48 of class 0, 48 of class 1", "6: Fz_theta", kappa):
        assert text in shown.stdout


def test_a_bad_file_is_named_and_the_exit_status_tells(run, folder):
    (folder / "p2_0.edf").write_bytes(b"broken")
    result = run("features", "eeg", "lab", "-o", "tasks.parquet", *BY_NAME)
    assert result.exit_code == 1
    assert "4 tasks, 84 windows (36 of 0, 48 of 1)" in result.stdout
    assert "Could not be used (1):\n  lab/p2_0.edf: " in result.stderr
    assert "Task p2: has windows of one class only, '1'." in result.stderr
    assert len(cf.read_tasks("tasks.parquet")) == 4
    shown = run("tasks", "show", "tasks.parquet")
    assert "(3 tasks with two classes)" in shown.stdout


def test_labels_from_annotations(run, tmp_path, make_eeg, write_edf):
    notes = [(0.0, 10.0, "T1"), (10.0, 10.0, "T2"), (20.0, 5.0, "pause")]
    write_edf(tmp_path / "s1.edf", make_eeg(seconds=30.0), NAMES, annotations=notes)
    words = ["--label-from", "annotations", "--class", "T1=left", "--class", "T2=right"]
    bands = ["--bands", "mu=8-12,beta=13-30", "--window", "2"]
    result = run(
        "features", "eeg", "s1.edf", "-o", "tasks.csv", *words, *bands, "--features", "powers"
    )
    assert result.exit_code == 0, result.output
    table = pd.read_csv("tasks.csv")
    assert table["label"].value_counts().to_dict() == {"left": 5, "right": 5}
    assert list(table)[3:5] == ["Fz_mu", "Fz_beta"]


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["lab", "-o", "t.csv", "--label-from", "filename"], "--pattern"),
        (["lab", "-o", "t.csv", *BY_NAME[:3], "(?P<label>x"], "subpattern"),
        (["lab", "-o", "t.csv", "--label-from", "csv"], "--labels"),
        (["lab", "-o", "t.txt", *BY_NAME], "t.txt"),
        (["lab", "-o", "no/t.csv", *BY_NAME], "no folder"),
        (["lab", "-o", "t.csv", *BY_NAME, "--bands", "theta"], "--bands"),
        (["none", "-o", "t.csv", *BY_NAME], "'none' does not exist"),
    ],
)
def test_what_cannot_work_is_said_at_once(run, folder, words, word):
    result = run("features", "eeg", *words)
    assert result.exit_code
    assert word in " ".join(result.stderr.split())


def test_an_output_that_cannot_be_written_is_said_at_once(run, folder):
    result = run("features", "eeg", "lab", "-o", "/proc/t.csv", *BY_NAME)
    assert result.exit_code == 1
    assert "/proc/t.csv" in " ".join(result.stderr.split())
    os.mkfifo("node.csv")
    result = run("features", "eeg", "lab", "-o", "node.csv", *BY_NAME)
    assert result.exit_code == 1
    assert "node.csv is a pipe, and is not replaced by a file." in " ".join(result.stderr.split())


def test_a_table_says_how_it_was_made(run, folder):
    for name, words in (("causal", CAUSAL), ("usual", CAUSAL[1:])):
        result = run("features", "eeg", "lab", "-o", f"{name}.parquet", *BY_NAME, *words)
        assert result.exit_code == 0, result.output
    causal, usual = (cf.read_tasks(f"{name}.parquet") for name in ("causal", "usual"))
    assert (causal.recipe.filter, usual.recipe.filter) == ("causal", "zero-phase")
    assert causal.recipe.averaged == ("Fz", "Cz", "Pz", "Oz")
    # The same powers, but for the edges and the phase.
    assert np.corrcoef(causal[0].X[:, 1], usual[0].X[:, 1])[0, 1] > 0.9

    assert run("prior", "build", "causal.parquet", "-o", "prior.npz").exit_code == 0
    assert "causal filter from 0.5 to 30 Hz" in " ".join(
        run("prior", "show", "prior.npz").stdout.split()
    )
    result = run("calibrate", "--prior", "prior.npz", "usual.parquet", "-o", "m.json")
    assert result.exit_code == 1
    assert "filter zero-phase" in " ".join(result.output.split())


def test_an_ecg_is_found_in_each_window_as_live_sessions_do(run, folder, write_edf):
    time = np.arange(6000) / 100.0
    rng = np.random.default_rng(0)
    (folder.parent / "hearts").mkdir()
    for person in range(3):
        for label, rate in ((0, 60.0), (1, 80.0)):
            at = np.cumsum(60.0 / rate * (1.0 + 0.05 * rng.standard_normal(100)))
            beats = np.exp(-0.5 * ((time[:, None] - at) / 0.02) ** 2).sum(1)
            noisy = 100.0 * beats + rng.standard_normal(time.size)
            write_edf(folder.parent / "hearts" / f"p{person}_{label}.edf", [noisy], ["ECG"])
    words = ["features", "ecg", "hearts", *BY_NAME, "--features", "rate,rmssd"]
    assert run(*words, "-o", "hearts.parquet").exit_code == 0
    assert run("prior", "build", "hearts.parquet", "-o", "prior.npz").exit_code == 0
    refused = run("live", "--prior", "prior.npz", "--replay", "hearts/p0_0.edf", "--no-open")
    assert "--labels keys" in refused.output

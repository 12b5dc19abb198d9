"""Studies in a folder: stopped anywhere they go on, and give the rows of one that was not."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from crossfade import PosteriorBlendClassifier, Task, TaskPrior
from crossfade.simulate import simulate_tasks
from crossfade.study import CalibrationStudy, StudyResult, verdict
from crossfade.study.statistics import compare, forecast_errors, labels_saved, reliability

pytest.importorskip("pyarrow")

METHODS = ["target", "paper", "posterior", "lda"]


def make_study(tasks, methods=METHODS, **options):
    options = {"budgets": [2, 0.3], "n_splits": 5, "random_state": 0} | options
    return CalibrationStudy(tasks, methods=methods, **options)


def same(first, second):
    """To the last bit, but for the time that it took."""
    pd.testing.assert_frame_equal(
        first.rows.drop(columns="seconds").reset_index(drop=True),
        second.rows.drop(columns="seconds").reset_index(drop=True),
        check_exact=True,
    )
    pd.testing.assert_frame_equal(first.failures, second.failures)


def in_order(rows):
    keys = ["task", "method", "budget", "split"]
    return rows.sort_values(keys, ignore_index=True).drop(columns="seconds")


def shards(folder):
    return {path.name: path.stat().st_mtime_ns for path in (folder / "shards").glob("*.parquet")}


# -- a process that ends -------------------------------------------------------------------------

SCRIPT = """
import os, signal, sys, time
from crossfade.simulate import simulate_tasks
from crossfade.study import CalibrationStudy

folder, n_jobs, moment = sys.argv[1], int(sys.argv[2]), sys.argv[3]
fsync, files = os.fsync, []
# A shell that runs the tests in the background has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def stop():
    print("now", flush=True)
    time.sleep(600)

def slow_fsync(file):
    fsync(file)
    files.append(file)
    if moment == "in a file" and len(files) == 6:
        stop()

def on_progress(done, total):
    if moment == "between files" and done == 5:
        stop()

if __name__ == "__main__":
    os.fsync = slow_fsync
    study = CalibrationStudy(
        simulate_tasks(6, n_features=3, random_state=0),
        methods=["target", "paper", "posterior", "lda"],
        budgets=[2, 0.3],
        n_splits=5,
        random_state=0,
    )
    study.run(n_jobs=n_jobs, folder=folder, on_progress=on_progress)
"""


def start_and_stop(folder, n_jobs, moment, stop):
    """Start a study in a session of its own, and stop it when it has got so far."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), str(n_jobs), moment],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            assert process.stdout.readline() == "now\n", process.stderr.read()
            stop(process.pid)
            process.wait(60)
            if stop is interrupt:
                for _ in range(600):
                    if not session_lives(process.pid):
                        break
                    time.sleep(0.1)
                assert not session_lives(process.pid), "workers were left behind"
        finally:
            # Workers of a parent that was killed would wait for more work for minutes.
            if session_lives(process.pid):
                os.killpg(process.pid, signal.SIGKILL)
        return process.stderr.read()


def kill(leader):
    os.kill(leader, signal.SIGKILL)


def interrupt(leader):
    """As a terminal does: the whole group."""
    os.killpg(leader, signal.SIGINT)


def session_lives(leader):
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_killed_study_goes_on_where_it_was(tmp_path):
    start_and_stop(tmp_path, 1, "in a file", kill)
    before = shards(tmp_path)
    assert len(before) == 4
    study = make_study(simulate_tasks(6, n_features=3, random_state=0))
    seen = []
    result = study.run(folder=tmp_path, on_progress=lambda *numbers: seen.append(numbers))
    assert seen == [(done, 24) for done in range(4, 25)]
    assert before.items() <= shards(tmp_path).items()
    # What was being written when it was killed is gone, too.
    assert not list(tmp_path.rglob(".*"))
    same(result, study.run())
    same(result, StudyResult.load(tmp_path))


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_leaves_a_study_that_goes_on_and_no_workers(tmp_path):
    assert "KeyboardInterrupt" in start_and_stop(tmp_path, 2, "between files", interrupt)
    assert len(shards(tmp_path)) == 5
    assert not list(tmp_path.rglob(".*"))
    study = make_study(simulate_tasks(6, n_features=3, random_state=0))
    same(study.run(folder=tmp_path), study.run())


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_on_the_way_keeps_what_is_finished(make_tasks, tmp_path, n_jobs):
    study = make_study(make_tasks(4))

    def fail(done, total):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.run(n_jobs=n_jobs, folder=tmp_path, on_progress=fail)
    assert len(shards(tmp_path)) == 3
    same(study.run(n_jobs=n_jobs, folder=tmp_path), study.run())


# -- a study that is there ------------------------------------------------------------------------


def test_a_finished_study_does_nothing(make_tasks, tmp_path):
    first = make_study(make_tasks(3)).run(folder=tmp_path)
    before = shards(tmp_path), (tmp_path / "study.json").stat().st_mtime_ns
    assert len(before[0]) == 12
    seen = []
    second = make_study(make_tasks(3)).run(
        folder=tmp_path, on_progress=lambda *numbers: seen.append(numbers)
    )
    assert seen == [(12, 12)]
    assert (shards(tmp_path), (tmp_path / "study.json").stat().st_mtime_ns) == before
    pd.testing.assert_frame_equal(first.rows, second.rows, check_exact=True)
    same(first, make_study(make_tasks(3)).run())
    same(first, make_study(make_tasks(3)).run(folder=tmp_path / "deep" / "two", n_jobs=2))


def test_new_methods_are_added(make_tasks, tmp_path):
    tasks = make_tasks(3)
    make_study(tasks, ["lda", "posterior"]).run(folder=tmp_path)
    before = shards(tmp_path)
    seen = []
    more = make_study(tasks, ["posterior", "paper"])
    result = more.run(folder=tmp_path, on_progress=lambda *numbers: seen.append(numbers))
    assert seen == [(3, 6), (4, 6), (5, 6), (6, 6)]
    assert before.items() < shards(tmp_path).items()
    same(result, more.run())
    same(StudyResult.load(tmp_path), make_study(tasks, ["lda", "posterior", "paper"]).run())


def test_a_study_without_a_seed_goes_on_with_that_of_the_folder(make_tasks, tmp_path):
    tasks = make_tasks(3)
    make_study(tasks, ["target"], random_state=None).run(folder=tmp_path)
    before = shards(tmp_path)
    more = make_study(tasks, ["target", "paper"], random_state=None).run(folder=tmp_path)
    assert before.items() < shards(tmp_path).items()
    seed = json.loads((tmp_path / "study.json").read_text())["random_state"]
    same(more, make_study(tasks, ["target", "paper"], random_state=seed).run())


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "swapped"])
def test_a_damaged_shard_is_computed_again(make_tasks, tmp_path, damage):
    study = make_study(make_tasks(3), ["target", "posterior"], n_splits=50)
    whole = study.run(folder=tmp_path)
    path, another = sorted((tmp_path / "shards").iterdir())[:2]
    content = path.read_bytes()
    place = len(content) // 3
    flipped = bytes([content[place] ^ 0xFF])
    broken = {
        "cut": content[:-20],
        "empty": b"",
        "flipped": content[:place] + flipped + content[place + 1 :],
        "swapped": another.read_bytes(),
    }
    path.write_bytes(broken[damage])
    with pytest.warns(UserWarning, match="not finished"):
        assert len(StudyResult.load(tmp_path).rows) == len(whole.rows) * 5 // 6
    seen = []
    with pytest.warns(UserWarning, match="computed again"):
        mended = study.run(folder=tmp_path, on_progress=lambda *numbers: seen.append(numbers))
    assert seen == [(5, 6), (6, 6)]
    same(mended, whole)
    same(StudyResult.load(tmp_path), whole)


def test_failures_are_kept_with_their_messages(make_tasks, tmp_path):
    study = make_study(
        make_tasks(3), [("own", LinearDiscriminantAnalysis()), "posterior"], budgets=[1, 3]
    )
    for _ in range(2):
        with pytest.warns(UserWarning, match="'own' failed on 15 of 30 splits") as caught:
            result = study.run(folder=tmp_path)
        assert len(caught) == 1
        table = result.failures
        assert table[["task", "budget", "method", "n"]].values.tolist() == [
            [task, 1.0, "own", 5] for task in ("p0", "p1", "p2")
        ]
        assert table["message"].str.startswith("ValueError: ").all()
    same(StudyResult.load(tmp_path), result)
    with pytest.warns(UserWarning, match="'own' failed"):
        same(study.run(n_jobs=2), result)
    assert make_study(make_tasks(3), ["target"]).run().failures.empty


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_full_disk_leaves_nothing_half_written(make_tasks, tmp_path, monkeypatch, n_jobs):
    study = make_study(make_tasks(3))
    fsync, written = os.fsync, []

    def full(file):
        written.append(file)
        # The plan, then four shards.
        if len(written) > 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(file)

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        study.run(n_jobs=n_jobs, folder=tmp_path)
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert len(shards(tmp_path)) == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shards", "study.json"]
    assert set(shards(tmp_path)) == {path.name for path in (tmp_path / "shards").iterdir()}
    same(study.run(folder=tmp_path), study.run())


def test_statistics_read_a_large_study_by_parts(monkeypatch, tmp_path):
    tasks = simulate_tasks(7, n_features=3, random_state=0)
    study = make_study(tasks, budgets=[0, 2, 4], n_splits=6)
    alone = study.run()
    # Every study in a folder counts as large.
    monkeypatch.setattr("crossfade.study._result._FEW", 0)
    study.run(folder=tmp_path)
    large = StudyResult.load(tmp_path)
    tables = [
        (large.means, alone.means),
        (large.summary(), alone.summary()),
        (large.needed(0.7), alone.needed(0.7)),
        *(
            (table(large), table(alone.rows))
            for table in (compare, labels_saved, reliability, forecast_errors)
        ),
    ]
    for parts, whole in tables:
        pd.testing.assert_frame_equal(parts, whole, rtol=0.0, atol=1e-12)
    assert verdict(large, 0.7) == verdict(alone, 0.7)
    assert repr(large) == repr(alone)
    assert sum(len(part) for part in large.parts()) == len(alone.rows)
    same(large, alone)


# -- another study, or none -----------------------------------------------------------------------


def changed(tasks):
    X = np.array(tasks[1].X)
    X[3, 2] += 1e-9
    return [tasks[0], Task(X, tasks[1].y, tasks[1].name), *tasks[2:]]


MINE = ["target", ("mine", KNeighborsClassifier(3))]


@pytest.mark.parametrize(
    ("change", "options", "word"),
    [
        (list, {"budgets": [2]}, "budgets"),
        (list, {"n_splits": 6}, "n_splits"),
        (list, {"splits": "random"}, "splits"),
        (list, {"random_state": 1}, "random_state"),
        (list, {"forecasts": False}, "forecasts"),
        (lambda tasks: tasks[:3], {}, "p3"),
        (changed, {}, "p1"),
        (lambda tasks: tasks[::-1], {}, "order"),
        (list, {"methods": ["target", ("mine", KNeighborsClassifier(1))]}, "mine"),
    ],
)
def test_another_study_is_refused(make_tasks, tmp_path, change, options, word):
    make_study(make_tasks(4), MINE).run(folder=tmp_path)
    before = shards(tmp_path), (tmp_path / "study.json").read_bytes()
    other = make_study(change(make_tasks(4)), **{"methods": MINE} | options)
    with pytest.raises(ValueError, match=f"another study.*{word}"):
        other.run(folder=tmp_path)
    assert (shards(tmp_path), (tmp_path / "study.json").read_bytes()) == before


def test_what_is_no_study_is_refused(make_tasks, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"study\.json"):
        StudyResult.load(tmp_path)
    for content in ("{", "[1, 2]", "{}", '"text"', "[" * 200_000):
        (tmp_path / "study.json").write_text(content)
        with pytest.raises(ValueError, match=r"study\.json"):
            StudyResult.load(tmp_path)
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError, match="file"):
        make_study(make_tasks(3)).run(folder=tmp_path / "file")
    folder = tmp_path / "empty"
    make_study(make_tasks(3), ["target"]).run(folder=folder)
    shutil.rmtree(folder / "shards")
    with pytest.raises(ValueError, match="no finished part"):
        StudyResult.load(folder)


# -- estimators of the user's ---------------------------------------------------------------------


def log_size(X):
    return np.log1p(np.abs(X))


def is_the_same(folder, tasks, first, second):
    """Whether a study in a folder takes a second estimator for the first."""
    make_study(tasks, [("mine", first)], budgets=[2], n_splits=1).run(folder=folder)
    try:
        make_study(tasks, [("mine", second)], budgets=[2], n_splits=1).run(folder=folder)
    except ValueError:
        return False
    return True


@pytest.mark.filterwarnings("ignore:Method 'mine'")
def test_estimators_are_recognised_by_their_parameters(make_tasks, tmp_path):
    tasks = make_tasks(2)
    for place, make in enumerate(
        [
            lambda: make_pipeline(SimpleImputer(), FunctionTransformer(np.log1p), GaussianNB()),
            lambda: make_pipeline(FunctionTransformer(log_size), GaussianNB()),
            lambda: GaussianNB(priors=np.array([0.5, 0.5])),
            lambda: RandomForestClassifier(2, max_features=np.int64(2), class_weight={0: 1, 1: 2}),
            lambda: PosteriorBlendClassifier(TaskPrior.from_tasks(make_tasks(6)[2:])),
        ]
    ):
        assert is_the_same(tmp_path / f"same{place}", tasks, make(), make())
    for place, (first, second) in enumerate(
        [
            (GaussianNB(), LogisticRegression()),
            (
                RandomForestClassifier(2, max_features=1),
                RandomForestClassifier(2, max_features=1.0),
            ),
            (make_pipeline(GaussianNB()), make_pipeline(GaussianNB(var_smoothing=1e-3))),
            (GaussianNB(priors=np.array([0.5, 0.5])), GaussianNB(priors=np.array([0.4, 0.6]))),
            (
                PosteriorBlendClassifier(TaskPrior.from_tasks(make_tasks(6)[2:])),
                PosteriorBlendClassifier(TaskPrior.from_tasks(make_tasks(6)[3:])),
            ),
        ]
    ):
        assert not is_the_same(tmp_path / f"other{place}", tasks, first, second)


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(FunctionTransformer(lambda X: X), GaussianNB()),
        RandomForestClassifier(2, random_state=np.random.RandomState(0)),
    ],
)
def test_estimators_that_cannot_be_recognised_need_no_folder(make_tasks, tmp_path, estimator):
    study = make_study(make_tasks(3), [("mine", estimator)])
    with pytest.raises(ValueError, match="without a folder"):
        study.run(folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert study.run().rows["accuracy"].notna().all()


# -- two studies ----------------------------------------------------------------------------------


def test_studies_are_merged(make_tasks, tmp_path):
    tasks = make_tasks(3)
    first = make_study(tasks, ["target", "paper"]).run(folder=tmp_path)
    second = make_study(tasks, ["paper", "lda"]).run()
    both = StudyResult.load(tmp_path) + second
    whole = make_study(tasks, ["target", "paper", "lda"]).run()
    pd.testing.assert_frame_equal(in_order(both.rows), in_order(whole.rows))
    same(first + first, first)
    same(both + second, both)
    more = make_study(tasks, ["lda"], budgets=[2, 3], n_splits=8).run()
    assert len((more + make_study(tasks, ["lda"], budgets=[2]).run()).rows) == 3 * 2 * 8
    halves = [StudyResult(whole.rows[whole.rows["budget"] == budget]) for budget in (2, 0.3)]
    assert len((halves[0] + halves[1]).rows) == len(whole.rows)


def test_failures_are_merged(make_tasks):
    with pytest.warns(UserWarning, match="'own' failed"):
        first = make_study(make_tasks(3), {"own": LinearDiscriminantAnalysis()}, budgets=[1]).run()
    second = make_study(make_tasks(3), ["posterior"], budgets=[1]).run()
    pd.testing.assert_frame_equal((second + first).failures, first.failures)
    pd.testing.assert_frame_equal((first + first).failures, first.failures)


def test_studies_that_disagree_are_not_merged(make_tasks):
    tasks = make_tasks(6)
    first = make_study(tasks[:4], ["posterior"]).run()
    with pytest.raises(ValueError, match="disagree"):
        first + make_study(tasks[:3], ["posterior"]).run()
    # No row is in both, but the methods would be compared on other windows.
    with pytest.raises(ValueError, match="other windows"):
        first + make_study(tasks[:4], ["target"], random_state=1).run()
    nameless = [Task(task.X, task.y) for task in tasks]
    with pytest.raises(ValueError, match="other windows"):
        make_study(nameless[:3], ["target"]).run() + make_study(nameless[3:], ["target"]).run()
    with pytest.raises(TypeError):
        first + 1

"""Studies in a folder: stopped anywhere they go on, and give the rows of one that was not."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
import warnings

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

from crossfade import PosteriorBlendClassifier, Task
from crossfade.simulate import simulate_tasks
from crossfade.study import CalibrationStudy, StudyResult
from crossfade.study._store import identity

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


def shards(folder):
    return {path.name: path.stat().st_mtime_ns for path in (folder / "shards").glob("*.parquet")}


# -- a process that ends -------------------------------------------------------------------------

SCRIPT = """
import os, signal, sys, time
import crossfade._files
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
    crossfade._files.os.fsync = slow_fsync
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
@pytest.mark.parametrize(
    ("moment", "n_jobs", "n_shards"),
    [("in a file", 1, 4), ("between files", 2, 5)],
)
def test_a_killed_study_goes_on_where_it_was(tmp_path, moment, n_jobs, n_shards):
    start_and_stop(tmp_path, n_jobs, moment, kill)
    before = shards(tmp_path)
    # The plan is a file as well, and was written first.
    assert len(before) == n_shards
    study = make_study(simulate_tasks(6, n_features=3, random_state=0))
    seen = []
    result = study.run(folder=tmp_path, on_progress=lambda *numbers: seen.append(numbers))
    assert seen == [(done, 24) for done in range(n_shards, 25)]
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


def refuse_to_run(*args):
    raise AssertionError("There is nothing to do.")


def test_a_finished_study_does_nothing(make_tasks, tmp_path, monkeypatch):
    first = make_study(make_tasks(3)).run(folder=tmp_path)
    before = shards(tmp_path), (tmp_path / "study.json").stat().st_mtime_ns
    assert len(before[0]) == 12
    monkeypatch.setattr("crossfade.study._processes.run_target", refuse_to_run)
    monkeypatch.setattr("crossfade.study._study.Sources", None)
    seen = []
    second = make_study(make_tasks(3)).run(
        folder=tmp_path, on_progress=lambda *numbers: seen.append(numbers)
    )
    assert seen == [(12, 12)]
    assert (shards(tmp_path), (tmp_path / "study.json").stat().st_mtime_ns) == before
    pd.testing.assert_frame_equal(first.rows, second.rows, check_exact=True)


def test_rows_do_not_depend_on_the_folder_or_the_processes(make_tasks, tmp_path):
    study = make_study(make_tasks(3))
    alone = study.run()
    same(alone, study.run(folder=tmp_path / "deep" / "one"))
    same(alone, study.run(folder=tmp_path / "two", n_jobs=2))


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
    first = make_study(tasks, ["target"], random_state=None).run(folder=tmp_path)
    before = shards(tmp_path)
    more = make_study(tasks, ["target", "paper"], random_state=None).run(folder=tmp_path)
    assert before.items() < shards(tmp_path).items()
    seed = json.loads((tmp_path / "study.json").read_text())["random_state"]
    same(more, make_study(tasks, ["target", "paper"], random_state=seed).run())
    same(first, make_study(tasks, ["target"], random_state=seed).run())
    other = make_study(tasks, ["target"], random_state=None).run(folder=tmp_path / "other")
    assert (other.rows["roc_auc"] != first.rows["roc_auc"]).any()


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "other"])
def test_a_damaged_shard_is_computed_again(make_tasks, tmp_path, damage):
    study = make_study(make_tasks(3), ["target", "posterior"], n_splits=50)
    whole = study.run(folder=tmp_path)
    path = next((tmp_path / "shards").glob("*.parquet"))
    content = path.read_bytes()
    place = len(content) // 3
    flipped = bytes([content[place] ^ 0xFF])
    broken = {
        "cut": content[:-20],
        "empty": b"",
        "flipped": content[:place] + flipped + content[place + 1 :],
        "other": b"PAR1 is how it begins, and how it ends PAR1",
    }
    path.write_bytes(broken[damage])
    with pytest.warns(UserWarning, match=r"is not finished: 1 of 6 parts .* are missing"):
        assert len(StudyResult.load(tmp_path).rows) == len(whole.rows) * 5 // 6
    seen = []
    with pytest.warns(UserWarning, match=r"^1 of 6 parts in .* are computed again\. Task 'p\d', "):
        mended = study.run(folder=tmp_path, on_progress=lambda *numbers: seen.append(numbers))
    assert seen == [(5, 6), (6, 6)]
    same(mended, whole)
    same(StudyResult.load(tmp_path), whole)


def test_budgets_that_not_every_task_allows(make_tasks, tmp_path):
    tasks = make_tasks(4)
    small = Task(tasks[0].X[7:14], tasks[0].y[7:14], "small")
    with pytest.warns(UserWarning, match="left out of budget 3"):
        study = make_study([small, *tasks[1:]], ["target"], budgets=[1, 3])
    same(study.run(folder=tmp_path), study.run())
    with pytest.warns(UserWarning, match="left out of budget 3"):
        study = make_study([small, *tasks[1:]], ["target"], budgets=[3])
    assert "small" not in set(study.run(folder=tmp_path / "none").rows["task"])


# -- what fails -----------------------------------------------------------------------------------


def test_failures_are_kept_with_their_messages(make_tasks, tmp_path):
    study = make_study(
        make_tasks(3), [("own", LinearDiscriminantAnalysis()), "posterior"], budgets=[1, 3]
    )
    message = "^Method 'own' failed on 15 of 30 splits, .* The first, p0, budget 1: ValueError: "
    for _ in range(2):
        with pytest.warns(UserWarning, match=message) as caught:
            result = study.run(folder=tmp_path)
        assert len(caught) == 1
        table = result.failures
        assert list(table.columns) == ["task", "budget", "method", "n", "message"]
        assert table[["task", "budget", "method", "n"]].values.tolist() == [
            [task, 1.0, "own", 5] for task in ("p0", "p1", "p2")
        ]
        assert table["message"].str.startswith("ValueError: ").all()
    same(StudyResult.load(tmp_path), result)
    with pytest.warns(UserWarning, match=message):
        same(study.run(n_jobs=2), result)


def test_without_failures_the_table_is_empty(make_tasks):
    table = make_study(make_tasks(3)).run().failures
    assert list(table.columns) == ["task", "budget", "method", "n", "message"]
    assert table.empty


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

    monkeypatch.setattr("crossfade._files.os.fsync", full)
    message = r"could not be written \(No space left on device\)\. Those before it are kept"
    with pytest.raises(OSError, match=message) as caught:
        study.run(n_jobs=n_jobs, folder=tmp_path)
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert len(shards(tmp_path)) == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shards", "study.json"]
    assert set(shards(tmp_path)) == {path.name for path in (tmp_path / "shards").iterdir()}
    same(study.run(folder=tmp_path), study.run())


def test_a_folder_that_cannot_be_made_is_said_before_anything_runs(
    make_tasks, tmp_path, monkeypatch
):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr("crossfade.study._processes.run_target", refuse_to_run)
    for folder in (tmp_path / "file", tmp_path / "file" / "deeper"):
        message = rf"A study cannot be kept in {folder}: .*\. Choose another folder\."
        with pytest.raises(OSError, match=message) as caught:
            make_study(make_tasks(3)).run(folder=folder)
        assert caught.value.errno in (errno.EEXIST, errno.ENOTDIR)
    assert (tmp_path / "file").read_text() == "no folder"


def test_a_folder_needs_pyarrow(make_tasks, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"Install crossfade\[tables\], or run the study without"):
        make_study(make_tasks(3)).run(folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()
    make_study(make_tasks(3), ["target"]).run()


# -- another study --------------------------------------------------------------------------------


def changed(tasks):
    X = np.array(tasks[1].X)
    X[3, 2] += 1e-9
    return [tasks[0], Task(X, tasks[1].y, tasks[1].name), *tasks[2:]]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (list, {"budgets": [2]}, r"budgets is \[2, 0\.3\] there and \[2\] here"),
        (list, {"n_splits": 6}, "n_splits is 5 there and 6 here"),
        (list, {"splits": "random"}, "splits is 'consecutive' there and 'random' here"),
        (list, {"random_state": 1}, "random_state is 0 there and 1 here"),
        (lambda tasks: tasks[:3], {}, "tasks are missing here: 'p3'"),
        (lambda tasks: [*tasks, Task(tasks[0].X, tasks[0].y, "p9")], {}, "tasks are new: 'p9'"),
        (changed, {}, r"tasks are changed: 'p1'\. Choose another folder, or go on with the arg"),
        (lambda tasks: tasks[::-1], {}, "the tasks have another order"),
        (
            list,
            {"methods": ["target", ("mine", KNeighborsClassifier(1))]},
            r"method 'mine' is \{.*'n_neighbors': 3.*\} there and \{.*'n_neighbors': 1",
        ),
    ],
)
def test_another_study_is_refused(make_tasks, tmp_path, monkeypatch, change, options, message):
    methods = ["target", ("mine", KNeighborsClassifier(3))]
    make_study(make_tasks(4), methods).run(folder=tmp_path)
    before = shards(tmp_path), (tmp_path / "study.json").read_bytes()
    other = make_study(change(make_tasks(4)), **{"methods": methods} | options)
    with pytest.raises(ValueError, match=rf"There is another study in .*: {message}"):
        other.run(folder=tmp_path)
    assert (shards(tmp_path), (tmp_path / "study.json").read_bytes()) == before


def test_other_features_labels_or_versions_are_another_study(make_tasks, tmp_path, monkeypatch):
    make_study(make_tasks(3, feature_names=list("abcd"))).run(folder=tmp_path)
    with pytest.raises(ValueError, match=r"feature_names is \['a', .*\] there and None here"):
        make_study(make_tasks(3)).run(folder=tmp_path)
    words = make_tasks(3, labels=("no", "yes"), feature_names=list("abcd"))
    with pytest.raises(ValueError, match=r"classes is \[0, 1\] there and \['no', 'yes'\] here"):
        make_study(words).run(folder=tmp_path)
    monkeypatch.setattr("crossfade._version.__version__", "99.0")
    with pytest.raises(ValueError, match=r"crossfade is '.*' there and '99.0' here"):
        make_study(make_tasks(3, feature_names=list("abcd"))).run(folder=tmp_path)


def test_the_plan_can_be_read(make_tasks, tmp_path):
    make_study(make_tasks(3), ["target", ("mine", GaussianNB())]).run(folder=tmp_path)
    plan = json.loads((tmp_path / "study.json").read_text())
    assert plan["budgets"] == [2, 0.3]
    assert (plan["n_splits"], plan["splits"], plan["random_state"]) == (5, "consecutive", 0)
    assert list(plan["tasks"]) == ["p0", "p1", "p2"]
    assert plan["methods"]["target"] == "target"
    assert plan["methods"]["mine"] == {
        "sklearn.naive_bayes.GaussianNB": {"priors": None, "var_smoothing": 1e-09}
    }


# -- estimators of the user's ---------------------------------------------------------------------


def log_size(X):
    return np.log1p(np.abs(X))


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_pipeline(SimpleImputer(), FunctionTransformer(np.log1p), GaussianNB()),
        lambda: FunctionTransformer(log_size),
        lambda: FunctionTransformer(np.nan_to_num, kw_args={"nan": np.float64(0.0)}),
        lambda: GaussianNB(priors=np.array([0.5, 0.5])),
        lambda: RandomForestClassifier(max_features=np.int64(2), class_weight={0: 1, 1: 2}),
    ],
)
def test_equal_estimators_are_told_to_be_so(make):
    first, second = (json.dumps(identity(make(), "mine")) for _ in range(2))
    assert first == second
    assert json.loads(first) == json.loads(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (GaussianNB(), LogisticRegression()),
        (LogisticRegression(C=1), LogisticRegression(C=2)),
        (RandomForestClassifier(max_features=1), RandomForestClassifier(max_features=1.0)),
        (make_pipeline(GaussianNB()), make_pipeline(GaussianNB(var_smoothing=1e-3))),
        (GaussianNB(priors=np.array([0.5, 0.5])), GaussianNB(priors=np.array([0.4, 0.6]))),
        (FunctionTransformer(np.log1p), FunctionTransformer(np.sqrt)),
        (SimpleImputer(), SimpleImputer(missing_values=0.0)),
    ],
)
def test_unequal_estimators_are_told_apart(first, second):
    assert json.dumps(identity(first, "a")) != json.dumps(identity(second, "b"))


def test_priors_are_told_apart(make_prior):
    first, again, second = (
        json.dumps(identity(PosteriorBlendClassifier(make_prior(seed=seed)), "mine"))
        for seed in (0, 0, 1)
    )
    assert first == again
    assert first != second


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (make_pipeline(FunctionTransformer(lambda X: X), GaussianNB()), ", func is <function"),
        (RandomForestClassifier(random_state=np.random.RandomState(0)), ", random_state is Random"),
        (RandomForestClassifier(class_weight={0: object()}), r", class_weight\[0\] is <object"),
    ],
)
def test_estimators_that_cannot_be_told_apart_are_refused(make_tasks, tmp_path, estimator, message):
    study = make_study(make_tasks(3), [("mine", estimator)])
    with pytest.raises(ValueError, match=rf"^Method 'mine'.*{message}.*run the study without a"):
        study.run(folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_estimators_that_cannot_be_told_apart_run_without_a_folder(make_tasks):
    mine = make_pipeline(FunctionTransformer(lambda X: X), GaussianNB())
    assert make_study(make_tasks(3), [("mine", mine)]).run().rows["accuracy"].notna().all()


# -- loading --------------------------------------------------------------------------------------


def test_what_is_no_study_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no study in .*: it has no study\.json"):
        StudyResult.load(tmp_path)
    for content in ("{", "[1, 2]", "{}", '"text"', "[" * 200_000):
        (tmp_path / "study.json").write_text(content)
        with pytest.raises(ValueError, match=r"study\.json is not the plan of a study: "):
            StudyResult.load(tmp_path)


def test_a_study_without_shards_is_not_loaded(make_tasks, tmp_path):
    make_study(make_tasks(3), ["target"]).run(folder=tmp_path)
    for path in (tmp_path / "shards").iterdir():
        path.unlink()
    with pytest.raises(ValueError, match="has no finished part yet"):
        StudyResult.load(tmp_path)


# -- two studies ----------------------------------------------------------------------------------


def test_studies_of_other_methods_are_merged(make_tasks, tmp_path):
    tasks = make_tasks(3)
    first = make_study(tasks, ["target", "paper"]).run(folder=tmp_path)
    second = make_study(tasks, ["paper", "lda"]).run()
    both = StudyResult.load(tmp_path) + second
    keys = ["task", "method", "budget", "split"]
    whole = make_study(tasks, ["target", "paper", "lda"]).run()
    pd.testing.assert_frame_equal(
        both.rows.sort_values(keys, ignore_index=True).drop(columns="seconds"),
        whole.rows.sort_values(keys, ignore_index=True).drop(columns="seconds"),
    )
    same(first + first, first)
    same(both + second, both)


def test_studies_of_other_tasks_are_merged(make_tasks):
    tasks = make_tasks(6)
    first, second = (make_study(some, ["posterior"]).run() for some in (tasks[:3], tasks[3:]))
    rows = (first + second).rows
    pd.testing.assert_frame_equal(rows, pd.concat([first.rows, second.rows], ignore_index=True))


def test_studies_of_other_budgets_and_more_splits_are_merged(make_tasks):
    tasks = make_tasks(3)
    first = make_study(tasks, ["posterior"], budgets=[2]).run()
    second = make_study(tasks, ["posterior"], budgets=[2, 3], n_splits=8).run()
    assert len((first + second).rows) == 3 * 2 * 8


def test_budgets_for_which_a_task_is_too_small_are_merged(make_tasks):
    tasks = make_tasks(4)
    tasks[0] = Task(tasks[0].X[7:14], tasks[0].y[7:14], "small")
    first = make_study(tasks, ["posterior"], budgets=[1]).run()
    with pytest.warns(UserWarning, match="left out of budget 4"):
        second = make_study(tasks, ["posterior"], budgets=[4]).run()
    with pytest.warns(UserWarning, match="left out of budget 4"):
        whole = make_study(tasks, ["posterior"], budgets=[1, 4]).run()
    keys = ["task", "budget", "split"]
    pd.testing.assert_frame_equal(
        (first + second).rows.sort_values(keys, ignore_index=True).drop(columns="seconds"),
        whole.rows.sort_values(keys, ignore_index=True).drop(columns="seconds"),
    )


def test_tasks_without_names_are_not_merged(make_tasks):
    nameless = [Task(task.X, task.y) for task in make_tasks(6)]
    first, second = (make_study(some, ["target"]).run() for some in (nameless[:3], nameless[3:]))
    message = r"^Task 'task \d' has other splits .* tasks without one are called 'task 1', 'task 2'"
    with pytest.raises(ValueError, match=message):
        first + second


def test_failures_are_merged(make_tasks):
    with pytest.warns(UserWarning, match="'own' failed"):
        first = make_study(
            make_tasks(3), [("own", LinearDiscriminantAnalysis())], budgets=[1]
        ).run()
    second = make_study(make_tasks(3), ["posterior"], budgets=[1]).run()
    pd.testing.assert_frame_equal((second + first).failures, first.failures)
    pd.testing.assert_frame_equal((first + first).failures, first.failures)


def test_studies_that_disagree_are_not_merged(make_tasks):
    tasks = make_tasks(4)
    first = make_study(tasks, ["posterior"]).run()
    fewer = make_study(tasks[:3], ["posterior"]).run()
    message = (
        r"disagree about \d+ of 30 rows that both have\. The first is of task 'p0', method "
        r"'posterior', budget 2, split \d: its sources"
    )
    with pytest.raises(ValueError, match=message):
        first + fewer
    # No row is in both, but the methods would be compared on other windows.
    other = make_study(tasks, ["target"], random_state=1).run()
    with pytest.raises(ValueError, match=r"Task 'p\d' has other splits in the one study than"):
        first + other
    with pytest.raises(TypeError):
        first + 1


def test_results_of_rows_alone_are_merged(make_tasks):
    rows = make_study(make_tasks(3)).run().rows
    halves = [StudyResult(rows[rows["budget"] == budget]) for budget in (2, 0.3)]
    assert len((halves[0] + halves[1]).rows) == len(rows)


def test_loading_a_whole_study_warns_of_nothing(make_tasks, tmp_path):
    make_study(make_tasks(3), ["target"]).run(folder=tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StudyResult.load(tmp_path)

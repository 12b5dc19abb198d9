"""Tasks and tables of tasks: what they hold, there and back, and each refusal."""

import io
import os
import sys
import threading
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner

from crossfade import (
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
    TaskSet,
    load_mental_math,
    load_model,
    read_tasks,
    save_model,
)
from crossfade.cli import main
from crossfade.exceptions import DroppedWindowsWarning, PriorMismatchError, TableWarning


def assert_same(mine, theirs):
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs, strict=True):
        for field in ("name", "group", "feature_names"):
            assert getattr(one, field) == getattr(other, field)
        for field in ("X", "y", "start"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field))


# -- tasks -----------------------------------------------------------------------------------------


def test_task_holds_arrays_and_says_what_it_is():
    task = Task([[1, 2], [3, 4]], ["b", "a"], name="p1", group="g", feature_names=["u", "v"])
    assert task.X.dtype == np.float64
    np.testing.assert_array_equal(task.X, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(task.classes, ["a", "b"])
    assert task.feature_names == ("u", "v")
    assert repr(task) == "Task('p1', n_samples=2, n_features=2)"
    with pytest.raises(FrozenInstanceError):
        task.name = "other"


def test_task_takes_the_column_names_of_a_frame():
    frame = pd.DataFrame({"alpha": [1.0, 2.0], "beta": [3.0, 4.0]})
    assert Task(frame, [0, 1]).feature_names == ("alpha", "beta")
    assert Task(frame, pd.Series([0, 1]), feature_names=["x", "y"]).feature_names == ("x", "y")


def test_task_set_is_a_sequence_of_tasks():
    tasks = [Task([[float(i)], [1.0]], [0, 1], name=str(i)) for i in range(4)]
    together = TaskSet(iter(tasks))
    assert list(together) == tasks
    assert together[-1] is tasks[3]
    assert isinstance(together[1:3], TaskSet)
    assert list(together[1:3]) == tasks[1:3]
    assert tasks[0] in together
    assert repr(together) == "TaskSet(n_tasks=4, n_features=1)"
    assert TaskSet([]).feature_names is None
    assert repr(TaskSet([])) == "TaskSet(n_tasks=0, n_features=0)"


ONE = Task([[1.0], [2.0]], [0, 1], name="one", feature_names=["u"])


@pytest.mark.parametrize(
    ("make", "error", "word"),
    [
        (lambda: Task([[1.0, np.nan]], [0]), ValueError, "finite"),
        (lambda: Task([[np.inf]], [0], "p3"), ValueError, "'p3'"),
        (lambda: Task(["a"], [0]), ValueError, "numbers"),
        (lambda: Task([1.0, 2.0], [0, 1]), ValueError, "axes"),
        (lambda: Task([[1.0], [2.0]], [0]), ValueError, "label per row"),
        (lambda: Task([[[1.0]]], [0]), ValueError, "shape"),
        (lambda: Task([[1.0]], [[0]]), ValueError, "shape"),
        (lambda: Task([[1.0, 2.0]], [0], feature_names=["u"]), ValueError, "feature_names"),
        (lambda: Task([[1.0]], [0], feature_names="u"), ValueError, "feature_names"),
        (lambda: Task([[1.0], [2.0]], [0, 1], start=[0.0]), ValueError, "start"),
        (lambda: Task([[1e200]], [0]), ValueError, "large"),
        (lambda: Task([[1.0], [2.0]], [0.0, np.nan]), ValueError, "missing"),
        (lambda: Task([[1.0], [2.0]], ["a", None]), ValueError, "missing"),
        (lambda: TaskSet([ONE, ([[1.0]], [0])]), TypeError, "tuple"),
        (lambda: TaskSet(ONE), TypeError, "list of Task"),
        (lambda: TaskSet([ONE, Task([[1.0, 2.0]], [0], "two")]), ValueError, "features"),
        (lambda: TaskSet([ONE, replace(ONE, feature_names=["v"])]), ValueError, "features"),
        (lambda: TaskSet([ONE, Task([[1.0]], [0])]), ValueError, "features"),
        (lambda: TaskSet([ONE], {0: 1}), ValueError, "class_names"),
        (lambda: TaskSet([ONE], {0: " "}), ValueError, "class_names"),
        (lambda: TaskSet([ONE], {0: "rest", 1: "rest"}), ValueError, "different"),
        (lambda: TaskSet([ONE, ONE]).to_frame(), ValueError, "different names"),
        (lambda: TaskSet([replace(ONE, feature_names=["label"])]).to_frame(), ValueError, "label"),
        (lambda: TaskSet([]).to_frame(), ValueError, "one task"),
    ],
)
def test_tasks_refuse(make, error, word):
    with pytest.raises(error, match=word):
        make()


# -- there and back --------------------------------------------------------------------------------


@pytest.fixture
def tasks(make_tasks):
    made = make_tasks(3, labels=("rest", "math"), feature_names=list("abcd"))
    return TaskSet(
        replace(task, group=f"g{place}", start=np.arange(20) * 2.5)
        for place, task in enumerate(made)
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet", "CSV"])
def test_there_and_back(tasks, tmp_path, suffix):
    path = tmp_path / f"tasks.{suffix}"
    tasks.write(path)
    assert_same(read_tasks(path), tasks)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    frame = tasks.to_frame()
    assert list(frame.columns) == ["task", "label", "group", "start", *"abcd"]
    assert_same(TaskSet.from_frame(frame), tasks)


def test_rows_of_a_task_need_not_stand_together(tasks):
    mixed = tasks.to_frame().sort_values("start", kind="stable")
    assert_same(TaskSet.from_frame(mixed), tasks)


def test_tasks_without_names_groups_or_times_get_names():
    frame = TaskSet([Task([[1.0, 2.0], [3.0, 4.0]], [0, 1])]).to_frame()
    assert list(frame.columns) == ["task", "label", "x0", "x1"]
    assert set(frame["task"]) == {"task 1"}


@pytest.mark.parametrize(
    "labels",
    [[0, 1], [-1, 12], ["0", "01"], ["a", "1"], [True, False], ["true", "false"], [0.0, 1.5]],
)
def test_labels_of_all_kinds_come_back(labels, tmp_path):
    path = tmp_path / "tasks.csv"
    TaskSet([Task([[1.0], [2.0]], labels, feature_names=["a"])]).write(path)
    [read] = read_tasks(path)
    assert read.y.tolist() == labels
    assert read.y.dtype.kind == np.array(labels).dtype.kind


@pytest.mark.parametrize("name", ["NA", "None", "nan", "007"])
def test_text_that_looks_like_something_else_is_text(name, tmp_path):
    task = Task([[1.0], [2.0]], [name, "x"], name=name, group=name, feature_names=["a"])
    for ending in ("csv", "parquet"):
        path = tmp_path / f"tasks.{ending}"
        TaskSet([task]).write(path)
        [read] = read_tasks(path)
        assert (read.name, read.group, read.y.tolist()) == (name, name, [name, "x"])


@pytest.mark.parametrize("index", ["task", ["task", "label"]])
def test_a_named_index_in_a_file_is_a_column(people, index, tmp_path):
    mine = people[:3]
    mine.to_frame().set_index(index).to_parquet(tmp_path / "t.parquet")
    found = read_tasks(tmp_path / "t.parquet")
    assert_same(found, mine)
    assert found.class_names == mine.class_names


# -- what is missing -------------------------------------------------------------------------------


def test_missing_features_are_dropped_and_counted(tmp_path):
    path = tmp_path / "tasks.csv"
    path.write_text("task,label,a,b\np,0,1,2\np,1,,2\np,1,3,4\np,0,,\nq,0,,1\n")
    with pytest.warns(DroppedWindowsWarning, match=r"3 of 5 .*a \(3\), b \(1\).*'q'") as caught:
        [task] = read_tasks(path)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(task.X, [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(ValueError, match="3 of 5"):
        read_tasks(path, missing="error")
    path.write_text("task,label,a\np,0,\np,1,\n")
    with pytest.raises(ValueError, match="empty"):
        read_tasks(path)


def test_masked_is_missing():
    X = np.ma.masked_array(np.random.default_rng(1).normal(size=(12, 2)), mask=False)
    X[4, 1] = 1e6
    X.mask[4, 1] = True
    y, groups = np.tile([0, 1], 6), np.repeat(["a", "b"], 6)
    with pytest.warns(DroppedWindowsWarning, match=r"1 of 12 .* x1 \(1\)"):
        found = TaskSet.from_arrays(X, y, groups)
    assert len(found[0].y) == 5
    assert np.abs(found[0].X).max() < 10.0
    labels = np.ma.masked_array(y, mask=np.arange(12) == 2)
    with pytest.raises(ValueError, match="row 2, column 'label'"):
        TaskSet.from_arrays(X.data, labels, groups)


# -- a lab's own table -----------------------------------------------------------------------------


@pytest.fixture
def lab():
    """Two people, two sessions each, numbered anew, and a trial counter."""
    rng = np.random.default_rng(0)
    n = 48
    return pd.DataFrame(
        {
            "subject": np.repeat(["anna", "ben"], n // 2),
            "session": np.tile(np.repeat([1, 2], n // 4), 2),
            "condition": np.tile(["rest", "math"], n // 2),
            "onset": np.tile(np.arange(n // 4) * 2.5, 4),
            "trial": np.tile(np.arange(n // 4), 4),
            "F3_theta": rng.normal(size=n),
            "F4_theta": rng.normal(size=n),
            "C3_theta": rng.normal(size=n),
        }
    )


MAPPING = {
    "task": ["subject", "session"],
    "group": "subject",
    "label": "condition",
    "start": "onset",
    "drop": ["trial"],
}


def test_columns_of_a_lab(lab, tmp_path):
    found = TaskSet.from_frame(lab, **MAPPING)
    assert [task.name for task in found] == ["anna/1", "anna/2", "ben/1", "ben/2"]
    assert [task.group for task in found] == ["anna", "anna", "ben", "ben"]
    assert found.feature_names == ("F3_theta", "F4_theta", "C3_theta")
    np.testing.assert_array_equal(found[1].X, lab.iloc[12:24, 5:])
    np.testing.assert_array_equal(found[1].start, np.arange(12) * 2.5)
    lab.to_csv(tmp_path / "lab.csv", index=False)
    lab.to_parquet(tmp_path / "lab.parquet")
    for name in ("lab.csv", "lab.parquet"):
        assert_same(read_tasks(tmp_path / name, **MAPPING), found)
    for make in (pl.from_pandas, pa.Table.from_pandas):
        assert_same(TaskSet.from_frame(make(lab), **MAPPING), found)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"columns": "F*"}, ("F3_theta", "F4_theta")),
        ({"columns": ["C3_theta", "F4*"]}, ("F4_theta", "C3_theta")),
        ({"drop": ["t*", "?3_theta"]}, ("F4_theta",)),
    ],
)
def test_features_by_name_or_pattern(lab, given, kept):
    assert TaskSet.from_frame(lab, **MAPPING | given).feature_names == kept


@pytest.mark.parametrize(
    ("given", "error", "word"),
    [
        ({"label": "class"}, ValueError, "--label NAME"),
        ({"task": ["subject", "run"]}, ValueError, "--task NAME"),
        ({"start": "time"}, ValueError, "'time'"),
        ({"drop": ["Trial"]}, ValueError, "--drop"),
        ({"columns": "G*"}, ValueError, "--columns"),
        ({"columns": "trial"}, ValueError, "--columns"),
        ({"drop": ["trial", "*theta"]}, ValueError, "no feature"),
        ({"label": "Condition "}, ValueError, "'condition'"),
        ({"task": "session"}, ValueError, "--task subject,session"),
        ({"missing": "zero"}, ValueError, "'drop', 'error'"),
        ({"group": None}, TypeError, "group"),
        ({"task": 0.5}, TypeError, "task"),
        ({"drop": None}, TypeError, "drop"),
        ({"columns": [None]}, TypeError, "columns"),
        ({"columns": [True]}, TypeError, "columns"),
    ],
)
def test_columns_that_are_not_there(lab, given, error, word):
    with pytest.raises(error, match=word):
        TaskSet.from_frame(lab, **MAPPING | given)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda lab: lab.assign(task=1.0), "'task'"),
        (lambda lab: lab.assign(note="fine"), "'fine' is not a number"),
        (lambda lab: lab.assign(wave=1j), "real"),
        (lambda lab: lab.assign(many=[[1]] * len(lab)), "'many'"),
        (lambda lab: lab.set_index("subject"), "'subject'"),
        (lambda lab: lab.assign(subject=lab["subject"].where(lab.index != 7)), "'subject/session'"),
        (lambda lab: pd.concat([lab, lab[["trial"]]], axis=1), "twice"),
        (lambda lab: lab.iloc[:0], "no rows"),
    ],
)
def test_tables_that_are_refused(lab, change, word):
    with pytest.raises(ValueError, match=word):
        TaskSet.from_frame(change(lab), **MAPPING)


@pytest.mark.parametrize("frame", [[[1, 2]], {"task": ["a"]}, None, np.zeros((2, 2))])
def test_no_table_at_all(frame):
    with pytest.raises(TypeError, match="pandas, polars or arrow"):
        TaskSet.from_frame(frame)


def test_columns_may_be_called_by_numbers(people):
    frame = people[:3].to_frame()
    frame.columns = ["task", "label", "start", *range(9)]
    assert TaskSet.from_frame(frame, columns=[0, 1]).feature_names == ("0", "1")
    assert TaskSet.from_frame(frame, drop=[0, np.int64(3)]).feature_names == tuple("1245678")
    frame.columns = range(12)
    found = TaskSet.from_frame(frame, task=0, label=1, start=2, columns=5)
    assert (len(found), found.feature_names) == (3, ("5",))


# -- arrays ----------------------------------------------------------------------------------------


def test_arrays_as_scikit_learn_takes_them():
    rng = np.random.default_rng(1)
    X, y, groups = rng.normal(size=(12, 3)), np.tile([0, 1], 6), np.repeat([7, 3], 6)
    found = TaskSet.from_arrays(X, y, groups=groups)
    assert [task.name for task in found] == ["7", "3"]
    assert found.feature_names == ("x0", "x1", "x2")
    np.testing.assert_array_equal(found[1].X, X[6:])
    np.testing.assert_array_equal(found[1].y, y[6:])
    frame = pd.DataFrame(X, columns=list("abc"))
    assert TaskSet.from_arrays(frame, y, groups).feature_names == ("a", "b", "c")
    names = ["p", "q", "r"]
    assert TaskSet.from_arrays(X, y, groups, feature_names=names).feature_names == tuple(names)


def test_columns_of_arrays_can_be_left_out_or_kept(people):
    frame = people[:6].to_frame()
    X = np.column_stack([frame["Fz_theta"], frame.groupby("task").cumcount()])
    people = frame["label"], frame["task"]
    with pytest.raises(ValueError, match="'x1'"):
        TaskSet.from_arrays(X, *people)
    assert TaskSet.from_arrays(X, *people, drop="x1").feature_names == ("x0",)
    with pytest.warns(TableWarning, match="'x1'"):
        assert len(TaskSet.from_arrays(X, *people, columns=["x0", "x1"])) == 6


@pytest.mark.parametrize(
    ("X", "y", "groups", "word"),
    [
        (np.zeros(4), [0, 1, 0, 1], [1, 1, 2, 2], "shape"),
        (np.zeros((4, 1)), [0, 1], [1, 1, 2, 2], "y must have one entry"),
        (np.zeros((4, 1)), [0, 1, 0, 1], [1], "groups must have one entry"),
        (np.zeros((4, 1)), [0, 1, 0, 1], None, "groups must have one entry"),
    ],
)
def test_arrays_that_do_not_belong_together(X, y, groups, word):
    with pytest.raises(ValueError, match=word):
        TaskSet.from_arrays(X, y, groups)
    with pytest.raises(ValueError, match=r"[Ss]hape"):
        TaskSet.from_arrays(np.zeros((4, 1)), y, groups, feature_names=["a", "b"])


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("task,label,a\np,0,1\np,1,high\n", "row 3, column 'a': 'high'"),
        ("task,label,a\np,0,1\np,1,inf\n", "row 3, column 'a'.*infinite"),
        ("task,label,a\np,0,1\n,1,2\n", "row 3, column 'task'"),
        ("task,label,a\np,,1\np,1,2\n", "row 2, column 'label'"),
        ("task,label,start,a\np,0,soon,1\np,1,2,2\n", "row 2, column 'start': 'soon'"),
        ("task,label,group,a\np,0,g,1\np,1,h,2\n", "row 3, column 'group'.*'g'.*'h'"),
        ("task,a\np,0\n", "'label'"),
        ("task,label\np,0\n", "no feature"),
        ("task,label,a,a\np,0,1,2\n", "'a' twice"),
        ("task,label,a\n", "no rows"),
        ("", "cannot be read as a table"),
        ("task,label,x\na,0,1.0,\na,1,2.0,\n", "more fields"),
        ("task,label,x,\na,0,1.5,\na,1,2.0,\n", "'Unnamed: 3'.*empty"),
        ('task,label,x\na,0,"0,5"\na,1,"0,7"\n', "'0,5'"),
        ("task;label;x\na;0;1\n", "commas"),
        ("task;label;x\na;0;1,5\n", "commas"),
        ("task,label,x y\na,0,b\na,1,c\n", "--drop 'x y'"),
    ],
)
def test_refusals_name_file_row_and_column(tmp_path, text, word):
    path = tmp_path / "tasks.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"tasks.csv.*{word}"):
        read_tasks(path)


def test_files_of_other_kinds_are_refused(tasks, tmp_path):
    with pytest.raises(ValueError, match=r"\.csv or \.parquet"):
        read_tasks("tasks.pkl")
    with pytest.raises(ValueError, match=r"\.csv or \.parquet"):
        tasks.write(tmp_path / "tasks.xlsx")
    (tmp_path / "no.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(ValueError, match=r"no\.parquet cannot be read"):
        read_tasks(tmp_path / "no.parquet")
    (tmp_path / "latin.csv").write_bytes("task,label,é\na,0,1\n".encode("latin-1"))
    with pytest.raises(ValueError, match="utf-8"):
        read_tasks(tmp_path / "latin.csv")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_standard_input(lab, suffix, monkeypatch):
    content = io.BytesIO()
    lab.to_csv(content, index=False) if suffix == "csv" else lab.to_parquet(content)
    content.seek(0)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    assert_same(read_tasks("-", **MAPPING), TaskSet.from_frame(lab, **MAPPING))


def test_a_pipe_has_no_name_that_says_what_it_holds(lab, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text(lab.to_csv(index=False)))
    writer.start()
    found = read_tasks(path, **MAPPING)
    writer.join()
    assert_same(found, TaskSet.from_frame(lab, **MAPPING))


def test_commands_read_standard_input_and_the_columns_of_a_lab(lab):
    command = ["tasks", "show", "-", "--task", "subject,session", "--group", "subject"]
    command += ["--label", "condition", "--start", "onset", "--columns", "F*,C3_theta"]
    found = CliRunner().invoke(main, command, input=lab.to_csv(index=False))
    assert not found.exit_code, found.output
    assert "anna/2" in found.stdout
    assert "F3_theta, F4_theta, C3_theta" in found.stdout


# -- names of classes ------------------------------------------------------------------------------


def test_classes_have_names_that_travel_in_tables(people, tmp_path):
    mine = people
    assert mine.class_names == mine[2:4].class_names == {0: "rest", 1: "arithmetic"}
    mine[:2].write(tmp_path / "t.parquet")
    again = read_tasks(tmp_path / "t.parquet")
    assert again.class_names == mine.class_names
    assert_same(again, mine[:2])
    assert TaskSet.from_frame(mine.to_frame()).class_names == mine.class_names
    assert TaskSet(mine).class_names == {}
    with pytest.raises(TypeError):
        mine.class_names[0] = "sleep"


def test_names_travel_in_priors_and_models(tmp_path):
    mine = load_mental_math()
    prior = TaskPrior.from_tasks(mine[1:13], rehearse=False)
    assert prior.class_names == ("rest", "arithmetic")
    assert "'rest' (0) and 'arithmetic' (1)" in prior.card()
    prior.save(tmp_path / "prior.npz")
    assert TaskPrior.load(tmp_path / "prior.npz").class_names == ("rest", "arithmetic")
    swapped = TaskSet(mine[13:20], {0: "arithmetic", 1: "rest"})
    other = TaskPrior.from_tasks(swapped, feature_scale=prior.feature_scale, rehearse=False)
    with pytest.raises(PriorMismatchError, match="class_names"):
        prior + other
    few = np.r_[0:3, 60:63]
    rule = PosteriorBlendClassifier(prior).fit(mine[0].X[few], mine[0].y[few])
    save_model(rule, tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").about.class_names == ("rest", "arithmetic")

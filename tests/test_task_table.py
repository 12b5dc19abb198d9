"""Tables of tasks: there and back, and each refusal by file, row and column."""

import sys

import numpy as np
import pandas as pd
import pytest

from crossfade import Task, TaskPrior, TaskSet, read_tasks
from crossfade.exceptions import DroppedWindowsWarning


@pytest.fixture
def tasks(make_tasks):
    made = make_tasks(3, labels=("rest", "math"), feature_names=list("abcd"))
    return TaskSet(
        Task(task.X, task.y, task.name, f"g{place}", task.feature_names, np.arange(20) * 2.5)
        for place, task in enumerate(made)
    )


def equal(one, other):
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine.X, theirs.X)
        np.testing.assert_array_equal(mine.y, theirs.y)
        assert (mine.name, mine.group, mine.feature_names) == (
            theirs.name,
            theirs.group,
            theirs.feature_names,
        )
        np.testing.assert_array_equal(mine.start, theirs.start)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "CSV"])
def test_there_and_back(tasks, tmp_path, suffix):
    path = tmp_path / f"tasks.{suffix}"
    tasks.write(path)
    equal(read_tasks(path), tasks)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_frames_there_and_back(tasks):
    frame = tasks.to_frame()
    assert list(frame.columns) == ["task", "label", "group", "start", *"abcd"]
    equal(TaskSet.from_frame(frame), tasks)


@pytest.mark.parametrize("labels", [(0, 1), (False, True), (-1, 1), ("a", "b")])
def test_labels_keep_their_kind(make_tasks, tmp_path, labels):
    TaskSet(make_tasks(2, labels=labels)).write(tmp_path / "tasks.csv")
    again = read_tasks(tmp_path / "tasks.csv")
    assert TaskPrior.from_tasks(again).classes == labels


def test_tasks_without_names_groups_or_times_get_names():
    frame = TaskSet([Task([[1.0, 2.0], [3.0, 4.0]], [0, 1])]).to_frame()
    assert list(frame.columns) == ["task", "label", "x0", "x1"]
    assert set(frame["task"]) == {"task 1"}


def test_rows_of_a_task_need_not_stand_together(tasks):
    mixed = tasks.to_frame().sort_values("start", kind="stable")
    again = TaskSet.from_frame(mixed)
    assert [task.name for task in again] == [task.name for task in tasks]
    np.testing.assert_array_equal(again[1].X, tasks[1].X)


def test_names_that_look_like_numbers_stay_text(tmp_path):
    path = tmp_path / "tasks.csv"
    path.write_text("task,label,group,a\n007,0,01,1.5\n007,1,01,2.5\n")
    [task] = read_tasks(path)
    assert (task.name, task.group) == ("007", "01")


def test_missing_features_are_dropped_and_counted(tmp_path):
    path = tmp_path / "tasks.csv"
    path.write_text("task,label,a,b\np,0,1,2\np,1,,2\np,1,3,4\np,0,,\n")
    with pytest.warns(DroppedWindowsWarning, match=r"2 of 4 rows were dropped.*a \(2\), b \(1\)"):
        [task] = read_tasks(path)
    np.testing.assert_array_equal(task.X, [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(ValueError, match=r"tasks.csv: features are missing in 2 of 4 rows"):
        read_tasks(path, missing="error")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,label,a\np,0,1\np,1,high\n", r"row 3, column 'a': 'high' is not a number"),
        ("task,label,a\np,0,1\np,1,inf\n", r"row 3, column 'a': .*inf.* is infinite"),
        ("task,label,a\np,0,1\n,1,2\n", r"row 3, column 'task' is empty"),
        ("task,label,a\np,,1\np,1,2\n", r"row 2, column 'label' is empty"),
        ("task,label,start,a\np,0,soon,1\np,1,2,2\n", r"row 2, column 'start': 'soon' is not"),
        (
            "task,label,group,a\np,0,g,1\np,1,h,2\n",
            r"row 3, column 'group': task 'p' is in 'g' before and in 'h' here",
        ),
        ("task,a\np,0\n", r"has no column 'label'; its columns are \['task', 'a'\]"),
        ("task,label\np,0\n", r"has no feature"),
        ("task,label,a,a\np,0,1,2\n", r"column 'a' stands there twice"),
        ("task,label,a\n", r"has no rows"),
        ("", r"cannot be read as a table"),
        ("task,label,a\np,0,1,2,3\nq\n,,,,,,\n", r"cannot be read as a table|is not|is empty"),
    ],
)
def test_refusals_name_file_row_and_column(tmp_path, text, message):
    path = tmp_path / "tasks.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as refusal:
        read_tasks(path)
    assert "tasks.csv" in str(refusal.value)


def test_a_task_without_a_whole_row_is_dropped_and_named():
    frame = pd.DataFrame({"task": ["p", "p", "q"], "label": [0, 1, 0], "a": [1.0, 2.0, np.nan]})
    with pytest.warns(
        DroppedWindowsWarning, match=r"1 of 3 rows .*a \(1\)\. Nothing is left of 'q'"
    ):
        assert [task.name for task in TaskSet.from_frame(frame)] == ["p"]
    frame["a"] = np.nan
    with pytest.raises(ValueError, match="features are missing in every row"):
        TaskSet.from_frame(frame)


@pytest.mark.parametrize("name", ["NA", "None", "null", "nan"])
def test_text_that_looks_missing_is_text(name, tmp_path):
    task = Task([[1.0], [2.0]], [name, "x"], name=name, group=name, feature_names=["a"])
    for ending in ("csv", "parquet"):
        path = tmp_path / f"tasks.{ending}"
        TaskSet([task]).write(path)
        [read] = read_tasks(path)
        assert (read.name, read.group, read.y.tolist()) == (name, name, [name, "x"])


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


def test_files_of_other_kinds_are_refused(tasks, tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.csv or \.parquet; got 'tasks\.pkl'"):
        read_tasks("tasks.pkl")
    with pytest.raises(ValueError, match=r"ends in \.csv or \.parquet"):
        tasks.write(tmp_path / "tasks.xlsx")
    (tmp_path / "no.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(ValueError, match=r"no\.parquet cannot be read as a table"):
        read_tasks(tmp_path / "no.parquet")


def test_without_pyarrow_parquet_says_what_to_install(tasks, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"Install crossfade\[tables\]"):
        tasks.write(tmp_path / "tasks.parquet")


def test_what_cannot_be_a_table_is_refused(make_tasks):
    one, two = make_tasks(2)
    with pytest.raises(ValueError, match="different names"):
        TaskSet([one, Task(two.X, two.y, name=one.name)]).to_frame()
    with pytest.raises(ValueError, match="must not be called 'label'"):
        TaskSet([Task([[1.0], [2.0]], [0, 1], feature_names=["label"])]).to_frame()
    with pytest.raises(ValueError, match="no task"):
        TaskSet([]).to_frame()
    with pytest.raises(ValueError, match="one start per row"):
        Task([[1.0], [2.0]], [0, 1], start=[0.0])
    with pytest.raises(ValueError, match="missing must be one of 'drop', 'error'"):
        TaskSet.from_frame(TaskSet([one]).to_frame(), missing="zero")

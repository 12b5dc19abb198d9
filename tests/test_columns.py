"""A lab's own table: its names for columns, its kinds of frames, arrays, pipes and class names."""

import io
import os
import sys
import threading
from dataclasses import replace

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
from crossfade.exceptions import PriorMismatchError, TableWarning


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


def assert_same(mine, theirs):
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs, strict=True):
        assert (one.name, one.group, one.feature_names) == (
            other.name,
            other.group,
            other.feature_names,
        )
        np.testing.assert_array_equal(one.X, other.X)
        np.testing.assert_array_equal(one.y, other.y)
        np.testing.assert_array_equal(one.start, other.start)


def test_columns_of_a_lab(lab, tmp_path):
    tasks = TaskSet.from_frame(lab, **MAPPING)
    assert [task.name for task in tasks] == ["anna/1", "anna/2", "ben/1", "ben/2"]
    assert [task.group for task in tasks] == ["anna", "anna", "ben", "ben"]
    assert tasks.feature_names == ("F3_theta", "F4_theta", "C3_theta")
    np.testing.assert_array_equal(tasks[1].X, lab.iloc[12:24, 5:])
    np.testing.assert_array_equal(tasks[1].y, lab["condition"][12:24])
    np.testing.assert_array_equal(tasks[1].start, np.arange(12) * 2.5)
    for name in ("lab.csv", "lab.parquet"):
        path = tmp_path / name
        lab.to_csv(path, index=False) if name.endswith("csv") else lab.to_parquet(path)
        assert_same(read_tasks(path, **MAPPING), tasks)


@pytest.mark.parametrize(
    ("columns", "kept"),
    [
        ("F*", ("F3_theta", "F4_theta")),
        (["C3_theta", "F4*"], ("F4_theta", "C3_theta")),
        (["F?_theta", "*_theta"], ("F3_theta", "F4_theta", "C3_theta")),
    ],
)
def test_features_by_name_or_pattern(lab, columns, kept):
    assert TaskSet.from_frame(lab, **MAPPING | {"columns": columns}).feature_names == kept


def test_dropped_columns_by_pattern(lab):
    tasks = TaskSet.from_frame(lab, **MAPPING | {"drop": ["t*", "?3_theta"]})
    assert tasks.feature_names == ("F4_theta",)


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"])
def test_other_frames(lab, make):
    assert_same(TaskSet.from_frame(make(lab), **MAPPING), TaskSet.from_frame(lab, **MAPPING))


def test_missing_values_of_other_frames(lab):
    lab.loc[3, "F3_theta"] = None
    with pytest.warns(UserWarning, match="1 of 48 rows were dropped"):
        wanted = TaskSet.from_frame(lab, **MAPPING)
    for make in (pl.from_pandas, pa.Table.from_pandas):
        with pytest.warns(UserWarning, match="1 of 48 rows were dropped"):
            assert_same(TaskSet.from_frame(make(lab), **MAPPING), wanted)
    lab["condition"] = lab["condition"].where(lab.index != 5)
    for make in (pl.from_pandas, pa.Table.from_pandas):
        with pytest.raises(ValueError, match="row 5, column 'condition' is empty"):
            TaskSet.from_frame(make(lab), **MAPPING)


@pytest.mark.parametrize("frame", [[[1, 2]], {"task": ["a"]}, None, np.zeros((2, 2))])
def test_no_table_at_all(frame):
    with pytest.raises(TypeError, match="must be a pandas, polars or arrow table; got"):
        TaskSet.from_frame(frame)


def test_columns_with_numbers_for_names(lab):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(4, 2)), columns=[1, 2])
    frame.insert(0, "label", [0, 1, 0, 1])
    frame.insert(0, "task", "a")
    assert TaskSet.from_frame(frame).feature_names == ("1", "2")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"label": "class"}, r"no column 'class'; .* class of each window with --label NAME"),
        ({"task": ["subject", "run"]}, r"no column 'run'; .*with --task NAME \(task='NAME'\)"),
        ({"start": "time"}, "no column 'time'"),
        ({"drop": ["Trial"]}, "no column 'Trial', which --drop names; its columns are"),
        ({"columns": "G*"}, r"no column 'G\*', which --columns names"),
        ({"columns": "trial"}, "no column 'trial', which --columns names"),
        ({"drop": ["trial", "*theta"]}, "has no feature"),
        ({"label": "Condition "}, "Do you mean 'condition'"),
        ({"task": "session"}, r"name both columns: --task subject,session \(task=\['subject', 's"),
    ],
)
def test_columns_that_are_not_there(lab, given, message):
    with pytest.raises(ValueError, match=message):
        TaskSet.from_frame(lab, **MAPPING | given)


def test_a_column_of_another_meaning_is_no_feature(lab):
    lab["task"] = 1.0
    with pytest.raises(ValueError, match=r"column 'task' would be a feature.*--drop task"):
        TaskSet.from_frame(lab, **MAPPING)
    assert len(TaskSet.from_frame(lab, **MAPPING | {"drop": ["trial", "task"]})) == 4


def test_messages_name_the_columns_of_the_lab(lab, tmp_path):
    lab["note"] = "fine"
    with pytest.raises(ValueError, match=r"column 'note': 'fine' is not a number. .*--drop note"):
        TaskSet.from_frame(lab, **MAPPING)
    lab = lab.drop(columns="note")
    lab.loc[7, "subject"] = None
    with pytest.raises(ValueError, match="row 7, column 'subject/session' is empty"):
        TaskSet.from_frame(lab, **MAPPING)


def test_columns_in_the_index(lab):
    with pytest.raises(ValueError, match=r"'subject' in its index .* frame.reset_index"):
        TaskSet.from_frame(lab.set_index("subject"), **MAPPING)


def test_a_table_with_semicolons(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("task;label;x\na;0;1\n")
    with pytest.raises(ValueError, match=r"separated by something other than commas"):
        read_tasks(path)


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_a_column_twice(lab, kind):
    table = pd.concat([lab, lab[["trial"]]], axis=1)
    if kind == "arrow":
        columns = [pa.array(table.iloc[:, place]) for place in range(table.shape[1])]
        table = pa.Table.from_arrays(columns, list(table.columns))
    with pytest.raises(ValueError, match="the column 'trial' twice"):
        TaskSet.from_frame(table, **MAPPING)


# -- arrays ----------------------------------------------------------------------------------------


def test_arrays_as_scikit_learn_takes_them():
    rng = np.random.default_rng(1)
    X, y, groups = rng.normal(size=(12, 3)), np.tile([0, 1], 6), np.repeat([7, 3], 6)
    tasks = TaskSet.from_arrays(X, y, groups=groups)
    assert [task.name for task in tasks] == ["7", "3"]
    assert tasks.feature_names == ("x0", "x1", "x2")
    np.testing.assert_array_equal(tasks[1].X, X[6:])
    np.testing.assert_array_equal(tasks[1].y, y[6:])
    frame = pd.DataFrame(X, columns=list("abc"))
    assert TaskSet.from_arrays(frame, y, groups).feature_names == ("a", "b", "c")
    names = ["p", "q", "r"]
    assert TaskSet.from_arrays(X, y, groups, feature_names=names).feature_names == tuple(names)


def test_masked_is_missing():
    rng = np.random.default_rng(1)
    X = np.ma.masked_array(rng.normal(size=(12, 2)), mask=False)
    X[4, 1] = 1e6
    X.mask[4, 1] = True
    y, groups = np.tile([0, 1], 6), np.repeat(["a", "b"], 6)
    with pytest.warns(UserWarning, match=r"1 of 12 rows were dropped.* x1 \(1\)"):
        tasks = TaskSet.from_arrays(X, y, groups)
    assert len(tasks[0].y) == 5
    assert np.abs(tasks[0].X).max() < 10.0
    with pytest.raises(ValueError, match="features are missing in 1 of 12 rows"):
        TaskSet.from_arrays(X, y, groups, missing="error")
    labels = np.ma.masked_array(y, mask=np.arange(12) == 2)
    with pytest.raises(ValueError, match="row 2, column 'label' is empty"):
        TaskSet.from_arrays(X.data, labels, groups)


@pytest.mark.parametrize(
    ("X", "y", "groups", "message"),
    [
        (np.zeros(4), [0, 1, 0, 1], [1, 1, 2, 2], r"X must be of shape .* got .* \(4,\)"),
        (np.zeros((4, 1)), [0, 1], [1, 1, 2, 2], r"y must have one entry for each of 4 rows"),
        (np.zeros((4, 1)), [0, 1, 0, 1], [1], "groups must have one entry for each of 4 rows"),
        (np.zeros((4, 1)), [0, 1, 0, 1], None, "groups must have one entry for each of 4 rows"),
    ],
)
def test_arrays_that_do_not_belong_together(X, y, groups, message):
    with pytest.raises(ValueError, match=message):
        TaskSet.from_arrays(X, y, groups)


def test_feature_names_of_another_number():
    with pytest.raises(ValueError, match="X has 1 features but 2 feature names"):
        TaskSet.from_arrays([[1.0], [2.0]], [0, 1], [0, 0], feature_names=["a", "b"])


# -- pipes -----------------------------------------------------------------------------------------


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
    tasks = read_tasks(path, **MAPPING)
    writer.join()
    assert_same(tasks, TaskSet.from_frame(lab, **MAPPING))


def test_commands_read_standard_input_and_the_columns_of_a_lab(lab, tmp_path):
    command = ["tasks", "show", "-", "--task", "subject,session", "--group", "subject"]
    command += ["--label", "condition", "--start", "onset", "--columns", "F*,C3_theta"]
    found = CliRunner().invoke(main, command, input=lab.to_csv(index=False))
    assert not found.exit_code, found.output
    assert "anna/2" in found.stdout
    assert "windows of math" in found.stdout
    assert "3: F3_theta, F4_theta, C3_theta" in found.stdout


# -- names of classes ------------------------------------------------------------------------------


def test_classes_have_names_that_travel_in_files(tmp_path):
    tasks = load_mental_math()
    assert tasks.class_names == {0: "rest", 1: "arithmetic"}
    assert tasks[2:4].class_names == tasks.class_names
    assert set(tasks[0].y) == {0, 1}
    tasks[:2].write(tmp_path / "t.parquet")
    again = read_tasks(tmp_path / "t.parquet")
    assert again.class_names == tasks.class_names
    assert_same(again, tasks[:2])
    assert TaskSet.from_frame(tasks.to_frame()).class_names == tasks.class_names
    assert TaskSet(tasks).class_names == {}
    with pytest.raises(TypeError):
        tasks.class_names[0] = "sleep"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({0: 1}, "must be text for each label"),
        ({0: " "}, "must be text for each label"),
        ({0: "rest", 1: "rest"}, "must differ from each other"),
    ],
)
def test_names_that_are_none(names, message):
    with pytest.raises(ValueError, match=message):
        TaskSet([Task([[0.0], [1.0]], [0, 1])], names)


def test_names_travel_in_priors_and_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tasks = load_mental_math()
    prior = TaskPrior.from_tasks(tasks[1:13], replay=False)
    assert prior.classes == (0, 1)
    assert prior.class_names == ("rest", "arithmetic")
    assert "'rest' (0) and 'arithmetic' (1)" in prior.summary()
    assert "'rest' (0) and 'arithmetic' (1)" in prior.card()
    prior.save("prior.npz")
    assert TaskPrior.load("prior.npz") == prior
    assert TaskPrior.load("prior.npz").class_names == ("rest", "arithmetic")
    other = TaskPrior.from_tasks(tasks[13:20], feature_scale=prior.feature_scale, replay=False)
    with pytest.raises(PriorMismatchError, match="different class names cannot be merged"):
        prior + replace(other, class_names=("arithmetic", "rest"))
    bare = replace(other, class_names=None)
    assert (bare + prior.without("replay")).class_names == ("rest", "arithmetic")
    assert prior.reversed().class_names is None
    few = np.r_[0:3, 60:63]
    rule = PosteriorBlendClassifier(prior).fit(tasks[0].X[few], tasks[0].y[few])
    save_model(rule, "model.json")
    assert load_model("model.json").class_names_ == ("rest", "arithmetic")
    assert load_model("model.json").classes_.tolist() == [0, 1]
    tasks[:1].write("few.parquet")
    words = ["calibrate", "--prior", "prior.npz", "few.parquet", "-o", "m.json"]
    said = CliRunner().invoke(main, words)
    assert not said.exit_code, said.output
    assert "of rest, " in said.output


@pytest.mark.parametrize("names", [("a",), ("a", 1), ("a", "a"), ("a", " ")])
def test_names_of_a_prior_that_are_none(names):
    prior = TaskPrior.from_projections(np.eye(2), classes=(0, 1))
    with pytest.raises(ValueError, match="class_names must"):
        replace(prior, class_names=names)


# -- tables that were saved badly ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"task,label,x\na,0,1.0,\na,1,2.0,\n", "its rows have more fields than its header; give"),
        (b"task,label,x\n1,a,0,1.0\n2,a,1,2.0\n", "its rows have more fields than its header"),
        ("task,label,é\na,0,1\n".encode("latin-1"), "is not UTF-8 text; save it as CSV in UTF-8"),
        ("task,label,x\na,0,1\n".encode("utf-16"), "is not UTF-8 text"),
        (b'task,label,x\na,0,"0,5"\na,1,"0,7"\n', "'0,5' is not a number. It has a decimal comma"),
        (b"task,label,x y\na,0,b\na,1,c\n", r"--drop 'x y' \(drop=\['x y'\]\)"),
        (b"task,label,x\na,,1\na,1,2\n", "row 2, column 'label' is empty. Fill it, or remove"),
        (b"task,label,x,x\na,0,1,2\n", "column 'x' stands there twice; rename or remove one"),
    ],
)
def test_tables_that_were_saved_badly(content, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_tasks(path)


def test_a_comma_at_the_end_of_every_line_is_an_empty_column(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("task,label,x,\na,0,1.5,\na,1,2.0,\n")
    with pytest.raises(ValueError, match=r"'Unnamed: 3' is empty .*--drop 'Unnamed: 3'"):
        read_tasks(path)
    assert read_tasks(path, drop="Unnamed: 3").feature_names == ("x",)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"group": None}, "group must be the name of a column; got None"),
        ({"task": 0.5}, r"task must be the name of a column, or a list of them; got 0\.5"),
        ({"drop": None}, "drop must be the name of a column, or a list of them; got None"),
        ({"columns": [None]}, r"columns must be the name of a column, or a .* got \[None\]"),
    ],
)
def test_names_of_columns_are_text(lab, given, message):
    with pytest.raises(TypeError, match=message):
        TaskSet.from_frame(lab, **MAPPING | given)


def test_warnings_point_to_the_caller():
    X = np.ma.masked_array(np.random.default_rng(0).normal(size=(6, 1)), mask=False)
    X.mask[0] = True
    with pytest.warns(UserWarning, match="were dropped") as caught:
        TaskSet.from_arrays(X, [0, 1] * 3, [0] * 6)
    assert caught[0].filename == __file__


# -- names that are numbers, arrays, an index in a file --------------------------------------------


def test_columns_may_be_called_by_numbers():
    frame = load_mental_math()[:3].to_frame()
    frame.columns = ["task", "label", "start", *range(9)]
    assert TaskSet.from_frame(frame, columns=[0, 1]).feature_names == ("0", "1")
    assert TaskSet.from_frame(frame, drop=[0, np.int64(3)]).feature_names == tuple("1245678")
    frame.columns = range(12)
    tasks = TaskSet.from_frame(frame, task=0, label=1, start=2, columns=5)
    assert (len(tasks), tasks.feature_names) == (3, ("5",))
    with pytest.raises(TypeError, match="columns must be the name of a column"):
        TaskSet.from_frame(frame, task=0, label=1, columns=[True])


def test_columns_of_arrays_can_be_left_out_or_kept():
    frame = load_mental_math()[:6].to_frame()
    X = np.column_stack([frame["Fz_theta"], frame.groupby("task").cumcount()])
    people = frame["label"], frame["task"]
    with pytest.raises(ValueError, match=r"Column 'x1' counts .* \(drop=\['x1'\]\)"):
        TaskSet.from_arrays(X, *people)
    assert TaskSet.from_arrays(X, *people, drop="x1").feature_names == ("x0",)
    with pytest.warns(TableWarning, match="'x1' counts"):
        assert len(TaskSet.from_arrays(X, *people, columns=["x0", "x1"])) == 6


@pytest.mark.parametrize("index", ["task", ["task", "label"]])
def test_a_named_index_in_a_file_is_a_column(index, tmp_path):
    pytest.importorskip("pyarrow")
    tasks = load_mental_math()[:3]
    tasks.to_frame().set_index(index).to_parquet(tmp_path / "t.parquet")
    found = read_tasks(tmp_path / "t.parquet")
    assert [task.name for task in found] == [task.name for task in tasks]
    assert found.feature_names == tasks.feature_names
    assert found.class_names == tasks.class_names


def test_dates_as_text_are_refused_once_though_they_are_named():
    frame = load_mental_math()[:3].to_frame().assign(day="2024-01-05")
    with pytest.raises(ValueError, match=r"'day' holds dates .* \(drop=\['day'\]\)\.$"):
        TaskSet.from_frame(frame, columns=["day", "Fz_theta"])

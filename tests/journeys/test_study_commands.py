"""``crossfade study`` and ``demo``, as a newcomer types them."""

import json
import re
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from crossfade import Task, TaskSet
from crossfade.cli import main
from crossfade.study._methods import METHODS

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def no_figures(monkeypatch):
    """Reports without figures, which take most of the time."""
    found = {"matplotlib": None}
    monkeypatch.setattr(
        "crossfade.report._write.find_spec", lambda name: found.get(name, find_spec(name))
    )


@pytest.fixture
def table(tmp_path, make_tasks):
    TaskSet(make_tasks(6)).write(tmp_path / "tasks.csv")
    return tmp_path / "tasks.csv"


WORDS = ["--splits", "5", "--budgets", "2,4", "--methods", "target,posterior,lda", "--jobs", "1"]


def test_a_study_writes_its_report_and_a_second_one_does_nothing(run, table, tmp_path):
    first = run("study", "tasks.csv", *WORDS, "-o", "out")
    assert first.exit_code == 0, first.output
    for text in ("Mean balanced accuracy", "Posterior blend", "2 each", "Report: out/report.html"):
        assert text in first.stdout
    for name in ("report.html", "rows.parquet", "summary.csv", "summary.md", "study.json"):
        assert (tmp_path / "out" / name).exists()
    rows = pd.read_parquet(tmp_path / "out" / "rows.parquet")
    assert len(rows) == 6 * 3 * 2 * 5
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.*")}
    second = run("study", "tasks.csv", *WORDS, "-o", "out")
    assert second.exit_code == 0, second.output
    assert second.stdout == first.stdout
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.*")}
    assert before == after
    assert {path.name for path in before} >= {"report.html", "rows.parquet", "accuracy.png"}


def test_a_study_says_how_many_windows_a_new_person_needs(run, table, tmp_path, no_figures):
    words = ["--splits", "5", "--jobs", "1", "--methods", "hierarchical,lda", "--reach", "0.6"]
    result = run("study", "tasks.csv", *words, "--share", "0.5", "--budgets", "0,2,4,6+3,0.3")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    [lead] = [line for line in lines if line.startswith("With the hierarchical blend, 50 % of")]
    assert "reach an accuracy of 0.6 " in lead
    assert len(lead.split()) <= 20
    # The statistics follow, one line each.
    assert lines[lines.index(lead) + 1].startswith("- ")
    head = next(line for line in lines if line.startswith("labelled"))
    assert head.split() == ["labelled", "0", "30%", "2", "each", "4", "each", "6+3"]
    needed = pd.read_csv(tmp_path / "study" / "needed.csv").set_index("method")
    assert set(needed["accuracy"]) == {0.6}
    assert set(needed["share"]) == {0.5}
    windows = needed.loc["hierarchical", "windows"]
    assert ("before the first label" if not windows else f" {windows:g} window") in lead
    page = (tmp_path / "study" / "report.html").read_text("utf-8")
    assert "How many windows does a new person need?" in page
    assert "replay was skipped" not in page


def test_budgets_and_methods_of_the_command(run, table, tmp_path, no_figures, monkeypatch):
    result = run("study", "tasks.csv", "--splits", "2", "--jobs", "1", "--no-forecasts")
    assert result.exit_code == 0, result.output
    rows = pd.read_parquet(tmp_path / "study" / "rows.parquet")
    # Ten windows of each class leave none for a budget of 16.
    assert sorted(set(rows["budget"])) == [0, 1, 2, 4, 8]
    assert next(iter(rows["method"])) == "hierarchical"
    assert {"posterior", "lda", "lda-calibrated", "oracle-honest"} <= set(rows["method"])
    record = json.loads((tmp_path / "study" / "study.json").read_text())
    assert not record["forecasts"]
    page = (tmp_path / "study" / "report.html").read_text("utf-8")
    assert "The replay was skipped; these are theory's forecasts." in page
    assert "plays the newcomer" not in page
    cells = cells_of(result.stdout)
    assert cells["lda"][:2] == ["–", "–"]
    assert "lda-calibrated" not in cells
    assert list(cells)[-2:] == ["oracle", "oracle-honest"]


def test_three_classes_have_methods_of_their_own(run, tmp_path, no_figures):
    rng, y = np.random.default_rng(0), np.repeat([0, 1, 2], 8)
    tasks = [
        Task(rng.standard_normal((24, 3)) + np.eye(3)[y], y, f"p{place}") for place in range(5)
    ]
    TaskSet(tasks).write(tmp_path / "three.csv")
    result = run("study", "three.csv", "--splits", "2", "--jobs", "1")
    assert result.exit_code == 0, result.output
    rows = pd.read_parquet(tmp_path / "study" / "rows.parquet")
    assert {"hierarchical", "lda", "lda-pooled"} <= set(rows["method"])
    assert set(rows["budget"]) - {0.0} == {1.0, 2.0, 4.0}


def cells_of(text):
    """Cells of the table in the terminal by method, whose names people read there."""
    found = {}
    for line in text.splitlines():
        words = line.replace(" †", "").split("  ")[0].strip()
        for name, method in METHODS.items():
            if words == method.label:
                found[name] = line.replace(" †", "").removeprefix(method.label).split()
    return found


def test_means_that_are_not_over_all_splits_have_a_star(run, tmp_path, make_tasks, no_figures):
    """LDA fails with one window of each class: 10 % of p0's, and the budget of 1."""
    tasks = [*make_tasks(1, n_each=(8, 8)), *make_tasks(6, n_each=(20, 20))[1:]]
    TaskSet(tasks).write(tmp_path / "tasks.csv")
    words = ["--methods", "target,lda", "--splits", "3", "--jobs", "1", "--budgets"]
    whole = run("study", "tasks.csv", *words, "0.5", "-o", "whole")
    assert whole.exit_code == 0, whole.output
    assert "*" not in whole.stdout
    assert "6 tasks, 3 splits each." in whole.stdout
    result = run("study", "tasks.csv", *words, "0.1,0.5,1", "-o", "out")
    assert result.exit_code == 0, result.output
    cells = cells_of(result.stdout)
    summary = pd.read_csv(tmp_path / "out" / "summary.csv").query("method == 'lda'")
    mean = summary.set_index("budget")["mean"]
    assert cells["lda"] == [f"{mean[0.1]:.3f}*", f"{mean[0.5]:.3f}", "–"]
    assert all("*" not in cell for cell in cells["target"])
    assert "* Over fewer tasks or splits than the others" in result.stdout
    assert "nan" not in result.stdout


def test_methods_that_see_test_windows_do_not_compete(run, table, no_figures):
    words = ["--methods", "lda,posterior-unlabelled,oracle", "--budgets", "2", "--splits", "1"]
    result = run("study", "tasks.csv", *words, "--jobs", "1")
    assert result.exit_code == 0, result.output
    assert "6 tasks, 1 split each." in result.stdout
    assert (
        "† It sees unlabelled test windows, or knows the answers, so it does not compete."
    ) in result.stdout
    marked = [line for line in result.stdout.splitlines() if " † " in line]
    labels = [METHODS[name].label for name in ("posterior-unlabelled", "oracle")]
    assert [line.partition(" †")[0] for line in marked] == labels


def test_the_methods_can_be_listed(run):
    result = run("study", "--list-methods")
    assert result.exit_code == 0, result.output
    names = {line.split()[0] for line in result.stdout.splitlines() if line.split()}
    assert names >= set(METHODS)
    for method in METHODS.values():
        assert method.label in result.stdout


def test_another_study_in_the_same_folder_is_refused(run, table, no_figures):
    assert run("study", "tasks.csv", *WORDS).exit_code == 0
    result = run("study", "tasks.csv", *WORDS, "--seed", "1")
    assert result.exit_code == 2
    assert "random_state is 0 there and 1 here. Choose another folder" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--methods", "magic"], "There is no method 'magic'"),
        (["--budgets", "few"], "A budget is a number of windows of each class, such as 4"),
        (["--budgets", "24+"], "or 0 for no label; got '24+'"),
        (["--budgets", "4+2+2"], "has numbers for 3 classes, and there are 2"),
        (["--reach", "0"], "0 is not in the range 0.0<x<=1.0"),
        (["--share", "80"], "80.0 is not in the range 0.0<x<=1.0"),
        (["--mix", "2"], "2.0 is not in the range 0.0<=x<=1.0"),
        (["--budgets", "1.5"], "A budget is a proportion"),
        (["--budgets", "40"], "leaves no task a window"),
        (["--dask", "tcp://127.0.0.1:1"], "127.0.0.1:1"),
    ],
)
def test_what_cannot_be_is_said(run, table, monkeypatch, words, message):
    monkeypatch.setattr("crossfade.study._cluster._PATIENCE", 1)
    result = run("study", "tasks.csv", "--splits", "2", "--jobs", "1", *words)
    assert result.exit_code in (1, 2)
    assert message in " ".join(result.stderr.split())


def test_a_folder_that_cannot_be_written_is_named(run, table, tmp_path):
    (tmp_path / "taken").write_text("a file")
    result = run("study", "tasks.csv", "-o", "taken/inside")
    assert result.exit_code == 1
    assert "Cannot write to taken/inside" in result.stderr


def test_what_a_study_leaves_out_is_said(run, table, tmp_path, no_figures):
    frame = pd.read_csv(table)
    frame = frame[~((frame["task"] == "p0") & (frame["label"] == 1))]
    frame.to_csv(table, index=False)
    result = run("study", "tasks.csv", *WORDS)
    assert result.exit_code == 0, result.output
    assert "Note: 1 task is left out of the study" in result.stderr
    assert "5 tasks, 5 splits each." in result.stdout


def test_what_a_study_leaves_out_is_said_when_it_fails(run, table, monkeypatch):
    frame = pd.read_csv(table)
    frame[~((frame["task"] == "p0") & (frame["label"] == 1))].to_csv(table, index=False)
    note = "Note: 1 task is left out of the study, since it has windows of one class only: 'p0'."
    refused = run("study", "tasks.csv", "--splits", "2", "--budgets", "40")
    assert refused.exit_code == 2
    assert note in refused.stderr

    def stop(self, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("crossfade.study.CalibrationStudy.run", stop)
    stopped = run("study", "tasks.csv", *WORDS)
    assert stopped.exit_code == 1
    assert "Stopped." in stopped.stderr
    assert note in stopped.stderr


def test_why_no_task_is_left_is_said(run, table):
    frame = pd.read_csv(table)
    frame[frame["label"] == 1].to_csv(table, index=False)
    result = run("study", "tasks.csv", *WORDS)
    assert result.exit_code == 2
    said = " ".join(result.stderr.split())
    assert "got 0 tasks of 0 groups. 6 tasks are left out of the study, since they have" in said


def test_a_refused_study_leaves_no_folder(run, table, tmp_path):
    words = ["study", "tasks.csv", "--methods", "magic"]
    assert run(*words, "-o", "deep/out").exit_code == 2
    assert not (tmp_path / "deep").exists()
    (tmp_path / "mine").mkdir()
    assert run(*words, "-o", "mine/out").exit_code == 2
    assert not list((tmp_path / "mine").iterdir())


def test_demo_shows_what_the_crowd_is_worth_from_zero_labels_on(run, tmp_path, no_figures):
    result = run("demo", "--splits", "2", "--jobs", "1")
    assert result.exit_code == 0, result.output
    heads, _, *lines = result.stdout.splitlines()[1:8]
    assert heads.split() == ["labelled", "0", "2", "each", "4", "each", "8", "each", "16", "each"]
    without_label = {line.split("  ")[0]: re.split(r"  +", line)[1] for line in lines}
    assert [name for name, mean in without_label.items() if mean == "–"] == [
        "scikit-learn's LDA",
        "Paper's blend",
        "Person alone",
    ]
    assert "0.57" < without_label["Hierarchical blend"] < "0.59"
    assert "36 tasks, 2 splits each." in result.stdout
    assert "50 % of people reach an accuracy of 0.75" in result.stdout
    assert "Report: results/demo/report.html" in result.stdout
    text = (tmp_path / "results" / "demo" / "report.html").read_text("utf-8")
    assert "of rest, 900 of arithmetic" in text


def test_tasks_show_says_whether_the_tasks_agree(run, table):
    said = " ".join(run("tasks", "show", "tasks.csv").stdout.split())
    assert "unrelated tasks would have about 0.41, and equal ones 1. A prior can help" in said
    assert said.endswith("A prior can help a newcomer.")
    frame = pd.read_csv(table)
    other = frame["task"].isin(["p0", "p1", "p2"])
    frame.loc[other, "label"] = 1 - frame.loc[other, "label"]
    frame.to_csv(table, index=False)
    said = " ".join(run("tasks", "show", "tasks.csv").stdout.split())
    assert "agreement No: " in said
    assert said.endswith("A prior cannot help a newcomer.")


def test_a_study_without_jinja_is_refused_before_it_runs(run, table, tmp_path, monkeypatch):
    monkeypatch.setattr("crossfade.report._write.find_spec", lambda name: None)
    result = run("study", "tasks.csv", *WORDS, "-o", "out")
    assert result.exit_code == 2
    assert "The report needs Jinja2. Install crossfade[plots]." in result.stderr
    assert not (tmp_path / "out").exists()

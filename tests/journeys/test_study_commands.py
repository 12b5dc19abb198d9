"""``crossfade study``, ``demo`` and ``tasks``, as a newcomer types them."""

import importlib.util
import json
import re

import pandas as pd
import pytest

from crossfade import TaskSet

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")

WORDS = ["--splits", "5", "--budgets", "2,4", "--methods", "target,posterior,lda", "--jobs", "1"]


@pytest.fixture
def no_figures(monkeypatch):
    """Reports without figures, which take most of the time."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )


@pytest.fixture
def table(tmp_path, make_tasks):
    TaskSet(make_tasks(6)).write(tmp_path / "tasks.csv")
    return tmp_path / "tasks.csv"


def cells_of(text):
    """Cells of the printed table, by name of the method."""
    lines = text.splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("───"))
    rows = []
    for line in lines[first + 1 :]:
        if not re.search(r"  ", line):
            break
        rows.append(re.split(r"  +", line.strip()))
    return {name: cells for name, *cells in rows}


def test_a_study_writes_its_report_and_a_second_one_does_nothing(run, table, tmp_path):
    first = run("study", "tasks.csv", *WORDS, "-o", "out")
    assert first.exit_code == 0, first.output
    for text in ("Mean balanced accuracy", "Posterior blend", "2 each", "Report: out/report.html"):
        assert text in first.stdout
    assert len(pd.read_parquet(tmp_path / "out" / "rows.parquet")) == 6 * 3 * 2 * 5
    summary = pd.read_csv(tmp_path / "out" / "summary.csv").query("method == 'posterior'")
    cells = cells_of(first.stdout)
    assert cells["Posterior blend"] == [f"{mean:.3f}" for mean in summary["mean"]]
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.*")}
    second = run("study", "tasks.csv", *WORDS, "-o", "out")
    assert second.stdout == first.stdout
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.*")}
    assert before == after
    assert {path.name for path in before} >= {"report.html", "study.json", "accuracy.png"}


def test_a_study_says_how_many_windows_a_new_person_needs(run, table, tmp_path, no_figures):
    words = ["--splits", "5", "--jobs", "1", "--methods", "hierarchical,lda", "--reach", "0.6"]
    result = run("study", "tasks.csv", *words, "--share", "0.5", "--budgets", "0,2,4,6+3,0.3")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    [lead] = [line for line in lines if line.startswith("With the hierarchical blend, 50 % of")]
    assert len(lead.split()) <= 20
    assert lines[lines.index(lead) + 1].startswith("- ")
    needed = pd.read_csv(tmp_path / "study" / "needed.csv").set_index("method")
    assert (set(needed["accuracy"]), set(needed["share"])) == ({0.6}, {0.5})
    windows = needed.loc["hierarchical", "windows"]
    assert ("before the first label" if not windows else f" {windows:g} window") in lead


def test_budgets_and_methods_of_the_command(run, table, tmp_path, no_figures):
    result = run("study", "tasks.csv", "--splits", "2", "--jobs", "1", "--no-forecasts")
    assert result.exit_code == 0, result.output
    rows = pd.read_parquet(tmp_path / "study" / "rows.parquet")
    # Ten windows of each class leave none for a budget of 16.
    assert sorted(set(rows["budget"])) == [0, 1, 2, 4, 8]
    assert {"hierarchical", "posterior", "lda", "lda-calibrated"} <= set(rows["method"])
    assert not json.loads((tmp_path / "study" / "study.json").read_text())["forecasts"]
    # Without a label LDA has no answer; its twin with calibration is not listed.
    assert cells_of(result.stdout)["scikit-learn's LDA"][:2] == ["–", "–"]
    assert "calibrated" not in result.stdout
    listed = run("study", "--list-methods").stdout
    assert "lda-calibrated" in listed


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["--methods", "magic"], "magic"),
        (["--budgets", "two"], "two"),
        (["--budgets", "40"], "40"),
        (["--label", "condition"], "condition"),
        (["--drop", "trial"], "trial"),
    ],
)
def test_refusals(run, table, tmp_path, words, word):
    result = run("study", "tasks.csv", "--splits", "2", *words, "-o", "deep/out")
    assert result.exit_code == 1
    assert word in result.stderr
    assert not (tmp_path / "deep").exists()


def test_demo_shows_what_the_crowd_is_worth_from_zero_labels_on(run, tmp_path, no_figures):
    result = run("demo", "--splits", "2", "--jobs", "1")
    assert result.exit_code == 0, result.output
    cells = cells_of(result.stdout)
    assert {name for name, means in cells.items() if means[0] == "–"} == {
        "scikit-learn's LDA",
        "Paper's blend",
        "Person alone",
    }
    assert "0.57" < cells["Hierarchical blend"][0] < "0.59"
    assert "50 % of people reach an accuracy of 0.75" in result.stdout
    text = (tmp_path / "results" / "demo" / "report.html").read_text("utf-8")
    assert "of rest, 900 of arithmetic" in text


def test_tasks_show_says_whether_the_tasks_agree(run, table):
    assert "Yes, a prior can help" in " ".join(run("tasks", "show", "tasks.csv").stdout.split())
    frame = pd.read_csv(table)
    other = frame["task"].isin(["p0", "p1", "p2"])
    frame.loc[other, "label"] = 1 - frame.loc[other, "label"]
    frame.to_csv(table, index=False)
    assert "No, a prior cannot help" in " ".join(run("tasks", "show", "tasks.csv").stdout.split())

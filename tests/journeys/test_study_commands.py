"""``crossfade study``, ``demo`` and ``reproduce``, as a newcomer types them."""

import pandas as pd
import pytest
from click.testing import CliRunner

from crossfade import TaskSet
from crossfade.cli import main

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def table(tmp_path, make_tasks):
    TaskSet(make_tasks(6)).write(tmp_path / "tasks.csv")
    return tmp_path / "tasks.csv"


WORDS = ["--splits", "5", "--budgets", "2,4", "--methods", "target,posterior,lda"]


def test_a_study_writes_its_report_and_a_second_one_does_nothing(run, table, tmp_path):
    first = run("study", "tasks.csv", *WORDS, "-o", "out")
    assert first.exit_code == 0, first.output
    for text in ("Mean balanced accuracy", "posterior", "2 each", "Report: out/report.html"):
        assert text in first.stdout
    for name in ("report.html", "rows.parquet", "summary.csv", "summary.md", "study.json"):
        assert (tmp_path / "out" / name).exists()
    rows = pd.read_parquet(tmp_path / "out" / "rows.parquet")
    assert len(rows) == 6 * 3 * 2 * 5
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "shards").iterdir()}
    second = run("study", "tasks.csv", *WORDS, "-o", "out")
    assert second.exit_code == 0, second.output
    assert second.stdout == first.stdout
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "shards").iterdir()}
    assert before == after


def test_another_study_in_the_same_folder_is_refused(run, table):
    assert run("study", "tasks.csv", *WORDS).exit_code == 0
    result = run("study", "tasks.csv", *WORDS, "--seed", "1")
    assert result.exit_code == 2
    assert "random_state is 0 there and 1 here. Choose another folder" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--methods", "magic"], "There is no method 'magic'"),
        (["--budgets", "few"], "A budget is a proportion"),
        (["--budgets", "1.5"], "A budget is a proportion"),
        (["--budgets", "40"], "leaves no task a window"),
        (["--dask", "tcp://127.0.0.1:1"], "127.0.0.1:1"),
    ],
)
def test_what_cannot_be_is_said(run, table, words, message):
    result = run("study", "tasks.csv", "--splits", "2", *words)
    assert result.exit_code in (1, 2)
    assert message in " ".join(result.stderr.split())


def test_a_folder_that_cannot_be_written_is_named(run, table, tmp_path):
    (tmp_path / "taken").write_text("a file")
    result = run("study", "tasks.csv", "-o", "taken/inside")
    assert result.exit_code == 1
    assert "Cannot write to taken/inside" in result.stderr


def test_what_a_study_leaves_out_is_said(run, table, tmp_path):
    frame = pd.read_csv(table)
    frame = frame[~((frame["task"] == "p0") & (frame["label"] == 1))]
    frame.to_csv(table, index=False)
    result = run("study", "tasks.csv", *WORDS)
    assert result.exit_code == 0, result.output
    assert "Note: 1 task is left out of the study" in result.stderr
    assert "5 tasks, 5 splits each." in result.stdout


def test_demo_lays_the_papers_numbers_beside_ours(run, tmp_path):
    result = run("demo", "--splits", "2")
    assert result.exit_code == 0, result.output
    assert "36 tasks, 2 splits each. In brackets: the paper's." in result.stdout
    assert "(0.653)" in result.stdout
    assert "Report: results/demo/report.html" in result.stdout
    assert (tmp_path / "results" / "demo" / "report.html").stat().st_size < 2_000_000


def test_reproduce_says_what_nobody_can_have(run):
    result = run("reproduce", "wesad")
    assert result.exit_code == 0, result.output
    assert "0.029" in result.stdout
    assert "--wesad FOLDER runs the study on it" in " ".join(result.stdout.split())


def test_reproduce_runs_the_stand_in(run, tmp_path):
    result = run("reproduce", "matb-like", "--splits", "1")
    assert result.exit_code == 0, result.output
    assert "not public" in result.stdout
    assert "100 tasks, 1 splits each" in result.stdout
    assert "(0.674)" in result.stdout


def test_reproduce_draws_the_vectors_and_the_simulations(run, tmp_path):
    assert run("reproduce", "vectors").exit_code == 0
    result = run("reproduce", "figure2", "--repeats", "2")
    assert result.exit_code == 0, result.output
    made = {path.name for path in (tmp_path / "results").iterdir()}
    assert {"vectors-mental-math.png", "vectors-matb-like.csv", "figure2.png"} <= made


def test_reproduce_lists_what_there_is(run):
    result = run("reproduce", "figure7")
    assert result.exit_code == 2
    assert "There are figure2, figure3, mental-math, matb-like, wesad, effect-of-b" in result.stderr

"""``crossfade study``, ``demo`` and ``reproduce``, as a newcomer types them."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from rich.console import Console

from crossfade import TaskSet
from crossfade.cli import main
from crossfade.cli._reproduce import printed
from crossfade.cli._study import accuracies
from crossfade.study import CalibrationStudy, StudyResult, reproduce

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
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.*")}
    second = run("study", "tasks.csv", *WORDS, "-o", "out")
    assert second.exit_code == 0, second.output
    assert second.stdout == first.stdout
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.*")}
    assert before == after
    assert {path.name for path in before} >= {"report.html", "rows.parquet", "accuracy.png"}


def shown(rows):
    """Cells of the table in the terminal by method, and its caption."""
    console = Console(width=100)
    with console.capture() as captured:
        console.print(accuracies(StudyResult(rows)))
    lines = captured.get().splitlines()
    cells = {line.split()[0]: line.split()[1:] for line in lines if line.split()}
    return cells, " ".join(captured.get().split())


def test_means_that_are_not_over_all_splits_have_a_star(make_tasks):
    study = CalibrationStudy(make_tasks(6), methods=["target", "lda"], budgets=[2, 4], n_splits=3)
    rows = study.run().rows
    cells, text = shown(rows)
    assert "*" not in text
    assert "6 tasks, 3 splits each." in text
    lda, first = rows["method"] == "lda", (rows["task"] == "p0") & (rows["budget"] == 2)
    rows.loc[lda & first, "balanced_accuracy"] = np.nan
    mean = rows.loc[lda & (rows["budget"] == 2), "balanced_accuracy"].mean()
    starred, text = shown(rows)
    assert starred["lda"] == [f"{mean:.3f}*", cells["lda"][1]]
    assert starred["target"] == cells["target"]
    assert "* Over fewer tasks or splits than others" in text
    rows.loc[lda & (rows["budget"] == 2), "balanced_accuracy"] = np.nan
    failed, text = shown(rows)
    assert failed["lda"] == ["–", cells["lda"][1]]
    assert "*" not in text
    assert "nan" not in text


def test_one_task_and_one_split_are_one_each(make_tasks):
    study = CalibrationStudy(
        make_tasks(3), methods=["lda", "posterior-unlabelled"], budgets=[2, 4], n_splits=1
    )
    rows = study.run().rows
    assert "3 tasks, 1 split each." in shown(rows)[1]
    assert "posterior-unlabelled sees the test windows, too, without labels." in shown(rows)[1]
    alone = rows[(rows["task"] == "p0") | ((rows["task"] == "p1") & (rows["budget"] == 4))]
    assert "1 to 2 tasks, 1 split each." in shown(alone)[1]
    assert "1 task, 1 split each." in shown(rows[rows["task"] == "p0"])[1]


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


def test_the_stand_in_for_wesad_comes_near_the_paper(run, tmp_path):
    result = run("reproduce", "wesad", "--splits", "20")
    assert result.exit_code == 0, result.output
    assert "14 tasks, 20 splits each. In brackets: the paper's." in result.stdout
    assert "published" in (tmp_path / "results" / "wesad-like" / "report.html").read_text("utf-8")
    summary = pd.read_csv(tmp_path / "results" / "wesad-like" / "summary.csv")
    both = summary.merge(
        printed("wesad"), left_on=["method", "budget"], right_on=["classifier", "proportion"]
    )
    assert len(both) == 16
    assert (both["mean"] - both["value"]).abs().max() < 0.03


def test_reproduce_takes_the_users_wesad(run, tmp_path, monkeypatch, make_tasks):
    tasks = TaskSet(make_tasks(5, n_features=3))
    monkeypatch.setattr("crossfade.datasets.read_wesad", lambda folder, n_jobs: tasks)
    (tmp_path / "mine").mkdir()
    result = run("reproduce", "wesad", "--wesad", "mine", "--splits", "1")
    assert result.exit_code == 0, result.output
    assert "(0.653)" in result.stdout
    assert "5 tasks, 1 split each. In brackets" in result.stdout
    assert "published 0.653" in (tmp_path / "results" / "wesad" / "report.html").read_text("utf-8")


def test_effect_of_b_has_no_gaps(run, monkeypatch):
    few = partial(reproduce.effect_of_b, n_splits=2, n_repeats=2)
    monkeypatch.setattr("crossfade.study.reproduce.effect_of_b", few)
    result = run("reproduce", "effect-of-b")
    assert result.exit_code == 0, result.output
    assert "20%" in result.stdout
    assert "nan" not in result.stdout


def test_reproduce_runs_the_stand_in(run, tmp_path):
    result = run("reproduce", "matb-like", "--splits", "1")
    assert result.exit_code == 0, result.output
    assert "not public" in result.stdout
    assert "100 tasks, 1 split each" in result.stdout
    assert "(0.674)" in result.stdout


def test_reproduce_draws_the_vectors_and_the_simulations(run, tmp_path):
    result = run("reproduce", "vectors")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    [first] = [place for place, line in enumerate(lines) if line[:1] == ["mental-math"]]
    # What the README says of them: the authors' form one cluster in the embedding, where the paper
    # has more; on the sphere itself they are a mixture of four.
    known = lines[first].index("(2.99)")
    assert lines[first][known + 1 : known + 6] == ["1", "(2", "or", "more)", "4:"]
    ours = lines[first + 1]
    assert ours[ours.index("3.44") + 1 :][:2] == ["3", "3:"]
    theirs = pd.read_csv(tmp_path / "results" / "vectors-mental-math-authors.csv")
    assert list(theirs) == ["task", "x", "y", "cluster"]
    assert theirs["task"].tolist()[:2] == ["Subject00", "Subject01"]
    result = run("reproduce", "figure2", "--repeats", "2")
    assert result.exit_code == 0, result.output
    made = {path.name for path in (tmp_path / "results").iterdir()}
    assert {"vectors-mental-math.png", "vectors-matb-like.csv", "figure2.png"} <= made
    assert {"vectors-wesad-like-authors.png", "vectors-wesad-like.csv"} <= made
    result = run("reproduce", "figure1")
    assert result.exit_code == 0, result.output
    assert {"figure1.csv", "figure1.png"} <= {
        path.name for path in (tmp_path / "results").iterdir()
    }


def test_reproduce_lists_what_there_is(run):
    result = run("reproduce", "figure7")
    assert result.exit_code == 2
    assert "There are figure1, figure2, figure3, mental-math, matb-like, wesad" in result.stderr

"""A table that would mislead, from the command line to the head of the report."""

from pathlib import Path

import pytest

from crossfade import TaskPrior, load_mental_math

STUDY = ("--methods", "lda,posterior", "--splits", "2", "--budgets", "2", "--jobs", "1")


@pytest.fixture
def frame():
    return load_mental_math()[:8].to_frame()


def counted(frame):
    return frame.assign(trial=frame.groupby("task").cumcount())


def test_a_counter_is_refused_by_every_command(run, frame):
    counted(frame).to_csv("t.csv", index=False)
    TaskPrior.from_tasks(load_mental_math()[8:16], rehearse=False).save("prior.npz")
    one = counted(frame)
    one[one["task"] == "Subject00"].to_csv("one.csv", index=False)
    for words in (
        ("tasks", "check", "t.csv"),
        ("tasks", "show", "t.csv"),
        ("study", "t.csv", *STUDY),
        ("prior", "build", "t.csv", "-o", "p.npz"),
    ):
        found = run(*words)
        assert found.exit_code
        assert "Column 'trial'" in found.output
        assert "--drop trial (drop=['trial'])" in found.output
    for words in (
        ("tasks", "check", "t.csv", "--drop", "trial"),
        ("study", "t.csv", "--drop", "trial", *STUDY),
        ("prior", "build", "t.csv", "-o", "p.npz", "--columns", "*_*"),
        ("calibrate", "one.csv", "--prior", "prior.npz", "-o", "m.json"),
    ):
        found = run(*words)
        assert not found.exit_code, found.output
        assert "trial" not in found.output


def test_what_may_mislead_is_said_first_and_heads_the_report(run, frame):
    frame.assign(session=1, code=3 + 4 * frame["label"]).to_csv("t.csv", index=False)
    found = run("study", "t.csv", "-o", "s", *STUDY)
    assert not found.exit_code, found.output
    page = Path("s/report.html").read_text("utf-8")
    head, _, rest = page.partition("</header>")
    for text in ("Column &#39;session&#39;", "Column &#39;code&#39;"):
        assert text in head
        assert text not in rest
    assert found.stderr.index("Warning: t.csv: Column 'session'") < found.stderr.index(
        "Column 'code'"
    )
    frame.to_csv("clean.csv", index=False)
    run("study", "clean.csv", "-o", "c", *STUDY)
    assert "may mislead" not in Path("c/report.html").read_text("utf-8")


def test_a_person_with_one_class_is_named_before_a_prior_is_built(run, frame):
    lone = frame[(frame["task"] != "Subject03") | (frame["label"] == 0)]
    lone.to_csv("t.csv", index=False)
    told = run("tasks", "check", "t.csv")
    assert told.exit_code == 0
    assert "windows of one class only: Subject03" in told.output
    assert f"8 tasks, {len(lone)} windows" in told.output
    assert "nothing to object to" not in told.output
    refused = run("prior", "build", "t.csv", "-o", "p.npz")
    assert refused.exit_code == 1
    assert "one class only" in refused.output
    assert "--exclude" in refused.output
    assert run("prior", "build", "t.csv", "-o", "p.npz", "--exclude", "Subject03").exit_code == 0

"""Priors from a lab's tasks to a release, by commands alone, and what they refuse."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from crossfade import Ledger, TaskPrior, load_mental_math
from crossfade.cli import main


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two labs' tables, and the prior of the first, made once."""
    folder = tmp_path_factory.mktemp("labs")
    tasks = load_mental_math()
    tasks[:11].write(folder / "lab-a.csv")
    tasks[11:20].write(folder / "lab-b.csv")
    words = ["--made-by", "Lab A", "--units", "share of power"]
    table = str(folder / "lab-a.csv")
    result = CliRunner().invoke(main, ["prior", "build", table, "-o", f"{folder}/a.npz", *words])
    assert result.exit_code == 0, result.output
    words = ["--scale", f"{folder}/a.npz", "--made-by", "B"]
    table = str(folder / "lab-b.csv")
    result = CliRunner().invoke(main, ["prior", "build", table, "-o", f"{folder}/b.npz", *words])
    assert "close to the average over people" in result.stdout
    return folder


@pytest.fixture
def labs(made, tmp_path, monkeypatch):
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)


def run(*words):
    return CliRunner().invoke(main, ["prior", *words])


def well(*words):
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(word, *words):
    result = run(*words)
    assert result.exit_code
    assert isinstance(result.exception, SystemExit)
    assert word in result.stderr


def test_two_labs_merge_their_priors(labs):
    card = well("show", "a.npz")
    for text in ("11", "Lab A", "share of power", "Fz_theta", "exact sums", "kappa"):
        assert text in card
    well("merge", "a.npz", "b.npz", "-o", "both.npz")
    assert "Lab A; B" in well("show", "both.npz")
    merged = TaskPrior.load("both.npz")
    both = TaskPrior.load("a.npz") + TaskPrior.load("b.npz")
    assert merged == both
    assert merged.n_tasks == 20


def test_tasks_can_be_left_out_and_scales_given(labs):
    words = ["build", "lab-b.csv", "-o", "p.npz"]
    first = load_mental_math()[11].name
    well(*words, "--exclude", first, "--scale", "none")
    prior = TaskPrior.load("p.npz")
    assert prior.n_tasks == 8
    np.testing.assert_array_equal(prior.feature_scale, 1.0)
    scale = pd.DataFrame({"feature": prior.feature_names, "scale": 0.25})
    scale.to_csv("scale.csv", index=False)
    well(*words, "--scale", "scale.csv")
    np.testing.assert_array_equal(TaskPrior.load("p.npz").feature_scale, 0.25)
    scale[::-1].to_csv("other.csv", index=False)
    refused("Pz_beta", *words, "--scale", "other.csv")
    scale.assign(scale="wide").to_csv("text.csv", index=False)
    refused("text.csv", *words, "--scale", "text.csv")


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["build", "lab-b.csv", "-o", "c.npz", "--scale", "no.csv"], "no.csv"),
        (["build", "lab-b.csv", "-o", "c.npz", "--exclude", "p99"], "p99"),
        (["build", "lab-b.csv", "-o", "c.npz", "--mean-norm-bound", "0"], "mean_norm_bound"),
        (["merge", "a.npz", "-o", "c.npz"], "two"),
        (["merge", "a.npz", "a.npz", "-o", "c.npz"], "twice"),
        (["merge", "a.npz", "own.npz", "-o", "c.npz"], "scale"),
        (["show", "cut.npz"], "damaged"),
        (["show", "lab-a.csv"], "prior"),
        (["release", "a.npz", "--epsilon", "1", "--delta", "1e-5", "-o", "c.npz"], "--ledger"),
    ],
)
def test_refusals(labs, words, word):
    content = Path("a.npz").read_bytes()
    Path("cut.npz").write_bytes(content[:-200])
    prior = TaskPrior.load("b.npz")
    TaskPrior.from_projections(
        np.eye(9), feature_names=prior.feature_names, classes=prior.classes
    ).save("own.npz")
    refused(word, *words)
    assert not Path("c.npz").exists()


def test_a_release_is_counted_and_refused_past_the_budget(labs):
    pytest.importorskip("opendp")
    words = ["--epsilon", "1", "--delta", "1e-5", "--ledger", "ledger.json", "-o", "public.npz"]
    told = well("release", "a.npz", *words, "--budget", "1.5")
    assert "ledger.json: 1 release" in told
    public = TaskPrior.load("public.npz")
    assert public.release.epsilon == 1.0
    # One ledger is one population, whoever is in the prior.
    assert "epsilon=1.465" in well("release", "b.npz", *words)
    first = Path("public.npz").read_bytes()
    refused("budget of 1.5", "release", "a.npz", *words)
    assert Path("public.npz").read_bytes() == first
    # What cannot be written is not counted.
    refused("nowhere", "release", "a.npz", *words[:-1], "nowhere/p.npz")
    assert len(Ledger("ledger.json").releases) == 2
    refused("exact", "release", "public.npz", *words[:-1], "c.npz")


def test_a_prior_with_a_clip_is_released_with_class_means(labs):
    pytest.importorskip("opendp")
    well("build", "lab-b.csv", "-o", "c.npz", "--scale", "a.npz", "--mean-norm-bound", "16")
    words = ["--epsilon", "9", "--delta", "1e-5", "--ledger", "l.json", "-o", "public.npz"]
    well("release", "c.npz", *words)
    # It answers before the first label.
    words = ["calibrate", "--prior", "public.npz", "-o", "model.json"]
    assert CliRunner().invoke(main, words).exit_code == 0


def test_no_command_replaces_what_it_reads(labs):
    Path("link.npz").symlink_to("a.npz")
    Path("hard.npz").hardlink_to("a.npz")
    before = {name: Path(name).read_bytes() for name in ("a.npz", "lab-a.csv")}
    budget = ["--epsilon", "1", "--delta", "1e-5", "--ledger", "x.json"]
    for words in (
        ("build", "lab-a.csv", "-o", "lab-a.csv"),
        ("build", "lab-a.csv", "--scale", "a.npz", "-o", "a.npz"),
        ("merge", "a.npz", "b.npz", "-o", "a.npz"),
        ("release", "a.npz", *budget, "-o", "a.npz"),
        ("release", "a.npz", *budget, "-o", "link.npz"),
        ("release", "a.npz", *budget, "-o", "hard.npz"),
        ("release", "a.npz", *budget, "-o", "x.json"),
    ):
        refused("also read", *words)
    assert {name: Path(name).read_bytes() for name in before} == before
    assert not Path("x.json").exists()

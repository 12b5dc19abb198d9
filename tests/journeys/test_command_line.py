"""Commands as a newcomer types them: tables on the screen, files in the folder."""

import os
import subprocess
import sys

import pandas as pd
import pytest
from click.testing import CliRunner

from crossfade.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, words)


def test_newcomers_prints_the_table_and_saves_the_picture(run, tmp_path):
    result = run("simulate", "newcomers", "--repeats", "5", "--sources", "10")
    assert result.exit_code == 0, result.output
    for name in ("target", "average-source", "convex", "posterior", "lda"):
        assert name in result.stdout
    assert (tmp_path / "results" / "newcomers.png").read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_csv(tmp_path / "results" / "newcomers.csv")) == 25
    assert "Written: results/newcomers.csv, results/newcomers.png" in result.stdout


def test_figure2_says_how_far_apart_each_cell_is(run, tmp_path):
    words = ["--sources", "10", "--samples", "20", "--repeats", "20", "--out", "here"]
    result = run("simulate", "figure2", *words)
    assert result.exit_code == 0, result.output
    assert "J = 10: predicted and true differ by up to" in result.stdout
    assert "in the paper by up to 0.067" in result.stdout
    table = pd.read_csv(tmp_path / "here" / "figure2.csv")
    row = table[table["classifier"] == "average-source"].iloc[0]
    assert f"{row['true'] - row['empirical']:+.3f}" in result.stdout
    assert (tmp_path / "here" / "figure2.png").exists()


def test_figure3_prints_differences_from_the_paper(run, tmp_path):
    words = ["--panel", "n", "--repeats", "10", "--format", "svg"]
    result = run("simulate", "figure3", *words)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "results" / "figure3.csv")
    row = table[(table["classifier"] == "target") & (table["x"] == 50)].iloc[0]
    assert f"({row['accuracy'] - row['reference_accuracy']:+.3f})" in result.stdout
    assert "Forecast of posterior, covariance plug-in: off by" in result.stdout
    assert (tmp_path / "results" / "figure3.svg").exists()


def test_misspecified_names_who_survives(run, tmp_path):
    words = ["--scenario", "shifted", "--repeats", "10", "--shift", "2"]
    result = run("simulate", "misspecified", *words)
    assert result.exit_code == 0, result.output
    assert "shifted (the midpoint is not the origin): best" in result.stdout
    assert set(pd.read_csv(tmp_path / "results" / "misspecified.csv")["scenario"]) == {"shifted"}


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["demo"],
        ["study"],
        ["reproduce"],
        ["features", "eeg"],
        ["features", "ecg"],
        ["simulate"],
        ["simulate", "figure2"],
        ["simulate", "misspecified"],
    ],
)
def test_every_help_text_has_an_example(run, words):
    result = run(*words, "--help")
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert "  crossfade " in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["simulate", "figure3", "--panel", "J"], "'J' is not one of 'n', 'kappa', 'd'"),
        (["simulate", "misspecified", "--tails", "1"], "1.0 is not in the range x>=2.01"),
        (["simulate", "newcomers", "--repeats", "0"], "0 is not in the range x>=2"),
        (["simulate", "figure9"], "No such command 'figure9'"),
    ],
)
def test_refusals_say_what_is_allowed(run, words, message):
    result = run(*words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_folder_that_cannot_be_made_is_named(run, tmp_path):
    (tmp_path / "taken").write_text("a file")
    result = run(
        "simulate", "newcomers", "--repeats", "2", "--sources", "3", "--out", "taken/inside"
    )
    assert result.exit_code == 1
    assert "Cannot write to taken/inside" in result.stderr
    assert "--out" in result.stderr


def test_without_matplotlib_there_is_a_table_and_a_word_about_the_picture(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("simulate", "newcomers", "--repeats", "2", "--sources", "3")
    assert result.exit_code == 0, result.output
    assert "Install crossfade[plots]" in result.stderr
    assert "Written: results/newcomers.csv\n" in result.stdout


def test_the_command_starts_without_loading_the_studies():
    code = (
        "import sys, crossfade.cli\n"
        "print([m for m in ('crossfade.simulate._figures', 'matplotlib') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_values_of_a_panel_can_be_chosen(run, tmp_path):
    words = ["--panel", "kappa", "--value", "5", "--value", "5", "--value", "50", "--repeats", "4"]
    result = run("simulate", "figure3", *words)
    assert result.exit_code == 0, result.output
    assert set(pd.read_csv(tmp_path / "results" / "figure3.csv")["x"]) == {5.0, 50.0}
    assert "The same, alpha" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["figure3", "--value", "3"], "values belong to one panel; got 3 panels"),
        (["figure2", "--kappa", "inf"], "concentration must be a number from 0 to 1e+08; got inf"),
        (["figure2", "--step", "0.3"], "step must divide 1"),
        (["figure3", "--panel", "d", "--value", "2.5"], "n_features must be a whole number"),
    ],
)
def test_studies_that_cannot_be_are_refused_at_once(run, words, message):
    result = run("simulate", *words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_repeated_scenario_is_drawn_once(run):
    words = ["--scenario", "shifted", "--scenario", "shifted", "--repeats", "4"]
    result = run("simulate", "misspecified", *words)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("shifted (the midpoint") == 1


def test_tables_fit_eighty_columns(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for study in ("figure2", "figure3", "misspecified"):
        result = run("simulate", study, "--repeats", "2")
        assert max(map(len, result.stdout.splitlines())) <= 80
        assert "…" not in result.stdout
        assert "average-" in result.stdout


def test_a_terminal_without_unicode_gets_plain_signs(run, tmp_path):
    code = "from crossfade.cli import main; main()"
    words = ["simulate", "newcomers", "--repeats", "2", "--sources", "3"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=True,
    )
    assert b" +- " in done.stdout

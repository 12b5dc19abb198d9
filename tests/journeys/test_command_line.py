"""Commands as a newcomer types them: tables on the screen, files in the folder."""

import io
import re
import subprocess
import sys
import threading

import click
import pandas as pd
import pytest
from click.testing import CliRunner
from rich.console import Console

from crossfade.cli import main
from crossfade.cli._output import progress
from crossfade.simulate import SCENARIOS
from crossfade.study._methods import METHODS


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, words)


def test_newcomers_prints_the_table_and_saves_the_picture(run, tmp_path):
    result = run("simulate", "newcomers", "--repeats", "5")
    assert result.exit_code == 0, result.output
    for name in ("target", "average-source", "convex", "posterior", "hierarchical", "lda"):
        assert f"\n{METHODS[name].label} " in result.stdout
    assert (tmp_path / "results" / "newcomers.png").read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_csv(tmp_path / "results" / "newcomers.csv")) == 30
    assert "Written: results/newcomers.csv, results/newcomers.png" in result.stdout


def test_figure2_says_how_far_apart_each_cell_is(run, tmp_path):
    words = ["--sources", "10", "--samples", "20", "--repeats", "20", "--jobs", "1", "-o", "here"]
    result = run("simulate", "figure2", *words)
    assert result.exit_code == 0, result.output
    assert "J = 10: predicted and true differ by up to" in result.stdout
    assert "in the paper by up to 0.067" in result.stdout
    table = pd.read_csv(tmp_path / "here" / "figure2.csv")
    row = table[table["classifier"] == "average-source"].iloc[0]
    assert f"{row['true'] - row['empirical']:+.3f}" in result.stdout
    assert (tmp_path / "here" / "figure2.png").exists()


def test_figure3_prints_differences_from_the_paper(run, tmp_path):
    words = ["--panel", "n", "--repeats", "10", "--format", "svg", "--jobs", "1"]
    result = run("simulate", "figure3", *words)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "results" / "figure3.csv")
    row = table[(table["classifier"] == "target") & (table["x"] == 50)].iloc[0]
    assert f"({row['accuracy'] - row['reference_accuracy']:+.3f})" in result.stdout
    assert "Forecast of the posterior blend, covariance estimated: off by" in result.stdout
    assert (tmp_path / "results" / "figure3.svg").exists()


@pytest.mark.parametrize(("recipe", "words"), [("authors", "as its authors"), ("printed", "as p")])
def test_the_papers_recipes_have_files_of_their_own(run, tmp_path, recipe, words):
    options = ["--repeats", "4", "--jobs", "1", "--recipe", recipe]
    result = run("simulate", "figure3", "--panel", "kappa", *options)
    assert result.exit_code == 0, result.output
    assert f"Figure 3 {words}" in result.stdout
    assert "Forecast" not in result.stdout
    table = pd.read_csv(tmp_path / "results" / f"figure3-{recipe}.csv")
    assert set(table["classifier"]) == {"target", "average-source", "paper"}
    result = run("simulate", "figure2", "--sources", "10", "--samples", "20", *options)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "results" / f"figure2-{recipe}.png").exists()


def test_misspecified_names_who_survives(run, tmp_path):
    words = ["--scenario", "shifted", "--scenario", "shifted", "--repeats", "10", "--jobs", "1"]
    result = run("simulate", "misspecified", *words)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("shifted (the midpoint is not the origin): best") == 1
    assert set(pd.read_csv(tmp_path / "results" / "misspecified.csv")["scenario"]) == {"shifted"}


def commands(command=main, words=()):
    """All commands and groups, as the words that call them."""
    yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), (*words, name))


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_every_help_text_has_an_example_and_is_not_cut(run, words):
    result = run(*words, "--help")
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert "  crossfade " in result.stdout
    listed = result.stdout.partition("\nCommands:\n")[2]
    assert "..." not in listed


def test_jobs_have_one_default():
    context = click.Context(main)
    found = {
        option.default
        for words in commands()
        for option in command_of(words).get_params(context)
        if option.name == "jobs"
    }
    assert found == {2}


def command_of(words):
    command, context = main, click.Context(main)
    for word in words:
        command = command.get_command(context, word)
    return command


def test_every_scenario_can_be_chosen():
    [scenario] = [
        one for one in command_of(["simulate", "misspecified"]).params if one.name == "scenarios"
    ]
    assert tuple(scenario.type.choices) == tuple(SCENARIOS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["simulate", "figure3", "--panel", "J"], "'J' is not one of 'n', 'kappa', 'd'"),
        (["simulate", "misspecified", "--tails", "3"], "No such option '--tails'"),
        (["simulate", "newcomers", "--repeats", "0"], "0 is not in the range x>=2"),
        (["simulate", "figure9"], "No such command 'figure9'"),
    ],
)
def test_refusals_say_what_is_allowed(run, words, message):
    result = run(*words)
    assert result.exit_code == 2
    # As click writes it since 8.4.
    assert message in re.sub(r"(No such option): (--\w+)", r"\1 '\2'", result.stderr)


def test_a_folder_that_cannot_be_made_is_named(run, tmp_path):
    (tmp_path / "taken").write_text("a file")
    result = run("simulate", "newcomers", "--repeats", "2", "--out", "taken/inside")
    assert result.exit_code == 1
    assert "Cannot write to taken/inside" in result.stderr
    assert "--out" in result.stderr


def test_without_matplotlib_there_is_a_table_and_a_word_about_the_picture(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("simulate", "newcomers", "--repeats", "2")
    assert result.exit_code == 0, result.output
    assert "Install crossfade[plots]" in result.stderr
    assert "Written: results/newcomers.csv\n" in result.stdout


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["study", "--help"], ["features", "eeg", "--help"]]
)
def test_the_command_starts_without_loading_the_studies(words):
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('loaded:', *sorted(sys.modules)))\n"
        "from crossfade.cli import main; main()"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    loaded = set(found.stdout.partition("loaded:")[2].split())
    assert "click" in loaded
    assert loaded & {"numpy", "pandas", "sklearn", "scipy", "matplotlib", "rich.console"} == set()


def test_progress_in_a_log_is_a_line_now_and_then():
    log = io.StringIO()
    times = iter([0.0, 1.0, 9.0, 11.0, 12.0, 20.0, 22.0, 23.0])
    with progress("Study", Console(file=log), lambda: next(times)) as on_progress:
        for finished in range(1, 8):
            on_progress(finished, 7)
    assert log.getvalue().splitlines() == [
        "Study: 3 of 7 (43%) after 11 s",
        "Study: 6 of 7 (86%) after 22 s",
        "Study: 7 of 7 (100%) after 23 s",
    ]


@pytest.mark.parametrize(("told", "said"), [((), "at work"), ((2, 7), "2 of 7 (29%)")])
def test_long_work_says_in_a_log_that_it_goes_on(monkeypatch, told, said):
    """Nothing is finished for half a minute, and there is a line all the same."""
    now = [0.0]
    written = threading.Event()

    class Log(io.StringIO):
        def write(self, text):
            written.set()
            return super().write(text)

    log = Log()
    monkeypatch.setattr("crossfade.cli._output._LOOK_EVERY", 0.001)
    with progress("Study", Console(file=log), lambda: now[0]) as on_progress:
        if told:
            on_progress(*told)
        now[0] = 30.0
        assert written.wait(30.0)
    assert log.getvalue().splitlines()[0] == f"Study: {said} after 30 s"


def test_short_work_writes_no_progress_to_a_log():
    log = io.StringIO()
    with progress("Study", Console(file=log), lambda: 0.0) as on_progress:
        on_progress(7, 7)
    assert log.getvalue() == ""


def test_values_of_a_panel_can_be_chosen(run, tmp_path):
    words = ["--panel", "kappa", "--value", "5", "--value", "5", "--value", "50", "--repeats", "4"]
    words += ["--jobs", "1"]
    result = run("simulate", "figure3", *words)
    assert result.exit_code == 0, result.output
    assert set(pd.read_csv(tmp_path / "results" / "figure3.csv")["x"]) == {5.0, 50.0}
    assert "The same, alpha" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["figure3", "--value", "3"], "values belong to one panel; got 3 panels"),
        (["newcomers", "--kappa", "inf"], "concentration must be"),
        (["figure2", "--step", "0.3"], "step must divide 1"),
        (["figure3", "--panel", "d", "--value", "2.5"], "n_features must be a whole number"),
    ],
)
def test_studies_that_cannot_be_are_refused_at_once(run, words, message):
    result = run("simulate", *words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_tables_fit_eighty_columns(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for study in ("figure2", "figure3", "misspecified"):
        result = run("simulate", study, "--repeats", "2", "--jobs", "1")
        assert max(map(len, result.stdout.splitlines())) <= 80
        assert "…" not in result.stdout
        assert "Crowd" in result.stdout


def test_a_terminal_without_unicode_gets_plain_signs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["simulate", "newcomers", "--repeats", "2"]
    result = CliRunner(charset="ascii").invoke(main, words)
    assert result.exit_code == 0, result.output
    assert b" +- " in result.stdout_bytes

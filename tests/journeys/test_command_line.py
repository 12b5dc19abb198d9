"""Commands as a newcomer types them: tables on the screen, files in the folder."""

import subprocess
import sys
import time

import click
import pytest
from click.testing import CliRunner

from crossfade.cli import main
from crossfade.cli._output import progress


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, words)


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


def test_long_work_says_in_a_log_that_it_goes_on(capsys):
    with progress("Study", every=0.05) as on_progress:
        on_progress(2, 7)
        time.sleep(0.5)
    assert "Study: 2 of 7 (29%) after 0 s" in capsys.readouterr().err
    with progress("Study") as on_progress:
        on_progress(7, 7)
    assert capsys.readouterr().err == ""

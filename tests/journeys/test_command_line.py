"""Commands as a newcomer types them: tables on the screen, files in the folder."""

import io
import subprocess
import sys
import threading

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

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

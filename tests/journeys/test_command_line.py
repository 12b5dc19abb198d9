"""Commands as a newcomer types them: tables on the screen, files in the folder."""

import subprocess
import sys

import click
import pytest

from crossfade.cli import main


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

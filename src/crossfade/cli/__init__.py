"""Commands: ``crossfade ...``. Each is options and one call; its module is imported when called."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from crossfade._version import __version__

#: Each command, in the order of a first visit: its module, and its line in the list of commands.
_COMMANDS = {
    "demo": ("_demo", "Run a study of 36 people on data that come with Crossfade."),
    "features": ("_features", "Turn EEG or ECG recordings into a table of tasks."),
    "tasks": ("_tasks", "Check a table of tasks, or show what it holds."),
    "prior": ("_prior", "Build, show, merge, check and release priors."),
    "calibrate": ("_calibrate", "Blend a prior with one person's first labelled windows."),
    "predict": ("_calibrate", "Label new windows with a calibrated model."),
    "live": ("_live", "Calibrate a new person from a running stream, on a page."),
    "export": ("_export", "Write a model for a device, or print its card."),
    "study": ("_study", "Find how many labelled windows a new person needs."),
}


class _LazyGroup(click.Group):
    """Group whose commands are imported when they are called, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module: Any = import_module(f"crossfade.cli.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="crossfade")
def main() -> None:
    """Crossfade: from the crowd's classifier to the person's own.

    \b
    Examples:
      crossfade demo
      crossfade features eegmat eegmat/ -o tasks.parquet
      crossfade tasks check tasks.parquet
      crossfade prior build tasks.parquet -o prior.npz
      crossfade calibrate --prior prior.npz few.csv -o model.json
      crossfade predict model.json new.csv
      crossfade export model.json -o model.h
      crossfade study tasks.parquet
    """

"""Commands: ``crossfade ...``. They import what computes when they are called."""

from __future__ import annotations

import click

from crossfade._version import __version__
from crossfade.cli._calibrate import calibrate, predict
from crossfade.cli._demo import demo
from crossfade.cli._export import export
from crossfade.cli._features import features
from crossfade.cli._live import live
from crossfade.cli._prior import prior
from crossfade.cli._study import study
from crossfade.cli._tasks import tasks

#: Each command with its line in the list, in the order of a first visit.
_COMMANDS = {
    demo: "Run a study of 36 people on data that come with Crossfade.",
    features: "Turn EEG or ECG recordings into a table of tasks.",
    tasks: "Check a table of tasks, or show what it holds.",
    prior: "Build, show, merge and release priors.",
    calibrate: "Blend a prior with one person's first labelled windows.",
    predict: "Label new windows with a calibrated model.",
    live: "Calibrate a new person from a running stream, on a page.",
    export: "Write a model for a device, or print its card.",
    study: "Find how many labelled windows a new person needs.",
}


class _InOrder(click.Group):
    """Group that lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=_InOrder, context_settings={"help_option_names": ["-h", "--help"]})
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


for _command, _text in _COMMANDS.items():
    _command.short_help = _text
    main.add_command(_command)

"""Command lines in, tables and pictures out: ``crossfade ...``."""

from __future__ import annotations

import click

from crossfade._version import __version__
from crossfade.cli._calibrate import calibrate, predict
from crossfade.cli._demo import demo
from crossfade.cli._features import features
from crossfade.cli._federate import federate
from crossfade.cli._prior import prior
from crossfade.cli._reproduce import reproduce
from crossfade.cli._simulate import simulate
from crossfade.cli._study import study
from crossfade.cli._tasks import tasks


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="crossfade")
def main() -> None:
    """Crossfade: from the crowd's classifier to the person's own.

    \b
    Examples:
      crossfade demo
      crossfade features eegmat eegmat/ -o tasks.parquet
      crossfade tasks show tasks.parquet
      crossfade prior build tasks.parquet -o prior.npz
      crossfade calibrate --prior prior.npz few.csv -o model.json
      crossfade predict model.json new.csv
      crossfade federate --help
      crossfade study tasks.parquet --jobs 2
      crossfade reproduce all
      crossfade simulate figure2 --jobs 2
      crossfade simulate misspecified --help
    """


main.add_command(calibrate)
main.add_command(demo)
main.add_command(features)
main.add_command(federate)
main.add_command(predict)
main.add_command(prior)
main.add_command(reproduce)
main.add_command(simulate)
main.add_command(study)
main.add_command(tasks)

"""Command lines in, tables and pictures out: ``crossfade ...``."""

from __future__ import annotations

import click

from crossfade import __version__
from crossfade.cli.demo import demo
from crossfade.cli.features import features
from crossfade.cli.reproduce import reproduce
from crossfade.cli.simulate import simulate
from crossfade.cli.study import study
from crossfade.cli.tasks import tasks


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="crossfade")
def main() -> None:
    """Crossfade: from the crowd's classifier to the person's own.

    \b
    Examples:
      crossfade demo
      crossfade features eegmat eegmat/ -o tasks.parquet
      crossfade tasks show tasks.parquet
      crossfade study tasks.parquet --jobs 2
      crossfade reproduce all
      crossfade simulate figure2 --jobs 2
      crossfade simulate misspecified --help
    """


main.add_command(demo)
main.add_command(features)
main.add_command(reproduce)
main.add_command(simulate)
main.add_command(study)
main.add_command(tasks)

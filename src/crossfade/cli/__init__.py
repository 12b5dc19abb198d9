"""Command lines in, tables and pictures out: ``crossfade ...``."""

from __future__ import annotations

import click

from crossfade import __version__
from crossfade.cli.demo import demo
from crossfade.cli.simulate import simulate


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="crossfade")
def main() -> None:
    """Crossfade: from the crowd's classifier to the person's own.

    \b
    Examples:
      crossfade demo
      crossfade simulate figure2 --jobs 2
      crossfade simulate misspecified --help
    """


main.add_command(demo)
main.add_command(simulate)

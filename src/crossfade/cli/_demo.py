"""``crossfade demo``: the paper's Mental Math study on the data that ships with the package."""

from __future__ import annotations

from pathlib import Path

import click

from crossfade.cli._output import option
from crossfade.cli._study import run_study
from crossfade.study._methods import COMPARED


@click.command()
@option("--splits", click.IntRange(1), 20, "Splits of each participant and budget.")
@option("--jobs", click.IntRange(1), 2, "Processes; the result does not depend on them.")
@option("--seed", click.IntRange(0), 0, "Seed of the random numbers.")
@click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results") / "demo",
    show_default=True,
    help="Folder for rows, tables, figures and report.html.",
)
def demo(splits: int, jobs: int, seed: int, out: Path) -> None:
    """How much calibration does a person need? 36 people at rest and at mental arithmetic.

    Each of them is left out in turn, labels a few windows of EEG, and all methods classify the
    rest; the others' directions are the crowd.

    \b
    Examples:
      crossfade demo
      crossfade demo --splits 100
    """
    from crossfade.cli._reproduce import printed
    from crossfade.datasets import load_mental_math

    run_study(
        load_mental_math,
        out,
        methods=list(COMPARED),
        n_splits=splits,
        jobs=jobs,
        seed=seed,
        title="Mental Math: how much calibration does a person need?",
        paper=printed("mental-math"),
    )

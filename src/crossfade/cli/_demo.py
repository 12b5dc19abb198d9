"""``crossfade demo``: the paper's Mental Math study on the data that ships with the package."""

from __future__ import annotations

from pathlib import Path

import click

from crossfade.cli._options import COUNT, FOLDER, jobs_option, option, seed_option


@click.command()
@option("--splits", COUNT, 20, "Splits of each participant and budget.")
@jobs_option()
@seed_option
@click.option(
    "-o",
    "--out",
    type=FOLDER,
    default=Path("results") / "demo",
    show_default=True,
    help="Folder for rows, tables, figures and report.html.",
)
def demo(splits: int, jobs: int, seed: int, out: Path) -> None:
    """How much calibration does a person need? 36 people at rest and at mental arithmetic.

    Each of them is left out in turn and labels a few windows of EEG; the other 35 are the crowd.
    Every method then classifies the remaining windows. The table in the README comes from 100
    splits: `crossfade demo --splits 100`.

    \b
    Examples:
      crossfade demo
      crossfade demo --splits 100
    """
    from crossfade.cli._study import PROPORTIONS, run_study
    from crossfade.study._methods import COMPARED
    from crossfade.study._published import mental_math_study

    study = mental_math_study()
    run_study(
        study.load,
        out,
        methods=COMPARED,
        budgets=PROPORTIONS,
        n_splits=splits,
        jobs=jobs,
        seed=seed,
        title="Mental Math: how much calibration does a person need?",
        paper=study.printed,
    )

"""``crossfade demo``: a calibration study on the data that ships with the package."""

from __future__ import annotations

from pathlib import Path

import click

from crossfade.cli._options import COUNT, FOLDER, jobs_option, option

#: Few enough to tell apart in a figure: our blend, the usual alternatives, and the paper's.
_METHODS = ("hierarchical", "lda", "lda-pooled", "paper", "target")
_BUDGETS = ("0", "2", "4", "8", "16")


@click.command()
@option("--splits", COUNT, 10, "Splits of each participant and budget.")
@jobs_option()
@option("--out", FOLDER, Path("results") / "demo", "Folder for the report.", short="-o")
def demo(splits: int, jobs: int, out: Path) -> None:
    """How much calibration does a person need? 36 people at rest and at mental arithmetic.

    Each of them is left out in turn and labels 0, 2, 4, 8 or 16 windows of EEG of each class; the
    other 35 are the crowd. Every method then classifies the remaining windows.

    \b
    Examples:
      crossfade demo
      crossfade demo --splits 100
    """
    from crossfade.cli._study import run_study
    from crossfade.datasets import load_mental_math

    run_study(
        load_mental_math,
        out,
        methods=_METHODS,
        budgets=_BUDGETS,
        # No method brings 80 % of these people to 0.75 within 16 windows of each class.
        share=0.5,
        n_splits=splits,
        jobs=jobs,
        title="Mental Math: how much calibration does a person need?",
    )

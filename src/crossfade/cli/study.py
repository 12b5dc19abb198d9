"""``crossfade study``: a table of tasks in, how accurate each method is after how many labels."""

from __future__ import annotations

import warnings
from pathlib import Path

import click
import pandas as pd
from rich.table import Table

from crossfade._files import write_whole
from crossfade.cli._output import narrow_table, option, study_of, terminal
from crossfade.study.methods import METHODS

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.argument("tasks", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o",
    "--out",
    type=_FOLDER,
    default=Path("study"),
    show_default=True,
    help="Folder for rows and summary; made if need be.",
)
@click.option(
    "--methods",
    default="target,average-source,paper,convex,posterior,lda",
    show_default=True,
    help=f"Of {', '.join(METHODS)}.",
)
@click.option(
    "--budgets",
    default="0.05,0.1,0.2,0.5",
    show_default=True,
    help="What is labelled: proportions of the smaller class, or windows of each class.",
)
@option("--splits", click.IntRange(1), 100, "Splits of each task and budget.")
@option("--jobs", click.IntRange(1), 1, "Processes; the result does not depend on them.")
@option("--seed", click.IntRange(0), 0, "Seed of the random numbers.")
def study(
    tasks: Path, out: Path, methods: str, budgets: str, splits: int, jobs: int, seed: int
) -> None:
    """Leave each participant of TASKS out in turn, label a few windows, and count the errors.

    \b
    Examples:
      crossfade study tasks.parquet --jobs 2
      crossfade study tasks.csv -o few --budgets 1,2,4,8 --methods lda,posterior
    """
    from crossfade.study import CalibrationStudy
    from crossfade.tasks import read_tasks

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        with study_of("Tasks", out) as on_progress:
            plan = CalibrationStudy(
                read_tasks(tasks),
                methods=[name.strip() for name in methods.split(",")],
                budgets=[_budget(text) for text in budgets.split(",")],
                n_splits=splits,
                random_state=seed,
            )
            result = plan.run(n_jobs=jobs, on_progress=on_progress)
    for one in caught:
        click.echo(f"Note: {one.message}", err=True)
    summary = result.summary()
    for name, table in (("rows", result.rows), ("summary", summary)):
        write_whole(out / f"{name}.csv", table.to_csv(index=False).encode())
    terminal().print(_accuracies(summary, splits))
    click.echo(f"Written: {out / 'rows.csv'}, {out / 'summary.csv'}")


def _budget(text: str) -> float:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise ValueError(
            f"A budget is a proportion, as 0.1 is, or a whole number, as 4 is; got {text!r}."
        ) from None


def _accuracies(summary: pd.DataFrame, n_splits: int) -> Table:
    view = narrow_table("Mean balanced accuracy over tasks")
    view.add_column("labelled", justify="right")
    methods = list(dict.fromkeys(summary["method"]))
    for name in methods:
        view.add_column(name.replace("-", "-\n"), justify="right")
    for budget, part in summary.groupby("budget", sort=False):
        found = part.set_index("method")["mean_balanced_accuracy"]
        cells = [f"{found[name]:.3f}" for name in methods]
        best = max(cells)
        share = float(str(budget))
        label = f"{share:.0%}" if share < 1.0 else f"{share:.0f} each"
        view.add_row(label, *(f"[bold]{cell}[/]" if cell == best else cell for cell in cells))
    view.caption = f"{summary['n_tasks'].max()} tasks, {n_splits} splits each."
    return view

"""``crossfade study``: a table of tasks in; how accurate each method is after how many labels."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd
from rich.markup import escape
from rich.table import Table

from crossfade.cli._output import FOLDER, narrow_table, option, study_of, terminal
from crossfade.report._write import FORMATS
from crossfade.study._methods import METHODS
from crossfade.study._splits import KINDS

if TYPE_CHECKING:
    from crossfade.study import StudyResult
    from crossfade.tasks._task import TaskSet


@click.command()
@click.argument("tasks", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o",
    "--out",
    type=FOLDER,
    default=Path("study"),
    show_default=True,
    help="Folder for rows, tables, figures and report.html; a study that was stopped there goes "
    "on.",
)
@click.option(
    "--methods",
    default="target,average-source,paper,convex,posterior,lda,oracle",
    show_default=True,
    help=f"Of {', '.join(METHODS)}.",
)
@click.option(
    "--budgets",
    default="0.05,0.1,0.2,0.5",
    show_default=True,
    help="What is labelled: proportions of the smallest class, or windows of each class.",
)
@option("--splits", click.IntRange(1), 100, "Splits of each task and budget.")
@option(
    "--kind",
    click.Choice(KINDS),
    "consecutive",
    "Which windows are labelled: a run with a random start, the first, or any.",
)
@option("--jobs", click.IntRange(1), 1, "Processes; the result does not depend on them.")
@click.option("--dask", metavar="ADDRESS", help="Dask scheduler whose workers do the work.")
@option("--seed", click.IntRange(0), 0, "Seed of the random numbers.")
@click.option("--title", help="Title of the report.")
@click.option(
    "--format",
    "formats",
    type=click.Choice(FORMATS),
    multiple=True,
    default=("png",),
    show_default=True,
    help="Format of the figures; give it again for more.",
)
def study(
    tasks: Path,
    out: Path,
    methods: str,
    budgets: str,
    splits: int,
    kind: str,
    jobs: int,
    dask: str | None,
    seed: int,
    title: str | None,
    formats: tuple[str, ...],
) -> None:
    """Leave each participant of TASKS out in turn, label a few windows, and count the errors.

    Writes rows, tables, figures and a report to read. What is finished is kept: the same command
    goes on where it was stopped, and one with more methods computes those alone.

    \b
    Examples:
      crossfade study tasks.parquet --jobs 2
      crossfade study tasks.csv -o few --budgets 1,2,4,8 --methods lda,posterior
      crossfade study three.csv --methods pairwise,lda --budgets 2,4,8
      crossfade study tasks.parquet --kind chronological --dask tcp://10.0.0.1:8786
    """
    from crossfade.tasks._task import read_tasks

    run_study(
        lambda: read_tasks(tasks),
        out,
        methods=[name.strip() for name in methods.split(",")],
        budgets=budgets,
        n_splits=splits,
        kind=kind,
        jobs=jobs,
        dask=dask,
        seed=seed,
        title=title or f"Calibration study of {tasks.name}",
        formats=formats,
    )


def run_study(
    load: Callable[[], TaskSet],
    out: Path,
    *,
    methods: Sequence[str],
    title: str,
    budgets: str = "0.05,0.1,0.2,0.5",
    n_splits: int = 100,
    kind: str = "consecutive",
    jobs: int = 1,
    dask: str | None = None,
    seed: int = 0,
    paper: pd.DataFrame | None = None,
    formats: Sequence[str] = ("png",),
) -> StudyResult:
    """Run a study in a folder, write its report, print its table and say where the report is."""
    from crossfade.report import write_report
    from crossfade.study import CalibrationStudy
    from crossfade.study._verdict import verdict

    new = [folder for folder in (out, *out.parents) if not os.path.exists(folder)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            with study_of("Study", out, "The same command goes on from here.") as on_progress:
                tasks = load()
                plan = CalibrationStudy(
                    tasks,
                    methods=methods,
                    budgets=[_budget(text) for text in budgets.split(",")],
                    n_splits=n_splits,
                    splits=kind,
                    random_state=seed,
                )
                result = plan.run(n_jobs=jobs, folder=out, dask=dask, on_progress=on_progress)
        finally:
            for one in caught:
                click.echo(f"Note: {one.message}", err=True)
            # A study that was refused has put nothing there.
            for folder in new:
                with suppress(OSError):
                    folder.rmdir()
    about = {"seed": seed, "splits": kind}
    try:
        written = write_report(
            result, tasks, out, title=title, formats=formats, paper=paper, about=about
        )
    except OSError as reason:
        raise click.ClickException(f"Cannot write to {out}: {reason.strerror}.") from reason
    terminal().print(accuracies(result, paper))
    click.echo(verdict(result.rows))
    click.echo(f"Report: {written[-1]}")
    return result


def _budget(text: str) -> float:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise ValueError(
            f"A budget is a proportion, as 0.1 is, or a whole number, as 4 is; got {text!r}."
        ) from None


def accuracies(result: StudyResult, paper: pd.DataFrame | None = None) -> Table:
    """Mean balanced accuracy by budget and method; the paper's values in brackets."""
    from crossfade.study._published import published
    from crossfade.study.statistics import summarise

    table = summarise(result.rows)
    printed = published(paper).set_index(["classifier", "proportion"])["value"].to_dict()
    budgets = list(dict.fromkeys(table["budget"]))
    found = {(one["method"], one["budget"]): one for one in table.to_dict("records")}
    # The oracle has seen the answers, and means over fewer tasks are of something else.
    fair = table[(table["method"] != "oracle") & (table["n_left_out"] == 0)]
    best = fair.groupby("budget")["mean"].max().to_dict()
    has_stars = any(map(_has_star, found.values()))
    view = narrow_table("Mean balanced accuracy")
    view.add_column("labelled")
    for budget in budgets:
        view.add_column(f"{budget:.0%}" if budget < 1.0 else f"{budget:.0f} each", justify="right")
    for method in dict.fromkeys(table["method"]):
        cells = []
        for budget in budgets:
            one = found.get((method, budget))
            text = _cell(one, best.get(budget, np.nan))
            # Digits stand below digits.
            text += "*" if one and _has_star(one) else " " * has_stars
            if printed:
                value = printed.get((method, budget), np.nan)
                text += "        " if np.isnan(value) else f" ({value:.3f})"
            cells.append(text)
        view.add_row(escape(method), *cells)
    view.caption = _caption(table, result.rows["split"].nunique())
    if printed:
        view.caption += " In brackets: the paper's."
    if has_stars:
        view.caption += "\n* Over fewer tasks or splits than others: on the rest it failed."
    if "posterior-unlabelled" in set(table["method"]):
        view.caption += "\nposterior-unlabelled sees the test windows, too, without labels."
    return view


def _cell(one: Mapping[Hashable, Any] | None, best: float) -> str:
    """A mean, bold if it is the best."""
    if one is None or not one["n_tasks"]:
        return "–"
    text = f"{one['mean']:.3f}"
    is_best = not one["n_left_out"] and text == f"{best:.3f}"
    return f"[bold]{text}[/]" if is_best else text


def _has_star(one: Mapping[Hashable, Any]) -> bool:
    """Whether a mean is over fewer tasks or splits than it could be."""
    return bool(one["n_tasks"] and (one["n_left_out"] or one["n_failed"]))


def _caption(table: pd.DataFrame, n_splits: int) -> str:
    n_tasks = table.groupby("budget")["n_tasks"].max()
    least, most = int(n_tasks.min()), int(n_tasks.max())
    count = f"{most}" if least == most else f"{least} to {most}"
    return f"{count} task{'s' * (most != 1)}, {n_splits} split{'s' * (n_splits != 1)} each."

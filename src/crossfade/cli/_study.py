"""``crossfade study``: how accurate each method is after how many labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossfade._files import refuse_same_file
from crossfade.cli._options import (
    COUNT,
    FOLDER,
    PROPORTION,
    TABLE,
    jobs_option,
    listed,
    option,
    seed_option,
    table_options,
)
from crossfade.cli._output import narrow_table, plain_messages, progress, terminal

if TYPE_CHECKING:
    from crossfade.report import Findings
    from crossfade.study import StudyResult
    from crossfade.tasks import TaskSet

#: What is compared, and how much is labelled, unless the command says otherwise.
_METHODS = (
    *("hierarchical", "posterior", "paper", "average-source", "target-shrunk", "lda"),
    *("lda-pooled", "lda-calibrated"),
)
_BUDGETS = (0, 1, 2, 4, 8, 16)


def _list_methods(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print what each method is called here and in reports, and what it does; then stop."""
    if not wanted:
        return
    from crossfade.study import METHODS

    for name, method in METHODS.items():
        star = " *" * (name in _METHODS)
        click.echo(f"{name:<24}{method.label}{star}\n{'':<24}{method.text}")
    click.echo("* What a study of two classes compares by default.")
    ctx.exit()


@click.command()
@click.argument("tasks", type=TABLE)
@table_options
@option(
    "--out",
    FOLDER,
    Path("study"),
    "Folder for rows, tables, figures and report.html. A study that was stopped there is resumed.",
    short="-o",
)
@click.option("--methods", help="Names of methods, separated by commas; see --list-methods.")
@click.option(
    "--list-methods",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_methods,
    help="List the methods and exit.",
)
@click.option(
    "--budgets",
    show_default=",".join(map(str, _BUDGETS)),
    help="How much is labelled, separated by commas: windows of each class (4), of the first and "
    "of the second class (24+2), a proportion of the smallest class (0.1), or nothing (0).",
)
@option("--reach", PROPORTION, 0.75, "Balanced accuracy that a new person is to reach.")
@option("--share", PROPORTION, 0.8, "Proportion of people who must reach it.")
@option("--splits", COUNT, 100, "Splits of each task and budget.")
@option(
    "--kind",
    click.Choice(["consecutive", "chronological", "random", "next-session"]),
    "consecutive",
    "Which windows are labelled: consecutive ones from a random start, the first in time, random "
    "ones, or consecutive ones in a later session of somebody whose earlier sessions are known.",
)
@click.option(
    "--no-forecasts",
    is_flag=True,
    help="Skip the rehearsal that calibrates forecasts: faster, if only accuracy counts.",
)
@jobs_option()
@click.option(
    "--dask", metavar="ADDRESS", help="Address of a Dask scheduler, to run on its workers instead."
)
@seed_option
def study(
    tasks: Path,
    out: Path,
    methods: str | None,
    budgets: str | None,
    reach: float,
    share: float,
    splits: int,
    kind: str,
    no_forecasts: bool,
    jobs: int,
    dask: str | None,
    seed: int,
    mapping: Mapping[str, Any],
) -> None:
    """How many labelled windows does a new person need?

    Leaves each participant of TASKS out in turn, labels a few windows, and tests on the rest.
    Says after how many windows most people reach an accuracy, how accurate each method is, and how
    true its forecasts are. Writes rows, tables, figures and a report. Finished parts are kept: the
    same command resumes a study that was stopped, and with more methods it computes only the new
    ones.

    \b
    Examples:
      crossfade study tasks.parquet --reach 0.75 --share 0.8
      crossfade study tasks.csv -o few --budgets 0,2,4,24+2 --methods hierarchical,lda
      crossfade study ours.csv --task subject --label condition --drop trial,block
      crossfade study tasks.parquet --kind chronological --dask tcp://10.0.0.1:8786
    """
    from crossfade.tasks import read_tasks

    with plain_messages():
        refuse_same_file(tasks, out / "rows.csv", out / "rows.parquet")
    run_study(
        lambda: read_tasks(tasks, **mapping),
        out,
        methods=listed(methods) if methods else None,
        budgets=listed(budgets) if budgets else None,
        reach=reach,
        share=share,
        n_splits=splits,
        kind=kind,
        forecasts=not no_forecasts,
        jobs=jobs,
        dask=dask,
        seed=seed,
        title=f"Calibration study of {tasks.name}",
    )


def run_study(
    load: Callable[[], TaskSet],
    out: Path,
    *,
    title: str,
    methods: Sequence[str] | None = None,
    budgets: Sequence[str] | None = None,
    reach: float = 0.75,
    share: float = 0.8,
    n_splits: int = 100,
    kind: str = "consecutive",
    forecasts: bool = True,
    jobs: int = 2,
    dask: str | None = None,
    seed: int = 0,
) -> StudyResult:
    """Run a study in a folder, write its report, print its table and say where the report is."""
    from crossfade._validate import check_extra
    from crossfade.report import Findings, write_findings
    from crossfade.study import CalibrationStudy

    with plain_messages() as warned:
        # Better now than after the study.
        check_extra("jinja2", "plots", "A report")
        tasks = load()
        misleading = list(warned)
        plan = CalibrationStudy(
            tasks,
            methods=methods or _default_methods(tasks),
            budgets=_default_budgets(tasks) if budgets is None else [*map(_budget, budgets)],
            n_splits=n_splits,
            splits=kind,
            random_state=seed,
            forecasts=forecasts,
        )
        try:
            with progress("Study") as on_progress:
                result = plan.run(n_jobs=jobs, folder=out, dask=dask, on_progress=on_progress)
        except KeyboardInterrupt:
            click.echo("Stopped. Run the same command to resume.", err=True)
            raise
        about = {"seed": seed, "splits": kind}
        if not forecasts:
            about["forecasts"] = "without rehearsal"
        with progress("Report"):
            findings = Findings.of(result, tasks, reach, share, misleading)
            written = write_findings(findings, out, title=title, about=about)
    _print_accuracies(findings, written.accuracies)
    for text in ("", findings.headline, *(f"- {text}" for text in findings.statistics)):
        click.echo(text)
    click.echo(f"\nReport: {written.files[-1]}")
    return result


def _budget(text: str) -> float | tuple[int, ...]:
    """A budget as it is typed: 0, 4, 24+2 or 0.1."""
    try:
        if "+" in text:
            return tuple(int(part) for part in text.split("+"))
        return float(text) if "." in text else int(text)
    except ValueError:
        raise ValueError(f"A budget is a number such as 4, 24+2, 0.1 or 0; got {text!r}.") from None


def _default_methods(tasks: TaskSet) -> list[str]:
    """Methods that can tell as many classes apart as there are."""
    from crossfade.study import METHODS

    if max(len(task.classes) for task in tasks) <= 2:
        return list(_METHODS)
    return [name for name in _METHODS if METHODS[name].many]


def _default_budgets(tasks: TaskSet) -> list[int]:
    """Numbers of windows that leave at least half of the tasks some to test on."""
    import numpy as np

    smallest = np.median([np.unique(task.y, return_counts=True)[1].min() for task in tasks])
    return [count for count in _BUDGETS if count < max(smallest, 2)]


def _print_accuracies(findings: Findings, table: Any) -> None:
    """Print the report's table of accuracies, without what stands small there."""
    from rich.markup import escape

    view = narrow_table("")
    view.add_column("", overflow="fold")
    for head in table.heads[1:]:
        view.add_column(head.replace(" of each class", " each"), justify="right", no_wrap=True)
    seeing: set[str] = set()
    for row, (name, *cells) in enumerate(table.lines):
        label, _, given = name.partition("\n")
        seeing |= {given} - {""}
        shown = []
        for column, cell in enumerate(cells, 1):
            mean, _, _ = cell.partition("\n")
            shown.append(f"[bold]{mean}[/]" if (row, column) in table.best else mean)
        view.add_row(escape(label) + " †" * bool(given), *shown)
    click.echo("Mean balanced accuracy")
    terminal().print(view)
    n_splits = int(findings.result.means["n_splits"].max())
    splits = f"{n_splits} split{'s' * (n_splits != 1)}"
    click.echo(f"{findings.count(len(findings.participants))}, {splits} each.")
    if seeing:
        click.echo(f"† It {', or '.join(sorted(seeing, reverse=True))}, so it is not ranked.")
    if any("failed" in cell or " of " in cell for line in table.lines for cell in line[1:]):
        click.echo(
            "Some means are over fewer tasks or splits, since methods failed: see the report."
        )

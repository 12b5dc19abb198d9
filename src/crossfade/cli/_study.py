"""``crossfade study``: how accurate each method is after how many labels."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from crossfade.cli._options import (
    COUNT,
    PROPORTION,
    TABLE,
    jobs_option,
    option,
    out_options,
    seed_option,
    table_options,
)
from crossfade.cli._output import (
    narrow_table,
    progress,
    said_so_far,
    say_lines,
    study_of,
    terminal,
)

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from crossfade.study import Budget, StudyResult
    from crossfade.tasks import TaskSet

#: What is compared, and how much is labelled, unless the command says otherwise.
_METHODS = (
    *("hierarchical", "posterior", "paper", "average-source", "target-shrunk", "lda"),
    *("lda-pooled", "lda-calibrated", "oracle", "oracle-honest"),
)
_BUDGETS = (0, 1, 2, 4, 8, 16)
#: Budgets of the paper.
PROPORTIONS = ("0.05", "0.1", "0.2", "0.5")


def _list_methods(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print what each method is called here and in reports, and what it does; then stop."""
    if not wanted:
        return
    from rich.text import Text

    from crossfade.study import METHODS

    view = narrow_table("")
    view.show_header = False
    view.add_column("name", no_wrap=True)
    view.add_column("what")
    for name, method in METHODS.items():
        what = Text.assemble((f"{method.label}{' *' * (name in _METHODS)}", "bold"))
        view.add_row(name, what.append(f"\n{method.text}"))
    console = terminal()
    console.print(view)
    console.print("* What a study of two classes compares by default.", highlight=False)
    ctx.exit()


@click.command()
@click.argument("tasks", type=TABLE)
@table_options
@out_options(
    Path("study"),
    "Folder for rows, tables, figures and report.html. A study that was stopped there is resumed.",
    many_formats=True,
)
@click.option(
    "--methods",
    default=",".join(_METHODS),
    show_default="those with a star in that list",
    help="Names of methods, separated by commas; --list-methods lists them.",
)
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
    default=",".join(map(str, _BUDGETS)),
    show_default=True,
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
    help="Skip the replay that makes forecasts true for one person: faster, if only accuracy "
    "counts.",
)
@jobs_option()
@click.option(
    "--dask", metavar="ADDRESS", help="Address of a Dask scheduler, to run on its workers instead."
)
@seed_option
@click.option("--title", help="Title of the report.")
@click.pass_context
def study(
    context: click.Context,
    tasks: Path,
    out: Path,
    methods: str,
    budgets: str,
    reach: float,
    share: float,
    splits: int,
    kind: str,
    no_forecasts: bool,
    jobs: int,
    dask: str | None,
    seed: int,
    title: str | None,
    formats: tuple[str, ...],
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
      crossfade study three.csv --methods hierarchical,lda --budgets 2,4,8
      crossfade study tasks.parquet --kind chronological --dask tcp://10.0.0.1:8786
    """
    from crossfade.tasks import read_tasks

    run_study(
        lambda: read_tasks(tasks, **mapping),
        out,
        methods=_given(context, "methods", methods),
        budgets=_given(context, "budgets", budgets),
        reach=reach,
        share=share,
        n_splits=splits,
        kind=kind,
        forecasts=not no_forecasts,
        jobs=jobs,
        dask=dask,
        seed=seed,
        title=title or f"Calibration study of {tasks.name}",
        formats=formats,
    )


def _given(context: click.Context, name: str, text: str) -> list[str] | None:
    """Parts of an option; None if it was not given, so that it suits the tasks."""
    if context.get_parameter_source(name) is ParameterSource.DEFAULT:
        return None
    return [part.strip() for part in text.split(",")]


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
    formats: Sequence[str] = ("png",),
) -> StudyResult:
    """Run a study in a folder, write its report, print its table and say where the report is."""
    from crossfade.report import class_text, require_jinja, write_report
    from crossfade.study import CalibrationStudy, sentences

    new = [folder for folder in (out, *out.parents) if not os.path.exists(folder)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            with study_of("Study", out, "Run the same command to resume.") as on_progress:
                # Better now than after the study.
                require_jinja()
                tasks = load()
                # What may mislead is said before a long run, and not after it.
                misleading = said_so_far(caught)
                given = None if budgets is None else [budget_from(text) for text in budgets]
                plan = CalibrationStudy(
                    tasks,
                    methods=_default_methods(tasks) if methods is None else methods,
                    budgets=_default_budgets(tasks) if given is None else given,
                    n_splits=n_splits,
                    splits=kind,
                    random_state=seed,
                    forecasts=forecasts,
                )
                result = plan.run(n_jobs=jobs, folder=out, dask=dask, on_progress=on_progress)
        finally:
            said_so_far(caught)
            # A study that was refused has written nothing: its empty folders go.
            for folder in new:
                with suppress(OSError):
                    folder.rmdir()
    about = {"seed": seed, "splits": kind, "forecasts": None if forecasts else "without replay"}
    try:
        with progress("Report"):
            written = write_report(
                result,
                tasks,
                out,
                title=title,
                formats=formats,
                about=about,
                reach=reach,
                share=share,
                notes=misleading,
            )
    except OSError as reason:
        raise click.ClickException(
            f"Cannot write to {out}: {reason.strerror or reason}."
        ) from reason
    view, notes = _accuracies(result)
    click.echo("Mean balanced accuracy")
    terminal().print(view)
    for budget in given or ():
        if isinstance(budget, tuple):
            names = sorted({name for task in tasks for name in task.classes.tolist()})
            called = [class_text(tasks.class_names, name) for name in names]
            each = [f"{n} windows of {name}" for n, name in zip(budget, called, strict=True)]
            click.echo(f"{'+'.join(map(str, budget))}: {', '.join(each)}.")
    answer, *statistics = sentences(result, reach, share)
    console = terminal()
    say_lines(console, [*notes, "", answer, *(f"- {text}" for text in statistics), ""])
    say_lines(console, [f"Report: {written[-1]}"])
    return result


def budget_from(text: str) -> Budget:
    """A budget as it is typed: 0, 4, 24+2 or 0.1."""
    try:
        if "+" in text:
            return tuple(int(part) for part in text.split("+"))
        return float(text) if "." in text else int(text)
    except ValueError:
        raise ValueError(
            "A budget is a number of windows of each class, such as 4, of the first and of the "
            "second, such as 24+2, a proportion, such as 0.1, or 0 for no label; got "
            f"{text.strip()!r}."
        ) from None


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


def _accuracies(result: StudyResult) -> tuple[Table, list[str]]:
    """Mean balanced accuracy by budget and method, and notes to it."""
    from math import nan

    from rich.markup import escape

    from crossfade.plots import in_order, method_of, without_twins
    from crossfade.study.statistics import summarise

    table = summarise(result.means)
    table = table[table["method"].isin(without_twins(table["method"]))]
    budgets = in_order(table["budget"])
    found = {(one["method"], one["budget"]): one for one in table.to_dict("records")}
    # Methods that see test windows do not compete, nor do means over fewer tasks.
    seeing = {name for name in table["method"] if method_of(name).given}
    fair = table[~table["method"].isin(seeing) & (table["n_left_out"] == 0)]
    best = fair.groupby("budget")["mean"].max().to_dict()
    has_stars = any(map(_has_star, found.values()))
    view = narrow_table("")
    view.add_column("labelled", overflow="fold")
    for budget in budgets:
        view.add_column(_head(budget), justify="right", no_wrap=True)
    names = sorted(dict.fromkeys(table["method"]), key=lambda name: name in seeing)
    for place, method in enumerate(names):
        if place and (method in seeing) != (names[place - 1] in seeing):
            view.add_section()
        cells = []
        for budget in budgets:
            one = found.get((method, budget))
            text = _cell(one, nan if method in seeing else best.get(budget, nan))
            # Digits stand below digits.
            text += "*" if one and _has_star(one) else " " * has_stars
            cells.append(text)
        view.add_row(escape(method_of(method).label) + " †" * (method in seeing), *cells)
    notes = [_counts(table, int(result.means["n_splits"].max()))]
    if has_stars:
        notes.append("* Over fewer tasks or splits than the others; on the rest it failed.")
    if seeing:
        given = sorted({method_of(name).given for name in seeing}, reverse=True)
        notes.append(f"† It {', or '.join(given)}, so it does not compete.")
    return view, notes


def _head(budget: float) -> str:
    """What stands above a column of a budget."""
    from crossfade.study import budget_text

    if 0.0 < budget < 1.0:
        return f"{budget:.0%}"
    return budget_text(budget).replace(" of each class", " each") if budget else "0"


def _cell(one: Mapping[Hashable, Any] | None, best: float) -> str:
    """Mean, bold if it is the best."""
    if one is None or not one["n_tasks"]:
        return "–"
    text = f"{one['mean']:.3f}"
    is_best = not one["n_left_out"] and text == f"{best:.3f}"
    return f"[bold]{text}[/]" if is_best else text


def _has_star(one: Mapping[Hashable, Any]) -> bool:
    """Whether a mean is over fewer tasks or splits than it could be."""
    return bool(one["n_tasks"] and (one["n_left_out"] or one["n_failed"]))


def _counts(table: pd.DataFrame, n_splits: int) -> str:
    n_tasks = table.groupby("budget")["n_tasks"].max()
    least, most = int(n_tasks.min()), int(n_tasks.max())
    count = f"{most}" if least == most else f"{least} to {most}"
    return f"{count} task{'s' * (most != 1)}, {n_splits} split{'s' * (n_splits != 1)} each."

"""``crossfade tasks``: what a table of tasks holds, and whether its tasks agree."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossfade.cli._options import TABLE, table_options
from crossfade.cli._output import narrow_table, plain_messages, terminal

if TYPE_CHECKING:
    from rich.table import Table

    from crossfade.prior import TaskPrior
    from crossfade.tasks import Table as Windows
    from crossfade.tasks import Task, TaskSet

_SHOWN = 50


@click.group()
def tasks() -> None:
    """Show what a table of tasks holds, and check it. Such a table has one row for each window.

    \b
    Examples:
      crossfade tasks show tasks.parquet
      crossfade tasks check tasks.parquet
    """


@tasks.command(short_help="List the tasks of a table, and say whether they agree.")
@click.argument("file", type=TABLE)
@table_options
def show(file: Path, mapping: Mapping[str, Any]) -> None:
    """List the tasks in FILE, with windows, features and missing values, and say if they agree.

    Each task has a direction in which its two classes differ. Kappa says how much these directions
    have in common: near 0 nothing, so that a prior does not help a newcomer; at 17 (the paper's
    MATB study) so much that it helps a lot.

    \b
    Examples:
      crossfade tasks show tasks.parquet
      crossfade tasks show ours.csv --task subject,session --group subject --label condition
    """
    from crossfade.exceptions import DroppedWindowsWarning
    from crossfade.tasks import Columns, TaskSet, names_of, open_table, recognised, split

    columns = Columns(**mapping)
    with plain_messages():
        # What is missing is counted below.
        warnings.simplefilter("ignore", DroppedWindowsWarning)
        table = recognised(open_table(file, columns), columns, 1)
        found = TaskSet(split(table), names_of(table.frame))
    console = terminal()
    labels = sorted(table.frame["label"].unique())
    console.print(_by_task(table, found, labels))
    console.print(_in_all(table, found, labels))


@tasks.command(short_help="Look for what would mislead in a table.")
@click.argument("file", type=TABLE)
@table_options
@click.pass_context
def check(ctx: click.Context, file: Path, mapping: Mapping[str, Any]) -> None:
    """Look for columns and names in FILE that would mislead a study.

    Finds counters, indices, dates, constant columns, copies of the label or of each other, features
    that only drift, names that differ by white space or case, and windows that overlap. `study`,
    `prior build` and `calibrate` look for the same. Exits with code 1 if there is something that
    they refuse.

    \b
    Examples:
      crossfade tasks check tasks.csv
      crossfade tasks check ours.csv --task subject --label condition --drop trial
    """
    import numpy as np

    from crossfade.tasks import Columns, check_frame, listed, open_table, split

    columns = Columns(**mapping)
    with plain_messages():
        table = columns.of(open_table(file, columns))
        findings = check_frame(table.frame, table.features, columns.named)
        for one in findings:
            click.echo(f"{'Refused' if one.refused else 'Warning'}: {one.text} {one.remedy}")
        refused = sum(one.refused for one in findings)
        if refused:
            ctx.exit(1)
        found = split(table)
        lone = [str(task.name) for task in found if len(task.classes) == 1]
        if lone:
            click.echo(
                f"Warning: {listed(lone)} {'has' if len(lone) == 1 else 'have'} windows of one "
                "class only. `study` leaves them out; so does `prior build` with --exclude."
            )
    n_windows, n_findings = sum(np.size(task.y) for task in found), len(findings) + bool(lone)
    size = f"{len(found)} tasks, {n_windows} windows, {len(table.features)} features"
    told = f"{n_findings} to look at" if n_findings else "nothing to object to"
    click.echo(f"{table.where}: {size}; {told}.")


def _by_task(table: Windows, found: TaskSet, labels: list[object]) -> Table:
    from rich.markup import escape

    from crossfade.report import class_text

    frame, features, names = table.frame, list(table.features), found.class_names
    view = narrow_table("")
    view.add_column("task")
    if "group" in frame:
        view.add_column("group")
    for label in labels:
        view.add_column(escape(f"windows of {class_text(names, label)}"), justify="right")
    view.add_column("missing values", justify="right")
    for task in found[:_SHOWN]:
        rows = frame[frame["task"].astype(str) == task.name]
        view.add_row(
            escape(str(task.name)),
            *([escape(task.group or "")] if "group" in frame else []),
            *(str((rows["label"] == label).sum()) for label in labels),
            str(rows[features].isna().to_numpy().sum()),
        )
    if len(found) > _SHOWN:
        view.caption = f"The first {_SHOWN} of {len(found)} tasks."
    return view


def _in_all(table: Windows, found: TaskSet, labels: list[object]) -> Table:
    from rich.markup import escape

    from crossfade.report import class_text

    frame, features = table.frame, list(table.features)
    absent = frame[features].isna()
    lines = {
        "tasks": f"{len(found)}",
        "groups": f"{frame['group'].nunique()}" if "group" in frame else "",
        "windows": ", ".join(
            f"{(frame['label'] == label).sum()} of {class_text(found.class_names, label)}"
            for label in labels
        ),
        "features": f"{len(features)}: {', '.join(features[:12])}"
        + (" ..." if len(features) > 12 else ""),
        "missing values": f"{absent.to_numpy().sum()}, in {absent.any(axis=1).sum()} windows"
        if absent.to_numpy().any()
        else "none",
        **_concentrations(found),
    }
    view = narrow_table(escape(table.where))
    view.show_header = False
    view.add_column("what", no_wrap=True)
    view.add_column("found", overflow="fold")
    for what, text in lines.items():
        if text:
            view.add_row(what, escape(text))
    return view


def _concentrations(found: TaskSet) -> dict[str, str]:
    """Kappa of the tasks with two classes, in our units and the paper's, and what it means."""
    from crossfade.fisher import FisherDiscriminant
    from crossfade.prior import TaskPrior

    able = [task for task in found if _has_direction(task)]
    left_out = "" if len(able) == len(found) else f" ({len(able)} tasks with two classes)"
    if len(able) < 2:
        return {"agreement": "Unknown: it takes two tasks with two classes each."}
    paper = TaskPrior.from_tasks(able, FisherDiscriminant(shrinkage=None), None)
    ours = TaskPrior.from_tasks(able)
    return {
        "kappa": f"{ours.concentration:.2f}, with shrinkage, in common units{left_out}",
        "kappa, as in the paper": f"{paper.concentration:.2f}, with a pseudo-inverse, in raw units"
        + left_out,
        "agreement": _agreement(ours),
    }


def _agreement(prior: TaskPrior) -> str:
    """Whether the directions have more in common than unrelated ones, whose E R^2 is 1 / J."""
    compared = (
        f"the mean direction has length {prior.resultant_length:.2f}; unrelated tasks would have "
        f"about {prior.n_tasks**-0.5:.2f}, and equal ones 1"
    )
    if prior.cancels:
        return f"No: {compared}. A prior cannot help a newcomer."
    return f"Yes: {compared}. A prior can help a newcomer."


def _has_direction(task: Task) -> bool:
    import numpy as np

    X, y = np.asarray(task.X), np.asarray(task.y)
    means = [X[y == label].mean(0) for label in task.classes]
    return len(means) == 2 and bool((means[0] != means[1]).any())

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

    from crossfade.tasks import Table as Windows
    from crossfade.tasks import TaskSet

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
    have in common: near 0 nothing, so that a prior does not help a new person; at 17 (the paper's
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
    frame, features = table.frame, table.features
    names = found.class_names
    labels = {
        label: names.get(label) or (label if isinstance(label, str) else f"class {label}")
        for label in sorted(set(frame["label"]))
    }
    terminal().print(_by_task(table, found, labels))
    counts = frame["label"].value_counts()
    absent = frame[list(features)].isna().any(axis=1).sum()
    lines = {
        "tasks": f"{len(found)}",
        "groups": f"{frame['group'].nunique()}" if "group" in frame else "none",
        "windows": ", ".join(f"{counts[label]} of {name}" for label, name in labels.items())
        + f"; {absent} lack a feature" * bool(absent),
        "features": f"{len(features)}: {', '.join(features[:12])}{' ...' * (len(features) > 12)}",
        **_agreement(found),
    }
    for what, text in lines.items():
        click.echo(f"{what:<11}{text}")


def _by_task(table: Windows, found: TaskSet, labels: Mapping[object, str]) -> Table:
    """Windows of each class and missing values of each task."""
    from rich.markup import escape

    frame, features = table.frame, list(table.features)
    view = narrow_table(escape(table.where))
    for head in ("task", *(["group"] if "group" in frame else [])):
        view.add_column(head)
    for head in (*(f"windows of {name}" for name in labels.values()), "missing values"):
        view.add_column(escape(head), justify="right")
    by_name = dict(iter(frame.groupby(frame["task"].astype(str))))
    for task in found[:_SHOWN]:
        rows = by_name[str(task.name)]
        view.add_row(
            escape(str(task.name)),
            *([escape(task.group or "")] if "group" in frame else []),
            *(str((rows["label"] == label).sum()) for label in labels),
            str(rows[features].isna().to_numpy().sum()),
        )
    if len(found) > _SHOWN:
        view.caption = f"The first {_SHOWN} of {len(found)} tasks."
    return view


def _agreement(found: TaskSet) -> dict[str, str]:
    """Whether the directions have more in common than unrelated ones, whose E R^2 is 1 / J."""
    from crossfade.prior import TaskPrior

    able = [task for task in found if len(task.classes) == 2]
    try:
        prior = TaskPrior.from_tasks(able, class_means=False, replay=False)
    except ValueError:
        return {"agreement": "Unknown: it takes tasks with two classes that differ."}
    answer = "No, a prior cannot" if prior.cancels else "Yes, a prior can"
    return {
        "kappa": f"{prior.concentration:.2f} ({len(able)} tasks with two classes)",
        "agreement": f"{answer} help a new person: the mean direction has length "
        f"{prior.resultant_length:.2f}; unrelated tasks would have about "
        f"{prior.n_tasks**-0.5:.2f}, and equal ones 1.",
    }


@tasks.command(short_help="Look for what would mislead in a table.")
@click.argument("file", type=TABLE)
@table_options
@click.pass_context
def check(ctx: click.Context, file: Path, mapping: Mapping[str, Any]) -> None:
    """Look for columns and names in FILE that would mislead a study.

    `study` and `prior build` look for the same. Exits with code 1 if there is something that they
    refuse.

    \b
    Examples:
      crossfade tasks check tasks.csv
      crossfade tasks check ours.csv --task subject --label condition --drop trial
    """
    import numpy as np

    from crossfade.tasks import Columns, check_frame, open_table, split

    columns = Columns(**mapping)
    with plain_messages():
        table = columns.of(open_table(file, columns))
        findings = check_frame(table.frame, table.features, columns.named)
        for one in findings:
            click.echo(f"{'Refused' if one.refused else 'Warning'}: {one.text} {one.remedy}")
        if any(one.refused for one in findings):
            ctx.exit(1)
        found = split(table)
    lone = [str(task.name) for task in found if len(task.classes) == 1]
    if lone:
        click.echo(
            f"Warning: windows of one class only: {', '.join(lone)}. `study` leaves them out; "
            "`prior build` does with --exclude."
        )
    n_windows, n_findings = sum(np.size(task.y) for task in found), len(findings) + bool(lone)
    size = f"{len(found)} tasks, {n_windows} windows, {len(table.features)} features"
    told = f"{n_findings} to look at" if n_findings else "nothing to object to"
    click.echo(f"{table.where}: {size}; {told}.")

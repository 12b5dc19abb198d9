"""``crossfade tasks``: what a table of tasks holds, and whether its tasks agree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossfade.cli._options import TABLE, table_options
from crossfade.cli._output import narrow_table, plain_messages, terminal

if TYPE_CHECKING:
    from rich.table import Table

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
    """List the tasks in FILE, with windows and features, and say whether they agree.

    Each task has a direction in which its two classes differ. Kappa measures how much these
    directions have in common: near 0 nothing, and a prior does not help a new person; at 17 (the
    paper's MATB study) a lot, and it helps much.

    \b
    Examples:
      crossfade tasks show tasks.parquet
      crossfade tasks show ours.csv --task subject,session --group subject --label condition
    """
    from crossfade.tasks import read_tasks

    with plain_messages():
        found = read_tasks(file, **mapping)
    counts = _counts(found)
    terminal().print(_by_task(found, counts))
    names = found.feature_names or ()
    total = {label: sum(one[label] for one in counts) for label in counts[0]}
    lines = {
        "tasks": f"{len(found)}",
        "groups": f"{len({task.group for task in found} - {None})}",
        "windows": ", ".join(f"{count} of {label}" for label, count in total.items()),
        "features": f"{len(names)}: {', '.join(names[:12])}{' ...' * (len(names) > 12)}",
        **_agreement(found),
    }
    for what, text in lines.items():
        click.echo(f"{what:<11}{text}")


def _counts(found: TaskSet) -> list[dict[str, int]]:
    """Windows of each class of the set, by what people call it, for each task."""
    import numpy as np

    names = found.class_names
    labels = sorted({label for task in found for label in task.classes.tolist()})
    called = {
        label: names.get(label) or (label if isinstance(label, str) else f"class {label}")
        for label in labels
    }
    each = [np.asarray(task.y).tolist() for task in found]
    return [{name: y.count(label) for label, name in called.items()} for y in each]


def _by_task(found: TaskSet, counts: list[dict[str, int]]) -> Table:
    """Windows of each class of each task."""
    from rich.markup import escape

    view = narrow_table("")
    view.add_column("task")
    view.add_column("group")
    for name in counts[0]:
        view.add_column(escape(f"windows of {name}"), justify="right")
    for task, own in list(zip(found, counts, strict=True))[:_SHOWN]:
        view.add_row(escape(str(task.name)), escape(task.group or ""), *map(str, own.values()))
    if len(found) > _SHOWN:
        view.caption = f"The first {_SHOWN} of {len(found)} tasks."
    return view


def _agreement(found: TaskSet) -> dict[str, str]:
    """Whether the directions have more in common than unrelated ones, whose E R^2 is 1 / J."""
    from crossfade.crowd import TaskPrior

    able = [task for task in found if len(task.classes) == 2]
    try:
        prior = TaskPrior.from_tasks(able, rehearse=False)
    except ValueError:
        return {"agreement": "Unknown: it takes tasks with two classes that differ."}
    answer = "No, a prior cannot" if prior.cancels else "Yes, a prior can"
    return {
        "kappa": f"{prior.concentration:.2f} ({len(able)} tasks with two classes)",
        "agreement": f"{answer} help a new person: the mean direction has length "
        f"{prior.resultant_length:.2f}; unrelated tasks would have about "
        f"{prior.n_tasks**-0.5:.2f}, and equal ones 1.",
    }


@tasks.command(short_help="Check a table for misleading columns and names.")
@click.argument("file", type=TABLE)
@table_options
def check(file: Path, mapping: Mapping[str, Any]) -> None:
    """Check FILE for columns and names that would mislead a study.

    `study` and `prior build` run the same checks. Exits with code 1 if there is something that they
    refuse.

    \b
    Examples:
      crossfade tasks check tasks.csv
      crossfade tasks check ours.csv --task subject --label condition --drop trial
    """
    import numpy as np

    from crossfade.tasks import read_tasks

    with plain_messages() as warned:
        found = read_tasks(file, **mapping)
    lone = [str(task.name) for task in found if len(task.classes) == 1]
    if lone:
        click.echo(
            f"Warning: windows of one class only: {', '.join(lone)}. `study` leaves them out; "
            "`prior build` does with --exclude.",
            err=True,
        )
    n_windows, n_findings = sum(np.size(task.y) for task in found), len(warned) + bool(lone)
    size = f"{len(found)} tasks, {n_windows} windows, {len(found.feature_names or ())} features"
    click.echo(
        f"{file}: {size}; {f'{n_findings} to look at' if n_findings else 'nothing to object to'}."
    )

"""``crossfade tasks``: what a table of tasks holds, and whether its tasks agree."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossfade.cli._options import FILE
from crossfade.cli._output import narrow_table, terminal
from crossfade.cli._windows import first_row_of

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from crossfade.prior import TaskPrior
    from crossfade.tasks import Task, TaskSet

_SHOWN = 50


@click.group()
def tasks() -> None:
    """Show what a table of tasks holds. Such a table has one row for each window.

    \b
    Example:
      crossfade tasks show tasks.parquet
    """


@tasks.command(short_help="List the tasks of a table, and say whether they agree.")
@click.argument("file", type=FILE)
def show(file: Path) -> None:
    """List the tasks in FILE, with windows, features and missing values, and say if they agree.

    Kappa is the concentration of the tasks' directions: near 0 they have nothing in common, and a
    prior does not help a newcomer; at 17 (the paper's MATB study) it helps a lot.

    \b
    Example:
      crossfade tasks show tasks.parquet
    """
    from crossfade.tasks import TaskSet
    from crossfade.tasks._table import read_frame, tasks_of

    try:
        frame = read_frame(file)
        with warnings.catch_warnings():
            # What is missing is counted below.
            warnings.simplefilter("ignore", UserWarning)
            found = TaskSet(tasks_of(frame, "drop", str(file), first_row_of(file)))
    except (ValueError, OSError, ImportError) as reason:
        raise click.ClickException(str(reason)) from reason
    console = terminal()
    labels = sorted(frame["label"].unique())
    console.print(_by_task(frame, found, labels))
    console.print(_in_all(frame, found, labels, str(file)))


def _by_task(frame: pd.DataFrame, found: TaskSet, labels: list[object]) -> Table:
    from rich.markup import escape

    from crossfade.tasks._table import RESERVED

    features = [name for name in frame.columns if name not in RESERVED]
    view = narrow_table("")
    view.add_column("task")
    if "group" in frame:
        view.add_column("group")
    for label in labels:
        view.add_column(escape(f"windows of {label}"), justify="right")
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


def _in_all(frame: pd.DataFrame, found: TaskSet, labels: list[object], name: str) -> Table:
    from rich.markup import escape

    from crossfade.tasks._table import RESERVED

    features = [column for column in frame.columns if column not in RESERVED]
    absent = frame[features].isna()
    lines = {
        "tasks": f"{len(found)}",
        "groups": f"{frame['group'].nunique()}" if "group" in frame else "",
        "windows": ", ".join(f"{(frame['label'] == label).sum()} of {label}" for label in labels),
        "features": f"{len(features)}: {', '.join(features[:12])}"
        + (" ..." if len(features) > 12 else ""),
        "missing values": f"{absent.to_numpy().sum()}, in {absent.any(axis=1).sum()} windows",
        **_concentrations(found),
    }
    view = narrow_table(escape(name))
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
        return {"kappa": "needs two tasks with two classes each"}
    paper = TaskPrior.from_tasks(able, FisherDiscriminant(shrinkage=None), None)
    ours = TaskPrior.from_tasks(able)
    return {
        "kappa": f"{ours.concentration:.2f}, shrunk, features in common units{left_out}",
        "kappa, paper's": f"{paper.concentration:.2f}, pseudo-inverse, raw units{left_out}",
        "agreement": _agreement(ours),
    }


def _agreement(prior: TaskPrior) -> str:
    """Whether the directions have more in common than unrelated ones, whose E R^2 is 1 / J."""
    compared = (
        f"R is {prior.resultant_length:.2f}; unrelated tasks would have about "
        f"{prior.n_tasks**-0.5:.2f}"
    )
    if prior.cancels:
        return f"none: {compared}, so a prior cannot help a newcomer"
    return f"yes: {compared}, so a prior can help a newcomer"


def _has_direction(task: Task) -> bool:
    import numpy as np

    X, y = np.asarray(task.X), np.asarray(task.y)
    means = [X[y == label].mean(0) for label in task.classes]
    return len(means) == 2 and bool((means[0] != means[1]).any())

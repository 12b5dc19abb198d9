"""A table of windows in, tasks out; what goes wrong becomes a message."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import numpy as np

from crossfade.tasks._table import read_frame, suffix_of, tasks_of
from crossfade.tasks._task import Task, TaskSet

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OUT = click.Path(dir_okay=False, path_type=Path)


@contextmanager
def plain_messages() -> Iterator[None]:
    """Turn what goes wrong into a message, and warnings into notes on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        except (ValueError, TypeError, ImportError, OSError) as reason:
            raise click.ClickException(str(reason)) from reason
        finally:
            for one in caught:
                click.echo(f"Note: {one.message}", err=True)


def read_windows(path: Path) -> TaskSet:
    """Labelled windows; a table without a column `task` is one task, called as its file."""
    frame = read_frame(path)
    if "task" not in frame:
        frame.insert(0, "task", path.stem)
    return TaskSet(tasks_of(frame, "drop", str(path), first_row_of(path)))


def first_row_of(path: Path) -> int:
    """What to call the first row: the second line of a CSV file."""
    return 2 * (suffix_of(path) == ".csv")


def counts_of(task: Task) -> str:
    """How many windows of each class, in words."""
    labels = np.asarray(task.y).tolist()
    return ", ".join(f"{labels.count(name)} of {name!r}" for name in task.classes.tolist())

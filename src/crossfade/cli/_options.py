"""Options that several commands share, so that one word means one thing everywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class _TablePath(click.Path):
    """A table to write, whose format is that of its ending."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        if not str(path).lower().endswith((".csv", ".parquet")):
            self.fail(f"a table ends in .csv or .parquet; got {str(path)!r}.", param, ctx)
        if str(path).lower().endswith(".parquet") and find_spec("pyarrow") is None:
            self.fail("Parquet needs pyarrow. Install crossfade[tables].", param, ctx)
        return path


#: A file to read, a table to read (- is standard input), a file, a table, a folder to write.
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
TABLE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
OUT = click.Path(dir_okay=False, path_type=Path)
TABLE_OUT = _TablePath(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
COUNT = click.IntRange(1)
PROPORTION = click.FloatRange(0.0, 1.0, min_open=True)

_COLUMNS = {
    "task": "Column with the participant or session [default: task]; several are joined, as in "
    "subject,session.",
    "group": "Column with the person [default: group].",
    "label": "Column with the class of the window [default: label].",
    "start": "Column with the start of the window, in seconds [default: start].",
    "drop": "Columns that are not features, such as trial,block; patterns such as 'trial*' work.",
    "columns": "Columns that are features, such as 'F*,Cz_alpha'; all others by default.",
}


def option(
    name: str, kind: Any, default: Any, text: str, *, short: str = "", **more: Any
) -> Decorator:
    """Option that shows its default, if it has one."""
    names = [short, name] if short else [name]
    return click.option(
        *names, type=kind, default=default, show_default=default is not None, help=text, **more
    )


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say which column of a table is what, as the one argument `mapping`."""

    @wraps(command)
    def call(*args: Any, **given: Any) -> Any:
        mapping: dict[str, Any] = {}
        for name in _COLUMNS:
            text = given.pop(name)
            if text is not None and name in ("task", "drop", "columns"):
                mapping[name] = listed(text)
            elif text is not None:
                mapping[name] = text
        return command(*args, mapping=mapping, **given)

    for name, text in reversed(_COLUMNS.items()):
        call = click.option(f"--{name}", metavar="COLUMN", help=text)(call)
    return call


def listed(text: str) -> list[str]:
    """Parts of a text that are separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def jobs_option(text: str = "Number of processes; the result does not depend on it.") -> Decorator:
    """Option ``--jobs``, with the same default everywhere."""
    return option("--jobs", COUNT, 2, text)


seed_option = option("--seed", click.IntRange(0), 0, "Seed of the random numbers.")


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for one in reversed(options):
            command = one(command)
        return command

    return decorate

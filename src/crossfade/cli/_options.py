"""Options that several commands share. Nothing here loads more than click."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class _Folder(click.Path):
    """A folder to write to, which cannot be standard output."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if str(value) == "-":
            self.fail("several files are written; name a folder, such as results.", param, ctx)
        return Path(os.fsdecode(super().convert(value, param, ctx)))


#: A file to read, a file to write (- is standard output), and a folder to write to.
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
#: A table to read; "-" is standard input.
TABLE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
OUT = click.Path(dir_okay=False, allow_dash=True, path_type=Path)
FOLDER = _Folder(file_okay=False, path_type=Path)
COUNT = click.IntRange(1)
PROPORTION = click.FloatRange(0.0, 1.0, min_open=True)
#: Formats of figures, those of :func:`crossfade.report.write_report`.
FORMATS = ("png", "pdf", "svg")


def option(
    name: str, kind: click.ParamType[Any], default: Any, text: str, **more: Any
) -> Decorator:
    """Option that shows its default."""
    shown = default is not None and default != ()
    return click.option(name, type=kind, default=default, show_default=shown, help=text, **more)


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for one in reversed(options):
            command = one(command)
        return command

    return decorate


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say which column of a table is what, as the one argument `mapping`."""
    helps = {
        "task": "Column with the participant or session [default: task]; several are joined, as in "
        "subject,session.",
        "group": "Column with the person [default: group].",
        "label": "Column with the class of the window [default: label].",
        "start": "Column with the start of the window, in seconds [default: start].",
        "drop": "Columns that are not features, separated by commas; patterns such as 'trial*' "
        "work, too.",
        "columns": "Columns that are features, such as 'F*,Cz_alpha'; by default all that are not "
        "named above.",
    }

    @wraps(command)
    def call(*args: Any, **given: Any) -> Any:
        texts = {name: given.pop(name) for name in helps}
        mapping: dict[str, Any] = {
            name: texts[name] for name in ("group", "label", "start") if texts[name] is not None
        }
        lists = {"task": [texts["task"] or ""], "drop": texts["drop"], "columns": texts["columns"]}
        for name, parts in lists.items():
            wanted = [one.strip() for part in parts for one in part.split(",") if one.strip()]
            if wanted:
                mapping[name] = wanted
        return command(*args, mapping=mapping, **given)

    options = (
        click.option(f"--{name}", metavar="COLUMN", multiple=name in ("drop", "columns"), help=text)
        for name, text in helps.items()
    )
    return together(*options)(call)


def jobs_option(text: str = "Number of processes; the result does not depend on it.") -> Decorator:
    """Option ``--jobs``, with the same default everywhere."""
    return option("--jobs", COUNT, 2, text)


seed_option = option("--seed", click.IntRange(0), 0, "Seed of the random numbers.")


def out_options(default: Path, text: str, *, many_formats: bool = False) -> Decorator:
    """Options ``--out`` and ``--format`` of a command that writes tables and figures."""
    more = {"multiple": True, "default": ("png",)} if many_formats else {"default": "png"}
    return together(
        click.option("-o", "--out", type=FOLDER, default=default, show_default=True, help=text),
        click.option(
            "--format",
            "formats" if many_formats else "image_format",
            type=click.Choice(FORMATS),
            show_default=True,
            help="Format of the figures; repeat it for several."
            if many_formats
            else "Format of the figure.",
            **more,
        ),
    )

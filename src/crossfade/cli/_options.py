"""Options that several commands share. Nothing here loads more than click."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

#: A file to read, a file to write, and a folder to write to.
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OUT = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
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

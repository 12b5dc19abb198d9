"""What all commands share: progress on standard error, files in a folder, numbers in cells."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from crossfade._atomic import write_whole
from crossfade.report._write import FORMATS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

#: A folder to write to, made if need be.
FOLDER = click.Path(file_okay=False, path_type=Path)


def terminal() -> Console:
    """Console on standard output; wide enough for the tables where nothing says how wide it is."""
    console = Console()
    known = console.is_terminal or "COLUMNS" in os.environ
    return console if known else Console(width=100)


def narrow_table(title: str) -> Table:
    """Table without lines between its columns, so that many fit."""
    return Table(
        title=title, box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0)
    )


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


def repeat_options(default: int) -> Decorator:
    """Options ``--repeats``, ``--jobs`` and ``--seed``."""
    return together(
        option("--repeats", click.IntRange(2), default, "Repeats of each cell."),
        option("--jobs", click.IntRange(1), 1, "Processes; the result does not depend on them."),
        option("--seed", click.IntRange(0), 0, "Seed of the random numbers."),
    )


out_options = together(
    option("--out", FOLDER, Path("results"), "Folder for table and picture; made if need be."),
    click.option(
        "--format",
        "image_format",
        type=click.Choice(FORMATS),
        default="png",
        show_default=True,
        help="Format of the picture.",
    ),
)


@contextmanager
def study_of(
    text: str, out: Path, when_stopped: str = "Nothing was written."
) -> Iterator[Callable[[int, int], None]]:
    """Make the folder, show a bar on standard error, and turn what goes wrong into a message.

    Yields what to call with the pieces of work finished and their total.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / ".crossfade", b"")
        (out / ".crossfade").unlink()
    except OSError as reason:
        raise _cannot_write(out, reason) from reason
    try:
        with progress(text) as on_progress:
            yield on_progress
    except (ValueError, ImportError) as reason:
        raise click.UsageError(str(reason)) from reason
    except OSError as reason:
        raise click.ClickException(str(reason)) from reason
    except KeyboardInterrupt:
        click.echo(f"Stopped. {when_stopped}", err=True)
        raise


@contextmanager
def progress(text: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error.

    Yields what to call with the pieces of work finished and their total.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda finished, total: bar.update(task, completed=finished, total=total)


def _cannot_write(out: Path, reason: OSError) -> click.ClickException:
    return click.ClickException(
        f"Cannot write to {out}: {reason.strerror}. Choose another folder with --out."
    )


def write_results(
    table: pd.DataFrame,
    draw: Callable[[], Figure],
    out: Path,
    name: str,
    image_format: str,
) -> str:
    """Write the table and the picture; return a line that says where they are."""
    written = [out / f"{name}.csv"]
    try:
        write_whole(written[0], table.to_csv(index=False).encode())
        figure = draw()
        content = io.BytesIO()
        figure.savefig(content, format=image_format, dpi=150)
        written.append(out / f"{name}.{image_format}")
        write_whole(written[1], content.getvalue())
    except ModuleNotFoundError as reason:
        if not (reason.name or "").startswith("matplotlib"):
            raise
        click.echo("No picture: matplotlib is missing. Install crossfade[plots].", err=True)
    except OSError as reason:
        raise _cannot_write(out, reason) from reason
    return "Written: " + ", ".join(str(path) for path in written)

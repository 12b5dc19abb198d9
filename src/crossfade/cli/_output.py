"""What all commands share: progress on standard error, files in a folder, numbers in cells."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from crossfade._files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

FORMATS = ("png", "pdf", "svg")


def terminal() -> Console:
    """Console on standard output; wide where nobody looks at it as it comes."""
    console = Console()
    return console if console.is_terminal else Console(width=100)


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


_FOLDER = click.Path(file_okay=False, path_type=Path)
out_options = together(
    option("--out", _FOLDER, Path("results"), "Folder for table and picture; made if need be."),
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
def progress_bar(text: str) -> Iterator[Callable[[int, int], None]]:
    """Bar on standard error; yields what to call with finished and total."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda finished, total: bar.update(task, completed=finished, total=total)


def write_results(
    table: pd.DataFrame,
    draw: Callable[[], Figure],
    out: Path,
    name: str,
    image_format: str,
) -> list[Path]:
    """Write the table and the picture; return where they are."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        paths = [out / f"{name}.csv"]
        write_whole(paths[0], table.to_csv(index=False).encode())
    except OSError as reason:
        raise click.ClickException(
            f"Cannot write to {out}: {reason.strerror}. Choose another folder with --out."
        ) from reason
    try:
        figure = draw()
    except ModuleNotFoundError as reason:
        if not (reason.name or "").startswith("matplotlib"):
            raise
        click.echo("No picture: matplotlib is missing. Install crossfade[plots].", err=True)
        return paths
    content = io.BytesIO()
    figure.savefig(content, format=image_format, dpi=150)
    paths.append(out / f"{name}.{image_format}")
    write_whole(paths[1], content.getvalue())
    return paths


def say_where(paths: list[Path]) -> None:
    """Name the files that were written."""
    click.echo("Written: " + ", ".join(str(path) for path in paths))

"""Output of commands: tables, progress, and messages instead of tracebacks."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from crossfade._typing import Progress


def terminal() -> Console:
    """Console for tables; 100 columns wide where nothing says how wide."""
    from rich.console import Console

    console = Console()
    known = console.is_terminal or "COLUMNS" in os.environ
    return console if known else Console(width=100)


def narrow_table(title: str) -> Table:
    """Table without lines between its columns, so that many fit."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(
        title=title, box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0)
    )


@contextmanager
def plain_messages() -> Iterator[list[str]]:
    """Print refusals as one message, and warnings as notes; yields the warnings about a table."""
    said: set[str] = set()
    tables: list[str] = []

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        text, is_table = str(message), category.__name__ == "TableWarning"
        if text in said:
            return
        said.add(text)
        if is_table:
            tables.append(text)
        click.echo(f"{'Warning' if is_table else 'Note'}: {text}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        try:
            yield tables
        except (ValueError, TypeError, ImportError, OSError) as reason:
            raise click.ClickException(str(reason)) from reason


@contextmanager
def progress(text: str, every: float = 10.0) -> Iterator[Progress]:
    """Show progress on standard error: a bar in a terminal, else lines; yields what to call."""
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        from rich import progress as bars

        columns = (
            bars.TextColumn("{task.description}"),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TimeRemainingColumn(),
        )
        with bars.Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(text, total=None)
            yield lambda finished, total: bar.update(task, completed=finished, total=total)
        return
    begun, stopped = time.monotonic(), Event()
    now = {"finished": 0, "total": 0}

    def say_lines() -> None:
        while not stopped.wait(every):
            finished, total = now.values()
            what = f"{finished} of {total} ({finished / total:.0%})" if total else "at work"
            click.echo(f"{text}: {what} after {time.monotonic() - begun:.0f} s", err=True)

    Thread(target=say_lines, daemon=True).start()
    try:
        yield lambda finished, total: now.update(finished=finished, total=total)
    finally:
        stopped.set()

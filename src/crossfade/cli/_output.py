"""What commands say and write: tables, progress, messages instead of tracebacks, results."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import click

from crossfade._files import check_writable, write_whole

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Progress = Callable[[int, int], None]

#: Seconds between two lines of progress in a log, after which there is one in any case, and between
#: two looks whether it is time.
_EVERY, _AT_LEAST_EVERY, _LOOK_EVERY = 10.0, 25.0, 5.0


def terminal(out: Path | None = None) -> Console:
    """Console for what is said beside a file; 100 columns wide where nothing says how wide."""
    from rich.console import Console

    console = Console(stderr=is_stdout(out))
    known = console.is_terminal or "COLUMNS" in os.environ
    return console if known else Console(width=100, stderr=is_stdout(out))


def is_stdout(out: Path | None) -> bool:
    """Whether a command writes its file to standard output."""
    return out is not None and str(out) == "-"


def write_out(out: Path, content: bytes) -> None:
    """Write the one file of a command."""
    if is_stdout(out):
        click.echo(content, nl=False)
    else:
        write_whole(out, content)


def say(out: Path | None, text: str) -> None:
    """Say something beside a file: on standard error, where that is on standard output."""
    if is_stdout(out):
        text = text.replace("Written: -", "Written to standard output")
    click.echo(text, err=is_stdout(out))


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
def study_of(
    text: str, out: Path, when_stopped: str = "Nothing was written."
) -> Iterator[Progress]:
    """Make the folder, show progress, and turn what goes wrong into a message.

    Yields what to call with the pieces of work finished and their total.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        check_writable(out / ".crossfade")
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
def progress(
    text: str, console: Console | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """Show progress on standard error: a bar in a terminal, a line now and then in a log.

    Yields what to call with the pieces of work finished and their total.
    """
    from rich.console import Console

    console = console or Console(stderr=True)
    if not console.is_terminal:
        log = _Log(text, console, clock)
        stopped = Event()
        Thread(target=log.keep_alive, args=(stopped,), daemon=True).start()
        try:
            yield log.on_progress
        finally:
            stopped.set()
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda finished, total: bar.update(task, completed=finished, total=total)


class _Log:
    """Progress as lines: none in the first seconds, then one every few, and one at the end.

    Where a piece of work takes long, a line every half minute says that it goes on.
    """

    def __init__(self, text: str, console: Console, clock: Callable[[], float]) -> None:
        self.text, self.console, self.clock = text, console, clock
        self.begun = self.said = clock()
        self.finished = self.total = 0

    def on_progress(self, finished: int, total: int) -> None:
        self.finished, self.total = finished, total
        now = self.clock()
        is_end = finished == total and self.said > self.begun
        if now - self.said >= _EVERY or is_end:
            self.say(now)

    def say(self, now: float) -> None:
        """Write a line."""
        self.said = now
        what = "at work"
        if self.total:
            what = f"{self.finished} of {self.total} ({self.finished / self.total:.0%})"
        line = f"{self.text}: {what} after {now - self.begun:.0f} s"
        self.console.print(line, highlight=False, soft_wrap=True)

    def keep_alive(self, stopped: Event) -> None:
        """Write a line where none was written for long, until the work is done."""
        while not stopped.wait(_LOOK_EVERY):
            now = self.clock()
            if now - self.said >= _AT_LEAST_EVERY:
                self.say(now)


def _cannot_write(out: Path, reason: OSError) -> click.ClickException:
    why = (reason.strerror or str(reason)).rstrip(".")
    return click.ClickException(f"Cannot write to {out}: {why}. Choose another folder with --out.")

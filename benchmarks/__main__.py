"""Run the benchmarks and print one table: ``python -m benchmarks [NAME ...] [--json FILE]``."""

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks import (
    alpha,
    calibration,
    device,
    fits,
    live,
    live_page,
    memory,
    prior,
)
from benchmarks.measure import Row


def _arguments(names):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; or all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here too")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(names))
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]}; there are {', '.join(names)}")
    return arguments


def _table(rows):
    table = Table(title="Crossfade against its targets: ratios within this run")
    for column in ("what", "measured", "target", "reached"):
        table.add_column(column)
    for row in rows:
        reached = "[green]yes[/]" if row.reached else "[red]no[/]"
        table.add_row(
            escape(row.what), escape(row.measured), row.target, reached if row.target else ""
        )
    return table


def _rows_of(name, benchmark, show):
    """Rows of a benchmark as they come; the last says what is not installed, if anything."""
    try:
        yield from benchmark(show)
    except ImportError as reason:
        said = f"{str(reason).rstrip('.')}. make bench installs it"
        yield Row(name, said, "runs", False, float("nan"))


def main():
    """Run what was asked for."""
    benchmarks = {
        "alpha": alpha.run,
        "fit": fits.run_fits,
        "predict": fits.run_predict,
        "device": device.run,
        "partial": fits.run_partial_fit,
        "classes": fits.run_many_classes,
        "commands": fits.run_commands,
        "growth": fits.run_growth,
        "prior": prior.run,
        "study": calibration.run,
        "advice": live.run_advice,
        "live": live.run_session,
        "returning": live.run_returning,
        "memory": memory.run,
        "page": live_page.run,
    }
    arguments = _arguments(benchmarks)
    rows = []
    columns = (TextColumn("{task.description:8}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bars:
        for name in arguments.names or benchmarks:
            bar = bars.add_task(name, total=1.0)

            def show(done, bar=bar):
                bars.update(bar, completed=done)

            for row in _rows_of(name, benchmarks[name], show):
                rows.append(row)
                bars.console.print(f"{row.what}: {row.measured}", markup=False, highlight=False)
            show(1.0)
    console = Console()
    console = console if console.is_terminal else Console(width=120)
    console.print(_table(rows))
    if arguments.json:
        written = arguments.json.with_name(arguments.json.name + ".part")
        written.write_text(json.dumps([row._asdict() for row in rows], indent=1) + "\n")
        written.replace(arguments.json)


if __name__ == "__main__":
    main()

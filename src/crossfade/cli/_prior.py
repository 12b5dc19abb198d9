"""``crossfade prior``: build a prior from tasks; show, merge, check and release it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossfade._files import check_writable, refuse_same_file
from crossfade._validate import check_scale
from crossfade.cli._options import FILE, OUT, TABLE, table_options
from crossfade.cli._output import is_stdout, plain_messages, say, write_out
from crossfade.cli._windows import read_lone_tasks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from crossfade.prior import TaskPrior

_OUT = click.option(
    "-o", "--out", type=OUT, required=True, help="Prior file to write; - is standard output."
)


@click.group()
def prior() -> None:
    """Build, show, merge, check and release priors.

    A prior is what many tasks have in common: a file of sums, without anybody's recordings.

    \b
    Examples:
      crossfade prior build tasks.parquet -o prior.npz --made-by "Lab A"
      crossfade prior show prior.npz
      crossfade prior merge lab-a.npz lab-b.npz -o both.npz
      crossfade prior check prior.npz few.csv
      crossfade prior release prior.npz --epsilon 1 --delta 1e-5 --ledger ledger.json -o public.npz
    """


@prior.command(short_help="Build a prior from a table of tasks.")
@click.argument("tasks", type=TABLE)
@table_options
@_OUT
@click.option(
    "--scale",
    default="auto",
    show_default=True,
    help="What to divide the features by: auto (learnt from these tasks), none, or a FILE: another "
    "prior, or a table with the columns feature and scale. Only priors with the same scale can be "
    "merged.",
)
@click.option(
    "--clip",
    type=float,
    metavar="R",
    help="Largest length of anybody's class means in units of the scale: what is longer is "
    "shortened, so that a release can hold them. Choose it beforehand, not from these tasks.",
)
@click.option(
    "--exclude", multiple=True, metavar="TASK", help="Task to leave out; repeat it for several."
)
@click.option("--made-by", metavar="TEXT", help="Who made it, for the card.")
@click.option("--units", metavar="TEXT", help="Units of the features, for the card.")
@click.option("--date", metavar="TEXT", help="When it was made, for the card.")
def build(
    tasks: Path,
    out: Path,
    scale: str,
    clip: float | None,
    exclude: tuple[str, ...],
    mapping: Mapping[str, Any],
    **about: str | None,
) -> None:
    """Build a prior from the tasks in TASKS: sums over people, and nobody's windows.

    It keeps sums of the directions, of the class means, and of what forecasts were worth when each
    task played the newcomer.

    \b
    Examples:
      crossfade prior build tasks.parquet -o prior.npz --units "share of power"
      crossfade prior build ours.csv -o ours.npz --scale lab-a.npz --exclude p07
      crossfade prior build tasks.csv -o prior.npz --scale scale.csv --clip 6
    """
    from crossfade.prior import TaskPrior
    from crossfade.tasks import TaskSet, read_tasks

    with plain_messages():
        refuse_same_file(out, tasks, scale)
        found = read_tasks(tasks, **mapping)
        names = [task.name for task in found]
        unknown = [name for name in exclude if name not in names]
        if unknown:
            raise ValueError(f"There is no task {unknown[0]!r} in {tasks}; {_some(names)}")
        kept = TaskSet([task for task in found if task.name not in exclude], found.class_names)
        units = _scale_of(scale, found.feature_names or ())
        made = TaskPrior.from_tasks(kept, feature_scale=units, clip=clip)
        made = made.annotated(**{key: text for key, text in about.items() if text is not None})
        _write(made, out)
    say(out, "\n".join([made.summary(), *_limits(made), f"Written: {out}"]))


def _limits(made: TaskPrior) -> list[str]:
    """What a prior is not good for."""
    from crossfade.prior import FEW_PEOPLE

    notes = []
    if made.n_people < FEW_PEOPLE:
        notes.append(
            f"  note           {made.n_people} people are few: a forecast for one person is little "
            "more than their mean accuracy"
        )
    if made.recipe is None:
        notes.append(
            "  note           no recipe, which `crossfade live` needs for a stream: `crossfade "
            "features` writes it into Parquet tables"
        )
    return notes


@prior.command(short_help="Print the card of a prior.")
@click.argument("file", type=FILE)
def show(file: Path) -> None:
    """Print the card of the prior in FILE: tasks, features, kappa, who made it, its privacy.

    \b
    Example:
      crossfade prior show prior.npz
    """
    click.echo(_load(file).card(), nl=False)


@prior.command(short_help="Merge priors into one.")
@click.argument("files", type=FILE, nargs=-1, required=True)
@_OUT
def merge(files: tuple[Path, ...], out: Path) -> None:
    """Merge the priors in FILES into the prior of all their tasks.

    Features, classes and scale must be the same; `prior build --scale FILE` takes over a scale.
    Files of the same build are refused. Give the command priors of different people: it cannot tell
    whether two builds have somebody in common.

    \b
    Example:
      crossfade prior merge lab-a.npz lab-b.npz -o both.npz
    """
    if len(files) < 2:
        raise click.UsageError(f"Merging takes two priors or more; got {len(files)}.")
    with plain_messages():
        refuse_same_file(out, *files)
        priors = [_load(file) for file in files]
        merged: TaskPrior = reduce(add, priors)
        _write(merged, out)
    say(out, f"{merged.summary()}\nWritten: {out}")


@prior.command(short_help="Release a prior under differential privacy.")
@click.argument("file", metavar="PRIOR", type=FILE)
@click.option("--epsilon", type=float, required=True, help="Privacy budget; less protects more.")
@click.option(
    "--delta",
    type=float,
    required=True,
    help="Probability that the budget does not hold; far below 1 over the number of people.",
)
@click.option(
    "--budget",
    type=float,
    help="Epsilon that all releases of the ledger may spend together; set once.",
)
@click.option(
    "--ledger",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="File that counts every release of this population.",
)
@_OUT
def release(
    file: Path,
    epsilon: float,
    delta: float,
    budget: float | None,
    ledger: Path,
    out: Path,
) -> None:
    """Release the prior in PRIOR under differential privacy, for everybody to read.

    Adds noise to the sums and leaves out what has no bound; sessions of one group are one person.
    Class means have a bound, and are released, if the prior was built with --clip.
    A ledger stands for one population: every release that names it is charged to everybody in it,
    and with a budget, what would exceed it is refused. New people need a new ledger. Needs
    crossfade[privacy].

    \b
    Example:
      crossfade prior release prior.npz --epsilon 1 --delta 1e-5 --ledger ledger.json -o public.npz
    """
    from crossfade.prior import Ledger

    exact = _load(file)
    book = Ledger(ledger, budget)
    with plain_messages():
        refuse_same_file(out, file, ledger)
        if not is_stdout(out):
            # What is written down cannot be taken back.
            check_writable(out)
        public = exact.released(epsilon, delta, book)
        _write(public, out)
    say(out, f"{public.summary()}\nLedger: {book.summary()}\nWritten: {out}")


@prior.command(short_help="Check a prior, and whether it fits a table of windows.")
@click.argument("file", type=FILE)
@click.argument("table", type=TABLE, required=False)
@table_options
@click.pass_context
def check(ctx: click.Context, file: Path, table: Path | None, mapping: Mapping[str, Any]) -> None:
    """Check that the prior in FILE is whole, and that it fits the windows in TABLE.

    TABLE has a column `label` and the features; `task` may be left out. If something does not fit,
    the command lists it and exits with code 1.

    \b
    Examples:
      crossfade prior check prior.npz
      crossfade prior check prior.npz few.csv
    """
    from crossfade.prior import card_faults, misfits, unit_misfits

    found = _load(file)
    with plain_messages():
        wrong = card_faults(file, found)
        if table is not None:
            windows = read_lone_tasks(table, mapping)
            wrong += misfits(found, windows) or unit_misfits(found, windows)
    for reason in wrong:
        click.echo(f"{file}: {reason}")
    if wrong:
        ctx.exit(1)
    fits = "" if table is None else f", and fits {table}"
    click.echo(f"{file} is whole and valid{fits}: {found.n_tasks} tasks.")


def _load(file: Path) -> TaskPrior:
    from crossfade.prior import TaskPrior

    with plain_messages():
        return TaskPrior.load(file)


def _write(made: TaskPrior, out: Path) -> None:
    from crossfade.prior import content_of

    write_out(out, content_of(made))


def _scale_of(scale: str, names: tuple[str, ...]) -> str | NDArray[np.float64] | None:
    if scale in ("auto", "none"):
        return None if scale == "none" else scale
    from crossfade.prior import name_misfits

    path = Path(scale)
    if not path.is_file():
        raise ValueError(f"--scale must be auto, none or a file; there is no file {scale!r}.")
    if path.suffix == ".npz":
        other = _load(path)
        wanted, values = other.feature_names, other.feature_scale
    else:
        wanted, values = _scale_table(path)
    wrong = name_misfits(wanted, values.size, names, str(path))
    if wrong:
        raise ValueError(" ".join(wrong))
    return values


def _scale_table(path: Path) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Names of the features, and what each is divided by, from a CSV table."""
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype=str)
        # float() reads every digit: priors of two sites add up only if their scales are equal.
        scale = check_scale([float(number) for number in table["scale"]], len(table))
        return tuple(table["feature"]), scale
    except (KeyError, ValueError) as reason:
        raise ValueError(
            f"{path} must be a CSV table with the columns feature and scale; found: {reason}."
        ) from reason


def _some(names: list[str | None]) -> str:
    shown = ", ".join(repr(name) for name in names[:10])
    return f"its tasks are {shown}{' ...' if len(names) > 10 else ''}."

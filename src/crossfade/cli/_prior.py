"""``crossfade prior``: build a prior from tasks; show, merge and release it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossfade._files import check_writable, refuse_same_file
from crossfade.cli._options import FILE, OUT, TABLE, table_options
from crossfade.cli._output import plain_messages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from crossfade.crowd import TaskPrior

_OUT = click.option("-o", "--out", type=OUT, required=True, help="Prior file to write.")


@click.group()
def prior() -> None:
    """Build, show, merge and release priors.

    A prior is what many tasks have in common: a file of sums over people, without recordings.

    \b
    Examples:
      crossfade prior build tasks.parquet -o prior.npz --made-by "Lab A"
      crossfade prior show prior.npz
      crossfade prior merge lab-a.npz lab-b.npz -o both.npz
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
    "prior, or a CSV table with the columns feature and scale. Only priors with the same scale can "
    "be merged.",
)
@click.option(
    "--mean-norm-bound",
    type=float,
    metavar="R",
    help="Largest length of anybody's class means in units of the scale. Longer means are "
    "shortened so that they can be released. Choose it beforehand, not from these tasks.",
)
@click.option(
    "--exclude", multiple=True, metavar="TASK", help="Task to leave out; repeat it for several."
)
@click.option("--made-by", metavar="TEXT", help="Who made it, for the card.")
@click.option("--units", metavar="TEXT", help="Units of the features, for the card.")
def build(
    tasks: Path,
    out: Path,
    scale: str,
    mean_norm_bound: float | None,
    exclude: tuple[str, ...],
    mapping: Mapping[str, Any],
    **about: str | None,
) -> None:
    """Build a prior from the tasks in TASKS: sums over people, no windows.

    It keeps sums of the directions, of the class means, and of how accurate forecasts were in a
    rehearsal that leaves each task out in turn.

    \b
    Examples:
      crossfade prior build tasks.parquet -o prior.npz --units "share of power"
      crossfade prior build ours.csv -o ours.npz --scale lab-a.npz --exclude p07
      crossfade prior build tasks.csv -o prior.npz --scale scale.csv --mean-norm-bound 6
    """
    from crossfade.crowd import TaskPrior
    from crossfade.prior import FEW_PEOPLE
    from crossfade.tasks import TaskSet, read_tasks

    with plain_messages():
        refuse_same_file(out, tasks, scale)
        found = read_tasks(tasks, **mapping)
        unknown = set(exclude) - {task.name for task in found}
        if unknown:
            raise ValueError(f"There is no task {min(unknown)!r} in {tasks}.")
        kept = TaskSet([task for task in found if task.name not in exclude], found.class_names)
        lone = [str(task.name) for task in kept if len(task.classes) < 2]
        if lone:
            raise ValueError(f"Windows of one class only: {', '.join(lone)}. Use --exclude.")
        units = _scale_of(scale, found.feature_names or ())
        made = TaskPrior.from_tasks(kept, feature_scale=units, mean_norm_bound=mean_norm_bound)
        made = made.annotated(**{key: text for key, text in about.items() if text is not None})
        made.save(out)
    click.echo(made.summary())
    if made.n_people < FEW_PEOPLE:
        click.echo(
            f"  note           Fewer than {FEW_PEOPLE} people: forecasts are close to the average "
            "over people"
        )
    click.echo(f"Written: {out}")


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
        raise click.UsageError("Give two priors or more.")
    with plain_messages():
        refuse_same_file(out, *files)
        merged: TaskPrior = reduce(add, [_load(file) for file in files])
        merged.save(out)
    click.echo(f"{merged.summary()}\nWritten: {out}")


@prior.command(short_help="Release a prior under differential privacy.")
@click.argument("file", metavar="PRIOR", type=FILE)
@click.option("--epsilon", type=float, required=True, help="Privacy budget; less protects more.")
@click.option(
    "--delta",
    type=float,
    required=True,
    help="Probability that the guarantee fails. Use far less than 1 / number of people.",
)
@click.option(
    "--budget",
    type=float,
    help="Epsilon that all releases of the ledger may spend together; set once.",
)
@click.option(
    "--ledger",
    type=OUT,
    required=True,
    help="File that counts every release of this population.",
)
@_OUT
def release(
    file: Path, epsilon: float, delta: float, budget: float | None, ledger: Path, out: Path
) -> None:
    """Release the prior in PRIOR under differential privacy, for everybody to read.

    Adds noise to the sums and leaves out what has no bound; sessions of one group are one person.
    Class means have a bound, and are released, if the prior was built with --mean-norm-bound.
    A ledger stands for one population: every release that names it is charged to everybody in it,
    and releases beyond its budget are refused. New people need a new ledger. Needs
    crossfade[privacy].

    \b
    Example:
      crossfade prior release prior.npz --epsilon 1 --delta 1e-5 --ledger ledger.json -o public.npz
    """
    from crossfade.prior import Ledger

    with plain_messages():
        refuse_same_file(out, file, ledger)
        # A release that is counted but cannot be written would be lost.
        check_writable(out)
        book = Ledger(ledger, budget)
        public = _load(file).released(epsilon, delta, book)
        public.save(out)
    click.echo(f"{public.summary()}\nLedger: {book.summary()}\nWritten: {out}")


def _load(file: Path) -> TaskPrior:
    from crossfade.crowd import TaskPrior

    with plain_messages():
        return TaskPrior.load(file)


def _scale_of(scale: str, names: tuple[str, ...]) -> str | NDArray[np.float64] | None:
    """Scale of the features by the option: learnt, none, or that of a file."""
    if scale in ("auto", "none"):
        return None if scale == "none" else scale
    import numpy as np
    import pandas as pd

    if scale.endswith(".npz"):
        other = _load(Path(scale))
        wanted, values = other.feature_names or names, other.feature_scale
    else:
        table = pd.read_csv(scale, dtype=str)
        if not {"feature", "scale"} <= set(table):
            raise ValueError(f"{scale} must have the columns feature and scale.")
        # float() reads every digit: priors of two sites add up only if their scales are equal.
        try:
            wanted, values = tuple(table["feature"]), np.array([*map(float, table["scale"])])
        except ValueError as reason:
            raise ValueError(f"{scale} must have numbers in the column scale: {reason}.") from None
    if wanted != names:
        raise ValueError(f"{scale} is for the features {wanted}; the tasks have {names}.")
    return values

"""``crossfade prior``: build a prior from tasks; show, merge, check and release it."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import combinations
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossfade.cli._options import FILE, OUT
from crossfade.cli._output import plain_messages
from crossfade.cli._windows import read_windows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from crossfade.prior import TaskPrior

_OUT = click.option("-o", "--out", type=OUT, required=True, help="Prior file to write.")


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
      crossfade prior release prior.npz --epsilon 1 --delta 1e-5 -o public.npz
    """


@prior.command(short_help="Build a prior from a table of tasks.")
@click.argument("tasks", type=FILE)
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
    "--exclude", multiple=True, metavar="TASK", help="Task to leave out; repeat it for several."
)
@click.option("--made-by", metavar="TEXT", help="Who made it, for the card.")
@click.option("--units", metavar="TEXT", help="Units of the features, for the card.")
@click.option("--date", metavar="TEXT", help="When it was made, for the card.")
def build(
    tasks: Path, out: Path, scale: str, exclude: tuple[str, ...], **about: str | None
) -> None:
    """Build a prior from the tasks in TASKS: one direction each, of which only sums are kept.

    \b
    Examples:
      crossfade prior build tasks.parquet -o prior.npz --units "share of power"
      crossfade prior build ours.csv -o ours.npz --scale lab-a.npz --exclude p07
    """
    from crossfade.prior import TaskPrior
    from crossfade.tasks import read_tasks

    with plain_messages():
        found = read_tasks(tasks)
        names = [task.name for task in found]
        unknown = [name for name in exclude if name not in names]
        if unknown:
            raise ValueError(f"There is no task {unknown[0]!r} in {tasks}; {_some(names)}")
        kept = [task for task in found if task.name not in exclude]
        made = TaskPrior.from_tasks(kept, feature_scale=_scale_of(scale, found.feature_names or ()))
        made = made.annotated(**{key: text for key, text in about.items() if text is not None})
        made.save(out)
    click.echo(made.summary())
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
    Give each prior once, or its tasks would count twice.

    \b
    Example:
      crossfade prior merge lab-a.npz lab-b.npz -o both.npz
    """
    if len(files) < 2:
        raise click.UsageError(f"Merging takes two priors or more; got {len(files)}.")
    with plain_messages():
        priors = [_load(file) for file in files]
        _refuse_twins(files, priors)
        merged: TaskPrior = reduce(add, priors)
        merged.save(out)
    click.echo(merged.summary())
    click.echo(f"Written: {out}")


@prior.command(short_help="Release a prior under differential privacy.")
@click.argument("file", metavar="PRIOR", type=FILE)
@click.option("--epsilon", type=float, required=True, help="Privacy budget; less protects more.")
@click.option(
    "--delta",
    type=float,
    required=True,
    help="Probability that the budget does not hold; far below 1 over the number of tasks.",
)
@_OUT
def release(file: Path, epsilon: float, delta: float, out: Path) -> None:
    """Release the prior in PRIOR under differential privacy, for everybody to read.

    Adds noise to the sums and leaves out what has no bound. Every release of the same tasks costs
    its epsilon again. Needs crossfade[privacy].

    \b
    Example:
      crossfade prior release prior.npz --epsilon 1 --delta 1e-5 -o public.npz
    """
    exact = _load(file)
    with plain_messages():
        public = exact.released(epsilon, delta)
        public.save(out)
    click.echo(public.summary())
    click.echo(f"Written: {out}")


@prior.command(short_help="Check a prior, and whether it fits a table of windows.")
@click.argument("file", type=FILE)
@click.argument("table", type=FILE, required=False)
@click.pass_context
def check(ctx: click.Context, file: Path, table: Path | None) -> None:
    """Check that the prior in FILE is whole, and that it fits the windows in TABLE.

    TABLE has a column `label` and the features; `task` may be left out. If something does not fit,
    the command lists it and exits with code 1.

    \b
    Examples:
      crossfade prior check prior.npz
      crossfade prior check prior.npz few.csv
    """
    from crossfade.prior._archive import card_faults
    from crossfade.prior._compatibility import misfits, unit_misfits

    found = _load(file)
    with plain_messages():
        wrong = card_faults(file, found)
        if table is not None:
            windows = read_windows(table)
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


def _refuse_twins(files: tuple[Path, ...], priors: list[TaskPrior]) -> None:
    """Refuse two priors with the same numbers, whatever their cards say."""
    bare = [replace(one, about={}) for one in priors]
    for (first, one), (second, other) in combinations(zip(files, bare, strict=True), 2):
        if one == other:
            raise ValueError(
                f"{first} and {second} hold the same prior, whose tasks would count twice. Give "
                "every prior once."
            )


def _scale_of(scale: str, names: tuple[str, ...]) -> str | NDArray[np.float64] | None:
    if scale in ("auto", "none"):
        return None if scale == "none" else scale
    from crossfade.prior._compatibility import name_misfits

    path = Path(scale)
    if not path.is_file():
        raise ValueError(f"--scale must be auto, none or a file; there is no file {scale!r}.")
    if path.suffix == ".npz":
        other = _load(path)
        wanted, values = other.feature_names, other.feature_scale
    else:
        from crossfade.federated import read_scale

        wanted, values = read_scale(path)
    wrong = name_misfits(wanted, values.size, names, str(path))
    if wrong:
        raise ValueError(" ".join(wrong))
    return values


def _some(names: list[str | None]) -> str:
    shown = ", ".join(repr(name) for name in names[:10])
    return f"its tasks are {shown}{' ...' if len(names) > 10 else ''}."

"""``crossfade federate``: one prior from many sites by files, none of which shows its tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossfade._files import refuse_same_file
from crossfade.cli._options import COUNT, FILE, OUT, TABLE, option, table_options
from crossfade.cli._output import plain_messages

if TYPE_CHECKING:
    from crossfade.federation import Agreement

_AGREEMENT = click.option(
    "--agreement", type=FILE, required=True, help="File that `agree` wrote, the same at every site."
)
#: A number in a table.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
#: Parts of a prior, those of :func:`crossfade.federation.agree`.
_PARTS = (
    "within_covariance",
    "half_gap",
    "autocorrelation",
    "direction_noise",
    "class_means",
    "replay",
)


@click.group()
def federate() -> None:
    """Build one prior from many sites by a secure sum.

    Each site hands over one file. Anybody can add the files up, and learns sums over all sites, but
    nothing about a single one. Needs crossfade[federation].

    \b
    Example, three sites or more:
      crossfade federate key -o a                          # every site, for itself
      crossfade federate agree --site a.pub --site b.pub --site c.pub \\
        --scale scale.csv --classes rest arithmetic -o agreement.json
      crossfade federate mask tasks.csv --agreement agreement.json --key a.key -o a.masked
      crossfade federate sum *.masked --agreement agreement.json -o prior.npz
    """


@federate.command(short_help="Make the keys of this site for one round.")
@click.option(
    "-o",
    "--out",
    type=OUT,
    required=True,
    help="Files to write, without suffix: a is a.key and a.pub.",
)
@click.option("--name", metavar="TEXT", help="What the others call this site [default: as in -o].")
def key(out: Path, name: str | None) -> None:
    """Make the keys of this site for one round.

    The secret key (.key) stays here and is erased once it has been used; the public key (.pub)
    goes to all other sites.

    \b
    Example:
      crossfade federate key -o a --name "Hospital A"
    """
    from crossfade.federation import make_key

    with plain_messages():
        site = make_key(out, name)
    stem = out.with_suffix("") if out.suffix in (".key", ".pub") else out
    click.echo(f"Fingerprint of {site.name}: {site.code}")
    click.echo(f"Written: {stem}.key, which is secret: do not copy it, do not send it.")
    click.echo(f"Written: {stem}.pub, for whoever makes the agreement.")


@federate.command(short_help="Fix who takes part and what is summed.")
@click.option(
    "--site",
    "sites",
    type=FILE,
    multiple=True,
    required=True,
    help="Public key (.pub) of a site; repeat it for each, three at least.",
)
@click.option(
    "--scale",
    type=FILE,
    required=True,
    help="Table with the columns feature and scale; `federate scale` makes one.",
)
@click.option("--classes", nargs=2, required=True, help="The two labels in the tables of tasks.")
@click.option("-o", "--out", type=OUT, required=True, help="File to write, such as agreement.json.")
@option(
    "--min-tasks", click.IntRange(2), 10, "Fewest tasks, and fewest people, of all sites together."
)
@option("--max-tasks", COUNT, 10_000, "Most tasks of one site.")
@click.option(
    "--without",
    type=click.Choice(_PARTS),
    multiple=True,
    help="Part of a prior that is not summed; repeat it for several.",
)
@click.option(
    "--clip",
    type=float,
    metavar="R",
    help="Largest length of anybody's class means in units of the scale, so that the sum can be "
    "released with them.",
)
def agree(
    sites: tuple[Path, ...],
    scale: Path,
    classes: tuple[str, str],
    out: Path,
    min_tasks: int,
    max_tasks: int,
    without: tuple[str, ...],
    clip: float | None,
) -> None:
    """Fix who takes part and what is summed, in one file for all sites.

    Holds no data; anybody can run it. All sites compare its code by phone: if it is the same
    everywhere, nobody has put in a key that is not a site's own.

    \b
    Example:
      crossfade federate agree --site a.pub --site b.pub --site c.pub \\
        --scale scale.csv --classes rest arithmetic -o agreement.json
    """
    from crossfade import federation

    with plain_messages():
        agreement = federation.agree(
            sites,
            scale,
            _labels(classes),
            out,
            min_tasks=min_tasks,
            max_tasks=max_tasks,
            without=without,
            clip=clip,
        )
    _say_agreement(agreement)
    click.echo(f"Written: {out}. Send it to every site; all compare the code by phone.")


@federate.command(short_help="Write the masked sums of this site.")
@click.argument("tasks", type=TABLE)
@table_options
@_AGREEMENT
@click.option("--key", "key_file", type=FILE, required=True, help="Secret key (.key) of this site.")
@click.option("-o", "--out", type=OUT, required=True, help="File to write, such as a.masked.")
def mask(
    tasks: Path, agreement: Path, key_file: Path, out: Path, mapping: Mapping[str, Any]
) -> None:
    """Write the masked sums of the tasks in TASKS, the one file that leaves this site.

    Without the files of all other sites it cannot be told from random numbers. The secret key is
    erased; a new round takes a new one.

    \b
    Example:
      crossfade federate mask tasks.csv --agreement agreement.json --key a.key -o a.masked
    """
    from crossfade import federation
    from crossfade.federation._masked import refuse_masked
    from crossfade.tasks import read_tasks

    with plain_messages():
        refuse_masked(tasks)
        refuse_same_file(out, tasks)
        prior = federation.mask(read_tasks(tasks, **mapping), agreement, key_file, out)
        _say_agreement(federation.Agreement.load(agreement))
    people = "" if prior.people is None else f" of {prior.n_people} people"
    click.echo(
        f"Masked: the sums of {prior.n_tasks} tasks{people}. The secret in {key_file} is erased."
    )
    click.echo(f"Written: {out}. Hand it over once all sites above have confirmed the code.")


@federate.command("sum", short_help="Add up the masked files of all sites.")
@click.argument("files", type=FILE, nargs=-1, required=True)
@_AGREEMENT
@click.option(
    "-o", "--out", type=OUT, required=True, help="Prior file to write, such as prior.npz."
)
def add_up(files: tuple[Path, ...], agreement: Path, out: Path) -> None:
    """Add up the masked FILES of all sites, and write the prior of all their tasks.

    Needs no key and no trust: anybody who has the files gets the same prior.

    \b
    Example:
      crossfade federate sum *.masked --agreement agreement.json -o prior.npz
    """
    from crossfade.federation import sum_masked

    with plain_messages():
        refuse_same_file(out, agreement, *files)
        prior = sum_masked(files, agreement)
        prior.save(out)
    click.echo(prior.summary())
    click.echo(f"Written: {out}")


@federate.command(short_help="Propose a scale for all sites.")
@click.argument("tasks", type=TABLE)
@table_options
@click.option("-o", "--out", type=OUT, required=True, help="File to write, such as scale.csv.")
def scale(tasks: Path, out: Path, mapping: Mapping[str, Any]) -> None:
    """Propose a scale for all sites: the typical spread of each feature within a class of TASKS.

    Use tasks that may be shown, because these numbers go to every site.

    \b
    Example:
      crossfade federate scale public.csv -o scale.csv
    """
    from crossfade.federation import write_scale
    from crossfade.prior import TaskPrior
    from crossfade.tasks import read_tasks

    with plain_messages():
        refuse_same_file(out, tasks)
        found = read_tasks(tasks, **mapping)
        prior = TaskPrior.from_tasks(found, class_means=False, replay=False)
        write_scale(out, found.feature_names or (), prior.feature_scale)
    click.echo(f"Written: {out}, {prior.n_features} features. It goes into the agreement.")


def _say_agreement(agreement: Agreement) -> None:
    """Print who is in it, and the code to compare."""
    width = max(len(site.name) for site in agreement.sites)
    click.echo(f"Agreement of {len(agreement.sites)} sites, with their fingerprints:")
    for site in agreement.sites:
        click.echo(f"  {site.name:{width}}  {site.code}")
    first, second = agreement.classes
    click.echo(
        f"{agreement.n_features} features, classes {first!r} and {second!r}, at least "
        f"{agreement.min_tasks} people in all."
        + ("" if agreement.clip is None else f" Class means are clipped to {agreement.clip:g}.")
    )
    click.echo(f"Code of the agreement: {agreement.code}")


def _labels(words: tuple[str, str]) -> list[str] | list[float]:
    """Labels as a table of tasks has them: numbers if both are."""
    if not all(_NUMBER.fullmatch(word) for word in words):
        return list(words)
    return [float(word) if set(word) & set(".eE") else int(word) for word in words]

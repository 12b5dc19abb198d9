"""``crossfade federate``: one prior from many sites, none of which shows its tasks."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import click

from crossfade.cli._options import COUNT, FILE, OUT, option, together
from crossfade.cli._output import plain_messages

_scale_option = click.option(
    "--scale",
    "scale_file",
    type=FILE,
    required=True,
    help="Table with the columns feature and scale, the same at every site.",
)
_shared_options = together(
    option("--max-tasks", COUNT, 64, "Most tasks of one site; the same number at every site."),
    option("--wait", click.FloatRange(0), 600.0, "Seconds to wait for the others."),
    click.option("--insecure", is_flag=True, help="Plain HTTP beyond loopback; for tests only."),
)


@click.group()
def federate() -> None:
    """Build one prior from many sites by a secure sum.

    The server learns sums over all sites, and nobody's direction.

    \b
    Example, one server and at least three sites:
      crossfade federate scale tasks.csv -o scale.csv
      crossfade federate serve --sites 5 --scale scale.csv --classes rest task -o prior.npz
      crossfade federate join tasks.csv --scale scale.csv --server 127.0.0.1:8000 --site A
    """


@federate.command(short_help="Propose a scale for all sites.")
@click.argument("tasks", type=FILE)
@click.option("-o", "--out", type=OUT, required=True, help="File to write, such as scale.csv.")
def scale(tasks: Path, out: Path) -> None:
    """Propose a scale for all sites: the typical spread of each feature within a class of TASKS.

    Use tasks that may be shown, because these numbers go to every site.

    \b
    Example:
      crossfade federate scale public.csv -o scale.csv
    """
    from crossfade.federated import write_scale
    from crossfade.prior import TaskPrior
    from crossfade.tasks import read_tasks

    with plain_messages():
        found = read_tasks(tasks)
        prior = TaskPrior.from_tasks(found)
        write_scale(out, found.feature_names or (), prior.feature_scale)
    click.echo(f"Written: {out}, {prior.n_features} features. Send it to every site.")


@federate.command(short_help="Wait for the sites, sum, and write the prior.")
@click.option("--sites", type=int, required=True, help="Sites to wait for, at least 3.")
@_scale_option
@click.option("--classes", nargs=2, required=True, help="The two labels, in sorted order.")
@click.option("-o", "--out", type=OUT, required=True, help="File for the prior, such as prior.npz.")
@option("--address", click.STRING, "127.0.0.1:8000", "Where to listen, as host:port.")
@click.option("--certificate", type=FILE, help="The server's certificate (PEM).")
@click.option("--key", type=FILE, help="Private key of the certificate (PEM).")
@click.option("--authority", type=FILE, help="Certificate of the authority that signed (PEM).")
@option("--timeout", click.FloatRange(0.1), 60.0, "Seconds until a silent site has dropped out.")
@_shared_options
def serve(
    sites: int,
    scale_file: Path,
    classes: tuple[str, str],
    out: Path,
    address: str,
    certificate: Path | None,
    key: Path | None,
    authority: Path | None,
    timeout: float,
    max_tasks: int,
    wait: float,
    insecure: bool,
) -> None:
    """Wait for the sites, run one secure sum, and write the prior.

    The server holds no data. It learns the number of tasks, the sum of their directions and the
    sum of their outer products.

    \b
    Examples:
      crossfade federate serve --sites 5 --scale scale.csv --classes rest task -o prior.npz
      crossfade federate serve --sites 5 --scale scale.csv --classes rest task -o prior.npz \\
        --address 0.0.0.0:8000 --certificate server.pem --key server.key --authority ca.pem
    """
    with plain_messages(), _quiet_flower():
        from crossfade import federated

        _try_out(out)
        given = [file for file in (authority, certificate, key) if file is not None]
        if len(given) not in (0, 3):
            raise ValueError("TLS needs all of --certificate, --key and --authority.")
        names, numbers = federated.read_scale(scale_file)
        labels: Any = tuple(_label(word) for word in classes)
        prior = federated.serve(
            federated.Agreement(numbers, labels, names, max_tasks),
            sites,
            address=address,
            certificates=tuple(given) or None,
            insecure=insecure,
            wait=wait,
            timeout=timeout,
            report=lambda line: click.echo(line, err=True),
        )
        prior.save(out)
    click.echo(f"{prior!r}")
    click.echo(f"Written: {out}")


@federate.command(short_help="Add the tasks of this site to a federation.")
@click.argument("tasks", type=FILE)
@_scale_option
@click.option("--server", "address", required=True, help="Address of the server, as host:port.")
@click.option("--site", required=True, help="Name that the others know this site by.")
@click.option("--authority", type=FILE, help="Certificate of the server's authority (PEM).")
@click.option("-o", "--out", type=OUT, help="File for the prior of all sites.")
@_shared_options
def join(
    tasks: Path,
    scale_file: Path,
    address: str,
    site: str,
    authority: Path | None,
    out: Path | None,
    max_tasks: int,
    wait: float,
    insecure: bool,
) -> None:
    """Add the tasks of this site to a federation. Neither TASKS nor any direction leaves the site.

    \b
    Examples:
      crossfade federate join tasks.csv --scale scale.csv --server 127.0.0.1:8000 --site A
      crossfade federate join tasks.csv --scale scale.csv --server prior.example.org:8000 \\
        --site "Hospital A" --authority ca.pem -o prior.npz
    """
    with plain_messages(), _quiet_flower():
        from crossfade import federated
        from crossfade.tasks import read_tasks

        if out is not None:
            _try_out(out)
        found = read_tasks(tasks)
        names, numbers = federated.read_scale(scale_file)
        labels: Any = tuple(found[0].classes.tolist())
        click.echo(f"{site}: {len(found)} tasks, joining {address}", err=True)
        prior = federated.join(
            found,
            federated.Agreement(numbers, labels, names, max_tasks),
            site,
            address,
            root_certificates=authority,
            insecure=insecure,
            wait=wait,
        )
        if out is not None:
            prior.save(out)
    click.echo(f"{prior!r}")
    if out is not None:
        click.echo(f"Written: {out}")


def _label(word: str) -> str | int:
    """Label as a table of tasks has it: a whole number is a number."""
    return int(word) if word.lstrip("-").isdigit() else word


def _try_out(out: Path) -> None:
    """Refuse a place that cannot be written to now, since the round cannot be repeated."""
    folder = out.resolve().parent
    try:
        TemporaryFile(dir=folder).close()
    except OSError as reason:
        raise OSError(
            f"Cannot write to {folder}: {reason.strerror}. Name another file with --out."
        ) from reason


@contextmanager
def _quiet_flower() -> Iterator[None]:
    """Keep Flower's own log away: what went wrong becomes a message, in our words."""
    try:
        import flwr  # noqa: F401
    except ModuleNotFoundError as reason:
        raise ImportError("Federation needs Flower. Install crossfade[federated].") from reason
    log = logging.getLogger("flwr")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    except RuntimeError as reason:
        raise click.ClickException(str(reason)) from reason
    finally:
        log.setLevel(level)

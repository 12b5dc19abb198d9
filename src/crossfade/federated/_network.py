"""An address in, a federation out: Flower's SuperLink as a process, sites that connect to it."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from crossfade.federated._agreement import Agreement, FederationError
from crossfade.federated._apps import client_app, server_app
from crossfade.federated._site import answer_until_done
from crossfade.federated._superlink import Certificates, run_on, superlink
from crossfade.prior._task_prior import TaskPrior
from crossfade.tasks._task import Task


def serve(
    agreement: Agreement,
    n_sites: int,
    *,
    address: str = "127.0.0.1:8000",
    certificates: tuple[str | os.PathLike[str], ...] | None = None,
    insecure: bool = False,
    wait: float = 600.0,
    timeout: float = 60.0,
    report: Callable[[str], None] | None = None,
    on_message: Callable[[Any], None] | None = None,
) -> TaskPrior:
    """Run a federation until its prior is there: Flower's SuperLink, and the server's part.

    Parameters
    ----------
    agreement : Agreement
        What the federation fixed.
    n_sites : int
        Sites to wait for, at least three.
    address : str, default="127.0.0.1:8000"
        Where to listen, as host:port.
    certificates : tuple of path-like or None, default=None
        Files of the authority's certificate, the server's certificate and its key. Needed for
        any address but loopback.
    insecure : bool, default=False
        Allow plain HTTP on other addresses than loopback.
    wait, timeout, report : optional
        As in :func:`server_app`.
    on_message : callable or None, default=None
        Called with each message of Flower's that comes from a site: all that the server sees.

    Returns
    -------
    TaskPrior
        The prior of all sites that stayed.
    """
    found: list[TaskPrior] = []
    app = server_app(agreement, n_sites, found.append, wait=wait, timeout=timeout, report=report)
    host, port = _host_and_port(address)
    plain = _is_plain(host, certificates is not None, insecure)
    files = None if certificates is None else Certificates(*map(Path, certificates))
    for file in files or ():
        if not file.is_file():
            raise FileNotFoundError(f"There is no certificate file {file}.")
    with superlink(host, port, files) as secret:
        local = f"127.0.0.1:{port}" if host in ("0.0.0.0", "::") else address
        roots = None if plain or files is None else files.authority.read_bytes()
        if report:
            report(f"listening on {address}")
        with run_on(local, plain, roots, secret, on_message) as (grid, context):
            app(grid, context)
    return found[0]


def join(
    source: Task | Iterable[Task] | ArrayLike,
    agreement: Agreement,
    site: str,
    address: str,
    *,
    root_certificates: str | os.PathLike[str] | None = None,
    insecure: bool = False,
    wait: float = 600.0,
) -> TaskPrior:
    """Take part in a federation with one's own tasks, and get its prior.

    Nothing that the server sends is run: this side is the installed :func:`client_app`.

    Parameters
    ----------
    source : Task, iterable of Task, or array-like of shape (n_tasks, n_features)
        The site's tasks, or their unit directions in scaled units.
    agreement : Agreement
        What the federation fixed.
    site : str
        What the others know this site by.
    address : str
        Address of the server, as host:port.
    root_certificates : path-like or None, default=None
        Certificate of the authority that signed the server's; None is what the system trusts.
    insecure : bool, default=False
        Allow plain HTTP to other addresses than loopback.
    wait : float, default=600
        Seconds to wait for the server, and then for its next word.

    Returns
    -------
    TaskPrior
        The prior of all sites that stayed; :class:`FederationError` if there is none.
    """
    outcome: list[TaskPrior | FederationError] = []
    app = client_app(source, agreement, site, outcome.append)
    host, _ = _host_and_port(address)
    plain = _is_plain(host, root_certificates is not None, insecure)
    roots = None if root_certificates is None else Path(root_certificates).read_bytes()
    answer_until_done(app, outcome, address, plain, roots, wait)
    if not outcome:
        raise FederationError(
            f"The server at {address} said nothing for {wait:g} s. Ask whether the federation has "
            "ended, and join the next one."
        )
    if isinstance(outcome[0], FederationError):
        raise outcome[0]
    return outcome[0]


def _host_and_port(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"An address must be host:port, as 127.0.0.1:8000 is; got {address!r}.")
    return host.strip("[]"), int(port)


def _is_plain(host: str, certified: bool, insecure: bool) -> bool:
    """Whether to speak plain HTTP: on loopback without certificates, elsewhere on demand only."""
    if certified:
        return False
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback and not insecure:
        raise ValueError(
            f"{host} is not a loopback address: name the certificates, so that nobody on the way "
            "can pose as the server. (insecure allows plain HTTP for a test.)"
        )
    return True

"""A site's tasks in, a Flower ClientApp out; an agreement in, a Flower ServerApp out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from crossfade._validate import check_number
from crossfade.federated._agreement import (
    LONGEST_NAME,
    Agreement,
    FederationError,
    printable,
    sites_needed,
)
from crossfade.federated._secure import (
    COLLECT,
    CONFIGS,
    SETUP,
    STATE,
    check_request,
    client_protocol,
    secure_total,
)
from crossfade.federated._sums import local_prior, packed, unpacked
from crossfade.prior._task_prior import TaskPrior
from crossfade.tasks._task import Task

if TYPE_CHECKING:
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp

_RECORD = "crossfade"
_SENT = "crossfade_sent"


def client_app(
    source: Task | Iterable[Task] | ArrayLike,
    agreement: Agreement,
    site: str,
    on_end: Callable[[TaskPrior | FederationError], None] | None = None,
) -> ClientApp:
    """Flower app of one site: takes part in one secure sum with the sums of its own tasks.

    Parameters
    ----------
    source : Task, iterable of Task, or array-like of shape (n_tasks, n_features)
        The site's tasks, or their unit directions in scaled units. What does not fit the
        agreement is refused here, before anything is sent.
    agreement : Agreement
        What the federation fixed; a server that holds another is refused.
    site : str
        What the others know this site by; each joins once.
    on_end : callable or None, default=None
        Called with the prior of all sites, or with the reason why there is none.

    Returns
    -------
    flwr.clientapp.ClientApp
        The app.
    """
    from flwr.app import ConfigRecord, Message, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.common import Code, FitRes, Status, ndarrays_to_parameters
    from flwr.compat.common.recorddict_compat import fitres_to_recorddict

    site = site.strip()
    if not site:
        raise ValueError("site must be a name; got an empty one.")
    if site != printable(site, LONGEST_NAME):
        raise ValueError(
            f"site must be a name of at most {LONGEST_NAME} characters that can be seen; "
            f"got {site!r}."
        )
    vector = packed(local_prior(source, agreement), agreement.max_tasks)
    end = on_end or (lambda outcome: None)
    sent = False

    def guarded(message: Any, context: Any, call_next: Any) -> Any:
        if message.metadata.message_type != "train":
            return call_next(message, context)
        request = message.content.config_records[CONFIGS]
        records = context.state.config_records
        check_request(request, records.get(STATE, {}))
        # Flower renews the context with each run, and may renew the app with each message.
        if (sent or _SENT in records) and request["stage"] in (SETUP, COLLECT):
            raise FederationError(
                f"{site} has sent its sums already. A second round with other sites would show "
                "what one site added; start a new federation."
            )
        return client_protocol().secaggplus_mod(message, context, call_next)

    app = ClientApp(mods=[guarded])

    @app.train()
    def contribute(message: Any, context: Any) -> Any:
        nonlocal sent
        sent = True
        context.state.config_records[_SENT] = ConfigRecord({"sent": True})
        # Flower shows the server each site's num_examples in the clear: it is one for all, and
        # the number of tasks is inside the masked vector.
        answer = FitRes(Status(Code.OK, ""), ndarrays_to_parameters([vector]), 1, {})
        return Message(fitres_to_recorddict(answer, keep_input=False), reply_to=message)

    @app.query()
    def talk(message: Any, context: Any) -> Any:
        told = message.content.config_records[_RECORD]
        said: dict[str, str] = {"site": site}
        if "agreement" in told:
            difference = agreement.difference(Agreement.from_text(told["agreement"]))
            if difference:
                refusal = (
                    f"{site} does not take part: the server's agreement is another one "
                    f"({difference}). Use the same scale, features and classes everywhere."
                )
                said["refused"] = refusal
                end(FederationError(refusal))
        elif "failed" in told:
            end(FederationError(printable(told["failed"])))
        else:
            total = np.array(told["total"], dtype=np.float64)
            end(unpacked(total, int(told["n_sites"]), agreement))
        return Message(RecordDict({_RECORD: ConfigRecord(said)}), reply_to=message)

    return app


def server_app(
    agreement: Agreement,
    n_sites: int,
    on_prior: Callable[[TaskPrior], None],
    *,
    wait: float = 600.0,
    timeout: float = 60.0,
    report: Callable[[str], None] | None = None,
) -> ServerApp:
    """Flower app of the server: waits for the sites, runs one secure sum, tells all the prior.

    Parameters
    ----------
    agreement : Agreement
        What the federation fixed.
    n_sites : int
        Sites to wait for, at least three.
    on_prior : callable
        Called with the prior of all sites that stayed.
    wait : float, default=600
        Seconds to wait for sites to join; then those that came go on, if :func:`sites_needed`
        of them did.
    timeout : float, default=60
        Seconds to wait for answers in each stage; who does not answer has dropped out.
    report : callable or None, default=None
        Called with a line of text whenever something happens.

    Returns
    -------
    flwr.serverapp.ServerApp
        The app; it raises :class:`FederationError` if there is no prior.
    """
    from flwr.serverapp import ServerApp

    needed = sites_needed(n_sites)
    wait, timeout = check_number("wait", wait, 0.0), check_number("timeout", timeout, 0.1)
    say = report or (lambda line: None)
    app = ServerApp()

    @app.main()
    def gather(grid: Any, context: Any) -> None:
        joined = _wait_for_sites(grid, agreement, n_sites, wait, timeout, say)
        try:
            if len(joined) < needed:
                raise FederationError(
                    f"Too few sites for a secure sum: {len(joined)} of {n_sites} joined within "
                    f"{wait:g} s, and {needed} are needed. Wait longer, or find more sites."
                )
            total, stayed = secure_total(grid, context, list(joined), timeout, say)
            prior = unpacked(total, len(stayed), agreement)
        except FederationError as reason:
            _tell(grid, joined, {"failed": str(reason)}, timeout)
            raise
        lost = sorted(name for node, name in joined.items() if node not in stayed)
        if lost:
            say(f"dropped out, and not in the prior: {', '.join(lost)}")
        on_prior(prior)
        _tell(grid, stayed, {"total": total.tolist(), "n_sites": len(stayed)}, timeout)

    return app


def _wait_for_sites(
    grid: Any,
    agreement: Agreement,
    n_sites: int,
    wait: float,
    timeout: float,
    say: Callable[[str], None],
) -> dict[int, str]:
    """Nodes that agree, with their names; one of each name."""
    joined: dict[int, str] = {}
    asked: set[int] = set()
    until = time.monotonic() + wait
    while len(joined) < n_sites:
        fresh = [node for node in grid.get_node_ids() if node not in asked]
        asked.update(fresh)
        answers = _tell(grid, fresh, {"agreement": agreement.to_text()}, timeout)
        if len(answers) < len(fresh):
            say(f"{len(fresh) - len(answers)} connected, and did not answer as a site does")
        for node, said in answers.items():
            name = printable(said["site"], LONGEST_NAME)
            if "refused" in said:
                say(printable(said["refused"]))
            elif name in joined.values():
                twice = f"A site called {name} has joined already; each sends once."
                say(twice)
                _tell(grid, [node], {"failed": twice}, timeout)
            elif len(joined) == n_sites:
                full = f"{n_sites} sites have joined already, and the sum has begun."
                _tell(grid, [node], {"failed": full}, timeout)
            else:
                joined[node] = name
                say(f"{name} has joined: {len(joined)} of {n_sites} sites")
        if time.monotonic() > until:
            break
        time.sleep(0.1)
    return joined


def _tell(
    grid: Any, nodes: Iterable[int], told: dict[str, Any], timeout: float
) -> dict[int, dict[str, Any]]:
    """Send the same to all nodes; return what those say that answer, and give their name."""
    from flwr.app import ConfigRecord, Message, RecordDict

    messages = [
        Message(RecordDict({_RECORD: ConfigRecord(told)}), dst_node_id=node, message_type="query")
        for node in nodes
    ]
    if not messages:
        return {}
    said = {
        reply.metadata.src_node_id: dict(reply.content.config_records.get(_RECORD, {}))
        for reply in grid.send_and_receive(messages, timeout=timeout)
        if not reply.has_error()
    }
    return {node: words for node, words in said.items() if "site" in words}

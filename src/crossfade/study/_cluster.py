"""Shards of a study, computed by the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any

from crossfade._validate import check_extra
from crossfade.study._evaluate import Outcome, Plan, Shard, run_target
from crossfade.study._participants import Participant
from crossfade.study._sources import Sources

if TYPE_CHECKING:
    from distributed import Client

#: Targets that a cluster is given at a time: work for hundreds of workers, results for one memory.
_AT_ONCE = 1000
#: Seconds that a scheduler has to answer, and that its first worker has to appear.
_PATIENCE, _PATIENCE_FOR_WORKERS = 5, 60
#: Seconds without a result after which the scheduler is asked whether it is there.
_SILENCE = 10
#: Warnings are caught, and threads limited, for all of a process.
_ONE_AT_A_TIME = Lock()

Work = Sequence[tuple[Participant, Sequence[Shard]]]


def on_workers(
    work: Work, sources: Sources, plan: Plan, dask: str | Client
) -> Iterator[tuple[Shard, Outcome]]:
    """Outcomes of shards as they are finished; other workers do what a lost worker had.

    The sources are sent to each worker once. A client stays open.
    """
    check_extra("distributed", "dask", "A study on a cluster")
    from distributed import Client

    if isinstance(dask, Client):
        yield from _results(work, sources, plan, dask)
        return
    try:
        client = Client(dask, timeout=_PATIENCE, set_as_default=False)
    except Exception as reason:
        # What listens but is no scheduler may answer anything.
        raise ConnectionError(
            f"No Dask scheduler answers at {dask!r} ({reason}). Start one (dask scheduler) and "
            "give its address, such as 'tcp://127.0.0.1:8786'."
        ) from reason
    with client:
        yield from _results(work, sources, plan, client)


def _results(
    work: Work, sources: Sources, plan: Plan, client: Client
) -> Iterator[tuple[Shard, Outcome]]:
    try:
        client.wait_for_workers(1, timeout=_PATIENCE_FOR_WORKERS)
        everywhere = client.scatter((sources, plan), broadcast=True, hash=False)
    except (OSError, TimeoutError, KeyError) as reason:
        # A worker that is lost while the sources are sent is a KeyError.
        raise _lost(client, reason) from reason
    waiting = iter(work)
    futures: set[Any] = set()
    finished: SimpleQueue[Any] = SimpleQueue()

    def submit(n_targets: int) -> None:
        for target, shards in islice(waiting, n_targets):
            future = client.submit(_alone, target, shards, everywhere, pure=False, retries=2)
            futures.add(future)
            future.add_done_callback(finished.put)

    try:
        submit(_AT_ONCE)
        while futures:
            try:
                future = finished.get(timeout=_SILENCE)
                futures.remove(future)
                yield from future.result()
            except Empty:
                # A scheduler that hangs never finishes anything.
                client.sync(client.scheduler.identity, callback_timeout=_PATIENCE_FOR_WORKERS)
                continue
            submit(1)
    except (OSError, TimeoutError, CancelledError) as reason:
        raise _lost(client, reason) from reason
    finally:
        client.cancel([everywhere, *futures])


def _lost(client: Client, reason: Exception) -> ConnectionError:
    return ConnectionError(
        f"The Dask scheduler at {client.scheduler.address} or all of its workers are gone "
        f"({type(reason).__name__}: {reason}). Run the study again; in a folder, finished parts "
        "are kept."
    )


def _alone(
    target: Participant, shards: Sequence[Shard], known: tuple[Sources, Plan]
) -> list[tuple[Shard, Outcome]]:
    with _ONE_AT_A_TIME:
        return list(run_target(target, *known, shards))

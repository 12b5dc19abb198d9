"""Shards of a study, computed by the workers of a Dask cluster.

A worker that sees the study's folder writes its shards there itself, so that what is finished stays
finished if the scheduler dies; any other hands its rows over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any

from crossfade.study._evaluate import Outcome, Plan, Shard, run_target
from crossfade.study._sources import Participant, Sources

if TYPE_CHECKING:
    from distributed import Client

    from crossfade.study._store import Shelf

#: Targets that a cluster is given at a time: work for hundreds of workers, results for one memory.
_AT_ONCE = 1000
#: Seconds that a scheduler has to answer, and that its first worker has to appear.
_PATIENCE, _PATIENCE_FOR_WORKERS = 5, 60
#: Seconds without a result after which the scheduler is asked whether it is there.
_SILENCE = 10
#: How often all workers may be lost without any result between.
_ATTEMPTS = 3
#: Warnings are caught, and threads limited, for all of a process.
_ONE_AT_A_TIME = Lock()


@dataclass(frozen=True)
class Job:
    """What all workers are told, once; the shelf is where they keep what they have finished."""

    sources: Sources
    plan: Plan
    shelf: Shelf | None = None


def on_workers(
    work: Sequence[tuple[Participant, Sequence[Shard]]],
    job: Job,
    dask: str | Client,
) -> Iterator[tuple[Shard, Outcome]]:
    """Outcomes of shards as they are finished; if a worker is lost, others do its targets again.

    Outcomes that a worker has kept are without columns. The sources are sent to each worker once. A
    client stays open.
    """
    try:
        from distributed import Client
    except ImportError as reason:
        raise ImportError(
            "A study on a cluster needs Dask. Install crossfade[dask], here and on the workers."
        ) from reason
    if isinstance(dask, Client):
        yield from _results(work, job, dask)
    elif isinstance(dask, str):
        try:
            _greet(dask)
            client = Client(dask, timeout=_PATIENCE, set_as_default=False)
        except Exception as reason:
            # What is no scheduler may answer anything, which ends in errors of any kind.
            why = str(reason) or f"nothing came in {_PATIENCE} s"
            raise ConnectionError(
                f"No Dask scheduler answers at {dask!r}: {why}. Start one (dask scheduler), and "
                "give its address, as in 'tcp://127.0.0.1:8786'."
            ) from reason
        with client:
            yield from _results(work, job, client)
    else:
        raise TypeError(f"dask must be the address of a scheduler or a client; got {dask!r}.")


def _greet(address: str) -> None:
    """Connect once; a client would wait forever for what listens and says nothing."""
    from distributed.comm import connect
    from distributed.security import Security

    async def greet() -> None:
        async with asyncio.timeout(_PATIENCE):
            secrets = Security().get_connection_args("client")
            comm = await connect(address, timeout=_PATIENCE, **secrets)
            await comm.close()

    # A thread of its own, since this one may have a loop already, as it has in a notebook.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, greet()).result()


def _results(
    work: Sequence[tuple[Participant, Sequence[Shard]]], job: Job, client: Client
) -> Iterator[tuple[Shard, Outcome]]:
    left, in_vain = {target.name: (target, shards) for target, shards in work}, 0
    while left:
        before = len(left)
        for name, outcomes in _results_while_sources_last(left.values(), job, client):
            del left[name]
            yield from outcomes
        in_vain = in_vain + 1 if len(left) == before else 0
        if in_vain == _ATTEMPTS:
            raise ConnectionError(
                f"All workers of the Dask scheduler at {client.scheduler.address} were lost "
                f"{_ATTEMPTS} times before any could finish its part of the study. See what their "
                "logs say; they may lack memory."
            )


def _results_while_sources_last(
    work: Iterable[tuple[Participant, Sequence[Shard]]], job: Job, client: Client
) -> Iterator[tuple[str, list[tuple[Shard, Outcome]]]]:
    """Targets as they are finished; the rest is left when all workers that had the sources are."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE_FOR_WORKERS)
        everywhere = client.scatter(job, broadcast=True, hash=False)
    except KeyError:
        # Dask looks for a worker that was lost while the sources were sent: another attempt.
        return
    except (OSError, TimeoutError) as reason:
        raise ConnectionError(
            f"The Dask scheduler at {client.scheduler.address} has no workers, or is gone "
            f"({reason}). Start workers (dask worker ADDRESS), and run the study again."
        ) from reason
    waiting = iter(list(work))
    names: dict[Any, str] = {}
    finished: SimpleQueue[Any] = SimpleQueue()

    def submit(n_targets: int) -> None:
        for target, shards in islice(waiting, n_targets):
            future = client.submit(_alone, target, shards, everywhere, pure=False, retries=2)
            names[future] = target.name
            future.add_done_callback(finished.put)

    try:
        submit(_AT_ONCE)
        while names:
            try:
                future = finished.get(timeout=_SILENCE)
            except Empty:
                _check_alive(client)
                continue
            name = names.pop(future)
            try:
                outcomes = future.result()
            except CancelledError:
                continue
            yield name, outcomes
            submit(1)
    finally:
        client.cancel([everywhere, *names])


def _check_alive(client: Client) -> None:
    """Refuse to wait for a scheduler that does not answer."""
    try:
        client.sync(client.scheduler.identity, callback_timeout=_PATIENCE_FOR_WORKERS)
    except (OSError, TimeoutError) as reason:
        raise ConnectionError(
            f"The Dask scheduler at {client.scheduler.address} does not answer any more "
            f"({reason}). Start it again, and run the study again: in a folder, what is finished "
            "is kept."
        ) from reason


def _alone(target: Participant, shards: Sequence[Shard], job: Job) -> list[tuple[Shard, Outcome]]:
    found = []
    with _ONE_AT_A_TIME:
        for shard, outcome in run_target(target, job.sources, job.plan, shards):
            shelf = job.shelf
            if shelf is not None and shelf.beacon is not None and shelf.beacon.exists():
                shelf.write(shard, outcome)
                outcome = outcome._replace(columns={})
            found.append((shard, outcome))
    return found

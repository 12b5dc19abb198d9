"""Shards of a study, computed by the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any

from crossfade.study._evaluate import Outcome, Plan, run_shard
from crossfade.study._sources import Participant, Sources

if TYPE_CHECKING:
    from distributed import Client

Shard = tuple[str, str]

#: Shards that a cluster is given at a time: work for hundreds of workers, results for one memory.
_AT_ONCE = 1000
#: Seconds that a scheduler has to answer, and that its first worker has to appear.
_PATIENCE, _PATIENCE_FOR_WORKERS = 5, 60
#: How often all workers may be lost without any result between.
_ATTEMPTS = 3
#: Warnings are caught, and threads limited, for all of a process.
_ONE_AT_A_TIME = Lock()


def on_workers(
    work: Mapping[Shard, tuple[Participant, Plan]],
    sources: Sources,
    dask: str | Client,
) -> Iterator[tuple[Shard, Outcome]]:
    """Outcomes of shards as they are finished; if a worker is lost, others do its shards again.

    `work` has the target and the plan of each shard. The sources are sent to each worker once. A
    client stays open.
    """
    try:
        from distributed import Client
    except ImportError as reason:
        raise ImportError(
            "A study on a cluster needs Dask. Install crossfade[dask], here and on the workers."
        ) from reason
    if isinstance(dask, Client):
        yield from _results(work, sources, dask)
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
            yield from _results(work, sources, client)
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
    work: Mapping[Shard, tuple[Participant, Plan]], sources: Sources, client: Client
) -> Iterator[tuple[Shard, Outcome]]:
    left, in_vain = dict(work), 0
    while left:
        before = len(left)
        for shard, outcome in _results_while_sources_last(left, sources, client):
            del left[shard]
            yield shard, outcome
        in_vain = in_vain + 1 if len(left) == before else 0
        if in_vain == _ATTEMPTS:
            raise ConnectionError(
                f"All workers of the Dask scheduler at {client.scheduler.address} were lost "
                f"{_ATTEMPTS} times before any could finish its part of the study. See what their "
                "logs say; they may lack memory."
            )


def _results_while_sources_last(
    work: Mapping[Shard, tuple[Participant, Plan]], sources: Sources, client: Client
) -> Iterator[tuple[Shard, Outcome]]:
    """Shards as they are finished; the rest is left when all workers that had the sources are."""
    from distributed import as_completed

    try:
        client.wait_for_workers(1, timeout=_PATIENCE_FOR_WORKERS)
        everywhere = client.scatter(sources, broadcast=True, hash=False)
    except (OSError, TimeoutError) as reason:
        raise ConnectionError(
            f"The Dask scheduler at {client.scheduler.address} has no workers, or is gone "
            f"({reason}). Start workers (dask worker ADDRESS), and run the study again."
        ) from reason
    waiting = iter(list(work.items()))
    shards: dict[Any, Shard] = {}

    def submit(n_shards: int) -> list[Any]:
        futures = []
        for shard, (target, plan) in islice(waiting, n_shards):
            future = client.submit(_alone, target, everywhere, plan, pure=False, retries=2)
            shards[future] = shard
            futures.append(future)
        return futures

    try:
        running = as_completed(submit(_AT_ONCE), loop=client.loop)
        for future in running:
            shard = shards.pop(future)
            try:
                outcome = future.result()
            except CancelledError:
                continue
            yield shard, outcome
            running.update(submit(1))
    finally:
        client.cancel([everywhere, *shards])


def _alone(target: Participant, sources: Sources, plan: Plan) -> Outcome:
    with _ONE_AT_A_TIME:
        return run_shard(target, sources, plan)

"""Shards of a study, computed by processes of this machine or by a Dask cluster."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from itertools import islice
from queue import Empty, SimpleQueue
from signal import SIG_IGN, SIGINT, signal
from threading import Lock, current_thread, main_thread
from typing import TYPE_CHECKING, Any

from joblib import effective_n_jobs
from joblib.executor import get_memmapping_executor

from crossfade._validate import check_extra
from crossfade.study._evaluate import Outcome, Plan, Shard, run_target
from crossfade.study._sources import Participant, Sources

if TYPE_CHECKING:
    from distributed import Client

_Future = Future[list[tuple[Shard, Outcome]]]

#: Workers have one thread each: their matrices are small.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
#: Targets that a cluster is given at a time: work for hundreds of workers, results for one memory.
_AT_ONCE = 1000
#: Seconds that a scheduler has to answer, and that its first worker has to appear.
_PATIENCE, _PATIENCE_FOR_WORKERS = 5, 60
#: Seconds without a result after which the scheduler is asked whether it is there.
_SILENCE = 10
#: Warnings are caught, and threads limited, for all of a process.
_ONE_AT_A_TIME = Lock()
Work = Sequence[tuple[Participant, Sequence[Shard]]]


def in_processes(
    work: Work, sources: Sources, plan: Plan, n_jobs: int
) -> Generator[tuple[Shard, Outcome]]:
    """Outcomes as they come: workers begin with the first target, this process with the last."""
    n_workers = min(effective_n_jobs(n_jobs), len(work)) - 1
    if not n_workers:
        for target, shards in work:
            yield from run_target(target, sources, plan, shards)
        return
    # A thread pickles the sources for workers, so they must not change meanwhile.
    own = _twin(sources)
    # Large arrays are written to a file once, which all workers read.
    workers = get_memmapping_executor(n_workers, env=_ONE_THREAD)
    left = deque(work)
    running: set[_Future] = set()
    finished: SimpleQueue[_Future] = SimpleQueue()

    def submit() -> None:
        try:
            target, shards = left.popleft()
        except IndexError:
            return
        future = workers.submit(_in_worker, target, sources, plan, shards)
        running.add(future)
        future.add_done_callback(hand_over)

    def hand_over(future: _Future) -> None:
        # In a thread of the executor, so that workers need not wait for this process.
        if future.exception() is None:
            submit()
        finished.put(future)

    try:
        for _ in range(2 * n_workers):
            submit()
        while left or running:
            if not left or not finished.empty():
                future = finished.get()
                running.remove(future)
                yield from future.result()
                continue
            try:
                target, shards = left.pop()
            except IndexError:
                continue
            yield from run_target(target, own, plan, shards)
    finally:
        left.clear()
        if running:
            workers.terminate(kill_workers=True)


def _twin(sources: Sources) -> Sources:
    """The same with attributes of its own; only the memory of arrays is shared."""
    arrays: list[pickle.PickleBuffer] = []
    shape = pickle.dumps(sources, protocol=5, buffer_callback=arrays.append)
    return pickle.loads(shape, buffers=arrays)


def _in_worker(
    target: Participant, sources: Sources, plan: Plan, shards: Sequence[Shard]
) -> list[tuple[Shard, Outcome]]:
    # A Ctrl-C reaches workers too; one that it ends while it hands over a result would leave the
    # parent waiting for ever. The parent ends them.
    if current_thread() is main_thread():
        signal(SIGINT, SIG_IGN)
    return list(run_target(target, sources, plan, shards))


def on_workers(
    work: Work, sources: Sources, plan: Plan, dask: str | Client
) -> Iterator[tuple[Shard, Outcome]]:
    """Outcomes of shards as they are finished; a client stays open."""
    check_extra("distributed", "dask", "A study on a cluster")
    from distributed import Client

    if isinstance(dask, Client):
        yield from _results(work, sources, plan, dask)
        return
    try:
        client = Client(dask, timeout=_PATIENCE, set_as_default=False)
    except Exception as reason:
        # Something else that listens there may answer anything.
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

"""Shards of a study, computed by processes of this machine."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from signal import SIG_IGN, SIGINT, signal
from threading import current_thread, main_thread

from joblib import effective_n_jobs
from joblib.executor import get_memmapping_executor

from crossfade.study._evaluate import Outcome, Plan, Shard, run_target
from crossfade.study._participants import Participant
from crossfade.study._sources import Sources

_Future = Future[list[tuple[Shard, Outcome]]]

#: What workers are started with: their matrices are small.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def in_processes(
    work: Sequence[tuple[Participant, Sequence[Shard]]], sources: Sources, plan: Plan, n_jobs: int
) -> Generator[tuple[Shard, Outcome]]:
    """Outcomes as they come: workers do targets from the first on, this process from the last on.

    A worker needs a second to start, in which this process has done many small shards.
    """
    n_workers = min(effective_n_jobs(n_jobs), len(work)) - 1
    if not n_workers:
        for target, shards in work:
            yield from run_target(target, sources, plan, shards)
        return
    # What workers get is pickled in a thread, and must not change while this process computes.
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
    twin: Sources = pickle.loads(shape, buffers=arrays)
    return twin


def _in_worker(
    target: Participant, sources: Sources, plan: Plan, shards: Sequence[Shard]
) -> list[tuple[Shard, Outcome]]:
    # A Ctrl-C reaches workers too; one that it ends while it hands over a result would leave the
    # parent waiting for ever. The parent ends them.
    if current_thread() is main_thread():
        signal(SIGINT, SIG_IGN)
    return list(run_target(target, sources, plan, shards))

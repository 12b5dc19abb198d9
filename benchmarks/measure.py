"""Ratios of CPU time: rivals take turns, so that a busy machine slows all alike."""

from collections.abc import Callable, Sequence
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

#: Called with the share of the work that is done, from 0 to 1.
Progress = Callable[[float], None]


class Row(NamedTuple):
    """One line of the table."""

    what: str
    measured: str
    target: str
    reached: bool
    value: float


def medians(
    rivals: Sequence[Callable[[], object]],
    rounds: int,
    progress: Progress,
    calls: Sequence[int] | None = None,
    *,
    wall: bool = False,
) -> list[float]:
    """Median seconds of a call of each rival, over rounds in which each has its turn.

    CPU time of this process, or with `wall` what a clock on the wall shows.
    `calls` says how often each is called in a round; a rival that takes long may be called less.
    Linear algebra has one thread: on a busy machine threads wait for each other, and the wait would
    hide what is measured.
    """
    calls = calls or [1] * len(rivals)
    clock = perf_counter if wall else process_time
    times: list[list[float]] = [[] for _ in rivals]
    with threadpool_limits(limits=1):
        for rival in rivals:
            rival()
        for turn in range(rounds):
            for place, rival in enumerate(rivals):
                start = clock()
                for _ in range(calls[place]):
                    rival()
                times[place].append((clock() - start) / calls[place])
            progress((turn + 1) / rounds)
    return [float(np.median(each)) for each in times]


def at_least(what: str, value: float, target: float, note: str = "") -> Row:
    """Row of a ratio that should be large."""
    measured = f"{value:,.0f} times faster{note}"
    return Row(what, measured, f"at least {target:,.0f} times", value >= target, value)


def at_most(what: str, value: float, target: float, unit: str = "", note: str = "") -> Row:
    """Row of a number that should be small."""
    return Row(
        what, f"{value:.3g}{unit}{note}", f"at most {target:g}{unit}", value <= target, value
    )

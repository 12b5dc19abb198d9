"""Many cases: for each group the number of calls, and the four numbers that must be zero."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np

from tests.fuzz import _estimators, _files, _functions, _recordings
from tests.fuzz._trial import (
    FAULT,
    HANG,
    KINDS,
    MEMORY,
    RAW,
    WRONG,
    HangError,
    RawError,
    Trial,
    WrongError,
    limited,
    strict,
)

#: Cases of every group, and how often each is drawn.
API = _estimators.CASES | _functions.CASES
FILES = _files.CASES | _recordings.CASES
CASES = {"api": API, "files": FILES}


_KINDS = {WrongError: WRONG, RawError: RAW, HangError: HANG}


@dataclass
class Tally:
    """What became of the cases of one group."""

    n_cases: int = 0
    n_calls: int = 0
    n_refused: int = 0
    failures: Counter = field(default_factory=Counter)
    notes: Counter = field(default_factory=Counter)
    #: The first failures: case, kind and words.
    first: list = field(default_factory=list)

    def __add__(self, other):
        return Tally(
            self.n_cases + other.n_cases,
            self.n_calls + other.n_calls,
            self.n_refused + other.n_refused,
            self.failures + other.failures,
            self.notes + other.notes,
            self.first + other.first,
        )

    @property
    def numbers(self):
        """Wrong answers, raw errors, hangs, and faults of the suite."""
        return tuple(self.failures[kind] for kind in KINDS)


def drawn(part, seed, number):
    """Group of a case, and the generator that it goes on with."""
    rng = np.random.default_rng([seed, number, list(CASES).index(part)])
    names = list(CASES[part])
    odds = np.array([CASES[part][name][1] for name in names], np.float64)
    return names[rng.choice(len(names), p=odds / odds.sum())], rng


def run_case(part, seed, number, folder=None):
    """One case: its group, its trial, and None or a kind of failure with its words."""
    group, rng = drawn(part, seed, number)
    trial = Trial(rng, folder)
    try:
        with strict(), limited(MEMORY if part == "files" else None):
            CASES[part][group][0](trial)
    except (WrongError, RawError, HangError) as failure:
        trial.failure = failure
        return group, trial, (_KINDS[type(failure)], str(failure))
    except Exception as fault:
        # The run goes on: one case of the suite must not cost all others.
        trial.failure = fault
        return group, trial, (FAULT, f"{type(fault).__name__}: {fault}")
    return group, trial, None


def run(
    part,
    seed,
    *,
    calls=None,
    cases=None,
    seconds=None,
    only=None,
    first=0,
    kept=20,
    on_progress=None,
):
    """Tallies by group of cases drawn until there are so many calls or cases, or time is over."""
    tallies = {name: Tally() for name in CASES[part] if only is None or name == only}
    begun, total, n_cases = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for number in count(first):
            if only is not None and drawn(part, seed, number)[0] != only:
                continue
            group, trial, failure = run_case(part, seed, number, Path(folder))
            tally = tallies[group]
            tally.n_cases += 1
            tally.n_calls += trial.n_calls
            tally.n_refused += trial.n_refused
            tally.notes.update(trial.notes)
            total, n_cases = total + trial.n_calls, n_cases + 1
            if failure is not None:
                tally.failures[failure[0]] += 1
                if len(tally.first) < kept:
                    tally.first.append((f"{seed}:{number}", *failure))
            if on_progress is not None:
                on_progress(total, time.monotonic() - begun, tallies)
            over = seconds is not None and time.monotonic() - begun > seconds
            many = calls is not None and total >= calls
            if over or many or (cases is not None and n_cases >= cases):
                return tallies
    raise AssertionError("count never ends")


def report(tallies):
    """Text: four numbers for each group and for all, then the first failures."""
    whole = sum(tallies.values(), Tally())
    lines = [
        f"{'':24}{'cases':>8}{'calls':>9}{'refused':>9}" + "".join(f"{kind:>15}" for kind in KINDS)
    ]
    for name, tally in [*tallies.items(), ("all", whole)]:
        numbers = "".join(f"{number:>15}" for number in tally.numbers)
        lines.append(f"{name:24}{tally.n_cases:>8}{tally.n_calls:>9}{tally.n_refused:>9}{numbers}")
    lines += [f"note: {what}, {times} times" for what, times in whole.notes.items()]
    lines += [f"{case} {kind}: {text}" for case, kind, text in whole.first]
    return "\n".join(lines)

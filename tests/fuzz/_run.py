"""Many cases: for each group the number of calls, and the four numbers that must be zero."""

import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np

from tests.fuzz import _estimators, _files, _functions
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
CASES = {"api": _estimators.CASES | _functions.CASES, "files": _files.CASES}
_KINDS = {WrongError: WRONG, RawError: RAW, HangError: HANG}
#: Failures of a group that are shown.
_KEPT = 20


@dataclass
class Tally:
    """What became of the cases of one group."""

    n_cases: int = 0
    n_calls: int = 0
    n_refused: int = 0
    failures: Counter = field(default_factory=Counter)
    #: The first failures: case, kind and words.
    first: list = field(default_factory=list)

    def __add__(self, other):
        return Tally(*(getattr(self, name) + getattr(other, name) for name in vars(self)))

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


def run(part, seed, *, calls=None, seconds=None, only=None):
    """Tallies by group of cases drawn until there are so many calls, or time is over."""
    tallies = {name: Tally() for name in CASES[part] if only is None or name == only}
    begun, total = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        for number in count():
            if only is not None and drawn(part, seed, number)[0] != only:
                continue
            group, trial, failure = run_case(part, seed, number, Path(folder))
            tally = tallies[group]
            tally.n_cases += 1
            tally.n_calls += trial.n_calls
            tally.n_refused += trial.n_refused
            total += trial.n_calls
            if failure is not None:
                tally.failures[failure[0]] += 1
                tally.first += [(f"{seed}:{number}", *failure)] * (len(tally.first) < _KEPT)
            over = seconds is not None and time.monotonic() - begun > seconds
            many = calls is not None and total >= calls
            if over or many:
                return tallies
    raise AssertionError("count never ends")


def report(tallies):
    """Text: four numbers for each group and for all, then the first failures."""
    whole = sum(tallies.values(), Tally())
    heads = "".join(f"{kind:>15}" for kind in KINDS)
    lines = [f"{'':24}{'cases':>8}{'calls':>9}{'refused':>9}{heads}"]
    for name, tally in [*tallies.items(), ("all", whole)]:
        numbers = "".join(f"{number:>15}" for number in tally.numbers)
        lines.append(f"{name:24}{tally.n_cases:>8}{tally.n_calls:>9}{tally.n_refused:>9}{numbers}")
    return "\n".join([*lines, *(f"{case} {kind}: {text}" for case, kind, text in whole.first)])

"""Fuzz for as long as asked: ``python -m tests.fuzz [--minutes 10 | --calls 100000]``."""

import argparse
import sys
import tempfile
import traceback
from pathlib import Path

from threadpoolctl import threadpool_limits

from tests.fuzz import _run


def _arguments():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("part", nargs="?", choices=list(_run.CASES), help="calls or files; or both")
    much = parser.add_mutually_exclusive_group()
    much.add_argument("--minutes", type=float, help="how long; 10 if neither is given")
    much.add_argument("--calls", type=int, help="how many calls of each part")
    parser.add_argument("--seed", type=int, default=0, help="where cases are drawn from")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--group", help="draw cases of one group only")
    parser.add_argument("--case", metavar="SEED:NUMBER", help="replay one case of a part")
    return parser.parse_args()


def _replay(part, case):
    """Run one case, and show what went wrong in full."""
    seed, number = map(int, case.split(":"))
    with tempfile.TemporaryDirectory() as folder:
        group, trial, failure = _run.run_case(part, seed, number, Path(folder))
    if trial.failure is not None:
        traceback.print_exception(trial.failure)
    print(f"{part} {case}, {group}: {trial.n_calls} calls; {failure or 'nothing wrong'}")
    return failure is not None


def _progress(part):
    """Print now and then how it goes."""
    last = [0.0]

    def show(n_calls, seconds, tallies):
        if seconds - last[0] > 10.0:
            last[0] = seconds
            numbers = sum(tallies.values(), _run.Tally()).numbers
            print(f"{part}: {n_calls} calls in {seconds:.0f} s, {numbers}", file=sys.stderr)

    return show


def main():
    """Run what was asked for; the exit code says whether anything was wrong."""
    asked = _arguments()
    parts = [asked.part] if asked.part else list(_run.CASES)
    if asked.case:
        return _replay(parts[0], asked.case)
    seconds = None if asked.calls else 60.0 * (asked.minutes or 10.0) / len(parts)
    failed = False
    for part in parts:
        tallies = _run.run(
            part,
            asked.seed,
            calls=asked.calls,
            seconds=seconds,
            only=asked.group,
            first=asked.first,
            on_progress=_progress(part),
        )
        print(f"\n{part}\n{_run.report(tallies)}", flush=True)
        failed |= any(sum(tally.numbers) for tally in tallies.values())
    return failed


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main())

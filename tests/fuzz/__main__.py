"""Fuzz for as long as asked: ``python -m tests.fuzz [--minutes 10 | --calls 100000]``."""

import argparse
import sys
import tempfile
import traceback
from pathlib import Path

from threadpoolctl import threadpool_limits

from tests.fuzz import _run


def main():
    """Run what was asked for; the exit code says whether anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("part", nargs="?", choices=list(_run.CASES), help="api or files; or both")
    much = parser.add_mutually_exclusive_group()
    much.add_argument("--minutes", type=float, default=10.0, help="how long")
    much.add_argument("--calls", type=int, help="how many calls of each part")
    parser.add_argument("--seed", type=int, default=0, help="where cases are drawn from")
    parser.add_argument("--group", help="draw cases of one group only")
    parser.add_argument("--case", metavar="SEED:NUMBER", help="replay one case of a part")
    asked = parser.parse_args()
    parts = [asked.part] if asked.part else list(_run.CASES)
    if asked.case:
        return _replay(parts[0], asked.case)
    seconds = None if asked.calls else 60.0 * asked.minutes / len(parts)
    failed = False
    for part in parts:
        tallies = _run.run(part, asked.seed, calls=asked.calls, seconds=seconds, only=asked.group)
        print(f"\n{part}\n{_run.report(tallies)}", flush=True)
        failed |= any(sum(tally.numbers) for tally in tallies.values())
    return failed


def _replay(part, case):
    """Run one case, and show what went wrong in full."""
    seed, number = map(int, case.split(":"))
    with tempfile.TemporaryDirectory() as folder:
        group, trial, failure = _run.run_case(part, seed, number, Path(folder))
    if trial.failure is not None:
        traceback.print_exception(trial.failure)
    print(f"{part} {case}, {group}: {trial.n_calls} calls; {failure or 'nothing wrong'}")
    return failure is not None


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main())

"""Fixed seeds, about a minute: no wrong answer, no raw error, no hang. ``make fuzz`` goes on."""

import pytest
from threadpoolctl import threadpool_limits

from tests.fuzz import _run

pytest.importorskip("edfio")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("part", "calls"), [("api", 2000), ("files", 500)])
def test_hostile_calls_are_answered_or_refused(part, calls, seed, capsys):
    with threadpool_limits(1):
        tallies = _run.run(part, seed, calls=calls)
    text = _run.report(tallies)
    with capsys.disabled():
        print(f"\n{part}, seed {seed}: {text.splitlines()[len(tallies) + 1]}")
    assert sum((tally.n_calls for tally in tallies.values()), 0) >= calls
    assert [sum(tally.numbers) for tally in tallies.values()] == [0] * len(tallies), text

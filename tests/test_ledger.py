"""Ledgers: what is written down, what is refused, and what a hundred releases would give away."""

import json
import os
import threading

import numpy as np
import pytest

from crossfade import Ledger, Task, TaskPrior
from crossfade._files import digest_of
from crossfade.exceptions import UncountedReleaseWarning

pytest.importorskip("opendp")


@pytest.fixture
def prior(make_prior, tmp_path):
    made = make_prior(40, 4)
    made.save(tmp_path / "prior.npz")
    return made


@pytest.fixture
def path(tmp_path):
    return tmp_path / "prior.ledger.json"


def rewritten(path, change):
    """A ledger of which something was changed by somebody who can compute a checksum."""
    fields = json.loads(path.read_text())
    del fields["sha256"]
    change(fields)
    path.write_text(json.dumps(fields | {"sha256": digest_of(fields)}))


# -- counting -------------------------------------------------------------------------------


def test_every_release_is_written_down(prior, path):
    assert Ledger(path).releases == []
    assert Ledger(path).spent(1e-5) == 0.0
    assert "no release yet" in Ledger(path).summary()
    for _ in range(2):
        public = prior.released(1.0, 1e-5)
    first, second = Ledger(path).releases
    assert first["spent_epsilon"] == pytest.approx(1.0, rel=1e-6)
    # Two releases of epsilon = 1 are worth less than 2: composition is exact.
    assert second["spent_epsilon"] == pytest.approx(1.465, abs=0.001)
    assert (second["epsilon"], second["delta"], second["at_delta"]) == (1.0, 1e-5, 1e-5)
    assert second["noise"] == public.release.noise
    assert (second["n_people"], second["holds"]) == (40, ["direction_sum", "outer_sum"])
    assert second["date"].endswith("+00:00")
    assert Ledger(path).spent(1e-5) == second["spent_epsilon"]
    assert Ledger(path).spent(1e-9) > second["spent_epsilon"]
    assert Ledger(path).summary().endswith("2 releases, epsilon=1.465 in all at delta=1e-05")


def test_a_prior_that_was_loaded_has_the_same_ledger(prior, path, tmp_path):
    prior.released(1.0, 1e-5)
    loaded = TaskPrior.load(tmp_path / "prior.npz")
    loaded.released(1.0, 1e-5)
    # The first file counts, so that a copy is no fresh start.
    loaded.save(tmp_path / "copy.npz")
    loaded.released(1.0, 1e-5)
    assert len(Ledger(path).releases) == 3
    assert not (tmp_path / "copy.ledger.json").exists()
    os.symlink(tmp_path / "prior.npz", tmp_path / "link.npz")
    TaskPrior.load(tmp_path / "link.npz").released(1.0, 1e-5)
    assert len(Ledger(path).releases) == 4


def test_a_prior_without_a_file_says_that_nobody_counts(make_prior, tmp_path):
    prior = make_prior()
    with pytest.warns(UncountedReleaseWarning, match="has no file, and so no ledger") as caught:
        prior.released(1.0, 1e-5)
    assert caught[0].filename == __file__
    prior.released(1.0, 1e-5, ledger=tmp_path / "ours.json")
    prior.released(1.0, 1e-5, ledger=str(tmp_path / "ours.json"))
    assert len(Ledger(tmp_path / "ours.json").releases) == 2


def test_the_same_people_have_the_same_ledger(prior, path):
    """Words, order of classes and less of the same do not make other people of them."""
    for same in (prior.annotated(made_by="us"), prior.reversed(), prior.without("outer_sum")):
        same.released(0.1, 1e-5)
    assert len(Ledger(path).releases) == 3
    isotropic = Ledger(path).releases[-1]
    assert isotropic["holds"] == ["direction_sum"]


@pytest.mark.parametrize(
    "change",
    [
        lambda prior: prior.annotated(made_by="us"),
        lambda prior: prior.reversed(),
        lambda prior: prior.without("outer_sum"),
        lambda prior: prior.without("parts"),
        lambda prior: prior.annotated(made_by="us").reversed().without("outer_sum", "parts"),
    ],
)
def test_a_spent_budget_is_spent_for_every_copy(prior, path, tmp_path, change):
    prior.released(1.0, 1e-5, ledger=Ledger(path, budget=1.0))
    for known in (prior, TaskPrior.load(tmp_path / "prior.npz")):
        same = change(known)
        with pytest.raises(ValueError, match=r"past the budget of 1 in .*prior\.ledger\.json"):
            same.released(1.0, 1e-5)
        # A copy that is saved elsewhere is no other prior.
        same.save(tmp_path / "copy.npz")
        with pytest.raises(ValueError, match=r"past the budget of 1 in .*prior\.ledger\.json"):
            same.released(1.0, 1e-5)
        with pytest.raises(ValueError, match=r"prior.ledger.json already counts releases of these"):
            same.released(1.0, 1e-5, ledger=tmp_path / "fresh.json")
    assert not (tmp_path / "fresh.json").exists()
    assert len(Ledger(path).releases) == 1


def test_a_ledger_may_be_moved(prior, path, tmp_path):
    prior.released(1.0, 1e-5)
    moved = path.rename(tmp_path / "elsewhere.json")
    prior.released(1.0, 1e-5, ledger=moved)
    assert len(Ledger(moved).releases) == 2


# -- people who join and leave --------------------------------------------------------------


def test_people_are_counted_across_priors(make_tasks, path):
    """A site publishes every month, and one participant joins between two issues."""
    people = make_tasks(35)
    for n_people in range(30, 36):
        issue = TaskPrior.from_tasks(people[:n_people], feature_scale=np.ones(4), replay=False)
        issue.released(1.0, 1e-5, ledger=path)
    spent = [one["spent_epsilon"] for one in Ledger(path).releases]
    np.testing.assert_allclose(spent, [1.0, 1.465, 1.835, 2.155, 2.442, 2.706], atol=0.001)
    # Those who joined last have spent once, and may still spend.
    last = TaskPrior.from_tasks(people[34:], feature_scale=np.ones(4), replay=False)
    last.released(1.0, 1e-5, ledger=Ledger(path, budget=2.8))
    assert Ledger(path).spent(1e-5) == pytest.approx(2.706, abs=0.001)
    with pytest.raises(ValueError, match=r"would bring what is spent to epsilon=2\.953 at"):
        issue.released(1.0, 1e-5, ledger=path)


def test_people_are_known_by_directions_and_windows(make_tasks, path):
    tasks = make_tasks(8)
    prior = TaskPrior.from_tasks(tasks, feature_scale=np.ones(4), keep_directions=True)
    other_scale = TaskPrior.from_tasks(tasks, feature_scale=np.full(4, 2.0))
    shifted = [Task(task.X + 0.5, task.y, task.name) for task in tasks]
    for same in (
        prior,
        other_scale,
        TaskPrior.from_projections(prior.directions),
        TaskPrior.from_tasks(shifted, feature_scale=np.ones(4)),
    ):
        same.released(1.0, 1e-5, ledger=path)
    assert Ledger(path).spent(1e-5) == pytest.approx(2.155, abs=0.001)


def test_anybody_may_be_in_a_prior_without_digests(make_prior, path):
    known, unknown = make_prior(40, 4), make_prior(30, 4, seed=1).without("parts")
    known.released(1.0, 1e-5, ledger=path)
    unknown.released(1.0, 1e-5, ledger=path)
    assert Ledger(path).spent(1e-5) == pytest.approx(1.465, abs=0.001)
    # Who comes later may have been in it, too.
    make_prior(20, 4, seed=2).released(1.0, 1e-5, ledger=path)
    assert Ledger(path).spent(1e-5) == pytest.approx(1.465, abs=0.001)
    known.released(1.0, 1e-5, ledger=path)
    assert Ledger(path).spent(1e-5) == pytest.approx(1.835, abs=0.001)


def test_the_ledger_of_other_people_is_refused(prior, make_prior, path):
    prior.released(1.0, 1e-5)
    other = make_prior(40, 4, seed=1)
    with pytest.raises(ValueError, match=r"the ledger of other people.*same people, whose windows"):
        other.released(1.0, 1e-5, ledger=path)
    assert len(Ledger(path).releases) == 1


def test_an_older_ledger_does_not_say_who_was_released(prior, make_prior, path):
    prior.released(1.0, 1e-5)

    def older(fields):
        fields.update(version=1, prior="00")
        del fields["people"], fields["everybody"], fields["releases"][0]["assumed_disjoint"]

    rewritten(path, older)
    assert Ledger(path).spent(1e-5) == pytest.approx(1.0, rel=1e-6)
    make_prior(40, 4, seed=1).released(1.0, 1e-5, ledger=path)
    assert Ledger(path).spent(1e-5) == pytest.approx(1.465, abs=0.001)


def test_a_hundred_releases_give_a_prior_away_and_are_counted(prior, path):
    """The mean of many releases is the exact one; what is spent says so."""
    mean = np.mean([prior.released(1.0, 1e-5).direction_sum for _ in range(100)], 0)
    truth = prior.direction_sum
    cosine = mean @ truth / np.linalg.norm(mean) / np.linalg.norm(truth)
    assert cosine > 0.9
    assert Ledger(path).spent(1e-5) == pytest.approx(14.43, abs=0.01)


# -- the budget -----------------------------------------------------------------------------


def test_what_would_exceed_the_budget_is_refused(prior, path):
    book = Ledger(path, budget=2.0)
    for _ in range(3):
        prior.released(1.0, 1e-5, ledger=book)
    before = path.read_bytes()
    message = (
        r"would bring what is spent to epsilon=2.155 at delta=1e-05, past the budget of 2 in .*"
        r"prior.ledger.json, after 3 releases. At most epsilon=(0.\d+) is left"
    )
    # The budget is in the file: nobody has to name it again.
    with pytest.raises(ValueError, match=message) as caught:
        prior.released(1.0, 1e-5)
    assert path.read_bytes() == before
    assert "of a budget of 2" in book.summary()
    left = float(str(caught.value).split("At most epsilon=")[1].split(" ")[0])
    with pytest.raises(ValueError, match="past the budget"):
        prior.released(left + 2e-4, 1e-5)
    prior.released(left, 1e-5)
    assert Ledger(path).spent(1e-5) <= 2.0
    assert Ledger(path).spent(1e-5) == pytest.approx(2.0, abs=1e-3)


def test_a_budget_can_be_spent_to_the_last(prior, path):
    prior.released(2.0, 1e-5, ledger=Ledger(path, budget=2.0))
    with pytest.raises(ValueError, match=r"after 1 release\. Nothing is left of it"):
        prior.released(0.001, 1e-5)
    with pytest.raises(ValueError, match=r"to epsilon=2\.00\d+ at .*, past the budget of 2 in"):
        prior.released(0.001, 1e-5)


def test_a_budget_holds_at_its_own_delta(prior, path):
    prior.released(0.5, 1e-6, ledger=Ledger(path, budget=1.0))
    with pytest.raises(ValueError, match="at delta=1e-06, past the budget of 1"):
        prior.released(1.0, 0.5)


def test_a_budget_is_set_once_and_covers_what_was_before(prior, path):
    prior.released(1.0, 1e-5)
    with pytest.raises(ValueError, match=r"past the budget of 1\.2"):
        prior.released(1.0, 1e-5, ledger=Ledger(path, budget=1.2))
    prior.released(0.1, 1e-5, ledger=Ledger(path, budget=1.2))
    prior.released(0.01, 1e-5, ledger=Ledger(path, budget=1.2))
    message = "has a budget of epsilon=1.2, and a budget is set once; got 5"
    with pytest.raises(ValueError, match=message):
        prior.released(0.01, 1e-5, ledger=Ledger(path, budget=5.0))
    assert len(Ledger(path).releases) == 3


@pytest.mark.parametrize("budget", [0.0, -1.0, np.nan, "3", True])
def test_refuses_a_budget_that_is_none(prior, path, budget):
    with pytest.raises(ValueError, match="epsilon must be above 0"):
        prior.released(1.0, 1e-5, ledger=Ledger(path, budget=budget))
    assert not path.exists()


def test_refuses_a_delta_that_is_none(path):
    with pytest.raises(ValueError, match="delta must be above 0"):
        Ledger(path).spent(0.0)


# -- a ledger that was cut or edited --------------------------------------------------------


def cut_an_entry(text):
    fields = json.loads(text)
    del fields["releases"][-1]
    return json.dumps(fields)


@pytest.mark.parametrize(
    "change",
    [
        cut_an_entry,
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: "7",
        lambda text: "{}",
        lambda text: text.replace('"epsilon": 1.0', '"epsilon": 0.1', 1),
        lambda text: text.replace('"budget": [', '"budget": [1', 1),
        lambda text: "[" * 200,
    ],
)
def test_a_ledger_that_was_cut_or_edited_is_refused(prior, path, change):
    for _ in range(2):
        prior.released(1.0, 1e-5, ledger=Ledger(path, budget=3.0))
    path.write_text(change(path.read_text()))
    broken = path.read_bytes()
    for look in (lambda: prior.released(0.1, 1e-5), lambda: Ledger(path).releases):
        with pytest.raises(ValueError, match="was cut or edited after it was written, or is no"):
            look()
    assert path.read_bytes() == broken


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda fields: fields.update(version=3), "no ledger that this Crossfade reads"),
        (lambda fields: fields.update(format="x"), "no ledger that this Crossfade reads"),
        (lambda fields: fields.pop("releases"), "holds no valid ledger"),
        (lambda fields: fields.update(budget=[0.0, 1e-5]), "holds no valid ledger"),
        (lambda fields: fields["releases"][0].update(epsilon=-1.0), "holds no valid ledger"),
        (lambda fields: fields["releases"][0].pop("noise"), "holds no valid ledger"),
        (lambda fields: fields.pop("people"), "holds no valid ledger"),
        (lambda fields: fields.update(people=7), "holds no valid ledger"),
        (lambda fields: fields["people"].update(x=-1.0), "holds no valid ledger"),
        (lambda fields: fields.update(everybody=None), "holds no valid ledger"),
    ],
)
def test_a_ledger_with_a_right_checksum_is_checked_too(prior, path, change, message):
    prior.released(1.0, 1e-5)
    rewritten(path, change)
    with pytest.raises(ValueError, match=message):
        prior.released(0.1, 1e-5)


# -- at the same time -----------------------------------------------------------------------


def test_two_releases_do_not_write_at_the_same_time(prior, path):
    lock = path.with_name("prior.ledger.json.lock")
    lock.touch()
    with pytest.raises(ValueError, match=r"Another release is being written to .*delete .*\.lock"):
        prior.released(1.0, 1e-5)
    assert not path.exists()
    lock.unlink()
    prior.released(1.0, 1e-5)
    assert not lock.exists()


def test_of_many_threads_each_release_is_counted_or_refused(prior, path):
    done = []

    def release():
        try:
            done.append(prior.released(0.1, 1e-5))
        except ValueError as reason:
            assert "Another release is being written" in str(reason)  # noqa: PT017

    threads = [threading.Thread(target=release) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == len(Ledger(path).releases) > 0


def test_a_release_that_cannot_be_written_down_is_not_made(make_prior, tmp_path):
    with pytest.raises(FileNotFoundError):
        make_prior().released(1.0, 1e-5, ledger=tmp_path / "nowhere" / "ledger.json")

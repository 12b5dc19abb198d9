"""Ledgers: what a population spends, what is refused, and what a hundred releases give away."""

import json
import sys
import threading

import numpy as np
import pytest

from crossfade import Ledger, Task, TaskPrior
from crossfade.exceptions import UncountedReleaseWarning
from tests.checksums import digest_of

pytest.importorskip("opendp")


@pytest.fixture
def prior(make_prior):
    return make_prior(40, 4)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.json"


def rewritten(path, change):
    """Change a ledger as somebody does who can compute its checksum."""
    fields = json.loads(path.read_text())
    del fields["sha256"]
    change(fields)
    path.write_text(json.dumps(fields | {"sha256": digest_of(fields)}))


def test_every_release_is_written_down(prior, path):
    assert Ledger(path).releases == []
    assert Ledger(path).spent(1e-5) == 0.0
    for _ in range(2):
        public = prior.released(1.0, 1e-5, ledger=path)
    first, second = Ledger(path).releases
    assert first["spent_epsilon"] == pytest.approx(1.0, rel=1e-6)
    # Two releases of epsilon = 1 are worth less than 2: composition is exact.
    assert second["spent_epsilon"] == pytest.approx(1.465, abs=0.001)
    assert second["noise"] == public.release.noise
    assert (second["n_people"], second["holds"]) == (40, ["directions"])
    assert Ledger(path).spent(1e-5) == pytest.approx(second["spent_epsilon"], rel=1e-12)
    assert Ledger(path).spent(1e-9) > second["spent_epsilon"]
    assert "1.465" in Ledger(path).summary()


def test_a_rolling_crowd_spends_what_all_its_releases_spend(make_tasks, path):
    """Twenty people, of whom one leaves and one joins each month: the ledger counts everybody."""
    people = make_tasks(31)
    for month in range(12):
        crowd = people[month : month + 20]
        prior = TaskPrior.from_tasks(crowd, feature_scale=np.ones(4), rehearse=False)
        prior.released(1.0, 1e-5, ledger=path)
    assert Ledger(path).spent(1e-5) == pytest.approx(4.02, abs=0.005)


def test_a_ledger_keeps_nothing_about_tasks_or_people(make_tasks, path):
    tasks = [Task(task.X, task.y, name="Ada Lovelace") for task in make_tasks(1)]
    TaskPrior.from_tasks(tasks, feature_scale=np.ones(4)).released(1.0, 1e-5, ledger=path)
    fields = json.loads(path.read_text())
    assert set(fields) == {"format", "version", "budget", "releases", "sha256"}
    assert "Lovelace" not in path.read_text()


def test_without_a_ledger_nobody_counts(prior):
    with pytest.warns(UncountedReleaseWarning):
        prior.released(1.0, 1e-5)


def test_a_hundred_releases_give_a_prior_away_and_are_counted(prior, path):
    """The mean of many releases is the exact one; what is spent says so."""
    sums = [prior.released(1.0, 1e-5, ledger=path).directions.direction for _ in range(100)]
    mean, truth = np.mean(sums, 0), prior.directions.direction
    assert mean @ truth / np.linalg.norm(mean) / np.linalg.norm(truth) > 0.9
    assert Ledger(path).spent(1e-5) == pytest.approx(14.43, abs=0.01)


def test_what_would_exceed_the_budget_is_refused_before_noise_is_drawn(prior, path, monkeypatch):
    for _ in range(3):
        prior.released(1.0, 1e-5, ledger=Ledger(path, budget=2.0))
    before = path.read_bytes()
    import opendp.prelude

    with monkeypatch.context() as without_noise:
        without_noise.setattr(opendp.prelude.m, "make_gaussian", None)
        # The budget is in the file: nobody has to name it again.
        with pytest.raises(ValueError, match="budget of 2") as caught:
            prior.released(1.0, 1e-5, ledger=path)
    assert path.read_bytes() == before
    left = float(str(caught.value).split("At most epsilon=")[1].split(" ")[0])
    with pytest.raises(ValueError, match="budget"):
        prior.released(left + 2e-4, 1e-5, ledger=path)
    prior.released(left, 1e-5, ledger=path)
    assert Ledger(path).spent(1e-5) == pytest.approx(2.0, abs=1e-3)
    assert Ledger(path).spent(1e-5) <= 2.0


def test_a_budget_can_be_spent_to_the_last(prior, path):
    prior.released(2.0, 1e-5, ledger=Ledger(path, budget=2.0))
    with pytest.raises(ValueError, match="budget"):
        prior.released(0.001, 1e-5, ledger=path)


def test_a_budget_holds_at_its_own_delta(prior, path):
    prior.released(0.5, 1e-6, ledger=Ledger(path, budget=1.0))
    with pytest.raises(ValueError, match="budget"):
        prior.released(1.0, 0.5, ledger=path)


def test_a_budget_is_set_once_and_covers_what_was_before(prior, path):
    prior.released(1.0, 1e-5, ledger=path)
    with pytest.raises(ValueError, match=r"budget of 1\.2"):
        prior.released(1.0, 1e-5, ledger=Ledger(path, budget=1.2))
    prior.released(0.1, 1e-5, ledger=Ledger(path, budget=1.2))
    with pytest.raises(ValueError, match="budget"):
        prior.released(0.01, 1e-5, ledger=Ledger(path, budget=5.0))
    assert len(Ledger(path).releases) == 2


def test_a_ledger_without_a_folder_or_a_lock(prior, path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="no folder"):
        prior.released(1.0, 1e-5, ledger=path.parent / "none" / "l.json")
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.warns(UserWarning, match="cannot lock"):
        prior.released(1.0, 1e-5, ledger=path)


@pytest.mark.parametrize("budget", [0.0, -1.0, np.nan, "3", True])
def test_a_budget_is_a_positive_number(path, budget):
    with pytest.raises(ValueError, match="budget"):
        Ledger(path, budget=budget)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: json.dumps({**json.loads(text), "releases": []}),
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace('"epsilon": 1.0', '"epsilon": 0.1', 1),
        lambda text: "[" * 200,
    ],
)
def test_a_ledger_that_was_cut_or_edited_is_refused(prior, path, change):
    prior.released(1.0, 1e-5, ledger=path)
    path.write_text(change(path.read_text()))
    broken = path.read_bytes()
    for look in (lambda: prior.released(0.1, 1e-5, ledger=path), lambda: Ledger(path).releases):
        with pytest.raises(ValueError, match="damaged"):
            look()
    assert path.read_bytes() == broken


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda fields: fields.update(version=2, people={}, everybody=0.0), "version"),
        (lambda fields: fields.update(version=1, prior="00"), "version"),
        (lambda fields: fields.pop("releases"), "valid"),
        (lambda fields: fields.update(budget=[0.0, 1e-5]), "valid"),
        (lambda fields: fields["releases"][0].update(epsilon=-1.0), "valid"),
        (lambda fields: fields["releases"][0].pop("spent_epsilon"), "valid"),
    ],
)
def test_other_ledgers_are_refused_and_never_restarted(prior, path, change, word):
    prior.released(1.0, 1e-5, ledger=path)
    rewritten(path, change)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=word):
        prior.released(0.1, 1e-5, ledger=path)
    assert path.read_bytes() == before


def test_many_threads_and_links_write_to_one_ledger(prior, path, tmp_path):
    prior.released(0.1, 1e-5, ledger=path)
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.json"
    link.symlink_to(path)
    threads = [
        threading.Thread(target=prior.released, args=(0.1, 1e-5), kwargs={"ledger": name})
        for name in (path, link) * 4
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert link.is_symlink()
    assert len(Ledger(path).releases) == 9


def test_a_release_that_cannot_be_written_down_is_not_made(prior, tmp_path):
    with pytest.raises(FileNotFoundError):
        prior.released(1.0, 1e-5, ledger=tmp_path / "nowhere" / "ledger.json")

"""The card of a prior: says what its numbers say, travels with it, and is true after a merge."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

from crossfade import Release, TaskPrior


@pytest.fixture
def prior(make_tasks):
    names = ["θ|µV", "alpha", "beta", "gamma"]
    made = TaskPrior.from_tasks(make_tasks(labels=("rest", "task"), feature_names=names))
    return made.annotated(made_by="Lab A", units="µV²", note="pilot")


def test_card_says_what_the_numbers_say(prior):
    data = prior.card_data()
    assert (data["n_tasks"], data["n_features"], data["classes"]) == (6, 4, ["rest", "task"])
    assert data["agreement"] == pytest.approx(prior.resultant_length, rel=1e-3)
    assert data["concentration"] == pytest.approx(prior.concentration, rel=1e-3)
    assert [one["name"] for one in data["features"]] == list(prior.feature_names)
    scales = [one["scale"] for one in data["features"]]
    np.testing.assert_allclose(scales, prior.feature_scale, rtol=1e-3)
    assert (data["made_by"], data["units"], data["date"]) == ("Lab A", "µV²", None)
    assert data["more"] == {"note": "pilot"}
    assert all(data["holds"].values())
    assert data["privacy"] == {"kind": "exact sums"}
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_card_for_people(prior):
    card = prior.card()
    assert card.startswith("# Prior of 6 tasks, 4 features\n")
    rows = [line for line in card.splitlines() if line.startswith("|")]
    assert any("Lab A" in row for row in rows)
    assert any("µV²" in row for row in rows)
    assert any("θ\\|µV" in row for row in rows)
    for name in ("kappa", "agreement R", "exact sums", "'rest' and 'task'", "pilot"):
        assert name in card


def test_card_of_less(make_prior):
    bare = make_prior(isotropic=True)
    assert bare.card_data()["classes"] is None
    assert "not said" in bare.card()
    assert "sum of outer products" in bare.card().split("left out")[1].splitlines()[0]
    assert "feature 3" in bare.card()
    one = TaskPrior.from_projections([[1.0, 0.0]])
    assert one.card_data()["concentration"] is None
    assert "infinite" in one.card()
    assert one.card().startswith("# Prior of 1 task, 2 features")
    cancelled = TaskPrior.from_projections([[1.0, 0.0], [-1.0, 0.0]])
    assert cancelled.card_data()["features"][0]["mean_direction"] is None
    wide = TaskPrior.from_projections(np.eye(60)[:2])
    assert "... and 10 features more." in wide.card()
    assert len(wide.card_data()["features"]) == 60


def test_scale_is_told(make_tasks):
    tasks = make_tasks()
    assert "none" in TaskPrior.from_tasks(tasks, feature_scale=None).card_data()["scale"]
    assert "learnt" in TaskPrior.from_tasks(tasks).card_data()["scale"]
    assert "given" in TaskPrior.from_tasks(tasks, feature_scale=[2.0] * 4).card_data()["scale"]


def test_privacy_is_told(make_directions):
    kept = TaskPrior.from_projections(make_directions(), keep_directions=True)
    assert kept.card_data()["privacy"] == {"kind": "single directions"}
    assert "the direction of every single task" in kept.card().split("privacy")[1]
    budget = Release(epsilon=1.0, delta=1e-5, noise=2.0, scale_covered=False)
    exact = TaskPrior.from_projections(make_directions())
    released = replace(exact, release=budget, scale_learnt=True)
    assert released.card_data()["privacy"]["epsilon"] == 1.0
    assert "epsilon = 1, delta = 1e-05; a person counts once" in released.card()
    assert "people of merged priors count as different people; the scale is not" in released.card()
    # 2 * sqrt(4) / 30 of noise.
    for text in (released.card(), released.summary()):
        assert "noise alone has a length of about 0.1333 in the mean direction" in text
    stated = replace(released, release=replace(budget, scale_covered=True), scale_learnt=False)
    assert "the scale comes from other people, on the owner's word" in stated.card()


def test_card_is_in_the_file(prior, tmp_path):
    prior.save(tmp_path / "p.npz")
    with np.load(tmp_path / "p.npz", allow_pickle=False) as archive:
        assert archive["card_md"].tobytes().decode() == prior.card()
        assert json.loads(archive["card_json"].tobytes()) == prior.card_data()
        arrays = {name: archive[name] for name in archive.files}
    assert TaskPrior.load(tmp_path / "p.npz").about == prior.about
    arrays["card_md"] = np.frombuffer(b"# Made by somebody else", dtype=np.uint8)
    np.savez(tmp_path / "p.npz", **arrays)
    with pytest.raises(ValueError, match="altered after it was saved"):
        TaskPrior.load(tmp_path / "p.npz")


def test_what_is_said_never_changes(prior):
    with pytest.raises(TypeError, match="does not support item assignment"):
        prior.about["made_by"] = "nobody"
    said = {"units": "mV"}
    other = prior.annotated(**said)
    said["units"] = "kV"
    assert other.about["units"] == "mV"
    assert prior.about["units"] == "µV²"
    assert other != prior
    assert pickle.loads(pickle.dumps(prior)) == prior


def test_merging_keeps_what_both_say_and_names_all_makers(prior):
    other = replace(prior, direction_sum=-prior.direction_sum, builds=frozenset(["b"]))
    other = other.annotated(made_by="Lab B", note="main study")
    both = prior + other
    assert both.about == {"units": "µV²", "made_by": "Lab A; Lab B"}
    silent, quiet = TaskPrior.from_projections(np.eye(2)), TaskPrior.from_projections(-np.eye(2))
    assert (silent + quiet).about == {}
    assert (silent.annotated(made_by="Lab A") + quiet).about == {"made_by": "Lab A; not named"}


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"made_by": 7}, "mapping of text to text; got 'made_by': 7"),
        ({"made_by": "two\nlines"}, "printable text on one line"),
    ],
)
def test_only_text_can_be_said(prior, about, message):
    with pytest.raises((TypeError, ValueError), match=message):
        prior.annotated(**about)


def test_a_replay_that_nobody_could_play_is_not_held(make_tasks):
    prior = TaskPrior.from_tasks(make_tasks(8, n_each=(3, 3)))
    assert prior.replay is not None
    holds = prior.card_data()["holds"]
    assert holds["a replay (fewer than 5 people have enough windows)"] is False
    assert "what forecasts were worth" not in holds
    assert "what forecasts were worth" in TaskPrior.from_tasks(make_tasks(8)).card_data()["holds"]

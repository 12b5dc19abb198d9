"""The card of a prior: what it says follows from the numbers."""

import json

import numpy as np
import pytest

from crossfade import Task, TaskPrior


@pytest.fixture
def prior(make_tasks):
    tasks = make_tasks(labels=("rest", "task"), feature_names=["theta", "alpha", "a|b", "gamma"])
    return TaskPrior.from_tasks(tasks).annotated(made_by="Lab A", units="µV²")


def test_a_card_says_what_the_numbers_say(prior):
    data = json.loads(json.dumps(prior.card_data(), allow_nan=False))
    assert (data["n_tasks"], data["n_people"], data["n_features"]) == (6, 6, 4)
    assert data["classes"] == ["rest", "task"]
    assert data["agreement"] == pytest.approx(prior.resultant_length, rel=1e-3)
    assert data["concentration"] == pytest.approx(prior.concentration, rel=1e-3)
    parts = [one["mean_direction"] for one in data["features"]]
    np.testing.assert_allclose(parts, prior.mean_direction, atol=1e-3)
    assert data["privacy"] == {"kind": "exact sums"}
    assert data["holds"] == ["directions", "class_means", "forecast_records"]
    for text in (prior.card(), prior.summary()):
        assert "'rest' and 'task'" in text
        assert f"{prior.resultant_length:.3f}" in text
    # A bar would end a cell of the table.
    assert "a\\|b" in prior.card()
    assert "Lab A" in prior.card()


def test_what_is_missing_is_told(make_prior, make_tasks):
    assert "class means" in make_prior().summary().split("lacks")[1]
    bare = TaskPrior.from_tasks(make_tasks(), rehearse=False)
    assert "forecast records" in bare.summary().split("lacks")[1]
    alone = TaskPrior.from_tasks(make_tasks()[:1])
    assert "enough people" in alone.summary().split("lacks")[1]
    many = [Task(one.X, np.arange(len(one.y)) % 3, one.name) for one in make_tasks()]
    assert "mean direction" not in TaskPrior.from_tasks(many, rehearse=False).card()
    wide = make_prior(n_features=60)
    assert "10 features more" in wide.card()
    cancelling = TaskPrior.from_projections(np.concatenate([np.eye(2), -np.eye(2)]))
    assert "cancel out" in cancelling.summary()


def test_what_is_said_never_changes_and_is_added(make_prior):
    prior = make_prior(seed=1).annotated(made_by="Lab A", units="mV")
    prior.about["units"] = "kV"
    assert prior.about["units"] == "mV"
    other = make_prior(seed=2).annotated(made_by="Lab B", units="mV", note="main study")
    assert (prior + other).about == {"units": "mV", "made_by": "Lab A; Lab B"}
    silent = make_prior(seed=3)
    assert (silent + make_prior(seed=4)).about == {}
    assert (prior + silent).about == {"made_by": "Lab A; not named"}
    for text in (7, "two\nlines"):
        with pytest.raises(ValueError, match="about"):
            prior.annotated(made_by=text)

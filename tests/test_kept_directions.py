"""Priors that keep the single directions."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from crossfade import FisherDiscriminant, TaskPrior
from crossfade.simulate import draw_directions, simulate_tasks


@pytest.fixture
def clusters():
    """Forty directions in two clusters, the first twenty around the first axis."""
    rng = np.random.default_rng(1)
    first, second = np.eye(5)[:2]
    return np.concatenate(
        [
            draw_directions(20, 5, 60.0, mean_direction=axis, random_state=rng)
            for axis in (first, second)
        ]
    )


def test_directions_are_kept_only_when_asked_for(clusters):
    assert TaskPrior.from_projections(clusters).directions is None
    prior = TaskPrior.from_projections(clusters, keep_directions=True)
    np.testing.assert_array_equal(prior.directions, clusters)
    assert not prior.directions.flags.writeable
    assert prior != TaskPrior.from_projections(clusters)
    again = pickle.loads(pickle.dumps(prior))
    assert again == prior


def test_directions_of_tasks_are_those_of_their_discriminants():
    tasks = simulate_tasks(6, 30, n_features=4, random_state=0)
    assert TaskPrior.from_tasks(tasks).directions is None
    prior = TaskPrior.from_tasks(tasks, keep_directions=True)
    plain = FisherDiscriminant(feature_scale=prior.feature_scale)
    expected = [clone(plain).fit(task.X, task.y).projection_ for task in tasks]
    np.testing.assert_allclose(prior.directions, expected)


def test_merging_updating_and_turning_keep_directions(clusters):
    ours = TaskPrior.from_projections(clusters[:15], keep_directions=True)
    theirs = TaskPrior.from_projections(clusters[15:], keep_directions=True)
    np.testing.assert_array_equal((ours + theirs).directions, clusters)
    np.testing.assert_array_equal(ours.update(clusters[15:]).directions, clusters)
    np.testing.assert_array_equal(ours.reversed().directions, -clusters[:15])
    assert (ours + TaskPrior.from_projections(clusters[15:])).directions is None
    assert TaskPrior.from_projections(clusters[:15]).update(clusters[15:]).directions is None


def test_file_and_text_say_that_single_directions_are_inside(clusters, tmp_path):
    prior = TaskPrior.from_projections(clusters, keep_directions=True)
    prior.save(tmp_path / "prior.npz")
    assert TaskPrior.load(tmp_path / "prior.npz") == prior
    with np.load(tmp_path / "prior.npz") as archive:
        np.testing.assert_array_equal(archive["directions"], clusters)
    assert "every single task" in prior.summary()
    assert "every single task" in prior.card()
    sums = TaskPrior.from_projections(clusters)
    sums.save(tmp_path / "sums.npz")
    with np.load(tmp_path / "sums.npz") as archive:
        assert "directions" not in archive.files
    assert "every single task" not in sums.summary() + sums.card()


def test_directions_that_do_not_belong_to_the_sums_are_refused(clusters):
    fields = {
        "n_tasks": 40,
        "direction_sum": clusters.sum(0),
        "outer_sum": None,
        "feature_scale": np.ones(5),
    }
    with pytest.raises(ValueError, match="do not add up to direction_sum"):
        TaskPrior(**fields, directions=-clusters)
    with pytest.raises(ValueError, match=r"directions must be of shape \(40, 5\)"):
        TaskPrior(**fields, directions=clusters[:39])
    with pytest.raises(ValueError, match="unit vectors"):
        TaskPrior(**fields, directions=2.0 * clusters)

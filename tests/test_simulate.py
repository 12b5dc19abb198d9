"""The generative model."""

import numpy as np
import pytest

from crossfade import TaskPrior
from crossfade.prior import mean_resultant_length
from crossfade.simulate import draw_directions, simulate_tasks


@pytest.mark.parametrize(("n_features", "kappa"), [(2, 5.0), (10, 10.0), (50, 100.0), (1, 0.5)])
def test_directions_have_the_resultant_length_of_their_law(n_features, kappa):
    directions = draw_directions(20_000, n_features, kappa, random_state=0)
    assert np.allclose(np.linalg.norm(directions, axis=1), 1.0)
    along = directions[:, 0]
    error = along.std() / np.sqrt(along.size)
    assert along.mean() == pytest.approx(mean_resultant_length(kappa, n_features), abs=4 * error)


def test_directions_of_no_concentration_are_uniform():
    directions = draw_directions(20_000, 4, 0.0, random_state=0)
    moment = directions.T @ directions / len(directions)
    assert np.allclose(moment, np.eye(4) / 4, atol=0.01)


def test_directions_follow_the_mean_direction():
    mean = np.array([0.0, 0.6, 0.8])
    directions = draw_directions(2_000, 3, 1e4, mean_direction=mean, random_state=0)
    assert np.allclose(directions.mean(0), mean, atol=1e-3)


def test_directions_refuse_a_mean_that_is_not_unit():
    with pytest.raises(ValueError, match="unit vectors; row 0 has length 2"):
        draw_directions(5, 2, 1.0, mean_direction=[2.0, 0.0])


def test_tasks_have_the_means_and_covariance_of_the_model():
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    [task] = simulate_tasks(1, 200_000, n_features=2, covariance=covariance, random_state=1)
    second = task.X[task.y == 1]
    first = task.X[task.y == 0]
    assert np.allclose(np.cov(second.T), covariance, atol=0.03)
    half_gap = (second.mean(0) - first.mean(0)) / 2
    assert np.linalg.norm(np.linalg.solve(covariance, half_gap)) == pytest.approx(1.0, abs=0.02)
    assert np.allclose(second.mean(0) + first.mean(0), 0.0, atol=0.03)


def test_prior_of_simulated_tasks_finds_the_crowd():
    tasks = simulate_tasks(60, 400, n_features=5, concentration=30.0, random_state=2)
    prior = TaskPrior.from_tasks(tasks)
    assert prior.mean_direction[0] > 0.97
    assert 15.0 < prior.concentration < 45.0


def test_no_task_is_refused():
    with pytest.raises(ValueError, match="n_tasks"):
        simulate_tasks(0)

"""Neighbouring samples against simulation: how alike they are, what a run of them is worth."""

import numpy as np
import pytest
from scipy.linalg import toeplitz

from crossfade import (
    CalibrationStudy,
    FisherDiscriminant,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
)
from crossfade.fisher import worth_of_runs


@pytest.fixture
def crowd_of(make_run):
    """Tasks with directions about a common one, classes one after the other."""

    def make(rng, n_tasks, d, correlation, n_each=40, between=0.3):
        mean = rng.standard_normal(d)
        tasks, directions = [], []
        label = np.repeat([0, 1], n_each)
        for _ in range(n_tasks):
            direction = mean / np.linalg.norm(mean) + between * rng.standard_normal(d) / np.sqrt(d)
            direction /= np.linalg.norm(direction)
            rows = make_run(rng, (2 * n_each, d), correlation)
            tasks.append(Task(rows + np.where(label == 1, 1.0, -1.0)[:, None] * direction, label))
            directions.append(direction)
        return tasks, np.array(directions)

    return make


def likeness(prior):
    return prior.sums["directions"].average("autocorrelation")


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.8])
def test_autocorrelation_is_that_of_the_process(make_run, correlation):
    rng = np.random.default_rng(1)
    label = np.repeat([0, 1], 400)
    # Units and correlations of the features do not matter.
    turn = rng.standard_normal((4, 4)) * [1.0, 10.0, 100.0, 0.1]
    rows = make_run(rng, (20, 800, 4), correlation) @ turn + label[:, None]
    found = likeness(TaskPrior.from_tasks([Task(one, label) for one in rows], rehearse=False))
    np.testing.assert_allclose(found[:8], correlation ** np.arange(1, 9), atol=0.03)


def test_shuffled_samples_are_not_alike(make_run):
    rng = np.random.default_rng(2)
    label = rng.permutation(np.repeat([0, 1], 300))
    rows = rng.permutation(make_run(rng, (600, 5), 0.8))
    found = likeness(TaskPrior.from_tasks([Task(rows, label)], rehearse=False))
    assert np.abs(found[:10]).max() < 0.08


@pytest.mark.parametrize("sizes", [(2, 2), (5, 9), (40, 13)])
@pytest.mark.parametrize("correlation", [0.3, 0.8])
def test_what_a_run_is_worth(make_run, sizes, correlation):
    lags = correlation ** np.arange(1.0, 31.0)
    worth = worth_of_runs(lags, np.array(sizes))
    # Dense matrices, as equation 48 has them.
    within, square = 0.0, 0.0
    for size, crowding in zip(sizes, worth.crowding, strict=True):
        alike = toeplitz(np.concatenate([[1.0], lags, np.zeros(size)])[:size])
        centred = (np.eye(size) - 1.0 / size) @ alike
        assert crowding == pytest.approx(alike.sum() / size)
        within, square = within + np.trace(centred), square + np.trace(centred @ centred)
    assert worth.shown == pytest.approx(within / (sum(sizes) - 2))
    assert worth.dof == pytest.approx(within**2 / square / (sum(sizes) - 2))
    # And a simulation: variance of the means, size and spread of the covariance.
    rng = np.random.default_rng(3)
    runs = [make_run(rng, (40_000, size, 1), correlation)[..., 0] for size in sizes]
    for run, size, crowding in zip(runs, sizes, worth.crowding, strict=True):
        assert run.mean(1).var() * size == pytest.approx(crowding, rel=0.04)
    left = sum(sizes) - 2
    variance = sum(((run - run.mean(1, keepdims=True)) ** 2).sum(1) for run in runs) / left
    assert variance.mean() == pytest.approx(worth.shown, rel=0.04)
    freedom = 2.0 * variance.mean() ** 2 / variance.var()
    assert freedom == pytest.approx(worth.dof * left, rel=0.08)


def test_independent_samples_are_worth_their_number():
    worth = worth_of_runs(np.zeros(30), np.array([7, 3]))
    np.testing.assert_allclose([*worth.crowding, worth.shown, worth.dof], 1.0)


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_noise_of_the_crowd_is_taken_off_its_scatter(crowd_of, correlation):
    tasks, directions = crowd_of(np.random.default_rng(4), 300, 6, correlation, between=0.5)
    prior = TaskPrior.from_tasks(tasks, feature_scale=np.ones(6), rehearse=False)
    fitted = np.array(
        [FisherDiscriminant(feature_scale=None).fit(task.X, task.y).projection_ for task in tasks]
    )
    noise = ((fitted - directions) ** 2).sum(1).mean()
    assert prior.sums["directions"].average("noise") == pytest.approx(noise, rel=0.25)
    truth = np.trace(np.cov(directions.T))
    seen = np.trace(np.cov(fitted.T))
    assert abs(np.trace(prior.scatter) - truth) < 0.35 * abs(seen - truth)


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_forecast_knows_that_neighbours_are_alike(crowd_of, correlation):
    tasks, _ = crowd_of(np.random.default_rng(5), 340, 6, correlation)
    # Judged on the rest of their sessions, which are as long as those of the crowd.
    prior, people = TaskPrior.from_tasks(tasks[:40]), tasks[40:]
    few, rest = np.r_[0:4, 40:44], np.r_[4:40, 44:80]
    promised, found = [], []
    for person in people:
        blend = PosteriorBlendClassifier(prior).fit(person.X[few], person.y[few])
        promised.append(blend.expected_accuracy_)
        found.append(blend.score(person.X[rest], person.y[rest]))
    assert np.mean(promised) == pytest.approx(np.mean(found), abs=0.05)


@pytest.mark.parametrize(("correlation", "d"), [(0.0, 12), (0.6, 6), (0.8, 12)])
def test_correlated_windows_do_no_harm(crowd_of, correlation, d):
    tasks, _ = crowd_of(np.random.default_rng(6), 15, d, correlation)
    names = ["target-shrunk", "average-source", "posterior"]
    study = CalibrationStudy(tasks, methods=names, n_splits=30, random_state=0)
    rows = study.run().rows
    mean = rows.groupby(["method", "budget"]).balanced_accuracy.mean().unstack("budget")
    better = mean.loc[["target-shrunk", "average-source"]].max()
    least = (mean.loc["posterior"] - better).min()
    print(f"correlation {correlation}, d={d}: {least:+.3f} at worst")
    assert least > -0.015

"""Labelled samples that follow each other in time, and those that do not."""

from dataclasses import replace

import numpy as np
import pytest

from crossfade import (
    ConvexBlendClassifier,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
)
from crossfade.fisher import cut_off

BLENDS = [ConvexBlendClassifier, PosteriorBlendClassifier]


@pytest.fixture(scope="module")
def tasks(make_run):
    """Tasks whose neighbouring samples are alike."""
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], 30)
    gaps = np.array([1.0, 0.5, 0.0, 0.0]) + 0.3 * rng.standard_normal((9, 4))
    rows = make_run(rng, (9, 60, 4), 0.7) + np.where(label, 1.0, -1.0)[:, None] * gaps[:, None]
    return [Task(one, label, f"p{place}") for place, one in enumerate(rows)]


def unknown_of(prior):
    """The prior as if nobody knew how far neighbours are alike."""
    directions = replace(prior.directions, autocorrelation=None)
    return replace(prior, sums={**prior.sums, "directions": directions})


def test_samples_from_all_over_a_session_are_taken_for_independent(tasks):
    blend = PosteriorBlendClassifier
    prior = TaskPrior.from_tasks(tasks[1:], rehearse=False)
    few = np.r_[0:4, 30:34]
    X, y = tasks[0].X[few], tasks[0].y[few]
    apart = blend(prior, consecutive=False).fit(X, y)
    unknown = blend(unknown_of(prior)).fit(X, y)
    consecutive = blend(prior).fit(X, y)
    assert apart.expected_accuracy_ == unknown.expected_accuracy_
    np.testing.assert_array_equal(apart.coef_, unknown.coef_)
    # A run says less than its number: the crowd counts for more, and less is promised.
    assert consecutive.alpha_ < apart.alpha_
    assert consecutive.expected_accuracy_ < apart.expected_accuracy_


@pytest.mark.parametrize("blend", BLENDS)
def test_weights_are_frequencies_of_a_run(tasks, blend):
    prior = TaskPrior.from_tasks(tasks[1:], rehearse=False)
    few = np.r_[0:3, 30:33]
    X, y = tasks[0].X[few], tasks[0].y[few]
    weight = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0])
    weighted = blend(prior).fit(X, y, sample_weight=weight)
    times = weight.astype(int)
    repeated = blend(prior).fit(np.repeat(X, times, 0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_)
    assert weighted.expected_accuracy_ == pytest.approx(repeated.expected_accuracy_)
    blend(prior).fit(X, y, sample_weight=np.where(y == 0, 0.1, 1.0))


def test_the_paper_takes_samples_for_independent(tasks):
    prior = TaskPrior.from_tasks(tasks[1:], feature_scale=None, rehearse=False)
    few = np.r_[0:6, 30:36]
    X, y = tasks[0].X[few], tasks[0].y[few]
    rules = [
        ConvexBlendClassifier.paper(one, random_state=0).fit(X, y)
        for one in (prior, unknown_of(prior))
    ]
    assert rules[0].alpha_ == rules[1].alpha_


def test_likeness_is_cut_off_at_the_first_that_may_be_chance():
    np.testing.assert_array_equal(cut_off(np.array([0.4, 0.1, 0.01, 0.3])), [0.4, 0.1])
    np.testing.assert_array_equal(cut_off(np.array([1.2, 0.5])), [0.95, 0.5])
    assert cut_off(np.array([-0.1, 0.5])).size == 0


def test_tasks_too_short_for_halves_have_no_noise(make_tasks):
    assert TaskPrior.from_tasks(make_tasks(4, 3, (3, 3)), rehearse=False).directions.noise is None
    assert TaskPrior.from_tasks(make_tasks(4, 3, (4, 4)), rehearse=False).directions.noise > 0.0

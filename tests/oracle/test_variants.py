"""Batched variants of the blends against their estimators, split by split."""

from dataclasses import replace

import numpy as np
import pytest

from crossfade import (
    CalibrationStudy,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
)
from crossfade.prior._release import noise_scale, sensitivity
from crossfade.study._blend_methods import DELTA, EPSILON, as_if_released
from crossfade.study._sources import Sources

#: What each variant is, given the prior of the sources and the windows without labels.
ESTIMATORS = {
    "hierarchical": HierarchicalBlendClassifier,
    "hierarchical-unlabelled": HierarchicalBlendClassifier,
    "posterior-unlabelled": PosteriorBlendClassifier,
}


@pytest.fixture(scope="module")
def tasks():
    """People of two kinds; three in four windows are of the first class."""
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], [60, 20])
    made = []
    for place in range(24):
        gap = np.zeros(4)
        gap[place % 2] = 1.2
        gap += 0.2 * rng.standard_normal(4)
        rows = rng.standard_normal((80, 4)) + np.where(label == 1, 1.0, -1.0)[:, None] * gap
        made.append(Task(rows, label, f"p{place}"))
    return made


@pytest.fixture(scope="module")
def priors(tasks):
    """Of all but one, by the place of that one."""
    others = {place: tasks[:place] + tasks[place + 1 :] for place in (0, 1, 5)}
    return {place: TaskPrior.from_tasks(sources) for place, sources in others.items()}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_variant_is_its_estimator(tasks, priors, name):
    study = CalibrationStudy(
        tasks, methods=[name], budgets=[1, 3, 8], n_splits=1, splits="chronological", random_state=0
    )
    rows = study.run().rows.set_index(["task", "budget"])
    for place, prior in priors.items():
        target = tasks[place]
        for budget in (1, 3, 8):
            few = np.concatenate([np.arange(budget), 60 + np.arange(budget)])
            rest = np.setdiff1d(np.arange(80), few)
            rule = ESTIMATORS[name](prior).fit(target.X[few], target.y[few])
            if name.endswith("unlabelled"):
                rule.partial_fit(target.X[rest], None)
            row = rows.loc[(f"p{place}", budget)]
            assert row["accuracy"] == pytest.approx(rule.score(target.X[rest], target.y[rest]))
            assert row["expected_accuracy"] == pytest.approx(rule.expected_accuracy_, abs=1e-6)
            assert row["alpha"] == pytest.approx(rule.alpha_, abs=1e-6)
            chances = rule.predict_proba(target.X[rest])[:, 1]
            brier = np.mean((chances - (target.y[rest] == 1)) ** 2)
            assert row["brier"] == pytest.approx(brier, abs=1e-6)


def test_noise_of_private_is_that_of_a_release(tasks):
    pytest.importorskip("opendp")
    exact = TaskPrior.from_tasks(tasks)
    noise = noise_scale(sensitivity(exact.n_tasks, False), EPSILON, DELTA)
    rng = np.random.default_rng(1)
    # So many tasks that nothing has to be repaired: what is left of the difference is the noise.
    more = 10**6
    wide = replace(
        exact,
        n_tasks=len(tasks) * more,
        direction_sum=more * exact.direction_sum,
        outer_sum=more * exact.outer_sum,
    )
    drawn = [as_if_released(wide, noise, rng) for _ in range(400)]
    sums = np.array([one.direction_sum - wide.direction_sum for one in drawn])
    assert sums.std() == pytest.approx(noise, rel=0.1)
    outer = np.array([one.outer_sum - wide.outer_sum for one in drawn])
    off = outer[:, *np.triu_indices(4, 1)]
    assert off.std() == pytest.approx(noise / np.sqrt(2.0), rel=0.1)
    assert drawn[0].release.noise == noise
    assert drawn[0].within_covariance is None
    assert drawn[0].autocorrelation is None
    assert not np.array_equal(drawn[0].direction_sum, drawn[1].direction_sum)


def test_private_counts_people_not_sessions(tasks):
    """Sessions of one group are one person, as in a release."""
    groups = ["a", "a", "a", *(f"p{place}" for place in range(len(tasks) - 3))]
    sessions = [replace(task, group=group) for task, group in zip(tasks, groups, strict=True)]
    study = CalibrationStudy(sessions, methods=["private"], budgets=[3], n_splits=2)
    crowd = Sources.of(study._participants, study._classes, 0, keep_windows=False)
    assert crowd.prior.n_people == len(tasks) - 2
    assert crowd.without("a").prior.people is None
    drawn = as_if_released(crowd.prior, 1e-9, np.random.default_rng(0))
    assert drawn.n_tasks == len(tasks) - 2
    np.testing.assert_allclose(drawn.direction_sum, crowd.prior.people.direction_sum, atol=1e-6)


def test_private_follows_the_seed(tasks):
    pytest.importorskip("opendp")
    first, second = (
        CalibrationStudy(tasks, methods=["private"], budgets=[3], n_splits=2, random_state=5)
        .run()
        .rows
        for _ in range(2)
    )
    assert first.drop(columns="seconds").equals(second.drop(columns="seconds"))

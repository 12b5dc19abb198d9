"""Batched variants of the blends against their estimators, split by split."""

import numpy as np
import pytest

from crossfade import (
    CalibrationStudy,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
)

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

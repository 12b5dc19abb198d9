"""Rivals of a study: fine-tuned and calibrated rules, and other packages' estimators as methods."""

import importlib

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from benchmarks.rivals import Coral, Mdwm, TlCenter
from crossfade import Task, TaskPrior, TaskSet
from crossfade.study import CalibrationStudy
from crossfade.study.statistics import by_task, summarise
from crossfade.tasks import Recipe


def middle_of(task):
    return (task.X[task.y == 0].mean(0) + task.X[task.y == 1].mean(0)) / 2


def test_logistic_regression_fine_tuned_from_the_crowd(make_tasks):
    tasks = make_tasks(5)
    study = CalibrationStudy(
        tasks, methods=["logistic-tuned"], budgets=[(4, 2)], splits="chronological", random_state=0
    )
    row = study.run().rows.iloc[0]
    scale = TaskPrior.from_tasks(tasks[1:]).feature_scale
    rows = [(task.X - middle_of(task)) / scale for task in tasks[1:]]
    crowd = LogisticRegression(max_iter=1000).fit(
        np.concatenate(rows), np.concatenate([task.y for task in tasks[1:]])
    )
    start = np.append(crowd.coef_, crowd.intercept_)
    labelled = np.r_[0:4, 10:12]
    own = Task(tasks[0].X[labelled], tasks[0].y[labelled])

    def columns(X):
        return np.column_stack([(X - middle_of(own)) / scale, np.ones(len(X))])

    def loss(w):
        signed = np.where(own.y == 1, 1.0, -1.0) * (columns(own.X) @ w)
        return np.logaddexp(0.0, -signed).sum() + np.sum((w - start) ** 2) / 2

    best = minimize(loss, start, tol=1e-12).x
    assert np.abs(best - start).max() > 0.01
    rest = np.setdiff1d(np.arange(20), labelled)
    chances = expit(columns(tasks[0].X[rest]) @ best)
    assert row["accuracy"] == np.mean((chances > 0.5) == tasks[0].y[rest])
    assert row["brier"] == pytest.approx(np.mean((chances - tasks[0].y[rest]) ** 2), abs=1e-5)


def test_centring_takes_offsets_of_people_away(make_tasks):
    tasks = make_tasks(6, n_each=(20, 20))
    moved = [
        Task(task.X + 50.0 * np.random.default_rng(place).standard_normal(4), task.y, task.name)
        for place, task in enumerate(tasks)
    ]
    first, second = (
        CalibrationStudy(some, methods=["lda-pooled"], budgets=[4], n_splits=5, random_state=0)
        .run()
        .rows["balanced_accuracy"]
        for some in (tasks, moved)
    )
    np.testing.assert_allclose(first, second)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibrated_lda_decides_like_lda_and_is_less_sure(make_tasks, make_many, n_classes):
    tasks = make_tasks(6, n_each=(12, 12)) if n_classes == 2 else make_many(6, gap=0.7)
    study = CalibrationStudy(
        tasks, methods=["lda", "lda-calibrated"], budgets=[3, 5], n_splits=5, random_state=0
    )
    rows = study.run().rows
    table = summarise(rows).set_index(["method", "budget"])["mean"]
    # With three of each class nothing is left to calibrate with.
    assert table["lda-calibrated"].index.tolist() == [5.0]
    pd.testing.assert_series_equal(table["lda"].loc[[5.0]], table["lda-calibrated"])
    loss = by_task(rows).groupby(["method", "budget"])["log_loss"].mean()
    assert loss["lda-calibrated", 5.0] < loss["lda", 5.0]


# -- other packages' ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tangent():
    """Tangent vectors of three channels and three classes, of five people named with a slash."""
    pytest.importorskip("pyriemann")
    eeg = importlib.import_module("crossfade.signals.eeg")
    recipe = Recipe("tangent", 100.0, ("Fz", "Cz", "Pz"), 2.5, centre="session")
    tasks = []
    for person in range(5):
        rng = np.random.default_rng(person)
        label = np.repeat(np.arange(3), 9 + person % 2)
        mixing = np.eye(3) + 0.3 * rng.standard_normal((3, 3))
        power = np.ones((len(label), 3, 1))
        power[np.arange(len(label)), label, 0] = 1.6
        windows = mixing @ (power * rng.standard_normal((len(label), 3, 60)))
        vectors = eeg.tangent_vectors(eeg.window_covariances(windows))
        tasks.append(Task(vectors, label, f"site/p{person}", recipe=recipe))
    return TaskSet(tasks)


@pytest.mark.parametrize("rival", [Mdwm(), TlCenter(), Coral()])
def test_estimators_of_other_packages_are_methods_of_a_study(tangent, rival):
    if isinstance(rival, Coral):
        # skada turns metadata routing on for everybody; other tests are to see the default.
        with sklearn.config_context():
            pytest.importorskip("skada")
    before = sklearn.get_config()
    study = CalibrationStudy(
        tangent, methods={"rival": rival}, budgets=[2], n_splits=2, random_state=0
    )
    rows = study.run().rows
    assert sklearn.get_config() == before
    assert rows[["balanced_accuracy", "roc_auc", "brier", "log_loss"]].notna().all(axis=None)
    assert rows["balanced_accuracy"].mean() > 0.5

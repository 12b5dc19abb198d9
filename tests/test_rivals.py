"""Rivals of a study: those of scikit-learn, and other packages' estimators as methods."""

import importlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from benchmarks.rivals import Coral, Mdwm, TlCenter
from crossfade import Task, TaskPrior, TaskSet
from crossfade.study import CalibrationStudy
from crossfade.study._batch import Batch
from crossfade.study._methods import METHODS
from crossfade.study._participants import check_tasks
from crossfade.study._sources import Sources
from crossfade.study._splits import draw_splits
from crossfade.study.statistics import by_task, summarise
from crossfade.tasks import Recipe

RNG = np.random.default_rng(0)


def world(tasks, n_each, n_splits=4):
    """Splits of the first task, and its sources."""
    classes, participants = check_tasks(tasks)
    sources = Sources.of(participants, classes, 0, keep_windows=True)
    one = participants[0]
    splits = draw_splits(one.label, n_each, n_splits, "consecutive", np.random.default_rng(0))
    return Batch(one.X, classes, splits), sources.without(one.group)


def needs(package):
    return pytest.importorskip(package, reason=f"{package} is not installed")


# -- scikit-learn's -------------------------------------------------------------------------------


class Together(ClassifierMixin, BaseEstimator):
    """LDA of everybody's windows as if they were one person's."""

    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    def fit(self, X, y, groups=None):
        self.rule_ = LinearDiscriminantAnalysis().fit(
            X[groups != groups[-1]], y[groups != groups[-1]]
        )
        self.classes_ = self.rule_.classes_
        return self

    def predict(self, X):
        return self.rule_.predict(X)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_centred_pooled_lda(make_tasks, make_many, n_classes):
    tasks = make_tasks(5) if n_classes == 2 else make_many(5)
    n_each = (4, 2) if n_classes == 2 else (3, 2, 4)
    batch, sources = world(tasks, n_each)
    found = METHODS["lda-pooled"].run(sources, batch, RNG)
    rows, labels = [], []
    for task in tasks[1:]:
        middle = np.mean([task.X[task.y == name].mean(0) for name in batch.classes], 0)
        rows.append(task.X - middle)
        labels.append(task.y)
    equal = [1 / n_classes] * n_classes
    rule = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=equal)
    rule.fit(np.concatenate(rows), np.concatenate(labels))
    label = batch.splits.label
    for place in range(len(batch)):
        labelled, test = batch.splits.labelled[place], batch.splits.test[place]
        own = [batch.X[labelled[label == name]].mean(0) for name in range(n_classes)]
        centred = batch.X[test] - np.mean(own, 0)
        np.testing.assert_array_equal(batch.classes[found.predicted[place]], rule.predict(centred))
        columns = slice(None) if n_classes > 2 else slice(1, None)
        np.testing.assert_allclose(
            found.probability[place], rule.predict_proba(centred)[:, columns], atol=1e-9
        )


def test_logistic_regression_fine_tuned_from_the_crowd(make_tasks):
    tasks = make_tasks(5)
    batch, sources = world(tasks, (4, 2))
    found = METHODS["logistic-tuned"].run(sources, batch, RNG)
    scale = TaskPrior.from_tasks(tasks[1:]).feature_scale
    middles = [(task.X[task.y == 0].mean(0) + task.X[task.y == 1].mean(0)) / 2 for task in tasks]
    rows = [(task.X - middle) / scale for task, middle in zip(tasks, middles, strict=True)]
    crowd = LogisticRegression(max_iter=1000).fit(
        np.concatenate(rows[1:]), np.concatenate([task.y for task in tasks[1:]])
    )
    start = np.append(crowd.coef_, crowd.intercept_)
    label = batch.splits.label
    for place in range(len(batch)):
        own = batch.X[batch.splits.labelled[place]]
        middle = (own[label == 0].mean(0) + own[label == 1].mean(0)) / 2
        own = np.column_stack([(own - middle) / scale, np.ones(len(own))])

        def loss(w, own=own):
            log_loss = np.logaddexp(0.0, -np.where(label == 1, 1.0, -1.0) * (own @ w)).sum()
            return log_loss + np.sum((w - start) ** 2) / 2

        best = minimize(loss, start, tol=1e-12).x
        test = np.column_stack(
            [(batch.X[batch.splits.test[place]] - middle) / scale, np.ones(batch.splits.truth.size)]
        )
        np.testing.assert_allclose(found.scores[place, :, 0], test @ best, atol=1e-4)
        np.testing.assert_allclose(found.probability[place, :, 0], expit(test @ best), atol=1e-4)
    assert np.abs(best - start).max() > 0.01


def test_centring_takes_offsets_of_people_away(make_tasks):
    tasks = make_tasks(6, n_each=(20, 20))
    moved = [
        replace(task, X=task.X + 50.0 * np.random.default_rng(place).standard_normal(4))
        for place, task in enumerate(tasks)
    ]
    rows = [
        CalibrationStudy(
            some,
            methods=["lda-pooled", ("together", Together())],
            budgets=[4],
            n_splits=5,
            random_state=0,
        )
        .run()
        .rows.groupby("method")["balanced_accuracy"]
        .mean()
        for some in (tasks, moved)
    ]
    assert rows[1]["lda-pooled"] == pytest.approx(rows[0]["lda-pooled"])
    assert rows[1]["together"] < rows[0]["together"] - 0.1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibrated_lda_decides_like_lda_and_is_less_sure(make_tasks, make_many, n_classes):
    tasks = make_tasks(6, n_each=(12, 12)) if n_classes == 2 else make_many(6, gap=0.7)
    study = CalibrationStudy(
        tasks, methods=["lda", "lda-calibrated"], budgets=[3, 5], n_splits=5, random_state=0
    )
    table = summarise(study.run().rows).set_index(["method", "budget"])["mean"]
    # With three of each class nothing is left to calibrate with.
    assert table["lda-calibrated"].index.tolist() == [5.0]
    pd.testing.assert_series_equal(table["lda"].loc[[5.0]], table["lda-calibrated"])
    loss = by_task(study.run().rows).groupby(["method", "budget"])["log_loss"].mean()
    assert loss["lda-calibrated", 5.0] < loss["lda", 5.0]


@pytest.mark.parametrize("n_each", [(0, 0), (3, 0)])
def test_pooled_lda_stands_at_the_crowds_middle_while_a_class_has_no_label(make_tasks, n_each):
    tasks = make_tasks(5)
    batch, sources = world(tasks, n_each)
    found = METHODS["lda-pooled"].run(sources, batch, RNG)
    middles = [(task.X[task.y == 0].mean(0) + task.X[task.y == 1].mean(0)) / 2 for task in tasks]
    rule = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=[0.5, 0.5])
    rule.fit(
        np.concatenate([task.X - middle for task, middle in zip(tasks, middles, strict=True)][1:]),
        np.concatenate([task.y for task in tasks[1:]]),
    )
    for place, test in enumerate(batch.splits.test):
        centred = batch.X[test] - np.mean(middles[1:], 0)
        np.testing.assert_array_equal(found.predicted[place], rule.predict(centred))


# -- other packages' ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tangent():
    """Tangent vectors of three channels, two classes or more, of five people named with a slash."""

    def make(n_classes=2, n_each=9):
        eeg = importlib.import_module("crossfade.signals.eeg")
        recipe = Recipe("tangent", 100.0, ("Fz", "Cz", "Pz"), 2.5, centre="session")
        tasks = []
        for person in range(5):
            rng = np.random.default_rng(person)
            label = np.repeat(np.arange(n_classes), n_each + person % 2)
            mixing = np.eye(3) + 0.3 * rng.standard_normal((3, 3))
            power = np.ones((len(label), 3, 1))
            power[np.arange(len(label)), label, 0] = 1.6
            windows = mixing @ (power * rng.standard_normal((len(label), 3, 60)))
            vectors = eeg.tangent_vectors(eeg.window_covariances(windows))
            tasks.append(Task(vectors, label, f"site/p{person}", recipe=recipe))
        return TaskSet(tasks)

    needs("pyriemann")
    return make


@pytest.mark.parametrize("rival", [Mdwm(), TlCenter(), Coral()])
def test_estimators_of_other_packages_are_methods_of_a_study(tangent, rival):
    needs("skada" if isinstance(rival, Coral) else "pyriemann")
    before = sklearn.get_config()
    study = CalibrationStudy(
        tangent(3), methods={"rival": rival}, budgets=[2], n_splits=2, random_state=0
    )
    rows = study.run().rows
    assert sklearn.get_config() == before
    assert rows[["balanced_accuracy", "roc_auc", "brier", "log_loss"]].notna().all(axis=None)
    assert rows["balanced_accuracy"].mean() > 0.5

"""Rivals of a study: those of scikit-learn, of pyRiemann and of skada, against the packages."""

import importlib
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from click.testing import CliRunner
from scipy.linalg import inv, sqrtm
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.covariance import LedoitWolf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crossfade import Task, TaskPrior, TaskSet, load_mental_math
from crossfade.cli import main
from crossfade.study import CalibrationStudy
from crossfade.study._batch import Batch
from crossfade.study._methods import METHODS
from crossfade.study._sources import Sources
from crossfade.study._splits import draw_splits
from crossfade.study._validate import check_tasks
from crossfade.study.statistics import by_task, summarise
from crossfade.tasks import Recipe

RNG = np.random.default_rng(0)
OF_OTHERS = [name for name, one in METHODS.items() if one.package is not None]


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


def test_who_asks_for_pooled_is_told_what_to_take(make_tasks):
    with pytest.raises(
        ValueError, match=r"no method 'pooled' any more\. .*'lda-pooled', which cent"
    ):
        CalibrationStudy(make_tasks(3), methods=["pooled"], budgets=[2])
    # The name is free for an estimator of one's own.
    rows = CalibrationStudy(
        make_tasks(3), methods={"pooled": Together()}, budgets=[2], n_splits=1, random_state=0
    )
    assert set(rows.run().rows["method"]) == {"pooled"}


# -- pyRiemann's ----------------------------------------------------------------------------------


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
            names = np.array([f"c/{place}" for place in range(n_classes)])
            tasks.append(Task(vectors, names[label], f"site/p{person}", recipe=recipe))
        return TaskSet(tasks)

    needs("pyriemann")
    return make


def encoded(tasks, batch, place):
    """Matrices of the sources, then the target's labelled ones; labels as pyRiemann has them."""
    transfer = needs("pyriemann.transfer")
    X, label, domain = [], [], []
    for number, task in enumerate(tasks[1:], start=1):
        X.append(as_matrices(task.X))
        label.append(np.searchsorted(batch.classes, task.y))
        domain.append(np.full(len(task.y), f"person {number}"))
    X.append(as_matrices(batch.X[batch.splits.labelled[place]]))
    label.append(batch.splits.label)
    domain.append(np.full(batch.splits.label.size, "target"))
    X = np.concatenate(X)
    return X, transfer.encode_domains(X, np.concatenate(label), np.concatenate(domain))[1]


def as_matrices(vectors):
    return needs("pyriemann.utils.tangentspace").untangent_space(np.asarray(vectors), np.eye(3))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_mdwm_is_that_of_pyriemann(tangent, n_classes):
    tasks = tangent(n_classes)
    batch, sources = world(tasks, 2)
    found = METHODS["mdwm"].run(sources, batch, RNG)
    for place, test in enumerate(batch.splits.test):
        X, y = encoded(tasks, batch, place)
        rule = needs("pyriemann.transfer").MDWM(0.5, "target").fit(X, y)
        new = as_matrices(batch.X[test])
        np.testing.assert_array_equal(found.predicted[place].astype(str), rule.predict(new))
        distances = rule.transform(new) ** 2
        # pyRiemann stops when a mean moves by less than 1e-8.
        wanted = distances[:, :1] - distances[:, 1:]
        if n_classes == 2:
            np.testing.assert_allclose(found.scores[place], wanted, atol=1e-5)
        columns = slice(1, None) if n_classes == 2 else slice(None)
        chances = np.exp(-distances) / np.exp(-distances).sum(1, keepdims=True)
        np.testing.assert_allclose(found.probability[place], chances[:, columns], atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_tlcenter_is_that_of_pyriemann(tangent, n_classes):
    tasks = tangent(n_classes)
    batch, sources = world(tasks, 2)
    found = METHODS["tlcenter"].run(sources, batch, RNG)
    transfer = needs("pyriemann.transfer")
    space = needs("pyriemann.tangentspace").TangentSpace(metric="riemann")
    equal = [1 / n_classes] * n_classes
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=equal)
    for place, test in enumerate(batch.splits.test):
        pipeline = make_pipeline(
            transfer.TLCenter("target"), transfer.TLClassifier("target", make_pipeline(space, lda))
        )
        pipeline.fit(*encoded(tasks, batch, place))
        new = as_matrices(batch.X[test])
        np.testing.assert_array_equal(found.predicted[place].astype(str), pipeline.predict(new))
        columns = slice(1, None) if n_classes == 2 else slice(None)
        np.testing.assert_allclose(
            found.probability[place], pipeline.predict_proba(new)[:, columns], atol=1e-4
        )


@pytest.mark.parametrize("name", ["mdwm", "tlcenter"])
def test_methods_for_tangent_vectors_refuse_other_features(name, make_tasks, tangent):
    needs("pyriemann")
    with pytest.raises(ValueError, match=f"Method '{name}' is for the features tangent, and those"):
        CalibrationStudy(load_mental_math(), methods=[name])
    message = "the tasks do not say how theirs were made. A table in Parquet does, one in csv cann"
    with pytest.raises(ValueError, match=message):
        CalibrationStudy(make_tasks(3, n_features=3), methods=[name])
    rows = CalibrationStudy(tangent(), methods=[name], budgets=[2], n_splits=3, random_state=0)
    assert rows.run().rows["balanced_accuracy"].mean() > 0.75


# -- skada's --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_each", [(4, 2), (0, 0)])
def test_coral_is_that_of_skada(make_tasks, n_each):
    needs("skada")
    before = sklearn.get_config()
    tasks = make_tasks(5)
    batch, sources = world(tasks, n_each, n_splits=2)
    found = METHODS["coral"].run(sources, batch, RNG)
    assert sklearn.get_config() == before
    # Step by step, with nothing of skada: each person standardised, the sources recoloured.
    theirs = np.concatenate([StandardScaler().fit_transform(task.X) for task in tasks[1:]])
    for place, (labelled, test) in enumerate(
        zip(batch.splits.labelled, batch.splits.test, strict=True)
    ):
        seen = StandardScaler().fit_transform(batch.X[np.r_[labelled, test]])
        whiten = inv(sqrtm(LedoitWolf().fit(theirs).covariance_))
        colour = sqrtm(LedoitWolf().fit(seen).covariance_)
        sources_now = (theirs - theirs.mean(0)) @ whiten @ colour
        X = np.concatenate([sources_now, (seen - seen.mean(0))[: len(labelled)]])
        y = np.concatenate([*(task.y for task in tasks[1:]), batch.splits.label])
        rule = LogisticRegression(max_iter=1000, class_weight="balanced").fit(X, y)
        new = (seen - seen.mean(0))[len(labelled) :]
        np.testing.assert_array_equal(found.predicted[place], rule.predict(new))
        np.testing.assert_allclose(
            found.probability[place], rule.predict_proba(new)[:, 1:], atol=1e-3
        )


def test_a_study_with_coral_leaves_the_settings_of_scikit_learn_alone():
    needs("skada")
    code = """
import sklearn
import crossfade as cf
before = sklearn.get_config()
study = cf.CalibrationStudy(cf.load_mental_math()[:3], methods=["coral"], budgets=[2], n_splits=1)
assert study.run().rows["accuracy"].notna().all()
import sys
assert "skada" in sys.modules
assert sklearn.get_config() == before
assert not before["enable_metadata_routing"]
"""
    # In a process of its own, where nobody has imported skada before.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# -- all of them in a study -----------------------------------------------------------------------


def test_rivals_of_other_packages_in_a_study_of_three_classes(tangent):
    needs("skada")
    study = CalibrationStudy(
        tangent(3), methods=OF_OTHERS, budgets=[0, 2], n_splits=2, random_state=0
    )
    rows = study.run().rows
    others = study.run(n_jobs=2).rows
    pd.testing.assert_frame_equal(rows.drop(columns="seconds"), others.drop(columns="seconds"))
    assert rows.groupby("method")["budget"].unique().map(list).to_dict() == {
        "coral": [0.0, 2.0],
        "mdwm": [2.0],
        "tlcenter": [2.0],
    }
    assert rows[["balanced_accuracy", "roc_auc", "brier", "log_loss"]].notna().all(axis=None)
    assert (rows.groupby("method")["balanced_accuracy"].mean() > 0.5).all()


@pytest.mark.parametrize("name", OF_OTHERS)
def test_a_method_whose_package_is_missing_says_what_to_install(name, make_tasks, monkeypatch):
    package, extra = METHODS[name].package
    monkeypatch.setattr(
        "crossfade._validate.find_spec", lambda wanted: None if wanted == package else object()
    )
    message = f"Method '{name}' needs {package}. Install crossfade[{extra}]."
    with pytest.raises(ImportError, match=re.escape(message)):
        CalibrationStudy(make_tasks(3), methods=[name])
    table = "src/crossfade/datasets/data/mental_math.csv"
    result = CliRunner().invoke(main, ["study", table, "--methods", name])
    assert result.exit_code != 0
    assert message in " ".join((result.output + str(result.exception)).split())


def test_extras_of_methods_exist():
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    for package, extra in {METHODS[name].package for name in OF_OTHERS}:
        assert any(one.startswith(package) for one in extras[extra])

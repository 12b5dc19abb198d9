"""A new blend is one short function: estimator, study, file and C export work with it unchanged."""

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest

import crossfade
from crossfade import CalibrationStudy, Task, TaskPrior, export_model, load_model, save_model
from crossfade.blend import KINDS, rule_along, rule_of_crowd
from crossfade.classifiers import BlendClassifier


def halfway(newcomer, law, weight=0.5):
    """The middle of the person's direction and the crowd's."""
    if not newcomer.shows_all:
        return rule_of_crowd(newcomer, law)
    person = newcomer.direction(law)
    omega = weight * person.omega + (1.0 - weight) * law.directions.mean_direction
    return rule_along(newcomer, law, person, omega, alpha=weight, dof=weight * person.rank)


class HalfwayClassifier(BlendClassifier):
    """The estimator of the new blend."""

    kind = "halfway"

    def __init__(self, prior=None, missing_class="crowd", classes=None, class_prior=None):
        self.prior = prior
        self.missing_class = missing_class
        self.classes = classes
        self.class_prior = class_prior


@pytest.fixture(autouse=True)
def new_kind(monkeypatch):
    monkeypatch.setitem(KINDS, "halfway", halfway)


@pytest.fixture(scope="module")
def tasks():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 12)
    gaps = np.array([1.5, 0.5, 0.0]) + 0.4 * rng.normal(size=(7, 3))
    return [
        Task(rng.normal(size=(24, 3)) + np.where(y, 1.0, -1.0)[:, None] * gap, y) for gap in gaps
    ]


def test_it_is_short():
    assert len(inspect.getsource(halfway).splitlines()) <= 20


def test_estimator_file_and_c_export(tasks, tmp_path):
    prior = TaskPrior.from_tasks(tasks[1:], rehearse=False)
    X, y = tasks[0].X, tasks[0].y
    clf = HalfwayClassifier(prior).start()
    assert (clf.predict(X) == y).mean() > 0.7
    for place in (0, 12, 1, 13):
        clf.partial_fit(X[place : place + 1], y[place : place + 1])
    assert clf.alpha_ == 0.5
    assert 0.5 < clf.expected_accuracy_ < 1.0
    lower, upper = clf.expected_accuracy_interval()
    assert lower < clf.expected_accuracy_ < upper
    save_model(clf, tmp_path / "model.json")
    rule = load_model(tmp_path / "model.json")
    assert rule.about.made_by == "HalfwayClassifier"
    np.testing.assert_array_equal(rule.predict_proba(X), clf.predict_proba(X))
    export_model(clf, tmp_path / "model.h")
    assert "crossfade_predict" in (tmp_path / "model.h").read_text()


def test_study(tasks):
    # By its name, all splits at once; and as an estimator that gets the windows of the others.
    methods = ["halfway", ("estimator", HalfwayClassifier())]
    study = CalibrationStudy(tasks, methods=methods, budgets=[2], n_splits=2, random_state=0)
    rows = study.run().rows
    own, other = (rows[rows["method"] == name] for name in ("halfway", "estimator"))
    assert len(own) == 2 * len(tasks)
    assert (own["alpha"] == 0.5).all()
    assert own["balanced_accuracy"].mean() > 0.7
    for name in ("accuracy", "brier", "expected_accuracy"):
        np.testing.assert_allclose(own[name], other[name], atol=1e-6)


def imported(path):
    """Modules that a file names in imports, and the attributes of numpy that it uses."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"


SOURCE = Path(crossfade.__file__).parent


def test_only_fit_rule_imports_the_single_blends():
    single = {f"crossfade.blend._{kind}" for kind in ("fisher", "convex", "posterior")}
    single.add("crossfade.blend._hierarchical")
    found = {path.name for path in SOURCE.rglob("*.py") if single & set(imported(path))}
    assert found == {"_fit_rule.py"}


def test_estimators_hold_no_mathematics():
    for path in (SOURCE / "classifiers").glob("*.py"):
        names = set(imported(path))
        assert "np.linalg" not in names
        assert not any(name.split(".")[0] == "scipy" for name in names)

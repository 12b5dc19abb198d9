"""The file of a model: predicts as the blend did, holds no sample, and refuses what is not its."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    TaskPrior,
    load_model,
    save_model,
)
from tests.checksums import digest_of

NAMES = ["θ", "alpha", "b e t a", "γ"]


@pytest.fixture(scope="module")
def prior(make_tasks):
    tasks = make_tasks(labels=("rest", "task"), feature_names=NAMES)
    return TaskPrior.from_tasks(tasks).annotated(made_by="Lab A")


@pytest.fixture
def samples(make_target):
    X, y = make_target(n_each=(4, 5), seed=5)
    return pd.DataFrame(X, columns=NAMES), np.array(["rest", "task"])[y]


@pytest.fixture
def saved(prior, samples, tmp_path):
    path = tmp_path / "model.json"
    save_model(PosteriorBlendClassifier(prior).fit(*samples), path)
    return path


def rewritten(path, **changes):
    """The fields of a file with some replaced, under a valid checksum; None drops nothing."""
    fields = json.loads(path.read_text()) | changes
    del fields["sha256"]
    path.write_text(json.dumps(fields | {"sha256": digest_of(fields)}))


def assert_same(rule, fitted, X):
    np.testing.assert_array_equal(rule.decision_function(X), fitted.decision_function(X))
    np.testing.assert_array_equal(rule.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(rule.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(rule.coef, fitted.coef_)
    np.testing.assert_array_equal(rule.class_prior, fitted.class_prior_)
    assert rule.alpha == fitted.alpha_
    assert rule.expected_accuracy == fitted.expected_accuracy_
    assert rule.expected_accuracy_error == fitted.expected_accuracy_error_
    for level in (0.5, 0.9):
        assert rule.interval(level) == fitted.expected_accuracy_interval(level)


STATES = {
    "both": lambda clf, X, y: clf.fit(X, y),
    "one": lambda clf, X, y: clf.fit(X[y == y[0]], y[y == y[0]]),
    "none": lambda clf, X, y: clf.start(),
    "unlabelled": lambda clf, X, y: clf.fit(X, y).partial_fit(X + 0.1, None),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("labels", [(0, 1), (False, True), ("rest", "task"), (-1.0, 2.0)])
@pytest.mark.parametrize(
    "blend", [PosteriorBlendClassifier, ConvexBlendClassifier, HierarchicalBlendClassifier]
)
def test_predictions_and_forecasts_are_equal_to_the_bit(
    make_tasks, make_target, tmp_path, blend, labels, state
):
    prior = TaskPrior.from_tasks(make_tasks(labels=labels), rehearse=state == "both")
    X, y = make_target(seed=5)
    clf = blend(prior, class_prior=(0.7, 0.3))
    fitted = STATES[state](clf, X, np.array(labels)[y])
    save_model(fitted, tmp_path / "m.json")
    rule = load_model(str(tmp_path / "m.json"))
    assert_same(rule, fitted, make_target(n_each=(200, 200), seed=6)[0])
    assert [type(name) for name in rule.classes.tolist()] == [type(name) for name in labels]
    counts = {"none": [0.0, 0.0], "one": [8.0, 0.0]}
    assert rule.n_labelled.tolist() == counts.get(state, [8.0, 8.0])
    # A rule is saved as its estimator is, and again from its file.
    save_model(rule, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "m.json").read_bytes()


@pytest.mark.parametrize("state", ["both", "one", "none"])
@pytest.mark.parametrize("n_classes", [3, 5])
def test_many_classes_predict_as_before(make_many, tmp_path, state, n_classes):
    n_each = (8, 10, 9, 8, 7)[:n_classes]
    prior = TaskPrior.from_tasks(make_many(n_each=n_each))
    [few] = make_many(1, n_each=(3,) * n_classes, first=50)
    [new] = make_many(1, n_each=(60,) * n_classes, first=50)
    fitted = STATES[state](HierarchicalBlendClassifier(prior), few.X, few.y)
    save_model(fitted, tmp_path / "m.json")
    X = np.concatenate([new.X, 1e6 * new.X, 1e-6 * new.X])
    assert_same(load_model(tmp_path / "m.json"), fitted, X)


@pytest.mark.parametrize("priors", [None, (0.9, 0.1)])
def test_a_discriminant_is_saved_too(make_target, tmp_path, priors):
    X, y = make_target()
    fitted = FisherDiscriminant(priors=priors).fit(X, y)
    save_model(fitted, tmp_path / "m.json")
    rule = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(rule.decision_function(X), fitted.decision_function(X))
    np.testing.assert_allclose(rule.predict_proba(X), fitted.predict_proba(X), rtol=1e-12)
    assert rule.class_prior.tolist() == list(priors or (0.5, 0.5))
    assert rule.outlook is None
    assert "not known" in rule.card()
    with pytest.raises(ValueError, match="forecast"):
        rule.interval()


def test_without_a_prior(make_target, tmp_path):
    X, y = make_target()
    fitted = PosteriorBlendClassifier().fit(X, y)
    save_model(fitted, tmp_path / "m.json")
    rule = load_model(tmp_path / "m.json")
    assert_same(rule, fitted, X)
    assert rule.about.prior is None
    assert rule.about.feature_names is None


def test_the_file_says_which_prior_and_under_which_privacy(saved):
    about = load_model(saved).about
    assert about.made_by == "PosteriorBlendClassifier"
    assert about.prior["n_tasks"] == 6
    assert about.prior["privacy"] == {"kind": "exact sums"}
    assert about.prior["about"] == {"made_by": "Lab A"}


def test_the_file_holds_no_labelled_sample(samples, saved):
    for value in samples[0].to_numpy().ravel():
        assert repr(float(value)) not in saved.read_text()


def test_other_features_are_refused(saved, samples):
    rule, (X, _) = load_model(saved), samples
    assert rule.about.feature_names == tuple(NAMES)
    for other in (X.rename(columns={"γ": "delta"}), X[NAMES[::-1]], X[NAMES[:3]], X[NAMES[0]]):
        with pytest.raises(ValueError, match=r"columns|features"):
            rule.predict(other)
    with pytest.raises(ValueError, match="finite"):
        rule.predict(X * np.nan)


def test_only_fitted_models_are_saved(prior, make_target, tmp_path):
    with pytest.raises(ValueError, match="fitted"):
        save_model(PosteriorBlendClassifier(prior), tmp_path / "m.json")
    with pytest.raises(TypeError, match="LinearDiscriminantAnalysis"):
        save_model(LinearDiscriminantAnalysis().fit(*make_target()), tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


CONTENTS = {
    "nothing": b"",
    "a pickle": b"\x80\x04pickle",
    "deep": b"[" * 100_000,
    "half": b"{",
    "a list": b"[]",
    "an empty object": b"{}",
    "a number": b"7",
    "another format": b'{"format": "other"}',
}


@pytest.mark.parametrize("case", CONTENTS)
def test_what_is_no_model_file(tmp_path, case):
    (tmp_path / "m.json").write_bytes(CONTENTS[case])
    with pytest.raises(ValueError, match="not a valid model file"):
        load_model(tmp_path / "m.json")


@pytest.mark.parametrize("version", [1, 2, 3, "4", True, None])
def test_other_versions_are_refused(saved, version):
    rewritten(saved, version=version)
    with pytest.raises(ValueError, match="version"):
        load_model(saved)


@pytest.mark.parametrize("name", ["coef", "prior", "class_prior", "n_labelled", "slope", "sha256"])
def test_a_missing_field_is_named(saved, name):
    fields = json.loads(saved.read_text())
    del fields[name]
    if name != "sha256":
        del fields["sha256"]
        fields["sha256"] = digest_of(fields)
    saved.write_text(json.dumps(fields))
    with pytest.raises(ValueError, match=name):
        load_model(saved)


FORECAST = {"mean": 0.0, "spread": 1.0, "dof": 3.0, "left_out": 0.0}
DAMAGES = {
    "coef": [
        [[1.0, "two", 3.0, 4.0]],
        [[1.0, 2.0]],
        [1.0, 2.0, 3.0, 4.0],
        [[1.0, 2.0, 3.0, 4.0]] * 2,
        [[]],
    ],
    "intercept": ["zero", ["zero"]],
    "slope": [None, -1.0, "steep"],
    "bend": [-1.0],
    "shift": [None],
    "classes": [["task", "rest"], ["task"], ["rest", "task", "walk"], [1, "task"]],
    "class_names": [["rest"]],
    "feature_names": [["one"]],
    "class_prior": [[0.9, 0.2], None],
    "alpha": [2.0],
    "n_labelled": [[1.0], "ab"],
    "forecast": ["high", FORECAST | {"mean": None}, {"mean": 0.0, "spread": 1.0}],
    "made_by": [7, "not a name"],
    "person": [" ", "a\nb"],
    "date": ["yesterday"],
    "recipe": ["shares", {}],
    "prior": ["x", {}, {"n_tasks": 0, "privacy": {"kind": "exact sums"}, "about": {}}],
}


@pytest.mark.parametrize("name", DAMAGES)
def test_contents_that_cannot_be_a_model(saved, name):
    content = saved.read_bytes()
    for value in DAMAGES[name]:
        saved.write_bytes(content)
        rewritten(saved, **{name: value})
        with pytest.raises(ValueError, match="not a valid model file"):
            load_model(saved)


@pytest.mark.parametrize(
    "about", [{"person": 5}, {"person": " "}, {"date": "yesterday"}, {"date": 5}]
)
def test_a_card_says_who_and_when(saved, about):
    with pytest.raises(ValueError, match=next(iter(about))):
        save_model(load_model(saved), saved, **about)

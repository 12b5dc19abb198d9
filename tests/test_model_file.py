"""The file of a model: predicts as the blend did, holds no sample, and refuses what is not its."""

import hashlib
import json
import os

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    HierarchicalBlendClassifier,
    MulticlassBlend,
    MulticlassPrior,
    PosteriorBlendClassifier,
    SavedRule,
    TaskPrior,
    load_model,
    save_model,
)
from crossfade._files import digest_of

NAMES = ["θ", "alpha", "b e t a", "γ"]


@pytest.fixture
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


def calibration(**changes):
    """How scores become log odds, as a file has it."""
    plain = {"mean": 1.0, "spread": 0.5, "deviation": 1.0, "shift": 0.0, "offset": 0.0}
    return {name: [value] for name, value in plain.items()} | changes


def rewritten(path, **changes):
    """The fields of a file with some replaced, under a valid checksum."""
    fields = json.loads(path.read_text()) | changes
    del fields["sha256"]
    path.write_text(json.dumps(fields | {"sha256": digest_of(fields)}))


@pytest.mark.parametrize("labels", [(0, 1), (False, True), ("rest", "task"), (-1.0, 2.0)])
@pytest.mark.parametrize("blend", [PosteriorBlendClassifier, ConvexBlendClassifier])
def test_predictions_are_equal_to_the_bit(make_tasks, make_target, tmp_path, blend, labels):
    prior = TaskPrior.from_tasks(make_tasks(labels=labels))
    X, y = make_target(seed=5)
    fitted = blend(prior).fit(X, np.array(labels)[y]).partial_fit(X + 0.1, None)
    save_model(fitted, tmp_path / "m.json")
    again = load_model(str(tmp_path / "m.json"))
    new, _ = make_target(n_each=(200, 200), seed=6)
    for method in ("decision_function", "predict_proba", "predict"):
        np.testing.assert_array_equal(getattr(again, method)(new), getattr(fitted, method)(new))
    assert [type(name) for name in again.classes_.tolist()] == [type(name) for name in labels]
    for name in (
        "projection_",
        "midpoint_",
        "alpha_",
        "coef_",
        "class_prior_",
        "expected_accuracy_",
    ):
        np.testing.assert_array_equal(getattr(again, name), getattr(fitted, name))
    np.testing.assert_array_equal(again.feature_scale_, prior.feature_scale)
    assert again.n_labelled_ == (8.0, 8.0)


MANY = {
    "pairs": lambda prior, X, y: MulticlassBlend(PosteriorBlendClassifier(prior)).fit(X, y),
    "convex pairs": lambda prior, X, y: MulticlassBlend(ConvexBlendClassifier(prior)).fit(X, y),
    "softmax": lambda prior, X, y: HierarchicalBlendClassifier(prior).fit(X, y),
    "start": lambda prior, *_: HierarchicalBlendClassifier(prior).start(),
    "no prior": lambda _, X, y: MulticlassBlend(PosteriorBlendClassifier()).fit(X, y),
    "rests": lambda _, X, y: MulticlassBlend(PosteriorBlendClassifier(), "one-vs-rest").fit(X, y),
    "two of many": lambda _, X, y: MulticlassBlend(PosteriorBlendClassifier(), "one-vs-rest").fit(
        X[y <= "class 1"], y[y <= "class 1"]
    ),
}


@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("kind", MANY)
def test_many_classes_predict_as_before(make_many, tmp_path, kind, n_classes):
    n_each = (8, 10, 9, 8, 7)[:n_classes]
    prior = MulticlassPrior.from_tasks(make_many(n_each=n_each))
    [few] = make_many(1, n_each=(3,) * n_classes, first=50)
    [new] = make_many(1, n_each=(60,) * n_classes, first=50)
    X = np.concatenate([new.X, 1e6 * new.X, 1e-6 * new.X])
    fitted = MANY[kind](prior, few.X, few.y)
    save_model(fitted, tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_allclose(again.predict_proba(X), fitted.predict_proba(X), rtol=1e-12)
    if kind == "rests":
        assert again.expected_accuracy_ is None
        with pytest.raises(AttributeError, match="has no forecast: a MulticlassBlend made it"):
            again.expected_accuracy_interval()
    else:
        assert again.expected_accuracy_ == fitted.expected_accuracy_
        assert again.expected_accuracy_interval() == fitted.expected_accuracy_interval()
    counts = 0.0 if kind == "start" else 3.0
    assert again.n_labelled_ == (counts,) * len(fitted.classes_)


@pytest.mark.parametrize("priors", [None, (0.9, 0.1)])
def test_a_discriminant_is_saved_too(make_target, tmp_path, priors):
    X, y = make_target()
    fitted = FisherDiscriminant(priors=priors).fit(X, y)
    save_model(fitted, tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    for method in ("decision_function", "predict_proba", "predict"):
        np.testing.assert_array_equal(getattr(again, method)(X), getattr(fitted, method)(X))
    assert again.class_prior_.tolist() == list(priors or (0.5, 0.5))
    assert again.expected_accuracy_ is None
    with pytest.raises(AttributeError, match="has no forecast: a FisherDiscriminant made it"):
        again.expected_accuracy_interval()


def test_without_a_prior(make_target, tmp_path):
    X, y = make_target()
    fitted = PosteriorBlendClassifier().fit(X, y)
    save_model(fitted, tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.prior_ is None
    assert not hasattr(again, "feature_names_in_")


@pytest.mark.parametrize("blend", [PosteriorBlendClassifier, ConvexBlendClassifier])
def test_proportions_are_kept(prior, samples, tmp_path, blend):
    fitted = blend(prior, class_prior=(0.9, 0.1)).fit(*samples)
    save_model(fitted, tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text())["class_prior"] == [0.9, 0.1]
    again = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(again.class_prior_, fitted.class_prior_)
    np.testing.assert_array_equal(again.predict_proba(samples[0]), fitted.predict_proba(samples[0]))


def test_file_says_which_prior_and_under_which_privacy(prior, saved, tmp_path):
    prior.save(tmp_path / "prior.npz")
    digest = hashlib.sha256((tmp_path / "prior.npz").read_bytes()).hexdigest()
    said = load_model(saved).prior_
    assert said["sha256"] == digest
    assert said["privacy"] == {"kind": "exact sums"}
    assert said["about"] == {"made_by": "Lab A"}


def test_file_holds_no_labelled_sample(samples, saved):
    fields = json.loads(saved.read_text())
    names = ("coef", "projection", "feature_scale", "midpoint", "intercept")
    held = np.concatenate([np.ravel(fields[name]) for name in names])
    for value in samples[0].to_numpy().ravel():
        assert repr(float(value)) not in saved.read_text()
        assert not np.isclose(held, value, rtol=1e-9, atol=0.0).any()


def test_other_features_are_refused(saved, samples):
    rule, (X, _) = load_model(saved), samples
    np.testing.assert_array_equal(rule.feature_names_in_, NAMES)
    with pytest.raises(ValueError, match="feature names should match"):
        rule.predict(X.rename(columns={"γ": "delta"}))
    with pytest.raises(ValueError, match="must be in the same order"):
        rule.predict(X[NAMES[::-1]])
    with pytest.raises(ValueError, match="feature names should match"):
        rule.predict(X[NAMES[:3]])


def test_it_only_predicts(saved, samples):
    with pytest.raises(TypeError, match="only predicts"):
        load_model(saved).fit(*samples)


def test_a_clone_predicts_too(saved, samples):
    rule = load_model(saved)
    np.testing.assert_array_equal(clone(rule).predict(samples[0]), rule.predict(samples[0]))


def test_an_empty_rule_says_where_to_get_one(samples):
    with pytest.raises(NotFittedError, match="This SavedRule is empty; load_model makes one"):
        SavedRule().predict(samples[0])


def test_only_fitted_blends(prior, make_target, tmp_path):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        save_model(PosteriorBlendClassifier(prior), tmp_path / "m.json")
    with pytest.raises(TypeError, match="got LinearDiscriminantAnalysis"):
        save_model(LinearDiscriminantAnalysis().fit(*make_target()), tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


def test_altered_anywhere(saved, samples):
    content, X = saved.read_bytes(), samples[0]
    before = load_model(saved).predict_proba(X)
    for place in range(0, len(content), 7):
        altered = bytearray(content)
        altered[place] ^= 0x01
        saved.write_bytes(altered)
        try:
            after = load_model(saved).predict_proba(X)
        except ValueError as refusal:
            assert str(saved) in str(refusal)  # noqa: PT017
        else:
            # Spaces carry nothing, and another last digit may be the same number.
            np.testing.assert_array_equal(after, before)
            assert json.loads(altered) == json.loads(content)
    for length in range(0, len(content) - 2, 97):
        saved.write_bytes(content[:length])
        with pytest.raises(ValueError, match="cannot be read as JSON"):
            load_model(saved)


def test_altered_number(saved):
    fields = json.loads(saved.read_text())
    fields["intercept"][0] += 1e-9
    saved.write_text(json.dumps(fields))
    with pytest.raises(ValueError, match="altered after it was saved"):
        load_model(saved)


@pytest.mark.parametrize("version", [1, 2, 4, "3", True, None])
def test_other_versions_are_refused(saved, version):
    rewritten(saved, version=version)
    with pytest.raises(ValueError, match=f"version {version!r} .* only version 3"):
        load_model(saved)


@pytest.mark.parametrize("name", ["coef", "prior", "class_prior", "n_labelled"])
def test_missing_field_is_named(saved, name):
    fields = json.loads(saved.read_text())
    del fields[name]
    saved.write_text(json.dumps(fields))
    rewritten(saved)
    with pytest.raises(ValueError, match=f"no valid model: the field '{name}' is missing. Ask"):
        load_model(saved)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_tasks": 0}, "n_tasks must be a whole number of at least 1; got 0"),
        ({"n_tasks": "many"}, "n_tasks must be a whole number"),
        ({"sha256": "abc"}, "must have a SHA-256"),
        ({"sha256": None}, "must have a SHA-256"),
        ({"privacy": "exact sums"}, "must have a privacy"),
        ({"about": None}, "must have a privacy and an about"),
    ],
)
def test_record_of_a_prior_that_is_none(saved, changes, message):
    rewritten(saved, prior=json.loads(saved.read_text())["prior"] | changes)
    with pytest.raises(ValueError, match=message):
        load_model(saved)


@pytest.mark.parametrize("content", ["[]", "{}", '{"format": "other"}', "7", "null"])
def test_other_json(tmp_path, content):
    (tmp_path / "m.json").write_text(content)
    with pytest.raises(ValueError, match="is not a model file: its format"):
        load_model(tmp_path / "m.json")


@pytest.mark.parametrize("content", [b"", b"\x80\x04pickle", b"[" * 100_000, b"{"])
def test_no_json_at_all(tmp_path, content):
    (tmp_path / "m.json").write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read as JSON"):
        load_model(tmp_path / "m.json")


@pytest.mark.parametrize(
    "changes",
    [
        {"coef": [[1.0, "two", 3.0, 4.0]]},
        {"coef": [[1.0, 2.0]]},
        {"coef": [1.0, 2.0, 3.0, 4.0]},
        {"coef": [[1.0, 2.0, 3.0, 4.0]] * 2},
        {"coef": [[]]},
        {"classes": ["task", "rest"]},
        {"classes": ["task"]},
        {"feature_names": ["one"]},
        {"feature_scale": [1.0, 1.0, 0.0, 1.0]},
        {"midpoint": [0.0]},
        {"calibration": None},
        {"calibration": calibration(mean=0.0)},
        {"calibration": calibration(mean=[-1.0])},
        {"calibration": calibration(spread=[-1.0])},
        {"calibration": calibration(deviation=[0.0])},
        {"calibration": calibration(deviation=[1.0, 1.0])},
        {"calibration": calibration(shift=[1.0])},
        {"calibration": calibration(offset=[1.0])},
        {"forecast": "high"},
        {"forecast": {"mean": 0.0, "spread": -1.0, "dof": 3.0}},
        {"forecast": {"mean": 0.0, "spread": 1.0}},
        {"expected_accuracy": None},
        {"coupling": "softmax"},
        {"coupling": None},
        {"blend": 7},
        {"card": None},
        {"classes": ["rest", "task", "walk"]},
        {"classes": [1, "task"]},
        {"class_names": ["rest"]},
        {"alpha": 2.0},
        {"intercept": "zero"},
        {"intercept": ["zero"]},
        {"n_labelled": [1.0]},
        {"n_labelled": [-1.0, 2.0]},
        {"n_labelled": "ab"},
        {"class_prior": [0.9, 0.2]},
        {"class_prior": None},
        {"prior": "x"},
        {"prior": {}},
    ],
)
def test_contents_that_cannot_be_a_model(saved, changes):
    rewritten(saved, **changes)
    with pytest.raises(ValueError, match=r"model\.json holds no valid model"):
        load_model(saved)


def test_not_a_number_is_refused(saved):
    fields = json.loads(saved.read_text()) | {"intercept": float("nan")}
    saved.write_text(json.dumps(fields))
    with pytest.raises(ValueError, match="altered after it was saved"):
        load_model(saved)


def test_a_failed_save_leaves_the_old_file(saved, prior, samples, monkeypatch):
    before = saved.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save_model(ConvexBlendClassifier(prior).fit(*samples), saved)
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["model.json"]

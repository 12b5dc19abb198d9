"""Does it keep its promises? What is left alone, what is forgotten, and what is never kept."""

import copy
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
    load_model,
    save_model,
)
from crossfade.exceptions import PriorMismatchError

ESTIMATORS = {
    "fisher": lambda prior: FisherDiscriminant(),
    "convex": ConvexBlendClassifier,
    "paper": lambda prior: ConvexBlendClassifier.paper(prior, random_state=0),
    "posterior": PosteriorBlendClassifier,
}
BLENDS = {name: make for name, make in ESTIMATORS.items() if name != "fisher"}


@pytest.fixture(params=ESTIMATORS)
def estimator(request, make_prior):
    return ESTIMATORS[request.param](make_prior())


@pytest.fixture(params=BLENDS)
def blend(request):
    return BLENDS[request.param]


def test_importing_loads_little_changes_no_setting_and_prints_nothing():
    code = """
import random, sys, warnings
import numpy as np, scipy.optimize, scipy.special, sklearn.discriminant_analysis

def state():
    return (sklearn.get_config(), np.geterr(), np.get_printoptions(), random.getstate(),
        list(warnings.filters), np.random.get_state()[1].tolist())

before, loaded = state(), set(sys.modules)
from crossfade import HierarchicalBlendClassifier
more = {name.split(".")[0] for name in set(sys.modules) - loaded}
assert "crossfade" in more
# scikit-learn itself loads pandas, and pandas loads pyarrow.
more -= {"crossfade", "numpy", "scipy", "sklearn"} | set(sys.stdlib_module_names)
assert not more, more
from crossfade import *
assert state() == before
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr, run.returncode) == ("", "", 0)


def frozen(*arrays):
    for array in arrays:
        array.flags.writeable = False


def test_inputs_are_left_alone(make_target, estimator, capsys):
    X, y = make_target()
    weight = np.linspace(0.5, 2.0, len(y))
    kept = X.copy(), y.copy(), weight.copy()
    frozen(X, y, weight)
    estimator.fit(X, y, sample_weight=weight)
    for method in ("predict", "predict_proba", "decision_function"):
        getattr(estimator, method)(X)
    if hasattr(estimator, "partial_fit"):
        estimator.partial_fit(X, y, sample_weight=weight)
    for after, before in zip((X, y, weight), kept, strict=True):
        np.testing.assert_array_equal(after, before)
    assert capsys.readouterr() == ("", "")


def test_learnt_results_do_not_follow_the_callers_arrays(make_target, estimator):
    X, y = make_target()
    new = X.copy()
    estimator.fit(X, y)
    before = estimator.decision_function(new)
    X[:] = 0.0
    y[:] = 7
    np.testing.assert_array_equal(estimator.decision_function(new), before)
    assert set(estimator.predict(new)) <= {0, 1}


def test_global_random_state_is_left_alone(make_target, make_prior):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    for seed in (None, np.random.default_rng(0)):
        ConvexBlendClassifier.paper(make_prior(), random_state=seed).fit(*make_target())
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def arrays_within(thing, seen):
    """All arrays that an object holds, in whatever it is wrapped."""
    if id(thing) in seen or isinstance(thing, str | bytes | type):
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, Mapping):
        for value in thing.values():
            yield from arrays_within(value, seen)
    elif isinstance(thing, list | tuple | set):
        for value in thing:
            yield from arrays_within(value, seen)
    for value in getattr(thing, "__dict__", {}).values():
        yield from arrays_within(value, seen)


def rows_within(thing, n_features):
    """Rows and columns of as many features, of all arrays that an object holds."""
    held = [array for array in arrays_within(thing, set()) if array.dtype.kind == "f"]
    rows = [array.reshape(-1, n_features) for array in held if array.shape[-1:] == (n_features,)]
    columns = [array.T for array in held if array.ndim == 2 and len(array) == n_features]
    return np.concatenate([*rows, *columns])


def fit_one_by_one(rule, X, y):
    for place in range(len(y)):
        rule.partial_fit(X[place : place + 1], y[place : place + 1], classes=[0, 1])
    return rule


LEARN = {"fit": lambda rule, X, y: rule.fit(X, y), "partial_fit": fit_one_by_one}


def assert_no_sample_in(rule, X):
    content, held = pickle.dumps(rule), rows_within(rule, X.shape[1])
    assert len(held) > 5
    for row in X:
        assert row.tobytes() not in content
        assert not np.isclose(held, row, rtol=1e-9, atol=0.0).all(1).any()
    # A hidden sample would be found.
    rule.hidden_ = [{"samples": X.T.copy()}]
    assert np.isclose(rows_within(rule, X.shape[1]), X[1], rtol=1e-9, atol=0.0).all(1).any()


@pytest.mark.parametrize("learn", LEARN)
@pytest.mark.parametrize(("n_features", "n_each"), [(4, (8, 8)), (4, (2, 2)), (16, (8, 9))])
def test_a_fitted_blend_holds_no_sample(make_target, make_prior, blend, n_features, n_each, learn):
    X, y = make_target(n_features, n_each)
    assert_no_sample_in(LEARN[learn](blend(make_prior(n_features=n_features)), X, y), X)


def test_a_fitted_blend_of_three_classes_holds_no_sample(make_many):
    *others, person = make_many()
    prior = TaskPrior.from_tasks(others, rehearse=False)
    X = np.array(person.X)
    assert_no_sample_in(HierarchicalBlendClassifier(prior).fit(X, person.y), X)


@pytest.mark.parametrize("isotropic", [False, True])
@pytest.mark.parametrize("n_each", [(10, 10), (2, 2)])
def test_a_saved_prior_holds_no_row_of_anybodys_data(tmp_path, n_each, isotropic):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], n_each)
    tasks = [Task(rng.standard_normal((y.size, 5)) + y[:, None], y) for _ in range(3)]
    prior = TaskPrior.from_tasks(tasks, isotropic=isotropic)
    prior.save(tmp_path / "prior.npz")
    content = (tmp_path / "prior.npz").read_bytes()
    with np.load(tmp_path / "prior.npz") as archive:
        sizes = {name: archive[name].size for name in archive.files}
        numbers = [
            archive[name].ravel() for name in archive.files if archive[name].dtype == np.float64
        ]
    held = np.concatenate(numbers)
    # At most so many numbers in each part, and no other part.
    parts = {"feature_scale": 5, "directions": 48}
    if not isotropic:
        parts |= {"directions": 48 + 75, "class_means": 372}
        parts |= {f"forecast_records.{kind}": 486 for kind in ("convex", "posterior")}
        parts |= {"forecast_records.hierarchical": 486}
    found = Counter()
    for name, size in sizes.items():
        found[name.partition("/")[0]] += size
    del found["header"], found["sha256"]
    assert found.keys() == parts.keys()
    assert all(found[name] <= parts[name] for name in parts)
    for task in tasks:
        for value in task.X.ravel():
            for kind in (np.float64, np.float32):
                assert np.array(value, dtype=kind).tobytes() not in content
            assert not np.isclose(held, value, rtol=1e-9, atol=0.0).any()
        for row in task.X:
            assert not np.isclose(held, np.linalg.norm(row), rtol=1e-9, atol=0.0).any()


def test_clone_keeps_the_very_same_prior(make_prior, blend):
    prior = make_prior()
    clf = blend(prior)
    assert clone(clf).prior is prior
    assert copy.deepcopy(clf).prior is prior
    assert clf.get_params()["prior"] is prior
    assert clone(make_pipeline(StandardScaler(), clf))[-1].prior is prior
    other = make_prior(seed=1)
    assert clf.set_params(prior=other).prior is other


def test_pandas_frames(make_target, make_prior, blend):
    X, y = make_target()
    frame = pd.DataFrame(X, columns=list("abcd"))
    clf = blend(make_prior(feature_names=list("abcd"))).fit(frame, pd.Series(y))
    np.testing.assert_array_equal(clf.feature_names_in_, list("abcd"))
    np.testing.assert_allclose(clf.coef_, blend(make_prior()).fit(X, y).coef_)
    np.testing.assert_array_equal(clf.predict(frame), clf.predict(frame.copy()))
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(frame[list("bacd")])
    with pytest.raises(ValueError, match="feature names should match"):
        clf.partial_fit(frame[list("bacd")], y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        clf.predict(X)


def test_samples_that_are_refused_leave_the_rule(make_target, blend):
    X, y = make_target()
    frame = pd.DataFrame(X, columns=list("abcd"))
    clf = blend(None).fit(frame, y)
    coef, labels = clf.coef_.copy(), clf.predict(frame)
    for refused in (np.arange(len(y)) % 3, np.full(len(y), "other")):
        with pytest.raises(ValueError, match="label"):
            clf.partial_fit(frame, refused)
        np.testing.assert_array_equal(clf.coef_, coef)
        np.testing.assert_array_equal(clf.predict(frame), labels)
    assert clf.partial_fit(frame, y).coef_.shape == coef.shape


def test_names_of_the_prior_where_samples_have_none(make_target, make_prior, blend, tmp_path):
    """A model that was fitted to arrays does not take another order of columns for its own."""
    X, y = make_target()
    frame = pd.DataFrame(X, columns=list("abcd"))
    clf = blend(make_prior(feature_names=list("abcd"))).fit(X, y)
    np.testing.assert_array_equal(clf.predict(frame), clf.predict(X))
    with pytest.raises(PriorMismatchError, match="prior"):
        clf.predict(frame[list("bacd")])
    save_model(clf, tmp_path / "model.json")
    rule = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(rule.predict(frame), rule.predict(X))
    with pytest.raises(ValueError, match="columns"):
        rule.predict(frame[list("bacd")])


@pytest.fixture
def stacked(make_target, make_tasks):
    tasks = make_tasks(3)
    X, y = make_target(seed=50)
    domain = np.repeat([1, 2, 3, -1], [20, 20, 20, 16])
    stack = np.vstack([*(task.X for task in tasks), X])
    return stack, np.concatenate([*(task.y for task in tasks), y]), domain


def test_sample_domain_through_a_pipeline(stacked, blend):
    X, y, domain = stacked
    pipe = make_pipeline(StandardScaler(), blend(None))
    name = pipe.steps[-1][0]
    pipe.fit(X, y, **{f"{name}__sample_domain": domain})
    alone = blend(None).fit(StandardScaler().fit_transform(X), y, sample_domain=domain)
    np.testing.assert_array_equal(pipe[-1].coef_, alone.coef_)
    assert pipe[-1].prior_.n_tasks == 3
    assert not sklearn.get_config()["enable_metadata_routing"]

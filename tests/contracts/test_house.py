"""House rules: public names are documented, imports are lazy, and bad tables are refused.

Every public name is on the API page and lives in a room; a room is imported when it is first used;
and what skips scikit-learn's validation refuses what that would refuse. Sizes are checked by
``scripts/measure_house.py``.
"""

import ast
import pickle
import re
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse

import crossfade
from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    PosteriorBlendClassifier,
    Rule,
    TaskPrior,
    load_model,
    save_model,
)

HOUSE = Path(crossfade.__file__).parent
API = (Path(__file__).parents[2] / "docs" / "api.md").read_text()

# -- what is public, and where --------------------------------------------------------------

#: Modules within rooms that are documented by themselves; all others are private.
OPEN_MODULES = {
    "crossfade.exceptions",
    "crossfade.signals.ecg",
    "crossfade.signals.eeg",
    "crossfade.signals.recordings",
    "crossfade.signals.windows",
    "crossfade.study.statistics",
}


def public_modules():
    """Module names without an underscore, and their files; commands have help texts instead."""
    found = {}
    for path in HOUSE.rglob("*.py"):
        parts = path.relative_to(HOUSE).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        if parts[:1] != ("cli",) and not any(part.startswith("_") for part in parts):
            found[".".join(("crossfade", *parts))] = path
    return found


def names_of(path):
    """Names that a module lists in `__all__`, or else what it defines."""
    body = ast.parse(path.read_text()).body
    for node in body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    defined = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return {name for name in defined if not name.startswith("_")}


def documented():
    """Names in the tables of the API page, each of which gets a page of its own."""
    names, current = [], "crossfade"
    for module, entry in re.findall(
        r"^\.\. currentmodule:: (\S+)$|^ {3}([A-Za-z_]\w*)$", API, re.MULTILINE
    ):
        current = module or current
        names += [f"{current}.{entry}"] if entry else []
    return names


def test_modules_within_rooms_are_private():
    within = {name for name, path in public_modules().items() if path.name != "__init__.py"}
    assert within <= OPEN_MODULES


@pytest.mark.parametrize("module", sorted(public_modules()))
def test_every_public_name_is_on_the_api_page(module):
    own = names_of(public_modules()[module])
    # A name may stand on the page with its room, or as one of the package.
    places = {place.rpartition(".")[::2] for place in documented()}
    missing = {
        name
        for name in own
        if not any(
            other == name and (module.startswith(home) or home.startswith(module))
            for home, other in places
        )
    }
    assert missing == set()


def test_every_name_on_the_api_page_exists():
    names = documented()
    assert len(names) == len(set(names))
    exported = {
        f"{module}.{name}" for module, path in public_modules().items() for name in names_of(path)
    }
    assert set(names) <= exported


@pytest.mark.parametrize("name", crossfade.__all__)
def test_public_names_live_in_a_room(name):
    rooms = {path.parent.name for path in HOUSE.glob("*/__init__.py")}
    thing = getattr(crossfade, name)
    top, room = thing.__module__.split(".")
    assert top == "crossfade"
    assert room in rooms
    assert getattr(sys.modules[thing.__module__], name) is thing


# -- rooms open when they are asked for -----------------------------------------------------


def in_a_fresh_interpreter(code):
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_import_alone_loads_nothing():
    code = """
import sys
before = set(sys.modules)
import crossfade
loaded = {name.split(".")[0] for name in set(sys.modules) - before}
print(*loaded - set(sys.stdlib_module_names))
assert set(crossfade.__all__) <= set(dir(crossfade))
assert "numpy" not in sys.modules
assert crossfade.TaskPrior.from_projections([[1.0, 0.0]]).n_tasks == 1
assert crossfade.crowd.TaskPrior is crossfade.TaskPrior
assert "numpy" in sys.modules
assert "crossfade.study" not in sys.modules
"""
    assert in_a_fresh_interpreter(code) == ["crossfade"]


def test_dir_is_all_that_there_is():
    shown = [name for name in dir(crossfade) if not name.startswith("_")]
    rooms = [name for name in shown if name not in crossfade.__all__]
    assert set(crossfade.__all__) <= set(shown)
    assert {f"crossfade.{room}" for room in rooms} <= set(public_modules())
    with pytest.raises(AttributeError, match="module 'crossfade' has no attribute 'nothing'"):
        _ = crossfade.nothing


# -- fast doors -----------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    """A rule that was written to a file and read again."""

    def again(rule, X, y):
        save_model(rule.fit(X, y), tmp_path / "model.json")
        return load_model(tmp_path / "model.json")

    return again


RULES = {
    "fisher": lambda prior: FisherDiscriminant(),
    "convex": ConvexBlendClassifier,
    "posterior": PosteriorBlendClassifier,
}


@pytest.fixture(params=[*RULES, "saved"])
def fitted(request, make_directions, make_target, saved):
    """A fitted rule, in which the last feature has no weight, and its samples."""
    X, y = make_target(4)
    X[:, -1] = 5.0
    W = make_directions()
    W[:, -1] = 0.0
    prior = TaskPrior.from_projections(W, normalize=True, isotropic=False)
    if request.param == "saved":
        return saved(PosteriorBlendClassifier(prior), X, y), X, y
    return RULES[request.param](prior).fit(X, y), X, y


def ways_of(rule):
    names = ("predict", "predict_proba", "decision_function")
    return [getattr(rule, name) for name in names if hasattr(rule, name)]


@pytest.mark.parametrize("n_samples", [1, 16])
@pytest.mark.parametrize("feature", [0, 3])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_refused(fitted, bad, feature, n_samples):
    rule, X, y = fitted
    broken = X.copy()
    broken[0, feature] = bad
    word = "NaN" if np.isnan(bad) else "infinity"
    for way in ways_of(rule):
        with pytest.raises(ValueError, match=word):
            way(broken[:n_samples])
    for name in ("fit", "partial_fit"):
        if hasattr(rule, name):
            with pytest.raises(ValueError, match=word):
                getattr(rule, name)(broken, y)
    if hasattr(rule, "partial_fit"):
        with pytest.raises(ValueError, match=word):
            rule.partial_fit(broken, None)


@pytest.mark.filterwarnings("ignore:invalid value encountered in reduce")  # scikit-learn's sum
def test_infinities_that_cancel_are_refused(fitted):
    rule, X, _ = fitted
    broken = X.copy()
    broken[0, :2] = np.inf, -np.inf
    broken[1, :2] = -np.inf, np.inf
    for way in ways_of(rule):
        with pytest.raises(ValueError, match="infinity"):
            way(broken)


def test_tables_of_another_shape_are_refused(fitted):
    rule, X, y = fitted
    for odd in (X[:, :3], X[0], X[None], np.full(X.shape, "a", dtype=object), X.astype(complex)):
        for way in ways_of(rule):
            with pytest.raises((ValueError, TypeError), match=r"."):
                way(odd)
    if isinstance(rule, Rule):
        return
    for way in ways_of(rule):
        with pytest.raises(ValueError, match="0 sample"):
            way(X[:0])
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            way(scipy.sparse.csr_array(X))
    for rows, labels in (
        (X[0], y),
        (X[:0], y[:0]),
        (X[:, :0], y),
        (X, y[:-1]),
        (X, np.stack([y, y])),
        (X, X[:, 0]),
        (X, np.where(y, np.nan, 0.0)),
        (X.astype(complex), y),
        (np.full(X.shape, "a", dtype=object), y),
    ):
        with pytest.raises(ValueError, match=r"."):
            rule.fit(rows, labels)


FORMS = {
    "list": lambda X: X.tolist(),
    "object": lambda X: X.astype(object),
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "big-endian": lambda X: X.astype(">f8"),
    "long": lambda X: X.astype(np.longdouble),
}


@pytest.mark.parametrize("form", FORMS)
def test_tables_of_another_kind_are_the_same(fitted, form):
    rule, X, y = fitted
    other = FORMS[form](X)
    before = [way(X) for way in ways_of(rule)]
    for expected, way in zip(before, ways_of(rule), strict=True):
        np.testing.assert_allclose(way(other), expected, rtol=1e-12, atol=1e-12)
    if isinstance(rule, Rule):
        return
    for labels in (y, y.tolist(), y.astype(float), y.astype(bool), y.astype(np.int8)):
        rule.fit(other, labels)
        np.testing.assert_array_equal(rule.classes_, [0, 1])
        for expected, way in zip(before, ways_of(rule), strict=True):
            np.testing.assert_allclose(way(X), expected, rtol=1e-9, atol=1e-9)


# -- what can be kept -----------------------------------------------------------------------


@pytest.fixture(params=[pickle, joblib])
def kept(request, tmp_path):
    """Writes an object and reads it again."""

    def again(thing):
        if request.param is pickle:
            return pickle.loads(pickle.dumps(thing))
        joblib.dump(thing, tmp_path / "thing.joblib")
        return joblib.load(tmp_path / "thing.joblib")

    return again


def test_fitted_rules_can_be_kept(fitted, kept):
    rule, X, _ = fitted
    again = kept(rule)
    assert type(again) is type(rule)
    for one, other in zip(ways_of(again), ways_of(rule), strict=True):
        np.testing.assert_array_equal(one(X), other(X))
    for name in ("expected_accuracy_", "expected_accuracy_error_", "class_prior_"):
        if hasattr(rule, name):
            np.testing.assert_array_equal(getattr(again, name), getattr(rule, name))


def test_kept_blends_go_on_learning(make_target, make_prior, kept):
    X, y = make_target()
    more, labels = make_target(seed=9)
    for blend in (ConvexBlendClassifier, PosteriorBlendClassifier):
        rule = blend(make_prior()).fit(X, y)
        again = kept(rule)
        assert again.prior == rule.prior
        again.partial_fit(more, labels)
        np.testing.assert_array_equal(again.coef_, rule.partial_fit(more, labels).coef_)


@pytest.mark.filterwarnings("ignore::crossfade.exceptions.UncountedReleaseWarning")
def test_priors_can_be_kept(make_tasks, make_many, make_directions, kept):
    for prior in (
        TaskPrior.from_tasks(make_tasks()),
        TaskPrior.from_projections(make_directions(), isotropic=True),
        TaskPrior.from_projections(make_directions()).released(epsilon=1.0, delta=1e-5),
        TaskPrior.from_tasks(make_many()),
    ):
        again = kept(prior)
        assert type(again) is type(prior)
        assert again == prior
        assert hash(again) == hash(prior)

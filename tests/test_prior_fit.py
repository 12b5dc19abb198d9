"""Does a prior fit a table? Features, their order, classes and units."""

import numpy as np
import pytest
from crossfade.prior._compatibility import misfits, name_misfits

from crossfade import Task, TaskPrior
from crossfade.prior._units import unit_misfits

NAMES = ("a", "b", "c", "d")


@pytest.fixture
def prior(make_tasks):
    return TaskPrior.from_tasks(make_tasks(labels=("rest", "task"), feature_names=NAMES))


def person(make_target, n_each=(4, 4), names=NAMES, labels=("rest", "task"), factor=1.0):
    X, y = make_target(n_each=n_each, seed=7)
    X[:, 2] *= factor
    return [Task(X[:, : len(names)], np.array(labels)[y], feature_names=names)]


def test_what_fits(prior, make_target, make_tasks, make_prior):
    assert misfits(prior, person(make_target)) == []
    assert unit_misfits(prior, person(make_target)) == []
    crowd = make_tasks(labels=("rest", "task"), feature_names=NAMES)
    assert misfits(prior, crowd) + unit_misfits(prior, crowd) == []
    assert misfits(make_prior(), person(make_target, names=("any", "other", "four", "names"))) == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"names": ("a", "c", "b", "d")}, "another order: 'c' stands where the prior has 'b'"),
        ({"names": ("a", "b", "c")}, "Features of the prior are missing: 'd'"),
        ({"names": ("a", "b", "c", "x")}, "does not know: 'x'"),
        ({"labels": ("rest", "math")}, "Label 'math' is not one of the prior's classes"),
        ({"n_each": (0, 4)}, "no window of class 'rest'"),
    ],
)
def test_what_does_not(prior, make_target, options, reason):
    assert any(reason in found for found in misfits(prior, person(make_target, **options)))


def test_features_without_names_are_counted(make_prior, make_target):
    found = misfits(make_prior(n_features=6), person(make_target))
    assert found == ["There are 4 features; the prior has 6."]


def test_many_names_are_cut_short():
    (found,) = name_misfits([f"f{place}" for place in range(9)], 9, [], "the model")
    assert found == "Features of the model are missing: 'f0', 'f1', 'f2', 'f3', 'f4' and 4 more."


@pytest.mark.parametrize("factor", [1e-6, 1e3])
@pytest.mark.parametrize("n_each", [(3, 3), (30, 30)])
def test_other_units_are_noticed(prior, make_target, factor, n_each):
    (found,) = unit_misfits(prior, person(make_target, n_each, factor=factor))
    assert found.startswith("Feature 'c' varies ")
    assert found.endswith("Check its units.")


def test_one_window_a_class_has_a_place_and_no_spread(prior, make_target):
    far = person(make_target, (1, 1), factor=1e6)
    assert unit_misfits(prior.without("class_means"), far) == []
    (found,) = unit_misfits(prior, far)
    assert found.startswith("Feature 'c' lies ")
    assert unit_misfits(prior, person(make_target, (1, 1))) == []


def test_few_windows_rarely_raise_a_false_alarm(make_target):
    """Spread as in the prior, three degrees of freedom: alarms are below one in a thousand."""
    rng = np.random.default_rng(0)
    prior = TaskPrior.from_projections(np.eye(4)[:2], feature_scale=np.ones(4))
    alarms = sum(
        bool(unit_misfits(prior, [Task(rng.normal(size=(5, 4)), [0, 0, 1, 1, 1])]))
        for _ in range(300)
    )
    assert alarms <= 1

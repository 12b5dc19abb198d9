"""Crowd and target in one call of fit: skada's, scikit-learn's and MOABB's conventions."""

import numpy as np
import pandas as pd
import pytest

from crossfade import (
    ConvexBlendClassifier,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    TaskPrior,
)

BLENDS = [ConvexBlendClassifier, PosteriorBlendClassifier]
LEARNT = ("coef_", "intercept_", "projection_", "alpha_", "expected_accuracy_")


@pytest.fixture(params=BLENDS)
def blend(request):
    return request.param


@pytest.fixture
def world(make_target, make_tasks):
    """Three sources and a target in one stack, and the same in parts."""
    tasks = make_tasks(3)
    X, y = make_target(seed=50)
    stack = np.vstack([*(task.X for task in tasks), X])
    labels = np.concatenate([*(task.y for task in tasks), y])
    domain = np.repeat([4, 1, 7, -2], [20, 20, 20, 16])
    return stack, labels, domain, tasks


def same(one, other):
    for name in LEARNT:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-10)


def test_positive_domains_become_the_prior(world, blend):
    X, y, domain, tasks = world
    clf = blend().fit(X, y, sample_domain=domain)
    by_hand = TaskPrior.from_tasks(tasks)
    assert clf.prior_.n_tasks == 3
    np.testing.assert_allclose(clf.prior_.mean, by_hand.mean)
    np.testing.assert_allclose(clf.prior_.feature_scale, by_hand.feature_scale)
    assert clf.prior_.classes == (0, 1)
    assert clf.prior is None
    same(clf, blend(by_hand).fit(X[domain < 0], y[domain < 0]))


def test_sources_are_added_to_a_prior_in_its_units(world, make_tasks, blend):
    X, y, domain, tasks = world
    prior = TaskPrior.from_tasks(make_tasks(5)[3:])
    clf = blend(prior).fit(X, y, sample_domain=domain)
    expected = prior + TaskPrior.from_tasks(tasks, feature_scale=prior.feature_scale)
    np.testing.assert_allclose(clf.prior_.mean, expected.mean)
    assert clf.prior_.n_tasks == 5
    assert clf.prior is prior


def test_target_alone_leaves_the_prior(world, make_prior, blend):
    X, y, domain, _ = world
    X, y, domain = X[domain < 0], y[domain < 0], domain[domain < 0]
    for prior in (None, make_prior()):
        clf = blend(prior).fit(X, y, sample_domain=domain)
        assert clf.prior_ is prior
        same(clf, blend(prior).fit(X, y))


def test_masked_samples_of_the_target_are_used_without_their_labels(world, blend):
    X, y, domain, _ = world
    hidden = (domain < 0) & (np.arange(len(y)) % 2 == 0)
    masked = np.where(hidden, -1, y)
    clf = blend().fit(X, masked, sample_domain=domain)
    np.testing.assert_array_equal(clf.classes_, [0, 1])
    left_out = blend().fit(X[~hidden], y[~hidden], sample_domain=domain[~hidden])
    assert abs(clf.intercept_ - left_out.intercept_) > 1e-6
    same(clf, left_out.partial_fit(X[hidden], None))


@pytest.mark.parametrize("sources", [True, False])
def test_minus_one_is_a_label_like_any_other_next_to_plus_one(world, blend, sources):
    X, y, domain, _ = world
    if not sources:
        X, y, domain = X[domain < 0], y[domain < 0], domain[domain < 0]
    signs = np.where(y == 1, 1, -1)
    clf = blend().fit(X, signs, sample_domain=domain)
    np.testing.assert_array_equal(clf.classes_, [-1, 1])
    same(clf, blend().fit(X, y, sample_domain=domain))


def test_classes_map_the_labels_of_sources_too(world, make_tasks, blend):
    X, y, domain, _ = world
    prior = TaskPrior.from_tasks(make_tasks(5, labels=("rest", "task"))[3:])
    names = np.array(["rest", "task"])[y]
    plain = blend(prior).fit(X, names, sample_domain=domain)
    mapped = blend(prior, classes=(0, 1)).fit(X, y, sample_domain=domain)
    same(mapped, plain)
    assert mapped.prior_ == plain.prior_
    # Labels that sort the other way: 1 is rest, 0 is task.
    turned = blend(prior, classes=(1, 0)).fit(X, 1 - y, sample_domain=domain)
    assert turned.prior_.n_tasks == 5
    np.testing.assert_allclose(turned.projection_, -plain.projection_, atol=1e-10)
    np.testing.assert_array_equal(turned.predict(X), (plain.predict(X) == "rest").astype(int))


def test_partial_fit_goes_on_with_the_prior_of_the_sources(world, blend):
    X, y, domain, _ = world
    first = (domain > 0) | (np.arange(len(y)) % 2 == 0)
    clf = blend().fit(X[first], y[first], sample_domain=domain[first])
    clf.partial_fit(X[~first], y[~first])
    same(clf, blend().fit(X, y, sample_domain=domain))


def test_feature_names_reach_the_prior_of_the_sources(make_target):
    X, y = make_target(4, (8, 8))
    frame = pd.DataFrame(np.vstack([X, X]), columns=list("abcd"))
    domain = np.repeat([1, -1], 16)
    clf = PosteriorBlendClassifier().fit(frame, np.r_[y, y], sample_domain=domain)
    assert clf.prior_.feature_names == ("a", "b", "c", "d")


EVERY = [*BLENDS, HierarchicalBlendClassifier]


@pytest.mark.parametrize("every", EVERY)
def test_the_crowd_answers_where_all_labels_of_the_target_are_masked(world, every):
    X, y, domain, tasks = world
    target = domain < 0
    clf = every().fit(X, np.where(target, -1, y), sample_domain=domain)
    by_hand = every(TaskPrior.from_tasks(tasks)).partial_fit(X[target], None)
    same(clf, by_hand)
    assert (clf.predict(X[target]) == y[target]).mean() > 0.7


@pytest.mark.parametrize("every", EVERY)
def test_the_group_of_the_last_row_is_the_target(world, every):
    X, y, domain, _ = world
    expected = every().fit(X, y, sample_domain=domain)
    people = np.array(["ann", "bob", "cem", "dora"])[np.repeat([0, 1, 2, 3], [20, 20, 20, 16])]
    same(every().fit(X, y, groups=people), expected)
    same(every().fit(X, y, groups=pd.Series(people)), expected)
    alone = every().fit(X[domain < 0], y[domain < 0], groups=people[domain < 0])
    assert alone.prior_ is None


@pytest.mark.parametrize("every", EVERY)
def test_moabb_has_the_target_beside_the_sources(world, every):
    X, y, domain, tasks = world
    target = domain < 0
    crowd = {"X": X[~target], "y": y[~target], "subjects": domain[~target]}
    few = {"X_target_labeled": X[target], "y_target_labeled": y[target]}
    same(every().fit(**crowd, **few), every().fit(X, y, sample_domain=domain))
    prior = TaskPrior.from_tasks(tasks)
    same(every().fit(**crowd), every(prior).start())
    # None of them is nothing.
    none = {"X_target_labeled": X[:0], "y_target_labeled": y[:0], "X_target_unlabeled": X[:0]}
    same(every().fit(**crowd, **none), every(prior).start())
    hints = every().fit(**crowd, X_target_unlabeled=X[target])
    same(hints, every(prior).partial_fit(X[target], None))
    both = every().fit(**crowd, **few, X_target_unlabeled=X[target] + 1.0)
    by_hand = every(prior).partial_fit(X[target], y[target]).partial_fit(X[target] + 1.0, None)
    same(both, by_hand)
    assert abs(both.intercept_ - every().fit(**crowd, **few).intercept_) > 1e-6


def test_many_classes_come_from_the_sources_too(make_many):
    tasks = make_many(7)
    X, y = np.vstack([task.X for task in tasks]), np.concatenate([task.y for task in tasks])
    people = np.repeat([task.name for task in tasks], [len(task.y) for task in tasks])
    clf = HierarchicalBlendClassifier().fit(X, y, groups=people)
    prior = TaskPrior.from_tasks(tasks[:-1])
    expected = HierarchicalBlendClassifier(prior).fit(tasks[-1].X, tasks[-1].y)
    np.testing.assert_allclose(clf.coef_, expected.coef_)
    with pytest.raises(ValueError, match="HierarchicalBlendClassifier"):
        PosteriorBlendClassifier().fit(X, y, groups=people)


#: What is wrong, as a function of X, y and domains, and the word that matters.
REFUSED = {
    "domain zero": (lambda X, y, d: {"sample_domain": d * 0}, "zero"),
    "too few domains": (lambda X, y, d: {"sample_domain": d[:-1]}, "whole number"),
    "domains of floats": (lambda X, y, d: {"sample_domain": d.astype(float)}, "whole number"),
    "no target": (lambda X, y, d: {"sample_domain": abs(d)}, "one target"),
    "two targets": (lambda X, y, d: {"sample_domain": np.where(d == 7, -7, d)}, "one target"),
    "a mask that is a class": (
        lambda X, y, d: {"y": np.where((y == 1) & (d > 0), 1, -1), "sample_domain": d},
        "mask",
    ),
    "a source of one class": (
        lambda X, y, d: {"y": np.where(d == 4, 0, y), "sample_domain": d},
        "one class only",
    ),
    "weighted sources": (
        lambda X, y, d: {"sample_domain": d, "sample_weight": np.full(len(y), 2.0)},
        "sample_weight",
    ),
    "domains and groups": (lambda X, y, d: {"sample_domain": d, "groups": d}, "exactly one"),
    "no subjects": (lambda X, y, d: {"X_target_labeled": X, "y_target_labeled": y}, "exactly one"),
    "too few groups": (lambda X, y, d: {"groups": d[1:]}, "groups"),
    "a missing subject": (
        lambda X, y, d: {"subjects": np.where(np.arange(len(y)) < 2, np.nan, d)},
        "subjects are missing",
    ),
    "groups and the target beside": (
        lambda X, y, d: {"groups": d, "X_target_unlabeled": X},
        "pass subjects",
    ),
    "labels of the target missing": (
        lambda X, y, d: {
            "subjects": d,
            "X_target_labeled": X,
            "y_target_labeled": [None, *y[1:]],
        },
        "missing",
    ),
    "target without labels": (
        lambda X, y, d: {"subjects": d, "X_target_labeled": X},
        "belong together",
    ),
    "target not transformed": (
        lambda X, y, d: {"subjects": d, "X_target_unlabeled": np.zeros((5, 3, 100))},
        "transform_input",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(world, blend, case):
    X, y, domain, _ = world
    change, word = REFUSED[case]
    with pytest.raises(ValueError, match=word):
        blend().fit(**({"X": X, "y": y} | change(X, y, domain)))


def test_refuses_sources_that_do_not_fit_the_prior(world, make_prior, blend):
    X, y, domain, _ = world
    target = domain < 0
    hidden = {"y": 0 * y[target] - 1, "sample_domain": domain[target]}
    for prior in (None, make_prior()):
        with pytest.raises(ValueError, match=r".+"):
            blend(prior, classes=(0, 1)).fit(X[target], **hidden)
    for prior in (make_prior(classes=("rest", "task")), make_prior(n_features=5)):
        with pytest.raises(ValueError, match=r"class|features"):
            blend(prior).fit(X, y, sample_domain=domain)

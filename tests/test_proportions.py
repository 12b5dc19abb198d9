"""Class proportions in risks and blends: both ends, what changes and what stays, refusals."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    PosteriorBlendClassifier,
    TaskPrior,
    choose_alpha,
    risk_curve,
)
from crossfade.risk import (
    conditional_risk,
    expected_risk,
)

BLENDS = [ConvexBlendClassifier, PosteriorBlendClassifier]
BAD = [
    (0.5, 0.6),
    (1.0, 0.0),
    (1.2, -0.2),
    (0.2, 0.3, 0.5),
    (0.5,),
    0.5,
    [[0.2, 0.8]],
    (np.nan, 1.0),
    ("a", "b"),
    "unlabelled",
]


@pytest.mark.parametrize("class_prior", BAD, ids=repr)
def test_bad_proportions_are_refused_everywhere(class_prior, make_target, make_prior):
    prior = make_prior()
    X, y = make_target()
    law = {"nu": np.ones(4), "sigma": np.eye(4), "class_prior": class_prior}
    parts = {"target": (np.ones(4), np.eye(4)), "source": (np.ones(4), np.eye(4))}
    moments = {"half_gap": np.ones(4), "covariance": np.eye(4), "n_samples": 10}
    calls = [
        lambda: conditional_risk(np.ones(4), **law),
        lambda: expected_risk(np.ones(4), np.eye(4), **law),
        lambda: risk_curve([0.5], **parts, **law),
        lambda: choose_alpha(prior, class_prior=class_prior, **moments),
        *(lambda blend=blend: blend(prior, class_prior=class_prior).fit(X, y) for blend in BLENDS),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="class_prior"):
            call()


def test_risk_at_both_ends():
    options = {"nu": [1.0, 0.0], "sigma": np.eye(2)}
    for class_prior in ((0.7, 0.3), (0.3, 0.7)):
        nothing, all_of_it, against = conditional_risk(
            [[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]], class_prior=class_prior, **options
        )
        assert (nothing, against) == pytest.approx((0.3, 0.3))
        assert all_of_it < 0.3
    certain = expected_risk(
        [1.0, 0.0], np.zeros((2, 2)), nu=[1.0, 0.0], sigma=np.zeros((2, 2)), class_prior=(0.7, 0.3)
    )
    assert certain == (0.0, 0.0)


def test_risk_is_the_same_with_the_classes_exchanged():
    rng = np.random.default_rng(0)
    mean, nu = rng.normal(size=(2, 8, 3))
    options = {"nu": nu, "sigma": np.eye(3)}
    first = expected_risk(mean, 0.2 * np.eye(3), class_prior=(0.1, 0.9), **options)
    second = expected_risk(mean, 0.2 * np.eye(3), class_prior=(0.9, 0.1), **options)
    np.testing.assert_allclose(first.risk, second.risk, atol=1e-12)
    np.testing.assert_allclose(first.risk[np.vecdot(mean, nu) < 0.0], 0.1)


@pytest.mark.parametrize("blend", BLENDS)
def test_equal_proportions_are_the_default(blend, make_target, make_prior):
    X, y = make_target()
    plain = blend(make_prior()).fit(X, y)
    given = blend(make_prior(), class_prior=(0.5, 0.5)).fit(X, y)
    np.testing.assert_array_equal(plain.class_prior_, [0.5, 0.5])
    for name in ("alpha_", "coef_", "intercept_", "expected_accuracy_", "expected_accuracy_error_"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(given, name))


@pytest.mark.parametrize("blend", BLENDS)
def test_threshold_and_probabilities_carry_the_odds(blend, make_target, make_prior):
    X, y = make_target()
    options = {"alpha": 0.5} if blend is ConvexBlendClassifier else {}
    plain = blend(make_prior(), **options).fit(X, y)
    rule = blend(make_prior(), class_prior=(0.9, 0.1), **options).fit(X, y)
    np.testing.assert_array_equal(rule.coef_, plain.coef_)
    np.testing.assert_allclose(rule.class_prior_, [0.9, 0.1])
    chances, before = rule.predict_proba(X), plain.predict_proba(X)
    odds = np.log(chances[:, 1] / chances[:, 0]) - np.log(before[:, 1] / before[:, 0])
    np.testing.assert_allclose(odds, -np.log(9.0))
    np.testing.assert_array_equal(rule.predict(X), rule.classes_[chances.argmax(1)])
    assert (rule.predict(X) == 1).sum() <= (plain.predict(X) == 1).sum()
    assert rule.expected_accuracy_ > plain.expected_accuracy_
    again = pickle.loads(pickle.dumps(clone(rule).fit(X, y)))
    np.testing.assert_array_equal(again.intercept_, rule.intercept_)


def test_without_a_prior_it_is_fishers_threshold_with_an_honest_gap(make_target):
    X, y = make_target(n_each=(2000, 2000))
    rule = PosteriorBlendClassifier(class_prior=(0.8, 0.2)).fit(X, y)
    fisher = FisherDiscriminant(priors=(0.8, 0.2)).fit(X, y)
    np.testing.assert_allclose(rule.intercept_, fisher.intercept_, rtol=1e-3)


def test_a_rule_without_a_gap_answers_the_likelier_class(make_prior):
    # Classes that do not differ along the crowd's direction.
    X = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]] * 2)
    y = np.repeat([0, 1], 3)
    rule = PosteriorBlendClassifier(make_prior(), class_prior=(0.3, 0.7)).fit(X, y)
    assert (rule.predict(np.random.default_rng(0).normal(size=(50, 4))) == 1).all()
    np.testing.assert_allclose(rule.predict_proba(X)[:, 1], 0.7, atol=1e-6)
    assert rule.expected_accuracy_ == pytest.approx(0.7)


def test_one_class_only_has_proportions_too(make_target, make_tasks):
    X, y = make_target()
    prior = TaskPrior.from_tasks(make_tasks())
    options = {"missing_class": "crowd", "classes": (0, 1)}
    plain = PosteriorBlendClassifier(prior, **options).fit(X[:4], y[:4])
    rule = PosteriorBlendClassifier(prior, class_prior=(0.9, 0.1), **options).fit(X[:4], y[:4])
    assert rule.intercept_ < plain.intercept_
    assert rule.expected_accuracy_ > plain.expected_accuracy_

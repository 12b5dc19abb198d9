"""Masked is missing: what a mask hides is never used, at whatever door it comes in."""

import numpy as np
import pytest

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
)

FILL = r"masked values are missing\. Fill them, or drop those rows"


def masked(X, *places):
    """X with something absurd behind the mask at some places."""
    hidden = np.ma.array(X, copy=True, mask=np.zeros(X.shape, bool))
    for place in places:
        hidden[place] = 1e6
        hidden[place] = np.ma.masked
    return hidden


RULES = [
    FisherDiscriminant(),
    ConvexBlendClassifier(),
    PosteriorBlendClassifier(),
    HierarchicalBlendClassifier(),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_estimators_refuse_masked_samples(rule, make_target):
    X, y = make_target()
    hidden = masked(X, (2, 1), (5, 0), (5, 3), (7, 2))
    with pytest.raises(ValueError, match=rf"X has 4 of 64 .*{FILL}"):
        rule.fit(hidden, y)
    rule.fit(X, y)
    for name in ("predict", "predict_proba"):
        with pytest.raises(ValueError, match=FILL):
            getattr(rule, name)(hidden)
    # A mask that hides nothing is none.
    np.testing.assert_array_equal(rule.predict(masked(X)), rule.predict(X))
    with pytest.raises(ValueError, match=r"mask|missing"):
        rule.fit(X, masked(y, 3))
    with pytest.raises(ValueError, match="sample_weight has 1 of 16 values masked"):
        rule.fit(X, y, sample_weight=masked(np.ones(len(y)), 3))


def test_partial_fit_refuses_them_too_and_stays_as_it_was(make_target):
    X, y = make_target()
    rule = PosteriorBlendClassifier().partial_fit(X, y)
    before = rule.coef_.copy()
    for labels in (y, None):
        with pytest.raises(ValueError, match=FILL):
            rule.partial_fit(masked(X, (0, 0)), labels)
    np.testing.assert_array_equal(rule.coef_, before)


def test_a_masked_label_is_no_label(make_tasks):
    first, *others = make_tasks()
    X, y = np.asarray(first.X), np.asarray(first.y)
    prior = TaskPrior.from_tasks(others)
    rows = [0, 1, 2, 10, 11, 12]
    with_mask = masked(y[rows], 1, 4)
    with_none = [0, None, 0, 1, None, 1]
    one, other = (
        HierarchicalBlendClassifier(prior).start().partial_fit(X[rows], labels)
        for labels in (with_mask, with_none)
    )
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one.rule_.n_labelled.tolist() == [2.0, 2.0]
    text = masked(np.array(["a", "b"], dtype=object)[y[rows]], 1, 4)
    named = HierarchicalBlendClassifier(prior, classes=("a", "b")).start()
    np.testing.assert_array_equal(named.partial_fit(X[rows], text).coef_, one.coef_)
    with pytest.raises(ValueError, match="sample_weight has 1 of 6 values masked"):
        one.partial_fit(X[rows], with_none, sample_weight=masked(np.ones(6), 0))
    with pytest.raises(ValueError, match="2 of 6 labels are missing"):
        HierarchicalBlendClassifier(prior).fit(X[rows], with_mask)


def test_tasks_and_priors_refuse_them(make_target):
    X, y = make_target()
    with pytest.raises(ValueError, match=rf"X of task 'p1' has 1 of 64 values masked: {FILL}"):
        Task(masked(X, (3, 2)), y, name="p1")
    with pytest.raises(ValueError, match="y of task 'p1' has 1 of 16 values masked"):
        Task(X, masked(y, 3), name="p1")
    assert Task(masked(X), masked(y)).X.sum() == X.sum()
    with pytest.raises(ValueError, match="projections has 1 of 9 values masked"):
        TaskPrior.from_projections(masked(np.eye(3), (1, 1)))

"""Odd numbers and odd orders of calls: an answer or a refusal, and never NaN."""

import numpy as np
import pytest

from crossfade import PosteriorBlendClassifier, Task, TaskPrior, choose_alpha


@pytest.mark.parametrize("strength", [1e7, 1e50, 1e300])
def test_a_huge_strength_leaves_the_person_alone(make_prior, make_target, strength):
    X, y = make_target(n_each=(2, 1))
    blend = PosteriorBlendClassifier(make_prior(), strength=strength).fit(X, y)
    alone = PosteriorBlendClassifier(make_prior(), strength=np.inf).fit(X, y)
    np.testing.assert_allclose(blend.projection_, alone.projection_, atol=1e-5)
    assert np.isfinite(blend.coef_).all()


@pytest.mark.parametrize("n_each", [(2, 2), (40, 40)])
@pytest.mark.parametrize("strength", ["auto", 1.0, 1e5])
def test_alpha_never_exceeds_one(make_prior, make_target, n_each, strength):
    X, y = make_target(n_each=n_each)
    for isotropic in (False, True):
        prior = make_prior(isotropic=isotropic)
        assert 0.0 <= PosteriorBlendClassifier(prior, strength=strength).fit(X, y).alpha_ <= 1.0


def test_a_covariance_that_cannot_be_inverted_is_refused(make_prior):
    with pytest.raises(ValueError, match="covariance"):
        choose_alpha(make_prior(), half_gap=np.ones(4), covariance=1e-320 * np.eye(4), n_samples=10)


def test_labels_that_are_named_anew_between_calls(make_target):
    """Only one class was seen when the pair of labels changed."""
    X, y = make_target()
    names = np.array(["c", "b"])[y]
    whole = PosteriorBlendClassifier().fit(X, names)
    parts = PosteriorBlendClassifier().partial_fit(X[y == 1], names[y == 1], classes=["a", "b"])
    parts.partial_fit(X[y == 0], names[y == 0], classes=["b", "c"])
    assert parts.classes_.tolist() == ["b", "c"]
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-9)
    assert parts.expected_accuracy_ == pytest.approx(whole.expected_accuracy_)


def test_a_prior_of_other_labels_between_calls(make_target, make_prior):
    X, y = make_target()
    names = np.array(["c", "b"])[y]
    early, late = (make_prior(classes=pair) for pair in (("a", "b"), ("b", "c")))
    parts = PosteriorBlendClassifier(early).partial_fit(X[y == 1], names[y == 1])
    parts.set_params(prior=late).partial_fit(X[y == 0], names[y == 0])
    whole = PosteriorBlendClassifier(late).fit(X, names)
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-9)


def test_tasks_and_a_person_without_any_variance():
    """A variance that is only rounding counts as none."""
    rng = np.random.default_rng(0)
    tasks = []
    for _ in range(6):
        means = rng.standard_normal((2, 3)) + np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
        tasks.append(Task(np.repeat(means + 0.1, 5, axis=0), np.repeat([0, 1], 5)))
    rule = PosteriorBlendClassifier(TaskPrior.from_tasks(tasks[1:])).fit(tasks[0].X, tasks[0].y)
    assert np.isfinite(rule.coef_).all()

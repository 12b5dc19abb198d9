"""Odd numbers and odd orders of calls: answers or refusals, and never NaN or nonsense."""

import numpy as np
import pytest

from crossfade import (
    ConvexBlendClassifier,
    MulticlassBlend,
    MulticlassPrior,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
    choose_alpha,
    forecast_labels,
    load_model,
    save_model,
)
from crossfade.blend import convex, posterior
from crossfade.fisher import ClassMoments, learn_direction
from crossfade.prior import Crowd


@pytest.mark.parametrize("strength", [1e7, 1e50, 1e300])
@pytest.mark.parametrize("shrinkage", ["oas", None])
def test_a_huge_strength_leaves_the_person_alone(make_prior, make_target, strength, shrinkage):
    X, y = make_target(n_each=(2, 1))
    options = {"shrinkage": shrinkage}
    blend = PosteriorBlendClassifier(make_prior(), strength=strength, **options).fit(X, y)
    alone = PosteriorBlendClassifier(make_prior(), strength=np.inf, **options).fit(X, y)
    if shrinkage is not None:
        # The pseudo-inverse knows nothing of directions without variance: there the crowd stays.
        np.testing.assert_allclose(blend.projection_, alone.projection_, atol=1e-5)
    assert np.isfinite(blend.coef_).all()


@pytest.mark.parametrize("n_each", [(2, 2), (40, 40)])
@pytest.mark.parametrize("strength", ["auto", 1.0, 1e3, 1e5, 1e9])
def test_alpha_never_exceeds_one(make_prior, make_target, n_each, strength):
    X, y = make_target(n_each=n_each)
    for isotropic in (False, True):
        prior = make_prior(isotropic=isotropic)
        assert 0.0 <= PosteriorBlendClassifier(prior, strength=strength).fit(X, y).alpha_ <= 1.0


def test_a_covariance_that_cannot_be_inverted_is_refused(make_prior):
    words = "covariance is too small to be inverted"
    with pytest.raises(ValueError, match=words):
        choose_alpha(make_prior(), half_gap=np.ones(4), covariance=1e-320 * np.eye(4), n_samples=10)


def test_a_saved_rule_says_what_it_tells_apart(make_target, tmp_path):
    X, y = make_target()
    save_model(
        PosteriorBlendClassifier().fit(X, np.array(["rest", "task"])[y]), tmp_path / "m.json"
    )
    said = repr(load_model(tmp_path / "m.json"))
    assert said.startswith(
        "SavedRule(classes 'rest' and 'task', n_features=4, 8 + 8 labelled windows, no crowd, "
        "expected accuracy 0."
    )


# -- odd orders of calls ------------------------------------------------------------------------


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


@pytest.fixture(params=["together", "one by one"])
def rule(request, make_many):
    """The rule of one pair of three classes, and the person's windows."""
    tasks = make_many(n_tasks=8)
    prior = MulticlassPrior.from_tasks(tasks[1:])
    blend = PosteriorBlendClassifier(prior)
    if request.param == "one by one":
        blend = ConvexBlendClassifier.paper(prior, random_state=0)
    X, y = np.asarray(tasks[0].X), np.asarray(tasks[0].y)
    return MulticlassBlend(blend).fit(X, y).rules_["class 0", "class 1"], X, y


def test_rules_of_pairs_go_on_learning(rule):
    rule, X, y = rule
    mine = np.isin(y, ["class 0", "class 1"])
    before = rule.coef_.copy()
    rule.partial_fit(X[mine][:2] + 0.5, y[mine][:2])
    assert np.isfinite(rule.coef_).all()
    assert not np.array_equal(rule.coef_, before)


def test_rules_of_pairs_keep_the_moments_of_their_own_windows(rule):
    """As a blend does that was fitted to these two classes and has the same direction."""
    rule, X, y = rule
    mine = np.isin(y, ["class 0", "class 1"])
    scores, label = rule.decision_function(X[mine]), (y[mine] == "class 1").astype(int)
    means = np.array([scores[label == k].mean() for k in (0, 1)])
    within = ((scores - means[label]) ** 2).mean()
    kept = rule._moments
    np.testing.assert_allclose(kept.means @ rule.coef_[0] + rule.intercept_[0], means, atol=1e-9)
    assert kept.along(rule.coef_[0]) / kept.counts.sum() == pytest.approx(within)


def test_a_pairs_label_forecast_begins_with_its_forecast():
    rng = np.random.default_rng(0)
    label = np.repeat(["a", "b", "c"], 20)
    shift = 2.0 * np.repeat(np.eye(3), 20, axis=0)

    def draw():
        noise = rng.standard_normal((60, 3))
        for place in range(1, 60):
            noise[place] = 0.7 * noise[place - 1] + 0.7 * noise[place]
        return Task(noise + shift, label)

    prior = MulticlassPrior.from_tasks([draw() for _ in range(10)])
    person = draw()
    few = np.r_[0:10, 20:30, 40:50]
    blend = MulticlassBlend(PosteriorBlendClassifier(prior))
    for rule in blend.fit(np.asarray(person.X)[few], label[few]).rules_.values():
        now = forecast_labels(rule, [10]).accuracy[0]
        assert now == pytest.approx(rule.expected_accuracy_, abs=1e-9)


# -- verbs --------------------------------------------------------------------------------------


@pytest.fixture
def person(make_target):
    X, y = make_target()
    return learn_direction(ClassMoments.of(X, y), scale=np.ones(4))


@pytest.mark.parametrize("strength", ["foo", -1.0, None, np.nan])
def test_posterior_refuses_other_strengths(person, make_prior, strength):
    with pytest.raises(ValueError, match="strength must be a number of at least 0"):
        posterior(person, make_prior().crowd, strength)


@pytest.mark.parametrize("verb", [convex, posterior])
def test_verbs_take_a_crowd_and_no_prior(person, make_prior, verb):
    with pytest.raises(TypeError, match=r"got TaskPrior\. Pass its TaskPrior\.crowd"):
        verb(person, make_prior())


def test_a_batch_of_isotropic_crowds_is_each_of_them(make_target, make_directions):
    W = np.stack([make_directions(seed=seed) for seed in range(3)])
    people = np.stack([make_target(seed=seed)[0] for seed in range(3)])
    y = make_target()[1]
    person = learn_direction(ClassMoments.of(people, y), scale=np.ones(4))
    blends = posterior(person, Crowd.from_sums(30, W.sum(1), None))
    for place in range(3):
        alone = learn_direction(ClassMoments.of(people[place], y), scale=np.ones(4))
        one = posterior(alone, Crowd.from_sums(30, W[place].sum(0), None))
        np.testing.assert_allclose(blends.omega[place], one.omega, atol=1e-12)


def test_tasks_and_a_person_without_any_variance():
    """What rounding leaves of a variance is none."""
    rng = np.random.default_rng(0)
    tasks = []
    for _ in range(6):
        means = rng.standard_normal((2, 3)) + np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
        tasks.append(Task(np.repeat(means + 0.1, 5, axis=0), np.repeat([0, 1], 5)))
    prior = TaskPrior.from_tasks(tasks[1:])
    rule = PosteriorBlendClassifier(prior).fit(np.asarray(tasks[0].X), np.asarray(tasks[0].y))
    assert np.isfinite(rule.coef_).all()

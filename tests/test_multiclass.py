"""Many classes: two of them are the binary blend, priors per pair, missing classes, refusals."""

import copy
import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crossfade import (
    ConvexBlendClassifier,
    Ledger,
    MulticlassBlend,
    MulticlassPrior,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
)
from crossfade.blend._coupling import couple_pairs
from crossfade.exceptions import PriorMismatchError

NAMES = ("rest", "speech", "walk")
BLENDS = {"posterior": PosteriorBlendClassifier, "convex": ConvexBlendClassifier}
STRATEGIES = ("pairwise", "one-vs-rest")


@pytest.fixture
def draw(make_many):
    """Samples of some classes of one person, in features of unlike size."""

    def make(seed, classes=NAMES, n_each=8):
        [task] = make_many(1, n_each=(n_each,) * 3, first=seed, gap=0.8, names=NAMES)
        mine = np.isin(task.y, classes)
        return task.X[mine] * np.linspace(0.5, 3.0, 4) + 10.0, task.y[mine]

    return make


@pytest.fixture
def draw_tasks(draw):
    def make(n_tasks=6, classes=NAMES, first=100):
        return [Task(*draw(first + seed, classes), name=f"p{seed}") for seed in range(n_tasks)]

    return make


@pytest.fixture(params=BLENDS)
def blend(request):
    return BLENDS[request.param]


@pytest.fixture(params=STRATEGIES)
def strategy(request):
    return request.param


# -- two classes are the binary blend -------------------------------------------------------


@pytest.mark.parametrize("n_each", [1, 2, 9])
@pytest.mark.parametrize("kind", ["none", "task prior", "multiclass prior"])
def test_two_classes_are_the_binary_blend_to_the_bit(
    draw, draw_tasks, blend, strategy, kind, n_each
):
    tasks = draw_tasks(classes=NAMES[:2])
    X, y = draw(0, NAMES[:2], n_each)
    new = draw(1)[0]
    single = None if kind == "none" else TaskPrior.from_tasks(tasks)
    prior = single
    if kind == "multiclass prior":
        prior = MulticlassPrior.from_tasks(tasks, strategy=strategy)
        assert prior.pairs == (NAMES[:2],)
        assert prior[NAMES[:2]] == single
    binary = blend(single).fit(X, y)
    many = MulticlassBlend(blend(prior), strategy).fit(X, y)
    np.testing.assert_array_equal(many.classes_, binary.classes_)
    np.testing.assert_array_equal(many.predict_proba(new), binary.predict_proba(new))
    np.testing.assert_array_equal(many.predict(new), binary.predict(new))
    assert many.expected_accuracy_ == binary.expected_accuracy_
    assert many.expected_accuracy_error_ == binary.expected_accuracy_error_


def test_two_classes_of_which_one_is_missing(draw, draw_tasks, blend, strategy):
    tasks = draw_tasks(classes=NAMES[:2])
    X, y = draw(0, NAMES[1:2])
    new = draw(1)[0]
    binary = blend(TaskPrior.from_tasks(tasks), on_missing_class="prior").fit(X, y)
    prior = MulticlassPrior.from_tasks(tasks, strategy=strategy)
    many = MulticlassBlend(blend(prior, on_missing_class="prior"), strategy).fit(X, y)
    np.testing.assert_array_equal(many.predict_proba(new), binary.predict_proba(new))


# -- many classes ---------------------------------------------------------------------------


@pytest.mark.parametrize("with_prior", [False, True])
def test_probabilities_sum_to_one_and_decide(draw, draw_tasks, blend, strategy, with_prior):
    prior = MulticlassPrior.from_tasks(draw_tasks(), strategy=strategy) if with_prior else None
    X, y = draw(0, n_each=30)
    many = MulticlassBlend(blend(prior), strategy).fit(X, y)
    chances = many.predict_proba(X)
    assert chances.shape == (90, 3)
    assert chances.min() >= 0.0
    np.testing.assert_allclose(chances.sum(1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(many.predict(X), many.classes_[chances.argmax(1)])
    assert (many.predict(X) == y).mean() > 0.7


def test_far_away_samples_have_finite_probabilities(draw, strategy):
    X, y = draw(0)
    many = MulticlassBlend(PosteriorBlendClassifier(), strategy).fit(X, y)
    rng = np.random.default_rng(3)
    for size in (1e3, 1e8, 1e100):
        chances = many.predict_proba(size * rng.normal(size=(50, 4)))
        np.testing.assert_allclose(chances.sum(1), 1.0, rtol=1e-9)
        assert chances.min() >= 0.0


def test_ties_go_to_the_first_class():
    X = np.array([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]])
    X = np.concatenate([0.9 * X, 1.1 * X])
    many = MulticlassBlend(PosteriorBlendClassifier(shrinkage=1.0)).fit(X, list("abcabc"))
    np.testing.assert_allclose(many.predict_proba([[0.0, 0.0]]), 1.0 / 3.0, rtol=1e-9)
    # To the bit: a rule that sees no difference between any two classes.
    assert couple_pairs(np.zeros((1, 3)), 3).argmax(1) == 0


def test_the_covariance_is_that_of_all_classes(draw):
    X, y = draw(0, n_each=5)
    many = MulticlassBlend(PosteriorBlendClassifier(shrinkage=0.3)).fit(X, y)
    centred = np.concatenate([X[y == name] - X[y == name].mean(0) for name in NAMES])
    deviation = np.sqrt((centred**2).sum(0) / 12.0)
    pooled = (centred / deviation).T @ (centred / deviation) / 12.0
    shrunk = 0.7 * pooled + 0.3 * np.trace(pooled) / 4.0 * np.eye(4)
    for (first, second), rule in many.rules_.items():
        nu = (X[y == second].mean(0) - X[y == first].mean(0)) / (2.0 * deviation)
        omega = np.linalg.solve(shrunk, nu)
        np.testing.assert_allclose(rule.projection_, omega / np.linalg.norm(omega), rtol=1e-9)
        # Equation 5, with the degrees of freedom of all classes.
        noise = (0.1 + 0.7**2 / 12.0 * (nu @ omega)) / (omega @ omega)
        np.testing.assert_allclose(rule._fit.person.noise, noise, rtol=1e-9)
        assert rule._fit.person.dof == 12.0


@pytest.mark.parametrize("shrinkage", ["oas", 0.3, None])
@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.parametrize("n_features", [4, 14])
def test_all_pairs_at_once_are_each_pair_alone(
    make_many, blend, shrinkage, with_prior, n_features, monkeypatch
):
    prior = MulticlassPrior.from_tasks(make_many(6, n_features)) if with_prior else None
    [person] = make_many(1, n_features, (3, 5, 4), first=6, gap=0.5)
    X, y = person.X, person.y
    many = MulticlassBlend(blend(prior, shrinkage=shrinkage))
    together = clone(many).fit(X, y)
    monkeypatch.setattr(blend, "_batched", lambda self, crowd: False)
    alone = many.fit(X, y)
    np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), atol=1e-9)
    assert together.expected_accuracy_ == pytest.approx(alone.expected_accuracy_, abs=1e-9)
    assert together.expected_accuracy_error_ == pytest.approx(alone.expected_accuracy_error_)
    assert list(together.rules_) == list(alone.rules_)
    with pytest.raises(KeyError, match=r"There is no pair \('class 0', 'walk'\)"):
        _ = together.rules_["class 0", "walk"]
    for pair, rule in together.rules_.items():
        for name in ("coef_", "intercept_", "alpha_", "midpoint_", "expected_accuracy_"):
            same = getattr(alone.rules_[pair], name)
            np.testing.assert_allclose(getattr(rule, name), same, rtol=1e-7, atol=1e-9)


def test_weights_are_frequencies(draw, draw_tasks, strategy):
    X, y = draw(0, n_each=4)
    weight = np.tile([0, 1, 2, 3], 3)
    prior = MulticlassPrior.from_tasks(draw_tasks(), strategy=strategy)
    many = MulticlassBlend(PosteriorBlendClassifier(prior), strategy)
    weighted = clone(many).fit(X, y, sample_weight=weight).predict_proba(X)
    repeated = many.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).predict_proba(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9)


def test_one_sample_of_each_class(draw, draw_tasks, blend, strategy):
    prior = MulticlassPrior.from_tasks(draw_tasks(), strategy=strategy)
    many = MulticlassBlend(blend(prior), strategy).fit(*draw(0, n_each=1))
    X, y = draw(1, n_each=50)
    assert (many.predict(X) == y).mean() > 0.5


def test_ten_classes(make_many):
    *tasks, person = make_many(6, 12, (6,) * 10)
    prior = MulticlassPrior.from_tasks(tasks)
    assert len(prior.pairs) == 45
    many = MulticlassBlend(PosteriorBlendClassifier(prior)).fit(person.X[::2], person.y[::2])
    assert many.score(person.X[1::2], person.y[1::2]) > 0.9


def test_it_is_an_estimator_like_any_other(draw, draw_tasks):
    X, y = draw(0, n_each=20)
    frame = pd.DataFrame(X, columns=list("abcd"))
    tasks = [Task(pd.DataFrame(t.X, columns=list("abcd")), t.y) for t in draw_tasks()]
    many = MulticlassBlend(PosteriorBlendClassifier(MulticlassPrior.from_tasks(tasks)))
    assert many.get_params()["estimator__strength"] == "auto"
    assert clone(many).estimator.prior is many.estimator.prior
    many.set_params(estimator__strength=1.0, strategy="pairwise")
    assert cross_val_score(many, frame, y, cv=4).mean() > 0.6
    many.fit(frame, y)
    assert many.feature_names_in_.tolist() == list("abcd")
    piped = make_pipeline(StandardScaler(), MulticlassBlend(ConvexBlendClassifier()))
    assert piped.fit(X, y).score(X, y) > 0.6
    again = pickle.loads(pickle.dumps(many))
    np.testing.assert_array_equal(again.predict_proba(frame), many.predict_proba(frame))


def test_inputs_are_left_alone_and_a_refit_forgets(draw, draw_tasks):
    X, y = draw(0)
    kept = X.copy()
    X.flags.writeable = y.flags.writeable = False
    prior = MulticlassPrior.from_tasks(draw_tasks())
    many = MulticlassBlend(PosteriorBlendClassifier(prior)).fit(*draw(7)).fit(X, y)
    np.testing.assert_array_equal(X, kept)
    fresh = clone(many).fit(X, y)
    assert vars(many).keys() == vars(fresh).keys()
    np.testing.assert_array_equal(many.predict_proba(X), fresh.predict_proba(X))
    assert not hasattr(many.estimator, "coef_")


def test_a_refit_forgets_the_third_class(draw):
    many = MulticlassBlend(PosteriorBlendClassifier()).fit(*draw(0))
    X, y = draw(1, NAMES[:2])
    fresh = clone(many).fit(X, y)
    assert vars(many.fit(X, y)).keys() == vars(fresh).keys()
    assert many.classes_.tolist() == list(NAMES[:2])
    np.testing.assert_array_equal(many.predict_proba(X), fresh.predict_proba(X))


def test_there_is_a_forecast_for_pairs_and_none_against_the_rest(draw):
    X, y = draw(0)
    many = MulticlassBlend(PosteriorBlendClassifier()).fit(X, y)
    assert 0.4 < many.expected_accuracy_ < 1.0
    assert 0.0 < many.expected_accuracy_error_ < 0.5
    assert many.expected_accuracy_ == clone(many).fit(X, y).expected_accuracy_
    against = MulticlassBlend(PosteriorBlendClassifier(), "one-vs-rest").fit(X, y)
    with pytest.raises(AttributeError, match="Use strategy='pairwise'"):
        _ = against.expected_accuracy_


# -- classes that were not seen -------------------------------------------------------------


def test_missing_classes_are_placed_by_the_crowd():
    """Tasks without noise: wherever the target's seen class lies, the others are found."""
    means = {"rest": [0.0, 0.0], "speech": [4.0, 0.0], "walk": [1.0, 6.0]}
    ring = 0.1 * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    X = np.concatenate([ring + np.array(means[name]) for name in NAMES])
    y = np.repeat(NAMES, 4)
    prior = MulticlassPrior.from_tasks([Task(X + shift, y) for shift in (0.0, 3.0, -2.0)])
    away = np.array([20.0, -7.0])
    for seen in (("rest",), ("speech",), ("walk",), ("rest", "walk"), ("speech", "walk")):
        mine = np.isin(y, seen)
        many = MulticlassBlend(PosteriorBlendClassifier(prior, on_missing_class="prior"))
        many.fit(X[mine] + away, y[mine])
        assert many.classes_.tolist() == list(NAMES)
        for (first, second), rule in many.rules_.items():
            middle = (np.array(means[first]) + means[second]) / 2.0 + away
            np.testing.assert_allclose(rule.midpoint_, middle, atol=1e-9)
        np.testing.assert_array_equal(many.predict(X + away), y)
        assert many.expected_accuracy_ > 0.9


def test_a_missing_class_comes_from_the_crowd_unless_that_is_refused(draw, draw_tasks):
    prior = MulticlassPrior.from_tasks(draw_tasks())
    X, y = draw(0, NAMES[:2])
    with pytest.raises(ValueError, match=r"Class 'walk' .* pass on_missing_class='prior'"):
        MulticlassBlend(PosteriorBlendClassifier(prior, on_missing_class="error")).fit(X, y)
    found, asked = (
        MulticlassBlend(PosteriorBlendClassifier(prior, on_missing_class=word)).fit(X, y)
        for word in ("auto", "prior")
    )
    np.testing.assert_array_equal(found.predict_proba(X), asked.predict_proba(X))


def test_a_missing_class_needs_pairs(draw, draw_tasks):
    prior = MulticlassPrior.from_tasks(draw_tasks(), strategy="one-vs-rest")
    many = MulticlassBlend(PosteriorBlendClassifier(prior, on_missing_class="prior"), "one-vs-rest")
    with pytest.raises(ValueError, match=r"'walk' has no labelled sample.*'pairwise'"):
        many.fit(*draw(0, NAMES[:2]))


def test_a_missing_class_needs_half_gaps(draw, draw_tasks):
    prior = MulticlassPrior.from_tasks(draw_tasks())
    bare = {pair: one.update(one.mean_direction[None, :]) for pair, one in prior.priors.items()}
    prior = MulticlassPrior("pairwise", NAMES, bare)
    many = MulticlassBlend(PosteriorBlendClassifier(prior, on_missing_class="prior"))
    with pytest.raises(ValueError, match="no average half gap"):
        many.fit(*draw(0, NAMES[:2]))


# -- the prior ------------------------------------------------------------------------------


def test_pairs_share_their_units_and_are_those_of_task_priors(draw_tasks):
    tasks = draw_tasks()
    prior = MulticlassPrior.from_tasks(tasks)
    assert prior.pairs == (("rest", "speech"), ("rest", "walk"), ("speech", "walk"))
    assert repr(prior) == "MulticlassPrior('pairwise', n_classes=3, n_pairs=3, n_features=4)"
    centred = [
        np.concatenate([t.X[t.y == name] - t.X[t.y == name].mean(0) for name in NAMES])
        for t in tasks
    ]
    deviations = [np.sqrt((rows**2).sum(0) / (24 - 3)) for rows in centred]
    np.testing.assert_allclose(prior.feature_scale, np.median(deviations, axis=0), rtol=1e-12)
    for pair in prior.pairs:
        some = [Task(t.X[np.isin(t.y, pair)], t.y[np.isin(t.y, pair)]) for t in tasks]
        expected = TaskPrior.from_tasks(some, feature_scale=prior.feature_scale, class_means=False)
        expected = dataclasses.replace(expected, scale_learnt=True)
        # Before the first label only class means know the middle, which pairs do not have.
        assert prior[pair] == expected


def test_options_reach_every_pair(draw_tasks):
    scale = np.array([1.0, 2.0, 3.0, 4.0])
    prior = MulticlassPrior.from_tasks(
        draw_tasks(), feature_scale=scale, isotropic=True, keep_directions=True
    )
    for pair in prior.pairs:
        assert prior[pair].isotropic
        assert prior[pair].directions.shape == (6, 4)
        np.testing.assert_array_equal(prior[pair].feature_scale, scale)
        assert not prior[pair].scale_learnt


def test_tasks_that_lack_a_class_do_not_contribute_to_its_pairs(draw_tasks):
    tasks = draw_tasks(4) + draw_tasks(3, NAMES[:2], first=200)
    prior = MulticlassPrior.from_tasks(tasks)
    assert [prior[pair].n_tasks for pair in prior.pairs] == [7, 4, 4]
    with pytest.raises(ValueError, match=r"no sample of class 'walk'.*strategy='pairwise'"):
        MulticlassPrior.from_tasks(tasks, strategy="one-vs-rest")


def test_merging_is_adding_and_fills_in_pairs(draw_tasks):
    scale = np.ones(4)
    sites = [
        MulticlassPrior.from_tasks(draw_tasks(3, classes, first), feature_scale=scale)
        for first, classes in ((0, NAMES[:2]), (50, NAMES[1:]), (70, ("rest", "walk")))
    ]
    merged = sites[0] + sites[1] + sites[2]
    assert merged.classes == NAMES
    assert len(merged.pairs) == 3
    with pytest.raises(ValueError, match="count twice"):
        _ = merged + merged
    more = MulticlassPrior.from_tasks(draw_tasks(3, ("rest", "walk"), 90), feature_scale=scale)
    longer = merged + more
    assert longer["rest", "walk"].n_tasks == 6
    np.testing.assert_array_equal(
        longer["rest", "walk"].direction_sum,
        sites[2]["rest", "walk"].direction_sum + more["rest", "walk"].direction_sum,
    )


def test_many_classes_are_not_released_at_once(draw_tasks, tmp_path):
    prior = MulticlassPrior.from_tasks(draw_tasks(), feature_scale=np.ones(4))
    with pytest.raises(TypeError, match=r"A MulticlassPrior cannot be released.*prior\[pair\]"):
        prior.released(1.0, 1e-5)
    pytest.importorskip("opendp")
    for pair in prior.pairs:
        prior[pair].released(1.0, 1e-5, ledger=tmp_path / "all.json")
    # Three pairs of the same people.
    assert Ledger(tmp_path / "all.json").spent(1e-5) == pytest.approx(1.835, abs=0.001)


def test_it_never_changes_and_copies_itself(draw_tasks, strategy):
    prior = MulticlassPrior.from_tasks(draw_tasks(), strategy=strategy)
    with pytest.raises(AttributeError):
        prior.classes = ("a", "b")
    with pytest.raises(TypeError):
        prior.priors[prior.pairs[0]] = None
    assert copy.deepcopy(prior) is prior
    again = pickle.loads(pickle.dumps(prior))
    assert again == prior
    assert hash(again) == hash(prior)
    assert prior != MulticlassPrior.from_tasks(draw_tasks(5), strategy=strategy)
    assert prior != "prior"


@pytest.mark.parametrize("names", [NAMES, (1, 2, 3)])
def test_file_and_back(draw_tasks, tmp_path, strategy, names):
    tasks = [Task(t.X, np.array(names)[np.searchsorted(NAMES, t.y)]) for t in draw_tasks()]
    prior = MulticlassPrior.from_tasks(tasks, strategy=strategy)
    prior.save(tmp_path / "prior.npz")
    again = MulticlassPrior.load(tmp_path / "prior.npz")
    assert again == prior
    assert [type(name) for name in again.classes] == [type(name) for name in prior.classes]
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "prior.npz").read_bytes()


# -- refusals -------------------------------------------------------------------------------


def test_a_pair_that_no_source_has(draw, draw_tasks):
    tasks = draw_tasks(3, NAMES[:2]) + draw_tasks(3, NAMES[1:])
    prior = MulticlassPrior.from_tasks(tasks)
    with pytest.raises(KeyError, match=r"No source has the pair \('rest', 'walk'\)"):
        _ = prior["rest", "walk"]
    with pytest.raises(ValueError, match=r"No source has the pair of classes \('rest', 'walk'\)"):
        MulticlassBlend(PosteriorBlendClassifier(prior)).fit(*draw(0))


def test_tasks_of_one_class_and_none(draw_tasks):
    with pytest.raises(ValueError, match="has one class only, 'walk'"):
        MulticlassPrior.from_tasks([*draw_tasks(2), *draw_tasks(1, ("walk",))])
    with pytest.raises(ValueError, match="at least one task"):
        MulticlassPrior.from_tasks([])


def test_labels_of_two_kinds(draw, draw_tasks):
    other = Task(*draw(0)[:1], np.repeat([0, 1, 2], 8))
    with pytest.raises(ValueError, match="Some labels are text and others are not"):
        MulticlassPrior.from_tasks([*draw_tasks(2), other])


def test_strategy_misspelt(draw, draw_tasks):
    with pytest.raises(ValueError, match=r"'pairwise', 'one-vs-rest'; got 'pair-wise'"):
        MulticlassPrior.from_tasks(draw_tasks(), strategy="pair-wise")
    with pytest.raises(ValueError, match="got 'ovr'"):
        MulticlassBlend(PosteriorBlendClassifier(), "ovr").fit(*draw(0))


def test_strategies_that_differ(draw, draw_tasks):
    prior = MulticlassPrior.from_tasks(draw_tasks())
    with pytest.raises(ValueError, match=r"built with strategy='pairwise', but here it is 'one"):
        MulticlassBlend(PosteriorBlendClassifier(prior), "one-vs-rest").fit(*draw(0))
    with pytest.raises(ValueError, match="different strategies"):
        _ = prior + MulticlassPrior.from_tasks(draw_tasks(), strategy="one-vs-rest")


def test_a_prior_for_other_classes_or_features(draw, draw_tasks):
    prior = MulticlassPrior.from_tasks(draw_tasks())
    many = MulticlassBlend(PosteriorBlendClassifier(prior))
    X, y = draw(0)
    with pytest.raises(PriorMismatchError, match="The samples have class 'sit'"):
        many.fit(X, np.where(y == "walk", "sit", y))
    with pytest.raises(PriorMismatchError, match="X has 3 features, but the prior has 4"):
        many.fit(X[:, :3], y)
    named = [Task(t.X, t.y, feature_names=list("abcd")) for t in draw_tasks()]
    many = MulticlassBlend(PosteriorBlendClassifier(MulticlassPrior.from_tasks(named)))
    with pytest.raises(PriorMismatchError, match="'b' stands where the prior has 'a'"):
        many.fit(pd.DataFrame(X, columns=list("bacd")), y)


def test_a_binary_blend_is_told_where_to_go(draw, draw_tasks, blend):
    prior = MulticlassPrior.from_tasks(draw_tasks())
    with pytest.raises(TypeError, match=r"Use MulticlassBlend\(.*BlendClassifier\(prior\)\)"):
        blend(prior).fit(*draw(0, NAMES[:2]))


def test_an_estimator_that_is_no_blend(draw):
    with pytest.raises(TypeError, match="got LogisticRegression"):
        MulticlassBlend(LogisticRegression()).fit(*draw(0))


def test_a_prior_of_one_pair_for_many_classes(draw, draw_tasks):
    prior = TaskPrior.from_tasks(draw_tasks(classes=NAMES[:2]))
    with pytest.raises(TypeError, match="must be a MulticlassPrior or None for 3 classes"):
        MulticlassBlend(PosteriorBlendClassifier(prior)).fit(*draw(0))


@pytest.mark.parametrize("option", [{"classes": ("rest", "walk")}, {"class_prior": (0.2, 0.8)}])
def test_what_belongs_to_two_classes_is_refused_for_three(draw, option):
    many = MulticlassBlend(PosteriorBlendClassifier(**option))
    with pytest.raises(ValueError, match=f"Pass {next(iter(option))}=None"):
        many.fit(*draw(0))
    X, y = draw(0, ("rest", "walk"))
    binary = PosteriorBlendClassifier(**option).fit(X, y)
    np.testing.assert_array_equal(many.fit(X, y).predict_proba(X), binary.predict_proba(X))
    np.testing.assert_array_equal(many.predict(X), binary.predict(X))


def test_a_prior_that_is_none(draw):
    with pytest.raises(TypeError, match="got str"):
        MulticlassBlend(PosteriorBlendClassifier("prior.npz")).fit(*draw(0, NAMES[:2]))
    with pytest.raises(TypeError, match="got str"):
        MulticlassBlend(PosteriorBlendClassifier("prior.npz")).fit(*draw(0))


def test_no_sample_counts(draw, draw_tasks):
    X, y = draw(0)
    prior = MulticlassPrior.from_tasks(draw_tasks())
    for estimator in (PosteriorBlendClassifier(), PosteriorBlendClassifier(prior)):
        with pytest.raises(ValueError, match="No sample counts"):
            MulticlassBlend(estimator).fit(X, y, sample_weight=np.zeros(len(y)))


def test_priors_that_do_not_fit_together(draw_tasks):
    prior = MulticlassPrior.from_tasks(draw_tasks())
    one = dict(prior.priors)
    with pytest.raises(ValueError, match=r"pairs of the classes .* got \[\('walk', 'rest'\)\]"):
        MulticlassPrior("pairwise", NAMES, {("walk", "rest"): one["rest", "walk"]})
    with pytest.raises(ValueError, match="got none"):
        MulticlassPrior("pairwise", NAMES, {})
    raw = MulticlassPrior.from_tasks(draw_tasks(classes=NAMES[1:]), feature_scale=None)
    with pytest.raises(ValueError, match="another feature scale"):
        MulticlassPrior("pairwise", NAMES, one | {NAMES[1:]: raw[NAMES[1:]]})
    with pytest.raises(ValueError, match="different feature scales"):
        _ = prior + raw
    named = [Task(t.X, t.y, feature_names=list("abcd")) for t in draw_tasks(classes=NAMES[1:])]
    other = MulticlassPrior.from_tasks(named, feature_scale=prior.feature_scale)
    with pytest.raises(ValueError, match="other features"):
        MulticlassPrior("pairwise", NAMES, one | {NAMES[1:]: other[NAMES[1:]]})
    against = MulticlassPrior.from_tasks(draw_tasks(), strategy="one-vs-rest")
    fewer = MulticlassPrior.from_tasks(draw_tasks(classes=NAMES[1:]), strategy="one-vs-rest")
    with pytest.raises(ValueError, match="their rests differ"):
        _ = against + fewer
    with pytest.raises(TypeError):
        _ = prior + prior["rest", "walk"]


def test_files_that_are_something_else(draw_tasks, tmp_path):
    path = tmp_path / "prior.npz"
    prior = MulticlassPrior.from_tasks(draw_tasks())
    prior["rest", "walk"].save(path)
    with pytest.raises(ValueError, match="its kind is not 'MulticlassPrior'"):
        MulticlassPrior.load(path)
    path.write_text("nothing")
    with pytest.raises(ValueError, match="is not a prior file"):
        MulticlassPrior.load(path)
    prior.save(path)
    with pytest.raises(ValueError, match="its kind is not 'TaskPrior'"):
        TaskPrior.load(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays["priors.0.outer_sum"] = arrays["priors.1.outer_sum"]
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="was altered after it was saved"):
        MulticlassPrior.load(path)


@pytest.mark.parametrize("name", ["start", "partial_fit"])
def test_what_it_cannot_do_is_said(draw_tasks, name):
    blend = MulticlassBlend(PosteriorBlendClassifier(MulticlassPrior.from_tasks(draw_tasks())))
    assert not hasattr(blend, name)
    with pytest.raises(AttributeError, match=rf"no {name}: .*HierarchicalBlendClassifier"):
        getattr(blend, name)


def test_three_classes_are_told_of_the_prior_for_many(draw):
    with pytest.raises(ValueError, match=r"found 3 classes.*use MulticlassPrior\.from_tasks"):
        PosteriorBlendClassifier().fit(*draw(0))

"""The blends: their ends, their agreement with the plain formulas, and what they refuse."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
    choose_alpha,
)
from crossfade.blend import fit_rule
from crossfade.exceptions import (
    CancellingSourcesWarning,
    ContradictionWarning,
    NoDirectionError,
    PriorMismatchError,
)
from crossfade.fisher import ClassMoments
from crossfade.prior import Crowd, Law

BLENDS = {
    "convex": ConvexBlendClassifier,
    "paper": lambda prior=None, **options: ConvexBlendClassifier.paper(
        prior, random_state=0
    ).set_params(**options),
    "posterior": PosteriorBlendClassifier,
    "risk": lambda prior=None, **options: PosteriorBlendClassifier(
        prior, strength="risk", **options
    ),
}
LEARNT = (
    *("coef_", "intercept_", "projection_", "midpoint_", "alpha_"),
    *("expected_accuracy_", "expected_accuracy_error_"),
)


@pytest.fixture(params=BLENDS)
def blend(request):
    return BLENDS[request.param]


@pytest.fixture(scope="module")
def crowd():
    """A prior with class means of nine people around one direction, not rehearsed."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    tasks = []
    for _ in range(9):
        gap = np.array([1.5, 0.5, 0.0, 0.0]) + 0.4 * rng.normal(size=4)
        X = 10.0 + rng.normal(size=(40, 4)) + np.where(y, 1.0, -1.0)[:, None] * gap
        tasks.append((X, y))
    return TaskPrior.from_tasks([Task(X, y) for X, y in tasks], rehearse=False)


def same(one, other, **tolerance):
    for name in LEARNT:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), **tolerance)


def equal(one, other):
    """Equal but for the rounding of sums that were taken in another order."""
    same(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("n_features", "n_each"), [(4, (8, 6)), (30, (5, 4))])
def test_without_a_prior_it_is_shrinkage_fisher(make_target, blend, n_features, n_each):
    X, y = make_target(n_features, n_each)
    clf, plain = blend().fit(X, y), FisherDiscriminant().fit(X, y)
    np.testing.assert_allclose(clf.projection_, plain.projection_)
    np.testing.assert_allclose(clf.coef_, plain.coef_)
    np.testing.assert_allclose(clf.intercept_, plain.intercept_)
    assert clf.alpha_ == 1.0
    assert clf.prior_ is None


@pytest.mark.parametrize("isotropic", [False, True])
@pytest.mark.parametrize("n_features", [4, 25])
def test_convex_at_both_ends_and_between(make_target, make_prior, isotropic, n_features):
    X, y = make_target(n_features)
    prior = make_prior(n_features=n_features, isotropic=isotropic)
    theirs, half, own = (ConvexBlendClassifier(prior, alpha=a).fit(X, y) for a in (0.0, 0.5, 1.0))
    plain = FisherDiscriminant(feature_scale=prior.feature_scale).fit(X, y)
    np.testing.assert_allclose(theirs.projection_, prior.mean_direction)
    np.testing.assert_allclose(own.projection_, plain.projection_)
    middle = plain.projection_ + prior.mean_direction
    np.testing.assert_allclose(half.projection_, middle / np.linalg.norm(middle))
    assert (theirs.alpha_, half.alpha_, own.alpha_) == (0.0, 0.5, 1.0)


@pytest.mark.parametrize("strength", ["auto", "risk", 0.0, 1.0, 30.0])
@pytest.mark.parametrize("n_each", [(20, 20), (4, 4), (4, 3)])
@pytest.mark.parametrize("away", [0.0, 5.0])
def test_isotropic_blend_is_the_full_one_with_that_scatter(make_target, strength, n_each, away):
    d, n_tasks = 9, 20
    X, y = make_target(d, n_each, gap=away)
    mean = 0.8 * np.eye(d)[2]
    isotropic = Crowd.from_sums(n_tasks, n_tasks * mean, None)
    # Directions whose covariance is the same multiple of the identity, to which OAS adds nothing.
    variance = (1.0 - mean @ mean) / d
    outer = n_tasks * (np.outer(mean, mean) + variance * np.eye(d))
    full = Crowd.from_sums(n_tasks, n_tasks * mean, outer)
    one, other = (
        fit_rule(ClassMoments.of(X, y), Law(2, np.ones(d), law), "posterior", strength=strength)
        for law in (isotropic, full)
    )
    np.testing.assert_allclose(one.coef, other.coef, atol=1e-7)
    assert one.alpha == pytest.approx(other.alpha, abs=1e-7)
    assert one.details["strength"] == pytest.approx(other.details["strength"])


def test_strength_grows_only_for_a_target_that_is_far_from_the_crowd(make_prior):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    prior = make_prior(40, 4)
    near = rng.standard_normal((400, 4)) + np.where(y, 1.0, -1.0)[:, None] * prior.mean_direction
    assert PosteriorBlendClassifier(prior).fit(near, y).strength_ == 1.0
    far = PosteriorBlendClassifier(prior).fit(-near, y)
    assert far.strength_ > 1.0
    for clf in (far, PosteriorBlendClassifier(prior, strength="risk").fit(-near, y)):
        assert clf.score(-near, y) > 0.8


KINDS = {
    "fisher": {},
    "convex": {},
    "convex, given": {"alpha": 0.3},
    "posterior": {},
    "posterior, risk": {"strength": "risk"},
    "posterior, given": {"strength": 3.0},
    "hierarchical": {},
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("n_each", [(9, 6), (1, 1), (3, 0), (0, 0)])
def test_a_batch_of_people_is_its_members(crowd, name, n_each):
    kind, options = name.partition(",")[0], KINDS[name]
    if kind == "fisher" and not all(n_each):
        pytest.skip("a person alone needs both classes")
    rng = np.random.default_rng(1)
    label, unlabelled = np.repeat([0, 1], n_each), 10.0 + rng.normal(size=(5, 7, 4))
    X = 10.0 + rng.normal(size=(5, label.size, 4)) + label[:, None] * [2.0, 1.0, 0.0, 0.0]
    # The last contradicts the crowd.
    X[-1] = 20.0 - X[-1]
    for more in ({}, {"unlabelled": unlabelled, "class_prior": 0.3}):
        together = fit_rule(moments_of(X, label), crowd.law, kind, **more, **options)
        assert together.coef.shape == (5, 1, 4)
        for place, rows in enumerate(X):
            if more:
                more = more | {"unlabelled": unlabelled[place]}
            alone = fit_rule(moments_of(rows, label), crowd.law, kind, **more, **options)
            np.testing.assert_allclose(together.coef[place], alone.coef, atol=1e-7)
            np.testing.assert_allclose(together.intercept[place], alone.intercept, atol=1e-6)
            np.testing.assert_allclose(
                together.predict_proba(unlabelled[0])[place],
                alone.predict_proba(unlabelled[0]),
                atol=1e-6,
            )


def moments_of(X, label):
    """Moments of two classes; none of no window."""
    if label.size:
        return ClassMoments.of(X, label)
    *batch, _, d = X.shape
    nothing = np.zeros((*batch, 2, d)), np.zeros((*batch, d, d))
    return ClassMoments(np.zeros(2), *nothing, False, np.zeros((*batch, d)))


@pytest.mark.parametrize("class_prior", [None, (0.8, 0.2)])
@pytest.mark.parametrize("n_features", [4, 25])
def test_convex_chooses_what_choose_alpha_does(make_target, make_prior, n_features, class_prior):
    X, y = make_target(n_features, gap=0.5)
    prior = make_prior(n_features=n_features)
    clf = ConvexBlendClassifier(prior, class_prior=class_prior).fit(X, y)
    plain = FisherDiscriminant(feature_scale=prior.feature_scale).fit(X, y)
    choice = choose_alpha(
        prior,
        half_gap=plain.half_gap_,
        covariance=plain.covariance_,
        n_samples=(8, 8),
        shrinkage=plain.shrinkage_,
        class_prior=class_prior,
    )
    assert clf.alpha_ == pytest.approx(choice.alpha, abs=1e-4)
    np.testing.assert_allclose(clf.risks_, choice.risks, atol=1e-6)


def test_partial_fit_goes_on_after_fit_and_follows_a_new_prior(make_target, make_prior, blend):
    X, y = make_target()
    order = np.random.default_rng(1).permutation(len(y))
    X, y = X[order], y[order]
    clf = blend(make_prior()).fit(X[:8], y[:8]).partial_fit(X[8:12], y[8:12])
    new = make_prior(seed=2)
    clf.set_params(prior=new).partial_fit(X[12:], y[12:])
    assert clf.prior_ is new
    equal(clf, blend(new).fit(X, y))


def test_partial_fit_waits_for_the_second_class(make_target, make_prior, blend):
    X, y = make_target()
    for clf, classes in (
        (blend(), [0, 1]),
        (blend(make_prior(classes=(0, 1))), None),
        (blend(make_prior(), classes=(0, 1)), None),
    ):
        clf.partial_fit(X[:3], y[:3], classes=classes)
        np.testing.assert_array_equal(clf.classes_, [0, 1])
        with pytest.raises(ValueError, match="fitted"):
            clf.predict(X)
        clf.partial_fit(X[3:5], y[3:5]).partial_fit(X[5:], y[5:])
        equal(clf, blend(clf.prior, classes=clf.classes).fit(X, y))


def test_refit_forgets(make_target, make_prior, blend):
    others, labels = make_target(4, seed=1)
    X, y = make_target(6, seed=2)
    names = np.array(["off", "on"])[y]
    fresh = blend().fit(X, names)
    used = blend(make_prior(classes=(0, 1))).fit(others, labels)
    streamed = blend().partial_fit(others[:2], labels[:2], classes=[0, 1])
    for again in (used.set_params(prior=None), streamed):
        same(again.fit(X, names), fresh)
        assert vars(again).keys() == vars(fresh).keys()
        np.testing.assert_array_equal(again.predict(X), fresh.predict(X))


def test_prior_sets_the_units(make_target, crowd, blend):
    X, y = make_target()
    clf = blend(crowd).fit(X, y)
    np.testing.assert_allclose(clf.coef_[0] * crowd.feature_scale, clf.projection_)
    expected = (X - clf.midpoint_) / crowd.feature_scale @ clf.projection_
    np.testing.assert_allclose(clf.decision_function(X), expected, atol=1e-12)
    np.testing.assert_allclose(clf.midpoint_, (X[y == 0].mean(0) + X[y == 1].mean(0)) / 2)
    assert np.linalg.norm(clf.projection_) == pytest.approx(1.0)


def test_forecast_of_well_known_classes_is_their_accuracy(make_prior):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 5000)
    X = rng.standard_normal((10_000, 4))
    X[:, 0] += 2.0 * y
    for clf in (ConvexBlendClassifier(make_prior()), PosteriorBlendClassifier(make_prior())):
        clf.fit(X, y)
        assert clf.expected_accuracy_ == pytest.approx(0.8413, abs=0.01)
        assert clf.expected_accuracy_error_ < 0.01
        assert clf.score(X, y) == pytest.approx(clf.expected_accuracy_, abs=0.01)
        assert clf.predict_proba(X).max(1).mean() == pytest.approx(0.8413, abs=0.015)


def test_labels_that_mean_the_opposite_are_told_of(crowd):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 3)
    X = 10.0 + rng.normal(size=(6, 4)) - np.where(y, 1.0, -1.0)[:, None] * [1.5, 0.5, 0.0, 0.0]
    with pytest.warns(ContradictionWarning) as caught:
        clf = ConvexBlendClassifier(crowd, alpha=0.0).fit(X, y)
    assert caught[0].filename == __file__
    assert clf.expected_accuracy_ < 0.5


def test_one_sample_per_class_takes_the_priors_covariance(crowd):
    X = np.array([[9.0, 10.0, 11.0, 10.0], [12.0, 10.0, 10.0, 10.5]])
    nu = (X[1] - X[0]) / 2 / crowd.feature_scale
    own = np.linalg.solve(crowd.law.within.dense(), nu)
    clf = ConvexBlendClassifier(crowd, alpha=1.0).fit(X, [0, 1])
    np.testing.assert_allclose(clf.projection_, own / np.linalg.norm(own))


@pytest.mark.parametrize("isotropic", [False, True])
@pytest.mark.filterwarnings("ignore::crossfade.exceptions.ContradictionWarning")
def test_ill_posed_features(make_target, make_prior, blend, isotropic):
    X, y = make_target(3, (20, 20))
    shares = np.exp(X / 10.0)
    shares /= shares.sum(1, keepdims=True)
    ill = np.column_stack([shares, np.full(len(y), 0.1), X[:, 0], X[:, 0]])
    for n in (40, 10, 5):
        some = np.r_[: n // 2, 40 - (n - n // 2) : 40]
        clf = blend(make_prior(n_features=6, isotropic=isotropic)).fit(ill[some], y[some])
        assert np.isfinite(clf.coef_).all()
        assert 0.0 <= clf.expected_accuracy_ <= 1.0
        assert 0.0 <= clf.alpha_ <= 1.0
        # Twins are told apart by the crowd only, which has them in the same order.
        assert clf.score(ill, y) > 0.4


def test_classes_that_do_not_differ_leave_the_crowd(make_target, make_prior, blend):
    X, _ = make_target()
    twice, y = np.vstack([X, X]), np.repeat([0, 1], len(X))
    clf = blend(make_prior()).fit(twice, y)
    np.testing.assert_allclose(clf.projection_, make_prior().mean_direction)
    assert clf.alpha_ == 0.0
    assert clf.expected_accuracy_ == 0.5
    assert np.abs(clf.predict_proba(twice) - 0.5).max() < 1e-6
    with pytest.raises(NoDirectionError):
        blend().fit(twice, y)


def test_cancelling_sources(make_target):
    X, y = make_target()
    axes = np.vstack([np.eye(4), -np.eye(4)])
    for W in (axes, np.vstack([axes, [[0.6, 0.8, 0.0, 0.0]]])):
        prior = TaskPrior.from_projections(W)
        with pytest.warns(CancellingSourcesWarning) as caught:
            clf = ConvexBlendClassifier(prior).fit(X, y)
        assert caught[0].filename == __file__
        assert clf.alpha_ == 1.0
        for strength in ("auto", "risk", 1.0):
            assert PosteriorBlendClassifier(prior, strength=strength).fit(X, y).score(X, y) > 0.8
    opposite = TaskPrior.from_projections([[-1.0]])
    with pytest.raises(NoDirectionError):
        ConvexBlendClassifier(opposite, alpha=0.5).fit(*make_target(1))


@pytest.mark.parametrize("d", [1, 3, 10])
@pytest.mark.parametrize("n_tasks", [2, 100])
@pytest.mark.filterwarnings("ignore::crossfade.exceptions.ContradictionWarning")
def test_sources_that_are_all_wrong_alike_do_not_drown_the_target(d, n_tasks):
    rng = np.random.default_rng(5)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, d))
    X[:, 0] += 2.0 * y - 1.0
    against = np.zeros((n_tasks, d))
    against[:, 0] = -1.0
    clf = PosteriorBlendClassifier(TaskPrior.from_projections(against)).fit(X, y)
    assert clf.score(X, y) > PosteriorBlendClassifier().fit(X, y).score(X, y) - 0.03
    assert clf.strength_ > 1.0


@pytest.mark.parametrize("label", [0, 1])
def test_the_crowd_answers_while_a_class_is_missing(make_target, crowd, blend, label):
    X, y = make_target()
    seen = X[y == label][:3]
    clf = blend(crowd).partial_fit(seen, np.full(3, label))
    np.testing.assert_allclose(clf.projection_, crowd.mean_direction)
    np.testing.assert_array_equal(clf.classes_, [0, 1])
    assert clf.alpha_ == 0.0
    assert clf.predict(seen.mean(0)[None])[0] == label
    rest = np.r_[np.flatnonzero(y == label)[3:], np.flatnonzero(y != label)]
    clf.partial_fit(X[rest], y[rest])
    equal(clf, blend(crowd).fit(X, y))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", [*BLENDS, "hierarchical"])
def test_classes_in_the_other_order(make_target, crowd, kind, missing):
    blend = (BLENDS | {"hierarchical": HierarchicalBlendClassifier})[kind]
    X, y = make_target()
    prior = replace(crowd, space=replace(crowd.space, classes=("rest", "task")))
    keep = y == 1 if missing else slice(None)
    # The same people: once called as the prior calls them, once with names that sort otherwise.
    one = blend(prior, class_prior=(0.3, 0.7))
    one.fit(X[keep], np.array(["rest", "task"])[y][keep])
    turned = blend(prior, classes=("z", "a"), class_prior=(0.7, 0.3))
    turned.fit(X[keep], np.array(["z", "a"])[y][keep])
    np.testing.assert_array_equal(turned.classes_, ["a", "z"])
    np.testing.assert_allclose(turned.projection_, -one.projection_, atol=1e-12)
    np.testing.assert_allclose(turned.means_, one.means_[::-1])
    assert turned.alpha_ == pytest.approx(one.alpha_)
    assert turned.expected_accuracy_ == pytest.approx(one.expected_accuracy_)
    np.testing.assert_array_equal(turned.predict(X) == "a", one.predict(X) == "task")
    np.testing.assert_allclose(turned.predict_proba(X), one.predict_proba(X)[:, ::-1], atol=1e-9)


X4, Y4 = np.random.default_rng(0).normal(size=(16, 4)), np.repeat([0, 1], 8)
REFUSED = {
    "NaN": (lambda clf: clf.fit(X4 * np.nan, Y4), ValueError, "NaN"),
    "three classes": (lambda clf: clf.fit(X4, np.arange(16) % 3), ValueError, "class"),
    "weights below two": (
        lambda clf: clf.fit(X4, Y4, sample_weight=np.full(16, 0.01)),
        ValueError,
        "weights",
    ),
    "too large": (lambda clf: clf.fit(X4 * 1e200, Y4), ValueError, "Rescale"),
    "not fitted": (lambda clf: clf.predict(X4), ValueError, "fitted"),
    "other features": (lambda clf: clf.fit(X4[:, :3], Y4), PriorMismatchError, "features"),
    "other names": (
        lambda clf: clf.fit(pd.DataFrame(X4, columns=list("abdc")), Y4),
        PriorMismatchError,
        "Reorder",
    ),
    "other classes": (lambda clf: clf.fit(X4, Y4 + 5), PriorMismatchError, "classes"),
    "one class": (lambda clf: clf.fit(X4[:3], Y4[:3]), ValueError, "Label"),
    "no labels": (lambda clf: clf.start(), ValueError, "class means"),
    "unlabelled": (lambda clf: clf.partial_fit(X4, None), ValueError, "class means"),
    "missing labels": (lambda clf: clf.fit(X4, [None] * 16), ValueError, "missing"),
    "prior of rows": (lambda clf: clf.set_params(prior=X4).fit(X4, Y4), ValueError, "prior"),
    "missing_class": (
        lambda clf: clf.set_params(missing_class="auto").fit(X4, Y4),
        ValueError,
        "missing_class",
    ),
    "classes": (lambda clf: clf.set_params(classes=(1, 1)).fit(X4, Y4), ValueError, "classes"),
    "class_prior": (
        lambda clf: clf.set_params(class_prior=(0.5, 0.6)).fit(X4, Y4),
        ValueError,
        "class_prior",
    ),
    "class_prior of text": (
        lambda clf: clf.set_params(class_prior=list("ab")).fit(X4, Y4),
        ValueError,
        "class_prior",
    ),
    "no directions": (
        lambda clf: clf.set_params(prior=MEANS_ALONE).fit(X4, Y4),
        PriorMismatchError,
        "HierarchicalBlendClassifier",
    ),
    "Algorithm 1, exactly": (
        lambda clf: ConvexBlendClassifier.paper(clf.prior, recipe="exact"),
        ValueError,
        "recipe",
    ),
}

MEANS_ALONE = TaskPrior.from_tasks([Task(X4, Y4), Task(2.0 * X4, Y4)], rehearse=False).without(
    "directions"
)


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(make_prior, blend, case):
    call, kind, word = REFUSED[case]
    prior = make_prior(classes=(0, 1), feature_names=list("abcd"))
    with pytest.raises(kind, match=word):
        call(blend(prior))


@pytest.mark.parametrize("n_each", [(1, 1), (10, 10)])
@pytest.mark.parametrize("kind", ["fisher", "convex", "posterior", "risk"])
def test_nothing_of_the_size_of_a_covariance_is_made(make_prior, kind, n_each):
    rng = np.random.default_rng(0)
    d = 3000
    prior = make_prior(20, d, isotropic=True)
    y = np.repeat([0, 1], n_each)
    X = rng.normal(size=(y.size, d)) + y[:, None] * prior.mean_direction
    clf = FisherDiscriminant() if kind == "fisher" else BLENDS[kind](prior)
    tracemalloc.start()
    clf.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < d * d * 8 / 4


@pytest.mark.parametrize("strength", [1e7, 1e50, 1e300])
def test_a_huge_strength_leaves_the_person_alone(make_prior, make_target, strength):
    X, y = make_target(n_each=(2, 1))
    blend = PosteriorBlendClassifier(make_prior(), strength=strength).fit(X, y)
    alone = PosteriorBlendClassifier(make_prior(), strength=np.inf).fit(X, y)
    np.testing.assert_allclose(blend.projection_, alone.projection_, atol=1e-5)
    assert np.isfinite(blend.coef_).all()


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


def test_tasks_and_a_person_without_any_variance():
    """A variance that is only rounding counts as none."""
    rng = np.random.default_rng(0)
    tasks = []
    for _ in range(6):
        means = rng.standard_normal((2, 3)) + np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
        tasks.append(Task(np.repeat(means + 0.1, 5, axis=0), np.repeat([0, 1], 5)))
    rule = PosteriorBlendClassifier(TaskPrior.from_tasks(tasks[1:])).fit(tasks[0].X, tasks[0].y)
    assert np.isfinite(rule.coef_).all()

"""Both blends: their ends, their agreement with the plain formulas, and each refusal."""

import dataclasses
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    MulticlassBlend,
    MulticlassPrior,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
    choose_alpha,
)
from crossfade.blend import convex, posterior
from crossfade.exceptions import (
    CancellingSourcesWarning,
    NoDirectionError,
    PriorMismatchError,
)
from crossfade.fisher._direction import learn_direction
from crossfade.fisher._moments import ClassMoments
from crossfade.prior._crowd import Crowd
from crossfade.risk import (
    conditional_risk,
)

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
    "coef_",
    "intercept_",
    "projection_",
    "midpoint_",
    "alpha_",
    "expected_accuracy_",
    "expected_accuracy_error_",
)


@pytest.fixture(params=BLENDS)
def blend(request):
    return BLENDS[request.param]


def same(one, other, **tolerance):
    for name in LEARNT:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), **tolerance)


def identical(one, other):
    for name in LEARNT:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def equal(one, other):
    """Equal but for the rounding of sums that were taken in another order."""
    same(one, other, rtol=1e-10, atol=1e-10)


def person_of(X, y, shrinkage="oas"):
    return learn_direction(ClassMoments.of(X, y), shrinkage, np.ones(X.shape[-1]))


# -- both ends of the blend -----------------------------------------------------------------


@pytest.mark.parametrize(("n_features", "n_each"), [(4, (8, 6)), (30, (5, 4))])
def test_without_a_prior_it_is_shrinkage_fisher(make_target, blend, n_features, n_each):
    X, y = make_target(n_features, n_each)
    clf = blend().fit(X, y)
    plain = FisherDiscriminant(shrinkage=clf.shrinkage).fit(X, y)
    np.testing.assert_allclose(clf.projection_, plain.projection_)
    np.testing.assert_allclose(clf.target_projection_, plain.projection_)
    np.testing.assert_allclose(clf.coef_, plain.coef_)
    np.testing.assert_allclose(clf.intercept_, plain.intercept_)
    assert clf.alpha_ == 1.0
    assert clf.source_projection_ is None
    assert clf.prior_ is None


@pytest.mark.parametrize("isotropic", [False, True])
@pytest.mark.parametrize("n_features", [4, 25])
def test_convex_at_both_ends_and_between(make_target, make_prior, isotropic, n_features):
    X, y = make_target(n_features)
    prior = make_prior(n_features=n_features, isotropic=isotropic)
    crowd = ConvexBlendClassifier(prior, alpha=0.0).fit(X, y)
    own = ConvexBlendClassifier(prior, alpha=1.0).fit(X, y)
    half = ConvexBlendClassifier(prior, alpha=0.5).fit(X, y)
    np.testing.assert_allclose(crowd.projection_, prior.mean_direction)
    plain = FisherDiscriminant(feature_scale=prior.feature_scale).fit(X, y)
    np.testing.assert_allclose(own.projection_, plain.projection_)
    for clf in (crowd, own, half):
        np.testing.assert_allclose(clf.target_projection_, plain.projection_)
        np.testing.assert_allclose(clf.source_projection_, prior.mean_direction)
    middle = plain.projection_ + prior.mean_direction
    np.testing.assert_allclose(half.projection_, middle / np.linalg.norm(middle))
    assert (crowd.alpha_, half.alpha_, own.alpha_) == (0.0, 0.5, 1.0)


@pytest.mark.parametrize("isotropic", [False, True])
@pytest.mark.parametrize("n_features", [4, 25])
def test_posterior_at_both_ends(make_target, make_prior, isotropic, n_features):
    X, y = make_target(n_features)
    prior = make_prior(n_features=n_features, isotropic=isotropic)
    crowd = PosteriorBlendClassifier(prior, strength=0.0).fit(X, y)
    np.testing.assert_allclose(crowd.projection_, prior.mean_direction)
    assert (crowd.alpha_, crowd.strength_) == (0.0, 0.0)
    plain = FisherDiscriminant(feature_scale=prior.feature_scale).fit(X, y)
    for strength in (1e12, np.inf):
        own = PosteriorBlendClassifier(prior, strength=strength).fit(X, y)
        np.testing.assert_allclose(own.projection_, plain.projection_, atol=1e-6)
        assert own.alpha_ == pytest.approx(1.0, abs=1e-6)
        assert own.strength_ == strength
        assert own.expected_accuracy_ == pytest.approx(
            ConvexBlendClassifier(prior, alpha=1.0).fit(X, y).expected_accuracy_, abs=1e-6
        )


@pytest.mark.parametrize("isotropic", [False, True])
@pytest.mark.parametrize("shrinkage", ["oas", 0.2])
@pytest.mark.parametrize("n_each", [(8, 6), (2, 1)])
@pytest.mark.parametrize("strength", [1.0, 7.0])
def test_posterior_is_the_dense_formula(
    make_target, make_prior, isotropic, shrinkage, n_each, strength
):
    X, y = make_target(5, n_each)
    prior = make_prior(n_features=5, isotropic=isotropic)
    clf = PosteriorBlendClassifier(prior, strength=strength, shrinkage=shrinkage).fit(X, y)
    plain = FisherDiscriminant(shrinkage=shrinkage, feature_scale=prior.feature_scale).fit(X, y)
    inverse = np.linalg.inv(plain.covariance_)
    raw = inverse @ plain.half_gap_
    c = (1 / n_each[0] + 1 / n_each[1]) / 4
    learnt = (1 - plain.shrinkage_) ** 2 / (sum(n_each) - 2)
    noise = (c + learnt * plain.half_gap_ @ raw) * inverse / (raw @ raw)
    widened = strength * prior.scatter
    matrix = widened @ np.linalg.inv(widened + noise)
    omega = prior.mean + matrix @ (plain.projection_ - prior.mean)
    np.testing.assert_allclose(clf.projection_, omega / np.linalg.norm(omega), atol=1e-9)
    assert clf.alpha_ == pytest.approx(np.trace(matrix) / 5)
    assert clf.strength_ == strength


@pytest.mark.parametrize("strength", ["auto", "risk", 0.0, 1.0, 30.0])
@pytest.mark.parametrize("n_each", [(20, 20), (6, 6), (4, 4), (4, 3), (3, 3)])
@pytest.mark.parametrize("shrinkage", ["oas", None])
@pytest.mark.parametrize("away", [0.0, 5.0])
def test_isotropic_blend_is_the_full_one_with_that_scatter(
    make_target, strength, n_each, shrinkage, away
):
    d, n_tasks = 9, 20
    X, y = make_target(d, n_each, gap=away)
    person = person_of(X, y, shrinkage)
    mean = 0.8 * np.eye(d)[2]
    isotropic = Crowd.from_sums(n_tasks, n_tasks * mean, None)
    # Directions whose covariance is the same multiple of the identity, to which OAS adds nothing.
    variance = (1.0 - mean @ mean) / d
    outer = n_tasks * (np.outer(mean, mean) + variance * np.eye(d))
    full = Crowd.from_sums(n_tasks, n_tasks * mean, outer)
    np.testing.assert_allclose(full.dense_scatter, isotropic.dense_scatter, atol=1e-12)
    one, other = (posterior(person, crowd, strength) for crowd in (isotropic, full))
    np.testing.assert_allclose(one.omega, other.omega, atol=1e-7)
    assert one.dof == pytest.approx(other.dof, abs=1e-7)
    assert one.strength == pytest.approx(other.strength)


def test_strength_grows_only_for_a_target_that_is_far_from_the_crowd(make_prior):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    prior = make_prior(40, 4)
    noise = rng.standard_normal((400, 4))
    near = noise + np.where(y, 1.0, -1.0)[:, None] * prior.mean_direction
    assert PosteriorBlendClassifier(prior).fit(near, y).strength_ == 1.0
    far = PosteriorBlendClassifier(prior).fit(-near, y)
    assert far.strength_ > 1.0
    assert far.score(-near, y) > 0.8
    for clf in (PosteriorBlendClassifier(prior, strength="risk"), ConvexBlendClassifier(prior)):
        assert clf.fit(-near, y).score(-near, y) > 0.8


# -- batches --------------------------------------------------------------------------------


VERBS = {
    "convex": lambda person, crowd: convex(person, crowd),
    "convex, unequal classes": lambda person, crowd: convex(person, crowd, class_prior=0.2),
    "convex, given": lambda person, crowd: convex(person, crowd, alpha=0.3),
    "posterior": lambda person, crowd: posterior(person, crowd),
    "posterior, risk": lambda person, crowd: posterior(person, crowd, "risk"),
    "posterior, given": lambda person, crowd: posterior(person, crowd, 3.0),
    "posterior, person alone": lambda person, crowd: posterior(person, crowd, np.inf),
}


def crowd_from(W, *, isotropic=False):
    return Crowd.from_sums(len(W), W.sum(0), None if isotropic else W.T @ W)


def people(make_target, n_features, n_each):
    """Five people of a batch, the last of whom contradicts any crowd about the first axis."""
    drawn = [make_target(n_features, n_each, seed=seed)[0] for seed in range(5)]
    X, y = np.stack(drawn), make_target(n_features, n_each)[1]
    X[-1] = 20.0 - X[-1]
    return X, y


def assert_member(batch, place, alone):
    for name, expected in alone._asdict().items():
        found = getattr(batch, name)
        if expected is None:
            # Where a crowd cancels there is nothing to choose, but a batch has a curve for all.
            assert found is None or name == "choice"
        elif name == "choice":
            assert_member(found, place, expected)
        else:
            # What is shared, as the direction of one crowd for all, has no axis for people.
            shared = np.ndim(found) == np.ndim(expected)
            one = found if shared else found[place]
            np.testing.assert_allclose(one, expected, atol=1e-7, rtol=1e-7, err_msg=name)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("isotropic", [False, True])
@pytest.mark.parametrize(("n_features", "n_each"), [(4, (9, 6)), (12, (3, 4))])
def test_a_batch_of_people_is_its_members(
    make_target, make_directions, verb, isotropic, n_features, n_each
):
    X, y = people(make_target, n_features, n_each)
    crowd = crowd_from(make_directions(30, n_features), isotropic=isotropic)
    together = VERBS[verb](person_of(X, y), crowd)
    assert together.omega.shape == (5, n_features)
    for place, rows in enumerate(X):
        assert_member(together, place, VERBS[verb](person_of(rows, y), crowd))


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("isotropic", [False, True])
@pytest.mark.parametrize(("n_features", "n_each"), [(4, (9, 6)), (12, (3, 4))])
def test_a_batch_of_people_may_have_a_crowd_each(
    make_target, make_directions, verb, isotropic, n_features, n_each
):
    X, y = people(make_target, n_features, n_each)
    drawn = [make_directions(9 + seed, n_features, seed) for seed in range(5)]
    # Directions of the second crowd cancel.
    drawn[1] = np.concatenate([drawn[1], -drawn[1]])
    crowds = [crowd_from(W, isotropic=isotropic) for W in drawn]
    together = VERBS[verb](person_of(X, y), Crowd.stack(crowds))
    for place, rows in enumerate(X):
        alone = VERBS[verb](person_of(rows, y), crowds[place])
        assert_member(together, place, alone)


# -- the choice of alpha --------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [4, 25])
def test_convex_chooses_what_choose_alpha_does(make_target, make_prior, n_features):
    X, y = make_target(n_features, gap=0.5)
    prior = make_prior(n_features=n_features)
    clf = ConvexBlendClassifier(prior).fit(X, y)
    plain = FisherDiscriminant(feature_scale=prior.feature_scale).fit(X, y)
    choice = choose_alpha(
        prior,
        half_gap=plain.half_gap_,
        covariance=plain.covariance_,
        n_samples=(8, 8),
        shrinkage=plain.shrinkage_,
    )
    assert clf.alpha_ == pytest.approx(choice.alpha, abs=1e-4)
    np.testing.assert_allclose(clf.risks_, choice.risks, atol=1e-6)
    np.testing.assert_array_equal(clf.alphas_, choice.alphas)
    assert clf.risks_.min() <= clf.risks_[[0, -1]].min()


def test_papers_algorithm_has_its_parameters():
    clf = ConvexBlendClassifier.paper(recipe="printed", n_draws=7, random_state=1)
    assert (clf.recipe, clf.n_draws, clf.random_state, clf.shrinkage) == ("printed", 7, 1, None)
    default = ConvexBlendClassifier.paper()
    assert (default.recipe, default.n_draws) == ("authors", 100)


@pytest.mark.parametrize("recipe", ["authors", "printed"])
def test_papers_algorithm_is_a_plain_loop(make_target, make_prior, recipe):
    # Steps of point 14 of the reference: scale to a half gap of one, pseudo-inverse, unit
    # direction with the covariance left as it is, and averages over draws at each alpha.
    X, y = make_target(3, (10, 10))
    prior = make_prior(20, 3)
    clf = ConvexBlendClassifier.paper(prior, recipe=recipe, n_draws=20_000, random_state=0)
    clf.fit(X, y)
    means = np.array([X[y == k].mean(0) for k in (0, 1)])
    size = np.linalg.norm(means[1] - means[0]) / 2
    nu = (means[1] - means[0]) / 2 / size
    rows = (X - means[y]) / size
    sigma = rows.T @ rows / 18
    raw = np.linalg.solve(sigma, nu)
    own = raw / np.linalg.norm(raw)
    noise = ((1 + nu @ raw) * np.linalg.inv(sigma) - np.outer(raw, raw)) / 20
    psi = prior.standard_error(recipe)
    rng = np.random.default_rng(1)
    for alpha, risk in zip(clf.alphas_, clf.risks_, strict=True):
        draws = rng.multivariate_normal(
            alpha * own + (1 - alpha) * prior.mean_direction,
            alpha**2 * noise + (1 - alpha) ** 2 * psi,
            20_000,
        )
        assert conditional_risk(draws, nu=nu, sigma=sigma).mean() == pytest.approx(risk, abs=0.01)
    assert clf.alpha_ == clf.alphas_[len(clf.risks_) - 1 - clf.risks_[::-1].argmin()]


def test_papers_algorithm_repeats_with_its_seed(make_target, make_prior):
    X, y = make_target()
    risks = [
        ConvexBlendClassifier.paper(make_prior(), random_state=seed).fit(X, y).risks_
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(risks[0], risks[1])
    assert (risks[0] != risks[2]).any()


# -- weights, chunks, units -----------------------------------------------------------------


@pytest.mark.parametrize("n_features", [4, 20])
def test_weights_are_repetitions(make_target, make_prior, blend, n_features):
    X, y = make_target(n_features)
    prior = make_prior(n_features=n_features)
    weight = np.arange(len(y)) % 3
    weighted = blend(prior).fit(X, y, sample_weight=weight)
    repeated = blend(prior).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    same(weighted, repeated, atol=1e-6)


@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize("n_features", [4, 40])
@pytest.mark.parametrize("with_prior", [False, True])
def test_partial_fit_in_any_chunking_is_fit(
    make_target, make_prior, blend, n_features, with_prior, as_frame
):
    X, y = make_target(n_features, (12, 11))
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    if as_frame:
        X = pd.DataFrame(np.asfortranarray(X), columns=[f"f{i}" for i in range(n_features)])
    weight = np.linspace(1.0, 2.0, len(y))
    prior = make_prior(n_features=n_features) if with_prior else None
    whole = blend(prior).fit(X, y, sample_weight=weight)
    for size in (1, 5, 23):
        parts = blend(prior)
        for start in range(0, len(y), size):
            chunk = slice(start, start + size)
            parts.partial_fit(X[chunk], y[chunk], classes=[0, 1], sample_weight=weight[chunk])
        equal(parts, whole)


@pytest.mark.parametrize("n_features", [4, 40])
@pytest.mark.parametrize("shrinkage", [None, 0.3])
def test_chunks_do_not_matter_to_other_shrinkages(make_target, make_prior, n_features, shrinkage):
    X, y = make_target(n_features, (12, 11))
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order] + 1e4, y[order]
    prior = make_prior(n_features=n_features)
    parts = PosteriorBlendClassifier(prior, shrinkage=shrinkage)
    for start in range(0, len(y), 4):
        chunk = slice(start, start + 4)
        parts.partial_fit(X[chunk], y[chunk], classes=[0, 1])
    whole = PosteriorBlendClassifier(prior, shrinkage=shrinkage).fit(X, y)
    equal(parts, whole)


def test_partial_fit_goes_on_after_fit(make_target, make_prior, blend):
    X, y = make_target()
    order = np.random.default_rng(1).permutation(len(y))
    X, y = X[order], y[order]
    clf = blend(make_prior()).fit(X[:10], y[:10]).partial_fit(X[10:], y[10:])
    equal(clf, blend(make_prior()).fit(X, y))


def test_partial_fit_waits_for_the_second_class_and_says_so(make_target, make_prior, blend):
    X, y = make_target()
    for clf, classes in (
        (blend(), [0, 1]),
        (blend(make_prior(classes=(0, 1))), None),
        (blend(make_prior(), classes=(0, 1)), None),
    ):
        clf.partial_fit(X[:3], y[:3], classes=classes)
        np.testing.assert_array_equal(clf.classes_, [0, 1])
        with pytest.raises(ValueError, match=r"cannot predict yet: .* sample of class 1\."):
            clf.predict(X)
        clf.partial_fit(X[3:5], y[3:5])
        with pytest.raises(ValueError, match=r"Call partial_fit with at least one"):
            clf.decision_function(X)
        clf.partial_fit(X[5:], y[5:])
        equal(clf, blend(clf.prior, classes=clf.classes).fit(X, y))


def test_partial_fit_of_one_class_alone_needs_the_names_of_both(make_target, blend):
    X, y = make_target()
    clf = blend()
    with pytest.raises(ValueError, match=r"found 3 labelled samples of class 0 .*classes=\(first"):
        clf.partial_fit(X[:3], y[:3])
    with pytest.raises(ValueError, match=r"Only binary .* classes are \[0, 1, 2\]"):
        clf.partial_fit(X[:3], y[:3], classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"have class 5, but the classes are \[0, 1\]"):
        clf.partial_fit(X[:3], [5, 5, 5], classes=[0, 1])
    identical(clf.partial_fit(X, y), blend().fit(X, y))


def test_partial_fit_forgets_samples_that_it_refused(make_target, make_prior, blend):
    X, y = make_target()
    clf = blend(make_prior()).partial_fit(X[4:12], y[4:12])
    before = dict(vars(clf))
    for bad_x, bad_y, message in (
        (X, y + 1, "found 3 classes"),
        (X * np.nan, y, "contains NaN"),
        (X[:, :3], y, "features"),
        (X, [str(label) for label in y], "Some labels are text and others are not"),
    ):
        with pytest.raises(ValueError, match=message):
            clf.partial_fit(bad_x, bad_y)
        assert vars(clf) == before
    rest = np.r_[:4, 12:16]
    clf.partial_fit(X[rest], y[rest])
    order = np.r_[4:12, :4, 12:16]
    equal(clf, blend(make_prior()).fit(X[order], y[order]))


def test_refit_forgets(make_target, make_prior, blend):
    others, labels = make_target(4, seed=1)
    X, y = make_target(6, seed=2)
    names = np.array(["off", "on"])[y]
    fresh = blend().fit(X, names)
    prior = make_prior(classes=(0, 1))
    used = blend(prior).fit(others, labels)
    used.set_params(prior=None).fit(X, names)
    identical(used, fresh)
    assert vars(used).keys() == vars(fresh).keys()
    streamed = blend().partial_fit(others[:2], labels[:2], classes=[0, 1])
    streamed.fit(X, names)
    identical(streamed, fresh)
    assert vars(streamed).keys() == vars(fresh).keys()
    np.testing.assert_array_equal(streamed.predict(X), fresh.predict(X))


def test_prior_sets_the_units(make_target, make_tasks, blend):
    X, y = make_target()
    prior = TaskPrior.from_tasks(make_tasks())
    clf = blend(prior).fit(X, y)
    np.testing.assert_allclose(clf.coef_[0] * prior.feature_scale, clf.projection_)
    expected = (X - clf.midpoint_) / prior.feature_scale @ clf.projection_
    np.testing.assert_allclose(clf.decision_function(X), expected, atol=1e-12)
    np.testing.assert_allclose(clf.midpoint_, (X[y == 0].mean(0) + X[y == 1].mean(0)) / 2)
    assert np.linalg.norm(clf.projection_) == pytest.approx(1.0)


# -- forecast and probabilities -------------------------------------------------------------


@pytest.mark.parametrize("n_features", [1, 4, 40])
@pytest.mark.parametrize("n_each", [(1, 1), (2, 1), (8, 8)])
@pytest.mark.parametrize("gap", [0.0, 1.0, 30.0])
def test_forecast_is_a_probability_with_an_error(
    make_target, make_prior, blend, n_features, n_each, gap
):
    X, y = make_target(n_features, n_each, gap=gap)
    for prior in (None, make_prior(n_features=n_features)):
        clf = blend(prior).fit(X, y)
        assert 0.0 <= clf.expected_accuracy_ <= 1.0
        assert 0.0 <= clf.expected_accuracy_error_ < 1.0
        probabilities = clf.predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(1), 1.0)
        np.testing.assert_array_equal(clf.classes_[probabilities.argmax(1)], clf.predict(X))


def test_forecast_is_humbler_than_the_plug_in(make_target):
    X, y = make_target(20, (8, 8))
    clf = PosteriorBlendClassifier().fit(X, y)
    plain = FisherDiscriminant().fit(X, y)
    plug_in = 1 - conditional_risk(plain.projection_, nu=plain.half_gap_, sigma=plain.covariance_)
    assert clf.expected_accuracy_ < plug_in - 0.01


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
        confident = clf.predict_proba(X).max(1)
        assert confident.mean() == pytest.approx(0.8413, abs=0.015)


# -- little to learn from -------------------------------------------------------------------


def test_one_sample_per_class_takes_the_priors_covariance(make_tasks, blend):
    prior = TaskPrior.from_tasks(make_tasks())
    X = np.array([[9.0, 10.0, 11.0, 10.0], [12.0, 10.0, 10.0, 10.5]])
    clf = blend(prior).fit(X, [0, 1])
    nu = (X[1] - X[0]) / 2 / prior.feature_scale
    own = np.linalg.solve(prior.within_covariance, nu)
    np.testing.assert_allclose(clf.target_projection_, own / np.linalg.norm(own))
    bare = dataclasses.replace(prior, within_covariance=None)
    np.testing.assert_allclose(
        blend(bare).fit(X, [0, 1]).target_projection_, nu / np.linalg.norm(nu)
    )


def test_one_feature(make_target, blend):
    X, y = make_target(1)
    right, wrong = (TaskPrior.from_projections(np.full((9, 1), sign)) for sign in (1.0, -1.0))
    for prior in (None, right):
        np.testing.assert_allclose(blend(prior).fit(X, y).projection_, [1.0])
    assert blend(wrong).fit(X, y).projection_[0] in (1.0, -1.0)


@pytest.mark.parametrize("seed", [122, 139, 216])
def test_rounding_decides_nothing_on_one_axis(blend, seed):
    # There OAS has nothing to shrink, and many strengths are equally good.
    prior = TaskPrior.from_projections(np.ones((15, 1)), classes=(0, 1))
    rng = np.random.default_rng(seed)
    y, weight = np.repeat([0, 1], [3, 4]), 1 + np.arange(7) % 3
    X = rng.standard_normal((7, 1)) * rng.standard_normal() + 2.0 * y[:, None]
    repeated = blend(prior).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    equal(blend(prior).fit(X, y, sample_weight=weight), repeated)
    assert FisherDiscriminant().fit(X, y).shrinkage_ == 1.0


@pytest.mark.parametrize("shrinkage", ["oas", None, 0.5])
@pytest.mark.parametrize("isotropic", [False, True])
def test_ill_posed_features(make_target, make_prior, blend, shrinkage, isotropic):
    X, y = make_target(3, (20, 20))
    shares = np.exp(X / 10.0)
    shares /= shares.sum(1, keepdims=True)
    ill = np.column_stack([shares, np.full(len(y), 0.1), X[:, 0], X[:, 0]])
    for n in (40, 10, 5):
        some = np.r_[: n // 2, 40 - (n - n // 2) : 40]
        prior = make_prior(n_features=6, isotropic=isotropic)
        clf = blend(prior, shrinkage=shrinkage).fit(ill[some], y[some])
        assert np.isfinite(clf.coef_).all()
        assert 0.0 <= clf.expected_accuracy_ <= 1.0
        assert 0.0 <= clf.alpha_ <= 1.0
        # Twins are told apart by the crowd only, which has them in the same order.
        assert clf.score(ill, y) > 0.4


@pytest.mark.parametrize("strength", ["auto", "risk", 1.0, 1e300, np.inf])
def test_one_source_and_a_feature_without_variance(make_target, strength):
    X, y = make_target(3)
    X[:, 1] = 2.0
    prior = TaskPrior.from_projections([[0.6, 0.8, 0.0]])
    clf = PosteriorBlendClassifier(prior, strength=strength, shrinkage=None).fit(X, y)
    assert np.isfinite(clf.coef_).all()


def test_classes_that_do_not_differ_leave_the_crowd(make_target, make_prior, blend):
    X, _ = make_target()
    twice, y = np.vstack([X, X]), np.repeat([0, 1], len(X))
    clf = blend(make_prior()).fit(twice, y)
    np.testing.assert_allclose(clf.projection_, make_prior().mean_direction)
    assert clf.alpha_ == 0.0
    assert clf.expected_accuracy_ == 0.5
    assert np.abs(clf.predict_proba(twice) - 0.5).max() < 1e-6
    message = "do not differ in any feature, and there is no prior"
    with pytest.raises(NoDirectionError, match=message):
        blend().fit(twice, y)


def test_one_source_only(make_target, blend):
    X, y = make_target()
    clf = blend(TaskPrior.from_projections([[0.8, 0.6, 0.0, 0.0]])).fit(X, y)
    assert 0.0 <= clf.alpha_ <= 1.0
    assert clf.score(X, y) > 0.7


def test_cancelling_sources(make_target):
    X, y = make_target()
    W = np.vstack([np.eye(4), -np.eye(4)])
    prior = TaskPrior.from_projections(W)
    message = "directions of the prior's 8 tasks cancel out"
    with pytest.warns(CancellingSourcesWarning, match=message) as caught:
        clf = ConvexBlendClassifier(prior).fit(X, y)
    assert caught[0].filename == __file__
    assert clf.alpha_ == 1.0
    assert clf.source_projection_ is None
    np.testing.assert_allclose(clf.projection_, clf.target_projection_)
    for strength in ("auto", "risk", 1.0):
        posterior = PosteriorBlendClassifier(prior, strength=strength).fit(X, y)
        assert posterior.score(X, y) > 0.8
    with pytest.raises(NoDirectionError, match="cancel out: there is no mean direction"):
        ConvexBlendClassifier(prior, alpha=0.5).fit(X, y)
    assert ConvexBlendClassifier(prior, alpha=1.0).fit(X, y).alpha_ == 1.0


def test_cancelling_sources_of_a_pair_of_classes():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 6)
    means = 3.0 * np.eye(3)
    orders = [[0, 1, 2], [1, 0, 2]]
    tasks = [Task(rng.normal(size=(18, 3)) + means[order][y], y) for order in orders * 3]
    prior = MulticlassPrior.from_tasks(tasks)
    X = rng.normal(size=(18, 3)) + means[y]
    with pytest.warns(CancellingSourcesWarning, match="prior's 6 tasks cancel out") as caught:
        clf = MulticlassBlend(ConvexBlendClassifier(prior)).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert clf.rules_[0, 1].alpha_ == 1.0
    assert np.isnan(clf.rules_[0, 1].risks_).all()
    assert clf.rules_[0, 2].alpha_ < 1.0


def test_sources_below_their_own_noise_cancel_too(make_target):
    X, y = make_target()
    W = np.vstack([np.eye(4), -np.eye(4), [[0.6, 0.8, 0.0, 0.0]]])
    with pytest.warns(CancellingSourcesWarning, match="cancel out"):
        clf = ConvexBlendClassifier(TaskPrior.from_projections(W)).fit(X, y)
    assert clf.alpha_ == 1.0


def test_directions_that_cancel_at_a_given_alpha(make_target):
    X, y = make_target(1)
    prior = TaskPrior.from_projections([[-1.0]])
    with pytest.raises(NoDirectionError, match=r"cancel out at alpha=0\.5\. Choose another"):
        ConvexBlendClassifier(prior, alpha=0.5).fit(X, y)


# -- one class only -------------------------------------------------------------------------


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("n_samples", [1, 2, 6])
def test_missing_class_from_the_half_gap(make_tasks, make_target, blend, label, n_samples):
    prior = TaskPrior.from_tasks(make_tasks()).without("class_means")
    X, y = make_target()
    seen = X[y == label][:n_samples]
    clf = blend(prior, on_missing_class="prior").fit(seen, np.full(n_samples, label))
    away = prior.half_gap * prior.feature_scale
    np.testing.assert_allclose(clf.midpoint_, seen.mean(0) + (away if label == 0 else -away))
    np.testing.assert_allclose(clf.projection_, prior.mean_direction)
    np.testing.assert_array_equal(clf.classes_, [0, 1])
    assert clf.alpha_ == 0.0
    assert clf.target_projection_ is None
    assert 0.0 <= clf.expected_accuracy_ <= 1.0
    assert clf.predict(seen.mean(0)[None])[0] == label
    assert clf.predict(2.0 * clf.midpoint_[None] - seen.mean(0))[0] == 1 - label


def test_missing_class_turns_up_later(make_tasks, make_target, blend):
    prior = TaskPrior.from_tasks(make_tasks())
    X, y = make_target()
    clf = blend(prior, on_missing_class="prior").partial_fit(X[:5], y[:5])
    assert clf.alpha_ == 0.0
    clf.partial_fit(X[5:], y[5:])
    equal(clf, blend(prior).fit(X, y))


def test_missing_class_is_refused_where_nobody_knows_it(make_tasks, make_target, blend):
    X, y = make_target()
    prior = TaskPrior.from_tasks(make_tasks(labels=("rest", "task")))
    with pytest.raises(
        ValueError,
        match=r"found 5 labelled samples of class 'task' and 0 of 'rest'\. Label at least 1 "
        r"sample of 'rest', or pass on_missing_class='prior'",
    ):
        blend(prior, on_missing_class="error").fit(X[:5], ["task"] * 5)
    unknowing = prior.without("class_means", "half_gap")
    with pytest.raises(ValueError, match=r"Label at least 1 sample of 'rest'\.$"):
        blend(unknowing).fit(X[:5], ["task"] * 5)
    with pytest.raises(ValueError, match=r"samples of class 0 and 0 of the other class"):
        blend().fit(X[:5], y[:5])


def test_missing_class_needs_a_gap_and_a_name(make_prior, make_tasks, make_target, blend):
    X, y = make_target()
    for prior in (None, make_prior()):
        with pytest.raises(ValueError, match="only with a prior that has an average half gap"):
            blend(prior, on_missing_class="prior").fit(X[:5], y[:5])
    nameless = dataclasses.replace(TaskPrior.from_tasks(make_tasks()), classes=None)
    with pytest.raises(ValueError, match=r"Only class 0 has labelled samples, and neither prior"):
        blend(nameless, on_missing_class="prior").fit(X[:5], y[:5])
    named = blend(nameless, on_missing_class="prior", classes=(0, 1)).fit(X[:5], y[:5])
    np.testing.assert_array_equal(named.classes_, [0, 1])


# -- classes --------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [("a", "b"), (False, True), (-1, 1), (3, 7)])
def test_labels_of_any_kind(make_target, make_prior, blend, labels):
    X, y = make_target()
    clf = blend(make_prior(classes=labels)).fit(X, np.array(labels)[y])
    np.testing.assert_array_equal(clf.classes_, labels)
    identical(clf, blend(make_prior()).fit(X, y))


def test_other_classes_than_the_priors_are_refused_unless_mapped(make_target, make_prior, blend):
    X, y = make_target()
    prior = make_prior(classes=("rest", "task"))
    message = r"have class 0, but the classes are \['rest', 'task'\]"
    with pytest.raises(PriorMismatchError, match=message):
        blend(prior).fit(X, y)
    identical(blend(prior, classes=(0, 1)).fit(X, y), blend(make_prior()).fit(X, y))


@pytest.mark.parametrize("missing", [False, True])
def test_classes_in_the_other_order(make_tasks, make_target, blend, missing):
    X, y = make_target()
    prior = TaskPrior.from_tasks(make_tasks(labels=("rest", "task")))
    keep = y == 1 if missing else slice(None)
    options = {"on_missing_class": "prior"} if missing else {}
    # The same people: once called as the prior calls them, once with names that sort otherwise.
    plain = blend(prior, **options).fit(X[keep], np.array(["rest", "task"])[y][keep])
    turned = blend(prior, classes=("z", "a"), **options).fit(X[keep], np.array(["z", "a"])[y][keep])
    np.testing.assert_array_equal(turned.classes_, ["a", "z"])
    np.testing.assert_allclose(turned.projection_, -plain.projection_, atol=1e-12)
    np.testing.assert_allclose(turned.midpoint_, plain.midpoint_)
    assert turned.alpha_ == pytest.approx(plain.alpha_)
    assert turned.expected_accuracy_ == pytest.approx(plain.expected_accuracy_)
    translated = np.where(turned.predict(X) == "a", "task", "rest")
    np.testing.assert_array_equal(translated, plain.predict(X))
    np.testing.assert_allclose(turned.predict_proba(X), plain.predict_proba(X)[:, ::-1], atol=1e-12)


# -- refusals -------------------------------------------------------------------------------


def test_refuses_bad_samples(make_target, make_prior, blend):
    X, y = make_target()
    clf = blend(make_prior())
    for bad in (np.nan, np.inf):
        broken = X.copy()
        broken[0, 0] = bad
        with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
            clf.fit(broken, y)
    with pytest.raises(ValueError, match=r"Only binary .* found 3 classes"):
        clf.fit(X, np.arange(16) % 3)
    with pytest.raises(ValueError, match=r"weights of all samples sum to 0\.16"):
        clf.fit(X, y, sample_weight=np.full(16, 0.01))
    with pytest.raises(ValueError, match="Rescale"):
        clf.fit(X * 1e200, y)
    with pytest.raises(ValueError, match="not fitted yet; call fit"):
        blend().predict(X)


def test_refuses_other_features_than_the_priors(make_target, make_prior, blend):
    X, y = make_target()
    with pytest.raises(PriorMismatchError, match="X has 4 features, but the prior has 5"):
        blend(make_prior(n_features=5)).fit(X, y)
    named = make_prior(feature_names=list("abcd"))
    frame = pd.DataFrame(X, columns=list("abdc"))
    message = r"'d' stands where the prior has 'c'\. Reorder"
    with pytest.raises(PriorMismatchError, match=message):
        blend(named).fit(frame, y)
    reordered = frame[list(named.feature_names)]
    assert list(blend(named).fit(reordered, y).feature_names_in_) == list("abcd")
    blend(named).fit(X, y)


def test_refuses_what_is_no_prior(make_target, make_directions, blend):
    X, y = make_target()
    for call in ("fit", "partial_fit"):
        with pytest.raises(TypeError, match="prior must be a TaskPrior or None; got ndarray"):
            getattr(blend(make_directions()), call)(X, y)
    with pytest.raises(TypeError, match="prior must be a TaskPrior or None; got str"):
        blend("prior.npz").fit(X, y, sample_domain=np.full(16, -1))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 1.5}, "alpha must be a number from 0 to 1; got 1.5"),
        ({"alpha": "auto"}, "alpha must be a number from 0 to 1; got 'auto'"),
        ({"recipe": "right"}, "recipe must be one of 'exact', 'authors', 'printed'; got 'right'"),
        ({"shrinkage": "auto"}, "shrinkage must be a number from 0 to 1, or one of 'oas'"),
        ({"on_missing_class": "crowd"}, "on_missing_class must be one of 'auto', 'error', 'prior'"),
        ({"classes": (0, 1, 2)}, r"classes must be two different labels; got \(0, 1, 2\)"),
        ({"classes": (1, 1)}, "classes must be two different labels"),
    ],
)
@pytest.mark.parametrize("with_prior", [False, True])
def test_convex_refuses_parameters(make_target, make_prior, parameters, message, with_prior):
    prior = make_prior() if with_prior else None
    with pytest.raises(ValueError, match=message):
        ConvexBlendClassifier(prior, **parameters).fit(*make_target())


def test_convex_refuses_too_few_draws(make_target, make_prior):
    clf = ConvexBlendClassifier.paper(make_prior(), n_draws=1)
    with pytest.raises(ValueError, match="n_draws must be a whole number of at least 2; got 1"):
        clf.fit(*make_target())


@pytest.mark.parametrize("strength", [-1.0, np.nan, "strong", None, True, [1.0], np.ones(2)])
def test_posterior_refuses_strengths(make_target, strength):
    with pytest.raises(
        ValueError, match="strength must be a number of at least 0, or one of 'auto', 'risk'"
    ):
        PosteriorBlendClassifier(strength=strength).fit(*make_target())


def test_no_warning_where_none_is_due(make_target, make_prior, blend):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        blend(make_prior()).fit(*make_target())


# -- what is always there, and what is never made ---------------------------------------------


def test_the_curve_and_the_strength_are_always_there(make_target, make_prior, make_tasks):
    X, y = make_target()
    prior = TaskPrior.from_tasks(make_tasks())
    for target in ((None, X, y), (make_prior(), X, y), (prior, X[y == 0], y[y == 0])):
        given, rows, labels = target
        options = {"on_missing_class": "prior"}
        convex = ConvexBlendClassifier(given, **options).fit(rows, labels)
        assert convex.alphas_.shape == convex.risks_.shape
        assert convex.alphas_.min() <= convex.alpha_ <= convex.alphas_.max()
        assert PosteriorBlendClassifier(given, **options).fit(rows, labels).strength_ >= 0.0


def test_partial_fit_follows_a_prior_that_was_changed(make_target, make_prior, blend):
    X, y = make_target()
    clf = blend(make_prior(seed=1)).partial_fit(X[::2], y[::2])
    new = make_prior(seed=2)
    clf.set_params(prior=new).partial_fit(X[1::2], y[1::2])
    assert clf.prior_ is new
    order = np.r_[0 : len(y) : 2, 1 : len(y) : 2]
    equal(clf, blend(new).fit(X[order], y[order]))


@pytest.mark.parametrize("n_each", [(1, 1), (10, 10)])
@pytest.mark.parametrize(
    "make",
    [
        lambda prior: FisherDiscriminant(),
        lambda prior: FisherDiscriminant(shrinkage=None),
        ConvexBlendClassifier,
        lambda prior: ConvexBlendClassifier(prior, shrinkage=None),
        PosteriorBlendClassifier,
        lambda prior: PosteriorBlendClassifier(prior, strength="risk"),
    ],
)
def test_nothing_of_the_size_of_a_covariance_is_made(make_prior, make, n_each):
    rng = np.random.default_rng(0)
    d = 3000
    prior = make_prior(20, d, isotropic=True)
    y = np.repeat([0, 1], n_each)
    X = rng.normal(size=(y.size, d)) + y[:, None] * prior.mean_direction
    tracemalloc.start()
    make(prior).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < d * d * 8 / 4


@pytest.mark.parametrize("d", [1, 3, 10])
@pytest.mark.parametrize("n_tasks", [2, 100])
def test_sources_that_are_all_wrong_alike_do_not_drown_the_target(d, n_tasks):
    rng = np.random.default_rng(5)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, d))
    X[:, 0] += 2.0 * y - 1.0
    against = np.zeros((n_tasks, d))
    against[:, 0] = -1.0
    clf = PosteriorBlendClassifier(TaskPrior.from_projections(against)).fit(X, y)
    own = PosteriorBlendClassifier().fit(X, y)
    assert clf.score(X, y) > own.score(X, y) - 0.03
    assert clf.strength_ > 1.0

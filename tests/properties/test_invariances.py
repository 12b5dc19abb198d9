"""What can never change: rotation, scale, label swap, order of samples and of merging."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import special_ortho_group

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
    choose_alpha,
    risk_curve,
)
from crossfade.blend import KINDS, fit_rule
from crossfade.exceptions import NoDirectionError
from crossfade.fisher import ClassMoments
from crossfade.prior import concentration_mle, mean_resultant_length
from crossfade.risk import (
    blend_directions,
    conditional_risk,
    expected_risk,
)
from crossfade.study import CalibrationStudy

seeds = st.integers(0, 2**32 - 1)
dimensions = st.integers(1, 8)
counts = st.tuples(st.integers(2, 12), st.integers(2, 12))
shrinkages = st.sampled_from(["oas", 0.3, 1.0])
worlds = {"seed": seeds, "d": dimensions, "n_each": counts}

BLENDS = {
    "convex": ConvexBlendClassifier,
    "posterior": PosteriorBlendClassifier,
    "strength": lambda prior, **options: PosteriorBlendClassifier(prior, strength=3.0, **options),
    "risk": lambda prior, **options: PosteriorBlendClassifier(prior, strength="risk", **options),
}


@pytest.fixture(params=BLENDS, scope="module")
def blend(request):
    return BLENDS[request.param]


def draw(seed, d, n_each):
    """A target and directions of sources, in raw units."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n_each)
    X = rng.standard_normal((y.size, d)) @ rng.standard_normal((d, d)) + rng.standard_normal(d)
    X[:, 0] += 2.0 * y
    W = rng.standard_normal((15, d)) * 0.5
    W[:, 0] += 1.5
    return X, y, W / np.linalg.norm(W, axis=1, keepdims=True), rng


def turn(d, rng):
    return special_ortho_group.rvs(d, random_state=rng) if d > 1 else np.eye(1)


def assert_same_rule(one, other, turned=None, sign=1.0, tolerance=1e-5):
    expected = sign * (one.projection_ if turned is None else turned @ one.projection_)
    np.testing.assert_allclose(other.projection_, expected, atol=tolerance)
    assert other.alpha_ == pytest.approx(one.alpha_, abs=tolerance)
    assert other.expected_accuracy_ == pytest.approx(one.expected_accuracy_, abs=tolerance)
    assert other.expected_accuracy_error_ == pytest.approx(
        one.expected_accuracy_error_, abs=tolerance
    )


@given(**worlds, shrinkage=shrinkages)
def test_rotation_turns_the_discriminant(seed, d, n_each, shrinkage):
    X, y, _, rng = draw(seed, d, n_each)
    q = turn(d, rng)
    plain, turned = (
        FisherDiscriminant(shrinkage=shrinkage, feature_scale=None).fit(rows, y)
        for rows in (X, X @ q.T)
    )
    np.testing.assert_allclose(turned.projection_, q @ plain.projection_, atol=1e-7)
    np.testing.assert_allclose(turned.covariance_, q @ plain.covariance_ @ q.T, atol=1e-8)
    assert turned.shrinkage_ == pytest.approx(plain.shrinkage_)
    np.testing.assert_allclose(
        turned.decision_function(X @ q.T), plain.decision_function(X), atol=1e-6
    )


@given(**worlds, isotropic=st.booleans())
def test_rotation_turns_the_blend_with_its_prior(blend, seed, d, n_each, isotropic):
    X, y, W, rng = draw(seed, d, n_each)
    q = turn(d, rng)
    plain, turned = (
        blend(TaskPrior.from_projections(directions, isotropic=isotropic)).fit(rows, y)
        for rows, directions in ((X, W), (X @ q.T, W @ q.T))
    )
    assert_same_rule(plain, turned, q)


@given(seed=seeds, d=st.integers(2, 6), more=st.integers(1, 4), shrinkage=shrinkages)
def test_tied_features_add_nothing(seed, d, more, shrinkage):
    # As with shares that sum to one: d + more features that vary in d directions.
    X, y, _, rng = draw(seed, d, (12, 9))
    into = np.linalg.qr(rng.standard_normal((d + more, d)))[0].T
    plain = FisherDiscriminant(shrinkage=shrinkage, feature_scale=None).fit(X, y)
    tied = FisherDiscriminant(shrinkage=shrinkage, feature_scale=None).fit(X @ into, y)
    assert tied.shrinkage_ == pytest.approx(plain.shrinkage_, abs=1e-9)
    np.testing.assert_allclose(tied.projection_, plain.projection_ @ into, atol=1e-7)
    no_prior = TaskPrior.from_projections(np.eye(d)[:1])
    assert no_prior.law.within is None
    promised = [
        ConvexBlendClassifier(prior, alpha=1.0).fit(rows, y).expected_accuracy_
        for prior, rows in (
            (no_prior, X),
            (TaskPrior.from_projections(np.eye(d + more)[:1]), X @ into),
        )
    ]
    assert promised[1] == pytest.approx(promised[0], abs=1e-7)


@given(seed=seeds, d=dimensions)
def test_rotation_changes_no_risk(seed, d):
    _, _, W, rng = draw(seed, d, (2, 2))
    q = turn(d, rng)
    root = rng.standard_normal((d, d))
    nu, sigma, covariance = rng.standard_normal(d), root @ root.T, 0.1 * root.T @ root
    plain = expected_risk(W[0], covariance, nu=nu, sigma=sigma)
    turned = expected_risk(q @ W[0], q @ covariance @ q.T, nu=q @ nu, sigma=q @ sigma @ q.T)
    assert turned.risk == pytest.approx(plain.risk, abs=1e-6)
    assert conditional_risk(q @ W[0], nu=q @ nu, sigma=q @ sigma @ q.T) == pytest.approx(
        conditional_risk(W[0], nu=nu, sigma=sigma), abs=1e-9
    )


def test_rotation_changes_no_draw_of_the_papers_study():
    # Rotations turn the signs of eigenvectors, as rounding does on another processor.
    tasks, turned = [], []
    q = turn(6, np.random.default_rng(0))
    for seed in range(4):
        X, y, *_ = draw(seed, 6, (9, 9))
        tasks.append(Task(X, y, f"p{seed}"))
        turned.append(Task(X @ q.T, y, f"p{seed}"))
    alphas = [
        CalibrationStudy(people, methods=["paper"], budgets=[2], n_splits=4, random_state=0)
        .run()
        .rows["alpha"]
        for people in (tasks, turned)
    ]
    assert alphas[0].nunique() > 2
    np.testing.assert_allclose(alphas[0], alphas[1])


@given(**worlds, shrinkage=shrinkages, power=st.floats(-6.0, 6.0))
def test_units_of_single_features_do_not_matter(seed, d, n_each, shrinkage, power):
    X, y, _, rng = draw(seed, d, n_each)
    units = 10.0 ** (power * rng.uniform(0.0, 1.0, d))
    plain, scaled = (
        FisherDiscriminant(shrinkage=shrinkage).fit(rows, y) for rows in (X, X * units)
    )
    np.testing.assert_allclose(scaled.projection_, plain.projection_, atol=1e-7)
    np.testing.assert_allclose(scaled.feature_scale_, plain.feature_scale_ * units)
    np.testing.assert_allclose(scaled.predict_proba(X * units), plain.predict_proba(X), atol=1e-6)


@pytest.mark.filterwarnings("ignore::crossfade.exceptions.CancellingSourcesWarning")
@given(**worlds, power=st.floats(-6.0, 6.0))
def test_units_of_single_features_do_not_matter_to_a_blend(blend, seed, d, n_each, power):
    rng = np.random.default_rng(seed)
    units = 10.0 ** (power * rng.uniform(0.0, 1.0, d))
    X, y, _, _ = draw(seed, d, n_each)
    sources = [draw([seed, place], d, (6, 7))[:2] for place in range(5)]
    plain, scaled = (
        blend(TaskPrior.from_tasks([Task(rows * unit, labels) for rows, labels in sources])).fit(
            X * unit, y
        )
        for unit in (np.ones(d), units)
    )
    assert_same_rule(plain, scaled)
    np.testing.assert_allclose(scaled.coef_ * units, plain.coef_, rtol=1e-4, atol=1e-6)


@given(**worlds, factor=st.floats(1e-6, 1e6), shift=st.floats(-100.0, 100.0))
def test_scale_of_all_features_and_shift_turn_nothing(blend, seed, d, n_each, factor, shift):
    X, y, W, _ = draw(seed, d, n_each)
    prior = TaskPrior.from_projections(W)
    plain = blend(prior).fit(X, y)
    moved = blend(prior).fit(X + shift, y)
    assert_same_rule(plain, moved)
    np.testing.assert_allclose(moved.midpoint_, plain.midpoint_ + shift, atol=1e-9)
    # Directions have no length: a common unit of all features cancels, in raw units too.
    scaled = blend(prior).fit(X * factor, y)
    assert_same_rule(plain, scaled)


@given(**worlds, shrinkage=shrinkages)
def test_label_swap_negates_the_discriminant(seed, d, n_each, shrinkage):
    X, y, _, _ = draw(seed, d, n_each)
    plain, swapped = (FisherDiscriminant(shrinkage=shrinkage).fit(X, z) for z in (y, 1 - y))
    np.testing.assert_allclose(swapped.projection_, -plain.projection_, atol=1e-9)
    np.testing.assert_allclose(
        swapped.projection_covariance_, plain.projection_covariance_, rtol=1e-6, atol=1e-8
    )
    np.testing.assert_allclose(swapped.predict_proba(X), plain.predict_proba(X)[:, ::-1], atol=1e-9)


@given(**worlds, isotropic=st.booleans())
def test_label_swap_negates_the_blend_with_its_prior(blend, seed, d, n_each, isotropic):
    X, y, W, _ = draw(seed, d, n_each)
    plain = blend(TaskPrior.from_projections(W, isotropic=isotropic)).fit(X, y)
    swapped = blend(TaskPrior.from_projections(-W, isotropic=isotropic)).fit(X, 1 - y)
    assert_same_rule(plain, swapped, sign=-1.0)
    np.testing.assert_allclose(swapped.midpoint_, plain.midpoint_)


@given(**worlds)
def test_names_of_classes_do_not_matter(blend, seed, d, n_each):
    X, y, W, _ = draw(seed, d, n_each)
    prior = TaskPrior.from_projections(W, classes=(0, 1))
    plain = blend(prior).fit(X, y)
    for names, sign in ((["a", "z"], 1.0), (["z", "a"], -1.0)):
        named = blend(prior, classes=names).fit(X, np.array(names)[y])
        assert_same_rule(plain, named, sign=sign)
        translated = (named.predict(X) == names[1]).astype(int)
        clear = np.abs(plain.decision_function(X)) > 1e-6
        np.testing.assert_array_equal(translated[clear], plain.predict(X)[clear])


@given(**worlds)
def test_order_of_the_samples_does_not_matter(blend, seed, d, n_each):
    X, y, W, rng = draw(seed, d, n_each)
    prior = TaskPrior.from_projections(W)
    order = rng.permutation(len(y))
    assert_same_rule(blend(prior).fit(X, y), blend(prior).fit(X[order], y[order]))


@given(**worlds, data=st.data())
def test_weights_are_repetitions(blend, seed, d, n_each, data):
    X, y, W, _ = draw(seed, d, n_each)
    size = len(y)
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
    weight[[0, -1]] += 1
    prior = TaskPrior.from_projections(W)
    weighted = blend(prior).fit(X, y, sample_weight=weight)
    repeated = blend(prior).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_same_rule(weighted, repeated)


@given(**worlds, data=st.data())
def test_chunks_do_not_matter(blend, seed, d, n_each, data):
    X, y, W, rng = draw(seed, d, n_each)
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    cuts = data.draw(st.lists(st.integers(1, len(y) - 1), unique=True).map(sorted))
    prior = TaskPrior.from_projections(W, classes=(0, 1))
    chunked = blend(prior)
    for part in np.split(np.arange(len(y)), cuts):
        chunked.partial_fit(X[part], y[part])
    whole = blend(prior).fit(X, y)
    for name in ("coef_", "intercept_", "alpha_", "expected_accuracy_"):
        np.testing.assert_allclose(
            getattr(chunked, name), getattr(whole, name), rtol=1e-10, atol=1e-10
        )


@given(**worlds, isotropic=st.booleans())
def test_a_blend_is_always_a_unit_direction_with_a_forecast(blend, seed, d, n_each, isotropic):
    X, y, W, _ = draw(seed, d, n_each)
    clf = blend(TaskPrior.from_projections(W, isotropic=isotropic)).fit(X, y)
    assert np.linalg.norm(clf.projection_) == pytest.approx(1.0)
    assert -1e-12 <= clf.alpha_ <= 1.0 + 1e-12
    assert 0.0 <= clf.expected_accuracy_ <= 1.0
    assert clf.expected_accuracy_error_ >= 0.0
    probabilities = clf.predict_proba(X)
    assert ((probabilities >= 0.0) & (probabilities <= 1.0)).all()


def assert_same_prior(one, other):
    assert one.n_tasks == other.n_tasks
    assert one.sums.keys() == other.sums.keys()
    for name, mine in one.sums.items():
        theirs = other.sums[name].arrays()
        for field, values in mine.arrays().items():
            np.testing.assert_allclose(values, theirs[field], rtol=1e-10, atol=1e-10)


@given(seed=seeds, d=dimensions, isotropic=st.booleans(), data=st.data())
def test_order_of_merging_does_not_matter(seed, d, isotropic, data):
    sites = []
    for site in range(data.draw(st.integers(2, 4))):
        people = [draw([seed, site, place], d, (5, 6))[:2] for place in range(2)]
        tasks = [Task(X, y) for X, y in people]
        options = {"feature_scale": None, "isotropic": isotropic, "rehearse": False}
        sites.append(TaskPrior.from_tasks(tasks, **options))
    order = data.draw(st.permutations(range(len(sites))))
    cut = data.draw(st.integers(1, len(sites) - 1))
    one_by_one = reduce(add, sites)
    shuffled = [sites[place] for place in order]
    grouped = reduce(add, shuffled[:cut]) + reduce(add, shuffled[cut:])
    assert_same_prior(grouped, one_by_one)
    assert sites[0] + sites[1] == sites[1] + sites[0]


@given(seed=seeds, d=dimensions, isotropic=st.booleans(), data=st.data())
def test_chunks_of_a_stream_do_not_matter(seed, d, isotropic, data):
    W = draw(seed, d, (2, 2))[2]
    cuts = data.draw(st.lists(st.integers(1, len(W) - 1), unique=True).map(sorted))
    first, *rest = np.split(W, cuts)
    stream = TaskPrior.from_projections(first, isotropic=isotropic)
    for part in rest:
        stream = stream.update(part)
    assert_same_prior(stream, TaskPrior.from_projections(W, isotropic=isotropic))


@given(seed=seeds, d=dimensions, n_tasks=st.integers(1, 20), isotropic=st.booleans())
def test_scatter_and_errors_are_covariances(seed, d, n_tasks, isotropic):
    W = np.random.default_rng(seed).standard_normal((n_tasks, d))
    prior = TaskPrior.from_projections(W, normalize=True, isotropic=isotropic)
    assert 0.0 <= prior.resultant_length <= 1.0
    assert np.linalg.eigvalsh(prior.scatter).min() > 0.0
    np.testing.assert_array_equal(prior.scatter, prior.scatter.T)
    if prior.resultant_length > 1e-6:
        for form in ("tangent", "authors", "printed"):
            psi = prior.standard_error(form)
            assert np.linalg.eigvalsh(psi).min() >= -1e-12 * np.abs(psi).max()
        tangent = prior.standard_error("tangent")
        assert np.abs(tangent @ prior.mean_direction).max() <= 1e-9 * (1 + np.abs(tangent).max())


@given(d=st.integers(1, 2000), log_kappa=st.floats(-8.0, 17.0))
def test_concentration_and_length_are_inverse(d, log_kappa):
    kappa = np.exp(log_kappa)
    length = mean_resultant_length(kappa, d)
    assert 0.0 < length <= 1.0
    if 1.0 - length > 1e-7:
        assert concentration_mle(length, d) == pytest.approx(kappa, rel=1e-6)
    assert mean_resultant_length(1.01 * kappa, d) >= length


@given(seed=seeds, d=dimensions, rank=st.integers(0, 8), log_size=st.floats(-6.0, 6.0))
def test_risks_are_probabilities(seed, d, rank, log_size):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((d, min(rank, d))) * np.exp(log_size)
    sigma = root @ root.T
    nu = rng.standard_normal(d)
    W = rng.standard_normal((3, d))
    spread = rng.standard_normal((d, min(rank, d)))
    answer = expected_risk(W, spread @ spread.T, nu=nu, sigma=sigma)
    for risks in (answer.risk, conditional_risk(W, nu=nu, sigma=sigma)):
        assert ((risks >= 0.0) & (risks <= 1.0)).all()
    assert (answer.error >= 0.0).all()
    # The other way round, the rule errs where it was right.
    opposite = expected_risk(-W, spread @ spread.T, nu=nu, sigma=sigma)
    np.testing.assert_allclose(answer.risk + opposite.risk, 1.0, atol=1e-5)


@given(seed=seeds, d=st.integers(2, 8))
def test_no_rule_beats_the_best_one(seed, d):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((d, d))
    sigma, nu = root @ root.T + 0.1 * np.eye(d), rng.standard_normal(d)
    best = conditional_risk(np.linalg.solve(sigma, nu), nu=nu, sigma=sigma)
    W = rng.standard_normal((5, d))
    assert (conditional_risk(W, nu=nu, sigma=sigma) >= best - 1e-12).all()
    # An uncertain direction is a mixture of directions, none of which is better than the best.
    answer = expected_risk(W, 0.3 * np.eye(d), nu=nu, sigma=sigma)
    assert (answer.risk >= best - answer.error - 1e-9).all()


@given(seed=seeds, d=dimensions, n_samples=st.integers(2, 200), shrinkage=st.floats(0.0, 1.0))
def test_the_chosen_alpha_is_never_worse_than_either_end(seed, d, n_samples, shrinkage):
    _, _, W, rng = draw(seed, d, (2, 2))
    root = rng.standard_normal((d, d))
    prior = TaskPrior.from_projections(W)
    choice = choose_alpha(
        prior,
        half_gap=rng.standard_normal(d),
        covariance=root @ root.T + 0.1 * np.eye(d),
        n_samples=n_samples,
        shrinkage=shrinkage,
    )
    assert 0.0 <= choice.alpha <= 1.0
    assert 0.0 <= choice.risk <= 1.0
    assert choice.risk <= choice.risks.min() + 1e-9
    assert (choice.risks >= 0.0).all()


@given(seed=seeds, d=st.integers(2, 8), factor=st.floats(0.01, 100.0))
def test_risk_knows_no_length(seed, d, factor):
    _, _, W, rng = draw(seed, d, (2, 2))
    root = rng.standard_normal((d, d))
    nu, sigma = rng.standard_normal(d), root @ root.T + 0.1 * np.eye(d)
    own, crowd = 0.1 * np.eye(d), 0.05 * np.eye(d)
    plain = risk_curve(
        [0.0, 0.3, 1.0], target=(W[0], own), source=(W[1], crowd), nu=nu, sigma=sigma
    )
    # Longer directions with longer errors, and other units for the features.
    scaled = risk_curve(
        [0.0, 0.3, 1.0],
        target=(factor * W[0], factor**2 * own),
        source=(factor * W[1], factor**2 * crowd),
        nu=nu / factor,
        sigma=sigma / factor**2,
    )
    np.testing.assert_allclose(scaled.risks, plain.risks, atol=1e-6)
    blended = blend_directions(W[0], W[1], [0.0, 0.3, 1.0])
    np.testing.assert_allclose(
        blend_directions(factor * W[0], W[1] / factor, [0.0, 0.3, 1.0]), blended, atol=1e-12
    )


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("d", [3, 15])
def test_a_batch_of_splits_is_each_of_them(kind, d):
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], 4)
    X = rng.standard_normal((4, 8, d)) + label[:, None]
    # Classes apart where nothing varies, nothing that varies, and classes that do not differ.
    X[1, 4:], X[1, :, 0] = X[1, :4], label
    X[2] = label[:, None] * np.arange(1.0, d + 1.0)
    X[3, 4:] = X[3, :4]
    people = rng.standard_normal((12, 20, d))
    y = np.arange(20) % 2
    prior = TaskPrior.from_tasks([Task(one + y[:, None], y) for one in people], rehearse=False)
    for law, splits in ((prior.law, 4), (None, 3)):
        batch = fit_rule(ClassMoments.of(X[:splits], label), law, kind)
        chances = batch.predict_proba(people[0])
        for place in range(splits):
            alone = fit_rule(ClassMoments.of(X[place], label), law, kind)
            close = {"rtol": 1e-7, "atol": 1e-8}
            np.testing.assert_allclose(batch.coef[place], alone.coef, **close)
            np.testing.assert_allclose(batch.intercept[place], alone.intercept, **close)
            np.testing.assert_allclose(chances[place], alone.predict_proba(people[0]), **close)
            for end, there in zip(batch.interval(), alone.interval(), strict=True):
                np.testing.assert_allclose(end[place], there, **close)
    with pytest.raises(NoDirectionError, match="no direction"):
        fit_rule(ClassMoments.of(X, label), None, kind)

"""FisherDiscriminant: against the dense formulas, at both ends, and each refusal."""

import pickle

import numpy as np
import pytest

from crossfade import FisherDiscriminant

SHRINKAGES = [None, "oas", 0.3]
SHAPES = [(4, (9, 7)), (12, (3, 5)), (6, (4, 4)), (7, (4, 4)), (8, (4, 4)), (9, (4, 4))]


def pooled(X, y):
    """Rows about their class means, and the half gap; straight from the definitions."""
    means = np.array([X[y == k].mean(0) for k in (0, 1)])
    return X - means[y], (means[1] - means[0]) / 2.0


def shrunk(plain, share):
    d = len(plain)
    return (1.0 - share) * plain + share * np.trace(plain) / d * np.eye(d)


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
@pytest.mark.parametrize(("n_features", "n_each"), SHAPES)
@pytest.mark.parametrize("feature_scale", ["auto", None])
def test_covariance_and_direction_are_the_dense_formulas(
    make_target, shrinkage, n_features, n_each, feature_scale
):
    X, y = make_target(n_features, n_each)
    rule = FisherDiscriminant(shrinkage=shrinkage, feature_scale=feature_scale).fit(X, y)
    rows, half_gap = pooled(X, y)
    freedom = len(y) - 2
    scale = np.sqrt((rows**2).sum(0) / freedom) if feature_scale == "auto" else np.ones(n_features)
    np.testing.assert_allclose(rule.feature_scale_, scale)
    np.testing.assert_allclose(rule.half_gap_, half_gap / scale)
    rows = rows / scale
    plain = rows.T @ rows / freedom
    np.testing.assert_allclose(rule.covariance_, shrunk(plain, rule.shrinkage_), atol=1e-10)
    if shrinkage is None:
        assert rule.shrinkage_ == 0.0
        omega = np.linalg.pinv(plain, rcond=1e-10, hermitian=True) @ rule.half_gap_
    else:
        assert 0.0 < rule.shrinkage_ <= 1.0
        omega = np.linalg.solve(rule.covariance_, rule.half_gap_)
    np.testing.assert_allclose(rule.projection_, omega / np.linalg.norm(omega), atol=1e-9)
    assert np.linalg.norm(rule.projection_) == pytest.approx(1.0)


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
@pytest.mark.parametrize(("n_features", "n_each"), SHAPES)
def test_projection_covariance_is_the_formula_over_the_squared_length(
    make_target, shrinkage, n_features, n_each
):
    X, y = make_target(n_features, n_each)
    rule = FisherDiscriminant(shrinkage=shrinkage).fit(X, y)
    inverse = np.linalg.pinv(rule.covariance_, rcond=1e-10, hermitian=True)
    nu = rule.half_gap_
    omega = inverse @ nu
    c = (1.0 / n_each[0] + 1.0 / n_each[1]) / 4.0
    learnt = (1.0 - rule.shrinkage_) ** 2 / (len(y) - 2)
    raw = c * inverse + learnt * (nu @ omega * inverse + np.outer(omega, omega))
    unit = omega / np.linalg.norm(omega)
    across = np.eye(n_features) - np.outer(unit, unit)
    expected = across @ raw @ across / (omega @ omega)
    np.testing.assert_allclose(
        rule.projection_covariance_, expected, atol=1e-9 * np.abs(expected).max()
    )
    np.testing.assert_allclose(rule.projection_covariance_ @ rule.projection_, 0.0, atol=1e-9)


def test_oas_weight_is_the_published_formula(make_target):
    X, y = make_target(5, (9, 12))
    rows, _ = pooled(X, y)
    f, d = len(y) - 2, 5
    plain = rows.T @ rows / f
    square = sum(plain[i, j] * plain[j, i] for i in range(d) for j in range(d))
    trace = sum(plain[i, i] for i in range(d))
    weight = ((1 - 2 / d) * square + trace**2) / ((f + 1 - 2 / d) * (square - trace**2 / d))
    rule = FisherDiscriminant(feature_scale=None).fit(X, y)
    assert rule.shrinkage_ == pytest.approx(min(weight, 1.0))
    assert rule.shrinkage_ < 1.0


def test_both_ends_of_the_shrinkage(make_target):
    X, y = make_target(4, (9, 7))
    plain = FisherDiscriminant(shrinkage=None).fit(X, y)
    none = FisherDiscriminant(shrinkage=0.0).fit(X, y)
    np.testing.assert_allclose(none.projection_, plain.projection_)
    full = FisherDiscriminant(shrinkage=1.0).fit(X, y)
    np.testing.assert_allclose(
        full.projection_, full.half_gap_ / np.linalg.norm(full.half_gap_), atol=1e-12
    )


def test_rule_in_the_users_units(make_target):
    X, y = make_target()
    scale = np.array([1.0, 2.0, 3.0, 4.0])
    rule = FisherDiscriminant(feature_scale=scale).fit(X, y)
    np.testing.assert_array_equal(rule.feature_scale_, scale)
    np.testing.assert_allclose(rule.means_, [X[y == 0].mean(0), X[y == 1].mean(0)])
    np.testing.assert_allclose(rule.midpoint_, rule.means_.mean(0))
    expected = (X - rule.midpoint_) / scale @ rule.projection_
    np.testing.assert_allclose(rule.decision_function(X), expected, atol=1e-12)
    np.testing.assert_allclose(X @ rule.coef_[0] + rule.intercept_[0], expected, atol=1e-12)
    np.testing.assert_array_equal(rule.predict(X), (expected > 0).astype(int))
    assert rule.score(X, y) > 0.8


@pytest.mark.parametrize(("priors", "label"), [((0.3, 0.7), 1), ((0.7, 0.3), 0)])
def test_without_a_gap_every_sample_goes_to_the_likelier_class(make_target, priors, label):
    X, _ = make_target()
    twice, y = np.vstack([X, X]), np.repeat([0, 1], len(X))
    rule = FisherDiscriminant(priors=priors).fit(twice, y)
    assert set(rule.predict(X)) == {label}
    assert not rule.projection_.any()
    np.testing.assert_allclose(rule.predict_proba(X), np.tile(priors, (len(X), 1)))
    assert np.isfinite(rule.intercept_).all()


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
@pytest.mark.parametrize("n_features", [4, 20])
def test_weights_are_repetitions(make_target, shrinkage, n_features):
    X, y = make_target(n_features)
    weight = np.arange(len(y)) % 3
    weighted = FisherDiscriminant(shrinkage=shrinkage).fit(X, y, sample_weight=weight)
    repeated = FisherDiscriminant(shrinkage=shrinkage).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    for name in ("shrinkage_", "projection_", "coef_", "intercept_", "projection_covariance_"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), atol=1e-9)


def test_dense_attributes_are_made_when_asked_for(make_target):
    """With few samples nothing of size (n_features, n_features) is kept."""
    X, y = make_target(600, (5, 5))
    rule = FisherDiscriminant().fit(X, y)
    assert len(pickle.dumps(rule)) < 4 * X.nbytes
    assert rule.covariance_.shape == (600, 600)
    assert rule.score(X, y) == 1.0


def test_one_sample_per_class():
    X = np.array([[0.0, 1.0, 5.0], [2.0, 1.0, 9.0]])
    rule = FisherDiscriminant().fit(X, [0, 1])
    assert rule.shrinkage_ == 1.0
    np.testing.assert_allclose(rule.covariance_, np.eye(3))
    np.testing.assert_allclose(rule.projection_, np.array([1.0, 0.0, 2.0]) / np.sqrt(5.0))
    np.testing.assert_array_equal(rule.predict(X), [0, 1])
    np.testing.assert_allclose(rule.midpoint_, [1.0, 1.0, 7.0])


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9 + 0.1])
def test_constant_features_have_no_say(make_target, shrinkage, constant):
    X, y = make_target(3)
    with_constant = np.column_stack([X, np.full(len(X), constant)])
    rule = FisherDiscriminant(shrinkage=shrinkage).fit(with_constant, y)
    assert rule.projection_[3] == pytest.approx(0.0, abs=1e-6)
    assert rule.score(with_constant, y) > 0.8
    assert np.isfinite(rule.coef_).all()


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
def test_constant_within_the_classes_but_not_between(shrinkage):
    X = np.repeat([[0.1, 0.7], [0.3, 0.7]], 7, axis=0)
    y = np.repeat([0, 1], 7)
    rule = FisherDiscriminant(shrinkage=shrinkage).fit(X, y)
    np.testing.assert_allclose(rule.projection_, [1.0, 0.0], atol=1e-9)
    np.testing.assert_array_equal(rule.predict(X), y)


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
@pytest.mark.parametrize("feature_scale", ["auto", None])
def test_features_that_sum_to_one(make_target, shrinkage, feature_scale):
    X, y = make_target(3, (300, 300), gap=3.0)
    shares = np.exp(X / 10.0)
    shares /= shares.sum(1, keepdims=True)
    rule = FisherDiscriminant(shrinkage=shrinkage, feature_scale=feature_scale).fit(shares, y)
    assert rule.score(shares, y) > 0.6
    if shrinkage is None:
        # The pseudo-inverse knows the rank: two of three features say all that there is to say.
        two = FisherDiscriminant(shrinkage=None, feature_scale=None).fit(shares[:, :2], y)
        np.testing.assert_array_equal(rule.predict(shares), two.predict(shares[:, :2]))
        assert np.linalg.matrix_rank(rule.covariance_, tol=1e-8) == 2


@pytest.mark.parametrize("offset", [0.0, 10.0, 1e6])
def test_gaps_that_rounding_made_are_none(offset):
    X = np.random.default_rng(0).standard_normal((10, 4)) + offset
    # The same samples in both classes, whose means differ in their last digits only.
    rule = FisherDiscriminant().fit(np.vstack([X, X[::-1]]), np.repeat([0, 1], 10))
    assert not rule.half_gap_.any()
    assert not rule.projection_.any()


@pytest.mark.parametrize("half_gap", [0.0, 0.3, 1.0])
def test_probabilities_keep_the_priors_on_average(half_gap):
    """A class of one in ten has a tenth of the probability, whatever the gap."""
    rng = np.random.default_rng(4)
    y = np.repeat([0, 1], 100)
    found = []
    for _ in range(50):
        X = rng.normal(size=(200, 4))
        X[:, 0] += half_gap * (2 * y - 1)
        rule = FisherDiscriminant(priors=(0.9, 0.1)).fit(X, y)
        label = rng.random(300) < 0.1
        new = rng.normal(size=(300, 4))
        new[:, 0] += half_gap * (2 * label - 1)
        found.append(rule.predict_proba(new)[:, 1].mean())
    assert np.mean(found) == pytest.approx(0.1, abs=0.02)


def with_one(value):
    return lambda X, y: (np.where(np.arange(X.size).reshape(X.shape) == 9, value, X), y)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (with_one(np.nan), "NaN. Fill"),
        (with_one(np.inf), "infinity"),
        (lambda X, y: (X[:, None, :], y), "signals"),
        (lambda X, y: (X[0], y), "2D"),
        (lambda X, y: (X * 1e150, y), "size"),
        (lambda X, y: (X * 1e-150, y), "size"),
        (lambda X, y: (X, ["rest"] * 16), "other class"),
        (lambda X, y: (X, np.arange(16) % 3), "3 classes"),
        (lambda X, y: (X, y, np.full(16, 0.1)), "1.6"),
        (lambda X, y: (X, y, np.zeros(16)), "zero"),
        (lambda X, y: (X, y, y), "class 1"),
        (lambda X, y: (X, y, y - 0.5), "[Nn]egative"),
        (lambda X, y: (X, y[:-1]), "inconsistent"),
    ],
)
def test_refuses_samples(make_target, change, word):
    with pytest.raises(ValueError, match=word):
        FisherDiscriminant().fit(*change(*make_target()))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_refuses_to_predict_what_is_not_finite(make_target, bad):
    X, y = make_target()
    rule = FisherDiscriminant().fit(X, y)
    # Also where its coefficient is zero, so that the score would not show it.
    rule.coef_ = np.array([[1.0, 0.0, 1.0, 1.0]])
    X[2, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        rule.predict(X)


@pytest.mark.parametrize(
    "parameters",
    [
        {"shrinkage": "auto"},
        {"shrinkage": 1.5},
        {"shrinkage": np.nan},
        {"priors": (0.5, 0.6)},
        {"priors": (0.0, 1.0)},
        {"priors": (0.2, 0.3, 0.5)},
        {"priors": "equal"},
        {"feature_scale": "own"},
        {"feature_scale": [1.0, 1.0]},
        {"feature_scale": [1, 1, 1, 0]},
        {"feature_scale": [1, 1, 1, np.nan]},
    ],
    ids=str,
)
def test_refuses_parameters(make_target, parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        FisherDiscriminant(**parameters).fit(*make_target())

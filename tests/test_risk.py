"""Risks, their curve and its minimum: both ends, batches, ill-posed cases, and each refusal."""

import numpy as np
import pytest
from scipy.stats import norm

from crossfade import (
    TaskPrior,
    choose_alpha,
    risk_curve,
)
from crossfade.risk import (
    alpha_of_sum,
    blend_directions,
    conditional_risk,
    expected_risk,
)


def draw_model(d=4, seed=0, batch=()):
    rng = np.random.default_rng([seed, d])
    root = rng.standard_normal((*batch, d, d))
    sigma = root @ np.swapaxes(root, -1, -2) / d + 0.3 * np.eye(d)
    return rng.standard_normal((*batch, d)), sigma


def test_conditional_risk_is_the_textbook_formula():
    nu, sigma = draw_model()
    omega = np.array([1.0, -0.5, 0.2, 2.0])
    expected = norm.cdf(-(omega @ nu) / np.sqrt(omega @ sigma @ omega))
    assert conditional_risk(omega, nu=nu, sigma=sigma) == pytest.approx(expected)
    assert conditional_risk(7.0 * omega, nu=nu, sigma=sigma) == pytest.approx(expected)
    assert conditional_risk(-omega, nu=nu, sigma=sigma) == pytest.approx(1.0 - expected)


def test_conditional_risk_without_variance():
    flat = np.zeros((2, 2))
    risks = conditional_risk([[1, 0], [0, 1], [-1, 0]], nu=[1.0, 0.0], sigma=flat)
    np.testing.assert_array_equal(risks, [0.0, 0.5, 1.0])


def test_expected_risk_in_batches_is_one_by_one():
    nu, sigma = draw_model(3, batch=(6,))
    mean = np.random.default_rng(5).standard_normal((4, 1, 3))
    covariance = 0.3 * np.eye(3)
    risks, errors = expected_risk(mean, covariance, nu=nu, sigma=sigma)
    assert risks.shape == errors.shape == (4, 6)
    one = expected_risk(mean[2, 0], covariance, nu=nu[5], sigma=sigma[5])
    assert risks[2, 5] == pytest.approx(one.risk, abs=1e-9)


def test_expected_risk_with_singular_matrices():
    nu, sigma = np.array([1.0, 0.5, 0.0]), np.diag([1.0, 0.0, 0.0])
    covariance = np.diag([0.0, 0.4, 0.0])
    exact = expected_risk([1.0, 0.0, 0.0], covariance, nu=nu, sigma=sigma)
    # The second feature adds a normal number of deviation 0.5 sqrt(0.4), the first one of one.
    assert exact.risk == pytest.approx(norm.cdf(-1.0 / np.sqrt(1.0 + 0.1)), abs=1e-8)


def test_curve_is_the_expected_risk_at_every_alpha():
    nu, sigma = draw_model()
    omega, mu = nu / np.linalg.norm(nu), np.array([1.0, 0.0, 0.0, 0.0])
    own, psi = 0.3 * np.eye(4), 0.01 * np.eye(4)
    alphas = np.array([0.0, 0.4, 1.0])
    curve = risk_curve(alphas, target=(omega, own), source=(mu, psi), nu=nu, sigma=sigma)
    for alpha, risk in zip(alphas, curve.risks, strict=True):
        exact = expected_risk(
            alpha * omega + (1 - alpha) * mu,
            alpha**2 * own + (1 - alpha) ** 2 * psi,
            nu=nu,
            sigma=sigma,
        )
        assert risk == pytest.approx(exact.risk, abs=1e-9)


def law_of(prior, nu, sigma, counts, shrinkage, psi):
    """Target and source of the curve that `choose_alpha` minimises, by the dense formulas."""
    inverse = np.linalg.pinv(sigma, rcond=1e-10, hermitian=True)
    raw = inverse @ nu
    c = (1 / counts[0] + 1 / counts[1]) / 4
    learnt = (1 - shrinkage) ** 2 / (sum(counts) - 2)
    omega = raw / np.linalg.norm(raw)
    across = np.eye(len(nu)) - np.outer(omega, omega)
    noise = across @ ((c + learnt * nu @ raw) * inverse) @ across / (raw @ raw)
    return {"target": (omega, noise), "source": (prior.mean_direction, prior.standard_error(psi))}


@pytest.mark.parametrize("psi", ["tangent", "authors", "printed"])
@pytest.mark.parametrize("d", [2, 4, 20])
def test_choice_minimises_the_curve_of_the_dense_formulas(make_prior, psi, d):
    prior = make_prior(12, d)
    nu, sigma = draw_model(d, seed=3)
    alphas = np.linspace(0.0, 1.0, 11)
    options = {"half_gap": nu, "covariance": sigma, "n_samples": (6, 9), "shrinkage": 0.2}
    choice = choose_alpha(prior, alphas=alphas, psi=psi, **options)
    law = law_of(prior, nu, sigma, (6, 9), 0.2, psi)
    risks, _ = risk_curve(alphas, nu=nu, sigma=sigma, **law)
    np.testing.assert_allclose(choice.risks, risks, atol=1e-6)
    np.testing.assert_array_equal(choice.alphas, alphas)
    assert choice.risk == choice.risks.min()
    assert choice.alpha == alphas[choice.risks.argmin()]
    assert choice.error < 1e-5
    anywhere = choose_alpha(prior, psi=psi, **options)
    assert anywhere.risk <= choice.risk + 1e-9
    there = risk_curve([float(anywhere.alpha)], nu=nu, sigma=sigma, **law).risks[0]
    assert there == pytest.approx(anywhere.risk, abs=1e-5)
    everywhere = risk_curve(np.linspace(0, 1, 401), nu=nu, sigma=sigma, **law).risks
    assert there <= everywhere.min() + 1e-6


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("size", [1.0, 1e-4, 1e-9])
@pytest.mark.parametrize("n_tasks", [1, 12])
def test_choice_with_variance_along_one_axis_only(make_prior, d, size, n_tasks):
    # The target's direction is then known for certain, however short the gap.
    axis = np.linspace(1.0, 2.0, d)
    sigma, nu = np.outer(axis, axis), size * axis
    prior = make_prior(n_tasks, d)
    alphas = np.linspace(0.0, 1.0, 7)
    choice = choose_alpha(prior, half_gap=nu, covariance=sigma, n_samples=6, alphas=alphas)
    law = law_of(prior, nu, sigma, (3, 3), 0.0, "tangent")
    certain = (law["target"][0], np.zeros((d, d)))
    risks = risk_curve(alphas, target=certain, source=law["source"], nu=nu, sigma=sigma).risks
    np.testing.assert_allclose(choice.risks, risks, atol=1e-6)
    assert choice.risks[-1] == pytest.approx(norm.cdf(-size), abs=1e-7)


@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-9])
def test_choice_where_neither_gap_nor_variance_amount_to_much(make_prior, size):
    prior = make_prior(12, 4)
    nu = np.array([0.2, 0.5, 0.1, 0.3]) * size
    sigma = np.diag([1.0, 2.0, 1.0, 0.0])
    choice = choose_alpha(prior, half_gap=nu, covariance=sigma, n_samples=10)
    assert 0.49 < choice.risk < 0.5


def test_choice_at_both_ends(make_directions):
    nu = np.array([1.0, 1.0, 0.0, 0.0])
    right = np.array([1.0, 1.0, 0.0, 0.0]) / np.sqrt(2)
    good = TaskPrior.from_projections(np.tile(right, (50, 1)))
    few = choose_alpha(good, half_gap=nu, covariance=np.eye(4), n_samples=4)
    assert few.alpha < 0.1
    wrong = TaskPrior.from_projections(np.tile([0.0, 0.0, 0.0, 1.0], (50, 1)))
    many = choose_alpha(wrong, half_gap=nu, covariance=np.eye(4), n_samples=100_000)
    assert many.alpha > 0.95
    opposite = TaskPrior.from_projections(np.tile(-right, (50, 1)))
    against = choose_alpha(opposite, half_gap=nu, covariance=np.eye(4), n_samples=100)
    assert against.alpha == pytest.approx(1.0, abs=0.01)


def test_choice_between_equals_is_the_persons_own(make_prior):
    choice = choose_alpha(make_prior(), half_gap=np.zeros(4), covariance=np.eye(4), n_samples=9)
    assert choice.alpha == 1.0
    assert choice.risk == pytest.approx(0.5, abs=1e-6)


def test_choice_between_directions_that_agree_is_the_persons_own():
    # The curve is flat but for rounding, which must not decide.
    prior = TaskPrior.from_projections(np.ones((9, 1)))
    for seed in range(20):
        nu, variance = np.random.default_rng(seed).uniform(0.5, 3.0, 2)
        options = {"half_gap": [nu], "covariance": [[variance]], "n_samples": 9}
        assert choose_alpha(prior, **options).alpha == 1.0
        assert choose_alpha(prior, alphas=[0.0, 0.5, 1.0], **options).alpha == 1.0


def test_choice_never_promises_less_than_nothing(make_prior):
    # Without variance the curve jumps, from no risk at all to a coin's at the target alone.
    choice = choose_alpha(
        make_prior(), half_gap=np.ones(4), covariance=np.zeros((4, 4)), n_samples=9
    )
    assert 0.0 <= choice.risk < 1e-12
    assert choice.alpha < 1.0


@pytest.mark.parametrize("alphas", [None, [0.0, 0.5, 1.0]])
@pytest.mark.parametrize("seed", [0, np.random.default_rng(3), np.random.RandomState(3)])
def test_choice_by_monte_carlo(make_prior, alphas, seed):
    options = {"half_gap": [1, 0, 0.5, 0], "covariance": np.eye(4), "n_samples": 20}
    prior = make_prior()
    drawn = choose_alpha(
        prior, alphas=alphas, method="monte_carlo", n_draws=3000, random_state=seed, **options
    )
    expected = np.linspace(0, 1, 11) if alphas is None else alphas
    np.testing.assert_allclose(drawn.alphas, expected)
    exact = choose_alpha(prior, alphas=drawn.alphas, **options)
    np.testing.assert_allclose(drawn.risks, exact.risks, atol=0.01)
    assert 0.0 < drawn.error < 0.01


def test_blend_of_directions():
    own, crowd = np.array([3.0, 0.0]), np.array([0.0, 0.5])
    np.testing.assert_allclose(blend_directions(own, crowd, 1.0), [1.0, 0.0])
    np.testing.assert_allclose(blend_directions(own, crowd, 0.0), [0.0, 1.0])
    np.testing.assert_allclose(
        blend_directions(own, crowd, 0.25), np.array([0.25, 0.75]) / np.hypot(0.25, 0.75)
    )
    many = blend_directions(own, crowd, [0.0, 0.5, 1.0])
    assert many.shape == (3, 2)
    np.testing.assert_allclose(np.linalg.norm(many, axis=1), 1.0)


GOOD = {"nu": [1.0, 0.0], "sigma": np.eye(2)}
BOTH = {"target": ([1.0, 0.0], np.eye(2)), "source": ([0.0, 1.0], np.eye(2))}
SKEW = [[1.0, 0.5], [0.0, 1.0]]
INDEFINITE = [[1.0, 2.0], [2.0, 1.0]]


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: conditional_risk([np.nan, 1.0], **GOOD), "finite"),
        (lambda: conditional_risk([1.0, 0, 0], **GOOD), "nu"),
        (lambda: conditional_risk([1.0, 0.0], nu=[1.0, 0.0], sigma=np.eye(3)), "sigma"),
        (lambda: conditional_risk([1.0, 0.0], nu=[1, 0], sigma=SKEW), "symmetric"),
        (lambda: conditional_risk([1.0, -1.0], nu=[1, 0], sigma=INDEFINITE), "eigenvalue"),
        (lambda: expected_risk([1.0, 0.0], INDEFINITE, **GOOD), "covariance"),
        (lambda: expected_risk([1e200, 1.0], np.eye(2), nu=[1.0, 0.0], sigma=np.eye(2)), "large"),
        (lambda: risk_curve([0.5, 1.5], **BOTH, **GOOD), "alphas"),
        (lambda: risk_curve([0.5], **BOTH | {"target": ([1.0, 0.0], SKEW)}, **GOOD), "target"),
        (lambda: risk_curve([0.5], **BOTH | {"source": ([1.0], np.eye(2))}, **GOOD), "source"),
        (lambda: blend_directions([0.0, 0.0], [1.0, 0.0], 0.5), "target"),
        (lambda: blend_directions([1.0, 0.0], [0.0, 1.0], 2.0), "alpha"),
        (lambda: blend_directions([1.0, 0.0], [-1.0, 0.0], 0.5), "opposite"),
        (lambda: alpha_of_sum(1.5, 3, 0.5), "alpha"),
        (lambda: alpha_of_sum(0.5, 0, 0.5), "n_tasks"),
        (lambda: alpha_of_sum(0.5, 3, 0.0), "resultant_length"),
        (lambda: choice_with(half_gap=[1.0, 0.0, 0.0]), "half_gap"),
        (lambda: choice_with(half_gap=[1e160, 0.0]), "half_gap"),
        (lambda: choice_with(covariance=SKEW), "covariance"),
        (lambda: choice_with(n_samples=(0, 5)), "n_samples"),
        (lambda: choice_with(shrinkage=1.5), "shrinkage"),
        (lambda: choice_with(psi="used"), "'tangent'"),
        (lambda: choice_with(alphas=[2.0]), "alphas"),
        (lambda: choice_with(method="exact"), "method"),
        (lambda: choice_with(method="monte_carlo", n_draws=2.5), "n_draws"),
        (lambda: choice_with(prior=TaskPrior.from_projections([[1.0, 0], [-1.0, 0]])), "cancel"),
    ],
)
def test_refusals(call, word):
    with pytest.raises(ValueError, match=word):
        call()


def choice_with(**changes):
    prior = TaskPrior.from_projections([[1.0, 0.0], [0.8, 0.6]])
    options = {"half_gap": [1.0, 0.0], "covariance": np.eye(2), "n_samples": 10}
    return choose_alpha(**{"prior": prior, **options, **changes})

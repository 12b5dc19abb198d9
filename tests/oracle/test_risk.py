"""Error rates of directions: closed forms against samples, quadrature and other methods."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import ndtr

from crossfade import (
    TaskPrior,
    choose_alpha,
    risk_curve,
)
from crossfade.risk import (
    conditional_risk,
    expected_risk,
)


def random_covariance(rng, n_features, rank):
    factor = rng.normal(size=(n_features, rank)) * np.exp(rng.normal(0.0, 1.5, size=rank))
    return factor @ factor.T * np.exp(rng.normal(0.0, 2.0))


def root(covariance):
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def imhof(mean, covariance, nu, sigma):
    """P(omega'x < 0) from the quadratic form in (omega, x), by complex numbers and quadrature.

    Nothing is shared with the package: one eigenproblem of twice the size, principal square roots
    of complex numbers, Gauss-Legendre of two orders in log t, and adaptive Gauss-Kronrod where
    these differ. Returns the value and its error.
    """
    d = len(mean)
    spread = np.zeros((2 * d, 2 * d))
    spread[:d, :d], spread[d:, d:] = root(covariance), root(sigma)
    centre = np.concatenate([mean, nu])
    swap = np.zeros((2 * d, 2 * d))
    swap[:d, d:] = swap[d:, :d] = np.eye(d) / 2.0
    values, turn = np.linalg.eigh(spread.T @ swap @ spread)
    linear = 2.0 * turn.T @ (spread.T @ swap @ centre)
    constant = centre @ swap @ centre
    deviation = np.sqrt(2.0 * (values**2).sum() + (linear**2).sum())
    values, linear, constant = values / deviation, linear / deviation, constant / deviation

    def integrand(log_t):
        t = np.exp(np.asarray(log_t))[..., None]
        kernel = 1.0 - 2j * t * values
        exponent = (np.log(kernel) + t * t * linear**2 / kernel).sum(-1)
        return np.exp(1j * t[..., 0] * constant - 0.5 * exponent).imag

    # Below the first edge the integrand is t times the mean; above the last it is negligible.
    edges = [-40.0, -6.0, *np.arange(-5.0, 5.0), *np.arange(5.0, 10.0, 0.25), 12.0, 16.0, 24.0]
    low, high = np.array(list(pairwise(edges))).T[..., None]
    coarse, fine = (
        ((high - low) / 2.0 * weights * integrand((high + low + (high - low) * nodes) / 2.0)).sum(1)
        for nodes, weights in map(np.polynomial.legendre.leggauss, (24, 40))
    )
    agree = np.abs(fine - coarse) < 1e-12
    total, error = fine[agree].sum(), np.abs(fine - coarse)[agree].sum()
    for low, high in np.array(list(pairwise(edges)))[~agree]:
        # With all of its output it warns of nothing; its own error says how far it got.
        part, doubt = quad(
            integrand, low, high, limit=400, epsabs=1e-12, epsrel=1e-11, full_output=1
        )[:2]
        total, error = total + part, error + doubt
    return 0.5 - total / np.pi, error / np.pi + 1e-13


def test_conditional_risk_is_the_error_rate_of_samples():
    rng = np.random.default_rng(11)
    n = 200_000
    for n_features in (1, 2, 5):
        sigma = random_covariance(rng, n_features, n_features)
        nu = root(sigma) @ rng.normal(size=n_features)
        omega = np.linalg.solve(sigma, nu) + 0.3 * rng.normal(size=n_features)
        label = rng.integers(0, 2, size=n)
        X = rng.normal(size=(n, n_features)) @ root(sigma).T + np.where(label, 1, -1)[:, None] * nu
        wrong = ((X @ omega > 0) != label).mean()
        risk = conditional_risk(omega, nu=nu, sigma=sigma)
        assert abs(wrong - risk) < 4.0 * np.sqrt(risk * (1.0 - risk) / n)


@pytest.mark.parametrize(
    ("rank_c", "rank_sigma"), [(4, 4), (1, 4), (2, 3), (4, 2), (0, 4), (4, 0), (1, 1)]
)
def test_expected_risk_is_the_mean_of_conditional_risks(rank_c, rank_sigma):
    rng = np.random.default_rng(12)
    covariance, sigma = (random_covariance(rng, 4, rank) for rank in (rank_c, rank_sigma))
    mean, nu = rng.normal(size=(2, 4))
    draws = mean + rng.normal(size=(200_000, 4)) @ root(covariance).T
    risks = conditional_risk(draws, nu=nu, sigma=sigma)
    answer = expected_risk(mean, covariance, nu=nu, sigma=sigma)
    standard_error = risks.std() / np.sqrt(len(risks))
    assert abs(answer.risk - risks.mean()) < 4.0 * standard_error + answer.error


def test_expected_risk_in_one_dimension_by_direct_quadrature():
    for mean, variance, nu, sigma in [(1.0, 0.3, 0.8, 1.0), (-0.5, 2.0, 0.1, 0.2)]:
        # In one dimension only the sign of omega counts.
        positive = ndtr(mean / np.sqrt(variance))
        good = ndtr(-nu / np.sqrt(sigma))
        truth = positive * good + (1.0 - positive) * (1.0 - good)
        answer = expected_risk([mean], [[variance]], nu=[nu], sigma=[[sigma]])
        assert abs(answer.risk - truth) <= answer.error
        assert answer.error < 2e-6


def test_expected_risk_in_two_dimensions_by_direct_quadrature():
    mean, nu = [1.0, 0.4], [0.8, -0.3]
    covariance, sigma = [[0.5, 0.2], [0.2, 0.3]], [[1.0, -0.4], [-0.4, 0.7]]
    factor = np.linalg.cholesky(covariance).tolist()

    def integrand(second, first):
        # In plain numbers: this is called half a million times.
        x, y = mean[0] + factor[0][0] * first, mean[1] + factor[1][0] * first
        y += factor[1][1] * second
        variance = sigma[0][0] * x * x + 2.0 * sigma[0][1] * x * y + sigma[1][1] * y * y
        score = (x * nu[0] + y * nu[1]) / math.sqrt(variance)
        density = math.exp(-0.5 * (first**2 + second**2)) / (2.0 * math.pi)
        return 0.5 * math.erfc(score / math.sqrt(2.0)) * density

    truth, _ = dblquad(integrand, -7.0, 7.0, -7.0, 7.0, epsabs=1e-5)
    answer = expected_risk(mean, covariance, nu=nu, sigma=sigma)
    # The risk jumps at omega = 0, so that direct quadrature is the less exact of the two.
    assert abs(answer.risk - truth) < 1e-4


def test_expected_risk_without_uncertainty_is_the_conditional_risk():
    rng = np.random.default_rng(13)
    mean, nu = rng.normal(size=(2, 20, 3))
    sigma = np.array([random_covariance(rng, 3, 3) for _ in range(20)])
    answer = expected_risk(mean, np.zeros((3, 3)), nu=nu, sigma=sigma)
    truth = conditional_risk(mean, nu=nu, sigma=sigma)
    assert (np.abs(answer.risk - truth) <= answer.error).all()
    # No spread at all: the sign of the mean decides, and zero is a coin.
    certain = expected_risk(
        np.eye(3), np.zeros((3, 3)), nu=[1.0, -1.0, 0.0], sigma=np.zeros((3, 3))
    )
    np.testing.assert_array_equal(certain.risk, [0.0, 1.0, 0.5])
    np.testing.assert_array_equal(certain.error, 0.0)


def test_reported_error_bounds_the_true_one():
    """Over six orders of magnitude in scale, any rank, any separation; equations 15 to 17."""
    rng = np.random.default_rng(14)
    true, reported = [], []
    for _ in range(400):
        d = int(rng.integers(1, 7))
        ranks = np.where(rng.random(2) < 0.4, rng.integers(0, d + 1, size=2), d)
        covariance, sigma = (random_covariance(rng, d, rank) for rank in ranks)
        mean, nu = rng.normal(size=(2, d)) * np.exp(rng.normal(0.0, 1.5, size=(2, 1)))
        # The reference gives up where the integrand oscillates; there, see the next test.
        size = np.sqrt(np.trace(covariance @ sigma) + mean @ sigma @ mean + nu @ covariance @ nu)
        if not 0.0 < abs(mean @ nu) < 50.0 * size:
            continue
        answer = expected_risk(mean, covariance, nu=nu, sigma=sigma)
        truth, doubt = imhof(mean, covariance, nu, sigma)
        assert abs(answer.risk - truth) <= answer.error + doubt
        true.append(abs(answer.risk - truth) - doubt)
        reported.append(answer.error)
    assert len(true) > 350
    assert np.quantile(reported, 0.98) < 1e-6
    assert np.quantile(true, 0.98) < 2e-7


def test_risk_of_classes_far_apart_is_not_lost_in_oscillation():
    """Two hundred deviations apart the risk is nil, whatever the nodes can resolve."""
    for separation in (30.0, 100.0, 200.0, 437.0, 6000.0):
        for covariance, sigma in (([[1.0]], [[0.0]]), ([[0.0]], [[1.0]]), ([[1.0]], [[1e-6]])):
            answer = expected_risk([separation], covariance, nu=[separation], sigma=sigma)
            assert answer.risk <= answer.error
            assert answer.error <= 1.0001 / (1.0 + separation**2)


def problem(rng, n_features):
    sigma = random_covariance(rng, n_features, n_features) + 0.1 * np.eye(n_features)
    sigma /= np.trace(sigma) / n_features
    omega, mu = rng.normal(size=(2, n_features))
    target = omega / np.linalg.norm(omega), 0.1 * random_covariance(rng, n_features, n_features)
    source = mu / np.linalg.norm(mu), 0.01 * np.eye(n_features)
    return target, source, sigma @ target[0], sigma


def test_risk_curve_is_the_expected_risk_at_each_alpha():
    rng = np.random.default_rng(15)
    target, source, nu, sigma = problem(rng, 5)
    alphas = np.linspace(0.0, 1.0, 7)
    curve = risk_curve(alphas, target=target, source=source, nu=nu, sigma=sigma)
    for place, alpha in enumerate(alphas):
        mean = alpha * target[0] + (1.0 - alpha) * source[0]
        covariance = alpha**2 * target[1] + (1.0 - alpha) ** 2 * source[1]
        alone = expected_risk(mean, covariance, nu=nu, sigma=sigma)
        assert curve.risks[place] == pytest.approx(alone.risk, abs=1e-13)
        # Independent draws of both parts, blended, have the same law.
        own = target[0] + rng.normal(size=(50_000, 5)) @ root(target[1]).T
        crowd = source[0] + rng.normal(size=(50_000, 5)) @ root(source[1]).T
        drawn = conditional_risk(alpha * own + (1.0 - alpha) * crowd, nu=nu, sigma=sigma)
        assert abs(drawn.mean() - alone.risk) < 4.0 * drawn.std() / np.sqrt(len(drawn)) + 1e-6


def test_a_batch_is_its_members_one_by_one():
    rng = np.random.default_rng(16)
    cases = [problem(rng, 4) for _ in range(6)]
    omega, sigma_omega = (np.stack([case[0][part] for case in cases]) for part in (0, 1))
    mu, psi = (np.stack([case[1][part] for case in cases]) for part in (0, 1))
    nu, sigma = (np.stack([case[part] for case in cases]) for part in (2, 3))
    alphas = np.array([0.0, 0.3, 1.0])
    curve = risk_curve(alphas, target=(omega, sigma_omega), source=(mu, psi), nu=nu, sigma=sigma)
    for place, (target, source, half_gap, covariance) in enumerate(cases):
        alone = risk_curve(alphas, target=target, source=source, nu=half_gap, sigma=covariance)
        np.testing.assert_allclose(curve.risks[place], alone.risks, atol=1e-13)
        np.testing.assert_allclose(curve.errors[place], alone.errors, atol=1e-13)
    prior = TaskPrior.from_projections(mu)
    options = {"n_samples": (8, 12), "shrinkage": 0.2}
    batch = choose_alpha(prior, half_gap=nu, covariance=sigma, **options)
    for place in range(6):
        alone = choose_alpha(prior, half_gap=nu[place], covariance=sigma[place], **options)
        assert batch.alpha[place] == pytest.approx(alone.alpha, abs=1e-9)
        np.testing.assert_allclose(batch.risks[place], alone.risks, atol=1e-13)


@pytest.mark.parametrize("psi", ["tangent", "authors", "printed"])
def test_choice_has_the_least_risk(psi):
    """On a grid to 1e-5, by an independent computation; continuous, to 1e-6 of a fine grid."""
    rng = np.random.default_rng(17)
    fine = np.linspace(0.0, 1.0, 1001)
    grid = np.linspace(0.0, 1.0, 11)
    for n_features in (2, 5, 9, 20):
        directions = rng.normal(size=(35, n_features)) + 1.5 * np.eye(n_features)[0]
        prior = TaskPrior.from_projections(directions, normalize=True)
        for n in (2, 4, 12, 100):
            sigma = random_covariance(rng, n_features, n_features) + 0.1 * np.eye(n_features)
            direction = rng.normal(size=n_features) + np.eye(n_features)[0]
            nu = sigma @ direction / np.sqrt(direction @ sigma @ direction)
            options = {"half_gap": nu, "covariance": sigma, "n_samples": n, "psi": psi}
            omega = np.linalg.solve(sigma, nu)
            length = np.linalg.norm(omega)
            # Equation 5 with r = 0, n0 = n1 = n / 2.
            raw = np.linalg.inv(sigma) * (1.0 / n + nu @ omega / max(n - 2, 1))
            across = np.eye(n_features) - np.outer(omega, omega) / length**2
            target = omega / length, across @ raw @ across / length**2
            source = prior.mean_direction, prior.standard_error(psi)
            risks = risk_curve(fine, target=target, source=source, nu=nu, sigma=sigma).risks
            chosen = choose_alpha(prior, alphas=grid, **options)
            assert chosen.alpha in grid
            place = round(float(chosen.alpha) * 1000)
            assert risks[place] <= risks[::100].min() + 1e-5
            np.testing.assert_allclose(chosen.risks, risks[::100], atol=2e-6)
            best = choose_alpha(prior, **options)
            there = risk_curve([best.alpha], target=target, source=source, nu=nu, sigma=sigma)
            assert there.risks[0] <= risks.min() + 1e-6
            assert abs(there.risks[0] - best.risk) <= 1e-6 + best.error


def test_a_hundred_draws_choose_another_alpha():
    """The paper's inner loop with B = 100 is off by 0.1 and more on average."""
    rng = np.random.default_rng(18)
    prior = TaskPrior.from_projections(rng.normal(size=(35, 9)) + np.eye(9)[0], normalize=True)
    nu = np.eye(9)[0] + 0.3 * rng.normal(size=9)
    options = {"half_gap": nu, "covariance": np.eye(9), "n_samples": 10}
    exact = choose_alpha(prior, alphas=np.linspace(0.0, 1.0, 11), **options)
    drawn = [
        choose_alpha(prior, method="monte_carlo", n_draws=100, random_state=seed, **options).alpha
        for seed in range(50)
    ]
    assert np.abs(np.array(drawn) - exact.alpha).mean() > 0.05
    many = choose_alpha(prior, method="monte_carlo", n_draws=100_000, random_state=0, **options)
    np.testing.assert_allclose(many.risks, exact.risks, atol=4.0 * 0.5 / np.sqrt(100_000))

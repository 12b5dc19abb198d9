"""Unequal class proportions: risk, choice of alpha and forecast against simulation."""

import itertools
from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import vonmises_fisher

from crossfade import (
    ConvexBlendClassifier,
    PosteriorBlendClassifier,
    TaskPrior,
    choose_alpha,
    risk_curve,
)
from crossfade.risk import conditional_risk, expected_risk

PRIORS = [(0.8, 0.2), (0.2, 0.8), (0.05, 0.95), (0.999, 0.001)]
BLENDS = {"posterior": PosteriorBlendClassifier, "convex": ConvexBlendClassifier}


def root(covariance):
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def random_covariance(rng, n_features, rank):
    factor = rng.normal(size=(n_features, rank)) * np.exp(rng.normal(size=rank))
    return factor @ factor.T


def rate(gap, deviation, threshold, class_prior):
    """Error rate of a threshold, from the middle: two lines of the textbook."""
    first = ndtr(-(threshold + gap) / deviation)
    second = ndtr((threshold - gap) / deviation)
    return class_prior[0] * first + class_prior[1] * second


@pytest.mark.parametrize("class_prior", PRIORS)
def test_threshold_has_the_least_conditional_risk(class_prior):
    rng = np.random.default_rng(91)
    for _ in range(20):
        sigma = random_covariance(rng, 3, 3)
        nu, omega = root(sigma) @ rng.normal(size=3), rng.normal(size=3)
        omega = omega if omega @ nu > 0.0 else -omega
        gap, deviation = omega @ nu, np.sqrt(omega @ sigma @ omega)
        odds = np.log(class_prior[0] / class_prior[1])
        places = np.linspace(-1.0, 3.0, 4001) * odds * deviation**2 / (2.0 * gap)
        around = np.linspace(-9.0, 9.0, 4001) * deviation
        best = min(rate(gap, deviation, c, class_prior).min() for c in (places, around))
        risk = conditional_risk(omega, nu=nu, sigma=sigma, class_prior=class_prior)
        assert risk <= best + 1e-12
        assert risk == pytest.approx(best, abs=1e-5)
        # Turned round it sees no gap, and answers the likelier class.
        turned = conditional_risk(-omega, nu=nu, sigma=sigma, class_prior=class_prior)
        assert turned == pytest.approx(min(class_prior))


@pytest.mark.parametrize("class_prior", PRIORS)
@pytest.mark.parametrize(("rank_c", "rank_sigma"), [(4, 4), (1, 4), (2, 3), (4, 2), (0, 4), (1, 1)])
def test_expected_risk_is_the_mean_over_draws(rank_c, rank_sigma, class_prior):
    rng = np.random.default_rng(92)
    covariance, sigma = (random_covariance(rng, 4, rank) for rank in (rank_c, rank_sigma))
    mean, nu = rng.normal(size=(2, 4))
    mean = mean if mean @ nu > 0.0 else -mean
    draws = mean + rng.normal(size=(200_000, 4)) @ root(covariance).T
    odds = np.log(class_prior[0] / class_prior[1])
    threshold = odds * (mean @ sigma @ mean) / (2.0 * mean @ nu)
    deviation = np.sqrt(np.einsum("ni,ij,nj->n", draws, sigma, draws))
    risks = rate(draws @ nu, deviation, threshold, class_prior)
    options = {"nu": nu, "sigma": sigma, "class_prior": class_prior}
    answer = expected_risk(mean, covariance, **options)
    assert abs(answer.risk - risks.mean()) < 4.0 * risks.std() / np.sqrt(len(risks)) + answer.error


def test_reported_error_bounds_the_true_one():
    """In one dimension, by adaptive quadrature; thresholds from near to a hundred deviations."""
    rng = np.random.default_rng(93)
    far = 0
    for _ in range(120):
        mean, nu = np.exp(rng.normal((0.0, -1.0), 1.5))
        spread, deviation = np.exp(rng.normal(0.0, 1.0, size=2))
        share = 1.0 / (1.0 + np.exp(rng.normal(0.0, 2.5)))
        class_prior = (1.0 - share, share)
        threshold = np.log(class_prior[0] / share) * (mean * deviation) ** 2 / (2.0 * mean * nu)
        far += abs(threshold) > 20.0 * mean * deviation

        def integrand(u, mean=mean, nu=nu, spread=spread, s=deviation, c=threshold, p=class_prior):
            omega = mean + spread * u
            return (
                rate(omega * nu, abs(omega) * s, c, p) * np.exp(-u * u / 2.0) / np.sqrt(2.0 * np.pi)
            )

        # It bends where omega changes sign, and within a few thresholds of there.
        bend = -mean / spread
        width = abs(threshold) / (deviation * spread) * np.array([0.01, 0.03, 0.1, 0.3, 1.0, 3.0])
        edges = np.unique(np.clip([-12.0, 12.0, bend, *(bend + width), *(bend - width)], -12, 12))
        truth = sum(
            quad(integrand, *edge, limit=200, epsabs=1e-12)[0] for edge in itertools.pairwise(edges)
        )
        answer = expected_risk(
            [mean], [[spread**2]], nu=[nu], sigma=[[deviation**2]], class_prior=class_prior
        )
        assert abs(answer.risk - truth) <= answer.error + 1e-9
    assert far > 5


def test_reported_error_is_small_where_many_features_vary():
    """With one or two the characteristic function falls slowly, and the bound is wide."""
    rng = np.random.default_rng(94)
    for d in (5, 20):
        mean, nu = rng.normal(size=(2, 60, d))
        mean = mean * np.sign(np.vecdot(mean, nu))[:, None]
        rows = rng.normal(size=(2, 60, d, d)) / np.sqrt(d)
        covariance, sigma = rows @ rows.mT + 0.1 * np.eye(d)
        answer = expected_risk(mean, 0.1 * covariance, nu=nu, sigma=sigma, class_prior=(0.8, 0.2))
        assert np.quantile(answer.error, 0.95) < 1e-6


def test_nearly_equal_classes_have_the_risk_of_equal_ones():
    rng = np.random.default_rng(94)
    mean, nu = rng.normal(size=(2, 10, 4))
    mean = mean * np.sign(np.vecdot(mean, nu))[:, None]
    covariance = np.array([random_covariance(rng, 4, 4) for _ in range(10)])
    options = {"nu": nu, "sigma": np.eye(4)}
    equal = expected_risk(mean, covariance, **options)
    nearly = expected_risk(mean, covariance, class_prior=(0.5 + 1e-9, 0.5 - 1e-9), **options)
    np.testing.assert_allclose(nearly.risk, equal.risk, atol=1e-8)
    exactly = expected_risk(mean, covariance, class_prior=(0.5, 0.5), **options)
    np.testing.assert_array_equal(exactly.risk, equal.risk)


def test_without_uncertainty_it_is_the_conditional_risk():
    rng = np.random.default_rng(95)
    mean, nu = rng.normal(size=(2, 30, 3))
    sigma = np.array([random_covariance(rng, 3, 3) for _ in range(30)])
    options = {"nu": nu, "sigma": sigma, "class_prior": (0.3, 0.7)}
    answer = expected_risk(mean, np.zeros((3, 3)), **options)
    truth = conditional_risk(mean, **options)
    assert (np.abs(answer.risk - truth) <= answer.error + 1e-12).all()


@pytest.mark.parametrize("class_prior", [(0.2, 0.8), (0.95, 0.05)])
def test_choice_has_the_least_risk_of_a_grid_of_draws(class_prior):
    """The same draws at all alphas, so that their differences are sharp."""
    rng = np.random.default_rng(97)
    odds = np.log(class_prior[0] / class_prior[1])
    fine = np.linspace(0.0, 1.0, 41)
    for d, n in ((3, 8), (6, 12), (6, 60)):
        directions = rng.normal(size=(35, d)) + 1.5 * np.eye(d)[0]
        prior = TaskPrior.from_projections(directions, normalize=True)
        direction = 0.5 * rng.normal(size=d) + np.eye(d)[0]
        nu = 1.2 * direction / np.linalg.norm(direction)
        choice = choose_alpha(
            prior, half_gap=nu, covariance=np.eye(d), n_samples=n, class_prior=class_prior
        )
        # Equation 5 with r = 0, and the identity for Sigma.
        unit = nu / np.linalg.norm(nu)
        across = np.eye(d) - np.outer(unit, unit)
        target = unit, across * (1.0 / n / (nu @ nu) + 1.0 / (n - 2.0))
        source = prior.mean_direction, prior.standard_error()
        own = target[0] + rng.normal(size=(100_000, d)) @ root(target[1]).T
        crowd = source[0] + rng.normal(size=(100_000, d)) @ root(source[1]).T
        risks = []
        for alpha in (float(choice.alpha), *fine):
            mean = alpha * target[0] + (1.0 - alpha) * source[0]
            omega = alpha * own + (1.0 - alpha) * crowd
            gap = mean @ nu
            threshold = odds * (mean @ mean / (2.0 * gap) if gap > 0.0 else np.inf)
            risks.append(
                rate(omega @ nu, np.linalg.norm(omega, axis=1), threshold, class_prior).mean()
            )
        assert risks[0] <= min(risks[1:]) + 1e-4
        assert choice.risk == pytest.approx(risks[0], abs=2e-3)
        curve = risk_curve(
            fine, target=target, source=source, nu=nu, sigma=np.eye(d), class_prior=class_prior
        )
        np.testing.assert_allclose(curve.risks, risks[1:], atol=2e-3)
        assert choice.risk <= curve.risks.min() + 1e-6


#: (n_features, n_samples, repeats); kappa = 10, J = 100, covariance estimated, labels balanced.
CELLS = [(10, 8, 300), (10, 20, 250), (10, 100, 100)]
N_NEW = 40


@cache
def simulate(n_features, n, repeats, second):
    """True accuracy, forecast and its error; probabilities of new samples and their labels."""
    rng = np.random.default_rng(98)
    law = vonmises_fisher(np.eye(n_features)[0], 10.0)
    y = np.arange(n) % 2
    numbers = {name: np.empty((repeats, 4)) for name in BLENDS}
    chances = {name: np.empty((repeats, N_NEW)) for name in BLENDS}
    labels = rng.random((repeats, N_NEW)) < second
    for repeat in range(repeats):
        W = law.rvs(101, random_state=rng)
        nu, prior = W[0], TaskPrior.from_projections(W[1:])
        X = rng.normal(size=(n, n_features)) + np.where(y, 1.0, -1.0)[:, None] * nu
        new = rng.normal(size=(N_NEW, n_features))
        new += np.where(labels[repeat], 1.0, -1.0)[:, None] * nu
        for name, blend in BLENDS.items():
            rule = blend(prior, class_prior=(1.0 - second, second)).fit(X, y)
            ignoring = blend(prior, alpha=rule.alpha_).fit(X, y) if name == "convex" else None
            omega, length = rule.coef_[0], np.linalg.norm(rule.coef_[0])
            truth = [
                1.0 - rate(omega @ nu, length, -shift, (1.0 - second, second))
                for shift in (
                    rule.intercept_[0],
                    rule.intercept_[0] if ignoring is None else ignoring.intercept_[0],
                )
            ]
            promised = rule.expected_accuracy_, rule.expected_accuracy_error_
            numbers[name][repeat] = *truth, *promised
            chances[name][repeat] = rule.predict_proba(new)[:, 1]
    return numbers, chances, labels


@pytest.mark.parametrize("name", BLENDS)
@pytest.mark.parametrize("second", [0.2, 0.95])
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_mean_forecast_is_the_mean_accuracy(cell, second, name):
    """Within 0.03, as with equal proportions."""
    truth, _, promised, error = simulate(*cell, second)[0][name].T
    off = promised - truth
    spread, claimed = np.sqrt((off**2).mean()), np.sqrt((error**2).mean())
    numbers = np.array([truth.mean(), off.mean(), spread, claimed])
    print(f"n={cell[1]} share {second} {name}: accuracy, off by, spread, error", numbers.round(3))
    assert abs(off.mean()) < 0.03
    assert 1 / 1.6 < spread / claimed < 1.6


@pytest.mark.parametrize("second", [0.2, 0.95])
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_proportions_that_are_known_bring_accuracy(cell, second):
    truth, ignoring, _, _ = simulate(*cell, second)[0]["convex"].T
    gain = truth - ignoring
    assert gain.mean() > 0.04
    # Never much worse than answering the likelier class always.
    assert truth.mean() > max(second, 1.0 - second) - 0.01


@pytest.mark.parametrize("name", BLENDS)
@pytest.mark.parametrize("second", [0.2, 0.95])
@pytest.mark.parametrize(("cell", "tolerance"), [(CELLS[1], 0.04), (CELLS[2], 0.02)], ids=str)
def test_probabilities_are_calibrated(cell, tolerance, second, name):
    _, chances, labels = simulate(*cell, second)
    chance = chances[name].ravel()
    edges = np.quantile(chance, np.linspace(0.0, 1.0, 6))
    place = np.clip(np.searchsorted(edges, chance, side="right") - 1, 0, 4)
    for fifth in range(5):
        inside = place == fifth
        share, hits = chance[inside].mean(), labels.ravel()[inside]
        error = np.sqrt(max(share * (1.0 - share), 1e-4) / inside.sum())
        assert abs(share - hits.mean()) < tolerance + 4.0 * error
    # All in all they sum up to the proportion that was given.
    assert chance.mean() == pytest.approx(second, abs=0.02)

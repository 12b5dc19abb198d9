"""Unequal class proportions: risk, choice of alpha, forecast and estimate against simulation."""

import itertools
from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logit, ndtr
from scipy.stats import vonmises_fisher

from crossfade import (
    ConvexBlendClassifier,
    PosteriorBlendClassifier,
    TaskPrior,
    choose_alpha,
    conditional_risk,
    expected_risk,
    risk_curve,
)
from crossfade.blend._unlabelled import proportion_of
from crossfade.fisher import _spectrum
from crossfade.fisher._direction import direction_of
from crossfade.prior._crowd import Psi
from crossfade.risk._choose import dense_curve
from crossfade.risk._law import BlendLaw, curve, sampled_curve

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


# -- risk ------------------------------------------------------------------------------------


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
    sampled = expected_risk(
        mean, covariance, method="monte_carlo", n_draws=100_000, random_state=0, **options
    )
    assert abs(answer.risk - sampled.risk) < 4.0 * sampled.error + answer.error


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


@pytest.mark.parametrize("form", ["unit", "plus"])
@pytest.mark.parametrize("psi", [Psi(0.02, -0.02), Psi(0.15, 0.0)], ids=str)
@pytest.mark.parametrize("n_rows", [40, 5])
def test_structured_curve_is_the_dense_one(n_rows, psi, form):
    rng = np.random.default_rng(96)
    sigma = _spectrum.from_rows(rng.normal(size=(n_rows, 9)) / np.sqrt(n_rows))
    nu = sigma.apply(rng.normal(size=9))
    counts = np.array([7.0, 5.0])
    person = direction_of(sigma, nu / np.linalg.norm(nu), counts, 0.3, form)
    mu = person.omega + 0.3 * rng.normal(size=9)
    alphas = np.array([0.0, 0.001, 0.1, 0.5, 0.9, 1.0])
    for share in (0.2, 0.95):
        law = BlendLaw(person, mu / np.linalg.norm(mu), psi, share)
        risks, errors = curve(law, alphas)
        other, doubt = dense_curve(law, alphas)
        assert (np.abs(risks - other) <= errors + doubt + 2e-6).all()
        drawn, standard_errors = sampled_curve(law, alphas, 20_000, np.random.default_rng(0))
        assert (np.abs(drawn - risks) <= 4.5 * standard_errors + errors + 1e-6).all()


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


# -- rules -----------------------------------------------------------------------------------

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
    """Within 0.03, as with equal proportions; printed with ``pytest -s``."""
    truth, _, promised, error = simulate(*cell, second)[0][name].T
    off = promised - truth
    spread, claimed = np.sqrt((off**2).mean()), np.sqrt((error**2).mean())
    print(
        f"n={cell[1]} share {second} {name}: accuracy {truth.mean():.3f}, forecast off by "
        f"{off.mean():+.3f}, spread {spread:.3f}, error {claimed:.3f}"
    )
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


# -- proportions that are not known ---------------------------------------------------------


def unlabelled(rng, n_repeats, n, share, gap=1.0):
    second = rng.random((n_repeats, n)) < share
    return rng.standard_normal((n_repeats, n)) + gap * np.where(second, 1.0, -1.0)


@pytest.mark.parametrize("share", [0.2, 0.05, 0.9])
def test_proportions_converge_to_the_truth(share):
    """Although the labelled samples were off in the gap, the middle and the variance."""
    rng = np.random.default_rng(99)
    ones = np.ones(8)
    off = []
    for n in (100, 1_000, 10_000):
        scores = unlabelled(rng, 8, n, share) + 0.15
        found, _ = proportion_of(scores, 0.85 * ones, 1.15 * ones, np.full(2, 10.0))
        off.append(np.sqrt(((found - share) ** 2).mean()))
    print(f"share {share}: off by {off[0]:.3f}, {off[1]:.3f}, {off[2]:.3f}")
    assert off[2] < 0.04
    assert off[2] < 0.5 * off[0]


@pytest.mark.parametrize("share", [0.2, 0.05])
def test_error_of_the_proportion_is_its_spread(share):
    rng = np.random.default_rng(100)
    scores = unlabelled(rng, 400, 300, share)
    found, error = proportion_of(scores, np.ones(400), np.ones(400), np.full(2, 50.0))
    clear = error > 0.0
    assert clear.mean() > 0.95
    spread = np.sqrt(((found - share)[clear] ** 2).mean())
    assert 1 / 1.6 < spread / np.sqrt((error[clear] ** 2).mean()) < 1.6


def test_equal_proportions_are_left_in_peace():
    """By chance in about five of a hundred cases, however many samples there are."""
    rng = np.random.default_rng(101)
    for n in (10, 100, 1000):
        scores = unlabelled(rng, 500, n, 0.5)
        _, error = proportion_of(scores, np.ones(500), np.ones(500), np.full(2, 20.0))
        assert (error > 0.0).mean() < 0.09


@pytest.mark.parametrize("n", [8, 20])
def test_estimate_is_harmless_with_few_and_helps_with_many(n):
    rng = np.random.default_rng(102)
    law = vonmises_fisher(np.eye(10)[0], 10.0)
    y = np.arange(n) % 2
    gains = {(share, size): [] for share in (0.5, 0.1) for size in (10, 300)}
    for _ in range(150):
        W = law.rvs(101, random_state=rng)
        nu, prior = 1.5 * W[0], TaskPrior.from_projections(W[1:])
        X = rng.normal(size=(n, 10)) + np.where(y, 1.0, -1.0)[:, None] * nu
        for (share, size), gain in gains.items():
            rule = PosteriorBlendClassifier(prior).fit(X, y)
            omega, length = rule.coef_[0], np.linalg.norm(rule.coef_[0])
            before = rate(omega @ nu, length, -rule.intercept_[0], (1.0 - share, share))
            second = rng.random(size) < share
            new = rng.normal(size=(size, 10)) + np.where(second, 1.0, -1.0)[:, None] * nu
            rule.estimate_proportions(new)
            after = rate(omega @ nu, length, -rule.intercept_[0], (1.0 - share, share))
            gain.append(before - after)
    for case, gain in gains.items():
        print(f"n={n} share {case[0]}, {case[1]} unlabelled: {np.mean(gain):+.4f}")
    assert np.mean(gains[0.5, 10]) > -0.005
    assert np.mean(gains[0.5, 300]) > -0.005
    assert np.mean(gains[0.1, 10]) > -0.001
    assert np.mean(gains[0.1, 300]) > 0.02


def test_a_threshold_is_placed_by_the_proportions_that_are_known():
    """Ignored, nine windows of ten in one class draw the middle to that class."""
    rng = np.random.default_rng(103)
    y = np.arange(8) % 2
    nu = np.array([1.5, 0.0, 0.0])
    off = {True: [], False: []}
    for _ in range(100):
        X = rng.normal(size=(8, 3)) + np.where(y, 1.0, -1.0)[:, None] * nu
        new = rng.normal(size=(200, 3))
        new += np.where(rng.random(200) < 0.1, 1.0, -1.0)[:, None] * nu
        for known, offs in off.items():
            rule = PosteriorBlendClassifier(class_prior=(0.9, 0.1) if known else None).fit(X, y)
            odds = np.log(9.0) if known else 0.0
            rule.place_threshold(new)
            slope = logit(rule.predict_proba(X)[0, 1]) / rule.decision_function(X)[0]
            middle = -rule.intercept_[0] - odds / slope
            offs.append(middle / np.linalg.norm(rule.coef_))
    assert abs(np.mean(off[True])) < 0.5 * abs(np.mean(off[False]))
    assert np.square(off[True]).mean() < np.square(off[False]).mean()

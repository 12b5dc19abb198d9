"""Algorithm 1 of the paper, line by line, and what its figures say of how it was run."""

import numpy as np
import pytest
from scipy.stats import norm, ranksums, vonmises_fisher, wilcoxon

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    TaskPrior,
    choose_alpha,
)
from crossfade.risk import (
    alpha_of_sum,
    blend_directions,
)

GRID = np.linspace(0.0, 1.0, 11)


def unit(vector):
    return vector / np.linalg.norm(vector)


def plain_algorithm(X, y, W, psi, n_draws, rng):
    """Algorithm 1 as the authors ran it: translate, scale, loop; returns mean risks and errors."""
    means = X[y == 0].mean(0), X[y == 1].mean(0)
    gap = np.linalg.norm(means[1] - means[0]) / 2.0
    X = (X - (means[0] + means[1]) / 2.0) / gap
    n, d = X.shape
    nu = (X[y == 1].mean(0) - X[y == 0].mean(0)) / 2.0
    centred = X - np.where(y[:, None] == 1, nu, -nu)
    sigma = centred.T @ centred / (n - 2)
    inverse = np.linalg.pinv(sigma, hermitian=True)
    raw = inverse @ nu
    own_covariance = ((1.0 + nu @ raw) * inverse - np.outer(raw, raw)) / n
    mean = W.mean(0)
    resultant, n_tasks = np.linalg.norm(mean), len(W)
    crowd = mean / resultant
    unlike = 1.0 - ((W @ crowd) ** 2).mean()
    size = unlike / (n_tasks * resultant**2)
    if psi == "printed":
        size = np.sqrt(unlike / (n_tasks * resultant))
    risks, errors = [], []
    for alpha in GRID:
        centre = alpha * unit(raw) + (1.0 - alpha) * crowd
        covariance = alpha**2 * own_covariance + (1.0 - alpha) ** 2 * size * np.eye(d)
        draws = rng.multivariate_normal(centre, covariance, size=n_draws, method="eigh")
        scores = draws @ nu / np.sqrt(((draws @ sigma) * draws).sum(1))
        drawn = norm.cdf(-scores)
        risks.append(drawn.mean())
        errors.append(drawn.std() / np.sqrt(n_draws))
    return np.array(risks), np.array(errors)


def task(rng, nu, n):
    y = np.repeat([0, 1], n // 2)
    return rng.normal(size=(n, nu.size)) + np.where(y, 1.0, -1.0)[:, None] * nu, y


@pytest.mark.parametrize("recipe", ["authors", "printed"])
def test_paper_is_algorithm_1_line_by_line(recipe):
    rng = np.random.default_rng(71)
    W = vonmises_fisher(np.eye(6)[0], 10.0).rvs(31, random_state=rng)
    X, y = task(rng, 2.0 * W[0], 24)
    X = 3.0 * X + rng.normal(size=6)
    prior = TaskPrior.from_projections(W[1:])
    rule = ConvexBlendClassifier.paper(prior, recipe=recipe, n_draws=20_000, random_state=0)
    rule.fit(X, y)
    assert rule.alpha_ in GRID
    risks, errors = plain_algorithm(X, y, W[1:], recipe, 20_000, rng)
    chosen = np.flatnonzero(rule.alpha_ == GRID)[0]
    assert risks[chosen] < risks.min() + 4.5 * np.sqrt(2.0) * errors.max()
    own = FisherDiscriminant(shrinkage=None, feature_scale=None).fit(X, y).projection_
    blend = rule.alpha_ * own + (1.0 - rule.alpha_) * prior.mean_direction
    np.testing.assert_allclose(unit(rule.coef_[0]), unit(blend), atol=1e-12)


def test_the_class_of_rules_has_the_sum_of_the_sources():
    """Blending with the sum, as the paper defines its class H, by the weights of the mean."""
    rng = np.random.default_rng(77)
    W = vonmises_fisher(np.eye(6)[0], 10.0).rvs(31, random_state=rng)
    target, sources = W[0], W[1:]
    prior = TaskPrior.from_projections(sources)
    for alpha in (0.0, 0.01, 0.3, 0.9, 1.0):
        weight = alpha_of_sum(alpha, prior.n_tasks, prior.resultant_length)
        ours = blend_directions(target, prior.mean_direction, weight)
        theirs = unit(alpha * target + (1.0 - alpha) * sources.sum(0))
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
        back = alpha_of_sum(weight, prior.n_tasks, prior.resultant_length, inverse=True)
        assert back == pytest.approx(alpha, abs=1e-12)


def test_paper_discriminant_is_the_pseudo_inverse_in_raw_units():
    rng = np.random.default_rng(72)
    # Shares of three bands that sum to one: rank two.
    X = rng.dirichlet([2.0, 3.0, 4.0], size=40)
    y = np.repeat([0, 1], 20)
    X[y == 1] = rng.dirichlet([4.0, 3.0, 2.0], size=20)
    rule = FisherDiscriminant(shrinkage=None, feature_scale=None).fit(X, y)
    means = X[y == 0].mean(0), X[y == 1].mean(0)
    centred = X - np.where(y[:, None] == 1, means[1], means[0])
    inverse = np.linalg.pinv(centred.T @ centred / 38, rcond=1e-10, hermitian=True)
    truth = unit(inverse @ (means[1] - means[0]))
    np.testing.assert_allclose(rule.projection_, truth, atol=1e-9)


class CountingGenerator(np.random.Generator):
    """Random numbers, and how many were asked for."""

    count = 0

    def standard_normal(self, size=None, **options):
        self.count += int(np.prod(size))
        return super().standard_normal(size, **options)


def test_the_cost_of_algorithm_1_is_linear_in_its_draws():
    """The paper calls it quadratic in B; twice the draws take twice the numbers."""
    prior = TaskPrior.from_projections(np.eye(4)[:2])
    counts = []
    for n_draws in (100, 200, 400):
        counter = CountingGenerator(np.random.PCG64(0))
        options = {"method": "monte_carlo", "n_draws": n_draws, "random_state": counter}
        choose_alpha(prior, half_gap=np.ones(4), covariance=np.eye(4), n_samples=12, **options)
        counts.append(counter.count)
    assert counts[0] > 0
    assert counts[1] == 2 * counts[0]
    assert counts[2] == 4 * counts[0]


def test_the_test_for_paired_differences_is_the_signed_rank_one():
    """What the paper calls rank-sum: that test does not know which accuracies form a pair."""
    rng = np.random.default_rng(76)
    person = rng.uniform(0.55, 0.95, size=36)
    target = person + rng.normal(0.0, 0.01, size=36)
    blend = person + 0.01 + rng.normal(0.0, 0.01, size=36)
    assert wilcoxon(blend - target, alternative="greater").pvalue < 0.01
    assert ranksums(blend, target, alternative="greater").pvalue > 0.2

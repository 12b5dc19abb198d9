"""Mixtures of directions: densities, EM and blends against integration, simulation and draws."""

from functools import cache

import numpy as np
import pytest
from scipy.special import gammaln, i0e, logsumexp, ndtr
from scipy.stats import multivariate_normal, vonmises_fisher

from crossfade import MixturePrior, TaskPrior, load_mental_math
from crossfade.blend import convex, meet, mixture, posterior
from crossfade.fisher import _spectrum
from crossfade.fisher._direction import direction_of, learn_direction
from crossfade.fisher._moments import ClassMoments
from crossfade.prior import concentrations, corrected_concentration, log_normalizer
from crossfade.prior._vmf import VmfTable
from crossfade.prior._vmf_mixture import (
    choose_mixture,
    expected,
    fit_mixture,
    likelihood_gains,
    maximised,
    one_crowd,
)
from crossfade.risk._forecast import forecast
from crossfade.simulate import draw_directions

# -- density --------------------------------------------------------------------------------


@pytest.mark.parametrize("kappa", [0.0, 1e-4, 0.3, 10.0, 1000.0])
@pytest.mark.parametrize("d", [4, 9, 60, 80, 81, 82, 200, 1000])
def test_density_integrates_to_one(kappa, d):
    """Over the angle with the mean, times the sphere across it; equation 32."""
    angle = (np.arange(20_000) + 0.5) * np.pi / 20_000
    log_density = kappa * np.cos(angle) + (d - 2.0) * np.log(np.sin(angle))
    log_sphere = np.log(2.0) + (d - 1.0) / 2.0 * np.log(np.pi) - gammaln((d - 1.0) / 2.0)
    log_integral = logsumexp(log_density) + np.log(np.pi / 20_000) + log_sphere
    assert log_normalizer(kappa, d) == pytest.approx(-log_integral, abs=1e-8)


@pytest.mark.parametrize("kappa", [1e-3, 2.0, 700.0, 1e5])
def test_normalizer_in_two_and_three_dimensions(kappa):
    circle = -np.log(2.0 * np.pi) - np.log(i0e(kappa)) - kappa
    assert log_normalizer(kappa, 2) == pytest.approx(circle, rel=1e-12)
    log_sinh = kappa + np.log(-np.expm1(-2.0 * kappa)) - np.log(2.0)
    sphere = np.log(kappa) - np.log(4.0 * np.pi) - log_sinh
    assert log_normalizer(kappa, 3) == pytest.approx(sphere, rel=1e-12)


def test_normalizer_refusals():
    with pytest.raises(ValueError, match=r"concentration must lie from 0 to 1e\+08; got -1"):
        log_normalizer(-1.0, 3)
    with pytest.raises(ValueError, match="concentration must lie from 0"):
        log_normalizer([1.0, 1e9], 3)
    with pytest.raises(ValueError, match="n_features must be a whole number"):
        log_normalizer(1.0, 0)


# -- concentration --------------------------------------------------------------------------


@pytest.mark.parametrize("d", [3, 10, 50])
@pytest.mark.parametrize("kappa", [10.0, 50.0, 500.0])
@pytest.mark.parametrize("n_tasks", [5, 10, 30])
def test_bias_of_few_members_is_corrected(d, kappa, n_tasks):
    """In the mean over many samples, where maximum likelihood is up to three times too high.

    Printed with ``pytest -s``; equation 33.
    """
    rng = np.random.default_rng(71)
    W = draw_directions(1000 * n_tasks, d, kappa, random_state=rng).reshape(1000, n_tasks, d)
    lengths = np.linalg.vector_norm(W.mean(1), axis=1)
    plain = concentrations(lengths, d) / kappa
    mended = corrected_concentration(lengths, n_tasks, d) / kappa
    print(f"d={d} kappa={kappa:g} J={n_tasks}: {plain.mean():.3f}, corrected {mended.mean():.3f}")
    freedom = (n_tasks - 1) * (d - 1)
    standard_error = mended.std() / np.sqrt(mended.size)
    # What is left is 4 / f^2 for concentrated directions, and the curvature at A = 0 otherwise.
    left = 4.0 / freedom**2 + (0.1 if kappa <= d and n_tasks < 30 else 0.02)
    assert abs(mended.mean() - 1.0) < left + 3.0 * standard_error
    assert plain.mean() - 1.0 > 2.0 * abs(mended.mean() - 1.0)


def test_squared_length_is_unbiased():
    """E R^2 = 1/J + (1 - 1/J) A^2, which equation 33 solves for A."""
    rng = np.random.default_rng(72)
    W = draw_directions(40_000 * 4, 6, 5.0, random_state=rng).reshape(40_000, 4, 6)
    square = (4.0 * (W.mean(1) ** 2).sum(1) - 1.0) / 3.0
    truth = W.reshape(-1, 6).mean(0) @ W.reshape(-1, 6).mean(0)
    assert square.mean() == pytest.approx(truth, abs=4.0 * square.std() / 200.0)


def test_corrected_concentration_at_both_ends():
    assert corrected_concentration(0.9, 1, 5) == 0.0
    assert corrected_concentration(0.9, 0.7, 5) == 0.0
    assert corrected_concentration(0.1, 3, 5) == 0.0
    assert corrected_concentration(1.0, 3, 5) == np.inf
    many = corrected_concentration(0.9, 1e9, 5)
    assert many == pytest.approx(concentrations(np.array([0.9]), 5)[0], rel=1e-6)
    with pytest.raises(ValueError, match=r"resultant_length must lie from 0 to 1; got 1\.1"):
        corrected_concentration(1.1, 3, 5)


# -- EM -------------------------------------------------------------------------------------


@pytest.fixture
def drawn(make_clusters):
    """Directions of clusters of equal size about directions without preference."""

    def make(n_tasks, d, kappas, rng):
        centres = draw_directions(len(kappas), d, 0.0, random_state=rng)
        return make_clusters(n_tasks, d, kappas, rng.integers(1000), centres)

    return make


@pytest.mark.parametrize(("n_tasks", "d"), [(30, 2), (60, 10), (40, 200)])
def test_likelihood_never_falls(drawn, n_tasks, d):
    """As long as no component is so small that its concentration meets its bound."""
    rng = np.random.default_rng(73)
    W = drawn(n_tasks, d, [3.0, 20.0], rng)
    shares = rng.dirichlet(np.ones(2), size=(5, n_tasks))
    heights = np.empty((60, 5))
    for step in range(60):
        shares, heights[step] = expected(W, maximised(W, shares))
        members = shares.sum(1)
        square = ((shares.mT @ W) ** 2).sum(-1) / members**2
        assert (square < 1.0 - 1.0 / members**2).all()
    assert np.diff(heights, axis=0).min() > -1e-8
    assert (heights[-1] - heights[0]).min() > 1.0


def test_likelihood_is_that_of_the_mixture(drawn):
    rng = np.random.default_rng(74)
    W = drawn(60, 5, [10.0, 30.0], rng)
    laws = maximised(W, rng.dirichlet(np.ones(2), size=(1, 60)))
    shares, heights = expected(W, laws)
    density = [
        share * vonmises_fisher(mu / np.linalg.norm(mu), kappa).pdf(W)
        for share, mu, kappa in zip(*(part[0] for part in laws), strict=True)
    ]
    assert heights[0] == pytest.approx(np.log(np.sum(density, axis=0)).sum())
    np.testing.assert_allclose(shares[0].T, density / np.sum(density, axis=0))


def test_ten_thousand_directions_in_four_components(drawn):
    """Every concentration within 5 per cent, every share within one."""
    rng = np.random.default_rng(75)
    truth = np.array([20.0, 50.0, 100.0, 200.0])
    prior = MixturePrior.from_projections(drawn(10_000, 50, truth, rng), 4)
    np.testing.assert_allclose(np.sort(prior.concentrations), truth, rtol=0.05)
    np.testing.assert_allclose(prior.shares, 0.25, atol=0.01)


@pytest.mark.parametrize(
    ("n_tasks", "d", "kappas"),
    [
        (35, 9, [3.0]),
        (100, 10, [50.0]),
        (60, 200, [100.0]),
        (100, 10, [50.0, 50.0]),
        (90, 30, [60.0, 90.0, 120.0]),
    ],
)
def test_number_of_components_by_bic(drawn, n_tasks, d, kappas):
    rng = np.random.default_rng(76)
    found = [
        choose_mixture(drawn(n_tasks, d, kappas, rng), rng).responsibilities.shape[1]
        for _ in range(10)
    ]
    assert np.mean(np.array(found) == len(kappas)) >= 0.9


@pytest.fixture(scope="module")
def mental_math():
    return TaskPrior.from_tasks(load_mental_math(), keep_directions=True).directions


def test_one_anisotropic_crowd_is_not_cut_in_pieces(mental_math):
    """At most 3 of 30 draws, where BIC alone cuts all; the level is 5 per cent."""
    rng = np.random.default_rng(83)
    law = {"mean": mental_math.mean(0), "cov": np.cov(mental_math.T), "method": "eigh"}
    crowds = rng.multivariate_normal(**law, size=(30, 36))
    crowds /= np.linalg.vector_norm(crowds, axis=-1, keepdims=True)
    found = [choose_mixture(W, rng).n_components for W in crowds]
    assert np.sum(np.array(found) > 1) <= 3
    for W in crowds[:5]:
        one, *more = (fit_mixture(W, k, rng).bic(9) for k in (1, 2, 3, 4))
        assert min(more) < one


def test_mental_math_is_one_crowd(mental_math):
    assert MixturePrior.from_projections(mental_math).n_components == 1
    assert MixturePrior.from_projections(mental_math, 3).n_components == 3


@pytest.mark.parametrize("degrees", [60.0, 90.0])
@pytest.mark.parametrize("kappa", [50.0, 100.0])
@pytest.mark.parametrize(("n_tasks", "d"), [(36, 9), (60, 4), (60, 30)])
def test_true_mixtures_are_found(make_clusters, n_tasks, d, kappa, degrees):
    """Centres at equal angles; a part of the 84 mixtures of ``python -m benchmarks mixture``."""
    for n_components in (2, 3):
        cosines = np.full((n_components, n_components), np.cos(np.radians(degrees)))
        np.fill_diagonal(cosines, 1.0)
        centres = np.zeros((n_components, d))
        centres[:, :n_components] = np.linalg.cholesky(cosines)
        W = make_clusters(n_tasks, d, [kappa] * n_components, 84, centres)
        assert MixturePrior.from_projections(W).n_components == n_components


@pytest.mark.parametrize(("n_tasks", "d", "kappa"), [(36, 9, 3.0), (100, 4, 50.0), (20, 60, 40.0)])
def test_draws_of_one_crowd_have_its_moments(n_tasks, d, kappa):
    """Also where directions outnumber tasks, and in the subspace that the directions leave out."""
    rng = np.random.default_rng(85)
    W = draw_directions(n_tasks, d, kappa, random_state=rng) * np.linspace(0.2, 1.0, d)
    W[:, 0] = 0.0
    W /= np.linalg.vector_norm(W, axis=1, keepdims=True)
    draws = one_crowd(W, 200, rng)
    assert draws.shape == (200, n_tasks, d)
    np.testing.assert_allclose(np.linalg.vector_norm(draws, axis=-1), 1.0)
    np.testing.assert_allclose(draws[..., 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(draws.mean((0, 1)), W.mean(0), atol=0.01)
    apart = draws - W.mean(0)
    scatter = (apart.mT @ apart).mean(0) / n_tasks
    np.testing.assert_allclose(scatter, np.cov(W.T, ddof=0), atol=0.005)


def test_many_samples_are_fitted_as_each_alone(drawn):
    rng = np.random.default_rng(86)
    samples = np.stack([drawn(60, 5, [60.0, 60.0], rng) for _ in range(6)])
    together = likelihood_gains(samples, 2, rng)
    for W, gain in zip(samples, together, strict=True):
        alone = [fit_mixture(W, k, rng).log_likelihood for k in (1, 2)]
        assert gain == pytest.approx(alone[1] - alone[0], abs=0.05)


@pytest.mark.parametrize("d", [2, 3, 9, 81, 500])
def test_table_is_the_law(d):
    lengths = np.concatenate([[0.0, 1e-6], np.linspace(0.001, 0.995, 50)])
    kappa = concentrations(lengths, d)
    table = VmfTable.of(d)
    np.testing.assert_allclose(table.concentrations(lengths, d), kappa, rtol=1e-4)
    np.testing.assert_allclose(
        table.log_normalizer(kappa, d), log_normalizer(kappa, d), rtol=1e-5, atol=0.01
    )


def test_signs_are_one_crowd():
    """In one dimension any proportion of the two directions is that of one normal law."""
    W = np.repeat([[1.0], [-1.0]], 15, axis=0)
    assert MixturePrior.from_projections(W).n_components == 1
    assert MixturePrior.from_projections(W, 2).n_components == 2


def test_many_directions_are_tested_by_some_of_them(drawn, monkeypatch):
    monkeypatch.setattr("crossfade.prior._vmf_mixture._MOST_TASKS", 60)
    rng = np.random.default_rng(87)
    fitted = choose_mixture(drawn(200, 6, [80.0, 80.0], rng), rng)
    assert fitted.responsibilities.shape == (200, 2)


def test_bic_is_the_textbook_one(drawn):
    W = drawn(40, 3, [10.0, 30.0], np.random.default_rng(77))
    fitted = fit_mixture(W, 2, np.random.default_rng(0))
    # Two directions of two angles, two concentrations, one share.
    assert fitted.bic(3) == pytest.approx(7 * np.log(40) - 2 * fitted.log_likelihood)


# -- the blends against plain linear algebra and draws ---------------------------------------


def setting(isotropic, n_features=5, n_rows=9):
    """Components close enough to each other that the person belongs to both a little."""
    rng = np.random.default_rng(78)
    near = np.eye(n_features)[0] + 0.6 * np.eye(n_features)[1]
    near /= np.linalg.norm(near)
    W = np.concatenate(
        [
            draw_directions(20, n_features, 12.0, random_state=rng),
            draw_directions(30, n_features, 20.0, mean_direction=near, random_state=rng),
        ]
    )
    shares = np.column_stack([np.arange(50) < 20, np.arange(50) >= 20]) * 0.9 + 0.05
    pooled = TaskPrior.from_projections(W, isotropic=isotropic)
    outer = None if isotropic else np.einsum("jk,ja,jb->kab", shares, W, W)
    prior = MixturePrior(pooled, shares.sum(0), shares.T @ W, outer)
    rows = rng.normal(size=(n_rows, n_features)) / np.sqrt(n_rows)
    sigma = _spectrum.from_rows(rows)
    sigma = sigma.map(0.7 * sigma.values + 0.3, np.asarray(0.3))
    own = draw_directions(1, n_features, 30.0, mean_direction=near, random_state=rng)[0]
    person = direction_of(sigma, 1.4 * sigma.apply(own), np.full(2, 5.0), 0.3)
    return prior, person._replace(noise=np.asarray(0.08))


CASES = pytest.mark.parametrize(
    ("isotropic", "n_features", "n_rows"),
    [(False, 5, 9), (True, 5, 9), (False, 12, 4), (True, 12, 4)],
)


@CASES
@pytest.mark.parametrize("strength", [0.0, 0.3, 1.0, 20.0])
def test_weights_are_the_densities_of_the_own_direction(isotropic, n_features, n_rows, strength):
    """And the blend is the mean of conditional means; equation 35."""
    prior, person = setting(isotropic, n_features, n_rows)
    blend = mixture(person, prior.components, strength)
    own, spread = person.omega, person.noise * np.linalg.inv(person.sigma.dense())
    logs, parts, traces = [], [], []
    for share, one in zip(prior.shares, prior.components, strict=True):
        wide = strength * one.dense_scatter
        logs.append(np.log(share) + multivariate_normal.logpdf(own, one.mean, wide + spread))
        weight = wide @ np.linalg.inv(wide + spread)
        parts.append(one.mean + weight @ (own - one.mean))
        traces.append(np.trace(weight))
    weights = np.exp(logs - logsumexp(logs))
    assert weights.min() > 0.01
    np.testing.assert_allclose(blend.weights, weights, rtol=1e-8)
    np.testing.assert_allclose(blend.omega, weights @ parts, atol=1e-9)
    np.testing.assert_allclose(blend.source, weights @ [one.mean for one in prior.components])
    assert blend.alpha * n_features == pytest.approx(weights @ traces)


@pytest.mark.parametrize("isotropic", [False, True])
def test_blend_is_the_mean_of_the_posterior(isotropic):
    """By importance sampling: directions from the mixture, weighted by their likelihood."""
    prior, person = setting(isotropic)
    rng = np.random.default_rng(79)
    draws = []
    for share, one in zip(prior.shares, prior.components, strict=True):
        normals = rng.normal(size=(round(200_000 * share), 5))
        draws.append(one.mean + normals @ np.linalg.cholesky(one.dense_scatter).T)
    omega = np.concatenate(draws)
    away = person.omega - omega
    likelihood = np.exp(-0.5 * np.vecdot(away, person.sigma.apply(away)) / person.noise)
    weights = likelihood / likelihood.sum()
    mean = weights @ omega
    error = np.sqrt((weights**2) @ (omega - mean) ** 2)
    blend = mixture(person, prior.components, 1.0)
    assert (np.abs(blend.omega - mean) < 4.0 * error).all()
    second = np.arange(len(omega)) >= len(draws[0])
    assert blend.weights[1] == pytest.approx(weights[second].sum(), abs=0.01)


def derivative(function, person):
    """Trace of the derivative in the person's own direction, by finite differences."""
    step = 1e-5
    total = 0.0
    for place, shift in enumerate(step * np.eye(person.omega.size)):
        high, low = (
            function(person._replace(omega=person.omega + sign * shift))[place]
            for sign in (1.0, -1.0)
        )
        total += (high - low) / (2.0 * step)
    return total


@CASES
@pytest.mark.parametrize("strength", [0.0, 1.0, 5.0])
def test_degrees_of_freedom_are_the_trace_of_the_derivative(
    isotropic, n_features, n_rows, strength
):
    """Of the blend in the person's own direction, weights included."""
    prior, person = setting(isotropic, n_features, n_rows)
    blend = mixture(person, prior.components, strength)
    trace = derivative(lambda one: mixture(one, prior.components, strength).omega, person)
    assert blend.dof == pytest.approx(trace, rel=1e-5)
    # With the weights held it would be less.
    assert blend.dof > blend.alpha * n_features + 0.01


@CASES
def test_sway_is_the_trace_of_the_derivative(isotropic, n_features, n_rows):
    """Of the direction of the crowd that the convex blend meets."""
    prior, person = setting(isotropic, n_features, n_rows)
    crowd, _ = meet(person, prior.components)
    trace = derivative(lambda one: meet(one, prior.components)[0].mean_direction, person)
    assert crowd.sway == pytest.approx(trace, rel=1e-5)
    assert crowd.sway > 0.01
    assert convex(person, crowd, alpha=0.0).dof == pytest.approx(trace, rel=1e-5)


@pytest.mark.parametrize(("n_features", "n_rows"), [(5, 9), (12, 4)])
def test_covariance_of_the_crowd_that_a_person_meets(n_features, n_rows):
    """Psi of the mean of the means m_k by weights w_k: of size sum w_k^2 T_k / J_k."""
    prior, person = setting(False, n_features, n_rows)
    one, other = prior.components
    # So near to the first component that weights are not the shares.
    near = one.mean_direction + 0.3 * (one.mean_direction - other.mean_direction)
    person = person._replace(omega=near / np.linalg.norm(near), noise=np.asarray(0.01))
    crowd, weights = meet(person, prior.components)
    assert prior.shares[0] + 0.1 < weights[0] < 0.95
    np.testing.assert_allclose(weights, mixture(person, prior.components, 1.0).weights)
    mean, covariance = np.zeros(n_features), np.zeros((n_features, n_features))
    for weight, one in zip(weights, prior.components, strict=True):
        scatter = one.moment - np.outer(one.mean, one.mean)
        mean = mean + weight * one.mean
        covariance += weight**2 / one.n_tasks * scatter
    np.testing.assert_allclose(crowd.mean, mean, atol=1e-12)
    unit = mean / np.linalg.norm(mean)
    np.testing.assert_allclose(crowd.mean_direction, unit, atol=1e-12)
    across = np.eye(n_features) - np.outer(unit, unit)
    size = np.trace(across @ covariance @ across) / (mean @ mean)
    psi = crowd.psi("tangent")
    assert (n_features - 1) * psi.identity == pytest.approx(size)
    assert psi.along == -psi.identity


def test_means_of_fresh_crowds_vary_as_psi_says():
    """Of someone too unsure to prefer a component: weights are then their shares."""
    rng = np.random.default_rng(80)
    d, centre = 6, np.array([0.8, 0.6, 0.0, 0.0, 0.0, 0.0])
    person = direction_of(_spectrum.identity((d,)), np.eye(d)[0], np.full(2, 4.0), 1.0)
    person = person._replace(noise=np.asarray(1e9))
    directions, predicted = [], []
    for _ in range(600):
        W = [
            draw_directions(12, d, 15.0, random_state=rng),
            draw_directions(25, d, 8.0, mean_direction=centre, random_state=rng),
        ]
        crowd, weights = meet(person, [TaskPrior.from_projections(part).crowd for part in W])
        np.testing.assert_allclose(weights, np.array([12.0, 25.0]) / 37.0, atol=1e-6)
        directions.append(crowd.mean_direction)
        predicted.append((d - 1) * crowd.psi("tangent").identity)
    spread = np.var(directions, axis=0).sum()
    # To the first order in 1/J; that of the covariance itself is (J - 1) / J.
    assert np.mean(predicted) == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize("isotropic", [False, True])
def test_strength_of_least_risk_is_least(isotropic):
    """Over draws from the posterior of strength 1 no other strength has less risk."""
    prior, person = setting(isotropic)
    rng = np.random.default_rng(81)
    sigma = person.sigma
    spread = person.noise * np.linalg.inv(sigma.dense())
    draws = []
    for weight, one in zip(
        mixture(person, prior.components, 1.0).weights, prior.components, strict=True
    ):
        scatter = one.dense_scatter
        left = scatter - scatter @ np.linalg.inv(scatter + spread) @ scatter
        normals = rng.normal(size=(round(50_000 * weight), 5))
        draws.append(posterior(person, one, 1.0).omega + normals @ np.linalg.cholesky(left).T)
    half_gaps = person.length * sigma.apply(np.concatenate(draws))

    def risk(strength):
        omega = mixture(person, prior.components, strength).omega
        return ndtr(-half_gaps @ omega / np.sqrt(omega @ sigma.apply(omega))).mean()

    chosen = float(mixture(person, prior.components, "risk").strength)
    risks = [risk(strength) for strength in np.logspace(-3.0, 3.0, 31)]
    assert risk(chosen) <= min(risks) + 2e-4


# -- what it is worth -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def accuracies(make_clusters):
    """Accuracy and forecast of the blends with one crowd, a mixture and the true cluster alone.

    Clusters lie 90 degrees apart and have equal shares; all targets of one crowd are blended at
    once.
    """

    @cache
    def simulate(n, kappa, n_crowds, n_clusters, n_tasks=100, d=10, n_targets=250):
        rng = np.random.default_rng(82)
        label = np.repeat([0, 1], n // 2)
        kappas = [kappa] * n_clusters
        sums = {}
        for place in range(n_crowds):
            sources = make_clusters(n_tasks, d, kappas, 2 * place)
            nu = make_clusters(n_targets, d, kappas, 2 * place + 1)
            X = rng.normal(size=(n_targets, n, d)) + np.where(label, 1, -1)[:, None] * nu[:, None]
            each = slice(None)
            crowds = [
                ("single", each, [TaskPrior.from_projections(sources).crowd]),
                ("mixture", each, MixturePrior.from_projections(sources).components),
            ]
            for cluster in range(n_clusters if n_clusters > 1 else 0):
                theirs = slice(cluster, None, n_clusters)
                prior = TaskPrior.from_projections(sources[theirs])
                crowds.append(("true", theirs, [prior.crowd]))
            for name, some, parts in crowds:
                people = learn_direction(ClassMoments.of(X[some], label), "oas", np.ones(d))
                for kind, (omega, dof, *_) in both_blends(people, parts).items():
                    gap, shift = np.vecdot(omega, nu[some]), np.vecdot(omega, people.midpoint)
                    size = np.linalg.vector_norm(omega, axis=-1)
                    truth = (ndtr((gap + shift) / size) + ndtr((gap - shift) / size)) / 2.0
                    off = forecast(people, omega, dof).accuracy - truth
                    numbers = ndtr(gap / size).mean(), truth.mean(), off.mean()
                    sums.setdefault((kind, name), []).append(numbers)
        return {key: np.array(values) for key, values in sums.items()}

    return simulate


def both_blends(people, crowds):
    """The posterior and the convex blend, and the first as if its weights did not follow noise."""
    blend = posterior(people, crowds[0]) if len(crowds) == 1 else mixture(people, crowds)
    held = blend._replace(dof=blend.alpha * people.sigma.n_features)
    crowd = crowds[0] if len(crowds) == 1 else meet(people, crowds)[0]
    return {"posterior": blend, "weights held": held, "convex": convex(people, crowd)}


def test_mixture_closes_half_of_the_gap_to_the_true_cluster(accuracies):
    """Two clusters, kappa 50, 90 degrees apart, d = 10, n = 10, J = 100.

    Accuracy of the direction about the true midpoint, then of the rule, then how far off its
    forecast is; printed with ``pytest -s``.
    """
    found = accuracies(10, 50.0, 16, 2)
    for (kind, name), numbers in found.items():
        print(kind, name, *(f"{number:.4f}" for number in numbers.mean(0)))
    closed, gains = {}, {}
    for kind in ("posterior", "convex"):
        single, several, true = (
            found[kind, name][:, 1].mean() for name in ("single", "mixture", "true")
        )
        gains[kind] = several - single
        closed[kind] = gains[kind] / (true - single)
        assert gains[kind] > 0.004
    print(f"closed: {closed}")
    assert closed["posterior"] > 0.5
    assert closed["convex"] > 0.8
    assert gains["convex"] > 2.0 * gains["posterior"]


@pytest.mark.parametrize("kappa", [1.0, 10.0, 1000.0])
@pytest.mark.parametrize(("n_tasks", "d"), [(35, 9), (100, 10)])
def test_one_cluster_costs_next_to_nothing(accuracies, kappa, n_tasks, d):
    found = accuracies(10, kappa, 4, 1, n_tasks=n_tasks, d=d, n_targets=100)
    for kind in ("posterior", "convex"):
        lost = found[kind, "single"][:, 1] - found[kind, "mixture"][:, 1]
        assert lost.mean() < 0.003


@pytest.mark.parametrize("n", [4, 10, 20])
def test_forecast_is_right_on_average(accuracies, n):
    """With few samples a target is unsure of its cluster, and the weights follow its noise."""
    found = accuracies(n, 50.0, 16 if n == 10 else 8, 2)
    for kind in ("posterior", "convex"):
        off = found[kind, "mixture"][:, 2].mean()
        print(f"n={n} {kind}: forecast off by {off:+.3f}")
        assert abs(off) < 0.03
    if n == 4:
        held = found["weights held", "mixture"][:, 2].mean()
        assert held > found["posterior", "mixture"][:, 2].mean() + 0.02

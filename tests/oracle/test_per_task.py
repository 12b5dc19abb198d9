"""One weight for each source: formulas against other ways to them, promises by simulation."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtr
from scipy.stats import multivariate_normal

from crossfade import TaskPrior
from crossfade.blend import convex, per_task
from crossfade.blend._per_task import _at, _mix
from crossfade.fisher._direction import learn_direction
from crossfade.fisher._moments import ClassMoments
from crossfade.risk._forecast import forecast
from crossfade.simulate import draw_directions


def target_of(rng, nu, n):
    """Target of one half gap or of many, with covariance one and n samples."""
    label = np.repeat([0, 1], n // 2)
    X = rng.normal(size=(*nu.shape[:-1], n, nu.shape[-1]))
    X += np.where(label, 1, -1)[:, None] * nu[..., None, :]
    return learn_direction(ClassMoments.of(X, label), "oas", np.ones(nu.shape[-1]))


def blend_at(person, directions, penalty):
    """Blend of a given penalty on unequal weights, with the alpha of least expected risk."""
    return _at(person, directions, np.full(person.length.shape, penalty), None)[0]


def clusters_of(rng, centres, kappa, n_directions):
    """Directions around centres that are equally likely."""
    which = rng.integers(len(centres), size=n_directions)
    drawn = [
        draw_directions(n_directions, centres.shape[1], kappa, mean_direction=c, random_state=rng)
        for c in centres
    ]
    return np.stack(drawn)[which, np.arange(n_directions)]


@pytest.mark.parametrize("penalty", [0.5, 4.0, 50.0])
def test_weights_minimise_misfit_plus_penalty_on_the_simplex(penalty):
    """Equation 36 by a general solver."""
    rng = np.random.default_rng(91)
    W = draw_directions(6, 4, 3.0, random_state=rng)
    target = target_of(rng, W[0], 12)
    blend = blend_at(target, W, penalty)
    off = target.omega - W
    misfit = np.einsum("jd,de,je->j", off, target.sigma.dense(), off) / (2 * target.noise)

    def cost(p):
        return p @ misfit + penalty * p @ np.log(np.maximum(6.0 * p, 1e-300))

    found = minimize(
        cost,
        np.full(6, 1 / 6),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * 6,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0},
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert cost(blend.weights) <= found.fun + 1e-9
    np.testing.assert_allclose(blend.weights, found.x, atol=2e-4)


def test_ends_of_the_penalty():
    """One is Bayes' rule with the sources as the only candidates; infinity leaves all alike."""
    rng = np.random.default_rng(92)
    W = draw_directions(30, 5, 3.0, random_state=rng)
    target = target_of(rng, W[0], 10)
    noise = target.noise * np.linalg.inv(target.sigma.dense())
    chance = np.array([multivariate_normal(w, noise).pdf(target.omega) for w in W])
    bayes = blend_at(target, W, 1.0)
    np.testing.assert_allclose(bayes.weights, chance / chance.sum(), rtol=1e-8)
    even = blend_at(target, W, np.inf)
    np.testing.assert_allclose(even.weights, 1 / 30, rtol=1e-12)
    np.testing.assert_allclose(even.source, W.mean(0), atol=1e-15)


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("penalty", [np.inf, 8.0, 1.0])
@pytest.mark.parametrize("n_tasks", [3, 40])
def test_trace_is_that_of_the_derivative(n_tasks, penalty, far):
    """The weights' own dependence on the target included, for members and for strangers."""
    rng = np.random.default_rng(93)
    W = draw_directions(n_tasks, 6, 4.0, random_state=rng)
    target = target_of(rng, W[0], 14)
    if far:
        target = target._replace(omega=-W.mean(0), noise=target.noise / 50)

    def omega(own):
        return blend_at(target._replace(omega=own), W, penalty).omega

    own, step = target.omega, 1e-5
    slopes = [(omega(own + step * e) - omega(own - step * e)) @ e / (2 * step) for e in np.eye(6)]
    assert blend_at(target, W, penalty).dof == pytest.approx(sum(slopes), rel=1e-6)


@pytest.mark.parametrize(("kappa", "n_tasks"), [(0.0, 8), (4.0, 8), (30.0, 8), (4.0, 60)])
def test_expected_distance_of_a_newcomer_from_the_shortened_mean(kappa, n_tasks):
    """tau of equation 37, with equal weights: the mean's own noise and its shortening included."""
    rng = np.random.default_rng(94)
    target = target_of(rng, np.eye(5)[0], 2)  # below three samples Sigma is the identity
    found = np.empty((3000, 2))
    W = draw_directions(3000 * (n_tasks + 1), 5, kappa, random_state=rng)
    for pair, sources in zip(found, W.reshape(3000, n_tasks + 1, 5), strict=True):
        mix = _mix(sources[:1], sources[1:], target, np.array(np.inf))
        doubt = mix.scatter[0] / n_tasks
        pair[0] = mix.distance[0]
        pair[1] = mix.spread[0] + (1.0 + mix.kept[0]) * doubt
    seen, expected = found.mean(0)
    error = (found[:, 0] - found[:, 1]).std() / np.sqrt(3000)
    print(f"kappa {kappa:g}, J {n_tasks}: {seen:.3f} seen, {expected:.3f} expected")
    # How much of the mean is kept is an estimate, and not independent of the rest.
    assert abs(seen - expected) < 0.03 * seen + 3.0 * error


def test_risk_is_the_mean_over_the_posterior():
    """Equation 37 against draws of the true direction; the least risk is at the blend's alpha."""
    rng = np.random.default_rng(95)
    W = draw_directions(40, 6, 15.0, random_state=rng)
    target = target_of(rng, W[0], 10)
    blend = per_task(target, W)
    alphas, risks = blend.choice.alphas, blend.choice.risks
    sigma = target.sigma.dense()
    _, doubt = _at(target, W, blend.penalty, None)
    root = np.linalg.cholesky(doubt * np.linalg.inv(sigma))
    truth = blend.omega + rng.normal(size=(200_000, 6)) @ root.T
    rules = alphas[:, None] * target.omega + (1 - alphas)[:, None] * blend.source
    gaps = target.length * rules @ sigma @ truth.T
    sizes = np.sqrt(np.einsum("ad,de,ae->a", rules, sigma, rules))
    np.testing.assert_allclose(risks, ndtr(-gaps / sizes[:, None]).mean(1), atol=0.002)
    fine = per_task(target, W, alphas=np.linspace(0.0, 1.0, 2001)).choice
    assert blend.alpha == pytest.approx(fine.alphas[fine.risks.argmin()], abs=6e-4)


#: Name: centres of the clusters, their concentration, share of sources that point anywhere.
CROWDS = {
    "no agreement": (np.eye(10)[:1], 1.0, 0.0),
    "one cluster": (np.eye(10)[:1], 10.0, 0.0),
    "one narrow cluster": (np.eye(10)[:1], 50.0, 0.0),
    "two clusters": (np.eye(10)[:2], 50.0, 0.0),
    "six clusters": (np.eye(10)[:6], 100.0, 0.0),
    "a quarter outliers": (np.eye(10)[:1], 30.0, 0.25),
}
#: (n_samples, n_tasks)
BUDGETS = [(4, 50), (10, 10), (10, 50), (40, 50)]
N_CROWDS = 8


@cache
def simulate(crowd, n, n_tasks):
    """Accuracy of the average, of equal weights, of per-task weights and its forecast, by crowd."""
    centres, kappa, stray = CROWDS[crowd]
    rng = np.random.default_rng([96, n, n_tasks])
    rows = []
    for _ in range(N_CROWDS):
        W = clusters_of(rng, centres, kappa, n_tasks)
        n_stray = int(stray * n_tasks)
        W[:n_stray] = draw_directions(max(n_stray, 1), 10, 0.0, random_state=rng)[:n_stray]
        nu = clusters_of(rng, centres, kappa, 30)
        target, prior = target_of(rng, nu, n), TaskPrior.from_projections(W)
        average, even, blend = (
            convex(target, prior.crowd),
            blend_at(target, W, np.inf),
            per_task(target, W),
        )
        truths = [accuracy(one.omega, target, nu) for one in (average, even, blend)]
        rows.append([*truths, forecast(target, blend.omega, blend.dof).accuracy.mean()])
    return np.array(rows).T


def accuracy(omega, target, nu):
    omega = omega / np.linalg.norm(omega, axis=-1, keepdims=True)
    shift = np.vecdot(omega, target.midpoint)
    gap = np.vecdot(omega, nu)
    return (ndtr(gap - shift) + ndtr(gap + shift)).mean() / 2.0


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("crowd", CROWDS)
def test_never_worse_than_the_average_by_more_than_noise(crowd, budget):
    average, even, each, _ = simulate(crowd, *budget)
    gain = each - average
    error = gain.std(ddof=1) / np.sqrt(N_CROWDS)
    print(
        f"{crowd}, n={budget[0]}, J={budget[1]}: average {average.mean():.3f}, equal weights "
        f"{even.mean():.3f}, per task {each.mean():.3f}, gain {gain.mean():+.4f} +- {error:.4f}"
    )
    assert gain.mean() > -2.0 * error - 0.002
    if len(CROWDS[crowd][0]) == 1 and not CROWDS[crowd][2]:
        # And weights that differ cost nothing where there is nothing to tell apart.
        assert (each - even).mean() > -0.002


@pytest.mark.parametrize("crowd", ["two clusters", "six clusters"])
def test_better_where_there_are_clusters(crowd):
    for budget, least in (((4, 50), 0.02), ((10, 50), 0.02), ((40, 50), 0.005)):
        average, even, each, _ = simulate(crowd, *budget)
        assert (each - average).mean() > least
        assert (each - even).mean() > least / 2


@pytest.mark.parametrize("crowd", ["one cluster", "two clusters", "six clusters"])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_forecast_is_right_on_average(crowd, budget):
    _, _, each, promised = simulate(crowd, *budget)
    off = promised - each
    print(f"{crowd}, n={budget[0]}, J={budget[1]}: forecast off by {off.mean():+.3f}")
    assert abs(off.mean()) < 0.03 + 2.0 * off.std(ddof=1) / np.sqrt(N_CROWDS)

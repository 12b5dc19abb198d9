"""What more labels would bring (equation 46): formula against draws, promise against fits."""

import numpy as np
import pytest
from scipy.special import ndtr

from crossfade import (
    ConvexBlendClassifier,
    PosteriorBlendClassifier,
    TaskPrior,
    forecast_labels,
)
from crossfade.blend._labels import _ConvexCrowd, _reach
from crossfade.blend._posterior import path_of
from crossfade.simulate import draw_directions

#: Curves begin with fewer labels than there are, which is said.
pytestmark = pytest.mark.filterwarnings("ignore:The blend has")

BLENDS = {"posterior": PosteriorBlendClassifier, "convex": ConvexBlendClassifier}
BUDGETS = np.array([4, 16, 64])


def spoilt(n_features, n_each, seed, isotropic=False):
    """A prior, and samples of a target with an uneven covariance."""
    rng = np.random.default_rng(seed)
    prior = TaskPrior.from_projections(
        draw_directions(40, n_features, 5.0, random_state=rng), isotropic=isotropic
    )
    y = np.repeat([0, 1], n_each)
    X = rng.normal(size=(y.size, n_features)) * np.linspace(0.5, 1.5, n_features)
    X[:, 0] += 2.0 * y
    return prior, X, y


@pytest.mark.parametrize(("n_features", "isotropic"), [(4, False), (4, True), (12, True)])
@pytest.mark.parametrize("convex", [False, True])
def test_reach_is_the_ratio_of_means_over_draws(n_features, isotropic, convex):
    """Draw the best direction from its posterior, a new own direction about it, and blend."""
    prior, X, y = spoilt(n_features, (4, 4), 91, isotropic)
    person = PosteriorBlendClassifier(prior).fit(X, y)._fit.person
    path, noises = path_of(person, prior.crowd), np.array([0.5, 0.05])
    crowd = _ConvexCrowd(prior.mean_direction, 0.3) if convex else None
    found = _reach(path, person.sigma, np.ones(()), noises, crowd, person.rank)

    sigma, inverse = person.sigma.dense(), np.linalg.inv(person.sigma.dense())
    mean, scatter, own = prior.mean, prior.scatter, person.omega
    pull = scatter @ np.linalg.inv(scatter + float(path.noise) * inverse)
    rng = np.random.default_rng(92)
    best = rng.multivariate_normal(mean + pull @ (own - mean), scatter - pull @ scatter, 200_000)
    for reach, noise in zip(found, noises, strict=True):
        new = best + rng.multivariate_normal(np.zeros(n_features), noise * inverse, len(best))
        if convex:
            blends = 0.3 * new + 0.7 * prior.mean_direction
        else:
            pull = scatter @ np.linalg.inv(scatter + noise * inverse)
            blends = mean + (new - mean) @ pull.T
        gap = np.vecdot(blends @ sigma, best).mean()
        assert reach == pytest.approx(gap / np.sqrt(np.vecdot(blends @ sigma, blends).mean()), 0.01)


def test_alpha_of_convex_blends_reaches_furthest():
    prior, X, y = spoilt(5, (4, 4), 93)
    person = PosteriorBlendClassifier(prior).fit(X, y)._fit.person
    options = (path_of(person, prior.crowd), person.sigma, np.ones(()), np.array([0.7, 0.07]))
    best = _reach(*options, _ConvexCrowd(prior.mean_direction, None), person.rank)
    grid = [
        _reach(*options, _ConvexCrowd(prior.mean_direction, alpha), person.rank)
        for alpha in np.linspace(0.0, 1.0, 1001)
    ]
    np.testing.assert_allclose(best, np.max(grid, axis=0), rtol=1e-6)


def simulate(blend, n, kappa, repeats=200, n_features=10, second=0.5):
    """Forecasts from n samples, and true accuracies of fits to others; J = 100."""
    rng = np.random.default_rng(94)
    numbers = np.empty((3, repeats, BUDGETS.size))
    crowds = draw_directions(101 * repeats, n_features, kappa, random_state=rng)
    for repeat, W in enumerate(crowds.reshape(repeats, 101, n_features)):
        nu, prior = W[0], TaskPrior.from_projections(W[1:])

        def fit(n_samples, nu=nu, prior=prior):
            y = np.arange(n_samples) % 2
            X = rng.normal(size=(n_samples, n_features)) + np.where(y, 1.0, -1.0)[:, None] * nu
            return blend(prior, class_prior=(1.0 - second, second)).fit(X, y)

        promised = forecast_labels(fit(n), BUDGETS)
        numbers[1:, repeat] = promised.accuracy, promised.error
        for place, budget in enumerate(BUDGETS):
            rule = fit(2 * budget)
            omega, shift = rule.coef_[0], rule.intercept_[0]
            sides = (omega @ nu + np.array([shift, -shift])) / np.linalg.norm(omega)
            numbers[0, repeat, place] = ndtr(sides) @ [second, 1.0 - second]
    return numbers


@pytest.mark.parametrize(
    ("name", "n", "kappa", "lowest"),
    [
        ("posterior", 8, 10.0, -0.04),
        ("posterior", 20, 10.0, -0.03),
        ("convex", 20, 10.0, -0.03),
        ("posterior", 8, 1.0, -0.07),
    ],
)
def test_promise_is_kept_on_average(name, n, kappa, lowest):
    """Within 0.04 where the crowd knows something; too low, not too high, where it knows little."""
    truth, promised, error = simulate(BLENDS[name], n, kappa)
    off = promised - truth
    for place, budget in enumerate(BUDGETS):
        print(
            f"n={n} kappa={kappa:g} {name}, {budget} each: accuracy {truth[:, place].mean():.3f}, "
            f"forecast off by {off[:, place].mean():+.3f}, spread "
            f"{np.sqrt((off[:, place] ** 2).mean()):.3f}, error {error[:, place].mean():.3f}"
        )
    assert (off.mean(0) > lowest).all()
    assert (off.mean(0) < 0.03).all()
    ratio = np.sqrt((error**2).mean(0) / (off**2).mean(0))
    assert (ratio > 1 / 1.5).all()
    assert (ratio < 1.5).all()


@pytest.mark.parametrize("name", BLENDS)
@pytest.mark.parametrize("second", [0.2, 0.95])
def test_promise_for_unequal_classes_is_kept_on_average(name, second):
    """Closer than with equal classes, since the likelier one is right without any window."""
    truth, promised, error = simulate(BLENDS[name], 8, 10.0, 120, second=second)
    off = promised - truth
    for place, budget in enumerate(BUDGETS):
        print(
            f"share {second} {name}, {budget} each: accuracy {truth[:, place].mean():.3f}, "
            f"forecast off by {off[:, place].mean():+.3f}, spread "
            f"{np.sqrt((off[:, place] ** 2).mean()):.3f}, error {error[:, place].mean():.3f}"
        )
    # A score that is shrunk is a little too low for more samples, and never far too high.
    assert (off.mean(0) < 0.02).all()
    assert (off.mean(0) > -0.025).all()
    ratio = np.sqrt((error**2).mean(0) / (off**2).mean(0))
    assert (ratio > 1 / 1.5).all()
    # Of twenty samples nineteen are of one class: there it is wider than need be.
    assert (ratio < (2.0 if second == 0.95 else 1.5)).all()

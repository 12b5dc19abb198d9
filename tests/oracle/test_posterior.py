"""The posterior blend against textbook conditional means, and how it picks its strength."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import multivariate_normal

from crossfade import FisherDiscriminant, PosteriorBlendClassifier, TaskPrior
from crossfade.blend._posterior import path_of, posterior_direction
from crossfade.fisher import ClassMoments, Spectrum, direction_of, from_dense, learn_direction
from crossfade.prior import Crowd
from crossfade.simulate import draw_directions


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def crowd(rng, n_features, kappa, n_tasks):
    """Unit directions about the first axis, the first of them the target's."""
    return draw_directions(n_tasks + 1, n_features, kappa, random_state=rng)


def samples(rng, nu, n):
    label = np.repeat([0, 1], n // 2)
    return rng.normal(size=(n, nu.size)) + np.where(label, 1, -1)[:, None] * nu, label


def accuracy(rule, nu):
    """Accuracy of a rule on balanced classes at +nu and -nu with covariance one."""
    weights, shift = rule.coef_[0], rule.intercept_[0]
    scores = (weights @ nu + np.array([shift, -shift])) / np.linalg.norm(weights)
    return ndtr(scores).mean()


def target_of(X, y, prior, shrinkage):
    """Own unit direction, covariance, noise and length, by the formulas as they stand."""
    scale = prior.feature_scale
    plain = FisherDiscriminant(shrinkage=shrinkage, feature_scale=scale).fit(X, y)
    sigma, nu, r = plain.covariance_, plain.half_gap_, plain.shrinkage_
    own = np.linalg.solve(sigma, nu)
    counts = np.bincount(y)
    c = (1.0 / counts[0] + 1.0 / counts[1]) / 4.0
    noise = c + (1.0 - r) ** 2 / max(counts.sum() - 2, 1) * (nu @ own)
    length = np.linalg.norm(own)
    return own / length, sigma, noise / length**2, length


def person_of(X, y):
    """The same from the package; priors here are in raw units."""
    return learn_direction(ClassMoments.of(X, y), "oas", np.ones(X.shape[1]))


@pytest.mark.parametrize("strength", [0.0, 0.2, 1.0, 30.0, 1e6])
@pytest.mark.parametrize("isotropic", [False, True])
@pytest.mark.parametrize(("n_features", "n"), [(6, 30), (6, 4), (30, 10)])
def test_blend_is_the_conditional_mean_of_a_joint_normal(strength, isotropic, n_features, n):
    """m + l T (l T + a S^-1)^-1 (own - m), by plain linear algebra; equation 22."""
    rng = np.random.default_rng(51)
    W = crowd(rng, n_features, 8.0, 25)
    prior = TaskPrior.from_projections(W[1:], isotropic=isotropic)
    X, y = samples(rng, W[0], n)
    blend = PosteriorBlendClassifier(prior, strength=strength).fit(X, y)
    own, sigma, noise, _ = target_of(X, y, prior, "oas")
    wide = strength * prior.scatter
    weight = wide @ np.linalg.inv(wide + noise * np.linalg.inv(sigma))
    omega = prior.mean + weight @ (own - prior.mean)
    np.testing.assert_allclose(blend.projection_, unit(omega), atol=1e-8)
    assert blend.alpha_ == pytest.approx(np.trace(weight) / n_features, abs=1e-8)
    assert blend.strength_ == strength


def test_ends_are_the_crowd_and_the_person():
    rng = np.random.default_rng(52)
    W = crowd(rng, 5, 8.0, 25)
    prior = TaskPrior.from_projections(W[1:])
    X, y = samples(rng, W[0], 20)
    ends = [PosteriorBlendClassifier(prior, strength=s).fit(X, y) for s in (0.0, 1e9, np.inf)]
    np.testing.assert_allclose(ends[0].projection_, prior.mean_direction, atol=1e-12)
    own = FisherDiscriminant(feature_scale=None).fit(X, y).projection_
    np.testing.assert_allclose(ends[1].projection_, own, atol=1e-6)
    np.testing.assert_allclose(ends[2].projection_, own, atol=1e-12)


def joint_model(isotropic):
    """Scatter, covariance within classes and noise of a made-up model."""
    rng = np.random.default_rng(53)
    factor = rng.normal(size=(4, 4))
    scatter = 0.05 * np.eye(4) if isotropic else 0.02 * factor @ factor.T + 0.02 * np.eye(4)
    sigma = np.diag([2.0, 1.0, 0.5, 0.25]) + 0.1
    return np.array([0.6, 0.2, 0.0, -0.1]), scatter, sigma, 0.06


def joint_parts(isotropic, own):
    """People with these own directions, and the crowd, of the made-up model."""
    mean, scatter, sigma, noise = joint_model(isotropic)
    batch = own.shape[:-1]
    spectrum = from_dense(np.broadcast_to(sigma, (*batch, 4, 4)))
    people = direction_of(spectrum, own, np.array([5.0, 5.0]), 1.0)
    people = people._replace(omega=own, noise=np.full(batch, noise), length=np.full(batch, 1.7))
    crowd = Crowd(10.0, mean, unit(mean), np.linalg.norm(mean), np.asarray(0.5))
    crowd.__dict__["scatter"] = (
        Spectrum(np.empty(0), np.empty((4, 0)), np.asarray(scatter[0, 0]))
        if isotropic
        else from_dense(scatter)
    )
    return people, crowd


def blends(isotropic, own, strength):
    """Directions of the blend."""
    return posterior_direction(*joint_parts(isotropic, own), strength)[0]


@pytest.mark.parametrize("isotropic", [False, True])
def test_blend_has_the_least_mean_squared_error(isotropic):
    """Over draws of the truth and of the person's own estimate no other strength does better."""
    rng = np.random.default_rng(54)
    mean, scatter, sigma, noise = joint_model(isotropic)
    truth = mean + rng.normal(size=(20_000, 4)) @ np.linalg.cholesky(scatter).T
    spread = np.linalg.cholesky(noise * np.linalg.inv(sigma))
    own = truth + rng.normal(size=(20_000, 4)) @ spread.T
    errors = {}
    for strength in (0.0, 0.5, 1.0, 2.0, 1e6):
        omega = blends(isotropic, own, strength)
        errors[strength] = ((omega - truth) ** 2).sum(1)
    for strength in (0.0, 0.5, 2.0, 1e6):
        excess = errors[strength] - errors[1.0]
        assert excess.mean() > 4.0 * excess.std() / np.sqrt(excess.size)
    # What is left does not depend on the person's own direction: nothing more can be learnt.
    left = blends(isotropic, own, 1.0) - truth
    slope = left.T @ (own - mean) / len(own)
    standard_error = np.sqrt(np.outer(left.var(0), own.var(0)) / len(own))
    assert (np.abs(slope) < 4.5 * standard_error).all()


@pytest.mark.parametrize("isotropic", [False, True])
def test_closed_form_of_the_posterior_risk_is_the_mean_over_draws(isotropic):
    """E Phi(-N(a, b^2)) = Phi(-a / sqrt(1 + b^2)): no draws are needed; equation 24."""
    rng = np.random.default_rng(55)
    mean, scatter, sigma, noise = joint_model(isotropic)
    own = np.array([0.2, -0.3, 0.5, 0.1])
    people, about = joint_parts(isotropic, own)
    strengths = np.array([0.0, 0.1, 1.0, 10.0, 1000.0])
    risks = path_of(people, about).risks(strengths, people.sigma, people.length)
    weight = scatter @ np.linalg.inv(scatter + noise * np.linalg.inv(sigma))
    doubt = scatter - weight @ scatter
    drawn = mean + weight @ (own - mean)
    drawn = drawn + rng.normal(size=(200_000, 4)) @ np.linalg.cholesky(doubt).T
    half_gaps = 1.7 * drawn @ sigma
    for strength, risk in zip(strengths, risks, strict=True):
        omega = blends(isotropic, own, float(strength))
        mistakes = ndtr(-half_gaps @ omega / np.sqrt(omega @ sigma @ omega))
        assert abs(mistakes.mean() - risk) < 4.0 * mistakes.std() / np.sqrt(mistakes.size)


@pytest.mark.parametrize("isotropic", [False, True])
@pytest.mark.parametrize("n", [4, 40])
def test_strength_of_least_risk_is_least(isotropic, n):
    rng = np.random.default_rng(56)
    for _ in range(20):
        W = crowd(rng, 9, 20.0, 15)
        prior = TaskPrior.from_projections(W[1:], isotropic=isotropic)
        X, y = samples(rng, W[0], n)
        chosen = PosteriorBlendClassifier(prior, strength="risk").fit(X, y).strength_
        person = person_of(X, y)
        path = path_of(person, prior.law.directions)
        grid = np.concatenate([[0.0], np.logspace(-5.0, 7.0, 2001)])
        risks = path.risks(grid, person.sigma, person.length)
        there = path.risks(np.array([chosen]), person.sigma, person.length)
        assert there[0] <= risks.min() + 1e-5


@pytest.mark.parametrize("isotropic", [False, True])
@pytest.mark.parametrize(("n_features", "n"), [(4, 20), (12, 6)])
def test_evidence_is_the_density_of_the_own_direction(isotropic, n_features, n):
    rng = np.random.default_rng(57)
    W = crowd(rng, n_features, 8.0, 25)
    prior = TaskPrior.from_projections(W[1:], isotropic=isotropic)
    X, y = samples(rng, W[0], n)
    own, sigma, noise, _ = target_of(X, y, prior, "oas")
    path = path_of(person_of(X, y), prior.law.directions)
    strengths = np.array([1.0, 3.0, 50.0, 1e4])
    truth = [
        multivariate_normal.logpdf(
            own, prior.mean, strength * prior.scatter + noise * np.linalg.inv(sigma)
        )
        for strength in strengths
    ]
    evidence = path.evidence(strengths)
    np.testing.assert_allclose(evidence - evidence[0], np.array(truth) - truth[0], rtol=1e-7)


def outcomes(n, kappa, repeats, sign, strengths=("auto", 1.0)):
    """Chosen strengths, accuracies of the blends, and accuracy of the person alone; d = 10."""
    rng = np.random.default_rng(58)
    chosen, accuracies = [], []
    for _ in range(repeats):
        W = crowd(rng, 10, kappa, 100)
        nu = sign * W[0]
        prior = TaskPrior.from_projections(W[1:])
        X, y = samples(rng, nu, n)
        fits = [PosteriorBlendClassifier(prior, strength=s).fit(X, y) for s in strengths]
        fits.append(PosteriorBlendClassifier(prior, strength=np.inf).fit(X, y))
        chosen.append(fits[0].strength_)
        accuracies.append([accuracy(fit, nu) for fit in fits])
    return np.array(chosen), np.array(accuracies)


@pytest.mark.parametrize("kappa", [1.0, 10.0, 1000.0])
@pytest.mark.parametrize("n", [20, 100])
def test_auto_trusts_a_crowd_that_is_right(kappa, n):
    """Few targets that belong to the crowd are taken for strangers, at little cost.

    None at kappa = 1, about one in a hundred at 10, one in ten at 1000, where a noisy direction of
    unit length looks like a contradiction.
    """
    chosen, accuracies = outcomes(n, kappa, 200, 1.0)
    lost = accuracies[:, 1] - accuracies[:, 0]
    strangers = (chosen > 1.0).mean()
    print(f"kappa={kappa:g} n={n}: strength above 1 for {strangers:.3f}, costs {lost.mean():.4f}")
    assert strangers < 0.17
    assert lost.mean() < 0.003


@pytest.mark.parametrize(("n", "behind"), [(20, 0.06), (100, 0.004)])
def test_auto_leaves_a_crowd_that_is_wrong(n, behind):
    """A concentrated crowd that points the other way: strength 1 follows it, auto does not.

    With 100 samples next to nothing is lost against the person alone; with 20 about 0.04.
    """
    chosen, accuracies = outcomes(n, 1000.0, 100, -1.0)
    assert (chosen > 1.0).mean() > 0.95
    assert np.median(chosen) > 100.0
    auto, trusting, alone = accuracies.mean(0)
    print(f"n={n}: auto {auto:.3f}, strength 1 {trusting:.3f}, person alone {alone:.3f}")
    assert trusting < 0.2
    assert auto > alone - behind


def test_least_risk_under_the_prior_does_not_leave_it():
    """Strength "risk" averages over the posterior of strength 1, so it cannot contradict it."""
    _, accuracies = outcomes(20, 1000.0, 50, -1.0, ("risk", 1.0))
    assert np.abs(accuracies[:, 0] - accuracies[:, 1]).max() < 0.05


@pytest.mark.parametrize(
    ("n_features", "n", "kappa", "gain", "optimism"),
    [(10, 4, 10.0, 0.010, 0.10), (10, 20, 1000.0, 0.002, 0.012), (100, 20, 10.0, -0.004, 0.2)],
)
def test_noise_is_not_projected_off_the_direction(n_features, n, kappa, gain, optimism):
    """With the projected form the blend takes over the length of the person's own direction.

    That is no more accurate anywhere, less so with few samples or a concentrated crowd, and its
    forecast is too high.
    """
    rng = np.random.default_rng(59)
    repeats = 1000 if n_features == 10 else 150
    rows = []
    for _ in range(repeats):
        W = crowd(rng, n_features, kappa, 100)
        nu = W[0]
        prior = TaskPrior.from_projections(W[1:])
        X, y = samples(rng, nu, n)
        own, sigma, noise, length = target_of(X, y, prior, "oas")
        inverse = np.linalg.inv(sigma)
        across = np.eye(n_features) - np.outer(own, own)
        means = np.array([X[y == 0].mean(0), X[y == 1].mean(0)])
        half_gap, midpoint = (means[1] - means[0]) / 2.0, means.mean(0)
        row = []
        for shape in (inverse, across @ inverse @ across):
            weight = prior.scatter @ np.linalg.inv(prior.scatter + noise * shape)
            omega = prior.mean + weight @ (own - prior.mean)
            gap = omega @ half_gap - np.trace(weight) / n / length
            forecast = ndtr(gap / np.sqrt(omega @ sigma @ omega))
            shift = np.array([1.0, -1.0]) * (omega @ midpoint)
            size = np.linalg.norm(omega)
            row.append(ndtr(omega @ nu / size))
            row.append(forecast - ndtr((omega @ nu + shift) / size).mean())
        rows.append(row)
    direction, off, direction_projected, off_projected = np.mean(rows, axis=0)
    print(f"d={n_features} n={n} kappa={kappa:g}:", np.mean(rows, axis=0).round(3))
    assert direction - direction_projected > gain
    assert abs(off) < 0.03
    assert off_projected > optimism

"""The expected risk of convex blends: the structured curve against the dense one, and draws."""

import numpy as np
import pytest

from crossfade import TaskPrior, choose_alpha
from crossfade.risk import risk_curve
from crossfade.simulate import draw_directions

ALPHAS = np.array([0.0, 0.001, 0.1, 0.5, 0.9, 1.0])
COUNTS, SHRINKAGE = np.array([7.0, 5.0]), 0.3


def covariance_of(kind, rng, n_features):
    """Covariance of full rank, of low rank, or of low rank plus a multiple of the identity."""
    n_rows = {"full": 4 * n_features, "deficient": 4 * n_features}.get(kind, n_features // 2)
    rows = rng.normal(size=(n_rows, n_features)) * np.exp(rng.normal(size=n_features))
    if kind == "deficient":
        # Features that sum to zero in groups of three, as shares of a spectrum do.
        groups = rows.reshape(n_rows, -1, 3)
        rows = (groups - groups.mean(-1, keepdims=True)).reshape(n_rows, -1)
    sigma = rows.T @ rows / n_rows
    if kind == "floor":
        sigma += 0.1 * np.trace(sigma) / n_features * np.eye(n_features)
    return sigma


def own_direction(nu, sigma):
    """Unit direction of a person and its covariance: equation 5, projected off the direction."""
    inverse = np.linalg.pinv(sigma, rcond=1e-10, hermitian=True)
    omega = inverse @ nu
    c = (1.0 / COUNTS).sum() / 4.0
    dof = COUNTS.sum() - 2.0
    estimated = nu @ omega * inverse + np.outer(omega, omega)
    raw = c * inverse + (1.0 - SHRINKAGE) ** 2 / dof * estimated
    across = np.eye(len(nu)) - np.outer(omega, omega) / (omega @ omega)
    return omega / np.linalg.norm(omega), across @ raw @ across / (omega @ omega)


@pytest.mark.parametrize("class_prior", [None, (0.8, 0.2), (0.05, 0.95)], ids=str)
@pytest.mark.parametrize("psi", ["tangent", "authors", "printed"])
@pytest.mark.parametrize("kind", ["full", "deficient", "low", "floor"])
@pytest.mark.parametrize("n_features", [9, 24])
def test_structured_curve_is_the_dense_one(kind, psi, n_features, class_prior):
    rng = np.random.default_rng(21)
    sigma = covariance_of(kind, rng, n_features)
    nu = sigma @ rng.normal(size=n_features)
    nu = nu / np.linalg.norm(nu)
    omega, own = own_direction(nu, sigma)
    mu = omega + 0.5 * rng.normal(size=n_features) / np.sqrt(n_features)
    W = draw_directions(
        12, n_features, 40.0, mean_direction=mu / np.linalg.norm(mu), random_state=rng
    )
    prior = TaskPrior.from_projections(W, normalize=True)
    source = prior.mean_direction, prior.standard_error(psi)
    truth = risk_curve(
        ALPHAS, target=(omega, own), source=source, nu=nu, sigma=sigma, class_prior=class_prior
    )
    given = {"half_gap": nu, "covariance": sigma, "n_samples": COUNTS, "shrinkage": SHRINKAGE}
    given |= {"psi": psi, "alphas": ALPHAS, "class_prior": class_prior}
    found = choose_alpha(prior, **given)
    np.testing.assert_allclose(found.risks, truth.risks, atol=2e-6)
    drawn = choose_alpha(prior, **given, method="monte_carlo", n_draws=20_000, random_state=0)
    # The standard error of a mean of 20,000 risks is at most 0.0036.
    np.testing.assert_allclose(drawn.risks, truth.risks, atol=0.015)


def test_classes_that_differ_where_there_is_no_variance_are_seen():
    sigma = np.diag([1.0, 1.0, 0.0])
    prior = TaskPrior.from_projections(np.tile([0.0, 0.0, 1.0], (5, 1)))
    found = choose_alpha(
        prior, half_gap=[0.3, 0.0, 1.0], covariance=sigma, n_samples=10, alphas=[0.0, 1.0]
    )
    # The crowd's direction has no variance and all the gap: it is never wrong.
    assert found.risks[0] == 0.0
    assert found.risks[1] > 0.3


def test_a_batch_is_one_person_after_the_other():
    rng = np.random.default_rng(23)
    rows = rng.normal(size=(5, 4, 12))
    sigma = rows.mT @ rows + 0.5 * np.eye(12)
    nu = rng.normal(size=(5, 12))
    prior = TaskPrior.from_projections(rng.normal(size=(20, 12)) + 0.5, normalize=True)
    shrinkage = np.linspace(0.0, 1.0, 5)
    whole = choose_alpha(
        prior, half_gap=nu, covariance=sigma, n_samples=4, shrinkage=shrinkage, alphas=ALPHAS
    )
    for place in range(5):
        one = choose_alpha(
            prior,
            half_gap=nu[place],
            covariance=sigma[place],
            n_samples=4,
            shrinkage=place / 4.0,
            alphas=ALPHAS,
        )
        np.testing.assert_allclose(whole.risks[place], one.risks, atol=1e-12)

"""The structured curve of blends against the dense one, and draws against both."""

import numpy as np
import pytest

from crossfade.fisher import _spectrum
from crossfade.fisher._direction import NOISE_FORMS, direction_of
from crossfade.prior._crowd import Psi
from crossfade.risk import expected_risk, risk_curve
from crossfade.risk._choose import dense_curve
from crossfade.risk._law import BlendLaw, curve, hidden_gap, sampled_curve

ALPHAS = np.array([0.0, 0.001, 0.1, 0.5, 0.9, 1.0])
PSIS = {
    "tangent": Psi(0.02, -0.02),
    "authors": Psi(0.15, 0.0),
    "printed": Psi(0.4, 0.0),
    "along": Psi(0.02, 0.3),
}


def unit(vector):
    return vector / np.linalg.norm(vector)


def spectrum_of(kind, rng, n_features):
    """Covariance of full rank, of low rank, or of low rank plus a multiple of the identity."""
    n_rows = {"full": 4 * n_features, "deficient": 4 * n_features}.get(kind, n_features // 2)
    rows = rng.normal(size=(n_rows, n_features)) * np.exp(rng.normal(size=n_features))
    if kind == "deficient":
        # Features that sum to zero in groups of three, as shares of a spectrum do.
        groups = rows.reshape(n_rows, -1, 3)
        rows = (groups - groups.mean(-1, keepdims=True)).reshape(n_rows, -1)
    sigma = _spectrum.from_rows(rows / np.sqrt(n_rows))
    if kind == "floor":
        level = np.asarray(0.1 * sigma.trace() / n_features)
        sigma = sigma.map(sigma.values + level, level)
    return sigma


def dense_covariance(person):
    """Covariance of a person's direction, written out."""
    inverse = np.linalg.pinv(person.sigma.dense(), rcond=1e-10, hermitian=True)
    across = inverse @ person.omega
    mixed = np.outer(person.omega, across)
    covariance = person.noise * inverse + person.radial * np.outer(person.omega, person.omega)
    covariance = covariance + person.cross * (mixed + mixed.T)
    return (covariance + covariance.T) / 2.0


@pytest.mark.parametrize("form", NOISE_FORMS)
@pytest.mark.parametrize("psi", PSIS)
@pytest.mark.parametrize("kind", ["full", "deficient", "low", "floor"])
@pytest.mark.parametrize("n_features", [9, 24])
def test_structured_curve_is_the_dense_one(kind, psi, form, n_features):
    rng = np.random.default_rng(21)
    sigma = spectrum_of(kind, rng, n_features)
    dense = sigma.dense()
    nu = sigma.apply(rng.normal(size=n_features))
    nu = nu / np.linalg.norm(nu)
    person = direction_of(sigma, nu, np.array([7.0, 5.0]), 0.3, form)
    mu = unit(unit(person.omega) + 0.5 * unit(rng.normal(size=n_features)))
    parts = PSIS[psi]
    law = BlendLaw(person, mu, parts)
    assert not hidden_gap(law)
    risks, errors = curve(law, ALPHAS)
    assert (errors < 1e-6).all()
    source = parts.identity * np.eye(n_features) + parts.along * np.outer(mu, mu)
    own = dense_covariance(person)
    truth = risk_curve(ALPHAS, target=(person.omega, own), source=(mu, source), nu=nu, sigma=dense)
    np.testing.assert_allclose(risks, truth.risks, atol=2e-6)
    other, _ = dense_curve(law, ALPHAS)
    np.testing.assert_allclose(risks, other, atol=2e-6)
    drawn, standard_errors = sampled_curve(law, ALPHAS, 20_000, np.random.default_rng(0))
    assert (np.abs(drawn - risks) <= 4.5 * standard_errors + 1e-6).all()


def test_unit_noise_is_the_raw_formula_over_the_length_projected_off():
    """The three numbers of a direction's covariance against equation 5 as it stands."""
    rng = np.random.default_rng(22)
    sigma = spectrum_of("full", rng, 6)
    dense = sigma.dense()
    nu = rng.normal(size=6)
    counts, r = np.array([4.0, 9.0]), 0.4
    omega = np.linalg.solve(dense, nu)
    inverse = np.linalg.inv(dense)
    c = (1.0 / 4.0 + 1.0 / 9.0) / 4.0
    raw = c * inverse + (1 - r) ** 2 / 11.0 * (nu @ omega * inverse + np.outer(omega, omega))
    across = np.eye(6) - np.outer(omega, omega) / (omega @ omega)
    truth = across @ raw @ across / (omega @ omega)
    person = direction_of(sigma, nu, counts, r)
    np.testing.assert_allclose(dense_covariance(person), truth, atol=1e-12)
    np.testing.assert_allclose(person.covariance(), truth, atol=1e-12)
    # Equation 6, on data scaled to |nu| = 1, in both signs.
    scaled = nu / np.linalg.norm(nu)
    dense_scaled = dense / (nu @ nu)
    inverse = np.linalg.inv(dense_scaled)
    omega = inverse @ scaled
    for form, sign in (("minus", -1.0), ("plus", 1.0)):
        raw = (1.0 + scaled @ omega) * inverse + sign * np.outer(omega, omega)
        person = direction_of(sigma, nu, counts, r, form)
        # In the original units the covariance of that unit vector is the same matrix.
        np.testing.assert_allclose(dense_covariance(person), raw / 13.0, rtol=1e-9)


def test_classes_that_differ_where_there_is_no_variance_are_seen():
    sigma = _spectrum.from_dense(np.diag([1.0, 1.0, 0.0]))
    nu = np.array([0.3, 0.0, 1.0])
    person = direction_of(sigma, nu, np.array([5.0, 5.0]), 0.0)
    law = BlendLaw(person, np.array([0.0, 0.0, 1.0]), Psi(0.0, 0.0))
    assert hidden_gap(law)
    risks, _ = dense_curve(law, np.array([0.0, 1.0]))
    # The crowd's direction has no variance and all the gap: it is never wrong.
    assert risks[0] == 0.0
    alone = expected_risk(
        person.omega, dense_covariance(person), nu=nu, sigma=np.diag([1.0, 1.0, 0.0])
    )
    assert risks[1] == pytest.approx(alone.risk, abs=2e-6)


def test_batches_of_laws_are_their_members():
    rng = np.random.default_rng(23)
    rows = rng.normal(size=(5, 4, 12))
    sigma = _spectrum.from_rows(rows)
    sigma = sigma.map(sigma.values + 0.5, np.full(5, 0.5))
    nu = rng.normal(size=(5, 12))
    counts = np.array([2.0, 2.0])
    people = direction_of(sigma, nu, counts, np.linspace(0.0, 1.0, 5))
    mu = unit(rng.normal(size=12))
    risks, _ = curve(BlendLaw(people, mu, PSIS["tangent"]), ALPHAS)
    for place in range(5):
        one = _spectrum.Spectrum(*(part[place] for part in sigma))
        alone = direction_of(one, nu[place], counts, place / 4.0)
        expected, _ = curve(BlendLaw(alone, mu, PSIS["tangent"]), ALPHAS)
        np.testing.assert_allclose(risks[place], expected, atol=1e-12)

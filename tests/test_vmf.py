"""Concentrations of the von Mises-Fisher distribution, from two dimensions to thousands."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import vonmises_fisher

from crossfade.prior import concentration_formula, concentration_mle, mean_resultant_length


def integrated_length(kappa, d):
    """Mean of the cosine by integration over its density."""
    t = (np.arange(400_000) + 0.5) / 200_000 - 1.0
    log_density = kappa * t + (d - 3.0) / 2.0 * np.log1p(-t * t)
    density = np.exp(log_density - log_density.max())
    return (t * density).sum() / density.sum()


@pytest.mark.parametrize("resultant", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("d", [2, 9, 1000])
def test_formula(resultant, d):
    expected = resultant * (d - resultant**2) / (1 - resultant**2)
    assert concentration_formula(resultant, d) == pytest.approx(expected)


@pytest.mark.parametrize("d", [2, 3, 5, 10])
@pytest.mark.parametrize("spread", [0.3, 2.0])
def test_mle_maximises_the_likelihood(d, spread):
    rng = np.random.default_rng(d)
    W = rng.normal(size=(40, d)) * spread
    W[:, 0] += 1.0
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    mean = W.mean(0)
    length = np.linalg.norm(mean)
    mu = mean / length

    def loss(log_kappa):
        return -vonmises_fisher(mu, np.exp(log_kappa)).logpdf(W).mean()

    best = minimize_scalar(loss, bounds=(-4.0, 6.0), method="bounded", options={"xatol": 1e-9})
    assert concentration_mle(length, d) == pytest.approx(np.exp(best.x), rel=1e-5)


@pytest.mark.parametrize("d", [3, 10, 70, 200, 1000])
@pytest.mark.parametrize("kappa", [0.5, 10.0, 300.0])
def test_length_is_the_integral_and_mle_its_inverse(d, kappa):
    length = mean_resultant_length(kappa, d)
    assert length == pytest.approx(integrated_length(kappa, d), rel=1e-6)
    assert concentration_mle(length, d) == pytest.approx(kappa, rel=1e-9)


@pytest.mark.parametrize("d", [2, 3, 10, 1000])
@pytest.mark.parametrize("distance", [1e-3, 1e-5, 3e-7])
def test_mle_where_directions_nearly_agree(d, distance):
    kappa = concentration_mle(1.0 - distance, d)
    # The leading terms of the asymptotic series of 1 - A_d, good where kappa is far above d^2.
    assert mean_resultant_length(kappa, d) == pytest.approx(1.0 - distance, abs=1e-12)
    if kappa > 100.0 * d * d:
        series = (d - 1) / (2 * kappa) - (d - 1) * (d - 3) / (8 * kappa**2)
        assert series == pytest.approx(distance, rel=1e-4)


@pytest.mark.parametrize("kappa", [1e-5, 3.0, 1e4, 5e7])
def test_length_in_three_dimensions_has_all_its_digits(kappa):
    expected = 1.0 / np.tanh(kappa) - 1.0 / kappa if kappa > 1e-3 else kappa / 3.0
    assert mean_resultant_length(kappa, 3) == pytest.approx(expected, rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("concentration", [concentration_formula, concentration_mle])
@pytest.mark.parametrize("d", [2, 3, 1000])
def test_both_ends(concentration, d):
    assert concentration(0.0, d) == 0.0
    assert concentration(1.0, d) == np.inf
    tiny, small, large = (concentration(r, d) for r in (1e-9, 0.1, 1 - 1e-12))
    assert 0.0 < tiny < 1e-5 < small < large < np.inf


def test_one_dimension_is_two_points():
    assert mean_resultant_length(0.7, 1) == pytest.approx(np.tanh(0.7))
    assert concentration_mle(np.tanh(0.7), 1) == pytest.approx(0.7)
    assert concentration_mle(1.0, 1) == np.inf


def test_length_at_both_ends():
    assert mean_resultant_length(0.0, 5) == 0.0
    assert mean_resultant_length(1e12, 5) == pytest.approx(1.0 - 4 / 2e12)


@pytest.mark.parametrize("concentration", [concentration_formula, concentration_mle])
def test_refusals(concentration):
    with pytest.raises(ValueError, match=r"resultant_length must be a number from 0 to 1; got 1.1"):
        concentration(1.1, 3)
    with pytest.raises(ValueError, match=r"resultant_length must be a number from 0 to 1; got nan"):
        concentration(np.nan, 3)
    with pytest.raises(ValueError, match="n_features must be a whole number of at least 1; got 0"):
        concentration(0.5, 0)
    with pytest.raises(ValueError, match=r"n_features must be a whole number .* got 2\.5"):
        concentration(0.5, 2.5)
    with pytest.raises(ValueError, match=r"concentration must be a number of at least 0; got -1"):
        mean_resultant_length(-1.0, 3)

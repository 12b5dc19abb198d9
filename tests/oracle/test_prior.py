"""The crowd: von Mises-Fisher quantities, the three Psi, and what follows from a summary."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import ive
from scipy.stats import vonmises_fisher

from crossfade import (
    TaskPrior,
)
from crossfade.prior import (
    Crowd,
    Directions,
    Space,
    concentration_formula,
    concentration_mle,
    mean_resultant_length,
)
from crossfade.risk import (
    conditional_risk,
    expected_risk,
)


def axis(n_features):
    return np.eye(n_features)[0]


def crowds(n_features, kappa, n_tasks, repeats, seed):
    """Unit directions of many crowds, of shape (repeats, n_tasks, n_features)."""
    law = vonmises_fisher(axis(n_features), kappa)
    drawn = law.rvs(repeats * n_tasks, random_state=np.random.default_rng(seed))
    return drawn.reshape(repeats, n_tasks, n_features)


@pytest.mark.parametrize("n_features", [2, 3, 5, 10, 50])
def test_mean_resultant_length_is_the_ratio_of_bessel_functions(n_features):
    for kappa in (1e-6, 0.01, 0.5, 3.0, 20.0, 500.0, 1e5):
        ratio = ive(n_features / 2.0, kappa) / ive(n_features / 2.0 - 1.0, kappa)
        assert mean_resultant_length(kappa, n_features) == pytest.approx(ratio, rel=1e-10)


def test_mean_resultant_length_where_bessel_functions_underflow():
    """Bounds of Amos (1974), which are tight in high dimension."""
    for n_features in (200, 1000, 20_000):
        for kappa in (0.1, 10.0, 300.0, 5000.0):
            order = n_features / 2.0 - 1.0
            low = kappa / (order + 0.5 + np.sqrt(kappa**2 + (order + 1.5) ** 2))
            high = kappa / (order + np.sqrt(kappa**2 + (order + 2.0) ** 2))
            ours = mean_resultant_length(kappa, n_features)
            assert low <= ours <= high
            assert (high - low) / ours < 0.01


def test_mean_resultant_length_is_the_length_of_the_mean():
    for n_features, kappa in [(3, 2.0), (10, 10.0), (100, 30.0)]:
        drawn = crowds(n_features, kappa, 1, 20_000, 41)[:, 0, 0]
        standard_error = drawn.std() / np.sqrt(drawn.size)
        assert abs(drawn.mean() - mean_resultant_length(kappa, n_features)) < 4.0 * standard_error


@pytest.mark.parametrize("n_features", [1, 2, 9, 70, 200, 1000])
def test_concentration_of_maximum_likelihood_inverts_it(n_features):
    for kappa in (0.01, 0.7, 3.0, 42.0, 1e3, 1e6):
        if n_features == 1:
            # On two points A_1 is the hyperbolic tangent, which rounds to one.
            if kappa > 10.0:
                continue
            length = np.tanh(kappa)
        else:
            length = mean_resultant_length(kappa, n_features)
        # What R can tell of kappa: the condition number of the inverse is R / (kappa A').
        slope = 1.0 - length**2 - (n_features - 1) / kappa * length
        doubt = 1e-10 + 4.0 * np.finfo(float).eps * length / (kappa * max(slope, 1e-300))
        assert concentration_mle(length, n_features) == pytest.approx(kappa, rel=doubt)


def test_formula_of_the_paper_is_an_approximation_of_maximum_likelihood():
    """R (d - R^2) / (1 - R^2); within 7 per cent everywhere, 1 per cent from d = 50 on."""
    for n_features, tolerance in [(2, 0.07), (9, 0.03), (50, 0.01), (1000, 0.001)]:
        for length in np.linspace(0.02, 0.98, 25):
            formula = concentration_formula(length, n_features)
            assert formula == length * (n_features - length**2) / (1.0 - length**2)
            assert formula == pytest.approx(concentration_mle(length, n_features), rel=tolerance)


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


@pytest.mark.parametrize("d", [2, 3, 10, 1000])
@pytest.mark.parametrize("distance", [1e-3, 1e-5, 3e-7])
def test_mle_where_directions_nearly_agree(d, distance):
    kappa = concentration_mle(1.0 - distance, d)
    # The leading terms of the asymptotic series of 1 - A_d, good where kappa is far above d^2.
    assert mean_resultant_length(kappa, d) == pytest.approx(1.0 - distance, abs=1e-12)
    if kappa > 100.0 * d * d:
        series = (d - 1) / (2 * kappa) - (d - 1) * (d - 3) / (8 * kappa**2)
        assert series == pytest.approx(distance, rel=1e-4)


@pytest.mark.parametrize("concentration", [concentration_formula, concentration_mle])
@pytest.mark.parametrize("d", [2, 3, 1000])
def test_both_ends(concentration, d):
    assert concentration(0.0, d) == 0.0
    assert concentration(1.0, d) == np.inf
    tiny, small, large = (concentration(r, d) for r in (1e-9, 0.1, 1 - 1e-12))
    assert 0.0 < tiny < 1e-5 < small < large < np.inf


def test_length_at_both_ends():
    assert mean_resultant_length(0.0, 5) == 0.0
    assert mean_resultant_length(1e12, 5) == pytest.approx(1.0 - 4 / 2e12)


@pytest.mark.parametrize("concentration", [concentration_formula, concentration_mle])
def test_lengths_and_dimensions_are_refused(concentration):
    for length, d, word in (
        (1.1, 3, "resultant_length"),
        (np.nan, 3, "resultant_length"),
        (0.5, 0, "n_features"),
        (0.5, 2.5, "n_features"),
    ):
        with pytest.raises(ValueError, match=word):
            concentration(length, d)
    with pytest.raises(ValueError, match="concentration"):
        mean_resultant_length(-1.0, 3)


@pytest.mark.parametrize(("n_tasks", "tolerance"), [(100, 0.05), (400, 0.03)])
def test_covariance_of_the_mean_direction_is_the_tangent_form(n_tasks, tolerance):
    """Of the three Psi one agrees with simulation, in size and in shape."""
    n_features, kappa = 10, 10.0
    drawn = crowds(n_features, kappa, n_tasks, 2_000, 42)
    means = drawn.mean(1)
    units = means / np.linalg.norm(means, axis=1, keepdims=True)
    covariance = np.cov(units.T)
    priors = [TaskPrior.from_projections(W) for W in drawn[:200]]
    sizes = {}
    for form in ("tangent", "authors", "printed"):
        psi = np.mean([prior.standard_error(form) for prior in priors], axis=0)
        sizes[form] = np.trace(psi) / np.trace(covariance)
        misfit = np.linalg.norm(psi - covariance) / np.linalg.norm(covariance)
        # Noise of a covariance from 2000 crowds: about sqrt(d / 2000).
        assert (misfit < 0.12) == (form == "tangent")
    print(
        f"J={n_tasks}: trace of Psi over the true one", *(f"{k} {v:.2f}" for k, v in sizes.items())
    )
    assert sizes["tangent"] == pytest.approx(1.0, abs=tolerance)
    # The authors' form has the whole angular variance in each of d directions.
    assert sizes["authors"] == pytest.approx(n_features, rel=tolerance)
    assert sizes["printed"] > 50.0


def test_average_source_accuracy_is_predicted_by_the_tangent_form():
    """d = 10, kappa = 10, J = 10: 0.718 in truth; 0.615 printed, 0.653 used, 0.707 right."""
    n_features, repeats = 10, 2_000
    drawn = crowds(n_features, 10.0, 11, repeats, 43)
    nu, sources = drawn[:, 0], drawn[:, 1:]
    sigma = np.eye(n_features)
    truth = 1.0 - conditional_risk(sources.mean(1), nu=nu, sigma=sigma)
    standard_error = truth.std() / np.sqrt(repeats)
    assert truth.mean() == pytest.approx(0.718, abs=4.0 * standard_error)
    predicted = {}
    priors = [TaskPrior.from_projections(W) for W in sources]
    for form in ("printed", "authors", "tangent"):
        predicted[form] = (
            1.0
            - expected_risk(
                np.stack([prior.mean_direction for prior in priors]),
                np.stack([prior.standard_error(form) for prior in priors]),
                nu=nu,
                sigma=sigma,
            ).risk.mean()
        )
    words = (f"{form} {value:.3f}" for form, value in predicted.items())
    print(f"average source: true {truth.mean():.3f}, predicted", *words)
    assert predicted["printed"] == pytest.approx(0.615, abs=4.0 * standard_error)
    assert predicted["authors"] == pytest.approx(0.653, abs=4.0 * standard_error)
    assert predicted["tangent"] == pytest.approx(0.707, abs=4.0 * standard_error)
    assert truth.mean() - predicted["authors"] > 0.05
    assert 0.0 < truth.mean() - predicted["tangent"] < 0.02


@pytest.mark.parametrize("n_features", [2, 5, 30])
def test_second_moment_of_the_von_mises_fisher_law(n_features):
    """The paper's approximation of kappa turned into one of the mean squared cosine."""
    for kappa in (0.5, 5.0, 50.0):
        cosine = crowds(n_features, kappa, 1, 50_000, 44)[:, 0, 0]
        length = mean_resultant_length(kappa, n_features)
        exact = 1.0 - (n_features - 1) * length / kappa
        standard_error = (cosine**2).std() / np.sqrt(cosine.size)
        assert abs((cosine**2).mean() - exact) < 4.0 * standard_error
        square = length**2
        formula = 1.0 - (n_features - 1) * (1.0 - square) / (n_features - square)
        assert 1.0 - formula == pytest.approx(1.0 - exact, rel=0.07)


@pytest.mark.parametrize("form", ["tangent", "authors", "printed"])
@pytest.mark.parametrize("n_features", [2, 9, 60])
def test_summary_and_resultant_length_convert_both_ways(form, n_features):
    mu = axis(n_features)
    for n_tasks in (2, 30, 5000):
        for length in (0.05, 0.4, 0.9, 0.999):
            total = n_tasks * length * mu
            sums = {"directions": Directions(n_tasks, total, n_tasks, total)}
            prior = TaskPrior(Space(np.ones(n_features)), sums)
            psi = prior.standard_error(form)
            again = TaskPrior.from_summary(mu, psi, n_tasks, form=form)
            assert again.resultant_length == pytest.approx(length, rel=1e-9)
            np.testing.assert_allclose(again.standard_error(form), psi, rtol=1e-8, atol=1e-14)


def test_summary_of_real_crowds_gives_back_their_agreement():
    """From Psi alone, R comes out as it was, but for how far a crowd of J obeys the law."""
    for n_features, kappa in [(3, 4.0), (10, 10.0), (50, 100.0)]:
        for W in crowds(n_features, kappa, 200, 5, 45):
            prior = TaskPrior.from_projections(W)
            for form in ("tangent", "authors", "printed"):
                summary = TaskPrior.from_summary(
                    prior.mean_direction, prior.standard_error(form), 200, form=form
                )
                assert summary.resultant_length == pytest.approx(prior.resultant_length, rel=0.06)


def test_shrunk_scatter_is_nearer_to_the_truth_than_the_plain_one():
    drawn = crowds(10, 10.0, 12, 400, 47)
    many = crowds(10, 10.0, 1, 200_000, 48)[:, 0]
    truth = np.cov(many.T)
    shrunk = Crowd.from_sums(12, drawn.sum(1), drawn.mT @ drawn).dense_scatter
    plain = np.array([np.cov(W.T) for W in drawn])
    # Unbiased in size, and closer in every sense.
    traces = np.trace(shrunk, axis1=1, axis2=2)
    assert abs(traces.mean() - np.trace(truth)) < 4.0 * traces.std() / np.sqrt(400)
    far = [np.linalg.norm(some - truth, axis=(1, 2)).mean() for some in (shrunk, plain)]
    assert far[0] < 0.5 * far[1]

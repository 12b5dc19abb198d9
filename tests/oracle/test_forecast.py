"""The forecast of accuracy and the probabilities, in the paper's model: do they keep their word?"""

from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    PosteriorBlendClassifier,
    TaskPrior,
)
from crossfade.simulate import draw_directions

BLENDS = {"posterior": PosteriorBlendClassifier, "convex": ConvexBlendClassifier}
#: (n_features, n_samples, repeats); kappa = 10, J = 100, covariance estimated.
CELLS = [(10, 4, 1000), (10, 8, 600), (10, 20, 600), (10, 100, 300), (100, 20, 150)]
N_NEW = 40


@cache
def simulate(n_features, n, repeats):
    """True accuracy, forecast, its error, plug-in and raw ones; then probabilities and labels."""
    rng = np.random.default_rng(61)
    crowds = draw_directions(101 * repeats, n_features, 10.0, random_state=rng)
    y = np.repeat([0, 1], n // 2)
    sign = np.where(y, 1.0, -1.0)[:, None]
    numbers = {name: np.empty((repeats, 5)) for name in BLENDS}
    chances = {name: np.empty((repeats, N_NEW)) for name in (*BLENDS, "plug-in")}
    labels = rng.integers(0, 2, size=(repeats, N_NEW))
    for repeat, W in enumerate(crowds.reshape(repeats, 101, n_features)):
        nu, prior = W[0], TaskPrior.from_projections(W[1:])
        X = rng.normal(size=(n, n_features)) + sign * nu
        plain = FisherDiscriminant(feature_scale=None).fit(X, y)
        half_gap, covariance = plain.half_gap_, plain.covariance_
        new = rng.normal(size=(N_NEW, n_features))
        new += np.where(labels[repeat], 1.0, -1.0)[:, None] * nu
        for name, blend in BLENDS.items():
            rule = blend(prior).fit(X, y)
            omega, shift = rule.coef_[0], rule.intercept_[0]
            truth = ndtr((omega @ nu + np.array([shift, -shift])) / np.linalg.norm(omega)).mean()
            variance = omega @ covariance @ omega
            plug_in = ndtr(omega @ half_gap / np.sqrt(variance))
            promised = rule.expected_accuracy_, rule.expected_accuracy_error_
            raw = float(rule.rule_.raw_forecast)
            numbers[name][repeat] = truth, *promised, plug_in, raw
            chances[name][repeat] = rule.predict_proba(new)[:, 1]
            if name == "posterior":
                slope = 2.0 * (omega @ half_gap) / variance
                scores = rule.decision_function(new)
                chances["plug-in"][repeat] = 1.0 / (1.0 + np.exp(-slope * scores))
    return numbers, chances, labels


@pytest.mark.parametrize("name", BLENDS)
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_mean_forecast_is_the_mean_accuracy(cell, name):
    """In every cell within 0.03, where a plug-in forecast is off by up to a third."""
    truth, promised, _, plug_in, raw = simulate(*cell)[0][name].T
    off = promised - truth
    means = [one.mean() for one in (truth, raw - truth, plug_in - truth, off)]
    print(
        f"d={cell[0]} n={cell[1]} {name}: accuracy; raw, plug-in, forecast off by",
        np.round(means, 3),
    )
    assert abs(off.mean()) < 0.03
    # The tolerance is at least three standard errors wide, so that this says something.
    assert 3.0 * off.std() / np.sqrt(off.size) < 0.031


@pytest.mark.parametrize("name", BLENDS)
def test_plug_in_forecast_is_optimistic(name):
    """Off by 0.07 at d = 10, n = 20, and by a third at d = 100."""
    for cell, optimism in ((CELLS[2], 0.07), (CELLS[4], 0.33)):
        truth, _, _, plug_in, _ = simulate(*cell)[0][name].T
        assert (plug_in - truth).mean() == pytest.approx(optimism, abs=0.02)


@pytest.mark.parametrize("name", BLENDS)
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_error_of_the_forecast_is_its_spread(cell, name):
    truth, promised, error, *_ = simulate(*cell)[0][name].T
    spread, claimed = np.sqrt(((promised - truth) ** 2).mean()), np.sqrt((error**2).mean())
    print(f"d={cell[0]} n={cell[1]} {name}: spread {spread:.3f}, error {claimed:.3f}")
    # With four samples a forecast that is never below chance varies less than its error says.
    assert 1 / (1.5 if cell[1] > 4 else 1.6) < spread / claimed < 1.5


def reliability(chances, labels):
    """Confidence less share of hits by tenths of confidence, standard errors, mean distance."""
    confidence = np.maximum(chances, 1.0 - chances).ravel()
    hits = ((chances > 0.5) == labels).ravel()
    tenth = np.clip(((confidence - 0.5) * 10.0).astype(int), 0, 4)
    gaps, errors, shares = np.empty((3, 5))
    for place in range(5):
        inside = tenth == place
        gaps[place] = confidence[inside].mean() - hits[inside].mean()
        errors[place] = hits[inside].std() / np.sqrt(inside.sum())
        shares[place] = inside.mean()
    return gaps, errors, float(np.abs(gaps) @ shares)


@pytest.mark.parametrize("name", BLENDS)
@pytest.mark.parametrize(("cell", "tolerance"), [(CELLS[2], 0.03), (CELLS[3], 0.01)], ids=str)
def test_probabilities_are_calibrated(cell, tolerance, name):
    """Whatever the confidence, the share of hits is within a few hundredths of it."""
    _, chances, labels = simulate(*cell)
    gaps, errors, distance = reliability(chances[name], labels)
    assert (np.abs(gaps) < tolerance + 4.0 * errors).all()
    assert distance < tolerance
    _, _, plug_in = reliability(chances["plug-in"], labels)
    assert distance < plug_in


@pytest.mark.parametrize(("cell", "tolerance"), [(CELLS[0], 0.15), (CELLS[4], 0.10)], ids=str)
def test_probabilities_are_better_than_plug_in_ones_where_samples_are_few(cell, tolerance):
    """With four samples, or twenty in 100 dimensions, they are too sure of themselves still."""
    _, chances, labels = simulate(*cell)
    _, _, ours = reliability(chances["posterior"], labels)
    _, _, plug_in = reliability(chances["plug-in"], labels)
    assert ours < tolerance
    assert ours < plug_in
    brier = {name: ((chances[name] - labels) ** 2).mean() for name in chances}
    assert brier["posterior"] < brier["plug-in"]
    assert brier["posterior"] < 0.25


@pytest.mark.parametrize("n", [4, 8, 20, 100])
def test_forecast_without_a_prior(n):
    """Features are then divided by their own deviation, and the gap is Student's."""
    rng = np.random.default_rng(62)
    y = np.repeat([0, 1], n // 2)
    off, errors, raw = [], [], []
    for _ in range(400):
        nu = rng.normal(size=10)
        nu /= np.linalg.norm(nu)
        X = rng.normal(size=(n, 10)) + np.where(y, 1.0, -1.0)[:, None] * nu
        rule = PosteriorBlendClassifier().fit(X, y)
        omega, shift = rule.coef_[0], rule.intercept_[0]
        scores = (omega @ nu + np.array([shift, -shift])) / np.linalg.norm(omega)
        off.append(rule.expected_accuracy_ - ndtr(scores).mean())
        errors.append(rule.expected_accuracy_error_)
        raw.append(float(rule.rule_.raw_forecast) - ndtr(scores).mean())
    print(f"n={n}: no prior, off by {np.mean(off):+.3f}, raw {np.mean(raw):+.3f}")
    assert abs(np.mean(off)) < 0.03
    # The raw forecast, which may fall below chance, is right on average.
    assert abs(np.mean(raw)) < 0.03
    # With two samples a class the law before any sample is seen says nearly all, and it is wide.
    assert 1 / 1.5 < np.mean(errors) / np.std(off) < (1.5 if n > 4 else 1.8)


@pytest.mark.parametrize(("n", "d"), [(20, 10), (40, 30), (100, 50)])
def test_forecast_without_shrinkage(n, d):
    """A covariance that is learnt as it is makes its own direction look better than it is."""
    rng = np.random.default_rng(63)
    y = np.arange(n) % 2
    off = []
    for _ in range(100):
        prior = TaskPrior.from_projections(draw_directions(100, d, 10.0, random_state=rng))
        nu = draw_directions(1, d, 10.0, random_state=rng)[0]
        X = rng.normal(size=(n, d)) + np.where(y, 1.0, -1.0)[:, None] * nu
        rule = ConvexBlendClassifier.paper(prior, random_state=0).fit(X, y)
        omega, shift = rule.coef_[0], rule.intercept_[0]
        scores = (omega @ nu + np.array([shift, -shift])) / np.linalg.norm(omega)
        off.append(rule.expected_accuracy_ - ndtr(scores).mean())
    assert abs(np.mean(off)) < 0.03 + 2 * np.std(off) / np.sqrt(len(off))


def test_without_freedom_left_nothing_is_promised():
    rng = np.random.default_rng(64)
    X, y = rng.normal(size=(10, 40)), np.arange(10) % 2
    prior = TaskPrior.from_projections(draw_directions(50, 40, 10.0, random_state=rng))
    rule = ConvexBlendClassifier.paper(prior, random_state=0)
    rule.set_params(alpha=1.0).fit(X, y)
    # Any accuracy is as likely as any other.
    assert rule.expected_accuracy_ == 0.5
    assert rule.expected_accuracy_error_ == pytest.approx(1.0 / np.sqrt(12.0), abs=1e-3)

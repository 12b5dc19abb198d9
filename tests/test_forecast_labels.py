"""What more labels would bring: starts at the forecast, does not fall, refuses what it cannot."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    PosteriorBlendClassifier,
    TaskPrior,
    forecast_labels,
)

#: Curves begin with fewer labels than there are, which is said.
pytestmark = pytest.mark.filterwarnings("ignore:The blend has")

BLENDS = {
    "posterior": PosteriorBlendClassifier,
    "posterior, risk": lambda prior: PosteriorBlendClassifier(prior, strength="risk"),
    "crowd": lambda prior: PosteriorBlendClassifier(prior, strength=0.0),
    "person": lambda prior: PosteriorBlendClassifier(prior, strength=np.inf),
    "convex": ConvexBlendClassifier,
    "fixed": lambda prior: ConvexBlendClassifier(prior, alpha=0.4),
}


@pytest.mark.parametrize("name", BLENDS)
@pytest.mark.parametrize("isotropic", [False, True])
@pytest.mark.parametrize(("n_features", "n_each"), [(4, 4), (4, 30), (12, 3)])
def test_curve_starts_at_the_forecast(make_target, make_prior, name, isotropic, n_features, n_each):
    prior = make_prior(n_features=n_features, isotropic=isotropic)
    rule = BLENDS[name](prior).fit(*make_target(n_features, (n_each, n_each)))
    now, *_ = forecast_labels(rule, [n_each]).accuracy
    assert now == pytest.approx(rule.expected_accuracy_, abs=1e-9)
    found = forecast_labels(rule, 2 ** np.arange(1, 12))
    assert (found.accuracy >= 0.0).all()
    assert (found.error >= 0.0).all()
    np.testing.assert_array_equal(found.n_per_class, 2 ** np.arange(1, 12))
    later = forecast_labels(rule, n_each * 2 ** np.arange(6)).accuracy
    if name != "fixed" and now > 0.5:
        assert (np.diff(later) > -1e-9).all()
    if name == "crowd":
        np.testing.assert_allclose(later, later[0], atol=0.05)


@pytest.mark.parametrize("blend", [PosteriorBlendClassifier, ConvexBlendClassifier])
@pytest.mark.parametrize("class_prior", [(0.9, 0.1), (0.3, 0.7)])
def test_unequal_classes(make_target, make_prior, blend, class_prior):
    X, y = make_target()
    rule = blend(make_prior(), class_prior=class_prior).fit(X, y)
    now = forecast_labels(rule, [8])
    assert now.accuracy[0] == pytest.approx(rule.expected_accuracy_, abs=1e-9)
    assert now.error[0] == pytest.approx(rule.expected_accuracy_error_, abs=1e-9)
    assert (np.diff(forecast_labels(rule, 2 ** np.arange(3, 10)).accuracy) > -1e-9).all()
    # Proportions that hardly differ are hardly different.
    equal, nearly = (
        forecast_labels(blend(make_prior(), class_prior=pair).fit(X, y), [2, 8, 64])
        for pair in ((0.5, 0.5), (0.5 + 1e-7, 0.5 - 1e-7))
    )
    np.testing.assert_allclose(nearly.accuracy, equal.accuracy, atol=1e-4)


def test_more_labels_do_no_harm_where_classes_hardly_differ(make_target, make_prior):
    for seed in range(20):
        X, y = make_target(n_each=(4, 4), seed=seed, gap=0.3)
        rule = PosteriorBlendClassifier(make_prior(), class_prior=(0.8, 0.2)).fit(X, y)
        later = forecast_labels(rule, 4 * 2 ** np.arange(6)).accuracy
        assert (later > rule.expected_accuracy_ - 1e-9).all()


@pytest.mark.parametrize("length", [0.0, 0.1])
def test_a_crowd_without_a_direction_is_left_out(make_target, length):
    """As the convex blend leaves it out: more labels do not bring it back."""
    pair = np.array([[length, 1.0], [length, -1.0]])
    W = np.zeros((30, 4))
    W[::2, :2], W[1::2, :2] = pair
    prior = TaskPrior.from_projections(W, normalize=True)
    with pytest.warns(UserWarning, match="cancel out"):
        rule = ConvexBlendClassifier(prior).fit(*make_target())
    alone = ConvexBlendClassifier(prior, alpha=1.0).fit(*make_target())
    found = forecast_labels(rule, [8, 64])
    assert found.accuracy[0] == pytest.approx(rule.expected_accuracy_, abs=1e-9)
    np.testing.assert_array_equal(found.accuracy, forecast_labels(alone, [8, 64]).accuracy)


def test_labels_of_other_names_and_order(make_target, make_tasks):
    X, y = make_target()
    prior = TaskPrior.from_tasks(make_tasks(labels=("a", "b")))
    plain = PosteriorBlendClassifier(prior).fit(X, np.array(["a", "b"])[y])
    turned = PosteriorBlendClassifier(prior, classes=("z", "y")).fit(X, np.array(["z", "y"])[y])
    np.testing.assert_allclose(
        forecast_labels(turned, [20]).accuracy, forecast_labels(plain, [20]).accuracy
    )


def test_classes_that_do_not_differ_promise_nothing(make_prior):
    X = np.tile(np.random.default_rng(0).normal(size=(4, 4)), (2, 1))
    rule = PosteriorBlendClassifier(make_prior()).fit(X, np.repeat([0, 1], 4))
    np.testing.assert_allclose(forecast_labels(rule, [4, 400]).accuracy, 0.5)


@pytest.mark.parametrize("wrong", [1, [], [[4]], [4, np.nan], ["four"]])
def test_numbers_that_are_none(make_target, make_prior, wrong):
    rule = PosteriorBlendClassifier(make_prior()).fit(*make_target())
    with pytest.raises(ValueError, match="n_per_class must"):
        forecast_labels(rule, wrong)


def test_blends_that_cannot_tell(make_target, make_prior, make_tasks):
    X, y = make_target()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        forecast_labels(PosteriorBlendClassifier(make_prior()), [4])
    with pytest.raises(TypeError, match="got FisherDiscriminant"):
        forecast_labels(FisherDiscriminant().fit(X, y), [4])
    with pytest.raises(ValueError, match="other than with a TaskPrior"):
        forecast_labels(PosteriorBlendClassifier().fit(X, y), [4])
    prior = TaskPrior.from_tasks(make_tasks(), replay=False)
    one = PosteriorBlendClassifier(prior, on_missing_class="prior")
    with pytest.raises(ValueError, match="without labelled samples of both classes"):
        forecast_labels(one.fit(X[y == 1], y[y == 1]), [4])

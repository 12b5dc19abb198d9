"""What more labels would bring: starts at the forecast, and grows."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    forecast_labels,
)

BLENDS = (ConvexBlendClassifier, PosteriorBlendClassifier, HierarchicalBlendClassifier)


@pytest.fixture
def prior(crowd_of_people):
    return crowd_of_people


def fitted(blend, prior, person, n_each, **options):
    few = np.r_[: n_each[0], len(person.y) - n_each[1] : len(person.y)]
    return blend(prior, **options).fit(person.X[few], person.y[few])


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("class_prior", [None, (0.8, 0.2)])
def test_curve_starts_at_the_forecast_and_grows(people, prior, blend, class_prior):
    rule = fitted(blend, prior, people[0], (2, 2), class_prior=class_prior)
    found = forecast_labels(rule, [2, 5, 13, (24, 8)], level=0.8)
    assert found.accuracy[0] == pytest.approx(rule.expected_accuracy_)
    assert found.error[0] == pytest.approx(rule.expected_accuracy_error_)
    assert (found.lower[0], found.upper[0]) == pytest.approx(rule.expected_accuracy_interval(0.8))
    assert found.accuracy[2] > found.accuracy[0]
    assert (found.lower <= found.accuracy).all()
    assert (found.accuracy <= found.upper).all()
    assert found.budgets == (2, 5, 13, (24, 8))
    np.testing.assert_allclose(found.n_per_class, [2.0, 5.0, 13.0, 12.0])


@pytest.mark.parametrize("blend", BLENDS)
def test_before_the_first_label_it_is_the_curve_of_the_crowd(people, prior, blend):
    rule = blend(prior).start()
    found = forecast_labels(rule, np.array([0, 3, 21]))
    assert found.accuracy[0] == pytest.approx(rule.expected_accuracy_)
    assert (np.diff(found.accuracy) > 0.0).all()


def test_labels_cannot_be_taken_back(people, prior):
    rule = fitted(PosteriorBlendClassifier, prior, people[0], (5, 5))
    with pytest.warns(UserWarning, match="fewer") as caught:
        forecast_labels(rule, [2])
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "budgets", [5, ["a"], [(1, 2, 3)], [(3, -2)], [], [0.5], [-1], [np.nan], [np.inf]]
)
def test_numbers_that_are_none(people, prior, budgets):
    rule = PosteriorBlendClassifier(prior).start()
    with pytest.raises(ValueError, match="n_per_class"):
        forecast_labels(rule, budgets)


def test_blends_that_cannot_tell(people, prior):
    for rule in (
        fitted(PosteriorBlendClassifier, None, people[0], (2, 2)),
        fitted(PosteriorBlendClassifier, prior.without("forecast_records"), people[0], (2, 2)),
        fitted(ConvexBlendClassifier, prior, people[0], (2, 2), alpha=0.5),
    ):
        with pytest.raises(ValueError, match="rehears"):
            forecast_labels(rule, [8])
    with pytest.raises(TypeError, match="FisherDiscriminant"):
        forecast_labels(FisherDiscriminant(), [8])
    with pytest.raises(NotFittedError):
        forecast_labels(PosteriorBlendClassifier(prior), [8])

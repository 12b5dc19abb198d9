"""Are windows in the units of a prior? What is warned of, what is not, how often, and once."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import f as f_law
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crossfade import (
    ConvexBlendClassifier,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
)
from crossfade.exceptions import UnitsWarning
from crossfade.fisher import ClassMoments


@pytest.fixture
def prior(crowd_of_people):
    return crowd_of_people


def few_of(task, n_each, start=0):
    """The first windows of each class from `start` on: X, y."""
    y = np.asarray(task.y)
    rows = np.concatenate([np.flatnonzero(y == name)[start : start + n_each] for name in (0, 1)])
    return np.asarray(task.X)[rows], y[rows]


def log_ratios(X):
    """Centred log-ratios of the three bands of each channel."""
    logs = np.log(X).reshape(len(X), -1, 3)
    return (logs - logs.mean(2, keepdims=True)).reshape(X.shape)


def in_percent(X):
    return X * np.where(np.arange(X.shape[1]) == 4, 100.0, 1.0)


@pytest.mark.parametrize(
    "blend", [ConvexBlendClassifier, PosteriorBlendClassifier, HierarchicalBlendClassifier]
)
def test_a_scaler_before_a_prior_is_warned_of(people, prior, blend):
    X, y = few_of(people[0], 4)
    blend(prior).fit(X, y)
    with pytest.warns(UnitsWarning, match="scaler"):
        make_pipeline(StandardScaler(), blend(prior)).fit(X, y)


@pytest.mark.parametrize(
    ("mix_up", "said"),
    [
        (lambda X: 1e6 * X, r"The features vary about [0-9,]+ times as much as in the prior"),
        (lambda X: 1e-6 * X, "The features vary about .*e-0[67] times as much"),
        (in_percent, "Feature 'Cz_alpha' varies .* times as much as in the prior"),
        (lambda X: 1e4 + X, "Feature 'Fz_theta' lies .* deviations from where"),
        (lambda X: np.log(X + 0.01), "Feature '.*' lies|The features vary about"),
        (lambda X: (X - X.mean(0)) / X.std(0), "All features have mean 0"),
    ],
)
@pytest.mark.parametrize("n_each", [4, 8])
def test_mix_ups_are_named(people, prior, mix_up, said, n_each):
    X, y = few_of(people[3], n_each)
    with pytest.warns(UnitsWarning, match=said):
        PosteriorBlendClassifier(prior).fit(mix_up(X), y)


@pytest.fixture(scope="module", params=[lambda X: X, log_ratios])
def strangers(request, people):
    """Each person, and the units of the crowd of all others."""
    tasks = [Task(request.param(np.asarray(task.X)), task.y) for task in people]
    crowds = (tasks[:place] + tasks[place + 1 :] for place in range(len(tasks)))
    units = [TaskPrior.from_tasks(others, rehearse=False).units for others in crowds]
    return list(zip(tasks, units, strict=True))


@pytest.mark.parametrize("n_each", [2, 3, 5, 13])
def test_real_people_are_rarely_mistaken(strangers, n_each):
    """Each leaves the crowd in turn; windows in a row, and from all over the session."""
    alarms, trials = 0, 0
    for place, (person, units) in enumerate(strangers):
        rng = np.random.default_rng(place)
        own = [np.flatnonzero(np.asarray(person.y) == name) for name in (0, 1)]
        for _ in range(10):
            starts = [rng.integers(0, rows.size - n_each + 1) for rows in own]
            run = [rows[one : one + n_each] for rows, one in zip(own, starts, strict=True)]
            apart = [rng.choice(rows, n_each, replace=False) for rows in own]
            for rows, consecutive in ((run, True), (apart, False)):
                moments = ClassMoments.of(
                    np.asarray(person.X)[np.concatenate(rows)], np.repeat([0, 1], n_each)
                )
                alarms += bool(units.misfits(moments, consecutive=consecutive))
                trials += 1
    assert trials == 720
    assert alarms <= 3


def test_standardised_people_are_nearly_always_noticed(people):
    """With 4 windows of each class, the scaler fitted on all windows of the person or of others."""
    missed = 0
    for place, person in enumerate(people):
        others = [*people[:place], *people[place + 1 :]]
        units = TaskPrior.from_tasks(others, rehearse=False).units
        crowd = StandardScaler().fit(np.concatenate([task.X for task in others]))
        for scaler in (crowd, StandardScaler().fit(person.X)):
            X, y = few_of(replace(person, X=scaler.transform(person.X)), 4)
            missed += not units.misfits(ClassMoments.of(X, y))
    assert missed <= 1


def test_the_law_of_the_ratio(prior):
    """People whose variances scatter as those of eta degrees of freedom, and few windows each."""
    rng = np.random.default_rng(0)
    eta, dof, n = 8.0, 4, 200_000
    own = eta / rng.chisquare(eta, n)
    ratio = own * rng.chisquare(dof, n) / dof
    limit = f_law.isf(1e-3, dof, eta)
    assert np.mean(ratio > limit) == pytest.approx(1e-3, abs=4 * np.sqrt(1e-3 / n))
    units = type(prior.units)(np.ones(1), np.full(1, eta), 1.0, None, np.zeros(1), True)

    def alarm(square):
        moments = ClassMoments(
            np.array([3.0, 3.0]), np.zeros((2, 1)), np.array([[dof * square]]), False, np.ones(1)
        )
        return bool(units.misfits(moments, consecutive=False))

    # Of one feature the median is the feature itself, which all together know twice as well.
    edge = f_law.isf(1e-4, 0.6 * dof, 2 * eta)
    assert not alarm(0.999 * edge)
    assert alarm(1.001 * edge)


def test_windows_in_a_row_may_be_all_but_the_same(people, prior):
    X, y = few_of(people[0], 2)
    alike = X[[0, 0, 2, 2]] + 1e-2 * (X - X[[0, 0, 2, 2]])
    HierarchicalBlendClassifier(prior).fit(alike, y)
    constant = X.copy()
    constant[:, 3] = 0.3
    HierarchicalBlendClassifier(prior).fit(constant, y)
    with pytest.warns(UnitsWarning, match="vary about"):
        HierarchicalBlendClassifier(prior).fit(X[[0, 0, 2, 2]] + 50.0 * (X - X[[0, 0, 2, 2]]), y)


def test_correlated_features_count_once():
    """Ten features of which nine say nothing new do not make chance more certain."""
    rng = np.random.default_rng(3)
    mix = np.ones((2, 10)) + 0.05 * rng.standard_normal((2, 10))
    tasks = [
        Task(rng.standard_normal((60, 2)) @ mix * np.exp(0.2 * rng.standard_normal()), y)
        for y in [np.arange(60) % 2] * 30
    ]
    units = TaskPrior.from_tasks(tasks, rehearse=False).units
    assert units.n_free < 2.0
    label = np.repeat([0, 1], 2)
    alarms = [
        bool(units.misfits(ClassMoments.of(rng.standard_normal((4, 2)) @ mix, label)))
        for _ in range(2000)
    ]
    assert sum(alarms) <= 4


def test_a_warning_points_at_the_users_line(people, prior):
    X, y = few_of(people[0], 6)
    blend = HierarchicalBlendClassifier(prior).start()
    for learn in (blend.partial_fit, blend.fit):
        with pytest.warns(UnitsWarning) as caught:
            learn(100.0 * X, y)
        assert len(caught) == 1
        assert caught[0].filename == __file__
    blend.fit(X, y)


def test_unlabelled_windows_have_units_too(people, prior):
    X = np.asarray(people[0].X)
    blend = HierarchicalBlendClassifier(prior).start()
    blend.partial_fit(X[::4], None)
    with pytest.warns(UnitsWarning, match="vary about"):
        HierarchicalBlendClassifier(prior).start().partial_fit(30.0 * X[::4], None)


def test_the_gap_between_the_classes_is_no_spread_within_them():
    """Unlabelled windows of classes that lie far apart vary more, and are in the same units."""
    rng = np.random.default_rng(4)
    y = np.arange(40) % 2
    gap = np.array([20.0, 0.0, 0.0])
    tasks = [Task(rng.normal(size=(40, 3)) + y[:, None] * gap, y) for _ in range(20)]
    prior = TaskPrior.from_tasks(tasks, rehearse=False)
    HierarchicalBlendClassifier(prior).start().partial_fit(
        rng.normal(size=(40, 3)) + y[:, None] * gap, None
    )


def test_one_class_alone_has_a_spread(people, prior):
    X, y = few_of(people[0], 5)
    HierarchicalBlendClassifier(prior).fit(X[:5], y[:5])
    with pytest.warns(UnitsWarning):
        HierarchicalBlendClassifier(prior).fit(40.0 * X[:5], y[:5])


def test_a_prior_that_knows_no_units_says_nothing(make_prior, make_target):
    X, y = make_target()
    blend = PosteriorBlendClassifier(make_prior())
    assert blend.prior.units is None
    blend.fit(1e6 * X, y)
    scaled = PosteriorBlendClassifier(make_prior(feature_scale=X[y == 0].std(0)))
    scaled.fit(X, y)
    with pytest.warns(UnitsWarning, match="vary about"):
        scaled.fit(1e6 * X, y)


def test_a_scale_that_was_given_is_no_spread(people):
    """Units are those of the covariance that is held, whatever features are divided by."""
    sources = people[1:]
    odd = TaskPrior.from_tasks(sources, feature_scale=np.full(9, 1e3), rehearse=False)
    X, y = few_of(people[0], 4)
    PosteriorBlendClassifier(odd).fit(X, y)
    with pytest.warns(UnitsWarning):
        PosteriorBlendClassifier(odd).fit(1e3 * X, y)


def test_many_classes_are_warned_of_once(make_many):
    tasks = make_many(n_tasks=8)
    rule = HierarchicalBlendClassifier(TaskPrior.from_tasks(tasks[1:], rehearse=False))
    X, y = np.asarray(tasks[0].X), np.asarray(tasks[0].y)
    rule.fit(X, y)
    with pytest.warns(UnitsWarning, match="vary about") as caught:
        rule.fit(1e4 * X, y)
    assert len(caught) == 1

"""When to stop labelling, and what a study makes of it."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

from crossfade import (
    CalibrationStudy,
    HierarchicalBlendClassifier,
    LiveCalibration,
    TaskPrior,
    load_mental_math,
)
from crossfade.blend._advice import Goal, advise, enough, expected_gains, probability_of
from crossfade.prior._replay import LADDER, Replay
from crossfade.study._splits import draw_splits, generator_for


@pytest.fixture(scope="module")
def people():
    return load_mental_math()[:12]


@pytest.fixture(scope="module")
def prior(people):
    return TaskPrior.from_tasks(people[1:])


def fitted(prior, task, n):
    rows = np.concatenate([np.flatnonzero(task.y == name)[:n] for name in (0, 1)])
    return HierarchicalBlendClassifier(prior).fit(task.X[rows], task.y[rows])


# -- the gain -------------------------------------------------------------------------------------


def record_of(curves, forecasts):
    """Record of people with probits (n_people, 9) of their accuracies, and of their forecasts."""
    return Replay.of(ndtr(forecasts)[:, None, :], ndtr(curves)[:, None, :])


def test_people_who_follow_the_crowd_gain_what_it_gains():
    rng = np.random.default_rng(0)
    rise = 0.2 * np.log(np.maximum(LADDER, 0.5))
    level = rng.normal(0.5, 0.2, (40, 1))
    record = record_of(level + rise, np.broadcast_to(level, (40, 9)))
    n, later = np.array(3.0), np.array([3.0, 5.0, 8.0])
    gain = record.gain(np.full(3, ndtr(0.5)), n, later)
    assert gain[0] == 0.0
    now = 0.5 + 0.2 * np.log(3.0)
    np.testing.assert_allclose(gain, ndtr(now + 0.2 * np.log(later / 3.0)) - ndtr(now), atol=0.01)


def test_those_who_are_flat_are_told_from_those_who_gain():
    rng = np.random.default_rng(1)
    flat = np.arange(60)[:, None] % 2 == 0
    rise = np.log(np.maximum(LADDER, 0.5))
    curves = np.where(flat, 1.5, 0.2 + 0.3 * rise) + rng.normal(0.0, 0.05, (60, 1))
    forecasts = np.where(flat, 1.4, 0.4) + rng.normal(0.0, 0.1, (60, 9))
    record = record_of(curves, forecasts)
    good, poor = record.gain(ndtr([1.4, 0.4]), np.full(2, 3.0), np.full(2, 6.0))
    assert good < 0.005
    assert poor > 0.05


def test_chance_does_not_tell_people_apart():
    rng = np.random.default_rng(2)
    rise = 0.2 * np.log(np.maximum(LADDER, 0.5))
    # Forecasts that say nothing of what is still to gain.
    curves = 0.5 + rise + rng.normal(0.0, 0.3, (30, 9))
    record = record_of(curves, rng.normal(0.5, 0.3, (30, 9)))
    gains = record.gain(ndtr([0.0, 0.5, 1.0]), np.full(3, 3.0), np.full(3, 6.0))
    assert np.ptp(gains) < 0.5 * gains.mean()


def test_beyond_the_ladder_the_curve_goes_on():
    rise = 0.2 * np.log(np.maximum(LADDER, 0.5))
    level = np.linspace(0.0, 1.0, 20)[:, None]
    record = record_of(level + rise, np.broadcast_to(level, (20, 9)))
    near, far = record.gain(np.full(2, ndtr(0.5)), np.array([34.0, 300.0]), np.array([39.0, 305.0]))
    assert near > far > 0.0


# -- the advice -----------------------------------------------------------------------------------


def test_stop_where_the_next_windows_gain_too_little(prior, people):
    fit, counts = fitted(prior, people[0], 6)._fit, np.array([6.0, 6.0])
    gains = expected_gains(fit, counts, ["rest", "arithmetic"], 5)
    assert list(gains) == ["rest", "arithmetic", "both"]
    best = max(gains.values())
    assert gains["both"] == best > 0.0
    stop = advise(fit, counts, gains, Goal(least_gain=best * 1.01))
    assert stop.stop
    assert f"expected to gain {100 * best:.1f} points of accuracy, less than" in stop.reason
    go_on = advise(fit, counts, gains, Goal(least_gain=best * 0.99))
    assert not go_on.stop
    assert go_on.reason == (
        f"5 more windows are expected to gain {100 * best:.1f} points of accuracy."
    )
    one = advise(fit, counts, gains, Goal(least_gain=best * 0.99, ahead=1))
    assert one.reason.startswith("1 more window is expected to gain")


def test_stop_where_the_wanted_accuracy_is_certain(prior, people):
    rule = fitted(prior, people[0], 6)
    counts, gains = np.array([6.0, 6.0]), {"rest": 0.1, "arithmetic": 0.1, "both": 0.1}
    lower, _ = rule.expected_accuracy_interval(0.8)
    # Beyond the lower end of an 80 % interval lie nine in ten.
    assert probability_of(rule._fit, lower) == pytest.approx(0.9)
    enough_of_it = advise(rule._fit, counts, gains, Goal(want=lower - 0.001))
    assert enough_of_it.stop
    assert "with a probability of 0.90" in enough_of_it.reason
    assert not advise(rule._fit, counts, gains, Goal(want=lower + 0.001)).stop
    assert advise(rule._fit, counts, gains, Goal(want=lower + 0.001, certainty=0.85)).stop


def test_the_next_class_is_the_one_that_gains_most(prior, people):
    live = LiveCalibration(prior)
    rows = [np.flatnonzero(people[0].y == name) for name in (0, 1)]
    order = []
    for _ in range(6):
        name = live.state().advice.next
        order.append(name)
        place = ["rest", "arithmetic"].index(name)
        live.add(people[0].X[rows[place][len(order)]], name)
    assert order == ["rest", "arithmetic"] * 3
    for i in range(6):
        live.add(people[0].X[rows[0][20 + i]], "rest")
    state = live.state()
    assert state.gains["arithmetic"] > state.gains["rest"]
    assert state.advice.next == "arithmetic"


def test_of_many_people_at_once_it_is_the_same(prior, people):
    gains = np.array([[0.02, 0.02, 0.03], [0.001, 0.001, 0.002]])
    assert enough(None, gains, Goal()).tolist() == [False, True]


# -- in a study -----------------------------------------------------------------------------------


def test_a_study_stops_where_a_session_would(people):
    budget, n_splits = 8, 3
    study = CalibrationStudy(
        people,
        methods=["live", "hierarchical"],
        budgets=[budget],
        n_splits=n_splits,
        random_state=0,
    )
    rows = study.run().rows
    found = rows[(rows.task == people[0].name) & (rows.method == "live")].sort_values("split")
    prior = TaskPrior.from_tasks(people[1:])
    task = people[0]
    rng = generator_for(0, task.name, budget, "splits")
    splits = draw_splits(np.asarray(task.y), budget, n_splits, "consecutive", rng)
    for split, (_, row) in enumerate(found.iterrows()):
        live = LiveCalibration(prior)
        own = [splits.labelled[split][splits.label == name] for name in (0, 1)]
        for step in range(2 * budget):
            live.add(task.X[own[step % 2][step // 2]], step % 2)
            if live.state().advice.stop:
                break
        assert row.n_labelled == sum(live.state().counts.values())
        test = pd.DataFrame(task.X[splits.test[split]], columns=task.feature_names)
        predicted = live.model().predict(test)
        right = np.mean([(predicted[splits.truth == name] == name).mean() for name in (0, 1)])
        assert row.balanced_accuracy == pytest.approx(right)
        assert row.expected_accuracy == pytest.approx(live.state().accuracy)
    assert (rows[rows.method == "live"].n_labelled <= 2 * budget).all()
    assert rows[rows.method == "live"].n_labelled.nunique() > 1
    assert (rows[rows.method == "hierarchical"].n_labelled == 2 * budget).all()


def test_sessions_of_many_classes(make_many):
    tasks = make_many(n_tasks=12, n_each=(20, 20, 20))
    rows = (
        CalibrationStudy(tasks, methods=["live"], budgets=[6], n_splits=2, random_state=0)
        .run()
        .rows
    )
    assert rows.n_labelled.between(3, 18).all()
    assert rows.balanced_accuracy.mean() > 0.5

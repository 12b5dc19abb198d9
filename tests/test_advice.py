"""When to stop labelling, and what a study makes of it."""

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.metrics import balanced_accuracy_score

from crossfade import (
    CalibrationStudy,
    LiveCalibration,
    TaskPrior,
    load_mental_math,
)
from crossfade.prior import LABEL_COUNTS, ForecastRecord
from crossfade.study import CalibrationSplit


@pytest.fixture(scope="module")
def people():
    return load_mental_math()[:12]


@pytest.fixture(scope="module")
def prior(people):
    return TaskPrior.from_tasks(people[1:])


def record_of(curves, forecasts):
    """Record of people with probits (n_people, 9) of their accuracies, and of their forecasts."""
    return ForecastRecord.of(ndtr(forecasts)[:, None, :], ndtr(curves)[:, None, :])


def test_people_who_follow_the_crowd_gain_what_it_gains():
    rng = np.random.default_rng(0)
    rise = 0.2 * np.log(np.maximum(LABEL_COUNTS, 0.5))
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
    rise = np.log(np.maximum(LABEL_COUNTS, 0.5))
    curves = np.where(flat, 1.5, 0.2 + 0.3 * rise) + rng.normal(0.0, 0.05, (60, 1))
    forecasts = np.where(flat, 1.4, 0.4) + rng.normal(0.0, 0.1, (60, 9))
    record = record_of(curves, forecasts)
    good, poor = record.gain(ndtr([1.4, 0.4]), np.full(2, 3.0), np.full(2, 6.0))
    assert good < 0.005
    assert poor > 0.05


def test_chance_does_not_tell_people_apart():
    rng = np.random.default_rng(2)
    rise = 0.2 * np.log(np.maximum(LABEL_COUNTS, 0.5))
    # Forecasts that say nothing of what is still to gain.
    curves = 0.5 + rise + rng.normal(0.0, 0.3, (30, 9))
    record = record_of(curves, rng.normal(0.5, 0.3, (30, 9)))
    gains = record.gain(ndtr([0.0, 0.5, 1.0]), np.full(3, 3.0), np.full(3, 6.0))
    assert np.ptp(gains) < 0.5 * gains.mean()


def labelled(live, task, *names, n=6):
    """The session with so many windows of each of these classes, in turn."""
    places = [np.flatnonzero(task.y == name)[:n] for name in names]
    for i in np.stack(places, 1).ravel():
        live.add(task.X[i], task.y[i])
    return live


def test_the_advice_is_to_stop_where_the_next_windows_gain_too_little(prior, people):
    advised = []
    for n in (1, 8, 24):
        state = labelled(LiveCalibration(prior), people[0], 0, 1, n=n).state()
        assert list(state.gains) == ["rest", "arithmetic", "both"]
        assert state.gains["both"] == max(state.gains.values()) > 0.0
        assert state.advice.stop == (state.gains["both"] < 0.01)
        advised.append(state.advice.stop)
    assert (advised[0], advised[-1]) == (False, True)


def test_the_advice_is_to_stop_where_the_wanted_accuracy_is_certain(prior, people):
    state = labelled(LiveCalibration(prior), people[0], 0, 1, n=2).state()
    model = labelled(LiveCalibration(prior), people[0], 0, 1, n=2).model()
    assert not state.advice.stop
    # Nine in ten lie beyond the lower end of an 80 % interval.
    lower, _ = model.interval(0.8)
    for want, stop in ((lower - 0.001, True), (lower + 0.001, False)):
        live = labelled(LiveCalibration(prior, want=want), people[0], 0, 1, n=2)
        assert live.state().advice.stop == stop


def test_without_a_record_of_forecasts_nobody_is_told_to_stop(prior, people):
    live = labelled(LiveCalibration(prior.without("forecast_records")), people[0], 0, 1, n=20)
    state = live.state()
    assert np.isnan(list(state.gains.values())).all()
    assert not state.advice.stop


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
    state = labelled(live, people[0], 0).state()
    assert state.gains["arithmetic"] > state.gains["rest"]
    assert state.advice.next == "arithmetic"


def test_labels_of_one_class_are_not_enough(prior, people):
    state = labelled(LiveCalibration(prior, want=0.51), people[0], 0, n=20).state()
    assert (state.advice.stop, state.advice.next) == (False, "arithmetic")


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
    y, names = np.concatenate([one.y for one in people]), [one.name for one in people]
    groups = np.repeat(names, [len(one.y) for one in people])
    cuts = CalibrationSplit(budget, n_splits=n_splits, random_state=0).split(y, y, groups)
    splits = [(train, test) for train, test in cuts if groups[test[0]] == task.name]
    for (train, test), (_, row) in zip(splits, found.iterrows(), strict=True):
        live = LiveCalibration(prior)
        labelled = train[-2 * budget :]
        own = [labelled[y[labelled] == name] for name in (0, 1)]
        for step in range(2 * budget):
            live.add(task.X[own[step % 2][step // 2]], step % 2)
            if live.state().advice.stop:
                break
        assert row.n_labelled == sum(live.state().counts.values())
        predicted = live.model().predict(task.X[test])
        right = balanced_accuracy_score(task.y[test], predicted)
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

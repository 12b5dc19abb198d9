"""The same person tomorrow: a prior that knows somebody's earlier session."""

from dataclasses import replace

import numpy as np
import pytest

from crossfade import (
    CalibrationStudy,
    HierarchicalBlendClassifier,
    LiveCalibration,
    Recipe,
    Task,
    TaskPrior,
)
from crossfade.datasets import make_matb_like
from crossfade.fisher import ClassMoments
from crossfade.study import CalibrationSplit


def people(n_people, n_sessions=2, *, effect=0.3, d=3, n_each=200, seed=0):
    """Sessions of people whose class means differ by person, and less by session."""
    rng = np.random.default_rng(seed)
    tasks = []
    for person in range(n_people):
        own = rng.normal(0.0, 1.0, (2, d)) + np.array([[-0.7], [0.7]])
        for session in range(n_sessions):
            means = own + effect * rng.normal(size=(2, d))
            y = np.repeat([0, 1], n_each)
            X = means[y] + rng.normal(size=(2 * n_each, d))
            tasks.append(Task(X, y, f"p{person}-{session}", f"p{person}"))
    return tasks


@pytest.fixture(scope="module")
def tasks():
    return people(16)


@pytest.fixture(scope="module")
def prior(tasks):
    return TaskPrior.from_tasks(tasks[2:], feature_scale=[1.0, 2.0, 0.5], rehearse=False)


def theta(task, scale):
    means = [np.asarray(task.X)[task.y == name].mean(0) / scale for name in (0, 1)]
    return np.concatenate(means)


def test_sums_are_those_of_a_loop(tasks, prior):
    expected = np.zeros((6, 6))
    for place in range(2, len(tasks), 2):
        first, second = (theta(one, prior.feature_scale) for one in tasks[place : place + 2])
        expected += np.outer(second - first, second - first) / 2.0
    assert prior.sums["sessions"].n_differences == 15.0
    np.testing.assert_allclose(prior.sums["sessions"].outer_sum, expected, rtol=1e-10)


def test_three_sessions_are_two_differences():
    some = people(4, 3)
    sessions = TaskPrior.from_tasks(some, feature_scale=None, rehearse=False).sums["sessions"]
    expected = sum(
        2.0 * np.cov([theta(one, 1.0) for one in some[first : first + 3]], rowvar=False)
        for first in range(0, 12, 3)
    )
    assert sessions.n_differences == 8.0
    np.testing.assert_allclose(sessions.outer_sum, expected, rtol=1e-10)


def test_nobody_came_twice(tasks):
    alone = TaskPrior.from_tasks(tasks[::2], rehearse=False)
    assert "sessions" not in alone.holds
    nameless = [replace(one, group=None) for one in tasks]
    assert "sessions" not in TaskPrior.from_tasks(nameless, rehearse=False).holds


def test_merging_adds_the_sums(tasks):
    def of(some):
        return TaskPrior.from_tasks(some, feature_scale=[1.0, 2.0, 0.5], rehearse=False)

    whole, merged = of(tasks), of(tasks[:10]) + of(tasks[10:])
    found, expected = merged.sums["sessions"], whole.sums["sessions"]
    assert found.n_differences == expected.n_differences
    np.testing.assert_allclose(found.outer_sum, expected.outer_sum, rtol=1e-12)
    # People with a single session add nothing.
    once, twice = of(tasks[10::2]), of(tasks[:10])
    for both in (twice + once, once + twice):
        assert both.sums["sessions"] == twice.sums["sessions"]


def test_what_is_shared_or_released_is_without_sessions(prior, tmp_path):
    assert "sessions" in prior.holds
    for part in ("sessions", "class_means"):
        assert "sessions" not in prior.without(part).holds
    assert "sessions" not in prior.update(np.eye(3)).holds
    pytest.importorskip("opendp")
    assert "sessions" not in prior.released(4.0, 1e-5, ledger=tmp_path / "l.json").holds


def turned(crowd):
    """Matrix that takes theta to class means, one after the other."""
    return np.kron([[1.0, -1.0], [1.0, 1.0]], crowd.unwhiten)


def effect_of(prior):
    """B_w in class means, from what one endless session leaves of the law of the next."""
    moments = ClassMoments(np.full(2, 1e12), np.zeros((2, 3)), np.zeros((3, 3)), False, np.ones(3))
    covariance = prior.for_moments([moments]).person.covariance
    whole = turned(prior.law.class_means) @ prior.law.class_means.covariance.reshape(6, 6)
    whole = whole @ turned(prior.law.class_means).T
    # With A = B - B_w the next session has A - A B^-1 A + B_w = 2 B_w - B_w B^-1 B_w.
    values, basis = np.linalg.eigh(whole)
    root = basis * np.sqrt(values)
    inverse = basis / np.sqrt(values)
    left, turn = np.linalg.eigh(inverse.T @ covariance @ inverse)
    parts = 1.0 - np.sqrt(np.maximum(1.0 - left, 0.0))
    return root @ (turn * parts) @ turn.T @ root.T


def plain_law(prior, earlier):
    """Mean and covariance of class means today, by conditioning one large normal vector."""
    crowd, s = prior.law.class_means, len(earlier)
    turn = turned(crowd)
    whole = turn @ crowd.covariance.reshape(6, 6) @ turn.T
    mean = turn @ crowd.mean.ravel()
    shared = whole - effect_of(prior)
    big = np.kron(np.ones((s + 1, s + 1)), shared) + np.kron(np.eye(s + 1), whole - shared)
    within = crowd.unwhiten @ crowd.unwhiten.T
    seen = slice(6, None)
    noise = [
        np.kron(np.diag(crowd.mean_noise(np.bincount(one.y).astype(float))), within)
        for one in earlier
    ]
    inner = big[seen, seen].copy()
    for place, one in enumerate(noise):
        inner[6 * place : 6 * place + 6, 6 * place : 6 * place + 6] += one
    away = np.concatenate([theta(one, prior.feature_scale) for one in earlier]) - np.tile(mean, s)
    gain = np.linalg.solve(inner, big[seen, :6]).T
    return mean + gain @ away, whole - gain @ big[seen, :6]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("n_sessions", [1, 3])
def test_the_law_is_a_normal_vector_conditioned(prior, known, n_sessions):
    crowd = prior if known else prior.without("sessions")
    earlier = people(1, n_sessions, n_each=7, seed=5)
    person = crowd.for_person(earlier).person
    mean, covariance = plain_law(crowd, earlier)
    np.testing.assert_allclose(person.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(person.covariance, covariance, rtol=1e-8, atol=1e-10)
    assert bool(person.is_guess) is not known
    assert person.n_sessions == n_sessions
    assert person.dof == n_sessions * 12.0


def test_what_a_session_changes_is_learnt():
    """Sums over many people find the covariance that made the sessions."""
    for effect in (0.2, 0.6):
        crowd = TaskPrior.from_tasks(
            people(300, effect=effect, n_each=50, seed=3), feature_scale=None, rehearse=False
        )
        found = effect_of(crowd)
        # The means of 50 windows have a variance of their own.
        expected = (effect**2 + 1.0 / 50.0) * np.eye(6)
        assert np.abs(found - expected).max() < 5.0 * expected[0, 0] * np.sqrt(2.0 / 300.0)


def test_sessions_that_never_differ_and_those_that_always_do(tasks, prior):
    """The more a session changes, the less an earlier one says."""
    crowd = prior.law.class_means
    mean = turned(crowd) @ crowd.mean.ravel()
    own = theta(tasks[0], prior.feature_scale)
    known = prior.sums["sessions"]

    def endless(level):
        return replace(known, n_differences=1e9, outer_sum=level * np.eye(6))

    tiny, huge = (
        replace(prior, sums={**prior.sums, "sessions": endless(level)}).for_person(tasks[0])
        for level in (1e-3, 1e12)
    )
    assert np.abs(tiny.person.mean - own).max() < 0.1
    np.testing.assert_allclose(huge.person.mean, mean, atol=1e-9)


def test_earlier_windows_count_for_the_covariance(tasks, prior):
    person = prior.for_person(tasks[0])
    X, y = np.asarray(tasks[0].X) / prior.feature_scale, np.asarray(tasks[0].y)
    apart = np.concatenate([X[y == name] - X[y == name].mean(0) for name in (0, 1)])
    np.testing.assert_allclose(person.person.scatter, apart.T @ apart, rtol=1e-10)
    law = person.law.class_means
    np.testing.assert_allclose(
        law.own_scatter, law.whiten.T @ apart.T @ apart @ law.whiten, rtol=1e-10
    )


def test_a_returning_person_is_better_off():
    """Over people, with no label and with two of each class."""
    tasks = make_matb_like(n_participants=24, random_state=7)
    gains = []
    for place in range(0, len(tasks), 2):
        others = [one for one in tasks if one.group != tasks[place].group]
        crowd = TaskPrior.from_tasks(others, rehearse=False)
        today = tasks[place + 1]
        few = np.concatenate([np.flatnonzero(today.y == name)[:2] for name in (0, 1)])
        scores = []
        for prior in (crowd, crowd.for_person(tasks[place])):
            rule = HierarchicalBlendClassifier(prior).start()
            scores.append([rule.score(today.X, today.y)])
            scores[-1].append(rule.fit(today.X[few], today.y[few]).score(today.X, today.y))
        gains.append(np.diff(scores, axis=0)[0])
    mean, error = np.mean(gains, 0), np.std(gains, 0) / np.sqrt(len(gains))
    assert (mean > 2.0 * error).all()


def test_a_file_keeps_it(tasks, prior, tmp_path):
    person = prior.for_person(tasks[:2])
    person.save(tmp_path / "mine.npz")
    again = TaskPrior.load(tmp_path / "mine.npz")
    assert again == person
    assert again != prior
    rows = np.asarray(tasks[1].X)
    mine, theirs = (HierarchicalBlendClassifier(one).start() for one in (person, again))
    np.testing.assert_array_equal(mine.decision_function(rows), theirs.decision_function(rows))


def test_a_prior_for_one_person_is_for_nobody_else(tasks, prior):
    person = prior.for_person(tasks[0])
    for refused in (
        lambda: person + prior,
        lambda: prior + person,
        lambda: person.update(np.eye(3)),
        lambda: person.released(1.0, 1e-5),
        lambda: person.for_person(tasks[1]),
    ):
        with pytest.raises(ValueError, match=r"one person|crowd's prior"):
            refused()


def test_sessions_that_do_not_fit_are_refused(tasks, prior):
    first = tasks[0]
    recipe = Recipe("beats", 100.0, ("ECG",), 30.0, beats=("a", "b", "c"))
    made = [replace(one, recipe=recipe) for one in tasks[2:]]
    for crowd, earlier, word in (
        (prior.without("class_means"), first, "class means"),
        (prior, [], "earlier session"),
        (TaskPrior.from_projections(np.eye(3)), [], "earlier session"),
        (prior, Task(first.X[:, :2], first.y), "features"),
        (prior, Task(first.X, first.y + 1), "labels"),
        (prior, Task(first.X[:9], first.y[:9]), "labels"),
        (
            TaskPrior.from_tasks(made, rehearse=False),
            replace(first, recipe=replace(recipe, window=60.0)),
            "60",
        ),
    ):
        with pytest.raises(ValueError, match=word):
            crowd.for_person(earlier)


def studied(tasks, **options):
    settings = {"methods": ["hierarchical", "posterior"], "budgets": [0, 2], "n_splits": 3}
    settings |= {"splits": "next-session", "random_state": 0, "forecasts": False}
    return CalibrationStudy(tasks, **settings | options)


def test_targets_are_later_sessions_and_only_class_means_know_the_earlier(tasks):
    rows = studied(tasks).run().rows
    assert sorted(rows.task.unique()) == sorted(one.name for one in tasks[1::2])
    same = studied(tasks, splits="consecutive").run().rows
    same = same[same.task.isin(rows.task)].reset_index(drop=True)
    # The same windows are labelled.
    for name in ("task", "method", "budget", "split", "n_labelled"):
        np.testing.assert_array_equal(rows[name], same[name])
    directions = (rows.method == "posterior") & (rows.budget == 2)
    np.testing.assert_array_equal(rows[directions].log_loss, same[directions].log_loss)
    means = rows.method == "hierarchical"
    assert (rows[means].log_loss != same[means].log_loss).all()
    assert rows[means].log_loss.mean() < same[means].log_loss.mean()


def test_a_study_has_the_prior_of_the_person():
    tasks = people(6, 3, n_each=20)
    rows = studied(tasks, budgets=[2], n_splits=1).run().rows
    crowd = TaskPrior.from_tasks(tasks[3:], rehearse=False)
    y, names = np.concatenate([one.y for one in tasks]), [one.name for one in tasks]
    groups = np.repeat(names, [len(one.y) for one in tasks])
    splits = CalibrationSplit(2, random_state=0).split(y, y, groups)
    for place, (train, test) in zip(range(3), splits, strict=False):
        today = tasks[place]
        own, other = (part - 40 * place for part in (train[-4:], test))
        if place:
            rule = HierarchicalBlendClassifier(crowd.for_person(tasks[:place]))
            expected = rule.fit(today.X[own], today.y[own]).score(today.X[other], today.y[other])
            found = rows[(rows.task == today.name) & (rows.method == "hierarchical")]
            assert found.accuracy.item() == pytest.approx(expected, abs=1e-12)


def test_studies_that_cannot_be_are_refused(tasks):
    with pytest.raises(ValueError, match="two sessions"):
        studied(tasks[::2])
    three = [replace(one, y=np.arange(len(one.y)) % 3) for one in tasks]
    with pytest.raises(ValueError, match="two classes"):
        studied(three, methods=["hierarchical"])


def test_an_earlier_session_is_read_from_its_folder(tasks, prior, tmp_path):
    named = TaskPrior.from_tasks(
        [replace(one, feature_names=("a", "b", "c")) for one in tasks[2:]], rehearse=False
    )
    live = LiveCalibration(named, folder=tmp_path / "monday")
    for place in (0, 1, 200, 201):
        live.add(tasks[0].X[place], tasks[0].y[place])
    live.add(tasks[0].X[2])
    live.leave_out("flat", 1)
    live.close()
    task = LiveCalibration.load(tmp_path / "monday").task()
    np.testing.assert_array_equal(task.X, tasks[0].X[[0, 1, 200, 201]])
    np.testing.assert_array_equal(task.y, [0, 0, 1, 1])
    assert (task.name, task.feature_names) == ("monday", ("a", "b", "c"))
    # The next session knows it, and so does its folder.
    today = LiveCalibration(named.for_person(task), folder=tmp_path / "tuesday")
    window = tasks[1].X[0]
    expected = today.predict(window)
    assert expected != LiveCalibration(named).predict(window)
    today.close()
    again = LiveCalibration.load(tmp_path / "tuesday")
    assert again.predict(window) == expected
    again.close()

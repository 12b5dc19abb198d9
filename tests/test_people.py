"""Whose tasks a prior is of: people with several sessions, and tasks that would count twice."""

import dataclasses

import numpy as np
import pytest

from crossfade import Task, TaskPrior

SCALE = np.ones(4)


def grouped(tasks, groups):
    return [
        dataclasses.replace(task, group=group) for task, group in zip(tasks, groups, strict=True)
    ]


@pytest.fixture
def tasks(make_tasks):
    return make_tasks(6)


def build(tasks, **options):
    return TaskPrior.from_tasks(tasks, feature_scale=SCALE, rehearse=False, **options)


def test_sessions_of_a_group_are_one_person(tasks):
    prior = build(grouped(tasks, ["a", "a", "a", "b", None, None]))
    assert (prior.n_tasks, prior.n_people) == (6, 4)
    weight = np.array([1 / 3, 1 / 3, 1 / 3, 1.0, 1.0, 1.0])
    alone = [build([task]).directions.direction for task in tasks]
    W = np.array(alone)
    np.testing.assert_allclose(prior.directions.person_direction, weight @ W)
    np.testing.assert_allclose(prior.directions.person_outer, W.T @ (weight[:, None] * W))
    # Tasks of different groups are different people, as tasks without a group are.
    assert build(grouped(tasks, "abcdef")) == build(tasks)


def test_people_are_added_and_streamed(tasks, make_directions):
    first = build(grouped(tasks[:3], "aab"))
    # A group of the same name in another build is somebody else.
    for groups, n_people in (("cde", 5), ("aac", 4)):
        other = build(grouped(tasks[3:], groups))
        for both in (first + other, other + first):
            assert (both.n_tasks, both.n_people) == (6, n_people)
            assert np.trace(both.directions.person_outer) == pytest.approx(n_people)
    W = make_directions(5, 4)
    longer = first.update(W)
    assert (longer.n_tasks, longer.n_people) == (8, 7)
    expected = first.directions.person_direction + W.sum(0)
    np.testing.assert_allclose(longer.directions.person_direction, expected)


def test_no_build_counts_twice(tasks, tmp_path):
    prior = build(tasks[:3])
    prior.save(tmp_path / "prior.npz")
    both = prior + build(tasks[3:])
    for same in (
        prior,
        TaskPrior.load(tmp_path / "prior.npz"),
        prior.annotated(made_by="us"),
        prior.without("class_means"),
        prior.update(np.eye(4)),
        both,
    ):
        for one, other in ((prior, same), (same, both)):
            with pytest.raises(ValueError, match="twice"):
                _ = one + other
    # A build is no number of a prior: the same people built again are equal, and can be added.
    again = build(tasks[:3])
    assert again == prior
    assert again.origin.builds != prior.origin.builds
    assert (again + prior).n_tasks == 6


def test_windows_that_are_there_twice_are_refused(tasks):
    first = tasks[2]
    order = np.random.default_rng(0).permutation(len(first.y))
    for twin in (first, dataclasses.replace(first, name="copy"), Task(first.X[order], first.y)):
        with pytest.raises(ValueError, match="same windows"):
            build([*tasks, twin])
    assert build([*tasks, Task(first.X + 1e-9, first.y)]).n_tasks == 7

"""Whose tasks a prior is of: people with several sessions, and tasks that would count twice."""

import dataclasses
import pickle
from hashlib import blake2b

import numpy as np
import pytest

from crossfade import (
    Ledger,
    MulticlassPrior,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
    TaskSet,
    save_model,
)
from crossfade.fisher import TaskMoments
from crossfade.prior._parts import digests_of_rows, digests_of_tasks, names_of

SCALE = np.ones(4)


def halves(prior):
    """All single digests of a prior."""
    return [bytes.fromhex(one) for names in names_of(prior.parts) for one in names]


def grouped(tasks, groups):
    return [
        dataclasses.replace(task, group=group) for task, group in zip(tasks, groups, strict=True)
    ]


@pytest.fixture
def tasks(make_tasks):
    return make_tasks(6)


# -- people ---------------------------------------------------------------------------------


def test_sessions_of_a_group_are_one_person(tasks):
    prior = TaskPrior.from_tasks(
        grouped(tasks, ["a", "a", "a", "b", None, None]), keep_directions=True
    )
    assert (prior.n_tasks, prior.n_people) == (6, 4)
    weight = np.array([1 / 3, 1 / 3, 1 / 3, 1.0, 1.0, 1.0])
    W = prior.directions
    np.testing.assert_allclose(prior.people.direction_sum, weight @ W)
    np.testing.assert_allclose(prior.people.outer_sum, W.T @ (weight[:, None] * W))
    assert "Prior of 6 tasks, of 4 people, 4 features" in prior.summary()
    assert prior.card_data()["n_people"] == 4
    # The crowd counts tasks, as it did.
    np.testing.assert_allclose(prior.direction_sum, W.sum(0))


def test_where_everybody_has_one_session_nothing_is_kept(tasks):
    prior = TaskPrior.from_tasks(grouped(tasks, "abcdef"))
    assert prior.people is None
    assert prior.n_people == 6
    assert prior == TaskPrior.from_tasks(tasks)


def test_a_release_counts_people(tasks):
    pytest.importorskip("opendp")
    sessions = TaskPrior.from_tasks(grouped(tasks, ["a"] * 6), feature_scale=SCALE)
    with pytest.warns(UserWarning, match="no ledger"):
        public = sessions.released(1000.0, 1e-5)
    assert (public.n_tasks, public.n_people, public.people) == (1, 1, None)


def test_people_are_merged_streamed_and_turned(tasks, make_directions):
    first = TaskPrior.from_tasks(grouped(tasks[:3], "aab"), feature_scale=SCALE)
    second = TaskPrior.from_tasks(tasks[3:], feature_scale=SCALE)
    # A group of the same name elsewhere is somebody else.
    third = TaskPrior.from_tasks(grouped(tasks[3:], "aac"), feature_scale=SCALE)
    for other, n_people in ((second, 5), (third, 4)):
        for both in (first + other, other + first):
            assert (both.n_tasks, both.n_people) == (6, n_people)
            expected = first.people.direction_sum + other._by_person.direction_sum
            np.testing.assert_allclose(both.people.direction_sum, expected)
            assert np.trace(both.people.outer_sum) == pytest.approx(n_people)
    W = make_directions(5, 4)
    longer = first.update(W)
    assert (longer.n_tasks, longer.n_people) == (8, 7)
    np.testing.assert_allclose(longer.people.direction_sum, first.people.direction_sum + W.sum(0))
    np.testing.assert_allclose(first.reversed().people.direction_sum, -first.people.direction_sum)
    assert first.without("outer_sum").people.outer_sum is None


def test_people_survive_the_file(tasks, tmp_path):
    prior = TaskPrior.from_tasks(grouped(tasks, "aabbcd"))
    prior.save(tmp_path / "prior.npz")
    again = TaskPrior.load(tmp_path / "prior.npz")
    assert again == prior
    assert again.people == prior.people
    assert prior != TaskPrior.from_tasks(tasks)
    assert pickle.loads(pickle.dumps(prior)) == prior
    np.testing.assert_array_equal(again.parts, prior.parts)


@pytest.mark.parametrize(
    ("people", "message"),
    [
        ({"n_people": 7}, "people must be those of 6 tasks"),
        ({"n_people": 0}, "n_people must be a whole number"),
        ({"direction_sum": np.full(4, 9.0)}, "people must be those of 6 tasks"),
        ({"direction_sum": np.zeros(3)}, "features"),
        ({"outer_sum": np.eye(4)[:, ::-1]}, "negative eigenvalue"),
        ({"outer_sum": np.eye(4) * 9.0}, "people.outer_sum is not that of 4 people"),
    ],
)
def test_people_of_a_file_are_checked(tasks, people, message):
    prior = TaskPrior.from_tasks(grouped(tasks, "aabbcd"))
    fields = prior._file_fields()
    fields["people"] |= people
    with pytest.raises(ValueError, match=message):
        TaskPrior._of_file_fields(fields)
    fields["people"] = 7
    with pytest.raises(TypeError, match="people must be an object"):
        TaskPrior._of_file_fields(fields)


def test_pairs_of_classes_count_people_too(make_many):
    tasks = make_many(4)
    prior = MulticlassPrior.from_tasks(grouped(tasks, "aabb"))
    assert {one.n_people for one in prior.priors.values()} == {2}
    with pytest.raises(ValueError, match="hold the data of 4 tasks"):
        _ = prior + prior


# -- parts ----------------------------------------------------------------------------------


def test_no_task_counts_twice(tasks, make_prior, make_directions):
    prior = TaskPrior.from_tasks(tasks, feature_scale=SCALE)
    with pytest.raises(ValueError, match="Both priors hold the data of 6 tasks, which would count"):
        _ = prior + prior
    one = TaskPrior.from_tasks(tasks[:1], feature_scale=SCALE)
    with pytest.raises(ValueError, match="Both priors hold the data of one task"):
        _ = prior + one
    directions = make_prior(30, 4)
    with pytest.raises(ValueError, match="the data of 30 tasks"):
        _ = directions + directions
    with pytest.raises(ValueError, match="the data of one task"):
        make_prior(30, 4, seed=1).update(make_directions(30, 4, seed=1)[4:5])
    merged = TaskPrior.from_tasks(tasks[:3], feature_scale=SCALE) + TaskPrior.from_tasks(
        tasks[3:], feature_scale=SCALE
    )
    np.testing.assert_array_equal(merged.parts, prior.parts)
    with pytest.raises(ValueError, match="the data of one task"):
        _ = merged + one


def test_a_task_is_known_whatever_its_name_order_labels_and_precision(tasks):
    task = tasks[0]
    order = np.random.default_rng(0).permutation(len(task.y))
    [known] = digests_of_tasks([task])
    for other in (
        Task(task.X[order], task.y[order], name="somebody else", group="g"),
        Task(task.X, np.array(["rest", "load"])[task.y]),
        Task(np.asfortranarray(task.X) * (1.0 + 1e-15), task.y),
        Task(task.X.astype(np.float32), task.y),
    ):
        np.testing.assert_array_equal(digests_of_tasks([other]), [known])
    changed = task.X.copy()
    changed[0, 0] += 1e-3
    assert not np.array_equal(digests_of_tasks([Task(changed, task.y)]), [known])


def test_a_task_that_went_through_a_table_is_known(tasks, tmp_path):
    from crossfade import read_tasks

    TaskSet(tasks).write(tmp_path / "tasks.csv")
    TaskSet(tasks).write(tmp_path / "tasks.parquet")
    expected = TaskPrior.from_tasks(tasks).parts
    for name in ("tasks.csv", "tasks.parquet"):
        found = TaskPrior.from_tasks(read_tasks(tmp_path / name)).parts
        np.testing.assert_array_equal(found, expected)


def test_a_task_twice_in_one_prior_is_refused(tasks):
    twin = dataclasses.replace(tasks[2], name="copy")
    message = (
        r"Task\('copy', .*\) and Task\('p2', .*\) hold the same windows, and would count twice"
    )
    for kind in (TaskPrior, MulticlassPrior):
        with pytest.raises(ValueError, match=message):
            kind.from_tasks([*tasks, twin])
        with pytest.raises(ValueError, match="hold the same windows"):
            kind.from_tasks([*tasks, tasks[0]])


def test_parts_can_be_left_out_and_are_no_numbers_of_the_prior(tasks, tmp_path):
    prior = TaskPrior.from_tasks(tasks, feature_scale=SCALE)
    less = prior.without("parts")
    assert less.parts is None
    assert less == prior
    assert "parts" in prior.holds
    assert "parts" not in less.holds
    assert prior.card_data()["n_digests"] == 6
    assert "6 digests of tasks' data" in prior.card()
    assert "n_digests" not in less.card_data()
    assert "digests of the tasks' data" in prior.summary()
    less.save(tmp_path / "less.npz")
    digests = halves(prior)
    content = (tmp_path / "less.npz").read_bytes()
    assert not any(one in content for one in digests)
    prior.save(tmp_path / "prior.npz")
    assert all(one in (tmp_path / "prior.npz").read_bytes() for one in digests)


def test_nothing_that_leaves_a_site_has_digests(tasks, tmp_path, make_target):
    prior = TaskPrior.from_tasks(tasks, feature_scale=SCALE)
    digests = halves(prior)
    paths = [tmp_path / "model.json"]
    save_model(PosteriorBlendClassifier(prior).fit(*make_target()), paths[0])
    if pytest.importorskip("opendp"):
        with pytest.warns(UserWarning, match="no ledger"):
            public = prior.released(1.0, 1e-5)
        assert public.parts is None
        paths.append(tmp_path / "public.npz")
        public.save(paths[1])
    for path in paths:
        content = path.read_bytes()
        for one in digests:
            assert one not in content
            assert one.hex().encode() not in content


def test_directions_along_an_axis_have_no_digests():
    """Many people may share them: of one feature there are two."""
    assert not digests_of_rows(np.ones((3, 1))).any()
    assert digests_of_rows(np.array([[1.0, 0.0], [0.6, 0.8]])).any(1).tolist() == [False, True]
    prior = TaskPrior.from_projections(np.ones((3, 1)))
    assert prior.parts is None
    assert prior.update(np.ones((3, 1))).may_overlap
    assert len(TaskPrior.from_projections([[1.0, 0.0], [0.6, 0.8]]).parts) == 1


# -- parts that cannot be compared ----------------------------------------------------------


def unlike(tasks, name):
    """Priors of these tasks of which not every task is known, and others of the same."""
    prior = TaskPrior.from_tasks(tasks, feature_scale=SCALE, keep_directions=True)
    moments = TaskMoments.of([(task.X, task.y) for task in tasks])
    return {
        "left out": lambda: prior.without("parts"),
        "less": lambda: prior.without("parts", "half_gap", "outer_sum"),
        "moments": lambda: TaskPrior.from_moments(moments, feature_scale=SCALE),
        "directions": lambda: TaskPrior.from_projections(prior.directions, feature_scale=SCALE),
        "summary": lambda: dataclasses.replace(prior, parts=None, summarised=True),
        "one feature": lambda: TaskPrior.from_projections(np.ones((3, 1))),
    }[name]()


@pytest.mark.parametrize(
    "name", ["left out", "less", "moments", "directions", "summary", "one feature"]
)
def test_no_prior_is_added_to_itself(tasks, name):
    other = unlike(tasks, name)
    for first, second in [
        (other, other),
        *([] if name == "one feature" else [(other, whole(tasks))]),
    ]:
        for add in (lambda: first + second, lambda: second + first):  # noqa: B023
            with pytest.raises(ValueError, match="which would count twice"):
                add()


def whole(tasks):
    return TaskPrior.from_tasks(tasks, feature_scale=SCALE)


def test_directions_that_are_in_a_prior_are_refused(tasks):
    prior = TaskPrior.from_tasks(tasks, feature_scale=SCALE, keep_directions=True)
    for known in (
        prior,
        TaskPrior.from_moments(
            TaskMoments.of([(task.X, task.y) for task in tasks]), feature_scale=SCALE
        ),
    ):
        with pytest.raises(ValueError, match="Both priors hold the data of 2 tasks"):
            known.update(prior.directions[2:4])
        with pytest.raises(ValueError, match="Both priors hold the data of one task"):
            _ = known + TaskPrior.from_projections(prior.directions[5:], feature_scale=SCALE)
    with pytest.raises(ValueError, match="Both priors have the same sums"):
        prior.without("parts").update(prior.directions)


def test_what_cannot_be_compared_is_carried_on(tasks, tmp_path):
    first = TaskPrior.from_tasks(tasks[:3], feature_scale=SCALE)
    second = TaskPrior.from_tasks(tasks[3:], feature_scale=SCALE)
    assert not (first + second).may_overlap
    assert "may_overlap" not in (first + second).card_data()
    W = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    assert not first.update(W).may_overlap
    assert first.without("parts").update(W).may_overlap
    for both in (first + second.without("parts"), second.without("parts") + first):
        assert both.may_overlap
        assert both == first + second
        for same in (both.without("parts"), both.annotated(made_by="us"), both.reversed()):
            assert same.may_overlap
        both.save(tmp_path / "both.npz")
        assert TaskPrior.load(tmp_path / "both.npz").may_overlap
        assert "overlap        not checked" in both.summary()
        assert "somebody may be in it twice" in both.card()
        assert both.card_data()["may_overlap"]
    with pytest.raises(TypeError, match="may_overlap must be True or False"):
        dataclasses.replace(first, may_overlap=1)


def test_a_merged_prior_that_may_overlap_is_released_on_its_owners_word(tasks, tmp_path):
    pytest.importorskip("opendp")
    first = TaskPrior.from_tasks(tasks[:3], feature_scale=SCALE)
    second = TaskPrior.from_tasks(tasks[2:], feature_scale=SCALE).without("parts")
    both = first + second
    both.save(tmp_path / "both.npz")
    for prior in (both, TaskPrior.load(tmp_path / "both.npz"), both.without("parts")):
        with pytest.raises(ValueError, match=r"tasks could not be compared.* assume_disjoint=True"):
            prior.released(1.0, 1e-5)
    assert not (tmp_path / "both.ledger.json").exists()
    public = both.released(1.0, 1e-5, assume_disjoint=True)
    assert public.release.assumed_disjoint
    assert public.parts is None
    assert not public.may_overlap
    assert "on its owner's word" in public.summary()
    assert "which they are on the owner's word" in public.card()
    [entry] = Ledger(tmp_path / "both.ledger.json").releases
    assert entry["assumed_disjoint"]
    public.save(tmp_path / "public.npz")
    assert TaskPrior.load(tmp_path / "public.npz").release.assumed_disjoint
    # Where all is known, nothing has to be taken on anybody's word.
    whole(tasks).save(tmp_path / "whole.npz")
    known = TaskPrior.load(tmp_path / "whole.npz").released(1.0, 1e-5, assume_disjoint=True)
    assert not known.release.assumed_disjoint
    with pytest.raises(TypeError, match="assume_disjoint must be True or False"):
        both.released(1.0, 1e-5, assume_disjoint=1)
    # A prior of one piece has nothing to overlap with.
    second.released(1.0, 1e-5, ledger=tmp_path / "second.json")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (np.zeros((2, 8), np.uint8), "parts must be two digests of 16 bytes for each task"),
        (np.zeros((2, 32)), "parts must be two digests of 16 bytes for each task"),
        (
            np.arange(31 * 16).reshape(31, 16).astype(np.uint8),
            "digests of 31 tasks, and there are 30",
        ),
    ],
)
def test_parts_are_checked(make_prior, parts, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(make_prior(30, 4), parts=parts)


def test_the_digest_is_the_one_that_is_documented(tasks):
    rows = sorted(row.astype("<f4").tobytes() for row in tasks[0].X)
    expected = blake2b(b"(20, 4)" + b"".join(rows), digest_size=16).digest()
    assert digests_of_tasks(tasks[:1]).tobytes() == expected
    direction = np.array([0.6, -0.8])
    row = b"(2,)" + direction.astype("<f4").tobytes()
    assert digests_of_rows(direction[None]).tobytes() == blake2b(row, digest_size=16).digest()


def test_a_prior_in_chunks_has_the_digests_of_a_prior_at_once(make_directions):
    W = make_directions(60, 3)
    whole = TaskPrior.from_projections(W)
    order = np.random.default_rng(0).permutation(60)
    grown = TaskPrior.from_projections(W[order[:7]])
    for first in range(7, 60, 11):
        grown = grown.update(W[order[first : first + 11]])
    assert np.array_equal(grown.parts, whole.parts)
    assert np.array_equal(whole.parts, np.unique(whole.parts, axis=0))
    assert len(whole.parts) == 60
    with pytest.raises(ValueError, match="Both priors hold the data of 2 tasks"):
        grown.update(W[[3, 50]])
    # A direction that is there twice in one chunk counts once among the digests.
    assert len(TaskPrior.from_projections(W[[0, 0, 1]]).parts) == 2

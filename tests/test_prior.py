"""TaskPrior: what it holds, how it is built, added and read, and what it refuses."""

import copy
import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest

from crossfade import FisherDiscriminant, Recipe, Task, TaskPrior, TaskSet
from crossfade.exceptions import MissingPartWarning, NoDirectionError, PriorMismatchError
from crossfade.prior import concentration_mle, moments_of_tasks

FORMS = ["tangent", "authors", "printed"]


def close(one, other):
    """Whether two priors hold the same numbers, to rounding."""
    assert one.sums.keys() == other.sums.keys()
    for name, mine in one.sums.items():
        theirs = other.sums[name].arrays()
        for key, array in mine.arrays().items():
            np.testing.assert_allclose(array, theirs[key], rtol=1e-11, atol=1e-11)
    assert one.space == other.space


def build(tasks, **options):
    return TaskPrior.from_tasks(tasks, rehearse=False, **options)


def test_sums_and_what_follows_from_them(make_directions):
    W = make_directions(25, 5)
    prior = TaskPrior.from_projections(W, classes=(0, 1), feature_names=list("abcde"))
    assert (prior.n_tasks, prior.n_features, prior.directions.outer is None) == (25, 5, False)
    np.testing.assert_allclose(prior.directions.direction, W.sum(0))
    np.testing.assert_allclose(prior.directions.outer, W.T @ W)
    np.testing.assert_allclose(prior.mean, W.mean(0))
    length = np.linalg.norm(W.mean(0))
    assert prior.resultant_length == pytest.approx(length)
    np.testing.assert_allclose(prior.mean_direction, W.mean(0) / length)
    assert prior.concentration == pytest.approx(length * (5 - length**2) / (1 - length**2))
    assert prior.concentration_mle() == pytest.approx(concentration_mle(length, 5))
    np.testing.assert_array_equal(prior.feature_scale, np.ones(5))
    assert (prior.feature_names, prior.classes) == (tuple("abcde"), (0, 1))
    assert not prior.cancels


def test_scatter_is_the_covariance_shrunk(make_directions):
    W = make_directions(25, 5)
    prior = TaskPrior.from_projections(W)
    plain = np.cov(W.T)
    trace, square = np.trace(plain), np.sum(plain**2)
    weight = (0.6 * square + trace**2) / ((24 + 1 - 0.4) * (square - trace**2 / 5))
    expected = (1 - weight) * plain + weight * trace / 5 * np.eye(5)
    assert 0.0 < weight < 1.0
    np.testing.assert_allclose(prior.scatter, expected)


def test_isotropic_scatter_has_the_same_trace(make_directions):
    W = make_directions(25, 5)
    full, less = (TaskPrior.from_projections(W, isotropic=iso) for iso in (False, True))
    assert less.directions.outer is None
    assert np.trace(less.scatter) == pytest.approx(np.trace(full.scatter))
    np.testing.assert_allclose(less.scatter, less.scatter[0, 0] * np.eye(5))
    np.testing.assert_array_equal(less.mean_direction, full.mean_direction)


def test_one_task_has_the_scatter_of_ignorance():
    for isotropic in (False, True):
        prior = TaskPrior.from_projections([[0.6, 0.8, 0.0]], isotropic=isotropic)
        np.testing.assert_allclose(prior.scatter, np.eye(3) / 3)
        assert prior.resultant_length == pytest.approx(1.0)
        across = np.eye(3) - np.outer(prior.mean_direction, prior.mean_direction)
        np.testing.assert_allclose(prior.standard_error(), across / 3)


def test_rows_are_brought_to_unit_length(make_directions):
    W = make_directions(10, 3)
    lengths = np.linspace(0.1, 100.0, 10)[:, None]
    close(TaskPrior.from_projections(W * lengths, normalize=True), TaskPrior.from_projections(W))
    frame = pd.DataFrame({"u": [1.0, 0.6], "v": [0.0, 0.8]})
    assert TaskPrior.from_projections(frame).feature_names == ("u", "v")
    far = TaskPrior.from_projections([[1e200, 0.0], [0.0, 1e-300]], normalize=True)
    np.testing.assert_array_equal(far.directions.direction, [1.0, 1.0])


def test_cancelling_sources():
    prior = TaskPrior.from_projections([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    assert prior.cancels
    assert prior.concentration == 0.0
    np.testing.assert_allclose(prior.scatter, np.eye(2) * 2 / 3)
    for ask in (lambda: prior.mean_direction, prior.standard_error):
        with pytest.raises(NoDirectionError):
            ask()


def test_standard_error_in_three_forms(make_directions):
    W = make_directions(25, 5)
    prior = TaskPrior.from_projections(W)
    mu, length = prior.mean_direction, prior.resultant_length
    unlike = 1.0 - np.mean((W @ mu) ** 2)
    authors = unlike / (25 * length**2)
    np.testing.assert_allclose(
        prior.standard_error("printed"), np.sqrt(unlike / (25 * length)) * np.eye(5)
    )
    np.testing.assert_allclose(prior.standard_error("authors"), authors * np.eye(5))
    np.testing.assert_allclose(
        prior.standard_error("tangent"), authors / 4 * (np.eye(5) - np.outer(mu, mu)), atol=1e-15
    )


@pytest.mark.parametrize("form", FORMS)
def test_summary_of_an_isotropic_prior_is_that_prior(make_prior, form):
    less = make_prior(12, 5, isotropic=True)
    again = TaskPrior.from_summary(less.mean_direction, less.standard_error(form), 12, form=form)
    close(again, less)
    if form == "authors":
        auto = TaskPrior.from_summary(less.mean_direction, less.standard_error(form), 12)
        close(auto, less)


@pytest.mark.parametrize("form", FORMS)
def test_summary_without_error_or_of_one_feature_or_task_agrees_fully(form):
    psi = TaskPrior.from_projections([[0.6, 0.8]]).standard_error(form)
    for mu, error, n in (
        ([0.6, 0.8], np.zeros((2, 2)), 9),
        ([1.0], [[0.0]], 9),
        ([0.6, 0.8], psi, 1),
    ):
        prior = TaskPrior.from_summary(mu, error, n, form=form)
        assert prior.resultant_length == pytest.approx(1.0)


def test_scale_can_be_given_and_nothing_of_the_callers_changes(make_tasks):
    scale = np.array([1.0, 2.0, 3.0, 4.0])
    discriminant = FisherDiscriminant(shrinkage=0.5)
    prior = build(TaskSet(make_tasks()), discriminant=discriminant, feature_scale=scale)
    scale[:] = 9.0
    np.testing.assert_array_equal(prior.feature_scale, [1.0, 2.0, 3.0, 4.0])
    assert not hasattr(discriminant, "coef_")


def test_what_tasks_say_travels(make_tasks):
    tasks = make_tasks(labels=("rest", "task"), feature_names=list("abcd"))
    recipe = Recipe("beats", 100.0, ("ECG",), 30.0, beats=("a", "b", "c", "d"))
    named = [dataclasses.replace(task, recipe=recipe) for task in tasks]
    prior = build(TaskSet(named, {"rest": "at rest", "task": "at work"}))
    assert prior.feature_names == tuple("abcd")
    assert prior.classes == ("rest", "task")
    assert prior.class_names == ("at rest", "at work")
    assert prior.recipe == recipe
    assert build([*named[:-1], tasks[-1]]).recipe is None


def test_tasks_of_one_sample_a_class_do_not_thin_out_the_averages(make_tasks, make_target):
    full = make_tasks(5, n_each=(50, 50))
    tiny = [Task(*make_target(4, (1, 1), seed=seed)) for seed in range(6)]
    alone, mixed = build(full), build(full + tiny)
    np.testing.assert_array_equal(mixed.feature_scale, alone.feature_scale)
    np.testing.assert_allclose(mixed.law.within.dense(), alone.law.within.dense(), atol=1e-12)
    assert build(tiny).law.within is None
    assert build(tiny).resultant_length > 0.0


def test_the_within_covariance_of_too_few_tasks_is_shrunk(make_target):
    # Two tasks of six samples have eight degrees of freedom for twelve features.
    prior = build([Task(*make_target(12, (3, 3), seed=seed)) for seed in range(2)])
    values = prior.law.within.values
    assert values.min() > 0.01 * values.max()


def test_many_classes_have_class_means(make_many, tmp_path):
    tasks = make_many(6)
    prior = TaskPrior.from_tasks(tasks)
    assert prior.holds == ("class_means", "forecast_records")
    assert (prior.n_tasks, prior.n_people, prior.n_classes) == (6, 6, 3)
    means = [[task.X[task.y == name].mean(0) for name in prior.classes] for task in tasks]
    expected = (np.mean(means, 0) / prior.feature_scale).ravel()
    np.testing.assert_allclose(prior.class_means.mean_sum / 6, expected)
    assert set(prior.forecast_records) == {"hierarchical"}
    prior.save(tmp_path / "prior.npz")
    assert TaskPrior.load(tmp_path / "prior.npz") == prior
    for ask in (
        lambda: prior.mean_direction,
        lambda: prior.concentration,
        lambda: prior.update(np.eye(4)),
    ):
        with pytest.raises(PriorMismatchError, match="HierarchicalBlendClassifier"):
            ask()


def test_many_classes_are_not_released(make_many):
    with pytest.raises(ValueError, match="more classes"):
        build(make_many(3), feature_scale=None).released(1.0, 1e-5)


def test_many_classes_are_added_and_made_for_a_person(make_many):
    tasks = make_many(8)
    scale = np.ones(4)
    one, other = (build(some, feature_scale=scale) for some in (tasks[:3], tasks[3:7]))
    close(one + other, build(tasks[:7], feature_scale=scale))
    person = (one + other).for_person(tasks[7])
    assert person.person.n_sessions == 1.0
    own = np.array([tasks[7].X[tasks[7].y == name].mean(0) for name in person.classes]).ravel()
    crowd = (one + other).class_means.mean_sum / 7
    assert np.linalg.norm(person.person.mean - own) < np.linalg.norm(crowd - own)
    two = TaskPrior.from_tasks(make_many(3, n_each=(8, 8)), feature_scale=scale, rehearse=False)
    with pytest.raises(PriorMismatchError, match="classes"):
        _ = one + two


def test_update_returns_a_new_prior_and_gives_up_other_sums(make_tasks):
    prior = build(make_tasks())
    more = prior.update([[0.0, 3.0, 0.0, 4.0]], normalize=True)
    assert (prior.n_tasks, more.n_tasks) == (6, 7)
    step = more.directions.direction - prior.directions.direction
    np.testing.assert_allclose(step, [0, 0.6, 0, 0.8])
    assert more.holds == ("directions",)
    assert more.law.within is None


def test_adding_is_pooling(make_tasks):
    tasks = make_tasks(7)
    scale = build(tasks).feature_scale
    a, b, c = (build(some, feature_scale=scale) for some in (tasks[:2], tasks[2:3], tasks[3:]))
    pooled = build(tasks, feature_scale=scale)
    for whole in (a + b + c, a + (b + c), c + b + a):
        # What a covariance is worth is a median in each build, of which the average is taken.
        for name in ("directions", "class_means"):
            found, expected = whole.sums[name].arrays(), pooled.sums[name].arrays()
            for key in expected.keys() - {"log_wishart_dof"}:
                np.testing.assert_allclose(found[key], expected[key], rtol=1e-10, atol=1e-12)
    assert a + b == b + a


def test_adding_gives_up_what_only_one_knows(make_tasks, make_prior):
    full, bare = build(make_tasks(), feature_scale=None), make_prior(10, 4, isotropic=True)
    for one, other in ((full, bare), (bare, full)):
        with pytest.warns(MissingPartWarning, match="class_means"):
            both = one + other
        assert both.directions.outer is None
        assert (both.n_tasks, both.classes, both.holds) == (16, (0, 1), ("directions",))


def test_equality_is_to_the_bit(make_directions):
    W = make_directions()
    prior, twin = TaskPrior.from_projections(W), TaskPrior.from_projections(W)
    assert prior == twin
    assert hash(prior) == hash(twin)
    W[0] = np.nextafter(W[0], 9.0)
    for other in (
        TaskPrior.from_projections(W),
        TaskPrior.from_projections(make_directions(), isotropic=True),
        TaskPrior.from_projections(make_directions(), classes=(0, 1)),
        prior.annotated(made_by="us"),
        "prior",
    ):
        assert prior != other


def test_a_prior_never_changes(make_directions):
    W, scale = make_directions(), np.ones(4)
    prior = TaskPrior.from_projections(W, feature_scale=scale)
    before = prior.directions.direction.copy()
    W[:], scale[:] = 0.0, 5.0
    np.testing.assert_array_equal(prior.directions.direction, before)
    np.testing.assert_array_equal(prior.feature_scale, np.ones(4))
    assert copy.deepcopy([prior])[0] is prior
    again = pickle.loads(pickle.dumps(prior))
    assert (again, again.origin.builds) == (prior, prior.origin.builds)
    for thing in (prior, again, copy.copy(prior)):
        sums = [thing.directions.direction, thing.directions.outer, thing.feature_scale]
        for array in (*sums, thing.mean, thing.mean_direction, thing.scatter):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0.0
        with pytest.raises(dataclasses.FrozenInstanceError):
            thing.space = None
        with pytest.raises(TypeError):
            thing.sums["directions"] = None


@pytest.mark.parametrize(
    ("projections", "options", "word"),
    [
        ([[1.0, 0.0], [2.0, 0.0]], {}, "length 2"),
        ([[1.0, 0.0], [0.0, 0.0]], {}, "zero"),
        ([[1.0, 0.0], [np.nan, 0.0]], {}, "finite"),
        ([1.0, 0.0], {}, "axes"),
        (np.empty((0, 3)), {}, "row"),
        (np.ones((2, 2, 2)), {}, "shape"),
        ([["a", "b"]], {}, "numbers"),
        ([[1.0, 0.0]], {"feature_scale": [1.0, -1.0]}, "positive"),
        ([[1.0, 0.0]], {"feature_scale": [1.0]}, "features"),
        ([[1.0, 0.0]], {"classes": (1, 0)}, "sorted"),
        ([[1.0, 0.0]], {"classes": (1, 1)}, "different"),
        ([[1.0, 0.0]], {"classes": (0, 1, 2)}, "two classes"),
        ([[1.0, 0.0]], {"feature_names": ["u"]}, "names"),
        ([[1.0, 0.0]], {"isotropic": "yes"}, "isotropic"),
    ],
)
def test_projections_are_refused(projections, options, word):
    with pytest.raises(ValueError, match=word):
        TaskPrior.from_projections(projections, **options)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (([2.0, 0.0], np.eye(2), 5), "unit vector"),
        ((np.eye(2), np.eye(2), 5), "unit vector"),
        (([np.nan, 1.0], np.eye(2), 5), "finite"),
        (([1.0, 0.0], np.eye(3), 5), "features"),
        (([1.0, 0.0], np.ones((4, 2, 2)), 5), "one matrix"),
        (([1.0, 0.0], [[1.0, 0.5], [0.0, 1.0]], 5), "symmetric"),
        (([1.0, 0.0], -np.eye(2), 5), "negative"),
        (([1.0, 0.0], np.eye(2), 0), "n_tasks"),
        (([1.0, 0.0], np.eye(2), 10**400), "n_tasks"),
        (([1.0, 0.0], np.eye(2), 3, "other"), "form"),
        (([1.0, 0.0], np.diag([0.0, 1.0]), 30, "authors"), "form"),
        (([1.0, 0.0, 0.0], np.diag([0.0, 0.01, 0.05]), 30, "auto"), "form"),
        (([1.0, 0.0, 0.0], 0.01 * np.eye(3), 30, "tangent"), "form"),
    ],
)
def test_summaries_are_refused(arguments, word):
    *arguments, form = [*arguments, "auto"] if len(arguments) == 3 else arguments
    with pytest.raises(ValueError, match=word):
        TaskPrior.from_summary(*arguments, form=form)


def test_tasks_are_refused(make_tasks):
    tasks = make_tasks()
    X, y = np.asarray(tasks[0].X), tasks[0].y
    flat = np.vstack([X[:10], X[:10]])
    for found, error, word in (
        ([], ValueError, "at least one task"),
        ([(X, y)], TypeError, "Task"),
        ([*tasks, Task(X, np.zeros(20, int), "one")], ValueError, "one class only"),
        ([*tasks, Task(X, np.arange(20) % 3)], ValueError, "same classes"),
        ([*tasks, Task(X, np.array(["a", "b"])[y])], ValueError, "same classes"),
        ([*tasks, Task(X[:, :3], y)], ValueError, "features"),
        ([*tasks, Task(flat, y, "flat")], NoDirectionError, "flat"),
    ):
        with pytest.raises(error, match=word):
            TaskPrior.from_tasks(found)
    for name in ("centred_per_person", "rehearse", "isotropic"):
        with pytest.raises(ValueError, match=name):
            TaskPrior.from_tasks(tasks, **{"rehearse": False, name: "no"})
    moments, _ = moments_of_tasks(tasks)
    prior = TaskPrior.from_moments(moments, rehearse=False)
    for refused, error, word in (
        (lambda: TaskPrior.from_moments(moments, typo=1), ValueError, "'typo'"),
        (lambda: prior.rehearsed(moments, ["fisher"]), ValueError, "hierarchical"),
        (lambda: prior.without("directions", "class_means"), ValueError, "Leave one"),
        (lambda: prior.for_person(3), TypeError, "Task"),
    ):
        with pytest.raises(error, match=word):
            refused()
    for scale in ("own", [1, 1, 1, 0]):
        with pytest.raises(ValueError, match="feature_scale"):
            TaskPrior.from_tasks(tasks, feature_scale=scale)


def test_priors_of_other_spaces_are_not_added(make_prior, make_tasks):
    prior = make_prior(classes=("a", "b"), feature_names=list("wxyz"))
    for other, word in (
        (make_prior(n_features=5), "feature_scale"),
        (make_prior(feature_scale=np.nextafter(np.ones(4), 2.0)), "feature_scale"),
        (make_prior(feature_names=list("wxzy")), "feature_names"),
        (make_prior(classes=("b", "c")), "classes"),
    ):
        with pytest.raises(PriorMismatchError, match=word):
            _ = prior + other
    one, other = (
        build(make_tasks(3), feature_scale=None, centred_per_person=centred)
        for centred in (True, False)
    )
    with pytest.raises(PriorMismatchError, match="centred_per_person"):
        _ = one + other
    assert (one.without("class_means") + other.without("class_means")).n_tasks == 6
    with pytest.raises(TypeError):
        prior + 1

"""TaskPrior: what it holds, how it is built, merged and read, and each refusal."""

import copy
import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest

from crossfade import FisherDiscriminant, Task, TaskPrior, TaskSet
from crossfade.exceptions import NoDirectionError, PriorMismatchError
from crossfade.prior import concentration_mle

FORMS = ["tangent", "authors", "printed"]


def close(one, other, **tolerance):
    """Whether two priors hold the same numbers, to rounding."""
    for name in ("direction_sum", "outer_sum", "feature_scale", "within_covariance", "half_gap"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert (mine is None) == (theirs is None), name
        if mine is not None:
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12, **tolerance)
    assert one.n_tasks == other.n_tasks
    assert one.classes == other.classes
    assert one.feature_names == other.feature_names


# -- from projections -----------------------------------------------------------------------


def test_sums_and_what_follows_from_them(make_directions):
    W = make_directions(25, 5)
    prior = TaskPrior.from_projections(W, classes=(0, 1), feature_names=list("abcde"))
    assert (prior.n_tasks, prior.n_features, prior.isotropic) == (25, 5, False)
    np.testing.assert_allclose(prior.direction_sum, W.sum(0))
    np.testing.assert_allclose(prior.outer_sum, W.T @ W)
    np.testing.assert_allclose(prior.mean, W.mean(0))
    length = np.linalg.norm(W.mean(0))
    assert prior.resultant_length == pytest.approx(length)
    np.testing.assert_allclose(prior.mean_direction, W.mean(0) / length)
    assert prior.concentration == pytest.approx(length * (5 - length**2) / (1 - length**2))
    assert prior.concentration_mle() == pytest.approx(concentration_mle(length, 5))
    np.testing.assert_array_equal(prior.feature_scale, np.ones(5))
    assert prior.feature_names == tuple("abcde")
    assert prior.classes == (0, 1)
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
    np.testing.assert_allclose(prior.crowd.root @ prior.crowd.root.T, expected)


def test_isotropic_scatter_has_the_same_trace(make_directions):
    W = make_directions(25, 5)
    full, less = (TaskPrior.from_projections(W, isotropic=iso) for iso in (False, True))
    assert less.isotropic
    assert less.outer_sum is None
    assert np.trace(less.scatter) == pytest.approx(np.trace(full.scatter))
    np.testing.assert_allclose(less.scatter, less.scatter[0, 0] * np.eye(5))
    np.testing.assert_array_equal(less.mean_direction, full.mean_direction)


def test_one_task_has_the_scatter_of_ignorance():
    for isotropic in (False, True):
        prior = TaskPrior.from_projections([[0.6, 0.8, 0.0]], isotropic=isotropic)
        np.testing.assert_allclose(prior.scatter, np.eye(3) / 3)
        assert prior.resultant_length == pytest.approx(1.0)
        assert not prior.cancels
        across = np.eye(3) - np.outer(prior.mean_direction, prior.mean_direction)
        np.testing.assert_allclose(prior.standard_error(), across / 3)


def test_directions_that_all_agree_leave_a_scatter_that_can_be_inverted():
    prior = TaskPrior.from_projections(np.tile([0.6, 0.8], (10, 1)))
    assert prior.concentration > 1e12
    np.linalg.cholesky(prior.scatter)
    # Ten tasks cannot be certain that all others agree with them too.
    np.testing.assert_allclose(prior.scatter, np.eye(2) / (2 * 10**2), atol=1e-12)


def test_normalize_brings_rows_to_unit_length(make_directions):
    W = make_directions(10, 3)
    lengths = np.linspace(0.1, 100.0, 10)[:, None]
    close(TaskPrior.from_projections(W * lengths, normalize=True), TaskPrior.from_projections(W))


def test_names_of_a_frame_are_kept():
    frame = pd.DataFrame({"u": [1.0, 0.6], "v": [0.0, 0.8]})
    assert TaskPrior.from_projections(frame).feature_names == ("u", "v")
    named = TaskPrior.from_projections(frame, feature_names=["a", "b"])
    assert named.feature_names == ("a", "b")


@pytest.mark.parametrize(
    ("projections", "message"),
    [
        ([[1.0, 0.0], [2.0, 0.0]], r"row 1 has length 2\. Divide each row by its norm"),
        ([[1.0, 0.0], [0.0, 0.0]], "row 1 has length 0"),
        ([[1.0, 0.0], [np.nan, 0.0]], "projections must be finite; found NaN"),
        ([[np.inf, 0.0]], "projections must be finite; found NaN or infinity"),
        ([1.0, 0.0], "projections must have at least 2 axes"),
        (np.empty((0, 3)), "with at least one row"),
        (np.empty((2, 0)), "with at least one row"),
        (np.ones((2, 2, 2)), r"of shape \(n_tasks, n_features\)"),
        ([["a", "b"]], "projections must be numbers"),
    ],
)
def test_refuses_projections(projections, message):
    with pytest.raises(ValueError, match=message):
        TaskPrior.from_projections(projections)


def test_refuses_zeros_even_when_told_to_normalize():
    with pytest.raises(ValueError, match="row 0 has length 0"):
        TaskPrior.from_projections([[0.0, 0.0]], normalize=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_scale": [1.0, -1.0]}, "feature_scale must be 2 positive numbers"),
        ({"feature_scale": [1.0]}, "feature_scale must have 2 features"),
        ({"feature_scale": [[1.0, 1.0]]}, "feature_scale must be 2 positive numbers"),
        ({"classes": (1, 0)}, r"two different labels in sorted order; got \(1, 0\)"),
        ({"classes": (1, 1)}, "two different labels in sorted order"),
        ({"classes": (0, 1, 2)}, "two different labels in sorted order"),
        ({"feature_names": ["u"]}, "feature_names must be 2 names; got 1"),
    ],
)
def test_refuses_options(options, message):
    with pytest.raises(ValueError, match=message):
        TaskPrior.from_projections([[1.0, 0.0]], **options)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((0, np.ones(2), None, np.ones(2)), "n_tasks must be a whole number of at least 1; got 0"),
        ((1, np.ones((2, 2)), None, np.ones(4)), r"direction_sum must be of shape \(4,\)"),
        ((1, np.ones(2), np.ones((3, 3)), np.ones(2)), r"outer_sum must be of shape \(2, 2\)"),
        ((1, np.ones(2), None, np.zeros(2)), "feature_scale must be 2 positive numbers"),
        ((1, [np.nan, 1.0], None, np.ones(2)), "direction_sum must be finite"),
        ((1, np.ones(2), None, np.ones(2), (1, 0)), "two different labels in sorted order"),
        ((1, np.ones(2), None, np.ones(2), None, ("u",)), "feature_names must be 2 names"),
    ],
)
def test_refuses_fields_that_do_not_go_together(fields, message):
    with pytest.raises(ValueError, match=message):
        TaskPrior(*fields)


# -- the three forms of Psi -----------------------------------------------------------------


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
    np.testing.assert_array_equal(prior.standard_error(), prior.standard_error("tangent"))
    with pytest.raises(ValueError, match="form must be one of 'tangent', 'authors', 'printed'"):
        prior.standard_error("used")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_features", [2, 5, 40])
def test_summary_gives_back_its_psi(make_prior, form, n_features):
    shared = make_prior(12, n_features)
    mu, psi = shared.mean_direction, shared.standard_error(form)
    prior = TaskPrior.from_summary(mu, psi, 12, form=form, classes=("a", "b"))
    np.testing.assert_allclose(prior.standard_error(form), psi, atol=1e-12)
    np.testing.assert_allclose(prior.mean_direction, mu)
    assert prior.n_tasks == 12
    assert prior.isotropic
    assert prior.classes == ("a", "b")


@pytest.mark.parametrize("form", FORMS)
def test_summary_of_an_isotropic_prior_is_that_prior(make_prior, form):
    less = make_prior(12, 5, isotropic=True)
    again = TaskPrior.from_summary(less.mean_direction, less.standard_error(form), 12, form=form)
    close(again, less)


@pytest.mark.parametrize("form", FORMS)
def test_summary_without_any_error_agrees_fully(form):
    prior = TaskPrior.from_summary([0.6, 0.8], np.zeros((2, 2)), 9, form=form)
    assert prior.resultant_length == pytest.approx(1.0)


@pytest.mark.parametrize("form", FORMS)
def test_summary_of_one_feature_or_one_task(form):
    assert TaskPrior.from_summary([1.0], [[0.0]], 9, form=form).resultant_length == 1.0
    psi = TaskPrior.from_projections([[0.6, 0.8]]).standard_error(form)
    assert TaskPrior.from_summary([0.6, 0.8], psi, 1, form=form).resultant_length == 1.0


def test_summary_takes_a_multiple_of_the_identity_for_the_authors_form(make_prior):
    prior = make_prior(isotropic=True)
    psi = prior.standard_error("authors")
    again = TaskPrior.from_summary(prior.mean_direction, psi, prior.n_tasks)
    assert again.resultant_length == pytest.approx(prior.resultant_length)
    np.testing.assert_allclose(again.standard_error("authors"), psi)


@pytest.mark.parametrize(
    ("psi", "form"),
    [
        (np.diag([0.0, 0.01, 0.05]), "auto"),
        (0.01 * np.eye(3), "tangent"),
        (np.diag([0.0, 0.01, 0.01]), "authors"),
        (np.diag([0.0, 0.01, 0.01]), "printed"),
    ],
)
def test_summary_refuses_a_psi_of_another_form(psi, form):
    with pytest.raises(ValueError, match=r"psi is not of the (tangent|authors|printed) form"):
        TaskPrior.from_summary([1.0, 0.0, 0.0], psi, 30, form=form)


def test_tasks_of_one_sample_a_class_do_not_thin_out_the_averages():
    rng = np.random.default_rng(3)
    full = [
        Task(
            rng.normal(size=(100, 3)) * [1, 2, 3] + np.repeat([[0], [1]], 50, 0),
            np.repeat([0, 1], 50),
        )
        for _ in range(5)
    ]
    tiny = [Task(rng.normal(size=(2, 3)), [0, 1]) for _ in range(6)]
    alone, mixed = TaskPrior.from_tasks(full), TaskPrior.from_tasks(full + tiny)
    np.testing.assert_array_equal(mixed.feature_scale, alone.feature_scale)
    np.testing.assert_allclose(mixed.within_covariance, alone.within_covariance)
    assert TaskPrior.from_tasks(tiny).within_covariance is None


def test_any_finite_length_can_be_normalised():
    prior = TaskPrior.from_projections([[1e200, 0.0], [0.0, 1e-300]], normalize=True)
    np.testing.assert_array_equal(prior.direction_sum, [1.0, 1.0])


def test_fields_are_brought_to_one_type():
    prior = TaskPrior(np.int64(2), [1.0, 0.0], None, [1.0, 1.0], classes=[0, 1])
    assert type(prior.n_tasks) is int
    assert prior.classes == (0, 1)
    assert isinstance(hash(prior), int)


def test_sums_that_no_unit_directions_have_are_refused():
    with pytest.raises(ValueError, match="direction_sum is longer than 3 unit directions"):
        TaskPrior(3, [30.0, 0.0], None, [1.0, 1.0])
    with pytest.raises(
        ValueError, match="outer_sum is not that of 3 unit directions: its trace is 9"
    ):
        TaskPrior(3, [3.0, 0.0], np.diag([9.0, 0.0]), [1.0, 1.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([2.0, 0.0], np.eye(2), 5), r"mu must be one unit vector; got shape \(2,\), length 2"),
        (([0.0, 0.0], np.eye(2), 5), "mu must be one unit vector"),
        ((np.eye(2), np.eye(2), 5), r"mu must be one unit vector; got shape \(2, 2\)"),
        (([np.nan, 1.0], np.eye(2), 5), "mu must be finite"),
        (([1.0, 0.0], np.eye(3), 5), "psi must have 2 features on the last axis"),
        (([1.0, 0.0], np.ones((3, 2)), 5), r"psi must be of shape \(..., 2, 2\)"),
        (([1.0, 0.0], np.ones((4, 2, 2)), 5), "psi must be one matrix"),
        (([1.0, 0.0], [[1.0, 0.5], [0.0, 1.0]], 5), "psi must be symmetric"),
        (([1.0, 0.0], -np.eye(2), 5), "psi must have no negative eigenvalue; the smallest is -1"),
        (([1.0, 0.0], np.eye(2), 0), "n_tasks must be a whole number of at least 1; got 0"),
        (([1.0, 0.0], np.eye(2), 2.5), "n_tasks must be a whole number"),
    ],
)
def test_summary_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        TaskPrior.from_summary(*arguments)


def test_summary_refuses_an_unknown_form():
    with pytest.raises(
        ValueError, match="form must be one of 'auto', 'tangent', 'authors', 'printed'"
    ):
        TaskPrior.from_summary([1.0, 0.0], np.eye(2), 3, form="other")


# -- from tasks -----------------------------------------------------------------------------


def test_the_papers_recipe_is_pseudo_inverse_and_raw_units(make_tasks):
    tasks = make_tasks(n_each=(2, 3), n_features=6)
    prior = TaskPrior.from_tasks(tasks, FisherDiscriminant(shrinkage=None), None)
    np.testing.assert_array_equal(prior.feature_scale, np.ones(6))
    total = np.zeros(6)
    for task in tasks:
        means = np.array([task.X[task.y == k].mean(0) for k in (0, 1)])
        rows = task.X - means[task.y]
        inverse = np.linalg.pinv(rows.T @ rows, rcond=1e-10, hermitian=True)
        omega = inverse @ (means[1] - means[0])
        total += omega / np.linalg.norm(omega)
    np.testing.assert_allclose(prior.direction_sum, total, atol=1e-9)


def test_scale_can_be_given_and_the_discriminant_is_left_alone(make_tasks):
    scale = [1.0, 2.0, 3.0, 4.0]
    discriminant = FisherDiscriminant(shrinkage=0.5)
    prior = TaskPrior.from_tasks(TaskSet(make_tasks()), discriminant, scale)
    np.testing.assert_array_equal(prior.feature_scale, scale)
    assert discriminant.get_params() == FisherDiscriminant(shrinkage=0.5).get_params()
    assert not hasattr(discriminant, "coef_")


def test_isotropic_from_tasks_keeps_no_matrix(make_tasks):
    prior = TaskPrior.from_tasks(iter(make_tasks()), isotropic=True)
    assert prior.outer_sum is None
    assert prior.within_covariance is None
    assert prior.half_gap.shape == (4,)


def test_names_and_classes_travel(make_tasks):
    prior = TaskPrior.from_tasks(make_tasks(labels=("rest", "task"), feature_names=list("abcd")))
    assert prior.feature_names == tuple("abcd")
    assert prior.classes == ("rest", "task")


def test_tasks_of_one_sample_a_class_give_directions_but_no_covariance(make_tasks):
    prior = TaskPrior.from_tasks(make_tasks(n_each=(1, 1)))
    assert prior.within_covariance is None
    assert prior.resultant_length > 0.0


def test_constant_features_have_scale_one(make_tasks):
    tasks = [
        Task(np.column_stack([task.X, np.full(len(task.y), 0.1)]), task.y) for task in make_tasks()
    ]
    assert TaskPrior.from_tasks(tasks).feature_scale[-1] == 1.0


def test_tasks_refused(make_tasks):
    tasks = make_tasks()
    X = np.asarray(tasks[0].X)
    with pytest.raises(ValueError, match="A prior needs at least one task; got none"):
        TaskPrior.from_tasks([])
    with pytest.raises(TypeError, match="A TaskSet holds Task objects; got tuple"):
        TaskPrior.from_tasks([(X, tasks[0].y)])
    with pytest.raises(ValueError, match=r"Task\('one'.* has one class only, 0; a source needs"):
        TaskPrior.from_tasks([*tasks, Task(X, np.zeros(20, int), "one")])
    with pytest.raises(ValueError, match=r"has 3 classes, \[0, 1, 2\]"):
        TaskPrior.from_tasks([Task(X, np.arange(20) % 3)])
    with pytest.raises(ValueError, match=r"same classes; Task\('far'.*\['a', 'b'\]"):
        TaskPrior.from_tasks([*tasks, Task(X, np.array(["a", "b"])[tasks[0].y], "far")])
    with pytest.raises(ValueError, match="All tasks must have the same features"):
        TaskPrior.from_tasks([*tasks, Task(X[:, :3], tasks[0].y)])
    same = np.vstack([X[:10], X[:10]])
    with pytest.raises(NoDirectionError, match=r"Task\('flat'.* has no direction"):
        TaskPrior.from_tasks([*tasks, Task(same, tasks[0].y, "flat")])
    with pytest.raises(ValueError, match="feature_scale must be 'auto', None or one positive"):
        TaskPrior.from_tasks(tasks, feature_scale="own")
    with pytest.raises(ValueError, match="feature_scale must be 4 positive numbers"):
        TaskPrior.from_tasks(tasks, feature_scale=[1, 1, 1, 0])


# -- streaming and merging ------------------------------------------------------------------


@pytest.mark.parametrize("isotropic", [False, True])
def test_update_in_chunks_equals_one_go(make_directions, isotropic):
    W = make_directions(100, 6)
    stream = TaskPrior.from_projections(W[:7], isotropic=isotropic)
    for start in range(7, 100, 31):
        stream = stream.update(W[start : start + 31])
    close(stream, TaskPrior.from_projections(W, isotropic=isotropic))


def test_update_returns_a_new_prior_and_gives_up_the_averages(make_tasks):
    prior = TaskPrior.from_tasks(make_tasks())
    more = prior.update([[0.0, 3.0, 0.0, 4.0]], normalize=True)
    assert (prior.n_tasks, more.n_tasks) == (6, 7)
    np.testing.assert_allclose(more.direction_sum - prior.direction_sum, [0, 0.6, 0, 0.8])
    assert prior.half_gap is not None
    assert more.half_gap is None
    assert more.within_covariance is None
    assert more.classes == prior.classes
    with pytest.raises(ValueError, match="projections must have 4 features on the last axis"):
        prior.update([[1.0, 0.0]])
    with pytest.raises(ValueError, match="row 0 has length 2"):
        prior.update([[2.0, 0.0, 0.0, 0.0]])


def test_merging_is_pooling(make_tasks):
    tasks = make_tasks(7)
    scale = TaskPrior.from_tasks(tasks).feature_scale
    a, b, c = (
        TaskPrior.from_tasks(some, feature_scale=scale)
        for some in (tasks[:2], tasks[2:3], tasks[3:])
    )
    pooled = TaskPrior.from_tasks(tasks, feature_scale=scale)
    close(a + b + c, pooled)
    close(a + (b + c), (a + b) + c)
    close(c + b + a, pooled)
    assert a + b == b + a


@pytest.mark.filterwarnings("ignore:Only one of the two priors")
def test_merging_gives_up_what_only_one_keeps(make_tasks, make_prior):
    full = TaskPrior.from_tasks(make_tasks(), feature_scale=None)
    bare = make_prior(10, 4, isotropic=True)
    both = full + bare
    assert both.isotropic
    assert both.half_gap is None
    assert both.within_covariance is None
    assert both.n_tasks == 16
    assert both.classes == (bare + full).classes == (0, 1)


def test_merging_refuses_other_spaces(make_prior):
    prior = make_prior(classes=("a", "b"), feature_names=list("wxyz"))
    with pytest.raises(
        PriorMismatchError, match="different features cannot be merged: 4 and 5 features"
    ):
        prior + make_prior(n_features=5)
    with pytest.raises(PriorMismatchError, match=r"different feature scales .* same feature_scale"):
        prior + make_prior(feature_scale=np.nextafter(np.ones(4), 2.0))
    with pytest.raises(
        PriorMismatchError, match=r"different feature names cannot be merged: .*'w'"
    ):
        prior + make_prior(feature_names=list("wxzy"))
    with pytest.raises(
        PriorMismatchError, match=r"different classes cannot be merged: \('a', 'b'\)"
    ):
        prior + make_prior(classes=("b", "c"))
    with pytest.raises(TypeError, match="unsupported operand"):
        prior + 1


def test_reversed_turns_every_direction(make_tasks):
    prior = TaskPrior.from_tasks(make_tasks())
    turned = prior.reversed()
    np.testing.assert_array_equal(turned.mean_direction, -prior.mean_direction)
    np.testing.assert_array_equal(turned.half_gap, -prior.half_gap)
    np.testing.assert_array_equal(turned.scatter, prior.scatter)
    assert turned.classes is None
    close(dataclasses.replace(turned.reversed(), classes=prior.classes), prior)


# -- cancelling, reading, comparing ---------------------------------------------------------


def test_cancelling_sources():
    prior = TaskPrior.from_projections([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    assert prior.cancels
    assert prior.concentration == 0.0
    np.testing.assert_allclose(prior.scatter, np.eye(2) * 2 / 3)
    with pytest.raises(NoDirectionError, match="cancel out: there is no mean direction"):
        prior.mean_direction  # noqa: B018
    with pytest.raises(NoDirectionError, match="cancel out: there is no mean direction"):
        prior.standard_error()
    assert "cancel out" in prior.summary()


def test_summary_for_a_person(make_tasks, make_prior):
    named = TaskPrior.from_tasks(
        make_tasks(labels=("rest", "task"), feature_names=["theta", "alpha", "beta", "gamma"])
    )
    text = named.summary()
    assert "Prior of 6 tasks, 4 features" in text
    assert "'rest' and 'task' (directions point to the second)" in text
    assert f"{named.resultant_length:.3f}" in text
    assert "average half gap" in text
    strongest = named.feature_names[np.abs(named.mean_direction).argmax()]
    assert f"mean direction {strongest}" in text
    bare = make_prior(n_features=7, isotropic=True).summary()
    assert "not given" in bare
    assert "feature 0 +" in bare
    assert bare.endswith("...")
    assert "outer products" not in bare
    assert repr(named).startswith("TaskPrior(n_tasks=6, n_features=4, resultant_length=0.")


def test_equality_is_to_the_bit(make_prior):
    prior, twin = make_prior(), make_prior()
    assert prior == twin
    assert hash(prior) == hash(twin)
    nudged = dataclasses.replace(prior, direction_sum=np.nextafter(prior.direction_sum, 9.0))
    assert prior != nudged
    assert prior != make_prior(isotropic=True)
    assert prior != make_prior(classes=(0, 1))
    assert prior != "prior"
    plus, minus = (TaskPrior(1, [1.0, zero], None, [1.0, 1.0]) for zero in (0.0, -0.0))
    assert plus == minus
    assert hash(plus) == hash(minus)


@pytest.mark.parametrize("isotropic", [False, True])
def test_prior_never_changes(make_directions, isotropic):
    W = make_directions()
    scale = np.ones(4)
    prior = TaskPrior.from_projections(W, isotropic=isotropic, feature_scale=scale)
    before = prior.direction_sum.copy()
    W[:] = 0.0
    scale[:] = 5.0
    np.testing.assert_array_equal(prior.direction_sum, before)
    np.testing.assert_array_equal(prior.feature_scale, np.ones(4))
    names = ["direction_sum", "outer_sum", "feature_scale", "mean", "mean_direction", "scatter"]
    for thing in (prior, pickle.loads(pickle.dumps(prior)), copy.copy(prior)):
        for name in names:
            array = getattr(thing, name)
            if array is not None:
                with pytest.raises(ValueError, match="read-only"):
                    array[...] = 0.0
        with pytest.raises(dataclasses.FrozenInstanceError):
            thing.n_tasks = 3
        with pytest.raises(dataclasses.FrozenInstanceError):
            del thing.n_tasks


def test_copies(make_prior):
    prior = make_prior(classes=("a", "b"), feature_names=list("wxyz"))
    assert copy.deepcopy(prior) is prior
    assert copy.deepcopy([prior])[0] is prior
    assert pickle.loads(pickle.dumps(prior)) == prior


def test_the_within_covariance_of_too_few_tasks_is_shrunk(make_target):
    # Two tasks of six samples have eight degrees of freedom for twelve features.
    tasks = [Task(*make_target(12, (3, 3), seed=seed)) for seed in range(2)]
    prior = TaskPrior.from_tasks(tasks)
    assert np.linalg.matrix_rank(prior.within_covariance) == 8
    values = prior.within_spectrum.values
    assert values.min() > 0.01 * values.max()
    assert values.sum() == pytest.approx(np.trace(prior.within_covariance))


def test_the_within_covariance_of_tied_features_keeps_its_rank(make_target):
    into = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 4)))[0].T
    tasks = []
    for seed in range(8):
        X, y = make_target(4, (10, 10), seed=seed)
        tasks.append(Task(X @ into, y))
    prior = TaskPrior.from_tasks(tasks)
    assert (prior.within_spectrum.values > 0.0).sum() == 4
    np.testing.assert_allclose(prior.within_spectrum.dense(), prior.within_covariance, atol=1e-9)


def test_more_people_than_there_are_are_refused():
    with pytest.raises(
        ValueError, match=r"n_tasks must be a whole number of at most 1000000000000"
    ):
        TaskPrior.from_summary(np.ones(2) / np.sqrt(2.0), np.eye(2) / 100, 10**400, form="authors")


def test_complex_labels_are_refused():
    with pytest.raises(ValueError, match="Labels must be numbers, text or booleans"):
        Task(np.eye(4), [0j, 1j, 0j, 1j])

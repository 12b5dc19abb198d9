"""Moments of classes and of tasks: against numpy, added up in any chunks, with tasks left out."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossfade import FisherDiscriminant, Task, TaskPrior
from crossfade.fisher import ClassMoments, TaskMoments, learn_direction

SHRINKAGES = ["oas", 0.3, None]


def centred(X, label, weight=None):
    """Samples about the mean of their class, straight from the definition."""
    rows = X.copy()
    for place in np.unique(label):
        mine = label == place
        rows[..., mine, :] -= np.average(
            X[..., mine, :],
            axis=-2,
            weights=None if weight is None else weight[mine],
            keepdims=True,
        )
    return rows


def draw(seed, n_samples, n_features, n_classes=2, batch=()):
    """Samples, labels and weights; every class has one sample or more."""
    rng = np.random.default_rng(seed)
    label = rng.permutation(np.arange(n_samples) % n_classes)
    X = rng.standard_normal((*batch, n_samples, n_features)) + label[:, None]
    return X, label, rng.uniform(0.2, 3.0, n_samples)


@pytest.mark.parametrize("n_features", [3, 40])
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("batch", [(), (2, 3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_those_of_numpy(n_features, n_classes, batch, weighted):
    X, label, weight = draw(0, 20, n_features, n_classes, batch)
    moments = ClassMoments.of(X, label, weight if weighted else None, n_classes=n_classes)
    weight = weight if weighted else np.ones(20)
    rows = centred(X, label, weight)
    scatter = np.einsum("n,...nj,...nk->...jk", weight, rows, rows)
    left = weight.sum() - n_classes
    np.testing.assert_allclose(moments.counts, np.bincount(label, weight))
    for place in range(n_classes):
        mine = label == place
        mean = np.average(X[..., mine, :], axis=-2, weights=weight[mine])
        np.testing.assert_allclose(moments.means[..., place, :], mean, atol=1e-12)
    np.testing.assert_allclose(moments.dense_scatter(), scatter, atol=1e-10)
    assert moments.left == pytest.approx(left)
    deviation = np.sqrt(np.diagonal(scatter, axis1=-2, axis2=-1) / left)
    np.testing.assert_allclose(moments.deviation(), deviation)
    np.testing.assert_allclose(moments.variance(), deviation**2)
    np.testing.assert_allclose(moments.gap(), moments.means[..., 1, :] - moments.means[..., 0, :])
    np.testing.assert_array_equal(moments.largest, np.abs(X).max(-2))
    in_units = scatter / left / (deviation[..., :, None] * deviation[..., None, :])
    np.testing.assert_allclose(moments.spectrum(deviation).dense(), in_units, atol=1e-10)


def test_a_class_without_samples_has_no_say():
    X, label, _ = draw(2, 9, 3)
    two, three = ClassMoments.of(X, label), ClassMoments.of(X, label, n_classes=3)
    assert three.counts.tolist() == [*two.counts, 0.0]
    np.testing.assert_array_equal(three.means[2], 0.0)
    np.testing.assert_array_equal(three.scatter, two.scatter)
    # Added to samples of that class alone it is the same as both at once.
    later = ClassMoments.of(X + 5.0, np.full(9, 2), n_classes=3)
    both = ClassMoments.of(np.vstack([X, X + 5.0]), np.r_[label, np.full(9, 2)], n_classes=3)
    np.testing.assert_allclose((three + later).means, both.means)
    np.testing.assert_allclose((three + later).scatter, both.scatter)


@pytest.mark.parametrize("constant", [0.1, 1e9 + 0.1])
def test_what_rounding_made_is_neither_deviation_nor_gap(constant):
    for seed in range(5):
        X, label, weight = draw(seed, 21, 2)
        X[:, 1] = constant
        moments = ClassMoments.of(X, label, weight)
        assert moments.deviation()[0] > 0.5
        assert moments.gap()[0] != 0.0
        assert moments.deviation()[1] == moments.gap()[1] == 0.0


@pytest.mark.parametrize("n_features", [3, 30])
def test_classes_beside_each_other_are_all_at_once(n_features):
    rng = np.random.default_rng(3)
    X, label = rng.standard_normal((18, n_features)) + 5.0, np.repeat([0, 1, 2], 6)
    parts = [ClassMoments.of(X[label == k], np.zeros(6, int), n_classes=1) for k in range(3)]
    joined = parts[0].beside(parts[1]).beside(parts[2])
    whole = ClassMoments.of(X, label, n_classes=3)
    for name in ("counts", "means", "largest"):
        np.testing.assert_allclose(getattr(joined, name), getattr(whole, name), rtol=1e-12)
    np.testing.assert_allclose(joined.dense_scatter(), whole.dense_scatter(), atol=1e-10)


def test_a_rotated_root_is_the_same_scatter_and_no_sample():
    rng = np.random.default_rng(4)
    X, label = rng.standard_normal((6, 20)), np.repeat([0, 1], 3)
    plain = ClassMoments.of(X, label)
    kept = plain.rotated()
    np.testing.assert_allclose(kept.dense_scatter(), plain.dense_scatter(), atol=1e-12)
    centred = X - plain.means[label]
    cosines = (kept.scatter @ centred.T) / np.linalg.norm(centred, axis=1)
    lengths = np.maximum(np.linalg.norm(kept.scatter, axis=1), 1e-12)
    assert (np.abs(cosines).max(1)[:-2] < 0.999 * lengths[:-2]).all()


@given(
    seed=st.integers(0, 2**16),
    n_samples=st.integers(3, 24),
    n_features=st.sampled_from([1, 3, 8, 30]),
    n_classes=st.integers(2, 3),
    cuts=st.sets(st.integers(1, 23), max_size=6),
    offset=st.sampled_from([0.0, 1e8]),
    weighted=st.booleans(),
)
def test_any_chunks_in_any_order_add_up(
    seed, n_samples, n_features, n_classes, cuts, offset, weighted
):
    """Roots, dense scatters and both; raw sums would have no digit left at this offset."""
    X, label, weight = draw(seed, n_samples, n_features, n_classes)
    moved = X + offset
    X = moved - offset
    weight = weight if weighted else np.ones(n_samples)
    chunks = np.split(
        np.random.default_rng(seed).permutation(n_samples),
        [cut for cut in sorted(cuts) if cut < n_samples],
    )
    parts = [
        ClassMoments.of(moved[chunk], label[chunk], weight[chunk], n_classes=n_classes)
        for chunk in chunks
    ]
    total = reduce(add, parts)
    whole = ClassMoments.of(X, label, weight, n_classes=n_classes)
    assert total.rooted <= (n_samples < n_features)
    rounding = 1e-10 if offset == 0.0 else 1e-6
    scale = 1.0 + np.abs(whole.dense_scatter()).max()
    np.testing.assert_allclose(total.counts, whole.counts)
    np.testing.assert_allclose(total.means, whole.means + offset, rtol=1e-14, atol=1e-13)
    np.testing.assert_allclose(total.dense_scatter(), whole.dense_scatter(), atol=rounding * scale)
    np.testing.assert_array_equal(total.largest, np.abs(moved).max(0))


@pytest.mark.parametrize("n_features", [4, 9, 30])
@pytest.mark.parametrize("unit", [1.0, 1e9])
def test_a_root_becomes_dense_when_it_has_as_many_rows_as_features(n_features, unit):
    """Every feature keeps its digits, however large the others are."""
    X, label, _ = draw(5, 40, n_features)
    units = np.where(np.arange(n_features) < 2, unit, 1.0)
    total = ClassMoments.of((X * units)[:2], label[:2])
    forms = []
    for place in range(2, 40):
        total = total + ClassMoments.of((X * units)[[place]], label[[place]])
        forms.append(total.rooted)
        if total.rooted:
            assert total.scatter.shape[0] <= place + 1
        rows = centred(X[: place + 1], label[: place + 1])
        scatter = total.dense_scatter() / np.outer(units, units)
        np.testing.assert_allclose(scatter, rows.T @ rows, atol=1e-10)
    # Once dense it stays so.
    assert forms == sorted(forms, reverse=True)
    assert not forms[-1]
    assert forms[0] == (n_features > 4)


@pytest.mark.parametrize("n_features", [4, 30])
@pytest.mark.parametrize("shrinkage", SHRINKAGES)
@pytest.mark.parametrize("own_scale", [False, True])
def test_a_batch_of_directions_is_each_of_them(n_features, shrinkage, own_scale):
    X, label, weight = draw(8, 15, n_features, batch=(5,))
    scale = None if own_scale else np.linspace(0.5, 2.0, n_features)
    options = {"correlation": np.array([0.5, 0.2])}
    batch = ClassMoments.of(X, label, weight)
    whole = learn_direction(batch, shrinkage, scale, **options)
    for place in range(5):
        moments = ClassMoments.of(X[place], label, weight)
        np.testing.assert_allclose(
            batch[place].dense_scatter(), moments.dense_scatter(), atol=1e-10
        )
        one = learn_direction(moments, shrinkage, scale, **options)
        for name in (
            "omega",
            "length",
            "noise",
            "nu",
            "shrinkage",
            "rank",
            "means",
            "covariance_dof",
        ):
            part = getattr(whole, name)[place]
            np.testing.assert_allclose(part, getattr(one, name), rtol=1e-7, atol=1e-9)
        dense = whole.sigma.dense()[place]
        np.testing.assert_allclose(dense, one.sigma.dense(), atol=1e-10 * np.abs(dense).max())
        assert whole.dof == one.dof


def shares(X, y):
    parts = np.exp(X / 10.0)
    return parts / parts.sum(-1, keepdims=True)


def flat(X, y):
    return np.concatenate([X, np.full((len(X), 1), 0.1)], -1)


def apart(X, y):
    """Windows of both classes alike but for a feature that is constant in each."""
    return np.concatenate([y[:, None], X[y == 0][np.cumsum(y == y[:, None], 1).diagonal() - 1]], -1)


#: Windows of each class of each task, number of features, and what is done to them.
WORLDS = {
    "equal": ([(9, 9)] * 6, 4, None),
    "ragged": ([(9, 9), (5, 12), (9, 9), (30, 4), (3, 3), (5, 12)], 4, None),
    "one window a class": ([(1, 1)] * 5, 4, None),
    "some of one window": ([(9, 9), (1, 1), (9, 9), (1, 5), (1, 1)], 4, None),
    "more features than windows": ([(6, 5)] * 4 + [(4, 4), (20, 20)], 25, None),
    "tied features": ([(15, 15), (15, 15), (8, 9), (4, 4), (2, 3)], 5, shares),
    "a constant feature": ([(9, 9)] * 3 + [(5, 7)] * 2, 4, flat),
    "one feature": ([(9, 9), (9, 9), (4, 5)], 1, None),
    "classes apart where nothing varies": ([(9, 9), (9, 9), (3, 3), (30, 30)], 4, apart),
}


@pytest.fixture(params=WORLDS)
def tasks(request, make_target):
    sizes, n_features, change = WORLDS[request.param]
    made = []
    for seed, n_each in enumerate(sizes):
        X, y = make_target(n_features, n_each, seed=seed)
        # In the order of time classes take turns.
        order = np.random.default_rng(seed).permutation(len(y))
        X, y = X[order], y[order]
        made.append(Task(X if change is None else change(X, y), y, f"p{seed}"))
    return made


def moments_of(tasks):
    samples = [(task.X, task.y) for task in tasks]
    return TaskMoments.of(samples)


def same_prior(one, other):
    np.testing.assert_allclose(one.feature_scale, other.feature_scale, rtol=1e-9)
    assert one.sums.keys() == other.sums.keys()
    for name, mine in one.sums.items():
        theirs = other.sums[name].arrays()
        assert mine.arrays().keys() == theirs.keys()
        for field, values in mine.arrays().items():
            np.testing.assert_allclose(values, theirs[field], rtol=1e-8, atol=1e-8, err_msg=field)


def prior_of(moments, shrinkage="oas"):
    return TaskPrior.from_moments(moments, shrinkage=shrinkage, rehearse=False)


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
def test_leaving_a_task_out_is_never_having_seen_it(tasks, shrinkage):
    moments = moments_of(tasks)
    for place in (0, len(tasks) // 2, len(tasks) - 1):
        rest = np.arange(len(tasks)) != place
        others = [task for task, kept in zip(tasks, rest, strict=True) if kept]
        same_prior(prior_of(moments[rest], shrinkage), prior_of(moments_of(others), shrinkage))


def test_a_task_can_be_left_out_after_another(tasks):
    moments = moments_of(tasks)
    kept = np.arange(len(tasks)) % 3 != 1
    twice = moments[kept][np.arange(kept.sum()) > 0]
    kept[0] = False
    same_prior(prior_of(twice), prior_of(moments[kept]))


def halves_of(task):
    """Earlier and later windows of both classes; None if a class has less than four."""
    places = [np.flatnonzero(task.y == label) for label in (0, 1)]
    if min(map(len, places)) < 4:
        return None
    middles = [(len(some) + 1) // 2 for some in places]
    early = np.concatenate([some[:k] for some, k in zip(places, middles, strict=True)])
    late = np.concatenate([some[k:] for some, k in zip(places, middles, strict=True)])
    return early, late


def autocorrelation_of(task):
    """Equation 47 for one task, lag by lag; zero where fewer than five pairs tell."""
    rule = FisherDiscriminant().fit(task.X, task.y)
    rows = (task.X - rule.means_[task.y]) / rule.feature_scale_
    inverse = np.linalg.inv(rule.covariance_)
    found = np.zeros(31)
    n_pairs = np.zeros(31)
    for run in (rows[task.y == 0], rows[task.y == 1]):
        for lag in range(min(len(run), 31)):
            for first, second in zip(run, run[lag:], strict=False):
                found[lag] += first @ inverse @ second
                n_pairs[lag] += 1
    found /= np.maximum(n_pairs, 1)
    if found[0] <= 0.0:
        return np.zeros(30)
    return np.where(n_pairs[1:] >= 5, found[1:] / found[0], 0.0)


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
def test_a_prior_is_a_plain_loop_of_discriminants(tasks, shrinkage):
    prior = TaskPrior.from_tasks(tasks, FisherDiscriminant(shrinkage=shrinkage), rehearse=False)
    sums = prior.sums["directions"]
    # Tasks of one window a class have no deviation; raw units if there are no others.
    able = [task for task in tasks if len(task.y) > 2]
    own = np.array([FisherDiscriminant().fit(task.X, task.y).feature_scale_ for task in able])
    scale = np.median(own, axis=0) if able else np.ones(prior.n_features)
    np.testing.assert_allclose(prior.feature_scale, scale)
    template = FisherDiscriminant(shrinkage=shrinkage, feature_scale=scale)

    def fitted(X, y):
        return FisherDiscriminant(**template.get_params()).fit(X, y)

    rules = [fitted(task.X, task.y) for task in tasks]
    W = np.array([rule.projection_ for rule in rules])
    np.testing.assert_allclose(sums.direction, W.sum(0), atol=1e-8)
    np.testing.assert_allclose(sums.outer, W.T @ W, atol=1e-8)
    plain = []
    for task in able:
        rows = centred(task.X, task.y) / scale
        plain.append(rows.T @ rows / (len(rows) - 2))
    if able:
        np.testing.assert_allclose(sums.average("within"), np.mean(plain, axis=0), atol=1e-10)
    else:
        assert sums.within is None
    alike = np.mean([autocorrelation_of(task) for task in tasks], axis=0)
    np.testing.assert_allclose(sums.average("autocorrelation"), alike, atol=1e-8)
    errors = []
    for task in tasks:
        halves = halves_of(task)
        if halves is not None:
            early, late = (fitted(task.X[some], task.y[some]).projection_ for some in halves)
            errors.append(((early - late) ** 2).sum() / 4.0)
    if errors:
        assert sums.average("noise") == pytest.approx(np.mean(errors), rel=1e-7)
    else:
        assert sums.noise is None

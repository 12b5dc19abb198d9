"""Class means with a bound: what a person adds, and what a release then holds."""

import dataclasses

import numpy as np
import pytest

from crossfade import HierarchicalBlendClassifier, Task, TaskPrior
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher import RUNS, TaskMoments
from tests.noise import watched_noise

pytestmark = pytest.mark.filterwarnings(
    "ignore::crossfade.exceptions.UncountedReleaseWarning"  # tests/test_ledger.py has these
)

SCALE = np.array([0.6, 2.0, 3.0, 3.0])
CLIP = 2.0


@pytest.fixture
def tasks(make_tasks):
    return make_tasks(6, n_each=(40, 45))


def build(tasks, groups=None, clip=CLIP, **options):
    if groups is not None:
        tasks = [
            dataclasses.replace(task, group=group)
            for task, group in zip(tasks, groups, strict=True)
        ]
    options = {"feature_scale": SCALE, "rehearse": False} | options
    return TaskPrior.from_tasks(tasks, mean_norm_bound=clip, **options)


def in_units(means):
    """Sums over people in units of what one person adds at most (equation 63)."""
    traces = np.trace(means.run_sums, axis1=-2, axis2=-1)
    return (
        means.mean_sum / CLIP,
        means.outer_sum / CLIP**2,
        means.within_sum / means.n_features,
        traces / (2.0 * means.n_features),
    )


def repeated(prior, times):
    """Prior of so many people like each of a prior."""
    return TaskPrior(prior.space, {name: one * times for name, one in prior.sums.items()})


def same_sums(one, other, rtol=1e-12):
    for name in ("mean_sum", "outer_sum", "within_sum", "run_counts", "run_sums"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol, atol=1e-12)
    assert (one.n_people, one.n_within) == (other.n_people, other.n_within)


def test_nobody_adds_more_than_the_bound(tasks):
    far = [dataclasses.replace(task, X=1e3 * np.asarray(task.X) + 1e4) for task in tasks]
    for task in (*tasks, *far):
        for part in in_units(build([task]).class_means):
            assert np.linalg.norm(part) <= 1.0 + 1e-12
    for part in in_units(build(far[:1]).class_means):
        assert np.linalg.norm(part) == pytest.approx(1.0)
    # What is too long keeps its direction.
    long, short = build(far[:1], clip=1e9).class_means, build(far[:1]).class_means
    np.testing.assert_allclose(
        short.mean_sum, CLIP * long.mean_sum / np.linalg.norm(long.mean_sum), rtol=1e-12
    )


def test_a_wide_bound_changes_nothing(tasks):
    same_sums(build(tasks, clip=1e6).class_means, build(tasks, clip=None).class_means)


def test_sessions_of_a_group_add_their_mean(tasks):
    whole = build(tasks, "aaabcc").class_means
    alone = [build([task]).class_means for task in tasks]
    shares = (1 / 3, 1 / 3, 1 / 3, 1.0, 1 / 2, 1 / 2)
    assert whole.n_people == 3.0
    for name in ("mean_sum", "outer_sum", "within_sum", "run_sums"):
        expected = sum(s * getattr(one, name) for s, one in zip(shares, alone, strict=True))
        np.testing.assert_allclose(getattr(whole, name), expected, rtol=1e-10, atol=1e-12)


def test_who_has_few_windows_adds_as_many_matrices(make_tasks):
    few = make_tasks(3, n_each=(1, 1))
    means = build(few).class_means
    assert means.n_within == 3.0
    np.testing.assert_allclose(means.within_sum, 3.0 * np.eye(4))
    np.testing.assert_array_equal(means.run_counts, np.full(RUNS.size, 3.0))
    np.testing.assert_allclose(
        np.trace(means.run_sums, axis1=-2, axis2=-1), 12.0 / RUNS, rtol=1e-12
    )
    # Beyond the longest run that somebody has, windows count as independent.
    some = build(make_tasks(3, n_each=(6, 6)), clip=100.0).class_means
    np.testing.assert_allclose(some.run_sums[5:], some.run_sums[4] * (5 / RUNS[5:, None, None]))


def test_nobody_looks_whether_features_were_centred(tasks):
    centred = [
        dataclasses.replace(task, X=np.asarray(task.X) - np.mean(task.X, 0)) for task in tasks
    ]
    assert build(centred, clip=None).space.centred_per_person
    assert not build(centred).space.centred_per_person
    assert build(centred, centred_per_person=True).space.centred_per_person


def test_moments_know_groups_and_the_bound(tasks):
    samples = [(np.asarray(task.X), np.asarray(task.y)) for task in tasks]
    groups = list("aabbcc")
    found = TaskPrior.from_moments(
        TaskMoments.of(samples),
        feature_scale=SCALE,
        mean_norm_bound=CLIP,
        groups=groups,
        classes=(0, 1),
    )
    assert found == build(tasks, groups, rehearse=True)


def test_rehearsals_use_what_is_kept(make_tasks):
    tasks = make_tasks(7, n_each=(40, 45))
    wide, plain = (build(tasks, clip=clip, rehearse=True) for clip in (1e6, None))
    for kind, record in plain.forecast_records.items():
        np.testing.assert_allclose(wide.forecast_records[kind].sums, record.sums, rtol=1e-6)
    tight = build(tasks, "aabbbcd", rehearse=True)
    found, other = (one.forecast_records["hierarchical"].sums for one in (tight, plain))
    assert np.abs(found - other).max() > 0.1


def test_the_bound_travels(tasks, tmp_path):
    prior = build(tasks, "aabbcd")
    prior.save(tmp_path / "prior.npz")
    again = TaskPrior.load(tmp_path / "prior.npz")
    assert again == prior
    assert again.space.mean_norm_bound == CLIP
    assert build(tasks, clip=None) != build(tasks, clip=1e6)


def test_priors_of_one_bound_are_added(tasks):
    added = build(tasks[:3], "aab") + build(tasks[3:], "ccd")
    same_sums(added.class_means, build(tasks, "aabccd").class_means)


@pytest.mark.parametrize("clip", [None, 3.0])
def test_other_bounds_are_refused(tasks, clip):
    one, other = build(tasks[:3]), build(tasks[3:], clip=clip)
    with pytest.raises(PriorMismatchError, match="mean_norm_bound"):
        _ = one + other
    assert (one.without("class_means") + other.without("class_means")).n_tasks == 6


@pytest.mark.parametrize("clip", [0, -1.0, np.nan, np.inf, "6", True, [1.0]])
def test_a_bound_is_a_positive_number(tasks, clip):
    with pytest.raises((ValueError, TypeError), match="mean_norm_bound"):
        build(tasks, clip=clip)


def test_a_release_holds_class_means_with_a_bound_only(tasks):
    pytest.importorskip("opendp")
    bounded, plain = build(tasks, "aabbcd", rehearse=True), build(tasks, "aabbcd", clip=None)
    public, less = bounded.released(1.0, 1e-5), plain.released(1.0, 1e-5)
    assert public.holds == ("directions", "class_means")
    assert less.holds == ("directions",)
    assert public.class_means.n_people == public.n_tasks == 4
    # One noise for all: 4.5 + 8.5 in the place of 4.5.
    assert public.release.noise / less.release.noise == pytest.approx(np.sqrt(13 / 4.5), rel=1e-5)
    assert bounded.without("class_means").released(1.0, 1e-5).release.noise == less.release.noise


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("n_tasks", [1, 2, 6])
def test_released_class_means_are_those_of_people(make_tasks, tmp_path, epsilon, n_tasks):
    pytest.importorskip("opendp")
    public = build(make_tasks(n_tasks)).released(epsilon, 1e-5)
    means = public.class_means
    assert np.linalg.norm(means.mean_sum) <= CLIP * n_tasks * (1 + 1e-12)
    for matrix in (means.outer_sum, means.within_sum, *means.run_sums):
        np.testing.assert_array_equal(matrix, matrix.T)
        assert np.linalg.eigvalsh(matrix)[0] > 0.0
    variances = np.trace(means.run_sums, axis1=-2, axis2=-1) / np.trace(means.within_sum)
    assert (np.diff(variances) <= 1e-12).all()
    assert (variances >= 1.0 / RUNS - 1e-12).all()
    public.save(tmp_path / "public.npz")
    assert TaskPrior.load(tmp_path / "public.npz") == public
    blend = HierarchicalBlendClassifier(public)
    assert np.isfinite(blend.start().predict_proba(np.zeros((1, 4)))).all()
    X, y = np.asarray(make_tasks(1)[0].X), np.asarray(make_tasks(1)[0].y)
    assert np.isfinite(blend.fit(X, y).coef_).all()
    assert 0.0 <= blend.expected_accuracy_ <= 1.0


def test_without_noise_class_means_stay(make_tasks):
    """Of so many people that noise is a millionth of what one of them adds."""
    pytest.importorskip("opendp")
    many = repeated(build(make_tasks(60, n_each=(40, 40))), 2000.0)
    public, exact = many.released(1000.0, 1e-5), many.class_means
    assert public.release.noise < 1e-6 * many.n_people
    for name in ("mean_sum", "outer_sum", "within_sum"):
        found, expected = (getattr(one, name) for one in (public.class_means, exact))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    assert public.law.class_means.dof == pytest.approx(20.0)


@pytest.mark.parametrize("d", [4, 9, 30])
def test_noise_alone_makes_no_structure(d):
    """Eigenvalues of noise of deviation s lie within s times the root of 2 d of its level."""
    pytest.importorskip("opendp")
    rng = np.random.default_rng(0)

    def crowd(*tasks):
        options = {"rehearse": False, "mean_norm_bound": CLIP}
        return TaskPrior.from_tasks(tasks, feature_scale=np.ones(d), **options)

    # With one window of each class a person adds the identity.
    even = repeated(crowd(*(Task(rng.normal(size=(2, d)), [0, 1]) for _ in range(2))), 10.0 * d)
    X = rng.normal(size=(80, d)) * np.where(np.arange(d), 0.1, np.sqrt(0.8 * d))
    uneven = crowd(Task(X, [0, 1] * 40))
    spreads = []
    with watched_noise(seed=1):
        for _ in range(10):
            public, drawn = even.released(20.0, 1e-5), rng.normal(size=(d, d))
            drawn = d * public.release.noise * (drawn + drawn.T) / 2.0
            found = (np.linalg.eigvalsh(one) for one in (public.class_means.within_sum, drawn))
            spreads.append([np.ptp(values) for values in found])
        many, drowned = repeated(uneven, 1000.0), uneven.released(0.01, 1e-5)
        stands_out = many.released(20.0, 1e-5).class_means.within_sum[0, 0]
    released, noise = np.mean(spreads, 0)
    assert released < 0.5 * noise
    # What stands out is kept, and what is below the noise is not taken for nothing.
    assert stands_out == pytest.approx(many.class_means.within_sum[0, 0], rel=0.02)
    least = np.linalg.eigvalsh(drowned.class_means.within_sum)[0]
    assert least > 0.1 * d * drowned.release.noise


def test_a_released_crowd_still_helps(make_tasks):
    """Many people, and a budget at which noise hardly matters: as good as the exact prior."""
    pytest.importorskip("opendp")
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], 20)

    def person():
        X = rng.normal(size=(40, 3)) + np.outer(2 * label - 1, [1.0, 0.3, 0.0])
        return Task(X + rng.normal(0.0, 0.3, 3), label)

    crowd = TaskPrior.from_tasks(
        [person() for _ in range(200)],
        feature_scale=np.ones(3),
        rehearse=False,
        mean_norm_bound=4.0,
    )
    rules = [
        HierarchicalBlendClassifier(prior).start() for prior in (crowd, crowd.released(20.0, 1e-5))
    ]
    new = [person() for _ in range(50)]
    exact, public = (np.mean([rule.score(one.X, one.y) for one in new]) for rule in rules)
    assert exact > 0.8
    assert public == pytest.approx(exact, abs=0.03)

"""Thresholds from unlabelled samples: nearer to the best; alone and in batches the same."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from crossfade import ConvexBlendClassifier, PosteriorBlendClassifier, TaskPrior
from crossfade.blend._unlabelled import threshold_of
from crossfade.study import CalibrationStudy

LABEL = np.repeat([0, 1], 2)


def draw(n_repeats, n_unlabelled, gap=1.0, seed=0):
    """Scores of two labelled samples a class and of unlabelled ones; the best threshold is 0."""
    rng = np.random.default_rng(seed)
    labelled = rng.standard_normal((n_repeats, 4)) + gap * (2 * LABEL - 1)
    sign = rng.choice([-1.0, 1.0], (n_repeats, n_unlabelled))
    return labelled, rng.standard_normal(sign.shape) + gap * sign


def middle_of(labelled, unlabelled, label=LABEL):
    """Threshold by the labelled scores' counts, means and variance within the classes."""
    counts = np.bincount(label)
    means = np.stack([labelled[..., label == name].mean(-1) for name in (0, 1)], -1)
    variance = ((labelled - means[..., label]) ** 2).mean(-1)
    return threshold_of(counts.astype(float), means, variance, unlabelled)


@pytest.mark.parametrize("gap", [0.5, 1.0, 2.0])
def test_unlabelled_samples_bring_the_threshold_nearer(gap):
    labelled, unlabelled = draw(2000, 90, gap)
    placed = middle_of(labelled, unlabelled) ** 2
    middle = labelled.mean(1) ** 2
    gain = middle - placed
    assert gain.mean() > 5.0 * gain.std() / np.sqrt(gain.size)
    assert placed.mean() < 0.6 * middle.mean()


def test_with_nothing_labelled_to_speak_of_it_is_a_mixture_of_two_normals():
    labelled, unlabelled = draw(1, 20_000, gap=1.5, seed=3)
    placed = middle_of(labelled, unlabelled)[0]
    mixture = GaussianMixture(2, covariance_type="tied", random_state=0).fit(unlabelled.T)
    assert placed == pytest.approx(mixture.means_.mean(), abs=0.02)


def test_batches_are_their_members():
    labelled, unlabelled = draw(5, 30)
    whole = middle_of(labelled, unlabelled)
    for place in range(5):
        one = middle_of(labelled[place], unlabelled[place])
        assert one == pytest.approx(whole[place], abs=1e-12)


def test_weights_are_repetitions(make_target, make_prior):
    X, y = make_target()
    new, _ = make_target(n_each=(30, 30), seed=1)
    weight = 1 + np.arange(len(y)) % 3
    weighted = PosteriorBlendClassifier(make_prior()).fit(X, y, sample_weight=weight)
    repeated = PosteriorBlendClassifier(make_prior())
    repeated.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.place_threshold(new).intercept_ == pytest.approx(
        repeated.place_threshold(new).intercept_, abs=1e-9
    )


@pytest.mark.parametrize("blend", [ConvexBlendClassifier, PosteriorBlendClassifier])
def test_a_blend_moves_its_threshold_and_nothing_else(blend, make_target, make_prior):
    X, y = make_target()
    few = np.r_[0:3, 8:11]
    rest = np.setdiff1d(np.arange(16), few)
    clf = blend(make_prior()).fit(X[few], y[few])
    before = {name: value for name, value in vars(clf).items() if name != "intercept_"}
    scores, own = clf.decision_function(X[rest]), clf.decision_function(X[few])
    intercept = clf.intercept_.copy()
    assert clf.place_threshold(X[rest]) is clf
    moved = middle_of(own, scores, y[few])
    np.testing.assert_allclose(clf.decision_function(X[rest]), scores - moved)
    assert all(vars(clf)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(clf.fit(X[few], y[few]).intercept_, intercept)


def test_a_blend_of_one_class_has_no_threshold_to_place(make_target, make_tasks):
    X, y = make_target()
    prior = TaskPrior.from_tasks(make_tasks())
    clf = PosteriorBlendClassifier(prior, on_missing_class="prior").fit(X[:4], y[:4])
    with pytest.raises(ValueError, match="needs labelled samples of both"):
        clf.place_threshold(X[8:])


def test_the_study_does_what_the_estimator_does(make_tasks):
    tasks = make_tasks(6)
    options = {"splits": "chronological", "budgets": [3], "random_state": 0}
    study = CalibrationStudy(tasks, methods=["posterior-unlabelled"], **options)
    rows = study.run().rows.set_index("task")
    prior = TaskPrior.from_tasks(tasks[1:])
    few, rest = np.r_[0:3, 10:13], np.r_[3:10, 13:20]
    X, y = tasks[0].X, tasks[0].y
    clf = PosteriorBlendClassifier(prior).fit(X[few], y[few]).place_threshold(X[rest])
    assert rows.loc["p0", "accuracy"] == clf.score(X[rest], y[rest])
    assert rows.loc["p0", "expected_accuracy"] == pytest.approx(clf.expected_accuracy_)

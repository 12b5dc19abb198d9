"""One weight for each source: priors that keep directions, the fitted blend, each refusal."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from crossfade import ConvexBlendClassifier, FisherDiscriminant, Task, TaskPrior
from crossfade.blend._per_task import PENALTIES, _at
from crossfade.fisher._direction import learn_direction
from crossfade.fisher._moments import ClassMoments
from crossfade.simulate import draw_directions, simulate_tasks


@pytest.fixture
def clusters():
    """Forty directions in two clusters, the first twenty around the first axis."""
    rng = np.random.default_rng(1)
    first, second = np.eye(5)[:2]
    return np.concatenate(
        [
            draw_directions(20, 5, 60.0, mean_direction=axis, random_state=rng)
            for axis in (first, second)
        ]
    )


def samples(nu, n, seed=2):
    label = np.repeat([0, 1], n // 2)
    noise = np.random.default_rng(seed).normal(size=(n, nu.size))
    return noise + np.where(label, 1, -1)[:, None] * nu, label


# -- priors that keep directions ------------------------------------------------------------


def test_directions_are_kept_only_when_asked_for(clusters):
    assert TaskPrior.from_projections(clusters).directions is None
    prior = TaskPrior.from_projections(clusters, keep_directions=True)
    np.testing.assert_array_equal(prior.directions, clusters)
    assert not prior.directions.flags.writeable
    assert prior != TaskPrior.from_projections(clusters)
    again = pickle.loads(pickle.dumps(prior))
    assert again == prior


def test_directions_of_tasks_are_those_of_their_discriminants():
    tasks = simulate_tasks(6, 30, n_features=4, random_state=0)
    assert TaskPrior.from_tasks(tasks).directions is None
    prior = TaskPrior.from_tasks(tasks, keep_directions=True)
    plain = FisherDiscriminant(feature_scale=prior.feature_scale)
    expected = [clone(plain).fit(task.X, task.y).projection_ for task in tasks]
    np.testing.assert_allclose(prior.directions, expected)


def test_merging_updating_and_turning_keep_directions(clusters):
    ours = TaskPrior.from_projections(clusters[:15], keep_directions=True)
    theirs = TaskPrior.from_projections(clusters[15:], keep_directions=True)
    np.testing.assert_array_equal((ours + theirs).directions, clusters)
    np.testing.assert_array_equal(ours.update(clusters[15:]).directions, clusters)
    np.testing.assert_array_equal(ours.reversed().directions, -clusters[:15])
    assert (ours + TaskPrior.from_projections(clusters[15:])).directions is None
    assert TaskPrior.from_projections(clusters[:15]).update(clusters[15:]).directions is None


def test_file_and_text_say_that_single_directions_are_inside(clusters, tmp_path):
    prior = TaskPrior.from_projections(clusters, keep_directions=True)
    prior.save(tmp_path / "prior.npz")
    assert TaskPrior.load(tmp_path / "prior.npz") == prior
    with np.load(tmp_path / "prior.npz") as archive:
        np.testing.assert_array_equal(archive["directions"], clusters)
    assert "every single task" in prior.summary()
    assert "every single task" in prior.card()
    sums = TaskPrior.from_projections(clusters)
    sums.save(tmp_path / "sums.npz")
    with np.load(tmp_path / "sums.npz") as archive:
        assert "directions" not in archive.files
    assert "every single task" not in sums.summary() + sums.card()


def test_directions_that_do_not_belong_to_the_sums_are_refused(clusters):
    fields = {
        "n_tasks": 40,
        "direction_sum": clusters.sum(0),
        "outer_sum": None,
        "feature_scale": np.ones(5),
    }
    with pytest.raises(ValueError, match="do not add up to direction_sum"):
        TaskPrior(**fields, directions=-clusters)
    with pytest.raises(ValueError, match=r"directions must be of shape \(40, 5\)"):
        TaskPrior(**fields, directions=clusters[:39])
    with pytest.raises(ValueError, match="unit vectors"):
        TaskPrior(**fields, directions=2.0 * clusters)


# -- the fitted blend -----------------------------------------------------------------------


def test_weights_go_to_the_sources_of_the_target_s_cluster(clusters):
    prior = TaskPrior.from_projections(clusters, keep_directions=True)
    X, y = samples(np.eye(5)[1], 20)
    blend = ConvexBlendClassifier(prior, weights="per-task").fit(X, y)
    assert blend.source_weights_.shape == (40,)
    assert blend.source_weights_.min() >= 0.0
    assert blend.source_weights_.sum() == pytest.approx(1.0)
    assert blend.source_weights_[20:].sum() > 0.95
    assert blend.source_projection_ @ np.eye(5)[1] > 0.98
    assert blend.penalty_ in PENALTIES
    assert blend.penalty_ < np.inf
    average = ConvexBlendClassifier(prior).fit(X, y)
    assert not hasattr(average, "source_weights_")
    assert blend.projection_[1] > average.projection_[1]


def test_blend_is_the_convex_combination_that_its_attributes_say(clusters):
    prior = TaskPrior.from_projections(clusters, keep_directions=True)
    X, y = samples(np.eye(5)[1], 8)
    for options in ({}, {"alpha": 0.3}, {"alphas": [0.0, 0.25, 0.5, 1.0]}):
        blend = ConvexBlendClassifier(prior, weights="per-task", **options).fit(X, y)
        crowd = blend.source_weights_ @ clusters
        omega = blend.alpha_ * blend.target_projection_ + (1.0 - blend.alpha_) * crowd
        np.testing.assert_allclose(blend.projection_, omega / np.linalg.norm(omega), atol=1e-12)
        np.testing.assert_allclose(blend.source_projection_, crowd / np.linalg.norm(crowd))


def test_alpha_may_be_given_or_come_from_a_grid(clusters):
    prior = TaskPrior.from_projections(clusters, keep_directions=True)
    X, y = samples(np.eye(5)[1], 8)
    free = ConvexBlendClassifier(prior, weights="per-task").fit(X, y)
    given = ConvexBlendClassifier(prior, weights="per-task", alpha=0.8).fit(X, y)
    assert given.alpha_ == 0.8
    assert np.isnan(given.risks_).all()
    np.testing.assert_array_equal(given.source_weights_, free.source_weights_)
    grid = ConvexBlendClassifier(prior, weights="per-task", alphas=[0.0, 0.5, 1.0]).fit(X, y)
    assert grid.alpha_ == grid.alphas_[grid.risks_.argmin()]
    assert grid.penalty_ == free.penalty_
    assert free.alphas_.shape == free.risks_.shape == (21,)
    nearest = free.alphas_[free.risks_.argmin()]
    assert abs(nearest - free.alpha_) <= free.alphas_[1]


def test_classes_in_another_order_turn_the_sources_round(clusters):
    prior = TaskPrior.from_projections(clusters, classes=("a", "b"), keep_directions=True)
    X, y = samples(np.eye(5)[1], 10)
    forward = ConvexBlendClassifier(prior, weights="per-task").fit(X, np.array(["a", "b"])[y])
    turned = ConvexBlendClassifier(prior, weights="per-task", classes=("z", "y"))
    turned.fit(X, np.array(["z", "y"])[y])
    np.testing.assert_allclose(turned.source_weights_, forward.source_weights_)
    np.testing.assert_allclose(turned.projection_, -forward.projection_)


def test_order_of_sources_does_not_matter_to_the_weights(clusters):
    X, y = samples(np.eye(5)[1], 10)
    person = learn_direction(ClassMoments.of(X, y), "oas", np.ones(5))
    order = np.random.default_rng(4).permutation(40)
    blend, shuffled = (_at(person, W, np.array(4.0), None)[0] for W in (clusters, clusters[order]))
    np.testing.assert_allclose(shuffled.weights, blend.weights[order])
    np.testing.assert_allclose(shuffled.omega, blend.omega)


def test_sources_of_other_domains_keep_their_directions(clusters):
    tasks = simulate_tasks(5, 20, n_features=5, random_state=5)
    X, y = samples(np.eye(5)[0], 8)
    rows = np.concatenate([*(task.X for task in tasks), X])
    labels = np.concatenate([*(task.y for task in tasks), y])
    domain = np.concatenate([np.repeat(np.arange(1, 6), 20), np.full(8, -1)])
    blend = ConvexBlendClassifier(weights="per-task").fit(rows, labels, sample_domain=domain)
    expected = TaskPrior.from_tasks(tasks, keep_directions=True)
    np.testing.assert_allclose(blend.prior_.directions, expected.directions)
    assert blend.source_weights_.shape == (5,)
    assert ConvexBlendClassifier().fit(rows, labels, sample_domain=domain).prior_.directions is None


@pytest.mark.parametrize("n_tasks", [1, 2, 3])
@pytest.mark.parametrize("n", [2, 4, 10])
def test_few_sources_and_few_samples(n_tasks, n, clusters):
    prior = TaskPrior.from_projections(clusters[:n_tasks], keep_directions=True)
    X, y = samples(np.eye(5)[0], n)
    blend = ConvexBlendClassifier(prior, weights="per-task").fit(X, y)
    assert np.isfinite(blend.projection_).all()
    assert 0.0 <= blend.alpha_ <= 1.0
    assert 0.0 < blend.expected_accuracy_ < 1.0
    if n_tasks < 3:
        assert blend.penalty_ == np.inf
        np.testing.assert_allclose(blend.source_weights_, 1.0 / n_tasks)


def test_sources_that_cancel_leave_the_person_alone():
    W = np.concatenate([np.eye(4)[:1], -np.eye(4)[:1]])
    prior = TaskPrior.from_projections(W, keep_directions=True)
    X, y = samples(np.eye(4)[0], 12)
    blend = ConvexBlendClassifier(prior, weights="per-task").fit(X, y)
    assert blend.alpha_ == 1.0
    assert blend.source_projection_ is None
    np.testing.assert_allclose(blend.projection_, blend.target_projection_)


def test_features_that_are_tied_and_more_features_than_samples():
    rng = np.random.default_rng(6)
    shares = rng.dirichlet(np.ones(4), size=(8, 24))
    label = np.repeat([0, 1], 12)
    shares[:, label == 1, 0] += 0.3
    shares /= shares.sum(-1, keepdims=True)
    tasks = [Task(rows, label) for rows in shares]
    prior = TaskPrior.from_tasks(tasks[1:], keep_directions=True)
    tied = ConvexBlendClassifier(prior, weights="per-task").fit(shares[0], label)
    assert tied.score(shares[0], label) > 0.7
    wide = TaskPrior.from_projections(
        draw_directions(30, 80, 200.0, random_state=rng), keep_directions=True
    )
    X, y = samples(np.eye(80)[0], 10)
    blend = ConvexBlendClassifier(wide, weights="per-task").fit(X, y)
    assert blend.projection_[0] > blend.target_projection_[0]


def test_where_there_is_nothing_to_weigh(clusters):
    X, y = samples(np.eye(5)[0], 10)
    alone = ConvexBlendClassifier(weights="per-task").fit(X, y)
    assert alone.alpha_ == 1.0
    assert alone.source_weights_.size == 0
    prior = TaskPrior.from_projections(clusters, keep_directions=True)
    same = np.tile(X[:5], (2, 1))
    equal = ConvexBlendClassifier(prior, weights="per-task").fit(same, y)
    assert (equal.alpha_, equal.penalty_) == (0.0, np.inf)
    np.testing.assert_allclose(equal.source_weights_, 1.0 / 40)


# -- refusals -------------------------------------------------------------------------------


def test_a_prior_without_directions_is_refused(clusters):
    X, y = samples(np.eye(5)[0], 10)
    blend = ConvexBlendClassifier(TaskPrior.from_projections(clusters), weights="per-task")
    with pytest.raises(ValueError, match=r"holds sums only.*keep_directions=True"):
        blend.fit(X, y)


@pytest.mark.parametrize(
    "option", [{"psi": "authors"}, {"noise": "plus"}, {"method": "monte_carlo"}]
)
def test_settings_of_the_paper_s_risk_are_refused(option, clusters):
    prior = TaskPrior.from_projections(clusters, keep_directions=True)
    X, y = samples(np.eye(5)[0], 10)
    with pytest.raises(ValueError, match="expected risk of its own"):
        ConvexBlendClassifier(prior, weights="per-task", **option).fit(X, y)


def test_unknown_weights_are_refused():
    X, y = samples(np.eye(5)[0], 10)
    with pytest.raises(ValueError, match="weights must be one of"):
        ConvexBlendClassifier(weights="each").fit(X, y)

"""Released priors: what they hold, what they refuse, how they are saved, and the obvious attack."""

import dataclasses
import pickle
import sys

import numpy as np
import pytest

from crossfade import ConvexBlendClassifier, PosteriorBlendClassifier, TaskPrior
from crossfade.exceptions import CancellingSourcesWarning

pytest.importorskip("opendp")
pytestmark = pytest.mark.filterwarnings(
    "ignore::crossfade.exceptions.UncountedReleaseWarning"  # tests/test_ledger.py has these
)


@pytest.fixture
def released(make_prior):
    return make_prior(40, 4, classes=(0, 1), feature_names=list("abcd")).released(2.0, 1e-5)


def cosine(one, other):
    return one @ other / (np.linalg.norm(one) * np.linalg.norm(other))


def exact_twin(released):
    """The same prior as if its sums were exact."""
    return dataclasses.replace(released, origin=dataclasses.replace(released.origin, release=None))


def with_release(prior, release, **sums):
    """The prior as if it were the release, with other sums of directions."""
    directions = dataclasses.replace(prior.directions, **sums)
    origin = dataclasses.replace(prior.origin, release=release)
    return dataclasses.replace(prior, sums={"directions": directions}, origin=origin)


def test_a_released_prior_knows_its_budget(released):
    assert (released.release.epsilon, released.release.delta) == (2.0, 1e-5)
    assert released.release.noise > 1.0
    assert released.release.scale_covered
    assert (released.n_tasks, released.classes) == (40, (0, 1))
    assert released.feature_names == tuple("abcd")
    for text in (repr(released), released.summary(), released.card()):
        assert "epsilon" in text


def test_only_what_has_a_bound_is_released(make_tasks):
    exact = TaskPrior.from_tasks(make_tasks(), feature_scale=np.ones(4)).annotated(made_by="A")
    released = exact.released(1.0, 1e-5)
    assert released.holds == ("directions",)
    kept = {"n_tasks", "n_people", "direction", "person_direction", "outer", "person_outer"}
    assert released.directions.arrays().keys() == kept
    assert released.about == {"made_by": "A"}
    assert released.origin.builds.isdisjoint(exact.origin.builds)
    np.testing.assert_array_equal(released.feature_scale, exact.feature_scale)
    assert not np.allclose(released.directions.direction, exact.directions.direction, atol=1e-3)
    assert not np.allclose(released.directions.outer, exact.directions.outer, atol=1e-3)


def test_a_release_does_not_say_whether_features_were_centred(make_tasks):
    """One person could change that, and it only matters to class means."""
    tasks = [dataclasses.replace(task, X=task.X - task.X.mean(0)) for task in make_tasks()]
    exact = TaskPrior.from_tasks(tasks, feature_scale=np.ones(4), rehearse=False)
    assert exact.space.centred_per_person
    assert not exact.released(1.0, 1e-5).space.centred_per_person


def test_every_release_is_another(make_prior):
    one, other = (make_prior(40, 4).released(100.0, 1e-5) for _ in range(2))
    assert one.release == other.release
    assert one != other


def test_an_isotropic_prior_needs_less_noise(make_prior):
    full, less = (
        make_prior(40, 4, isotropic=isotropic).released(1.0, 1e-5) for isotropic in (False, True)
    )
    assert less.directions.outer is None
    assert less.release.noise / full.release.noise == pytest.approx(np.sqrt(4.0 / 4.5), rel=1e-6)


def test_with_a_large_budget_little_changes(make_prior):
    exact = make_prior(500, 4)
    released = exact.released(1000.0, 1e-5)
    np.testing.assert_allclose(released.mean, exact.mean, atol=0.01)
    np.testing.assert_allclose(released.scatter, exact.scatter, atol=0.01)
    np.testing.assert_allclose(released.standard_error(), exact.standard_error(), atol=1e-4)
    assert released.concentration == pytest.approx(exact.concentration, rel=0.02)


@pytest.mark.parametrize("n_features", [1, 2, 9])
@pytest.mark.parametrize("n_tasks", [1, 2, 36])
@pytest.mark.parametrize("epsilon", [0.01, 10.0])
def test_sums_are_always_those_of_unit_directions(n_features, n_tasks, epsilon):
    directions = np.random.default_rng(n_tasks).normal(size=(n_tasks, n_features))
    exact = TaskPrior.from_projections(directions, normalize=True)
    released = exact.released(epsilon, 1e-6)
    assert np.linalg.norm(released.directions.direction) <= n_tasks * (1 + 1e-12)
    assert np.trace(released.directions.outer) == pytest.approx(n_tasks)
    assert np.linalg.eigvalsh(released.directions.outer)[0] >= -1e-9
    assert np.linalg.eigvalsh(released.scatter)[0] > 0.0
    assert np.linalg.norm(released.mean) <= released.resultant_length


@pytest.mark.parametrize("form", ["tangent", "authors", "printed"])
def test_standard_error_holds_the_noise(make_prior, form):
    released = make_prior(400, 4).released(1.0, 1e-5)
    added = (released.release.noise / (400 * released.resultant_length)) ** 2
    shape = np.eye(4)
    if form == "tangent":
        shape = shape - np.outer(released.mean_direction, released.mean_direction)
    found = released.standard_error(form) - exact_twin(released).standard_error(form)
    np.testing.assert_allclose(found, added * shape, atol=1e-12)


def test_scatter_holds_the_noise(make_prior):
    for isotropic in (False, True):
        exact = make_prior(40, 4, isotropic=isotropic)
        released = exact.released(1.0, 1e-5)
        shorter = np.linalg.norm(released.mean)
        assert shorter < exact.resultant_length
        assert np.trace(released.scatter) == pytest.approx(40 / 39 * (1.0 - shorter**2))


def test_a_prior_drowned_in_noise_is_left_alone(make_prior, make_target):
    drowned = make_prior(30, 4).released(0.01, 1e-6)
    assert drowned.cancels
    assert not drowned.mean.any()
    np.testing.assert_allclose(drowned.scatter, 30 / 29 / 4 * np.eye(4))
    X, y = make_target()
    with pytest.warns(CancellingSourcesWarning):
        blend = ConvexBlendClassifier(drowned).fit(X, y)
    assert blend.alpha_ == 1.0
    assert np.isfinite(PosteriorBlendClassifier(drowned).fit(X, y).projection_).all()


def test_a_learnt_scale_is_not_covered(make_tasks):
    learnt = TaskPrior.from_tasks(make_tasks(), rehearse=False)
    given = TaskPrior.from_tasks(
        make_tasks(12)[6:], feature_scale=learnt.feature_scale, rehearse=False
    )
    for prior in (learnt, learnt + given, given + learnt):
        with pytest.warns(UserWarning, match="scale") as caught:
            released = prior.released(1.0, 1e-5)
        assert caught[0].filename == __file__
        assert not released.release.scale_covered
        assert "not covered" in released.summary()
    assert given.released(1.0, 1e-5).release.scale_covered


def test_a_released_prior_is_saved_with_its_budget(released, tmp_path):
    released.save(tmp_path / "prior.npz")
    again = TaskPrior.load(tmp_path / "prior.npz")
    assert again == released
    assert again.release == released.release
    np.testing.assert_array_equal(again.scatter, released.scatter)
    assert pickle.loads(pickle.dumps(released)) == released


def test_agreement_that_noise_hides_is_not_told(make_prior):
    exact = make_prior(36, 9)
    # Where R is cut off at 1, and where at 0.
    noise = exact.released(0.1, 1e-5).release
    for length in (0.0, 36.0):
        released = with_release(exact, noise, direction=length * np.eye(9)[0])
        assert released.resultant_length == length / 36
        assert released.concentration == 0.0
        data = released.card_data()
        assert data["agreement"] is data["concentration"] is None
        for text in (released.card(), released.summary()):
            assert text.count("hidden by noise") == 2


def test_agreement_is_told_as_far_as_it_can_be_trusted(make_prior):
    released = make_prior(400, 4).released(1.0, 1e-5)
    trusted = released.card_data()["agreement"]
    assert trusted == pytest.approx(np.linalg.norm(released.mean), rel=1e-3)
    assert 0.0 < trusted < released.resultant_length


def test_a_summary_is_not_released(make_prior, make_directions, tmp_path):
    exact = make_prior(40, 4, isotropic=True)
    summary = TaskPrior.from_summary(exact.mean_direction, exact.standard_error(), 40)
    summary.save(tmp_path / "summary.npz")
    for prior in (
        summary,
        TaskPrior.load(tmp_path / "summary.npz"),
        summary + exact,
        exact + summary,
        summary.update(make_directions(5, 4)),
        pickle.loads(pickle.dumps(summary)),
    ):
        assert prior.card_data()["privacy"] == {"kind": "summary"}
        with pytest.raises(ValueError, match="from_summary"):
            prior.released(1.0, 1e-5)


def test_a_released_prior_is_not_exact_any_more(released, make_prior):
    exact = make_prior(40, 4, classes=(0, 1), feature_names=list("abcd"))
    for operation in (
        lambda: released + exact,
        lambda: exact + released,
        lambda: released.update(np.eye(4)),
        lambda: released.released(1.0, 1e-5),
    ):
        with pytest.raises(ValueError, match="released"):
            operation()


EPSILONS = (0, -1.0, np.nan, np.inf, 1001, True, "1", None, [1.0])
DELTAS = (0, -1e-5, 1.0, 2, np.nan, np.inf, False, "1e-5", None)


@pytest.mark.parametrize(
    ("epsilon", "delta", "word"),
    [
        *((one, 1e-5, "epsilon") for one in EPSILONS),
        *((1.0, one, "delta") for one in DELTAS),
        (1e-300, 1e-300, "epsilon"),
    ],
)
def test_budgets_are_refused(make_prior, epsilon, delta, word):
    with pytest.raises((ValueError, TypeError), match=word):
        make_prior().released(epsilon, delta)


def test_it_says_what_to_install(make_prior, monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(ImportError, match="privacy"):
        make_prior(7, 3).released(0.77, 1e-5)


def last_of(whole, others):
    """What the sums of two priors say about the one task by which they differ."""
    noise = 0.0 if whole.release is None else whole.release.noise
    length = np.linalg.norm(whole.directions.direction)
    # A release shortens its sum by what the noise made it longer: the attacker undoes it.
    longer = np.sqrt(length**2 + whole.n_features * noise**2) / max(length, 1e-12)
    return longer * whole.directions.direction - others.directions.direction


def test_two_exact_priors_give_away_the_participant_between_them(make_tasks):
    tasks = make_tasks(8)
    whole, others, alone = (
        TaskPrior.from_tasks(some, feature_scale=np.ones(4), rehearse=False)
        for some in (tasks, tasks[:-1], tasks[-1:])
    )
    found = cosine(last_of(whole, others), alone.directions.direction)
    assert found == pytest.approx(1.0, abs=1e-12)
    found = whole.class_means - others.class_means
    np.testing.assert_allclose(found.mean_sum, alone.class_means.mean_sum, atol=1e-10)


def test_a_release_hides_the_participant_unless_its_budget_is_huge(make_directions):
    W = make_directions(30, 9)
    whole, others = TaskPrior.from_projections(W), TaskPrior.from_projections(W[:-1])

    def found(epsilon, repeats):
        attacks = [last_of(whole.released(epsilon, 1e-5), others) for _ in range(repeats)]
        return np.mean([cosine(attack, W[-1]) for attack in attacks])

    # By chance the cosine is 0 on average with a deviation of a third: 0.35 is five standard
    # errors and the little that epsilon = 1 lets through.
    assert found(1.0, 30) < 0.35
    assert found(1000.0, 3) > 0.9

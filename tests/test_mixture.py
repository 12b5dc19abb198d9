"""MixturePrior: what it holds, what equals a TaskPrior, files, and each refusal."""

import copy
import json
import pickle

import numpy as np
import pytest

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    MixturePrior,
    PosteriorBlendClassifier,
    TaskPrior,
    load_model,
    save_model,
)
from crossfade import blend as verbs
from crossfade.blend import meet, posterior
from crossfade.exceptions import CancellingSourcesWarning
from crossfade.fisher import _spectrum
from crossfade.fisher._direction import direction_of
from crossfade.prior._vmf_mixture import choose_mixture, fit_mixture
from crossfade.simulate import draw_directions

BLENDS = {
    "posterior": PosteriorBlendClassifier,
    "strength 1": lambda prior, **more: PosteriorBlendClassifier(prior, strength=1.0, **more),
    "strength 0": lambda prior, **more: PosteriorBlendClassifier(prior, strength=0.0, **more),
    "risk": lambda prior, **more: PosteriorBlendClassifier(prior, strength="risk", **more),
    "convex": ConvexBlendClassifier,
    "alpha": lambda prior, **more: ConvexBlendClassifier(prior, alpha=0.3, **more),
}


@pytest.fixture
def mixture(make_clusters):
    return MixturePrior.from_projections(make_clusters(), 2)


def person_of(rows, own, noise):
    """Someone with this direction and noise, whose covariance is that of the rows."""
    sigma = _spectrum.from_rows(rows)
    length = np.full(own.shape[:-1], 1.3)
    nu = length[..., None] * sigma.apply(own)
    made = direction_of(sigma, nu, np.full((*length.shape, 2), 6.0), 0.0)
    np.testing.assert_allclose(made.omega, own, atol=1e-9)
    return made._replace(noise=noise)


@pytest.fixture(params=BLENDS)
def blend(request):
    return BLENDS[request.param]


def same_rule(one, other):
    for name in ("coef_", "intercept_", "projection_", "source_projection_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12)
    for name in ("alpha_", "expected_accuracy_", "expected_accuracy_error_"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9)


# -- one component --------------------------------------------------------------------------


@pytest.mark.parametrize("isotropic", [False, True])
def test_one_component_is_a_task_prior(make_directions, make_target, blend, isotropic):
    W = make_directions()
    single = TaskPrior.from_projections(W, isotropic=isotropic)
    mixture = MixturePrior.from_projections(W, 1, isotropic=isotropic)
    assert mixture.pooled == single
    assert mixture.counts.tolist() == [30.0]
    for seed in range(3):
        X, y = make_target(seed=seed)
        fitted = blend(mixture).fit(X, y)
        same_rule(fitted, blend(single).fit(X, y))
        assert fitted.component_weights_.tolist() == [1.0]
        assert fitted.prior_ is mixture


@pytest.mark.parametrize("isotropic", [False, True])
@pytest.mark.parametrize("strength", ["auto", "risk", 0.0, 1.0, 50.0])
def test_verbs_of_one_component_are_those_of_one_crowd(make_directions, strength, isotropic):
    """The general formula, without the short cut that the classifiers take."""
    crowd = TaskPrior.from_projections(make_directions(n_features=5), isotropic=isotropic).crowd
    rng = np.random.default_rng(1)
    own = draw_directions(7, 5, 0.0, random_state=rng)
    person = person_of(rng.normal(size=(7, 12, 5)) / 3.0, own, rng.uniform(0.01, 0.1, 7))
    one, expected = verbs.mixture(person, [crowd], strength), posterior(person, crowd, strength)
    np.testing.assert_allclose(one.omega, expected.omega, atol=1e-9)
    for name in ("dof", "alpha", "strength"):
        np.testing.assert_allclose(getattr(one, name), getattr(expected, name), atol=1e-9)
    np.testing.assert_array_equal(one.weights, np.ones((7, 1)))
    met, weights = meet(person, [crowd])
    np.testing.assert_array_equal(weights, np.ones((7, 1)))
    np.testing.assert_allclose(met.mean_direction, np.tile(crowd.mean_direction, (7, 1)))
    np.testing.assert_allclose(met.n_tasks, 30.0)
    np.testing.assert_allclose(met.sway, 0.0, atol=1e-12)
    for form in ("tangent", "authors", "printed"):
        for part, same in zip(met.psi(form), crowd.psi(form), strict=True):
            np.testing.assert_allclose(part, same, rtol=1e-9)


@pytest.mark.parametrize("isotropic", [False, True])
@pytest.mark.parametrize("strength", ["auto", "risk", 2.0])
def test_a_batch_of_people_is_each_of_them(make_clusters, strength, isotropic):
    crowds = MixturePrior.from_projections(make_clusters(), 2, isotropic=isotropic).components
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(2, 3, 10, 4)) / 3.0
    own = draw_directions(6, 4, 0.0, random_state=rng).reshape(2, 3, 4)
    noise = rng.uniform(0.01, 0.1, (2, 3))
    people = person_of(rows, own, noise)
    whole, (met, weights) = verbs.mixture(people, crowds, strength), meet(people, crowds)
    assert whole.weights.shape == weights.shape == (2, 3, 2)
    for place in np.ndindex(2, 3):
        alone = person_of(rows[place], own[place], noise[place])
        one, (crowd, theirs) = verbs.mixture(alone, crowds, strength), meet(alone, crowds)
        pairs = [(weights[place], theirs)]
        for name in ("omega", "dof", "alpha", "strength", "weights", "source"):
            pairs.append((getattr(whole, name)[place], getattr(one, name)))
        for name in ("n_tasks", "mean", "mean_direction", "resultant_length", "mean_square"):
            pairs.append((getattr(met, name)[place], getattr(crowd, name)))
        for part, same in [*pairs, (met.sway[place], crowd.sway)]:
            np.testing.assert_allclose(part, same, rtol=1e-7, atol=1e-9)


# -- what it holds --------------------------------------------------------------------------


@pytest.mark.parametrize("n_components", [None, 2])
def test_two_clusters_are_found(make_clusters, n_components):
    W = make_clusters(61)
    prior = MixturePrior.from_projections(W, n_components)
    assert repr(prior) == (
        "MixturePrior(n_components=2, n_tasks=61, n_features=4, shares=[0.51, 0.49])"
    )
    np.testing.assert_allclose(prior.counts, [31.0, 30.0], atol=0.01)
    np.testing.assert_allclose(prior.direction_sums[0], W[::2].sum(0), atol=0.05)
    np.testing.assert_allclose(prior.outer_sums[1], W[1::2].T @ W[1::2], atol=0.05)
    np.testing.assert_allclose(prior.direction_sums.sum(0), W.sum(0), rtol=1e-10)
    np.testing.assert_allclose(prior.outer_sums.sum(0), W.T @ W, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(prior.concentrations, 80.0, rtol=0.4)
    assert [one.n_tasks for one in prior.components] == prior.counts.tolist()


def test_the_same_directions_give_the_same_prior(make_clusters):
    W = make_clusters()
    prior = MixturePrior.from_projections(W, 3)
    assert prior == MixturePrior.from_projections(W, 3)
    other = MixturePrior.from_projections(W, 2)
    assert other != prior
    assert other != "prior"


def test_from_tasks_is_from_their_directions(make_tasks):
    tasks = make_tasks(8, feature_names=tuple("abcd"))
    prior = MixturePrior.from_tasks(tasks, n_components=2)
    single = TaskPrior.from_tasks(tasks)
    assert prior.pooled == single
    assert prior.pooled.directions is None
    template = FisherDiscriminant(feature_scale=single.feature_scale)
    W = np.array([template.fit(task.X, task.y).projection_ for task in tasks])
    plain = MixturePrior.from_projections(W, 2)
    np.testing.assert_allclose(prior.direction_sums, plain.direction_sums)
    assert (prior.classes, prior.feature_names) == ((0, 1), tuple("abcd"))
    np.testing.assert_array_equal(prior.half_gap, single.half_gap)


def test_it_never_changes(mixture):
    for name in ("counts", "direction_sums", "outer_sums", "concentrations"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(mixture, name)[0] = 0.0
    with pytest.raises(AttributeError):
        mixture.counts = None
    assert copy.deepcopy(mixture) is mixture
    again = pickle.loads(pickle.dumps(mixture))
    assert again == mixture
    assert hash(again) == hash(mixture)


def test_without_shares_less(make_tasks):
    mixture = MixturePrior.from_tasks(make_tasks(12))
    assert mixture.holds == mixture.pooled.holds
    assert {"outer_sum", "class_means", "replay"} <= set(mixture.holds)
    less = mixture.without("outer_sum", "class_means")
    assert less.outer_sums is None
    assert not {"outer_sum", "class_means"} & set(less.holds)


def test_reversed_turns_every_direction_about(mixture):
    back = mixture.reversed()
    np.testing.assert_array_equal(back.direction_sums, -mixture.direction_sums)
    np.testing.assert_array_equal(back.pooled.direction_sum, -mixture.pooled.direction_sum)
    np.testing.assert_array_equal(back.outer_sums, mixture.outer_sums)


# -- sizes at which things break ------------------------------------------------------------


@pytest.mark.parametrize("n_features", [1, 2, 200])
@pytest.mark.parametrize("n_tasks", [2, 5, 20])
@pytest.mark.parametrize("kappa", [0.0, 5.0, 1e6])
def test_safe_at_every_size(n_tasks, n_features, kappa):
    W = draw_directions(n_tasks, n_features, kappa, random_state=n_tasks)
    for n_components in (None, 1, 2, min(n_tasks, 6)):
        prior = MixturePrior.from_projections(W, n_components)
        assert 1 <= prior.n_components <= n_tasks
        assert prior.counts.min() >= 0.5
        assert np.isfinite(prior.direction_sums).all()
        assert (prior.concentrations >= 0.0).all()
        for one in prior.components:
            assert np.linalg.eigvalsh(one.dense_scatter).min() > 0.0


def test_components_that_no_task_is_left_to_are_given_up():
    same = np.tile([0.6, 0.8, 0.0], (12, 1))
    prior = MixturePrior.from_projections(same, 3)
    assert prior.n_components == 1
    assert prior.counts.tolist() == [12.0]
    assert MixturePrior.from_projections(same).n_components == 1


def test_no_chosen_component_has_a_single_task():
    """One lies far away from a dense cluster, and is not told apart unless that is asked for."""
    W = np.concatenate([draw_directions(30, 3, 1e4, random_state=3), -np.eye(3)[:1]])
    apart = fit_mixture(W, 2, np.random.default_rng(0))
    assert apart.responsibilities.sum(0).min() == pytest.approx(1.0, abs=0.01)
    together = choose_mixture(W, np.random.default_rng(0))
    assert apart.bic(3) < together.bic(3)
    assert together.responsibilities.sum(0).tolist() == [31.0]


# -- in the blends --------------------------------------------------------------------------


@pytest.mark.parametrize("isotropic", [False, True])
def test_weights_of_the_components_are_learnt(make_clusters, blend, make_target, isotropic):
    prior = MixturePrior.from_projections(make_clusters(), 2, isotropic=isotropic)
    X, y = make_target(n_each=(30, 30), gap=2.0)
    X = (X - 10.0) / np.linspace(0.5, 3.0, 4)
    fitted = blend(prior).fit(X, y)
    assert fitted.component_weights_.sum() == pytest.approx(1.0)
    first = int(prior.direction_sums[:, 0].argmax())
    assert fitted.component_weights_[first] > 0.99
    np.testing.assert_allclose(
        fitted.source_projection_, prior.components[first].mean_direction, atol=0.02
    )
    assert 0.0 <= fitted.alpha_ <= 1.0
    assert 0.5 < fitted.expected_accuracy_ <= 1.0
    assert fitted.predict(X).shape == y.shape


def test_weights_are_none_without_a_mixture(blend, make_target, make_prior):
    X, y = make_target()
    assert blend(make_prior()).fit(X, y).component_weights_ is None


def test_weights_are_the_shares_where_the_target_has_no_say(mixture):
    X = np.zeros((4, 4))
    X[:, 3] = [0.0, 1.0, 0.0, 1.0]
    fitted = PosteriorBlendClassifier(mixture).fit(X, [0, 0, 1, 1])
    np.testing.assert_array_equal(fitted.component_weights_, mixture.shares)
    person = PosteriorBlendClassifier(mixture, strength=np.inf).fit(np.eye(4), [0, 0, 1, 1])
    np.testing.assert_array_equal(person.component_weights_, mixture.shares)
    np.testing.assert_array_equal(person.projection_, person.target_projection_)


def test_classes_by_other_names_turn_the_prior_round(make_clusters, blend, make_target):
    X, y = make_target()
    prior = MixturePrior.from_projections(make_clusters(), 2, classes=("b", "c"))
    names = np.array(["b", "c"])[y]
    plain = blend(prior).fit(X, names)
    # The class that stands for "b" sorts after the one that stands for "c".
    turned = blend(prior, classes=("z", "a")).fit(X, np.array(["z", "a"])[y])
    np.testing.assert_allclose(turned.coef_, -plain.coef_, atol=1e-9)
    np.testing.assert_allclose(turned.component_weights_, plain.component_weights_, atol=1e-9)


def test_one_class_takes_the_mean_of_all_components(make_tasks, make_target):
    prior = MixturePrior.from_tasks(make_tasks(8), n_components=2)
    X, y = make_target()
    fits = [
        PosteriorBlendClassifier(crowd, on_missing_class="prior").fit(X[y == 0], y[y == 0])
        for crowd in (prior, prior.pooled)
    ]
    same_rule(*fits)
    np.testing.assert_array_equal(fits[0].component_weights_, prior.shares)


def test_two_components_that_cancel_leave_the_person(make_clusters, make_target):
    """The convex blend warns, as it does with one crowd."""
    W = np.concatenate([make_clusters(), -make_clusters()])
    X, y = make_target(n_each=(2, 2), gap=0.1)
    prior = MixturePrior.from_projections(W, 1)
    with pytest.warns(CancellingSourcesWarning, match="tasks cancel out"):
        assert ConvexBlendClassifier(prior).fit(X, y).alpha_ == 1.0


def test_a_model_file_remembers_its_mixture(mixture, make_target, tmp_path):
    X, y = make_target()
    fitted = PosteriorBlendClassifier(mixture).fit(X, y)
    save_model(fitted, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(X), fitted.predict(X))


# -- files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("isotropic", [False, True])
def test_saved_and_loaded_it_is_the_same(make_clusters, isotropic, tmp_path):
    prior = MixturePrior.from_projections(
        make_clusters(),
        2,
        isotropic=isotropic,
        classes=("rest", "übung"),
        feature_names=list("abcd"),
    )
    prior.save(tmp_path / "a.npz")
    again = MixturePrior.load(tmp_path / "a.npz")
    assert again == prior
    again.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_the_file_holds_no_direction(make_clusters, mixture, tmp_path):
    mixture.save(tmp_path / "prior.npz")
    content = (tmp_path / "prior.npz").read_bytes()
    for direction in make_clusters():
        assert direction.tobytes() not in content


def test_files_of_other_kinds_are_refused(mixture, tmp_path):
    path = tmp_path / "prior.npz"
    mixture.save(path)
    with pytest.raises(ValueError, match=r"the file of a MixturePrior: .* MixturePrior\.load"):
        TaskPrior.load(path)
    mixture.pooled.save(path)
    with pytest.raises(ValueError, match=r"the file of a TaskPrior: .* with TaskPrior\.load"):
        MixturePrior.load(path)


def test_card_tells_that_a_component_may_be_one_person(make_target, tmp_path):
    crowd = draw_directions(12, 6, 200.0, random_state=0)
    alone = -np.eye(6)[0]
    prior = MixturePrior.from_projections(np.vstack([crowd, alone]), 2)
    fewest = prior.counts.min()
    assert fewest == pytest.approx(1.0, abs=1e-3)
    data = prior.card_data()
    assert data["privacy"]["kind"] == "sums of components"
    assert data["privacy"]["fewest_tasks"] == pytest.approx(fewest, rel=1e-3)
    np.testing.assert_allclose(data["components"], prior.counts, rtol=1e-3)
    np.testing.assert_allclose(prior.direction_sums[1], alone, atol=1e-3)
    assert data["n_tasks"] == 13
    assert "components" in prior.card()
    assert "a component of one task is that task's direction" in prior.card()
    assert "exact sums: anyone who knows all tasks but one" not in prior.card()

    prior.save(tmp_path / "prior.npz")
    with np.load(tmp_path / "prior.npz") as archive:
        assert archive["card_md"].tobytes().decode() == prior.card()
        assert json.loads(archive["card_json"].tobytes()) == data
    fitted = PosteriorBlendClassifier(prior).fit(*make_target(6))
    save_model(fitted, tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").prior_["privacy"] == data["privacy"]


def test_a_changed_number_breaks_the_checksum(mixture, tmp_path):
    path = tmp_path / "prior.npz"
    mixture.save(path)
    with np.load(path) as archive:
        arrays = {name: archive[name].copy() for name in archive.files}
    arrays["counts"][0] += 1e-9
    np.savez(path, allow_pickle=False, **arrays)
    with pytest.raises(ValueError, match="checksum does not match"):
        MixturePrior.load(path)


# -- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize("n_components", [0, -1, 2.5, True, "two"])
def test_number_of_components_must_be_whole_and_positive(make_clusters, n_components):
    with pytest.raises(ValueError, match="n_components must be a whole number of at least 1"):
        MixturePrior.from_projections(make_clusters(), n_components)


def test_no_more_components_than_tasks(make_clusters, make_tasks):
    with pytest.raises(ValueError, match=r"got 7 components for 6 tasks\. Ask for fewer"):
        MixturePrior.from_projections(make_clusters(6), 7)
    with pytest.raises(ValueError, match="got 3 components for 2 tasks"):
        MixturePrior.from_tasks(make_tasks(2), n_components=3)


def test_directions_must_be_unit_vectors(make_clusters):
    W = make_clusters()
    with pytest.raises(ValueError, match="unit vectors; row 0 has length 2"):
        MixturePrior.from_projections(2.0 * W)
    scaled = MixturePrior.from_projections(2.0 * W, 2, normalize=True)
    np.testing.assert_allclose(scaled.counts, MixturePrior.from_projections(W, 2).counts)
    W[3, 1] = np.nan
    with pytest.raises(ValueError, match="projections must be finite"):
        MixturePrior.from_projections(W)
    with pytest.raises(ValueError, match="at least one row"):
        MixturePrior.from_projections(np.empty((0, 3)))
    with pytest.raises(ValueError, match="at least one task; got none"):
        MixturePrior.from_tasks([])


def test_mixtures_are_not_added(mixture):
    for add in (
        lambda: mixture + mixture,
        lambda: mixture + mixture.pooled,
        lambda: mixture.pooled + mixture,
    ):
        with pytest.raises(TypeError, match="cannot be added: nothing says which components"):
            add()
    with pytest.raises(ValueError, match="Both priors have the same sums"):
        _ = mixture.pooled + mixture.pooled.without("parts")
    with pytest.raises(ValueError, match="hold the data of 60 tasks"):
        _ = mixture.pooled + mixture.pooled


def test_mixtures_are_not_released(mixture):
    with pytest.raises(TypeError, match=r"A MixturePrior cannot be released.*mixture\.pooled"):
        mixture.released(1.0, 1e-5)


def test_sources_by_domain_are_not_added_to_a_mixture(mixture, make_target):
    X, y = make_target()
    domain = np.where(np.arange(16) % 2, 1, -1)
    with pytest.raises(TypeError, match="Mixture priors cannot be added"):
        PosteriorBlendClassifier(mixture).fit(X, y, sample_domain=domain)


def test_pooled_must_be_an_exact_task_prior(mixture):
    sums = mixture.counts, mixture.direction_sums, mixture.outer_sums
    with pytest.raises(TypeError, match="pooled must be a TaskPrior; got str"):
        MixturePrior("prior", *sums)
    with pytest.raises(ValueError, match="outer_sums are not those"):
        MixturePrior(mixture.pooled, *sums[:2], sums[2] + [np.eye(4), -np.eye(4)])
    apart = sums[1] + 200.0 * np.eye(4)[0] * [[1.0], [-1.0]]
    with pytest.raises(ValueError, match="longer than so many"):
        MixturePrior(mixture.pooled, sums[0], apart, sums[2])

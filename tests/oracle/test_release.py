"""Differential privacy: the sensitivity, the noise, what is left of it, and what a blend gains."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtr

from crossfade import Ledger, Task, TaskPrior
from crossfade.blend import fit_rule
from crossfade.fisher import ClassMoments
from crossfade.prior import Law, mean_resultant_length
from crossfade.simulate import draw_directions
from tests.noise import watched_noise

pytest.importorskip("opendp")
pytestmark = pytest.mark.filterwarnings(
    "ignore::crossfade.exceptions.UncountedReleaseWarning"  # tests/test_ledger.py has these
)

N_FEATURES = 9
#: One person, who has this direction.
ONE = TaskPrior.from_projections([[1.0, 0.0]])


def distance(one, other):
    """How far the sums move if one direction takes the place of another."""
    outer = one[..., :, None] * one[..., None, :] - other[..., :, None] * other[..., None, :]
    return np.sqrt(((one - other) ** 2).sum(-1) + (outer**2).sum((-2, -1)))


def exact_delta(noise, length, epsilon):
    """Delta of the normal mechanism, without any inequality (Balle and Wang 2018)."""
    half, shift = length / (2.0 * noise), epsilon * noise / length
    return ndtr(half - shift) - np.exp(epsilon) * ndtr(-half - shift)


def integrated_delta(noise, length, epsilon):
    """The same without normal integrals: what one normal has beyond e^epsilon of the other."""
    log_ratio = epsilon * noise / length + length / (2.0 * noise)

    def beyond(x):
        # Density at x less e^epsilon of that of the other, in units of the noise.
        step = length / noise
        one, other = -(x**2) / 2.0, epsilon - (x + step) ** 2 / 2.0
        return -np.exp(one) * np.expm1(other - one) / np.sqrt(2.0 * np.pi)

    edge = log_ratio - length / noise
    return quad(beyond, edge, edge + 12.0, epsabs=0.0, epsrel=1e-10, limit=200)[0]


def mu_of(epsilon, delta):
    """Distance in deviations of the noise that keeps a budget exactly."""
    return brentq(lambda mu: exact_delta(1.0, mu, epsilon) - delta, 1e-3, 100.0, xtol=1e-13)


def sensitivity(prior):
    """The distance that the noise of a release covers."""
    return prior.released(1.0, 1e-5).release.noise * mu_of(1.0, 1e-5)


def released_priors(n_tasks, kappa, repeats, seed, epsilon=1.0):
    """Releases of many crowds, with noise from a seed."""
    rng = np.random.default_rng(seed)
    W = draw_directions(repeats * n_tasks, N_FEATURES, kappa, random_state=rng)
    crowds = map(TaskPrior.from_projections, W.reshape(repeats, n_tasks, N_FEATURES))
    with watched_noise(seed):
        return [crowd.released(epsilon, 1e-5) for crowd in crowds]


def test_sensitivity_is_the_largest_distance_and_is_reached():
    rng = np.random.default_rng(5)
    for n_features in (2, 3, 9):
        one, other = rng.normal(size=(2, 5_000, n_features))
        one /= np.linalg.norm(one, axis=1, keepdims=True)
        other /= np.linalg.norm(other, axis=1, keepdims=True)
        assert distance(one, other).max() <= np.sqrt(4.5)
    worst = np.array([1.0, 0.0]), np.array([-0.5, np.sqrt(0.75)])
    assert distance(*worst) == pytest.approx(np.sqrt(4.5))
    assert np.sqrt(4.5) < sensitivity(ONE) < np.sqrt(4.5) * (1 + 1e-5)
    # Without outer products the worst is the opposite direction.
    isotropic = TaskPrior.from_projections([[1.0, 0.0]], isotropic=True)
    assert 2.0 < sensitivity(isotropic) < 2.0 * (1 + 1e-5)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9])
def test_noise_keeps_the_budget_and_is_the_least_that_does(epsilon, delta):
    length = np.sqrt(4.5)
    prior = TaskPrior.from_projections(np.tile([1.0, 0.0], (100, 1)))
    noise = prior.released(epsilon, delta).release.noise
    assert exact_delta(noise, length, epsilon) <= delta
    assert integrated_delta(noise, length, epsilon) <= delta
    least = length / mu_of(epsilon, delta)
    words = f"noise {noise / length:.2f} times Delta, best guess {ndtr(length / (2 * noise)):.3f}"
    print(f"epsilon={epsilon:g} delta={delta:g}: {words}")
    # What rounding can add is in the noise.
    assert 1.0 <= noise / least < 1.0001


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(0.27, 1.0), (0.03, 0.1), (2.0, 10.0), (40.0, 1000.0), (3.0, 0.5)]
)
def test_noise_is_that_of_the_integrated_delta(mu, epsilon):
    noise = ONE.released(epsilon, integrated_delta(1.0, mu, epsilon)).release.noise
    assert np.sqrt(4.5) / noise == pytest.approx(mu, rel=1e-5)


def test_a_hundred_releases_compose_as_their_average_says(tmp_path):
    """Who averages k releases has the noise of one with k times the squared mu."""
    mu, ledger, several = mu_of(1.0, 1e-5), Ledger(tmp_path / "ledger.json"), {}
    for k in range(1, 101):
        ONE.released(1.0, 1e-5, ledger=ledger)
        if k in (1, 2, 3, 5, 10, 12, 100):
            spent = several[k] = ledger.spent(1e-5)
            delta = integrated_delta(1.0 / np.sqrt(k), mu, spent)
            assert delta == pytest.approx(1e-5, rel=1e-4)
            assert spent <= k * (1 + 1e-8)
    print("releases:", *(f"{k}: {spent:.2f}" for k, spent in several.items()))
    assert several[1] == pytest.approx(1.0, rel=1e-8)
    assert several[100] == pytest.approx(14.43, abs=0.01)


def test_a_release_that_tells_next_to_nothing_spends_nothing_at_a_large_delta(tmp_path):
    ledger = Ledger(tmp_path / "ledger.json")
    ONE.released(0.01, 1e-9, ledger=ledger)
    assert ledger.spent(1e-9) == pytest.approx(0.01, rel=1e-8)
    assert ledger.spent(0.9) == 0.0


def person_sums(sessions):
    """What a person adds: means over sessions (..., n_sessions, d) of w and of ww'."""
    outer = sessions[..., :, None] * sessions[..., None, :]
    return np.concatenate([sessions.mean(-2), outer.mean(-3).reshape(*outer.shape[:-3], -1)], -1)


@pytest.mark.parametrize("n_features", [2, 3, 9])
def test_a_person_with_many_sessions_moves_the_sums_no_further(n_features):
    """Neighbouring data sets differ in one person with all their sessions, however many."""
    rng = np.random.default_rng(n_features)
    bound = np.sqrt(4.5)
    for sizes in ((1, 1), (1, 5), (2, 3), (36, 36)):
        one, other = (rng.normal(size=(2_000, size, n_features)) for size in sizes)
        one, other = (part / np.linalg.norm(part, axis=-1, keepdims=True) for part in (one, other))
        assert np.linalg.norm(person_sums(one) - person_sums(other), axis=-1).max() <= bound
    # The worst: all sessions of the one alike, and all of the other at 120 degrees.
    one, other = np.zeros((2, 36, n_features))
    one[:, 0] = 1.0
    other[:, :2] = -0.5, np.sqrt(0.75)
    assert np.linalg.norm(person_sums(one) - person_sums(other)) == pytest.approx(bound)


def noise_goes_to(tasks, bound=None):
    """All that the release of a prior of four people adds noise to, as OpenDP is handed it."""
    prior = TaskPrior.from_tasks(tasks, feature_scale=None, rehearse=False, mean_norm_bound=bound)
    assert prior.n_people == 4
    with watched_noise() as seen:
        prior.released(1.0, 1e-5)
    [(exact, _)] = seen
    return exact


def test_the_worst_neighbours_through_the_whole_of_from_tasks():
    """Whole priors, in which one person is replaced with all sessions; some have many."""
    rng = np.random.default_rng(3)

    def sessions(group, n_sessions):
        tasks = []
        for _ in range(n_sessions):
            X = rng.normal(size=(12, 3)) * 10.0 ** rng.uniform(-3, 3, 3)
            tasks.append(Task(X + 5.0 * rng.normal(size=3), [0, 1] * 6, group=group))
        return tasks

    rest = sessions("a", 1) + sessions("b", 3) + sessions(None, 1)
    for _ in range(200):
        first, second = (noise_goes_to(rest + sessions("x", rng.integers(1, 6))) for _ in range(2))
        assert np.linalg.norm(first - second) <= np.sqrt(4.5)


def test_class_means_of_random_neighbours_stay_within_the_bound():
    """One of four people is replaced, with all sessions, by one of any scale, place and length."""
    rng = np.random.default_rng(4)

    def sessions(group, n_sessions):
        tasks = []
        for _ in range(n_sessions):
            sizes = rng.integers(1, 40, 2)
            X = rng.standard_t(2, size=(sizes.sum(), 3)) * 10.0 ** rng.uniform(-3, 3, 3)
            X = np.cumsum(X, 0) if rng.random() < 0.3 else X
            place = 10.0 ** rng.uniform(-2, 4) * rng.normal(size=3)
            tasks.append(Task(X + place, np.repeat([0, 1], sizes), group=group))
        return tasks

    rest = sessions("a", 1) + sessions("b", 3) + sessions(None, 1)
    moved = []
    for _ in range(100):
        clip = 10.0 ** rng.uniform(-1, 2)
        first, second = (
            noise_goes_to(rest + sessions("x", rng.integers(1, 6)), clip) for _ in range(2)
        )
        moved.append(np.linalg.norm(first - second))
    assert 0.7 * np.sqrt(13.0) < max(moved) <= np.sqrt(13.0)


def worst_person(half_gap, along, pattern):
    """A person whose classes lie at both ends of a gap, and who varies along one axis only."""
    label = np.repeat([0, 1], pattern.size)
    X = np.outer(2.0 * label - 1.0, np.asarray(half_gap)) * 1e3
    X[:, along] += 1e4 * np.tile(pattern, 2)
    # A little in both axes of the gap, so that the direction is that of the gap.
    little = np.where(np.arange(label.size) % 4 < 2, 1.0, -1.0)
    X[:, 0] += 1e-3 * little
    X[:, 1] += 1e-3 * np.roll(little, 1)
    return Task(X, label)


def test_the_worst_neighbours_nearly_reach_the_bound_with_class_means():
    """Gaps at 120 degrees, covariances along different axes, and windows unlike and alike."""
    rng = np.random.default_rng(0)
    rest = [Task(rng.normal(size=(40, 4)) + [[1.0]] * 40, [0, 1] * 20) for _ in range(3)]
    turns, slow = np.tile([1.0, -1.0], 40), np.repeat([1.0, -1.0], 40)
    one = worst_person([1.0, 0.0, 0.0, 0.0], 2, turns)
    other = worst_person([-0.5, np.sqrt(0.75), 0.0, 0.0], 3, slow)
    first, second = (noise_goes_to([*rest, person], 5.0) for person in (one, other))
    assert 0.95 * np.sqrt(13.0) < np.linalg.norm(first - second) <= np.sqrt(13.0)
    prior = TaskPrior.from_tasks(rest, feature_scale=None, rehearse=False, mean_norm_bound=5.0)
    assert np.sqrt(13.0) < sensitivity(prior) < np.sqrt(13.0) * (1 + 1e-5)


def test_noise_has_the_deviation_that_was_asked_for():
    """No seed can be set, so that bounds are five standard errors."""
    size = 60
    prior = TaskPrior.from_projections(draw_directions(30, size, 5.0, random_state=1))
    with watched_noise() as seen:
        noise = prior.released(1.0, 1e-5).release.noise
    [(exact, noisy)] = seen
    # Lengths are those of the sums with all of their outer products.
    sums = (prior.directions.person_direction, prior.directions.person_outer)
    assert (exact**2).sum() == pytest.approx(sum((one**2).sum() for one in sums), rel=1e-12)
    for part in np.split((noisy - exact) / noise, [size]):
        assert abs(part.mean()) < 5.0 / np.sqrt(part.size)
        assert abs((part**2).mean() - 1.0) < 5.0 * np.sqrt(2.0 / part.size)
    fourth = (part**4).mean()
    assert abs(fourth - 3.0) < 5.0 * np.sqrt(96.0 / part.size)


def test_the_best_attack_succeeds_as_often_as_theory_says():
    """All tasks but one are known, and the last is one of two: the worst pair there is."""
    trials, epsilon = 600, 10.0
    delta = integrated_delta(1.0, 2.0, epsilon)
    with watched_noise() as seen:
        TaskPrior.from_projections([[-0.5, np.sqrt(0.75)]]).released(epsilon, delta)
        for _ in range(trials):
            ONE.released(epsilon, delta)
    [(other, _), *mine] = seen
    hits = sum(((noisy - one) ** 2).sum() < ((noisy - other) ** 2).sum() for one, noisy in mine)
    chance = ndtr(1.0)
    assert hits / trials == pytest.approx(chance, abs=5.0 * np.sqrt(chance / trials / 4.0))


def test_agreement_is_right_on_average():
    true = mean_resultant_length(10.0, N_FEATURES)
    for n_tasks in (100, 1000):
        priors = released_priors(n_tasks, 10.0, 400, 6)
        square = np.array([prior.resultant_length**2 for prior in priors])
        expected = true**2 + (1.0 - true**2) / n_tasks
        error = square.std() / np.sqrt(square.size)
        assert square.mean() == pytest.approx(expected, abs=4.0 * error)


@pytest.mark.parametrize("kappa", [0.0, 3.0, 10.0])
@pytest.mark.parametrize(("n_tasks", "epsilon"), [(1, 1.0), (36, 0.1), (36, 0.5), (100, 1.0)])
def test_the_trusted_length_does_not_boast(n_tasks, epsilon, kappa):
    """R is cut off at 1, and nobody who reads a card should take that for agreement."""
    true = mean_resultant_length(kappa, N_FEATURES)
    priors = released_priors(n_tasks, kappa, 300, 12, epsilon)
    lengths = np.array([prior.law.directions.trusted_length for prior in priors])
    exact = np.sqrt(true**2 + (1.0 - true**2) / n_tasks)
    seen = np.array([prior.resultant_length for prior in priors])
    ends = f"0 in {(seen == 0.0).mean():.2f}, 1 in {(seen == 1.0).mean():.2f}"
    words = f"R {exact:.2f}, released {seen.mean():.2f}, {ends}"
    print(f"J={n_tasks} epsilon={epsilon:g} kappa={kappa:g}: {words}")
    assert lengths.mean() < exact + 4.0 * lengths.std() / np.sqrt(lengths.size)
    data = [prior.card_data() for prior in priors]
    shown = [one["agreement"] for one in data if one["agreement"] is not None]
    assert all(length < 0.999 for length in shown)
    assert all((one["agreement"] is None) == (one["concentration"] is None) for one in data)


@pytest.mark.parametrize("n_tasks", [200, 1000])
def test_standard_error_is_that_of_the_released_mean_direction(n_tasks):
    priors = released_priors(n_tasks, 10.0, 400, 7)
    across = np.array([1.0 - prior.mean_direction[0] ** 2 for prior in priors])
    promised = np.mean([np.trace(prior.standard_error()) for prior in priors])
    error = across.std() / np.sqrt(across.size)
    # The length of the mean enters by its inverse square, which noise makes larger.
    assert across.mean() == pytest.approx(promised, abs=4.0 * error, rel=0.1)
    without = np.mean([np.trace(prior.standard_error()) for prior in priors]) - np.mean(
        [8 * (prior.release.noise / n_tasks / prior.resultant_length) ** 2 for prior in priors]
    )
    assert across.mean() > 1.05 * without


@pytest.mark.parametrize("kappa", [0.0, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("n_tasks", [36, 100, 1000])
def test_scatter_covers_how_far_new_directions_lie_from_the_released_mean(kappa, n_tasks):
    priors = released_priors(n_tasks, kappa, 200, 8)
    new = draw_directions(2_000, N_FEATURES, kappa, random_state=9)
    away = np.array([((new - prior.mean) ** 2).sum(1).mean() for prior in priors])
    promised = np.array([np.trace(prior.scatter) for prior in priors])
    short = away - promised
    assert short.mean() < 4.0 * short.std() / np.sqrt(short.size) + 0.01 * promised.mean()


def accuracies(crowds, kappa, n_samples, rng):
    """Mean accuracy of 50 targets alone, and of both their blends with each of the crowds."""
    nu = draw_directions(50, N_FEATURES, kappa, random_state=rng)
    label = np.repeat([0, 1], n_samples // 2)
    X = rng.standard_normal((50, n_samples, N_FEATURES))
    X += (2.0 * label - 1.0)[:, None] * nu[:, None, :]
    people = ClassMoments.of(X, label)
    alone = Law(2, np.ones(N_FEATURES), directions=crowds[0])
    laws = [Law(2, np.ones(N_FEATURES), directions=crowd) for crowd in crowds]
    found = []
    for rule in (
        fit_rule(people, alone, "convex", alpha=1.0),
        *(fit_rule(people, law, kind) for kind in ("posterior", "convex") for law in laws),
    ):
        omega = rule.coef[..., 0, :]
        gap, miss = np.vecdot(omega, nu), -rule.intercept[..., 0]
        length = np.linalg.norm(omega, axis=-1)
        found.append((ndtr((gap - miss) / length) + ndtr((gap + miss) / length)).mean() / 2.0)
    return found


@pytest.mark.parametrize("n_samples", [4, 10, 20])
@pytest.mark.parametrize("kappa", [1.0, 10.0])
@pytest.mark.parametrize("n_tasks", [36, 100, 1000])
def test_a_blend_knows_how_far_to_trust_a_release(n_tasks, kappa, n_samples):
    """Never more than 0.005 below the target alone: on average over releases.

    A single release may be unlucky, and nothing can exclude that.
    """
    rng = np.random.default_rng(10)
    rows = []
    for prior in released_priors(n_tasks, kappa, 30, 11):
        W = draw_directions(n_tasks, N_FEATURES, kappa, random_state=rng)
        crowds = [prior.law.directions, TaskPrior.from_projections(W).law.directions]
        rows.append(accuracies(crowds, kappa, n_samples, rng))
    target, *blends = np.mean(rows, axis=0)
    released, exact = blends[::2], blends[1::2]
    print(f"J={n_tasks} kappa={kappa:g} n={n_samples}:", np.round([target, *blends], 4))
    assert min(released) > target - 0.005
    if n_tasks == 1000:
        for mine, theirs in zip(released, exact, strict=True):
            assert mine > theirs - 0.01

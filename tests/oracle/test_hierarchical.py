"""A prior over class means: the law of a crowd by plain loops, the posterior by dense conditioning.

The formulas are written out once more, for one person, one run and one matrix at a time.
Simulations then check what the formulas promise.
"""

from functools import cache

import numpy as np
import pytest
from scipy.special import logsumexp, ndtr
from scipy.stats import norm, wishart
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crossfade import HierarchicalBlendClassifier, Task, TaskPrior
from crossfade.blend import fit_rule
from crossfade.fisher import ClassMoments, TaskMoments
from crossfade.prior import contrasts
from crossfade.simulate import draw_directions

RUNS = (1, 2, 3, 4, 5, 8, 13, 21, 34)


def people(n_people, n_features, sizes, seed, *, tied=False, alike=0.0, unlike=0.0):
    """Windows and labels of people whose class means lie near those of a crowd."""
    rng = np.random.default_rng([seed, n_people, n_features, *np.ravel(sizes)])
    n_classes = len(sizes[0]) if np.ndim(sizes) == 2 else len(sizes)
    crowd = rng.normal(size=(n_classes, n_features))
    mixing = np.eye(n_features) + 0.4 * rng.normal(size=(n_features, n_features))
    found = []
    for one in range(n_people):
        own = sizes[one % len(sizes)] if np.ndim(sizes) == 2 else sizes
        label = np.repeat(np.arange(n_classes), own)
        rows = rng.normal(size=(label.size, n_features))
        for place in range(1, label.size):
            rows[place] = alike * rows[place - 1] + np.sqrt(1.0 - alike**2) * rows[place]
        means = crowd + 0.6 * rng.normal(size=crowd.shape) + 0.8 * rng.normal(size=n_features)
        own_mixing = mixing + unlike * rng.normal(size=mixing.shape)
        X = rows @ own_mixing + means[label]
        if tied:
            X[:, -1] = X[:, :-1].sum(1)
        found.append((X * np.linspace(0.5, 2.0, n_features), label))
    return found


def prior_of(tasks, scale=None, **options):
    """Prior of the package, which rehearses nothing."""
    scale = np.ones(tasks[0][0].shape[1]) if scale is None else scale
    sources = [Task(X, y) for X, y in tasks]
    options = {"feature_scale": scale, "rehearse": False} | options
    return TaskPrior.from_tasks(sources, **options)


def oas_weight(matrix, dof):
    """Equation 3, as it stands."""
    p = len(matrix)
    trace, square = np.trace(matrix), np.trace(matrix @ matrix)
    above = (1.0 - 2.0 / p) * square + trace**2
    below = (dof + 1.0 - 2.0 / p) * (square - trace**2 / p)
    return 1.0 if p == 1 or below <= above else above / below


class PlainLaw:
    """Law of theta = (c, h_1, ...) over people, by a loop over them."""

    def __init__(self, tasks, scale, n_classes=2, *, centred=False):
        within, thetas = [], []
        turn = np.column_stack([np.ones(n_classes), contrasts(n_classes)])
        for X, y in tasks:
            X = X / scale
            means = np.stack([X[y == k].mean(0) for k in range(n_classes)])
            rows = X - means[y]
            within.append(rows.T @ rows / (len(X) - n_classes))
            # m = turn theta, and turn'turn = K.
            thetas.append(turn.T @ means / n_classes)
        average = np.mean(within, axis=0)
        values, vectors = np.linalg.eigh(average)
        kept = values > 1e-8 * values.max()
        self.whiten = vectors[:, kept] / np.sqrt(values[kept])
        self.unwhiten = vectors[:, kept] * np.sqrt(values[kept])
        self.n_classes, self.p, n_people = n_classes, int(kept.sum()), len(tasks)
        self.centred, self.turn = centred, turn
        theta = np.stack(thetas) @ self.whiten
        self.mean = theta.mean(0)
        p = self.p
        if n_people == 1:
            level = (self.mean[1:] ** 2).sum() / (p * (n_classes - 1))
            covariance = level * np.eye(n_classes * p)
        else:
            flat = (theta - self.mean).reshape(n_people, -1)
            covariance = flat.T @ flat / (n_people - 1)
            for part in (slice(0, p), slice(p, None)):
                block = covariance[part, part]
                r = oas_weight(block, n_people - 1)
                level = np.trace(block) / len(block)
                covariance[part, part] = (1.0 - r) * block + r * level * np.eye(len(block))
            cross = covariance[:p, p:]
            square = (cross**2).sum()
            rho = 0.0
            if n_people >= 3 and square > 0.0:
                traces = np.trace(covariance[:p, :p]) * np.trace(covariance[p:, p:])
                rho = max(0.0, 1.0 - (traces + square) / ((n_people - 1) * square))
            covariance[:p, p:] = rho * cross
            covariance[p:, :p] = covariance[:p, p:].T
            values, vectors = np.linalg.eigh(covariance)
            covariance = vectors @ np.diag(np.maximum(values, 0.0)) @ vectors.T
            self.rho = rho
        self.covariance = covariance * (1.0 + 1.0 / n_people)
        self.runs = {n: self._off_by(tasks, scale, n) for n in RUNS}
        self.dof = self._worth(within, [len(X) - n_classes for X, _ in tasks])

    def _worth(self, within, freedoms):
        """nu, what the crowd's covariance is worth: how far those of people are apart."""
        apart = []
        for own, freedom in zip(within, freedoms, strict=True):
            S = self.whiten.T @ own @ self.whiten  # noqa: N806
            noise = (np.trace(S) ** 2 + (S**2).sum()) / freedom
            apart.append(((S - np.eye(self.p)) ** 2).sum() - noise)
        if len(apart) < 8:
            return 20.0
        middle = np.median(apart) + 1.25 * np.std(apart, ddof=1) / np.sqrt(len(apart))
        whole = self.p**2 + self.p
        return float(np.clip(whole / middle, 1.0, 1e4)) if middle > 0.0 else 1e4

    def _off_by(self, tasks, scale, n):
        """v_n = tr(A M_n A') / d, over people and runs one by one."""
        found = []
        for X, y in tasks:
            own = []
            for k in range(self.n_classes):
                rows = X[y == k] / scale
                if len(rows) <= n:
                    continue
                outer = []
                for start in range(len(rows) - n + 1):
                    inside = np.zeros(len(rows), bool)
                    inside[start : start + n] = True
                    away = rows[inside].mean(0) - rows[~inside].mean(0)
                    outer.append(np.outer(away, away))
                own.append(np.mean(outer, axis=0))
            if own:
                found.append(np.mean(own, axis=0))
        if not found:
            return np.nan
        return np.trace(self.whiten.T @ np.mean(found, axis=0) @ self.whiten) / self.p

    def noise(self, n):
        """v_n, its logarithm linear in log n between runs; 1 / n beyond."""
        known = [one for one in RUNS if np.isfinite(self.runs[one])]
        inside = np.clip(n, known[0], known[-1])
        value = np.interp(np.log(inside), np.log(known), np.log([self.runs[one] for one in known]))
        return float(np.exp(value)) * inside / n


def assert_same_law(prior, wanted):
    """Compare in scaled features, because whitened ones may be turned."""
    found = prior.law.class_means
    unwhiten = found.unwhiten
    assert found.n_varying == wanted.p
    np.testing.assert_allclose(found.whiten.T @ unwhiten, np.eye(wanted.p), atol=1e-9)
    np.testing.assert_allclose(
        found.whiten @ found.whiten.T, wanted.whiten @ wanted.whiten.T, rtol=1e-6, atol=1e-8
    )
    np.testing.assert_allclose(
        found.mean @ unwhiten.T, wanted.mean @ wanted.unwhiten.T, rtol=1e-8, atol=1e-9
    )
    shape = (wanted.n_classes, wanted.p)
    theirs = wanted.covariance.reshape(*shape, *shape)
    mine, theirs = (
        np.einsum("pr,arbs,qs->apbq", turn, law, turn)
        for turn, law in ((unwhiten, found.covariance), (wanted.unwhiten, theirs))
    )
    np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-8 * np.abs(theirs).max())
    np.testing.assert_allclose(found.run_variances, list(wanted.runs.values()), rtol=1e-8)


CROWDS = {
    "plain": (people(12, 4, (15, 15), 1), 2),
    "unequal": (people(9, 3, [(6, 11), (9, 4), (40, 6)], 2), 2),
    "alike": (people(20, 3, (12, 12), 3, alike=0.7), 2),
    "tied": (people(10, 5, (14, 10), 4, tied=True), 2),
    "two people": (people(2, 4, (9, 8), 5), 2),
    "one person": (people(1, 4, (9, 8), 6), 2),
    "few in many": (people(5, 12, (10, 10), 7), 2),
    "one feature": (people(8, 1, (7, 7), 8), 2),
    "four classes": (people(11, 3, (8, 9, 10, 7), 9), 4),
    "three, one person": (people(1, 5, (8, 9, 10), 10), 3),
}


@pytest.mark.parametrize("name", CROWDS)
def test_law_is_that_of_a_loop_over_people(name):
    """Whitening, OAS of the blocks, rho, 1 + 1/J and v_n; equations 51 to 53."""
    tasks, n_classes = CROWDS[name]
    scale = np.linspace(0.7, 1.9, tasks[0][0].shape[1])
    assert_same_law(prior_of(tasks, scale), PlainLaw(tasks, scale, n_classes))


def test_law_knows_when_centre_and_contrast_go_together():
    """With rho above zero: every person's centre lies along their own gap."""
    rng = np.random.default_rng(11)
    label = np.repeat([0, 1], 20)
    tasks = []
    for _ in range(60):
        h = np.array([2.0, 0.0, 0.0]) + rng.normal(size=3)
        c = 1.5 * h + 0.2 * rng.normal(size=3)
        X = rng.normal(size=(40, 3)) + c + np.where(label, 1.0, -1.0)[:, None] * h
        tasks.append((X, label))
    wanted = PlainLaw(tasks, np.ones(3))
    assert wanted.rho > 0.8
    assert_same_law(prior_of(tasks), wanted)


def test_the_sum_of_two_sites_is_the_law_of_all():
    tasks = people(9, 3, [(6, 11), (9, 4), (40, 6)], 12)
    scale = np.array([1.0, 2.0, 0.5])
    merged = prior_of(tasks[:4], scale) + prior_of(tasks[4:], scale)
    assert_same_law(merged, PlainLaw(tasks, scale))


@pytest.mark.parametrize("unlike", [0.0, 0.2, 0.6])
def test_worth_of_the_crowds_covariance(unlike):
    """Of sites each by its own people, averaged in the logarithm."""
    tasks = people(20, 3, [(12, 11), (9, 14), (40, 6)], 12, unlike=unlike)
    scale = np.array([1.0, 2.0, 0.5])
    laws = [PlainLaw(part, scale) for part in (tasks[:8], tasks[8:])]
    priors = [prior_of(part, scale) for part in (tasks[:8], tasks[8:])]
    for prior, law in zip(priors, laws, strict=True):
        assert prior.law.class_means.dof == pytest.approx(law.dof, rel=1e-6)
    wanted = np.exp((8.0 * np.log(laws[0].dof) + 12.0 * np.log(laws[1].dof)) / 20.0)
    assert (priors[0] + priors[1]).law.class_means.dof == pytest.approx(wanted, rel=1e-6)
    # Seven people are too few to tell.
    assert prior_of(tasks[:7], scale).law.class_means.dof == pytest.approx(20.0)


@pytest.mark.parametrize("nu", [15.0, 60.0])
def test_worth_of_the_crowds_covariance_is_found(nu):
    """People whose covariances follow a Wishart law of nu degrees of freedom."""
    rng = np.random.default_rng([35, round(nu)])
    label, tasks = np.repeat([0, 1], 60), []
    for covariance in wishart.rvs(nu, np.eye(4) / nu, size=300, random_state=rng):
        rows = rng.normal(size=(120, 4)) @ np.linalg.cholesky(covariance).T
        tasks.append((rows + np.outer(label, [1.0, 0.0, 0.0, 0.0]), label))
    assert prior_of(tasks).law.class_means.dof == pytest.approx(nu, rel=0.4)


def test_noise_of_means_is_that_of_independent_windows_where_they_are():
    """Runs of n windows have the variance 1 / n, up to that of the rest."""
    tasks = people(300, 3, (60, 60), 14)
    found = prior_of(tasks).law.class_means
    runs = np.array(RUNS)
    np.testing.assert_allclose(found.run_variances, 1.0 / runs + 1.0 / (60 - runs), rtol=0.04)
    # Beyond the longest run windows count as independent, and so they do if told to.
    assert found.mean_noise(np.array(68)) == pytest.approx(found.run_variances[-1] / 2.0)
    np.testing.assert_array_equal(
        found.mean_noise(np.array([2, 7]), consecutive=False), [1 / 2, 1 / 7]
    )


def log_density(away, covariance):
    """Log density of a normal law at vectors (..., p) away from its mean."""
    distance = (away * np.linalg.solve(covariance, away.T).T).sum(-1)
    return -0.5 * (distance + np.linalg.slogdet(2.0 * np.pi * covariance)[1])


def plain_posterior(law, X, y, scale, unlabelled=None, *, consecutive=True):
    """Coefficients, offsets and the rest by conditioning one dense normal law after the other."""
    n_classes, p = law.n_classes, law.p
    X = (np.asarray(X) / scale) @ law.whiten
    seen = [k for k in range(n_classes) if (y == k).any()]
    own, freedom = np.zeros((p, p)), len(X) - len(seen)
    for k in seen:
        rows = X[y == k] - X[y == k].mean(0)
        own += rows.T @ rows
    g = freedom / (freedom + law.dof)
    sigma = (1.0 - g) * np.eye(p) + g * own / max(freedom, 1)
    t, B = law.mean.ravel(), law.covariance.copy()  # noqa: N806
    if law.centred and seen:
        B[:p, p:] = B[p:, :p] = 0.0
        B[:p, :p] = 1e6 * np.eye(p)
    # A stranger to the crowd: contrasts of no known direction, and a centre five times as far.
    tau = ((t[p:] ** 2).sum() + np.trace(B[p:, p:])) / (p * (n_classes - 1))
    stranger = np.zeros_like(B)
    stranger[:p, :p], stranger[p:, p:] = B[:p, :p], tau * np.eye(len(B) - p)
    no_way = np.concatenate([t[:p], np.zeros(len(t) - p)])
    laws = []
    for wide, chance in ((1.0, 0.98), (25.0, 0.02)):
        for mean, spread, share, member in ((t, B, 0.98, 1.0), (no_way, stranger, 0.02, 0.0)):
            wider = spread.copy()
            wider[:p, :p] *= wide
            laws.append((np.log(chance * share), member, mean, wider))
    if law.centred and seen:
        laws = [(np.log(0.98), *laws[0][1:]), (np.log(0.02), *laws[1][1:])]
    eye = np.eye(p)
    rows = [np.kron(law.turn[k], eye) for k in seen]
    values = [X[y == k].mean(0) for k in seen]
    counts = [(y == k).sum() for k in seen]
    noises = [(law.noise(n) if consecutive else 1.0 / n) * sigma for n in counts]
    grid = [0.5]
    if unlabelled is not None:
        unlabelled = (unlabelled / scale) @ law.whiten
        grid = np.linspace(0.1, 0.9, 9)
    logs, thetas, lefts, members, gains = [], [], [], [], []
    for log_prior, member, mean, spread in laws:
        for share in grid:
            H, obs, N = list(rows), list(values), list(noises)  # noqa: N806
            if unlabelled is not None:
                H.append(np.kron([1.0, 2.0 * share - 1.0], eye))
                obs.append(unlabelled.mean(0))
                N.append(sigma / len(unlabelled))
            theta, left, gain = mean, spread, np.zeros((len(mean), 0))
            log = log_prior
            if H:
                H, obs = np.vstack(H), np.concatenate(obs)  # noqa: N806
                noise = np.zeros((len(H), len(H)))
                for place, one in enumerate(N):
                    part = slice(place * p, (place + 1) * p)
                    noise[part, part] = one
                joint = H @ spread @ H.T + noise
                gain = spread @ H.T @ np.linalg.inv(joint)
                theta = mean + gain @ (obs - H @ mean)
                left = spread - gain @ H @ spread
                log += log_density(obs - H @ mean, joint)
                gains.append(np.trace((gain @ H)[p:, p:]) / (p * (n_classes - 1)))
            if unlabelled is not None:
                m0, m1 = theta[:p] - theta[p:], theta[:p] + theta[p:]
                first = np.log(1.0 - share) + log_density(unlabelled - m0, sigma)
                second = np.log(share) + log_density(unlabelled - m1, sigma)
                log += 0.1 * np.logaddexp(first, second).sum()
            logs.append(log)
            thetas.append(theta)
            lefts.append(left)
            members.append(member)
    weight = np.exp(np.array(logs) - logsumexp(logs))
    theta = sum(w * one for w, one in zip(weight, thetas, strict=True))
    left = sum(
        w * (Q + np.outer(one - theta, one - theta))
        for w, one, Q in zip(weight, thetas, lefts, strict=True)
    )
    means = law.turn @ theta.reshape(n_classes, p)
    doubts = [
        np.kron(law.turn[k], eye) @ left @ np.kron(law.turn[k], eye).T for k in range(n_classes)
    ]
    whole = sigma + np.mean(doubts, axis=0)
    coef = np.linalg.solve(whole, means.T).T
    offset = -0.5 * (coef * means).sum(1)
    accuracy = None
    if n_classes == 2:
        w = (coef[1] - coef[0]) / 2.0
        gap = w @ (means[1] - means[0]) / 2.0
        accuracy = np.mean([norm.cdf(gap / np.sqrt(w @ (sigma + P) @ w)) for P in doubts])
    alpha = weight @ gains if gains else 0.0
    return {
        "coef": coef @ law.whiten.T,
        "offset": offset,
        "means": means @ law.unwhiten.T,
        "member": weight @ members,
        "alpha": alpha,
        "accuracy": accuracy,
        # In whitened features: what is left to draw from.
        "whitened": (means, [sigma + P for P in doubts], coef),
    }


def assert_same_rule(found, wanted, scale, rows, rtol=1e-6):
    """Rows are in the user's units; two classes have one score, of any length."""
    scaled = rows / scale
    theirs = scaled @ wanted["coef"].T + wanted["offset"]
    mine = found.scores(rows)
    if mine.shape[-1] == 1:
        theirs = theirs[:, 1:] - theirs[:, :1]
        mine, theirs = mine / np.abs(mine).mean(), theirs / np.abs(theirs).mean()
    else:
        # What all classes have in common decides nothing.
        mine, theirs = (one - one.mean(-1, keepdims=True) for one in (mine, theirs))
    np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max())
    np.testing.assert_allclose(found.means / scale, wanted["means"], rtol=rtol, atol=1e-6)
    assert found.details["member"] == pytest.approx(wanted["member"], abs=1e-7)
    assert found.alpha == pytest.approx(wanted["alpha"], abs=1e-6)
    if wanted["accuracy"] is not None:
        assert found.raw_forecast == pytest.approx(wanted["accuracy"], rel=1e-6)


COUNTS = {
    "both": (5, 5),
    "one of each": (1, 1),
    "unequal": (24, 2),
    "first only": (3, 0),
    "second only": (0, 7),
    "none": (0, 0),
    "many": (60, 50),
}


@pytest.mark.parametrize("unlabelled", [0, 1, 40])
@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
def test_posterior_is_a_dense_normal_conditioned(counts, unlabelled):
    """Two classes, one, none; equal or not; with unlabelled windows of unknown proportions."""
    rng = np.random.default_rng([15, *counts, unlabelled])
    tasks = people(12, 4, (15, 13), 16)
    scale = np.array([1.0, 2.0, 0.5, 1.3])
    y = np.repeat([0, 1], counts)
    X = rng.normal(size=(y.size, 4)) + 1.5 * y[:, None]
    more = None
    if unlabelled:
        more = rng.normal(size=(unlabelled, 4)) + 1.5 * (rng.random((unlabelled, 1)) < 0.7)
    found = fit_rule(moments_of(X, y, 2), prior_of(tasks, scale).law, unlabelled=more)
    wanted = plain_posterior(PlainLaw(tasks, scale), X, y, scale, more)
    assert_same_rule(found, wanted, scale, rng.normal(size=(20, 4)))


def moments_of(X, y, n_classes):
    """Moments of samples, of which there may be none."""
    if len(X):
        return ClassMoments.of(X, y, n_classes=n_classes)
    d = np.shape(X)[1]
    nothing = np.zeros((n_classes, d))
    return ClassMoments(np.zeros(n_classes), nothing, np.zeros((0, d)), True, np.zeros(d))


@pytest.mark.parametrize(
    "counts", [(3, 3, 3, 3), (1, 0, 5, 2), (0, 0, 4, 0), (0, 0, 0, 0)], ids=str
)
def test_posterior_of_four_classes(counts):
    rng = np.random.default_rng([17, *counts])
    tasks = people(14, 3, (8, 9, 10, 7), 18)
    scale = np.array([1.0, 0.6, 1.4])
    y = np.repeat(np.arange(4), counts)
    X = rng.normal(size=(y.size, 3)) + y[:, None]
    found = fit_rule(moments_of(X, y, 4), prior_of(tasks, scale).law)
    wanted = plain_posterior(PlainLaw(tasks, scale, 4), X, y, scale)
    assert_same_rule(found, wanted, scale, rng.normal(size=(20, 3)))


def test_posterior_where_neighbours_are_alike_and_where_windows_are_scattered():
    rng = np.random.default_rng(19)
    tasks = people(20, 3, (12, 12), 3, alike=0.7)
    scale = np.ones(3)
    y = np.repeat([0, 1], (5, 5))
    X = rng.normal(size=(10, 3)) + y[:, None]
    crowd, law = prior_of(tasks).law, PlainLaw(tasks, scale)
    rows, alphas = rng.normal(size=(20, 3)), []
    for consecutive in (True, False):
        found = fit_rule(ClassMoments.of(X, y), crowd, consecutive=consecutive)
        wanted = plain_posterior(law, X, y, scale, consecutive=consecutive)
        assert_same_rule(found, wanted, scale, rows)
        alphas.append(found.alpha)
    # A run that says less weighs less.
    assert alphas[0] < alphas[1] - 0.05


def test_posterior_with_tied_features():
    """Nothing varies along one direction: it is left out, and the rule does not look there."""
    tasks = people(10, 5, (14, 10), 4, tied=True)
    scale = np.ones(5)
    X, y = people(1, 5, (4, 4), 20, tied=True)[0]
    found = fit_rule(ClassMoments.of(X, y), prior_of(tasks).law)
    law = PlainLaw(tasks, scale)
    assert law.p == 4
    rows = np.random.default_rng(20).normal(size=(20, 5))
    assert_same_rule(found, plain_posterior(law, X, y, scale), scale, rows)


@pytest.mark.parametrize("n_each", [0, 1, 3])
@pytest.mark.parametrize("unlabelled", [0, 6])
def test_what_is_out_of_reach_need_not_be_listed(n_each, unlabelled):
    """5 people in 40 dimensions: in the core and what the samples span it is the same, exactly."""
    rng = np.random.default_rng([21, n_each, unlabelled])
    tasks = people(5, 40, (30, 30), 22)
    scale = np.linspace(0.5, 2.0, 40)
    law = prior_of(tasks, scale).law
    assert law.class_means.core < 12
    y = np.repeat([0, 1], n_each)
    X = rng.normal(size=(y.size, 40)) + y[:, None]
    more = rng.normal(size=(unlabelled, 40)) + 0.4 if unlabelled else None
    found = fit_rule(moments_of(X, y, 2), law, unlabelled=more)
    wanted = plain_posterior(PlainLaw(tasks, scale), X, y, scale, more)
    assert_same_rule(found, wanted, scale, rng.normal(size=(20, 40)))


@pytest.mark.parametrize("n_features", [4, 30])
def test_a_batch_is_one_person_after_the_other(n_features):
    rng = np.random.default_rng(24)
    law = prior_of(people(6, n_features, (40, 40), 25)).law
    y = np.repeat([0, 1], (3, 2))
    X = rng.normal(size=(7, 5, n_features)) + y[:, None]
    more = rng.normal(size=(7, 9, n_features)) + 0.5
    for unlabelled in (None, more):
        batch = fit_rule(ClassMoments.of(X, y), law, unlabelled=unlabelled)
        for place in range(7):
            own = None if unlabelled is None else more[place]
            one = fit_rule(ClassMoments.of(X[place], y), law, unlabelled=own)
            for name in ("coef", "intercept", "means", "alpha", "raw_forecast"):
                mine = getattr(batch, name)[place]
                np.testing.assert_allclose(mine, getattr(one, name), rtol=1e-8, atol=1e-9)
            assert batch.details["member"][place] == pytest.approx(one.details["member"])


def test_without_a_label_it_is_the_rule_of_the_mean_person():
    """w along (I + P)^-1 t_h, P the spread of the class means of people; the middle is t_c."""
    tasks = people(15, 4, (15, 13), 26)
    prior = prior_of(tasks, "auto")
    law = PlainLaw(tasks, prior.feature_scale)
    p, B = law.p, law.covariance  # noqa: N806
    # Half the sum of P_0 and P_1 is Q_cc + Q_hh, whatever goes together.
    w = law.whiten @ np.linalg.solve(np.eye(p) + B[:p, :p] + B[p:, p:], law.mean[1])
    middle = law.unwhiten @ law.mean[0]
    blend = HierarchicalBlendClassifier(prior).start()
    # That a person may be a stranger widens the law and moves the middle nowhere.
    assert blend.projection_ @ w / np.linalg.norm(w) > 0.99
    np.testing.assert_allclose(blend.midpoint_, middle * prior.feature_scale, rtol=1e-7)
    assert blend.alpha_ == 0.0
    assert blend.member_ == pytest.approx(0.98)


def test_many_labels_leave_the_person_alone():
    """With ten thousand windows a class it is the person's own discriminant."""
    rng = np.random.default_rng(27)
    tasks = people(10, 3, (15, 15), 28, unlike=0.5)
    prior = prior_of(tasks, "auto")
    y = np.repeat([0, 1], 10_000)
    mixing = np.eye(3) + 0.3 * rng.normal(size=(3, 3))
    X = rng.normal(size=(y.size, 3)) @ mixing + np.outer(y, [1.0, -1.0, 0.5]) + 3.0
    blend = HierarchicalBlendClassifier(prior, consecutive=False).fit(X, y)
    plain = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    own = plain.coef_[0] * prior.feature_scale
    assert blend.projection_ @ own / np.linalg.norm(own) > 0.9999
    assert blend.alpha_ > 0.99
    assert prior.law.class_means.dof < 100.0
    agree = blend.predict(X) == plain.predict(X)
    assert agree.mean() > 0.999


@pytest.mark.filterwarnings("ignore::crossfade.exceptions.UnitsWarning")
def test_midpoint_prior_is_off_where_features_were_centred_person_by_person():
    """A crowd with three windows of the second class for each of the first, centred on them.

    Its middle lies at a quarter of the gap and would mislead a person whose mix differs.
    """
    rng = np.random.default_rng(29)
    tasks = []
    for _ in range(20):
        y = np.repeat([0, 1], (10, 30))
        h = np.array([1.5, 0.0, 0.0]) + 0.2 * rng.normal(size=3)
        X = rng.normal(size=(40, 3)) + np.where(y, 1.0, -1.0)[:, None] * h
        tasks.append(Task(X - X.mean(0), y))
    prior = TaskPrior.from_tasks(tasks, rehearse=False)
    assert prior.law.class_means.centred
    y = np.repeat([0, 1], (4, 4))
    X = rng.normal(size=(8, 3)) + np.where(y, 1.0, -1.0)[:, None] * [1.5, 0.0, 0.0]
    blend = HierarchicalBlendClassifier(prior).fit(X, y)
    # Nothing is known of the centre: it is that of the labelled windows.
    own = (X[y == 0].mean(0) + X[y == 1].mean(0)) / 2.0
    np.testing.assert_allclose(blend.midpoint_, own, atol=1e-3)
    far = HierarchicalBlendClassifier(prior).fit(X + 50.0, y)
    np.testing.assert_allclose(far.midpoint_, own + 50.0, atol=0.01)
    np.testing.assert_allclose(far.projection_, blend.projection_, atol=1e-3)
    # As an infinitely wide law has it.
    law = PlainLaw([(task.X, task.y) for task in tasks], prior.feature_scale, centred=True)
    wanted = plain_posterior(law, X, y, prior.feature_scale)
    w = (wanted["coef"][1] - wanted["coef"][0]) / 2.0
    np.testing.assert_allclose(blend.projection_, w / np.linalg.norm(w), atol=1e-3)
    # Told that they were not centred, it leans to the crowd's middle.
    told = TaskPrior.from_tasks(tasks, rehearse=False, centred_per_person=False)
    misled = HierarchicalBlendClassifier(told).fit(X, y)
    assert misled.midpoint_[0] < own[0] - 0.2


@cache
def true_accuracies(stranger, n_each=5, crowds=30, newcomers=60, d=10, kappa=1000.0):
    """Accuracy by Phi: 100 sources of 100 windows, class means at -w and w, covariance one."""
    rng = np.random.default_rng(30)
    y, own = np.repeat([0, 1], 50), np.repeat([0, 1], n_each)
    found = []
    for _ in range(crowds):
        axis = draw_directions(1, d, 1e-9, random_state=rng)[0]
        W = draw_directions(100, d, kappa, mean_direction=axis, random_state=rng)
        tasks = [(rng.normal(size=(100, d)) + np.where(y, 1.0, -1.0)[:, None] * w, y) for w in W]
        prior = TaskPrior.from_moments(TaskMoments.of(tasks), rehearse=False)
        about = 1e-9 if stranger else kappa
        nu = draw_directions(newcomers, d, about, mean_direction=axis, random_state=rng)
        X = rng.normal(size=(newcomers, 2 * n_each, d))
        X += np.where(own, 1.0, -1.0)[:, None] * nu[:, None, :]
        rules = fit_rule(ClassMoments.of(X, own), prior.law)
        w = rules.coef[:, 0]
        sides = np.vecdot(w, nu)[:, None] + rules.intercept * [1.0, -1.0]
        found.append(ndtr(sides / np.linalg.norm(w, axis=1)[:, None]).mean(1))
    return np.concatenate(found)


@pytest.mark.parametrize(("stranger", "least"), [(True, 0.69), (False, 0.824)])
def test_protection_of_a_stranger_and_its_price_for_a_member(stranger, least):
    """1800 newcomers with five labels a class."""
    accuracy = true_accuracies(stranger)
    error = accuracy.std() / np.sqrt(accuracy.size)
    print(f"{'stranger' if stranger else 'member'}: {accuracy.mean():.3f} +- {error:.3f}")
    assert error < 0.003
    assert accuracy.mean() >= least


@cache
def four_classes(n_sources=30, n_each=50, d=10, repeats=30, newcomers=8):
    """Accuracy of the hierarchical blend and of centred pooled LDA, by budget."""
    rng = np.random.default_rng(31)
    label = np.repeat(np.arange(4), n_each)
    found = {n: [] for n in (1, 2, 5, 20)}
    for _ in range(repeats):
        shared = np.sqrt(0.5) * rng.normal(size=(4, d))

        def means(shared=shared):
            return shared + np.sqrt(0.3) * rng.normal(size=(4, d)) + rng.normal(size=d)

        sources = [
            (rng.normal(size=(label.size, d)) + means()[label], label) for _ in range(n_sources)
        ]
        law = prior_of(sources).law
        rows = [X - np.mean([X[y == k].mean(0) for k in range(4)], axis=0) for X, y in sources]
        pooled = LinearDiscriminantAnalysis().fit(np.concatenate(rows), np.tile(label, n_sources))
        for _ in range(newcomers):
            own = means()
            test_label = np.repeat(np.arange(4), 150)
            test = rng.normal(size=(test_label.size, d)) + own[test_label]
            for n, numbers in found.items():
                y = np.repeat(np.arange(4), n)
                X = rng.normal(size=(y.size, d)) + own[y]
                rule = fit_rule(ClassMoments.of(X, y, n_classes=4), law)
                mine = rule.scores(test).argmax(1)
                middle = np.mean([X[y == k].mean(0) for k in range(4)], axis=0)
                theirs = pooled.predict(test - middle)
                numbers.append(((mine == test_label).mean(), (theirs == test_label).mean()))
    return {n: np.array(numbers) for n, numbers in found.items()}


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_four_classes_are_told_apart_as_well_as_by_centred_pooled_lda(n):
    mine, theirs = four_classes()[n].T
    assert mine.mean() >= theirs.mean() - 0.003


@pytest.mark.parametrize("counts", [(2, 2, 2, 2), (0, 0, 0, 0), (9, 1, 4, 2)], ids=str)
def test_raw_forecast_of_many_classes_is_the_mean_accuracy_over_the_posterior(counts):
    """Draw class means from what is left of them, a window of each, and count the right answers."""
    rng = np.random.default_rng([36, *counts])
    tasks = people(14, 3, (8, 9, 10, 7), 18)
    y = np.repeat(np.arange(4), counts)
    X = rng.normal(size=(y.size, 3)) + y[:, None]
    found = fit_rule(moments_of(X, y, 4), prior_of(tasks).law)
    plain = plain_posterior(PlainLaw(tasks, np.ones(3), 4), X, y, np.ones(3))
    means, scatters, coef = plain["whitened"]
    right = []
    for k in range(4):
        rows = rng.multivariate_normal(means[k], scatters[k], 40_000)
        right.append(((rows @ coef.T + plain["offset"]).argmax(1) == k).mean())
    # 400 draws for each class: a standard error of about 0.012.
    assert found.raw_forecast == pytest.approx(np.mean(right), abs=0.04)


def test_the_estimator_is_the_rule():
    """From the estimator in the user's units: class means and rule are those above."""
    tasks = people(12, 4, (15, 13), 32)
    prior = prior_of(tasks, "auto")
    X, y = people(1, 4, (4, 3), 33)[0]
    blend = HierarchicalBlendClassifier(prior).fit(X, y)
    wanted = plain_posterior(PlainLaw(tasks, prior.feature_scale), X, y, prior.feature_scale)
    w = (wanted["coef"][1] - wanted["coef"][0]) / 2.0
    np.testing.assert_allclose(blend.projection_, w / np.linalg.norm(w), rtol=1e-6)
    np.testing.assert_allclose(blend.means_, wanted["means"] * prior.feature_scale, rtol=1e-6)
    assert blend.alpha_ == pytest.approx(wanted["alpha"], abs=1e-7)
    assert blend.member_ == pytest.approx(wanted["member"], abs=1e-7)
    rows = people(1, 4, (30, 30), 34)[0][0]
    scores = (rows / prior.feature_scale) @ wanted["coef"].T + wanted["offset"]
    np.testing.assert_array_equal(blend.predict(rows), scores.argmax(1))

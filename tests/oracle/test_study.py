"""The study's rules at once against the same rules one by one: plain loops, and the estimators."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crossfade import (
    CalibrationStudy,
    ConvexBlendClassifier,
    FisherDiscriminant,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
)
from crossfade.study._batch import Batch
from crossfade.study._methods import METHODS
from crossfade.study._paper_methods import as_printed
from crossfade.study._participants import check_tasks
from crossfade.study._sources import Sources
from crossfade.study._splits import draw_splits

GRID = np.linspace(0.0, 1.0, 11)
N_SPLITS = 12


def shares(n_tasks=7, n_each=(23, 15), seed=0):
    """Shares of three bands in three channels, each summing to one: nine features of rank six."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n_each)
    tasks = []
    for place in range(n_tasks):
        rest = rng.uniform(1.0, 4.0, size=(3, 3))
        task = rest * np.exp(0.4 + 0.3 * rng.standard_normal((3, 3))) ** np.array([-1, 0, 1])
        rows = [
            np.concatenate([rng.dirichlet(channel) for channel in (task if label else rest)])
            for label in y
        ]
        tasks.append(Task(rows, y, f"p{place}", group=f"person {place // 2}"))
    return tasks


def world_of(tasks, n_each, target=0, seed=0):
    """A batch of splits of one target, and its sources."""
    classes, participants = check_tasks(tasks)
    sources = Sources.of(participants, classes, seed, keep_windows=True)
    one = participants[target]
    rng = np.random.default_rng([seed, n_each])
    splits = draw_splits(one.label, n_each, N_SPLITS, "consecutive", rng)
    return Batch(one.X, classes, splits), sources.without(one.group)


def windows_of(batch):
    """Place, labelled windows with their labels and test windows with theirs, for each split."""
    splits = batch.splits
    y, truth = batch.classes[splits.label], batch.classes[splits.truth]
    for place, (labelled, test) in enumerate(zip(splits.labelled, splits.test, strict=True)):
        yield place, batch.X[labelled], y, batch.X[test], truth


def unit(vector):
    return vector / np.linalg.norm(vector)


def plain_target(X, y):
    """Point 14: translate, scale to a half gap of one, pooled covariance, pseudo-inverse."""
    means = X[y == 0].mean(0), X[y == 1].mean(0)
    midpoint, gap = (means[0] + means[1]) / 2, np.linalg.norm(means[1] - means[0]) / 2
    X = (X - midpoint) / gap
    nu = X[y == 1].mean(0)
    centred = X - np.where(y[:, None] == 1, nu, -nu)
    sigma = centred.T @ centred / (len(y) - 2)
    inverse = np.linalg.pinv(sigma, rcond=1e-10, hermitian=True)
    return midpoint, gap, nu, sigma, inverse


def plain_balanced_accuracy(X, y, omega, midpoint, gap):
    predicted = ((X - midpoint) / gap @ omega > 0).astype(int)
    return ((predicted[y == 0] == 0).mean() + (predicted[y == 1] == 1).mean()) / 2


def plain_risks(nu, sigma, inverse, n, W, n_draws, rng):
    """Algorithm 1's inner loop with the authors' two covariances."""
    raw = inverse @ nu
    own = ((1.0 + nu @ raw) * inverse - np.outer(raw, raw)) / n
    resultant = np.linalg.norm(W.mean(0))
    mu = unit(W.mean(0))
    psi = (1.0 - ((W @ mu) ** 2).mean()) / (len(W) * resultant**2) * np.eye(len(nu))
    risks, errors = [], []
    for alpha in GRID:
        draws = rng.multivariate_normal(
            alpha * unit(raw) + (1 - alpha) * mu,
            alpha**2 * own + (1 - alpha) ** 2 * psi,
            size=n_draws,
            method="eigh",
        )
        drawn = norm.cdf(-(draws @ nu) / np.sqrt(np.vecdot(draws @ sigma, draws)))
        risks.append(drawn.mean())
        errors.append(drawn.std() / np.sqrt(n_draws))
    return np.array(risks), np.array(errors)


@pytest.mark.parametrize("n_each", [2, 4, 9])
def test_the_papers_rules_are_those_of_a_plain_loop(n_each, monkeypatch):
    batch, crowd = world_of(shares(), n_each)
    n_draws = 4000
    monkeypatch.setattr("crossfade.study._paper_methods._N_DRAWS", n_draws)
    W = crowd.sums.balanced[crowd.kept]
    assert len(W) == 5
    mu = unit(W.mean(0))
    rng = np.random.default_rng(1)
    found = {
        name: METHODS[name].run(crowd, batch, rng)
        for name in ("target", "average-source", "paper", "oracle")
    }
    for place, X, y, test, truth in windows_of(batch):
        midpoint, gap, nu, sigma, inverse = plain_target(X, y)
        own = unit(inverse @ nu)
        accuracies = np.array(
            [
                plain_balanced_accuracy(test, truth, alpha * own + (1 - alpha) * mu, midpoint, gap)
                for alpha in GRID
            ]
        )
        best = np.flatnonzero(accuracies == accuracies.max())[-1]
        assert found["oracle"].alpha[place] == GRID[best]
        assert found["target"].alpha[place] == 1.0
        assert found["average-source"].alpha[place] == 0.0
        for predictions in found.values():
            right = predictions.predicted[place] == truth
            accuracy = (right[truth == 1].mean() + right[truth == 0].mean()) / 2
            at = int(np.abs(GRID - predictions.alpha[place]).argmin())
            assert accuracy == pytest.approx(accuracies[at])
        risks, errors = plain_risks(nu, sigma, inverse, len(y), W, n_draws, rng)
        at = int(np.abs(GRID - found["paper"].alpha[place]).argmin())
        error = np.hypot(errors[at], errors[risks.argmin()])
        # Both curves have this error.
        assert risks[at] - risks.min() < 4.5 * np.sqrt(2.0) * error


@pytest.mark.parametrize("n_each", [2, 9])
def test_algorithm_1_has_the_estimators_curve(n_each):
    """Drawn in fewer dimensions, the risks are the same."""
    from crossfade.risk._choose import least_risk
    from crossfade.risk._law import BlendLaw

    batch, crowd = world_of(shares(), n_each)
    prior = crowd.paper_prior
    own = as_printed(batch)
    law = BlendLaw(own, prior.mean_direction, prior.crowd.psi("authors"))
    reduced = law.within_reach()
    assert reduced.mu.shape[-1] < law.mu.shape[-1]
    risks = least_risk(reduced, GRID, "monte_carlo", 4000, 0).risks
    for place, X, y, *_ in windows_of(batch):
        rule = ConvexBlendClassifier.paper(prior, n_draws=4000, random_state=place).fit(X, y)
        # A risk has a deviation of at most one half.
        assert (np.abs(risks[place] - rule.risks_) < 4.5 * 0.5 * np.sqrt(2.0 / 4000)).all()


def test_sources_of_the_paper_are_balanced_runs():
    tasks = shares(n_each=(23, 15))
    _, participants = check_tasks(tasks)
    starts = set()
    for seed in range(30):
        sources = Sources.of(participants, np.array([0, 1]), seed, keep_windows=False)
        X, y = np.asarray(tasks[3].X), np.asarray(tasks[3].y)
        runs = []
        for start in range(9):
            rows = np.r_[start : start + 15, 23:38]
            *_, nu, _, inverse = plain_target(X[rows], y[rows])
            runs.append(unit(inverse @ nu))
        near = np.abs(np.array(runs) - sources.sums.balanced[3]).max(1) < 1e-8
        assert near.sum() == 1
        starts.add(int(near.argmax()))
    assert len(starts) > 4


@pytest.mark.parametrize("n_windows", [60, 12, 4])
@pytest.mark.parametrize("names", [("task", "group"), ("task", None)])
def test_the_prior_is_that_of_all_other_groups(n_windows, names):
    tasks = shares(n_each=(n_windows // 2, n_windows // 2))
    if names[1] is None:
        tasks = [Task(task.X, task.y, task.name) for task in tasks]
    _, crowd = world_of(tasks, 1, target=2)
    others = [task for task in tasks if (task.group or task.name) != (tasks[2].group or "p2")]
    assert len(others) == (5 if names[1] else 6)
    expected = TaskPrior.from_tasks(others)
    prior = crowd.prior
    assert prior.n_tasks == expected.n_tasks
    assert prior.classes == expected.classes
    for name in ("direction_sum", "outer_sum", "feature_scale", "within_covariance", "half_gap"):
        found, wanted = getattr(prior, name), getattr(expected, name)
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8 * np.abs(wanted).max())


def test_the_prior_of_odd_sources_too():
    """One window a class, a feature that never varies, and one that one task lacks."""
    rng = np.random.default_rng(3)
    tasks = []
    for place, n_each in enumerate([1, 8, 9, 10]):
        y = np.repeat([0, 1], n_each)
        X = rng.standard_normal((y.size, 4)) + y[:, None]
        X[:, 2] = 5.0
        if place == 1:
            X[:, 1] = 3.0
        tasks.append(Task(X, y, f"p{place}"))
    _, crowd = world_of(tasks, 2, target=3)
    expected = TaskPrior.from_tasks(tasks[:3])
    for name in ("direction_sum", "outer_sum", "feature_scale", "within_covariance", "half_gap"):
        np.testing.assert_allclose(getattr(crowd.prior, name), getattr(expected, name), atol=1e-10)


ESTIMATORS = {
    "target-shrunk": lambda crowd: FisherDiscriminant(),
    "convex": lambda crowd: ConvexBlendClassifier(crowd.prior_for("convex")),
    "posterior": lambda crowd: PosteriorBlendClassifier(crowd.prior_for("posterior")),
    "target": lambda crowd: FisherDiscriminant(shrinkage=None, feature_scale=None),
    "average-source": lambda crowd: ConvexBlendClassifier(crowd.paper_prior, alpha=0.0),
}


def compare(name, batch, crowd):
    """Predictions of a method against those of its estimator, split by split."""
    found = METHODS[name].run(crowd, batch, np.random.default_rng(0))
    paper = name in ("target", "average-source")
    for place, X, y, test, _ in windows_of(batch):
        rule = ESTIMATORS[name](crowd).fit(X, y)
        np.testing.assert_array_equal(batch.classes[found.predicted[place]], rule.predict(test))
        scores = rule.decision_function(test)
        assert np.corrcoef(scores, found.scores[place, :, 0])[0, 1] > 1 - 1e-9
        if paper:
            assert np.isnan(found.probability[place]).all()
        else:
            chances = rule.predict_proba(test)[:, 1:]
            np.testing.assert_allclose(found.probability[place], chances, atol=1e-7)
        alpha = getattr(rule, "alpha_", 1.0)
        assert found.alpha[place] == pytest.approx(alpha, abs=1e-7)
        promise = getattr(rule, "expected_accuracy_", np.nan)
        if not paper:
            assert found.expected[place] == pytest.approx(promise, abs=1e-7, nan_ok=True)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("n_each", [1, 2, 4, 9])
def test_a_batch_has_the_verdicts_of_its_estimator(name, n_each):
    compare(name, *world_of(shares(), n_each))


@pytest.mark.parametrize("name", ["target-shrunk", "convex", "posterior"])
@pytest.mark.parametrize("n_each", [1, 2, 3])
def test_splits_without_a_direction_have_the_verdicts_of_the_estimator(name, n_each):
    """Labelled windows that are all alike, or alike within each class."""
    tasks = shares()
    X, y = np.array(tasks[0].X), np.asarray(tasks[0].y)
    X[:10] = X[0]
    X[23:30] = X[23]
    X[30:38] = X[0]
    batch, crowd = world_of([Task(X, y, "p0", group="person 0"), *tasks[1:]], n_each)
    lengths = batch.describe("oas", crowd.prior.feature_scale).length
    if name != "target-shrunk":
        return compare(name, batch, crowd)
    # Without any difference this rule has no scores to compare.
    for place in np.flatnonzero(lengths > 0.0).tolist():
        compare(name, batch.part(place, place + 1), crowd)


@pytest.mark.parametrize("world", ["shares", "wide", "odd", "many"])
def test_lda_is_that_of_scikit_learn(world, make_tasks, make_many):
    """At once, and where that would not do, one by one."""
    tasks = {
        "shares": lambda: shares(4),
        "wide": lambda: make_tasks(3, n_features=30, n_each=(12, 11)),
        "odd": lambda: make_tasks(3, n_features=1),
        "many": lambda: make_many(3),
    }[world]()
    if world == "odd":
        # One feature; another that never varies, and one that does not in some runs of one class.
        tasks = [
            Task(np.c_[task.X, np.full(20, 5.0), task.X[:, 0] * (np.arange(20) > 6)], task.y, name)
            for name, task in zip("abc", tasks, strict=True)
        ]
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    for splits in ("consecutive", "random"):
        study = CalibrationStudy(
            tasks,
            methods=["lda", ("mine", lda)],
            budgets=[2, 3, 0.6],
            n_splits=6,
            splits=splits,
            random_state=0,
        )
        rows = study.run().rows
        first, second = (rows[rows["method"] == name] for name in ("lda", "mine"))
        for name in ("balanced_accuracy", "accuracy", "roc_auc", "brier"):
            np.testing.assert_allclose(first[name], second[name], rtol=0.0, atol=1e-9)
            assert first[name].notna().all()


def test_pooled_is_one_discriminant_of_all_the_others_centred_windows():
    tasks = shares()
    batch, crowd = world_of(tasks, 3)
    found = METHODS["lda-pooled"].run(crowd, batch, np.random.default_rng(0))
    others = tasks[2:]
    rule = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=[0.5, 0.5])
    centred = [
        one.X - (one.X[one.y == 0].mean(0) + one.X[one.y == 1].mean(0)) / 2 for one in others
    ]
    rule.fit(np.concatenate(centred), np.concatenate([one.y for one in others]))
    for place, labelled, label, X, _ in windows_of(batch):
        X = X - (labelled[label == 0].mean(0) + labelled[label == 1].mean(0)) / 2
        np.testing.assert_array_equal(found.predicted[place], rule.predict(X))
        np.testing.assert_allclose(found.probability[place], rule.predict_proba(X)[:, 1:])

"""The rules of a study, all splits at once, against plain loops and estimators, one by one."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crossfade import (
    CalibrationStudy,
    ConvexBlendClassifier,
    FisherDiscriminant,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
)
from crossfade.study import CalibrationSplit

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
        tasks.append(Task(rows, y, f"p{place}", group=f"p{place}"))
    return tasks


def splits_of(tasks, n_each):
    """Labelled and test windows of the first task, with their labels, for each split of a study."""
    X, y = (np.concatenate([getattr(task, name) for task in tasks]) for name in "Xy")
    groups = np.concatenate([np.full(len(task.y), task.name) for task in tasks])
    split = CalibrationSplit(n_each, n_splits=N_SPLITS, random_state=0)
    for train, test in split.split(X, y, groups):
        if groups[train[-1]] == tasks[0].name:
            own = train[groups[train] == tasks[0].name]
            yield X[own], y[own], X[test], y[test]


def rows_of(tasks, methods, n_each):
    """Rows of the first task by method, in the order of their splits."""
    study = CalibrationStudy(
        tasks, methods=methods, budgets=[n_each], n_splits=N_SPLITS, random_state=0
    )
    rows = study.run().rows
    rows = rows[rows["task"] == tasks[0].name]
    return {name: part.reset_index(drop=True) for name, part in rows.groupby("method")}


# -- the paper's ----------------------------------------------------------------------------------


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
def test_the_papers_rules_are_those_of_a_plain_loop(n_each):
    # Of classes of one size there is one balanced run: all windows.
    tasks = shares(n_each=(19, 19))
    found = rows_of(tasks, ["target", "average-source", "paper"], n_each)
    W = []
    for task in tasks[1:]:
        *_, nu, _, inverse = plain_target(np.asarray(task.X), task.y)
        W.append(unit(inverse @ nu))
    W, rng = np.array(W), np.random.default_rng(1)
    mu = unit(W.mean(0))
    for place, (X, y, test, truth) in enumerate(splits_of(tasks, n_each)):
        midpoint, gap, nu, sigma, inverse = plain_target(X, y)
        own = unit(inverse @ nu)
        alphas = {name: rows["alpha"][place] for name, rows in found.items()}
        assert alphas["target"] == 1.0
        assert alphas["average-source"] == 0.0
        for name, rows in found.items():
            omega = alphas[name] * own + (1.0 - alphas[name]) * mu
            accuracy = plain_balanced_accuracy(test, truth, omega, midpoint, gap)
            assert rows["balanced_accuracy"][place] == pytest.approx(accuracy)
        risks, errors = plain_risks(nu, sigma, inverse, len(y), W, 4000, rng)
        at = int(np.abs(GRID - alphas["paper"]).argmin())
        error = np.hypot(errors[at], errors[risks.argmin()])
        # The study has 100 draws for each alpha, here there are 4000.
        assert risks[at] - risks.min() < 4.5 * np.hypot(1.0, np.sqrt(40.0)) * error


# -- ours -----------------------------------------------------------------------------------------

ESTIMATORS = {
    "target-shrunk": lambda prior: FisherDiscriminant(),
    "convex": ConvexBlendClassifier,
    "posterior": PosteriorBlendClassifier,
    "posterior-unlabelled": PosteriorBlendClassifier,
    "hierarchical": HierarchicalBlendClassifier,
    "hierarchical-unlabelled": HierarchicalBlendClassifier,
}


def compare(tasks, n_each, names=ESTIMATORS):
    """Rows of methods against those of their estimators, split by split."""
    found = rows_of(tasks, list(names), n_each)
    prior = TaskPrior.from_tasks(tasks[1:])
    for place, (X, y, test, truth) in enumerate(splits_of(tasks, n_each)):
        for name in names:
            rule, row = ESTIMATORS[name](prior).fit(X, y), found[name].loc[place]
            if name.endswith("unlabelled"):
                rule.partial_fit(test, None)
            # A window on the threshold belongs to either class, by rounding.
            if np.abs(rule.decision_function(test)).min() > 1e-9:
                assert row["accuracy"] == pytest.approx(rule.score(test, truth)), name
            if name == "target-shrunk":
                continue
            brier = np.mean((rule.predict_proba(test)[:, 1] - truth) ** 2)
            assert row["brier"] == pytest.approx(brier, abs=1e-6), name
            assert row["alpha"] == pytest.approx(rule.alpha_, abs=1e-6), name
            assert row["expected_accuracy"] == pytest.approx(rule.expected_accuracy_, abs=1e-6)
            ends = rule.expected_accuracy_interval(0.9)
            assert row[["lower_90", "upper_90"]].tolist() == pytest.approx(ends, abs=1e-6), name


@pytest.mark.parametrize("n_each", [1, 2, 9])
def test_a_batch_has_the_rows_of_its_estimators(n_each):
    compare(shares(), n_each)


@pytest.mark.parametrize("n_each", [1, 2, 3])
def test_splits_without_a_direction_have_the_rows_of_the_estimators(n_each):
    """Labelled windows that are all alike, or alike within each class."""
    tasks = shares()
    X, y = np.array(tasks[0].X), np.asarray(tasks[0].y)
    X[:10] = X[0]
    X[23:30] = X[23]
    X[30:38] = X[0]
    compare([Task(X, y, "p0"), *tasks[1:]], n_each, ["convex", "posterior", "hierarchical"])


def test_odd_sources_have_the_rows_of_the_estimators():
    """One window a class, a feature that never varies, and one that one task lacks."""
    rng = np.random.default_rng(3)
    tasks = []
    for place, n_each in enumerate([10, 1, 8, 9, 12, 11]):
        y = np.repeat([0, 1], n_each)
        X = rng.standard_normal((y.size, 4)) + y[:, None]
        X[:, 2] = 5.0
        if place == 2:
            X[:, 1] = 3.0
        tasks.append(Task(X, y, f"p{place}"))
    with pytest.warns(UserWarning, match=r"left out|too few"):
        compare(tasks, 2, ["convex", "posterior", "hierarchical"])


# -- scikit-learn's -------------------------------------------------------------------------------


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


def middle_of(X, y):
    return np.mean([X[y == name].mean(0) for name in np.unique(y)], axis=0)


@pytest.mark.parametrize("n_each", [3, 0])
def test_pooled_lda_is_one_discriminant_of_centred_windows(n_each):
    tasks = shares()
    centres = [middle_of(task.X, task.y) for task in tasks]
    rule = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=[0.5, 0.5])
    rule.fit(
        np.concatenate([task.X - one for task, one in zip(tasks, centres, strict=True)][1:]),
        np.concatenate([task.y for task in tasks[1:]]),
    )
    rows = rows_of(tasks, ["lda-pooled"], n_each)["lda-pooled"]
    if not n_each:
        # While a class has no label, the person stands at the crowd's middle.
        accuracy = rule.score(tasks[0].X - np.mean(centres[1:], axis=0), tasks[0].y)
        assert rows["accuracy"].tolist() == pytest.approx([accuracy] * N_SPLITS)
        return
    for place, (X, y, test, truth) in enumerate(splits_of(tasks, n_each)):
        test = test - middle_of(X, y)
        assert rows["accuracy"][place] == pytest.approx(rule.score(test, truth))
        brier = np.mean((rule.predict_proba(test)[:, 1] - truth) ** 2)
        assert rows["brier"][place] == pytest.approx(brier)

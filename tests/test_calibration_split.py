"""CalibrationSplit: which rows are whose, as in a study, and inside scikit-learn's own tools."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB

from crossfade import (
    ConvexBlendClassifier,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
)
from crossfade.study import CalibrationSplit, CalibrationStudy

KINDS = ["consecutive", "chronological", "random"]


class OnTheTarget(ClassifierMixin, BaseEstimator):
    """Fits to the rows of the group of the last row alone, as a blend would to its target."""

    def fit(self, X, y, groups):
        own = groups == groups[-1]
        self.classes_ = np.unique(y)
        self.rule_ = GaussianNB().fit(X[own], y[own])
        return self

    def predict(self, X):
        return self.rule_.predict(X)


@pytest.fixture
def table(make_tasks):
    """Rows of five people, their classes and names; each has their rows in another place."""
    tasks = make_tasks(5, n_each=(11, 9))
    X = np.concatenate([task.X for task in tasks])
    y = np.concatenate([task.y for task in tasks])
    groups = np.repeat([task.name for task in tasks], 20)
    order = np.random.default_rng(0).permutation(100)
    return X[order], y[order], groups[order]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("budget", "n_each"), [(3, 3), (0.3, 3), (np.int64(1), 1)])
def test_the_last_rows_are_the_targets(table, kind, budget, n_each):
    X, y, groups = table
    split = CalibrationSplit(budget, kind, n_splits=4, random_state=0)
    found = list(split.split(X, y, groups))
    n_splits = 1 if kind == "chronological" else 4
    assert len(found) == split.get_n_splits(X, y, groups) == 5 * n_splits
    for place, (train, test) in enumerate(found):
        name = f"p{place // n_splits}"
        others, labelled = train[: -2 * n_each], train[-2 * n_each :]
        np.testing.assert_array_equal(others, np.flatnonzero(groups != name))
        assert y[labelled].tolist() == [0] * n_each + [1] * n_each
        own = np.flatnonzero(groups == name)
        assert sorted([*labelled, *test]) == own.tolist()
        for part in (labelled[:n_each], labelled[n_each:]):
            of_class = own[y[own] == y[part[0]]]
            first = int(np.searchsorted(of_class, part[0]))
            if kind != "random":
                np.testing.assert_array_equal(part, of_class[first : first + n_each])
            if kind == "chronological":
                assert first == 0
    assert (len({tuple(train[-2 * n_each :]) for train, _ in found}) > 5) == (n_splits > 1)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_a_study(table, kind):
    X, y, groups = table
    tasks = [Task(X[groups == name], y[groups == name], name) for name in np.unique(groups)]
    study = CalibrationStudy(
        tasks,
        methods={"bayes": GaussianNB()},
        budgets=[3],
        splits=kind,
        n_splits=4,
        random_state=8,
    )
    scores = cross_val_score(
        OnTheTarget(),
        X,
        y,
        cv=CalibrationSplit(3, kind, n_splits=4, random_state=8),
        groups=groups,
        params={"groups": groups},
        scoring="balanced_accuracy",
    )
    np.testing.assert_allclose(scores, study.run().rows["balanced_accuracy"])


def test_splits_follow_the_seed(table):
    def rows(**options):
        split = CalibrationSplit(2, n_splits=3, **options)
        return [train.tolist() for train, _ in split.split(*table)]

    assert rows(random_state=1) == rows(random_state=1)
    assert rows(random_state=1) != rows(random_state=2)
    assert rows() != rows()


def test_groups_with_too_few_rows_are_never_the_target(table):
    X, y, groups = table
    few = np.flatnonzero((groups != "p1") | (y == 0) | (np.cumsum(y * (groups == "p1")) < 4))
    # Group p1 has three rows of the second class left.
    split = CalibrationSplit(3, random_state=0)
    with pytest.warns(UserWarning, match="too few rows.*'p1'"):
        found = list(split.split(X[few], y[few], groups[few]))
    assert len(found) == split.get_n_splits(X[few], y[few], groups[few]) == 4
    for train, _ in found:
        assert (groups[few][train] == "p1").any()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"budget": 0}, "budget"),
        ({"budget": -1}, "budget"),
        ({"budget": (2, 1, 1)}, "classes"),
        ({"kind": "first"}, "kind"),
        ({"n_splits": 0}, "n_splits"),
        ({"random_state": -1}, "random_state"),
        ({"budget": 9}, "smaller"),
    ],
)
def test_a_splitter_refuses(table, options, word):
    with pytest.raises(ValueError, match=word):
        CalibrationSplit(**options).get_n_splits(*table)


def test_a_splitter_needs_classes_and_groups(table):
    X, y, groups = table
    for labels, names in [
        (y, None),
        (None, groups),
        (y, np.zeros(100)),
        (np.zeros(100), groups),
        (y, groups[:-1]),
        (y, [None, *groups[1:]]),
    ]:
        with pytest.raises(ValueError, match=r"groups|inconsistent"):
            next(CalibrationSplit().split(X, labels, names))


# -- which rows are drawn -------------------------------------------------------------------------


def labelled(kind, budget=3, n_splits=2000, n_each=(13, 7)):
    """Labelled rows (n_splits, n) of one of two people, by place among theirs."""
    y = np.tile(np.repeat([0, 1], n_each), 2)
    groups = np.repeat(["a", "b"], sum(n_each))
    split = CalibrationSplit(budget, kind, n_splits=n_splits, random_state=0)
    found = [train for train, _ in split.split(np.zeros((y.size, 1)), y, groups)]
    return np.array(
        [train[sum(n_each) :] - sum(n_each) for train in found if train[0] < sum(n_each)]
    )


def assert_uniform(counts, expected):
    assert (np.abs(counts - expected) < 4 * np.sqrt(expected)).all()


def test_runs_start_anywhere_and_every_row_is_drawn_equally_often():
    runs = labelled("consecutive") % 20
    first, second = runs[:, 0], runs[:, 3] - 13
    assert_uniform(np.bincount(first, minlength=11), 2000 / 11)
    assert_uniform(np.bincount(second, minlength=5), 2000 / 5)
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(2000)
    rows = labelled("random").ravel() % 20
    assert_uniform(np.bincount(rows), np.repeat([2000 * 3 / 13, 2000 * 3 / 7], [13, 7]))


@pytest.mark.parametrize(
    ("budget", "n_each", "n"), [(0.05, (73, 25), 2), (0.2, (25, 73), 5), (0.07, (100, 100), 7)]
)
def test_proportions_are_of_the_smaller_class_and_rounded_up(budget, n_each, n):
    assert labelled("consecutive", budget, 1, n_each).shape == (1, 2 * n)


# -- blends, inside scikit-learn's own tools and in a study ---------------------------------------

BLENDS = [ConvexBlendClassifier, PosteriorBlendClassifier, HierarchicalBlendClassifier]


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("routed", [False, True])
def test_blends_learn_the_crowd_and_the_target(table, blend, routed):
    X, y, groups = table
    split = CalibrationSplit(3, random_state=0)
    with config_context(enable_metadata_routing=routed):
        passed = {"params": {"groups": groups}}
        if not routed:
            passed["groups"] = groups
        scores = cross_val_score(blend(), X, y, cv=split, **passed)
    for score, (train, test) in zip(scores, split.split(X, y, groups), strict=True):
        target = groups[train[-1]]
        others = [
            Task(X[groups == name], y[groups == name], name)
            for name in np.unique(groups)
            if name != target
        ]
        own = train[groups[train] == target]
        rule = blend(TaskPrior.from_tasks(others)).fit(X[own], y[own])
        assert score == rule.score(X[test], y[test])


@pytest.mark.parametrize("blend", BLENDS)
def test_a_search_needs_routing_to_hand_on_the_groups(table, blend):
    X, y, groups = table
    split = CalibrationSplit(3, random_state=0)
    scores = cross_val_score(blend(), X, y, cv=split, groups=groups, params={"groups": groups})
    pooled = cross_val_score(blend(), X, y, cv=split, groups=groups)
    for routed, expected in ((True, scores), (False, pooled)):
        # Without routing scikit-learn keeps the groups for the splitter: a trap the page names.
        with config_context(enable_metadata_routing=routed):
            search = GridSearchCV(
                blend(), {"missing_class": ["crowd", "error"]}, cv=split, refit=False
            )
            search.fit(X, y, groups=groups)
        assert search.cv_results_["mean_test_score"][0] == pytest.approx(expected.mean())


@pytest.mark.parametrize("convention", ["groups", "sample_domain", "X_target_labeled"])
def test_a_study_hands_the_sources_to_who_asks_for_them(make_tasks, convention):
    class Asks(ClassifierMixin, BaseEstimator):
        """Remembers what it was given."""

        if convention == "X_target_labeled":

            def fit(self, X, y, subjects, X_target_labeled, y_target_labeled):
                assert X_target_labeled.shape == (6, 4)
                return self._fit(X, y, X_target_labeled, y_target_labeled, subjects)

        elif convention == "groups":

            def fit(self, X, y, groups):
                own = groups == groups[-1]
                return self._fit(X[~own], y[~own], X[own], y[own], groups[~own])

        else:

            def fit(self, X, y, sample_domain):
                own = sample_domain < 0
                return self._fit(X[~own], y[~own], X[own], y[own], sample_domain[~own])

        def _fit(self, X, y, X_own, y_own, people):
            assert X.shape == (80, 4)
            assert np.unique(people, return_counts=True)[1].tolist() == [20] * 4
            tasks = [Task(X[people == name], y[people == name]) for name in np.unique(people)]
            self.classes_ = np.unique(y)
            self.rule_ = PosteriorBlendClassifier(TaskPrior.from_tasks(tasks)).fit(X_own, y_own)
            return self

        def predict(self, X):
            return self.rule_.predict(X)

    with config_context(enable_metadata_routing=True):
        names = [convention, *(["y_target_labeled", "subjects"] if "X" in convention else [])]
        asks = Asks().set_fit_request(**dict.fromkeys(names, True))
    study = CalibrationStudy(
        make_tasks(5),
        methods=["posterior", ("asks", asks), ("blend", PosteriorBlendClassifier())],
        budgets=[3],
        n_splits=3,
        random_state=0,
    )
    found = study.run().rows.pivot_table("balanced_accuracy", ["task", "split"], "method")
    np.testing.assert_allclose(found["asks"], found["posterior"])
    np.testing.assert_allclose(found["blend"], found["posterior"])

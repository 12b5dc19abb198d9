"""The study engine: scores, who is a source to whom, what fails, who is left out, refusals."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, log_loss, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crossfade import HierarchicalBlendClassifier, PosteriorBlendClassifier, Task, TaskPrior
from crossfade.study import METHODS, CalibrationStudy, StudyResult

SCORES = ["balanced_accuracy", "accuracy", "roc_auc", "brier", "log_loss"]
COLUMNS = [
    *("task", "group", "method", "budget", "n_labelled", "split"),
    *SCORES,
    *("alpha", "expected_accuracy", "lower_68", "upper_68", "lower_90", "upper_90", "seconds"),
]
KINDS = ["consecutive", "chronological", "random"]
#: Calibrated LDA needs four windows of each class.
NAMES = [name for name in METHODS if name != "lda-calibrated"]
#: Methods for more than two classes.
MANY = [name for name, one in METHODS.items() if one.many and name != "lda-calibrated"]
#: Methods whose rows do not depend on the test windows of a split.
ADMISSIBLE = [name for name in NAMES if not METHODS[name].given]


def study_of(tasks, methods, **options):
    options = {"budgets": [2], "n_splits": 3, "random_state": 0, "forecasts": False} | options
    return CalibrationStudy(tasks, methods=methods, **options)


def rows_of(tasks, methods, n_jobs=1, **options):
    return study_of(tasks, methods, **options).run(n_jobs=n_jobs).rows


def same(first, second):
    """All but the time that it took."""
    pd.testing.assert_frame_equal(
        first.drop(columns="seconds").reset_index(drop=True),
        second.drop(columns="seconds").reset_index(drop=True),
    )


# -- scores ---------------------------------------------------------------------------------------


def test_rows_score_the_rest_of_the_windows(make_tasks):
    tasks = make_tasks(4, n_each=(12, 9))
    options = {"splits": "chronological", "budgets": [3], "forecasts": True}
    row = rows_of(tasks, ["posterior"], **options).iloc[0]
    X, y = np.asarray(tasks[0].X), np.asarray(tasks[0].y)
    labelled = np.r_[0:3, 12:15]
    rest = np.setdiff1d(np.arange(21), labelled)
    rule = PosteriorBlendClassifier(TaskPrior.from_tasks(tasks[1:])).fit(X[labelled], y[labelled])
    chance = rule.predict_proba(X[rest])[:, 1]
    weights = 1.0 / np.bincount(y[rest])[y[rest]]
    wanted = {
        "accuracy": rule.score(X[rest], y[rest]),
        "balanced_accuracy": balanced_accuracy_score(y[rest], rule.predict(X[rest])),
        "roc_auc": roc_auc_score(y[rest], chance),
        "brier": brier_score_loss(y[rest], chance),
        "log_loss": log_loss(y[rest], chance, sample_weight=weights),
        "alpha": rule.alpha_,
        "expected_accuracy": rule.expected_accuracy_,
        "n_labelled": 6,
    }
    assert row[list(wanted)].to_dict() == pytest.approx(wanted)


def test_rows_of_many_classes_are_those_of_the_rule_by_hand(make_many):
    tasks = make_many(8)
    mine = {
        "logistic": LogisticRegression(),
        "neighbours": KNeighborsClassifier(3),
        "ridge": RidgeClassifier(),
    }
    rows = rows_of(tasks, ["lda", "hierarchical"], splits="chronological", budgets=[3])
    own = rows_of(tasks, mine, splits="chronological", budgets=[3])
    rows = pd.concat([rows, own]).query("task == 'p1'").set_index("method")
    X, y = tasks[1].X, tasks[1].y
    labelled = np.r_[0:3, 8:11, 18:21]
    rest = np.setdiff1d(np.arange(27), labelled)
    prior = TaskPrior.from_tasks([tasks[0], *tasks[2:]], rehearse=False)
    rules = {
        "lda": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "hierarchical": HierarchicalBlendClassifier(prior),
        **mine,
    }
    for name, rule in rules.items():
        rule.fit(X[labelled], y[labelled])
        wanted = {
            "balanced_accuracy": balanced_accuracy_score(y[rest], rule.predict(X[rest])),
            "accuracy": rule.score(X[rest], y[rest]),
        }
        if hasattr(rule, "predict_proba"):
            chances = rule.predict_proba(X[rest])
            wanted["roc_auc"] = roc_auc_score(y[rest], chances, multi_class="ovr")
            off = chances - (y[rest][:, None] == rule.classes_)
            wanted["brier"] = (off**2).sum(1).mean()
        assert rows.loc[name, list(wanted)].to_dict() == pytest.approx(wanted), name
    margins = mine["ridge"].decision_function(X[rest])
    areas = [roc_auc_score(y[rest] == f"class {k}", margins[:, k]) for k in range(3)]
    assert rows.loc["ridge", "roc_auc"] == pytest.approx(np.mean(areas))
    assert np.isnan(rows.loc["ridge", "brier"])


# -- rows -----------------------------------------------------------------------------------------


def test_rows_are_tidy(make_tasks):
    rows = rows_of(make_tasks(3), NAMES, budgets=[0.15, 3], forecasts=True)
    assert list(rows.columns) == COLUMNS
    assert len(rows) == 3 * 2 * len(NAMES) * 3
    assert not rows.duplicated(["task", "method", "budget", "split"]).any()
    for name in ("balanced_accuracy", "accuracy", "roc_auc"):
        assert rows[name].between(0, 1).all()
    assert (rows["seconds"] > 0).all()
    rivals = {"lda", "lda-pooled", "logistic-tuned"}
    papers = {"target", "average-source", "paper"}
    assert set(rows.dropna(subset="alpha")["method"]) == {*NAMES} - rivals
    blends = {*NAMES} - rivals - papers - {"target-shrunk"}
    assert set(rows.dropna(subset="expected_accuracy")["method"]) - {"target-shrunk"} == blends
    assert set(rows.dropna(subset="brier")["method"]) == {*NAMES} - papers
    alphas = rows.groupby("method")["alpha"]
    assert alphas.min()["target"] == alphas.min()["target-shrunk"] == 1
    assert alphas.max()["average-source"] == 0


def test_rows_do_not_depend_on_other_methods_budgets_or_processes(make_tasks):
    mine = [*NAMES, ("forest", RandomForestClassifier(n_estimators=3))]
    together = rows_of(make_tasks(4), mine, n_jobs=2, budgets=[2, 0.3])
    for method in mine:
        alone = rows_of(make_tasks(4), [method], budgets=[0.3])
        name = method if isinstance(method, str) else method[0]
        same(alone, together[(together["method"] == name) & (together["budget"] == 0.3)])


def test_rows_depend_on_the_seed_and_not_on_the_order_or_type_of_names(make_tasks):
    tasks = make_tasks(4)
    forward, backward = (rows_of(given, ["paper", "lda"]) for given in (tasks, tasks[::-1]))
    for task in tasks:
        same(*(rows[rows["task"] == task.name] for rows in (forward, backward)))
    other = [Task(task.X, task.y, np.str_(task.name)) for task in tasks]
    same(rows_of(other, ["paper", "lda"]), forward)
    for seed in (1, None):
        assert (
            rows_of(tasks, ["paper", "lda"], random_state=seed)["roc_auc"] != forward["roc_auc"]
        ).any()


def test_windows_go_by_their_start_and_labels_may_be_words(make_tasks):
    tasks = make_tasks(3)
    shuffled = []
    for place, task in enumerate(tasks):
        order = np.random.default_rng(place).permutation(len(task.y))
        shuffled.append(Task(task.X[order], task.y[order], task.name, start=order))
    for kind in KINDS:
        same(rows_of(tasks, ["lda"], splits=kind), rows_of(shuffled, ["lda"], splits=kind))
    mine = [*NAMES, ("mine", LogisticRegression())]
    words = make_tasks(3, labels=("rest", "task"))
    same(rows_of(make_tasks(3), mine), rows_of(words, mine))


def test_tasks_and_estimators_are_left_alone(make_tasks):
    tasks, estimator = make_tasks(3), LogisticRegression()
    kept = [task.X.copy() for task in tasks]
    for task in tasks:
        task.X.flags.writeable = False
    rows_of(tasks, [*NAMES, ("mine", estimator)])
    assert not hasattr(estimator, "coef_")
    for task, before in zip(tasks, kept, strict=True):
        np.testing.assert_array_equal(task.X, before)


# -- what methods may look at ---------------------------------------------------------------------


@pytest.mark.parametrize("many", [False, True])
def test_the_other_session_of_a_target_is_never_seen(make_tasks, make_many, many):
    tasks, names = (make_many(6), MANY) if many else (make_tasks(6), NAMES)
    tasks = [Task(one.X, one.y, one.name, group=f"g{k // 2}") for k, one in enumerate(tasks)]
    before = rows_of(tasks, names)
    assert before["group"].unique().tolist() == ["g0", "g1", "g2"]
    tasks[1] = Task(1000.0 - 7.0 * tasks[1].X[:, ::-1], tasks[1].y, tasks[1].name, group="g0")
    after = rows_of(tasks, names)
    same(*(rows[rows["task"] == "p0"] for rows in (before, after)))
    # The others do see it.
    alone = {"target", "target-shrunk", "lda"}
    for method in {*names} - alone:
        first, second = (
            rows[(rows["task"] == "p2") & (rows["method"] == method)] for rows in (before, after)
        )
        assert (first["roc_auc"].to_numpy() != second["roc_auc"].to_numpy()).any(), method


def test_a_leak_of_the_group_would_show():
    """Three people of three different axes, two equal sessions each: strangers know nothing."""
    rng = np.random.default_rng(7)
    y = np.repeat([0, 1], 40)
    tasks = []
    for person in range(3):
        X = rng.standard_normal((80, 3))
        X[:, person] += 4.0 * y
        tasks += [Task(X, y, f"{person}{session}", group=f"{person}") for session in "ab"]
    rows = rows_of(tasks, ["average-source", "lda-pooled"], n_splits=20)
    assert (rows.groupby("method")["roc_auc"].mean() < 0.6).all()
    ungrouped = [Task(task.X, task.y, task.name) for task in tasks]
    leak = rows_of(ungrouped, ["average-source", "lda-pooled"], n_splits=20)
    assert (leak.groupby("method")["roc_auc"].mean() > 0.7).all()


def test_no_method_gains_by_a_giveaway_in_the_test_labels(make_tasks):
    """The labels of the test windows are turned round, and so is who knows none of them."""
    tasks = make_tasks(1) + make_tasks(16, n_each=(3, 3))[1:]
    X, y = np.array(tasks[0].X), np.array(tasks[0].y)
    order = np.r_[0:3, 10:13, 3:10, 13:20]
    X, y = X[order], y[order]
    found = []
    for labels in (y, np.r_[y[:6], 1 - y[6:]]):
        # The others have no windows to test on, so that they are sources only.
        with pytest.warns(UserWarning, match="15 tasks are left out"):
            rows = rows_of(
                [Task(X, labels, "p0"), *tasks[1:]], NAMES, budgets=[3], splits="chronological"
            )
        found.append(rows.set_index("method"))
    for method in NAMES:
        first, second = (rows.loc[method] for rows in found)
        assert second["balanced_accuracy"] == pytest.approx(1.0 - first["balanced_accuracy"])
        assert second["roc_auc"] == pytest.approx(1.0 - first["roc_auc"])
        for name in ("alpha", "expected_accuracy"):
            assert second[name] == pytest.approx(first[name], nan_ok=True)


@pytest.mark.parametrize("many", [False, True])
def test_what_a_method_says_of_itself_depends_on_no_test_window(make_tasks, make_many, many):
    tasks, names = (make_many(6), MANY) if many else (make_tasks(6), ADMISSIBLE)
    told = ["alpha", "expected_accuracy", "lower_90", "n_labelled"]
    options = {"splits": "chronological", "budgets": [3], "forecasts": True}
    rows = rows_of(tasks, names, **options).query("task == 'p0'")
    X, y = np.array(tasks[0].X), tasks[0].y
    first = np.concatenate([np.flatnonzero(y == name)[:3] for name in np.unique(y)])
    far = np.setdiff1d(np.arange(y.size), first)
    X[far] = np.random.default_rng(0).permutation(X[far]) + 5.0
    moved = rows_of([Task(X, y, "p0"), *tasks[1:]], names, **options).query("task == 'p0'")
    pd.testing.assert_frame_equal(rows[["method", *told]], moved[["method", *told]])


# -- estimators -----------------------------------------------------------------------------------


class Guess(ClassifierMixin, BaseEstimator):
    """Labels and nothing else; fails where it is told to."""

    def __init__(self, fails_above=np.inf, warns=False):
        self.fails_above = fails_above
        self.warns = warns

    def fit(self, X, y):
        if X[0, 0] > self.fails_above:
            raise FloatingPointError(f"too large: {X[0, 0] > 0}")
        if self.warns:
            warnings.warn("I am not sure", RuntimeWarning, stacklevel=2)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(X[:, 0] > 10.0).astype(int)]


def test_estimators_are_fitted_to_the_labelled_windows(make_tasks):
    tasks = make_tasks(3)
    mine = {
        "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
        "ridge": RidgeClassifier(),
        "neighbours": KNeighborsClassifier(3),
        "guess": Guess(),
        "prior": PosteriorBlendClassifier(TaskPrior.from_tasks(tasks)),
    }
    rows = rows_of(tasks, mine, splits="chronological", budgets=[4])
    same(rows, rows_of(tasks, list(mine.items()), splits="chronological", budgets=[4]))
    rows = rows[rows["task"] == "p1"].set_index("method")
    X, y = tasks[1].X, tasks[1].y
    labelled = np.r_[0:4, 10:14]
    rest = np.setdiff1d(np.arange(20), labelled)
    for name, estimator in mine.items():
        estimator.fit(X[labelled], y[labelled])
        assert rows.loc[name, "accuracy"] == pytest.approx(estimator.score(X[rest], y[rest]))
    scores = {
        "pipeline": mine["pipeline"].decision_function(X[rest]),
        "ridge": mine["ridge"].decision_function(X[rest]),
        "neighbours": mine["neighbours"].predict_proba(X[rest])[:, 1],
        "guess": mine["guess"].predict(X[rest]),
    }
    for name, values in scores.items():
        assert rows.loc[name, "roc_auc"] == pytest.approx(roc_auc_score(y[rest], values))
    assert rows["brier"].isna().to_list() == [False, True, False, True, False]
    assert rows["alpha"].notna().to_list() == [False] * 4 + [True]
    told = ["alpha", "expected_accuracy", "lower_68", "upper_68", "lower_90", "upper_90"]
    rule = mine["prior"]
    ends = [*rule.expected_accuracy_interval(0.68), *rule.expected_accuracy_interval(0.9)]
    wanted = [rule.alpha_, rule.expected_accuracy_, *ends]
    assert rows.loc["prior", told].tolist() == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("function", "output", "word"),
    [
        ("predict", lambda X: np.zeros((len(X), 1)), "predict"),
        ("predict", lambda X: np.full(len(X), 0.25), "classes"),
        ("predict_proba", lambda X: np.full((3, 2), 0.5), "predict_proba"),
        ("decision_function", lambda X: X[:, :2], "decision_function"),
    ],
)
def test_an_estimator_with_odd_output_fails_alone(make_tasks, function, output, word):
    odd = type("Odd", (Guess,), {function: lambda self, X: output(X)})()
    tasks = make_tasks(3)
    study = study_of(tasks, ["posterior", ("odd", odd), ("ridge", Ridge())])
    with pytest.warns(UserWarning, match="failed on 9 of 9 splits") as caught:
        result = study.run()
    assert len(caught) == 2
    assert result.failures.groupby("method")["n"].sum().to_dict() == {"odd": 9, "ridge": 9}
    assert result.failures.query("method == 'odd'")["message"].str.contains(word).all()
    failed = result.rows["method"] != "posterior"
    assert result.rows.loc[failed, SCORES].isna().all(axis=None)
    same(result.rows[~failed], rows_of(tasks, ["posterior"]))


def test_one_failing_split_does_not_touch_the_others(make_tasks):
    tasks = make_tasks(3)
    fine = rows_of(tasks, [("guess", Guess())], n_splits=5)
    study = study_of(tasks, [("guess", Guess(fails_above=10.0))], n_splits=5)
    with pytest.warns(UserWarning, match="FloatingPointError: too large") as caught:
        rows = study.run().rows
    assert len(caught) == 1
    failed = rows["accuracy"].isna()
    assert 0 < failed.sum() < len(rows)
    same(rows[~failed], fine[~failed.to_numpy()])


def test_a_method_has_no_rows_with_fewer_windows_than_it_needs(make_tasks):
    rows = rows_of(make_tasks(3), ["lda", "posterior"], budgets=[1, 3])
    assert set(rows[rows["method"] == "lda"]["budget"]) == {3}
    assert set(rows[rows["method"] == "posterior"]["budget"]) == {1, 3}


def test_a_method_without_any_use_of_its_sources_fails_alone(make_tasks):
    """Two sources that cancel out exactly have no mean direction."""
    one, other = make_tasks(2)
    tasks = [Task(one.X, one.y, "a"), Task(-one.X, one.y, "b"), Task(other.X, other.y, "c")]
    with pytest.warns(UserWarning, match="'average-source' failed on 3 of 9"):
        rows = rows_of(tasks, ["average-source", "lda"])
    failed = rows[rows["accuracy"].isna()]
    assert set(zip(failed["method"], failed["task"], strict=True)) == {("average-source", "c")}


def test_warnings_of_a_method_are_summed_up(make_tasks):
    study = study_of(make_tasks(3), [("guess", Guess(warns=True))], budgets=[1], n_splits=4)
    for n_jobs in (1, 2):
        with pytest.warns(UserWarning, match="'guess' warned 12 times.* I am not sure") as caught:
            study.run(n_jobs=n_jobs)
        assert len(caught) == 1


# -- who is left out ------------------------------------------------------------------------------


def test_tasks_of_one_class_or_without_a_gap_are_left_out(make_tasks, make_many):
    flat = Task(np.tile(np.arange(4.0)[:, None], (2, 4)), np.repeat([0, 1], 4), "flat")
    tasks = [
        *make_tasks(3),
        Task([[1.0] * 4] * 3, [0, 0, 0], "resting"),
        Task([[1.0] * 4], [1]),
        flat,
    ]
    with pytest.warns(UserWarning, match="left out of the study") as caught:
        rows = rows_of(tasks, ["posterior"])
    said = [str(one.message).rpartition(": ")[2] for one in caught]
    assert said == ["'resting', 'task 5'.", "'flat'."]
    assert caught[0].filename == __file__
    same(rows, rows_of(tasks[:3], ["posterior"]))


def test_a_task_that_lacks_one_of_many_classes_is_a_source_only(make_many):
    tasks = make_many(5)
    kept = tasks[0].y != "class 1"
    some = [Task(tasks[0].X[kept], tasks[0].y[kept], "p0"), *tasks[1:]]
    with pytest.warns(UserWarning, match="left out of the targets.*'p0'"):
        rows = rows_of(some, MANY, budgets=[2, 0.5])
    assert set(rows["task"]) == {"p1", "p2", "p3", "p4"}


def test_small_tasks_are_left_out_of_budgets_but_stay_sources(make_tasks):
    tasks = make_tasks(4)
    small = Task(tasks[0].X[7:14], tasks[0].y[7:14], "small")
    with pytest.warns(UserWarning, match="1 task is left out of budgets 3, 0.9.*'small'") as caught:
        rows = rows_of([small, *tasks[1:]], ["average-source"], budgets=[1, 3, 0.9])
    assert len(caught) == 1
    assert rows[rows["task"] == "small"]["budget"].unique().tolist() == [1.0]
    without = rows_of(tasks[1:], ["average-source"], budgets=[3])
    assert (rows[rows["budget"] == 3]["roc_auc"].to_numpy() != without["roc_auc"]).any()


# -- summary --------------------------------------------------------------------------------------


def test_summary_is_over_tasks_of_means_over_splits(make_tasks):
    mine = ["target", "posterior", ("guess", Guess(fails_above=10.0))]
    with pytest.warns(UserWarning, match="'guess' failed"):
        result = study_of(make_tasks(5), mine, budgets=[0.2, 1]).run()
    table = result.summary().set_index(["method", "budget"])
    means = result.rows.groupby(["method", "budget", "task"])["balanced_accuracy"].mean()
    assert len(table) == 6
    for (method, budget), line in table.iterrows():
        own, target = means[method, budget], means["target", budget]
        assert line["n_tasks"] == own.notna().sum()
        assert line["mean_balanced_accuracy"] == pytest.approx(own.mean())
        assert line["median_balanced_accuracy"] == pytest.approx(own.median())
        assert line["wins"] == (own > target).sum()
    assert "wins" not in StudyResult(result.rows.query("method != 'target'")).summary()


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"methods": ["tarqet"]}, "tarqet"),
        ({"methods": "target"}, "list"),
        ({"methods": []}, "list"),
        ({"methods": {"mine": "lda"}}, "estimator"),
        ({"methods": {"lda": LogisticRegression()}}, "another name"),
        ({"methods": ["lda", "lda"]}, "twice"),
        ({"methods": [LogisticRegression()]}, "pair"),
        ({"methods": [("mine", LogisticRegression)]}, "estimator"),
        ({"methods": ["lda"]}, "larger budget"),
        ({"budgets": [0]}, "larger budget"),
        ({"budgets": [0.1, 1.0]}, "1.0"),
        ({"budgets": [(24, -2)]}, "budget"),
        ({"budgets": [(2, 1, 1)]}, "classes"),
        ({"budgets": [(9, 99)]}, "smaller"),
        ({"budgets": [2, (2, 2)]}, "different"),
        ({"budgets": [np.nan]}, "nan"),
        ({"budgets": [True]}, "True"),
        ({"budgets": []}, "at least one"),
        ({"budgets": [10]}, "smaller"),
        ({"n_splits": 0}, "n_splits"),
        ({"splits": "shuffled"}, "splits"),
        ({"splits": "next-session"}, "sessions"),
        ({"random_state": -1}, "random_state"),
        ({"forecasts": "no"}, "forecasts"),
    ],
)
def test_a_study_refuses(make_tasks, options, word):
    with pytest.raises(ValueError, match=word):
        CalibrationStudy(make_tasks(3), **{"methods": ["target"], "budgets": [1]} | options)


def test_a_study_refuses_tasks_that_do_not_go_together(make_tasks, make_many):
    tasks = make_tasks(3)
    grouped = [Task(task.X, task.y, task.name, group="all") for task in tasks]
    stranger = Task(tasks[2].X, tasks[2].y, "p9")
    for wrong, word in [
        ([*tasks, tasks[0]], "'p0'"),
        ([stranger, *make_tasks(1, labels=("a", "b"))], "classes"),
        (tasks[:1], r"groups.*Add tasks of others\.$"),
        (grouped, "groups"),
        ([], "groups"),
    ]:
        with pytest.raises(ValueError, match=word):
            CalibrationStudy(wrong)
    for method in ("target", "posterior", "convex"):
        with pytest.raises(ValueError, match=method):
            study_of(make_many(3), [method])
    with pytest.raises(TypeError, match="Task"):
        CalibrationStudy([1, 2])
    with pytest.raises(ValueError, match="n_jobs"):
        study_of(tasks, ["target"]).run(n_jobs=0)

"""Studies of more than two classes: rows by hand, who may look at what, refusals, the report."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from crossfade import MulticlassBlend, MulticlassPrior, PosteriorBlendClassifier, Task
from crossfade.report import write_report
from crossfade.study import CalibrationStudy, StudyResult
from crossfade.study._batch import Batch
from crossfade.study._methods import METHODS
from crossfade.study._sources import Sources
from crossfade.study._splits import KINDS, draw_splits
from crossfade.study._validate import check_tasks

MANY = ["hierarchical", "lda", "lda-pooled"]
SCORES = ["balanced_accuracy", "accuracy", "roc_auc", "brier"]


def study_of(tasks, methods, **options):
    options = {"budgets": [2], "n_splits": 3, "random_state": 0} | options
    return CalibrationStudy(tasks, methods=methods, **options)


def rows_of(tasks, methods, **options):
    return study_of(tasks, methods, **options).run().rows


def same(first, second):
    """All but the time that it took."""
    pd.testing.assert_frame_equal(
        first.drop(columns="seconds").reset_index(drop=True),
        second.drop(columns="seconds").reset_index(drop=True),
    )


# -- splits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_splits_take_as_many_of_each_class(kind):
    label = np.random.default_rng(0).permutation(np.repeat([0, 1, 2, 3], [9, 5, 7, 6]))
    splits = draw_splits(label, 2, 40, kind, np.random.default_rng(1))
    assert splits.label.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert splits.truth.tolist() == [0] * 7 + [1] * 3 + [2] * 5 + [3] * 4
    for labelled, test in zip(*splits[:2], strict=True):
        assert sorted([*labelled, *test]) == list(range(27))
        np.testing.assert_array_equal(label[labelled], splits.label)
        np.testing.assert_array_equal(label[test], splits.truth)


# -- rows -----------------------------------------------------------------------------------------


def by_hand(rule, X, y, labelled):
    """Scores of a rule on all windows that are not labelled."""
    rest = np.setdiff1d(np.arange(len(y)), labelled)
    rule.fit(X[labelled], y[labelled])
    found = {
        "balanced_accuracy": balanced_accuracy_score(y[rest], rule.predict(X[rest])),
        "accuracy": rule.score(X[rest], y[rest]),
    }
    if hasattr(rule, "predict_proba"):
        chances = rule.predict_proba(X[rest])
        found["roc_auc"] = roc_auc_score(y[rest], chances, multi_class="ovr")
        found["brier"] = ((chances - (y[rest][:, None] == rule.classes_)) ** 2).sum(1).mean()
    return found


def test_rows_of_estimators_are_theirs(make_many):
    tasks = make_many(3)
    own = MulticlassBlend(PosteriorBlendClassifier(MulticlassPrior.from_tasks(tasks)))
    mine = [
        ("logistic", LogisticRegression()),
        ("neighbours", KNeighborsClassifier(3)),
        ("ridge", RidgeClassifier()),
        ("blend", own),
    ]
    rows = rows_of(tasks, ["lda", "lda-pooled", *mine], splits="chronological", budgets=[3])
    rows = rows[rows["task"] == "p1"].set_index("method")
    X, y = tasks[1].X, tasks[1].y
    labelled = np.r_[0:3, 8:11, 18:21]
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    for name, rule in [("lda", lda), *mine]:
        wanted = by_hand(rule, X, y, labelled)
        assert rows.loc[name, list(wanted)].to_dict() == pytest.approx(wanted), name
    rest = np.setdiff1d(np.arange(27), labelled)
    margins = mine[2][1].decision_function(X[rest])
    areas = [roc_auc_score(y[rest] == f"class {k}", margins[:, k]) for k in range(3)]
    assert rows.loc["ridge", "roc_auc"] == pytest.approx(np.mean(areas))
    assert np.isnan(rows.loc["ridge", "brier"])
    pooled = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=[1 / 3] * 3)
    middle = [np.mean([task.X[y == name].mean(0) for name in set(y)], 0) for task in tasks]
    pooled.fit(np.concatenate([tasks[k].X - middle[k] for k in (0, 2)]), np.tile(y, 2))
    own = X[labelled].reshape(3, 3, -1).mean((0, 1))
    wanted = balanced_accuracy_score(y[rest], pooled.predict(X[rest] - own))
    assert rows.loc["lda-pooled", "balanced_accuracy"] == pytest.approx(wanted)
    assert rows["alpha"].notna().to_dict() == {name: name == "blend" for name in rows.index}


def test_an_estimator_with_a_margin_for_each_pair_fails_alone(make_many):
    def pairs(self, X):
        return np.zeros((len(X), 6))

    odd = type("Odd", (LinearSVC,), {"decision_function": pairs, "predict": lambda self, X: X})()
    with pytest.warns(UserWarning, match=r"Method 'odd' failed on 9 of 9 splits.*\(30,\)"):
        rows = rows_of(make_many(3, n_each=(9, 9, 9, 11)), ["lda", ("odd", odd)])
    failed = rows["method"] == "odd"
    assert rows.loc[failed, SCORES].isna().all(axis=None)
    assert rows.loc[~failed, SCORES].notna().all(axis=None)


def test_four_classes_too(make_many):
    rows = rows_of(make_many(5, n_each=(9, 9, 9, 11)), list(MANY), budgets=[2, 0.5])
    assert rows.groupby("budget")["n_labelled"].unique().map(list).to_dict() == {2: [8], 0.5: [20]}
    means = rows.groupby(["method", "budget"])["balanced_accuracy"].mean()
    assert means["hierarchical", 2] > means["lda", 2]
    assert rows["brier"].between(0, 2).all()
    assert set(rows.loc[rows["expected_accuracy"].notna(), "method"]) == {"hierarchical"}


# -- what methods may look at ---------------------------------------------------------------------


@pytest.mark.parametrize("name", MANY)
def test_a_prediction_depends_on_no_other_test_window(make_many, name):
    """Neither on labels of test windows, nor on their order, nor on what the others are."""
    classes, participants = check_tasks(make_many(5))
    everybody = Sources.of(participants, classes, 0, keep_windows=False)
    for seed, target in enumerate(participants[:2]):
        rng = np.random.default_rng(seed)
        sources = everybody.without(target.group)
        splits = draw_splits(target.label, 3, 1, "chronological", rng)
        [test] = splits.test
        order = rng.permutation(test.size)
        told = splits._replace(test=test[None, order], truth=rng.permutation(splits.truth))
        X, others = target.X.copy(), test[1::2]
        X[others] = rng.permutation(X[others]) + 5.0
        before, otherwise, far = (
            METHODS[name].run(sources, batch, np.random.default_rng(seed))
            for batch in (
                Batch(target.X, classes, splits),
                Batch(target.X, classes, told),
                Batch(X, classes, splits),
            )
        )
        for one, other in zip(before[:3], otherwise[:3], strict=True):
            np.testing.assert_allclose(one[:, order], other)
        for one, other in zip(before[:3], far[:3], strict=True):
            np.testing.assert_allclose(one[:, ::2], other[:, ::2])
        for one, other in zip(before[3:] * 2, otherwise[3:] + far[3:], strict=True):
            np.testing.assert_allclose(one, other)


def test_a_giveaway_in_the_test_labels_is_of_no_use(make_many):
    """With the names of the test windows' classes turned round, what was right is wrong."""
    tasks = make_many(5)
    X, y = np.array(tasks[0].X), np.array(tasks[0].y)
    names = np.unique(y)
    first = np.concatenate([np.flatnonzero(y == name)[:3] for name in names])
    order = np.r_[first, np.setdiff1d(np.arange(y.size), first)]
    X, y = X[order], y[order]
    turned = y.copy()
    turned[9:] = names[(np.searchsorted(names, y[9:]) + 1) % 3]
    before, after = (
        rows_of([Task(X, labels, "p0"), *tasks[1:]], list(MANY), budgets=[3], splits=KINDS[1])
        .query("task == 'p0'")
        .set_index("method")
        for labels in (y, turned)
    )
    for name in MANY:
        assert before.loc[name, "balanced_accuracy"] > 0.5
        assert after.loc[name, "accuracy"] <= 1.0 - before.loc[name, "accuracy"]
        for told in ("alpha", "expected_accuracy"):
            assert after.loc[name, told] == pytest.approx(before.loc[name, told], nan_ok=True)


def test_the_other_session_of_a_target_is_never_seen(make_many):
    tasks = [
        Task(one.X, one.y, one.name, group=group)
        for one, group in zip(make_many(5), "aabcd", strict=True)
    ]
    before = rows_of(tasks, list(MANY))
    other = tasks[1]
    tasks[1] = Task(1000.0 - 7.0 * other.X[:, ::-1], other.y, other.name, group="a")
    after = rows_of(tasks, list(MANY))
    same(*(rows[rows["task"] == "p0"] for rows in (before, after)))
    for method in ("hierarchical", "lda-pooled"):
        first, second = (
            rows[(rows["task"] == "p2") & (rows["method"] == method)] for rows in (before, after)
        )
        assert (first["roc_auc"].to_numpy() != second["roc_auc"].to_numpy()).any(), method


# -- who lacks a class ----------------------------------------------------------------------------


def without(task, name):
    kept = task.y != name
    return Task(task.X[kept], task.y[kept], task.name)


def test_who_lacks_a_class_is_a_source_and_no_target(make_many):
    tasks = make_many(5)
    some = [without(tasks[0], "class 1"), *tasks[1:]]
    message = r"^1 task is left out of the targets, since it has no windows of some class: 'p0'\.$"
    with pytest.warns(UserWarning, match=message) as caught:
        rows = rows_of(some, list(MANY), budgets=[2, 0.5])
    assert len(caught) == 1
    assert set(rows["task"]) == {"p1", "p2", "p3", "p4"}
    alone = rows_of(tasks[1:], list(MANY), budgets=[2, 0.5])
    for method in MANY:
        first, second = (part[part["method"] == method] for part in (rows, alone))
        same(first, second)


def test_tasks_of_one_class_or_with_two_alike_are_left_out(make_many):
    tasks = make_many(4)
    X = np.array(tasks[0].X)
    X[tasks[0].y == "class 0"] = X[0]
    X[tasks[0].y == "class 1"] = X[0]
    one = Task([[1.0] * 4] * 3, ["class 2"] * 3, "resting")
    with pytest.warns(UserWarning, match="left out of the study") as caught:
        rows = rows_of([Task(X, tasks[0].y, "flat"), *tasks[1:], one], ["hierarchical"])
    assert [str(each.message).rpartition(": ")[2] for each in caught] == ["'resting'.", "'flat'."]
    same(rows, rows_of(tasks[1:], ["hierarchical"]))


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["target", "posterior", "oracle", "convex"])
def test_a_method_for_two_classes_is_refused(make_many, method):
    message = (
        f"Method '{method}' is for two classes, and the tasks have 3. Keep the windows of two, or "
        "take 'hierarchical', 'live', 'lda', 'lda-pooled', "
        "'lda-calibrated'; an estim"
    )
    with pytest.raises(ValueError, match=message):
        study_of(make_many(3), ["lda", method])


def test_a_study_of_many_classes_refuses(make_many):
    tasks = make_many(3)
    with pytest.raises(
        ValueError, match=r"no method 'tarqet'\. There are 'hierarchical', 'live', 'lda'"
    ):
        study_of(tasks, ["tarqet"])
    with pytest.raises(ValueError, match=r"Budget 8 leaves no task .* has 8 of its smallest class"):
        study_of(tasks, ["lda"], budgets=[8])
    stranger = Task(tasks[0].X[:16], np.repeat(["class 0", "typo"], 8), "p9")
    with pytest.raises(ValueError, match=r"some of them; those of task 'p9' .*task 'p0' are \['cl"):
        study_of([*tasks, stranger], ["lda"])


# -- folders, sums and reports --------------------------------------------------------------------


def test_studies_go_on_and_add_up(make_many, tmp_path):
    tasks = make_many(4)
    mine = [*MANY, ("logistic", LogisticRegression())]
    whole = study_of(tasks, mine).run()
    study_of(tasks, ["hierarchical"]).run(folder=tmp_path)
    seen = []
    again = study_of(tasks, mine).run(
        folder=tmp_path, n_jobs=2, on_progress=lambda *numbers: seen.append(numbers)
    )
    assert seen[0] == (4, 16)
    same(again.rows, whole.rows)
    same(StudyResult.load(tmp_path).rows, whole.rows)
    parts = [study_of(tasks, [method]).run() for method in mine]
    total = sum(parts[1:], parts[0])
    keys = ["task", "method", "budget", "split"]
    same(total.rows.sort_values(keys), whole.rows.sort_values(keys))


def test_the_report_of_many_classes_opens(make_many, tmp_path):
    pytest.importorskip("matplotlib")
    tasks = make_many(6)
    tasks[0] = without(tasks[0], "class 1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = study_of(tasks, list(MANY), budgets=[1, 3]).run()
    written = write_report(result, tasks, tmp_path)
    text = written[-1].read_text()
    assert "1/3 is chance" in text
    names = {path.name for path in written}
    assert {"accuracy.png", "forecast.png", "alphas.png", "differences-lda.png"} <= names
    left_out = pd.read_csv(tmp_path / "left_out.csv")
    assert left_out["task"].tolist() == ["p0", "p0"]
    assert left_out["reason"].str.startswith("no windows of some class").all()
    # LDA cannot be fitted to one window of each class.
    row = '<th scope="row">scikit-learn&#39;s LDA</th><td class="number">'
    assert f"{row}at most 3</td>" in text
    assert f"{row}–</td>" in text

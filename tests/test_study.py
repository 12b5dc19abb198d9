"""The study engine: splits, scores, who is a source to whom, what is left out, what is refused."""

import os
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crossfade import PosteriorBlendClassifier, Task, TaskPrior
from crossfade.study import CalibrationStudy
from crossfade.study._batch import Batch
from crossfade.study._budgets import windows_of_each_class
from crossfade.study._methods import METHODS, Sees
from crossfade.study._sources import Sources
from crossfade.study._splits import KINDS, draw_splits, generator_for
from crossfade.study._validate import check_tasks

SCORES = ["balanced_accuracy", "accuracy", "roc_auc", "brier", "log_loss"]
COLUMNS = [
    *("task", "group", "method", "budget", "n_labelled", "split"),
    *SCORES,
    *("alpha", "expected_accuracy", "lower_68", "upper_68", "lower_90", "upper_90", "seconds"),
]
LABEL = np.repeat([0, 1], [13, 7])
#: Those that need no other package; tests/test_rivals.py has the others.
#: Calibrated LDA needs four windows of each class.
PLAIN = [name for name, one in METHODS.items() if one.package is None and name != "lda-calibrated"]


def rows_of(tasks, methods, *, n_jobs=1, **options):
    options = {"budgets": [2], "n_splits": 5, "random_state": 0} | options
    return CalibrationStudy(tasks, methods=methods, **options).run(n_jobs=n_jobs).rows


def same(first, second):
    """All but the time that it took."""
    pd.testing.assert_frame_equal(
        first.drop(columns="seconds").reset_index(drop=True),
        second.drop(columns="seconds").reset_index(drop=True),
    )


# -- splits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label", [LABEL, np.random.default_rng(0).permutation(LABEL)])
def test_splits_take_as_many_of_each_class_and_leave_the_rest(kind, label):
    splits = draw_splits(label, 3, 50, kind, np.random.default_rng(1))
    assert splits.labelled.shape == (50, 6)
    assert splits.label.tolist() == [0, 0, 0, 1, 1, 1]
    assert splits.truth.tolist() == [0] * 10 + [1] * 4
    for labelled, test in zip(*splits[:2], strict=True):
        assert sorted([*labelled, *test]) == list(range(20))
        np.testing.assert_array_equal(label[labelled], splits.label)
        np.testing.assert_array_equal(label[test], splits.truth)
        for part in (labelled[:3], labelled[3:], test[:10], test[10:]):
            assert (np.diff(part) > 0).all()


def test_consecutive_splits_are_runs_that_start_anywhere():
    splits = draw_splits(LABEL, 3, 2000, "consecutive", np.random.default_rng(2))
    assert (np.diff(splits.labelled.reshape(-1, 2, 3)) == 1).all()
    first, second = splits.labelled[:, 0], splits.labelled[:, 3] - 13
    for starts, n_starts in ((first, 11), (second, 5)):
        counts = np.bincount(starts, minlength=n_starts)
        assert counts.size == n_starts
        expected = 2000 / n_starts
        assert (np.abs(counts - expected) < 4 * np.sqrt(expected)).all()
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(2000)


def test_chronological_splits_are_the_first_windows():
    splits = draw_splits(LABEL, 2, 3, "chronological", np.random.default_rng(3))
    assert splits.labelled.tolist() == [[0, 1, 13, 14]] * 3


def test_random_splits_take_every_window_equally_often():
    splits = draw_splits(LABEL, 3, 2000, "random", np.random.default_rng(4))
    counts = np.bincount(splits.labelled.ravel(), minlength=20)
    expected = np.repeat([2000 * 3 / 13, 2000 * 3 / 7], [13, 7])
    assert (np.abs(counts - expected) < 4 * np.sqrt(expected)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_split_does_not_depend_on_those_after_it(kind):
    few = draw_splits(LABEL, 2, 3, kind, np.random.default_rng(5))
    many = draw_splits(LABEL, 2, 30, kind, np.random.default_rng(5))
    np.testing.assert_array_equal(few.labelled, many.labelled[:3])


@pytest.mark.parametrize(
    ("budget", "counts", "n_each"),
    [(0.05, (73, 25), 2), (0.2, (25, 73), 5), (0.5, (73, 25), 13), (0.07, (100, 100), 7)],
)
def test_proportions_are_of_the_smaller_class_and_rounded_up(budget, counts, n_each):
    assert windows_of_each_class(budget, counts) == (n_each, n_each)
    assert windows_of_each_class(4, counts) == (4, 4)


def test_generators_differ_by_what_they_are_for():
    draws = {
        float(generator_for(seed, *what).random())
        for seed in (0, 1)
        for what in (("a", 1), ("a", 2), ("b", 1), ("a", 1, "x"), ("a", 0.5))
    }
    assert len(draws) == 10
    assert generator_for(3, "a").random() == generator_for(3, "a").random()


# -- scores ---------------------------------------------------------------------------------------


def test_rows_score_the_rest_of_the_windows(make_tasks):
    tasks = make_tasks(4, n_each=(12, 9))
    row = rows_of(tasks, ["posterior"], splits="chronological", budgets=[3]).iloc[0]
    X, y = np.asarray(tasks[0].X), np.asarray(tasks[0].y)
    labelled = np.r_[0:3, 12:15]
    rest = np.setdiff1d(np.arange(21), labelled)
    rule = PosteriorBlendClassifier(TaskPrior.from_tasks(tasks[1:])).fit(X[labelled], y[labelled])
    chance = rule.predict_proba(X[rest])[:, 1]
    assert row["accuracy"] == rule.score(X[rest], y[rest])
    wanted = balanced_accuracy_score(y[rest], rule.predict(X[rest]))
    assert row["balanced_accuracy"] == pytest.approx(wanted)
    assert row["roc_auc"] == pytest.approx(roc_auc_score(y[rest], chance))
    assert row["brier"] == pytest.approx(brier_score_loss(y[rest], chance))
    assert row["alpha"] == pytest.approx(rule.alpha_)
    assert row["expected_accuracy"] == pytest.approx(rule.expected_accuracy_)
    assert row["n_labelled"] == 6


# -- rows -----------------------------------------------------------------------------------------


def test_rows_are_tidy(make_tasks):
    rows = rows_of(make_tasks(3), PLAIN, budgets=[0.15, 3])
    assert list(rows.columns) == COLUMNS
    assert len(rows) == 3 * 2 * len(PLAIN) * 5
    assert not rows.duplicated(["task", "method", "budget", "split"]).any()
    assert rows.groupby("budget")["n_labelled"].unique().map(list).to_dict() == {0.15: [4], 3: [6]}
    for name in ("balanced_accuracy", "accuracy", "roc_auc"):
        assert rows[name].between(0, 1).all()
    assert (rows["seconds"] > 0).all()
    with_alpha = rows.dropna(subset="alpha")["method"].unique()
    lda = {"lda", "lda-pooled", "logistic-tuned"}
    assert set(PLAIN) - set(with_alpha) == lda
    with_promise = rows.dropna(subset="expected_accuracy")["method"].unique()
    variants = {"private", "pairwise", "one-vs-rest"}
    ours = {"convex", "posterior", "hierarchical", "live"}
    ours |= {"posterior-unlabelled", "hierarchical-unlabelled"}
    assert set(with_promise) - variants == ours
    assert variants <= set(with_promise)
    with_chances = rows.dropna(subset="brier")["method"].unique()
    plain = {"target-shrunk"} | ours | lda
    assert set(with_chances) - variants == plain
    assert variants <= set(with_chances)
    alphas = rows.groupby("method")["alpha"]
    assert alphas.min()["target"] == alphas.min()["target-shrunk"] == 1
    assert alphas.max()["average-source"] == 0


def test_rows_do_not_depend_on_the_number_of_processes(make_tasks):
    mine = [*PLAIN, ("forest", RandomForestClassifier(n_estimators=3))]
    same(rows_of(make_tasks(4), mine), rows_of(make_tasks(4), mine, n_jobs=2))


def test_this_process_does_its_part(make_tasks):
    study = CalibrationStudy(
        make_tasks(8), methods={"tell": TellProcess()}, budgets=[1], n_splits=1, random_state=0
    )
    with pytest.warns(UserWarning, match="'tell' failed on 8 of 8 splits"):
        result = study.run(n_jobs=2)
    processes = set(result.failures["message"])
    assert f"RuntimeError: {os.getpid()}" in processes
    assert len(processes) == 2


def test_what_workers_get_does_not_change_while_this_process_computes(make_tasks, monkeypatch):
    # It is pickled in a thread: an attribute that is added meanwhile would be an error.
    made = []

    def of(*args, known=Sources.of, **options):
        made.append(known(*args, **options))
        return made[-1]

    monkeypatch.setattr(Sources, "of", of)
    for n_jobs in (1, 2):
        rows_of(make_tasks(4), ["posterior"], n_jobs=n_jobs)
    alone, shared = (one.sums.moments.blocks[0] for one in made)
    assert "run_sums" in vars(alone)
    assert "run_sums" not in vars(shared)


def test_rows_do_not_depend_on_the_other_methods_and_budgets(make_tasks):
    mine = [*PLAIN, ("forest", RandomForestClassifier(n_estimators=3))]
    together = rows_of(make_tasks(3), mine, budgets=[2, 0.3])
    for method in mine:
        alone = rows_of(make_tasks(3), [method], budgets=[0.3])
        name = method if isinstance(method, str) else method[0]
        rows = together[(together["method"] == name) & (together["budget"] == 0.3)]
        same(alone, rows)


def test_rows_of_a_task_do_not_depend_on_the_order(make_tasks):
    tasks = make_tasks(4)
    forward, backward = (rows_of(given, ["paper", "lda"]) for given in (tasks, tasks[::-1]))
    for task in tasks:
        same(*(rows[rows["task"] == task.name] for rows in (forward, backward)))


def test_names_may_be_strings_of_numpy(make_tasks):
    tasks = make_tasks(3)
    other = [Task(task.X, task.y, np.str_(task.name)) for task in tasks]
    same(rows_of(tasks, ["target"]), rows_of(other, ["target"]))


def test_rows_depend_on_the_seed(make_tasks):
    tasks = make_tasks(4)
    first, second = (rows_of(tasks, ["target"], random_state=seed) for seed in (0, 1))
    assert (first["roc_auc"] != second["roc_auc"]).any()
    free = rows_of(tasks, ["target"], random_state=None)
    assert (free["roc_auc"] != first["roc_auc"]).any()


def test_windows_go_by_their_start(make_tasks):
    tasks = make_tasks(3)
    shuffled = []
    for place, task in enumerate(tasks):
        order = np.random.default_rng(place).permutation(len(task.y))
        shuffled.append(Task(task.X[order], task.y[order], task.name, start=order))
    for kind in KINDS:
        same(rows_of(tasks, ["lda"], splits=kind), rows_of(shuffled, ["lda"], splits=kind))


def test_labels_may_be_words(make_tasks):
    words = make_tasks(3, labels=("rest", "task"))
    mine = [*PLAIN, ("mine", LogisticRegression())]
    same(rows_of(make_tasks(3), mine), rows_of(words, mine))


def test_chronological_has_one_split(make_tasks):
    rows = rows_of(make_tasks(3), ["target", "lda"], splits="chronological", n_splits=50)
    assert len(rows) == 3 * 2


def test_large_studies_are_done_in_parts(make_tasks, monkeypatch):
    # Algorithm 1 draws for a whole part at once, and so has other draws.
    mine = [name for name in PLAIN if name not in ("paper", "random-alpha")]
    whole = rows_of(make_tasks(3), mine, n_splits=7)
    monkeypatch.setattr("crossfade.study._batch._LARGEST", 1000)
    parts = rows_of(make_tasks(3), mine, n_splits=7)
    same(whole, parts)


def test_progress_is_reported(make_tasks):
    seen = []
    study = CalibrationStudy(make_tasks(3), methods=["target"], budgets=[1], n_splits=2)
    study.run(on_progress=lambda *numbers: seen.append(numbers))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_study_and_its_result_say_what_they_are(make_tasks):
    study = CalibrationStudy(make_tasks(3), methods=["target"], budgets=[1, 0.2], n_splits=2)
    text = "CalibrationStudy(3 tasks, methods=['target'], budgets=[1, 0.2], n_splits=2)"
    assert repr(study) == text
    assert repr(study.run()) == "StudyResult(3 tasks, 12 rows: target)"


def test_tasks_are_left_alone(make_tasks):
    tasks = make_tasks(3)
    kept = [task.X.copy() for task in tasks]
    for task in tasks:
        task.X.flags.writeable = False
    rows_of(tasks, PLAIN)
    for task, before in zip(tasks, kept, strict=True):
        np.testing.assert_array_equal(task.X, before)


# -- nobody is a source to their own group --------------------------------------------------------


def two_sessions_each(make_tasks):
    return [
        Task(task.X, task.y, task.name, group=f"person {place // 2}")
        for place, task in enumerate(make_tasks(6))
    ]


def test_the_other_session_of_a_target_is_never_seen(make_tasks):
    tasks = two_sessions_each(make_tasks)
    before = rows_of(tasks, PLAIN)
    assert before["group"].unique().tolist() == ["person 0", "person 1", "person 2"]
    other, y = np.asarray(tasks[1].X), np.asarray(tasks[1].y)
    tasks[1] = Task(1000.0 - 7.0 * other[:, ::-1], y, tasks[1].name, group=tasks[1].group)
    after = rows_of(tasks, PLAIN)
    same(*(rows[rows["task"] == "p0"] for rows in (before, after)))
    # That others do see it shows that the change is one.
    for method in ("average-source", "paper", "convex", "posterior", "lda-pooled"):
        first, second = (
            rows[(rows["task"] == "p2") & (rows["method"] == method)] for rows in (before, after)
        )
        assert (first["roc_auc"].to_numpy() != second["roc_auc"].to_numpy()).any(), method


def test_a_leak_of_the_group_would_show(make_tasks):
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


def test_only_the_oracle_gains_by_a_giveaway_in_the_test_labels(make_tasks):
    """The labels of the test windows are turned round: who knows none of them is turned round."""
    tasks = make_tasks(1) + make_tasks(16, n_each=(3, 3))[1:]
    X, y = np.array(tasks[0].X), np.array(tasks[0].y)
    order = np.r_[0:3, 10:13, 3:10, 13:20]
    X, y = X[order], y[order]
    turned = np.r_[y[:6], 1 - y[6:]]
    found = []
    for labels in (y, turned):
        # The others have no windows to test on, so that they are sources only.
        with pytest.warns(UserWarning, match="15 tasks are left out of budget 3"):
            rows = rows_of(
                [Task(X, labels, "p0"), *tasks[1:]],
                PLAIN,
                budgets=[3],
                splits="chronological",
            )
        found.append(rows.set_index("method"))
    for method in PLAIN:
        first, second = (rows.loc[method] for rows in found)
        if method == "oracle":
            assert second["balanced_accuracy"] > 1.0 - first["balanced_accuracy"]
        elif method != "oracle-honest":
            assert second["balanced_accuracy"] == pytest.approx(1.0 - first["balanced_accuracy"])
            assert second["roc_auc"] == pytest.approx(1.0 - first["roc_auc"])
            assert second["alpha"] == pytest.approx(first["alpha"], nan_ok=True)
            promised = first["expected_accuracy"]
            assert second["expected_accuracy"] == pytest.approx(promised, nan_ok=True)


def world_of(tasks, target, **options):
    """Splits of one target, and its sources."""
    classes, participants = check_tasks(tasks)
    sources = Sources.of(participants, classes, 0, **({"keep_windows": True} | options))
    one = participants[target]
    splits = draw_splits(one.label, 3, 1, "chronological", np.random.default_rng(0))
    return Batch(one.X, classes, splits), sources.without(one.group)


def looks_at(run, tasks):
    """What the predictions of a method depend on, for one target after the other."""
    found = Sees(0)
    for target in range(len(tasks)):
        batch, sources = world_of(tasks, target)
        rng = np.random.default_rng(target)

        def predict(batch, sources=sources, seed=target):
            return run(sources, batch, np.random.default_rng(seed))

        before, [test] = predict(batch), batch.splits.test
        # Labels are all that tells them: themselves, the order of windows, how many there are.
        order = rng.permutation(test.size)
        splits = batch.splits._replace(
            test=test[None, order], truth=rng.permutation(1 - batch.splits.truth)
        )
        told = predict(replace(batch, splits=splits))
        if not agree(before, told, order, np.arange(test.size)):
            found |= Sees.TEST_LABELS
        X, others = batch.X.copy(), test[1::2]
        X[others] = rng.permutation(X[others]) + 5.0
        kept = np.arange(0, test.size, 2)
        if not agree(before, predict(replace(batch, X=X)), kept, kept):
            found |= Sees.UNLABELLED
        X = batch.X.copy()
        X[batch.splits.labelled[0, ::2]] += 3.0
        whole = np.arange(test.size)
        if not agree(before, predict(replace(batch, X=X)), whole, whole):
            found |= Sees.LABELLED
        fewer = replace(sources, kept=sources.kept & (np.arange(len(tasks)) % 2 == 0))
        if not agree(before, predict(batch, fewer), whole, whole):
            found |= Sees.SUMS
    return found


def agree(first, second, of_first, of_second):
    """Whether two predictions for the same windows, which stand at these places, are the same."""
    of_windows = ("predicted", "scores", "probability")
    return all(
        np.allclose(one[:, of_first], other[:, of_second], equal_nan=True)
        if name in of_windows
        else np.allclose(one, other, equal_nan=True)
        for name, one, other in zip(first._fields, first, second, strict=True)
    )


@pytest.fixture(scope="module")
def unequal():
    """Tasks with three windows in four of the first class."""
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], [45, 15])
    return [
        Task(rng.standard_normal((60, 3)) + np.outer(y, [2.0, 1.0, 0.5 * place]), y, f"p{place}")
        for place in range(6)
    ]


def needed_by(name):
    """Skip where the package of a method is not installed."""
    if METHODS[name].package is not None:
        pytest.importorskip(METHODS[name].package[0])


@pytest.mark.parametrize("name", METHODS)
def test_a_method_sees_what_its_record_says(unequal, name):
    needed_by(name)
    declared = METHODS[name].sees
    of_sources = Sees.SUMS | Sees.DIRECTIONS | Sees.WINDOWS
    wanted = declared & ~of_sources | (Sees.SUMS if declared & of_sources else Sees(0))
    assert looks_at(METHODS[name].run, unequal) == wanted


@pytest.mark.parametrize("name", METHODS)
def test_a_method_runs_on_what_its_record_says_of_the_sources(unequal, name):
    needed_by(name)

    def predict(**options):
        batch, sources = world_of(unequal, 0, keep_windows=Sees.WINDOWS in sees)
        made = sources._prior
        vars(sources)["_prior"] = lambda verbs: replace(made(verbs), **options)
        return METHODS[name].run(sources, batch, np.random.default_rng(0))

    sees = METHODS[name].sees
    whole = predict()
    if Sees.DIRECTIONS in sees:
        with pytest.raises(ValueError, match=r"directions|unpack"):
            predict(directions=None)
    else:
        places = np.arange(whole.predicted.shape[1])
        assert agree(whole, predict(directions=None), places, places)


@pytest.mark.parametrize(
    ("cheat", "seen"),
    [
        (lambda splits, made: {"predicted": splits.truth[None]}, Sees.TEST_LABELS),
        (
            lambda splits, made: {"predicted": made.predicted | (np.arange(54) > 7)},
            Sees.TEST_LABELS,
        ),
        (lambda splits, made: {"alpha": splits.truth[None, 0] * 1.0}, Sees.TEST_LABELS),
        (lambda splits, made: {"scores": made.scores - made.scores.mean()}, Sees.UNLABELLED),
        (lambda splits, made: {"expected": made.scores[..., 0].std(1)}, Sees.UNLABELLED),
    ],
)
def test_a_method_that_looks_at_other_test_windows_is_caught(unequal, cheat, seen):
    def run(sources, batch, rng):
        made = METHODS["posterior"].run(sources, batch, rng)
        return made._replace(**cheat(batch.splits, made))

    assert looks_at(run, unequal) & ~METHODS["posterior"].sees == seen


# -- estimators of the user's ---------------------------------------------------------------------


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


class TellProcess(Guess):
    """Fails with the number of the process that it is in."""

    def fit(self, X, y):
        raise RuntimeError(os.getpid())


def test_estimators_are_fitted_to_the_labelled_windows(make_tasks):
    tasks = make_tasks(3)
    mine = [
        ("pipeline", make_pipeline(StandardScaler(), LogisticRegression())),
        ("ridge", RidgeClassifier()),
        ("neighbours", KNeighborsClassifier(3)),
        ("guess", Guess()),
        ("prior", PosteriorBlendClassifier(TaskPrior.from_tasks(tasks))),
    ]
    rows = rows_of(tasks, mine, splits="chronological", budgets=[4])
    rows = rows[rows["task"] == "p1"].set_index("method")
    X, y = tasks[1].X, tasks[1].y
    labelled = np.r_[0:4, 10:14]
    rest = np.setdiff1d(np.arange(20), labelled)
    for name, estimator in mine:
        estimator.fit(X[labelled], y[labelled])
        assert rows.loc[name, "accuracy"] == pytest.approx(estimator.score(X[rest], y[rest]))
    scores = {
        "pipeline": mine[0][1].decision_function(X[rest]),
        "ridge": mine[1][1].decision_function(X[rest]),
        "neighbours": mine[2][1].predict_proba(X[rest])[:, 1],
        "guess": mine[3][1].predict(X[rest]),
    }
    for name, values in scores.items():
        assert rows.loc[name, "roc_auc"] == pytest.approx(roc_auc_score(y[rest], values))
    assert rows["brier"].isna().to_dict() == {
        "pipeline": False,
        "ridge": True,
        "neighbours": False,
        "guess": True,
        "prior": False,
    }
    assert rows["alpha"].notna().to_list() == [False] * 4 + [True]


def test_estimators_may_be_given_by_name(make_tasks):
    mine = {"ridge": RidgeClassifier(), "guess": Guess()}
    same(rows_of(make_tasks(3), mine), rows_of(make_tasks(3), list(mine.items())))


def test_estimators_are_not_changed(make_tasks):
    estimator = LogisticRegression()
    rows_of(make_tasks(3), [("mine", estimator)])
    assert not hasattr(estimator, "coef_")


# -- what fails -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "output", "message"),
    [
        ("predict", lambda X: np.zeros((len(X), 1)), r"predict must .* \(16,\) .* got \(16, 1\)"),
        ("predict", lambda X: np.zeros(3), r"predict must .* \(16,\) for 16 windows; got \(3,\)"),
        ("predict", lambda X: 1, r"predict must return .* got \(\)"),
        ("predict", lambda X: np.full(len(X), 0.25), r"returned 0\.25, .* none of .* \[0, 1\]"),
        ("predict", lambda X: ["x"] * len(X), r"returned 'x', which is none of the classes"),
        ("predict_proba", lambda X: np.full((3, 2), 0.5), r"predict_proba must .* got \(3, 2\)"),
        ("predict_proba", lambda X: np.ones((len(X), 1)), r"predict_proba must .* got \(16, 1\)"),
        ("predict_proba", lambda X: np.ones(len(X)), r"predict_proba must .* got \(16,\)"),
        ("decision_function", lambda X: X[:, :2], r"decision_function must .* got \(16, 2\)"),
        ("decision_function", lambda X: X[:1, 0], r"decision_function must .* got \(1,\)"),
    ],
)
def test_an_estimator_with_odd_output_fails_alone(make_tasks, function, output, message):
    odd = type("Odd", (Guess,), {function: lambda self, X: output(X)})()
    tasks = make_tasks(3)
    study = CalibrationStudy(
        tasks, methods=["posterior", ("odd", odd)], budgets=[2], n_splits=5, random_state=0
    )
    with pytest.warns(UserWarning, match="^Method 'odd' failed on 15 of 15 splits") as caught:
        result = study.run()
    assert len(caught) == 1
    assert result.failures["n"].sum() == 15
    assert result.failures["message"].str.contains(message).all()
    failed = result.rows["method"] == "odd"
    assert result.rows.loc[failed, SCORES].isna().all(axis=None)
    same(result.rows[~failed], rows_of(tasks, ["posterior"]))


def test_an_estimator_that_raises_or_has_odd_output_fails_alone(make_tasks):
    odd = type("Odd", (Guess,), {"predict": lambda self, X: np.zeros(3)})(fails_above=10.0)
    with pytest.warns(UserWarning, match="^Method 'odd' failed on 15 of 15 splits"):
        rows = rows_of(make_tasks(3), [("odd", odd)])
    assert rows[SCORES].isna().all(axis=None)


def test_a_regressor_is_no_method(make_tasks):
    with pytest.warns(UserWarning, match=r"'ridge' failed on 15 of 15 .* must be a classifier\.$"):
        rows = rows_of(make_tasks(3), [("ridge", Ridge())])
    assert rows[SCORES].isna().all(axis=None)


def test_a_method_that_fails_leaves_nan_and_one_warning(make_tasks):
    study = CalibrationStudy(
        make_tasks(3),
        methods=[("own", LinearDiscriminantAnalysis()), "posterior"],
        budgets=[1, 3],
        n_splits=4,
        random_state=0,
    )
    message = (
        r"^Method 'own' failed on 12 of 24 splits, which are NaN in the rows\. The first, p0, "
        r"budget 1: ValueError: .*samples"
    )
    with pytest.warns(UserWarning, match=message) as caught:
        rows = study.run().rows
    assert len(caught) == 1
    failed = (rows["method"] == "own") & (rows["budget"] == 1)
    scores = rows[SCORES]
    assert scores[failed].isna().all(axis=None)
    assert scores[~failed].notna().all(axis=None)


def test_a_method_has_no_rows_with_fewer_windows_than_it_needs(make_tasks):
    rows = rows_of(make_tasks(3), ["lda", "posterior"], budgets=[1, 3])
    assert set(rows[rows["method"] == "lda"]["budget"]) == {3}
    assert set(rows[rows["method"] == "posterior"]["budget"]) == {1, 3}
    with pytest.raises(ValueError, match="need 2 labelled windows of each class or more"):
        rows_of(make_tasks(3), ["lda"], budgets=[1])


def test_one_failing_split_does_not_touch_the_others(make_tasks):
    tasks = make_tasks(3)
    fine = rows_of(tasks, [("guess", Guess())])
    with pytest.warns(UserWarning, match="'guess' failed on .* FloatingPointError: too large"):
        rows = rows_of(tasks, [("guess", Guess(fails_above=10.0))])
    failed = rows["accuracy"].isna()
    assert 0 < failed.sum() < len(rows)
    same(rows[~failed], fine[~failed.to_numpy()])


def test_one_failing_split_of_a_batch_does_not_touch_the_others(make_tasks, monkeypatch):
    tasks = make_tasks(3)
    fine = rows_of(tasks, ["target"])

    def fails_at_the_start(sources, batch, rng):
        if (batch.splits.labelled[:, 0] == 0).any():
            raise np.linalg.LinAlgError("singular")
        return METHODS["target"].run(sources, batch, rng)

    fragile = replace(METHODS["target"], run=fails_at_the_start)
    monkeypatch.setattr("crossfade.study._validate.METHODS", {"target": fragile})
    with pytest.warns(UserWarning, match="'target' failed on .* LinAlgError: singular"):
        rows = rows_of(tasks, ["target"])
    failed = rows["accuracy"].isna().to_numpy()
    assert 0 < failed.sum() < len(rows)
    same(rows[~failed], fine[~failed])


def test_a_method_without_any_use_of_its_sources_fails_alone(make_tasks):
    """Two sources that cancel out exactly have no mean direction."""
    one, other = make_tasks(2)
    tasks = [Task(one.X, one.y, "a"), Task(-one.X, one.y, "b"), Task(other.X, other.y, "c")]
    with pytest.warns(UserWarning, match=r"'average-source' failed on 5 of 15 .* c, budget 2: .*"):
        rows = rows_of(tasks, ["average-source", "lda"])
    rows = rows[rows["method"] == "average-source"]
    assert rows["accuracy"].isna().groupby(rows["task"]).all().to_dict() == {
        "a": False,
        "b": False,
        "c": True,
    }


def test_warnings_of_a_method_are_summed_up(make_tasks):
    study = CalibrationStudy(
        make_tasks(3), methods=[("guess", Guess(warns=True))], budgets=[1], n_splits=4
    )
    message = "^Method 'guess' warned 12 times. The first, p0, budget 1: I am not sure$"
    for n_jobs in (1, 2):
        with pytest.warns(UserWarning, match=message) as caught:
            study.run(n_jobs=n_jobs)
        assert len(caught) == 1


class Compiles(Guess):
    """Brings in a module that Python compiles now, and has a remark about."""

    def fit(self, X, y):
        compile(r"PATTERN = '\d'", "module.py", "exec")
        return super().fit(X, y)


def test_what_python_says_to_the_developers_of_a_method_is_not_about_a_split(make_tasks):
    """Warnings are errors here; that one is a DeprecationWarning in 3.11, a SyntaxWarning later."""
    result = CalibrationStudy(
        make_tasks(3), methods=[("mine", Compiles())], budgets=[1], n_splits=2
    ).run()
    assert result.rows["accuracy"].notna().all()


def test_convex_without_agreement_warns_and_takes_the_target_alone(make_tasks):
    tasks = make_tasks(5)
    turned = [
        Task(task.X, task.y if place % 2 else 1 - task.y, task.name)
        for place, task in enumerate(tasks)
    ]
    with pytest.warns(UserWarning, match="'convex' warned .* cancel out"):
        rows = rows_of(turned, ["convex"])
    assert (rows["alpha"] == 1.0).any()


# -- who is left out ------------------------------------------------------------------------------


def test_tasks_of_one_class_are_left_out(make_tasks):
    tasks = [*make_tasks(3), Task([[1.0] * 4] * 3, [0, 0, 0], "resting"), Task([[1.0] * 4], [1])]
    message = r"^2 tasks are left out of the study, since .* one class only: 'resting', 'task 5'\.$"
    with pytest.warns(UserWarning, match=message):
        rows = rows_of(tasks, ["posterior"])
    same(rows, rows_of(tasks[:3], ["posterior"]))


def test_tasks_without_a_gap_are_left_out(make_tasks):
    flat = Task(np.tile(np.arange(4.0)[:, None], (2, 4)), np.repeat([0, 1], 4), "flat")
    message = "^1 task is left out of the study, since it has no feature in which .*: 'flat'"
    with pytest.warns(UserWarning, match=message):
        rows = rows_of([flat, *make_tasks(3)], ["posterior", "paper"])
    same(rows, rows_of(make_tasks(3), ["posterior", "paper"]))


def test_small_tasks_are_left_out_of_a_budget_but_stay_sources(make_tasks):
    tasks = make_tasks(4)
    small = Task(tasks[0].X[7:14], tasks[0].y[7:14], "small")
    with pytest.warns(UserWarning, match="1 task is left out of budget 3, since it has .*: 'small"):
        rows = rows_of([small, *tasks[1:]], ["average-source"], budgets=[1, 3])
    assert rows.groupby("task")["budget"].nunique().to_dict() == {
        "p1": 2,
        "p2": 2,
        "p3": 2,
        "small": 1,
    }
    without = rows_of(tasks[1:], ["average-source"], budgets=[3])
    assert (rows[rows["budget"] == 3]["roc_auc"].to_numpy() != without["roc_auc"]).any()


def test_who_is_left_out_of_several_budgets_is_named_once(make_tasks):
    tasks = make_tasks(5)
    small = [Task(task.X[7:14], task.y[7:14], f"small {task.name}") for task in tasks[:2]]
    middle = Task(tasks[2].X[5:15], tasks[2].y[5:15], "middle")
    with pytest.warns(UserWarning, match="left out") as caught:
        CalibrationStudy([*small, middle, *tasks[3:]], methods=["target"], budgets=[1, 0.9, 4, 5])
    why = "no window of each class left to test on"
    assert [str(one.message) for one in caught] == [
        f"2 tasks are left out of budgets 0.9, 4, 5, since they have {why}: 'small p0', "
        "'small p1'.",
        f"1 task is left out of budgets 0.9, 5, since it has {why}: 'middle'.",
    ]
    assert {one.filename for one in caught} == {__file__}


# -- summary --------------------------------------------------------------------------------------


def test_summary_is_over_tasks_of_means_over_splits(make_tasks):
    mine = ["target", "posterior", ("guess", Guess(fails_above=10.0))]
    study = CalibrationStudy(make_tasks(5), methods=mine, budgets=[0.2, 1], random_state=0)
    with pytest.warns(UserWarning, match="'guess' failed"):
        result = study.run()
    table = result.summary().set_index(["method", "budget"])
    assert list(table.columns) == [
        "n_tasks",
        "mean_balanced_accuracy",
        "median_balanced_accuracy",
        "wins",
    ]
    assert len(table) == 6
    for (method, budget), line in table.iterrows():
        rows = result.rows[result.rows["budget"] == budget]
        accuracy = {
            name: [
                np.nanmean(part["balanced_accuracy"])
                for _, part in rows[rows["method"] == name].groupby("task")
            ]
            for name in (method, "target")
        }
        assert line["n_tasks"] == 5
        assert line["mean_balanced_accuracy"] == pytest.approx(np.mean(accuracy[method]))
        assert line["median_balanced_accuracy"] == pytest.approx(np.median(accuracy[method]))
        assert line["wins"] == (np.array(accuracy[method]) > accuracy["target"]).sum()


def test_summary_without_target_has_no_wins(make_tasks):
    study = CalibrationStudy(make_tasks(3), methods=["posterior"], budgets=[1], n_splits=2)
    assert "wins" not in study.run().summary()


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["tarqet"]}, "no method 'tarqet'. There are 'target', 'average-source', 'pap"),
        ({"methods": "target"}, "methods must be a list with at least one of .*; got 'target'"),
        ({"methods": []}, r"methods must be a list .*; got \[\]"),
        ({"methods": {}}, r"methods must be a list .* or a dict of estimators by name; got \[\]"),
        ({"methods": {"mine": "lda"}}, r"Method 'mine' is given as 'lda', .*: pass a list, such"),
        ({"methods": {"lda": LogisticRegression()}}, "'lda' is one of the study's own methods"),
        ({"methods": {1: LogisticRegression()}}, r"A method is a name or a .* got \(1, Logistic"),
        ({"methods": ["lda", "lda"]}, "Method 'lda' is given twice"),
        ({"methods": [LogisticRegression()]}, r"a \(name, estimator\) pair; got LogisticRegr"),
        ({"methods": [("lda", LogisticRegression())]}, "'lda' is one of the study's own methods"),
        ({"methods": [("mine", LogisticRegression)]}, "Method 'mine' must be an estimator"),
        ({"methods": {"lda": "lda"}}, r"'lda' is given as 'lda', a name\. The study's own methods"),
        ({"budgets": [0.1, 1.0]}, r"A budget is a proportion between 0 and 1.*; got 1\.0"),
        ({"budgets": [0]}, r"No method .* can predict before .*; got budgets \[0\]. Add a budg"),
        ({"budgets": [(24, -2)]}, r"A budget of unequal numbers .*; got \(24, -2\)"),
        ({"budgets": [(2, 1, 1)]}, r"Budget \(2, 1, 1\) has numbers for 3 classes"),
        ({"budgets": [(9, 99)]}, r"Budget \(9, 99\) leaves no task .* has 10 and 10 of"),
        ({"budgets": [2, (2, 2)]}, "budgets must be different numbers"),
        ({"budgets": [-0.5]}, r"A budget is .*; got -0\.5"),
        ({"budgets": [np.nan]}, "A budget is .*; got nan"),
        ({"budgets": [True]}, "A budget is .*; got True"),
        ({"budgets": ["all"]}, "A budget is .*; got 'all'"),
        ({"budgets": []}, "budgets must be different numbers, at least one"),
        ({"budgets": [2, 2]}, "budgets must be different numbers"),
        ({"budgets": [10]}, "Budget 10 leaves no task a window .*; the largest has 10 of its sm"),
        ({"budgets": [0.99]}, r"Budget 0\.99 leaves no task a window"),
        ({"n_splits": 0}, "n_splits must be a whole number of at least 1; got 0"),
        ({"splits": "shuffled"}, "splits must be one of 'consecutive', 'chronological', 'random'"),
        ({"random_state": -1}, "random_state must be a whole number of at least 0"),
    ],
)
def test_a_study_refuses(make_tasks, options, message):
    with pytest.raises(ValueError, match=message):
        CalibrationStudy(make_tasks(3), **{"methods": ["target"], "budgets": [1]} | options)


def test_a_study_refuses_tasks_that_do_not_go_together(make_tasks):
    tasks = make_tasks(3)
    with pytest.raises(ValueError, match="two are called 'p0'"):
        CalibrationStudy([*tasks, tasks[0]])
    with pytest.raises(
        ValueError, match=r"task 'p0' are \['a', 'b'\], those of task 'p9' are \[0, 1"
    ):
        CalibrationStudy([Task(tasks[2].X, tasks[2].y, "p9"), *make_tasks(1, labels=("a", "b"))])
    with pytest.raises(ValueError, match=r"at least two groups, .*; got 1 task of 1 group\."):
        CalibrationStudy(tasks[:1])
    grouped = [Task(task.X, task.y, task.name, group="all") for task in tasks]
    with pytest.raises(ValueError, match=r"at least two groups, .*; got 3 tasks of 1 group\."):
        CalibrationStudy(grouped)
    with pytest.raises(ValueError, match=r"at least two groups, .*; got 0 tasks of 0 groups\. A"):
        CalibrationStudy([])
    resting = [Task(task.X[:10], task.y[:10], task.name) for task in tasks]
    message = (
        r"got 1 task of 1 group\. 2 tasks are left out of the study, since they have windows of "
        r"one class only: 'p1', 'p2'\. Add tasks"
    )
    with pytest.raises(ValueError, match=message):
        CalibrationStudy([tasks[0], *resting[1:]])
    with pytest.raises(TypeError, match="A TaskSet holds Task objects"):
        CalibrationStudy([1, 2])


def test_a_study_refuses_no_processes(make_tasks):
    study = CalibrationStudy(make_tasks(3), methods=["target"], budgets=[1])
    with pytest.raises(ValueError, match="n_jobs must be a whole number of at least 1; got 0"):
        study.run(n_jobs=0)

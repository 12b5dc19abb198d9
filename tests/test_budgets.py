"""Budgets: no label, windows of each class, unequal numbers, proportions, from draw to report."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossfade import Task
from crossfade.plots import accuracy_by_budget, alphas, differences
from crossfade.report import write_report
from crossfade.study import CalibrationSplit, CalibrationStudy, StudyResult, verdict
from crossfade.study._batch import Batch
from crossfade.study._budgets import budget_of, budget_text, check_budget, number_of
from crossfade.study._splits import KINDS, draw_splits, generator_for
from crossfade.study.statistics import compare, labels_saved, summarise

BUDGETS = [0, 2, (5, 2), 0.3]
MIXED = ["lda-pooled", "posterior", "lda", "oracle"]


@pytest.fixture
def mixed(make_tasks):
    """A study with all kinds of budgets; only "lda-pooled" can predict without a label."""

    def make(methods=MIXED, budgets=BUDGETS, **options):
        options = {"n_splits": 3, "random_state": 0} | options
        return CalibrationStudy(make_tasks(6), methods=methods, budgets=budgets, **options)

    return make


# -- one number stands for a budget ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "number", "text"),
    [
        (0, 0.0, "no label"),
        (0.05, 0.05, "5 %"),
        (2, 2.0, "2 of each class"),
        ((24, 2), 13.24022, "24+2"),
        ((24, 0), 12.24002, "24+0"),
        ((0, 2), 1.021, "0+2"),
        ((1, 2, 9), 4.1291, "1+2+9"),
        ((1200, 40), 620.120000404, "1200+40"),
    ],
)
def test_a_budget_is_one_number(budget, number, text):
    assert check_budget(budget) == budget
    assert number_of(budget) == number
    assert budget_of(number) == budget
    assert budget_text(number) == text


@given(st.lists(st.integers(0, 99), min_size=2, max_size=6))
def test_unequal_numbers_survive_and_stand_beside_their_mean(counts):
    budget = check_budget(tuple(counts))
    if not isinstance(budget, tuple):
        assert set(counts) == {budget}
        return
    number = number_of(budget)
    assert budget_of(number) == tuple(counts)
    # Written as text it is read as the same number.
    assert float(repr(number)) == number
    mean = np.mean(counts)
    assert mean <= number < np.ceil(mean) + 1.0
    assert not number.is_integer()
    assert number > 1.0


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ((5,), "A budget of unequal numbers .* got"),
        ((1.5, 2), "A budget of unequal numbers"),
        ((True, 2), "A budget of unequal numbers"),
        (tuple(range(100, 110)), "has too many numbers, or too large ones"),
        (-1, "A budget is .*; got -1"),
        (float("nan"), "A budget is .*; got nan"),
    ],
)
def test_what_is_no_budget_is_refused(budget, message):
    with pytest.raises(ValueError, match=message):
        check_budget(budget)


def test_a_number_that_is_no_budget_is_refused():
    with pytest.raises(ValueError, match=r"2\.5 is no budget"):
        budget_of(2.5)


# -- splits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_each", [(4, 1), (0, 0), (5, 0)])
def test_unequal_splits(kind, n_each):
    label = np.random.default_rng(0).permutation(np.repeat([0, 1], [13, 7]))
    splits = draw_splits(label, n_each, 30, kind, np.random.default_rng(1))
    assert splits.label.tolist() == [0] * n_each[0] + [1] * n_each[1]
    assert splits.truth.tolist() == [0] * (13 - n_each[0]) + [1] * (7 - n_each[1])
    for labelled, test in zip(*splits[:2], strict=True):
        assert sorted([*labelled, *test]) == list(range(20))
        np.testing.assert_array_equal(label[labelled], splits.label)
        np.testing.assert_array_equal(label[test], splits.truth)


def test_a_run_of_each_class_depends_on_its_own_number_alone():
    label = np.repeat([0, 1], [40, 30])
    both = [
        draw_splits(label, n_each, 50, "consecutive", np.random.default_rng(1))
        for n_each in ((4, 2), 2, (4, 4))
    ]
    np.testing.assert_array_equal(both[0].labelled[:, 4:], both[1].labelled[:, 2:])
    np.testing.assert_array_equal(both[0].labelled[:, :4], both[2].labelled[:, :4])
    # start = floor(u (N - n + 1))
    keys = np.random.default_rng(1).random((50, 2))
    np.testing.assert_array_equal(both[0].labelled[:, 0], np.floor(keys[:, 0] * 37))
    np.testing.assert_array_equal(both[0].labelled[:, 4], 40 + np.floor(keys[:, 1] * 29))


def test_a_splitter_takes_unequal_numbers(make_tasks):
    tasks = make_tasks(4, n_each=(11, 9))
    X, y = (np.concatenate([getattr(task, name) for task in tasks]) for name in "Xy")
    groups = np.repeat([task.name for task in tasks], 20)
    split = CalibrationSplit((5, 2), n_splits=3, random_state=0)
    for place, (train, test) in enumerate(split.split(X, y, groups)):
        own = f"p{place // 3}"
        assert set(groups[train[-7:]]) == {own}
        assert y[train[-7:]].tolist() == [0] * 5 + [1] * 2
        assert len(test) == 13
    # They are those of a study.
    label = np.asarray(tasks[0].y)
    rng = generator_for(0, "p0", (5, 2), "splits")
    splits = draw_splits(label, (5, 2), 3, "consecutive", rng)
    train, _ = next(split.split(X, y, groups))
    np.testing.assert_array_equal(train[-7:], splits.labelled[0])


# -- batches --------------------------------------------------------------------------------------


def test_the_midpoint_is_that_of_the_class_means():
    X = np.random.default_rng(0).standard_normal((20, 3))
    splits = draw_splits(np.repeat([0, 1], [13, 7]), (5, 2), 4, "random", np.random.default_rng(1))
    batch = Batch(X, np.array([0, 1]), splits)
    for found, labelled in zip(batch.midpoint(), splits.labelled, strict=True):
        means = X[labelled[:5]].mean(0), X[labelled[5:]].mean(0)
        np.testing.assert_allclose(found, np.mean(means, 0), atol=1e-14)


def test_moments_without_a_label_are_zero():
    X = np.random.default_rng(0).standard_normal((20, 3))
    splits = draw_splits(np.repeat([0, 1], 10), 0, 4, "random", np.random.default_rng(1))
    moments = Batch(X, np.array([0, 1]), splits).moments
    assert moments.counts.tolist() == [0.0, 0.0]
    assert moments.means.shape == (4, 2, 3)
    assert not moments.means.any()
    assert not moments.deviation().any()
    one_class = draw_splits(np.repeat([0, 1], 10), (3, 0), 4, "random", np.random.default_rng(1))
    assert Batch(X, np.array([0, 1]), one_class).moments.counts.tolist() == [3.0, 0.0]


# -- studies --------------------------------------------------------------------------------------


def test_methods_that_need_labels_have_no_rows_without(mixed):
    result = mixed().run()
    rows = result.rows
    counts = rows.groupby(["method", "budget"]).size().unstack(fill_value=0)
    assert counts.columns.tolist() == [0.0, 0.3, 2.0, 4.521]
    assert counts.loc["lda-pooled"].tolist() == [18, 18, 18, 18]
    assert counts.loc["posterior"].tolist() == [18, 18, 18, 18]
    assert counts.loc["lda"].tolist() == [0, 18, 18, 18]
    assert rows.groupby("budget")["n_labelled"].unique().map(list).tolist() == [[0], [6], [4], [7]]
    assert rows["balanced_accuracy"].notna().all()
    assert result.failures.empty
    assert set(summarise(rows)["n_left_out"]) == {0}
    assert set(summarise(rows)["n_failed"]) == {0}


def test_rows_do_not_depend_on_the_other_budgets(mixed):
    both = mixed().run().rows
    alone = mixed(budgets=[(5, 2)]).run().rows
    part = both[both["budget"] == alone["budget"].iloc[0]].reset_index(drop=True)
    pd.testing.assert_frame_equal(part.drop(columns="seconds"), alone.drop(columns="seconds"))
    # (2, 2) is 2.
    plain = mixed(budgets=[(2, 2)]).run().rows
    part = both[both["budget"] == 2].reset_index(drop=True)
    pd.testing.assert_frame_equal(part.drop(columns="seconds"), plain.drop(columns="seconds"))


def test_unequal_numbers_of_many_classes(make_many):
    study = CalibrationStudy(
        make_many(5), methods=["lda", "lda-pooled"], budgets=[(3, 2, 4), (0, 1, 2)], n_splits=2
    )
    rows = study.run().rows
    assert rows.groupby("method")["n_labelled"].unique().map(list).to_dict() == {
        "lda": [9],
        "lda-pooled": [9, 3],
    }


def test_a_task_needs_a_window_of_each_class_to_test_on(make_tasks):
    tasks = make_tasks(4)
    small = Task(tasks[0].X[:14], tasks[0].y[:14], "small")
    with pytest.warns(
        UserWarning, match=r"1 task is left out of budget \(2, 5\), since .* 'small'"
    ):
        study = CalibrationStudy(
            [small, *tasks[1:]], methods=["target"], budgets=[(2, 5), (5, 2)], n_splits=1
        )
    rows = study.run().rows
    assert rows[rows["task"] == "small"]["budget"].tolist() == [number_of((5, 2))]


def test_a_study_of_all_budgets_is_kept_in_a_folder_and_resumes(mixed, tmp_path):
    result = mixed().run(folder=tmp_path)
    for again in (mixed().run(folder=tmp_path), StudyResult.load(tmp_path), mixed().run(n_jobs=2)):
        pd.testing.assert_frame_equal(
            again.rows.drop(columns="seconds"), result.rows.drop(columns="seconds")
        )
    with pytest.raises(ValueError, match=r"budgets is \[0, 2, \[5, 2\], 0.3\] there"):
        mixed(budgets=[0, 2]).run(folder=tmp_path)
    # A method without any row has a part of its own all the same.
    few = mixed(methods=["lda-pooled", "lda"], budgets=[0])
    first = few.run(folder=tmp_path / "few")
    assert set(first.rows["method"]) == {"lda-pooled"}
    assert len(StudyResult.load(tmp_path / "few").rows) == len(first.rows)


def test_studies_of_different_budgets_add_up(mixed):
    whole = mixed().run()
    parts = mixed(budgets=[0, 2]).run() + mixed(budgets=[2, (5, 2), 0.3]).run()
    order = ["task", "method", "budget", "split"]
    pd.testing.assert_frame_equal(
        parts.rows.drop(columns="seconds").sort_values(order, ignore_index=True),
        whole.rows.drop(columns="seconds").sort_values(order, ignore_index=True),
    )


# -- what is said about it ------------------------------------------------------------------------


def test_statistics_compare_only_where_both_can_predict(mixed):
    rows = mixed().run().rows
    table = compare(rows, "lda", ["lda-pooled"])
    assert table["budget"].tolist() == [0.3, 2.0, number_of((5, 2))]
    assert table["n_left_out"].tolist() == [0, 0, 0]
    saved = labels_saved(rows, "lda-pooled", "lda")
    # Unequal numbers belong to no curve.
    assert saved["budget"].tolist() == [0.3, 2.0]
    equal = rows[rows["budget"] != number_of((5, 2))]
    pd.testing.assert_frame_equal(saved, labels_saved(equal, "lda-pooled", "lda"))
    assert saved["needed"].notna().all()
    assert labels_saved(rows, "lda", "lda-pooled")["share_saved"].notna().all()
    only = compare(mixed(budgets=[0, 2]).run().rows.query("budget == 0 or method == 'lda'"), "lda")
    assert only.empty


def test_a_verdict_does_not_call_it_failure(mixed):
    text = verdict(mixed(methods=["lda-pooled", "posterior"]).run().rows)
    assert " Without a labelled window, the posterior blend" in text
    assert "fail" not in text
    text = verdict(mixed(methods=["lda-pooled"]).run().rows)
    assert " Without a labelled window, " in text
    text = verdict(mixed(budgets=[(5, 2)]).run().rows)
    assert text.startswith("With 7 labelled windows (5+2), ")


def test_figures_and_report_have_all_budgets(mixed, make_tasks, tmp_path):
    result = mixed().run()
    figure = accuracy_by_budget(result.rows)
    labels = [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    assert labels[0] == "0"
    assert np.isfinite(figure.axes[0].get_xlim()).all()
    titles = [ax.get_title() for ax in alphas(result.rows, ["oracle"]).axes]
    assert titles == ["30 %", "2", "5+2"]
    assert len(differences(result.rows, "posterior", "lda").axes) == 3
    write_report(result, make_tasks(6), tmp_path)
    page = (tmp_path / "report.html").read_text()
    for text in ("no label", "2 of each class", "5+2", "30 %"):
        assert text in page
    for budgets in ([0], [0, 0.3]):
        write_report(mixed(budgets=budgets).run(), make_tasks(6), tmp_path / f"{len(budgets)}")

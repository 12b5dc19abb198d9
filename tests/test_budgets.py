"""Budgets: no label, windows of each class, unequal numbers, proportions, from draw to verdict."""

import pandas as pd
import pytest

from crossfade import Task
from crossfade.study import (
    CalibrationStudy,
    StudyResult,
    budget_of,
    budget_text,
    verdict,
)
from crossfade.study.statistics import compare, labels_saved, summarise

BUDGETS = [0, 2, (5, 2), 0.3]
MIXED = ["lda-pooled", "posterior", "lda", "target"]


@pytest.fixture
def mixed(make_tasks):
    """A study with all kinds of budgets."""

    def make(methods=MIXED, budgets=BUDGETS, **options):
        options = {"n_splits": 3, "random_state": 0, "forecasts": False} | options
        return CalibrationStudy(make_tasks(6), methods=methods, budgets=budgets, **options)

    return make


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
    assert budget_of(number) == budget
    assert budget_text(number) == text


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
    for budget, number in (((5, 2), 4.521), ((2, 2), 2.0)):
        alone = mixed(budgets=[budget]).run().rows
        part = both[both["budget"] == number].reset_index(drop=True)
        pd.testing.assert_frame_equal(part.drop(columns="seconds"), alone.drop(columns="seconds"))


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
    with pytest.warns(UserWarning, match="'small'"):
        study = CalibrationStudy(
            [small, *tasks[1:]], methods=["target"], budgets=[(2, 5), (5, 2)], n_splits=1
        )
    rows = study.run().rows
    assert rows[rows["task"] == "small"]["budget"].tolist() == [4.521]


def test_a_study_of_all_budgets_is_kept_in_a_folder_and_adds_up(mixed, tmp_path):
    result = mixed().run(folder=tmp_path)
    for again in (mixed().run(folder=tmp_path), StudyResult.load(tmp_path), mixed().run(n_jobs=2)):
        pd.testing.assert_frame_equal(
            again.rows.drop(columns="seconds"), result.rows.drop(columns="seconds")
        )
    # A method without any row has a part of its own all the same.
    few = mixed(methods=["lda-pooled", "lda"], budgets=[0]).run(folder=tmp_path / "few")
    assert set(few.rows["method"]) == {"lda-pooled"}
    assert len(StudyResult.load(tmp_path / "few").rows) == len(few.rows)
    parts = mixed(budgets=[0, 2]).run() + mixed(budgets=[2, (5, 2), 0.3]).run()
    order = ["task", "method", "budget", "split"]
    pd.testing.assert_frame_equal(
        parts.rows.drop(columns="seconds").sort_values(order, ignore_index=True),
        result.rows.drop(columns="seconds").sort_values(order, ignore_index=True),
    )


def test_statistics_compare_only_where_both_can_predict(mixed):
    rows = mixed().run().rows
    table = compare(rows, "lda", ["lda-pooled"])
    assert table["budget"].tolist() == [0.3, 2.0, 4.521]
    assert table["n_left_out"].tolist() == [0, 0, 0]
    saved = labels_saved(rows, "lda-pooled", "lda")
    # Unequal numbers belong to no curve.
    assert saved["budget"].tolist() == [0.3, 2.0]
    equal = rows[rows["budget"] != 4.521]
    pd.testing.assert_frame_equal(saved, labels_saved(equal, "lda-pooled", "lda"))
    assert saved["needed"].notna().all()
    assert labels_saved(rows, "lda", "lda-pooled")["share_saved"].notna().all()
    assert compare(rows.query("budget == 0 or method == 'lda'"), "lda").query("budget == 0").empty


def test_a_verdict_does_not_call_it_failure(mixed):
    text = verdict(mixed(methods=["lda-pooled", "posterior"]).run().rows)
    assert " Without a labelled window, the posterior blend" in text
    assert "fail" not in text
    assert verdict(mixed(budgets=[(5, 2)]).run()).startswith("With 7 labelled windows (5+2), ")

"""Tables of a study from rows made by hand, its odd cases, and what is refused."""

import re

import numpy as np
import pandas as pd
import pytest

from crossfade.study import verdict
from crossfade.study.statistics import (
    by_task,
    compare,
    forecast_errors,
    labels_saved,
    reliability,
    summarise,
)

#: What a method that fails has none of.
SCORES = ["balanced_accuracy", "accuracy", "roc_auc", "brier", "log_loss", "alpha"]
SCORES += ["expected_accuracy"]


def rows_of(accuracies, *, n_splits=2, groups=None, n_labelled=None, forecast=0.1):
    """Rows whose means over splits are given: {method: {budget: [one for each task]}}."""
    wobble = np.linspace(-0.01, 0.01, n_splits) if n_splits > 1 else np.zeros(1)
    lines = [
        (
            *(split, mean + off, f"p{place}", f"p{place}" if groups is None else groups[place]),
            *(method, float(budget), (n_labelled or {}).get(budget, 2 * budget)),
        )
        for method, budgets in accuracies.items()
        for budget, values in budgets.items()
        for place, mean in enumerate(values)
        for split, off in enumerate(wobble)
    ]
    names = ["split", "balanced_accuracy", "task", "group", "method", "budget", "n_labelled"]
    rows = pd.DataFrame(lines, columns=names)
    rows["accuracy"] = rows["balanced_accuracy"] - 0.05
    rows["roc_auc"] = rows["balanced_accuracy"] + 0.05
    rows["brier"], rows["log_loss"], rows["alpha"], rows["seconds"] = 0.2, 0.6, 0.5, 1e-3
    rows["expected_accuracy"] = rows["balanced_accuracy"] + forecast
    return rows


def two_methods(**options):
    own = {1: [0.7, 0.8, 0.6, 0.9, 0.7, 0.75], 2: [0.8, 0.8, 0.7, 0.9, 0.8, 0.85]}
    other = {1: [0.6, 0.8, 0.7, 0.7, 0.65, 0.6], 2: [0.7, 0.8, 0.65, 0.8, 0.7, 0.8]}
    return rows_of({"posterior": own, "lda": other}, **options)


def failed(rows, **where):
    """The same rows, NaN where the columns have the given values."""
    rows = rows.copy()
    chosen = np.logical_and.reduce([rows[name] == value for name, value in where.items()])
    rows.loc[chosen, SCORES] = np.nan
    return rows


TABLES = [by_task, summarise, lambda rows: compare(rows, "lda"), labels_saved]
TABLES += [reliability, forecast_errors]


# -- by task, and summary -------------------------------------------------------------------------


def test_means_are_over_the_splits_that_did_not_fail():
    rows = failed(two_methods(n_splits=3), task="p1", method="lda", budget=1.0, split=0)
    rows = failed(rows, task="p2", method="lda", budget=1.0)
    table = by_task(rows).set_index(["task", "method", "budget"])
    assert len(table) == 24
    line = table.loc["p0", "posterior", 1.0]
    assert line[SCORES].tolist() == pytest.approx([0.7, 0.65, 0.75, 0.2, 0.6, 0.5, 0.8])
    assert line[["group", "n_labelled", "n_splits", "n_failed"]].tolist() == ["p0", 2, 3, 0]
    some, none = table.loc["p1", "lda", 1.0], table.loc["p2", "lda", 1.0]
    assert some[["n_splits", "n_failed"]].tolist() == [3, 1]
    assert some["balanced_accuracy"] == pytest.approx(0.805)
    assert none[["n_splits", "n_failed"]].tolist() == [3, 3]
    assert none[SCORES].isna().all()


def test_a_summary_by_hand():
    table = summarise(failed(two_methods(), task="p2", method="lda", budget=1.0))
    assert table["method"].tolist() == ["posterior", "posterior", "lda", "lda"]
    assert table["budget"].tolist() == [1.0, 2.0, 1.0, 2.0]
    assert table["n_labelled"].tolist() == [2.0, 4.0, 2.0, 4.0]
    assert table["n_tasks"].tolist() == [6, 6, 5, 6]
    assert table["n_failed"].tolist() == [0, 0, 2, 0]
    assert table["mean"].tolist() == pytest.approx([4.45 / 6, 4.85 / 6, 0.67, 4.45 / 6])
    assert table["median"].tolist() == pytest.approx([0.725, 0.8, 0.65, 0.75])
    assert (table["low"] < table["mean"]).all()
    assert (table["mean"] < table["high"]).all()
    assert (table["alpha"] == 0.5).all()
    assert (table["expected_accuracy"] - table["mean"]).tolist() == pytest.approx([0.1] * 4)


def test_a_summary_counts_the_tasks_that_only_other_methods_have():
    rows = failed(two_methods(), task="p3", method="lda", budget=1.0)
    rows = failed(rows, task="p4", budget=2.0)
    table = summarise(rows).set_index(["method", "budget"])
    assert table["n_tasks"].to_dict() == {
        ("posterior", 1.0): 6,
        ("posterior", 2.0): 5,
        ("lda", 1.0): 5,
        ("lda", 2.0): 5,
    }
    assert table["n_left_out"].to_dict() == {
        ("posterior", 1.0): 0,
        ("posterior", 2.0): 0,
        ("lda", 1.0): 1,
        ("lda", 2.0): 0,
    }


# -- intervals ------------------------------------------------------------------------------------


def test_few_participants_have_no_interval_however_many_tasks():
    rows = two_methods(groups=["a", "a", "b", "b", "c", "d"])
    for table in (summarise(rows), compare(rows, "lda"), labels_saved(rows)):
        assert table[["low", "high"]].isna().all(axis=None)


# -- differences ----------------------------------------------------------------------------------


def test_differences_by_hand():
    table = compare(two_methods(), against="lda")
    assert table["method"].tolist() == ["posterior"] * 2
    assert table[["n_tasks", "n_left_out"]].to_numpy().tolist() == [[6, 0], [6, 0]]
    assert table[["wins", "ties", "losses"]].to_numpy().tolist() == [[4, 1, 1], [5, 1, 0]]
    first, second = table.iloc[0], table.iloc[1]
    # 0.1, 0, -0.1, 0.2, 0.05, 0.15
    assert first["mean_difference"] == pytest.approx(0.4 / 6)
    assert first["median_difference"] == pytest.approx(0.075)
    assert first["max_difference"] == pytest.approx(0.2)
    assert first["min_difference"] == pytest.approx(-0.1)
    assert first["low"] < 0.4 / 6 < first["high"]
    # Ranks 2.5, -2.5, 5, 1, 4. Of 32 signs those with no minus, or one on 1 or on either 2.5, have
    # a sum of 12.5 or more; at the second budget there is no minus.
    assert first["p_value"] == pytest.approx(4 / 32)
    assert second["p_value"] == pytest.approx(1 / 32)
    assert table["p_holm"].tolist() == pytest.approx([4 / 32, 2 / 32])


def test_pairs_that_lack_one_are_left_out_and_counted():
    rows = failed(two_methods(), task="p3", method="lda", budget=1.0)
    rows = failed(rows, task="p1", budget=1.0)
    rows = rows[(rows["task"] != "p0") | (rows["method"] == "lda") | (rows["budget"] == 2.0)]
    table = compare(rows, "lda")
    assert table["n_tasks"].tolist() == [3, 6]
    assert table["n_left_out"].tolist() == [3, 0]
    assert table["max_difference"].iloc[0] == pytest.approx(0.15)


def test_no_difference_anywhere_is_no_evidence():
    rows = two_methods()
    same = rows[rows["method"] == "lda"].assign(method="twin")
    # Another order of the same splits gives sums that differ by rounding.
    same["balanced_accuracy"] += 1e-16
    line = compare(pd.concat([rows, same]), "lda", ["twin"]).iloc[0]
    assert line[["wins", "ties", "losses"]].tolist() == [0, 6, 0]
    assert line["p_value"] == 1.0
    assert line["mean_difference"] == pytest.approx(0.0)


def test_one_task_has_a_difference_but_no_test():
    rows = two_methods()
    table = compare(rows[rows["task"] == "p0"], "lda")
    assert table["mean_difference"].tolist() == pytest.approx([0.1, 0.1])
    assert table[["p_value", "p_holm", "low", "high"]].isna().all(axis=None)


def test_methods_may_be_chosen():
    rows = pd.concat([two_methods(), two_methods().assign(method="lda2")])
    assert set(compare(rows, "lda")["method"]) == {"posterior", "lda2"}
    assert set(compare(rows, "lda", ["lda2"])["method"]) == {"lda2"}
    alone = compare(rows[rows["method"] == "lda"], "lda")
    assert alone.empty
    assert list(alone.columns) == list(compare(rows, "lda").columns)


# -- labels saved ---------------------------------------------------------------------------------


def curves(own, other, budgets=(1, 2, 4, 8), n_tasks=6):
    """Rows of tasks that differ a little around two learning curves."""
    offsets = np.linspace(-0.05, 0.05, n_tasks)
    both = {"posterior": own, "lda": other}
    return rows_of(
        {
            name: {b: mean + offsets for b, mean in zip(budgets, curve, strict=True)}
            for name, curve in both.items()
        }
    )


def test_labels_saved_by_hand():
    table = labels_saved(curves([0.60, 0.65, 0.70, 0.75], [0.55, 0.60, 0.675, 0.80]))
    assert table["budget"].tolist() == [1, 2, 4, 8]
    assert table["n_labelled"].tolist() == [2, 4, 8, 16]
    assert table["accuracy"].tolist() == pytest.approx([0.55, 0.60, 0.675, 0.80])
    assert table["bound"].tolist() == ["<=", "<=", "=", ">"]
    half_way = np.sqrt(4.0 * 8.0)
    assert table["needed"].tolist() == pytest.approx([2.0, 2.0, half_way, 16.0])
    assert table["saved"].tolist() == pytest.approx([0.0, 2.0, 8.0 - half_way, 0.0])
    assert table["share_saved"].tolist() == pytest.approx([0.0, 0.5, 1.0 - half_way / 8.0, 0.0])
    # All participants have the same gaps, so every resample says the same.
    assert table["low"].tolist() == pytest.approx([0.0, 2.0, 8.0 - half_way, np.nan], nan_ok=True)
    assert table["high"].tolist() == pytest.approx(
        [np.nan, np.nan, 8.0 - half_way, 0.0], nan_ok=True
    )


def test_a_curve_that_wobbles_is_made_monotone_first():
    table = labels_saved(curves([0.60, 0.72, 0.68, 0.80], [0.65, 0.70, 0.72, 0.75]))
    # 0.60, 0.70, 0.70, 0.80: 0.70 is first reached at four windows.
    expected = [2.0 * 2.0**0.5, 4.0, 8.0 * 2.0**0.2, 8.0 * 2.0**0.5]
    assert table["needed"].tolist() == pytest.approx(expected)
    assert (table["bound"] == "=").all()


def test_budgets_of_as_many_windows_are_one_point():
    rows = rows_of(
        {
            "posterior": {0.05: [0.6] * 5, 0.1: [0.7] * 5, 8: [0.75] * 5},
            "lda": {0.1: [0.64] * 5, 8: [0.70] * 5},
        },
        n_labelled={0.05: 4, 0.1: 4, 8: 16},
    )
    table = labels_saved(rows)
    assert table["bound"].tolist() == ["<=", "="]
    assert table["needed"].tolist() == pytest.approx([4.0, 8.0])


def test_one_budget_is_a_bound_either_way():
    better = labels_saved(curves([0.7], [0.6], budgets=[2]))
    assert better[["needed", "bound", "saved"]].iloc[0].tolist() == [4.0, "<=", 0.0]
    worse = labels_saved(curves([0.6], [0.7], budgets=[2]))
    assert worse[["needed", "bound", "saved"]].iloc[0].tolist() == [4.0, ">", 0.0]
    equal = labels_saved(curves([0.6], [0.6], budgets=[2]))
    assert equal["bound"].item() == "<="


def test_tasks_without_all_budgets_are_left_out_of_both_curves():
    rows = curves([0.60, 0.65, 0.70, 0.75], [0.55, 0.60, 0.675, 0.80], n_tasks=8)
    cut = failed(rows, task="p7", method="lda", budget=8.0)
    cut = cut[(cut["task"] != "p6") | (cut["budget"] < 8)]
    table = labels_saved(cut)
    assert (table["n_tasks"] == 6).all()
    assert (table["n_left_out"] == 2).all()
    pd.testing.assert_frame_equal(
        table.drop(columns="n_left_out"),
        labels_saved(rows[~rows["task"].isin(["p6", "p7"])]).drop(columns="n_left_out"),
    )


def test_a_budget_at_which_a_method_always_fails_is_none_of_its_budgets():
    rows = curves([0.60, 0.65, 0.70, 0.75], [0.55, 0.60, 0.675, 0.80])
    table = labels_saved(failed(rows, method="lda", budget=1.0))
    assert table["budget"].tolist() == [2, 4, 8]
    assert table["needed"].tolist() == pytest.approx([2.0, np.sqrt(32.0), 16.0])
    other = labels_saved(failed(rows, method="posterior", budget=1.0))
    assert other["bound"].tolist() == ["<=", "<=", "=", ">"]
    assert other["needed"].tolist() == pytest.approx([4.0, 4.0, np.sqrt(32.0), 16.0])


def test_nothing_in_common_saves_nothing():
    rows = two_methods()
    apart = rows[(rows["method"] == "lda") == rows["task"].isin(["p0", "p1"])]
    for one in (apart, failed(rows, method="posterior")):
        table = labels_saved(one)
        assert len(table) == 2
        assert table[["accuracy", "needed", "saved", "low", "high"]].isna().all(axis=None)
        assert (table["bound"] == "").all()
    assert labels_saved(failed(rows, method="lda")).empty


# -- forecasts ------------------------------------------------------------------------------------


def test_reliability_by_hand():
    rows = rows_of({"posterior": {1: [0.60, 0.61, 0.90]}}, n_splits=1, forecast=0.0)
    rows["expected_accuracy"] = [0.71, 0.74, 1.0]
    rows = pd.concat([rows, rows.iloc[:1].assign(expected_accuracy=0.3)])
    rows = pd.concat([rows, rows.assign(method="lda", expected_accuracy=np.nan)])
    table = reliability(rows)
    assert (table["method"] == "posterior").all()
    assert table["at_least"].tolist() == pytest.approx([0.0, 0.70, 0.95])
    assert table["below"].tolist() == pytest.approx([0.5, 0.75, 1.0])
    assert table["forecast"].tolist() == pytest.approx([0.3, 0.725, 1.0])
    assert table["outcome"].tolist() == pytest.approx([0.6, 0.605, 0.9])
    assert table["n_splits"].tolist() == [1, 2, 1]
    assert table["n_groups"].tolist() == [1, 2, 1]
    # Two participants: half their difference.
    assert table["standard_error"].tolist() == pytest.approx([np.nan, 0.005, np.nan], nan_ok=True)


def test_every_forecast_is_in_the_bin_that_holds_it():
    forecasts = np.concatenate([np.linspace(0.0, 1.0, 1001), [0.5, 0.55, 0.95, 1.0]])
    rows = rows_of({"posterior": {1: np.full(forecasts.size, 0.7)}}, n_splits=1)
    rows["expected_accuracy"] = forecasts
    table = reliability(rows)
    assert table["n_splits"].sum() == forecasts.size
    assert len(table) == 11
    assert (table["at_least"] <= table["forecast"]).all()
    assert (table["forecast"] < table["below"]).all()


def test_forecast_errors_by_hand():
    rows = rows_of({"posterior": {1: [0.6, 0.7, 0.8]}, "lda": {1: [0.6, 0.7, 0.8]}})
    rows.loc[rows["method"] == "lda", "expected_accuracy"] = np.nan
    rows.loc[rows["task"] == "p0", "expected_accuracy"] -= 0.15
    # The outcome of a split without a forecast counts no more than its forecast.
    rows = pd.concat([rows, rows.iloc[:1].assign(balanced_accuracy=0.0, expected_accuracy=np.nan)])
    # Ends that one of six outcomes does not lie between.
    rows["lower_68"], rows["upper_68"] = 0.595, 0.85
    line = forecast_errors(rows).iloc[0]
    names = ["method", "budget", "n_labelled", "n_tasks", "n_splits"]
    assert line[names].tolist() == ["posterior", 1, 2, 3, 6]
    assert line["forecast"] == pytest.approx(2.25 / 3)
    assert line["outcome"] == pytest.approx(0.7)
    assert line["bias"] == pytest.approx(0.05)
    assert line["rms"] == pytest.approx(np.sqrt((0.05**2 + 2 * 0.1**2) / 3))
    outcome = np.array([0.59, 0.61, 0.69, 0.71, 0.79, 0.81])
    forecast = outcome + np.repeat([-0.05, 0.1, 0.1], 2)
    assert line["correlation"] == pytest.approx(np.corrcoef(forecast, outcome)[0, 1])
    assert line["coverage_68"] == pytest.approx(5 / 6)
    assert np.isnan(line["coverage_90"])
    # The others' means are 0.75, 0.7 and 0.65.
    off = np.repeat([0.75, 0.7, 0.65], 2) - outcome
    assert line["constant_rms"] == pytest.approx(np.sqrt((off**2).mean()))


def test_single_calibrations_are_not_averaged_away():
    rows = rows_of({"posterior": {1: [0.6, 0.8]}}, n_splits=2, groups=["a", "a"], forecast=0.0)
    rows.loc[rows["split"] == 0, "expected_accuracy"] += 0.2
    rows.loc[rows["split"] == 1, "expected_accuracy"] -= 0.2
    line = forecast_errors(rows).iloc[0]
    assert line["bias"] == pytest.approx(0.0)
    assert line["rms"] == pytest.approx(0.2)
    # Nobody else is there to quote.
    assert np.isnan(line["constant_rms"])


def test_forecasts_without_spread_have_no_correlation():
    rows = rows_of({"posterior": {1: [0.7, 0.7, 0.7], 2: [0.6, 0.7, 0.8]}}, n_splits=1)
    assert forecast_errors(rows)["correlation"].isna().tolist() == [True, False]
    assert forecast_errors(rows[rows["task"] != "p2"])["correlation"].isna().all()


# -- odd rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[rows["task"] == "p0"],
        lambda rows: rows[rows["split"] == 0],
        lambda rows: rows[rows["budget"] == 1],
        lambda rows: failed(rows, task="p0"),
        lambda rows: failed(rows, method="lda"),
        lambda rows: failed(rows, split=0),
        lambda rows: rows[(rows["task"] != "p0") | (rows["method"] != "lda")],
        lambda rows: rows.assign(group="one for all"),
        lambda rows: rows.assign(budget=rows["budget"] / 20.0),
        lambda rows: rows.assign(alpha=None),
        lambda rows: rows.astype(dict.fromkeys(("task", "group", "method"), "category")),
    ],
)
def test_tables_survive(table, change):
    rows = change(two_methods())
    before = rows.copy()
    assert isinstance(table(rows), pd.DataFrame)
    pd.testing.assert_frame_equal(rows, before)


@pytest.mark.parametrize("table", TABLES)
def test_tables_of_nothing_but_failures(table):
    rows = two_methods()
    rows[SCORES] = np.nan
    numbers = table(rows).select_dtypes(np.inexact)
    known = ["budget", "n_labelled"]
    assert numbers.drop(columns=known, errors="ignore").isna().all(axis=None)


@pytest.mark.parametrize("table", TABLES)
def test_merged_studies_are_one(table):
    rows = two_methods()
    first, second = rows[rows["method"] == "posterior"], rows[rows["method"] == "lda"]
    # Each with an index of its own, and one of them back from a file.
    names = {"p0": "0", "p1": "1", "p2": "2", "p3": "3", "p4": "4", "p5": "5"}
    first, second = (part.replace({"task": names, "group": names}) for part in (first, second))
    read = second.assign(task=second["task"].astype(int), group=second["group"].astype(int))
    merged = pd.concat([first.reset_index(drop=True), read.reset_index(drop=True)])
    renamed = rows.replace({"task": names, "group": names})
    pd.testing.assert_frame_equal(table(merged), table(renamed))


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda rows: compare(rows), "target"),
        (lambda rows: compare(rows, "lda", ["paper"]), "paper"),
        (lambda rows: compare(rows, "lda", ["lda"]), "different"),
        (lambda rows: labels_saved(rows, "convex"), "convex"),
        (lambda rows: labels_saved(rows, "lda"), "different"),
        (lambda rows: summarise(rows.drop(columns="group")), "group"),
        (lambda rows: summarise(rows[:0]), "rows"),
    ],
)
def test_tables_refuse(call, word):
    with pytest.raises(ValueError, match=word):
        call(two_methods())


# -- verdict --------------------------------------------------------------------------------------


def lead(rows, accuracy=0.75, share=0.8):
    """The first sentence of a verdict."""
    return re.match(r"(.*?\.)(?= |$)", verdict(rows, accuracy, share))[1]


def test_the_answer_says_how_many_windows():
    # Of six people within 0.05 of the mean, 80 % are within 0.03 below it.
    rows = curves([0.70, 0.75, 0.80], [0.60, 0.65, 0.75], budgets=(1, 2, 4))
    for accuracy, share, said in [
        (0.65, 0.8, "80 % of people reach an accuracy of 0.65 within 1 window of each class"),
        (0.72, 0.8, "80 % of people reach an accuracy of 0.72 after 2 windows of each class"),
        (0.8, 0.9, "only 50 % of people reach an accuracy of 0.8 after 4 windows of each class"),
        (0.9, 0.8, "nobody reaches an accuracy of 0.9 after 4 windows of each class"),
    ]:
        assert lead(rows, accuracy, share) == f"With the posterior blend, {said}."
    assert "scikit-learn's LDA, it takes 4 windows" in verdict(rows, 0.72)
    assert "6 of 6 never reach it; 80 % of them reach 0.77" in verdict(rows, 0.9)
    from_none = curves([0.70, 0.75], [0.60, 0.65], budgets=(0, 2))
    assert lead(from_none, 0.65).endswith("reach an accuracy of 0.65 before the first label.")


def test_a_method_that_needs_fewer_windows_is_named_unless_it_sees_test_windows():
    rows = curves([0.70, 0.75, 0.80], [0.60, 0.65, 0.75], budgets=(1, 2, 4))
    better = curves([0.80, 0.84, 0.86], [0.60, 0.65, 0.75], budgets=(1, 2, 4))
    better = better[better["method"] == "posterior"]
    rows = pd.concat([rows, better.assign(method="lda-pooled")])
    said = "The pooled LDA takes 80 % of people there within 1 window of each class, the fewest"
    assert said in verdict(rows, 0.75)
    seeing = {"method": {"lda-pooled": "hierarchical-unlabelled"}}
    assert "the fewest" not in verdict(rows.replace(seeing), 0.75)


@pytest.mark.parametrize("n_people", [7, 200, 2000])
def test_people_who_nearly_suffice_are_not_rounded_to_the_goal(n_people):
    values = np.full(n_people, 0.5)
    values[: int(0.799 * n_people)] = 0.9
    rows = rows_of({"posterior": {2: values}}, n_splits=1)
    [percent] = re.findall(r"only ([\d.]+) % of people", lead(rows))
    assert float(percent) < 80.0
    assert float(percent) == pytest.approx(100 * int(0.799 * n_people) / n_people, abs=0.5)


def test_whom_a_verdict_is_about():
    rows = two_methods()
    lda = rows[rows["method"] == "lda"]
    ours, mine, seeing = (
        lda.assign(method=name) for name in ("convex", "mine", "posterior-unlabelled")
    )
    for parts, about, note in [
        ([lda, mine], "mine has a mean", ""),
        ([lda, mine, ours], "the convex blend has a mean", ""),
        ([lda, seeing], "the posterior blend (unlabelled) has", "sees unlabelled test windows"),
        ([lda, seeing, mine], "mine has a mean", ""),
    ]:
        words = verdict(pd.concat(parts))
        assert about in words
        assert (note or "Note that") in words or not note
        assert ("Note that" in words) == bool(note)


def test_a_verdict_on_failures():
    rows = two_methods()
    rows[SCORES] = np.nan
    assert "all 48 splits failed" in verdict(rows)
    assert "posterior" not in verdict(failed(two_methods(), method="posterior"))

"""Tables of a study from rows made by hand, its odd cases, and what is refused."""

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest

from crossfade.study import CalibrationStudy, StudyResult, verdict
from crossfade.study._budgets import number_of
from crossfade.study._methods import METHODS
from crossfade.study._resampling import SCORES, limits, mean_limits, resampled_means
from crossfade.study.statistics import (
    by_task,
    compare,
    forecast_errors,
    holm,
    labels_saved,
    p_text,
    reliability,
    summarise,
)


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


def test_a_summary_has_the_means_of_the_study(make_tasks):
    study = CalibrationStudy(
        make_tasks(6), methods=["target", "posterior"], budgets=[2, 0.1], n_splits=3, random_state=0
    )
    result = study.run()
    both = summarise(result.rows).merge(result.summary(), on=["method", "budget"])
    assert len(both) == 4
    np.testing.assert_allclose(both["mean"], both["mean_balanced_accuracy"])
    np.testing.assert_allclose(both["median"], both["median_balanced_accuracy"])
    assert (both["n_tasks_x"] == both["n_tasks_y"]).all()
    wins = compare(result.rows).merge(result.summary(), on=["method", "budget"])
    assert len(wins) == 2
    assert (wins["wins_x"] == wins["wins_y"]).all()


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


def test_the_summary_of_a_study_has_the_wins_of_the_comparison():
    rows = two_methods().replace({"method": {"lda": "target"}})
    # A sum in another order is no win.
    rows["balanced_accuracy"] += np.where(rows["method"] == "target", 0.0, 1e-15)
    table = StudyResult(rows).summary().set_index(["method", "budget"])
    assert table.loc["posterior", "wins"].tolist() == compare(rows)["wins"].tolist()
    assert table.loc["target", "wins"].tolist() == [0, 0]


# -- intervals ------------------------------------------------------------------------------------


def test_participants_are_drawn_with_all_of_their_tasks():
    values = np.array([[0.0], [0.0], [0.0], [1.0]])
    draws = resampled_means(values, np.array(["a", "a", "a", "b"]), 0)
    assert draws.shape == (2000, 1)
    # Two of a, one of each, two of b.
    assert set(draws.ravel().tolist()) == {0.0, 0.25, 1.0}
    assert abs((draws == 0.25).mean() - 0.5) < 4.5 * 0.5 / np.sqrt(2000)


def test_intervals_repeat_and_do_not_depend_on_other_rows():
    rows = two_methods()
    alone = summarise(rows[(rows["method"] == "lda") & (rows["budget"] == 2)])
    shuffled = summarise(rows.sample(frac=1.0, random_state=1))
    together = summarise(rows)
    for other in (alone, shuffled, together):
        line = other[(other["method"] == "lda") & (other["budget"] == 2)]
        assert line["low"].item() == pytest.approx(together["low"].iloc[-1])
        assert line["high"].item() == pytest.approx(together["high"].iloc[-1])
    another = summarise(rows, random_state=1)
    assert (another["low"] != together["low"]).any()


def test_few_participants_have_no_interval_however_many_tasks():
    rows = two_methods(groups=["a", "a", "b", "b", "c", "d"])
    for table in (summarise(rows), compare(rows, "lda"), labels_saved(rows)):
        assert table[["low", "high"]].isna().all(axis=None)
    assert np.isnan(mean_limits(np.empty(0), np.empty(0), 0)).all()


def test_limits_widen_to_students():
    draws = np.arange(2000.0)
    # Phi(-sqrt(14 / 13) 2.1604) = 0.01248, and Phi(-sqrt(36 / 35) 2.0301) = 0.01975.
    assert [float(limit) for limit in limits(draws, 14)] == [24.0, 1975.0]
    assert [float(limit) for limit in limits(draws, 36)] == [39.0, 1960.0]
    assert [float(limit) for limit in limits(draws, 100_000)] == [49.0, 1950.0]


def test_many_participants_are_drawn_in_parts(monkeypatch):
    values = np.random.default_rng(0).random((40, 3))
    whole = resampled_means(values, np.arange(40), 0)
    monkeypatch.setattr("crossfade.study._resampling._LARGEST", 1000)
    parts = resampled_means(values, np.arange(40), 0)
    assert parts.shape == whole.shape
    error = values.std(0) / np.sqrt(40)
    np.testing.assert_array_less(
        np.abs(parts.mean(0) - values.mean(0)), 4.5 * error / np.sqrt(2000)
    )
    np.testing.assert_allclose(parts.std(0), whole.std(0), rtol=0.1)


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


def test_holm_by_hand():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1 is 0.02, 0.03, 0.06, 0.04.
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.6, 0.5]), [1.0, 1.0])
    np.testing.assert_allclose(holm([0.02]), [0.02])
    np.testing.assert_allclose(holm([0.01, np.nan, 0.02]), [0.02, np.nan, 0.02])
    np.testing.assert_allclose(holm([0.01, 0.01]), [0.02, 0.02])
    assert holm([]).size == 0
    assert np.isnan(holm([np.nan])).all()


@pytest.mark.parametrize("p", [[-0.1], [1.1, np.nan], [[0.1]], 0.1, [np.inf]])
def test_holm_refuses(p):
    with pytest.raises(ValueError, match=r"^p must "):
        holm(p)


# -- labels saved ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "text", "equation"),
    [
        (1e-9, "< 0.0001", "< 0.0001"),
        (0.00123, "0.0012", "= 0.0012"),
        (0.2345, "0.23", "= 0.23"),
        (1.0, "1.00", "= 1.00"),
        (np.nan, "–", "–"),
    ],
)
def test_p_values_as_people_read_them(p, text, equation):
    assert p_text(p) == text
    assert p_text(p, "= ") == equation


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
    assert len(reliability(rows, n_bins=1)) == 2


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
    assert line["absolute_error"] == pytest.approx(0.25 / 3)
    assert line["rms"] == pytest.approx(np.sqrt((0.05**2 + 2 * 0.1**2) / 3))
    outcome = np.array([0.59, 0.61, 0.69, 0.71, 0.79, 0.81])
    forecast = outcome + np.repeat([-0.05, 0.1, 0.1], 2)
    assert line["correlation"] == pytest.approx(np.corrcoef(forecast, outcome)[0, 1])
    assert line["coverage_68"] == pytest.approx(5 / 6)
    assert np.isnan(line["coverage_90"])
    # The others' means are 0.75, 0.7 and 0.65.
    off = np.repeat([0.75, 0.7, 0.65], 2) - outcome
    assert line["constant_rms"] == pytest.approx(np.sqrt((off**2).mean()))
    assert line["constant_absolute_error"] == pytest.approx(np.abs(off).mean())


def test_single_calibrations_are_not_averaged_away():
    rows = rows_of({"posterior": {1: [0.6, 0.8]}}, n_splits=2, groups=["a", "a"], forecast=0.0)
    rows.loc[rows["split"] == 0, "expected_accuracy"] += 0.2
    rows.loc[rows["split"] == 1, "expected_accuracy"] -= 0.2
    line = forecast_errors(rows).iloc[0]
    assert line["bias"] == pytest.approx(0.0)
    assert line["rms"] == line["absolute_error"] == pytest.approx(0.2)
    # Nobody else is there to quote.
    assert np.isnan(line["constant_rms"])


def test_forecasts_without_spread_have_no_correlation():
    rows = rows_of({"posterior": {1: [0.7, 0.7, 0.7], 2: [0.6, 0.7, 0.8]}}, n_splits=1)
    assert forecast_errors(rows)["correlation"].isna().tolist() == [True, False]
    assert forecast_errors(rows[rows["task"] != "p2"])["correlation"].isna().all()


def test_methods_without_forecasts_have_empty_tables():
    rows = two_methods().assign(expected_accuracy=np.nan)
    for table in (reliability, forecast_errors):
        empty = table(rows)
        assert empty.empty
        assert list(empty.columns) == list(table(two_methods()).columns)


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


def test_methods_that_saw_other_budgets_are_compared_where_both_were():
    rows = two_methods()
    rows = rows[(rows["method"] == "posterior") | (rows["budget"] == 2)]
    table = compare(rows, "lda")
    assert table["budget"].tolist() == [2]
    assert table["n_tasks"].tolist() == [6]
    assert table["n_left_out"].tolist() == [0]
    assert table["p_holm"].tolist() == pytest.approx([1 / 32])
    assert labels_saved(rows)["budget"].tolist() == [2]


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rows: compare(rows), "no method 'target'. They have 'posterior', 'lda'"),
        (lambda rows: compare(rows, "lda", ["paper"]), "no method 'paper'. They have 'posterior'"),
        (lambda rows: compare(rows, "lda", ["lda"]), "with itself; got 'lda' twice"),
        (lambda rows: compare(rows, "lda", "posterior"), "a list of names; got 'posterior'"),
        (lambda rows: labels_saved(rows, "convex"), "no method 'convex'. They have"),
        (lambda rows: labels_saved(rows, against="target"), "no method 'target'"),
        (lambda rows: labels_saved(rows, "lda"), "with itself; got 'lda' twice"),
        (lambda rows: reliability(rows, 0), "n_bins must be a whole number of at least 1; got 0"),
    ],
)
def test_tables_refuse(call, message):
    with pytest.raises(ValueError, match=message):
        call(two_methods())


@pytest.mark.parametrize("table", [*TABLES, verdict])
def test_rows_are_checked(table):
    rows = two_methods()
    with pytest.raises(ValueError, match=r"; group, brier not found among split, balanced_accur"):
        table(rows.drop(columns=["brier", "group"]))
    with pytest.raises(ValueError, match="rows is empty"):
        table(rows[:0])
    with pytest.raises(ValueError, match="Column 'task' of rows has gaps"):
        table(rows.assign(task=rows["task"].where(rows["task"] != "p0")))
    with pytest.raises(TypeError, match=r"rows must be a data frame, as result\.rows is; got list"):
        table([1, 2])


# -- verdict --------------------------------------------------------------------------------------


def details(rows):
    """A verdict but for its first sentences, on how many windows a new person needs."""
    return re.search(r"With(out a| \d).* labelled window.*", verdict(rows))[0]


def lead(rows, accuracy=0.75, share=0.8):
    """The first sentence of a verdict."""
    return re.match(r"(.*?\.)(?= |$)", verdict(rows, accuracy, share))[1]


def test_the_lead_says_how_many_windows():
    # Of six people within 0.05 of the mean, 80 % are within 0.03 below it.
    rows = curves([0.70, 0.75, 0.80], [0.60, 0.65, 0.75], budgets=(1, 2, 4))
    blend = "With the posterior blend, 80 % of people reach an accuracy of"
    assert lead(rows, 0.65) == f"{blend} 0.65 within 1 window of each class."
    assert " Fewer windows were not tried. " in verdict(rows, 0.65)
    assert lead(rows, 0.72) == f"{blend} 0.72 after 2 windows of each class."
    assert lead(rows, 0.75) == f"{blend} 0.75 after 4 windows of each class."
    blend = "With the posterior blend, only 50 % of people reach an accuracy of"
    assert lead(rows, 0.8, 0.9) == f"{blend} 0.8 after 4 windows of each class."
    blend = "With the posterior blend, nobody reaches an accuracy of"
    assert lead(rows, 0.9) == f"{blend} 0.9 after 4 windows of each class."
    assert " With scikit-learn's LDA, it takes 4 windows of each class. " in verdict(rows, 0.72)
    assert " With scikit-learn's LDA, only 50 % reach it, not 80 %. " in verdict(rows, 0.75)
    assert (
        " With scikit-learn's LDA, 0 % reach it. No number of windows tried takes 80 % of people "
        "there; 6 of 6 never reach it. What 80 % of them reach after 4 windows of each class is "
        "0.77. "
    ) in verdict(rows, 0.9)
    assert "the fewest here" not in verdict(rows, 0.72)
    one = rows[rows["budget"] == 1]
    assert lead(one, 0.9) == f"{blend} 0.9 after 1 window of each class."


def test_who_needs_fewer_windows_is_named():
    rows = curves([0.70, 0.75, 0.80], [0.60, 0.65, 0.75], budgets=(1, 2, 4))
    better = curves([0.80, 0.84, 0.86], [0.60, 0.65, 0.75], budgets=(1, 2, 4))
    better = better[better["method"] == "posterior"]
    said = (
        "The pooled LDA takes 80 % of people there after 1 window of each class, the fewest here."
    )
    rows = pd.concat([rows, better.assign(method="lda-pooled")])
    assert said in verdict(rows, 0.75)
    # What knows the answers is no advice.
    oracle = rows.replace({"method": {"lda-pooled": "oracle"}})
    assert "the fewest here" not in verdict(oracle, 0.75)


def test_the_lead_begins_at_no_label():
    rows = curves([0.70, 0.75], [0.60, 0.65], budgets=(0, 2))
    words = "reach an accuracy of 0.65 before the first label."
    assert lead(rows, 0.65) == f"With the posterior blend, 80 % of people {words}"
    assert " With scikit-learn's LDA, no label is needed, either. " in verdict(rows, 0.55)
    none = rows[rows["budget"] == 0]
    assert lead(none, 0.9) == (
        "With the posterior blend, nobody reaches an accuracy of 0.9 without a label."
    )
    assert "inf" not in verdict(rows)
    equal = verdict(curves([0.7, 0.75], [0.7, 0.75], budgets=(0, 2)))
    assert equal.endswith("scikit-learn's LDA reaches the same accuracy with no label.")


@pytest.mark.parametrize("n_people", [7, 200, 2000])
def test_people_who_nearly_suffice_are_not_rounded_to_the_goal(n_people):
    values = np.full(n_people, 0.5)
    values[: int(0.799 * n_people)] = 0.9
    rows = rows_of({"posterior": {2: values}}, n_splits=1)
    [percent] = re.findall(r"only ([\d.]+) % of people", lead(rows))
    assert float(percent) < 80.0
    assert float(percent) == pytest.approx(100 * int(0.799 * n_people) / n_people, abs=0.5)
    few = rows_of({"posterior": {2: np.r_[0.9, np.full(n_people - 1, 0.5)]}}, n_splits=1)
    assert float(re.findall(r"only ([\d.]+) % of people", lead(few))[0]) > 0.0


@pytest.mark.parametrize(("step", "said"), [(2.5, "20 s"), (30.0, "4 min"), (np.nan, None)])
def test_interval_and_time_follow_the_lead(step, said):
    rows = curves([0.70, 0.75, 0.80], [0.60, 0.65, 0.75], budgets=(1, 2, 4))
    times = {} if np.isnan(step) else {"p0": step}
    line = StudyResult(rows, n_classes=2).needed(0.75, 0.8).iloc[0]
    high = f"to {line['high']:g}" if np.isfinite(line["high"]) else "or more"
    taking = "" if said is None else f" That takes {said}."
    text = verdict(StudyResult(rows, n_classes=2, window_seconds=times), 0.75)
    assert (
        f" after 4 windows of each class.{taking} The 95 % interval is {line['low']:g} {high} "
        "windows of each class. "
    ) in text


#: Names of methods that have one, of all lengths, and names that a user may think of.
NAMES = [*METHODS, "mine", "My fine-tuned net, version 2", "a " * 40, "x" * 200]
UNEQUAL = number_of((6, 3))


@pytest.mark.parametrize(
    "budgets", [(0,), (0, 1, 16), (0.05, 0.5), (2, 0.1), (2, UNEQUAL), (UNEQUAL,)]
)
def test_the_lead_has_at_most_twenty_words(budgets):
    """Whatever the method, the budgets, the accuracy to reach, and who reaches it or failed."""
    windows = {one: 100 * one if 0 < one < 1 else 2 * int(one) for one in budgets}
    rng = np.random.default_rng(0)
    cases = product((0.55, 0.8, 0.999), (0.0, 0.4, 1.0), ((0.5, 0.001), (0.75123, 0.8), (1.0, 1.0)))
    for (high, lost, goal), name in zip(cases, reversed(NAMES), strict=False):
        own = {one: rng.uniform(0.5, high, 9) for one in budgets}
        both = {name: own, "lda": {one: rng.uniform(0.4, high, 9) for one in budgets}}
        rows = rows_of(both, n_labelled=windows)
        gone = (rows["method"] == name) & (rng.random(len(rows)) < lost)
        rows.loc[gone, SCORES] = np.nan
        first = lead(StudyResult(rows, n_classes=2, window_seconds={"p1": 12345.678}), *goal)
        assert len(first.split()) <= 20, first


def test_budgets_of_unequal_numbers_have_an_accuracy_for_a_lead():
    rows = curves([0.7], [0.6], budgets=[number_of((24, 2))])
    assert "people" not in verdict(rows)
    first, second, _ = re.split(r"(?<=\.) (?=[A-Z])", verdict(rows))
    assert first == (
        "With 26 labelled windows (24+2), the posterior blend has a mean balanced accuracy of "
        "0.700."
    )
    line = summarise(rows).iloc[0]
    assert second == f"Its 95 % interval is {line['low']:.3f} to {line['high']:.3f}."
    with pytest.raises(ValueError, match="accuracy must be a number above 0"):
        verdict(curves([0.7], [0.6], budgets=[2]), 1.5)


def test_a_verdict_in_full():
    rows = curves([0.70, 0.75, 0.80], [0.60, 0.65, 0.75], budgets=(1, 2, 4))
    line, needed = summarise(rows).iloc[0], StudyResult(rows, n_classes=2).needed(0.75, 0.8).iloc[0]
    high = f"to {needed['high']:g}" if np.isfinite(needed["high"]) else "or more"
    assert verdict(rows) == (
        "With the posterior blend, 80 % of people reach an accuracy of 0.75 after 4 windows of "
        f"each class. The 95 % interval is {needed['low']:g} {high} windows of each class. "
        "With scikit-learn's LDA, only 50 % reach it, not 80 %. "
        "With 2 labelled windows (1 of each class), the posterior blend has a mean balanced "
        f"accuracy of 0.700 (95 % interval {line['low']:.3f} to {line['high']:.3f}). "
        "That is 0.100 more than scikit-learn's LDA: better for 6 of 6 participants (one-sided "
        "p = 0.047 after Holm's correction for 3 budgets). "
        "scikit-learn's LDA needs 2.8 times as many windows for the same accuracy."
    )


def test_a_verdict_on_proportions_that_come_to_unlike_numbers():
    rows = two_methods().replace({"budget": {1.0: 0.05, 2.0: 0.1}})
    rows.loc[rows["task"] == "p0", "n_labelled"] += 2
    assert details(rows).startswith(
        "With 2 to 4 labelled windows (5 % of the smallest class, from each class), "
    )


@pytest.mark.parametrize(
    ("own", "other", "words", "end"),
    [
        (
            [0.6, 0.7],
            [0.65, 0.7],
            "0.050 less than",
            "LDA reaches the same accuracy with 2 windows or fewer.",
        ),
        (
            [0.6, 0.7],
            [0.6, 0.7],
            "as much as",
            "LDA reaches the same accuracy with 2 windows or fewer.",
        ),
        ([0.7, 0.7], [0.6, 0.65], "0.100 more than", "LDA does not reach that with 4 windows."),
    ],
)
def test_a_verdict_says_less_and_equal_too(own, other, words, end):
    sentence = verdict(curves(own, other, budgets=(1, 2)))
    assert f" That is {words} scikit-learn's LDA: better for " in sentence
    assert sentence.endswith(end)
    assert ("equal for 6" in sentence) == (words == "as much as")


def test_a_verdict_on_one_budget_says_nothing_about_labels():
    sentence = verdict(curves([0.7], [0.6], budgets=[2]))
    assert sentence.endswith(": better for 6 of 6 participants (one-sided p = 0.016).")


def test_a_verdict_on_one_task():
    rows = two_methods(n_splits=1)
    assert details(rows[rows["task"] == "p0"]) == (
        "With 2 labelled windows (1 of each class), the posterior blend has a mean balanced "
        "accuracy of "
        "0.700. That is 0.100 more than scikit-learn's LDA: better for 1 of 1 participant. "
        "scikit-learn's LDA needs 2.0 times as many windows for the same accuracy."
    )


def test_a_verdict_on_one_method():
    rows = two_methods()
    sentence = verdict(rows[rows["method"] == "lda"])
    assert "scikit-learn's LDA has a mean balanced accuracy of 0.675 (" in sentence
    assert sentence.endswith("), over 6 participants.")
    oracle = rows[rows["method"] == "lda"].assign(method="oracle")
    assert verdict(oracle).endswith("), over 6 participants.")
    assert ". Note that the oracle alpha knows the answers. " in verdict(oracle)
    both = verdict(pd.concat([rows[rows["method"] == "posterior"], oracle]))
    assert "oracle" not in both
    assert both.endswith("), over 6 participants.")


def test_a_verdict_prefers_ours_and_the_usual():
    rows = two_methods()
    lda = rows[rows["method"] == "lda"]
    mine = pd.concat([lda, lda.assign(method="mine"), lda.assign(method="target")])
    assert "), mine has a mean" in verdict(mine)
    assert "as much as scikit-learn's LDA:" in verdict(mine)
    ours = pd.concat([mine[mine["method"] != "lda"], lda.assign(method="convex")])
    assert "), the convex blend has a mean" in verdict(ours)
    assert "as much as the person alone:" in verdict(ours)
    assert verdict(ours).endswith(
        "The person alone reaches the same accuracy with 2 windows or fewer."
    )


def test_a_verdict_is_about_tasks_that_both_have():
    rows = failed(two_methods(), task="p3", method="lda", budget=1.0)
    sentence = verdict(rows)
    assert "accuracy of 0.710 (" in sentence
    assert "0.040 more than scikit-learn's LDA" in sentence
    assert ": better for 3 of 5 participants and equal for 1 (1 left out; one-sided p" in sentence


def test_a_verdict_counts_labels_on_its_own_tasks_only():
    rows = curves([0.70, 0.75, 0.80], [0.60, 0.65, 0.75], budgets=(1, 2, 4))
    assert "times as many" in verdict(rows)
    assert "times as many" not in verdict(failed(rows, task="p3", method="lda", budget=4.0))


def test_a_verdict_on_sessions_calls_them_tasks():
    sentence = verdict(two_methods(groups=["a", "a", "b", "c", "d", "e"]))
    assert ": better for 4 of 6 tasks and equal for 1 (" in sentence


def test_a_verdict_where_methods_share_nothing():
    rows = two_methods()
    apart = rows[(rows["method"] == "lda") == (rows["budget"] == 1)]
    sentence = details(apart)
    assert sentence.startswith("With 4 labelled windows (2 of each class), the posterior blend")
    assert sentence.endswith(", over 6 participants.")


def test_a_verdict_where_a_method_failed_at_the_smallest_budget():
    sentence = details(failed(two_methods(), method="lda", budget=1.0))
    assert sentence.startswith("With 4 labelled windows (2 of each class), the posterior blend")
    assert "scikit-learn's LDA: better for 5 of 6" in sentence
    assert sentence.endswith(". scikit-learn's LDA failed with fewer windows.")
    assert "with fewer" not in verdict(two_methods())


def test_a_verdict_where_the_smallest_budget_has_no_task_of_both():
    rows = two_methods()
    for place in range(6):
        rows = failed(rows, method=("lda", "posterior")[place % 2], budget=1.0, task=f"p{place}")
    sentence = details(rows)
    assert sentence.startswith("With 4 labelled windows (2 of each class), the posterior blend")
    assert sentence.endswith("no task on which both have an accuracy.")


def test_a_verdict_prefers_what_sees_no_test_window():
    rows = two_methods()
    lda = rows[rows["method"] == "lda"]
    seeing, mine = (lda.assign(method=name) for name in ("posterior-unlabelled", "mine"))
    both = verdict(pd.concat([lda, seeing]))
    assert "), the posterior blend (unlabelled) has a mean" in both
    assert ". Note that the posterior blend (unlabelled) sees unlabelled test windows. " in both
    assert "), mine has a mean" in verdict(pd.concat([lda, seeing, mine]))


def test_a_verdict_on_failures():
    rows = two_methods()
    rows[SCORES] = np.nan
    assert verdict(rows) == "No method has an accuracy: all 48 splits failed."
    assert "posterior" not in verdict(failed(two_methods(), method="posterior"))


def test_a_verdict_on_a_chronological_study(make_tasks):
    study = CalibrationStudy(
        make_tasks(6), methods=["lda", "posterior"], budgets=[1, 3], splits="chronological"
    )
    rows = study.run().rows
    sentence = details(rows)
    assert sentence.startswith(
        "With 6 labelled windows (3 of each class), the posterior blend has a mean"
    )
    assert " scikit-learn's LDA: better for " in sentence

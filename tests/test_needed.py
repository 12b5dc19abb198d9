"""How many windows a new person needs: by hand, by people, and where it is never reached."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from crossfade import load_mental_math
from crossfade.study import CalibrationStudy, StudyResult


def rows_of(curves, *, method="posterior", groups=None, n_labelled=None):
    """Rows of one split: {budget: [accuracy of each task]}."""
    lines = [
        (
            f"t{place}",
            f"t{place}" if groups is None else groups[place],
            method,
            float(budget),
            value,
        )
        for budget, values in curves.items()
        for place, value in enumerate(values)
    ]
    rows = pd.DataFrame(lines, columns=["task", "group", "method", "budget", "balanced_accuracy"])
    rows["n_labelled"] = [(n_labelled or {}).get(one, 2 * one) for one in rows["budget"]]
    rows["split"] = 0
    for name in ("accuracy", "roc_auc", "brier", "alpha", "expected_accuracy", "seconds"):
        rows[name] = 0.5
    return rows


def line_of(curves, accuracy=0.75, share=0.8, **options):
    needed = {name: options.pop(name) for name in ("flat",) if name in options}
    known = {name: options.pop(name) for name in ("window_seconds",) if name in options}
    [line] = (
        StudyResult(rows_of(curves, **options), **known)
        .needed(accuracy, share, **needed)
        .to_dict("records")
    )
    return line


FIVE = {
    1: [0.6, 0.62, 0.64, 0.66, 0.9],
    2: [0.7, 0.72, 0.74, 0.76, 0.9],
    4: [0.7, 0.80, 0.82, 0.84, 0.9],
}


def test_windows_by_hand():
    # Four of five reach 0.62, 0.72 and 0.80; 0.76 is half-way from 2 to 4 in the logarithm.
    line = line_of(FIVE, accuracy=0.76)
    assert line["windows"] == np.ceil(2 * np.sqrt(2)) == 3
    assert line["total"] == 6
    assert line["bound"] == "="
    assert line["reason"] == ""
    assert line["n_people"] == 5
    assert line["n_left_out"] == 0
    assert line["reached"] == pytest.approx(0.8)
    assert (line["n_never"], line["never"]) == (1, "t0")
    assert np.isnan(line["seconds"])
    assert line["low"] <= line["windows"] <= line["high"]


@pytest.mark.parametrize(
    ("accuracy", "share", "windows"),
    [(0.72, 0.8, 2), (0.8, 0.8, 4), (0.74, 0.6, 2), (0.66, 0.4, 1)],
)
def test_what_is_reached_at_a_budget_needs_that_budget(accuracy, share, windows):
    assert line_of(FIVE, accuracy=accuracy, share=share)["windows"] == windows


def test_what_is_never_reached_is_infinite_and_says_why():
    line = line_of(FIVE, accuracy=0.85)
    assert line["windows"] == line["total"] == np.inf
    assert line["bound"] == ">"
    assert line["reason"].startswith("20% of people reach it with 8 labelled windows")
    assert (line["n_never"], line["never"]) == (4, "t0, t1, t2, t3")
    assert line["high"] == np.inf


def test_what_the_smallest_budget_reaches_is_a_bound():
    line = line_of(FIVE, accuracy=0.6)
    assert (line["windows"], line["bound"]) == (1, "<=")
    assert line["reason"].startswith("2 labelled windows are enough")
    # Nothing is less than no label.
    line = line_of({0: [0.8] * 5, 1: [0.8] * 5}, accuracy=0.75)
    assert (line["windows"], line["bound"], line["reason"]) == (0, "=", "")


def test_curves_start_at_no_label():
    line = line_of({0: [0.6] * 5, 4: [0.8] * 5}, accuracy=0.7)
    # Half-way from one window to eight.
    assert line["total"] == 2 * np.ceil(np.sqrt(8) / 2) == 4


def test_who_has_reached_it_has_reached_it():
    """With more labelled windows there are fewer to test on: a curve may fall by chance."""
    line = line_of({1: [0.8] * 5, 2: [0.6] * 5, 4: [0.7] * 5}, accuracy=0.75)
    assert line["windows"] == 1
    assert line_of({1: [0.7] * 5, 2: [0.6] * 5}, accuracy=0.75)["windows"] == np.inf


def test_people_count_once():
    groups = ["a", "b", "c", "d", "d", "d", "d"]
    curves = {1: [0.8, 0.8, 0.8, 0.5, 0.5, 0.5, 0.5], 2: [0.8] * 7}
    assert line_of(curves, share=0.75, groups=groups)["windows"] == 1
    assert line_of(curves, share=0.75)["windows"] == 2
    assert line_of(curves, groups=groups)["n_people"] == 4
    # The mean of a person's sessions is what reaches it, or not.
    line = line_of({1: [0.7, 0.9], 2: [0.7, 0.9]}, accuracy=0.78, share=1.0, groups=["a", "a"])
    assert (line["windows"], line["n_never"]) == (1, 0)


def test_where_a_curve_is_flat():
    curves = {1: [0.6] * 5, 2: [0.7] * 5, 4: [0.706] * 5, 8: [0.709] * 5}
    assert line_of(curves)["flat_from"] == 2
    assert line_of(curves, flat=0.005)["flat_from"] == 4
    assert np.isnan(line_of(curves, flat=0.001)["flat_from"])
    assert line_of(curves, flat=0.5)["flat_from"] == 1
    assert np.isnan(line_of({1: [0.6] * 5, 2: [0.7] * 5})["flat_from"])


def test_proportions_count_by_their_windows():
    n_labelled = {0.1: 4, 0.2: 8}
    rows = rows_of({0.1: [0.6] * 5, 0.2: [0.8] * 5}, n_labelled=n_labelled)
    [line] = StudyResult(rows, n_classes=2).needed(0.7).to_dict("records")
    assert (line["windows"], line["total"]) == (3, 6)
    # Nothing tells how many classes there are.
    [line] = StudyResult(rows).needed(0.7).to_dict("records")
    assert line["total"] == np.ceil(np.sqrt(32))
    assert np.isnan(line["windows"])


def test_unequal_numbers_are_left_out():
    unequal = 13.24022
    curves = {2: [0.6] * 5, unequal: [0.9] * 5, 4: [0.7] * 5}
    assert line_of(curves, n_labelled={unequal: 26})["windows"] == np.inf
    with pytest.raises(ValueError, match=r"No budget .* as many windows of each class"):
        line_of({unequal: [0.9] * 5}, n_labelled={unequal: 26})


def test_people_with_few_windows_are_left_out_or_the_budget_is():
    rows = rows_of(FIVE)
    few = rows[(rows["budget"] < 4) | (rows["task"] != "t4")]
    [line] = StudyResult(few).needed(0.72).to_dict("records")
    assert (line["n_people"], line["n_left_out"]) == (4, 1)
    few = rows[(rows["budget"] < 4) | rows["task"].isin(["t0", "t1"])]
    [line] = StudyResult(few).needed(0.8).to_dict("records")
    assert (line["n_people"], line["windows"]) == (5, np.inf)
    assert "with 4 labelled windows" in line["reason"]
    nobody = rows.assign(balanced_accuracy=np.nan)
    [line] = StudyResult(nobody).needed().to_dict("records")
    assert np.isnan(line["windows"])
    assert line["reason"] == "no person has an accuracy at all budgets"


def test_the_interval_is_over_people():
    rng = np.random.default_rng(0)
    skill = rng.normal(0.0, 0.05, 40)
    curves = {n: 0.6 + 0.05 * np.log2(n) + skill for n in (1, 2, 4, 8, 16, 32)}
    line = line_of(curves, accuracy=0.7, share=0.5)
    assert line["low"] <= line["windows"] <= line["high"] < np.inf
    again = line_of(curves, accuracy=0.7, share=0.5)
    assert (again["low"], again["high"]) == (line["low"], line["high"])
    # The true answer, over many people, is 4.
    hits = 0
    for seed in range(40):
        skill = np.random.default_rng(seed).normal(0.0, 0.05, 25)
        curves = {n: 0.6 + 0.05 * np.log2(n) + skill for n in (1, 2, 4, 8, 16, 32)}
        line = line_of(curves, accuracy=0.7, share=0.5)
        hits += line["low"] <= 4.0 <= line["high"]
    assert hits >= 36
    few = line_of({1: [0.6] * 4, 2: [0.8] * 4})
    assert np.isnan(few["low"])
    assert np.isnan(few["high"])


def test_seconds_follow_from_the_starts_of_windows(make_tasks):
    tasks = [
        # Each class is a recording of its own, and starts at zero.
        replace(task, start=np.tile(np.arange(10) * 2.5, 2))
        for task in make_tasks(6)
    ]
    study = CalibrationStudy(
        tasks, methods=["posterior"], budgets=[1, 4], n_splits=3, random_state=0
    )
    result = study.run()
    assert set(result.window_seconds.values()) == {2.5}
    assert result.n_classes == 2
    [line] = result.needed(0.55, 0.5).to_dict("records")
    assert line["seconds"] == 2.5 * line["total"]


def test_a_study_in_a_folder_and_merged_studies_know_as_much(make_tasks, tmp_path):
    tasks = [replace(task, start=np.arange(20) * 3.0) for task in make_tasks(6)]

    def study(methods, budgets=(1, 2, 4)):
        return CalibrationStudy(tasks, methods=methods, budgets=budgets, n_splits=3, random_state=0)

    result = study(["target", "posterior"]).run(folder=tmp_path)
    wanted = result.needed(0.6)
    pd.testing.assert_frame_equal(StudyResult.load(tmp_path).needed(0.6), wanted)
    merged = study(["target"]).run() + study(["posterior"]).run()
    pd.testing.assert_frame_equal(merged.needed(0.6), wanted)
    parts = study(["target", "posterior"], [1, 4]).run() + study(["target", "posterior"], [2]).run()
    pd.testing.assert_frame_equal(parts.needed(0.6), wanted)


@pytest.mark.parametrize(
    "options", [{"accuracy": 75}, {"share": 1.2}, {"share": 0}, {"share": "most"}]
)
def test_needed_refuses(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        StudyResult(rows_of(FIVE)).needed(**options)


def test_mental_math():
    study = CalibrationStudy(
        load_mental_math(),
        methods=["lda-pooled", "posterior", "lda"],
        budgets=[0, 2, 4, 8, 16],
        n_splits=5,
        random_state=0,
        forecasts=False,
    )
    table = study.run().needed(0.65, 0.6).set_index("method")
    assert table.loc["lda-pooled", "windows"] == np.inf
    assert table.loc["posterior", "windows"] <= table.loc["lda", "windows"]
    assert table.loc["posterior", "seconds"] == 2.5 * table.loc["posterior", "total"]
    assert (table["n_people"] == 36).all()

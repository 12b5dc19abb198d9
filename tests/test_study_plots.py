"""Figures of a study, tested on the tables that they draw."""

import re
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb
from matplotlib.lines import Line2D
from scipy.stats import wilcoxon
from sklearn.linear_model import LogisticRegression

from crossfade import plots
from crossfade.plots._methods import looks, method_of
from crossfade.plots._style import told_by
from crossfade.simulate import simulate_tasks
from crossfade.study import CalibrationStudy, StudyResult
from crossfade.study._budgets import budget_text, number_of
from crossfade.study._methods import METHODS
from crossfade.study.statistics import (
    by_task,
    compare,
    forecast_errors,
    holm,
    labels_saved,
    reliability,
    summarise,
)


@pytest.fixture(scope="module")
def rows():
    tasks = simulate_tasks(7, n_features=4, random_state=0)
    study = CalibrationStudy(
        tasks,
        methods=["target", "average-source", "paper", "oracle", "convex", "posterior"],
        budgets=[0.05, 0.1, 0.5],
        n_splits=4,
        random_state=0,
    )
    return study.run().rows


@pytest.fixture(scope="module")
def counted():
    """Windows as budgets, and every method of this package, and one of the user's."""
    tasks = simulate_tasks(6, n_features=4, random_state=1)
    plain = [name for name, one in METHODS.items() if one.package is None]
    methods = [*plain, ("mine", LogisticRegression())]
    study = CalibrationStudy(tasks, methods=methods, budgets=[2, 6], n_splits=3, random_state=0)
    return study.run().rows


class Tip(NamedTuple):
    axes: object
    place: object


def artists(figure, gid):
    return figure.findobj(lambda artist: artist.get_gid() == gid)


def tips(figure):
    """Texts of all tips, with their panel and, for points, their place."""
    found = figure.findobj(lambda artist: str(artist.get_gid()).startswith("tip:"))
    points = {}
    for artist in found:
        texts = told_by(artist.get_gid())[1]
        at = artist.get_xydata() if isinstance(artist, Line2D) else [None] * len(texts)
        points |= {text: Tip(artist.axes, place) for text, place in zip(texts, at, strict=True)}
    return points


def label(name):
    return method_of(name).label


def labels(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def ticks(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


# -- accuracy against budget ----------------------------------------------------------------------


def test_accuracies_are_those_of_the_summary(rows):
    figure = plots.accuracy_by_budget(rows)
    table = summarise(rows)
    for method, part in table.groupby("method"):
        line, bars = (
            next(one for one in artists(figure, f"series:{method}") if hasattr(one, name))
            for name in ("get_ydata", "get_segments")
        )
        np.testing.assert_array_equal(line.get_ydata(), part["mean"])
        # Lines stand beside each other, at less than half the distance of two budgets.
        np.testing.assert_allclose(np.log(line.get_xdata() / part["budget"]), 0.0, atol=0.18)
        ends = np.array(bars.get_segments())[:, :, 1]
        np.testing.assert_array_equal(ends, part[["low", "high"]])
    names = [label(name) for name in dict.fromkeys(rows["method"])]
    assert labels(figure) == [*names, "sees test windows"]
    assert ticks(figure.axes[0].xaxis) == ["5 %", "10 %", "50 %"]
    one = table[(table["method"] == "posterior") & (table["budget"] == 0.1)].iloc[0]
    text = f"Posterior blend, 10 %: {one['mean']:.3f} ({one['low']:.2f} to {one['high']:.2f})"
    assert tips(figure)[text].place[1] == one["mean"]


def test_budgets_in_windows_are_told_by_their_windows(counted):
    figure = plots.accuracy_by_budget(counted)
    assert ticks(figure.axes[0].xaxis) == ["2", "6"]
    assert figure.axes[0].get_xlabel() == "labelled windows of each class"
    assert any(text.startswith("mine, 6 of each class: 0.") for text in tips(figure))


@pytest.fixture(scope="module")
def from_zero():
    """From no label on, and with unequal numbers."""
    tasks = simulate_tasks(6, n_features=4, random_state=1)
    methods = ["hierarchical", "posterior", "target"]
    budgets = [0, 1, 4, (12, 2)]
    study = CalibrationStudy(tasks, methods=methods, budgets=budgets, n_splits=5, random_state=0)
    return study.run().rows


def test_curves_begin_at_no_label(from_zero):
    figure = plots.accuracy_by_budget(from_zero)
    [ax] = figure.axes
    assert ticks(ax.xaxis) == ["0", "1", "4", "12+2"]
    at = ax.get_xticks()
    assert (np.diff(at) > 0.0).all()
    curves = {
        name: next(one for one in artists(figure, f"series:{name}") if hasattr(one, "get_ydata"))
        for name in ("hierarchical", "target")
    }
    # Three budgets are on the curve; the target alone has none without a label.
    assert len(curves["hierarchical"].get_xdata()) == 3
    assert len(curves["target"].get_xdata()) == 2
    drawn = tips(figure)
    [beside] = [one for text, one in drawn.items() if text.startswith("Person alone, 12+2: 0.")]
    np.testing.assert_allclose(np.log(beside.place[0] / at[-1]), 0.0, atol=0.3)
    [first] = [
        one for text, one in drawn.items() if text.startswith("Hierarchical blend, no label: 0.")
    ]
    np.testing.assert_allclose(np.log(first.place[0] / at[0]), 0.0, atol=0.3)


def test_shares_begin_at_no_label_too(rows):
    zero = rows[rows["budget"] == 0.05].assign(budget=0.0, n_labelled=0)
    figure = plots.accuracy_by_budget(pd.concat([zero, rows]))
    assert ticks(figure.axes[0].xaxis) == ["0", "5 %", "10 %", "50 %"]


@pytest.mark.parametrize("budget", [0.0, number_of((12, 2))])
def test_one_budget_of_a_kind_of_its_own_can_be_drawn(from_zero, budget):
    one = from_zero[from_zero["budget"] == budget]
    [ax] = plots.accuracy_by_budget(one).axes
    assert ticks(ax.xaxis) == ["12+2" if budget else "0"]


# -- windows needed -------------------------------------------------------------------------------


def test_people_who_reach_an_accuracy_are_counted(from_zero):
    left, _ = plots.needed(from_zero, 0.7, 0.5).axes
    means = by_task(from_zero)
    drawn = {text: one for text, one in tips(left.figure).items() if one.axes is left}
    assert len(drawn) == 4 + 4 + 3
    for (method, budget), part in means.groupby(["method", "budget"]):
        reached = int((part["balanced_accuracy"] >= 0.7).sum())
        text = f"{label(method)}, {budget_text(budget)}: {reached} of 6 people"
        assert drawn[text].place[1] == pytest.approx(100.0 * reached / 6)
    [line] = artists(left.figure, "share")
    assert set(line.get_ydata()) == {50.0}


def test_windows_needed_are_those_of_the_table(from_zero):
    accuracy = 0.7
    table = StudyResult(from_zero, n_classes=2).needed(accuracy, 0.5).set_index("method")
    _, right = plots.needed(from_zero, accuracy, 0.5).axes
    assert ticks(right.yaxis) == [label(name) for name in table.index]
    for row, (name, line) in enumerate(table.iterrows()):
        [(text, tip)] = [
            (text, one)
            for text, one in tips(right.figure).items()
            if one.axes is right and text.startswith(f"{label(name)}: ")
        ]
        assert tip.place[1] == row
        if np.isinf(line["windows"]):
            assert text.endswith("more than 4 windows")
            assert tip.place[0] > 4
        else:
            assert text.endswith(f"{line['windows']:g} windows")
            assert tip.place[0] == (line["windows"] or 0.5)


def test_what_is_not_reached_is_more_than_was_tried(from_zero):
    rows = from_zero.copy()
    good = (rows["method"] == "hierarchical") & (rows["budget"] > 0)
    rows["balanced_accuracy"] = np.where(good, 0.9, 0.6)
    _, right = plots.needed(rows, 0.8, 0.5).axes
    assert ticks(right.xaxis)[-1] == "more"
    said = {text for text, one in tips(right.figure).items() if one.axes is right}
    more = {f"{label(name)}: more than 4 windows" for name in ("posterior", "target")}
    assert said == {"Hierarchical blend: 1 windows", *more}


def test_where_nobody_gets_there_no_panel_is_left_empty(from_zero):
    figure = plots.needed(from_zero, 1.0, 1.0)
    [left] = figure.axes
    assert left.get_title() == "people who reach 1"
    # The other panel would have named the methods.
    assert labels(figure) == [label(name) for name in dict.fromkeys(from_zero["method"])]
    assert labels(plots.needed(from_zero, 1.0, 1.0, legend=False)) == []
    assert labels(plots.needed(from_zero, 0.5, 0.1)) == []


def test_shares_need_windows_of_all_classes(rows):
    table = StudyResult(rows, n_classes=2).needed(0.7, 0.8).set_index("method")
    _, right = plots.needed(rows, 0.7, 0.8, n_classes=2).axes
    assert right.get_xlabel() == "labelled windows"
    said = [text for text, one in tips(right.figure).items() if one.axes is right]
    for name, line in table.iterrows():
        if np.isfinite(line["total"]):
            assert any(
                text.startswith(f"{label(name)}: ") and f"{line['total']:g} windows" in text
                for text in said
            )


def test_needed_windows_of_nobody_are_refused(rows):
    gone = rows.assign(balanced_accuracy=np.nan)
    with pytest.raises(ValueError, match="nothing to draw"):
        plots.needed(gone)
    with pytest.raises(ValueError, match="accuracy must be a number above 0"):
        plots.needed(rows, 0.0)


def test_shares_and_windows_together_are_told_by_their_windows(rows, counted):
    both = pd.concat([rows, counted[counted["method"] == "target"]])
    figure = plots.accuracy_by_budget(both)
    shown = summarise(both)["n_labelled"].unique()
    wanted = [f"{count:g}" for count in sorted(shown)]
    assert {count for count in ticks(figure.axes[0].xaxis) if count} <= set(wanted)
    assert figure.axes[0].get_xlabel() == "labelled windows"


@pytest.mark.parametrize("budgets", [range(1, 41), (1, 2, 4, 8, 16, 32), (2, 3, 5, 8, 13, 21)])
def test_labels_of_budgets_are_left_out_only_where_they_would_touch(rows, budgets):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    many = pd.concat(
        [rows[rows["budget"] == 0.1].assign(budget=k, n_labelled=2 * k) for k in budgets]
    )
    figure = plots.accuracy_by_budget(many, legend=False)
    FigureCanvasAgg(figure).draw()
    shown = [one for one in figure.axes[0].xaxis.get_ticklabels() if one.get_text()]
    boxes = [one.get_window_extent() for one in shown]
    assert shown[0].get_text() == f"{budgets[0]}"
    assert shown[-1].get_text() == f"{budgets[-1]}"
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))
    assert len(shown) >= min(len(budgets), 8)


def test_accuracies_have_a_line_at_chance(rows):
    for chance in (0.5, 0.25):
        [line] = artists(plots.accuracy_by_budget(rows, chance=chance), "chance")
        assert set(line.get_ydata()) == {chance}


def test_a_line_that_ends_at_chance_does_not_run_through_its_name(rows):
    for end, side in ((0.5, "left"), (0.8, "right")):
        level = rows.assign(balanced_accuracy=np.where(rows["budget"] == 0.5, end, 0.9))
        [ax] = plots.accuracy_by_budget(level).axes
        [name] = [text for text in ax.texts if text.get_text() == "chance"]
        assert name.get_horizontalalignment() == side


def test_the_legend_can_be_left_to_the_page(rows):
    assert labels(plots.accuracy_by_budget(rows, legend=False)) == []


def test_methods_that_see_test_windows_are_dashed(rows):
    figure = plots.accuracy_by_budget(rows)
    for name in dict.fromkeys(rows["method"]):
        line = next(one for one in artists(figure, f"series:{name}") if hasattr(one, "get_ydata"))
        assert line.get_linestyle() == ("--" if name == "oracle" else "-")
    fair = plots.accuracy_by_budget(rows[rows["method"] != "oracle"])
    assert "sees test windows" not in labels(fair)


def test_methods_can_be_told_apart():
    many = [*METHODS, *(f"mine {place}" for place in range(12))]
    assert len(set(looks(many).values())) == len(many)
    assert looks(many)["posterior"] == looks(["posterior"])["posterior"]


# -- alphas ---------------------------------------------------------------------------------------


def test_alphas_are_the_means_of_the_tasks(rows):
    figure = plots.alphas(rows)
    means = by_task(rows)
    expected = means[means["method"].isin(["paper", "oracle"])]
    drawn = tips(figure)
    assert len(drawn) == len(expected) == 2 * 3 * 7
    for one in expected.itertuples():
        text = f"{label(one.method)}, {100 * one.budget:g} %, {one.task}: {one.alpha:.2f}"
        x, y = drawn[text].place
        assert x == one.alpha
        assert drawn[text].axes is figure.axes[[0.05, 0.1, 0.5].index(one.budget)]
        assert round(y) == ["paper", "oracle"].index(one.method)
    assert ticks(figure.axes[0].yaxis) == [label("paper"), label("oracle")]
    assert [ax.get_title() for ax in figure.axes] == ["5 %", "10 %", "50 %"]
    medians = [line.get_segments()[0][0, 0] for line in artists(figure, "series:paper")]
    paper = expected[expected["method"] == "paper"].groupby("budget")["alpha"].median()
    np.testing.assert_allclose(medians, paper)


def test_before_the_first_label_alphas_say_nothing(from_zero):
    figure = plots.alphas(from_zero, ["hierarchical", "posterior"])
    assert [ax.get_title() for ax in figure.axes] == ["1", "4", "12+2"]
    alone = from_zero[from_zero["budget"] == 0]
    assert [ax.get_title() for ax in plots.alphas(alone, ["posterior"]).axes] == ["0"]


def test_alphas_need_methods_that_have_some(counted):
    with pytest.raises(ValueError, match=r"no alphas of a method 'lda'.*'target'"):
        plots.alphas(counted, ["lda"])
    with pytest.raises(ValueError, match="list of names; got 'paper'"):
        plots.alphas(counted, "paper")


# -- differences ----------------------------------------------------------------------------------


def test_every_method_has_a_look_of_its_own_whoever_else_is_there():
    alone = {name: looks([name])[name] for name in METHODS}
    crowded = looks(["mine", "yours", *METHODS])
    assert {name: crowded[name] for name in METHODS} == alone


def test_one_task_is_one_task(rows):
    drawn = tips(plots.differences(rows, "posterior", "target"))
    ends = {text.rpartition(", ")[2] for text in drawn}
    assert "1 task" in ends
    assert "1 tasks" not in ends


def test_differences_count_every_task_on_its_side_of_zero(rows):
    figure = plots.differences(rows, "posterior", "target")
    wide = by_task(rows).pivot(index="task", columns=["budget", "method"])["balanced_accuracy"]
    assert len(figure.axes) == 3
    ps = []
    for ax, budget in zip(figure.axes, [0.05, 0.1, 0.5], strict=True):
        difference = (wide[budget]["posterior"] - wide[budget]["target"]).to_numpy()
        bars = ax.patches
        above = sum(bar.get_height() for bar in bars if bar.get_x() > -1e-9)
        below = sum(bar.get_height() for bar in bars if bar.get_x() <= -1e-9)
        assert (above, below) == ((difference >= 0).sum(), (difference < 0).sum())
        for bar in bars:
            within = difference - bar.get_x()
            assert bar.get_height() == ((within >= 0) & (within < bar.get_width())).sum()
        different = difference.round(12)[difference.round(12) != 0.0]
        ps.append(wilcoxon(different, alternative="greater").pvalue)
    for ax, budget, p in zip(figure.axes, [0.05, 0.1, 0.5], holm(ps), strict=True):
        difference = (wide[budget]["posterior"] - wide[budget]["target"]).to_numpy()
        title = ax.get_title().split("\n")
        assert title[:2] == [f"{100 * budget:g} %", f"better for {(difference > 0).sum()} of 7"]
        shown = title[2].removeprefix("p = ").removesuffix(" (Holm)")
        assert float(shown) == pytest.approx(p, rel=0.06)
        assert title[2].endswith(" (Holm)")


def test_one_test_has_nothing_to_be_corrected_for(rows):
    one = rows[rows["budget"] == 0.05]
    assert "Holm" not in plots.differences(one, "posterior", "target").axes[0].get_title()


def test_differences_of_either_sign_have_the_colour_of_the_better_method(rows):
    figure = plots.differences(rows, "target", "oracle")
    shades = looks(["target", "oracle"])
    for bar in figure.axes[0].patches:
        better = "target" if bar.get_x() > -1e-9 else "oracle"
        assert to_hex(bar.get_facecolor()) == shades[better].colour


def test_methods_of_one_marker_are_told_apart_by_colour():
    for one, other in combinations(METHODS.values(), 2):
        if one.marker == other.marker:
            apart = np.linalg.norm(np.subtract(to_rgb(one.colour), to_rgb(other.colour)))
            assert apart > 0.3, (one.name, other.name)


def test_no_difference_at_all_can_be_drawn(rows):
    same = rows[rows["method"] == "target"]
    both = pd.concat([same, same.assign(method="twin")])
    figure = plots.differences(both, "twin", "target")
    assert figure.axes[0].get_title() == "5 %\nbetter for 0 of 7\np = 1.00 (Holm)"
    assert sum(bar.get_height() for bar in figure.axes[0].patches) == 7


def test_budgets_without_a_task_have_no_panel(rows):
    gone = rows.copy()
    gone.loc[(rows["method"] == "target") & (rows["budget"] == 0.1), "balanced_accuracy"] = np.nan
    titles = [ax.get_title() for ax in plots.differences(gone, "posterior", "target").axes]
    assert [title.split("\n")[0] for title in titles] == ["5 %", "50 %"]
    with pytest.raises(ValueError, match="no task has an accuracy of both"):
        plots.differences(gone[gone["budget"] == 0.1], "posterior", "target")


def test_panels_with_none_below_have_tick_labels(rows):
    many = pd.concat(
        [rows[rows["budget"] == 0.1].assign(budget=float(k), n_labelled=2 * k) for k in range(1, 7)]
    )
    axes = plots.differences(many, "posterior", "target").axes
    shown = [ax.xaxis.get_tick_params()["labelbottom"] for ax in axes]
    assert shown == [False, False, True, True, True, True]


def test_differences_need_methods_that_are_there(rows):
    with pytest.raises(ValueError, match="no method 'lda'"):
        plots.differences(rows, "posterior", "lda")


# -- labels saved ---------------------------------------------------------------------------------


def test_labels_saved_are_those_of_the_table(counted):
    table = labels_saved(counted)
    drawn = tips(plots.labels_saved(table))
    assert len(drawn) == 2 * len(table)
    for place, one in enumerate(table.itertuples()):
        windows = {"posterior": one.needed, "lda": one.n_labelled}
        for method, count in windows.items():
            [text] = [
                text
                for text in drawn
                if text.startswith(f"{label(method)}, {one.budget:g} of each class:")
            ]
            np.testing.assert_array_equal(drawn[text].place, [count, place])


def saved_table(bound, needed, low, high):
    numbers = {"n_labelled": 10.0, "accuracy": 0.7, "needed": needed, "low": low, "high": high}
    share = (10.0 - needed) / 10.0
    names = {"method": "posterior", "against": "lda", "budget": 0.1}
    return pd.DataFrame([names | numbers | {"bound": bound, "share_saved": share}])


@pytest.mark.parametrize(
    ("bound", "needed", "interval", "word", "said"),
    [
        ("=", 5.0, (2.0, 7.0), "50 %", "5 windows"),
        ("<=", 4.0, (3.0, np.nan), "≥ 60 %", "at most 4 windows"),
        ("<=", 10.0, (0.0, np.nan), "–", "at most 10 windows"),
        (">", 20.0, (np.nan, np.nan), "none", "more than 20 windows"),
        ("=", 15.0, (-9.0, -1.0), "none", "15 windows"),
    ],
)
def test_bounds_are_told_as_such(bound, needed, interval, word, said):
    figure = plots.labels_saved(saved_table(bound, needed, *interval))
    assert word in [text.get_text() for text in figure.axes[0].texts]
    assert any(text.startswith(f"Posterior blend, 10 %: {said}") for text in tips(figure))
    [line] = artists(figure, "series:posterior")
    low, high = interval
    ends = [needed if np.isnan(high) else 10 - high, needed if np.isnan(low) else 10 - low]
    np.testing.assert_array_equal(line.get_segments()[0][:, 0], ends)


def test_nothing_saved_because_nothing_was_measured_is_refused():
    with pytest.raises(ValueError, match="nothing to draw"):
        plots.labels_saved(saved_table("", 1.0, 0.0, 0.0).assign(accuracy=np.nan))


# -- forecasts ------------------------------------------------------------------------------------


def test_forecasts_of_single_calibrations_stand_against_their_outcomes(rows):
    figure = plots.forecast(rows)
    left, right = figure.axes
    curve, errors = reliability(rows), forecast_errors(rows)
    curve = curve[curve["n_groups"] >= 5]
    assert set(curve["method"]) == {"convex", "posterior"}
    drawn = tips(figure)
    for one in curve.itertuples():
        text = (
            f"{label(one.method)}, forecast {one.forecast:.3f}: {one.outcome:.3f} reached "
            f"({one.n_splits} calibrations of {one.n_groups} people)"
        )
        assert drawn[text].axes is left
        np.testing.assert_array_equal(drawn[text].place, [one.forecast, one.outcome])
    for one in errors.itertuples():
        called = f"{label(one.method)}, {100 * one.budget:g} %:"
        own, constant = (
            drawn[f"{called} {what}off by {value:.3f}"]
            for what, value in (("", one.rms), ("constant forecast ", one.constant_rms))
        )
        assert own.axes is constant.axes is right
        assert own.place[1] == one.rms
        assert constant.place[1] == one.constant_rms
    assert len(drawn) == len(curve) + 2 * len(errors)
    [line] = artists(figure, "constant")
    assert set(line.get_ydata()) == {errors["outcome"].mean()}
    kinds = ["forecast = outcome", "constant forecast"]
    assert labels(figure) == ["Convex blend", "Posterior blend", *kinds]
    assert labels(plots.forecast(rows, legend=False)) == []


def test_rows_without_forecasts_are_refused(rows):
    with pytest.raises(ValueError, match="no forecasts"):
        plots.forecast(rows[rows["method"] == "target"])


# -- effect of B ----------------------------------------------------------------------------------


# -- directions -----------------------------------------------------------------------------------


# -- all of them ----------------------------------------------------------------------------------

DRAWN = {
    "accuracy": plots.accuracy_by_budget,
    "alphas": plots.alphas,
    "differences": lambda rows: plots.differences(rows, "posterior", "target"),
    "saved": lambda rows: plots.labels_saved(labels_saved(rows, "posterior", "target")),
    "forecast": plots.forecast,
    "needed": plots.needed,
}


def odd(rows, case):
    if case == "one task":
        return rows[rows["task"] == rows["task"].iloc[0]]
    if case == "one budget":
        return rows[rows["budget"] == 0.1]
    if case == "one split":
        return rows[rows["split"] == 0]
    gaps = rows.copy()
    lost = (gaps["task"] == gaps["task"].iloc[0]) & (gaps["budget"] == 0.1)
    gaps.loc[lost, ["balanced_accuracy", "alpha", "expected_accuracy"]] = np.nan
    return gaps


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("case", ["one task", "one budget", "one split", "gaps"])
def test_odd_rows_can_be_drawn_and_saved(rows, name, case, tmp_path):
    given = odd(rows, case)
    before = given.copy()
    figure = DRAWN[name](given)
    figure.savefig(tmp_path / "figure.svg")
    assert tips(figure)
    pd.testing.assert_frame_equal(given, before)


@pytest.mark.parametrize("name", DRAWN)
def test_all_methods_and_windows_can_be_drawn(counted, name, tmp_path):
    DRAWN[name](counted).savefig(tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").stat().st_size > 1000


def test_ids_are_in_the_svg(rows, tmp_path):
    plots.accuracy_by_budget(rows).savefig(tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text()
    assert 'id="series:posterior"' in text
    assert re.search('id="tip:posterior.Posterior blend, 5 %: 0[.]', text)


def few(rows):
    """Rows of two methods at one budget."""
    wanted = rows["method"].isin(["posterior", "target"])
    return rows[wanted & (rows["budget"] == rows["budget"].max())]


def test_figures_are_as_wide_as_one_or_two_columns_of_a_journal(rows, counted):
    widths = {
        (name, kind): 25.4 * draw(given).get_figwidth()
        for name, draw in DRAWN.items()
        for kind, given in (("few", few(rows)), ("some", rows), ("many", counted))
        if (name, kind) != ("alphas", "few")
    }
    assert {round(width, 6) for width in widths.values()} == {88.0, 180.0}
    assert widths["accuracy", "some"] < widths["accuracy", "many"]
    assert widths["differences", "few"] < widths["differences", "some"]
    # On a page, without its legend, it has to fit on a phone.
    on_page = plots.accuracy_by_budget(counted, legend=False)
    assert round(25.4 * on_page.get_figwidth(), 6) == 88.0


def test_letters_of_a_figure_do_not_overlap(rows, counted, from_zero):
    """Titles, ticks, labels and legend of full and of empty figures, in boxes of their own."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    drawn = [(name, draw(counted)) for name, draw in DRAWN.items()]
    drawn += [(name, draw(few(rows))) for name, draw in DRAWN.items() if name != "alphas"]
    drawn += [("one alpha", plots.alphas(few(rows), ["posterior"]))]
    drawn += [("nobody", plots.needed(from_zero, 1.0, 1.0))]
    for name, figure in drawn:
        FigureCanvasAgg(figure).draw()
        sizes = {text.get_fontsize() for text in figure.findobj(Text) if text.get_text().strip()}
        assert min(sizes) >= 6.0
        inside = figure.bbox.padded(1.0)
        # Labels of ticks beyond the ends of an axis exist, but are not drawn.
        beyond = [
            label
            for ax in figure.axes
            for place, axis in enumerate((ax.xaxis, ax.yaxis))
            for label in axis.get_ticklabels()
            if not min(axis.get_view_interval()) <= label.get_position()[place]
            or not max(axis.get_view_interval()) >= label.get_position()[place]
        ]
        boxes = [
            (text.get_text(), text.get_window_extent())
            for text in figure.findobj(Text)
            if text.get_visible() and text.get_text().strip() and text not in beyond
        ]
        boxes = [(text, box) for text, box in boxes if box.width and inside.overlaps(box)]
        for place, (text, box) in enumerate(boxes):
            for other, second in boxes[:place]:
                assert not box.padded(-1.0).overlaps(second.padded(-1.0)), (name, text, other)


def test_compare_and_figure_agree(rows):
    [line] = compare(rows[rows["budget"] == 0.1], "target", ["posterior"]).itertuples()
    [ax] = plots.differences(rows[rows["budget"] == 0.1], "posterior", "target").axes
    assert f"better for {line.wins} of {line.n_tasks}" in ax.get_title()

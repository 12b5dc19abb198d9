"""Figures of a study, tested on the tables that they draw."""

import re
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.text import Text
from scipy.stats import wilcoxon
from sklearn.linear_model import LogisticRegression

from crossfade import plots
from crossfade.plots import looks, method_of, told_by
from crossfade.simulate import simulate_tasks
from crossfade.study import METHODS, CalibrationStudy, StudyResult, budget_text
from crossfade.study.statistics import (
    by_task,
    compare,
    forecast_errors,
    holm,
    reliability,
    summarise,
)


def studied(methods, budgets, n_splits, seed):
    tasks = simulate_tasks(6 + (seed == 0), n_features=4, random_state=seed)
    study = CalibrationStudy(
        tasks, methods=methods, budgets=budgets, n_splits=n_splits, random_state=0
    )
    return study.run().rows


@pytest.fixture(scope="module")
def rows():
    methods = ["target", "average-source", "paper", "posterior-unlabelled", "convex", "posterior"]
    return studied(methods, [0.05, 0.1, 0.5], 4, 0)


@pytest.fixture(scope="module")
def counted():
    """Windows as budgets, and every method of this package, and one of the user's."""
    return studied([*METHODS, ("mine", LogisticRegression())], [2, 6], 3, 1)


@pytest.fixture(scope="module")
def from_zero():
    """From no label on, and with unequal numbers."""
    return studied(["hierarchical", "posterior", "target"], [0, 1, 4, (12, 2)], 5, 1)


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


def line_of(figure, method):
    return next(one for one in artists(figure, f"series:{method}") if hasattr(one, "get_ydata"))


def label(name):
    return method_of(name).label


def labels(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def ticks(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


# -- accuracy against budget ----------------------------------------------------------------------


def test_accuracies_are_those_of_the_summary(rows):
    figure = plots.accuracy_by_budget(rows, chance=0.25)
    table = summarise(rows)
    for method, part in table.groupby("method"):
        line = line_of(figure, method)
        [bars] = [one for one in artists(figure, f"series:{method}") if line is not one][:1]
        np.testing.assert_array_equal(line.get_ydata(), part["mean"])
        # Lines stand beside each other, at less than half the distance of two budgets.
        np.testing.assert_allclose(np.log(line.get_xdata() / part["budget"]), 0.0, atol=0.18)
        ends = np.array(bars.get_segments())[:, :, 1]
        np.testing.assert_array_equal(ends, part[["low", "high"]])
        assert line.get_linestyle() == ("--" if method == "posterior-unlabelled" else "-")
    names = [label(name) for name in dict.fromkeys(rows["method"])]
    assert labels(figure) == [*names, "sees test windows"]
    assert labels(plots.accuracy_by_budget(rows, legend=False)) == []
    assert ticks(figure.axes[0].xaxis) == ["5 %", "10 %", "50 %"]
    one = table[(table["method"] == "posterior") & (table["budget"] == 0.1)].iloc[0]
    text = f"Posterior blend, 10 %: {one['mean']:.3f} ({one['low']:.2f} to {one['high']:.2f})"
    assert tips(figure)[text].place[1] == one["mean"]
    [chance] = artists(figure, "chance")
    assert set(chance.get_ydata()) == {0.25}


def test_curves_begin_at_no_label_and_unequal_numbers_stand_beside(from_zero):
    figure = plots.accuracy_by_budget(from_zero)
    [ax] = figure.axes
    assert ticks(ax.xaxis) == ["0", "1", "4", "12+2"]
    assert (np.diff(ax.get_xticks()) > 0.0).all()
    # Three budgets are on the curve; the target alone has none without a label.
    assert len(line_of(figure, "hierarchical").get_xdata()) == 3
    assert len(line_of(figure, "target").get_xdata()) == 2
    assert any(text.startswith("Person alone, 12+2: 0.") for text in tips(figure))


@pytest.mark.parametrize("budgets", [range(1, 41), (1, 2, 4, 8, 16, 32)])
def test_labels_of_budgets_do_not_touch(rows, budgets):
    part = rows[rows["budget"] == 0.1]
    many = pd.concat([part.assign(budget=k, n_labelled=2 * k) for k in budgets])
    figure = plots.accuracy_by_budget(many, legend=False)
    FigureCanvasAgg(figure).draw()
    shown = [one for one in figure.axes[0].xaxis.get_ticklabels() if one.get_text()]
    boxes = [one.get_window_extent() for one in shown]
    assert [shown[0].get_text(), shown[-1].get_text()] == [f"{budgets[0]}", f"{budgets[-1]}"]
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))
    assert len(shown) >= min(len(budgets), 6)


def test_methods_can_be_told_apart():
    many = [*METHODS, *(f"mine {place}" for place in range(12))]
    assert len(set(looks(many).values())) == len(many)
    # A method looks the same, whoever else is there.
    assert {name: looks(many)[name] for name in METHODS} == looks(list(METHODS))


# -- windows needed -------------------------------------------------------------------------------


def test_people_who_reach_an_accuracy_are_counted(from_zero):
    left, _ = plots.needed(from_zero, 0.7, 0.5).axes
    drawn = {text: one for text, one in tips(left.figure).items() if one.axes is left}
    assert len(drawn) == 4 + 4 + 3
    for (method, budget), part in by_task(from_zero).groupby(["method", "budget"]):
        reached = int((part["balanced_accuracy"] >= 0.7).sum())
        text = f"{label(method)}, {budget_text(budget)}: {reached} of 6 people"
        assert drawn[text].place[1] == pytest.approx(100.0 * reached / 6)


def test_windows_needed_are_those_of_the_table(from_zero):
    table = StudyResult(from_zero, n_classes=2).needed(0.7, 0.5).set_index("method")
    _, right = plots.needed(from_zero, 0.7, 0.5).axes
    assert ticks(right.yaxis) == [label(name) for name in table.index]
    drawn = {text: one for text, one in tips(right.figure).items() if one.axes is right}
    for row, (name, line) in enumerate(table.iterrows()):
        [(text, tip)] = [pair for pair in drawn.items() if pair[0].startswith(f"{label(name)}: ")]
        assert tip.place[1] == row
        if np.isinf(line["windows"]):
            assert tip.place[0] > 4
        else:
            assert text.endswith(f"{line['windows']:g} windows")
            assert tip.place[0] == (line["windows"] or 0.5)


def test_what_is_not_reached_is_more_than_was_tried(from_zero):
    good = (from_zero["method"] == "hierarchical") & (from_zero["budget"] > 0)
    some = from_zero.assign(balanced_accuracy=np.where(good, 0.9, 0.6))
    _, right = plots.needed(some, 0.8, 0.5).axes
    assert ticks(right.xaxis)[-1] == "more"
    # Where nobody gets there, no panel is left empty.
    assert len(plots.needed(from_zero, 1.0, 1.0).axes) == 1


# -- differences, forecasts -----------------------------------------------------------------------


def test_differences_count_every_task_on_its_side_of_zero(rows):
    figure = plots.differences(rows, "posterior", "target")
    wide = by_task(rows).pivot(index="task", columns=["budget", "method"])["balanced_accuracy"]
    budgets, ps = [0.05, 0.1, 0.5], []
    shades = looks(["posterior", "target"])
    for ax, budget in zip(figure.axes, budgets, strict=True):
        difference = (wide[budget]["posterior"] - wide[budget]["target"]).to_numpy()
        for bar in ax.patches:
            within = difference - bar.get_x()
            assert bar.get_height() == ((within >= 0) & (within < bar.get_width())).sum()
            better = "posterior" if bar.get_x() > -1e-9 else "target"
            assert to_hex(bar.get_facecolor()) == shades[better].colour
        assert f"better for {(difference > 0).sum()} of 7" in ax.get_title()
        different = difference.round(12)[difference.round(12) != 0.0]
        ps.append(wilcoxon(different, alternative="greater").pvalue)
    for ax, p in zip(figure.axes, holm(ps), strict=True):
        shown = re.search(r"p = ([\d.]+) \(Holm\)", ax.get_title())[1]
        assert float(shown) == pytest.approx(p, rel=0.06)
    [line] = compare(rows[rows["budget"] == 0.1], "target", ["posterior"]).itertuples()
    assert f"better for {line.wins} of {line.n_tasks}" in figure.axes[1].get_title()


def test_forecasts_of_single_calibrations_stand_against_their_outcomes(rows):
    figure = plots.forecast(rows)
    left, right = figure.axes
    curve, errors = reliability(rows), forecast_errors(rows)
    curve = curve[curve["n_groups"] >= 5]
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
        for what, value in (("", one.rms), ("constant forecast ", one.constant_rms)):
            tip = drawn[f"{called} {what}off by {value:.3f}"]
            assert (tip.axes, tip.place[1]) == (right, value)
    assert len(drawn) == len(curve) + 2 * len(errors)


# -- all of them ----------------------------------------------------------------------------------

DRAWN = {
    "accuracy": plots.accuracy_by_budget,
    "differences": lambda rows: plots.differences(rows, "posterior", "target"),
    "forecast": plots.forecast,
    "needed": plots.needed,
}


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("differences", {"balanced_accuracy": np.nan}),
        ("forecast", {"expected_accuracy": np.nan}),
        ("needed", {"balanced_accuracy": np.nan}),
    ],
)
def test_nothing_to_draw_is_refused(rows, name, without):
    with pytest.raises(ValueError, match=r"no|none"):
        DRAWN[name](rows.assign(**without))


def test_letters_of_a_figure_do_not_overlap(rows, counted, from_zero):
    """Titles, ticks, labels and legend of full and of empty figures, in boxes of their own."""
    drawn = [(name, draw(counted)) for name, draw in DRAWN.items()]
    drawn += [("nobody", plots.needed(from_zero, 1.0, 1.0))]
    for name, figure in drawn:
        # As wide as one or two columns of a journal.
        assert round(25.4 * figure.get_figwidth(), 6) in (88.0, 180.0)
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

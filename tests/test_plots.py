"""Figures, tested on the tables that they draw."""

import numpy as np
import pytest

from crossfade import plots
from crossfade.simulate import figure2, figure3, misspecified, newcomers


def lines_of(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def test_figure2_draws_every_row():
    table = figure2(n_sources=(10, 100), n_targets=(10, 20), n_repeats=4)
    figure = plots.figure2(table)
    top = figure.axes[1]
    part = table[(table["n_sources"] == 100) & (table["classifier"] == "optimal")]
    part = part[part["quantity"] == "accuracy"]
    assert top.get_title() == "J = 100"
    assert np.array_equal(lines_of(top)["Optimal alpha, predicted"].get_ydata(), part["predicted"])
    assert np.array_equal(lines_of(top)["Optimal alpha, true"].get_ydata(), part["true"])
    drawn = [line.get_ydata() for line in top.get_lines()]
    for name in ("analytical", "empirical"):
        assert any(np.array_equal(values, part[name]) for values in drawn)
    assert "in the paper, empirical" in lines_of(figure.axes[0])


def test_figure2_without_a_reference_has_no_marks_of_the_paper():
    table = figure2(n_sources=(5,), n_targets=(10, 20), n_features=3, n_repeats=4)
    assert not [label for label in lines_of(plots.figure2(table).axes[0]) if "paper" in label]


def test_figure3_draws_every_row():
    table = figure3(panels=["d"], n_repeats=4)
    top, bottom = plots.figure3(table).axes
    part = table[table["classifier"] == "posterior"]
    assert np.array_equal(lines_of(top)["Posterior blend"].get_ydata(), part["accuracy"])
    assert np.array_equal(lines_of(bottom)["Posterior blend"].get_ydata(), part["alpha"])
    paper = table[table["classifier"] == "paper"]["reference_accuracy"]
    drawn = [line.get_ydata() for line in top.get_lines()]
    assert any(np.array_equal(values, paper) for values in drawn)
    # Only the posterior blend has no alpha of its own.
    assert bottom.get_ylabel() == "alpha (posterior: effective)"
    others = plots.figure3(table[table["classifier"] != "posterior"])
    assert others.axes[1].get_ylabel() == "alpha"


def test_misspecified_draws_every_scenario():
    table = misspecified(scenarios=["wishart", "shifted"], n_repeats=4)
    [ax] = plots.misspecified(table).axes
    assert [text.get_text() for text in ax.get_yticklabels()] == ["wishart", "shifted"]
    drawn = {box.get_label(): box[0].get_xdata() for box in ax.containers}
    expected = table[table["classifier"] == "posterior"]["accuracy"]
    assert np.array_equal(drawn["Posterior blend"], expected)


def test_newcomers_says_for_how_many_it_is_better():
    rows = newcomers(n_newcomers=6, n_sources=5, random_state=0)
    figure = plots.newcomers(rows)
    wide = rows.pivot(index="newcomer", columns="classifier", values="accuracy")
    better = (wide["hierarchical"] > wide["lda"]).sum()
    assert f"better for {better} of 6" in figure.axes[1].get_title()


def test_accuracies_have_a_line_at_chance():
    table = figure2(n_sources=(5,), n_targets=(10, 20), n_repeats=4)
    above, below = plots.figure2(table).axes
    [line] = [one for one in above.get_lines() if one.get_gid() == "chance"]
    assert set(line.get_ydata()) == {0.5}
    assert not [one for one in below.get_lines() if one.get_gid() == "chance"]


def test_simulations_have_the_widths_of_a_journal():
    drawn = [
        plots.figure2(figure2(n_sources=(5,), n_targets=(10, 20), n_repeats=4)),
        plots.figure2(figure2(n_sources=(5, 10), n_targets=(10, 20), n_repeats=4)),
        plots.figure3(figure3(panels=["n", "d"], n_repeats=4)),
        plots.misspecified(misspecified(scenarios=["wishart"], n_repeats=4)),
        plots.newcomers(newcomers(n_newcomers=3, n_sources=5, random_state=0)),
    ]
    widths = [round(25.4 * figure.get_figwidth(), 6) for figure in drawn]
    assert widths == [88.0, *[180.0] * 4]


@pytest.mark.parametrize("image_format", ["png", "pdf", "svg"])
def test_figures_can_be_saved(tmp_path, image_format):
    table = figure2(n_sources=(5,), n_targets=(10, 20), n_repeats=4)
    path = tmp_path / f"figure.{image_format}"
    plots.figure2(table).savefig(path)
    assert path.stat().st_size > 1000


def test_other_figures_can_have_the_same_style():
    from matplotlib import style
    from matplotlib.figure import Figure

    def look(ax):
        shown = [ax.spines[side].get_visible() for side in ("top", "right", "left")]
        return shown, ax.xaxis.label.get_size(), ax.xaxis.get_ticklabels()[0].get_size()

    with style.context("crossfade.plots.crossfade"):
        theirs = look(Figure().subplots())
    rows = newcomers(n_newcomers=3, n_sources=5, random_state=0)
    assert look(plots.newcomers(rows).axes[0]) == theirs
    assert theirs[0] == [False, False, True]

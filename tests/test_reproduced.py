"""Ticks and crosses: when a figure of the paper counts as reproduced, and the page that says so."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from crossfade.simulate._repeats import reference
from crossfade.study import reproduce
from crossfade.study._published import statistics_of
from crossfade.study._reproduced import (
    Cell,
    Check,
    Exhibit,
    figure2_checks,
    figure3_checks,
    figure7_checks,
    figure8_checks,
    study_checks,
    text_checks,
    within,
)


def test_a_check_counts_cells_and_names_the_furthest():
    cells = [Cell("first", 0.5, 0.505), Cell("second", 0.7, 0.65), Cell("third", 0.1, 0.112)]
    check = within("accuracy", "printed", cells, "accuracy", "It rained.")
    assert not check.passed
    assert check.reason == "2 of 3 within 0.012; furthest +0.0500 (second). It rained."
    # What the text misses is no reason where its authors' own run was taken.
    check = within("accuracy", "authors", cells, "accuracy", "It rained.")
    assert check.reason == "2 of 3 within 0.012; furthest +0.0500 (second)."
    check = within("accuracy", "printed", cells[:1], "accuracy", "It rained.")
    assert check.passed
    assert check.reason == "1 of 1 within 0.012; furthest -0.0050 (first)."


@pytest.mark.parametrize(
    ("checks", "printed", "authors"),
    [
        ([], None, None),
        ([("printed", False), ("authors", True)], False, True),
        ([("printed", False), ("authors", False)], False, False),
        ([("authors", True), ("authors", False)], None, False),
    ],
)
def test_a_figure_is_reproduced_by_a_recipe_in_full(checks, printed, authors):
    made = [Check("what", recipe, "", passed, "") for recipe, passed in checks]
    exhibit = Exhibit("Figure 9", "none", made)
    assert exhibit.status("printed") is printed
    assert exhibit.status("authors") is authors


@pytest.mark.parametrize(("off", "right"), [(0.0, True), (0.02, False)])
def test_figure_2_has_all_cells_of_the_paper(off, right):
    table = reproduce.figure2(n_repeats=2, recipe="authors")
    table["predicted"], table["true"] = table["analytical"], table["empirical"] + off
    checks = figure2_checks(table, "authors")
    assert [len(check.cells) for check in checks] == [36, 12, 36, 12]
    assert [check.passed for check in checks] == [True, True, right, True]
    assert len(reference("figure2_validation.csv")) == 36 + 12 + 36 + 12


def test_figure_3_has_all_cells_of_the_paper():
    table = reproduce.figure3(n_repeats=2, recipe="authors")
    table["accuracy"], table["alpha"] = table["reference_accuracy"], table["reference_alpha"]
    checks = figure3_checks(table, "authors")
    assert [len(check.cells) for check in checks] == [19, 19, 19, 19]
    assert all(check.passed for check in checks)
    # What the text would have is explained.
    table["alpha"] += 0.1
    [*_, alphas] = figure3_checks(table, "printed")
    assert not alphas.passed
    assert "50 samples" in alphas.reason


def test_figure_7_is_about_the_sizes_of_clusters():
    right, wrong = figure7_checks({"authors": [20, 16], "printed": [36]})
    assert right.passed
    assert right.reason == "Found 2 clusters of 20 and 16; the figure has 2 clusters of 20 and 16."
    assert not wrong.passed
    assert wrong.reason.startswith("Found one cluster of 36; the figure has 2 clusters of 20")
    assert not figure7_checks({"authors": [16, 20, 3]})[0].passed


def test_figure_8_has_all_cells_of_the_paper():
    printed = reference("figure8_effect_of_B.csv").set_axis(
        ["proportion", "n_draws", "reference"], axis=1
    )
    [check] = figure8_checks(printed.assign(error=printed["reference"] + 0.029), "authors")
    assert check.passed
    assert len(check.cells) == 21
    [check] = figure8_checks(printed.assign(error=printed["reference"] + 0.031), "printed")
    assert not check.passed
    assert "neither centred nor scaled" in check.reason


@pytest.fixture
def as_printed():
    """Means by task of a study of 36 people in which all is as the paper says."""
    rng = np.random.default_rng(0)
    printed = statistics_of("mental-math")
    wins = printed[printed["statistic"] == "wins_of_36"].set_index("proportion")["value"]
    # The authors' largest gains.
    largest = {0.05: 0.117, 0.1: 0.116, 0.2: 0.162, 0.5: 0.041}
    rows = []
    for budget in (0.05, 0.1, 0.2, 0.5):
        part = printed[printed["proportion"] == budget].set_index(["statistic", "classifier"])
        n_wins = int(wins[budget])
        gain = np.concatenate([np.full(n_wins, 0.022), np.full(36 - n_wins, -0.004)])
        gain += 1e-4 * rng.random(36)
        gain[0] = largest[budget]
        accuracy = {"target": part.loc[("mean_balanced_accuracy", "target"), "value"] + 1e-5 * gain}
        accuracy["paper"] = accuracy["target"] + gain
        for name in ("average-source", "oracle"):
            value = part.loc[("mean_balanced_accuracy", name), "value"]
            accuracy[name] = np.full(36, value)
        rows += [
            {
                "task": f"Subject{place:02d}",
                "method": name,
                "budget": budget,
                "balanced_accuracy": values[place],
                "alpha": 0.85 if budget == 0.5 else 0.45,
            }
            for name, values in accuracy.items()
            for place in range(36)
        ]
    return pd.DataFrame(rows)


def test_a_study_is_checked_by_its_accuracies_and_wins(as_printed):
    means, medians, wins = study_checks("mental-math", as_printed, "authors")
    assert (len(means.cells), len(medians.cells), len(wins.cells)) == (16, 16, 4)
    assert wins.passed
    assert wins.reason == "25, 24, 24 and 16 of 36; the paper has 25, 24, 24 and 16."
    assert means.reason.startswith("16 of 16 within 0.012; furthest +0.0085 (50%, optimal)")
    worse = as_printed.assign(balanced_accuracy=as_printed["balanced_accuracy"] + 0.05)
    assert not study_checks("mental-math", worse, "authors")[0].passed
    # Of WESAD the paper has no medians and no wins.
    [only] = study_checks("wesad", as_printed, "printed")
    assert only.what == "mean balanced accuracy"


def named(checks, begin):
    """The check that begins so."""
    [found] = (one for one in checks if one.what.startswith(begin))
    return found


@pytest.mark.parametrize(
    ("recipe", "kappa", "right"),
    [
        ("authors", 2.99349873, True),
        ("authors", 2.9935, False),
        ("printed", 2.9, True),
        ("printed", 3.01, False),
    ],
)
def test_kappa_is_the_authors_own_or_below_three(as_printed, recipe, kappa, right):
    assert named(text_checks(as_printed, kappa, recipe), "kappa").passed is right


def test_numbers_of_the_text(as_printed):
    checks = text_checks(as_printed, 2.993498730, "authors")
    found = {check.what.partition(" ")[0]: check for check in checks}
    # What is no number of the text is said, not counted.
    assert (len(checks), {check.recipe for check in checks}) == (6, {"authors"})
    assert not found["largest"].passed
    assert "The text repeats those of MATB." in found["largest"].reason
    assert "11.7, 11.6, 16.2 and 4.1 %, and 4 of 4 of ours are within" in found["largest"].reason
    assert found["p-values"].tolerance == "two-sided, same side of 0.05"
    gains, alphas = (check for check in checks if check.what.startswith("median"))
    assert gains.passed
    assert alphas.passed
    # Of those who gain, most gain more; the median of all people stays.
    more = as_printed["method"].eq("paper") & as_printed["task"].lt("Subject16")
    other = as_printed.assign(balanced_accuracy=as_printed["balanced_accuracy"] + 0.04 * more)
    of_wins, of_all = (
        named(text_checks(other, 3.0, recipe), "median gains") for recipe in ("printed", "authors")
    )
    assert not of_wins.passed
    assert "of these wins" in of_wins.reason
    assert of_all.passed
    flat = as_printed.assign(alpha=as_printed["alpha"].clip(upper=0.45))
    assert not named(text_checks(flat, 3.0, "authors"), "median alphas").passed
    # The paper's subject 6 may be nearest the median, or not; it is said who is.
    assert re.search(r"Subject06 is number \d+ of 36", checks[-1].reason)


# -- the page -----------------------------------------------------------------------------------


class Outline(HTMLParser):
    """Ids, addresses and open elements of a page."""

    def __init__(self):
        super().__init__()
        self.ids, self.links, self.sources, self.open = [], [], [], []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if tag == "a" else []
        self.sources += [found[name] for name in ("src", "srcset") if name in found]
        if tag not in ("meta", "link", "br", "path", "use"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("path", "use"):
            assert self.open.pop() == tag


def shown():
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    from crossfade import plots
    from crossfade.report._paper import Shown

    cells = [Cell("n = 10 <b>", 0.7, 0.69), Cell("n = 20", 0.8, 0.7)]
    checks = [
        within("accuracy", "printed", cells, "accuracy", "Another & covariance."),
        within("accuracy", "authors", cells[:1], "accuracy"),
    ]
    directions = np.eye(3)
    drawing = plots.blend_geometry(directions[0], directions[1])
    return [
        Shown(
            Exhibit("Figure 2", "a title", checks, "No panel."),
            [("printed", "A caption.", drawing)],
            130.0,
            "crossfade a",
        ),
        Shown(
            Exhibit("Figure 4", "no one", [], "It is not here:"), [], 0.0, "crossfade b --matb X"
        ),
        Shown(Exhibit("Numbers of the text", "words", checks), [], 0.2, "crossfade c"),
    ]


def test_the_page_says_what_is_reproduced_and_why_not(tmp_path):
    parts = shown()
    from crossfade.report._paper import headline, write_paper

    said = headline(parts)
    assert said.startswith("Of 1 figures with data these are reproduced within the stated toleranc")
    assert "1 as their authors ran them, 0 by the text alone. 1 figure and panels of Figu" in said
    folder = tmp_path / "deep"
    for name in ("mental-math", "wesad-like"):
        (folder / name).mkdir(parents=True)
        (folder / name / "report.html").write_text("", "utf-8")
    (folder / "figure 2.csv").write_text("", "utf-8")
    path = write_paper(parts, folder, about={"date": "2024-02-29"})
    assert path == folder / "index.html"
    text = path.read_text("utf-8")
    outline = Outline()
    outline.feed(text)
    assert outline.open == []
    assert len(set(outline.ids)) == len(outline.ids)
    # Nothing is loaded from elsewhere, and links go somewhere on the page, to what is beside it
    # and was not simulated, and to the paper.
    assert outline.sources == []
    assert {link[1:] for link in outline.links if link.startswith("#")} <= set(outline.ids)
    assert [link for link in outline.links if not link.startswith("#")] == [
        "https://doi.org/10.3390/math12050746",
        "mental-math/report.html",
        "figure%202.csv",
    ]
    assert "2024-02-29" in text
    assert f"numpy {np.__version__}, scipy " in text
    assert "prefers-color-scheme: dark" in text
    assert "1 of 2 within 0.012; furthest +0.1000 (n = 20). Another &amp; covariance." in text
    assert "n = 10 &lt;b&gt;" in text
    assert "2 min" in text
    # At a glance; and for the text alone, of both exhibits, above its check and beside it.
    assert text.count('aria-label="not reproduced"') == 5
    assert "It is not here:" in text
    assert "<pre>crossfade b --matb X</pre>" in text
    assert "<td>0 of 1 hold</td><td>1 of 1 hold</td>" in text
    # How many numbers are compared, and of what there are none.
    assert '<small>No panel.</small></th><td class="number">2</td>' in text
    assert "A caption." in text
    before = text
    write_paper(parts, folder, about={"date": "2024-02-29"})
    assert path.read_text("utf-8") == before


@pytest.mark.parametrize(
    ("recipes", "said"),
    [
        (["printed"], "tolerance: 0 by the text alone."),
        (["authors"], "tolerance: 1 as their authors ran them."),
    ],
)
def test_the_headline_speaks_of_the_recipes_that_were_run(recipes, said):
    from crossfade.report._paper import headline

    [first, *_] = shown()
    checks = [check for check in first.exhibit.checks if check.recipe in recipes]
    exhibit = first.exhibit._replace(checks=checks, missing="")
    assert headline([first._replace(exhibit=exhibit)]).endswith(said)


def test_a_sketch_has_no_tick(tmp_path):
    drawing = shown()[0].drawings[0][2]
    from crossfade.report._paper import Shown, headline, write_paper

    sketch = Exhibit("Figure 1", "geometry", [], sketch=True)
    drawn = Shown(sketch, [("", "A caption.", drawing)], 1.0, "crossfade a")
    lacking = drawn._replace(drawings=[])
    tick, hint = 'aria-label="reproduced"', "pip install &#34;.[plots]&#34;"
    text = write_paper([drawn], tmp_path, about={}).read_text("utf-8")
    assert tick not in text
    assert '<span class="none">drawn anew</span>' in text
    assert hint not in text
    assert headline([drawn]).endswith("Figure 1 is a sketch without numbers, drawn anew.")
    text = write_paper([lacking], tmp_path, about={}).read_text("utf-8")
    assert "drawn anew" not in text
    assert hint in text
    assert headline([lacking]).endswith("not drawn for want of matplotlib.")

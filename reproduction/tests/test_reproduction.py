"""Ticks and crosses, both simulations of our own, and the page."""

import ast
import importlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from crossfade import Task, TaskSet
from reproduction import __main__ as command
from reproduction.checks import (
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
from reproduction.own_simulations import SCENARIOS, build_world, misspecified, newcomers
from reproduction.published import reference, statistics_of
from reproduction.simulations import figure2


def test_a_check_counts_cells_and_names_the_furthest():
    cells = [Cell("first", 0.5, 0.505), Cell("second", 0.7, 0.65), Cell("third", 0.1, 0.112)]
    check = within("accuracy", "printed", cells, "accuracy", "It rained.")
    assert not check.passed
    assert check.reason == "2 of 3 within 0.012; furthest +0.0500 (second). It rained."
    # What the text misses is no reason where its authors' own run was taken.
    assert "rained" not in within("accuracy", "authors", cells, "accuracy", "It rained.").reason
    assert within("accuracy", "printed", cells[:1], "accuracy").passed


@pytest.mark.parametrize(
    ("checks", "printed", "authors"),
    [
        ([], None, None),
        ([("printed", False), ("authors", True)], False, True),
        ([("authors", True), ("authors", False)], None, False),
    ],
)
def test_a_figure_is_reproduced_by_a_recipe_in_full(checks, printed, authors):
    exhibit = Exhibit("Figure 9", "", [Check("", recipe, "", ok, "") for recipe, ok in checks])
    assert exhibit.status("printed") is printed
    assert exhibit.status("authors") is authors


def test_all_cells_of_the_paper_are_compared():
    second = reference("figure2_validation").pivot_table(
        index=["n_sources", "n_target", "classifier", "quantity"], columns="kind", values="value"
    )
    second = second.reset_index().assign(predicted=lambda table: table["analytical"])
    checks = figure2_checks(second.assign(true=second["empirical"] + 0.02), "authors")
    assert [len(check.cells) for check in checks] == [36, 12, 36, 12]
    assert [check.passed for check in checks] == [True, True, False, True]
    third = reference("figure3_parameters").pivot_table(
        index=["panel", "x", "covariance", "classifier"], columns="quantity", values="value"
    )
    third = third.add_prefix("reference_").reset_index()
    third = third.assign(accuracy=third["reference_accuracy"], alpha=third["reference_alpha"])
    checks = figure3_checks(third, "authors")
    assert [len(check.cells) for check in checks] == [19, 19, 19, 19]
    assert all(check.passed for check in checks)
    eighth = reference("figure8_effect_of_B")
    eighth = eighth.set_axis(["proportion", "n_draws", "reference"], axis=1)
    for off, passed in ((0.029, True), (0.031, False)):
        [check] = figure8_checks(eighth.assign(error=eighth["reference"] + off), "authors")
        assert check.passed is passed
        assert len(check.cells) == 21


def test_figure_7_is_about_the_sizes_of_clusters():
    right, wrong = figure7_checks({"authors": [20, 16], "printed": [36]})
    assert right.passed
    assert not wrong.passed
    assert not figure7_checks({"authors": [16, 20, 3]})[0].passed


@pytest.fixture
def as_printed():
    """Means by task of a study of 36 people in which all is as the paper says."""
    rng = np.random.default_rng(0)
    printed = statistics_of("mental-math")
    wins = printed[printed["statistic"] == "wins_of_36"].set_index("proportion")["value"]
    # The authors' largest gains.
    largest = {0.05: 0.117, 0.1: 0.116, 0.2: 0.162, 0.5: 0.041}
    parts = []
    for budget, most in largest.items():
        part = printed[printed["proportion"] == budget].set_index(["statistic", "classifier"])
        mean = part.loc["mean_balanced_accuracy", "value"]
        n_wins = int(wins[budget])
        gain = np.repeat([0.022, -0.004], [n_wins, 36 - n_wins]) + 1e-4 * rng.random(36)
        gain[0] = most
        accuracies = {name: np.full(36, value) for name, value in mean.items()}
        accuracies["target"] = mean["target"] + 1e-5 * gain
        accuracies["optimal"] = accuracies["target"] + gain
        for name, values in accuracies.items():
            table = pd.DataFrame({"task": [f"Subject{place:02d}" for place in range(36)]})
            table = table.assign(method=name, budget=budget, balanced_accuracy=values)
            parts.append(table.assign(alpha=0.85 if budget == 0.5 else 0.45))
    return pd.concat(parts, ignore_index=True)


def test_a_study_is_checked_by_its_accuracies_and_wins(as_printed):
    means, medians, wins = study_checks("mental-math", as_printed, "authors")
    assert (len(means.cells), len(medians.cells), len(wins.cells)) == (16, 16, 4)
    assert wins.passed
    assert means.passed
    worse = as_printed.assign(balanced_accuracy=as_printed["balanced_accuracy"] + 0.05)
    assert not study_checks("mental-math", worse, "authors")[0].passed
    # The paper has no medians and no wins for WESAD.
    [only] = study_checks("wesad", as_printed, "printed")
    assert only.what == "mean balanced accuracy"


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
    [check] = [one for one in text_checks(as_printed, kappa, recipe) if "kappa" in one.what]
    assert check.passed is right


def test_numbers_of_the_text(as_printed):
    found = {
        check.what.partition(" of ")[0]: check for check in text_checks(as_printed, 3, "authors")
    }
    assert len(found) == 6
    assert not found["largest gains"].passed
    assert "4 of 4 of ours are within" in found["largest gains"].reason
    assert found["median gains"].passed
    assert found["median alphas are stagnant up to 20 % and jump at 50 %"].passed
    # If most of those who gain gain more, the median of all people stays.
    more = as_printed["method"].eq("optimal") & as_printed["task"].lt("Subject16")
    other = as_printed.assign(balanced_accuracy=as_printed["balanced_accuracy"] + 0.04 * more)
    for recipe, passed in (("printed", False), ("authors", True)):
        checks = text_checks(other, 3.0, recipe)
        assert [one.passed for one in checks if "median gains" in one.what] == [passed]


# -- simulations of our own -----------------------------------------------------------------------


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_exact_accuracies_agree_with_counting(scenario):
    y = np.repeat([0, 1], 2000)
    world = build_world(scenario, y, np.random.default_rng(7))
    omega = world.nu + 0.1 * np.random.default_rng(8).standard_normal(10)
    exact = world.accuracy(omega, 0.1)
    counted = ((world.X @ omega + 0.1 > 0.0) == (y == 1)).mean()
    # Correlated samples carry less: their effective number is smaller by (1 + r) / (1 - r).
    error = np.sqrt(exact * (1.0 - exact) / 4000 * (9.0 if scenario == "correlated" else 1.0))
    assert abs(counted - exact) < 4.0 * error


def test_rules_survive_wrong_models_as_they_should():
    table = misspecified(["as assumed", "stranger"], n_repeats=30)
    accuracy = table.pivot(index="scenario", columns="classifier", values="accuracy")
    assert accuracy.loc["stranger", "average-source"] < 0.6
    assert accuracy.loc["stranger", "posterior"] > accuracy.loc["stranger", "average-source"] + 0.1
    assert accuracy.loc["as assumed", "posterior"] > accuracy.loc["as assumed", "optimal"]


def test_newcomers_gain_from_the_crowd():
    rows = newcomers(20)
    means = rows.groupby("classifier")["accuracy"].mean()
    assert means["hierarchical"] > means["lda"]
    assert rows.loc[rows["classifier"] == "hierarchical", "expected"].between(0.5, 1.0).all()


def test_the_right_formulas_predict_what_is_true():
    table = figure2("right", n_repeats=100).query("quantity == 'accuracy' and n_target >= 20")
    allowed = np.where(table["n_sources"] == 10, 0.015, 0.01) + 3.0 * table["true_se"]
    assert ((table["predicted"] - table["true"]).abs() < allowed).all()


def test_only_public_names_of_the_library_are_used():
    for path in Path(command.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("crossfade"):
                room = importlib.import_module(node.module)
                public = getattr(room, "__all__", vars(room))
                private = [one.name for one in node.names if one.name not in public]
                assert not private, f"{path.name} imports {private} from {node.module}"


# -- the page -------------------------------------------------------------------------------------


def test_the_page_says_what_is_reproduced(tmp_path, capsys):
    words = ["figure1", "matb", "vectors"]
    assert command.main([*words, "-o", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "Of 1 figure with data" in said
    assert "1 as their authors ran them, 0 by the text alone. Figure 4 needs" in said
    page = (tmp_path / "index.html").read_text("utf-8")
    assert re.findall('<section id="(.*?)">', page) == [
        *("glance", "figure-1", "figure-4", "figure-7", "how")
    ]
    assert page.count('src="data:image/png;base64,') == 3
    assert "http" not in re.sub('href="https://doi.org/.*?"', "", page)
    for name in re.findall('href="([^#"]*csv)"', page):
        assert len(pd.read_csv(tmp_path / name))


def test_recordings_are_read_by_both_recipes(tmp_path, monkeypatch):
    rng, asked = np.random.default_rng(0), []
    y = np.repeat([0, 1], [30, 24])
    tasks = [Task(rng.standard_normal((54, 3)) + y[:, None], y, f"S{place}") for place in range(8)]

    def load(study, folder, recipe, n_jobs):
        asked.append((study, str(folder), recipe))
        return TaskSet(tasks)

    monkeypatch.setattr(command.applications, "load", load)
    words = ["wesad", "--wesad", "mine", "--splits", "5", "--jobs", "1", "-o", str(tmp_path)]
    # These are no recordings of WESAD, and the page says so.
    assert command.main(words) == 1
    assert asked == [("wesad", "mine", "printed"), ("wesad", "mine", "authors")]
    assert len(pd.read_csv(tmp_path / "wesad-authors.csv")) == 8 * 4 * 4


@pytest.mark.parametrize("words", [["figure9"], ["--repeats", "1"], ["--recipe", "both"]])
def test_words_that_mean_nothing_are_refused(words):
    with pytest.raises(SystemExit):
        command.main(words)

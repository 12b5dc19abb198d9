"""The generative model and the studies on it."""

import numpy as np
import pandas as pd
import pytest

from crossfade import TaskPrior
from crossfade.prior import mean_resultant_length
from crossfade.simulate import (
    SCENARIOS,
    Parameters,
    draw_directions,
    figure2,
    figure3,
    misspecified,
    newcomers,
    simulate_tasks,
)
from crossfade.simulate._misspecified import _accuracy, build_world


@pytest.mark.parametrize(("n_features", "kappa"), [(2, 5.0), (10, 10.0), (50, 100.0), (1, 0.5)])
def test_directions_have_the_resultant_length_of_their_law(n_features, kappa):
    directions = draw_directions(20_000, n_features, kappa, random_state=0)
    assert np.allclose(np.linalg.norm(directions, axis=1), 1.0)
    along = directions[:, 0]
    error = along.std() / np.sqrt(along.size)
    assert along.mean() == pytest.approx(mean_resultant_length(kappa, n_features), abs=4 * error)


def test_directions_of_no_concentration_are_uniform():
    directions = draw_directions(20_000, 4, 0.0, random_state=0)
    moment = directions.T @ directions / len(directions)
    assert np.allclose(moment, np.eye(4) / 4, atol=0.01)


def test_directions_follow_the_mean_direction():
    mean = np.array([0.0, 0.6, 0.8])
    directions = draw_directions(2_000, 3, 1e4, mean_direction=mean, random_state=0)
    assert np.allclose(directions.mean(0), mean, atol=1e-3)


def test_directions_refuse_a_mean_that_is_not_unit():
    with pytest.raises(ValueError, match="unit vectors; row 0 has length 2"):
        draw_directions(5, 2, 1.0, mean_direction=[2.0, 0.0])


def test_tasks_have_the_means_and_covariance_of_the_model():
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    [task] = simulate_tasks(1, 200_000, n_features=2, covariance=covariance, random_state=1)
    second = task.X[task.y == 1]
    first = task.X[task.y == 0]
    assert np.allclose(np.cov(second.T), covariance, atol=0.03)
    half_gap = (second.mean(0) - first.mean(0)) / 2
    assert np.linalg.norm(np.linalg.solve(covariance, half_gap)) == pytest.approx(1.0, abs=0.02)
    assert np.allclose(second.mean(0) + first.mean(0), 0.0, atol=0.03)


def test_prior_of_simulated_tasks_finds_the_crowd():
    tasks = simulate_tasks(60, 400, n_features=5, concentration=30.0, random_state=2)
    prior = TaskPrior.from_tasks(tasks)
    assert prior.mean_direction[0] > 0.97
    assert 15.0 < prior.concentration < 45.0


@pytest.fixture(scope="module")
def second_figure():
    return figure2(n_sources=(10, 100), n_targets=(20, 50), n_repeats=300, random_state=3)


def test_figure2_has_a_row_for_every_cell_and_the_papers_values(second_figure):
    assert len(second_figure) == 2 * 2 * 4
    assert second_figure["empirical"].notna().all()


def test_figure2_predicts_what_is_true(second_figure):
    rows = second_figure[second_figure["quantity"] == "accuracy"]
    allowed = np.where(rows["n_sources"] == 10, 0.015, 0.01) + 3 * rows["true_se"]
    assert ((rows["predicted"] - rows["true"]).abs() < allowed).all()


def test_figure2_agrees_with_the_paper_where_it_is_right(second_figure):
    rows = second_figure[second_figure["classifier"].isin(["target", "average-source"])]
    apart = (rows["true"] - rows["empirical"]).abs()
    assert (apart < np.maximum(0.01, 3 * rows["true_se"])).all()


def test_figure2_on_a_test_sample_is_noisier_but_no_different(second_figure):
    tested = figure2(
        n_sources=(10, 100), n_targets=(20, 50), n_repeats=300, n_test=50, random_state=3
    )
    rows = second_figure["quantity"] == "accuracy"
    errors = np.hypot(tested["true_se"], second_figure["true_se"])[rows]
    assert ((tested["true"] - second_figure["true"])[rows].abs() < 4 * errors).all()
    assert (tested["true_se"][rows] > second_figure["true_se"][rows]).all()


@pytest.fixture(scope="module")
def third_figure():
    return figure3(n_repeats=250, random_state=4)


def test_figure3_reproduces_target_and_average_source(third_figure):
    rows = third_figure[third_figure["classifier"].isin(["target", "average-source"])]
    rows = rows.dropna(subset="reference_accuracy")
    apart = (rows["accuracy"] - rows["reference_accuracy"]).abs()
    assert len(rows) == 38
    # The paper's own values have the standard error of 1,000 repeats.
    error = rows["accuracy_se"] * np.sqrt(1 + 250 / 1000)
    assert (apart < np.maximum(0.01, 4 * error)).all()


#: Cells of the paper's Figure 2 that its text and what its authors ran tell apart.
TARGET = "classifier == 'target' and quantity == 'accuracy'"


@pytest.mark.parametrize(("recipe", "wanted"), [("printed", 0.7225), ("authors", 0.7594)])
def test_figure2_by_the_papers_recipes(recipe, wanted):
    """The printed covariance of the target gives 0.7225 at n = 10, where the figure has 0.759."""
    options = {"n_sources": (10, 1000), "n_targets": (10, 50), "n_repeats": 400}
    table = figure2(**options, recipe=recipe, random_state=11)
    first = table.query(TARGET).iloc[0]
    assert first["predicted"] == pytest.approx(wanted, abs=4 * first["predicted_se"] + 0.0005)
    apart = (table["predicted"] - table["analytical"]).abs()
    error = table["predicted_se"] * np.sqrt(1 + 400 / 1000)
    within = apart < np.maximum(0.012, 4 * error)
    assert within.all() == (recipe == "authors")
    # What is true of the rules does not depend on how their accuracy is predicted.
    accuracies = table[table["quantity"] == "accuracy"]
    apart = (accuracies["true"] - accuracies["empirical"]).abs()
    assert (apart < np.maximum(0.012, 4 * accuracies["true_se"])).all()


def test_figure3_is_what_its_authors_ran():
    table = figure3(n_repeats=250, recipe="authors", random_state=12)
    assert set(table["classifier"]) == {"target", "average-source", "paper"}
    assert table["reference_accuracy"].notna().all()
    assert len(table) == 3 * 19
    error = table["accuracy_se"] * np.sqrt(1 + 250 / 1000)
    apart = (table["accuracy"] - table["reference_accuracy"]).abs()
    assert (apart < np.maximum(0.012, 4 * error)).all()
    chosen = table[table["classifier"] == "paper"]
    apart = (chosen["alpha"] - chosen["reference_alpha"]).abs()
    assert (apart < np.maximum(0.03, 4 * chosen["alpha_se"] * np.sqrt(1.25))).all()


def test_figure3_as_printed_is_another_figure():
    table = figure3(panels="n", n_repeats=250, recipe="printed", random_state=13)
    optimal = table[(table["classifier"] == "paper") & (table["covariance"] == "plug-in")]
    first = optimal.set_index("x").loc[10.0]
    assert first["accuracy"] - first["reference_accuracy"] > 0.05
    assert first["alpha"] < 0.4 < first["reference_alpha"]


def test_the_panel_of_kappa_was_made_with_50_samples():
    options = {"panels": "kappa", "values": (100.0,), "n_repeats": 250, "random_state": 14}
    own = {n: figure3(recipe="authors", n_target=n, **options) for n in (20, None, 50)}
    pd.testing.assert_frame_equal(own[None].iloc[:, :8], own[50].iloc[:, :8])
    alpha = {n: table.set_index("classifier").loc["paper"] for n, table in own.items()}
    assert abs(alpha[None]["alpha"] - 0.685) < 4 * alpha[None]["alpha_se"]
    assert abs(alpha[20]["alpha"] - 0.685) > 4 * alpha[20]["alpha_se"]


@pytest.mark.parametrize("figure", [figure2, figure3])
def test_an_unknown_recipe_is_refused(figure):
    with pytest.raises(ValueError, match="recipe must be one of 'ours', 'printed', 'authors'"):
        figure(recipe="text")


def test_figure3_posterior_is_not_worse_than_either_parent(third_figure):
    rows = third_figure[third_figure["covariance"] == "plug-in"]
    accuracy = rows.pivot(index=["panel", "x"], columns="classifier", values="accuracy")
    errors = rows.pivot(index=["panel", "x"], columns="classifier", values="accuracy_se")
    parents = accuracy[["target-shrunk", "average-source"]].max(axis=1)
    assert (accuracy["posterior"] > parents - 0.005 - 3 * errors["posterior"]).all()


def test_figure3_posterior_beats_algorithm_1(third_figure):
    rows = third_figure[third_figure["covariance"] == "plug-in"]
    accuracy = rows.pivot(index=["panel", "x"], columns="classifier", values="accuracy")
    low = accuracy[accuracy["paper"] < 0.80]
    assert len(low) >= 8
    assert (low["posterior"] > low["paper"] + 0.02).all()


def test_figure3_forecasts_are_honest(third_figure):
    rows = third_figure[third_figure["covariance"] == "plug-in"]
    rows = rows[rows["classifier"].isin(["convex", "posterior"])]
    apart = (rows["expected"] - rows["accuracy"]).abs()
    assert (apart < 0.03 + 3 * rows["expected_se"]).all()


def test_figure3_refuses_an_unknown_panel():
    with pytest.raises(ValueError, match="'n', 'kappa' and 'd'; got 'J'"):
        figure3(panels=["J"])


def test_other_parameters_have_no_reference():
    table = figure2(n_sources=(5,), n_targets=(10,), n_features=3, n_repeats=4)
    assert table["analytical"].isna().all()


def test_the_result_does_not_depend_on_the_number_of_processes():
    # More repeats than are computed at once, so that the pieces of a cell have to be joined.
    options = {"n_sources": (5, 10), "n_targets": (10,), "n_repeats": 260, "random_state": 5}
    pd.testing.assert_frame_equal(figure2(**options), figure2(n_jobs=2, **options))


def test_progress_is_reported():
    seen = []
    figure2(
        n_sources=(5,), n_targets=(10, 20), n_repeats=300, on_progress=lambda *a: seen.append(a)
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.fixture(scope="module")
def wrong_worlds():
    scenarios = ["as assumed", "shifted", "stranger"]
    return misspecified(scenarios=scenarios, n_repeats=200, random_state=6)


def test_every_scenario_has_every_rule():
    table = misspecified(n_repeats=2, random_state=6)
    counts = table.groupby("scenario", sort=False).size()
    assert list(counts.index) == list(SCENARIOS)
    assert set(counts) == {8}


def test_a_shifted_midpoint_hurts_only_who_assumes_it(wrong_worlds):
    accuracy = wrong_worlds.pivot(index="scenario", columns="classifier", values="accuracy")
    error = wrong_worlds["accuracy_se"].max()
    change = accuracy.loc["shifted"] - accuracy.loc["as assumed"]
    assert abs(change["posterior"]) < 4 * np.sqrt(2) * error
    far = misspecified(scenarios=["shifted"], n_repeats=200, shift=3.0, random_state=6)
    assumed = far.set_index("classifier").loc["paper, origin", "accuracy"]
    assert assumed < accuracy.loc["as assumed", "paper, origin"] - 4 * np.sqrt(2) * error


def test_a_stranger_is_not_sacrificed_to_the_crowd(wrong_worlds):
    accuracy = wrong_worlds.pivot(index="scenario", columns="classifier", values="accuracy")
    row = accuracy.loc["stranger"]
    assert row["average-source"] < 0.55
    assert row["posterior"] > row["target-shrunk"] - 0.03


@pytest.mark.parametrize("scenario", list(SCENARIOS))
def test_exact_accuracies_agree_with_counting(scenario):
    """The closed form of each scenario against samples drawn from it."""
    size = Parameters(n_features=3, n_sources=5, n_target=4000)
    label = np.repeat([0, 1], 2000)
    world = build_world(scenario, size, label, 3, np.random.default_rng(7))
    omega = np.random.default_rng(8).normal(size=(3, 3)) + world.nu
    threshold = np.array([0.1, -0.2, 0.0])
    exact = _accuracy(world, omega, threshold)
    scores = np.einsum("tsf,tf->ts", world.X, omega) > threshold[:, None]
    counted = (scores == label.astype(bool)).mean(1)
    # Correlated samples carry less: their effective number is smaller by (1 + r) / (1 - r).
    error = np.sqrt(exact * (1 - exact) / 4000 * (9 if scenario == "correlated" else 1))
    assert (np.abs(counted - exact) < 4 * error).all()


def test_misspecified_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="scenarios must be one of 'as assumed'"):
        misspecified(scenarios=["rain"])
    with pytest.raises(TypeError, match="no parameter 'n_sauces'"):
        misspecified(n_sauces=3)
    with pytest.raises(ValueError, match=r"tails must be a number of at least 2\.01"):
        misspecified(tails=1.0)


def test_newcomers_are_judged_by_the_rules_that_users_get():
    rows = newcomers(n_newcomers=20, n_sources=30, random_state=0)
    ours = {"convex", "posterior", "hierarchical"}
    assert set(rows["classifier"]) == ours | {"target", "average-source", "lda"}
    means = rows.groupby("classifier")["accuracy"].mean()
    assert means["hierarchical"] > means["lda"]
    assert means["posterior"] > means["lda"]
    assert rows["accuracy"].between(0.0, 1.0).all()

"""The paper's figures as functions: frames for a notebook, the paper's numbers beside ours."""

import numpy as np
import pandas as pd
import pytest

from crossfade import FisherDiscriminant, Task, TaskPrior, TaskSet, load_mental_math, plots
from crossfade.simulate import figure2, figure3
from crossfade.study import CalibrationStudy, StudyResult, effect_of_b, reproduce
from crossfade.study._published import balanced_runs


@pytest.fixture
def small(make_tasks, monkeypatch):
    """Few and small tasks in the place of the three studies."""
    asked = []
    made = {
        "load_mental_math": TaskSet(make_tasks(7, n_features=5, n_each=(24, 22))),
        "read_matb": TaskSet(make_tasks(6, n_features=6)),
        "read_wesad": TaskSet(make_tasks(8, n_features=3)),
    }
    for name, tasks in made.items():

        def read(*folder, name=name, tasks=tasks, **options):
            asked.append((name, options.get("recipe")))
            return tasks

        monkeypatch.setattr(f"crossfade.datasets.{name}", read)
    return made | {"asked": asked}


def test_figure_1_has_unit_directions():
    table = reproduce.figure1(n_sources=6)
    points = table.set_index("role")[["x", "y", "z"]]
    assert points.index.value_counts().to_dict() == {"source": 6, "target": 1, "average-source": 1}
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1.0)
    mean = points.loc["source"].mean()
    np.testing.assert_allclose(points.loc["average-source"], mean / np.linalg.norm(mean))
    assert table.equals(reproduce.figure1(n_sources=6))
    assert not table.equals(reproduce.figure1(n_sources=6, random_state=1))


def test_the_target_of_figure_1_can_be_learnt_from_samples():
    table = reproduce.figure1(n_sources=6, n_samples=400)
    points = table.set_index("role")[["x", "y", "z"]]
    true = reproduce.figure1(n_sources=6).set_index("role")[["x", "y", "z"]]
    # The same directions; the target's is learnt, and not far from its own.
    np.testing.assert_array_equal(points.loc["source"], true.loc["source"])
    assert 0.95 < points.loc["target"] @ true.loc["target"] < 1.0
    samples = points.loc["sample"]
    assert len(samples) == 400
    plain = FisherDiscriminant(shrinkage=None, feature_scale=None)
    learnt = plain.fit(samples.to_numpy(), np.arange(400) % 2).projection_
    np.testing.assert_allclose(points.loc["target"], learnt)
    with pytest.raises(ValueError, match="n_samples must be a whole number of at least 6"):
        reproduce.figure1(n_samples=2)


@pytest.mark.parametrize(("ours", "plain"), [("figure2", figure2), ("figure3", figure3)])
def test_simulations_are_printed_by_default(ours, plain):
    options = {"n_repeats": 2, "random_state": 5}
    options |= {"panels": "d", "values": (3,)} if ours == "figure3" else {"n_targets": (10,)}
    for recipe in ("printed", "authors"):
        found = getattr(reproduce, ours)(recipe=recipe, **options)
        pd.testing.assert_frame_equal(found, plain(recipe=recipe, **options))
    found = getattr(reproduce, ours)(**options)
    pd.testing.assert_frame_equal(found, plain(recipe="printed", **options))
    with pytest.raises(ValueError, match="recipe must be one of 'printed', 'authors'; got 'ours'"):
        getattr(reproduce, ours)(recipe="ours", **options)


def test_a_study_stands_beside_the_papers_numbers(small, tmp_path):
    seen = []
    table = reproduce.mental_math(
        n_splits=2, folder=tmp_path, on_progress=lambda *numbers: seen.append(numbers)
    )
    assert seen[-1] == (63, 63)
    result = StudyResult.load(tmp_path)
    cells = table.set_index(["method", "budget"])
    means = result.summary().set_index(["method", "budget"])["mean_balanced_accuracy"]
    np.testing.assert_allclose(cells["mean"], means[cells.index])
    # Four methods of the paper, at four budgets.
    assert cells["published"].count() == 16
    assert cells.loc[("paper", 0.1), "published"] == 0.6676
    np.testing.assert_allclose(cells["difference"], cells["mean"] - cells["published"])


def test_the_recipe_of_a_study_is_the_psi_of_algorithm_1(small, tmp_path):
    printed = reproduce.mental_math(n_splits=3, folder=tmp_path / "printed")
    authors = reproduce.mental_math(n_splits=3, folder=tmp_path / "authors", recipe="authors")
    both = printed.merge(authors, on=["method", "budget"], suffixes=("", "_authors"))
    same = both["alpha"].fillna(-1) == both["alpha_authors"].fillna(-1)
    assert same[both["method"] != "paper"].all()
    own = both[both["method"] == "paper"]
    assert not same[own.index].any()
    # A square root of a small number is larger: the crowd is trusted less.
    assert own["alpha"].mean() > own["alpha_authors"].mean()
    plan = CalibrationStudy(
        small["load_mental_math"], methods=["paper"], n_splits=3, random_state=0
    )
    theirs = plan.run().summary().set_index("budget")["mean_balanced_accuracy"]
    np.testing.assert_allclose(own["mean_authors"], theirs[own["budget"]])
    # A folder knows by which of the two it was made.
    with pytest.raises(ValueError, match="paper"):
        reproduce.mental_math(n_splits=3, folder=tmp_path / "printed", recipe="authors")


def test_recordings_take_the_place_of_the_stand_ins(small):
    theirs = reproduce.matb("folder", n_splits=1)
    assert theirs["n_tasks"].max() == 6
    assert theirs.loc[theirs["method"] == "oracle", "published"].tolist()[0] == 0.7061
    theirs = reproduce.wesad("folder", n_splits=1)
    assert theirs["n_tasks"].max() == 8
    assert reproduce.wesad(n_splits=1)["n_tasks"].max() == 14
    reproduce.matb("folder", n_splits=1, recipe="authors")
    assert small["asked"] == [
        ("read_matb", "printed"),
        ("read_wesad", "printed"),
        ("read_matb", "authors"),
    ]


def test_vectors_are_those_of_the_paper_and_ours(small):
    seen = []
    found = reproduce.vectors(
        matb="folder", wesad="folder", on_progress=lambda *numbers: seen.append(numbers)
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]
    summary = found.summary.set_index(["study", "recipe"])
    assert summary["published"].groupby("study").first().to_dict() == {
        "matb": 17.2,
        "mental-math": 2.99,
        "wesad": 1.45,
    }
    assert all(sum(shares) == pytest.approx(1.0) for shares in summary["shares"])
    tasks = small["read_matb"]
    plain = FisherDiscriminant(shrinkage=None, feature_scale=None)
    wanted = {
        "printed": TaskPrior.from_projections(
            [plain.fit(task.X, task.y).projection_ for task in tasks], keep_directions=True
        ),
        "ours": TaskPrior.from_tasks(tasks, keep_directions=True),
    }
    for recipe, prior in wanted.items():
        own = found.directions.query("study == 'matb' and recipe == @recipe")
        assert own["task"].tolist() == [task.name for task in tasks]
        W = own.filter(regex=r"^w\d").dropna(axis=1)
        np.testing.assert_allclose(W, prior.directions)
        assert summary.loc[("matb", recipe), "kappa"] == pytest.approx(prior.concentration)


@pytest.fixture(scope="module")
def mental_math_vectors():
    return reproduce.vectors(studies=["mental-math"], recipe="authors")


def test_kappa_is_that_of_the_authors_seed(mental_math_vectors):
    summary = mental_math_vectors.summary.set_index("recipe")
    assert summary.loc["authors", "kappa"] == pytest.approx(2.99349873, abs=5e-9)
    assert summary.loc["authors", "published"] == 2.99
    # Not to be told from one wide crowd, whatever the clusters say.
    assert summary.loc["authors", "shares"] == (1.0,)


def test_clusters_of_figure_7_are_those_of_the_paper(mental_math_vectors):
    own = mental_math_vectors.directions.query("recipe == 'authors'")
    W = own.filter(regex=r"^w\d").to_numpy()
    points = plots.embed_directions(W, recipe="authors")
    assert points["cluster"].value_counts().to_dict() == {1: 20, 2: 16}
    # Adjacency spectral embedding, written out.
    affinity = (W @ W.T + 1.0) / 2.0
    affinity[np.diag_indices(36)] = (affinity.sum(1) - np.diag(affinity)) / 35
    left, values, _ = np.linalg.svd(affinity)
    theirs = left[:, :2] * np.sqrt(values[:2])
    ours = points[["x", "y"]].to_numpy()
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-9)
    # By the text all are one cluster.
    printed = reproduce.vectors(studies=["mental-math"]).directions.query("recipe == 'printed'")
    W = printed.filter(regex=r"^w\d").to_numpy()
    assert plots.embed_directions(W)["cluster"].nunique() == 1


def test_balanced_runs_are_drawn_one_after_the_other():
    """By NumPy's legacy generator, task by task, all starts but the last."""
    tasks = load_mental_math()[:4]
    found = balanced_runs(tasks, n_runs=3, seed=7)
    rng = np.random.RandomState(7)
    plain = FisherDiscriminant(shrinkage=None, feature_scale=None)
    for run in found:
        for task, direction in zip(tasks, run, strict=True):
            rest, work = np.flatnonzero(task.y == 0), np.flatnonzero(task.y == 1)
            start = rng.choice(len(rest) - len(work))
            rows = np.concatenate([rest[start : start + len(work)], work])
            wanted = plain.fit(task.X[rows], task.y[rows]).projection_
            np.testing.assert_allclose(direction, wanted)
    # Classes of one size need no draw.
    even = [Task(task.X[-50:], task.y[-50:], task.name) for task in tasks]
    runs = balanced_runs(even, n_runs=2)
    np.testing.assert_array_equal(runs[0], runs[1])


def test_the_effect_of_b_is_that_of_subject_6():
    few = {"n_splits": 1, "n_repeats": 1, "random_state": 3}
    wanted = effect_of_b(load_mental_math(), task="Subject06", **few)
    assert reproduce.effect_of_b(**few).equals(wanted)
    wanted = effect_of_b(load_mental_math(), task="Subject06", recipe="authors", **few)
    assert reproduce.effect_of_b(recipe="authors", **few).equals(wanted)

"""The paper's figures as functions: frames for a notebook, the paper's numbers beside ours."""

import numpy as np
import pytest

from crossfade import FisherDiscriminant, TaskPrior, TaskSet
from crossfade.study import StudyResult, effect_of_b, reproduce


@pytest.fixture
def small(make_tasks, monkeypatch):
    """Few and small tasks in the place of the three studies."""
    made = {
        "load_mental_math": TaskSet(make_tasks(7, n_features=5, n_each=(24, 22))),
        "read_matb": TaskSet(make_tasks(6, n_features=6)),
        "read_wesad": TaskSet(make_tasks(8, n_features=3)),
    }
    for name, tasks in made.items():
        monkeypatch.setattr(
            f"crossfade.datasets.{name}", lambda *folder, tasks=tasks, **options: tasks
        )
    return made


def test_figure_1_has_unit_directions():
    table = reproduce.figure1(n_sources=6)
    points = table.set_index("role")[["x", "y", "z"]]
    assert points.index.value_counts().to_dict() == {"source": 6, "target": 1, "average-source": 1}
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1.0)
    mean = points.loc["source"].mean()
    np.testing.assert_allclose(points.loc["average-source"], mean / np.linalg.norm(mean))
    assert table.equals(reproduce.figure1(n_sources=6))
    assert not table.equals(reproduce.figure1(n_sources=6, random_state=1))


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


def test_recordings_take_the_place_of_the_stand_ins(small):
    theirs = reproduce.matb("folder", n_splits=1)
    assert theirs["n_tasks"].max() == 6
    assert theirs.loc[theirs["method"] == "oracle", "published"].tolist()[0] == 0.7061
    theirs = reproduce.wesad("folder", n_splits=1)
    assert theirs["n_tasks"].max() == 8
    assert reproduce.wesad(n_splits=1)["n_tasks"].max() == 14


def test_vectors_are_those_of_the_authors_and_ours(small):
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
        "authors": TaskPrior.from_projections(
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


def test_the_effect_of_b_is_that_of_subject_6():
    from crossfade import load_mental_math

    few = {"n_splits": 1, "n_repeats": 1, "random_state": 3}
    wanted = effect_of_b(load_mental_math(), task="Subject06", **few)
    assert reproduce.effect_of_b(**few).equals(wanted)

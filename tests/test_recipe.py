"""How features were made: what a recipe says, refuses, and where it travels."""

import json
from dataclasses import replace

import numpy as np
import pytest

from crossfade import (
    Recipe,
    TaskPrior,
    TaskSet,
    read_tasks,
)
from crossfade.exceptions import PriorMismatchError

BANDS = (("theta", 4, 8), ("alpha", 8.0, 12.0))
EEG = Recipe(
    "log-powers",
    sfreq=500,
    channels=("Fz", "Pz"),
    window=2.5,
    reference="average",
    averaged=("Fz", "Pz", "Cz"),
    filter="causal",
    band=(0.5, 30),
    bands=BANDS,
)
TANGENT = Recipe("tangent", 256.0, ("C3", "C4"), 4.0, 2.0, centre="past")
HEART = Recipe("beats", 700.0, ("ECG",), 60.0, beats=("pnn20", "rate"))
RECIPES = [EEG, TANGENT, HEART]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_survives_json(recipe):
    text = json.dumps(recipe.to_dict(), sort_keys=True)
    again = Recipe.from_dict(json.loads(text))
    assert again == recipe
    assert hash(again) == hash(recipe)
    assert [name for name, *_ in again.bands] == [name for name, *_ in recipe.bands]
    # Files leave out what is None.
    known = {name: value for name, value in recipe.to_dict().items() if value is not None}
    assert Recipe.from_dict(known) == recipe


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"window": 4.0, "sfreq": 256.0}, ("window 4", "sfreq 500")),
        ({"averaged": ("Fz", "Pz")}, ("averaged Fz, Pz;", "averaged Fz, Pz, Cz")),
        (
            {"channels": ("Pz", "Fz"), "filter": None, "band": None},
            ("channels Pz, Fz", "filter None"),
        ),
    ],
)
def test_a_difference_is_named(change, words):
    assert EEG.difference(EEG) is None
    said = replace(EEG, **change).difference(EEG)
    assert all(word in said for word in words)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"kind": "wavelets"}, "kind"),
        ({"filter": "both"}, "filter"),
        ({"reference": "mastoids"}, "reference"),
        ({"sfreq": 0}, "sfreq"),
        ({"sfreq": "fast"}, "sfreq"),
        ({"window": float("inf")}, "window"),
        ({"overlap": 2.5}, "overlap"),
        ({"channels": "Fz"}, "channels"),
        ({"channels": ()}, "channels"),
        ({"channels": ["Fz", 3]}, "channels"),
        ({"band": None}, "band"),
        ({"filter": None}, "band"),
        ({"band": (30, 0.5)}, "band"),
        ({"band": (1, 2, 3)}, "band"),
        ({"bands": ()}, "bands"),
        ({"bands": [["theta", 8, 4]]}, "theta"),
        ({"bands": [[]]}, "band"),
        ({"beats": ["rate"]}, "beats"),
        ({"centre": "past"}, "centre"),
        ({"unit": "\n"}, "unit"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_recipes_refuse(change, word):
    with pytest.raises((ValueError, TypeError), match=word):
        Recipe.from_dict(EEG.to_dict() | change)
    with pytest.raises(ValueError, match="sfreq"):
        Recipe.from_dict({"kind": "shares"})
    with pytest.raises(ValueError, match="sfreq"):
        Recipe.from_dict([])


# -- tasks and tables -------------------------------------------------------------------------


@pytest.fixture
def tasks(make_tasks):
    names = ("Fz_theta", "Fz_alpha", "Pz_theta", "Pz_alpha")
    made = make_tasks(feature_names=names)
    return TaskSet(replace(one, name=f"p{i}", recipe=EEG) for i, one in enumerate(made))


def changed(tasks, **change):
    recipe = None if change == {"recipe": None} else replace(EEG, **change)
    return TaskSet(replace(task, recipe=recipe) for task in tasks)


def test_slices_and_joined_sets_keep_their_recipe(tasks):
    assert tasks.recipe == EEG
    assert tasks[1:3].recipe == EEG
    assert tasks[0].recipe == EEG
    assert TaskSet([*tasks[:2], *tasks[3:]]).recipe == EEG
    assert TaskSet([*tasks[:2], *changed(tasks[3:], recipe=None)]).recipe is None
    assert TaskSet([]).recipe is None
    with pytest.raises(ValueError, match=r"'p3', .*window 4; .*'p0', .*window 2.5"):
        TaskSet([*tasks[:2], *changed(tasks[3:], window=4.0)])
    with pytest.raises(TypeError, match="Recipe"):
        replace(tasks[0], recipe=EEG.to_dict())


def test_parquet_carries_the_recipe_and_csv_does_not(tasks, tmp_path):
    tasks.write(tmp_path / "tasks.parquet")
    assert read_tasks(tmp_path / "tasks.parquet").recipe == EEG
    assert read_tasks(tmp_path / "tasks.parquet", columns="Fz*").recipe == EEG
    assert TaskSet.from_frame(tasks.to_frame()).recipe == EEG
    tasks.write(tmp_path / "tasks.csv")
    assert read_tasks(tmp_path / "tasks.csv").recipe is None


def test_a_table_with_a_damaged_recipe_is_refused(tasks):
    frame = tasks.to_frame()
    frame.attrs["recipe"]["sfreq"] = -1
    with pytest.raises(ValueError, match=r"recipe.*sfreq"):
        TaskSet.from_frame(frame)


# -- priors -----------------------------------------------------------------------------------


def test_a_prior_keeps_the_recipe_of_its_tasks(tasks, tmp_path):
    prior = TaskPrior.from_tasks(tasks)
    assert prior.recipe == EEG
    assert TaskPrior.from_tasks(changed(tasks, recipe=None)).recipe is None
    prior.save(tmp_path / "prior.npz")
    again = TaskPrior.load(tmp_path / "prior.npz")
    assert again.recipe == EEG
    assert again == prior
    assert str(EEG) in prior.card()
    assert str(EEG) in prior.summary()
    assert prior.card_data()["recipe"] == str(EEG)
    assert prior.without("class_means").recipe == EEG


def test_priors_of_other_recipes_are_not_merged(tasks):
    scale = np.ones(4)
    mine = TaskPrior.from_tasks(tasks[:3], feature_scale=scale)
    theirs = TaskPrior.from_tasks(tasks[3:], feature_scale=scale)
    assert (mine + theirs).recipe == EEG
    unknown = TaskPrior.from_tasks(changed(tasks[3:], recipe=None), feature_scale=scale)
    assert (mine + unknown).recipe is None
    other = TaskPrior.from_tasks(changed(tasks[3:], sfreq=256.0), feature_scale=scale)
    with pytest.raises(PriorMismatchError, match="recipe"):
        mine + other

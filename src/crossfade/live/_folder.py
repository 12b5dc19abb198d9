"""The folder of a session: the prior, recipe and goal that it begins with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from crossfade._files import json_of, read_whole, write_whole
from crossfade.crowd import TaskPrior
from crossfade.exceptions import PriorMismatchError
from crossfade.live._journal import Journal
from crossfade.tasks import Recipe, recipe_misfits

_FORMAT, _VERSION = "crossfade-session", 3
SESSION, PRIOR, _JOURNAL = "session.json", "prior.npz", "windows.jsonl"


def check_recipe(recipe: Recipe | None, prior: TaskPrior) -> Recipe | None:
    """The recipe of raw windows: that of the prior, if it has one."""
    for wrong in recipe_misfits(recipe, prior.recipe):
        raise PriorMismatchError(wrong)
    return prior.recipe if recipe is None else recipe


def names_of(prior: Any) -> tuple[str, ...]:
    """Names of the classes; refuses a prior that a session cannot use."""
    if getattr(prior, "classes", None) is None or prior.class_means is None:
        raise ValueError("A session needs a prior with class means, as from TaskPrior.from_tasks.")
    return prior.class_names or tuple(map(str, prior.classes))


def begin(folder: Path, prior: TaskPrior, recipe: Recipe | None, want: float | None) -> Journal:
    """Make the folder of a new session, and return its journal."""
    if any((folder / name).exists() for name in (SESSION, _JOURNAL)):
        raise FileExistsError(
            f"{folder} holds a session already. Continue it with LiveCalibration.load, or choose "
            "another folder."
        )
    folder.mkdir(parents=True, exist_ok=True)
    prior.save(folder / PRIOR)
    fields = {
        "format": _FORMAT,
        "version": _VERSION,
        "recipe": None if recipe is None else recipe.to_dict(),
        "want": want,
    }
    write_whole(folder / SESSION, json.dumps(fields, indent=1).encode())
    return Journal(folder / _JOURNAL)


def read(folder: Path) -> tuple[TaskPrior, Recipe | None, float | None, Journal]:
    """Prior, recipe and goal that a session began with, and its journal."""
    try:
        fields = json_of(read_whole(folder / SESSION, 1 << 24))
        if (fields["format"], fields["version"]) != (_FORMAT, _VERSION):
            raise ValueError(f"it is {fields['format']}, version {fields['version']}")
        want = fields["want"]
        recipe = None if fields["recipe"] is None else Recipe.from_dict(fields["recipe"])
    except (ValueError, KeyError, TypeError) as reason:
        raise ValueError(
            f"{folder / SESSION} is not a session of this version of Crossfade: {reason}."
        ) from reason
    return TaskPrior.load(folder / PRIOR), recipe, want, Journal(folder / _JOURNAL)

"""What a session is begun with, prior, recipe and options, and the folder that keeps them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from crossfade._files import json_of, read_whole, write_whole
from crossfade.blend._advice import Goal
from crossfade.exceptions import PriorMismatchError
from crossfade.live._journal import Journal
from crossfade.prior import MulticlassPrior, TaskPrior
from crossfade.tasks import Recipe, recipe_misfits

_FORMAT, _VERSION = "crossfade-session", 1
SESSION, PRIOR, _JOURNAL = "session.json", "prior.npz", "windows.jsonl"
#: Priors of a session, by the name that its file has for them.
KINDS: dict[str, Any] = {kind.__name__: kind for kind in (TaskPrior, MulticlassPrior)}


def check_prior(prior: Any) -> Any:
    """A prior that a session can use."""
    kinds: Any = tuple(KINDS.values())
    if not isinstance(prior, kinds):
        raise TypeError(
            f"prior must be a TaskPrior or a MulticlassPrior; got {type(prior).__name__}."
        )
    if prior.classes is None:
        raise ValueError(
            "This prior does not know its classes, so that windows of a session cannot be labelled."
            " Build it with TaskPrior.from_tasks."
        )
    if isinstance(prior, MulticlassPrior) and prior.class_means is None:
        raise ValueError(
            "This MulticlassPrior holds no class means, which a session needs. Build it with "
            "MulticlassPrior.from_tasks, from people who have all classes."
        )
    return prior


def check_recipe(recipe: Any, prior: Any) -> Recipe | None:
    """The recipe of raw windows: that of the prior, if it has one."""
    if recipe is not None and not isinstance(recipe, Recipe):
        raise TypeError(f"recipe must be a Recipe or None; got {type(recipe).__name__}.")
    for wrong in recipe_misfits(recipe, prior.recipe):
        raise PriorMismatchError(wrong)
    return prior.recipe if recipe is None else recipe


def names_of(prior: Any, classes: tuple[Any, ...]) -> tuple[str, ...]:
    """What people call the classes."""
    names = getattr(prior, "class_names", None)
    if names is None:
        return tuple(str(one) for one in classes)
    called = dict(zip(prior.classes, names, strict=True))
    return tuple(str(called[one]) for one in classes)


def begin(
    folder: Path, prior: Any, recipe: Recipe | None, forget: float | None, goal: Goal
) -> Journal:
    """Make the folder of a new session; returns its journal."""
    if (folder / SESSION).exists():
        raise FileExistsError(
            f"{folder} holds a session already. Go on with LiveCalibration.load({str(folder)!r}"
            "), or choose another folder."
        )
    folder.mkdir(parents=True, exist_ok=True)
    prior.save(folder / PRIOR)
    journal = Journal(folder / _JOURNAL)
    if journal.actions:
        journal.close()
        raise FileExistsError(
            f"{folder / _JOURNAL} holds windows of another session. Choose another folder."
        )
    fields = {
        "format": _FORMAT,
        "version": _VERSION,
        "prior": next(one.__name__ for one in type(prior).__mro__ if one.__name__ in KINDS),
        "forget": forget,
        "recipe": None if recipe is None else recipe.to_dict(),
        **goal._asdict(),
    }
    # Last: a folder with this file is a session.
    write_whole(folder / SESSION, json.dumps(fields, indent=1).encode())
    return journal


def read(folder: Path) -> tuple[Any, Recipe | None, dict[str, Any], Journal]:
    """Prior, recipe and options that a session was begun with, and its journal."""
    try:
        fields = json_of(read_whole(folder / SESSION, 1 << 24))
        if fields["format"] != _FORMAT or fields["version"] > _VERSION:
            raise ValueError(f"it is {fields['format']}, version {fields['version']}")
        kind = KINDS[fields["prior"]]
        options = {name: fields[name] for name in ("forget", *Goal._fields)}
        said = fields.get("recipe")
        recipe = None if said is None else Recipe.from_dict(said)
    except FileNotFoundError:
        raise
    except (ValueError, KeyError, TypeError) as reason:
        raise ValueError(
            f"{folder / SESSION} describes no session of this version: {reason}."
        ) from reason
    return kind.load(folder / PRIOR), recipe, options, Journal(folder / _JOURNAL)

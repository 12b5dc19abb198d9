"""The two recipes for the features of the paper: as printed, and as its authors ran it."""

from __future__ import annotations

from crossfade._validate import check_choice

#: As the paper's text has it, slips included; and as its authors ran it.
RECIPES = ("printed", "authors")


def check_recipe(recipe: str, *others: str) -> str:
    """Refuse what is no recipe; `others` are words that are allowed as well."""
    return check_choice("recipe", recipe, (*others, *RECIPES))

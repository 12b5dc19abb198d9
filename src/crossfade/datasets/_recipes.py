"""The two recipes by which the paper's numbers can be made: as printed, and as its authors ran it.

They differ in most figures; :mod:`crossfade.study.reproduce` says how, figure by figure.
"""

from __future__ import annotations

from crossfade._validate import check_choice

#: As the paper's text has it, slips included; and as its authors ran it.
RECIPES = ("printed", "authors")


def check_recipe(recipe: str, *others: str) -> str:
    """Refuse what is no recipe; `others` are words that are allowed as well."""
    return check_choice("recipe", recipe, (*others, *RECIPES))

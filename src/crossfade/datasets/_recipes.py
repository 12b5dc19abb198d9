"""The two recipes by which the paper's numbers can be made: as printed, and as its authors ran it.

They differ in most figures; :mod:`crossfade.study.reproduce` says how, figure by figure.
"""

from __future__ import annotations

from crossfade._validate import check_choice

#: Recipes by name, and what each is.
RECIPES = {
    "printed": "as the paper's text has it, slips included",
    "authors": "as its authors ran it, as far as that is known",
}


def check_recipe(recipe: str, *others: str) -> str:
    """Refuse what is no recipe; `others` are words that are allowed as well."""
    return check_choice("recipe", recipe, (*others, *RECIPES))

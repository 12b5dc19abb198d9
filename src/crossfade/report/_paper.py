"""The page of ``crossfade reproduce all``: the paper's figures, ours beside them, tick or cross.

The template is ``templates/paper.html.j2``; the page needs nothing but itself.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crossfade._files import write_whole
from crossfade._version import __version__
from crossfade.datasets._recipes import RECIPES
from crossfade.report._figures import Drawing, inline, slug
from crossfade.report._text import number
from crossfade.report._write import require_jinja
from crossfade.study._reproduced import Cell, Check, Exhibit
from crossfade.study._verdict import duration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What each recipe is called in a sentence.
BY = {"printed": "by the text", "authors": "as its authors ran it", "": "either way"}


class Shown(NamedTuple):
    """An exhibit with its drawings, how long it took, and the command that makes it.

    Each drawing has a recipe, empty where the two do not differ, and a caption.
    """

    exhibit: Exhibit
    drawings: Sequence[tuple[str, str, Figure]]
    seconds: float
    command: str


def write_paper(shown: Sequence[Shown], folder: Path, *, about: Mapping[str, object]) -> Path:
    """Write ``index.html`` to a folder; `about` says how it was run."""
    require_jinja()
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    templates = Environment(
        loader=PackageLoader("crossfade.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    package = files("crossfade.report")
    styles = [package.joinpath(name).read_text("utf-8") for name in ("page.css", "paper.css")]
    page = templates.get_template("paper.html.j2").render(
        style=Markup("\n".join(styles)),
        version=__version__,
        headline=headline([one.exhibit for one in shown]),
        exhibits=[_exhibit(one) for one in shown],
        recipes={BY[name]: text for name, text in RECIPES.items()},
        about={**about, "Python": platform.python_version(), "Crossfade": __version__},
        total=_took(sum(one.seconds for one in shown)),
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    write_whole(path, page.encode())
    return path


def headline(exhibits: Sequence[Exhibit]) -> str:
    """How many of the paper's figures are reproduced, and by which recipe."""
    figures = [one for one in exhibits if one.name.startswith("Figure")]
    checked = [one for one in figures if any(check.cells for check in one.checks)]
    sketches = [one.name for one in figures if one.checks and one not in checked]
    right = sum(bool(one.reproduced) for one in checked)
    by_text = sum(one.status("printed") is True for one in checked)
    lacking = len(figures) - len(checked) - len(sketches)
    text = f"{right} of {len(checked)} figures with data are reproduced within the stated "
    text += f"tolerance, as their authors ran them; {by_text} of them by the text alone, too."
    if sketches:
        text += f" {' and '.join(sketches)} is a sketch without numbers, drawn anew."
    if lacking:
        text += f" {lacking} need recordings that are not here."
    return text


def _exhibit(one: Shown) -> dict[str, Any]:
    exhibit = one.exhibit
    groups = [_group(one, recipe) for recipe in ("authors", "printed", "")]
    return {
        "id": slug(exhibit.name),
        "name": exhibit.name,
        "title": exhibit.title,
        "missing": exhibit.missing,
        "status": {recipe: exhibit.status(recipe) for recipe in RECIPES},
        "counted": f"{sum(check.passed for check in exhibit.checks)} of {len(exhibit.checks)}",
        "groups": [group for group in groups if group["checks"] or group["figures"]],
        "seconds": _took(one.seconds),
        "command": one.command,
    }


def _group(one: Shown, recipe: str) -> dict[str, Any]:
    """Checks and figures of an exhibit by one recipe."""
    from markupsafe import Markup

    name = slug(f"{one.exhibit.name} {recipe}")
    drawings = [
        Drawing(f"{name}-{place}", caption, "", figure)
        for place, (whose, caption, figure) in enumerate(one.drawings)
        if whose == recipe
    ]
    checks = [check for check in one.exhibit.checks if check.recipe == recipe]
    return {
        "by": BY[recipe],
        "passed": all(check.passed for check in checks) if checks else None,
        "checks": [_check(check) for check in checks],
        "figures": [{"svg": Markup(inline(each)), "text": each.text} for each in drawings],
    }


def _check(check: Check) -> dict[str, Any]:
    return {
        "what": check.what,
        "tolerance": check.tolerance,
        "passed": check.passed,
        # A minus is no hyphen.
        "reason": re.sub(r"(?<!\w)-(?=\d)", "−", check.reason),
        "lines": _lines(check.cells),
    }


def _lines(cells: Sequence[Cell]) -> list[tuple[str, str, str, str]]:
    """Cells as text: what, ours, the paper's, and how far apart; whole numbers stay whole."""
    numbers = [value for one in cells for value in (one.ours, one.paper) if value == value]
    digits = 0 if all(value == round(value) for value in numbers) else 4
    return [
        (
            one.cell,
            number(one.ours, digits),
            number(one.paper, digits),
            number(one.apart, digits, signed=True),
        )
        for one in cells
    ]


def _took(seconds: float) -> str:
    return "under 1 s" if seconds < 1.0 else duration(seconds)

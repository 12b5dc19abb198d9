"""The page of ``crossfade reproduce all``: our figures with the paper's values, tick or cross.

The template is ``templates/paper.html.j2``; the page needs nothing but itself.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crossfade._files import write_whole
from crossfade._version import __version__
from crossfade.datasets import RECIPES
from crossfade.report._figures import Drawing, inline, slug
from crossfade.report._text import number
from crossfade.report._write import require_jinja
from crossfade.study import duration
from crossfade.study._reproduced import Cell, Check, Exhibit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What each recipe is called in a sentence.
BY = {"printed": "by the text", "authors": "as its authors ran it"}
#: What each recipe is, and how it is known.
_KNOWN = {
    "printed": "Formula by formula as the paper has it, slips included.",
    "authors": "Found out from their published figures and results: a departure from the text was "
    "tried until the figure came out. Where the figure itself gave it away (2, 3, 7 and 8), a tick "
    "is weaker evidence. No code of theirs is used.",
}
_NOT_DRAWN = 'Not drawn: matplotlib is missing. In a copy of the source: pip install ".[plots]"'


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
        headline=headline(shown),
        exhibits=[_exhibit(one) for one in shown],
        recipes={BY[name]: text for name, text in _KNOWN.items()},
        beside=_beside(folder),
        about={**about, "software": _software()},
        total=_took(sum(one.seconds for one in shown)),
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    write_whole(path, page.encode())
    return path


def _software() -> str:
    names = [f"Crossfade {__version__}", f"Python {platform.python_version()}"]
    return ", ".join([*names, *(f"{name} {version(name)}" for name in ("numpy", "scipy"))])


def _beside(folder: Path) -> dict[str, list[str]]:
    """Reports and tables in the folder of the page, by their kind; simulated ones are left out."""
    kinds = {"reports": "*/report.html", "tables": "*.csv"}
    found = {
        kind: sorted(path.relative_to(folder).as_posix() for path in folder.glob(pattern))
        for kind, pattern in kinds.items()
    }
    return {kind: [name for name in names if "-like" not in name] for kind, names in found.items()}


def headline(shown: Sequence[Shown]) -> str:
    """How many of the paper's figures are reproduced, and by which recipe."""
    figures = [one for one in shown if one.exhibit.name.startswith("Figure")]
    sketches = [one for one in figures if one.exhibit.sketch]
    checked = [one.exhibit for one in figures if one.exhibit.checks]
    lacking = len(figures) - len(checked) - len(sketches)
    ways = {"authors": "as their authors ran them", "printed": "by the text alone"}
    counts = [
        f"{sum(one.status(recipe) is True for one in checked)} {way}"
        for recipe, way in ways.items()
        if any(one.by(recipe) for one in checked)
    ]
    text = f"Of {len(checked)} figures with data these are reproduced within the stated tolerance: "
    text += f"{', '.join(counts) or 'none'}."
    for one in sketches:
        text += f" {one.exhibit.name} is a sketch without numbers, {_drawn(one)}."
    missing = [f"{lacking} figure{'s' * (lacking > 1)}"] if lacking else []
    missing += [f"panels of {one.name}" for one in checked if one.missing]
    if missing:
        text += f" {' and '.join(missing)} need recordings that are not here."
    return text


def _drawn(sketch: Shown) -> str:
    return "drawn anew" if sketch.drawings else "not drawn for want of matplotlib"


def _exhibit(one: Shown) -> dict[str, Any]:
    exhibit = one.exhibit
    # A sketch is of no recipe.
    groups = [_group(one, recipe) for recipe in ("authors", "printed", "")]
    # Both recipes are compared with the same numbers.
    compared = max(
        sum(cell.paper == cell.paper for check in exhibit.by(recipe) for cell in check.cells)
        for recipe in RECIPES
    )
    return {
        "id": slug(exhibit.name),
        "name": exhibit.name,
        "title": exhibit.title,
        "missing": exhibit.missing,
        "sketch": _drawn(one) if exhibit.sketch else "",
        "lacks": _NOT_DRAWN if exhibit.sketch and not one.drawings else "",
        "status": {recipe: exhibit.status(recipe) for recipe in RECIPES},
        "compared": compared or "",
        "counted": {recipe: _counted(exhibit.by(recipe)) for recipe in RECIPES},
        "groups": [group for group in groups if group["checks"] or group["figures"]],
        "seconds": _took(one.seconds),
        "command": one.command,
    }


def _counted(checks: Sequence[Check]) -> str:
    return f"{sum(check.passed for check in checks)} of {len(checks)} hold" if checks else "–"


def _group(one: Shown, recipe: str) -> dict[str, Any]:
    """Checks and figures of an exhibit by one recipe."""
    from markupsafe import Markup

    name = slug(f"{one.exhibit.name} {recipe}")
    drawings = [
        Drawing(f"{name}-{place}", caption, "", figure)
        for place, (whose, caption, figure) in enumerate(one.drawings)
        if whose == recipe
    ]
    checks = [_check(check) for check in one.exhibit.checks if check.recipe == recipe]
    return {
        "by": BY.get(recipe, ""),
        "passed": one.exhibit.status(recipe),
        "checks": checks,
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

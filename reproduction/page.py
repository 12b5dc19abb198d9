"""The page of ``make reproduce``: our figures with the paper's values, a tick or a cross."""

import base64
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reproduction import RECIPES
from reproduction.checks import Exhibit

#: What each recipe is called in a sentence.
BY = {"printed": "by the text", "authors": "as its authors ran it"}


class Drawing(NamedTuple):
    """A picture file, by which recipe it was made, and what it shows."""

    path: Path
    recipe: str
    caption: str

    @property
    def by(self) -> str:
        """The recipe in words, where there is one."""
        return f", {BY[self.recipe]}" if self.recipe in BY else ""

    @property
    def source(self) -> str:
        """The picture itself, so that the page needs nothing else."""
        return "data:image/png;base64," + base64.b64encode(self.path.read_bytes()).decode()


class Shown(NamedTuple):
    """An exhibit with its drawings and tables, how long it took, and the command that makes it."""

    exhibit: Exhibit
    drawings: Sequence[Drawing]
    tables: Sequence[str]
    seconds: float
    command: str

    @property
    def id(self) -> str:
        """Place on the page."""
        return self.exhibit.name.lower().replace(" ", "-")

    @property
    def took(self) -> str:
        """Seconds in words; empty where nothing was run."""
        return f"{self.seconds:.0f} s" if self.seconds >= 0.5 else "under 1 s" * bool(self.seconds)

    @property
    def compared(self) -> int | str:
        """How many numbers of the paper are compared; both recipes have the same."""
        compared = [
            sum(
                cell.paper == cell.paper
                for check in self.exhibit.by(recipe)
                for cell in check.cells
            )
            for recipe in RECIPES
        ]
        return max(compared) or ""

    @property
    def counts(self) -> dict[str, str]:
        """How many checks hold, by recipe."""
        found = {recipe: self.exhibit.by(recipe) for recipe in RECIPES}
        return {
            recipe: f"{sum(check.passed for check in checks)} of {len(checks)}" if checks else ""
            for recipe, checks in found.items()
        }


def headline(shown: Sequence[Shown]) -> str:
    """How many of the paper's figures are reproduced, and by which recipe."""
    exhibits = [one.exhibit for one in shown if one.exhibit.name.startswith("Figure")]
    checked = [one for one in exhibits if one.checks]
    ways = {"authors": "as their authors ran them", "printed": "by the text alone"}
    counts = [
        f"{sum(one.status(recipe) is True for one in checked)} {way}"
        for recipe, way in ways.items()
        if any(one.by(recipe) for one in checked)
    ]
    text = f"Of {_count(checked)} with data, these are reproduced within the stated "
    text += f"tolerance: {', '.join(counts) or 'none'}."
    missing = [one.name for one in exhibits if one.missing and not one.checks]
    if missing:
        verb = "needs" if len(missing) == 1 else "need"
        text += f" {' and '.join(missing)} {verb} recordings that are not here."
    return text


def _count(figures: Sequence[Exhibit]) -> str:
    return f"{len(figures)} figure{'s' * (len(figures) != 1)}"


def write_page(shown: Sequence[Shown], folder: Path, about: Mapping[str, object]) -> Path:
    """Write ``index.html`` to a folder; `about` says how it was run."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    software = [f"Python {platform.python_version()}"]
    software += [f"{name} {version(name)}" for name in ("crossfade", "numpy", "scipy")]
    page = templates.get_template("page.html.j2").render(
        headline=headline(shown),
        shown=shown,
        recipes=BY,
        about={**about, "software": ", ".join(software)},
        total=f"{sum(one.seconds for one in shown):.0f} s",
    )
    path = folder / "index.html"
    path.write_text(page, encoding="utf-8")
    return path

"""``crossfade reproduce``: the paper's figures and numbers anew, with the paper's values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossfade.cli import _exhibits as exhibits
from crossfade.cli._options import COUNT, FOLDER, jobs_option, option, seed_option
from crossfade.cli._output import study_of

if TYPE_CHECKING:
    from crossfade.report._paper import Shown

_DATA = click.Path(exists=True, file_okay=False, path_type=Path)
#: Recipes by the name of the option; what they are is in :mod:`crossfade.study.reproduce`.
_RECIPES = {"both": ("printed", "authors"), "printed": ("printed",), "authors": ("authors",)}
#: Figures of the parts that have other names.
_FIGURES = {
    "matb-like": "Figure 4",
    "mental-math": "Figure 5",
    "wesad": "Figure 6",
    "vectors": "Figure 7",
    "effect-of-b": "Figure 8",
}


@click.command()
@click.argument("what", default="all", metavar="[WHAT]")
@click.option(
    "-o",
    "--out",
    type=FOLDER,
    default=Path("results"),
    show_default=True,
    help="Folder for tables, figures, reports and index.html.",
)
@option(
    "--recipe",
    click.Choice(list(_RECIPES)),
    "both",
    "The paper's text as printed, what its authors ran, or both.",
)
@option(
    "--repeats", click.IntRange(2), exhibits.REPEATS, "Repeats of each cell of Figures 2 and 3."
)
@option("--splits", COUNT, exhibits.SPLITS, "Splits of each participant and budget.")
@jobs_option()
@seed_option
@click.option("--matb", type=_DATA, help="Folder of MATB recordings.")
@click.option("--wesad", type=_DATA, help="Folder of WESAD recordings.")
def reproduce(
    what: str,
    out: Path,
    recipe: str,
    repeats: int,
    splits: int,
    jobs: int,
    seed: int,
    matb: Path | None,
    wesad: Path | None,
) -> None:
    """Run the paper's figures anew, and compare them with the paper's values.

    \b
    WHAT is figure1, figure2, figure3, mental-math (Figure 5),
    matb-like (Figure 4), wesad (Figure 6), effect-of-b (Figure 8),
    vectors (Figure 7) or all.

    What the authors ran is not what they print, so that there are two recipes; a tick says that all
    numbers compared are within the stated tolerance. "all" ends in index.html: our figures, with
    the paper's values marked on them, ticks and crosses with their reasons, and how long it took.

    The MATB recordings are not public, and WESAD cannot be shipped with this package. Unless you
    name a folder with the recordings, "all" leaves these out, and matb-like and wesad take a
    simulated stand-in.

    \b
    Examples:
      crossfade reproduce all --jobs 2
      crossfade reproduce figure3 --recipe authors
      crossfade reproduce wesad --wesad WESAD/
    """
    run = exhibits.Run(
        out, _RECIPES[recipe], repeats, splits, jobs, seed, matb, wesad, stand_ins=what != "all"
    )
    parts: dict[str, Callable[[exhibits.Run], list[Shown]]] = {
        "figure1": exhibits.figure1,
        "figure2": partial(exhibits.simulated, "figure2"),
        "figure3": partial(exhibits.simulated, "figure3"),
        "mental-math": exhibits.mental_math,
        "matb-like": exhibits.matb,
        "wesad": exhibits.wesad,
        "effect-of-b": exhibits.effect_of_b,
        "vectors": exhibits.vectors,
    }
    if what != "all" and what not in parts:
        raise click.UsageError(f"There is no {what!r}. There are {', '.join(parts)} and all.")
    if run.short:
        click.echo(run.short, err=True)
    if what != "all":
        parts[what](run)
        return
    from crossfade.report import require_jinja
    from crossfade.report._paper import headline, write_paper

    # Better now than after all the work.
    with study_of("Page", out):
        require_jinja()
    shown: list[Shown] = []
    for place, (name, part) in enumerate(parts.items(), 1):
        figure = _FIGURES.get(name)
        title = f"{figure}, {name}" if figure else name.replace("figure", "Figure ")
        click.echo(f"\n== {place} of {len(parts)}: {title}")
        lacking = {"matb-like": matb, "wesad": wesad}
        if name in lacking and lacking[name] is None:
            shown.append(exhibits.without_data(name))
            click.echo(f"{shown[-1].exhibit.missing}\n  {shown[-1].command}")
        else:
            shown += part(run)
    shown.sort(key=lambda one: (not one.exhibit.name.startswith("Figure"), one.exhibit.name))
    about = {
        "command": "crossfade reproduce all",
        "recipe": recipe,
        "repeats": f"{repeats:,} of each cell of Figures 2 and 3",
        "splits": f"{splits} of each participant and budget",
        "processes": jobs,
        "seed": seed,
        **({"note": run.short} if run.short else {}),
        "date": date.today().isoformat(),
    }
    page = write_paper(shown, out, about=about)
    click.echo(f"\n{headline(shown)}\nPage: {page}")

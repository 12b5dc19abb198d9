"""``crossfade reproduce``: the paper's figures and numbers, each beside ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossfade.cli._options import COUNT, FOLDER, jobs_option, option, seed_option
from crossfade.cli._output import narrow_table, study_of, terminal, write_results
from crossfade.cli._simulate import figure2, figure3
from crossfade.cli._study import PROPORTIONS, run_study

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from crossfade.study._published import PaperStudy

_DATA = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.argument("what", default="all", metavar="[WHAT]")
@click.option(
    "-o",
    "--out",
    type=FOLDER,
    default=Path("results"),
    show_default=True,
    help="Folder for tables, figures and reports.",
)
@option("--repeats", click.IntRange(2), 1000, "Repeats of each cell of Figures 2 and 3.")
@option("--splits", COUNT, 100, "Splits of each participant and budget.")
@jobs_option()
@seed_option
@click.option("--matb", type=_DATA, help="Folder of MATB recordings, instead of the stand-in.")
@click.option("--wesad", type=_DATA, help="Folder of WESAD recordings, instead of the stand-in.")
@click.pass_context
def reproduce(
    context: click.Context,
    what: str,
    out: Path,
    repeats: int,
    splits: int,
    jobs: int,
    seed: int,
    matb: Path | None,
    wesad: Path | None,
) -> None:
    """Compare the paper's figures with ours.

    WHAT is figure1, figure2, figure3, mental-math, matb-like, wesad, effect-of-b, vectors or all.
    The MATB recordings are not public, and WESAD cannot be shipped with this package; unless you
    name a folder with the recordings, a simulated stand-in is used.

    \b
    Examples:
      crossfade reproduce mental-math
      crossfade reproduce all
      crossfade reproduce wesad --wesad WESAD/
    """
    from crossfade.study._published import matb_study, mental_math_study, wesad_study

    simulated = {"repeats": repeats, "jobs": jobs, "seed": seed, "out": out}
    run = partial(_study, out=out, splits=splits, jobs=jobs, seed=seed)
    parts: dict[str, Callable[[], object]] = {
        "figure1": lambda: _figure1(out, seed),
        "figure2": lambda: context.invoke(figure2, **simulated),
        "figure3": lambda: context.invoke(figure3, **simulated),
        "mental-math": lambda: run(mental_math_study()),
        "matb-like": lambda: run(matb_study(matb, jobs)),
        "wesad": lambda: run(wesad_study(wesad, jobs)),
        "effect-of-b": lambda: _effect_of_b(out, seed),
        "vectors": lambda: _vectors(out, matb, wesad, jobs),
    }
    if what != "all" and what not in parts:
        raise click.UsageError(f"There is no {what!r}. There are {', '.join(parts)} and all.")
    for name, part in parts.items():
        if what in ("all", name):
            click.echo(f"\n== {name}")
            part()


#: What to say before a study is run on a stand-in for the paper's recordings.
_STAND_INS = {
    "matb-like": "The MATB recordings are not public. This is a simulated stand-in of 100 sessions "
    "and 24 features, made to come near the paper's values in brackets. --matb FOLDER runs the "
    "study on the recordings.",
    "wesad-like": "WESAD cannot be shipped. This is a simulated stand-in of 14 participants and 3 "
    "features, made to come near the paper's values in brackets. --wesad FOLDER runs the study on "
    "the recordings.",
}


def _study(study: PaperStudy, out: Path, splits: int, jobs: int, seed: int) -> None:
    if study.name.startswith("wesad"):
        terminal().print(_wesad_statistics())
    if study.name in _STAND_INS:
        click.echo(_STAND_INS[study.name])
    run_study(
        study.load,
        out / study.name,
        methods=study.methods,
        budgets=PROPORTIONS,
        n_splits=splits,
        jobs=jobs,
        seed=seed,
        title=study.title,
        paper=study.printed,
        classes=study.classes,
    )


def _wesad_statistics() -> Table:
    """What the paper prints of WESAD besides accuracies, which stand in brackets beside ours."""
    from crossfade.study._published import statistics_of

    table = statistics_of("wesad")
    view = narrow_table("WESAD in the paper")
    view.add_column("labelled", justify="right")
    view.add_column("p that Algorithm 1 beats target", justify="right")
    for row in table[table["statistic"] == "wilcoxon_p_greater"].to_dict("records"):
        view.add_row(f"{row['proportion']:.0%}", f"{row['value']:.3f}")
    return view


def _figure1(out: Path, seed: int) -> None:
    from crossfade import plots
    from crossfade.study import reproduce

    with study_of("Figure 1", out):
        table = reproduce.figure1(random_state=seed)
    points = table.set_index("role")[["x", "y", "z"]]

    def draw() -> Figure:
        return plots.blend_geometry(points.loc["target"], points.loc["source"])

    click.echo(write_results(table, draw, out, "figure1", "png"))


def _effect_of_b(out: Path, seed: int) -> None:
    from crossfade import plots
    from crossfade.study import reproduce

    with study_of("Effect of B", out) as on_progress:
        table = reproduce.effect_of_b(random_state=seed, on_progress=on_progress)
    where = write_results(table, lambda: plots.effect_of_b(table), out, "effect-of-b", "png")
    view = narrow_table("Mean absolute error of alpha after B draws, Subject06")
    for name in ("labelled", "B", "Algorithm 1", "paper's Figure 8", "apart"):
        view.add_column(name, justify="right")
    # Those of 10,000 draws are what the others are compared with.
    for row in table[table["error"].notna()].to_dict("records"):
        view.add_row(
            f"{row['proportion']:.0%}",
            str(row["n_draws"]),
            f"{row['error']:.3f}",
            f"{row['reference']:.3f}",
            f"{row['error'] - row['reference']:+.3f}",
        )
    view.caption = "The exact minimum needs no draws and has no such error."
    terminal().print(view)
    click.echo(where)


def _vectors(out: Path, matb: Path | None, wesad: Path | None, jobs: int) -> None:
    from crossfade import plots
    from crossfade.study import reproduce

    with study_of("Vectors", out) as on_progress:
        found = reproduce.vectors(matb=matb, wesad=wesad, n_jobs=jobs, on_progress=on_progress)
    view = narrow_table("Directions of all windows of a task, in brackets the paper's")
    for head in ("of", "directions", "kappa", "clusters", "mixture"):
        view.add_column(head, justify="left" if head in ("of", "directions") else "right")
    written = []
    for line in found.summary.to_dict("records"):
        name, theirs = line["study"], line["recipe"] == "authors"
        own = found.directions
        own = own[(own["study"] == name) & (own["recipe"] == line["recipe"])]
        W = own.filter(regex=r"^w\d+$").dropna(axis=1).to_numpy()
        points = plots.embed_directions(W).assign(task=own["task"].to_numpy())
        clusters, kappa = f"{points['cluster'].nunique()}", f"{line['kappa']:.2f}"
        mixture = _components(line["shares"])
        if theirs:
            # The paper's text says no more of its clusters than that they are two or more.
            kappa, clusters = f"{kappa} ({line['published']:g})", f"{clusters} (2 or more)"
            view.add_row(name, "the authors'", kappa, clusters, mixture)
        else:
            view.add_row("", "ours", kappa, clusters, mixture)
        file = f"vectors-{name}{'-authors' * theirs}"
        draw = partial(plots.projection_vectors, points)
        written.append(write_results(points, draw, out, file, "png"))
    view.caption = (
        "The authors' directions: pseudo-inverse, raw units; ours are shrunk and scaled. Clusters: "
        "a Gaussian mixture of the embedding, their number by BIC. Mixture: von Mises-Fisher "
        "components of the directions themselves, with their shares; more than one only if one "
        "anisotropic crowd does not explain them (bootstrap, 5 % level)."
    )
    terminal().print(view)
    click.echo("\n".join(written))


def _components(shares: tuple[float, ...]) -> str:
    text = ", ".join(f"{share:.0%}" for share in shares)
    return f"{len(shares)}: {text}" if len(shares) > 1 else "1"

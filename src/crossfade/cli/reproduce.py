"""``crossfade reproduce``: the paper's figures, each beside ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import pandas as pd

from crossfade.cli._output import narrow_table, option, study_of, terminal, write_results
from crossfade.cli.simulate import figure2, figure3
from crossfade.cli.study import run_study

_FIVE = ("target", "average-source", "paper", "oracle", "random-alpha")
_OURS = ("target-shrunk", "convex", "posterior")
_DATA = click.Path(exists=True, file_okay=False, path_type=Path)


def printed(study: str) -> pd.DataFrame:
    """Mean balanced accuracies that the paper prints of one of its studies."""
    from crossfade._repeats import reference

    table = reference("applications.csv")
    kept = (table["study"] == study) & (table["statistic"] == "mean_balanced_accuracy")
    return table[kept].reset_index(drop=True)


@click.command()
@click.argument("what", default="all", metavar="[WHAT]")
@click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder for tables, pictures and reports.",
)
@option("--repeats", click.IntRange(2), 1000, "Repeats of each cell of Figures 2 and 3.")
@option("--splits", click.IntRange(1), 100, "Splits of each participant and budget.")
@option("--jobs", click.IntRange(1), 2, "Processes; the result does not depend on them.")
@option("--seed", click.IntRange(0), 0, "Seed of the random numbers.")
@click.option("--matb", type=_DATA, help="Folder of MATB recordings, in place of the stand-in.")
@click.option("--wesad", type=_DATA, help="Folder of WESAD recordings.")
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
    """Lay the paper's figures beside ours.

    WHAT is figure2, figure3, mental-math, matb-like, wesad, effect-of-b, vectors or all. Nobody
    can download the MATB recordings, and WESAD's ECG of the chest only with its archive: without a
    folder, MATB is simulated, and of WESAD the paper's values are shown.

    \b
    Examples:
      crossfade reproduce mental-math
      crossfade reproduce all --jobs 2
      crossfade reproduce wesad --wesad WESAD/
    """
    simulated = {
        "repeats": repeats,
        "jobs": jobs,
        "seed": seed,
        "out": out,
    }
    parts: dict[str, Callable[[], object]] = {
        "figure2": lambda: context.invoke(figure2, **simulated),
        "figure3": lambda: context.invoke(figure3, **simulated),
        "mental-math": lambda: _mental_math(out, splits, jobs, seed),
        "matb-like": lambda: _matb(matb, out, splits, jobs, seed),
        "wesad": lambda: _wesad(wesad, out, splits, jobs, seed),
        "effect-of-b": lambda: _effect_of_b(out, seed),
        "vectors": lambda: _vectors(out),
    }
    if what != "all" and what not in parts:
        raise click.UsageError(f"There is no {what!r}. There are {', '.join(parts)} and all.")
    for name, part in parts.items():
        if what in ("all", name):
            click.echo(f"\n== {name}")
            part()


def _mental_math(out: Path, splits: int, jobs: int, seed: int) -> None:
    from crossfade.datasets import load_mental_math

    run_study(
        load_mental_math,
        out / "mental-math",
        methods=[*_FIVE, *_OURS, "lda"],
        n_splits=splits,
        jobs=jobs,
        seed=seed,
        title="The Mental Math study of the paper",
        paper=printed("mental-math"),
    )


def _matb(folder: Path | None, out: Path, splits: int, jobs: int, seed: int) -> None:
    from crossfade.datasets import make_matb_like, read_matb

    if folder is None:
        click.echo(
            "The MATB recordings are not public. This is a simulated stand-in of 100 sessions and "
            "24 features, made to come near the paper's values in brackets; --matb FOLDER takes "
            "the recordings."
        )
    run_study(
        make_matb_like if folder is None else lambda: read_matb(folder, n_jobs=jobs),
        out / ("matb-like" if folder is None else "matb"),
        methods=[*_FIVE, *_OURS],
        n_splits=splits,
        jobs=jobs,
        seed=seed,
        title="A simulated stand-in for MATB" if folder is None else "The MATB study of the paper",
        paper=printed("matb"),
    )


def _wesad(folder: Path | None, out: Path, splits: int, jobs: int, seed: int) -> None:
    from crossfade._repeats import reference
    from crossfade.datasets import read_wesad

    table = reference("applications.csv")
    view = narrow_table("WESAD, what the paper prints")
    for name in ("statistic", "of", "labelled", "value"):
        view.add_column(name)
    for row in table[table["study"] == "wesad"].to_dict("records"):
        labelled = f"{row['proportion']:.0%}"
        view.add_row(row["statistic"], row["classifier"], labelled, f"{row['value']:g}")
    terminal().print(view)
    if folder is None:
        click.echo(
            "WESAD cannot be shipped. Its archive has the ECG of the chest: --wesad FOLDER runs "
            "the study on it."
        )
        return
    run_study(
        lambda: read_wesad(folder, n_jobs=jobs),
        out / "wesad",
        methods=[*_FIVE, *_OURS],
        n_splits=splits,
        jobs=jobs,
        seed=seed,
        title="The WESAD study of the paper",
    )


def _effect_of_b(out: Path, seed: int) -> None:
    from crossfade import plots
    from crossfade.datasets import load_mental_math
    from crossfade.study.effect_of_b import effect_of_b

    with study_of("Effect of B", out) as on_progress:
        table = effect_of_b(
            load_mental_math(), task="Subject06", random_state=seed, on_progress=on_progress
        )
    where = write_results(table, lambda: plots.effect_of_b(table), out, "effect-of-b", "png")
    view = narrow_table("Mean absolute error of alpha after B draws, Subject06")
    for name in ("labelled", "B", "Algorithm 1", "paper's Figure 8", "apart"):
        view.add_column(name, justify="right")
    for row in table.to_dict("records"):
        view.add_row(
            f"{row['proportion']:.0%}",
            str(row["n_draws"]),
            f"{row['error']:.3f}",
            f"{row['reference']:.3f}",
            f"{row['error'] - row['reference']:+.3f}",
        )
    view.caption = "The exact minimum takes no draws, and has no such error."
    terminal().print(view)
    click.echo(where)


def _vectors(out: Path) -> None:
    from crossfade import plots
    from crossfade.datasets import load_mental_math, make_matb_like

    for name, load in (("mental-math", load_mental_math), ("matb-like", make_matb_like)):
        with study_of("Vectors", out):
            tasks = load()
            table = plots.embed_directions(tasks)
        where = write_results(
            table, partial(plots.projection_vectors, tasks), out, f"vectors-{name}", "png"
        )
        clusters = table["cluster"].nunique()
        click.echo(f"{name}: {len(table)} directions, {clusters} cluster{'s' * (clusters > 1)}.")
        click.echo(where)

"""``crossfade demo``: a crowd of simulated tasks, and newcomers with a few labelled samples."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from crossfade.cli._output import (
    option,
    out_options,
    study_of,
    terminal,
    write_results,
)


@click.command()
@option("--repeats", click.IntRange(2), 200, "Newcomers.")
@option("--sources", click.IntRange(1), 100, "Source tasks of the crowd, J.")
@option("--samples", click.IntRange(4), 20, "Labelled samples of a newcomer, n.")
@option("--features", click.IntRange(2), 10, "Features, d.")
@option("--kappa", click.FloatRange(0.0), 10.0, "Concentration of the crowd's directions.")
@option("--seed", click.IntRange(0), 0, "Seed of the random numbers.")
@out_options
def demo(
    repeats: int,
    sources: int,
    samples: int,
    features: int,
    kappa: float,
    seed: int,
    out: Path,
    image_format: str,
) -> None:
    """Compare the blends with their rivals on simulated tasks.

    A crowd of source tasks gives a prior; each newcomer brings a few labelled samples. Accuracies
    are exact, not counted on a test sample.

    \b
    Examples:
      crossfade demo
      crossfade demo --samples 6 --kappa 50
    """
    from crossfade import plots
    from crossfade.simulate import newcomers

    with study_of("Newcomers", out) as on_progress:
        rows = newcomers(
            n_newcomers=repeats,
            n_sources=sources,
            n_target=samples,
            n_features=features,
            concentration=kappa,
            random_state=seed,
            on_progress=on_progress,
        )
    where = write_results(rows, lambda: plots.newcomers(rows), out, "demo", image_format)
    accuracy = rows.pivot(index="newcomer", columns="classifier", values="accuracy")
    forecast = rows.groupby("classifier")["expected"].mean()
    view = Table(
        title=f"{repeats} newcomers with {samples} labelled samples each, a crowd of {sources}",
        caption="lda: scikit-learn's LDA with automatic shrinkage; target: ours, without a prior",
    )
    view.add_column("classifier")
    for name in ("accuracy", "forecast", "better than lda for"):
        view.add_column(name, justify="right")
    console = terminal()
    give_or_take = "±" if console.encoding.lower().startswith("utf") else "+-"
    rival = "lda"
    for name in dict.fromkeys(rows["classifier"]):
        values = accuracy[name]
        better = (values > accuracy[rival]).sum()
        view.add_row(
            name,
            f"{values.mean():.3f} {give_or_take} {values.sem():.3f}",
            "" if forecast.isna()[name] else f"{forecast[name]:.3f}",
            "" if name == rival else f"{better} of {repeats}",
        )
    console.print(view)
    click.echo(where)

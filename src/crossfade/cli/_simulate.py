"""``crossfade simulate``: the paper's simulation studies, and one of our own."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from crossfade.cli._output import (
    narrow_table,
    option,
    out_options,
    repeat_options,
    study_of,
    terminal,
    write_results,
)
from crossfade.simulate._scenarios import SCENARIOS

_FRACTION, _COUNT, _POSITIVE = click.FloatRange(1e-3, 1.0), click.IntRange(1), click.FloatRange(0.0)

_step = option("--step", _FRACTION, 0.1, "Step of the grid of alphas, h in the paper.")
_draws = option(
    "--draws", click.IntRange(2), 100, "Draws of Algorithm 1 at each alpha, B in the paper."
)
_test_samples = option(
    "--test-samples", _COUNT, None, "Size of a test sample for the accuracies; exact without it."
)
_features = option("--features", _COUNT, 10, "Features, d.")
_kappa = option("--kappa", _POSITIVE, 10.0, "Concentration of the directions.")
_sources = option("--sources", _COUNT, 100, "Source tasks, J.")
_samples = option("--samples", click.IntRange(4), 20, "Labelled samples, n.")


@click.group()
def simulate() -> None:
    """Simulation studies of the paper, and one of our own.

    \b
    Examples:
      crossfade simulate figure2 --jobs 2
      crossfade simulate figure3 --panel n --repeats 200
      crossfade simulate misspecified --scenario correlated --correlation 0.5
      crossfade simulate newcomers --samples 6
    """


@simulate.command()
@option(
    "--sources",
    _COUNT,
    (10, 100, 1000),
    "Source tasks, J; give it again for more.",
    multiple=True,
)
@option(
    "--samples",
    click.IntRange(2),
    (10, 20, 50, 100),
    "Labelled samples, n; give it again for more.",
    multiple=True,
)
@_features
@_kappa
@_step
@_test_samples
@repeat_options(1000)
@out_options
def figure2(
    sources: tuple[int, ...],
    samples: tuple[int, ...],
    features: int,
    kappa: float,
    step: float,
    test_samples: int | None,
    repeats: int,
    jobs: int,
    seed: int,
    out: Path,
    image_format: str,
) -> None:
    """Figure 2 of the paper: does the theory predict the accuracy?

    Covariance and half gap are known. Prints the predicted and the true accuracy of each cell,
    the paper's own two beside them, and how far apart they are.

    \b
    Example:
      crossfade simulate figure2 --sources 10 --samples 20 --samples 50
    """
    from crossfade import plots
    from crossfade.simulate._figures import figure2 as study

    with study_of("Figure 2", out) as on_progress:
        table = study(
            n_sources=sources,
            n_targets=samples,
            n_features=features,
            concentration=kappa,
            step=step,
            n_test=test_samples,
            n_repeats=repeats,
            n_jobs=jobs,
            random_state=seed,
            on_progress=on_progress,
        )
    where = write_results(table, lambda: plots.figure2(table), out, "figure2", image_format)
    console = terminal()
    for n_sources, part in table.groupby("n_sources"):
        title = f"Figure 2, J = {n_sources}, d = {features}, kappa = {kappa:g}, {repeats} repeats"
        console.print(_predictions(part, title))
    accuracies = table[table["quantity"] == "accuracy"]
    for n_sources, part in accuracies.groupby("n_sources"):
        ours = (part["predicted"] - part["true"]).abs().max()
        theirs = (part["analytical"] - part["empirical"]).abs().max()
        paper = "" if np.isnan(theirs) else f"; in the paper by up to {theirs:.3f}"
        console.print(f"J = {n_sources}: predicted and true differ by up to {ours:.3f}{paper}.")
    click.echo(where)


@simulate.command()
@click.option(
    "--panel",
    "panels",
    type=click.Choice(["n", "kappa", "d"]),
    multiple=True,
    default=("n", "kappa", "d"),
    show_default=True,
    help="Which panels; give it again for more.",
)
@click.option(
    "--value",
    "values",
    type=float,
    multiple=True,
    help="Values of the one --panel's parameter, instead of the paper's; give it again for more.",
)
@_features
@_kappa
@_sources
@_samples
@_step
@_draws
@_test_samples
@repeat_options(1000)
@out_options
def figure3(
    panels: tuple[str, ...],
    values: tuple[float, ...],
    features: int,
    kappa: float,
    sources: int,
    samples: int,
    step: float,
    draws: int,
    test_samples: int | None,
    repeats: int,
    jobs: int,
    seed: int,
    out: Path,
    image_format: str,
) -> None:
    """Figure 3 of the paper: the effect of n, kappa and d.

    Prints the accuracy of each classifier in each cell, the alpha of each blend and, in brackets,
    how far they are from the paper's own values; then how far the forecasts are from the truth.

    \b
    Example:
      crossfade simulate figure3 --panel kappa --sources 30
    """
    from crossfade import plots
    from crossfade.simulate._figures import figure3 as study

    with study_of("Figure 3", out) as on_progress:
        table = study(
            panels=panels,
            values=values or None,
            n_features=features,
            concentration=kappa,
            n_sources=sources,
            n_target=samples,
            step=step,
            n_draws=draws,
            n_test=test_samples,
            n_repeats=repeats,
            n_jobs=jobs,
            random_state=seed,
            on_progress=on_progress,
        )
    where = write_results(table, lambda: plots.figure3(table), out, "figure3", image_format)
    console = terminal()
    for (panel, covariance), part in table.groupby(["panel", "covariance"], sort=False):
        title = f"Figure 3, effect of {panel}, covariance {covariance}, {repeats} repeats"
        console.print(_by_cell(part, "x", str(panel), title))
        chosen = part[part["classifier"].isin(["paper", "convex", "posterior"])]
        console.print(_by_cell(chosen, "x", str(panel), "The same, alpha", "alpha"))
    for name in ("target", "average-source", "paper"):
        part = table[table["classifier"] == name].dropna(subset="reference_accuracy")
        if len(part):
            apart = (part["accuracy"] - part["reference_accuracy"]).abs().max()
            console.print(f"{name}: up to {apart:.3f} from the paper's figure.")
    for covariance, part in table.groupby("covariance", sort=False):
        _say_forecast(console, part, f", covariance {covariance!s}")
    click.echo(where)


@simulate.command()
@click.option(
    "--scenario",
    "scenarios",
    type=click.Choice(list(SCENARIOS)),
    multiple=True,
    help="Which scenarios; give it again for more. All without it.",
)
@_features
@_kappa
@_sources
@_samples
@option(
    "--freedom",
    click.FloatRange(1.0),
    2.0,
    "wishart: degrees of freedom over d; the fewer, the odder the covariances.",
)
@option(
    "--tails",
    click.FloatRange(2.01),
    3.0,
    "heavy tails: degrees of freedom of the t distribution.",
)
@option(
    "--ratio",
    click.FloatRange(0.001),
    4.0,
    "unequal: variance of the second class over that of the first.",
)
@option("--shift", _POSITIVE, 1.0, "shifted: distance of the midpoint from the origin.")
@option(
    "--correlation",
    click.FloatRange(0.0, 0.999),
    0.8,
    "correlated: correlation of neighbouring samples.",
)
@_step
@_draws
@repeat_options(1000)
@out_options
def misspecified(
    scenarios: tuple[str, ...],
    features: int,
    kappa: float,
    sources: int,
    samples: int,
    freedom: float,
    tails: float,
    ratio: float,
    shift: float,
    correlation: float,
    step: float,
    draws: int,
    repeats: int,
    jobs: int,
    seed: int,
    out: Path,
    image_format: str,
) -> None:
    """What the paper leaves to future work: which blend survives what.

    The model is wrong in one way at a time. All rules take the midpoint of the labelled samples,
    but for "paper, origin", which takes the paper's assumption at its word.

    \b
    Example:
      crossfade simulate misspecified --scenario wishart --scenario stranger --repeats 200
    """
    from crossfade import plots
    from crossfade.simulate._figures import misspecified as study

    with study_of("Misspecified", out) as on_progress:
        table = study(
            scenarios=tuple(dict.fromkeys(scenarios)) or tuple(SCENARIOS),
            n_features=features,
            concentration=kappa,
            n_sources=sources,
            n_target=samples,
            freedom=freedom,
            tails=tails,
            ratio=ratio,
            shift=shift,
            correlation=correlation,
            step=step,
            n_draws=draws,
            n_repeats=repeats,
            n_jobs=jobs,
            random_state=seed,
            on_progress=on_progress,
        )
    where = write_results(
        table, lambda: plots.misspecified(table), out, "misspecified", image_format
    )
    console = terminal()
    console.print(_by_cell(table, "scenario", "scenario", f"Accuracy, {repeats} repeats"))
    for name, part in table.groupby("scenario", sort=False):
        ranked = part.sort_values("accuracy", ascending=False)
        within = ranked["accuracy"] > ranked["accuracy"].iloc[0] - 2 * ranked["accuracy_se"].iloc[0]
        best = " and ".join(f"'{rule}'" for rule in ranked["classifier"][within])
        console.print(
            f"{name} ({SCENARIOS[str(name)]}): best {'is' if within.sum() == 1 else 'are'} {best}."
        )
    _say_forecast(console, table)
    click.echo(where)


@simulate.command()
@option("--repeats", click.IntRange(2), 200, "Newcomers.")
@option("--sources", click.IntRange(1), 100, "Source tasks of the crowd, J.")
@option("--samples", click.IntRange(4), 20, "Labelled samples of a newcomer, n.")
@option("--features", click.IntRange(2), 10, "Features, d.")
@option("--kappa", click.FloatRange(0.0), 10.0, "Concentration of the crowd's directions.")
@option("--seed", click.IntRange(0), 0, "Seed of the random numbers.")
@out_options
def newcomers(
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
      crossfade simulate newcomers
      crossfade simulate newcomers --samples 6 --kappa 50
    """
    from crossfade import plots
    from crossfade.simulate import newcomers as study

    with study_of("Newcomers", out) as on_progress:
        rows = study(
            n_newcomers=repeats,
            n_sources=sources,
            n_target=samples,
            n_features=features,
            concentration=kappa,
            random_state=seed,
            on_progress=on_progress,
        )
    where = write_results(rows, lambda: plots.newcomers(rows), out, "newcomers", image_format)
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


def _predictions(table: pd.DataFrame, title: str) -> Table:
    """Predicted and true values of one number of sources, and the paper's beside them."""
    view = narrow_table(title)
    view.add_column("n", justify="right")
    view.add_column("classifier")
    for name in ("predicted", "true", "apart", "paper's\npred.", "apart", "paper's\ntrue", "apart"):
        view.add_column(name, justify="right")
    for row in table.to_dict("records"):
        is_alpha = row["quantity"] == "alpha"
        view.add_row(
            "" if is_alpha else str(row["n_target"]),
            "  its alpha" if is_alpha else row["classifier"],
            f"{row['predicted']:.4f}",
            f"{row['true']:.4f}",
            f"{row['predicted'] - row['true']:+.3f}",
            *_beside(row["predicted"], row["analytical"]),
            *_beside(row["true"], row["empirical"]),
            end_section=is_alpha,
        )
    errors = table[table["quantity"] == "accuracy"]["true_se"]
    view.caption = (
        "Apart: predicted less true, then ours less the paper's. Standard errors of the true "
        f"accuracies up to {errors.max():.4f}."
    )
    return view


def _beside(ours: float, paper: float) -> tuple[str, str]:
    return ("", "") if np.isnan(paper) else (f"{paper:.4f}", f"{ours - paper:+.3f}")


def _by_cell(
    table: pd.DataFrame,
    column: str,
    label: str,
    title: str,
    quantity: str = "accuracy",
) -> Table:
    """Classifiers across, cells down; differences from the paper's figure in brackets."""
    reference = f"reference_{quantity}"
    compared = reference in table and bool(table[reference].notna().any())
    view = narrow_table(title)
    view.add_column(label, no_wrap=True)
    classifiers = list(dict.fromkeys(table["classifier"]))
    for name in classifiers:
        view.add_column(name.replace("-", "-\n").replace(", ", ",\n"), justify="right")
    for value, part in table.groupby(column, sort=False):
        cells = []
        for row in part.set_index("classifier").loc[classifiers].to_dict("records"):
            text = f"{row[quantity]:.3f}"
            if compared and not np.isnan(row[reference]):
                text += f"\n({row[quantity] - row[reference]:+.3f})"
            cells.append(text)
        view.add_row(f"{value:g}" if isinstance(value, float) else str(value), *cells)
    view.caption = f"Standard errors up to {table[f'{quantity}_se'].max():.4f}."
    if compared:
        view.caption += " In brackets: the difference from the paper's figure."
    return view


def _say_forecast(console: Console, table: pd.DataFrame, note: str = "") -> None:
    for name in ("convex", "posterior"):
        part = table[table["classifier"] == name]
        apart = part["expected"] - part["accuracy"]
        console.print(f"Forecast of {name}{note}: off by {apart.min():+.3f} to {apart.max():+.3f}.")

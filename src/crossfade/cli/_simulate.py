"""``crossfade simulate``: the paper's two simulation studies, and two of our own."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossfade.cli._options import COUNT, jobs_option, option, out_options, seed_option, together
from crossfade.cli._output import narrow_table, study_of, terminal, write_results

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

#: Names of the scenarios, those of :func:`crossfade.simulate.misspecified`.
_SCENARIOS = (
    *("as assumed", "wishart", "heavy tails", "unequal"),
    *("shifted", "correlated", "two clusters", "stranger"),
)
#: Columns of a table that fit 80 letters with double gaps.
_FEW = 6
_step = option(
    "--step", click.FloatRange(1e-3, 1.0), 0.1, "Step of the grid of alphas, h in the paper."
)
_draws = option(
    "--draws", click.IntRange(2), 100, "Draws of Algorithm 1 at each alpha, B in the paper."
)
_repeats = together(
    option("--repeats", click.IntRange(2), 1000, "Repeats of each cell."),
    jobs_option(),
    seed_option,
)
#: Recipes of :func:`crossfade.simulate.figure2`.
_recipe = option(
    "--recipe",
    click.Choice(["ours", "printed", "authors"]),
    "ours",
    "The right formulas, those of the paper's text, or what its authors ran.",
)
_out = out_options(Path("results"), "Folder for the table and the figure.")


@click.group()
def simulate() -> None:
    """Run the paper's simulations, and two of our own.

    \b
    Examples:
      crossfade simulate figure2
      crossfade simulate figure3 --panel n --repeats 200
      crossfade simulate misspecified --scenario correlated
      crossfade simulate newcomers --samples 6
    """


@simulate.command(short_help="Figure 2 of the paper: does the theory predict the accuracy?")
@option(
    "--sources",
    COUNT,
    (10, 100, 1000),
    "Number of source tasks, J; repeat it for several.",
    multiple=True,
)
@option(
    "--samples",
    click.IntRange(2),
    (10, 20, 50, 100),
    "Number of labelled samples, n; repeat it for several.",
    multiple=True,
)
@_step
@_recipe
@_repeats
@_out
def figure2(
    sources: tuple[int, ...],
    samples: tuple[int, ...],
    step: float,
    recipe: str,
    repeats: int,
    jobs: int,
    seed: int,
    out: Path,
    image_format: str,
) -> None:
    """Figure 2 of the paper: does the theory predict the accuracy?

    Covariance and half gap are known. Prints the predicted and the true accuracy of each cell,
    the paper's values of both, and the differences.

    \b
    Examples:
      crossfade simulate figure2 --sources 10 --samples 20 --samples 50
      crossfade simulate figure2 --recipe authors
    """
    from crossfade import plots
    from crossfade.simulate import figure2 as study

    with study_of("Figure 2", out) as on_progress:
        table = study(
            n_sources=sources,
            n_targets=samples,
            step=step,
            recipe=recipe,
            n_repeats=repeats,
            n_jobs=jobs,
            random_state=seed,
            on_progress=on_progress,
        )
    name = "figure2" + _ending(recipe)
    where = write_results(table, lambda: plots.figure2(table), out, name, image_format)
    console = terminal()
    for n_sources, part in table.groupby("n_sources"):
        title = f"Figure 2{_by(recipe)}, J = {n_sources}, {repeats} repeats"
        console.print(_predictions(part, title))
    accuracies = table[table["quantity"] == "accuracy"]
    for n_sources, part in accuracies.groupby("n_sources"):
        ours = (part["predicted"] - part["true"]).abs().max()
        theirs = (part["analytical"] - part["empirical"]).abs().max()
        paper = "" if isnan(theirs) else f"; in the paper by up to {theirs:.3f}"
        console.print(f"J = {n_sources}: predicted and true differ by up to {ours:.3f}{paper}.")
    click.echo(where)


@simulate.command(short_help="Figure 3 of the paper: the effect of n, kappa and d.")
@click.option(
    "--panel",
    "panels",
    type=click.Choice(["n", "kappa", "d"]),
    multiple=True,
    default=("n", "kappa", "d"),
    show_default=True,
    help="Panel to compute; repeat it for several.",
)
@click.option(
    "--value",
    "values",
    type=float,
    multiple=True,
    help="Value of the panel's parameter, instead of the paper's; repeat it for several. Needs "
    "one --panel.",
)
@_step
@_draws
@_recipe
@_repeats
@_out
def figure3(
    panels: tuple[str, ...],
    values: tuple[float, ...],
    step: float,
    draws: int,
    recipe: str,
    repeats: int,
    jobs: int,
    seed: int,
    out: Path,
    image_format: str,
) -> None:
    """Figure 3 of the paper: the effect of n, kappa and d.

    Prints the accuracy of each classifier in each cell and the alpha of each blend, with the
    difference from the paper's value in brackets; then how far the forecasts are from the truth.

    \b
    Examples:
      crossfade simulate figure3
      crossfade simulate figure3 --panel kappa --value 5 --value 50
      crossfade simulate figure3 --recipe authors
    """
    from crossfade import plots
    from crossfade.plots import method_of
    from crossfade.simulate import figure3 as study

    with study_of("Figure 3", out) as on_progress:
        table = study(
            panels=panels,
            values=values or None,
            step=step,
            n_draws=draws,
            recipe=recipe,
            n_repeats=repeats,
            n_jobs=jobs,
            random_state=seed,
            on_progress=on_progress,
        )
    name = "figure3" + _ending(recipe)
    where = write_results(table, lambda: plots.figure3(table), out, name, image_format)
    console = terminal()
    for (panel, covariance), part in table.groupby(["panel", "covariance"], sort=False):
        known = _known(str(covariance))
        title = f"Figure 3{_by(recipe)}, effect of {panel}, covariance {known}, {repeats} repeats"
        console.print(_by_cell(part, "x", str(panel), title))
        chosen = part[part["classifier"].isin(["paper", "convex", "posterior"])]
        console.print(_by_cell(chosen, "x", str(panel), "The same, alpha", "alpha"))
    for name in ("target", "average-source", "paper"):
        part = table[table["classifier"] == name].dropna(subset="reference_accuracy")
        if len(part):
            apart = (part["accuracy"] - part["reference_accuracy"]).abs().max()
            console.print(f"{method_of(name).label}: up to {apart:.3f} from the paper's figure.")
    if recipe == "ours":
        for covariance, part in table.groupby("covariance", sort=False):
            _say_forecast(console, part, f", covariance {_known(str(covariance))}")
    click.echo(where)


@simulate.command(short_help="What the paper leaves open: which blend survives a wrong model?")
@click.option(
    "--scenario",
    "scenarios",
    type=click.Choice(_SCENARIOS),
    multiple=True,
    help="Scenario to compute; repeat it for several. All by default.",
)
@_step
@_draws
@_repeats
@_out
def misspecified(
    scenarios: tuple[str, ...],
    step: float,
    draws: int,
    repeats: int,
    jobs: int,
    seed: int,
    out: Path,
    image_format: str,
) -> None:
    """What the paper leaves to future work: which blend survives a wrong model?

    The model is wrong in one way at a time. All rules put their threshold at the midpoint of the
    labelled samples, except "Paper's (origin)", which puts it at the origin, as the paper assumes.

    \b
    Example:
      crossfade simulate misspecified --scenario wishart --scenario stranger --repeats 200
    """
    from crossfade import plots
    from crossfade.plots import spoken
    from crossfade.simulate import misspecified as study
    from crossfade.simulate._scenarios import SCENARIOS

    with study_of("Misspecified", out) as on_progress:
        table = study(
            scenarios=tuple(dict.fromkeys(scenarios or _SCENARIOS)),
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
        *others, last = (spoken(rule) for rule in ranked["classifier"][within])
        best = f"best are {', '.join(others)} and {last}" if others else f"best is {last}"
        console.print(f"{name} ({SCENARIOS[str(name)]}): {best}.", highlight=False)
    _say_forecast(console, table)
    click.echo(where)


@simulate.command(short_help="Our estimators and scikit-learn's LDA on simulated newcomers.")
@option("--repeats", click.IntRange(2), 200, "Number of newcomers.")
@option("--samples", click.IntRange(4), 20, "Labelled samples of a newcomer, n.")
@option("--kappa", click.FloatRange(0.0), 10.0, "Concentration of the crowd's directions.")
@seed_option
@_out
def newcomers(
    repeats: int, samples: int, kappa: float, seed: int, out: Path, image_format: str
) -> None:
    """Compare our estimators with scikit-learn's LDA on simulated newcomers.

    A crowd of 100 source tasks gives the prior; each newcomer brings a few labelled samples.
    Accuracies are exact, not counted on a test sample.

    \b
    Examples:
      crossfade simulate newcomers
      crossfade simulate newcomers --samples 6 --kappa 50
    """
    from crossfade import plots
    from crossfade.plots import method_of
    from crossfade.simulate import newcomers as study

    with study_of("Newcomers", out) as on_progress:
        rows = study(
            n_newcomers=repeats,
            n_target=samples,
            concentration=kappa,
            random_state=seed,
            on_progress=on_progress,
        )
    where = write_results(rows, lambda: plots.newcomers(rows), out, "newcomers", image_format)
    accuracy = rows.pivot(index="newcomer", columns="classifier", values="accuracy")
    forecast = rows.groupby("classifier")["expected"].mean()
    view = narrow_table(f"{repeats} newcomers with {samples} labelled samples each")
    view.caption = "LDA has automatic shrinkage; the person alone is ours, without a prior"
    view.add_column("classifier")
    for name in ("accuracy", "forecast", "better than LDA for"):
        view.add_column(name, justify="right")
    console = terminal()
    give_or_take = "±" if console.encoding.lower().startswith("utf") else "+-"
    rival = "lda"
    for name in dict.fromkeys(rows["classifier"]):
        values = accuracy[name]
        better = (values > accuracy[rival]).sum()
        view.add_row(
            method_of(name).label,
            f"{values.mean():.3f} {give_or_take} {values.sem():.3f}",
            "" if forecast.isna()[name] else f"{forecast[name]:.3f}",
            "" if name == rival else f"{better} of {repeats}",
        )
    console.print(view)
    click.echo(where)


def _ending(recipe: str) -> str:
    """End of the name of a file."""
    return "" if recipe == "ours" else f"-{recipe}"


def _by(recipe: str) -> str:
    """What a title says of the recipe."""
    return {"ours": "", "printed": " as printed", "authors": " as its authors ran it"}[recipe]


def _predictions(table: pd.DataFrame, title: str) -> Table:
    """Predicted and true values for one number of sources, and the paper's beside them."""
    from crossfade.plots import method_of

    view = narrow_table(title)
    view.add_column("n", justify="right")
    view.add_column("classifier")
    for name in ("predicted", "true", "apart", "paper's\npred.", "apart", "paper's\ntrue", "apart"):
        view.add_column(name, justify="right")
    for row in table.to_dict("records"):
        is_alpha = row["quantity"] == "alpha"
        view.add_row(
            "" if is_alpha else str(row["n_target"]),
            "  its alpha" if is_alpha else method_of(row["classifier"]).label,
            f"{row['predicted']:.4f}",
            f"{row['true']:.4f}",
            f"{row['predicted'] - row['true']:+.3f}",
            *_beside(row["predicted"], row["analytical"]),
            *_beside(row["true"], row["empirical"]),
            end_section=is_alpha,
        )
    errors = table[table["quantity"] == "accuracy"]["true_se"]
    view.caption = (
        "Apart: predicted minus true, then ours minus the paper's. Standard errors of the true "
        f"accuracies are at most {errors.max():.4f}."
    )
    return view


def _beside(ours: float, paper: float) -> tuple[str, str]:
    return ("", "") if isnan(paper) else (f"{paper:.4f}", f"{ours - paper:+.3f}")


def _by_cell(
    table: pd.DataFrame,
    column: str,
    label: str,
    title: str,
    quantity: str = "accuracy",
) -> Table:
    """Classifiers across, cells down; differences from the paper's figure in brackets."""
    from crossfade.plots import method_of

    reference = f"reference_{quantity}"
    compared = reference in table and bool(table[reference].notna().any())
    view = narrow_table(title)
    view.add_column(label, no_wrap=True)
    classifiers = list(dict.fromkeys(table["classifier"]))
    if len(classifiers) > _FEW:
        # Single gaps, so that the table fits 80 columns.
        view.padding = (0, 0, 0, 0)
    for name in classifiers:
        view.add_column(
            method_of(name).label.replace(" ", "\n").replace("-", "-\n"), justify="right"
        )
    for value, part in table.groupby(column, sort=False):
        cells = []
        for row in part.set_index("classifier").loc[classifiers].to_dict("records"):
            text = f"{row[quantity]:.3f}"
            if compared and not isnan(row[reference]):
                text += f"\n({row[quantity] - row[reference]:+.3f})"
            cells.append(text)
        view.add_row(f"{value:g}" if isinstance(value, float) else str(value), *cells)
    view.caption = f"Standard errors are at most {table[f'{quantity}_se'].max():.4f}."
    if compared:
        view.caption += " In brackets: the difference from the paper's figure."
    return view


def _say_forecast(console: Console, table: pd.DataFrame, note: str = "") -> None:
    """How far forecasts are from the truth, in words."""
    from crossfade.plots import spoken

    for name in ("convex", "posterior"):
        part = table[table["classifier"] == name]
        apart = part["expected"] - part["accuracy"]
        off = f"off by {apart.min():+.3f} to {apart.max():+.3f}"
        console.print(f"Forecast of {spoken(name)}{note}: {off}.", highlight=False)


def _known(covariance: str) -> str:
    """Whether the covariance is known, as figures say it."""
    return "known" if covariance == "known" else "estimated"

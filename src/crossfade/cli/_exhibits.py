"""Exhibits of ``crossfade reproduce``: each figure of the paper, run, drawn and checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from crossfade.cli._output import narrow_table, study_of, terminal, write_results
from crossfade.cli._study import PROPORTIONS, run_study

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from rich.table import Table

    from crossfade.report._paper import Shown
    from crossfade.study._published import PaperStudy
    from crossfade.study._reproduced import Check, Exhibit

#: Repeats and splits that the tolerances are for.
REPEATS, SPLITS = 1000, 100
#: Samples of the target in Figure 1.
_N_SAMPLES = 40
#: The paper's methods that its figures of studies show.
_SHOWN = ("target", "average-source", "paper", "oracle")


#: Recipe, caption and figure.
_Drawing = tuple[str, str, "Figure"]


@dataclass(frozen=True)
class Run:
    """What was asked for."""

    out: Path
    recipes: Sequence[str]
    repeats: int
    splits: int
    jobs: int
    seed: int
    matb: Path | None
    wesad: Path | None
    #: Whether simulated data take the place of recordings that are not there.
    stand_ins: bool

    @property
    def short(self) -> str:
        """What to think of a cross after fewer repeats or splits; empty where there are enough."""
        if self.repeats >= REPEATS and self.splits >= SPLITS:
            return ""
        return (
            f"The tolerances are for {REPEATS:,} repeats and {SPLITS} splits: with fewer, a "
            "cross may be chance."
        )

    @property
    def vectors(self) -> list[str]:
        """Studies of Figure 7."""
        folders = {"mental-math": Path(), "matb": self.matb, "wesad": self.wesad}
        return [key for key, folder in folders.items() if self.stand_ins or folder is not None]


# -- what is said of checks -----------------------------------------------------------------------


def _shown(
    exhibit: Exhibit,
    drawings: Sequence[_Drawing],
    begun: float,
    what: str,
) -> Shown:
    """Say what the checks of an exhibit found, and keep it for the page."""
    from crossfade.report._paper import Shown

    if exhibit.checks:
        terminal().print(_checked(exhibit.name, exhibit.checks))
    return Shown(exhibit, drawings, perf_counter() - begun, f"crossfade reproduce {what}")


def _checked(name: str, checks: Sequence[Check]) -> Table:
    """One line for each check: is it reproduced, and what was found."""
    from crossfade.report._paper import BY

    console = terminal()
    yes, no = ("✓", "✗") if console.encoding.lower().startswith("utf") else ("yes", "no")
    ends = "is it reproduced?" if name.startswith("Figure") else "do they hold?"
    view = narrow_table(f"{name}: {ends}")
    for head in ("", "what", "by which recipe", "allowed", "found"):
        view.add_column(head, overflow="fold")
    for check in checks:
        mark = f"[green]{yes}[/]" if check.passed else f"[red]{no}[/]"
        view.add_row(mark, check.what, BY[check.recipe], check.tolerance, check.reason)
    return view


def _drawn(draw: Callable[[], Figure], caption: str, recipe: str = "") -> list[_Drawing]:
    """A drawing with its recipe and caption; none without matplotlib."""
    try:
        return [(recipe, caption, draw())]
    except ModuleNotFoundError as reason:
        if not (reason.name or "").startswith("matplotlib"):
            raise
        return []


# -- figures 1, 2, 3 and 8 ------------------------------------------------------------------------


def figure1(run: Run) -> list[Shown]:
    from crossfade import plots
    from crossfade.study import reproduce
    from crossfade.study._reproduced import Exhibit

    begun = perf_counter()
    with study_of("Figure 1", run.out):
        table = reproduce.figure1(n_samples=_N_SAMPLES, random_state=run.seed)
    points = table.set_index("role")[["x", "y", "z"]]

    def draw() -> Figure:
        return plots.blend_geometry(
            points.loc["target"], points.loc["source"], points.loc["sample"]
        )

    click.echo(write_results(table, draw, run.out, "figure1", "png"))
    exhibit = Exhibit("Figure 1", "what a blend of two directions can be", [], sketch=True)
    caption = "A target's samples and the direction learnt from them, the sources, their mean "
    caption += (
        "direction, and all blends of the two. Samples are drawn at a third of their distance."
    )
    return [_shown(exhibit, _drawn(draw, caption), begun, "figure1")]


_TITLES = {
    "figure2": "does the theory predict the accuracy?",
    "figure3": "the effect of n, kappa and d",
}


def simulated(name: str, run: Run) -> list[Shown]:
    """Figure 2 or 3, by each recipe."""
    from crossfade import plots
    from crossfade.study import _reproduced, reproduce

    begun, checks = perf_counter(), []
    drawings: list[_Drawing] = []
    title = name.replace("figure", "Figure ")
    for recipe in run.recipes:
        with study_of(f"{title}, {recipe}", run.out) as on_progress:
            table = getattr(reproduce, name)(
                recipe=recipe,
                n_repeats=run.repeats,
                n_jobs=run.jobs,
                random_state=run.seed,
                on_progress=on_progress,
            )
        draw = partial(getattr(plots, name), table)
        click.echo(write_results(table, draw, run.out, f"{name}-{recipe}", "png"))
        checks += getattr(_reproduced, f"{name}_checks")(table, recipe)
        drawings += _drawn(draw, "Lines are ours, open markers the paper's.", recipe)
    exhibit = _reproduced.Exhibit(title, _TITLES[name], checks)
    return [_shown(exhibit, drawings, begun, name)]


def _begin(recipe: str) -> str:
    return {"printed": "By the text", "authors": "As its authors ran it"}[recipe]


def effect_of_b(run: Run) -> list[Shown]:
    from crossfade import plots
    from crossfade.study import _reproduced, reproduce

    begun, checks = perf_counter(), []
    drawings: list[_Drawing] = []
    for recipe in run.recipes:
        with study_of(f"Effect of B, {recipe}", run.out) as on_progress:
            table = reproduce.effect_of_b(
                random_state=run.seed, recipe=recipe, n_jobs=run.jobs, on_progress=on_progress
            )
        draw = partial(plots.effect_of_b, table)
        click.echo(write_results(table, draw, run.out, f"effect-of-b-{recipe}", "png"))
        terminal().print(_errors(table, recipe))
        checks += _reproduced.figure8_checks(table, recipe)
        drawings += _drawn(draw, "Lines are ours, open markers the paper's.", recipe)
    title = "the error of alpha by the number of draws, subject 6 of Mental Math"
    return [_shown(_reproduced.Exhibit("Figure 8", title, checks), drawings, begun, "effect-of-b")]


def _errors(table: pd.DataFrame, recipe: str) -> Table:
    """Errors of alpha, the paper's in brackets."""
    view = narrow_table(f"Mean absolute error of alpha after B draws, {_begin(recipe).lower()}")
    # Those of 10,000 draws are what the others are compared with.
    table = table[table["error"].notna()]
    view.add_column("labelled", justify="right")
    for count in dict.fromkeys(table["n_draws"]):
        view.add_column(f"B = {count}", justify="right")
    for share, part in table.groupby("proportion"):
        cells = [f"{row['error']:.3f} ({row['reference']:.3f})" for row in part.to_dict("records")]
        view.add_row(f"{share:.0%}", *cells)
    view.caption = "In brackets: the paper's Figure 8. The exact minimum needs no draws."
    return view


# -- studies --------------------------------------------------------------------------------------

#: What to say before a study is run on a stand-in for the paper's recordings.
_STAND_INS = {
    "matb-like": "The MATB recordings are not public. This is a simulated stand-in of 100 sessions "
    "and 24 features, made to come near the paper's values in brackets. --matb FOLDER runs the "
    "study on the recordings.",
    "wesad-like": "WESAD cannot be shipped. This is a simulated stand-in of 14 participants and 3 "
    "features, made to come near the paper's values in brackets. --wesad FOLDER runs the study on "
    "the recordings.",
}
#: Figure and title of each study, and what to say where there are no recordings.
_STUDIES = {
    "matb": ("Figure 4", "mental load (MATB)"),
    "mental-math": ("Figure 5", "mental arithmetic (Mental Math)"),
    "wesad": ("Figure 6", "stress (WESAD)"),
}
_MISSING = {
    "matb-like": (
        "matb",
        "The MATB recordings are not public. With a folder of them, this command runs the study "
        "with features by the text and as the authors had them:",
        "crossfade reproduce all --matb FOLDER",
    ),
    "wesad": (
        "wesad",
        "WESAD cannot be shipped with this package. Get it from its authors (Schmidt et al. 2018); "
        "this command then runs the study with features by the text and as the paper's authors "
        "had them:",
        "crossfade reproduce all --wesad FOLDER",
    ),
}


def without_data(name: str) -> Shown:
    from crossfade.report._paper import Shown
    from crossfade.study._reproduced import Exhibit

    key, missing, command = _MISSING[name]
    return Shown(Exhibit(*_STUDIES[key], [], missing), [], 0.0, command)


def mental_math(run: Run) -> list[Shown]:
    from crossfade.study import _reproduced, reproduce
    from crossfade.study._published import mental_math_study

    shown, means = _study(run, "mental-math", mental_math_study)
    begun, checks = perf_counter(), []
    for recipe in run.recipes:
        found = reproduce.vectors(studies=["mental-math"], recipe=recipe).summary
        kappa = float(found.loc[found["recipe"] == recipe, "kappa"].iloc[0])
        checks += _reproduced.text_checks(means[recipe], kappa, recipe)
    title = "what the paper says of Mental Math"
    exhibit = _reproduced.Exhibit("Numbers of the text", title, checks)
    return [*shown, _shown(exhibit, [], begun, "mental-math")]


def matb(run: Run) -> list[Shown]:
    from crossfade.study._published import matb_study

    return _study(run, "matb", partial(matb_study, run.matb, run.jobs))[0]


def wesad(run: Run) -> list[Shown]:
    from crossfade.study._published import wesad_study

    terminal().print(_wesad_statistics())
    return _study(run, "wesad", partial(wesad_study, run.wesad, run.jobs))[0]


def _study(
    run: Run, key: str, make: Callable[..., PaperStudy]
) -> tuple[list[Shown], dict[str, pd.DataFrame]]:
    """One of the paper's studies by each recipe, and means by task of each."""
    from crossfade import plots
    from crossfade.study import _reproduced

    begun, checks = perf_counter(), []
    drawings: list[_Drawing] = []
    found = {}
    for recipe in run.recipes:
        study, last = make(recipe=recipe), recipe == run.recipes[-1]
        if study.name in _STAND_INS and not last:
            # Simulated data know nothing of recipes.
            continue
        means = _in_full(study, recipe, run) if last else _in_short(study, recipe, run)
        found[recipe] = means
        if study.name not in _STAND_INS:
            checks += _reproduced.study_checks(key, means, recipe)
        rows = means[means["method"].isin(_SHOWN)]
        caption = "Mean balanced accuracy, with 95 % intervals over people; open circles are the "
        draw = partial(plots.accuracy_by_budget, rows, reference=study.printed)
        drawings += _drawn(draw, f"{caption}paper's.", recipe)
    drawings += _drawn(partial(plots.alphas, rows), "Mean alpha of each person.", recipe)
    drawings += _drawn(
        partial(plots.differences, rows, "paper", "target"),
        "Gain of each person: the optimal classifier's balanced accuracy minus the target's.",
        recipe,
    )
    exhibit = _reproduced.Exhibit(*_STUDIES[key], checks)
    what = {"matb": "matb-like"}.get(key, key)
    return [_shown(exhibit, drawings, begun, what)], found


def _in_full(study: PaperStudy, recipe: str, run: Run) -> pd.DataFrame:
    """Means by task of all methods; their table is printed and a report written."""
    if study.name in _STAND_INS:
        click.echo(_STAND_INS[study.name])
    result = run_study(
        study.load,
        run.out / (study.name + "-printed" * (recipe == "printed")),
        methods=study.methods,
        budgets=PROPORTIONS,
        n_splits=run.splits,
        jobs=run.jobs,
        seed=run.seed,
        title=f"{study.title}, {_begin(recipe).lower()}",
        paper=study.printed,
    )
    return result.means


def _in_short(study: PaperStudy, recipe: str, run: Run) -> pd.DataFrame:
    """Means by task of the methods of the paper's figure, by a recipe."""
    from crossfade.study import CalibrationStudy

    methods = [one for one in study.methods if getattr(one, "name", one) in _SHOWN]
    with study_of(f"Study, {recipe}", run.out) as on_progress:
        plan = CalibrationStudy(
            study.load(),
            methods=methods,
            n_splits=run.splits,
            random_state=run.seed,
            forecasts=False,
        )
        return plan.run(n_jobs=run.jobs, on_progress=on_progress).means


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


# -- Figure 7 -------------------------------------------------------------------------------------

#: What to think of clusters.
_CUT = (
    "Colours are clusters, not kinds of people: one crowd that differs more in some directions "
    "than in others is cut in clusters, too."
)


def vectors(run: Run) -> list[Shown]:
    from crossfade import plots
    from crossfade.study import _reproduced, reproduce

    begun = perf_counter()
    drawings: list[_Drawing] = []
    sizes: dict[str, list[int]] = {}
    view = narrow_table("Directions of the tasks, in brackets the paper's")
    for head in ("of", "directions", "kappa", "clusters"):
        view.add_column(head, justify="left" if head in ("of", "directions") else "right")
    written = []
    for recipe in run.recipes:
        with study_of(f"Vectors, {recipe}", run.out) as on_progress:
            found = reproduce.vectors(
                matb=run.matb,
                wesad=run.wesad,
                n_jobs=run.jobs,
                recipe=recipe,
                studies=run.vectors,
                on_progress=on_progress,
            )
        for line in found.summary.to_dict("records"):
            name, theirs = line["study"], line["recipe"] == recipe
            if not theirs and recipe != run.recipes[0]:
                continue
            points = _embedded(found.directions, name, line["recipe"])
            clusters, kappa = f"{points['cluster'].nunique()}", f"{line['kappa']:.2f}"
            if theirs:
                # The paper's text says no more of its clusters than that they are two or more.
                kappa, clusters = f"{kappa} ({line['published']:g})", f"{clusters} (2 or more)"
            label = _begin(recipe).lower() if theirs else "ours"
            view.add_row(name, label, kappa, clusters)
            file = f"vectors-{name}{f'-{recipe}' * theirs}"
            draw = partial(plots.projection_vectors, points)
            written.append(write_results(points, draw, run.out, file, "png"))
            if theirs and not name.endswith("-like"):
                drawings += _drawn(draw, f"Directions of {_STUDIES[name][1]}. {_CUT}", recipe)
            if theirs and name == "mental-math":
                sizes[recipe] = points["cluster"].value_counts().tolist()
    view.caption = (
        "The paper's directions: pseudo-inverse, raw units; ours are shrunk and scaled. Clusters: "
        "a Gaussian mixture, their number by BIC."
    )
    terminal().print(view)
    click.echo("\n".join(written))
    checks = _reproduced.figure7_checks(sizes)
    lacking = [name for name in ("matb", "wesad") if getattr(run, name) is None]
    names = " and ".join(name.upper() for name in lacking)
    missing = f"The panels of {names} need recordings that are not here." if lacking else ""
    title = "how the directions of people agree"
    exhibit = _reproduced.Exhibit("Figure 7", title, checks, missing)
    return [_shown(exhibit, drawings, begun, "vectors")]


def _embedded(directions: pd.DataFrame, study: str, recipe: str) -> pd.DataFrame:
    """Points and clusters of the directions of one study."""
    from crossfade import plots

    own = directions[(directions["study"] == study) & (directions["recipe"] == recipe)]
    W = own.filter(regex=r"^w\d+$").dropna(axis=1).to_numpy()
    how = "authors" if recipe == "authors" else "printed"
    return plots.embed_directions(W, recipe=how).assign(task=own["task"].to_numpy())

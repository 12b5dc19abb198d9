"""``python -m reproduction``: run the paper's figures and numbers anew, and write one page."""

import argparse
import sys
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from time import perf_counter

import pandas as pd
from matplotlib.figure import Figure

from reproduction import RECIPES, applications, checks, directions, draws, figures
from reproduction.checks import Check, Exhibit
from reproduction.own_simulations import SCENARIOS, misspecified, newcomers
from reproduction.page import BY, Drawing, Shown, headline, write_page
from reproduction.published import statistics_of
from reproduction.simulations import figure2, figure3

#: Repeats and splits that the tolerances are for.
_REPEATS, _SPLITS = 1000, 100
#: The paper's studies that need recordings: figure, title, and what to say without them.
_STUDIES = {
    "matb": ("Figure 4", "mental load (MATB)", "The MATB recordings are not public."),
    "mental-math": ("Figure 5", "mental arithmetic (Mental Math)", ""),
    "wesad": (
        "Figure 6",
        "stress (WESAD)",
        "WESAD cannot be shipped. Get it from its authors (Schmidt et al. 2018).",
    ),
}


class Part:
    """One exhibit in the making: its checks, drawings and tables."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self.name, self.options = name, options
        self.checks: list[Check] = []
        self.drawings: list[Drawing] = []
        self.tables: list[str] = []
        self.begun = perf_counter()

    def keep(
        self, table: pd.DataFrame, file: str, figure: Figure, caption: str, recipe: str = ""
    ) -> None:
        """Write a table and its drawing."""
        name = f"{file}-{recipe}" if recipe else file
        table.to_csv(self.options.out / f"{name}.csv", index=False)
        path = self.options.out / f"{name}.png"
        figure.savefig(path, dpi=200)
        self.tables.append(f"{name}.csv")
        self.drawings.append(Drawing(path, recipe, f"{caption} {BY.get(recipe, '')}".strip()))

    def shown(self, figure: str, title: str, note: str = "", missing: str = "") -> Shown:
        """The exhibit; its checks are printed."""
        exhibit = Exhibit(figure, title, self.checks, note, missing)
        for check in self.checks:
            mark = "ok " if check.passed else "NOT"
            print(f"  {mark} {BY[check.recipe]}: {check.what}. {check.reason}")
        seconds = 0.0 if missing else perf_counter() - self.begun
        command = f'make reproduce ARGS="{self.name}"'
        return Shown(exhibit, self.drawings, self.tables, seconds, command)


# -- the parts ------------------------------------------------------------------------------------


def _figure1(part: Part) -> list[Shown]:
    table = directions.figure1(seed=part.options.seed)
    caption = "A target's samples and the direction learnt from them, the sources, their mean "
    caption += (
        "direction, and all blends of the two. Samples are drawn at a third of their distance."
    )
    part.keep(table, "figure1", figures.figure1(table), caption)
    return [part.shown("Figure 1", "what a blend of two directions can be", "It is a sketch.")]


def _simulated(part: Part) -> list[Shown]:
    make = {"figure2": figure2, "figure3": figure3}[part.name]
    titles = {
        "figure2": "does the theory predict the accuracy?",
        "figure3": "the effect of n, kappa and d",
    }
    options = part.options
    for recipe in options.recipes:
        table = make(recipe, options.repeats, options.jobs, options.seed)
        part.checks += getattr(checks, f"{part.name}_checks")(table, recipe)
        figure = getattr(figures, part.name)(table)
        part.keep(table, part.name, figure, "Lines are ours, open markers the paper's,", recipe)
    return [part.shown(part.name.replace("figure", "Figure "), titles[part.name])]


def _study(part: Part) -> list[Shown]:
    options = part.options
    figure, title, lacking = _STUDIES[part.name]
    folder = getattr(options, part.name, None)
    if lacking and folder is None:
        lacking += f' With them: make reproduce ARGS="--{part.name} FOLDER".'
        print(f"  {lacking}")
        return [part.shown(figure, title, missing=lacking)]
    said = []
    for recipe in options.recipes:
        tasks = applications.load(part.name, folder, recipe, options.jobs)
        means = applications.run_study(tasks, recipe, options.splits, options.jobs, options.seed)
        part.checks += checks.study_checks(part.name, means, recipe)
        if part.name == "mental-math":
            kappa = directions.vectors(tasks, recipe).kappa
            said += checks.text_checks(means, kappa, recipe)
        printed = statistics_of(part.name)
        printed = printed[printed["statistic"] == "mean_balanced_accuracy"]
        caption = "Mean balanced accuracy with 95 % intervals over people, open circles are the "
        caption += "paper's; alpha and gain of each person,"
        part.keep(means, part.name, figures.study(means, printed), caption, recipe)
    shown = [part.shown(figure, title)]
    if said:
        text = Part(part.name, options)
        text.checks = said
        shown.append(text.shown("Numbers of the text", "what the paper says about Mental Math"))
    return shown


def _vectors(part: Part) -> list[Shown]:
    options, sizes = part.options, {}
    studies = [name for name in _STUDIES if name == "mental-math" or getattr(options, name)]
    for recipe in options.recipes:
        for name in studies:
            tasks = applications.load(name, getattr(options, name, None), recipe, options.jobs)
            found = directions.vectors(tasks, recipe)
            points = directions.embed(found.directions, recipe)
            points.insert(0, "task", [task.name for task in tasks])
            [theirs] = statistics_of(name).query("statistic == 'kappa'")["value"]
            caption = f"Directions of {_STUDIES[name][1]}: kappa {found.kappa:.2f}, in the paper "
            part.keep(
                points, f"vectors-{name}", figures.vectors(points), f"{caption}{theirs:g};", recipe
            )
            if name == "mental-math":
                sizes[recipe] = points["cluster"].value_counts().tolist()
    part.checks = checks.figure7_checks(sizes)
    note = "Clusters are not kinds of people: one crowd that differs more in some directions than "
    note += "in others is cut into clusters, too."
    lacking = [name.upper() for name in _STUDIES if name not in studies]
    if lacking:
        note += f" The panels of {' and '.join(lacking)} need recordings."
    return [part.shown("Figure 7", "how the directions of people agree", note)]


def _effect_of_b(part: Part) -> list[Shown]:
    options = part.options
    for recipe in options.recipes:
        table = draws.effect_of_b(recipe, options.splits, 30, options.jobs, options.seed)
        part.checks += checks.figure8_checks(table, recipe)
        caption = "Lines are ours, open circles the paper's,"
        part.keep(table, "effect-of-b", figures.effect_of_b(table), caption, recipe)
    title = "the error of alpha by the number of draws, subject 6 of Mental Math"
    return [part.shown("Figure 8", title)]


def _right(part: Part) -> list[Shown]:
    options = part.options
    for name, make, draw in (
        ("figure2", figure2, figures.figure2),
        ("figure3", figure3, figures.figure3),
    ):
        table = make("right", options.repeats // 5, options.jobs, options.seed)
        caption = (
            f"{name.replace('figure', 'Figure ')} with the library's formulas and estimators. "
        )
        part.keep(table, f"{name}-right", draw(table), f"{caption}Open markers are the paper's.")
    title = "Figures 2 and 3 by the right formulas"
    return [part.shown("Right formulas", title)]


def _misspecified(part: Part) -> list[Shown]:
    options = part.options
    table = misspecified(n_repeats=options.repeats // 5, n_jobs=options.jobs, seed=options.seed)
    caption = "; ".join(f"{name}: {text}" for name, text in SCENARIOS.items())
    part.keep(table, "misspecified", figures.misspecified(table), f"{caption}.")
    return [part.shown("Wrong models", "which rule survives where the model is wrong")]


def _newcomers(part: Part) -> list[Shown]:
    rows = newcomers(part.options.repeats // 5, seed=part.options.seed)
    caption = "A crowd of 100 sources, newcomers with 20 labelled samples each."
    part.keep(rows, "newcomers", figures.newcomers(rows), caption)
    return [part.shown("Newcomers", "what a user of the estimators sees")]


PARTS: dict[str, Callable[[Part], list[Shown]]] = {
    "figure1": _figure1,
    "figure2": _simulated,
    "figure3": _simulated,
    "matb": _study,
    "mental-math": _study,
    "wesad": _study,
    "vectors": _vectors,
    "effect-of-b": _effect_of_b,
    "right": _right,
    "misspecified": _misspecified,
    "newcomers": _newcomers,
}


def main(words: Iterable[str] | None = None) -> int:
    """Run parts, write the page, and say whether all figures came out as their authors ran them."""
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all by default"
    )
    parser.add_argument("-o", "--out", type=Path, default=Path("results"), help="default: results")
    parser.add_argument("--recipe", choices=RECIPES, help="both by default")
    parser.add_argument("--repeats", type=int, default=_REPEATS, help="of Figures 2 and 3")
    parser.add_argument("--splits", type=int, default=_SPLITS, help="of each person and budget")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seed", type=int, default=0)
    for name in ("matb", "wesad"):
        parser.add_argument(f"--{name}", type=Path, metavar="FOLDER", help="recordings")
    options = parser.parse_args(None if words is None else list(words))
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {sorted(unknown)[0]!r}; there are {', '.join(PARTS)}")
    if min(options.repeats, options.splits) < 5:
        parser.error("--repeats and --splits must be at least 5")
    options.recipes = [options.recipe] if options.recipe else list(RECIPES)
    options.out.mkdir(parents=True, exist_ok=True)
    shown: list[Shown] = []
    for name in options.parts or PARTS:
        print(f"== {name}", flush=True)
        shown += PARTS[name](Part(name, options))
    shown.sort(key=lambda one: (not one.exhibit.name.startswith("Figure"), one.exhibit.name))
    about = {
        "recipes": ", ".join(BY[recipe] for recipe in options.recipes),
        "repeats": f"{options.repeats:,} of each cell of Figures 2 and 3",
        "splits": f"{options.splits} of each person and budget",
        "seed": options.seed,
        "date": date.today().isoformat(),
    }
    if options.repeats < _REPEATS or options.splits < _SPLITS:
        about["note"] = f"The tolerances are for {_REPEATS:,} repeats and {_SPLITS} splits: with "
        about["note"] += "fewer, a cross may be chance."
    page = write_page(shown, options.out, about)
    print(f"\n{headline(shown)}\nPage: {page}")
    exhibits = [one.exhibit for one in shown if one.exhibit.name.startswith("Figure")]
    return int(any(one.status("authors") is False for one in exhibits))


if __name__ == "__main__":
    sys.exit(main())

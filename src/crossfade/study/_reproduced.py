"""Is it reproduced? What the paper shows beside what was found, within a stated tolerance.

Each number of the paper is a cell. A check is about cells of one kind by one recipe
(:mod:`crossfade.study.reproduce`); an exhibit has the checks of a figure, or of the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crossfade.study._published import statistics_of

if TYPE_CHECKING:
    import pandas as pd

#: How far ours may be from the paper's. Accuracies: the standard error of 1,000 repeats is up to
#: 0.003 on either side, and the mean of a study of 100 splits moves by as much with its seed. The
#: median of 36 people, and the largest gain of one of them, move by up to 0.02.
TOLERANCES = {"accuracy": 0.012, "alpha": 0.03, "error": 0.03, "median": 0.03, "gain": 0.03}
#: The same of the number of people who gain, and of the authors' concentration.
_WINS, _KAPPA = 3, 5e-9
#: Participant of Figure 8.
_CHOSEN = "Subject06"


class Cell(NamedTuple):
    """One number of ours and of the paper's, NaN where it has none."""

    cell: str
    ours: float
    paper: float = np.nan

    @property
    def apart(self) -> float:
        """Ours less the paper's."""
        return self.ours - self.paper


class Check(NamedTuple):
    """Cells of one kind, by one recipe."""

    what: str
    recipe: str
    tolerance: str
    passed: bool
    reason: str
    cells: Sequence[Cell] = ()


class Exhibit(NamedTuple):
    """A figure of the paper, or numbers of its text; `missing` says what could not be checked."""

    name: str
    title: str
    checks: Sequence[Check]
    missing: str = ""
    sketch: bool = False  # a figure without numbers to compare

    def by(self, recipe: str) -> list[Check]:
        """Checks of a recipe."""
        return [check for check in self.checks if check.recipe == recipe]

    def status(self, recipe: str) -> bool | None:
        """Whether all checks of a recipe passed; None where it has none."""
        passed = [check.passed for check in self.by(recipe)]
        return all(passed) if passed else None


def within(what: str, recipe: str, cells: Sequence[Cell], kind: str, why: str = "") -> Check:
    """Check of cells against the tolerance of their kind; `why` explains what the text misses."""
    allowed = TOLERANCES[kind]
    furthest = max(cells, key=lambda one: abs(one.apart))
    n_within = sum(abs(one.apart) <= allowed for one in cells)
    said = f"{n_within} of {len(cells)} within {allowed:g}; furthest {furthest.apart:+.4f} "
    said += f"({furthest.cell})."
    passed = n_within == len(cells)
    return Check(what, recipe, f"± {allowed:g}", passed, _because(said, passed, recipe, why), cells)


def _because(said: str, passed: bool, recipe: str, why: str) -> str:
    """What was found, and why the text does not give the figure."""
    return f"{said} {why}" if why and not passed and recipe == "printed" else said


def _listed(values: Iterable[float], form: str) -> str:
    *first, last = (format(value, form) for value in values)
    return f"{', '.join(first)} and {last}" if first else last


def _records(table: pd.DataFrame) -> list[dict[Any, Any]]:
    return table.to_dict("records")


# -- Figures 2, 3, 7 and 8 ------------------------------------------------------------------------


def figure2_checks(table: pd.DataFrame, recipe: str) -> list[Check]:
    """Checks of what :func:`crossfade.study.reproduce.figure2` returns."""
    why = {
        "predicted": "The figure was not made by the printed covariances.",
        "true": "The text normalises the target vector; the figure does not.",
    }
    checks = []
    for ours, theirs in (("predicted", "analytical"), ("true", "empirical")):
        for quantity, of in (("accuracy", ""), ("alpha", " of the optimal classifier")):
            cells = [
                Cell(
                    f"J = {row['n_sources']}, n = {row['n_target']}, {row['classifier']}",
                    row[ours],
                    row[theirs],
                )
                for row in _records(table[table["quantity"] == quantity].dropna(subset=theirs))
            ]
            what = f"{ours} {quantity}{of}"
            checks.append(within(what, recipe, cells, quantity, why[ours]))
    return checks


def figure3_checks(table: pd.DataFrame, recipe: str) -> list[Check]:
    """Checks of what :func:`crossfade.study.reproduce.figure3` returns."""
    why = {
        "target": "The panel of kappa was made with 50 samples; the text has 20.",
        "paper": "The figure has another covariance of the target than the text, and 50 samples "
        "in the panel of kappa.",
    }
    names = {"target": "target", "average-source": "average-source", "paper": "optimal"}
    checks = []
    for quantity, classifiers in (("accuracy", [*names]), ("alpha", ["paper"])):
        for name in classifiers:
            part = table[table["classifier"] == name].dropna(subset=f"reference_{quantity}")
            cells = [
                Cell(
                    f"{row['panel']} = {row['x']:g}, covariance {row['covariance']}",
                    row[quantity],
                    row[f"reference_{quantity}"],
                )
                for row in _records(part)
            ]
            what = f"{quantity} of the {names[name]} classifier"
            checks.append(within(what, recipe, cells, quantity, why.get(name, "")))
    return checks


def figure7_checks(sizes: Mapping[str, Sequence[int]]) -> list[Check]:
    """Checks of the sizes of Mental Math's clusters, the largest first, by recipe."""
    wanted = [int(size) for size in _further("authors", "cluster_size")["value"]]
    why = "The figure is not of all windows, and its affinity has no zero diagonal."
    checks = []
    for recipe, found in sizes.items():
        passed = list(found) == wanted
        said = f"Found {_people(found)}; the figure has {_people(wanted)}."
        longer = max(len(found), len(wanted))
        pairs = [[*one, *[np.nan] * (longer - len(one))] for one in (found, wanted)]
        cells = [
            Cell(f"cluster {place + 1}", *pair)
            for place, pair in enumerate(zip(*pairs, strict=True))
        ]
        reason = _because(said, passed, recipe, why)
        what = "sizes of the clusters of Mental Math"
        checks.append(Check(what, recipe, "exact", passed, reason, cells))
    return checks


def _people(sizes: Sequence[int]) -> str:
    if len(sizes) == 1:
        return f"one cluster of {sizes[0]}"
    return f"{len(sizes)} clusters of {_listed(sizes, 'd')}"


def figure8_checks(table: pd.DataFrame, recipe: str) -> list[Check]:
    """Checks of what :func:`crossfade.study.reproduce.effect_of_b` returns."""
    cells = [
        Cell(f"p = {row['proportion']:g}, B = {row['n_draws']}", row["error"], row["reference"])
        for row in _records(table.dropna(subset=["error", "reference"]))
    ]
    why = "The figure was made on windows that were neither centred nor scaled."
    return [within("mean absolute error of alpha", recipe, cells, "error", why)]


# -- Figures 4 to 6, and the text -----------------------------------------------------------------


class _Means:
    """Balanced accuracies and alphas by task, of a study of the paper's methods."""

    def __init__(self, means: pd.DataFrame) -> None:
        tables = [
            means.pivot(index="task", columns=["method", "budget"], values=name)
            for name in ("balanced_accuracy", "alpha")
        ]
        self.accuracy, self.alpha = tables
        self.budgets = sorted(set(means["budget"]))

    def of(self, classifier: str, budget: float) -> pd.Series[float]:
        """Balanced accuracy of each task, by the paper's name of a classifier."""
        name = "paper" if classifier == "optimal" else classifier
        return self.accuracy[name, budget]

    def gain(self, budget: float) -> pd.Series[float]:
        """Gain of the optimal classifier over the target's, for each task."""
        return self.of("optimal", budget) - self.of("target", budget)


def study_checks(study: str, means: pd.DataFrame, recipe: str) -> list[Check]:
    """Checks of a study's means by task ("matb", "mental-math" or "wesad")."""
    found, printed = _Means(means), statistics_of(study)
    checks = []
    for name, kind in (("mean", "accuracy"), ("median", "median")):
        cells = [
            Cell(
                f"{row['proportion']:.0%}, {row['classifier']}",
                float(getattr(found.of(row["classifier"], row["proportion"]), name)()),
                row["value"],
            )
            for row in _records(printed[printed["statistic"] == f"{name}_balanced_accuracy"])
        ]
        if cells:
            checks.append(within(f"{name} balanced accuracy", recipe, cells, kind))
    cells = [
        Cell(
            f"{row['proportion']:.0%}",
            float((found.gain(row["proportion"]) > 0).sum()),
            row["value"],
        )
        for row in _records(printed[printed["statistic"].str.startswith("wins")])
    ]
    if cells:
        passed = all(abs(one.apart) <= _WINS for one in cells)
        said = f"{_listed([one.ours for one in cells], '.0f')} of {len(found.accuracy)}; the paper "
        said += f"has {_listed([one.paper for one in cells], '.0f')}."
        what = "tasks on which the optimal classifier is better than the target's"
        checks.append(Check(what, recipe, f"± {_WINS}", passed, said, cells))
    return checks


def text_checks(means: pd.DataFrame, kappa: float, recipe: str) -> list[Check]:
    """Checks of what the text says of Mental Math, from the study's means by task."""
    found = _Means(means)
    return [
        _p_values(found, recipe),
        _concentration(kappa, recipe),
        _largest_gains(found, recipe),
        _median_gains(found, recipe),
        _median_alphas(found, recipe),
        _nearest_the_median(found, recipe),
    ]


def _p_values(found: _Means, recipe: str) -> Check:
    from scipy.stats import wilcoxon

    printed = statistics_of("mental-math")
    rows = _records(printed[printed["statistic"] == "wilcoxon_p_greater"])
    gains = [found.gain(row["proportion"]) for row in rows]
    cells = [
        Cell(f"{row['proportion']:.0%}, two-sided", float(wilcoxon(gain).pvalue), row["value"])
        for row, gain in zip(rows, gains, strict=True)
    ]
    one_sided = [float(wilcoxon(gain, alternative="greater").pvalue) for gain in gains]
    passed = all((one.ours < 0.05) == (one.paper < 0.05) for one in cells)
    said = f"Two-sided {_listed([one.ours for one in cells], '.3g')}, one-sided "
    said += f"{_listed(one_sided, '.3g')}. The text calls its test one-sided and rank-sum; people "
    said += "are paired, so that it is the signed-rank test."
    what = f"p-values {_listed([one.paper for one in cells], 'g')}"
    return Check(what, recipe, "two-sided, same side of 0.05", passed, said, cells)


def _concentration(kappa: float, recipe: str) -> Check:
    what = "kappa is less than 3"
    if recipe == "printed":
        return Check(what, recipe, "< 3", kappa < 3.0, f"{kappa:.2f} of all windows of everybody.")
    wanted = float(_further("authors", "kappa")["value"].iloc[0])
    passed = abs(kappa - wanted) < _KAPPA
    said = f"{kappa:.8f} over ten balanced runs after the authors' seed; they have {wanted:.8f}."
    cells = [Cell("mean of ten runs", kappa, wanted)]
    return Check(what, recipe, f"± {_KAPPA:g}", passed, said, cells)


def _largest_gains(found: _Means, recipe: str) -> Check:
    text, theirs = (
        [
            Cell(
                f"{row['proportion']:.0%}",
                float(found.gain(row["proportion"]).max()),
                row["value"],
            )
            for row in _records(_further(source, "max_difference"))
        ]
        for source in ("text", "authors")
    )
    what = f"largest gains of {_listed([100 * one.paper for one in text], '.1f')} %"
    ours = f"Ours are {_listed([100 * one.ours for one in theirs], '.1f')} %."
    n_near = sum(abs(one.apart) <= TOLERANCES["gain"] for one in theirs)
    check = within(what, recipe, text, "gain")
    why = "The text repeats those of MATB. Beside the text: the authors' own run has "
    why += f"{_listed([100 * one.paper for one in theirs], '.1f')} %, and {n_near} of "
    why += f"{len(theirs)} of ours are within {TOLERANCES['gain']:g} of these."
    return check._replace(reason=f"{ours} {check.reason} {why}")


def _median_gains(found: _Means, recipe: str) -> Check:
    """By the text's words they are of the people who gain; as run, of all."""
    low, high = (
        float(_further("text", f"median_difference_{end}")["value"].iloc[0])
        for end in ("low", "high")
    )
    budgets = [budget for budget in found.budgets if budget < 0.5]
    gains, words = [found.gain(budget) for budget in budgets], "over all people"
    if recipe == "printed":
        gains, words = [gain[gain > 0] for gain in gains], "of those who gain, “of these wins”"
    medians = [float(gain.median()) for gain in gains]
    passed = all(low - 0.005 <= one <= high + 0.005 for one in medians)
    said = f"{_listed([100 * one for one in medians], '.1f')} % {words}."
    what = f"median gains of {100 * low:.1f} to {100 * high:.1f} %"
    cells = [Cell(f"{budget:.0%}", one) for budget, one in zip(budgets, medians, strict=True)]
    return Check(what, recipe, "± 0.5 %", passed, said, cells)


def _median_alphas(found: _Means, recipe: str) -> Check:
    medians = [float(found.alpha["paper", budget].median()) for budget in found.budgets]
    *first, last = medians
    passed = last - max(first) > max(first) - min(first)
    said = f"{_listed(medians, '.2f')} at {_listed(found.budgets, '.0%')}."
    what = "median alphas are stagnant up to 20 % and jump at 50 %"
    cells = [Cell(f"{at:.0%}", one) for at, one in zip(found.budgets, medians, strict=True)]
    return Check(what, recipe, "the jump is larger than what was before", passed, said, cells)


def _nearest_the_median(found: _Means, recipe: str) -> Check:
    accuracy = found.of("optimal", 0.1)
    off = (accuracy - accuracy.median()).abs().sort_values()
    nearest, place = str(off.index[0]), list(off.index).index(_CHOSEN) + 1
    said = f"{nearest} is nearest here; {_CHOSEN} is number {place} of {len(off)}, "
    said += f"{off[_CHOSEN]:.3f} from the median. Who is nearest changes with the splits drawn."
    what = "subject 6 is nearest the median accuracy at 10 %"
    return Check(what, recipe, "by name", nearest == _CHOSEN, said)


def _further(source: str, statistic: str) -> pd.DataFrame:
    """Numbers of Mental Math from the text, or from the authors' own run."""
    from crossfade.simulate._repeats import reference

    table = reference("further.csv")
    return table[(table["source"] == source) & (table["statistic"] == statistic)]

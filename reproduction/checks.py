"""Is it reproduced? What the paper shows beside what was found, within a stated tolerance.

Each number of the paper is a cell. A check is about cells of one kind by one recipe. An exhibit has
the checks of a figure, or of the text.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from reproduction.draws import PERSON
from reproduction.published import further, statistics_of

#: How far ours may be from the paper's. Accuracies: the standard error of 1,000 repeats is up to
#: 0.003 on either side, and the mean of a study of 100 splits moves by as much with its seed. The
#: median of 36 people, and the largest gain of one of them, move by up to 0.02.
TOLERANCES = {"accuracy": 0.012, "alpha": 0.03, "error": 0.03, "median": 0.03, "gain": 0.03}
#: The same of the number of people who gain, and of the authors' concentration.
_WINS, _KAPPA = 3, 5e-9


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
    """A figure of the paper, numbers of its text, or a simulation of ours."""

    name: str
    title: str
    checks: Sequence[Check] = ()
    note: str = ""
    missing: str = ""  # the recordings that it needs

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
    passed = n_within == len(cells)
    reason = f"{n_within} of {len(cells)} within {allowed:g}; furthest {furthest.apart:+.4f} "
    reason += f"({furthest.cell})."
    if recipe == "printed" and not passed:
        reason = f"{reason} {why}".strip()
    return Check(what, recipe, f"± {allowed:g}", passed, reason, cells)


def _listed(values: Iterable[float], form: str) -> str:
    *first, last = (format(value, form) for value in values)
    return f"{', '.join(first)} and {last}" if first else last


# -- Figures 2, 3, 7 and 8 ------------------------------------------------------------------------


def figure2_checks(table: pd.DataFrame, recipe: str) -> list[Check]:
    """Checks of Figure 2: accuracies and alphas, predicted and true."""
    why = {
        "predicted": "The figure was not made with the printed covariances.",
        "true": "The text normalises the target vector; the figure does not.",
    }
    checks = []
    for ours, theirs in (("predicted", "analytical"), ("true", "empirical")):
        for quantity, of in (("accuracy", ""), ("alpha", " of the optimal classifier")):
            cells = [
                Cell(f"J = {row.n_sources}, n = {row.n_target}, {row.classifier}", one, other)
                for row, one, other in _rows(table[table["quantity"] == quantity], ours, theirs)
            ]
            checks.append(within(f"{ours} {quantity}{of}", recipe, cells, quantity, why[ours]))
    return checks


def figure3_checks(table: pd.DataFrame, recipe: str) -> list[Check]:
    """Checks of Figure 3: the accuracy of each classifier, and the alpha of the optimal one."""
    why = {
        "target": "The panel of kappa was made with 50 samples; the text has 20.",
        "optimal": "The figure has another covariance of the target than the text, and 50 samples "
        "in the panel of kappa.",
    }
    checks = []
    for quantity, names in (
        ("accuracy", ("target", "average-source", "optimal")),
        ("alpha", ("optimal",)),
    ):
        for name in names:
            part = table[table["classifier"] == name]
            cells = [
                Cell(f"{row.panel} = {row.x:g}, covariance {row.covariance}", ours, paper)
                for row, ours, paper in _rows(part, quantity, f"reference_{quantity}")
            ]
            what = f"{quantity} of the {name} classifier"
            checks.append(within(what, recipe, cells, quantity, why.get(name, "")))
    return checks


def figure7_checks(sizes: Mapping[str, Sequence[int]]) -> list[Check]:
    """Checks of the sizes of Mental Math's clusters, the largest first, by recipe."""
    wanted = [int(size) for size in further("authors", "cluster_size")["value"]]
    why = " The figure is not of all windows, and its affinity has no zero diagonal."
    checks = []
    for recipe, found in sizes.items():
        passed = list(found) == wanted
        reason = f"Clusters of {_listed(found, 'd')} people; the figure has {_listed(wanted, 'd')}."
        reason += why * (recipe == "printed" and not passed)
        longer = max(len(found), len(wanted))
        ours, paper = ([*one, *[np.nan] * (longer - len(one))] for one in (found, wanted))
        cells = [Cell(f"cluster {place + 1}", ours[place], paper[place]) for place in range(longer)]
        what = "sizes of the clusters of Mental Math"
        checks.append(Check(what, recipe, "exact", passed, reason, cells))
    return checks


def figure8_checks(table: pd.DataFrame, recipe: str) -> list[Check]:
    """Checks of the errors of alpha by the number of draws."""
    cells = [
        Cell(f"p = {row.proportion:g}, B = {row.n_draws}", ours, paper)
        for row, ours, paper in _rows(table, "error", "reference")
    ]
    why = "The figure was made on windows that were neither centred nor scaled."
    return [within("mean absolute error of alpha", recipe, cells, "error", why)]


def _rows(table: pd.DataFrame, ours: str, paper: str) -> list[tuple]:
    """Rows that have a number of the paper, with ours and the paper's."""
    table = table.dropna(subset=paper)
    return list(zip(table.itertuples(), table[ours], table[paper], strict=True))


# -- Figures 4 to 6, and the text -----------------------------------------------------------------


class _Means:
    """Balanced accuracies and alphas of a study, by task."""

    def __init__(self, means: pd.DataFrame) -> None:
        columns = ["method", "budget"]
        self.accuracy = means.pivot(index="task", columns=columns, values="balanced_accuracy")
        self.alpha = means.pivot(index="task", columns=columns, values="alpha")
        self.budgets = sorted(set(means["budget"]))

    def gain(self, budget: float) -> "pd.Series[float]":
        """Gain of the optimal classifier over the target's, for each task."""
        return self.accuracy["optimal", budget] - self.accuracy["target", budget]


def study_checks(study: str, means: pd.DataFrame, recipe: str) -> list[Check]:
    """Checks of a study's means by task ("matb", "mental-math" or "wesad")."""
    found, printed = _Means(means), statistics_of(study)
    checks = []
    for name, kind in (("mean", "accuracy"), ("median", "median")):
        wanted = printed[printed["statistic"] == f"{name}_balanced_accuracy"]
        cells = [
            Cell(
                f"{row.proportion:.0%}, {row.classifier}",
                float(found.accuracy[row.classifier, row.proportion].agg(name)),
                row.value,
            )
            for row in wanted.itertuples()
        ]
        if cells:
            checks.append(within(f"{name} balanced accuracy", recipe, cells, kind))
    cells = [
        Cell(f"{row.proportion:.0%}", float((found.gain(row.proportion) > 0).sum()), row.value)
        for row in printed[printed["statistic"].str.startswith("wins")].itertuples()
    ]
    if cells:
        passed = all(abs(one.apart) <= _WINS for one in cells)
        reason = f"{_listed([one.ours for one in cells], '.0f')} of {len(found.accuracy)}; the "
        reason += f"paper has {_listed([one.paper for one in cells], '.0f')}."
        what = "tasks on which the optimal classifier is better than the target's"
        checks.append(Check(what, recipe, f"± {_WINS}", passed, reason, cells))
    return checks


def text_checks(means: pd.DataFrame, kappa: float, recipe: str) -> list[Check]:
    """Checks of what the text says about Mental Math, from the study's means by task."""
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
    printed = statistics_of("mental-math")
    rows = printed[printed["statistic"] == "wilcoxon_p_greater"]
    gains = [found.gain(proportion) for proportion in rows["proportion"]]
    cells = [
        Cell(f"{row.proportion:.0%}, two-sided", float(wilcoxon(gain).pvalue), row.value)
        for row, gain in zip(rows.itertuples(), gains, strict=True)
    ]
    one_sided = [float(wilcoxon(gain, alternative="greater").pvalue) for gain in gains]
    passed = all((one.ours < 0.05) == (one.paper < 0.05) for one in cells)
    reason = f"Two-sided {_listed([one.ours for one in cells], '.3g')}, one-sided "
    reason += f"{_listed(one_sided, '.3g')}. The text calls its test one-sided and rank-sum; "
    reason += "people are paired, so it is the signed-rank test."
    what = f"p-values {_listed([one.paper for one in cells], 'g')}"
    return Check(what, recipe, "two-sided, same side of 0.05", passed, reason, cells)


def _concentration(kappa: float, recipe: str) -> Check:
    what = "kappa is less than 3"
    if recipe == "printed":
        return Check(what, recipe, "< 3", kappa < 3.0, f"{kappa:.2f} of all windows of everybody.")
    wanted = float(further("authors", "kappa")["value"].iloc[0])
    reason = f"{kappa:.8f} over ten balanced runs after the authors' seed; they have {wanted:.8f}."
    cells = [Cell("mean of ten runs", kappa, wanted)]
    passed = abs(kappa - wanted) < _KAPPA
    return Check(what, recipe, f"± {_KAPPA:g}", passed, reason, cells)


def _largest_gains(found: _Means, recipe: str) -> Check:
    text, authors = (
        [
            Cell(f"{row.proportion:.0%}", float(found.gain(row.proportion).max()), row.value)
            for row in further(source, "max_difference").itertuples()
        ]
        for source in ("text", "authors")
    )
    what = f"largest gains of {_listed([100 * one.paper for one in text], '.1f')} %"
    check = within(what, recipe, text, "gain")
    n_near = sum(abs(one.apart) <= TOLERANCES["gain"] for one in authors)
    reason = f"Ours are {_listed([100 * one.ours for one in authors], '.1f')} %. {check.reason} "
    reason += "The text repeats those of MATB. The authors' own run has "
    reason += f"{_listed([100 * one.paper for one in authors], '.1f')} %, and {n_near} of "
    reason += f"{len(authors)} of ours are within {TOLERANCES['gain']:g} of these."
    return check._replace(reason=reason)


def _median_gains(found: _Means, recipe: str) -> Check:
    """By the text's words they are of the people who gain; as run, of all."""
    low, high = (
        float(further("text", f"median_difference_{end}")["value"].iloc[0])
        for end in ("low", "high")
    )
    budgets = [budget for budget in found.budgets if budget < 0.5]
    gains, words = [found.gain(budget) for budget in budgets], "over all people"
    if recipe == "printed":
        gains, words = [gain[gain > 0] for gain in gains], "of those who gain, “of these wins”"
    medians = [float(gain.median()) for gain in gains]
    passed = all(low - 0.005 <= one <= high + 0.005 for one in medians)
    reason = f"{_listed([100 * one for one in medians], '.1f')} % {words}."
    what = f"median gains of {100 * low:.1f} to {100 * high:.1f} %"
    cells = [Cell(f"{budget:.0%}", one) for budget, one in zip(budgets, medians, strict=True)]
    return Check(what, recipe, "± 0.5 %", passed, reason, cells)


def _median_alphas(found: _Means, recipe: str) -> Check:
    medians = [float(found.alpha["optimal", budget].median()) for budget in found.budgets]
    *first, last = medians
    passed = last - max(first) > max(first) - min(first)
    reason = f"{_listed(medians, '.2f')} at {_listed(found.budgets, '.0%')}."
    what = "median alphas are stagnant up to 20 % and jump at 50 %"
    cells = [Cell(f"{at:.0%}", one) for at, one in zip(found.budgets, medians, strict=True)]
    return Check(what, recipe, "the jump exceeds what came before", passed, reason, cells)


def _nearest_the_median(found: _Means, recipe: str) -> Check:
    accuracy = found.accuracy["optimal", 0.1]
    off = (accuracy - accuracy.median()).abs().sort_values()
    nearest, place = str(off.index[0]), list(off.index).index(PERSON) + 1
    reason = f"{nearest} is nearest here; {PERSON} is number {place} of {len(off)}, "
    reason += f"{off[PERSON]:.3f} from the median. The nearest person changes with the splits."
    what = "subject 6 is nearest the median accuracy at 10 %"
    return Check(what, recipe, "by name", nearest == PERSON, reason)

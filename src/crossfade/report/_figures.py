"""Figures of a report: for files with a legend, and for the page, whose buttons are the legend."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crossfade import plots
from crossfade.plots import for_files, method_of
from crossfade.report._findings import Findings
from crossfade.study import is_unequal

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Drawing(NamedTuple):
    """One figure: the name of its file, what it shows, and its two forms."""

    name: str
    text: str
    figure: Figure
    on_page: Figure


def draw(findings: Findings) -> list[Drawing]:
    """All figures that a study allows for, in the order of the report."""
    if not findings.method:
        return []
    with for_files():
        return list(_drawings(findings))


def _drawings(findings: Findings) -> Iterator[Drawing]:
    tables, both = findings.tables, (True, False)
    rows = tables["participants"]
    rows = rows[rows["balanced_accuracy"].notna()]
    # Methods with the same accuracies would lie on one another.
    apart = rows[rows["method"].isin(findings.compared)]
    seeing = any(method_of(name).given for name in findings.compared)
    dashed = " Dashed lines: methods that see test windows." * seeing
    if tables["needed"]["n_people"].any():
        goal, n_classes = (findings.reach, findings.share), findings.n_classes
        yield Drawing(
            "needed",
            _needed_text(findings) + dashed,
            *(plots.needed(apart, *goal, n_classes=n_classes, legend=one) for one in both),
        )
    unequal = any(is_unequal(one) for one in findings.budgets)
    chance = 1.0 / findings.n_classes
    yield Drawing(
        "accuracy",
        "Mean balanced accuracy of each method against the labelled windows."
        + " Right of the line: unequal numbers." * unequal
        + dashed,
        *(plots.accuracy_by_budget(apart, chance=chance, legend=one) for one in both),
    )
    if len(tables["forecast"]):
        yield Drawing(
            "forecast",
            "Left: accuracy reached by calibrations with like forecasts, of five people or more, "
            "with its standard error over people; on the grey diagonal, forecast and outcome "
            "agree. Right: error of one forecast; dots and open markers: that of a constant, the "
            "mean accuracy of the other people.",
            *(plots.forecast(findings.result, legend=one) for one in both),
        )
    compared, method = tables["comparison"], method_of(findings.method).spoken
    for against in findings.against:
        pair = (compared["method"] == findings.method) & (compared["against"] == against)
        if compared.loc[pair, "n_tasks"].any():
            figure = plots.differences(rows, findings.method, against)
            yield Drawing(
                f"differences-{slug(against)}",
                f"Gain of each of the {findings.nouns}: balanced accuracy of {method} minus that "
                f"of {method_of(against).spoken}. Right of the dashed line, {method} is better.",
                figure,
                figure,
            )


def _needed_text(findings: Findings) -> str:
    """Text for the figure of windows needed; without answers it has one panel."""
    share = f"{100.0 * findings.share:.3g} %"
    table = findings.tables["needed"]
    table = table[table["method"].isin(findings.compared)]
    people = (
        f"hare of people who reach a balanced accuracy of {findings.reach:g}; the dashed grey "
        f"line is at {share}."
    )
    if not findings.reached:
        return f"S{people}"
    text = f"Left: s{people} Right: windows until {share} of people reach it, with 95 % intervals"
    text += " over people."
    if not np.isfinite(table["total"]).all():
        text += " “More” is more than were tried."
    if (table["bound"] == "<=").any():
        text += " An arrow to the left: fewer were not tried."
    return text


def slug(name: str) -> str:
    """Letters and digits of a name, for a file."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "method"

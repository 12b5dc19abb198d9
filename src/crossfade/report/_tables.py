"""Tables of the page, from what a study found: one function for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from crossfade.plots import method_of
from crossfade.report._findings import Findings
from crossfade.study import budget_text
from crossfade.study.statistics import p_text

#: What a cell without a number shows.
NOTHING = "–"
#: Letters from which on a cell of text may wrap.
_PROSE = 40
#: Lines of a table with one for each person that the page shows; its file has all.
_SHOWN = 2000
_HEADS = {
    "n_labelled": "labelled windows",
    "n_tasks": "tasks",
    "n": "splits",
    "wins": "better",
    "losses": "worse",
    "mean_difference": "mean gain",
    "low": "95 % from",
    "high": "to",
    "p_holm": "p (Holm)",
    "smaller_class": "windows of the smallest class",
    "rms": "error (RMS)",
    "constant_rms": "constant's",
    "coverage_68": "68 % holds",
    "coverage_90": "90 % holds",
    "forecast": "mean forecast",
    "outcome": "mean outcome",
}
_SIGNED = ("mean_difference", "bias")
_PERCENT = ("coverage_68", "coverage_90")
_WHOLE = ("n", "n_labelled", "n_tasks", "wins", "losses", "smaller_class")


class Table(NamedTuple):
    """Table of the page: a line break in a cell parts it from what stands small below it."""

    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    caption: str
    #: Columns that are words; all others are numbers.
    are_text: frozenset[int] = frozenset({0})
    #: Id, for the table that the script looks for.
    name: str = ""
    #: Line and column of cells that stand out.
    best: frozenset[tuple[int, int]] = frozenset()

    def look(self, row: int, column: int) -> str:
        """Classes of a cell."""
        if column not in self.are_text:
            return "number best" if (row, column) in self.best else "number"
        return "prose" if len(self.lines[row][column]) > _PROSE else ""


def number(value: float, digits: int = 3, *, signed: bool = False) -> str:
    """Number with a true minus sign; a dash where there is none."""
    if not np.isfinite(value):
        return NOTHING
    # What rounds to zero has no sign.
    rounded = round(float(value), digits) + 0.0
    return f"{rounded:{'+' if signed and rounded else ''}.{digits}f}".replace("-", "−")


def table_of(frame: pd.DataFrame, caption: str) -> Table:
    """Table of the page from columns of a table of the report."""
    heads = [_HEADS.get(name, name.replace("_", " ")) for name in frame.columns]
    lines = [[_cell(*pair) for pair in line.items()] for line in frame.to_dict("records")]
    words = (
        place
        for place, name in enumerate(frame.columns)
        if name == "budget" or any(isinstance(value, str) for value in frame[name])
    )
    return Table(heads, lines, caption, frozenset(words))


def _cell(name: Any, value: Any) -> str:
    if isinstance(value, str):
        return method_of(value).label if name == "method" else value
    if name == "budget":
        return budget_text(value)
    if name == "p_holm":
        return p_text(value)
    if name in _PERCENT:
        return f"{number(100.0 * value, 0)} %" if np.isfinite(value) else NOTHING
    return number(value, 0 if name in _WHOLE else 3, signed=name in _SIGNED)


def _bounds_last(names: Sequence[str]) -> list[str]:
    """Methods in order, those that see more than they may at the end, next to each other."""
    return sorted(names, key=lambda name: bool(method_of(name).given))


def _marked(method: str) -> str:
    """Name of a method, and below it which test data it sees."""
    look = method_of(method)
    return "\n".join(filter(None, (look.label, look.given)))


# -- accuracy, probabilities, forecasts -----------------------------------------------------------


def accuracies(findings: Findings) -> Table:
    """Mean accuracy of each method and budget."""
    table = findings.tables["summary"]
    table = table[table["method"].isin(findings.compared)]
    caption = "Mean balanced accuracy of each method and budget"
    return _by_budget(findings, table, "mean", _accuracy, caption, sign=1.0)


def _accuracy(one: Mapping[Any, Any]) -> str:
    """Mean, and below it what it is of, if not of what the others are."""
    parts = [number(one["mean"])]
    n_tasks, n_failed = one["n_tasks"], one["n_failed"]
    if np.isfinite(one["low"]):
        parts.append(f"{one['low']:.2f}–{one['high']:.2f}")
    if one["n_left_out"]:
        parts.append(f"{n_tasks} of {n_tasks + one['n_left_out']} tasks" if n_tasks else "failed")
    elif n_failed:
        parts.append(f"{n_failed} split{'s' * (n_failed > 1)} failed")
    return "\n".join(parts)


def probabilities(findings: Findings) -> Table | None:
    """Log loss of each method and budget, and below it the Brier score."""
    table = findings.tables["probabilities"]
    if table.empty:
        return None
    most = table.groupby("budget")["n_tasks"].transform("max")

    def scores(one: Mapping[Any, Any]) -> str:
        return f"{number(one['log_loss'])}\nBrier {number(one['brier'])}"

    table = table.assign(n_left_out=most - table["n_tasks"])
    caption = "Log loss, and below it the Brier score"
    return _by_budget(findings, table, "log_loss", scores, caption, sign=-1.0)


def alphas(findings: Findings) -> Table | None:
    """Mean alpha of each method that chooses one, with the first label and more."""
    means = findings.tables["participants"]
    own = means[means["balanced_accuracy"].notna() & (means["n_labelled"] > 0)]
    mean = own.pivot_table("alpha", "method", "budget", sort=False).dropna(how="all")
    fixed = (mean == 0.0).all(axis=1) | (mean == 1.0).all(axis=1)
    if fixed.all():
        return None
    lines = [
        [_marked(str(method)), *(number(line.get(one, np.nan), 2) for one in findings.budgets)]
        for method, line in mean[~fixed].iterrows()
    ]
    return Table(["method", *findings.budgets.values()], lines, "Mean alpha of the people")


def _by_budget(
    findings: Findings, table: pd.DataFrame, column: str, text: Any, caption: str, *, sign: float
) -> Table:
    """Lines are methods and columns budgets; the best of those that compete stand out."""
    rounded = sign * table[column].round(3)
    seeing = [name for name in findings.methods if method_of(name).given]
    fair = ~table["method"].isin(seeing) & (table["n_left_out"] == 0)
    highest = rounded[fair].groupby(table["budget"]).max().to_dict()
    is_best = fair & (rounded == table["budget"].map(highest))
    found = {
        (one["method"], one["budget"]): (text(one), is_first)
        for one, is_first in zip(table.to_dict("records"), is_best, strict=True)
    }
    lines: list[list[str]] = []
    best = set()
    there = set(table["method"])
    for method in _bounds_last([name for name in findings.methods if name in there]):
        cells = [_marked(method)]
        for budget in findings.budgets:
            cell, is_first = found.get((method, budget), (NOTHING, False))
            if is_first:
                best.add((len(lines), len(cells)))
            cells.append(cell)
        lines.append(cells)
    return Table(["method", *findings.budgets.values()], lines, caption, best=frozenset(best))


def forecast(findings: Findings) -> Table:
    """How true single forecasts are; the rest of the table is in its file."""
    columns = ["method", "budget", "rms", "constant_rms", "coverage_68", "coverage_90"]
    columns += ["forecast", "outcome", "bias"]
    return table_of(findings.tables["forecast"][columns], "How true one forecast is")


# -- windows needed, and windows saved ------------------------------------------------------------


def needed(findings: Findings) -> Table | None:
    """Windows that a new person needs, by method; the fewest of those that may win stand out."""
    frame = findings.tables["needed"]
    if not frame["n_people"].any():
        return None
    found = {one["method"]: one for one in frame.to_dict("records")}
    # Means over fewer people may be easier to reach.
    able = [name for name in findings.compared if name in found]
    fair = [name for name in able if not method_of(name).given and not found[name]["n_left_out"]]
    fewest = min((found[name]["total"] for name in fair), default=np.nan)
    timed = findings.reached and bool(frame["seconds"].gt(0.0).any())
    heads = ["method", *(["windows of each class", "in all"] if findings.reached else [])]
    heads += [*(["time"] if timed else []), "reach it in the end", "never reach it"]
    lines: list[list[str]] = []
    best = set()
    for method in _bounds_last(able):
        line = found[method]
        if method in fair and np.isfinite(fewest) and line["total"] == fewest:
            best.add((len(lines), 1))
        cells = [_marked(method)]
        if findings.reached:
            total = line["total"] if np.isfinite(line["total"]) else np.nan
            cells += [_windows(line), _count(line, total)]
        if timed:
            known = np.isfinite(line["seconds"]) and line["seconds"] > 0.0
            cells.append(_duration(line["seconds"]) if known else NOTHING)
        n_people = line["n_people"]
        cells += [
            f"{100.0 * line['reached']:.0f} %" if n_people else NOTHING,
            f"{line['n_never']} of {n_people}" if n_people else NOTHING,
        ]
        lines.append(cells)
    caption = "Windows that a new person needs, by method"
    return Table(heads, lines, caption, best=frozenset(best))


def _windows(line: Mapping[Any, Any]) -> str:
    """Windows of each class, and below them the interval."""
    text, low, high = _count(line, line["windows"]), line["low"], line["high"]
    if not np.isfinite(low) or low == high:
        return text
    return f"{text}\n95 % interval {low:g} {f'to {high:g}' if np.isfinite(high) else 'or more'}"


def _duration(seconds: float) -> str:
    """A time as people say it."""
    return f"{seconds:.0f} s" if seconds < 120.0 else f"{seconds / 60.0:.0f} min"


def _count(line: Mapping[Any, Any], value: float) -> str:
    if not line["n_people"] or np.isnan(value):
        return NOTHING
    if np.isposinf(value):
        return "not reached"
    return f"{'at most ' if line['bound'] == '<=' else ''}{value:g}"


def saved(findings: Findings) -> Table | None:
    """Windows that each side needs for one accuracy, and the difference."""
    table = findings.tables["labels_saved"]
    # Where fewer windows would have to be tried, nothing is known.
    known = table["saved"].notna() & ((table["bound"] != "<=") | (table["saved"] >= 0.05))
    if not known.any():
        return None
    label = method_of(findings.method).label
    lines = [
        [
            method_of(line["against"]).label,
            number(line["accuracy"]),
            number(line["n_labelled"], 0),
            _needed(line),
            _saved(line),
        ]
        for line in table.to_dict("records")
    ]
    heads = ["to be as accurate as", "accuracy", "which needs", f"{label} needs", "and saves"]
    return Table(heads, lines, f"Labelled windows that {label} saves")


def _needed(line: Mapping[Any, Any]) -> str:
    """Windows that the method needs for the accuracy of the other."""
    if not line["needed"]:
        return "none"
    sign = {"<=": "at most ", ">": "more than "}.get(line["bound"], "")
    return f"{sign}{number(line['needed'], 0 if sign else 1)}"


def _saved(line: Mapping[Any, Any]) -> str:
    """Windows saved with their share, and below them the interval."""
    saved, bound = line["saved"], line["bound"]
    if not np.isfinite(saved):
        return NOTHING
    if bound == ">":
        return "none"
    if saved < 0.05:
        return "unknown\nfewer were not tried" if bound == "<=" else "none"
    at_least = "at least " if bound == "<=" and line["needed"] else ""
    text = f"{at_least}{number(saved, 1)} ({100.0 * line['share_saved']:.0f} %)"
    # An end of the interval beyond the budgets that were run is not a number.
    low = number(line["low"], 1) if line["low"] >= 0.05 else "none"
    high = f"to {number(max(line['high'], 0.0), 1)}" if np.isfinite(line["high"]) else "or more"
    return f"{text}\n95 % interval {low} {high}"


# -- comparisons, people, and what is missing -----------------------------------------------------


def gain(findings: Findings, against: str) -> Table:
    """Differences between the method that the report is about and another, by budget."""
    columns = ["budget", "n_tasks", "wins", "losses", "mean_difference", "low", "high", "p_holm"]
    table = findings.tables["comparison"]
    own = (table["method"] == findings.method) & (table["against"] == against)
    names = [method_of(name).label for name in (findings.method, against)]
    # A budget at which no task has both says nothing.
    shown = table.loc[own & (table["n_tasks"] > 0), columns]
    return table_of(shown, f"Gain in balanced accuracy of {names[0]} over {names[1]}")


def left_out(findings: Findings) -> Table | None:
    """Tasks that are left out, and why."""
    frame = findings.tables["left_out"]
    return None if frame.empty else table_of(frame[:_SHOWN], "Tasks left out")


def failed(findings: Findings) -> Table | None:
    """Failures by method, budget and message."""
    frame = findings.tables["failures"]
    if frame.empty:
        return None
    groups = frame.groupby(["method", "budget", "message"], sort=False)
    some = groups.agg(n_tasks=("task", "nunique"), n=("n", "sum")).reset_index()
    columns = ["method", "budget", "n_tasks", "n", "message"]
    return table_of(some[columns], "Splits that failed")


def participants(findings: Findings) -> Table:
    """Accuracy of everybody, averaged over splits, and the gain over the first rival."""
    means = findings.tables["participants"]
    grouped = findings.nouns == "tasks"
    names = _bounds_last(findings.compared)
    cell = ["task", "budget"]
    wide = means.set_index([*cell, "method"])["balanced_accuracy"].unstack("method")
    found = wide.reindex(columns=names).to_dict("index")
    facts = means.drop_duplicates(cell)[[*cell, "group", "n_labelled"]]
    heads = [findings.nouns[:-1], "labelled", *(["group"] if grouped else []), "windows"]
    heads += [method_of(name).label for name in names]
    if findings.against:
        heads.append("gain")
    lines = []
    for task, budget, group, n_labelled in facts[:_SHOWN].itertuples(index=False):
        means_of = found[task, budget]
        line = [task, findings.budgets[budget], *([group] if grouped else [])]
        line += [number(n_labelled, 0), *map(number, means_of.values())]
        if findings.against:
            difference = means_of[findings.method] - means_of[findings.against[0]]
            line.append(number(difference, signed=True))
        lines.append(line)
    caption = f"Balanced accuracy of each of the {findings.nouns}"
    if len(facts) > _SHOWN:
        caption += f": the first {_SHOWN} of {len(facts)} lines"
    words = frozenset(range(3 if grouped else 2))
    return Table(heads, lines, caption, words, name="participants")

"""Tables of the page, from what a study found: one function for each."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from crossfade.plots import method_of
from crossfade.report._findings import Findings, tells_labels
from crossfade.report._text import NOTHING, Table, number, table_of
from crossfade.study import duration

#: Tables with a line for each person: where there are many, they are files beside the page.
LONG = ("participants", "left_out", "failures")
#: Lines of a table with a line for each person that the page shows where there are many.
_SHOWN = 100
#: People in one file beside the page.
PIECE = 250


def _fair(findings: Findings) -> list[str]:
    """Methods that may win: they see neither test windows nor their labels."""
    return [name for name in findings.methods if not method_of(name).given]


def _bounds_last(names: Sequence[str]) -> list[str]:
    """Methods in order, those that see more than they may at the end, next to each other."""
    return sorted(names, key=lambda name: bool(method_of(name).given))


def _marked(method: str) -> str:
    """Name of a method, and below it what it sees that nobody has when a calibration ends."""
    look = method_of(method)
    return "\n".join(filter(None, (look.label, look.given)))


# -- accuracy -------------------------------------------------------------------------------------


def accuracies(findings: Findings) -> Table:
    """Mean accuracy of each method and budget."""
    summary = findings.tables["summary"]
    found = {(one["method"], one["budget"]): one for one in summary.to_dict("records")}
    # Methods that see test windows do not compete, nor do means over fewer tasks.
    seeing = set(findings.methods) - set(_fair(findings))
    fair = summary[~summary["method"].isin(seeing) & (summary["n_left_out"] == 0)]
    highest = fair.groupby("budget")["mean"].max().round(3).to_dict()
    lines, best = [], set()
    for place, method in enumerate(_bounds_last(findings.compared)):
        cells = [_marked(method)]
        for column, budget in enumerate(findings.budgets, 1):
            one = found.get((method, budget))
            cells.append(NOTHING if one is None else _accuracy(one))
            if one is None or method in seeing or one["n_left_out"]:
                continue
            if round(one["mean"], 3) == highest.get(budget):
                best.add((place, column))
        lines.append(cells)
    caption = "Mean balanced accuracy of each method and budget"
    return _by_budget(findings, lines, caption, best)


def _accuracy(one: Mapping[Hashable, Any]) -> str:
    """Mean, and below it what it is of, if not of what the others are."""
    parts = [number(one["mean"])]
    if np.isfinite(one["low"]):
        parts.append(f"{one['low']:.2f}–{one['high']:.2f}")
    n_tasks, n_failed = one["n_tasks"], one["n_failed"]
    if one["n_left_out"]:
        parts.append(f"{n_tasks} of {n_tasks + one['n_left_out']} tasks" if n_tasks else "failed")
    elif n_failed:
        parts.append(f"{n_failed} split{'s' * (n_failed > 1)} failed")
    return "\n".join(parts)


def _by_budget(
    findings: Findings, lines: Sequence[Sequence[str]], caption: str, best: set[tuple[int, int]]
) -> Table:
    """Table with a line for each method and a column for each budget."""
    heads = ["method", *findings.budgets.values()]
    are_text = [True] + [False] * len(findings.budgets)
    return Table(heads, lines, caption, are_text, best=frozenset(best))


def probabilities(findings: Findings) -> Table | None:
    """Log loss of each method and budget, and below it the Brier score."""
    table = findings.tables["probabilities"]
    if table.empty:
        return None
    found = {(one["method"], one["budget"]): one for one in table.to_dict("records")}
    fair = set(_fair(findings))
    most = table.groupby("budget")["n_tasks"].max().to_dict()
    least: dict[float, float] = {}
    for (method, budget), one in found.items():
        if method in fair and one["n_tasks"] == most[budget] and np.isfinite(one["log_loss"]):
            least[budget] = min(least.get(budget, np.inf), round(one["log_loss"], 3))
    lines, best = [], set()
    # LDA and its twin differ here.
    names = [name for name in _bounds_last(findings.methods) if name in set(table["method"])]
    for place, method in enumerate(names):
        cells = [_marked(method)]
        for column, budget in enumerate(findings.budgets, 1):
            if (method, budget) not in found:
                cells.append(NOTHING)
                continue
            one = found[method, budget]
            cells.append(f"{number(one['log_loss'])}\nBrier {number(one['brier'])}")
            competes = method in fair and one["n_tasks"] == most[budget]
            if competes and round(one["log_loss"], 3) == least.get(budget):
                best.add((place, column))
        lines.append(cells)
    return _by_budget(findings, lines, "Log loss, and below it the Brier score", best)


def forecast(findings: Findings) -> Table:
    """How true single forecasts are; the rest of the table is in its file."""
    columns = ["method", "budget", "rms", "constant_rms", "coverage_68", "coverage_90", "forecast"]
    columns += ["outcome", "bias", "correlation", "n_splits"]
    table = findings.tables["forecast"][columns]
    # Before the first label all forecasts are a constant of the others, which goes against them.
    table = table.assign(correlation=table["correlation"].where(table["budget"] > 0.0))
    return table_of(table, "How true one forecast is")


# -- windows needed, and windows saved ------------------------------------------------------------


def needed(findings: Findings) -> Table | None:
    """Windows that a new person needs, by method; the fewest of those that may win stand out.

    Columns that would say the same of all methods, since none gets there, are left out.
    """
    frame = findings.tables["needed"]
    if not frame["n_people"].any():
        return None
    found = {one["method"]: one for one in frame.to_dict("records")}
    # Who lacks people is easily the best.
    fair = [name for name in _fair(findings) if name in found and not found[name]["n_left_out"]]
    fewest = min((found[name]["total"] for name in fair), default=np.nan)
    reached = findings.reached
    timed = reached and bool(frame["seconds"].gt(0.0).any())
    heads = ["method", *(["windows of each class", "in all"] if reached else [])]
    heads += [*(["time"] if timed else []), "reach it in the end", "never reach it"]
    lines: list[list[str]] = []
    best = set()
    for method in _bounds_last(findings.compared):
        if method not in found:
            continue
        line = found[method]
        if reached and method in fair and np.isfinite(fewest) and line["total"] == fewest:
            best.add((len(lines), 1))
        cells = [_marked(method), *([_windows(line), _in_all(line)] if reached else [])]
        if timed:
            known = np.isfinite(line["seconds"]) and line["seconds"] > 0.0
            cells.append(duration(line["seconds"]) if known else NOTHING)
        n_people = line["n_people"]
        cells += [
            f"{100.0 * line['reached']:.0f} %" if n_people else NOTHING,
            f"{line['n_never']} of {n_people}" if n_people else NOTHING,
            _flat(line) if n_people else NOTHING,
        ]
        lines.append(cells)
    heads.append("accuracy levels off at")
    are_text = [True] + [False] * (len(heads) - 1)
    caption = "Windows that a new person needs, by method"
    return Table(heads, lines, caption, are_text, best=frozenset(best))


def _windows(line: Mapping[Hashable, Any]) -> str:
    """Windows of each class, and below them the interval."""
    text = _count(line, line["windows"])
    low, high = line["low"], line["high"]
    if not np.isfinite(low) or low == high:
        return text
    return f"{text}\n95 % interval {low:g} {f'to {high:g}' if np.isfinite(high) else 'or more'}"


def _in_all(line: Mapping[Hashable, Any]) -> str:
    return _count(line, line["total"]) if np.isfinite(line["total"]) else NOTHING


def _count(line: Mapping[Hashable, Any], value: float) -> str:
    if not line["n_people"] or np.isnan(value):
        return NOTHING
    if np.isposinf(value):
        return "not reached"
    return f"{'at most ' if line['bound'] == '<=' else ''}{value:g}"


def _flat(line: Mapping[Hashable, Any]) -> str:
    """Windows of each class from where on the mean accuracy does not rise."""
    return "still rising" if np.isnan(line["flat_from"]) else f"{line['flat_from']:g}"


def saved(findings: Findings) -> Table | None:
    """What each side needs for one accuracy, and the difference."""
    table = findings.tables["labels_saved"]
    if findings.rivals is None or not tells_labels(table).any():
        return None
    label = method_of(findings.rivals.method).label
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
    caption = f"Labelled windows that {label} saves"
    return Table(heads, lines, caption, [True, False, False, False, False])


def _needed(line: Mapping[Hashable, Any]) -> str:
    if not line["needed"]:
        return "none"
    sign = {"<=": "at most ", ">": "more than "}.get(line["bound"], "")
    return f"{sign}{number(line['needed'], 0 if sign else 1)}"


def _saved(line: Mapping[Hashable, Any]) -> str:
    """Windows saved with their share, and below them the interval."""
    saved, bound = line["saved"], line["bound"]
    if not np.isfinite(saved):
        return NOTHING
    if bound == ">":
        return "none"
    if bound == "<=" and saved < 0.05:
        return "unknown\nfewer were not tried"
    if saved < 0.05:
        text = "none"
    else:
        at_least = "at least " if bound == "<=" and line["needed"] else ""
        text = f"{at_least}{number(saved, 1)} ({100.0 * line['share_saved']:.0f} %)"
    # An end of the interval beyond the budgets that were run is not a number.
    low = number(line["low"], 1) if line["low"] >= 0.05 else "none"
    if np.isfinite(line["high"]):
        return f"{text}\n95 % interval {low} to {number(max(line['high'], 0.0), 1)}"
    return f"{text}\n95 % interval {low} or more"


# -- comparisons, and what is missing -------------------------------------------------------------


def gain(findings: Findings, against: str) -> Table:
    """Differences between the method that the report is about and another, by budget."""
    columns = ["budget", "n_labelled", "wins", "ties", "losses", "mean_difference", "low", "high"]
    columns += ["min_difference", "max_difference", "p_value", "p_holm"]
    table, method = findings.tables["comparison"], findings.rivals and findings.rivals.method
    own = (table["method"] == method) & (table["against"] == against)
    # A budget at which no task has both says nothing.
    shown = table.loc[own & (table["n_tasks"] > 0), columns]
    names = [method_of(name).label for name in (str(method), against)]
    return table_of(shown, f"Gain in balanced accuracy of {names[0]} over {names[1]}")


def left_out(findings: Findings) -> Table | None:
    """Tasks that are left out, and why."""
    frame = findings.tables["left_out"]
    if frame.empty:
        return None
    caption = "Tasks left out"
    if findings.many and len(frame) > _SHOWN:
        caption, frame = f"Tasks left out: the first {_SHOWN} of {len(frame):,}", frame[:_SHOWN]
    return table_of(frame.assign(budget=frame["budget"].map(findings.budgets)), caption)


def failed(findings: Findings) -> tuple[Table | None, int]:
    """Failures by method, budget and message, and how many splits failed."""
    n_failed = int(findings.tables["summary"]["n_failed"].sum())
    frame = findings.tables["failures"]
    if not n_failed or frame.empty:
        return None, n_failed
    frame = frame.assign(budget=frame["budget"].map(findings.budgets))
    groups = frame.groupby(["method", "budget", "message"], sort=False)
    some = groups.agg(n_tasks=("task", "nunique"), n=("n", "sum")).reset_index()
    columns = ["method", "budget", "n_tasks", "n", "message"]
    return table_of(some[columns], "Splits that failed"), n_failed


# -- people ---------------------------------------------------------------------------------------


def participants(findings: Findings) -> Table:
    """Accuracy of everybody; where there are many, without lines, which come with their files."""
    table = _participants(findings)
    return table._replace(lines=[]) if findings.many else table


def _participants(findings: Findings) -> Table:
    means, rivals = findings.tables["participants"], findings.rivals
    found_by: dict[tuple[str, float], dict[str, float]] = {}
    facts: dict[tuple[str, float], tuple[str, float]] = {}
    for one in means.to_dict("records"):
        key = (one["task"], one["budget"])
        facts[key] = (one["group"], one["n_labelled"])
        found_by.setdefault(key, {})[one["method"]] = one["balanced_accuracy"]
    grouped = findings.nouns == "tasks"
    words = [findings.nouns[:-1], "labelled", *(["group"] if grouped else [])]
    names = _bounds_last(findings.compared)
    numbers = ["windows", *(method_of(name).label for name in names)]
    lines = []
    for (task, budget), found in found_by.items():
        group, n_labelled = facts[task, budget]
        line = [task, findings.budgets[budget], *([group] if grouped else [])]
        line += [number(n_labelled, 0)]
        line += [number(found.get(name, np.nan)) for name in names]
        if rivals is not None and rivals.against:
            both = (found.get(name, np.nan) for name in (rivals.method, rivals.against[0]))
            line.append(number(next(both) - next(both), signed=True))
        lines.append(line)
    if rivals is not None and rivals.against:
        numbers.append("gain")
    are_text = [True] * len(words) + [False] * len(numbers)
    caption = f"Balanced accuracy of each of the {findings.nouns}"
    return Table([*words, *numbers], lines, caption, are_text, name="participants")


def _pieces(findings: Findings) -> list[list[str]]:
    """Names of people in order, as many together as are in one file."""
    names = list(dict.fromkeys(findings.tables["participants"]["task"]))
    return [names[first : first + PIECE] for first in range(0, len(names), PIECE)]


def people_index(findings: Findings) -> list[str]:
    """Names of the people in each file, one to a line, for the script to look in."""
    return ["\n".join(names) for names in _pieces(findings)]


def people_files(findings: Findings) -> dict[str, str]:
    """Files beside the page with the lines of many people, which it loads on demand.

    They are scripts, since a page that is a file itself may not read others.
    """
    if not findings.many:
        return {}
    lines: dict[str, list[Sequence[str]]] = {}
    for line in _participants(findings).lines:
        lines.setdefault(line[0], []).append(line)
    return {
        f"people/{place}.js": f"people({place}, "
        f"{script_text([line for name in names for line in lines[name]])});\n"
        for place, names in enumerate(_pieces(findings))
    }


def script_text(content: object) -> str:
    """JSON within an element for scripts, which no name in the data may end."""
    return json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")

"""Findings and figures in, one page of HTML out that needs nothing but itself."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Hashable, Mapping, Sequence
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from crossfade._version import __version__
from crossfade.plots._style import looks
from crossfade.report._figures import Drawing, inline, slug, with_alpha
from crossfade.report._findings import Findings
from crossfade.report._text import NOTHING, bounded, boxed, html_table, number

#: What each table holds, by the name of its file.
CONTENTS = {
    "summary": "accuracy of each method and budget",
    "comparison": "differences between methods, with their intervals and tests",
    "labels_saved": "labelled windows that are needed for the same accuracy",
    "forecast": "forecasts against outcomes, for each method and budget",
    "reliability": "forecasts against outcomes, for splits with like forecasts",
    "participants": "means over splits, for each task, method and budget",
    "directions": "where the figure of directions has each task, and its cluster",
    "left_out": "tasks that are left out, and why",
    "failures": "splits that failed, and why",
}
_METHODS = {
    "target": "The person alone, as in the paper: Fisher's discriminant of the labelled windows, "
    "with a pseudo-inverse.",
    "average-source": "The crowd alone, as in the paper: the mean direction of the sources, at the "
    "midpoint of the labelled windows.",
    "paper": "Algorithm 1 of the paper: alpha times the person's direction plus 1 − alpha times "
    "the crowd's. Of the alphas 0, 0.1, ..., 1 it takes that of least expected risk, over 100 "
    "draws of both directions.",
    "oracle": "The paper's blend with the alpha that is best on the test windows. Nobody can know "
    "it: it is a bound.",
    "random-alpha": "The paper's blend with one of its alphas, drawn at random.",
    "target-shrunk": "The person alone, with a shrunk covariance (oracle approximating shrinkage).",
    "convex": "The paper's blend with a shrunk covariance, and with the alpha of least expected "
    "risk among all from 0 to 1, found without draws.",
    "posterior": "The crowd as a distribution: its mean direction plus a matrix times (own "
    "direction − mean direction). The matrix is the scatter between people, divided by the sum of "
    "that scatter and the noise of the own direction.",
    "posterior-unlabelled": "The posterior blend, with its threshold moved to where the scores of "
    "the test windows, without their labels, suggest it: half-way between two normals of one "
    "variance, fitted to the scores of labelled and unlabelled windows.",
    "lda": "scikit-learn's linear discriminant analysis with automatic shrinkage, fitted to the "
    "labelled windows: what one would take otherwise.",
    "pooled": "scikit-learn's linear discriminant analysis, fitted to the windows of all sources "
    "and to none of the person's.",
    "mixture": "The posterior blend with a crowd of several kinds of people: a mixture of "
    "von Mises-Fisher laws, its components weighed by how well they explain the own direction.",
    "convex-mixture": "The convex blend with such a mixture.",
    "per-task": "A convex blend of the own direction with every single source, each with a weight "
    "of its own; sources have to share their directions for it.",
    "private": "The posterior blend with a prior that was released under differential privacy, "
    "epsilon = 1 and delta = 0.00001; its noise is drawn anew for every person and budget.",
    "posterior-proportions": "The posterior blend, with its threshold moved for the proportions of "
    "the classes that the scores of the test windows, without their labels, suggest. It is meant "
    "for plain accuracy; balanced accuracy pays for it.",
    "pairwise": "The posterior blend of each pair of classes, their probabilities coupled; of two "
    "classes there is one pair.",
    "one-vs-rest": "The posterior blend of each class against all others together, their "
    "probabilities coupled; of two classes it is the posterior blend.",
}
#: What a method is given besides the labelled windows and the crowd.
_GIVEN = {
    "oracle": "knows the answers",
    "posterior-unlabelled": "sees unlabelled test windows",
    "posterior-proportions": "sees unlabelled test windows",
}
_SPLITS = {
    "consecutive": "Labelled windows are consecutive and start at random.",
    "chronological": "Labelled windows are the first in time, as in a real session.",
    "random": "Labelled windows are drawn at random.",
}
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")
_PLACE = re.compile(r"\{\{(\w+)\}\}")


def page(
    findings: Findings,
    drawings: Sequence[Drawing],
    tables: Mapping[str, str],
    *,
    title: str,
    printed: pd.DataFrame,
    about: Mapping[str, object],
    rows_name: str,
) -> str:
    """The report as HTML.

    Parameters
    ----------
    findings : Findings
        What was found.
    drawings : sequence of Drawing
        Its figures.
    tables : mapping of str to str
        Names of files and their contents, to be had from the page.
    title : str
        Title of the page.
    printed : DataFrame
        Values of the paper by `classifier` and `proportion`.
    about : mapping of str to object
        What else was said of the run.
    rows_name : str
        Name of the file with all rows.

    Returns
    -------
    str
        The page.
    """
    figures = {one.name: _figure(one, findings.methods) for one in drawings}
    n_splits = int(findings.tables["participants"]["n_splits"].max())
    package = files("crossfade.report")
    values = {
        "style": package.joinpath("page.css").read_text("utf-8"),
        "script": package.joinpath("page.js").read_text("utf-8"),
        # No name in the data may end the element that holds them.
        "data": json.dumps(dict(tables), ensure_ascii=False).replace("<", "\\u003c"),
        "version": __version__,
        "title": escape(title),
        "verdict": escape(_kept_together(findings.verdict)),
        "facts": escape(_facts(findings, n_splits)),
        "nouns": findings.nouns,
        "chance": "a half" if findings.n_classes == 2 else f"1/{findings.n_classes}",
        "shares": _shares(findings.n_classes),
        "run": _pairs(_run(findings, n_splits, about, rows_name)),
        "bars": _bars(findings, printed),
        "toggles": _toggles(findings.methods),
        "accuracy_figure": figures.get("accuracy", ""),
        "accuracy_table": _accuracies(findings, printed),
        "accuracy_file": _file("summary"),
        "gains": _gains(findings, figures),
        "participants_text": _participants_text(findings),
        "budget_options": "".join(
            f"<option>{escape(label)}</option>" for label in findings.budgets.values()
        ),
        "participants_table": _participants(findings),
        "participants_file": _file("participants"),
        "saved": _saved(findings, figures),
        "alpha": _alpha(findings, figures),
        "forecast": _forecast(findings, figures),
        "vectors": _vectors(findings, figures),
        "left_out": _left_out(findings),
        "splits": _splits(n_splits, about),
        "methods": _pairs(
            {
                name: _METHODS.get(name, "An estimator that was fitted to the labelled windows.")
                for name in findings.methods
            }
        ),
        "software": escape(_software()),
        "rows_text": f"Rows of all splits are in <code>{escape(rows_name)}</code> there.",
        "files": "\n".join(
            f"<li>{_file_button(name)} {escape(what)}</li>" for name, what in CONTENTS.items()
        ),
    }
    template = package.joinpath("page.html").read_text("utf-8")
    # In one go: what is put in is not looked at again.
    return _PLACE.sub(lambda place: values[place[1]], template)


def _figure(drawing: Drawing, methods: Sequence[str]) -> str:
    # Directions are those of tasks, whose names may begin like those of methods.
    named = () if drawing.name == "projection-vectors" else methods
    return (
        '<figure><div class="plot" tabindex="0" role="group" aria-label="Figure; the arrow keys '
        f'go through its points">{inline(drawing, named)}</div>'
        f"<figcaption>{escape(drawing.text)}</figcaption></figure>"
    )


def _kept_together(text: str) -> str:
    """No line ends between a number and its sign."""
    return (
        text.replace(" %", "\u00a0%")
        .replace("p < ", "p\u00a0<\u00a0")
        .replace("p = ", "p\u00a0=\u00a0")
    )


def _pairs(values: Mapping[str, str]) -> str:
    return "\n".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in values.items())


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>\n"


def _file_button(name: str) -> str:
    return f'<button type="button" class="file" data-file="{name}.csv">{name}.csv</button>'


def _file(name: str, text: str = "") -> str:
    return f'<p class="get">{_file_button(name)}{text}</p>'


def _facts(findings: Findings, n_splits: int) -> str:
    counts = {"method": len(findings.methods), "budget": len(findings.budgets), "split": n_splits}
    parts = [f"{count} {noun}{'s' if count != 1 else ''}" for noun, count in counts.items()]
    return " · ".join([findings.count(len(findings.participants)), *parts])


def _run(
    findings: Findings, n_splits: int, about: Mapping[str, object], rows_name: str
) -> dict[str, str]:
    means = findings.tables["participants"]
    tasks = findings.participants
    n_groups = means["group"].nunique()
    sizes = np.array([np.shape(task.X)[0] for task in tasks])
    labels, counts = np.unique(np.concatenate([task.y for task in tasks]), return_counts=True)
    spread = f"{sizes.min()}" if np.ptp(sizes) == 0 else f"{sizes.min()} to {sizes.max()}"
    n_features = np.shape(tasks[0].X)[1]
    names = tasks.feature_names or ()
    shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    windows = means.groupby("budget")["n_labelled"].agg(["min", "max"])
    known = {
        findings.nouns: f"{len(tasks)}"
        + ("" if n_groups == len(tasks) else f" of {n_groups} participants"),
        "windows": f"{sizes.sum():,}, {spread} of each of the {findings.nouns}; "
        + ", ".join(f"{n:,} of class {name}" for name, n in zip(labels, counts, strict=True)),
        "features": f"{n_features}" + (f": {shown}" if shown else ""),
        "methods": ", ".join(findings.methods),
        "labelled": "; ".join(
            f"{label} ({_range(*windows.loc[budget])})" if budget < 1.0 else label
            for budget, label in findings.budgets.items()
        ),
        "splits": f"{n_splits} of each task and budget",
        "rows": f"{len(findings.rows):,}, in {rows_name}",
        "version": f"Crossfade {__version__}",
    }
    more = {str(name): str(value) for name, value in about.items() if value is not None}
    if "splits" in more:
        more["splits"] = f"{known['splits']}, {more['splits']}"
    return {name.capitalize(): text for name, text in (known | more).items()}


def _range(least: float, most: float) -> str:
    return f"{least:.0f} windows" if least == most else f"{least:.0f} to {most:.0f} windows"


def _bars(findings: Findings, printed: pd.DataFrame) -> str:
    parts = []
    if findings.tables["summary"]["low"].notna().any():
        parts.append("Bars, and the small numbers, are 95 % intervals over participants.")
    ours = findings.tables["summary"][["method", "budget"]]
    if ours.merge(
        printed, left_on=["method", "budget"], right_on=["classifier", "proportion"]
    ).size:
        parts.append("Open circles, and what is called published, are the values of the paper.")
    return " ".join(parts)


def _toggles(methods: Sequence[str]) -> str:
    return "\n".join(
        f'<button type="button" aria-pressed="true" data-method="{escape(name)}" '
        f'style="--colour:{look.colour}">{escape(name)}</button>'
        for name, look in looks(methods).items()
    )


def _accuracies(findings: Findings, printed: pd.DataFrame) -> str:
    summary = findings.tables["summary"]
    found = {(one["method"], one["budget"]): one for one in summary.to_dict("records")}
    values = printed.set_index(["classifier", "proportion"])["value"].to_dict()
    # Nobody could have had the oracle's alpha, and means over fewer tasks are of something else.
    rivals = summary[(summary["method"] != "oracle") & (summary["n_left_out"] == 0)]
    highest = rivals.groupby("budget")["mean"].max().round(3).to_dict()
    lines, best = [], set()
    for place, method in enumerate(findings.methods):
        cells = [f"{method}\n{_GIVEN[method]}" if method in _GIVEN else method]
        for column, budget in enumerate(findings.budgets, 1):
            one = found.get((method, budget))
            cells.append(NOTHING if one is None else _accuracy(one, values.get((method, budget))))
            if one is None or method == "oracle" or one["n_left_out"]:
                continue
            if round(one["mean"], 3) == highest.get(budget):
                best.add((place, column))
        lines.append(cells)
    return boxed(
        ["method", *findings.budgets.values()],
        lines,
        "Mean balanced accuracy of each method and budget",
        [True] + [False] * len(findings.budgets),
        best=best,
    )


def _accuracy(one: Mapping[Hashable, Any], published: float | None) -> str:
    """A mean, and below it what it is of, where that is not what the others are of."""
    parts = [number(one["mean"])]
    if np.isfinite(one["low"]):
        parts.append(f"{one['low']:.2f}–{one['high']:.2f}")
    n_tasks, n_failed = one["n_tasks"], one["n_failed"]
    if one["n_left_out"]:
        parts.append(f"{n_tasks} of {n_tasks + one['n_left_out']} tasks" if n_tasks else "failed")
    elif n_failed:
        parts.append(f"{n_failed} split{'s' * (n_failed > 1)} failed")
    if published is not None:
        parts.append(f"published {published:.3f}")
    return "\n".join(parts)


def _gains(findings: Findings, figures: Mapping[str, str]) -> str:
    rivals, table = findings.rivals, findings.tables["comparison"]
    if rivals is None or not rivals.against:
        return _paragraph("There is but one method with an accuracy: nothing to compare it with.")
    parts = []
    for against in rivals.against:
        parts.append(f"<h3>{escape(rivals.method)} and {escape(against)}</h3>")
        own = table[(table["method"] == rivals.method) & (table["against"] == against)]
        parts.append(figures.get(f"differences-{slug(against)}", ""))
        columns = ["budget", "n_labelled", "wins", "ties", "losses", "mean_difference", "low"]
        more = ["high", "min_difference", "max_difference", "p_value", "p_holm"]
        caption = f"Balanced accuracy of {rivals.method} less that of {against}"
        parts.append(html_table(own[[*columns, *more]], caption))
    parts.append(_file("comparison", " has all methods"))
    return "\n".join(parts)


def _participants_text(findings: Findings) -> str:
    text = f"Balanced accuracy of each of the {findings.nouns}, the mean over its splits."
    if findings.rivals is not None and findings.rivals.against:
        method, against = findings.rivals.method, findings.rivals.against[0]
        text += f" The gain is that of {method} over {against}."
    return escape(text)


def _participants(findings: Findings) -> str:
    means, rivals = findings.tables["participants"], findings.rivals
    accuracies: dict[tuple[str, float], dict[str, float]] = {}
    facts: dict[tuple[str, float], tuple[str, float]] = {}
    for one in means.to_dict("records"):
        key = (one["task"], one["budget"])
        facts[key] = (one["group"], one["n_labelled"])
        accuracies.setdefault(key, {})[one["method"]] = one["balanced_accuracy"]
    grouped = findings.nouns == "tasks"
    words = [findings.nouns[:-1], "labelled", *(["group"] if grouped else [])]
    numbers = ["windows", *findings.methods]
    lines = []
    for (task, budget), found in accuracies.items():
        group, n_labelled = facts[task, budget]
        line = [task, findings.budgets[budget], *([group] if grouped else [])]
        line += [number(n_labelled, 0)]
        line += [number(found.get(name, np.nan)) for name in findings.methods]
        if rivals is not None and rivals.against:
            both = (found.get(name, np.nan) for name in (rivals.method, rivals.against[0]))
            line.append(number(next(both) - next(both), signed=True))
        lines.append(line)
    if rivals is not None and rivals.against:
        numbers.append("gain")
    are_text = [True] * len(words) + [False] * len(numbers)
    caption = f"Balanced accuracy of each of the {findings.nouns}"
    return boxed([*words, *numbers], lines, caption, are_text, name="participants")


def _saved(findings: Findings, figures: Mapping[str, str]) -> str:
    rivals, table = findings.rivals, findings.tables["labels_saved"]
    if rivals is None or not rivals.against:
        return _paragraph("There is but one method with an accuracy: nothing to compare it with.")
    parts = [
        _paragraph(
            f"How many labelled windows does {rivals.method} need to be as accurate as another "
            "method?"
        )
    ]
    pair = [figures.get(f"labels-saved-{slug(name)}", "") for name in rivals.against]
    parts.append(f'<div class="pair">{"".join(pair)}</div>')
    parts.append(html_table(bounded(table), f"Labelled windows that {rivals.method} saves"))
    return "\n".join([*parts, _file("labels_saved")])


def _alpha(findings: Findings, figures: Mapping[str, str]) -> str:
    chosen = with_alpha(findings.tables["participants"])
    if not chosen:
        return _paragraph("None of the methods chooses an alpha.")
    text = (
        "Alpha is the weight of the person's own direction: 1 is the person alone, 0 the crowd "
        "alone."
    )
    if "posterior" in chosen:
        text += " That of posterior is the average weight over all directions."
    if findings.n_classes > 2:
        text += f" Of {findings.n_classes} classes it is the average over their rules."
    return _paragraph(text) + figures.get("alphas", "")


def _forecast(findings: Findings, figures: Mapping[str, str]) -> str:
    table, bins = findings.tables["forecast"], findings.tables["reliability"]
    if table.empty:
        return _paragraph("None of the methods forecasts its accuracy.")
    parts = [
        _paragraph(
            "Before any test window is seen, the labelled ones say how accurate the rule will be. "
            "Where neighbouring windows are correlated more than the crowd's were, the labelled "
            "ones say less than their number, and the forecast is too high."
        )
    ]
    for method in dict.fromkeys(table["method"]):
        own, own_bins = table[table["method"] == method], bins[bins["method"] == method]
        parts.append(_paragraph(_bias(method, own, own_bins)))
    parts.append(figures.get("forecast", ""))
    parts.append(html_table(table, "Forecasts against outcomes, for each method and budget"))
    parts.append(_file("forecast"))
    parts.append(_paragraph("Single forecasts, one for each split, put together where they agree:"))
    parts.append(html_table(bins, "Forecasts against outcomes, for splits with like forecasts"))
    return "\n".join([*parts, _file("reliability")])


def _bias(method: str, table: pd.DataFrame, bins: pd.DataFrame) -> str:
    """How far off the forecasts of a method are, on average and at their ends."""
    weights = table["n_tasks"] / table["n_tasks"].sum()
    forecast, outcome = ((weights * table[name]).sum() for name in ("forecast", "outcome"))
    bias = round(forecast - outcome, 3)
    off = f"{abs(bias):.3f} too {'much' if bias > 0.0 else 'little'}" if bias else "just right"
    text = (
        f"On average {method} promises {forecast:.3f} and reaches {outcome:.3f}, which is {off}; "
        f"for a single task it is off by {(weights * table['absolute_error']).sum():.3f} on "
        "average."
    )
    lowest, highest = bins.iloc[0], bins.iloc[-1]
    if highest["forecast"] > highest["outcome"] and lowest["forecast"] < lowest["outcome"]:
        text += (
            " A forecast from a single split is too sure of itself: where it was highest, "
            f"{highest['forecast']:.3f} on average, {highest['outcome']:.3f} came true, and where "
            f"it was lowest, {lowest['forecast']:.3f}, {lowest['outcome']:.3f}."
        )
    return text


def _shares(n_classes: int) -> str:
    """What balanced accuracy is the mean of."""
    if n_classes == 2:
        return "two shares: that of the first class that is recognised, and that of the second"
    return f"{n_classes} shares: that of each class that is recognised"


def _vectors(findings: Findings, figures: Mapping[str, str]) -> str:
    if findings.n_classes > 2:
        return _paragraph(
            f"There is no figure: with {findings.n_classes} classes a task has several directions."
        )
    if "projection-vectors" not in figures:
        return _paragraph("There is no figure: matplotlib was not installed.") + _file("directions")
    text = "The crowd helps where people agree. Each mark is the direction of one discriminant."
    return _paragraph(text) + figures["projection-vectors"] + _file("directions")


def _left_out(findings: Findings) -> str:
    left_out, failures = findings.tables["left_out"], findings.tables["failures"]
    parts = []
    if left_out.empty:
        parts.append(_paragraph(f"No task is left out: all {len(findings.tasks)} took part."))
    else:
        called = left_out["budget"].map(findings.budgets)
        parts.append(html_table(left_out.assign(budget=called), "Tasks that are left out"))
        parts.append(_file("left_out"))
    n_failed = int(findings.tables["summary"]["n_failed"].sum())
    if not n_failed:
        parts.append(_paragraph("No split failed."))
    elif failures.empty:
        parts.append(_paragraph(f"{n_failed} splits failed; the study does not say why."))
    else:
        keys = ["method", "budget", "message"]
        failures = failures.assign(budget=failures["budget"].map(findings.budgets))
        some = failures.groupby(keys, sort=False).agg(n_tasks=("task", "nunique"), n=("n", "sum"))
        columns = ["method", "budget", "n_tasks", "n", "message"]
        parts.append(
            _paragraph(
                "Splits on which a method failed are left out of its means; the message is that of "
                "the first."
            )
        )
        parts.append(html_table(some.reset_index()[columns], "Splits that failed"))
        parts.append(_file("failures"))
    return "\n".join(parts)


def _splits(n_splits: int, about: Mapping[str, object]) -> str:
    drawn = f"That is done {n_splits} times." if n_splits > 1 else "That is done once."
    return f"{drawn} {_SPLITS.get(str(about.get('splits')), '')}".strip()


def _software() -> str:
    names = [f"Crossfade {__version__}", f"Python {platform.python_version()}"]
    return ", ".join([*names, *(f"{name} {version(name)}" for name in _PACKAGES)])

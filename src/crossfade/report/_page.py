"""The page of a report: what the template ``templates/page.html.j2`` is filled with."""

from __future__ import annotations

import json
import platform
from collections.abc import Hashable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from crossfade._version import __version__
from crossfade.plots._methods import looks, method_of, spoken
from crossfade.report._figures import Drawing, inline, marker, slug, with_alpha
from crossfade.report._findings import Findings
from crossfade.report._text import NOTHING, Table, number, saved_table, table_of

#: What each table holds, by the name of its file.
CONTENTS = {
    "summary": "accuracy of each method and budget",
    "comparison": "differences between methods, with intervals and tests",
    "labels_saved": "labelled windows needed for the same accuracy",
    "forecast": "forecasts and outcomes of each method and budget",
    "reliability": "forecasts and outcomes of single splits, grouped by forecast",
    "participants": "means over splits, for each task, method and budget",
    "directions": "place of each task in the figure of directions, and its cluster",
    "left_out": "tasks that are left out, and why",
    "failures": "splits that failed, and why",
}
_SPLITS = {
    "consecutive": "Labelled windows are consecutive and start at random.",
    "chronological": "Labelled windows are the first in time, as in a real session.",
    "random": "Labelled windows are drawn at random.",
}
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")


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
    """The report as HTML; `tables` has the files to download, `printed` the paper's values."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    templates = Environment(
        loader=PackageLoader("crossfade.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    package = files("crossfade.report")
    figures = {one.name: {"svg": Markup(inline(one)), "text": one.text} for one in drawings}
    n_splits = int(findings.tables["participants"]["n_splits"].max())
    failures, n_failed = _failed(findings)
    return templates.get_template("page.html.j2").render(
        style=Markup(package.joinpath("page.css").read_text("utf-8")),
        script=Markup(package.joinpath("page.js").read_text("utf-8")),
        # No name in the data may end the element that holds them.
        data=Markup(json.dumps(dict(tables), ensure_ascii=False).replace("<", "\\u003c")),
        version=__version__,
        title=title,
        headline=_kept_together(findings.headline),
        verdict=_kept_together(findings.verdict),
        facts=_facts(findings, n_splits),
        run=_run(findings, n_splits, about, rows_name),
        nouns=findings.nouns,
        n_classes=findings.n_classes,
        n_splits=n_splits,
        n_tasks=len(findings.tasks),
        budgets=list(findings.budgets.values()),
        has_intervals=bool(findings.tables["summary"]["low"].notna().any()),
        has_paper=_has_paper(findings, printed),
        has_seeing=any(method_of(name).given for name in findings.methods),
        legend={
            name: {"label": look.label, "marker": Markup(marker(look))}
            for name, look in looks(findings.methods if "accuracy" in figures else []).items()
        },
        figures={
            "accuracy": figures.get("accuracy"),
            "alphas": figures.get("alphas"),
            "forecast": figures.get("forecast"),
            "vectors": figures.get("projection-vectors"),
        },
        accuracies=_accuracies(findings, printed),
        gains=_gains(findings, figures),
        spoken=spoken(findings.rivals.method) if findings.rivals else "",
        participants=_participants(findings),
        saved=_saved(findings),
        with_alpha=with_alpha(findings.tables["participants"]),
        forecasts=_forecasts(findings),
        forecast=table_of(findings.tables["forecast"], "Forecasts and outcomes by budget"),
        reliability=table_of(findings.tables["reliability"], "Forecasts and outcomes of splits"),
        left_out=_left_out(findings),
        failed=failures,
        n_failed=n_failed,
        split_kind=_SPLITS.get(str(about.get("splits")), ""),
        methods={_with_name(name): method_of(name).text for name in findings.methods},
        software=_software(),
        rows_name=rows_name,
        contents=CONTENTS,
    )


def _with_name(name: str) -> str:
    label = method_of(name).label
    return label if label == name else f"{label} ({name})"


def _kept_together(text: str) -> str:
    """No line ends between a number and its sign."""
    for pair in (" %", "p < ", "p = "):
        text = text.replace(pair, pair.replace(" ", "\u00a0"))
    return text


def _facts(findings: Findings, n_splits: int) -> list[str]:
    counts = {"method": len(findings.methods), "budget": len(findings.budgets), "split": n_splits}
    parts = [f"{count} {noun}{'s' if count != 1 else ''}" for noun, count in counts.items()]
    return [findings.count(len(findings.participants)), *parts]


def _run(
    findings: Findings, n_splits: int, about: Mapping[str, object], rows_name: str
) -> dict[str, str]:
    """What was run, by name; `about` may call the classes and add more."""
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
    called = about.get("classes")
    classes = called if isinstance(called, Mapping) else {}
    of_each = [
        f"{n:,} of {classes.get(label, f'class {label}')}"
        for label, n in zip(labels.tolist(), counts, strict=True)
    ]
    known = {
        findings.nouns: f"{len(tasks)}"
        + ("" if n_groups == len(tasks) else f" of {n_groups} participants"),
        "windows": f"{sizes.sum():,}, {spread} of each of the {findings.nouns}; "
        + ", ".join(of_each),
        "features": f"{n_features}" + (f": {shown}" if shown else ""),
        "methods": ", ".join(method_of(name).label for name in findings.methods),
        "labelled": "; ".join(
            f"{label} ({_range(*windows.loc[budget])})" if 0.0 < budget < 1.0 else label
            for budget, label in findings.budgets.items()
        ),
        "splits": f"{n_splits} of each task and budget",
        "rows": f"{len(findings.rows):,}, in {rows_name}",
        "version": f"Crossfade {__version__}",
    }
    more = {
        str(name): str(value)
        for name, value in about.items()
        if value is not None and not (name == "classes" and classes)
    }
    if "splits" in more:
        more["splits"] = f"{known['splits']}, {more['splits']}"
    return {name.capitalize(): text for name, text in (known | more).items()}


def _range(least: float, most: float) -> str:
    return f"{least:.0f} windows" if least == most else f"{least:.0f} to {most:.0f} windows"


def _has_paper(findings: Findings, printed: pd.DataFrame) -> bool:
    ours = findings.tables["summary"][["method", "budget"]]
    names = ["classifier", "proportion"]
    return bool(len(ours.merge(printed, left_on=["method", "budget"], right_on=names)))


def _accuracies(findings: Findings, printed: pd.DataFrame) -> Table:
    summary = findings.tables["summary"]
    found = {(one["method"], one["budget"]): one for one in summary.to_dict("records")}
    values = printed.set_index(["classifier", "proportion"])["value"].to_dict()
    # Methods that see test windows do not compete, nor do means over fewer tasks.
    seeing = {name for name in findings.methods if method_of(name).given}
    fair = summary[~summary["method"].isin(seeing) & (summary["n_left_out"] == 0)]
    highest = fair.groupby("budget")["mean"].max().round(3).to_dict()
    lines, best = [], set()
    for place, method in enumerate(findings.methods):
        look = method_of(method)
        cells = ["\n".join(filter(None, (look.label, look.given)))]
        for column, budget in enumerate(findings.budgets, 1):
            one = found.get((method, budget))
            cells.append(NOTHING if one is None else _accuracy(one, values.get((method, budget))))
            if one is None or method in seeing or one["n_left_out"]:
                continue
            if round(one["mean"], 3) == highest.get(budget):
                best.add((place, column))
        lines.append(cells)
    return Table(
        ["method", *findings.budgets.values()],
        lines,
        "Mean balanced accuracy of each method and budget",
        [True] + [False] * len(findings.budgets),
        best=frozenset(best),
    )


def _accuracy(one: Mapping[Hashable, Any], printed: float | None) -> str:
    """Mean, and below it what it is of, if not of what the others are."""
    parts = [number(one["mean"])]
    if np.isfinite(one["low"]):
        parts.append(f"{one['low']:.2f}–{one['high']:.2f}")
    n_tasks, n_failed = one["n_tasks"], one["n_failed"]
    if one["n_left_out"]:
        parts.append(f"{n_tasks} of {n_tasks + one['n_left_out']} tasks" if n_tasks else "failed")
    elif n_failed:
        parts.append(f"{n_failed} split{'s' * (n_failed > 1)} failed")
    if printed is not None:
        parts.append(f"paper {printed:.3f}")
    return "\n".join(parts)


def _gains(findings: Findings, figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """For each rival: names, figures, and the table of differences."""
    rivals, table = findings.rivals, findings.tables["comparison"]
    if rivals is None:
        return []
    columns = ["budget", "n_labelled", "wins", "ties", "losses", "mean_difference", "low", "high"]
    columns += ["min_difference", "max_difference", "p_value", "p_holm"]
    method, gains = method_of(rivals.method).label, []
    for name in rivals.against:
        against = method_of(name).label
        own = (table["method"] == rivals.method) & (table["against"] == name)
        # A budget at which no task has both says nothing.
        shown = table.loc[own & (table["n_tasks"] > 0), columns]
        gains.append(
            {
                "method": method,
                "against": against,
                "spoken": f"{spoken(rivals.method)} minus {spoken(name)}",
                "figure": figures.get(f"differences-{slug(name)}"),
                "saved": figures.get(f"labels-saved-{slug(name)}"),
                "table": table_of(shown, f"Gain in balanced accuracy of {method} over {against}"),
            }
        )
    return gains


def _participants(findings: Findings) -> Table:
    means, rivals = findings.tables["participants"], findings.rivals
    accuracies: dict[tuple[str, float], dict[str, float]] = {}
    facts: dict[tuple[str, float], tuple[str, float]] = {}
    for one in means.to_dict("records"):
        key = (one["task"], one["budget"])
        facts[key] = (one["group"], one["n_labelled"])
        accuracies.setdefault(key, {})[one["method"]] = one["balanced_accuracy"]
    grouped = findings.nouns == "tasks"
    words = [findings.nouns[:-1], "labelled", *(["group"] if grouped else [])]
    numbers = ["windows", *(method_of(name).label for name in findings.methods)]
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
    return Table([*words, *numbers], lines, caption, are_text, name="participants")


def _saved(findings: Findings) -> Table | None:
    rivals = findings.rivals
    return saved_table(findings.tables["labels_saved"], rivals.method) if rivals else None


def _forecasts(findings: Findings) -> list[str]:
    """How far off the forecasts of each method are, on average and at their ends."""
    table, bins = findings.tables["forecast"], findings.tables["reliability"]
    texts = []
    for method in dict.fromkeys(table["method"]):
        own, groups = table[table["method"] == method], bins[bins["method"] == method]
        weights = own["n_tasks"] / own["n_tasks"].sum()
        forecast, outcome = ((weights * own[name]).sum() for name in ("forecast", "outcome"))
        bias = round(forecast - outcome, 3)
        off = f"{abs(bias):.3f} too {'high' if bias > 0.0 else 'low'}" if bias else "just right"
        text = (
            f"{method_of(method).label}: the mean forecast is {forecast:.3f}, the accuracy reached "
            f"{outcome:.3f}, so the forecast is {off}. A single one is off by "
            f"{(weights * own['absolute_error']).sum():.3f} on average."
        )
        low, high = groups.iloc[0], groups.iloc[-1]
        if high["forecast"] > high["outcome"] and low["forecast"] < low["outcome"]:
            text += (
                " Forecasts from a single split are too extreme: the highest are "
                f"{high['forecast']:.3f} on average, where {high['outcome']:.3f} is reached; the "
                f"lowest are {low['forecast']:.3f}, where {low['outcome']:.3f} is reached."
            )
        texts.append(text)
    return texts


def _left_out(findings: Findings) -> Table | None:
    frame = findings.tables["left_out"]
    if frame.empty:
        return None
    return table_of(frame.assign(budget=frame["budget"].map(findings.budgets)), "Tasks left out")


def _failed(findings: Findings) -> tuple[Table | None, int]:
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


def _software() -> str:
    names = [f"Crossfade {__version__}", f"Python {platform.python_version()}"]
    return ", ".join([*names, *(f"{name} {version(name)}" for name in _PACKAGES)])

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
from crossfade.report._text import NOTHING, Table, needed_table, number, saved_table, table_of

#: What each table holds, by the name of its file.
CONTENTS = {
    "needed": "windows that a new person needs, by method",
    "summary": "accuracy of each method and budget",
    "forecast": "how true forecasts of single calibrations are, by method and budget",
    "reliability": "forecasts and outcomes of single calibrations, grouped by forecast",
    "probabilities": "log loss and Brier score of each method and budget",
    "comparison": "differences between methods, with intervals and tests",
    "labels_saved": "labelled windows needed for the same accuracy",
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
        verdict=_kept_together(findings.verdict.removeprefix(findings.headline).strip()),
        answer=findings.answer,
        reach=f"{findings.reach:g}",
        share=f"{100.0 * findings.share:.3g}",
        needed=_needed(findings),
        never=_never(findings),
        oracles=_oracles(findings),
        twins=_twins(findings),
        facts=_facts(findings, n_splits),
        run=_run(findings, n_splits, about, rows_name),
        nouns=findings.nouns,
        n_classes=findings.n_classes,
        coin=number(np.log(findings.n_classes)),
        n_splits=n_splits,
        n_tasks=len(findings.tasks),
        budgets=list(findings.budgets.values()),
        has_intervals=bool(findings.tables["summary"]["low"].notna().any()),
        has_paper=_has_paper(findings, printed),
        has_seeing=any(method_of(name).given for name in findings.methods),
        legend={
            name: {"label": look.label, "marker": Markup(marker(look))}
            for name, look in looks(findings.compared if "accuracy" in figures else []).items()
        },
        figures={
            "needed": figures.get("needed"),
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
        forecast=_forecast(findings),
        reliability=table_of(findings.tables["reliability"], "Forecasts grouped by their value"),
        probabilities=_probabilities(findings),
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
    seeing = set(findings.methods) - set(_fair(findings))
    fair = summary[~summary["method"].isin(seeing) & (summary["n_left_out"] == 0)]
    highest = fair.groupby("budget")["mean"].max().round(3).to_dict()
    lines, best = [], set()
    for place, method in enumerate(_bounds_last(findings.compared)):
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


def _fair(findings: Findings) -> list[str]:
    """Methods that may win: they see neither test windows nor their labels."""
    return [name for name in findings.methods if not method_of(name).given]


def _bounds_last(names: Sequence[str]) -> list[str]:
    """Methods in order, those that see more than they may at the end, next to each other."""
    return sorted(names, key=lambda name: bool(method_of(name).given))


def _needed(findings: Findings) -> Table | None:
    table = findings.tables["needed"]
    if not table["n_people"].any():
        return None
    names = _bounds_last(findings.compared)
    in_order = table.set_index("method").reindex(
        [one for one in names if one in set(table["method"])]
    )
    return needed_table(in_order.reset_index(), names, _fair(findings))


def _never(findings: Findings) -> str:
    """Who never reaches the accuracy with the method that the report is about."""
    table, rivals = findings.tables["needed"], findings.rivals
    if rivals is None:
        return ""
    for line in table[table["method"] == rivals.method].to_dict("records"):
        if line["n_never"]:
            names = line["never"].split(", ")
            shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" * (len(names) > 8))
            never = f"{line['n_never']} of {line['n_people']} never reach it: {shown}."
            return f"With {spoken(rivals.method)}, {never}"
    return ""


def _oracles(findings: Findings) -> str:
    """What the paper's oracle is worth without its luck, where both were run."""
    table = findings.tables["summary"].pivot(index="budget", columns="method", values="mean")
    if not {"oracle", "oracle-honest"} <= set(table):
        return ""
    both = table[["oracle", "oracle-honest"]].dropna()
    if both.empty:
        return ""
    luck = (both["oracle"] - both["oracle-honest"]).mean()
    return (
        "The paper's oracle picks the best alpha on the test windows themselves. The honest oracle "
        "picks it on every second one, for the others, and the reverse; its mean accuracy is "
        f"{abs(luck):.3f} {'lower' if luck > 0.0 else 'higher'}."
    )


def _twins(findings: Findings) -> str:
    """Methods that are left out of the accuracies, since another has the same."""
    names = [name for name in findings.methods if name not in findings.compared]
    labels = " and ".join(method_of(name).label for name in names)
    return f"{labels} predicts the same labels as without calibration." if names else ""


def _forecast(findings: Findings) -> Table:
    """How true single forecasts are; the rest of the table is in its file."""
    columns = ["method", "budget", "rms", "constant_rms", "coverage_68", "coverage_90", "forecast"]
    columns += ["outcome", "bias", "correlation", "n_splits"]
    table = findings.tables["forecast"][columns]
    # Before the first label all forecasts are a constant of the others, which goes against them.
    table = table.assign(correlation=table["correlation"].where(table["budget"] > 0.0))
    return table_of(table, "How true one forecast is")


def _probabilities(findings: Findings) -> Table | None:
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
        cells = [method_of(method).label]
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
    heads = ["method", *findings.budgets.values()]
    caption = "Log loss, and below it the Brier score"
    return Table(
        heads, lines, caption, [True] + [False] * len(findings.budgets), best=frozenset(best)
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
    numbers = ["windows", *(method_of(name).label for name in findings.compared)]
    lines = []
    for (task, budget), found in accuracies.items():
        group, n_labelled = facts[task, budget]
        line = [task, findings.budgets[budget], *([group] if grouped else [])]
        line += [number(n_labelled, 0)]
        line += [number(found.get(name, np.nan)) for name in findings.compared]
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
    """What one forecast of each method is worth, beside a constant."""
    table = findings.tables["forecast"]
    texts = []
    for method in dict.fromkeys(table["method"]):
        own = table[table["method"] == method]
        weights = own["n_splits"] / own["n_splits"].sum()
        rms, constant = (
            float(np.sqrt((weights * own[name] ** 2).sum(skipna=False)))
            for name in ("rms", "constant_rms")
        )
        bias = round(float((weights * own["bias"]).sum()), 3)
        off = f"{abs(bias):.3f} too {'high' if bias > 0.0 else 'low'}" if bias else "right"
        text = f"{method_of(method).label}: one forecast is off by {number(rms)} (root mean square)"
        if np.isfinite(constant):
            text += f", a constant by {number(constant)}"
        text += f"; on average it is {off}."
        held = [
            f"{level} % interval holds {100.0 * (weights * own[f'coverage_{level}']).sum():.0f} %"
            for level in (68, 90)
            if own[f"coverage_{level}"].notna().all()
        ]
        texts.append(f"{text} Its {' and its '.join(held)} of the outcomes." if held else text)
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

"""The page of a report: what the template ``templates/page.html.j2`` is filled with."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from crossfade._version import __version__
from crossfade.plots import inline, looks, marker, method_of
from crossfade.report import _tables
from crossfade.report._figures import Drawing, slug
from crossfade.report._findings import Findings, class_text
from crossfade.report._tables import number

#: What each table holds, by the name of its file.
CONTENTS = {
    "needed": "windows that a new person needs, by method",
    "summary": "accuracy of each method and budget",
    "forecast": "how true forecasts of single calibrations are, by method and budget",
    "reliability": "forecasts and outcomes of single calibrations, grouped by forecast",
    "probabilities": "log loss and Brier score of each method and budget",
    "comparison": "differences of every method from these rivals, with intervals and tests",
    "labels_saved": "labelled windows needed for the same accuracy",
    "participants": "means over splits, for each task, method and budget",
    "left_out": "tasks that are left out, and why",
    "failures": "splits that failed, and why",
}
_SPLITS = {
    "consecutive": "Labelled windows are consecutive and start at random.",
    "chronological": "Labelled windows are the first in time, as in a real session.",
    "random": "Labelled windows are drawn at random.",
    "next-session": "Labelled windows are consecutive and start at random, in later sessions of "
    "people who have been there before.",
}
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")
#: Letters of the largest table that the page holds; others are files beside it.
_LARGEST = 1_000_000


def page(
    findings: Findings,
    drawings: Sequence[Drawing],
    tables: Mapping[str, str],
    *,
    title: str,
    about: Mapping[str, object],
    rows_name: str,
) -> str:
    """The report as HTML; `tables` has the content of the files to download."""
    templates = Environment(
        loader=PackageLoader("crossfade.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    package = files("crossfade.report")
    figures = {
        one.name: {"svg": Markup(inline(one.on_page, one.name, one.text)), "text": one.text}
        for one in drawings
    }
    summary = findings.tables["summary"]
    shown = looks(findings.compared if "accuracy" in figures else [])
    return templates.get_template("page.html.j2").render(
        style=Markup(package.joinpath("page.css").read_text("utf-8")),
        script=Markup(package.joinpath("page.js").read_text("utf-8")),
        data=_for_script({name: one for name, one in tables.items() if len(one) < _LARGEST}),
        far=[name for name, one in tables.items() if len(one) >= _LARGEST],
        version=__version__,
        title=title,
        headline=_kept_together(findings.headline),
        statistics=[_kept_together(text) for text in findings.statistics],
        reach=f"{findings.reach:g}",
        share=f"{100.0 * findings.share:.3g}",
        needed=_tables.needed(findings),
        reached=findings.reached,
        never=_never(findings),
        twins=_twins(findings),
        notes=findings.notes,
        facts=_facts(findings),
        run=_run(findings, about, rows_name),
        nouns=findings.nouns,
        n_classes=findings.n_classes,
        coin=number(np.log(findings.n_classes)),
        n_splits=int(findings.tables["participants"]["n_splits"].max()),
        n_tasks=len(findings.tasks),
        budgets=list(findings.budgets.values()),
        has_intervals=bool(summary["low"].notna().any()),
        has_seeing=any(method_of(name).given for name in findings.methods),
        legend={
            name: {"label": look.label, "marker": Markup(marker(look)), "given": look.given}
            for name, look in shown.items()
        },
        figures=figures,
        accuracies=_tables.accuracies(findings),
        gains=_gains(findings, figures),
        spoken=method_of(findings.method).spoken,
        participants=_tables.participants(findings),
        saved=_tables.saved(findings),
        alphas=_tables.alphas(findings),
        one_forecast=_one_forecast(findings),
        rehearsed=about.get("forecasts") != "without rehearsal",
        forecast=_tables.forecast(findings),
        probabilities=_tables.probabilities(findings),
        left_out=_tables.left_out(findings),
        failed=_tables.failed(findings),
        n_failed=int(summary["n_failed"].sum()),
        split_kind=_SPLITS.get(str(about.get("splits")), ""),
        methods={_with_name(name): method_of(name).text for name in findings.methods},
        software=_software(),
        rows_name=rows_name,
        contents=CONTENTS,
    )


def _for_script(content: object) -> Markup:
    """JSON within an element for scripts, which no name in the data may end."""
    return Markup(json.dumps(content, ensure_ascii=False).replace("<", "\\u003c"))


def _with_name(name: str) -> str:
    label = method_of(name).label
    return label if label == name else f"{label} ({name})"


def _kept_together(text: str) -> str:
    """No line ends between a number and its sign."""
    for pair in (" %", "p < ", "p = "):
        text = text.replace(pair, pair.replace(" ", "\u00a0"))
    return text


def _facts(findings: Findings) -> list[str]:
    n_splits = int(findings.tables["participants"]["n_splits"].max())
    counts = {"method": len(findings.methods), "budget": len(findings.budgets), "split": n_splits}
    parts = [f"{count} {noun}{'s' if count != 1 else ''}" for noun, count in counts.items()]
    return [findings.count(len(findings.participants)), *parts]


def _run(findings: Findings, about: Mapping[str, object], rows_name: str) -> dict[str, str]:
    """Facts about the run, by name; `about` may add more."""
    means, tasks = findings.tables["participants"], findings.participants
    n_splits, n_groups = int(means["n_splits"].max()), means["group"].nunique()
    sizes = np.array([np.shape(task.X)[0] for task in tasks])
    labels, counts = np.unique(np.concatenate([task.y for task in tasks]), return_counts=True)
    names = tasks[0].feature_names or ()
    shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    windows = means.groupby("budget")["n_labelled"].agg(["min", "max"])
    of_each = ", ".join(
        f"{n:,} of {class_text(findings.class_names, label)}"
        for label, n in zip(labels.tolist(), counts, strict=True)
    )
    known = {
        findings.nouns: f"{len(tasks)}"
        + ("" if n_groups == len(tasks) else f" of {n_groups} participants"),
        "windows": f"{sizes.sum():,}; {_range(sizes.min(), sizes.max())} per "
        f"{findings.nouns[:-1]}; {of_each}",
        "features": f"{np.shape(tasks[0].X)[1]}" + (f": {shown}" if shown else ""),
        "methods": ", ".join(method_of(name).label for name in findings.methods),
        "labelled": "; ".join(
            f"{label} ({_range(*windows.loc[budget])} windows)" if 0.0 < budget < 1.0 else label
            for budget, label in findings.budgets.items()
        ),
        "splits": f"{n_splits} of each task and budget",
        "rows": f"{means['n_splits'].sum():,}, in {rows_name}",
        "version": f"Crossfade {__version__}",
    }
    more = {str(name): str(value) for name, value in about.items() if value is not None}
    if "splits" in more:
        more["splits"] = f"{known['splits']}, {more['splits']}"
    return {name.capitalize(): text for name, text in (known | more).items()}


def _range(least: float, most: float) -> str:
    return f"{least:.0f}" if least == most else f"{least:.0f} to {most:.0f}"


def _never(findings: Findings) -> str:
    """Who never reaches the accuracy with the method that the report is about."""
    table = findings.tables["needed"]
    for line in table[table["method"] == findings.method].to_dict("records"):
        if line["n_never"]:
            names = line["never"].split(", ")
            shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" * (len(names) > 8))
            never = f"{line['n_never']} of {line['n_people']} never reach it: {shown}."
            return f"With {method_of(findings.method).spoken}, {never}"
    return ""


def _twins(findings: Findings) -> str:
    """Methods that are left out of the accuracies, since another has the same."""
    names = [name for name in findings.methods if name not in findings.compared]
    labels = " and ".join(method_of(name).label for name in names)
    return f"{labels} predicts the same labels as without calibration." if names else ""


def _gains(findings: Findings, figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """For each rival: names, figure, and the table of differences."""
    return [
        {
            "method": method_of(findings.method).label,
            "against": method_of(name).label,
            "spoken": f"{method_of(findings.method).spoken} minus {method_of(name).spoken}",
            "figure": figures.get(f"differences-{slug(name)}"),
            "table": _tables.gain(findings, name),
        }
        for name in findings.against
    ]


def _one_forecast(findings: Findings) -> str:
    """Error of one forecast beside that of a constant, for the method of the report."""
    table = findings.tables["forecast"]
    if table.empty:
        return ""
    names = list(dict.fromkeys(table["method"]))
    method = findings.method if findings.method in names else str(names[0])
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
    text += f" Its {' and its '.join(held)} of the outcomes." if held else ""
    return _kept_together(text)


def _software() -> str:
    names = [f"Crossfade {__version__}", f"Python {platform.python_version()}"]
    return ", ".join([*names, *(f"{name} {version(name)}" for name in _PACKAGES)])

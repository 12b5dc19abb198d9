"""Figures of a report: as files for print, and as drawings within the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from crossfade import plots
from crossfade.plots import (
    LINE_MARKERS,
    MethodLook,
    for_files,
    method_of,
    render,
    spoken,
    tip_id,
    told_by,
)
from crossfade.report._findings import DRAWN, Findings, tells_labels
from crossfade.report._text import number
from crossfade.study import budget_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What XML cannot hold, though a name may.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_REFERENCE = re.compile(r"(?<=url\(#)\w+|(?<=^#)\w+")
_FONT = re.compile(r"font-family:[^;]*;? *")
_OPACITY = re.compile(r"(?<!-)opacity: ([\d.]+)")
_NUMBER = re.compile(r"-?\d+\.\d+|-0\b")
#: Attributes that hold places.
_PLACES = ("d", "x", "y", "transform", "points", "width", "height")


class Drawing(NamedTuple):
    """One figure: the name of its file, what it shows, and what to tell those who do not see it."""

    name: str
    text: str
    more: str
    figure: Figure
    #: The same for the page, where that differs.
    on_page: Figure | None = None


def draw(findings: Findings) -> list[Drawing]:
    """All figures that a study allows for, in the order of the report."""
    with for_files():
        return list(_of_methods(findings))


def _of_methods(findings: Findings) -> Iterator[Drawing]:
    tables, rivals = findings.tables, findings.rivals
    if rivals is None:
        return
    rows = tables["participants"]
    rows = rows[rows["balanced_accuracy"].notna()]
    # Twins would lie on one another.
    apart = rows[rows["method"].isin(findings.compared)]
    seeing = any(method_of(name).given for name in findings.compared)
    dashed = " Dashed lines: methods that see test windows." * seeing
    if tables["needed"]["n_people"].any():
        options: dict[str, Any] = {"n_classes": findings.n_classes}
        yield Drawing(
            "needed",
            _needed_text(findings) + dashed,
            findings.headline,
            plots.needed(apart, findings.reach, findings.share, **options),
            plots.needed(apart, findings.reach, findings.share, legend=False, **options),
        )
    smallest = min(findings.budgets)
    summary = tables["summary"]
    least = summary[summary["budget"] == smallest].set_index("method")["mean"]
    means = ", ".join(f"{method_of(str(name)).label} {number(one)}" for name, one in least.items())
    chance = 1.0 / findings.n_classes
    yield Drawing(
        "accuracy",
        "Mean balanced accuracy of each method against the labelled windows."
        + " Right of the line: unequal numbers." * _has_unequal(findings)
        + dashed,
        f"With {findings.budgets[smallest]}: {means}.",
        plots.accuracy_by_budget(apart, chance=chance),
        # On the page, the buttons are the legend.
        plots.accuracy_by_budget(apart, chance=chance, legend=False),
    )
    if len(tables["forecast"]):
        yield Drawing(
            "forecast",
            "Left: accuracy reached by calibrations with like forecasts, of five people or more, "
            "with its standard error over people; on the grey diagonal, forecast and outcome "
            "agree. Right: error of one forecast; dots and open markers: that of a constant, the "
            "mean accuracy of the other people.",
            "The tables have the numbers.",
            plots.forecast(findings.result),
            plots.forecast(findings.result, legend=False),
        )
    method = spoken(rivals.method)
    compared = tables["comparison"]
    for against in rivals.against:
        both = (compared["method"] == rivals.method) & (compared["against"] == against)
        if compared.loc[both, "n_tasks"].any():
            yield Drawing(
                f"differences-{slug(against)}",
                f"Gain of each of the {findings.nouns}: balanced accuracy of {method} minus that "
                f"of {spoken(against)}. Right of the dashed line, {method} is better.",
                "One histogram for each budget.",
                plots.differences(rows, rivals.method, against),
            )
    for against in rivals.against:
        part = tables["labels_saved"].query("against == @against and accuracy == accuracy")
        if tells_labels(part).any():
            yield Drawing(
                f"labels-saved-{slug(against)}",
                f"Labelled windows for the same accuracy. Open: those of {spoken(against)}. "
                f"Filled: those that {method} needs, with their 95 % interval. A dash: its "
                "smallest budget is enough, and fewer windows were not tried.",
                "The table has the numbers.",
                plots.labels_saved(part),
                plots.labels_saved(part, legend=False),
            )
    chosen = with_alpha(tables["participants"])
    if chosen:
        yield Drawing(
            "alphas",
            f"Mean alpha of each of the {findings.nouns}, one panel for each budget. A black bar "
            f"is the median.{_sample(findings)}",
            f"For {', '.join(method_of(name).label for name in chosen)}, at each budget.",
            plots.alphas(findings.drawn, chosen),
        )


def _needed_text(findings: Findings) -> str:
    """What the figure of windows needed shows; without answers it has one panel."""
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


def _sample(findings: Findings) -> str:
    """That not all are drawn, where they are not."""
    n_all = len(findings.participants)
    return f" {DRAWN} of {n_all:,} are drawn, chosen at random." if findings.many else ""


def _has_unequal(findings: Findings) -> bool:
    return any(isinstance(budget_of(one), tuple) for one in findings.budgets)


def slug(name: str) -> str:
    """Letters and digits of a name, for a file."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "method"


def with_alpha(means: pd.DataFrame) -> list[str]:
    """Methods that choose an alpha; those for which it is 0 or 1 everywhere do not."""
    found = means[means["balanced_accuracy"].notna()].groupby("method", sort=False)["alpha"]
    fixed = found.transform(lambda alpha: alpha.eq(0.0).all() or alpha.eq(1.0).all())
    chosen = means.loc[fixed.index][~fixed.astype(bool)].dropna(subset="alpha")
    return list(dict.fromkeys(chosen["method"]))


def marker(look: MethodLook) -> str:
    """Marker of a method as an svg element, for the legend of the page."""
    from matplotlib.markers import MarkerStyle
    from matplotlib.path import Path

    style = MarkerStyle(look.marker)
    codes = (Path.MOVETO, Path.LINETO, Path.CURVE3, Path.CURVE4, Path.CLOSEPOLY)
    letters = dict(zip(map(int, codes), "MLQCZ", strict=True))
    parts = []
    path = style.get_path().transformed(style.get_transform())
    for points, code in path.iter_segments():
        numbers = " ".join(f"{value:.3g}" for value in points)
        parts.append("Z" if code == Path.CLOSEPOLY else f"{letters[int(code)]}{numbers}")
    fill = "none" if look.marker in LINE_MARKERS else look.colour
    # Pages count downwards, figures upwards.
    return (
        '<svg viewBox="-0.8 -0.8 1.6 1.6" aria-hidden="true"><path transform="scale(1 -1)" '
        f'd="{"".join(parts)}" fill="{fill}" stroke="{look.colour}" stroke-width="0.12"/></svg>'
    )


def inline(drawing: Drawing) -> str:
    """Figure as an svg element of the page, with attributes for its script.

    What belongs to a method has ``data-series``, what says something of itself ``data-tip``. Ids
    are the page's own, and there is no address.
    """
    content = render(drawing.on_page or drawing.figure, "svg").decode()
    root = ElementTree.fromstring(_FORBIDDEN.sub("", content))
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    used = {
        one
        for part in root.iter()
        for value in part.attrib.values()
        for one in _REFERENCE.findall(value)
    }
    for element in root.iter():
        _spread_tips(element)
    for element in root.iter():
        element.tag = _local(element.tag)
        attributes = {_local(name): value for name, value in element.attrib.items()}
        element.attrib.clear()
        for name, value in attributes.items():
            if name == "id":
                element.attrib.update(_told_by_id(value, drawing.name, used))
            elif name in ("href", "clip-path", "style"):
                # Letters are the page's own.
                value = _FONT.sub("", value)
                element.set(name, _REFERENCE.sub(rf"{drawing.name}-\g<0>", value))
            elif name in _PLACES:
                value = _rounded(value)
                if not value.startswith("rotate(0 "):
                    element.set(name, value)
            else:
                element.set(name, value)
        if not (element.text or "").strip():
            element.text = None
        element.tail = None
    width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
    root.attrib.clear()
    root.attrib.update(
        {
            "viewBox": f"0 0 {width:g} {height:g}",
            "role": "img",
            "aria-label": f"{drawing.text} {drawing.more}".strip(),
            "style": f"--width:{width:.0f}",
        }
    )
    return ElementTree.tostring(root, encoding="unicode")


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _rounded(places: str) -> str:
    """Places with two decimals, of a hundredth of a point, and single spaces."""
    short = _NUMBER.sub(
        lambda found: f"{float(found[0]) + 0.0:.2f}".rstrip("0").rstrip("."), places
    )
    return " ".join(short.replace("-0 ", "0 ").split())


def _spread_tips(element: ElementTree.Element) -> None:
    """Give each of the points that are drawn as one artist its own text; their look is one."""
    gid = element.get("id", "")
    if not gid.startswith("tip:"):
        return
    owner, texts = told_by(gid)
    points = [part for part in element.iter() if _local(part.tag) == "use"]
    if len(points) != len(texts):
        return
    del element.attrib["id"]
    if owner:
        element.set("id", f"series:{owner}")
    for point, text in zip(points, texts, strict=True):
        point.set("id", tip_id(text))
    if len({point.get("style") for point in points}) == 1:
        # Opacity of a group would hide which points lie on one another.
        look = points[0].attrib.get("style", "")
        element.set("style", _OPACITY.sub(r"fill-opacity: \1; stroke-opacity: \1", look))
        for point in points:
            point.attrib.pop("style", None)


def _told_by_id(value: str, prefix: str, used: set[str]) -> dict[str, str]:
    if value.startswith("series:"):
        return {"data-series": value.removeprefix("series:")}
    if value.startswith("tip:"):
        owner, [text, *_] = told_by(value)
        return {"data-tip": text} | ({"data-series": owner} if owner else {})
    return {"id": f"{prefix}-{value}"} if value in used else {}

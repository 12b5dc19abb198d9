"""Figures of a report: as files for print, and as drawings within the page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

import pandas as pd

from crossfade import plots
from crossfade.plots._methods import MethodLook, method_of, spoken
from crossfade.plots._style import LINE_MARKERS, tip_id, told_by
from crossfade.report._findings import Findings
from crossfade.report._text import number
from crossfade.study._budgets import budget_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Nothing in a file may depend on when it was written.
_UNDATED: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {},
}
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "crossfade",
    "pdf.fonttype": 42,
    # Names of methods are no formulas.
    "text.parse_math": False,
}
#: What XML cannot hold, though a name may.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_REFERENCE = re.compile(r"(?<=url\(#)\w+|(?<=^#)\w+")
_FONT = re.compile(r"font-family:[^;]*;? *")


class Drawing(NamedTuple):
    """One figure: the name of its file, what it shows, and what to tell those who do not see it."""

    name: str
    text: str
    more: str
    figure: Figure
    #: The same for the page, where that differs.
    on_page: Figure | None = None


@contextmanager
def _settings() -> Iterator[None]:
    import matplotlib

    settings: Any = _SETTINGS
    with matplotlib.rc_context(settings):
        yield


def draw(findings: Findings, paper: pd.DataFrame | None) -> list[Drawing]:
    """All figures that a study allows for, in the order of the report."""
    with _settings():
        return [*_of_methods(findings, paper), *_of_directions(findings)]


def _of_methods(findings: Findings, paper: pd.DataFrame | None) -> Iterator[Drawing]:
    tables, rivals = findings.tables, findings.rivals
    if rivals is None:
        return
    rows = findings.rows[findings.rows["balanced_accuracy"].notna()]
    # Twins would lie on one another.
    apart = rows[rows["method"].isin(findings.compared)]
    if findings.tables["needed"]["n_people"].any():
        reach, share = findings.reach, f"{100.0 * findings.share:.3g} %"
        yield Drawing(
            "needed",
            f"Left: people who reach a balanced accuracy of {reach:g}; the dashed line is at "
            f"{share}. Right: windows until {share} of people reach it, with 95 % intervals over "
            "people; an arrow to the right: more than were tried.",
            findings.headline,
            plots.needed(apart, reach, findings.share, n_classes=findings.n_classes),
        )
    smallest = min(findings.budgets)
    summary = tables["summary"]
    least = summary[summary["budget"] == smallest].set_index("method")["mean"]
    means = ", ".join(f"{method_of(str(name)).label} {number(one)}" for name, one in least.items())
    options: dict[str, Any] = {"reference": paper, "chance": 1.0 / findings.n_classes}
    yield Drawing(
        "accuracy",
        "Mean balanced accuracy of each method against what is labelled."
        + " Right of the line: unequal numbers." * _has_unequal(findings),
        f"With {findings.budgets[smallest]}: {means}.",
        plots.accuracy_by_budget(apart, **options),
        # On the page, the buttons are the legend.
        plots.accuracy_by_budget(apart, legend=False, **options),
    )
    if len(tables["forecast"]):
        yield Drawing(
            "forecast",
            "Left: accuracy reached by calibrations with like forecasts, of five people or more, "
            "with its standard error over people. Right: error of one forecast; dashed: that of a "
            "constant, the mean accuracy of the other people.",
            "The tables have the numbers.",
            plots.forecast(rows),
            plots.forecast(rows, legend=False),
        )
    method = spoken(rivals.method)
    compared = tables["comparison"]
    for against in rivals.against:
        both = (compared["method"] == rivals.method) & (compared["against"] == against)
        if compared.loc[both, "n_tasks"].any():
            yield Drawing(
                f"differences-{slug(against)}",
                f"Gain of each of the {findings.nouns}: balanced accuracy of {method} minus that "
                f"of {spoken(against)}.",
                "One histogram for each budget.",
                plots.differences(rows, rivals.method, against),
            )
    for against in rivals.against:
        part = tables["labels_saved"].query("against == @against and accuracy == accuracy")
        if len(part):
            yield Drawing(
                f"labels-saved-{slug(against)}",
                f"Labelled windows that {method} needs for the accuracy of "
                f"{spoken(against)}. A dash: its smallest budget is enough, and fewer "
                "windows were not tried.",
                "The table has the numbers.",
                plots.labels_saved(part),
            )
    chosen = with_alpha(tables["participants"])
    if chosen:
        yield Drawing(
            "alphas",
            f"Mean alpha of each of the {findings.nouns}.",
            f"For {', '.join(method_of(name).label for name in chosen)}, at each budget.",
            plots.alphas(rows, chosen),
        )


def _has_unequal(findings: Findings) -> bool:
    return any(isinstance(budget_of(one), tuple) for one in findings.budgets)


def _of_directions(findings: Findings) -> Iterator[Drawing]:
    table = findings.tables["directions"]
    if table.empty:
        return
    text = f"Directions of the discriminants of {findings.count(len(findings.participants))}."
    if "explained" in table.attrs:
        text += " In brackets: the share of the squared affinities that a component explains."
    more = "Directions that point the same way are near each other."
    yield Drawing("projection-vectors", text, more, plots.projection_vectors(table))


def slug(name: str) -> str:
    """Letters and digits of a name, for a file."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "method"


def with_alpha(means: pd.DataFrame) -> list[str]:
    """Methods that choose an alpha; those for which it is 0 or 1 everywhere do not."""
    found = means[means["balanced_accuracy"].notna()].groupby("method", sort=False)["alpha"]
    fixed = found.transform(lambda alpha: alpha.eq(0.0).all() or alpha.eq(1.0).all())
    chosen = means.loc[fixed.index][~fixed.astype(bool)].dropna(subset="alpha")
    return list(dict.fromkeys(chosen["method"]))


def render(figure: Figure, image_format: str) -> bytes:
    """Content of a picture file, the same whenever it is made."""
    content = io.BytesIO()
    with _settings():
        figure.savefig(
            content,
            format=image_format,
            dpi=300,
            transparent=image_format == "svg",
            metadata=_UNDATED[image_format],
        )
    return content.getvalue()


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


def _spread_tips(element: ElementTree.Element) -> None:
    """Give each of the points that are drawn as one artist its own text."""
    gid = element.get("id", "")
    if not gid.startswith("tip:"):
        return
    owner, texts = told_by(gid)
    points = [part for part in element.iter() if _local(part.tag) == "use"]
    if len(points) == len(texts):
        del element.attrib["id"]
        for point, text in zip(points, texts, strict=True):
            point.set("id", tip_id(text, owner=owner))


def _told_by_id(value: str, prefix: str, used: set[str]) -> dict[str, str]:
    if value.startswith("series:"):
        return {"data-series": value.removeprefix("series:")}
    if value.startswith("tip:"):
        owner, [text, *_] = told_by(value)
        return {"data-tip": text} | ({"data-series": owner} if owner else {})
    return {"id": f"{prefix}-{value}"} if value in used else {}

"""Findings in; figures out, as files for print and as drawings within a page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

import pandas as pd

from crossfade import plots
from crossfade.report._findings import Findings
from crossfade.report._text import number

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
    """One figure.

    Attributes
    ----------
    name : str
        What its file is called.
    text : str
        What it shows.
    more : str
        What else to tell those who do not see it.
    figure : Figure
        The figure.
    """

    name: str
    text: str
    more: str
    figure: Figure


@contextmanager
def _settings() -> Iterator[None]:
    import matplotlib

    settings: Any = _SETTINGS
    with matplotlib.rc_context(settings):
        yield


def draw(findings: Findings, paper: pd.DataFrame | None) -> list[Drawing]:
    """All figures that a study allows for.

    Parameters
    ----------
    findings : Findings
        What was found.
    paper : DataFrame or None
        Values of the paper.

    Returns
    -------
    list of Drawing
        In the order of the report.
    """
    with _settings():
        return [*_of_methods(findings, paper), *_of_directions(findings)]


def _of_methods(findings: Findings, paper: pd.DataFrame | None) -> Iterator[Drawing]:
    tables, rivals = findings.tables, findings.rivals
    if rivals is None:
        return
    rows = findings.rows[findings.rows["balanced_accuracy"].notna()]
    smallest = min(findings.budgets)
    summary = tables["summary"]
    least = summary[summary["budget"] == smallest].set_index("method")["mean"]
    means = ", ".join(f"{name} {number(mean)}" for name, mean in least.items())
    yield Drawing(
        "accuracy",
        "Mean balanced accuracy of each method against what is labelled.",
        f"With {findings.budgets[smallest]}: {means}.",
        plots.accuracy_by_budget(rows, reference=paper),
    )
    for against in rivals.against:
        yield Drawing(
            f"differences-{slug(against)}",
            f"How many {findings.nouns} have which gain: the balanced accuracy of {rivals.method} "
            f"less that of {against}.",
            "One histogram for each budget.",
            plots.differences(rows, rivals.method, against),
        )
    for against in rivals.against:
        part = tables["labels_saved"].query("against == @against and accuracy == accuracy")
        if len(part):
            yield Drawing(
                f"labels-saved-{slug(against)}",
                f"Labelled windows that {rivals.method} needs for the accuracy of {against}.",
                "The table has the numbers.",
                plots.labels_saved(part),
            )
    chosen = with_alpha(tables["participants"])
    if chosen:
        yield Drawing(
            "alphas",
            f"Mean alpha of each of the {findings.nouns}.",
            f"For {', '.join(chosen)}, at each budget.",
            plots.alphas(rows, chosen),
        )
    if len(tables["forecast"]):
        yield Drawing(
            "forecast",
            "Forecast of the accuracy against the accuracy: on the diagonal both agree. Small "
            f"points are {findings.nouns}, large ones their means.",
            "The tables have the numbers.",
            plots.forecast(rows),
        )


def _of_directions(findings: Findings) -> Iterator[Drawing]:
    if findings.tables["directions"].empty:
        return
    yield Drawing(
        "projection-vectors",
        f"Directions of the discriminants of {findings.count(len(findings.participants))}.",
        "What points the same way is near each other.",
        plots.projection_vectors(findings.tables["directions"]),
    )


def slug(name: str) -> str:
    """A name that a file can have.

    Parameters
    ----------
    name : str
        Any name.

    Returns
    -------
    str
        Its letters and digits.
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "method"


def with_alpha(means: pd.DataFrame) -> list[str]:
    """Methods that choose an alpha; those for which it is the same everywhere do not.

    Parameters
    ----------
    means : DataFrame
        Means of each task, method and budget.

    Returns
    -------
    list of str
        Their names.
    """
    found = means[means["balanced_accuracy"].notna()].groupby("method", sort=False)["alpha"]
    fixed = found.transform(lambda alpha: alpha.eq(0.0).all() or alpha.eq(1.0).all())
    chosen = means.loc[fixed.index][~fixed.astype(bool)].dropna(subset="alpha")
    return list(dict.fromkeys(chosen["method"]))


def render(figure: Figure, image_format: str) -> bytes:
    """Content of a picture file, the same whenever it is made.

    Parameters
    ----------
    figure : Figure
        The figure.
    image_format : {"png", "pdf", "svg"}
        Of what kind.

    Returns
    -------
    bytes
        The content.
    """
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


def inline(drawing: Drawing, methods: Sequence[str]) -> str:
    """A figure as a part of a page, with attributes for its script.

    What belongs to a method has ``data-series``, what says something of itself ``data-tip``. Ids
    are the page's own, and there is no address.

    Parameters
    ----------
    drawing : Drawing
        The figure.
    methods : sequence of str
        Names of the methods.

    Returns
    -------
    str
        An svg element.
    """
    root = ElementTree.fromstring(_FORBIDDEN.sub("", render(drawing.figure, "svg").decode()))
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
        element.tag = _local(element.tag)
        attributes = {_local(name): value for name, value in element.attrib.items()}
        element.attrib.clear()
        for name, value in attributes.items():
            if name == "id":
                element.attrib.update(_told_by_id(value, drawing.name, methods, used))
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


def _told_by_id(value: str, prefix: str, methods: Sequence[str], used: set[str]) -> dict[str, str]:
    kind, _, text = value.partition(":")
    if kind == "series":
        return {"data-series": text}
    if kind == "tip":
        owner = max(
            (name for name in methods if text.startswith(f"{name}, ")), key=len, default=None
        )
        return {"data-tip": text} | ({} if owner is None else {"data-series": owner})
    return {"id": f"{prefix}-{value}"} if value in used else {}

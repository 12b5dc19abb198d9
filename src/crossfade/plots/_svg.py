"""Figures as parts of a page: markers for its legend, and drawings that its script can read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from crossfade.plots._methods import MethodLook
from crossfade.plots._style import LINE_MARKERS, render, tip_id, told_by

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


def inline(figure: Figure, prefix: str, text: str) -> str:
    """Figure as an svg element with ids that begin with `prefix`, data-series and data-tip."""
    content = render(figure, "svg").decode()
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
                element.attrib.update(_told_by_id(value, prefix, used))
            elif name in ("href", "clip-path", "style"):
                # Letters are the page's own.
                value = _FONT.sub("", value)
                element.set(name, _REFERENCE.sub(rf"{prefix}-\g<0>", value))
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
            "aria-label": text,
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

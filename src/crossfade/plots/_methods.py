"""How methods are called and drawn, from the records of :mod:`crossfade.study`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from crossfade.plots._style import GREY
from crossfade.study import METHODS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class MethodLook(NamedTuple):
    """How a method is called and drawn, what it does, and which test data it sees."""

    label: str
    colour: str
    marker: str
    text: str = "An estimator fitted to the labelled windows."
    given: str = ""
    called: str = ""

    @property
    def spoken(self) -> str:
        """Name within a sentence: "the posterior blend"."""
        return self.called or self.label

    @property
    def line(self) -> dict[str, Any]:
        """How its line is drawn: dashed, if it sees test windows."""
        return self.points | {"linestyle": "--" if self.given else "-", "linewidth": 1.1}

    @property
    def points(self) -> dict[str, Any]:
        """How its points are drawn."""
        return {"color": self.colour, "marker": self.marker, "markersize": 4}


#: Methods of a study.
_KNOWN = {
    name: MethodLook(one.label, one.colour, one.marker, one.text, one.given, one.spoken)
    for name, one in METHODS.items()
}
#: Colours and markers of the user's own methods.
_SPARE = ("#a65628", "#999933", "#44aa99", "#aa4499", "#661100", "#117733")
_SPARE_MARKERS = ("h", "X", "d", "8", ">", "H")


def method_of(name: str, place: int = 0) -> MethodLook:
    """Method of this name; what is not ours is the user's, the `place`-th of them."""
    if name in _KNOWN:
        return _KNOWN[name]
    colour = _SPARE[place % len(_SPARE)]
    # One marker further in each round of colours, so that pairs repeat late.
    marker = _SPARE_MARKERS[(place + place // len(_SPARE)) % len(_SPARE_MARKERS)]
    return MethodLook(name, colour, marker)


def looks(names: list[str]) -> dict[str, MethodLook]:
    """Look of each method; ours always have the same, whoever else is there."""
    theirs = [name for name in dict.fromkeys(names) if name not in _KNOWN]
    return {name: method_of(name, theirs.index(name) if name in theirs else 0) for name in names}


def name_dashed(ax: Axes, shades: dict[str, MethodLook]) -> None:
    """Entry of the legend that says what is dashed, if anything is."""
    if any(look.given for look in shades.values()):
        ax.plot([], [], color=GREY, linestyle="--", linewidth=1.1, label="sees test windows")

"""How each method of a study is called, drawn and described, in one place."""

from __future__ import annotations

from typing import NamedTuple


class MethodLook(NamedTuple):
    """Label, colour, marker and description of a method, and what it sees beyond a real session."""

    label: str
    colour: str
    marker: str
    text: str
    sees: str = ""


_ANSWERS = "knows the test labels"
_UNLABELLED = "sees unlabelled test windows"

#: Methods of a study. Colours also differ in grey and for colour-blind readers.
METHODS = {
    "target": MethodLook(
        "Person alone",
        "#d55e00",
        "v",
        "The person alone, as in the paper: Fisher's discriminant of the labelled windows, with a "
        "pseudo-inverse.",
    ),
    "average-source": MethodLook(
        "Crowd alone",
        "#0072b2",
        "^",
        "The crowd alone, as in the paper: the mean direction of the sources, with the threshold "
        "at the midpoint of the labelled windows.",
    ),
    "paper": MethodLook(
        "Paper's blend",
        "#009e73",
        "s",
        "Algorithm 1 of the paper: alpha times the person's direction plus 1 − alpha times the "
        "crowd's. Of the alphas 0, 0.1, ..., 1 it takes the one with the least expected risk over "
        "100 draws of both directions.",
    ),
    "oracle": MethodLook(
        "Oracle alpha",
        "#7f7f7f",
        "x",
        "The paper's blend with the alpha that is best on the test windows. Nobody can know it: it "
        "is an upper bound.",
        _ANSWERS,
    ),
    "random-alpha": MethodLook(
        "Random alpha", "#b0a08a", "+", "The paper's blend with one of its alphas, drawn at random."
    ),
    "target-shrunk": MethodLook(
        "Person, shrunk",
        "#e69f00",
        "<",
        "The person alone, with a shrunk covariance (oracle approximating shrinkage).",
    ),
    "convex": MethodLook(
        "Convex blend",
        "#56b4e9",
        "D",
        "The paper's blend with a shrunk covariance, and with the alpha of least expected risk "
        "among all from 0 to 1, computed without draws.",
    ),
    "posterior": MethodLook(
        "Posterior blend",
        "#000000",
        "o",
        "The crowd as a distribution: its mean direction plus a matrix times (own direction − mean "
        "direction). The matrix is the scatter between people, divided by the sum of that scatter "
        "and the noise of the own direction.",
    ),
    "posterior-unlabelled": MethodLook(
        "Posterior, unlabelled",
        "#332288",
        "p",
        "The posterior blend with a threshold that also uses the test windows, without their "
        "labels: it lies half-way between two normals of equal variance, fitted to the scores of "
        "labelled and unlabelled windows.",
        _UNLABELLED,
    ),
    "lda": MethodLook(
        "scikit-learn's LDA",
        "#cc79a7",
        "P",
        "scikit-learn's linear discriminant analysis with automatic shrinkage, fitted to the "
        "labelled windows: the usual choice without a prior.",
    ),
    "pooled": MethodLook(
        "Pooled LDA",
        "#882255",
        "*",
        "scikit-learn's linear discriminant analysis, fitted to the windows of all sources and to "
        "none of the person's.",
    ),
    "mixture": MethodLook(
        "Mixture blend",
        "#0b6e4f",
        "1",
        "The posterior blend with a crowd of several kinds of people: a mixture of von "
        "Mises-Fisher distributions, each component weighted by how well it explains the own "
        "direction.",
    ),
    "convex-mixture": MethodLook(
        "Convex mixture", "#c07a00", "2", "The convex blend with the same mixture."
    ),
    "per-task": MethodLook(
        "Per-task blend",
        "#b3446c",
        "3",
        "A convex blend of the own direction with every single source, each with its own weight. "
        "Sources have to share their directions for it.",
    ),
    "private": MethodLook(
        "Private posterior",
        "#4b4b9a",
        "4",
        "The posterior blend with a prior released under differential privacy, epsilon = 1 and "
        "delta = 0.00001. Its noise is drawn anew for every person and budget.",
    ),
    "posterior-proportions": MethodLook(
        "Posterior, proportions",
        "#6f8faf",
        "|",
        "The posterior blend with a threshold for the class proportions that the scores of the "
        "test windows suggest, without their labels. It is meant for plain accuracy and loses "
        "balanced accuracy.",
        _UNLABELLED,
    ),
    "pairwise": MethodLook(
        "Pairwise blend",
        "#1b7837",
        "X",
        "The posterior blend of each pair of classes, with coupled probabilities. With two classes "
        "there is one pair.",
    ),
    "one-vs-rest": MethodLook(
        "One-vs-rest blend",
        "#8c510a",
        ">",
        "The posterior blend of each class against all others, with coupled probabilities. With "
        "two classes it is the posterior blend.",
    ),
}
#: Rules of the simulation studies that are no methods of a study.
_SIMULATED = {
    "optimal": MethodLook("Optimal alpha", "#009e73", "s", ""),
    "paper, origin": MethodLook("Paper's, origin", "#8fd3bf", "h", ""),
}
_KNOWN = METHODS | _SIMULATED
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
    return MethodLook(name, colour, marker, "An estimator fitted to the labelled windows.")


def looks(names: list[str]) -> dict[str, MethodLook]:
    """Look of each method; ours always have the same, whoever else is there."""
    theirs = [name for name in dict.fromkeys(names) if name not in _KNOWN]
    return {name: method_of(name, theirs.index(name) if name in theirs else 0) for name in names}


def spoken(name: str) -> str:
    """Name of a method within a sentence: "the posterior blend"."""
    label = method_of(name).label
    known_noun = name in _KNOWN and label[0].isupper()
    return f"the {label[0].lower()}{label[1:]}" if known_noun else label

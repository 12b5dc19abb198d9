"""The methods that a study compares: one record each.

A method is a function of the target's sources, a batch of its splits and a random generator. The
records are in the order in which a verdict prefers them; commands, figures and reports read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crossfade.blend import KINDS
from crossfade.study import _blend_methods as blends
from crossfade.study import _rivals as rivals
from crossfade.study._batch import Batch, Columns
from crossfade.study._estimators import FitEach, asks_for
from crossfade.study._sources import Sources
from crossfade.study._splits import Budget, Rng, check_budget


@dataclass(frozen=True)
class Method:
    """One method of a study.

    `label` is what people read and `text` what it does. A verdict compares the first "new" method
    with the first "rival". `given` says which later data a method sees, unknown when a calibration
    ends. `windows` says whether it needs the windows of the sources, `many` whether it can tell
    more than two classes apart, `zero` whether it can predict before each class has a labelled
    window, and `fewest` the windows of each class that it needs otherwise: it has no rows with
    fewer.
    """

    name: str
    label: str
    run: Callable[[Sources, Batch, Rng], Columns]
    text: str
    role: str = "new"
    colour: str = ""
    marker: str = ""
    given: str = ""
    windows: bool = False
    many: bool = False
    zero: bool = False
    fewest: int = 1

    @property
    def spoken(self) -> str:
        """Its name within a sentence: "the posterior blend"."""
        first = self.label[0]
        return f"the {first.lower()}{self.label[1:]}" if first.isupper() else self.label


_UNLABELLED = "sees unlabelled test windows"
_RECORDS = (
    Method(
        "hierarchical",
        "Hierarchical blend",
        blends.BlendOf("hierarchical"),
        "The crowd as a distribution over class means. The class means of the labelled windows are "
        "weighed against it, so that it predicts without a label.",
        colour="#117733",
        marker="h",
        many=True,
        zero=True,
    ),
    Method(
        "posterior",
        "Posterior blend",
        blends.BlendOf("posterior"),
        "The crowd as a distribution over directions: its mean direction plus a matrix times (own "
        "direction − mean direction). The matrix is the scatter between people, divided by the sum "
        "of that scatter and the noise of the own direction.",
        colour="#000000",
        marker="o",
        zero=True,
    ),
    Method(
        "convex",
        "Convex blend",
        blends.BlendOf("convex"),
        "The paper's blend with a shrunk covariance and the alpha of least expected risk from 0 to "
        "1, found without draws.",
        colour="#56b4e9",
        marker="D",
        zero=True,
    ),
    Method(
        "paper",
        "Paper's blend",
        blends.BlendOf("convex", paper=True),
        "Algorithm 1 of the paper: alpha times the person's direction plus 1 − alpha times the "
        "crowd's. Of the alphas 0, 0.1, ..., 1 it takes that of least expected risk, over 100 "
        "draws of both directions.",
        colour="#009e73",
        marker="s",
    ),
    Method(
        "hierarchical-unlabelled",
        "Hierarchical blend (unlabelled)",
        blends.BlendOf("hierarchical", unlabelled=True),
        "The hierarchical blend with the unlabelled test windows, in unknown proportions, as one "
        "more observation of the class means.",
        colour="#44aa99",
        marker="H",
        given=_UNLABELLED,
        zero=True,
    ),
    Method(
        "posterior-unlabelled",
        "Posterior blend (unlabelled)",
        blends.BlendOf("posterior", unlabelled=True),
        "The posterior blend. Its threshold is the middle that the class means of the crowd, the "
        "labelled windows and the unlabelled test windows suggest.",
        colour="#332288",
        marker="p",
        given=_UNLABELLED,
        zero=True,
    ),
    Method(
        "live",
        "Live session",
        blends.run_live,
        "The hierarchical blend as in a live session: labelling stops when five more windows are "
        "expected to gain less than 0.01 of accuracy, or at the budget. The rows say how many "
        "windows it took (n_labelled).",
        colour="#999933",
        marker="*",
        many=True,
    ),
    Method(
        "lda",
        "scikit-learn's LDA",
        rivals.run_lda,
        "scikit-learn's linear discriminant analysis with automatic shrinkage and equally likely "
        "classes, fitted to the labelled windows.",
        "rival",
        colour="#cc79a7",
        marker="P",
        many=True,
        fewest=2,
    ),
    Method(
        "target",
        "Person alone",
        blends.BlendOf("convex", paper=True, alpha=1.0),
        "The person alone, as in the paper: Fisher's discriminant of the labelled windows, with a "
        "pseudo-inverse.",
        "rival",
        colour="#d55e00",
        marker="v",
    ),
    Method(
        "target-shrunk",
        "Person alone (shrunk)",
        blends.BlendOf("fisher"),
        "The person alone, with a shrunk covariance (oracle approximating shrinkage).",
        "rival",
        colour="#e69f00",
        marker="<",
    ),
    Method(
        "lda-pooled",
        "Pooled LDA",
        rivals.run_lda_pooled,
        "scikit-learn's linear discriminant analysis, fitted to the windows of all sources, each "
        "person centred at the mean of their class means. The target is centred at the labelled "
        "windows, and at the crowd's centre while a class has no label.",
        "rival",
        colour="#882255",
        marker="d",
        windows=True,
        many=True,
        zero=True,
    ),
    Method(
        "average-source",
        "Crowd alone",
        blends.BlendOf("convex", paper=True, alpha=0.0),
        "The crowd alone, as in the paper: the mean direction of the sources, at the midpoint of "
        "the labelled windows.",
        "rival",
        colour="#0072b2",
        marker="^",
    ),
    Method(
        "lda-calibrated",
        "scikit-learn's LDA (calibrated)",
        rivals.run_lda_calibrated,
        "scikit-learn's linear discriminant analysis. A temperature, chosen on labelled windows "
        "that it was not fitted to, calibrates its probabilities; from four of each class on.",
        "rival",
        colour="#e78ac3",
        marker="H",
        many=True,
        fewest=4,
    ),
    Method(
        "logistic-tuned",
        "Logistic regression (fine-tuned)",
        rivals.run_logistic,
        "Logistic regression of the windows of all sources, centred as for the pooled LDA, then of "
        "the labelled windows, with a penalty on what they change.",
        "rival",
        colour="#a6611a",
        marker="|",
        windows=True,
    ),
)
#: All methods that have a name, those that a verdict prefers first.
METHODS = {one.name: one for one in _RECORDS}


def check_methods(methods: object, n_classes: int = 2) -> dict[str, Method]:
    """Methods by name, in the order given; they must suit the number of classes."""
    given = list(methods.items()) if isinstance(methods, Mapping) else methods
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise ValueError(
            "methods must be a list of names or (name, estimator) pairs, or a dict of estimators "
            f"by name; got {methods!r}."
        )
    found: dict[str, Method] = {}
    for one in given:
        made = one if isinstance(one, Method) else _method_of(one, n_classes)
        if made.name in found:
            raise ValueError(f"Method {made.name!r} is given twice. Name each once.")
        found[made.name] = made
    return found


def _method_of(given: object, n_classes: int) -> Method:
    """The study's own method of a name, or that of a user's estimator."""
    able = [name for name, one in METHODS.items() if n_classes == 2 or one.many]
    if isinstance(given, str):
        if given in able:
            return METHODS[given]
        kind = given.removesuffix("-unlabelled")
        if kind in KINDS and given not in METHODS:
            blend = blends.BlendOf(kind, unlabelled=kind != given)
            return Method(given, given, blend, "A blend of `crossfade.blend`.", many=True)
        raise ValueError(
            f"There is no method {given!r} for {n_classes} classes. There are "
            f"{', '.join(map(repr, able))}; give your own estimator as (name, estimator)."
        )
    if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], str):
        raise ValueError(f"A method is a name or a (name, estimator) pair; got {given!r}.")
    name, estimator = given
    if name in METHODS:
        raise ValueError(f"{name!r} is the name of a built-in method. Choose another name.")
    needed = ("fit", "predict", "get_params")
    if isinstance(estimator, type) or not all(hasattr(estimator, one) for one in needed):
        raise ValueError(
            f"Method {name!r} must be a scikit-learn estimator with fit and predict; got "
            f"{estimator!r}."
        )
    crowd = asks_for(estimator)
    also = "" if crowd is None else " and the windows of the sources"
    text = f"An estimator fitted to the labelled windows{also}."
    run = FitEach(estimator, crowd)
    return Method(name, name, run, text, "own", windows=crowd is not None, many=True)


def check_budgets(budgets: Sequence[Budget], n_classes: int = 2) -> tuple[Budget, ...]:
    """Budgets in their plainest form: proportions as floats below one, counts as ints."""
    several = list(budgets) if np.ndim(np.asarray(budgets, dtype=object)) else [budgets]
    found = [check_budget(budget, n_classes) for budget in several]
    if not found or len(set(found)) < len(found):
        raise ValueError(f"budgets must be different numbers, at least one; got {budgets!r}.")
    return tuple(found)


def check_able(methods: Mapping[str, Method], budgets: Sequence[Budget]) -> None:
    """Refuse a study without a row: some method must be able to predict at some budget."""

    def is_able(method: Method, budget: Budget) -> bool:
        fewest = min(budget) if isinstance(budget, tuple) else budget
        return method.zero or fewest >= method.fewest or 0.0 < fewest < 1.0

    if not any(is_able(one, budget) for one in methods.values() for budget in budgets):
        raise ValueError(
            f"No method can predict with budgets {list(budgets)}: they need "
            f"{min(one.fewest for one in methods.values())} labelled windows of each class or "
            "more. Add a larger budget, or a method that predicts without labels."
        )

"""The methods that a study compares: one record each.

A method is a function of the target's sources, a batch of its splits and a random generator:
`_paper_methods`, `_blend_methods` and `_rivals` have them. What follows from the sources alone is
kept by them, so that it is computed once for a target. A new method is a function there and a
record here; commands, verdicts, figures and reports read the records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any

import numpy as np

from crossfade.study import _blend_methods as blends
from crossfade.study import _paper_methods as paper
from crossfade.study import _rivals as rivals
from crossfade.study._batch import Batch, Predictions
from crossfade.study._estimators import FitEach, asks_for
from crossfade.study._sources import Sources

Rng = np.random.Generator


class Sees(Flag):
    """What a method is given."""

    LABELLED = auto()
    """Labelled windows of the target."""
    UNLABELLED = auto()
    """Its test windows, all together, without their labels."""
    TEST_LABELS = auto()
    """Their labels."""
    SUMS = auto()
    """Sums over the sources: no row of anybody's windows, and no direction of a single one."""
    DIRECTIONS = auto()
    """The direction of each source."""
    WINDOWS = auto()
    """Windows of the sources."""


@dataclass(frozen=True)
class Method:
    """One method of a study.

    `label` is what people read and `text` what it does. `family` is "paper" (its five
    methods), "ours", "usual" (what one would take otherwise), "variant" or "own" (an
    estimator of the user's). In a verdict the first method with the role "new" is
    compared with the first of the role "rival", by `rank`; a "bound" is not for comparison. `many`
    says whether it can tell more than two classes apart, `zero` whether it can predict before each
    class has a labelled window, and `fewest` the windows of each that it needs otherwise; with
    fewer it has no rows.
    """

    name: str
    label: str
    run: Callable[[Sources, Batch, Rng], Predictions]
    family: str
    sees: Sees
    colour: str
    marker: str
    text: str
    role: str = "new"
    rank: int = 9
    many: bool = False
    zero: bool = False
    fewest: int = 1

    @property
    def spoken(self) -> str:
        """What it is called within a sentence: "the posterior blend"."""
        first = self.label[0]
        return f"the {first.lower()}{self.label[1:]}" if first.isupper() else self.label

    @property
    def given(self) -> str:
        """What it knows that nobody has when a calibration ends; empty for most."""
        if Sees.TEST_LABELS in self.sees:
            return "knows the answers"
        return "sees unlabelled test windows" if Sees.UNLABELLED in self.sees else ""


def own_method(name: str, estimator: Any) -> Method:
    """Method of an estimator of the user's, which has no look of its own."""
    crowd = asks_for(estimator)
    sees = Sees.LABELLED if crowd is None else Sees.LABELLED | Sees.WINDOWS
    also = "" if crowd is None else " and to the windows of the sources"
    text = f"An estimator that was fitted to the labelled windows{also}."
    return Method(name, name, FitEach(estimator, crowd), "own", sees, "", "", text, many=True)


_SUMS, _DIRECTIONS = Sees.LABELLED | Sees.SUMS, Sees.LABELLED | Sees.SUMS | Sees.DIRECTIONS

_RECORDS = (
    Method(
        name="target",
        label="Person alone",
        run=paper.run_target,
        family="paper",
        sees=Sees.LABELLED,
        colour="#d55e00",
        marker="v",
        text="The person alone, as in the paper: Fisher's discriminant of the labelled windows, "
        "with a pseudo-inverse.",
        role="rival",
        rank=1,
    ),
    Method(
        name="average-source",
        label="Crowd alone",
        run=paper.run_average_source,
        family="paper",
        sees=_SUMS,
        colour="#0072b2",
        marker="^",
        text="The crowd alone, as in the paper: the mean direction of the sources, at the midpoint "
        "of the labelled windows.",
        role="rival",
        rank=4,
    ),
    Method(
        name="paper",
        label="Paper's blend",
        run=paper.run_paper,
        family="paper",
        sees=_SUMS,
        colour="#009e73",
        marker="s",
        text="Algorithm 1 of the paper: alpha times the person's direction plus 1 − alpha times "
        "the crowd's. Of the alphas 0, 0.1, ..., 1 it takes that of least expected risk, over 100 "
        "draws of both directions.",
        rank=3,
    ),
    Method(
        name="oracle",
        label="Oracle alpha",
        run=paper.run_oracle,
        family="paper",
        sees=_SUMS | Sees.UNLABELLED | Sees.TEST_LABELS,
        colour="#7f7f7f",
        marker="x",
        text="The paper's blend with the alpha that is best on the test windows. Nobody can know "
        "it: it is a bound.",
        role="bound",
    ),
    Method(
        name="oracle-honest",
        label="Honest oracle",
        run=paper.run_oracle_honest,
        family="variant",
        sees=_SUMS | Sees.UNLABELLED | Sees.TEST_LABELS,
        colour="#5a5a5a",
        marker="8",
        text="The paper's blend with the alpha that is best on every second test window, for the "
        "others, and the reverse: what the oracle is worth without its luck.",
        role="bound",
        rank=10,
    ),
    Method(
        name="target-shrunk",
        label="Person alone (shrunk)",
        run=blends.run_target_shrunk,
        family="ours",
        sees=Sees.LABELLED,
        colour="#e69f00",
        marker="<",
        text="The person alone, with a shrunk covariance (oracle approximating shrinkage).",
        role="rival",
        rank=2,
    ),
    Method(
        name="convex",
        label="Convex blend",
        run=blends.BlendOf("convex"),
        family="ours",
        sees=_SUMS,
        colour="#56b4e9",
        marker="D",
        text="The paper's blend with a shrunk covariance, and with the alpha of least expected "
        "risk among all from 0 to 1, found without draws.",
        rank=3,
        zero=True,
    ),
    Method(
        name="posterior",
        label="Posterior blend",
        run=blends.BlendOf("posterior"),
        family="ours",
        sees=_SUMS,
        colour="#000000",
        marker="o",
        text="The crowd as a distribution: its mean direction plus a matrix times (own direction − "
        "mean direction). The matrix is the scatter between people, divided by the sum of that "
        "scatter and the noise of the own direction.",
        rank=1,
        zero=True,
    ),
    Method(
        name="hierarchical",
        label="Hierarchical blend",
        run=blends.BlendOf("hierarchical"),
        family="ours",
        sees=_SUMS,
        colour="#117733",
        marker="h",
        text="The crowd as a distribution over class means: what the labelled windows say of this "
        "person's means is weighed against what the crowd knows of them, so that it predicts from "
        "no label on.",
        rank=0,
        many=True,
        zero=True,
    ),
    Method(
        name="live",
        label="Live session",
        run=blends.Live(),
        family="variant",
        sees=_SUMS,
        colour="#999933",
        marker="*",
        text="The hierarchical blend as in a live session: the budget is the most there is, and "
        "labelling stops when five more windows are expected to gain less than 0.01 of accuracy. "
        "The rows say how many windows it took (n_labelled).",
        many=True,
    ),
    Method(
        name="hierarchical-unlabelled",
        label="Hierarchical blend (unlabelled)",
        run=blends.BlendOf("hierarchical", unlabelled=True),
        family="ours",
        sees=_SUMS | Sees.UNLABELLED,
        colour="#44aa99",
        marker="H",
        text="The same, with the test windows, without their labels and in unknown proportions, as "
        "one more observation of the class means.",
        rank=2,
        zero=True,
    ),
    Method(
        name="posterior-unlabelled",
        label="Posterior blend (unlabelled)",
        run=blends.BlendOf("posterior", unlabelled=True),
        family="ours",
        sees=_SUMS | Sees.UNLABELLED,
        colour="#332288",
        marker="p",
        text="The posterior blend, with its threshold at the middle that the class means of the "
        "crowd, the labelled windows and the test windows, without their labels, suggest.",
        rank=2,
        zero=True,
    ),
    Method(
        name="lda",
        label="scikit-learn's LDA",
        run=rivals.run_lda,
        family="usual",
        sees=Sees.LABELLED,
        colour="#cc79a7",
        marker="P",
        text="scikit-learn's linear discriminant analysis with automatic shrinkage and equally "
        "likely classes, fitted to the labelled windows: what one would take otherwise.",
        role="rival",
        rank=0,
        many=True,
        fewest=2,
    ),
    Method(
        name="lda-pooled",
        label="Pooled LDA",
        run=rivals.run_lda_pooled,
        family="usual",
        sees=Sees.LABELLED | Sees.WINDOWS,
        colour="#882255",
        marker="d",
        text="scikit-learn's linear discriminant analysis, fitted to the windows of all sources, "
        "each less the mean of the class means of its person; the person's own windows are centred "
        "at the mean of the class means of the labelled ones, and at the crowd's while a class has "
        "no label.",
        role="rival",
        rank=3,
        many=True,
        zero=True,
    ),
    Method(
        name="logistic-tuned",
        label="Logistic regression (fine-tuned)",
        run=rivals.run_logistic,
        family="variant",
        sees=Sees.LABELLED | Sees.WINDOWS,
        colour="#a6611a",
        marker="|",
        text="Logistic regression of the windows of all sources, centred as for the pooled LDA, "
        "and then of the labelled windows, with a penalty on what they change.",
        role="rival",
        rank=8,
    ),
    Method(
        name="lda-calibrated",
        label="scikit-learn's LDA (calibrated)",
        run=rivals.run_lda_calibrated,
        family="variant",
        sees=Sees.LABELLED,
        colour="#e78ac3",
        marker="H",
        text="scikit-learn's linear discriminant analysis, its probabilities calibrated by a "
        "temperature that suits labelled windows it was not fitted to; from four of each class on.",
        role="rival",
        rank=7,
        many=True,
        fewest=4,
    ),
)
#: All methods that have a name.
METHODS = {one.name: one for one in _RECORDS}
#: Names of the paper's methods.
PAPER = tuple(one.name for one in _RECORDS if one.family == "paper")


def by_role(role: str) -> list[Method]:
    """Methods of one role, the first in a verdict first."""
    return sorted((one for one in _RECORDS if one.role == role), key=lambda one: one.rank)

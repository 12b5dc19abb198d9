"""Windows of more than two classes in; what all but one group know out, and the methods for them.

Here a target's splits are fitted one by one: pairs of classes are many, and so are their priors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crossfade.blend._estimators import PosteriorBlendClassifier
from crossfade.blend._multiclass import MulticlassBlend
from crossfade.prior._multiclass import MulticlassPrior
from crossfade.study._batch import Batch, Judge, Method, Verdicts
from crossfade.study._evaluate import fitted_verdicts
from crossfade.study._methods import COMPARED
from crossfade.study._sources import Participant
from crossfade.tasks._task import Task


@dataclass(frozen=True, eq=False)
class ManySources:
    """All participants of a study of more than two classes.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The labels.
    participants : sequence of Participant
        Everybody; some may lack some of the classes.
    """

    classes: NDArray[Any]
    participants: Sequence[Participant]

    def without(self, group: str) -> ManyCrowd:
        """All participants but those of one group.

        Parameters
        ----------
        group : str
            The target's group.

        Returns
        -------
        ManyCrowd
            The target's sources.
        """
        return ManyCrowd(self.classes, [one for one in self.participants if one.group != group])


@dataclass(frozen=True, eq=False)
class ManyCrowd:
    """The sources of one target, with more than two classes.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The labels.
    participants : sequence of Participant
        The sources.
    """

    classes: NDArray[Any]
    participants: Sequence[Participant]

    def prior(self, strategy: str) -> MulticlassPrior:
        """Prior of the sources; against the rest, of those that have all classes.

        Parameters
        ----------
        strategy : {"pairwise", "one-vs-rest"}
            Set classes against each other, or each against the rest.

        Returns
        -------
        MulticlassPrior
            What they know.
        """
        return MulticlassPrior.from_tasks(
            [
                Task(one.X, self.classes[one.label], one.name)
                for one in self.participants
                if strategy == "pairwise" or min(one.counts)
            ],
            strategy=strategy,
        )

    def pooled_rule(self) -> LinearDiscriminantAnalysis:
        """One discriminant of all the sources' windows together, the classes equally likely."""
        equal = np.full(len(self.classes), 1.0 / len(self.classes))
        rule = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=equal)
        return rule.fit(
            np.concatenate([one.X for one in self.participants]),
            np.concatenate([one.label for one in self.participants]),
        )


def _pairwise(crowd: ManyCrowd) -> Judge:
    return _coupled(crowd.prior("pairwise"))


def _one_vs_rest(crowd: ManyCrowd) -> Judge:
    return _coupled(crowd.prior("one-vs-rest"))


def _coupled(prior: MulticlassPrior) -> Judge:
    known: Any = prior

    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        rule = PosteriorBlendClassifier(known, in_a_row=batch.splits.in_a_row)
        estimator = MulticlassBlend(rule, prior.strategy)
        return Verdicts.joined(
            [
                fitted_verdicts(clone(estimator), batch.part(place, place + 1))
                for place in range(len(batch.splits.test))
            ]
        )

    return judge


def _pooled(crowd: ManyCrowd) -> Judge:
    rule = crowd.pooled_rule()

    def judge(batch: Batch, rng: np.random.Generator) -> Verdicts:
        chances = rule.predict_proba(batch.X)[batch.splits.test]
        likeliest = chances.argmax(-1)[..., None] == np.arange(len(batch.classes))
        none = np.full(len(chances), np.nan)
        return Verdicts(chances, likeliest, chances, none, none)

    return judge


#: Methods for more than two classes.
MANY: dict[str, Method] = {
    "pairwise": _pairwise,
    "one-vs-rest": _one_vs_rest,
    "lda": COMPARED["lda"],
    "pooled": _pooled,
}

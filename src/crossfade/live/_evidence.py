"""Evidence from the windows of a session, and whether a window fits the crowd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from crossfade._typing import Array
from crossfade.blend import Rule, fit_rule
from crossfade.classifiers import MOST_UNLABELLED
from crossfade.crowd import TaskPrior
from crossfade.fisher import ClassMoments
from crossfade.live._records import LiveWindow
from crossfade.prior import Law

#: A window within so many deviations from the crowd is never refused. The furthest of Mental Math,
#: each person left out, is 5.6 away by its shares and 5.9 by its log powers.
_NEAR = 10.0


@dataclass(frozen=True)
class Evidence:
    """Moments of labelled windows, and the last unlabelled windows (n, d); never changed."""

    classes: tuple[Any, ...]
    moments: ClassMoments
    unlabelled: Array

    @classmethod
    def empty(cls, classes: tuple[Any, ...], n_features: int) -> Self:
        """No window."""
        moments = ClassMoments.empty(len(classes), n_features)
        return cls(classes, moments, np.zeros((0, n_features)))

    def then(self, windows: Sequence[LiveWindow]) -> Evidence:
        """Evidence after these windows."""
        used = [one for one in windows if one.usable]
        if not used:
            return self
        rows = np.stack([np.asarray(one.features) for one in used])
        places = np.array(
            [-1 if one.label is None else self.classes.index(one.label) for one in used]
        )
        has = places >= 0
        moments = self.moments
        if has.any():
            moments += ClassMoments.of(rows[has], places[has], n_classes=len(self.classes))
        unlabelled = np.concatenate([self.unlabelled, rows[~has]])[-MOST_UNLABELLED:]
        return Evidence(self.classes, moments, unlabelled)

    def rule(self, law: Law) -> Rule:
        """The rule that follows."""
        # Unlabelled windows are used with two classes only.
        seen = self.unlabelled if len(self.unlabelled) and len(self.classes) == 2 else None
        return fit_rule(self.moments, law, unlabelled=seen, classes=np.array(self.classes))


def misfit_of(features: Array, prior: TaskPrior) -> str:
    """Why features (d,) cannot be in the units of the crowd, by Student's t; empty if they can."""
    found = [] if prior.units is None else prior.units.far_away(features[None])
    worst, away = max(found, key=lambda pair: pair[1], default=(0, 0.0))
    if away <= _NEAR:
        return ""
    name = f"Feature {worst}" if prior.feature_names is None else prior.feature_names[worst]
    return f"{name} is {away:.3g} deviations from the crowd's: is the stream in other units?"

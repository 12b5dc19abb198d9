"""What is counted of the windows of a session, and the rule that follows.

Labelled windows are counted by their moments, where a window of age t has the weight
:math:`2^{-t / \\text{forget}}`. The last unlabelled windows, and the last windows of any kind, are
kept as they are.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import stdtr

from crossfade.blend import (
    MOST_UNLABELLED,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
)
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher import ClassMoments
from crossfade.live._drift import BEFORE, LAST
from crossfade.live._records import LiveWindow

#: Deviations from the crowd within which no window is refused. The furthest of Mental Math, each
#: person left out, is 5.6 away by its shares and 5.9 by its log powers.
_NEAR = 10.0
#: How seldom a window of anybody's is beyond the bound, if people differ as Student's t does.
_SELDOM = 1e-4


class Sums:
    """What is counted of windows: constant in size, however many there were; it never changes."""

    def __init__(self, prior: Any, classes: tuple[Any, ...], forget: float | None) -> None:
        k, d = len(classes), prior.n_features
        self.prior, self.classes, self.forget = prior, classes, forget
        self.moments = ClassMoments(
            np.zeros(k), np.zeros((k, d)), np.zeros((0, d)), True, np.zeros(d)
        )
        self.counts, self.unlabelled, self.n_used = np.zeros(k), np.empty((0, d)), 0
        #: The last windows, and the places of their classes, -1 without a label.
        self.recent, self.places = np.empty((0, d)), np.empty(0, np.intp)

    def then(self, windows: Sequence[LiveWindow]) -> Sums:
        """Sums after these windows, in the order in which they came; the last counts whole."""
        used = [one for one in windows if one.usable]
        after = copy(self)
        if used:
            # Numbers too large to be squared give no rule, which is reported there.
            with np.errstate(over="ignore", invalid="ignore"):
                after._add(used)
        return after

    def _add(self, windows: Sequence[LiveWindow]) -> None:
        n = len(windows)
        rows = np.stack([np.asarray(one.features) for one in windows])
        places = np.array(
            [-1 if one.label is None else self.classes.index(one.label) for one in windows]
        )
        has = places >= 0
        self.n_used += n
        weight = None
        if self.forget is not None:
            self.moments = self.moments.faded(0.5 ** (n / self.forget))
            weight = 0.5 ** (np.arange(n)[::-1] / self.forget)[has]
        if has.any():
            n_classes = len(self.counts)
            self.counts = self.counts + np.bincount(places[has], minlength=n_classes)
            self.moments += ClassMoments.of(rows[has], places[has], weight, n_classes=n_classes)
        most = MOST_UNLABELLED
        if self.forget is not None:
            # Older windows would count less than a quarter.
            most = min(most, math.ceil(2.0 * self.forget))
        self.unlabelled = np.concatenate([self.unlabelled, rows[~has]])[-most:]
        kept = LAST + BEFORE + LAST
        self.recent = np.concatenate([self.recent, rows])[-kept:]
        self.places = np.concatenate([self.places, places])[-kept:]

    def floored(self) -> ClassMoments:
        """Moments in which a class that was seen counts as one window at least."""
        if self.forget is None:
            return self.moments
        seen = self.counts > 0.0
        return replace(
            self.moments, counts=np.where(seen, np.maximum(self.moments.counts, 1.0), 0.0)
        )

    def rule(self) -> tuple[Any, tuple[str, ...]]:
        """The rule, or None where there is none yet, and the warnings that came with it."""
        means = self.prior.class_means is not None
        rule: Any = None
        with np.errstate(all="ignore"), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            if means or self.counts.all():
                kind = HierarchicalBlendClassifier if means else PosteriorBlendClassifier
                rule = kind(self.prior)
                hints = means and len(self.classes) == 2
                rule._from_moments(self.floored(), self.unlabelled if hints else None)
                rule.expected_accuracy_  # noqa: B018 - warns of what the forecast lacks
        return rule, tuple(dict.fromkeys(str(one.message) for one in said))

    def tried_rule(self) -> tuple[Any, tuple[str, ...]]:
        """The same; refuses a last window far from the crowd, or one that no rule follows from."""
        far = self._far()
        if far:
            raise PriorMismatchError(far)
        try:
            rule, notes = self.rule()
            numbers = [] if rule is None else [*rule.coef_.ravel(), *rule.intercept_]
            sound = bool(np.isfinite(numbers).all())
        except (ValueError, np.linalg.LinAlgError):
            sound = False
        if not sound:
            raise PriorMismatchError(
                "No rule follows from this window and those before it. Check the signal and its "
                "units."
            )
        return rule, notes

    def _far(self) -> str:
        """Why the last window is out of all proportion to the crowd, if it is.

        A feature lies about the crowd's mean as Student's t does, with the variance between people
        and within their classes, and as many degrees of freedom as these are alike (`Units`).
        """
        units = self.prior.units
        if units is None or units.place is None or not len(self.recent):
            return ""
        centre, precision = units.place
        with np.errstate(over="ignore"):
            away = np.abs((self.recent[-1] - centre) * precision)
        chance = 2.0 * away.size * stdtr(units.alike, -away)
        away = np.where((away > _NEAR) & (chance < _SELDOM), away, 0.0)
        worst = int(away.argmax())
        if not away[worst]:
            return ""
        names = self.prior.feature_names
        name = f"Feature {worst}" if names is None else names[worst]
        return (
            f"{name} is {away[worst]:.3g} deviations from the crowd's: is the stream in other "
            "units?"
        )

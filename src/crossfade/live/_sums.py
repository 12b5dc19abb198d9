"""What is counted of the windows of a session, and the rule that follows.

Of labelled windows these are their moments, in which one of age t counts
:math:`2^{-t / \\text{forget}}`; of those without a label, and of the last ones, the windows
themselves.
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

from crossfade._typing import Array
from crossfade.blend import HierarchicalBlendClassifier, PosteriorBlendClassifier
from crossfade.blend._classifier import MOST_UNLABELLED
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher._moments import ClassMoments
from crossfade.live._drift import BEFORE, LAST
from crossfade.live._records import LiveWindow

#: Deviations from the crowd within which no window is refused. The furthest of Mental Math, each
#: person left out, is 5.6 away by its shares and 5.9 by its log powers.
_NEAR = 10.0
#: How seldom a window of anybody's is beyond the bound, if people differ as Student's t does.
_SELDOM = 1e-4


class Sums:
    """What is counted of windows: constant in size, however many there were; it never changes."""

    def __init__(
        self, prior: Any, classes: tuple[Any, ...], moments: ClassMoments, forget: float | None
    ) -> None:
        self.prior, self.classes, self.moments, self.forget = prior, classes, moments, forget
        n_classes, d = moments.means.shape
        self.counts, self.unlabelled, self.n_used = np.zeros(n_classes), np.empty((0, d)), 0
        #: The last windows, and the places of their classes, -1 without a label.
        self.recent, self.places = np.empty((0, d)), np.empty(0, np.intp)

    @classmethod
    def of_none(cls, prior: Any, classes: tuple[Any, ...], forget: float | None) -> Sums:
        """Sums before the first window."""
        k, d = len(classes), prior.n_features
        moments = ClassMoments(np.zeros(k), np.zeros((k, d)), np.zeros((0, d)), True, np.zeros(d))
        return cls(prior, classes, moments, forget)

    def then(self, windows: Sequence[LiveWindow]) -> Sums:
        """Sums after these windows, in the order in which they came; the last counts whole."""
        used = [one for one in windows if one.usable]
        after = copy(self)
        if used:
            # Numbers too large to be squared give no rule, and that is said there.
            with np.errstate(over="ignore", invalid="ignore"):
                after._add(used)
        return after

    def _add(self, windows: Sequence[LiveWindow]) -> None:
        n = len(windows)
        rows = self._in_prior(windows)
        has = np.array([one.label is not None for one in windows])
        labels = [0 if one.label is None else self.classes.index(one.label) for one in windows]
        places = np.array(labels)
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
            # What would count less than a quarter is left out.
            most = min(most, math.ceil(2.0 * self.forget))
        self.unlabelled = np.concatenate([self.unlabelled, rows[~has]])[-most:]
        kept = LAST + BEFORE + LAST
        self.recent = np.concatenate([self.recent, rows])[-kept:]
        self.places = np.concatenate([self.places, np.where(has, places, -1)])[-kept:]

    def floored(self) -> ClassMoments:
        """Moments in which a class that was seen counts as one window at least."""
        if self.forget is None:
            return self.moments
        seen = self.counts > 0.0
        return replace(
            self.moments, counts=np.where(seen, np.maximum(self.moments.counts, 1.0), 0.0)
        )

    def _in_prior(self, windows: Sequence[LiveWindow]) -> Array:
        """Features (n, d) of windows as the prior has them."""
        return np.stack([np.asarray(one.features) for one in windows])

    def rule(self) -> tuple[Any, tuple[str, ...]]:
        """The rule, None where there is none yet, and what was said of it."""
        means = self.prior.class_means is not None
        rule: Any = None
        with np.errstate(all="ignore"), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            if means or self.counts.all():
                kind = HierarchicalBlendClassifier if means else PosteriorBlendClassifier
                rule = kind(self.prior)
                hints = means and len(self.classes) == 2
                rule._from_moments(self.floored(), self.unlabelled if hints else None)
                rule.expected_accuracy_  # noqa: B018 - says what the forecast lacks
        return rule, tuple(dict.fromkeys(str(one.message) for one in said))

    def tried_rule(self) -> tuple[Any, tuple[str, ...]]:
        """The same; refuses a last window far from the crowd, and those no rule follows from."""
        far = self._far()
        if far:
            raise PriorMismatchError(far)
        why = ""
        try:
            rule, notes = self.rule()
            if rule is not None and not np.isfinite([*rule.coef_.ravel(), *rule.intercept_]).all():
                why = "The numbers are too large to compute with."
        except np.linalg.LinAlgError:
            why = "The numbers are too large to compute with."
        except ValueError as reason:
            why = str(reason)
        if why:
            raise PriorMismatchError(
                f"No rule follows from this window and those before it. {why} Check the signal and "
                "its units."
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

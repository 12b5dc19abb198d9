"""Records of a session: its windows, its state, a prediction; a window as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from crossfade._typing import Array
from crossfade.blend import Advice


@dataclass(frozen=True)
class LiveWindow:
    """A window of a session: features (d,), or None if it was left out, and `note` says why."""

    features: Array | None
    label: Any = None
    start: float | None = None
    note: str | None = None

    @property
    def usable(self) -> bool:
        """Whether it counts."""
        return self.features is not None


@dataclass(frozen=True)
class LiveState:
    """State of a session: forecast, gains and advice.

    Attributes
    ----------
    counts : dict of str to int
        Labelled windows of each class.
    alpha : float
        Weight of the person: 0 is the crowd alone, 1 the person alone.
    accuracy, lower, upper : float
        Expected accuracy for this person, and its 90 % interval; NaN while there is no rule.
    gains : dict of str to float
        Accuracy that the next five windows are expected to add, if all are of one class or some of
        each ("both"; with more than two classes "all"). NaN if the prior does not know.
    advice : Advice
        Whether to stop, which class is next, and why.
    n_windows, n_unlabelled, n_left_out : int
        Windows so far, those without a label, and those that were left out.
    notes : tuple of str
        Further remarks for the person at the screen.
    """

    counts: dict[str, int]
    alpha: float
    accuracy: float
    lower: float
    upper: float
    gains: dict[str, float]
    advice: Advice
    n_windows: int = 0
    n_unlabelled: int = 0
    n_left_out: int = 0
    notes: tuple[str, ...] = ()


class Prediction(NamedTuple):
    """The likeliest class of a window, and the probabilities of all classes by name."""

    label: str
    probability: float
    probabilities: dict[str, float]


def fields_of(window: LiveWindow) -> dict[str, Any]:
    """A window as JSON."""
    fields = asdict(window)
    if window.features is not None:
        fields["features"] = window.features.tolist()
    return fields


def window_of(fields: dict[str, Any]) -> LiveWindow:
    """The window that `fields_of` wrote."""
    known = {name: fields[name] for name in ("features", "label", "start", "note")}
    if known["features"] is not None:
        known["features"] = np.array(known["features"], dtype=np.float64)
        known["features"].setflags(write=False)
    return LiveWindow(**known)

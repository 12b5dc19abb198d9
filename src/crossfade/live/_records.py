"""What a session holds and reports: its windows, its state, a prediction; a window as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crossfade._typing import Array
from crossfade.blend import Advice


@dataclass(frozen=True)
class LiveWindow:
    """A window of a session.

    Attributes
    ----------
    features : ndarray of shape (n_features,) or None
        Its features; None if nothing of it can be used.
    label : object or None
        Its class, as the prior has it; None without a label.
    usable : bool
        Whether it counts.
    start : float or None
        When it began, in seconds.
    note : str or None
        Why it is left out, or another remark.
    """

    features: Array | None
    label: Any = None
    usable: bool = True
    start: float | None = None
    note: str | None = None


@dataclass(frozen=True)
class LiveState:
    """What is known of a person so far.

    Attributes
    ----------
    counts : dict of str to int
        Labelled windows of each class that count.
    alpha : float
        Weight of the person: 0 is the crowd alone, 1 the person alone.
    accuracy, lower, upper : float
        Accuracy to expect of the person, and the 90 % interval; NaN while there is no rule.
    gains : dict of str to float
        Accuracy that the next windows are expected to add, if all are of one class or some of each
        ("both"; with more than two classes "all"). NaN if the prior does not know.
    advice : Advice
        Whether to stop, which class is next, and why.
    n_windows, n_unlabelled, n_left_out : int
        Windows so far, those without a label, and those that do not count.
    drift : str or None
        What has changed in the last 20 windows, if anything has; one session in 100 has a false
        alarm.
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
    drift: str | None = None
    notes: tuple[str, ...] = ()


class Prediction(NamedTuple):
    """Class of a window.

    Attributes
    ----------
    label : str
        Name of the likeliest class.
    probability : float
        Its probability.
    probabilities : dict of str to float
        Those of all classes.
    """

    label: str
    probability: float
    probabilities: dict[str, float]


def fields_of(one: LiveWindow) -> dict[str, Any]:
    """A window as JSON, where NaN and infinity are null."""
    features: Any = one.features
    if features is not None:
        features = [value if math.isfinite(value) else None for value in features.tolist()]
    return {**vars(one), "features": features}


def window_of(fields: dict[str, Any]) -> LiveWindow:
    """The window that `fields_of` wrote."""
    known = {name: fields[name] for name in ("features", "label", "usable", "start", "note")}
    if known["features"] is not None:
        values = [math.nan if value is None else value for value in known["features"]]
        known["features"] = np.array(values, dtype=np.float64)
        known["features"].setflags(write=False)
    return LiveWindow(**known)

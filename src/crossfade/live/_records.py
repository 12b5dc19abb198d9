"""What a session holds and says: its windows, its state, a prediction; and a window as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crossfade._typing import Array
from crossfade.blend._advice import Advice


@dataclass(frozen=True)
class LiveWindow:
    """A window of a session.

    Attributes
    ----------
    features : ndarray of shape (n_features,) or None
        Its features; None for one of which nothing can be used.
    label : object or None
        Its class, as the prior has it; None without a label.
    usable : bool
        Whether it counts.
    start : float or None
        When it began, in seconds.
    note : str or None
        Why it is left out, or what else is to be said of it.
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
        Accuracy that the next windows are expected to add, if all are of one class, or some of each
        ("both", of more than two classes "all"); NaN where the prior does not know.
    advice : Advice
        Whether to stop, which class is next, and why.
    n_windows, n_unlabelled, n_left_out : int
        Windows so far, those without a label, and those that do not count.
    drift : str or None
        What has changed in the last 20 windows, if anything has; a false alarm in one session of
        100.
    notes : tuple of str
        What else the person at the screen should know.
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
    """A window as JSON; what is no number is null."""
    values = one.features
    return {
        "features": None
        if values is None
        else [value if math.isfinite(value) else None for value in values.tolist()],
        "label": one.label,
        "usable": one.usable,
        "start": one.start,
        "note": one.note,
    }


def window_of(fields: dict[str, Any]) -> LiveWindow:
    values = fields["features"]
    features = None
    if values is not None:
        features = np.array([math.nan if one is None else one for one in values], dtype=np.float64)
        features.setflags(write=False)
    return LiveWindow(features, fields["label"], fields["usable"], fields["start"], fields["note"])

"""Is it worth labelling more windows of this person, and of which class?

With A(n) the accuracy with n labelled windows of each class, given all that is known of the person
now, k more windows are worth the expected gain

.. math:: g_k = E[A(n + k) - A(n)]

by the replay record (equation 62). The advice is to stop where no choice of the next k windows is
expected to gain as much as the user asks for, or where this person's accuracy is at least the
wanted one with the wanted certainty, :math:`P(A(n) \\geq \\text{want}) \\geq \\text{certainty}`, by
the law behind the interval of the forecast (equation 60). Else it names the class whose windows
gain most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr

from crossfade._typing import Array
from crossfade.prior import rung_of


class Advice(NamedTuple):
    """Whether to go on labelling windows of a person.

    Attributes
    ----------
    stop : bool
        Whether the labels so far are enough.
    next : str
        Class of which to label a window next, if one goes on.
    reason : str
        Why, in a sentence.
    """

    stop: bool
    next: str
    reason: str


class Goal(NamedTuple):
    """What a user wants of a calibration."""

    want: float | None = None  # accuracy at which to stop
    certainty: float = 0.9  # with which it is to be reached
    least_gain: float = 0.01  # of accuracy, below which more windows are not worth it
    ahead: int = 5  # windows to think ahead


def gains_ahead(fit: Any, counts: Array, ahead: int) -> Array:
    """Gain of accuracy (..., K + 1) by the next windows, all of one class, or as many of each.

    `fit` is what was learnt with counts (..., K) of one person or of a batch; NaN without a record.
    """
    n_classes = counts.shape[-1]
    if fit is None or fit.record is None:
        return np.full((*counts.shape[:-1], n_classes + 1), np.nan)
    more = np.concatenate([ahead * np.eye(n_classes), np.full((1, n_classes), ahead / n_classes)])
    later = rung_of(counts[..., None, :] + more)
    raw, now = np.asarray(fit.raw)[..., None], rung_of(counts)[..., None]
    return np.asarray(fit.record.gain(np.broadcast_to(raw, later.shape), now, later))


def probability_of(fit: Any, want: float) -> Array:
    """Probability (...) that the accuracy of a person is at least so high."""
    law = fit.outlook
    away = (law.mean - ndtri(want)) / np.maximum(law.real_spread, 1e-300)
    return np.asarray(stdtr(law.dof, away))


def enough(fit: Any, gains: Array, goal: Goal) -> NDArray[np.bool_]:
    """Whether to stop (...), for gains (..., K + 1); every class has a label."""
    stop = np.asarray(gains.max(-1) < goal.least_gain)
    if goal.want is not None:
        stop = stop | (probability_of(fit, goal.want) >= goal.certainty)
    return stop


def expected_gains(fit: Any, counts: Array, names: Sequence[str], ahead: int) -> dict[str, float]:
    """The same of one person, by the name of the class; of all together "both", or "all"."""
    options = [*names, "both" if len(names) == 2 else "all"]
    return dict(zip(options, gains_ahead(fit, counts, ahead).tolist(), strict=True))


def advise(fit: Any, counts: Array, gains: Mapping[str, float], goal: Goal) -> Advice:
    """Advice for one person, with counts (K,) and gains by the name of the class."""
    names, values = list(gains)[:-1], np.array(list(gains.values()))
    known = bool(np.isfinite(values).all())
    # Of equal gains the class that has fewer windows, then the first.
    order = np.lexsort([counts, -np.round(values[:-1], 12)]) if known else np.argsort(counts)
    after = names[int(order[0])]
    if fit is None or not counts.all():
        # A forecast from labels of one class alone is not one to stop at.
        fewest = names[int(np.argmin(counts))]
        missing = [name for name, count in zip(names, counts, strict=True) if not count]
        several = f"Neither {' nor '.join(missing)}"
        who = f"No window of {missing[0]}" if len(missing) == 1 else several
        return Advice(False, fewest, f"{who} has a label yet.")
    stop = bool(enough(fit, values, goal)) if known or goal.want is not None else False
    if goal.want is not None and (sure := probability_of(fit, goal.want)) >= goal.certainty:
        reason = f"The accuracy is at least {goal.want:g} with a probability of {sure:.2f}."
    elif not known:
        reason = "What more windows would bring is unknown: the prior holds no replay."
    else:
        more = "1 more window is" if goal.ahead == 1 else f"{goal.ahead} more windows are"
        reason = f"{more} expected to gain {100.0 * values.max():.1f} points of accuracy"
        reason += f", less than {100.0 * goal.least_gain:g}." if stop else "."
    return Advice(stop, after, reason)

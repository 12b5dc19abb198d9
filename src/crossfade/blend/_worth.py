"""Is it worth labelling more windows of this person, and of which class?

By the forecast record, k more windows gain E[A(n + k) - A(n)] (equation 62). The advice is to stop
where no next windows gain enough, or the wanted accuracy is certain enough (60).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr

from crossfade._typing import Array
from crossfade.blend._rule import Rule
from crossfade.prior import label_count_of

#: Windows to think ahead, the least gain of accuracy that is worth them, and the probability with
#: which a wanted accuracy must be reached.
AHEAD, LEAST_GAIN, CERTAINTY = 5, 0.01, 0.9


class Advice(NamedTuple):
    """Whether to go on labelling windows of a person.

    Attributes
    ----------
    stop : bool
        Whether the labels so far are enough.
    next : str
        Class to label next, if one goes on.
    reason : str
        Why, in a sentence.
    """

    stop: bool
    next: str
    reason: str


def gains_of(rule: Rule) -> Array:
    """Gains (..., K + 1) of the next windows, all of one class or some of each; NaN if unknown."""
    counts, n_classes = rule.n_labelled, rule.n_labelled.shape[-1]
    if rule.record is None:
        return np.full((*counts.shape[:-1], n_classes + 1), np.nan)
    more = np.concatenate([AHEAD * np.eye(n_classes), np.full((1, n_classes), AHEAD / n_classes)])
    later, now = label_count_of(counts[..., None, :] + more), label_count_of(counts)[..., None]
    raw = np.broadcast_to(np.asarray(rule.raw_forecast)[..., None], later.shape)
    # Slopes that are equal are told apart with infinite doubt.
    with np.errstate(over="ignore"):
        return np.asarray(rule.record.gain(raw, now, later))


def probability_of(rule: Rule, want: float) -> Array:
    """Probability (...) that the accuracy of a person is at least so high."""
    law = rule.outlook
    assert law is not None
    away = (law.mean - ndtri(want)) / np.maximum(law.real_spread, 1e-300)
    return np.asarray(stdtr(law.dof, away))


def enough(rule: Rule, want: float | None = None) -> NDArray[np.bool_]:
    """Whether to stop (...); never while a class has no label."""
    stop = gains_of(rule).max(-1) < LEAST_GAIN
    if want is not None:
        stop = stop | (probability_of(rule, want) >= CERTAINTY)
    # Never stop while only one class is labelled.
    return np.asarray(stop & rule.n_labelled.all(-1))


def advise(
    rule: Rule, names: Sequence[str], want: float | None = None
) -> tuple[Advice, dict[str, float]]:
    """Advice for one person, and gains by class; of windows of each class "both", or "all"."""
    counts, gains = rule.n_labelled, gains_of(rule)
    together = "both" if len(names) == 2 else "all"
    named = dict(zip([*names, together], gains.tolist(), strict=True))
    if not counts.all():
        missing = [name for name, count in zip(names, counts, strict=True) if not count]
        text = f"{' and '.join(missing)} {'has' if len(missing) == 1 else 'have'} no label yet."
        return Advice(False, missing[0], text), named
    known, stop = bool(np.isfinite(gains).all()), bool(enough(rule, want))
    # Break ties by fewer windows, then by order.
    order = np.lexsort([counts, -np.round(gains[:-1], 12)]) if known else np.argsort(counts)
    sure = 0.0 if want is None else float(probability_of(rule, want))
    if sure >= CERTAINTY:
        reason = f"The accuracy is at least {want:g} with a probability of {sure:.2f}."
    elif not known:
        reason = "What more windows would bring is unknown: the prior holds no record of forecasts."
    else:
        reason = f"{AHEAD} more windows are expected to gain {100.0 * gains.max():.1f} points of"
        reason += f" accuracy, less than {100.0 * LEAST_GAIN:g}." if stop else " accuracy."
    return Advice(stop, names[int(order[0])], reason), named

"""Has the person changed since the session began? Two tests on every twentieth window.

The last 20 windows are compared with up to 200 before them, by Student's test of the means of

- where labelled windows lie from the mean of their class, along the direction of the rule: a move
  there puts the threshold in the wrong place;
- the logarithm of the squared distance from the class they belong to, or to the nearest one where
  they have no label, in units of the crowd's covariance: bad electrodes and artefacts enlarge it.

Neighbouring windows are alike, so that n of them are worth fewer (equation 48): the correlations
that the crowd knows widen the error of the first test, and their squares that of the second. The
j-th comparison of a session has a level of 0.01 / (j (j + 1)), which adds up to one false alarm in
100 sessions. Without labels a move along the direction of the rule cannot be told from another
mixture of the classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import stdtr

from crossfade._typing import Array, Places
from crossfade.fisher import worth_of_runs

#: Windows of a comparison, most that they are compared with, and false alarms a session.
LAST, BEFORE, ALARMS = 20, 200, 0.01
#: Fewest windows of each side.
_FEWEST = 8


def find_drift(rule: Any, rows: Array, places: Places, n_used: int) -> str | None:
    """What has changed, in a sentence; None if nothing has.

    `rows` (n, d) are the last of the windows that count, in the prior's features, `places` (n,)
    those of their classes or -1, and `n_used` how many windows there were.
    """
    population = getattr(rule.prior_.class_means, "population", None)
    number = n_used // LAST - 1
    if population is None or number < 1:
        return None
    # Between two comparisons the last one stands.
    end = len(rows) - n_used % LAST
    rows, places = (
        rows[max(end - LAST - BEFORE, 0) : end],
        places[max(end - LAST - BEFORE, 0) : end],
    )
    scale, new = rule.prior_.feature_scale, np.arange(len(rows)) >= len(rows) - LAST
    means = (rule.means_ / scale) @ population.whiten
    windows = (rows / scale) @ population.whiten
    away = windows[:, None, :] - means
    distance = (away**2).sum(-1)
    alike = getattr(rule.prior_, "neighbour_correlation", None)
    own = np.where(places < 0, distance.argmin(1), places)
    # Two tests, one of them with two sides.
    level = ALARMS / (number * (number + 1)) / 2.0
    if len(means) == 2:
        along = rule.coef_[0] * scale
        along = along / np.sqrt(np.vecdot(along, rule.prior_.within_spectrum.apply(along)))
        known = places >= 0
        side = ((rows - rule.means_[own]) / scale) @ along
        chance, step = _compare(side[known], new[known], alike)
        if 2.0 * min(chance, 1.0 - chance) < level:
            return (
                f"The last {LAST} windows have moved by {abs(step):.1f} deviations along the "
                "direction that tells the classes apart, so that the threshold may be off. Label "
                "some new windows of each class, or let old ones be forgotten."
            )
    log = np.log(np.maximum(distance[np.arange(len(rows)), own], 1e-12))
    chance, step = _compare(log, new, None if alike is None else alike**2)
    if 1.0 - chance < level:
        return (
            f"The last {LAST} windows are unlike those before: they lie {np.exp(step / 2.0):.1f} "
            "times as far from the classes. Check the signal, and label some new windows if it is "
            "sound."
        )
    return None


def _compare(values: Array, new: Any, alike: Array | None) -> tuple[float, float]:
    """Student's distribution function of the difference of two means, and the difference.

    `alike` are the correlations of values with the following ones.
    """
    parts = [values[~new], values[new]]
    sizes = np.array([len(part) for part in parts])
    if sizes.min() < _FEWEST:
        return 0.5, 0.0
    crowding = np.ones(2)
    if alike is not None and alike.size:
        crowding = np.maximum(worth_of_runs(alike, sizes).crowding, 1.0)
    worth = sizes / crowding
    freedom = max(float(worth.sum()) - 2.0, 1.0)
    squares = float(sum(((part - part.mean()) ** 2).sum() for part in parts))
    # Windows that are alike vary less about their mean, by as much as they say less of it.
    variance = squares / max(float(sizes.sum() - crowding.sum()), 1.0)
    step = float(parts[1].mean() - parts[0].mean())
    error = np.sqrt(max(variance, 1e-300) * float((1.0 / worth).sum()))
    return float(stdtr(freedom, step / error)), step

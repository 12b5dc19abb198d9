"""How accurate past forecasts were: the record that makes one person's forecast true.

A regression of the probit a of the accuracy found in a rehearsal on the probit z of the raw
forecast, from sums over people, says what a raw forecast is worth (equations 58 to 60).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from crossfade._typing import Array
from crossfade.prior._parts import Sums, summed

#: Labelled windows of each class in rehearsals, and how many more they need for a test.
LABEL_COUNTS = np.array([0, 1, 2, 3, 5, 8, 13, 21, 34])
SPARE = 4
#: Fewest people from whom anything is learnt; forecasts and accuracies are clipped to these.
FEWEST, CLIP = 5, (0.02, 0.98)
#: With fewer people a forecast is little more than their mean accuracy.
FEW_PEOPLE = 10
#: How many times as much as the crowd a person may have to gain.
_MOST_TIMES = 3.0


@dataclass(frozen=True, eq=False)
class ForecastRecord(Sums, name="forecast_records"):
    """Sums over people of 1, z, a, z^2, z a and a^2, for one kind of blend."""

    sums: Array = summed(
        LABEL_COUNTS.size, LABEL_COUNTS.size, 6, of="products of forecast and accuracy"
    )

    def check(self) -> None:
        """Refuse squares and products that no numbers have."""
        count, z, a, zz, _, aa = np.moveaxis(self.sums, -1, 0)
        if (
            (count < 0.0).any()
            or (zz * count < z**2 - 1e-6 * (1.0 + z**2)).any()
            or (aa * count < a**2 - 1e-6 * (1.0 + a**2)).any()
        ):
            raise ValueError("forecast_records are not sums of forecasts and accuracies.")

    @classmethod
    def of(cls, forecast: Array, outcome: Array) -> ForecastRecord:
        """Record of forecasts and accuracies (n_people, n_runs, n_counts); NaN is untried."""
        z = ndtri(np.clip(forecast, *CLIP))
        a = ndtri(np.clip(outcome, *CLIP))
        tried = np.isfinite(a) & np.isfinite(z)
        weight = tried / np.maximum(tried.sum(1, keepdims=True), 1)
        z, a = np.where(tried, z, 0.0), np.where(tried, a, 0.0)
        # Runs are nested: a person who tries a label count tries those below.
        both = np.minimum(weight[..., :, None], weight[..., None, :])
        terms = (both, z[..., :, None], a[..., None, :])
        one, first, second = terms
        sums = [one, one * first, one * second, one * first**2, one * first * second]
        return cls(np.stack([part.sum((0, 1)) for part in (*sums, one * second**2)], -1))

    @property
    def n_people(self) -> Array:
        """How many people tried each label count."""
        return np.asarray(self.sums[np.arange(LABEL_COUNTS.size), np.arange(LABEL_COUNTS.size), 0])

    @cached_property
    def able(self) -> Any:
        """Label counts from which anything can be learnt."""
        return np.flatnonzero(self.n_people > FEWEST - 0.5)

    @cached_property
    def _lines(self) -> tuple[Array, ...]:
        """For each pair of able label counts zbar, abar, slope, s^2, se^2 and J (equation 59)."""
        sums = self.sums[np.ix_(self.able, self.able)]
        count = sums[..., 0]
        z, a, zz, za, aa = np.moveaxis(sums[..., 1:] / count[..., None], -1, 0)
        s_zz, s_za, s_aa = zz - z**2, za - z * a, np.maximum(aa - a**2, 0.0)
        s_zz = np.where((LABEL_COUNTS[self.able] > 0)[:, None] & (s_zz > 1e-12), s_zz, np.inf)
        slope = s_za / s_zz
        noise = np.maximum(s_aa - slope * s_za, 0.0) * count / np.maximum(count - 2.0, 1.0)
        error = noise / (count * s_zz)
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = np.where(slope > 0.0, np.maximum(1.0 - error / slope**2, 0.0), 0.0)
        slope, error = kept * slope, kept * error
        s_zz = np.where(np.isfinite(s_zz), s_zz, 0.0)
        rest = np.maximum(s_aa - 2.0 * slope * s_za + slope**2 * s_zz, 0.0)
        spread = rest * count / np.maximum(count - 1.0 - (slope > 0.0), 1.0)
        return z, a, slope, spread, error, count

    def calibrate(
        self, accuracy: Array, n: Array, later: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Mean and deviation of the probit of the accuracy, and its degrees of freedom (60)."""
        probit = ndtri(np.clip(accuracy, *CLIP))
        steps = np.log(np.maximum(LABEL_COUNTS[self.able], 0.5))
        here = _between(steps, n)
        there = here if later is None else _between(steps, later)
        z, a, slope, spread, error, count = (_bilinear(part, here, there) for part in self._lines)
        mean = a + slope * (probit - z)
        variance = spread * (1.0 + 1.0 / count) + (probit - z) ** 2 * error
        return mean, np.sqrt(variance), np.maximum(count - 2.0, 1.0)

    def gain(self, accuracy: Array, n: Array, later: Array) -> Array:
        """Accuracy (...) that `later` windows of each class add to that with n (equation 62)."""
        probit = ndtri(np.clip(accuracy, *CLIP))
        steps = np.log(np.maximum(LABEL_COUNTS[self.able], 0.5))
        n, later = (np.broadcast_to(one, probit.shape) for one in (n, later))
        here, last = _between(steps, n), _between(steps, np.full(probit.shape, LABEL_COUNTS[-1]))
        z, a, slope, spread, error, count = (_bilinear(part, here, here) for part in self._lines)
        _, end, steep, noise, _, least = (_bilinear(part, here, last) for part in self._lines)
        step = self._curve(later) - self._curve(n)
        # The variance of z among those who tried both.
        sums = self.sums[np.ix_(self.able, self.able)]
        mean = sums[..., 1] / sums[..., 0]
        s_zz = _bilinear(sums[..., 3] / sums[..., 0] - mean**2, here, last)
        turn = steep - slope
        doubt = (spread + noise) / (least * np.maximum(s_zz, 1e-12))
        turn = turn * np.maximum(1.0 - doubt / np.maximum(turn**2, 1e-300), 0.0)
        left = end - a
        share = 1.0 + turn * (probit - z) / np.where(left > 1e-6, left, np.inf)
        m = a + slope * (probit - z)
        scale = np.sqrt(1.0 + spread * (1.0 + 1.0 / count) + (probit - z) ** 2 * error)
        more = np.maximum(step, 0.0) * np.clip(share, 0.0, _MOST_TIMES)
        return np.asarray(ndtr((m + more) / scale) - ndtr(m / scale))

    def _curve(self, n: Array) -> Array:
        """Mean probit abar with n windows of each class; a line beyond the last label count."""
        steps = np.log(np.maximum(LABEL_COUNTS[self.able], 0.5))
        means = np.diagonal(self._lines[1])
        where = np.log(np.maximum(n, 0.5))
        curve = np.interp(where, steps, means)
        if steps.size > 1:
            slope = max((means[-1] - means[-2]) / (steps[-1] - steps[-2]), 0.0)
            curve = curve + slope * np.maximum(where - steps[-1], 0.0)
        return np.asarray(curve)


def label_count_of(counts: Array) -> Array:
    """Windows of each class (...) that counts (..., K) are worth: their harmonic mean."""
    seen = (counts > 0.0).sum(-1)
    n_classes = counts.shape[-1]
    harmonic = n_classes / (1.0 / np.where(counts > 0.0, counts, 1.0)).sum(-1)
    # On the scale of the logarithm, where 0 counts as 1/2.
    partly = 0.5 ** (1.0 - seen / n_classes)
    return np.where(seen == n_classes, harmonic, np.where(seen > 0, partly, 0.0))


def _between(steps: Array, n: Array) -> tuple[Any, Any, Array]:
    """Label counts below and above, and how far n lies between them."""
    where = np.clip(np.log(np.maximum(n, 0.5)), steps[0], steps[-1])
    low = np.clip(np.searchsorted(steps, where, "right") - 1, 0, max(steps.size - 2, 0))
    high = np.minimum(low + 1, steps.size - 1)
    step = np.where(high > low, steps[high] - steps[low], 1.0)
    return low, high, (where - steps[low]) / step


def _bilinear(table: Array, here: tuple[Any, Any, Array], there: tuple[Any, Any, Array]) -> Array:
    (a, b, x), (c, d, y) = here, there
    first = table[a, c] * (1.0 - x) + table[b, c] * x
    second = table[a, d] * (1.0 - x) + table[b, d] * x
    return first * (1.0 - y) + second * y

"""Can windows be in the units of a prior? Their spread and place beside the crowd's.

.. math:: s^2 / r^2 \\sim F(f, \\eta) \\text{ if large}, \\quad
    \\chi^2_g / g \\text{ if small, with } 1 / g = 1 / f + 1 / \\eta

for a feature with the variance s^2 within a person's classes, of f degrees of freedom, and r^2 of
the crowd's; eta says how alike people are. Class means follow Student's t about the crowd's.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import fdtrc, gammainc, stdtr

from crossfade._typing import Array
from crossfade.exceptions import UnitsWarning
from crossfade.fisher import ClassMoments
from crossfade.prior._class_means import ClassMeans

#: How seldom the same units may look like others, for the median and for all features together.
_SELDOM = 1e-4
#: Least, usual and most degrees of freedom eta of a crowd's variance as that of a person.
_LEAST, _USUAL, _MOST = 2.0, 3.0, 12.5
#: Efficiency of the median relative to the mean.
_MEDIAN = 0.6
#: What windows in a row differ by from their neighbours, as a proportion of the variance, if they
#: overlap; and what two may differ by that are all but the same.
_STEP, _TWINS = 0.3, 1e-3
#: Windows within so many deviations of the crowd are never far away.
_NEAR = 5.0
#: Features that a warning names one by one.
_NAMED = 3


@dataclass(frozen=True, eq=False)
class Units:
    """Units of the features of a prior, as far as they are known."""

    precision: Array | None  # (d,): one over the variance within classes, in the user's units
    alike: Array  # (d,): degrees of freedom eta by which the variances of people are alike
    n_free: float  # number of uncorrelated features that say as much
    place: tuple[Array, Array] | None  # (d,) each: mean of class means, one over the deviation
    gap: Array  # (d,): variance between the classes of a person over that within a class
    centred: bool  # whether windows may have mean zero

    @classmethod
    @np.errstate(over="ignore", divide="ignore", invalid="ignore")
    def of(
        cls,
        scale: Array,
        within: Array | None,
        learnt: bool,
        means: ClassMeans | None,
        n_tasks: int,
        centred: bool,
    ) -> Units | None:
        """Units from the parts of a prior; None if it knows nothing of them."""
        diagonal = None if within is None else np.diagonal(within)
        raw = bool((scale == 1.0).all())
        if diagonal is None and means is None and raw:
            return None
        alike = _alike(diagonal if learnt else None, means, scale.size)
        most = np.clip(1.0 + n_tasks / 3.0, _LEAST, _MOST)
        precision, n_free = None, 1.0
        if diagonal is not None:
            varies = diagonal > 0.0
            variance = np.where(varies, diagonal, 1.0)
            # A scale that was learnt is the median over people, which few of them cannot move.
            precision = varies / (scale**2 * (1.0 if learnt else variance))
            correlation = within / np.sqrt(variance * variance[:, None])
            n_free = scale.size**2 / max(float((correlation**2).sum()), 1.0)
        elif not raw:
            precision = 1.0 / scale**2
        place, gap = (None, np.zeros(scale.size)) if means is None else _place(means, scale)
        may_be_zero = means is None or centred
        return cls(precision, np.clip(alike, _LEAST, most), n_free, place, gap, may_be_zero)

    def misfits(
        self,
        moments: ClassMoments,
        names: Sequence[str] | None = None,
        *,
        consecutive: bool = True,
        mixed: bool = False,
    ) -> list[str]:
        """Why windows cannot be in these units; `mixed` if the last class is of unlabelled ones."""
        counts = moments.counts
        seen = counts > 0.0
        n_seen, found = int(seen.sum()), []
        if not self.centred and _is_centred(moments):
            found.append(
                "All features have mean 0 over these windows, as a StandardScaler that was fitted "
                "to them leaves them, and the prior's have not."
            )
        dof = float(counts.sum()) - n_seen
        far: dict[int, str] = {}
        if self.precision is not None and dof >= 1.0:
            # The square s^2 / r^2. What does not vary, here or in the prior, has no units.
            ratio = moments.deviation() ** 2 * (self.precision * (float(moments.dof) / dof))
            ratio[ratio == 0.0] = 1.0
            step = _step(float(counts.max())) if consecutive else 1.0
            typical, single = self._far(ratio, dof, step, n_seen, mixed)
            if typical:
                factor = np.sqrt(np.median(ratio))
                found.append(
                    f"The features vary about {_number(factor)} times as much as in the prior. "
                    "Check their units."
                )
                return found
            for one in single:
                far[one] = f"varies {_number(np.sqrt(ratio[one]))} times as much as in the prior"
        for one, away in self.far_away(moments.means if seen.all() else moments.means[seen]):
            far.setdefault(
                one, f"lies {_number(away)} deviations from where the prior's people have it"
            )
        for one in sorted(far):
            name = repr(names[one]) if names is not None else str(one)
            found.append(f"Feature {name} {far[one]}. Check its units.")
        return found

    def _far(
        self, ratio: Array, dof: float, step: float, n_seen: int, mixed: bool
    ) -> tuple[bool, list[int]]:
        """Whether the median of the ratios s^2 / r^2 is too far from one, and which of them are."""
        size, most = ratio.size, self.most_alike
        fewer = min(dof, max(dof * step, float(n_seen)))
        free, alike = _MEDIAN * self.n_free, 2.0 * self.usually_alike
        whole, part = max(dof * free, 1.0), max(fewer * free, 1.0)
        largest, least = float(ratio.max()), float(ratio.min()) / step
        if (
            min(_above(whole, alike, largest), _below(part, alike, least)) >= _SELDOM
            and min(_above(dof, most, largest), _below(fewer, most, least)) * size >= _SELDOM
        ):
            # Not even if all features were like the one that is furthest off.
            return False, []
        # Between the classes there is more variance than within, and less between neighbours.
        wide, narrow = ratio / (1.0 + self.gap) if mixed else ratio, ratio / step
        # More than half of the features must be beyond.
        low, high = (size - 1) // 2, size // 2
        above, below = np.partition(wide, low)[low], np.partition(narrow, high)[high]
        typical = min(_above(whole, alike, above), _below(part, alike, below)) < _SELDOM
        chance = np.minimum(_above(dof, self.alike, wide), _below(fewer, self.alike, narrow))
        return bool(typical), np.flatnonzero(chance * size < _SELDOM).tolist()

    def far_away(self, means: Array) -> list[tuple[int, float]]:
        """Features in which class means (K, d) are too far from the crowd's, and by how much."""
        if self.place is None:
            return []
        centre, precision = self.place
        away = np.abs((means - centre) * precision).max(0)
        if away.max() <= _NEAR:
            return []
        chance = 2.0 * stdtr(self.alike, -away) * means.size
        return [(one, float(away[one])) for one in np.flatnonzero(chance < _SELDOM).tolist()]

    @cached_property
    def usually_alike(self) -> float:
        """Median of eta over the features."""
        return float(np.median(self.alike))

    @cached_property
    def most_alike(self) -> float:
        """Largest eta."""
        return float(self.alike.max())


def _alike(diagonal: Array | None, means: ClassMeans | None, size: int) -> Array:
    """Degrees of freedom eta (d,), from people's mean variances over squared medians of s."""
    known = []
    if diagonal is not None:
        # If log s is normal, its variance 1 / (2 eta) is half the logarithm of that.
        known.append(1.0 / np.log(np.maximum(diagonal, 1.0 + 1e-9)))
    if means is not None:
        # Single features differ more than covariances do as a whole.
        known.append(np.full(size, np.exp(means.log_wishart_dof / means.n_people) / 2.0))
    return np.min(known, axis=0) if known else np.full(size, _USUAL)


def _above(dof: float, alike: Any, ratio: Any) -> Any:
    """Probability of so large a ratio s^2 / r^2."""
    return fdtrc(dof, alike, ratio)


def _below(dof: float, alike: Any, ratio: Any) -> Any:
    """Probability of so small a ratio s^2 / r^2."""
    both = 1.0 / (2.0 / dof + 2.0 / alike)
    return gammainc(both, both * ratio)


def _step(n_in_a_row: float) -> float:
    """Least variance of so many windows in a row, as a proportion of that of windows apart."""
    if n_in_a_row < 3.0:
        return _TWINS
    # On average they are (n + 1) / 3 windows apart.
    return min(_STEP * (n_in_a_row + 1.0) / 3.0, 1.0)


def _place(means: ClassMeans, scale: Array) -> tuple[tuple[Array, Array] | None, Array]:
    """Where class means lie, in the user's units, and the variance between the classes."""
    d, n_classes, n_people = scale.size, means.n_classes, means.n_people
    within = np.diagonal(means.within_sum) / max(means.n_within, 1.0)
    mean = means.mean_sum.reshape(n_classes, d) / n_people
    outer = means.outer_sum.reshape(n_classes, d, n_classes, d) / n_people
    # Products (K, K, d) of the means of two classes in the same feature.
    products = np.diagonal(outer, axis1=1, axis2=3)
    own = np.einsum("kkd->d", products) / n_classes
    gap = np.maximum(own - products.mean((0, 1)), 0.0) / np.where(within > 0.0, within, np.inf)
    if n_people < 3.0:
        return None, gap
    centre = mean.mean(0)
    variance = np.maximum(own - centre**2, 0.0) * (n_people + 1.0) / (n_people - 1.0) + within
    varies = variance > 0.0
    precision = varies / (scale * np.sqrt(np.where(varies, variance, 1.0)))
    return (centre * scale, precision), gap


def _number(value: float) -> str:
    """Two digits of a number, as people write it: 1,200 for 1234.5."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if 100.0 <= rounded < 1e9 else f"{rounded:g}"


def _is_centred(moments: ClassMoments) -> bool:
    """Whether every feature has mean zero over these very windows, to rounding."""
    counts, means = moments.counts, moments.means
    least = 1e-9 * float(counts.sum())
    if abs(float(counts @ means[:, 0])) > least * moments.largest[0]:
        return False
    return bool((np.abs(counts @ means) <= least * moments.largest).all() and means.any())


def warn_of_units(prior: Any, reasons: Sequence[str], stacklevel: int) -> None:
    """Say that windows cannot be in the units of a prior, and what to do."""
    more = f" And {len(reasons) - _NAMED} features more." if len(reasons) > _NAMED else ""
    warnings.warn(
        "These windows are not in the units of the prior. Use the units of its tasks; a scaler "
        "must be fitted to those tasks, and applied to both. "
        f"{' '.join(reasons[:_NAMED])}{more} Neither the prior nor its forecasts apply to these "
        "windows.",
        UnitsWarning,
        stacklevel=stacklevel,
    )

"""The law of a new person: what sums over many people say about one who was never seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from crossfade._typing import Array
from crossfade.fisher import Spectrum, cut_off, from_dense, oas
from crossfade.prior._class_means import ClassMeans
from crossfade.prior._crowd import Crowd
from crossfade.prior._directions import Directions
from crossfade.prior._forecast_record import ForecastRecord
from crossfade.prior._population import Population
from crossfade.prior._space import Space
from crossfade.prior._sums import Sums


@dataclass(frozen=True, eq=False)
class Law:
    """What is known of a new person before they label a window; leading axes are a batch.

    Attributes
    ----------
    n_classes : int
        Number of classes.
    feature_scale : ndarray of shape (n_features,)
        What features are divided by.
    directions : Crowd or None
        Law of the direction between two classes.
    class_means : Population or None
        Law of the class means.
    within : Spectrum or None
        Average covariance within the classes, in scaled units.
    neighbour_correlation : ndarray of shape (n_lags,) or None
        Correlation of windows of a class that follow each other.
    records : mapping of str to ForecastRecord
        For each kind of blend, how accurate its forecasts turned out.
    means_noise : float
        Standard deviation of what a release added to each feature of the average class means.
    """

    n_classes: int
    feature_scale: Array
    directions: Crowd | None = None
    class_means: Population | None = None
    within: Spectrum | None = None
    neighbour_correlation: Array | None = None
    records: Mapping[str, ForecastRecord] = field(default_factory=dict)
    means_noise: float = 0.0

    @classmethod
    def from_sums(cls, space: Space, sums: Mapping[str, Sums], noise: float = 0.0) -> Law:
        """Law from sums over people, which may have leading axes; `noise` is that of a release."""
        directions, means = sums.get("directions"), sums.get("class_means")
        known: dict[str, Any] = {}
        if isinstance(directions, Directions):
            known["directions"] = directions.crowd(noise)
            known["within"] = within_spectrum(directions)
            alike = directions.average("autocorrelation")
            known["neighbour_correlation"] = None if alike is None else cut_off(alike)
        if isinstance(means, ClassMeans):
            centred = space.centred_per_person
            known["class_means"] = Population.from_sums(means, centred=centred)
            known["means_noise"] = noise / means.n_people * (space.mean_norm_bound or 0.0)
        records = {
            name.partition(".")[2]: one
            for name, one in sums.items()
            if isinstance(one, ForecastRecord) and one.able.size
        }
        return cls(space.n_classes, space.feature_scale, **known, records=records)

    def of(self, which: Any) -> Law:
        """Laws of some of a batch of people."""
        directions = None if self.directions is None else self.directions.of(which)
        means = None if self.class_means is None else self.class_means.of(which)
        return replace(self, directions=directions, class_means=means)


def within_spectrum(sums: Directions) -> Spectrum | None:
    """Eigenvectors of the average covariance within the classes, if it was kept.

    If it lacks full rank, and so few tasks do not show that features are tied, it is shrunk
    (equation 2) as if every task had given one degree of freedom.
    """
    covariance = sums.average("within")
    if covariance is None:
        return None
    plain = from_dense(covariance)
    rank, d = int((plain.values > 0.0).sum()), len(covariance)
    if rank == d or rank < sums.n_tasks:
        return plain
    trace, square = plain.values.sum(), (plain.values**2).sum()
    weight = oas(trace, square, d, sums.n_tasks)
    return plain.shrunk(weight, weight * trace / d)

"""The law of a new person: what sums over many people say about one who was never seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from crossfade._typing import Array
from crossfade.fisher import Spectrum
from crossfade.prior._class_means import Population
from crossfade.prior._crowd import Crowd
from crossfade.prior._replay import Replay


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
    records : mapping of str to Replay
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
    records: Mapping[str, Replay] = field(default_factory=dict)
    means_noise: float = 0.0

    def of(self, which: Any) -> Law:
        """Laws of some of a batch of people."""
        directions = None if self.directions is None else self.directions.of(which)
        means = None if self.class_means is None else self.class_means.of(which)
        return replace(self, directions=directions, class_means=means)

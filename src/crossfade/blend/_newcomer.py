"""The windows of a new person, before a rule is made."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from crossfade._typing import Array
from crossfade.fisher import ClassMoments, Direction, learn_direction
from crossfade.prior import ForecastRecord, Law


class Newcomer(NamedTuple):
    """Windows of one person, or of a batch of people, and what is known about them.

    Attributes
    ----------
    moments : ClassMoments
        Moments of the labelled windows in the user's units; classes may have none.
    unlabelled : ndarray of shape (..., n_windows, n_features) or None
        Windows without a label.
    consecutive : bool
        Whether the labelled windows of a class follow each other in time.
    second : float
        Probability of the second of two classes among new windows.
    classes : ndarray of shape (n_classes,)
        Labels of the classes.
    record : ForecastRecord or None
        How accurate forecasts of this kind of rule turned out for earlier people.
    """

    moments: ClassMoments
    unlabelled: Array | None
    consecutive: bool
    second: float
    classes: NDArray[Any]
    record: ForecastRecord | None = None

    @property
    def shows_all(self) -> bool:
        """Whether every class has a labelled window."""
        return bool(self.moments.counts.all())

    def direction(
        self, law: Law | None, shrinkage: str | None = "oas", form: str = "unit"
    ) -> Direction:
        """The person's own direction, in the units of the law."""
        # The paper takes windows for independent.
        alike = law is not None and self.consecutive and form == "unit"
        return learn_direction(
            self.moments,
            shrinkage,
            None if law is None else law.feature_scale,
            fallback=None if law is None else law.within,
            form=form,
            correlation=law.neighbour_correlation if law is not None and alike else None,
        )

"""A transformer that goes with a prior: fitted on the crowd, applied to every window of a person.

The prior lives in the transformed features; a blend takes raw windows. An affine map, as scaling,
PCA or any matrix, is kept by its numbers,

.. math:: x \\mapsto (x - o) M + b

with o the crowd's mean, so that no digits are lost to features that are far from zero; only such a
map can be saved to a file. Any other transformer is kept as it is, as long as the process lives.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from crossfade._typing import Array
from crossfade._validate import check_finite, check_names
from crossfade.exceptions import MissingPartWarning, PriorMismatchError
from crossfade.tasks import Task

if TYPE_CHECKING:
    from crossfade.prior._task_prior import TaskPrior

#: Most windows on which a map is compared with an affine one, and most features of a matrix.
_MOST_ROWS, _MOST_FEATURES = 1000, 5000
#: How far the two may be apart, as a proportion of the largest number out, and of those in.
_ROUNDING, _LOST = 1e-10, 64.0 * np.finfo(np.float64).eps


class Affine(NamedTuple):
    """The map x -> (x - origin) @ matrix + offset."""

    origin: Array  # (n_raw,)
    matrix: Array  # (n_raw, d)
    offset: Array  # (d,)

    def __call__(self, rows: Array) -> Array:
        """Rows (n, d) of raw ones (n, n_raw)."""
        mapped: Array = (rows - self.origin) @ self.matrix + self.offset
        return mapped


@dataclass(frozen=True, eq=False)
class Transform:
    """What takes raw windows to the features of a prior.

    Attributes
    ----------
    n_features : int
        Number of raw features.
    feature_names : tuple of str or None
        Their names.
    names_out : tuple of str or None
        Names of the transformed features.
    apply : Affine or fitted transformer
        The map.
    learnt : bool
        Whether it was fitted on the people of this prior, rather than taken over from another one.
    """

    n_features: int
    feature_names: tuple[str, ...] | None
    names_out: tuple[str, ...] | None
    apply: Any
    learnt: bool = True

    @classmethod
    def fit(cls, transformer: Any, tasks: Sequence[Task]) -> Transform:
        """Fit a copy of a transformer to all windows of all tasks, each window counting once."""
        raw = tasks[0].feature_names
        n_features, names = np.shape(tasks[0].X)[1], None if raw is None else tuple(raw)
        if isinstance(transformer, Transform):
            known = transformer.feature_names
            if n_features != transformer.n_features or (
                names is not None and known is not None and names != known
            ):
                raise PriorMismatchError(
                    f"The transform takes {transformer.n_features} features, {known}; the tasks "
                    f"have {n_features}, {names}. Give tasks of the same features."
                )
            return replace(transformer, learnt=False)
        if isinstance(transformer, type) or not all(
            hasattr(transformer, name) for name in ("fit", "transform", "get_params")
        ):
            raise TypeError(
                "transform must be a scikit-learn transformer, such as StandardScaler(), or the "
                f"transform of another prior; got {transformer!r}."
            )
        rows = np.concatenate([np.asarray(task.X) for task in tasks])
        labels = np.concatenate([np.asarray(task.y) for task in tasks])
        fitted = clone(transformer).fit(rows, labels)
        affine = _affine(fitted.transform, rows)
        names_out = _names_out(fitted, names, np.shape(fitted.transform(rows[:1]))[1])
        return cls(n_features, names, names_out, fitted if affine is None else affine)

    @property
    def affine(self) -> Affine | None:
        """The numbers of the map, if it is affine."""
        return self.apply if isinstance(self.apply, Affine) else None

    @property
    def called(self) -> str:
        """What kind of map it is."""
        return "affine map" if self.affine is not None else type(self.apply).__name__

    def __call__(self, rows: Array) -> Array:
        """Transformed windows of raw ones (n, n_features)."""
        if isinstance(self.apply, Affine):
            return self.apply(rows)
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                mapped = self.apply.transform(rows)
        except ValueError as reason:
            raise ValueError(
                f"The prior's transform, {self.called}, refuses X: {reason} Give windows that it "
                "can take."
            ) from reason
        return np.ascontiguousarray(check_finite("X after the prior's transform", mapped, 2))

    def before(
        self, coef: Array, intercept: float, midpoint: Array, scale: Array
    ) -> tuple[Array, float, Array, Array]:
        """Rule of transformed features as one of raw ones: the same scores of the same windows.

        Scores are exact to rounding. The midpoint is the nearest raw one to the crowd's mean that
        there is, and the scale that of which each raw feature moves the scaled ones by one.
        """
        if self.affine is None:
            raise ValueError(
                f"A model file holds a rule of raw features, and the prior's transform, "
                f"{self.called}, is no affine map. Save the whole blend where it is used, or build "
                "the prior from features that are transformed already."
            )
        origin, matrix, offset = self.affine
        raw = matrix @ coef
        length = np.linalg.vector_norm(matrix / scale, axis=1)
        return (
            raw,
            float(intercept + offset @ coef - origin @ raw),
            origin + (midpoint - offset) @ np.linalg.pinv(matrix),
            1.0 / np.where(length > 0.0, length, 1.0),
        )

    def of_tasks(self, tasks: Sequence[Task]) -> list[Task]:
        """Tasks with transformed windows."""
        return [
            replace(task, X=self(np.asarray(task.X)), feature_names=self.names_out)
            for task in tasks
        ]

    def __eq__(self, other: object) -> bool:
        """Whether both are the same map, to the bit; a transformer is only like itself."""
        if not isinstance(other, Transform):
            return NotImplemented
        if self.affine is None or other.affine is None:
            same = self.apply is other.apply
        else:
            same = all(map(np.array_equal, self.affine, other.affine))
        return same and self.feature_names == other.feature_names

    def __hash__(self) -> int:
        return hash((self.n_features, self.feature_names))

    # -- files ------------------------------------------------------------------------------

    def fields(self) -> dict[str, Any]:
        """What a file holds of an affine map."""
        assert self.affine is not None
        return {
            **self.affine._asdict(),
            "feature_names": self.feature_names,
            "learnt": self.learnt,
        }

    @classmethod
    def of_file(
        cls, values: Any, n_features: int, names_out: tuple[str, ...] | None
    ) -> Transform | None:
        """Map from the fields of a file, every number of it checked."""
        if values is None:
            return None
        if not isinstance(values, dict):
            raise TypeError(f"transform must be an object; got {type(values).__name__}.")
        origin = check_finite("transform.origin", values["origin"], 1)
        matrix = check_finite("transform.matrix", values["matrix"], 2)
        offset = check_finite("transform.offset", values["offset"], 1)
        if origin.ndim != 1 or (matrix.shape, offset.shape) != (
            (origin.size, n_features),
            (n_features,),
        ):
            raise ValueError(
                f"transform must take features to the {n_features} of the prior; got a matrix of "
                f"shape {matrix.shape}, an origin of {origin.shape} and an offset of "
                f"{offset.shape}."
            )
        if not isinstance(values["learnt"], bool):
            raise TypeError(f"learnt must be true or false; got {values['learnt']!r}.")
        names = check_names(values.get("feature_names"), origin.size)
        return cls(origin.size, names, names_out, Affine(origin, matrix, offset), values["learnt"])


def for_file(prior: TaskPrior, stacklevel: int) -> TaskPrior:
    """The prior as a file can hold it: without a transform that is no affine map, which is said."""
    kept = prior.transform
    if kept is None or kept.affine is not None:
        return prior
    warnings.warn(
        f"The transform of this prior, {kept.called}, is no affine map, and a file holds nothing "
        "else: it is left out. Whoever loads the prior must transform windows before a blend sees "
        "them; the card says so.",
        MissingPartWarning,
        stacklevel=stacklevel,
    )
    said = f"left out, {kept.called}: windows must be transformed before a blend sees them"
    return replace(prior, transform=None, about={**prior.about, "transform": said})


def say_left_out(prior: Any) -> None:
    """Warn of a prior from a file that could not hold its transform."""
    said = str(getattr(prior, "about", {}).get("transform", ""))
    if prior.transform is None and said.startswith("left out"):
        warnings.warn(
            f"The transform of this prior was {said}. Raw windows would be taken for transformed "
            "ones, and a blend cannot always tell.",
            MissingPartWarning,
            stacklevel=3,
        )


def _affine(transform: Callable[[Array], Any], rows: Array) -> Affine | None:
    """The map by its numbers, if it is affine for these rows and far beyond them."""
    n_features = rows.shape[1]
    if n_features > _MOST_FEATURES:
        return None
    origin, largest = rows.mean(0), np.abs(rows).max(0)
    # Steps as large as the features themselves, and powers of two, so that differences are exact.
    step = np.exp2(np.ceil(np.log2(np.where(largest > 0.0, largest, 1.0))))
    some = rows[:: max(1, len(rows) // _MOST_ROWS)]
    probes = np.concatenate([some, 9.0 * origin - 8.0 * some])
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            offset = np.asarray(transform(origin[None, :]), np.float64)[0]
            moved = np.asarray(transform(origin + np.diag(step)), np.float64)
            found = np.asarray(transform(probes), np.float64)
            affine = Affine(origin, (moved - offset) / step[:, None], offset)
            # The transformer may lose digits of features that are far from zero.
            lost = _LOST * np.abs(probes).max(0) @ np.abs(affine.matrix)
            same = np.abs(affine(probes) - found) <= _ROUNDING * np.abs(found).max(0) + lost
    except (TypeError, ValueError, ArithmeticError):
        # What it cannot do far from the windows, as a logarithm, is not affine.
        return None
    for part in affine:
        part.flags.writeable = False
    return affine if same.all() else None


def _names_out(
    fitted: Any, names: tuple[str, ...] | None, n_features: int
) -> tuple[str, ...] | None:
    """Names of the transformed features, if the transformer tells them."""
    try:
        found = tuple(map(str, fitted.get_feature_names_out(names)))
    except (AttributeError, TypeError, ValueError):
        return None
    return found if len(found) == n_features else None

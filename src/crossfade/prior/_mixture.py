"""Prior of people of several kinds: a mixture of von Mises-Fisher laws (equations 32 to 35)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._typing import RandomState
from crossfade._validate import (
    as_generator,
    check_covariance,
    check_directions,
    check_finite,
    check_integer,
    check_spectrum,
)
from crossfade.fisher._spectrum import Spectrum
from crossfade.prior._archive import Archived
from crossfade.prior._card import cards_of, data_of_mixture, text_of
from crossfade.prior._class_means import ClassMeans
from crossfade.prior._crowd import Crowd
from crossfade.prior._replay import Replay
from crossfade.prior._task_prior import TaskPrior, frozen
from crossfade.prior._units import Units
from crossfade.prior._vmf import corrected_concentration
from crossfade.prior._vmf_mixture import choose_mixture, fit_mixture
from crossfade.tasks import Recipe, Task

if TYPE_CHECKING:
    from crossfade.fisher._discriminant import FisherDiscriminant

Array = NDArray[np.float64]

_SUMS = ("counts", "direction_sums", "outer_sums")


@dataclass(frozen=True, eq=False, repr=False)
class MixturePrior(Archived):
    """What many earlier tasks say about a new one, if they are of several kinds.

    A mixture of von Mises-Fisher laws (equation 32), of which only the sums of each component are
    kept. It takes the place of a :class:`TaskPrior` in both blends, which weigh the components by
    how well they explain the target's own direction. With one component it is that `TaskPrior`.

    Build one with :meth:`from_tasks` or :meth:`from_projections`. A prior never changes.

    Attributes
    ----------
    pooled : TaskPrior
        What is left if the components are forgotten: classes, features, scale, sums over all tasks.
    counts : ndarray of shape (n_components,)
        Tasks of each component, in parts; they sum to the number of tasks.
    direction_sums : ndarray of shape (n_components, n_features)
        Sum of the unit directions of each, in scaled units.
    outer_sums : ndarray of shape (n_components, n_features, n_features) or None
        Sum of their outer products; None for an isotropic prior.

    See Also
    --------
    TaskPrior : One crowd for all.

    References
    ----------
    Banerjee, Dhillon, Ghosh and Sra (2005), Clustering on the unit hypersphere using von
    Mises-Fisher distributions. Journal of Machine Learning Research 6.

    McLachlan (1987), On bootstrapping the likelihood ratio test statistic for the number of
    components in a normal mixture. Applied Statistics 36.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade import MixturePrior
    >>> rng = np.random.default_rng(0)
    >>> centres = np.repeat([[9.0, 0.0, 0.0], [0.0, 9.0, 0.0]], 20, axis=0)
    >>> W = rng.normal(size=(40, 3)) + centres
    >>> MixturePrior.from_projections(W, normalize=True)
    MixturePrior(n_components=2, n_tasks=40, n_features=3, shares=[0.50, 0.50])
    """

    pooled: TaskPrior
    counts: Array
    direction_sums: Array
    outer_sums: Array | None

    def __post_init__(self) -> None:
        if not isinstance(self.pooled, TaskPrior):
            raise TypeError(f"pooled must be a TaskPrior; got {type(self.pooled).__name__}.")
        if self.pooled.release is not None:
            raise ValueError("pooled must hold exact sums; got those of a released prior.")
        d, k = self.pooled.n_features, np.size(self.counts)
        if (self.outer_sums is None) != self.pooled.isotropic:
            raise ValueError("outer_sums and the outer_sum of pooled must both be there or not.")
        for name, shape in zip(_SUMS, ((k,), (k, d), (k, d, d)), strict=True):
            if getattr(self, name) is None:
                continue
            array = check_finite(name, getattr(self, name), len(shape))
            if array.shape != shape or k == 0:
                raise ValueError(f"{name} must be of shape {shape}; got {array.shape}.")
            object.__setattr__(self, name, frozen(array.copy()))
        slack = 1e-5 * self.n_tasks
        if self.counts.min() <= 0.0 or abs(self.counts.sum() - self.n_tasks) > slack:
            raise ValueError(
                f"counts must be positive and sum to {self.n_tasks}; got {self.counts}."
            )
        parts = {"direction_sum": self.direction_sums, "outer_sum": self.outer_sums}
        for name, sums in parts.items():
            whole = getattr(self.pooled, name)
            if sums is not None and np.abs(sums.sum(0) - whole).max() > slack:
                raise ValueError(f"{name}s do not add up to the {name} of all tasks.")
        lengths = np.linalg.vector_norm(self.direction_sums, axis=-1)
        if (lengths > self.counts + slack).any():
            raise ValueError("direction_sums are longer than so many unit directions make them.")
        if self.outer_sums is not None:
            traces = np.trace(self.outer_sums, axis1=-2, axis2=-1)
            if np.abs(traces - self.counts).max() > slack:
                raise ValueError("outer_sums are not those of so many unit directions.")

    # -- building ---------------------------------------------------------------------------

    @classmethod
    def from_projections(
        cls,
        projections: ArrayLike,
        n_components: int | None = None,
        *,
        normalize: bool = False,
        isotropic: bool = False,
        feature_scale: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
        feature_names: Sequence[str] | None = None,
        random_state: RandomState = 0,
    ) -> Self:
        """Prior from the projection vectors of earlier tasks.

        Parameters
        ----------
        projections : array-like of shape (n_tasks, n_features)
            Unit directions, one row for each task.
        n_components : int or None, default=None
            Number of components, up to the number of tasks. None for that of least BIC, up to 10
            and up to one for every 5 tasks, if a parametric bootstrap rejects one anisotropic crowd
            at the 5 per cent level, else one. Components that no task is left to are given up.
        normalize, isotropic, feature_scale, classes, feature_names : optional
            As in :meth:`TaskPrior.from_projections`.
        random_state : int, Generator or None, default=0
            Seed of the starting points and of the bootstrap.

        Returns
        -------
        MixturePrior
            The prior, its largest component first.
        """
        pooled = TaskPrior.from_projections(
            projections,
            normalize=normalize,
            isotropic=isotropic,
            feature_scale=feature_scale,
            classes=classes,
            feature_names=feature_names,
        )
        directions = check_directions(projections, normalize=normalize)
        return cls._of(pooled, directions, n_components, random_state)

    @classmethod
    def from_tasks(
        cls,
        tasks: Iterable[Task],
        discriminant: FisherDiscriminant | None = None,
        feature_scale: ArrayLike | str | None = "auto",
        n_components: int | None = None,
        *,
        isotropic: bool = False,
        random_state: RandomState = 0,
    ) -> Self:
        """Prior from tasks: one discriminant each, in common units.

        Parameters
        ----------
        tasks : iterable of Task
            Earlier participants or sessions, a :class:`TaskSet` for instance.
        discriminant, feature_scale : optional
            As in :meth:`TaskPrior.from_tasks`.
        n_components : int or None, default=None
            Number of components, see :meth:`from_projections`.
        isotropic : bool, default=False
            Keep the sums of the directions only.
        random_state : int, Generator or None, default=0
            Seed of the starting points and of the bootstrap.

        Returns
        -------
        MixturePrior
            The prior; it holds no row of anybody's data.
        """
        known = TaskPrior.from_tasks(
            tasks, discriminant, feature_scale, isotropic=isotropic, keep_directions=True
        )
        return cls.from_prior(known, n_components, random_state=random_state)

    @classmethod
    def from_prior(
        cls, prior: TaskPrior, n_components: int | None = None, *, random_state: RandomState = 0
    ) -> Self:
        """Prior from one that keeps its directions; single directions are then given up.

        Parameters
        ----------
        prior : TaskPrior
            A prior that was built with ``keep_directions=True``.
        n_components : int or None, default=None
            Number of components, see :meth:`from_projections`.
        random_state : int, Generator or None, default=0
            Seed of the starting points and of the bootstrap.

        Returns
        -------
        MixturePrior
            The prior, its largest component first.
        """
        if prior.directions is None:
            raise ValueError(
                "A mixture needs the single directions, and this prior has only their sums. Build "
                "it with keep_directions=True."
            )
        pooled = replace(prior, directions=None)
        return cls._of(pooled, prior.directions, n_components, random_state)

    @classmethod
    def _of(
        cls,
        pooled: TaskPrior,
        directions: Array,
        n_components: int | None,
        random_state: RandomState,
    ) -> Self:
        rng = as_generator(random_state)
        if n_components is None:
            shares = choose_mixture(directions, rng).responsibilities
        else:
            n_components = check_integer("n_components", n_components, 1)
            if n_components > len(directions):
                raise ValueError(
                    f"n_components must not exceed the number of tasks; got {n_components} "
                    f"components for {len(directions)} tasks. Ask for fewer, or pass None."
                )
            shares = fit_mixture(directions, n_components, rng).responsibilities
        outer = None if pooled.isotropic else (shares.T[:, None, :] * directions.T) @ directions
        return cls(pooled, shares.sum(0), shares.T @ directions, outer)

    def reversed(self) -> MixturePrior:
        """The same prior with its classes the other way round: every direction turned about.

        Returns
        -------
        MixturePrior
            A prior without names of classes, whose directions point to what was the first.
        """
        return replace(self, pooled=self.pooled.reversed(), direction_sums=-self.direction_sums)

    def released(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse to release: which component a person belongs to has no bound.

        Parameters
        ----------
        *args, **options : object
            Anything.

        Returns
        -------
        NoReturn
            Never.
        """
        raise TypeError(
            "A MixturePrior cannot be released: one person can move the components of all others. "
            "Release what they have in common, mixture.pooled."
        )

    @property
    def holds(self) -> tuple[str, ...]:
        """Names of the parts beyond the sum of the directions that the prior has."""
        return self.pooled.holds

    def without(self, *parts: str) -> MixturePrior:
        """A copy that shares less.

        Parameters
        ----------
        *parts : str
            Names of parts to leave out, as in :meth:`TaskPrior.without`.

        Returns
        -------
        MixturePrior
            A prior without them.
        """
        outer = None if "outer_sum" in parts else self.outer_sums
        return replace(self, pooled=self.pooled.without(*parts), outer_sums=outer)

    def __add__(self, other: object) -> NoReturn:
        """Refuse to merge: it is not known which components of two sites belong together.

        Parameters
        ----------
        other : object
            Anything.

        Returns
        -------
        NoReturn
            Never.
        """
        raise TypeError(
            "Mixture priors cannot be added: nothing says which components of two sites belong "
            "together. Build one from the directions of both, or add what they have in common, "
            "mixture.pooled."
        )

    __radd__ = __add__

    # -- reading ----------------------------------------------------------------------------

    @property
    def n_tasks(self) -> int:
        """Number of tasks, J."""
        return self.pooled.n_tasks

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.pooled.n_features

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.counts.size

    @property
    def classes(self) -> tuple[Any, Any] | None:
        """The two labels, sorted; directions point to the second."""
        return self.pooled.classes

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features."""
        return self.pooled.feature_names

    @property
    def feature_scale(self) -> Array:
        """What features are divided by before anything else."""
        return self.pooled.feature_scale

    @property
    def recipe(self) -> Recipe | None:
        """How the features were made from recordings, where that is known."""
        return self.pooled.recipe

    @property
    def about(self) -> Mapping[str, str]:
        """What no number says: who made it, units, date."""
        return self.pooled.about

    @property
    def units(self) -> Units | None:
        """What the prior knows of the units of its features, if anything."""
        return self.pooled.units

    @property
    def half_gap(self) -> Array | None:
        """Average half gap between the class means, if it was kept."""
        return self.pooled.half_gap

    @property
    def neighbour_correlation(self) -> Array | None:
        """Correlation of samples of a class that follow each other, as far as it matters."""
        return self.pooled.neighbour_correlation

    @property
    def within_spectrum(self) -> Spectrum | None:
        """Eigenvectors of the average covariance within the classes, if it was kept."""
        return self.pooled.within_spectrum

    @property
    def class_means(self) -> ClassMeans | None:
        """Sums of class means of all tasks, if they were kept."""
        return self.pooled.class_means

    @property
    def replay(self) -> Mapping[str, Replay] | None:
        """What forecasts were worth with all tasks as one crowd, if it is known."""
        return self.pooled.replay

    @property
    def isotropic(self) -> bool:
        """Whether only the sums of the directions were kept."""
        return self.pooled.isotropic

    @property
    def resultant_length(self) -> float:
        """Length of the mean of all directions."""
        return self.pooled.resultant_length

    @property
    def mean_direction(self) -> Array:
        """Unit vector along the mean of all directions."""
        return self.pooled.mean_direction

    @property
    def crowd(self) -> Crowd:
        """All tasks together."""
        return self.pooled.crowd

    @property
    def crowds(self) -> tuple[Crowd, ...]:
        """The crowds of which a person may be a member."""
        return self.components if self.n_components > 1 else (self.crowd,)

    @cached_property
    def components(self) -> tuple[Crowd, ...]:
        """The components, largest first; each has mean, scatter and concentration of its own."""
        outer = [None] * self.n_components if self.outer_sums is None else self.outer_sums
        return tuple(
            Crowd.from_sums(*sums, direction_noise=self.pooled.direction_noise)
            for sums in zip(self.counts.tolist(), self.direction_sums, outer, strict=True)
        )

    @property
    def shares(self) -> Array:
        """Share of each component in the tasks, of shape (n_components,)."""
        share: Array = self.counts / self.counts.sum()
        return share

    @cached_property
    def concentrations(self) -> Array:
        """Concentration of each component, freed of the bias of few members (equation 33)."""
        lengths = [float(one.resultant_length) for one in self.components]
        return frozen(corrected_concentration(lengths, self.counts, self.n_features))

    def card_data(self) -> dict[str, Any]:
        """What the card says, in values that JSON can hold; numbers to four digits."""
        return data_of_mixture(self)

    def card(self) -> str:
        """Card in Markdown: what the prior holds, from whom, under which privacy."""
        return text_of(self.card_data())

    def __repr__(self) -> str:
        shares = ", ".join(f"{share:.2f}" for share in self.shares)
        return (
            f"MixturePrior(n_components={self.n_components}, n_tasks={self.n_tasks}, "
            f"n_features={self.n_features}, shares=[{shares}])"
        )

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same numbers, to the bit."""
        if not isinstance(other, MixturePrior):
            return NotImplemented
        same = all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _SUMS)
        return same and self.pooled == other.pooled

    def __hash__(self) -> int:
        return hash((self.pooled, self.n_components))

    # -- files ------------------------------------------------------------------------------

    def _file_fields(self) -> dict[str, Any]:
        """What a file holds of the prior."""
        sums = {name: getattr(self, name) for name in _SUMS}
        return {"pooled": self.pooled._file_fields()} | sums | cards_of(self)

    @classmethod
    def _of_file_fields(cls, fields: dict[str, Any]) -> Self:
        """Prior from what a file holds, every number of it checked."""
        pooled = TaskPrior._of_file_fields(fields["pooled"])
        outer_sums = fields.get("outer_sums")
        prior = cls(pooled, fields["counts"], fields["direction_sums"], outer_sums)
        if prior.outer_sums is not None:
            check_covariance("outer_sums", prior.outer_sums, prior.n_features)
            check_spectrum("outer_sums", np.linalg.eigvalsh(prior.outer_sums))
        return prior

"""Prior for many classes: one prior for each pair of them, or for each against the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from crossfade._typing import Array
from crossfade._validate import check_choice
from crossfade.fisher import FisherDiscriminant, TaskMoments, resolve_scale, shrinkage_of
from crossfade.prior._archive import Archived
from crossfade.prior._class_means import ClassMeans
from crossfade.prior._compatibility import refuse_recipes, spread_of
from crossfade.prior._crowd import Crowd
from crossfade.prior._law import Law
from crossfade.prior._learn import learn_sums, sums_of_means
from crossfade.prior._people import refuse_twins
from crossfade.prior._replay import Replay, usable_records
from crossfade.prior._task_prior import (
    ALL_VERBS,
    PAIR_VERBS,
    PARTS,
    TaskPrior,
    both_means,
    both_records,
    part_fields,
    parts_of_file,
)
from crossfade.prior._units import Units
from crossfade.tasks import Recipe, Task, TaskSet, common_recipe

Pair = tuple[Any, Any]

STRATEGIES = ("pairwise", "one-vs-rest")


@dataclass(frozen=True, eq=False, repr=False)
class MulticlassPrior(Archived):
    """What many earlier tasks say about each pair of classes: one :class:`TaskPrior` each.

    Build one with :meth:`from_tasks`; merge two sites with ``+``. All pairs share their features
    and feature scale. A prior never changes.

    Attributes
    ----------
    strategy : {"pairwise", "one-vs-rest"}
        Whether classes are set against each other or each against the rest.
    classes : tuple
        All labels, sorted.
    priors : mapping from pairs to TaskPrior
        What is known about each pair; ``prior[pair]`` for short. A pair is two labels in sorted
        order, or None, for the rest, and a label. Two classes are one pair either way.
    class_means : ClassMeans or None
        Sums over the people who have all classes of their class means, for
        :class:`HierarchicalBlendClassifier`.
    replay : mapping of str to Replay, or None
        What the forecasts of the hierarchical blend were worth, as in :class:`TaskPrior`.

    See Also
    --------
    TaskPrior : Two classes.
    MulticlassBlend : The blend that takes it.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade import MulticlassPrior, Task
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["rest", "speech", "walk"], 10)
    >>> shift = np.repeat(np.eye(3), 10, axis=0)
    >>> tasks = [Task(rng.normal(size=(30, 3)) + 2 * shift, y) for _ in range(5)]
    >>> prior = MulticlassPrior.from_tasks(tasks)
    >>> prior.pairs
    (('rest', 'speech'), ('rest', 'walk'), ('speech', 'walk'))
    >>> prior["rest", "walk"].n_tasks
    5
    """

    strategy: str
    classes: tuple[Any, ...]
    priors: Mapping[Pair, TaskPrior]
    class_means: ClassMeans | None = None
    replay: Mapping[str, Replay] | None = None

    def __post_init__(self) -> None:
        check_choice("strategy", self.strategy, STRATEGIES)
        classes = tuple(self.classes)
        possible = pairs_of(_sorted_labels(classes), self.strategy)
        strange = [pair for pair in self.priors if pair not in possible]
        if not self.priors or strange:
            raise ValueError(
                f"priors must be those of pairs of the classes {list(classes)}; got "
                f"{strange[:3] or 'none'}."
            )
        ordered = {pair: self.priors[pair] for pair in possible if pair in self.priors}
        first = next(iter(ordered.values()))
        for pair, prior in ordered.items():
            if not isinstance(prior, TaskPrior):
                raise TypeError(
                    f"The prior of the pair {pair} must be a TaskPrior; got {type(prior).__name__}."
                )
            if None not in (pair[0], prior.classes) and prior.classes != pair:
                raise ValueError(
                    f"The prior of the pair {pair} is of the classes {prior.classes}. Give each "
                    "pair its own."
                )
            if not np.array_equal(prior.feature_scale, first.feature_scale):
                raise ValueError(
                    f"The pair {pair} has another feature scale than the others: directions would "
                    "be in different units. Build all with the same feature_scale."
                )
            if prior.feature_names != first.feature_names:
                raise ValueError(
                    f"The pair {pair} has other features than the others: {prior.feature_names} "
                    f"and {first.feature_names}. Build all from the same ones."
                )
        means = self.class_means
        if means is not None and (means.n_classes, means.n_features) != (
            len(classes),
            first.n_features,
        ):
            raise ValueError("class_means are not those of these classes and features.")
        object.__setattr__(self, "classes", classes)
        object.__setattr__(self, "priors", MappingProxyType(ordered))

    @classmethod
    def from_tasks(
        cls,
        tasks: Iterable[Task],
        discriminant: FisherDiscriminant | None = None,
        feature_scale: ArrayLike | str | None = "auto",
        *,
        strategy: str = "pairwise",
        isotropic: bool = False,
        keep_directions: bool = False,
        class_means: bool = True,
        replay: bool = True,
        centred: str | None = "auto",
    ) -> Self:
        """Prior from tasks of many classes: one discriminant for each task and pair.

        Parameters
        ----------
        tasks : iterable of Task
            Earlier participants or sessions, with samples of two classes or more. Those that lack
            a class do not contribute to its pairs; against the rest, every task needs every class.
        discriminant : FisherDiscriminant or None, default=None
            How to get a direction; None is ``FisherDiscriminant()``.
        feature_scale : "auto", array-like of shape (n_features,) or None, default="auto"
            Common units of all pairs: "auto" is the median over tasks of the standard deviation
            within the classes; None is raw units.
        strategy : {"pairwise", "one-vs-rest"}, default="pairwise"
            Set classes against each other, or each against the rest.
        isotropic : bool, default=False
            Keep the sums of the directions only.
        keep_directions : bool, default=False
            Keep the direction of every single task too, see :meth:`TaskPrior.from_projections`.
        class_means, replay, centred : optional
            As in :meth:`TaskPrior.from_tasks`; `replay` for every pair of classes, and for the
            hierarchical blend of all.

        Returns
        -------
        MulticlassPrior
            The prior; it holds no row of anybody's data.
        """
        check_choice("strategy", strategy, STRATEGIES)
        sources = TaskSet(tasks)
        if not len(sources):
            raise ValueError("A prior needs at least one task; got none.")
        held = [set(task.classes.tolist()) for task in sources]
        classes = _sorted_labels(set().union(*held))
        for task, mine in zip(sources, held, strict=True):
            if len(mine) < 2:
                found = f"one class only, {next(iter(mine))!r}" if mine else "no samples"
                raise ValueError(
                    f"{task!r} has {found}; a source needs samples of two or more. Leave it out."
                )
            lacking = [name for name in classes if name not in mine]
            if strategy == "one-vs-rest" and lacking:
                raise ValueError(
                    f"{task!r} has no sample of class {lacking[0]!r}, so that its rest is another "
                    "one. Leave it out, or use strategy='pairwise'."
                )
        refuse_twins(sources)
        recipe = sources.recipe
        scale = resolve_scale(feature_scale, np.shape(sources[0].X)[1])
        if scale is None and len(classes) > 2:
            scale = spread_of(sources)
        shrinkage, two = shrinkage_of(discriminant), len(classes) == 2
        place = {name: number for number, name in enumerate(classes)}
        pairs = pairs_of(classes, strategy)
        samples = [(np.asarray(task.X), np.searchsorted(classes, task.y)) for task in sources]
        moments = TaskMoments.of_pairs(
            samples,
            [(None if pair[0] is None else place[pair[0]], place[pair[1]]) for pair in pairs],
            len(classes),
        )
        priors = {}
        for pair, able in zip(pairs, moments, strict=True):
            if able.n_tasks:
                places = [
                    place
                    for place, mine in enumerate(held)
                    if pair[0] is None or mine.issuperset(pair)
                ]
                fields = learn_sums(
                    able,
                    shrinkage,
                    "auto" if scale is None else scale,
                    isotropic=isotropic,
                    keep_directions=True,
                    class_means=class_means and two,
                    centred=centred,
                    classes=(False, True) if pair[0] is None else pair,
                    feature_names=sources.feature_names,
                    groups=[sources[place].group for place in places],
                    called=[repr(sources[place]) for place in places].__getitem__,
                )
                fields |= {"scale_learnt": isinstance(feature_scale, str), "recipe": recipe}
                played = (
                    (ALL_VERBS if two else PAIR_VERBS) if replay and pair[0] is not None else ()
                )
                priors[pair] = TaskPrior._replayed(
                    fields,
                    able,
                    played,
                    keep_directions=keep_directions,
                )
        if two:
            # One pair, whose class means are those of all.
            [pair_prior] = priors.values()
            return cls(strategy, classes, priors, pair_prior.class_means, pair_prior.replay)
        means = None
        if class_means and not isotropic:
            common = next(iter(priors.values())).feature_scale
            whole = TaskMoments.of_classes(samples, len(classes))
            if whole.n_tasks:
                means = sums_of_means(whole, common, centred)
        prior = cls(strategy, classes, priors, means)
        if means is None or not replay:
            return prior
        # A prior does not know blends; only here its people try them.
        from crossfade.blend._replay import replay_means

        return replace(prior, replay=replay_means(whole, prior))

    def released(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse to release: the pairs share people, whose budget they would spend together.

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
            "A MulticlassPrior cannot be released: its pairs are of the same people. Release the "
            "prior of one pair, prior[pair]; with one ledger for all pairs their releases add up."
        )

    def __add__(self, other: MulticlassPrior) -> MulticlassPrior:
        """Prior of the tasks of both; a pair that only one of the two has is kept as it is.

        Parameters
        ----------
        other : MulticlassPrior
            A prior with the same features, scale and strategy.

        Returns
        -------
        MulticlassPrior
            The merged prior.
        """
        if not isinstance(other, MulticlassPrior):
            return NotImplemented
        if self.strategy != other.strategy:
            raise ValueError(
                f"Priors of different strategies cannot be merged: {self.strategy!r} and "
                f"{other.strategy!r}. Build both with the same one."
            )
        if self.strategy == "one-vs-rest" and self.classes != other.classes:
            raise ValueError(
                "Priors of different classes cannot be merged, since their rests differ: "
                f"{self.classes} and {other.classes}. Use strategy='pairwise'."
            )
        refuse_recipes(self.recipe, other.recipe)
        merged = dict(self.priors)
        for pair, theirs in other.priors.items():
            merged[pair] = merged[pair] + theirs if pair in merged else theirs
        classes = _sorted_labels({*self.classes, *other.classes})
        # Of other classes the means are other things.
        same = self.classes == other.classes
        return MulticlassPrior(
            self.strategy,
            classes,
            merged,
            both_means(self.class_means, other.class_means) if same else None,
            both_records(self.replay, other.replay) if same else None,
        )

    def __getitem__(self, pair: Pair) -> TaskPrior:
        """Prior of one pair of classes.

        Parameters
        ----------
        pair : (label, label) or (None, label)
            Two labels in sorted order, or None for the rest and a label.

        Returns
        -------
        TaskPrior
            What is known about it.
        """
        if pair not in self.priors:
            raise KeyError(f"No source has the pair {pair}; the pairs are {list(self.pairs)}.")
        return self.priors[pair]

    @property
    def holds(self) -> tuple[str, ...]:
        """Names of the parts that all pairs have, or all classes together."""
        found = set.intersection(*(set(one.holds) for one in self.priors.values()))
        found |= {name for name in ("class_means", "replay") if getattr(self, name) is not None}
        return tuple(part for part in PARTS if part in found)

    def without(self, *parts: str) -> MulticlassPrior:
        """A copy that shares less.

        Parameters
        ----------
        *parts : str
            Names of parts to leave out, as in :meth:`TaskPrior.without`.

        Returns
        -------
        MulticlassPrior
            A prior without them, in all pairs and for all classes together.
        """
        priors = {pair: one.without(*parts) for pair, one in self.priors.items()}
        # What is replayed here is the blend of class means.
        bare = "class_means" in parts
        return replace(
            self,
            priors=priors,
            class_means=None if bare else self.class_means,
            replay=None if bare or "replay" in parts else self.replay,
        )

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Pairs of classes that sources had, in sorted order."""
        return tuple(self.priors)

    def crowd_of_pairs(self, pairs: Sequence[Pair]) -> Crowd:
        """Crowds of several pairs as one, with a first axis for the pairs.

        Parameters
        ----------
        pairs : sequence of pairs
            Pairs that the prior has.

        Returns
        -------
        Crowd
            What a blend asks of them.
        """
        key = tuple(pairs)
        if key not in self._stacks:
            self._stacks[key] = Crowd.stack([self[pair].crowd for pair in key])
        return self._stacks[key]

    @cached_property
    def _stacks(self) -> dict[tuple[Pair, ...], Crowd]:
        return {}

    @property
    def _any(self) -> TaskPrior:
        return next(iter(self.priors.values()))

    @cached_property
    def law(self) -> Law:
        """What the prior says about a new person."""
        if len(self.classes) == 2:
            return self._any.law
        return Law(
            n_classes=len(self.classes),
            feature_scale=self.feature_scale,
            class_means=None if self.class_means is None else self.class_means.population,
            records=usable_records(self.replay),
        )

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._any.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features."""
        return self._any.feature_names

    @property
    def feature_scale(self) -> Array:
        """What features are divided by before anything else."""
        return self._any.feature_scale

    @property
    def recipe(self) -> Recipe | None:
        """How the features were made; None where that is not known of every pair."""
        return common_recipe([one.recipe for one in self.priors.values()])

    @cached_property
    def units(self) -> Units | None:
        """What the prior knows of the units of its features, if anything."""
        pair = self._any
        return Units.of(
            pair.feature_scale,
            pair.within_covariance,
            pair.scale_learnt,
            self.class_means,
            pair.n_tasks,
        )

    def __repr__(self) -> str:
        return (
            f"MulticlassPrior({self.strategy!r}, n_classes={len(self.classes)}, "
            f"n_pairs={len(self.priors)}, n_features={self.n_features})"
        )

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same numbers, to the bit."""
        if not isinstance(other, MulticlassPrior):
            return NotImplemented
        return all(
            getattr(self, name) == getattr(other, name)
            for name in ("strategy", "classes", "priors", "class_means", "replay")
        )

    def __hash__(self) -> int:
        return hash((self.strategy, self.classes, tuple(self.priors.values())))

    def _file_fields(self) -> dict[str, Any]:
        """What a file holds of the prior."""
        return {
            "strategy": self.strategy,
            "classes": self.classes,
            "pairs": self.pairs,
            "priors": {
                str(place): self[pair]._file_fields() for place, pair in enumerate(self.pairs)
            },
            **part_fields(self),
        }

    @classmethod
    def _of_file_fields(cls, fields: dict[str, Any]) -> Self:
        """Prior from what a file holds, every number of it checked."""
        priors = {
            tuple(pair): TaskPrior._of_file_fields(fields["priors"][str(place)])
            for place, pair in enumerate(fields["pairs"])
        }
        if not priors:
            raise ValueError("pairs must be those of two classes or more; got none.")
        first = next(iter(priors.values()))
        n_tasks = sum(prior.n_tasks for prior in priors.values())
        parts = parts_of_file(fields, first.n_features, n_tasks)
        return cls(fields["strategy"], tuple(fields["classes"]), priors, **parts)


def _sorted_labels(labels: Iterable[Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(labels))
    except TypeError as reason:
        raise ValueError(
            f"Some labels are text and others are not: {list(labels)[:5]}. Use one kind."
        ) from reason


def pairs_of(classes: Sequence[Any], strategy: str) -> list[Pair]:
    """Pairs of classes to tell apart; two classes are one pair, whatever the strategy."""
    if strategy == "pairwise" or len(classes) == 2:
        return list(combinations(classes, 2))
    return [(None, name) for name in classes]

"""The paper's three studies: what it prints of them, and what they are run on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crossfade._typing import Array
from crossfade.blend import convex
from crossfade.datasets import check_recipe
from crossfade.fisher import FisherDiscriminant
from crossfade.risk import BlendLaw, least_risk
from crossfade.study._batch import Batch, Predictions
from crossfade.study._methods import METHODS, PAPER
from crossfade.study._paper_methods import GRID, as_printed
from crossfade.study._sources import Participant, Sources
from crossfade.study._validate import check_tasks
from crossfade.tasks import Task, TaskSet

if TYPE_CHECKING:
    import pandas as pd

Recordings = str | os.PathLike[str] | None

_COLUMNS = ["proportion", "classifier", "value"]
#: Names of the paper's classifiers that are not ours.
_NAMES = {"optimal": "paper"}


def published(reference: pd.DataFrame | None) -> pd.DataFrame:
    """Mean balanced accuracies (`proportion`, `classifier`, `value`) by our names of methods.

    `reference` has these columns for one study, and perhaps a `statistic`; no rows of None.
    """
    import pandas as pd

    if reference is None:
        return pd.DataFrame(columns=_COLUMNS)
    missing = [name for name in _COLUMNS if name not in reference]
    if missing:
        raise ValueError(
            f"reference must have the columns {', '.join(_COLUMNS)}; {', '.join(missing)} not "
            f"found among {', '.join(map(str, reference.columns))}."
        )
    if "statistic" in reference:
        reference = reference[reference["statistic"] == "mean_balanced_accuracy"]
    table = reference[_COLUMNS].replace({"classifier": _NAMES})
    twice = table.duplicated(["proportion", "classifier"])
    if twice.any():
        first = table[twice].iloc[0]
        raise ValueError(
            f"reference has several values of {first['classifier']} at {first['proportion']:g}. "
            "Keep those of one study and one statistic."
        )
    return table


def statistics_of(study: str) -> pd.DataFrame:
    """All numbers that the paper prints of "matb", "mental-math" or "wesad"."""
    from crossfade.simulate._repeats import reference

    table = reference("applications.csv")
    return table[table["study"] == study]


def printed(study: str) -> pd.DataFrame:
    """Mean balanced accuracies that the paper prints of one of its studies."""
    return published(statistics_of(study))


def balanced_runs(tasks: Iterable[Task], n_runs: int = 10, seed: int = 1) -> Array:
    """Unit directions (n_runs, n_tasks, d) of the sources, in the random stream of the authors.

    Of each task, one after the other, the larger class is cut to a run of as many consecutive
    windows as the smaller one has. Its start is drawn by NumPy's legacy generator among all but the
    last. Directions are by the pseudo-inverse, in raw units.
    """
    rng = np.random.RandomState(seed)
    participants = check_tasks(tasks)[1]
    return np.stack(
        [[_balanced_direction(one, rng) for one in participants] for _ in range(n_runs)]
    )


def _balanced_direction(one: Participant, rng: np.random.RandomState) -> Array:
    n_each = min(one.counts)
    kept = []
    for name, count in enumerate(one.counts):
        start = rng.randint(count - n_each) if count > n_each else 0
        kept.append(np.flatnonzero(one.label == name)[start : start + n_each])
    rows = np.concatenate(kept)
    return plain_direction(one.X[rows], one.label[rows])


def plain_direction(X: ArrayLike, y: ArrayLike) -> Array:
    """Unit direction (d,) by the pseudo-inverse of the plain covariance, in raw units."""
    plain = FisherDiscriminant(shrinkage=None, feature_scale=None)
    direction: Array = plain.fit(X, y).projection_
    return direction


class PaperStudy(NamedTuple):
    """One of the paper's studies; with a `name` that ends in "-like", on simulated data."""

    name: str
    title: str
    load: Callable[[], TaskSet]
    methods: Sequence[Any]  # names, and a record where a method is not that of its name
    printed: pd.DataFrame


def _run_printed(sources: Sources, batch: Batch, rng: np.random.Generator) -> Predictions:
    own, prior = as_printed(batch), sources.paper_prior
    law = BlendLaw(own, prior.mean_direction, prior.crowd.psi("printed")).within_reach()
    alpha = least_risk(law, GRID, "monte_carlo", 100, rng).alpha
    omega = convex(own, prior.crowd, alpha=alpha).omega
    return Predictions.of_two(batch.scores(omega, batch.midpoint()), alpha=alpha)


#: Algorithm 1 by the formulas of the text: another Psi than its authors'.
_AS_PRINTED = replace(METHODS["paper"], run=_run_printed, label="Paper's blend, as printed")
#: The paper's methods, and those of ours that are laid beside them.
_METHODS = (*PAPER, "target-shrunk", "convex", "posterior")


def _methods(recipe: str, *more: str) -> tuple[Any, ...]:
    """Methods of a study by a recipe."""
    names = (*_METHODS, *more)
    if check_recipe(recipe) == "authors":
        return names
    return tuple(_AS_PRINTED if name == "paper" else name for name in names)


def mental_math_study(recipe: str = "authors") -> PaperStudy:
    """Mental Math, which ships with the package."""
    from crossfade.datasets import load_mental_math

    title = "The Mental Math study of the paper"
    methods = _methods(recipe, "lda")
    table = printed("mental-math")
    return PaperStudy("mental-math", title, load_mental_math, methods, table)


def matb_study(recordings: Recordings, n_jobs: int, recipe: str = "authors") -> PaperStudy:
    """MATB, or where there are no recordings what stands in for them."""
    from crossfade.datasets import make_matb_like, read_matb

    methods, table = _methods(recipe), printed("matb")
    if recordings is None:
        title = "A simulated stand-in for MATB"
        return PaperStudy("matb-like", title, make_matb_like, methods, table)
    title = "The MATB study of the paper"
    load = partial(read_matb, recordings, n_jobs=n_jobs, recipe=recipe)
    return PaperStudy("matb", title, load, methods, table)


def wesad_study(recordings: Recordings, n_jobs: int, recipe: str = "authors") -> PaperStudy:
    """WESAD, or where there are no recordings what stands in for them."""
    from crossfade.datasets import read_wesad

    methods, table = _methods(recipe), printed("wesad")
    if recordings is None:
        title = "A simulated stand-in for WESAD"
        return PaperStudy("wesad-like", title, _wesad_like, methods, table)
    title = "The WESAD study of the paper"
    load = partial(read_wesad, recordings, n_jobs=n_jobs, recipe=recipe)
    return PaperStudy("wesad", title, load, methods, table)


def _wesad_like() -> TaskSet:
    """Participants like those of WESAD: as many, with as many windows and features.

    Noise is white. Half gaps have the mean 0.3 and the standard deviation 0.4 in each feature, so
    that accuracies are within 0.03 of the paper's. Directions agree more than there: their
    concentration is 2.6 where the paper has 1.45.
    """
    from crossfade.datasets import CLASS_NAMES

    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((14, 3))
    # So few would by chance be another crowd: their moments are made what they should be.
    left, _, right = np.linalg.svd(drawn - drawn.mean(0), full_matrices=False)
    half_gaps = 0.3 + 0.4 * np.sqrt(14.0) * left @ right
    y = np.repeat([0, 1], [76, 42])
    tasks = [
        Task(
            np.outer(2 * y - 1, half_gap) + rng.standard_normal((y.size, 3)),
            y,
            f"participant {place + 1}",
        )
        for place, half_gap in enumerate(half_gaps)
    ]
    return TaskSet(tasks, CLASS_NAMES)

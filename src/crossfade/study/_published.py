"""The paper's three studies: what it prints of them, and what they are run on."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crossfade.study._methods import PAPER
from crossfade.tasks._task import Task, TaskSet

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


class PaperStudy(NamedTuple):
    """One of the paper's studies; with a `name` that ends in "-like", on simulated data."""

    name: str
    title: str
    load: Callable[[], TaskSet]
    methods: Sequence[str]
    printed: pd.DataFrame
    classes: dict[int, str]  # what people call the labels


_RESTING = {0: "rest", 1: "mental arithmetic"}
_WORKLOAD = {0: "medium or high workload", 1: "no or low workload"}
_STRESS = {0: "baseline", 1: "stress"}
#: The paper's methods, and those of ours that are laid beside them.
_METHODS = (*PAPER, "target-shrunk", "convex", "posterior")


def mental_math_study() -> PaperStudy:
    """Mental Math, which ships with the package."""
    from crossfade.datasets import load_mental_math

    title = "The Mental Math study of the paper"
    methods = (*_METHODS, "lda")
    table = printed("mental-math")
    return PaperStudy("mental-math", title, load_mental_math, methods, table, _RESTING)


def matb_study(recordings: Recordings, n_jobs: int) -> PaperStudy:
    """MATB, or where there are no recordings what stands in for them."""
    from crossfade.datasets import make_matb_like, read_matb

    if recordings is None:
        title = "A simulated stand-in for MATB"
        return PaperStudy("matb-like", title, make_matb_like, _METHODS, printed("matb"), _WORKLOAD)
    title = "The MATB study of the paper"
    load = partial(read_matb, recordings, n_jobs=n_jobs)
    return PaperStudy("matb", title, load, _METHODS, printed("matb"), _WORKLOAD)


def wesad_study(recordings: Recordings, n_jobs: int) -> PaperStudy:
    """WESAD, or where there are no recordings what stands in for them."""
    from crossfade.datasets import read_wesad

    if recordings is None:
        title = "A simulated stand-in for WESAD"
        return PaperStudy("wesad-like", title, _wesad_like, _METHODS, printed("wesad"), _STRESS)
    title = "The WESAD study of the paper"
    load = partial(read_wesad, recordings, n_jobs=n_jobs)
    return PaperStudy("wesad", title, load, _METHODS, printed("wesad"), _STRESS)


def _wesad_like() -> TaskSet:
    """Participants like those of WESAD: as many, with as many windows and features.

    Noise is white. Half gaps have the mean 0.3 and the standard deviation 0.4 in each feature, so
    that accuracies are within 0.03 of the paper's. Directions agree more than there: their
    concentration is 2.6 where the paper has 1.45.
    """
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((14, 3))
    # So few would by chance be another crowd: their moments are made what they should be.
    left, _, right = np.linalg.svd(drawn - drawn.mean(0), full_matrices=False)
    half_gaps = 0.3 + 0.4 * np.sqrt(14.0) * left @ right
    y = np.repeat([0, 1], [76, 42])
    return TaskSet(
        Task(
            np.outer(2 * y - 1, half_gap) + rng.standard_normal((y.size, 3)),
            y,
            f"participant {place + 1}",
        )
        for place, half_gap in enumerate(half_gaps)
    )

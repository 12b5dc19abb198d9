"""The paper's figures as tables, one function each; ``crossfade reproduce`` prints and draws them.

======  =====================  =======================================================
Figure  function               shows
======  =====================  =======================================================
1       :func:`figure1`        what a convex blend of two directions can be
2       :func:`figure2`        predicted against true accuracy
3       :func:`figure3`        the effect of n, kappa and d
4       :func:`matb`           the study of mental load; simulated without recordings
5       :func:`mental_math`    the study of mental arithmetic
6       :func:`wesad`          the study of stress; simulated without recordings
7       :func:`vectors`        how the directions of people agree
8       :func:`effect_of_b`    the error of Algorithm 1's alpha by its number of draws
======  =====================  =======================================================

References
----------
Helm et al., "Approximately Optimal Domain Adaptation with Fisher's Linear Discriminant",
Mathematics 12, 746 (2024), doi 10.3390/math12050746.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.base import clone

from crossfade.fisher._discriminant import FisherDiscriminant
from crossfade.prior._mixture import MixturePrior
from crossfade.prior._task_prior import TaskPrior
from crossfade.simulate import draw_directions, figure2, figure3
from crossfade.study._effect_of_b import effect_of_b as _effect_of_b
from crossfade.study._published import (
    PaperStudy,
    matb_study,
    mental_math_study,
    statistics_of,
    wesad_study,
)
from crossfade.study._study import CalibrationStudy
from crossfade.study.statistics import summarise

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Vectors",
    "effect_of_b",
    "figure1",
    "figure2",
    "figure3",
    "matb",
    "mental_math",
    "vectors",
    "wesad",
]

Folder = str | os.PathLike[str]
Progress = Callable[[int, int], None]


def figure1(*, n_sources: int = 10, random_state: int | None = 0) -> pd.DataFrame:
    """A target, its sources and their mean direction on the sphere.

    :func:`crossfade.plots.blend_geometry` draws the target and the sources.

    Parameters
    ----------
    n_sources : int, default=10
        How many sources.
    random_state : int or None, default=0
        Seed.

    Returns
    -------
    DataFrame
        `x`, `y` and `z` of the unit direction of each `role`: "target", "average-source" and
        "source". All but the mean are drawn with the paper's concentration of 10.
    """
    import pandas as pd

    drawn = draw_directions(n_sources + 1, 3, 10.0, random_state=random_state)
    mean = TaskPrior.from_projections(drawn[1:]).mean_direction
    table = pd.DataFrame(np.vstack([drawn[0], mean, drawn[1:]]), columns=["x", "y", "z"])
    table.insert(0, "role", ["target", "average-source", *["source"] * n_sources])
    return table


def mental_math(
    *,
    n_splits: int = 100,
    n_jobs: int = 1,
    random_state: int = 0,
    folder: Folder | None = None,
    on_progress: Progress | None = None,
) -> pd.DataFrame:
    """The paper's study of 36 people at rest and at mental arithmetic, beside its numbers.

    Parameters
    ----------
    n_splits : int, default=100
        Splits of each participant and budget.
    n_jobs : int, default=1
        Processes; the result does not depend on them.
    random_state : int, default=0
        Seed.
    folder : str, path-like or None, default=None
        Where to keep what is finished, as :meth:`crossfade.CalibrationStudy.run` does.
    on_progress : callable or None, default=None
        Called with the number of finished parts and their total.

    Returns
    -------
    DataFrame
        For each `method` and `budget` what :func:`crossfade.study.statistics.summarise` returns;
        `published`, the mean balanced accuracy that the paper prints, NaN where it prints none; and
        `difference`, ours minus that.

    Examples
    --------
    >>> from crossfade.study import reproduce
    >>> table = reproduce.mental_math(n_splits=1).set_index(["method", "budget"])
    >>> float(table.loc[("paper", 0.05), "published"])
    0.6533
    """
    return _beside(mental_math_study(), n_splits, n_jobs, random_state, folder, on_progress)


def matb(
    recordings: Folder | None = None,
    *,
    n_splits: int = 100,
    n_jobs: int = 1,
    random_state: int = 0,
    folder: Folder | None = None,
    on_progress: Progress | None = None,
) -> pd.DataFrame:
    """The paper's study of mental load, beside its numbers.

    Parameters
    ----------
    recordings : str, path-like or None, default=None
        Folder of the MATB recordings, which are not public. None takes a simulated stand-in of 100
        sessions and 24 features, made to come near the paper's values.
    n_splits, n_jobs, random_state, folder, on_progress : optional
        As in :func:`mental_math`.

    Returns
    -------
    DataFrame
        As of :func:`mental_math`.
    """
    study = matb_study(recordings, n_jobs)
    return _beside(study, n_splits, n_jobs, random_state, folder, on_progress)


def wesad(
    recordings: Folder | None = None,
    *,
    n_splits: int = 100,
    n_jobs: int = 1,
    random_state: int = 0,
    folder: Folder | None = None,
    on_progress: Progress | None = None,
) -> pd.DataFrame:
    """The paper's study of stress, beside its numbers.

    Parameters
    ----------
    recordings : str, path-like or None, default=None
        Folder of the WESAD recordings, which cannot be shipped. None takes a simulated stand-in of
        14 participants and 3 features, made to come near the paper's values.
    n_splits, n_jobs, random_state, folder, on_progress : optional
        As in :func:`mental_math`.

    Returns
    -------
    DataFrame
        As of :func:`mental_math`.
    """
    study = wesad_study(recordings, n_jobs)
    return _beside(study, n_splits, n_jobs, random_state, folder, on_progress)


def _beside(
    study: PaperStudy,
    n_splits: int,
    n_jobs: int,
    random_state: int,
    folder: Folder | None,
    on_progress: Progress | None,
) -> pd.DataFrame:
    plan = CalibrationStudy(
        study.load(), methods=study.methods, n_splits=n_splits, random_state=random_state
    )
    result = plan.run(n_jobs=n_jobs, folder=folder, on_progress=on_progress)
    theirs = study.printed.set_axis(["budget", "method", "published"], axis=1)
    table = summarise(result.rows).merge(theirs, how="left", on=["method", "budget"])
    return table.assign(difference=table["mean"] - table["published"])


class Vectors(NamedTuple):
    """Directions of the tasks of several studies.

    Attributes
    ----------
    summary : DataFrame
        For each `study` and `recipe`, "authors" (pseudo-inverse, raw units) or "ours" (shrunk and
        scaled): `n_tasks`, the concentration `kappa` and the `published` one, and the `shares` of
        the components of a mixture of von Mises-Fisher distributions, as many as
        :class:`crossfade.MixturePrior` finds.
    directions : DataFrame
        For each `study`, `recipe` and `task` its unit direction, `w1`, `w2` and so on; NaN beyond
        the features of its study.
    """

    summary: pd.DataFrame
    directions: pd.DataFrame


def vectors(
    *,
    matb: Folder | None = None,
    wesad: Folder | None = None,
    n_jobs: int = 1,
    on_progress: Progress | None = None,
) -> Vectors:
    """How the directions of people agree in the paper's three studies, all windows used.

    :func:`crossfade.plots.embed_directions` and :func:`crossfade.plots.projection_vectors` draw
    them.

    Parameters
    ----------
    matb, wesad : str, path-like or None, default=None
        Folders of recordings; None takes simulated stand-ins.
    n_jobs : int, default=1
        Processes that read recordings.
    on_progress : callable or None, default=None
        Called with the number of finished studies and their total.

    Returns
    -------
    Vectors
        Two data frames.
    """
    import pandas as pd

    studies = {
        "mental-math": mental_math_study(),
        "matb": matb_study(matb, n_jobs),
        "wesad": wesad_study(wesad, n_jobs),
    }
    lines, parts = [], []
    for done, (key, study) in enumerate(studies.items()):
        tasks = study.load()
        plain = FisherDiscriminant(shrinkage=None, feature_scale=None)
        theirs = [clone(plain).fit(task.X, task.y).projection_ for task in tasks]
        numbers = statistics_of(key).set_index("statistic")["value"]
        for recipe, prior in (
            ("authors", TaskPrior.from_projections(theirs, keep_directions=True)),
            ("ours", TaskPrior.from_tasks(tasks, keep_directions=True)),
        ):
            lines.append(
                {
                    "study": study.name,
                    "recipe": recipe,
                    "n_tasks": prior.n_tasks,
                    "kappa": prior.concentration,
                    "published": numbers["kappa"],
                    "shares": tuple(MixturePrior.from_prior(prior).shares),
                }
            )
            table = pd.DataFrame(prior.directions).rename(columns=lambda place: f"w{place + 1}")
            table.insert(0, "task", [task.name for task in tasks])
            parts.append(table.assign(study=study.name, recipe=recipe))
        if on_progress is not None:
            on_progress(done + 1, len(studies))
    directions = pd.concat(parts, ignore_index=True)
    first = ["study", "recipe", "task"]
    return Vectors(pd.DataFrame(lines), directions[[*first, *directions.columns.drop(first)]])


def effect_of_b(
    *,
    n_splits: int = 100,
    n_repeats: int = 30,
    random_state: int = 0,
    on_progress: Progress | None = None,
) -> pd.DataFrame:
    """Error of Algorithm 1's alpha by its number of draws, for the paper's participant.

    Parameters
    ----------
    n_splits : int, default=100
        Training sets of each proportion.
    n_repeats : int, default=30
        How often Algorithm 1 is run on each.
    random_state : int, default=0
        Seed.
    on_progress : callable or None, default=None
        Called with the number of finished training sets and their total.

    Returns
    -------
    DataFrame
        What :func:`crossfade.study.effect_of_b` returns for subject 6 of Mental Math.
    """
    return _effect_of_b(
        mental_math_study().load(),
        task="Subject06",
        n_splits=n_splits,
        n_repeats=n_repeats,
        random_state=random_state,
        on_progress=on_progress,
    )

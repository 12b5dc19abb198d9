"""The paper's figures as tables, one function each; ``crossfade reproduce`` prints and draws them.

What the authors ran is not what they print. Each function therefore has a `recipe`: "printed", the
default, is the paper's text, formula by formula, its slips included; "authors" is what its authors
ran, as found out from their published figures and results: departures from the text were tried
until the figure came out. Figure 1 is a sketch and needs none.
This table is the one place that says what the two mean:

====== ===================== ====================================== ===============================
Figure function              "printed"                              "authors"
====== ===================== ====================================== ===============================
1      :func:`figure1`       a target, its sources and all blends   the same
2      :func:`figure2`       target's covariance by equation 6,     target's covariance I / n; Psi
                             with its minus; Psi as printed, a      without the root, over R squared
                             square root; 100 draws                 (equation 10); target vector as
                                                                    long as it is; true accuracy of
                                                                    the best alpha
3      :func:`figure3`       Algorithm 1 by these formulas; kappa   target vector as long as it is,
                             with 20 samples                        covariance Sigma / n, the same
                                                                    Psi; kappa with 50 samples
4      :func:`matb`          Psi as printed; features by the text   Psi as above; features as run,
                                                                    :func:`crossfade.datasets.read_matb`
5      :func:`mental_math`   Psi as printed                         Psi as above
6      :func:`wesad`         Psi as printed; features by the text   Psi as above; features as run,
                                                                    :func:`crossfade.datasets.read_wesad`
7      :func:`vectors`       directions of all windows              directions of the last of ten
                                                                    balanced runs after seed 1;
                                                                    kappa is the mean of the ten
8      :func:`effect_of_b`   windows centred, half gap of one;      windows as they are; the first
                             Psi as printed                         balanced runs after seed 1; Psi
                                                                    as above
====== ===================== ====================================== ===============================

In the studies, sources are balanced by either recipe: the larger class is cut to a random run of
consecutive windows. Clusters of Figure 7 are :func:`crossfade.plots.embed_directions`', which has
the same two recipes.

References
----------
Helm et al., "Approximately Optimal Domain Adaptation with Fisher's Linear Discriminant",
Mathematics 12, 746 (2024), doi 10.3390/math12050746.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crossfade._validate import check_choice, check_integer
from crossfade.datasets import check_recipe
from crossfade.prior import TaskPrior
from crossfade.simulate import draw_directions
from crossfade.simulate import figure2 as _figure2
from crossfade.simulate import figure3 as _figure3
from crossfade.study._effect_of_b import effect_of_b as _effect_of_b
from crossfade.study._published import (
    PaperStudy,
    balanced_runs,
    matb_study,
    mental_math_study,
    plain_direction,
    statistics_of,
    wesad_study,
)
from crossfade.study._study import CalibrationStudy
from crossfade.study.statistics import summarise
from crossfade.tasks import TaskSet

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


def figure1(
    *, n_sources: int = 10, n_samples: int = 0, random_state: int | None = 0
) -> pd.DataFrame:
    """A target, its sources and their mean direction on the sphere; perhaps the target's samples.

    :func:`crossfade.plots.blend_geometry` draws them.

    Parameters
    ----------
    n_sources : int, default=10
        How many sources.
    n_samples : int, default=0
        Samples of the target, half of each class, from which its direction is then learnt; 0 for
        its true direction, without samples.
    random_state : int or None, default=0
        Seed.

    Returns
    -------
    DataFrame
        `x`, `y` and `z` of the unit direction of each `role`: "target", "average-source" and
        "source"; and of each "sample". True directions are drawn with the paper's concentration of
        10; samples have the paper's identity for their covariance.
    """
    import pandas as pd

    n_samples = check_integer("n_samples", n_samples, 0)
    rng = np.random.default_rng(random_state)
    drawn = draw_directions(n_sources + 1, 3, 10.0, random_state=rng)
    target, samples = drawn[0], np.empty((0, 3))
    if n_samples:
        label = np.arange(check_integer("n_samples", n_samples, 6)) % 2
        samples = rng.standard_normal((n_samples, 3)) + np.outer(2 * label - 1, target)
        target = plain_direction(samples, label)
    mean = TaskPrior.from_projections(drawn[1:]).mean_direction
    points = np.vstack([target, mean, drawn[1:], samples])
    table = pd.DataFrame(points, columns=["x", "y", "z"])
    roles = ["target", "average-source", *["source"] * n_sources, *["sample"] * n_samples]
    table.insert(0, "role", roles)
    return table


def figure2(*, recipe: str = "printed", **options: Any) -> pd.DataFrame:
    """Predicted against true accuracy, covariance and half gap known.

    Parameters
    ----------
    recipe : {"printed", "authors"}, default="printed"
        By which covariances accuracies are predicted, see the table above.
    **options : object
        What :func:`crossfade.simulate.figure2` takes besides, as `n_repeats` and `n_jobs`; by its
        own recipe it has the right covariances.

    Returns
    -------
    DataFrame
        As of :func:`crossfade.simulate.figure2`: `predicted` and `true` beside the paper's
        `analytical` and `empirical`.
    """
    return _figure2(recipe=check_recipe(recipe), **options)


def figure3(*, recipe: str = "printed", **options: Any) -> pd.DataFrame:
    """The effect of n, kappa and d on the paper's three classifiers.

    Parameters
    ----------
    recipe : {"printed", "authors"}, default="printed"
        How alpha is chosen, see the table above.
    **options : object
        What :func:`crossfade.simulate.figure3` takes besides, as `n_repeats` and `n_jobs`; by its
        own recipe it has other rules, too.

    Returns
    -------
    DataFrame
        As of :func:`crossfade.simulate.figure3`: `accuracy` and `alpha` beside the paper's
        `reference_accuracy` and `reference_alpha`.
    """
    return _figure3(recipe=check_recipe(recipe), **options)


def mental_math(
    *,
    n_splits: int = 100,
    n_jobs: int = 1,
    random_state: int = 0,
    folder: Folder | None = None,
    on_progress: Progress | None = None,
    recipe: str = "printed",
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
    recipe : {"printed", "authors"}, default="printed"
        By which formulas "paper", Algorithm 1, chooses alpha, see the table above. Other methods
        do not depend on it.

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
    return _beside(mental_math_study(recipe), n_splits, n_jobs, random_state, folder, on_progress)


def matb(
    recordings: Folder | None = None,
    *,
    n_splits: int = 100,
    n_jobs: int = 1,
    random_state: int = 0,
    folder: Folder | None = None,
    on_progress: Progress | None = None,
    recipe: str = "printed",
) -> pd.DataFrame:
    """The paper's study of mental load, beside its numbers.

    Parameters
    ----------
    recordings : str, path-like or None, default=None
        Folder of the MATB recordings, which are not public. None takes a simulated stand-in of 100
        sessions and 24 features, made to come near the paper's values.
    n_splits, n_jobs, random_state, folder, on_progress : optional
        As in :func:`mental_math`.
    recipe : {"printed", "authors"}, default="printed"
        By which formulas, and with recordings by which features, see the table above.

    Returns
    -------
    DataFrame
        As of :func:`mental_math`.
    """
    study = matb_study(recordings, n_jobs, recipe)
    return _beside(study, n_splits, n_jobs, random_state, folder, on_progress)


def wesad(
    recordings: Folder | None = None,
    *,
    n_splits: int = 100,
    n_jobs: int = 1,
    random_state: int = 0,
    folder: Folder | None = None,
    on_progress: Progress | None = None,
    recipe: str = "printed",
) -> pd.DataFrame:
    """The paper's study of stress, beside its numbers.

    Parameters
    ----------
    recordings : str, path-like or None, default=None
        Folder of the WESAD recordings, which cannot be shipped. None takes a simulated stand-in of
        14 participants and 3 features, made to come near the paper's values.
    n_splits, n_jobs, random_state, folder, on_progress : optional
        As in :func:`mental_math`.
    recipe : {"printed", "authors"}, default="printed"
        By which formulas, and with recordings by which features, see the table above.

    Returns
    -------
    DataFrame
        As of :func:`mental_math`.
    """
    study = wesad_study(recordings, n_jobs, recipe)
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
    table = summarise(result.means).merge(theirs, how="left", on=["method", "budget"])
    return table.assign(difference=table["mean"] - table["published"])


class Vectors(NamedTuple):
    """Directions of the tasks of several studies.

    Attributes
    ----------
    summary : DataFrame
        For each `study` and `recipe`, the paper's one that was asked for (pseudo-inverse, raw
        units) and "ours" (shrunk and scaled): `n_tasks`, the concentration `kappa` and the
        `published` one.
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
    recipe: str = "printed",
    studies: Sequence[str] = ("mental-math", "matb", "wesad"),
) -> Vectors:
    """How the directions of people agree in the paper's three studies.

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
    recipe : {"printed", "authors"}, default="printed"
        Directions of all windows, as the text has it; or those of the last of ten balanced runs
        after the authors' seed, with the mean of the ten for kappa: 2.99349873 for Mental Math.
    studies : sequence of {"mental-math", "matb", "wesad"}, default=all
        Which studies.

    Returns
    -------
    Vectors
        Two data frames.
    """
    import pandas as pd

    known: dict[str, Callable[..., PaperStudy]] = {
        "mental-math": mental_math_study,
        "matb": partial(matb_study, matb, n_jobs),
        "wesad": partial(wesad_study, wesad, n_jobs),
    }
    for key in studies:
        check_choice("studies", key, tuple(known))
    lines, parts = [], []
    for done, key in enumerate(studies):
        study = known[key](recipe=recipe)
        tasks = study.load()
        theirs, kappa = _as_in_the_paper(tasks, recipe)
        ours = TaskPrior.from_tasks(tasks, keep_directions=True)
        numbers = statistics_of(key).set_index("statistic")["value"]
        for name, prior, concentration in (
            (recipe, theirs, kappa),
            ("ours", ours, ours.concentration),
        ):
            lines.append(
                {
                    "study": study.name,
                    "recipe": name,
                    "n_tasks": prior.n_tasks,
                    "kappa": concentration,
                    "published": numbers["kappa"],
                }
            )
            table = pd.DataFrame(prior.directions).rename(columns=lambda place: f"w{place + 1}")
            table.insert(0, "task", [task.name for task in tasks])
            parts.append(table.assign(study=study.name, recipe=name))
        if on_progress is not None:
            on_progress(done + 1, len(studies))
    directions = pd.concat(parts, ignore_index=True)
    first = ["study", "recipe", "task"]
    return Vectors(pd.DataFrame(lines), directions[[*first, *directions.columns.drop(first)]])


def _as_in_the_paper(tasks: TaskSet, recipe: str) -> tuple[TaskPrior, float]:
    """Prior that keeps the directions, and the concentration that the paper has of them."""
    if recipe == "authors":
        runs = balanced_runs(tasks)
        kappas = [TaskPrior.from_projections(run).concentration for run in runs]
        return TaskPrior.from_projections(runs[-1], keep_directions=True), float(np.mean(kappas))
    whole = [plain_direction(task.X, task.y) for task in tasks]
    prior = TaskPrior.from_projections(whole, keep_directions=True)
    return prior, prior.concentration


def effect_of_b(
    *,
    n_splits: int = 100,
    n_repeats: int = 30,
    random_state: int = 0,
    on_progress: Progress | None = None,
    recipe: str = "printed",
    n_jobs: int = 1,
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
    recipe : {"printed", "authors"}, default="printed"
        On centred and scaled windows, or on raw ones, see the table above.
    n_jobs : int, default=1
        Processes; the result does not depend on them.

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
        recipe=recipe,
        n_jobs=n_jobs,
    )

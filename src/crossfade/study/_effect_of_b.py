"""How far Algorithm 1's alpha depends on its number of draws (Figure 8 of the paper).

Algorithm 1 draws B directions at each alpha, so that its alpha is a random number. The minimum that
it looks for can be had without draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crossfade._validate import check_integer
from crossfade.datasets import check_recipe
from crossfade.fisher import Direction, direction_of
from crossfade.prior import TaskPrior
from crossfade.risk import BlendLaw, least_risk
from crossfade.study._batch import Batch
from crossfade.study._budgets import windows_of_each_class
from crossfade.study._evaluate import threads
from crossfade.study._paper_methods import GRID, as_printed
from crossfade.study._published import balanced_runs
from crossfade.study._sources import Participant, Sources
from crossfade.study._splits import draw_splits, generator_for
from crossfade.study._study import CalibrationStudy
from crossfade.study._validate import check_budgets, check_sizes, check_tasks
from crossfade.study.statistics import by_task
from crossfade.tasks import Task, TaskSet

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

#: The paper's "unrealistic" number of draws, and its proportion for the choice of a session.
_MANY_DRAWS, _TYPICAL = 10_000, 0.1


def effect_of_b(
    tasks: Iterable[Task],
    *,
    task: str | None = None,
    proportions: Sequence[float] = (0.05, 0.1, 0.2),
    n_draws: Sequence[int] = (5, 10, 20, 50, 100, 500, 1000),
    n_splits: int = 100,
    n_repeats: int = 30,
    random_state: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
    recipe: str = "printed",
    n_jobs: int = 1,
) -> pd.DataFrame:
    """Mean absolute error of the alpha of Algorithm 1 by its number of draws.

    For each of many training sets, alpha from B draws, several times, is compared with alpha from
    10,000 draws. The recipe of the paper's text: pseudo-inverse, training windows centred and
    scaled to a half gap of one, alphas 0, 0.1, ..., 1. Its Figure 8 was made on windows that were
    neither centred nor scaled, and shows up to three times that error.

    Parameters
    ----------
    tasks : TaskSet or iterable of Task
        All participants; those of other groups are the sources.
    task : str or None, default=None
        Name of the target. By default the one whose balanced accuracy under Algorithm 1, with a
        tenth labelled, is nearest the median over tasks, as in the paper.
    proportions : sequence of float, default=(0.05, 0.1, 0.2)
        What is labelled, as a share of the smaller class.
    n_draws : sequence of int, default=(5, 10, 20, 50, 100, 500, 1000)
        Numbers B of draws at each alpha.
    n_splits : int, default=100
        Training sets.
    n_repeats : int, default=30
        How often Algorithm 1 is run on each.
    random_state : int, default=0
        Seed.
    on_progress : callable or None, default=None
        Called with the number of finished training sets and their total.
    recipe : {"printed", "authors"}, default="printed"
        By the text, or as the figure was made: with the mean of the second class, raw, in the place
        of the half gap, the authors' form of Psi, and the first balanced runs of the sources after
        their seed, on which its level depends.
    n_jobs : int, default=1
        Processes; the result does not depend on them.

    Returns
    -------
    DataFrame
        For each `proportion` and `n_draws`: the `task`; `error`, the mean absolute difference to
        alpha from 10,000 draws, and `error_se`, its standard error over training sets; `to_exact`,
        the same difference to the minimum found without draws; `reference`, what the paper's
        Figure 8 shows for subject 6 of Mental Math. The last row of a proportion is for the 10,000
        draws themselves, with NaN for the error.
    """
    import pandas as pd

    from crossfade.simulate._repeats import reference

    check_recipe(recipe)
    tasks = TaskSet(tasks)
    classes, participants = check_tasks(tasks)
    if len(classes) > 2:
        raise ValueError(
            f"Algorithm 1 is about two classes; the tasks have {len(classes)}, "
            f"{classes.tolist()[:5]}. Keep the windows of two."
        )
    seed = check_integer("random_state", random_state, 0)
    n_splits = check_integer("n_splits", n_splits, 1)
    n_repeats = check_integer("n_repeats", n_repeats, 1)
    n_jobs = check_integer("n_jobs", n_jobs, 1)
    counts = [check_integer("n_draws", count, 1) for count in n_draws]
    shares = check_budgets(proportions)
    if not all(isinstance(share, float) for share in shares):
        raise ValueError(
            f"proportions must be above 0 and below 1, as 0.1 is; got {proportions!r}."
        )
    target = _target(tasks, participants, task, n_splits, seed)
    check_sizes([target], shares)
    if recipe == "authors":
        others = [one.group != target.group for one in participants]
        prior = TaskPrior.from_projections(balanced_runs(tasks, n_runs=1)[0, others])
    else:
        sources = Sources.of(participants, classes, seed, keep_windows=False)
        prior = sources.without(target.group).paper_prior
    # Its forms are called as the recipes are.
    psi = prior.crowd.psi(recipe)
    lines: list[dict[str, Any]] = []
    for done, share in enumerate(shares):
        n_each = windows_of_each_class(share, target.counts)
        rng = generator_for(seed, target.name, share, "splits")
        splits = draw_splits(target.label, n_each, n_splits, "consecutive", rng)
        own = as_printed(Batch(target.X, classes, splits))
        law = BlendLaw(_unscaled(own) if recipe == "authors" else own, prior.mean_direction, psi)
        exact = least_risk(law, GRID).alpha
        worlds = zip(*_visible(law), exact.tolist(), strict=True)
        pieces = [
            joblib.delayed(_errors)(
                *world,
                counts,
                n_repeats,
                generator_for(seed, target.name, share, "effect of B", place),
            )
            for place, world in enumerate(worlds)
        ]
        # Errors against many draws and against none, by training set and number of draws.
        errors = np.empty((2, n_splits, len(counts) + 1))
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator", max_nbytes=None)
        for place, found in enumerate(parallel(pieces)):
            errors[:, place] = found
            if on_progress is not None:
                on_progress(done * n_splits + place + 1, len(shares) * n_splits)
        spread = errors[0].std(0, ddof=1) if n_splits > 1 else np.full(len(counts) + 1, np.nan)
        lines += [
            {
                "task": target.name,
                "proportion": share,
                "n_draws": count,
                "error": errors[0, :, column].mean(),
                "error_se": spread[column] / np.sqrt(n_splits),
                "to_exact": errors[1, :, column].mean(),
            }
            for column, count in enumerate([*counts, _MANY_DRAWS])
        ]
    printed = reference("figure8_effect_of_B.csv").set_axis(
        ["proportion", "n_draws", "reference"], axis=1
    )
    return pd.DataFrame(lines).merge(printed, how="left", on=["proportion", "n_draws"])


def _target(
    tasks: TaskSet, participants: list[Participant], task: str | None, n_splits: int, seed: int
) -> Participant:
    named = {one.name: one for one in participants}
    if task is None:
        study = CalibrationStudy(
            tasks, methods=["paper"], budgets=[_TYPICAL], n_splits=n_splits, random_state=seed
        )
        means = by_task(study.run().rows).set_index("task")["balanced_accuracy"]
        task = str((means - means.median()).abs().idxmin())
    if task not in named:
        words = ", ".join(repr(name) for name in named)
        raise ValueError(f"There is no task {task!r} with windows of both classes. Take {words}.")
    return named[task]


def _unscaled(own: Direction) -> Direction:
    """The same of windows that are neither centred nor scaled (equation 68)."""
    nu = own.means[..., 1, :]
    raw = direction_of(own.sigma, nu, own.counts, own.shrinkage, "minus", own.dof)
    # The form is for a half gap of one.
    square = np.vecdot(nu, nu)
    return raw._replace(noise=raw.noise / square, radial=raw.radial / square)


def _errors(
    means: Array,
    roots: Array,
    exact: float,
    counts: Sequence[int],
    n_repeats: int,
    rng: np.random.Generator,
) -> Array:
    """Errors (2, n_counts + 1) of alpha on one training set: to many draws, and to the exact one.

    The last column is for the many draws themselves.
    """
    errors = np.empty((2, len(counts) + 1))
    # The matrices are small: threads would only wait for each other.
    with threads().limit(limits=1):
        [many] = _drawn_alphas(means, roots, _MANY_DRAWS, 1, rng)
        errors[:, -1] = np.nan, abs(many - exact)
        for column, count in enumerate(counts):
            found = _drawn_alphas(means, roots, count, n_repeats, rng)
            errors[:, column] = np.abs(found - many).mean(), np.abs(found - exact).mean()
    return errors


def _visible(law: BlendLaw) -> tuple[Array, Array]:
    """Mean and root of the covariance of what the risk depends on, for each target and alpha.

    The risk of a direction w is Phi(-w'nu / |S^(1/2) w|), so that it is enough to draw w'nu, which
    comes last, and S^(1/2) w in the eigenvectors of S.
    """
    person, sigma = law.person, law.person.sigma
    seen = np.concatenate(
        [sigma.basis * np.sqrt(sigma.values)[..., None, :], person.nu[..., None]], axis=-1
    )
    omega = person.omega[..., None]
    own = person.noise[:, None, None] * sigma.inverse().dense()
    own = own + person.radial[:, None, None] * (omega @ omega.mT)
    crowd = np.asarray(law.psi.identity) * np.eye(law.mu.size)
    alphas = GRID[:, None, None]
    covariance = alphas**2 * own[:, None] + (1.0 - alphas) ** 2 * crowd
    values, vectors = np.linalg.eigh(seen.mT[:, None] @ covariance @ seen[:, None])
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    blends = GRID[:, None] * person.omega[:, None, :] + (1.0 - GRID)[:, None] * law.mu
    means: Array = blends @ seen
    return means, roots


def _drawn_alphas(
    means: Array, roots: Array, n_draws: int, n_repeats: int, rng: np.random.Generator
) -> Array:
    """Alphas that so many runs of Algorithm 1 choose."""
    risks = np.empty((GRID.size, n_repeats))
    for place, (mean, root) in enumerate(zip(means, roots, strict=True)):
        drawn = rng.standard_normal((n_repeats * n_draws, mean.size)) @ root.T + mean
        variance = np.vecdot(drawn[:, :-1], drawn[:, :-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            score = drawn[:, -1] / np.sqrt(variance)
        score = np.where(np.isnan(score), 0.0, score)
        risks[place] = ndtr(-score).reshape(n_repeats, n_draws).mean(1)
    # Between equals the last, the person's own, as elsewhere.
    chosen: Array = GRID[GRID.size - 1 - risks[::-1].argmin(0)]
    return chosen

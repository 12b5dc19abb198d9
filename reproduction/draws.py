"""Figure 8: how far the alpha of Algorithm 1 depends on its number of draws.

Algorithm 1 draws B directions at each alpha, so its alpha is random. The minimum that it looks for
can be computed without draws.
"""

import joblib
import numpy as np
import pandas as pd

from crossfade import load_mental_math
from crossfade.risk import expected_risk
from reproduction.algorithm import (
    GRID,
    Array,
    Crowd,
    Target,
    blends,
    crowd_of,
    drawn_risks,
    least,
    moments_of,
    raw_target,
    target_of,
)
from reproduction.applications import balanced_runs, draw_splits
from reproduction.published import reference

#: The paper's participant, proportions, numbers of draws, and its "unrealistic" number of them.
PERSON = "Subject06"
BUDGETS = (0.05, 0.1, 0.2)
COUNTS = (5, 10, 20, 50, 100, 500, 1000)
_MANY = 10_000


def effect_of_b(
    recipe: str = "printed",
    n_splits: int = 100,
    n_repeats: int = 30,
    n_jobs: int = 1,
    seed: int = 0,
) -> pd.DataFrame:
    """Mean absolute error of alpha after B draws, beside the paper's value, `reference`.

    On each of `n_splits` training sets, alpha from B draws, `n_repeats` times, is compared with
    alpha from 10,000 draws. `to_exact` is the same difference to the exact minimum. The recipe
    "authors" takes windows as they are: the mean of the second class stands for half the gap.
    """
    tasks = load_mental_math()
    names = [task.name for task in tasks]
    [directions] = balanced_runs(tasks, n_runs=1)
    crowd = crowd_of(np.delete(directions, names.index(PERSON), axis=0))
    task = tasks[names.index(PERSON)]
    lines = []
    for share, own in zip(BUDGETS, np.random.SeedSequence(seed).spawn(3), strict=True):
        splits = draw_splits(task.y, share, n_splits, np.random.default_rng(own))
        targets = targets_of(task.X[splits.rows], splits.label, recipe)
        exact = GRID[least(exact_risks(targets, crowd, recipe))]
        pieces = zip(range(n_splits), own.spawn(n_splits), strict=True)
        errors = joblib.Parallel(n_jobs=n_jobs)(
            joblib.delayed(_errors)(
                Target(*(part[place] for part in targets)),
                crowd.mu,
                crowd.psi(recipe),
                exact[place],
                n_repeats,
                piece,
            )
            for place, piece in pieces
        )
        for count, row in zip((*COUNTS, _MANY), np.mean(errors, axis=0), strict=True):
            cell = {"proportion": share, "n_draws": count}
            lines.append(cell | {"error": row[0], "to_exact": row[1]})
    paper = reference("figure8_effect_of_B").set_axis(
        ["proportion", "n_draws", "reference"], axis=1
    )
    return pd.DataFrame(lines).merge(paper, how="left", on=["proportion", "n_draws"])


def targets_of(X: Array, y: np.ndarray, recipe: str) -> Target:
    """Targets of training sets X (n_splits, n, d), by a recipe."""
    moments = moments_of(X, y)
    if recipe == "authors":
        return raw_target(moments.means[..., 1, :], moments.sigma, y.size)
    return target_of(moments.nu, moments.sigma, y.size)


def exact_risks(targets: Target, crowd: Crowd, recipe: str) -> Array:
    """Expected risks (n_splits, n_alphas), without draws."""
    weight = GRID[:, None, None]
    crowd_noise = crowd.psi(recipe) * np.eye(crowd.mu.size)
    covariance = weight**2 * targets.covariance[:, None] + (1.0 - weight) ** 2 * crowd_noise
    found: Array = expected_risk(
        blends(targets.omega, crowd.mu),
        covariance,
        nu=targets.nu[:, None],
        sigma=targets.sigma[:, None],
    ).risk
    return found


def _errors(
    target: Target,
    mu: Array,
    psi: Array,
    exact: float,
    n_repeats: int,
    seed: np.random.SeedSequence,
) -> Array:
    """Errors (n_counts + 1, 2) of alpha on one training set: to many draws, and to none."""
    rng = np.random.default_rng(seed)

    def alphas(n_draws: int, n_runs: int) -> Array:
        """Alphas that so many runs of Algorithm 1 choose."""
        risks = [
            one.reshape(n_runs, n_draws).mean(1)
            for one in drawn_risks(target, mu, psi, n_runs * n_draws, rng)
        ]
        return GRID[least(np.stack(risks, -1))]

    [many] = alphas(_MANY, 1)
    runs = [alphas(count, n_repeats) for count in COUNTS]
    errors = [[np.abs(run - many).mean(), np.abs(run - exact).mean()] for run in runs]
    return np.array([*errors, [np.nan, abs(many - exact)]])

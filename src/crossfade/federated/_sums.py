"""A site's tasks in, its sums as a bounded vector out; the total vector in, the prior out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._validate import check_directions
from crossfade.federated._agreement import Agreement, FederationError
from crossfade.prior._compatibility import name_misfits
from crossfade.prior._task_prior import TaskPrior
from crossfade.tasks._task import Task

Array = NDArray[np.float64]

# The vector lies in [-1, 1] and is cut into 2**40 steps; of 2**56 residues, 65,536 sites fit.
CLIPPING = 1.0
STEPS = 2**40
RESIDUES = 2**56


def local_prior(source: Task | Iterable[Task] | ArrayLike, agreement: Agreement) -> TaskPrior:
    """Prior of one site, in the scale that was agreed on; refuses what does not fit.

    Parameters
    ----------
    source : Task, iterable of Task, or array-like of shape (n_tasks, n_features)
        The site's tasks, or their unit directions in scaled units.
    agreement : Agreement
        What the federation fixed.

    Returns
    -------
    TaskPrior
        The site's own sums.
    """
    given: Any = [source] if isinstance(source, Task) else source
    if isinstance(given, Iterable) and not hasattr(given, "__array__"):
        given = list(given)
    if isinstance(given, list) and any(isinstance(one, Task) for one in given):
        prior = _of_tasks(given, agreement)
    else:
        directions = check_directions(given, agreement.n_features)
        prior = TaskPrior.from_projections(directions, feature_scale=agreement.feature_scale)
    if prior.n_tasks > agreement.max_tasks:
        raise ValueError(
            f"This site has {prior.n_tasks} tasks; the federation agreed on at most "
            f"{agreement.max_tasks} from each. Leave some out, or agree on a larger max_tasks."
        )
    return prior


def _of_tasks(tasks: list[Any], agreement: Agreement) -> TaskPrior:
    first = next(task for task in tasks if isinstance(task, Task))
    names = first.feature_names
    wrong = name_misfits(
        names and agreement.feature_names,
        agreement.n_features,
        names or [""] * np.shape(first.X)[1],
        "the agreed scale",
    )
    if wrong:
        raise _unlike(" ".join(wrong))
    prior = TaskPrior.from_tasks(tasks, feature_scale=agreement.feature_scale)
    mine = Agreement(
        prior.feature_scale,
        prior.classes or (),  # type: ignore[arg-type]
        agreement.feature_names and prior.feature_names,
        agreement.max_tasks,
    )
    difference = mine.difference(agreement)
    if difference:
        raise _unlike(f"{difference}.")
    return prior


def _unlike(difference: str) -> ValueError:
    return ValueError(
        f"These tasks are not what the federation agreed on. {difference} Rename or reorder what "
        "differs, or leave this site out."
    )


def packed(prior: TaskPrior, max_tasks: int) -> Array:
    """J, sum and upper triangle of the outer sum over `max_tasks`, on the protocol's grid.

    Rounding to the grid here, and not at random in the protocol, makes the total the same each
    time: the sum of these vectors, to the last bit.
    """
    assert prior.outer_sum is not None
    upper = prior.outer_sum[np.triu_indices(prior.n_features)]
    parts = np.concatenate([[float(prior.n_tasks)], prior.direction_sum, upper]) / max_tasks
    steps = STEPS / (2.0 * CLIPPING)
    rounded: Array = np.round(parts * steps) / steps
    return rounded


def rounding(n_sites: int, max_tasks: int) -> float:
    """Largest difference between a federated sum and the pooled one, by rounding to the grid."""
    return n_sites * max_tasks * CLIPPING / STEPS


def unpacked(total: Array, n_sites: int, agreement: Agreement) -> TaskPrior:
    """Prior from the sum of the sites' vectors; refuses sums that no unit directions have.

    Parameters
    ----------
    total : ndarray of shape (1 + d + d (d + 1) / 2,)
        Sum over sites of what :func:`packed` gives.
    n_sites : int
        How many sites it has.
    agreement : Agreement
        What the federation fixed.

    Returns
    -------
    TaskPrior
        The prior of all sites.
    """
    d = agreement.n_features
    size = 1 + d + d * (d + 1) // 2
    if total.shape != (size,) or not np.isfinite(total).all():
        raise _refused(f"{size} finite numbers were expected, of shape {(size,)}")
    sums = total * agreement.max_tasks
    slack = rounding(n_sites, agreement.max_tasks)
    n_tasks = round(float(sums[0]))
    if abs(sums[0] - n_tasks) > 2.0 * slack + 1e-9 or not n_sites <= n_tasks:
        raise _refused(f"the number of tasks is {sums[0]:.6g}, of {n_sites} sites")
    direction_sum = sums[1 : d + 1]
    outer = np.zeros((d, d))
    outer[np.triu_indices(d)] = sums[d + 1 :]
    outer += np.triu(outer, 1).T
    trace, length = float(np.trace(outer)), float(np.linalg.norm(direction_sum))
    if abs(trace - n_tasks) > 1e-6 * n_tasks + d * slack:
        raise _refused(f"the trace of the outer products is {trace:.9g}, not J = {n_tasks}")
    if length > n_tasks * (1.0 + 1e-6) + d * slack:
        raise _refused(f"the sum of the directions has length {length:.9g}, above J = {n_tasks}")
    # The covariance of directions has no negative eigenvalue.
    spread = outer / n_tasks - np.outer(direction_sum, direction_sum) / n_tasks**2
    if np.linalg.eigvalsh(spread)[0] < -1e-6 - d * slack:
        raise _refused("the sum and the outer products contradict each other")
    return TaskPrior(
        n_tasks=n_tasks,
        direction_sum=direction_sum,
        outer_sum=outer,
        feature_scale=agreement.feature_scale,
        classes=agreement.classes,
        feature_names=agreement.feature_names,
    )


def _refused(what: str) -> FederationError:
    return FederationError(
        f"The sums fail their check after unmasking: {what}. Some site sent something other than "
        "sums of unit directions, and a secure sum cannot say which. Make sure that all sites run "
        "the same version of Crossfade, and start again."
    )

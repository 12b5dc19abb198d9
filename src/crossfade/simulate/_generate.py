"""The paper's generative model (equation 1): directions and tasks drawn from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import vonmises_fisher

from crossfade._typing import Array, RandomState
from crossfade._validate import (
    as_generator,
    check_covariance,
    check_directions,
    check_integer,
    check_number,
    check_spectrum,
)
from crossfade.tasks import Task, TaskSet


def draw_directions(
    n_directions: int,
    n_features: int,
    concentration: float,
    *,
    mean_direction: ArrayLike | None = None,
    random_state: RandomState = None,
) -> Array:
    """Unit directions from a von Mises-Fisher distribution.

    Parameters
    ----------
    n_directions : int
        How many.
    n_features : int
        Dimension d.
    concentration : float
        Concentration kappa; 0 is uniform on the sphere.
    mean_direction : array-like of shape (n_features,) or None, default=None
        Mean direction mu; None is the first axis, as in the paper.
    random_state : int, Generator or None, default=None
        Seed.

    Returns
    -------
    ndarray of shape (n_directions, n_features)
        Unit vectors.

    Examples
    --------
    >>> from crossfade.simulate import draw_directions
    >>> draw_directions(5, 3, 100.0, random_state=0).shape
    (5, 3)
    """
    n_directions = check_integer("n_directions", n_directions, 1)
    n_features = check_integer("n_features", n_features, 1)
    kappa = check_number("concentration", concentration, 0.0, 1e8)
    rng = as_generator(random_state)
    mu = np.eye(n_features)[0]
    if mean_direction is not None:
        mu = check_directions(np.atleast_2d(np.asarray(mean_direction)), n_features)[0]
    if n_features == 1:
        agree = rng.random((n_directions, 1)) < 1.0 / (1.0 + np.exp(-2.0 * kappa))
        return np.where(agree, mu, -mu)
    if kappa == 0.0:
        normals = rng.standard_normal((n_directions, n_features))
        return normals / np.linalg.vector_norm(normals, axis=1, keepdims=True)
    drawn: Array = vonmises_fisher(mu, kappa, seed=rng).rvs(n_directions)  # type: ignore[arg-type]
    return drawn.reshape(n_directions, n_features)


def simulate_tasks(
    n_tasks: int,
    n_samples: int = 100,
    *,
    n_features: int = 10,
    concentration: float = 10.0,
    covariance: ArrayLike | None = None,
    mean_direction: ArrayLike | None = None,
    random_state: RandomState = None,
) -> TaskSet:
    r"""Tasks from the paper's generative model (equation 1).

    Each has a direction from a von Mises-Fisher distribution and two Gaussian classes at
    :math:`\pm\nu` with :math:`\nu = \Sigma\omega`, so that the direction is that of its Fisher
    discriminant.

    Parameters
    ----------
    n_tasks : int
        How many tasks.
    n_samples : int, default=100
        Samples of each task, half of each class; label 0 lies at minus nu, label 1 at plus nu.
    n_features : int, default=10
        Dimension d.
    concentration : float, default=10.0
        Concentration kappa of the directions.
    covariance : array-like of shape (n_features, n_features) or None, default=None
        Covariance within the classes; None is the identity.
    mean_direction : array-like of shape (n_features,) or None, default=None
        Mean direction; None is the first axis.
    random_state : int, Generator or None, default=None
        Seed.

    Returns
    -------
    TaskSet
        The tasks, in order.

    Examples
    --------
    >>> from crossfade import TaskPrior
    >>> from crossfade.simulate import simulate_tasks
    >>> tasks = simulate_tasks(20, n_samples=50, n_features=4, random_state=0)
    >>> TaskPrior.from_tasks(tasks).n_tasks
    20
    """
    n_tasks = check_integer("n_tasks", n_tasks, 1)
    n_samples = check_integer("n_samples", n_samples, 2)
    rng = as_generator(random_state)
    omega = draw_directions(
        n_tasks, n_features, concentration, mean_direction=mean_direction, random_state=rng
    )
    root = np.eye(n_features)
    if covariance is not None:
        values, basis = np.linalg.eigh(check_covariance("covariance", covariance, n_features))
        root = basis * np.sqrt(check_spectrum("covariance", values))
    nu = omega @ (root @ root.T)
    label = half_labels(n_samples)
    signs = 2.0 * label - 1.0
    tasks = []
    for place, gap in enumerate(nu):
        noise = rng.standard_normal((n_samples, n_features)) @ root.T
        tasks.append(Task(noise + signs[:, None] * gap, label, name=f"task {place + 1}"))
    return TaskSet(tasks)


def half_labels(n_samples: int) -> NDArray[np.intp]:
    """Classes 0 and 1, half of the samples each."""
    return np.repeat(np.arange(2), [n_samples - n_samples // 2, n_samples // 2])

"""Figures 1 and 7: directions on the sphere, and how those of people agree."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from crossfade import Task, TaskPrior
from crossfade.simulate import draw_directions
from reproduction.algorithm import Array, crowd_of
from reproduction.applications import balanced_runs, direction, encoded


def figure1(n_sources: int = 10, n_samples: int = 40, seed: int = 0) -> pd.DataFrame:
    """A sketch: a target's samples and direction, the sources, and their mean direction.

    Columns are the `role` of a point and its `x`, `y` and `z`.
    """
    rng = np.random.default_rng(seed)
    drawn = draw_directions(n_sources + 1, 3, 10.0, random_state=rng)
    y = np.arange(n_samples) % 2
    samples = rng.standard_normal((n_samples, 3)) + np.outer(2 * y - 1, drawn[0])
    points = np.vstack([direction(samples, y), crowd_of(drawn[1:]).mu, drawn[1:], samples])
    roles = ["target", "average-source", *["source"] * n_sources, *["sample"] * n_samples]
    table = pd.DataFrame(points, columns=["x", "y", "z"])
    table.insert(0, "role", roles)
    return table


# -- Figure 7 -------------------------------------------------------------------------------------


class Vectors(NamedTuple):
    """Directions of the tasks of a study."""

    directions: Array  # (n_tasks, d): those that are embedded
    kappa: float


def vectors(tasks: Sequence[Task], recipe: str) -> Vectors:
    """Directions of all windows, as in the text; or the last of the authors' ten balanced runs.

    Their concentration is the mean over the ten runs.
    """
    if recipe == "printed":
        whole = np.stack([direction(task.X, encoded(task)) for task in tasks])
        return Vectors(whole, TaskPrior.from_projections(whole).concentration)
    runs = balanced_runs(tasks)
    kappas = [TaskPrior.from_projections(run).concentration for run in runs]
    return Vectors(runs[-1], float(np.mean(kappas)))


def embed(directions: Array, recipe: str, n_starts: int = 30) -> pd.DataFrame:
    """Points in the plane that stand for directions, and the clusters that they form.

    The points are the spectral embedding of the affinity (cosine + 1) / 2: its two leading
    eigenvectors, each times the root of its eigenvalue. With three features they are the directions
    themselves. The clusters are those of a Gaussian mixture of least BIC.

    ========== ==================== ========================================
    recipe     diagonal             mixtures
    ========== ==================== ========================================
    printed    zero                 one to five components of full covariance
    authors    mean of its row      one to eight, of four kinds of covariance;
                                    with three features one to five
    ========== ==================== ========================================

    Returns `x`, `y`, perhaps `z`, and `cluster`, from 1 for the largest.
    """
    spatial = directions.shape[1] == 3
    embedding = _spectral_embedding(directions, augmented=recipe == "authors")
    points = directions if spatial else embedding
    if recipe == "printed":
        clusters = _clusters_of_the_text(embedding)
    else:
        most, added = (5, 1e-3) if spatial else (8, 1e-5)
        mixtures = [
            GaussianMixture(count, covariance_type=kind, reg_covar=added, n_init=n_starts)
            for kind in ("full", "tied", "diag", "spherical")
            for count in range(1, most + 1)
        ]
        clusters = _of_least_bic(points, mixtures, 1)
    table = pd.DataFrame(points, columns=list("xyz")[: points.shape[1]])
    return table.assign(cluster=_by_size(clusters))


def _spectral_embedding(directions: Array, augmented: bool) -> Array:
    """Embedding (n_tasks, 2); the largest entry of each component is positive."""
    affinity = (directions @ directions.T + 1.0) / 2.0
    np.fill_diagonal(affinity, 0.0)
    if augmented:
        np.fill_diagonal(affinity, affinity.sum(1) / (len(affinity) - 1))
    values, basis = np.linalg.eigh(affinity)
    points = (basis * np.sqrt(np.maximum(values, 0.0)))[:, [-1, -2]]
    largest = np.take_along_axis(points, np.abs(points).argmax(0)[None], 0)
    signed: Array = points * np.where(largest < 0.0, -1.0, 1.0)
    return signed


def _clusters_of_the_text(points: Array) -> np.ndarray:
    """Clusters of one to five components, each of more points than a covariance needs."""
    most = min(5, len(points) // (points.shape[1] + 1))
    mixtures = [GaussianMixture(count, n_init=5) for count in range(1, most + 1)]
    return _of_least_bic(points, mixtures, points.shape[1] + 1)


def _of_least_bic(points: Array, mixtures: Sequence[GaussianMixture], smallest: int) -> np.ndarray:
    """Labels of the mixture of least BIC, of those with so many points in each cluster."""
    best, found = np.inf, np.zeros(len(points), int)
    for mixture in mixtures:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            labels = mixture.set_params(random_state=0).fit_predict(points)
        sizes = np.bincount(labels, minlength=mixture.n_components)
        if (smallest == 1 or sizes.min() >= smallest) and mixture.bic(points) < best:
            best, found = mixture.bic(points), labels
    return found


def _by_size(labels: np.ndarray) -> np.ndarray:
    """Clusters numbered from 1 for the largest."""
    _, places, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    return order.argsort()[places] + 1

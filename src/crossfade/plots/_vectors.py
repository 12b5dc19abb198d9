"""Figures of directions: where those of many tasks point, and what lies between two."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from crossfade._validate import check_directions, check_finite
from crossfade.datasets import check_recipe
from crossfade.fisher import FisherDiscriminant
from crossfade.plots._methods import method_of
from crossfade.plots._style import (
    ONE_COLUMN,
    SMALL_LETTERS,
    in_style,
    legend_below,
    panels,
    tip_id,
    tips,
)
from crossfade.prior import TaskPrior
from crossfade.tasks import TaskSet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

#: Colours and markers of clusters.
_CLUSTERS = (
    ("#0072b2", "o"),
    ("#d55e00", "s"),
    ("#009e73", "^"),
    ("#cc79a7", "D"),
    ("#000000", "v"),
    ("#56b4e9", "P"),
    ("#e69f00", "X"),
    ("#999999", "*"),
)
#: Starts of the mixtures of the authors' recipe, most of their components and what is added to
#: variances: for embeddings, and for directions in three dimensions.
_N_STARTS = 30
_PLANE, _SPACE = (8, 1e-5), (5, 1e-3)


def embed_directions(directions: ArrayLike | TaskSet, *, recipe: str = "printed") -> pd.DataFrame:
    """Points that stand for directions, and the clusters that they form.

    The points are the spectral embedding of the affinity ``(cosine + 1) / 2`` with a zero diagonal:
    its two leading eigenvectors, each times the root of its eigenvalue. With three features they
    are the directions themselves. The clusters are those of a Gaussian mixture of the embedding,
    with one to five components by the Bayesian information criterion. Unit vectors embed as curved
    bundles, so one wide bundle may be split into several clusters.

    Parameters
    ----------
    directions : array-like of shape (n_tasks, n_features) or TaskSet
        Unit vectors, or tasks; theirs are the ones that :meth:`TaskPrior.from_tasks` sums up.
    recipe : {"printed", "authors"}, default="printed"
        The above, from the paper's text; or as the paper's Figure 7 was made. There the diagonal of
        the affinity has the mean of its row, the mixture has up to eight components and whichever
        of four kinds of covariance has the least BIC, and with three features it is one of the
        directions themselves, of up to five components. These clusters are no evidence of several
        kinds of people: of one crowd that differs more in some directions than in others, the
        recipe finds two or more, too.

    Returns
    -------
    DataFrame
        For each `task` its `x`, `y`, in three dimensions also `z`, and `cluster`, from 1 for the
        largest. Its ``attrs["explained"]`` has, for each component of an embedding, the share of
        the squared affinities that it explains.

    Examples
    --------
    >>> from crossfade.plots import embed_directions
    >>> embed_directions([[1.0, 0.0, 0.0], [0.0, 0.6, 0.8]])
         task    x    y    z  cluster
    0  task 1  1.0  0.0  0.0        1
    1  task 2  0.0  0.6  0.8        1
    """
    as_run = check_recipe(recipe) == "authors"
    W = _directions(directions)
    embedding, explained = _spectral_embedding(W, augmented=as_run)
    points = W if W.shape[1] == 3 else embedding
    clusters = _clusters_as_run(points) if as_run else _clusters(embedding)
    return _table(_names(directions, len(W)), points, clusters, explained)


def embed_as_one(tasks: TaskSet) -> pd.DataFrame:
    """The same points, all in one cluster."""
    W = _directions(tasks)
    embedding, explained = _spectral_embedding(W)
    points = W if W.shape[1] == 3 else embedding
    return _table(_names(tasks, len(W)), points, np.zeros(len(W), np.intp), explained)


def _table(
    names: list[str], points: Array, clusters: NDArray[np.intp], explained: list[float]
) -> pd.DataFrame:
    """Tasks with their points, and with their clusters from 1 on."""
    table = pd.DataFrame(points, columns=list("xyz")[: points.shape[1]])
    table.insert(0, "task", names)
    table["cluster"] = clusters + 1
    if points.shape[1] == 2:
        table.attrs["explained"] = explained
    return table


def _directions(directions: ArrayLike | TaskSet) -> Array:
    if not isinstance(directions, TaskSet):
        return check_directions(directions)
    scale = TaskPrior.from_tasks(directions, class_means=False, replay=False).feature_scale
    template = FisherDiscriminant(feature_scale=scale)
    return np.stack([clone(template).fit(task.X, task.y).projection_ for task in directions])


def _spectral_embedding(W: Array, *, augmented: bool = False) -> tuple[Array, list[float]]:
    """Embedding (n_tasks, 2), and the share of ``|affinity|^2`` that each component explains."""
    affinity = (W @ W.T + 1.0) / 2.0
    np.fill_diagonal(affinity, 0.0)
    if augmented and len(W) > 1:
        np.fill_diagonal(affinity, affinity.sum(1) / (len(W) - 1))
    values, vectors = np.linalg.eigh(affinity)
    points = np.zeros((len(W), 2))
    n_leading = min(len(W), 2)
    points[:, :n_leading] = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1][:, :n_leading]
    # Eigenvectors have no sign of their own: the largest entry is made positive.
    largest = np.take_along_axis(points, np.abs(points).argmax(0)[None], 0)
    # |affinity|^2 is the sum of the squared eigenvalues; components with a negative one are empty.
    squares = np.maximum(values, 0.0)[::-1][:n_leading] ** 2
    total = float((values**2).sum())
    return points * np.where(largest < 0.0, -1.0, 1.0), [
        float(one) / total if total else 0.0 for one in squares
    ]


def _clusters(points: Array) -> NDArray[np.intp]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    n_points, n_axes = points.shape
    # A component needs a covariance: fewer points would be a cluster for nothing.
    most = min(5, len(np.unique(points.round(9), axis=0)) // (n_axes + 1))
    if most < 2:
        return np.zeros(n_points, dtype=np.intp)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixtures = [
            GaussianMixture(count, n_init=5, random_state=0).fit(points)
            for count in range(1, most + 1)
        ]
    best = np.inf
    for mixture in mixtures:
        labels = mixture.predict(points)
        sizes = np.bincount(labels, minlength=mixture.n_components)
        if sizes.min() > n_axes and mixture.bic(points) < best:
            best = mixture.bic(points)
            found = _by_size(labels)
    return found


def _by_size(labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """The same clusters, numbered from the largest on; empty ones have no number."""
    _, places, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    rank: NDArray[np.intp] = np.argsort(np.argsort(-sizes, kind="stable"))
    return rank[places]


def _clusters_as_run(points: Array) -> NDArray[np.intp]:
    """Clusters of Figure 7: the Gaussian mixture of any kind with the least BIC."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    most, added = _SPACE if points.shape[1] == 3 else _PLANE
    # Of points that are alike, k-means cannot make as many clusters.
    most = min(most, len(np.unique(points.round(9), axis=0)))
    best, found = np.inf, np.zeros(len(points), dtype=np.intp)
    if most < 2:
        return found
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for kind in ("full", "tied", "diag", "spherical"):
            for count in range(1, most + 1):
                mixture = GaussianMixture(
                    count, covariance_type=kind, reg_covar=added, n_init=_N_STARTS, random_state=0
                ).fit(points)
                if mixture.bic(points) < best:
                    best, found = mixture.bic(points), mixture.predict(points)
    return _by_size(found)


def projection_vectors(directions: ArrayLike | TaskSet | pd.DataFrame) -> Figure:
    """Directions of all tasks, coloured by cluster: dots in a plane, or arrows on a sphere.

    Parameters
    ----------
    directions : array-like of shape (n_tasks, n_features), TaskSet or DataFrame
        Unit vectors, or tasks, as in :func:`embed_directions`, or what it returns for them.

    Returns
    -------
    Figure
        One panel with equal axes; with three features it is a sphere.
    """
    if isinstance(directions, pd.DataFrame) and "cluster" in directions:
        table = directions
    else:
        table = embed_directions(directions)
    if "z" in table:
        W = table[["x", "y", "z"]].to_numpy()
        figure, ax = _sphere(W.mean(0), np.linalg.svd(W - W.mean(0))[2][0])
    else:
        figure, [ax] = panels(1, ONE_COLUMN, 3.2)
        shares = [f" ({100.0 * one:.0f} %)" for one in table.attrs.get("explained", [])]
        first, second = [*shares, "", ""][:2]
        ax.set_xlabel(f"first component{first}")
        ax.set_ylabel(f"second component{second}")
        # Distances mean something: one unit is as long in both directions.
        ax.set_aspect("equal", adjustable="datalim")
    several = table["cluster"].nunique() > 1
    for cluster, part in table.groupby("cluster"):
        colour, marker = _CLUSTERS[(int(str(cluster)) - 1) % len(_CLUSTERS)]
        said = [f"{task}: cluster {cluster}" if several else str(task) for task in part["task"]]
        look: dict[str, Any] = {"color": colour, "markersize": 4.5}
        if "z" in table:
            for text, direction in zip(said, part[["x", "y", "z"]].to_numpy(), strict=True):
                _arrow(ax, direction, colour, gid=tip_id(text))
        else:
            tips(ax, part["x"], part["y"], said, marker=marker, alpha=0.75, mew=0, **look)
        style = "-" if "z" in table else marker
        ax.plot([], [], style, label=f"cluster {cluster} ({len(part)})", **look)
    if several:
        legend_below(figure, ax)
    return figure


def _names(directions: ArrayLike | TaskSet, count: int) -> list[str]:
    given = [task.name for task in directions] if isinstance(directions, TaskSet) else []
    return [name or f"task {place + 1}" for place, name in enumerate(given or [None] * count)]


def blend_geometry(
    target: ArrayLike, source: ArrayLike, samples: ArrayLike | None = None
) -> Figure:
    """What a convex blend of two directions can be, in three dimensions: the paper's Figure 1.

    Parameters
    ----------
    target : array-like of shape (3,)
        Unit direction of the target.
    source : array-like of shape (3,) or (n_tasks, 3)
        Unit directions of the sources, or the mean direction alone.
    samples : array-like of shape (n_samples, 3) or None, default=None
        Samples of the target, drawn as dots at a third of their distance.

    Returns
    -------
    Figure
        A sphere with the target, the sources and their mean direction; the line between the two
        holds all convex blends, the arc their directions.
    """
    own = check_directions(np.atleast_2d(np.asarray(target, dtype=np.float64)))
    crowd = check_directions(np.atleast_2d(np.asarray(source, dtype=np.float64)))
    if own.shape != (1, 3) or crowd.shape[1] != 3:
        raise ValueError(
            "A sphere can be drawn for one target and its sources in three dimensions; got shapes "
            f"{np.shape(target)} and {np.shape(source)}."
        )
    omega, mu = own[0], TaskPrior.from_projections(crowd).mean_direction
    figure, ax = _sphere(omega + mu, omega - mu)
    if samples is not None:
        dots = check_finite("samples", samples, 2, 3) / 3.0
        red = method_of("target").colour
        look: dict[str, Any] = {"color": red, "markersize": 2.0, "alpha": 0.6, "mew": 0.0}
        ax.plot(*dots.T, "o", gid="series:samples", label="target's samples", **look)
    if len(crowd) > 1:
        for place, direction in enumerate(crowd):
            _arrow(ax, direction, "#999999", gid=tip_id(f"source {place + 1}"), linewidth=0.7)
        ax.plot([], [], color="#999999", linewidth=0.7, label="sources")
    weights = np.linspace(0.0, 1.0, 101)[:, None]
    blends = weights * omega + (1.0 - weights) * mu
    lengths = np.linalg.norm(blends, axis=1, keepdims=True)
    for name, direction in (("average-source", mu), ("target", omega)):
        one = method_of(name)
        _arrow(ax, direction, one.colour, gid=f"series:{name}", linewidth=1.8)
        ax.plot([], [], color=one.colour, linewidth=1.8, label=one.label)
    blend: dict[str, Any] = {"color": method_of("paper").colour, "gid": "series:blend"}
    ax.plot(*blends.T, linewidth=1.8, label="blends", **blend)
    # Opposite directions have no arc between them.
    if lengths.min() > 1e-6:
        arc = blends / lengths
        ax.plot(*arc.T, linewidth=1.0, linestyle=":", label="their directions", **blend)
    legend_below(figure, ax)
    return figure


def _sphere(middle: Array, across: Array) -> tuple[Figure, Any]:
    """Figure with a unit sphere, seen from beside the plane of two vectors."""
    from matplotlib.figure import Figure

    with in_style():
        figure = Figure(figsize=(ONE_COLUMN, 3.0))
        ax: Any = figure.add_subplot(projection="3d")
    turn = np.linspace(0.0, 2.0 * np.pi, 73)
    look: dict[str, Any] = {"color": "#dddddd", "linewidth": 0.5}
    for angle in np.linspace(0.0, np.pi, 7)[:-1]:
        ax.plot(np.cos(turn) * np.cos(angle), np.cos(turn) * np.sin(angle), np.sin(turn), **look)
        height, radius = np.cos(angle + np.pi / 12.0), np.sin(angle + np.pi / 12.0)
        ax.plot(radius * np.cos(turn), radius * np.sin(turn), height, **look)
    for place, axis in enumerate(np.eye(3)):
        ax.plot(*np.stack([np.zeros(3), 1.1 * axis], 1), color="#aaaaaa", linewidth=0.7)
        ax.text(*(1.25 * axis), str(place + 1), color="#777777", size=SMALL_LETTERS, ha="center")
    normal = np.cross(middle, across)
    x, y, z = 0.5 * _unit(middle) + (0.85 if normal[2] >= 0.0 else -0.85) * _unit(normal)
    elevation = np.degrees(np.arctan2(z, np.hypot(x, y)))
    ax.view_init(elev=float(elevation), azim=float(np.degrees(np.arctan2(y, x))))
    ax.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
    ax.set_box_aspect((1.0, 1.0, 1.0), zoom=1.2)
    ax.set_axis_off()
    return figure, ax


def _unit(vector: Array) -> Array:
    length = np.linalg.norm(vector)
    unit: Array = vector / length if length > 1e-9 else np.array([1.0, 0.0, 0.0])
    return unit


def _arrow(ax: Any, direction: Array, colour: str, *, gid: str, linewidth: float = 1.2) -> None:
    """Arrow from the origin to the sphere."""
    arrow = ax.quiver(
        0.0, 0.0, 0.0, *direction, color=colour, linewidth=linewidth, arrow_length_ratio=0.1
    )
    arrow.set_gid(gid)

"""Figures 2 and 3: simulated targets and sources, and the paper's three classifiers.

The direction of each task is drawn from a von Mises-Fisher law, and its classes are normal about
plus and minus that direction, with the identity as covariance. Accuracies are exact.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from scipy.special import ndtr

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    PosteriorBlendClassifier,
    TaskPrior,
)
from crossfade.exceptions import CancellingSourcesWarning
from crossfade.risk import expected_risk
from crossfade.simulate import draw_directions
from reproduction.algorithm import (
    GRID,
    Array,
    Crowd,
    Moments,
    Target,
    blends,
    crowd_of,
    least,
    mean_risks,
    moments_of,
    target_of,
    target_of_figure_3,
    unit,
)
from reproduction.published import reference

#: Repeats that one process computes at once.
_AT_ONCE = 250


class Cell(NamedTuple):
    """One setting of the simulation."""

    n_features: int = 10
    concentration: float = 10.0
    n_sources: int = 100
    n_target: int = 20
    known: bool = False  # whether the covariance is known


class Drawn(NamedTuple):
    """Targets with the directions of their sources."""

    nu: Array  # (n_repeats, d): half gap and best direction of each target
    sources: Array  # (n_repeats, n_sources, d)


def run(
    work: Callable[..., dict[Any, Array]],
    cells: Sequence[Any],
    n_repeats: int,
    n_jobs: int,
    seed: int,
) -> list[dict[Any, Array]]:
    """All repeats of all cells, in pieces with random numbers of their own; one result a cell."""
    sizes = [min(_AT_ONCE, n_repeats - start) for start in range(0, n_repeats, _AT_ONCE)]
    pieces = [(cell, size) for cell in cells for size in sizes]
    seeds = np.random.SeedSequence(seed).spawn(len(pieces))
    found = joblib.Parallel(n_jobs=n_jobs)(
        joblib.delayed(work)(cell, size, np.random.default_rng(own))
        for (cell, size), own in zip(pieces, seeds, strict=True)
    )
    parts = [found[place : place + len(sizes)] for place in range(0, len(found), len(sizes))]
    return [
        {name: np.concatenate([one[name] for one in part]) for name in part[0]} for part in parts
    ]


def means(names: Sequence[str], values: Array) -> dict[str, float]:
    """Mean and standard error over repeats of each column."""
    error = values.std(0, ddof=1) / np.sqrt(len(values))
    return {name: float(mean) for name, mean in zip(names, values.mean(0), strict=True)} | {
        f"{name}_se": float(one) for name, one in zip(names, error, strict=True)
    }


def half_labels(n_samples: int) -> np.ndarray:
    """Classes 0 and 1, half of the samples each."""
    return np.repeat([0, 1], [n_samples - n_samples // 2, n_samples // 2])


def draw(cell: Cell, n_repeats: int, rng: np.random.Generator) -> Drawn:
    """Targets and sources of one cell."""
    n_each = cell.n_sources + 1
    drawn = draw_directions(
        n_repeats * n_each, cell.n_features, cell.concentration, random_state=rng
    )
    drawn = drawn.reshape(n_repeats, n_each, cell.n_features)
    return Drawn(drawn[:, 0], drawn[:, 1:])


def accuracy(omega: Array, nu: Array) -> Array:
    """Accuracy of rules (..., d) through the midpoint, with the identity as covariance."""
    exact: Array = ndtr(np.vecdot(unit(omega), nu))
    return exact


# -- Figure 2 -------------------------------------------------------------------------------------


def figure2(
    recipe: str = "right", n_repeats: int = 1000, n_jobs: int = 1, seed: int = 0
) -> pd.DataFrame:
    """Predicted and true accuracies and alphas, covariance and half gap known.

    By the recipe "right" the true accuracy of the blend is that at the predicted alpha. The paper
    takes the best of all alphas in hindsight.
    """
    cells = [
        Cell(n_sources=n_sources, n_target=n, known=True)
        for n_sources in (10, 100, 1000)
        for n in (10, 20, 50, 100)
    ]
    results = run(partial(_figure2_piece, recipe=recipe), cells, n_repeats, n_jobs, seed)
    rows = [
        {"n_sources": cell.n_sources, "n_target": cell.n_target}
        | {"classifier": classifier, "quantity": quantity}
        | means(("predicted", "true"), values)
        for cell, result in zip(cells, results, strict=True)
        for (classifier, quantity), values in result.items()
    ]
    keys = ["n_sources", "n_target", "classifier", "quantity"]
    paper = reference("figure2_validation")
    paper = paper.pivot_table(index=keys, columns="kind", values="value").reset_index()
    return pd.DataFrame(rows).merge(paper.rename_axis(columns=None), on=keys, how="left")


def _figure2_piece(
    cell: Cell, n_repeats: int, rng: np.random.Generator, recipe: str
) -> dict[Any, Array]:
    """Predicted beside true values (n_repeats, 2), by classifier and quantity."""
    nu, sources = draw(cell, n_repeats, rng)
    crowd = crowd_of(sources)
    risks = _predicted_risks(nu, crowd, cell.n_target, rng, recipe)
    best, everyone = least(risks), np.arange(n_repeats)
    learnt = nu + rng.standard_normal(nu.shape) / np.sqrt(cell.n_target)
    own = learnt if recipe == "authors" else unit(learnt)
    truth = accuracy(blends(own, crowd.mu), nu[:, None])
    reached = truth[everyone, best] if recipe == "right" else truth.max(-1)
    pairs = {
        "target": (risks[:, -1], truth[:, -1]),
        "average-source": (risks[:, 0], truth[:, 0]),
        "optimal": (risks[everyone, best], reached),
    }
    result = {
        (name, "accuracy"): np.stack([1.0 - risk, true], -1) for name, (risk, true) in pairs.items()
    }
    return result | {("optimal", "alpha"): np.stack([GRID[best], GRID[truth.argmax(-1)]], -1)}


def _predicted_risks(
    nu: Array, crowd: Crowd, n_samples: int, rng: np.random.Generator, recipe: str
) -> Array:
    """Expected risks (n_repeats, n_alphas) by the covariances of a recipe."""
    identity = np.broadcast_to(np.eye(nu.shape[-1]), (*nu.shape, nu.shape[-1]))
    if recipe != "right":
        make = target_of_figure_3 if recipe == "authors" else target_of
        return mean_risks(make(nu, identity, n_samples), crowd.mu, crowd.psi(recipe), rng)
    # Only the means are noisy, and only what lies across the direction turns it.
    own = (identity - nu[:, :, None] * nu[:, None, :]) / n_samples
    weight = GRID[:, None, None]
    covariance = weight**2 * own[:, None] + (1.0 - weight) ** 2 * crowd.tangent_psi()[:, None]
    mean = blends(nu, crowd.mu)
    found: Array = expected_risk(mean, covariance, nu=nu[:, None], sigma=np.eye(nu.shape[-1])).risk
    return found


# -- Figure 3 -------------------------------------------------------------------------------------

#: What each panel varies, and whether the covariance is known.
_PANELS: dict[str, tuple[str, tuple[float, ...], tuple[bool, ...]]] = {
    "n": ("n_target", (10, 20, 50, 100), (False, True)),
    "kappa": ("concentration", (0.1, 1.0, 10.0, 100.0, 1000.0), (False,)),
    "d": ("n_features", (2, 5, 10, 20, 50, 100), (False,)),
}


def figure3(
    recipe: str = "right",
    n_repeats: int = 1000,
    n_jobs: int = 1,
    seed: int = 0,
    panels: Sequence[str] = tuple(_PANELS),
    n_kappa: int | None = None,
) -> pd.DataFrame:
    """Accuracies and alphas against n, kappa and d.

    The recipe "right" has the library's estimators beside the paper's, with the covariance learnt.
    `n_kappa` is the number of samples in the panel of kappa: 20 in the text, 50 in the figure.
    """
    n_kappa = n_kappa or (50 if recipe == "authors" else 20)
    keys, cells = [], []
    for panel in panels:
        name, settings, kinds = _PANELS[panel]
        usual = Cell(n_target=n_kappa) if panel == "kappa" else Cell()
        for known in kinds if recipe != "right" else (False,):
            for setting in settings:
                keys.append((panel, float(setting), "known" if known else "plug-in"))
                cells.append(usual._replace(**{name: setting}, known=known))
    results = run(partial(_figure3_piece, recipe=recipe), cells, n_repeats, n_jobs, seed)
    index = ["panel", "x", "covariance", "classifier"]
    rows = [
        dict(zip(index, (*key, classifier), strict=True)) | means(("accuracy", "alpha"), values)
        for key, result in zip(keys, results, strict=True)
        for classifier, values in result.items()
    ]
    paper = reference("figure3_parameters").astype({"x": float})
    paper = paper.pivot_table(index=index, columns="quantity", values="value")
    paper = paper.add_prefix("reference_").rename_axis(columns=None).reset_index()
    return pd.DataFrame(rows).merge(paper, on=index, how="left")


def _figure3_piece(
    cell: Cell, n_repeats: int, rng: np.random.Generator, recipe: str
) -> dict[Any, Array]:
    """Accuracy and alpha (n_repeats, 2) of each classifier."""
    nu, sources = draw(cell, n_repeats, rng)
    y = half_labels(cell.n_target)
    X = rng.standard_normal((n_repeats, y.size, cell.n_features))
    X += (2.0 * y - 1.0)[:, None] * nu[:, None, :]
    if recipe == "right":
        found = [_fitted(*one, y, rng) for one in zip(X, sources, strict=True)]
        rules = {name: np.array([one[name] for one in found]) for name in found[0]}
        return {
            name: np.stack([accuracy(rule[:, 1:], nu), rule[:, 0]], -1)
            for name, rule in rules.items()
        }
    crowd = crowd_of(sources)
    moments = moments_of(X, y)
    target = _target(cell, moments, recipe)
    place = least(mean_risks(target, crowd.mu, crowd.psi(recipe), rng))
    rules = blends(target.omega, crowd.mu)
    chosen = {"target": np.full_like(place, -1), "average-source": np.zeros_like(place)}
    return {
        name: np.stack([accuracy(rules[np.arange(n_repeats), at], nu), GRID[at]], -1)
        for name, at in (chosen | {"optimal": place}).items()
    }


def _target(cell: Cell, moments: Moments, recipe: str) -> Target:
    """Targets as Algorithm 1 sees them, by a recipe."""
    sigma = moments.sigma
    if cell.known:
        sigma = np.broadcast_to(np.eye(cell.n_features), sigma.shape)
    make = target_of_figure_3 if recipe == "authors" else target_of
    return make(moments.nu, sigma, moments.n_samples)


def library_rules(prior: TaskPrior, rng: np.random.Generator) -> dict[str, Any]:
    """The paper's classifiers and ours, as estimators of the library in raw units."""
    return {
        "target": FisherDiscriminant(shrinkage=None, feature_scale=None),
        "average-source": ConvexBlendClassifier(prior, alpha=0.0),
        "optimal": ConvexBlendClassifier.paper(prior, random_state=int(rng.integers(2**31))),
        "target-shrunk": FisherDiscriminant(feature_scale=None),
        "convex": ConvexBlendClassifier(prior),
        "posterior": PosteriorBlendClassifier(prior),
    }


def _fitted(X: Array, sources: Array, y: np.ndarray, rng: np.random.Generator) -> dict[str, Array]:
    """Alpha and direction (1 + d) of each estimator."""
    found = {}
    for name, rule in library_rules(TaskPrior.from_projections(sources), rng).items():
        with warnings.catch_warnings():
            # With hardly any concentration the directions of the sources cancel.
            warnings.simplefilter("ignore", CancellingSourcesWarning)
            rule.fit(X, y)
        found[name] = np.append(getattr(rule, "alpha_", 1.0), rule.coef_[0])
    return found

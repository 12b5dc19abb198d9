"""The paper's two simulation studies, Figures 2 and 3, and a third on wrong models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr

from crossfade._typing import Array, Places, Progress
from crossfade._validate import check_choice, check_integer, check_number, grid_of
from crossfade.datasets import check_recipe
from crossfade.fisher import ClassMoments, Spectrum, direction_of, mean_noise
from crossfade.prior import Crowd
from crossfade.risk import BlendLaw, least_risk
from crossfade.simulate._generate import draw_directions, half_labels
from crossfade.simulate._misspecified import Parameters, accuracies, build_world
from crossfade.simulate._repeats import means, reference, run
from crossfade.simulate._rules import crowd_of, paper_rules, risks_as_drawn, rules_of
from crossfade.simulate._scenarios import SCENARIOS

#: The paper's draws at each alpha.
_N_DRAWS = 100


class Cell(NamedTuple):
    """One setting of the generative model.

    Attributes
    ----------
    n_features : int
        Dimension d.
    concentration : float
        Concentration kappa of the directions.
    n_sources : int
        Number J of source tasks.
    n_target : int
        Labelled samples n of the target, half of each class.
    known : bool
        Whether the covariance is known, or learnt from the samples.
    """

    n_features: int = 10
    concentration: float = 10.0
    n_sources: int = 100
    n_target: int = 20
    known: bool = False


# -- the two studies of the paper -----------------------------------------------------------------


def figure2(
    *,
    n_sources: Sequence[int] = (10, 100, 1000),
    n_targets: Sequence[int] = (10, 20, 50, 100),
    n_features: int = 10,
    concentration: float = 10.0,
    step: float = 0.1,
    n_test: int | None = None,
    n_repeats: int = 1000,
    n_jobs: int = 1,
    random_state: int | None = 0,
    on_progress: Progress | None = None,
    recipe: str = "ours",
) -> pd.DataFrame:
    """The paper's Figure 2: predicted against true accuracy, covariance and half gap known.

    Parameters
    ----------
    n_sources : sequence of int, default=(10, 100, 1000)
        Numbers J of source tasks.
    n_targets : sequence of int, default=(10, 20, 50, 100)
        Numbers n of labelled samples of the target.
    n_features : int, default=10
        Dimension d.
    concentration : float, default=10.0
        Concentration kappa.
    step : float, default=0.1
        Step of the grid of alphas.
    n_test : int or None, default=None
        None for exact accuracies; a number for those on a test sample of that size, whose count
        of right answers is drawn from its law, the binomial.
    n_repeats : int, default=1000
        Repeats of each cell.
    n_jobs : int, default=1
        Processes.
    random_state : int or None, default=0
        Seed; the result does not depend on `n_jobs`.
    on_progress : callable or None, default=None
        Called with the finished pieces of work and their total.
    recipe : {"ours", "printed", "authors"}, default="ours"
        By which covariances accuracies are predicted: the right ones, without draws, or those of
        :func:`crossfade.study.reproduce.figure2`.

    Returns
    -------
    DataFrame
        A row for each cell, classifier (target, average-source, optimal) and quantity (accuracy,
        alpha): `predicted` and `true` values with standard errors, and the paper's `analytical`
        and `empirical` values where it has them. The true accuracy of the optimal classifier is
        that at the predicted alpha; by the paper's two recipes it is the best of all alphas, as in
        its figure.
    """
    check_recipe(recipe, "ours")
    grid_of(step)
    cells = [
        _check_cell(Cell(n_features, concentration, sources, n, known=True))
        for sources in dict.fromkeys(n_sources)
        for n in dict.fromkeys(n_targets)
    ]
    work = partial(_figure2_piece, step=step, n_test=n_test, recipe=recipe)
    results = run(work, cells, n_repeats, n_jobs, random_state, on_progress, _numbers)
    rows = []
    for cell, result in zip(cells, results, strict=True):
        for (classifier, quantity), values in result.items():
            row = {"n_sources": cell.n_sources, "n_target": cell.n_target}
            row |= {"classifier": classifier, "quantity": quantity}
            rows.append(row | means(("predicted", "true"), values))
    table = pd.DataFrame(rows)
    paper = reference("figure2_validation.csv")
    if (n_features, concentration) != (10, 10.0):
        paper = paper.iloc[:0]
    keys = ["n_sources", "n_target", "classifier", "quantity"]
    paper = paper.pivot_table(index=keys, columns="kind", values="value")
    paper = paper.reindex(columns=["analytical", "empirical"]).reset_index()
    return table.merge(paper.rename_axis(columns=None), on=keys, how="left")


def _figure2_piece(
    cell: Cell,
    n_repeats: int,
    rng: np.random.Generator,
    *,
    step: float,
    n_test: int | None,
    recipe: str,
) -> dict[Any, Array]:
    """Columns: what the theory predicts, what is true; rows: repeats."""
    nu, crowd, label = _draw_targets(cell, n_repeats, rng)
    counts = np.bincount(label).astype(np.float64)
    grid = grid_of(step)
    risks = _predicted_risks(nu, crowd, counts, grid, rng, recipe)
    # Of equal risks the largest alpha has the place.
    best = grid.size - 1 - risks[:, ::-1].argmin(1)
    learnt = nu + rng.standard_normal(nu.shape) * np.sqrt(mean_noise(counts))
    own = learnt / np.linalg.vector_norm(learnt, axis=1, keepdims=True)
    if recipe == "authors":
        own = learnt
    blends = grid[:, None, None] * own + (1.0 - grid)[:, None, None] * crowd.mean_direction
    truth = _accuracy(blends, nu)
    everyone = np.arange(n_repeats)
    reached = truth[best, everyone] if recipe == "ours" else truth.max(0)
    pairs = {
        "target": (1.0 - risks[:, -1], truth[-1]),
        "average-source": (1.0 - risks[:, 0], truth[0]),
        "optimal": (1.0 - risks[everyone, best], reached),
    }
    result = {
        (name, "accuracy"): np.column_stack([predicted, _tested(true, n_test, rng)])
        for name, (predicted, true) in pairs.items()
    }
    result["optimal", "alpha"] = np.column_stack([grid[best], grid[truth.argmax(0)]])
    return result


def _predicted_risks(
    nu: Array, crowd: Crowd, counts: Array, grid: Array, rng: np.random.Generator, recipe: str
) -> Array:
    """Expected risks (n_targets, n_alphas) for known half gaps (n_targets, d), by a recipe."""
    identity = _identity(nu.shape[1])
    if recipe == "ours":
        law = BlendLaw(direction_of(identity, nu, counts, 1.0), crowd.mean_direction, crowd.psi())
        return least_risk(law, grid).risks
    person = direction_of(identity, nu, counts, 0.0, "minus")
    if recipe == "authors":
        return risks_as_drawn(person, crowd, grid, _N_DRAWS, rng)
    law = BlendLaw(person, crowd.mean_direction, crowd.psi("printed"))
    return least_risk(law, grid, "monte_carlo", _N_DRAWS, rng).risks


#: The settings of Figure 3, and those that show the rest of the picture: n = 4, and the panel of
#: kappa with the covariance estimated.
FIGURE3_PANELS: dict[str, tuple[str, tuple[float, ...], tuple[bool, ...]]] = {
    "n": ("n_target", (4, 10, 20, 50, 100), (False, True)),
    "kappa": ("concentration", (0.1, 1.0, 10.0, 100.0, 1000.0), (False, True)),
    "d": ("n_features", (2, 5, 10, 20, 50, 100), (False,)),
}
#: The same as in the paper. By its text the panel of kappa has 20 samples. By what it shows, both
#: accuracies and alphas, it has 50: nothing else that was tried comes near.
_PAPER_PANELS: dict[str, tuple[str, tuple[float, ...], tuple[bool, ...]]] = {
    "n": ("n_target", (10, 20, 50, 100), (False, True)),
    "kappa": ("concentration", (0.1, 1.0, 10.0, 100.0, 1000.0), (False,)),
    "d": ("n_features", (2, 5, 10, 20, 50, 100), (False,)),
}
_N_KAPPA = 50


def figure3(
    *,
    panels: Iterable[str] = ("n", "kappa", "d"),
    values: Sequence[float] | None = None,
    n_features: int = 10,
    concentration: float = 10.0,
    n_sources: int = 100,
    n_target: int | None = None,
    step: float = 0.1,
    n_draws: int = _N_DRAWS,
    n_test: int | None = None,
    n_repeats: int = 1000,
    n_jobs: int = 1,
    random_state: int | None = 0,
    on_progress: Progress | None = None,
    recipe: str = "ours",
) -> pd.DataFrame:
    """The paper's Figure 3: the effect of n, kappa and d, with the covariance known or learnt.

    Parameters
    ----------
    panels : iterable of {"n", "kappa", "d"}, default=("n", "kappa", "d")
        Which panels; each varies one parameter and leaves the others.
    values : sequence of float or None, default=None
        Values of the parameter that the one panel varies; None for the paper's.
    n_features, concentration, n_sources : optional
        The parameters d, kappa and J where they are not varied.
    n_target : int or None, default=None
        The parameter n where it is not varied; None is 20, and by the recipe "authors" 50 in the
        panel of kappa.
    step, n_draws : optional
        Grid and draws of Algorithm 1.
    n_test : int or None, default=None
        As in :func:`figure2`.
    n_repeats, n_jobs, random_state, on_progress : optional
        As in :func:`figure2`.
    recipe : {"ours", "printed", "authors"}, default="ours"
        All rules, the paper's in the form of :meth:`crossfade.ConvexBlendClassifier.paper`; or the
        paper's three rules alone, as :func:`crossfade.study.reproduce.figure3` has them.

    Returns
    -------
    DataFrame
        A row for each cell and classifier: `accuracy`, `alpha` and `expected` (the forecast) with
        standard errors, and the paper's `reference_accuracy` and `reference_alpha` where it has
        them. The paper's "optimal" is Algorithm 1, here called `paper`. The paper's panel of kappa
        was made with 50 samples; in the recipe "ours" its values stand beside those of 20 samples
        and a known covariance, whose target and average source are nearly as accurate.
    """
    check_recipe(recipe, "ours")
    n_usual = 20 if n_target is None else n_target
    base = Cell(n_features, concentration, n_sources, n_usual)
    names = list(dict.fromkeys([panels] if isinstance(panels, str) else panels))
    if values is not None and len(names) != 1:
        raise ValueError(f"values belong to one panel; got {len(names)} panels.")
    grid_of(step)
    keys, cells = [], []
    known_panels = FIGURE3_PANELS if recipe == "ours" else _PAPER_PANELS
    for panel in names:
        if panel not in known_panels:
            raise ValueError(f"panels must be among 'n', 'kappa' and 'd'; got {panel!r}.")
        name, settings, kinds = known_panels[panel]
        other = panel == "kappa" and recipe == "authors" and n_target is None
        usual = base._replace(n_target=_N_KAPPA) if other else base
        for known in kinds:
            for setting in settings if values is None else dict.fromkeys(values):
                whole = name != "concentration" and float(setting).is_integer()
                changed: dict[str, Any] = {name: int(setting) if whole else setting, "known": known}
                keys.append((panel, float(setting), known))
                cells.append(_check_cell(usual._replace(**changed)))
    work = partial(_figure3_piece, step=step, n_draws=n_draws, n_test=n_test, recipe=recipe)
    results = run(work, cells, n_repeats, n_jobs, random_state, on_progress, _numbers)
    rows = []
    for (panel, x, known), result in zip(keys, results, strict=True):
        for classifier, numbers in result.items():
            row: dict[str, Any] = {"panel": panel, "x": x, "classifier": classifier}
            row["covariance"] = "known" if known else "plug-in"
            rows.append(row | means(("accuracy", "alpha", "expected"), numbers))
    table = pd.DataFrame(rows)
    paper = reference("figure3_parameters.csv")
    if base != Cell():
        paper = paper.iloc[:0]
    paper["classifier"] = paper["classifier"].replace("optimal", "paper")
    paper["x"] = paper["x"].astype(float)
    if recipe == "ours":
        paper.loc[paper["panel"] == "kappa", "covariance"] = "known"
    index = ["panel", "x", "covariance", "classifier"]
    paper = paper.pivot_table(index=index, columns="quantity", values="value")
    paper = paper.reindex(columns=["accuracy", "alpha"]).add_prefix("reference_").reset_index()
    return table.merge(paper.rename_axis(columns=None), on=index, how="left")


def _figure3_piece(
    cell: Cell,
    n_repeats: int,
    rng: np.random.Generator,
    *,
    step: float,
    n_draws: int,
    n_test: int | None,
    recipe: str,
) -> dict[Any, Array]:
    """Columns: accuracy, alpha, forecast; rows: repeats. Rules pass through the true midpoint."""
    nu, crowd, label = _draw_targets(cell, n_repeats, rng)
    X = rng.standard_normal((n_repeats, label.size, cell.n_features))
    X += (2.0 * label - 1.0)[:, None] * nu[:, None, :]
    options: dict[str, Any] = {"step": step, "n_draws": n_draws}
    options["covariance"] = _identity(cell.n_features) if cell.known else None
    if recipe == "ours":
        rules, _ = rules_of(X, label, crowd, rng, **options)
    else:
        psi = "printed" if recipe == "printed" else None
        rules = paper_rules(ClassMoments.of(X, label), crowd, rng, psi=psi, **options)
    return {
        name: np.column_stack(
            [_tested(_accuracy(rule.omega, nu), n_test, rng), rule.alpha, rule.expected]
        )
        for name, rule in rules.items()
    }


# -- a third study: what the paper leaves to future work ------------------------------------------


def misspecified(
    *,
    scenarios: Iterable[str] = tuple(SCENARIOS),
    step: float = 0.1,
    n_draws: int = 100,
    n_repeats: int = 1000,
    n_jobs: int = 1,
    random_state: int | None = 0,
    on_progress: Progress | None = None,
    **parameters: float,
) -> pd.DataFrame:
    """Which rule survives what: the model is wrong in one way at a time.

    Parameters
    ----------
    scenarios : iterable of str, default=all
        Names from `SCENARIOS`.
    step, n_draws : optional
        Grid and draws of Algorithm 1.
    n_repeats, n_jobs, random_state, on_progress : optional
        As in :func:`figure2`.
    **parameters : float
        Size of the study and its departures from the model, see `Parameters`: `n_features`,
        `n_sources`, `n_target`, `concentration`, `freedom`, `tails`, `ratio`, `shift`,
        `correlation`.

    Returns
    -------
    DataFrame
        A row for each scenario and classifier: `accuracy`, `alpha` and `expected` (the forecast)
        with standard errors.
    """
    names = list(scenarios)
    for name in names:
        check_choice("scenarios", name, tuple(SCENARIOS))
    size = _check_parameters(parameters)
    work = partial(_misspecified_piece, size=size, step=step, n_draws=n_draws)
    numbers = size.n_sources * size.n_features
    results = run(work, names, n_repeats, n_jobs, random_state, on_progress, lambda _: numbers)
    rows = []
    for name, result in zip(names, results, strict=True):
        for classifier, values in result.items():
            row: dict[str, Any] = {"scenario": name, "classifier": classifier}
            rows.append(row | means(("accuracy", "alpha", "expected"), values))
    return pd.DataFrame(rows)


def _misspecified_piece(
    scenario: str,
    n_repeats: int,
    rng: np.random.Generator,
    *,
    size: Parameters,
    step: float,
    n_draws: int,
) -> dict[Any, Array]:
    label = half_labels(size.n_target)
    world = build_world(scenario, size, label, n_repeats, rng)
    return accuracies(world, label, rng, step, n_draws)


def _check_parameters(parameters: dict[str, float]) -> Parameters:
    unknown = set(parameters) - set(Parameters._fields)
    if unknown:
        raise TypeError(f"misspecified has no parameter {sorted(unknown)[0]!r}.")
    size = Parameters(**parameters)  # type: ignore[arg-type]
    for name in ("n_features", "n_sources"):
        check_integer(name, getattr(size, name), 1)
    check_integer("n_target", size.n_target, 4)
    check_number("concentration", size.concentration, 0.0, 1e8)
    check_number("freedom", size.freedom, 1.0)
    check_number("tails", size.tails, 2.01)
    check_number("ratio", size.ratio, 1e-3)
    check_number("shift", size.shift, 0.0)
    check_number("correlation", size.correlation, 0.0, 0.999)
    return size


# -- shared machinery -----------------------------------------------------------------------------


def _check_cell(cell: Cell) -> Cell:
    check_integer("n_features", cell.n_features, 1)
    check_integer("n_sources", cell.n_sources, 1)
    check_integer("n_target", cell.n_target, 2 if cell.known else 4)
    check_number("concentration", cell.concentration, 0.0, 1e8)
    return cell


def _numbers(cell: Cell) -> int:
    return cell.n_sources * cell.n_features


def _draw_targets(
    cell: Cell, n_repeats: int, rng: np.random.Generator
) -> tuple[Array, Crowd, Places]:
    """Half gaps of targets, their crowds, and the labels of their samples."""
    d, kappa, n_sources = cell.n_features, cell.concentration, cell.n_sources
    nu = draw_directions(n_repeats, d, kappa, random_state=rng)
    sources = draw_directions(n_repeats * n_sources, d, kappa, random_state=rng)
    crowd = crowd_of(sources.reshape(n_repeats, n_sources, d))
    return nu, crowd, half_labels(cell.n_target)


def _identity(n_features: int) -> Spectrum:
    return Spectrum(np.ones(n_features), np.eye(n_features), np.zeros(()))


def _accuracy(omega: Array, nu: Array) -> Array:
    """Exact accuracy of rules through the midpoint, with the identity as covariance."""
    accuracy: Array = ndtr(np.vecdot(omega, nu) / np.linalg.vector_norm(omega, axis=-1))
    return accuracy


def _tested(accuracy: Array, n_test: int | None, rng: np.random.Generator) -> Array:
    """Accuracy on a test sample: its count of right answers is binomial."""
    if n_test is None:
        return accuracy
    n_test = check_integer("n_test", n_test, 1)
    return rng.binomial(n_test, accuracy) / n_test

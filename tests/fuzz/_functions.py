"""Cases of priors, tasks, studies and functions of arrays."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from crossfade import (
    CalibrationSplit,
    CalibrationStudy,
    FisherDiscriminant,
    MulticlassPrior,
    Task,
    TaskPrior,
    TaskSet,
    choose_alpha,
    risk_curve,
)
from crossfade.prior import concentration_formula, concentration_mle, mean_resultant_length
from crossfade.risk import (
    blend_directions,
    conditional_risk,
    expected_risk,
)
from crossfade.study import statistics, verdict
from crossfade.study.statistics import forecast_errors, reliability
from tests.fuzz import _hostile as hostile
from tests.fuzz._estimators import ROUNDING, n_features, probability
from tests.fuzz._hostile import ODD, or_odd, pick, seldom
from tests.fuzz._priors import PRIORS, directions, known, people, prior

# -- risks and directions --------------------------------------------------------------------------


@np.errstate(all="ignore")
def vector(rng, d):
    """A vector, or a batch of them; seldom something else."""
    v = rng.standard_normal(d)
    if seldom(rng, 3):
        v = v * pick(rng, hostile.SIZES)
    elif seldom(rng, 6):
        v = v * [pick(rng, hostile.SIZES) for _ in range(d)]
    odd = (
        lambda: np.zeros(d),
        lambda: v[:0],
        lambda: np.append(v, 1.0),
        lambda: np.where(np.arange(d) == 0, np.nan, v),
        lambda: v.astype(np.float32),
        lambda: v.tolist(),
        lambda: rng.standard_normal((3, d)),
        lambda: rng.standard_normal((2, 1, d)),
        lambda: rng.standard_normal((0, d)),
        lambda: v.astype(str),
        lambda: v.astype(complex),
        lambda: pick(rng, ODD),
    )
    return pick(rng, odd)() if seldom(rng, 5) else v


@np.errstate(all="ignore")
def covariance(rng, d):
    """A covariance, or a batch of them; seldom something else."""
    rank = pick(rng, (1, d, d, d, 2 * d))
    root = rng.standard_normal((d, rank))
    matrix = root @ root.T
    if seldom(rng, 3):
        matrix = matrix * pick(rng, hostile.SIZES)
    elif seldom(rng, 6):
        size = np.array([pick(rng, hostile.SIZES[7:-7]) for _ in range(d)])
        matrix = size[:, None] * matrix * size
    odd = (
        lambda: np.zeros((d, d)),
        lambda: np.eye(d) * pick(rng, hostile.SIZES),
        lambda: np.diag([pick(rng, hostile.SIZES) for _ in range(d)]),
        lambda: -matrix,
        lambda: matrix + rng.standard_normal((d, d)),
        lambda: matrix - 1e-3 * np.trace(matrix) * np.eye(d),
        lambda: matrix[:, :-1],
        lambda: matrix[0],
        lambda: np.where(np.eye(d) > 0, np.nan, matrix),
        lambda: matrix.astype(np.float32),
        lambda: matrix.tolist(),
        lambda: np.stack([matrix, np.eye(d), 2.0 * matrix]),
        lambda: matrix[None, None],
        lambda: np.zeros((0, d, d)),
        lambda: matrix.astype(complex),
        lambda: pick(rng, ODD),
    )
    return pick(rng, odd)() if seldom(rng, 4) else matrix


def _method(rng):
    how = {"method": or_odd(rng, *["deterministic"] * 6, "monte_carlo", one_in=20)}
    return how | {"n_draws": or_odd(rng, 2, 30, one_in=20), "random_state": 0}


def _risk(trial, found, what):
    """A risk and its error."""
    if found is not None:
        probability(trial, found[0], what)
        error = np.asarray(found[1])
        trial.check(np.isfinite(error).all() and (error >= 0).all(), f"{what} has error {error}")


def case_risk(trial):
    """Error rates of given directions and of noisy ones."""
    rng, d = trial.rng, n_features(trial.rng)
    omega, nu, sigma = vector(rng, d), vector(rng, d), covariance(rng, d)
    proportions = {"class_prior": hostile.class_prior(rng)}
    rate = trial.call(conditional_risk, omega, nu=nu, sigma=sigma, **proportions)
    if rate is not None:
        probability(trial, rate, "conditional_risk")
        plain = np.asarray(omega, np.float64)
        if np.abs(plain).max(initial=0.0) < 1e90:
            longer = trial.call(conditional_risk, 8.0 * plain, nu=nu, sigma=sigma, **proportions)
            same = longer is None or np.allclose(longer, rate, atol=1e-9)
            trial.check(same, f"a longer direction has another risk: {rate} and {longer}")
    other = covariance(rng, d)
    found = trial.call(expected_risk, omega, other, nu=nu, sigma=sigma, **proportions)
    _risk(trial, found, "expected_risk")
    alphas = or_odd(rng, [0.0, 0.5, 1.0], [0.3], np.linspace(0, 1, 5), one_in=10)
    pairs = (omega, other), (vector(rng, d), covariance(rng, d))
    if seldom(rng, 10):
        pairs = pick(rng, ((None, pairs[1]), (pairs[0], (1.0,)), ("ab", "cd")))
    found = trial.call(risk_curve, alphas, target=pairs[0], source=pairs[1], nu=nu, sigma=sigma)
    _risk(trial, found, "risk_curve")


def case_alpha(trial):
    """The weight of a person beside a crowd, and blends of directions."""
    rng, d = trial.rng, n_features(trial.rng)
    choice = trial.call(
        choose_alpha,
        prior(rng, d),
        half_gap=vector(rng, d),
        covariance=covariance(rng, d),
        n_samples=or_odd(
            rng, 2, 10, (3, 8), 1e6, 2.5, (1e-300, 1.0), 1e300, [1e9, 1e-9], one_in=10
        ),
        shrinkage=or_odd(rng, 0.0, 0.0, 0.3, 1.0, [0.1, 0.2, 0.3], one_in=10),
        psi=or_odd(rng, "tangent", "tangent", "authors", "printed", one_in=20),
        alphas=or_odd(rng, None, None, [0.0, 1.0], np.linspace(0, 1, 11), one_in=10),
        class_prior=hostile.class_prior(rng),
        **_method(rng),
    )
    if choice is not None:
        for name in ("alpha", "risk", "alphas", "risks"):
            probability(trial, getattr(choice, name), name)
        right = np.isfinite(choice.error).all() and (choice.error >= 0.0).all()
        trial.check(right, f"the error of a risk is {choice.error}")
        least = choice.risks.min(-1) + 1e-6 >= choice.risk
        trial.check(least.all(), f"alpha is not the best: {choice}")
    alpha = or_odd(rng, 0.0, 1.0, 0.5, 0.3, [0.2, 0.5, 0.7], one_in=8)
    blend = trial.call(blend_directions, vector(rng, d), vector(rng, d), alpha)
    if blend is not None:
        lengths = np.linalg.vector_norm(blend, axis=-1)
        right = np.isfinite(blend).all() and np.abs(lengths - 1.0).max(initial=0.0) <= ROUNDING
        trial.check(right, f"a blend has length {lengths}")


def case_vmf(trial):
    """Concentrations and normalizers of the von Mises-Fisher law."""
    rng = trial.rng
    length = or_odd(rng, 0.0, 1.0, rng.random(), 1.0 - 10.0 ** rng.uniform(-17, 0), one_in=8)
    small = 10.0 ** rng.uniform(-320, 0)
    length = small if seldom(rng, 5) else length
    d = or_odd(rng, 1, 2, 3, 10, 200, 5000, 10**6, 10**12, one_in=8)
    kappa = or_odd(rng, 0.0, rng.random(), 10.0 ** rng.uniform(-320, 308), 1e8, one_in=10)
    for function in (concentration_formula, concentration_mle):
        found = trial.call(function, length, d)
        trial.check(found is None or found >= 0.0, f"{function.__name__}({length}, {d}) = {found}")
    found = trial.call(mean_resultant_length, kappa, d)
    if found is not None:
        probability(trial, found, f"mean_resultant_length({kappa}, {d})")


# -- priors ----------------------------------------------------------------------------------------


def judge_prior(trial, crowd, folder=True):
    """Every answer of a prior must be one; saved and pickled it is the same."""
    text = trial.must(repr, crowd)
    if hasattr(crowd, "priors"):
        for pair in crowd.pairs:
            judge_prior(trial, crowd[pair], folder=False)
    else:
        probability(trial, crowd.resultant_length, "resultant_length")
        mu = trial.call(getattr, crowd, "mean_direction")
        if mu is not None:
            length = float(np.linalg.norm(mu))
            trial.check(abs(length - 1.0) <= ROUNDING, f"mean_direction has length {length!r}")
        trial.must(crowd.card)
    if isinstance(crowd, TaskPrior):
        trial.must(crowd.summary)
        kappa = trial.must(getattr, crowd, "concentration"), trial.must(crowd.concentration_mle)
        trial.check(min(kappa) >= 0.0, f"concentrations are {kappa}")
        scatter = trial.must(getattr, crowd, "scatter")
        right = np.isfinite(scatter).all() and np.linalg.eigvalsh(scatter).min() > -1e-9
        trial.check(right, f"scatter is {scatter}")
        psi = trial.call(crowd.standard_error, or_odd(trial.rng, "tangent", "authors", "printed"))
        trial.check(psi is None or np.isfinite(psi).all(), f"standard_error is {psi}")
    if folder:
        path = trial.folder / "prior.npz"
        trial.call(crowd.save, path)
        trial.check(trial.must(type(crowd).load, path) == crowd, f"{text} is another one in a file")
        again = trial.must(lambda: pickle.loads(pickle.dumps(crowd)))
        trial.check(again == crowd, f"{text} is another one in a pickle")


@np.errstate(all="ignore")
def projections(rng, d):
    """Directions of tasks; seldom something else."""
    W = directions(d, pick(rng, (1, 2, 3, 12)), seed=int(rng.integers(50)))
    odd = (
        lambda: W * 10.0 ** rng.uniform(-300, 300, (len(W), 1)),
        lambda: W * pick(rng, hostile.SIZES),
        lambda: np.concatenate([W, -W]),
        lambda: np.repeat(W[:1], 5, 0),
        lambda: np.zeros_like(W),
        lambda: np.where(rng.random(W.shape) < 0.5, 0.0, W),
        lambda: hostile.holes(rng, W),
        lambda: W * (1.0 + 1e-7),
        lambda: np.rint(W),
        lambda: hostile.dressed(rng, W),
        lambda: np.empty((0, d)),
        lambda: np.empty((3, 0)),
        lambda: hostile.samples(rng, np.arange(len(W)) % 2, d),
        lambda: pick(rng, ODD),
    )
    return pick(rng, odd)() if seldom(rng, 2) else W


def _about(rng, d):
    """What may be said of the features and classes of a prior."""
    scales = (10.0 ** rng.uniform(-9, 9, d), np.zeros(d), np.full(d, 1e-300), [np.nan] * d, [1.0])
    names = [f"f{place}" for place in range(d)]
    odd = {
        "feature_scale": lambda: or_odd(rng, None, *scales),
        "classes": lambda: or_odd(rng, (0, 1), ("a", "b"), (1, 0), (1, "a"), (1, 1), (0, 1, 2)),
        "feature_names": lambda: or_odd(rng, names, names[:-1], [1] * d, "abc"[:d]),
    }
    return {name: draw() for name, draw in odd.items() if seldom(rng, 4)}


def case_prior(trial):
    """Priors from directions and summaries; merged, updated and cut down."""
    rng, d = trial.rng, n_features(trial.rng)
    W = projections(rng, d)
    options = {"normalize": or_odd(rng, True, False, one_in=20)} | _about(rng, d)
    if seldom(rng, 5):
        mu, psi = vector(rng, d), covariance(rng, d)
        if seldom(rng, 2):
            mu, psi = np.eye(d)[0], np.eye(d) * 10.0 ** rng.uniform(-320, 300)
        n_tasks, form = or_odd(rng, 1, 2, 30), or_odd(rng, "auto", "tangent", "authors", "printed")
        made = trial.call(TaskPrior.from_summary, mu, psi, n_tasks, form=form, **_about(rng, d))
    else:
        options |= {
            "isotropic": or_odd(rng, True, False),
            "keep_directions": or_odd(rng, True, False),
        }
        made = trial.call(TaskPrior.from_projections, W, **options)
    if hostile.is_masked(W):
        trial.notes += ["a mask was ignored"] * (made is not None)
        return
    if made is None:
        return
    judge_prior(trial, made)
    turned = trial.must(made.reversed)
    trial.check(trial.must(turned.reversed).n_tasks == made.n_tasks, "reversed loses tasks")
    parts = [
        or_odd(rng, "outer_sum", "directions", "replay", "half_gap") for _ in range(rng.integers(3))
    ]
    changed = (
        lambda: made.update(projections(rng, d), normalize=or_odd(rng, True, False)),
        lambda: made + known(pick(rng, tuple(PRIORS)), d + seldom(rng, 5)),
        lambda: made + made,
        lambda: made.without(*parts),
        lambda: made.annotated(made_by=or_odd(rng, "us")),
    )
    after = trial.call(pick(rng, changed))
    if after is not None:
        judge_prior(trial, after)


def hostile_tasks(rng, d, n_classes=2):
    """Tasks of several people, of whom some are odd."""
    kind = pick(rng, tuple(hostile.KINDS)) if seldom(rng, 2) else "plain"
    tasks = []
    for place in range(pick(rng, (1, 2, 3, 5))):
        label = hostile.label_places(rng, n_classes)
        X = hostile.samples(rng, label, d, kind if not seldom(rng, 6) else None)
        y = hostile.named(rng, label) if seldom(rng, 20) else label
        X = hostile.dressed(rng, X) if seldom(rng, 20) else X
        options = {}
        if seldom(rng, 20):
            options["feature_names"] = or_odd(rng, [f"f{place}" for place in range(d)], "abc")
        if seldom(rng, 20):
            options["start"] = or_odd(rng, np.arange(len(label)), [np.nan] * len(label))
        if seldom(rng, 10):
            options["group"] = or_odd(rng, "g", 1, None)
        tasks.append((X, y, f"p{place}" if not seldom(rng, 20) else None, options))
    return tasks


def made_tasks(trial, d, n_classes=2):
    """The same as tasks; None if one is refused."""
    tasks = []
    for X, y, name, options in hostile_tasks(trial.rng, d, n_classes):
        task = trial.call(Task, X, y, name, **options)
        if hostile.is_masked(X):
            trial.notes += ["a mask was ignored"] * (task is not None)
            return None
        if task is None:
            return None
        trial.check(np.isfinite(task.X).all(), "a task holds what is no number")
        trial.must(repr, task)
        if trial.call(getattr, task, "classes") is None:
            return None
        tasks.append(task)
    return tasks


def case_sources(trial):
    """Priors of hostile tasks."""
    rng, d, many = trial.rng, n_features(trial.rng), seldom(trial.rng, 4)
    tasks = made_tasks(trial, d, 3 if many else 2)
    if tasks is None:
        return
    options = {
        "discriminant": None
        if seldom(rng, 2)
        else FisherDiscriminant(shrinkage=hostile.shrinkage(rng)),
        "feature_scale": or_odd(rng, *["auto"] * 4, None, np.ones(d), np.full(d, 1e-90), one_in=20),
        "isotropic": or_odd(rng, False, False, True, one_in=20),
    }
    options |= {
        "keep_directions": or_odd(rng, True, False, one_in=20),
        "class_means": or_odd(rng, True, True, False, one_in=20),
        "replay": or_odd(rng, True, False, False, one_in=20),
        "centred": or_odd(rng, *["auto"] * 4, None, "person", one_in=20),
    }
    kind = TaskPrior
    if many:
        kind = MulticlassPrior
        options["strategy"] = or_odd(rng, "pairwise", "pairwise", "one-vs-rest", one_in=20)
    made = trial.call(kind.from_tasks, tasks, **options)
    if made is None:
        return
    judge_prior(trial, made)
    if kind is TaskPrior and len(tasks) > 1:
        turned = trial.must(kind.from_tasks, tasks[::-1], **options)
        away = np.abs(turned.direction_sum - made.direction_sum).max()
        trial.check(away <= 1e-6 * len(tasks), f"the order of tasks moves directions by {away:.3g}")
    if seldom(rng, 3):
        other = trial.call(lambda: made + made)
        if other is not None:
            judge_prior(trial, other)


def case_release(trial):
    """Priors released with hostile budgets."""
    rng, d = trial.rng, n_features(trial.rng)
    made = known(pick(rng, tuple(PRIORS)), d)
    if not hasattr(made, "released"):
        return
    epsilon = or_odd(rng, 1.0, 1e-3, 1e3, 10.0 ** rng.uniform(-12, 3), one_in=4)
    delta = or_odd(rng, 1e-6, 0.5, 1e-300, 10.0 ** rng.uniform(-300, 0), one_in=4)
    out = trial.call(made.released, epsilon, delta)
    if out is not None:
        judge_prior(trial, out)
        fields = {
            "epsilon": epsilon,
            "delta": delta,
            "noise": pick(rng, ODD),
            "scale_covered": True,
        }
        trial.call(lambda: replace(made, release=fields))


# -- tasks, tables and studies ---------------------------------------------------------------------


@np.errstate(all="ignore")
def frame(rng, d):
    """A table of tasks; seldom something else."""
    n = int(rng.integers(0, 12))
    label = np.arange(n) % 2
    table = pd.DataFrame(hostile.samples(rng, label, d), columns=[f"x{k}" for k in range(d)])
    table.insert(0, "label", label)
    table.insert(0, "task", rng.choice(["p1", "p2"], n))
    odd = (
        lambda: table.drop(columns="task"),
        lambda: table.drop(columns="label"),
        lambda: table[["task", "label"]],
        lambda: table.assign(x0=hostile.holes(rng, np.ones(n))),
        lambda: table.assign(x0="a"),
        lambda: table.assign(x0=pd.Timestamp(0)),
        lambda: table.assign(x0=1j),
        lambda: table.assign(x0=[[1]] * n),
        lambda: table.assign(x0=table["x0"] > 0.0),
        lambda: table.assign(label=rng.standard_normal(n)),
        lambda: table.assign(label=[1 if k % 2 else "a" for k in range(n)]),
        lambda: table.assign(label=None),
        lambda: table.assign(label=[{}] * n),
        lambda: table.assign(label=pd.Categorical(label)),
        lambda: table.assign(label=pd.array(label, dtype="Int64")),
        lambda: table.assign(task=np.arange(n) % 3),
        lambda: table.assign(task=None),
        lambda: table.assign(task=[[1]] * n),
        lambda: table.assign(group="g"),
        lambda: table.assign(group=rng.choice(["g", "h"], n)),
        lambda: table.assign(group=np.nan),
        lambda: table.assign(start=np.arange(n)),
        lambda: table.assign(start="now"),
        lambda: table.assign(start=np.nan),
        lambda: table.set_index("task"),
        lambda: table.iloc[:, ::-1],
        lambda: table.astype(object),
        lambda: table.iloc[:0],
        lambda: pd.concat([table, table]),
        lambda: table.convert_dtypes(),
        lambda: pick(rng, ODD),
    )
    return pick(rng, odd)() if seldom(rng, 2) else table


def case_table(trial):
    """Tasks from a table, and back."""
    rng, d = trial.rng, n_features(trial.rng)
    table = frame(rng, d)
    found = trial.call(TaskSet.from_frame, table, missing=or_odd(rng, "drop", "error", one_in=10))
    if found is None:
        return
    for task in found:
        trial.check(np.isfinite(task.X).all(), "a task holds what is no number")
    written = trial.call(found.to_frame)
    if written is not None:
        again = trial.must(TaskSet.from_frame, written)
        same = all(np.array_equal(a.X, b.X) for a, b in zip(found, again, strict=True))
        trial.check(same, "a table that is written and read is another one")


def case_split(trial):
    """Rows to train on and to test on."""
    rng = trial.rng
    n = pick(rng, (0, 1, 4, 20, 40, 40, 60))
    label = np.arange(n) % pick(rng, (1, 2, 2, 2, 2, 3))
    groups = rng.integers(0, pick(rng, (1, 2, 2, 2, 4)), n)
    y = hostile.named(rng, label) if n else label
    split = CalibrationSplit(
        or_odd(rng, 1, 2, 4, 0.2, (1, 2), 0, 10**30),
        or_odd(rng, "consecutive", "chronological", "random", one_in=10),
        n_splits=or_odd(rng, 1, 3, one_in=10),
        random_state=or_odd(rng, 0, None, one_in=10),
    )
    groups = pick(rng, (*[groups] * 9, groups.astype(str), groups.tolist(), None, groups[1:]))
    X = np.zeros((n, 2)) if not seldom(rng, 15) else pick(rng, ODD)
    rows = trial.call(lambda: list(split.split(X, y, groups)))
    trial.call(split.get_n_splits, X, y, groups)
    for train, test in rows or ():
        whole = np.concatenate([train, test])
        right = np.array_equal(np.sort(whole), np.arange(n)) and test.size
        trial.check(right, f"{len(train)} and {len(test)} rows of {n}")


_METHODS = ("target", "average-source", "convex", "posterior", "oracle", "paper", "lda")
_METHODS += (
    "target-shrunk",
    "posterior-unlabelled",
    "lda-pooled",
    "lda-calibrated",
)


def case_study(trial):
    """Studies of few hostile people."""
    rng, d = trial.rng, pick(trial.rng, (1, 2, 3))
    tasks = made_tasks(trial, d, pick(rng, (2, 2, 3)))
    if tasks is None:
        return
    tasks += people(d, 2, (5, 5)) if seldom(rng, 2) else []
    tasks = [Task(task.X, task.y, f"t{place}") for place, task in enumerate(tasks)]
    study = trial.call(
        CalibrationStudy,
        tasks,
        methods=or_odd(rng, *[rng.choice(_METHODS, 2, replace=False).tolist()] * 9, one_in=10),
        budgets=or_odd(rng, [1], [0.3], [2, 0.5], [(1, 2)], [0], one_in=10),
        n_splits=or_odd(rng, 1, 2, one_in=20),
        splits=or_odd(rng, "consecutive", "chronological", "random", one_in=20),
        random_state=or_odd(rng, 0, 1, one_in=20),
        forecasts=bool(seldom(rng, 2)),
    )
    if study is None:
        return
    result = trial.call(study.run)
    if result is None:
        return
    rows = result.rows
    for name in ("balanced_accuracy", "accuracy", "alpha", "expected_accuracy", "roc_auc"):
        numbers = rows[name].to_numpy(float)
        probability(trial, numbers[~np.isnan(numbers)], name)
    _statistics(trial, rows)


def _statistics(trial, rows):
    """What the statistics make of rows."""
    trial.call(statistics.summarise, rows)
    method, against = or_odd(trial.rng, *_METHODS[:4]), or_odd(trial.rng, *_METHODS[:4])
    table = trial.call(statistics.compare, rows, against)
    if table is not None and len(table):
        p = table["p_value"].to_numpy(float)
        probability(trial, p[~np.isnan(p)], "p_value")
    trial.call(statistics.labels_saved, rows, method, against)
    trial.call(forecast_errors, rows)
    trial.call(reliability, rows, or_odd(trial.rng, 10, 1))
    trial.call(verdict, rows)


@cache
def _rows():
    study = CalibrationStudy(
        people(2, 6, (8, 8)),
        methods=list(_METHODS[:4]),
        budgets=[1, 3],
        n_splits=2,
        random_state=0,
        forecasts=False,
    )
    return study.run().rows


def case_statistics(trial):
    """Statistics of rows in which something is odd."""
    rng = trial.rng
    rows = _rows().copy()
    column = pick(rng, tuple(rows.columns))
    some = rng.random(len(rows)) < pick(rng, (0.1, 0.6, 1.1))
    value = pick(rng, (np.nan, np.inf, -1.0, 0.0, 1e300, "a", None, 0.5, 2, -np.inf))
    changed = (
        lambda: rows.assign(**{column: rows[column].astype(object).mask(some, value)}),
        lambda: rows.drop(columns=column),
        lambda: rows[some],
        lambda: rows.iloc[:0],
        lambda: pd.concat([rows, rows]),
        lambda: rows.sample(frac=1.0, random_state=int(rng.integers(100))),
        lambda: rows.to_numpy(),
        lambda: rows.to_dict(),
    )
    _statistics(trial, pick(rng, changed)())
    p = pick(
        rng, (rng.random(4), [np.nan, 0.5], [], [2.0], [-1.0], "ab", [[0.1]], 0.3, [1e-320], None)
    )
    corrected = trial.call(statistics.holm, p)
    if corrected is not None:
        probability(trial, corrected[~np.isnan(corrected)], "holm")
        least = np.asarray(p)[~np.isnan(p)] <= corrected[~np.isnan(corrected)] + 1e-15
        trial.check(least.all(), f"holm makes {p} smaller: {corrected}")
    trial.call(statistics.p_text, pick(rng, (0.5, 1e-9, np.nan, 0.0, 1.0, np.inf)))


CASES = {
    "risk": (case_risk, 4),
    "alpha": (case_alpha, 3),
    "vmf": (case_vmf, 1),
    "prior": (case_prior, 4),
    "sources": (case_sources, 3),
    "release": (case_release, 0.2),
    "table": (case_table, 1),
    "split": (case_split, 1),
    "study": (case_study, 0.3),
    "statistics": (case_statistics, 0.1),
}

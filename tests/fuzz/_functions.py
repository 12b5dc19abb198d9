"""Cases of priors, tasks, studies and functions of arrays."""

import pickle

import numpy as np

from crossfade import (
    CalibrationStudy,
    FisherDiscriminant,
    Task,
    TaskPrior,
    choose_alpha,
    risk_curve,
)
from crossfade.risk import blend_directions, conditional_risk, expected_risk
from crossfade.study import verdict
from crossfade.study.statistics import forecast_errors, reliability
from tests.fuzz import _hostile as hostile
from tests.fuzz._estimators import ROUNDING, probability
from tests.fuzz._hostile import ODD, or_odd, pick, seldom


@np.errstate(all="ignore")
def vector(rng, d):
    """A vector, or a batch of them; seldom something else."""
    v = rng.standard_normal(d)
    if seldom(rng, 3):
        v = v * (pick(rng, hostile.SIZES) if seldom(rng, 2) else rng.choice(hostile.SIZES, d))
    odd = (
        lambda: np.zeros(d),
        lambda: v[:0],
        lambda: np.append(v, 1.0),
        lambda: np.where(np.arange(d) == 0, np.nan, v),
        lambda: v.tolist(),
        lambda: rng.standard_normal((3, d)),
        lambda: rng.standard_normal((0, d)),
        lambda: v.astype(complex),
        lambda: pick(rng, ODD),
    )
    return pick(rng, odd)() if seldom(rng, 5) else v


@np.errstate(all="ignore")
def covariance(rng, d):
    """A covariance, or a batch of them; seldom something else."""
    root = rng.standard_normal((d, pick(rng, (1, d, d, d, 2 * d))))
    matrix = root @ root.T
    if seldom(rng, 3):
        matrix = matrix * pick(rng, hostile.SIZES)
    odd = (
        lambda: np.zeros((d, d)),
        lambda: np.diag(rng.choice(hostile.SIZES, d)),
        lambda: -matrix,
        lambda: matrix + rng.standard_normal((d, d)),
        lambda: matrix[:, :-1],
        lambda: matrix[0],
        lambda: np.where(np.eye(d) > 0, np.nan, matrix),
        lambda: matrix.tolist(),
        lambda: np.stack([matrix, np.eye(d), 2.0 * matrix]),
        lambda: np.zeros((0, d, d)),
        lambda: matrix.astype(complex),
        lambda: pick(rng, ODD),
    )
    return pick(rng, odd)() if seldom(rng, 4) else matrix


def case_risk(trial):
    """Error rates of given directions and of noisy ones."""
    rng, d = trial.rng, hostile.n_features(trial.rng)
    omega, nu, sigma = vector(rng, d), vector(rng, d), covariance(rng, d)
    proportions = {"class_prior": hostile.class_prior(rng)}
    rate = trial.call(conditional_risk, omega, nu=nu, sigma=sigma, **proportions)
    if rate is not None:
        probability(trial, rate, "conditional_risk")
    other = covariance(rng, d)
    alphas = or_odd(rng, [0.0, 0.5, 1.0], [0.3], np.linspace(0, 1, 5), one_in=10)
    pairs = (omega, other), (vector(rng, d), covariance(rng, d))
    if seldom(rng, 10):
        pairs = pick(rng, ((None, pairs[1]), (pairs[0], (1.0,)), ("ab", "cd")))
    gaps = {"nu": nu, "sigma": sigma}
    for name, found in {
        "expected_risk": trial.call(expected_risk, omega, other, **gaps, **proportions),
        "risk_curve": trial.call(risk_curve, alphas, target=pairs[0], source=pairs[1], **gaps),
    }.items():
        if found is not None:
            probability(trial, found[0], name)
            error = np.asarray(found[1])
            right = np.isfinite(error).all() and (error >= 0.0).all()
            trial.check(right, f"{name} has error {error}")


def case_alpha(trial):
    """The weight of a person beside a crowd, and blends of directions."""
    rng, d = trial.rng, hostile.n_features(trial.rng)
    counts = (2, 10, (3, 8), 1e6, 2.5, (1e-300, 1.0), [1e9, 1e-9])
    choice = trial.call(
        choose_alpha,
        hostile.prior(rng, d),
        half_gap=vector(rng, d),
        covariance=covariance(rng, d),
        n_samples=or_odd(rng, *counts, one_in=10),
        shrinkage=or_odd(rng, 0.0, 0.0, 0.3, 1.0, [0.1, 0.2, 0.3], one_in=10),
        psi=or_odd(rng, "tangent", "tangent", "authors", "printed", one_in=20),
        alphas=or_odd(rng, None, None, [0.0, 1.0], np.linspace(0, 1, 11), one_in=10),
        class_prior=hostile.class_prior(rng),
        random_state=0,
    )
    if choice is not None:
        for name in ("alpha", "risk", "alphas", "risks"):
            probability(trial, getattr(choice, name), name)
        least = choice.risks.min(-1) + 1e-6 >= choice.risk
        trial.check(least.all(), f"alpha is not the best: {choice}")
    alpha = or_odd(rng, 0.0, 1.0, 0.5, [0.2, 0.5, 0.7], one_in=8)
    blend = trial.call(blend_directions, vector(rng, d), vector(rng, d), alpha)
    if blend is not None:
        lengths = np.linalg.vector_norm(blend, axis=-1)
        right = np.isfinite(blend).all() and np.abs(lengths - 1.0).max(initial=0.0) <= ROUNDING
        trial.check(right, f"a blend has length {lengths}")


def judge_prior(trial, crowd):
    """Every answer of a prior must be one; saved and pickled it is the same."""
    text = trial.must(repr, crowd)
    trial.must(crowd.card)
    if crowd.n_classes == 2:
        probability(trial, crowd.resultant_length, "resultant_length")
        mu = trial.call(getattr, crowd, "mean_direction")
        unit = mu is None or abs(float(np.linalg.norm(mu)) - 1.0) <= ROUNDING
        trial.check(unit, f"mean_direction is {mu}")
        trial.check(trial.must(getattr, crowd, "concentration") >= 0.0, "a negative concentration")
        scatter = trial.must(getattr, crowd, "scatter")
        right = np.isfinite(scatter).all() and np.linalg.eigvalsh(scatter).min() > -1e-9
        trial.check(right, f"scatter is {scatter}")
    path = trial.folder / "prior.npz"
    trial.must(lambda: [crowd.save(path)])
    trial.check(trial.must(TaskPrior.load, path) == crowd, f"{text} is another one in a file")
    again = trial.must(lambda: pickle.loads(pickle.dumps(crowd)))
    trial.check(again == crowd, f"{text} is another one in a pickle")


@np.errstate(all="ignore")
def projections(rng, d):
    """Directions of tasks; seldom something else."""
    W = hostile.directions(d, pick(rng, (1, 2, 3, 12)), seed=int(rng.integers(50)))
    odd = (
        lambda: W * 10.0 ** rng.uniform(-300, 300, (len(W), 1)),
        lambda: np.concatenate([W, -W]),
        lambda: np.zeros_like(W),
        lambda: hostile.holes(rng, W),
        lambda: W * (1.0 + 1e-7),
        lambda: hostile.dressed(rng, W),
        lambda: np.empty((0, d)),
        lambda: np.empty((3, 0)),
        lambda: pick(rng, ODD),
    )
    return pick(rng, odd)() if seldom(rng, 2) else W


def case_prior(trial):
    """Priors from directions and summaries; merged, updated and cut down."""
    rng, d = trial.rng, hostile.n_features(trial.rng)
    scales = (10.0 ** rng.uniform(-9, 9, d), np.zeros(d), np.full(d, 1e-300), [np.nan] * d, [1.0])
    names = [f"f{place}" for place in range(d)]
    odd = {
        "feature_scale": lambda: or_odd(rng, None, *scales),
        "classes": lambda: or_odd(rng, (0, 1), ("a", "b"), (1, 0), (1, "a"), (1, 1), (0, 1, 2)),
        "feature_names": lambda: or_odd(rng, names, names[:-1], [1] * d, "abc"[:d]),
    }
    about = {name: draw() for name, draw in odd.items() if seldom(rng, 4)}
    if seldom(rng, 5):
        mu, psi = vector(rng, d), covariance(rng, d)
        form = or_odd(rng, "auto", "tangent", "authors", "printed")
        made = trial.call(
            TaskPrior.from_summary, mu, psi, or_odd(rng, 1, 2, 30), form=form, **about
        )
    else:
        about |= {"isotropic": or_odd(rng, True, False), "normalize": or_odd(rng, True, False)}
        made = trial.call(TaskPrior.from_projections, projections(rng, d), **about)
    if made is None:
        return
    judge_prior(trial, made)
    changed = (
        lambda: made.update(projections(rng, d)),
        lambda: made + hostile.known(pick(rng, tuple(hostile.PRIORS)), d + seldom(rng, 5)),
        lambda: made + made,
        lambda: made.without(or_odd(rng, "directions", "class_means")),
        lambda: made.annotated(made_by=or_odd(rng, "us")),
    )
    after = trial.call(pick(rng, changed))
    if after is not None:
        judge_prior(trial, after)


def hostile_tasks(trial, d, n_classes=2):
    """Tasks of several people, of whom some are odd; None if one is refused."""
    rng, tasks = trial.rng, []
    kind = pick(rng, tuple(hostile.KINDS)) if seldom(rng, 2) else "plain"
    for place in range(pick(rng, (1, 2, 3, 5))):
        label = hostile.label_places(rng, n_classes)
        X = hostile.samples(rng, label, d, kind if not seldom(rng, 6) else None)
        y = hostile.named(rng, label) if seldom(rng, 20) else label
        X = hostile.dressed(rng, X) if seldom(rng, 20) else X
        options = {"group": or_odd(rng, "g", 1, None)} if seldom(rng, 10) else {}
        if seldom(rng, 20):
            options["feature_names"] = or_odd(rng, [f"f{place}" for place in range(d)], "abc")
        task = trial.call(Task, X, y, f"p{place}" if not seldom(rng, 20) else None, **options)
        if task is None or trial.call(getattr, task, "classes") is None:
            return None
        trial.check(np.isfinite(task.X).all(), "a task holds what is no number")
        tasks.append(task)
    return tasks


def case_sources(trial):
    """Priors of hostile tasks."""
    rng, d, many = trial.rng, hostile.n_features(trial.rng), bool(seldom(trial.rng, 4))
    tasks = hostile_tasks(trial, d, 3 if many else 2)
    if tasks is None:
        return
    discriminant = FisherDiscriminant(shrinkage=hostile.shrinkage(rng))
    options = {
        "discriminant": pick(rng, (None, None, discriminant)),
        "feature_scale": or_odd(rng, *["auto"] * 4, None, np.ones(d), np.full(d, 1e-90), one_in=20),
        "rehearse": bool(seldom(rng, 3)),
    }
    made = trial.call(TaskPrior.from_tasks, tasks, **options)
    if made is None:
        return
    judge_prior(trial, made)
    turned = trial.must(TaskPrior.from_tasks, tasks[::-1], **options)
    if not many:
        away = np.abs(turned.mean - made.mean).max()
        trial.check(away <= 1e-6, f"the order of tasks moves the mean direction by {away:.3g}")


def case_study(trial):
    """Studies of few hostile people, and what their statistics make of the rows."""
    rng, d = trial.rng, pick(trial.rng, (1, 2, 3))
    tasks = hostile_tasks(trial, d, pick(rng, (2, 2, 3)))
    if tasks is None:
        return
    tasks += hostile.people(d, 2, (5, 5)) if seldom(rng, 2) else []
    tasks = [Task(task.X, task.y, f"t{place}") for place, task in enumerate(tasks)]
    methods = ["target", "average-source", "convex", "posterior", "hierarchical", "paper", "lda"]
    study = trial.call(
        CalibrationStudy,
        tasks,
        methods=or_odd(rng, *[rng.choice(methods, 2, replace=False).tolist()] * 9, one_in=10),
        budgets=or_odd(rng, [1], [0.3], [2, 0.5], [(1, 2)], [0], one_in=10),
        n_splits=or_odd(rng, 1, 2, one_in=20),
        random_state=or_odd(rng, 0, 1, one_in=20),
        forecasts=bool(seldom(rng, 2)),
    )
    result = None if study is None else trial.call(study.run)
    if result is None:
        return
    for name in ("balanced_accuracy", "accuracy", "alpha", "expected_accuracy"):
        numbers = result.rows[name].to_numpy(float)
        probability(trial, numbers[~np.isnan(numbers)], name)
    for function in (forecast_errors, reliability, verdict):
        trial.call(function, result)
    trial.call(result.needed, accuracy=or_odd(rng, 0.7, 1.0), share=or_odd(rng, 0.8, 0.1))


CASES = {
    "risk": (case_risk, 4),
    "alpha": (case_alpha, 3),
    "prior": (case_prior, 4),
    "sources": (case_sources, 3),
    "study": (case_study, 0.3),
}

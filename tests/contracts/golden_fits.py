"""Priors, fits and studies whose numbers are frozen, all by public names and seeded draws.

``test_golden.py`` compares what they give with the files in ``golden/``; ``make_golden.py`` writes
these.
"""

import warnings
from functools import cache, partial

import numpy as np

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
    choose_alpha,
    forecast_labels,
    load_model,
    risk_curve,
    save_model,
    simulate,
)
from crossfade.prior import Origin, Release, Space
from crossfade.risk import blend_directions, conditional_risk, expected_risk
from crossfade.study import CalibrationStudy

#: Matrices of more features are kept as their product with a fixed vector.
LARGEST_MATRIX = 6


def draw_samples(n_features=4, n_each=(8, 8), seed=0, gap=1.0, alike=0.4, crowd=0):
    """Samples of two classes or more, neighbours alike, in features of unlike size.

    Class means lie along a common direction of each pair, which depends on `crowd` only, and a
    direction of the participant's own, which depends on `seed`.
    """
    rng = np.random.default_rng([seed, n_features, *n_each])
    common = np.random.default_rng([1000 + crowd, n_features])
    means = common.standard_normal((len(n_each), n_features))
    means += 0.4 * rng.standard_normal(means.shape)
    means *= gap * 1.5 / np.sqrt(n_features)
    mix = np.eye(n_features) + 0.3 * common.standard_normal((n_features,) * 2) / n_features**0.5
    parts = []
    for mean, n_samples in zip(means, n_each, strict=True):
        noise = rng.standard_normal((n_samples, n_features))
        for place in range(1, n_samples):
            noise[place] = alike * noise[place - 1] + np.sqrt(1 - alike**2) * noise[place]
        parts.append(mean + noise @ mix)
    X = np.concatenate(parts) * np.linspace(0.5, 3.0, n_features) + 10.0
    return X, np.repeat(np.arange(len(n_each)), n_each)


def draw_tasks(n_tasks, n_features, n_each=(12, 10), labels=(0, 1), first=100, groups=0, **options):
    """Tasks around one crowd."""
    tasks = []
    for place in range(n_tasks):
        X, y = draw_samples(n_features, n_each, seed=first + place, **options)
        group = f"g{place // groups}" if groups else None
        tasks.append(Task(X, np.array(labels)[y], f"p{place}", group=group))
    return tasks


def draw_unit(n_tasks, n_features, seed=0, spread=0.4):
    """Unit vectors around a direction in which every feature has a part."""
    rng = np.random.default_rng([seed, n_tasks, n_features])
    W = spread * rng.standard_normal((n_tasks, n_features))
    W += np.cos(np.arange(n_features)) / np.sqrt(n_features / 2.0)
    return W / np.linalg.norm(W, axis=1, keepdims=True)


def composition(X):
    """The same samples with features that sum to one."""
    parts = np.exp((X - X.mean(0)) / (2.0 * X.std(0)))
    return parts / parts.sum(1, keepdims=True)


def with_constant(X):
    """The same samples with a feature that never changes."""
    return np.concatenate([X[:, :2], np.full((len(X), 1), 3.0), X[:, 2:]], 1)


def changed(tasks, change):
    return [Task(change(np.asarray(task.X)), task.y, task.name) for task in tasks]


def _plain(d, **options):
    return partial(TaskPrior.from_projections, draw_unit(20, d), **options)


def _released(d, n_tasks, noise, isotropic):
    W = draw_unit(n_tasks, d, 5, 0.3)
    exact = TaskPrior.from_projections(W, isotropic=isotropic)
    release = Release(epsilon=1.0, delta=1e-5, noise=noise, scale_covered=True)
    space = Space(np.linspace(0.5, 3.0, d), classes=(0, 1))
    return TaskPrior(space, exact.sums, Origin(release=release))


def _summary(form):
    exact = TaskPrior.from_projections(draw_unit(20, 4), feature_scale=[0.5, 1.0, 2.0, 3.0])
    return TaskPrior.from_summary(
        exact.mean_direction,
        exact.standard_error(form),
        20,
        form=form,
        feature_scale=exact.feature_scale,
        classes=(0, 1),
    )


def _cancelling():
    W = draw_unit(5, 4, 3)
    return TaskPrior.from_projections(np.concatenate([W, -W * [1, 1, 1, 0.999999]]), normalize=True)


_RAW = FisherDiscriminant(shrinkage=None)
_SCALE = [0.6, 1.2, 2.0, 3.1]

PRIORS = {
    "tasks": lambda: TaskPrior.from_tasks(draw_tasks(8, 4)),
    "tasks isotropic": lambda: TaskPrior.from_tasks(draw_tasks(8, 4), isotropic=True),
    "tasks raw": lambda: TaskPrior.from_tasks(draw_tasks(8, 4), _RAW, None),
    "tasks scaled": lambda: TaskPrior.from_tasks(draw_tasks(8, 4), feature_scale=_SCALE),
    "tasks text": lambda: TaskPrior.from_tasks(draw_tasks(8, 4, labels=("rest", "task"))),
    "tasks one": lambda: TaskPrior.from_tasks(draw_tasks(1, 4)),
    "tasks two": lambda: TaskPrior.from_tasks(draw_tasks(2, 4)),
    "tasks unlike": lambda: TaskPrior.from_tasks(draw_tasks(8, 4, n_each=(7, 15), alike=0.8)),
    "tasks d=1": lambda: TaskPrior.from_tasks(draw_tasks(6, 1)),
    "tasks d=2": lambda: TaskPrior.from_tasks(draw_tasks(6, 2)),
    "tasks d=12": lambda: TaskPrior.from_tasks(draw_tasks(20, 12)),
    "tasks d=30": lambda: TaskPrior.from_tasks(draw_tasks(10, 30)),
    "tasks d=300": lambda: TaskPrior.from_tasks(draw_tasks(5, 300, n_each=(6, 7))),
    "tasks d=300 isotropic": lambda: TaskPrior.from_tasks(
        draw_tasks(5, 300, n_each=(6, 7)), isotropic=True
    ),
    "tasks tied": lambda: TaskPrior.from_tasks(changed(draw_tasks(8, 5), composition)),
    "tasks constant": lambda: TaskPrior.from_tasks(changed(draw_tasks(8, 3), with_constant)),
    "unit": _plain(4, feature_scale=_SCALE),
    "unit isotropic": _plain(4, feature_scale=_SCALE, isotropic=True),
    "unit d=1": _plain(1),
    "unit d=30 isotropic": _plain(30, isotropic=True),
    "unit d=300 isotropic": _plain(300, isotropic=True),
    "one direction": lambda: TaskPrior.from_projections(draw_unit(1, 4)),
    "summary tangent": partial(_summary, "tangent"),
    "summary authors": partial(_summary, "authors"),
    "summary printed": partial(_summary, "printed"),
    "cancelling": _cancelling,
    "released": partial(_released, 4, 30, 2.0, False),
    "released isotropic": partial(_released, 4, 30, 2.0, True),
    "released noisy": partial(_released, 4, 10, 20.0, False),
    "merged": lambda: (
        TaskPrior.from_tasks(draw_tasks(5, 4), feature_scale=_SCALE)
        + TaskPrior.from_tasks(draw_tasks(3, 4, first=300), feature_scale=_SCALE)
    ),
    "updated": lambda: prior_of("unit").update(draw_unit(5, 4, 9)),
}
MANY = {
    f"k={k}": partial(
        lambda k: TaskPrior.from_tasks(draw_tasks(7, 4, (9, 8, 10, 7, 8)[:k], tuple("abcde"[:k]))),
        k,
    )
    for k in (2, 3, 4, 5)
}


@cache
def prior_of(name):
    """A prior by its name."""
    if name == "none":
        return None
    return (PRIORS | MANY)[name]()


def _matrix(values):
    """A small matrix, or what a fixed vector makes of a large one."""
    values = np.asarray(values)
    return values if len(values) <= LARGEST_MATRIX else values @ np.cos(np.arange(len(values)))


def numbers_of_prior(prior):
    """All that a prior says in numbers."""
    if prior.n_classes > 2:
        return {"feature_scale": prior.feature_scale, "means": prior.class_means.mean_sum}
    found = {
        "n_tasks": prior.n_tasks,
        "direction_sum": prior.directions.direction,
        "feature_scale": prior.feature_scale,
        "mean": prior.mean,
        "scatter": _matrix(prior.scatter),
        "resultant_length": prior.resultant_length,
    }
    if prior.resultant_length > 1e-3:
        found["mean_direction"] = prior.mean_direction
    if 1e-3 < prior.resultant_length < 1.0 - 1e-9:
        # Of one direction these are infinite, but for rounding.
        found["concentration"] = prior.concentration
        found["concentration_mle"] = prior.concentration_mle()
        for form in ("tangent", "authors", "printed"):
            found[f"standard_error {form}"] = _matrix(prior.standard_error(form))
    sums = prior.directions
    for name in ("autocorrelation", "noise", "outer", "within"):
        value = sums.outer if name == "outer" else sums.average(name)
        if value is not None:
            found[name] = _matrix(value) if np.ndim(value) == 2 else value
    return found


class Fit:
    """A fitted estimator and the samples that it saw.

    `loose` are fits that minimise over a continuous weight: their directions are as exact as it.
    """

    def __init__(self, estimator, X, loose=False):
        self.estimator, self.X, self.loose = estimator, X, loose

    @property
    def points(self):
        z = np.random.default_rng([99, self.X.shape[1]]).standard_normal((4, self.X.shape[1]))
        return self.X.mean(0) + self.X.std(0) * z


def _fit(make, change=None, labels=(0, 1), drop=None, **options):
    """Fit to new samples of the crowd; `options` are those of the draw."""
    d, n_each, seed = options.pop("d", 4), options.pop("n", (6, 5)), options.pop("seed", 1)
    weighted, after = options.pop("weighted", False), options.pop("after", None)
    X, y = draw_samples(d, n_each, seed=seed, **options)
    if change is not None:
        X = change(X)
    y = np.array(labels)[y]
    if drop is not None:
        X, y = X[y != drop], y[y != drop]
    estimator = make()
    more = {"sample_weight": 0.25 * (np.arange(len(y)) % 5) + 0.5} if weighted else {}
    # Of sources that cancel out a blend warns; that it does is in the table of refusals.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The directions of the prior's")
        estimator.fit(X, y, **more)
    if after is not None:
        after(estimator, X)
    return Fit(estimator, X, _is_loose(estimator))


def _is_loose(estimator):
    if isinstance(estimator, PosteriorBlendClassifier):
        return estimator.strength == "risk"
    if isinstance(estimator, ConvexBlendClassifier):
        chosen = estimator.alpha is None and estimator.recipe == "exact"
        return chosen and estimator.prior is not None
    return False


def _convex(prior="tasks", **options):
    return lambda: ConvexBlendClassifier(prior_of(prior), **options)


def _posterior(prior="tasks", **options):
    return lambda: PosteriorBlendClassifier(prior_of(prior), **options)


def _hierarchical(prior="tasks", **options):
    return lambda: HierarchicalBlendClassifier(prior_of(prior), **options)


def _paper(prior="tasks raw", **options):
    return lambda: ConvexBlendClassifier.paper(prior_of(prior), random_state=0, **options)


def _chunks(make, sizes, **options):
    """Fit in chunks, the classes in turn."""
    X, y = draw_samples(4, (6, 5), seed=1)
    order = np.argsort(np.arange(len(y)) % 6, kind="stable")
    X, y = X[order], y[order]
    estimator = make()
    for part in np.split(np.arange(len(y)), sizes):
        estimator.partial_fit(X[part], y[part], **options)
    return Fit(estimator, X, _is_loose(estimator))


def _domains(make):
    tasks = draw_tasks(5, 4)
    X, y = draw_samples(4, (6, 5), seed=1)
    rows = np.concatenate([*(np.asarray(task.X) for task in tasks), X])
    labels = np.concatenate([*(np.asarray(task.y) for task in tasks), y])
    domain = np.repeat([1, 2, 3, 4, 5, -6], [len(task.y) for task in tasks] + [len(y)])
    labels[-1] = -1
    estimator = make().fit(rows, labels, sample_domain=domain)
    return Fit(estimator, X, _is_loose(estimator))


def _weights_of_zero(make):
    X, y = draw_samples(4, (6, 5), seed=1)
    return Fit(make().fit(X, y, sample_weight=np.arange(len(y)) % 3 / 1.0), X)


def _threshold(estimator, X):
    estimator.partial_fit(_unlabelled(X.shape[1], (30, 25)), None)


def _unlabelled(d, n_each):
    return draw_samples(d, n_each, seed=1)[0] + 0.3


def _fisher_fits():
    for d, n in ((1, (3, 4)), (2, (1, 1)), (4, (6, 5)), (12, (5, 5)), (30, (50, 50))):
        for shrinkage in ("oas", 0.3, None):
            yield (
                f"d={d} n={sum(n)} {shrinkage}",
                lambda s=shrinkage: FisherDiscriminant(shrinkage=s),
                {"d": d, "n": n},
            )
    yield "d=300 n=20", FisherDiscriminant, {"d": 300, "n": (10, 10)}
    yield "priors", lambda: FisherDiscriminant(priors=(0.3, 0.7)), {}
    yield "raw units", lambda: FisherDiscriminant(feature_scale=None), {}
    yield "given units", lambda: FisherDiscriminant(feature_scale=_SCALE), {}
    yield "weighted", FisherDiscriminant, {"weighted": True}
    yield "text", FisherDiscriminant, {"labels": ("task", "rest")}
    yield "tied", FisherDiscriminant, {"d": 5, "change": composition}
    yield "tied plain", lambda: FisherDiscriminant(shrinkage=None), {"d": 5, "change": composition}
    yield "constant", FisherDiscriminant, {"d": 3, "change": with_constant}


_SIZES = {
    "tasks d=1": ((1, (1, 1)), (1, (9, 12))),
    "tasks d=2": ((2, (1, 1)), (2, (3, 3))),
    "tasks": ((4, (1, 1)), (4, (2, 2)), (4, (50, 50))),
    "tasks d=12": ((12, (1, 2)), (12, (4, 4)), (12, (30, 20))),
    "tasks d=30": ((30, (3, 3)), (30, (40, 40))),
    "tasks d=300 isotropic": ((300, (8, 8)),),
    "unit d=30 isotropic": ((30, (4, 4)),),
    "unit d=300 isotropic": ((300, (4, 4)),),
}
#: Priors of four features and the labels 0 and 1, or of none.
_OF_FOUR = (
    "none",
    "tasks isotropic",
    "tasks raw",
    "tasks scaled",
    "tasks one",
    "tasks two",
    "tasks unlike",
    "unit",
    "unit isotropic",
    "one direction",
    "summary tangent",
    "summary authors",
    "cancelling",
    "released",
    "released isotropic",
    "released noisy",
    "merged",
)


def _common_fits(blend):
    """What both blends have in common."""
    yield "default", blend(), {}
    for name in _OF_FOUR:
        yield f"prior {name}", blend(name), {}
    for name, sizes in _SIZES.items():
        for d, n in sizes:
            yield f"{name} n={sum(n)}", blend(name), {"d": d, "n": n}
    yield "tied", blend("tasks tied"), {"d": 5, "change": composition}
    yield "constant", blend("tasks constant"), {"d": 3, "change": with_constant}
    yield "class_prior", blend(class_prior=(0.7, 0.3)), {}
    yield "weighted", blend(), {"weighted": True}
    yield "far from the crowd", blend(), {"crowd": 7, "n": (20, 20), "gap": 2.0}
    yield "hardly apart", blend(), {"gap": 0.05}
    yield "text", blend("tasks text"), {"labels": ("rest", "task")}
    turned = {"labels": ("b", "a")}
    yield "turned round", blend(classes=("b", "a")), turned
    yield "first class only", blend(), {"drop": 1}
    yield "second class only", blend(), {"drop": 0}
    yield "one sample", blend(), {"drop": 1, "n": (1, 1)}
    yield "turned round first only", blend(classes=("b", "a")), turned | {"drop": "a"}
    yield "threshold placed", blend(), {"after": _threshold}
    yield "threshold of given", blend(class_prior=(0.6, 0.4)), {"after": _threshold}


def _convex_fits():
    for alpha in (0.0, 0.3, 1.0):
        yield f"alpha {alpha}", _convex(alpha=alpha), {}
    yield "alpha d=12", _convex("tasks d=12", alpha=0.5), {"d": 12, "n": (4, 4)}
    yield "alpha d=300", _convex("tasks d=300", alpha=0.5), {"d": 300, "n": (4, 4)}
    yield "paper", _paper(), {}
    yield "paper printed", _paper(recipe="printed"), {"n": (20, 15)}
    yield "paper n=4", _paper(), {"n": (2, 2)}


def _posterior_fits():
    yield "scattered", _posterior(consecutive=False), {}
    for strength in ("risk", 1.0, 0.0, 0.3, np.inf):
        for name in ("tasks", "unit isotropic", "released"):
            yield f"strength {strength} {name}", _posterior(name, strength=strength), {}
    yield "risk d=12", _posterior("tasks d=12", strength="risk"), {"d": 12, "n": (4, 4)}
    yield "0.3 d=30", _posterior("tasks d=30", strength=0.3), {"d": 30, "n": (4, 4)}
    yield "1 d=300", _posterior("tasks d=300", strength=1), {"d": 300, "n": (4, 4)}
    yield "1 tied", _posterior("tasks tied", strength=1.0), {"d": 5, "change": composition}


def _hierarchical_fits():
    for name in ("tasks", "tasks text", "tasks tied"):
        labels = {"labels": ("rest", "task")} if "text" in name else {}
        tied = {"d": 5, "change": composition} if "tied" in name else {}
        yield f"prior {name}", _hierarchical(name), labels | tied
    yield "d=12", _hierarchical("tasks d=12"), {"d": 12, "n": (4, 4)}
    yield "d=30", _hierarchical("tasks d=30"), {"d": 30, "n": (4, 4)}
    yield "not in a row", _hierarchical(consecutive=False), {"n": (3, 9)}
    yield "first class only", _hierarchical(), {"drop": 1}
    yield "turned round", _hierarchical(classes=("b", "a")), {"labels": ("b", "a")}
    yield "threshold placed", _hierarchical(), {"after": _threshold}
    for k in (3, 4):
        options = {"n": (4, 3, 5, 4)[:k], "labels": tuple("abcd"[:k])}
        yield f"k={k}", _hierarchical(f"k={k}"), options
        yield f"k={k} without c", _hierarchical(f"k={k}"), options | {"drop": "c"}


def _fits():
    for family, cases in (
        ("fisher", _fisher_fits()),
        ("convex", _common_fits(_convex)),
        ("convex", _convex_fits()),
        ("posterior", _common_fits(_posterior)),
        ("posterior", _posterior_fits()),
        ("hierarchical", _hierarchical_fits()),
    ):
        for name, make, options in cases:
            yield f"{family}: {name}", partial(_fit, make, **options)
    for family, make in (("convex", _convex()), ("posterior", _posterior())):
        yield f"{family}: in chunks", partial(_chunks, make, [2, 3, 7])
        yield f"{family}: in chunks, named", partial(_chunks, make, [1, 8], classes=(0, 1))
    for family, make in (("convex", _convex), ("posterior", _posterior)):
        yield f"{family}: domains", partial(_domains, make("none"))
        yield f"{family}: domains and prior", partial(_domains, make("tasks scaled"))
    yield "fisher: weights of zero", partial(_weights_of_zero, FisherDiscriminant)
    yield "posterior: weights of zero", partial(_weights_of_zero, _posterior(strength=1.0))


FITS = {}
for _label, _make in _fits():
    assert _label not in FITS, _label
    FITS[_label] = _make
#: Fits whose change after the fit is a forecast, not a number that is frozen for good.
MOVED = ("threshold placed", "threshold of given")


@cache
def fit_of(label):
    """A fit by its label."""
    return FITS[label]()


def numbers_of_fit(fit):
    """What a fit learnt, but for its forecast."""
    estimator = fit.estimator
    names = ["projection_", "coef_", "intercept_", "alpha_", "midpoint_", "strength_"]
    names += ["alphas_", "risks_"]
    names += ["half_gap_", "feature_scale_", "means_", "shrinkage_"]
    found = {name: getattr(estimator, name, None) for name in names}
    if isinstance(estimator, FisherDiscriminant):
        found["covariance_"] = np.trace(estimator.covariance_)
        found["projection_covariance_"] = _matrix(estimator.projection_covariance_)
    if len(fit.X[0]) > 100:
        found = {name: value for name, value in found.items() if name not in _LONG}
    return {name: value for name, value in found.items() if value is not None}


#: What fits of many features leave out, to keep the files small.
_LONG = ("midpoint_", "means_", "feature_scale_", "projection_covariance_")


def forecasts_of_fit(label, fit):
    """What a fit promises."""
    estimator = fit.estimator
    found = {"predict_proba": estimator.predict_proba(fit.points)}
    for name in ("expected_accuracy_", "expected_accuracy_error_", "class_prior_"):
        if hasattr(estimator, name):
            found[name] = getattr(estimator, name)
    if any(word in label for word in MOVED):
        found["intercept_"] = estimator.intercept_
    if getattr(estimator, "rule_", None) is not None and estimator.rule_.record is not None:
        with warnings.catch_warnings():
            # Some have more labels than two of each class.
            warnings.filterwarnings("ignore", "The blend has")
            more = forecast_labels(estimator, [2, 5, 7.5, 40])
        found |= {"more accuracy": more.accuracy, "more error": more.error}
    return found


def _target(d=4, seed=0, batch=()):
    rng = np.random.default_rng([seed, d, *batch])
    root = rng.standard_normal((*batch, d, 2 * d))
    nu = np.cos(np.arange(d)) / np.sqrt(d / 2.0) + 0.3 * rng.standard_normal((*batch, d))
    return {"half_gap": nu, "covariance": root @ root.mT / (2 * d)}


def _choice(prior="tasks", batch=(), **options):
    known = prior_of(prior)
    given = _target(known.n_features, batch=batch) | {"n_samples": (6, 5)} | options
    choice = choose_alpha(known, **given)
    return choice._asdict()


def _law(d=4):
    one, two = _target(d), _target(d, 1)
    return {
        "target": (one["half_gap"], 0.1 * two["covariance"]),
        "source": (two["half_gap"], 0.02 * np.eye(d)),
        "nu": one["half_gap"],
        "sigma": one["covariance"],
    }


def _curve(d=4, **options):
    return risk_curve(np.linspace(0.0, 1.0, 7), **_law(d), **options)._asdict()


def _risk(d=4, **options):
    law = _law(d)
    given = {"nu": law["nu"], "sigma": law["sigma"]}
    return expected_risk(*law["target"], **given, **options)._asdict()


def _conditional(**options):
    law = _law()
    W = draw_unit(6, 4)
    return {"risk": conditional_risk(W, nu=law["nu"], sigma=law["sigma"], **options)}


def _simulated_tasks():
    tasks = simulate.simulate_tasks(3, 6, n_features=3, concentration=5.0, random_state=0)
    return {task.name: np.column_stack([task.X, task.y]) for task in tasks}


FUNCTIONS = {
    "choose_alpha": _choice,
    "choose_alpha isotropic": partial(_choice, "unit isotropic"),
    "choose_alpha batch": partial(_choice, batch=(3, 2)),
    "choose_alpha grid": partial(_choice, alphas=[0.0, 0.3, 0.6, 1.0]),
    "choose_alpha batch grid": partial(_choice, batch=(3,), alphas=np.linspace(0.0, 1.0, 11)),
    "choose_alpha psi authors": partial(_choice, psi="authors"),
    "choose_alpha psi printed": partial(_choice, psi="printed"),
    "choose_alpha shrunk": partial(_choice, shrinkage=0.4, n_samples=9),
    "choose_alpha known": partial(_choice, shrinkage=1.0),
    "choose_alpha class_prior": partial(_choice, class_prior=(0.3, 0.7)),
    "choose_alpha d=12": partial(_choice, "tasks d=12"),
    "choose_alpha released": partial(_choice, "released"),
    "choose_alpha monte_carlo": partial(_choice, method="monte_carlo", random_state=0),
    "choose_alpha monte_carlo batch": partial(
        _choice, batch=(4,), method="monte_carlo", n_draws=30, random_state=1
    ),
    "choose_alpha singular": lambda: _choice(
        covariance=np.diag([1.0, 2.0, 0.5, 0.0]), half_gap=[0.5, 0.2, -0.4, 0.0]
    ),
    "choose_alpha certain": lambda: _choice(
        covariance=np.diag([1.0, 2.0, 0.5, 0.0]), half_gap=[0.5, 0.2, -0.4, 0.1]
    ),
    "risk_curve": _curve,
    "risk_curve d=12": partial(_curve, 12),
    "risk_curve d=1": partial(_curve, 1),
    "risk_curve class_prior": partial(_curve, class_prior=(0.2, 0.8)),
    "expected_risk": _risk,
    "expected_risk d=30": partial(_risk, 30),
    "expected_risk class_prior": partial(_risk, class_prior=(0.2, 0.8)),
    "conditional_risk": _conditional,
    "conditional_risk class_prior": partial(_conditional, class_prior=(0.2, 0.8)),
    "blend_directions": lambda: {
        "directions": blend_directions(draw_unit(3, 4), draw_unit(3, 4, 1), [0.0, 0.4, 1.0])
    },
    "simulate_tasks": _simulated_tasks,
    "draw_directions": lambda: {
        f"d={d} kappa={kappa}": simulate.draw_directions(4, d, kappa, random_state=0)
        for d in (1, 2, 10)
        for kappa in (0.0, 3.0, 500.0)
    },
}


#: Every named method for two classes.
TWO_CLASS = (
    *("target", "average-source", "paper", "target-shrunk", "convex"),
    *("posterior", "posterior-unlabelled", "lda", "lda-pooled"),
)
#: Those that minimise over a continuous weight.
MINIMISED = ("convex",)
SEEDED = {"random_state": 0}
STUDIES = {
    "two classes": lambda: CalibrationStudy(
        draw_tasks(6, 4, (18, 15)), methods=TWO_CLASS, budgets=[2, 0.3], n_splits=4, **SEEDED
    ),
    "chronological": lambda: CalibrationStudy(
        draw_tasks(6, 4, (14, 16), groups=2),
        methods=TWO_CLASS,
        budgets=[2, 5],
        splits="chronological",
        **SEEDED,
    ),
    "random": lambda: CalibrationStudy(
        draw_tasks(6, 4, (14, 16), ("rest", "task"), groups=2),
        methods=[*TWO_CLASS[:7], ("own", FisherDiscriminant())],
        budgets=[3],
        n_splits=3,
        splits="random",
        **SEEDED,
    ),
    "three classes": lambda: CalibrationStudy(
        draw_tasks(6, 4, (10, 9, 8), tuple("abc")),
        methods=["lda", "lda-pooled"],
        budgets=[2, 4],
        n_splits=2,
        **SEEDED,
    ),
}
SCORES = ["balanced_accuracy", "accuracy", "roc_auc", "alpha"]
PROMISES = ["brier", "expected_accuracy"]


@cache
def study_of(name):
    """Rows of a study by its name."""
    return STUDIES[name]().run().rows


def scores_of_study(rows, columns):
    """Rows of each method in the order of tasks, budgets and splits."""
    found = {"rows": np.array([len(rows), rows["n_labelled"].sum()])}
    for method, part in rows.groupby("method", sort=False):
        part = part.sort_values(["task", "budget", "split"])
        found[method] = part[columns].to_numpy(dtype=float)
    return found


def _save_fit(label, path):
    save_model(fit_of(label).estimator, path)


#: Files that were written once; an old one is made again where the format changes.
MODEL_FILES = {
    "version-4-hierarchical.json": partial(_save_fit, "hierarchical: prior tasks text"),
    "version-4-three-classes.json": partial(_save_fit, "hierarchical: k=3"),
}


def numbers_of_model_file(path):
    """What a model from a file says of some fixed points."""
    rule = load_model(path)
    points = Fit(None, draw_samples(4, (6, 5), seed=1)[0]).points
    names = ["coef", "intercept", "alpha", "class_prior", "expected_accuracy", "n_labelled"]
    found = {
        "decision_function": rule.decision_function(points),
        "predict_proba": rule.predict_proba(points),
        "second": rule.predict(points) == rule.classes[1],
    }
    return found | {name: getattr(rule, name) for name in names}


def number_cases():
    """Label to a function that gives numbers by name, and which are loose: True, False or names."""
    cases = {f"prior: {name}": _of_prior(name) for name in (*PRIORS, *MANY)}
    for label in FITS:
        if not any(word in label for word in MOVED):
            cases[label] = lambda label=label: (numbers_of_fit(fit_of(label)), fit_of(label).loose)
    for name, function in FUNCTIONS.items():
        cases[f"function: {name}"] = lambda function=function: (function(), False)
    for name in STUDIES:
        cases[f"study: {name}"] = lambda name=name: (
            scores_of_study(study_of(name), SCORES),
            MINIMISED,
        )
    return cases


def _of_prior(name):
    return lambda: (numbers_of_prior(prior_of(name)), False)


def forecast_cases():
    """Label to a function that gives forecasts by name, and which are loose, as above."""
    cases = {}
    for label in FITS:
        cases[label] = lambda label=label: (
            forecasts_of_fit(label, fit_of(label)),
            fit_of(label).loose,
        )
    for name in STUDIES:
        cases[f"study: {name}"] = lambda name=name: (
            scores_of_study(study_of(name), PROMISES),
            MINIMISED,
        )
    return cases

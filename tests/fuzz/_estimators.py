"""Cases of the estimators: what they answer, and what must not change the answer."""

import pickle

import numpy as np

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    forecast_labels,
    load_model,
    save_model,
)
from tests.fuzz import _hostile as hostile
from tests.fuzz._hostile import or_odd, pick, seldom

#: Largest difference by rounding of what has the size of one.
ROUNDING = 1e-9


def drawn_rule(rng, d, many=False, odd=True):
    """Makes an estimator of two classes or of many, always the same."""
    crowd, one_in = hostile.prior(rng, d, many), 15 if odd else 10**9
    if seldom(rng, 6) and not many:
        scale = (None, "auto", np.full(d, 1e-90), 10.0 ** rng.uniform(-9, 9, d))
        made = {
            "shrinkage": hostile.shrinkage(rng),
            "priors": hostile.class_prior(rng),
            "feature_scale": or_odd(rng, *["auto"] * 4, *scale),
        }
        return lambda: FisherDiscriminant(**made)
    kind = HierarchicalBlendClassifier
    if not many or seldom(rng, 10):
        kind = pick(rng, (ConvexBlendClassifier, PosteriorBlendClassifier, kind))
    made = {}
    if odd and seldom(rng, 2):
        names = ((0, 1), (1, 0), ("a", "b"), ("b", "a"), (0, 0), (0, 1, 2))
        made = {
            "missing_class": or_odd(rng, *["crowd"] * 4, "error", one_in=40),
            "classes": or_odd(rng, *names, one_in=8) if seldom(rng, 6) else None,
            "class_prior": hostile.class_prior(rng),
        }
    if kind is ConvexBlendClassifier:
        made["alpha"] = or_odd(rng, *[None] * 6, 0.0, 1.0, 0.3, one_in=one_in)
        made["recipe"] = or_odd(rng, *["exact"] * 5, "authors", "printed", one_in=one_in)
        made |= {"n_draws": or_odd(rng, 2, 50, one_in=one_in), "random_state": 0}
    else:
        made["consecutive"] = or_odd(rng, True, False, one_in=one_in)
    if kind is PosteriorBlendClassifier:
        sizes = (0.0, 1.0, 1e-300, 0.5, 30.0, 1e6, 1e100, np.inf)
        made["strength"] = or_odd(rng, *["auto"] * 6, *["risk"] * 3, *sizes, one_in=one_in)
    return lambda: kind(crowd, **made)


@np.errstate(all="ignore")
def in_units(rng, rule, X):
    """Samples in the units of a prior, more often than not."""
    scale = getattr(getattr(rule, "prior", None), "feature_scale", None)
    fits = isinstance(scale, np.ndarray) and scale.shape == X.shape[1:]
    return X * scale if fits and not seldom(rng, 4) else X


def probability(trial, value, what):
    """Refuse numbers that are no probabilities."""
    array = np.asarray(value, np.float64)
    inside = np.isfinite(array).all() and array.min(initial=0.0) >= 0.0
    trial.check(inside and array.max(initial=0.0) <= 1.0, f"{what} is {array.ravel()[:4]}")


def judge(trial, rule, X):
    """Every answer of a fitted rule must be one."""
    for name in ("coef_", "intercept_", "projection_", "midpoint_", "means_"):
        value = trial.call(getattr, rule, name) if hasattr(type(rule), name) else None
        value = rule.__dict__.get(name, value)
        finite = value is None or np.isfinite(np.asarray(value, np.float64)).all()
        trial.check(finite, f"{name} is {value}")
    for name in ("alpha_", "member_", "class_prior_"):
        if hasattr(rule, name):
            probability(trial, getattr(rule, name), name)
    if isinstance(rule, FisherDiscriminant):
        for name in ("covariance_", "projection_covariance_"):
            trial.check(np.isfinite(trial.must(getattr, rule, name)).all(), f"{name} is not finite")
    judge_answers(trial, rule, X)


def judge_answers(trial, rule, X):
    """Labels, scores and probabilities of samples; they may be refused."""
    labels = trial.call(rule.predict, X)
    if labels is None:
        return
    known = rule.classes_.tolist()
    trial.check(all(one in known for one in labels.tolist()), f"predicted {labels[:3]} of {known}")
    chances = trial.must(rule.predict_proba, X)
    probability(trial, chances, "predict_proba")
    trial.check(chances.shape == (len(labels), len(known)), f"{chances.shape} probabilities")
    off = np.abs(chances.sum(1) - 1.0).max(initial=0.0)
    trial.check(off <= ROUNDING, f"probabilities sum to one but for {off:.3g}")
    if getattr(rule, "class_prior", None) is None and getattr(rule, "priors", None) is None:
        chosen = chances[np.arange(len(labels)), np.searchsorted(rule.classes_, labels)]
        lost = (chances.max(1, initial=0.0) - chosen).max(initial=0.0)
        trial.check(lost <= 1e-6, f"predicted what is {lost:.3g} less likely")
    scores = trial.must(rule.decision_function, X)
    trial.check(np.isfinite(scores).all(), "a score is not finite")


def judge_forecast(trial, rule):
    """What a blend expects of itself."""
    expected = trial.call(getattr, rule, "expected_accuracy_")
    if expected is None:
        return
    probability(trial, expected, "expected_accuracy_")
    error = trial.must(getattr, rule, "expected_accuracy_error_")
    trial.check(0.0 <= error < np.inf, f"expected_accuracy_error_ is {error!r}")
    level = or_odd(trial.rng, 0.9, 0.5, 0.0, 1.0, one_in=4)
    interval = trial.call(rule.expected_accuracy_interval, level)
    if interval is not None:
        probability(trial, interval, f"the interval at level {level}")
        trial.check(interval[0] <= interval[1], f"the interval is {interval}")
    several = [1, 4, 100], [2.0, 2.5], [0], [1e300], (10**6,), [(3, 8)], [(3, 8, 2), 4]
    odd = [], [np.nan], [-1], [np.inf], "ab", None, [[1, 2], [3]], [True], [10**400]
    budgets = pick(trial.rng, odd if seldom(trial.rng, 3) else several)
    ahead = trial.call(forecast_labels, rule, budgets, level=level)
    if ahead is not None:
        for name in ("accuracy", "lower", "upper"):
            probability(trial, getattr(ahead, name), f"{name} for {budgets} labels")
        trial.check((ahead.lower <= ahead.upper).all(), f"intervals of {budgets} labels: {ahead}")
        trial.check(np.isfinite(ahead.error).all(), f"errors of {budgets} labels: {ahead.error}")


def judge_copies(trial, rule, X):
    """A rule from its file, or from a pickle, answers as before."""
    path = trial.folder / "model.json"
    path.unlink(missing_ok=True)
    trial.call(save_model, rule, path)
    copies = [trial.must(load_model, path)] if path.exists() else []
    labels = trial.call(rule.predict, X)
    if labels is None:
        return
    for again in (*copies, trial.must(lambda: pickle.loads(pickle.dumps(rule)))):
        same = np.array_equal(labels, trial.must(again.predict, X))
        trial.check(same, f"a copy predicts something else: {type(again).__name__}")
        chances = trial.must(rule.predict_proba, X), trial.must(again.predict_proba, X)
        trial.check(np.allclose(*chances, rtol=0.0, atol=1e-12), "a copy has other probabilities")


def case_fit(trial):
    """Anything goes."""
    rng = trial.rng
    d, many = hostile.n_features(rng), bool(seldom(rng, 5))
    make = drawn_rule(rng, d, many)
    label = hostile.label_places(rng, pick(rng, (2, 3, 3, 4)) if many else 2)
    rule = trial.made(make)
    if rule is None:
        return
    X = in_units(rng, rule, hostile.samples(rng, label, d))
    given, y = hostile.dressed(rng, X), hostile.named(rng, label)
    weight, domains = hostile.weights(rng, label.size), {}
    if seldom(rng, 10) and not many and not isinstance(rule, FisherDiscriminant):
        odd = ([1, 2, -3], [1, 2, 3, -4], [-1], [1], [1.0, -2.0], [np.nan], ["a"], [2**62, -1])
        domains = {pick(rng, ("sample_domain", "groups")): rng.choice(pick(rng, odd), label.size)}
    kept = _copies(given, y, weight)
    fitted = trial.call(rule.fit, given, y, sample_weight=weight, **domains)
    trial.check(kept == _copies(given, y, weight), "fit changed what it was given")
    if fitted is None:
        return
    judge(trial, rule, X if seldom(rng, 2) else given)
    if not isinstance(rule, FisherDiscriminant):
        judge_forecast(trial, rule)
    other = hostile.dressed(rng, hostile.samples(rng, hostile.label_places(rng), d))
    kept = _copies(other)
    judge_answers(trial, rule, other)
    trial.check(kept == _copies(other), "predict changed what it was given")
    if seldom(rng, 4):
        judge_copies(trial, rule, X)


def _copies(*values):
    """What would show a change."""
    return [pickle.dumps(one) for one in values if isinstance(one, (np.ndarray, list))]


def case_course(trial):
    """The course of a session: start, labels and samples without one, in any order."""
    rng = trial.rng
    make, X, y, _ = tame_case(trial)
    if make is None:
        return
    rule = trial.made(make)
    if isinstance(rule, FisherDiscriminant):
        return
    if seldom(rng, 2):
        trial.call(rule.start)
    for _ in range(pick(rng, (1, 2, 3))):
        some = rng.integers(0, len(y), pick(rng, (1, 2, 5))) if len(y) else []
        part, labels = X[some], y[some]
        kind = rng.integers(5)
        if kind == 0:
            labels = None
        elif kind == 1:
            labels = [None if seldom(rng, 2) else one for one in labels.tolist()]
        elif kind == 2:
            labels = hostile.named(rng, np.arange(len(part)) % 2)
        part = hostile.dressed(rng, part) if seldom(rng, 4) else part
        before = dict(rule.__dict__)
        if trial.call(rule.partial_fit, part, labels) is None:
            # scikit-learn counts the features before anything else is known.
            names = (before.keys() | rule.__dict__.keys()) - {"n_features_in_", "feature_names_in_"}
            left = [name for name in names if rule.__dict__.get(name) is not before.get(name)]
            trial.check(not left, f"what was refused left a trace: {left}")
        if "rule_" in rule.__dict__:
            judge(trial, rule, X)
            judge_forecast(trial, rule)
    if "rule_" in rule.__dict__ and seldom(rng, 3):
        judge_copies(trial, rule, X)


def tame_case(trial):
    """Samples of an estimator, all numbers, and a function that makes it; None if it refuses."""
    rng = trial.rng
    d, many = hostile.n_features(rng), bool(seldom(rng, 5))
    make = drawn_rule(rng, d, many, odd=bool(seldom(rng, 2)))
    label = hostile.label_places(rng, 3 if many else 2)
    rule = trial.made(make)
    X = hostile.samples(rng, label, d, None if seldom(rng, 4) else pick(rng, hostile.TAME))
    X = in_units(rng, rule, X)
    names = getattr(getattr(rule, "prior", None), "classes", None)
    fits = isinstance(names, tuple) and len(names) > label.max(initial=0)
    names = names if fits else (0, 1, 2)
    weight = rng.integers(1, 4, label.size).astype(float) if seldom(rng, 4) else None
    return make if rule is not None else None, X, np.array(names)[label], weight


CASES = {"fit": (case_fit, 10), "course": (case_course, 3)}

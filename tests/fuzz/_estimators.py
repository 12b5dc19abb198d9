"""Cases of the estimators: what they answer, and what must not change the answer."""

from __future__ import annotations

import pickle

import numpy as np
from sklearn.base import clone

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    HierarchicalBlendClassifier,
    MulticlassBlend,
    PosteriorBlendClassifier,
    forecast_labels,
    load_model,
    save_model,
)
from tests.fuzz import _hostile as hostile
from tests.fuzz._hostile import or_odd, pick, seldom
from tests.fuzz._priors import many_prior, prior

#: Largest difference by rounding of what has the size of one.
ROUNDING = 1e-9


# -- what is drawn ---------------------------------------------------------------------------------


def n_features(rng):
    """Number of features, seldom none."""
    return pick(rng, (1, 1, 2, 2, 3, 3, 4, 6, 9))


def _pair(rng):
    """Names of the classes; as a rule none."""
    odd = ((0, 1), (0, 1), (1, 0), (1, 0), ("a", "b"), ("b", "a"), (0, 0), (0, 1, 2))
    return or_odd(rng, *odd, one_in=8) if seldom(rng, 6) else None


def _common(rng, odd=True):
    """Parameters that all blends have."""
    if not odd:
        return {"in_a_row": bool(seldom(rng, 2))}
    if seldom(rng, 2):
        return {}
    return {
        "on_missing_class": or_odd(rng, *["auto"] * 4, "error", "prior", one_in=40),
        "classes": _pair(rng),
        "class_prior": hostile.class_prior(rng),
        "in_a_row": or_odd(rng, True, False, one_in=40),
    }


def fisher(rng, d):
    """A discriminant."""
    scale = (None, "auto", np.full(d, 1e-90), np.full(d, 1e90), 10.0 ** rng.uniform(-9, 9, d))
    return FisherDiscriminant(
        shrinkage=hostile.shrinkage(rng),
        priors=hostile.class_prior(rng),
        feature_scale=or_odd(rng, *["auto"] * 4, *scale),
    )


def convex(rng, crowd, odd=True):
    """A convex blend."""
    if odd and seldom(rng, 6):
        recipe = or_odd(rng, "authors", "printed", one_in=20)
        made = {"recipe": recipe, "n_draws": or_odd(rng, 2, 20, 100), "random_state": 0}
        return lambda: ConvexBlendClassifier.paper(crowd, **made)
    made = {
        "alpha": or_odd(rng, *[None] * 6, 0.0, 1.0, 0.3, one_in=15 if odd else 10**9),
        "shrinkage": hostile.shrinkage(rng) if odd else "oas",
    }
    if odd and seldom(rng, 4):
        made |= {
            "recipe": or_odd(rng, "exact", "authors", "printed"),
            "n_draws": or_odd(rng, 2, 50),
            "random_state": or_odd(rng, 0, 7),
        }
    made |= _common(rng, odd)
    made.pop("in_a_row", None)
    return lambda: ConvexBlendClassifier(crowd, **made)


def posterior(rng, crowd, odd=True):
    """A posterior blend."""
    made = _common(rng, odd)
    made["strength"] = hostile.strength(rng) if odd else pick(rng, ("auto", "risk", 1.0, np.inf))
    made["shrinkage"] = hostile.shrinkage(rng) if odd else pick(rng, ("oas", 0.3))
    return lambda: PosteriorBlendClassifier(crowd, **made)


def hierarchical(rng, crowd, odd=True):
    """A hierarchical blend."""
    made = {"protect": or_odd(rng, True, False, one_in=20 if odd else 10**9)} | _common(rng, odd)
    return lambda: HierarchicalBlendClassifier(crowd, **made)


def rule_of_two(rng, d, odd=True):
    """Makes an estimator of two classes, always the same."""
    crowd = prior(rng, d)
    if seldom(rng, 6):
        made = fisher(rng, d)
        return lambda: clone(made)
    return pick(rng, (convex, posterior, posterior, hierarchical))(rng, crowd, odd)


def rule_of_many(rng, d, odd=True):
    """Makes an estimator of many classes, always the same."""
    crowd = many_prior(rng, d)
    if seldom(rng, 4):
        return hierarchical(rng, crowd, odd)
    inner = pick(rng, (convex, posterior))(rng, crowd, odd and seldom(rng, 3))
    strategy = or_odd(rng, *["pairwise"] * 3, "one-vs-rest", one_in=20)
    if not seldom(rng, 10):
        strategy = getattr(crowd, "strategy", strategy)
    if odd and seldom(rng, 20):
        return lambda: MulticlassBlend(pick(rng, (None, "a", 1.0, FisherDiscriminant())), strategy)
    return lambda: MulticlassBlend(inner(), strategy)


@np.errstate(all="ignore")
def in_units(rng, make, X):
    """Samples in the units of a prior, more often than not."""
    try:
        scale = np.asarray(_parameter(make(), "prior").feature_scale, float)
    except (AttributeError, TypeError, ValueError):
        return X
    return X * scale if scale.shape == X.shape[1:] and not seldom(rng, 4) else X


# -- what is judged --------------------------------------------------------------------------------


def probability(trial, value, what):
    """Refuse numbers that are no probabilities."""
    array = np.asarray(value, np.float64)
    inside = np.isfinite(array).all() and array.min(initial=0.0) >= 0.0
    trial.check(inside and array.max(initial=0.0) <= 1.0, f"{what} is {array.ravel()[:4]}")


def judge(trial, rule, X):
    """Every answer of a fitted rule must be one."""
    for name in ("coef_", "intercept_", "projection_", "midpoint_", "means_", "source_projection_"):
        value = rule.__dict__.get(name)
        finite = value is None or np.isfinite(np.asarray(value, np.float64)).all()
        trial.check(finite, f"{name} is {value}")
    for name in ("projection_", "target_projection_", "source_projection_"):
        vector = rule.__dict__.get(name)
        if vector is not None:
            length = float(np.linalg.norm(vector))
            none = name != "projection_" or isinstance(rule, FisherDiscriminant)
            right = abs(length - 1.0) <= ROUNDING or (none and length == 0.0)
            trial.check(right, f"{name} has length {length!r}")
    for name in ("alpha_", "member_", "shrinkage_"):
        if name in rule.__dict__:
            probability(trial, rule.__dict__[name], name)
    shares = rule.__dict__.get("class_prior_")
    if shares is not None:
        probability(trial, shares, "class_prior_")
        trial.check(abs(np.sum(shares) - 1.0) <= ROUNDING, f"class_prior_ sums to {np.sum(shares)}")
    if "strength_" in rule.__dict__:
        trial.check(rule.strength_ >= 0.0, f"strength_ is {rule.strength_!r}")
    if "risks_" in rule.__dict__ and not (rule.risks_.size == 1 and np.isnan(rule.risks_[0])):
        probability(trial, rule.risks_, "risks_")
    if isinstance(rule, FisherDiscriminant):
        for name in ("covariance_", "projection_covariance_"):
            matrix = trial.must(getattr, rule, name)
            trial.check(np.isfinite(matrix).all(), f"{name} is not finite")
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
    chosen = np.searchsorted(rule.classes_, labels)
    lost = chances.max(1, initial=0.0) - chances[np.arange(len(labels)), chosen]
    even = getattr(rule, "class_prior", None) is None and getattr(rule, "priors", None) is None
    if even:
        trial.check(
            lost.max(initial=0.0) <= 1e-6, f"predicted what is {lost.max():.3g} less likely"
        )
    if hasattr(rule, "decision_function"):
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
    several = [1, 4, 100], [2.0, 2.5], [0], [1e300], [5], (10**6,), [(3, 8)], [(3, 8, 2), 4]
    odd = [], [np.nan], [-1], [np.inf], "ab", None, [[1, 2], [3]], [1e-300], [True], [10**400]
    budgets = pick(trial.rng, odd if seldom(trial.rng, 3) else several)
    ahead = trial.call(forecast_labels, rule, budgets, level=level)
    if ahead is not None:
        for name in ("accuracy", "lower", "upper"):
            probability(trial, getattr(ahead, name), f"{name} for {budgets} labels")
        trial.check((ahead.lower <= ahead.upper).all(), f"intervals of {budgets} labels: {ahead}")
        right = np.isfinite(ahead.error).all() and (ahead.error >= 0.0).all()
        trial.check(right, f"errors of {budgets} labels are {ahead.error}")


# -- cases -----------------------------------------------------------------------------------------


def case_fit(trial):
    """Anything goes."""
    rng = trial.rng
    d, many = n_features(rng), seldom(rng, 5)
    make = (rule_of_many if many else rule_of_two)(rng, d)
    label = hostile.label_places(rng, pick(rng, (2, 3, 3, 4)) if many else 2)
    X = in_units(rng, make, hostile.samples(rng, label, d))
    given, y, weight = (
        hostile.dressed(rng, X),
        hostile.named(rng, label),
        hostile.weights(rng, label.size),
    )
    rule = trial.made(make)
    if rule is None or not hasattr(rule, "fit"):
        return
    kept = _copies(given, y, weight)
    domains = {}
    if seldom(rng, 10) and not many and not isinstance(rule, FisherDiscriminant):
        called = pick(rng, ("sample_domain", "sample_domain", "groups", "subjects"))
        domains[called] = _domains(rng, label.size)
        if called == "subjects":
            turned = y if y is None or isinstance(y, int) else y[::-1]
            domains |= {"X_target_labeled": X[::-1], "y_target_labeled": turned}
    fitted = trial.call(rule.fit, given, y, sample_weight=weight, **domains)
    trial.check(_same_bytes(kept, (given, y, weight)), "fit changed what it was given")
    if fitted is None:
        return
    if hostile.is_masked(given):
        trial.notes.append("a mask was ignored")
        return
    judge(trial, rule, X if seldom(rng, 2) else given)
    if not isinstance(rule, FisherDiscriminant):
        judge_forecast(trial, rule)
    other = hostile.dressed(rng, hostile.samples(rng, hostile.label_places(rng), d))
    if not hostile.is_masked(other):
        kept = _copies(other)
        judge_answers(trial, rule, other)
        trial.check(_same_bytes(kept, (other,)), "predict changed what it was given")
    if seldom(rng, 4):
        _saved(trial, rule, X)
    if seldom(rng, 4):
        _pickled(trial, rule, X)


def _domains(rng, n):
    """Sources and target in one table."""
    odd = (
        lambda: rng.choice([1, 2, -3], n),
        lambda: rng.choice([1, 2, 3, -4], n),
        lambda: rng.choice([1, 2, 3, -4], n).tolist(),
        lambda: np.full(n, -1),
        lambda: np.full(n, 1),
        lambda: np.zeros(n, int),
        lambda: rng.choice([1, -2, -3], n),
        lambda: rng.choice([1.0, -2.0], n),
        lambda: np.full(n, np.nan),
        lambda: np.array(["a"] * n),
        lambda: rng.choice([1, -2], n + 1),
        lambda: rng.choice([2**62, -(2**62)], n),
        lambda: rng.choice([True, False], n),
        lambda: 1,
        lambda: rng.choice([1, -2], (n, 1)),
    )
    return pick(rng, odd)()


def _copies(*values):
    """What would show a change."""
    return [pickle.dumps(one) if isinstance(one, _PLAIN) else None for one in values]


def _same_bytes(before, values):
    return all(
        one is None or one == pickle.dumps(value) for one, value in zip(before, values, strict=True)
    )


_PLAIN = (np.ndarray, list)


def _saved(trial, rule, X):
    """A rule from its file answers as before."""
    path = trial.folder / "model.json"
    path.unlink(missing_ok=True)
    trial.call(save_model, rule, path)
    if not path.exists():
        return
    again = trial.must(load_model, path)
    labels = trial.call(rule.predict, X)
    if labels is None:
        return
    chances, others = trial.must(rule.predict_proba, X), trial.must(again.predict_proba, X)
    same = np.array_equal(labels, trial.must(again.predict, X))
    trial.check(same, "a saved rule predicts something else")
    trial.check(np.array_equal(chances, others), "a saved rule has other probabilities")


def _pickled(trial, rule, X):
    """A copy answers as before."""
    again = trial.must(lambda: pickle.loads(pickle.dumps(rule)))
    labels = trial.call(rule.predict, X)
    if labels is not None:
        same = np.array_equal(labels, trial.must(again.predict, X))
        trial.check(same, "a pickled rule predicts something else")
        chances = trial.must(rule.predict_proba, X), trial.must(again.predict_proba, X)
        trial.check(np.array_equal(*chances), "a pickled rule has other probabilities")


# -- what must not change the answer ---------------------------------------------------------------


def tame_case(trial):
    """Samples of an estimator, all numbers, and a function that makes it."""
    rng = trial.rng
    d, many = n_features(rng), seldom(rng, 5)
    make = (rule_of_many if many else rule_of_two)(rng, d, odd=bool(seldom(rng, 2)))
    label = hostile.label_places(rng, 3 if many else 2)
    X = hostile.samples(rng, label, d, None if seldom(rng, 4) else pick(rng, hostile.TAME))
    X = in_units(rng, make, X)
    rule = trial.made(make)
    crowd = _parameter(rule, "prior")
    names = getattr(crowd, "classes", None) or pick(rng, ((0, 1, 2), ("a", "b", "c")))
    names = names if len(names) > label.max(initial=0) else (0, 1, 2)
    y = np.array(names)[label]
    weight = rng.integers(1, 4, label.size).astype(float) if seldom(rng, 4) else None
    return make if rule is not None and hasattr(rule, "fit") else None, X, y, weight


def fitted(trial, make, X, y, weight=None):
    """A new estimator, fitted; None if it refuses."""
    rule = trial.made(make)
    return rule if trial.call(rule.fit, X, y, sample_weight=weight) is not None else None


def parts_of(rule):
    """Numbers of a fitted rule by name."""
    if isinstance(rule, MulticlassBlend):
        pairs = list(rule.rules_.values())
        return {
            "coef_": np.concatenate([one.coef_ for one in pairs]),
            "intercept_": np.concatenate([one.intercept_ for one in pairs]),
            "alpha_": np.array([one.alpha_ for one in pairs]),
        }
    names = ("coef_", "intercept_", "alpha_", "strength_", "projection_")
    return {name: np.asarray(rule.__dict__[name]) for name in names if name in rule.__dict__}


def check_equal(trial, one, other, what):
    """Refuse rules that differ in any bit."""
    trial.check((one is None) == (other is None), f"{what} is refused, or not any more")
    if one is not None:
        mine, theirs = parts_of(one), parts_of(other)
        for name, value in mine.items():
            same = np.array_equal(value, theirs[name], equal_nan=True)
            trial.check(same, f"{what} changes {name}: {value} and {theirs[name]}")


def case_types(trial):
    """The same numbers in other containers."""
    make, X, y, weight = tame_case(trial)
    if make is None:
        return
    same = hostile.SAME
    if seldom(trial.rng, 2):
        with np.errstate(all="ignore"):
            X = np.clip(np.nan_to_num(np.rint(X)), -100.0, 100.0)
        same = hostile.SAME_WHOLE
    name = pick(trial.rng, tuple(same))
    with np.errstate(all="ignore"):
        given = same[name](X)
    plain = fitted(trial, make, X, y, weight)
    other = fitted(trial, make, given, y, weight)
    if plain is None or other is None:
        # scikit-learn refuses some containers, and that is meant.
        return
    check_equal(trial, plain, other, f"X as {name}")
    chances = trial.call(plain.predict_proba, X)
    if chances is not None:
        again = trial.must(plain.predict_proba, given)
        trial.check(np.array_equal(chances, again), f"probabilities change with X as {name}")


def case_refit(trial):
    """What was learnt before is forgotten, and copies answer alike."""
    make, X, y, weight = tame_case(trial)
    if make is None:
        return
    before = hostile.samples(trial.rng, np.unique(y, return_inverse=True)[1], X.shape[1])
    rule = trial.made(make)
    trial.call(rule.fit, before, y)
    again = trial.call(rule.fit, X, y, sample_weight=weight)
    alone = fitted(trial, make, X, y, weight)
    check_equal(trial, alone, again, "an earlier fit")
    if alone is None:
        # Neither what was refused nor half of what was before.
        trial.call(rule.predict, before)
        if not isinstance(rule, FisherDiscriminant):
            trial.call(getattr, rule, "expected_accuracy_")
    else:
        _pickled(trial, alone, X)


def case_units(trial):
    """Features in other units, by a power of two, and the prior in the same ones."""
    make, X, y, weight = tame_case(trial)
    if make is None:
        return
    factor = 2.0 ** trial.rng.integers(-20, 21, X.shape[1])
    other = trial.call(rescaled, trial.made(make), factor)
    with np.errstate(all="ignore"):
        moved = X * factor
    if other is None or not np.isfinite(moved).all() or not np.array_equal(moved / factor, X):
        return
    if _parameter(other, "prior") is None and not _varies(X, y):
        # Without a deviation there are no units but the user's.
        return
    plain = fitted(trial, make, X, y, weight)
    there = fitted(trial, lambda: other, moved, y, weight)
    if plain is None or there is None:
        # Limits of size are in the user's units.
        return
    mine, theirs = parts_of(plain), parts_of(there)
    theirs["coef_"] = theirs["coef_"] * factor
    for name, value in mine.items():
        same = np.array_equal(value, theirs[name], equal_nan=True)
        trial.check(same, f"other units change {name}: {value} and {theirs[name]}")


@np.errstate(all="ignore")
def _varies(X, y):
    """Whether every feature has a deviation within the classes, beyond all doubt."""
    if len(y) <= np.unique(y).size:
        return False
    rows = np.concatenate([X[y == name] - X[y == name].mean(0) for name in np.unique(y)])
    return bool((np.sqrt((rows**2).mean(0)) > 1e-11 * np.abs(X).max(0)).all())


def rescaled(rule, factor):
    """The same estimator for features that are so many times as large; None if there is none."""
    import dataclasses

    inner = rule.estimator if isinstance(rule, MulticlassBlend) else rule
    if isinstance(inner, FisherDiscriminant):
        scale = inner.feature_scale
        if isinstance(scale, np.ndarray) and scale.shape == factor.shape and scale.dtype == float:
            return clone(inner).set_params(feature_scale=scale * factor)
        # RawError units have no others.
        return clone(inner) if isinstance(scale, str) else None
    crowd = getattr(inner, "prior", None)
    if crowd is None:
        return clone(rule)
    if getattr(crowd, "n_features", None) != factor.size or isinstance(crowd, type):
        return None

    def moved(one):
        return dataclasses.replace(one, feature_scale=one.feature_scale * factor)

    if hasattr(crowd, "priors"):
        priors = {pair: moved(one) for pair, one in crowd.priors.items()}
        crowd = dataclasses.replace(crowd, priors=priors)
    else:
        crowd = moved(crowd)
    name = "estimator__prior" if isinstance(rule, MulticlassBlend) else "prior"
    return clone(rule).set_params(**{name: crowd})


@np.errstate(all="ignore")
def slack(rule, X, y):
    """How far rounding may move a unit direction; infinite where it decides all.

    A deviation is known to the rounding of the largest number over it, and the inverse of a
    covariance enlarges that by its condition.
    """
    eps = float(np.finfo(float).eps)
    X = np.asarray(X, np.longdouble)
    rows, largest = X.copy(), np.abs(X).max(0)
    for name in np.unique(y):
        rows[y == name] -= X[y == name].mean(0)
    deviation = np.sqrt((rows**2).mean(0))
    varies = deviation > 1e-11 * largest
    if (~varies & (deviation > 0.01 * eps * largest)).any():
        # It may be a deviation, or rounding.
        return np.inf
    if not varies.any():
        return 1e-5
    crowd = _parameter(rule, "prior")
    far = 0.0
    if getattr(crowd, "class_means", None) is not None:
        # What a crowd knows of class means is lost beside a person who is nowhere near.
        far = float((largest / crowd.feature_scale).max()) ** 2
    ratio, condition = float((largest[varies] / deviation[varies]).max()), 1.0
    shrinkage = _parameter(rule, "shrinkage")
    if shrinkage is None or (isinstance(shrinkage, float) and shrinkage < 1e-3):
        scale = deviation if _scale(rule) is None else _scale(rule)
        scaled = (rows[:, varies] / scale[varies]).astype(float)
        values = np.linalg.eigvalsh(scaled.T @ scaled)
        if ((values > 1e-17 * values.max()) & (values < 1e-11 * values.max())).any():
            # It may be an eigenvalue, or rounding.
            return np.inf
        values = values[values > 1e-11 * values.max()]
        condition = values.max() / values.min()
    return float(1e-5 + 1e3 * eps * (far + ratio * condition * len(X)))


def _scale(rule):
    """What an estimator divides features by; None for their own deviation."""
    crowd, scale = _parameter(rule, "prior"), _parameter(rule, "feature_scale")
    if crowd is not None:
        return crowd.feature_scale
    own = scale is None and isinstance(rule, FisherDiscriminant)
    own = np.ones(rule.n_features_in_) if own else scale
    return None if own is None or isinstance(own, str) else np.asarray(own, float)


def check_close(trial, one, other, X, y, what):
    """Refuse rules that differ by more than rounding explains."""
    if one is None or other is None:
        trial.check(one is other, f"{what} is refused, or not any more")
        return
    room = slack(one, X, y)
    if not room < 1e-3:
        return
    mine, theirs = parts_of(one), parts_of(other)
    for name in ("coef_", "projection_"):
        if name in mine:
            size = np.linalg.vector_norm(mine[name], axis=-1, keepdims=True)
            with np.errstate(all="ignore"):
                away = np.abs(mine[name] - theirs[name]) / np.where(size > 0.0, size, 1.0)
            trial.check(
                away.max() <= room, f"{what} moves {name} by {away.max():.3g}: {mine[name]}"
            )
    # All alphas give the same rule where a direction is a sign.
    if "alpha_" in mine and X.shape[1] > 1:
        # The minimum of a curve is known to the root of what the curve is known to.
        away = np.abs(mine["alpha_"] - theirs["alpha_"]).max()
        trial.check(away <= 1e-3 + room, f"{what} moves alpha_ by {away:.3g}")


def _parameter(rule, name):
    inner = rule.estimator if isinstance(rule, MulticlassBlend) else rule
    return getattr(inner, name, None)


def case_order(trial):
    """The same samples in another order."""
    make, X, y, weight = tame_case(trial)
    if make is None or not len(y) or _parameter(trial.made(make), "method") == "monte_carlo":
        return
    order = trial.rng.permutation(len(y))
    plain = fitted(trial, make, X, y, weight)
    turned = fitted(trial, make, X[order], y[order], None if weight is None else weight[order])
    check_close(trial, plain, turned, X, y, "another order of rows")


def case_pieces(trial):
    """The same samples, some at a time."""
    make, X, y, weight = tame_case(trial)
    if make is None or not len(y):
        return
    rule = trial.made(make)
    if not hasattr(rule, "partial_fit") or _parameter(rule, "method") == "monte_carlo":
        return
    cuts = np.sort(trial.rng.integers(0, len(y) + 1, pick(trial.rng, (1, 2, 4))))
    names = np.unique(y)
    for part in np.split(np.arange(len(y)), cuts):
        if not part.size:
            continue
        some = None if weight is None else weight[part]
        known = names if names.size == 2 and rule.prior is None else None
        if trial.call(rule.partial_fit, X[part], y[part], known, sample_weight=some) is None:
            return
    whole = fitted(trial, make, X, y, weight)
    if whole is not None:
        trial.check("coef_" in rule.__dict__, "pieces make no rule where the whole does")
        check_close(trial, whole, rule, X, y, "learning in pieces")


def case_course(trial):
    """The course of a session: start, labels and samples without one, in any order."""
    rng = trial.rng
    make, X, y, _ = tame_case(trial)
    if make is None:
        return
    rule = trial.made(make)
    if not hasattr(rule, "partial_fit"):
        return
    if seldom(rng, 2):
        trial.call(rule.start)
    for _ in range(pick(rng, (1, 2, 3))):
        some = rng.integers(0, max(len(y), 1), pick(rng, (1, 2, 5))) if len(y) else []
        part, labels = X[some], y[some]
        if seldom(rng, 5):
            part = hostile.samples(rng, np.arange(len(part)) % 2, X.shape[1])
        kind = rng.integers(5)
        if kind == 0:
            labels = None
        elif kind == 1:
            labels = [None if seldom(rng, 2) else one for one in np.asarray(labels).tolist()]
        elif kind == 2:
            labels = hostile.named(rng, np.arange(len(part)) % 2)
        part = hostile.dressed(rng, part) if seldom(rng, 4) else part
        if hostile.is_masked(part):
            continue
        before = dict(rule.__dict__)
        if trial.call(rule.partial_fit, part, labels) is None:
            same = before.keys() == rule.__dict__.keys()
            trial.check(
                same and all(rule.__dict__[name] is value for name, value in before.items()),
                "what was refused left a trace",
            )
        if "coef_" in rule.__dict__:
            judge(trial, rule, X)
            judge_forecast(trial, rule)
    if "coef_" in rule.__dict__ and seldom(rng, 3):
        _saved(trial, rule, X)
        _pickled(trial, rule, X)


CASES = {
    "fit": (case_fit, 10),
    "types": (case_types, 2),
    "refit": (case_refit, 2),
    "units": (case_units, 2),
    "order": (case_order, 3),
    "pieces": (case_pieces, 2),
    "course": (case_course, 3),
}

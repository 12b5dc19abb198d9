"""Arrays, labels, weights, parameters and priors, sane and hostile, drawn by a generator.

Everything here is quiet: what overflows on the way is as hostile as what is meant to.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import scipy.sparse

from crossfade import FisherDiscriminant, Task, TaskPrior
from crossfade.prior import Release

#: Sizes of features: from the smallest number there is to the largest.
SIZES = (5e-324, 1e-300, 1e-160, 1e-100, 1e-50, 1e-30, 1e-12, 1e-6, 1e6, 1e12, 1e30, 1e50, 1e100)
SIZES += (1e150, 1e300, 1.7e308)
#: Values that parameters may not have, or hardly.
ODD = (np.nan, np.inf, -np.inf, -1.0, 0.0, -0.0, 5e-324, 1e-10, 0.5, 1.0, 1 + 1e-15, 2, 10**400)
ODD += (1e300, True, None, "a", "", b"1", 1j, (), [], [1.0], {}, object(), np.float32(0.3))
ODD += (np.int8(1), np.array(0.5), np.array([0.5]), np.array(["x"]))


def pick(rng, options):
    """One of some options."""
    return options[int(rng.integers(len(options)))]


def seldom(rng, one_in):
    """True once in so many times."""
    return rng.integers(one_in) == 0


def or_odd(rng, *usual, one_in=15):
    """One of the usual values of a parameter; seldom an odd one."""
    return pick(rng, ODD) if seldom(rng, one_in) else pick(rng, usual)


@np.errstate(all="ignore")
def samples(rng, label, n_features, kind=None):
    """Features of labelled samples, all numbers; `kind` is one of `KINDS`."""
    label = np.asarray(label)
    X = rng.standard_normal((label.size, n_features))
    X += label[:, None] * (pick(rng, (0.0, 0.5, 1.0, 3.0, 30.0)) * rng.standard_normal(n_features))
    return np.asarray(KINDS[kind or pick(rng, tuple(KINDS))](rng, X), np.float64)


def _offset(rng, X):
    """A small spread about a large number, as in times since 1970; up to the limit of doubles."""
    offset = 10.0 ** rng.uniform(0.0, 18.0, X.shape[1]) * rng.choice([-1.0, 1.0], X.shape[1])
    return pick(rng, (1.0, 1e-50, 1e50)) * (offset + X)


def _nearly_equal(rng, X):
    """Neighbouring doubles."""
    base = pick(rng, (1.0, 0.1, 1e15, -3e7))
    return base + np.spacing(base) * rng.integers(-3, 4, X.shape)


def _low_rank(rng, X):
    rank = int(rng.integers(1, max(X.shape[1], 2)))
    return X[:, :rank] @ rng.standard_normal((min(rank, X.shape[1]), X.shape[1]))


KINDS = {
    "plain": lambda rng, X: X,
    "large": lambda rng, X: X * 10.0 ** rng.integers(-3, 4),
    "some sizes": lambda rng, X: X * 10.0 ** rng.uniform(-12, 12, X.shape[1]),
    "constant columns": lambda rng, X: np.where(
        rng.random(X.shape[1]) < 0.5, pick(rng, (0.0, 0.1, 1e10, 1e-10)), X
    ),
    "twice": lambda rng, X: X[rng.integers(0, max(len(X) // 2, 1), len(X))] if len(X) else X,
    "low rank": _low_rank,
    "tied": lambda rng, X: np.exp(X) / np.exp(X).sum(1, keepdims=True),
    "whole": lambda rng, X: np.rint(X),
    "offset": _offset,
    "nearly equal": _nearly_equal,
    "of one size": lambda rng, X: X * pick(rng, SIZES),
    "of many sizes": lambda rng, X: X * [pick(rng, SIZES) for _ in range(X.shape[1])],
    "constant": lambda rng, X: np.full_like(X, pick(rng, (0.0, 1.0, -0.0, *SIZES))),
    "mixed": lambda rng, X: X * 10.0 ** rng.uniform(-320.0, 308.0, X.shape),
    "heavy": lambda rng, X: np.sinh(X * pick(rng, (3.0, 30.0))),
}
#: Those that a sensor may well send.
TAME = tuple(KINDS)[:10]


def holes(rng, X):
    """Some numbers that are none."""
    return np.where(rng.random(X.shape) < 0.3, pick(rng, (np.nan, np.inf, -np.inf)), X)


@np.errstate(all="ignore")
def dressed(rng, X):
    """Samples in a container that may not be one of samples."""
    names = [f"f{place}" for place in range(X.shape[1])]
    odd = (
        lambda: np.nan_to_num(X).astype(np.int64),
        lambda: X.astype(str),
        lambda: X.astype(complex),
        lambda: scipy.sparse.csr_matrix(X),
        lambda: X[:, :0],
        lambda: X[:0],
        lambda: X.ravel(),
        lambda: X[None],
        lambda: X[1:],
        lambda: [row[: place % 3 + 1] for place, row in enumerate(X.tolist())],
        lambda: [[{}]] * len(X),
        lambda: [[10**400] * X.shape[1]] * len(X),
        lambda: pd.DataFrame(X, columns=["a"] * X.shape[1]),
        lambda: pd.DataFrame(X, columns=names),
        lambda: pd.DataFrame(X, columns=pd.MultiIndex.from_product([["a"], range(X.shape[1])])),
        lambda: pd.DataFrame(X, dtype="Float64").mask(X > 1.0),
        lambda: iter(X),
        lambda: holes(rng, X),
        lambda: pick(rng, ODD),
    )
    if seldom(rng, 3):
        return pick(rng, odd)()
    return pick(rng, (X.tolist(), pd.DataFrame(X), np.asfortranarray(X), *[X] * 10))


def label_places(rng, n_classes=2):
    """Places of classes, few of each; seldom none of one."""
    most = pick(rng, (1, 2, 3, 5, 9, 20))
    counts = rng.integers(0 if seldom(rng, 6) else 1, most + 1, n_classes)
    label = np.repeat(np.arange(n_classes), counts)
    return label if seldom(rng, 2) else rng.permutation(label)


def named(rng, label):
    """Labels of places, which may be no labels."""
    names = np.arange(max(int(label.max(initial=0)) + 1, 2))
    if names.size == 2:
        odd_names = ((0, 1), ("a", "b"), (False, True), (-1, 1), (0.5, 1.5), ("b", "a"), (3, -7))
        names = np.array(pick(rng, odd_names)) if seldom(rng, 2) else names
    y = names[label]
    odd = (
        lambda: y.astype(object),
        lambda: y.tolist(),
        lambda: pd.Series(y, index=rng.permutation(len(y))),
        lambda: pd.Series(y).astype("category"),
        lambda: y[:, None],
        lambda: y[:-1],
        lambda: np.where(rng.random(len(y)) < 0.3, np.nan, label),
        lambda: [None if one else "b" for one in label],
        lambda: [1 if one else "b" for one in label],
        lambda: label + rng.standard_normal(len(label)),
        lambda: np.where(label > 0, np.inf, -np.inf),
        lambda: [10**30 * int(one) for one in label],
        lambda: pd.array([pd.NA if one else 1 for one in label], dtype="Int64"),
        lambda: pick(rng, ODD),
    )
    return pick(rng, odd)() if seldom(rng, 8) else y


@np.errstate(all="ignore")
def weights(rng, n):
    """Weights of samples; often none."""
    positive = 10.0 ** rng.uniform(-2.0, 2.0, n)
    odd = (
        lambda: rng.integers(0, 4, n),
        lambda: positive,
        lambda: positive * (rng.random(n) < 0.6),
        lambda: np.zeros(n),
        lambda: -positive,
        lambda: positive * pick(rng, (1e-300, 1e-100, 1e-20, 1e14, 1e100, 1e300)),
        lambda: 10.0 ** rng.uniform(-300.0, 300.0, n),
        lambda: np.full(n, pick(rng, (np.nan, np.inf, 5e-324))),
        lambda: np.append(positive, 1.0),
        lambda: ["a"] * n,
        lambda: "balanced",
    )
    return pick(rng, odd)() if seldom(rng, 3) else None


def class_prior(rng):
    """Probabilities of two classes."""
    small = 10.0 ** rng.uniform(-320.0, 0.0)
    odd = ((0.5, 0.5), (0.3, 0.7), (small, 1.0 - small), (1.0 - 1e-9, 1e-9), (5e-324, 1.0))
    odd += ((0.0, 1.0), (0.9, 0.9), (np.nan, np.nan), (-1.0, 2.0), (0.2, 0.3, 0.5), (1.0,))
    odd += ([0.25, 0.75], np.array([0.25, 0.75], np.float32), {0: 0.5, 1: 0.5}, "uniform", 0.5)
    return pick(rng, (*odd, ("a", "b"), [[0.5, 0.5]], object())) if seldom(rng, 6) else None


def shrinkage(rng):
    """How a covariance may be shrunk."""
    return or_odd(rng, "oas", "oas", "oas", None, None, 0.0, 1.0, 0.5, 1e-300, 1e-16)


def n_features(rng):
    """Number of features."""
    return pick(rng, (1, 1, 2, 2, 3, 3, 4, 6, 9))


def people(d, n_people=8, n_each=(6, 6), seed=0, names=None):
    """Tasks of people who are alike, with labels 0, 1, ..."""
    rng = np.random.default_rng([seed, d, n_people, *n_each])
    names = np.arange(len(n_each)) if names is None else np.array(names)
    label = np.repeat(np.arange(len(n_each)), n_each)
    crowd = 1.5 * rng.standard_normal((len(n_each), d))
    tasks = []
    for place in range(n_people):
        means = crowd + 0.5 * rng.standard_normal(crowd.shape)
        X = means[label] + rng.standard_normal((label.size, d))
        tasks.append(Task(X, names[label], f"p{place}"))
    return tasks


def directions(d, n_tasks=12, seed=0):
    """Unit vectors about the first axis."""
    W = 0.4 * np.random.default_rng([seed, d, n_tasks]).standard_normal((n_tasks, d))
    W[:, 0] += 1.0
    return W / np.linalg.norm(W, axis=1, keepdims=True)


def _of(d, W=None, **options):
    return TaskPrior.from_projections(directions(d) if W is None else W, **options)


def _of_tasks(tasks, **options):
    return TaskPrior.from_tasks(tasks, **{"rehearse": False} | options)


PRIORS = {
    "directions": _of,
    "words": lambda d: _of(d, classes=("a", "b")),
    "isotropic": lambda d: _of(d, isotropic=True),
    "one": lambda d: _of(d, directions(d, 1)),
    "alike": lambda d: _of(d, np.repeat(directions(d, 1), 9, 0)),
    "cancelling": lambda d: _of(d, np.concatenate([directions(d), -directions(d)])),
    "tiny units": lambda d: _of(d, feature_scale=np.full(d, 1e-99)),
    "mixed units": lambda d: _of(d, feature_scale=np.resize([1e-90, 1e90, 1.0, 1e-20, 3.0], d)),
    "feature names": lambda d: _of(d, feature_names=[f"f{place}" for place in range(d)]),
    "tasks": lambda d: _of_tasks(people(d), rehearse=True),
    "raw tasks": lambda d: _of_tasks(
        people(d, 5), discriminant=FisherDiscriminant(shrinkage=None), feature_scale=None
    ),
    "short tasks": lambda d: _of_tasks(people(d, 4, (1, 2))),
    "word tasks": lambda d: _of_tasks(people(d, names=("a", "b")), rehearse=True),
    "no means": lambda d: _of_tasks(people(d)).without("class_means"),
    "summary": lambda d: TaskPrior.from_summary(np.eye(d)[0], 0.01 * np.eye(d), 9, form="authors"),
    "sum": lambda d: (
        _of_tasks(people(d), feature_scale=None) + _of_tasks(people(d, seed=1), feature_scale=None)
    ),
    # As if its noise had been drawn: that of OpenDP is another one every time.
    "released": lambda d: replace(
        _of(d), origin=replace(_of(d).origin, release=Release(1.0, 1e-6, 3.0, True))
    ),
}
MANY = {
    "three": lambda d: _of_tasks(people(d, 6, (5, 5, 5)), rehearse=True),
    "four": lambda d: _of_tasks(people(d, 6, (4, 4, 4, 4))),
}


@cache
def known(name, d):
    """A prior by its name."""
    return (PRIORS | MANY)[name](d)


def prior(rng, d, many=False):
    """A prior, or none; seldom one of other features or classes, or no prior at all."""
    if seldom(rng, 20):
        return pick(rng, ("prior", 1.0, TaskPrior, object(), {}, np.eye(3)))
    d += seldom(rng, 20)
    names = MANY if many != seldom(rng, 20) else PRIORS
    return None if seldom(rng, 5) else known(pick(rng, tuple(names)), d)

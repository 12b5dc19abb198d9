"""Arrays, labels, weights and parameters that nobody should give, drawn by a generator.

Everything here is quiet: what overflows on the way is as hostile as what is meant to.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.sparse

#: Sizes of features: from the smallest number there is to the largest.
SIZES = (
    *(5e-324, 1e-320, 1e-300, 1e-160, 1e-120, 1e-100, 1e-61, 1e-59, 1e-50, 1e-39, 1e-30, 1e-20),
    *(
        1e-12,
        1e-6,
        1e6,
        1e12,
        1e20,
        1e30,
        1e39,
        1e50,
        1e58,
        1e60,
        1e99,
        1e101,
        1e150,
        1e300,
        1.7e308,
    ),
)
#: Numbers that parameters may not have, or hardly.
ODD = (
    *(
        np.nan,
        np.inf,
        -np.inf,
        -1.0,
        -1e-300,
        0.0,
        -0.0,
        5e-324,
        1e-300,
        1e-10,
        0.5,
        1.0,
        1 + 1e-15,
    ),
    *(2, 10**400, 1e10, 1e100, 1e300, True, None, "a", "", b"1", 1j, (), [], [1.0], {}, object()),
    *(np.float32(0.3), np.int8(1), np.array(0.5), np.array([0.5]), np.array(["x"])),
)


def pick(rng, options):
    """One of some options."""
    return options[int(rng.integers(len(options)))]


def seldom(rng, one_in):
    """True once in so many times."""
    return rng.integers(one_in) == 0


# -- samples ---------------------------------------------------------------------------------------


@np.errstate(all="ignore")
def samples(rng, label, n_features, kind=None):
    """Features of labelled samples, all numbers; `kind` is one of `KINDS`."""
    label = np.asarray(label)
    X = rng.standard_normal((label.size, n_features))
    X += label[:, None] * (pick(rng, (0.0, 0.5, 1.0, 3.0, 30.0)) * rng.standard_normal(n_features))
    return np.asarray(KINDS[kind or pick(rng, tuple(KINDS))](rng, X), np.float64)


def _some_columns(rng, X, values):
    """The same with other numbers in one column or more."""
    which = rng.random(X.shape[1]) < 0.5
    return np.where(which, values, X)


def _low_rank(rng, X):
    rank = int(rng.integers(1, max(X.shape[1], 2)))
    return X[:, :rank] @ rng.standard_normal((min(rank, X.shape[1]), X.shape[1]))


def _tied(rng, X):
    """Shares that sum to one, as relative powers do."""
    positive = np.exp(X)
    return positive / positive.sum(1, keepdims=True)


def _nearly_equal(rng, X):
    """Neighbouring doubles."""
    base = pick(rng, (1.0, 0.1, 1e15, -3e7))
    return base + np.spacing(base) * rng.integers(-3, 4, X.shape)


def _offset(rng, X):
    """A small spread about a large number, as in times since 1970; up to the limit of doubles."""
    offset = 10.0 ** rng.uniform(0.0, 18.0, X.shape[1]) * rng.choice([-1.0, 1.0], X.shape[1])
    size = pick(rng, (1.0, 1e-50, 1e50))
    return size * (offset + X)


KINDS = {
    "plain": lambda rng, X: X,
    "large": lambda rng, X: X * 10.0 ** rng.integers(-3, 4),
    "of one size": lambda rng, X: X * pick(rng, SIZES),
    "of many sizes": lambda rng, X: X * [pick(rng, SIZES) for _ in range(X.shape[1])],
    "some sizes": lambda rng, X: X * 10.0 ** rng.uniform(-12, 12, X.shape[1]),
    "offset": _offset,
    "one offset": lambda rng, X: X + 10.0 ** rng.uniform(0.0, 17.0),
    "constant": lambda rng, X: np.full_like(X, pick(rng, (0.0, 1.0, -0.0, *SIZES))),
    "constant columns": lambda rng, X: _some_columns(rng, X, pick(rng, (0.0, 0.1, 1e10, 1e-10))),
    "twice": lambda rng, X: X[rng.integers(0, max(len(X) // 2, 1), len(X))] if len(X) else X,
    "low rank": _low_rank,
    "collinear": lambda rng, X: X[:, rng.integers(0, X.shape[1], X.shape[1])] * rng.integers(1, 4),
    "tied": _tied,
    "whole": lambda rng, X: np.rint(X),
    "zero or one": lambda rng, X: (X > 0.0) * 1.0,
    "zeros": lambda rng, X: np.copysign(0.0, X),
    "subnormal": lambda rng, X: 5e-324 * rng.integers(-9, 10, X.shape),
    "mixed": lambda rng, X: X * 10.0 ** rng.uniform(-320.0, 308.0, X.shape),
    "heavy": lambda rng, X: np.sinh(X * pick(rng, (3.0, 30.0))),
    "nearly equal": _nearly_equal,
}
#: Those that a sensor may well send.
TAME = ("plain", "large", "some sizes", "constant columns", "twice", "low rank", "collinear")
TAME += ("tied", "whole", "zero or one", "offset", "one offset", "nearly equal")


def holes(rng, X):
    """Some numbers that are none."""
    X = X.copy()
    X[rng.random(X.shape) < 0.3] = pick(rng, (np.nan, np.inf, -np.inf))
    return X


#: Other ways to hold the same numbers, exactly.
SAME = {
    "float64": lambda X: X.copy(),
    "list": lambda X: X.tolist(),
    "Fortran": np.asfortranarray,
    "turned": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "every second": lambda X: np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::2],
    "read-only": lambda X: _frozen(X),
    "frame": pd.DataFrame,
    "big-endian": lambda X: X.astype(">f8"),
    "object": lambda X: X.astype(object),
    "long": lambda X: X.astype(np.longdouble),
}
#: The same where numbers are whole and small.
SAME_WHOLE = SAME | {
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "int64": lambda X: X.astype(np.int64),
    "int8": lambda X: X.astype(np.int8),
    "ints": lambda X: X.astype(np.int64).tolist(),
    "Int64": lambda X: pd.DataFrame(X.astype(np.int64)).astype("Int64"),
}


def _frozen(X):
    X = X.copy()
    X.flags.writeable = False
    return X


@np.errstate(all="ignore")
def dressed(rng, X):
    """Samples in a container that may not be one of samples."""
    odd = (
        lambda: X.astype(np.float32),
        lambda: X.astype(np.float16),
        lambda: np.nan_to_num(X).astype(np.int64),
        lambda: X > 0.0,
        lambda: X.astype(str),
        lambda: X.astype(complex),
        lambda: X.astype(bytes),
        lambda: scipy.sparse.csr_matrix(X),
        lambda: scipy.sparse.coo_array(X),
        lambda: X.astype("datetime64[s]"),
        lambda: X[:, :0],
        lambda: X[:0],
        lambda: X.ravel(),
        lambda: X[None],
        lambda: np.array(1.0),
        lambda: X[:, :1],
        lambda: np.repeat(X, 2, 1),
        lambda: X[1:],
        lambda: [row[: place % 3 + 1] for place, row in enumerate(X.tolist())],
        lambda: [[{}]] * len(X),
        lambda: [[None] * X.shape[1]] * len(X),
        lambda: [[10**400] * X.shape[1]] * len(X),
        lambda: pd.DataFrame(X).assign(word="a"),
        lambda: pd.DataFrame(X, columns=["a"] * X.shape[1]),
        lambda: pd.DataFrame(X, columns=[f"f{place}" for place in range(X.shape[1])]),
        lambda: pd.DataFrame(X, columns=pd.MultiIndex.from_product([["a"], range(X.shape[1])])),
        lambda: pd.DataFrame(X).astype("category"),
        lambda: pd.DataFrame(X, dtype="Float64").mask(X > 1.0),
        lambda: memoryview(np.ascontiguousarray(X)),
        lambda: iter(X),
        lambda: holes(rng, X),
        lambda: masked(rng, X),
        lambda: np.rec.fromarrays(X.T) if X.size else X,
        lambda: None,
        lambda: "samples",
        lambda: 1.0,
        lambda: {},
        lambda: object(),
    )
    if seldom(rng, 3):
        return pick(rng, odd)()
    return pick(rng, (*SAME.values(), *[lambda X: X] * 10))(X)


def masked(rng, X):
    """A masked array of which some numbers are hidden."""
    mask = rng.random(X.shape) < 0.2
    if X.size:
        mask.flat[0] = True
    return np.ma.masked_array(X, mask)


def is_masked(X):
    """Whether numbers are hidden, which must not be used."""
    return isinstance(X, np.ma.MaskedArray) and bool(np.ma.getmaskarray(X).any())


# -- labels and weights ----------------------------------------------------------------------------


def label_places(rng, n_classes=2):
    """Places of classes, few of each; seldom none of one."""
    most = pick(rng, (1, 2, 3, 5, 9, 20))
    counts = rng.integers(0 if seldom(rng, 6) else 1, most + 1, n_classes)
    label = np.repeat(np.arange(n_classes), counts)
    return label if seldom(rng, 2) else rng.permutation(label)


NAMES = ((0, 1), ("a", "b"), (False, True), (-1, 1), (0.5, 1.5), (1, 2), ("b", "a"), (3, -7))


def named(rng, label):
    """Labels of places, which may be no labels."""
    n_classes = max(int(label.max(initial=0)) + 1, 2)
    names = np.arange(n_classes)
    if n_classes == 2 and seldom(rng, 2):
        names = np.array(pick(rng, NAMES))
    elif n_classes > 2 and seldom(rng, 2):
        names = np.array([f"class {place}" for place in range(n_classes)])
    y = names[label]
    odd = (
        lambda: y.astype(object),
        lambda: y.tolist(),
        lambda: y.astype(float) if y.dtype.kind in "ifb" else y.astype(bytes),
        lambda: pd.Series(y, index=rng.permutation(len(y))),
        lambda: pd.Series(y).astype("category"),
        lambda: y[:, None],
        lambda: y[:-1],
        lambda: np.append(y, y),
        lambda: np.where(rng.random(len(y)) < 0.3, np.nan, label),
        lambda: [None if one else "b" for one in label],
        lambda: [None] * len(y),
        lambda: [1 if one else "b" for one in label],
        lambda: [1.5 if one else None for one in label],
        lambda: [(1,) if one else (2,) for one in label],
        lambda: np.array([{1: 2} if one else [] for one in label], object),
        lambda: label + rng.standard_normal(len(label)),
        lambda: np.where(label > 0, np.inf, -np.inf),
        lambda: label.astype("datetime64[D]"),
        lambda: label * 1j,
        lambda: np.full(len(label), 2**63, np.uint64) + label.astype(np.uint64),
        lambda: [10**30 * int(one) for one in label],
        lambda: np.arange(len(label)),
        lambda: np.zeros(len(label)),
        lambda: np.ma.masked_array(label, label > 0),
        lambda: pd.array([pd.NA if one else 1 for one in label], dtype="Int64"),
        lambda: scipy.sparse.csr_matrix(label),
        lambda: np.eye(2)[np.minimum(label, 1)],
        lambda: None,
        lambda: "ab",
        lambda: 1,
    )
    return pick(rng, odd)() if seldom(rng, 8) else y


@np.errstate(all="ignore")
def weights(rng, n):
    """Weights of samples; often none."""
    positive = 10.0 ** rng.uniform(-2.0, 2.0, n)
    odd = (
        lambda: np.ones(n),
        lambda: rng.integers(0, 4, n),
        lambda: positive,
        lambda: positive * (rng.random(n) < 0.6),
        lambda: np.zeros(n),
        lambda: -positive,
        lambda: np.where(rng.random(n) < 0.5, -1.0, 1.0),
        lambda: positive * pick(rng, (1e-300, 1e-100, 1e-20, 1e8, 1e14, 1e17, 1e100, 1e300)),
        lambda: 10.0 ** rng.uniform(-300.0, 300.0, n),
        lambda: 10.0 ** rng.uniform(-20.0, 20.0, n),
        lambda: np.full(n, pick(rng, (np.nan, np.inf, 5e-324))),
        lambda: np.append(positive, 1.0),
        lambda: positive[:, None],
        lambda: positive.tolist(),
        lambda: positive.astype(np.float32),
        lambda: pd.Series(positive),
        lambda: rng.random(n) < 0.7,
        lambda: ["a"] * n,
        lambda: 2.0,
        lambda: np.array(1.0),
        lambda: "balanced",
        lambda: positive.astype(complex),
        lambda: positive.astype(object),
        lambda: [None] * n,
    )
    return pick(rng, odd)() if seldom(rng, 3) else None


# -- parameters ------------------------------------------------------------------------------------


def or_odd(rng, *usual, one_in=15):
    """One of the usual values of a parameter; seldom an odd one."""
    return pick(rng, ODD) if seldom(rng, one_in) else pick(rng, usual)


def class_prior(rng):
    """Probabilities of two classes."""
    small = 10.0 ** rng.uniform(-320.0, 0.0)
    odd = (
        (0.5, 0.5),
        (0.3, 0.7),
        (small, 1.0 - small),
        (1.0 - 10.0 ** rng.uniform(-17.0, 0.0), 10.0 ** rng.uniform(-17.0, 0.0)),
        (1e-12, 1.0 - 1e-12),
        (5e-324, 1.0),
        (1.0, 1e-300),
        (0.0, 1.0),
        (0.9, 0.9),
        (np.nan, np.nan),
        (-1.0, 2.0),
        (0.2, 0.3, 0.5),
        (1.0,),
        [0.25, 0.75],
        np.array([0.25, 0.75], np.float32),
        {0: 0.5, 1: 0.5},
        *("uniform", 0.5, True, ("a", "b"), [[0.5, 0.5]], (), object(), 1j),
    )
    return pick(rng, odd) if seldom(rng, 6) else None


def shrinkage(rng):
    """How a covariance may be shrunk."""
    return or_odd(rng, "oas", "oas", "oas", None, None, 0.0, 1.0, 0.5, 1e-300, 1e-16)


def strength(rng):
    """How far a crowd's scatter may be widened."""
    sizes = (0.0, 1.0, 1e-300, 1e-12, 0.5, 30.0, 1e5, 1e6, 1e7, 1e12, 1e100, 1e300, np.inf)
    return or_odd(rng, *["auto"] * 6, *["risk"] * 3, *sizes)

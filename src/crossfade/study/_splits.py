"""A seed and the labels of one task in; labelled windows and windows to test on out."""

from __future__ import annotations

import hashlib
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]

#: Ways to choose the labelled windows of each class.
KINDS = ("consecutive", "chronological", "random")


class Splits(NamedTuple):
    """Labelled windows and the rest, for many splits of one task.

    In each row the windows of the first class stand before those of the second and so on, each in
    the order of time.

    Attributes
    ----------
    labelled : ndarray of shape (n_splits, n_classes * n_each)
        Places of the labelled windows.
    test : ndarray of shape (n_splits, n_windows - n_classes * n_each)
        Places of all others.
    in_a_row : bool
        Whether the labelled windows of a class follow each other.
    """

    labelled: Places
    test: Places
    in_a_row: bool = True


def windows_of_each_class(budget: float, counts: tuple[int, ...]) -> int:
    """Labelled windows of each class that a budget allows.

    Parameters
    ----------
    budget : float or int
        A proportion of the smallest class, which is rounded up, or a whole number.
    counts : tuple of int
        Windows of each class.

    Returns
    -------
    int
        Labelled windows of each class.
    """
    if isinstance(budget, int):
        return budget
    # 0.07 times 100 is above 7 by rounding only.
    return math.ceil(budget * min(counts) - 1e-9)


def draw_splits(
    label: NDArray[np.intp], n_each: int, n_splits: int, kind: str, rng: np.random.Generator
) -> Splits:
    """Choose labelled windows; a split does not depend on how many others are drawn after it.

    Parameters
    ----------
    label : ndarray of shape (n_windows,)
        Place of each window's class, from 0, in the order of time; none is missing.
    n_each : int
        Labelled windows of each class.
    n_splits : int
        How many splits to draw.
    kind : {"consecutive", "chronological", "random"}
        A run of each class with a random start, the first of each class, or any.
    rng : Generator
        Where chance comes from.

    Returns
    -------
    Splits
        The splits.
    """
    labelled, test = [], []
    classes = [np.flatnonzero(label == name) for name in range(int(label.max()) + 1)]
    keys = rng.random((n_splits, label.size if kind == "random" else len(classes)))
    for name, places in enumerate(classes):
        chosen = np.zeros((n_splits, places.size), dtype=bool)
        if kind == "random":
            among = keys[:, places].argsort(1)[:, :n_each]
        else:
            starts = (keys[:, name] * (places.size - n_each + 1)).astype(np.intp)
            if kind == "chronological":
                starts[:] = 0
            among = starts[:, None] + np.arange(n_each)
        np.put_along_axis(chosen, among, True, 1)
        # A stable sort puts the windows that were not chosen first, and keeps the order of time.
        order = places[chosen.argsort(1, kind="stable")]
        test.append(order[:, : places.size - n_each])
        labelled.append(order[:, places.size - n_each :])
    return Splits(np.concatenate(labelled, 1), np.concatenate(test, 1), kind != "random")


def generator_for(seed: int, *what: object) -> np.random.Generator:
    """Generator that depends on the seed and on what it is for, and on nothing else.

    Parameters
    ----------
    seed : int
        Seed of the study.
    *what : object
        Names and numbers that say what the generator is for.

    Returns
    -------
    Generator
        The same one for the same arguments, on every machine.
    """
    digest = hashlib.sha256(repr(what).encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "little")])

"""Which windows of a task are labelled: runs of neighbours, the first, or any.

A split depends on the seed, the name of its task, the budget and its own number, and on nothing
else; so methods, studies and scikit-learn's cross-validation can share the same ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]

#: Ways to choose the labelled windows of each class.
KINDS = ("consecutive", "chronological", "random")
#: A run, too, in a session of somebody who has been there before.
NEXT_SESSION = "next-session"
#: More splits than any real study has.
MOST_SPLITS = 1_000_000


class Splits(NamedTuple):
    """Labelled windows and the rest, for many splits of one task.

    `labelled` (n_splits, n_labelled) and `test` (n_splits, n_test) are places of windows. In each
    row those of the first class stand before those of the second and so on, each in the order of
    time, so that all rows have the same classes: `label` (n_labelled,) and `truth` (n_test,).
    `consecutive` says whether the labelled windows of a class follow each other.
    """

    labelled: Places
    test: Places
    label: Places
    truth: Places
    consecutive: bool = True

    def part(self, first: int, last: int) -> Splits:
        """Splits from `first` up to but not including `last`."""
        return self._replace(labelled=self.labelled[first:last], test=self.test[first:last])


def draw_splits(
    label: Places, n_each: int | Sequence[int], n_splits: int, kind: str, rng: np.random.Generator
) -> Splits:
    """Choose `n_each` windows of each class; a split does not depend on how many follow it.

    `label` (n_windows,) has the place of each window's class, in the order of time; none is
    missing. A run of n among N windows starts at floor(u (N - n + 1)), u being uniform and of each
    class its own.
    """
    labelled, test = [], []
    classes = [np.flatnonzero(label == name) for name in range(int(label.max()) + 1)]
    n_labelled = np.broadcast_to(n_each, len(classes)).tolist()
    keys = rng.random((n_splits, label.size if kind == "random" else len(classes)))
    for name, (places, n_own) in enumerate(zip(classes, n_labelled, strict=True)):
        chosen = np.zeros((n_splits, places.size), dtype=bool)
        if kind == "random":
            among = keys[:, places].argsort(1)[:, :n_own]
        else:
            starts = (keys[:, name] * (places.size - n_own + 1)).astype(np.intp)
            if kind == "chronological":
                starts[:] = 0
            among = starts[:, None] + np.arange(n_own)
        np.put_along_axis(chosen, among, True, 1)
        # A stable sort puts the windows that were not chosen first, and keeps the order of time.
        order = places[chosen.argsort(1, kind="stable")]
        test.append(order[:, : places.size - n_own])
        labelled.append(order[:, places.size - n_own :])
    names = np.arange(len(classes))
    return Splits(
        np.concatenate(labelled, 1),
        np.concatenate(test, 1),
        names.repeat(n_labelled),
        names.repeat([part.shape[1] for part in test]),
        kind != "random",
    )


def generator_for(seed: int, *what: object) -> np.random.Generator:
    """Generator that depends on the seed and on what it is for; the same on every machine."""
    digest = hashlib.sha256(repr(what).encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "little")])

"""Many classes as pairs: a posterior blend for each pair, and their probabilities coupled.

The coupling is the second one of Wu, Lin and Weng (2004), Probability estimates for multi-class
classification by pairwise coupling, Journal of Machine Learning Research 5.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from crossfade import PosteriorBlendClassifier, Task
from reproduction.algorithm import Array
from reproduction.discussion.common import Rule, prior_of


class Pairs:
    """Posterior blends of all pairs of classes, fitted to the sources."""

    def __init__(self, sources: Sequence[Task]) -> None:
        self.classes = np.unique(np.concatenate([task.y for task in sources]))
        self.priors = {
            pair: prior_of([_only(task, pair) for task in sources])
            for pair in combinations(self.classes.tolist(), 2)
        }

    def fit(self, X: Array, y: np.ndarray) -> Rule:
        """Rule of a person with these labelled windows."""
        rules = {}
        for pair, prior in self.priors.items():
            rows = np.isin(y, pair)
            rules[pair] = PosteriorBlendClassifier(prior).fit(X[rows], y[rows])
        places = {name: place for place, name in enumerate(self.classes.tolist())}

        def predict(windows: Array) -> np.ndarray:
            r = np.zeros((len(windows), len(places), len(places)))
            for (first, second), rule in rules.items():
                one, other = places[first], places[second]
                r[:, [one, other], [other, one]] = rule.predict_proba(windows)
            return self.classes[coupled(r).argmax(1)]

        return predict


def _only(task: Task, pair: tuple[object, object]) -> Task:
    """Windows of two classes."""
    rows = np.isin(task.y, pair)
    return Task(task.X[rows], task.y[rows], task.name, task.group)


def coupled(r: Array) -> Array:
    """Probabilities (n, K) that minimise the sum of (r_ji p_i - r_ij p_j)^2 over pairs.

    `r` (n, K, K) has the probability of class i rather than j; its diagonal is zero.
    """
    n, k, _ = r.shape
    system = np.zeros((n, k + 1, k + 1))
    system[:, :k, :k] = -r.mT * r
    diagonal = np.arange(k)
    system[:, diagonal, diagonal] = (r**2).sum(1)
    system[:, :k, k] = system[:, k, :k] = 1.0
    goal = np.zeros((n, k + 1, 1))
    goal[:, k] = 1.0
    found: Array = np.linalg.solve(system, goal)[:, :k, 0]
    return found

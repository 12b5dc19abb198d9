"""What the three share: priors, directions, rules, and the comparison person by person."""

import warnings
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score

from crossfade import FisherDiscriminant, Task, TaskPrior
from reproduction.algorithm import Array
from reproduction.applications import draw_splits, encoded

#: What a fitted method is: windows to labels.
Rule = Callable[[Array], np.ndarray]


class Method(Protocol):
    """Made from the sources; `fit` gives the rule of one person."""

    def fit(self, X: Array, y: np.ndarray) -> Rule:
        """Rule of a person with these labelled windows."""


def prior_of(sources: Sequence[Task]) -> TaskPrior:
    """Prior of the sources, without the rehearsal that only forecasts need."""
    return TaskPrior.from_tasks(sources, rehearse=False)


def directions_of(sources: Sequence[Task]) -> tuple[Array, Array]:
    """Scale of the features, and unit directions (J, d) of the sources in that scale."""
    scale = prior_of(sources).feature_scale
    discriminant = FisherDiscriminant(feature_scale=scale)
    return scale, np.array([discriminant.fit(task.X, task.y).projection_ for task in sources])


def midpoint_rule(omega: Array, X: Array, y: np.ndarray) -> Rule:
    """Rule along a direction (d,), through the midpoint of the labelled windows."""
    classes = np.unique(y)
    threshold = omega @ np.mean([X[y == name].mean(0) for name in classes], axis=0)
    return lambda windows: classes[(windows @ omega > threshold).astype(int)]


class Estimator:
    """A blend of the library, as a method."""

    def __init__(self, make: Callable[[TaskPrior], object], sources: Sequence[Task]) -> None:
        self.make, self.prior = make, prior_of(sources)

    def fit(self, X: Array, y: np.ndarray) -> Rule:
        """Rule of a person with these labelled windows."""
        rule: Rule = self.make(self.prior).fit(X, y).predict
        return rule


def compare(
    tasks: Sequence[Task],
    methods: dict[str, Callable[[Sequence[Task]], Method]],
    budgets: Sequence[int] = (2, 4, 8),
    n_splits: int = 20,
) -> pd.DataFrame:
    """Mean balanced accuracy by `method`, `budget` and `task`; each person is left out in turn.

    A budget is a number of consecutive labelled windows of each class.
    """
    lines = []
    for task in tasks:
        group = task.name if task.group is None else task.group
        sources = [one for one in tasks if (one.name if one.group is None else one.group) != group]
        made = {name: make(sources) for name, make in methods.items()}
        labels, rng = encoded(task), np.random.default_rng(0)
        for budget in (one for one in budgets if one < np.bincount(labels).min()):
            splits = draw_splits(labels, budget, n_splits, rng)
            for train, test in zip(splits.rows, splits.tested, strict=True):
                for name, method in made.items():
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", UserWarning)
                        predicted = method.fit(task.X[train], task.y[train])(task.X[test])
                    found = balanced_accuracy_score(task.y[test], predicted)
                    lines.append((name, budget, task.name, found))
    table = pd.DataFrame(lines, columns=["method", "budget", "task", "accuracy"])
    return table.groupby(["method", "budget", "task"], sort=False)["accuracy"].mean().reset_index()


def summarised(table: pd.DataFrame, reference: str = "hierarchical") -> pd.DataFrame:
    """Mean accuracy by method (rows) and budget, and the difference from a reference."""
    wide = table.pivot(index="task", columns=["method", "budget"], values="accuracy")
    rows = {}
    for name in dict.fromkeys(table["method"]):
        row = {}
        for budget in dict.fromkeys(table["budget"]):
            gain = wide[name, budget] - wide[reference, budget]
            text = f"{wide[name, budget].mean():.3f}"
            if name != reference:
                text += f" ({gain.mean():+.3f} ± {gain.sem():.3f})"
            row[f"{budget} each"] = text
        rows[name] = row
    return pd.DataFrame.from_dict(rows, orient="index")

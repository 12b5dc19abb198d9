"""Accuracy to expect with more labelled samples of the same person (equation 60)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from crossfade._typing import Array
from crossfade._validate import HEAVIEST, check_number, check_type
from crossfade.classifiers._base import BlendClassifier
from crossfade.prior import label_count_of


class LabelForecast(NamedTuple):
    """Accuracy to expect with so many labelled samples.

    Attributes
    ----------
    n_per_class : ndarray of shape (n_budgets,)
        Labelled samples of each class; of unequal numbers their harmonic mean.
    accuracy, error : ndarray of shape (n_budgets,)
        Expected accuracy of this person, and its standard error.
    lower, upper : ndarray of shape (n_budgets,)
        Interval that holds the accuracy as often as `level` says.
    budgets : tuple
        The numbers as they were given.
    """

    n_per_class: Array
    accuracy: Array
    error: Array
    lower: Array
    upper: Array
    budgets: tuple[Any, ...] = ()


def forecast_labels(
    blend: BlendClassifier, n_per_class: ArrayLike | Sequence[Any], *, level: float = 0.9
) -> LabelForecast:
    """Accuracy to expect with other numbers of labelled samples of the same target (equation 60).

    Forecasts come from rehearsals: how accurate rules became for earlier people who resembled this
    one, given the same number of samples.

    Parameters
    ----------
    blend : BlendClassifier
        A fitted blend whose prior rehearsed, as those of :meth:`TaskPrior.from_tasks` do.
    n_per_class : array-like of shape (n_budgets,), or sequence of int and of tuples of int
        Labelled samples of each class; a tuple has those of the first class, of the second, and
        so on. Fewer than there are already bring a warning.
    level : float, default=0.9
        Probability of the intervals.

    Returns
    -------
    LabelForecast
        Expected accuracies with their errors and intervals, for classes as frequent as
        ``blend.class_prior_``; with as many samples as there are it is
        ``blend.expected_accuracy_``.

    Examples
    --------
    >>> from crossfade import HierarchicalBlendClassifier, TaskPrior, forecast_labels
    >>> from crossfade import load_mental_math
    >>> people = load_mental_math()
    >>> blend = HierarchicalBlendClassifier(TaskPrior.from_tasks(people[1:])).start()
    >>> now, more = forecast_labels(blend, [0, 20]).accuracy
    >>> bool(more > now)
    True
    """
    check_type("blend", blend, BlendClassifier, "a blend of Crossfade")
    level = check_number("level", level, 0.0, 1.0)
    check_is_fitted(blend, "coef_", msg=blend._not_fitted())
    rule = blend.rule_
    if rule.record is None:
        raise ValueError(
            "What more labels would bring is known from rehearsals only, and the prior holds none "
            "for this blend. Build it with TaskPrior.from_tasks, and use the blend's defaults."
        )
    given, budgets = _budgets(n_per_class, rule.n_labelled)
    later = np.asarray(label_count_of(budgets), np.float64)
    accuracy, error, lower, upper = rule.forecast_after(later, level)
    return LabelForecast(later, accuracy, error, lower, upper, given)


def _budgets(n_per_class: Any, counts: Array) -> tuple[tuple[Any, ...], Array]:
    """Budgets as given, and samples of each class (n_budgets, n_classes)."""
    n_classes = len(counts)
    try:
        array = isinstance(n_per_class, np.ndarray)
        given = tuple(n_per_class.tolist() if array else n_per_class)
        each = np.stack([np.broadcast_to(np.asarray(one, float), (n_classes,)) for one in given])
    except (TypeError, ValueError, OverflowError) as reason:
        raise ValueError(
            "n_per_class must be numbers of samples of each class, or tuples with one for each of "
            f"{n_classes} classes; got {n_per_class!r}."
        ) from reason
    part = (each > 0.0) & (each < 1.0)
    if not (np.isfinite(each).all() and each.min() >= 0.0 and each.max() <= HEAVIEST) or part.any():
        raise ValueError(f"n_per_class must be numbers of samples; got {n_per_class!r}.")
    if (each < counts - 1e-9).any():
        warnings.warn(
            f"The blend has {counts.tolist()} labelled samples of its classes, and n_per_class "
            "asks for fewer. Ask a blend that start() has begun.",
            UserWarning,
            stacklevel=3,
        )
    return given, each

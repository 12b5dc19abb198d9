"""An estimator or directions in, verdicts on the test windows of a batch of splits out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone

from crossfade.blend._classifier import BlendClassifier
from crossfade.blend._multiclass import MulticlassBlend
from crossfade.fisher._direction import Target
from crossfade.fisher._linear import FLATTEST
from crossfade.risk._forecast import forecast
from crossfade.study._batch import Batch, Judge, Verdicts

Array = NDArray[np.float64]

#: Steepest slope of a probability.
_STEEPEST = 1e12


@dataclass(frozen=True)
class EstimatorMethod:
    """A scikit-learn estimator, fitted to the labelled windows of each split and to nothing else.

    Attributes
    ----------
    estimator : estimator
        A classifier with `fit` and `predict`; it is cloned, and a `random_state` of None seeded.
    """

    estimator: Any

    def __call__(self, crowd: object) -> Judge:
        """Judge that fits the estimator; the sources are not used.

        Parameters
        ----------
        crowd : object
            The target's sources.

        Returns
        -------
        callable
            For batches of one split.
        """
        return self._judge

    def _judge(self, batch: Batch, rng: np.random.Generator) -> Verdicts:
        fitted = clone(self.estimator)
        seeds = {
            name: int(rng.integers(2**31))
            for name, value in sorted(fitted.get_params().items())
            if value is None and name.split("__")[-1] == "random_state"
        }
        return fitted_verdicts(fitted.set_params(**seeds), batch)


def fitted_verdicts(estimator: Any, batch: Batch) -> Verdicts:
    """Verdicts of an estimator that is fitted to the only split of a batch.

    Parameters
    ----------
    estimator : estimator
        A classifier.
    batch : Batch
        A batch of one split.

    Returns
    -------
    Verdicts
        What it says of the test windows; odd output is refused.
    """
    [labelled], [test] = batch.splits.labelled, batch.splits.test
    estimator.fit(batch.X[labelled], batch.y[labelled])
    X = batch.X[test]
    many = [len(batch.classes)] if len(batch.classes) > 2 else []
    label = _output(estimator, "predict", X)
    taken = np.stack([np.asarray(label == name) for name in batch.classes], -1)
    strange = label[~taken.any(-1)].tolist()
    if strange:
        raise ValueError(
            f"predict returned {strange[0]!r}, which is none of the classes "
            f"{batch.classes.tolist()}. A method of a study must be a classifier."
        )
    positive = taken if many else taken[:, 1]
    probability = np.full(positive.shape, np.nan)
    scores = positive.astype(np.float64)
    has_chances = hasattr(estimator, "predict_proba")
    if has_chances:
        chances = _output(estimator, "predict_proba", X, len(batch.classes)).astype(np.float64)
        scores = probability = chances if many else chances[:, 1]
    # Of many classes, scores of one against the rest are not those of the others.
    if hasattr(estimator, "decision_function") and not (many and has_chances):
        scores = _output(estimator, "decision_function", X, *many).astype(np.float64)
    alpha, expected = _alpha_and_forecast(estimator)
    return Verdicts(
        scores[None], positive[None], probability[None], np.array([alpha]), np.array([expected])
    )


def _alpha_and_forecast(estimator: Any) -> tuple[float, float]:
    """Those of a blend, NaN for what it lacks; others have an alpha_ too, of other meaning."""
    if isinstance(estimator, BlendClassifier):
        return estimator.alpha_, estimator.expected_accuracy_
    if isinstance(estimator, MulticlassBlend):
        alphas = [rule.alpha_ for rule in estimator.rules_.values()]
        return float(np.mean(alphas)), getattr(estimator, "expected_accuracy_", np.nan)
    return np.nan, np.nan


def _output(estimator: Any, name: str, X: Array, *n_columns: int) -> NDArray[Any]:
    """What an estimator's function returns; numpy would broadcast a wrong shape to a score."""
    values = np.asarray(getattr(estimator, name)(X))
    shape = (len(X), *n_columns)
    if values.shape != shape:
        raise ValueError(
            f"{name} must return an array of shape {shape} for {len(X)} windows; got "
            f"{values.shape}."
        )
    return values


def forecast_verdicts(
    batch: Batch, own: Target, omega: Array, trace: Array, alpha: Array
) -> Verdicts:
    """Verdicts of blends, with probabilities and accuracies that follow from the forecast.

    Parameters
    ----------
    batch : Batch
        The splits.
    own : Target
        What their labelled windows say.
    omega : ndarray of shape (n_splits, n_features)
        Directions in scaled units.
    trace, alpha : ndarray of shape (n_splits,)
        As the forecast takes it, and the weight of the target.

    Returns
    -------
    Verdicts
        What the blends say of the test windows.
    """
    promise = forecast(own, omega, trace)
    return verdicts_of(batch, own, omega, promise.gap, promise.variance, alpha, promise.accuracy)


def verdicts_of(
    batch: Batch,
    own: Target,
    omega: Array,
    gap: Array,
    variance: Array,
    alpha: Array,
    expected: Array,
) -> Verdicts:
    """Verdicts of directions in scaled units; probabilities are those of equation 27.

    Parameters
    ----------
    batch : Batch
        The splits.
    own : Target
        What their labelled windows say.
    omega : ndarray of shape (n_splits, n_features)
        Directions in scaled units.
    gap, variance : ndarray of shape (n_splits,)
        Half the distance of the classes along them, and the variance within these.
    alpha, expected : ndarray of shape (n_splits,)
        Weight of the target, and forecast.

    Returns
    -------
    Verdicts
        What the directions say of the test windows.
    """
    scores = batch.scores(omega / own.scale, own.midpoint)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(variance > 0.0, 2.0 * gap / variance, np.where(gap > 0.0, np.inf, 0.0))
    slope = np.clip(slope, FLATTEST, _STEEPEST)
    return Verdicts(scores, scores > 0.0, expit(slope[:, None] * scores), alpha, expected)


def mended(verdicts: Verdicts, batch: Batch, own: Target, estimator: Any) -> Verdicts:
    """The same, with the estimator's own verdicts where a split has no direction of its own.

    Such a split is one whose classes do not differ, or only where nothing varies; estimators know
    what to do with it.

    Parameters
    ----------
    verdicts : Verdicts
        Verdicts on all splits of a batch; those without a direction are overwritten.
    batch : Batch
        The splits.
    own : Target
        What their labelled windows say.
    estimator : estimator
        Does for one split what was done for all.

    Returns
    -------
    Verdicts
        The same object.
    """
    for place in np.flatnonzero(own.noise.length == 0.0).tolist():
        mended = fitted_verdicts(clone(estimator), batch.part(place, place + 1))
        for all_of_them, one in zip(verdicts, mended, strict=True):
            all_of_them[place] = one[0]
    return verdicts

"""Estimators as methods of a study: fitted to the labelled windows of one split after the other.

One that asks for the sources gets them, by the convention of scikit-learn (`groups`), of skada
(`sample_domain`) or of MOABB (`X_target_labeled`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

from crossfade.classifiers import BlendClassifier
from crossfade.study._batch import LEVELS, Array, Batch, Predictions
from crossfade.study._sources import Sources


@dataclass(frozen=True)
class FitEach:
    """Fit a scikit-learn classifier to the labelled windows of each split.

    One that asks for people by `crowd` gets the windows of the sources too, others nothing else. It
    is cloned, and a `random_state` of None is seeded. A batch must have one split.
    """

    estimator: Any
    crowd: str | None = None

    def __call__(self, sources: Sources, batch: Batch, rng: np.random.Generator) -> Predictions:
        fitted = _cloned(self.estimator)
        seeds = {
            name: int(rng.integers(2**31))
            for name, value in sorted(fitted.get_params().items())
            if value is None and name.split("__")[-1] == "random_state"
        }
        fitted.set_params(**seeds)
        return fit_and_predict(fitted, batch, None if self.crowd is None else sources, self.crowd)


def _cloned(estimator: Any) -> Any:
    """A clone that masks the target's labels or not, as it was told: skada's steps forget it."""
    made = clone(estimator)
    if isinstance(estimator, Pipeline):
        for (_, old), (_, new) in zip(estimator.steps, made.steps, strict=True):
            if hasattr(old, "mask_target_labels"):
                new.mask_target_labels = old.mask_target_labels
    return made


def fit_and_predict(
    estimator: Any, batch: Batch, sources: Sources | None = None, crowd: str | None = None
) -> Predictions:
    """Predictions of an estimator that is fitted to the only split of a batch."""
    [labelled], [test] = batch.splits.labelled, batch.splits.test
    X, y = batch.X[labelled], batch.classes[batch.splits.label]
    if sources is None or crowd is None:
        estimator.fit(X, y)
    else:
        with config_context(enable_metadata_routing=True):
            _fit_with(estimator, X, y, sources, crowd)
    outputs = outputs_of(estimator, batch.X[test], batch.classes)
    fields = (*outputs, *_about_itself(estimator), np.nan)
    return Predictions._make(np.asarray(one)[None] for one in fields)


def refitted(found: Predictions, places: list[int], batch: Batch, rule: Any) -> Predictions:
    """The same, with the predictions of an estimator for the splits at some places."""
    if not places:
        return found
    parts = [fit_and_predict(clone(rule), batch.part(place, place + 1)) for place in places]
    return found.patched(places, Predictions.joined(parts))


#: What MOABB hands over beside the windows of the sources.
_BESIDE = ("X_target_labeled", "y_target_labeled", "subjects")
#: How an estimator may ask for the sources, the way it is served by first.
_CONVENTIONS = ("groups", "sample_domain", *_BESIDE)


def asks_for(estimator: Any) -> str | None:
    """By which convention an estimator asks for the sources; None if it does not.

    A blend that has a prior has its crowd already.
    """
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if getattr(last, "prior", None) is not None:
        return None
    with config_context(enable_metadata_routing=True):
        wanted = get_routing_for_object(estimator).consumes(
            "fit", [*_CONVENTIONS, "X_target_unlabeled"]
        )
    if wanted == {"X_target_unlabeled"}:
        raise ValueError(
            "fit asks for X_target_unlabeled alone, and a study has no windows without labels to "
            "hand over. Ask for subjects or X_target_labeled too, or leave the method out."
        )
    found = next((name for name in _CONVENTIONS if name in wanted), None)
    return "moabb" if found in _BESIDE else found


def _fit_with(estimator: Any, X: Array, y: NDArray[Any], sources: Sources, crowd: str) -> None:
    """Fit to the windows of the sources, and to the target's labelled ones X (n, d), the last."""
    theirs, label, task = sources.in_windows
    names = sources.classes[label]
    person = np.unique(sources.groups[task], return_inverse=True)[1] + 1
    if crowd == "moabb":
        beside = dict(zip(_BESIDE, (X, y, person), strict=True))
        wanted = get_routing_for_object(estimator).consumes("fit", beside)
        estimator.fit(theirs, names, **{name: beside[name] for name in wanted})
        return
    target = int(person.max()) + 1
    own = np.full(len(y), target if crowd == "groups" else -target)
    people = {crowd: np.concatenate([person, own])}
    estimator.fit(np.concatenate([theirs, X]), np.concatenate([names, y]), **people)


def outputs_of(
    estimator: Any, X: Array, classes: NDArray[Any]
) -> tuple[NDArray[np.intp], Array, Array]:
    """Predicted classes (n,), scores and probabilities (n, n_columns); odd output is refused."""
    n_classes = len(classes)
    label = _output(estimator, "predict", X)
    taken = np.stack([np.asarray(label == name) for name in classes], -1)
    strange = label[~taken.any(-1)].tolist()
    if strange:
        raise ValueError(
            f"predict returned {strange[0]!r}, which is none of the classes "
            f"{classes.tolist()}. A method of a study must be a classifier."
        )
    columns = slice(None) if n_classes > 2 else slice(1, None)
    scores = taken[:, columns].astype(np.float64)
    probability = np.full(scores.shape, np.nan)
    has_chances = hasattr(estimator, "predict_proba")
    if has_chances:
        chances = _output(estimator, "predict_proba", X, n_classes).astype(np.float64)
        scores = probability = chances[:, columns]
    # Of many classes, scores of one against the rest are not those of the others.
    if hasattr(estimator, "decision_function") and not (n_classes > 2 and has_chances):
        shape = [n_classes] if n_classes > 2 else []
        scores = _output(estimator, "decision_function", X, *shape).astype(np.float64)
    return taken.argmax(-1), scores.reshape(probability.shape), probability


def _about_itself(estimator: Any) -> tuple[float, float, Array]:
    """Alpha, forecast and its intervals (4,) of a blend, NaN for what it lacks.

    Other estimators may have an alpha_ too, of other meaning; one that forecasts with an interval
    is a blend.
    """
    alpha = expected = np.nan
    interval = np.full(2 * len(LEVELS), np.nan)
    if hasattr(estimator, "expected_accuracy_interval") and hasattr(
        estimator, "expected_accuracy_"
    ):
        ends = [estimator.expected_accuracy_interval(level) for level in LEVELS]
        interval = np.ravel(ends).astype(np.float64)
    if isinstance(estimator, BlendClassifier) or np.isfinite(interval).any():
        alpha, expected = getattr(estimator, "alpha_", np.nan), estimator.expected_accuracy_
    return alpha, expected, interval


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

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

from crossfade.study._batch import INTERVALS, Array, Batch, Columns, measured
from crossfade.study._sources import Sources


@dataclass(frozen=True)
class FitEach:
    """Fit a clone to the labelled windows of one split, and by a convention to the sources."""

    estimator: Any
    crowd: str | None = None

    def __call__(self, sources: Sources, batch: Batch, rng: np.random.Generator) -> Columns:
        fitted = _cloned(self.estimator)
        seeds = {
            name: int(rng.integers(2**31))
            for name, value in sorted(fitted.get_params().items())
            if value is None and name.split("__")[-1] == "random_state"
        }
        fitted.set_params(**seeds)
        [labelled], [test] = batch.splits.labelled, batch.splits.test
        X, y = batch.X[labelled], batch.classes[batch.splits.label]
        if self.crowd is None:
            fitted.fit(X, y)
        else:
            with config_context(enable_metadata_routing=True):
                _fit_with(fitted, X, y, sources, self.crowd)
        return _answers(fitted, batch.X[test], batch) | _about_itself(fitted)


def _cloned(estimator: Any) -> Any:
    """A clone that masks the target's labels or not, as it was told: skada's steps forget it."""
    made = clone(estimator)
    if isinstance(estimator, Pipeline):
        for (_, old), (_, new) in zip(estimator.steps, made.steps, strict=True):
            if hasattr(old, "mask_target_labels"):
                new.mask_target_labels = old.mask_target_labels
    return made


#: Arguments of MOABB beside the windows of the sources.
_BESIDE = ("X_target_labeled", "y_target_labeled", "subjects")
#: How an estimator may ask for the sources, the way it is served by first.
_CONVENTIONS = ("groups", "sample_domain", *_BESIDE)


def asks_for(estimator: Any) -> str | None:
    """Convention by which an estimator asks for the sources; None if it does not."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    # A blend that has a prior has its crowd already.
    if getattr(last, "prior", None) is not None:
        return None
    with config_context(enable_metadata_routing=True):
        wanted = get_routing_for_object(estimator).consumes(
            "fit", [*_CONVENTIONS, "X_target_unlabeled"]
        )
    if wanted == {"X_target_unlabeled"}:
        raise ValueError(
            "fit asks for X_target_unlabeled alone, and a study hands over no unlabelled windows. "
            "Ask for subjects or X_target_labeled too, or leave the method out."
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


def _answers(estimator: Any, X: Array, batch: Batch) -> Columns:
    """Scores of an estimator's predictions; odd output is refused."""
    classes, n_classes = batch.classes, len(batch.classes)
    label = _output(estimator, "predict", X)
    taken = np.stack([np.asarray(label == name) for name in classes], -1)
    if not taken.any(-1).all():
        strange = label[~taken.any(-1)].tolist()[0]
        raise ValueError(f"predict returned {strange!r}; the classes are {classes.tolist()}.")
    columns = slice(None) if n_classes > 2 else slice(1, None)
    scores, probability = taken[:, columns].astype(np.float64), None
    if hasattr(estimator, "predict_proba"):
        chances = _output(estimator, "predict_proba", X, n_classes).astype(np.float64)
        scores = probability = chances[:, columns]
    # Of many classes, scores of one against the rest are not those of the others.
    if hasattr(estimator, "decision_function") and (n_classes == 2 or probability is None):
        shape = [n_classes] if n_classes > 2 else []
        scores = _output(estimator, "decision_function", X, *shape).astype(np.float64)
    scores = scores.reshape(len(X), -1)
    known = None if probability is None else probability[None]
    return measured(batch.splits.truth, scores[None], known, taken.argmax(-1)[None])


def _about_itself(estimator: Any) -> Columns:
    """Alpha, forecast and its intervals of a blend, or of what forecasts like one."""
    if not hasattr(estimator, "expected_accuracy_interval"):
        return {}
    names = ("alpha", "expected_accuracy")
    about = {name: getattr(estimator, f"{name}_", np.nan) for name in names}
    for level, names in INTERVALS.items():
        about |= dict(zip(names, estimator.expected_accuracy_interval(level), strict=True))
    return {name: np.array([value], np.float64) for name, value in about.items()}


def _output(estimator: Any, name: str, X: Array, *n_columns: int) -> NDArray[Any]:
    """Output of an estimator's function; numpy would broadcast a wrong shape to a score."""
    values = np.asarray(getattr(estimator, name)(X))
    shape = (len(X), *n_columns)
    if values.shape != shape:
        raise ValueError(
            f"{name} must return shape {shape} for {len(X)} windows; got {values.shape}."
        )
    return values

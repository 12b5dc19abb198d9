"""Model files: a fitted blend as checksummed JSON, and back as a rule that only predicts."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from crossfade._atomic import write_whole
from crossfade._validate import (
    check_finite,
    check_integer,
    check_names,
    check_number,
    check_scale,
)
from crossfade.blend._classifier import BlendClassifier
from crossfade.fisher._linear import LinearRule
from crossfade.prior._archive import content_of
from crossfade.prior._crowd import Prior
from crossfade.risk._error_rate import check_class_prior, log_odds
from crossfade.risk._outlook import Outlook

Array = NDArray[np.float64]

FORMAT = "crossfade-model"
VERSION = 2


class SavedRule(LinearRule):
    """A rule from a file: it predicts as the blend did that was saved, and learns nothing more.

    Made by :func:`load_model`.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Labels, sorted; the second is positive.
    coef_, intercept_ : ndarray of shape (1, n_features) and (1,)
        The rule in the user's units.
    projection_ : ndarray of shape (n_features,)
        Its unit direction, in scaled units.
    feature_scale_, midpoint_ : ndarray of shape (n_features,)
        What features are divided by, and where the threshold lies in the user's units.
    alpha_ : float
        Weight of the target: 1 is the person alone, 0 the crowd alone.
    class_prior_ : ndarray of shape (2,)
        Probabilities of the classes, for which threshold and forecast were made.
    expected_accuracy_, expected_accuracy_error_ : float
        Forecast for new samples, and its standard error.
    n_labelled_ : tuple of float
        Labelled samples of each class.
    prior_ : dict or None
        Of the prior: `sha256` of its file, `n_tasks`, `privacy`, and what was said `about` it.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the samples had any.
    """

    alpha_: float
    class_prior_: Array
    expected_accuracy_: float
    expected_accuracy_error_: float
    feature_scale_: Array
    midpoint_: Array
    n_labelled_: tuple[float, float]
    prior_: dict[str, Any] | None
    #: Law of the probit of the accuracy; a model of version 1 has a slope of the log odds alone.
    _outlook: Outlook | None
    _deviation: float
    _shift: float
    _slope: float

    def fit(self, X: ArrayLike, y: ArrayLike) -> NoReturn:
        """Refuse to learn: a model file holds neither prior nor samples.

        Parameters
        ----------
        X, y : array-like
            Samples and labels.
        """
        raise TypeError(
            "A model from a file only predicts. Fit a PosteriorBlendClassifier with the prior, and "
            "save it again."
        )

    def __sklearn_clone__(self) -> Self:
        # Without what was learnt there would be nothing left to clone.
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # noqa: N803
        if not hasattr(self, "coef_"):
            return "SavedRule()"
        names = " and ".join(map(repr, self.classes_.tolist()))
        return f"SavedRule(classes {names}, n_features={self.n_features_in_})"

    def expected_accuracy_interval(self, level: float = 0.9) -> tuple[float, float]:
        """Interval that holds this person's accuracy on new samples as often as it says.

        Parameters
        ----------
        level : float, default=0.9
            Probability of the interval.

        Returns
        -------
        lower, upper : float
            Its ends.
        """
        check_is_fitted(self, "coef_", msg=self._not_fitted())
        if self._outlook is None:
            raise AttributeError(
                "This model file is of version 1, which holds no interval. Save the blend again."
            )
        level = check_number("level", level, 0.0, 1.0)
        lower, upper = self._outlook.interval(level, float(self.class_prior_[1]))
        return float(lower), float(upper)

    def _log_odds(self, scores: Array) -> Array:
        if self._outlook is None:
            return self._slope * scores
        odds = self._outlook.log_odds((scores + self._shift) / self._deviation)
        return odds - log_odds(self.class_prior_[1])

    def _not_fitted(self) -> str:
        return "This %(name)s is empty; load_model makes one from a file."


def save_model(blend: BlendClassifier, path: str | os.PathLike[str]) -> None:
    """Write what a fitted blend needs to predict, whole or not at all; no labelled sample.

    Parameters
    ----------
    blend : ConvexBlendClassifier, PosteriorBlendClassifier or HierarchicalBlendClassifier
        A fitted blend of two classes.
    path : str or path-like
        Where to; by custom it ends in ``.json``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crossfade import PosteriorBlendClassifier, load_model, save_model
    >>> X, y = [[0.0, 1.0], [0.2, 0.8], [1.0, 0.1], [0.9, 0.3]], ["rest", "rest", "task", "task"]
    >>> path = Path(tempfile.mkdtemp()) / "model.json"
    >>> save_model(PosteriorBlendClassifier().fit(X, y), path)
    >>> load_model(path).predict([[0.8, 0.1]])
    array(['task'], dtype='<U4')
    """
    if not isinstance(blend, BlendClassifier):
        raise TypeError(
            "A model file holds a ConvexBlendClassifier, a PosteriorBlendClassifier or a "
            f"HierarchicalBlendClassifier; got {type(blend).__name__}."
        )
    check_is_fitted(blend, "coef_", msg=blend._not_fitted())
    if len(blend.classes_) > 2:
        raise ValueError(
            f"A model file holds a rule of two classes, and this one has {len(blend.classes_)}. "
            "Save the prior instead, and fit again where the rule is used."
        )
    names = getattr(blend, "feature_names_in_", None)
    fields: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "blend": type(blend).__name__,
        "classes": blend.classes_.tolist(),
        "feature_names": None if names is None else names.tolist(),
        "coef": blend.coef_[0].tolist(),
        "intercept": float(blend.intercept_[0]),
        "calibration": {
            **{name: float(value) for name, value in blend._fit.outlook._asdict().items()},
            "deviation": float(blend._fit.deviation),
            "shift": blend._shift,
        },
        "projection": blend.projection_.tolist(),
        "feature_scale": blend._fit.scale.tolist(),
        "midpoint": blend.midpoint_.tolist(),
        "alpha": float(blend.alpha_),
        "class_prior": blend.class_prior_.tolist(),
        "expected_accuracy": blend.expected_accuracy_,
        "expected_accuracy_error": blend.expected_accuracy_error_,
        "n_labelled": blend._moments.counts.tolist(),
        "prior": None if blend.prior_ is None else _record(blend.prior_),
    }
    try:
        fields["sha256"] = _digest(fields)
    except (TypeError, ValueError) as reason:
        raise ValueError(
            f"The model cannot be written as JSON ({reason}). Labels must be text, numbers or "
            "booleans, and all numbers finite."
        ) from reason
    write_whole(path, (json.dumps(fields, indent=1, allow_nan=False) + "\n").encode())


def load_model(path: str | os.PathLike[str]) -> SavedRule:
    """Read a model; nothing in the file is run, and a file that was altered is refused.

    Parameters
    ----------
    path : str or path-like
        A file that :func:`save_model` wrote.

    Returns
    -------
    SavedRule
        A classifier with `predict`, `predict_proba` and `decision_function`, whose predictions
        equal those of the blend that was saved, to the bit.
    """
    try:
        fields = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError) as reason:
        raise ValueError(
            f"{path} is not a model file, or is damaged: it cannot be read as JSON. Ask for a file "
            "that save_model wrote, and copy it again."
        ) from reason
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise ValueError(f"{path} is not a model file: its format is not {FORMAT!r}.")
    version = fields.get("version")
    if type(version) is int and version > VERSION:
        raise ValueError(
            f"{path} is of format version {version}; this Crossfade reads up to {VERSION}. "
            "Update Crossfade."
        )
    if type(version) is not int or version < 1:
        raise ValueError(
            f"{path} is not a model file: its format version is {version!r}, not a whole number "
            "of at least 1."
        )
    checksum = fields.pop("sha256", None)
    try:
        intact = checksum == _digest(fields)
    except ValueError:
        intact = False
    if not intact:
        raise ValueError(
            f"{path} was altered after it was saved: its checksum does not match. Copy it again "
            "from where it was made."
        )
    try:
        return _rule_of(fields)
    except (KeyError, TypeError, ValueError) as reason:
        why = f"the field {reason} is missing." if isinstance(reason, KeyError) else reason
        raise ValueError(
            f"{path} holds no valid model: {why} Ask for a file that save_model wrote."
        ) from reason


def _record(prior: Prior) -> dict[str, Any]:
    """Which prior it was, by the file that it would be saved to."""
    saved: Any = prior
    return {
        "sha256": hashlib.sha256(content_of(saved)).hexdigest(),
        "n_tasks": prior.n_tasks,
        "privacy": prior.card_data()["privacy"],
        "about": dict(prior.about),
    }


def _rule_of(fields: dict[str, Any]) -> SavedRule:
    rule = SavedRule()
    rule.classes_ = np.array(fields["classes"])
    if rule.classes_.shape != (2,) or not rule.classes_[0] < rule.classes_[1]:
        raise ValueError(f"classes must be two sorted labels; got {fields['classes']!r}.")
    coef = check_finite("coef", fields["coef"], 1)
    rule.n_features_in_ = coef.size
    names = check_names(fields["feature_names"], coef.size)
    if names is not None:
        rule.feature_names_in_ = np.array(names, dtype=object)
    for name in ("projection", "midpoint", "feature_scale"):
        if check_finite(name, fields[name], 1).shape != coef.shape:
            raise ValueError(f"{name} must have {coef.size} numbers, as coef has.")
    rule.coef_ = coef[None, :]
    rule.intercept_ = np.array([check_number("intercept", fields["intercept"], -np.inf)])
    rule._outlook, rule._deviation, rule._shift, rule._slope = None, 1.0, 0.0, 0.0
    if fields["version"] == 1:
        rule._slope = check_number("slope", fields["slope"], 0.0)
    else:
        known = fields["calibration"]
        mean = check_number("mean", known["mean"], -np.inf)
        spread, dof = (check_number(name, known[name], 0.0) for name in ("spread", "dof"))
        rule._outlook = Outlook(np.asarray(mean), np.asarray(spread), np.asarray(dof))
        rule._deviation = check_number("deviation", known["deviation"], 1e-300)
        rule._shift = check_number("shift", known["shift"], -np.inf)
    rule.projection_ = np.array(fields["projection"])
    rule.midpoint_ = np.array(fields["midpoint"])
    rule.feature_scale_ = check_scale(fields["feature_scale"], coef.size)
    rule.alpha_ = check_number("alpha", fields["alpha"], 0.0, 1.0)
    rule.expected_accuracy_ = check_number("accuracy", fields["expected_accuracy"], 0.0, 1.0)
    rule.expected_accuracy_error_ = check_number("error", fields["expected_accuracy_error"], 0.0)
    rule.class_prior_ = check_finite("class_prior", fields["class_prior"], 1)
    check_class_prior(rule.class_prior_)
    counts = check_finite("n_labelled", fields["n_labelled"], 1)
    if counts.shape != (2,) or counts.min() < 0.0:
        raise ValueError(f"n_labelled must be two counts; got {fields['n_labelled']!r}.")
    rule.n_labelled_ = (float(counts[0]), float(counts[1]))
    rule.prior_ = None if fields["prior"] is None else _check_record(fields["prior"])
    return rule


def _check_record(record: Any) -> dict[str, Any]:
    """Refuse what :func:`_record` cannot have written."""
    if not isinstance(record, dict):
        raise ValueError(f"prior must be null or what is said of a prior; got {record!r}.")
    digest, privacy, about = record["sha256"], record["privacy"], record["about"]
    if not isinstance(digest, str) or re.fullmatch("[0-9a-f]{64}", digest) is None:
        raise ValueError(f"prior must have a SHA-256 of 64 hexadecimal digits; got {digest!r}.")
    check_integer("n_tasks", record["n_tasks"], 1)
    if not isinstance(privacy, dict) or not isinstance(about, dict):
        raise ValueError("prior must have a privacy and an about with fields of their own.")
    return record


def _digest(fields: dict[str, Any]) -> str:
    """SHA-256 of the fields as JSON, sorted and without spaces."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()

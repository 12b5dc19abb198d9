"""Model files: any fitted classifier as checksummed JSON, and back as a rule that only predicts.

``docs/live.md`` and the JSON Schema of `crossfade.export` say how a device reads one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from datetime import date as Date  # noqa: N812 - a parameter is called date
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from crossfade._files import digest_of, is_intact, json_of, read_whole, write_whole
from crossfade._typing import Array
from crossfade._validate import (
    check_choice,
    check_finite,
    check_integer,
    check_names,
    check_number,
    check_scale,
)
from crossfade.blend._classifier import BlendClassifier
from crossfade.blend._many_means import ManyFit, PairsFit
from crossfade.blend._multiclass import MulticlassBlend
from crossfade.blend._saved_rule import COUPLINGS, Calibration, SavedRule, card_of, n_scores
from crossfade.fisher import FisherDiscriminant
from crossfade.prior import TaskPrior, check_about, content_of, privacy_of, privacy_text
from crossfade.risk import Outlook, check_class_prior, log_odds
from crossfade.tasks import Recipe

FORMAT = "crossfade-model"
VERSION = 3
#: Bytes of a file, as with ten million features.
_LARGEST = 1 << 30

Model = BlendClassifier | MulticlassBlend | FisherDiscriminant


def save_model(
    blend: Model,
    path: str | os.PathLike[str],
    *,
    person: str | None = None,
    date: str | None = None,
) -> None:
    """Write what a fitted classifier needs to predict, whole or not at all; no labelled sample.

    What :func:`load_model` would refuse is not written.

    Parameters
    ----------
    blend : FisherDiscriminant, MulticlassBlend or any of the blends
        A fitted classifier.
    path : str or path-like
        Where to; by custom it ends in ``.json``.
    person : str or None, default=None
        For whom it is, as the card then says. None keeps the name out of the file: the card says
        "one person".
    date : str or None, default=None
        Day of the recording, such as ``"2026-11-18"``, for the card.

    See Also
    --------
    export_model : The same for a device, as C or ONNX.

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
    write_whole(path, content_of_model(blend, person=person, date=date))


def content_of_model(blend: Model, **whose: str | None) -> bytes:
    """Bytes of the file of a fitted model; refuses one that could not be read again.

    `whose` are `person` and `date`, as :func:`save_model` takes them.
    """
    fields = _checked_fields(blend, **whose)
    return (json.dumps(fields, indent=1, allow_nan=False) + "\n").encode()


def saved_rule(blend: Model) -> SavedRule:
    """A fitted model as it would come back from its file."""
    return _rule_of(_checked_fields(blend))


def _checked_fields(blend: Model, **whose: str | None) -> dict[str, Any]:
    """Fields of the file of a fitted model, with its card and its checksum."""
    fields = _fields_of(blend)
    fields |= {name: text for name, text in whose.items() if text is not None}
    try:
        fields = dict(json.loads(json.dumps(fields, allow_nan=False)))
    except (TypeError, ValueError) as reason:
        raise ValueError(
            f"The model cannot be written as JSON ({reason}). Labels must be text, numbers or "
            "booleans, and all numbers finite."
        ) from reason
    try:
        fields["card"] = _rule_of(fields).card()
    except (KeyError, TypeError, ValueError) as reason:
        raise ValueError(
            f"The model was not written, since it could not be read again: {reason}"
        ) from reason
    fields["sha256"] = digest_of(fields)
    return fields


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
        equal those of the model that was saved, to the bit.
    """
    content = read_whole(path, _LARGEST)
    try:
        fields = json_of(content)
    except ValueError as reason:
        raise ValueError(
            f"{path} is not a model file, or is damaged: it cannot be read as JSON. Ask for a file "
            "that save_model wrote, and copy it again."
        ) from reason
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise ValueError(f"{path} is not a model file: its format is not {FORMAT!r}.")
    if fields.get("version") != VERSION:
        raise ValueError(
            f"{path} has format version {fields.get('version')!r} and this Crossfade reads only "
            f"version {VERSION}: calibrate again, or read it with the Crossfade that wrote it."
        )
    checksum = fields.pop("sha256", None)
    if not is_intact(fields, checksum):
        raise ValueError(
            f"{path} was altered after it was saved: its checksum does not match. Copy it again "
            "from where it was made."
        )
    try:
        if not isinstance(fields["card"], str):
            raise TypeError(f"card must be text; got {type(fields['card']).__name__}.")
        return _rule_of(fields)
    except (KeyError, TypeError, ValueError) as reason:
        why = f"the field {reason} is missing." if isinstance(reason, KeyError) else reason
        raise ValueError(
            f"{path} holds no valid model: {why} Ask for a file that save_model wrote."
        ) from reason


# -- from an estimator to fields ------------------------------------------------------------


class _Learnt(NamedTuple):
    """What an estimator comes down to, in raw features."""

    coupling: str
    coef: Array  # (n_scores, d)
    intercept: Array  # (n_scores,)
    calibration: Calibration
    scale: Array  # (d,)
    counts: Array  # (n_classes,)
    prior: Any
    forecast: Outlook | None
    alpha: float = 1.0
    class_prior: Array | None = None  # (n_classes,): None is equal
    projection: Array | None = None  # (d,): of two classes
    midpoint: Array | None = None  # (d,): of two classes


def _fields_of(model: Any) -> dict[str, Any]:
    """Fields of the file of a fitted model, all but its card and its checksum."""
    if isinstance(model, MulticlassBlend):
        model._check_fitted()
        known = _of_pairs(model)
    elif isinstance(model, BlendClassifier | FisherDiscriminant):
        check_is_fitted(model, "coef_", msg=model._not_fitted())
        known = _of_one(model)
    else:
        raise TypeError(
            "A model file holds a FisherDiscriminant, a ConvexBlendClassifier, a "
            "PosteriorBlendClassifier, a HierarchicalBlendClassifier or a MulticlassBlend; got "
            f"{type(model).__name__}."
        )
    classes = model.classes_.tolist()
    equal = np.full(len(classes), 1.0 / len(classes))
    law, recipe = known.forecast, None if known.prior is None else known.prior.recipe
    return {
        "format": FORMAT,
        "version": VERSION,
        "blend": type(model).__name__,
        "classes": classes,
        **_names_of(known.prior, classes),
        "feature_names": _plain(_feature_names(model, known.prior)),
        "coupling": known.coupling,
        "coef": known.coef.tolist(),
        "intercept": known.intercept.tolist(),
        "calibration": {name: _plain(row) for name, row in known.calibration._asdict().items()},
        "projection": _plain(known.projection),
        "feature_scale": known.scale.tolist(),
        "midpoint": _plain(known.midpoint),
        "alpha": float(known.alpha),
        "class_prior": _plain(equal if known.class_prior is None else known.class_prior),
        "expected_accuracy": None if law is None else model.expected_accuracy_,
        "expected_accuracy_error": None if law is None else model.expected_accuracy_error_,
        # Only intervals are made of it.
        "forecast": None
        if law is None
        else {"mean": float(law.mean), "spread": float(law.real_spread), "dof": float(law.dof)},
        "n_labelled": known.counts.tolist(),
        "prior": None if known.prior is None else _record(known.prior),
        "recipe": None if recipe is None else recipe.to_dict(),
    }


def _feature_names(model: Any, prior: Any) -> Any:
    """Names of the features: those of the samples or, where these had none, of the prior's."""
    crowd = None if prior is None else prior.feature_names
    return getattr(model, "feature_names_in_", None if crowd is None else np.array(crowd))


def _of_one(model: Any) -> _Learnt:
    """Score of a discriminant or a blend of two classes; scores of a hierarchical one of many."""
    if isinstance(model, FisherDiscriminant):
        return _Learnt(
            "two",
            model.coef_,
            model.intercept_,
            Calibration.of_slope(model._slope),
            model.feature_scale_,
            model._person.counts,
            prior=None,
            forecast=None,
            class_prior=None if model.priors is None else np.asarray(model.priors, np.float64),
            projection=model.projection_,
            midpoint=model.midpoint_,
        )
    fit, prior, counts = model._fit, model.prior_, model._moments.counts
    if isinstance(fit, PairsFit):
        return _of_pairs(fit.blend)._replace(prior=prior)
    if isinstance(fit, ManyFit):
        calibration = Calibration.of_slope(float(fit.temperature), len(counts))
        return _Learnt(
            "softmax",
            model.coef_,
            model.intercept_,
            calibration,
            prior.feature_scale,
            counts,
            prior,
            fit.outlook,
            model.alpha_,
        )
    mean, spread = fit.outlook.slope
    numbers = (mean, spread, fit.deviation, model._shift, -log_odds(model.class_prior_[1]))
    return _Learnt(
        "two",
        model.coef_,
        model.intercept_,
        Calibration(*(np.array([float(one)]) for one in numbers)),
        fit.scale,
        counts,
        prior,
        fit.outlook,
        model.alpha_,
        model.class_prior_,
        model.projection_,
        model.midpoint_,
    )


def _of_pairs(model: MulticlassBlend) -> _Learnt:
    """Score of each pair of many classes, or of each class against the rest."""
    pairs, n_classes = model._pairs, len(model.classes_)
    if n_classes == 2:
        [rule] = pairs.rules.values()
        return _of_one(rule)._replace(counts=model._counts)
    rests = model.strategy == "one-vs-rest"
    zero = np.zeros(len(pairs.coef))
    # All classes being equally likely, the rest is more so than the one class.
    offset = zero - np.log(n_classes - 1) if rests else zero
    return _Learnt(
        "rests" if rests else "pairs",
        pairs.coef,
        pairs.intercept,
        Calibration(*pairs.outlook.slope, pairs.deviations, zero, offset),
        pairs.fits[0].scale,
        model._counts,
        model.estimator.prior,
        None if rests else pairs.law(pairs.laws),
        float(np.mean([fit.blend.alpha for fit in pairs.fits])),
    )


def _record(prior: Any) -> dict[str, Any]:
    """Which prior it was, by the file that it would be saved to."""
    record = {"sha256": hashlib.sha256(content_of(prior)).hexdigest()}
    if hasattr(prior, "pairs"):
        pairs = list(prior.priors.values())
        n_tasks = max(pair.n_tasks for pair in pairs)
        return record | {"n_tasks": n_tasks, "privacy": _weakest(pairs), "about": {}}
    said = prior.card_data()
    people = {"n_people": said["n_people"]} if "n_people" in said else {}
    return record | {
        "n_tasks": prior.n_tasks,
        **people,
        "privacy": said["privacy"],
        "about": dict(prior.about),
    }


def _weakest(priors: list[TaskPrior]) -> dict[str, Any]:
    """Privacy of several priors of the same people: the least, or the sum of what was spent."""
    found = [privacy_of(prior) for prior in priors]
    exact = [one for one in found if one["kind"] != "released"]
    if exact:
        return exact[0]
    spent = {name: sum(one[name] for one in found) for name in ("epsilon", "delta")}
    return found[0] | spent


def _names_of(prior: Any, classes: list[Any]) -> dict[str, list[str]]:
    """What people read instead of the classes, if the prior has the same ones."""
    names = getattr(prior, "class_names", None)
    if names is None or list(prior.classes) != classes:
        return {}
    return {"class_names": list(names)}


def _plain(values: Any) -> Any:
    return None if values is None else values.tolist()


# -- from fields to a rule ------------------------------------------------------------------


def _rule_of(fields: dict[str, Any]) -> SavedRule:
    """Rule from the fields of a file, every one of them checked."""
    rule = SavedRule()
    if not str.isidentifier(fields["blend"]):
        raise ValueError(f"blend must be the name of a class; got {fields['blend']!r}.")
    rule.blend_ = fields["blend"]
    rule.coupling_ = check_choice("coupling", fields["coupling"], COUPLINGS)
    _set_classes(rule, fields)
    coef = check_finite("coef", fields["coef"], 2)
    n_classes, n_wanted = len(rule.classes_), n_scores(rule.coupling_, len(rule.classes_))
    if coef.ndim != 2 or len(coef) != n_wanted or not coef.size:
        raise ValueError(
            f"coef must have {n_wanted} rows for {n_classes} classes and the coupling "
            f"{rule.coupling_!r}; got shape {coef.shape}."
        )
    rule.coef_, rule.n_features_in_ = coef, coef.shape[1]
    rule.intercept_ = _row("intercept", fields["intercept"], n_wanted)
    names = check_names(fields["feature_names"], rule.n_features_in_)
    if names is not None:
        rule.feature_names_in_ = np.array(names, dtype=object)
    rule.feature_scale_ = check_scale(
        _row("feature_scale", fields["feature_scale"], rule.n_features_in_), rule.n_features_in_
    )
    for name in ("projection", "midpoint"):
        if rule.coupling_ == "two":
            setattr(rule, f"{name}_", _row(name, fields[name], rule.n_features_in_))
        elif fields[name] is not None:
            raise ValueError(f"{name} must be null for {n_classes} classes.")
    rule.alpha_ = check_number("alpha", fields["alpha"], 0.0, 1.0)
    rule._forecast = None if fields["forecast"] is None else _law_of(fields["forecast"])
    rule._calibration = _calibration_of(rule, fields["calibration"])
    rule.expected_accuracy_ = rule.expected_accuracy_error_ = None
    if rule._forecast is not None:
        rule.expected_accuracy_ = check_number("accuracy", fields["expected_accuracy"], 0.0, 1.0)
        error = check_number("error", fields["expected_accuracy_error"], 0.0)
        rule.expected_accuracy_error_ = error
    counts = _row("n_labelled", fields["n_labelled"], n_classes)
    if counts.min() < 0.0:
        raise ValueError(f"n_labelled must be {n_classes} counts; got {fields['n_labelled']!r}.")
    rule.n_labelled_ = tuple(counts.tolist())
    rule.prior_ = None if fields["prior"] is None else _check_record(fields["prior"])
    said = fields.get("recipe")
    rule.recipe_ = None if said is None else Recipe.from_dict(said)
    rule.person_, rule.date_ = _person(fields.get("person")), _date(fields.get("date"))
    rule._card = card_of(rule)
    return rule


def _person(name: Any) -> str | None:
    if name is None or (isinstance(name, str) and name.strip() and name.isprintable()):
        return name
    raise ValueError(f"person must be a printable name; got {name!r}.")


def _date(day: Any) -> str | None:
    if day is None:
        return None
    try:
        return Date.fromisoformat(day).isoformat()
    except (TypeError, ValueError) as reason:
        raise ValueError(f"date must be a day such as '2026-11-18'; got {day!r}.") from reason


def _set_classes(rule: SavedRule, fields: dict[str, Any]) -> None:
    """Set labels, names and proportions of the classes."""
    labels = fields["classes"]
    rule.classes_ = np.array(labels)
    alike = isinstance(labels, list) and len({type(one) for one in labels}) == 1
    if not alike or rule.classes_.ndim != 1 or not (rule.classes_[:-1] < rule.classes_[1:]).all():
        raise ValueError(f"classes must be sorted labels of one kind; got {labels!r}.")
    n_classes = len(labels)
    if n_classes < 2 or (n_classes == 2) != (rule.coupling_ == "two"):
        raise ValueError(
            f"classes must be two for the coupling 'two', and more for any other; got {labels!r} "
            f"and {rule.coupling_!r}."
        )
    called = fields.get("class_names")
    if called is not None and (np.shape(called) != (n_classes,) or not all(map(str.strip, called))):
        raise ValueError(f"class_names must be {n_classes} names; got {called!r}.")
    rule.class_names_ = None if called is None else tuple(called)
    rule.class_prior_ = _row("class_prior", fields["class_prior"], n_classes)
    if n_classes == 2:
        check_class_prior(rule.class_prior_)
    elif np.ptp(rule.class_prior_) > 1e-9 or abs(rule.class_prior_.sum() - 1.0) > 1e-6:
        raise ValueError(f"class_prior must be equal for {n_classes} classes.")


def _row(name: str, values: Any, size: int) -> Array:
    """So many finite numbers."""
    row = check_finite(name, values, 1)
    if row.shape != (size,):
        raise ValueError(f"{name} must be {size} numbers; got shape {row.shape}.")
    return row


def _law_of(fields: dict[str, Any]) -> Outlook:
    """Law of the probit of the accuracy."""
    mean = check_number("mean", fields["mean"], -np.inf)
    spread = check_number("spread", fields["spread"], 0.0, 1e6)
    dof = check_number("dof", fields["dof"], 1e-6)
    return Outlook(np.asarray(mean), np.asarray(spread), np.asarray(dof))


def _calibration_of(rule: SavedRule, fields: dict[str, Any]) -> Calibration:
    """How scores become log odds; refuses labels and probabilities that do not agree."""
    known = Calibration(
        *(_row(name, fields[name], len(rule.coef_)) for name in Calibration._fields)
    )
    for name, low, high in (
        ("mean", 0.0, 1e100),
        ("spread", 0.0, 1e6),
        ("deviation", 1e-300, 1e100),
    ):
        row = getattr(known, name)
        if row.min() < low or row.max() > high:
            raise ValueError(
                f"{name} must be numbers from {low:g} to {high:g}; got {row.tolist()}."
            )
    if rule.coupling_ == "two":
        law = Outlook(known.mean, known.spread, np.ones(1))
        moved = float((law.where(-known.offset) * known.deviation)[0])
        if abs(known.shift[0] - moved) > 1e-6 * (abs(moved) + known.deviation[0]):
            raise ValueError(
                f"shift must be where classes of {rule.class_prior_} are equally likely, at "
                f"{moved:g}; got {known.shift[0]:g}."
            )
    return known


def _check_record(record: Any) -> dict[str, Any]:
    """Refuse what :func:`_record` cannot have written."""
    if not isinstance(record, dict):
        raise ValueError(f"prior must be null or what is said of a prior; got {record!r}.")
    digest, privacy, about = record["sha256"], record["privacy"], record["about"]
    if not isinstance(digest, str) or re.fullmatch("[0-9a-f]{64}", digest) is None:
        raise ValueError(f"prior must have a SHA-256 of 64 hexadecimal digits; got {digest!r}.")
    for name in ("n_tasks", "n_people"):
        if name in record or name == "n_tasks":
            check_integer(name, record[name], 1)
    if not isinstance(privacy, dict) or not isinstance(about, dict):
        raise ValueError("prior must have a privacy and an about with fields of their own.")
    check_about(about)
    if privacy["kind"] == "released":
        check_number("epsilon", privacy["epsilon"], 0.0)
        check_number("delta", privacy["delta"], 0.0, 1.0)
    # What cannot be told on the card is refused.
    privacy_text(privacy)
    return record

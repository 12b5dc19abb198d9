"""Model files: a rule as checksummed JSON, and back (``docs/live.md``)."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from crossfade._files import digest_of, is_intact, json_of, read_whole
from crossfade._typing import Array
from crossfade._validate import check_finite, check_names, check_number
from crossfade.blend._about import About
from crossfade.blend._rule import Rule
from crossfade.prior import check_about, privacy_text
from crossfade.risk import Outlook, Slope, Stated, check_class_prior
from crossfade.tasks import Recipe

FORMAT = "crossfade-model"
VERSION = 4
#: Bytes of a file, as with ten million features.
_LARGEST = 1 << 30


def content_of_rule(rule: Rule) -> bytes:
    """Bytes of the file of a rule; refuses one that could not be read again."""
    fields = _fields_of(rule)
    try:
        fields = json.loads(json.dumps(fields, allow_nan=False))
    except (TypeError, ValueError) as reason:
        raise ValueError(
            f"The model cannot be written as JSON ({reason}). Labels must be text, numbers or "
            "booleans, and all numbers finite."
        ) from reason
    fields["card"] = _rule_of(fields).card()
    fields["sha256"] = digest_of(fields)
    return (json.dumps(fields, indent=1, allow_nan=False) + "\n").encode()


def load_model(path: str | os.PathLike[str]) -> Rule:
    """Read a model; nothing in the file is run, and a file that was altered is refused.

    Parameters
    ----------
    path : str or path-like
        A file that :func:`save_model` wrote.

    Returns
    -------
    Rule
        A rule whose predictions equal those of the model that was saved, to the bit.
    """
    try:
        fields = json_of(read_whole(path, _LARGEST))
        if not isinstance(fields, dict) or fields["format"] != FORMAT:
            raise ValueError(f"its format is not {FORMAT!r}.")
        if fields["version"] != VERSION:
            raise ValueError(
                f"its version is {fields['version']!r}, and this Crossfade reads {VERSION} only: "
                "calibrate again."
            )
        if not is_intact(fields, fields.pop("sha256")):
            raise ValueError("it was altered after it was saved; copy it again.")
        return _rule_of(fields)
    except (KeyError, TypeError, ValueError, AttributeError) as reason:
        why = f"the field {reason} is missing." if isinstance(reason, KeyError) else f"{reason}"
        if isinstance(reason, json.JSONDecodeError | UnicodeDecodeError):
            why = "it is not JSON. Give a file of save_model or `crossfade calibrate`."
        raise ValueError(f"{os.fspath(path)} is not a valid model file: {why}") from reason


def _fields_of(rule: Rule) -> dict[str, Any]:
    """Fields of the file of a rule, all but its card and its checksum."""
    law, about = rule.outlook, rule.about
    slope, bend = rule.slope
    said = {"class_names": about.class_names, "person": about.person, "date": about.date}
    return {
        "format": FORMAT,
        "version": VERSION,
        "made_by": about.made_by,
        "classes": rule.classes.tolist(),
        **{name: value for name, value in said.items() if value is not None},
        "feature_names": about.feature_names,
        "coef": rule.coef.tolist(),
        "intercept": rule.intercept.tolist(),
        "slope": float(slope),
        "bend": float(bend),
        "shift": float(rule.shift),
        "class_prior": rule.class_prior.tolist(),
        "alpha": float(rule.alpha),
        "forecast": None
        if law is None
        else {name: float(value) for name, value in law._asdict().items()},
        "expected_accuracy": None if law is None else float(rule.expected_accuracy),
        "n_labelled": rule.n_labelled.tolist(),
        "prior": None if about.prior is None else dict(about.prior),
        "recipe": None if about.recipe is None else about.recipe.to_dict(),
    }


def _rule_of(fields: dict[str, Any]) -> Rule:
    """Rule from the fields of a file, every one of them checked."""
    labels = fields["classes"]
    classes = np.array(labels)
    alike = isinstance(labels, list) and len({type(one) for one in labels}) == 1
    if not alike or len(labels) < 2 or not (classes[:-1] < classes[1:]).all():
        raise ValueError(f"classes must be sorted labels of one kind; got {labels!r}.")
    n_classes = len(labels)
    n_scores = 1 if n_classes == 2 else n_classes
    coef = check_finite("coef", fields["coef"], 2)
    if coef.ndim != 2 or len(coef) != n_scores or not coef.size:
        raise ValueError(f"coef must have {n_scores} rows; got shape {coef.shape}.")
    class_prior = _row("class_prior", fields["class_prior"], n_classes)
    if n_classes == 2:
        check_class_prior(class_prior)
    law = fields["forecast"]
    outlook = None if law is None else Outlook(*(_number(law, one) for one in Outlook._fields))
    return Rule(
        classes=classes,
        coef=coef,
        intercept=_row("intercept", fields["intercept"], n_scores),
        class_prior=class_prior,
        shift=_number(fields, "shift"),
        alpha=np.asarray(check_number("alpha", fields["alpha"], 0.0, 1.0)),
        n_labelled=_row("n_labelled", fields["n_labelled"], n_classes),
        theory=Stated(outlook, Slope(_number(fields, "slope", 0.0), _number(fields, "bend", 0.0))),
        about=_about_of(fields, n_classes, coef.shape[1]),
    )


def _about_of(fields: dict[str, Any], n_classes: int, n_features: int) -> About:
    """Description of the rule of a file, checked."""
    names, prior, recipe = fields.get("class_names"), fields["prior"], fields["recipe"]
    if names is not None and (np.shape(names) != (n_classes,) or not all(map(str.strip, names))):
        raise ValueError(f"class_names must be {n_classes} names; got {names!r}.")
    if prior is not None:
        # What cannot be said on the card is refused.
        check_about(prior["about"])
        privacy_text(prior["privacy"])
        check_number("n_tasks", prior["n_tasks"], 1.0)
    if not str.isidentifier(fields["made_by"]):
        raise ValueError(f"made_by must be the name of a class; got {fields['made_by']!r}.")
    return About(
        made_by=fields["made_by"],
        feature_names=check_names(fields["feature_names"], n_features),
        class_names=None if names is None else tuple(names),
        recipe=None if recipe is None else Recipe.from_dict(recipe),
        prior=prior,
        person=fields.get("person"),
        date=fields.get("date"),
    )


def _row(name: str, values: Any, size: int) -> Array:
    """So many finite numbers."""
    row = check_finite(name, values, 1)
    if row.shape != (size,):
        raise ValueError(f"{name} must be {size} numbers; got shape {row.shape}.")
    return row


def _number(fields: dict[str, Any], name: str, low: float = -1e300) -> Array:
    """One finite number."""
    return np.asarray(check_number(name, fields[name], low, 1e300))

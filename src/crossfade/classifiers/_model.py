"""From a fitted estimator to a model file."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from crossfade._files import write_whole
from crossfade._validate import check_type
from crossfade.blend import About, Rule, content_of_rule, rule_of_discriminant
from crossfade.classifiers._base import BlendClassifier
from crossfade.fisher import FisherDiscriminant

Model = BlendClassifier | FisherDiscriminant | Rule


def save_model(
    model: Model,
    path: str | os.PathLike[str],
    *,
    person: str | None = None,
    date: str | None = None,
) -> None:
    """Write what a fitted classifier needs to predict, whole or not at all; no labelled sample.

    Parameters
    ----------
    model : FisherDiscriminant, any of the blends, or Rule
        A fitted classifier, or its rule.
    path : str or path-like
        Where to; by custom it ends in ``.json``.
    person : str or None, default=None
        For whom it is, as the card then says. None keeps the name out of the file.
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
    rule = rule_of(model)
    about = replace(
        rule.about,
        person=rule.about.person if person is None else person,
        date=rule.about.date if date is None else date,
    )
    write_whole(path, content_of_rule(replace(rule, about=about)))


def rule_of(model: Any) -> Rule:
    """Rule of a fitted model, with what is known of its features, classes and prior."""
    if isinstance(model, Rule):
        return model
    kinds = BlendClassifier | FisherDiscriminant
    check_type("model", model, kinds, "a FisherDiscriminant, a blend of Crossfade, or a Rule")
    check_is_fitted(model, "coef_", msg=model._not_fitted())
    names = getattr(model, "feature_names_in_", None)
    columns = None if names is None else tuple(str(one) for one in names)
    made_by = type(model).__name__
    if isinstance(model, FisherDiscriminant):
        return rule_of_discriminant(model, About(made_by=made_by, feature_names=columns))
    about = about_of(model.prior_, model.classes_, made_by=made_by, feature_names=columns)
    return replace(model.rule_, about=about)


def about_of(
    prior: Any, classes: NDArray[Any], *, made_by: str, feature_names: tuple[str, ...] | None = None
) -> About:
    """Description of a rule that was made with a prior, for sorted labels."""
    if prior is None:
        return About(made_by=made_by, feature_names=feature_names)
    called = None if prior is None else prior.class_names
    same = called is not None and list(prior.classes) == classes.tolist()
    return About(
        made_by=made_by,
        feature_names=feature_names or prior.feature_names,
        class_names=tuple(called) if same and called is not None else None,
        recipe=prior.recipe,
        prior=_said_of(prior),
    )


def _said_of(prior: Any) -> dict[str, Any]:
    """Description of a prior in a model file."""
    said = prior.card_data()
    people = {"n_people": said["n_people"]} if "n_people" in said else {}
    return {
        "n_tasks": prior.n_tasks,
        **people,
        "privacy": said["privacy"],
        "about": dict(prior.about),
    }

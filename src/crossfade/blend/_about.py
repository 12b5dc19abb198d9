"""For whom a rule is and what it was made from: what its file and its card say beside numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date as Date  # noqa: N812 - a field is called date
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade.prior import privacy_text, table_of
from crossfade.tasks import Recipe

if TYPE_CHECKING:
    from crossfade.blend._rule import Rule

#: Probability of the interval on the card, and features that it lists one by one.
_LEVEL, _LISTED = 0.9, 50


@dataclass(frozen=True)
class About:
    """Description of a rule.

    Attributes
    ----------
    made_by : str
        Name of the estimator that made it.
    feature_names : tuple of str or None
        Names of the features.
    class_names : tuple of str or None
        What people read instead of the labels, in their order.
    recipe : Recipe or None
        How the features are made from recordings.
    prior : mapping or None
        The prior: `n_tasks`, `n_people`, `privacy`, and what was said `about` it.
    person, date : str or None
        For whom the rule is, and the day of the recording.
    """

    made_by: str = "fit_rule"
    feature_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    recipe: Recipe | None = None
    prior: Mapping[str, Any] | None = None
    person: str | None = None
    date: str | None = None

    def __post_init__(self) -> None:
        name = self.person
        printable = isinstance(name, str) and name.strip() and name.isprintable()
        if name is not None and not printable:
            raise ValueError(f"person must be a printable name; got {self.person!r}.")
        if self.date is not None:
            try:
                Date.fromisoformat(self.date)
            except (TypeError, ValueError):
                raise ValueError(f"date must be like 2026-11-18; got {self.date!r}.") from None


def card_of(rule: Rule) -> str:
    """Model card in Markdown: for whom, on what, how good, how sure, under which privacy."""
    about, d = rule.about, rule.coef.shape[-1]
    names = [repr(name) for name in (about.feature_names or ())[:_LISTED]]
    more = ", ..." if len(about.feature_names or ()) > _LISTED else ""
    said = {} if about.prior is None else about.prior["about"]
    labelled = " + ".join(f"{count:g}" for count in rule.n_labelled)
    windows = f"{labelled} labelled windows" if rule.n_labelled.any() else "no labelled window"
    when = "" if about.date is None else f", recorded on {about.date}"
    who = "one person" if about.person is None else repr(about.person)
    rows = {
        "for": f"{who}, with {windows}{when}",
        "tells apart": ", ".join(called(rule, labels=True)),
        "features": f"{d}{': ' if names else ''}{', '.join(names)}{more}",
        "recipe": "not known" if about.recipe is None else str(about.recipe),
        "made by": about.made_by,
        "crowd": _crowd(about),
        **{f"crowd, {key.replace('_', ' ')}": text for key, text in sorted(said.items())},
        "weight of the person": f"{rule.alpha:.3f} (1: this person alone, 0: the crowd alone)",
        "expected accuracy": _forecast(rule),
        "proportions": _proportions(rule),
        "privacy of the crowd": "no crowd"
        if about.prior is None
        else privacy_text(about.prior["privacy"]),
        "privacy of the person": "none: the rule is a function of this person's windows",
    }
    title = f"# Model of one person: {len(rule.classes)} classes, {d} features"
    return "\n".join([title, "", *table_of(("what", "value"), rows.items())]) + "\n"


def called(rule: Rule, *, labels: bool = False) -> list[str]:
    """Classes as people call them, with their labels where these are others."""
    known = rule.classes.tolist()
    if rule.about.class_names is None:
        return [repr(label) for label in known]
    pairs = zip(rule.about.class_names, known, strict=True)
    return [
        f"{name!r} ({label!r})" if labels and name != label else repr(name) for name, label in pairs
    ]


def _crowd(about: About) -> str:
    if about.prior is None:
        return "no crowd"
    people = about.prior.get("n_people")
    crowd = f"a crowd of {about.prior['n_tasks']} tasks"
    return crowd if people is None else f"{crowd}, {people} people"


def _forecast(rule: Rule) -> str:
    """Forecast with its interval, if there is one."""
    if rule.outlook is None:
        return "not known"
    lower, upper = rule.interval(_LEVEL)
    return f"{rule.expected_accuracy:.3f} (90 % interval {lower:.2f} to {upper:.2f})"


def _proportions(rule: Rule) -> str:
    if np.ptp(rule.class_prior) < 1e-9:
        return "taken for equally frequent"
    pairs = zip(rule.class_prior.tolist(), called(rule), strict=True)
    return "taken for " + ", ".join(f"{100 * share:.3g} % {name}" for share, name in pairs)

"""Card of a prior: what it holds, from whom, in which units, under which privacy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade._files import json_of
from crossfade.prior._replay import FEWEST, usable

if TYPE_CHECKING:
    from crossfade.prior._sessions import Person
    from crossfade.prior._task_prior import TaskPrior

#: What the card has a place for; whatever else is said follows in the order of its keys.
_PLACES = ("made_by", "units", "date")
#: Features that the card in Markdown lists one by one.
_LISTED = 50


def check_about(about: object) -> Mapping[str, str]:
    """Return what is said about a prior as it can no longer be changed; refuse all but text."""
    if not isinstance(about, Mapping):
        raise TypeError(f"about must be a mapping of text to text; got {type(about).__name__}.")
    for key, text in about.items():
        if not (isinstance(key, str) and isinstance(text, str)):
            raise TypeError(f"about must be a mapping of text to text; got {key!r}: {text!r}.")
        if any(not letter.isprintable() for letter in key + text):
            raise ValueError(f"about must be printable text on one line; {key!r} is {text!r}.")
    return MappingProxyType(dict(about))


def joined_about(mine: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """What is true of two merged priors: what both say, and all who made them."""
    joined = {key: text for key, text in mine.items() if theirs.get(key) == text}
    if "made_by" in mine or "made_by" in theirs:
        makers = [name for side in (mine, theirs) for name in _makers(side)]
        joined["made_by"] = "; ".join(dict.fromkeys(makers))
    return joined


def _makers(about: Mapping[str, str]) -> list[str]:
    return about.get("made_by", "not named").split("; ")


def data_of(prior: TaskPrior) -> dict[str, Any]:
    """What the card of a prior says."""
    hidden = prior.release is not None and prior.cancels
    names = prior.feature_names or [f"feature {place}" for place in range(prior.n_features)]
    agrees = not prior.cancels and prior.resultant_length >= 1e-12
    direction = prior.mean_direction if agrees else np.full(prior.n_features, np.nan)
    means = prior.class_means
    person = None if means is None else means.person
    centred = ", centred person by person" if means is not None and means.centred else ""
    bound = f" clipped to {means.clip:g}" if means is not None and means.clip is not None else ""
    return {
        "n_tasks": prior.n_tasks,
        **({} if prior.people is None else {"n_people": prior.n_people}),
        "n_features": prior.n_features,
        "classes": None if prior.classes is None else list(prior.classes),
        **({} if prior.class_names is None else {"class_names": list(prior.class_names)}),
        "agreement": None if hidden else _short(prior.trusted_length),
        "concentration": None if hidden else _short(prior.concentration),
        "scale": _origin_of_scale(prior),
        "features": [
            {"name": name, "scale": _short(scale), "mean_direction": _short(part)}
            for name, scale, part in zip(names, prior.feature_scale, direction, strict=True)
        ],
        "holds": {
            "sum of directions": True,
            "sum of outer products": prior.outer_sum is not None,
            "average covariance within classes": prior.within_covariance is not None,
            "average half gap": prior.half_gap is not None,
            "likeness of neighbouring samples": prior.autocorrelation is not None,
            "noise of the directions": prior.direction_noise is not None,
            **({} if prior.directions is None else {"the direction of every single task": True}),
            **({} if means is None else {f"sums of class means{bound}{centred}": True}),
            **_replay_held(prior),
            **({} if prior.people is None else {"sums that count people": True}),
            **({} if prior.sessions is None else {"how sessions of one person differ": True}),
            **({} if person is None else {"the class means of one person": True}),
        },
        **({} if prior.recipe is None else {"recipe": str(prior.recipe)}),
        "privacy": privacy_of(prior),
        **{key: prior.about.get(key) for key in _PLACES},
        "more": {key: prior.about[key] for key in sorted(prior.about) if key not in _PLACES},
    }


def _replay_held(prior: TaskPrior) -> dict[str, bool]:
    """Whether the prior holds a replay that anything can be learnt from; nothing without one."""
    if prior.replay is None:
        return {}
    if any(usable(prior.replay, verb) for verb in prior.replay):
        return {"what forecasts were worth": True}
    return {f"a replay (fewer than {FEWEST} people have enough windows)": False}


def privacy_of(prior: TaskPrior) -> dict[str, Any]:
    """How a prior protects its tasks: single directions, exact sums, or released with a budget."""
    release = prior.release
    if prior.summarised:
        return {"kind": "summary"}
    if release is None:
        return {"kind": "exact sums" if prior.directions is None else "single directions"}
    return {
        "kind": "released",
        "epsilon": release.epsilon,
        "delta": release.delta,
        "noise": _short(release.noise),
        "scale_covered": release.scale_covered,
        "noise_length": _short(release.noise * np.sqrt(prior.n_features) / prior.n_tasks),
        "signal_length": _short(prior.resultant_length),
    }


def _called(classes: Sequence[Any], names: Sequence[str] | None) -> list[str]:
    """Classes as people read them: "rest" (0), or 0 where there are no names."""
    if names is None:
        return [repr(label) for label in classes]
    return [
        repr(name) if name == label else f"{name!r} ({label!r})"
        for name, label in zip(names, classes, strict=True)
    ]


def text_of(data: dict[str, Any]) -> str:
    """Card in Markdown."""
    classes = "not given"
    if data["classes"] is not None:
        first, second = _called(data["classes"], data.get("class_names"))
        classes = f"{first} and {second}; directions point to the second"
    holds = data["holds"]
    rows = {
        "tasks": f"{data['n_tasks']}{_of_people(data.get('n_people'))}",
        "classes": classes,
        **_agreement_text(data),
        "made by": data["made_by"] or "not said",
        "date": data["date"] or "not said",
        "units": data["units"] or "not said",
        "scale": data["scale"],
        **({"recipe": data["recipe"]} if "recipe" in data else {}),
        "holds": ", ".join(part for part in holds if holds[part]),
        "left out": ", ".join(part for part in holds if not holds[part]) or "nothing",
        "privacy": privacy_text(data["privacy"]),
        **({"noise": _noise_text(data["privacy"])} if "noise_length" in data["privacy"] else {}),
        **data["more"],
    }
    lines = [
        f"# Prior of {_many(data['n_tasks'], 'task')}, {_many(data['n_features'], 'feature')}",
        "",
        *table_of(("what", "value"), rows.items()),
        "",
        *table_of(
            ("feature", "divided by", "mean direction"),
            (
                (one["name"], f"{one['scale']:g}", _signed(one["mean_direction"]))
                for one in data["features"][:_LISTED]
            ),
        ),
    ]
    if len(data["features"]) > _LISTED:
        lines.append(f"\n... and {len(data['features']) - _LISTED} features more.")
    return "\n".join(lines) + "\n"


def cards_of(prior: TaskPrior) -> dict[str, Any]:
    """Both cards of a prior, as its file holds them."""
    data = prior.card_data()
    try:
        card = json.dumps(data, sort_keys=True, allow_nan=False)
    except TypeError as reason:
        raise ValueError(
            f"classes must be text, numbers or booleans to be saved; got {data['classes']!r}."
        ) from reason
    texts = {"card_json": card, "card_md": prior.card()}
    return {name: np.frombuffer(text.encode(), dtype=np.uint8) for name, text in texts.items()}


def field_faults(stored: bytes, computed: dict[str, Any]) -> list[str]:
    """In what a card in JSON that was altered differs."""
    try:
        found = json_of(stored)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return ["The card in JSON cannot be read."]
    keys = sorted(found.keys() | computed.keys())
    differ = [key for key in keys if (key, found.get(key)) not in computed.items()]
    if not differ:
        return ["The card in JSON is not written as Crossfade writes it."]
    return [f"The card's {key!r} is not what the numbers say." for key in differ]


def _origin_of_scale(prior: TaskPrior) -> str:
    if prior.scale_learnt:
        return "learnt from these tasks"
    return "none: raw units" if (prior.feature_scale == 1.0).all() else "given beforehand"


def _agreement_text(data: dict[str, Any]) -> dict[str, str]:
    length, kappa = data["agreement"], data["concentration"]
    if length is None:
        return dict.fromkeys(("agreement R", "concentration kappa"), "hidden by noise")
    sure = "; the noise is allowed for" if data["privacy"]["kind"] == "released" else ""
    return {
        "agreement R": f"{length:g} (1: all alike, 0: they cancel out{sure})",
        "concentration kappa": "infinite" if kappa is None else f"{kappa:g}",
    }


def privacy_text(privacy: dict[str, Any]) -> str:
    if privacy["kind"] == "single directions":
        return "none: it holds the direction of every single task"
    if privacy["kind"] == "summary":
        return "a mean direction and its standard error, exact: it cannot be released"
    if privacy["kind"] != "released":
        return "exact sums: anyone who knows all tasks but one can recover that one"
    text = f"released with epsilon = {privacy['epsilon']:g}, delta = {privacy['delta']:g}"
    covered = "" if privacy["scale_covered"] else "; the scale is not covered"
    text += "; a person counts once with all sessions of their group in one prior, and people of "
    text += "merged priors count as different people"
    return text + (covered or "; the scale comes from other people, on the owner's word")


def _noise_text(privacy: dict[str, Any]) -> str:
    noise, signal = privacy["noise_length"], privacy["signal_length"]
    return (
        f"noise alone has a length of about {noise:g} in the mean direction, in which {signal:g} "
        "is left for the tasks; 1 where all agree"
    )


def _of_people(n_people: int | None) -> str:
    return (
        "" if n_people is None else f", of {_many(n_people, 'person').replace('persons', 'people')}"
    )


def table_of(head: tuple[str, ...], rows: Any) -> list[str]:
    # A bar would end the cell.
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    return ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in cells]


def _short(number: float) -> float | None:
    """Four digits, the same on every machine; None for what is no number."""
    return float(f"{number:.4g}") if np.isfinite(number) else None


def _signed(part: float | None) -> str:
    return "none" if part is None else f"{part:+.3f}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _earlier(person: Person) -> str:
    """From how many sessions somebody is known."""
    many = (
        f"{person.n_sessions} earlier sessions" if person.n_sessions > 1 else "an earlier session"
    )
    if not person.guessed:
        return many
    return (
        f"{many}; nobody of the crowd has two, so that it is a guess how far sessions differ: a "
        "tenth of what people differ by"
    )


def describe(prior: TaskPrior) -> str:
    """Summarise a prior in plain text."""
    holds = data_of(prior)["holds"]
    kept = [part for part in holds if holds[part]]
    classes = "not given"
    if prior.classes is not None:
        first, second = _called(prior.classes, prior.class_names)
        classes = f"{first} and {second} (directions point to the second)"
    agreement, concentration = f"{prior.trusted_length:.3f}", f"{prior.concentration:.3g}"
    if prior.release is not None and prior.cancels:
        agreement = concentration = "hidden by noise"
    lines = [
        f"Prior of {prior.n_tasks} task{'s' if prior.n_tasks > 1 else ''}"
        f"{_of_people(None if prior.people is None else prior.n_people)}, "
        f"{prior.n_features} feature{'s' if prior.n_features > 1 else ''}",
        f"  classes        {classes}",
        f"  agreement R    {agreement}  (1: all alike, 0: they cancel out)",
        f"  concentration  {concentration}",
        f"  holds          {', '.join(kept)}",
    ]
    if prior.recipe is not None:
        lines.append(f"  recipe         {prior.recipe}")
    person = None if prior.class_means is None else prior.class_means.person
    if person is not None:
        lines.append(f"  for one person {_earlier(person)}")
    public = prior.release is not None
    if prior.class_means is None:
        why = ", which have no bound unless a prior is built with clip" if public else ""
        lines.append(f"  lacks          class means{why}: no answer before the first label")
    if prior.replay is None:
        why = ", in which everybody's record depends on all others" if public else ""
        lines.append(f"  lacks          a replay{why}: forecasts are those of theory alone")
    if prior.release is not None:
        lines.append(f"  privacy        {prior.release}")
        privacy = privacy_of(prior)
        if "noise_length" in privacy:
            lines.append(f"  noise          {_noise_text(privacy)}")
    if prior.cancels:
        what = "the noise hides the directions" if public else "the directions cancel out"
        lines.append(f"  warning        {what}: no mean direction to rely on")
        return "\n".join(lines)
    names = prior.feature_names or [f"feature {place}" for place in range(prior.n_features)]
    order = np.argsort(-np.abs(prior.mean_direction), kind="stable")[:5]
    strongest = ", ".join(f"{names[place]} {prior.mean_direction[place]:+.2f}" for place in order)
    lines.append(f"  mean direction {strongest}{', ...' if prior.n_features > 5 else ''}")
    return "\n".join(lines)

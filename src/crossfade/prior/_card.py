"""Card and summary of a prior: what it holds, from whom, in which units, under which privacy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from crossfade.prior._prior_sums import PriorSums

#: Features that a card lists one by one.
_LISTED = 50


def data_of(prior: PriorSums) -> dict[str, Any]:
    """Content of the card as JSON can hold it; numbers have four digits."""
    space, about = prior.space, prior.about
    names = space.feature_names or [f"feature {place}" for place in range(prior.n_features)]
    data: dict[str, Any] = {
        "n_tasks": prior.n_tasks,
        "n_people": prior.n_people,
        "n_features": prior.n_features,
        "classes": None if space.classes is None else list(space.classes),
        "class_names": None if space.class_names is None else list(space.class_names),
        "scale": _origin_of_scale(prior),
        "recipe": None if space.recipe is None else str(space.recipe),
        "holds": list(prior.holds),
        "privacy": prior.origin.privacy(),
        "about": about,
        "features": [
            {"name": name, "scale": _short(scale)}
            for name, scale in zip(names, space.feature_scale, strict=True)
        ],
    }
    if prior.law.directions is not None:
        hidden = prior.release is not None and prior.cancels
        agrees = not prior.cancels and prior.resultant_length >= 1e-12
        data["agreement"] = None if hidden else _short(float(prior.law.directions.trusted_length))
        data["concentration"] = None if hidden else _short(prior.concentration)
        if agrees:
            for one, part in zip(data["features"], prior.mean_direction, strict=True):
                one["mean_direction"] = _short(part)
        if prior.release is not None:
            noise = prior.release.noise * np.sqrt(prior.n_features) / prior.n_tasks
            data["noise_length"] = _short(noise)
    return data


def text_of(data: dict[str, Any]) -> str:
    """Card in Markdown."""
    rows = {**_rows(data), "privacy": privacy_text(data["privacy"]), **data["about"]}
    lines = [
        f"# Prior of {_many(data['n_tasks'], 'task')}, {_many(data['n_features'], 'feature')}",
        "",
        *table_of(("what", "value"), rows.items()),
        "",
        *table_of(
            ("feature", "divided by", "mean direction")[: 3 if "agreement" in data else 2],
            [
                (one["name"], f"{one['scale']:g}", *_signed(one, "agreement" in data))
                for one in data["features"][:_LISTED]
            ],
        ),
    ]
    if len(data["features"]) > _LISTED:
        lines.append(f"\n... and {len(data['features']) - _LISTED} features more.")
    return "\n".join(lines) + "\n"


def describe(prior: PriorSums) -> str:
    """Summary of a prior in plain text."""
    data = data_of(prior)
    lines = [f"Prior of {_many(prior.n_tasks, 'task')}, {_many(prior.n_features, 'feature')}"]
    rows = _rows(data)
    if prior.person is not None:
        guess = ", how far sessions differ is a guess" if prior.person.is_guess else ""
        rows["person"] = f"{_many(int(prior.person.n_sessions), 'earlier session')}{guess}"
    if prior.class_means is None:
        rows["lacks"] = "class means: no answer before the first label"
    elif not prior.law.records:
        lacks = "enough people for" * bool(prior.forecast_records) + " forecast records"
        rows["lacks"] = f"{lacks.strip()}: forecasts are those of theory alone"
    if prior.release is not None:
        rows["privacy"] = str(prior.release)
    if prior.law.directions is not None and prior.cancels:
        rows["warning"] = "the directions cancel out: there is no mean direction to rely on"
    elif "mean_direction" in data["features"][0]:
        parts = sorted(data["features"], key=lambda one: -abs(one["mean_direction"]))
        strongest = [f"{one['name']} {one['mean_direction']:+.2f}" for one in parts[:5]]
        rows["mean direction"] = ", ".join(strongest) + (", ..." if len(parts) > 5 else "")
    width = max(map(len, rows))
    return "\n".join([*lines, *(f"  {name:<{width}}  {text}" for name, text in rows.items())])


def _rows(data: dict[str, Any]) -> dict[str, str]:
    """Rows that the card and the summary have in common."""
    rows = {"people": f"{data['n_people']}", "classes": _classes(data)}
    if "agreement" in data:
        length, kappa = data["agreement"], data["concentration"]
        if length is None:
            rows["agreement R"] = rows["concentration kappa"] = "hidden by noise"
        else:
            rows["agreement R"] = f"{length:.3f}  (1: all alike, 0: they cancel out)"
            rows["concentration kappa"] = "infinite" if kappa is None else f"{kappa:.3g}"
    if "noise_length" in data:
        rows["noise"] = f"has a length of about {data['noise_length']:g} in the mean direction"
    rows["scale"] = data["scale"]
    if data["recipe"] is not None:
        rows["recipe"] = data["recipe"]
    return {**rows, "holds": ", ".join(name.replace("_", " ") for name in data["holds"])}


def _classes(data: dict[str, Any]) -> str:
    """Classes as people read them: 'rest' (0), or 0 where there are no names."""
    if data["classes"] is None:
        return "not given"
    names = data["class_names"] or data["classes"]
    called = [
        repr(name) if name == label else f"{name!r} ({label!r})"
        for name, label in zip(names, data["classes"], strict=True)
    ]
    last = "; directions point to the second" if len(called) == 2 else ""
    return ", ".join(called[:-1]) + f" and {called[-1]}{last}"


def _origin_of_scale(prior: PriorSums) -> str:
    if prior.origin.scale_learnt:
        return "learnt from these tasks"
    return "none: raw units" if (prior.feature_scale == 1.0).all() else "given beforehand"


def _short(number: float) -> float | None:
    """Four digits, the same on every machine; None for NaN and infinity."""
    return float(f"{number:.4g}") if np.isfinite(number) else None


def _signed(one: Mapping[str, Any], has_directions: bool) -> list[str]:
    """Part of a feature in the mean direction, if the prior has directions."""
    part = one.get("mean_direction")
    return ["none" if part is None else f"{part:+.3f}"] * has_directions


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def privacy_text(privacy: Mapping[str, Any]) -> str:
    """How a prior protects its people, in words."""
    if privacy["kind"] == "summary":
        return "a mean direction and its standard error, exact: it cannot be released"
    if privacy["kind"] != "released":
        return "exact sums: anyone who knows all tasks but one can recover that one"
    covered = "" if privacy["scale_covered"] else "; the scale is not covered"
    return (
        f"released with epsilon = {privacy['epsilon']:g}, delta = {privacy['delta']:g}; a person "
        f"counts once with all sessions of their group{covered}"
    )


def table_of(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Lines of a table in Markdown."""
    # A bar would end the cell.
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    return ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in cells]

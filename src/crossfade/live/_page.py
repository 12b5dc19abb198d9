"""The page of a session, and its report: the same page with its data, each in one file."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from crossfade.tasks import Recipe

_DATE = "%Y-%m-%d %H:%M"


@cache
def _part(name: str) -> str:
    return (files("crossfade.live") / name).read_text(encoding="utf-8")


def live_page() -> str:
    """The page of a running session, which gets its data from the socket."""
    return _page("null")


def report_page(
    about: dict[str, Any],
    state: dict[str, Any],
    course: list[dict[str, Any]],
    *,
    begun: datetime,
    recipe: Recipe | None,
    written: str,
) -> str:
    """The report of a session; `written` says where the model is."""
    right, lower, upper = (f"{100 * state[name]:.0f} %" for name in ("accuracy", "lower", "upper"))
    counts = ", ".join(f"{count} of {name}" for name, count in state["counts"].items())
    facts = {
        "Date": f"{begun:{_DATE}} to {datetime.now():{_DATE}}",
        "Labelled windows": counts,
        "Left out": f"{state['left_out']} of {state['n_windows']} windows",
        "Stream": ", ".join(filter(None, [about["stream"], about["rate"]])),
        "Recipe": "not known" if recipe is None else str(recipe),
        "Model": written,
    }
    title = f"Expect {right} of new windows to be right (90 % interval {lower} to {upper})"
    result = {"title": title, "facts": list(facts.items())}
    given = {"about": about, "state": state, "course": course, "result": result}
    # "<" could end the script that holds the data.
    return _page(json.dumps(given, allow_nan=False).replace("<", "\\u003c"))


def _page(data: str) -> str:
    page = _part("page.html")
    parts = {"STYLE": _part("page.css"), "SCRIPT": _part("page.js"), "DATA": data}
    for name, content in parts.items():
        page = page.replace(f"<!--{name}-->", content)
    return page

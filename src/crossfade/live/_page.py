"""The page of a session, and its report: the same page with its data.

HTML, style and script are three files here, and one file when they are sent, so that the page loads
nothing else.
"""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

_FORECAST = ("accuracy", "lower", "upper")
_DATE = "%Y-%m-%d %H:%M"


@cache
def _part(name: str) -> str:
    return (files("crossfade.live") / name).read_text(encoding="utf-8")


def live_page() -> str:
    """The page of a running session, which gets its data from the socket."""
    return _page("null")


def result_of(
    state: dict[str, Any],
    about: dict[str, Any],
    begun: datetime,
    ended: datetime,
    recipe: Any,
    written: str,
) -> dict[str, Any]:
    """Head of a report: the result in a sentence, and facts."""
    right, lower, upper = (f"{100 * state[name]:.0f} %" for name in _FORECAST)
    title = f"Expect {right} of new windows to be right (90 % interval {lower} to {upper})"
    counts = ", ".join(f"{count} of {name}" for name, count in state["counts"].items())
    until = "%H:%M" if ended.date() == begun.date() else _DATE
    date = f"{begun:{_DATE}} to {ended:{until}}"
    minutes = round((ended - begun).total_seconds() / 60.0)
    facts = {
        "Date": f"{date} ({f'{minutes} min' if minutes > 0 else 'less than a minute'})",
        "Labelled windows": counts,
        "Left out": f"{state['left_out']} of {state['n_windows']} windows",
        "Stream": ", ".join(filter(None, [about["stream"], about["rate"]])),
        "Recipe": "not known" if recipe is None else str(recipe),
        "Model": written,
    }
    return {"title": title, "facts": list(facts.items())}


def report_page(
    about: dict[str, Any],
    state: dict[str, Any],
    course: list[dict[str, Any]],
    result: dict[str, Any],
) -> str:
    """The report of a session."""
    given = {"about": about, "state": state, "course": course, "result": result}
    text = json.dumps(given, allow_nan=False)
    # "<" could end the script that holds the data.
    return _page(text.replace("<", "\\u003c"))


def _page(data: str) -> str:
    page = _part("page.html")
    for name, content in (
        ("STYLE", _part("page.css")),
        ("SCRIPT", _part("page.js")),
        ("DATA", data),
    ):
        page = page.replace(f"<!--{name}-->", content)
    return page

"""The page of a running session, and the report of one that is over: the same page with its data.

One file each for what is there, how it looks and what it does; sent as one, so that nothing has to
be loaded from anywhere.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _part(name: str) -> str:
    return (files("crossfade.live") / name).read_text(encoding="utf-8")


def live_page() -> str:
    """The page, which gets its data from the socket."""
    return _page("null")


def report_page(about: dict[str, Any], state: dict[str, Any], course: list[dict[str, Any]]) -> str:
    """The page of a session that is over."""
    text = json.dumps({"about": about, "state": state, "course": course}, allow_nan=False)
    # Within a script, "<" could end it.
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

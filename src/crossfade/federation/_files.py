"""Files of a round: what each kind is, read with its size in view, written whole or not at all."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from hashlib import sha256
from typing import Any

from crossfade._files import json_of, read_whole

#: How a masked file begins, and how its later versions will.
MASKED, ANY_MASKED = b"crossfade masked 1\n", b"crossfade masked "
VERSION = 1
#: What the other files are, and where one gets them.
_KINDS = {
    "crossfade-secret-key": ("a secret key", "the .key file that `crossfade federate key` wrote"),
    "crossfade-public-key": ("a public key", "the .pub file that `crossfade federate key` wrote"),
    "crossfade-agreement": ("an agreement", "the file that `crossfade federate agree` wrote"),
}
#: Bytes of the largest agreement that anybody needs: a thousand sites, tens of thousands features.
LARGEST = 8_000_000


def code_of(digest: bytes) -> str:
    """What people compare by phone: 160 bits in ten groups of four digits and letters a to f."""
    text = digest[:20].hex()
    return " ".join(text[place : place + 4] for place in range(0, 40, 4))


def digest_of(kind: str, fields: dict[str, Any]) -> bytes:
    """SHA-256 of fields as JSON, of which there is one way to write it, for a kind of file."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(f"{kind} {VERSION}\n{text}".encode()).digest()


def content_of(kind: str, fields: dict[str, Any]) -> bytes:
    """Content of a file of a kind, for people to read too."""
    return (json.dumps({"format": kind, "version": VERSION} | fields, indent=1) + "\n").encode()


def read_fields(path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """Fields of a file of a kind; refuses other kinds, by what they are."""
    wanted, where = _KINDS[kind]
    content = read_whole(path, LARGEST)
    found = "something else"
    fields: Any = None
    if content.startswith(ANY_MASKED):
        found = "a masked file"
    else:
        with suppress(ValueError):
            fields = json_of(content)
    format_found = fields.pop("format", None) if isinstance(fields, dict) else None
    if format_found != kind:
        if isinstance(format_found, str) and format_found in _KINDS:
            found = _KINDS[format_found][0]
        secret = " Keep the secret key to yourself." if found == "a secret key" else ""
        raise ValueError(f"{path} is {found}, not {wanted}. Give {where}.{secret}")
    version = fields.pop("version", None)
    if version != VERSION:
        raise ValueError(
            f"{path} is of version {version!r}; this Crossfade knows version {VERSION}. All sites "
            "need the same version of Crossfade."
        )
    return dict(fields)

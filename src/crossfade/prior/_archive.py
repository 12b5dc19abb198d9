"""Files of priors: a checksummed archive of arrays (``docs/prior-file.md``)."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade._atomic import write_whole

if TYPE_CHECKING:
    from crossfade.prior._mixture import MixturePrior
    from crossfade.prior._task_prior import TaskPrior

FORMAT = "crossfade-prior"
#: Version 1 had neither a card nor anything said about the prior. The words of the card belong to
#: the version: other words want a new one.
VERSION = 2
#: Who reads which format.
_READERS = {
    FORMAT: "TaskPrior",
    "crossfade-mixture-prior": "MixturePrior",
    "crossfade-multiclass-prior": "MulticlassPrior",
}
_ARRAYS = (
    "direction_sum",
    "outer_sum",
    "feature_scale",
    "within_covariance",
    "half_gap",
    "directions",
    "autocorrelation",
)


def write_prior(path: str | os.PathLike[str], prior: TaskPrior) -> None:
    """Write a prior beside its name, then rename the file into place."""
    write_whole(path, content_of(prior))


def content_of(prior: TaskPrior) -> bytes:
    """Bytes of the file of a prior; the same for the same prior."""
    fields = {name: getattr(prior, name) for name in prior.__dataclass_fields__}
    arrays = {name: fields[name] for name in _ARRAYS if fields[name] is not None}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "n_tasks": fields["n_tasks"],
        "classes": fields["classes"],
        "feature_names": fields["feature_names"],
        "about": dict(fields["about"]),
        "scale_learnt": fields["scale_learnt"],
        "direction_noise": fields["direction_noise"],
        "summarised": fields["summarised"],
        "release": None if fields["release"] is None else asdict(fields["release"]),
    }
    return pack(header, arrays | cards_of(prior))


def cards_of(prior: TaskPrior | MixturePrior) -> dict[str, Any]:
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


def card_faults(path: str | os.PathLike[str], prior: TaskPrior) -> list[str]:
    """What is wrong with the cards in a file: every byte of them must follow from its numbers."""
    header, stored = unpack(path, Path(path).read_bytes(), FORMAT, VERSION)
    written = cards_of(prior) if header["version"] > 1 else {}
    faults = []
    for name in ("card_json", "card_md"):
        if (name in stored) != (name in written):
            faults.append(f"{name} is {'missing' if written else 'there, but not in version 1'}.")
        elif written and stored[name].tobytes() != written[name].tobytes():
            if name == "card_json":
                faults += _field_faults(stored[name].tobytes(), prior.card_data())
            else:
                faults.append("The card in Markdown is not what the numbers say.")
    return faults


def _field_faults(stored: bytes, computed: dict[str, Any]) -> list[str]:
    """In what a card in JSON that was altered differs."""
    try:
        found = json.loads(stored)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return ["The card in JSON cannot be read."]
    keys = sorted(found.keys() | computed.keys())
    differ = [key for key in keys if (key, found.get(key)) not in computed.items()]
    if not differ:
        return ["The card in JSON is not written as Crossfade writes it."]
    return [f"The card's {key!r} is not what the numbers say." for key in differ]


def pack(header: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """Bytes of an archive of arrays, with a header and a checksum over both."""
    text = json.dumps(header, sort_keys=True)
    content = io.BytesIO()
    np.savez(
        content,
        allow_pickle=False,
        header=np.frombuffer(text.encode(), dtype=np.uint8),
        sha256=np.frombuffer(_digest(text, arrays), dtype=np.uint8),
        **arrays,
    )
    return content.getvalue()


def read_prior(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the fields of a prior; refuse what is not one, was altered, or is of a newer version."""
    return fields_of(path, Path(path).read_bytes())


def fields_of(path: object, content: bytes) -> dict[str, Any]:
    """Fields of a prior from the bytes of its file."""
    header, arrays = unpack(path, content, FORMAT, VERSION)
    classes, names = header.get("classes"), header.get("feature_names")
    return {
        "n_tasks": header.get("n_tasks"),
        "classes": tuple(classes) if isinstance(classes, list) else classes,
        "feature_names": tuple(names) if isinstance(names, list) else names,
        "about": header.get("about", {}),
        # Version 1 did not say; what is not in raw units was most likely learnt.
        "scale_learnt": header.get(
            "scale_learnt", bool(np.any(arrays.get("feature_scale") != 1.0))
        ),
        "release": header.get("release"),
        "direction_noise": header.get("direction_noise"),
        # Older files did not say, and a summary has no outer products.
        "summarised": header.get("summarised", "outer_sum" not in arrays),
        **{name: arrays.get(name) for name in _ARRAYS},
    }


def unpack(
    path: object, content: bytes, format_name: str, newest: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of an archive; refuse what is not one, was altered, or is newer."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        kind = "is truncated or damaged" if content[:2] == b"PK" else "is not a prior file"
        raise ValueError(
            f"{path} {kind}; nothing in it was run or unpickled. Ask for a file that "
            "TaskPrior.save wrote, and copy it again."
        )
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):
                raise ValueError(f"{name} is no array")
    except Exception as reason:  # zipfile and numpy raise a dozen kinds
        raise ValueError(
            f"{path} is damaged or holds something other than numbers ({reason}); nothing in it "
            "was run or unpickled. Copy the file again."
        ) from reason
    if "header" not in arrays or "sha256" not in arrays:
        raise ValueError(f"{path} is not a prior file: it has no header and checksum.")
    text = arrays.pop("header").tobytes().decode(errors="replace")
    checksum = arrays.pop("sha256").tobytes()
    try:
        header = json.loads(text)
    except ValueError as reason:
        raise ValueError(f"{path} was altered: its header cannot be read.") from reason
    found = header.get("format") if isinstance(header, dict) else None
    if found != format_name:
        reader = _READERS.get(found) if isinstance(found, str) else None
        kind = "not a prior file" if reader is None else f"the file of a {reader}"
        remedy = "" if reader is None else f" Read it with {reader}.load."
        raise ValueError(f"{path} is {kind}: its format is not {format_name!r}.{remedy}")
    version = header.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError(f"{path} was altered: its format version is {version!r}.")
    if version > newest:
        raise ValueError(
            f"{path} is of format version {version}; this Crossfade reads up to {newest}. "
            "Update Crossfade."
        )
    numbers = all(array.dtype == np.uint8 or array.dtype.kind == "f" for array in arrays.values())
    if not numbers or checksum != _digest(text, arrays):
        raise ValueError(
            f"{path} was altered after it was saved: its checksum does not match. Copy it again "
            "from where it was made."
        )
    return header, arrays


def _digest(text: str, arrays: dict[str, Any]) -> bytes:
    """SHA-256 over the header and every array with its name and shape."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        kind = "u1" if arrays[name].dtype == np.uint8 else "<f8"
        array = np.ascontiguousarray(arrays[name], dtype=kind)
        digest.update(f"{name}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.digest()

"""Fields of a prior in, a checksummed file out, and back (``docs/prior-file.md``)."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from crossfade._files import write_whole

FORMAT = "crossfade-prior"
VERSION = 1
_ARRAYS = ("direction_sum", "outer_sum", "feature_scale", "within_covariance", "half_gap")


def write_prior(path: str | os.PathLike[str], fields: dict[str, Any]) -> None:
    """Write the fields of a prior beside their name, then rename the file into place.

    Parameters
    ----------
    path : str or path-like
        Where to.
    fields : dict
        What :class:`TaskPrior` is made of.
    """
    arrays = {name: fields[name] for name in _ARRAYS if fields[name] is not None}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "n_tasks": fields["n_tasks"],
        "classes": fields["classes"],
        "feature_names": fields["feature_names"],
    }
    try:
        text = json.dumps(header, sort_keys=True)
    except TypeError as reason:
        raise ValueError(
            f"classes must be text, numbers or booleans to be saved; got {fields['classes']!r}."
        ) from reason
    content = io.BytesIO()
    np.savez(
        content,
        allow_pickle=False,
        header=np.frombuffer(text.encode(), dtype=np.uint8),
        sha256=np.frombuffer(_digest(text, arrays), dtype=np.uint8),
        **arrays,
    )
    write_whole(path, content.getvalue())


def read_prior(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the fields of a prior; refuse what is not one, was altered, or is of a newer version.

    Parameters
    ----------
    path : str or path-like
        A file that :func:`write_prior` wrote.

    Returns
    -------
    dict
        Arguments of :class:`TaskPrior`.
    """
    content = Path(path).read_bytes()
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
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"{path} is not a prior file: its format is not {FORMAT!r}.")
    version = header.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError(f"{path} was altered: its format version is {version!r}.")
    if version > VERSION:
        raise ValueError(
            f"{path} is of format version {version}; this Crossfade reads up to {VERSION}. "
            "Update Crossfade."
        )
    numbers = all(array.dtype.kind == "f" for array in arrays.values())
    if not numbers or checksum != _digest(text, arrays):
        raise ValueError(
            f"{path} was altered after it was saved: its checksum does not match. Copy it again "
            "from where it was made."
        )
    classes, names = header.get("classes"), header.get("feature_names")
    return {
        "n_tasks": header.get("n_tasks"),
        "classes": tuple(classes) if isinstance(classes, list) else classes,
        "feature_names": tuple(names) if isinstance(names, list) else names,
        **{name: arrays.get(name) for name in _ARRAYS},
    }


def _digest(text: str, arrays: dict[str, Any]) -> bytes:
    """SHA-256 over the header and every array with its name and shape."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name], dtype="<f8")
        digest.update(f"{name}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.digest()

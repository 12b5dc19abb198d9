"""Files of priors: one archive of arrays with a header and a checksum over both."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from crossfade._files import json_of, read_whole
from crossfade._typing import Array
from crossfade.prior._parts import Arrays, Origin, Space, Sums
from crossfade.prior._sessions import Person

FORMAT, VERSION = "crossfade-prior", 4
#: Bytes of a file, as with 11,000 features, and by how much unpacking may enlarge it. Ours are not
#: compressed.
_LARGEST, _LARGEST_RATIO = 16 << 30, 10

Parts = dict[str, Arrays]


def pack(space: Space, origin: Origin, parts: Mapping[str, Arrays]) -> bytes:
    """Bytes of a file; the same for the same content."""
    header = {"space": space.header(), "origin": origin.header()}
    arrays = {"feature_scale": np.asarray(header["space"].pop("feature_scale"))}
    for name, one in parts.items():
        arrays |= {f"{name}/{key}": array for key, array in one.arrays().items()}
    text = json.dumps({"format": FORMAT, "version": VERSION, **header}, sort_keys=True)
    plain = {name: np.asarray(array, "<f8", order="C") for name, array in arrays.items()}
    content = io.BytesIO()
    np.savez(
        content,
        allow_pickle=False,
        header=np.frombuffer(text.encode(), np.uint8),
        sha256=np.frombuffer(_digest(text, plain), np.uint8),
        **plain,
    )
    return content.getvalue()


def unpack(path: str | os.PathLike[str]) -> tuple[Space, Origin, Parts]:
    """Space, origin and sums of a file, everything in it checked."""
    header, arrays = _checked(path, read_whole(path, _LARGEST))
    try:
        scale = arrays.pop("feature_scale")
        space = Space.of_header({**header["space"], "feature_scale": scale})
        found: dict[str, dict[str, Array]] = {}
        for name, array in arrays.items():
            part, _, key = name.partition("/")
            found.setdefault(part, {})[key] = array
        sizes = {"d": space.n_features, "K": space.n_classes}
        parts = {name: _kind_of(name).of_arrays(one, **sizes) for name, one in found.items()}
        return space, Origin.of_header(header["origin"]), parts
    except (KeyError, TypeError, ValueError, AttributeError) as reason:
        raise ValueError(
            f"{path} does not hold a valid prior: {reason} Build it again."
        ) from reason


def _kind_of(name: str) -> type[Arrays]:
    """Kind of the arrays that a prior holds under a name."""
    kind = name.partition(".")[0]
    return Person if kind == "person" else Sums.kinds[kind]


def _checked(path: str | os.PathLike[str], content: bytes) -> tuple[Any, dict[str, Array]]:
    """Header and arrays of a file; refuses a file that is not a prior, or was altered."""
    try:
        arrays = _members(content)
        text = arrays.pop("header").tobytes().decode()
        checksum = arrays.pop("sha256").tobytes()
        header = json_of(text.encode())
        if header["format"] != FORMAT:
            raise ValueError(f"its format is {header['format']!r}")
    except Exception as reason:  # zipfile and numpy raise a dozen kinds
        raise ValueError(
            f"{path} is damaged, or not a prior ({reason}); nothing in it was run. Copy it again."
        ) from reason
    if header.get("version") != VERSION:
        raise ValueError(f"{path} was written by another version of Crossfade. Build it again.")
    if checksum != _digest(text, arrays):
        raise ValueError(f"{path} was altered after it was saved. Copy it again.")
    return header, arrays


def _members(content: bytes) -> dict[str, Array]:
    """Arrays of an archive by name; nothing is unpickled, and nothing grows without end."""
    archive = zipfile.ZipFile(io.BytesIO(content))
    if sum(member.file_size for member in archive.infolist()) > _LARGEST_RATIO * len(content):
        raise ValueError("it would unpack to much more than it is")
    arrays: dict[str, Array] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name in arrays or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is there twice, or compressed in an unknown way")
        with archive.open(member) as stream:
            arrays[name] = _array(stream.read(member.file_size))
    return arrays


def _array(content: bytes) -> Any:
    """One array of floats or bytes; nothing else is looked at."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    start = stream.tell()
    size = math.prod(shape) * dtype.itemsize
    if version != (1, 0) or dtype.str not in ("<f8", "|u1") or size != len(content) - start:
        raise ValueError("an array is not one of floats or bytes")
    return np.frombuffer(content, dtype, offset=start).reshape(shape, order="F" if fortran else "C")


def _digest(text: str, arrays: Mapping[str, Array]) -> bytes:
    """SHA-256 over the header and every array with its name, type and shape."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"{name}{arrays[name].dtype.str}{arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return digest.digest()

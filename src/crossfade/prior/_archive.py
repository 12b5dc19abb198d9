"""Files of priors: one checksummed archive of arrays for all kinds (``docs/sharing.md``)."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import zipfile
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from crossfade._files import json_of, read_whole, write_whole
from crossfade.prior._card import cards_of, field_faults

if TYPE_CHECKING:
    from crossfade.prior._task_prior import TaskPrior

#: Fields of a prior by name: arrays, values that JSON can hold, and the fields of priors inside it.
Fields = dict[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Archived(ABC):
    """A prior that can be saved, loaded, pickled and cloned."""

    #: What else the file said that the prior came from, which is written again.
    _metadata = MappingProxyType[str, Any]({})

    @abstractmethod
    def _file_fields(self) -> Fields:
        """What a file holds of the prior."""

    @classmethod
    @abstractmethod
    def _of_file_fields(cls, fields: Fields) -> Self:
        """Prior from what a file holds, every number of it checked."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the fields, so that a copy is made anew, and as unchangeable."""
        values = [getattr(self, field.name) for field in fields(self)]
        plain = (dict(one) if isinstance(one, MappingProxyType) else one for one in values)
        return type(self), tuple(plain), {"_metadata": dict(self._metadata)}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The prior itself: it never changes, so that cloning an estimator is cheap."""
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the prior to a file, whole or not at all (``docs/sharing.md``).

        Parameters
        ----------
        path : str or path-like
            Where to; by custom it ends in ``.npz``.
        """
        write_whole(path, content_of(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a prior from a file; nothing in it is ever unpickled.

        Parameters
        ----------
        path : str or path-like
            A file that :meth:`save` wrote.

        Returns
        -------
        TaskPrior or MulticlassPrior
            The prior, equal to the one that was saved.
        """
        return _read(path, cls)


P = TypeVar("P", bound=Archived)

FORMAT = "crossfade-prior"
#: The wording of the card belongs to the version, so new wording needs a new version.
VERSION = 4
_KINDS = ("TaskPrior", "MulticlassPrior")
_MEMBER = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*\.npy")
#: Bytes of a file, as with 11,000 features, and by how much unpacking may enlarge it. Ours are not
#: compressed.
_LARGEST, _LARGEST_RATIO = 16 << 30, 10


def content_of(prior: Archived) -> bytes:
    """Bytes of the file of a prior; the same for the same prior."""
    header, arrays = _split(prior._file_fields())
    kind = {"format": FORMAT, "version": VERSION, "kind": _kind(type(prior))}
    return pack(header | kind | {"metadata": dict(prior._metadata)}, arrays)


def _read(path: str | os.PathLike[str], kind: type[P]) -> P:
    """Read a prior; refuse files of another kind or version, and altered ones."""
    header, arrays = unpack(path, read_whole(path, _LARGEST), _kind(kind))
    metadata = header.pop("metadata", {})
    try:
        if not isinstance(metadata, dict):
            raise TypeError(f"metadata must be an object; got {type(metadata).__name__}.")
        prior = kind._of_file_fields(_joined(header, arrays))
    except (KeyError, TypeError, ValueError, OverflowError) as reason:
        why = f"the field {reason} is missing." if isinstance(reason, KeyError) else reason
        raise ValueError(
            f"{path} holds no valid prior: {why} Ask for a file that {_kind(kind)}.save wrote."
        ) from reason
    object.__setattr__(prior, "_metadata", metadata)
    return prior


def _kind(kind: type) -> str:
    """Which of the kinds a class is, or is derived from."""
    return next(one.__name__ for one in kind.__mro__ if one.__name__ in _KINDS)


def _split(fields: Fields, prefix: str = "") -> tuple[Fields, Fields]:
    """What JSON can hold, and arrays by dotted names; what is None is left out."""
    plain: Fields = {}
    arrays: Fields = {}
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            arrays[prefix + name] = value
        elif isinstance(value, dict):
            plain[name], inside = _split(value, f"{prefix}{name}.")
            arrays |= inside
        elif value is not None:
            plain[name] = value
    return plain, arrays


def _joined(header: Fields, arrays: Fields) -> Fields:
    """Fields from header and arrays: the inverse of :func:`_split`."""
    for name, array in arrays.items():
        *inside, last = name.split(".")
        place = header
        for step in inside:
            place = place.setdefault(step, {})
            if not isinstance(place, dict):
                raise TypeError(f"{step} must be an object; got {type(place).__name__}.")
        place[last] = array
    return header


def card_faults(path: str | os.PathLike[str], prior: TaskPrior) -> list[str]:
    """What is wrong with the cards in a file: every byte of them must follow from its numbers."""
    _, stored = unpack(path, read_whole(path, _LARGEST), "TaskPrior")
    faults = []
    for name, card in cards_of(prior).items():
        if name not in stored:
            faults.append(f"{name} is missing.")
        elif stored[name].tobytes() != card.tobytes():
            if name == "card_json":
                faults += field_faults(stored[name].tobytes(), prior.card_data())
            else:
                faults.append("The card in Markdown is not what the numbers say.")
    return faults


def pack(header: Fields, arrays: Fields) -> bytes:
    """Bytes of an archive of arrays, with a header and a checksum over both."""
    text = json.dumps(header, sort_keys=True)
    arrays = {
        name: np.ascontiguousarray(array, dtype="|u1" if array.dtype == np.uint8 else "<f8")
        for name, array in arrays.items()
    }
    checksum = _digest(text, arrays)
    content = io.BytesIO()
    np.savez(
        content,
        allow_pickle=False,
        header=np.frombuffer(text.encode(), dtype=np.uint8),
        sha256=np.frombuffer(checksum, dtype=np.uint8),
        **arrays,
    )
    return content.getvalue()


def unpack(path: object, content: bytes, kind: str) -> tuple[Fields, Fields]:
    """Header and arrays of an archive; refuse other kinds and versions, and altered files."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except Exception as reason:  # zipfile and numpy raise a dozen kinds
        what = "is truncated or damaged" if content[:2] == b"PK" else "is not a prior file"
        raise ValueError(
            f"{path} {what}; nothing in it was run or unpickled. Ask for a file that "
            f"{kind}.save wrote, and copy it again."
        ) from reason
    size = sum(member.file_size for member in archive.infolist())
    if size > _LARGEST_RATIO * len(content):
        raise ValueError(
            f"{path} has {len(content)} bytes and would unpack to {size}; nothing in it was read. "
            f"Ask for a file that {kind}.save wrote: those are not compressed."
        )
    try:
        arrays = _members(archive)
    except Exception as reason:
        raise ValueError(
            f"{path} is damaged or holds something other than numbers ({reason}); nothing in it "
            "was run or unpickled. Copy the file again."
        ) from reason
    if "header" not in arrays or "sha256" not in arrays:
        raise ValueError(f"{path} is not a prior file: it has no header and checksum.")
    text = arrays.pop("header").tobytes().decode(errors="replace")
    checksum = arrays.pop("sha256").tobytes()
    try:
        header = json_of(text.encode())
    except ValueError as reason:
        raise ValueError(f"{path} was altered: its header cannot be read.") from reason
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"{path} is not a prior file: its format is not {FORMAT!r}.")
    if header.get("version") != VERSION:
        raise ValueError(
            f"{path} has format version {header.get('version')!r} and this Crossfade reads only "
            f"version {VERSION}: build it again, or read it with the Crossfade that wrote it."
        )
    if checksum != _digest(text, arrays):
        raise ValueError(
            f"{path} was altered after it was saved: its checksum does not match. Copy it again "
            "from where it was made."
        )
    mine = header.get("kind")
    if mine not in _KINDS:
        raise ValueError(f"{path} holds a {mine!r}, which is not a kind of prior.")
    if mine != kind:
        raise ValueError(
            f"{path} is the file of a {mine}: its kind is not {kind!r}. Read it with {mine}.load."
        )
    return header, arrays


def _members(archive: zipfile.ZipFile) -> Fields:
    """Arrays of an archive by name; nothing is read that was not announced."""
    arrays: Fields = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if _MEMBER.fullmatch(member.filename) is None:
            raise ValueError(f"{member.filename!r} is no array")
        if name in arrays:
            raise ValueError(f"{name} is there twice")
        # Of other methods zipfile unpacks more than it is asked for.
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is compressed in a way that numpy does not use")
        with archive.open(member) as stream:
            arrays[name] = _array(name, stream.read(member.file_size))
    return arrays


def _array(name: str, content: bytes) -> Any:
    """One array of floats or bytes from the bytes of its ``.npy``; nothing else is looked at."""
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError(f"{name} is not in version 1.0 of numpy's format")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.str not in ("<f8", "|u1"):
        raise ValueError(f"{name} is of type {dtype.str!r}, neither '<f8' nor '|u1'")
    start = stream.tell()
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise ValueError(f"{name} does not have the numbers of its shape {shape}")
    return np.frombuffer(content, dtype, offset=start).reshape(shape, order="F" if fortran else "C")


def _digest(text: str, arrays: Fields) -> bytes:
    """SHA-256 over the header and every array with its name, type and shape."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"{name}{arrays[name].dtype.str}{arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return digest.digest()

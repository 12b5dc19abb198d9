"""Files, read and written whole: what every file of ours promises, whatever is in it.

Written to regular files only, whole or not at all; what a killed run leaves behind is removed by
the next. Read from regular files of a sensible size, and JSON of a sensible depth. The digests
themselves are with their formats: a prior's in its archive, a model's and a plan's in their JSON,
and a table's in Parquet's metadata.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from filecmp import cmp
from functools import cache
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import fcntl

#: What a name may belong to that is no regular file.
_OTHER_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
#: Names of what a process has open, which may be a regular file behind its back.
_STREAM = re.compile(r"/dev/(stdin|stdout|stderr|fd/\d+)|/proc/[^/]+/fd/\d+")
_TEMPORARY = ".crossfade-"
#: Brackets within brackets in JSON; ours have six at most, an estimator within others a few more.
_DEEPEST = 100
#: All in JSON that is no bracket: strings, the last of which may never end, and the rest.
_NO_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[^][{}"]+', re.DOTALL)


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all.

    Parameters
    ----------
    path : str or path-like
        Where to; a file that is there is replaced, a folder, device, pipe or socket is not.
    content : bytes
        What to write.
    """
    with replacing(path) as new:
        new.write_bytes(content)


@contextmanager
def replacing(path: str | os.PathLike[str], *, unless_same: bool = False) -> Iterator[Path]:
    """Name of a new file, which takes its place if all goes well; the only way to replace a file.

    Parameters
    ----------
    path : str or path-like
        Where to; links are followed, and what is no regular file is refused.
    unless_same : bool
        Whether a file with the same content stays as it is.

    Yields
    ------
    Path
        The file to write.
    """
    target = _target_of(path)
    sweep(target.parent)
    try:
        with temporary(target.parent) as new:
            yield new
            with open(new, "rb+") as stream:
                os.fsync(stream.fileno())
            if not (unless_same and target.is_file() and cmp(new, target, shallow=False)):
                os.replace(new, target)
    except OSError as reason:
        named = reason.filename is None or Path(reason.filename).name.startswith(_TEMPORARY)
        if reason.errno is not None and named:
            # Of a full disk the system names no file, and else the temporary one.
            raise type(reason)(reason.errno, reason.strerror, os.fspath(path)) from reason
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a name that could not be written to, before the work that makes the content."""
    target = _target_of(path)
    try:
        with temporary(target.parent):
            pass
    except OSError as reason:
        why = reason.strerror or str(reason)
        raise OSError(f"{os.fspath(path)} cannot be written: {why}.") from reason


def refuse_same_file(out: str | os.PathLike[str], *inputs: str | os.PathLike[str]) -> None:
    """Refuse to write to a file that a command reads, before anything is done."""
    for one in inputs:
        same = os.path.realpath(out) == os.path.realpath(one)
        if same or (os.path.exists(out) and os.path.exists(one) and os.path.samefile(out, one)):
            raise ValueError(
                f"{os.fspath(out)} would replace {os.fspath(one)}, which this command needs. Give "
                "another name to write to."
            )


def read_whole(path: str | os.PathLike[str], most: int, *, pipes: bool = False) -> bytes:
    """Read a regular file of at most so many bytes.

    Parameters
    ----------
    path : str or path-like
        What to read.
    most : int
        Bytes beyond which it is refused, before or while it is read.
    pipes : bool
        Whether a pipe will do, too, as of ``<(command)``; a device, which may never end, never
        does.

    Returns
    -------
    bytes
        The content.
    """
    kind, size = kind_of(path), os.stat(path).st_size
    if kind is not None and not (pipes and kind in ("a pipe", "a socket")):
        raise ValueError(f"{path} is {kind}, and no file to read. Give the name of a file.")
    if size > most:
        raise _too_large(path, f"{size}", most)
    try:
        with open(path, "rb") as stream:
            if kind is None:
                return stream.read()
            content = bytearray()
            while part := stream.read(1 << 20):
                content += part
                if len(content) > most:
                    raise _too_large(path, f"more than {most}", most)
            return bytes(content)
    except MemoryError as reason:
        raise ValueError(f"{path} does not fit into the memory of this machine.") from reason


def json_of(content: bytes) -> Any:
    """What JSON says; refuses what is none, a key twice, and brackets nested without end."""
    text = content.decode()
    depths = accumulate(1 if one in "[{" else -1 for one in _NO_BRACKET.sub("", text))
    deepest = max(depths, default=0)
    if deepest > _DEEPEST:
        raise ValueError(f"its brackets are nested {deepest} deep, and {_DEEPEST} are allowed")
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it has a key twice")
    return found


def digest_of(fields: object, *, in_order: bool = False) -> str:
    """SHA-256 of fields as JSON without spaces; sorted unless their order means something."""
    text = json.dumps(fields, sort_keys=not in_order, separators=(",", ":"), allow_nan=False)
    return sha256(text.encode()).hexdigest()


def is_intact(fields: object, checksum: object, *, in_order: bool = False) -> bool:
    """Whether a checksum is that of the fields."""
    try:
        return checksum == digest_of(fields, in_order=in_order)
    except ValueError:
        # A number that JSON has no word for, and that was never written.
        return False


def _too_large(path: object, size: str, most: int) -> ValueError:
    return ValueError(
        f"{path} has {size} bytes, and a file of its kind at most {most}; nothing in it was read."
    )


def _target_of(path: str | os.PathLike[str]) -> Path:
    """Name of the file itself, links followed; refuses what no file takes the place of."""
    if _STREAM.fullmatch(os.path.abspath(path)):
        raise _TakenError(
            errno.EEXIST,
            f"{os.fspath(path)} is a stream of a process, and is not replaced by a file. Give "
            "another name to write to; commands write to standard output where it is -",
        )
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {target.parent}, so that {target.name} cannot be written there."
        )
    if target.exists() and not target.is_file():
        raise _TakenError(
            errno.EEXIST,
            f"{target} is {kind_of(target)}, and is not replaced by a file. Give another name to "
            "write to",
        )
    return target


class _TakenError(FileExistsError):
    """A name that belongs to something else than a file; a sentence without a number."""

    def __str__(self) -> str:
        return f"{self.strerror}."


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """What a name belongs to if that is no regular file."""
    mode = os.stat(path).st_mode
    return None if stat.S_ISREG(mode) else _OTHER_KINDS.get(stat.S_IFMT(mode), "no regular file")


@contextmanager
def temporary(folder: Path) -> Iterator[Path]:
    """Name of a new file, which is gone afterwards; its lock shows that somebody works on it."""
    path = folder / f"{_TEMPORARY}{secrets.token_hex(8)}"
    with open(path, "xb") as lock:
        try:
            if sys.platform == "win32":
                # There an open file cannot be removed, nor be renamed.
                lock.close()
            else:
                with suppress(OSError):
                    fcntl.flock(lock, fcntl.LOCK_EX)
            yield path
        finally:
            path.unlink(missing_ok=True)


@cache
def sweep(folder: Path) -> None:
    """Remove temporary files of runs that were killed; a process does it once for each folder.

    The system gives up the lock of a process that ends in whatever way, so that a file without one
    is nobody's. Where there are no locks, nothing is removed.
    """
    for path in folder.glob(f"{_TEMPORARY}*"):
        with suppress(OSError):
            if path.is_symlink() or not path.is_file():
                continue
            if sys.platform == "win32":
                path.unlink()
            else:
                with open(path, "rb+") as stream:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()

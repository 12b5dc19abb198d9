"""Files are written whole or not at all, and read only if they have a sensible size."""

from __future__ import annotations

import json
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from filecmp import cmp
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import fcntl

_OTHER_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
_TEMPORARY = ".crossfade-"


# -- writing ---------------------------------------------------------------------------------------


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all; replaces a file, but no folder, device or pipe."""
    with replacing(path) as new:
        new.write_bytes(content)


@contextmanager
def replacing(path: str | os.PathLike[str], *, unless_same: bool = False) -> Iterator[Path]:
    """Name of a new file, which replaces `path` if all goes well, or if its content differs."""
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
        if reason.errno is None or not named:
            raise
        # The system names the temporary file, or none if the disk is full.
        raise type(reason)(reason.errno, reason.strerror, os.fspath(path)) from reason


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a name that cannot be written to, before the work that makes the content."""
    target = _target_of(path)
    try:
        with temporary(target.parent):
            pass
    except OSError as reason:
        raise OSError(f"{os.fspath(path)} cannot be written: {reason.strerror}.") from reason


def refuse_same_file(out: str | os.PathLike[str], *inputs: str | os.PathLike[str] | None) -> None:
    """Refuse to write to a file that a command reads, before anything is done."""
    read = [one for one in inputs if one is not None]
    there = [one for one in read if os.path.exists(one) and os.path.exists(out)]
    linked = any(os.path.samefile(out, one) for one in there)
    if linked or os.path.realpath(out) in map(os.path.realpath, read):
        raise ValueError(f"{os.fspath(out)} is also read. Give another name to write to.")


def _target_of(path: str | os.PathLike[str]) -> Path:
    """Name of the file itself, links followed."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent} to write {target.name} to.")
    if target.exists() and not target.is_file():
        raise FileExistsError(
            f"{target} is {kind_of(target)}, and is not replaced by a file. Give another name."
        )
    return target


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """Kind of a file that is not a regular one; else None."""
    mode = os.stat(path).st_mode
    return None if stat.S_ISREG(mode) else _OTHER_KINDS.get(stat.S_IFMT(mode), "not a file")


@contextmanager
def temporary(folder: Path) -> Iterator[Path]:
    """Name of a new file, which is gone afterwards; its lock shows that somebody works on it."""
    path = folder / f"{_TEMPORARY}{secrets.token_hex(8)}"
    with open(path, "xb") as lock:
        try:
            if sys.platform == "win32":
                # Windows can neither remove nor rename an open file.
                lock.close()
            else:
                with suppress(OSError):
                    fcntl.flock(lock, fcntl.LOCK_EX)
            yield path
        finally:
            path.unlink(missing_ok=True)


@cache
def sweep(folder: Path) -> None:
    """Remove temporary files of killed runs, which are unlocked; once for each folder."""
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


# -- reading ---------------------------------------------------------------------------------------


def read_whole(path: str | os.PathLike[str], most: int, *, pipes: bool = False) -> bytes:
    """Read a regular file of at most `most` bytes; with `pipes` a pipe will do, too."""
    kind = kind_of(path)
    if kind is not None and not (pipes and kind in ("a pipe", "a socket")):
        raise ValueError(f"{path} is {kind}, not a file to read. Give the name of a file.")
    content = bytearray()
    with open(path, "rb") as stream:
        if kind is None and os.fstat(stream.fileno()).st_size <= most:
            return stream.read()
        while kind is not None and len(content) <= most and (part := stream.read(1 << 20)):
            content += part
    if kind is None or len(content) > most:
        raise ValueError(f"{path} has more than {most} bytes, the most for a file of its kind.")
    return bytes(content)


def json_of(content: bytes) -> Any:
    """Content of JSON; refuses a key that comes twice, and brackets nested too deep."""
    try:
        return json.loads(content.decode(), object_pairs_hook=_object)
    except RecursionError as reason:
        raise ValueError("its brackets are nested too deep") from reason


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
        # NaN and infinity were never written.
        return False

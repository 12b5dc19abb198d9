"""The journal of a session: one line for each action, on disk before the action counts.

Lines are JSON with a running digest: each `check` is that of the line, of all lines before it, and
of what the session was begun with. A line that is not complete was never acknowledged and is
dropped; any other that does not fit is damage, or of another session.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from crossfade._files import json_of, kind_of, read_whole

if sys.platform != "win32":
    import fcntl

#: Bytes of a journal, of more than a million windows.
_LARGEST = 1 << 30
#: Files beside the journal that a session is begun with.
_BEGUN_WITH = ("session.json", "prior.npz")


class Journal:
    """Actions in a file that only grows; `actions` are those that it held when it was opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._spoilt = False  # whether the file may hold more than what was acknowledged
        kind = kind_of(path) if path.exists() else None
        if kind is not None:
            raise ValueError(f"{path} is {kind}, and no journal. Restore the file from a copy.")
        self._stream = open(path, "ab", buffering=0)  # noqa: SIM115 - open as long as the session
        try:
            self._lock()
            self.actions, self._check, self._size, ended = _read(path)
            left = os.fstat(self._stream.fileno()).st_size > self._size
            self.torn = left and ended
            if left:
                self._stream.truncate(self._size)
            if not ended:
                self._size += self._stream.write(b"\n") or 0
                os.fsync(self._stream.fileno())
        except BaseException:
            self.close()
            raise

    def write(self, action: dict[str, Any]) -> None:
        """Append an action; it is on disk when this returns, or the file is as it was before."""
        check = _check_of(self._check or _begun_with(self.path.parent), action)
        line = _text({**action, "check": check}) + b"\n"
        try:
            self._mend()
            self._spoilt = True
            written = self._stream.write(line)
            if written != len(line):
                raise OSError(28, "No space left on device")
            os.fsync(self._stream.fileno())
        except OSError as reason:
            with suppress(OSError):
                self._mend()
            raise OSError(
                reason.errno,
                f"{reason.strerror}, so that this window or label was not kept; those before are "
                "safe. Make room on the disk, and give it again",
                os.fspath(self.path),
            ) from reason
        self._check, self._size, self._spoilt = check, self._size + len(line), False

    def close(self) -> None:
        """Give the file up to others."""
        if not self._stream.closed:
            with suppress(OSError):
                self._mend()
        self._stream.close()

    def _mend(self) -> None:
        """Remove what a line left that could not be written."""
        if self._spoilt:
            self._stream.truncate(self._size)
            self._spoilt = False

    def __del__(self) -> None:
        if "_stream" in self.__dict__:
            self.close()

    def _lock(self) -> None:
        if sys.platform == "win32":
            return
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as reason:
            raise ValueError(
                f"The session in {self.path.parent} is open already. Close it there, or choose "
                "another folder."
            ) from reason


def _read(path: Path) -> tuple[list[dict[str, Any]], str, int, bool]:
    """Actions, the digest of them all, the bytes that they take, and whether the last has an end.

    A last line that is complete counts, though its end is missing or was damaged.
    """
    *lines, last = read_whole(path, _LARGEST).split(b"\n")
    actions: list[dict[str, Any]] = []
    # A journal of an older version does not say what its session was begun with.
    known, size = (_begun_with(path.parent), ""), 0
    for number, line in enumerate(lines, 1):
        found = _following(known, line)
        if found is None:
            raise ValueError(_damaged(path, number))
        actions.append(found[0])
        known, size = (found[1],) * 2, size + len(line) + 1
    for line in (last, last[:-1]):
        found = _following(known, line)
        if found is not None:
            return [*actions, found[0]], found[1], size + len(line), False
    return actions, known[0] if actions else "", size, True


def _following(known: tuple[str, ...], line: bytes) -> tuple[dict[str, Any], str] | None:
    """Action of a line, and its check, if that follows from one of those before it."""
    try:
        action = json_of(line)
        found = action.pop("check")
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return (action, found) if found in [_check_of(one, action) for one in known] else None


def _damaged(path: Path, number: int) -> str:
    """What to say of a line that does not fit."""
    if number == 1:
        return (
            f"Line 1 of {path} is damaged, or of another session: it does not fit "
            f"{' and '.join(_BEGUN_WITH)} beside it. Restore the three files from a copy."
        )
    return (
        f"Line {number} of {path} is damaged: it does not fit the lines before it. Restore the "
        f"file from a copy, or keep its first {number - 1} lines alone."
    )


def _begun_with(folder: Path) -> str:
    """Digest of the files that a session is begun with; empty where they are not there."""
    paths = [folder / name for name in _BEGUN_WITH]
    if not all(path.is_file() for path in paths):
        return ""
    each = (sha256(path.read_bytes()).hexdigest() for path in paths)
    return sha256("".join(each).encode()).hexdigest()


def _check_of(before: str, action: dict[str, Any]) -> str:
    return sha256(before.encode() + _text(action)).hexdigest()[:16]


def _text(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":"), allow_nan=False).encode()

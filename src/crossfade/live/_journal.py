"""The journal of a session: one line of JSON for each action, on disk before the action counts.

Its `check` is a digest of all lines so far. An incomplete last line was never acknowledged.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from crossfade._files import json_of, read_whole

if sys.platform != "win32":
    import fcntl

#: Bytes of a journal of more than a million windows.
_LARGEST = 1 << 30


class Journal:
    """A file that only grows; `actions` are those that it held when it was opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream = open(path, "ab", buffering=0)  # noqa: SIM115 - open as long as the session
        try:
            self._lock()
            *lines, rest = read_whole(path, _LARGEST).split(b"\n")
            self.actions, self._check = _read(path, lines)
            self.torn = bool(rest)
            self._size = sum(len(line) + 1 for line in lines)
        except BaseException:
            self.close()
            raise

    def write(self, action: dict[str, Any]) -> None:
        """Append an action; it is on disk when this returns, or the journal is as it was."""
        check = _check_of(self._check, action)
        line = _text({**action, "check": check}) + b"\n"
        try:
            # Half a line may be left from a crash or a full disk.
            self._stream.truncate(self._size)
            if self._stream.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._stream.fileno())
        except OSError:
            with suppress(OSError):
                self._stream.truncate(self._size)
            raise
        self._check, self._size = check, self._size + len(line)

    def close(self) -> None:
        """Close the file, so that others can open it."""
        self._stream.close()

    def __del__(self) -> None:
        if "_stream" in vars(self):
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


def _read(path: Path, lines: list[bytes]) -> tuple[list[dict[str, Any]], str]:
    """Actions of complete lines, and the digest of all of them."""
    actions: list[dict[str, Any]] = []
    check = ""
    for number, line in enumerate(lines, 1):
        try:
            action = json_of(line)
            found = action.pop("check")
            check = _check_of(check, action)
        except (ValueError, KeyError, TypeError, AttributeError):
            found = None
        if found != check:
            raise ValueError(f"Line {number} of {path} is damaged. Restore the file from a copy.")
        actions.append(action)
    return actions, check


def _check_of(before: str, action: dict[str, Any]) -> str:
    return sha256(before.encode() + _text(action)).hexdigest()[:16]


def _text(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":"), allow_nan=False).encode()

"""The journal of a session: one line for each action, on disk before the action counts.

Lines are JSON with a running digest: each `check` is that of the line and of all lines before it.
A line without its end was never acknowledged and is dropped; any other that does not fit is damage.
"""

from __future__ import annotations

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

#: Bytes of a journal, of more than a million windows.
_LARGEST = 1 << 30


class Journal:
    """Actions in a file that only grows; `actions` are those that it held when it was opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._spoilt = False  # whether the file may hold more than what was acknowledged
        self._stream = open(path, "ab", buffering=0)  # noqa: SIM115 - open as long as the session
        try:
            self._lock()
            self.actions, self._check, self._size = _read(path)
            self.torn = os.fstat(self._stream.fileno()).st_size > self._size
            if self.torn:
                self._stream.truncate(self._size)
        except BaseException:
            self.close()
            raise

    def write(self, action: dict[str, Any]) -> None:
        """Append an action; it is on disk when this returns, or the file is as it was before."""
        check = _check_of(self._check, action)
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


def _read(path: Path) -> tuple[list[dict[str, Any]], str, int]:
    """Actions, the digest of them all, and the bytes that they take."""
    lines = read_whole(path, _LARGEST).split(b"\n")[:-1]
    actions, check, size = [], "", 0
    for number, line in enumerate(lines, 1):
        try:
            action = json_of(line)
            found = action.pop("check")
        except (ValueError, KeyError, TypeError, AttributeError):
            action, found = {}, None
        check = _check_of(check, action)
        if found != check:
            raise ValueError(
                f"Line {number} of {path} is damaged: it does not fit the lines before it. Restore "
                f"the file from a copy, or keep its first {number - 1} lines alone."
            )
        actions.append(action)
        size += len(line) + 1
    return actions, check, size


def _check_of(before: str, action: dict[str, Any]) -> str:
    return sha256(before.encode() + _text(action)).hexdigest()[:16]


def _text(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":"), allow_nan=False).encode()

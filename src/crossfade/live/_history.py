"""Windows and labels of a session, in their order: what can be taken back, and their sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from crossfade.live._records import LiveWindow
from crossfade.live._sums import Sums

_NEW = object()
#: Sums without the last window, where they are known, and of all windows.
Both = tuple[Sums | None, Sums]


class History:
    """Windows of a session, and their sums; `empty` are those of none."""

    def __init__(self, empty: Sums) -> None:
        self.windows: list[LiveWindow] = []
        self._empty = empty
        self._both: Both = None, empty
        # Windows that were added or labelled, and their labels before, or _NEW.
        self._actions: list[tuple[int, Any]] = []

    @property
    def sums(self) -> Sums:
        """Sums of all windows that count."""
        return self._both[1]

    @property
    def can_undo(self) -> bool:
        """Whether there is anything to take back."""
        return bool(self._actions)

    def with_(self, place: int, one: LiveWindow) -> Both:
        """Sums if this window were in its place, the next new one included.

        Only a label of an earlier window makes all others count anew.
        """
        but_last, sums = self._both
        last = len(self.windows) - 1
        if place > last:
            return sums, sums.then([one])
        if place == last and but_last is not None:
            return but_last, but_last.then([one])
        windows = [*self.windows[:place], one, *self.windows[place + 1 :]]
        return self._count(windows)

    def put(self, place: int, one: LiveWindow, both: Both | None = None) -> None:
        """Put a window in its place, with the sums that :meth:`with_` gave for it."""
        self._both = self.with_(place, one) if both is None else both
        if place < len(self.windows):
            self._actions.append((place, self.windows[place].label))
            self.windows[place] = one
        else:
            self._actions.append((place, _NEW))
            self.windows.append(one)

    def undo(self) -> str:
        """Take back the last action: "window" or "label"."""
        place, before = self._actions.pop()
        if before is not _NEW:
            one = replace(self.windows[place], label=before)
            self._both = self.with_(place, one)
            self.windows[place] = one
            return "label"
        del self.windows[place]
        but_last, _ = self._both
        self._both = self._count(self.windows) if but_last is None else (None, but_last)
        return "window"

    def _count(self, windows: Sequence[LiveWindow]) -> Both:
        but_last = self._empty.then(windows[:-1])
        return but_last, but_last.then(windows[-1:])

"""Whose tasks a prior is of: sums that count people, and digests that tell tasks apart.

A release protects a person with all their sessions. For it every session of a group of n counts
1/n: a person adds the mean a of n unit vectors w and the mean A of their outer products ww'. These
lie in the convex hull of the pairs (w, ww'), and no two points of a hull are further apart than two
points that span it: replacing a person moves the sums by no more than replacing a session does
(equation 29).

A task is known by two digests, of its direction and of its windows: priors from directions or from
moments know the first alone. One in common is enough to recognise a task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array
from crossfade._validate import check_covariance, check_finite, check_integer, check_spectrum
from crossfade.tasks import Task

Digests = NDArray[np.uint8]

#: Bytes of a digest: no two tasks have the same by chance.
SIZE = 16
#: Digests of a task, side by side: of its direction and of its windows; zeros where not known.
_HALVES = (slice(0, SIZE), slice(SIZE, 2 * SIZE))
#: How near to each other sums are equal: rounding alone sets them apart.
_EQUAL = 1e-9


@dataclass(frozen=True, eq=False)
class People:
    """Sums of a prior in which a person counts once, whatever the number of their sessions.

    Attributes
    ----------
    n_people : int
        Number of people.
    direction_sum : ndarray of shape (n_features,)
        Sum over people of the mean direction of their sessions.
    outer_sum : ndarray of shape (n_features, n_features) or None
        Sum over people of the mean outer product; None for an isotropic prior.
    """

    n_people: int
    direction_sum: Array
    outer_sum: Array | None

    @classmethod
    def of(cls, groups: Sequence[str | None], directions: Array) -> People | None:
        """Sums of directions (n_tasks, n_features); None where everybody has one session."""
        share = shares_of(groups)
        if (share == 1.0).all():
            return None
        n_people = round(float(share.sum()))
        return cls(n_people, share @ directions, (directions.T * share) @ directions)

    @classmethod
    def of_file(cls, values: Any, n_features: int, n_tasks: int) -> People:
        """Sums from the fields of a file, every number of them checked."""
        if not isinstance(values, dict):
            raise TypeError(f"people must be an object; got {type(values).__name__}.")
        n_people = check_integer("n_people", values["n_people"], 1)
        total = check_finite("people.direction_sum", values["direction_sum"], 1, n_features)
        if n_people > n_tasks or np.linalg.norm(total) > n_people * (1.0 + 1e-5):
            raise ValueError(
                f"people must be those of {n_tasks} tasks; {n_people} have other sums."
            )
        outer = values.get("outer_sum")
        if outer is not None:
            outer = check_covariance("people.outer_sum", outer, n_features)
            check_spectrum("people.outer_sum", np.linalg.eigvalsh(outer))
            if abs(np.trace(outer) - n_people) > 1e-5 * n_people:
                raise ValueError(f"people.outer_sum is not that of {n_people} people.")
        return cls(n_people, total, outer)

    def fields(self) -> dict[str, Any]:
        """What a file holds of the sums."""
        return dict(vars(self))

    def __add__(self, other: People) -> People:
        """Sums over the people of both."""
        outer = None
        if self.outer_sum is not None and other.outer_sum is not None:
            outer = self.outer_sum + other.outer_sum
        total = self.direction_sum + other.direction_sum
        return People(self.n_people + other.n_people, total, outer)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same numbers, to the bit."""
        return isinstance(other, People) and all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)
        )


def shares_of(groups: Sequence[str | None]) -> Array:
    """Part (n_tasks,) of a person that each task is: one over the sessions of its group."""
    # Who has no group is a person of their own.
    own: list[Hashable] = [(n,) if group is None else str(group) for n, group in enumerate(groups)]
    counts = Counter(own)
    return 1.0 / np.array([counts[one] for one in own])


def digests_of_tasks(tasks: Sequence[Task]) -> Digests:
    """Digests (n_tasks, 16) of windows, whatever their order, labels and names.

    Numbers count as single floats, so that a table which was written as text is the same. Refuses
    a task that is there twice.
    """
    seen: dict[bytes, Task] = {}
    for task in tasks:
        digest = _digest_of(task)
        if digest in seen:
            raise ValueError(
                f"{task!r} and {seen[digest]!r} hold the same windows, and would count twice. "
                "Leave one of them out."
            )
        seen[digest] = task
    return _of_bytes(seen)


def digests_of_rows(directions: Array) -> Digests:
    """Digests (n_tasks, 16) of directions; zeros for those along an axis, which many may share."""
    rows = _canonical(directions)
    # What `_digest` does, without its cost for each of a million rows.
    start, content, size = f"{rows.shape[1:]}".encode(), rows.tobytes(), 4 * rows.shape[1]
    known = _of_bytes(
        blake2b(start + content[place : place + size], digest_size=SIZE).digest()
        for place in range(0, len(content), size)
    )
    return np.where(np.count_nonzero(rows, axis=1)[:, None] > 1, known, np.uint8(0))


def parts_of(directions: Array, windows: Digests | None = None) -> Digests | None:
    """Both digests (n_known, 32) of the tasks with these directions; None where none is known."""
    known = digests_of_rows(directions)
    rows = np.hstack([known, np.zeros_like(known) if windows is None else windows])
    rows = rows[rows.any(1)]
    return together(rows) if len(rows) else None


def names_of(parts: Digests) -> list[list[str]]:
    """Digests of each task in hexadecimal, without those that are not known."""
    return [[one.tobytes().hex() for half in _HALVES if (one := row[half]).any()] for row in parts]


def together(*digests: Digests | None) -> Digests | None:
    """All of some rows of digests, sorted, each once."""
    known: Digests | None = None
    for one in digests:
        if one is None:
            continue
        more = _in_order(_as_words(one))
        if known is not None:
            # Into their places: sorting all again would cost a streamed prior its time.
            words = _as_words(known)
            at, is_there = _places(words, more)
            more = np.insert(words, at[~is_there], more[~is_there])
        known = more.view(np.uint8).reshape(-1, 2 * SIZE)
    return known


def check_parts(parts: Any, n_tasks: int) -> Digests | None:
    """Digests of at most so many tasks, as they can no longer be changed."""
    if parts is None:
        return None
    known: Digests = np.asarray(parts)
    if known.dtype != np.uint8 or known.ndim != 2 or known.shape[1] not in (SIZE, 2 * SIZE):
        raise ValueError(f"parts must be two digests of {SIZE} bytes for each task.")
    if known.shape[1] == SIZE:
        # Older files have one digest, and do not say whether of a direction or of windows.
        known = np.hstack([known, known])
    if len(known) > n_tasks:
        raise ValueError(f"parts are digests of {len(known)} tasks, and there are {n_tasks}.")
    known = _in_order(_as_words(known)).view(np.uint8).reshape(-1, 2 * SIZE).copy()
    known.flags.writeable = False
    return known


def refuse_shared(mine: Digests | None, theirs: Digests | None) -> None:
    """Refuse to count a task twice."""
    if mine is None or theirs is None:
        return
    shared = np.zeros(len(theirs), bool)
    for half in _HALVES:
        words = _as_words(theirs[:, half])
        given = np.flatnonzero(words != b"")
        if given.size:
            known = _in_order(_as_words(mine[:, half]))
            shared[given] |= _places(known, words[given])[1]
    n_shared = int(shared.sum())
    if n_shared:
        what = "one task" if n_shared == 1 else f"{n_shared} tasks"
        raise ValueError(
            f"Both priors hold the data of {what}, which would count twice. Merge priors of "
            "different people, or build one prior from all tasks."
        )


def refuse_equal(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Refuse two priors that are equal in all sums that both hold."""
    both = [name for name in mine if mine[name] is not None and theirs.get(name) is not None]
    if all(_are_equal(mine[name], theirs[name]) for name in both):
        raise ValueError(
            "Both priors have the same sums, so that they are of the same tasks, which would count "
            "twice. Merge priors of different people, or build one prior from all tasks."
        )


def _are_equal(one: Any, other: Any) -> bool:
    near = _EQUAL * max(float(np.abs(one).max()), 1.0)
    return bool(np.shape(one) == np.shape(other) and np.abs(np.subtract(one, other)).max() <= near)


def _of_bytes(digests: Iterable[bytes]) -> Digests:
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, SIZE)


def _as_words(digests: Digests) -> Any:
    """Digests (n, size) as n strings of bytes, which numpy compares at once."""
    return np.ascontiguousarray(digests).view(f"S{digests.shape[1]}").ravel()


def _in_order(words: Any) -> Any:
    """Strings of bytes, sorted, each once; most are so already."""
    return words if (words[1:] > words[:-1]).all() else np.unique(words)


def _places(known: Any, others: Any) -> tuple[Any, Any]:
    """Where others belong among sorted digests, and whether they are there."""
    at = np.searchsorted(known, others)
    is_there = np.zeros(len(others), bool)
    inside = at < len(known)
    is_there[inside] = known[at[inside]] == others[inside]
    return at, is_there


def _digest_of(task: Task) -> bytes:
    exact = np.asarray(task.X, np.float64)
    rows = _as_text(_canonical(exact))
    whole = _as_text(exact + 0.0)
    if len(np.unique(rows)) < len(np.unique(whole)):
        # Windows far from zero, which so few digits cannot tell apart.
        rows = whole
    return _digest(rows, exact.shape)


def _as_text(rows: Array) -> Any:
    """Rows as strings of bytes, sorted, which is quick."""
    rows = np.ascontiguousarray(rows)
    return np.sort(rows.view(f"S{rows.shape[1] * rows.itemsize}"), axis=0)


def _canonical(numbers: Array) -> Any:
    with np.errstate(over="ignore", under="ignore"):
        # Adding zero makes one of both zeros.
        return numbers.astype("<f4") + np.float32(0.0)


def _digest(numbers: Any, shape: tuple[int, ...]) -> bytes:
    return blake2b(f"{shape}".encode() + numbers.tobytes(), digest_size=SIZE).digest()

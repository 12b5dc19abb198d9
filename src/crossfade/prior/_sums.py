"""Sums over people: each array is declared once, and is then added, compared, saved and loaded.

::

    class Blinks(Sums, name="blinks"):
        n_people: float = summed(of="people")
        count: Array = summed("d", of="blinks of a person, by feature")
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

import numpy as np

from crossfade._typing import Array
from crossfade._validate import check_covariance, check_finite, check_spectrum

#: Largest number in a sum: means are in deviations, and products of sums must be numbers, too.
LARGEST = 1e40
_MISSING = object()


def summed(*shape: str | int, of: str, default: Any = _MISSING, semidefinite: bool = False) -> Any:
    """Declare sums over people of a `shape` in features "d", classes "K" or both "Kd"."""
    about = {"shape": shape, "of": of, "semidefinite": semidefinite}
    return field(metadata=about) if default is _MISSING else field(default=default, metadata=about)


@dataclass(frozen=True, eq=False)
class Arrays:
    """Named arrays of declared shapes; leading axes are a batch."""

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same numbers, to the bit."""
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.arrays(), other.arrays()
        return mine.keys() == theirs.keys() and all(
            np.array_equal(mine[name], theirs[name]) for name in mine
        )

    __hash__ = None  # type: ignore[assignment]

    def arrays(self) -> dict[str, Array]:
        """Arrays by name, without those that are missing."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: np.asarray(value) for name, value in found.items() if value is not None}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array], **sizes: int) -> Self:
        """Arrays by name, checked: d features and K classes say how long they are."""
        sizes = {**sizes, "Kd": sizes["K"] * sizes["d"]}
        known: dict[str, Any] = {}
        for one in fields(cls):
            name = f"{cls.__name__}.{one.name}"
            if one.name in arrays:
                shape = tuple(sizes[n] if isinstance(n, str) else n for n in one.metadata["shape"])
                array = check_finite(name, arrays[one.name], len(shape), largest=LARGEST)
                if array.shape != shape:
                    raise ValueError(f"{name} must be of shape {shape}; got {array.shape}.")
                if one.metadata["semidefinite"]:
                    check_covariance(name, array, shape[-1])
                    for values in np.linalg.eigvalsh(array).reshape(-1, shape[-1]):
                        check_spectrum(name, values)
                known[one.name] = array if shape else float(array)
        made = cls(**known)
        made.check()
        return made

    def check(self) -> None:
        """Refuse numbers that do not belong together."""


@dataclass(frozen=True, eq=False)
class Sums(Arrays):
    """Arrays that are sums over people."""

    #: Every kind of sums by the name that priors and files call it.
    kinds: ClassVar[dict[str, type[Sums]]] = {}
    #: Whether people of a prior that does not hold it add nothing to it.
    zero_if_missing: ClassVar[bool] = False

    def __init_subclass__(cls, name: str, **options: Any) -> None:
        super().__init_subclass__(**options)
        Sums.kinds[name] = cls

    def __add__(self, other: Self) -> Self:
        """Sums over the people of both; an array that one of them lacks is missing."""
        return self._with(other, 1.0)

    def __sub__(self, other: Self) -> Self:
        """Sums without some of the people; with a batch of them, each left out in turn."""
        return self._with(other, -1.0)

    def __mul__(self, share: float) -> Self:
        """Sums in which each person counts as a share."""
        return type(self)(**{name: share * array for name, array in self._values().items()})

    def _with(self, other: Self, sign: float) -> Self:
        mine, theirs = self._values(), other._values()
        return type(self)(
            **{name: mine[name] + sign * theirs[name] for name in mine if name in theirs}
        )

    def _values(self) -> dict[str, Any]:
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in found.items() if value is not None}


def added(mine: Mapping[str, Sums], theirs: Mapping[str, Sums]) -> dict[str, Sums]:
    """Sums over the people of both, of all kinds that are known of both."""
    both = {name: one + theirs[name] for name, one in mine.items() if name in theirs}
    for name, one in {**mine, **theirs}.items():
        if name not in both and one.zero_if_missing:
            both[name] = one
    return both

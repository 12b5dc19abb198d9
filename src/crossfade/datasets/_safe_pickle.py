"""Arrays of a pickle, read by an unpickler that knows numpy's arrays and plain containers only."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def load_arrays(path: str | os.PathLike[str], *places: Sequence[str]) -> list[NDArray[Any]]:
    """Arrays at keys of nested dictionaries, from a pickle of Python 2 or 3."""
    with open(path, "rb") as stream:
        try:
            tree = _Unpickler(stream, encoding="latin1").load()
            return [_array_at(tree, place) for place in places]
        except Exception as reason:  # a damaged pickle raises whatever its instructions lead to
            raise ValueError(f"{path} cannot be read as a pickle of arrays: {reason!r}") from reason


def _array_at(tree: Any, place: Sequence[str]) -> NDArray[Any]:
    """Array of numbers at a sequence of keys."""
    for key in place:
        tree = tree[key]
    if not isinstance(tree, np.ndarray) or tree.dtype.kind not in "biuf":
        raise ValueError(f"{place[-1]!r} is not an array of numbers")
    return tree


def _encode(text: str = "", _: object = None) -> bytes:
    """Bytes that Python 3 wrote for Python 2."""
    return text.encode("latin1")


_array: Any = np.zeros(1)
#: Names that a pickle may use: the functions by which numpy pickles arrays and scalars.
_ADMITTED: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("_codecs", "encode"): _encode,
    ("__builtin__", "bytes"): _encode,
}
for _core in ("numpy.core", "numpy._core"):
    _ADMITTED[f"{_core}.multiarray", "_reconstruct"] = _array.__reduce__()[0]
    _ADMITTED[f"{_core}.multiarray", "scalar"] = _array[0].__reduce__()[0]
    _ADMITTED[f"{_core}.numeric", "_frombuffer"] = _array.__reduce_ex__(5)[0]


class _Unpickler(pickle.Unpickler):
    """Unpickler that finds nothing but the names above."""

    def find_class(self, module: str, name: str) -> Any:
        """Function or class of a name."""
        if (module, name) not in _ADMITTED:
            raise ValueError(f"it asks for '{module}.{name}'; nothing in it was run")
        return _ADMITTED[module, name]

"""Arrays of a pickle, read without running anything that the file asks for.

A pickle calls whatever it names. The unpickler here knows a few names only, and each stands for a
class of this module that takes notes; numpy makes the arrays that are asked for afterwards.
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NUMBERS = re.compile(r"[<>=|]?(b1|[iu][1248]|f[248])")


def load_arrays(path: str | os.PathLike[str], *places: Sequence[str]) -> list[NDArray[Any]]:
    """Arrays at keys of nested dictionaries, from a pickle of Python 2 or 3."""
    with open(path, "rb") as stream:
        try:
            tree = _Unpickler(stream, encoding="latin1").load()
            return [_array_at(tree, place) for place in places]
        except Exception as reason:  # a damaged pickle raises whatever its instructions lead to
            raise ValueError(f"{path} cannot be read as a pickle of arrays: {reason!r}") from reason


def _array_at(tree: Any, place: Sequence[str]) -> NDArray[Any]:
    """Array at a sequence of keys."""
    for key in place:
        if not isinstance(tree, dict) or key not in tree:
            raise ValueError(f"there is no {key!r} in it")
        tree = tree[key]
    if not isinstance(tree, _Array):
        raise ValueError(f"{place[-1]!r} is not an array")
    return tree.read()


class _Bytes:
    """Stands for ``_codecs.encode``, by which Python 3 writes bytes for Python 2."""

    def __new__(cls, text: str = "", *_: Any) -> Any:
        return text.encode("latin1")


class _Dtype:
    """Stands for ``numpy.dtype``: first comes its code, then its byte order."""

    order = ""

    def __init__(self, code: Any, *_: Any) -> None:
        self.code = code

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]


class _Array:
    """Stands for ``_reconstruct``, which makes an empty array for a state to fill."""

    state: Any = None

    def __init__(self, *_: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def read(self) -> NDArray[Any]:
        """The array, of numbers."""
        _, shape, kind, fortran, content = self.state
        name = f"{kind.order}{kind.code}"
        if not _NUMBERS.fullmatch(name):
            raise ValueError(f"an array of type {name!r:.50} is not read, only numbers are")
        raw = content.encode("latin1") if isinstance(content, str) else content
        return np.frombuffer(raw, name).reshape(shape, order="F" if fortran else "C")


class _FromBuffer(_Array):
    """Stands for ``_frombuffer``, of protocol 5."""

    def __init__(self, content: Any, kind: Any, shape: Any, order: Any) -> None:
        self.state = (1, shape, kind, order == "F", content)


_ADMITTED = {("numpy", "dtype"): _Dtype, ("numpy", "ndarray"): _Array}
_ADMITTED |= {("_codecs", "encode"): _Bytes, ("__builtin__", "bytes"): _Bytes}
for _core in ("numpy.core", "numpy._core"):
    _ADMITTED[f"{_core}.multiarray", "_reconstruct"] = _Array
    _ADMITTED[f"{_core}.multiarray", "scalar"] = _Array
    _ADMITTED[f"{_core}.numeric", "_frombuffer"] = _FromBuffer


class _Unpickler(pickle.Unpickler):
    """Unpickler that finds nothing but the stand-ins above."""

    def find_class(self, module: str, name: str) -> type:
        """Class that stands for a name."""
        if (module, name) not in _ADMITTED:
            raise ValueError(f"it asks for '{module}.{name}'; nothing in it was run")
        return _ADMITTED[module, name]
